//! Fault injection environment for tests: files in memory that fail, tear and lose data on
//! purpose.
//!
//! Synced bytes survive a [`FaultEnv::crash`]; of unsynced bytes, any part may survive
//! ([`Unsynced`]); the same holds for names and the sync of their directory. Each kind of
//! operation can be made to fail ([`Fault`]), the disk can be full, and bits can flip. All
//! randomness comes from the seed.

mod disk;

use std::collections::BTreeSet;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use parking_lot::Mutex;

use crate::descriptor::DatabaseId;
use crate::env::fault::disk::{Disk, DiskOutcome, Random};
use crate::env::{AppendFile, DiskSpace, Env, ReadFile, SegmentFile};
use crate::error::{Error, Result};

/// Effect of a crash on unsynced bytes and names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unsynced {
    /// All of them are lost.
    Lost,
    /// All of them survive: only the process died.
    Kept,
    /// A prefix of each file survives, and any of the names; the seed decides.
    Torn,
    /// Any of their pages survive, with zeros between, and any of the names.
    Holed,
}

/// A kind of operation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Operation {
    /// [`Env::create`] and [`Env::create_segment`]; nothing is created.
    Create,
    /// [`AppendFile::append`] and [`SegmentFile::write_at`]; a part is written.
    Append,
    /// [`AppendFile::sync`] and [`SegmentFile::sync`]; pages may or may not reach the disk, and a
    /// later sync does not retry them.
    Sync,
    /// [`Env::rename`]; it may have happened, but is not durable then.
    Rename,
    /// [`Env::link`].
    Link,
    /// [`Env::remove`]; the file stays.
    Remove,
    /// [`Env::create_directory`].
    CreateDirectory,
    /// [`Env::remove_directory`]; a part may be removed.
    RemoveDirectory,
    /// [`Env::sync_directory`].
    SyncDirectory,
    /// [`Env::open`].
    Open,
    /// [`ReadFile::read_at`] and [`ReadFile::byte_count`].
    Read,
    /// [`Env::list`].
    List,
}

impl Operation {
    /// All kinds.
    pub const ALL: [Operation; 12] = [
        Operation::Create,
        Operation::Append,
        Operation::Sync,
        Operation::Rename,
        Operation::Link,
        Operation::Remove,
        Operation::CreateDirectory,
        Operation::RemoveDirectory,
        Operation::SyncDirectory,
        Operation::Open,
        Operation::Read,
        Operation::List,
    ];

    fn is_change(self) -> bool {
        !matches!(self, Operation::Open | Operation::Read | Operation::List)
    }
}

/// Injected failures.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    /// The operation that fails.
    pub operation: Operation,
    /// Number of calls that succeed first.
    pub after: u64,
    /// Number of calls that fail then.
    pub count: u64,
}

/// Files in memory, shared by clones.
#[derive(Clone)]
pub struct FaultEnv {
    world: Arc<Mutex<FaultState>>,
}

struct FaultState {
    disk: Disk,
    locks: BTreeSet<PathBuf>,
    now_micros: i64,
    random: Random,
    /// Number of operations so far that change anything.
    operation_count: u64,
    fail_at: Option<u64>,
    faults: Vec<Fault>,
    capacity_bytes: u64,
    crashed: bool,
}

struct FaultAppend {
    env: FaultEnv,
    path: PathBuf,
    file: usize,
}

struct FaultSegment {
    env: FaultEnv,
    path: PathBuf,
    file: usize,
}

struct FaultRead {
    env: FaultEnv,
    path: PathBuf,
    file: usize,
}

struct FaultLock {
    env: FaultEnv,
    path: PathBuf,
}

impl FaultEnv {
    /// Returns an empty environment. Its clock is at `1_000_000`.
    pub fn new(seed: u64) -> FaultEnv {
        FaultEnv::of(Disk::new(), 1_000_000, Random::new(seed))
    }

