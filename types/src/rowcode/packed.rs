//! Packed row of one cell, byte by byte; see `docs/formats/packed-row.md`.
//!
//! ```text
//! [flags][schema version][slots][fixed bytes][variable values]   the last four as varints
//! [null bitmap, if a value is NULL]
//! [values of fixed width, in slot order; zeros for NULL]
//! [end of each variable value, u16 or u32]
//! [variable values]
//! [residues of key columns]
//! ```

use smallvec::SmallVec;

use super::residue;
use super::residue::Residues;
use super::value;
use super::{ColumnPlace, RowLayout, corrupt};
use crate::datatype::DataType;
use crate::datum::Datum;
use crate::error::Error;
use crate::error::Result;
use crate::interruptible::InterruptPacer;
use crate::varint;
use crate::vector::ValueSink;

/// The version of the format, in the low four bits of the flags.
const VERSION: u8 = 1;
const VERSION_MASK: u8 = 0x0F;
/// A null bitmap follows.
const HAS_NULLS: u8 = 0x10;
/// Ends are u32, not u16.
const WIDE: u8 = 0x20;
/// All known flags.
const KNOWN: u8 = VERSION_MASK | HAS_NULLS | WIDE;

/// Location of a slot in all packed rows that have it.
#[derive(Debug, Clone)]
pub(super) struct Slot {
    /// Its number.
    pub(super) number: usize,
    /// Index of its column in the layout.
    pub(super) column: usize,
    /// Type of the column.
    pub(super) data_type: DataType,
    /// Bytes in the fixed-width section; `None` if the length is variable.
    pub(super) width: Option<usize>,
    /// Offset in the fixed-width section, or number among the variable values.
    position: usize,
}

/// The slots of a cell, in order.
#[derive(Debug, Clone)]
pub(super) struct CellPlan {
    pub(super) slots: SmallVec<[Slot; 24]>,
    /// The second field of the header: the schema version, or the type of a dynamic column.
    stamp: u32,
    fixed_bytes: usize,
    variable_count: usize,
}

impl CellPlan {
    pub(super) fn new(layout: &RowLayout, cell: usize) -> Result<CellPlan> {
        if let Some(of_column) = layout.column_cell(cell) {
            let mut plan = Self::of_columns(layout, &[of_column.column]);
            if of_column.is_dynamic() {
                plan.stamp = dynamic_type(&layout.columns[of_column.column].data_type);
            }
            return Ok(plan);
        }
        const NONE: usize = usize::MAX;
        let mut columns: SmallVec<[usize; 32]> = SmallVec::new();
        for (column, entry) in layout.columns.iter().enumerate() {
            if let ColumnPlace::Packed { cell: of, slot } = entry.place
                && of == cell
            {
                if slot >= columns.len() {
                    columns.resize(slot + 1, NONE);
                }
                debug_assert_eq!(columns[slot], NONE, "slot {slot} has two columns");
                columns[slot] = column;
            }
        }
        if let Some(slot) = columns.iter().position(|&column| column == NONE) {
            return Err(corrupt(&format!("slot {slot} of cell {cell} has no column")));
        }
        Ok(Self::of_columns(layout, &columns))
    }

    /// Returns the plan of a cell whose slots have these columns.
    fn of_columns(layout: &RowLayout, columns: &[usize]) -> CellPlan {
        let (stamp, fixed_bytes, variable_count) = (layout.schema_version, 0, 0);
        let mut plan = CellPlan { slots: SmallVec::new(), stamp, fixed_bytes, variable_count };
        for (number, &column) in columns.iter().enumerate() {
            let data_type = &layout.columns[column].data_type;
            let width = value::width(data_type);
            let position = match width {
                Some(width) => {
                    plan.fixed_bytes += width;
                    plan.fixed_bytes - width
                }
                None => {
                    plan.variable_count += 1;
                    plan.variable_count - 1
                }
            };
            plan.slots.push(Slot { number, column, data_type: data_type.clone(), width, position });
        }
        plan
    }

