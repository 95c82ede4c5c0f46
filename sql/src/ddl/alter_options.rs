//! `ALTER … SET (…)` and RESET: options of tables, indexes and roles that can be changed.
//!
//! The catalog is changed in the transaction of the statement; the store's descriptors are updated
//! after the commit, or at the next start if the server crashed in between.

use std::sync::Arc;

use store::quota::QuotaLimits;
use store::transaction::TableLockMode;

use crate::ast::{AlterOptions, Ident, OptionsChange, OptionsOwner, TableName, TableOption};
use crate::catalog::ignored_attributes::set_parameter;
use crate::catalog::quota::QuotaSubject;
use crate::catalog::record::TableRecord;
use crate::catalog::table::Table;
use crate::catalog::{CatalogEntry, CatalogObject, CatalogRelation};
use crate::ddl::{Ddl, undefined_table};
use crate::error::{Error, Result, sqlstate};
use crate::relation_assembly;
use crate::storage_options::{
    OptionScope, OptionSpec, StorageSettings, find, find_changeable, is_of_toast,
};

/// Change of one option: its name, and the written option, or nothing to reset it.
type OptionUpdate<'a> = (&'a Ident, Option<&'a TableOption>);

impl Ddl<'_> {
    /// Changes options of a table, an index or a role.
    pub fn alter_options(&mut self, statement: &AlterOptions) -> Result<()> {
        let catalog = self.catalog();
        match &statement.of {
            OptionsOwner::Role(name) => {
                let subject = QuotaSubject::Role(name.value.clone());
                let quota = catalog.quota(&subject).unwrap_or_default();
                let mut settings = StorageSettings { quota, ..StorageSettings::default() };
                if statement.change == OptionsChange::ResetAll {
                    settings.quota = QuotaLimits::default();
                }
                for update in updates(&statement.change) {
                    let spec = find_changeable(update.0, OptionScope::Role)?;
                    change(&mut settings, spec, update.1)?;
                }
                self.store_quota(subject, settings.quota)
            }
            OptionsOwner::Index(name) => {
                let changed = self.alter_index_options(name, &statement.change);
                self.if_relation_exists(changed, statement.if_exists)
            }
            OptionsOwner::Table(name) => {
                let table = match self.table(&catalog, name) {
                    Ok(table) => table,
                    Err(error) => {
                        return self.if_relation_exists(Err(error), statement.if_exists);
                    }
                };
                // This mode does not block writers, but excludes a concurrent drop.
                self.lock_table(table.id, TableLockMode::ShareUpdateExclusive)?;
                self.alter_table_options(&table, &statement.change)
            }
        }
    }

    /// Returns the result of a statement; with IF EXISTS, a relation that does not exist is a
    /// notice.
    fn if_relation_exists(&mut self, result: Result<()>, if_exists: bool) -> Result<()> {
        match result {
            Err(error) if error.sqlstate.as_ref() == sqlstate::UNDEFINED_TABLE => {
                self.missing_object(error, if_exists)
            }
            result => result,
        }
    }

    /// Changes options of a table and of its indexes.
    fn alter_table_options(&mut self, table: &Table, of: &OptionsChange) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let subject = QuotaSubject::Table(table.id);
        let mut record = TableRecord::clone(self.record_of(&catalog, table)?.as_ref());
        let mut settings = StorageSettings {
            table: record.descriptor.clone(),
            quota: catalog.quota(&subject).unwrap_or_default(),
            ..StorageSettings::default()
        };
        let (mut has_quotas, mut has_others) = (false, false);
        for (name, written) in updates(of) {
            if let Some(option) = written {
                find(option, OptionScope::Table)?;
            }
            let spec = find_changeable(name, OptionScope::Table)?;
            has_quotas |= spec.is_quota();
            has_others |= !spec.is_quota();
            match written {
                Some(option) if is_of_toast(option) => {
                    spec.parse(option)?;
                    self.note_toast_parameters(std::slice::from_ref(option));
                }
                _ if spec.is_parameter() => {
                    let value = parameter(written, OptionScope::Table)?;
                    set_parameter(&mut record.retained.parameters, spec.name, value);
                }
                _ => change(&mut settings, spec, written)?,
            }
        }
        if has_others {
            if settings.table != record.descriptor {
                for index in &mut record.indexes {
                    index.descriptor.split = settings.table.split.clone();
                }
                record.descriptor = settings.table;
                self.changes.altered.push(table.oid);
            }
            let coprocessors = Arc::clone(&table.coprocessors);
            let changed = relation_assembly::table(&catalog, &record, coprocessors)?;
            self.store_object(CatalogObject::of_table(changed, record))?;
        }
        match has_quotas {
            true => self.store_quota(subject, settings.quota),
            false => Ok(()),
        }
    }

    fn store_quota(&mut self, subject: QuotaSubject, limits: QuotaLimits) -> Result<()> {
        match limits == QuotaLimits::default() {
            true => self.remove_object(&CatalogEntry::Quota(subject)),
            false => self.store_object(CatalogObject::Quota(subject, limits)),
        }
    }

    /// Changes storage parameters of an index.
    fn alter_index_options(&mut self, name: &TableName, change: &OptionsChange) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let (table, index) = match self.find(&catalog, name) {
            None => return Err(undefined_table(name)),
            Some(CatalogRelation::Index(table, index)) => (table, Some(index.oid)),
            Some(CatalogRelation::PrimaryKey(table)) => (table, None),
            Some(_) => bail!(WRONG_OBJECT_TYPE: "\"{}\" is not an index", name.name.value),
        };
        let record = self.record_of(&catalog, table)?;
        let of = record.indexes.iter().find(|one| Some(one.oid) == index);
        let is_hash = of.is_some_and(|index| index.retained.is_hash);
        let mut changes = Vec::new();
        for (name, written) in updates(change) {
            if let Some(option) = written.filter(|_| is_hash) {
                find(option, OptionScope::HashIndex)?;
            }
            // The options of constraints are those of indexes that can be changed.
            changes.push((name.value.as_str(), parameter(written, OptionScope::Constraint)?));
        }
        self.change_record(table.oid, |_, record| {
            let mut indexes = record.indexes.iter_mut();
            let parameters = match indexes.find(|one| Some(one.oid) == index) {
                Some(found) => &mut found.retained.parameters,
                None => &mut record.retained.key_parameters,
            };
            for (name, value) in changes {
                set_parameter(parameters, name, value);
            }
        })
    }

    /// Adds notices for the options of a new table that have no effect.
    pub(super) fn note_toast_parameters(&mut self, options: &[TableOption]) {
        for option in options.iter().filter(|option| is_of_toast(option)) {
            let name = &option.name.value;
            let message = format!("storage parameter \"toast.{name}\" has no effect");
            self.add_notice(sqlstate::SUCCESSFUL_COMPLETION, message);
        }
    }
}

fn updates(change: &OptionsChange) -> Vec<OptionUpdate<'_>> {
    match change {
        OptionsChange::Set(options) => {
            options.iter().map(|option| (&option.name, Some(option))).collect()
        }
        OptionsChange::Reset(names) => names.iter().map(|name| (name, None)).collect(),
        OptionsChange::ResetAll => Vec::new(),
    }
}

/// Sets an option to the written value, or to the default.
fn change(
    settings: &mut StorageSettings,
    spec: &OptionSpec,
    written: Option<&TableOption>,
) -> Result<()> {
    let Some(field) = &spec.field else { return Ok(()) };
    let datum = match written {
        Some(option) => find(option, OptionScope::Table)?.parse(option)?,
        None => (field.get)(&settings.defaults()),
    };
    (field.set)(settings, datum);
    Ok(())
}

/// Returns the value of a storage parameter; `None` to reset it.
fn parameter(written: Option<&TableOption>, scope: OptionScope) -> Result<Option<String>> {
    let Some(option) = written else { return Ok(None) };
    Ok(Some(find(option, scope)?.parse(option)?.to_string()))
}
