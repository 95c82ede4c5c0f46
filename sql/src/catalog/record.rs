//! Stored form of the catalog: records of tables, views and coprocessors as rows of the system
//! table.
//!
//! One row for each table; its key is the table's number, its only cell a [`TableRecord`] as tagged
//! fields ([`store::codec::tagged`]). Only SQL text and numbers are stored: bound forms
//! are rebuilt when the catalog is read, so that they may change from version to version.
//!
//! The coprocessors attached to a table are in a separate row, a [`CoprocessorRecords`] under
//! [`COPROCESSORS_PREFIX`]; without coprocessors there is no such row.
//!
//! Another row, [`NEXT_ID_KEY`], is the counter of reserved ids; ids are never reused. A table
//! without a primary key has a row [`row_ids_key`] with the first free row number.
//!
//! Byte by byte: `docs/formats/catalog.md`.

use std::sync::Arc;

use store::codec::tagged::{FieldValue, UnknownFields};
use store::codec::{self, RecordDamage};
use store::descriptor::TableDescriptor;

use crate::ast::{
    CheckOption, Collation, ColumnName, Deferral, IndexMethod, IndexRestriction, OnCommit,
    PolicyCommand,
};
use crate::catalog::access::privilege::PUBLIC_ROLE;
use crate::catalog::column_family;
use crate::catalog::database::DEFAULT_CATALOG_TABLE;
use crate::catalog::foreign_key::ForeignKey;
use crate::catalog::ignored_attributes::{
    IgnoredColumnAttributes, IgnoredIndexAttributes, IgnoredTableAttributes,
};
use crate::catalog::trigger::TriggerRecord;
use crate::error::{Error, Result};

/// The system table that holds the shared catalog, and the catalog of the default database.
pub const CATALOG_TABLE: store::TableId = DEFAULT_CATALOG_TABLE;

/// The first id that is not reserved for system tables.
pub const FIRST_USER_TABLE: u32 = 1_000;

/// Key of the id counter's row. Table rows begin with `t`.
pub const NEXT_ID_KEY: &[u8] = b"n";

/// Key prefix of prepared transactions, of all databases.
pub const PREPARED_PREFIX: &[u8] = b"p";

/// Version of the records of the catalog.
pub const CATALOG_VERSION: u32 = 3;

/// Key of the row that records the initialisation of the catalog, after which schema `public` may
/// be dropped; its value is [`CATALOG_VERSION`], big-endian.
pub const INITIALIZED_KEY: &[u8] = b"m";

/// The key prefix of tables.
pub const TABLES_PREFIX: &[u8] = b"t";

/// Returns the key of an object's row, by the prefix of its kind and its number.
pub fn object_key(prefix: &[u8], number: u32) -> Vec<u8> {
    [prefix, number.to_be_bytes().as_slice()].concat()
}

/// The prefix of [`row_ids_key`].
pub const ROW_IDS_PREFIX: &[u8] = b"r";

/// Returns the key of the row with the first unreserved row number of a table without a primary
/// key: a u64, big-endian.
pub fn row_ids_key(table: store::TableId) -> Vec<u8> {
    object_key(ROW_IDS_PREFIX, table.0)
}

/// The key prefix of coprocessors, before the number of their table.
pub const COPROCESSORS_PREFIX: &[u8] = b"c";

/// The coprocessors attached to a table by ALTER TABLE.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CoprocessorRecords {
    /// The coprocessors, in the order of attachment.
    pub attached: Vec<CoprocessorRecord>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// The kind of a coprocessor.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum CoprocessorKind {
    /// A region observer, with hooks on the operations of the table.
    #[default]
    Observer,
    /// An endpoint, called by name.
    Endpoint,
}

/// A coprocessor attached to a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CoprocessorRecord {
    /// Its name on the table.
    pub name: String,
    /// Its name in the registry.
    pub coprocessor: String,
    /// Observer or endpoint.
    pub kind: CoprocessorKind,
    /// Its priority in the chain; meaningless for an endpoint.
    pub priority: i32,
    /// Its arguments as written.
    pub arguments: Vec<(String, String)>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// The key prefix of views.
