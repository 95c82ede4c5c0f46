//! The step that locks rows: above ORDER BY, below LIMIT.
//!
//! ```text
//!   LockRows ──────────────┐ again: the same, for one row
//!   Sort, Project, Filter  │
//!   FROM: join of tables   └ FROM: join of what this row has of each table
//! ```
//!
//! FROM gets further columns, where it does not have them anyhow: the keys of the tables that are
//! locked, and what else is needed to make a row once more. A query in FROM, or a view, that only
//! picks and joins rows is part of FROM, as PostgreSQL pulls it up (`pull_up_simple_subquery`):
//! its scans stay marked ([`TableScan::lock`]) until the query around it takes them. Any other one
//! locks its rows itself.

use types::DataType;
use types::expr::Expr;

use crate::ast::{Query, QueryBody};
use crate::binder::level::Binder;
use crate::binder::rows::Rows;
use crate::binder::tree::{map_columns, width};
use crate::binder::typed::boolean;
use crate::logical::{
    Apply, ApplyKind, HeldRows, Join, JoinKind, LockRows, LockedTable, Logical, TableScan,
};

/// What is locked of the rows of a FROM clause.
pub(super) struct HeldFrom {
    held: HeldRows,
    /// FROM, for one row.
    again: Logical,
    /// Steps of FROM from its top down its first inputs.
    depth: usize,
}

/// A part of FROM.
struct Part {
    /// Yields its rows: its columns, then those that were added.
    plan: Logical,
    /// The same, of one row.
    again: Logical,
    /// How many columns it has by itself.
    width: usize,
    /// What is locked and copied of it.
    held: HeldRows,
}

/// Makes a join.
type MakeJoin<'a> = &'a dyn Fn(Box<Logical>, Box<Logical>, Expr) -> Logical;

/// Returns whether a query with locks said of it from outside leaves them to the query around it,
/// as far as its text says.
pub(super) fn is_pulled_up(query: &Query) -> bool {
    let is_plain = match &query.body {
        QueryBody::Select(select) => select.distinct.is_none(),
        QueryBody::Values(_) | QueryBody::SetOperation { .. } => false,
    };
    is_plain
        && query.locking.iter().all(|clause| clause.pushed)
        && query.with.is_none()
        && query.order_by.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
}

