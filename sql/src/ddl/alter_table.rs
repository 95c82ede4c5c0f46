//! ALTER TABLE of columns and constraints: the changes of a statement, in PostgreSQL's order of
//! passes.
//!
//! Drops come first, then types, new column families, new columns, new constraints, then attributes
//! of columns. The table is locked in the mode that the changes need from the start, mostly
//! exclusively, so that checks of its rows remain valid.

use std::sync::Arc;

use store::TableId;
use store::transaction::TableLockMode;
use types::{DataType, Datum};

use crate::ast;
use crate::ast::TableAttribute;
use crate::ast::{ConstraintKind, OptionsChange, TableChange, TableConstraint, TriggerFiring};
use crate::binder;
use crate::binder::TableClause;
use crate::catalog::CatalogRelation;
use crate::catalog::comment::CommentSubjectKey;
use crate::catalog::object::Object;
use crate::catalog::record::{CheckRecord, TableRecord};
use crate::catalog::table::Table;
use crate::ddl::alter_column::{column_of, drop_not_null, family_of, refuse_system_column};
use crate::ddl::composite::refuse_own_rows;
use crate::ddl::create_table::set_value_layouts;
use crate::ddl::ignored_attributes::set_column_attribute;
use crate::ddl::key_constraint::index_of_constraint;
use crate::ddl::user_type::stored_text;
use crate::ddl::{Ddl, column_name, foreign_key, name};
use crate::error::{Error, Result, sqlstate};
use crate::relation_assembly;

