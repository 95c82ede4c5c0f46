//! Updatability of relations, for `information_schema` and the functions
//! `pg_relation_is_updatable` and `pg_column_is_updatable`.

use crate::ast::TriggerEvent;
use crate::binder;
use crate::catalog::Catalog;
use crate::system::SystemNames;
use crate::system::catalog_objects::{SystemRelation, SystemRelationKind};

/// `1 << CMD_UPDATE`
const UPDATE: i32 = 4;
/// `1 << CMD_INSERT`
const INSERT: i32 = 8;
/// `1 << CMD_DELETE`
const DELETE: i32 = 16;

/// The columns of a relation that DML can write.
pub(super) enum Updatable {
    /// Nothing.
    No,
    /// All columns of a table.
    All,
    /// The columns of a view: true for updatable ones.
    Columns(Vec<bool>),
}

impl Updatable {
    /// Returns the updatable columns of a relation.
    pub(super) fn of(catalog: &Catalog, relation: &SystemRelation) -> Updatable {
        match &relation.kind {
            SystemRelationKind::Table(_) => Updatable::All,
            SystemRelationKind::View(view) => {
                // Endpoints are not updatable, so they need not be known here.
                let names = SystemNames { coprocessors: None, settings: None };
                let columns = binder::updatable_columns(view, catalog, &names);
                columns.map_or(Updatable::No, Updatable::Columns)
            }
            _ => Updatable::No,
        }
    }

    /// Returns the bit mask of supported commands, as in `pg_relation_is_updatable`.
    pub(super) fn events(&self) -> i32 {
        match self {
            Updatable::No => 0,
            Updatable::Columns(columns) if !columns.contains(&true) => DELETE,
            _ => UPDATE | INSERT | DELETE,
        }
    }

    /// Returns the bit mask of the commands of a view that INSTEAD OF triggers execute.
    pub(super) fn trigger_events(relation: &SystemRelation) -> i32 {
        let SystemRelationKind::View(view) = &relation.kind else { return 0 };
        let events = [
            (TriggerEvent::Update, UPDATE),
            (TriggerEvent::Insert, INSERT),
            (TriggerEvent::Delete, DELETE),
        ];
        events.into_iter().filter(|(event, _)| view.has_instead(*event)).map(|(_, bit)| bit).sum()
    }

    /// Returns true if a column is updatable, by its attribute number.
    pub(super) fn has_column(&self, number: i64) -> bool {
        match self {
            Updatable::No => false,
            Updatable::All => true,
            Updatable::Columns(columns) => {
                let at = usize::try_from(number - 1).unwrap_or(usize::MAX);
                columns.get(at) == Some(&true)
            }
        }
    }
}
