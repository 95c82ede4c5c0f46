//! Syntax tree of queries.

use super::expr::{Expr, FunctionCall, TypeName};
use super::window::NamedWindow;
use super::with::WithClause;
use super::{ColumnName, Ident, TableName};

/// A query: its body with the clauses that may follow it.
#[derive(Debug, Clone, PartialEq)]
pub struct QueryExpr {
    /// `WITH`
    pub with: Option<WithClause>,
    /// The body.
    pub body: QueryBody,
    /// `ORDER BY`
    pub order_by: Vec<OrderItem>,
    /// `LIMIT` or `FETCH FIRST`; None also for `LIMIT ALL`.
    pub limit: Option<Expr>,
    /// `FETCH … WITH TIES`: returns the peers of the last row, too.
    pub with_ties: bool,
    /// `OFFSET`
    pub offset: Option<Expr>,
    /// `FOR UPDATE` and `FOR SHARE`, each clause in the order of the text.
    pub locking: Vec<Locking>,
    /// Its first position.
    pub position: usize,
}

impl QueryExpr {
    /// Returns a query that consists of its body only.
    pub fn bare(body: QueryBody, position: usize) -> QueryExpr {
        QueryExpr {
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

    /// Returns whether it consists of its body only.
    pub fn is_bare(&self) -> bool {
        self.with.is_none()
            && self.order_by.is_empty()
            && self.limit.is_none()
            && self.offset.is_none()
            && self.locking.is_empty()
    }
}

/// A query with its SQL text, for the catalog.
#[derive(Debug, Clone, PartialEq)]
pub struct SourceQuery {
    /// The tree.
    pub query: QueryExpr,
    /// The text that it was parsed from, without surrounding blanks.
    pub text: String,
    /// The position of the text.
    pub position: usize,
}

/// The body of a query.
#[derive(Debug, Clone, PartialEq)]
pub enum QueryBody {
    /// `SELECT`
    Select(Box<Select>),
    /// `VALUES (…), (…)`; at least one row, each with at least one value.
    Values(Vec<Vec<Expr>>),
    /// `UNION`, `INTERSECT`, `EXCEPT`
    SetOperation {
        /// The operator.
        operator: SetOperator,
        /// `ALL`
        all: bool,
        /// Left operand.
        left: Box<QueryExpr>,
        /// Right operand.
        right: Box<QueryExpr>,
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

/// A `SELECT` without WITH, ORDER BY and LIMIT.
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
    /// `GROUP BY DISTINCT`: duplicate grouping sets are removed.
    pub distinct_groups: bool,
    /// `HAVING`
    pub having: Option<Expr>,
    /// `WINDOW`
    pub windows: Vec<NamedWindow>,
    /// `/*+ … */`
    pub hints: Vec<Hint>,
    /// The position of the word SELECT.
    pub position: usize,
}

impl Select {
    /// Returns a SELECT that consists of its list only.
    pub fn of_items(items: Vec<SelectItem>, position: usize) -> Select {
        Select {
            distinct: None,
            items,
            from: Vec::new(),
            selection: None,
            group_by: Vec::new(),
            distinct_groups: false,
            having: None,
            windows: Vec::new(),
            hints: Vec::new(),
            position,
        }
    }
}

/// The DISTINCT clause.
#[derive(Debug, Clone, PartialEq)]
pub enum Distinct {
    /// `DISTINCT`: duplicates in all columns are removed.
    All,
    /// `DISTINCT ON (…)`: rows that are equal in these are removed, except the first one. Entries
    /// are as in ORDER BY.
    On(Vec<Expr>),
}

/// An element of GROUP BY, or of a nested list.
#[derive(Debug, Clone, PartialEq)]
pub enum GroupItem {
    /// An expression, an ordinal as a number, or the name of an output column.
    Expr(Expr),
    /// `(a, b)`: a composite element; `()` is empty.
    List(Vec<Expr>),
    /// `ROLLUP (…)`: all elements, all but the last one, and so on to none.
    Rollup(Vec<Vec<Expr>>),
    /// `CUBE (…)`: each subset of the elements.
    Cube {
        /// The elements, each an expression or a list.
        units: Vec<Vec<Expr>>,
        /// Its position.
        position: usize,
    },
    /// `GROUPING SETS (…)`: the sets in their order.
    Sets(Vec<GroupItem>),
}

/// One entry of a select or RETURNING list.
#[derive(Debug, Clone, PartialEq)]
pub enum SelectItem {
    /// A value.
    Expr {
        /// The value.
        expr: Expr,
        /// Its name, if written.
        alias: Option<Ident>,
    },
    /// `(row).*`
    Fields {
        /// The row.
        row: Expr,
        /// Its position.
        position: usize,
    },
    /// `*`, or `t.*` with the parts of the qualifier.
    Wildcard {
        /// The qualifier; empty for a bare `*`.
        qualifier: Vec<Ident>,
        /// Its position.
        position: usize,
    },
}

/// One hint of `/*+ … */`, for example `INDEX(t i)`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hint {
    /// The name, in lower case.
    pub name: String,
    /// The arguments in parentheses, folded like identifiers.
    pub arguments: Vec<String>,
}

/// The clause `FOR SYSTEM_TIME` of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct SystemTime<E> {
    /// Its form.
    pub form: SystemTimeForm,
    /// Its times: as many as the form has.
    pub times: Vec<E>,
}

/// Form of the clause `FOR SYSTEM_TIME`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemTimeForm {
    /// `AS OF time`: the state of the time.
    AsOf,
    /// `FROM begin TO end`: the versions that existed in the range, without its end.
    FromTo,
    /// `BETWEEN begin AND end`: the versions that existed in the range, with its end.
    Between,
    /// `ALL`: the versions that have been retained.
    All,
}

