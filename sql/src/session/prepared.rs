//! Prepared statements: parsed and bound once, replanned when the catalog or a table's size has
//! changed.
//!
//! [`PlanningContext`] binds and plans a statement; [`CachedStatement`] has the parameter types
//! and result columns that the client knows, and the current plan ([`StatementPlan`]). Statements
//! of the same text and types share it. Executions check that the plan is valid and replan if
//! necessary; the plan cache may evict it. The text is then parsed again.

use std::cell::Cell;
use std::sync::Arc;
use std::sync::atomic::{AtomicIsize, Ordering};

use arc_swap::ArcSwapOption;
use store::{LockName, TableId, memory};
use types::expr::Routine;
use types::text::TextStyle;
use types::{DataType, Datum, SqlType};

use crate::ast;
use crate::ast::{LockStrength, NamedQueryBody, Statement};
use crate::binder::{
    self, BodyStatement, BoundStatement, ConstantErrors, PermissionRequests, SystemCatalog,
    VariableScope, VariableUse, ViewDefinition,
};
use crate::catalog::Catalog;
use crate::catalog::function::Function;
use crate::catalog::name::SearchPath;
use crate::catalog::table::Table;
use crate::catalog::view::View;
use crate::ddl::relation_lock_name;
use crate::error::{Error, Result, SourceLocation};
use crate::logical::{BoundPlan, CurrentRow, CursorTable, Merge, OutputColumn, ParameterTypes};
use crate::maintained_views::rewrite;
use crate::parser::{self, ParsedStatement, StatementText};
use crate::plan::{Estimates, Plan};
use crate::planner;
use crate::planner::statistics::{RecordingStatistics, TableSizes};
use crate::relation_visibility::InvisibleRelations;
use crate::session::plan_cache::{
    CachedPlan, PlanCache, PlanCacheKey, PlanUsage, PlanValidity, PlanningState,
};
use crate::session_objects::ExecutionCounter;
use crate::statement_log::LoggedStatements;
use crate::system::SystemNames;

/// A parsed, bound and planned statement.
pub struct PreparedStatement {
    /// Parameter types, `$1` first.
    pub parameter_types: ParameterTypes,
    /// Result columns; `None` for a statement that returns no rows.
    pub columns: Option<Arc<[OutputColumn]>>,
    pub(crate) text: StatementText,
    pub(crate) kind: PreparedKind,
    pub(crate) runs: ExecutionCounter,
}

/// Executable form of a statement.
pub(crate) enum PreparedKind {
    /// Statement with a plan.
    Planned(Arc<CachedStatement>),
    /// Utility statement, which is executed from its parse tree.
    Utility(Arc<ParsedStatement>),
}

/// A statement text with its plan, which may be evicted and is then rebuilt from the text at the
/// next execution.
pub(crate) struct CachedStatement {
    /// Text; that of PREPARE or COPY for its statement.
    pub text: StatementText,
    /// Parameter types, `$1` first.
    pub parameter_types: ParameterTypes,
    /// Result columns that the client knows.
    pub columns: Option<Arc<[OutputColumn]>>,
    plan: ArcSwapOption<StatementPlan>,
    usage: PlanUsage,
    /// Command tag of the statement.
    pub tag: &'static str,
    /// True for CALL.
    pub is_call: bool,
    /// Lowest level of `log_statement` that logs the statement.
    pub least_logged: LoggedStatements,
}

