//! The errors of the store layer.
//!
//! There is one variant for each *reaction of a caller*, not for each cause; the detail is in the
//! fields.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::descriptor::TableId;

/// The result of a store operation.
pub type Result<T> = std::result::Result<T, Error>;

/// Advice for a missing or damaged file.
pub(crate) const RESTORE: &str = "restore it from a backup, or copy the readable data to a new \
                                  directory with \"bennu job salvage\"";

/// A put of a mutation that was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RejectedPut {
    /// Index of the family.
    pub family: u8,
    /// The qualifier.
    pub qualifier: Vec<u8>,
    /// The value.
    pub value: Vec<u8>,
}

/// Error of a store operation.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A mutation that expected no row found one. The transaction may continue.
    RowExists {
        /// The table.
        table: TableId,
        /// The row key.
        row: Vec<u8>,
        /// The mutation's puts.
        puts: Vec<RejectedPut>,
    },
    /// The row was changed after the transaction's snapshot. Roll back and run it again.
    Serialization {
        /// The reason, for the client.
        detail: String,
    },
    /// The SERIALIZABLE transaction has no position in any serial order with the committed ones.
    /// Roll back and run it again.
    Dependencies {
        /// The detection, for the client.
        reason: String,
    },
    /// Waiting would have closed a cycle of waiting transactions. Roll back and run it again.
    Deadlock {
        /// The edges of the cycle.
        detail: String,
    },
    /// A row lock was not available: at once (NOWAIT) or within the lock timeout.
    LockNotAvailable {
        /// The table.
        table: TableId,
        /// True for a timeout; otherwise the caller did not want to wait.
        timed_out: bool,
    },
    /// Open transactions have used up their memory, this one much of it. Roll back and write less
    /// per transaction.
    OutOfMemory {
        /// Limit of bytes of all open transactions.
        limit_bytes: u64,
    },
    /// The transaction has spilled to disk: it can be committed, but not prepared.
    PreparedTooLarge,
    /// The request would exceed a quota. It had no effect on the quota's table; retry later.
    QuotaExceeded {
        /// Subject of the quota: a table or a role.
        subject: String,
        /// The limit's name.
        quota: &'static str,
        /// The limit.
        per_second: u64,
        /// Time after which the request would be admitted if there were no others.
        retry_after: Duration,
    },
    /// The statement was cancelled.
    Cancelled,
    /// The snapshot was closed, because it was older than
    /// [`Options::snapshot_age_max`](crate::Options::snapshot_age_max) or one too many: versions
    /// visible only to it are not retained. Roll back and run it again.
    SnapshotTooOld,
    /// A time travel read asked for a state of which retention has dropped versions. States from
    /// `begin_micros` on are complete in the store concerned; other regions and families of the
    /// table may begin later: [`Store::history_begin`](crate::Store::history_begin).
    BeforeHistory {
        /// The first timestamp with a complete state.
        begin_micros: i64,
    },
    /// The region did not answer within the caller's time limit.
    RegionTimeout {
        /// The table.
        table: TableId,
    },
    /// An observer vetoed the mutation, or an endpoint failed. Passed to the client unchanged.
    Vetoed(Box<Veto>),
    /// There is no such table, or it was dropped.
    NoSuchTable(TableId),
    /// The request can never succeed as written. Correct it.
    InvalidRequest(String),
    /// A row key is too long.
    KeyTooLong {
        /// The length of the key.
        bytes: usize,
        /// The maximal length.
        limit: usize,
    },
    /// The content of a file contradicts its checksum or footer. Do not retry; restore the file.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Offset of the damage, from the start of the file.
        offset: u64,
        /// Expected and actual content.
        detail: String,
    },
    /// An operating system call failed.
    Io {
        /// The file or directory.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// The data directory belongs to another process.
    InUse {
        /// The directory.
        path: PathBuf,
    },
    /// The log cannot be written at present, so no commit can be made. The write is retried
    /// continually; clients may retry once the cause (a full disk, say) is fixed. A waiting
    /// commit is made then, or found when the store is opened again, or lost.
    LogFailed {
        /// The cause.
        failure: WriteFailure,
        /// True if a commit had its sequence already: its outcome is unknown.
        outcome_unknown: bool,
    },
    /// Memstores have used up their memory, and cannot be flushed at present. The flush is
    /// retried continually; clients may retry once the cause (a full disk, say) is fixed.
    FlushFailed(WriteFailure),
    /// The store is shutting down.
    ShutDown,
}

