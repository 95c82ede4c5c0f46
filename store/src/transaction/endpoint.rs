//! Calls of endpoints: over ranges of rows, page by page, with regions in parallel.
//!
//! The ranges are cut into partitions when the call begins ([`scan_partitions`]). Each partition is
//! processed page by page, and each page by the region that holds its first row at that time. So
//! a call is correct even if regions split, merge or move meanwhile: it addresses rows, not
//! regions.
//!
//! Region threads and the caller compute pages ([`read_ahead`](crate::read_ahead)), and the
//! caller receives them as they are completed; so few are buffered that their number does not
//! matter.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use crate::admission::without_slot;
use crate::descriptor::{RegionId, TableId};
use crate::endpoint::{Endpoint, EndpointContext, Page};
use crate::endpoint_calls::{CallProgress, EndpointCallStatus};
use crate::error::{Error, Result, Veto};
use crate::observer::{EndpointCallMonitor, HookContext, guarded, no_endpoint};
use crate::read_ahead::{Bounds, Producer, ReadAheadQueue, Take};
use crate::region::MapSection;
use crate::scan::Scan;
use crate::scanner::Scanner;
use crate::transaction::scan_partitions::{
    self, PartitionRange, ScanPartitions, cut, earlier_stop, within,
};
use crate::transaction::{TableReader, Transaction};

/// Approximate time limit of a page.
const PAGE_MICROS: i64 = 50_000;
/// Answers of one partition that are buffered for the caller.
const PAGES_AHEAD: usize = 2;

/// State shared by the partitions of a call.
struct Call<'a, E: Endpoint> {
    transaction: &'a Transaction,
    reader: TableReader,
    endpoint: &'a E,
    request: &'a E::Request,
    progress: &'a CallProgress,
    /// Set when a partition failed.
    stopped: &'a Arc<AtomicBool>,
    /// Rows after which a page ends.
    page_rows: u64,
    /// Number of rows after which region threads join the call, if they may.
    rows_alone: Option<u64>,
    /// Monitor of an attached endpoint.
    watch: Option<&'a EndpointCallMonitor>,
}

/// A call of an endpoint that is attached to a table: monitored, counted, and rejected while the
/// endpoint is suspended. All code of the endpoint's author runs inside it.
pub struct AttachedEndpoint<'t> {
    transaction: &'t Transaction,
    table: TableId,
    watch: EndpointCallMonitor,
}

/// A partition of a call, with the ranges that are still to be processed.
struct PartitionCall<'a, E: Endpoint> {
    call: &'a Call<'a, E>,
    rest: scan_partitions::ScanPartition,
}

/// One page.
struct PageCall<'a, E: Endpoint> {
    call: &'a Call<'a, E>,
    section: MapSection<'a>,
    ranges: Vec<PartitionRange>,
    /// Number of rows read.
    rows: AtomicU64,
    began_micros: i64,
    /// Context with the time limit, if the endpoint is attached.
    hook: Option<&'a HookContext<'a>>,
}

impl Transaction {
    /// Calls an endpoint for the rows of the ranges (half-open, ascending, disjoint; a `None`
    /// stop means no stop) and passes every answer to `take`, in any order. Each row is in
    /// exactly one answer; the store chooses the number of rows per answer. The call reads the
    /// snapshot of `reader`.
    ///
    /// # Errors
    ///
    /// The first error of any region, or of `take`; the other partitions are stopped then.
    pub fn call_endpoint<E: Endpoint, F: From<Error>>(
        &self,
        reader: &TableReader,
        ranges: &[PartitionRange],
        endpoint: &E,
        request: &E::Request,
        take: impl FnMut(E::Response) -> std::result::Result<(), F>,
    ) -> std::result::Result<(), F> {
        self.call_watched((reader, None), ranges, endpoint, request, take)
    }