    fn of(disk: Disk, now_micros: i64, random: Random) -> FaultEnv {
        let world = FaultState {
            disk,
            locks: BTreeSet::new(),
            now_micros,
            random,
            operation_count: 0,
            fail_at: None,
            faults: Vec::new(),
            capacity_bytes: u64::MAX,
            crashed: false,
        };
        FaultEnv { world: Arc::new(Mutex::new(world)) }
    }

    /// Returns the time of the clock.
    pub fn now(&self) -> i64 {
        self.world.lock().now_micros
    }

    /// Sets the clock.
    pub fn set_now(&self, now_micros: i64) {
        self.world.lock().now_micros = now_micros;
    }

    /// Fails all changes of files or names after `count` more of them.
    pub fn fail_after(&self, count: u64) {
        let mut world = self.world.lock();
        world.fail_at = Some(world.operation_count + count);
    }

    /// Adds a fault.
    pub fn inject(&self, fault: Fault) {
        self.world.lock().faults.push(fault);
    }

    /// Removes all faults, and the limit of the disk.
    pub fn calm(&self) {
        let mut world = self.world.lock();
        world.faults.clear();
        world.fail_at = None;
        world.capacity_bytes = u64::MAX;
    }

    /// Limits the free space of the disk.
    pub fn leave_room(&self, byte_count: u64) {
        let mut world = self.world.lock();
        world.capacity_bytes = world.disk.used_bytes() + byte_count;
    }

    /// Returns the number of operations so far that change files or names.
    pub fn operation_count(&self) -> u64 {
        self.world.lock().operation_count
    }

    /// Simulates the death of the process: every operation from here on fails.
    pub fn crash(&self) {
        self.world.lock().crashed = true;
    }

    /// Returns the environment as the next process finds it.
    pub fn after_crash(&self, unsynced: Unsynced) -> FaultEnv {
        let mut world = self.world.lock();
        world.crashed = true;
        let mut random = world.random.clone();
        let disk = world.disk.after_crash(unsynced, &mut random);
        FaultEnv::of(disk, world.now_micros, random)
    }

    /// Returns the paths of all files, sorted.
    pub fn paths(&self) -> Vec<PathBuf> {
        self.world.lock().disk.paths()
    }

    /// Returns a copy of a file's bytes.
    pub fn bytes(&self, path: &Path) -> Option<Vec<u8>> {
        let world = self.world.lock();
        let file = world.disk.file(path).ok()?;
        Some(world.disk.bytes(file).to_vec())
    }

    /// Creates a file, synced.
    pub fn place(&self, path: &Path, bytes: Vec<u8>) {
        let placed = self.world.lock().disk.place(path, bytes);
        placed.expect("a test places files where files can be");
    }

    /// Flips one bit of a file, counted from its start. Does nothing behind its end.
    pub fn flip(&self, path: &Path, bit: usize) {
        let mut world = self.world.lock();
        if let Ok(file) = world.disk.file(path) {
            world.disk.flip(file, bit);
        }
    }

    /// Runs an operation on the disk, unless it is to fail; then `failed` applies its partial
    /// effect.
    fn run<T>(
        &self,
        operation: Operation,
        path: &Path,
        run: impl FnOnce(&mut FaultState) -> DiskOutcome<T>,
        failed: impl FnOnce(&mut FaultState),
    ) -> Result<T> {
        let mut world = self.world.lock();
        if world.crashed {
            return Err(Error::io(path, std::io::Error::other("crashed on purpose")));
        }
        if world.fails(operation) {
            failed(&mut world);
            return Err(Error::io(path, std::io::Error::other("failed on purpose")));
        }
        run(&mut world).map_err(|kind| Error::io(path, std::io::Error::from(kind)))
    }

