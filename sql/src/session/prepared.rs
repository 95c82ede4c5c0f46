//! Prepared statements: parsed and bound once, planned again when the catalog or the
//! size of a table has changed.

use std::cell::Cell;
use std::sync::Arc;

use arc_swap::ArcSwapOption;
use store::{LockName, TableId};
use types::expr::Routine;
use types::text::TextStyle;
use types::{DataType, Datum, SqlType};

use crate::activity::KeptPlan;
use crate::ast;
use crate::ast::{LockStrength, NamedQueryBody, Statement};
use crate::binder::{
    self, BodyStatement, BoundStatement, ConstantErrors, SystemCatalog, VariableScope, VariableUse,
    ViewDefinition,
};
use crate::catalog::Catalog;
use crate::catalog::function::Function;
use crate::catalog::name::SearchPath;
use crate::catalog::view::View;
use crate::ddl::relation_lock_name;
use crate::error::{Error, Result, SourceLocation, sqlstate};
use crate::logical::{Bound, CurrentRow, CursorTable, Merge, OutputColumn, ParameterTypes};
use crate::new_relations::NewerRelations;
use crate::parser::{self, ParsedStatement, StatementText};
use crate::plan::{Estimates, Plan};
use crate::planner;
use crate::planner::statistics::{Noted, Sizes, Statistics};
use crate::session_objects::Runs;
use crate::statement_log::LoggedStatements;
use crate::system::SystemNames;

/// A statement that was parsed, bound and planned.
pub struct Prepared {
    /// Types of the parameters, `$1` first.
    pub parameter_types: ParameterTypes,
    /// Columns of the result; `None` for a statement that returns no rows.
    pub columns: Option<Arc<[OutputColumn]>>,
    pub(crate) text: StatementText,
    pub(crate) kind: PreparedKind,
    pub(crate) runs: Runs,
}

/// What there is to run.
pub(crate) enum PreparedKind {
    /// A statement with a plan.
    Planned(PlanSlot),
    /// Anything else: the statement is run as it is.
    Utility(Arc<ParsedStatement>),
}

/// The plan of a statement and its parse tree, unless memory was short: then both are made again of
/// the text when the statement is run.
pub(crate) struct PlanSlot {
    plan: ArcSwapOption<Planned>,
    tree: ArcSwapOption<ParsedStatement>,
    /// The command tag of the statement.
    pub tag: &'static str,
    /// True for CALL.
    pub is_call: bool,
    /// The least setting of `log_statement` with which it is logged.
    pub least_logged: LoggedStatements,
}

impl PlanSlot {
    /// Returns the slot of a statement.
    pub(crate) fn of(planned: Planned, parsed: Arc<ParsedStatement>) -> PlanSlot {
        PlanSlot {
            plan: ArcSwapOption::from_pointee(planned),
            tag: parsed.statement.tag(),
            is_call: matches!(parsed.statement, Statement::Call(_)),
            least_logged: LoggedStatements::least_for(&parsed.statement),
            tree: ArcSwapOption::from(Some(parsed)),
        }
    }

    /// Returns the plan, if it was not forgotten.
    pub(crate) fn plan(&self) -> Option<Arc<Planned>> {
        self.plan.load_full()
    }

    /// Returns the parse tree of a statement with this text, which is parsed again if need be.
    fn tree(&self, text: &StatementText) -> Result<Arc<ParsedStatement>> {
        if let Some(tree) = self.tree.load_full() {
            return Ok(tree);
        }
        let mut statements = parser::parse_statements(&text.input)?.into_iter();
        let mut found = statements
            .find(|one| one.text == *text)
            .ok_or_else(|| Error::new(sqlstate::INTERNAL_ERROR, "a text has lost its statement"))?;
        if let Statement::Prepare(prepare) = found.statement {
            found.statement = prepare.statement;
        }
        let tree = Arc::new(found);
        self.tree.store(Some(Arc::clone(&tree)));
        Ok(tree)
    }
}

