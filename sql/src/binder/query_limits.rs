//! Limits on the size of a query and the depth of its plan.
//!
//! Plans are walked, copied and dropped recursively, and elements of the same kind in a query
//! (entries of FROM, subqueries, windows, WITH queries) become nodes on top of each other. So
//! their number is checked when they are bound, and the depth of each query's plan when it is
//! complete: a plan that is too deep for the stack of a thread is rejected, as PostgreSQL rejects
//! what exceeds its own stack.

use crate::binder::tree::{for_each_input, for_each_source};
use crate::error::{Error, Result};
use crate::logical::{BoundPlan, Logical};

/// The maximum depth of a plan, and the maximum number of elements of one kind in a query.
const STEPS_MAX: usize = 1_000;

/// The maximum number of entries of a select list including hidden ones of ORDER BY, and of GROUP
/// BY: PostgreSQL's `MaxTupleAttributeNumber`. The protocol counts columns in 16 bits.
const ENTRIES_MAX: usize = 1_664;

/// Checks the number of entries of a list.
///
/// # Errors
///
/// 54011.
pub(super) fn check_entries(entries: usize) -> Result<()> {
    if entries <= ENTRIES_MAX {
        return Ok(());
    }
    bail!(TOO_MANY_COLUMNS: "target lists can have at most {ENTRIES_MAX} entries")
}

/// Checks the number of elements of one kind in a query.
///
/// # Errors
///
/// 54001.
pub(super) fn check_count(parts: usize) -> Result<()> {
    if parts > STEPS_MAX { Err(too_deep()) } else { Ok(()) }
}

/// Checks the plan of a query.
///
/// # Errors
///
/// 54001.
pub(super) fn check_plan(plan: &mut Logical) -> Result<()> {
    let mut open = vec![(plan, 1)];
    while let Some((plan, depth)) = open.pop() {
        check_count(depth)?;
        for_each_input(plan, &mut |input| open.push((input, depth + 1)));
    }
    Ok(())
}

/// Checks the plans of a statement.
///
/// # Errors
///
/// 54001.
pub(super) fn check_statement(bound: &mut BoundPlan) -> Result<()> {
    let mut checked = Ok(());
    for_each_source(bound, &mut |plan| {
        if checked.is_ok() {
            checked = check_plan(plan);
        }
    });
    checked
}

/// Returns the error for a query that exceeds the limit.
pub(super) fn too_deep() -> Error {
    err!(STATEMENT_TOO_COMPLEX: "stack depth limit exceeded";
        hint "Split the statement, or put parts of it into temporary tables.")
}
