//! Writes of a history, staged in the store and in the model.

use std::time::Duration;

use proptest::prelude::*;
use store::cell::expiring_value;
use store::row_mutation::{ColumnName, Condition as RowCondition, RowChange, RowMutation};
use store::scan::filter::CompareOp;
use store::{Cell, Edit, Error, Mutation, Sequence, TimeRange, Timestamp};

use super::*;
use crate::cases::histories::model::{allows_version_markers, visible};
use crate::cases::histories::reads::{Condition, condition};

/// The commit time.
const AT_COMMIT: Option<i64> = None;

/// One change of a row.
#[derive(Debug, Clone)]
pub(super) enum Change {
    Put { family: u8, qualifier: u8, at: Option<i64>, value: Value, ttl: Option<u64> },
    DeleteRow { at: Option<i64> },
    DeleteFamily { family: u8, at: Option<i64> },
    DeleteFamilyVersion { family: u8, at: Option<i64> },
    DeleteColumn { family: u8, qualifier: u8, at: Option<i64> },
    DeleteVersion { family: u8, qualifier: u8, at: Option<i64> },
    Increment { family: u8, qualifier: u8, amount: i64 },
    Append { family: u8, qualifier: u8, value: u8 },
    DeleteNewest { family: u8, qualifier: u8 },
}

#[derive(Debug, Clone)]
pub(super) enum Value {
    Text(u8),
    Number(i64),
    Empty,
}

/// Condition on the row.
#[derive(Debug, Clone)]
pub(super) enum Check {
    Nothing,
    Absent { family: u8, qualifier: u8 },
    Value { family: u8, qualifier: u8, op: bool, value: u8 },
    Row(Condition),
}

/// A change of one row, under a condition.
#[derive(Debug, Clone)]
pub(super) struct Write {
    row: u8,
    changes: Vec<Change>,
    check: Check,
    time_range: (i64, i64),
    ttl: Option<u64>,
}

impl Value {
    fn bytes(&self) -> Vec<u8> {
        match self {
            Value::Text(number) => number.to_string().into_bytes(),
            Value::Number(number) => number.to_be_bytes().to_vec(),
            Value::Empty => Vec::new(),
        }
    }
}

pub(super) fn write() -> impl Strategy<Value = Write> {
    let check = prop_oneof![
        8 => Just(Check::Nothing),
        1 => (0..FAMILIES, 0..5u8).prop_map(|(family, qualifier)| Check::Absent { family, qualifier }),
        1 => (0..FAMILIES, 0..5u8, any::<bool>(), 0..100u8)
            .prop_map(|(family, qualifier, op, value)| Check::Value { family, qualifier, op, value }),
        1 => condition().prop_map(Check::Row),
    ];
    let time_range = prop_oneof![
        6 => Just((i64::MIN, i64::MAX)),
        1 => (0..8i64, 1..9i64).prop_map(|(min, max)| (min * 100_000, max * 100_000)),
    ];
    let changes = prop::collection::vec(change(), 1..4);
    let ttl = prop::option::weighted(0.1, 1..800u64);
    (0..ROWS, changes, check, time_range, ttl).prop_map(|(row, changes, check, time_range, ttl)| {
        Write { row, changes, check, time_range, ttl }
    })
}

