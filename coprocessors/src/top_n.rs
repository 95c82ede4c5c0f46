//! The top-n endpoint: the first n rows of a region in a sort order.
//!
//! ```text
//!   region 1: scan -> filter, first key -> first n? -> the rest -> first n? -> n rows --\
//!   region 2: ...                                                            -> n rows ----> merge
//! ```
//!
//! A region retains the best n rows that it has read. From each batch it decodes the columns of
//! the filter and of the first key, and the other columns only for rows that may rank among the
//! first n by that key. The session merges the rows of all regions with [`Merger`].
//!
//! # Invariants
//!
//! 1. All expressions of a request refer to its `columns`, by position in that list.
//! 2. Rows with equal keys are ordered by row key: a response has the row at which its part of
//!    the region begins, and its rows in row key order.
//! 3. A region holds n rows, or [`PAGE_BYTES`] plus the rows that one batch adds; then the page
//!    ends.
//!
//! `TopNCall::new` asserts 1 in debug builds.

use std::sync::Arc;

use store::endpoint::{Endpoint, EndpointContext, Page};
use store::scan::ScanPosition;
use store::{Scan, TimeRange};
use types::expr::{EvalContext, Expr};
use types::order::{FirstRows, KeyOrder, SortKey};
use types::rowcode::RowLayout;
use types::vector::BATCH_ROWS;
use types::{Batch, DataType, Datum, Vector};

use crate::row::{ReadColumns, RowError};
use crate::rows::{Decoder, StoredRows};

/// Name of the endpoint, for errors and EXPLAIN.
const TOP_N: &str = "top-n";
/// Bytes of rows after which a region ends its page.
const PAGE_BYTES: usize = 8 << 20;

/// A request for the first n rows.
#[derive(Debug, Clone)]
pub struct TopNRequest {
    /// Storage layout of the rows.
    pub layout: Arc<RowLayout>,
    /// The decoded columns, by position in the table. Expressions below refer to them in this
    /// order.
    pub columns: Vec<usize>,
    /// The condition on rows; `None` selects all.
    pub filter: Option<Expr>,
    /// The sort keys, most significant first.
    pub keys: Vec<SortKey>,
    /// The output columns, by position in `columns`.
    pub output: Vec<usize>,
    /// Maximum number of rows, n.
    pub row_count: usize,
    /// Time range of the versions that are read.
    pub time_range: TimeRange,
    /// Evaluation context of the expressions.
    pub context: EvalContext,
}

/// The first rows of a part of a region.
#[derive(Debug, Clone)]
pub struct TopNResponse {
    /// Row key at which the part begins.
    start: Vec<u8>,
    /// The columns of [`TopNRequest::output`], in row key order.
    columns: Vec<Vector>,
    /// The sort keys.
    keys: Vec<Vector>,
    row_count: usize,
}

/// The endpoint that finds the first n rows.
#[derive(Debug, Clone, Copy, Default)]
pub struct TopNEndpoint;

impl Endpoint for TopNEndpoint {
    type Request = TopNRequest;
    type Response = TopNResponse;

    fn name(&self) -> &str {
        TOP_N
    }

    fn call(
        &self,
        region: &dyn EndpointContext,
        request: &TopNRequest,
    ) -> store::Result<Page<TopNResponse>> {
        let parts = ColumnSplit::of(request);
        let mut state = TopNCall::new(request, &parts).map_err(|error| failed(error.into()))?;
        let columns = ReadColumns::of(&request.layout, &request.columns);
        let start = region.ranges().first().map(|(start, _)| start.clone()).unwrap_or_default();
        let mut rows = StoredRows::new();
        for (start_row, stop_row) in region.ranges() {
            let scan = Scan {
                time_range: request.time_range,
                ..Scan::range(start_row.clone(), stop_row.clone())
            };
            let mut scanner = region.scan(columns.scan(scan))?;
            loop {
                rows.clear();
                let more = rows.read(&mut scanner, BATCH_ROWS)?;
                state.add(&rows).map_err(failed)?;
                let page_is_full = region.note_rows(rows.row_count() as u64)?
                    | (state.first.byte_count() > PAGE_BYTES);
                if !more {
                    break;
                }
                if page_is_full && let ScanPosition::At(row) = scanner.position()? {
                    return Ok(Page::until(row, state.into_response(start)));
                }
            }
        }
        Ok(Page::whole(state.into_response(start)))
    }
}

