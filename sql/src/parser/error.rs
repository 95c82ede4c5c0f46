//! Errors of the parser.

use std::fmt;

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

/// SQLSTATEs that the parser raises, by PostgreSQL's names.
pub mod sqlstate {
    /// `syntax_error`
    pub const SYNTAX_ERROR: &str = "42601";
    /// `feature_not_supported`
    pub const FEATURE_NOT_SUPPORTED: &str = "0A000";
    /// `statement_too_complex`
    pub const STATEMENT_TOO_COMPLEX: &str = "54001";
    /// `undefined_object`: a type that does not exist
    pub const UNDEFINED_OBJECT: &str = "42704";
    /// `invalid_table_definition`
    pub const INVALID_TABLE_DEFINITION: &str = "42P16";
    /// `invalid_cursor_definition`
    pub const INVALID_CURSOR_DEFINITION: &str = "42P11";
    /// `invalid_name`
    pub const INVALID_NAME: &str = "42602";
    /// `undefined_parameter`
    pub const UNDEFINED_PARAMETER: &str = "42P02";
    /// `invalid_parameter_value`
    pub const INVALID_PARAMETER_VALUE: &str = "22023";
    /// `numeric_value_out_of_range`
    pub const NUMERIC_VALUE_OUT_OF_RANGE: &str = "22003";
    /// `invalid_escape_sequence`
    pub const INVALID_ESCAPE_SEQUENCE: &str = "22025";
    /// `invalid_character_value` for a NUL byte
    pub const CHARACTER_NOT_IN_REPERTOIRE: &str = "22021";
    /// `query_canceled`
    pub const QUERY_CANCELED: &str = "57014";
}

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
