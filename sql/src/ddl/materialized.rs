//! Materialized views: a table with the rows, and a view of the same number with the query.
//!
//! REFRESH replaces the store tables by new ones, as TRUNCATE does, so readers see the old rows
//! until the commit, with or without CONCURRENTLY. Rows are written first, then indexes are built.

use std::sync::Arc;

use coprocessors::maintained_view::MaintainedViewObserver;
use store::descriptor::{DataBlockEncoding, Durability};
use store::transaction::TableLockMode;
use store::{FamilyDescriptor, TableId};
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
use crate::ddl::options::TableOptions;
use crate::ddl::temporary::refuse_materialized;
use crate::ddl::{Ddl, DerivedTable, undefined_table};
use crate::error::{Error, Result};
use crate::maintained_views::{self, MaintainedQuery};
use crate::parser;
use crate::storage_options::{OptionScope, invalid};

/// The option of maintained views.
const MAINTAINED: &str = "maintained";

/// The family of the states of groups.
const STATES: &str = "states";

impl Ddl<'_> {
    /// Creates the table of a materialized view, without rows, and returns it. With IF NOT EXISTS,
    /// an existing relation is only a notice. `populated` is false for WITH NO DATA.
    pub fn create_materialized_view(
        &mut self,
        table: &ast::CreateTable,
        definition: ViewDefinition,
        populated: bool,
    ) -> Result<Option<Arc<Table>>> {
        let catalog = self.changes.catalog(self.engine);
        refuse_materialized(&catalog, &definition)?;
        let query = parser::parse_query(&definition.text)?;
        let view = View {
            oid: 0,
            schema: String::new(),
            name: table.name.name.value.clone(),
            columns: definition.columns,
            query: Ok(query.into()),
            text: definition.text,
            relations: definition.relations,
            search_path: SearchPath::clone(&definition.search_path),
            check_option: None,
            security_invoker: None,
            security_barrier: None,
            triggers: Vec::new(),
            row_type: DerivedCache::default(),
            table: DerivedCache::default(),
            unknown: Default::default(),
        };
        let options = TableOptions::read(&table.options, OptionScope::Table)?;
        let created = match options.settings.maintained {
            true => {
                if !options.settings.column_families.is_empty() {
                    return Err(several_families());
                }
                let new = Arc::new(view.clone());
                let query = MaintainedQuery::of_new_view(&new, &catalog, self.system.as_ref())?;
                let keys = query.key_columns();
                let kind = TableKind::Maintained { populated };
                let keyed = with_key(table, &keys);
                self.create_relation(&keyed, DerivedTable { nullable: &keys, kind })?
            }
            false => {
                let kind = TableKind::Materialized { populated };
                self.create_relation(table, DerivedTable { kind, ..DerivedTable::default() })?
            }
        };
        let Some(created) = created else { return Ok(None) };
        let columns = created.visible_columns().map(|column| &created.columns[column]);
        let column = |column: &crate::catalog::table::Column| ViewColumn {
            name: column.name.clone(),
            sql_type: column.sql_type.clone(),
            default: None,
            unknown: Default::default(),
        };
        self.store_view(View {
            oid: created.oid,
            schema: created.schema.clone(),
            name: created.name.clone(),
            columns: columns.map(column).collect(),
            ..view
        })?;
        let catalog = self.changes.catalog(self.engine);
        Ok(catalog.table(created.oid).cloned())
    }

    /// Computes the rows of a maintained view, which has none, and maintains them from now on.
    /// Returns their number.
    pub fn fill_maintained(&mut self, oid: u32) -> Result<u64> {
        let catalog = self.changes.catalog(self.engine);
        let (Some(table), Some(view)) = (catalog.table(oid), catalog.view(oid)) else {
            return Ok(0);
        };
        let query = MaintainedQuery::of_view(view, &catalog)?;
        let source = &query.table;
        if let Some(expiring) = self.engine.coprocessors.expiring(source, None) {
            let what = format!("a maintained view of table \"{}\" with {expiring}", source.name);
            return Err(Error::not_supported(what, maintained_views::NO_EXPIRY));
        }
        self.lock_table(source.id, TableLockMode::AccessExclusive)?;
        // The exclusive lock excludes concurrent writers. Earlier commits must be completely
        // visible, including those that are applied but not yet durable.
        self.engine.store().wait_for_commits()?;
        if source.descriptor.durability == Durability::SkipWal {
            // The rows of the view are in the WAL, so those that they count must not be lost.
            self.engine.store().flush(source.id)?;
        }
        self.transaction.begin_statement();
        self.attach_views(source.oid)?;
        let observer = MaintainedViewObserver::new(query.definition(table));
        Ok(observer.fill(source.id, self.transaction)?)
    }

    /// Attaches the observers of a table, whose maintained views have changed.
    pub(super) fn attach_views(&mut self, table: u32) -> Result<()> {
        self.change_record(table, |_, _| {})
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
        let (Some(populated), Some(view)) = (table.kind.is_populated(), catalog.view(table.oid))
        else {
            bail!(FEATURE_NOT_SUPPORTED: "\"{written}\" is not a materialized view");
        };
        if statement.concurrently && table.is_maintained() {
            return Err(Error::not_supported(
                "REFRESH CONCURRENTLY of a maintained view",
                "Its rows are always current. REFRESH without CONCURRENTLY computes them again.",
            ));
        }
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
        record.kind = record.kind.refreshed(populated);
        let indexes = std::mem::take(&mut record.indexes);
        self.changes.dropped.extend(indexes.iter().map(|index| index.descriptor.id));
        self.store_emptied(&table, record)?;
        if !populated {
            let sources = maintained_views::tables_of(&catalog, &table);
            sources.into_iter().try_for_each(|source| self.attach_views(source))?;
        }
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

/// Returns the definition of a view's table with a primary key.
fn with_key(table: &ast::CreateTable, keys: &[usize]) -> ast::CreateTable {
    let column = |&key: &usize| ast::KeyColumn::ascending(table.columns[key].name.clone());
    let mut table = table.clone();
    table.constraints.push(ast::TableConstraint {
        deferral: ast::Deferral::Never,
        not_valid: false,
        index: ast::IndexClauses::default(),
        name: None,
        kind: ast::ConstraintKind::PrimaryKey(keys.iter().map(column).collect()),
        position: 1,
    });
    table
}

/// Adds the family of the states of groups to the record of a maintained view, whose key is no
/// constraint.
///
/// # Errors
///
/// 0A000 if it has several families.
pub(super) fn add_states(record: &mut TableRecord) -> Result<()> {
    record.primary_key_name.clear();
    let families = &mut Arc::make_mut(&mut record.descriptor).families;
    let [first] = families.as_slice() else {
        return Err(several_families());
    };
    let data_block_encoding = DataBlockEncoding::Rows;
    let state = FamilyDescriptor {
        name: STATES.to_owned(),
        data_block_encoding,
        block_bytes: data_block_encoding.default_block_bytes(),
        value_layout: Arc::default(),
        ..first.clone()
    };
    families.push(state);
    Ok(())
}

fn several_families() -> Error {
    let hint = "Leave out the option column_families.";
    Error::not_supported("column families of a maintained view", hint)
}

/// Rejects the option of materialized views in the definition of a table.
///
/// # Errors
///
/// 22023
pub(super) fn refuse_maintained(options: &[ast::TableOption]) -> Result<()> {
    match options.iter().find(|option| option.name.value == MAINTAINED) {
        Some(option) => Err(invalid(&option.name, "it is an option of materialized views")),
        None => Ok(()),
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
