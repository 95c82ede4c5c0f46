//! The syntax tree: the structure of a statement before name resolution.
//!
//! The tree is bennu's own. It holds only what bennu supports; the [parser](crate::parser) rejects
//! everything else, so every field of the tree has an effect in the binder or in DDL.
//!
//! # Invariants
//!
//! 1. Identifiers are folded as PostgreSQL folds them: lower case unless quoted, at most 63 bytes.
//! 2. Positions are 1-based offsets in *characters* into the text given to the parser, the unit of
//!    the `P` field of a PostgreSQL error, or 0 for a node without a position.
//! 3. Trees are shallow: nesting is bounded by the parser's limits, chains of AND and OR are
//!    lists, so recursion over a tree is safe on a small stack.
//!
//! The parser asserts the length of names (1) in debug builds, and returns an error for deeper
//! trees (3). The tests of `parser_limits` check the positions of errors (2).
//!
//! SQL text of defaults and checks is stored with their tree ([`SourceExpr`]); a tree is never
//! printed back to SQL.

pub mod collation;
pub mod domain;
pub mod function;
pub mod type_statement;
mod expr;
pub mod constant_run;
pub mod query;
pub mod dml;
pub mod constraint;
pub mod ddl;
pub mod database;
pub mod object;
pub mod role;
pub mod grant;
pub mod trigger;
pub mod policy;
pub mod sequence;
pub mod session;
pub mod window;
pub mod with;

pub use collation::Collation;
pub use constraint::{
    ConstraintKind, Deferral, ForeignKeyClause, IndexClauses, KeyColumn, ReferentialAction,
    TableConstraint, UniqueKey,
};
pub use database::{AlterDatabaseAction, DatabaseOption, DatabaseStatement};
pub use ddl::{
    AlterCoprocessor, AlterIndex, AlterIndexAction, AlterOptions, AlterTable, AlterTableAction,
    AttachCoprocessor, Check, CheckOption, CheckStore, CheckTarget, ColumnAttribute,
    ColumnDefinition, CommentOn, CommentSubject, CreateAsKind, CreateIndex, CreateSchema,
    CreateTable, CreateTableAs, CreateView, Drop, DropUnsupported, ExtensionStatement, IndexKey,
    IndexMethod, IndexRestriction, LikeOptions, LikeTable, OnCommit, OptionName, OptionValue,
    OptionsChange, OptionsOwner, Refresh, RegionAction, Reindex, ReindexTarget, Rename,
    RenameTarget, SplitPoints, StorageKind, TableAttribute, TableChange, TableOption,
    TriggerSelection, Truncate, ViewOption,
};
pub use dml::{
    AssignedValue, AssignmentClause, CellAttributes, ConflictAction, ConflictTargetClause,
    DeleteLimit, DeleteStatement, InsertSource, InsertStatement, MergeActionClause, MergeStatement,
    MergeWhenClause, OnConflictClause, OnDuplicate, Selection, TargetColumn, TargetStep,
    UpdateStatement, Upsert,
};
pub use domain::{AlterDomain, AlterDomainAction, CreateDomain, DomainCheck};
pub use expr::{
    ALL_FIELDS, ArraySource, BinaryOperator, Expr, FunctionArgument, FunctionCall, FunctionName,
    LikeKind, MinMax, NamedType, Quantifier, SourceExpr, SqlValueFunction, Subscript, TruthTest,
    TypeName, UNKNOWN_OPERATOR, UnaryOperator,
};
pub use function::{
    AlterFunction, BodyPosition, CreateFunction, DoBlock, FunctionAttributes, FunctionBody,
    FunctionParameter, FunctionStatement, Language, Parallel, ParameterMode, Returns,
    SettingClause, Volatility,
};
pub use grant::{
    FutureKind, FutureObjects, GrantObjects, GrantStatement, Grantee, OwnedAction, OwnedStatement,
    WrittenPrivilege,
};
pub use object::{KindDescriptor, NameSpace, ObjectKind, ObjectReference};
pub use policy::{AlterPolicy, CreatePolicy, PolicyCommand, PolicyStatement, RowSecurityChange};
pub use query::{
    Distinct, DynamicColumn, FromCall, GroupItem, Hint, JoinQualifier, JoinType, LockStrength,
    LockWait, Locking, NullsOrder, OrderItem, QueryBody, QueryExpr, Select, SelectItem,
    SetOperator, SortOrder, SourceQuery, SystemTime, SystemTimeForm, TableAlias, TableFunction,
    TableRef, TableSample,
};
pub use role::{MembershipChange, Role, RoleAttribute, RoleOptions, RoleStatement};
pub use sequence::{
    AlterSequence, CreateSequence, Identity, IdentityKind, Overriding, SequenceOptions,
};
pub use session::{
    Copy, CopyColumns, CopyDirection, CopyFormatOption, CopyHeader, CopyOptions, CopyTarget,
    DeclareCursor, Explain, ExplainFormat, FetchDirection, IsolationLevel, LockTables, Prepare,
    SetConstraints, SetScope, SetVariable, TransactionModes,
};
pub use trigger::{
    CreateTrigger, DropTrigger, RenameTrigger, TransitionTable, TriggerEvent, TriggerFiring,
    TriggerStatement, TriggerTiming,
};
pub use type_statement::{
    AlterType, AlterTypeAction, AttributeChange, CreateComposite, CreateEnum, LabelPosition,
    TypeStatement,
};
pub use window::{
    Exclusion, FrameBoundClause, FrameClause, FrameUnits, NamedWindow, Over, WindowClause,
};
pub use with::{Cycle, NamedQuery, NamedQueryBody, Search, WithClause};

