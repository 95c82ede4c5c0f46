//! Simulated disk of a [`FaultEnv`](super::FaultEnv): the volatile and the durable state.
//!
//! A file has its bytes as a process reads them, its durable bytes, and the ranges in which the
//! two may differ. A directory has its names twice, and the changes between the two in order. A
//! sync makes them equal; a crash retains any part of the differences.

use std::collections::BTreeMap;
use std::ffi::{OsStr, OsString};
use std::io::ErrorKind;
use std::ops::Range;
use std::path::{Component, Path, PathBuf};

use super::Unsynced;

/// The result of an operation of the disk.
pub(super) type DiskOutcome<T> = Result<T, ErrorKind>;

/// Pseudorandom numbers from a seed.
#[derive(Debug, Clone)]
pub(super) struct Random(u64);

impl Random {
    pub(super) fn new(seed: u64) -> Random {
        // Spread, so that neighbouring seeds are uncorrelated; never 0.
        Random(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1)
    }

    /// Returns a number below `end`; 0 if `end` is.
    pub(super) fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 >> 16) as usize % end.max(1)
    }

    pub(super) fn coin(&mut self) -> bool {
        self.below(2) == 0
    }
}

/// Target of a name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum DiskNode {
    File(usize),
    Directory(usize),
}

#[derive(Debug, Clone, Default)]
struct File {
    bytes: Vec<u8>,
    /// The durable bytes.
    durable: Vec<u8>,
    /// Ranges written since the last sync, in order.
    dirty: Vec<Range<usize>>,
}

#[derive(Debug, Clone)]
enum Change {
    Set(OsString, DiskNode),
    Unset(OsString),
    /// Atomic.
    Rename(OsString, OsString, DiskNode),
}

#[derive(Debug, Clone, Default)]
struct Directory {
    names: BTreeMap<OsString, DiskNode>,
    durable: BTreeMap<OsString, DiskNode>,
    pending: Vec<Change>,
}

impl Directory {
    fn change(&mut self, change: Change) {
        change.apply(&mut self.names);
        self.pending.push(change);
    }

    fn sync(&mut self) {
        self.durable.clone_from(&self.names);
        self.pending.clear();
    }
}

impl Change {
    fn apply(&self, names: &mut BTreeMap<OsString, DiskNode>) {
        match self {
            Change::Set(name, node) => {
                names.insert(name.clone(), *node);
            }
            Change::Unset(name) => {
                names.remove(name);
            }
            Change::Rename(from, to, node) => {
                names.remove(from);
                names.insert(to.clone(), *node);
            }
        }
    }
}

/// Files and directories; numbers of nodes are never reused.
#[derive(Debug, Clone)]
pub(super) struct Disk {
    files: Vec<File>,
    directories: Vec<Directory>,
}

const ROOT: usize = 0;

impl Disk {
    pub(super) fn new() -> Disk {
        Disk { files: Vec::new(), directories: vec![Directory::default()] }
    }

    fn directory(&self, path: &Path) -> Option<usize> {
        match self.node(path)? {
            DiskNode::Directory(directory) => Some(directory),
            DiskNode::File(_) => None,
        }
    }

    pub(super) fn node(&self, path: &Path) -> Option<DiskNode> {
        let mut node = DiskNode::Directory(ROOT);
        for name in path.components().filter_map(plain_name) {
            let DiskNode::Directory(directory) = node else { return None };
            node = *self.directories[directory].names.get(name)?;
        }
        Some(node)
    }

    pub(super) fn file(&self, path: &Path) -> DiskOutcome<usize> {
        match self.node(path) {
            Some(DiskNode::File(file)) => Ok(file),
            Some(DiskNode::Directory(_)) => Err(ErrorKind::IsADirectory),
            None => Err(ErrorKind::NotFound),
        }
    }

    /// Creates a directory and its parents; their names are durable at once, as are all earlier
    /// changes in the directory of a new one, because it was synced.
    pub(super) fn create_directory(&mut self, path: &Path) -> DiskOutcome<usize> {
        let mut at = ROOT;
        for name in path.components().filter_map(plain_name) {
            at = match self.directories[at].names.get(name) {
                Some(DiskNode::Directory(next)) => *next,
                Some(DiskNode::File(_)) => return Err(ErrorKind::NotADirectory),
                None => {
                    let next = self.directories.len();
                    self.directories.push(Directory::default());
                    let node = DiskNode::Directory(next);
                    let directory = &mut self.directories[at];
                    directory.change(Change::Set(name.to_owned(), node));
                    directory.sync();
                    next
                }
            };
        }
        Ok(at)
    }