pub const VIEWS_PREFIX: &[u8] = b"v";

/// A view.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ViewRecord {
    /// Its number.
    pub oid: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The columns, in order.
    pub columns: Vec<ViewColumnRecord>,
    /// SQL text of the query, with each `*` expanded.
    pub text: String,
    /// The tables and views that the query references, once for each different spelling.
    pub relations: Vec<ViewRelation>,
    /// The search path at creation.
    pub search_path: Vec<String>,
    /// `WITH CHECK OPTION`
    pub check_option: Option<CheckOption>,
    /// `security_invoker`
    pub security_invoker: Option<bool>,
    /// `security_barrier`
    pub security_barrier: Option<bool>,
    /// Its triggers, oldest first.
    pub triggers: Vec<TriggerRecord>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// A table or view that a view's query references.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewRelation {
    /// The schema in the text, if qualified.
    pub schema: Option<String>,
    /// The name in the text.
    pub name: String,
    /// The number of the relation, resolved at creation.
    pub oid: u32,
    /// The names of its columns at creation, by position; empty for hidden ones.
    pub columns: Vec<String>,
    /// The positions of the columns in use, ascending.
    pub used: Vec<u32>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// A column of a view.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ViewColumnRecord {
    /// Its name.
    pub name: String,
    /// OID of its type.
    pub type_oid: u32,
    /// Modifier of its type.
    pub modifier: i32,
    /// SQL text of DEFAULT.
    pub default: Option<String>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// The kind of a table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TableKind {
    /// An ordinary table.
    #[default]
    Ordinary,
    /// A materialized view; its query is in the view with the same number.
    Materialized {
        /// False after `WITH NO DATA`.
        populated: bool,
    },
    /// A materialized view that each change of its table maintains.
    Maintained {
        /// False after `WITH NO DATA`: it is not maintained until a REFRESH.
        populated: bool,
    },
}

impl TableKind {
    /// Returns whether it is a materialized view that has rows or none, because its query has none;
    /// `None` for a table.
    pub fn is_populated(self) -> Option<bool> {
        match self {
            TableKind::Ordinary => None,
            TableKind::Materialized { populated } | TableKind::Maintained { populated } => {
                Some(populated)
            }
        }
    }

    /// Returns the kind of a materialized view after a REFRESH.
    #[must_use]
    pub fn refreshed(self, populated: bool) -> TableKind {
        match self {
            TableKind::Maintained { .. } => TableKind::Maintained { populated },
            _ => TableKind::Materialized { populated },
        }
    }
}

/// A table.
#[derive(Debug, Clone, PartialEq)]
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
    /// Name of the primary key constraint; empty without one: then the row key is a hidden column.
    pub primary_key_name: String,
    /// CHECK constraints.
    pub checks: Vec<CheckRecord>,
    /// The indexes, oldest first.
    pub indexes: Vec<IndexRecord>,
    /// FOREIGN KEYs, oldest first.
    pub foreign_keys: Vec<ForeignKey>,
    /// Salt buckets; 0 for none.
    pub salt_buckets: u16,
    /// A counter of changes to the columns; stored in packed rows.
    pub schema_version: u32,
    /// Id, families and their storage options. The first split points of a salted table are its
    /// buckets.
    pub descriptor: Arc<TableDescriptor>,
    /// Table or materialized view.
    pub kind: TableKind,
    /// ON COMMIT, for a temporary table.
    pub on_commit: OnCommit,
    /// Attributes without effect.
    pub retained: IgnoredTableAttributes,
    /// STORAGE = CELL: each column has a cell of its own.
    pub column_cells: bool,
    /// `DISABLE TRIGGER ALL`: foreign keys of the table, and those that reference it, are not
    /// checked when its rows change.
    pub without_triggers: bool,
    /// Statements may set the timestamps of cells.
    pub client_timestamps: bool,
    /// Statements may set the TTLs of cells.
    pub cell_ttl: bool,
    /// Its triggers, oldest first.
    pub triggers: Vec<TriggerRecord>,
    /// Its row-level security policies, oldest first.
    pub policies: Vec<PolicyRecord>,
    /// `ENABLE ROW LEVEL SECURITY`
    pub row_security: bool,
    /// `FORCE ROW LEVEL SECURITY`
    pub forces_row_security: bool,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// A policy, as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyRecord {
    /// Its number.
    pub number: u32,
    /// Its name on the table.
    pub name: String,
    /// `AS RESTRICTIVE`
    pub is_restrictive: bool,
    /// The statements that it applies to.
    pub command: PolicyCommand,
    /// The numbers of the roles that it applies to; [`PUBLIC_ROLE`] for all.
    pub roles: Vec<u32>,
    /// USING: the condition of existing rows.
    pub using: Option<PolicyExpressionRecord>,
    /// WITH CHECK: the condition of new rows.
    pub check: Option<PolicyExpressionRecord>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// An expression of a policy.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PolicyExpressionRecord {
    /// The text of a query over the table whose only column is the expression.
    pub text: String,
    /// The tables and views that the query references, the table of the policy among them.
    pub relations: Vec<ViewRelation>,
    /// The search path at creation.
    pub search_path: Vec<String>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