/// Plan of a statement.
pub(crate) struct StatementPlan {
    /// State that it depends on.
    pub validity: PlanValidity,
    /// The plan.
    pub plan: Arc<Plan>,
    /// Result columns, if it returns rows: of the types that the client knows, as they are
    /// defined now.
    pub columns: Option<Arc<[OutputColumn]>>,
    /// Number of parameters of the client and of subqueries together.
    pub parameter_count: usize,
    /// Tables that the statement writes to, ascending.
    pub writes: Vec<TableId>,
    /// Those of them whose rows it may change.
    pub changes: Vec<TableId>,
    /// Tables whose rows it locks, with the lock strength.
    pub locks: Vec<(TableId, LockStrength)>,
    /// Lock names of the tables that it only reads.
    pub reads: Vec<LockName>,
    /// First unpopulated materialized view that it reads.
    unpopulated: Option<String>,
    /// Permissions that it needs.
    pub permissions: PermissionRequests,
    /// Error of its execution, because the role for which it was planned lacks a privilege.
    denied: Option<Error>,
    /// Notices of each execution.
    pub notices: Vec<Error>,
    /// Row of WHERE CURRENT OF.
    pub current_row: Option<CurrentRow>,
    /// Errors of constant expressions, which PostgreSQL raises at planning: checked once the
    /// parameter values are known.
    pub constants: ConstantErrors,
}

/// A plan with the statement's parameter types and result columns.
pub(crate) struct PlannedStatement {
    /// The plan.
    pub planned: StatementPlan,
    /// Parameter types, `$1` first.
    pub parameter_types: ParameterTypes,
    /// Result columns, if it returns rows.
    pub columns: Option<Arc<[OutputColumn]>>,
    /// Tables whose keys follow the columns of a cursor's rows.
    pub cursor_tables: Vec<CursorTable>,
    /// Tables that it reads in their current state.
    pub reads: Vec<TableId>,
    /// Parameters that represent variables of a procedural body.
    pub variables: Vec<VariableUse>,
}

/// Parameters of a utility statement, for the query within it.
#[derive(Default)]
pub(crate) struct BoundParameters {
    /// Parameter types.
    pub types: Vec<Option<SqlType>>,
    /// Parameter values.
    pub values: Vec<Datum>,
}

/// A statement to be planned.
pub(crate) struct PlannedQuery {
    /// The statement.
    pub statement: Statement,
    /// Parameter types.
    pub types: Vec<Option<SqlType>>,
    /// Parameter values.
    pub values: Vec<Datum>,
}

/// Environment for binding and planning a statement.
pub(crate) struct PlanningContext<'a> {
    /// The catalog that the statement sees.
    pub catalog: &'a Catalog,
    /// System views, table functions and endpoints.
    pub system: SystemNames<'a>,
    /// Values of session functions.
    pub constants: &'a binder::SessionConstants,
    /// Present state of what plans depend on.
    pub state: PlanningState<'a>,
    /// Indexes and tables that the transaction's snapshot may not see.
    pub newer: Option<InvisibleRelations>,
    /// Plans of the session.
    pub plans: &'a PlanCache,
}

