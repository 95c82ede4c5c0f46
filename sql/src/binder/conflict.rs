//! ON CONFLICT: inference of the arbiter indexes, and the action on the conflicting row.

use std::sync::Arc;

use types::DataType;
use types::expr::Expr;

use crate::ast;
use crate::ast::{ConflictAction, Deferral};
use crate::binder::level::{Binder, Clause, QueryLevel, TableClause};
use crate::binder::parameters::Parameters;
use crate::binder::prune::finish_expression;
use crate::binder::rows::Rows;
use crate::binder::scope::Scope;
use crate::binder::update_target::UpdateTarget;
use crate::catalog::table::{Index, Table};
use crate::error::{Error, Result};
use crate::logical::{Arbiters, ConflictTarget, Logical, OnConflict, Origin, RowAtHand};

impl Binder<'_> {
    pub(super) fn bind_on_conflict(
        &mut self,
        written: &UpdateTarget,
        alias: &str,
        clause: &ast::OnConflictClause,
    ) -> Result<(OnConflict, Option<Box<RowAtHand>>)> {
        let target = match &clause.target {
            None => {
                let table = &written.table;
                table.indexes.iter().try_for_each(|index| refuse_deferrable(table, index))?;
                ConflictTarget::Any
            }
            Some(ast::ConflictTargetClause::Constraint(name)) => {
                let target = named(&written.table, name)?;
                self.request_arbiters(written, &target);
                target
            }
            Some(ast::ConflictTargetClause::Keys { keys, predicate }) => {
                let parts = (keys.as_slice(), predicate.as_ref());
                self.inferred(written, alias, parts)?.ok_or_else(|| {
                    err!(INVALID_COLUMN_REFERENCE: "there is no unique or exclusion constraint matching the ON CONFLICT \
                        specification")
                })?
            }
        };
        match &clause.action {
            ConflictAction::Nothing => Ok((OnConflict::Ignore { target }, None)),
            ConflictAction::Update { .. } if target == ConflictTarget::Any => {
                bail!(SYNTAX_ERROR: "ON CONFLICT DO UPDATE requires inference specification or constraint name";
                    hint "For example, ON CONFLICT (column_name)."; at clause.position)
            }
            ConflictAction::Update { assignments, selection } => {
                let width = written.table.columns.len();
                let excluded = Scope::of(written.relation("excluded"));
                let scope = Scope::of(written.relation(alias)).join(excluded, width)?;
                let parts = (assignments.as_slice(), selection.as_ref());
                self.bind_conflict_action(written, scope, target, parts)
            }
        }
    }

    /// Requests that the columns of a named constraint may be read, as in PostgreSQL.
    fn request_arbiters(&mut self, written: &UpdateTarget, target: &ConflictTarget) {
        let (table, ConflictTarget::These(arbiters)) = (&written.table, target) else { return };
        let keys = table.key_columns().filter(|_| arbiters.primary_key);
        let indexes = table.indexes.iter().filter(|one| arbiters.indexes.contains(&one.name));
        let columns = indexes.flat_map(|index| index.spec.keys.iter().flat_map(Expr::columns));
        let columns: Vec<usize> = keys.chain(columns).collect();
        for at in columns.into_iter().filter(|_| !written.is_through_view()) {
            self.request_column(Some((Origin::Relation(table.oid), at)));
        }
    }

    /// Returns the unique keys over these columns and expressions: full ones, and partial ones
    /// whose predicate is implied by the condition.
    fn inferred(
        &mut self,
        written: &UpdateTarget,
        alias: &str,
        (keys, predicate): (&[ast::Expr], Option<&ast::Expr>),
    ) -> Result<Option<ConflictTarget>> {
        let scope = Scope::of(written.relation(alias));
        let clause = TableClause::IndexExpression;
        let bind = |binder: &mut Self| {
            let bound = keys.iter().map(|key| {
                let value = binder.bind_expr(key)?;
                Ok(binder.resolve_unknown(value)?.expr)
            });
            bound.collect::<Result<Vec<Expr>>>()
        };
        let (mut keys, level) = self.in_new_level(scope.clone(), Clause::Table(clause), bind)?;
        level.refuse_subqueries_of(clause)?;
        let mut condition = None;
        if let Some(predicate) = predicate {
            let clause = TableClause::IndexPredicate;
            let bind = |binder: &mut Self| {
                let value = binder.bind_expr(predicate)?;
                binder.condition(value, "WHERE")
            };
            let (bound, level) = self.in_new_level(scope, Clause::Table(clause), bind)?;
            level.refuse_subqueries_of(clause)?;
            condition = Some(bound);
        }
        for expr in keys.iter_mut().chain(&mut condition) {
            finish_expression(expr, &self.parameters);
        }
        let known = condition.map_or(Vec::new(), Expr::split_conjunction);
        let known: Vec<&Expr> = known.iter().collect();
        let same = |own: &[Expr]| {
            own.iter().all(|key| keys.contains(key)) && keys.iter().all(|key| own.contains(key))
        };
        let table = &written.table;
        let primary_key: Vec<Expr> = table
            .key_columns()
            .map(|at| Expr::column(at, &table.layout.columns[at].data_type))
            .collect();
        let is_meant = |index: &&Arc<Index>| {
            let spec = &index.spec;
            let is_known = |one: &Expr| one.follows_from(&known);
            index.is_unique()
                && !spec.local
                && index.is_complete()
                && same(&spec.keys)
                && spec.predicate.iter().all(is_known)
        };
        table.indexes.iter().filter(is_meant).try_for_each(|one| refuse_deferrable(table, one))?;
        let indexes = table.indexes.iter().filter(is_meant).map(|index| index.name.clone());
        let arbiters = Arbiters { primary_key: same(&primary_key), indexes: indexes.collect() };
        let found = arbiters.primary_key || !arbiters.indexes.is_empty();
        Ok(found.then(|| ConflictTarget::These(Box::new(arbiters))))
    }

    /// Binds SET and WHERE over the existing row and the row proposed for insertion (`excluded`).
    pub(super) fn bind_conflict_action(
        &mut self,
        written: &UpdateTarget,
        scope: Scope,
        target: ConflictTarget,
        (list, selection): (&[ast::AssignmentClause], Option<&ast::Expr>),
    ) -> Result<(OnConflict, Option<Box<RowAtHand>>)> {
        let bind = |binder: &mut Self| {
            let assignments = binder.bind_set(written, list)?;
            let predicate = match selection {
                Some(selection) => Some(binder.bind_condition(selection, Clause::Where)?),
                None => None,
            };
            Ok((assignments, predicate))
        };
        let (bound, level): (_, QueryLevel) = self.in_new_level(scope, Clause::Set, bind)?;
        let (mut assignments, mut predicate) = bound;
        let mut conflict_row = None;
        if !level.subqueries.is_empty() {
            let own = column_types(&written.table);
            let types = [own.clone(), own].concat();
            let (parameters, mut row) = given_row(types, &mut self.parameters);
            let guard = row.place_filter(&mut predicate, &level.subqueries);
            for value in assignments.iter_mut().map(|assignment| &mut assignment.value) {
                *value = row.place_under(value.clone(), &guard, &level.subqueries);
            }
            conflict_row = Some(Box::new(RowAtHand { parameters, plan: row.plan }));
        }
        let inserts = true;
        Ok((OnConflict::Update { target, assignments, predicate, inserts }, conflict_row))
    }
}

