//! Errors of operations on values: invalid text, overflow, division by zero and others.
//!
//! Each error has the SQLSTATE and the wording of PostgreSQL, so that scripts written for it keep
//! working.

use std::fmt;
use std::ops::Range;

pub use crate::sqlstate;

/// Builds an error: `err!(UNDEFINED_TABLE: "relation \"{name}\" does not exist"; at position)`.
///
/// The first word is a constant of [`sqlstate`]. The message is a format string with its arguments,
/// or an expression. Fields follow, each after a semicolon: `detail` and `hint` have the form of
/// the message, any other word is a method of the error with its arguments. The result has the
/// type named `Error` where the macro is used.
#[macro_export]
macro_rules! err {
    (@ $error:expr) => { $error };
    (@ $error:expr; detail $($rest:tt)+) => { $crate::err!(@text $error, with_detail; $($rest)+) };
    (@ $error:expr; hint $($rest:tt)+) => { $crate::err!(@text $error, with_hint; $($rest)+) };
    (@ $error:expr; $method:ident $($argument:expr),+ $(; $($rest:tt)+)?) => {
        $crate::err!(@ $error.$method($($argument),+) $(; $($rest)+)?)
    };
    (@text $error:expr, $method:ident; $text:literal $(, $argument:expr)* $(; $($rest:tt)+)?) => {
        $crate::err!(@ $error.$method(format!($text $(, $argument)*)) $(; $($rest)+)?)
    };
    (@text $error:expr, $method:ident; $text:expr $(; $($rest:tt)+)?) => {
        $crate::err!(@ $error.$method($text) $(; $($rest)+)?)
    };
    ($code:ident: $text:literal $(, $argument:expr)* $(; $($rest:tt)+)?) => {
        $crate::err!(@ Error::new($crate::sqlstate::$code, format!($text $(, $argument)*)) $(; $($rest)+)?)
    };
    ($code:ident: $text:expr $(; $($rest:tt)+)?) => {
        $crate::err!(@ Error::new($crate::sqlstate::$code, $text) $(; $($rest)+)?)
    };
}

/// Returns from the function with the error of [`err!`].
#[macro_export]
macro_rules! bail {
    ($($error:tt)+) => { return Err($crate::err!($($error)+)) };
}

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
