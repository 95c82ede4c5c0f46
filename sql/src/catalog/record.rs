//! The catalog on disk: what is stored of a table, as rows of the system table.
//!
//! One row a table; its key is the table's number, its one cell a [`TableRecord`] in the store's
//! metadata encoding ([`store::codec`]), with what [`later`](crate::catalog::later) adds. Only SQL
//! text and numbers are stored: bound forms are made anew when the catalog is read, so that they
//! may change from version to version.
//!
//! What is attached to a table is in a row of its own, a [`CoprocessorRecords`] under
//! [`coprocessors_key`]; without coprocessors there is no such row.
//!
//! Another row, [`NEXT_ID_KEY`], counts the ids reserved; ids are never reused. A table
//! without a primary key has a row [`row_ids_key`] that says from where its numbers are free.
//!
//! Byte by byte: `docs/formats/catalog.md`.

use store::codec;
use store::codec::Damage;
use store::descriptor::TableDescriptor;

use crate::ast::{CheckOption, Collation, Deferral, OnCommit};
use crate::catalog::foreign_key::ForeignKey;
use crate::catalog::later::{Later, TableKind};
use crate::catalog::retained::{RetainedColumn, RetainedIndex, RetainedTable};
use crate::error::{Error, Result, sqlstate};

/// The system table that holds the catalog.
pub const CATALOG_TABLE: store::TableId = store::TableId(1);

/// Ids below this one are kept for system tables.
pub const FIRST_USER_TABLE: u32 = 1_000;

/// Key of the row that counts ids. Table rows begin with `t`.
pub const NEXT_ID_KEY: &[u8] = b"n";

/// Key of the row that says that the catalog has what every new one has: schema `public`, which may
/// have been dropped since.
pub const MADE_KEY: &[u8] = b"m";

/// What keys of [`table_key`] begin with.
pub const TABLES_PREFIX: &[u8] = b"t";

/// Returns the key of a table's row.
pub fn table_key(oid: u32) -> Vec<u8> {
    [TABLES_PREFIX, oid.to_be_bytes().as_slice()].concat()
}

/// What keys of [`row_ids_key`] begin with.
pub const ROW_IDS_PREFIX: &[u8] = b"r";

/// Returns the key of the row with the first number that was never reserved for the rows of a table
/// without a primary key: a u64, big-endian.
pub fn row_ids_key(table: store::TableId) -> Vec<u8> {
    [ROW_IDS_PREFIX, table.0.to_be_bytes().as_slice()].concat()
}

/// Returns the key of the row with the coprocessors attached to a table.
pub fn coprocessors_key(oid: u32) -> Vec<u8> {
    [COPROCESSORS_PREFIX, oid.to_be_bytes().as_slice()].concat()
}

/// What keys of [`coprocessors_key`] begin with.
pub const COPROCESSORS_PREFIX: &[u8] = b"c";

/// The coprocessors that ALTER TABLE attached to a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct CoprocessorRecords {
    /// In the order in which they were attached.
    pub attached: Vec<CoprocessorRecord>,
}

/// What a coprocessor does.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum CoprocessorKind {
    /// It watches what is done to the table.
    #[default]
    Observer,
    /// It is called by name.
    Endpoint,
}

/// A coprocessor attached to a table.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct CoprocessorRecord {
    /// Its name on the table.
    pub name: String,
    /// The name that the registry knows it by.
    pub coprocessor: String,
    /// Whether it is an observer or an endpoint.
    pub kind: CoprocessorKind,
    /// Where it stands in the chain; of no meaning for an endpoint.
    pub priority: i32,
    /// Its arguments, as they were written.
    pub arguments: Vec<(String, String)>,
}

/// What keys of [`view_key`] begin with.
pub const VIEWS_PREFIX: &[u8] = b"v";

/// Returns the key of a view's row.
pub fn view_key(oid: u32) -> Vec<u8> {
    [VIEWS_PREFIX, oid.to_be_bytes().as_slice()].concat()
}

/// A view.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct ViewRecord {
    /// Its number.
    pub oid: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The columns, in order.
    pub columns: Vec<ViewColumnRecord>,
    /// SQL text of the query, without any `*` in a select list.
    pub text: String,
    /// The tables and views that the query names, each as often as it is named differently.
    pub relations: Vec<ViewRelation>,
    /// Where names of the text without a schema were looked for when the view was created.
    pub search_path: Vec<String>,
    /// `WITH CHECK OPTION`
    pub check_option: Later<Option<CheckOption>>,
}

/// A table or view that a view's query names.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct ViewRelation {
    /// The schema that the text gives, if it does.
    pub schema: Option<String>,
    /// The name that the text gives.
    pub name: String,
    /// The number of what it stood for when the view was created, and stands for since.
    pub oid: u32,
    /// The names of its columns then, by position; empty for those that could not be named.
    pub columns: Vec<String>,
    /// The positions of those that the query uses, ascending.
    pub used: Vec<u32>,
}

/// A column of a view.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct ViewColumnRecord {
    /// Its name.
    pub name: String,
    /// OID of its type.
    pub type_oid: u32,
    /// Modifier of its type.
    pub modifier: i32,
    /// SQL text of DEFAULT.
    pub default: Later<Option<String>>,
}