    /// Returns the directory of a path, created if need be, and the path's last name.
    fn place_of<'a>(&mut self, path: &'a Path) -> DiskOutcome<(usize, &'a OsStr)> {
        let name = path.file_name().ok_or(ErrorKind::InvalidInput)?;
        let directory = self.create_directory(path.parent().unwrap_or(Path::new("")))?;
        Ok((directory, name))
    }

    pub(super) fn create(&mut self, path: &Path) -> DiskOutcome<usize> {
        let (directory, name) = self.place_of(path)?;
        let file = self.files.len();
        self.files.push(File::default());
        self.directories[directory].change(Change::Set(name.to_owned(), DiskNode::File(file)));
        Ok(file)
    }

    pub(super) fn link(&mut self, from: &Path, to: &Path) -> DiskOutcome<()> {
        let file = self.file(from)?;
        if self.node(to).is_some() {
            return Err(ErrorKind::AlreadyExists);
        }
        let (directory, name) = self.place_of(to)?;
        self.directories[directory].change(Change::Set(name.to_owned(), DiskNode::File(file)));
        Ok(())
    }

    pub(super) fn rename(&mut self, from: &Path, to: &Path) -> DiskOutcome<()> {
        let node = self.node(from).ok_or(ErrorKind::NotFound)?;
        let (from_directory, from_name) = self.place_of(from)?;
        let (directory, name) = self.place_of(to)?;
        if directory != from_directory {
            return Err(ErrorKind::Unsupported);
        }
        if matches!(self.node(to), Some(DiskNode::Directory(_))) {
            return Err(ErrorKind::DirectoryNotEmpty);
        }
        let change = Change::Rename(from_name.to_owned(), name.to_owned(), node);
        self.directories[directory].change(change);
        Ok(())
    }

    pub(super) fn remove(&mut self, path: &Path) -> DiskOutcome<()> {
        self.file(path)?;
        let (directory, name) = self.place_of(path)?;
        self.directories[directory].change(Change::Unset(name.to_owned()));
        Ok(())
    }

    /// Removes a directory with its content: file by file, so that a crash may leave some.
    pub(super) fn remove_directory(&mut self, path: &Path) -> DiskOutcome<()> {
        let removed = self.directory(path).ok_or(ErrorKind::NotFound)?;
        self.empty(removed);
        let (directory, name) = self.place_of(path)?;
        self.directories[directory].change(Change::Unset(name.to_owned()));
        Ok(())
    }

    fn empty(&mut self, directory: usize) {
        for (name, node) in self.directories[directory].names.clone() {
            if let DiskNode::Directory(inner) = node {
                self.empty(inner);
            }
            self.directories[directory].change(Change::Unset(name));
        }
    }

    pub(super) fn names(&self, path: &Path) -> Vec<PathBuf> {
        let directory = self.directory(path);
        let names = directory.map(|directory| self.directories[directory].names.keys());
        names.into_iter().flatten().map(PathBuf::from).collect()
    }

    pub(super) fn sync_directory(&mut self, path: &Path) -> DiskOutcome<()> {
        let directory = self.directory(path).ok_or(ErrorKind::NotFound)?;
        self.directories[directory].sync();
        Ok(())
    }

    pub(super) fn bytes(&self, file: usize) -> &[u8] {
        &self.files[file].bytes
    }

    /// Overwrites or extends a file; a gap before the bytes is filled with zeros.
    pub(super) fn write_at(&mut self, file: usize, offset: usize, bytes: &[u8]) {
        let file = &mut self.files[file];
        let start = file.bytes.len().min(offset);
        let end = offset + bytes.len();
        if file.bytes.len() < end {
            file.bytes.resize(end, 0);
        }
        file.bytes[offset..end].copy_from_slice(bytes);
        file.dirty.push(start..end);
    }

    pub(super) fn sync(&mut self, file: usize) {
        let File { bytes, durable, dirty } = &mut self.files[file];
        durable.resize(bytes.len(), 0);
        for range in dirty.drain(..) {
            durable[range.clone()].copy_from_slice(&bytes[range]);
        }
    }

    /// Fails a sync as Linux does: each page may or may not reach the disk, and none is retried.
    pub(super) fn fail_sync(&mut self, file: usize, random: &mut Random) {
        let dirty = std::mem::take(&mut self.files[file].dirty);
        for page in pages(&dirty, random) {
            if random.coin() {
                self.files[file].write_through(page);
            }
        }
    }

    /// Flips one bit of a file, in both states.
    pub(super) fn flip(&mut self, file: usize, bit: usize) {
        let File { bytes, durable, .. } = &mut self.files[file];
        for copy in [bytes, durable] {
            if let Some(byte) = copy.get_mut(bit / 8) {
                *byte ^= 1 << (bit % 8);
            }
        }
    }

    /// Creates a file that is durable at once, with its name.
    pub(super) fn place(&mut self, path: &Path, bytes: Vec<u8>) -> DiskOutcome<()> {
        let file = self.create(path)?;
        self.files[file] = File { durable: bytes.clone(), bytes, dirty: Vec::new() };
        let (directory, name) = self.place_of(path)?;
        self.directories[directory].durable.insert(name.to_owned(), DiskNode::File(file));
        Ok(())
    }

    /// Returns the paths of all files, sorted.
    pub(super) fn paths(&self) -> Vec<PathBuf> {
        let mut paths = Vec::new();
        self.visit(ROOT, Path::new("/"), &mut paths);
        paths.sort();
        paths
    }

    fn visit(&self, directory: usize, path: &Path, paths: &mut Vec<PathBuf>) {
        for (name, node) in &self.directories[directory].names {
            match node {
                DiskNode::File(_) => paths.push(path.join(name)),
                DiskNode::Directory(inner) => self.visit(*inner, &path.join(name), paths),
            }
        }
    }

    /// Returns the bytes of all named files.
    pub(super) fn used_bytes(&self) -> u64 {
        let files = self.paths().into_iter().filter_map(|path| self.file(&path).ok());
        files.map(|file| self.files[file].bytes.len() as u64).sum()
    }

    /// Returns the disk as the next process finds it.
    pub(super) fn after_crash(&self, unsynced: Unsynced, random: &mut Random) -> Disk {
        let mut disk = self.clone();
        for directory in &mut disk.directories {
            for change in std::mem::take(&mut directory.pending) {
                let kept = match unsynced {
                    Unsynced::Lost => false,
                    Unsynced::Kept => true,
                    Unsynced::Torn | Unsynced::Holed => random.coin(),
                };
                if kept {
                    change.apply(&mut directory.durable);
                }
            }
            directory.names.clone_from(&directory.durable);
        }
        for file in &mut disk.files {
            file.crash(unsynced, random);
        }
        disk
    }
}

