//! Time travel: the versions of `FOR SYSTEM_TIME AS OF`, and errors for times before the history.
//!
//! The history of a table begins where the catalog records it (the table was created or
//! rewritten, or a column was added with the name of a dropped one), or later, where retention
//! has dropped versions. The store determines the latter for the regions and families that are
//! read.

use std::sync::Arc;

use coprocessors::rows::EPOCH_MICROSECONDS;
use store::{TimeRange, Timestamp};
use types::text;
use types::{DataType, Datum};

use crate::catalog::table::Table;
use crate::error::{BEFORE_HISTORY, Error, Result};
use crate::exec::Context;
use crate::plan::scan::ScanNode;

/// Begin of the retained history.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HistoryBegin {
    /// Begin by the catalog; [`Timestamp::LATEST`] for a change of the present transaction.
    pub defined: Timestamp,
    /// Begin by the versions dropped in any region of the table.
    pub retained: Timestamp,
}

impl HistoryBegin {
    /// Begin of an unbounded history.
    pub const NEVER: HistoryBegin =
        HistoryBegin { defined: Timestamp(i64::MIN), retained: Timestamp(i64::MIN) };
}

/// Returns the node that reads a scan's rows with its time range of versions: the scan itself, or
/// its [alternative](ScanNode::before_index_history) for a time before the history of its index.
///
/// # Errors
///
/// See [`time_range`].
pub(super) fn covered(
    node: &Arc<ScanNode>,
    context: &Context,
) -> Result<(Arc<ScanNode>, TimeRange)> {
    let range = time_range(node, context)?;
    let (Some(before), Some(index)) = (&node.before_index_history, &node.path.index) else {
        return Ok((Arc::clone(node), range));
    };
    let begin = context.system.index_history_begin(&node.table, index)?;
    let node = if range.max <= begin { before } else { node };
    Ok((Arc::clone(node), range))
}

/// Returns the time range of versions that a scan reads.
///
/// # Errors
///
/// 22004 for a NULL time; 72000 for a time before the table's history.
pub(super) fn time_range(node: &ScanNode, context: &Context) -> Result<TimeRange> {
    let Some(as_of) = &node.as_of else { return Ok(TimeRange::ALL) };
    let Datum::Timestamptz(time) = context.value(as_of)? else {
        bail!(NULL_VALUE_NOT_ALLOWED: "argument of FOR SYSTEM_TIME AS OF must not be null");
    };
    let at = Timestamp(time.saturating_add(EPOCH_MICROSECONDS));
    let begin = context.system.history_begin(&node.table, &columns_of(node))?;
    match at < begin.defined {
        true => Err(before(&node.table, (at, begin), context)),
        false => Ok(TimeRange::as_of(at)),
    }
}

/// Returns the positions of the table's columns that a scan reads.
fn columns_of(node: &ScanNode) -> Vec<usize> {
    let known = |column: &usize| *column < node.table.columns.len();
    node.read.iter().copied().filter(known).collect()
}

/// Adds to an error of reading these versions, if the history is incomplete, the time from which
/// on it is complete.
pub(super) fn with_history_begin(
    error: Error,
    (node, range): (&ScanNode, TimeRange),
    context: &Context,
) -> Error {
    if error.message != BEFORE_HISTORY {
        return error;
    }
    let at = Timestamp(range.max.0.saturating_sub(1));
    match context.system.history_begin(&node.table, &columns_of(node)) {
        Ok(begin) => before(&node.table, (at, begin), context),
        Err(_) => error,
    }
}

fn before(table: &Table, (at, begin): (Timestamp, HistoryBegin), context: &Context) -> Error {
    let name = &table.name;
    let shown = |time: Timestamp| {
        let datum = Datum::Timestamptz(time.0.saturating_sub(EPOCH_MICROSECONDS));
        let mut bytes = Vec::new();
        text::write_short(&datum, &DataType::Timestamptz, &context.eval.style, &mut bytes);
        String::from_utf8(bytes).unwrap_or_default()
    };
    let message = match begin.defined {
        Timestamp::LATEST => format!("history of table \"{name}\" begins with this transaction"),
        defined => {
            let begin = shown(defined.max(begin.retained));
            format!("history of table \"{name}\" begins at {begin}, after {}", shown(at))
        }
    };
    err!(SNAPSHOT_TOO_OLD: message; of_table &table.schema, name;
        hint "History begins when the table is created, truncated or rewritten. VERSIONS, \
        MIN_VERSIONS, TTL and KEEP_DELETED_CELLS determine which versions are retained.")
}
