//! `ALTER … SET (…)` and RESET: options of tables, indexes and roles that can be changed.
//!
//! The catalog is changed in the transaction of the statement; the store's descriptors are updated
//! after the commit, or at the next start if the server crashed in between.

use std::sync::Arc;

use store::descriptor::{Durability, RETIRED_RULES_MAX};
use store::quota::QuotaLimits;
use store::transaction::TableLockMode;
use store::{FamilyDescriptor, TableDescriptor};

use crate::ast::{
    AlterOptions, Ident, IndexMethod, OptionsChange, OptionsOwner, TableName, TableOption,
};
use crate::catalog::ignored_attributes::set_parameter;
use crate::catalog::object::Object;
use crate::catalog::quota::QuotaSubject;
use crate::catalog::record::{IndexRecord, TableRecord};
use crate::catalog::table::Table;
use crate::catalog::{Catalog, CatalogEntry, CatalogObject, CatalogRelation, ObjectId};
use crate::ddl::create_index::eventual;
use crate::ddl::create_table::set_value_layouts;
use crate::ddl::key_constraint::take_table_settings;
use crate::ddl::options::{
    check_cell_options, check_family, check_normalizer_targets, undefined_family,
};
use crate::ddl::{Ddl, no_schema, undefined_table};
use crate::error::{Error, Result, sqlstate};
use crate::maintained_views;
use crate::relation_assembly;
use crate::storage_options::{
    OptionScope, OptionSpec, StorageSettings, TimestampSource, changeable, find, find_quota,
    find_reset, is_of_toast, set_unlogged, storage, timestamp_source,
};

/// Change of one option of a table.
struct OptionUpdate<'a> {
    spec: &'static OptionSpec,
    /// The family that it is for; `None` for the table or all of its families.
    family: Option<&'a Ident>,
    name: &'a Ident,
    /// The written option; `None` to reset it.
    written: Option<&'a TableOption>,
}

