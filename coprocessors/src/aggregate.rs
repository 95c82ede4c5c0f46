//! The aggregate endpoint: partial aggregates of one region.
//!
//! ```text
//!   region 1: scan -> decode, filter -> group -> feed -> partial --\
//!   region 2: scan -> decode, filter -> group -> feed -> partial ----> merge -> batches
//!   region 3: ...                                                  --/
//! ```
//!
//! Each region scans its share of the ranges in batches of [`BATCH_ROWS`] rows, decodes the
//! requested columns straight into vectors ([`rows`](crate::rows)), assigns group numbers and
//! updates the accumulators. The session merges the partial results of all regions into its own
//! [`Groups`].
//!
//! # Invariants
//!
//! 1. All expressions of a request refer to its `columns`, by position in that list.
//! 2. A region holds at most [`AggregateRequest::page_bytes`] plus the groups that one batch
//!    adds. Beyond that the page ends and its groups are sent to the session, which bounds the
//!    total.

use std::sync::Arc;

use store::endpoint::{Endpoint, EndpointContext, Page};
use store::scan::ScanPosition;
use store::{Scan, TimeRange};
use types::aggregate::{AdaptiveGroups, Aggregate, Groups, PartialGroupSet};
use types::expr::{EvalContext, Expr};
use types::rowcode::RowLayout;
use types::vector::BATCH_ROWS;

use crate::row::RowError;
use crate::rows::{FilteredDecoder, StoredRows};

/// Name of the endpoint, for errors and EXPLAIN.
const AGGREGATE: &str = "aggregate";
/// Bytes of groups and distinct values that a region accumulates before it ends a page, if memory
/// is not scarce.
pub const PAGE_BYTES: usize = 8 << 20;

/// A request for partial aggregates.
#[derive(Debug, Clone)]
pub struct AggregateRequest {
    /// Storage layout of the rows.
    pub layout: Arc<RowLayout>,
    /// The decoded columns, by position in the table. Expressions below refer to them in this
    /// order.
    pub columns: Vec<usize>,
    /// The condition on rows; `None` selects all.
    pub filter: Option<Expr>,
    /// The group keys; empty for one group of all rows.
    pub group_by: Vec<Expr>,
    /// The aggregates of each group.
    pub aggregates: Vec<Aggregate>,
    /// Time range of the versions that are read.
    pub time_range: TimeRange,
    /// Evaluation context of the expressions.
    pub context: EvalContext,
    /// Bytes of groups after which a region ends its page.
    pub page_bytes: usize,
}

/// The partial result of one page of a region.
#[derive(Debug, Clone, Default)]
pub struct AggregateResponse {
    /// Groups with their accumulator states.
    pub groups: PartialGroupSet,
    /// Rows that were read, before the filter.
    pub rows_scanned: u64,
}

/// The endpoint that computes partial aggregates.
#[derive(Debug, Clone, Copy, Default)]
pub struct AggregateEndpoint;

impl Endpoint for AggregateEndpoint {
    type Request = AggregateRequest;
    type Response = AggregateResponse;

    fn name(&self) -> &str {
        AGGREGATE
    }

    fn call(
        &self,
        region: &dyn EndpointContext,
        request: &AggregateRequest,
    ) -> store::Result<Page<AggregateResponse>> {
        let failed = |error: RowError| error.into_store_error(AGGREGATE);
        let mut state = AggregateCall::new(request).map_err(|error| failed(error.into()))?;
        let columns = state.decoder.read_columns();
        let mut rows = StoredRows::new();
        for (start, stop) in region.ranges() {
            let scan =
                Scan { time_range: request.time_range, ..Scan::range(start.clone(), stop.clone()) };
            let mut scanner = region.scan(columns.scan(scan))?;
            loop {
                rows.clear();
                let more = rows.read(&mut scanner, BATCH_ROWS)?;
                state.add(&rows).map_err(failed)?;
                let page_is_full = region.note_rows(rows.row_count() as u64)? | state.is_full();
                if !more {
                    break;
                }
                if page_is_full && let ScanPosition::At(row) = scanner.position()? {
                    return Ok(Page::until(row, state.into_response()?));
                }
            }
        }
        Ok(Page::whole(state.into_response()?))
    }
}

/// Accumulated state of one call.
struct AggregateCall<'a> {
    request: &'a AggregateRequest,
    decoder: FilteredDecoder,
    groups: AdaptiveGroups,
    rows_scanned: u64,
}

