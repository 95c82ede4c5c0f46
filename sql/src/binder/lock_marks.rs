//! Row-locking clauses: marks on the scans of a FROM clause.
//!
//! [`lock_rows`](crate::binder::lock_rows) builds the LockRows node from the marks.

use std::ops::Range;

use store::transaction::LockWait;
use types::expr::Expr;

use crate::ast::{self, Locking, QueryBody, TableRef};
use crate::binder::scope::{RelationKind, Scope, ScopeRelation};
use crate::binder::tree::{conjuncts, for_each_column, map_columns, width};
use crate::error::{Error, Result};
use crate::logical::{Apply, ApplyKind, Join, JoinKind, Logical, RowLock, TableScan};

/// Calls `visit` on each scan of the FROM clause itself, not on those in its subqueries.
pub(super) fn for_each_scan(plan: &mut Logical, visit: &mut dyn FnMut(&mut TableScan)) {
    match plan {
        Logical::Scan(scan) => visit(scan),
        Logical::Join(join) => {
            for_each_scan(&mut join.left, visit);
            for_each_scan(&mut join.right, visit);
        }
        Logical::Filter { input, .. } => for_each_scan(input, visit),
        Logical::Apply(apply) => for_each_scan(&mut apply.input, visit),
        _ => {}
    }
}

/// Marks the scans that row-locking clauses apply to.
pub(super) fn apply_locks(plan: &mut Logical, scope: &Scope, clauses: &[Locking]) -> Result<()> {
    for clause in clauses {
        let named = |relation: &&ScopeRelation| {
            clause.of.as_ref().is_none_or(|name| name.value == relation.alias)
        };
        let relations: Vec<&ScopeRelation> = scope.all_relations().filter(named).collect();
        let text = clause.strength.clause();
        if let (Some(name), true) = (&clause.of, relations.is_empty()) {
            bail!(UNDEFINED_TABLE: "relation \"{}\" in {text} clause not found in FROM clause", name.value; at name.position);
        }
        for relation in relations {
            let what = match relation.kind {
                // A query in FROM got the clause pushed down before it was bound.
                RelationKind::Table | RelationKind::Query => continue,
                RelationKind::Opaque => {
                    let what = format!("{text} with system views");
                    let hint = "Specify the tables to lock with OF.";
                    return Err(Error::not_supported(what, hint).at(clause.position));
                }
                RelationKind::Function => "a function",
                RelationKind::Named => "a WITH query",
                RelationKind::Join => "a join",
            };
            // Without OF, the clause applies only to relations whose rows can be locked.
            if let Some(name) = &clause.of {
                bail!(FEATURE_NOT_SUPPORTED: "{text} cannot be applied to {what}"; at name.position);
            }
        }
        let lock = row_lock(clause);
        for_each_scan(plan, &mut |scan| {
            if clause.of.as_ref().is_none_or(|name| name.value == scan.alias) {
                scan.lock = Some(stronger(scan.lock, lock));
            }
        });
    }
    let mut materialized = None;
    for_each_scan(plan, &mut |scan| {
        if scan.lock.is_some() && scan.table.is_materialized() {
            materialized = Some(scan.table.name.clone());
        }
    });
    if let Some(name) = materialized {
        bail!(WRONG_OBJECT_TYPE: "cannot lock rows in materialized view \"{name}\"");
    }
    Ok(())
}

/// Rejects locks of former rows.
pub(super) fn refuse_past(plan: &mut Logical, clauses: &[Locking]) -> Result<()> {
    let mut past = false;
    for_each_scan(plan, &mut |scan| past |= scan.lock.is_some() && scan.system_time.is_some());
    if past && let Some(clause) = clauses.first() {
        let what = format!("{} with FOR SYSTEM_TIME", clause.strength.clause());
        return Err(Error::not_supported(what, "Lock the current rows.").at(clause.position));
    }
    Ok(())
}

/// Returns whether a FROM clause, or a query that is part of it, has a marked scan.
pub(super) fn has_locked(plan: &Logical) -> bool {
    match plan {
        Logical::Scan(scan) => scan.lock.is_some(),
        Logical::Join(join) => has_locked(&join.left) || has_locked(&join.right),
        Logical::Filter { input, .. } | Logical::Project { input, .. } => has_locked(input),
        Logical::Apply(apply) => {
            let is_joined = matches!(apply.kind, ApplyKind::Rows { .. });
            has_locked(&apply.input) || (is_joined && has_locked(&apply.subquery))
        }
        _ => false,
    }
}

/// Checks that no marked scan is on the nullable side of an outer join, given the condition of the
/// query. An outer join whose null-extended rows the condition removes is an inner join, as in
/// PostgreSQL (`reduce_outer_joins`).
///
/// # Errors
///
/// 0A000, as PostgreSQL's `make_outerjoininfo` raises it.
pub(super) fn refuse_padded(plan: &Logical, selection: Option<&Expr>) -> Result<()> {
    let conditions = selection.cloned().map(conjuncts).unwrap_or_default();
    let Some(lock) = padded(plan, conditions, false) else { return Ok(()) };
    let text = lock.strength.clause();
    bail!(FEATURE_NOT_SUPPORTED: "{text} cannot be applied to the nullable side of an outer join")
}