impl Ddl<'_> {
    /// Changes options of a table or an index.
    pub fn alter_options(&mut self, statement: &AlterOptions) -> Result<()> {
        let catalog = self.catalog();
        match &statement.of {
            OptionsOwner::Index(name) => {
                let changed = self.alter_index_options(name, &statement.change);
                self.if_relation_exists(changed, statement.if_exists)
            }
            OptionsOwner::Schema(name) => {
                let Some(schema) = catalog.schema(&name.value) else {
                    return Err(no_schema(&name.value));
                };
                self.check_owns(&catalog, &Object::Whole(ObjectId::Schema(schema.oid)))?;
                self.change_quota(QuotaSubject::Schema(schema.oid), &statement.change)
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

    /// Changes the quota of a role or a database.
    pub(in crate::ddl) fn change_quota(
        &mut self,
        subject: QuotaSubject,
        change: &OptionsChange,
    ) -> Result<()> {
        let quota = self.catalog().quota(&subject).unwrap_or_default();
        let mut settings = StorageSettings { quota, ..StorageSettings::default() };
        if *change == OptionsChange::ResetAll {
            settings.quota = QuotaLimits::default();
        }
        for (name, written) in updates(change) {
            set(&mut settings, find_quota(name)?, written)?;
        }
        self.store_quota(subject, settings.quota)
    }

    /// Returns the result of a statement; with IF EXISTS, a relation that does not exist is a
    /// notice.
    pub(super) fn if_relation_exists(&mut self, result: Result<()>, if_exists: bool) -> Result<()> {
        match result {
            Err(error) if error.sqlstate.as_ref() == sqlstate::UNDEFINED_TABLE => {
                self.missing_object(error, if_exists)
            }
            result => result,
        }
    }

    /// Changes options of a table and of its indexes.
    pub(in crate::ddl) fn alter_table_options(
        &mut self,
        table: &Table,
        of: &OptionsChange,
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let subject = QuotaSubject::Table(table.id);
        let before = self.record_of(&catalog, table)?;
        let mut record = TableRecord::clone(before.as_ref());
        let mut settings = StorageSettings {
            table: TableDescriptor::clone(&record.descriptor),
            quota: catalog.quota(&subject).unwrap_or_default(),
            timestamps: timestamp_source(&record),
            cell_ttl: record.cell_ttl,
            ..StorageSettings::default()
        };
        let updates = table_updates(of)?;
        let mut rebuilt = Vec::new();
        for update in &updates {
            match update.written {
                Some(option) if is_of_toast(option) => drop(update.spec.parse(option)?),
                written if update.spec.is_stored_text() => {
                    let value = parameter(written, OptionScope::Table)?;
                    set_parameter(&mut record.retained.parameters, update.spec.name, value);
                }
                _ if update.is_of_families() => {}
                written => set(&mut settings, update.spec, written)?,
            }
        }
        let written: Vec<_> = updates.iter().filter_map(|update| update.written).collect();
        self.note_options(written);
        check_durability(&record, &updates, settings.table.durability)?;
        let (client, cell_ttl) =
            (settings.timestamps == TimestampSource::Client, settings.cell_ttl);
        if (record.client_timestamps && !client) || (record.cell_ttl && !cell_ttl) {
            let name = &record.name;
            bail!(OBJECT_NOT_IN_PREREQUISITE_STATE: "TIMESTAMPS = CLIENT and CELL_TTL of table \"{name}\" cannot be removed";
                detail "Cells may have timestamps or TTLs of clients."; hint "Create another table and copy the rows.");
        }
        (record.client_timestamps, record.cell_ttl) = (client, cell_ttl);
        record.descriptor = settings.table.into();
        change_families(&mut record, &updates)?;
        if (client, cell_ttl) != (before.client_timestamps, before.cell_ttl) {
            self.check_cell_clients(&catalog, table, &record)?;
        }
        check_cell_options(&record)?;
        relation_assembly::check_replicas(&record)?;
        check_normalizer_targets(&record)?;
        if record.descriptor != before.descriptor || cell_ttl != before.cell_ttl {
            let layout = relation_assembly::base_layout(&catalog, &record)?;
            set_value_layouts(&mut record, &layout)?;
            let (base, unlogged) = (Arc::clone(&record.descriptor), record.retained.unlogged);
            for index in &mut record.indexes {
                take_table_settings(Arc::make_mut(&mut index.descriptor), &base);
            }
            if unlogged {
                set_unlogged(&mut record, true);
            }
            check_row_family(&before.descriptor.families, &record.descriptor.families)?;
            self.check_expiry(&catalog, (&before, &record))?;
            rebuilt = change_index_families(&catalog, &mut record)?;
            self.changes.altered.push(table.oid);
        }
        if updates.iter().any(|update| !update.spec.is_quota()) {
            self.store_options(&catalog, table, record)?;
        }
        for index in rebuilt {
            self.rebuild_index((table.oid, index), false)?;
        }
        match updates.iter().any(|update| update.spec.is_quota()) {
            true => self.store_quota(subject, settings.quota),
            false => Ok(()),
        }
    }

    /// Stores the record of a table with other options.
    ///
    /// # Errors
    ///
    /// 0A000 if a maintained view would no longer follow its rows.
    fn store_options(
        &mut self,
        catalog: &Catalog,
        table: &Table,
        record: TableRecord,
    ) -> Result<()> {
        let coprocessors = Arc::clone(&table.coprocessors);
        let changed = relation_assembly::table(catalog, &record, coprocessors)?;
        maintained_views::check_table(catalog, &changed)?;
        self.store_object(CatalogObject::of_table(changed, record))
    }

    /// Checks changed rules of expiry of a table.
    ///
    /// # Errors
    ///
    /// 0A000 for a TTL of a table that foreign keys reference; 54000 for too many changes.
    fn check_expiry(
        &self,
        catalog: &Catalog,
        (before, record): (&TableRecord, &TableRecord),
    ) -> Result<()> {
        let rules = |record: &TableRecord| {
            let rule = |one: &FamilyDescriptor| (one.versions, one.min_versions, one.ttl);
            record.descriptor.families.iter().map(rule).collect::<Vec<_>>()
        };
        if rules(before) == rules(record) && before.cell_ttl == record.cell_ttl {
            return Ok(());
        }
        check_missing_values(record)?;
        let stored = self.engine.store().tables();
        let stored = stored.iter().find(|known| known.id == record.descriptor.id);
        let mut families = stored.iter().flat_map(|known| &known.families);
        if let Some(family) = families.find(|family| family.retired.len() >= RETIRED_RULES_MAX) {
            bail!(PROGRAM_LIMIT_EXCEEDED: "options of column family \"{}\" were changed too often", family.name;
                detail "VERSIONS, MIN_VERSIONS and TTL can be changed {RETIRED_RULES_MAX} times between major compactions.";
                hint "Use FLUSH, then MAJOR COMPACT.");
        }
        let has_ttl =
            |record: &TableRecord| record.descriptor.families.iter().any(|one| one.ttl.is_some());
        if has_ttl(record) && !has_ttl(before) && catalog.referencing(record.oid).next().is_some() {
            let what = "a TTL of a table that foreign keys reference";
            return Err(Error::not_supported(what, "Drop the foreign keys first."));
        }
        Ok(())
    }

    /// Checks that nothing depends on timestamps of commits, or on rows that do not expire, before
    /// statements may set timestamps or TTLs of cells.
    fn check_cell_clients(
        &self,
        catalog: &Catalog,
        table: &Table,
        record: &TableRecord,
    ) -> Result<()> {
        if !record.foreign_keys.is_empty() || catalog.referencing(record.oid).next().is_some() {
            let what = "TIMESTAMPS = CLIENT or CELL_TTL of a table with foreign keys";
            let hint = "Drop the foreign keys of the table, and those that reference it.";
            return Err(Error::not_supported(what, hint));
        }
        if !record.cell_ttl {
            return Ok(());
        }
        if record.indexes.iter().any(|index| index.eventual) {
            let what = "CELL_TTL of a table with eventual indexes";
            return Err(Error::not_supported(what, eventual::MAKE_STRONG));
        }
        if self.keeper_of(table.id).is_some() {
            let what = "CELL_TTL on the output table of a coprocessor";
            return Err(Error::not_supported(what, "Detach the coprocessor."));
        }
        let expiring = Table { cell_ttl: true, ..table.clone() };
        self.engine.coprocessors.check_expiry(&expiring, None)
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
        let method = of.map(IndexRecord::method).unwrap_or_default();
        let mut changes = Vec::new();
        for (name, written) in updates(change) {
            if name.value == "consistency" && index.is_some() {
                let hint = "Use ALTER INDEX … CONSISTENCY = STRONG or EVENTUAL.";
                return Err(Error::not_supported("ALTER INDEX … SET (consistency)", hint));
            }
            // The options of constraints are those of indexes that can be changed.
            let scope = match method {
                IndexMethod::Btree => OptionScope::Constraint,
                method => OptionScope::of_index(method),
            };
            changes.push((name.value.as_str(), parameter(written, scope)?));
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

    /// Adds notices for the options of a table that have no effect, and for values that stand for
    /// others.
    pub(in crate::ddl) fn note_options<'o>(
        &mut self,
        options: impl IntoIterator<Item = &'o TableOption>,
    ) {
        for option in options {
            if let Some(message) = option_notice(option) {
                self.add_notice(sqlstate::SUCCESSFUL_COMPLETION, message);
            }
        }
    }
}

/// Returns the notice for an option of a table, if there is one.
fn option_notice(option: &TableOption) -> Option<String> {
    let name = &option.name.value;
    if is_of_toast(option) {
        return Some(format!("storage parameter \"toast.{name}\" has no effect"));
    }
    let spec = find(option, OptionScope::Table).ok()?;
    if spec.is_noted() {
        return Some(format!("option {} is stored and has no effect", name.to_uppercase()));
    }
    let (written, value) =
        (option.value.text().to_uppercase(), spec.synonym(option)?.to_uppercase());
    Some(format!("{} {written} is not available, {value} is used", name.to_uppercase()))
}

impl OptionUpdate<'_> {
    /// Returns whether it changes options of column families.
    fn is_of_families(&self) -> bool {
        self.spec.scopes.contains(&OptionScope::Family)
    }
}

/// Returns the names of the changed options, with the written ones that are not reset.
fn updates(change: &OptionsChange) -> Vec<(&Ident, Option<&TableOption>)> {
    match change {
        OptionsChange::Set(options) => {
            options.iter().map(|option| (&option.name, Some(option))).collect()
        }
        OptionsChange::Reset(names) => names.iter().map(|name| (&name.name, None)).collect(),
        OptionsChange::ResetAll => Vec::new(),
    }
}

/// Returns the changes of a table's options: options of all families before those of one, and the
/// block size, whose default depends on the encoding, behind the encoding.
///
/// # Errors
///
/// 22023 for an option that a table does not have or that occurs twice, 0A000 for one that cannot
/// be changed.
fn table_updates(of: &OptionsChange) -> Result<Vec<OptionUpdate<'_>>> {
    let update = |spec, (family, name), written| {
        let spec = changeable(spec, name)?;
        Ok(OptionUpdate { spec, family, name, written })
    };
    let mut updates: Vec<OptionUpdate<'_>> = match of {
        OptionsChange::Set(options) => {
            let set = options.iter().map(|option| {
                let spec = find(option, OptionScope::Table)?;
                update(spec, (option.family.as_ref(), &option.name), Some(option))
            });
            set.collect::<Result<_>>()?
        }
        OptionsChange::Reset(names) => {
            let reset = names
                .iter()
                .map(|name| update(find_reset(name)?, (name.family.as_ref(), &name.name), None));
            reset.collect::<Result<_>>()?
        }
        OptionsChange::ResetAll => Vec::new(),
    };
    for (at, update) in updates.iter().enumerate() {
        let is_same = |other: &OptionUpdate<'_>| {
            let families = [update.family, other.family].map(|one| one.map(|name| &name.value));
            update.name.value == other.name.value && families[0] == families[1]
        };
        if updates[..at].iter().any(is_same) {
            bail!(INVALID_PARAMETER_VALUE: "parameter \"{}\" specified more than once", update.name.value;
                at update.name.position);
        }
    }
    let is_block_size = |update: &OptionUpdate<'_>| update.spec.name == BLOCK_SIZE;
    updates.sort_by_key(|update| (update.family.is_some(), is_block_size(update)));
    Ok(updates)
}

