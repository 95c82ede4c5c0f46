//! INSERT and UPSERT.

use std::sync::Arc;

use types::cast::CastContext;
use types::expr::Expr;
use types::{DataType, SqlType};

use crate::ast::{
    self, AssignedValue, ColumnName, ConflictAction, InsertSource, OnDuplicate, Overriding,
};
use crate::binder::assignment::{Field, default_of, default_of_field, target_column};
use crate::binder::bound_query::BoundQuery;
use crate::binder::level::{Binder, Clause, Level};
use crate::binder::modify::returning_query;
use crate::binder::query::{uneven_values, values_plan};
use crate::binder::rows::Rows;
use crate::binder::scope::{Relation, Scope};
use crate::binder::typed::{Typed, null};
use crate::catalog::record::IdentityRecord;
use crate::catalog::table::{Column, Table};
use crate::error::{Error, Result, sqlstate};
use crate::logical::{Bound, ConflictRow, ConflictTarget, Insert, Logical, OnConflict};

impl Binder<'_> {
    /// Binds INSERT.
    pub(super) fn bind_insert(&mut self, insert: &ast::Insert) -> Result<Bound> {
        let table = self.written_table(&insert.table)?;
        let alias = insert.alias.as_ref().map_or(&table.name, |alias| &alias.value).clone();
        let (source, named_columns) =
            self.bind_insert_source(&table, &insert.columns, &insert.source, insert.overriding)?;
        let (on_conflict, conflict_row) = match &insert.on_conflict {
            None => (OnConflict::Error, None),
            Some(clause) => self.bind_on_conflict(&table, &alias, clause)?,
        };
        let (scope, types) = (existing_scope(&table, &alias), column_types(&table));
        let (returning, query) = self.bind_returning(scope, types, &insert.returning)?;
        let insert = Insert { table, source, named_columns, on_conflict, conflict_row, returning };
        Ok(returning_query(Bound::Insert(insert), query))
    }

    /// Binds UPSERT.
    pub(super) fn bind_upsert(&mut self, upsert: &ast::Upsert) -> Result<Bound> {
        let table = self.written_table(&upsert.table)?;
        let position = upsert.table.position();
        if let Some(hint) = upsert.hints.first() {
            let what = format!("hint {} of UPSERT", hint.name);
            return Err(Error::not_supported(what, "Remove it.").at(position));
        }
        let (source, named_columns) =
            self.bind_insert_source(&table, &upsert.columns, &upsert.source, None)?;
        let target = ConflictTarget::PrimaryKey;
        let (on_conflict, conflict_row) = match &upsert.on_duplicate {
            None => (OnConflict::Overwrite, None),
            Some(OnDuplicate::Ignore) => (OnConflict::Ignore { target }, None),
            Some(OnDuplicate::Update(list)) => {
                let scope = existing_scope(&table, &table.name);
                self.bind_conflict_action(&table, scope, target, (list, None))?
            }
        };
        let (scope, types) = (existing_scope(&table, &table.name), column_types(&table));
        let (returning, query) = self.bind_returning(scope, types, &upsert.returning)?;
        let insert = Insert { table, source, named_columns, on_conflict, conflict_row, returning };
        Ok(returning_query(Bound::Insert(insert), query))
    }

    /// Returns the source of full rows, and the columns that the statement names.
    fn bind_insert_source(
        &mut self,
        table: &Table,
        names: &[ColumnName],
        source: &InsertSource,
        overriding: Option<Overriding>,
    ) -> Result<(Logical, Vec<usize>)> {
        let targets = self.insert_targets(table, names)?;
        let identity = IdentityRule { overriding };
        match source {
            InsertSource::DefaultValues => {
                let row = table.columns.iter().map(default_of).collect();
                let plan = Logical::Values { types: column_types(table), rows: vec![row] };
                Ok((plan, Vec::new()))
            }
            InsertSource::Values(rows) => {
                let bind =
                    |binder: &mut Self| binder.bind_target_rows(table, names, rows, identity);
                let clause = if rows.len() == 1 { Clause::ValuesRow } else { Clause::Values };
                let ((rows, targets), level) = self.within(Scope::default(), clause, bind)?;
                let plan = values_plan(column_types(table), rows, &level);
                Ok((plan, targets))
            }
            InsertSource::Query(query) => {
                let bound = self.bind_query(query, false)?;
                let width = bound.columns.len();
                check_width(&targets, names, width, |index| bound.positions[index])?;
                let plan = self.insert_query(table, &targets[..width], bound, identity)?;
                Ok((plan, columns_of(&targets[..width])))
            }
        }
    }

    /// Binds rows of values for the columns of these names; returns full rows in table order, and
    /// the columns.
    pub(super) fn bind_target_rows(
        &mut self,
        table: &Table,
        names: &[ColumnName],
        rows: &[Vec<AssignedValue>],
        identity: IdentityRule,
    ) -> Result<(Vec<Vec<Expr>>, Vec<usize>)> {
        let mut targets = self.insert_targets(table, names)?;
        let width = rows.first().map_or(0, Vec::len);
        let first = rows.first().map_or(&[] as &[AssignedValue], Vec::as_slice);
        check_width(&targets, names, width, |index| value_position(&first[index]))?;
        targets.truncate(width);
        let rows = self.bind_insert_rows(table, &targets, rows, identity)?;
        Ok((rows, columns_of(&targets)))
    }

    fn bind_insert_rows(
        &mut self,
        table: &Table,
        targets: &[InsertTarget],
        rows: &[Vec<AssignedValue>],
        identity: IdentityRule,
    ) -> Result<Vec<Vec<Expr>>> {
        let mut places: Vec<Option<usize>> = vec![None; table.columns.len()];
        for (index, target) in targets.iter().enumerate() {
            places[target.column].get_or_insert(index);
        }
        let mut bound = Vec::with_capacity(rows.len());
        for row in rows {
            if row.len() != targets.len() {
                let position = row.first().map_or(1, value_position);
                return Err(uneven_values(position));
            }
            let mut values = Vec::with_capacity(table.columns.len());
            for (column, place) in table.columns.iter().zip(&places) {
                if let Some(place) = place.filter(|place| targets[*place].field.is_some()) {
                    values.push(self.row_of_fields(column, &targets[place..], &row[place..])?);
                    continue;
                }
                values.push(match place.map(|place| &row[place]) {
                    None | Some(AssignedValue::Default { .. }) => default_of(column),
                    Some(AssignedValue::Expr(expr)) => {
                        let value = self.bind_expr(expr)?;
                        match identity.takes(column)? {
                            true => self.assign(value, column)?,
                            false => default_of(column),
                        }
                    }
                });
            }
            bound.push(values);
        }
        Ok(bound)
    }

    /// Binds a row of which fields are given, those from the first one on.
    fn row_of_fields(
        &mut self,
        column: &Column,
        targets: &[InsertTarget],
        values: &[AssignedValue],
    ) -> Result<Expr> {
        let mut row = null(column.sql_type.base);
        let own = targets.first().map(|first| first.column);
        for (target, value) in targets.iter().zip(values).filter(|one| Some(one.0.column) == own) {
            let value = match value {
                AssignedValue::Expr(expr) => self.bind_expr(expr)?,
                AssignedValue::Default { position } => return Err(default_of_field(*position)),
            };
            if let Some(field) = target.field {
                row = self.with_field(row, field, value)?;
            }
        }
        Ok(row)
    }

    fn insert_query(
        &mut self,
        table: &Table,
        targets: &[InsertTarget],
        bound: BoundQuery,
        identity: IdentityRule,
    ) -> Result<Logical> {
        for (index, target) in targets.iter().enumerate() {
            if target.field.is_none() {
                check_assignable(&bound, index, &table.columns[target.column])?;
            }
        }
        let to: Vec<SqlType> = targets
            .iter()
            .map(|target| match target.field {
                Some((of, at)) => of.attributes()[at].sql_type,
                None => table.columns[target.column].sql_type,
            })
            .collect();
        let input = Box::new(self.convert(bound, &to, CastContext::Assignment)?);
        let mut expressions: Vec<Expr> = table.columns.iter().map(default_of).collect();
        let mut begun = Vec::new();
        for (index, target) in targets.iter().enumerate() {
            let column = &table.columns[target.column];
            let data_type = to[index].base;
            let value = Expr::Column { index, data_type };
            if let Some(field) = target.field {
                let is_first = !begun.contains(&target.column);
                begun.push(target.column);
                let row =
                    std::mem::replace(&mut expressions[target.column], null(column.sql_type.base));
                let row = if is_first { null(column.sql_type.base) } else { row };
                let value = Typed { expr: value, sql_type: to[index], position: 1 };
                expressions[target.column] = self.with_field(row, field, value)?;
            } else if identity.takes(column)? {
                expressions[target.column] = value;
            }
        }
        Ok(Logical::Project { input, expressions })
    }

    fn bind_on_conflict(
        &mut self,
        table: &Arc<Table>,
        alias: &str,
        clause: &ast::OnConflict,
    ) -> Result<(OnConflict, Option<Box<ConflictRow>>)> {
        let target = match &clause.target {
            None => ConflictTarget::Any,
            Some(target) => conflict_target(table, target, clause.position)?,
        };
        match &clause.action {
            ConflictAction::Nothing => Ok((OnConflict::Ignore { target }, None)),
            ConflictAction::Update { .. } if target == ConflictTarget::Any => {
                let message = "ON CONFLICT DO UPDATE requires inference specification \
                               or constraint name";
                Err(Error::new(sqlstate::SYNTAX_ERROR, message)
                    .with_hint("For example, ON CONFLICT (column_name).")
                    .at(clause.position))
            }
            ConflictAction::Update { assignments, selection } => {
                let width = table.columns.len();
                let excluded = Scope::of(Relation::of_table("excluded", table, 0));
                let scope = existing_scope(table, alias).join(excluded, width)?;
                let parts = (assignments.as_slice(), selection.as_ref());
                self.bind_conflict_action(table, scope, target, parts)
            }
        }
    }

    /// Binds SET and WHERE over the existing row and the row that was to be inserted.
    fn bind_conflict_action(
        &mut self,
        table: &Table,
        scope: Scope,
        target: ConflictTarget,
        (list, selection): (&[ast::Assignment], Option<&ast::Expr>),
    ) -> Result<(OnConflict, Option<Box<ConflictRow>>)> {
        let bind = |binder: &mut Self| {
            let assignments = binder.bind_set(table, list)?;
            let predicate = match selection {
                Some(selection) => Some(binder.bind_condition(selection, Clause::Where)?),
                None => None,
            };
            Ok((assignments, predicate))
        };
        let (bound, level): (_, Level) = self.within(scope, Clause::Set, bind)?;
        let (mut assignments, mut predicate) = bound;
        let mut conflict_row = None;
        if !level.subqueries.is_empty() {
            let types = [column_types(table), column_types(table)].concat();
            let mut parameter =
                |&data_type| Expr::Parameter { index: self.parameters.outer(), data_type };
            let parameters: Vec<Expr> = types.iter().map(&mut parameter).collect();
            let row = Logical::Values { types: types.clone(), rows: vec![parameters.clone()] };
            let mut row = Rows::new(row, types);
            let values = assignments.iter_mut().map(|assignment| &mut assignment.value);
            for expr in predicate.iter_mut().chain(values) {
                *expr = row.place(expr.clone(), &level.subqueries);
            }
            conflict_row = Some(Box::new(ConflictRow { parameters, plan: row.plan }));
        }
        Ok((OnConflict::Update { target, assignments, predicate }, conflict_row))
    }
}

