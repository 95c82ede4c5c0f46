//! CREATE, ALTER and DROP TYPE of enums.

use std::sync::Arc;

use store::Mutation;
use store::transaction::LockMode;
use types::enumeration::rank_between;

use crate::assemble;
use crate::ast::{self, AlterTypeAction, LabelPlace, TypeStatement};
use crate::catalog::Catalog;
use crate::catalog::enumeration::{EnumRecord, LabelRecord, enum_key};
use crate::catalog::name::PUBLIC;
use crate::catalog::record::{CATALOG_TABLE, TableRecord, encode, view_key};
use crate::catalog::view::View;
use crate::ddl::{Ddl, lock_table, no_schema};
use crate::error::{Error, Result, sqlstate};

/// The longest label, in bytes.
const LABEL_BYTES_MAX: usize = 63;

impl Ddl<'_> {
    /// Creates, changes or drops types.
    pub fn change_types(&mut self, statement: &TypeStatement) -> Result<()> {
        let notices = match statement {
            TypeStatement::Create(create) => self.create_enum(create).map(|()| Vec::new()),
            TypeStatement::Alter(alter) => self.alter_type(alter).map(Vec::from_iter),
            TypeStatement::Drop(drop) => self.drop_type(drop),
        };
        for message in notices? {
            self.note(sqlstate::SUCCESSFUL_COMPLETION, message);
        }
        Ok(())
    }

    fn create_enum(&mut self, statement: &ast::CreateEnum) -> Result<()> {
        let catalog = self.lock_catalog()?;
        let name = &statement.name.name.value;
        check_schema(&catalog, &statement.name)?;
        if catalog.enum_named(name).is_some() || types::DataType::from_name(name).is_some() {
            let message = format!("type \"{name}\" already exists");
            return Err(Error::new(sqlstate::DUPLICATE_OBJECT, message));
        }
        let number = self.next_id()?;
        let mut record =
            EnumRecord { number, schema: "public".to_owned(), name: name.clone(), labels: vec![] };
        // The next number is that of the arrays.
        let mut next = number + 2;
        for label in &statement.labels {
            check_label(label)?;
            if record.labels.iter().any(|known| known.name == *label) {
                let message =
                    "duplicate key value violates unique constraint \"pg_enum_typid_label_index\"";
                return Err(Error::new(sqlstate::UNIQUE_VIOLATION, message).with_detail(format!(
                    "Key (enumtypid, enumlabel)=({}, {label}) already exists.",
                    record.enum_type().definition().oid
                )));
            }
            let rank = rank_between(record.labels.last().map(|last| last.rank), None)?;
            record.labels.push(LabelRecord { rank, number: next, name: label.clone() });
            next += 1;
        }
        self.write_next_id(next)?;
        self.store_enum(&catalog, &record)
    }

    /// Changes an enum. Returns a notice if there was nothing to do.
    fn alter_type(&mut self, statement: &ast::AlterType) -> Result<Option<String>> {
        let catalog = self.lock_catalog()?;
        check_schema(&catalog, &statement.name)?;
        let mut record = self.known_enum(&catalog, &statement.name)?;
        match &statement.action {
            AlterTypeAction::AddValue { if_not_exists, label, place } => {
                check_label(label)?;
                if record.labels.iter().any(|known| known.name == *label) {
                    let message = format!("enum label \"{label}\" already exists");
                    if *if_not_exists {
                        return Ok(Some(format!("{message}, skipping")));
                    }
                    return Err(Error::new(sqlstate::DUPLICATE_OBJECT, message));
                }
                let number = self.next_id()?;
                self.write_next_id(number + 1)?;
                add_label(&mut record, label, number, place.as_ref())?;
            }
            AlterTypeAction::RenameValue { from, to } => {
                check_label(to)?;
                if record.labels.iter().any(|known| known.name == *to) {
                    let message = format!("enum label \"{to}\" already exists");
                    return Err(Error::new(sqlstate::DUPLICATE_OBJECT, message));
                }
                let at = position_of(&record, from)?;
                record.labels[at].name = to.clone();
            }
            AlterTypeAction::Rename(to) => {
                let taken = types::DataType::from_name(&to.value).is_some();
                if catalog.enum_named(&to.value).is_some() || taken {
                    let message = format!("type \"{}\" already exists", to.value);
                    return Err(Error::new(sqlstate::DUPLICATE_OBJECT, message));
                }
                record.name = to.value.clone();
            }
        }
        self.store_enum(&catalog, &record)?;
        self.change_users(&record)?;
        Ok(None)
    }

    /// Drops enums. Returns notices for those that do not exist, if the statement allows that.
    fn drop_type(&mut self, statement: &ast::DropType) -> Result<Vec<String>> {
        let mut notices = Vec::new();
        for name in &statement.names {
            let catalog = self.lock_catalog()?;
            check_schema(&catalog, name)?;
            let record = match self.known_enum(&catalog, name) {
                Err(error)
                    if statement.if_exists && error.sqlstate == sqlstate::UNDEFINED_OBJECT =>
                {
                    notices.push(format!("{}, skipping", error.message));
                    continue;
                }
                other => other?,
            };
            let users = users_of(&catalog, &record);
            if !users.is_empty() && statement.cascade {
                let hint = "Drop the columns and views that use it first.";
                return Err(Error::not_supported("DROP TYPE … CASCADE of a type in use", hint));
            }
            if !users.is_empty() {
                let shown = record.enum_type().definition().shown.clone();
                let message =
                    format!("cannot drop type {shown} because other objects depend on it");
                let lines: Vec<String> =
                    users.iter().map(|user| format!("{user} depends on type {shown}")).collect();
                return Err(Error::new(sqlstate::DEPENDENT_OBJECTS_STILL_EXIST, message)
                    .with_detail(lines.join("\n"))
                    .with_hint("Use DROP ... CASCADE to drop the dependent objects too."));
            }
            let row = Mutation::new(enum_key(record.number)).delete_row();
            self.transaction.mutate(CATALOG_TABLE, vec![row])?;
            self.changes.set_catalog(catalog.without_enum(record.number));
        }
        Ok(notices)
    }

    fn known_enum(&self, catalog: &Catalog, name: &ast::TableName) -> Result<EnumRecord> {
        if let Some(record) = catalog.enum_named(&name.name.value) {
            return Ok(EnumRecord::clone(record));
        }
        let text = &name.name.value;
        if types::DataType::from_name(text).is_some() {
            let message = format!("{text} is not an enum");
            return Err(Error::new(sqlstate::WRONG_OBJECT_TYPE, message));
        }
        let message = format!("type \"{text}\" does not exist");
        Err(Error::new(sqlstate::UNDEFINED_OBJECT, message))
    }

    fn store_enum(&mut self, catalog: &Catalog, record: &EnumRecord) -> Result<()> {
        let row = Mutation::new(enum_key(record.number)).put(0, Vec::new(), encode(record));
        self.transaction.mutate(CATALOG_TABLE, vec![row])?;
        self.changes.set_catalog(catalog.with_enum(record.clone()));
        Ok(())
    }

    /// Gives tables and views with columns of the enum its new definition.
    fn change_users(&mut self, changed: &EnumRecord) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let uses = |record: &Option<EnumRecord>| {
            record.as_ref().is_some_and(|record| record.number == changed.number)
        };
        for table in catalog.tables().into_iter().cloned().collect::<Vec<_>>() {
            let Some(record) = catalog.record(table.oid) else { continue };
            if !record.columns.iter().any(|column| uses(&column.enumeration)) {
                continue;
            }
            lock_table(self.transaction, table.id, LockMode::Exclusive)?;
            let mut record = TableRecord::clone(record);
            for column in record.columns.iter_mut().filter(|column| uses(&column.enumeration)) {
                column.enumeration = Some(changed.clone());
            }
            let table = assemble::table(&record, Arc::clone(&table.coprocessors))?;
            self.changes.touched.push(table.oid);
            let catalog = self.changes.catalog(self.engine);
            self.store_record(&catalog, table, record)?;
        }
        for view in catalog.views() {
            let mut record = view.record();
            if !record.columns.iter().any(|column| uses(&column.enumeration)) {
                continue;
            }
            for column in record.columns.iter_mut().filter(|column| uses(&column.enumeration)) {
                column.enumeration = Some(changed.clone());
            }
            let row = Mutation::new(view_key(record.oid)).put(0, Vec::new(), encode(&record));
            self.transaction.mutate(CATALOG_TABLE, vec![row])?;
            let catalog = self.changes.catalog(self.engine);
            self.changes.set_catalog(catalog.with_view(View::of_record(record)?));
        }
        Ok(())
    }
}

