//! Join order optimisation by cost.
//!
//! For up to [`EXHAUSTIVE`] connected relations all orders, including bushy ones, are searched by
//! dynamic programming over subsets (Selinger et al., 1979; each connected set is joined at the
//! lowest cost from two connected parts). More relations are joined greedily, the pair with the
//! fewest rows first (Fegaras, 1998). Unconnected pairs are joined last.
//!
//! This module does not depend on plans: its input is sizes and selectivities, its output a tree.

mod first_rows;

use crate::planner::cost;

/// Maximum number of connected relations for the exhaustive search.
const EXHAUSTIVE: usize = 10;

/// Statistics of a relation.
#[derive(Debug, Clone)]
pub(super) struct Relation {
    /// Rows after the conditions on it alone.
    pub rows: f64,
    /// Rows before these conditions.
    pub base_rows: f64,
    /// Cost of reading all its rows.
    pub cost: f64,
    /// Look-ups of its rows by key.
    pub lookups: Vec<LookupPath>,
}

/// Look-up of the rows of a relation by values.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct LookupPath {
    /// Classes whose values must be available.
    pub classes: Vec<usize>,
    /// Conditions whose other relations must be available.
    pub conditions: Vec<usize>,
    /// Cost per combination of values.
    pub cost: f64,
}

/// Equal expressions, one of each relation.
#[derive(Debug, Clone)]
pub(super) struct EqualityClass {
    /// Relation, and number of distinct values of its expression; ascending by relation.
    pub members: Vec<(usize, f64)>,
}

/// Condition on several relations.
#[derive(Debug, Clone)]
pub(super) struct JoinCondition {
    /// Relations, ascending.
    pub relations: Vec<usize>,
    /// Selectivity over the pairs.
    pub selectivity: f64,
    /// True if a hash join can use it.
    pub is_equality: bool,
}

/// Relations and their connections.
#[derive(Debug)]
pub(super) struct JoinGraph {
    relations: Vec<Relation>,
    classes: Vec<EqualityClass>,
    conditions: Vec<JoinCondition>,
    /// Classes of each relation, with its number of distinct values.
    classes_of: Vec<Vec<(usize, f64)>>,
    /// Conditions of each relation.
    conditions_of: Vec<Vec<usize>>,
}

/// Join tree.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JoinTree {
    /// Relation.
    Relation(usize),
    /// Join of two trees.
    Join {
        /// Left side: not smaller than the right side, by estimate, unless the latter is looked
        /// up.
        left: Box<JoinTree>,
        /// Right side: the build side, or looked up.
        right: Box<JoinTree>,
        /// True if the right side is a relation that is looked up by key for the left rows.
        lookup: bool,
        /// Estimated number of rows.
        rows: f64,
    },
}

/// Join order with the lowest cost for all rows.
#[derive(Debug)]
pub(super) struct WholeOrder {
    /// Join tree.
    pub tree: JoinTree,
    /// Estimated number of rows.
    pub rows: f64,
    /// Cost of all rows.
    pub cost: f64,
}

/// Bit set of relations.
#[derive(Debug, Clone, PartialEq)]
struct RelationSet(Vec<u64>);

impl RelationSet {
    fn new(count: usize) -> RelationSet {
        RelationSet(vec![0; count.div_ceil(64)])
    }

    fn of(count: usize, relations: impl IntoIterator<Item = usize>) -> RelationSet {
        let mut set = RelationSet::new(count);
        relations.into_iter().for_each(|relation| set.0[relation / 64] |= 1 << (relation % 64));
        set
    }

    fn has(&self, relation: usize) -> bool {
        self.0[relation / 64] & (1 << (relation % 64)) != 0
    }

    fn len(&self) -> u32 {
        self.0.iter().map(|word| word.count_ones()).sum()
    }

    fn members(&self) -> impl Iterator<Item = usize> {
        let bits = |(at, word): (usize, &u64)| {
            let word = *word;
            (0..64).filter(move |bit| word & (1 << bit) != 0).map(move |bit| at * 64 + bit)
        };
        self.0.iter().enumerate().filter(|(_, word)| **word != 0).flat_map(bits)
    }

    fn overlaps(&self, other: &RelationSet) -> bool {
        self.0.iter().zip(&other.0).any(|(a, b)| a & b != 0)
    }

    fn with(&self, other: &RelationSet) -> RelationSet {
        RelationSet(self.0.iter().zip(&other.0).map(|(a, b)| a | b).collect())
    }
}

