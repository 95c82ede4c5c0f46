//! Reads of a store, and their expected results by the direct meaning of each option, from the
//! cells that were ever written.

use std::collections::BTreeMap;
use std::ops::Bound;
use std::sync::Arc;

use proptest::prelude::*;
use store::cell::CellType;
use store::family_store::ReadSpec;
use store::scan::filter::{
    ColumnCondition, ColumnOffset, Comparator, CompareOp, Comparison, FilterRange, FuzzyRow,
    RowPredicate,
};
use store::scan::{CellWindow, FamilyRead};
use store::{Cell, FamilyDescriptor, Filter, Get, RowRef, Scan, TimeRange, Timestamp};

use crate::cases::histories::model::visible;
use crate::cases::histories::{FAMILIES, ROWS, qualifier, row};

/// A cell of a result: row, family, qualifier, timestamp, value.
pub(super) type FoundVersion = (Vec<u8>, u8, Vec<u8>, i64, Vec<u8>);

/// A condition that judges each cell separately.
#[derive(Debug, Clone)]
pub(super) enum Condition {
    True,
    RowPrefix(u8),
    Rows(Vec<(u8, u8)>),
    Fuzzy(u8),
    Row(CompareOp, u8),
    ColumnRange(u8, u8),
    ColumnPrefix(Vec<u8>),
    Column(CompareOp, u8),
    Family(CompareOp, u8),
    Value(CompareOp, Against),
    ColumnValue(u8, u8, CompareOp, Against),
    At(Vec<i64>),
    All(Vec<Condition>),
    Any(Vec<Condition>),
}

/// Right-hand side of a comparison.
#[derive(Debug, Clone)]
pub(super) enum Against {
    Binary(u8),
    Prefix(u8),
    Component(u8, u32),
    Long(i64),
    Substring(u8),
    Regex(u8),
    Null,
}

/// Effect of a filter in addition to its condition.
#[derive(Debug, Clone)]
pub(super) enum Shape {
    Plain,
    Page(u64),
    While,
    Skip,
    Single { family: u8, qualifier: u8, op: CompareOp, with: Against, flags: (bool, bool, bool) },
    KeyOnly(bool),
    FirstKey,
    ColumnCount(u32, u32),
    ColumnFrom(u32, u8),
    Custom(u8),
}

/// A read that the model supports.
#[derive(Debug, Clone)]
pub(super) struct ModelRead {
    pub(super) rows: (u8, u8),
    pub(super) reverse: bool,
    families: Option<Vec<u8>>,
    columns: BTreeMap<u8, Vec<u8>>,
    times: BTreeMap<u8, (i64, i64)>,
    time_range: (i64, i64),
    max_versions: u32,
    window: (u32, u32),
    limit: u64,
    batch: Option<u32>,
    shape: Shape,
    condition: Condition,
}

/// Snapshot and time of a read.
#[derive(Debug, Clone, Copy)]
pub(super) struct Standpoint {
    pub(super) snapshot: store::Sequence,
    pub(super) staged_through: store::Sequence,
    pub(super) now_micros: i64,
}

fn compares<T: Ord + ?Sized>(left: &T, op: CompareOp, right: &T) -> bool {
    match op {
        CompareOp::Less => left < right,
        CompareOp::LessOrEqual => left <= right,
        CompareOp::Equal => left == right,
        CompareOp::NotEqual => left != right,
        CompareOp::GreaterOrEqual => left >= right,
        CompareOp::Greater => left > right,
    }
}

fn digits(number: u8) -> Vec<u8> {
    number.to_string().into_bytes()
}

impl Against {
    /// Comparators without an order only support equality.
    fn passes(&self, value: &[u8], op: CompareOp) -> bool {
        let is = |equal: bool| equal == (op == CompareOp::Equal);
        let part = |start: usize, bytes: &[u8]| {
            let start = start.min(value.len());
            value[start..value.len().min(start + bytes.len())].to_vec()
        };
        match self {
            Against::Binary(number) => compares(value, op, &digits(*number)),
            Against::Prefix(number) => compares(&part(0, &digits(*number)), op, &digits(*number)),
            Against::Component(number, offset) => {
                compares(&part(*offset as usize, &digits(*number)), op, &digits(*number))
            }
            Against::Long(number) => match <[u8; 8]>::try_from(value) {
                Ok(bytes) => compares(&i64::from_be_bytes(bytes), op, number),
                Err(_) => compares(&0, op, &1),
            },
            Against::Substring(number) => {
                is(String::from_utf8_lossy(value).contains(&number.to_string()))
            }
            Against::Regex(number) => is(value.starts_with(&digits(*number))),
            Against::Null => is(value.is_empty()),
        }
    }

