//! Errors of the parser.

use std::fmt;

pub use types::sqlstate;

/// An error in the text of a statement: invalid syntax, or a feature that is not supported.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ParseError {
    /// PostgreSQL's five-character code.
    pub sqlstate: &'static str,
    /// One sentence, lower case, without a full stop.
    pub message: String,
    /// 1-based character offset into the text, if the error has a position.
    pub position: Option<usize>,
    /// Detail, a full sentence.
    pub detail: Option<String>,
    /// Hint, a full sentence.
    pub hint: Option<String>,
}

/// The result of parsing.
pub type Result<T> = std::result::Result<T, ParseError>;

impl ParseError {
    /// Returns an error at a position.
    pub fn new(
        sqlstate: &'static str,
        message: impl Into<String>,
        position: impl Into<Option<usize>>,
    ) -> ParseError {
        ParseError {
            sqlstate,
            message: message.into(),
            position: position.into(),
            detail: None,
            hint: None,
        }
    }

    /// Returns a syntax error.
    pub fn syntax(message: impl Into<String>, position: impl Into<Option<usize>>) -> ParseError {
        ParseError::new(sqlstate::SYNTAX_ERROR, message, position)
    }

    /// Returns `{construct} is not supported`, 0A000.
    pub fn unsupported(
        construct: impl fmt::Display,
        position: impl Into<Option<usize>>,
    ) -> ParseError {
        ParseError::new(
            sqlstate::FEATURE_NOT_SUPPORTED,
            format!("{construct} is not supported"),
            position,
        )
        .with_hint(format!("Rewrite the statement without {construct}."))
    }

    /// Returns the same error with a detail.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> ParseError {
        self.detail = Some(detail.into());
        self
    }

    /// Returns the same error with another hint.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> ParseError {
        self.hint = Some(hint.into());
        self
    }
}

impl fmt::Display for ParseError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for ParseError {}
