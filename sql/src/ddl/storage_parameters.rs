//! PostgreSQL's storage parameters, and other attributes of tables, columns and indexes without
//! effect: validated as in PostgreSQL, stored in the catalog, and shown in `pg_class.reloptions`,
//! `pg_attribute` and `pg_get_indexdef`.
//!
//! Parameters `toast.…` are validated and not stored, because there are no TOAST tables; a notice
//! reports that.

use store::descriptor::Durability;
use types::DataType;
use types::expr::Expr;

use crate::ast::{
    ColumnAttribute, Deferral, Ident, OptionValue, QuotaChange, StorageKind, TableAttribute,
    TableName, TableOption,
};
use crate::catalog::ignored_attributes::{Parameter, ReplicaIdentity, set_parameter};
use crate::catalog::name::is_temporary;
use crate::catalog::record::TableRecord;
use crate::catalog::table::Table;
use crate::catalog::{Catalog, CatalogRelation};
use crate::ddl::alter_column::column_of;
use crate::ddl::{Ddl, undefined_table};
use crate::error::{Error, Result, sqlstate};

/// The type of a parameter's value.
enum ParameterKind {
    Bool,
    Integer(i64, i64),
    Real(f64, f64),
    /// One of these words; the text is their list in the error's detail.
    Word(&'static [&'static str], &'static str),
}

/// The access method of an index for PostgreSQL.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum IndexKind {
    /// `btree`
    Tree,
    /// `hash`
    Hash,
}

/// The namespace of the parameters of TOAST tables.
const TOAST: &str = "toast";

const INTEGER_MAX: i64 = i32::MAX as i64;

/// The parameters of tables; true if TOAST tables have them, too.
const OF_TABLES: &[(&str, ParameterKind, bool)] = &[
    ("fillfactor", ParameterKind::Integer(10, 100), false),
    ("toast_tuple_target", ParameterKind::Integer(128, 8_160), false),
    ("parallel_workers", ParameterKind::Integer(0, 1_024), false),
    ("user_catalog_table", ParameterKind::Bool, false),
    ("autovacuum_enabled", ParameterKind::Bool, true),
    (
        "vacuum_index_cleanup",
        ParameterKind::Word(
            &["auto", "on", "off", "true", "false"],
            "\"on\", \"off\", and \"auto\"",
        ),
        true,
    ),
    ("vacuum_truncate", ParameterKind::Bool, true),
    ("autovacuum_vacuum_threshold", ParameterKind::Integer(0, INTEGER_MAX), true),
    ("autovacuum_vacuum_insert_threshold", ParameterKind::Integer(-1, INTEGER_MAX), true),
    ("autovacuum_analyze_threshold", ParameterKind::Integer(0, INTEGER_MAX), false),
    ("autovacuum_vacuum_cost_limit", ParameterKind::Integer(1, 10_000), true),
    ("autovacuum_freeze_min_age", ParameterKind::Integer(0, 1_000_000_000), true),
    ("autovacuum_multixact_freeze_min_age", ParameterKind::Integer(0, 1_000_000_000), true),
    ("autovacuum_freeze_max_age", ParameterKind::Integer(100_000, 2_000_000_000), true),
    ("autovacuum_multixact_freeze_max_age", ParameterKind::Integer(10_000, 2_000_000_000), true),
    ("autovacuum_freeze_table_age", ParameterKind::Integer(0, 2_000_000_000), true),
    ("autovacuum_multixact_freeze_table_age", ParameterKind::Integer(0, 2_000_000_000), true),
    ("log_autovacuum_min_duration", ParameterKind::Integer(-1, INTEGER_MAX), true),
    ("autovacuum_vacuum_cost_delay", ParameterKind::Real(0.0, 100.0), true),
    ("autovacuum_vacuum_scale_factor", ParameterKind::Real(0.0, 100.0), true),
    ("autovacuum_vacuum_insert_scale_factor", ParameterKind::Real(0.0, 100.0), true),
    ("autovacuum_analyze_scale_factor", ParameterKind::Real(0.0, 100.0), false),
];