    fn has_order(&self) -> bool {
        !matches!(self, Against::Substring(_) | Against::Regex(_) | Against::Null)
    }

    fn comparison(&self, op: CompareOp) -> Comparison {
        let with = match self {
            Against::Binary(number) => Comparator::Binary(digits(*number)),
            Against::Prefix(number) => Comparator::BinaryPrefix(digits(*number)),
            Against::Component(number, offset) => {
                Comparator::BinaryComponent { bytes: digits(*number), offset: *offset }
            }
            Against::Long(number) => Comparator::Long(*number),
            Against::Substring(number) => Comparator::Substring(number.to_string()),
            Against::Regex(number) => Comparator::Regex(format!("^{number}")),
            Against::Null => Comparator::Null,
        };
        Comparison { op, with }
    }
}

impl Condition {
    pub(super) fn passes(&self, cell: &FoundVersion) -> bool {
        let (row_key, family, column, at, value) = cell;
        match self {
            Condition::True => true,
            Condition::RowPrefix(letter) => row_key[0] == *letter,
            Condition::Rows(ranges) => {
                ranges.iter().any(|(a, b)| row(*a) <= *row_key && *row_key < row(*b))
            }
            Condition::Fuzzy(digit) => row_key[1] == *digit,
            Condition::Row(op, number) => compares(row_key, *op, &row(*number)),
            Condition::ColumnRange(a, b) => qualifier(*a) <= *column && *column <= qualifier(*b),
            Condition::ColumnPrefix(list) => {
                list.iter().any(|number| column.starts_with(&qualifier(*number)))
            }
            Condition::Column(op, number) => compares(column, *op, &qualifier(*number)),
            Condition::Family(op, number) => {
                compares(&format!("f{family}"), *op, &format!("f{number}"))
            }
            Condition::Value(op, with) => with.passes(value, *op),
            Condition::ColumnValue(of, number, op, with) => {
                *family == *of && *column == qualifier(*number) && with.passes(value, *op)
            }
            Condition::At(times) => times.contains(at),
            Condition::All(list) => list.iter().all(|one| one.passes(cell)),
            Condition::Any(list) => list.iter().any(|one| one.passes(cell)),
        }
    }

    pub(super) fn filter(&self) -> Filter {
        let list = |list: &[Condition]| list.iter().map(Condition::filter).collect();
        let bound = |number: &u8| Bound::Included(qualifier(*number));
        match self {
            Condition::True => Filter::All(Vec::new()),
            Condition::RowPrefix(letter) => Filter::RowPrefix(vec![*letter]),
            Condition::Rows(ranges) => Filter::RowRanges(
                ranges.iter().map(|(a, b)| FilterRange::new(row(*a), row(*b))).collect(),
            ),
            Condition::Fuzzy(digit) => Filter::FuzzyRow(vec![FuzzyRow(vec![None, Some(*digit)])]),
            Condition::Row(op, number) => Filter::Row(Comparison::binary(*op, row(*number))),
            Condition::ColumnRange(a, b) => Filter::ColumnRange { start: bound(a), stop: bound(b) },
            Condition::ColumnPrefix(list) => {
                Filter::ColumnPrefix(list.iter().map(|number| qualifier(*number)).collect())
            }
            Condition::Column(op, number) => {
                Filter::Qualifier(Comparison::binary(*op, qualifier(*number)))
            }
            Condition::Family(op, number) => {
                Filter::Family(Comparison::binary(*op, format!("f{number}")))
            }
            Condition::Value(op, with) => Filter::Value(with.comparison(*op)),
            Condition::ColumnValue(family, number, op, with) => Filter::ColumnValue {
                family: *family,
                qualifier: qualifier(*number),
                value: with.comparison(*op),
            },
            Condition::At(times) => {
                Filter::Timestamps(times.iter().map(|at| Timestamp(*at)).collect())
            }
            Condition::All(inner) => Filter::All(list(inner)),
            Condition::Any(inner) => Filter::Any(list(inner)),
        }
    }
}

