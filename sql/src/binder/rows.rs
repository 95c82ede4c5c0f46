//! A plan under construction, and the placement of expressions on it: subqueries become [`Apply`]
//! nodes below the expression, which append their value as a column.

use std::sync::Arc;

use ahash::AHashMap;
use types::DataType;
use types::expr::{EvalContext, Expr};

use crate::binder::guard::{Guard, is_computed_once, is_not_false, is_not_true, is_null};
use crate::binder::level::{SUBQUERY, SUBQUERY_COLUMN, SubqueryUse};
use crate::binder::tree::{conjunction, conjuncts, for_each_column, identity, map_columns};
use crate::logical::{
    Apply, ApplyKind, Join, JoinDecision, JoinKind, Logical, ProjectSet, SetFunction,
};

/// A plan under construction.
#[derive(Debug)]
pub(super) struct Rows {
    /// The plan.
    pub(super) plan: Logical,
    /// Types of its columns.
    pub(super) types: Vec<DataType>,
    /// The columns of the placed subqueries, with the guard under which each was evaluated.
    placed: AHashMap<usize, Vec<(Guard, usize)>>,
}

/// A subquery over the columns of a plan: an [`Apply`] without its input.
#[derive(Debug, Clone)]
pub(super) struct ApplyStep {
    pub(super) subquery: Box<Logical>,
    pub(super) bindings: Vec<(usize, usize)>,
    pub(super) kind: ApplyKind,
    pub(super) guard: Option<Expr>,
}

impl Rows {
    /// Returns a plan whose columns have these types.
    pub(super) fn new(plan: Logical, types: Vec<DataType>) -> Rows {
        Rows { plan, types, placed: AHashMap::new() }
    }

    /// Returns one row without columns.
    pub(super) fn unit() -> Rows {
        Rows::new(Logical::Values { types: Vec::new(), rows: vec![Vec::new()] }, Vec::new())
    }

    fn wrap(&mut self, change: impl FnOnce(Box<Logical>) -> Logical) {
        let empty = Logical::Append { inputs: Vec::new() };
        let input = std::mem::replace(&mut self.plan, empty);
        self.plan = change(Box::new(input));
    }

    /// Returns an expression with its subqueries replaced by columns. The Apply nodes that compute
    /// them are added, with the guards under which the expression reads them. Constants are folded
    /// first, as in PostgreSQL: `(SELECT …) + NULL` is NULL, and the subquery is not evaluated.
    pub(super) fn place(&mut self, expr: Expr, subqueries: &[SubqueryUse]) -> Expr {
        self.place_under(expr, &Guard::default(), subqueries)
    }

    /// Places an expression, as [`Rows::place`] does, that is evaluated where `guard` is true.
    pub(super) fn place_under(
        &mut self,
        expr: Expr,
        guard: &Guard,
        subqueries: &[SubqueryUse],
    ) -> Expr {
        let expr = if has_subquery(&expr) { folded(expr, subqueries) } else { expr };
        self.place_part(expr, guard, subqueries)
    }

    fn place_part(&mut self, expr: Expr, guard: &Guard, subqueries: &[SubqueryUse]) -> Expr {
        if !has_subquery(&expr) {
            return expr;
        }
        match expr {
            Expr::Column { index, data_type } if (SUBQUERY..SUBQUERY_COLUMN).contains(&index) => {
                let index = self.column_of_subquery(index, guard, subqueries);
                Expr::Column { index, data_type }
            }
            Expr::And(operands) => {
                Expr::And(self.place_operands(operands, guard, &is_not_false, subqueries))
            }
            Expr::Or(operands) => {
                Expr::Or(self.place_operands(operands, guard, &is_not_true, subqueries))
            }
            Expr::Coalesce { operands, data_type } => {
                let operands = self.place_operands(operands, guard, &is_null, subqueries);
                Expr::Coalesce { operands, data_type }
            }
            Expr::Case { branches, otherwise, data_type } => {
                let (branches, otherwise) =
                    self.place_branches((branches, *otherwise), guard, subqueries);
                Expr::Case { branches, otherwise: Box::new(otherwise), data_type }
            }
            Expr::InList { operand, list } => {
                let operand = self.place_part(*operand, guard, subqueries);
                let operand = match list.iter().any(has_subquery) {
                    true => self.settled(operand, guard),
                    false => operand,
                };
                let differs = |item: Expr| {
                    let operand = Box::new(operand.clone());
                    is_not_true(Expr::InList { operand, list: Arc::new(vec![item]) })
                };
                let list = Arc::unwrap_or_clone(list);
                let list = Arc::new(self.place_operands(list, guard, &differs, subqueries));
                Expr::InList { operand: Box::new(operand), list }
            }
            other => other.map_children(&mut |child| self.place_part(child, guard, subqueries)),
        }
    }

