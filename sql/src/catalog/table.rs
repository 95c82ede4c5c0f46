//! Tables, columns and indexes of a catalog snapshot.
//!
//! Bound forms (layouts, expressions) are made once, when the table enters the snapshot, and
//! shared; the stored form is SQL text and numbers ([`record`](crate::catalog::record)).

use std::sync::Arc;
use std::time::Duration;

use coprocessors::constraint::ConstraintSpec;
use coprocessors::index::IndexSpec;
use coprocessors::registry::{ColumnSchema, TableSchema};
use coprocessors::row::ReadColumns;
use store::normalizer::NormalizerRules;
use store::{Get, TableDescriptor, TableId};
use types::expr::{EvalContext, Expr};
use types::rowcode::RowLayout;
use types::{Datum, SqlType};

use crate::ast::{Collation, ColumnName, Deferral, Ident, ObjectKind};
use crate::catalog::column_family::{self, base_name, qualified_name};
use crate::catalog::composite::Composite;
use crate::catalog::derived_cache::DerivedCache;
use crate::catalog::domain::Domain;
use crate::catalog::foreign_key::ForeignKey;
use crate::catalog::name::ObjectName;
use crate::catalog::record::PolicyRecord;
use crate::catalog::record::TableKind;
use crate::catalog::record::{CoprocessorRecords, IdentityRecord};
use crate::catalog::trigger::Trigger;
use crate::catalog::user_type::UserType;
use crate::catalog::view::View;
use crate::error::Result;

/// The maximum number of columns of a table, as in PostgreSQL.
pub const COLUMNS_MAX: usize = 1_600;

/// The name of the hidden column that is the key of a table without a primary key. No identifier is
/// empty, so no statement can name the column.
pub const ROW_ID_NAME: &str = "";

/// The name of that column for coprocessors.
const ROW_ID_SHOWN: &str = "_row_id";

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its number, which never changes.
    pub oid: u32,
    /// The id of its rows in the store; TRUNCATE assigns a new one.
    pub id: TableId,
    /// Its schema.
    pub schema: String,
    /// Its name in the schema.
    pub name: String,
    /// Table or materialized view.
    pub kind: TableKind,
    /// A view with triggers, as [`View::as_table`] returns it.
    pub is_view: bool,
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The positions of its generated columns.
    pub generated: Vec<usize>,
    /// The storage layout of rows. `layout.columns` and `columns` have the same indexes.
    pub layout: Arc<RowLayout>,
    /// STORAGE = CELL: each column has a cell of its own.
    pub column_cells: bool,
    /// Name of the primary key constraint; empty without one, and if it is the constraint of an
    /// index.
    pub primary_key_name: String,
    /// CHECK and NOT NULL, bound; CHECKs over the row in table order.
    pub constraints: Arc<ConstraintSpec>,
    /// The indexes, oldest first.
    pub indexes: Vec<Arc<Index>>,
    /// Its foreign keys, oldest first.
    pub foreign_keys: Vec<ForeignKey>,
    /// `DISABLE TRIGGER ALL`: neither its foreign keys nor those that reference it are checked
    /// when its rows change.
    pub without_triggers: bool,
    /// Statements may set the timestamps of cells.
    pub client_timestamps: bool,
    /// Statements may set the TTLs of cells.
    pub cell_ttl: bool,
    /// Its triggers, by name: the order of their calls.
    pub triggers: Vec<Arc<Trigger>>,
    /// Its row-level security.
    pub row_security: RowSecurity,
    /// The attached coprocessors, oldest first.
    pub coprocessors: Arc<CoprocessorRecords>,
    /// Its description in the store: families, TTL, versions.
    pub descriptor: Arc<TableDescriptor>,
    /// The cache of [`Table::row_type`].
    pub row_type: DerivedCache<Arc<UserType>>,
}

/// A policy with its parsed expressions.
#[derive(Debug, Clone)]
pub struct Policy {
    /// Its record.
    pub record: PolicyRecord,
    /// USING, as a view over the table.
    pub using: Option<Arc<View>>,
    /// WITH CHECK, as a view over the table.
    pub check: Option<Arc<View>>,
}

/// Row-level security of a table.
#[derive(Debug, Clone, Default)]
pub struct RowSecurity {
    /// `ENABLE ROW LEVEL SECURITY`
    pub is_enabled: bool,
    /// `FORCE ROW LEVEL SECURITY`: the policies apply to the owner, too.
    pub is_forced: bool,
    /// The policies, by name.
    pub policies: Vec<Arc<Policy>>,
}

