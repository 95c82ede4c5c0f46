//! Binding of MERGE: a left join of the source with the target table, and the WHEN clauses over
//! it.

use std::sync::Arc;

use types::expr::Expr;

use crate::ast::{self, AssignedValue, LockStrength, PolicyCommand};
use crate::binder::guard::{Guard, is_not_true, is_null};
use crate::binder::insert::IdentityRule;
use crate::binder::level::{Binder, Clause, ColumnVisibility};
use crate::binder::modify::{mark_changed, narrow};
use crate::binder::rows::Rows;
use crate::binder::scope::Scope;
use crate::binder::typed::boolean;
use crate::binder::update_target::{StatementKind, UpdateTarget};
use crate::catalog::access::privilege::{DELETE, INSERT};
use crate::catalog::table::Table;
use crate::error::{Error, Result};
use crate::logical::{BoundPlan, JoinKind, Merge, MergeAction, MergeClause};

/// The visible names in the parts of a MERGE.
struct MergeScopes {
    /// The target table.
    target: Scope,
    /// The source, after the table's columns.
    source: Scope,
    /// The target table and the source.
    both: Scope,
}

impl Binder<'_> {
    /// Binds MERGE. Each row is a source row with the matching row of the table, or NULLs.
    pub(super) fn bind_merge(&mut self, merge: &ast::MergeStatement) -> Result<BoundPlan> {
        let changed =
            self.changed((&merge.table, StatementKind::Merge), merge.alias.as_ref(), &[])?;
        let (written, mut rows, target) = (changed.written, changed.rows, changed.scope);
        self.secure_scan(&mut rows.plan, written.secured(), &[PolicyCommand::Select])?;
        let table = Arc::clone(&written.table);
        let source = std::slice::from_ref(&merge.source);
        let (source_rows, source) = self.bind_from_of_target(source, &target)?;
        let width = rows.types.len();
        mark_changed(&mut rows.plan, LockStrength::NoKeyUpdate);
        let alias = merge.alias.as_ref().map_or(&table.name, |alias| &alias.value);
        if source.relations.iter().any(|relation| relation.alias == *alias) {
            bail!(DUPLICATE_ALIAS: "name \"{alias}\" specified more than once";
                detail "The name is used both as MERGE target table and data source.");
        }
        let both = target.clone().join(source, width)?;
        let names = MergeScopes { source: both.without_first(), target, both };
        let bind = |binder: &mut Self| binder.bind_condition(&merge.condition, Clause::JoinOn);
        let (on, level) = self.in_new_level(names.both.clone(), Clause::JoinOn, bind)?;
        let has_inserts = merge.clauses.iter().any(|clause| !clause.matched);
        if has_inserts {
            self.join_on(&mut rows, (source_rows, Vec::new()), JoinKind::Right, on, &level)?;
            rows.begin_level();
        } else {
            let all = boolean(true);
            rows.join(source_rows, JoinKind::Inner, all);
            rows.filter(on, &level.subqueries);
        }
        let mut clauses: Vec<MergeClause> = Vec::with_capacity(merge.clauses.len());
        for clause in &merge.clauses {
            let guard = guard_of(&table, &clauses, clause.matched);
            clauses.push(self.bind_merge_clause(&written, (&mut rows, &guard), &names, clause)?);
        }
        let mut used: Vec<&mut Expr> = Vec::new();
        for MergeClause { condition, action, .. } in &mut clauses {
            used.extend(condition.iter_mut().chain(action.expressions_mut()));
        }
        let mut held = self.hold_rows(&mut rows);
        let width = narrow(&mut rows, width, used, Some(&mut held));
        let checks = self.merge_checks(&written, &clauses)?;
        let mut merge = Merge { table, source: rows.plan, width, checks, clauses };
        if !merge.is_idle() {
            merge.source = held.over(Box::new(merge.source));
        }
        Ok(BoundPlan::Merge(merge))
    }

    fn bind_merge_clause(
        &mut self,
        written: &UpdateTarget,
        (rows, guard): (&mut Rows, &Guard),
        names: &MergeScopes,
        clause: &ast::MergeWhenClause,
    ) -> Result<MergeClause> {
        let bind = |binder: &mut Self| {
            let condition = match &clause.condition {
                Some(condition) => Some(binder.bind_condition(condition, Clause::MergeWhen)?),
                None => None,
            };
            let action = match &clause.action {
                ast::MergeActionClause::Nothing => MergeAction::Nothing,
                ast::MergeActionClause::Delete => {
                    binder.request(written.table.oid, DELETE);
                    MergeAction::Delete
                }
                ast::MergeActionClause::Update(assignments) => {
                    binder.level().clause = Clause::Set;
                    MergeAction::Update(binder.bind_set(written, assignments)?)
                }
                ast::MergeActionClause::Insert { columns, overriding, values } => {
                    binder.level().clause = Clause::Values;
                    let identity = IdentityRule { overriding: *overriding };
                    let values = values.as_deref();
                    let values = binder.bind_merge_values(written, columns, values, identity)?;
                    MergeAction::Insert(values)
                }
            };
            Ok((condition, action))
        };
        // A WHEN NOT MATCHED clause must not refer to columns of the table.
        let (bound, level) = if clause.matched {
            self.in_new_level(names.both.clone(), Clause::MergeWhen, bind)?
        } else {
            self.push_level(names.target.clone(), Clause::MergeWhen);
            self.level().reach = ColumnVisibility::Hidden;
            let bound = self.in_new_level(names.source.clone(), Clause::MergeWhen, bind);
            self.pop_level();
            bound?
        };
        let (mut condition, mut action) = bound;
        rows.begin_level();
        let mut guard = guard.clone();
        if let Some(condition) = &mut condition {
            *condition = rows.place_under(condition.clone(), &guard, &level.subqueries);
            guard = guard.and(condition.clone());
        }
        for expr in action.expressions_mut() {
            *expr = rows.place_under(expr.clone(), &guard, &level.subqueries);
        }
        Ok(MergeClause { matched: clause.matched, condition, action })
    }

    /// Binds the row of INSERT in table order; without values it consists of defaults.
    fn bind_merge_values(
        &mut self,
        written: &UpdateTarget,
        columns: &[ast::TargetColumn],
        values: Option<&[AssignedValue]>,
        identity: IdentityRule,
    ) -> Result<Vec<Expr>> {
        self.request(written.table.oid, INSERT);
        let Some(values) = values else {
            return Ok(written
                .table
                .columns
                .iter()
                .map(crate::binder::assignment::default_of)
                .collect());
        };
        let row = [values.to_vec()];
        let mut rows = self.bind_target_rows(written, columns, &row, identity)?.0;
        Ok(rows.pop().unwrap_or_default())
    }
}

/// Returns the guard of a clause: rows that are matched, or not, and that no preceding clause has
/// handled. The condition of a preceding clause is left out if it is volatile, because it must not
/// be evaluated twice.
fn guard_of(table: &Table, before: &[MergeClause], matched: bool) -> Guard {
    let key = table.key_columns().next();
    let key = key.map(|at| Expr::column(at, &table.layout.columns[at].data_type));
    let is_unmatched = key.map_or_else(|| boolean(false), is_null);
    let guard = match matched {
        true => Guard::of(Expr::Not(Box::new(is_unmatched))),
        false => Guard::of(is_unmatched),
    };
    let same = before.iter().filter(|clause| clause.matched == matched);
    let conditions = same.filter_map(|clause| clause.condition.clone());
    let stable = conditions.filter(|condition| !condition.is_session_only());
    stable.fold(guard, |guard, condition| guard.and(is_not_true(condition)))
}
