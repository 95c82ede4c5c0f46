//! Queue of regions to be checked for a split, filled by flushes and compactions, read by the
//! splitting thread.

use std::collections::BTreeSet;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::descriptor::RegionId;

/// Interval at which regions that may be due for a split by time are checked.
const TICK: Duration = Duration::from_secs(10);

/// Queue of regions to be checked.
#[derive(Default)]
pub(crate) struct SplitQueue {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    wanted: BTreeSet<RegionId>,
    stopped: bool,
}

/// Next action of the thread.
pub(crate) enum SplitTask {
    /// Check a region.
    Look(RegionId),
    /// Check all regions that may be due by time.
    Tick,
    /// End.
    Stop,
}

impl SplitQueue {
    /// Queues a region.
    pub(crate) fn want(&self, region: RegionId) {
        self.state.lock().wanted.insert(region);
        self.changed.notify_one();
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Waits for the next action.
    pub(crate) fn next(&self) -> SplitTask {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return SplitTask::Stop;
            }
            if let Some(region) = state.wanted.pop_first() {
                return SplitTask::Look(region);
            }
            if self.changed.wait_for(&mut state, TICK).timed_out() {
                return SplitTask::Tick;
            }
        }
    }
}