impl RowSecurity {
    /// Returns a policy by name.
    pub fn policy(&self, name: &str) -> Option<&Arc<Policy>> {
        self.policies.iter().find(|policy| policy.record.name == name)
    }
}

impl Policy {
    /// Returns its expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &Arc<View>> {
        self.using.iter().chain(&self.check)
    }
}

/// Identity within a catalog snapshot; a statement uses only one snapshot.
impl PartialEq for Table {
    fn eq(&self, other: &Table) -> bool {
        std::ptr::eq(self, other)
    }
}

/// A column.
#[derive(Debug, Clone)]
pub struct Column {
    /// Its name; `family.column` columns are known by the part after the dot.
    pub name: String,
    /// Its type.
    pub sql_type: SqlType,
    /// NULL is rejected.
    pub not_null: bool,
    /// The bound DEFAULT, cast to the column's type; needs no input row.
    pub default: Option<Expr>,
    /// The kind of an identity column.
    pub identity: Option<IdentityRecord>,
    /// The expression of a generated column, over the row in table order.
    pub generated: Option<Expr>,
    /// The domain of its type.
    pub domain: Option<Arc<Domain>>,
    /// Its collation, if it is collatable.
    pub collation: Option<Collation>,
    /// True if it was dropped: packed rows retain its position, and it is hidden.
    pub dropped: bool,
}

/// A secondary index, stored as a table in the store.
#[derive(Debug, Clone)]
pub struct Index {
    /// Its number, which never changes.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// Declared UNIQUE.
    pub unique: bool,
    /// True if it belongs to a UNIQUE or PRIMARY KEY constraint of the same name.
    pub constraint: bool,
    /// True if it is the index of a deferrable primary key.
    pub primary: bool,
    /// The specification for the index observer, with the id in the store and the layout. See
    /// [`IndexSpec`] for the order of the index's columns.
    pub spec: Arc<IndexSpec>,
    /// The explicit collations of its keys.
    pub collations: Vec<Option<Collation>>,
    /// SQL text of its keys, then of its predicate if it is partial.
    pub texts: Vec<String>,
    /// Its state; queries use only an active index.
    pub state: IndexState,
    /// The deferral mode of its constraint.
    pub deferral: Deferral,
    /// `CONSISTENCY = EVENTUAL`
    pub is_eventual: bool,
    /// True if its entries are maintained after the commits, not by writers.
    pub is_followed: bool,
}

impl Table {
    /// Returns the names of the columns of an index, by position in its layout.
    pub fn index_column_names(&self, index: &Index) -> Vec<String> {
        let spec = &index.spec;
        let stored = self.key_columns().chain(spec.include.iter().copied());
        let stored = stored.map(|column| self.columns[column].listed_name().to_owned());
        spec.key_names.iter().cloned().chain(stored).collect()
    }
}

/// Store table of a table or an index.
pub struct StoreTable<'t> {
    /// Name of the table or index, with the schema unless that is public.
    pub name: String,
    /// Id in the store.
    pub id: TableId,
    /// Layout of the rows that begin its regions: of a local index, those of its table.
    pub layout: &'t Arc<RowLayout>,
}

/// Returns the store tables of a table: its own, and those of its indexes.
pub fn stores(table: &Arc<Table>) -> impl Iterator<Item = StoreTable<'_>> {
    let own = (&table.name, table.id, &table.layout);
    let indexes = table.indexes.iter();
    let indexes = indexes.map(|index| {
        let spec = &index.spec;
        (&index.name, spec.store_table, if spec.local { &table.layout } else { &spec.layout })
    });
    std::iter::once(own).chain(indexes).map(|(name, id, layout)| StoreTable {
        name: ObjectName::new(&table.schema, name).short(),
        id,
        layout,
    })
}

/// Returns the conditions of the normaliser for a store table with this number of salt buckets: a
/// region has rows of one bucket.
pub fn normalizer_rules(salt_buckets: u16, min_age: Duration) -> NormalizerRules {
    NormalizerRules { prefix_bytes: usize::from(salt_buckets > 0), min_age }
}

impl Index {
    /// Returns whether it is unique, possibly only at the end of a transaction.
    pub fn is_unique(&self) -> bool {
        self.unique
    }