impl<'a> AggregateCall<'a> {
    fn new(request: &'a AggregateRequest) -> types::Result<AggregateCall<'a>> {
        let (columns, filter) = (&request.columns, request.filter.as_ref());
        let groups = Groups::new(&request.group_by, &request.aggregates, &request.context);
        Ok(AggregateCall {
            decoder: FilteredDecoder::new(&request.layout, columns, filter)?,
            groups: AdaptiveGroups::new(groups),
            request,
            rows_scanned: 0,
        })
    }

    fn add(&mut self, rows: &StoredRows) -> Result<(), RowError> {
        self.rows_scanned += rows.row_count() as u64;
        let context = &self.request.context;
        if let Some(passed) = self.decoder.decode(rows, context)? {
            self.groups.feed(&passed.batch, context)?;
        }
        Ok(())
    }

    /// Returns whether the groups exceed the size of a page.
    fn is_full(&self) -> bool {
        self.groups.byte_count() > self.request.page_bytes
    }

    fn into_response(mut self) -> store::Result<AggregateResponse> {
        let groups = self.groups.take(&self.request.context);
        let groups = groups.map_err(|error| RowError::from(error).into_store_error(AGGREGATE))?;
        Ok(AggregateResponse { groups, rows_scanned: self.rows_scanned })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::{key, layout, of_cells, stored_row};
    use types::aggregate::AggregateKind;
    use types::{Batch, DataType, Datum};

    /// Returns a request over `t (id int primary key, g int, v int)`, columns `(v, g)`.
    fn request(is_grouped: bool) -> AggregateRequest {
        let columns = [(DataType::Int4, 0), (DataType::Int4, 0), (DataType::Int4, 0)];
        let at = |index: usize| Expr::Column { index, data_type: DataType::Int4 };
        let aggregate = |kind: AggregateKind, data_type: DataType| Aggregate {
            kind,
            arguments: (kind != AggregateKind::CountRows).then(|| at(0)).into_iter().collect(),
            distinct: false,
            order_by: Vec::new(),
            filter: None,
            data_type,
        };
        AggregateRequest {
            layout: Arc::new(layout(&columns, &[key(0, false)], 0)),
            columns: vec![2, 1],
            filter: None,
            group_by: if is_grouped { vec![at(1)] } else { vec![] },
            aggregates: vec![
                aggregate(AggregateKind::CountRows, DataType::Int8),
                aggregate(AggregateKind::Sum, DataType::Int8),
                aggregate(AggregateKind::Max, DataType::Int4),
            ],
            time_range: TimeRange::ALL,
            context: EvalContext::default(),
            page_bytes: PAGE_BYTES,
        }
    }

    fn region(request: &AggregateRequest, rows: &[(i32, Option<i32>, i32)]) -> AggregateResponse {
        let mut state = AggregateCall::new(request).unwrap();
        for &(id, group, value) in rows {
            let group = group.map_or(Datum::Null, Datum::Int4);
            let row = [Datum::Int4(id), group, Datum::Int4(value)];
            state.add(&of_cells(stored_row(&request.layout, &row, 1))).unwrap();
        }
        state.into_response().unwrap()
    }

    fn merge(
        request: &AggregateRequest,
        responses: impl IntoIterator<Item = AggregateResponse>,
    ) -> types::Result<Batch> {
        let mut groups = Groups::new(&request.group_by, &request.aggregates, &request.context);
        responses
            .into_iter()
            .try_for_each(|response| groups.merge(&response.groups.into_groups()))?;
        groups.finish(0..groups.group_count())
    }

    #[test]
    fn groups_are_merged_across_regions() {
        let request = request(true);
        let one = region(&request, &[(1, Some(7), 10), (2, None, 20), (3, Some(7), 5)]);
        assert_eq!((one.groups.clone().into_groups().group_count, one.rows_scanned), (2, 3));
        let two = region(&request, &[(4, None, 2), (5, Some(8), 1)]);
        let batch = merge(&request, vec![one, AggregateResponse::default(), two]).unwrap();
        let mut rows: Vec<String> =
            (0..batch.row_count).map(|row| format!("{:?}", batch.row(row))).collect();
        rows.sort_unstable();
        assert_eq!(
            rows,
            [
                "[Int4(7), Int8(2), Int8(15), Int4(10)]",
                "[Int4(8), Int8(1), Int8(1), Int4(1)]",
                "[Null, Int8(2), Int8(22), Int4(20)]"
            ]
        );
    }

    #[test]
    fn empty_input_yields_one_row_only_without_group_keys() {
        let whole = request(false);
        let batch = merge(&whole, vec![region(&whole, &[]), region(&whole, &[])]).unwrap();
        assert_eq!(batch.row_count, 1);
        assert_eq!(batch.row(0), [Datum::Int8(0), Datum::Null, Datum::Null]);
        let grouped = request(true);
        assert_eq!(merge(&grouped, vec![region(&grouped, &[])]).unwrap().row_count, 0);
    }

    #[test]
    fn aggregate_ignores_rows_rejected_by_filter() {
        let mut request = request(false);
        request.filter =
            Some(Expr::IsNull(Box::new(Expr::Column { index: 1, data_type: DataType::Int4 })));
        let answer = region(&request, &[(1, None, 10), (2, Some(7), 20)]);
        assert_eq!(answer.rows_scanned, 2);
        let batch = merge(&request, vec![answer]).unwrap();
        assert_eq!(batch.row(0), [Datum::Int8(1), Datum::Int8(10), Datum::Int4(10)]);
    }
}
