//! Index entries: the index row of a base row, and the base row's key of an index row.
//!
//! ```text
//!   base row    salt? | primary key                      packed: columns
//!                          |                                  |
//!   not unique  salt? | keys | primary key               packed: include
//!   unique      salt? | keys                             packed: primary key, include
//!   unique,     salt? | keys | primary key               packed: primary key, include
//!     a NULL
//!   local       keys | primary key | salt? | length      packed: include
//! ```
//! An inverted index has an entry for each term of its key, with the term as `keys`.
//!
//! The bytes of the primary key are copied, not decoded and encoded again, if index and table
//! store it in the same order. The reverse direction does the same.

use std::time::Duration;

use smallvec::SmallVec;
use store::descriptor::colocation::{append_base_row, base_row};
use store::error::Veto;
use store::transaction::Locking;
use store::{Edit, Mutation, RowRef, Timestamp};
use types::error::sqlstate;
use types::expr::{EvalContext, Expr};
use types::interruptible::InterruptPacer;
use types::rowcode::{RowDecoder, RowLayout, RowPacker, key_loses_form};
use types::text::TextStyle;
use types::{DataType, Datum, Result, Vector, keycode};

use super::IndexSpec;
use crate::change::RowState;
use crate::index::families::EntryFamily;
use crate::row::{ReadColumns, packed_cells, puts_of_row};
use crate::violation::DuplicateKey;

/// Origin of a column of the index row.
#[derive(Debug, Clone, Copy)]
enum EntryColumnSource {
    /// A column of the base row.
    Column(usize),
    /// The value of a functional key.
    Function(usize),
    /// The bytes of the base row's key, which are copied without decoding.
    Copied,
}

/// Computes index rows of base rows; reuses its buffers from row to row.
pub(super) struct EntryWriter<'s> {
    spec: &'s IndexSpec,
    decoder: RowDecoder<'s>,
    /// One for each family.
    packers: SmallVec<[RowPacker; 1]>,
    /// One for each column of the index's layout.
    sources: Vec<EntryColumnSource>,
    /// Columns that functional keys and the predicate read.
    inputs: Vec<usize>,
    /// The primary key is copied from the base row's key, behind the index keys.
    copies_primary_key: bool,
    /// The decoded columns: those of `sources` in their order, then `inputs`.
    columns: Vec<usize>,
    decoded: Vec<Datum>,
    /// The index row in the order of the index's layout; NULL where it is copied.
    values: Vec<Datum>,
    /// The terms of the key of an inverted index.
    terms: Vec<Vec<u8>>,
    /// The base row for functional keys and the predicate, sparse.
    input_row: Vec<Datum>,
    context: &'s EvalContext,
    /// Buffer.
    key: Vec<u8>,
}

