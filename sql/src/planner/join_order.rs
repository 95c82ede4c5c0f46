//! In which order relations are joined, by cost.
//!
//! Up to [`EXHAUSTIVE`] relations that conditions connect are tried in every order, bushy ones
//! included, by dynamic programming over sets of them (Selinger et al., 1979; every connected set
//! is joined at the least cost from two connected parts). More are joined greedily, the pair with
//! the fewest rows first (Fegaras, 1998). Pairs that nothing connects are joined last.
//!
//! This file knows no plans: sizes and selectivities in, a tree out.

/// So many connected relations are tried in every order.
const EXHAUSTIVE: usize = 10;

/// Cost of putting a row into a hash table, in units of looking one up.
const BUILD_COST: f64 = 1.5;
/// Cost of trying a pair of rows, in the same units.
const PAIR_COST: f64 = 0.1;
/// Cost of yielding a row.
const OUTPUT_COST: f64 = 0.5;

/// What is known of a relation.
#[derive(Debug, Clone, Copy)]
pub(super) struct Relation {
    /// Rows, after the conditions on it alone.
    pub rows: f64,
    /// Rows before.
    pub base_rows: f64,
}

/// Expressions that are equal, one of each relation.
#[derive(Debug, Clone)]
pub(super) struct EqualityClass {
    /// Relation, and different values of its expression; relations ascending.
    pub members: Vec<(usize, f64)>,
}

/// A condition on several relations.
#[derive(Debug, Clone)]
pub(super) struct JoinCondition {
    /// Ascending.
    pub relations: Vec<usize>,
    /// Which part of the pairs it is true for.
    pub selectivity: f64,
    /// Whether a hash join can be done by it.
    pub is_equality: bool,
}

/// Relations and what connects them.
#[derive(Debug, Default)]
pub(super) struct JoinGraph {
    pub relations: Vec<Relation>,
    pub classes: Vec<EqualityClass>,
    pub conditions: Vec<JoinCondition>,
}

/// An order of joins.
#[derive(Debug, Clone, PartialEq)]
pub(super) enum JoinTree {
    /// A relation.
    Relation(usize),
    /// A join; the right side has no more rows than the left, by estimate.
    Join(Box<JoinTree>, Box<JoinTree>),
}

/// A set of relations, a bit for each.
#[derive(Debug, Clone, PartialEq)]
struct Set(Vec<u64>);

impl Set {
    fn new(count: usize) -> Set {
        Set(vec![0; count.div_ceil(64)])
    }

    fn of(count: usize, relations: impl IntoIterator<Item = usize>) -> Set {
        let mut set = Set::new(count);
        relations.into_iter().for_each(|relation| set.0[relation / 64] |= 1 << (relation % 64));
        set
    }

    fn has(&self, relation: usize) -> bool {
        self.0[relation / 64] & (1 << (relation % 64)) != 0
    }

    fn with(&self, other: &Set) -> Set {
        Set(self.0.iter().zip(&other.0).map(|(a, b)| a | b).collect())
    }
}

/// How two sets of relations are connected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Link {
    /// Not at all.
    None,
    /// By a condition that pairs are checked for.
    Pairs,
    /// By an equality.
    Equality,
}

/// A joined set.
#[derive(Debug, Clone)]
struct Joined {
    set: Set,
    tree: JoinTree,
    rows: f64,
    cost: f64,
}

impl JoinGraph {
    /// Returns about how many rows the join of a set of relations has.
    fn rows(&self, set: &Set) -> f64 {
        let mut rows = 1.0;
        for (number, relation) in self.relations.iter().enumerate() {
            if set.has(number) {
                rows *= relation.rows;
            }
        }
        // One over the rows that each relation's keys let it be matched by.
        let mut matches = vec![1.0; self.relations.len()];
        for class in &self.classes {
            let members = class.members.iter().filter(|(relation, _)| set.has(*relation));
            let Some((least, _)) = members.clone().min_by(|a, b| a.1.total_cmp(&b.1)) else {
                continue;
            };
            for (relation, distinct) in members.filter(|(relation, _)| relation != least) {
                matches[*relation] *= distinct;
            }
        }
        // No relation has more different keys than rows, however many columns they have.
        for (relation, matches) in self.relations.iter().zip(matches) {
            rows /= matches.min(relation.base_rows).max(1.0);
        }
        for condition in &self.conditions {
            if condition.relations.iter().all(|&relation| set.has(relation)) {
                rows *= condition.selectivity;
            }
        }
        rows.max(1.0)
    }

