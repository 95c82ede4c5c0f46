//! Validation of orders: whether a physical plan provides the order that its parent node relies
//! on.
//!
//! The claim is followed down through the nodes that preserve the order of their input, to a sort
//! or to a scan in key order, whose key columns are compared with it.

use std::collections::BTreeSet;

use types::expr::Expr;

use crate::logical::{SortKey, pseudo_column_type, sort_keys};
use crate::plan::Node;
use crate::plan::scan::{KeyCondition, PathShape, ScanNode};
use crate::planner::conjunct::{as_column, substitute, within};
use crate::planner::key_term::generated::ordering_source;

/// An order of rows.
#[derive(Debug, Clone)]
pub(super) enum Order {
    /// Sorted by these keys.
    Keys(Vec<SortKey>),
    /// Rows with equal values of these are adjacent.
    Groups(Vec<Expr>),
}

impl Order {
    /// Returns ascending order by expressions, NULLs last.
    pub(super) fn ascending(by: &[Expr]) -> Order {
        Order::Keys(sort_keys(by, &[]))
    }

    fn expressions(&self) -> Vec<&Expr> {
        match self {
            Order::Keys(keys) => keys.iter().map(|key| &key.expression).collect(),
            Order::Groups(by) => by.iter().collect(),
        }
    }

    /// Returns whether the order is over the first `width` columns.
    fn is_within(&self, width: usize) -> bool {
        self.expressions().into_iter().all(|one| within(one, 0..width))
    }

    /// Returns the order over the input of a projection.
    fn below(&self, expressions: &[Expr]) -> Order {
        let put = |one: &Expr| substitute(one.clone(), expressions);
        match self {
            Order::Keys(keys) => {
                let below = |key: &SortKey| SortKey { expression: put(&key.expression), ..*key };
                Order::Keys(keys.iter().map(below).collect())
            }
            Order::Groups(by) => Order::Groups(by.iter().map(put).collect()),
        }
    }

    /// Returns whether rows that are sorted by `keys` have the order.
    fn follows_from(&self, keys: &[SortKey]) -> bool {
        match self {
            Order::Keys(required) => keys.starts_with(required),
            Order::Groups(by) => (0..=keys.len()).any(|count| {
                let leading = &keys[..count];
                let is_sorted = |one: &Expr| leading.iter().any(|key| key.expression == *one);
                by.iter().all(|one| is_sorted(one) || is_constant(one))
                    && leading.iter().all(|key| by.contains(&key.expression))
            }),
        }
    }
}

fn is_constant(expression: &Expr) -> bool {
    within(expression, 0..0)
}

/// Returns whether a plan provides an order.
pub(super) fn provides(plan: &Node, order: &Order) -> bool {
    let constant = order.expressions().into_iter().all(is_constant);
    constant
        || match plan {
            Node::Scan(scan) => provides_by_key(scan, order),
            Node::Sort(sort) => order.follows_from(&sort.keys),
            Node::Filter(node) => provides(&node.input, order),
            Node::Limit(node) => provides(&node.input, order),
            Node::LockRows(node) => provides(&node.input, order),
            Node::With(node) => provides(&node.body, order),
            Node::Project(node) => provides(&node.input, &order.below(&node.expressions)),
            Node::Apply(node) => {
                order.is_within(node.input_types.len()) && provides(&node.input, order)
            }
            Node::ProjectSet(node) => provides(&node.input, order),
            Node::HashJoin(node) => {
                let own = order.follows_from(&node.order);
                own && order.is_within(node.left_types.len()) && provides(&node.left, order)
            }
            Node::LoopJoin(node) => {
                let own = node.keeps_order && order.is_within(node.left_types.len());
                own && provides(&node.left, order)
            }
            Node::LookupJoin(node) => {
                order.is_within(node.left_types.len()) && provides(&node.left, order)
            }
            Node::WindowAgg(node) => {
                order.follows_from(&sort_keys(&node.partition_by, &node.order_by))
            }
            Node::RegionTopN(node) => provides(&node.otherwise, order),
            Node::Aggregate(node) => node.group_by.is_empty(),
            Node::Values(node) => node.constants.is_none() && node.rows.len() <= 1,
            _ => false,
        }
}

/// Returns whether a scan in key order provides an order. Keys that are no plain columns of the
/// path are not compared.
fn provides_by_key(scan: &ScanNode, order: &Order) -> bool {
    if scan.path.shape == PathShape::Points(1) {
        return true;
    }
    match order {
        Order::Keys(keys) => scan.path.ordered && has_key_order(scan, keys),
        Order::Groups(_) => scan.path.ordered,
    }
}

/// Returns whether the key columns of a path agree with sort keys over the scan's columns.
fn has_key_order(scan: &ScanNode, keys: &[SortKey]) -> bool {
    let path = &scan.path;
    let mut fixed = BTreeSet::new();
    let mut parts = path.layout.key.iter().enumerate();
    for key in keys {
        let Some(column) = path_column(scan, &key.expression) else { return true };
        if fixed.contains(&column) {
            continue;
        }
        loop {
            // After the whole key no two rows are equal.
            let Some((at, part)) = parts.next() else { return true };
            let is_fixed = at < path.merged
                || path.conditions.get(at).is_some_and(KeyCondition::is_single_point);
            if is_fixed {
                fixed.insert(part.column);
            }
            if part.column == column {
                if !is_fixed && (part.descending != key.descending) != path.reverse {
                    return false;
                }
                break;
            }
            if !is_fixed && !follows_source(scan, part.column, column) {
                return false;
            }
        }
    }
    true
}

/// Returns whether a generated column of a table never decreases with its source.
fn follows_source(scan: &ScanNode, generated: usize, source: usize) -> bool {
    if scan.path.index.is_some() {
        // The columns of an index are not those of the table.
        return true;
    }
    let expression = scan.table.columns[generated].generated.as_ref();
    expression.and_then(ordering_source).is_some_and(|found| as_column(&found) == Some(source))
}

/// Returns the position of a column of a scan in the layout of its path.
fn path_column(scan: &ScanNode, expression: &Expr) -> Option<usize> {
    let Expr::Column { index, .. } = expression else { return None };
    if scan.lookup.is_some() {
        return None;
    }
    let column = scan.read[scan.output[*index]];
    pseudo_column_type(column).is_none().then_some(column)
}