impl File {
    /// Makes a range of the written bytes durable, extending the file by zeros if need be.
    fn write_through(&mut self, range: Range<usize>) {
        if self.durable.len() < range.end {
            self.durable.resize(range.end, 0);
        }
        self.durable[range.clone()].copy_from_slice(&self.bytes[range]);
    }

    fn crash(&mut self, unsynced: Unsynced, random: &mut Random) {
        let dirty = std::mem::take(&mut self.dirty);
        match unsynced {
            Unsynced::Lost => {}
            Unsynced::Kept => dirty.into_iter().for_each(|range| self.write_through(range)),
            Unsynced::Torn => {
                let total: usize = dirty.iter().map(Range::len).sum();
                let mut left = random.below(total + 1);
                for range in dirty {
                    let kept = range.len().min(left);
                    self.write_through(range.start..range.start + kept);
                    left -= kept;
                }
            }
            Unsynced::Holed => {
                for page in pages(&dirty, random) {
                    if random.coin() {
                        self.write_through(page);
                    }
                }
            }
        }
        self.bytes.clone_from(&self.durable);
    }
}

/// Divides ranges at page boundaries; the seed decides the page size.
fn pages(ranges: &[Range<usize>], random: &mut Random) -> Vec<Range<usize>> {
    let page_bytes = [16, 64, 512, 4096][random.below(4)];
    let mut pages = Vec::new();
    for range in ranges {
        let mut start = range.start;
        while start < range.end {
            let end = range.end.min((start / page_bytes + 1) * page_bytes);
            pages.push(start..end);
            start = end;
        }
    }
    pages
}

fn plain_name(component: Component<'_>) -> Option<&OsStr> {
    match component {
        Component::Normal(name) => Some(name),
        _ => None,
    }
}
