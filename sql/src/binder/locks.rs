//! FOR UPDATE and index hints: marks on the scans of a FROM clause.

use store::transaction::{LockMode, LockWait};

use crate::ast::{self, Hint, LockStrength, Locking};
use crate::binder::scope::{Relation, Scope};
use crate::error::{Error, Result, sqlstate};
use crate::logical::{Logical, RowLock, TableScan};

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

/// Returns the clause as messages name it.
pub(super) fn strength_text(strength: LockStrength) -> &'static str {
    match strength {
        LockStrength::Update => "FOR UPDATE",
        LockStrength::Share => "FOR SHARE",
    }
}

/// Marks the scans that FOR UPDATE and FOR SHARE lock.
pub(super) fn apply_locks(plan: &mut Logical, scope: &Scope, clauses: &[Locking]) -> Result<()> {
    for clause in clauses {
        let named = |relation: &&Relation| {
            clause.of.as_ref().is_none_or(|name| name.value == relation.alias)
        };
        let relations: Vec<&Relation> = scope.relations.iter().filter(named).collect();
        let text = strength_text(clause.strength);
        if let (Some(name), true) = (&clause.of, relations.is_empty()) {
            let message =
                format!("relation \"{}\" in {text} clause not found in FROM clause", name.value);
            return Err(Error::new(sqlstate::UNDEFINED_TABLE, message).at(name.position));
        }
        if relations.iter().any(|relation| relation.table.is_none()) {
            let hint = "Name the tables to lock with OF, or lock inside the subquery.";
            let what = format!("{text} of a subquery or function");
            return Err(Error::not_supported(what, hint).at(clause.position));
        }
        let lock = row_lock(clause);
        for_each_scan(plan, &mut |scan| {
            if clause.of.as_ref().is_none_or(|name| name.value == scan.alias) {
                scan.lock = Some(stronger(scan.lock, lock));
            }
        });
    }
    let mut past = false;
    for_each_scan(plan, &mut |scan| past |= scan.lock.is_some() && scan.as_of.is_some());
    if past && let Some(clause) = clauses.first() {
        let what = format!("{} of past versions", strength_text(clause.strength));
        return Err(Error::not_supported(what, "Lock the rows of the present.").at(clause.position));
    }
    Ok(())
}

fn row_lock(clause: &Locking) -> RowLock {
    RowLock {
        mode: match clause.strength {
            LockStrength::Update => LockMode::Exclusive,
            LockStrength::Share => LockMode::Shared,
        },
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
    let mode = match (old.mode, new.mode) {
        (LockMode::Shared, LockMode::Shared) => LockMode::Shared,
        _ => LockMode::Exclusive,
    };
    let wait = match (old.wait, new.wait) {
        (LockWait::NoWait, _) | (_, LockWait::NoWait) => LockWait::NoWait,
        (LockWait::Skip, _) | (_, LockWait::Skip) => LockWait::Skip,
        _ => LockWait::Wait,
    };
    RowLock { mode, wait }
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