/// Connection of two sets of relations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Connection {
    /// No connection.
    None,
    /// A condition that is evaluated on pairs.
    Pairs,
    /// An equality.
    Equality,
}

/// Join method for two sets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum JoinMethod {
    /// Both sides are read completely.
    Whole,
    /// The left set, a single relation, is looked up.
    LookUpLeft,
    /// The right set, a single relation, is looked up.
    LookUpRight,
}

/// A joined set.
#[derive(Debug, Clone)]
struct JoinedSet {
    set: RelationSet,
    tree: JoinTree,
    rows: f64,
    cost: f64,
}

impl JoinGraph {
    /// Returns a graph.
    pub(super) fn new(
        relations: Vec<Relation>,
        classes: Vec<EqualityClass>,
        conditions: Vec<JoinCondition>,
    ) -> JoinGraph {
        for class in &classes {
            debug_assert!(
                class.members.is_sorted_by(|a, b| a.0 < b.0),
                "members of a class are not ascending: {class:?}"
            );
        }
        for condition in &conditions {
            debug_assert!(condition.relations.is_sorted_by(|a, b| a < b), "{condition:?}");
            debug_assert!((0.0..=1.0).contains(&condition.selectivity), "{condition:?}");
        }
        let mut classes_of = vec![Vec::new(); relations.len()];
        for (number, class) in classes.iter().enumerate() {
            for &(relation, distinct) in &class.members {
                classes_of[relation].push((number, distinct));
            }
        }
        let mut conditions_of = vec![Vec::new(); relations.len()];
        for (number, condition) in conditions.iter().enumerate() {
            condition.relations.iter().for_each(|&relation| conditions_of[relation].push(number));
        }
        JoinGraph { relations, classes, conditions, classes_of, conditions_of }
    }

    /// Estimates the number of rows of the join of a set. Relations are added one by one; each is
    /// matched by the classes that it shares with those before.
    fn rows(&self, set: &RelationSet) -> f64 {
        let mut rows = 1.0;
        // For each class, the lowest number of distinct values of the relations so far.
        let mut values: Vec<Option<f64>> = vec![None; self.classes.len()];
        for (number, relation) in self.relations.iter().enumerate() {
            if !set.has(number) {
                continue;
            }
            rows *= relation.rows;
            let mut shared: Vec<usize> = Vec::new();
            let mut matched = 1.0;
            for &(class, distinct) in &self.classes_of[number] {
                let fewest = values[class].get_or_insert(f64::INFINITY);
                if fewest.is_finite() {
                    shared.push(class);
                    matched *= distinct.max(*fewest);
                }
                *fewest = fewest.min(distinct);
            }
            if shared.len() > 1 {
                matched = self.bounded(matched, number, &shared, set);
            }
            rows /= matched;
        }
        for condition in &self.conditions {
            if condition.relations.iter().all(|&relation| set.has(relation)) {
                rows *= condition.selectivity;
            }
        }
        rows.max(1.0)
    }

    /// Limits the number of value combinations that two relations share by the rows of the
    /// smaller one, which is assumed to have a key of them.
    fn bounded(&self, matched: f64, relation: usize, shared: &[usize], set: &RelationSet) -> f64 {
        let base_rows = |number: usize| self.relations[number].base_rows;
        let has_all = |other: &usize| {
            let classes = &self.classes_of[*other];
            shared.iter().all(|class| classes.iter().any(|(number, _)| number == class))
        };
        let others = (0..relation).filter(|&other| set.has(other)).filter(has_all);
        others.fold(matched, |matched, other| {
            matched.min(base_rows(other).min(base_rows(relation)).max(1.0))
        })
    }

    /// Returns the connection of two sets, by the classes and conditions of the smaller one.
    fn link(&self, left: &RelationSet, right: &RelationSet) -> Connection {
        let (few, many) = if left.len() <= right.len() { (left, right) } else { (right, left) };
        let is_of_many = |class: usize| {
            self.classes[class].members.iter().any(|(relation, _)| many.has(*relation))
        };
        let mut classes = few.members().flat_map(|relation| &self.classes_of[relation]);
        if classes.any(|&(class, _)| is_of_many(class)) {
            return Connection::Equality;
        }
        let conditions = few.members().flat_map(|relation| &self.conditions_of[relation]);
        let linked = conditions.map(|&number| &self.conditions[number]).filter(|condition| {
            let relations = &condition.relations;
            relations.iter().all(|&relation| few.has(relation) || many.has(relation))
                && relations.iter().any(|&relation| many.has(relation))
        });
        let kind = |condition: &JoinCondition| match condition.is_equality {
            true => Connection::Equality,
            false => Connection::Pairs,
        };
        linked.map(kind).max().unwrap_or(Connection::None)
    }