/// Keeps rows with a value that contains a number.
struct Contains(u8);

impl RowPredicate for Contains {
    fn keep(&self, row: &RowRef<'_>) -> store::Result<bool> {
        Ok(row.cells().any(|cell| self.is_in(cell.value)))
    }

    fn describe(&self) -> String {
        format!("contains {}", self.0)
    }
}

impl Contains {
    fn is_in(&self, value: &[u8]) -> bool {
        String::from_utf8_lossy(value).contains(&self.0.to_string())
    }
}

impl ModelRead {
    /// Returns whether rows may be returned in parts.
    fn may_cut(&self) -> bool {
        !matches!(self.shape, Shape::Skip | Shape::Single { .. } | Shape::Custom(_))
    }

    /// Returns the filter, `None` if every cell passes: such reads use other code paths.
    fn filter(&self) -> Option<Filter> {
        match (&self.shape, &self.condition) {
            (Shape::Plain, Condition::True) => None,
            _ => Some(self.any_filter()),
        }
    }

    fn any_filter(&self) -> Filter {
        let condition = self.condition.filter();
        let beside = |filter: Filter| Filter::All(vec![filter, self.condition.filter()]);
        match &self.shape {
            Shape::Plain => condition,
            Shape::Page(rows) => beside(Filter::Page(*rows)),
            Shape::While => Filter::WhileMatch(Box::new(condition)),
            Shape::Skip => Filter::Skip(Box::new(condition)),
            Shape::Single { family, qualifier: number, op, with, flags } => {
                let (keep_if_missing, any_version, exclude_column) = *flags;
                let column = ColumnCondition {
                    keep_if_missing,
                    any_version,
                    exclude_column,
                    ..ColumnCondition::new(*family, qualifier(*number), with.comparison(*op))
                };
                beside(Filter::SingleColumnValue(Box::new(column)))
            }
            Shape::KeyOnly(length_as_value) => {
                beside(Filter::KeyOnly { length_as_value: *length_as_value })
            }
            Shape::FirstKey => beside(Filter::FirstKeyOnly),
            Shape::ColumnCount(limit, count) => {
                Filter::ColumnPage { limit: *limit, offset: ColumnOffset::Count(*count) }
            }
            Shape::ColumnFrom(limit, from) => {
                let offset = ColumnOffset::Qualifier(qualifier(*from));
                Filter::ColumnPage { limit: *limit, offset }
            }
            Shape::Custom(number) => beside(Filter::Custom(Arc::new(Contains(*number)))),
        }
    }

    fn family_reads(&self) -> Vec<FamilyRead> {
        let family_read = |family| FamilyRead {
            family,
            columns: self
                .columns
                .get(&family)
                .map(|columns| columns.iter().map(|column| qualifier(*column)).collect()),
            time_range: self.times.get(&family).copied().map(time_range),
        };
        (0..FAMILIES).map(family_read).collect()
    }

    pub(super) fn scan(&self) -> Scan {
        Scan {
            reverse: self.reverse,
            families: self.families.clone(),
            family_reads: self.family_reads(),
            time_range: time_range(self.time_range),
            max_versions: self.max_versions,
            cells: CellWindow { offset: self.window.0, limit: self.window.1 },
            limit: (self.limit < u64::MAX).then_some(self.limit),
            batch: self.batch.filter(|_| self.may_cut()),
            filter: self.filter(),
            ..Scan::range(row(self.rows.0), Some(row(self.rows.1)))
        }
    }

    /// Returns the maximal number of cells returned as one row.
    pub(super) fn piece_cells(&self) -> usize {
        self.scan().batch.unwrap_or(u32::MAX) as usize
    }

