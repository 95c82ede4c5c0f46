//! Errors of operations on values: invalid text, overflow, division by zero and others.
//!
//! Each error has the SQLSTATE and the wording of PostgreSQL, so that scripts written for it keep
//! working.

use std::fmt;
use std::ops::Range;

/// An error of an operation on values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Error {
    /// PostgreSQL's five-character code, for example `22012`.
    pub sqlstate: &'static str,
    /// One sentence, lower case, without a full stop.
    pub message: String,
    /// DETAIL: a full sentence.
    pub detail: Option<String>,
    /// HINT: a full sentence.
    pub hint: Option<String>,
    /// The object concerned, for the fields of the error message.
    pub subject: Option<Box<ErrorFields>>,
}

/// Object fields of an error: the domain whose constraint a value violates, and all fields that a
/// statement of a user-defined function has raised.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ErrorFields {
    /// Schema and name of a domain.
    pub data_type: Option<(String, String)>,
    /// A constraint; `None` for NOT NULL.
    pub constraint: Option<String>,
    /// The schema of a table.
    pub schema: Option<String>,
    /// A table.
    pub table: Option<String>,
    /// A column.
    pub column: Option<String>,
    /// CONTEXT
    pub context: Option<String>,
    /// The code, if it is not one of the constants.
    pub sqlstate: Option<String>,
    /// The user-defined types named in the message, in order.
    pub mentions: Vec<TypeMention>,
    /// The failed statement of a procedural body, and the error position in characters, from 1.
    pub internal: Option<(usize, String)>,
}

/// Occurrence of a user-defined type's name in a message. The session qualifies the name with its
/// schema if the search path requires it, before the message is sent to the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TypeMention {
    /// The type's OID.
    pub oid: u32,
    /// The byte range of the name in the message.
    pub place: Range<usize>,
}

impl TypeMention {
    /// Returns the first occurrence of a type's name after the previous mentions.
    pub fn find(
        message: &str,
        before: &[TypeMention],
        oid: u32,
        name: &str,
    ) -> Option<TypeMention> {
        let from = before.last().map_or(0, |one| one.place.end);
        let at = from + message.get(from..)?.find(name)?;
        Some(TypeMention { oid, place: at..at + name.len() })
    }
}

/// The result of an operation on values.
pub type Result<T> = std::result::Result<T, Error>;

/// SQLSTATEs of operations on values, by PostgreSQL's names.
pub mod sqlstate {
    /// `numeric_value_out_of_range`
    pub const NUMERIC_VALUE_OUT_OF_RANGE: &str = "22003";
    /// `division_by_zero`
    pub const DIVISION_BY_ZERO: &str = "22012";
    /// `invalid_text_representation`
    pub const INVALID_TEXT_REPRESENTATION: &str = "22P02";
    /// `invalid_binary_representation`
    pub const INVALID_BINARY_REPRESENTATION: &str = "22P03";
    /// `invalid_datetime_format`
    pub const INVALID_DATETIME_FORMAT: &str = "22007";
    /// `datetime_field_overflow`
    pub const DATETIME_FIELD_OVERFLOW: &str = "22008";
    /// `invalid_parameter_value`
    pub const INVALID_PARAMETER_VALUE: &str = "22023";
    /// `invalid_tablesample_argument`
    pub const INVALID_TABLESAMPLE_ARGUMENT: &str = "2202H";
    /// `invalid_tablesample_repeat`
    pub const INVALID_TABLESAMPLE_REPEAT: &str = "2202G";
    /// `string_data_right_truncation`
    pub const STRING_DATA_RIGHT_TRUNCATION: &str = "22001";
    /// `not_null_violation`
    pub const NOT_NULL_VIOLATION: &str = "23502";
    /// `check_violation`
    pub const CHECK_VIOLATION: &str = "23514";
    /// `undefined_function`
    pub const UNDEFINED_FUNCTION: &str = "42883";
    /// `undefined_object`
    pub const UNDEFINED_OBJECT: &str = "42704";
    /// `cannot_coerce`
    pub const CANNOT_COERCE: &str = "42846";
    /// `datatype_mismatch`
    pub const DATATYPE_MISMATCH: &str = "42804";
    /// `out_of_memory`
    pub const OUT_OF_MEMORY: &str = "53200";
    /// `query_canceled`
    pub const QUERY_CANCELED: &str = "57014";
    /// `feature_not_supported`
    pub const FEATURE_NOT_SUPPORTED: &str = "0A000";
    /// `data_corrupted`: stored bytes do not decode.
    pub const DATA_CORRUPTED: &str = "XX001";
}

impl Error {
    /// Creates an error with this SQLSTATE and message, without detail and hint.
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Error {
        Error { sqlstate, message: message.into(), detail: None, hint: None, subject: None }
    }

    /// Returns the same error with a detail line.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Error {
        self.detail = Some(detail.into());
        self
    }

    /// Returns the same error with a hint line.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// Records that the message names a user-defined type, after the mentions recorded before.
    #[must_use]
    pub fn with_type_mention(mut self, oid: u32, name: &str) -> Error {
        let subject = self.subject.get_or_insert_default();
        subject.mentions.extend(TypeMention::find(&self.message, &subject.mentions, oid, name));
        self
    }

    /// Returns PostgreSQL's `invalid input syntax for type integer: "abc"`.
    pub fn bad_text(type_name: &str, text: &str) -> Error {
        Error::new(
            sqlstate::INVALID_TEXT_REPRESENTATION,
            format!("invalid input syntax for type {type_name}: \"{text}\""),
        )
    }
}

/// Returns the error of a malformed packed row.
#[cold]
pub(crate) fn corrupt(what: &str) -> Error {
    Error::new(sqlstate::DATA_CORRUPTED, format!("cannot decode packed row: {what}"))
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}