impl PlanningContext<'_> {
    /// Binds and plans a query or a data-changing statement.
    pub(crate) fn plan(
        &self,
        statement: &Statement,
        types: &[Option<SqlType>],
    ) -> Result<PlannedStatement> {
        let bound = binder::bind(statement, self.catalog, &self.system, self.constants, types)?;
        let mut planned = self.plan_bound(bound)?;
        // A procedure without OUT parameters returns no rows.
        if matches!(statement, Statement::Call(_)) {
            planned.columns = planned.columns.filter(|columns| !columns.is_empty());
        }
        Ok(planned)
    }

    /// Binds and plans the query of a cursor in a procedural body.
    pub(crate) fn plan_cursor(
        &self,
        cursor: &ast::DeclareCursor,
        types: &[Option<SqlType>],
        variables: Option<&VariableScope<'_>>,
    ) -> Result<PlannedStatement> {
        let bound = binder::bind_cursor(cursor, self.binding_environment(), types, variables)?;
        self.plan_bound(bound)
    }

    /// Plans a bound statement.
    pub(crate) fn plan_bound(&self, mut bound: BoundStatement) -> Result<PlannedStatement> {
        self.read_views(&mut bound);
        self.hide_newer(&mut bound)?;
        let followed = self.hide_followed(&mut bound);
        let statistics = RecordingStatistics::new(self.state.statistics);
        let plan = planner::plan(&bound.bound, &statistics)?;
        Ok(self.planned(bound, plan, (followed, statistics.into_sizes())))
    }

    /// Returns the binding environment of procedural bodies.
    pub(crate) fn binding_environment(
        &self,
    ) -> (&Catalog, &dyn SystemCatalog, &binder::SessionConstants) {
        (self.catalog, &self.system, self.constants)
    }

    /// Binds a statement of the body of a function for a call.
    pub(crate) fn bind_body(
        &self,
        function: &Arc<Function>,
        at: usize,
        routine: &Routine,
    ) -> Result<BodyStatement> {
        let world = (self.catalog, &self.system as &dyn SystemCatalog, self.constants);
        binder::bind_body_statement(function, at, routine, world)
    }

    /// Like [`PlanningContext::plan`], with the estimated rows and costs of the plan nodes.
    pub(crate) fn estimated(
        &self,
        statement: &Statement,
        types: &[Option<SqlType>],
    ) -> Result<(PlannedStatement, Estimates)> {
        let mut bound = binder::bind(statement, self.catalog, &self.system, self.constants, types)?;
        self.read_views(&mut bound);
        self.hide_newer(&mut bound)?;
        let followed = self.hide_followed(&mut bound);
        let statistics = RecordingStatistics::new(self.state.statistics);
        let (plan, estimates) = planner::estimated(&bound.bound, &statistics)?;
        Ok((self.planned(bound, plan, (followed, statistics.into_sizes())), estimates))
    }

    /// Binds the query that defines a materialized view.
    pub(crate) fn define_view(
        &self,
        source: &ast::SourceQuery,
        style: &TextStyle,
    ) -> Result<ViewDefinition> {
        let queries = source.query.with.iter().flat_map(|with| &with.queries);
        if queries.into_iter().any(|query| matches!(query.body, NamedQueryBody::Change(_))) {
            bail!(FEATURE_NOT_SUPPORTED: "materialized views must not use data-modifying statements in WITH");
        }
        let session = (self.constants, style);
        binder::bind_view_definition(source, self.catalog, &self.system, session)
    }

    /// Plans the query of a materialized view.
    pub(crate) fn plan_materialized(&self, view: &Arc<View>) -> Result<StatementPlan> {
        let bound = binder::bind_materialized(view, self.catalog, &self.system, self.constants)?;
        Ok(self.plan_bound(bound)?.planned)
    }

    /// Reads maintained views instead of their tables, unless the snapshot may not see their rows.
    fn read_views(&self, bound: &mut BoundStatement) {
        if !self.state.reads_views {
            return;
        }
        let is_visible =
            |view: &Table| self.newer.as_ref().is_none_or(|newer| !newer.has_rows_of(view));
        let views = rewrite::read_views(&mut bound.bound, self.catalog, &is_visible);
        bound.reads.extend(views);
    }

    /// Removes what the snapshot does not see from a statement.
    fn hide_newer(&self, bound: &mut BoundStatement) -> Result<()> {
        let Some(newer) = &self.newer else { return Ok(()) };
        let rewritten = Cell::new(false);
        binder::replace_tables(&mut bound.bound, &|table| {
            rewritten.set(rewritten.get() || newer.has_rows_of(table));
            newer.without_newer_indexes(table)
        });
        match rewritten.get() {
            true => {
                bail!(SERIALIZATION_FAILURE: "could not serialize access due to concurrent update";
                    detail "The rows of a table were rewritten after the snapshot was taken.")
            }
            false => Ok(()),
        }
    }

    /// Removes eventual indexes from a statement that must not read them. Returns what its plan
    /// depends on: whether it may read them; `None` if its tables have none.
    fn hide_followed(&self, bound: &mut BoundStatement) -> Option<bool> {
        let allowed = self.state.reads_followed?;
        let is_query = matches!(bound.bound, BoundPlan::Query(_)) && bound.locks.is_empty();
        let found = Cell::new(false);
        binder::replace_tables(&mut bound.bound, &|table| {
            let has_followed = table.indexes.iter().any(|index| index.is_followed);
            found.set(found.get() || has_followed);
            (has_followed && !(allowed && is_query)).then(|| table.without_followed_indexes())
        });
        found.get().then_some(allowed)
    }

    /// Returns the error for a permission that the current role lacks. The plan is valid as long as
    /// the role and the catalog are the same.
    fn denied(&self, permissions: &PermissionRequests) -> Option<Error> {
        permissions.check(self.catalog, self.state.search_path.role()).err()
    }

    fn planned(
        &self,
        bound: BoundStatement,
        plan: Plan,
        (followed, sizes): (Option<bool>, TableSizes),
    ) -> PlannedStatement {
        let columns: Option<Arc<[OutputColumn]>> = bound.bound.columns().map(Arc::from);
        let planned = StatementPlan {
            validity: PlanValidity::new(&self.state, followed, sizes),
            plan: Arc::new(plan),
            columns: columns.clone(),
            parameter_count: bound.parameter_count,
            writes: written_tables(&bound.bound, |_| true),
            changes: written_tables(&bound.bound, |merge| !merge.is_idle()),
            locks: bound.locks,
            reads: Vec::new(),
            unpopulated: bound.unpopulated,
            denied: self.denied(&bound.permissions),
            permissions: bound.permissions,
            notices: bound.notices,
            current_row: bound.current_row,
            constants: bound.constants,
        };
        let BoundStatement { parameter_types, cursor_tables, reads, variables, .. } = bound;
        let mut planned = planned;
        planned.reads = planned.to_lock(&reads);
        PlannedStatement { planned, parameter_types, columns, cursor_tables, reads, variables }
    }
}

