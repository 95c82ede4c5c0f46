//! Executable specification of cell visibility, simple enough to be checked by reading: no files,
//! no merge, no cell order, just commit after commit. The store's results are compared with it.
//!
//! [`hold`] runs the randomised tests and counts their comparisons.
//!
//! It is a module of the test binary (for whole stores) and of the unit tests of one family of
//! one region; the rules in prose are in the header of `store::scan::retention`.

pub(crate) mod families;

use std::collections::BTreeMap;
use std::io::Write as _;
use std::sync::atomic::{AtomicU64, Ordering};

use proptest::prelude::*;
use proptest::test_runner::{FileFailurePersistence, TestRunner};

// From the parent module: the crate has another name there.
use super::{
    Cell, CellType, FamilyDescriptor, KeepDeletedCells, ReadSpec, RetiredRule, Timestamp,
    split_expiring,
};

/// A version that a read finds: row, qualifier, timestamp, sequence, value.
pub(crate) type FoundCell = (Vec<u8>, Vec<u8>, i64, u64, Vec<u8>);

/// A property of random histories: its name, its number of cases, and its minimal number of
/// operations. A write, a flush, and a read that was generated and compared with the model count
/// one each.
type Property = (&'static str, u32, u64);

/// All properties, those of the unit tests and those of the test binary, with the parameters of
/// the default run.
const PROPERTIES: [Property; 4] = [
    ("families before and after flushes and compactions", 700, 41_000),
    ("families with staged cells", 700, 11_500),
    ("histories of stores", 700, 56_000),
    ("tables with changed families", 200, 10_000),
];

const _: () = {
    let (mut index, mut operations) = (0, 0);
    while index < PROPERTIES.len() {
        operations += PROPERTIES[index].2;
        index += 1;
    }
    assert!(operations >= 100_000, "so much random work is promised");
};

/// Runs the cases of a property, `BENNU_CASES` times as many if that is set. Each returns its
/// number of operations. A failing case is shrunk, and its seed stored in the file `regressions`,
/// whose seeds run first.
///
/// # Panics
///
/// If a case does, or if there were fewer operations than [`PROPERTIES`] requires.
pub(crate) fn hold<S: Strategy>(
    (name, regressions): (&str, &'static str),
    strategy: S,
    run: impl Fn(S::Value) -> u64,
) where
    S::Value: std::fmt::Debug,
{
    let listed = PROPERTIES.iter().find(|property| property.0 == name);
    let &(_, cases, operations_min) = listed.expect("each property is listed");
    let times = std::env::var("BENNU_CASES").map_or(1, |text| text.parse().expect("a number"));
    let config = ProptestConfig {
        cases: cases * times,
        failure_persistence: Some(Box::new(FileFailurePersistence::Direct(regressions))),
        ..ProptestConfig::default()
    };
    let operations = AtomicU64::new(0);
    let mut runner = TestRunner::new(config);
    let held = runner.run(&strategy, |value| {
        operations.fetch_add(run(value), Ordering::Relaxed);
        Ok(())
    });
    if let Err(failure) = held {
        panic!("{failure}\n{runner}");
    }
    let operations = operations.into_inner();
    let told = format!("{name}: {} cases, {operations} operations\n", cases * times);
    std::io::stderr().write_all(told.as_bytes()).expect("tests have a place to write to");
    assert!(operations >= operations_min * u64::from(times), "only {operations} operations");
}

type Column = (Vec<u8>, Vec<u8>);

/// Returns the result of a read of one family, in cell order, from all cells that were ever
/// written.
pub(crate) fn visible(
    cells: &[Cell],
    family: &FamilyDescriptor,
    spec: &ReadSpec,
) -> Vec<FoundCell> {
    // A cell expired by its cell TTL counts as never written.
    let is_there = |cell: &&Cell| spec.sees(cell.sequence) && last_seen(cell) >= spec.now_micros;
    let mut seen: Vec<&Cell> = cells.iter().filter(is_there).collect();
    // Within a commit markers come first: they mask only older commits.
    seen.sort_by_key(|cell| (cell.sequence, cell.cell_type.is_put()));
    let rules = rules(family);
    let expiry_by = |rule: &RetiredRule, at: i64| {
        rule.ttl.map_or(i64::MIN, |ttl| at.saturating_sub(ttl.as_micros() as i64))
    };
    // The rules that had ended at the time of the read, and the one that was in force.
    let ended = rules.iter().filter(|rule| rule.until_micros <= spec.now_micros).count();
    let own = &rules[ended];
    let own_expiry = expiry_by(own, spec.now_micros);
    let floors = rules[..ended].iter().map(|rule| expiry_by(rule, rule.until_micros));
    let expiry = floors.fold(own_expiry, i64::max);
    let ends = |marker: &Cell| match family.keep_deleted_cells {
        KeepDeletedCells::False => true,
        KeepDeletedCells::True => false,
        KeepDeletedCells::Ttl => marker.timestamp.0 < expiry,
    };
    let (columns, at_ends) = retained(&seen, &rules, &ends);
    let mut found = Vec::new();
    for (column, versions) in columns {
        let mut returned = 0;
        for (index, (at, version)) in versions.into_iter().rev().enumerate() {
            let masked = seen.iter().any(|marker| {
                !marker.cell_type.is_put()
                    && !ends(marker)
                    && spec.time_range.is_before_max(marker.timestamp)
                    && marks(marker, &column)
                    && covers(marker, at)
                    && marker.sequence > version.sequence
            });
            let expired_before = rules[..ended].iter().zip(&at_ends).any(|(rule, times)| {
                let times = times.get(&column).into_iter().flatten();
                let newer = times.filter(|time| **time > at).count();
                at < expiry_by(rule, rule.until_micros)
                    && newer >= rule.min_versions as usize
                    && (rule.min_versions == 0 || version.sequence.0 <= rule.last_sequence)
            });
            let expired = expired_before || at < own_expiry && index >= own.min_versions as usize;
            let wanted = spec.time_range.contains(Timestamp(at)) && returned < spec.max_versions;
            if !masked && !expired && wanted {
                returned += 1;
                let (row, qualifier) = column.clone();
                found.push((row, qualifier, at, version.sequence.0, value(version)));
            }
        }
    }
    found
}

/// The versions of each column, by timestamp.
type Versions<'c> = BTreeMap<Column, BTreeMap<i64, &'c Cell>>;

/// Returns the versions that the counts of the rules retain of cells in commit order, and the
/// timestamps of those that existed at the end of each rule. `ends` tells the markers that end
/// cells for all readers.
fn retained<'c>(
    seen: &[&'c Cell],
    rules: &[RetiredRule],
    ends: &impl Fn(&Cell) -> bool,
) -> (Versions<'c>, Vec<BTreeMap<Column, Vec<i64>>>) {
    let mut columns: Versions<'c> = BTreeMap::new();
    // The versions that existed at the ends of the rules.
    let mut at_ends: Vec<BTreeMap<Column, Vec<i64>>> = Vec::new();
    let mut number = 0;
    let mut end_rules = |columns: &mut Versions<'c>, sequence: u64| {
        while rules[number].last_sequence < sequence {
            let times = columns
                .iter()
                .map(|(column, versions)| (column.clone(), versions.keys().copied().collect()));
            at_ends.push(times.collect());
            for versions in columns.values_mut() {
                while versions.len() > rules[number + 1].versions as usize {
                    versions.pop_first();
                }
            }
            number += 1;
        }
        rules[number].versions as usize
    };
    for cell in seen {
        let versions_max = end_rules(&mut columns, cell.sequence.0);
        if cell.cell_type.is_put() {
            let column = (cell.row.clone(), cell.qualifier.clone());
            let versions = columns.entry(column).or_default();
            versions.insert(cell.timestamp.0, cell);
            while versions.len() > versions_max {
                versions.pop_first();
            }
        } else if ends(cell) {
            for (_, versions) in columns.iter_mut().filter(|(column, _)| marks(cell, column)) {
                versions.retain(|&version, _| !covers(cell, version));
            }
        }
    }
    end_rules(&mut columns, u64::MAX);
    (columns, at_ends)
}

/// Returns the rules of a family, oldest first; the last one is the present rule, which does not
/// end.
fn rules(family: &FamilyDescriptor) -> Vec<RetiredRule> {
    let mut rules = family.retired.clone();
    let &FamilyDescriptor { versions, min_versions, ttl, .. } = family;
    let (last_sequence, until_micros) = (u64::MAX, i64::MAX);
    rules.push(RetiredRule { last_sequence, until_micros, versions, min_versions, ttl });
    rules
}

/// Returns the result of a time travel read at `at`: by the rules, from the cells written until
/// then.
#[allow(dead_code, reason = "the unit tests of one family ask for no former states")]
pub(crate) fn visible_as_of(
    cells: &[Cell],
    family: &FamilyDescriptor,
    (spec, at): (&ReadSpec, Timestamp),
) -> Vec<FoundCell> {
    let until: Vec<Cell> = cells.iter().filter(|cell| cell.timestamp <= at).cloned().collect();
    let now_micros = spec.now_micros.min(at.0);
    visible(&until, family, &ReadSpec { now_micros, max_versions: 1, ..*spec })
}

/// Returns whether rewrites cannot change a result for a family whose history has markers of
/// single versions: with MIN_VERSIONS it is undefined how many expired versions reappear.
pub(crate) fn allows_version_markers(family: &FamilyDescriptor) -> bool {
    family.min_versions == 0 || family.ttl.is_none()
}

/// Returns the last moment at which a cell is visible, in microseconds.
fn last_seen(cell: &Cell) -> i64 {
    match cell.cell_type {
        CellType::ExpiringPut => {
            let (ttl, _) = split_expiring(&cell.value).expect("the TTL comes first");
            cell.timestamp.0.saturating_add(ttl.as_micros() as i64)
        }
        _ => i64::MAX,
    }
}

fn value(cell: &Cell) -> Vec<u8> {
    match cell.cell_type {
        CellType::ExpiringPut => split_expiring(&cell.value).expect("the TTL comes first").1,
        _ => &cell.value[..],
    }
    .to_vec()
}

fn marks(marker: &Cell, column: &Column) -> bool {
    marker.row == column.0 && (marker.cell_type.is_family_marker() || marker.qualifier == column.1)
}

fn covers(marker: &Cell, version: i64) -> bool {
    match marker.cell_type {
        CellType::DeleteFamily | CellType::DeleteColumn => version <= marker.timestamp.0,
        CellType::Delete | CellType::DeleteFamilyVersion => version == marker.timestamp.0,
        CellType::Put | CellType::ExpiringPut => false,
    }
}