    /// Places operands that are evaluated in order; `goes_on` returns the condition under which
    /// evaluation continues after an operand.
    fn place_operands(
        &mut self,
        operands: Vec<Expr>,
        guard: &Guard,
        goes_on: &dyn Fn(Expr) -> Expr,
        subqueries: &[SubqueryUse],
    ) -> Vec<Expr> {
        let last = operands.iter().rposition(has_subquery).unwrap_or(0);
        let mut open = guard.clone();
        let mut placed = Vec::with_capacity(operands.len());
        for (at, operand) in operands.into_iter().enumerate() {
            let mut operand = self.place_part(operand, &open, subqueries);
            if at < last {
                operand = self.settled(operand, &open);
                open = self.shortened(open.and(goes_on(operand.clone())));
            }
            placed.push(operand);
        }
        placed
    }

    /// Places the conditions and results of a CASE.
    fn place_branches(
        &mut self,
        (branches, otherwise): (Vec<(Expr, Expr)>, Expr),
        guard: &Guard,
        subqueries: &[SubqueryUse],
    ) -> (Vec<(Expr, Expr)>, Expr) {
        let in_branch =
            |(condition, result): &(Expr, Expr)| has_subquery(condition) || has_subquery(result);
        let last = match has_subquery(&otherwise) {
            true => branches.len(),
            false => branches.iter().rposition(in_branch).unwrap_or(0),
        };
        let mut open = guard.clone();
        let mut placed = Vec::with_capacity(branches.len());
        for (at, (condition, mut result)) in branches.into_iter().enumerate() {
            let mut condition = self.place_part(condition, &open, subqueries);
            if at < last || has_subquery(&result) {
                condition = self.settled(condition, &open);
                result = self.place_part(result, &open.and(condition.clone()), subqueries);
                open = self.shortened(open.and(is_not_true(condition.clone())));
            }
            placed.push((condition, result));
        }
        (placed, self.place_part(otherwise, &open, subqueries))
    }

    /// Places the FILTER of an aggregate; returns the guard of its arguments.
    pub(super) fn place_filter(
        &mut self,
        filter: &mut Option<Expr>,
        subqueries: &[SubqueryUse],
    ) -> Guard {
        let Some(filter) = filter else { return Guard::default() };
        let placed = self.place(filter.clone(), subqueries);
        *filter = match subqueries.is_empty() {
            true => placed,
            false => self.settled(placed, &Guard::default()),
        };
        Guard::of(filter.clone())
    }

    /// Returns a subexpression of a guard, as a column if it must be computed once.
    pub(super) fn settled(&mut self, expr: Expr, guard: &Guard) -> Expr {
        if !is_computed_once(&expr) {
            return expr;
        }
        let data_type = expr.data_type().clone();
        let index = self.column_of(guard.guarded(expr));
        Expr::Column { index, data_type: data_type.clone() }
    }

    /// Returns a guard with its conditions combined into one column if they are many.
    fn shortened(&mut self, guard: Guard) -> Guard {
        match guard.condition() {
            Some(condition) if guard.is_long() => {
                let index = self.column_of(condition);
                Guard::of(Expr::Column { index, data_type: DataType::Bool })
            }
            _ => guard,
        }
    }

