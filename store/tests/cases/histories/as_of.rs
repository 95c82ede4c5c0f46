//! Time travel reads, in a form that can be compared with the model's.

use store::family_store::ReadSpec;
use store::{CellBatch, Result, Scan, TimeRange, Transaction};

use crate::cases::TABLE;
use crate::cases::histories::model::FoundCell;
use crate::cases::histories::reads::{Standpoint, cells_of};

/// Row, qualifier, timestamp, value.
pub(super) type Version = (Vec<u8>, Vec<u8>, i64, Vec<u8>);

/// Returns the read specification for the model.
pub(super) fn spec(standpoint: Standpoint) -> ReadSpec {
    ReadSpec {
        snapshot: standpoint.snapshot,
        staged_through: standpoint.staged_through,
        time_range: TimeRange::ALL,
        max_versions: 1,
        raw: false,
        now_micros: standpoint.now_micros,
    }
}

/// Returns the versions returned by a scan.
pub(super) fn scan(transaction: &Transaction, scan: Scan) -> Result<Vec<Version>> {
    let mut scanner = transaction.scan(TABLE, scan)?;
    let (mut batch, mut all) = (CellBatch::new(), Vec::new());
    while scanner.next_batch(3, &mut batch)? {
        all.extend(found(&batch));
    }
    Ok(all)
}

/// Returns the versions in a batch.
pub(super) fn found(batch: &CellBatch) -> Vec<Version> {
    let cells = cells_of(batch).into_iter();
    cells.map(|(row, _, qualifier, at, value)| (row, qualifier, at, value)).collect()
}

/// Returns the versions found by the model.
pub(super) fn versions(found: Vec<FoundCell>) -> Vec<Version> {
    let versions = found.into_iter();
    versions.map(|(row, qualifier, at, _, value)| (row, qualifier, at, value)).collect()
}