/// A table.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
pub struct TableRecord {
    /// Its number.
    pub oid: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The columns, in order.
    pub columns: Vec<ColumnRecord>,
    /// The primary key, in key order. Positions are among `columns`.
    pub primary_key: Vec<KeyRecord>,
    /// Name of the primary key constraint; empty without one: then the key is a hidden column.
    pub primary_key_name: String,
    /// CHECK constraints.
    pub checks: Vec<CheckRecord>,
    /// The indexes, oldest first.
    pub indexes: Vec<IndexRecord>,
    /// FOREIGN KEYs, oldest first.
    pub foreign_keys: Vec<ForeignKey>,
    /// Salt buckets; 0 for none.
    pub salt_buckets: u8,
    /// Grows with every change of the columns; written into packed rows.
    pub schema_version: u32,
    /// Id, families and their rules. The first split points of a salted table are its buckets.
    pub descriptor: TableDescriptor,
    /// What it is to statements.
    pub kind: Later<TableKind>,
    /// What COMMIT does to its rows, if it is temporary.
    pub on_commit: Later<OnCommit>,
    /// What is only shown.
    pub retained: Later<RetainedTable>,
    /// `DISABLE TRIGGER ALL`: foreign keys of the table, and those that refer to it, are not
    /// checked where its rows change.
    pub without_triggers: Later<bool>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
pub struct ColumnRecord {
    /// Its name.
    pub name: String,
    /// OID of its type.
    pub type_oid: u32,
    /// Modifier of its type.
    pub modifier: i32,
    /// NULL is refused.
    pub not_null: bool,
    /// SQL text of DEFAULT.
    pub default: Option<String>,
    /// SQL text of what makes its value, for a generated column.
    pub generated: Option<String>,
    /// Index of its family; of no meaning for key columns.
    pub family: u8,
    /// Whether it is an identity column, and of which kind.
    pub identity: Option<IdentityRecord>,
    /// Text of the value that the column has in rows from before it was added; `None` for NULL.
    pub missing: Option<String>,
    /// It was dropped: its place in packed rows stays, and nobody sees it.
    pub dropped: bool,
    /// Its collation, if it is not that of its type.
    pub collation: Later<Option<Collation>>,
    /// What is only shown.
    pub retained: Later<RetainedColumn>,
}

/// Who may give a value to an identity column; its DEFAULT takes from its sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum IdentityRecord {
    /// Nobody, unless the statement says OVERRIDING SYSTEM VALUE.
    Always,
    /// Anybody.
    ByDefault,
}

/// A column of a key.
#[derive(Debug, Clone, Copy, PartialEq, bincode::Encode, bincode::Decode)]
pub struct KeyRecord {
    /// Position of the column.
    pub column: u32,
    /// From large to small.
    pub descending: bool,
    /// NULLs before all values.
    pub nulls_first: bool,
}

/// A CHECK constraint.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
pub struct CheckRecord {
    /// Its name.
    pub name: String,
    /// SQL text of the predicate.
    pub predicate: String,
    /// All rows pass it; else only those that were written since.
    pub valid: bool,
}

/// An index.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
pub struct IndexRecord {
    /// Its number.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// UNIQUE.
    pub unique: bool,
    /// It stands for a UNIQUE or PRIMARY KEY constraint of the same name.
    pub constraint: bool,
    /// The keys.
    pub keys: Vec<IndexKeyRecord>,
    /// Included columns, by position.
    pub include: Vec<u32>,
    /// Salt buckets; 0 for none.
    pub salt_buckets: u8,
    /// Id and rules of the table that holds the index.
    pub descriptor: TableDescriptor,
    /// NULLs are as good as equal.
    pub nulls_not_distinct: Later<bool>,
    /// SQL text of what holds of the rows that it is over; `None` for all rows.
    pub predicate: Later<Option<String>>,
    /// It is kept up to date, and has not all entries yet: queries do not use it.
    pub building: Later<bool>,
    /// When its constraint is checked.
    pub deferral: Later<Deferral>,
    /// It stands for the primary key, which is deferrable then: the row key is a hidden column.
    pub primary: Later<bool>,
    /// What is only shown.
    pub retained: Later<RetainedIndex>,
}

impl IndexRecord {
    /// Returns its SQL texts.
    pub fn texts(&self) -> impl Iterator<Item = &String> {
        self.keys.iter().map(|key| &key.expression).chain(self.predicate.iter())
    }

    /// Returns its SQL texts, to be changed.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let predicate = self.predicate.0.iter_mut();
        self.keys.iter_mut().map(|key| &mut key.expression).chain(predicate)
    }
}

/// A key of an index.
#[derive(Debug, Clone, PartialEq, bincode::Encode, bincode::Decode)]
pub struct IndexKeyRecord {
    /// SQL text: a column's name or an expression.
    pub expression: String,
    /// From large to small.
    pub descending: bool,
    /// NULLs before all values.
    pub nulls_first: bool,
}

/// Returns the bytes of a record.
pub fn encode<T: bincode::Encode>(record: &T) -> Vec<u8> {
    let mut bytes = Vec::new();
    codec::append_record(record, &mut bytes);
    bytes
}

/// Returns the record of some bytes.
///
/// # Errors
///
/// XX001 if they are not one.
pub fn decode<T: bincode::Decode<()>>(bytes: &[u8]) -> Result<T> {
    codec::read_record(bytes).map(|(record, _)| record).map_err(|damage| {
        let (Damage::Broken(why) | Damage::Unreadable(why)) = damage;
        Error::new(sqlstate::DATA_CORRUPTED, format!("damaged catalog record: {why}"))
    })
}

impl TableRecord {
    /// Returns the position of a column by name.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| !column.dropped && column.name == name)
    }
}