impl Ddl<'_> {
    /// Changes columns and constraints of a table. With IF EXISTS, a missing table is only a
    /// notice.
    pub fn alter_columns(
        &mut self,
        statement: &ast::AlterTable,
        changes: &[TableChange],
    ) -> Result<()> {
        let catalog = self.catalog();
        if let Some(CatalogRelation::View(view)) = self.find(&catalog, &statement.name) {
            return self.alter_view(view, statement, changes);
        }
        let found = self.find(&catalog, &statement.name);
        // RENAME COLUMN is allowed for any kind of relation.
        let is_renaming = matches!(changes, [TableChange::RenameColumn { .. }]);
        if statement.kind == ast::ObjectKind::View && found.is_some() && !is_renaming {
            bail!(WRONG_OBJECT_TYPE: "\"{}\" is not a view", statement.name.name.value);
        }
        let table = match self.table(&catalog, &statement.name) {
            Err(error) if error.sqlstate.as_ref() == sqlstate::UNDEFINED_TABLE => {
                return self.missing_object(error, statement.if_exists);
            }
            found => found?,
        };
        let mode = changes.iter().map(lock_mode).max();
        let mode = mode.unwrap_or(TableLockMode::AccessExclusive);
        self.lock_table(table.id, mode)?;
        check_kind(&table, statement, changes)?;
        self.refuse_pending(&table, "ALTER TABLE")?;
        // USING refers to the table before the changes, including columns that are dropped.
        let types = self.type_changes(&table, changes)?;
        let mut changes: Vec<&TableChange> = changes.iter().collect();
        changes.sort_by_key(|change| pass(change));
        let behind_types = changes.iter().position(|change| pass(change) > PASS_OF_TYPES);
        let later = changes.split_off(behind_types.unwrap_or(changes.len()));
        let earlier = changes.into_iter().filter(|change| pass(change) < PASS_OF_TYPES);
        earlier.into_iter().try_for_each(|change| self.change_table(table.oid, change))?;
        self.change_column_types(table.oid, &types)?;
        later.into_iter().try_for_each(|change| self.change_table(table.oid, change))
    }

    #[expect(clippy::too_many_lines, reason = "one arm for each change")]
    fn change_table(&mut self, oid: u32, change: &TableChange) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(oid).cloned() else { return Ok(()) };
        let mut record = TableRecord::clone(self.record_of(&catalog, &table)?.as_ref());
        let change = &match column_name::in_change(&table, change) {
            Err(error) => {
                let if_exists = matches!(change, TableChange::DropColumn { if_exists: true, .. });
                let is_missing = error.sqlstate.as_ref() == sqlstate::UNDEFINED_COLUMN;
                return self.missing_object(error, if_exists && is_missing);
            }
            Ok(change) => change,
        };
        if changes_rows(change) {
            self.refuse_stored_rows(&catalog, &table)?;
        }
        match change {
            TableChange::AddColumn { column, .. }
                if self.is_phoenix_compatible() && is_in_new_family(&record, column) =>
            {
                if let Some(family) = &column.name.family {
                    self.add_family(&table, record, (family, &[], false))?;
                }
                return self.change_table(oid, change);
            }
            TableChange::AddColumn { if_not_exists, column, constraints } => {
                return self.add_column_to(&table, record, column, (*if_not_exists, constraints));
            }
            TableChange::DropColumn { if_exists, column, cascade } => {
                return self.drop_column(oid, &column.name, (*if_exists, *cascade));
            }
            TableChange::AddFamily { if_not_exists, family, options } => {
                return self.add_family(&table, record, (family, options, *if_not_exists));
            }
            TableChange::DropFamily { if_exists, family, cascade } => {
                return self.drop_family(&table, record, (family, *if_exists, *cascade));
            }
            TableChange::RenameColumn { column, to } => {
                self.rename_column(&table, &mut record, &column.name, to)?;
                if let Some(view) = catalog.view(oid) {
                    self.rename_view_column(view, &column.name.value, &to.value)?;
                }
            }
            // All type changes of a statement are applied together.
            TableChange::ColumnType { .. } => return Ok(()),
            TableChange::ColumnDefault { column, default } => {
                self.set_default(&table, &mut record, &column.name, default.as_ref())?;
            }
            TableChange::DropExpression { if_exists, column } => {
                let dropped =
                    self.drop_expression(&table, &mut record, &column.name, *if_exists)?;
                if !dropped {
                    return Ok(());
                }
            }
            TableChange::AddIdentity { column, identity } => {
                self.add_identity(&table, &mut record, (&column.name, identity))?;
            }
            TableChange::AlterIdentity { column, kind, options } => {
                self.alter_identity(&table, &mut record, (&column.name, *kind, options))?;
            }
            TableChange::DropIdentity { if_exists, column } => {
                if self.drop_identity(&table, &mut record, (&column.name, *if_exists))? {
                    self.store_changed(&table, record)?;
                    self.drop_own_sequence(&table, &column.name)?;
                }
                return Ok(());
            }
            TableChange::ColumnAttribute { column, attribute } => {
                let position = column_of(&table, &column.name)?;
                set_column_attribute(&table, &mut record, (position, attribute))?;
            }
            TableChange::TableAttribute(attribute) => {
                self.set_table_attribute(&table, &mut record, attribute)?;
            }
            TableChange::SetNotNull(column) => {
                self.set_not_null(&table, &mut record, &column.name)?;
            }
            TableChange::DropNotNull(column) => {
                drop_not_null(&table, &mut record, &column.name)?;
            }
            TableChange::AddConstraint(constraint) => {
                return self.add_constraint(oid, constraint);
            }
            TableChange::AddIndexConstraint { name, index, is_primary, deferral } => {
                let kind = (*is_primary, *deferral);
                return self.add_index_constraint(&table, (name.as_ref(), index), kind);
            }
            TableChange::SetOptions(options) => {
                return self.alter_table_options(&table, &OptionsChange::Set(options.clone()));
            }
            TableChange::ValidateConstraint(name) => {
                if !self.validate(&table, &mut record, &name.value)? {
                    return Ok(());
                }
            }
            TableChange::AlterConstraint { constraint, deferral } => {
                set_deferral(&table, &mut record, &constraint.value, *deferral)?;
            }
            TableChange::RenameConstraint { constraint, to } => {
                self.rename_constraint(&table, &mut record, (constraint, to))?;
            }
            TableChange::DropConstraint { if_exists, constraint, cascade } => {
                return self.drop_constraint(&table, constraint, (*if_exists, *cascade));
            }
        }
        self.store_changed(&table, record)
    }

    fn rename_constraint(
        &mut self,
        table: &Table,
        record: &mut TableRecord,
        (constraint, to): (&ast::Ident, &ast::Ident),
    ) -> Result<()> {
        rename_constraint(table, record, constraint, to)?;
        let key = |name: &ast::Ident| CommentSubjectKey::Constraint(table.oid, name.value.clone());
        self.move_comment(key(constraint), key(to))?;
        let catalog = self.changes.catalog(self.engine);
        let taken = catalog.relation(&table.schema, &to.value).is_some();
        let is_index = record.indexes.iter().any(|index| index.name == to.value);
        if taken && (is_index || record.primary_key_name == to.value) {
            bail!(DUPLICATE_TABLE: "relation \"{}\" already exists", to.value);
        }
        Ok(())
    }

    /// Validates a constraint on all rows of a table; returns false if the record does not change.
    fn validate(&mut self, table: &Table, record: &mut TableRecord, name: &str) -> Result<bool> {
        if record.foreign_keys.iter().any(|key| key.name == name) {
            let keys = record.foreign_keys.iter_mut();
            for key in keys.filter(|key| key.name == name && !key.valid) {
                // New references have been checked since the constraint was added.
                self.check_references(table, key, TableLockMode::RowShare)?;
                key.valid = true;
            }
            return Ok(true);
        }
        let Some(at) = record.checks.iter().position(|one| one.name == name) else {
            return Err(no_constraint(table, name, "of relation"));
        };
        if record.checks[at].valid {
            return Ok(false);
        }
        self.check_rows(table, &record.checks[at])?;
        record.checks[at].valid = true;
        Ok(true)
    }

    /// Adds a column with its constraints. With IF NOT EXISTS, an existing column is only a
    /// notice.
    fn add_column_to(
        &mut self,
        table: &Table,
        mut record: TableRecord,
        column: &ast::ColumnDefinition,
        (if_not_exists, constraints): (bool, &[TableConstraint]),
    ) -> Result<()> {
        let family = &record.descriptor.families[usize::from(family_of(&record, column)?)].name;
        let exists = table.column_in_family(family, &column.name.name.value).is_some();
        let mut column = column.clone();
        column.name.name.value = table.name_of_added(&column.name);
        let column = &column;
        let (column_name, name) = (&column.name.name.value, &table.name);
        if exists || table.column_index(column_name).is_some() {
            let message = format!("column \"{column_name}\" of relation \"{name}\" already exists");
            if if_not_exists {
                self.add_notice(sqlstate::DUPLICATE_COLUMN, format!("{message}, skipping"));
                return Ok(());
            }
            bail!(DUPLICATE_COLUMN: message);
        }
        refuse_system_column(column_name)?;
        let catalog = self.changes.catalog(self.engine);
        if let Ok(sql_type) = catalog.type_named(&column.type_name, &self.path) {
            refuse_own_rows(&catalog, &sql_type, (table.oid, name))?;
        }
        match self.add_column(table, &mut record, column)? {
            None => self.store_changed(table, record)?,
            Some(filling) => self.fill_column(table, record, &filling)?,
        }
        constraints.iter().try_for_each(|one| self.add_constraint(table.oid, one))
    }

    /// Drops a constraint, with dependent foreign keys.
    fn drop_constraint(
        &mut self,
        table: &Table,
        constraint: &ast::Ident,
        (if_exists, cascade): (bool, bool),
    ) -> Result<()> {
        let name = &constraint.value;
        let is_primary = *name == table.primary_key_name;
        let is_check = table.constraints.checks.iter().any(|check| check.name == *name);
        let is_key = table.foreign_keys.iter().any(|key| key.name == *name);
        let is_index = table.indexes.iter().any(|one| one.constraint && one.name == *name);
        if let Some(key) = table.foreign_keys.iter().find(|key| key.name == *name) {
            let catalog = self.changes.catalog(self.engine);
            if let Some(referenced) = catalog.table(key.table) {
                self.refuse_pending(referenced, "ALTER TABLE")?;
            }
        }
        if is_primary || is_check || is_key || is_index {
            return self.drop_objects(&[Object::Constraint(table.oid, name.clone())], cascade);
        }
        self.missing_object(no_constraint(table, name, "of relation"), if_exists)
    }

    /// Stores the changed record of a table.
    pub(super) fn store_changed(&mut self, table: &Table, mut record: TableRecord) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        if record.schema_version != table.layout.schema_version {
            let layout = relation_assembly::base_layout(&catalog, &record)?;
            set_value_layouts(&mut record, &layout)?;
            self.changes.altered.push(table.oid);
        }
        let changed = relation_assembly::table(&catalog, &record, Arc::clone(&table.coprocessors))?;
        self.lock_observed_table(table.oid)?;
        self.store_record(&catalog, changed, record)
    }

    pub(super) fn add_constraint(&mut self, oid: u32, constraint: &TableConstraint) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(oid).cloned() else { return Ok(()) };
        let mut record = TableRecord::clone(self.record_of(&catalog, &table)?.as_ref());
        let constraint = &column_name::in_constraint_of(&record, constraint)?;
        match &constraint.kind {
            ConstraintKind::PrimaryKey(key) => {
                self.add_primary_key(&table, record, (constraint, key))
            }
            ConstraintKind::Unique(key) => self.add_unique(&table, record, (constraint, key)),
            ConstraintKind::Check(predicate) => {
                let names = catalog.columns_of(&record.columns)?;
                let families = record.family_names().into();
                let context = self.names(&catalog).with_families(&families);
                let target = Some(DataType::Bool.into());
                let bound = binder::bind_table_expression(
                    TableClause::Check,
                    &predicate.expr,
                    &names,
                    target.clone(),
                    context,
                )
                .map_err(without_position)?;
                let taken = |name: &str| foreign_key::has_constraint(&record, name);
                let name = match &constraint.name {
                    Some(name) => name.value.clone(),
                    None => {
                        let used = bound.columns();
                        let known: Vec<&str> =
                            used.iter().map(|column| names[*column].0.as_str()).collect();
                        name::check(&table.name, &known).free(|name| {
                            taken(name) || name::is_constraint(&catalog, &table.schema, name)
                        })
                    }
                };
                if taken(&name) {
                    return Err(foreign_key::duplicate(&record, &name));
                }
                let predicate = stored_text(context, &predicate.text, &names, target)?;
                let check = CheckRecord {
                    name,
                    predicate,
                    valid: !constraint.not_valid,
                    unknown: Default::default(),
                };
                if check.valid {
                    self.check_rows(&table, &check)?;
                }
                record.checks.push(check);
                self.store_changed(&table, record)
            }
            ConstraintKind::ForeignKey(key) => {
                self.add_foreign_key(&table, record, (key, constraint))
            }
        }
    }

    /// Adds the index of a constraint, and builds it. The table's lock must be held.
    pub(super) fn add_unique(
        &mut self,
        table: &Arc<Table>,
        mut record: TableRecord,
        key: (&TableConstraint, &ast::UniqueKey),
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let id = TableId(self.take_ids(1)?);
        let taken = name::NamesInUse::of(&catalog, &record.schema);
        let index = index_of_constraint((&record, &taken), key, &mut || Ok(id))?;
        record.indexes.push(index);
        let at = record.indexes.len() - 1;
        self.build_index(&catalog, table, record, at)
    }

    /// Checks that the rows of a table satisfy a CHECK constraint.
    fn check_rows(&mut self, table: &Table, check: &CheckRecord) -> Result<()> {
        let names: Vec<_> = table
            .columns
            .iter()
            .map(|column| (column.name.clone(), column.sql_type.clone()))
            .collect();
        let catalog = self.changes.catalog(self.engine);
        let target = Some(DataType::Bool.into());
        let predicate = relation_assembly::expression(&catalog, &check.predicate, &names, target)?;
        let eval = self.eval.clone();
        self.each_row(table, &mut |row| match predicate.eval_row(row, &eval)? {
            Datum::Bool(false) => {
                let (check, schema, table) = (&check.name, &table.schema, &table.name);
                bail!(CHECK_VIOLATION: "check constraint \"{check}\" of relation \"{table}\" is violated by some row";
                    of_table schema, table; of_constraint check)
            }
            _ => Ok(()),
        })
    }
}

