//! Parsing of COLLATE, and the collations by name.

use sqlparser::ast::ObjectName;

use super::cursor::TokenCursor;
use super::error::{ParseError, Result, sqlstate};
use crate::ast::{Collation, TypeName};

impl TokenCursor<'_> {
    /// Reads a type followed by `[COLLATE name]`.
    pub(super) fn collated_type(&mut self) -> Result<TypeName> {
        let type_name = self.type_name()?;
        Ok(match self.collate()? {
            Some(collation) => TypeName { collation: Some(collation), ..type_name },
            None => type_name,
        })
    }

    /// Reads `COLLATE name` with its position; `None` for anything else.
    pub(super) fn collate(&mut self) -> Result<Option<(Collation, usize)>> {
        let position = self.position();
        if !self.take_word("collate") {
            return Ok(None);
        }
        let name = self.table_name()?;
        let schema = name.schema.as_ref().map(|schema| schema.value.as_str());
        Ok(Some((named(schema, &name.name.value, position)?, position)))
    }

    /// Returns the collation of a name, in an expression that starts at a position.
    pub(super) fn collation(&self, written: &ObjectName, position: usize) -> Result<Collation> {
        let parts = self.object_name(written)?;
        let parts: Vec<&str> = parts.iter().map(|part| part.value.as_str()).collect();
        match parts.as_slice() {
            [name] => named(None, name, position),
            [schema, name] => named(Some(schema), name, position),
            _ => {
                let message =
                    format!("improper qualified name (too many dotted names): {}", parts.join("."));
                Err(ParseError::syntax(message, position))
            }
        }
    }
}

fn named(schema: Option<&str>, name: &str, position: usize) -> Result<Collation> {
    let known = Collation::ALL.into_iter().find(|one| one.name() == name);
    if let Some(known) = known.filter(|_| schema.is_none_or(|schema| schema == "pg_catalog")) {
        return Ok(known);
    }
    if is_of_a_language(name) {
        let hint = "Text is sorted by bytes. Use COLLATE \"C\", or omit COLLATE.";
        let what = format!("collation \"{name}\"");
        return Err(ParseError::unsupported(what, position).with_hint(hint));
    }
    let shown = match schema {
        Some(schema) => format!("{schema}.{name}"),
        None => name.to_owned(),
    };
    let message = format!("collation \"{shown}\" for encoding \"UTF8\" does not exist");
    Err(ParseError::new(sqlstate::UNDEFINED_OBJECT, message, position))
}

/// Returns whether a name has the form of PostgreSQL's language-specific collations: `en_US`,
/// `de_DE.utf8`, `en-US-x-icu`.
fn is_of_a_language(name: &str) -> bool {
    let locale = name.split('.').next().unwrap_or_default().as_bytes();
    let is_locale = matches!(locale, [a, b, b'_', c, d]
        if [a, b].iter().all(|one| one.is_ascii_lowercase())
            && [c, d].iter().all(|one| one.is_ascii_uppercase()));
    is_locale || name.ends_with("-x-icu")
}
