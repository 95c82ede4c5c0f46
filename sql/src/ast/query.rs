//! Queries, as written.

use super::expr::{Expr, FunctionCall, TypeName};
use super::window::NamedWindow;
use super::with::With;
use super::{Ident, TableName};

/// A query with what may follow its body.
#[derive(Debug, Clone, PartialEq)]
pub struct Query {
    /// `WITH`
    pub with: Option<With>,
    /// What gives the rows.
    pub body: QueryBody,
    /// `ORDER BY`
    pub order_by: Vec<OrderItem>,
    /// `LIMIT` or `FETCH FIRST`; None also for `LIMIT ALL`.
    pub limit: Option<Expr>,
    /// `FETCH … WITH TIES`: rows that sort like the last one count as well.
    pub with_ties: bool,
    /// `OFFSET`
    pub offset: Option<Expr>,
    /// `FOR UPDATE` and `FOR SHARE`, as often as written.
    pub locking: Vec<Locking>,
    /// Where it starts.
    pub position: usize,
}

impl Query {
    /// Returns a query that is nothing but its body.
    pub fn bare(body: QueryBody, position: usize) -> Query {
        Query {
            with: None,
            body,
            order_by: Vec::new(),
            limit: None,
            with_ties: false,
            offset: None,
            locking: Vec::new(),
            position,
        }
    }

    /// Returns whether it is nothing but its body.
    pub fn is_bare(&self) -> bool {
        self.with.is_none()
            && self.order_by.is_empty()
            && self.limit.is_none()
            && self.offset.is_none()
            && self.locking.is_empty()
    }
}

/// A query together with its SQL text, for what is stored in the catalog.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceQuery {
    /// The tree.
    pub query: Query,
    /// The text it was parsed from, without surrounding blanks.
    pub text: String,
    /// Where the text starts.
    pub position: usize,
}

/// What gives the rows of a query.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryBody {
    /// `SELECT`
    Select(Box<Select>),
    /// `VALUES (…), (…)`; at least one row, each with at least one value.
    Values(Vec<Vec<Expr>>),
    /// `UNION`, `INTERSECT`, `EXCEPT`
    SetOperation {
        /// Which of them.
        operator: SetOperator,
        /// `ALL`
        all: bool,
        /// Left operand.
        left: Box<Query>,
        /// Right operand.
        right: Box<Query>,
    },
}

/// Set operators.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetOperator {
    /// `UNION`
    Union,
    /// `INTERSECT`
    Intersect,
    /// `EXCEPT`
    Except,
}

/// `SELECT` proper.
#[derive(Debug, Clone, PartialEq)]
pub struct Select {
    /// `DISTINCT`
    pub distinct: Option<Distinct>,
    /// The select list; may be empty, as in PostgreSQL.
    pub items: Vec<SelectItem>,
    /// `FROM`, one entry for each comma.
    pub from: Vec<TableRef>,
    /// `WHERE`
    pub selection: Option<Expr>,
    /// `GROUP BY`
    pub group_by: Vec<GroupItem>,
    /// `GROUP BY DISTINCT`: of grouping sets that are the same one counts.
    pub distinct_groups: bool,
    /// `HAVING`
    pub having: Option<Expr>,
    /// `WINDOW`
    pub windows: Vec<NamedWindow>,
    /// `/*+ … */`
    pub hints: Vec<Hint>,
    /// Where the word SELECT stands.
    pub position: usize,
}

/// Which rows of a SELECT go because there is one like them.
#[derive(Debug, Clone, PartialEq)]
pub enum Distinct {
    /// `DISTINCT`: those that agree in all columns.
    All,
    /// `DISTINCT ON (…)`: those that agree in these, each as in ORDER BY; the first one stays.
    On(Vec<Expr>),
}

/// One entry of GROUP BY, or of what stands in one.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupItem {
    /// An expression, an ordinal as a number, or the name of an output column.
    Expr(Expr),
    /// `(a, b)`: these together; `()` is empty.
    List(Vec<Expr>),
    /// `ROLLUP (…)`: all of them, all but the last one, and so on to none.
    Rollup(Vec<Vec<Expr>>),
    /// `CUBE (…)`: each selection of them.
    Cube {
        /// They, each an expression or a list.
        units: Vec<Vec<Expr>>,
        /// Where it stands.
        position: usize,
    },
    /// `GROUPING SETS (…)`: one after the other.
    Sets(Vec<GroupItem>),
}

/// One entry of a select or RETURNING list.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectItem {
    /// A value.
    Expr {
        /// The value.
        expr: Expr,
        /// Its name, if given.
        alias: Option<Ident>,
    },
    /// `(row).*`
    Fields {
        /// The row.
        row: Expr,
        /// Where it stands.
        position: usize,
    },
    /// `*`, or `t.*` with the parts of the qualifier.
    Wildcard {
        /// The qualifier; empty for a bare `*`.
        qualifier: Vec<Ident>,
        /// Where it stands.
        position: usize,
    },
}

/// One hint of `/*+ … */`, for example `INDEX(t i)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// The name, in lower case.
    pub name: String,
    /// What stands between its parentheses, folded like identifiers.
    pub arguments: Vec<String>,
}