    /// Returns the lowest cost of joining two sets, and the method.
    fn cheapest(
        &self,
        left: &JoinedSet,
        right: &JoinedSet,
        link: Connection,
        rows: f64,
    ) -> (f64, JoinMethod) {
        let (outer, inner) = (left.rows.max(right.rows), left.rows.min(right.rows));
        let own = match link {
            Connection::Equality => cost::hash_join(outer, inner, rows),
            Connection::Pairs | Connection::None => cost::loop_join(outer, inner, rows),
        };
        let mut best = (left.cost + right.cost + own, JoinMethod::Whole);
        for (outer, inner, method) in
            [(left, right, JoinMethod::LookUpRight), (right, left, JoinMethod::LookUpLeft)]
        {
            let JoinTree::Relation(relation) = inner.tree else { continue };
            if let Some(lookup) = self.lookup_cost(&outer.set, relation) {
                let cost = outer.cost + cost::lookup_join(outer.rows, lookup, rows);
                if cost < best.0 {
                    best = (cost, method);
                }
            }
        }
        best
    }

    /// Returns the lowest cost of looking up the rows of a relation for one row of a set; `None`
    /// if that is not possible.
    fn lookup_cost(&self, outer: &RelationSet, relation: usize) -> Option<f64> {
        let is_known = |class: &usize| {
            self.classes[*class].members.iter().any(|(relation, _)| outer.has(*relation))
        };
        let is_there = |condition: &usize| {
            let mut relations = self.conditions[*condition].relations.iter();
            relations.all(|&other| other == relation || outer.has(other))
        };
        let paths = self.relations[relation].lookups.iter();
        let usable = paths.filter(|path| {
            path.classes.iter().all(is_known) && path.conditions.iter().all(is_there)
        });
        usable.map(|path| path.cost).min_by(f64::total_cmp)
    }

    /// Joins two sets. `rows`: the estimated result size.
    fn join(&self, left: &JoinedSet, right: &JoinedSet, link: Connection, rows: f64) -> JoinedSet {
        debug_assert!(!left.set.overlaps(&right.set), "a relation is joined twice");
        let set = left.set.with(&right.set);
        let (cost, method) = self.cheapest(left, right, link, rows);
        let exchanged = match method {
            JoinMethod::Whole => right.rows > left.rows,
            JoinMethod::LookUpLeft => true,
            JoinMethod::LookUpRight => false,
        };
        let (left, right) = if exchanged { (right, left) } else { (left, right) };
        let tree = JoinTree::Join {
            left: Box::new(left.tree.clone()),
            right: Box::new(right.tree.clone()),
            lookup: method != JoinMethod::Whole,
            rows,
        };
        JoinedSet { set, tree, rows, cost }
    }

    fn single(&self, relation: usize) -> JoinedSet {
        JoinedSet {
            set: RelationSet::of(self.relations.len(), [relation]),
            tree: JoinTree::Relation(relation),
            rows: self.relations[relation].rows,
            cost: self.relations[relation].cost,
        }
    }

    /// Returns the connected components, by conditions between two relations.
    fn components(&self) -> Vec<Vec<usize>> {
        let mut parents: Vec<usize> = (0..self.relations.len()).collect();
        fn find(parents: &mut [usize], mut relation: usize) -> usize {
            while parents[relation] != relation {
                parents[relation] = parents[parents[relation]];
                relation = parents[relation];
            }
            relation
        }
        let classes = self.classes.iter().flat_map(|class| {
            class.members.windows(2).map(|pair| (pair[0].0, pair[1].0)).collect::<Vec<_>>()
        });
        let pairs = self.conditions.iter().filter_map(|condition| {
            if let [a, b] = condition.relations[..] { Some((a, b)) } else { None }
        });
        for (a, b) in classes.chain(pairs) {
            let (a, b) = (find(&mut parents, a), find(&mut parents, b));
            parents[a.max(b)] = a.min(b);
        }
        let mut components: Vec<Vec<usize>> = vec![Vec::new(); self.relations.len()];
        for relation in 0..self.relations.len() {
            components[find(&mut parents, relation)].push(relation);
        }
        components.retain(|component| !component.is_empty());
        components
    }