/// A plan and what it was made for.
pub(crate) struct Planned {
    /// [`Catalog::version`].
    pub catalog_version: u64,
    /// Where names without a schema were looked for.
    pub search_path: Arc<SearchPath>,
    /// It does without indexes that are newer than the snapshot that it was made for.
    is_of_old_snapshot: bool,
    /// What its tables' sizes were.
    pub sizes: Sizes,
    /// The plan.
    pub plan: Arc<Plan>,
    /// Columns of the result, if it has one: of the types that the client was told of, as they are
    /// now.
    pub columns: Option<Arc<[OutputColumn]>>,
    /// Parameters of the client and of subqueries together.
    pub parameter_count: usize,
    /// The tables that the statement writes to, ascending.
    pub writes: Vec<TableId>,
    /// Those of them whose rows it may change.
    pub changes: Vec<TableId>,
    /// The tables of which it locks rows.
    pub locks: Vec<(TableId, LockStrength)>,
    /// The locks of the tables that it only reads.
    pub reads: Vec<LockName>,
    /// The first materialized view without rows that it reads.
    unpopulated: Option<String>,
    /// The row that it changes, if it is a cursor's.
    pub current_row: Option<CurrentRow>,
    /// What PostgreSQL raises when it plans the statement: to be asked once the values of the
    /// parameters are known.
    pub constants: ConstantErrors,
}

/// A plan with what the client is told of the statement.
pub(crate) struct PlannedStatement {
    /// The plan.
    pub planned: Planned,
    /// Types of the parameters, `$1` first.
    pub parameter_types: ParameterTypes,
    /// Columns of the result, if it has one.
    pub columns: Option<Arc<[OutputColumn]>>,
    /// The tables of which the rows of a cursor have keys behind their columns.
    pub cursor_tables: Vec<CursorTable>,
    /// The tables that it reads as they are now.
    pub reads: Vec<TableId>,
    /// The parameters that stand for variables of a procedural body.
    pub variables: Vec<VariableUse>,
}

/// The parameters that a statement without a plan of its own was bound to, for the query in it.
#[derive(Default)]
pub(crate) struct BoundParameters {
    /// Their types.
    pub types: Vec<Option<SqlType>>,
    /// Their values.
    pub values: Vec<Datum>,
}

/// A statement to be planned.
pub(crate) struct PlannedQuery {
    /// The statement.
    pub statement: Statement,
    /// The types of its parameters.
    pub types: Vec<Option<SqlType>>,
    /// Their values.
    pub values: Vec<Datum>,
}

/// What a statement is bound and planned with.
pub(crate) struct Planning<'a> {
    /// The catalog that the statement sees.
    pub catalog: &'a Catalog,
    /// System views, table functions and endpoints.
    pub system: SystemNames<'a>,
    /// Values of session functions.
    pub constants: &'a binder::SessionConstants,
    /// What is known of the data.
    pub statistics: &'a dyn Statistics,
    /// What the snapshot of the transaction does not show, if there may be anything.
    pub newer: Option<NewerRelations>,
}

