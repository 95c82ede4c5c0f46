//! Environment of a store: files, clock, randomness. All sources of nondeterminism are behind
//! this interface, so that tests can inject failures or set the time.

#![allow(clippy::disallowed_methods, reason = "this module accesses the system for others")]

use std::fs::{DirBuilder, File, Permissions, TryLockError};
use std::io::{ErrorKind, Read, Write};
use std::num::NonZeroU64;
use std::ops::Range;
use std::os::unix::fs::{DirBuilderExt, FileExt, OpenOptionsExt, PermissionsExt};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use rustix::fs::Advice;

use crate::descriptor::DatabaseId;
use crate::env::open_files::{CachedFile, OpenFiles};
use crate::error::{Error, Result};

mod open_files;
pub mod process;
#[doc(hidden)]
pub mod fault;
#[doc(hidden)]
pub mod slow;

/// Part of a disk that temporary files leave free: a 20th of it, at most so many bytes.
const RESERVE_PART: u64 = 20;
const RESERVE_BYTES_MAX: u64 = 1 << 30;

/// Size and free space of a disk, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DiskSpace {
    /// Total size.
    pub total_bytes: u64,
    /// Bytes that this process may still write.
    pub free_bytes: u64,
}

/// Returns an error if the disk of a directory has no more free space than temporary files must
/// leave for commits, so that only the statement fails that would have filled it.
///
/// # Errors
///
/// [`Error::Io`] whose kind is that of a full disk.
pub fn check_reserve(env: &dyn Env, directory: &Path) -> Result<()> {
    let Some(DiskSpace { total_bytes, free_bytes }) = env.disk_space(directory) else {
        return Ok(());
    };
    let reserve = reserve_bytes(total_bytes);
    if free_bytes > reserve {
        return Ok(());
    }
    let message = format!(
        "{} MiB of disk space are free; temporary files must leave {} MiB for commits",
        free_bytes >> 20,
        reserve >> 20
    );
    Err(Error::io(directory, std::io::Error::new(ErrorKind::StorageFull, message)))
}

/// Returns an error if the disk of a directory has no space for `bytes` more beside the reserve of
/// [`check_reserve`].
///
/// # Errors
///
/// [`Error::Io`] whose kind is that of a full disk.
pub(crate) fn check_space(env: &dyn Env, directory: &Path, bytes: u64) -> Result<()> {
    check_reserve(env, directory)?;
    let Some(DiskSpace { total_bytes, free_bytes }) = env.disk_space(directory) else {
        return Ok(());
    };
    let usable = free_bytes.saturating_sub(reserve_bytes(total_bytes));
    if bytes <= usable {
        return Ok(());
    }
    let message = format!(
        "a copy of the table needs {} MiB of disk space; {} MiB are usable",
        bytes.div_ceil(1 << 20),
        usable >> 20
    );
    Err(Error::io(directory, std::io::Error::new(ErrorKind::StorageFull, message)))
}

fn reserve_bytes(total_bytes: u64) -> u64 {
    (total_bytes / RESERVE_PART).min(RESERVE_BYTES_MAX)
}

/// Files, clock and randomness.
pub trait Env: Send + Sync {
    /// Returns microseconds since 1970-01-01 UTC.
    fn now_micros(&self) -> i64;

    /// Returns the CPU time of the calling thread, in microseconds.
    fn thread_micros(&self) -> u64 {
        let time = rustix::time::clock_gettime(rustix::time::ClockId::ThreadCPUTime);
        time.tv_sec as u64 * 1_000_000 + time.tv_nsec as u64 / 1_000
    }

    /// Creates a file for appending; an existing one is emptied.
    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>>;

    /// Creates a file for appending that need not survive a crash; an existing one is emptied. A
    /// process may have any number of them, because their descriptors are cached.
    fn create_temporary(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        self.create(path)
    }

    /// Creates a file for positional writes; an existing one is emptied.
    fn create_segment(&self, path: &Path) -> Result<Arc<dyn SegmentFile>>;

    /// Opens a file for reading.
    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>>;

    /// Renames a file, replacing the target, and makes the rename durable.
    fn rename(&self, from: &Path, to: &Path) -> Result<()>;

    /// Gives a file that is complete a second name, which must be free: by a hard link, or by a
    /// synced copy if the system cannot link. Durable once the directory is synced.
    fn link(&self, from: &Path, to: &Path) -> Result<()>;

    /// Removes a file.
    fn remove(&self, path: &Path) -> Result<()>;

    /// Returns the names in a directory, sorted; an empty list if it does not exist.
    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>>;

    /// Creates a directory and its parents, and makes their names durable. Does nothing if it
    /// exists.
    fn create_directory(&self, path: &Path) -> Result<()>;