/// The parameters of indexes.
const OF_INDEXES: &[(&str, ParameterKind)] =
    &[("fillfactor", ParameterKind::Integer(10, 100)), ("deduplicate_items", ParameterKind::Bool)];

/// The parameters of columns.
const OF_COLUMNS: &[(&str, ParameterKind)] = &[
    ("n_distinct", ParameterKind::Real(-1.0, f64::MAX)),
    ("n_distinct_inherited", ParameterKind::Real(-1.0, f64::MAX)),
];

/// Returns whether a name is a storage parameter of a table or an index.
pub(super) fn is_parameter(name: &str) -> bool {
    OF_TABLES.iter().any(|(known, ..)| *known == name)
        || OF_INDEXES.iter().any(|(known, _)| *known == name)
}

/// Returns the storage parameter of a table option; `None` if the option is another one.
///
/// # Errors
///
/// 22023 for an invalid value.
pub(super) fn table_parameter(option: &TableOption) -> Result<Option<Parameter>> {
    let found = OF_TABLES.iter().find(|(name, ..)| *name == option.name.value);
    let Some((_, kind, of_toast)) = found else { return Ok(None) };
    if option.family.is_some() && !(is_of_toast(option) && *of_toast) {
        return Ok(None);
    }
    Ok(Some((option.name.value.clone(), checked(option, kind)?)))
}

/// Returns whether an option is one of the TOAST table.
pub(super) fn is_of_toast(option: &TableOption) -> bool {
    option.family.as_ref().is_some_and(|family| family.value == TOAST)
}

/// Returns whether an option is `oids = false`, which is always the case.
///
/// # Errors
///
/// 0A000 for `oids = true`.
pub(super) fn is_without_oids(option: &TableOption) -> Result<bool> {
    if option.name.value != "oids" || option.family.is_some() {
        return Ok(false);
    }
    match checked(option, &ParameterKind::Bool)?.to_ascii_lowercase().as_str() {
        "false" | "off" | "no" | "0" => Ok(true),
        _ => bail!(FEATURE_NOT_SUPPORTED: "tables declared WITH OIDS are not supported"),
    }
}

/// Returns the storage parameters among the options of an index.
///
/// # Errors
///
/// 22023 for an invalid value, and for a parameter that the access method does not have.
pub(super) fn index_parameters(options: &[TableOption], kind: IndexKind) -> Result<Vec<Parameter>> {
    let mut parameters = Vec::new();
    for option in options {
        if let Some((name, value)) = index_parameter(option, kind)? {
            set_parameter(&mut parameters, &name, Some(value));
        }
    }
    Ok(parameters)
}

fn index_parameter(option: &TableOption, kind: IndexKind) -> Result<Option<Parameter>> {
    let name = option.name.value.as_str();
    let has = |known: &str| kind == IndexKind::Tree || known == "fillfactor";
    match OF_INDEXES.iter().find(|(known, _)| *known == name && has(known)) {
        Some((_, kind)) if option.family.is_none() => {
            Ok(Some((name.to_owned(), checked(option, kind)?)))
        }
        _ if is_parameter(name) || option.family.is_some() => Err(unrecognized(&option.name)),
        _ => Ok(None),
    }
}

fn unrecognized(name: &Ident) -> Error {
    err!(INVALID_PARAMETER_VALUE: "unrecognized parameter \"{}\"", name.value)
}