/// A folded name, with its position.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Ident {
    /// The folded name.
    pub value: String,
    /// 1-based offset in characters.
    pub position: usize,
}

/// The largest n of `$n`. Bind sends 65,535 values at most; as in PostgreSQL, statements with more
/// parameters can still be prepared.
pub const MAX_PARAMETER: u32 = 131_072;

/// The name of the database, which may qualify other names.
pub const DATABASE: &str = "bennu";

/// The schema of temporary objects, by its name in statements.
pub const TEMP: &str = "pg_temp";

/// The name of a table, index or other relation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableName {
    /// The schema, if it was written.
    pub schema: Option<Ident>,
    /// The name.
    pub name: Ident,
}

impl TableName {
    /// Returns the position of the name.
    pub fn position(&self) -> usize {
        self.schema.as_ref().map_or(self.name.position, |schema| schema.position)
    }
}

/// The name of a column in a definition or a target list: `col` or `family.col`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ColumnName {
    /// The column family, if it was written.
    pub family: Option<Ident>,
    /// The name.
    pub name: Ident,
}

impl ColumnName {
    /// Returns its position.
    pub fn position(&self) -> usize {
        self.family.as_ref().unwrap_or(&self.name).position
    }
}

/// One statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Statement {
    /// `SELECT …`, `VALUES …` and their combinations.
    Query(Box<QueryExpr>),
    /// `INSERT`
    Insert(Box<InsertStatement>),
    /// Phoenix's `UPSERT`
    Upsert(Box<Upsert>),
    /// `UPDATE`
    Update(Box<UpdateStatement>),
    /// `DELETE`
    Delete(Box<DeleteStatement>),
    /// `MERGE`
    Merge(Box<MergeStatement>),
    /// `CREATE TABLE`
    CreateTable(Box<CreateTable>),
    /// `CREATE TABLE … AS`, `SELECT … INTO`, `CREATE MATERIALIZED VIEW`
    CreateTableAs(Box<CreateTableAs>),
    /// `REFRESH MATERIALIZED VIEW`
    Refresh(Refresh),
    /// `CREATE SCHEMA`
    CreateSchema(CreateSchema),
    /// `CREATE DATABASE` and so on.
    Database(Box<DatabaseStatement>),
    /// `CREATE EXTENSION` and so on.
    Extension(Box<ExtensionStatement>),
    /// `CREATE ROLE`, `ALTER ROLE`, `DROP ROLE`, and memberships of `GRANT` and `REVOKE`
    Role(Box<RoleStatement>),
    /// `GRANT` and `REVOKE` of privileges on objects.
    Grant(Box<GrantStatement>),
    /// `REASSIGN OWNED`, `DROP OWNED`
    Owned(Box<OwnedStatement>),
    /// `DROP` of an object kind that is not supported.
    DropNothing(Box<DropUnsupported>),
    /// `DROP`
    Drop(Drop),
    /// `COMMENT ON`
    Comment(Box<CommentOn>),
    /// `TRUNCATE`
    Truncate(Truncate),
    /// `ALTER … RENAME TO`, `ALTER … SET SCHEMA`
    Rename(Box<Rename>),
    /// `CREATE VIEW`
    CreateView(Box<CreateView>),
    /// `CREATE SEQUENCE`
    CreateSequence(Box<CreateSequence>),
    /// `ALTER SEQUENCE`
    AlterSequence(Box<AlterSequence>),
    /// `CREATE TYPE`, `ALTER TYPE` and `DROP TYPE`
    Type(Box<TypeStatement>),
    /// `CREATE FUNCTION`, `ALTER FUNCTION` and `DROP FUNCTION`
    Function(Box<FunctionStatement>),
    /// `CREATE TRIGGER`, `DROP TRIGGER` and `ALTER TRIGGER`
    Trigger(Box<TriggerStatement>),
    /// `CREATE POLICY`, `ALTER POLICY` and `DROP POLICY`
    Policy(Box<PolicyStatement>),
    /// `CREATE INDEX`
    CreateIndex(Box<CreateIndex>),
    /// `ALTER TABLE`
    AlterTable(Box<AlterTable>),
    /// `ALTER INDEX`
    AlterIndex(Box<AlterIndex>),
    /// `ALTER TABLE … SET | RESET (…)`, `ALTER ROLE … SET | RESET …`
    AlterOptions(Box<AlterOptions>),
    /// `ALTER SESSION SET name = value`; the name in lower case.
    AlterSession {
        /// Name of the setting.
        name: Ident,
        /// Its new value.
        value: OptionValue,
    },
    /// `FLUSH t`
    Flush(TableName),
    /// `COMPACT t`, `MAJOR COMPACT t`
    Compact {
        /// The table.
        table: TableName,
        /// True if all files are rewritten.
        major: bool,
    },
    /// `EXPLAIN`
    Explain(Box<Explain>),
    /// `COPY`
    Copy(Box<Copy>),
    /// `BEGIN`, `START TRANSACTION`
    Begin {
        /// True if it is START TRANSACTION.
        start: bool,
        /// Its modes.
        modes: TransactionModes,
    },
    /// `COMMIT`, `END`
    Commit {
        /// `AND CHAIN`: a new transaction begins with the same modes.
        chain: bool,
    },
    /// `ROLLBACK`, `ABORT`
    Rollback {
        /// `AND CHAIN`
        chain: bool,
    },
    /// `SAVEPOINT s`
    Savepoint(Ident),
    /// `ROLLBACK TO SAVEPOINT s`
    RollbackTo(Ident),
    /// `RELEASE SAVEPOINT s`
    Release(Ident),
    /// `SET`
    Set(SetVariable),
    /// `SET TRANSACTION …`
    SetTransaction(TransactionModes),
    /// `SET TRANSACTION SNAPSHOT '…'`
    SetSnapshot(String),
    /// `SET SESSION CHARACTERISTICS AS TRANSACTION …`
    SetSessionCharacteristics(TransactionModes),
    /// `SET CONSTRAINTS`
    SetConstraints(SetConstraints),
    /// `SHOW name`; None for `SHOW ALL`. Multi-word names are replaced by the setting that they
    /// name, for example `timezone` and `transaction_isolation`.
    Show(Option<Ident>),
    /// `RESET name`; None for `RESET ALL`.
    Reset(Option<Ident>),
    /// `DISCARD ALL`
    DiscardAll,
    /// `DISCARD PLANS`
    DiscardPlans,
    /// `DISCARD SEQUENCES`
    DiscardSequences,
    /// `DISCARD TEMP`
    DiscardTemp,
    /// `LOCK TABLE`
    LockTables(LockTables),
    /// `REINDEX`
    Reindex(Reindex),
    /// `CHECK INDEX`, `CHECK TABLE`
    Check(Check),
    /// `CHECK STORE`
    CheckStore(CheckStore),
    /// `PREPARE TRANSACTION`
    PrepareTransaction(String),
    /// `COMMIT PREPARED`
    CommitPrepared(String),
    /// `ROLLBACK PREPARED`
    RollbackPrepared(String),
    /// `PREPARE`
    Prepare(Box<Prepare>),
    /// `EXECUTE name (arguments)`
    Execute {
        /// The prepared statement.
        name: Ident,
        /// Values of its parameters.
        arguments: Vec<Expr>,
    },
    /// `CALL name (arguments)`
    Call(Box<FunctionCall>),
    /// `DO body`
    Do(Box<DoBlock>),
    /// `DEALLOCATE name`; None for `DEALLOCATE ALL`.
    Deallocate(Option<Ident>),
    /// `DECLARE name CURSOR FOR query`
    DeclareCursor(Box<DeclareCursor>),
    /// `FETCH direction FROM name`, `MOVE direction FROM name`
    Fetch {
        /// The direction and count.
        direction: FetchDirection,
        /// MOVE: only the position changes, no rows are returned.
        moves: bool,
        /// The cursor.
        cursor: Ident,
    },
    /// `CLOSE name`; None for `CLOSE ALL`.
    Close(Option<Ident>),
    /// `LISTEN`
    Listen(Ident),
    /// `UNLISTEN`; `None` for `*`.
    Unlisten(Option<Ident>),
    /// `NOTIFY`
    Notify {
        /// The channel.
        channel: Ident,
        /// The payload; may be empty.
        payload: String,
    },
    /// `ANALYZE [tables]`; empty for all tables.
    Analyze(Vec<TableName>),
    /// `VACUUM [FULL] [ANALYZE] [tables]`; empty for all tables.
    Vacuum {
        /// The tables.
        tables: Vec<TableName>,
        /// `FULL`
        full: bool,
        /// `ANALYZE`
        analyze: bool,
    },
}

