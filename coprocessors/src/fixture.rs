//! Test fixtures of this crate: tables, rows and an observer context.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::Arc;

use store::descriptor::{DataBlockEncoding, Durability};
use store::env::ReadFile;
use store::observer::ObserverContext;
use store::sorted_load::{ScratchFile, ScratchSpace};
use store::transaction::PreviousRow;
use store::{
    CellBatch, CellType, FamilyDescriptor, Get, Mutation, Sequence, Store, TableDescriptor,
    TableId, Timestamp, ValueLayout,
};
use types::expr::Expr;
use types::rowcode::{
    ColumnCell, ColumnPlace, KeyColumn, LayoutColumn, RowLayout, column_qualifier,
};
use types::{DataType, Datum};

use crate::index::{EntryFamilies, IndexSpec};
use crate::registry::{ColumnSchema, TableSchema};
use crate::rows::StoredRows;
use crate::violation::TableName;

/// Scratch space in memory.
pub(crate) struct ScratchMemory;

/// A file of [`ScratchMemory`].
struct MemoryFile(Vec<u8>);

impl ScratchSpace for ScratchMemory {
    fn create(&self) -> store::Result<Box<dyn ScratchFile>> {
        Ok(Box::new(MemoryFile(Vec::new())))
    }
}

impl ScratchFile for MemoryFile {
    fn append(&mut self, bytes: &[u8]) -> store::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finish(self: Box<Self>) -> store::Result<Arc<dyn ReadFile>> {
        Ok(Arc::new(*self))
    }
}

impl ReadFile for MemoryFile {
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> store::Result<()> {
        buffer.copy_from_slice(&self.0[offset as usize..][..buffer.len()]);
        Ok(())
    }

    fn byte_count(&self) -> store::Result<u64> {
        Ok(self.0.len() as u64)
    }
}

/// The table under test.
pub(crate) const TABLE: TableId = TableId(1);

/// Returns a layout of columns with their families; the family of key columns is ignored.
pub(crate) fn layout(columns: &[(DataType, usize)], key: &[KeyColumn], salt: u16) -> RowLayout {
    let mut slots = [0; 8];
    let mut place = |column: usize, family: usize| {
        if let Some(position) = key.iter().position(|key| key.column == column) {
            return ColumnPlace::Key(position);
        }
        slots[family] += 1;
        ColumnPlace::Packed { cell: family, slot: slots[family] - 1 }
    };
    let columns: Vec<LayoutColumn> = columns
        .iter()
        .enumerate()
        .map(|(column, &(ref data_type, family))| LayoutColumn {
            data_type: data_type.clone(),
            place: place(column, family),
            missing: Datum::Null,
        })
        .collect();
    let families = columns.iter().map(|column| match column.place {
        ColumnPlace::Key(_) => 1,
        ColumnPlace::Packed { cell, .. } => cell + 1,
    });
    let family_count = families.max().unwrap_or(1);
    RowLayout {
        salt_buckets: salt,
        schema_version: 1,
        ..RowLayout::new(columns, key.to_vec(), family_count)
    }
}

/// Returns the same layout with a cell for each column.
pub(crate) fn with_column_cells(layout: RowLayout) -> RowLayout {
    let mut layout = layout;
    for column in 0..layout.columns.len() {
        let ColumnPlace::Packed { cell: family, .. } = layout.columns[column].place else {
            continue;
        };
        let cell = layout.cell_count();
        layout.columns[column].place = ColumnPlace::Packed { cell, slot: 0 };
        let qualifier = column_qualifier(column as u16).to_vec();
        layout.column_cells.push(ColumnCell { column, family, qualifier });
    }
    layout
}

/// Returns a table of nullable columns; the first is its key.
pub(crate) fn shape(name: &str, columns: &[(&str, DataType)]) -> TableSchema {
    let types: Vec<(DataType, usize)> =
        columns.iter().map(|(_, data_type)| (data_type.clone(), 0)).collect();
    let of = |&(name, ref data_type): &(&str, DataType)| ColumnSchema {
        name: name.to_owned(),
        sql_type: data_type.into(),
        not_null: false,
    };
    TableSchema {
        id: TABLE,
        name: name.to_owned(),
        columns: columns.iter().map(of).collect(),
        layout: Arc::new(layout(&types, &[key(0, false)], 0)),
        descriptor: Arc::new(TableDescriptor::new(
            TABLE,
            name.to_owned(),
            vec![FamilyDescriptor::new("0")],
        )),
    }
}