fn change() -> impl Strategy<Value = Change> {
    // Sometimes a version in the future.
    let at = || {
        prop_oneof![
            3 => Just(AT_COMMIT),
            8 => (1..8i64).prop_map(|at| Some(at * 100_000)),
            1 => Just(Some(90_000_000)),
        ]
    };
    let place = || (0..FAMILIES, 0..5u8);
    let value = prop_oneof![
        4 => (0..100u8).prop_map(Value::Text),
        2 => (-3..4i64).prop_map(Value::Number),
        1 => Just(Value::Empty),
    ];
    let ttl = prop::option::weighted(0.25, 1..800u64);
    prop_oneof![
        16 => (place(), at(), value, ttl).prop_map(|((family, qualifier), at, value, ttl)| {
            Change::Put { family, qualifier, at, value, ttl }
        }),
        1 => at().prop_map(|at| Change::DeleteRow { at }),
        1 => (place(), at()).prop_map(|((family, _), at)| Change::DeleteFamily { family, at }),
        1 => (place(), at()).prop_map(|((family, _), at)| Change::DeleteFamilyVersion { family, at }),
        2 => (place(), at()).prop_map(|((family, qualifier), at)| {
            Change::DeleteColumn { family, qualifier, at }
        }),
        2 => (place(), at()).prop_map(|((family, qualifier), at)| {
            Change::DeleteVersion { family, qualifier, at }
        }),
        2 => (place(), -5..6i64).prop_map(|((family, qualifier), amount)| {
            Change::Increment { family, qualifier, amount }
        }),
        2 => (place(), 0..10u8).prop_map(|((family, qualifier), value)| {
            Change::Append { family, qualifier, value }
        }),
        1 => place().prop_map(|(family, qualifier)| Change::DeleteNewest { family, qualifier }),
    ]
}

/// The newest version of a column: its time, its value, its TTL, and true if it is staged.
struct Newest {
    at: i64,
    value: Vec<u8>,
    ttl: Option<Duration>,
    is_staged: bool,
}

impl World {
    /// Stages a write, in the store and in the model.
    pub(super) fn write(&mut self, write: &Write) {
        let write = self.allowed(write);
        let mutation = write.mutation();
        let (edits_before, last_timestamp) = (self.edits, self.last_timestamp());
        let transaction = self.transaction.take().unwrap();
        let done = match write.condition() {
            None if write.is_plain() => {
                transaction.mutate(TABLE, vec![write.plain()]).map(|()| Some(Vec::new()))
            }
            None => transaction.mutate_row(TABLE, mutation).map(Some),
            Some(condition) => transaction.check_and_mutate(TABLE, &condition, mutation),
        };
        self.transaction = Some(transaction);
        let Some(timestamp) = self.holds(&write, last_timestamp) else {
            assert!(matches!(done, Ok(None)), "the condition does not hold");
            return;
        };
        let mut written = Vec::new();
        let staged = write.changes.iter().try_for_each(|change| {
            self.stage(&write, change, (timestamp, last_timestamp), &mut written)
        });
        match (staged, done) {
            (Ok(()), Ok(Some(done))) => {
                let done: Vec<Vec<u8>> = done.into_iter().map(|written| written.value).collect();
                assert!(write.is_plain() || done == written, "{done:?}, {written:?}");
            }
            (Err(()), Err(Error::InvalidRequest(_))) => self.forget_staged(edits_before),
            (staged, done) => panic!("{staged:?}, but {:?}", done.err()),
        }
    }

    /// Replaces markers of versions by markers of ranges in families for which their effect is
    /// undefined.
    fn allowed(&self, write: &Write) -> Write {
        let mut write = write.clone();
        for change in &mut write.changes {
            let allows = |family: u8| allows_version_markers(&self.families[usize::from(family)]);
            *change = match *change {
                Change::DeleteFamilyVersion { family, at } if !allows(family) => {
                    Change::DeleteFamily { family, at }
                }
                Change::DeleteVersion { family, qualifier, at } if !allows(family) => {
                    Change::DeleteColumn { family, qualifier, at }
                }
                Change::DeleteNewest { family, qualifier } if !allows(family) => {
                    Change::DeleteColumn { family, qualifier, at: AT_COMMIT }
                }
                _ => continue,
            };
        }
        write
    }

    fn last_timestamp(&self) -> i64 {
        let empty = self.store().begin(TransactionOptions::default());
        empty.commit().unwrap().timestamp.0
    }

