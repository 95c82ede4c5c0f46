//! From text to [`ast`](crate::ast).

pub mod error;

pub use error::ParseError;

use crate::ast::Statement;

/// One statement of a script.
#[derive(Debug, Clone, PartialEq)]
pub struct ParsedStatement {
    /// What it says.
    pub statement: Statement,
    /// Its own text, without the semicolon and the blanks around it.
    pub text: String,
    /// Byte offset of `text` in the input.
    pub offset: usize,
}

/// Parses a script: statements separated by semicolons. Empty statements are left out, so an empty
/// text gives an empty list.
///
/// # Errors
///
/// The first thing that is wrong with any of the statements; none is returned then.
pub fn parse_statements(sql: &str) -> Result<Vec<ParsedStatement>, ParseError> {
    let _ = sql;
    todo!("sql/parser")
}