/// What becomes of values that a statement gives to identity columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdentityRule {
    /// What the statement says.
    pub(super) overriding: Option<Overriding>,
}

impl IdentityRule {
    /// Returns whether a given value counts; otherwise the sequence gives one.
    fn takes(self, column: &Column) -> Result<bool> {
        if column.generated.is_some() {
            let name = &column.name;
            let message = format!("cannot insert a non-DEFAULT value into column \"{name}\"");
            return Err(Error::new(sqlstate::GENERATED_ALWAYS, message)
                .with_detail(format!("Column \"{name}\" is a generated column.")));
        }
        match (column.identity, self.overriding) {
            (Some(_), Some(Overriding::User)) => Ok(false),
            (Some(IdentityRecord::Always), None) => {
                let name = &column.name;
                let message = format!("cannot insert a non-DEFAULT value into column \"{name}\"");
                Err(Error::new(sqlstate::GENERATED_ALWAYS, message)
                    .with_detail(format!(
                        "Column \"{name}\" is an identity column defined as GENERATED ALWAYS."
                    ))
                    .with_hint("Use OVERRIDING SYSTEM VALUE to override."))
            }
            _ => Ok(true),
        }
    }
}

fn existing_scope(table: &Arc<Table>, alias: &str) -> Scope {
    Scope::of(Relation::of_table(alias, table, 0))
}