fn failed(error: RowError) -> store::Error {
    error.into_store_error(TOP_N)
}

/// A request with its columns in two groups: those decoded for all rows, and those decoded for
/// candidates.
struct ColumnSplit {
    /// Columns of the filter and of `early_keys`, by position in the table.
    early: Vec<usize>,
    /// The other columns.
    late: Vec<usize>,
    /// The filter over `early`; the keys refer to `early`, too.
    filter: Option<Expr>,
    /// The first keys, including all computed ones, so that their errors are raised for each row.
    early_keys: Vec<Expr>,
    /// Positions of the remaining keys, which are plain columns: in `early`, or behind it in
    /// `late`.
    late_keys: Vec<usize>,
    /// Positions of the output columns, likewise.
    output: Vec<usize>,
}

impl ColumnSplit {
    fn of(request: &TopNRequest) -> ColumnSplit {
        let keys: Vec<&Expr> = request.keys.iter().map(|key| &key.expression).collect();
        let is_computed = |key: &&Expr| !matches!(key, Expr::Column { .. });
        let early_count = keys.iter().rposition(is_computed).unwrap_or(0) + 1;
        let (early_keys, late_keys) = keys.split_at(early_count.min(keys.len()));
        let expressions = early_keys.iter().copied().chain(&request.filter);
        let used: Vec<usize> = expressions.flat_map(Expr::columns).collect();
        let (early, late): (Vec<usize>, Vec<usize>) =
            (0..request.columns.len()).partition(|position| used.contains(position));
        let order: Vec<usize> = early.iter().chain(&late).copied().collect();
        let place = |position: usize| {
            order.iter().position(|&other| other == position).expect("all columns have a place")
        };
        let renumbered = |expression: &Expr| expression.clone().remap_columns(&place);
        let in_table =
            |positions: &[usize]| positions.iter().map(|&p| request.columns[p]).collect();
        ColumnSplit {
            filter: request.filter.as_ref().map(renumbered),
            early_keys: early_keys.iter().map(|key| renumbered(key)).collect(),
            late_keys: late_keys.iter().flat_map(|key| key.columns()).map(place).collect(),
            output: request.output.iter().map(|&position| place(position)).collect(),
            early: in_table(&early),
            late: in_table(&late),
        }
    }
}

/// Rows of a batch that may be among the first.
struct Candidates {
    /// Their numbers in the batch; `None` for all.
    rows: Option<Vec<u32>>,
    /// Their early keys.
    keys: Vec<Arc<Vector>>,
    row_count: usize,
}

/// Accumulated state of one call.
struct TopNCall<'a> {
    parts: &'a ColumnSplit,
    context: &'a EvalContext,
    early: Decoder,
    late: Decoder,
    first: FirstRows,
}