    /// Returns the cells visible to reads under the row's lock.
    fn seen(&self, family: u8, time_range: (i64, i64)) -> Vec<model::FoundCell> {
        let spec = ReadSpec {
            snapshot: Sequence(Sequence::STAGED - 1),
            staged_through: Sequence(u64::MAX),
            time_range: range(time_range),
            max_versions: u32::MAX,
            raw: false,
            now_micros: self.env.now_micros(),
        };
        let family = usize::from(family);
        visible(&self.cells()[family], &self.families[family], &spec)
    }

    fn newest(&self, write: &Write, family: u8, number: u8) -> Option<Newest> {
        let found = self.seen(family, write.time_range);
        let (row, column) = (row(write.row), qualifier(number));
        let (_, _, at, sequence, value) =
            found.into_iter().find(|found| found.0 == row && found.1 == column)?;
        let is_it = |cell: &&Cell| {
            (&cell.row, &cell.qualifier) == (&row, &column)
                && (cell.timestamp.0, cell.sequence.0) == (at, sequence)
                && cell.cell_type.is_put()
        };
        let cells = self.cells();
        let cell = cells[usize::from(family)].iter().find(is_it).unwrap();
        let ttl = (cell.cell_type == CellType::ExpiringPut)
            .then(|| split_expiring(&cell.value).unwrap().0);
        Some(Newest { at, value, ttl, is_staged: cell.sequence.is_staged() })
    }

    /// Returns whether the condition of a write holds, and the time that it gives its edits.
    fn holds(&self, write: &Write, last_timestamp: i64) -> Option<Option<i64>> {
        let (holds, at) = match &write.check {
            Check::Nothing => (true, None),
            Check::Absent { family, qualifier } => {
                (self.newest(write, *family, *qualifier).is_none(), None)
            }
            Check::Value { family, qualifier, op, value } => {
                let newest = self.newest(write, *family, *qualifier)?;
                let value = Value::Text(*value).bytes();
                let holds = if *op { newest.value <= value } else { newest.value > value };
                (holds, Some(newest.at).filter(|at| is_ahead(*at, last_timestamp)))
            }
            Check::Row(condition) => {
                let seen = (0..FAMILIES).flat_map(|family| {
                    let found = self.seen(family, write.time_range).into_iter();
                    found.map(move |(row, column, at, _, value)| (row, family, column, at, value))
                });
                let mut seen = seen.filter(|cell| cell.0 == row(write.row));
                (seen.any(|cell| condition.passes(&cell)), None)
            }
        };
        holds.then_some(at)
    }

    /// Stages one change in the model; `Err` if the store must reject it.
    fn stage(
        &mut self,
        write: &Write,
        change: &Change,
        (checked_at, last_timestamp): (Option<i64>, i64),
        written: &mut Vec<Vec<u8>>,
    ) -> Result<(), ()> {
        let ttl = |ttl: &Option<u64>| ttl.map(Duration::from_millis);
        let at = |at: &Option<i64>| at.or(checked_at);
        match change {
            Change::Put { family, qualifier, at: time, value, ttl: own } => {
                self.put((write.row, *family, *qualifier), at(time), value.bytes(), ttl(own));
            }
            Change::DeleteRow { at: time } => {
                self.edits += 1;
                for family in 0..FAMILIES {
                    self.mark((write.row, family, 0), at(time), CellType::DeleteFamily);
                }
            }
            Change::DeleteFamily { family, at: time } => {
                self.edits += 1;
                self.mark((write.row, *family, 0), at(time), CellType::DeleteFamily);
            }
            Change::DeleteFamilyVersion { family, at: time } => {
                self.edits += 1;
                self.mark((write.row, *family, 0), *time, CellType::DeleteFamilyVersion);
            }
            Change::DeleteColumn { family, qualifier, at: time } => {
                self.edits += 1;
                self.mark((write.row, *family, *qualifier), at(time), CellType::DeleteColumn);
            }
            Change::DeleteVersion { family, qualifier, at: time } => {
                self.edits += 1;
                self.mark((write.row, *family, *qualifier), *time, CellType::Delete);
            }
            Change::Increment { family, qualifier, .. }
            | Change::Append { family, qualifier, .. } => {
                let old = self.newest(write, *family, *qualifier);
                let value = replacement(change, old.as_ref().map(|old| &old.value[..]))?;
                let ahead =
                    old.as_ref().map(|old| old.at).filter(|at| is_ahead(*at, last_timestamp));
                let time = ahead.map(|at| at + 1).or(checked_at);
                let ttl = ttl(&write.ttl).or(old.and_then(|old| old.ttl));
                written.push(value.clone());
                self.put((write.row, *family, *qualifier), time, value, ttl);
            }
            Change::DeleteNewest { family, qualifier } => {
                let Some(newest) = self.newest(write, *family, *qualifier) else { return Ok(()) };
                self.edits += 1;
                // It would not be part of the commit, so it would not have evicted another one.
                let alone = self.families[usize::from(*family)].versions == 1;
                let kind = match newest.is_staged && alone {
                    true => CellType::DeleteColumn,
                    false => CellType::Delete,
                };
                self.mark((write.row, *family, *qualifier), Some(newest.at), kind);
            }
        }
        Ok(())
    }