    /// Writes bytes to a file, at its end if no offset is given.
    fn write(&self, path: &Path, file: usize, (at, bytes): (Option<usize>, &[u8])) -> Result<()> {
        let run = |world: &mut FaultState| {
            let offset = at.unwrap_or(world.disk.bytes(file).len());
            let room = match world.capacity_bytes {
                u64::MAX => u64::MAX,
                capacity_bytes => capacity_bytes.saturating_sub(world.disk.used_bytes()),
            };
            // Only growth of the file needs space.
            let present = world.disk.bytes(file).len().saturating_sub(offset);
            let fitting = usize::try_from(room).unwrap_or(usize::MAX).saturating_add(present);
            let fitting = bytes.len().min(fitting);
            // A write without room does not make the file longer.
            if fitting > 0 {
                world.disk.write_at(file, offset, &bytes[..fitting]);
            }
            if fitting < bytes.len() { Err(ErrorKind::StorageFull) } else { Ok(()) }
        };
        self.run(Operation::Append, path, run, |world| {
            let offset = at.unwrap_or(world.disk.bytes(file).len());
            let kept = world.random.below(bytes.len() + 1);
            world.disk.write_at(file, offset, &bytes[..kept]);
        })
    }

    fn sync(&self, path: &Path, file: usize) -> Result<()> {
        let run = |world: &mut FaultState| {
            world.disk.sync(file);
            Ok(())
        };
        self.run(Operation::Sync, path, run, |world| {
            let FaultState { disk, random, .. } = world;
            disk.fail_sync(file, random);
        })
    }
}

impl FaultState {
    fn fails(&mut self, operation: Operation) -> bool {
        let mut fails = false;
        if operation.is_change() {
            fails = self.fail_at.is_some_and(|at| self.operation_count >= at);
            self.operation_count += 1;
        }
        for fault in self.faults.iter_mut().filter(|fault| fault.operation == operation) {
            if fault.after > 0 {
                fault.after -= 1;
            } else if fault.count > 0 {
                fault.count -= 1;
                fails = true;
            }
        }
        fails
    }
}

impl AppendFile for FaultAppend {
    fn append(&mut self, bytes: &[u8]) -> Result<()> {
        self.env.write(&self.path, self.file, (None, bytes))
    }

    fn sync(&mut self) -> Result<()> {
        self.env.sync(&self.path, self.file)
    }
}

impl SegmentFile for FaultSegment {
    fn write_at(&self, offset: u64, bytes: &[u8]) -> Result<()> {
        let offset = usize::try_from(offset).unwrap_or(usize::MAX);
        self.env.write(&self.path, self.file, (Some(offset), bytes))
    }

    fn sync(&self) -> Result<()> {
        self.env.sync(&self.path, self.file)
    }
}

impl ReadFile for FaultRead {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<()> {
        let start = usize::try_from(offset).unwrap_or(usize::MAX);
        let end = start.saturating_add(buffer.len());
        let run = |world: &mut FaultState| {
            let bytes = world.disk.bytes(self.file).get(start..end);
            Ok(bytes.map(|bytes| buffer.copy_from_slice(bytes)))
        };
        let read = self.env.run(Operation::Read, &self.path, run, |_| {})?;
        read.ok_or_else(|| Error::corrupt(&self.path, offset, "unexpected end of file"))
    }

    fn byte_count(&self) -> Result<u64> {
        let run = |world: &mut FaultState| Ok(world.disk.bytes(self.file).len() as u64);
        self.env.run(Operation::Read, &self.path, run, |_| {})
    }
}

impl Drop for FaultLock {
    fn drop(&mut self) {
        self.env.world.lock().locks.remove(&self.path);
    }
}

impl Env for FaultEnv {
    fn disk_space(&self, _directory: &Path) -> Option<DiskSpace> {
        let world = self.world.lock();
        let total_bytes = Some(world.capacity_bytes).filter(|bytes| *bytes < u64::MAX)?;
        let free_bytes = total_bytes.saturating_sub(world.disk.used_bytes());
        Some(DiskSpace { total_bytes, free_bytes })
    }

    fn now_micros(&self) -> i64 {
        self.world.lock().now_micros
    }

