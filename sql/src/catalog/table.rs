//! What the catalog knows of a table.
//!
//! Bound forms (layouts, expressions) are made once, when the table enters the catalog snapshot,
//! and shared; what is stored on disk is SQL text and numbers in records of their own.

use std::sync::Arc;

use coprocessors::constraint::ConstraintSpec;
use coprocessors::index::IndexSpec;
use coprocessors::registry::{ColumnShape, TableShape};
use store::TableDescriptor;
use store::TableId;
use types::expr::{EvalContext, Expr};
use types::rowcode::RowLayout;
use types::{Datum, SqlType};

use crate::ast::{Collation, Deferral};
use crate::catalog::domain::Domain;
use crate::catalog::foreign_key::ForeignKey;
use crate::catalog::later::TableKind;
use crate::catalog::name::ObjectName;
use crate::catalog::record::{CoprocessorRecords, IdentityRecord};

/// The name of the hidden column that is the key of a table without a primary key. No identifier is
/// empty, so no statement can name the column.
pub const ROW_ID_NAME: &str = "";

/// What coprocessors are told of that name.
const ROW_ID_SHOWN: &str = "_row_id";

/// A table.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its number, which it keeps.
    pub oid: u32,
    /// The id of its rows in the store; TRUNCATE gives it another one.
    pub id: TableId,
    /// Its schema.
    pub schema: String,
    /// Its name in the schema.
    pub name: String,
    /// What it is to statements.
    pub kind: TableKind,
    /// The columns, in order.
    pub columns: Vec<Column>,
    /// The positions of its generated columns.
    pub generated: Vec<usize>,
    /// How rows are stored. `layout.columns` and `columns` go by the same index.
    pub layout: Arc<RowLayout>,
    /// Name of the primary key constraint; empty without one, and if an index keeps it.
    pub primary_key_name: String,
    /// CHECK and NOT NULL, bound; CHECKs over the row in table order.
    pub constraints: Arc<ConstraintSpec>,
    /// The indexes, oldest first.
    pub indexes: Vec<Arc<Index>>,
    /// Its foreign keys, oldest first.
    pub foreign_keys: Vec<ForeignKey>,
    /// Neither these nor those that refer to it are checked where its rows change.
    pub without_triggers: bool,
    /// What ALTER TABLE attached, oldest first.
    pub coprocessors: Arc<CoprocessorRecords>,
    /// What the store knows of it: families, TTL, versions.
    pub descriptor: Arc<TableDescriptor>,
}

/// As one snapshot of the catalog has it: a statement sees no other.
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
    /// NULL is refused.
    pub not_null: bool,
    /// The bound DEFAULT, cast to the column's type; needs no input row.
    pub default: Option<Expr>,
    /// Whether it is an identity column, and of which kind.
    pub identity: Option<IdentityRecord>,
    /// What makes its value, over the row in table order, for a generated column.
    pub generated: Option<Expr>,
    /// The domain that its values are of.
    pub domain: Option<Arc<Domain>>,
    /// Its collation, if its values can have one.
    pub collation: Option<Collation>,
    /// It was dropped: its place in packed rows stays, and nobody sees it.
    pub dropped: bool,
}

/// A secondary index, stored as a table of its own.
#[derive(Debug, Clone)]
pub struct Index {
    /// Its number, which it keeps.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// It stands for a UNIQUE or PRIMARY KEY constraint of the same name.
    pub constraint: bool,
    /// It stands for the primary key, which is deferrable then.
    pub primary: bool,
    /// What the observer needs to keep it, with its id in the store and its layout. See
    /// [`IndexSpec`] for the order of the index's columns.
    pub spec: Arc<IndexSpec>,
    /// The collations that are written for its keys.
    pub collations: Vec<Option<Collation>>,
    /// SQL text of its keys, then of what holds of the rows that it is over, if not all are.
    pub texts: Vec<String>,
    /// Whether queries may use it.
    pub state: IndexState,
    /// When its constraint is checked.
    pub deferral: Deferral,
}

impl Index {
    /// Returns whether no two rows have one key, be it only when a transaction ends.
    pub fn is_unique(&self) -> bool {
        self.spec.unique || self.spec.unique_later
    }

