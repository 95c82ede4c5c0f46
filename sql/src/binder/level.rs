//! The state of the binder: one level for each enclosing query.
//!
//! Expressions of a level are bound over its base row, the row of FROM. A value that a plan node
//! has to compute first is a placeholder column, with an index beyond every real one:
//!
//! * [`AGGREGATE`] + n: the nth aggregate of the level;
//! * [`GROUPING`] + n: the nth call of GROUPING of the level;
//! * [`WINDOW`] + n: the nth window function call of the level;
//! * [`SET`] + n: the value of the nth set-returning function call of the level;
//! * [`SUBQUERY`] + n: the value of the nth subquery of the level;
//! * [`SUBQUERY_COLUMN`] + n, in a comparison of IN, ANY or ALL: column n of the subquery.
//!
//! [`Rows::place`](crate::binder::rows) replaces them by real columns.

use std::collections::BTreeSet;
use std::sync::Arc;

use ahash::AHashMap;
use types::DataType;
use types::aggregate::Aggregate;
use types::expr::Expr;

use crate::ast::{self, FrameUnits, NamedWindow};
use crate::binder::cte_scope::CteEntry;
use crate::binder::function_body::ParameterFrame;
use crate::binder::parameters::Parameters;
use crate::binder::permissions::request::PermissionRequests;
use crate::binder::resolution_notes::ResolutionNotes;
use crate::binder::scope::Scope;
use crate::binder::stored_literals::LiteralSettler;
use crate::binder::system::{SessionConstants, SystemCatalog};
use crate::binder::variables::{VariableScope, VariableUse};
use crate::catalog::Catalog;
use crate::catalog::name::SearchPath;
use crate::catalog::record::ViewRelation;
use crate::catalog::table::Table;
use crate::catalog::view::View;
use crate::error::{Error, Result, sqlstate};
use crate::logical::{
    ApplyKind, CurrentRow, CursorTable, Logical, Origin, SetFunction, SortKey, WindowFunction,
};

/// The first placeholder index of aggregates.
pub(super) const AGGREGATE: usize = 1 << 40;
/// The first placeholder index of GROUPING calls.
pub(super) const GROUPING: usize = AGGREGATE + (1 << 38);
/// The first placeholder index of window function calls.
pub(super) const WINDOW: usize = AGGREGATE + (1 << 39);
/// The first placeholder index of set-returning function calls.
pub(super) const SET: usize = WINDOW + (1 << 38);
/// The first placeholder index of subqueries.
pub(super) const SUBQUERY: usize = 1 << 41;
/// The first placeholder index of columns of a compared subquery.
pub(super) const SUBQUERY_COLUMN: usize = 1 << 42;

/// The clause of an expression. It determines which constructs are allowed, and the wording of
/// errors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Clause {
    Select,
    Where,
    Having,
    OrderBy,
    GroupBy,
    DistinctOn,
    JoinOn,
    Limit,
    Offset,
    Values,
    MergeWhen,
    /// INSERT … VALUES with a single row.
    ValuesRow,
    Set,
    Returning,
    FunctionInFrom,
    /// A LATERAL query in FROM.
    QueryInFrom,
    Call,
    SystemTime,
    /// `WITH TIMESTAMP` and similar of UPSERT and DELETE.
    CellAttributes,
    Filter,
    /// USING or WITH CHECK of a policy.
    Policy,
    /// An offset of a window frame.
    Frame(FrameUnits),
    /// A standalone expression, without an enclosing query.
    Table(TableClause),
}

/// The kind of a standalone expression, most of which are part of an object's definition.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TableClause {
    /// A CHECK, of a table or a domain.
    Check,
    /// A DEFAULT, of a column, a domain or a parameter.
    Default,
    /// The expression of a generated column.
    Generation,
    /// A key of an index.
    IndexExpression,
    /// The predicate of a partial index.
    IndexPredicate,
    /// USING of ALTER COLUMN … TYPE.
    Transform,
    /// An argument of EXECUTE.
    ExecuteParameter,
    /// A value of SPLIT ON.
    SplitValue,
    /// A mark value of CYCLE.
    CycleMark,
    /// The default of a function's parameter.
    Parameter,
    /// WHERE of COPY FROM.
    CopyWhere,
    /// WHEN of a trigger.
    TriggerCondition,
    /// An expression that the catalog stores; it was checked at creation.
    Catalog,
}