impl Binder<'_> {
    /// Takes the marks off the scans of a FROM clause, and adds the columns that are needed.
    pub(super) fn hold_rows(&mut self, rows: &mut Rows) -> HeldFrom {
        let nothing = Logical::Append { inputs: Vec::new() };
        let from = std::mem::replace(&mut rows.plan, nothing);
        let Part { plan, again, held, .. } = self.part(from, false);
        rows.types = plan.column_types();
        rows.plan = plan;
        HeldFrom { held, again, depth: depth(&rows.plan) }
    }

    fn part(&mut self, plan: Logical, nullable: bool) -> Part {
        match plan {
            Logical::Scan(scan) => self.scan_part(scan, nullable),
            Logical::Join(Join { kind, left, right, on, choice }) => {
                let pads_left = matches!(kind, JoinKind::Right | JoinKind::Full);
                let pads_right = matches!(kind, JoinKind::Left | JoinKind::Full);
                let left = self.part(*left, nullable || pads_left);
                let right = self.part(*right, nullable || pads_right);
                let make = |left, right, on| Logical::Join(Join { kind, left, right, on, choice });
                beside(left, right, on, &make)
            }
            Logical::Apply(Apply {
                input,
                subquery,
                bindings,
                kind: ApplyKind::Rows { on, outer },
                guard,
                ..
            }) => {
                let left = self.part(*input, nullable);
                let right = self.part(*subquery, nullable || outer);
                let make = |input, subquery, on| {
                    let kind = ApplyKind::Rows { on, outer };
                    let (bindings, guard) = (bindings.clone(), guard.clone());
                    Logical::Apply(Apply { input, subquery, bindings, kind, guard, groups: None })
                };
                beside(left, right, on, &make)
            }
            Logical::Apply(apply) => {
                let Apply { input, subquery, bindings, kind, guard, .. } = apply;
                let below = self.part(*input, nullable);
                below.with_value(|input| {
                    let (subquery, bindings) = (subquery.clone(), bindings.clone());
                    let (kind, guard) = (kind.clone(), guard.clone());
                    Logical::Apply(Apply { input, subquery, bindings, kind, guard, groups: None })
                })
            }
            Logical::Filter { input, predicate } => {
                let below = self.part(*input, nullable);
                below.map(|input| Logical::Filter { input, predicate: predicate.clone() })
            }
            Logical::Project { input, expressions }
                if !expressions.iter().any(Expr::is_volatile) =>
            {
                self.part(*input, nullable).projected(expressions)
            }
            plan => self.copied(plan, nullable),
        }
    }

    fn scan_part(&mut self, mut scan: TableScan, nullable: bool) -> Part {
        let width = scan.columns.len();
        let position = |column: usize| scan.columns.iter().position(|&one| one == column);
        let key: Option<Vec<usize>> = scan.table.key_columns().map(position).collect();
        let Some(lock) = scan.lock.take() else {
            let witness = key.and_then(|key| key.first().copied());
            return match (nullable, witness) {
                (true, None) => self.copied(Logical::Scan(scan), nullable),
                (_, witness) => {
                    let plan = Logical::Scan(scan);
                    let (values, copies) = self.copies_of(&plan);
                    let again = match witness.filter(|_| nullable) {
                        None => one_row(values),
                        Some(witness) => present(values, witness),
                    };
                    Part { plan, again, width, held: HeldRows { tables: Vec::new(), copies } }
                }
            };
        };
        let mut newest = Vec::with_capacity(width);
        let mut value = |&column: &usize| {
            let index = self.parameters.outer();
            newest.push((index, column));
            Expr::Parameter { index, data_type: scan.column_type(column) }
        };
        let again = one_row(scan.columns.iter().map(&mut value).collect());
        let locked = LockedTable {
            table: scan.table.clone(),
            alias: scan.alias.clone(),
            lock,
            key: key.expect("FROM has all columns of a table"),
            newest,
        };
        let held = HeldRows { tables: vec![locked], copies: Vec::new() };
        Part { plan: Logical::Scan(scan), again, width, held }
    }

    /// What is not looked into: the row has what it had.
    fn copied(&mut self, plan: Logical, nullable: bool) -> Part {
        let width = width(&plan);
        if !nullable {
            let (values, copies) = self.copies_of(&plan);
            let again = one_row(values);
            return Part { plan, again, width, held: HeldRows { tables: Vec::new(), copies } };
        }
        // A further column says whether there is a row at all.
        let types = plan.column_types();
        let column = |(index, data_type): (usize, &DataType)| Expr::column(index, *data_type);
        let own = types.iter().enumerate().map(column);
        let expressions = own.chain([boolean(true)]).collect();
        let plan = Logical::Project { input: Box::new(plan), expressions };
        let (values, copies) = self.copies_of(&plan);
        let held = HeldRows { tables: Vec::new(), copies };
        Part { plan, again: present(values, width), width, held }
    }

    /// Returns a parameter for each column of a plan.
    fn copies_of(&mut self, plan: &Logical) -> (Vec<Expr>, Vec<(usize, usize)>) {
        let mut copies = Vec::new();
        let mut value = |(column, data_type): (usize, DataType)| {
            let index = self.parameters.outer();
            copies.push((index, column));
            Expr::Parameter { index, data_type }
        };
        let values = plan.column_types().into_iter().enumerate().map(&mut value).collect();
        (values, copies)
    }
}

fn one_row(values: Vec<Expr>) -> Logical {
    let types = values.iter().map(Expr::data_type).collect();
    Logical::Values { types, rows: vec![values] }
}

/// A row if one of its values, which it never lacks, is there.
fn present(values: Vec<Expr>, witness: usize) -> Logical {
    let is_missing = Expr::IsNull(Box::new(values[witness].clone()));
    let predicate = Expr::Not(Box::new(is_missing));
    Logical::Filter { input: Box::new(one_row(values)), predicate }
}

/// Joins two parts: the columns of both, then what was added to both.
fn beside(left: Part, right: Part, mut on: Expr, make: MakeJoin<'_>) -> Part {
    let (left_all, right_all) = (width(&left.plan), width(&right.plan));
    let added = left_all - left.width;
    map_columns(&mut on, &|at| if at < left.width { at } else { at + added });
    let (boxed, other) = (Box::new(left.plan), Box::new(right.plan));
    let plan = make(boxed, other, on.clone());
    let again = make(Box::new(left.again), Box::new(right.again), on);
    let mut held = left.held;
    held.extend(right.held, left_all);
    let part = Part { plan, again, width: left.width + right.width, held };
    if added == 0 {
        return part;
    }
    let own = (0..left.width).chain(left_all..left_all + right.width);
    let rest = (left.width..left_all).chain(left_all + right.width..left_all + right_all);
    part.ordered(own.chain(rest).collect())
}

