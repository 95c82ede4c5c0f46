//! Cache of file descriptors: files that readers and temporary files hold open beyond the limit of
//! the system.
//!
//! A [`CachedFile`] is a file that is open by name; its descriptor is opened at the first access
//! and may be closed between two accesses, when another file needs one. So the number of store
//! files, and of the spill files of a statement, does not depend on `ulimit -n`, and connections
//! descriptors are left for connections. PostgreSQL (`fd.c`, virtual file descriptors) and
//! RocksDB (`max_open_files`) do the same.
//!
//! The victim is chosen by the clock algorithm: a file that was accessed since the hand last passed
//! is skipped once. An access to an open file takes no lock.
//!
//! Files whose writes must reach the disk (log, manifest, new store files) are not cached: an error
//! that the system finds while it writes back a closed descriptor could be lost.
//!
//! # Invariants
//!
//! 1. The clock holds each file with an open descriptor exactly once; beyond `max` one is closed
//!    for each that is opened.
//! 2. A descriptor is closed only if the file's name still refers to it: it can be opened again.
//!
//! `Clock::check` asserts 1 in debug builds; `OpenFiles::evict` checks 2.
//!
//! The number of descriptors may exceed `max` by the number of accesses in progress, and by the
//! files that no longer have a name.
//!
//! # Out of scope
//!
//! Lifetime of a file's name: its owner removes it after the last reader
//! ([`StoreFile`](crate::file::StoreFile), [`Region`](crate::region::Region)).

#![allow(clippy::disallowed_methods, reason = "this module accesses the system for others")]

use std::collections::VecDeque;
use std::fs::File;
use std::os::unix::fs::{MetadataExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

use arc_swap::ArcSwapOption;
use parking_lot::Mutex;
use rustix::fs::Advice;
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};

use crate::env::FILE_MODE;
use crate::error::{Error, Result};

/// Share of the process' descriptors that cached files may use: the others are left to connections,
/// the log and files being written.
const SHARE: u64 = 2;
/// Fewest descriptors that are cached.
const MAX_AT_LEAST: u64 = 16;
/// Most descriptors that are cached: each takes some memory of the system.
const MAX_AT_MOST: u64 = 65_536;

/// Open files of an environment.
#[derive(Debug)]
pub(super) struct OpenFiles {
    max: usize,
    clock: Mutex<Clock>,
}

/// Files with an open descriptor, starting at the clock hand.
#[derive(Debug, Default)]
struct Clock {
    files: VecDeque<Weak<CachedFile>>,
    /// Entries of files that were dropped. Below zero while a file whose entry is removed already
    /// is being dropped.
    dropped: isize,
}

/// File that is open by name.
#[derive(Debug)]
pub(super) struct CachedFile {
    this: Weak<CachedFile>,
    files: Arc<OpenFiles>,
    path: PathBuf,
    access: FileAccess,
    descriptor: ArcSwapOption<File>,
    /// Accessed since the hand of the clock last passed.
    was_accessed: AtomicBool,
    /// True if reads are not sequential; the system is advised at each opening.
    is_scattered: AtomicBool,
}

/// Kind of access for which a file is opened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum FileAccess {
    Read,
    Write,
}

