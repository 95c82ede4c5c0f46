//! Join tree construction: from a join group to a tree of joins in the chosen order.
//!
//! ```text
//! group -> conditions by their units -> equalities make classes
//!   -> units with their conditions, including constants of their classes -> sizes -> order
//!   -> joins, each with the conditions that first apply there -> tail -> original columns
//! ```
//!
//! Under a LIMIT, the best tree for all rows is compared with the best one for the first rows
//! ([`FirstRows`]), which streams its outer unit.

use types::Datum;
use types::expr::Expr;

use crate::logical::{JoinDecision, JoinKind, Logical};
use crate::planner::conjunct::{Columns, columns_of, hashable, renumber};
use crate::planner::cost;
use crate::planner::equivalence::{ClassMember, EquivalenceClasses, equal, sides};
use crate::planner::estimate::Estimator;
use crate::planner::first_rows::FirstRows;
use crate::planner::join_group::{JoinGroup, JoinUnit};
use crate::planner::join_order::{
    EqualityClass, JoinCondition, JoinGraph, JoinTree, LookupPath, Relation,
};
use crate::planner::join_part::{ColumnOwner, JoinPart, JoinPlanner, PushInto, read_cost};
use crate::planner::join_tail::{JoinSizes, apply_early, before_tail, with_tail};
use crate::planner::lookup::{LookupKey, filtered_table, lookup_sides};
use crate::planner::or_factoring::pair_selectivity;
use crate::planner::plan_properties::{is_empty, no_rows};

/// Condition, and its units, ascending.
struct UnitCondition {
    predicate: Expr,
    units: Vec<usize>,
}

/// Conditions of a group, by their place.
#[derive(Default)]
struct SortedConditions {
    /// Conditions on one unit.
    of_unit: Vec<Vec<Expr>>,
    /// Conditions on several units.
    between: Vec<UnitCondition>,
    /// Equivalence classes between units; the members of one unit are already equal.
    classes: Vec<Vec<ClassMember>>,
    /// Conditions on right sides of the tail, checked after that join.
    of_tail: Vec<Vec<Expr>>,
    /// True if no row can qualify.
    never: bool,
}

/// Returns the plan of a group.
pub(super) fn build_tree(
    mut group: JoinGroup,
    first: Option<FirstRows>,
    chooser: JoinPlanner<'_>,
    push_into: PushInto<'_>,
) -> Logical {
    let estimator = chooser.estimator;
    let owners = owners_of(&group);
    let sorted = sort(std::mem::take(&mut group.conjuncts), &group, &owners);
    let nothing = || no_rows(group.outputs.iter().map(Expr::data_type).cloned().collect());
    if sorted.never {
        return nothing();
    }
    let mut parts: Vec<JoinPart> = Vec::with_capacity(group.units.len());
    for (unit, conjuncts) in group.units.into_iter().zip(sorted.of_unit) {
        let first = unit.columns.start;
        let own = conjuncts.into_iter().map(|c| renumber(c, &|index| index - first)).collect();
        let plan = push_into(unit.plan, own);
        if is_empty(&plan) {
            return nothing();
        }
        parts.push(JoinPart { plan, columns: unit.columns.collect() });
    }
    let mut late = Vec::new();
    for (tail, conjuncts) in std::mem::take(&mut group.tail).into_iter().zip(sorted.of_tail) {
        let tail = tail.with_right(push_into);
        match (tail.kind, is_empty(&tail.right.plan)) {
            (JoinKind::Semi, true) => return nothing(),
            (JoinKind::Anti, true) => {}
            _ => late.push((tail, conjuncts)),
        }
    }
    let first = first.map(|first| before_tail(first.over(&group.outputs), &late));
    let conditions = (sorted.classes.as_slice(), sorted.between.as_slice());
    let streamed = first.and_then(|first| streamed(first, &parts, conditions, estimator));
    let (tree, mut sizes) = streamed.unwrap_or_else(|| {
        let early =
            |(tail, conjuncts)| Some((apply_early(tail, &mut parts, &owners, chooser)?, conjuncts));
        late = std::mem::take(&mut late).into_iter().filter_map(early).collect();
        let order = graph_of(&parts, conditions, estimator).order();
        let Some(order) = order else { unreachable!("a group has units") };
        (order.tree, JoinSizes { rows: order.rows, needed: None })
    });
    let mut builder = JoinTreeBuilder {
        parts: parts.into_iter().map(Some).collect(),
        classes: sorted.classes,
        between: sorted.between.into_iter().map(Some).collect(),
        merges: sizes.needed.is_none(),
        chooser,
    };
    let (mut part, _) = builder.build(&tree);
    debug_assert!(builder.parts.iter().all(Option::is_none), "a unit is not joined");
    debug_assert!(builder.between.iter().all(Option::is_none), "a condition is not applied");
    for (tail, conjuncts) in late {
        part = with_tail(part, tail, &mut sizes, chooser);
        part = part.filtered(conjuncts);
    }
    part = part.filtered(group.volatile);
    part.yielding(group.outputs)
}

