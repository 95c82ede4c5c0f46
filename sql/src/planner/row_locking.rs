//! Planning of row locks: by a LockRows node, or by the scan itself.
//!
//! A scan can lock the rows of a query that reads one table and only filters them, if they have
//! the required order. It locks them as it reads them, and returns their newest versions.
//! User-defined functions and volatile conditions are evaluated before a row is locked, and a
//! sort comes before; these need a LockRows node.
//!
//! Source: PostgreSQL always has a separate node (`LockRows`).

use std::sync::Arc;

use types::Datum;
use types::expr::Expr;

use crate::logical::{LockRows, LockedTable, LockedTables, Logical, SortKey, TableScan};
use crate::plan::{LockRowsNode, LockedTablesNode, Node, RowGoal};
use crate::planner::conjunct::{Columns, column, is_volatile};
use crate::planner::estimate_recording::EstimateRecorder;
use crate::planner::physical_properties::{ProvidedProperties, RequiredProperties};

/// Returns the plan with the locks moved into its scan, if possible.
pub(super) fn move_into_scan(lock: &LockRows) -> Option<Logical> {
    match lock.locked_tables.tables.as_slice() {
        [table] => marked(&lock.input, table),
        _ => None,
    }
}

fn marked(plan: &Logical, locked: &LockedTable) -> Option<Logical> {
    match plan {
        Logical::Scan(scan) => {
            Some(Logical::Scan(TableScan { lock: Some(locked.lock), ..scan.clone() }))
        }
        // Rows that a condition above the barrier drops are not locked.
        Logical::Filter { input, .. } if matches!(**input, Logical::Barrier { .. }) => None,
        Logical::Barrier { input } => {
            Some(Logical::Barrier { input: Box::new(marked(input, locked)?) })
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

/// Builds a LockRows node, with `build` for its inputs.
pub(super) fn build(
    lock: LockRows,
    goal: Option<RowGoal>,
    notes: EstimateRecorder<'_>,
    build: &dyn Fn(Logical, RequiredProperties, EstimateRecorder<'_>) -> ProvidedProperties,
) -> Node {
    if let Some(node) = built_in_order(&lock, &goal, notes, build) {
        return node;
    }
    // Without a row goal for the input: some of its first rows may be skipped or not qualify any
    // more.
    let input = build(*lock.input, RequiredProperties::default(), notes).node;
    let again =
        build(*lock.re_evaluation, RequiredProperties::default(), EstimateRecorder::NONE).node;
    let LockedTables { tables, copies } = lock.locked_tables;
    let held = LockedTablesNode { tables, copies, again };
    Node::LockRows(Arc::new(LockRowsNode { input, held, goal }))
}

/// Builds the locked rows of a table in the required order, if a key provides it.
fn built_in_order(
    lock: &LockRows,
    goal: &Option<RowGoal>,
    notes: EstimateRecorder<'_>,
    build: &dyn Fn(Logical, RequiredProperties, EstimateRecorder<'_>) -> ProvidedProperties,
) -> Option<Node> {
    let Logical::Sort { input, keys } = lock.input.as_ref() else { return None };
    let [table] = lock.locked_tables.tables.as_slice() else { return None };
    if keys.iter().any(|key: &SortKey| is_volatile(&key.expression)) {
        return None;
    }
    let wanted = RequiredProperties { order: keys.clone(), goal: goal.clone(), groups: None };
    let built = build(marked(input, table)?, wanted, notes);
    built.ordered.then_some(built.node)
}

/// Prunes the columns of the node. `prune` returns a plan with at least the requested columns,
/// and the retained positions.
pub(super) fn pruned(
    lock: LockRows,
    required: &Columns,
    prune: impl Fn(Logical, &Columns) -> (Logical, Vec<usize>),
) -> (LockRows, Vec<usize>) {
    let LockRows { input, re_evaluation: again, locked_tables: mut held } = lock;
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
    // Columns that are only needed for locking are not read in a re-evaluated row.
    let value = |&at: &usize| match place(&again_kept, at) {
        Some(position) => column(position, &types[at]),
        None => Expr::Constant { value: Datum::Null, data_type: types[at].clone() },
    };
    let values = kept.iter().map(value).collect();
    let again = Box::new(Logical::Project { input: Box::new(again), expressions: values });
    (LockRows { input: Box::new(input), re_evaluation: again, locked_tables: held }, kept)
}
