//! SQL errors, and the mapping of lower layers' errors to SQLSTATEs.
//!
//! Every layer of this crate returns [`Error`]; the wire layer sends its fields as ErrorResponse.

use std::borrow::Cow;
use std::fmt;

use types::SqlType;
use types::error::TypeMention;
pub use types::sqlstate;

use crate::parser::ParseError;

/// Result type of this crate.
pub type Result<T> = std::result::Result<T, Error>;

/// Message for a read before the retained history, until the table is known.
pub(crate) const BEFORE_HISTORY: &str = "history begins after the requested time";

/// Source location of an error or a notice.
#[derive(Debug, PartialEq, Eq)]
pub struct SourceLocation {
    /// Source file.
    pub file: &'static str,
    /// Line number.
    pub line: u32,
    /// PostgreSQL function that raises the same error: some drivers identify errors by it.
    pub routine: &'static str,
}

/// Error with the fields of PostgreSQL's ErrorResponse.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Error {
    /// Five-character code: one of [`sqlstate`], or one that a coprocessor chose.
    pub sqlstate: Cow<'static, str>,
    /// Primary message, in PostgreSQL's style.
    pub message: String,
    /// DETAIL, or none.
    pub detail: Option<String>,
    /// HINT, or none.
    pub hint: Option<String>,
    /// Position in the statement text, in characters from 1.
    pub position: Option<usize>,
    /// CONTEXT, or none; COPY names the line there.
    pub context: Option<String>,
    /// Schema of the affected table, or none.
    pub schema: Option<String>,
    /// Affected table, or none.
    pub table: Option<String>,
    /// Affected column, or none.
    pub column: Option<String>,
    /// Affected constraint, or none.
    pub constraint: Option<String>,
    /// Schema and name of the affected domain, or none.
    pub data_type: Option<Box<(String, String)>>,
    /// User-defined types that the message names.
    pub mentions: Vec<TypeMention>,
    /// Source location, if drivers depend on it.
    pub raised_at: Option<&'static SourceLocation>,
    /// Statement of a procedural body that has the error, and the position in it, in characters
    /// from 1.
    pub internal: Option<Box<(usize, String)>>,
}

impl Error {
    /// Returns an error with this SQLSTATE and message.
    pub fn new(sqlstate: &'static str, message: impl Into<String>) -> Error {
        Error { sqlstate: sqlstate.into(), message: message.into(), ..Error::default() }
    }

    /// Returns the error 0A000 for a feature that is not supported; `hint` names the alternative.
    pub fn not_supported(what: impl fmt::Display, hint: impl Into<String>) -> Error {
        err!(FEATURE_NOT_SUPPORTED: "{what} is not supported"; hint hint)
    }

    /// Adds DETAIL.
    #[must_use]
    pub fn with_detail(mut self, detail: impl Into<String>) -> Error {
        self.detail = Some(detail.into());
        self
    }

    /// Adds HINT.
    #[must_use]
    pub fn with_hint(mut self, hint: impl Into<String>) -> Error {
        self.hint = Some(hint.into());
        self
    }

    /// Adds the affected table.
    #[must_use]
    pub fn of_table(mut self, schema: &str, table: &str) -> Error {
        (self.schema, self.table) = (Some(schema.to_owned()), Some(table.to_owned()));
        self
    }

    /// Adds the affected column.
    #[must_use]
    pub fn of_column(mut self, column: &str) -> Error {
        self.column = Some(column.to_owned());
        self
    }

    /// Adds the affected constraint.
    #[must_use]
    pub fn of_constraint(mut self, constraint: &str) -> Error {
        self.constraint = Some(constraint.to_owned());
        self
    }

    /// Adds the position in the statement, if there is none yet.
    #[must_use]
    pub fn at(mut self, position: usize) -> Error {
        self.position.get_or_insert(position);
        self
    }
}

impl Error {
    /// Records that the message names a type by its [`sql_name`](types::DataType::sql_name),
    /// after the mentions recorded before.
    #[must_use]
    pub fn with_type_mention(mut self, sql_type: impl Into<SqlType>) -> Error {
        let base = &sql_type.into().base;
        let found = TypeMention::find(&self.message, &self.mentions, base.oid(), base.sql_name());
        self.mentions.extend(found);
        self
    }

