//! Evaluation of PL/pgSQL expressions and statements: planned at their first execution, then
//! cached.
//!
//! Each SQL fragment of a body has a slot for its plan. Besides the [validity](PlanValidity) of
//! all plans, it depends on the target type and the shapes of the record variables. Expressions
//! without a query are evaluated in the evaluation context of the body; others are executed as
//! statements of the session's transaction.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use store::memory;
use types::expr::Expr;
use types::{Batch, DataType, Datum, SqlType};

use crate::ast::Statement;
use crate::binder::{
    BodyTarget, BodyValue, VariableScope, VariableSignature, VariableUse, bind_body_value,
    bind_in_body, field_value,
};
use crate::error::{Error, Result};
use crate::exec;
use crate::logical::{CurrentRow, OutputColumn};
use crate::planner::statistics::TableSizes;
use crate::plpgsql::body_tree::{FragmentKind, SqlFragment};
use crate::rows::{CommandTag, ResultRows, RunningPlan};
use crate::session::Session;
use crate::session::plan_cache::PlanValidity;
use crate::session::plpgsql::{BodyExecution, ExpressionContext};
use crate::session::prepared::{PlannedStatement, StatementPlan};
use crate::session::statement_executor::SnapshotPolicy;

/// Cached plan of an SQL fragment, with the inputs that it depends on.
pub(super) struct FragmentPlan {
    /// Target type of the value.
    target: Option<SqlType>,
    /// Shapes of the record variables that it uses.
    records: Vec<(usize, VariableSignature)>,
    uses: Vec<VariableUse>,
    plan: FragmentPlanKind,
}

enum FragmentPlanKind {
    /// Expression without a query.
    Value {
        expr: Expr,
        sql_type: SqlType,
        parameter_count: usize,
        calls: bool,
        validity: PlanValidity,
    },
    /// Statement, and the type of its value if it is an expression.
    Statement(Box<PlannedStatement>, SqlType),
}

/// Result of a statement in a body.
pub(super) struct StatementOutcome {
    /// Result rows, if the statement returns any.
    pub(super) rows: Option<ResultRows>,
    /// Number of changed rows.
    pub(super) row_count: u64,
    /// True for a data-changing statement.
    pub(super) changes: bool,
    /// True for EXECUTE.
    pub(super) is_dynamic: bool,
}

impl StatementOutcome {
    /// Returns the result of a statement without rows.
    pub(super) fn done() -> StatementOutcome {
        StatementOutcome { rows: None, row_count: 0, changes: false, is_dynamic: false }
    }

    /// Returns the columns of the rows.
    pub(super) fn columns(&self) -> Vec<OutputColumn> {
        self.rows.as_ref().map_or(Vec::new(), |rows| rows.columns().to_vec())
    }

    /// Returns the next row.
    pub(super) fn next_row(&mut self) -> Result<Option<Vec<Datum>>> {
        let Some(rows) = &mut self.rows else { return Ok(None) };
        Ok(rows.next_batch(1)?.map(|batch| batch.row(0)))
    }

    /// Reads the rows to the end; returns their number.
    pub(super) fn exhaust(&mut self) -> Result<u64> {
        let Some(rows) = &mut self.rows else { return Ok(self.row_count) };
        let mut count = 0;
        while let Some(batch) = rows.next_batch(usize::MAX)? {
            count += batch.row_count as u64;
        }
        Ok(if self.changes { self.row_count } else { count })
    }
}

impl FragmentPlan {
    fn validity(&self) -> &PlanValidity {
        match &self.plan {
            FragmentPlanKind::Value { validity, .. } => validity,
            FragmentPlanKind::Statement(statement, _) => &statement.planned.validity,
        }
    }

    /// Returns whether the plan is valid for a target type and the present variables.
    fn is_for(&self, run: &BodyExecution<'_>, target: Option<&SqlType>) -> bool {
        self.target.as_ref() == target
            && self.records.iter().all(|(at, shape)| run.shapes[*at] == *shape)
    }
}