impl SystemTimeForm {
    /// Returns the words before each time, or the only word.
    pub fn words(self) -> &'static [&'static str] {
        match self {
            SystemTimeForm::AsOf => &["AS OF"],
            SystemTimeForm::FromTo => &["FROM", "TO"],
            SystemTimeForm::Between => &["BETWEEN", "AND"],
            SystemTimeForm::All => &["ALL"],
        }
    }
}

impl<E> SystemTime<E> {
    /// Returns the clause `AS OF time`.
    pub fn as_of(time: E) -> SystemTime<E> {
        SystemTime { form: SystemTimeForm::AsOf, times: vec![time] }
    }

    /// Returns whether the rows of the table are versions, of which several have one key.
    pub fn has_versions(&self) -> bool {
        self.form != SystemTimeForm::AsOf
    }

    /// Returns the text of the clause, behind `FOR SYSTEM_TIME`.
    pub fn text(&self, text: impl Fn(&E) -> String) -> String {
        let mut times = self.times.iter();
        let part = |word: &&str| match times.next() {
            Some(time) => format!("{word} {}", text(time)),
            None => (*word).to_owned(),
        };
        self.form.words().iter().map(part).collect::<Vec<_>>().join(" ")
    }
}

/// An entry of FROM.
#[derive(Debug, Clone, PartialEq)]
pub enum TableRef {
    /// A table.
    Table {
        /// Its name.
        name: TableName,
        /// Its dynamic columns: `t (a int, f.b text)`.
        dynamic_columns: Vec<DynamicColumn>,
        /// Its alias.
        alias: Option<TableAlias>,
        /// `FOR SYSTEM_TIME …`
        system_time: Option<SystemTime<Expr>>,
        /// `TABLESAMPLE …`
        sample: Option<Box<TableSample>>,
        /// For a view: the locking clauses of the outer query that apply to its rows.
        locking: Vec<Locking>,
    },
    /// A query.
    Subquery {
        /// The query.
        query: Box<QueryExpr>,
        /// `LATERAL`: it may refer to columns of preceding entries.
        lateral: bool,
        /// Its alias.
        alias: Option<TableAlias>,
    },
    /// A function that returns rows.
    Function(Box<TableFunction>),
    /// A join in parentheses with an alias, which hides the names inside.
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
        /// The join type.
        kind: JoinType,
        /// The join condition.
        condition: JoinQualifier,
    },
}

/// A dynamic column: a column of a table that only a statement declares.
#[derive(Debug, Clone, PartialEq)]
pub struct DynamicColumn {
    /// Its name.
    pub name: ColumnName,
    /// Its type.
    pub type_name: TypeName,
}

/// `TABLESAMPLE method (…) [REPEATABLE (…)]`
#[derive(Debug, Clone, PartialEq)]
pub struct TableSample {
    /// The method and its arguments.
    pub method: FunctionCall,
    /// `REPEATABLE (…)`
    pub seed: Option<Expr>,
}

/// Functions in FROM. They may refer to columns of preceding entries.
#[derive(Debug, Clone, PartialEq)]
pub struct TableFunction {
    /// The calls; several for `ROWS FROM (…)`.
    pub calls: Vec<FromCall>,
    /// `WITH ORDINALITY`
    pub ordinality: bool,
    /// Its alias.
    pub alias: Option<TableAlias>,
}

/// One function in FROM.
#[derive(Debug, Clone, PartialEq)]
pub struct FromCall {
    /// The call, without DISTINCT, FILTER or `*`.
    pub call: FunctionCall,
    /// Names and types of the columns of a function that returns records: `AS (a int, …)`.
    pub definitions: Vec<(Ident, TypeName)>,
}

/// `AS name (columns)`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableAlias {
    /// The name.
    pub name: Ident,
    /// New names of the leading columns.
    pub columns: Vec<Ident>,
}

/// Join types.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JoinType {
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

/// The join condition.
#[derive(Debug, Clone, PartialEq)]
pub enum JoinQualifier {
    /// `ON …`
    On(Expr),
    /// `USING (…) [AS alias]`
    Using {
        /// The columns, which both sides have.
        columns: Vec<Ident>,
        /// The alias of the merged columns.
        alias: Option<Ident>,
    },
    /// `NATURAL`
    Natural,
    /// No condition, for a cross join.
    None,
}

/// One entry of ORDER BY.
#[derive(Debug, Clone, PartialEq)]
pub struct OrderItem {
    /// A value, an ordinal as a number, or the name of an output column.
    pub expr: Expr,
    /// Direction.
    pub order: SortOrder,
    /// The placement of NULLs, if written; by default last when ascending and first when
    /// descending.
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

/// The placement of NULLs.
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
    /// The lock strength.
    pub strength: LockStrength,
    /// `OF t`, if written: the table's name or alias.
    pub of: Option<Ident>,
    /// The behavior at a locked row.
    pub wait: LockWait,
    /// True if it was pushed down from an enclosing query or view.
    pub pushed: bool,
    /// The position of the clause.
    pub position: usize,
}

/// Strengths of row locks, the weakest first.
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
    /// Returns the clause as it is in messages.
    pub fn clause(self) -> &'static str {
        match self {
            LockStrength::Update => "FOR UPDATE",
            LockStrength::NoKeyUpdate => "FOR NO KEY UPDATE",
            LockStrength::Share => "FOR SHARE",
            LockStrength::KeyShare => "FOR KEY SHARE",
        }
    }
}

/// The behavior at a locked row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// Wait, the default.
    Block,
    /// `NOWAIT`
    NoWait,
    /// `SKIP LOCKED`
    SkipLocked,
}