impl<'s> EntryWriter<'s> {
    pub(super) fn new(spec: &'s IndexSpec, context: &'s EvalContext) -> Result<EntryWriter<'s>> {
        let inputs = function_inputs(spec);
        let width = if inputs.is_empty() { 0 } else { spec.base_layout.columns.len() };
        let copies_primary_key = !spec.unique && same_primary_key(spec);
        let sources = sources(spec, copies_primary_key);
        let mut columns: Vec<usize> = Vec::with_capacity(sources.len() + inputs.len());
        columns.extend(sources.iter().filter_map(|source| match source {
            EntryColumnSource::Column(column) => Some(*column),
            EntryColumnSource::Function(_) | EntryColumnSource::Copied => None,
        }));
        columns.extend(&inputs);
        Ok(EntryWriter {
            decoder: RowDecoder::new(&spec.base_layout, &columns)?,
            packers: (0..spec.layout.family_count)
                .map(|family| RowPacker::new(&spec.layout, family))
                .collect::<Result<_>>()?,
            values: vec![Datum::Null; sources.len()],
            terms: Vec::new(),
            sources,
            inputs,
            copies_primary_key,
            decoded: vec![Datum::Null; columns.len()],
            columns,
            input_row: vec![Datum::Null; width],
            context,
            key: Vec::new(),
            spec,
        })
    }

    /// Returns the text style of values in messages.
    pub(super) fn style(&self) -> &'s TextStyle {
        &self.context.style
    }

    /// Reads a stored base row, decoding only the columns that the index needs. Returns whether
    /// it has entries. If not, the other methods must not be called.
    pub(super) fn read(&mut self, row_key: &[u8], state: &RowState<'_>) -> Result<bool> {
        let lacks = |needed: &EntryFamily| match needed {
            EntryFamily::Row => false,
            EntryFamily::Of { cell, .. } => state.cell(*cell).is_none(),
        };
        if self.spec.families.required_families().iter().any(lacks) {
            return Ok(false);
        }
        self.decoder.decode(row_key, &state.packed(), &mut self.decoded)?;
        self.take_decoded()
    }

    /// Returns the columns of the base table that [`EntryWriter::read_columns`] expects.
    pub(super) fn columns(&self) -> &[usize] {
        &self.columns
    }

    /// As [`EntryWriter::read`], for a row of a slice. `columns` has the order of
    /// [`EntryWriter::columns`]. The slice has all columns that an entry needs.
    pub(super) fn read_columns(&mut self, columns: &[Vector], row: usize) -> Result<bool> {
        for (value, column) in self.decoded.iter_mut().zip(columns) {
            *value = column.datum(row);
        }
        self.take_decoded()
    }

    /// Evaluates functional keys and the predicate for the row in `decoded`. Returns whether it
    /// has entries.
    fn take_decoded(&mut self) -> Result<bool> {
        let first_input = self.decoded.len() - self.inputs.len();
        let (decoded, input_values) = self.decoded.split_at_mut(first_input);
        for (&column, value) in self.inputs.iter().zip(input_values) {
            self.input_row[column] = std::mem::replace(value, Datum::Null);
        }
        if !self.spec.has_entry(&self.input_row, self.context)? {
            return Ok(false);
        }
        let mut decoded = decoded.iter_mut();
        for (source, value) in self.sources.iter().zip(&mut self.values) {
            *value = match source {
                EntryColumnSource::Column(_) => {
                    let next = decoded.next().expect("every column of the sources is decoded");
                    std::mem::replace(next, Datum::Null)
                }
                EntryColumnSource::Function(key) => {
                    self.spec.keys[*key].eval_row(&self.input_row, self.context)?
                }
                EntryColumnSource::Copied => Datum::Null,
            };
        }
        let Some(class) = self.spec.inverted else { return Ok(true) };
        let value = std::mem::replace(&mut self.values[0], Datum::Null);
        self.terms = class.terms(&value, self.spec.keys[0].data_type())?;
        Ok(!self.terms.is_empty())
    }

    /// Returns the row keys of the entries of the row read last, which has this base row key;
    /// those of an inverted index ascend.
    pub(super) fn entry_keys(&mut self, base_key: &[u8]) -> Result<EntryKeys> {
        let mut keys = EntryKeys::new();
        self.for_each_key(base_key, |_, key| {
            keys.push(key.to_vec());
            Ok::<(), types::Error>(())
        })?;
        keys.sort_unstable();
        Ok(keys)
    }

    /// Calls `take` with the row key of each entry of the row read last, which has this base row
    /// key.
    pub(super) fn for_each_key<E: From<types::Error>>(
        &mut self,
        base_key: &[u8],
        mut take: impl FnMut(&Self, &[u8]) -> std::result::Result<(), E>,
    ) -> std::result::Result<(), E> {
        let mut key = std::mem::take(&mut self.key);
        let terms = std::mem::take(&mut self.terms);
        let count = if self.spec.inverted.is_some() { terms.len() } else { 1 };
        for number in 0..count {
            if let Some(term) = terms.get(number) {
                self.values[0] = Datum::bytea(&term[..]);
            }
            key.clear();
            self.key_into(base_key, &mut key)?;
            take(self, &key)?;
        }
        (self.key, self.terms) = (key, terms);
        Ok(())
    }

    /// Appends the row key of an entry of the row read last, which has this base row key.
    fn key_into(&self, base_key: &[u8], out: &mut Vec<u8>) -> Result<()> {
        let layout = &self.spec.layout;
        let base_layout = &self.spec.base_layout;
        if self.spec.local {
            layout.encode_key_with_tail(self.keys(), &[], out)?;
            append_base_row(base_key, base_layout.salt_buckets > 0, out);
            return Ok(());
        }
        if self.copies_primary_key {
            let keys = &self.values[..self.spec.keys.len()];
            let primary_key = without_salt(base_layout, base_key);
            return layout.encode_key_with_tail(keys, primary_key, out);
        }
        layout.encode_key_into(&self.values, out)?;
        if self.spec.unique && self.is_distinct_by_null() {
            out.extend_from_slice(without_salt(base_layout, base_key));
        }
        Ok(())
    }

    /// Returns the index keys of the row read last.
    pub(super) fn keys(&self) -> &[Datum] {
        &self.values[..self.spec.keys.len()]
    }

    /// Returns whether the row read last cannot be a duplicate because an index key is NULL.
    pub(super) fn is_distinct_by_null(&self) -> bool {
        self.spec.is_distinct_by_null(self.keys())
    }

    /// Returns the cells of each entry of the row read last, which has this state.
    pub(super) fn cells(&self, state: &RowState<'_>) -> Result<EntryCells> {
        let mut cells = EntryCells::new();
        let families = self.spec.families.all().iter().zip(&self.packers);
        for (family, packer) in families {
            let life = match family {
                EntryFamily::Row => Some(row_life(state)?),
                EntryFamily::Of { cell, .. } => {
                    state.cell(*cell).map(|cell| (cell.timestamp, cell.ttl))
                }
            };
            let cell = |(timestamp, ttl)| {
                let value = packer.pack(&self.values, &mut InterruptPacer::without_interrupt())?;
                Ok::<_, types::Error>(EntryCell { value, timestamp, ttl })
            };
            cells.push(life.map(cell).transpose()?);
        }
        Ok(cells)
    }

    /// Appends the entry's value in a family, for the row read last, to `out`.
    pub(super) fn value_into(&self, family: usize, out: &mut Vec<u8>) -> Result<()> {
        match self.packers.get(family) {
            Some(packer) => {
                packer.pack_into(&self.values, &mut InterruptPacer::without_interrupt(), out)
            }
            None => Ok(()),
        }
    }

    /// Returns the put of a new entry with these cells for the row read last.
    pub(super) fn put(&self, key: Vec<u8>, cells: EntryCells) -> Mutation {
        // An entry that expired in part may have left cells behind, and the cells that a put with
        // a TTL replaces would reappear after it expires.
        let clears = cells.len() > 1 || cells.iter().flatten().any(|cell| cell.ttl.is_some());
        let mutation = put(key, cells, clears);
        if self.spec.unique && !self.is_distinct_by_null() {
            mutation.expect_absent()
        } else {
            Mutation { locking: Locking::Covered, ..mutation }
        }
    }
}

