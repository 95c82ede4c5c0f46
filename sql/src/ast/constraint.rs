//! Constraints of tables, as written.

use super::expr::SourceExpr;
use super::query::{NullsOrder, SortOrder};
use super::{ColumnName, Ident, TableName, TableOption};

/// A constraint.
#[derive(Debug, Clone, PartialEq)]
pub struct TableConstraint {
    /// `CONSTRAINT name`
    pub name: Option<Ident>,
    /// What it demands.
    pub kind: ConstraintKind,
    /// When it is checked.
    pub deferral: Deferral,
    /// `NOT VALID`: rows that are there are let be.
    pub not_valid: bool,
    /// What is said of the index of PRIMARY KEY or UNIQUE.
    pub index: IndexClauses,
    /// Where it stands.
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

/// What a constraint demands.
#[derive(Debug, Clone, PartialEq)]
pub enum ConstraintKind {
    /// `PRIMARY KEY (…)`
    PrimaryKey(Vec<KeyColumn>),
    /// `UNIQUE (…)`
    Unique(UniqueKey),
    /// `CHECK (…)`
    Check(SourceExpr),
    /// `FOREIGN KEY (…) REFERENCES …`
    ForeignKey(ForeignKey),
}

impl ConstraintKind {
    /// Returns its words.
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
pub struct ForeignKey {
    /// The referencing columns.
    pub columns: Vec<Ident>,
    /// The referenced table.
    pub table: TableName,
    /// Its columns; none for those of its primary key.
    pub referenced: Vec<Ident>,
    /// `MATCH FULL`
    pub match_full: bool,
    /// `ON DELETE …`
    pub on_delete: ReferentialAction,
    /// The columns that `ON DELETE SET …` sets; none for all.
    pub delete_columns: Vec<Ident>,
    /// `ON UPDATE …`
    pub on_update: ReferentialAction,
}

impl TableConstraint {
    /// Returns the key of one that an index keeps: UNIQUE, or a primary key that is deferrable. One
    /// that is not is where rows lie.
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

/// When a constraint is checked.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum Deferral {
    /// `NOT DEFERRABLE`: when a statement ends.
    #[default]
    Never,
    /// `DEFERRABLE INITIALLY IMMEDIATE`: likewise, unless SET CONSTRAINTS says otherwise.
    Immediate,
    /// `DEFERRABLE INITIALLY DEFERRED`: when the transaction ends, unless it says otherwise.
    Deferred,
}

/// What becomes of rows that refer to one that goes, or gets another key.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum ReferentialAction {
    /// They forbid it, at the end of the statement.
    #[default]
    NoAction,
    /// They forbid it.
    Restrict,
    /// They go, or get the other key, too.
    Cascade,
    /// Their columns become NULL.
    SetNull,
    /// Their columns get their defaults.
    SetDefault,
}

/// A column of a key.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct KeyColumn {
    /// The column.
    pub name: ColumnName,
    /// Its direction.
    pub order: SortOrder,
    /// Where NULLs go, if written.
    pub nulls: Option<NullsOrder>,
}
