//! Execution of data-changing statements, with data-changing WITH.
//!
//! Parts of WITH that are read are executed first, in their order: data-changing ones to
//! completion, queries on demand. Data-changing parts that are not read are executed after the
//! statement itself, the last one first, as PostgreSQL does (`ExecPostprocessPlan`). All parts
//! use the snapshot of the statement, so the order only determines which of them changes a row
//! first.

use std::sync::Arc;

use crate::error::Result;
use crate::exec::cte::CteRows;
use crate::exec::{Context, ModifyOutcome, build, insert, merge, update};
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
