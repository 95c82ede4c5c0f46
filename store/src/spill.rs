//! Spill files of staged cells and row locks of open transactions.
//!
//! They are numbered files in a separate directory, referenced only by their transaction, and
//! removed when it drops them. No manifest lists them: the next opening removes leftovers of a
//! crash.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::cache::{BlockCache, FamilyCache};
use crate::cell::KeyParts;
use crate::descriptor::{BloomFilter, Compression, DataBlockEncoding, FamilyDescriptor, FileId};
use crate::env::{Env, check_reserve};
use crate::error::Result;
use crate::file::{FileWriter, StoreFile};
use crate::run::LiveFile;
use crate::scan::merge::Cursor;

/// The directory, within the data directory.
pub(crate) const NAME: &str = "staged";
/// Extension of the file names.
const SUFFIX: &str = "run";
/// Bytes of the blocks of staged runs.
const BLOCK_BYTES: u32 = 32 << 10;
/// Bytes of cells after which the free disk space is checked again.
const LOOK_BYTES: usize = 16 << 20;

/// Spill directory of a store.
pub(crate) struct SpillDirectory {
    env: Arc<dyn Env>,
    directory: PathBuf,
    cache: Arc<FamilyCache>,
    next: AtomicU64,
}

impl SpillDirectory {
    /// Returns the spill directory of a store. It is created on first use.
    pub(crate) fn new(
        env: Arc<dyn Env>,
        directory: PathBuf,
        cache: &Arc<BlockCache>,
    ) -> SpillDirectory {
        let cache = Arc::new(FamilyCache::new(Arc::clone(cache)));
        SpillDirectory { env, directory, cache, next: AtomicU64::new(1) }
    }

    /// Returns the environment of its files.
    pub(crate) fn env(&self) -> &Arc<dyn Env> {
        &self.env
    }

    /// Returns the id and path of a new file.
    ///
    /// # Errors
    ///
    /// Errors of creating the directory.
    pub(crate) fn name_file(&self) -> Result<(FileId, PathBuf)> {
        self.env.create_directory(&self.directory)?;
        let number = self.next.fetch_add(1, Ordering::Relaxed);
        Ok((FileId(number), self.directory.join(format!("{number}.{SUFFIX}"))))
    }

    /// Writes the cells of a family for which `wanted` is `true` to a file. `None` if there are
    /// none. The file is removed with its last reference.
    ///
    /// # Errors
    ///
    /// Errors of reading and writing; that of a full disk when little space is left. The file is
    /// removed.
    pub(crate) fn write(
        &self,
        family: &FamilyDescriptor,
        cells: &mut impl Cursor,
        mut wanted: impl FnMut(&KeyParts<'_>) -> Result<bool>,
    ) -> Result<Option<LiveFile>> {
        let (id, path) = self.name_file()?;
        check_reserve(&*self.env, &self.directory)?;
        // Written once, usually read once, and then removed.
        let family = FamilyDescriptor {
            data_block_encoding: DataBlockEncoding::Rows,
            compression: Compression::Lz4,
            bloom_filter: BloomFilter::Row,
            block_bytes: BLOCK_BYTES,
            ..family.clone()
        };
        let mut writer = FileWriter::new(Arc::clone(&self.env), &path, &family);
        let mut unseen_bytes = 0;
        let mut write = || {
            while let Some(key) = cells.key() {
                if let Some(parts) = KeyParts::decode(key)
                    && wanted(&parts)?
                {
                    writer.add(key, cells.value())?;
                    unseen_bytes += key.len() + cells.value().len();
                    if unseen_bytes > LOOK_BYTES {
                        unseen_bytes = 0;
                        check_reserve(&*self.env, &self.directory)?;
                    }
                }
                cells.advance()?;
            }
            Ok(())
        };
        let written = write().and_then(|()| writer.finish());
        let opened = written.and_then(|properties| {
            let open = |_| StoreFile::open(Arc::clone(&self.env), &path, Arc::clone(&self.cache));
            properties.map(open).transpose()
        });
        match opened {
            Ok(Some(file)) => {
                file.mark_obsolete();
                let created_micros = self.env.now_micros();
                Ok(Some(LiveFile { id, created_micros, file: Arc::new(file) }))
            }
            Ok(None) => Ok(None),
            Err(error) => {
                // It may not exist. If the removal fails, the next opening removes it.
                let _ = self.env.remove(&path);
                Err(error)
            }
        }
    }
}

/// Removes the files of transactions before a crash.
///
/// # Errors
///
/// [`Error::Io`](crate::Error::Io).
pub(crate) fn clear(env: &dyn Env, directory: &Path) -> Result<()> {
    for name in env.list(directory)? {
        let number = name.file_stem().and_then(|stem| stem.to_str()?.parse::<u64>().ok());
        match number.filter(|_| name.extension().is_some_and(|end| end == SUFFIX)) {
            Some(_) => env.remove(&directory.join(name))?,
            None => {
                let name = name.display();
                tracing::warn!(%name, "ignoring a file that is not a transaction file");
            }
        }
    }
    Ok(())
}