    /// Returns whether it has the entries of all rows.
    pub fn is_complete(&self) -> bool {
        matches!(self.state, IndexState::Active | IndexState::Unusable)
    }

    /// Returns whether writers maintain it, and the server is to follow it.
    pub fn is_to_hand_over(&self) -> bool {
        self.is_eventual && self.is_complete() && !self.is_followed
    }

    /// Returns the SQL text of its keys.
    pub fn key_texts(&self) -> &[String] {
        self.texts.get(..self.spec.keys.len()).unwrap_or_default()
    }

    /// Returns the SQL text of its predicate; `None` if it is not partial.
    pub fn predicate_text(&self) -> Option<&String> {
        self.texts.get(self.spec.keys.len())
    }
}

/// Indexes are equal if they are the same object, as tables are.
impl PartialEq for Index {
    fn eq(&self, other: &Index) -> bool {
        std::ptr::eq(self, other)
    }
}

/// The state of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexState {
    /// Maintained but incomplete: not used by queries.
    Building,
    /// In use.
    Active,
    /// Complete and maintained, but not used by queries.
    Unusable,
    /// Neither maintained nor used.
    Disabled,
}

impl Column {
    /// Returns the default of the column or of its domain; `None` for NULL.
    pub fn default_expression(&self) -> Option<Expr> {
        // The value of a generated column is computed later.
        let domain = self.domain.as_ref().filter(|_| self.generated.is_none());
        let of_domain = || domain.map(|domain| domain.default_expression());
        self.default.clone().or_else(of_domain)
    }

    /// Returns whether it is hidden: the key of a table without a primary key, or dropped.
    pub fn is_hidden(&self) -> bool {
        self.dropped || self.is_row_id()
    }

    /// Returns whether it is the hidden key of a table without a primary key.
    pub fn is_row_id(&self) -> bool {
        self.name == ROW_ID_NAME
    }

    /// Returns its name in listings of stored columns.
    pub fn listed_name(&self) -> &str {
        if self.is_row_id() { ROW_ID_SHOWN } else { &self.name }
    }

    /// Returns its name in statements; empty if it is hidden.
    pub fn shown_name(&self) -> &str {
        if self.dropped { "" } else { &self.name }
    }
}

impl Table {
    /// Returns its row type, which is made at its first use.
    pub fn row_type(&self) -> &Arc<UserType> {
        self.row_type.get_or_make(|| Arc::new(UserType::Composite(Composite::of_table(self))))
    }

    /// Returns a copy whose indexes that are maintained after the commits are not used.
    pub fn without_followed_indexes(&self) -> Table {
        let hidden = |index: &Arc<Index>| match index.is_followed {
            true => Arc::new(Index { state: IndexState::Building, ..Index::clone(index) }),
            false => Arc::clone(index),
        };
        Table { indexes: self.indexes.iter().map(hidden).collect(), ..self.clone() }
    }

    /// Returns whether it is a materialized view.
    pub fn is_materialized(&self) -> bool {
        self.kind.is_populated().is_some()
    }

    /// Returns whether it is a materialized view that is maintained with each change of its table.
    pub fn is_maintained(&self) -> bool {
        matches!(self.kind, TableKind::Maintained { .. })
    }

    /// Returns whether it is a table or a materialized view.
    pub fn object_kind(&self) -> ObjectKind {
        if self.is_materialized() { ObjectKind::MaterializedView } else { ObjectKind::Table }
    }

    /// Returns its qualified name.
    pub fn full_name(&self) -> ObjectName {
        ObjectName::new(&self.schema, &self.name)
    }

    /// Returns the description of the table for coprocessors.
    pub fn shape(&self) -> TableSchema {
        let columns = self.columns.iter().map(|column| ColumnSchema {
            name: column.listed_name().to_owned(),
            sql_type: column.sql_type.clone(),
            not_null: column.not_null,
        });
        TableSchema {
            id: self.id,
            name: self.name.clone(),
            columns: columns.collect(),
            layout: Arc::clone(&self.layout),
            descriptor: Arc::clone(&self.descriptor),
        }
    }

    /// Returns whether a column is never NULL: it is NOT NULL, and each row has a cell for it.
    pub fn is_never_null(&self, column: usize) -> bool {
        self.columns[column].not_null && !self.layout.may_lose_cell(column)
    }

    /// Returns a trigger by name.
    pub fn trigger(&self, name: &str) -> Option<&Arc<Trigger>> {
        self.triggers.iter().find(|trigger| trigger.record.name == name)
    }