    /// Returns a slot.
    pub(super) fn slot(&self, number: usize) -> Result<Slot> {
        let slot = self.slots.get(number).cloned();
        slot.ok_or_else(|| corrupt("a slot is missing"))
    }
}

#[inline]
fn take_varint(bytes: &mut &[u8]) -> Result<usize> {
    let number = varint::take(bytes);
    number.map(|n| n as usize).ok_or_else(|| corrupt("truncated header"))
}

fn too_large(what: &str) -> Error {
    err!(PROGRAM_LIMIT_EXCEEDED: "row is too large: {what}")
}

/// Appends the packed row of `values`, which are in table order.
pub(super) fn write(
    layout: &RowLayout,
    plan: &CellPlan,
    cell: usize,
    values: &[Datum],
    (out, pace): (&mut Vec<u8>, &mut InterruptPacer<'_>),
) -> Result<()> {
    debug_assert_eq!(values.len(), layout.columns.len(), "a value for each column");
    let start = out.len();
    let mut has_nulls = false;
    let mut variable_bytes = 0;
    for slot in &plan.slots {
        let value = &values[slot.column];
        match value {
            Datum::Null => has_nulls = true,
            value if !value.fits(&slot.data_type) => {
                bail!(DATATYPE_MISMATCH: "value does not have type {}", slot.data_type.sql_name());
            }
            Datum::Text(text) => variable_bytes += text.len(),
            Datum::Bytea(bytes) => variable_bytes += bytes.len(),
            Datum::Numeric(number) => variable_bytes += 9 + number.heap_bytes(),
            _ => {}
        }
    }
    // An upper bound decides, so that one pass is enough; nested values have no bound, but are
    // usually small.
    let wide = variable_bytes > usize::from(u16::MAX);
    write_header(plan, has_nulls, wide, out);
    let mut written = write_values(plan, values, (has_nulls, wide), out, pace)?;
    if !wide && written > usize::from(u16::MAX) {
        out.truncate(start);
        write_header(plan, has_nulls, true, out);
        written = write_values(plan, values, (has_nulls, true), out, pace)?;
    }
    if u32::try_from(written).is_err() {
        return Err(too_large("more than 4 GiB in one cell"));
    }
    if cell == 0 {
        write_residues(layout, values, out)?;
    }
    debug_assert!(
        PackedRow::parse(&out[start..]).is_ok_and(|row| row.slot_count == plan.slots.len()),
        "a packed row can be read"
    );
    Ok(())
}

/// Appends the packed row without residues; returns the bytes of the variable values.
fn write_values(
    plan: &CellPlan,
    values: &[Datum],
    (has_nulls, wide): (bool, bool),
    out: &mut Vec<u8>,
    pace: &mut InterruptPacer<'_>,
) -> Result<usize> {
    if has_nulls {
        let bitmap = out.len();
        out.resize(bitmap + plan.slots.len().div_ceil(8), 0);
        for slot in plan.slots.iter().filter(|slot| values[slot.column].is_null()) {
            out[bitmap + slot.number / 8] |= 1 << (slot.number % 8);
        }
    }
    let fixed = out.len();
    for slot in &plan.slots {
        if let Some(width) = slot.width {
            match &values[slot.column] {
                Datum::Null => out.resize(out.len() + width, 0),
                value => value::write(value, &mut Vec::new(), out),
            }
        }
    }
    assert_eq!(out.len() - fixed, plan.fixed_bytes, "values of fixed width fill their section");
    write_variable(plan, values, wide, out, pace)
}

/// Appends the header of a packed row.
pub(super) fn write_header(plan: &CellPlan, has_nulls: bool, wide: bool, out: &mut Vec<u8>) {
    let flags = VERSION | if has_nulls { HAS_NULLS } else { 0 } | if wide { WIDE } else { 0 };
    out.push(flags);
    varint::put(u64::from(plan.stamp), out);
    varint::put(plan.slots.len() as u64, out);
    varint::put(plan.fixed_bytes as u64, out);
    varint::put(plan.variable_count as u64, out);
}

/// Appends the ends and bytes of the variable values; returns the number of bytes.
fn write_variable(
    plan: &CellPlan,
    values: &[Datum],
    wide: bool,
    out: &mut Vec<u8>,
    pace: &mut InterruptPacer<'_>,
) -> Result<usize> {
    let end_bytes = if wide { 4 } else { 2 };
    let mut end_at = out.len();
    out.resize(end_at + plan.variable_count * end_bytes, 0);
    let section = out.len();
    for slot in plan.slots.iter().filter(|slot| slot.width.is_none()) {
        match &values[slot.column] {
            Datum::Text(text) => pace.append(out, text.as_bytes())?,
            Datum::Bytea(bytes) => pace.append(out, &**bytes)?,
            value => value::write(value, &mut Vec::new(), out),
        }
        let end = (out.len() - section) as u32;
        out[end_at..end_at + end_bytes].copy_from_slice(&end.to_le_bytes()[..end_bytes]);
        end_at += end_bytes;
    }
    assert_eq!(end_at, section, "each variable value has an end");
    Ok(out.len() - section)
}

fn write_residues(layout: &RowLayout, values: &[Datum], out: &mut Vec<u8>) -> Result<()> {
    for (position, key) in layout.key.iter().enumerate() {
        let data_type = &layout.columns[key.column].data_type;
        if residue::possible(data_type) {
            if position > usize::from(u8::MAX) {
                return Err(too_large("more than 256 key columns"));
            }
            residue::write(position, &values[key.column], data_type, out);
        }
    }
    Ok(())
}

/// The sections of a packed row, without decoded values.
pub(super) struct PackedRow<'a> {
    /// The number of its slots; columns added later have higher slots.
    pub(super) slot_count: usize,
    /// The schema version, or the type of a dynamic column.
    stamp: u32,
    nulls: Option<&'a [u8]>,
    fixed: &'a [u8],
    ends: &'a [u8],
    wide: bool,
    /// The variable values and all following bytes.
    variable: &'a [u8],
}