impl OpenFiles {
    /// Returns a cache for half of the descriptors that the process may have at present.
    pub(super) fn of_process() -> Arc<OpenFiles> {
        let limit = getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX);
        OpenFiles::new((limit / SHARE).clamp(MAX_AT_LEAST, MAX_AT_MOST) as usize)
    }

    /// Returns a cache of `max` descriptors.
    pub(super) fn new(max: usize) -> Arc<OpenFiles> {
        Arc::new(OpenFiles { max, clock: Mutex::default() })
    }

    /// Opens a file for reading.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub(super) fn open(self: &Arc<OpenFiles>, path: &Path) -> Result<Arc<CachedFile>> {
        let file = self.cached(path, FileAccess::Read);
        file.descriptor()?;
        Ok(file)
    }

    /// Creates a file for writing, or empties it, that need not survive a crash.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub(super) fn create_temporary(self: &Arc<OpenFiles>, path: &Path) -> Result<Arc<CachedFile>> {
        let mut options = File::options();
        options.write(true).create(true).truncate(true).mode(FILE_MODE);
        let created = self.open_with(&options, path)?;
        let file = self.cached(path, FileAccess::Write);
        file.insert(created);
        Ok(file)
    }

    fn cached(self: &Arc<OpenFiles>, path: &Path, access: FileAccess) -> Arc<CachedFile> {
        Arc::new_cyclic(|this| CachedFile {
            this: Weak::clone(this),
            files: Arc::clone(self),
            path: path.to_owned(),
            access,
            descriptor: ArcSwapOption::empty(),
            was_accessed: AtomicBool::new(true),
            is_scattered: AtomicBool::new(false),
        })
    }

    /// Opens a file; if the process has no descriptor left, a cached one is closed for it.
    fn open_with(&self, options: &std::fs::OpenOptions, path: &Path) -> Result<File> {
        loop {
            match options.open(path) {
                Err(error) if is_out_of_descriptors(&error) && self.evict() => {}
                opened => return opened.map_err(|source| Error::io(path, source)),
            }
        }
    }

    /// Closes the descriptor of a file that was not accessed recently; returns whether there is
    /// one.
    fn evict(&self) -> bool {
        // Dropped after the lock: the last reference to a file takes it again.
        let mut examined = Vec::new();
        let mut clock = self.clock.lock();
        // Each file passes the hand twice at most: accessed, then not.
        for _ in 0..2 * clock.files.len() {
            let Some(candidate) = clock.files.pop_front() else { break };
            let Some(file) = candidate.upgrade() else {
                clock.dropped -= 1;
                continue;
            };
            let is_victim = !file.was_accessed.swap(false, Ordering::Relaxed) && file.has_name();
            if is_victim {
                file.descriptor.store(None);
            } else {
                clock.files.push_back(candidate);
            }
            examined.push(file);
            if is_victim {
                return true;
            }
        }
        false
    }
}

impl Clock {
    fn open_count(&self) -> usize {
        usize::try_from(self.files.len() as isize - self.dropped).unwrap_or(0)
    }

    /// Asserts, in debug builds, that the file that was just added is there once, and the number
    /// of dropped files.
    fn check(&self) {
        if cfg!(debug_assertions)
            && let Some(last) = self.files.back()
        {
            let same = self.files.iter().filter(|file| file.ptr_eq(last)).count();
            assert_eq!(same, 1, "a file is in the clock twice");
            assert!(self.dropped <= self.files.len() as isize, "more were dropped than there are");
        }
    }

    /// Removes the entries of dropped files once they are the greater part.
    fn compact(&mut self) {
        if self.dropped > self.files.len() as isize / 2 {
            let before = self.files.len();
            self.files.retain(|file| file.strong_count() > 0);
            self.dropped -= (before - self.files.len()) as isize;
        }
    }
}

impl CachedFile {
    /// Returns the path with which the file was opened.
    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the open file; opens it if it was closed.
    ///
    /// # Errors
    ///
    /// [`Error::Io`].
    pub(super) fn descriptor(&self) -> Result<Arc<File>> {
        if let Some(file) = self.descriptor.load_full() {
            self.was_accessed.store(true, Ordering::Relaxed);
            return Ok(file);
        }
        let mut options = File::options();
        match self.access {
            FileAccess::Read => options.read(true),
            FileAccess::Write => options.write(true),
        };
        let file = self.files.open_with(&options, &self.path)?;
        if self.is_scattered.load(Ordering::Relaxed) {
            advise_scattered(&file);
        }
        Ok(self.insert(file))
    }

    /// Advises the system that reads will not be sequential.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if the file cannot be opened.
    pub(super) fn expect_scattered_reads(&self) -> Result<()> {
        self.is_scattered.store(true, Ordering::Relaxed);
        advise_scattered(&*self.descriptor()?);
        Ok(())
    }

    /// Caches a descriptor, unless another thread was first; returns the cached one.
    fn insert(&self, file: File) -> Arc<File> {
        let file = Arc::new(file);
        let mut clock = self.files.clock.lock();
        if let Some(first) = self.descriptor.load_full() {
            return first;
        }
        self.descriptor.store(Some(Arc::clone(&file)));
        self.was_accessed.store(true, Ordering::Relaxed);
        clock.files.push_back(Weak::clone(&self.this));
        clock.check();
        let is_full = clock.open_count() > self.files.max;
        drop(clock);
        if is_full {
            self.files.evict();
        }
        file
    }

