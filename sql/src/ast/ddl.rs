//! Syntax tree of CREATE, ALTER and DROP.

use super::constraint::{Deferral, TableConstraint};
use super::expr::{Expr, SourceExpr, TypeName};
use super::object::{ObjectKind, ObjectReference};
use super::policy::RowSecurityChange;
use super::query::{NullsOrder, QueryExpr, SortOrder, SourceQuery};
use super::role::Role;
use super::sequence::{Identity, IdentityKind, SequenceOptions};
use super::trigger::TriggerFiring;
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
    /// The constraints of the table and of its columns, in the order of the text: the parser moves
    /// PRIMARY KEY, UNIQUE and CHECK of a column here.
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

/// The action of COMMIT on a temporary table.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum OnCommit {
    /// `PRESERVE ROWS`
    #[default]
    PreserveRows,
    /// `DELETE ROWS`
    DeleteRows,
    /// `DROP`
    Drop,
}

/// `LIKE t [INCLUDING …] [EXCLUDING …]`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LikeTable {
    /// The table or view.
    pub table: TableName,
    /// The number of columns of the statement before those of the table.
    pub after: usize,
    /// The properties that are copied besides the columns.
    pub including: LikeOptions,
}

/// The properties that LIKE copies besides names, types and NOT NULL of columns.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct LikeOptions {
    /// `DEFAULTS`
    pub defaults: bool,
    /// `CONSTRAINTS`: CHECK
    pub constraints: bool,
    /// `INDEXES`, with the constraints that own them.
    pub indexes: bool,
    /// `IDENTITY`
    pub identity: bool,
    /// `GENERATED`
    pub generated: bool,
    /// `COMMENTS`, of the objects that are copied.
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
    /// Returns the definition of a column with only a name and a type.
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
    /// The query that produces its columns and rows.
    pub query: Box<Statement>,
    /// False for `WITH NO DATA`.
    pub with_data: bool,
    /// The kind of object that is created.
    pub made: CreateAsKind,
    /// `ON COMMIT`, if written.
    pub on_commit: Option<OnCommit>,
    /// `UNLOGGED`
    pub unlogged: bool,
}

/// The kind of object that a query creates.
#[derive(Debug, Clone, PartialEq)]
pub enum CreateAsKind {
    /// `CREATE TABLE … AS`
    Table,
    /// `SELECT … INTO`
    Into,
    /// `CREATE MATERIALIZED VIEW`, with the query as it was written.
    MaterializedView(Box<SourceQuery>),
}

impl CreateAsKind {
    /// Returns the command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            CreateAsKind::Table => "CREATE TABLE AS",
            CreateAsKind::Into => "SELECT INTO",
            CreateAsKind::MaterializedView(_) => "CREATE MATERIALIZED VIEW",
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
    /// `serial` and its variants: a sequence provides the default.
    pub serial: bool,
    /// `GENERATED … AS IDENTITY`
    pub identity: Option<Identity>,
    /// `GENERATED ALWAYS AS (…) STORED`
    pub generated: Option<SourceExpr>,
    /// `COMPRESSION method`, stored without effect: `p` for pglz, `l` for lz4.
    pub compression: Option<char>,
    /// The `STORAGE` that LIKE copies, stored without effect.
    pub storage: Option<StorageKind>,
}

/// A storage option of a table or index: `ttl = 5`, or `f.ttl = 5` for one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TableOption {
    /// The family that it is for, if written.
    pub family: Option<Ident>,
    /// Its name, always in lower case.
    pub name: Ident,
    /// Its value; true if none was written, as in PostgreSQL.
    pub value: OptionValue,
}

/// The name of a storage option of a table: `ttl`, or `f.ttl` for one family.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OptionName {
    /// The family that it is for, if written.
    pub family: Option<Ident>,
    /// Its name, always in lower case.
    pub name: Ident,
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
    /// Returns the text of the value as a setting would have it.
    pub fn text(&self) -> String {
        match self {
            OptionValue::Number(text) | OptionValue::String(text) | OptionValue::Word(text) => {
                text.clone()
            }
            OptionValue::Boolean(value) => if *value { "on" } else { "off" }.to_owned(),
        }
    }
}

/// `DROP`
#[derive(Debug, Clone, PartialEq)]
pub struct Drop {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The objects, all of one kind.
    pub objects: Vec<ObjectReference>,
    /// `CASCADE`
    pub cascade: bool,
    /// `DROP INDEX CONCURRENTLY`
    pub concurrently: bool,
}