impl Planning<'_> {
    /// Binds and plans a query or a data-changing statement.
    pub(crate) fn plan(
        &self,
        statement: &Statement,
        types: &[Option<SqlType>],
    ) -> Result<PlannedStatement> {
        let bound = binder::bind(statement, self.catalog, &self.system, self.constants, types)?;
        self.plan_bound(bound)
    }

    /// Binds and plans the query of a cursor, in a body that has variables.
    pub(crate) fn plan_cursor(
        &self,
        cursor: &ast::Cursor,
        types: &[Option<SqlType>],
        variables: Option<&VariableScope<'_>>,
    ) -> Result<PlannedStatement> {
        let bound = binder::bind_cursor(cursor, self.world(), types, variables)?;
        self.plan_bound(bound)
    }

    /// Plans a statement.
    pub(crate) fn plan_bound(&self, mut bound: BoundStatement) -> Result<PlannedStatement> {
        self.hide_newer(&mut bound)?;
        let statistics = Noted::new(self.statistics);
        let plan = planner::plan(&bound.bound, &statistics)?;
        Ok(self.planned(bound, plan, statistics.into_sizes()))
    }

    /// Returns what statements and expressions of procedural bodies are bound in.
    pub(crate) fn world(&self) -> (&Catalog, &dyn SystemCatalog, &binder::SessionConstants) {
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

    /// As [`Planning::plan`], and what the plan's steps are thought to yield and to cost.
    pub(crate) fn estimated(
        &self,
        statement: &Statement,
        types: &[Option<SqlType>],
    ) -> Result<(PlannedStatement, Estimates)> {
        let mut bound = binder::bind(statement, self.catalog, &self.system, self.constants, types)?;
        self.hide_newer(&mut bound)?;
        let statistics = Noted::new(self.statistics);
        let (plan, estimates) = planner::estimated(&bound.bound, &statistics)?;
        Ok((self.planned(bound, plan, statistics.into_sizes()), estimates))
    }

    /// Binds the query that defines a materialized view.
    pub(crate) fn define_view(
        &self,
        source: &ast::SourceQuery,
        style: &TextStyle,
    ) -> Result<ViewDefinition> {
        let queries = source.query.with.iter().flat_map(|with| &with.queries);
        if queries.into_iter().any(|query| matches!(query.body, NamedQueryBody::Change(_))) {
            let message = "materialized views must not use data-modifying statements in WITH";
            return Err(Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message));
        }
        let session = (self.constants, style);
        binder::bind_view_definition(source, self.catalog, &self.system, session)
    }

    /// Plans the query of a materialized view.
    pub(crate) fn plan_materialized(&self, view: &Arc<View>) -> Result<Planned> {
        let bound = binder::bind_materialized(view, self.catalog, &self.system, self.constants)?;
        Ok(self.plan_bound(bound)?.planned)
    }

    /// Has a statement do without what its snapshot does not show.
    fn hide_newer(&self, bound: &mut BoundStatement) -> Result<()> {
        let Some(newer) = &self.newer else { return Ok(()) };
        let rewritten = Cell::new(false);
        binder::replace_tables(&mut bound.bound, &|table| {
            rewritten.set(rewritten.get() || newer.has_rows_of(table));
            newer.without(table)
        });
        match rewritten.get() {
            true => Err(Error::new(
                sqlstate::SERIALIZATION_FAILURE,
                "could not serialize access due to concurrent update",
            )
            .with_detail("The rows of a table were written anew after the snapshot was taken.")),
            false => Ok(()),
        }
    }

    fn planned(&self, bound: BoundStatement, plan: Plan, sizes: Sizes) -> PlannedStatement {
        let columns: Option<Arc<[OutputColumn]>> = bound.bound.columns().map(Arc::from);
        let planned = Planned {
            catalog_version: self.catalog.version,
            search_path: Arc::clone(self.constants.search_path()),
            is_of_old_snapshot: self.newer.is_some(),
            sizes,
            plan: Arc::new(plan),
            columns: columns.clone(),
            parameter_count: bound.parameter_count,
            writes: written_tables(&bound.bound, |_| true),
            changes: written_tables(&bound.bound, |merge| !merge.is_idle()),
            locks: bound.locks,
            reads: Vec::new(),
            unpopulated: bound.unpopulated,
            current_row: bound.current_row,
            constants: bound.constants,
        };
        let BoundStatement { parameter_types, cursor_tables, reads, variables, .. } = bound;
        let mut planned = planned;
        planned.reads = planned.to_lock(&reads);
        PlannedStatement { planned, parameter_types, columns, cursor_tables, reads, variables }
    }
}

impl Planned {
    /// Returns the locks of the tables that it reads, and neither writes to nor locks rows of.
    fn to_lock(&self, reads: &[TableId]) -> Vec<LockName> {
        let is_locked = |table: &TableId| {
            self.writes.contains(table) || self.locks.iter().any(|(of, _)| of == table)
        };
        let reads = reads.iter().filter(|table| !is_locked(table));
        reads.map(|table| relation_lock_name(table.0)).collect()
    }

    /// Refuses to read a materialized view that has no rows yet.
    ///
    /// # Errors
    ///
    /// 55000
    pub(crate) fn check_populated(&self) -> Result<()> {
        let Some(name) = &self.unpopulated else { return Ok(()) };
        let message = format!("materialized view \"{name}\" has not been populated");
        Err(Error::new(sqlstate::OBJECT_NOT_IN_PREREQUISITE_STATE, message)
            .with_hint("Use the REFRESH MATERIALIZED VIEW command."))
    }

    /// Returns whether the plan would be made in the same way now.
    pub(crate) fn is_current(&self, planning: &Planning<'_>) -> bool {
        let path = planning.constants.search_path();
        self.catalog_version == planning.catalog.version
            && self.is_of_old_snapshot == planning.newer.is_some()
            && (Arc::ptr_eq(&self.search_path, path) || self.search_path == *path)
            && self.sizes.hold(planning.statistics)
    }
}

impl KeptPlan for Prepared {
    fn forget_plan(&self) {
        if let PreparedKind::Planned(slot) = &self.kind {
            slot.plan.store(None);
            slot.tree.store(None);
        }
    }
}

