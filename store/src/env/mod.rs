//! The outside world: files, clock, randomness. Everything that could make two runs differ comes in
//! here, so that tests can fail a write on purpose or choose the time.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use crate::error::Result;

/// Files, clock and randomness.
pub trait Env: Send + Sync {
    /// Returns microseconds since 1970-01-01 UTC.
    fn now_micros(&self) -> i64;

    /// Creates a file for appending; an existing one is emptied.
    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>>;

    /// Opens a file for reading.
    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>>;

    /// Renames a file, replacing the target, and makes the rename durable.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Returns the names in a directory, sorted; an empty list if it does not exist.
    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>>;

    /// Creates a directory and its parents.
    fn create_directory(&self, path: &Path) -> Result<()>;

    /// Removes a directory and all in it.
    fn remove_directory(&self, path: &Path) -> Result<()>;

    /// Makes creations and removals in a directory durable.
    fn sync_directory(&self, path: &Path) -> Result<()>;

    /// Takes the lock file of a data directory; held until the guard is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`](crate::Error::InUse) if another process holds it.
    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>>;
}

/// A file being written.
pub trait AppendFile: Send {
    /// Appends bytes.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Returns when all appended bytes are on disk (fdatasync).
    fn sync(&mut self) -> Result<()>;
}

/// A file being read.
pub trait ReadFile: Send + Sync {
    /// Fills `buffer` from `offset`.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;

    /// Returns the length of the file.
    fn byte_count(&self) -> Result<u64>;
}

/// The operating system.
#[derive(Debug, Default)]
pub struct RealEnv {}

impl Env for RealEnv {
    fn now_micros(&self) -> i64 {
        todo!("store/env")
    }
    fn create(&self, _path: &Path) -> Result<Box<dyn AppendFile>> {
        todo!("store/env")
    }
    fn open(&self, _path: &Path) -> Result<Arc<dyn ReadFile>> {
        todo!("store/env")
    }
    fn rename(&self, _from: &Path, _to: &Path) -> Result<()> {
        todo!("store/env")
    }
    fn remove(&self, _path: &Path) -> Result<()> {
        todo!("store/env")
    }
    fn list(&self, _directory: &Path) -> Result<Vec<PathBuf>> {
        todo!("store/env")
    }
    fn create_directory(&self, _path: &Path) -> Result<()> {
        todo!("store/env")
    }
    fn remove_directory(&self, _path: &Path) -> Result<()> {
        todo!("store/env")
    }
    fn sync_directory(&self, _path: &Path) -> Result<()> {
        todo!("store/env")
    }
    fn lock(&self, _path: &Path) -> Result<Box<dyn Send + Sync>> {
        todo!("store/env")
    }
}