/// An entry of FROM.
#[derive(Debug, Clone, PartialEq)]
pub enum TableRef {
    /// A table.
    Table {
        /// Its name.
        name: TableName,
        /// Its alias.
        alias: Option<TableAlias>,
        /// `FOR SYSTEM_TIME AS OF …`
        as_of: Option<Box<Expr>>,
        /// `TABLESAMPLE …`
        sample: Option<Box<TableSample>>,
        /// Of a view: what the clauses of the query around it lock of its rows.
        locking: Vec<Locking>,
    },
    /// A query.
    Subquery {
        /// The query.
        query: Box<Query>,
        /// `LATERAL`: it may name columns of what is before it.
        lateral: bool,
        /// Its alias.
        alias: Option<TableAlias>,
    },
    /// A function that returns rows.
    Function(Box<TableFunction>),
    /// A join in parentheses with a name of its own, which hides those inside.
    Renamed {
        /// The join.
        join: Box<TableRef>,
        /// Its alias.
        alias: TableAlias,
    },
    /// A join.
    Join {
        /// Left side.
        left: Box<TableRef>,
        /// Right side.
        right: Box<TableRef>,
        /// Which join.
        kind: JoinKind,
        /// Which rows match.
        condition: JoinCondition,
    },
}

/// `TABLESAMPLE method (…) [REPEATABLE (…)]`
#[derive(Debug, Clone, PartialEq)]
pub struct TableSample {
    /// The method and what it is given.
    pub method: FunctionCall,
    /// `REPEATABLE (…)`
    pub seed: Option<Expr>,
}

/// Functions in FROM. They may name columns of what is before them.
#[derive(Debug, Clone, PartialEq)]
pub struct TableFunction {
    /// The calls, several of `ROWS FROM (…)`.
    pub calls: Vec<FromCall>,
    /// `WITH ORDINALITY`
    pub ordinality: bool,
    /// Its alias.
    pub alias: Option<TableAlias>,
}

/// One function in FROM.
#[derive(Debug, Clone, PartialEq)]
pub struct FromCall {
    /// The call; neither DISTINCT nor FILTER nor `*`.
    pub call: FunctionCall,
    /// Names and types of the columns of a function that returns records: `AS (a int, …)`.
    pub definitions: Vec<(Ident, TypeName)>,
}

/// `AS name (columns)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableAlias {
    /// The name.
    pub name: Ident,
    /// New names of the columns, from the first on.
    pub columns: Vec<Ident>,
}

/// Join types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinKind {
    /// `[INNER] JOIN`
    Inner,
    /// `LEFT [OUTER] JOIN`
    Left,
    /// `RIGHT [OUTER] JOIN`
    Right,
    /// `FULL [OUTER] JOIN`
    Full,
    /// `CROSS JOIN`, which has no condition.
    Cross,
}

/// Which rows of a join match.
#[derive(Debug, Clone, PartialEq)]
pub enum JoinCondition {
    /// `ON …`
    On(Expr),
    /// `USING (…) [AS alias]`
    Using {
        /// The columns that both sides have.
        columns: Vec<Ident>,
        /// What these go by together.
        alias: Option<Ident>,
    },
    /// `NATURAL`
    Natural,
    /// Of a cross join.
    None,
}

/// One entry of ORDER BY.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderItem {
    /// A value, an ordinal as a number, or the name of an output column.
    pub expr: Expr,
    /// Direction.
    pub order: SortOrder,
    /// Where NULLs go, if written; by default last when ascending and first when descending.
    pub nulls: Option<NullsOrder>,
}

/// Direction of a sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SortOrder {
    /// `ASC`, the default
    Ascending,
    /// `DESC`
    Descending,
}

/// Where NULLs sort.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NullsOrder {
    /// `NULLS FIRST`
    First,
    /// `NULLS LAST`
    Last,
}

/// `FOR UPDATE …`, `FOR SHARE …`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Locking {
    /// How strong.
    pub strength: LockStrength,
    /// `OF t`, if written: the table's name or alias.
    pub of: Option<Ident>,
    /// What happens if a row is locked.
    pub wait: LockWait,
    /// Whether it is said of a query or view of which this is a part.
    pub pushed: bool,
    /// Where the clause stands.
    pub position: usize,
}

/// Strength of row locks, the weakest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum LockStrength {
    /// `FOR KEY SHARE`
    KeyShare,
    /// `FOR SHARE`
    Share,
    /// `FOR NO KEY UPDATE`
    NoKeyUpdate,
    /// `FOR UPDATE`
    Update,
}

impl LockStrength {
    /// Returns the clause as messages name it.
    pub fn clause(self) -> &'static str {
        match self {
            LockStrength::Update => "FOR UPDATE",
            LockStrength::NoKeyUpdate => "FOR NO KEY UPDATE",
            LockStrength::Share => "FOR SHARE",
            LockStrength::KeyShare => "FOR KEY SHARE",
        }
    }
}

/// What happens at a locked row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// Wait, the default.
    Block,
    /// `NOWAIT`
    NoWait,
    /// `SKIP LOCKED`
    SkipLocked,
}