    fn create(&self, path: &Path) -> Result<Box<dyn AppendFile>> {
        let run = |world: &mut FaultState| world.disk.create(path);
        let file = self.run(Operation::Create, path, run, |_| {})?;
        Ok(Box::new(FaultAppend { env: self.clone(), path: path.to_owned(), file }))
    }

    fn create_segment(&self, path: &Path) -> Result<Arc<dyn SegmentFile>> {
        let run = |world: &mut FaultState| world.disk.create(path);
        let file = self.run(Operation::Create, path, run, |_| {})?;
        Ok(Arc::new(FaultSegment { env: self.clone(), path: path.to_owned(), file }))
    }

    fn open(&self, path: &Path) -> Result<Arc<dyn ReadFile>> {
        let file = self.run(Operation::Open, path, |world| world.disk.file(path), |_| {})?;
        Ok(Arc::new(FaultRead { env: self.clone(), path: path.to_owned(), file }))
    }

    fn rename(&self, from: &Path, to: &Path) -> Result<()> {
        let directory = to.parent().unwrap_or(Path::new(""));
        let run = |world: &mut FaultState| {
            world.disk.rename(from, to)?;
            world.disk.sync_directory(directory)
        };
        self.run(Operation::Rename, from, run, |world| {
            if world.random.coin() {
                // Renamed, but the sync of the directory failed.
                let _ = world.disk.rename(from, to);
            }
        })
    }

    fn link(&self, from: &Path, to: &Path) -> Result<()> {
        self.run(Operation::Link, from, |world| world.disk.link(from, to), |_| {})
    }

    fn remove(&self, path: &Path) -> Result<()> {
        self.run(Operation::Remove, path, |world| world.disk.remove(path), |_| {})
    }

    fn list(&self, directory: &Path) -> Result<Vec<PathBuf>> {
        let run = |world: &mut FaultState| Ok(world.disk.names(directory));
        self.run(Operation::List, directory, run, |_| {})
    }

    fn create_directory(&self, path: &Path) -> Result<()> {
        let run = |world: &mut FaultState| world.disk.create_directory(path).map(drop);
        self.run(Operation::CreateDirectory, path, run, |_| {})
    }

    fn remove_directory(&self, path: &Path) -> Result<()> {
        let run = |world: &mut FaultState| world.disk.remove_directory(path);
        self.run(Operation::RemoveDirectory, path, run, |world| {
            for name in world.disk.names(path) {
                if world.random.coin() {
                    let _ = world.disk.remove(&path.join(name));
                }
            }
        })
    }

    fn sync_directory(&self, path: &Path) -> Result<()> {
        let run = |world: &mut FaultState| world.disk.sync_directory(path);
        self.run(Operation::SyncDirectory, path, run, |_| {})
    }

    fn new_id(&self) -> Result<DatabaseId> {
        let mut world = self.world.lock();
        let high = world.random.below(usize::MAX) as u128;
        Ok(DatabaseId(high << 64 | world.random.below(usize::MAX) as u128))
    }