/// Returns the OID that the cell of a dynamic column has for a type. Types with the same form
/// have the same.
pub(super) fn dynamic_type(data_type: &DataType) -> u32 {
    match data_type {
        DataType::Varchar => DataType::Text.oid(),
        other => other.oid(),
    }
}

/// Returns the type and the value in the cell of a dynamic column; `None` if the type is not
/// built in.
pub(super) fn dynamic_value(bytes: &[u8]) -> Result<Option<(DataType, Datum)>> {
    let row = PackedRow::parse(bytes)?;
    let Some(data_type) = DataType::from_oid(row.stamp) else { return Ok(None) };
    let width = value::width(&data_type);
    let slot = Slot { number: 0, column: 0, data_type: data_type.clone(), width, position: 0 };
    let mut value = [Datum::Null];
    row.read(&slot, &mut value[0])?;
    let [value] = value;
    Ok(Some((data_type, value)))
}

/// Consumes the flags and the schema version of a packed row, and returns them.
#[inline]
fn take_flags(bytes: &mut &[u8]) -> Result<(u8, u32)> {
    let (&flags, rest) = bytes.split_first().ok_or_else(|| corrupt("row is empty"))?;
    if flags & VERSION_MASK != VERSION || flags & !KNOWN != 0 {
        return Err(corrupt("unsupported version"));
    }
    *bytes = rest;
    let stamp = take_varint(bytes)?;
    Ok((flags, stamp as u32))
}

/// Returns the number of slots of a packed row.
pub(super) fn slot_count(mut bytes: &[u8]) -> Result<usize> {
    take_flags(&mut bytes)?;
    take_varint(&mut bytes)
}