/// The option whose default depends on another option.
const BLOCK_SIZE: &str = "blocksize";

/// Checks that rows which a family without a TTL retains are still retained by one after a change:
/// only it has a cell of each of them, which the entries of indexes rely on.
pub(super) fn check_row_family(
    before: &[FamilyDescriptor],
    after: &[FamilyDescriptor],
) -> Result<()> {
    let living = |family: &&FamilyDescriptor| !family.is_dropped();
    let retains = |family: &FamilyDescriptor| !family.is_dropped() && !family.expires_rows();
    let is_retained =
        before.iter().zip(after).any(|(before, after)| retains(before) && retains(after));
    if after.iter().filter(living).count() > 1 && after.iter().any(retains) && !is_retained {
        let what = "a column family without a TTL when the other families of existing rows expire";
        let hint = "Set a TTL of all column families, or create a table with the options and copy the rows.";
        return Err(Error::not_supported(what, hint));
    }
    Ok(())
}

/// Checks that columns of CELL storage that were added with a default to existing rows do not
/// expire: a missing cell would have the default again.
fn check_missing_values(record: &TableRecord) -> Result<()> {
    let families = &record.descriptor.families;
    let mut added = record.columns.iter().filter(|column| column.missing.is_some());
    let expires = |family: &FamilyDescriptor| record.cell_ttl || family.ttl.is_some();
    match added.find(|column| expires(&families[usize::from(column.family)])) {
        Some(column) if record.column_cells => {
            let what =
                format!("a TTL of column \"{}\", which was added with a default", column.name);
            let hint = "Create a table with the options and copy the rows.";
            Err(Error::not_supported(what, hint))
        }
        _ => Ok(()),
    }
}