impl StatementPlan {
    /// Returns the locks of the tables that it reads without writing or row locks.
    fn to_lock(&self, reads: &[TableId]) -> Vec<LockName> {
        let is_locked = |table: &TableId| {
            self.writes.contains(table) || self.locks.iter().any(|(of, _)| of == table)
        };
        let reads = reads.iter().filter(|table| !is_locked(table));
        reads.map(|table| relation_lock_name(table.0)).collect()
    }

    /// Rejects a plan that its role may not execute.
    ///
    /// # Errors
    ///
    /// 42501.
    pub(crate) fn check_privileges(&self) -> Result<()> {
        match &self.denied {
            Some(denied) => Err(denied.clone()),
            None => Ok(()),
        }
    }

    /// Rejects a plan that its role may not execute, or that reads an unpopulated materialized
    /// view.
    ///
    /// # Errors
    ///
    /// 42501 and 55000.
    pub(crate) fn check_readiness(&self) -> Result<()> {
        self.check_privileges()?;
        let Some(name) = &self.unpopulated else { return Ok(()) };
        bail!(OBJECT_NOT_IN_PREREQUISITE_STATE: "materialized view \"{name}\" has not been populated";
            hint "Use the REFRESH MATERIALIZED VIEW command.")
    }
}

impl CachedPlan for CachedStatement {
    fn usage(&self) -> &PlanUsage {
        &self.usage
    }

    fn is_current(&self, now: &PlanningState<'_>) -> bool {
        self.plan.load().as_ref().is_some_and(|plan| plan.validity.is_current(now))
    }

    fn forget_plan(&self) {
        self.plan.store(None);
    }
}

impl CachedStatement {
    /// Plans a statement.
    pub(crate) fn new(
        planning: &PlanningContext<'_>,
        parsed: &ParsedStatement,
        types: &[Option<SqlType>],
    ) -> Result<CachedStatement> {
        let (planned, bytes) = memory::measure(|| planning.plan(&parsed.statement, types));
        let PlannedStatement { planned, parameter_types, columns, .. } = planned?;
        let bytes = AtomicIsize::new(bytes + parsed.text.as_str().len().cast_signed());
        Ok(CachedStatement {
            text: parsed.text.clone(),
            parameter_types,
            columns,
            plan: ArcSwapOption::from_pointee(planned),
            usage: PlanUsage { bytes, ..PlanUsage::default() },
            tag: parsed.statement.tag(),
            is_call: matches!(parsed.statement, Statement::Call(_)),
            least_logged: LoggedStatements::least_for(&parsed.statement),
        })
    }

