//! A world for tests: files in memory that fail, tear and forget on purpose.
//!
//! What was synced survives a [`FaultEnv::crash`]; what was only written may survive in part; names
//! survive once their directory was synced. Nothing is random but what the seed says.

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::env::{AppendFile, Env, ReadFile};
use crate::error::{Error, Result};

/// What a crash does to bytes that were written but not synced.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsynced {
    /// All of them are lost.
    Lost,
    /// A prefix of them survives, of a length that the seed decides.
    Torn,
    /// All survive but for a range of zeros somewhere in them: pages reached the disk out of order.
    Holed,
}

/// Files in memory, shared by clones.
#[derive(Clone)]
pub struct FaultEnv {
    world: Arc<Mutex<World>>,
}

struct World {
    /// Names as a process sees them.
    live: BTreeMap<PathBuf, Arc<Mutex<Content>>>,
    /// Names as they would be after a crash.
    durable: BTreeMap<PathBuf, Arc<Mutex<Content>>>,
    locks: BTreeSet<PathBuf>,
    now_micros: i64,
    random: u64,
    /// Writes, syncs and renames so far.
    operation_count: u64,
    fail_at: Option<u64>,
    crashed: bool,
}

#[derive(Default, Clone)]
struct Content {
    bytes: Vec<u8>,
    synced_bytes: usize,
}

struct FaultAppend {
    env: FaultEnv,
    path: PathBuf,
    content: Arc<Mutex<Content>>,
}

struct FaultRead {
    path: PathBuf,
    content: Arc<Mutex<Content>>,
}

struct FaultLock {
    env: FaultEnv,
    path: PathBuf,
}

impl FaultEnv {
    /// Returns an empty world. Its clock stands at `1_000_000`.
    pub fn new(seed: u64) -> FaultEnv {
        FaultEnv {
            world: Arc::new(Mutex::new(World {
                live: BTreeMap::new(),
                durable: BTreeMap::new(),
                locks: BTreeSet::new(),
                now_micros: 1_000_000,
                random: seed.wrapping_mul(2).wrapping_add(1),
                operation_count: 0,
                fail_at: None,
                crashed: false,
            })),
        }
    }

    /// Sets the clock.
    pub fn set_now(&self, now_micros: i64) {
        self.world.lock().now_micros = now_micros;
    }

    /// Makes the write, sync or rename after `count` more of them fail, and all that follow.
    pub fn fail_after(&self, count: u64) {
        let mut world = self.world.lock();
        world.fail_at = Some(world.operation_count + count);
    }

    /// Returns how many writes, syncs and renames there were.
    pub fn operation_count(&self) -> u64 {
        self.world.lock().operation_count
    }

    /// Lets the process die now: every operation from here on fails.
    pub fn crash(&self) {
        self.world.lock().crashed = true;
    }

    /// Returns the world as the next process finds it.
    pub fn after_crash(&self, unsynced: Unsynced) -> FaultEnv {
        let mut world = self.world.lock();
        world.crashed = true;
        let mut random = world.random;
        let mut survive = |content: &Arc<Mutex<Content>>| {
            let content = content.lock();
            let mut bytes = content.bytes.clone();
            let tail_bytes = bytes.len() - content.synced_bytes;
            match unsynced {
                Unsynced::Lost => bytes.truncate(content.synced_bytes),
                Unsynced::Torn => {
                    let kept = next_random(&mut random) as usize % (tail_bytes + 1);
                    bytes.truncate(content.synced_bytes + kept);
                }
                Unsynced::Holed => {
                    let start = next_random(&mut random) as usize % (tail_bytes + 1);
                    let length = next_random(&mut random) as usize % (tail_bytes - start + 1);
                    let start = content.synced_bytes + start;
                    bytes[start..start + length].fill(0);
                }
            }
            let synced_bytes = bytes.len();
            Arc::new(Mutex::new(Content { bytes, synced_bytes }))
        };
        let files: BTreeMap<_, _> =
            world.durable.iter().map(|(path, content)| (path.clone(), survive(content))).collect();
        FaultEnv {
            world: Arc::new(Mutex::new(World {
                live: files.clone(),
                durable: files,
                locks: BTreeSet::new(),
                now_micros: world.now_micros,
                random,
                operation_count: 0,
                fail_at: None,
                crashed: false,
            })),
        }
    }

    /// Returns a copy of a file's bytes.
    pub fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        self.world.lock().live.get(path).map(|content| content.lock().bytes.clone())
    }

    /// Puts a file there, synced.
    pub fn place(&self, path: &Path, bytes: Vec<u8>) {
        let synced_bytes = bytes.len();
        let content = Arc::new(Mutex::new(Content { bytes, synced_bytes }));
        let mut world = self.world.lock();
        world.live.insert(path.to_owned(), content.clone());
        world.durable.insert(path.to_owned(), content);
    }

    fn step(&self, path: &Path) -> Result<()> {
        let mut world = self.world.lock();
        let failed = world.crashed || world.fail_at.is_some_and(|at| world.operation_count >= at);
        world.operation_count += 1;
        if failed {
            return Err(Error::io(path, std::io::Error::other("failed on purpose")));
        }
        Ok(())
    }

    fn check_alive(&self, path: &Path) -> Result<()> {
        if self.world.lock().crashed {
            return Err(Error::io(path, std::io::Error::other("crashed on purpose")));
        }
        Ok(())
    }
}

