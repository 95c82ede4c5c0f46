//! CREATE, ALTER and DROP, as written.

use super::constraint::{Deferral, TableConstraint};
use super::expr::{Expr, SourceExpr, TypeName};
use super::function::{FunctionReference, RoutineWord};
use super::query::{NullsOrder, SortOrder, SourceQuery};
use super::sequence::{Identity, IdentityKind, SequenceOptions};
use super::{ColumnName, Ident, Statement, TableName};

/// `CREATE TABLE`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTable {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The table.
    pub name: TableName,
    /// The columns, in order.
    pub columns: Vec<ColumnDefinition>,
    /// The constraints of the table and, in their place, those of its columns: PRIMARY KEY,
    /// UNIQUE and CHECK of a column are moved here.
    pub constraints: Vec<TableConstraint>,
    /// The tables that it is LIKE, in order.
    pub likes: Vec<LikeTable>,
    /// `WITH (…)` and Phoenix's options after the column list, in order; names not yet checked.
    pub options: Vec<TableOption>,
    /// `SPLIT ON`: each point gives values of the leading key columns.
    pub splits: Vec<Vec<Expr>>,
    /// `ON COMMIT`, if written.
    pub on_commit: Option<OnCommit>,
    /// `UNLOGGED`
    pub unlogged: bool,
}

/// What COMMIT does to the rows of a temporary table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum OnCommit {
    /// Nothing.
    #[default]
    PreserveRows,
    /// They go.
    DeleteRows,
    /// The table goes.
    Drop,
}

/// `LIKE t [INCLUDING …] [EXCLUDING …]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LikeTable {
    /// The table or view.
    pub table: TableName,
    /// How many columns of the statement come before those of the table.
    pub after: usize,
    /// What comes with the columns.
    pub including: LikeParts,
}

/// What LIKE takes over beside names, types and NOT NULL of columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LikeParts {
    /// `DEFAULTS`
    pub defaults: bool,
    /// `CONSTRAINTS`: CHECK
    pub constraints: bool,
    /// `INDEXES`, and the constraints that they stand for.
    pub indexes: bool,
    /// `IDENTITY`
    pub identity: bool,
    /// `GENERATED`
    pub generated: bool,
    /// `COMMENTS`, of what is taken over.
    pub comments: bool,
    /// `COMPRESSION`
    pub compression: bool,
    /// `STORAGE`
    pub storage: bool,
}

impl CreateTable {
    /// Returns the definition of a table without columns.
    pub fn new(name: TableName) -> CreateTable {
        CreateTable {
            if_not_exists: false,
            name,
            columns: Vec::new(),
            constraints: Vec::new(),
            likes: Vec::new(),
            options: Vec::new(),
            splits: Vec::new(),
            on_commit: None,
            unlogged: false,
        }
    }
}

impl ColumnDefinition {
    /// Returns the definition of a column of which nothing else is said.
    pub fn new(name: ColumnName, type_name: TypeName) -> ColumnDefinition {
        ColumnDefinition {
            name,
            type_name,
            not_null: false,
            explicit_null: false,
            default: None,
            serial: false,
            identity: None,
            generated: None,
            compression: None,
            storage: None,
        }
    }
}

/// `CREATE TABLE … AS`, `SELECT … INTO` and `CREATE MATERIALIZED VIEW`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTableAs {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The table.
    pub name: TableName,
    /// Names of its first columns.
    pub columns: Vec<Ident>,
    /// `WITH (…)`, as of CREATE TABLE.
    pub options: Vec<TableOption>,
    /// Its columns and rows: a query.
    pub query: Box<Statement>,
    /// False for `WITH NO DATA`.
    pub with_data: bool,
    /// What is made.
    pub made: Made,
    /// `ON COMMIT`, if written.
    pub on_commit: Option<OnCommit>,
    /// `UNLOGGED`
    pub unlogged: bool,
}

/// What a query makes.
#[derive(Debug, Clone, PartialEq)]
pub enum Made {
    /// `CREATE TABLE … AS`
    Table,
    /// `SELECT … INTO`
    Into,
    /// `CREATE MATERIALIZED VIEW`, with the query as it was written.
    MaterializedView(Box<SourceQuery>),
}

impl Made {
    /// Returns what the statement is called.
    pub fn tag(&self) -> &'static str {
        match self {
            Made::Table => "CREATE TABLE AS",
            Made::Into => "SELECT INTO",
            Made::MaterializedView(_) => "CREATE MATERIALIZED VIEW",
        }
    }
}

