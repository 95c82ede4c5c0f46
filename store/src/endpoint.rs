//! Endpoints: requests that the regions of a key range answer in parts, page by page.
//!
//! A page is one call: some rows of one region, or all of them. Between two pages nothing of the
//! region is held; the next one is asked of whatever region holds the row at which the last one
//! ended, so that regions may be split and merged meanwhile.

use crate::descriptor::RegionId;
use crate::error::Result;
use crate::scan::{Position, Scan};
use crate::scanner::Scanner;

/// A request that is answered in parts, which the caller puts together.
pub trait Endpoint: Send + Sync {
    /// What is asked.
    type Request: Send + Sync;
    /// What one page answers.
    type Response: Send;

    /// A short fixed name for logs, errors and EXPLAIN.
    fn name(&self) -> &str;

    /// Computes the answer of one page: of the rows of [`EndpointContext::ranges`], or of those
    /// before the row that [`Page::rest`] names.
    ///
    /// An endpoint reports the rows it reads to [`EndpointContext::note_rows`] and returns when the
    /// page is full. One that never does so answers a region in one call, and holds a thread for
    /// as long as that takes.
    ///
    /// # Errors
    ///
    /// Any error ends the whole call, in all regions.
    fn call(
        &self,
        region: &dyn EndpointContext,
        request: &Self::Request,
    ) -> Result<Page<Self::Response>>;
}

/// The answer of one call of an endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Page<R> {
    /// The answer of the rows before `rest`.
    pub response: R,
    /// The first row of the ranges that is not in the answer: the caller asks again from there. It
    /// lies in the ranges and after their first row. `None`: the answer is of all of them.
    pub rest: Option<Vec<u8>>,
}

impl<R> Page<R> {
    /// Returns the answer of all ranges.
    pub fn whole(response: R) -> Page<R> {
        Page { response, rest: None }
    }

    /// Returns the answer of the rows before this one.
    pub fn until(row: Vec<u8>, response: R) -> Page<R> {
        Page { response, rest: Some(row) }
    }
}

/// What an endpoint sees of its region.
pub trait EndpointContext {
    /// The region.
    fn region(&self) -> RegionId;

    /// What is left of the called key ranges in this region, as half-open row ranges in order;
    /// `None` at the end means open.
    fn ranges(&self) -> &[(Vec<u8>, Option<Vec<u8>>)];

    /// Scans within [`EndpointContext::ranges`] under the caller's snapshot and over its own staged
    /// writes. `scan`'s start and stop are the endpoint's to take from the ranges.
    fn scan(&self, scan: Scan) -> Result<Scanner>;

    /// Notes that so many more rows were read, for the progress of the call; returns whether the
    /// page is full. To be called once a batch.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) once the caller does not want the answer any
    /// more.
    fn note_rows(&self, rows: u64) -> Result<bool>;

    /// Returns [`Error::Cancelled`](crate::Error::Cancelled) once the caller does not want the
    /// answer any more. To be called at least once a batch by who does not call
    /// [`EndpointContext::note_rows`].
    fn check_cancelled(&self) -> Result<()>;

    /// Notes rows as [`EndpointContext::note_rows`] does and returns, if the page is full, the row
    /// at which it ends: the next of a forward scan. `None` also if that scan is at its end; the
    /// ranges after its own are then in no page yet.
    fn page_end(&self, rows: u64, scanner: &mut Scanner) -> Result<Option<Vec<u8>>> {
        if !self.note_rows(rows)? {
            return Ok(None);
        }
        Ok(match scanner.position()? {
            Position::At(row) => Some(row),
            _ => None,
        })
    }
}
