//! ALTER COLUMN … TYPE. If the stored form of values does not change, no row is rewritten;
//! otherwise the rows are copied to new tables of the store, which replace the old ones as in
//! TRUNCATE.
//!
//! A copied row keeps the timestamps and TTLs of its cells, so it expires at the same time. Older
//! versions are not copied, so the history of the table restarts.

use std::sync::Arc;

use coprocessors::constraint::duplicated_key_veto;
use store::cell::CellRef;
use store::{Edit, Mutation, RowRef, Timestamp};
use types::expr::Expr;
use types::rowcode::{ColumnPlace, RowLayout};
use types::text::TextStyle;
use types::{DataType, Datum, SqlType};

use crate::ast;
use crate::ast::TableChange;
use crate::binder;
use crate::binder::TableClause;
use crate::catalog::ObjectId;
use crate::catalog::collation;
use crate::catalog::object::Object;
use crate::catalog::record::TableRecord;
use crate::catalog::table::Table;
use crate::ddl::Ddl;
use crate::ddl::alter_column::column_of;
use crate::ddl::alter_table::without_position;
use crate::ddl::column_name;
use crate::ddl::composite::refuse_own_rows;
use crate::ddl::dependency;
use crate::ddl::generated;
use crate::error::{Error, Result, sqlstate};
use crate::{ddl, relation_assembly};

/// Limits of the rows that are written in one batch.
const ROWS_AT_ONCE: usize = 1_000;
const BYTES_AT_ONCE: usize = 1 << 20;

/// A change of a column's type.
pub(super) struct TypeChange<'a> {
    column: ast::Ident,
    type_name: &'a ast::TypeName,
    /// The USING expression, over a row of the table.
    using: Option<Expr>,
}

