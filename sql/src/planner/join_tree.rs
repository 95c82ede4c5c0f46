//! Joins put together again: from a group of units to a tree of joins in a chosen order.
//!
//! ```text
//! group -> conditions sorted by what they are about -> equalities make classes
//!   -> units with their own conditions, constants of their classes included -> sizes -> order
//!   -> joins, each with the conditions that can stand there first -> tail -> columns as before
//! ```

use std::cell::Cell;

use types::expr::Expr;
use types::{DataType, Datum};

use crate::logical::{Join, JoinChoice, JoinKind, Logical};
use crate::planner::alternatives::part_of_pairs;
use crate::planner::conjunct::{
    Columns, add_columns, all, as_operator, columns_of, is_free, renumber, within,
};
use crate::planner::cost;
use crate::planner::equivalence::{Classes, Member, equal, sides};
use crate::planner::estimate::Estimator;
use crate::planner::join_group::{JoinGroup, Tail, Unit, on};
use crate::planner::join_order::{
    EqualityClass, JoinCondition, JoinGraph, JoinTree, LookupPath, Relation,
};
use crate::planner::lookup::filtered_table;

/// A semi or anti join that drops less than this part of a unit's rows waits for the other joins.
const EARLY_SEMI_JOIN: f64 = 0.5;

/// What a column of a group belongs to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Owner {
    Unit(usize),
    Tail(usize),
}

/// A condition and the units it is about, ascending.
struct Condition {
    predicate: Expr,
    units: Vec<usize>,
}

/// The conditions of a group, each where it belongs.
#[derive(Default)]
struct Sorted {
    /// On one unit alone.
    of_unit: Vec<Vec<Expr>>,
    /// On several.
    between: Vec<Condition>,
    /// Between units, as classes; what each unit has in one is equal.
    classes: Vec<Vec<Member>>,
    /// On right sides of the tail; to be checked after that join.
    of_tail: Vec<Vec<Expr>>,
    /// Nothing can be true.
    never: bool,
}

/// What choices are made with.
#[derive(Clone, Copy)]
pub(super) struct Chooser<'a> {
    pub estimator: Estimator<'a>,
    /// The first parameter of the statement that nobody uses yet.
    pub next_parameter: &'a Cell<usize>,
}

impl Chooser<'_> {
    /// Returns the first of so many new parameters.
    fn new_parameters(&self, count: usize) -> usize {
        self.next_parameter.replace(self.next_parameter.get() + count)
    }
}

/// Puts conditions on plans; the rest of the rule that this file is a part of.
pub(super) type PushInto<'a> = &'a mut dyn FnMut(Logical, Vec<Expr>) -> Logical;

/// Returns the plan of a group.
pub(super) fn put_together(
    mut group: JoinGroup,
    chooser: Chooser<'_>,
    push_into: PushInto<'_>,
) -> Logical {
    let estimator = chooser.estimator;
    let owners = owners_of(&group);
    let sorted = sort(std::mem::take(&mut group.conjuncts), &group, &owners);
    if sorted.never {
        let types = group.outputs.iter().map(Expr::data_type).collect();
        return Logical::Values { types, rows: Vec::new() };
    }
    let mut parts: Vec<Part> = Vec::with_capacity(group.units.len());
    for (unit, conjuncts) in group.units.into_iter().zip(sorted.of_unit) {
        let first = unit.columns.start;
        let own = conjuncts.into_iter().map(|c| renumber(c, &|index| index - first)).collect();
        let plan = push_into(unit.plan, own);
        parts.push(Part { plan, columns: unit.columns.collect() });
    }
    let mut late = Vec::new();
    for (tail, conjuncts) in group.tail.into_iter().zip(sorted.of_tail) {
        let right = Unit { plan: push_into(tail.right.plan, Vec::new()), ..tail.right };
        let tail = Tail { right, ..tail };
        if let Some(tail) = done_early(tail, &mut parts, &owners, chooser) {
            late.push((tail, conjuncts));
        }
    }
    let graph = graph_of(&parts, &sorted.classes, &sorted.between, estimator);
    let Some((tree, mut rows)) = graph.order() else { unreachable!("a group has units") };
    let mut builder = Builder {
        parts: parts.into_iter().map(Some).collect(),
        classes: sorted.classes,
        between: sorted.between.into_iter().map(Some).collect(),
        chooser,
    };
    let (mut part, _) = builder.build(&tree);
    for (tail, conjuncts) in late {
        part = with_tail(part, tail, &mut rows, chooser);
        part = part.filtered(conjuncts);
    }
    part = part.filtered(group.volatile);
    part.yielding(group.outputs)
}