/// Returns a row whose values are parameters, with the parameters; the executor sets them for each
/// row.
pub(super) fn given_row(types: Vec<DataType>, parameters: &mut Parameters) -> (Vec<Expr>, Rows) {
    let parameter = |data_type: &DataType| Expr::Parameter {
        index: parameters.outer(),
        data_type: data_type.clone(),
    };
    let values: Vec<Expr> = types.iter().map(parameter).collect();
    let row = Logical::Values { types: types.clone(), rows: vec![values.clone()] };
    (values, Rows::new(row, types))
}

/// Returns the arbiter constraint with a name.
fn named(table: &Table, name: &ast::Ident) -> Result<ConflictTarget> {
    let primary_key = name.value == table.primary_key_name;
    let is_it = |index: &&Arc<Index>| index.constraint && index.name == name.value;
    let index = table.indexes.iter().find(is_it);
    if !primary_key && index.is_none() {
        bail!(UNDEFINED_OBJECT: "constraint \"{}\" for table \"{}\" does not exist", name.value, table.name; at name.position);
    }
    index.iter().try_for_each(|index| refuse_deferrable(table, index))?;
    let indexes = index.map(|index| index.name.clone()).into_iter().collect();
    Ok(ConflictTarget::These(Box::new(Arbiters { primary_key, indexes })))
}

/// Rejects deferrable constraints as arbiters: they are not checked while the statement runs.
pub(super) fn refuse_deferrable(table: &Table, index: &Index) -> Result<()> {
    if index.deferral == Deferral::Never {
        return Ok(());
    }
    bail!(OBJECT_NOT_IN_PREREQUISITE_STATE:
        "ON CONFLICT does not support deferrable unique constraints/exclusion constraints as arbiters";
        of_table &table.schema, &table.name; of_constraint &index.name)
}

/// Returns the types of a table's columns.
pub(super) fn column_types(table: &Table) -> Vec<DataType> {
    table.columns.iter().map(|column| column.sql_type.base.clone()).collect()
}