impl<'a> TopNCall<'a> {
    fn new(request: &'a TopNRequest, parts: &'a ColumnSplit) -> types::Result<TopNCall<'a>> {
        let keys = request.keys.iter().map(|key| &key.expression);
        let mut referenced = keys.chain(&request.filter).flat_map(Expr::columns);
        debug_assert!(
            referenced.all(|column| column < request.columns.len()),
            "an expression refers to a column that is not decoded"
        );
        let orders = request.keys.iter().map(KeyOrder::from).collect();
        Ok(TopNCall {
            parts,
            context: &request.context,
            early: Decoder::new(&request.layout, &parts.early)?,
            late: Decoder::new(&request.layout, &parts.late)?,
            first: FirstRows::new(&output_types(request), orders, request.row_count),
        })
    }

    fn add(&mut self, rows: &StoredRows) -> Result<(), RowError> {
        let columns = self.early.decode(rows, None, self.context)?;
        let batch = Batch { columns, row_count: rows.row_count() };
        let Candidates { rows: wanted, mut keys, row_count } = self.candidates(&batch)?;
        if row_count == 0 {
            return Ok(());
        }
        let wanted = wanted.as_deref();
        let late = self.late.decode(rows, wanted, self.context)?;
        let column = |&place: &usize| match batch.columns.get(place) {
            None => Arc::clone(&late[place - batch.columns.len()]),
            Some(early) => match wanted {
                None => Arc::clone(early),
                Some(wanted) => Arc::new(early.take(wanted)),
            },
        };
        keys.extend(self.parts.late_keys.iter().map(column));
        let output = self.parts.output.iter().map(column).collect();
        self.first.add_candidates(Batch { columns: output, row_count }, keys);
        Ok(())
    }

    /// Returns the rows that pass the filter and, by their early keys, may be among the first.
    fn candidates(&self, batch: &Batch) -> types::Result<Candidates> {
        let passed = match &self.parts.filter {
            None => None,
            Some(filter) => {
                let passed = filter.filter_batch(batch, self.context)?;
                (passed.len() < batch.row_count).then_some(passed)
            }
        };
        let row_count = passed.as_ref().map_or(batch.row_count, Vec::len);
        if row_count == 0 {
            return Ok(Candidates { rows: passed, keys: Vec::new(), row_count });
        }
        let evaluate = |key: &Expr| match &passed {
            None => key.eval_column(batch, self.context),
            Some(passed) => key.eval_selected(batch, passed, self.context).map(Arc::new),
        };
        let keys = self.parts.early_keys.iter().map(evaluate);
        let keys = keys.collect::<types::Result<Vec<Arc<Vector>>>>()?;
        let Some(wanted) = self.first.candidates(&keys, row_count) else {
            return Ok(Candidates { rows: passed, keys, row_count });
        };
        let keys = keys.iter().map(|key| Arc::new(key.take(&wanted))).collect();
        let row_count = wanted.len();
        let rows = match passed {
            None => wanted,
            Some(passed) => wanted.iter().map(|&row| passed[row as usize]).collect(),
        };
        Ok(Candidates { rows: Some(rows), keys, row_count })
    }

    fn into_response(self, start: Vec<u8>) -> TopNResponse {
        let (columns, keys, row_count) = self.first.into_unsorted();
        TopNResponse { start, columns, keys, row_count }
    }
}

fn output_types(request: &TopNRequest) -> Vec<DataType> {
    let data_type =
        |&position: &usize| request.layout.columns[request.columns[position]].data_type.clone();
    request.output.iter().map(data_type).collect()
}

/// Merger of the rows of all parts, which arrive in any order.
pub struct Merger {
    /// Sorted by the keys, then by the start of the part.
    first: FirstRows,
}

impl Merger {
    /// Creates a merger without rows.
    pub fn new(request: &TopNRequest) -> Merger {
        let start = KeyOrder { data_type: DataType::Bytea, descending: false, nulls_first: false };
        let orders = request.keys.iter().map(KeyOrder::from).chain([start]).collect();
        Merger { first: FirstRows::new(&output_types(request), orders, request.row_count) }
    }

    /// Adds the rows of a response.
    pub fn add(&mut self, response: TopNResponse) {
        let row_count = response.row_count;
        let start = Vector::constant(&Datum::bytea(response.start), &DataType::Bytea, row_count);
        let keys = response.keys.into_iter().chain([start]).map(Arc::new).collect();
        let columns = response.columns.into_iter().map(Arc::new).collect();
        self.first.add_candidates(Batch { columns, row_count }, keys);
    }

    /// Returns the bytes held.
    pub fn byte_count(&self) -> usize {
        self.first.byte_count()
    }

    /// Returns the columns of [`TopNRequest::output`], and the sorted numbers of the first rows.
    pub fn finish(self) -> (Vec<Vector>, Vec<u32>) {
        self.first.into_sorted()
    }
}