    /// Returns the position of a column by name.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| !column.dropped && column.name == name)
    }

    /// Returns the position of a column by its name in a statement.
    ///
    /// # Errors
    ///
    /// For a name without a family, if only columns of families have it.
    pub fn find_column(&self, name: &ColumnName) -> Result<Option<usize>> {
        column_family::named(self.names(), name)
    }

    /// Returns the position of a column by its name among those of a family.
    pub fn column_in_family(&self, family: &str, name: &str) -> Option<usize> {
        column_family::find(self.names(), family, name)
    }

    /// Returns the names of the columns with their families.
    fn names(&self) -> impl Iterator<Item = (&str, &str)> + Clone {
        let columns = self.columns.iter().enumerate();
        columns.map(|(at, column)| (column.shown_name(), self.family_name(at)))
    }

    /// Returns the family of a column; empty for a key column.
    pub fn family_name(&self, column: usize) -> &str {
        let family = self.layout.family_of(column);
        let family = family.and_then(|family| self.descriptor.families.get(family));
        family.map_or("", |family| &family.name)
    }

    /// Returns the name of a column among those of its family.
    pub fn qualifier_name(&self, column: usize) -> &str {
        base_name(self.columns[column].listed_name(), self.family_name(column))
    }

    /// Returns the name of a column that is added: that with the family, if one is written and a
    /// column of another family has the name.
    pub fn name_of_added(&self, name: &ColumnName) -> String {
        let ColumnName { family, name: Ident { value: name, .. } } = name;
        let Some(family) = family else { return name.clone() };
        let mut others = self.visible_columns();
        let is_shared = others.any(|other| {
            let of = self.family_name(other);
            of != family.value && base_name(&self.columns[other].name, of) == *name
        });
        if is_shared { qualified_name(&family.value, name) } else { name.clone() }
    }

    /// Returns the positions of the visible columns, in order.
    pub fn visible_columns(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.columns.len()).filter(|&column| !self.columns[column].is_hidden())
    }

    /// Returns the get of a whole row: all columns and its version.
    pub fn get(&self, row_key: &[u8]) -> Get {
        ReadColumns::of_whole_rows(&self.layout).get(Get::new(row_key))
    }

    /// Returns the position of the hidden key column of a table without a primary key.
    pub fn row_id_column(&self) -> Option<usize> {
        self.columns.iter().position(Column::is_row_id)
    }

    /// Computes the generated columns of a row in table order from the others.
    ///
    /// # Errors
    ///
    /// Errors of their expressions.
    pub fn generate(&self, row: &mut [Datum], context: &EvalContext) -> types::Result<()> {
        for &column in &self.generated {
            if let Some(expression) = &self.columns[column].generated {
                row[column] = expression.eval_row(row, context)?;
            }
        }
        Ok(())
    }

    /// Returns whether it has a primary key, including a deferrable one.
    pub fn has_primary_key(&self) -> bool {
        !self.primary_key_name.is_empty() || self.primary_index().is_some()
    }

    /// Returns the index of its primary key, if that is deferrable.
    pub fn primary_index(&self) -> Option<&Arc<Index>> {
        self.indexes.iter().find(|index| index.primary)
    }

    /// Returns the positions of the columns of its primary key, or of the hidden one.
    pub fn primary_key(&self) -> Vec<usize> {
        match self.primary_index() {
            Some(index) => index.spec.keys.iter().flat_map(Expr::columns).collect(),
            None => self.key_columns().collect(),
        }
    }

    /// Returns whether a foreign key could reference the column: it is in the primary key, or in a
    /// unique index over columns and all rows that is never deferred.
    pub fn is_referable(&self, column: usize) -> bool {
        let is_key = |index: &&Arc<Index>| {
            let spec = &index.spec;
            let plain = spec.keys.iter().all(|key| matches!(key, Expr::Column { .. }));
            spec.unique && spec.predicate.is_none() && plain
        };
        let is_column = |key: &Expr| matches!(key, Expr::Column { index, .. } if *index == column);
        self.key_columns().any(|key| key == column)
            || self.indexes.iter().filter(is_key).any(|index| index.spec.keys.iter().any(is_column))
    }

    /// Returns the positions of the key columns, in key order.
    pub fn key_columns(&self) -> impl Iterator<Item = usize> + '_ {
        self.layout.key.iter().map(|key| key.column)
    }
}