/// `REINDEX`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reindex {
    /// The indexes to rebuild.
    pub target: ReindexTarget,
    /// `CONCURRENTLY`: writers are not blocked.
    pub concurrently: bool,
    /// `VERBOSE`: a message for each index.
    pub verbose: bool,
}

/// The indexes that REINDEX rebuilds.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReindexTarget {
    /// `INDEX i`
    Index(TableName),
    /// `TABLE t`: its indexes.
    Table(TableName),
    /// `SCHEMA s`: the indexes of its tables.
    Schema(Ident),
    /// `DATABASE d`: all indexes.
    Database(Ident),
    /// `SYSTEM d`: the indexes of the catalog, which has none.
    System(Ident),
}

/// `CHECK INDEX`, `CHECK TABLE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Check {
    /// The indexes to compare with their table.
    pub target: CheckTarget,
    /// `REPAIR`: the differences are corrected.
    pub repair: bool,
    /// `LIMIT n`: the number of differences to list.
    pub limit: Option<usize>,
}

/// `CHECK STORE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CheckStore {
    /// The table whose store files are verified, with those of its indexes; otherwise all.
    pub table: Option<TableName>,
    /// `LIMIT n`: the number of damaged files to list.
    pub limit: Option<usize>,
}

/// The indexes that CHECK compares with their table.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckTarget {
    /// `INDEX i [ON t]`
    Index(TableName, Option<TableName>),
    /// `TABLE t`: its indexes.
    Table(TableName),
}

/// `COMMENT ON`
#[derive(Debug, Clone, PartialEq)]
pub struct CommentOn {
    /// The object.
    pub subject: CommentSubject,
    /// The text; `None` for NULL, which removes it.
    pub text: Option<String>,
}

/// The object of a comment.
#[derive(Debug, Clone, PartialEq)]
pub enum CommentSubject {
    /// A whole object.
    Object(ObjectReference),
    /// A column of a table or view: `t.c`, `s.t.c`, `t.f.c` or `s.t.f.c`.
    Column(Vec<Ident>),
    /// A constraint of a table.
    Constraint(Ident, TableName),
    /// A trigger of a table or view.
    Trigger(Ident, TableName),
    /// A policy of a table.
    Policy(Ident, TableName),
    /// A constraint of a domain.
    DomainConstraint(Ident, TableName),
    /// A database.
    Database(Ident),
}

/// `TRUNCATE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Truncate {
    /// The tables.
    pub names: Vec<TableName>,
    /// `RESTART IDENTITY`
    pub restart_identity: bool,
    /// `CASCADE`: the tables with foreign keys to them, too.
    pub cascade: bool,
}

/// `ALTER … RENAME TO`, `ALTER … SET SCHEMA`, `ALTER … OWNER TO`
#[derive(Debug, Clone, PartialEq)]
pub struct Rename {
    /// The object.
    pub object: ObjectReference,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The new name, schema or owner.
    pub to: RenameTarget,
}

/// The new name, schema or owner of an object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RenameTarget {
    /// The name within the schema.
    Name(Ident),
    /// The schema.
    Schema(Ident),
    /// `OWNER TO`: the new owner.
    Owner(Role),
}

/// `CREATE SCHEMA`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateSchema {
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Its name; if omitted, the name of its owner.
    pub name: Option<Ident>,
    /// `AUTHORIZATION`: its owner.
    pub owner: Option<Role>,
    /// The statements that create its objects, in their order of execution.
    pub elements: Vec<Statement>,
}

/// `DROP` of object kinds that are not supported, so that none exists: rules, publications and so
/// on.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropUnsupported {
    /// `RULE`, in lower case.
    pub kind: String,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The names.
    pub names: Vec<Ident>,
    /// The table of the objects, where the statement names one.
    pub table: Option<TableName>,
}

/// `CREATE EXTENSION` and `ALTER EXTENSION … UPDATE`
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExtensionStatement {
    /// `CREATE EXTENSION`. CASCADE has no effect, because no extension depends on another.
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
}

/// `CREATE VIEW`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateView {
    /// `OR REPLACE`
    pub or_replace: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// The view.
    pub name: TableName,
    /// Names of its first columns.
    pub columns: Vec<Ident>,
    /// The query that defines its rows.
    pub query: SourceQuery,
    /// Its options; `WITH CHECK OPTION` is one of them.
    pub options: Vec<ViewOption>,
}