impl PolicyRecord {
    /// Returns its expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &PolicyExpressionRecord> {
        self.using.iter().chain(&self.check)
    }

    /// Returns whether it applies to PUBLIC.
    pub fn is_for_all(&self) -> bool {
        self.roles.contains(&PUBLIC_ROLE)
    }
}

/// A column.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnRecord {
    /// Its name.
    pub name: String,
    /// OID of its type.
    pub type_oid: u32,
    /// Modifier of its type.
    pub modifier: i32,
    /// NULL is rejected.
    pub not_null: bool,
    /// SQL text of DEFAULT.
    pub default: Option<String>,
    /// SQL text of the expression of a generated column.
    pub generated: Option<String>,
    /// Index of its family; meaningless for key columns.
    pub family: u8,
    /// The kind of an identity column.
    pub identity: Option<IdentityRecord>,
    /// Text of the value in rows that were written before the column was added; `None` for NULL.
    pub missing: Option<String>,
    /// True if it was dropped: packed rows retain its position, and it is hidden.
    pub dropped: bool,
    /// Its collation, if it differs from that of its type.
    pub collation: Option<Collation>,
    /// Attributes without effect.
    pub retained: IgnoredColumnAttributes,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// The kind of an identity column, whose DEFAULT reads its sequence.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IdentityRecord {
    /// ALWAYS: explicit values need OVERRIDING SYSTEM VALUE.
    Always,
    /// BY DEFAULT: explicit values are allowed.
    ByDefault,
}

/// A column of a key.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct KeyRecord {
    /// Position of the column.
    pub column: u32,
    /// Descending order.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// A CHECK constraint.
#[derive(Debug, Clone, PartialEq)]
pub struct CheckRecord {
    /// Its name.
    pub name: String,
    /// SQL text of the predicate.
    pub predicate: String,
    /// True if all rows are known to satisfy it; otherwise only rows written after its creation.
    pub valid: bool,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// An index.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexRecord {
    /// Its number.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// UNIQUE.
    pub unique: bool,
    /// True if it belongs to a UNIQUE or PRIMARY KEY constraint of the same name.
    pub constraint: bool,
    /// The keys.
    pub keys: Vec<IndexKeyRecord>,
    /// Included columns, by position.
    pub include: Vec<u32>,
    /// Salt buckets; 0 for none.
    pub salt_buckets: u16,
    /// Id and storage options of the store table of the index.
    pub descriptor: Arc<TableDescriptor>,
    /// `NULLS NOT DISTINCT`
    pub nulls_not_distinct: bool,
    /// SQL text of the predicate of a partial index; `None` for all rows.
    pub predicate: Option<String>,
    /// True while it is maintained but incomplete: queries do not use it.
    pub building: bool,
    /// The deferral mode of its constraint.
    pub deferral: Deferral,
    /// True if it is the index of a deferrable primary key; the row key is then a hidden column.
    pub primary: bool,
    /// Name of the operator class of an inverted index.
    pub inverted: Option<String>,
    /// Restriction of its use; `None` for a complete index that queries use.
    pub restriction: Option<IndexRestriction>,
    /// `CONSISTENCY = EVENTUAL`: it is to be maintained after the commits.
    pub eventual: bool,
    /// Id of the store table whose entries are maintained after the commits; writers maintain any
    /// other.
    pub followed: Option<u32>,
    /// Attributes without effect.
    pub retained: IgnoredIndexAttributes,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

impl IndexRecord {
    /// Returns whether its entries are in the regions of their rows.
    pub fn is_local(&self) -> bool {
        self.descriptor.colocated_with.is_some()
    }