    /// Removes a directory with its content.
    fn remove_directory(&self, path: &Path) -> Result<()>;

    /// Makes creations and removals in a directory durable.
    fn sync_directory(&self, path: &Path) -> Result<()>;

    /// Returns a globally unique id.
    fn new_id(&self) -> Result<DatabaseId>;

    /// Restricts access to a data directory, which may be partly created, to its owner.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] if others may have changed its content.
    fn protect_directory(&self, _path: &Path) -> Result<()> {
        Ok(())
    }

    /// Returns the size of the disk that a directory is on; `None` if it is not known.
    fn disk_space(&self, _directory: &Path) -> Option<DiskSpace> {
        None
    }

    /// Takes the lock file of a data directory; held until the guard is dropped.
    ///
    /// # Errors
    ///
    /// [`Error::InUse`] if another process holds it.
    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>>;
}

/// A file being written.
pub trait AppendFile: Send {
    /// Appends bytes.
    fn append(&mut self, bytes: &[u8]) -> Result<()>;

    /// Returns when all appended bytes are on disk (fdatasync).
    fn sync(&mut self) -> Result<()>;
}

/// A segment of the log being written: one thread may write while another one waits for the disk.
pub trait SegmentFile: Send + Sync {
    /// Writes bytes at an offset, overwriting or extending the file.
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Returns when all bytes written before the call are on disk (fdatasync).
    ///
    /// # Errors
    ///
    /// Bytes written since the previous sync may then never reach the disk, even if a later call
    /// succeeds.
    fn sync(&self) -> Result<()>;
}

/// A file being read.
pub trait ReadFile: Send + Sync {
    /// Fills `buffer` from `offset`.
    ///
    /// # Errors
    ///
    /// [`Error::Corrupt`] if the file is shorter.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()>;

    /// Returns the length of the file.
    fn byte_count(&self) -> Result<u64>;

    /// Advises that reads are not sequential, except within large requests: no read-ahead is
    /// needed.
    fn expect_scattered_reads(&self) {}

    /// Advises that a range will be read soon, so that it can be prefetched.
    fn expect_reads(&self, _bytes: Range<u64>) {}
}

/// Permissions of new directories.
const DIRECTORY_MODE: u32 = 0o700;
/// Permissions of new files.
const FILE_MODE: u32 = 0o600;
/// Permission bits of others than the owner.
const OTHERS: u32 = 0o077;
/// Write permission bits of others than the owner.
const OTHERS_WRITE: u32 = 0o022;

/// Environment of the operating system.
#[derive(Debug)]
pub struct RealEnv {
    files: Arc<OpenFiles>,
}

impl RealEnv {
    /// Returns an environment that holds at most `max` descriptors of store files and temporary
    /// files open; the default is half of the process's limit.
    pub fn with_descriptors(max: usize) -> RealEnv {
        RealEnv { files: OpenFiles::new(max) }
    }
}

impl Default for RealEnv {
    fn default() -> RealEnv {
        RealEnv { files: OpenFiles::of_process() }
    }
}

struct RealAppend {
    file: File,
    path: PathBuf,
}

struct RealSegment {
    file: File,
    path: PathBuf,
}

struct RealTemporary {
    file: Arc<CachedFile>,
    byte_count: u64,
}

impl AppendFile for RealAppend {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.file.write_all(bytes).map_err(|source| Error::io(&self.path, source))
    }

    fn sync(&mut self) -> Result<()> {
        self.file.sync_data().map_err(|source| Error::io(&self.path, source))
    }
}

impl SegmentFile for RealSegment {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.file.write_all_at(bytes, offset).map_err(|source| Error::io(&self.path, source))
    }

    fn sync(&self) -> Result<()> {
        self.file.sync_data().map_err(|source| Error::io(&self.path, source))
    }
}

impl AppendFile for RealTemporary {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        let written = self.file.descriptor()?.write_all_at(bytes, self.byte_count);
        written.map_err(|source| Error::io(self.file.path(), source))?;
        self.byte_count += bytes.len() as u64;
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        let synced = self.file.descriptor()?.sync_data();
        synced.map_err(|source| Error::io(self.file.path(), source))
    }
}

