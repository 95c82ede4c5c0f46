//! Cell filters that the observers of a table return for a flush or a compaction, combined into
//! one.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

use crate::cell::CellRef;
use crate::compaction::{CellFilter, CellVerdict};
use crate::error::Result;
use crate::observer::call_statistics::Call;
use crate::observer::chain::CallMonitor;
use crate::observer::hook::Hook;

/// One call in this many is timed: reading the clock costs as much as a small filter.
const TIMED_CALLS: u64 = 64;

/// A filter with its monitor.
pub(super) struct MonitoredFilter {
    filter: Box<dyn CellFilter>,
    warden: Arc<CallMonitor>,
    call: Call,
    /// True after a failure, which ends the rewrite.
    failed: bool,
    calls: u64,
    spent_micros: i64,
    longest_micros: i64,
}

/// Filters applied one after the other.
pub(super) struct Filters(pub(super) Vec<MonitoredFilter>);

impl MonitoredFilter {
    /// Wraps the filter that a hook of an observer returned.
    pub(super) fn new(
        filter: Box<dyn CellFilter>,
        warden: &Arc<CallMonitor>,
        hook: Hook,
    ) -> MonitoredFilter {
        let warden = Arc::clone(warden);
        MonitoredFilter {
            filter,
            warden,
            call: Call::Filter(hook),
            failed: false,
            calls: 0,
            spent_micros: 0,
            longest_micros: 0,
        }
    }
}

impl MonitoredFilter {
    /// Records a failure. Success with one cell is not recorded: a filter succeeds if it has not
    /// failed by the end.
    fn settle(
        &mut self,
        ended: std::thread::Result<Result<CellVerdict>>,
        spent_micros: i64,
    ) -> Result<CellVerdict> {
        let context = self.warden.begin();
        match ended {
            Ok(Ok(verdict)) if !context.is_overrun(spent_micros) => Ok(verdict),
            ended => {
                self.failed = true;
                self.warden.record_outcome(self.call, ended, (&context, spent_micros))
            }
        }
    }
}

impl CellFilter for MonitoredFilter {
    fn judge(&mut self, cell: &CellRef<'_>) -> Result<CellVerdict> {
        let timed = self.calls.is_multiple_of(TIMED_CALLS);
        self.calls += 1;
        let started = timed.then(|| self.warden.now_micros());
        let ended = catch_unwind(AssertUnwindSafe(|| self.filter.judge(cell)));
        let spent = match started {
            None => 0,
            Some(started) => self.warden.now_micros().saturating_sub(started).max(0),
        };
        self.spent_micros = self.spent_micros.saturating_add(spent);
        self.longest_micros = self.longest_micros.max(spent);
        match ended {
            Ok(Ok(verdict)) if !timed => Ok(verdict),
            ended => self.settle(ended, spent),
        }
    }
}

impl Drop for MonitoredFilter {
    fn drop(&mut self) {
        let timed = self.calls.div_ceil(TIMED_CALLS).max(1);
        let calls = i64::try_from(self.calls / timed).unwrap_or(i64::MAX);
        let spent = self.spent_micros.saturating_mul(calls);
        self.warden.count(self.calls, spent, self.longest_micros);
        if self.calls > 0 && !self.failed {
            self.warden.succeeded(self.call);
        }
    }
}

impl CellFilter for Filters {
    fn judge(&mut self, cell: &CellRef<'_>) -> Result<CellVerdict> {
        let mut changed: Option<Vec<u8>> = None;
        for filter in &mut self.0 {
            let value = changed.as_deref().unwrap_or(cell.value);
            match filter.judge(&CellRef { value, ..*cell })? {
                CellVerdict::Keep => {}
                CellVerdict::Drop => return Ok(CellVerdict::Drop),
                CellVerdict::Change(value) => changed = Some(value),
            }
        }
        Ok(changed.map_or(CellVerdict::Keep, CellVerdict::Change))
    }
}
