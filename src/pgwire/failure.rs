//! Failures of answering a message: a failed statement, or the end of the connection.

use std::any::Any;
use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};

use rustix::io::Errno;
use sql::Error;
use sql::error::sqlstate;

use crate::pgwire::frame::ProtocolViolation;

/// A failure to answer a message.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The statement failed; the connection continues.
    Statement(Box<Error>),
    /// The error is sent to the client and the connection ends.
    Fatal(Box<Error>),
    /// The client is disconnected.
    Gone(io::Error),
}

/// The result of answering a message.
pub(crate) type Result<T> = std::result::Result<T, Failure>;

impl Failure {
    /// Returns a failure that ends a connection.
    pub(crate) fn fatal(sqlstate: &'static str, message: impl Into<String>) -> Failure {
        Failure::Fatal(Box::new(Error::new(sqlstate, message)))
    }
}

impl From<Error> for Failure {
    fn from(error: Error) -> Failure {
        Failure::Statement(Box::new(error))
    }
}

impl From<io::Error> for Failure {
    fn from(error: io::Error) -> Failure {
        match error.kind() {
            io::ErrorKind::OutOfMemory => Failure::fatal(sqlstate::OUT_OF_MEMORY, "out of memory"),
            _ if is_out_of_descriptors(&error) => {
                Failure::fatal(sqlstate::INSUFFICIENT_RESOURCES, error.to_string())
            }
            _ => Failure::Gone(error),
        }
    }
}

/// Returns whether the process, or the system, has no file descriptors left.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    errno.is_some_and(|errno| [Errno::MFILE, Errno::NFILE].contains(&errno))
}

impl From<ProtocolViolation> for Failure {
    fn from(error: ProtocolViolation) -> Failure {
        Failure::fatal("08P01", error.0)
    }
}

/// Runs a part of a statement. A panic ends the session, not the server.
pub(crate) fn run<T>(work: impl FnOnce() -> sql::Result<T>) -> Result<T> {
    match catch_unwind(AssertUnwindSafe(work)) {
        Ok(result) => Ok(result?),
        Err(panic) => {
            let detail = panic_message(panic.as_ref());
            tracing::error!(panic = detail, "statement panicked; terminating session");
            Err(Failure::fatal(sqlstate::INTERNAL_ERROR, format!("internal error: {detail}")))
        }
    }
}

/// Returns the message of a panic.
pub(crate) fn panic_message(panic: &(dyn Any + Send)) -> &str {
    match (panic.downcast_ref::<&str>(), panic.downcast_ref::<String>()) {
        (Some(text), _) => text,
        (_, Some(text)) => text,
        _ => "a panic without a message",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn panic_becomes_fatal_error() {
        let result = run(|| -> sql::Result<()> { panic!("seven is {}", 7) });
        let Err(Failure::Fatal(error)) = result else { panic!("not fatal") };
        assert_eq!(error.sqlstate, "XX000");
        assert_eq!(error.message, "internal error: seven is 7");
        assert!(matches!(
            run(|| Err::<(), _>(Error::new("22012", "division by zero"))),
            Err(Failure::Statement(_))
        ));
    }
}