/// Sets the families of the indexes of a table, whose entries expire with the rows and are
/// retained for the same time. Returns the oids of the indexes to rebuild: their present entries
/// would expire earlier than the rows, or are in other families.
pub(super) fn change_index_families(
    catalog: &Catalog,
    record: &mut TableRecord,
) -> Result<Vec<u32>> {
    let mut rebuilt = Vec::new();
    for at in 0..record.indexes.len() {
        let before = Arc::clone(&record.indexes[at].descriptor);
        relation_assembly::set_index_families(catalog, record, at)?;
        let index = &record.indexes[at];
        let families = before.families.iter().zip(&index.descriptor.families);
        let mut families = families.map(|(before, after)| {
            before.name == after.name && (before.ttl.is_some() || after.ttl.is_none())
        });
        let is_same_count = before.families.len() == index.descriptor.families.len();
        if !is_same_count || !families.all(|fits| fits) {
            rebuilt.push(index.oid);
        }
    }
    Ok(rebuilt)
}

/// Changes options of the families of a table.
fn change_families(record: &mut TableRecord, updates: &[OptionUpdate<'_>]) -> Result<()> {
    let storage = storage(record);
    let families = &mut Arc::make_mut(&mut record.descriptor).families;
    let of_families = || updates.iter().filter(|update| update.is_of_families());
    for name in of_families().filter_map(|update| update.family) {
        if families.iter().all(|family| family.name != name.value) {
            return Err(undefined_family(&name.value, name.position));
        }
    }
    for family in families.iter_mut().filter(|family| !family.is_dropped()) {
        let mut settings =
            StorageSettings { family: family.clone(), ..StorageSettings::of(storage) };
        let own = of_families()
            .filter(|update| update.family.is_none_or(|name| name.value == family.name));
        let mut has_block_size = false;
        for update in own {
            has_block_size |= update.spec.name == BLOCK_SIZE;
            set(&mut settings, update.spec, update.written)?;
        }
        let mut changed = settings.family;
        let default = family.data_block_encoding.default_block_bytes();
        if !has_block_size && family.block_bytes == default {
            changed.block_bytes = changed.data_block_encoding.default_block_bytes();
        }
        check_family(storage, &changed)?;
        *family = changed;
    }
    Ok(())
}

/// Checks that the durability of an unlogged table is not set to that of a logged one.
fn check_durability(
    record: &TableRecord,
    updates: &[OptionUpdate<'_>],
    durability: Durability,
) -> Result<()> {
    let of_durability = |update: &&OptionUpdate<'_>| update.spec.name == "durability";
    let written = updates.iter().find(of_durability).and_then(|update| update.written);
    match written {
        Some(option) if record.retained.unlogged && durability == Durability::SyncWal => Err(err!(
            INVALID_PARAMETER_VALUE: "table \"{}\" is unlogged", record.name;
            hint "Use ALTER TABLE … SET LOGGED."; at option.name.position)),
        _ => Ok(()),
    }
}

/// Sets an option to the written value, or to the default.
fn set(
    settings: &mut StorageSettings,
    spec: &OptionSpec,
    written: Option<&TableOption>,
) -> Result<()> {
    let Some(field) = &spec.field else { return Ok(()) };
    let datum = match written {
        Some(option) => spec.parse(option)?,
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
