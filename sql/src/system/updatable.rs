//! Which relations rows can be written to through, as `information_schema` and the functions
//! `pg_relation_is_updatable` and `pg_column_is_updatable` tell it.

use crate::binder;
use crate::catalog::Catalog;
use crate::system::SystemNames;
use crate::system::objects::{Kind, Relation};

/// `1 << CMD_UPDATE`
const UPDATE: i32 = 4;
/// `1 << CMD_INSERT`
const INSERT: i32 = 8;
/// `1 << CMD_DELETE`
const DELETE: i32 = 16;

/// What can be written to.
pub(super) enum Updatable {
    /// Nothing.
    No,
    /// All columns.
    All,
    /// Some columns: whether each can.
    Columns(Vec<bool>),
}

impl Updatable {
    /// Returns what of a relation can be written to.
    pub(super) fn of(catalog: &Catalog, relation: &Relation) -> Updatable {
        match &relation.kind {
            Kind::Table(_) => Updatable::All,
            Kind::View(view) => {
                // An endpoint is no row of a table, so that none has to be known here.
                let names = SystemNames { coprocessors: None, settings: None };
                let columns = binder::updatable_columns(view, catalog, &names);
                columns.map_or(Updatable::No, Updatable::Columns)
            }
            _ => Updatable::No,
        }
    }

    /// Returns the bits of the statements that there can be.
    pub(super) fn events(&self) -> i32 {
        match self {
            Updatable::No => 0,
            Updatable::Columns(columns) if !columns.contains(&true) => DELETE,
            _ => UPDATE | INSERT | DELETE,
        }
    }

    /// Returns whether rows can be changed and deleted.
    pub(super) fn is_updatable(&self) -> bool {
        self.events() & (UPDATE | DELETE) == UPDATE | DELETE
    }

    /// Returns whether rows can be added.
    pub(super) fn is_insertable(&self) -> bool {
        self.events() & INSERT != 0
    }

    /// Returns whether a column can be changed, by its number.
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
