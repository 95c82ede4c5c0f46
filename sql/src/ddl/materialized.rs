//! Materialized views: a table with the rows, and a view of the same number with the query.
//!
//! REFRESH replaces the store tables by new ones, as TRUNCATE does, so readers see the old rows
//! until the commit, with or without CONCURRENTLY. Rows are written first, then indexes are built.

use std::sync::Arc;

use store::TableId;
use store::transaction::TableLockMode;
use types::expr::Expr;

use crate::ast;
use crate::binder::ViewDefinition;
use crate::catalog::derived_cache::DerivedCache;
use crate::catalog::name::SearchPath;
use crate::catalog::record::TableKind;
use crate::catalog::record::{IndexRecord, TableRecord};
use crate::catalog::table::{Index, Table};
use crate::catalog::view::{View, ViewColumn};
use crate::catalog::{Catalog, CatalogRelation};
use crate::ddl::temporary::refuse_materialized;
use crate::ddl::{Ddl, undefined_table};
use crate::error::{Error, Result};
use crate::parser;

impl Ddl<'_> {
    /// Creates the table of a materialized view, without rows, and returns it. With IF NOT EXISTS,
    /// an existing relation is only a notice. `populated` is false for WITH NO DATA.
    pub fn create_materialized_view(
        &mut self,
        table: &ast::CreateTable,
        definition: ViewDefinition,
        populated: bool,
    ) -> Result<Option<Arc<Table>>> {
        refuse_materialized(&self.changes.catalog(self.engine), &definition)?;
        let Some(created) = self.create_table(table)? else { return Ok(None) };
        self.change_record(created.oid, |_, record| {
            record.kind = TableKind::Materialized { populated };
        })?;
        let columns = created.visible_columns().map(|column| &created.columns[column]);
        let column = |column: &crate::catalog::table::Column| ViewColumn {
            name: column.name.clone(),
            sql_type: column.sql_type.clone(),
            default: None,
            unknown: Default::default(),
        };
        let query = parser::parse_query(&definition.text)?;
        self.store_view(View {
            oid: created.oid,
            schema: created.schema.clone(),
            name: created.name.clone(),
            columns: columns.map(column).collect(),
            query: Ok(query.into()),
            text: definition.text,
            relations: definition.relations,
            search_path: SearchPath::clone(&definition.search_path),
            check_option: None,
            row_type: DerivedCache::default(),
            unknown: Default::default(),
        })?;
        let catalog = self.changes.catalog(self.engine);
        Ok(catalog.table(created.oid).cloned())
    }

    /// Locks a materialized view against concurrent refreshes, and returns its query.
    ///
    /// # Errors
    ///
    /// PostgreSQL's for relations that cannot be refreshed.
    pub fn begin_refresh(&mut self, statement: &ast::Refresh) -> Result<Arc<View>> {
        let catalog = self.catalog();
        let written = &statement.name.name.value;
        let table = match self.find(&catalog, &statement.name) {
            None => return Err(Error { position: None, ..undefined_table(&statement.name) }),
            Some(CatalogRelation::Table(table)) => table,
            Some(_) => {
                bail!(WRONG_OBJECT_TYPE: "\"{written}\" is not a table or materialized view");
            }
        };
        let (TableKind::Materialized { populated }, Some(view)) =
            (table.kind, catalog.view(table.oid))
        else {
            bail!(FEATURE_NOT_SUPPORTED: "\"{written}\" is not a materialized view");
        };
        if statement.concurrently {
            check_concurrently(&catalog, table, (populated, statement.with_data))?;
        }
        let mode = match statement.concurrently {
            true => TableLockMode::Exclusive,
            false => TableLockMode::AccessExclusive,
        };
        self.lock_table(table.id, mode)?;
        Ok(Arc::clone(view))
    }

    /// Replaces the store tables of a materialized view by new, empty ones. Returns the table
    /// without its indexes, and the records of these.
    pub fn begin_rows(
        &mut self,
        oid: u32,
        populated: bool,
    ) -> Result<Option<(Arc<Table>, Vec<IndexRecord>)>> {
        let catalog = self.changes.catalog(self.engine);
        let Some(table) = catalog.table(oid).cloned() else { return Ok(None) };
        let mut record = TableRecord::clone(self.record_of(&catalog, &table)?.as_ref());
        record.kind = TableKind::Materialized { populated };
        let indexes = std::mem::take(&mut record.indexes);
        self.changes.dropped.extend(indexes.iter().map(|index| index.descriptor.id));
        self.store_emptied(&table, record)?;
        let catalog = self.changes.catalog(self.engine);
        Ok(catalog.table(oid).cloned().map(|table| (table, indexes)))
    }

    /// Builds indexes over the rows of a table, whose lock must be held.
    pub fn build_indexes(&mut self, oid: u32, indexes: Vec<IndexRecord>) -> Result<()> {
        for mut index in indexes {
            let catalog = self.changes.catalog(self.engine);
            let Some(table) = catalog.table(oid).cloned() else { return Ok(()) };
            let mut record = TableRecord::clone(self.record_of(&catalog, &table)?.as_ref());
            let id = self.take_ids(1)?;
            Arc::make_mut(&mut index.descriptor).id = TableId(id);
            record.indexes.push(index);
            let at = record.indexes.len() - 1;
            self.build_index(&catalog, &table, record, at)?;
        }
        Ok(())
    }
}

/// Rejects REFRESH CONCURRENTLY where PostgreSQL does.
fn check_concurrently(
    catalog: &Catalog,
    table: &Table,
    (populated, with_data): (bool, bool),
) -> Result<()> {
    if !populated {
        bail!(FEATURE_NOT_SUPPORTED: "CONCURRENTLY cannot be used when the materialized view is not populated");
    }
    if !with_data {
        bail!(SYNTAX_ERROR: "CONCURRENTLY and WITH NO DATA options cannot be used together");
    }
    let is_column = |key: &Expr| matches!(key, Expr::Column { .. });
    let tells_rows_apart = |index: &Arc<Index>| {
        index.spec.is_unique_everywhere() && index.spec.keys.iter().all(is_column)
    };
    if catalog.table(table.oid).is_some_and(|table| table.indexes.iter().any(tells_rows_apart)) {
        return Ok(());
    }
    bail!(OBJECT_NOT_IN_PREREQUISITE_STATE: "cannot refresh materialized view \"{}\" concurrently", full_name(table);
        hint "Create a unique index with no WHERE clause on one or more columns of the materialized view.")
}

/// Returns the qualified name of a table, for messages.
fn full_name(table: &Table) -> String {
    table.full_name().to_string()
}