    /// Joins a connected component in the best order.
    fn best(&self, component: &[usize]) -> JoinedSet {
        let count = component.len();
        let mut best: Vec<Option<JoinedSet>> = vec![None; 1 << count];
        for (bit, &relation) in component.iter().enumerate() {
            best[1 << bit] = Some(self.single(relation));
        }
        for mask in 1_usize..1 << count {
            if mask.is_power_of_two() {
                continue;
            }
            let bits = (0..count).filter(|bit| mask & (1 << bit) != 0);
            let set = RelationSet::of(self.relations.len(), bits.map(|bit| component[bit]));
            let mut rows = None;
            let mut found: Option<(f64, usize, Connection)> = None;
            // Each pair of parts once: the part with the lowest relation is on the left.
            let lowest = mask & mask.wrapping_neg();
            let mut part = (mask - 1) & mask;
            while part != 0 {
                let other = mask & !part;
                if part & lowest != 0
                    && let (Some(left), Some(right)) = (&best[part], &best[other])
                {
                    let least = left.cost.min(right.cost);
                    let link = match found {
                        Some((cost, ..)) if least >= cost => Connection::None,
                        _ => self.link(&left.set, &right.set),
                    };
                    if link != Connection::None {
                        let rows = *rows.get_or_insert_with(|| self.rows(&set));
                        let (cost, _) = self.cheapest(left, right, link, rows);
                        if found.is_none_or(|(least, ..)| cost < least) {
                            found = Some((cost, part, link));
                        }
                    }
                }
                part = (part - 1) & mask;
            }
            if let Some((_, part, link)) = found
                && let (Some(left), Some(right)) = (&best[part], &best[mask & !part])
            {
                let rows = rows.unwrap_or(1.0);
                best[mask] = Some(self.join(left, right, link, rows));
            }
        }
        best.pop().flatten().expect("a connected set is joined from two connected parts")
    }

    /// Joins the remaining nodes greedily: the pair with the fewest rows first, unconnected pairs
    /// last.
    fn greedy(&self, mut nodes: Vec<JoinedSet>) -> Option<JoinedSet> {
        /// Pair of nodes, and their join.
        struct Pair {
            left: usize,
            right: usize,
            link: Connection,
            rows: f64,
        }
        let pair = |nodes: &[JoinedSet], left: usize, right: usize| {
            let link = self.link(&nodes[left].set, &nodes[right].set);
            (link != Connection::None).then(|| {
                let rows = self.rows(&nodes[left].set.with(&nodes[right].set));
                Pair { left, right, link, rows }
            })
        };
        let mut open: Vec<usize> = (0..nodes.len()).collect();
        let mut pairs: Vec<Pair> = Vec::new();
        for right in 0..nodes.len() {
            pairs.extend((0..right).filter_map(|left| pair(&nodes, left, right)));
        }
        while open.len() > 1 {
            let least = pairs.iter().min_by(|a, b| a.rows.total_cmp(&b.rows));
            let (left, right, link, rows) = match least {
                Some(pair) => (pair.left, pair.right, pair.link, pair.rows),
                None => {
                    open.sort_by(|&a, &b| nodes[a].rows.total_cmp(&nodes[b].rows).then(a.cmp(&b)));
                    let (left, right) = (open[0].min(open[1]), open[0].max(open[1]));
                    let rows = self.rows(&nodes[left].set.with(&nodes[right].set));
                    (left, right, Connection::None, rows)
                }
            };
            let joined = self.join(&nodes[left], &nodes[right], link, rows);
            pairs.retain(|pair| ![left, right].iter().any(|n| [pair.left, pair.right].contains(n)));
            open.retain(|&node| node != left && node != right);
            let new = nodes.len();
            nodes.push(joined);
            pairs.extend(open.iter().filter_map(|&node| pair(&nodes, node, new)));
            open.push(new);
        }
        open.first().map(|&node| nodes[node].clone())
    }