    /// Begins a call of the endpoint that is attached to a table by this name, through an
    /// [`EndpointSeat`](crate::observer::EndpointSeat) in the table's chain of observers.
    ///
    /// # Errors
    ///
    /// [`Error::NoSuchTable`]; [`Error::InvalidRequest`] if there is no such endpoint; one with
    /// code `55000` if it is suspended.
    pub fn attached_endpoint(&self, table: TableId, name: &str) -> Result<AttachedEndpoint<'_>> {
        let found = self.engine.table(table)?;
        let watch = match found.observers().chain() {
            Some(chain) => chain.watch_endpoint(name)?,
            None => return Err(no_endpoint(&found.descriptor().name, name)),
        };
        Ok(AttachedEndpoint { transaction: self, table, watch })
    }

    fn call_watched<E: Endpoint, F: From<Error>>(
        &self,
        (reader, watch): (&TableReader, Option<&EndpointCallMonitor>),
        ranges: &[PartitionRange],
        endpoint: &E,
        request: &E::Request,
        mut take: impl FnMut(E::Response) -> std::result::Result<(), F>,
    ) -> std::result::Result<(), F> {
        let stopped = Arc::new(AtomicBool::new(false));
        let reader = reader.clone().until(&stopped);
        let options = self.engine.options();
        let piece_bytes = (options.region_threads > 1).then_some(options.parallel_piece_bytes);
        let ScanPartitions { parts, region_count } = cut(ranges, &reader.regions(), piece_bytes);
        let running = self.engine.endpoint_calls.begin(EndpointCallStatus {
            call: 0,
            table: reader.table(),
            endpoint: watch.map_or_else(|| endpoint.name(), EndpointCallMonitor::name).to_owned(),
            transaction: self.owner.0,
            started_micros: self.engine.options().env.now_micros(),
            rows: 0,
            pages: 0,
            regions_done: 0,
            regions: region_count as u64,
        });
        let pool = self.engine.pool().filter(|_| parts.len() > 1);
        let call = Call {
            transaction: self,
            reader,
            endpoint,
            request,
            progress: running.progress(),
            stopped: &stopped,
            page_rows: self.engine.options().endpoint_page_rows.max(1),
            rows_alone: pool.map(|_| self.engine.options().parallel_after_rows),
            watch,
        };
        let threads = pool.map_or(0, rayon_core::ThreadPool::current_num_threads);
        let bounds = Bounds { items: PAGES_AHEAD, bytes: usize::MAX, parts: threads + 1 };
        let parts = parts.into_iter().map(|rest| PartitionCall { call: &call, rest });
        let gauge = Arc::clone(&self.engine.read_ahead);
        let shared = ReadAheadQueue::new(parts, bounds, Arc::clone(&stopped), gauge);
        let Some(pool) = pool else { return call.run(&shared, &mut take, &mut |_| ()) };
        // The scope's end waits for the other threads, which need execution slots.
        without_slot(|| {
            pool.in_place_scope(|scope| {
                let shared = &shared;
                let queue = &mut |part| scope.spawn(move |_| shared.work(part));
                call.run(shared, &mut take, queue)
            })
        })
    }
}

impl<E: Endpoint> Call<'_, E> {
    /// Passes the answers of all partitions to `take`.
    fn run<'a, F: From<Error>>(
        &self,
        parts: &ReadAheadQueue<PartitionCall<'a, E>>,
        take: &mut impl FnMut(E::Response) -> std::result::Result<(), F>,
        queue: &mut dyn FnMut(usize),
    ) -> std::result::Result<(), F> {
        let blocking = &*self.transaction.engine.options().blocking;
        let outcome = loop {
            match parts.next(Take::Any, blocking, queue) {
                Ok(Some((_, answer))) => {
                    if let Err(error) = take(answer) {
                        break Err(error);
                    }
                }
                Ok(None) => return Ok(()),
                Err(error) => break Err(error.into()),
            }
            if self.rows_alone.is_some_and(|alone| self.progress.rows() >= alone) {
                parts.go_parallel();
            }
        };
        parts.stop();
        outcome
    }
}

impl<E: Endpoint> Producer for PartitionCall<'_, E> {
    type Item = E::Response;
    type Error = Error;

    fn next(&mut self) -> Result<Option<E::Response>> {
        let Some((first, _)) = self.rest.ranges.first() else { return Ok(None) };
        let call = self.call;
        let _turn = call.reader.turn();
        let map = call.reader.regions();
        let section = map.section(map.section_of(first));
        let Page { response, rest } = call.page(section, &self.rest.ranges)?;
        let from = match rest {
            Some(row) => Some(row),
            None => section.stop.map(<[u8]>::to_vec),
        };
        let rest = |from: Vec<u8>| within(&self.rest.ranges, &from, None);
        self.rest.ranges = from.map_or_else(Vec::new, rest);
        call.progress.add_page();
        if self.rest.ranges.is_empty() && self.rest.is_last() {
            call.progress.add_region();
        }
        Ok(Some(response))
    }

    fn byte_count(_: &E::Response) -> usize {
        // The size is unknown; the number of buffered answers is bounded.
        0
    }
}

