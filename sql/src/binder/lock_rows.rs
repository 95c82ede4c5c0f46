//! The LockRows node of FOR UPDATE and FOR SHARE: above ORDER BY, below LIMIT.
//!
//! ```text
//!   LockRows ──────────────┐ again: the same, for one row
//!   Sort, Project, Filter  │
//!   FROM: join of tables   └ FROM: join of what this row has of each table
//! ```
//!
//! `again` is the plan that re-evaluates a row whose newest version differs from the snapshot
//! (PostgreSQL's EvalPlanQual). It reads the newest version of the locked tables and the row's own
//! values of the others, as parameters. FROM gets extra columns, if it lacks them: the row keys of
//! the locked tables, and the values for `again`. A query in FROM, or a view, that only filters,
//! projects and joins is part of FROM, as PostgreSQL pulls it up (`pull_up_simple_subquery`): its
//! scans stay marked ([`TableScan::lock`]) until the outer query takes over the marks. Any other
//! query locks its rows itself.

use types::DataType;
use types::expr::Expr;

use crate::ast::{QueryBody, QueryExpr};
use crate::binder::level::Binder;
use crate::binder::rows::Rows;
use crate::binder::tree::{map_columns, width};
use crate::binder::typed::boolean;
use crate::logical::{
    Apply, ApplyKind, Join, JoinKind, LockRows, LockedTable, LockedTables, Logical, TableScan,
};

/// The locked tables and copied values of the rows of a FROM clause.
pub(super) struct LockedFrom {
    held: LockedTables,
    /// FROM, for the re-evaluation of one row.
    again: Logical,
    /// The number of nodes of FROM from its top along the first inputs.
    depth: usize,
}

/// A subplan of FROM with its re-evaluation plan.
struct LockSubplan {
    /// The plan: its columns, then the added ones.
    plan: Logical,
    /// The re-evaluation plan of one row.
    again: Logical,
    /// The number of columns without the added ones.
    width: usize,
    /// The locked tables and copied values.
    held: LockedTables,
}

/// Constructor of a join.
type MakeJoin<'a> = &'a dyn Fn(Box<Logical>, Box<Logical>, Expr) -> Logical;

/// Returns whether a query with pushed-down locks leaves them to the outer query, as far as its
/// syntax determines that.
pub(super) fn is_pulled_up(query: &QueryExpr) -> bool {
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
    /// Removes the marks from the scans of a FROM clause, and adds the columns that LockRows
    /// needs.
    pub(super) fn hold_rows(&mut self, rows: &mut Rows) -> LockedFrom {
        let nothing = Logical::Append { inputs: Vec::new() };
        let from = std::mem::replace(&mut rows.plan, nothing);
        let LockSubplan { plan, again, held, .. } = self.part(from, false);
        rows.types = plan.column_types();
        rows.plan = plan;
        LockedFrom { held, again, depth: depth(&rows.plan) }
    }

    fn part(&mut self, plan: Logical, nullable: bool) -> LockSubplan {
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

    fn scan_part(&mut self, mut scan: TableScan, nullable: bool) -> LockSubplan {
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
                    LockSubplan {
                        plan,
                        again,
                        width,
                        held: LockedTables { tables: Vec::new(), copies },
                    }
                }
            };
        };
        let mut newest = Vec::with_capacity(width);
        let mut value = |&column: &usize| {
            let index = self.parameters.outer();
            newest.push((index, column));
            Expr::Parameter { index, data_type: scan.column_type(column) }
        };
        let newest_row = one_row(scan.columns.iter().map(&mut value).collect());
        let again = self.secured(newest_row, scan.policies);
        let locked = LockedTable {
            table: scan.table.clone(),
            alias: scan.alias.clone(),
            lock,
            key: key.expect("FROM has all columns of a table"),
            newest,
        };
        let held = LockedTables { tables: vec![locked], copies: Vec::new() };
        LockSubplan { plan: Logical::Scan(scan), again, width, held }
    }

    /// Returns a subplan that is not re-evaluated: the row retains its values.
    fn copied(&mut self, plan: Logical, nullable: bool) -> LockSubplan {
        let width = width(&plan);
        if !nullable {
            let (values, copies) = self.copies_of(&plan);
            let again = one_row(values);
            return LockSubplan {
                plan,
                again,
                width,
                held: LockedTables { tables: Vec::new(), copies },
            };
        }
        // An extra column distinguishes a missing row from a row of NULLs.
        let types = plan.column_types();
        let column = |(index, data_type): (usize, &DataType)| Expr::column(index, data_type);
        let own = types.iter().enumerate().map(column);
        let expressions = own.chain([boolean(true)]).collect();
        let plan = Logical::Project { input: Box::new(plan), expressions };
        let (values, copies) = self.copies_of(&plan);
        let held = LockedTables { tables: Vec::new(), copies };
        LockSubplan { plan, again: present(values, width), width, held }
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
    let types = values.iter().map(Expr::data_type).cloned().collect();
    Logical::Values { types, rows: vec![values] }
}

