//! View as a table: the form of a view that its triggers are on, without rows in the store.
//!
//! A statement that INSTEAD OF triggers execute has this table as its target: its columns are those
//! of the view, its id in the store is the view's number, which no table has, and its key is empty.

use std::sync::Arc;

use coprocessors::constraint::ConstraintSpec;
use coprocessors::violation::TableName;
use store::{FamilyDescriptor, TableDescriptor, TableId};
use types::Datum;
use types::rowcode::{ColumnPlace, LayoutColumn, RowLayout};

use crate::catalog::Catalog;
use crate::catalog::derived_cache::DerivedCache;
use crate::catalog::record::TableKind;
use crate::catalog::table::{Column, RowSecurity, Table};
use crate::catalog::view::{View, ViewColumn};

impl Table {
    /// Returns the form of a view. Defaults, domains and collations of its columns are missing.
    pub(super) fn of_view(view: &View) -> Table {
        let column = |column: &ViewColumn| Column {
            name: column.name.clone(),
            sql_type: column.sql_type.clone(),
            not_null: false,
            default: None,
            identity: None,
            generated: None,
            domain: None,
            collation: None,
            dropped: false,
        };
        let layout = Arc::new(layout_of(view));
        let constraints = ConstraintSpec {
            table: TableName { schema: view.schema.clone(), name: view.name.clone() },
            column_names: view.columns.iter().map(|column| column.name.clone()).collect(),
            layout: Arc::clone(&layout),
            not_null: Vec::new(),
            checks: Vec::new(),
            primary_key_name: String::new(),
        };
        Table {
            oid: view.oid,
            id: TableId(view.oid),
            schema: view.schema.clone(),
            name: view.name.clone(),
            kind: TableKind::Ordinary,
            is_view: true,
            columns: view.columns.iter().map(column).collect(),
            generated: Vec::new(),
            layout,
            column_cells: false,
            primary_key_name: String::new(),
            constraints: Arc::new(constraints),
            indexes: Vec::new(),
            foreign_keys: Vec::new(),
            without_triggers: false,
            client_timestamps: false,
            cell_ttl: false,
            triggers: view.triggers.clone(),
            row_security: RowSecurity::default(),
            coprocessors: Arc::default(),
            descriptor: Arc::new(descriptor_of(view)),
            row_type: DerivedCache::default(),
        }
    }
}

fn layout_of(view: &View) -> RowLayout {
    let column = |(slot, column): (usize, &ViewColumn)| LayoutColumn {
        data_type: column.sql_type.base.clone(),
        place: ColumnPlace::Packed { cell: 0, slot },
        missing: Datum::Null,
    };
    RowLayout::new(view.columns.iter().enumerate().map(column).collect(), Vec::new(), 1)
}

fn descriptor_of(view: &View) -> TableDescriptor {
    TableDescriptor::new(TableId(view.oid), view.name.clone(), vec![FamilyDescriptor::new("0")])
}

impl Catalog {
    /// Returns a table by its number, or a view in the form of a table.
    pub fn table_or_view(&self, oid: u32) -> Option<&Arc<Table>> {
        self.table(oid).or_else(|| self.view(oid).map(|view| view.as_table()))
    }

    /// Returns the table whose rows are in a store table, or the view with triggers of its number.
    pub fn target(&self, id: TableId) -> Option<&Arc<Table>> {
        let view = || self.view(id.0).filter(|view| !view.triggers.is_empty());
        self.table_stored(id).or_else(|| view().map(|view| view.as_table()))
    }

    /// Returns the tables and views that have triggers, by schema and name.
    pub fn with_triggers(&self) -> Vec<&Arc<Table>> {
        let views = self.views().filter(|view| !view.triggers.is_empty());
        let views = views.map(|view| view.as_table());
        let tables = self.tables_by_age().filter(|table| !table.triggers.is_empty());
        let mut all: Vec<_> = tables.chain(views).collect();
        all.sort_by(|a, b| (&a.schema, &a.name).cmp(&(&b.schema, &b.name)));
        all
    }
}
