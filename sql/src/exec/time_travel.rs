//! Time travel: the versions of `FOR SYSTEM_TIME`, and errors for times before the history.
//!
//! The history of a table begins where the catalog records it (the table was created or
//! rewritten, or a column was added with the name of a dropped one), or later, where retention
//! has dropped versions. The store determines the latter for the regions and families that are
//! read.

use std::sync::Arc;

use coprocessors::rows::EPOCH_MICROSECONDS;
use store::{RowVersions, TimeRange, Timestamp};
use types::expr::Expr;
use types::text;
use types::{DataType, Datum};

use crate::ast::{SystemTime, SystemTimeForm};
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

/// Versions that a scan reads.
#[derive(Debug, Clone, Copy)]
pub(super) struct ScanVersions {
    /// Range of timestamps.
    pub range: TimeRange,
    /// Versions of rows in that range.
    pub of_rows: RowVersions,
}

impl ScanVersions {
    /// The present state.
    const PRESENT: ScanVersions =
        ScanVersions { range: TimeRange::ALL, of_rows: RowVersions::Newest };

    /// Returns the first time whose state is read.
    fn first_state(&self) -> Timestamp {
        match self.of_rows {
            RowVersions::Newest => Timestamp(self.range.max.0.saturating_sub(1)),
            RowVersions::Complete | RowVersions::Retained => self.range.min,
        }
    }
}

/// Returns the node that reads a scan's rows with its versions: the scan itself, or its
/// [alternative](ScanNode::without_index) for a time before the history of its index.
///
/// # Errors
///
/// See [`versions`].
pub(super) fn covered(
    node: &Arc<ScanNode>,
    context: &Context,
) -> Result<(Arc<ScanNode>, ScanVersions)> {
    let versions = versions(node, context)?;
    let node = match &node.without_index {
        Some(before) if !is_in_index(node, &versions, context)? => before,
        _ => node,
    };
    Ok((Arc::clone(node), versions))
}

/// Returns whether the history of the index of a scan includes the versions that it reads.
pub(super) fn is_in_index(
    node: &ScanNode,
    versions: &ScanVersions,
    context: &Context,
) -> Result<bool> {
    let Some(index) = &node.path.index else { return Ok(true) };
    let begin = context.system.index_history_begin(&node.table, index)?;
    Ok(versions.range.max > begin)
}

/// Returns the versions that a scan reads.
///
/// # Errors
///
/// 22004 for a NULL time; 72000 for a time before the table's history.
pub(super) fn versions(node: &ScanNode, context: &Context) -> Result<ScanVersions> {
    let Some(clause) = &node.system_time else { return Ok(ScanVersions::PRESENT) };
    let times: Vec<Timestamp> =
        clause.times.iter().map(|time| time_of(clause, time, context)).collect::<Result<_>>()?;
    let begin = context.system.history_begin(&node.table, &columns_of(node))?;
    let versions = match (clause.form, times.as_slice()) {
        (SystemTimeForm::AsOf, &[at]) => {
            ScanVersions { range: TimeRange::as_of(at), of_rows: RowVersions::Newest }
        }
        (SystemTimeForm::FromTo, &[from, to]) => {
            ScanVersions { range: TimeRange::new(from, to), of_rows: RowVersions::Complete }
        }
        (SystemTimeForm::Between, &[from, to]) => {
            let range = TimeRange::new(from, Timestamp(to.0.saturating_add(1)));
            ScanVersions { range, of_rows: RowVersions::Complete }
        }
        _ => {
            // The cells of a table of the present transaction are all its history.
            let from = Some(begin.defined).filter(|defined| *defined != Timestamp::LATEST);
            let range = TimeRange::new(from.unwrap_or(Timestamp(i64::MIN)), Timestamp::LATEST);
            return Ok(ScanVersions { range, of_rows: RowVersions::Retained });
        }
    };
    match versions.first_state() {
        at if at < begin.defined => Err(before(&node.table, (at, begin), context)),
        _ => Ok(versions),
    }
}

fn time_of(clause: &SystemTime<Expr>, time: &Expr, context: &Context) -> Result<Timestamp> {
    let Datum::Timestamptz(time) = context.value(time)? else {
        let words = clause.form.words().join(" … ");
        bail!(NULL_VALUE_NOT_ALLOWED: "argument of FOR SYSTEM_TIME {words} must not be null");
    };
    Ok(Timestamp(time.saturating_add(EPOCH_MICROSECONDS)))
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
    (node, versions): (&ScanNode, ScanVersions),
    context: &Context,
) -> Error {
    if error.message != BEFORE_HISTORY {
        return error;
    }
    let at = versions.first_state();
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
