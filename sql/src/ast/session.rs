//! EXPLAIN, COPY, transactions, settings, prepared statements and cursors, as written.

use store::transaction::TableLockMode;

use super::expr::{Expr, TypeName};
use super::query::Query;
use super::{Ident, OptionValue, Statement, TableName};

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
    /// What is explained.
    pub statement: Statement,
}

/// Form of a plan.
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
    /// What is copied.
    pub target: CopyTarget,
    /// Which way, always over the connection.
    pub direction: CopyDirection,
    /// How.
    pub options: CopyOptions,
    /// `WHERE`: which rows come in.
    pub filter: Option<Expr>,
}

/// What is copied.
#[derive(Debug, Clone, PartialEq)]
pub enum CopyTarget {
    /// A table.
    Table {
        /// Its name.
        name: TableName,
        /// Its columns; empty for all.
        columns: Vec<Ident>,
    },
    /// The rows of a query, or of a change with RETURNING, only TO.
    Statement(Box<Statement>),
}

/// Which way.
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
    pub format: CopyFormat,
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
    /// `FREEZE`, which has no effect but on which tables it is for: no row is ever frozen.
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

/// Form of the copied data.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyFormat {
    /// `text`
    #[default]
    Text,
    /// `csv`
    Csv,
    /// `binary`
    Binary,
}

/// Whether there is a header line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum CopyHeader {
    /// None.
    #[default]
    Absent,
    /// There is one, which a reader skips.
    Present,
    /// `HEADER MATCH`: there is one, which must name the columns.
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
    /// Returns its name as settings print it.
    pub fn name(self) -> &'static str {
        match self {
            IsolationLevel::ReadUncommitted => "read uncommitted",
            IsolationLevel::ReadCommitted => "read committed",
            IsolationLevel::RepeatableRead => "repeatable read",
            IsolationLevel::Serializable => "serializable",
        }
    }

    /// Returns the level that a setting names.
    pub fn named(name: &str) -> Option<IsolationLevel> {
        use IsolationLevel::{ReadCommitted, ReadUncommitted, RepeatableRead, Serializable};
        let all = [ReadUncommitted, ReadCommitted, RepeatableRead, Serializable];
        all.into_iter().find(|level| level.name().eq_ignore_ascii_case(name))
    }
}

/// `SET`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SetVariable {
    /// For how long.
    pub scope: SetScope,
    /// The setting, folded; dotted names keep their dot. `SET TIME ZONE` is `timezone`, `SET
    /// NAMES` is `client_encoding`.
    pub name: Ident,
    /// The values of the list; None for DEFAULT.
    pub value: Option<Vec<OptionValue>>,
}

/// For how long a setting holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SetScope {
    /// The session, the default.
    Session,
    /// The transaction.
    Local,
}

/// `PREPARE name (types) AS statement`
#[derive(Debug, Clone, PartialEq)]
pub struct Prepare {
    /// Its name.
    pub name: Ident,
    /// Types of the parameters, as far as given.
    pub types: Vec<TypeName>,
    /// The statement; a query, INSERT, UPSERT, UPDATE or DELETE.
    pub statement: Statement,
}

/// `DECLARE name CURSOR FOR query`
#[derive(Debug, Clone, PartialEq)]
pub struct Cursor {
    /// Its name.
    pub name: Ident,
    /// `SCROLL` or `NO SCROLL`, if written.
    pub scroll: Option<bool>,
    /// `INSENSITIVE`
    pub insensitive: bool,
    /// `BINARY`
    pub binary: bool,
    /// `WITH HOLD`
    pub hold: bool,
    /// What it reads.
    pub query: Query,
}

/// Which rows FETCH returns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FetchDirection {
    /// The next n rows, backwards if negative, the current one again if 0.
    Forward(i64),
    /// All that are left.
    ForwardAll,
    /// All before, backwards.
    BackwardAll,
    /// The row with this number, from the end if negative.
    Absolute(i64),
    /// The row so far away.
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
    /// The tables, and views of tables.
    pub names: Vec<TableName>,
    /// What it keeps others from.
    pub mode: TableLockMode,
    /// `NOWAIT`
    pub nowait: bool,
}
