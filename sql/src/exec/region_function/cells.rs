//! The table function `cells('table', …)`: the stored cells of a table or index, as the HBase
//! shell lists them, with the key and the values decoded.
//!
//! Arguments become a scan that the regions execute, with filters on qualifiers (HBase's
//! QualifierFilter, ColumnPrefixFilter and ColumnRangeFilter), and at most one batch of cells is
//! in memory: a row of any number of cells is read in parts.

use std::ops::Bound;
use std::sync::Arc;

use coprocessors::index::EntryFamily;
use coprocessors::json;
use coprocessors::rows::EPOCH_MICROSECONDS;
use store::cell::{CellRef, CellType};
use store::scan::filter::CompareOp;
use store::scan::filter::Comparison;
use store::scan::{CellWindow, Filter};
use store::transaction::{PartitionRange, Scanner};
use store::{CellBatch, Scan, TimeRange, Timestamp};
use types::datum::Nested;
use types::rowcode::{ColumnPlace, RowLayout};
use types::vector::BATCH_ROWS;
use types::{Batch, DataType, Datum};

use crate::error::{Error, Result};
use crate::exec::{Context, Operator};
use crate::logical::{RegionFunction, RegionFunctionTarget};
use crate::relation_assembly::DEFAULT_FAMILY;

/// Cells of the ranges of a call.
pub(super) struct CellRows {
    types: Vec<DataType>,
    target: Arc<RegionFunctionTarget>,
    context: Arc<Context>,
    names: Vec<String>,
    families: Vec<FamilyCells>,
    /// The scan, without its range.
    scan: Scan,
    ranges: std::vec::IntoIter<PartitionRange>,
    scanner: Option<Scanner>,
    batch: CellBatch,
    rows: std::vec::IntoIter<Vec<Datum>>,
}

/// A family: its name, and the columns of its packed rows without a qualifier.
struct FamilyCells {
    name: String,
    columns: Vec<usize>,
}

impl CellRows {
    /// Opens a call with these arguments, for these ranges.
    ///
    /// # Errors
    ///
    /// 42704 for an unknown family, 22023 for a negative count.
    pub(super) fn open(
        types: &[DataType],
        target: &Arc<RegionFunctionTarget>,
        (given, ranges): (&[(String, Datum)], Vec<PartitionRange>),
        context: &Arc<Context>,
    ) -> Result<CellRows> {
        let families = families(target);
        Ok(CellRows {
            types: types.to_vec(),
            names: target.column_names(),
            scan: scan(target, &families, given)?,
            families,
            target: Arc::clone(target),
            context: Arc::clone(context),
            ranges: ranges.into_iter(),
            scanner: None,
            batch: CellBatch::new(),
            rows: Vec::new().into_iter(),
        })
    }

    /// Reads the next cells; returns whether there are any.
    fn read(&mut self) -> Result<bool> {
        loop {
            let scanner = match &mut self.scanner {
                Some(scanner) => scanner,
                None => {
                    let Some((start, stop)) = self.ranges.next() else { return Ok(false) };
                    let scan = Scan { start, stop, ..self.scan.clone() };
                    let table = self.target.store_table();
                    self.scanner.insert(self.context.transaction.scan(table, scan)?)
                }
            };
            if scanner.next_batch(BATCH_ROWS, &mut self.batch)? {
                break;
            }
            self.scanner = None;
        }
        let mut rows = Vec::with_capacity(self.batch.cell_count());
        for row in self.batch.rows() {
            let key = self.key(row.key())?;
            for cell in row.cells() {
                rows.push(self.row(&cell, key.clone())?);
            }
        }
        self.rows = rows.into_iter();
        Ok(true)
    }

    fn row(&self, cell: &CellRef<'_>, key: Datum) -> Result<Vec<Datum>> {
        let timestamp = match cell.timestamp {
            Timestamp::LATEST => i64::MAX,
            Timestamp(micros) => micros.saturating_sub(EPOCH_MICROSECONDS),
        };
        let Some(family) = self.families.get(usize::from(cell.family)) else {
            bail!(INTERNAL_ERROR: "relation has no column family {}", cell.family);
        };
        Ok(vec![
            Datum::bytea(cell.row),
            Datum::text(family.name.clone()),
            Datum::text(self.qualifier(cell)),
            Datum::Timestamptz(timestamp),
            Datum::text(cell.cell_type.name()),
            Datum::bytea(cell.value),
            key,
            self.columns(cell, family)?,
        ])
    }

    /// Returns the values of a row key, as a JSON object.
    fn key(&self, row_key: &[u8]) -> Result<Datum> {
        let layout = self.target.layout();
        let values = layout.decode_key(row_key)?;
        Ok(self.object(layout.key.iter().map(|key| key.column), &values))
    }

