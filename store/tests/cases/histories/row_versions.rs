//! Scans of row versions, compared with a read as of each time at which a cell was written.

use std::collections::{BTreeMap, BTreeSet};

use store::{
    CellBatch, Error, Result, RowVersions, Scan, TimeRange, Timestamp, Transaction, VERSION_FAMILY,
};

use crate::cases::TABLE;

/// Number of later times whose versions are compared.
const TIMES: usize = 6;

/// Family, qualifier, timestamp and value of the cells of a row.
type State = Vec<(u8, Vec<u8>, i64, Vec<u8>)>;

/// Row, timestamp, true for a put and false for a deletion, and its cells.
type RowVersion = (Vec<u8>, i64, bool, State);

/// Compares the versions from `min` on.
pub(super) fn compare(transaction: &Transaction, min: Timestamp) {
    let raw = Scan { raw: true, max_versions: u32::MAX, ..Scan::all() };
    let mut times = BTreeSet::new();
    // True for a marker.
    let mut written = BTreeMap::new();
    rows(transaction, raw, |batch| {
        for cell in batch.rows().flat_map(|row| row.cells()) {
            times.insert(cell.timestamp);
            let has_marker = written.entry((cell.row.to_vec(), cell.timestamp)).or_default();
            *has_marker |= !cell.cell_type.is_put();
        }
    })
    .unwrap();
    let mut later = times.into_iter().filter(|time| *time > min);
    let mut times: Vec<Timestamp> = later.by_ref().take(TIMES).collect();
    let next = later.next();
    // A range up to the last time includes it.
    times.extend(next.filter(|time| *time == Timestamp::LATEST));
    let max = next.unwrap_or(Timestamp::LATEST);
    match (versions(transaction, min, max), states(transaction, min)) {
        (Ok(found), Ok(first)) => {
            match expected(transaction, (min, first), &times, &written) {
                Ok(expected) => assert_eq!(found, expected, "versions from {min:?} to {max:?}"),
                // A compaction in the background has moved the begin of the history since.
                Err(Error::BeforeHistory { begin_micros }) => assert!(begin_micros > min.0),
                Err(error) => panic!("{error}"),
            }
        }
        // Its begin never moves back.
        (_, Err(Error::BeforeHistory { .. })) => {}
        (found, first) => panic!("{found:?} {first:?}"),
    }
}

fn rows(transaction: &Transaction, scan: Scan, mut each: impl FnMut(&CellBatch)) -> Result<()> {
    let mut scanner = transaction.scan(TABLE, scan)?;
    let mut batch = CellBatch::new();
    while scanner.next_batch(3, &mut batch)? {
        each(&batch);
    }
    Ok(())
}

fn versions(transaction: &Transaction, min: Timestamp, max: Timestamp) -> Result<Vec<RowVersion>> {
    let time_range = TimeRange::new(min, max);
    let scan = Scan { row_versions: RowVersions::Complete, time_range, ..Scan::all() };
    let mut found = Vec::new();
    rows(transaction, scan, |batch| {
        for row in batch.rows() {
            let mut cells = row.cells();
            let event = cells.next().unwrap();
            assert_eq!(event.family, VERSION_FAMILY);
            let state = cells.map(|cell| {
                (cell.family, cell.qualifier.to_vec(), cell.timestamp.0, cell.value.to_vec())
            });
            let is_put = event.cell_type.is_put();
            found.push((row.key().to_vec(), event.timestamp.0, is_put, state.collect()));
        }
    })?;
    Ok(found)
}

/// Returns the rows as of a time.
fn states(transaction: &Transaction, at: Timestamp) -> Result<BTreeMap<Vec<u8>, State>> {
    let mut states: BTreeMap<Vec<u8>, State> = BTreeMap::new();
    let scan = Scan { time_range: TimeRange::as_of(at), ..Scan::all() };
    rows(transaction, scan, |batch| {
        for cell in batch.rows().flat_map(|row| row.cells()) {
            let (qualifier, value) = (cell.qualifier.to_vec(), cell.value.to_vec());
            let cells = states.entry(cell.row.to_vec()).or_default();
            cells.push((cell.family, qualifier, cell.timestamp.0, value));
        }
    })?;
    Ok(states)
}

fn expected(
    transaction: &Transaction,
    (min, first): (Timestamp, BTreeMap<Vec<u8>, State>),
    times: &[Timestamp],
    written: &BTreeMap<(Vec<u8>, Timestamp), bool>,
) -> Result<Vec<RowVersion>> {
    let mut versions: Vec<RowVersion> = Vec::new();
    for (row, state) in &first {
        let newest = state.iter().map(|cell| cell.2).max().unwrap();
        assert!(newest <= min.0);
        versions.push((row.clone(), newest, true, state.clone()));
    }
    for &time in times {
        // A read as of one microsecond before sees staged cells without a timestamp, too.
        let step = if time == Timestamp::LATEST { 2 } else { 1 };
        let before = states(transaction, Timestamp(time.0 - step))?;
        let after = states(transaction, time)?;
        let all: BTreeSet<&Vec<u8>> = before.keys().chain(after.keys()).collect();
        for row in all {
            let Some(has_marker) = written.get(&(row.clone(), time)) else { continue };
            match (before.get(row), after.get(row)) {
                (former, Some(state)) if former != Some(state) => {
                    versions.push((row.clone(), time.0, true, state.clone()));
                }
                (Some(former), None) if *has_marker => {
                    versions.push((row.clone(), time.0, false, former.clone()));
                }
                _ => {}
            }
        }
    }
    versions.sort_by(|a, b| a.0.cmp(&b.0));
    Ok(versions)
}