    /// Returns the column with the value of a subquery that is read where `guard` is true.
    fn column_of_subquery(
        &mut self,
        index: usize,
        guard: &Guard,
        subqueries: &[SubqueryUse],
    ) -> usize {
        let known = self.placed.get(&index).into_iter().flatten();
        if let Some((_, column)) = known.into_iter().find(|(known, _)| guard.is_within(known)) {
            return *column;
        }
        let column = self.apply(&subqueries[index - SUBQUERY], guard, subqueries);
        self.placed.entry(index).or_default().push((guard.clone(), column));
        column
    }

    /// Adds an Apply node over the plan's columns.
    pub(super) fn apply_plan(&mut self, step: ApplyStep) {
        let ApplyStep { subquery, bindings, kind, guard } = step;
        self.types.extend(kind.added_types(subquery.column_types()));
        self.wrap(|input| {
            Logical::Apply(Apply { input, subquery, bindings, kind, guard, groups: None })
        });
    }

    /// Begins another query level, whose subqueries are numbered separately.
    pub(super) fn begin_level(&mut self) {
        self.placed.clear();
    }

    /// Appends the value of a subquery as a column and returns its position.
    fn apply(
        &mut self,
        subquery: &SubqueryUse,
        guard: &Guard,
        subqueries: &[SubqueryUse],
    ) -> usize {
        if let Some(value) = subquery.as_value() {
            let value = self.place_part(value.clone(), guard, subqueries);
            return self.column_of(match value {
                column @ Expr::Column { .. } => column,
                value => guard.guarded(value),
            });
        }
        let mut bindings = Vec::new();
        for (parameter, value) in &subquery.bindings {
            let value = match self.place_part(value.clone(), guard, subqueries) {
                column @ Expr::Column { .. } => column,
                value => guard.guarded(value),
            };
            bindings.push((*parameter, self.column_of(value)));
        }
        let mut kind = subquery.kind.clone();
        if let Some(condition) = kind.condition_mut() {
            *condition = self.place_comparison(condition, guard, subqueries);
        }
        let (plan, guard) = (Box::new(subquery.plan.clone()), guard.condition());
        self.types.extend(kind.added_types(plan.column_types()));
        self.wrap(|input| {
            Logical::Apply(Apply { input, subquery: plan, bindings, kind, guard, groups: None })
        });
        self.types.len() - 1
    }

    fn place_comparison(
        &mut self,
        comparison: &Expr,
        guard: &Guard,
        subqueries: &[SubqueryUse],
    ) -> Expr {
        let mut comparison = self.place_part(comparison.clone(), guard, subqueries);
        let width = self.types.len();
        map_columns(&mut comparison, &|index| {
            if index >= SUBQUERY_COLUMN { width + index - SUBQUERY_COLUMN } else { index }
        });
        comparison
    }

    /// Returns the column that holds a value, and appends one if there is none.
    fn column_of(&mut self, value: Expr) -> usize {
        if let Expr::Column { index, .. } = value {
            return index;
        }
        let mut expressions = identity(&self.types);
        self.types.push(value.data_type().clone());
        expressions.push(value);
        self.wrap(|input| Logical::Project { input, expressions });
        self.types.len() - 1
    }

    /// Filters rows by a predicate: the conditions without subqueries first, then the others one
    /// by one. As in PostgreSQL cheaper ones come first: values that depend on no row, then those
    /// that may become a join, then the others.
    pub(super) fn filter(&mut self, predicate: Expr, subqueries: &[SubqueryUse]) {
        let (mut late, early): (Vec<Expr>, Vec<Expr>) =
            conjuncts(predicate).into_iter().partition(has_subquery);
        if let Some(predicate) = conjunction(early) {
            self.wrap(|input| Logical::Filter { input, predicate });
        }
        late.sort_by_key(|condition| cost_class(condition, subqueries));
        for condition in late {
            let predicate = self.place(condition, subqueries);
            self.wrap(|input| Logical::Filter { input, predicate });
        }
    }

    /// Joins with other rows.
    pub(super) fn join(&mut self, right: Rows, kind: JoinKind, on: Expr) {
        self.types.extend(right.types);
        let right = Box::new(right.plan);
        let choice = JoinDecision::default();
        self.wrap(|left| Logical::Join(Join { kind, left, right, on, choice }));
    }