    fn put(
        &mut self,
        (row_number, family, number): (u8, u8, u8),
        at: Option<i64>,
        value: Vec<u8>,
        ttl: Option<Duration>,
    ) {
        self.edits += 1;
        let (cell_type, value) = match ttl {
            Some(ttl) => (CellType::ExpiringPut, expiring_value(ttl, &value)),
            None => (CellType::Put, value),
        };
        let mut cell = self.cell((row_number, number), at, cell_type);
        cell.value = value;
        self.staged.push((family, cell));
    }

    fn mark(&mut self, (row, family, number): (u8, u8, u8), at: Option<i64>, kind: CellType) {
        let marker = self.cell((row, number), at, kind);
        self.staged.push((family, marker));
    }

    /// Returns a cell of the last staged edit.
    fn cell(&self, (number, column): (u8, u8), at: Option<i64>, cell_type: CellType) -> Cell {
        Cell {
            row: row(number),
            family: 0,
            qualifier: qualifier(column),
            timestamp: at.map_or(Timestamp::LATEST, Timestamp),
            sequence: Sequence(Sequence::STAGED | self.edits),
            cell_type,
            value: Vec::new(),
        }
    }
}

fn range((min, max): (i64, i64)) -> TimeRange {
    TimeRange::new(Timestamp(min), Timestamp(max))
}

fn is_ahead(at: i64, last_timestamp: i64) -> bool {
    at != Timestamp::LATEST.0 && at > last_timestamp
}

/// Returns the result of an increment or append.
fn replacement(change: &Change, old: Option<&[u8]>) -> Result<Vec<u8>, ()> {
    match change {
        Change::Increment { amount, .. } => {
            let old = old.map_or(Ok([0; 8]), |old| old.try_into().map_err(|_| ()))?;
            Ok((i64::from_be_bytes(old) + amount).to_be_bytes().to_vec())
        }
        Change::Append { value, .. } => {
            Ok([old.unwrap_or_default(), value.to_string().as_bytes()].concat())
        }
        _ => unreachable!("only these two make a value of another"),
    }
}

/// Returns the final state of staged cells: of a version that was staged twice the later one, and
/// no put that was deleted again.
pub(super) fn collapsed(
    staged: Vec<(u8, Cell)>,
    sequence: Sequence,
    timestamp: Timestamp,
) -> Vec<(u8, Cell)> {
    let goes = |(family, cell): &(u8, Cell)| {
        let later = |(other_family, other): &&(u8, Cell)| {
            other_family == family && other.row == cell.row && other.sequence > cell.sequence
        };
        staged.iter().filter(later).any(|(_, other)| {
            let same_column = other.qualifier == cell.qualifier;
            let same_version = same_column && other.timestamp == cell.timestamp;
            match other.cell_type {
                CellType::Put | CellType::ExpiringPut => same_version && cell.cell_type.is_put(),
                _ if !cell.cell_type.is_put() => same_version && other.cell_type == cell.cell_type,
                CellType::DeleteFamily => cell.timestamp <= other.timestamp,
                CellType::DeleteFamilyVersion => cell.timestamp == other.timestamp,
                CellType::DeleteColumn => same_column && cell.timestamp <= other.timestamp,
                CellType::Delete => same_version,
            }
        })
    };
    let kept = staged.iter().filter(|cell| !goes(cell)).cloned();
    kept.map(|(family, mut cell)| {
        cell.sequence = sequence;
        if cell.timestamp == Timestamp::LATEST {
            cell.timestamp = timestamp;
        }
        (family, cell)
    })
    .collect()
}