    fn lock(&self, path: &Path) -> Result<Box<dyn Send + Sync>> {
        let mut world = self.world.lock();
        if world.crashed {
            return Err(Error::io(path, std::io::Error::other("crashed on purpose")));
        }
        if !world.locks.insert(path.to_owned()) {
            return Err(Error::InUse { path: path.parent().unwrap_or(path).to_owned() });
        }
        Ok(Box::new(FaultLock { env: self.clone(), path: path.to_owned() }))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn crash_preserves_synced_data() {
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
        let next = env.after_crash(Unsynced::Kept);
        assert_eq!(next.bytes(a).unwrap(), b"keptlost");
        assert_eq!(next.bytes(b).unwrap(), b"");
    }

    #[test]
    fn crash_preserves_arbitrary_subset_of_unsynced_data() {
        let (mut lengths, mut contents, mut names) = ([false; 9], BTreeSet::new(), [false; 4]);
        for seed in 0..200 {
            let env = FaultEnv::new(seed);
            let mut file = env.create(Path::new("/d/a")).unwrap();
            env.sync_directory(Path::new("/d")).unwrap();
            file.append(b"12345678").unwrap();
            lengths[env.after_crash(Unsynced::Torn).bytes(Path::new("/d/a")).unwrap().len()] = true;
            let env = FaultEnv::new(seed);
            let mut file = env.create(Path::new("/d/a")).unwrap();
            env.sync_directory(Path::new("/d")).unwrap();
            file.append(&[b'x'; 80]).unwrap();
            contents.insert(env.after_crash(Unsynced::Holed).bytes(Path::new("/d/a")).unwrap());
            let env = FaultEnv::new(seed);
            env.create(Path::new("/d/b")).unwrap();
            env.create(Path::new("/d/c")).unwrap();
            let after = env.after_crash(Unsynced::Torn);
            let there = |name| after.bytes(Path::new(name)).is_some();
            names[usize::from(there("/d/b")) + 2 * usize::from(there("/d/c"))] = true;
        }
        assert_eq!((lengths, names), ([true; 9], [true; 4]));
        assert!(contents.len() > 8, "{contents:?}");
    }

    #[test]
    fn recreated_directory_survives_crash_after_sync() {
        for seed in 0..20 {
            let env = FaultEnv::new(seed);
            let (directory, file) = (Path::new("/d/a"), Path::new("/d/a/f"));
            env.create_directory(directory).unwrap();
            env.remove_directory(directory).unwrap();
            env.create_directory(directory).unwrap();
            env.create(file).unwrap();
            env.sync_directory(directory).unwrap();
            assert!(env.after_crash(Unsynced::Holed).bytes(file).is_some());
        }
    }

    #[test]
    fn injected_faults_fail_selected_operations() {
        let env = FaultEnv::new(1);
        env.fail_after(1);
        let mut file = env.create(Path::new("/d/a")).unwrap();
        assert!(file.append(b"x").is_err());
        assert!(file.sync().is_err());
        env.calm();
        for operation in [Operation::Append, Operation::Read] {
            env.inject(Fault { operation, after: 1, count: 2 });
        }
        let outcomes = [(); 4].map(|()| file.append(b"").is_ok());
        assert_eq!(outcomes, [true, false, false, true]);
        let reader = env.open(Path::new("/d/a")).unwrap();
        let outcomes = [(); 4].map(|()| reader.byte_count().is_ok());
        assert_eq!(outcomes, [true, false, false, true]);
    }

    #[test]
    fn failed_sync_is_not_repaired_by_next_sync() {
        let mut lost = 0;
        for seed in 0..50 {
            let env = FaultEnv::new(seed);
            let path = Path::new("/d/a");
            let mut file = env.create(path).unwrap();
            env.sync_directory(Path::new("/d")).unwrap();
            file.append(b"first").unwrap();
            env.inject(Fault { operation: Operation::Sync, after: 0, count: 1 });
            assert!(file.sync().is_err());
            file.append(b"second").unwrap();
            file.sync().unwrap();
            assert_eq!(env.bytes(path).unwrap(), b"firstsecond");
            let bytes = env.after_crash(Unsynced::Lost).bytes(path).unwrap();
            assert_eq!(&bytes[5..], b"second");
            lost += usize::from(&bytes[..5] == b"\0\0\0\0\0");
        }
        assert!(lost > 0);
    }

    #[test]
    fn full_disk_accepts_partial_append() {
        let env = FaultEnv::new(1);
        let path = Path::new("/d/a");
        let mut file = env.create(path).unwrap();
        env.leave_room(3);
        match file.append(b"12345") {
            Err(Error::Io { source, .. }) => assert_eq!(source.kind(), ErrorKind::StorageFull),
            other => panic!("{other:?}"),
        }
        assert_eq!(env.bytes(path).unwrap(), b"123");
        env.flip(path, 9);
        assert_eq!(env.bytes(path).unwrap(), b"103");
    }
}