/// `REFRESH MATERIALIZED VIEW`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Refresh {
    /// `CONCURRENTLY`
    pub concurrently: bool,
    /// The materialized view.
    pub name: TableName,
    /// False for `WITH NO DATA`.
    pub with_data: bool,
}

/// A column of CREATE TABLE.
#[derive(Debug, Clone, PartialEq)]
pub struct ColumnDefinition {
    /// Its name, with its family if written.
    pub name: ColumnName,
    /// Its type.
    pub type_name: TypeName,
    /// `NOT NULL`; false also if nothing was written.
    pub not_null: bool,
    /// `NULL` was written, which contradicts NOT NULL.
    pub explicit_null: bool,
    /// `DEFAULT …`
    pub default: Option<SourceExpr>,
    /// `serial` and its kin: a sequence gives the default.
    pub serial: bool,
    /// `GENERATED … AS IDENTITY`
    pub identity: Option<Identity>,
    /// `GENERATED ALWAYS AS (…) STORED`
    pub generated: Option<SourceExpr>,
    /// `COMPRESSION method`, which is only retained: `p` for pglz, `l` for lz4.
    pub compression: Option<char>,
    /// `STORAGE` that LIKE takes over, which is only retained.
    pub storage: Option<StorageKind>,
}

/// An option of a table or index: `ttl = 5`, or `f.ttl = 5` for one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOption {
    /// The family that it is for, if written.
    pub family: Option<Ident>,
    /// Its name, always in lower case.
    pub name: Ident,
    /// Its value; true if none was written, as in PostgreSQL.
    pub value: OptionValue,
}

/// The value of an option.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionValue {
    /// A number with its sign, as written.
    Number(String),
    /// A quoted string.
    String(String),
    /// `TRUE`, `FALSE`
    Boolean(bool),
    /// A bare word, in lower case.
    Word(String),
}

impl OptionValue {
    /// Returns it as the text of a setting's value.
    pub fn text(&self) -> String {
        match self {
            OptionValue::Number(text) | OptionValue::String(text) | OptionValue::Word(text) => {
                text.clone()
            }
            OptionValue::Boolean(value) => if *value { "on" } else { "off" }.to_owned(),
        }
    }
}

/// A kind of what DROP, RENAME and COMMENT name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ObjectKind {
    /// A table.
    Table,
    /// A view.
    View,
    /// A materialized view.
    MaterializedView,
    /// A sequence.
    Sequence,
    /// An index.
    Index,
    /// A schema.
    Schema,
}

impl ObjectKind {
    /// Returns the word for it in messages.
    pub fn name(self) -> &'static str {
        match self {
            ObjectKind::Table => "table",
            ObjectKind::View => "view",
            ObjectKind::MaterializedView => "materialized view",
            ObjectKind::Sequence => "sequence",
            ObjectKind::Index => "index",
            ObjectKind::Schema => "schema",
        }
    }
}

/// `DROP`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Drop {
    /// What is dropped.
    pub kind: ObjectKind,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// Their names; that of a schema has none before it.
    pub names: Vec<TableName>,
    /// Phoenix's `DROP INDEX i ON t`.
    pub table: Option<TableName>,
    /// `CASCADE`
    pub cascade: bool,
    /// `DROP INDEX CONCURRENTLY`
    pub concurrently: bool,
}

/// `REINDEX`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reindex {
    /// What is built anew.
    pub target: ReindexTarget,
    /// `CONCURRENTLY`: writers do not wait.
    pub concurrently: bool,
    /// `VERBOSE`: the client is told of each index.
    pub verbose: bool,
}

/// What REINDEX builds anew.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReindexTarget {
    /// `INDEX i`
    Index(TableName),
    /// `TABLE t`: its indexes.
    Table(TableName),
    /// `SCHEMA s`: those of its tables.
    Schema(Ident),
    /// `DATABASE d`: all indexes.
    Database(Ident),
    /// `SYSTEM d`: those of the catalog, which has none.
    System(Ident),
}

/// `COMMENT ON`
#[derive(Debug, Clone, PartialEq)]
pub struct CommentOn {
    /// What it is about.
    pub subject: CommentSubject,
    /// The text; `None` for NULL, which removes it.
    pub text: Option<String>,
}