    /// Returns the SQL text of its keys.
    pub fn key_texts(&self) -> &[String] {
        self.texts.get(..self.spec.keys.len()).unwrap_or_default()
    }

    /// Returns the SQL text of what holds of the rows that it is over; `None` for all rows.
    pub fn predicate_text(&self) -> Option<&String> {
        self.texts.get(self.spec.keys.len())
    }
}

/// Where an index is in its life.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexState {
    /// Kept up to date, not complete yet: not used by queries.
    Building,
    /// In use.
    Active,
}

impl Column {
    /// Returns what the column is where nothing is said: its default, or that of its domain; `None`
    /// for NULL.
    pub fn absent(&self) -> Option<Expr> {
        // What makes a generated column is computed later.
        let domain = self.domain.as_ref().filter(|_| self.generated.is_none());
        let of_domain = || domain.map(|domain| domain.absent());
        self.default.clone().or_else(of_domain)
    }

    /// Returns whether nobody sees it: the key of a table without a primary key, or dropped.
    pub fn is_hidden(&self) -> bool {
        self.dropped || self.is_row_id()
    }

    /// Returns whether it is the key of a table without a primary key.
    pub fn is_row_id(&self) -> bool {
        self.name == ROW_ID_NAME
    }

    /// Returns the name that statements know it by; empty if they do not.
    pub fn shown_name(&self) -> &str {
        if self.dropped { "" } else { &self.name }
    }
}

impl Table {
    /// Returns whether it is a materialized view.
    pub fn is_materialized(&self) -> bool {
        matches!(self.kind, TableKind::Materialized { .. })
    }

    /// Returns the words for it in messages: `table`, `materialized view`.
    pub fn kind_name(&self) -> &'static str {
        if self.is_materialized() { "materialized view" } else { "table" }
    }

    /// Returns its full name.
    pub fn full_name(&self) -> ObjectName {
        ObjectName::new(&self.schema, &self.name)
    }

    /// Returns what coprocessors are told of the table.
    pub fn shape(&self) -> TableShape {
        let columns = self.columns.iter().map(|column| ColumnShape {
            name: if column.is_row_id() { ROW_ID_SHOWN } else { &column.name }.to_owned(),
            sql_type: column.sql_type,
            not_null: column.not_null,
        });
        TableShape {
            id: self.id,
            name: self.name.clone(),
            columns: columns.collect(),
            layout: Arc::clone(&self.layout),
            descriptor: Arc::clone(&self.descriptor),
        }
    }

    /// Returns whether a column is never NULL: one that is NOT NULL, of a family that does not
    /// expire before the row.
    pub fn is_never_null(&self, column: usize) -> bool {
        self.columns[column].not_null && !self.layout.expires_apart(column)
    }

    /// Returns the position of a column by name.
    pub fn column_index(&self, name: &str) -> Option<usize> {
        self.columns.iter().position(|column| !column.dropped && column.name == name)
    }

    /// Returns the positions of the columns that statements see, in order.
    pub fn visible_columns(&self) -> impl Iterator<Item = usize> + '_ {
        (0..self.columns.len()).filter(|&column| !self.columns[column].is_hidden())
    }

    /// Returns the position of the hidden key column of a table without a primary key.
    pub fn row_id_column(&self) -> Option<usize> {
        self.columns.iter().position(Column::is_row_id)
    }

    /// Computes the generated columns of a row in table order from the others.
    ///
    /// # Errors
    ///
    /// Whatever their expressions raise.
    pub fn generate(&self, row: &mut [Datum], context: &EvalContext) -> types::Result<()> {
        for &column in &self.generated {
            if let Some(expression) = &self.columns[column].generated {
                row[column] = expression.eval_row(row, context)?;
            }
        }
        Ok(())
    }

    /// Returns whether it has a primary key, be it one that an index keeps.
    pub fn has_primary_key(&self) -> bool {
        !self.primary_key_name.is_empty() || self.primary_index().is_some()
    }

    /// Returns the index that keeps its primary key, if that is deferrable.
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

    /// Returns whether a column is one by whose values a foreign key could refer to rows: of the
    /// primary key, or of a unique index over columns and all rows that is never deferred.
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