    fn link(&self, left: &Set, right: &Set) -> Link {
        let has = |set: &Set, class: &EqualityClass| {
            class.members.iter().any(|(relation, _)| set.has(*relation))
        };
        if self.classes.iter().any(|class| has(left, class) && has(right, class)) {
            return Link::Equality;
        }
        let linked = self.conditions.iter().filter(|condition| {
            let relations = &condition.relations;
            relations.iter().all(|&relation| left.has(relation) || right.has(relation))
                && relations.iter().any(|&relation| left.has(relation))
                && relations.iter().any(|&relation| right.has(relation))
        });
        let kind = |condition: &JoinCondition| match condition.is_equality {
            true => Link::Equality,
            false => Link::Pairs,
        };
        linked.map(kind).max().unwrap_or(Link::None)
    }

    /// Joins two sets whose join has so many rows.
    fn join(left: &Joined, right: &Joined, link: Link, rows: f64) -> Joined {
        let set = left.set.with(&right.set);
        let cost = left.cost + right.cost + join_cost(left.rows, right.rows, link, rows);
        let (left, right) = if right.rows > left.rows { (right, left) } else { (left, right) };
        let tree = JoinTree::Join(Box::new(left.tree.clone()), Box::new(right.tree.clone()));
        Joined { set, tree, rows, cost }
    }

    fn single(&self, relation: usize) -> Joined {
        Joined {
            set: Set::of(self.relations.len(), [relation]),
            tree: JoinTree::Relation(relation),
            rows: self.relations[relation].rows,
            cost: 0.0,
        }
    }