/// Returns a key column with PostgreSQL's default NULLS order.
pub(crate) fn key(column: usize, descending: bool) -> KeyColumn {
    KeyColumn { column, descending, nulls_first: descending }
}

/// Returns a reference to a column of the table.
pub(crate) fn column(layout: &RowLayout, index: usize) -> Expr {
    Expr::Column { index, data_type: layout.columns[index].data_type.clone() }
}

pub(crate) fn text(value: &str) -> Datum {
    Datum::Text(value.into())
}

/// Returns an index over key expressions, each with its direction.
pub(crate) fn index(
    base: &Arc<RowLayout>,
    table: TableId,
    unique: bool,
    keys: &[(Expr, bool)],
    include: &[usize],
    salt: u16,
) -> IndexSpec {
    let of_base = |column: usize| (base.columns[column].data_type.clone(), 0);
    let mut columns: Vec<(DataType, usize)> =
        keys.iter().map(|(expr, _)| (expr.data_type().clone(), 0)).collect();
    columns.extend(base.key.iter().map(|key| of_base(key.column)));
    columns.extend(include.iter().map(|&column| of_base(column)));
    let mut key_columns: Vec<KeyColumn> = keys
        .iter()
        .enumerate()
        .map(|(position, (_, descending))| key(position, *descending))
        .collect();
    if !unique {
        let tail = base.key.iter().enumerate();
        key_columns.extend(
            tail.map(|(position, key)| KeyColumn { column: keys.len() + position, ..*key }),
        );
    }
    let families = EntryFamilies::of(base, &[], include, false);
    IndexSpec {
        inverted: None,
        predicate: None,
        deferrable_unique: false,
        local: false,
        nulls_not_distinct: false,
        name: format!("i{}", table.0),
        table: table_t(),
        store_table: table,
        unique,
        keys: keys.iter().map(|(expr, _)| expr.clone()).collect(),
        key_names: (0..keys.len()).map(|position| format!("k{position}")).collect(),
        include: include.to_vec(),
        base_layout: Arc::clone(base),
        layout: Arc::new(layout(&columns, &key_columns, salt)),
        families,
    }
}

/// Returns a family of small columnar blocks for the packed rows of family 0.
pub(crate) fn columnar_family(layout: &RowLayout) -> FamilyDescriptor {
    FamilyDescriptor {
        data_block_encoding: DataBlockEncoding::Columnar,
        value_layout: crate::columns::value_layout(layout, 0, &ValueLayout::default())
            .unwrap()
            .into(),
        block_bytes: 1000,
        ..FamilyDescriptor::new("d")
    }
}

/// Returns the mutation that writes all families of a row.
pub(crate) fn put_row(layout: &RowLayout, values: &[Datum]) -> Mutation {
    let mutation = Mutation::new(layout.encode_key(values).unwrap());
    crate::row::puts_of_row(layout, mutation, values).unwrap()
}

/// Returns a stored row.
pub(crate) fn stored_row(layout: &RowLayout, values: &[Datum], timestamp: i64) -> CellBatch {
    let row = layout.encode_key(values).unwrap();
    let mut cells: Vec<(u8, Vec<u8>, Vec<u8>)> = (0..layout.cell_count())
        .map(|cell| {
            let family = layout.family_of_cell(cell) as u8;
            let qualifier = layout.qualifier_of_cell(cell).to_vec();
            (family, qualifier, layout.pack(cell, values).unwrap())
        })
        .collect();
    cells.sort();
    let cells = cells.iter().map(|(family, qualifier, value)| (*family, &**qualifier, &**value));
    row_with(&row, cells, timestamp)
}

