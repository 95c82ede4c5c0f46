//! `pg_class.reloptions`: storage parameters, and bennu's own options that differ from the
//! defaults, in the form that CREATE TABLE and CREATE INDEX accept.
//!
//! pg_dump copies them to its output. The second kind is left out under `portable_definitions`,
//! since PostgreSQL does not know it.

use store::descriptor::Durability;
use store::{FamilyDescriptor, TableDescriptor};
use types::function::quote_ident;

use crate::catalog::ignored_attributes::Parameter;
use crate::catalog::record::{IndexRecord, TableKind, TableRecord};
use crate::relation_assembly::DEFAULT_FAMILY;
use crate::storage_options::settings::StorageSettings;
use crate::storage_options::settings::storage;
use crate::storage_options::table::{NULLABLE_KEY, OPTIONS, OptionScope};
use crate::storage_options::value::{IndexConsistency, RowStorage, TimestampSource};

/// Returns the options of a table.
pub(crate) fn of_table(record: &TableRecord, portable: bool) -> Vec<Parameter> {
    let mut options = record.retained.parameters.clone();
    if portable {
        let is_parameter =
            |name: &str| OPTIONS.iter().any(|spec| spec.name == name && spec.is_parameter());
        options.retain(|(name, _)| is_parameter(name));
        return options;
    }
    let mut settings = StorageSettings {
        storage: storage(record),
        salt_buckets: record.salt_buckets,
        timestamps: timestamp_source(record),
        cell_ttl: record.cell_ttl,
        maintained: matches!(record.kind, TableKind::Maintained { .. }),
        column_families: column_families(record),
        table: TableDescriptor::clone(&record.descriptor),
        ..StorageSettings::default()
    };
    // UNLOGGED stands for this durability.
    if record.retained.unlogged && settings.table.durability == Durability::AsyncWal {
        settings.table.durability = Durability::SyncWal;
    }
    options.extend(changed(&settings, |scopes| !scopes.contains(&OptionScope::Family)));
    let families = match record.kind {
        // The second one has the states of the groups.
        TableKind::Maintained { .. } => &record.descriptor.families[..1],
        _ => &record.descriptor.families,
    };
    options.extend(family_options(storage(record), families));
    options
}

/// Returns whether the stored options of a table allow NULL in columns of its primary key.
pub(crate) fn has_nullable_key(options: &[Parameter]) -> bool {
    options.iter().any(|(name, value)| name == NULLABLE_KEY && value == "true")
}

/// Returns the source of the timestamps of a table.
pub(crate) fn timestamp_source(record: &TableRecord) -> TimestampSource {
    match record.client_timestamps {
        true => TimestampSource::Client,
        false => TimestampSource::Commit,
    }
}

/// Returns the options of an index.
pub(crate) fn of_index(index: &IndexRecord, portable: bool) -> Vec<Parameter> {
    let mut options = index.retained.parameters.clone();
    if !portable {
        let salt_buckets = index.salt_buckets;
        let consistency = match index.eventual {
            true => IndexConsistency::Eventual,
            false => IndexConsistency::Strong,
        };
        let settings = StorageSettings { salt_buckets, consistency, ..StorageSettings::default() };
        options.extend(changed(&settings, |scopes| scopes.contains(&OptionScope::Index)));
    }
    options
}

/// Returns ` WITH (…)` for a definition; empty without options.
pub(crate) fn with_clause(options: &[Parameter]) -> String {
    if options.is_empty() {
        return String::new();
    }
    let option = |(name, value): &Parameter| {
        let value = value.replace('\'', "''");
        format!("{}='{value}'", quote_ident(name))
    };
    format!(" WITH ({})", options.iter().map(option).collect::<Vec<_>>().join(", "))
}

/// Returns the options with certain scopes that differ from the defaults.
fn changed(settings: &StorageSettings, fits: impl Fn(&[OptionScope]) -> bool) -> Vec<Parameter> {
    let defaults = settings.defaults();
    let fitting = OPTIONS.iter().filter(|spec| fits(spec.scopes));
    let with_field = fitting.filter_map(|spec| spec.field.as_ref().map(|field| (spec.name, field)));
    let differing = with_field.filter_map(|(name, field)| {
        let datum = (field.get)(settings);
        (datum != (field.get)(&defaults)).then(|| (name.to_owned(), datum.to_string()))
    });
    differing.collect()
}

/// Returns the families other than the default one, with their columns outside the primary key.
fn column_families(record: &TableRecord) -> Vec<(String, Vec<String>)> {
    let mut families = Vec::new();
    if matches!(record.kind, TableKind::Maintained { .. }) {
        return families;
    }
    for (at, family) in record.descriptor.families.iter().enumerate() {
        let is_key =
            |position: usize| record.primary_key.iter().any(|key| key.column as usize == position);
        let columns = record.columns.iter().enumerate().filter(|(position, column)| {
            usize::from(column.family) == at
                && !column.dropped
                && !column.name.is_empty()
                && !is_key(*position)
        });
        let columns: Vec<String> = columns.map(|(_, column)| column.name.clone()).collect();
        let is_only = record.descriptor.families.len() == 1;
        let is_listed = !columns.is_empty() || !is_only;
        if family.name != DEFAULT_FAMILY && !family.is_dropped() && is_listed {
            families.push((family.name.clone(), columns));
        }
    }
    families
}

/// Returns the options of column families: under their own names if all families have the same,
/// else prefixed by the name of the family.
fn family_options(storage: RowStorage, families: &[FamilyDescriptor]) -> Vec<Parameter> {
    let living = families.iter().filter(|family| !family.is_dropped());
    let options = living.map(|family| {
        let settings = StorageSettings { family: family.clone(), ..StorageSettings::of(storage) };
        (&family.name, changed(&settings, |scopes| scopes.contains(&OptionScope::Family)))
    });
    let mut of_families: Vec<(&String, Vec<Parameter>)> = options.collect();
    let [(_, first), others @ ..] = of_families.as_mut_slice() else { return Vec::new() };
    if others.iter().all(|(_, options)| options == first) {
        return std::mem::take(first);
    }
    let prefixed = of_families.into_iter().flat_map(|(family, options)| {
        options.into_iter().map(move |(name, value)| (format!("{family}.{name}"), value))
    });
    prefixed.collect()
}