/// Checks a value and returns it as written.
fn checked(option: &TableOption, kind: &ParameterKind) -> Result<String> {
    let name = &option.name.value;
    let text = match &option.value {
        OptionValue::Number(text) | OptionValue::String(text) | OptionValue::Word(text) => {
            text.clone()
        }
        OptionValue::Boolean(value) => value.to_string(),
    };
    let bad = |what: &str| err!(INVALID_PARAMETER_VALUE: "invalid value for {what} option \"{name}\": {text}");
    let bounds = |low: String, high: String| {
        err!(INVALID_PARAMETER_VALUE: "value {text} out of bounds for option \"{name}\"";
            detail "Valid values are between \"{low}\" and \"{high}\".")
    };
    let lower = text.to_ascii_lowercase();
    match kind {
        ParameterKind::Bool => {
            let words = ["on", "off", "true", "false", "yes", "no", "1", "0", "t", "f", "y", "n"];
            if !words.contains(&lower.as_str()) {
                return Err(bad("boolean"));
            }
        }
        ParameterKind::Integer(low, high) => {
            let number: i64 = text.trim().parse().map_err(|_| bad("integer"))?;
            if !(*low..=*high).contains(&number) {
                return Err(bounds(low.to_string(), high.to_string()));
            }
        }
        ParameterKind::Real(low, high) => {
            let number: f64 = text.trim().parse().map_err(|_| bad("floating point"))?;
            if !(*low..=*high).contains(&number) {
                return Err(bounds(format!("{low:.6}"), format!("{high:.6}")));
            }
        }
        ParameterKind::Word(words, listed) => {
            if !words.contains(&lower.as_str()) {
                return Err(bad("enum").with_detail(format!("Valid values are {listed}.")));
            }
        }
    }
    Ok(text)
}

impl Ddl<'_> {
    /// Adds notices for the options of a new table that have no effect.
    pub(super) fn note_toast_parameters(&mut self, options: &[TableOption]) {
        for option in options.iter().filter(|option| is_of_toast(option)) {
            let name = &option.name.value;
            let message = format!("storage parameter \"{TOAST}.{name}\" has no effect");
            self.add_notice(sqlstate::SUCCESSFUL_COMPLETION, message);
        }
    }

    /// Sets and resets storage parameters of a table.
    pub(super) fn change_parameters(&mut self, table: &Table, change: &QuotaChange) -> Result<()> {
        let mut changes: Vec<(String, Option<String>)> = Vec::new();
        match change {
            QuotaChange::Set(options) => {
                for option in options {
                    match table_parameter(option)? {
                        Some(_) if is_of_toast(option) => {
                            self.note_toast_parameters(std::slice::from_ref(option));
                        }
                        Some((name, value)) => changes.push((name, Some(value))),
                        None => return Err(unrecognized(&option.name)),
                    }
                }
            }
            QuotaChange::Reset(names) => {
                changes.extend(names.iter().map(|name| (name.value.clone(), None)));
            }
            QuotaChange::ResetAll => {}
        }
        self.change_record(table.oid, |_, record| {
            for (name, value) in changes {
                set_parameter(&mut record.retained.parameters, &name, value);
            }
        })
    }

    /// Sets and resets storage parameters of an index.
    pub(super) fn alter_index_parameters(
        &mut self,
        name: &TableName,
        change: &QuotaChange,
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let (table, index) = match self.find(&catalog, name) {
            None => return Err(undefined_table(name)),
            Some(CatalogRelation::Index(table, index)) => (table, Some(index.oid)),
            Some(CatalogRelation::PrimaryKey(table)) => (table, None),
            Some(_) => bail!(WRONG_OBJECT_TYPE: "\"{}\" is not an index", name.name.value),
        };
        let record = self.record_of(&catalog, table)?;
        let mut indexes = record.indexes.iter();
        let of = indexes.find(|one| Some(one.oid) == index);
        let kind = match of.is_some_and(|index| index.retained.is_hash) {
            true => IndexKind::Hash,
            false => IndexKind::Tree,
        };
        let changes: Vec<(String, Option<String>)> = match change {
            QuotaChange::Set(options) => {
                let known = |option: &&TableOption| !is_parameter(&option.name.value);
                if let Some(option) = options.iter().find(known) {
                    return Err(unrecognized(&option.name));
                }
                let set = index_parameters(options, kind)?;
                set.into_iter().map(|(name, value)| (name, Some(value))).collect()
            }
            QuotaChange::Reset(names) => {
                names.iter().map(|name| (name.value.clone(), None)).collect()
            }
            QuotaChange::ResetAll => Vec::new(),
        };
        self.change_record(table.oid, |_, record| {
            let mut indexes = record.indexes.iter_mut();
            let parameters = match indexes.find(|one| Some(one.oid) == index) {
                Some(found) => &mut found.retained.parameters,
                None => &mut record.retained.key_parameters,
            };
            for (name, value) in changes {
                set_parameter(parameters, &name, value);
            }
        })
    }

    /// Sets an attribute of a table.
    pub(super) fn set_table_attribute(
        &mut self,
        table: &Table,
        record: &mut TableRecord,
        attribute: &TableAttribute,
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let number = |index: &Ident| {
            if index.value == table.primary_key_name {
                return Ok(table.oid);
            }
            let found = table.indexes.iter().find(|one| one.name == index.value);
            found.map(|one| one.oid).ok_or_else(|| {
                let (index, name) = (&index.value, &table.name);
                if catalog.relation(&table.schema, index).is_some() {
                    return err!(WRONG_OBJECT_TYPE: "\"{index}\" is not an index for table \"{name}\"");
                }
                err!(UNDEFINED_OBJECT: "index \"{index}\" for table \"{name}\" does not exist")
            })
        };
        let retained = &mut record.retained;
        match attribute {
            TableAttribute::Cluster(index) => {
                retained.clustered_on = index.as_ref().map(number).transpose()?;
            }
            TableAttribute::ReplicaDefault => retained.replica_identity = ReplicaIdentity::Default,
            TableAttribute::ReplicaFull => retained.replica_identity = ReplicaIdentity::Full,
            TableAttribute::ReplicaNothing => retained.replica_identity = ReplicaIdentity::Nothing,
            TableAttribute::ReplicaIndex(index) => {
                let number = number(index)?;
                check_identity_index(table, number)?;
                retained.replica_identity = ReplicaIdentity::Index(number);
            }
            TableAttribute::Unlogged(unlogged) => {
                check_persistence(&catalog, table, *unlogged)?;
                retained.unlogged = *unlogged;
                set_unlogged(record, *unlogged);
                self.changes.altered.push(table.oid);
            }
            TableAttribute::AllTriggers { enabled } => record.without_triggers = !enabled,
            TableAttribute::Trigger(name) => {
                bail!(UNDEFINED_OBJECT: "trigger \"{}\" for table \"{}\" does not exist", name.value, table.name);
            }
            TableAttribute::Unchanged => {}
        }
        Ok(())
    }
}

