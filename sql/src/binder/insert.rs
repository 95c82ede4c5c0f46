//! Binding of INSERT and UPSERT: target columns, the source of rows, and defaults.
//!
//! The source becomes a plan of full rows in table order; identity and generated columns get their
//! default expressions. [`conflict`](crate::binder::conflict) binds ON CONFLICT.

use std::sync::Arc;

use types::DataType;
use types::cast::CastContext;
use types::expr::Expr;

use crate::ast::constant_run::ConstantRun;
use crate::ast::{
    self, AssignedValue, CellAttributes, InsertSource, OnDuplicate, Overriding, SelectItem,
    TargetColumn,
};
use crate::binder::assignment::default_of;
use crate::binder::bound_query::BoundQuery;
use crate::binder::conflict::{column_types, refuse_deferrable};
use crate::binder::dynamic_column;
use crate::binder::level::{Binder, Clause};
use crate::binder::modify::returning_query;
use crate::binder::part_assignment::{AssignmentPart, in_domain, no_value};
use crate::binder::query::{uneven_values, values_plan};
use crate::binder::scope::{Scope, ScopeRelation};
use crate::binder::typed::Typed;
use crate::binder::update_target::{StatementKind, UpdateTarget};
use crate::catalog::access::privilege::{INSERT, UPDATE};
use crate::catalog::record::IdentityRecord;
use crate::catalog::table::{Column, Table};
use crate::error::{Error, Result};
use crate::logical::{Arbiters, BoundPlan, ConflictTarget, Insert, Logical, OnConflict};