    /// Returns the same read of its first row.
    pub(super) fn get(&self) -> (ModelRead, Get) {
        let rows = (self.rows.0, self.rows.0 + 1);
        let one = ModelRead { rows, limit: u64::MAX, reverse: false, ..self.clone() };
        let get = Get {
            families: self.families.clone(),
            family_reads: self.family_reads(),
            time_range: time_range(self.time_range),
            max_versions: self.max_versions,
            cells: CellWindow { offset: self.window.0, limit: self.window.1 },
            filter: self.filter(),
            ..Get::new(row(self.rows.0))
        };
        (one, get)
    }

    /// Returns the visible cells of the selected families, columns and times, row by row.
    fn rows(
        &self,
        cells: &[Vec<Cell>],
        families: &[FamilyDescriptor],
        standpoint: Standpoint,
    ) -> Vec<Vec<FoundVersion>> {
        let mut rows: BTreeMap<Vec<u8>, Vec<FoundVersion>> = BTreeMap::new();
        for family in self.families.clone().unwrap_or_else(|| (0..FAMILIES).collect()) {
            let index = usize::from(family);
            let spec = ReadSpec {
                snapshot: standpoint.snapshot,
                staged_through: standpoint.staged_through,
                time_range: time_range(*self.times.get(&family).unwrap_or(&self.time_range)),
                max_versions: u32::MAX,
                raw: false,
                now_micros: standpoint.now_micros,
            };
            for (key, column, at, _, value) in visible(&cells[index], &families[index], &spec) {
                let in_range = key >= row(self.rows.0) && key < row(self.rows.1);
                let named = self.columns.get(&family);
                let is_named =
                    named.is_none_or(|list| list.iter().any(|name| qualifier(*name) == column));
                if in_range && is_named {
                    rows.entry(key.clone()).or_default().push((key, family, column, at, value));
                }
            }
        }
        let mut rows: Vec<Vec<FoundVersion>> = rows.into_values().collect();
        if self.reverse {
            rows.reverse();
        }
        rows
    }

    /// Returns the expected result, row by row.
    pub(super) fn answer(
        &self,
        cells: &[Vec<Cell>],
        families: &[FamilyDescriptor],
        standpoint: Standpoint,
    ) -> Vec<Vec<FoundVersion>> {
        let mut rows = Vec::new();
        let limit = match self.shape {
            Shape::Page(page) => self.limit.min(page),
            _ => self.limit,
        };
        let mut ended = false;
        for seen in self.rows(cells, families, standpoint) {
            if ended || rows.len() as u64 >= limit {
                break;
            }
            let passed = self.filtered(&seen, &mut ended);
            let row = self.shown(self.limited(passed));
            if !row.is_empty() && self.keeps(&seen, &row) {
                rows.push(row);
            }
        }
        rows
    }

    /// Returns the cells of a row that pass the filter.
    fn filtered(&self, seen: &[FoundVersion], ended: &mut bool) -> Vec<FoundVersion> {
        let passes = |cell: &&FoundVersion| self.condition.passes(cell);
        let is_first_of_column = |index: usize| {
            index == 0 || {
                let (cell, before) = (&seen[index], &seen[index - 1]);
                (cell.1, &cell.2) != (before.1, &before.2)
            }
        };
        let firsts = (0..seen.len()).filter(|index| is_first_of_column(*index));
        let firsts = firsts.map(|index| &seen[index]);
        let cells: Vec<&FoundVersion> = match &self.shape {
            Shape::While => {
                let passed: Vec<&FoundVersion> = seen.iter().take_while(passes).collect();
                *ended = passed.len() < seen.len();
                passed
            }
            Shape::Skip if !seen.iter().all(|cell| passes(&cell)) => Vec::new(),
            Shape::FirstKey => seen.iter().take(1).filter(passes).collect(),
            Shape::ColumnCount(limit, count) => {
                firsts.skip(*count as usize).take(*limit as usize).collect()
            }
            Shape::ColumnFrom(limit, from) => {
                firsts.filter(|cell| cell.2 >= qualifier(*from)).take(*limit as usize).collect()
            }
            Shape::Single { family, qualifier: number, flags: (_, _, true), .. } => {
                let is_column =
                    |cell: &FoundVersion| cell.1 == *family && cell.2 == qualifier(*number);
                seen.iter().filter(passes).filter(|cell| !is_column(cell)).collect()
            }
            _ => seen.iter().filter(passes).collect(),
        };
        cells.into_iter().cloned().collect()
    }

