//! Attributes of tables and columns without effect, except UNLOGGED: validated as in PostgreSQL,
//! stored in the catalog, and shown in `pg_class` and `pg_attribute`.

use types::DataType;
use types::expr::Expr;

use crate::ast::{
    ColumnAttribute, Deferral, Ident, RowSecurityChange, StorageKind, TableAttribute,
    TriggerFiring, TriggerSelection,
};
use crate::catalog::Catalog;
use crate::catalog::ignored_attributes::{ReplicaIdentity, set_parameter};
use crate::catalog::name::is_temporary;
use crate::catalog::record::TableRecord;
use crate::catalog::table::Table;
use crate::catalog::trigger::no_trigger;
use crate::ddl::Ddl;
use crate::error::{Error, Result};
use crate::storage_options::{OptionScope, find, set_unlogged};

impl Ddl<'_> {
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
            TableAttribute::Triggers(selection, firing) => {
                enable_triggers(record, selection, *firing)?;
            }
            TableAttribute::RowSecurity(RowSecurityChange::Enable(is_on)) => {
                record.row_security = *is_on;
            }
            TableAttribute::RowSecurity(RowSecurityChange::Force(is_on)) => {
                record.forces_row_security = *is_on;
            }
            TableAttribute::Unchanged => {}
        }
        Ok(())
    }
}

/// Sets when the triggers of a table are called.
fn enable_triggers(
    record: &mut TableRecord,
    selection: &TriggerSelection,
    firing: TriggerFiring,
) -> Result<()> {
    if *selection == TriggerSelection::All {
        record.without_triggers = firing == TriggerFiring::Disabled;
    }
    let name = match selection {
        TriggerSelection::Named(name) => Some(&name.value),
        _ => None,
    };
    if let Some(name) = name.filter(|name| record.triggers.iter().all(|one| one.name != **name)) {
        return Err(no_trigger(name, &record.name));
    }
    let chosen = record.triggers.iter_mut();
    chosen
        .filter(|one| name.is_none_or(|name| one.name == *name))
        .for_each(|one| one.firing = firing);
    Ok(())
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

/// Sets an attribute of a column.
pub(super) fn set_column_attribute(
    table: &Table,
    record: &mut TableRecord,
    (position, attribute): (usize, &ColumnAttribute),
) -> Result<()> {
    let sql_type = &table.columns[position].sql_type;
    let is_fixed = sql_type.base.length() != -1;
    let refused = |what: &str| {
        err!(FEATURE_NOT_SUPPORTED: "column data type {} {what}", sql_type.base.sql_name();
            with_type_mention sql_type.base.clone())
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
                let spec = find(option, OptionScope::Column)?;
                let value = spec.parse(option)?.to_string();
                set_parameter(&mut retained.options, spec.name, Some(value));
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
