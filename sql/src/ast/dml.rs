//! Syntax tree of INSERT, UPSERT, UPDATE, DELETE and MERGE.

use super::expr::{Expr, Subscript};
use super::query::{DynamicColumn, Hint, OrderItem, QueryExpr, SelectItem, TableRef};
use super::sequence::Overriding;
use super::with::WithClause;
use super::{ColumnName, Ident, TableName};

/// `INSERT`
#[derive(Debug, Clone, PartialEq)]
pub struct InsertStatement {
    /// `WITH`
    pub with: Option<WithClause>,
    /// The table.
    pub table: TableName,
    /// `AS alias`
    pub alias: Option<Ident>,
    /// The target columns; empty for all in their order.
    pub columns: Vec<TargetColumn>,
    /// `OVERRIDING … VALUE`
    pub overriding: Option<Overriding>,
    /// The rows.
    pub source: InsertSource,
    /// `ON CONFLICT`
    pub on_conflict: Option<OnConflictClause>,
    /// `RETURNING`; empty if not written.
    pub returning: Vec<SelectItem>,
}

/// Phoenix's `UPSERT`: if the key exists, the given columns of the row are overwritten.
#[derive(Debug, Clone, PartialEq)]
pub struct Upsert {
    /// The table.
    pub table: TableName,
    /// The target columns; empty for all in their order.
    pub columns: Vec<TargetColumn>,
    /// The dynamic columns among them.
    pub dynamic_columns: Vec<DynamicColumn>,
    /// The rows.
    pub source: InsertSource,
    /// `ON DUPLICATE KEY …`
    pub on_duplicate: Option<OnDuplicate>,
    /// `WITH TIMESTAMP …, TTL …`
    pub attributes: CellAttributes,
    /// `RETURNING`; empty if not written.
    pub returning: Vec<SelectItem>,
    /// `/*+ … */`
    pub hints: Vec<Hint>,
}

/// `WITH …` of UPSERT and DELETE: attributes of the written cells.
#[derive(Debug, Clone, PartialEq)]
pub struct CellAttributes<E = Expr> {
    /// `TIMESTAMP`: of a put; a delete masks the versions up to it.
    pub timestamp: Option<E>,
    /// `VERSION`: the timestamp of the only version that a delete masks.
    pub version: Option<E>,
    /// `TTL`: the age at which a put expires.
    pub ttl: Option<E>,
}

impl<E> Default for CellAttributes<E> {
    fn default() -> CellAttributes<E> {
        CellAttributes { timestamp: None, version: None, ttl: None }
    }
}

impl<E> CellAttributes<E> {
    /// Returns the expressions.
    pub fn expressions(&self) -> impl Iterator<Item = &E> {
        self.timestamp.iter().chain(&self.version).chain(&self.ttl)
    }
}

/// A target column, or a part of one.
#[derive(Debug, Clone, PartialEq)]
pub struct TargetColumn {
    /// The column; if `family` is the name of a column, that column, and the name is its field.
    pub column: ColumnName,
    /// The path to the part that is assigned; empty for the whole column.
    pub path: Vec<TargetStep>,
}

/// A step of the path to a part of a value.
#[derive(Debug, Clone, PartialEq)]
pub enum TargetStep {
    /// `.field`
    Field(Ident),
    /// `[1]`, `[2:3]`, `['key']`: all adjacent subscripts.
    Subscripts(Vec<Subscript>),
}

/// The rows of an INSERT.
#[derive(Debug, Clone, PartialEq)]
pub enum InsertSource {
    /// `VALUES (…), (…)`
    Values(Vec<Vec<AssignedValue>>),
    /// Any other query.
    Query(Box<QueryExpr>),
    /// `DEFAULT VALUES`
    DefaultValues,
}

/// A value, or the word DEFAULT.
#[derive(Debug, Clone, PartialEq)]
pub enum AssignedValue {
    /// A value.
    Expr(Expr),
    /// `DEFAULT`
    Default {
        /// Its position.
        position: usize,
    },
}

impl AssignedValue {
    /// Returns its position.
    pub fn position(&self) -> usize {
        match self {
            AssignedValue::Expr(expr) => expr.position(),
            AssignedValue::Default { position } => *position,
        }
    }
}

/// `ON CONFLICT [target] action`
#[derive(Debug, Clone, PartialEq)]
pub struct OnConflictClause {
    /// The arbiter; None for any conflict, which only DO NOTHING allows.
    pub target: Option<ConflictTargetClause>,
    /// The action.
    pub action: ConflictAction,
    /// The position of the clause.
    pub position: usize,
}

/// The arbiter of ON CONFLICT.
#[derive(Debug, Clone, PartialEq)]
pub enum ConflictTargetClause {
    /// The unique constraint or index over these keys.
    Keys {
        /// Columns and expressions.
        keys: Vec<Expr>,
        /// `WHERE`: the predicate to infer partial indexes.
        predicate: Option<Expr>,
    },
    /// `ON CONSTRAINT name`
    Constraint(Ident),
}