fn owners_of(group: &JoinGroup) -> Vec<ColumnOwner> {
    let units =
        group.units.iter().enumerate().map(|(number, unit)| (ColumnOwner::Unit(number), unit));
    let tails = group.tail.iter().enumerate();
    let tails = tails.map(|(number, tail)| (ColumnOwner::Tail(number), &tail.right));
    let all: Vec<(ColumnOwner, &JoinUnit)> = units.chain(tails).collect();
    let count = all.iter().map(|(_, unit)| unit.columns.end).max().unwrap_or(0);
    // Numbers of flattened units are unused.
    let mut owners = vec![ColumnOwner::Unit(usize::MAX); count];
    for (owner, unit) in all {
        owners[unit.columns.clone()].fill(owner);
    }
    owners
}

/// Returns the units and the last tail join whose columns an expression uses.
fn owners_in(expression: &Expr, owners: &[ColumnOwner]) -> (Vec<usize>, Option<usize>) {
    let (mut units, mut tail) = (Columns::new(), None);
    expression.walk(&mut |part| {
        if let Expr::Column { index, .. } = part {
            match owners[*index] {
                ColumnOwner::Unit(unit) => {
                    units.insert(unit);
                }
                ColumnOwner::Tail(number) => tail = tail.max(Some(number)),
            }
        }
    });
    (units.into_iter().collect(), tail)
}

fn sort(conjuncts: Vec<Expr>, group: &JoinGroup, owners: &[ColumnOwner]) -> SortedConditions {
    let mut sorted = SortedConditions {
        of_unit: vec![Vec::new(); group.units.len()],
        of_tail: vec![Vec::new(); group.tail.len()],
        ..SortedConditions::default()
    };
    let mut classes = EquivalenceClasses::default();
    for conjunct in conjuncts {
        if let Expr::Constant { value, .. } = &conjunct {
            sorted.never |= !matches!(value, Datum::Bool(true));
            continue;
        }
        let (units, tail) = owners_in(&conjunct, owners);
        if let Some(tail) = tail {
            sorted.of_tail[tail].push(conjunct);
            continue;
        }
        let members = sides(&conjunct)
            .and_then(|(left, right)| Some((member(left, owners)?, member(right, owners)?)));
        match members {
            Some((left, right)) if !units.is_empty() => classes.unite(left, right),
            _ => match units[..] {
                // Conditions without columns are checked on the first unit.
                [] => sorted.of_unit[0].push(conjunct),
                [unit] => sorted.of_unit[unit].push(conjunct),
                _ => sorted.between.push(UnitCondition { predicate: conjunct, units }),
            },
        }
    }
    for class in classes.into_classes() {
        sorted.place(class);
    }
    sorted
}

/// Returns a side of an equality as a class member, unless it uses several units.
fn member(side: &Expr, owners: &[ColumnOwner]) -> Option<ClassMember> {
    let unit = match owners_in(side, owners).0[..] {
        [] => None,
        [unit] => Some(unit),
        _ => return None,
    };
    Some(ClassMember { expression: side.clone(), unit })
}

impl SortedConditions {
    /// Derives the conditions of a class: with a constant, each member equals it; without, the
    /// members of one unit are equal, and joins apply the rest.
    fn place(&mut self, class: Vec<ClassMember>) {
        let equality = |left: &ClassMember, right: &ClassMember| {
            equal(&left.expression, &right.expression).expect("members of a class are comparable")
        };
        let (constants, mut members): (Vec<ClassMember>, Vec<ClassMember>) =
            class.into_iter().partition(|member| member.unit.is_none());
        for member in &members {
            if let Some(unit) = member.unit {
                let all = constants.iter().map(|constant| equality(member, constant));
                self.of_unit[unit].extend(all);
            }
        }
        if !constants.is_empty() {
            return;
        }
        members.sort_by_key(|member| member.unit);
        for pair in members.windows(2) {
            if let (Some(unit), true) = (pair[0].unit, pair[0].unit == pair[1].unit) {
                self.of_unit[unit].push(equality(&pair[0], &pair[1]));
            }
        }
        members.dedup_by_key(|member| member.unit);
        if members.len() > 1 {
            self.classes.push(members);
        }
    }
}