    /// Replaces the names of user-defined types in the message. `name_of` an OID returns the name
    /// that a session displays: qualified if its search path does not find the type.
    pub fn replace_type_names(&mut self, name_of: impl Fn(u32) -> Option<String>) {
        // From the end, so that earlier positions remain valid.
        for mention in std::mem::take(&mut self.mentions).into_iter().rev() {
            if let Some(name) = name_of(mention.oid)
                && self.message.get(mention.place.clone()).is_some()
            {
                self.message.replace_range(mention.place, &name);
            }
        }
    }

    /// Converts the error into an evaluation error.
    pub fn into_value_error(self) -> types::Error {
        let (code, own) = match self.sqlstate {
            Cow::Borrowed(code) => (code, None),
            Cow::Owned(code) => (sqlstate::INTERNAL_ERROR, Some(code)),
        };
        let subject = types::error::ErrorFields {
            data_type: self.data_type.map(|domain| *domain),
            constraint: self.constraint,
            schema: self.schema,
            table: self.table,
            column: self.column,
            context: self.context,
            sqlstate: own,
            mentions: self.mentions,
            internal: self.internal.map(|internal| *internal),
        };
        types::Error {
            subject: (subject != Default::default()).then(|| Box::new(subject)),
            sqlstate: code,
            message: self.message,
            detail: self.detail,
            hint: self.hint,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.message)
    }
}

impl std::error::Error for Error {}

impl From<ParseError> for Error {
    fn from(error: ParseError) -> Error {
        Error {
            position: error.position,
            detail: error.detail,
            hint: error.hint,
            ..Error::new(error.sqlstate, error.message)
        }
    }
}

impl From<types::Error> for Error {
    fn from(error: types::Error) -> Error {
        let subject = error.subject.map(|subject| *subject).unwrap_or_default();
        Error {
            sqlstate: subject.sqlstate.map_or(Cow::Borrowed(error.sqlstate), Cow::Owned),
            message: error.message,
            detail: error.detail,
            hint: error.hint,
            position: None,
            context: subject.context,
            schema: subject.schema,
            table: subject.table,
            column: subject.column,
            constraint: subject.constraint,
            data_type: subject.data_type.map(Box::new),
            mentions: subject.mentions,
            raised_at: None,
            internal: subject.internal.map(Box::new),
        }
    }
}

impl From<coprocessors::row::RowError> for Error {
    fn from(error: coprocessors::row::RowError) -> Error {
        match error {
            coprocessors::row::RowError::Store(error) => error.into(),
            coprocessors::row::RowError::Value(error) => error.into(),
        }
    }
}

/// Returns the error of a failed WAL write. `is_open`: the commit was already ordered, its
/// outcome is unknown.
fn log_failed(message: String, is_full: bool, is_open: bool) -> Error {
    if is_open {
        return err!(TRANSACTION_RESOLUTION_UNKNOWN: message;
            detail "The outcome of the transaction is unknown. It is committed if the log can be written again.";
            hint "Check whether the transaction was committed before you retry it.");
    }
    let code = if is_full { sqlstate::DISK_FULL } else { sqlstate::IO_ERROR };
    Error::new(code, message).with_detail("The transaction was not committed.").with_hint(
        "Fix the cause of the write failure. The server retries writing the log automatically.",
    )
}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Error {
        use store::Error as Store;
        // Paths of the data directory are logged, not sent to clients.
        if matches!(error, Store::Corrupt { .. } | Store::Io { .. }) {
            tracing::error!(%error, "statement failed");
        }
        let message = error.without_directory();
        match error {
            Store::RowExists { .. } => err!(UNIQUE_VIOLATION: message),
            Store::Serialization { detail } => {
                err!(SERIALIZATION_FAILURE: "could not serialize access {detail}")
            }
            Store::Dependencies { reason } => Error::new(sqlstate::SERIALIZATION_FAILURE, message)
                .with_detail(format!("Reason code: {reason}"))
                .with_hint("The transaction might succeed if retried."),
            Store::Deadlock { detail } => err!(DEADLOCK_DETECTED: message; detail detail),
            Store::LockNotAvailable { .. } => err!(LOCK_NOT_AVAILABLE: message),
            Store::OutOfMemory { limit_bytes } => {
                err!(OUT_OF_MEMORY: message; detail "The limit for all open transactions together is {} MiB.", limit_bytes >> 20;
                    hint "Use smaller transactions, or start the server with more --memory.")
            }
            Store::PreparedTooLarge => Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
                .with_hint("Prepare smaller transactions, or start the server with more --memory."),
            Store::QuotaExceeded { quota, per_second, retry_after, .. } => {
                // Rounded up: a retry after this time is admitted.
                let millis = retry_after.as_micros().div_ceil(1_000);
                err!(CONFIGURATION_LIMIT_EXCEEDED: message; detail "{quota} is {per_second}."; hint "Retry after {millis} ms.")
            }
            Store::Cancelled => err!(QUERY_CANCELED: message),
            Store::BeforeHistory { .. } => err!(SNAPSHOT_TOO_OLD: BEFORE_HISTORY),
            Store::SnapshotTooOld => err!(SNAPSHOT_TOO_OLD: message),
            Store::RegionTimeout { .. } => err!(QUERY_CANCELED: message),
            Store::Vetoed(veto) => from_veto(*veto),
            Store::NoSuchTable(_) => err!(UNDEFINED_TABLE: message),
            Store::InvalidRequest(_) => err!(INTERNAL_ERROR: message),
            Store::KeyTooLong { .. } => err!(PROGRAM_LIMIT_EXCEEDED: message),
            Store::Corrupt { .. } => err!(DATA_CORRUPTED: message),
            Store::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull => {
                err!(DISK_FULL: message)
            }
            Store::Io { .. } => err!(IO_ERROR: message),
            Store::LogFailed { failure, outcome_unknown } => {
                log_failed(message, failure.is_full, outcome_unknown)
            }
            Store::FlushFailed(failure) => log_failed(message, failure.is_full, false).with_hint(
                "Fix the cause of the write failure. The server retries flushing memstores \
                 automatically.",
            ),
            Store::InUse { .. } => err!(OBJECT_IN_USE: message),
            Store::ShutDown => {
                err!(ADMIN_SHUTDOWN: "terminating connection due to administrator command")
            }
            _ => err!(INTERNAL_ERROR: message),
        }
    }
}

