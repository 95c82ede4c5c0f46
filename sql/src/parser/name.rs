//! Identifiers: folding, truncation, and names given as text.

use types::text::unquoted_name;

use super::error::{ParseError, Result};
use crate::ast::Ident;

/// The maximum bytes of an identifier, as in PostgreSQL (NAMEDATALEN - 1).
pub(crate) const IDENTIFIER_BYTES: usize = 63;

/// Returns the identifier of a word: lower case unless quoted, truncated to 63 bytes.
pub(crate) fn fold(word: &str, quoted: bool) -> String {
    let mut folded = if quoted { word.to_owned() } else { word.to_ascii_lowercase() };
    if folded.len() > IDENTIFIER_BYTES {
        let mut end = IDENTIFIER_BYTES;
        while !folded.is_char_boundary(end) {
            end -= 1;
        }
        folded.truncate(end);
    }
    folded
}

/// A database that qualifies a name.
#[derive(Debug, Clone, PartialEq)]
pub struct DatabaseQualifier {
    database: String,
    /// The error if it is not the database of the session.
    error: ParseError,
}

impl DatabaseQualifier {
    /// Checks that the database is the present one.
    ///
    /// # Errors
    ///
    /// 0A000 for another database.
    pub fn check(&self, present: &str) -> Result<()> {
        if self.database == present { Ok(()) } else { Err(self.error.clone()) }
    }
}

/// Returns the database before schema and name, if there is one. `written` is the whole name.
///
/// # Errors
///
/// 42601 for more parts.
pub(super) fn database_of(before: &[Ident], written: &[&str]) -> Result<Option<DatabaseQualifier>> {
    let position = before.first().map(|part| part.position);
    let written = written.join(".");
    match before {
        [] => Ok(None),
        [database] => {
            let message = format!("cross-database references are not implemented: \"{written}\"");
            let error = ParseError::new("0A000", message, position);
            Ok(Some(DatabaseQualifier { database: database.value.clone(), error }))
        }
        _ => {
            let message = format!("improper qualified name (too many dotted names): {written}");
            Err(ParseError::new("42601", message, position))
        }
    }
}

/// Returns the parts of a dotted name: each quoted, or anything without blanks and dots, folded.
/// Source: PostgreSQL's `SplitIdentifierString`.
pub(super) fn split(text: &str) -> Option<Vec<String>> {
    let mut rest = text.trim();
    let mut parts = Vec::new();
    loop {
        if let Some(quoted) = rest.strip_prefix('"') {
            let (part, behind) = unquoted_name(quoted).filter(|(part, _)| !part.is_empty())?;
            parts.push(fold(&part, true));
            rest = behind;
        } else {
            let end = rest.find(|c: char| c == '.' || c.is_ascii_whitespace());
            let end = end.unwrap_or(rest.len());
            if end == 0 {
                return None;
            }
            parts.push(fold(&rest[..end], false));
            rest = &rest[end..];
        }
        rest = rest.trim_start();
        match rest.strip_prefix('.') {
            Some(next) => rest = next.trim_start(),
            None => return rest.is_empty().then_some(parts),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn identifiers_fold_ascii_and_truncate() {
        assert_eq!(fold("FooBar", false), "foobar");
        assert_eq!(fold("FooBar", true), "FooBar");
        assert_eq!(fold("ÄB", false), "Äb", "only ASCII letters fold");
        let long = "é".repeat(40);
        assert_eq!(fold(&long, false), "é".repeat(31), "62 bytes: a character is not cut");
    }
}