impl ReadFile for CachedFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        self.descriptor()?.read_exact_at(buffer, offset).map_err(|source| {
            if source.kind() == ErrorKind::UnexpectedEof {
                let detail = format!("unexpected end of file: expected {} bytes", buffer.len());
                return Error::corrupt(self.path(), offset, detail);
            }
            Error::io(self.path(), source)
        })
    }

    fn byte_count(&self) -> Result<u64> {
        let metadata = self.descriptor()?.metadata();
        Ok(metadata.map_err(|source| Error::io(self.path(), source))?.len())
    }

    fn expect_scattered_reads(&self) {
        // Advisory: an error of the file recurs in the first read.
        let _ = CachedFile::expect_scattered_reads(self);
    }

    fn expect_reads(&self, bytes: Range<u64>) {
        let length = NonZeroU64::new(bytes.end.saturating_sub(bytes.start));
        if length.is_some()
            && let Ok(file) = self.descriptor()
        {
            // Advisory, as before.
            let _ = rustix::fs::fadvise(&*file, bytes.start, length, Advice::WillNeed);
        }
    }
}

impl Env for RealEnv {
    fn now_micros(&self) -> i64 {
        let now = SystemTime::now();
        match now.duration_since(UNIX_EPOCH) {
            Ok(after) => i64::try_from(after.as_micros()).unwrap_or(i64::MAX),
            Err(before) => i64::try_from(before.duration().as_micros()).map_or(i64::MIN, |t| -t),
        }
    }

    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let file = create(path)?;
        Ok(Box::new(RealAppend { file, path: path.to_owned() }))
    }

    fn create_temporary(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let file = self.files.create_temporary(path)?;
        Ok(Box::new(RealTemporary { file, byte_count: 0 }))
    }

    fn create_segment(&self, path: &Path) -> Result<Arc<dyn SegmentFile>> {
        let file = create(path)?;
        Ok(Arc::new(RealSegment { file, path: path.to_owned() }))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        Ok(self.files.open(path)?)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        std::fs::rename(from, to).map_err(|source| Error::io(from, source))?;
        to.parent().map_or(Ok(()), |directory| self.sync_directory(directory))
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        match std::fs::hard_link(from, to) {
            Err(source) if cannot_link(&source) => copy(from, to),
            linked => linked.map_err(|source| Error::io(to, source)),
        }
    }

    fn disk_space(&self, directory: &Path) -> Option<DiskSpace> {
        let found = rustix::fs::statvfs(directory).ok()?;
        let bytes = |blocks: u64| blocks.saturating_mul(found.f_frsize);
        let (total_bytes, free_bytes) = (bytes(found.f_blocks), bytes(found.f_bavail));
        Some(DiskSpace { total_bytes, free_bytes })
    }

    fn remove(&self, path: &Path) -> Result<()> {
        std::fs::remove_file(path).map_err(|source| Error::io(path, source))
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let entries = match std::fs::read_dir(directory) {
            Ok(entries) => entries,
            Err(source) if source.kind() == ErrorKind::NotFound => return Ok(Vec::new()),
            Err(source) => return Err(Error::io(directory, source)),
        };
        let mut names = Vec::new();
        for entry in entries {
            let entry = entry.map_err(|source| Error::io(directory, source))?;
            names.push(PathBuf::from(entry.file_name()));
        }
        names.sort();
        Ok(names)
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        if path.as_os_str().is_empty() || path.is_dir() {
            return Ok(());
        }
        let parent = path.parent().unwrap_or(Path::new(""));
        self.create_directory(parent)?;
        match DirBuilder::new().mode(DIRECTORY_MODE).create(path) {
            // Created by another process meanwhile.
            Err(source) if source.kind() == ErrorKind::AlreadyExists => {}
            made => made.map_err(|source| Error::io(path, source))?,
        }
        self.sync_directory(parent).inspect_err(|_| {
            // So that a retry creates it again, and makes its name durable.
            let _ = std::fs::remove_dir(path);
        })
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        std::fs::remove_dir_all(path).map_err(|source| Error::io(path, source))
    }

    fn sync_directory(&self, path: &Path) -> Result<()> {
        // The empty path is the parent of a plain name: the working directory.
        let path = if path.as_os_str().is_empty() { Path::new(".") } else { path };
        let directory = File::open(path).map_err(|source| Error::io(path, source))?;
        directory.sync_all().map_err(|source| Error::io(path, source))
    }

    fn new_id(&self) -> Result<DatabaseId> {
        let path = Path::new("/dev/urandom");
        let mut bytes = [0; 16];
        File::open(path)
            .and_then(|mut file| file.read_exact(&mut bytes))
            .map_err(|source| Error::io(path, source))?;
        Ok(DatabaseId(u128::from_le_bytes(bytes)))
    }

    fn protect_directory(&self, path: &Path) -> Result<()> {
        let failed = |source| Error::io(path, source);
        let mode = std::fs::metadata(path).map_err(failed)?.permissions().mode();
        if mode & OTHERS == 0 {
            return Ok(());
        }
        let is_empty = std::fs::read_dir(path).map_err(failed)?.next().is_none();
        if mode & OTHERS_WRITE != 0 && !is_empty {
            return Err(Error::InvalidRequest(format!(
                "data directory \"{}\" has permissions {:04o}: other users may have modified it; \
                 check its contents and set its permissions to 0700",
                path.display(),
                mode & 0o7777
            )));
        }
        // Directories created by older versions have other permissions.
        std::fs::set_permissions(path, Permissions::from_mode(DIRECTORY_MODE)).map_err(failed)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        let directory = path.parent().unwrap_or(path);
        let in_use = || Error::InUse { path: directory.to_owned() };
        let file = File::options()
            .create(true)
            .truncate(false)
            .write(true)
            .mode(FILE_MODE)
            .open(path)
            .map_err(|source| Error::io(path, source))?;
        match file.try_lock() {
            Ok(()) => {}
            Err(TryLockError::WouldBlock) => return Err(in_use()),
            Err(TryLockError::Error(source)) => return Err(Error::io(path, source)),
        }
        // The directory as well, because the file may be removed and re-created. Not all file
        // systems can lock directories.
        let opened = File::open(directory).map_err(|source| Error::io(directory, source))?;
        match opened.try_lock() {
            Err(TryLockError::WouldBlock) => Err(in_use()),
            Ok(()) | Err(TryLockError::Error(_)) => Ok(Box::new((file, opened))),
        }
    }
}