/// A plan, and which columns of the group its columns are.
struct Part {
    plan: Logical,
    columns: Vec<usize>,
}

impl Part {
    /// Returns the positions of the group's columns, by their numbers.
    fn positions(&self) -> ahash::AHashMap<usize, usize> {
        self.columns.iter().enumerate().map(|(position, &column)| (column, position)).collect()
    }

    /// Returns an expression over the group's columns as one over the plan's.
    fn over(&self, expressions: Vec<Expr>) -> Vec<Expr> {
        let positions = self.positions();
        expressions.into_iter().map(|e| renumber(e, &|index| positions[&index])).collect()
    }

    fn filtered(self, conjuncts: Vec<Expr>) -> Part {
        let Some(predicate) = all(self.over(conjuncts)) else { return self };
        Part { plan: Logical::Filter { input: Box::new(self.plan), predicate }, ..self }
    }

    /// Returns the plan with these columns.
    fn yielding(self, outputs: Vec<Expr>) -> Logical {
        let as_it_is = outputs.len() == self.columns.len()
            && outputs.iter().zip(&self.columns).all(
                |(output, column)| matches!(output, Expr::Column { index, .. } if index == column),
            );
        if as_it_is {
            return self.plan;
        }
        let expressions = self.over(outputs);
        Logical::Project { input: Box::new(self.plan), expressions }
    }

    fn joined(self, kind: JoinKind, right: Part, conjuncts: Vec<Expr>, choice: JoinChoice) -> Part {
        let both = Part {
            plan: Logical::Values { types: Vec::new(), rows: Vec::new() },
            columns: self.columns.iter().chain(&right.columns).copied().collect(),
        };
        let on = on(both.over(conjuncts));
        let columns = match kind {
            JoinKind::Semi | JoinKind::Anti => self.columns,
            _ => both.columns,
        };
        let (left, right) = (Box::new(self.plan), Box::new(right.plan));
        Part { plan: Logical::Join(Join { kind, left, right, on, choice }), columns }
    }
}

fn owners_of(group: &JoinGroup) -> Vec<Owner> {
    let units = group.units.iter().enumerate().map(|(number, unit)| (Owner::Unit(number), unit));
    let tails = group.tail.iter().enumerate();
    let tails = tails.map(|(number, tail)| (Owner::Tail(number), &tail.right));
    let all: Vec<(Owner, &Unit)> = units.chain(tails).collect();
    let count = all.iter().map(|(_, unit)| unit.columns.end).max().unwrap_or(0);
    // Numbers of units that were taken apart are not used any more.
    let mut owners = vec![Owner::Unit(usize::MAX); count];
    for (owner, unit) in all {
        owners[unit.columns.clone()].fill(owner);
    }
    owners
}

/// Returns the units and the last join of the tail that an expression uses columns of.
fn owners_in(expression: &Expr, owners: &[Owner]) -> (Vec<usize>, Option<usize>) {
    let (mut units, mut tail) = (Columns::new(), None);
    expression.walk(&mut |part| {
        if let Expr::Column { index, .. } = part {
            match owners[*index] {
                Owner::Unit(unit) => {
                    units.insert(unit);
                }
                Owner::Tail(number) => tail = tail.max(Some(number)),
            }
        }
    });
    (units.into_iter().collect(), tail)
}

fn sort(conjuncts: Vec<Expr>, group: &JoinGroup, owners: &[Owner]) -> Sorted {
    let mut sorted = Sorted {
        of_unit: vec![Vec::new(); group.units.len()],
        of_tail: vec![Vec::new(); group.tail.len()],
        ..Sorted::default()
    };
    let mut classes = Classes::default();
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
                // What depends on no row is checked where rows are met first.
                [] => sorted.of_unit[0].push(conjunct),
                [unit] => sorted.of_unit[unit].push(conjunct),
                _ => sorted.between.push(Condition { predicate: conjunct, units }),
            },
        }
    }
    for class in classes.into_classes() {
        sorted.place(class);
    }
    sorted
}

/// Returns a side of an equality as a member of a class, unless it is about several units.
fn member(side: &Expr, owners: &[Owner]) -> Option<Member> {
    let unit = match owners_in(side, owners).0[..] {
        [] => None,
        [unit] => Some(unit),
        _ => return None,
    };
    Some(Member { expression: side.clone(), unit })
}