    /// Applies the limits of versions and cells of families.
    fn limited(&self, cells: Vec<FoundVersion>) -> Vec<FoundVersion> {
        let mut versions: BTreeMap<(u8, Vec<u8>), u32> = BTreeMap::new();
        let mut of_family: BTreeMap<u8, u32> = BTreeMap::new();
        let is_in = |cell: &FoundVersion| {
            let version = versions.entry((cell.1, cell.2.clone())).or_default();
            *version += 1;
            if *version > self.max_versions {
                return false;
            }
            let count = of_family.entry(cell.1).or_default();
            *count += 1;
            *count > self.window.0 && *count <= self.window.0.saturating_add(self.window.1)
        };
        let mut is_in = is_in;
        cells.into_iter().filter(|cell| is_in(cell)).collect()
    }

    fn shown(&self, mut cells: Vec<FoundVersion>) -> Vec<FoundVersion> {
        if let Shape::KeyOnly(length_as_value) = self.shape {
            for cell in &mut cells {
                let length = (cell.4.len() as u32).to_be_bytes();
                cell.4 = if length_as_value { length.to_vec() } else { Vec::new() };
            }
        }
        cells
    }

    /// Decides about a whole row, from its visible cells and the cells to be returned.
    fn keeps(&self, seen: &[FoundVersion], returned: &[FoundVersion]) -> bool {
        match &self.shape {
            Shape::Single { family, qualifier: number, op, with, flags } => {
                let column = seen.iter().filter(|c| c.1 == *family && c.2 == qualifier(*number));
                let mut matched = column.map(|cell| with.passes(&cell.4, *op)).peekable();
                match matched.peek() {
                    None => flags.0,
                    Some(newest) if !flags.1 => *newest,
                    Some(_) => matched.any(|is| is),
                }
            }
            Shape::Custom(number) => returned.iter().any(|cell| Contains(*number).is_in(&cell.4)),
            _ => true,
        }
    }
}

fn time_range((min, max): (i64, i64)) -> TimeRange {
    TimeRange::new(Timestamp(min), Timestamp(max))
}

/// Returns the cells of rows of an answer.
pub(super) fn cells_of(batch: &store::CellBatch) -> Vec<FoundVersion> {
    let cells = batch.rows().flat_map(|row| row.cells().collect::<Vec<_>>());
    cells
        .map(|cell| {
            assert!(cell.cell_type == CellType::Put);
            let (row, qualifier) = (cell.row.to_vec(), cell.qualifier.to_vec());
            (row, cell.family, qualifier, cell.timestamp.0, cell.value.to_vec())
        })
        .collect()
}

fn op() -> impl Strategy<Value = CompareOp> {
    prop::sample::select(vec![
        CompareOp::Less,
        CompareOp::LessOrEqual,
        CompareOp::Equal,
        CompareOp::NotEqual,
        CompareOp::GreaterOrEqual,
        CompareOp::Greater,
    ])
}

/// A valid comparison.
fn comparison() -> impl Strategy<Value = (CompareOp, Against)> {
    let with = prop_oneof![
        3 => (0..100u8).prop_map(Against::Binary),
        1 => (0..10u8).prop_map(Against::Prefix),
        1 => (0..10u8, 0..3u32).prop_map(|(number, offset)| Against::Component(number, offset)),
        1 => (-3..4i64).prop_map(Against::Long),
        1 => (0..10u8).prop_map(Against::Substring),
        1 => (0..10u8).prop_map(Against::Regex),
        1 => Just(Against::Null),
    ];
    (op(), with).prop_map(|(op, with)| match op {
        _ if with.has_order() => (op, with),
        CompareOp::NotEqual | CompareOp::Less | CompareOp::Greater => (CompareOp::NotEqual, with),
        _ => (CompareOp::Equal, with),
    })
}