/// Returns whether a code may be an error's SQLSTATE: five digits or capital letters, not of a
/// success or warning class (00, 01, 02).
fn is_error_code(code: &str) -> bool {
    let well_formed = code.len() == 5
        && code.bytes().all(|byte| byte.is_ascii_digit() || byte.is_ascii_uppercase());
    well_formed && !["00", "01", "02"].iter().any(|class| code.starts_with(class))
}

/// Converts the veto of a coprocessor, with its message and code. An invalid code becomes an
/// internal error, and the hint names it.
fn from_veto(veto: store::error::Veto) -> Error {
    let (sqlstate, hint) = match is_error_code(&veto.code) {
        true => (veto.code.into(), None),
        false => {
            let hint = format!(
                "Coprocessor \"{}\" must reject with an error SQLSTATE, but returned \"{}\".",
                veto.coprocessor, veto.code
            );
            (sqlstate::INTERNAL_ERROR.into(), Some(hint))
        }
    };
    let some = |text: String| (!text.is_empty()).then_some(text);
    Error {
        sqlstate,
        hint,
        message: veto.message,
        detail: some(veto.detail),
        schema: some(veto.schema),
        table: some(veto.table),
        column: some(veto.column),
        constraint: some(veto.constraint),
        ..Error::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn oversized_transaction_is_out_of_memory_with_hint() {
        let error = Error::from(store::Error::OutOfMemory { limit_bytes: 300 << 20 });
        assert_eq!(error.sqlstate, "53200");
        assert_eq!(
            error.detail.as_deref(),
            Some("The limit for all open transactions together is 300 MiB.")
        );
        assert!(error.hint.is_some_and(|hint| hint.contains("smaller transactions")));
    }

    #[test]
    fn coprocessor_veto_keeps_its_sqlstate() {
        let of = |code: &str| {
            let (coprocessor, message) = ("c".to_owned(), "no".to_owned());
            let veto = store::error::Veto { coprocessor, message, ..Default::default() };
            let veto = store::error::Veto { code: code.to_owned(), ..veto };
            Error::from(store::Error::Vetoed(Box::new(veto)))
        };
        for code in ["23514", "2201B", "P0001", "BN042"] {
            assert_eq!((&*of(code).sqlstate, of(code).hint), (code, None));
        }
        for code in ["", "2351", "235144", "p0001", "23é1", "00000", "01000", "02000"] {
            let error = of(code);
            assert_eq!(error.sqlstate, "XX000");
            assert_eq!(error.message, "no");
            assert!(error.hint.is_some_and(|hint| hint.contains(&format!("returned \"{code}\""))));
        }
    }
}
