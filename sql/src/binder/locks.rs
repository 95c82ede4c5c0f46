//! FOR UPDATE and index hints: marks on the scans of a FROM clause.

use store::transaction::LockWait;

use crate::ast::{self, Hint, Locking, QueryBody, TableRef};
use crate::binder::scope::{Relation, RelationKind, Scope};
use crate::error::{Error, Result, sqlstate};
use crate::logical::{ApplyKind, JoinKind, Logical, RowLock, TableScan};

/// Calls `visit` on each scan of the FROM clause itself, not on those inside its subqueries.
fn for_each_scan(plan: &mut Logical, visit: &mut dyn FnMut(&mut TableScan)) {
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

/// Marks the scans that FOR UPDATE and FOR SHARE lock.
pub(super) fn apply_locks(plan: &mut Logical, scope: &Scope, clauses: &[Locking]) -> Result<()> {
    for clause in clauses {
        let named = |relation: &&Relation| {
            clause.of.as_ref().is_none_or(|name| name.value == relation.alias)
        };
        let relations: Vec<&Relation> = scope.relations.iter().filter(named).collect();
        let text = clause.strength.clause();
        if let (Some(name), true) = (&clause.of, relations.is_empty()) {
            let message =
                format!("relation \"{}\" in {text} clause not found in FROM clause", name.value);
            return Err(Error::new(sqlstate::UNDEFINED_TABLE, message).at(name.position));
        }
        for relation in relations {
            let what = match relation.kind {
                // What a query in FROM reads was locked by the clauses of its own.
                RelationKind::Table | RelationKind::Query => continue,
                RelationKind::Opaque => {
                    let what = format!("{text} of what the system shows");
                    let hint = "Name the tables to lock with OF.";
                    return Err(Error::not_supported(what, hint).at(clause.position));
                }
                RelationKind::Function => "a function",
                RelationKind::Named => "a WITH query",
                RelationKind::Join => "a join",
            };
            // Without OF only what has rows to lock is meant.
            if let Some(name) = &clause.of {
                let message = format!("{text} cannot be applied to {what}");
                let error = Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message);
                return Err(error.at(name.position));
            }
        }
        let lock = row_lock(clause);
        for_each_scan(plan, &mut |scan| {
            if clause.of.as_ref().is_none_or(|name| name.value == scan.alias) {
                scan.lock = Some(stronger(scan.lock, lock));
            }
        });
    }
    if let Some(clause) = clauses.iter().find(|_| locks_nullable(plan, false)) {
        let text = clause.strength.clause();
        let message = format!("{text} cannot be applied to the nullable side of an outer join");
        return Err(Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message).at(clause.position));
    }
    let mut materialized = None;
    for_each_scan(plan, &mut |scan| {
        if scan.lock.is_some() && scan.table.is_materialized() {
            materialized = Some(scan.table.name.clone());
        }
    });
    if let Some(name) = materialized {
        let message = format!("cannot lock rows in materialized view \"{name}\"");
        return Err(Error::new(sqlstate::WRONG_OBJECT_TYPE, message));
    }
    let mut past = false;
    for_each_scan(plan, &mut |scan| past |= scan.lock.is_some() && scan.as_of.is_some());
    if past && let Some(clause) = clauses.first() {
        let what = format!("{} of past versions", clause.strength.clause());
        return Err(Error::not_supported(what, "Lock the rows of the present.").at(clause.position));
    }
    Ok(())
}

/// Returns whether a scan is marked in a FROM clause, or in the queries that are part of it.
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

/// Returns whether a scan is locked whose rows may be missing in those of an outer join.
fn locks_nullable(plan: &Logical, nullable: bool) -> bool {
    match plan {
        Logical::Scan(scan) => nullable && scan.lock.is_some(),
        Logical::Join(join) => {
            let left = matches!(join.kind, JoinKind::Right | JoinKind::Full);
            let right = matches!(join.kind, JoinKind::Left | JoinKind::Full);
            locks_nullable(&join.left, nullable || left)
                || locks_nullable(&join.right, nullable || right)
        }
        Logical::Filter { input, .. } | Logical::Project { input, .. } => {
            locks_nullable(input, nullable)
        }
        Logical::Apply(apply) => {
            let outer = matches!(apply.kind, ApplyKind::Rows { outer: true, .. });
            locks_nullable(&apply.input, nullable)
                || (outer && locks_nullable(&apply.subquery, true))
        }
        _ => false,
    }
}

/// Returns FROM with the clauses of a query on the queries in it that they are about.
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
        TableRef::Function(_) | TableRef::Renamed { .. } => {}
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
    }
}

/// Of two clauses for one table the stronger lock and the more impatient wait count.
fn stronger(old: Option<RowLock>, new: RowLock) -> RowLock {
    let Some(old) = old else { return new };
    let strength = old.strength.max(new.strength);
    let wait = match (old.wait, new.wait) {
        (LockWait::NoWait, _) | (_, LockWait::NoWait) => LockWait::NoWait,
        (LockWait::Skip, _) | (_, LockWait::Skip) => LockWait::Skip,
        _ => LockWait::Wait,
    };
    RowLock { strength, wait }
}

/// Marks the scans that hints are about: `INDEX(t i …)` and `NO_INDEX[(t)]`.
pub(super) fn apply_hints(
    plan: &mut Logical,
    scope: &Scope,
    hints: &[Hint],
    position: usize,
) -> Result<()> {
    for hint in hints {
        let (table, indexes) = match (hint.name.as_str(), hint.arguments.as_slice()) {
            ("index", [table, indexes @ ..]) if !indexes.is_empty() => (Some(table), indexes),
            ("no_index", []) => (None, &[] as &[String]),
            ("no_index", [table]) => (Some(table), &[] as &[String]),
            ("index" | "no_index", _) => {
                let message = format!("hint {} is malformed", hint.name);
                return Err(Error::new(sqlstate::SYNTAX_ERROR, message)
                    .with_hint("Write INDEX(table index) or NO_INDEX(table).")
                    .at(position));
            }
            _ => {
                let what = format!("hint {}", hint.name);
                let known = "The hints are INDEX(table index) and NO_INDEX(table).";
                return Err(Error::not_supported(what, known).at(position));
            }
        };
        if let Some(name) = table {
            check_hint(scope, name, indexes).map_err(|error| error.at(position))?;
        }
        for_each_scan(plan, &mut |scan| {
            if table.is_none_or(|name| *name == scan.alias || *name == scan.table.name) {
                scan.index_hint = Some(indexes.to_vec());
            }
        });
    }
    Ok(())
}

fn check_hint(scope: &Scope, name: &str, indexes: &[String]) -> Result<()> {
    let named = |relation: &&Relation| {
        relation.alias == *name || relation.table.as_ref().is_some_and(|table| table.name == *name)
    };
    let relation = scope.relations.iter().find(named);
    let Some(table) = relation.and_then(|relation| relation.table.as_ref()) else {
        let message = format!("relation \"{name}\" in hint not found in FROM clause");
        return Err(Error::new(sqlstate::UNDEFINED_TABLE, message));
    };
    for index in indexes {
        if !table.indexes.iter().any(|one| one.name == *index) {
            let message = format!("index \"{index}\" does not exist");
            return Err(Error::new(sqlstate::UNDEFINED_OBJECT, message));
        }
    }
    Ok(())
}