/// The row keys of the entries of a base row.
pub(super) type EntryKeys = SmallVec<[Vec<u8>; 1]>;

/// A cell of an entry.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct EntryCell {
    pub(super) value: Vec<u8>,
    /// [`Timestamp::LATEST`] for the commit time.
    pub(super) timestamp: Timestamp,
    pub(super) ttl: Option<Duration>,
}

impl EntryCell {
    /// Returns whether two cells of a family have equal values and expire at the same time.
    pub(super) fn is_like(&self, other: &EntryCell, family: EntryFamily) -> bool {
        let life = |cell: &EntryCell| (cell.timestamp, cell.ttl);
        let expires = matches!(family, EntryFamily::Of { expires: true, .. })
            || self.ttl.is_some()
            || other.ttl.is_some();
        self.value == other.value && (!expires || life(self) == life(other))
    }
}

/// The cells of an entry, by family.
pub(super) type EntryCells = SmallVec<[Option<EntryCell>; 1]>;

/// Returns whether two entries with one key have equal values and expire at the same time.
pub(super) fn entries_equal(spec: &IndexSpec, one: &EntryCells, other: &EntryCells) -> bool {
    let families = spec.families.all().iter();
    families.zip(one.iter().zip(other)).all(|(family, cells)| match cells {
        (Some(one), Some(other)) => one.is_like(other, *family),
        (one, other) => one.is_none() && other.is_none(),
    })
}