impl Sorted {
    /// Makes conditions of a class: with a constant each member equals that; without, what a unit
    /// has in it is equal, and joins do the rest.
    fn place(&mut self, class: Vec<Member>) {
        let equality = |left: &Member, right: &Member| {
            equal(&left.expression, &right.expression).expect("members of a class are comparable")
        };
        let (constants, mut members): (Vec<Member>, Vec<Member>) =
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

/// Does a semi or anti join on the one unit whose columns it uses, if it drops many of its rows or
/// there are no others. Returns it otherwise.
fn done_early(
    tail: Tail,
    parts: &mut [Part],
    owners: &[Owner],
    chooser: Chooser<'_>,
) -> Option<Tail> {
    let estimator = chooser.estimator;
    if !matches!(tail.kind, JoinKind::Semi | JoinKind::Anti) {
        return Some(tail);
    }
    let mut used = Columns::new();
    tail.on.iter().for_each(|conjunct| add_columns(conjunct, &mut used));
    used.retain(|column| !tail.right.columns.contains(column));
    let mut units = used.iter().map(|&column| owners[column]);
    let Some(Owner::Unit(unit)) = units.next() else { return Some(tail) };
    if units.any(|other| other != Owner::Unit(unit)) {
        return Some(tail);
    }
    let part = &mut parts[unit];
    let empty = Logical::Values { types: Vec::new(), rows: Vec::new() };
    let left =
        Part { plan: std::mem::replace(&mut part.plan, empty), columns: part.columns.clone() };
    let before = estimator.rows(&left.plan);
    let right =
        Part { plan: tail.right.plan.clone(), columns: tail.right.columns.clone().collect() };
    let joined = left.joined(tail.kind, right, tail.on.clone(), JoinChoice::default());
    let alone = parts.len() == 1;
    let rows = estimator.rows(&joined.plan);
    let Part { plan: Logical::Join(mut join), columns } = joined else {
        unreachable!("it was joined above")
    };
    if alone || rows <= before * EARLY_SEMI_JOIN {
        join.choice = tail_choice(&tail, before, rows, chooser);
        parts[unit] = Part { plan: Logical::Join(join), columns };
        return None;
    }
    parts[unit].plan = *join.left;
    Some(tail)
}

/// Does a join of the tail.
fn with_tail(left: Part, tail: Tail, rows: &mut f64, chooser: Chooser<'_>) -> Part {
    let estimator = chooser.estimator;
    let (left_rows, right_rows) = (*rows, estimator.rows(&tail.right.plan));
    *rows = match tail.kind {
        JoinKind::Left => left_rows,
        _ => (left_rows * 0.5).max(1.0),
    };
    let choice = tail_choice(&tail, left_rows, *rows, chooser);
    let right = Part { plan: tail.right.plan, columns: tail.right.columns.collect() };
    match tail.kind {
        // The smaller side is kept in memory.
        JoinKind::Left if right_rows > left_rows && choice.lookup.is_none() => {
            right.joined(JoinKind::Right, left, tail.on, choice)
        }
        kind => left.joined(kind, right, tail.on, choice),
    }
}

/// Returns how a join of the tail is best done, of so many left rows that yield so many.
fn tail_choice(tail: &Tail, left_rows: f64, rows: f64, chooser: Chooser<'_>) -> JoinChoice {
    let estimator = chooser.estimator;
    let right_rows = estimator.rows(&tail.right.plan);
    let kept = if tail.kind == JoinKind::Left { left_rows.min(right_rows) } else { right_rows };
    let whole = read_cost(&tail.right.plan, estimator) + cost::hash_join(left_rows, kept, rows);
    let lookup = tail_lookup(tail, estimator)
        .filter(|lookup| cost::lookup_join(left_rows, *lookup, rows) < whole)
        .map(|_| chooser.new_parameters(tail.on.len()));
    JoinChoice { rows: Some(rows), lookup, merge: kept >= cost::MANY_KEPT }
}

/// Returns the cost of looking up the right rows of one left row; `None` if that cannot be.
fn tail_lookup(tail: &Tail, estimator: Estimator<'_>) -> Option<f64> {
    let table = filtered_table(&tail.right.plan)?;
    let right = &tail.right.columns;
    let key = |conjunct: &Expr| {
        let (a, b) = sides(conjunct)?;
        let is_inner = |side: &Expr| within(side, right.clone()) && !is_free(side);
        let is_outer = |side: &Expr| !columns_of(side).iter().any(|column| right.contains(column));
        let (inner, outer) = if is_inner(a) { (a, b) } else { (b, a) };
        (is_inner(inner) && is_outer(outer) && !is_free(outer)).then(|| {
            let inner = renumber(inner.clone(), &|index| index - right.start);
            (inner, outer.data_type())
        })
    };
    let keys: Vec<(Expr, DataType)> = tail.on.iter().filter_map(key).collect();
    table.key_path(&keys, estimator).map(|path| path.cost)
}

/// Returns the cost of all rows of a plan.
fn read_cost(plan: &Logical, estimator: Estimator<'_>) -> f64 {
    match filtered_table(plan) {
        Some(table) => table.scan_cost(estimator),
        None => estimator.rows(plan),
    }
}

/// Returns the ways to look up the rows of a unit by what it has in some classes.
fn lookups(plan: &Logical, keys: &[(usize, Expr)], estimator: Estimator<'_>) -> Vec<LookupPath> {
    let Some(table) = filtered_table(plan) else { return Vec::new() };
    let mut paths: Vec<LookupPath> = Vec::new();
    let mut add = |keys: &[(usize, Expr)]| {
        let values: Vec<_> = keys.iter().map(|(_, e)| (e.clone(), e.data_type())).collect();
        if let Some(path) = table.key_path(&values, estimator) {
            let classes: Vec<usize> = path.used.iter().map(|&key| keys[key].0).collect();
            if paths.iter().all(|known| known.classes != classes) {
                paths.push(LookupPath { classes, cost: path.cost });
            }
        }
    };
    add(keys);
    if keys.len() > 1 {
        keys.iter().for_each(|key| add(std::slice::from_ref(key)));
    }
    paths
}

fn graph_of(
    parts: &[Part],
    classes: &[Vec<Member>],
    between: &[Condition],
    estimator: Estimator<'_>,
) -> JoinGraph {
    let own = |unit: usize, expression: &Expr| {
        let first = parts[unit].columns.first().copied().unwrap_or(0);
        renumber(expression.clone(), &|index| index - first)
    };
    let mut keys: Vec<Vec<(usize, Expr)>> = vec![Vec::new(); parts.len()];
    for (number, class) in classes.iter().enumerate() {
        for member in class {
            if let Some(unit) = member.unit {
                keys[unit].push((number, own(unit, &member.expression)));
            }
        }
    }
    let relations = parts.iter().zip(&keys).map(|(part, keys)| Relation {
        rows: estimator.rows(&part.plan),
        base_rows: estimator.unfiltered_rows(&part.plan),
        cost: read_cost(&part.plan, estimator),
        lookups: lookups(&part.plan, keys, estimator),
    });
    let class = |class: &Vec<Member>| {
        let members = class.iter().filter_map(|member| {
            let unit = member.unit?;
            let distinct = estimator.distinct(&own(unit, &member.expression), &parts[unit].plan);
            Some((unit, distinct.max(1.0)))
        });
        EqualityClass { members: members.collect() }
    };
    let condition = |condition: &Condition| {
        let is_equality = hashable(&condition.predicate);
        let part_of = |part: &Expr, unit: usize| {
            let columns = columns_of(part);
            let is_own = !columns.is_empty()
                && columns.iter().all(|column| parts[unit].columns.contains(column));
            is_own.then(|| estimator.selectivity(&own(unit, part), &parts[unit].plan))
        };
        let blind = |part: &Expr| estimator.blind_selectivity(part);
        let selectivity = part_of_pairs(&condition.predicate, &condition.units, &part_of, &blind);
        JoinCondition { relations: condition.units.clone(), selectivity, is_equality }
    };
    JoinGraph::new(
        relations.collect(),
        classes.iter().map(class).collect(),
        between.iter().map(condition).collect(),
    )
}

/// Returns whether a hash join may be done by a condition: an equality whose sides share no column.
fn hashable(predicate: &Expr) -> bool {
    let Some(("=", left, right)) = as_operator(predicate) else { return false };
    columns_of(left).is_disjoint(&columns_of(right))
}

/// Makes joins of a tree, taking the conditions as they can stand.
struct Builder<'a> {
    parts: Vec<Option<Part>>,
    classes: Vec<Vec<Member>>,
    between: Vec<Option<Condition>>,
    chooser: Chooser<'a>,
}

impl Builder<'_> {
    /// Returns the joined plan and its units, ascending.
    fn build(&mut self, tree: &JoinTree) -> (Part, Columns) {
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
            let ready =
                |condition: &mut Condition| condition.units.iter().all(|unit| units.contains(unit));
            conjuncts.extend(condition.take_if(ready).map(|condition| condition.predicate));
        }
        let lookup = lookup.then(|| self.chooser.new_parameters(conjuncts.len()));
        let merge = self.chooser.estimator.rows(&right.plan) >= cost::MANY_KEPT;
        let choice = JoinChoice { rows: Some(rows), lookup, merge };
        (left.joined(JoinKind::Inner, right, conjuncts, choice), units)
    }
}