/// The action on a conflict.
#[derive(Debug, Clone, PartialEq)]
pub enum ConflictAction {
    /// `DO NOTHING`
    Nothing,
    /// `DO UPDATE SET …`
    Update {
        /// `SET`
        assignments: Vec<AssignmentClause>,
        /// `WHERE`
        selection: Option<Expr>,
    },
}

/// `ON DUPLICATE KEY …`
#[derive(Debug, Clone, PartialEq)]
pub enum OnDuplicate {
    /// `IGNORE`
    Ignore,
    /// `UPDATE …`
    Update(Vec<AssignmentClause>),
    /// `UPDATE_ONLY …`: a row that does not exist is not inserted.
    UpdateOnly(Vec<AssignmentClause>),
}

/// One assignment of SET. `(a, b) = (x, y)` is two assignments.
#[derive(Debug, Clone, PartialEq)]
pub enum AssignmentClause {
    /// `a = value`
    Column {
        /// The column.
        column: TargetColumn,
        /// Its new value.
        value: Box<AssignedValue>,
    },
    /// `(a, b) = (SELECT …)`
    Subquery {
        /// The columns.
        columns: Vec<TargetColumn>,
        /// The query: at most one row, with as many columns.
        query: Box<QueryExpr>,
    },
}

/// `UPDATE`
#[derive(Debug, Clone, PartialEq)]
pub struct UpdateStatement {
    /// `WITH`
    pub with: Option<WithClause>,
    /// The table.
    pub table: TableName,
    /// `AS alias`
    pub alias: Option<Ident>,
    /// `SET`
    pub assignments: Vec<AssignmentClause>,
    /// `FROM`, one entry for each comma.
    pub from: Vec<TableRef>,
    /// `WHERE`
    pub selection: Option<Selection>,
    /// `RETURNING`; empty if not written.
    pub returning: Vec<SelectItem>,
    /// `/*+ … */`
    pub hints: Vec<Hint>,
}

/// The condition of the rows that UPDATE and DELETE change.
#[derive(Debug, Clone, PartialEq)]
pub enum Selection {
    /// `WHERE condition`
    Where(Expr),
    /// `WHERE CURRENT OF cursor`
    CurrentOf(Ident),
}

/// `MERGE`
#[derive(Debug, Clone, PartialEq)]
pub struct MergeStatement {
    /// `WITH`
    pub with: Option<WithClause>,
    /// The table.
    pub table: TableName,
    /// `AS alias`
    pub alias: Option<Ident>,
    /// `USING`
    pub source: TableRef,
    /// `ON`
    pub condition: Expr,
    /// The WHEN clauses, at least one.
    pub clauses: Vec<MergeWhenClause>,
}

/// `WHEN [NOT] MATCHED [AND …] THEN …`
#[derive(Debug, Clone, PartialEq)]
pub struct MergeWhenClause {
    /// True if it applies to rows that match one of the table.
    pub matched: bool,
    /// `AND …`
    pub condition: Option<Expr>,
    /// The action.
    pub action: MergeActionClause,
}

/// The action of a WHEN clause of MERGE.
#[derive(Debug, Clone, PartialEq)]
pub enum MergeActionClause {
    /// `DO NOTHING`
    Nothing,
    /// `DELETE`
    Delete,
    /// `UPDATE SET …`
    Update(Vec<AssignmentClause>),
    /// `INSERT …`
    Insert {
        /// The target columns; empty for all in their order.
        columns: Vec<TargetColumn>,
        /// `OVERRIDING … VALUE`
        overriding: Option<Overriding>,
        /// The values; None for `DEFAULT VALUES`.
        values: Option<Vec<AssignedValue>>,
    },
}

/// `DELETE`
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteStatement {
    /// `WITH`
    pub with: Option<WithClause>,
    /// The table.
    pub table: TableName,
    /// `AS alias`
    pub alias: Option<Ident>,
    /// `USING`, one entry for each comma.
    pub using: Vec<TableRef>,
    /// `WHERE`
    pub selection: Option<Selection>,
    /// Dynamic columns and `ORDER BY … LIMIT n`
    pub limit: Option<Box<DeleteLimit>>,
    /// `WITH TIMESTAMP …`, `WITH VERSION …`
    pub attributes: CellAttributes,
    /// `RETURNING`; empty if not written.
    pub returning: Vec<SelectItem>,
    /// `/*+ … */`
    pub hints: Vec<Hint>,
}

/// Phoenix's dynamic columns and `[ORDER BY …] LIMIT n` of DELETE.
#[derive(Debug, Clone, PartialEq)]
pub struct DeleteLimit {
    /// The dynamic columns: `DELETE FROM t (c int)`.
    pub dynamic_columns: Vec<DynamicColumn>,
    /// `ORDER BY`
    pub order_by: Vec<OrderItem>,
    /// `LIMIT`
    pub limit: Option<Expr>,
    /// The position of the first word.
    pub position: usize,
}