/// Removes the position of an error, which PostgreSQL does not report for expressions in ALTER
/// TABLE.
pub(super) fn without_position(error: Error) -> Error {
    Error { position: None, ..error }
}

/// Rejects changes of a materialized view other than new column names and attributes.
fn check_kind(table: &Table, statement: &ast::AlterTable, changes: &[TableChange]) -> Result<()> {
    let name = &statement.name.name.value;
    let allowed = |change: &&TableChange| {
        !matches!(change, TableChange::TableAttribute(TableAttribute::RowSecurity(_)))
            && matches!(
                change,
                TableChange::RenameColumn { .. }
                    | TableChange::ColumnAttribute { .. }
                    | TableChange::TableAttribute(_)
            )
    };
    let refused = changes.iter().find(|change| !allowed(change));
    let Some(refused) = refused.filter(|_| table.is_materialized()) else { return Ok(()) };
    if let TableChange::RenameConstraint { constraint, .. } = refused {
        return Err(no_constraint(table, &constraint.value, "for table"));
    }
    Err(refused_action(refused, name, "materialized views"))
}

/// Returns the error for a change that a kind of relation does not support.
pub(super) fn refused_action(change: &TableChange, name: &str, kinds: &str) -> Error {
    let action = action_of(change);
    err!(WRONG_OBJECT_TYPE: "ALTER action {action} cannot be performed on relation \"{name}\"";
        detail "This operation is not supported for {kinds}.")
}

