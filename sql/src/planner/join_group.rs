//! Join group: a tree of joins flattened to units, conditions, and a tail of outer and semi
//! joins.
//!
//! Inner joins, and the filters and plain projections between them, are flattened. The result is
//! a list of units (tables, groups, unions …) that may be joined in any order, the conditions,
//! and a tail of outer, semi and anti joins that are executed after them.
//!
//! A left join moves to the tail, `(a LEFT JOIN b) JOIN c` becoming `(a JOIN c) LEFT JOIN b`,
//! unless a condition between b and c prevents that; it is then a separate unit. If some
//! condition rejects NULLs of b, it is an inner join. Semi and anti joins only use columns of
//! their left side and may always move to the tail; a semi join with at most one match is an
//! inner join. A full join that no condition reduces is a unit.
//!
//! The columns of units and of right sides have group-wide numbers; all expressions use these.
//! are over these.

use std::ops::Range;

use types::expr::Expr;

use crate::logical::{Join, JoinKind, Logical, TableScan};
use crate::planner::conjunct::{
    all, as_column, boolean, column, is_volatile, renumber, split, substitute, within,
};
use crate::planner::equivalence::sides;
use crate::planner::estimate::is_unique;
use crate::planner::or_factoring::{factor_common, restriction_on};
use crate::planner::plan_properties::width_of;

/// Input of a join group: a plan that is joined as a whole.
#[derive(Debug)]
pub(super) struct JoinUnit {
    /// Plan of its rows.
    pub plan: Logical,
    /// Numbers of its columns.
    pub columns: Range<usize>,
}

/// Join that is executed after the units are joined.
#[derive(Debug)]
pub(super) struct TailJoin {
    /// Left, semi or anti.
    pub kind: JoinKind,
    /// Right side.
    pub right: JoinUnit,
    /// Join conditions.
    pub on: Vec<Expr>,
}

/// Join group; see the module.
#[derive(Debug, Default)]
pub(super) struct JoinGroup {
    /// Units in the order of the statement.
    pub units: Vec<JoinUnit>,
    /// Conditions.
    pub conjuncts: Vec<Expr>,
    /// Volatile conditions.
    pub volatile: Vec<Expr>,
    /// Joins after the units, in order.
    pub tail: Vec<TailJoin>,
    /// Output columns of the join tree.
    pub outputs: Vec<Expr>,
    next_column: usize,
}

fn columns(unit: &JoinUnit) -> impl Iterator<Item = Expr> {
    let types = unit.plan.column_types();
    unit.columns.clone().zip(types).map(|(index, data_type)| column(index, data_type))
}

fn conjuncts_of(predicate: Expr) -> Vec<Expr> {
    let mut conjuncts = Vec::new();
    split(predicate, &mut conjuncts);
    conjuncts
}

fn is_plain(expression: &Expr) -> bool {
    match expression {
        Expr::Cast { operand, .. } => as_column(operand).is_some(),
        Expr::Column { .. } | Expr::Constant { .. } | Expr::Parameter { .. } => true,
        _ => false,
    }
}

fn uses(expression: &Expr, columns: &Range<usize>) -> bool {
    let mut uses = false;
    expression.walk(&mut |part| {
        if let Expr::Column { index, .. } = part {
            uses |= columns.contains(index);
        }
    });
    uses
}

impl JoinGroup {
    /// Flattens a join. `conjuncts` hold for its rows and are over its columns.
    pub(super) fn new(join: Join, conjuncts: Vec<Expr>) -> JoinGroup {
        let mut group = JoinGroup::default();
        let outputs = group.flatten(Logical::Join(join));
        conjuncts.into_iter().for_each(|conjunct| group.hold(substitute(conjunct, &outputs)));
        group.outputs = outputs;
        group.open_outer_joins();
        group.take_alternatives_apart();
        group
    }

    /// Extracts conditions from OR: what all alternatives have in common, and restrictions of
    /// single units.
    fn take_alternatives_apart(&mut self) {
        for conjunct in std::mem::take(&mut self.conjuncts) {
            match &conjunct {
                Expr::Or(operands) => match factor_common(operands) {
                    None => self.conjuncts.push(conjunct),
                    Some((common, rest)) => self.conjuncts.extend(common.into_iter().chain(rest)),
                },
                _ => self.conjuncts.push(conjunct),
            }
        }
        if self.units.len() < 2 {
            return;
        }
        let said_of_unit = |unit: &JoinUnit| {
            let own = |part: &Expr| within(part, unit.columns.clone()) && uses(part, &unit.columns);
            self.conjuncts.iter().filter_map(|one| restriction_on(one, &own)).collect::<Vec<Expr>>()
        };
        let said: Vec<Expr> = self.units.iter().flat_map(said_of_unit).collect();
        self.conjuncts.extend(said);
    }