    /// Returns the values of a put's columns, as a JSON object; NULL for a marker.
    fn columns(&self, cell: &CellRef<'_>, family: &FamilyCells) -> Result<Datum> {
        let is_put = matches!(cell.cell_type, CellType::Put | CellType::ExpiringPut);
        let layout = self.target.layout();
        let number = layout.cell_named(usize::from(cell.family), cell.qualifier);
        let Some(number) = number.filter(|_| is_put) else {
            let is_dynamic = is_put && !layout.column_cells.is_empty();
            return if is_dynamic { dynamic_column(cell) } else { Ok(Datum::Null) };
        };
        let only = layout.column_of_cell(number);
        let columns = only.as_ref().map_or(family.columns.as_slice(), std::slice::from_ref);
        let mut packed = vec![None; layout.cell_count()];
        packed[number] = Some(cell.value);
        let mut values = vec![Datum::Null; columns.len()];
        let decoder = types::rowcode::RowDecoder::new(layout, columns)?;
        decoder.decode(cell.row, &packed, &mut values)?;
        Ok(self.object(columns.iter().copied(), &values))
    }

    /// Returns the name of the column for the cell of a declared column; otherwise the bytes.
    fn qualifier(&self, cell: &CellRef<'_>) -> String {
        let layout = self.target.layout();
        let number = layout.cell_named(usize::from(cell.family), cell.qualifier);
        match number.and_then(|number| layout.column_of_cell(number)) {
            Some(column) => self.names[column].clone(),
            None => String::from_utf8_lossy(cell.qualifier).into_owned(),
        }
    }

    fn object<'v>(&self, columns: impl Iterator<Item = usize>, values: &'v [Datum]) -> Datum {
        let layout: &RowLayout = self.target.layout();
        let named = |(column, value): (usize, &'v Datum)| {
            (self.names[column].as_str(), &layout.columns[column].data_type, value)
        };
        let mut text = String::new();
        json::write_object(columns.zip(values).map(named), &mut text);
        Datum::Nested(Nested::Json(text.into()))
    }
}

impl Operator for CellRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        self.context.check()?;
        while self.rows.as_slice().is_empty() {
            if !self.read()? {
                return Ok(None);
            }
        }
        let rows: Vec<Vec<Datum>> = self.rows.by_ref().take(BATCH_ROWS).collect();
        Ok(Some(Batch::from_rows(&self.types, &rows)))
    }
}

/// Returns the value of a dynamic column, as a JSON object; NULL for a user-defined type.
fn dynamic_column(cell: &CellRef<'_>) -> Result<Datum> {
    let Some((data_type, value)) = types::rowcode::dynamic_value(cell.value)? else {
        return Ok(Datum::Null);
    };
    let name = String::from_utf8_lossy(cell.qualifier);
    let mut text = String::new();
    json::write_object([(&*name, &data_type, &value)].into_iter(), &mut text);
    Ok(Datum::Nested(Nested::Json(text.into())))
}

/// Returns the families of the rows, by index.
fn families(target: &RegionFunctionTarget) -> Vec<FamilyCells> {
    let (table, layout) = (&target.table, target.layout());
    let base = &table.descriptor.families;
    let name = |family: usize| match &target.function {
        RegionFunction::Cells(Some(index)) => match index.spec.families.all()[family] {
            EntryFamily::Of { cell, .. } => {
                let of = &base[table.layout.family_of_cell(cell)].name;
                match table.layout.column_of_cell(cell) {
                    Some(column) => format!("{of}.{}", table.columns[column].name),
                    None if table.layout.living_families() > 1 => of.clone(),
                    None => DEFAULT_FAMILY.to_owned(),
                }
            }
            EntryFamily::Row => DEFAULT_FAMILY.to_owned(),
        },
        _ => base[family].name.clone(),
    };
    let columns = |family: usize| {
        let is_inside = |column: &usize| {
            matches!(layout.columns[*column].place, ColumnPlace::Packed { cell, .. } if cell == family)
                && (matches!(target.function, RegionFunction::Cells(Some(_)))
                    || !table.columns[*column].is_hidden())
        };
        (0..layout.columns.len()).filter(is_inside).collect()
    };
    let family = |family| FamilyCells { name: name(family), columns: columns(family) };
    (0..layout.family_count).map(family).collect()
}

/// Conditions on the names of columns, all of which must hold.
#[derive(Default)]
struct NameConditions {
    equal: Option<String>,
    prefix: Option<String>,
    /// First name.
    start: Option<String>,
    /// Name after the last one.
    stop: Option<String>,
}