/// Returns the cells of a stored entry.
pub(super) fn cells_of(spec: &IndexSpec, entry: &RowRef<'_>) -> EntryCells {
    let state = RowState::of(entry, &spec.layout);
    let cell = |family: usize| {
        let cell = state.cell(family)?;
        let (value, timestamp, ttl) = (cell.packed.to_vec(), cell.timestamp, cell.ttl);
        Some(EntryCell { value, timestamp, ttl })
    };
    (0..spec.layout.family_count).map(cell).collect()
}

/// Returns timestamp and TTL of an entry that lives as long as the whole row.
fn row_life(state: &RowState<'_>) -> Result<(Timestamp, Option<Duration>)> {
    let mut lives = state.cells().map(|cell| (cell.timestamp, cell.ttl));
    let Some(first) = lives.next() else { return Ok((Timestamp::LATEST, None)) };
    let (mut newest, mut any_ttl, mut all_same) = (first.0, first.1.is_some(), true);
    for life in lives {
        newest = newest.max(life.0);
        any_ttl |= life.1.is_some();
        all_same &= life == first;
    }
    match (any_ttl, all_same) {
        (false, _) => Ok((newest, None)),
        (true, true) => Ok(first),
        (true, false) => Err(types::Error::new(
            sqlstate::FEATURE_NOT_SUPPORTED,
            "cells of one row cannot have different TTLs in a table with indexes",
        )),
    }
}

/// Returns the put of an index row that takes its own lock; with `clears` it first deletes the
/// existing row.
pub(super) fn put(key: Vec<u8>, cells: EntryCells, clears: bool) -> Mutation {
    let mut mutation = Mutation::new(key);
    if clears {
        mutation = mutation.delete_row();
    }
    for (family, cell) in (0u8..).zip(cells) {
        let Some(EntryCell { value, timestamp, ttl }) = cell else { continue };
        let timestamp = (timestamp != Timestamp::LATEST).then_some(timestamp);
        mutation.edits.push(Edit::Put { family, qualifier: Vec::new(), timestamp, value, ttl });
    }
    mutation
}

/// Returns the columns of the base table from which entries are computed.
pub(super) fn base_columns(spec: &IndexSpec) -> Vec<usize> {
    let plain = spec.keys.iter().filter_map(|key| match key {
        Expr::Column { index, .. } => Some(*index),
        _ => None,
    });
    let primary_key = spec.base_layout.key.iter().map(|key| key.column);
    let mut columns: Vec<usize> =
        plain.chain(primary_key).chain(spec.include.iter().copied()).collect();
    columns.extend(function_inputs(spec));
    columns.sort_unstable();
    columns.dedup();
    columns
}

/// Returns what a scan of the base table must read to compute entries.
pub(super) fn base_reads(spec: &IndexSpec) -> ReadColumns {
    match spec.families.all() {
        [EntryFamily::Of { .. }] => ReadColumns::of(&spec.base_layout, &base_columns(spec)),
        // The row's version is that of its newest cell.
        _ => ReadColumns::of_whole_rows(&spec.base_layout),
    }
}

/// Returns the origin of each column of the index row. A column of a copied primary key is still
/// decoded if its key does not preserve the original form of the value: the packed row then
/// stores it.
fn sources(spec: &IndexSpec, copies_primary_key: bool) -> Vec<EntryColumnSource> {
    let keys = spec.keys.iter().enumerate().map(|(position, key)| match key {
        Expr::Column { index, .. } => EntryColumnSource::Column(*index),
        _ => EntryColumnSource::Function(position),
    });
    let primary_key = spec.base_layout.key.iter().map(|key| {
        let forgets = key_loses_form(&spec.base_layout.columns[key.column].data_type);
        if copies_primary_key && !forgets {
            EntryColumnSource::Copied
        } else {
            EntryColumnSource::Column(key.column)
        }
    });
    let include = spec.include.iter().map(|&column| EntryColumnSource::Column(column));
    keys.chain(primary_key).chain(include).collect()
}

fn function_inputs(spec: &IndexSpec) -> Vec<usize> {
    let mut inputs = Vec::new();
    let functions = spec.keys.iter().filter(|key| !matches!(key, Expr::Column { .. }));
    for read in functions.chain(&spec.predicate) {
        read.walk(&mut |node| {
            if let Expr::Column { index, .. } = node {
                inputs.push(*index);
            }
        });
    }
    inputs.sort_unstable();
    inputs.dedup();
    inputs
}

