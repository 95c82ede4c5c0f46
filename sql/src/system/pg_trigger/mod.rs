//! Rows of `pg_trigger`: the triggers of tables and views.

use std::sync::Arc;

use types::Datum;

use crate::ast::{Deferral, TriggerFiring};
use crate::catalog::Catalog;
use crate::catalog::table::Table;
use crate::catalog::trigger::Trigger;
use crate::catalog::user_type::OID_OFFSET;
use crate::system::Row;
use crate::system::catalog_objects::{SystemRelationKind, attribute_number, user_oid};
use crate::system::relation_definitions::RelationDefinition;
use crate::system::value::{bytes, char, int2, oid, text, text_or_null, vector};

/// Returns `relhastriggers`. In PostgreSQL, triggers enforce foreign keys; clients read
/// `pg_constraint` only if it is true.
pub(super) fn has_triggers(relation: &SystemRelationKind, catalog: &Catalog) -> bool {
    match relation {
        SystemRelationKind::Table(table) => {
            !table.triggers.is_empty()
                || !table.foreign_keys.is_empty()
                || catalog.referencing(table.oid).next().is_some()
        }
        SystemRelationKind::View(view) => !view.triggers.is_empty(),
        _ => false,
    }
}

/// Returns the rows of `pg_trigger`.
pub(super) fn rows(shape: &RelationDefinition, catalog: &Catalog) -> Vec<Row> {
    let rows_of = |table: &Arc<Table>| {
        let row = |trigger: &Arc<Trigger>| trigger_row(shape, table, trigger);
        table.triggers.iter().map(row).collect::<Vec<Row>>()
    };
    catalog.with_triggers().into_iter().flat_map(rows_of).collect()
}

fn trigger_row(shape: &RelationDefinition, table: &Table, trigger: &Trigger) -> Row {
    let record = &trigger.record;
    let number = |column: &u32| int2(attribute_number(table, *column as usize));
    let arguments = record.arguments.iter().flat_map(|one| one.bytes().chain([0]));
    shape.row([
        ("oid", oid(user_oid(record.number))),
        ("tgrelid", oid(user_oid(table.oid))),
        ("tgname", text(&record.name)),
        ("tgfoid", oid(record.function + OID_OFFSET)),
        ("tgtype", int2(record.type_bits())),
        ("tgenabled", char(enabled(record.firing))),
        ("tgisinternal", Datum::Bool(false)),
        ("tgconstrrelid", oid(record.referenced.map_or(0, user_oid))),
        ("tgdeferrable", Datum::Bool(record.deferral != Deferral::Never)),
        ("tginitdeferred", Datum::Bool(record.deferral == Deferral::Deferred)),
        ("tgnargs", int2(record.arguments.len())),
        ("tgattr", vector(record.columns.iter().map(number).collect())),
        ("tgargs", bytes(&arguments.collect::<Vec<u8>>())),
        ("tgqual", text_or_null(record.condition.clone())),
        ("tgoldtable", text_or_null(record.old_table.clone())),
        ("tgnewtable", text_or_null(record.new_table.clone())),
    ])
}

fn enabled(firing: TriggerFiring) -> char {
    match firing {
        TriggerFiring::Origin => 'O',
        TriggerFiring::Disabled => 'D',
        TriggerFiring::Replica => 'R',
        TriggerFiring::Always => 'A',
    }
}
