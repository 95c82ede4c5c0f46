//! Errors of the commands: failures outside of SQL, and the SQL errors that end a command.

use std::fmt;
use std::path::PathBuf;

/// The result of a command.
pub type Result<T> = std::result::Result<T, Error>;

/// An error that ends a command. It is printed as one line on standard error.
#[derive(Debug)]
pub enum Error {
    /// The command line or the configuration is wrong: exit status 2.
    Usage(String),
    /// The store could not be opened or has failed.
    Store(store::Error),
    /// A statement has failed.
    Sql(Box<sql::Error>),
    /// Statements of a script on standard input have failed; each error has been printed.
    Script {
        /// Their number.
        failed: usize,
    },
    /// The server could not listen on an address.
    Listen {
        /// The address.
        address: String,
        /// The cause.
        source: std::io::Error,
    },
    /// A file of the command (not of the store) could not be read or written.
    File {
        /// The file.
        path: PathBuf,
        /// The cause.
        source: std::io::Error,
    },
    /// Standard input or output was closed, or a thread could not be started.
    System(std::io::Error),
}

impl Error {
    /// Returns the exit status of a process that ends with this error.
    pub fn exit_status(&self) -> u8 {
        match self {
            Error::Usage(_) => 2,
            _ => 1,
        }
    }
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Error::Usage(message) => f.write_str(message),
            Error::Store(error) => error.fmt(f),
            Error::Sql(error) => write!(f, "{} (SQLSTATE {})", error.message, error.sqlstate),
            Error::Script { failed: 1 } => f.write_str("a statement failed"),
            Error::Script { failed } => write!(f, "{failed} statements failed"),
            Error::Listen { address, source } => {
                write!(f, "could not listen on {address}: {source}")
            }
            Error::File { path, source } => {
                write!(f, "could not access \"{}\": {source}", path.display())
            }
            Error::System(source) => source.fmt(f),
        }
    }
}

impl std::error::Error for Error {}

impl From<store::Error> for Error {
    fn from(error: store::Error) -> Error {
        Error::Store(error)
    }
}

impl From<sql::Error> for Error {
    fn from(error: sql::Error) -> Error {
        Error::Sql(Box::new(error))
    }
}

impl From<std::io::Error> for Error {
    fn from(error: std::io::Error) -> Error {
        Error::System(error)
    }
}