/// What a comment is about.
#[derive(Debug, Clone, PartialEq)]
pub enum CommentSubject {
    /// A table, view, sequence, index or schema; the name of a schema has none before it.
    Object(ObjectKind, TableName),
    /// A type or domain.
    Type(TableName),
    /// A column of a table or view.
    Column(TableName, Ident),
    /// A constraint of a table.
    Constraint(Ident, TableName),
    /// A constraint of a domain.
    DomainConstraint(Ident, TableName),
    /// A function or procedure.
    Routine(RoutineWord, FunctionReference),
    /// A database.
    Database(Ident),
    /// An extension.
    Extension(Ident),
}

/// `TRUNCATE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncate {
    /// The tables.
    pub names: Vec<TableName>,
    /// `RESTART IDENTITY`
    pub restart_identity: bool,
    /// `CASCADE`: the tables that refer to them, too.
    pub cascade: bool,
}

/// `ALTER … RENAME TO`, `ALTER … SET SCHEMA`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rename {
    /// What the statement says that it is.
    pub kind: ObjectKind,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// Its name.
    pub name: TableName,
    /// What it gets.
    pub to: NewName,
}

/// What is new of a name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NewName {
    /// The name within the schema.
    Name(Ident),
    /// The schema.
    Schema(Ident),
    /// `OWNER TO`: the role that it belongs to.
    Owner(Role),
}

/// A role that something is to belong to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// The one of a name.
    Named(Ident),
    /// `CURRENT_USER`, `CURRENT_ROLE` and `SESSION_USER`: whom the session is of, and where that
    /// stands.
    Current(usize),
}

/// `CREATE SCHEMA`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateSchema {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Its name, if it is not its owner's.
    pub name: Option<Ident>,
    /// `AUTHORIZATION`: the role that it is to belong to.
    pub owner: Option<Role>,
    /// What is created in it, in the order in which that is done.
    pub elements: Vec<Statement>,
}

/// `DROP` of things of which there are never any: triggers, publications and so on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropNothing {
    /// `TRIGGER`, in lower case.
    pub kind: String,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// What is named.
    pub names: Vec<Ident>,
    /// The table that they would be on, where the statement names one.
    pub table: Option<TableName>,
}

/// `CREATE EXTENSION`, `ALTER EXTENSION … UPDATE` and `DROP EXTENSION`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtensionStatement {
    /// `CREATE EXTENSION`. CASCADE would create what it depends on; none depends on another.
    Create {
        /// `IF NOT EXISTS`
        if_not_exists: bool,
        /// Its name.
        name: Ident,
        /// `SCHEMA`
        schema: Option<Ident>,
        /// `VERSION`
        version: Option<String>,
    },
    /// `ALTER EXTENSION … UPDATE [TO version]`
    Update {
        /// Its name.
        name: Ident,
        /// The version.
        version: Option<String>,
    },
    /// `DROP EXTENSION`. Nothing depends on one, so that CASCADE drops the same as RESTRICT.
    Drop {
        /// `IF EXISTS`
        if_exists: bool,
        /// Their names.
        names: Vec<Ident>,
    },
}

/// `ALTER SCHEMA … RENAME TO`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenameSchema {
    /// Its name.
    pub name: Ident,
    /// Its name from now on.
    pub new_name: Ident,
}

/// `CREATE VIEW`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateView {
    /// `OR REPLACE`
    pub or_replace: bool,
    /// The view.
    pub name: TableName,
    /// Names of its first columns.
    pub columns: Vec<Ident>,
    /// Its rows.
    pub query: SourceQuery,
    /// `WITH CHECK OPTION`
    pub check_option: Option<CheckOption>,
}

/// Which conditions rows must meet that are written through a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum CheckOption {
    /// `LOCAL`: its own, and those of views below it that have the option, too.
    Local,
    /// `CASCADED`: its own, and those of all views below it.
    Cascaded,
}

/// `CREATE INDEX`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateIndex {
    /// `UNIQUE`
    pub unique: bool,
    /// `CONCURRENTLY`: writers of the table do not wait.
    pub concurrently: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The index; to be chosen if not written. It lives in the table's schema.
    pub name: Option<Ident>,
    /// The table.
    pub table: TableName,
    /// What is indexed, at least one.
    pub keys: Vec<IndexKey>,
    /// `INCLUDE (…)`
    pub include: Vec<ColumnName>,
    /// `NULLS NOT DISTINCT`
    pub nulls_not_distinct: bool,
    /// `WHERE …`
    pub predicate: Option<SourceExpr>,
    /// Options, as of a table.
    pub options: Vec<TableOption>,
    /// `SPLIT ON`
    pub splits: Vec<Vec<Expr>>,
    /// `USING hash`
    pub is_hash: bool,
}