    /// Returns the key of the plan under a search path.
    pub(crate) fn key(&self, search_path: &Arc<SearchPath>) -> PlanCacheKey<'_> {
        PlanCacheKey::of_statement(self.text.as_str(), &self.parameter_types, search_path)
    }

    /// Returns the plan, if it was not evicted.
    pub(crate) fn plan(&self) -> Option<Arc<StatementPlan>> {
        self.plan.load_full()
    }

    /// Parses the text again.
    fn parsed(&self) -> Result<ParsedStatement> {
        let mut statements = parser::parse_statements(&self.text.input)?.into_iter();
        let mut found = statements
            .find(|one| one.text == self.text)
            .ok_or_else(|| err!(INTERNAL_ERROR: "a text has lost its statement"))?;
        found.statement = match found.statement {
            Statement::Prepare(prepare) => prepare.statement,
            Statement::Copy(copy) => match copy.target {
                ast::CopyTarget::Statement(query) => *query,
                ast::CopyTarget::Table { .. } => bail!(INTERNAL_ERROR: "COPY has no query"),
            },
            statement => statement,
        };
        Ok(found)
    }

    /// Returns the plan; replans if it is not valid any more or was evicted.
    ///
    /// # Errors
    ///
    /// Errors of planning; 0A000 if the result columns have changed since the statement was
    /// prepared.
    pub(crate) fn planned(
        self: &Arc<CachedStatement>,
        planning: &PlanningContext<'_>,
    ) -> Result<Arc<StatementPlan>> {
        planning.plans.touch(&self.usage);
        if let Some(plan) = self.plan()
            && plan.validity.is_current(&planning.state)
        {
            return Ok(plan);
        }
        let types: Vec<_> = self.parameter_types.iter().cloned().map(Some).collect();
        let again = CachedStatement::new(planning, &self.parsed()?, &types)?;
        if !are_alike(again.columns.as_deref(), self.columns.as_deref()) {
            // Drivers that prepare the statement again identify the error by this routine.
            let message = "cached plan must not change result type";
            return Err(Error {
                raised_at: Some(&SourceLocation {
                    file: file!(),
                    line: line!(),
                    routine: "RevalidateCachedQuery",
                }),
                ..err!(FEATURE_NOT_SUPPORTED: message)
            });
        }
        let plan = again.plan.swap(None);
        self.usage.bytes.store(again.usage.bytes.into_inner(), Ordering::Relaxed);
        self.plan.store(plan.clone());
        planning.plans.add(self.key(planning.constants.search_path()), self);
        plan.ok_or_else(|| err!(INTERNAL_ERROR: "a statement was planned without a plan"))
    }
}

impl PreparedStatement {
    /// Returns a planned statement.
    pub(crate) fn of(statement: Arc<CachedStatement>) -> PreparedStatement {
        PreparedStatement {
            parameter_types: statement.parameter_types.clone(),
            columns: statement.columns.clone(),
            text: statement.text.clone(),
            kind: PreparedKind::Planned(statement),
            runs: ExecutionCounter::default(),
        }
    }

    /// Returns the text of the statement.
    pub fn text(&self) -> &str {
        self.text.as_str()
    }

    /// Returns the parse tree.
    ///
    /// # Errors
    ///
    /// Errors of parsing it again: 53200, 57014.
    pub(crate) fn parsed(&self) -> Result<ParsedStatement> {
        match &self.kind {
            PreparedKind::Planned(statement) => statement.parsed(),
            PreparedKind::Utility(parsed) => Ok(ParsedStatement::clone(parsed)),
        }
    }

    /// Returns the lowest level of `log_statement` that logs the statement.
    pub(crate) fn least_logged(&self) -> LoggedStatements {
        match &self.kind {
            PreparedKind::Planned(statement) => statement.least_logged,
            PreparedKind::Utility(parsed) => LoggedStatements::least_for(&parsed.statement),
        }
    }

    fn plan(&self) -> Option<Arc<StatementPlan>> {
        match &self.kind {
            PreparedKind::Planned(statement) => statement.plan(),
            PreparedKind::Utility(_) => None,
        }
    }