/// Returns the join tree for the first rows, if it costs less than the best one for all rows with
/// a sort, and the needed number of rows of the joined units.
fn streamed(
    first: FirstRows,
    parts: &[JoinPart],
    conditions: Conditions<'_>,
    estimator: Estimator<'_>,
) -> Option<(JoinTree, JoinSizes)> {
    let outer_cost = |unit: usize, rows: f64| {
        let JoinPart { plan, columns } = &parts[unit];
        let start = columns.first().copied().unwrap_or(0);
        let own = first.within(start..start + columns.len())?;
        FirstRows { rows, ..own }.cost(plan, estimator)
    };
    let graph = graph_of(parts, conditions, estimator);
    let streamed = graph.streamed(first.rows, &outer_cost)?;
    let whole = graph.order()?;
    let sort = if first.order.is_empty() { 0.0 } else { cost::TOP * whole.rows };
    let sizes = JoinSizes { rows: streamed.rows, needed: Some(first.rows) };
    (streamed.cost < whole.cost + sort).then_some((streamed.tree, sizes))
}

/// Class or condition that provides a look-up key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum KeySource {
    Class(usize),
    Condition(usize),
}

/// Returns the look-ups of a unit's rows: by all keys, by the classes only, by one class, and by
/// the conditions with the same other units.
fn lookups(
    plan: &Logical,
    keys: &[(KeySource, LookupKey)],
    between: &[UnitCondition],
    estimator: Estimator<'_>,
) -> Vec<LookupPath> {
    let Some(table) = filtered_table(plan) else { return Vec::new() };
    let mut paths: Vec<LookupPath> = Vec::new();
    let mut add = |is_in: &dyn Fn(KeySource) -> bool| {
        let keys = || keys.iter().filter(|(source, _)| is_in(*source));
        let values: Vec<LookupKey> = keys().map(|(_, key)| key.clone()).collect();
        let Some(path) = table.key_path(&values, estimator) else { return };
        let sources: Vec<KeySource> = keys().map(|(source, _)| *source).collect();
        let (mut classes, mut conditions) = (Vec::new(), Vec::new());
        for used in path.used {
            match sources[used] {
                KeySource::Class(class) => classes.push(class),
                KeySource::Condition(condition) => conditions.push(condition),
            }
        }
        let is_known =
            |known: &LookupPath| known.classes == classes && known.conditions == conditions;
        if !paths.iter().any(is_known) {
            paths.push(LookupPath { classes, conditions, cost: path.cost });
        }
    };
    add(&|_| true);
    if keys.len() == 1 {
        return paths;
    }
    let is_class = |source| matches!(source, KeySource::Class(_));
    add(&is_class);
    for (source, _) in keys {
        match *source {
            KeySource::Class(_) => add(&|other| other == *source),
            KeySource::Condition(number) => {
                let units = &between[number].units;
                let is_of_same = |other| match other {
                    KeySource::Class(_) => false,
                    KeySource::Condition(other) => between[other].units == *units,
                };
                add(&is_of_same);
                add(&|other| is_class(other) || is_of_same(other));
            }
        }
    }
    paths
}

/// Conditions between units: classes, and others.
type Conditions<'a> = (&'a [Vec<ClassMember>], &'a [UnitCondition]);

