//! Calls of endpoints: in every region of the called ranges, side by side.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::descriptor::{RegionId, TableId};
use crate::error::{Error, Result};
use crate::observer::{Endpoint, EndpointContext, guarded};
use crate::region::Region;
use crate::scan::Scan;
use crate::scanner::Scanner;
use crate::table::Table;
use crate::transaction::Transaction;

/// A half-open range of rows; `None` at the end means open.
type RowRange = (Vec<u8>, Option<Vec<u8>>);

/// One region's part of a call.
struct RegionCall<'a> {
    transaction: &'a Transaction,
    table: &'a Table,
    region: &'a Region,
    ranges: Vec<RowRange>,
    /// Set when another region failed.
    stopped: &'a Arc<AtomicBool>,
}

impl Transaction {
    /// Calls an endpoint in every region that overlaps one of the half-open row ranges (ascending,
    /// disjoint; a `None` stop is open), in parallel, and returns the answers in region order.
    ///
    /// # Errors
    ///
    /// The first error of any region; the others are stopped then.
    pub fn call_endpoint<E: Endpoint>(
        &self,
        table: TableId,
        ranges: &[RowRange],
        endpoint: &E,
        request: &E::Request,
    ) -> Result<Vec<E::Response>> {
        let table = self.engine.table(table)?;
        // The snapshot is taken here, once, before threads ask for it.
        self.snapshot();
        let map = Arc::clone(&table.regions());
        let stopped = Arc::new(AtomicBool::new(false));
        let calls: Vec<RegionCall<'_>> = map
            .all()
            .iter()
            .filter_map(|region| {
                let ranges = clip(ranges, region);
                let call = RegionCall {
                    transaction: self,
                    table: &table,
                    region,
                    ranges,
                    stopped: &stopped,
                };
                (!call.ranges.is_empty()).then_some(call)
            })
            .collect();
        if calls.len() > 1
            && let Some(pool) = self.engine.pool()
        {
            return run_in_parallel(pool, &calls, |call| call.run(endpoint, request));
        }
        calls.iter().map(|call| call.run(endpoint, request)).collect()
    }
}

/// Runs all calls on the pool's threads and this one; returns the answers in order.
fn run_in_parallel<T: Send>(
    pool: &rayon_core::ThreadPool,
    calls: &[RegionCall<'_>],
    run: impl Fn(&RegionCall<'_>) -> Result<T> + Sync,
) -> Result<Vec<T>> {
    let answers: Vec<Mutex<Option<T>>> = calls.iter().map(|_| Mutex::new(None)).collect();
    let failure: Mutex<Option<Error>> = Mutex::new(None);
    let next = AtomicUsize::new(0);
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(call) = calls.get(index) else { return };
            if call.stopped.load(Ordering::Relaxed) {
                return;
            }
            match run(call) {
                Ok(answer) => *answers[index].lock() = Some(answer),
                Err(error) => {
                    // Those that were stopped by the first error fail too; the first one counts.
                    if !call.stopped.swap(true, Ordering::SeqCst) {
                        *failure.lock() = Some(error);
                    }
                    return;
                }
            }
        }
    };
    pool.in_place_scope(|scope| {
        let others = pool.current_num_threads().min(calls.len()) - 1;
        for _ in 0..others {
            scope.spawn(|_| work());
        }
        work();
    });
    if let Some(error) = failure.into_inner() {
        return Err(error);
    }
    let answers = answers.into_iter().map(|answer| answer.into_inner());
    answers.collect::<Option<Vec<T>>>().ok_or(Error::Cancelled)
}

impl RegionCall<'_> {
    fn run<E: Endpoint>(&self, endpoint: &E, request: &E::Request) -> Result<E::Response> {
        self.check_cancelled()?;
        guarded(endpoint.name(), || endpoint.call(self, request))
    }
}

impl EndpointContext for RegionCall<'_> {
    fn region(&self) -> RegionId {
        self.region.id()
    }

    fn ranges(&self) -> &[RowRange] {
        &self.ranges
    }

    fn scan(&self, mut scan: Scan) -> Result<Scanner> {
        if scan.start.as_slice() < self.region.start() {
            scan.start = self.region.start().to_vec();
        }
        scan.stop = earlier_stop(scan.stop, self.region.stop());
        self.transaction.open_scanner(self.table, scan, Some(self.stopped))
    }

    fn check_cancelled(&self) -> Result<()> {
        let cancelled = self.transaction.options.cancelled.load(Ordering::Relaxed);
        match cancelled || self.stopped.load(Ordering::Relaxed) {
            true => Err(Error::Cancelled),
            false => Ok(()),
        }
    }
}

/// Returns the parts of the ranges that lie in a region.
fn clip(ranges: &[RowRange], region: &Region) -> Vec<RowRange> {
    let mut clipped = Vec::new();
    for (start, stop) in ranges {
        let start = start.as_slice().max(region.start()).to_vec();
        let stop = earlier_stop(stop.clone(), region.stop());
        if stop.as_ref().is_none_or(|stop| start < *stop) {
            clipped.push((start, stop));
        }
    }
    clipped
}

/// Returns the earlier of two stops, `None` being the latest of all.
fn earlier_stop(stop: Option<Vec<u8>>, limit: Option<&[u8]>) -> Option<Vec<u8>> {
    match (stop, limit) {
        (Some(stop), Some(limit)) if limit < stop.as_slice() => Some(limit.to_vec()),
        (None, Some(limit)) => Some(limit.to_vec()),
        (stop, _) => stop,
    }
}