impl Ddl<'_> {
    /// Returns the type changes of a statement, bound over the table before all of the statement's
    /// changes.
    pub(super) fn type_changes<'a>(
        &self,
        table: &Table,
        changes: &'a [TableChange],
    ) -> Result<Vec<TypeChange<'a>>> {
        let mut found: Vec<TypeChange<'a>> = Vec::new();
        for change in changes {
            let TableChange::ColumnType { column, type_name, using } = change else { continue };
            let column = column_name::of_table(table, column)?.name;
            if found.iter().any(|other| other.column.value == column.value) {
                bail!(FEATURE_NOT_SUPPORTED: "cannot alter type of column \"{}\" twice", column.value);
            }
            let using = using.as_ref();
            let using = using.map(|using| self.bound_using(table, (&column, type_name), using));
            found.push(TypeChange { column, type_name, using: using.transpose()? });
        }
        Ok(found)
    }

    fn bound_using(
        &self,
        table: &Table,
        (column, type_name): (&ast::Ident, &ast::TypeName),
        using: &ast::SourceExpr,
    ) -> Result<Expr> {
        let position = column_of(table, column)?;
        self.refuse_coprocessors(table, "ALTER COLUMN TYPE")?;
        generated::refuse_using(table, position, true)?;
        let catalog = self.changes.catalog(self.engine);
        let to = catalog.type_named(type_name, &self.path).map_err(without_position)?;
        let record = self.record_of(&catalog, table)?;
        let columns = catalog.columns_of(&record.columns)?;
        let families = record.family_names().into();
        let bound = binder::bind_table_expression(
            TableClause::Transform,
            &using.expr,
            &columns,
            Some(to.clone()),
            self.names(&catalog).with_families(&families),
        );
        let shown = || catalog.shown_type_of(&to, &self.path);
        bound.map_err(|error| cannot_cast(error, &column.value, &shown(), true))
    }

    /// Changes the types of columns: the new values of a row are all computed from the old ones.
    /// The table's lock must be held.
    pub(super) fn change_column_types(
        &mut self,
        oid: u32,
        changes: &[TypeChange<'_>],
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(oid).cloned().filter(|_| !changes.is_empty()) else {
            return Ok(());
        };
        let mut record = TableRecord::clone(self.record_of(&catalog, &table)?.as_ref());
        self.refuse_stored_rows(&catalog, &table)?;
        let mut values: Vec<(usize, Expr)> = Vec::new();
        for change in changes {
            values.extend(self.change_type(&table, &mut record, change)?);
        }
        record.schema_version += 1;
        if values.is_empty() {
            return self.store_changed(&table, record);
        }
        let eval = self.eval.clone();
        self.rewrite(&table, record, &mut |row| {
            let new = values.iter().map(|(_, value)| value.eval_row(row, &eval));
            let new = new.collect::<types::Result<Vec<Datum>>>()?;
            for ((position, _), value) in values.iter().zip(new) {
                row[*position] = value;
            }
            Ok(())
        })
    }

    /// Changes the type of a column in the record of its table. If values must be converted,
    /// returns the position and the conversion over the row.
    fn change_type(
        &mut self,
        table: &Table,
        record: &mut TableRecord,
        change: &TypeChange<'_>,
    ) -> Result<Option<(usize, Expr)>> {
        let TypeChange { column, type_name, using } = change;
        let position = column_of(table, column)?;
        self.refuse_coprocessors(table, "ALTER COLUMN TYPE")?;
        let catalog = self.changes.catalog(self.engine);
        let to = catalog.type_named(type_name, &self.path).map_err(without_position)?;
        if table.columns[position].identity.is_some() {
            self.change_identity_type(table, position, &to)?;
        }
        let from = &table.columns[position].sql_type;
        let shown = catalog.shown_type_of(&to, &self.path);
        let value = match using {
            Some(using) => using.clone(),
            None => {
                let columns = catalog.columns_of(&self.record_of(&catalog, table)?.columns)?;
                let name = crate::parser::quoted(&column.value);
                let made = record.columns[position].generated.as_ref();
                let cast = made.unwrap_or(&name);
                let value =
                    relation_assembly::expression(&catalog, cast, &columns, Some(to.clone()));
                value.map_err(|error| cannot_cast(error, &column.value, &shown, false))?
            }
        };
        if let Some(default) = &record.columns[position].default
            && relation_assembly::expression(&catalog, default, &[], Some(to.clone())).is_err()
        {
            let column = &column.value;
            bail!(DATATYPE_MISMATCH: "default for column \"{column}\" cannot be cast automatically to type {shown}");
        }
        generated::refuse_type(table, position)?;
        refuse_own_rows(&catalog, &to, (table.oid, &table.name))?;
        self.refuse_views(table, position, &column.value)?;
        let is_column = matches!(value, Expr::Column { index, .. } if index == position);
        let is_same = *from == to && is_column;
        if !is_same && (using.is_some() || !keeps_references(from, &to)) {
            self.refuse_type_of_key(table, position)?;
        }
        let column = &mut record.columns[position];
        (column.type_oid, column.modifier) = to.stored_oid_and_modifier();
        column.collation = collation::written(type_name, &to)?;
        let is_stored = is_same || (using.is_none() && is_binary_compatible(from, &to));
        Ok((!is_stored).then_some((position, value)))
    }

    /// Rewrites the rows of a table, each transformed by `change`. Constraints that are not
    /// validated are not checked for these rows.
    pub(super) fn rewrite(
        &mut self,
        table: &Table,
        mut record: TableRecord,
        change: &mut dyn FnMut(&mut Vec<Datum>) -> Result<()>,
    ) -> Result<()> {
        // All rewritten rows contain all columns.
        record.columns.iter_mut().for_each(|column| column.missing = None);
        for family in &mut Arc::make_mut(&mut record.descriptor).families {
            // No row of an older schema version remains.
            family.value_layout = Arc::default();
        }
        let catalog = self.changes.catalog(self.engine);
        let layout = relation_assembly::base_layout(&catalog, &record)?;
        ddl::create_table::set_value_layouts(&mut record, &layout)?;
        let checks = record.checks.clone();
        record.checks.retain(|check| check.valid);
        // The rewritten rows are counted again.
        self.empty_views(table)?;
        self.store_emptied(table, record)?;
        let catalog = self.changes.catalog(self.engine);
        let Some(now) = catalog.table(table.oid).cloned() else { return Ok(()) };
        self.copy_rows(table, &now, change)?;
        if checks.iter().all(|check| check.valid) {
            return Ok(());
        }
        let record = TableRecord::clone(self.record_of(&catalog, &now)?.as_ref());
        self.store_changed(&now, TableRecord { checks, ..record })
    }

    /// Copies the rows of a table into its replacement, each transformed by `change`.
    fn copy_rows(
        &mut self,
        table: &Table,
        now: &Table,
        change: &mut dyn FnMut(&mut Vec<Datum>) -> Result<()>,
    ) -> Result<()> {
        let (transaction, row_ids) = (self.transaction, &self.engine.row_ids);
        let mut had_rows = self.engine.store().row_estimate(table.id)?.rows > 0;
        let eval = &self.eval.clone();
        let mut numbers = 0..0;
        let (mut rows, mut byte_count) = (Vec::<Mutation>::new(), 0);
        let layout = &now.layout;
        self.each_stored_row(table, &mut |row, stored| {
            let mut row = row.to_vec();
            had_rows = true;
            change(&mut row)?;
            // The new table of the store has its own row id counter.
            if let Some(at) = now.row_id_column() {
                if numbers.is_empty() {
                    numbers = row_ids.take(now.id, ROWS_AT_ONCE as u64)?;
                }
                row[at] = Datum::Int8(numbers.next().unwrap_or_default() as i64);
            }
            let mutation = copied(layout, &row, stored)?;
            byte_count += mutation.byte_count();
            rows.push(mutation);
            if rows.len() >= ROWS_AT_ONCE || byte_count >= BYTES_AT_ONCE {
                let rows = std::mem::take(&mut rows);
                byte_count = 0;
                let written = transaction.mutate_with(now.id, rows, eval);
                written.map_err(|error| duplicated(error, now, &eval.style))?;
            }
            Ok(())
        })?;
        let written = self.transaction.mutate_with(now.id, rows, eval);
        written.map_err(|error| duplicated(error, now, &eval.style))?;
        if had_rows {
            self.note_end_of_history(&table.name);
        }
        Ok(())
    }

    fn refuse_views(&self, table: &Table, position: usize, column: &str) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let object = Object::Column(table.oid, position);
        let going = dependency::dropped_objects(
            &catalog,
            self.system.as_ref(),
            std::slice::from_ref(&object),
        );
        // A materialized view is a table here.
        let is_view = |one: &&Object| match one {
            Object::Whole(ObjectId::View(_)) => true,
            Object::Whole(ObjectId::Table(other)) => *other != table.oid,
            _ => false,
        };
        let mut users = going.iter().rev().map(|one| &one.object);
        if let Some(function) =
            users.clone().find(|one| matches!(one, Object::Whole(ObjectId::Function(_))))
        {
            let function = function.describe(&catalog, &self.path);
            bail!(FEATURE_NOT_SUPPORTED: "cannot alter type of a column used by a function or procedure";
                detail "{function} depends on column \"{column}\"");
        }
        if let Some(policy) = users.clone().find(|one| matches!(one, Object::Policy(..))) {
            let policy = policy.describe(&catalog, &self.path);
            bail!(FEATURE_NOT_SUPPORTED: "cannot alter type of a column used in a policy definition";
                detail "{policy} depends on column \"{column}\"");
        }
        let Some(view) = users.find(is_view) else { return Ok(()) };
        let view = view.describe(&catalog, &self.path);
        bail!(FEATURE_NOT_SUPPORTED: "cannot alter type of a column used by a view or rule";
            detail "rule _RETURN on {view} depends on column \"{column}\"")
    }
}