/// Returns whether the index's row key ends with the primary key in the table's encoding, byte
/// for byte.
fn same_primary_key(spec: &IndexSpec) -> bool {
    let tail = spec.layout.key.get(spec.keys.len()..).unwrap_or_default();
    let base = &spec.base_layout;
    tail.len() == base.key.len()
        && tail.iter().zip(&base.key).all(|(a, b)| {
            a.descending == b.descending
                && a.nulls_first == b.nulls_first
                && spec.layout.columns[a.column].data_type == base.columns[b.column].data_type
        })
}

fn without_salt<'a>(layout: &RowLayout, row_key: &'a [u8]) -> &'a [u8] {
    row_key.get(usize::from(layout.salt_buckets > 0)..).unwrap_or_default()
}

/// Returns the row key made of unsalted parts.
fn salted(layout: &RowLayout, parts: &[&[u8]]) -> Vec<u8> {
    let salt_bytes = usize::from(layout.salt_buckets > 0);
    let length = parts.iter().map(|part| part.len()).sum::<usize>();
    let mut key = Vec::with_capacity(salt_bytes + length);
    key.resize(salt_bytes, 0);
    parts.iter().for_each(|part| key.extend_from_slice(part));
    if salt_bytes > 0 {
        key[0] = layout.salt(&key[1..]);
    }
    key
}

/// Returns the index row in the order of the index's layout.
fn index_values(spec: &IndexSpec, base_row: &[Datum], context: &EvalContext) -> Result<Vec<Datum>> {
    let mut values = Vec::with_capacity(spec.layout.columns.len());
    for key in &spec.keys {
        values.push(match key {
            Expr::Column { index, .. } => base_row[*index].clone(),
            _ => key.eval_row(base_row, context)?,
        });
    }
    let primary_key = spec.base_layout.key.iter().map(|key| key.column);
    values.extend(
        primary_key.chain(spec.include.iter().copied()).map(|column| base_row[column].clone()),
    );
    Ok(values)
}

fn row_key_of(spec: &IndexSpec, values: &[Datum]) -> Result<Vec<u8>> {
    let (keys, rest) = values.split_at(spec.keys.len());
    if spec.local {
        let mut key = spec.layout.encode_key_prefix(keys)?;
        let primary_key = &rest[..spec.base_layout.key.len()];
        let base_row = spec.base_layout.encode_key_values(primary_key)?;
        append_base_row(&base_row, spec.base_layout.salt_buckets > 0, &mut key);
        return Ok(key);
    }
    let mut key = spec.layout.encode_key(values)?;
    if spec.unique && spec.is_distinct_by_null(keys) {
        let primary_key = &rest[..spec.base_layout.key.len()];
        key.extend_from_slice(&spec.base_layout.encode_key_prefix(primary_key)?);
    }
    Ok(key)
}

/// Returns the row key of the index entry of a base row (in table order), for an index that is not
/// inverted.
///
/// # Errors
///
/// Those of functional keys.
pub fn index_row_key(
    spec: &IndexSpec,
    base_row: &[Datum],
    context: &EvalContext,
) -> Result<Vec<u8>> {
    row_key_of(spec, &index_values(spec, base_row, context)?)
}

/// Returns the prefix of the row keys of all entries that have the index keys of a base row (in
/// table order); `None` if the row cannot be a duplicate.
///
/// # Errors
///
/// Those of functional keys.
pub fn key_prefix(
    spec: &IndexSpec,
    base_row: &[Datum],
    context: &EvalContext,
) -> Result<Option<Vec<u8>>> {
    if !spec.has_entry(base_row, context)? {
        return Ok(None);
    }
    let mut keys = index_values(spec, base_row, context)?;
    keys.truncate(spec.keys.len());
    if spec.is_distinct_by_null(&keys) {
        return Ok(None);
    }
    spec.layout.encode_key_prefix(&keys).map(Some)
}