/// Returns rows made of cells.
pub(crate) fn of_cells(cells: CellBatch) -> StoredRows {
    let mut rows = StoredRows::new();
    let read = |into: &mut CellBatch| {
        *into = cells;
        Ok::<(), store::Error>(())
    };
    rows.add_cells(read).unwrap();
    rows
}

/// Returns a batch of one row of `(family, value, timestamp)` cells.
pub(crate) fn row_of_cells(row: &[u8], cells: &[(u8, &[u8], i64)]) -> CellBatch {
    let mut batch = CellBatch::new();
    batch.start_row(row);
    for &(family, value, timestamp) in cells {
        push_cell(&mut batch, row, (family, b"", value), timestamp);
    }
    batch
}

/// Returns a batch of one row of `(family, qualifier, value)` cells.
fn row_with<'a>(
    row: &[u8],
    cells: impl Iterator<Item = (u8, &'a [u8], &'a [u8])>,
    timestamp: i64,
) -> CellBatch {
    let mut batch = CellBatch::new();
    batch.start_row(row);
    cells.for_each(|cell| push_cell(&mut batch, row, cell, timestamp));
    batch
}

fn push_cell(
    batch: &mut CellBatch,
    row: &[u8],
    (family, qualifier, value): (u8, &[u8], &[u8]),
    timestamp: i64,
) {
    batch.push(store::cell::CellRef {
        row,
        family,
        qualifier,
        timestamp: Timestamp(timestamp),
        sequence: Sequence(1),
        cell_type: CellType::Put,
        value,
        ttl: None,
    });
}

/// Returns the mutation with a previous state, as read by its writer.
pub(crate) fn with_previous(mutation: Mutation, previous: CellBatch) -> Mutation {
    Mutation { previous: PreviousRow::Row(Arc::new(previous)), ..mutation }
}

/// An observer context over rows in memory that records added mutations.
#[derive(Default)]
pub(crate) struct FakeContext {
    pub(crate) rows: BTreeMap<Vec<u8>, CellBatch>,
    pub(crate) added: RefCell<Vec<(TableId, Vec<Mutation>)>>,
    pub(crate) read: RefCell<Vec<Vec<u8>>>,
    /// An existing row of another table.
    pub(crate) taken: Option<Vec<u8>>,
}

impl ObserverContext for FakeContext {
    fn table(&self) -> TableId {
        TABLE
    }

    fn get(&self, table: TableId, get: &Get, out: &mut CellBatch) -> store::Result<bool> {
        assert_eq!(table, TABLE);
        self.read.borrow_mut().push(get.row.clone());
        let Some(row) = self.rows.get(&get.row) else { return Ok(false) };
        out.start_row(&get.row);
        row.row(0).cells().for_each(|cell| out.push(cell));
        Ok(true)
    }

    fn lock(&self, _: TableId, _: &[u8]) -> store::Result<()> {
        Ok(())
    }

    fn add(&self, table: TableId, mutations: Vec<Mutation>) -> store::Result<()> {
        if let Some(taken) = &self.taken {
            return Err(store::Error::RowExists { table, row: taken.clone(), puts: Vec::new() });
        }
        self.added.borrow_mut().push((table, mutations));
        Ok(())
    }
}

/// Creates the table in a store, pre-split at the keys 100 and 200.
pub(crate) fn three_regions(store: &Store, layout: &RowLayout) {
    let split = |id: i32| layout.encode_key_values(&[Datum::Int4(id)]).unwrap();
    // Only rows of one family can be read as columns.
    let families = match layout.family_count {
        1 => vec![columnar_family(layout)],
        _ => vec![FamilyDescriptor::new("d"), FamilyDescriptor::new("f")],
    };
    let descriptor = TableDescriptor {
        durability: Durability::AsyncWal,
        split_points: vec![split(100), split(200)],
        ..TableDescriptor::new(TABLE, "t".to_owned(), families)
    };
    store.create_table(descriptor).unwrap();
}

/// Returns the name of a table `t`.
pub(crate) fn table_t() -> TableName {
    TableName { schema: "public".to_owned(), name: "t".to_owned() }
}