fn column_types(table: &Table) -> Vec<DataType> {
    table.columns.iter().map(|column| column.sql_type.base).collect()
}

fn value_position(value: &AssignedValue) -> usize {
    match value {
        AssignedValue::Expr(expr) => expr.position(),
        AssignedValue::Default { position } => *position,
    }
}

/// Where a value of INSERT goes.
#[derive(Debug, Clone, Copy)]
struct InsertTarget {
    column: usize,
    /// A field of the column; else all of it.
    field: Option<Field>,
}

impl Binder<'_> {
    fn insert_targets(&self, table: &Table, names: &[ColumnName]) -> Result<Vec<InsertTarget>> {
        if names.is_empty() {
            let whole = |column| InsertTarget { column, field: None };
            return Ok(table.visible_columns().map(whole).collect());
        }
        let mut targets: Vec<InsertTarget> = Vec::with_capacity(names.len());
        for name in names {
            let target = match self.field_target(table, name)? {
                Some((column, field)) => InsertTarget { column, field: Some(field) },
                None => InsertTarget { column: target_column(table, name)?, field: None },
            };
            let clashes = |other: &InsertTarget| {
                other.column == target.column && (other.field.is_none() || target.field.is_none())
            };
            if targets.iter().any(clashes) {
                let column = &table.columns[target.column].name;
                let message = format!("column \"{column}\" specified more than once");
                return Err(Error::new(sqlstate::DUPLICATE_COLUMN, message).at(name.name.position));
            }
            targets.push(target);
        }
        Ok(targets)
    }
}