impl TableClause {
    /// Returns the clause's name in PostgreSQL's messages.
    fn singular(self) -> &'static str {
        match self {
            TableClause::Check => "check constraint",
            TableClause::Default | TableClause::Parameter => "DEFAULT expression",
            TableClause::Generation => "column generation expression",
            TableClause::IndexExpression => "index expression",
            TableClause::IndexPredicate => "index predicate",
            TableClause::Transform => "transform expression",
            TableClause::ExecuteParameter => "EXECUTE parameter",
            TableClause::SplitValue => "SPLIT ON value",
            TableClause::CycleMark => "CYCLE mark value",
            TableClause::CopyWhere => "COPY FROM WHERE condition",
            TableClause::TriggerCondition => "trigger WHEN condition",
            TableClause::Catalog => "stored expression",
        }
    }

    fn plural(self) -> &'static str {
        match self {
            TableClause::Check => "check constraints",
            TableClause::Default | TableClause::Parameter => "DEFAULT expressions",
            TableClause::Generation => "column generation expressions",
            TableClause::IndexExpression => "index expressions",
            TableClause::IndexPredicate => "index predicates",
            TableClause::Transform => "transform expressions",
            TableClause::ExecuteParameter => "EXECUTE parameters",
            TableClause::SplitValue => "SPLIT ON values",
            TableClause::CycleMark => "CYCLE mark values",
            TableClause::CopyWhere => "COPY FROM WHERE conditions",
            TableClause::TriggerCondition => "trigger WHEN conditions",
            TableClause::Catalog => "stored expressions",
        }
    }

    /// Returns the clause's name in messages about the type of the condition.
    pub(super) fn condition(self) -> &'static str {
        match self {
            TableClause::IndexPredicate | TableClause::CopyWhere => "WHERE",
            TableClause::TriggerCondition => "WHEN",
            _ => "CHECK",
        }
    }

    /// Replaces the error of an unknown name by the one that the clause has for it: DEFAULT allows
    /// no column references.
    pub(super) fn wording(self, error: Error) -> Error {
        let is_name = [sqlstate::UNDEFINED_COLUMN, sqlstate::UNDEFINED_TABLE];
        if self == TableClause::Default && is_name.contains(&error.sqlstate.as_ref()) {
            let message = "cannot use column reference in DEFAULT expression";
            let position = error.position;
            return Error { position, ..err!(FEATURE_NOT_SUPPORTED: message) };
        }
        error
    }
}

impl Clause {
    /// Returns the clause's name in PostgreSQL's messages.
    pub(super) fn name(self) -> &'static str {
        match self {
            Clause::Select => "SELECT",
            Clause::Where => "WHERE",
            Clause::Having => "HAVING",
            Clause::OrderBy => "ORDER BY",
            Clause::GroupBy => "GROUP BY",
            Clause::DistinctOn => "DISTINCT ON",
            Clause::JoinOn => "JOIN conditions",
            Clause::Limit => "LIMIT",
            Clause::Offset => "OFFSET",
            Clause::Values | Clause::ValuesRow => "VALUES",
            Clause::MergeWhen => "MERGE WHEN conditions",
            Clause::Set => "UPDATE",
            Clause::Returning => "RETURNING",
            Clause::FunctionInFrom => "functions in FROM",
            Clause::QueryInFrom => "FROM clause of their own query level",
            Clause::Call => "CALL arguments",
            Clause::SystemTime => "FOR SYSTEM_TIME",
            Clause::CellAttributes => "WITH of a data-changing statement",
            Clause::Filter => "FILTER",
            Clause::Policy => "policy expressions",
            Clause::Frame(FrameUnits::Rows) => "window ROWS",
            Clause::Frame(FrameUnits::Range) => "window RANGE",
            Clause::Frame(FrameUnits::Groups) => "window GROUPS",
            Clause::Table(clause) => clause.plural(),
        }
    }

    /// Returns whether window functions are allowed.
    pub(super) fn allows_windows(self) -> bool {
        matches!(self, Clause::Select | Clause::OrderBy | Clause::DistinctOn)
    }

    /// Returns whether set-returning functions are allowed.
    pub(super) fn allows_sets(self) -> bool {
        matches!(
            self,
            Clause::Select
                | Clause::OrderBy
                | Clause::GroupBy
                | Clause::DistinctOn
                | Clause::ValuesRow
        )
    }

    /// Returns whether aggregates of the level itself are allowed.
    pub(super) fn allows_aggregates(self) -> bool {
        matches!(self, Clause::Select | Clause::Having | Clause::OrderBy | Clause::DistinctOn)
    }

    /// Returns whether column references of the level itself are recorded.
    pub(super) fn records_columns(self) -> bool {
        self.allows_aggregates()
            || matches!(self, Clause::Limit | Clause::Offset | Clause::Frame(_))
    }
}