impl<'a> PackedRow<'a> {
    #[inline]
    pub(super) fn parse(bytes: &'a [u8]) -> Result<PackedRow<'a>> {
        let mut rest = bytes;
        let (flags, stamp) = take_flags(&mut rest)?;
        let slot_count = take_varint(&mut rest)?;
        let fixed_bytes = take_varint(&mut rest)?;
        let variable_count = take_varint(&mut rest)?;
        let wide = flags & WIDE != 0;
        let end_bytes = if wide { 4 } else { 2 };
        let cut_off = || corrupt("row is truncated");
        let mut nulls = None;
        if flags & HAS_NULLS != 0 {
            let (bitmap, tail) =
                rest.split_at_checked(slot_count.div_ceil(8)).ok_or_else(cut_off)?;
            nulls = Some(bitmap);
            rest = tail;
        }
        let (fixed, rest) = rest.split_at_checked(fixed_bytes).ok_or_else(cut_off)?;
        let (ends, variable) =
            rest.split_at_checked(variable_count * end_bytes).ok_or_else(cut_off)?;
        Ok(PackedRow { slot_count, stamp, nulls, fixed, ends, wide, variable })
    }

    /// Checks that a dynamic column has the type that a statement has declared, unless it is NULL.
    ///
    /// # Errors
    ///
    /// 42804 if it has another type.
    pub(super) fn check_dynamic(&self, slot: &Slot, qualifier: &[u8]) -> Result<()> {
        let is_null =
            self.nulls.is_some_and(|bitmap| bitmap.first().is_some_and(|byte| byte & 1 == 1));
        if is_null || self.stamp == dynamic_type(&slot.data_type) {
            return Ok(());
        }
        let name = String::from_utf8_lossy(qualifier);
        let stored = DataType::from_oid(self.stamp);
        let stored = stored.as_ref().map_or("another type", DataType::sql_name);
        bail!(DATATYPE_MISMATCH: "dynamic column \"{name}\" is of type {stored}, not {}", slot.data_type.sql_name());
    }

    /// Decodes the value of an existing slot into a sink.
    #[inline]
    pub(super) fn read(&self, slot: &Slot, sink: &mut impl ValueSink) -> Result<()> {
        if let Some(bitmap) = self.nulls {
            let byte = bitmap.get(slot.number / 8).ok_or_else(|| corrupt("a slot is missing"))?;
            if byte >> (slot.number % 8) & 1 == 1 {
                sink.put_null();
                return Ok(());
            }
        }
        let bytes = match slot.width {
            Some(width) => self.fixed.get(slot.position..slot.position + width),
            None => {
                let start = if slot.position == 0 { 0 } else { self.end(slot.position - 1)? };
                self.variable.get(start..self.end(slot.position)?)
            }
        };
        let bytes = bytes.ok_or_else(|| corrupt("a value is outside the row"))?;
        value::read(bytes, &slot.data_type, &[], sink)
    }

    /// Returns the end of a variable value.
    #[inline]
    fn end(&self, index: usize) -> Result<usize> {
        let end = if self.wide {
            self.ends
                .get(index * 4..)
                .and_then(|bytes| bytes.first_chunk())
                .map(|&bytes| u32::from_le_bytes(bytes) as usize)
        } else {
            self.ends
                .get(index * 2..)
                .and_then(|bytes| bytes.first_chunk())
                .map(|&bytes| usize::from(u16::from_le_bytes(bytes)))
        };
        end.ok_or_else(|| corrupt("a variable value is missing"))
    }

    /// Returns the residues, which follow the variable values.
    pub(super) fn residues(&self) -> Residues<'a> {
        let end_bytes = if self.wide { 4 } else { 2 };
        let end = match self.ends.len() / end_bytes {
            0 => 0,
            count => self.end(count - 1).unwrap_or(0),
        };
        Residues(self.variable.get(end..).unwrap_or_default())
    }
}