/// Returns the columns of targets, each once.
fn columns_of(targets: &[InsertTarget]) -> Vec<usize> {
    let mut columns: Vec<usize> = Vec::with_capacity(targets.len());
    for target in targets {
        if !columns.contains(&target.column) {
            columns.push(target.column);
        }
    }
    columns
}

fn check_width(
    targets: &[InsertTarget],
    names: &[ColumnName],
    width: usize,
    position_of: impl Fn(usize) -> usize,
) -> Result<()> {
    if width > targets.len() {
        let message = "INSERT has more expressions than target columns";
        let position = position_of(targets.len());
        return Err(Error::new(sqlstate::SYNTAX_ERROR, message).at(position));
    }
    if width < names.len() {
        let message = "INSERT has more target columns than expressions";
        let position = names[width].name.position;
        return Err(Error::new(sqlstate::SYNTAX_ERROR, message).at(position));
    }
    Ok(())
}

/// Checks that a query's column can be stored, with the message of an assignment.
fn check_assignable(bound: &BoundQuery, index: usize, column: &Column) -> Result<()> {
    let from = bound.columns[index].sql_type.base;
    let to = column.sql_type.base;
    let stored = types::cast::cast_context(from, to)
        .is_some_and(|context| context <= CastContext::Assignment);
    if from == DataType::Unknown || from == to || stored {
        return Ok(());
    }
    let message = format!(
        "column \"{}\" is of type {} but expression is of type {}",
        column.name,
        to.sql_name(),
        from.sql_name()
    );
    Err(Error::new(sqlstate::DATATYPE_MISMATCH, message)
        .with_hint("You will need to rewrite or cast the expression.")
        .at(bound.positions[index]))
}

fn conflict_target(
    table: &Table,
    target: &ast::ConflictTarget,
    position: usize,
) -> Result<ConflictTarget> {
    match target {
        ast::ConflictTarget::Constraint(name) => {
            if name.value == table.primary_key_name {
                return Ok(ConflictTarget::PrimaryKey);
            }
            let unique = |index: &&Arc<crate::catalog::table::Index>| {
                index.name == name.value && index.spec.unique
            };
            match table.indexes.iter().find(unique) {
                Some(index) => Ok(ConflictTarget::Index(index.name.clone())),
                None => {
                    let message = format!(
                        "constraint \"{}\" for table \"{}\" does not exist",
                        name.value, table.name
                    );
                    Err(Error::new(sqlstate::UNDEFINED_OBJECT, message).at(name.position))
                }
            }
        }
        ast::ConflictTarget::Columns(names) => {
            let columns =
                names.iter().map(|name| target_column(table, name)).collect::<Result<Vec<_>>>()?;
            inferred_target(table, &columns).ok_or_else(|| {
                let message = "there is no unique or exclusion constraint matching \
                               the ON CONFLICT specification";
                Error::new(sqlstate::INVALID_COLUMN_REFERENCE, message).at(position)
            })
        }
    }
}

fn inferred_target(table: &Table, columns: &[usize]) -> Option<ConflictTarget> {
    let same = |key: &[usize]| {
        key.iter().all(|column| columns.contains(column))
            && columns.iter().all(|column| key.contains(column))
    };
    let key: Vec<usize> = table.key_columns().collect();
    if same(&key) {
        return Some(ConflictTarget::PrimaryKey);
    }
    let unique = table.indexes.iter().find(|index| {
        let column = |key: &Expr| match key {
            Expr::Column { index, .. } => Some(*index),
            _ => None,
        };
        let keys: Option<Vec<usize>> = index.spec.keys.iter().map(column).collect();
        index.spec.unique && keys.is_some_and(|keys| same(&keys))
    });
    unique.map(|index| ConflictTarget::Index(index.name.clone()))
}