impl BodyExecution<'_> {
    /// Returns the evaluation context of expressions.
    pub(super) fn expression_context(&mut self) -> Result<&mut ExpressionContext> {
        if self.world.is_none() {
            let catalog = self.session.catalog();
            let open = self.session.open.as_ref().ok_or_else(no_transaction)?;
            let eval = self.session.eval_context(open, Vec::new());
            let old_snapshot = self.session.newer_relations().map(|newer| newer.snapshot());
            self.world = Some(ExpressionContext { catalog, old_snapshot, eval });
        }
        self.world.as_mut().ok_or_else(no_transaction)
    }

    /// Returns the plan of a fragment, from the cache if it is valid.
    fn site(
        &mut self,
        fragment: &SqlFragment,
        target: BodyTarget<'_>,
    ) -> Result<Arc<FragmentPlan>> {
        let wanted = match target {
            BodyTarget::Type(to) => Some(to),
            BodyTarget::Any | BodyTarget::Part(..) => None,
        };
        let ExpressionContext { catalog, old_snapshot, .. } = self.expression_context()?;
        let (version, old_snapshot) = (catalog.version, *old_snapshot);
        let now = self.session.planning_state(version, old_snapshot);
        let compiled = Arc::clone(&self.compiled);
        let slot = &compiled.sites[fragment.number];
        if let Some(site) = &*slot.lock()
            && site.validity().is_current(&now)
            && site.is_for(self, wanted)
        {
            return Ok(Arc::clone(site));
        }
        let (site, bytes) = memory::measure(|| {
            let site = Arc::new(self.new_site(fragment, target, wanted.cloned())?);
            *slot.lock() = Some(Arc::clone(&site));
            Ok(site)
        });
        compiled.usage.bytes.fetch_add(bytes, Ordering::Relaxed);
        self.session.plan_cache.evict();
        site.map_err(|error| self.of_fragment(error, fragment))
    }

    fn new_site(
        &self,
        fragment: &SqlFragment,
        target: BodyTarget<'_>,
        wanted: Option<SqlType>,
    ) -> Result<FragmentPlan> {
        let scope = VariableScope {
            names: &self.compiled.body.names,
            place: fragment.place,
            shapes: &self.shapes,
            conflict: self.compiled.conflict,
        };
        let statement = &fragment.statement.statement;
        let (uses, plan) = self.session.with_planning(|planning| {
            if fragment.kind == FragmentKind::Statement {
                let bound = bind_in_body(statement, &scope, planning.binding_environment(), &[])?;
                let planned = planning.plan_bound(bound)?;
                let uses = planned.variables.clone();
                return Ok((
                    uses,
                    FragmentPlanKind::Statement(Box::new(planned), DataType::Void.into()),
                ));
            }
            let shown = (statement, fragment.text.as_str());
            let value = bind_body_value(shown, target, &scope, planning.binding_environment())?;
            let BodyValue { bound, sql_type, simple } = value;
            if simple.is_some() {
                bound.constants.check_generic()?;
            }
            let uses = bound.variables.clone();
            let plan = match simple {
                Some(expr) => FragmentPlanKind::Value {
                    calls: expr.calls_routines(),
                    expr,
                    sql_type,
                    parameter_count: bound.parameter_count,
                    validity: PlanValidity::new(
                        &planning.state,
                        planning.state.reads_followed,
                        TableSizes::default(),
                    ),
                },
                None => {
                    FragmentPlanKind::Statement(Box::new(planning.plan_bound(bound)?), sql_type)
                }
            };
            Ok((uses, plan))
        })?;
        let of_target = match target {
            BodyTarget::Part(variable, _) => Some(variable),
            BodyTarget::Any | BodyTarget::Type(_) => None,
        };
        let dynamic = uses.iter().map(|one| one.variable).chain(of_target);
        let mut records: Vec<(usize, VariableSignature)> = Vec::new();
        for variable in dynamic {
            let is_known = records.iter().any(|(known, _)| *known == variable);
            if !is_known && self.is_dynamic(variable) {
                records.push((variable, self.shapes[variable].clone()));
            }
        }
        Ok(FragmentPlan { target: wanted, records, uses, plan })
    }

    /// Returns whether the shape of a variable may change.
    fn is_dynamic(&self, variable: usize) -> bool {
        self.compiled.shapes[variable].is_record()
            || self.compiled.shapes[variable] != self.shapes[variable]
            || self.compiled.body.variables[variable].name.starts_with("__Case__")
    }

    /// Adds the position within a fragment to an error, or the fragment to its CONTEXT.
    pub(super) fn of_fragment(&self, error: Error, fragment: &SqlFragment) -> Error {
        if let Some(position) = error.position {
            let position = position.saturating_add_signed(fragment.shift);
            let internal = Some(Box::new((position, fragment.text.clone())));
            return Error { position: None, internal, ..error };
        }
        let what = match fragment.kind {
            FragmentKind::Statement => "SQL statement",
            FragmentKind::Expression => "SQL expression",
            FragmentKind::Assignment => "PL/pgSQL assignment",
        };
        within(error, what, &fragment.text)
    }

    /// Fills in the values of the parameters that represent variables.
    pub(super) fn parameters(&self, uses: &[VariableUse], count: usize, into: &mut Vec<Datum>) {
        into.clear();
        into.resize(count, Datum::Null);
        for one in uses {
            let value = &self.values[one.variable];
            into[one.parameter] = match one.field {
                None => value.clone(),
                Some(at) => field_value(value, at),
            };
        }
    }

    /// Returns the value of an expression, and its type.
    pub(super) fn value(
        &mut self,
        fragment: &SqlFragment,
        target: BodyTarget<'_>,
    ) -> Result<(Datum, SqlType)> {
        let site = self.site(fragment, target)?;
        match &site.plan {
            FragmentPlanKind::Value { expr, sql_type, parameter_count, calls, .. } => {
                if *calls {
                    // The expression may call functions: it must see the changes of statements
                    // before it.
                    self.session.begin_statement();
                    self.world = None;
                }
                let mut parameters =
                    std::mem::take(&mut self.expression_context()?.eval.parameters);
                self.parameters(&site.uses, *parameter_count, &mut parameters);
                let world = self.expression_context()?;
                world.eval.parameters = parameters;
                let value = expr.eval_row(&[], &world.eval);
                let value = value?;
                if *calls {
                    self.renew();
                }
                Ok((value, sql_type.clone()))
            }
            FragmentPlanKind::Statement(_, sql_type) => {
                let value = self.queried(fragment, target);
                let value = value.map_err(|error| self.of_fragment(error, fragment))?;
                Ok((value, sql_type.clone()))
            }
        }
    }

    /// Returns the new value of a variable. An array is changed in place if the expression
    /// updates it.
    pub(super) fn value_in_place(
        &mut self,
        fragment: &SqlFragment,
        target: BodyTarget<'_>,
        variable: usize,
    ) -> Result<Datum> {
        let site = self.site(fragment, target)?;
        let FragmentPlanKind::Value { expr, parameter_count, calls: false, .. } = &site.plan else {
            return Ok(self.value(fragment, target)?.0);
        };
        let is_changed = |parameter: &usize| {
            let mut uses = site.uses.iter();
            uses.any(|one| *one == VariableUse { parameter: *parameter, variable, field: None })
        };
        let Some(parameter) = expr.in_place_parameter().filter(is_changed) else {
            return Ok(self.value(fragment, target)?.0);
        };
        let mut parameters = std::mem::take(&mut self.expression_context()?.eval.parameters);
        self.parameters(&site.uses, *parameter_count, &mut parameters);
        // The only reference: the array is modified without a copy.
        self.values[variable] = Datum::Null;
        let eval = &mut self.expression_context()?.eval;
        eval.parameters = parameters;
        let value = expr.eval_in_place(eval);
        let before = std::mem::replace(&mut eval.parameters[parameter], Datum::Null);
        if value.is_err() {
            self.values[variable] = before;
        }
        Ok(value?)
    }

    /// Returns the value of an expression that is executed as a query.
    fn queried(&mut self, fragment: &SqlFragment, target: BodyTarget<'_>) -> Result<Datum> {
        let mut outcome = self.start(fragment, target)?;
        let row = outcome.next_row()?;
        self.row_count = u64::from(row.is_some());
        let Some(row) = row else { return Ok(Datum::Null) };
        if outcome.next_row()?.is_some() {
            bail!(CARDINALITY_VIOLATION: "query returned more than one row");
        }
        Ok(row.into_iter().next().unwrap_or(Datum::Null))
    }

    /// Returns the value of an expression, converted to a type.
    pub(super) fn value_as(&mut self, fragment: &SqlFragment, to: &DataType) -> Result<Datum> {
        Ok(self.value(fragment, BodyTarget::Type(&to.into()))?.0)
    }

    /// Returns whether a condition is true.
    pub(super) fn is_true(&mut self, fragment: &SqlFragment) -> Result<bool> {
        Ok(self.value_as(fragment, &DataType::Bool)? == Datum::Bool(true))
    }

    /// Drops the evaluation context if a query or data change has invalidated it.
    pub(super) fn renew(&mut self) {
        let has_set = self.session.changed.generation() != self.settings_seen;
        let is_same = self
            .world
            .as_ref()
            .is_some_and(|world| Arc::ptr_eq(&world.catalog, &self.session.catalog()));
        if has_set || !is_same {
            self.reset();
        }
    }

    /// Drops the evaluation context after a utility statement.
    pub(super) fn reset(&mut self) {
        self.world = None;
        self.session.follow_changed_settings();
        self.settings_seen = self.session.changed.generation();
    }

    /// Starts a query, or executes a data-changing statement.
    pub(super) fn start(
        &mut self,
        fragment: &SqlFragment,
        target: BodyTarget<'_>,
    ) -> Result<StatementOutcome> {
        loop {
            self.renew();
            let site = self.site(fragment, target)?;
            let FragmentPlanKind::Statement(statement, _) = &site.plan else {
                let (value, sql_type) = self.value(fragment, target)?;
                return Ok(self.one_row(value, &sql_type));
            };
            if !self.session.begin_embedded(&statement.planned)? {
                continue;
            }
            if self.session.is_stale(&statement.planned) {
                continue;
            }
            let mut parameters = Vec::new();
            let count = statement.planned.parameter_count;
            self.parameters(&site.uses, count, &mut parameters);
            let tag = fragment.statement.statement.tag();
            statement.planned.constants.check(&parameters)?;
            if let Some(row) = &statement.planned.current_row {
                let row = self.current_row(row, fragment);
                self.session.bind_row_key(&row, &mut parameters)?;
            }
            let outcome = self.session.run_embedded(statement, parameters, tag)?;
            self.renew();
            return Ok(outcome);
        }
    }

    /// Executes CALL of a PL/pgSQL procedure in the session itself; `None` if the session cannot.
    pub(super) fn call_in_session(
        &mut self,
        fragment: &SqlFragment,
    ) -> Result<Option<StatementOutcome>> {
        self.renew();
        let site = self.site(fragment, BodyTarget::Any)?;
        let FragmentPlanKind::Statement(statement, _) = &site.plan else { return Ok(None) };
        let planned = &statement.planned;
        let mut parameters = Vec::new();
        self.parameters(&site.uses, planned.parameter_count, &mut parameters);
        let Some(rows) = self.session.call_in_session(planned, parameters)? else {
            return Ok(None);
        };
        let columns = planned.columns.clone().unwrap_or_else(|| Arc::from([]));
        let types: Vec<DataType> =
            columns.iter().map(|column| column.sql_type.base.clone()).collect();
        let batch = Batch::from_rows(&types, &rows);
        let stop = Arc::clone(&self.session.stop);
        let rows = ResultRows::ready(columns, [batch], CommandTag::Returned("CALL"), stop);
        Ok(Some(StatementOutcome { rows: Some(rows), ..StatementOutcome::done() }))
    }

    /// Resolves WHERE CURRENT OF a cursor variable to the cursor's name.
    fn current_row(&self, row: &CurrentRow, fragment: &SqlFragment) -> CurrentRow {
        let names = [row.cursor.as_str()];
        let found = self.compiled.body.names.find(fragment.place, &names, |_| false);
        match found.map(|found| &self.values[found.variable]) {
            Some(Datum::Text(name)) => CurrentRow { cursor: name.to_string(), ..row.clone() },
            _ => row.clone(),
        }
    }

    fn one_row(&self, value: Datum, sql_type: &SqlType) -> StatementOutcome {
        let column =
            OutputColumn { name: "?column?".to_owned(), sql_type: sql_type.clone(), origin: None };
        let stop = Arc::clone(&self.session.stop);
        let rows = ResultRows::point(Arc::from([column]), Some(vec![value]), stop);
        StatementOutcome { rows: Some(rows), row_count: 0, changes: false, is_dynamic: false }
    }
}