impl Write {
    fn mutation(&self) -> RowMutation {
        let mut mutation = RowMutation::new(row(self.row));
        mutation.time_range = range(self.time_range);
        mutation.ttl = self.ttl.map(Duration::from_millis);
        self.changes.iter().fold(mutation, |mutation, change| mutation.with(change.change()))
    }

    /// Returns whether it does not depend on the row, so that it can be a plain mutation.
    fn is_plain(&self) -> bool {
        self.changes.iter().all(|change| matches!(change.change(), RowChange::Edit(_)))
    }

    fn plain(&self) -> Mutation {
        let edits = self.changes.iter().filter_map(|change| match change.change() {
            RowChange::Edit(edit) => Some(edit),
            _ => None,
        });
        edits.fold(Mutation::new(row(self.row)), Mutation::with)
    }

    fn condition(&self) -> Option<RowCondition> {
        let column = |family: u8, number: u8| ColumnName::new(family, qualifier(number));
        match &self.check {
            Check::Nothing => None,
            Check::Absent { family, qualifier } => {
                Some(RowCondition::Absent(column(*family, *qualifier)))
            }
            Check::Value { family, qualifier, op, value } => Some(RowCondition::Value {
                column: column(*family, *qualifier),
                op: if *op { CompareOp::LessOrEqual } else { CompareOp::Greater },
                value: Value::Text(*value).bytes(),
            }),
            Check::Row(condition) => Some(RowCondition::Row(condition.filter())),
        }
    }
}

impl Change {
    fn change(&self) -> RowChange {
        let time = |at: &Option<i64>| at.map(Timestamp);
        let version = |at: &Option<i64>| at.map_or(Timestamp::LATEST, Timestamp);
        let column = |family: &u8, number: &u8| ColumnName::new(*family, qualifier(*number));
        RowChange::Edit(match self {
            Change::Put { family, qualifier: number, at, value, ttl } => Edit::Put {
                family: *family,
                qualifier: qualifier(*number),
                timestamp: time(at),
                value: value.bytes(),
                ttl: ttl.map(Duration::from_millis),
            },
            Change::DeleteRow { at } => Edit::DeleteRow { timestamp: time(at) },
            Change::DeleteFamily { family, at } => {
                Edit::DeleteFamily { family: *family, timestamp: time(at) }
            }
            Change::DeleteFamilyVersion { family, at } => {
                Edit::DeleteFamilyVersion { family: *family, timestamp: version(at) }
            }
            Change::DeleteColumn { family, qualifier: number, at } => Edit::DeleteColumn {
                family: *family,
                qualifier: qualifier(*number),
                timestamp: time(at),
            },
            Change::DeleteVersion { family, qualifier: number, at } => Edit::DeleteVersion {
                family: *family,
                qualifier: qualifier(*number),
                timestamp: version(at),
            },
            Change::Increment { family, qualifier, amount } => {
                let column = column(family, qualifier);
                return RowChange::Increment { column, amount: *amount };
            }
            Change::Append { family, qualifier, value } => {
                let value = value.to_string().into_bytes();
                return RowChange::Append { column: column(family, qualifier), value };
            }
            Change::DeleteNewest { family, qualifier } => {
                return RowChange::DeleteNewest { column: column(family, qualifier) };
            }
        })
    }
}