/// A key of an index.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexKey {
    /// A column or an expression, with its text.
    pub source: SourceExpr,
    /// `text_pattern_ops`, if written.
    pub operator_class: Option<Ident>,
    /// Its direction.
    pub order: SortOrder,
    /// Where NULLs go, if written.
    pub nulls: Option<NullsOrder>,
}

/// `ALTER INDEX i SPLIT …`, `ALTER INDEX i MERGE REGIONS …`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterIndex {
    /// The index.
    pub name: TableName,
    /// What is to be done with its regions.
    pub action: RegionAction,
}

/// `ALTER TABLE`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterTable {
    /// What the statement says that it is.
    pub kind: ObjectKind,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The table.
    pub name: TableName,
    /// What is to be done with it.
    pub action: AlterTableAction,
}

/// A change of the columns or constraints of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum TableChange {
    /// `ADD COLUMN`
    AddColumn {
        /// `IF NOT EXISTS`
        if_not_exists: bool,
        /// The column.
        column: Box<ColumnDefinition>,
        /// Its constraints.
        constraints: Vec<TableConstraint>,
    },
    /// `DROP COLUMN`
    DropColumn {
        /// `IF EXISTS`
        if_exists: bool,
        /// The column.
        column: Ident,
        /// `CASCADE`
        cascade: bool,
    },
    /// `RENAME COLUMN`
    RenameColumn {
        /// The column.
        column: Ident,
        /// Its name from now on.
        to: Ident,
    },
    /// `ALTER COLUMN c TYPE … [USING …]`
    ColumnType {
        /// The column.
        column: Ident,
        /// Its type from now on.
        type_name: TypeName,
        /// What makes the new value of a row.
        using: Option<SourceExpr>,
    },
    /// `ALTER COLUMN c SET DEFAULT …`, `ALTER COLUMN c DROP DEFAULT`
    ColumnDefault {
        /// The column.
        column: Ident,
        /// Its new default, if it has one.
        default: Option<SourceExpr>,
    },
    /// `ALTER COLUMN c DROP EXPRESSION`
    DropExpression {
        /// `IF EXISTS`
        if_exists: bool,
        /// The column.
        column: Ident,
    },
    /// `ALTER COLUMN c ADD GENERATED … AS IDENTITY`
    AddIdentity {
        /// The column.
        column: Ident,
        /// What it is to be.
        identity: Identity,
    },
    /// `ALTER COLUMN c SET GENERATED …`, `SET INCREMENT …`, `RESTART`
    AlterIdentity {
        /// The column.
        column: Ident,
        /// Who may give it a value, if that changes.
        kind: Option<IdentityKind>,
        /// What changes of its sequence.
        options: SequenceOptions,
    },
    /// `ALTER COLUMN c DROP IDENTITY`
    DropIdentity {
        /// `IF EXISTS`
        if_exists: bool,
        /// The column.
        column: Ident,
    },
    /// `ALTER COLUMN c SET STATISTICS …` and what else is only retained.
    ColumnAttribute {
        /// The column.
        column: Ident,
        /// What is to be retained.
        attribute: ColumnAttribute,
    },
    /// `CLUSTER ON`, `REPLICA IDENTITY …` and what else is only retained.
    TableAttribute(TableAttribute),
    /// `ALTER COLUMN c SET NOT NULL`
    SetNotNull(Ident),
    /// `ALTER COLUMN c DROP NOT NULL`
    DropNotNull(Ident),
    /// `ADD CONSTRAINT`
    AddConstraint(TableConstraint),
    /// `ADD [CONSTRAINT name] {UNIQUE | PRIMARY KEY} USING INDEX index`
    AddIndexConstraint {
        /// Its name, if not the index's.
        name: Option<Ident>,
        /// The index.
        index: Ident,
        /// PRIMARY KEY.
        is_primary: bool,
        /// When it is checked.
        deferral: Deferral,
    },
    /// `ALTER CONSTRAINT`
    AlterConstraint {
        /// The constraint.
        constraint: Ident,
        /// When it is checked from now on.
        deferral: Deferral,
    },
    /// `VALIDATE CONSTRAINT`
    ValidateConstraint(Ident),
    /// `RENAME CONSTRAINT`
    RenameConstraint {
        /// The constraint.
        constraint: Ident,
        /// Its name from now on.
        to: Ident,
    },
    /// `DROP CONSTRAINT`
    DropConstraint {
        /// `IF EXISTS`
        if_exists: bool,
        /// The constraint.
        constraint: Ident,
        /// `CASCADE`
        cascade: bool,
    },
}