impl NameConditions {
    fn hold(&self, name: &str) -> bool {
        self.equal.as_ref().is_none_or(|equal| name == equal)
            && self.prefix.as_ref().is_none_or(|prefix| name.starts_with(prefix.as_str()))
            && self.start.as_ref().is_none_or(|start| name >= start.as_str())
            && self.stop.as_ref().is_none_or(|stop| name < stop.as_str())
    }

    /// Returns the filter for the cells of these columns; `None` for all. The qualifier of a
    /// declared column is its number, that of a dynamic one its name.
    fn filter(&self, target: &RegionFunctionTarget) -> Option<Filter> {
        let given = [&self.equal, &self.prefix, &self.start, &self.stop];
        if given.iter().all(|condition| condition.is_none()) {
            return None;
        }
        let equal =
            |qualifier: &[u8]| Filter::Qualifier(Comparison::binary(CompareOp::Equal, qualifier));
        let bytes = |text: &String| text.as_bytes().to_vec();
        let mut dynamic: Vec<Filter> =
            self.equal.iter().map(|name| equal(name.as_bytes())).collect();
        dynamic.extend(self.prefix.iter().map(|prefix| Filter::ColumnPrefix(vec![bytes(prefix)])));
        let layout = target.layout();
        // Numbers begin with the byte 0, which no name has.
        let first_name = (!layout.column_cells.is_empty()).then(|| vec![1]);
        let start = self.start.as_ref().map(bytes).or(first_name.filter(|_| self.equal.is_none()));
        let stop = self.stop.as_ref().map(bytes);
        dynamic.push(Filter::ColumnRange {
            start: start.map_or(Bound::Unbounded, Bound::Included),
            stop: stop.map_or(Bound::Unbounded, Bound::Excluded),
        });
        let is_named = |cell: &usize| {
            let column = layout.column_of_cell(*cell);
            column.is_some_and(|column| self.hold(target.table.qualifier_name(column)))
        };
        let declared = (0..layout.cell_count()).filter(is_named);
        let declared = declared.map(|cell| equal(layout.qualifier_of_cell(cell)));
        Some(Filter::Any([Filter::All(dynamic)].into_iter().chain(declared).collect()))
    }
}

/// Returns the scan of a call with these arguments, over all rows.
fn scan(
    target: &RegionFunctionTarget,
    families: &[FamilyCells],
    given: &[(String, Datum)],
) -> Result<Scan> {
    let mut scan = Scan { batch: Some(BATCH_ROWS as u32), ..Scan::all() };
    let (mut names, mut window) = (NameConditions::default(), CellWindow::ALL);
    let TimeRange { mut min, mut max, .. } = TimeRange::ALL;
    for (name, value) in given {
        let text = || value.as_str().map(str::to_owned);
        let time = || {
            let micros = match value {
                Datum::Timestamptz(micros) => *micros,
                _ => 0,
            };
            Timestamp(micros.saturating_add(EPOCH_MICROSECONDS))
        };
        match name.as_str() {
            "raw" => scan.raw = value.as_bool() == Some(true),
            "versions" => scan.max_versions = count(name, value, 1)?,
            "family" => {
                let name = value.as_str().unwrap_or_default();
                let found = families.iter().position(|family| family.name == name);
                let Some(family) = found else {
                    bail!(UNDEFINED_OBJECT: "column family \"{name}\" of relation \"{}\" does not exist", target.table.name);
                };
                scan = scan.family(family as u8);
            }
            "qualifier" => names.equal = text(),
            "qualifier_prefix" => names.prefix = text(),
            "qualifier_start" => names.start = text(),
            "qualifier_stop" => names.stop = text(),
            "cell_offset" => window.offset = count(name, value, 0)?,
            "cell_limit" => window.limit = count(name, value, 0)?,
            "time_start" => min = time(),
            "time_stop" => max = time(),
            other => return Err(err!(INTERNAL_ERROR: "unknown parameter \"{other}\" of cells()")),
        }
    }
    if window.limit == 0 {
        scan.limit = Some(0);
    }
    scan.filter = names.filter(target);
    scan.cells = window;
    scan.time_range = TimeRange::new(min, max);
    Ok(scan)
}

/// Returns a count that is at least `minimum`.
fn count(name: &str, value: &Datum, minimum: u32) -> Result<u32> {
    let count = value.as_i64().and_then(|count| u32::try_from(count).ok());
    count.filter(|count| *count >= minimum).ok_or_else(|| {
        let what = if minimum > 0 { "be a positive integer" } else { "not be negative" };
        err!(INVALID_PARAMETER_VALUE: "{name} must {what}")
    })
}