    /// Returns a one-line summary of the plan; `None` for a statement without one.
    pub fn summary(&self) -> Option<String> {
        self.plan().map(|planned| planned.plan.summary())
    }

    /// Returns whether the statement is a point get, which takes microseconds.
    pub fn is_point(&self) -> bool {
        self.plan().is_some_and(|planned| planned.plan.point.is_some())
    }
}

/// Returns whether a client that knows the columns `left` can read rows with columns `right`. As
/// in PostgreSQL, the origin of a column does not matter, so that a table may be re-created; nor
/// does a changed definition of its type.
fn are_alike(left: Option<&[OutputColumn]>, right: Option<&[OutputColumn]>) -> bool {
    match (left, right) {
        (None, None) => true,
        (Some(left), Some(right)) => {
            let is_told = |column: &OutputColumn| (column.sql_type.oid(), column.sql_type.modifier);
            let mut pairs = left.iter().zip(right);
            left.len() == right.len()
                && pairs
                    .all(|(left, right)| left.name == right.name && is_told(left) == is_told(right))
        }
        _ => false,
    }
}

/// Returns the tables that a statement writes to, ascending, so that all statements lock them in
/// one order. `counts`: whether a MERGE counts.
fn written_tables(bound: &BoundPlan, counts: fn(&Merge) -> bool) -> Vec<TableId> {
    match bound {
        BoundPlan::Query(_) => Vec::new(),
        BoundPlan::Insert(insert) => vec![insert.table.id],
        BoundPlan::Update(update) => vec![update.table.id],
        BoundPlan::Delete(delete) => vec![delete.table.id],
        BoundPlan::Merge(merge) => counts(merge).then_some(merge.table.id).into_iter().collect(),
        BoundPlan::Steps(steps) => {
            let before = steps.before.iter().flat_map(|step| written_tables(&step.bound, counts));
            let mut tables: Vec<TableId> =
                before.chain(written_tables(&steps.last, counts)).collect();
            tables.sort_unstable();
            tables.dedup();
            tables
        }
    }
}

/// Returns whether a statement is bound and planned.
pub(crate) fn is_planned(statement: &Statement) -> bool {
    matches!(
        statement,
        Statement::Query(_)
            | Statement::Insert(_)
            | Statement::Upsert(_)
            | Statement::Update(_)
            | Statement::Delete(_)
            | Statement::Merge(_)
            | Statement::Call(_)
    )
}

/// Columns of CHECK STORE.
const CHECK_STORE_COLUMNS: [&str; 5] = ["table_name", "region", "family", "file", "damage"];
/// Columns of CHECK INDEX and CHECK TABLE.
const CHECK_COLUMNS: [&str; 6] =
    ["index_name", "difference", "primary_key", "entry", "expected_entry", "repaired"];

/// Returns the columns of a utility statement that returns rows of text, boolean or JSON.
pub(crate) fn utility_columns(statement: &Statement) -> Option<Vec<OutputColumn>> {
    let names: &[&str] = match statement {
        Statement::CheckStore(_) => &CHECK_STORE_COLUMNS,
        Statement::Check(_) => &CHECK_COLUMNS,
        Statement::Explain(_) => &["QUERY PLAN"],
        Statement::Show(None) => &["name", "setting", "description"],
        Statement::Show(Some(name)) => &[name.value.as_str()],
        _ => return None,
    };
    let is_json = |explain: &ast::Explain| explain.format == ast::ExplainFormat::Json;
    let data_type = match statement {
        Statement::Explain(explain) if is_json(explain) => DataType::Json,
        _ => DataType::Text,
    };
    let column = |name: &&str| OutputColumn {
        name: (*name).to_owned(),
        sql_type: match (*name, statement) {
            ("repaired", Statement::Check(_)) => DataType::Bool.into(),
            ("region" | "file", Statement::CheckStore(_)) => DataType::Int8.into(),
            _ => (&data_type).into(),
        },
        origin: None,
    };
    Some(names.iter().map(column).collect())
}