/// An option of a view.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ViewOption {
    /// `check_option`, `WITH CHECK OPTION`; `None` after RESET.
    Check(Option<CheckOption>),
    /// `security_invoker`: the relations of the query are read with the privileges of the current
    /// role, not of the owner of the view.
    SecurityInvoker(Option<bool>),
    /// `security_barrier`: conditions of statements do not reveal rows that the view hides.
    SecurityBarrier(Option<bool>),
}

/// The conditions that rows written through a view must meet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckOption {
    /// `LOCAL`: its own, and those of underlying views that have the option, too.
    Local,
    /// `CASCADED`: its own, and those of all underlying views.
    Cascaded,
}

impl CheckOption {
    /// Returns its word.
    pub fn word(self) -> &'static str {
        match self {
            CheckOption::Local => "LOCAL",
            CheckOption::Cascaded => "CASCADED",
        }
    }
}

/// `CREATE INDEX`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateIndex {
    /// `UNIQUE`
    pub unique: bool,
    /// `CONCURRENTLY`: writers of the table are not blocked.
    pub concurrently: bool,
    /// `ASYNC`: built by the server, after the commit.
    pub is_async: bool,
    /// `LOCAL`: its entries are in the regions of their rows.
    pub local: bool,
    /// `IF NOT EXISTS`
    pub if_not_exists: bool,
    /// Its name; chosen automatically if omitted. Its schema is the table's.
    pub name: Option<Ident>,
    /// The table.
    pub table: TableName,
    /// The keys, at least one.
    pub keys: Vec<IndexKey>,
    /// `INCLUDE (…)`
    pub include: Vec<ColumnName>,
    /// `NULLS NOT DISTINCT`
    pub nulls_not_distinct: bool,
    /// `WHERE …`
    pub predicate: Option<SourceExpr>,
    /// Storage options, as of a table.
    pub options: Vec<TableOption>,
    /// `SPLIT ON`
    pub splits: Vec<Vec<Expr>>,
    /// `USING …`
    pub method: IndexMethod,
}

/// The access method of an index.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum IndexMethod {
    /// `btree`
    #[default]
    Btree,
    /// `hash`, which is ordered here.
    Hash,
    /// `gin`: an inverted index.
    Gin,
}

impl IndexMethod {
    /// All of them.
    pub const ALL: [IndexMethod; 3] = [IndexMethod::Btree, IndexMethod::Hash, IndexMethod::Gin];

    /// Returns the name.
    pub fn name(self) -> &'static str {
        match self {
            IndexMethod::Btree => "btree",
            IndexMethod::Hash => "hash",
            IndexMethod::Gin => "gin",
        }
    }
}

/// A key of an index.
#[derive(Debug, Clone, PartialEq)]
pub struct IndexKey {
    /// A column or an expression, with its text.
    pub source: SourceExpr,
    /// `text_pattern_ops`, if written.
    pub operator_class: Option<Ident>,
    /// Its direction, if written.
    pub order: Option<SortOrder>,
    /// The placement of NULLs, if written.
    pub nulls: Option<NullsOrder>,
}

/// `ALTER INDEX i [ON t] …`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterIndex {
    /// The index.
    pub name: TableName,
    /// Its table, if written.
    pub table: Option<TableName>,
    /// The change.
    pub action: AlterIndexAction,
}

/// Change of an index, other than of its name and options.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterIndexAction {
    /// `SPLIT …`, `MERGE REGIONS …`, `NORMALIZE`
    Regions(RegionAction),
    /// `USABLE`, `ACTIVE`, `UNUSABLE`, `DISABLE`
    Restrict(Option<IndexRestriction>),
    /// `CONSISTENCY = { STRONG | EVENTUAL }`
    SetConsistency {
        /// `EVENTUAL`
        eventual: bool,
    },
    /// `REBUILD [ASYNC]`
    Rebuild {
        /// `ASYNC`: the server rebuilds it after the commit.
        is_async: bool,
    },
}

/// Restriction of the use of an index.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum IndexRestriction {
    /// Maintained, and not used by queries.
    Unusable,
    /// Neither maintained nor used. It must be rebuilt.
    Disabled,
}

