//! Syntax tree of table constraints.

use super::expr::SourceExpr;
use super::query::{NullsOrder, SortOrder};
use super::{ColumnName, Ident, TableName, TableOption};

/// A constraint.
#[derive(Debug, Clone, PartialEq)]
pub struct TableConstraint {
    /// `CONSTRAINT name`
    pub name: Option<Ident>,
    /// The kind, with its columns or predicate.
    pub kind: ConstraintKind,
    /// Its deferral mode.
    pub deferral: Deferral,
    /// `NOT VALID`: existing rows are not checked.
    pub not_valid: bool,
    /// The clauses about the index of PRIMARY KEY or UNIQUE.
    pub index: IndexClauses,
    /// Its position.
    pub position: usize,
}

/// `INCLUDE (…) WITH (…)` of PRIMARY KEY and UNIQUE.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct IndexClauses {
    /// `INCLUDE (…)`
    pub include: Vec<ColumnName>,
    /// `WITH (…)`
    pub options: Vec<TableOption>,
}

/// The kind of a constraint, with its columns or predicate.
#[derive(Debug, Clone, PartialEq)]
pub enum ConstraintKind {
    /// `PRIMARY KEY (…)`
    PrimaryKey(Vec<KeyColumn>),
    /// `UNIQUE (…)`
    Unique(UniqueKey),
    /// `CHECK (…)`
    Check(SourceExpr),
    /// `FOREIGN KEY (…) REFERENCES …`
    ForeignKey(ForeignKeyClause),
}

impl ConstraintKind {
    /// Returns the keywords of the kind.
    pub fn words(&self) -> &'static str {
        match self {
            ConstraintKind::PrimaryKey(_) => "PRIMARY KEY",
            ConstraintKind::Unique(_) => "UNIQUE",
            ConstraintKind::Check(_) => "CHECK",
            ConstraintKind::ForeignKey(_) => "FOREIGN KEY",
        }
    }
}

/// `UNIQUE [NULLS [NOT] DISTINCT] (…)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UniqueKey {
    /// The columns.
    pub columns: Vec<KeyColumn>,
    /// `NULLS NOT DISTINCT`
    pub nulls_not_distinct: bool,
}

/// `FOREIGN KEY (…) REFERENCES …`, or `REFERENCES …` of a column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ForeignKeyClause {
    /// The referencing columns.
    pub columns: Vec<ColumnName>,
    /// The referenced table.
    pub table: TableName,
    /// Its columns; none for those of its primary key.
    pub referenced: Vec<ColumnName>,
    /// `MATCH FULL`
    pub match_full: bool,
    /// `ON DELETE …`
    pub on_delete: ReferentialAction,
    /// The columns that `ON DELETE SET …` sets; none for all.
    pub delete_columns: Vec<ColumnName>,
    /// `ON UPDATE …`
    pub on_update: ReferentialAction,
}

impl TableConstraint {
    /// Returns the key if the constraint has an index: UNIQUE, or a deferrable primary key. A
    /// primary key that is not deferrable has none, because it is the row key.
    pub fn index_key(&self) -> Option<UniqueKey> {
        match &self.kind {
            ConstraintKind::Unique(key) => Some(key.clone()),
            ConstraintKind::PrimaryKey(columns) if self.deferral != Deferral::Never => {
                Some(UniqueKey { columns: columns.clone(), nulls_not_distinct: false })
            }
            _ => None,
        }
    }

    /// Returns whether it is `PRIMARY KEY`.
    pub fn is_primary(&self) -> bool {
        matches!(self.kind, ConstraintKind::PrimaryKey(_))
    }
}

/// The deferral mode of a constraint.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Deferral {
    /// `NOT DEFERRABLE`: checked at the end of a statement.
    #[default]
    Never,
    /// `DEFERRABLE INITIALLY IMMEDIATE`: likewise, unless SET CONSTRAINTS defers it.
    Immediate,
    /// `DEFERRABLE INITIALLY DEFERRED`: checked at the end of the transaction, unless SET
    /// CONSTRAINTS makes it immediate.
    Deferred,
}

/// The action on referencing rows when the referenced row is deleted or its key changes.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReferentialAction {
    /// `NO ACTION`: an error at the end of the statement, or later if deferred.
    #[default]
    NoAction,
    /// `RESTRICT`: an error at once.
    Restrict,
    /// `CASCADE`: they are deleted, or get the new key.
    Cascade,
    /// `SET NULL`
    SetNull,
    /// `SET DEFAULT`
    SetDefault,
}

/// A column of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyColumn {
    /// The column.
    pub name: ColumnName,
    /// Its direction.
    pub order: SortOrder,
    /// The placement of NULLs, if written.
    pub nulls: Option<NullsOrder>,
    /// Phoenix's `ROW_TIMESTAMP`: the present time by default.
    pub row_timestamp: bool,
}

impl KeyColumn {
    /// Returns an ascending key column.
    pub fn ascending(name: ColumnName) -> KeyColumn {
        KeyColumn { name, order: SortOrder::Ascending, nulls: None, row_timestamp: false }
    }
}