    /// Returns whether its entries are maintained after the commits.
    pub fn is_followed(&self) -> bool {
        self.followed == Some(self.descriptor.id.0)
    }

    /// Returns its access method.
    pub fn method(&self) -> IndexMethod {
        match (&self.inverted, self.retained.is_hash) {
            (Some(_), _) => IndexMethod::Gin,
            (None, true) => IndexMethod::Hash,
            (None, false) => IndexMethod::Btree,
        }
    }

    /// Returns the operator class of the key at a position, if it is not the default of the type or
    /// the index is inverted.
    pub fn operator_class(&self, position: u32) -> Option<&str> {
        let mut written = self.retained.operator_classes.iter();
        let of_key = written.find(|(at, _)| *at == position).map(|(_, name)| name);
        self.inverted.as_ref().or(of_key).map(String::as_str)
    }

    /// Returns its SQL texts.
    pub fn texts(&self) -> impl Iterator<Item = &String> {
        self.keys.iter().map(|key| &key.expression).chain(self.predicate.iter())
    }

    /// Returns its SQL texts for modification.
    pub fn texts_mut(&mut self) -> impl Iterator<Item = &mut String> {
        let predicate = self.predicate.iter_mut();
        self.keys.iter_mut().map(|key| &mut key.expression).chain(predicate)
    }
}

/// A key of an index.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IndexKeyRecord {
    /// SQL text: a column's name or an expression.
    pub expression: String,
    /// Descending order.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// Returns the encoded record.
pub fn encode<T: FieldValue>(record: &T) -> Vec<u8> {
    codec::encode_tagged(record)
}

/// Decodes a record.
///
/// # Errors
///
/// XX001 if the bytes are damaged.
pub fn decode<T: FieldValue>(bytes: &[u8]) -> Result<T> {
    codec::decode_tagged(bytes).map_err(|damage| {
        let (RecordDamage::Broken(why) | RecordDamage::Unreadable(why)) = damage;
        err!(DATA_CORRUPTED: "damaged catalog record: {why}")
    })
}

impl ColumnRecord {
    /// Returns its name; empty if it was dropped.
    pub fn shown_name(&self) -> &str {
        if self.dropped { "" } else { &self.name }
    }
}

impl TableRecord {
    /// Returns the position of a column by name.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| !column.dropped && column.name == name)
    }

    /// Returns the position of a column by its name in a statement, as
    /// [`Table::find_column`](crate::catalog::table::Table::find_column) does.
    ///
    /// # Errors
    ///
    /// For a name without a family, if only columns of families have it.
    pub fn find_column(&self, name: &ColumnName) -> Result<Option<usize>> {
        let families = self.family_names();
        let columns = self.columns.iter().zip(&families);
        column_family::named(columns.map(|(column, of)| (column.shown_name(), of.as_str())), name)
    }

    /// Returns the family of each column; empty for key columns and dropped ones.
    pub fn family_names(&self) -> Vec<String> {
        let is_key = |at: usize| self.primary_key.iter().any(|key| key.column as usize == at);
        let family = |(at, column): (usize, &ColumnRecord)| {
            let family = self.descriptor.families.get(usize::from(column.family));
            let family = family.filter(|_| !column.dropped && !is_key(at));
            family.map(|family| family.name.clone()).unwrap_or_default()
        };
        self.columns.iter().enumerate().map(family).collect()
    }
}
