//! Literals in expression and query texts that the catalog stores.
//!
//! The value of `'01/02/2003'::date` or `timestamptz '2024-01-01'` depends on `DateStyle`,
//! `TimeZone` and the clock of the session. In a statement it is determined at execution; in a
//! definition (a DEFAULT, a CHECK, an index, a view, the body of a function in SQL-standard form)
//! at creation, as in PostgreSQL, which stores constants. In the stored text, such a literal is
//! replaced by its value in a format that does not depend on session settings.
//!
//! Names of objects (`'t'::regclass`) are not changed.

use types::datatype::DataType;
use types::text::{TextStyle, parse_as, write};
use types::{SqlType, cast};

use crate::binder::coercion::needs_session;
use crate::binder::level::Binder;
use crate::error::{Error, Result};
use crate::parser;

/// Rewriter of the literals of a text.
#[derive(Debug)]
pub(super) struct LiteralSettler {
    style: TextStyle,
    /// The positions of rewritten literals, with their new texts.
    settled: Vec<(usize, String)>,
}

impl LiteralSettler {
    /// Returns a rewriter with the settings of a session.
    pub(super) fn new(style: TextStyle) -> LiteralSettler {
        LiteralSettler { style, settled: Vec::new() }
    }

    /// Returns the text with the rewritten literals.
    pub(super) fn rewritten(self, text: &str) -> Result<String> {
        if self.settled.is_empty() {
            return Ok(text.to_owned());
        }
        let mut places = Vec::with_capacity(self.settled.len());
        for (position, bytes) in parser::string_places(text).map_err(Error::from)? {
            // If a literal was bound several times, the last result counts.
            if let Some((_, new)) = self.settled.iter().rfind(|(at, _)| *at == position) {
                places.push((bytes, format!("'{}'", new.replace('\'', "''"))));
            }
        }
        Ok(parser::replace(text, &places))
    }
}

impl Binder<'_> {
    /// Returns a literal in a format that does not depend on settings; `None` if no definition is
    /// bound, or the literal needs no change.
    pub(super) fn settled_literal(
        &mut self,
        text: &str,
        to: &SqlType,
        position: usize,
    ) -> Result<Option<String>> {
        let Some(settler) = &mut self.settler else { return Ok(None) };
        let names =
            cast::has_leaf(&to.base, &|leaf| matches!(leaf, DataType::Reg(_) | DataType::AclItem));
        if names || !needs_session(text, to) {
            return Ok(None);
        }
        let value =
            parse_as(text, to, &settler.style).map_err(|error| Error::from(error).at(position))?;
        let mut bytes = Vec::new();
        write(&value, &to.base, &TextStyle::default(), &mut bytes)?;
        let text = String::from_utf8_lossy(&bytes).into_owned();
        settler.settled.push((position, text.clone()));
        Ok(Some(text))
    }
}