/// An attribute of a column that is retained and has no effect.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ColumnAttribute {
    /// `SET STATISTICS n`; -1 for the default.
    Statistics(i32),
    /// `SET STORAGE kind`
    Storage(StorageKind),
    /// `SET COMPRESSION`: `p`, `l`, or none for the default.
    Compression(Option<char>),
    /// `SET (name = value)`
    Set(Vec<TableOption>),
    /// `RESET (name)`
    Reset(Vec<Ident>),
}

/// How PostgreSQL keeps long values of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum StorageKind {
    /// `PLAIN`
    Plain,
    /// `EXTERNAL`
    External,
    /// `EXTENDED`
    Extended,
    /// `MAIN`
    Main,
}

/// An attribute of a table that is retained and has no effect, but for that of UNLOGGED.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TableAttribute {
    /// `CLUSTER ON index`, `SET WITHOUT CLUSTER`
    Cluster(Option<Ident>),
    /// `REPLICA IDENTITY DEFAULT`
    ReplicaDefault,
    /// `REPLICA IDENTITY FULL`
    ReplicaFull,
    /// `REPLICA IDENTITY NOTHING`
    ReplicaNothing,
    /// `REPLICA IDENTITY USING INDEX index`
    ReplicaIndex(Ident),
    /// `SET UNLOGGED`, `SET LOGGED`
    Unlogged(bool),
    /// `ENABLE TRIGGER ALL`, `DISABLE TRIGGER ALL`
    AllTriggers {
        /// ENABLE.
        enabled: bool,
    },
    /// `ENABLE TRIGGER name`, `DISABLE TRIGGER name`
    Trigger(Ident),
    /// What says what is so anyway: `SET WITHOUT OIDS`, `SET TABLESPACE pg_default`.
    Unchanged,
}

/// What ALTER TABLE does.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterTableAction {
    /// `SPLIT …`, `MERGE REGIONS …`
    Regions(RegionAction),
    /// Changes of columns and constraints, as written.
    Changes(Vec<TableChange>),
    /// `ATTACH COPROCESSOR`, `DETACH COPROCESSOR`
    Coprocessor(AlterCoprocessor),
    /// `ALTER VIEW … SET (check_option = …)`, `RESET (check_option)`
    CheckOption(Option<CheckOption>),
}

/// What is done with the regions of a table or an index.
#[derive(Debug, Clone, PartialEq)]
pub enum RegionAction {
    /// `SPLIT [REGION n] [AT (…), …]`
    Split {
        /// The region to be split; all, if none is named.
        region: Option<u64>,
        /// Values of the leading key columns, for each place; none for the middle.
        points: Vec<Vec<Expr>>,
    },
    /// `MERGE REGIONS n, m, …`
    MergeRegions(Vec<u64>),
}

/// What ALTER TABLE does with the coprocessors of a table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AlterCoprocessor {
    /// `ATTACH COPROCESSOR`
    Attach(AttachCoprocessor),
    /// `DETACH COPROCESSOR name`
    Detach(Ident),
    /// `RESUME COPROCESSOR name`
    Resume(Ident),
}

/// `ATTACH COPROCESSOR name [AS alias] [PRIORITY n] [WITH (…)]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AttachCoprocessor {
    /// Which one.
    pub coprocessor: Ident,
    /// What it is called on the table, if not by its own name.
    pub alias: Option<Ident>,
    /// Where it stands in the chain; smaller runs first.
    pub priority: Option<i32>,
    /// Its arguments; names not yet checked.
    pub arguments: Vec<TableOption>,
}

/// `ALTER TABLE … SET | RESET (…)`, `ALTER ROLE … SET | RESET …`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterQuota {
    /// Whose quota is changed.
    pub of: QuotaOwner,
    /// What is changed.
    pub change: QuotaChange,
}

/// Who has a quota.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuotaOwner {
    /// A table.
    Table(TableName),
    /// An index, of which storage parameters are changed.
    Index(TableName),
    /// A role.
    Role(Ident),
}

/// What is changed of a quota; names not yet checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum QuotaChange {
    /// `SET (name = value, …)`, or of a role `SET name = value`
    Set(Vec<TableOption>),
    /// `RESET (name, …)`, or of a role `RESET name`
    Reset(Vec<Ident>),
    /// Of a role: `RESET ALL`
    ResetAll,
}
