//! Rows that are locked: by a step above those that make them, or by the scan itself.
//!
//! A scan can lock the rows of a query that reads one table and does no more than check them, where
//! they come in the wanted order. It locks them as it meets them, and yields them as they are then.
//! What calls functions of users, or what is volatile, is checked before a row is locked, and rows
//! are sorted before: there the step is one of its own.
//!
//! Source: PostgreSQL has a step of its own always (`LockRows`).

use std::sync::Arc;

use types::Datum;
use types::expr::Expr;

use crate::logical::{HeldRows, LockRows, LockedTable, Logical, SortKey, TableScan};
use crate::plan::{HeldNode, LockRowsNode, Node, RowGoal};
use crate::planner::conjunct::{Columns, column, is_volatile};
use crate::planner::notes::Notes;
use crate::planner::wanted::{Built, Wanted};

/// Returns the rows locked by the scan that yields them, if it can do that.
pub(super) fn at_the_scan(lock: &LockRows) -> Option<Logical> {
    match lock.held.tables.as_slice() {
        [table] => marked(&lock.input, table),
        _ => None,
    }
}

fn marked(plan: &Logical, locked: &LockedTable) -> Option<Logical> {
    match plan {
        Logical::Scan(scan) => {
            Some(Logical::Scan(TableScan { lock: Some(locked.lock), ..scan.clone() }))
        }
        Logical::Filter { input, predicate } if !is_volatile(predicate) => {
            let (input, predicate) = (Box::new(marked(input, locked)?), predicate.clone());
            Some(Logical::Filter { input, predicate })
        }
        Logical::Project { input, expressions } => {
            let (input, expressions) = (Box::new(marked(input, locked)?), expressions.clone());
            Some(Logical::Project { input, expressions })
        }
        _ => None,
    }
}

/// Builds rows that are locked, with `build` for the steps below.
pub(super) fn build(
    lock: LockRows,
    goal: Option<RowGoal>,
    notes: Notes<'_>,
    build: &dyn Fn(Logical, Wanted, Notes<'_>) -> Built,
) -> Node {
    if let Some(node) = built_in_order(&lock, &goal, notes, build) {
        return node;
    }
    // Some of the first rows may be locked by others, or not be wanted any more.
    let input = build(*lock.input, Wanted::default(), notes).node;
    let again = build(*lock.again, Wanted::default(), Notes::NONE).node;
    let HeldRows { tables, copies } = lock.held;
    let held = HeldNode { tables, copies, again };
    Node::LockRows(Arc::new(LockRowsNode { input, held, goal }))
}

/// Builds the rows of a table in the order that they are wanted in, which they have by a key.
fn built_in_order(
    lock: &LockRows,
    goal: &Option<RowGoal>,
    notes: Notes<'_>,
    build: &dyn Fn(Logical, Wanted, Notes<'_>) -> Built,
) -> Option<Node> {
    let Logical::Sort { input, keys } = lock.input.as_ref() else { return None };
    let [table] = lock.held.tables.as_slice() else { return None };
    if keys.iter().any(|key: &SortKey| is_volatile(&key.expression)) {
        return None;
    }
    let wanted = Wanted { order: keys.clone(), goal: goal.clone() };
    let built = build(marked(input, table)?, wanted, notes);
    built.ordered.then_some(built.node)
}

/// Leaves of the step what is wanted of its columns: `prune` yields at least those of a plan that
/// it is asked for, and tells which it kept.
pub(super) fn pruned(
    lock: LockRows,
    required: &Columns,
    prune: impl Fn(Logical, &Columns) -> (Logical, Vec<usize>),
) -> (LockRows, Vec<usize>) {
    let LockRows { input, again, mut held } = lock;
    let (again, again_kept) = prune(*again, required);
    let mut used = Columns::new();
    again.for_each_expression(&mut |expression| {
        expression.walk(&mut |part| {
            if let Expr::Parameter { index, .. } = part {
                used.insert(*index);
            }
        });
    });
    held.retain_parameters(&|parameter| used.contains(&parameter));
    let types = input.column_types();
    let mut need = required.clone();
    need.extend(held.needed());
    let (input, kept) = prune(*input, &need);
    let place = |list: &[usize], at: usize| list.binary_search(&at).ok();
    held.renumber(&|at| place(&kept, at).expect("a column that is read was asked for"));
    // What only locks are about is not looked at any more in a row that was made again.
    let value = |&at: &usize| match place(&again_kept, at) {
        Some(position) => column(position, types[at]),
        None => Expr::Constant { value: Datum::Null, data_type: types[at] },
    };
    let values = kept.iter().map(value).collect();
    let again = Box::new(Logical::Project { input: Box::new(again), expressions: values });
    (LockRows { input: Box::new(input), again, held }, kept)
}
