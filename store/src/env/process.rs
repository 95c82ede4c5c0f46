//! Monotonic clock, threads and configuration files of the process.
//!
//! Every other module uses these functions instead of the standard library's; clippy rejects the
//! latter (`clippy.toml`). Files of a database are accessed through [`Env`](super::Env) only.

#![allow(clippy::disallowed_methods, reason = "this module is what the other ones use instead")]

use std::path::Path;
use std::thread::{Builder, JoinHandle};
use std::time::{Duration, Instant};

/// Returns the present time of the monotonic clock.
#[inline]
pub fn monotonic_now() -> Instant {
    Instant::now()
}

/// Blocks the calling thread.
pub fn sleep(duration: Duration) {
    std::thread::sleep(duration);
}

/// Starts a thread with a name.
///
/// # Errors
///
/// The system has no more threads or no memory for one.
pub fn spawn_thread<T: Send + 'static>(
    name: impl Into<String>,
    run: impl FnOnce() -> T + Send + 'static,
) -> std::io::Result<JoinHandle<T>> {
    Builder::new().name(name.into()).spawn(run)
}

/// Returns the contents of a text file outside of databases: configuration, `/proc`.
///
/// # Errors
///
/// Those of the system, or the text is not UTF-8.
pub fn read_text(path: impl AsRef<Path>) -> std::io::Result<String> {
    std::fs::read_to_string(path)
}