/// `ALTER TABLE`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterTable {
    /// The kind that the statement names.
    pub kind: ObjectKind,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The table.
    pub name: TableName,
    /// The action.
    pub action: AlterTableAction,
}

/// A change of the columns or constraints of a table.
#[derive(Debug, Clone, PartialEq)]
pub enum TableChange {
    /// Phoenix's options after the columns of ADD.
    SetOptions(Vec<TableOption>),
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
        column: ColumnName,
        /// `CASCADE`
        cascade: bool,
    },
    /// `ADD FAMILY f (…)`
    AddFamily {
        /// `IF NOT EXISTS`
        if_not_exists: bool,
        /// The column family.
        family: Ident,
        /// Its options.
        options: Vec<TableOption>,
    },
    /// `DROP FAMILY`
    DropFamily {
        /// `IF EXISTS`
        if_exists: bool,
        /// The column family.
        family: Ident,
        /// `CASCADE`
        cascade: bool,
    },
    /// `RENAME COLUMN`
    RenameColumn {
        /// The column.
        column: ColumnName,
        /// Its new name.
        to: Ident,
    },
    /// `ALTER COLUMN c TYPE … [USING …]`
    ColumnType {
        /// The column.
        column: ColumnName,
        /// Its new type.
        type_name: TypeName,
        /// The expression that computes the new value of a row.
        using: Option<SourceExpr>,
    },
    /// `ALTER COLUMN c SET DEFAULT …`, `ALTER COLUMN c DROP DEFAULT`
    ColumnDefault {
        /// The column.
        column: ColumnName,
        /// Its new default, if it has one.
        default: Option<SourceExpr>,
    },
    /// `ALTER COLUMN c DROP EXPRESSION`
    DropExpression {
        /// `IF EXISTS`
        if_exists: bool,
        /// The column.
        column: ColumnName,
    },
    /// `ALTER COLUMN c ADD GENERATED … AS IDENTITY`
    AddIdentity {
        /// The column.
        column: ColumnName,
        /// The kind of the identity column, and its sequence.
        identity: Identity,
    },
    /// `ALTER COLUMN c SET GENERATED …`, `SET INCREMENT …`, `RESTART`
    AlterIdentity {
        /// The column.
        column: ColumnName,
        /// ALWAYS or BY DEFAULT, if that changes.
        kind: Option<IdentityKind>,
        /// The changed options of its sequence.
        options: SequenceOptions,
    },
    /// `ALTER COLUMN c DROP IDENTITY`
    DropIdentity {
        /// `IF EXISTS`
        if_exists: bool,
        /// The column.
        column: ColumnName,
    },
    /// `ALTER COLUMN c SET STATISTICS …` and other attributes that are stored without effect.
    ColumnAttribute {
        /// The column.
        column: ColumnName,
        /// The attribute.
        attribute: ColumnAttribute,
    },
    /// `CLUSTER ON`, `REPLICA IDENTITY …` and other attributes that are stored without effect.
    TableAttribute(TableAttribute),
    /// `ALTER COLUMN c SET NOT NULL`
    SetNotNull(ColumnName),
    /// `ALTER COLUMN c DROP NOT NULL`
    DropNotNull(ColumnName),
    /// `ADD CONSTRAINT`
    AddConstraint(TableConstraint),
    /// `ADD [CONSTRAINT name] {UNIQUE | PRIMARY KEY} USING INDEX index`
    AddIndexConstraint {
        /// Its name; if omitted, the name of the index.
        name: Option<Ident>,
        /// The index.
        index: Ident,
        /// PRIMARY KEY.
        is_primary: bool,
        /// Its deferral mode.
        deferral: Deferral,
    },
    /// `ALTER CONSTRAINT`
    AlterConstraint {
        /// The constraint.
        constraint: Ident,
        /// Its new deferral mode.
        deferral: Deferral,
    },
    /// `VALIDATE CONSTRAINT`
    ValidateConstraint(Ident),
    /// `RENAME CONSTRAINT`
    RenameConstraint {
        /// The constraint.
        constraint: Ident,
        /// Its new name.
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

impl TableChange {
    /// Returns the name of the existing column that it changes.
    pub fn column_mut(&mut self) -> Option<&mut ColumnName> {
        match self {
            TableChange::DropColumn { column, .. }
            | TableChange::RenameColumn { column, .. }
            | TableChange::ColumnType { column, .. }
            | TableChange::ColumnDefault { column, .. }
            | TableChange::DropExpression { column, .. }
            | TableChange::AddIdentity { column, .. }
            | TableChange::AlterIdentity { column, .. }
            | TableChange::DropIdentity { column, .. }
            | TableChange::ColumnAttribute { column, .. }
            | TableChange::SetNotNull(column)
            | TableChange::DropNotNull(column) => Some(column),
            TableChange::AddColumn { .. }
            | TableChange::AddFamily { .. }
            | TableChange::DropFamily { .. }
            | TableChange::TableAttribute(_)
            | TableChange::AddConstraint(_)
            | TableChange::AddIndexConstraint { .. }
            | TableChange::AlterConstraint { .. }
            | TableChange::SetOptions(_)
            | TableChange::ValidateConstraint(_)
            | TableChange::RenameConstraint { .. }
            | TableChange::DropConstraint { .. } => None,
        }
    }
}

/// An attribute of a column that is stored without effect.
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

/// PostgreSQL's TOAST strategy of a column.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
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

/// An attribute of a table that is stored without effect, except UNLOGGED.
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
    /// `ENABLE TRIGGER`, `DISABLE TRIGGER`
    Triggers(TriggerSelection, TriggerFiring),
    /// `ENABLE ROW LEVEL SECURITY` and related clauses.
    RowSecurity(RowSecurityChange),
    /// A clause that requests the only supported state: `SET WITHOUT OIDS`, `SET TABLESPACE
    /// pg_default`.
    Unchanged,
}

