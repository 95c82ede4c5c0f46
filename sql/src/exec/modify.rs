//! Statements that change data, run to their end.

use std::sync::Arc;

use crate::error::{Error, Result, sqlstate};
use crate::exec::{Context, ModifyOutcome, delete, insert, update};
use crate::plan::{Plan, Root};

/// Runs a plan that changes data. What it staged before an error stays staged: the caller rolls
/// back to the savepoint it took before the statement.
///
/// # Errors
///
/// 23505 for duplicate keys, what observers refuse, 40001 and 40P01; XX000 if the plan is a query.
pub fn modify(plan: &Arc<Plan>, context: Context) -> Result<ModifyOutcome> {
    let context = Arc::new(context.prepared_for(plan));
    match &plan.root {
        Root::Insert(insert) => insert::run(insert, &context),
        Root::Update(update) => update::run(update, &context),
        Root::Delete(delete) => delete::run(delete, &context),
        Root::Query(_) => {
            Err(Error::new(sqlstate::INTERNAL_ERROR, "a query was run as a change of data"))
        }
    }
}
