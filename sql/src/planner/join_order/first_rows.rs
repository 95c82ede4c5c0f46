//! Join orders for a row goal: left-deep trees whose outer relation is read as far as needed.
//!
//! Every other relation is looked up for the current outer rows, or is the build side of a hash
//! join. Such a tree preserves the order of the outer relation, and its cost is that of the first
//! rows. The next relation is the one that adds the lowest cost.

use crate::planner::cost;
use crate::planner::join_order::{Connection, EXHAUSTIVE, JoinGraph, JoinTree, RelationSet};

/// Join order for the first rows.
#[derive(Debug)]
pub(in crate::planner) struct StreamedOrder {
    /// Join tree.
    pub tree: JoinTree,
    /// Estimated number of all rows.
    pub rows: f64,
    /// Cost of the first rows.
    pub cost: f64,
}

/// Returns the cost of the first rows of a relation in the required order, given their number;
/// `None` if it cannot be read in that order.
pub(in crate::planner) type OuterCost<'a> = &'a dyn Fn(usize, f64) -> Option<f64>;

/// Next relation to join.
struct NextJoin {
    relation: usize,
    lookup: bool,
    cost: f64,
    rows: f64,
}

impl JoinGraph {
    /// Returns the order with the lowest cost of the first `goal` rows; `None` if no relation can
    /// be the outer one, or if there are too many relations.
    pub(in crate::planner) fn streamed(
        &self,
        goal: f64,
        outer_cost: OuterCost<'_>,
    ) -> Option<StreamedOrder> {
        let count = self.relations.len();
        if count > EXHAUSTIVE {
            return None;
        }
        let total = self.rows(&RelationSet::of(count, 0..count));
        let outers = (0..count).filter_map(|outer| {
            let rows = self.relations[outer].rows;
            let needed = (goal * rows / total).clamp(1.0, rows);
            let cost = outer_cost(outer, needed)?;
            Some(self.streamed_from(outer, needed, cost))
        });
        outers.min_by(|a, b| a.cost.total_cmp(&b.cost))
    }

    /// Joins all other relations to `needed` rows of one, which have the cost `cost`.
    fn streamed_from(&self, outer: usize, mut needed: f64, mut cost: f64) -> StreamedOrder {
        let count = self.relations.len();
        let mut set = RelationSet::of(count, [outer]);
        let (mut tree, mut rows) = (JoinTree::Relation(outer), self.relations[outer].rows);
        for _ in 1..count {
            let others = (0..count).filter(|&relation| !set.has(relation));
            let steps = others.map(|relation| self.step(&set, relation, needed));
            let least = steps.min_by(|(a, a_step), (b, b_step)| {
                b.cmp(a).then(a_step.cost.total_cmp(&b_step.cost))
            });
            let Some((_, step)) = least else { break };
            set = set.with(&RelationSet::of(count, [step.relation]));
            needed *= step.rows / rows;
            cost += step.cost + cost::OUTPUT * needed;
            rows = step.rows;
            tree = JoinTree::Join {
                left: Box::new(tree),
                right: Box::new(JoinTree::Relation(step.relation)),
                lookup: step.lookup,
                rows,
            };
        }
        StreamedOrder { tree, rows, cost }
    }

    /// Returns the join of a relation with `needed` rows of a set, and their connection.
    fn step(&self, set: &RelationSet, relation: usize, needed: f64) -> (Connection, NextJoin) {
        let own = RelationSet::of(self.relations.len(), [relation]);
        let link = self.link(set, &own);
        let inner = &self.relations[relation];
        let pairs = match link {
            Connection::Equality => cost::hash_join(needed, inner.rows, 0.0),
            Connection::Pairs | Connection::None => cost::loop_join(needed, inner.rows, 0.0),
        };
        let whole = inner.cost + pairs;
        let lookup = self.lookup_cost(set, relation).map(|one| cost::lookup_join(needed, one, 0.0));
        let cost = lookup.map_or(whole, |lookup| lookup.min(whole));
        let rows = self.rows(&set.with(&own));
        (
            link,
            NextJoin { relation, lookup: lookup.is_some_and(|lookup| lookup < whole), cost, rows },
        )
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::planner::join_order::{EqualityClass, LookupPath, Relation};

    fn relation(rows: f64, lookup: Option<usize>) -> Relation {
        let path =
            |class| LookupPath { classes: vec![class], conditions: Vec::new(), cost: cost::GET };
        let lookups = lookup.map(path).into_iter().collect();
        Relation { rows, base_rows: rows, cost: rows, lookups }
    }

    /// Rows of a large table, each with one row of a small and one of a large table.
    fn graph() -> JoinGraph {
        let relations = vec![relation(1e6, None), relation(16.0, Some(0)), relation(1e5, Some(1))];
        let classes = vec![
            EqualityClass { members: vec![(0, 16.0), (1, 16.0)] },
            EqualityClass { members: vec![(0, 1e5), (2, 1e5)] },
        ];
        JoinGraph::new(relations, classes, Vec::new())
    }

    fn outers(order: &StreamedOrder) -> Vec<(usize, bool)> {
        let (mut tree, mut inners) = (&order.tree, Vec::new());
        while let JoinTree::Join { left, right, lookup, .. } = tree {
            let JoinTree::Relation(inner) = **right else { panic!("not left-deep") };
            inners.push((inner, *lookup));
            tree = left;
        }
        inners.reverse();
        inners
    }

    #[test]
    fn small_row_goal_prefers_lookup_joins() {
        let first = |outer: usize, rows: f64| (outer == 0).then_some(rows);
        let few = graph().streamed(20.0, &first).unwrap();
        assert_eq!(outers(&few), [(1, false), (2, true)]);
        assert!(few.cost < 1000.0, "{}", few.cost);
        let many = graph().streamed(5e5, &first).unwrap();
        assert_eq!(outers(&many), [(1, false), (2, false)]);
    }

    #[test]
    fn streamed_outer_must_provide_order() {
        assert!(graph().streamed(20.0, &|_, _| None).is_none());
    }
}