/// Returns the name of a change in messages.
fn action_of(change: &TableChange) -> &'static str {
    match change {
        TableChange::AddColumn { .. } => "ADD COLUMN",
        TableChange::DropColumn { .. } => "DROP COLUMN",
        TableChange::AddFamily { .. } => "ADD FAMILY",
        TableChange::DropFamily { .. } => "DROP FAMILY",
        TableChange::RenameColumn { .. } => "RENAME COLUMN",
        TableChange::ColumnType { .. } => "ALTER COLUMN ... SET DATA TYPE",
        TableChange::ColumnDefault { default: Some(_), .. } => "ALTER COLUMN ... SET DEFAULT",
        TableChange::ColumnDefault { default: None, .. } => "ALTER COLUMN ... DROP DEFAULT",
        TableChange::DropExpression { .. } => "ALTER COLUMN ... DROP EXPRESSION",
        TableChange::AddIdentity { .. } => "ALTER COLUMN ... ADD IDENTITY",
        TableChange::AlterIdentity { .. } => "ALTER COLUMN ... SET",
        TableChange::DropIdentity { .. } => "ALTER COLUMN ... DROP IDENTITY",
        TableChange::ColumnAttribute { .. } => "ALTER COLUMN ... SET",
        TableChange::TableAttribute(TableAttribute::RowSecurity(change)) => change.name(),
        TableChange::TableAttribute(TableAttribute::Triggers(_, firing)) => match firing {
            TriggerFiring::Origin => "ENABLE TRIGGER",
            TriggerFiring::Disabled => "DISABLE TRIGGER",
            TriggerFiring::Replica => "ENABLE REPLICA TRIGGER",
            TriggerFiring::Always => "ENABLE ALWAYS TRIGGER",
        },
        TableChange::TableAttribute(_) => "SET",
        TableChange::SetNotNull(_) => "ALTER COLUMN ... SET NOT NULL",
        TableChange::DropNotNull(_) => "ALTER COLUMN ... DROP NOT NULL",
        TableChange::AddConstraint(_) => "ADD CONSTRAINT",
        TableChange::AddIndexConstraint { .. } => "ADD CONSTRAINT",
        TableChange::AlterConstraint { .. } => "ALTER CONSTRAINT",
        TableChange::SetOptions(_) => "SET",
        TableChange::ValidateConstraint(_) => "VALIDATE CONSTRAINT",
        TableChange::RenameConstraint { .. } => "RENAME CONSTRAINT",
        TableChange::DropConstraint { .. } => "DROP CONSTRAINT",
    }
}