impl Prepared {
    /// Returns the text of the statement.
    pub fn text(&self) -> &str {
        self.text.as_str()
    }

    /// Returns the statement.
    ///
    /// # Errors
    ///
    /// The errors of parsing it again: 53200, 57014.
    pub(crate) fn parsed(&self) -> Result<Arc<ParsedStatement>> {
        match &self.kind {
            PreparedKind::Planned(slot) => slot.tree(&self.text),
            PreparedKind::Utility(parsed) => Ok(Arc::clone(parsed)),
        }
    }

    /// Returns the least setting of `log_statement` with which it is logged.
    pub(crate) fn least_logged(&self) -> LoggedStatements {
        match &self.kind {
            PreparedKind::Planned(slot) => slot.least_logged,
            PreparedKind::Utility(parsed) => LoggedStatements::least_for(&parsed.statement),
        }
    }

    /// Returns the plan in one line; `None` for a statement without one.
    pub fn summary(&self) -> Option<String> {
        match &self.kind {
            PreparedKind::Planned(slot) => slot.plan().map(|planned| planned.plan.summary()),
            PreparedKind::Utility(_) => None,
        }
    }

    /// Returns whether the statement is one get by key, which takes microseconds.
    pub fn is_point(&self) -> bool {
        match &self.kind {
            PreparedKind::Planned(slot) => {
                slot.plan.load().as_ref().is_some_and(|planned| planned.plan.point.is_some())
            }
            PreparedKind::Utility(_) => false,
        }
    }

    /// Returns the plan. It is planned again if the catalog or the size of a table has changed, or
    /// if the plan was forgotten.
    ///
    /// # Errors
    ///
    /// The errors of planning; 0A000 if the statement now returns other columns than the client was
    /// told.
    pub(crate) fn planned(&self, slot: &PlanSlot, planning: &Planning<'_>) -> Result<Arc<Planned>> {
        if let Some(planned) = slot.plan()
            && planned.is_current(planning)
        {
            return Ok(planned);
        }
        let parsed = slot.tree(&self.text)?;
        let types: Vec<_> = self.parameter_types.iter().copied().map(Some).collect();
        let again = planning.plan(&parsed.statement, &types)?;
        if !are_alike(again.columns.as_deref(), self.columns.as_deref()) {
            // Drivers that prepare the statement again know it by the routine.
            let message = "cached plan must not change result type";
            return Err(Error {
                raised_at: Some(&SourceLocation {
                    file: file!(),
                    line: line!(),
                    routine: "RevalidateCachedQuery",
                }),
                ..Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
            });
        }
        let planned = Arc::new(again.planned);
        slot.plan.store(Some(Arc::clone(&planned)));
        Ok(planned)
    }
}

/// Returns whether a client that was told of `left` can read rows of `right`: where a column comes
/// from does not matter, so that a table may be dropped and created again, nor what has become of
/// the type of its values, as in PostgreSQL.
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

/// Returns the tables that a statement writes to, ascending, so that all lock them in one order;
/// those of MERGE if it counts.
fn written_tables(bound: &Bound, counts: fn(&Merge) -> bool) -> Vec<TableId> {
    match bound {
        Bound::Query(_) => Vec::new(),
        Bound::Insert(insert) => vec![insert.table.id],
        Bound::Update(update) => vec![update.table.id],
        Bound::Delete(delete) => vec![delete.table.id],
        Bound::Merge(merge) => counts(merge).then_some(merge.table.id).into_iter().collect(),
        Bound::Steps(steps) => {
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

/// Returns the columns of a utility statement that returns rows of text, or of JSON.
pub(crate) fn utility_columns(statement: &Statement) -> Option<Vec<OutputColumn>> {
    let names: &[&str] = match statement {
        Statement::Explain(_) => &["QUERY PLAN"],
        Statement::Show(None) => &["name", "setting", "description"],
        Statement::Show(Some(name)) => &[name.value.as_str()],
        _ => return None,
    };
    let is_json = |explain: &ast::Explain| explain.format == ast::ExplainFormat::Json;
    let sql_type = match statement {
        Statement::Explain(explain) if is_json(explain) => DataType::Json.into(),
        _ => DataType::Text.into(),
    };
    let column = |name: &&str| OutputColumn { name: (*name).to_owned(), sql_type, origin: None };
    Some(names.iter().map(column).collect())
}
