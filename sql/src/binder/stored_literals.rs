//! Literals in texts that the catalog stores.
//!
//! What `'01/02/2003'::date` or `timestamptz '2024-01-01'` means depends on `DateStyle`, `TimeZone`
//! and the clock of the session. In a statement that is decided when it runs; in a definition (a
//! DEFAULT, a CHECK, an index, a view, the body of a function in SQL-standard form) when the
//! definition is made, as in PostgreSQL, which stores constants. Here the stored text gets the
//! value in a form that every session reads alike.
//!
//! Names of objects (`'t'::regclass`) stay as they are.

use types::datatype::DataType;
use types::text::{TextStyle, parse_as, write};
use types::{SqlType, cast};

use crate::binder::coercion::needs_session;
use crate::binder::level::Binder;
use crate::error::{Error, Result};
use crate::parser;

/// What settles the literals of a text, and those that it has settled.
#[derive(Debug)]
pub(super) struct LiteralSettler {
    style: TextStyle,
    /// Their positions, with the texts that every session reads alike.
    settled: Vec<(usize, String)>,
}

impl LiteralSettler {
    /// Returns one that reads as a session does.
    pub(super) fn new(style: TextStyle) -> LiteralSettler {
        LiteralSettler { style, settled: Vec::new() }
    }

    /// Returns the text with what is in the place of its literals.
    pub(super) fn rewritten(self, text: &str) -> Result<String> {
        if self.settled.is_empty() {
            return Ok(text.to_owned());
        }
        let mut places = Vec::with_capacity(self.settled.len());
        for (position, bytes) in parser::string_places(text).map_err(Error::from)? {
            // Of a literal that was bound several times, the last one tells.
            if let Some((_, new)) = self.settled.iter().rfind(|(at, _)| *at == position) {
                places.push((bytes, format!("'{}'", new.replace('\'', "''"))));
            }
        }
        Ok(parser::replace(text, &places))
    }
}

impl Binder<'_> {
    /// Returns a literal in the form that every session reads alike, if it is one of a definition
    /// and has another.
    pub(super) fn settled_literal(
        &mut self,
        text: &str,
        to: SqlType,
        position: usize,
    ) -> Result<Option<String>> {
        let Some(settler) = &mut self.settler else { return Ok(None) };
        let names =
            cast::has_leaf(to.base, &|leaf| matches!(leaf, DataType::Reg(_) | DataType::AclItem));
        if names || !needs_session(text, to) {
            return Ok(None);
        }
        let value =
            parse_as(text, to, &settler.style).map_err(|error| Error::from(error).at(position))?;
        let mut bytes = Vec::new();
        write(&value, to.base, &TextStyle::default(), &mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        settler.settled.push((position, text.clone()));
        Ok(Some(text))
    }
}
