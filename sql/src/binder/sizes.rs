//! How large a query may be, and how deep its plan.
//!
//! Plans are walked, copied and dropped by recursion, and the parts of a query that stand beside
//! each other (entries of FROM, subqueries, windows, queries of WITH) are steps on top of each
//! other in its plan. So each of these is counted where it is bound, and each query's whole plan is
//! measured once it is there: what is too deep for the stack of a thread is refused, as PostgreSQL
//! refuses what is too deep for its own.

use crate::binder::tree::{for_each_input, for_each_source};
use crate::error::{Error, Result, sqlstate};
use crate::logical::{Bound, Logical};

/// Steps on the longest way through a plan, and parts of a query of one kind.
const STEPS_MAX: usize = 1_000;

/// Entries of a select list with those that ORDER BY adds to it, and of GROUP BY: PostgreSQL's
/// `MaxTupleAttributeNumber`. The protocol counts columns in 16 bits.
const ENTRIES_MAX: usize = 1_664;

/// Checks how many entries a list has.
///
/// # Errors
///
/// 54011.
pub(super) fn check_entries(entries: usize) -> Result<()> {
    if entries <= ENTRIES_MAX {
        return Ok(());
    }
    let message = format!("target lists can have at most {ENTRIES_MAX} entries");
    Err(Error::new(sqlstate::TOO_MANY_COLUMNS, message))
}

/// Checks how many parts of a kind a query has.
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
pub(super) fn check_statement(bound: &mut Bound) -> Result<()> {
    let mut checked = Ok(());
    for_each_source(bound, &mut |plan| {
        if checked.is_ok() {
            checked = check_plan(plan);
        }
    });
    checked
}

/// Returns the refusal.
pub(super) fn too_deep() -> Error {
    Error::new(sqlstate::STATEMENT_TOO_COMPLEX, "stack depth limit exceeded")
        .with_hint("Split the statement, or put parts of it into temporary tables.")
}