/// A subquery in an expression.
#[derive(Debug, Clone)]
pub(super) struct SubqueryUse {
    /// The subquery.
    pub(super) plan: Logical,
    /// The parameters, with their values over the level's row.
    pub(super) bindings: Vec<(usize, Expr)>,
    /// The kind of value that it adds to the row.
    pub(super) kind: ApplyKind,
    /// Its position.
    pub(super) position: usize,
}

impl SubqueryUse {
    /// Calls `visit` on each expression over the row of its level that it uses.
    pub(super) fn for_each_taken(&self, visit: &mut dyn FnMut(&Expr)) {
        self.bindings.iter().for_each(|(_, value)| visit(value));
        if let ApplyKind::Any { comparison } | ApplyKind::All { comparison } = &self.kind {
            visit(comparison);
        }
    }
}

/// A window definition: partitioning and order.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct BoundWindow {
    /// The partitions.
    pub(super) partition_by: Vec<Expr>,
    /// The order.
    pub(super) order_by: Vec<SortKey>,
}

impl BoundWindow {
    /// Returns the expressions of partitioning and order.
    pub(super) fn expressions(&self) -> impl Iterator<Item = &Expr> {
        self.partition_by.iter().chain(self.order_by.iter().map(|key| &key.expression))
    }

    /// Returns the expressions of partitioning and order.
    pub(super) fn expressions_mut(&mut self) -> impl Iterator<Item = &mut Expr> {
        let order_by = self.order_by.iter_mut().map(|key| &mut key.expression);
        self.partition_by.iter_mut().chain(order_by)
    }
}

/// A window function call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct WindowCall {
    /// The position of its window definition.
    pub(super) window: usize,
    /// The call.
    pub(super) function: WindowFunction,
}

/// A set-returning function call.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct SetUse {
    /// The call.
    pub(super) function: SetFunction,
    /// The depth of set-returning calls nested in its arguments.
    pub(super) depth: usize,
}

/// The visibility of a level's columns for following entries of FROM.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ColumnVisibility {
    /// The level is a query: its columns are visible to subqueries.
    Query,
    /// The level is a FROM clause, and the entry that is being bound is not LATERAL.
    Hidden,
    /// The level is a FROM clause, and the entry that is being bound is LATERAL.
    Lateral,
}

/// The reason why a LATERAL entry must not refer to columns of a level.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum LateralBar {
    /// They are of the preserved side's partner in a right or full join.
    Optional,
    /// They are of the target table of the statement.
    Changed,
}

/// A call of GROUPING.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct GroupingCall {
    /// The arguments over the base row, with their positions.
    pub(super) arguments: Vec<(Expr, usize)>,
}

/// A reference, outside of aggregates, to a column of the level's own base row.
#[derive(Debug, Clone, Copy)]
pub(super) struct Reference {
    /// The column of the base row.
    pub(super) index: usize,
    /// The position of the name.
    pub(super) position: usize,
    /// True if it is in a subquery of the level.
    pub(super) from_subquery: bool,
}

/// A query level that is being bound.
#[derive(Debug)]
pub(super) struct QueryLevel {
    /// The names that are visible.
    pub(super) scope: Scope,
    /// The current clause.
    pub(super) clause: Clause,
    /// True inside an aggregate's argument.
    pub(super) in_aggregate: bool,
    /// The aggregates found so far.
    pub(super) aggregates: Vec<Aggregate>,
    /// The GROUPING calls found so far.
    pub(super) groupings: Vec<GroupingCall>,
    /// The error message for a nested window function, inside of a window function.
    pub(super) in_window: Option<&'static str>,
    /// The error message for a set-returning function, where none is allowed in the current
    /// expression.
    pub(super) refuses_sets: Option<&'static str>,
    /// The set-returning function calls found so far.
    pub(super) set_uses: Vec<SetUse>,
    /// The visibility of its columns.
    pub(super) reach: ColumnVisibility,
    /// The reason why LATERAL entries must not refer to its columns, if any.
    pub(super) barred: Option<LateralBar>,
    /// The WINDOW clause.
    pub(super) named_windows: Vec<NamedWindow>,
    /// The window definitions found so far.
    pub(super) windows: Vec<BoundWindow>,
    /// The window function calls found so far.
    pub(super) window_calls: Vec<WindowCall>,
    /// The subqueries found so far.
    pub(super) subqueries: Vec<SubqueryUse>,
    /// Their positions by the hash of their [likeness](SubqueryUse::likeness).
    pub(super) subqueries_like: AHashMap<u64, Vec<usize>>,
    /// Outer references to this level by the subquery that is being bound.
    pub(super) open_bindings: Vec<(usize, Expr)>,
    /// Column references in clauses that [record them](Clause::records_columns).
    pub(super) references: Vec<Reference>,
    /// The output columns with an alias that HAVING may name, while it is bound again.
    pub(super) aliases: Vec<(String, ast::Expr)>,
}