/// Returns the lock of a marked scan that may be null-extended in rows for which `conditions`
/// hold.
fn padded(plan: &Logical, mut conditions: Vec<Expr>, is_padded: bool) -> Option<RowLock> {
    match plan {
        Logical::Scan(scan) => scan.lock.filter(|_| is_padded),
        Logical::Filter { input, predicate } => {
            conditions.extend(conjuncts(predicate.clone()));
            padded(input, conditions, is_padded)
        }
        Logical::Project { input, expressions } => {
            let below = |condition: Expr| {
                condition.transform(&mut |part| match part {
                    Expr::Column { index, .. } => expressions.get(index).cloned().unwrap_or(part),
                    part => part,
                })
            };
            padded(input, conditions.into_iter().map(below).collect(), is_padded)
        }
        Logical::Join(Join { kind, left, right, on, .. }) => {
            padded_side((*kind, left, right, on), &conditions, is_padded)
        }
        Logical::Apply(Apply { input, subquery, kind: ApplyKind::Rows { on, outer }, .. }) => {
            let kind = if *outer { JoinKind::Left } else { JoinKind::Inner };
            padded_side((kind, input, subquery, on), &conditions, is_padded)
        }
        Logical::Apply(apply) => padded(&apply.input, conditions, is_padded),
        _ => None,
    }
}

fn padded_side(
    (kind, left, right, on): (JoinKind, &Logical, &Logical, &Expr),
    conditions: &[Expr],
    is_padded: bool,
) -> Option<RowLock> {
    let (first, end) = (width(left), width(left) + width(right));
    let lets_through = |side: Range<usize>| {
        let is_null =
            |part: &Expr| matches!(part, Expr::Column { index, .. } if side.contains(index));
        !conditions.iter().any(|condition| {
            let mut is_about = false;
            for_each_column(condition, &mut |index| is_about |= side.contains(&index));
            is_about && condition.rejects_nulls(&is_null)
        })
    };
    let pads_left = matches!(kind, JoinKind::Right | JoinKind::Full) && lets_through(0..first);
    let pads_right = matches!(kind, JoinKind::Left | JoinKind::Full) && lets_through(first..end);
    let of_side = |pads: bool, first: usize| {
        let mut below = conditions.to_vec();
        if kind == JoinKind::Inner || pads {
            below.extend(conjuncts(on.clone()));
        }
        // Columns of the other side get an index out of range.
        let place = |index: usize| index.wrapping_sub(first);
        below.iter_mut().for_each(|condition| map_columns(condition, &place));
        below
    };
    padded(left, of_side(pads_left, 0), is_padded || pads_left)
        .or_else(|| padded(right, of_side(pads_right, first), is_padded || pads_right))
}

/// Returns FROM with the row-locking clauses of a query pushed into the queries that they apply
/// to.
pub(super) fn pushed_locks(from: &[TableRef], clauses: &[Locking]) -> Vec<TableRef> {
    let push = |entry: &TableRef| {
        let mut entry = entry.clone();
        push_locks(&mut entry, clauses);
        entry
    };
    from.iter().map(push).collect()
}

fn push_locks(entry: &mut TableRef, clauses: &[Locking]) {
    match entry {
        TableRef::Subquery { query, alias, .. } => {
            if matches!(query.body, QueryBody::Values(_)) {
                return;
            }
            let named = |clause: &&Locking| match (&clause.of, &alias) {
                (None, _) => true,
                (Some(name), Some(alias)) => name.value == alias.name.value,
                (Some(_), None) => false,
            };
            let inside = |clause: &Locking| Locking { of: None, pushed: true, ..clause.clone() };
            query.locking.extend(clauses.iter().filter(named).map(inside));
        }
        TableRef::Join { left, right, .. } => {
            push_locks(left, clauses);
            push_locks(right, clauses);
        }
        TableRef::Table { name, alias, locking, .. } => {
            let alias = alias.as_ref().map_or(&name.name, |alias| &alias.name);
            let named = |clause: &&Locking| match &clause.of {
                None => true,
                Some(of) => of.value == alias.value,
            };
            let inside = |clause: &Locking| Locking { of: None, pushed: true, ..clause.clone() };
            locking.extend(clauses.iter().filter(named).map(inside));
        }
        TableRef::Renamed { join, .. } => push_locks(join, clauses),
        TableRef::Function(_) => {}
    }
}

fn row_lock(clause: &Locking) -> RowLock {
    RowLock {
        strength: clause.strength,
        wait: match clause.wait {
            ast::LockWait::Block => LockWait::Wait,
            ast::LockWait::NoWait => LockWait::NoWait,
            ast::LockWait::SkipLocked => LockWait::Skip,
        },
        for_change: false,
    }
}

/// Returns the combination of two clauses for one table: the stronger lock, and NOWAIT before SKIP
/// LOCKED before waiting.
fn stronger(old: Option<RowLock>, new: RowLock) -> RowLock {
    let Some(old) = old else { return new };
    let strength = old.strength.max(new.strength);
    let wait = match (old.wait, new.wait) {
        (LockWait::NoWait, _) | (_, LockWait::NoWait) => LockWait::NoWait,
        (LockWait::Skip, _) | (_, LockWait::Skip) => LockWait::Skip,
        _ => LockWait::Wait,
    };
    RowLock { strength, wait, for_change: false }
}

/// Marks the only scan of a FROM clause that reads one table with filters and projections; returns
/// whether there is one.
pub(super) fn mark_only_scan(plan: &mut Logical) -> bool {
    match plan {
        Logical::Scan(scan) => {
            let (strength, wait) = (ast::LockStrength::KeyShare, LockWait::Wait);
            scan.lock = Some(RowLock { strength, wait, for_change: false });
            true
        }
        Logical::Filter { input, .. } => mark_only_scan(input),
        Logical::Project { input, expressions } => {
            !expressions.iter().any(Expr::is_volatile) && mark_only_scan(input)
        }
        Logical::Apply(apply) if !matches!(apply.kind, ApplyKind::Rows { .. }) => {
            mark_only_scan(&mut apply.input)
        }
        _ => false,
    }
}
