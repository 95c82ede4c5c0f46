//! Dependencies between the parts of WITH: the named queries that a plan reads.

use store::TableId;

use crate::plan::{Node, PlanRoot, RowAtHandPlan, RowCheckPlan};

impl PlanRoot {
    /// Returns the table whose rows it changes; `None` for a query.
    pub fn changed_table(&self) -> Option<TableId> {
        match self {
            PlanRoot::Query(_) => None,
            PlanRoot::Insert(insert) => Some(insert.table.id),
            PlanRoot::Change(change) => Some(change.table.id),
            PlanRoot::Merge(merge) => Some(merge.table.id),
        }
    }

    /// Returns the numbers of the parts of WITH that it reads directly.
    pub fn read_with_parts(&self) -> Vec<usize> {
        let mut found = Vec::new();
        let mut given = |rows: Option<&RowAtHandPlan>, checks: &[RowCheckPlan]| {
            let of_checks = checks.iter().filter_map(|check| check.row.as_ref());
            rows.into_iter().chain(of_checks).for_each(|row| reads_of(&row.node, &mut found));
        };
        match self {
            PlanRoot::Query(node) => reads_of(node, &mut found),
            PlanRoot::Insert(insert) => {
                given(insert.conflict_row.as_ref(), &insert.checks);
                reads_of(&insert.source, &mut found);
            }
            PlanRoot::Change(change) => {
                given(None, &change.checks);
                reads_of(&change.source.node, &mut found);
            }
            PlanRoot::Merge(merge) => {
                given(None, &merge.checks);
                reads_of(&merge.source, &mut found);
                merge.held.iter().for_each(|held| reads_of(&held.again, &mut found));
            }
        }
        found
    }
}

fn reads_of(node: &Node, found: &mut Vec<usize>) {
    match node {
        Node::CteScan(scan) if !scan.is_work_table => found.push(scan.id),
        Node::LockRows(lock) => reads_of(&lock.held.again, found),
        _ => {}
    }
    node.inputs().into_iter().for_each(|input| reads_of(input, found));
}
