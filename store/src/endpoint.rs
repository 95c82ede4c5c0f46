//! Endpoints: requests that the regions of a key range answer in parts, page by page.
//!
//! A page is one call: some rows of one region, or all of them. Between two pages no state of the
//! region is held; the next page is computed by the region that holds the end row of the previous
//! one at that time, so that regions may be split and merged meanwhile.

use crate::descriptor::RegionId;
use crate::error::Result;
use crate::scan::{Scan, ScanPosition};
use crate::scanner::Scanner;

/// A request that is answered in parts, which the caller combines.
pub trait Endpoint: Send + Sync {
    /// Type of the request.
    type Request: Send + Sync;
    /// Type of the answer of one page.
    type Response: Send;

    /// A short fixed name for logs, errors and EXPLAIN.
    fn name(&self) -> &str;

    /// Computes the answer of one page: for the rows of [`EndpointContext::ranges`], or for those
    /// before the row in [`Page::rest`].
    ///
    /// An endpoint reports the rows it reads to [`EndpointContext::note_rows`] and returns when
    /// the page is full. One that does not answers for a region in one call, and occupies a
    /// thread for that time.
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
    /// The answer for the rows before `rest`.
    pub response: R,
    /// The first row of the ranges that is not in the answer, where the next call continues. It
    /// must be in the ranges and after their first row. `None`: the answer is for all of them.
    pub rest: Option<Vec<u8>>,
}

impl<R> Page<R> {
    /// Returns the answer for all ranges.
    pub fn whole(response: R) -> Page<R> {
        Page { response, rest: None }
    }

    /// Returns the answer for the rows before this one.
    pub fn until(row: Vec<u8>, response: R) -> Page<R> {
        Page { response, rest: Some(row) }
    }
}

/// Access of an endpoint to its region.
pub trait EndpointContext {
    /// The region.
    fn region(&self) -> RegionId;

    /// The remaining part of the called key ranges in this region, as half-open row ranges in
    /// order; `None` at the end means no stop.
    fn ranges(&self) -> &[(Vec<u8>, Option<Vec<u8>>)];

    /// Scans within [`EndpointContext::ranges`] with the caller's snapshot and its own staged
    /// writes. The endpoint must take `scan`'s start and stop from the ranges.
    fn scan(&self, scan: Scan) -> Result<Scanner>;

    /// Adds `rows` rows to the progress of the call; returns whether the page is full. To be
    /// called once per batch.
    ///
    /// # Errors
    ///
    /// [`Error::Cancelled`](crate::Error::Cancelled) once the caller has cancelled the call.
    fn note_rows(&self, rows: u64) -> Result<bool>;

    /// Returns [`Error::Cancelled`](crate::Error::Cancelled) once the caller has cancelled the
    /// call. To be called at least once per batch by endpoints that do not call
    /// [`EndpointContext::note_rows`].
    fn check_cancelled(&self) -> Result<()>;

    /// Adds rows as [`EndpointContext::note_rows`] does and returns, if the page is full, the row
    /// at which it ends: the next of a forward scan. Also `None` if that scan is at its end; the
    /// ranges after its own are then not in any page yet.
    fn page_end(&self, rows: u64, scanner: &mut Scanner) -> Result<Option<Vec<u8>>> {
        if !self.note_rows(rows)? {
            return Ok(None);
        }
        Ok(match scanner.position()? {
            ScanPosition::At(row) => Some(row),
            _ => None,
        })
    }
}
