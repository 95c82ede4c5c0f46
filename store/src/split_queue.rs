//! Regions that may have to be split: what flushes and compactions leave to the thread that splits.

use std::collections::BTreeSet;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::descriptor::RegionId;

/// How often regions are looked at of which time alone can make something.
const TICK: Duration = Duration::from_secs(10);

/// Regions that are to be looked at.
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

/// What the thread is to do.
pub(crate) enum Turn {
    /// To look at a region.
    Look(RegionId),
    /// To look at all of which time alone can make something.
    Tick,
    /// To end.
    Stop,
}

impl SplitQueue {
    /// Asks for a look at a region.
    pub(crate) fn want(&self, region: RegionId) {
        self.state.lock().wanted.insert(region);
        self.changed.notify_one();
    }

    /// Ends the thread.
    pub(crate) fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_all();
    }

    /// Waits for something to do.
    pub(crate) fn next(&self) -> Turn {
        let mut state = self.state.lock();
        loop {
            if state.stopped {
                return Turn::Stop;
            }
            if let Some(region) = state.wanted.pop_first() {
                return Turn::Look(region);
            }
            if self.changed.wait_for(&mut state, TICK).timed_out() {
                return Turn::Tick;
            }
        }
    }
}