/// The triggers that `ENABLE TRIGGER` and `DISABLE TRIGGER` change.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum TriggerSelection {
    /// `ALL`: also those of foreign keys.
    All,
    /// `USER`
    User,
    /// The trigger of a name.
    Named(Ident),
}

/// The action of ALTER TABLE.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterTableAction {
    /// `SPLIT …`, `MERGE REGIONS …`
    Regions(RegionAction),
    /// Changes of columns and constraints, in the order of the text.
    Changes(Vec<TableChange>),
    /// `ATTACH COPROCESSOR`, `DETACH COPROCESSOR`
    Coprocessor(AlterCoprocessor),
    /// `ALTER VIEW … SET (option = …)`, `RESET (option)`
    ViewOptions(Vec<ViewOption>),
}

/// A change of the regions of a table or an index.
#[derive(Debug, Clone, PartialEq)]
pub enum RegionAction {
    /// `SPLIT [REGION n] [AT (…), …]`
    Split {
        /// The number of the region; all regions if omitted.
        region: Option<u64>,
        /// The split points; the middle if omitted.
        points: Option<SplitPoints>,
    },
    /// `MERGE REGIONS n, m, …`
    MergeRegions(Vec<u64>),
    /// `NORMALIZE`
    Normalize,
}

/// The split points of `SPLIT AT`: values of the leading key columns.
#[derive(Debug, Clone, PartialEq)]
pub enum SplitPoints {
    /// `(…), …`
    List(Vec<Vec<Expr>>),
    /// `(SELECT …)`: one point for each row.
    Query(Box<QueryExpr>),
}

/// The action of ALTER TABLE on the coprocessors of a table.
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
    /// The coprocessor.
    pub coprocessor: Ident,
    /// Its name on the table, if not its own.
    pub alias: Option<Ident>,
    /// Its priority in the chain; smaller runs first.
    pub priority: Option<i32>,
    /// Its arguments; names not yet checked.
    pub arguments: Vec<TableOption>,
}

/// `ALTER TABLE … SET | RESET (…)`, `ALTER ROLE … SET | RESET …`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AlterOptions {
    /// The table, index or role.
    pub of: OptionsOwner,
    /// True with IF EXISTS, for a table or an index.
    pub if_exists: bool,
    /// The change.
    pub change: OptionsChange,
}

/// The object whose options are changed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionsOwner {
    /// A table.
    Table(TableName),
    /// An index.
    Index(TableName),
    /// A schema, which has quotas only.
    Schema(Ident),
}

/// The change of options; names not yet checked.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OptionsChange {
    /// `SET (name = value, …)`, or of a role `SET name = value`
    Set(Vec<TableOption>),
    /// `RESET (name, …)`, or of a role `RESET name`
    Reset(Vec<OptionName>),
    /// Of a role: `RESET ALL`
    ResetAll,
}