    /// Returns the sets of relations that are connected by conditions between two of them.
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
    fn best(&self, component: &[usize]) -> Joined {
        let count = component.len();
        let mut best: Vec<Option<Joined>> = vec![None; 1 << count];
        for (bit, &relation) in component.iter().enumerate() {
            best[1 << bit] = Some(self.single(relation));
        }
        for mask in 1_usize..1 << count {
            if mask.is_power_of_two() {
                continue;
            }
            let bits = (0..count).filter(|bit| mask & (1 << bit) != 0);
            let set = Set::of(self.relations.len(), bits.map(|bit| component[bit]));
            let mut rows = None;
            let mut found: Option<(f64, usize, Link)> = None;
            // Each pair of parts once: the part with the lowest relation is on the left.
            let lowest = mask & mask.wrapping_neg();
            let mut part = (mask - 1) & mask;
            while part != 0 {
                let other = mask & !part;
                if part & lowest != 0
                    && let (Some(left), Some(right)) = (&best[part], &best[other])
                {
                    let below = left.cost + right.cost;
                    let link = match found {
                        Some((cost, ..)) if below >= cost => Link::None,
                        _ => self.link(&left.set, &right.set),
                    };
                    if link != Link::None {
                        let rows = *rows.get_or_insert_with(|| self.rows(&set));
                        let cost = below + join_cost(left.rows, right.rows, link, rows);
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
                best[mask] = Some(JoinGraph::join(left, right, link, rows));
            }
        }
        best.pop().flatten().expect("a connected set is joined from two connected parts")
    }

    /// Joins what is left, the pair with the fewest rows first, pairs that nothing connects last.
    fn greedy(&self, mut nodes: Vec<Joined>) -> Option<Joined> {
        /// A pair of nodes, and what comes out.
        struct Pair {
            left: usize,
            right: usize,
            link: Link,
            rows: f64,
        }
        let pair = |nodes: &[Joined], left: usize, right: usize| {
            let link = self.link(&nodes[left].set, &nodes[right].set);
            (link != Link::None).then(|| {
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
                    (left, right, Link::None, rows)
                }
            };
            let joined = JoinGraph::join(&nodes[left], &nodes[right], link, rows);
            pairs.retain(|pair| ![left, right].iter().any(|n| [pair.left, pair.right].contains(n)));
            open.retain(|&node| node != left && node != right);
            let new = nodes.len();
            nodes.push(joined);
            pairs.extend(open.iter().filter_map(|&node| pair(&nodes, node, new)));
            open.push(new);
        }
        open.first().map(|&node| nodes[node].clone())
    }

    /// Returns the order to join all relations in, and about how many rows come out; `None` if
    /// there are none.
    pub(super) fn order(&self) -> Option<(JoinTree, f64)> {
        let mut nodes = Vec::new();
        for component in self.components() {
            if component.len() <= EXHAUSTIVE {
                nodes.push(self.best(&component));
            } else {
                nodes.extend(component.iter().map(|&relation| self.single(relation)));
            }
        }
        self.greedy(nodes).map(|joined| (joined.tree, joined.rows))
    }
}

/// Returns the cost of a join, its inputs' left aside.
fn join_cost(left: f64, right: f64, link: Link, rows: f64) -> f64 {
    let (outer, inner) = (left.max(right), left.min(right));
    let work = match link {
        Link::Equality => outer + BUILD_COST * inner,
        Link::Pairs | Link::None => outer + inner + PAIR_COST * outer * inner,
    };
    work + OUTPUT_COST * rows
}

#[cfg(test)]
mod tests {
    use super::*;

    fn relation(rows: f64, base_rows: f64) -> Relation {
        Relation { rows, base_rows }
    }

    fn text(tree: &JoinTree) -> String {
        match tree {
            JoinTree::Relation(number) => number.to_string(),
            JoinTree::Join(left, right) => format!("({} {})", text(left), text(right)),
        }
    }

    fn order(graph: &JoinGraph) -> String {
        text(&graph.order().unwrap().0)
    }

    #[test]
    fn what_is_narrowed_comes_first() {
        // Lines of orders of customers of one country; keys on the right.
        let graph = JoinGraph {
            relations: vec![
                relation(6e6, 6e6),
                relation(1.5e6, 1.5e6),
                relation(6e3, 1.5e5),
                relation(1.0, 25.0),
            ],
            classes: vec![
                EqualityClass { members: vec![(0, 1.5e6), (1, 1.5e6)] },
                EqualityClass { members: vec![(1, 1.5e5), (2, 1.5e5)] },
                EqualityClass { members: vec![(2, 25.0), (3, 25.0)] },
            ],
            conditions: Vec::new(),
        };
        assert_eq!(order(&graph), "(0 (1 (2 3)))");
    }

    #[test]
    fn what_nothing_connects_is_joined_last() {
        let graph = JoinGraph {
            relations: vec![relation(100.0, 100.0), relation(2.0, 2.0), relation(100.0, 100.0)],
            classes: vec![EqualityClass { members: vec![(0, 100.0), (2, 100.0)] }],
            conditions: Vec::new(),
        };
        assert_eq!(order(&graph), "((0 2) 1)");
    }

    #[test]
    fn a_key_of_two_columns_matches_no_more_than_one_row() {
        let graph = JoinGraph {
            relations: vec![relation(6e6, 6e6), relation(8e5, 8e5)],
            classes: vec![
                EqualityClass { members: vec![(0, 2e5), (1, 2e5)] },
                EqualityClass { members: vec![(0, 1e4), (1, 1e4)] },
            ],
            conditions: Vec::new(),
        };
        let rows = graph.order().unwrap().1;
        assert!((rows - 6e6).abs() < 1.0, "{rows}");
    }

    #[test]
    fn a_long_chain_is_joined_along_its_links() {
        // 200 tables of 10 rows; from one to the next by key, in a scattered order.
        let count = 200;
        let place = |number: usize| (number * 77) % count;
        let class = |number: usize| {
            let mut members = vec![(place(number), 10.0), (place(number + 1), 10.0)];
            members.sort_by_key(|member| member.0);
            EqualityClass { members }
        };
        let graph = JoinGraph {
            relations: vec![relation(10.0, 10.0); count],
            classes: (0..count - 1).map(class).collect(),
            conditions: Vec::new(),
        };
        let (_, rows) = graph.order().unwrap();
        assert!((rows - 10.0).abs() < 1e-6, "{rows}");
    }
}