impl AttachedEndpoint<'_> {
    /// Runs code of the endpoint's author outside of a region: building the request, or combining
    /// the answers.
    ///
    /// # Errors
    ///
    /// Errors of the code; one with code `38000` that names the endpoint if it panics or exceeds
    /// its time limit.
    pub fn run<T>(&self, code: impl FnOnce() -> Result<T>) -> Result<T> {
        self.watch.run(0, |_| code())
    }

    /// Calls the endpoint as [`Transaction::call_endpoint`] does.
    ///
    /// # Errors
    ///
    /// The first error of any region, or of `take`.
    pub fn call<E: Endpoint>(
        &self,
        ranges: &[PartitionRange],
        endpoint: &E,
        request: &E::Request,
        mut take: impl FnMut(E::Response) -> Result<()>,
    ) -> Result<()> {
        let take = |answer| self.run(|| take(answer));
        let reader = self.transaction.reader(self.table)?;
        let place = (&reader, Some(&self.watch));
        self.transaction.call_watched(place, ranges, endpoint, request, take)
    }

    /// Records a successful call, which resets the count of failures.
    pub fn succeeded(self) {
        self.watch.succeeded();
    }
}

impl<E: Endpoint> Call<'_, E> {
    /// Computes a page of the remaining ranges, in one region.
    fn page(&self, section: MapSection<'_>, rest: &[PartitionRange]) -> Result<Page<E::Response>> {
        match self.watch {
            None => guarded(self.endpoint.name(), || self.page_within(section, rest, None)),
            Some(watch) => watch.run(1, |hook| self.page_within(section, rest, Some(hook))),
        }
    }

    fn page_within(
        &self,
        section: MapSection<'_>,
        rest: &[PartitionRange],
        hook: Option<&HookContext<'_>>,
    ) -> Result<Page<E::Response>> {
        let page = PageCall {
            call: self,
            section,
            ranges: within(rest, section.start, section.stop),
            rows: AtomicU64::new(0),
            began_micros: self.now_micros(),
            hook,
        };
        page.check_cancelled()?;
        let answer = self.endpoint.call(&page, self.request)?;
        answer.rest.as_deref().map_or(Ok(()), |row| page.check_rest(row))?;
        Ok(answer)
    }

    fn now_micros(&self) -> i64 {
        self.transaction.engine.options().env.now_micros()
    }
}

impl<E: Endpoint> PageCall<'_, E> {
    /// Checks that the end of a page allows continuing: after its beginning, within the ranges.
    fn check_rest(&self, row: &[u8]) -> Result<()> {
        let begins = self.ranges.first().is_some_and(|(start, _)| row <= start.as_slice());
        let inside = self.ranges.iter().any(|(start, stop)| {
            row >= start.as_slice() && stop.as_deref().is_none_or(|stop| row < stop)
        });
        if inside && !begins {
            return Ok(());
        }
        let name =
            self.call.watch.map_or_else(|| self.call.endpoint.name(), EndpointCallMonitor::name);
        Err(Error::Vetoed(Box::new(Veto {
            coprocessor: name.to_owned(),
            code: "XX000".into(),
            message: format!("endpoint \"{name}\" returned an end key outside its page"),
            ..Veto::default()
        })))
    }
}

impl<E: Endpoint> EndpointContext for PageCall<'_, E> {
    fn region(&self) -> RegionId {
        self.section.regions[0].id()
    }

    fn ranges(&self) -> &[PartitionRange] {
        &self.ranges
    }

    fn scan(&self, mut scan: Scan) -> Result<Scanner> {
        let observers = self.call.reader.show(&mut scan)?;
        if scan.start.as_slice() < self.section.start {
            scan.start = self.section.start.to_vec();
        }
        scan.stop = earlier_stop(scan.stop, self.section.stop);
        self.call.reader.open(scan, observers)
    }

    fn note_rows(&self, rows: u64) -> Result<bool> {
        self.check_cancelled()?;
        let of_call = self.call.progress.add_rows(rows);
        let of_page = self.rows.fetch_add(rows, Ordering::Relaxed) + rows;
        // The page at which region threads may join ends early, so that the caller can start
        // them.
        let join =
            self.call.rows_alone.is_some_and(|alone| of_call - rows < alone && of_call >= alone);
        Ok(join
            || of_page >= self.call.page_rows
            || self.call.now_micros().saturating_sub(self.began_micros) >= PAGE_MICROS)
    }

    fn check_cancelled(&self) -> Result<()> {
        self.hook.map_or(Ok(()), HookContext::check_deadline)?;
        let cancelled = self.call.transaction.options.cancelled.load(Ordering::Relaxed);
        match cancelled || self.call.stopped.load(Ordering::Relaxed) {
            true => Err(Error::Cancelled),
            false => Ok(()),
        }
    }
}