/// Checks that an index is suitable for REPLICA IDENTITY.
fn check_identity_index(table: &Table, number: u32) -> Result<()> {
    let Some(index) = table.indexes.iter().find(|index| index.oid == number) else { return Ok(()) };
    let name = &index.name;
    let cannot = |kind: &str| format!("cannot use {kind} index \"{name}\" as replica identity");
    let unfit = |message: String| Err(err!(FEATURE_NOT_SUPPORTED: message));
    if !index.is_unique() {
        bail!(WRONG_OBJECT_TYPE: cannot("non-unique"));
    }
    if index.deferral != Deferral::Never {
        return unfit(cannot("non-immediate"));
    }
    if index.spec.keys.iter().any(|key| !matches!(key, Expr::Column { .. })) {
        return unfit(cannot("expression"));
    }
    if index.spec.predicate.is_some() {
        return unfit(cannot("partial"));
    }
    let nullable = index.spec.keys.iter().find_map(|key| match key {
        Expr::Column { index, .. } => table.columns.get(*index).filter(|one| !one.not_null),
        _ => None,
    });
    let Some(column) = nullable else { return Ok(()) };
    bail!(WRONG_OBJECT_TYPE: "index \"{name}\" cannot be used as replica identity because column \"{}\" is nullable",
        column.name)
}