    fn hold(&mut self, conjunct: Expr) {
        match is_volatile(&conjunct) {
            true => self.volatile.push(conjunct),
            false => self.conjuncts.push(conjunct),
        }
    }

    fn unit(&mut self, plan: Logical) -> JoinUnit {
        let first = self.next_column;
        self.next_column += plan.column_types().len();
        JoinUnit { plan, columns: first..self.next_column }
    }

    /// Flattens a plan into the group; returns its columns.
    fn flatten(&mut self, plan: Logical) -> Vec<Expr> {
        match plan {
            Logical::Join(join) => self.flatten_join(join),
            Logical::Filter { input, predicate } if !is_volatile(&predicate) => {
                let outputs = self.flatten(*input);
                let conjuncts = conjuncts_of(substitute(predicate, &outputs));
                conjuncts.into_iter().for_each(|conjunct| self.hold(conjunct));
                outputs
            }
            Logical::Project { input, expressions } if expressions.iter().all(is_plain) => {
                let inputs = self.flatten(*input);
                expressions.into_iter().map(|e| substitute(e, &inputs)).collect()
            }
            plan => {
                let unit = self.unit(plan);
                let outputs = columns(&unit).collect();
                self.units.push(unit);
                outputs
            }
        }
    }

    fn flatten_join(&mut self, join: Join) -> Vec<Expr> {
        match join.kind {
            JoinKind::Semi if finds_one(&join) => {
                let left_width = width_of(&join.left);
                let mut outputs = self.flatten_join(Join { kind: JoinKind::Inner, ..join });
                outputs.truncate(left_width);
                outputs
            }
            JoinKind::Inner => {
                let mut outputs = self.flatten(*join.left);
                outputs.extend(self.flatten(*join.right));
                let conjuncts = conjuncts_of(substitute(join.on, &outputs));
                conjuncts.into_iter().for_each(|conjunct| self.hold(conjunct));
                outputs
            }
            JoinKind::Semi | JoinKind::Anti => {
                let outputs = self.flatten(*join.left);
                let tail = self.tail(join.kind, *join.right, join.on, &outputs);
                self.tail.push(tail);
                outputs
            }
            JoinKind::Left | JoinKind::Full => {
                let unit = self.unit(Logical::Join(join));
                let outputs = columns(&unit).collect();
                self.units.push(unit);
                outputs
            }
            JoinKind::Right => {
                let left_width = join.left.column_types().len();
                let unit = self.unit(Logical::Join(mirrored(join)));
                let mut outputs: Vec<Expr> = columns(&unit).collect();
                outputs.rotate_right(left_width);
                self.units.push(unit);
                outputs
            }
        }
    }

    /// Returns a join of the tail. `left`: the expressions of its left columns. Its conditions on
    /// one side only are moved there, as far as the join type allows.
    fn tail(&mut self, kind: JoinKind, right: Logical, on: Expr, left: &[Expr]) -> TailJoin {
        let mut right = self.unit(right);
        let by: Vec<Expr> = left.iter().cloned().chain(columns(&right)).collect();
        let (mut kept, mut inside) = (Vec::new(), Vec::new());
        for conjunct in conjuncts_of(substitute(on, &by)) {
            let free = is_volatile(&conjunct);
            if !free && uses(&conjunct, &right.columns) && within(&conjunct, right.columns.clone())
            {
                inside.push(renumber(conjunct, &|index| index - right.columns.start));
            } else if !free && kind == JoinKind::Semi && !uses(&conjunct, &right.columns) {
                self.conjuncts.push(conjunct);
            } else {
                kept.push(conjunct);
            }
        }
        if let Some(predicate) = all(inside) {
            right.plan = Logical::Filter { input: Box::new(right.plan), predicate };
        }
        TailJoin { kind, right, on: kept }
    }

    /// Flattens units that are outer joins, until none is left that can be flattened.
    fn open_outer_joins(&mut self) {
        let mut position = 0;
        while position < self.units.len() {
            match self.opening(position) {
                Some(kind) => self.open(position, kind),
                None => position += 1,
            }
        }
    }