/// Returns the mutation that copies a row to a new table, with the timestamps and TTLs of its
/// cells, those of dynamic columns included. An expired cell stays expired, unless one of its
/// columns has a value now.
fn copied(layout: &RowLayout, row: &[Datum], stored: &RowRef<'_>) -> Result<Mutation> {
    let mut mutation = Mutation::new(layout.encode_key(row)?).expect_absent();
    for cell in (0..layout.cell_count()).filter(|&cell| layout.is_stored(cell)) {
        let family = layout.family_of_cell(cell) as u8;
        let qualifier = layout.qualifier_of_cell(cell);
        let before = stored.cells().find(|one| one.family == family && one.qualifier == qualifier);
        let is_packed = |place: &ColumnPlace| matches!(place, ColumnPlace::Packed { cell: of, .. } if *of == cell);
        let mut columns = layout.columns.iter().zip(row).filter(|(one, _)| is_packed(&one.place));
        if before.is_none() && columns.all(|(_, value)| value.is_null()) {
            continue;
        }
        mutation = mutation.with(Edit::Put {
            family,
            qualifier: qualifier.to_vec(),
            // Cells written by the transaction itself get its commit timestamp.
            timestamp: before
                .as_ref()
                .map(|one| one.timestamp)
                .filter(|&at| at != Timestamp::LATEST),
            value: layout.pack(cell, row)?,
            ttl: before.and_then(|one| one.ttl),
        });
    }
    let is_undeclared =
        |cell: &CellRef<'_>| layout.cell_named(usize::from(cell.family), cell.qualifier).is_none();
    for cell in stored.cells().filter(is_undeclared) {
        mutation = mutation.with(Edit::Put {
            family: cell.family,
            qualifier: cell.qualifier.to_vec(),
            timestamp: Some(cell.timestamp).filter(|&at| at != Timestamp::LATEST),
            value: cell.value.to_vec(),
            ttl: cell.ttl,
        });
    }
    Ok(mutation)
}

