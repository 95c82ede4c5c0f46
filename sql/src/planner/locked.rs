//! FOR UPDATE of a table whose rows are sorted: only those that the statement yields are locked.
//!
//! A scan that locks takes its rows as it meets them, which is right where they come in the wanted
//! order. Where they are sorted, `ORDER BY … LIMIT 1 FOR UPDATE SKIP LOCKED` would lock all of
//! them: there the rows are read and sorted without locks, and the first ones locked and read
//! again, as PostgreSQL does it. What has changed meanwhile is yielded as it is now, where it was
//! sorted.

use std::sync::Arc;

use types::expr::Expr;

use crate::logical::{Logical, SortKey, TableScan};
use crate::plan::Node;
use crate::plan::scan::ScanNode;
use crate::planner::conjunct::{columns_of, is_volatile, renumber};
use crate::planner::notes::Notes;
use crate::planner::scan;
use crate::planner::wanted::Wanted;

/// A locking scan taken apart.
pub(super) struct LockedRows {
    /// Reads the rows without locks: what they are sorted by and the primary key.
    pub unlocked: Logical,
    /// The order, over its columns.
    pub keys: Vec<SortKey>,
    /// Where the primary key is, in key order.
    pub key: Vec<usize>,
    /// What is locked, checked again and yielded of each row.
    pub scan: Arc<ScanNode>,
}

/// Takes a plan apart that reads one table, locks its rows and does no more than check them.
pub(super) fn locked_rows(
    plan: &Logical,
    keys: &[SortKey],
    notes: Notes<'_>,
) -> Option<LockedRows> {
    let (table_scan, predicate) = match plan {
        Logical::Scan(scan) => (scan, None),
        Logical::Filter { input, predicate } if !is_volatile(predicate) => match input.as_ref() {
            Logical::Scan(scan) => (scan, Some(predicate)),
            _ => return None,
        },
        _ => return None,
    };
    table_scan.lock?;
    let conjuncts = predicate.into_iter().cloned().collect();
    let built = scan::build(table_scan, conjuncts, &Wanted::default(), notes);
    let Node::Scan(scan) = built.node else { return None };
    let width = table_scan.columns.len();
    let columns = table_scan.columns.iter().copied().chain(table_scan.table.key_columns());
    let all = TableScan { columns: columns.collect(), lock: None, ..table_scan.clone() };
    let types = Logical::Scan(all.clone()).column_types();
    let mut used: Vec<usize> = Vec::new();
    for key in keys {
        used.extend(columns_of(&key.expression));
    }
    used.sort_unstable();
    used.dedup();
    let place = |column: usize| used.iter().position(|&one| one == column);
    let place = |column| place(column).expect("it was gathered above");
    let sorted_by = |key: &SortKey| SortKey {
        expression: renumber(key.expression.clone(), &place),
        ..key.clone()
    };
    let keys = keys.iter().map(sorted_by).collect();
    let first = used.len();
    let yielded = used.iter().copied().chain(width..types.len());
    let expressions = yielded.map(|column| Expr::column(column, types[column])).collect();
    let key = (first..first + types.len() - width).collect();
    let mut input = Logical::Scan(all);
    if let Some(predicate) = predicate {
        input = Logical::Filter { input: Box::new(input), predicate: predicate.clone() };
    }
    let unlocked = Logical::Project { input: Box::new(input), expressions };
    Some(LockedRows { unlocked, keys, key, scan })
}
