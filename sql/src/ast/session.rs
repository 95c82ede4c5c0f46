//! Syntax tree of EXPLAIN, COPY, transaction control, settings, prepared statements and cursors.

use store::transaction::TableLockMode;

use super::expr::{Expr, TypeName};
use super::query::QueryExpr;
use super::{ColumnName, Ident, OptionValue, Statement, TableName};

/// `EXPLAIN`
#[derive(Debug, Clone, PartialEq)]
pub struct Explain {
    /// `ANALYZE`
    pub analyze: bool,
    /// `VERBOSE`
    pub verbose: bool,
    /// `COSTS`, on by default.
    pub costs: bool,
    /// `SETTINGS`
    pub settings: bool,
    /// `BUFFERS`, if written.
    pub buffers: Option<bool>,
    /// `TIMING`, if written.
    pub timing: Option<bool>,
    /// `SUMMARY`, if written.
    pub summary: Option<bool>,
    /// `FORMAT`
    pub format: ExplainFormat,
    /// The explained statement.
    pub statement: Statement,
}

/// Output format of a plan.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ExplainFormat {
    /// `TEXT`, the default
    Text,
    /// `JSON`
    Json,
    /// `XML`
    Xml,
    /// `YAML`
    Yaml,
}

/// `COPY`
#[derive(Debug, Clone, PartialEq)]
pub struct Copy {
    /// The table or query.
    pub target: CopyTarget,
    /// The direction; the other end is always the connection.
    pub direction: CopyDirection,
    /// The options.
    pub options: CopyOptions,
    /// `WHERE`: the condition of the rows to insert.
    pub filter: Option<Expr>,
}

/// The table or query that is copied.
#[derive(Debug, Clone, PartialEq)]
pub enum CopyTarget {
    /// A table.
    Table {
        /// Its name.
        name: TableName,
        /// Its columns; empty for all.
        columns: Vec<ColumnName>,
    },
    /// The rows of a query, or of a data-modifying statement with RETURNING; only with TO.
    Statement(Box<Statement>),
}

/// The direction of COPY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyDirection {
    /// `FROM STDIN`
    FromStdin,
    /// `TO STDOUT`
    ToStdout,
}

/// Options of COPY; None means the default of the format.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopyOptions {
    /// `FORMAT`
    pub format: CopyFormatOption,
    /// `DELIMITER`
    pub delimiter: Option<String>,
    /// `NULL`
    pub null: Option<String>,
    /// `HEADER`
    pub header: CopyHeader,
    /// `QUOTE`
    pub quote: Option<String>,
    /// `ESCAPE`
    pub escape: Option<String>,
    /// `ENCODING`
    pub encoding: Option<String>,
    /// `FORCE_QUOTE`
    pub force_quote: Option<CopyColumns>,
    /// `FORCE_NOT_NULL`
    pub force_not_null: Option<CopyColumns>,
    /// `FORCE_NULL`
    pub force_null: Option<CopyColumns>,
    /// `FREEZE`: restricts which tables are allowed and has no other effect, because no row is
    /// ever frozen.
    pub freeze: bool,
}

/// The columns that an option of COPY is for.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CopyColumns {
    /// `*`
    All,
    /// `(a, b)`
    Named(Vec<Ident>),
}

/// Format of the copied data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyFormatOption {
    /// `text`
    #[default]
    Text,
    /// `csv`
    Csv,
    /// `binary`
    Binary,
}

/// The header line of copied data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyHeader {
    /// None.
    #[default]
    Absent,
    /// One that is skipped on input.
    Present,
    /// `HEADER MATCH`: one that must name the columns.
    Match,
}

/// Modes of a transaction; None means the default of the session.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct TransactionModes {
    /// `ISOLATION LEVEL`
    pub isolation: Option<IsolationLevel>,
    /// `READ ONLY` or `READ WRITE`
    pub read_only: Option<bool>,
    /// `[NOT] DEFERRABLE`
    pub deferrable: Option<bool>,
}

/// Isolation levels.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IsolationLevel {
    /// `READ UNCOMMITTED`, which behaves as READ COMMITTED.
    ReadUncommitted,
    /// `READ COMMITTED`
    ReadCommitted,
    /// `REPEATABLE READ`
    RepeatableRead,
    /// `SERIALIZABLE`
    Serializable,
}

impl IsolationLevel {
    /// Returns its name as the value of a setting.
    pub fn name(self) -> &'static str {
        match self {
            IsolationLevel::ReadUncommitted => "read uncommitted",
            IsolationLevel::ReadCommitted => "read committed",
            IsolationLevel::RepeatableRead => "repeatable read",
            IsolationLevel::Serializable => "serializable",
        }
    }

    /// Returns the level by its name in a setting.
    pub fn named(name: &str) -> Option<IsolationLevel> {
        use IsolationLevel::{ReadCommitted, ReadUncommitted, RepeatableRead, Serializable};
        let all = [ReadUncommitted, ReadCommitted, RepeatableRead, Serializable];
        all.into_iter().find(|level| level.name().eq_ignore_ascii_case(name))
    }
}

/// `SET`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetVariable {
    /// The scope.
    pub scope: SetScope,
    /// The setting, folded; dotted names keep their dot. `SET TIME ZONE` is `timezone`, `SET
    /// NAMES` is `client_encoding`.
    pub name: Ident,
    /// The list of values; None for DEFAULT.
    pub value: Option<Vec<OptionValue>>,
}

/// The scope of SET.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetScope {
    /// The session, the default.
    Session,
    /// `LOCAL`: the transaction.
    Local,
}

/// `PREPARE name (types) AS statement`
#[derive(Debug, Clone, PartialEq)]
pub struct Prepare {
    /// Its name.
    pub name: Ident,
    /// Types of the first parameters.
    pub types: Vec<TypeName>,
    /// The statement; a query, INSERT, UPSERT, UPDATE or DELETE.
    pub statement: Statement,
}

/// `DECLARE name CURSOR FOR query`
#[derive(Debug, Clone, PartialEq)]
pub struct DeclareCursor {
    /// Its name.
    pub name: Ident,
    /// `SCROLL` or `NO SCROLL`, if written.
    pub scroll: Option<bool>,
    /// `INSENSITIVE`
    pub insensitive: bool,
    /// `BINARY`
    pub binary: bool,
    /// `WITH HOLD` or `WITHOUT HOLD`, if written.
    pub hold: Option<bool>,
    /// The query.
    pub query: QueryExpr,
}

/// The rows that FETCH returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchDirection {
    /// The next n rows; backward if negative, the current row again if 0.
    Forward(i64),
    /// All remaining rows.
    ForwardAll,
    /// All preceding rows, backward.
    BackwardAll,
    /// The row with this number, from the end if negative.
    Absolute(i64),
    /// The row at this distance.
    Relative(i64),
}

/// `SET CONSTRAINTS { ALL | name, … } { DEFERRED | IMMEDIATE }`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetConstraints {
    /// The constraints; `None` for all.
    pub names: Option<Vec<TableName>>,
    /// `DEFERRED`
    pub deferred: bool,
}

/// `LOCK TABLE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LockTables {
    /// The tables, or views over tables.
    pub names: Vec<TableName>,
    /// The lock mode.
    pub mode: TableLockMode,
    /// `NOWAIT`
    pub nowait: bool,
}