/// Returns whether a column is in a family that the table does not have.
fn is_in_new_family(record: &TableRecord, column: &ast::ColumnDefinition) -> bool {
    let families = &record.descriptor.families;
    column.name.family.as_ref().is_some_and(|family| {
        !families.iter().any(|known| known.name.eq_ignore_ascii_case(&family.value))
    })
}

/// Returns whether a change modifies values in rows.
fn changes_rows(change: &TableChange) -> bool {
    match change {
        TableChange::AddColumn { column, .. } => {
            column.default.is_some() || column.generated.is_some()
        }
        _ => false,
    }
}

/// The pass of type changes.
const PASS_OF_TYPES: u8 = 1;

/// Returns the pass of a change, as in PostgreSQL.
fn pass(change: &TableChange) -> u8 {
    match change {
        TableChange::DropColumn { .. }
        | TableChange::DropConstraint { .. }
        | TableChange::DropExpression { .. }
        | TableChange::DropIdentity { .. }
        | TableChange::DropNotNull(_)
        | TableChange::DropFamily { .. } => 0,
        TableChange::ColumnType { .. } => PASS_OF_TYPES,
        TableChange::AddFamily { .. } => 2,
        TableChange::AddColumn { .. } => 3,
        TableChange::SetNotNull(_) => 4,
        TableChange::ColumnDefault { default, .. } => {
            if default.is_some() {
                5
            } else {
                0
            }
        }
        TableChange::AddIdentity { .. } => 5,
        TableChange::AddConstraint(_) | TableChange::AddIndexConstraint { .. } => 6,
        TableChange::RenameColumn { .. }
        | TableChange::RenameConstraint { .. }
        | TableChange::AlterConstraint { .. }
        | TableChange::AlterIdentity { .. }
        | TableChange::ColumnAttribute { .. }
        | TableChange::TableAttribute(_)
        | TableChange::SetOptions(_)
        | TableChange::ValidateConstraint(_) => 7,
    }
}

