//! The errors of the store layer.
//!
//! One variant for each thing a *caller can do next*, not for each way a thing can fail; the detail
//! goes into the fields.

use std::ffi::OsStr;
use std::fmt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use crate::descriptor::TableId;

/// The result of a store operation.
pub type Result<T> = std::result::Result<T, Error>;

/// What to do about a file that is missing or not what it should be.
pub(crate) const RESTORE: &str = "restore it from a copy, or copy what can be read to a new \
                                  directory with \"bennu job salvage\"";

/// What went wrong in the store.
#[derive(Debug)]
#[non_exhaustive]
pub enum Error {
    /// A mutation that expected no row found one. The transaction may go on.
    RowExists {
        /// The table.
        table: TableId,
        /// The row key.
        row: Vec<u8>,
        /// What was to be put: families and values.
        puts: Vec<(u8, Vec<u8>)>,
    },
    /// The row was changed after the transaction's snapshot. Roll back and run it again.
    Serialization {
        /// Why, for the client.
        detail: String,
    },
    /// Beside those that have committed, the SERIALIZABLE transaction has no place in any serial
    /// order. Roll back and run it again.
    Dependencies {
        /// How it was found, for the client.
        reason: String,
    },
    /// Waiting would have closed a circle of waiting transactions. Roll back and run it again.
    Deadlock {
        /// Who waits for whom.
        detail: String,
    },
    /// A row lock was not to be had: at once (NOWAIT) or within the lock time-out.
    LockNotAvailable {
        /// The table.
        table: TableId,
        /// Whether the time ran out; otherwise the caller did not want to wait.
        timed_out: bool,
    },
    /// Open transactions hold all the memory that they may, this one much of it. Roll back and
    /// write in smaller pieces.
    OutOfMemory {
        /// Bytes that all open transactions may hold.
        limit_bytes: u64,
    },
    /// The transaction has spilled to disk: it can be committed, not prepared.
    PreparedTooLarge,
    /// The request would exceed a quota. Nothing of it was done in the table that it is of; retry
    /// later.
    QuotaExceeded {
        /// Whose quota: a table or a role.
        subject: String,
        /// The limit's name.
        quota: &'static str,
        /// The limit.
        per_second: u64,
        /// When the request would be let in, if no other comes first.
        retry_after: Duration,
    },
    /// The statement was cancelled.
    Cancelled,
    /// The snapshot was closed, because it was older than
    /// [`Options::snapshot_age_max`](crate::Options::snapshot_age_max) or one too many: what it
    /// could see is not kept any more. Roll back and run it again.
    SnapshotTooOld,
    /// The state of a former time was asked for, and some of it was dropped by retention. States
    /// from `begin_micros` on are whole where that was found out; other regions and families of the
    /// table may have a later one: [`Store::history_begin`](crate::Store::history_begin).
    BeforeHistory {
        /// The first time of which the state is whole: a timestamp.
        begin_micros: i64,
    },
    /// The region did not answer within the time the caller gave it.
    RegionTimeout {
        /// The table.
        table: TableId,
    },
    /// An observer refused the mutation, or an endpoint failed. Shown to the client as it is.
    Vetoed(Box<Veto>),
    /// There is no such table (any more).
    NoSuchTable(TableId),
    /// The request can never succeed as written. Correct it.
    InvalidRequest(String),
    /// A row key is too long.
    KeyTooLong {
        /// Its length.
        bytes: usize,
        /// The length of the longest there can be.
        limit: usize,
    },
    /// A file does not hold what its checksum or footer promises. Do not retry; restore the file.
    Corrupt {
        /// The file.
        path: PathBuf,
        /// Where the bad bytes begin, counted from the start of the file.
        offset: u64,
        /// What was expected and what was found.
        detail: String,
    },
    /// The operating system refused.
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
    /// The log cannot be written at present, so no commit can be made. It is tried again all the
    /// time; retry once the cause (a full disk, say) is mended. A commit that was waiting is made
    /// then, or found when the store is opened again, or lost.
    LogFailed {
        /// Why.
        failure: WriteFailure,
        /// Whether a commit had its place already: it may be made yet.
        is_open: bool,
    },
    /// Memstores have all the memory there is for them, and cannot be written to files at present.
    /// That is tried again all the time; retry once the cause (a full disk, say) is mended.
    FlushFailed(WriteFailure),
    /// The store is shutting down.
    ShutDown,
}

/// Why something that is tried again all the time cannot be written: the log, or memstores.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WriteFailure {
    /// What the system said.
    pub detail: String,
    /// Whether the disk is full.
    pub is_full: bool,
}

impl From<&Error> for WriteFailure {
    fn from(error: &Error) -> WriteFailure {
        WriteFailure { detail: error.without_directory(), is_full: error.is_disk_full() }
    }
}

/// Why a coprocessor refused, in the words that the client sees.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Veto {
    /// Name of the coprocessor.
    pub coprocessor: String,
    /// A five-character code for the client, SQLSTATE where the client speaks SQL.
    pub code: String,
    /// The message.
    pub message: String,
    /// More of it, or empty.
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

    /// Returns the message for those who are not to know where on the machine the data is: it
    /// names files by what they are within the data directory.
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

/// A file that is missing or not what it should be, kept to be told to all who need it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Damage {
    path: PathBuf,
    offset: u64,
    detail: String,
}

impl Damage {
    /// Returns what an error says about a file.
    ///
    /// # Errors
    ///
    /// The error itself, if it is another one: to try again may help then.
    pub fn of(error: Error) -> Result<Damage> {
        match error {
            Error::Corrupt { path, offset, detail } => Ok(Damage { path, offset, detail }),
            Error::Io { path, source } if source.kind() == std::io::ErrorKind::NotFound => {
                Ok(Damage { path, offset: 0, detail: "the file is missing".into() })
            }
            other => Err(other),
        }
    }

    /// Returns the error of who needs the file.
    pub fn error(&self) -> Error {
        Error::corrupt(&self.path, self.offset, self.detail.as_str())
    }
}

/// Returns the end of a path: a file with the directory that it is in, if that is one of the store.
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

/// The names of directories within a data directory that are no numbers.
const DIRECTORIES: [&str; 5] = ["regions", "wal", "spill", "runs", "staged"];

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::RowExists { .. } => write!(f, "the row exists already"),
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
            Error::OutOfMemory { .. } => write!(f, "the transaction is too large"),
            Error::PreparedTooLarge => write!(f, "the transaction is too large to be prepared"),
            Error::QuotaExceeded { subject, .. } => write!(f, "quota of {subject} exceeded"),
            Error::Cancelled => write!(f, "canceling statement due to user request"),
            Error::SnapshotTooOld => write!(f, "snapshot too old"),
            Error::BeforeHistory { begin_micros } => {
                write!(f, "history begins later, at {begin_micros} microseconds since 1970")
            }
            Error::RegionTimeout { .. } => write!(f, "the region did not answer in time"),
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
    fn files_are_named_without_the_directory_they_are_in() {
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
