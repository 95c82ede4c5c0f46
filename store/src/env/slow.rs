//! Environment with slow syncs: for tests that need commits to arrive during a sync.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::descriptor::DatabaseId;
use crate::env::{AppendFile, DiskSpace, Env, ReadFile, RealEnv, SegmentFile};
use crate::error::Result;

/// The operating system, with a minimal duration of each sync of a log segment.
#[derive(Debug)]
pub struct SlowEnv {
    real: RealEnv,
    sync_time: Duration,
}

impl SlowEnv {
    /// Returns an environment whose syncs take `sync_time` longer.
    pub fn new(sync_time: Duration) -> SlowEnv {
        SlowEnv { real: RealEnv::default(), sync_time }
    }
}

struct SlowSegment {
    real: Arc<dyn SegmentFile>,
    sync_time: Duration,
}

impl SegmentFile for SlowSegment {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        self.real.write_at(offset, bytes)
    }

    fn sync(&self) -> Result<()> {
        super::process::sleep(self.sync_time);
        self.real.sync()
    }
}

impl Env for SlowEnv {
    fn now_micros(&self) -> i64 {
        self.real.now_micros()
    }

    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        self.real.create(path)
    }

    fn create_segment(&self, path: &Path) -> Result<Arc<dyn SegmentFile>> {
        let (real, sync_time) = (self.real.create_segment(path)?, self.sync_time);
        Ok(Arc::new(SlowSegment { real, sync_time }))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        self.real.open(path)
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.real.rename(from, to)
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.real.link(from, to)
    }

    fn disk_space(&self, directory: &Path) -> Option<DiskSpace> {
        self.real.disk_space(directory)
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.real.remove(path)
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        self.real.list(directory)
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        self.real.create_directory(path)
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        self.real.remove_directory(path)
    }

    fn sync_directory(&self, path: &Path) -> Result<()> {
        self.real.sync_directory(path)
    }

    fn new_id(&self) -> Result<DatabaseId> {
        self.real.new_id()
    }

    fn protect_directory(&self, path: &Path) -> Result<()> {
        self.real.protect_directory(path)
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.real.lock(path)
    }
}