/// Creates a file that only its owner may read; an existing one is emptied.
fn create(path: &Path) -> Result<File> {
    let mut options = File::options();
    let opened = options.write(true).create(true).truncate(true).mode(FILE_MODE).open(path);
    opened.map_err(|source| Error::io(path, source))
}

/// Returns whether a link failed because of the locations of the two names.
fn cannot_link(error: &std::io::Error) -> bool {
    let kinds = [ErrorKind::CrossesDevices, ErrorKind::Unsupported, ErrorKind::TooManyLinks];
    // Some file systems without links report them as not permitted.
    kinds.contains(&error.kind()) || error.kind() == ErrorKind::PermissionDenied
}

fn copy(from: &Path, to: &Path) -> Result<()> {
    let mut source = File::open(from).map_err(|source| Error::io(from, source))?;
    let new = File::options().write(true).create_new(true).mode(FILE_MODE).open(to);
    let mut target = new.map_err(|source| Error::io(to, source))?;
    std::io::copy(&mut source, &mut target)
        .and_then(|_| target.sync_data())
        .map_err(|source| Error::io(to, source))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn links_and_copies_survive_source_removal() {
        let directory = tempfile::tempdir().unwrap();
        let env = RealEnv::default();
        let inner = directory.path().join("x/y");
        env.create_directory(&inner).unwrap();
        env.create_directory(&inner).unwrap();
        let (path, linked, copied) = (inner.join("a"), inner.join("b"), inner.join("c"));
        env.create(&path).unwrap().append(b"hello").unwrap();
        env.link(&path, &linked).unwrap();
        copy(&path, &copied).unwrap();
        assert!(env.link(&path, &linked).is_err(), "an existing file was replaced");
        assert!(copy(&path, &copied).is_err(), "an existing file was replaced");
        env.remove(&path).unwrap();
        for kept in [linked, copied] {
            assert_eq!(std::fs::read(kept).unwrap(), b"hello");
        }
    }

    #[test]
    fn appended_bytes_are_read_back() {
        let directory = tempfile::tempdir().unwrap();
        let env = RealEnv::default();
        let path = directory.path().join("a");
        let mut file = env.create(&path).unwrap();
        file.append(b"hello ").unwrap();
        file.append(b"world").unwrap();
        file.sync().unwrap();
        env.rename(&path, &directory.path().join("b")).unwrap();
        assert_eq!(env.list(directory.path()).unwrap(), [PathBuf::from("b")]);
        let file = env.open(&directory.path().join("b")).unwrap();
        let mut bytes = [0; 5];
        file.read_at(6, &mut bytes).unwrap();
        assert_eq!(&bytes, b"world");
        assert_eq!(file.byte_count().unwrap(), 11);
        assert!(matches!(file.read_at(7, &mut bytes), Err(Error::Corrupt { offset: 7, .. })));
        assert!(env.list(&directory.path().join("none")).unwrap().is_empty());
    }

    #[test]
    fn directory_lock_is_exclusive() {
        let directory = tempfile::tempdir().unwrap();
        let env = RealEnv::default();
        let path = directory.path().join("LOCK");
        let guard = env.lock(&path).unwrap();
        match env.lock(&path) {
            Err(Error::InUse { path }) => assert_eq!(path, directory.path()),
            _ => panic!("locked twice"),
        }
        drop(guard);
        env.lock(&path).unwrap();
    }
}