/// Returns the error for two rows with the same key. `index_key` and `packed` are an entry of the
/// index with this key.
pub fn duplicate_key(
    spec: &IndexSpec,
    (index_key, packed): (&[u8], Option<&[u8]>),
    style: &TextStyle,
) -> store::Error {
    let veto = spec.layout.unpack(index_key, &[packed]).and_then(|values| {
        let exists = |key: &DuplicateKey<'_>| key.exists_veto(&spec.name);
        duplicate_veto(spec, index_key, (Some(&values), style), exists)
    });
    match veto {
        Ok(veto) => store::Error::Vetoed(Box::new(veto)),
        Err(error) => crate::violation::value_error(&spec.name, error),
    }
}

/// Returns the put of the index entry of a base row (in table order), for an index that is not
/// inverted; `None` if the row is not in the index. The put of a unique entry expects that the row
/// does not exist.
///
/// # Errors
///
/// Those of functional keys.
pub fn index_entry(spec: &IndexSpec, base_row: &[Datum]) -> Result<Option<Mutation>> {
    let context = EvalContext::default();
    if !spec.has_entry(base_row, &context)? {
        return Ok(None);
    }
    let values = index_values(spec, base_row, &context)?;
    let mutation = Mutation::new(row_key_of(spec, &values)?);
    let mutation = puts_of_row(&spec.layout, mutation, &values)?;
    let is_apart = spec.is_distinct_by_null(&values[..spec.keys.len()]);
    Ok(Some(if spec.unique && !is_apart {
        mutation.expect_absent()
    } else {
        Mutation { locking: Locking::Covered, ..mutation }
    }))
}

/// Returns the base table's row key, salt included, of an index row.
///
/// # Errors
///
/// `XX001` if the bytes do not decode.
pub fn base_key(spec: &IndexSpec, index_row: &RowRef<'_>) -> Result<Vec<u8>> {
    let row_key = index_row.key();
    if spec.local {
        return Ok(base_row(row_key).into_owned());
    }
    if !spec.unique && !same_primary_key(spec) {
        let values = spec.layout.decode_key(row_key)?;
        return spec.base_layout.encode_key_values(&values[spec.keys.len()..]);
    }
    let rest = after_index_keys(spec, without_salt(&spec.layout, row_key))?;
    if !rest.is_empty() {
        return Ok(salted(&spec.base_layout, &[rest]));
    }
    let packed = packed_cells(index_row, &spec.layout);
    let first = spec.keys.len();
    let primary_key = (first..first + spec.base_layout.key.len())
        .map(|column| spec.layout.unpack_column(column, row_key, &packed))
        .collect::<Result<Vec<Datum>>>()?;
    spec.base_layout.encode_key_values(&primary_key)
}

/// Returns the bytes that follow the index keys in a row key without salt.
pub(super) fn after_index_keys<'a>(spec: &IndexSpec, mut key: &'a [u8]) -> Result<&'a [u8]> {
    for column in &spec.layout.key[..spec.keys.len()] {
        let data_type = &spec.layout.columns[column.column].data_type;
        // The unit sink discards the values: only their lengths count.
        let length =
            keycode::decode_into(key, data_type, column.descending, column.nulls_first, &mut ())?;
        key = key.get(length..).ok_or_else(|| {
            types::Error::new(sqlstate::DATA_CORRUPTED, "an index row's key is too short")
        })?;
    }
    Ok(key)
}

/// Builds a veto about the index keys of a row key of the index. It shows the values of the new
/// row (`wanted`) if there are any: a key does not preserve the original form of values.
pub(super) fn duplicate_veto(
    spec: &IndexSpec,
    index_key: &[u8],
    (wanted, style): (Option<&[Datum]>, &TextStyle),
    veto: impl FnOnce(&DuplicateKey<'_>) -> Veto,
) -> Result<Veto> {
    let values = match wanted {
        Some(values) => values.to_vec(),
        None => spec.layout.decode_key(index_key)?,
    };
    let names: Vec<&str> = spec.key_names.iter().map(String::as_str).collect();
    let types: Vec<DataType> = spec.layout.columns[..spec.keys.len()]
        .iter()
        .map(|column| column.data_type.clone())
        .collect();
    Ok(veto(&DuplicateKey {
        constraint: &spec.name,
        table: &spec.table,
        key_names: &names,
        key_types: &types,
        values: &values[..spec.keys.len().min(values.len())],
        style,
    }))
}