impl Session {
    /// Starts a statement of a body and acquires its locks; returns whether the catalog is
    /// unchanged.
    pub(super) fn begin_embedded(&mut self, planned: &StatementPlan) -> Result<bool> {
        self.begin_request();
        let before = self.catalog();
        for table in &planned.writes {
            self.lock_for_write(*table)?;
        }
        if !planned.writes.is_empty() {
            self.wait_for_publication();
        }
        self.lock_tables_of(planned)?;
        Ok(Arc::ptr_eq(&before, &self.catalog()))
    }

    /// Starts a query or executes a data-changing statement, after [`Session::begin_embedded`].
    pub(super) fn run_embedded(
        &mut self,
        statement: &PlannedStatement,
        mut parameters: Vec<Datum>,
        tag: &str,
    ) -> Result<StatementOutcome> {
        let planned = &statement.planned;
        if matches!(self.snapshots, SnapshotPolicy::Fixed(_)) && !planned.plan.is_query() {
            bail!(FEATURE_NOT_SUPPORTED: "{tag} is not allowed in a non-volatile function");
        }
        self.check_permitted(planned, tag)?;
        parameters.resize(planned.parameter_count.max(parameters.len()), Datum::Null);
        let open = self.open.as_ref().ok_or_else(no_transaction)?;
        let transaction = Arc::clone(&open.transaction);
        let stop = Arc::clone(&self.stop);
        let columns = planned.columns.clone();
        if planned.plan.is_query() {
            let _turn = transaction.turn();
            self.check_readiness(planned)?;
            let mut context = self.context(open, parameters);
            let columns = columns.unwrap_or_else(|| Arc::from([]));
            let rows = match exec::point(&planned.plan, &mut context)? {
                Some(row) => ResultRows::point(columns, row, stop),
                None => {
                    let operator = exec::open(&planned.plan, context)?;
                    let running = RunningPlan { operator, transaction: Arc::clone(&transaction) };
                    ResultRows::streaming(columns, running, CommandTag::Returned("SELECT"), stop)
                }
            };
            return Ok(StatementOutcome {
                rows: Some(rows),
                row_count: 0,
                changes: false,
                is_dynamic: false,
            });
        }
        let _turn = transaction.turn();
        self.check_readiness(planned)?;
        let open = self.open.as_ref().ok_or_else(no_transaction)?;
        let context = self.context(open, parameters);
        let outcome = self.modify(planned, context)?;
        let rows = columns.map(|columns| {
            ResultRows::buffered(columns, outcome.returning, CommandTag::Returned("SELECT"), stop)
        });
        Ok(StatementOutcome {
            rows,
            row_count: outcome.row_count,
            changes: tag != "SELECT",
            is_dynamic: false,
        })
    }
}

/// Adds a statement to the CONTEXT of an error.
pub(super) fn within(error: Error, what: &str, text: &str) -> Error {
    if error.internal.is_some() && error.context.is_none() {
        return error;
    }
    let here = format!("{what} \"{text}\"");
    let context = match error.context {
        Some(context) => format!("{context}\n{here}"),
        None => here,
    };
    Error { context: Some(context), ..error }
}

/// Returns whether a statement is one that is planned.
pub(super) fn is_planned(statement: &Statement) -> bool {
    crate::session::prepared::is_planned(statement)
}

pub(super) fn no_transaction() -> Error {
    err!(INTERNAL_ERROR: "a body runs without a transaction")
}