fn next_random(state: &mut u64) -> u64 {
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    *state >> 8
}

fn not_found(path: &Path) -> Error {
    Error::io(path, std::io::Error::from(std::io::ErrorKind::NotFound))
}

impl AppendFile for FaultAppend {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        if let Err(error) = self.env.step(&self.path) {
            // A write that fails has often written a part.
            let mut world = self.env.world.lock();
            if !world.crashed {
                let kept = next_random(&mut world.random) as usize % (bytes.len() + 1);
                self.content.lock().bytes.extend_from_slice(&bytes[..kept]);
            }
            return Err(error);
        }
        self.content.lock().bytes.extend_from_slice(bytes);
        Ok(())
    }

    fn sync(&mut self) -> Result<()> {
        self.env.step(&self.path)?;
        let mut content = self.content.lock();
        content.synced_bytes = content.bytes.len();
        Ok(())
    }
}

impl ReadFile for FaultRead {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let content = self.content.lock();
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(buffer.len());
        let Some(bytes) = content.bytes.get(start..end) else {
            return Err(Error::corrupt(&self.path, offset, "the file ends before"));
        };
        buffer.copy_from_slice(bytes);
        Ok(())
    }

    fn byte_count(&self) -> Result<u64> {
        Ok(self.content.lock().bytes.len() as u64)
    }
}

impl Drop for FaultLock {
    fn drop(&mut self) {
        self.env.world.lock().locks.remove(&self.path);
    }
}

impl Env for FaultEnv {
    fn now_micros(&self) -> i64 {
        self.world.lock().now_micros
    }

    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        self.step(path)?;
        let content = Arc::new(Mutex::new(Content::default()));
        self.world.lock().live.insert(path.to_owned(), content.clone());
        Ok(Box::new(FaultAppend { env: self.clone(), path: path.to_owned(), content }))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        self.check_alive(path)?;
        let content = self.world.lock().live.get(path).cloned().ok_or_else(|| not_found(path))?;
        Ok(Arc::new(FaultRead { path: path.to_owned(), content }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        self.step(from)?;
        let mut world = self.world.lock();
        let content = world.live.remove(from).ok_or_else(|| not_found(from))?;
        world.live.insert(to.to_owned(), content.clone());
        world.durable.remove(from);
        world.durable.insert(to.to_owned(), content);
        Ok(())
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.check_alive(path)?;
        self.world.lock().live.remove(path).map(|_| ()).ok_or_else(|| not_found(path))
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        self.check_alive(directory)?;
        let world = self.world.lock();
        let mut names = BTreeSet::new();
        for path in world.live.keys() {
            if let Ok(rest) = path.strip_prefix(directory)
                && let Some(first) = rest.components().next()
            {
                names.insert(PathBuf::from(first.as_os_str()));
            }
        }
        Ok(names.into_iter().collect())
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        self.check_alive(path)
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        self.check_alive(path)?;
        let mut world = self.world.lock();
        world.live.retain(|name, _| !name.starts_with(path));
        world.durable.retain(|name, _| !name.starts_with(path));
        Ok(())
    }

    fn sync_directory(&self, path: &Path) -> Result<()> {
        self.step(path)?;
        let mut world = self.world.lock();
        let inside = |name: &PathBuf| name.parent() == Some(path);
        world.durable.retain(|name, _| !inside(name));
        let synced: Vec<_> = world
            .live
            .iter()
            .filter(|(name, _)| inside(name))
            .map(|(name, content)| (name.clone(), content.clone()))
            .collect();
        world.durable.extend(synced);
        Ok(())
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        self.check_alive(path)?;
        if !self.world.lock().locks.insert(path.to_owned()) {
            return Err(Error::InUse { path: path.parent().unwrap_or(path).to_owned() });
        }
        Ok(Box::new(FaultLock { env: self.clone(), path: path.to_owned() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_crash_keeps_what_was_synced() {
        let env = FaultEnv::new(1);
        let (a, b) = (Path::new("/d/a"), Path::new("/d/b"));
        let mut file = env.create(a).unwrap();
        file.append(b"kept").unwrap();
        file.sync().unwrap();
        env.sync_directory(Path::new("/d")).unwrap();
        file.append(b"lost").unwrap();
        env.create(b).unwrap();
        let next = env.after_crash(Unsynced::Lost);
        assert_eq!(next.bytes(a).unwrap(), b"kept");
        assert_eq!(next.bytes(b), None);
        assert!(file.append(b"dead").is_err());
    }

    #[test]
    fn operations_fail_when_told() {
        let env = FaultEnv::new(1);
        env.fail_after(1);
        let mut file = env.create(Path::new("/d/a")).unwrap();
        assert!(file.append(b"x").is_err());
        assert!(file.sync().is_err());
    }
}