    /// Returns whether the name still refers to the open file.
    fn has_name(&self) -> bool {
        let Some(file) = self.descriptor.load_full() else { return true };
        match (file.metadata(), std::fs::metadata(&self.path)) {
            (Ok(open), Ok(named)) => (open.dev(), open.ino()) == (named.dev(), named.ino()),
            _ => false,
        }
    }
}

impl Drop for CachedFile {
    fn drop(&mut self) {
        if self.descriptor.load().is_some() {
            let mut clock = self.files.clock.lock();
            clock.dropped += 1;
            clock.compact();
        }
    }
}

fn is_out_of_descriptors(error: &std::io::Error) -> bool {
    let errno = error.raw_os_error().map(Errno::from_raw_os_error);
    errno.is_some_and(|errno| [Errno::MFILE, Errno::NFILE].contains(&errno))
}

fn advise_scattered(file: &File) {
    // Advisory: without it, reads only cost more.
    let _ = rustix::fs::fadvise(file, 0, None, Advice::Random);
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::FileExt;

    use super::*;

    fn open_descriptors(files: &OpenFiles) -> usize {
        let clock = files.clock.lock();
        let live = clock.files.iter().filter_map(Weak::upgrade);
        let open = live.filter(|file| file.descriptor.load().is_some()).count();
        assert_eq!(clock.open_count(), open, "invariant 1");
        open
    }

    fn read(file: &CachedFile) -> u8 {
        let mut byte = [0];
        file.descriptor().unwrap().read_exact_at(&mut byte, 0).unwrap();
        byte[0]
    }

    #[test]
    fn open_files_may_exceed_descriptor_limit() {
        let directory = tempfile::tempdir().unwrap();
        let files = OpenFiles::new(4);
        let path = |number: u8| directory.path().join(number.to_string());
        let written: Vec<_> = (0..100)
            .map(|number| {
                let file = files.create_temporary(&path(number)).unwrap();
                file.descriptor().unwrap().write_all_at(&[number], 0).unwrap();
                file
            })
            .collect();
        // Written again through a reopened descriptor, which must not truncate the file.
        for (number, file) in (0..100).zip(&written) {
            file.descriptor().unwrap().write_all_at(&[number], 1).unwrap();
        }
        assert_eq!(open_descriptors(&files), 4);
        let readers: Vec<_> = (0..100).map(|number| files.open(&path(number)).unwrap()).collect();
        for round in 0..3 {
            for (number, file) in (0..100).zip(&readers) {
                assert_eq!(read(file), number, "in round {round}");
            }
            assert_eq!(open_descriptors(&files), 4);
        }
        drop((written, readers));
        assert_eq!(open_descriptors(&files), 0);
        assert!(files.clock.lock().files.len() <= 1, "entries of dropped files are removed");
    }

    #[test]
    fn unlinked_file_keeps_its_descriptor() {
        let directory = tempfile::tempdir().unwrap();
        let files = OpenFiles::new(2);
        let path = |number: u8| directory.path().join(number.to_string());
        (0..5).for_each(|number| std::fs::write(path(number), [number]).unwrap());
        let removed = files.open(&path(0)).unwrap();
        let replaced = files.open(&path(1)).unwrap();
        std::fs::remove_file(path(0)).unwrap();
        std::fs::rename(path(2), path(1)).unwrap();
        assert_eq!(read(&removed), 0);
        for number in [3, 4, 3, 4] {
            assert_eq!(read(&files.open(&path(number)).unwrap()), number);
        }
        assert_eq!(read(&removed), 0);
        assert_eq!(read(&replaced), 1);
        assert_eq!(read(&files.open(&path(1)).unwrap()), 2);
    }

    #[test]
    fn threads_share_descriptor_pool() {
        let directory = tempfile::tempdir().unwrap();
        let files = OpenFiles::new(2);
        let path = |number: u8| directory.path().join(number.to_string());
        (0..16).for_each(|number| std::fs::write(path(number), [number]).unwrap());
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let (files, path) = (&files, &path);
                scope.spawn(move || {
                    for turn in 0..500_u16 {
                        let number = (turn as u8).wrapping_mul(5 + thread * 2) % 16;
                        assert_eq!(read(&files.open(&path(number)).unwrap()), number);
                    }
                });
            }
        });
        assert_eq!(open_descriptors(&files), 0);
    }
}