/// Checks SET LOGGED and SET UNLOGGED: a permanent table must not reference one that is not.
fn check_persistence(catalog: &Catalog, table: &Table, unlogged: bool) -> Result<()> {
    let name = &table.name;
    let refused = |message: String, of: &Table, constraint: Option<&String>| {
        let error = err!(INVALID_TABLE_DEFINITION: message);
        let (schema, table) = (Some(of.schema.clone()), Some(of.name.clone()));
        Err(Error { schema, table, constraint: constraint.cloned(), ..error })
    };
    if is_temporary(&table.schema) {
        let message =
            format!("cannot change logged status of table \"{name}\" because it is temporary");
        return refused(message, table, None);
    }
    if catalog.record(table.oid).is_some_and(|record| record.retained.unlogged == unlogged) {
        return Ok(());
    }
    let is_unlogged = |oid: u32| catalog.record(oid).is_some_and(|one| one.retained.unlogged);
    if unlogged {
        let mut others = catalog.referencing(table.oid);
        let other = others.find(|(other, _)| other.oid != table.oid && !is_unlogged(other.oid));
        let Some((other, key)) = other else { return Ok(()) };
        let message = format!(
            "could not change table \"{name}\" to unlogged because it references logged table \
             \"{}\"",
            other.name
        );
        return refused(message, table, Some(&key.name));
    }
    let mut keys = table.foreign_keys.iter();
    let key = keys.find(|key| key.table != table.oid && is_unlogged(key.table));
    let Some(key) = key else { return Ok(()) };
    let other = catalog.table(key.table).map_or("", |other| other.name.as_str());
    let message = format!(
        "could not change table \"{name}\" to logged because it references unlogged table \
         \"{other}\""
    );
    refused(message, table, Some(&key.name))
}

/// Sets the durability of UNLOGGED, which is ASYNC_WAL, unless the options say SKIP_WAL.
pub(super) fn set_unlogged(record: &mut TableRecord, unlogged: bool) {
    let indexes = record.indexes.iter_mut().map(|index| &mut index.descriptor);
    for descriptor in std::iter::once(&mut record.descriptor).chain(indexes) {
        descriptor.durability = match (descriptor.durability, unlogged) {
            (Durability::SyncWal, true) => Durability::AsyncWal,
            (Durability::AsyncWal, false) => Durability::SyncWal,
            (other, _) => other,
        };
    }
}

/// Sets an attribute of a column.
pub(super) fn set_column_attribute(
    table: &Table,
    record: &mut TableRecord,
    (column, attribute): (&Ident, &ColumnAttribute),
) -> Result<()> {
    let position = column_of(table, column)?;
    let sql_type = table.columns[position].sql_type;
    let is_fixed = sql_type.base.length() != -1;
    let refused = |what: &str| {
        err!(FEATURE_NOT_SUPPORTED: "column data type {} {what}", sql_type.base.sql_name();
            with_type_mention sql_type.base)
    };
    let retained = &mut record.columns[position].retained;
    match attribute {
        ColumnAttribute::Statistics(target) => {
            retained.statistics = (*target >= 0).then_some(*target);
        }
        ColumnAttribute::Storage(kind) if is_fixed && *kind != StorageKind::Plain => {
            return Err(refused("can only have storage PLAIN"));
        }
        ColumnAttribute::Storage(kind) => {
            let of_type = match sql_type.base {
                DataType::Numeric => StorageKind::Main,
                _ if is_fixed => StorageKind::Plain,
                _ => StorageKind::Extended,
            };
            retained.storage = (*kind != of_type).then_some(*kind);
        }
        ColumnAttribute::Compression(Some(_)) if is_fixed => {
            return Err(refused("does not support compression"));
        }
        ColumnAttribute::Compression(method) => retained.compression = *method,
        ColumnAttribute::Set(options) => {
            for option in options {
                let found = OF_COLUMNS.iter().find(|(name, _)| *name == option.name.value);
                let Some((name, kind)) = found else { return Err(unrecognized(&option.name)) };
                let value = checked(option, kind)?;
                set_parameter(&mut retained.options, name, Some(value));
            }
        }
        ColumnAttribute::Reset(names) => {
            for name in names {
                set_parameter(&mut retained.options, &name.value, None);
            }
        }
    }
    Ok(())
}