/// Returns the row if its witness column, which is never NULL in a row, is not NULL.
fn present(values: Vec<Expr>, witness: usize) -> Logical {
    let is_missing = Expr::IsNull(Box::new(values[witness].clone()));
    let predicate = Expr::Not(Box::new(is_missing));
    Logical::Filter { input: Box::new(one_row(values)), predicate }
}

/// Joins two subplans: the columns of both, then the added columns of both.
fn beside(left: LockSubplan, right: LockSubplan, mut on: Expr, make: MakeJoin<'_>) -> LockSubplan {
    let (left_all, right_all) = (width(&left.plan), width(&right.plan));
    let added = left_all - left.width;
    map_columns(&mut on, &|at| if at < left.width { at } else { at + added });
    let (boxed, other) = (Box::new(left.plan), Box::new(right.plan));
    let plan = make(boxed, other, on.clone());
    let again = make(Box::new(left.again), Box::new(right.again), on);
    let mut held = left.held;
    held.extend(right.held, left_all);
    let part = LockSubplan { plan, again, width: left.width + right.width, held };
    if added == 0 {
        return part;
    }
    let own = (0..left.width).chain(left_all..left_all + right.width);
    let rest = (left.width..left_all).chain(left_all + right.width..left_all + right_all);
    part.ordered(own.chain(rest).collect())
}

impl LockSubplan {
    /// Adds a node that does not change the columns.
    fn map(self, make: impl Fn(Box<Logical>) -> Logical) -> LockSubplan {
        let (plan, again) = (make(Box::new(self.plan)), make(Box::new(self.again)));
        LockSubplan { plan, again, ..self }
    }

    /// Adds a node that appends a value, and moves the value before the added columns.
    fn with_value(self, make: impl Fn(Box<Logical>) -> Logical) -> LockSubplan {
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
        let part = LockSubplan { width: own + 1, ..part };
        match own == all {
            true => part,
            false => part.ordered((0..own).chain([all]).chain(own..all).collect()),
        }
    }

    /// Adds a projection that also retains the needed columns.
    fn projected(mut self, mut expressions: Vec<Expr>) -> LockSubplan {
        let own = expressions.len();
        let types = self.plan.column_types();
        let mut held = std::mem::take(&mut self.held);
        add_columns(&mut held, &mut expressions, &types);
        let part = self.map(|input| Logical::Project { input, expressions: expressions.clone() });
        LockSubplan { width: own, held, ..part }
    }

    /// Reorders the columns.
    fn ordered(self, order: Vec<usize>) -> LockSubplan {
        let own = self.width;
        let types = self.plan.column_types();
        let columns = order.iter().map(|&at| Expr::column(at, &types[at])).collect();
        LockSubplan { width: own, ..self.projected(columns) }
    }
}

impl LockedFrom {
    /// Returns the locked tables, with the columns of FROM that hold their keys.
    pub(super) fn tables(&self) -> &[LockedTable] {
        &self.held.tables
    }

    /// Returns the needed columns.
    pub(super) fn needed(&self) -> impl Iterator<Item = usize> {
        self.held.needed()
    }

    /// Renumbers the needed columns.
    pub(super) fn renumber(&mut self, place: &dyn Fn(usize) -> usize) {
        self.held.renumber(place);
    }

    /// Adds the needed columns of FROM to a select list over it.
    pub(super) fn add_columns(&mut self, list: &mut Vec<Expr>, types: &[DataType]) {
        add_columns(&mut self.held, list, types);
    }

    /// Adds the LockRows node above a plan over the rows of FROM.
    pub(super) fn over(self, input: Box<Logical>) -> Logical {
        let LockedFrom { held, again: from, depth: of_from } = self;
        let mut again = Logical::clone(&input);
        let above = depth(&again) - of_from;
        put_below(&mut again, above, from);
        // A single row needs no sort.
        while let Logical::Sort { input, .. } = again {
            again = *input;
        }
        Logical::LockRows(LockRows { input, re_evaluation: Box::new(again), locked_tables: held })
    }
}

/// Adds the needed columns to a projection with input columns of these types, and renumbers them
/// to its output.
fn add_columns(held: &mut LockedTables, list: &mut Vec<Expr>, types: &[DataType]) {
    let is = |expr: &Expr, at: usize| matches!(expr, Expr::Column { index, .. } if *index == at);
    for at in held.needed() {
        if !list.iter().any(|expr| is(expr, at)) {
            list.push(Expr::column(at, &types[at]));
        }
    }
    let place = |at: usize| list.iter().position(|expr| is(expr, at));
    held.renumber(&|at| place(at).expect("it was added above"));
}

/// Returns the number of nodes from a plan along the first inputs.
fn depth(plan: &Logical) -> usize {
    match plan {
        Logical::Filter { input, .. }
        | Logical::Project { input, .. }
        | Logical::Sort { input, .. } => 1 + depth(input),
        Logical::Apply(apply) => 1 + depth(&apply.input),
        _ => 0,
    }
}

/// Replaces the plan that is this number of nodes below.
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