impl Binder<'_> {
    /// Binds INSERT.
    pub(super) fn bind_insert(&mut self, insert: &ast::InsertStatement) -> Result<BoundPlan> {
        let written = self.written(&insert.table, StatementKind::Insert)?;
        let alias = insert.alias.as_ref().map_or(written.name(), |alias| &alias.value).to_owned();
        let (source, named_columns) =
            self.bind_insert_source(&written, &insert.columns, &insert.source, insert.overriding)?;
        let (on_conflict, conflict_row) = match &insert.on_conflict {
            None => (OnConflict::Error, None),
            Some(_) if written.table.is_view => return Err(no_key_of_view("ON CONFLICT")),
            Some(clause) => self.bind_on_conflict(&written, &alias, clause)?,
        };
        let bound = Insert {
            table: Arc::clone(&written.table),
            source,
            named_columns,
            on_conflict,
            conflict_row,
            attributes: CellAttributes::default(),
            checks: written.checks(&mut self.parameters),
            returning: None,
        };
        let relation = written.relation(&alias);
        self.with_returning(bound, (&written, relation), &insert.returning)
    }

    /// Adds RETURNING and the checks of policies to the plan of a statement that inserts rows.
    fn with_returning(
        &mut self,
        mut insert: Insert,
        (written, relation): (&UpdateTarget, ScopeRelation),
        items: &[SelectItem],
    ) -> Result<BoundPlan> {
        let updates =
            matches!(insert.on_conflict, OnConflict::Update { .. } | OnConflict::Overwrite);
        let of_policies = self.insert_checks(written, (updates, !items.is_empty()))?;
        insert.checks.extend(of_policies);
        let types = column_types(&insert.table);
        let (returning, query) = self.bind_returning(Scope::of(relation), types, items)?;
        Ok(returning_query(BoundPlan::Insert(Insert { returning, ..insert }), query))
    }

    /// Binds UPSERT.
    pub(super) fn bind_upsert(&mut self, upsert: &ast::Upsert) -> Result<BoundPlan> {
        let mut written = self.written(&upsert.table, StatementKind::Insert)?;
        if written.table.is_view {
            return Err(no_key_of_view("UPSERT"));
        }
        if !matches!(upsert.on_duplicate, Some(OnDuplicate::Ignore)) && !written.is_through_view() {
            // A row of the same key is replaced.
            self.request(written.table.oid, UPDATE);
        }
        if let Some(column) = upsert.dynamic_columns.first() {
            if written.is_through_view() {
                return Err(dynamic_column::refusal(column));
            }
            written.table = self.with_dynamic_columns(&written.table, &upsert.dynamic_columns)?;
        }
        let (table, name) = (Arc::clone(&written.table), written.name());
        upsert.hints.iter().for_each(|hint| self.note_hint(hint));
        let (source, named_columns) =
            self.bind_insert_source(&written, &upsert.columns, &upsert.source, None)?;
        table.primary_index().map_or(Ok(()), |index| refuse_deferrable(&table, index))?;
        let arbiters = Arbiters { primary_key: true, indexes: Vec::new() };
        let target = ConflictTarget::These(Box::new(arbiters));
        let (on_conflict, conflict_row) = match &upsert.on_duplicate {
            None => (OnConflict::Overwrite, None),
            Some(OnDuplicate::Ignore) => (OnConflict::Ignore { target }, None),
            Some(OnDuplicate::Update(list) | OnDuplicate::UpdateOnly(list)) => {
                let scope = Scope::of(written.relation(name));
                let (mut action, row) =
                    self.bind_conflict_action(&written, scope, target, (list, None))?;
                if let OnConflict::Update { inserts, .. } = &mut action {
                    *inserts = matches!(upsert.on_duplicate, Some(OnDuplicate::Update(_)));
                }
                (action, row)
            }
        };
        let attributes = self.bind_cell_attributes(&table, &upsert.attributes)?;
        if upsert.on_duplicate.is_some()
            && let Some(first) = upsert.attributes.expressions().next()
        {
            return Err(Error::not_supported(
                "WITH TIMESTAMP or TTL of UPSERT … ON DUPLICATE KEY",
                "Use UPSERT without ON DUPLICATE KEY.",
            )
            .at(first.position()));
        }
        let bound = Insert {
            table,
            source,
            named_columns,
            on_conflict,
            conflict_row,
            attributes,
            checks: written.checks(&mut self.parameters),
            returning: None,
        };
        let relation = written.relation(name);
        self.with_returning(bound, (&written, relation), &upsert.returning)
    }

    /// Returns the plan of full rows, and the columns that the statement names.
    fn bind_insert_source(
        &mut self,
        written: &UpdateTarget,
        names: &[TargetColumn],
        source: &InsertSource,
        overriding: Option<Overriding>,
    ) -> Result<(Logical, Vec<usize>)> {
        let table: &Table = &written.table;
        let identity = IdentityRule { overriding };
        self.request_targets(written, names)?;
        match source {
            InsertSource::DefaultValues => {
                let row = table.columns.iter().map(default_of).collect();
                let plan = Logical::Values { types: column_types(table), rows: vec![row] };
                Ok((plan, Vec::new()))
            }
            InsertSource::Values(rows) if run_of(rows).is_some() => {
                let Some(run) = run_of(rows) else { return Err(uneven_values(1)) };
                let bind =
                    |binder: &mut Self| binder.bind_target_run(written, names, run, identity);
                let (bound, _) = self.in_new_level(Scope::default(), Clause::Values, bind)?;
                if let Some(bound) = bound {
                    return Ok(bound);
                }
                let rows = run.rows().map(|row| row.into_iter().map(AssignedValue::Expr).collect());
                let source = InsertSource::Values(rows.collect());
                self.bind_insert_source(written, names, &source, overriding)
            }
            InsertSource::Values(rows) => {
                let bind =
                    |binder: &mut Self| binder.bind_target_rows(written, names, rows, identity);
                let clause = if rows.len() == 1 { Clause::ValuesRow } else { Clause::Values };
                let ((rows, targets), level) = self.in_new_level(Scope::default(), clause, bind)?;
                let plan = values_plan(column_types(table), rows, &level);
                Ok((plan, targets))
            }
            InsertSource::Query(query) => {
                let bound = self.bind_query(query, false)?;
                let width = bound.columns.len();
                let targets = self.insert_targets(written, names, width)?;
                check_width(&targets, names, width, |index| bound.positions[index])?;
                let plan = self.insert_query(table, &targets[..width], bound, identity)?;
                Ok((plan, distinct(&targets[..width])))
            }
        }
    }

    /// Requests that the columns of an INSERT may be inserted: those that it names, or all.
    fn request_targets(&mut self, written: &UpdateTarget, names: &[TargetColumn]) -> Result<()> {
        if written.is_through_view() {
            return Ok(());
        }
        for target in self.insert_targets(written, names, 0)? {
            self.request_written(written.table.oid, INSERT, target.column);
        }
        Ok(())
    }

    /// Binds rows of values for target columns; returns full rows in table order, and the columns.
    pub(super) fn bind_target_rows(
        &mut self,
        written: &UpdateTarget,
        names: &[TargetColumn],
        rows: &[Vec<AssignedValue>],
        identity: IdentityRule,
    ) -> Result<(Vec<Vec<Expr>>, Vec<usize>)> {
        let is_expanded =
            |value: &AssignedValue| matches!(value, AssignedValue::Expr(one) if one.is_expanded());
        if rows.iter().flatten().any(is_expanded) {
            let rows = rows.iter().map(|row| self.expanded_values(row));
            let rows = rows.collect::<Result<Vec<_>>>()?;
            return self.bind_single_values(written, names, &rows, identity);
        }
        self.bind_single_values(written, names, rows, identity)
    }

    /// Binds rows without `.*`; otherwise the same as [`Binder::bind_target_rows`].
    fn bind_single_values(
        &mut self,
        written: &UpdateTarget,
        names: &[TargetColumn],
        rows: &[Vec<AssignedValue>],
        identity: IdentityRule,
    ) -> Result<(Vec<Vec<Expr>>, Vec<usize>)> {
        let table: &Table = &written.table;
        let width = rows.first().map_or(0, Vec::len);
        let mut targets = self.insert_targets(written, names, width)?;
        let first = rows.first().map_or(&[] as &[AssignedValue], Vec::as_slice);
        check_width(&targets, names, width, |index| first[index].position())?;
        targets.truncate(width);
        let rows = self.bind_insert_rows(table, &targets, rows, identity)?;
        Ok((rows, distinct(&targets)))
    }

    fn bind_insert_rows(
        &mut self,
        table: &Table,
        targets: &[InsertTarget],
        rows: &[Vec<AssignedValue>],
        identity: IdentityRule,
    ) -> Result<Vec<Vec<Expr>>> {
        // By column: the positions of its values in a row; several only if they assign parts of
        // it.
        let mut places: Vec<Vec<usize>> = vec![Vec::new(); table.columns.len()];
        for (index, target) in targets.iter().enumerate() {
            places[target.column].push(index);
            self.note_written(table, target.column);
        }
        let mut bound = Vec::with_capacity(rows.len());
        for row in rows {
            if row.len() != targets.len() {
                let position = row.first().map_or(1, AssignedValue::position);
                return Err(uneven_values(position));
            }
            let mut values = Vec::with_capacity(table.columns.len());
            for (column, places) in table.columns.iter().zip(&places) {
                if places.iter().any(|&place| targets[place].part.is_some()) {
                    let mut value = no_value(column);
                    for &place in places {
                        let Some(part) = &targets[place].part else { continue };
                        value = self.assigned_part((column, part), &row[place], value)?;
                    }
                    values.push(in_domain(column, value));
                    continue;
                }
                values.push(match places.first().map(|&place| &row[place]) {
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

    fn insert_query(
        &mut self,
        table: &Table,
        targets: &[InsertTarget],
        bound: BoundQuery,
        identity: IdentityRule,
    ) -> Result<Logical> {
        let mut to = Vec::with_capacity(targets.len());
        for (index, target) in targets.iter().enumerate() {
            let column = &table.columns[target.column];
            self.note_written(table, target.column);
            if let Some(part) = &target.part {
                to.push(self.part_type(column, part)?);
            } else {
                check_assignable(&bound, index, column)?;
                to.push(column.sql_type.clone());
            }
        }
        let positions = bound.positions.clone();
        let input = Box::new(self.convert(bound, &to, CastContext::Assignment)?);
        let mut expressions: Vec<Expr> = table.columns.iter().map(default_of).collect();
        let mut in_parts = vec![false; table.columns.len()];
        for (index, target) in targets.iter().enumerate() {
            let at = target.column;
            let column = &table.columns[at];
            if !identity.takes(column)? {
                continue;
            }
            let value = Expr::column(index, &to[index].base);
            let Some(part) = &target.part else {
                expressions[at] = value;
                continue;
            };
            let new = std::mem::replace(&mut expressions[at], no_value(column));
            let old = if in_parts[at] { new } else { no_value(column) };
            in_parts[at] = true;
            let value =
                Typed { expr: value, sql_type: to[index].clone(), position: positions[index] };
            let assign = |binder: &mut Self| binder.assign_part((column, part), value, old);
            expressions[at] = self.in_new_level(Scope::default(), Clause::Values, assign)?.0;
        }
        for (at, column) in table.columns.iter().enumerate().filter(|(at, _)| in_parts[*at]) {
            let whole = std::mem::replace(&mut expressions[at], no_value(column));
            expressions[at] = in_domain(column, whole);
        }
        Ok(Logical::Project { input, expressions })
    }
}

/// Returns the error for a statement that looks for existing rows of a view with INSTEAD OF
/// triggers.
fn no_key_of_view(what: &str) -> Error {
    let what = format!("{what} on a view with INSTEAD OF triggers");
    Error::not_supported(what, "Use ON CONFLICT in the function of the trigger.")
}

/// Returns the constant run, if it stands for all rows.
fn run_of(rows: &[Vec<AssignedValue>]) -> Option<&ConstantRun> {
    let [row] = rows else { return None };
    match row.as_slice() {
        [AssignedValue::Expr(ast::Expr::Constants(run))] => Some(run),
        _ => None,
    }
}

/// The treatment of explicit values for identity columns.
#[derive(Debug, Clone, Copy)]
pub(super) struct IdentityRule {
    /// The OVERRIDING clause.
    pub(super) overriding: Option<Overriding>,
}

impl IdentityRule {
    /// Returns whether an explicit value is used; otherwise the sequence provides the value.
    fn takes(self, column: &Column) -> Result<bool> {
        if column.generated.is_some() {
            return Err(not_default(&column.name));
        }
        match (column.identity, self.overriding) {
            (Some(_), Some(Overriding::User)) => Ok(false),
            (Some(IdentityRecord::Always), None) => {
                let name = &column.name;
                bail!(GENERATED_ALWAYS: "cannot insert a non-DEFAULT value into column \"{name}\"";
                    detail "Column \"{name}\" is an identity column defined as GENERATED ALWAYS.";
                    hint "Use OVERRIDING SYSTEM VALUE to override.")
            }
            _ => Ok(true),
        }
    }
}

/// Returns the error for an explicit value of a generated column.
pub(super) fn not_default(name: &str) -> Error {
    err!(GENERATED_ALWAYS: "cannot insert a non-DEFAULT value into column \"{name}\"";
        detail "Column \"{name}\" is a generated column.")
}

/// The target of a value of INSERT.
#[derive(Debug, Clone)]
struct InsertTarget {
    column: usize,
    /// The part of the column, unless it is the whole.
    part: Option<AssignmentPart>,
}

impl Binder<'_> {
    /// Returns the targets of `width` values.
    fn insert_targets(
        &self,
        written: &UpdateTarget,
        names: &[TargetColumn],
        width: usize,
    ) -> Result<Vec<InsertTarget>> {
        if names.is_empty() {
            let whole = |column| InsertTarget { column, part: None };
            let targets = written.all_targets(width)?;
            // Two columns of a view may map to the same column of the table.
            let given = &targets[..width.min(targets.len())];
            let repeated = |(at, column): (usize, &usize)| given[..at].contains(column);
            if let Some(at) = given.iter().enumerate().position(repeated) {
                return Err(assigned_twice(&written.table.columns[given[at]]));
            }
            return Ok(targets.into_iter().map(whole).collect());
        }
        let mut targets: Vec<InsertTarget> = Vec::with_capacity(names.len());
        for name in names {
            let part = self.target_part(written, name)?;
            let column = part.column;
            let part = Some(part).filter(|part| !part.steps.is_empty());
            let clashes = |other: &InsertTarget| {
                other.column == column && (other.part.is_none() || part.is_none())
            };
            if targets.iter().any(clashes) {
                let same_name =
                    |other: &&TargetColumn| other.column.name.value == name.column.name.value;
                if names.iter().take(targets.len()).find(same_name).is_none() {
                    return Err(assigned_twice(&written.table.columns[column]));
                }
                let column = &written.table.columns[column].name;
                bail!(DUPLICATE_COLUMN: "column \"{column}\" specified more than once"; at name.column.name.position);
            }
            targets.push(InsertTarget { column, part });
        }
        Ok(targets)
    }
}

fn assigned_twice(column: &Column) -> Error {
    err!(SYNTAX_ERROR: "multiple assignments to same column \"{}\"", column.name)
}

/// Returns the columns of targets without duplicates, in the order of their first occurrence.
fn distinct(targets: &[InsertTarget]) -> Vec<usize> {
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
    names: &[TargetColumn],
    width: usize,
    position_of: impl Fn(usize) -> usize,
) -> Result<()> {
    if width > targets.len() {
        let position = position_of(targets.len());
        bail!(SYNTAX_ERROR: "INSERT has more expressions than target columns"; at position);
    }
    if width < names.len() {
        let position = names[width].column.name.position;
        bail!(SYNTAX_ERROR: "INSERT has more target columns than expressions"; at position);
    }
    Ok(())
}

/// Checks that an assignment cast from a query's column to a target column exists.
fn check_assignable(bound: &BoundQuery, index: usize, column: &Column) -> Result<()> {
    let from = &bound.columns[index].sql_type.base;
    let to = &column.sql_type.base;
    let stored = types::cast::cast_context(from, to)
        .is_some_and(|context| context <= CastContext::Assignment);
    if *from == DataType::Unknown || from == to || stored {
        return Ok(());
    }
    bail!(DATATYPE_MISMATCH: "column \"{}\" is of type {} but expression is of type {}",
        column.name, to.sql_name(), from.sql_name(); with_type_mention to; with_type_mention from;
        hint "You will need to rewrite or cast the expression."; at bound.positions[index])
}