    /// Returns the columns with the values of parameters, and appends the missing ones.
    pub(super) fn bind(&mut self, bindings: Vec<(usize, Expr)>) -> Vec<(usize, usize)> {
        let bind = |(parameter, value)| (parameter, self.column_of(value));
        bindings.into_iter().map(bind).collect()
    }

    /// Joins with rows that depend on these through parameters ([`Rows::bind`]); the join is an
    /// inner or a left one.
    pub(super) fn join_lateral(
        &mut self,
        right: Rows,
        kind: JoinKind,
        on: Expr,
        bindings: Vec<(usize, usize)>,
    ) {
        if bindings.is_empty() {
            return self.join(right, kind, on);
        }
        self.types.extend(right.types);
        let subquery = Box::new(right.plan);
        let kind = ApplyKind::Rows { on, outer: kind == JoinKind::Left };
        let guard = None;
        self.wrap(|input| {
            Logical::Apply(Apply { input, subquery, bindings, kind, guard, groups: None })
        });
    }

    /// Adds a ProjectSet node for set-returning functions; returns the position of its first
    /// column.
    pub(super) fn project_set(&mut self, functions: Vec<SetFunction>, ordinality: bool) -> usize {
        let first = self.types.len();
        self.wrap(|input| {
            let (outer, unread) = (false, Vec::new());
            Logical::ProjectSet(ProjectSet { input, functions, ordinality, outer, unread })
        });
        if let Logical::ProjectSet(sets) = &self.plan {
            self.types.extend(sets.set_types());
        }
        first
    }

    /// Replaces the columns.
    pub(super) fn project(&mut self, expressions: Vec<Expr>) {
        self.types = expressions.iter().map(Expr::data_type).cloned().collect();
        self.placed.clear();
        self.wrap(|input| Logical::Project { input, expressions });
    }

    /// Adds a node that replaces the columns by others of these types.
    pub(super) fn replace(
        &mut self,
        types: Vec<DataType>,
        change: impl FnOnce(Box<Logical>) -> Logical,
    ) {
        self.types = types;
        self.placed.clear();
        self.wrap(change);
    }

    /// Adds a node that passes the columns through.
    pub(super) fn over(&mut self, change: impl FnOnce(Box<Logical>) -> Logical) {
        self.wrap(change);
    }
}

/// Returns the rank of a condition with subqueries in the order of evaluation, the lowest first.
fn cost_class(condition: &Expr, subqueries: &[SubqueryUse]) -> u8 {
    let value = match condition {
        Expr::Not(operand) => operand,
        other => other,
    };
    let is_subquery = matches!(value, Expr::Column { .. });
    let mut depends = false;
    for_each_column(condition, &mut |index| {
        let subquery = index.checked_sub(SUBQUERY).and_then(|index| subqueries.get(index));
        depends |= subquery.is_some_and(|one| !one.bindings.is_empty());
    });
    match (is_subquery, depends) {
        (false, false) => 0,
        (true, _) => 1,
        (false, true) => 2,
    }
}

/// Returns an expression with its constants folded; unchanged if one fails, because the last pass
/// reports the error. Values that are evaluated once, such as the operand of a CASE, may be
/// constants.
fn folded(expr: Expr, subqueries: &[SubqueryUse]) -> Expr {
    let value_of = |index: usize| subqueries.get(index.checked_sub(SUBQUERY)?)?.as_value();
    let with_constants = expr.clone().transform(&mut |node| match node {
        Expr::Column { index, .. } if index < SUBQUERY_COLUMN => {
            let value = value_of(index).map(|value| folded(value.clone(), subqueries));
            value.filter(|value| matches!(value, Expr::Constant { .. })).unwrap_or(node)
        }
        node => node,
    });
    let mut failure = None;
    let folded = with_constants.fold_with_error(&EvalContext::planning(), &mut failure);
    if failure.is_some() { expr } else { folded }
}

/// Returns whether an expression reads the value of a subquery.
pub(super) fn has_subquery(expr: &Expr) -> bool {
    let mut found = false;
    for_each_column(expr, &mut |index| found |= index >= SUBQUERY);
    found
}