pub(super) fn condition() -> impl Strategy<Value = Condition> {
    let leaf = prop_oneof![
        3 => Just(Condition::True),
        1 => (b'a'..=b'e').prop_map(Condition::RowPrefix),
        1 => prop::collection::vec((0..ROWS, 0..=ROWS), 0..4).prop_map(Condition::Rows),
        1 => (b'0'..=b'4').prop_map(Condition::Fuzzy),
        1 => (op(), 0..ROWS).prop_map(|(op, number)| Condition::Row(op, number)),
        1 => (0..5u8, 0..5u8).prop_map(|(a, b)| Condition::ColumnRange(a, b)),
        1 => prop::collection::vec(0..5u8, 0..3).prop_map(Condition::ColumnPrefix),
        1 => (op(), 0..5u8).prop_map(|(op, number)| Condition::Column(op, number)),
        1 => (op(), 0..FAMILIES).prop_map(|(op, number)| Condition::Family(op, number)),
        2 => comparison().prop_map(|(op, with)| Condition::Value(op, with)),
        1 => (0..FAMILIES, 0..5u8, comparison()).prop_map(|(family, number, (op, with))| {
            Condition::ColumnValue(family, number, op, with)
        }),
        1 => prop::collection::vec((1..8i64).prop_map(|at| at * 100_000), 0..4)
            .prop_map(Condition::At),
    ];
    leaf.prop_recursive(3, 12, 3, |inner| {
        prop_oneof![
            prop::collection::vec(inner.clone(), 0..4).prop_map(Condition::All),
            prop::collection::vec(inner, 0..4).prop_map(Condition::Any),
        ]
    })
}

fn shape() -> impl Strategy<Value = Shape> {
    let flags = (any::<bool>(), any::<bool>(), any::<bool>());
    prop_oneof![
        4 => Just(Shape::Plain),
        1 => (0..4u64).prop_map(Shape::Page),
        2 => Just(Shape::While),
        2 => Just(Shape::Skip),
        2 => (0..FAMILIES, 0..5u8, comparison(), flags).prop_map(
            |(family, qualifier, (op, with), flags)| {
                Shape::Single { family, qualifier, op, with, flags }
            }
        ),
        1 => any::<bool>().prop_map(Shape::KeyOnly),
        1 => Just(Shape::FirstKey),
        1 => (0..4u32, 0..4u32).prop_map(|(limit, count)| Shape::ColumnCount(limit, count)),
        1 => (0..4u32, 0..5u8).prop_map(|(limit, from)| Shape::ColumnFrom(limit, from)),
        1 => (0..10u8).prop_map(Shape::Custom),
    ]
}

pub(super) fn read() -> impl Strategy<Value = ModelRead> {
    let times = || {
        prop_oneof![
            3 => Just((i64::MIN, i64::MAX)),
            2 => (0..8i64, 1..9i64).prop_map(|(min, max)| (min * 100_000, max * 100_000)),
        ]
    };
    let columns = prop::collection::vec(0..5u8, 0..4);
    let families = prop::option::of(prop::collection::btree_set(0..FAMILIES, 1..3));
    let limits = (
        prop_oneof![Just(1), Just(2), Just(u32::MAX)],
        prop_oneof![3 => Just((0, u32::MAX)), 1 => (0..3u32, 0..4u32)],
        prop_oneof![3 => Just(u64::MAX), 1 => 0..5u64],
        prop::option::of(1..4u32),
    );
    let range = prop_oneof![Just((0, ROWS)), (0..ROWS, 1..=ROWS)];
    let of_families = (
        families,
        prop::collection::btree_map(0..FAMILIES, columns, 0..2),
        prop::collection::btree_map(0..FAMILIES, times(), 0..2),
    );
    let words = (range, any::<bool>(), of_families, times(), limits, shape(), condition());
    words.prop_map(
        |(rows, reverse, (families, columns, own), time_range, limits, shape, condition)| {
            ModelRead {
                rows,
                reverse,
                families: families.map(|families| families.into_iter().collect()),
                columns,
                times: own,
                time_range,
                max_versions: limits.0,
                window: limits.1,
                limit: limits.2,
                batch: limits.3,
                shape,
                condition,
            }
        },
    )
}
