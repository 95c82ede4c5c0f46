//! Traversal of logical plans: inputs, expressions, and side effects and volatility of a plan.
//!
//! The rules of the planner use it to visit plans, and to decide whether a subplan may be moved,
//! duplicated or evaluated early.

use types::expr::Expr;
use types::function::sets;

use super::{
    ApplyKind, BoundPlan, Insert, LockRows, Logical, OnConflict, Returning, RowCheck, SetCall,
    SetFunction, TableScan,
};

impl SetFunction {
    /// Returns whether it is a VOLATILE user-defined function, which sees the statement's
    /// changes.
    pub fn calls_volatile_routine(&self) -> bool {
        matches!(&self.call, SetCall::Routine { routine, .. } if routine.is_volatile)
    }
}

impl Logical {
    /// Returns the direct inputs, the outer input before the subquery.
    pub fn inputs(&self) -> Vec<&Logical> {
        match self {
            Logical::Scan(_)
            | Logical::SystemRows(_)
            | Logical::Values { .. }
            | Logical::Constants(_)
            | Logical::CteScan(_) => Vec::new(),
            Logical::Filter { input, .. }
            | Logical::Barrier { input }
            | Logical::Project { input, .. }
            | Logical::Aggregate { input, .. }
            | Logical::Sort { input, .. }
            | Logical::Limit { input, .. }
            | Logical::Distinct { input, .. } => vec![input],
            Logical::Join(join) => vec![&join.left, &join.right],
            Logical::Apply(apply) => vec![&apply.input, &apply.subquery],
            Logical::SetOperation(operation) => vec![&operation.left, &operation.right],
            Logical::LockRows(LockRows { input, re_evaluation: again, .. }) => vec![input, again],
            Logical::ProjectSet(sets) => vec![&sets.input],
            Logical::GroupingSets(grouping) => vec![&grouping.input],
            Logical::Window(window) => vec![&window.input],
            Logical::With(with) => vec![&with.query, &with.body],
            Logical::RecursiveUnion(union) => vec![&union.start, &union.step],
            Logical::Append { inputs } => inputs.iter().collect(),
        }
    }

    /// Like [`Logical::inputs`], mutable.
    pub fn inputs_mut(&mut self) -> Vec<&mut Logical> {
        match self {
            Logical::Scan(_)
            | Logical::SystemRows(_)
            | Logical::Values { .. }
            | Logical::Constants(_)
            | Logical::CteScan(_) => Vec::new(),
            Logical::Filter { input, .. }
            | Logical::Barrier { input }
            | Logical::Project { input, .. }
            | Logical::Aggregate { input, .. }
            | Logical::Sort { input, .. }
            | Logical::Limit { input, .. }
            | Logical::Distinct { input, .. } => vec![input],
            Logical::Join(join) => vec![&mut join.left, &mut join.right],
            Logical::Apply(apply) => vec![&mut apply.input, &mut apply.subquery],
            Logical::SetOperation(operation) => vec![&mut operation.left, &mut operation.right],
            Logical::LockRows(LockRows { input, re_evaluation: again, .. }) => vec![input, again],
            Logical::ProjectSet(sets) => vec![&mut sets.input],
            Logical::GroupingSets(grouping) => vec![&mut grouping.input],
            Logical::Window(window) => vec![&mut window.input],
            Logical::With(with) => vec![&mut with.query, &mut with.body],
            Logical::RecursiveUnion(union) => vec![&mut union.start, &mut union.step],
            Logical::Append { inputs } => inputs.iter_mut().collect(),
        }
    }

    /// Calls `visit` on each expression of the node itself, not of its inputs.
    pub fn for_each_own_expression(&self, visit: &mut dyn FnMut(&Expr)) {
        match self {
            Logical::Scan(scan) => times(scan).for_each(visit),
            Logical::SystemRows(rows) => rows.arguments.iter().for_each(visit),
            Logical::Values { rows, .. } => rows.iter().flatten().for_each(visit),
            Logical::Filter { predicate, .. } => visit(predicate),
            Logical::Project { expressions, .. } => expressions.iter().for_each(visit),
            Logical::Join(join) => visit(&join.on),
            Logical::Apply(apply) => apply.expressions().for_each(visit),
            Logical::Aggregate { group_by, aggregates, .. } => {
                group_by.iter().for_each(&mut *visit);
                aggregates.iter().flat_map(|one| one.expressions()).for_each(visit);
            }
            Logical::ProjectSet(sets) => sets.arguments().for_each(visit),
            Logical::GroupingSets(grouping) => {
                grouping.group_by.iter().for_each(&mut *visit);
                grouping.aggregates.iter().flat_map(|one| one.expressions()).for_each(visit);
            }
            Logical::Sort { keys, .. } => keys.iter().for_each(|key| visit(&key.expression)),
            Logical::Limit { limit, offset, ties, .. } => {
                limit.iter().chain(offset).chain(ties).for_each(visit);
            }
            Logical::Distinct { on, .. } => on.iter().for_each(visit),
            Logical::Window(window) => window.for_each_expression(visit),
            Logical::Constants(_)
            | Logical::SetOperation(_)
            | Logical::LockRows(_)
            | Logical::With(_)
            | Logical::CteScan(_)
            | Logical::RecursiveUnion(_)
            | Logical::Barrier { .. }
            | Logical::Append { .. } => {}
        }
    }

    /// Calls `visit` on the node and all its descendants, parents first.
    pub fn walk(&self, visit: &mut dyn FnMut(&Logical)) {
        visit(self);
        self.inputs().into_iter().for_each(|input| input.walk(visit));
    }