    /// Returns the join order of all relations; `None` if there are none.
    pub(super) fn order(&self) -> Option<WholeOrder> {
        let mut nodes = Vec::new();
        for component in self.components() {
            if component.len() <= EXHAUSTIVE {
                nodes.push(self.best(&component));
            } else {
                nodes.extend(component.iter().map(|&relation| self.single(relation)));
            }
        }
        let JoinedSet { tree, rows, cost, set } = self.greedy(nodes)?;
        debug_assert!(
            (0..self.relations.len()).all(|relation| set.has(relation)),
            "a relation is not joined"
        );
        debug_assert!(!cost.is_nan() && !rows.is_nan(), "cost {cost}, {rows} rows");
        Some(WholeOrder { tree, rows, cost })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(rows: f64, base_rows: f64) -> Relation {
        Relation { rows, base_rows, cost: base_rows, lookups: Vec::new() }
    }

    fn text(tree: &JoinTree) -> String {
        match tree {
            JoinTree::Relation(number) => number.to_string(),
            JoinTree::Join { left, right, lookup, .. } => {
                let by_key = if *lookup { " by key" } else { "" };
                format!("({} {}{by_key})", text(left), text(right))
            }
        }
    }

    fn order(graph: &JoinGraph) -> String {
        text(&graph.order().unwrap().tree)
    }

    #[test]
    fn selective_relations_are_joined_first() {
        // Lines of orders of customers of one country; keys on the right.
        let graph = JoinGraph::new(
            vec![
                relation(6e6, 6e6),
                relation(1.5e6, 1.5e6),
                relation(6e3, 1.5e5),
                relation(1.0, 25.0),
            ],
            vec![
                EqualityClass { members: vec![(0, 1.5e6), (1, 1.5e6)] },
                EqualityClass { members: vec![(1, 1.5e5), (2, 1.5e5)] },
                EqualityClass { members: vec![(2, 25.0), (3, 25.0)] },
            ],
            Vec::new(),
        );
        assert_eq!(order(&graph), "(0 (1 (2 3)))");
    }

    #[test]
    fn small_input_drives_lookup_join() {
        let by_key = LookupPath { classes: vec![0], conditions: Vec::new(), cost: cost::GET };
        let mut graph = JoinGraph::new(
            vec![Relation { lookups: vec![by_key], ..relation(1e6, 1e6) }, relation(10.0, 1e3)],
            vec![EqualityClass { members: vec![(0, 1e6), (1, 1e3)] }],
            Vec::new(),
        );
        assert_eq!(order(&graph), "(1 0 by key)");
        graph.relations[1].rows = 2e5;
        assert_eq!(order(&graph), "(0 1)");
    }

    #[test]
    fn unconnected_relation_is_joined_last() {
        let graph = JoinGraph::new(
            vec![relation(100.0, 100.0), relation(2.0, 2.0), relation(100.0, 100.0)],
            vec![EqualityClass { members: vec![(0, 100.0), (2, 100.0)] }],
            Vec::new(),
        );
        assert_eq!(order(&graph), "((0 2) 1)");
    }

    #[test]
    fn composite_key_selectivity_is_applied_once() {
        // Lines with parts, suppliers, and the stock of each supplier's parts; in any order.
        let part = (relation(2e5, 2e5), vec![(0, 2e5)]);
        let supplier = (relation(1e4, 1e4), vec![(1, 1e4)]);
        let stock = (relation(8e5, 8e5), vec![(0, 2e5), (1, 1e4)]);
        let line = (relation(6e6, 6e6), vec![(0, 2e5), (1, 1e4)]);
        let all = [part, supplier, stock, line];
        for order in [[0, 1, 2, 3], [3, 0, 1, 2], [2, 3, 1, 0], [1, 3, 2, 0]] {
            let mut classes = vec![EqualityClass { members: Vec::new() }; 2];
            for (number, &which) in order.iter().enumerate() {
                for &(class, distinct) in &all[which].1 {
                    classes[class].members.push((number, distinct));
                }
            }
            let relations = order.iter().map(|&which| all[which].0.clone()).collect();
            let rows = JoinGraph::new(relations, classes, Vec::new()).order().unwrap().rows;
            assert!((rows - 6e6).abs() < 1.0, "{order:?}: {rows}");
        }
    }

    #[test]
    fn long_join_chain_follows_join_conditions() {
        // 200 tables of 10 rows; each joined with the next by key, in scattered order.
        let count = 200;
        let place = |number: usize| (number * 77) % count;
        let class = |number: usize| {
            let mut members = vec![(place(number), 10.0), (place(number + 1), 10.0)];
            members.sort_by_key(|member| member.0);
            EqualityClass { members }
        };
        let classes = (0..count - 1).map(class).collect();
        let graph = JoinGraph::new(vec![relation(10.0, 10.0); count], classes, Vec::new());
        let rows = graph.order().unwrap().rows;
        assert!((rows - 10.0).abs() < 1e-6, "{rows}");
    }
}
