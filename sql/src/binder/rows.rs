//! A plan under construction with the types of its columns, and the placing of expressions on it:
//! subqueries become [`Apply`] nodes below, which add their value as a column.

use ahash::AHashMap;
use types::DataType;
use types::expr::Expr;

use crate::binder::level::{SUBQUERY, SUBQUERY_COLUMN, SubqueryUse};
use crate::binder::tree::{conjunction, conjuncts, for_each_column, identity, map_columns};
use crate::logical::{
    Apply, ApplyKind, Join, JoinChoice, JoinKind, Logical, ProjectSet, SetFunction,
};

/// A plan under construction.
#[derive(Debug)]
pub(super) struct Rows {
    /// The plan.
    pub(super) plan: Logical,
    /// Types of its columns.
    pub(super) types: Vec<DataType>,
    /// Column of each subquery that was placed.
    placed: AHashMap<usize, usize>,
}

/// A subquery over the columns of some rows: an [`Apply`] without its input.
#[derive(Debug, Clone)]
pub(super) struct ApplyStep {
    pub(super) subquery: Box<Logical>,
    pub(super) bindings: Vec<(usize, usize)>,
    pub(super) kind: ApplyKind,
}

impl Rows {
    /// Returns a plan whose columns have these types.
    pub(super) fn new(plan: Logical, types: Vec<DataType>) -> Rows {
        Rows { plan, types, placed: AHashMap::new() }
    }

    /// Returns one row of no columns.
    pub(super) fn unit() -> Rows {
        Rows::new(Logical::Values { types: Vec::new(), rows: vec![Vec::new()] }, Vec::new())
    }

    fn wrap(&mut self, change: impl FnOnce(Box<Logical>) -> Logical) {
        let empty = Logical::Append { inputs: Vec::new() };
        let input = std::mem::replace(&mut self.plan, empty);
        self.plan = change(Box::new(input));
    }

    /// Returns an expression with its subqueries replaced by columns, which are added here.
    pub(super) fn place(&mut self, mut expr: Expr, subqueries: &[SubqueryUse]) -> Expr {
        if !has_subquery(&expr) {
            return expr;
        }
        let mut needed = Vec::new();
        for_each_column(&expr, &mut |index| {
            if (SUBQUERY..SUBQUERY_COLUMN).contains(&index) {
                needed.push(index);
            }
        });
        for index in needed {
            if !self.placed.contains_key(&index) {
                let column = self.apply(&subqueries[index - SUBQUERY], subqueries);
                self.placed.insert(index, column);
            }
        }
        let placed = &self.placed;
        map_columns(&mut expr, &|index| placed.get(&index).copied().unwrap_or(index));
        expr
    }

    /// Adds what a subquery adds that is over the plan's columns.
    pub(super) fn apply_plan(&mut self, step: ApplyStep) {
        let ApplyStep { subquery, bindings, kind } = step;
        self.types.extend(kind.added_types(subquery.column_types()));
        self.wrap(|input| Logical::Apply(Apply { input, subquery, bindings, kind }));
    }

    /// Begins another level, whose subqueries have numbers of their own.
    pub(super) fn begin_level(&mut self) {
        self.placed.clear();
    }

    /// Adds the value of a subquery as a column and returns its position.
    fn apply(&mut self, subquery: &SubqueryUse, subqueries: &[SubqueryUse]) -> usize {
        let mut bindings = Vec::new();
        for (parameter, value) in &subquery.bindings {
            let value = self.place(value.clone(), subqueries);
            bindings.push((*parameter, self.column_of(value)));
        }
        let mut kind = subquery.kind.clone();
        if let Some(condition) = kind.condition_mut() {
            *condition = self.place_comparison(condition, subqueries);
        }
        let plan = Box::new(subquery.plan.clone());
        self.types.extend(kind.added_types(plan.column_types()));
        self.wrap(|input| Logical::Apply(Apply { input, subquery: plan, bindings, kind }));
        self.types.len() - 1
    }

    fn place_comparison(&mut self, comparison: &Expr, subqueries: &[SubqueryUse]) -> Expr {
        let mut comparison = self.place(comparison.clone(), subqueries);
        let width = self.types.len();
        map_columns(&mut comparison, &|index| {
            if index >= SUBQUERY_COLUMN { width + index - SUBQUERY_COLUMN } else { index }
        });
        comparison
    }

    /// Returns the column that holds a value, adding one if there is none.
    fn column_of(&mut self, value: Expr) -> usize {
        if let Expr::Column { index, .. } = value {
            return index;
        }
        let mut expressions = identity(&self.types);
        self.types.push(value.data_type());
        expressions.push(value);
        self.wrap(|input| Logical::Project { input, expressions });
        self.types.len() - 1
    }

    /// Keeps the rows for which a predicate is true; the conditions without subqueries first.
    pub(super) fn filter(&mut self, predicate: Expr, subqueries: &[SubqueryUse]) {
        let (late, early): (Vec<Expr>, Vec<Expr>) =
            conjuncts(predicate).into_iter().partition(has_subquery);
        if let Some(predicate) = conjunction(early) {
            self.wrap(|input| Logical::Filter { input, predicate });
        }
        if let Some(predicate) = conjunction(late) {
            let predicate = self.place(predicate, subqueries);
            self.wrap(|input| Logical::Filter { input, predicate });
        }
    }

    /// Joins with other rows.
    pub(super) fn join(&mut self, right: Rows, kind: JoinKind, on: Expr) {
        self.types.extend(right.types);
        let right = Box::new(right.plan);
        let choice = JoinChoice::default();
        self.wrap(|left| Logical::Join(Join { kind, left, right, on, choice }));
    }

    /// Returns the columns that parameters take their values from, adding those that are not there.
    pub(super) fn bind(&mut self, bindings: Vec<(usize, Expr)>) -> Vec<(usize, usize)> {
        let bind = |(parameter, value)| (parameter, self.column_of(value));
        bindings.into_iter().map(bind).collect()
    }

    /// Joins with rows that depend on these by parameters ([`Rows::bind`]), which makes the join an
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
        self.wrap(|input| Logical::Apply(Apply { input, subquery, bindings, kind }));
    }

    /// Calls functions that return sets for each row; returns the position of the first column that
    /// is added.
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
        self.types = expressions.iter().map(Expr::data_type).collect();
        self.placed.clear();
        self.wrap(|input| Logical::Project { input, expressions });
    }

    /// Puts a node above that replaces the columns by others of these types.
    pub(super) fn replace(
        &mut self,
        types: Vec<DataType>,
        change: impl FnOnce(Box<Logical>) -> Logical,
    ) {
        self.types = types;
        self.placed.clear();
        self.wrap(change);
    }

    /// Puts a node above that leaves the columns as they are.
    pub(super) fn over(&mut self, change: impl FnOnce(Box<Logical>) -> Logical) {
        self.wrap(change);
    }
}

/// Returns whether an expression waits for a subquery.
pub(super) fn has_subquery(expr: &Expr) -> bool {
    let mut found = false;
    for_each_column(expr, &mut |index| found |= index >= SUBQUERY);
    found
}