    /// Returns the join type as which a unit can be flattened.
    fn opening(&self, position: usize) -> Option<JoinKind> {
        let unit = &self.units[position];
        let Logical::Join(join) = &unit.plan else { return None };
        let middle = unit.columns.start + join.left.column_types().len();
        let (left, right) = (unit.columns.start..middle, middle..unit.columns.end);
        let semi = self.tail.iter().filter(|tail| tail.kind == JoinKind::Semi);
        let conditions = || self.conjuncts.iter().chain(semi.clone().flat_map(|tail| &tail.on));
        let rejected = |side| conditions().any(|conjunct| rejects_nulls_of(conjunct, side));
        match join.kind {
            JoinKind::Left if rejected(&right) => Some(JoinKind::Inner),
            JoinKind::Left => {
                let hinders = |conjunct: &Expr| {
                    uses(conjunct, &right) && !within(conjunct, unit.columns.clone())
                };
                (!self.conjuncts.iter().any(hinders)).then_some(JoinKind::Left)
            }
            JoinKind::Full if rejected(&left) => Some(JoinKind::Left),
            JoinKind::Full if rejected(&right) => Some(JoinKind::Right),
            _ => None,
        }
    }

    /// Flattens a unit, which is a join, as a join of this type.
    fn open(&mut self, position: usize, kind: JoinKind) {
        let after = self.units.split_off(position + 1);
        let Some(JoinUnit { plan: Logical::Join(join), columns: old }) = self.units.pop() else {
            unreachable!("only joins are taken apart")
        };
        let was_full = join.kind == JoinKind::Full;
        let join = Join { kind, ..join };
        let outputs = match kind {
            JoinKind::Left if !was_full => {
                let mut outputs = self.flatten(*join.left);
                let tail = self.tail(kind, *join.right, join.on, &outputs);
                outputs.extend(columns(&tail.right));
                // Joins that use its columns come later.
                self.tail.insert(0, tail);
                outputs
            }
            _ => self.flatten_join(join),
        };
        self.units.extend(after);
        self.replace(&old, &outputs);
    }

    /// Replaces columns by expressions.
    fn replace(&mut self, columns: &Range<usize>, by: &[Expr]) {
        let tails = self.tail.iter_mut().flat_map(|tail| &mut tail.on);
        let conditions = self.conjuncts.iter_mut().chain(&mut self.volatile);
        for expression in conditions.chain(tails).chain(&mut self.outputs) {
            if uses(expression, columns) {
                *expression = expression.clone().transform(&mut |part| match part {
                    Expr::Column { index, .. } if columns.contains(&index) => {
                        by[index - columns.start].clone()
                    }
                    part => part,
                });
            }
        }
    }
}

fn rejects_nulls_of(conjunct: &Expr, side: &Range<usize>) -> bool {
    let is_null = |part: &Expr| matches!(part, Expr::Column { index, .. } if side.contains(index));
    uses(conjunct, side) && conjunct.rejects_nulls(&is_null)
}

/// Returns whether a left row has at most one match: the conditions fix a unique key of the right
/// table.
fn finds_one(join: &Join) -> bool {
    let left_width = width_of(&join.left);
    let (left, right) = (0..left_width, left_width..left_width + width_of(&join.right));
    let key = |conjunct: &Expr| {
        let (a, b) = sides(conjunct)?;
        let (key, _) = [(a, b), (b, a)].into_iter().find(|(key, value)| {
            as_column(key).is_some_and(|at| right.contains(&at)) && within(value, left.clone())
        })?;
        Some(as_column(key)? - left_width)
    };
    let keys: Vec<usize> = conjuncts_of(join.on.clone()).iter().filter_map(key).collect();
    let columns = |scan: &TableScan, keys: &[usize]| -> Vec<usize> {
        keys.iter().map(|&key| scan.columns[key]).collect()
    };
    let (mut plan, mut keys) = (join.right.as_ref(), keys);
    loop {
        plan = match plan {
            Logical::Filter { input, .. } | Logical::Barrier { input } => input,
            Logical::Project { input, expressions } => {
                keys = keys.into_iter().filter_map(|key| as_column(&expressions[key])).collect();
                input
            }
            Logical::Scan(scan) => {
                return !scan.has_versions() && is_unique(&scan.table, &columns(scan, &keys));
            }
            _ => return false,
        }
    }
}

/// Returns a right join as a left join with exchanged sides.
fn mirrored(join: Join) -> Join {
    let left_width = join.left.column_types().len();
    let right_width = join.right.column_types().len();
    let on = renumber(join.on, &|index| {
        if index < left_width { index + right_width } else { index - left_width }
    });
    Join { kind: JoinKind::Left, left: join.right, right: join.left, on, ..join }
}

/// Returns the join condition.
pub(super) fn on(conjuncts: Vec<Expr>) -> Expr {
    all(conjuncts).unwrap_or_else(|| boolean(true))
}