impl QueryLevel {
    fn new(scope: Scope, clause: Clause) -> QueryLevel {
        QueryLevel {
            scope,
            clause,
            in_aggregate: false,
            aggregates: Vec::new(),
            groupings: Vec::new(),
            in_window: None,
            refuses_sets: None,
            set_uses: Vec::new(),
            reach: ColumnVisibility::Query,
            barred: None,
            named_windows: Vec::new(),
            windows: Vec::new(),
            window_calls: Vec::new(),
            subqueries: Vec::new(),
            subqueries_like: AHashMap::new(),
            open_bindings: Vec::new(),
            references: Vec::new(),
            aliases: Vec::new(),
        }
    }

    /// Adds a GROUPING call and returns its placeholder.
    pub(super) fn add_grouping(&mut self, call: GroupingCall) -> Expr {
        self.groupings.push(call);
        let data_type = DataType::Int4;
        Expr::Column { index: GROUPING + self.groupings.len() - 1, data_type }
    }

    /// Returns an error if the expression of a definition contains a subquery.
    pub(super) fn refuse_subqueries_of(&self, clause: TableClause) -> Result<()> {
        let Some(subquery) = self.subqueries.first() else { return Ok(()) };
        bail!(FEATURE_NOT_SUPPORTED: "cannot use subquery in {}", clause.singular(); at subquery.position)
    }

    /// Returns an error if there is a subquery where none is supported.
    pub(super) fn refuse_subqueries(&self, place: &str) -> Result<()> {
        match self.subqueries.first() {
            None => Ok(()),
            Some(subquery) => Err(Error::not_supported(
                format!("a subquery in {place}"),
                "Compute the value in a separate statement and pass it as a parameter.",
            )
            .at(subquery.position)),
        }
    }
}

/// The dependencies that are recorded while the definition of a view is bound.
#[derive(Debug, Default)]
pub(super) struct DependencyTrace {
    /// The named tables and views; the columns in use are not filled in yet.
    pub(super) relations: Vec<ViewRelation>,
    /// The referenced columns of tables.
    pub(super) used: BTreeSet<(Origin, usize)>,
    /// Each `*`: the position of it or of its qualifier, and its expansion.
    pub(super) stars: Vec<(usize, String)>,
    /// Tables, by number, whose primary key functionally determines ungrouped columns.
    pub(super) determining: BTreeSet<u32>,
}

/// A table with the role that reads or writes it.
#[derive(Clone, Copy)]
pub(super) struct SecuredTable<'t> {
    /// The table.
    pub(super) table: &'t Arc<Table>,
    /// The role to check as; `None` for the current role.
    pub(super) check_as: Option<u32>,
}

/// The conditions of the policies of a scan.
#[derive(Debug)]
pub(super) struct ScanPolicies {
    /// The conjunction, over the columns of the table.
    pub(super) predicate: Expr,
    /// The subqueries in it.
    pub(super) subqueries: Vec<SubqueryUse>,
}

/// The state of the binding of policies.
#[derive(Debug, Default)]
pub(super) struct PolicyBinding {
    /// The conditions of the scans, by [`TableScan::policies`](crate::logical::TableScan).
    pub(super) scans: Vec<ScanPolicies>,
    /// The tables whose policies are being bound, outermost first.
    pub(super) open: Vec<u32>,
    /// The table whose policies are bound within policies of the same table. They must not have
    /// subqueries.
    pub(super) recursive: Option<String>,
    /// The role to check relations as while an expression is bound; `None` for the current role.
    pub(super) check_as: Option<Option<u32>>,
    /// True within the definition of a view, which does not depend on policies.
    pub(super) is_definition: bool,
}