impl Part {
    /// Puts a step above that leaves the columns as they are.
    fn map(self, make: impl Fn(Box<Logical>) -> Logical) -> Part {
        let (plan, again) = (make(Box::new(self.plan)), make(Box::new(self.again)));
        Part { plan, again, ..self }
    }

    /// Puts a step above that adds a value, which is to stand before what was added here.
    fn with_value(self, make: impl Fn(Box<Logical>) -> Logical) -> Part {
        let (own, all) = (self.width, width(&self.plan));
        let part = self.map(|input| {
            let mut step = make(input);
            if let Logical::Apply(Apply { kind, .. }) = &mut step
                && let Some(condition) = kind.condition_mut()
            {
                map_columns(condition, &|at| if at < own { at } else { at + all - own });
            }
            step
        });
        let part = Part { width: own + 1, ..part };
        match own == all {
            true => part,
            false => part.ordered((0..own).chain([all]).chain(own..all).collect()),
        }
    }

    /// Projects, and keeps what is needed besides.
    fn projected(mut self, mut expressions: Vec<Expr>) -> Part {
        let own = expressions.len();
        let types = self.plan.column_types();
        let mut held = std::mem::take(&mut self.held);
        add_columns(&mut held, &mut expressions, &types);
        let part = self.map(|input| Logical::Project { input, expressions: expressions.clone() });
        Part { width: own, held, ..part }
    }

    /// Puts the columns into another order.
    fn ordered(self, order: Vec<usize>) -> Part {
        let own = self.width;
        let types = self.plan.column_types();
        let columns = order.iter().map(|&at| Expr::column(at, types[at])).collect();
        Part { width: own, ..self.projected(columns) }
    }
}

impl HeldFrom {
    /// Returns the tables, with the columns of FROM that are their keys.
    pub(super) fn tables(&self) -> &[LockedTable] {
        &self.held.tables
    }

    /// Returns the columns that are needed.
    pub(super) fn needed(&self) -> impl Iterator<Item = usize> {
        self.held.needed()
    }

    /// Renumbers the columns that are needed.
    pub(super) fn renumber(&mut self, place: &dyn Fn(usize) -> usize) {
        self.held.renumber(place);
    }

    /// Adds the columns of FROM that are needed to a select list over it.
    pub(super) fn add_columns(&mut self, list: &mut Vec<Expr>, types: &[DataType]) {
        add_columns(&mut self.held, list, types);
    }

    /// Puts the step that locks above rows that are made of those of FROM.
    pub(super) fn over(self, input: Box<Logical>) -> Logical {
        let HeldFrom { held, again: from, depth: of_from } = self;
        let mut again = Logical::clone(&input);
        let above = depth(&again) - of_from;
        put_below(&mut again, above, from);
        // One row needs no order.
        while let Logical::Sort { input, .. } = again {
            again = *input;
        }
        Logical::LockRows(LockRows { input, again: Box::new(again), held })
    }
}

/// Adds the columns that are needed to a projection of columns of these types, and numbers them as
/// it has them.
fn add_columns(held: &mut HeldRows, list: &mut Vec<Expr>, types: &[DataType]) {
    let is = |expr: &Expr, at: usize| matches!(expr, Expr::Column { index, .. } if *index == at);
    for at in held.needed() {
        if !list.iter().any(|expr| is(expr, at)) {
            list.push(Expr::column(at, types[at]));
        }
    }
    let place = |at: usize| list.iter().position(|expr| is(expr, at));
    held.renumber(&|at| place(at).expect("it was added above"));
}

/// Returns how many steps there are from a plan down its first inputs.
fn depth(plan: &Logical) -> usize {
    match plan {
        Logical::Filter { input, .. }
        | Logical::Project { input, .. }
        | Logical::Sort { input, .. } => 1 + depth(input),
        Logical::Apply(apply) => 1 + depth(&apply.input),
        _ => 0,
    }
}

/// Puts a plan in the place of the one that stands so many steps below.
fn put_below(plan: &mut Logical, steps: usize, other: Logical) {
    if steps == 0 {
        *plan = other;
        return;
    }
    match plan {
        Logical::Filter { input, .. }
        | Logical::Project { input, .. }
        | Logical::Sort { input, .. } => put_below(input, steps - 1, other),
        Logical::Apply(apply) => put_below(&mut apply.input, steps - 1, other),
        _ => unreachable!("the steps were counted by the same rule"),
    }
}