fn rename_constraint(
    table: &Table,
    record: &mut TableRecord,
    constraint: &ast::Ident,
    to: &ast::Ident,
) -> Result<()> {
    let (old, new) = (&constraint.value, &to.value);
    let known = (!old.is_empty() && *old == record.primary_key_name)
        || record.checks.iter().any(|check| check.name == *old)
        || record.foreign_keys.iter().any(|key| key.name == *old)
        || record.indexes.iter().any(|index| index.constraint && index.name == *old);
    if !known {
        return Err(no_constraint(table, old, "for table"));
    }
    if foreign_key::has_constraint(record, new) {
        return Err(foreign_key::duplicate(record, new));
    }
    if !old.is_empty() && *old == record.primary_key_name {
        record.primary_key_name.clone_from(new);
    } else if let Some(check) = record.checks.iter_mut().find(|check| check.name == *old) {
        check.name.clone_from(new);
    } else if let Some(key) = record.foreign_keys.iter_mut().find(|key| key.name == *old) {
        key.name.clone_from(new);
    } else if let Some(index) =
        record.indexes.iter_mut().find(|index| index.constraint && index.name == *old)
    {
        index.name.clone_from(new);
        Arc::make_mut(&mut index.descriptor).name.clone_from(new);
    }
    Ok(())
}

/// Sets the deferral mode of a foreign key.
fn set_deferral(
    table: &Table,
    record: &mut TableRecord,
    name: &str,
    deferral: ast::Deferral,
) -> Result<()> {
    let mut keys = record.foreign_keys.iter_mut();
    let key = keys.find(|key| key.name == name).ok_or_else(|| no_foreign_key(table, name))?;
    key.deferral = deferral;
    Ok(())
}

/// Returns the error for a constraint that is not a foreign key.
fn no_foreign_key(table: &Table, name: &str) -> Error {
    let other = table.primary_key_name == name
        || table.constraints.checks.iter().any(|check| check.name == name)
        || table.indexes.iter().any(|index| index.constraint && index.name == name);
    if !other {
        return no_constraint(table, name, "of relation");
    }
    err!(WRONG_OBJECT_TYPE: "constraint \"{name}\" of relation \"{}\" is not a foreign key constraint", table.name)
}

fn no_constraint(table: &Table, name: &str, of: &str) -> Error {
    err!(UNDEFINED_OBJECT: "constraint \"{name}\" {of} \"{}\" does not exist", table.name)
}

/// Returns the lock mode of a change.
fn lock_mode(change: &TableChange) -> TableLockMode {
    match change {
        TableChange::ValidateConstraint(_)
        | TableChange::AddFamily { .. }
        | TableChange::DropFamily { cascade: false, .. } => TableLockMode::ShareUpdateExclusive,
        TableChange::AddConstraint(constraint)
            if matches!(constraint.kind, ConstraintKind::ForeignKey(_)) =>
        {
            TableLockMode::ShareRowExclusive
        }
        _ => TableLockMode::AccessExclusive,
    }
}