/// Failure of a write that is retried continually: of the log, or of memstores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteFailure {
    /// The error message of the system.
    pub detail: String,
    /// True if the disk is full.
    pub is_full: bool,
}

impl From<&Error> for WriteFailure {
    fn from(error: &Error) -> WriteFailure {
        WriteFailure { detail: error.without_directory(), is_full: error.is_disk_full() }
    }
}

/// Veto of a coprocessor, in the client's terms.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Veto {
    /// Name of the coprocessor.
    pub coprocessor: String,
    /// A five-character code for the client, SQLSTATE where the client speaks SQL.
    pub code: String,
    /// The message.
    pub message: String,
    /// The detail, or empty.
    pub detail: String,
    /// The constraint or index, or empty.
    pub constraint: String,
    /// The schema of the table, or empty.
    pub schema: String,
    /// The table, or empty.
    pub table: String,
    /// The column, or empty.
    pub column: String,
}

impl Error {
    /// Returns the error of a file operation.
    pub fn io(path: impl Into<PathBuf>, source: std::io::Error) -> Error {
        Error::Io { path: path.into(), source }
    }

    /// Returns whether the disk was full.
    pub(crate) fn is_disk_full(&self) -> bool {
        matches!(self, Error::Io { source, .. } if source.kind() == std::io::ErrorKind::StorageFull)
    }

    /// Returns the message without the location of the data directory, for clients: files are
    /// named relative to it.
    pub fn without_directory(&self) -> String {
        match self {
            Error::Corrupt { path, offset, detail } => {
                format!("corrupt file \"{}\" at byte {offset}: {detail}", within(path))
            }
            Error::Io { path, source } => {
                format!("could not access \"{}\": {source}", within(path))
            }
            Error::InUse { .. } => "the data directory is in use by another process".to_owned(),
            other => other.to_string(),
        }
    }

    /// Returns the error of a damaged file.
    pub fn corrupt(path: impl Into<PathBuf>, offset: u64, detail: impl Into<String>) -> Error {
        Error::Corrupt { path: path.into(), offset, detail: detail.into() }
    }
}

/// A missing or damaged file, recorded to be reported to all who need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    path: PathBuf,
    offset: u64,
    detail: String,
}

impl Damage {
    /// Returns the damage described by an error.
    ///
    /// # Errors
    ///
    /// The error itself, if it is of another kind, for which a retry may succeed.
    pub fn of(error: Error) -> Result<Damage> {
        match error {
            Error::Corrupt { path, offset, detail } => Ok(Damage { path, offset, detail }),
            Error::Io { path, source } if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(Damage { path, offset: 0, detail: "the file is missing".into() })
            }
            other => Err(other),
        }
    }

    /// Returns the error for a reader of the file.
    pub fn error(&self) -> Error {
        Error::corrupt(&self.path, self.offset, self.detail.as_str())
    }
}

/// Returns the end of a path: a file with its directory, if that is one of the store.
fn within(path: &Path) -> String {
    let is_part = |name: &&OsStr| {
        let name = name.to_string_lossy();
        let is_number = !name.is_empty() && name.bytes().all(|byte| byte.is_ascii_hexdigit());
        is_number || DIRECTORIES.contains(&name.as_ref())
    };
    let mut names: Vec<String> = Vec::new();
    names.extend(path.file_name().map(|name| name.to_string_lossy().into_owned()));
    let above = path.ancestors().skip(1).filter_map(Path::file_name).take(2);
    names.extend(above.take_while(is_part).map(|name| name.to_string_lossy().into_owned()));
    names.reverse();
    names.join("/")
}