/// Returns the error of a write to a table; for an existing row, a unique violation of the primary
/// key.
fn duplicated(error: store::Error, table: &Table, style: &TextStyle) -> Error {
    match error {
        store::Error::RowExists { table: stored, row, puts } if stored == table.id => {
            let veto = duplicated_key_veto(&table.constraints, (&row, &puts), style);
            store::Error::Vetoed(Box::new(veto)).into()
        }
        error => error.into(),
    }
}

/// Returns whether every value of a type is also one of another, with the same stored form.
fn is_binary_compatible(from: &SqlType, to: &SqlType) -> bool {
    let text = |base: &DataType| matches!(base, DataType::Text | DataType::Varchar);
    if to.domain.is_some() && to.domain != from.domain {
        return false;
    }
    if text(&from.base) && text(&to.base) {
        return to.modifier < 0 || (from.modifier >= 0 && from.modifier <= to.modifier);
    }
    from.base == to.base && (to.modifier < 0 || from.modifier == to.modifier)
}

/// Returns whether foreign keys remain valid when values are converted by a plain cast, so that
/// rows need no check.
fn keeps_references(from: &SqlType, to: &SqlType) -> bool {
    let is_integer = |one: &SqlType| {
        one.domain.is_none() && matches!(one.base, DataType::Int2 | DataType::Int4 | DataType::Int8)
    };
    is_binary_compatible(from, to) || (is_integer(from) && is_integer(to))
}

fn cannot_cast(error: Error, column: &str, to: &str, using: bool) -> Error {
    if error.sqlstate.as_ref() != sqlstate::DATATYPE_MISMATCH {
        return error;
    }
    let what = format!("column \"{column}\"");
    let (what, hint) = match using {
        true => (
            format!("result of USING clause for {what}"),
            "You might need to add an explicit cast.".to_owned(),
        ),
        false => {
            let name = crate::parser::quoted(column);
            (what, format!("You might need to specify \"USING {name}::{to}\"."))
        }
    };
    err!(DATATYPE_MISMATCH: "{what} cannot be cast automatically to type {to}"; hint hint)
}