/// The binder of one statement.
pub(super) struct Binder<'a> {
    /// The catalog.
    pub(super) catalog: &'a Catalog,
    /// The system catalog: system views and table functions.
    pub(super) system: &'a dyn SystemCatalog,
    /// The values of `current_user` and other session constants.
    pub(super) constants: &'a SessionConstants,
    /// The parameters.
    pub(super) parameters: Parameters,
    /// The query levels, outermost first.
    pub(super) levels: Vec<QueryLevel>,
    /// The dependencies of the view definition that is being bound.
    pub(super) trace: Option<DependencyTrace>,
    /// The resolution of names and literals, if the caller needs it.
    pub(super) notes: Option<ResolutionNotes>,
    /// The rewriter of literals, if the text is a definition.
    pub(super) settler: Option<LiteralSettler>,
    /// The view whose query is being bound.
    pub(super) view: Option<Arc<View>>,
    /// The first unpopulated materialized view that the statement reads.
    pub(super) unpopulated: Option<String>,
    /// The permissions that the statement needs.
    pub(super) permissions: PermissionRequests,
    /// The notices of hints without effect.
    pub(super) notices: Vec<Error>,
    /// The depth of nested views.
    pub(super) view_depth: usize,
    /// The WITH queries in scope.
    pub(super) named: Vec<CteEntry>,
    /// The number of WITH queries of the statement.
    pub(super) named_count: usize,
    /// The function whose body is being bound.
    pub(super) frame: Option<ParameterFrame>,
    /// The first level of the current FROM clause.
    pub(super) from_base: usize,
    /// True if the query is a cursor's, whose rows are to have row keys.
    pub(super) wants_keys: bool,
    /// The tables with row keys in the rows of the cursor.
    pub(super) cursor_tables: Vec<CursorTable>,
    /// The cursor row of WHERE CURRENT OF.
    pub(super) current_row: Option<CurrentRow>,
    /// The visible PL/pgSQL variables.
    pub(super) variables: Option<&'a VariableScope<'a>>,
    /// The parameters that stand for them.
    pub(super) variable_uses: Vec<VariableUse>,
    /// The policies of the tables.
    pub(super) policies: PolicyBinding,
}

impl<'a> Binder<'a> {
    /// Returns a binder of a statement.
    pub(super) fn new(
        catalog: &'a Catalog,
        system: &'a dyn SystemCatalog,
        constants: &'a SessionConstants,
        parameters: Parameters,
    ) -> Binder<'a> {
        Binder {
            catalog,
            system,
            constants,
            parameters,
            levels: Vec::new(),
            trace: None,
            notes: None,
            settler: None,
            view: None,
            unpopulated: None,
            permissions: PermissionRequests::default(),
            notices: Vec::new(),
            view_depth: 0,
            named: Vec::new(),
            named_count: 0,
            frame: None,
            from_base: 0,
            wants_keys: false,
            cursor_tables: Vec::new(),
            current_row: None,
            variables: None,
            variable_uses: Vec::new(),
            policies: PolicyBinding::default(),
        }
    }

    /// Returns the search path for unqualified names.
    pub(super) fn search_path(&self) -> &SearchPath {
        match (&self.view, &self.frame) {
            (Some(view), _) => &view.search_path,
            (None, Some(frame)) => {
                frame.search_path().unwrap_or_else(|| self.constants.search_path())
            }
            (None, None) => self.constants.search_path(),
        }
    }

    /// Enters a query level.
    pub(super) fn push_level(&mut self, scope: Scope, clause: Clause) {
        self.levels.push(QueryLevel::new(scope, clause));
    }

    /// Leaves the current query level.
    pub(super) fn pop_level(&mut self) -> QueryLevel {
        self.levels.pop().expect("every pop follows a push")
    }

    /// Returns the current query level.
    pub(super) fn level(&mut self) -> &mut QueryLevel {
        self.levels.last_mut().expect("expressions are bound inside a level")
    }

    /// Binds a LATERAL entry, which may refer to columns of preceding entries of FROM.
    pub(super) fn lateral<T>(&mut self, bind: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        let from = self.from_base.min(self.levels.len());
        self.levels[from..].iter_mut().for_each(|level| level.reach = ColumnVisibility::Lateral);
        let result = bind(self);
        self.levels[from..].iter_mut().for_each(|level| level.reach = ColumnVisibility::Hidden);
        result
    }

    /// Binds in a new query level, and returns the result with the level.
    pub(super) fn in_new_level<T>(
        &mut self,
        scope: Scope,
        clause: Clause,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<(T, QueryLevel)> {
        self.push_level(scope, clause);
        let result = bind(self);
        let level = self.pop_level();
        Ok((result?, level))
    }
}

/// Returns the error for an aggregate in a clause that allows none.
pub(super) fn aggregate_not_allowed(clause: Clause) -> Error {
    err!(GROUPING_ERROR: "aggregate functions are not allowed in {}", clause.name())
}