/// Names of subdirectories of a data directory that are not numbers.
const DIRECTORIES: [&str; 5] = ["regions", "wal", "spill", "runs", "staged"];

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::RowExists { .. } => write!(f, "row already exists"),
            Error::Serialization { detail } => write!(f, "could not serialize access: {detail}"),
            Error::Dependencies { .. } => write!(
                f,
                "could not serialize access due to read/write dependencies among transactions"
            ),
            Error::Deadlock { .. } => write!(f, "deadlock detected"),
            Error::LockNotAvailable { timed_out: true, .. } => {
                write!(f, "canceling statement due to lock timeout")
            }
            Error::LockNotAvailable { timed_out: false, .. } => {
                write!(f, "could not obtain lock on row")
            }
            Error::OutOfMemory { .. } => write!(f, "transaction is too large"),
            Error::PreparedTooLarge => write!(f, "transaction is too large to be prepared"),
            Error::QuotaExceeded { subject, .. } => write!(f, "quota of {subject} exceeded"),
            Error::Cancelled => write!(f, "canceling statement due to user request"),
            Error::SnapshotTooOld => write!(f, "snapshot too old"),
            Error::BeforeHistory { begin_micros } => {
                write!(f, "history begins at {begin_micros} microseconds since the Unix epoch")
            }
            Error::RegionTimeout { .. } => write!(f, "region did not respond in time"),
            Error::Vetoed(veto) => f.write_str(&veto.message),
            Error::NoSuchTable(table) => write!(f, "table {} does not exist in the store", table.0),
            Error::InvalidRequest(detail) => f.write_str(detail),
            Error::KeyTooLong { bytes, limit } => {
                write!(f, "row key of {bytes} bytes is longer than {limit} bytes")
            }
            Error::Corrupt { path, offset, detail } => {
                write!(f, "corrupt file \"{}\" at byte {offset}: {detail}", path.display())
            }
            Error::Io { path, source } => {
                write!(f, "could not access \"{}\": {source}", path.display())
            }
            Error::InUse { path } => {
                write!(f, "data directory \"{}\" is in use by another process", path.display())
            }
            Error::LogFailed { failure, .. } => {
                write!(f, "could not write the write-ahead log: {}", failure.detail)
            }
            Error::FlushFailed(failure) => {
                write!(f, "could not write memstores to files: {}", failure.detail)
            }
            Error::ShutDown => write!(f, "the store is shutting down"),
        }
    }
}

impl std::error::Error for Error {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            Error::Io { source, .. } => Some(source),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_omit_data_directory_from_paths() {
        let message = |path: &str| {
            let refused = std::io::Error::from(std::io::ErrorKind::PermissionDenied);
            [
                Error::io(path, refused).without_directory(),
                Error::corrupt(path, 7, "x").without_directory(),
            ]
        };
        let cases = [
            ("/srv/secret/data/regions/12/0007.sf", "\"regions/12/0007.sf\""),
            ("/srv/secret/data/wal/0000000000000001.log", "\"wal/0000000000000001.log\""),
            ("/srv/secret/data/spill/3", "\"spill/3\""),
            ("/srv/secret/data/MANIFEST", "\"MANIFEST\""),
            ("/", "\"\""),
        ];
        for (path, named) in cases {
            for message in message(path) {
                assert!(message.contains(named) && !message.contains("secret"), "{message}");
            }
        }
        let in_use = Error::InUse { path: "/srv/secret".into() };
        assert!(!in_use.without_directory().contains("secret"));
        let failure = WriteFailure::from(&Error::corrupt("/srv/secret/wal/1", 0, ""));
        assert!(!failure.detail.contains("secret"));
    }
}