    /// Calls `visit` on every expression of the plan.
    pub fn for_each_expression(&self, visit: &mut dyn FnMut(&Expr)) {
        self.walk(&mut |step| step.for_each_own_expression(visit));
    }

    /// Returns whether the number of evaluations of the plan, or their rows, matter: it locks
    /// rows or calls volatile functions.
    pub fn has_effects(&self) -> bool {
        let mut locks = false;
        self.walk(&mut |step| locks |= matches!(step, Logical::LockRows(_)));
        locks || self.is_volatile()
    }

    /// Returns whether the plan calls volatile functions.
    pub fn is_volatile(&self) -> bool {
        let mut found = self.calls_volatile_sets();
        self.for_each_expression(&mut |expr| found |= expr.is_volatile());
        found
    }

    /// Returns whether the plan calls VOLATILE user-defined functions, which see the statement's
    /// changes.
    pub fn calls_volatile_routines(&self) -> bool {
        let mut found = self.calls_volatile_sets();
        self.for_each_expression(&mut |expr| found |= expr.calls_volatile_routines());
        found
    }

    fn calls_volatile_sets(&self) -> bool {
        let mut found = false;
        self.walk(&mut |step| {
            if let Logical::ProjectSet(sets) = step {
                found |= sets.functions.iter().any(SetFunction::calls_volatile_routine);
            }
        });
        found
    }

    /// Returns whether computing the plan may raise an error for rows that are not needed, or may
    /// not terminate.
    pub fn may_fail(&self) -> bool {
        let mut found = false;
        self.walk(&mut |step| found |= step.step_may_fail());
        self.for_each_expression(&mut |expr| found |= expr.may_fail());
        found
    }

    fn step_may_fail(&self) -> bool {
        let is_safe = |one: &SetFunction| match &one.call {
            SetCall::Set { function, .. } => sets::signature(*function).name == "unnest",
            SetCall::Value(_) => true,
            SetCall::Routine { .. } => false,
        };
        match self {
            Logical::Scan(scan) => scan.system_time.is_some() || scan.lock.is_some(),
            Logical::SystemRows(rows) => !rows.arguments.is_empty(),
            Logical::ProjectSet(sets) => !sets.functions.iter().all(is_safe),
            Logical::Apply(apply) => {
                apply.kind == ApplyKind::Scalar && !apply.subquery.is_single_row()
            }
            Logical::LockRows(_) | Logical::RecursiveUnion(_) => true,
            _ => false,
        }
    }

    /// Returns whether the plan evidently yields at most one row.
    pub fn is_single_row(&self) -> bool {
        match self {
            Logical::Aggregate { group_by, .. } => group_by.is_empty(),
            Logical::Limit { limit: Some(Expr::Constant { value, .. }), ties, .. } => {
                ties.is_empty() && value.as_i64().is_some_and(|rows| rows <= 1)
            }
            Logical::Project { input, .. }
            | Logical::Filter { input, .. }
            | Logical::Barrier { input } => input.is_single_row(),
            Logical::Values { rows, .. } => rows.len() <= 1,
            _ => false,
        }
    }
}

impl BoundPlan {
    /// Returns whether the statement calls VOLATILE user-defined functions, which see its
    /// changes.
    pub fn calls_volatile_routines(&self) -> bool {
        let calls = Expr::calls_volatile_routines;
        let returns = |returning: &Option<Returning>| {
            returning.iter().flat_map(|returning| &returning.expressions).any(calls)
        };
        match self {
            BoundPlan::Query(query) => query.plan.calls_volatile_routines(),
            BoundPlan::Insert(insert) => {
                insert.calls_volatile_routines() || returns(&insert.returning)
            }
            BoundPlan::Update(update) => {
                update.source.calls_volatile_routines()
                    || update.assignments.iter().any(|one| calls(&one.value))
                    || update.checks.iter().any(RowCheck::calls_volatile_routines)
                    || returns(&update.returning)
            }
            BoundPlan::Delete(delete) => {
                delete.source.calls_volatile_routines() || returns(&delete.returning)
            }
            BoundPlan::Merge(merge) => {
                let clauses = &merge.clauses;
                merge.source.calls_volatile_routines()
                    || clauses.iter().flat_map(|clause| &clause.condition).any(calls)
                    || clauses.iter().any(|clause| clause.action.expressions().any(calls))
            }
            BoundPlan::Steps(steps) => {
                steps.before.iter().any(|step| step.bound.calls_volatile_routines())
                    || steps.last.calls_volatile_routines()
            }
        }
    }
}

impl Insert {
    /// Returns the same without regard to RETURNING.
    fn calls_volatile_routines(&self) -> bool {
        let calls = Expr::calls_volatile_routines;
        let on_conflict = match &self.on_conflict {
            OnConflict::Update { assignments, predicate, .. } => {
                assignments.iter().any(|one| calls(&one.value)) || predicate.iter().any(calls)
            }
            _ => false,
        };
        on_conflict
            || self.source.calls_volatile_routines()
            || self.conflict_row.iter().any(|row| row.plan.calls_volatile_routines())
            || self.checks.iter().any(RowCheck::calls_volatile_routines)
    }
}

impl RowCheck {
    fn calls_volatile_routines(&self) -> bool {
        self.predicate.calls_volatile_routines()
            || self.row.iter().any(|row| row.plan.calls_volatile_routines())
    }
}

/// Returns the times of FOR SYSTEM_TIME.
fn times(scan: &TableScan) -> impl Iterator<Item = &Expr> {
    scan.system_time.iter().flat_map(|system_time| &system_time.times)
}