/// Types are in schema `public`.
fn check_schema(catalog: &Catalog, name: &ast::TableName) -> Result<()> {
    match &name.schema {
        Some(schema) if catalog.schema(&schema.value).is_none() => {
            Err(no_schema(&schema.value).at(schema.position))
        }
        Some(schema) if schema.value != PUBLIC => {
            let hint = "Types are in schema \"public\".";
            Err(Error::not_supported("a type in another schema", hint).at(schema.position))
        }
        _ => Ok(()),
    }
}

fn check_label(label: &str) -> Result<()> {
    if label.len() <= LABEL_BYTES_MAX {
        return Ok(());
    }
    let message = format!("invalid enum label \"{label}\"");
    Err(Error::new(sqlstate::INVALID_NAME, message)
        .with_detail(format!("Labels must be {LABEL_BYTES_MAX} bytes or less.")))
}

fn position_of(record: &EnumRecord, label: &str) -> Result<usize> {
    record.labels.iter().position(|known| known.name == label).ok_or_else(|| {
        let message = format!("\"{label}\" is not an existing enum label");
        Error::new(sqlstate::INVALID_PARAMETER_VALUE, message)
    })
}

fn add_label(
    record: &mut EnumRecord,
    label: &str,
    number: u32,
    place: Option<&LabelPlace>,
) -> Result<()> {
    let at = match place {
        None => record.labels.len(),
        Some(place) => position_of(record, &place.label)? + usize::from(!place.before),
    };
    let rank_at = |at: Option<usize>| at.and_then(|at| record.labels.get(at)).map(|one| one.rank);
    let rank = rank_between(rank_at(at.checked_sub(1)), rank_at(Some(at)))?;
    record.labels.insert(at, LabelRecord { rank, number, name: label.to_owned() });
    Ok(())
}

/// Returns what has columns of an enum, as messages name it.
fn users_of(catalog: &Catalog, record: &EnumRecord) -> Vec<String> {
    let uses = |data_type| {
        EnumRecord::within(data_type).is_some_and(|within| within.number == record.number)
    };
    let mut users = Vec::new();
    for table in catalog.tables() {
        for column in table.columns.iter().filter(|column| uses(column.sql_type.base)) {
            users.push(format!("column {} of table {}", column.name, table.name));
        }
    }
    for view in catalog.views() {
        for column in view.columns.iter().filter(|column| uses(column.sql_type.base)) {
            users.push(format!("column {} of view {}", column.name, view.name));
        }
    }
    users
}