impl Statement {
    /// Returns the text of PostgreSQL's command tag without its counts, for example `CREATE TABLE`.
    #[expect(clippy::too_many_lines, reason = "one arm for each statement")]
    pub fn tag(&self) -> &'static str {
        match self {
            Statement::Query(_) => "SELECT",
            Statement::Insert(_) => "INSERT",
            Statement::Upsert(_) => "UPSERT",
            Statement::Update(_) => "UPDATE",
            Statement::Delete(_) => "DELETE",
            Statement::Merge(_) => "MERGE",
            Statement::CreateTable(_) => "CREATE TABLE",
            Statement::CreateTableAs(create) => create.made.tag(),
            Statement::Refresh(_) => "REFRESH MATERIALIZED VIEW",
            Statement::CreateSchema(_) => "CREATE SCHEMA",
            Statement::Role(statement) => statement.tag(),
            Statement::Grant(grant) => grant.tag(),
            Statement::Owned(statement) => statement.action.tag(),
            Statement::DropNothing(drop) => match drop.kind.as_str() {
                "rule" => "DROP RULE",
                "publication" => "DROP PUBLICATION",
                _ => "DROP SERVER",
            },
            Statement::Database(statement) => statement.tag(),
            Statement::Extension(statement) => match **statement {
                ExtensionStatement::Create { .. } => "CREATE EXTENSION",
                ExtensionStatement::Update { .. } => "ALTER EXTENSION",
            },
            Statement::Drop(drop) => {
                drop.objects.first().map_or("DROP", |one| one.kind.descriptor().tags[1])
            }
            Statement::Comment(_) => "COMMENT",
            Statement::Truncate(_) => "TRUNCATE TABLE",
            Statement::Rename(rename) => rename.object.kind.descriptor().tags[0],
            Statement::CreateView(_) => "CREATE VIEW",
            Statement::CreateSequence(_) => "CREATE SEQUENCE",
            Statement::AlterSequence(_) => "ALTER SEQUENCE",
            Statement::Type(statement) => statement.tag(),
            Statement::Function(statement) => statement.tag(),
            Statement::Trigger(statement) => statement.tag(),
            Statement::Policy(statement) => statement.tag(),
            Statement::CreateIndex(_) => "CREATE INDEX",
            Statement::AlterTable(alter) => alter.kind.descriptor().tags[0],
            Statement::AlterIndex(_) => "ALTER INDEX",
            Statement::AlterOptions(alter) => match alter.of {
                OptionsOwner::Table(_) => "ALTER TABLE",
                OptionsOwner::Index(_) => "ALTER INDEX",
                OptionsOwner::Schema(_) => "ALTER SCHEMA",
            },
            Statement::AlterSession { .. } => "ALTER SESSION",
            Statement::Flush(_) => "FLUSH",
            Statement::Compact { .. } => "COMPACT",
            Statement::Explain(_) => "EXPLAIN",
            Statement::Copy(_) => "COPY",
            Statement::Begin { start, .. } => ["BEGIN", "START TRANSACTION"][usize::from(*start)],
            Statement::Commit { .. } => "COMMIT",
            Statement::Rollback { .. } | Statement::RollbackTo(_) => "ROLLBACK",
            Statement::PrepareTransaction(_) => "PREPARE TRANSACTION",
            Statement::CommitPrepared(_) => "COMMIT PREPARED",
            Statement::RollbackPrepared(_) => "ROLLBACK PREPARED",
            Statement::Savepoint(_) => "SAVEPOINT",
            Statement::Release(_) => "RELEASE",
            Statement::Set(_)
            | Statement::SetTransaction(_)
            | Statement::SetSnapshot(_)
            | Statement::SetSessionCharacteristics(_) => "SET",
            Statement::Show(_) => "SHOW",
            Statement::Reset(_) => "RESET",
            Statement::DiscardAll => "DISCARD ALL",
            Statement::DiscardPlans => "DISCARD PLANS",
            Statement::DiscardSequences => "DISCARD SEQUENCES",
            Statement::DiscardTemp => "DISCARD TEMP",
            Statement::LockTables(_) => "LOCK TABLE",
            Statement::Reindex(_) => "REINDEX",
            Statement::Check(_) | Statement::CheckStore(_) => "CHECK",
            Statement::Prepare(_) => "PREPARE",
            Statement::Execute { .. } => "EXECUTE",
            Statement::Call(_) => "CALL",
            Statement::Do(_) => "DO",
            Statement::Deallocate(name) => ["DEALLOCATE ALL", "DEALLOCATE"][name.iter().len()],
            Statement::DeclareCursor(_) => "DECLARE CURSOR",
            Statement::Fetch { moves, .. } => ["FETCH", "MOVE"][usize::from(*moves)],
            Statement::Close(Some(_)) => "CLOSE CURSOR",
            Statement::Close(None) => "CLOSE CURSOR ALL",
            Statement::Listen(_) => "LISTEN",
            Statement::Unlisten(_) => "UNLISTEN",
            Statement::Notify { .. } => "NOTIFY",
            Statement::SetConstraints(_) => "SET CONSTRAINTS",
            Statement::Analyze(_) => "ANALYZE",
            Statement::Vacuum { .. } => "VACUUM",
        }
    }
}