fn graph_of(
    parts: &[JoinPart],
    (classes, between): Conditions<'_>,
    estimator: Estimator<'_>,
) -> JoinGraph {
    let own = |unit: usize, expression: &Expr| {
        let first = parts[unit].columns.first().copied().unwrap_or(0);
        renumber(expression.clone(), &|index| index - first)
    };
    let mut keys: Vec<Vec<(KeySource, LookupKey)>> = vec![Vec::new(); parts.len()];
    for (number, class) in classes.iter().enumerate() {
        for member in class {
            if let Some(unit) = member.unit {
                let inner = own(unit, &member.expression);
                let data_type = inner.data_type().clone();
                keys[unit].push((KeySource::Class(number), LookupKey::equal(inner, &data_type)));
            }
        }
    }
    for (number, condition) in between.iter().enumerate() {
        for &unit in &condition.units {
            let columns = &parts[unit].columns;
            let is_own = |side: &Expr| columns_of(side).iter().all(|one| columns.contains(one));
            let is_outer = |side: &Expr| !columns_of(side).iter().any(|one| columns.contains(one));
            if let Some(found) = lookup_sides(&condition.predicate, &is_own, &is_outer) {
                let inner = own(unit, found.inner);
                let key =
                    LookupKey { inner, op: found.op, data_type: found.outer.data_type().clone() };
                keys[unit].push((KeySource::Condition(number), key));
            }
        }
    }
    let relations = parts.iter().zip(&keys).map(|(part, keys)| Relation {
        rows: estimator.rows(&part.plan),
        base_rows: estimator.unfiltered_rows(&part.plan),
        cost: read_cost(&part.plan, estimator),
        lookups: lookups(&part.plan, keys, between, estimator),
    });
    let class = |class: &Vec<ClassMember>| {
        let members = class.iter().filter_map(|member| {
            let unit = member.unit?;
            let distinct = estimator.distinct(&own(unit, &member.expression), &parts[unit].plan);
            Some((unit, distinct.max(1.0)))
        });
        EqualityClass { members: members.collect() }
    };
    let condition = |condition: &UnitCondition| {
        let is_equality = hashable(&condition.predicate);
        let part_of = |part: &Expr, unit: usize| {
            let columns = columns_of(part);
            let is_own = !columns.is_empty()
                && columns.iter().all(|column| parts[unit].columns.contains(column));
            is_own.then(|| estimator.selectivity(&own(unit, part), &parts[unit].plan))
        };
        let blind = |part: &Expr| estimator.blind_selectivity(part);
        let selectivity =
            pair_selectivity(&condition.predicate, &condition.units, &part_of, &blind);
        JoinCondition { relations: condition.units.clone(), selectivity, is_equality }
    };
    JoinGraph::new(
        relations.collect(),
        classes.iter().map(class).collect(),
        between.iter().map(condition).collect(),
    )
}

/// Builder of the joins of a tree; applies each condition as early as possible.
struct JoinTreeBuilder<'a> {
    parts: Vec<Option<JoinPart>>,
    classes: Vec<Vec<ClassMember>>,
    between: Vec<Option<UnitCondition>>,
    /// True if large sides may be merged instead of hashed.
    merges: bool,
    chooser: JoinPlanner<'a>,
}

impl JoinTreeBuilder<'_> {
    /// Returns the joined plan and its units, ascending.
    fn build(&mut self, tree: &JoinTree) -> (JoinPart, Columns) {
        let (left, right, lookup, rows) = match tree {
            JoinTree::Relation(unit) => {
                let part = self.parts[*unit].take().expect("each unit is joined once");
                return (part, Columns::from([*unit]));
            }
            JoinTree::Join { left, right, lookup, rows } => (left, right, *lookup, *rows),
        };
        let (left, left_units) = self.build(left);
        let (right, right_units) = self.build(right);
        let mut conjuncts = Vec::new();
        for class in &self.classes {
            let of = |units: &Columns| {
                class.iter().find(|member| member.unit.is_some_and(|unit| units.contains(&unit)))
            };
            if let (Some(left), Some(right)) = (of(&left_units), of(&right_units)) {
                conjuncts.extend(equal(&left.expression, &right.expression));
            }
        }
        let mut units = left_units;
        units.extend(right_units);
        for condition in &mut self.between {
            let ready = |condition: &mut UnitCondition| {
                condition.units.iter().all(|unit| units.contains(unit))
            };
            conjuncts.extend(condition.take_if(ready).map(|condition| condition.predicate));
        }
        let lookup = lookup.then(|| self.chooser.new_parameters(conjuncts.len()));
        let estimator = self.chooser.estimator;
        let merge = self.merges && estimator.rows(&right.plan) >= cost::MANY_KEPT;
        let left_rows_for_each = Some(estimator.rows(&left.plan) / rows);
        let choice =
            JoinDecision { rows: Some(rows), left_rows_per_row: left_rows_for_each, lookup, merge };
        (left.joined(JoinKind::Inner, right, conjuncts, choice), units)
    }
}
