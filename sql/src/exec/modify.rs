//! Execution of data-changing statements, with data-changing WITH.
//!
//! Parts of WITH that are read are executed first, in their order: data-changing ones to
//! completion, queries on demand. Data-changing parts that are not read are executed after the
//! statement itself, the last one first, as PostgreSQL does (`ExecPostprocessPlan`). All parts
//! use the snapshot of the statement, so the order only determines which of them changes a row
//! first.

use std::sync::Arc;

use crate::ast::TriggerEvent;
use crate::catalog::table::Table;
use crate::error::Result;
use crate::exec::cte::CteRows;
use crate::exec::{Context, ModifyOutcome, build, insert, merge, update};
use crate::logical::{Assignment, MergeAction, OnConflict};
use crate::plan::{Node, Plan, PlanRoot, WithPart};

/// Executes a data-changing plan. Writes staged before an error remain staged: the caller rolls
/// back to the savepoint from before the statement.
///
/// # Errors
///
/// 23505 for duplicate keys, errors of observers, 40001 and 40P01.
pub fn modify(plan: &Arc<Plan>, context: Context) -> Result<ModifyOutcome> {
    let context = Arc::new(context.prepared_for(plan)?);
    if plan.before.is_empty() {
        return run(&plan.root, &context);
    }
    let mut parts =
        WithParts { parts: &plan.before, context, done: vec![false; plan.before.len()] };
    parts.make_ready_for(&plan.root)?;
    let outcome = run(&plan.root, &parts.context)?;
    for at in (0..plan.before.len()).rev() {
        if !matches!(plan.before[at].root, PlanRoot::Query(_)) {
            parts.execute_part(at)?;
        }
    }
    Ok(outcome)
}

/// Parts of WITH of a running statement.
struct WithParts<'a> {
    parts: &'a [WithPart],
    /// Context with the rows of executed parts.
    context: Arc<Context>,
    done: Vec<bool>,
}

impl WithParts<'_> {
    /// Executes the parts that a node reads.
    fn make_ready_for(&mut self, root: &PlanRoot) -> Result<()> {
        let reads = root.read_with_parts();
        for at in 0..self.parts.len() {
            if reads.contains(&self.parts[at].id) {
                self.execute_part(at)?;
            }
        }
        Ok(())
    }

    /// Executes a data-changing part, or registers the rows of a query.
    fn execute_part(&mut self, at: usize) -> Result<()> {
        if std::mem::replace(&mut self.done[at], true) {
            return Ok(());
        }
        let WithPart { id, root, .. } = &self.parts[at];
        self.make_ready_for(root)?;
        let rows = match root {
            PlanRoot::Query(node) => CteRows::closed(node, &self.context),
            change => CteRows::ready(run(change, &self.context)?.returning),
        };
        self.context = self.context.with_rows(*id, Arc::new(rows));
        Ok(())
    }
}

fn run(root: &PlanRoot, context: &Arc<Context>) -> Result<ModifyOutcome> {
    let has_triggers = target_of(root).is_some_and(|table| !context.triggers_of(table).is_empty());
    let events = if has_triggers { statement_events(root) } else { Vec::new() };
    for (table, event, assigned) in &events {
        context.call_before_statement(table, (*event, assigned))?;
    }
    let outcome = change(root, context)?;
    for (table, event, assigned) in events.iter().rev() {
        context.queue_after_statement(table, (*event, assigned))?;
    }
    Ok(outcome)
}

/// Returns the table that a plan changes.
fn target_of(root: &PlanRoot) -> Option<&Arc<Table>> {
    match root {
        PlanRoot::Insert(insert) => Some(&insert.table),
        PlanRoot::Change(change) => Some(&change.table),
        PlanRoot::Merge(merge) => Some(&merge.table),
        PlanRoot::Query(_) => None,
    }
}

/// Returns the events of statement triggers in the order of BEFORE triggers, each with the
/// assigned columns.
fn statement_events(root: &PlanRoot) -> Vec<(&Arc<Table>, TriggerEvent, Vec<usize>)> {
    let columns =
        |set: &[Assignment]| set.iter().map(|assignment| assignment.column).collect::<Vec<_>>();
    match root {
        PlanRoot::Insert(insert) => {
            let updated = match &insert.on_conflict {
                OnConflict::Error | OnConflict::Ignore { .. } => None,
                OnConflict::Overwrite => Some(insert.named_columns.clone()),
                OnConflict::Update { assignments, .. } => Some(columns(assignments)),
            };
            let updated = updated.map(|columns| (&insert.table, TriggerEvent::Update, columns));
            let inserted = (&insert.table, TriggerEvent::Insert, Vec::new());
            std::iter::once(inserted).chain(updated).collect()
        }
        PlanRoot::Change(change) => vec![match &change.assignments {
            Some(set) => (&change.table, TriggerEvent::Update, columns(set)),
            None => (&change.table, TriggerEvent::Delete, Vec::new()),
        }],
        PlanRoot::Merge(merge) => {
            let mut updated: Option<Vec<usize>> = None;
            let (mut inserts, mut deletes) = (false, false);
            for clause in &merge.clauses {
                match &clause.action {
                    MergeAction::Insert(_) => inserts = true,
                    MergeAction::Delete => deletes = true,
                    MergeAction::Update(set) => {
                        updated.get_or_insert_default().extend(columns(set));
                    }
                    MergeAction::Nothing => {}
                }
            }
            let inserted = inserts.then(|| (TriggerEvent::Insert, Vec::new()));
            let updated = updated.map(|columns| (TriggerEvent::Update, columns));
            let deleted = deletes.then(|| (TriggerEvent::Delete, Vec::new()));
            let events = [inserted, updated, deleted].into_iter().flatten();
            events.map(|(event, columns)| (&merge.table, event, columns)).collect()
        }
        PlanRoot::Query(_) => Vec::new(),
    }
}

fn change(root: &PlanRoot, context: &Arc<Context>) -> Result<ModifyOutcome> {
    match root {
        PlanRoot::Insert(insert) => insert::run(insert, context),
        PlanRoot::Change(change) => update::run(change, context),
        PlanRoot::Merge(merge) => merge::run(merge, context),
        PlanRoot::Query(node) => read(node, context),
    }
}

/// Reads the rows of a query that yields one row for each changed row.
fn read(node: &Node, context: &Arc<Context>) -> Result<ModifyOutcome> {
    let mut operator = build(node, context)?;
    let mut outcome = ModifyOutcome::default();
    while let Some(batch) = operator.next()? {
        context.check()?;
        outcome.row_count += batch.row_count as u64;
        outcome.returning.push(batch, &context.room())?;
    }
    Ok(outcome)
}
