//! Region replicas: copies of a region that serve TIMELINE reads when the primary does not answer
//! in time.
//!
//! ```text
//!   commit --> log --durable--> ReplicaFeed --> generations of memstores --.
//!                                                                          +--> views for readers
//!   primary's flush or compaction ------------> files -------------------- '
//! ```
//!
//! # Invariants
//!
//! 1. A replica applies records in commit order, so a read at [`ReplicaFeed::applied`] sees a
//!    prefix of history.
//! 2. A generation holds the records up to its `through` and above that of the previous one. The
//!    primary closes one when it rotates its memstores, at the same sequence; so a file covers
//!    whole generations, and one atomic swap adds the file and removes the generations.
//! 3. A record that a file covers already is not applied: no cell is visible twice.
//!
//! Debug assertions check 1 in [`ReplicaFeed`], 2 for each new state (`ReplicaState::check`), and 3
//! before a record is inserted.

pub(crate) mod service_gate;

use std::collections::HashMap;
use std::sync::Arc;
use std::sync::Weak;
use std::sync::atomic::{AtomicBool, AtomicI64, AtomicU64, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use arc_swap::ArcSwap;
use parking_lot::{Mutex, RwLock};

use crate::cell::{Sequence, Timestamp};
use crate::descriptor::RegionId;
use crate::env::process::spawn_thread;
use crate::family_store::ReadView;
use crate::memstore::Memstore;
use crate::options::PlainWait;
use crate::replica::service_gate::{Gated, ServiceGate};
use crate::wal::{CommitClock, LoggedCells, RegionEdit, Wal, WalFollower};

/// The last sequence of an open generation.
const OPEN: Sequence = Sequence(u64::MAX);

/// One replica of a region.
pub(crate) struct Replica {
    state: ArcSwap<ReplicaState>,
    /// Held while `state` is replaced.
    changing: Mutex<()>,
    rows_read: AtomicU64,
}

struct ReplicaState {
    /// All commits up to here are in the files.
    flushed: Sequence,
    generations: Vec<Generation>,
    /// The primary's files, by family.
    files: Vec<Arc<ReadView>>,
    /// The files with the memstores of all generations, by family.
    views: Vec<Arc<ReadView>>,
}

#[derive(Clone)]
struct Generation {
    /// The last sequence of this generation; the highest possible one while it is open.
    through: Sequence,
    memstores: Vec<Arc<Memstore>>,
}

impl Generation {
    fn open(families: usize) -> Generation {
        Generation {
            through: OPEN,
            memstores: (0..families).map(|_| Arc::new(Memstore::new())).collect(),
        }
    }
}

impl ReplicaState {
    fn new(
        flushed: Sequence,
        generations: Vec<Generation>,
        files: Vec<Arc<ReadView>>,
    ) -> ReplicaState {
        let views = files
            .iter()
            .enumerate()
            .map(|(family, files)| Arc::new(view_over(files, family, &generations)))
            .collect();
        let state = ReplicaState { flushed, generations, files, views };
        state.check();
        state
    }

    /// Asserts invariant 2, in debug builds.
    fn check(&self) {
        if cfg!(debug_assertions) {
            let throughs = self.generations.iter().map(|generation| generation.through);
            assert!(throughs.is_sorted(), "generations are in commit order");
            let (open, closed) = self.generations.split_last().expect("a generation is open");
            assert_eq!(open.through, OPEN, "the last generation is open");
            assert!(
                closed.iter().all(|one| one.through < OPEN && self.flushed <= one.through),
                "a closed generation is in the files already"
            );
            let family_count = self.files.len();
            let has_all = |one: &Generation| one.memstores.len() >= family_count;
            assert!(self.generations.iter().all(has_all), "a memstore for each family");
        }
    }
}

/// Returns a view of a family's memstores of all generations over the primary's files.
fn view_over(files: &ReadView, family: usize, generations: &[Generation]) -> ReadView {
    let mut newest_first = generations
        .iter()
        .rev()
        .filter_map(|generation| Some((generation.memstores.get(family)?, generation.through)));
    let mut view = files.files_only();
    if view.family.is_dropped() {
        return view;
    }
    if let Some((open, _)) = newest_first.next() {
        view.active = Arc::clone(open);
    }
    view.frozen = newest_first.map(|(memstore, through)| (Arc::clone(memstore), through)).collect();
    view
}

impl Replica {
    /// Returns a replica over these files, which hold all commits up to `flushed`.
    pub(crate) fn new(files: Vec<Arc<ReadView>>, flushed: Sequence) -> Replica {
        let generations = vec![Generation::open(files.len())];
        Replica {
            state: ArcSwap::from_pointee(ReplicaState::new(flushed, generations, files)),
            changing: Mutex::new(()),
            rows_read: AtomicU64::new(0),
        }
    }

    /// Applies the region's cells of a record.
    pub(crate) fn apply(&self, sequence: Sequence, mut cells: LoggedCells<'_>) {
        let state = self.state.load();
        if sequence <= state.flushed {
            return;
        }
        let Some(generation) = state.generations.iter().find(|g| sequence <= g.through) else {
            return;
        };
        debug_assert!(sequence > state.flushed, "the record is in a file");
        while let Some((family, cells)) = cells.next_family() {
            if let Some(memstore) = generation.memstores.get(usize::from(family)) {
                memstore.insert_all(cells);
            }
        }
    }

    /// Closes the open generation at the sequence of the primary's rotation. The caller holds the
    /// region's write gate.
    pub(crate) fn rotate(&self, through: Sequence) {
        let _changing = self.changing.lock();
        let state = self.state.load();
        let mut generations = state.generations.clone();
        if let Some(open) = generations.last_mut() {
            debug_assert_eq!(open.through, OPEN, "a generation is closed twice");
            open.through = through;
        }
        generations.push(Generation::open(state.files.len()));
        self.state.store(Arc::new(ReplicaState::new(
            state.flushed,
            generations,
            state.files.clone(),
        )));
    }

    /// Takes over the primary's present files and drops the generations that they cover. The
    /// calls for one region must be in the order of the files' creation.
    pub(crate) fn adopt(&self, files: Vec<Arc<ReadView>>, flushed: Sequence) {
        let _changing = self.changing.lock();
        let state = self.state.load();
        let flushed = state.flushed.max(flushed);
        let mut generations: Vec<Generation> =
            state.generations.iter().filter(|g| g.through > flushed).cloned().collect();
        for generation in &mut generations {
            // A family that was added meanwhile.
            generation.memstores.resize_with(files.len(), || Arc::new(Memstore::new()));
        }
        self.state.store(Arc::new(ReplicaState::new(flushed, generations, files)));
    }

    /// Returns the view of a family for readers.
    pub(crate) fn view(&self, family: usize) -> Option<Arc<ReadView>> {
        self.state.load().views.get(family).cloned()
    }

    /// Returns the bytes in use in the replica's own memstores.
    pub(crate) fn memstore_bytes(&self) -> u64 {
        self.sum_of_memstores(Memstore::byte_count)
    }

    /// Returns the bytes of memory that the replica's own memstores hold.
    pub(crate) fn memstore_held_bytes(&self) -> u64 {
        self.sum_of_memstores(Memstore::held_bytes)
    }

    fn sum_of_memstores(&self, bytes: impl Fn(&Memstore) -> u64) -> u64 {
        let state = self.state.load();
        let memstores = state.generations.iter().flat_map(|generation| &generation.memstores);
        memstores.map(|memstore| bytes(memstore)).sum()
    }

    /// Counts rows that the replica returned.
    pub(crate) fn count_rows(&self, rows: u64) {
        self.rows_read.fetch_add(rows, Ordering::Relaxed);
    }

    /// Returns the number of rows that the replica has returned since its creation.
    pub(crate) fn rows_read(&self) -> u64 {
        self.rows_read.load(Ordering::Relaxed)
    }
}

/// The replicas of a region, as seen by the feed.
pub(crate) trait Replicated: Send + Sync {
    /// Applies the region's cells of a durable record to all its replicas.
    fn apply_to_replicas(&self, sequence: Sequence, cells: &LoggedCells<'_>);
}

/// Feed that applies durable commits to the replicas, on a separate thread, so that the log does
/// not wait.
///
/// It follows the log from the first replica on; without replicas, commits cost nothing here.
pub(crate) struct ReplicaFeed {
    applied: AtomicU64,
    applied_timestamp: AtomicI64,
    regions: RwLock<HashMap<RegionId, Weak<dyn Replicated>>>,
    /// Number of commits queued for the thread, and the bytes of their cells.
    queued: AtomicU64,
    queued_bytes: AtomicU64,
    /// Commit time of the oldest of them, while there are any.
    queued_since: AtomicI64,
    /// The commit that TIMELINE snapshots must include.
    required: AtomicU64,
    /// Gate before each commit that the thread applies.
    gate: ServiceGate,
    stopped: AtomicBool,
    sender: Mutex<Option<mpsc::Sender<QueuedCommit>>>,
    following: AtomicBool,
}

/// A commit queued for the replicas.
struct QueuedCommit {
    clock: CommitClock,
    edits: Arc<Vec<RegionEdit>>,
}

impl QueuedCommit {
    fn byte_count(&self) -> u64 {
        self.edits.iter().map(|edit| edit.cells.byte_count() as u64).sum()
    }
}

impl ReplicaFeed {
    /// Returns a feed that does not follow the log yet.
    pub(crate) fn new() -> ReplicaFeed {
        ReplicaFeed {
            applied: AtomicU64::new(u64::MAX),
            applied_timestamp: AtomicI64::new(i64::MIN),
            regions: RwLock::default(),
            queued: AtomicU64::new(0),
            queued_bytes: AtomicU64::new(0),
            queued_since: AtomicI64::new(0),
            required: AtomicU64::new(0),
            gate: ServiceGate::default(),
            stopped: AtomicBool::new(false),
            sender: Mutex::new(None),
            following: AtomicBool::new(false),
        }
    }

    /// Returns the sequence up to which replicas have all commits; the highest possible one while
    /// there are no replicas.
    pub(crate) fn applied(&self) -> Sequence {
        Sequence(self.applied.load(Ordering::Acquire))
    }

    /// Returns the number of commits that replicas have still to apply, and the bytes of their
    /// cells.
    pub(crate) fn backlog(&self) -> (u64, u64) {
        (self.queued.load(Ordering::Acquire), self.queued_bytes.load(Ordering::Acquire))
    }

    /// Returns the commit time of the oldest commit that replicas have still to apply.
    pub(crate) fn queued_since(&self) -> Option<Timestamp> {
        let since = Timestamp(self.queued_since.load(Ordering::Acquire));
        (self.queued.load(Ordering::Acquire) > 0).then_some(since)
    }

    /// Returns the time until commits are applied again; `None` if the feed is not held.
    pub(crate) fn held_for(&self) -> Option<Duration> {
        self.gate.held_for()
    }

    /// Requires TIMELINE snapshots from now on to include the commits up to `sequence`.
    pub(crate) fn require(&self, sequence: Sequence) {
        self.required.fetch_max(sequence.0, Ordering::AcqRel);
    }

    /// Returns the newest commit that TIMELINE snapshots must include.
    pub(crate) fn required(&self) -> Sequence {
        Sequence(self.required.load(Ordering::Acquire))
    }

    fn leave_queue(&self, commit: &QueuedCommit) {
        self.queued.fetch_sub(1, Ordering::AcqRel);
        self.queued_bytes.fetch_sub(commit.byte_count(), Ordering::AcqRel);
    }

    /// Returns the commit time of that commit.
    pub(crate) fn applied_timestamp(&self) -> Timestamp {
        Timestamp(self.applied_timestamp.load(Ordering::Acquire))
    }

    /// Follows the log, unless it does so already. Must be called before a region gets replicas.
    pub(crate) fn follow_log(self: &Arc<ReplicaFeed>, wal: &Wal) {
        if self.following.swap(true, Ordering::SeqCst) {
            return;
        }
        let (sender, commits) = mpsc::channel::<QueuedCommit>();
        let feed = Arc::downgrade(self);
        let spawned = spawn_thread("bennu-replicas", move || {
            for commit in commits {
                let Some(feed) = feed.upgrade() else { return };
                feed.queued_since.store(commit.clock.timestamp.0, Ordering::Release);
                // An error ends the wait: the store stops.
                drop(feed.gate.enter(None, &[&feed.stopped], &PlainWait));
                feed.apply(&commit);
                feed.leave_queue(&commit);
            }
        });
        match spawned {
            Ok(_) => *self.sender.lock() = Some(sender),
            // Without the thread, the threads that write the log do the work.
            Err(error) => tracing::warn!(%error, "could not start the replica thread"),
        }
        // From here on replicas can lag. No commit is fed before `follow` has returned its start,
        // because the marks only rise.
        let before = wal.durable();
        self.applied.store(before.0, Ordering::Release);
        let clock = wal.follow(self.clone());
        self.advance(clock);
    }

    /// Starts to feed a region. The caller holds its write gate and its memstores are empty.
    pub(crate) fn add(&self, region: RegionId, replicated: Weak<dyn Replicated>) {
        self.regions.write().insert(region, replicated);
    }

    /// Stops feeding a region.
    pub(crate) fn remove(&self, region: RegionId) {
        self.regions.write().remove(&region);
    }

    /// Ends the thread once it has applied the queued commits.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::SeqCst);
        *self.sender.lock() = None;
    }

    fn apply(&self, commit: &QueuedCommit) {
        debug_assert!(commit.clock.sequence > self.applied(), "records are applied in order");
        {
            let regions = self.regions.read();
            for edit in commit.edits.iter() {
                if let Some(region) = regions.get(&edit.region).and_then(Weak::upgrade) {
                    let cells = edit.cells.of(commit.clock);
                    region.apply_to_replicas(commit.clock.sequence, &cells);
                }
            }
        }
        self.advance(commit.clock);
    }

    fn advance(&self, clock: CommitClock) {
        self.applied.fetch_max(clock.sequence.0, Ordering::AcqRel);
        self.applied_timestamp.fetch_max(clock.timestamp.0, Ordering::AcqRel);
    }

    fn concerns(&self, edits: &[RegionEdit]) -> bool {
        let regions = self.regions.read();
        edits.iter().any(|edit| regions.contains_key(&edit.region))
    }
}

impl Gated for ReplicaFeed {
    fn gate(&self) -> &ServiceGate {
        &self.gate
    }
}

impl WalFollower for ReplicaFeed {
    fn follow(&self, clock: CommitClock, edits: Option<&Arc<Vec<RegionEdit>>>) {
        // The log reports one commit at a time, so no other can be queued in between.
        let idle = self.queued.load(Ordering::Acquire) == 0;
        let edits = match edits {
            Some(edits) if !idle || self.concerns(edits) => Arc::clone(edits),
            // A commit that was appended before the log was followed wrote to no region with
            // replicas.
            None if !idle => Arc::default(),
            _ => return self.advance(clock),
        };
        let commit = QueuedCommit { clock, edits };
        if idle {
            self.queued_since.store(clock.timestamp.0, Ordering::Release);
        }
        self.queued.fetch_add(1, Ordering::AcqRel);
        self.queued_bytes.fetch_add(commit.byte_count(), Ordering::AcqRel);
        let sender = self.sender.lock();
        let unsent = match sender.as_ref() {
            Some(sender) => sender.send(commit).err().map(|unsent| unsent.0),
            None => Some(commit),
        };
        drop(sender);
        if let Some(commit) = unsent {
            self.apply(&commit);
            self.leave_queue(&commit);
        }
    }
}
