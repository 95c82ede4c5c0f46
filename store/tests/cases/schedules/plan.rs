//! Generation of a schedule's steps from a seed.

use store::env::fault::{Fault, Operation, Unsynced};

/// Number of rows that schedules write; small, so that they conflict.
pub(super) const ROWS: u8 = 12;
/// Number of tables that exist at a time.
pub(super) const SLOTS: u8 = 3;

/// A schedule.
#[derive(Debug, Clone)]
pub(super) struct Plan {
    pub(super) seed: u64,
    pub(super) settings: Settings,
    pub(super) steps: Vec<Step>,
}

/// Settings of the store.
#[derive(Debug, Clone)]
pub(super) struct Settings {
    pub(super) wal_segment_bytes: u64,
    pub(super) memstore_flush_bytes: u64,
    /// True if obsolete log segments are archived.
    pub(super) archive: bool,
    /// Bytes of staged cells above which transactions spill.
    pub(super) staged_bytes_max: Option<u64>,
}

/// A write of one row.
#[derive(Debug, Clone)]
pub(super) enum Write {
    /// A value of this many bytes.
    Put {
        slot: u8,
        row: u8,
        family: u8,
        bytes: u16,
    },
    DeleteRow {
        slot: u8,
        row: u8,
    },
}

impl Write {
    pub(super) fn slot(&self) -> u8 {
        match self {
            Write::Put { slot, .. } | Write::DeleteRow { slot, .. } => *slot,
        }
    }
}

/// Wait of the schedule for a commit.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum WaitingStep {
    Durable,
    Nothing,
    /// None, and the commit itself is ASYNC_WAL.
    Asynchronous,
}

/// End of a process.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum End {
    Clean,
    Crash(Unsynced),
}

#[derive(Debug, Clone)]
pub(super) enum Step {
    Commit {
        writes: Vec<Write>,
        waiting: WaitingStep,
    },
    Wait,
    Read,
    Flush {
        slot: u8,
    },
    /// By the background threads.
    FlushSoon {
        slot: u8,
    },
    Compact {
        slot: u8,
        major: bool,
    },
    /// Bulk loads these rows.
    BulkLoad {
        slot: u8,
        rows: Vec<u8>,
    },
    Create {
        slot: u8,
        regions: u8,
        replicas: u8,
    },
    Drop {
        slot: u8,
    },
    /// Adds a family.
    Alter {
        slot: u8,
    },
    /// Splits the region of a row before it.
    Split {
        slot: u8,
        row: u8,
    },
    /// Merges the region of a row with its neighbour.
    Merge {
        slot: u8,
        row: u8,
    },
    /// Its copy is opened when the process has ended.
    Checkpoint,
    Inject(Fault),
    LeaveRoom(u64),
    /// The process loses its disk after this many changes.
    FailAfter(u64),
    Calm,
    /// The next process opens, perhaps with a failure, and is checked.
    Restart {
        end: End,
        fault: Option<Fault>,
    },
    /// Flips a bit of a store file or of the log while no process runs; ends the schedule.
    Flip {
        file: u64,
        bit: u64,
    },
    /// Always fails: for the test of the test.
    Impossible,
}

/// Pseudorandom numbers from the seed.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % end
    }

    fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn pick<T: Copy>(&mut self, of: &[T]) -> T {
        of[self.below(of.len() as u64) as usize]
    }
}

impl Plan {
    /// Returns the schedule of a seed.
    pub(super) fn of_seed(seed: u64) -> Plan {
        let mut random = Random(seed);
        let settings = Settings {
            wal_segment_bytes: random.pick(&[150, 600, 4000, 1 << 20]),
            memstore_flush_bytes: random.pick(&[500, 1 << 20, 1 << 20]),
            archive: random.chance(30),
            // Not drawn, so that the rest of a seed's schedule does not depend on it.
            staged_bytes_max: seed.is_multiple_of(3).then_some(0),
        };
        let mut steps = vec![create(&mut random, 0)];
        for _ in 0..1 + random.below(3) {
            for _ in 0..2 + random.below(14) {
                let step = step(&mut random);
                let writes_files = !matches!(step, Step::Commit { .. } | Step::Wait | Step::Read);
                if writes_files && random.chance(15) {
                    steps.push(Step::Inject(fault(&mut random, 3)));
                }
                steps.push(step);
            }
            let fault = random.chance(20).then(|| fault(&mut random, 12));
            steps.push(Step::Restart { end: end(&mut random), fault });
        }
        if random.chance(15) {
            steps.push(Step::Flip { file: random.below(1 << 20), bit: random.below(1 << 40) });
        }
        Plan { seed, settings, steps }
    }
}

fn end(random: &mut Random) -> End {
    let unsynced = [Unsynced::Lost, Unsynced::Kept, Unsynced::Torn, Unsynced::Holed];
    if random.chance(25) { End::Clean } else { End::Crash(random.pick(&unsynced)) }
}

fn create(random: &mut Random, slot: u8) -> Step {
    let replicas = if random.chance(15) { 2 } else { 1 };
    Step::Create { slot, regions: 1 + random.below(3) as u8, replicas }
}

fn fault(random: &mut Random, calls: u64) -> Fault {
    Fault {
        operation: random.pick(&Operation::ALL),
        after: random.below(calls),
        count: random.pick(&[1, 1, 2, 1000]),
    }
}

fn step(random: &mut Random) -> Step {
    let slot = random.below(u64::from(SLOTS)) as u8;
    match random.below(100) {
        0..42 => commit(random),
        42..45 => Step::BulkLoad { slot, rows: (0..ROWS).filter(|_| random.chance(40)).collect() },
        45..50 => Step::Wait,
        50..56 => Step::Read,
        56..66 => Step::Flush { slot },
        66..68 => Step::FlushSoon { slot },
        68..75 => Step::Compact { slot, major: random.chance(60) },
        75..81 => create(random, slot),
        81..84 => Step::Drop { slot },
        84..85 => Step::Alter { slot },
        85..87 => Step::Split { slot, row: random.below(u64::from(ROWS)) as u8 },
        87..88 => Step::Merge { slot, row: random.below(u64::from(ROWS)) as u8 },
        88..93 => Step::Inject(fault(random, 6)),
        93..95 => Step::LeaveRoom(random.below(600)),
        95..97 => Step::FailAfter(random.below(12)),
        97..98 => Step::Checkpoint,
        _ => Step::Calm,
    }
}

fn commit(random: &mut Random) -> Step {
    let writes = (0..1 + random.below(4)).map(|_| {
        let slot = if random.chance(60) { 0 } else { random.below(u64::from(SLOTS)) as u8 };
        let row = random.below(u64::from(ROWS)) as u8;
        if random.chance(20) {
            return Write::DeleteRow { slot, row };
        }
        let bytes = random.pick(&[4, 10, 10, 40, 300]);
        Write::Put { slot, row, family: random.below(2) as u8, bytes }
    });
    let writes = writes.collect();
    let waiting = [
        WaitingStep::Durable,
        WaitingStep::Durable,
        WaitingStep::Nothing,
        WaitingStep::Asynchronous,
    ];
    Step::Commit { writes, waiting: random.pick(&waiting) }
}
