//! Temporary tables, views and sequences, in a schema of the session.
//!
//! The schema is created with its first object, named after the session
//! ([`SearchPath::temp`](crate::catalog::name::SearchPath::temp)), and dropped at the end of the
//! session; after a crash, when the store is opened. Otherwise its tables are ordinary tables.

use crate::ast;
use crate::ast::OnCommit;
use crate::binder::ViewDefinition;
use crate::catalog::access::privilege;
use crate::catalog::name::{TEMP, is_temporary};
use crate::catalog::object::Object;
use crate::catalog::record::TableRecord;
use crate::catalog::schema::SchemaRecord;
use crate::catalog::{Catalog, CatalogObject, ObjectId};
use crate::ddl::Ddl;
use crate::error::{Error, Result, sqlstate};

impl Ddl<'_> {
    /// Returns the session's temporary schema, and creates it if necessary.
    pub(super) fn temporary_schema(&mut self) -> Result<String> {
        let Some(name) = self.path.temp().map(str::to_owned) else {
            let hint = "Use a session of the server.";
            return Err(Error::not_supported("a temporary table here", hint));
        };
        let catalog = self.catalog();
        if self.check_database_privilege(&catalog, privilege::TEMPORARY).is_err() {
            let database = catalog.current_database();
            bail!(INSUFFICIENT_PRIVILEGE: "permission denied to create temporary tables in database \"{database}\"");
        }
        if catalog.schema(&name).is_none() {
            let oid = self.take_ids(1)?;
            let schema = SchemaRecord { oid, name: name.clone(), unknown: Default::default() };
            self.store_object(CatalogObject::Schema(schema.into()))?;
        }
        Ok(name)
    }

    /// Drops a temporary schema with all its objects.
    pub fn drop_temporary(&mut self, schema: &str) -> Result<()> {
        let catalog = self.catalog();
        let Some(schema) = catalog.schema(schema) else { return Ok(()) };
        self.drop_objects(&[Object::Whole(ObjectId::Schema(schema.oid))], true)?;
        self.notices.clear();
        Ok(())
    }

    /// Applies ON COMMIT to temporary tables.
    ///
    /// # Errors
    ///
    /// 0A000 if a table to empty is referenced by one that is not emptied.
    pub fn end_temporary(&mut self, tables: &[u32]) -> Result<()> {
        let catalog = self.catalog();
        let emptied = tables.iter().filter_map(|table| catalog.record(*table));
        for record in emptied.filter(|record| record.on_commit == OnCommit::DeleteRows) {
            let mut others = catalog.referencing(record.oid).map(|(other, _)| other);
            if let Some(other) = others.find(|other| !tables.contains(&other.oid)) {
                return Err(unlike_references(&other.name, &record.name));
            }
        }
        for &oid in tables {
            let catalog = self.catalog();
            let Some(table) = catalog.table(oid).cloned() else { continue };
            match self.record_of(&catalog, &table)?.on_commit {
                OnCommit::PreserveRows => {}
                OnCommit::DeleteRows => self.empty(&table)?,
                OnCommit::Drop => {
                    self.drop_objects(&[Object::Whole(ObjectId::Table(oid))], true)?;
                    self.notices.clear();
                }
            }
        }
        Ok(())
    }

    /// Makes a view over temporary relations temporary: returns the statement with the temporary
    /// schema, if its name is unqualified.
    ///
    /// # Errors
    ///
    /// 42P16 if it names another schema.
    pub fn place_view(
        &mut self,
        catalog: &Catalog,
        statement: &ast::CreateView,
        definition: &ViewDefinition,
    ) -> Result<Option<ast::CreateView>> {
        let is_own = |schema: &ast::Ident| {
            schema.value == TEMP || self.path.temp() == Some(schema.value.as_str())
        };
        let schema = statement.name.schema.as_ref();
        if schema.is_some_and(is_own) || !reads_temporary(catalog, definition) {
            return Ok(None);
        }
        if schema.is_some() {
            bail!(INVALID_TABLE_DEFINITION: "cannot create temporary relation in non-temporary schema");
        }
        let mut placed = statement.clone();
        let name = &statement.name.name;
        let schema = ast::Ident { value: TEMP.to_owned(), position: name.position };
        self.add_notice(
            sqlstate::SUCCESSFUL_COMPLETION,
            format!("view \"{}\" will be a temporary view", name.value),
        );
        placed.name.schema = Some(schema);
        Ok(Some(placed))
    }
}

fn unlike_references(from: &str, to: &str) -> Error {
    err!(FEATURE_NOT_SUPPORTED: "unsupported ON COMMIT and foreign key combination";
        detail "Table \"{from}\" references \"{to}\", but they do not have the same ON COMMIT setting.")
}

/// Rejects materialized views over temporary relations.
pub(super) fn refuse_materialized(catalog: &Catalog, definition: &ViewDefinition) -> Result<()> {
    if !reads_temporary(catalog, definition) {
        return Ok(());
    }
    bail!(FEATURE_NOT_SUPPORTED: "materialized views must not use temporary tables or views")
}

fn reads_temporary(catalog: &Catalog, definition: &ViewDefinition) -> bool {
    definition.relations.iter().any(|one| {
        let table = catalog.table(one.oid).map(|table| &table.schema);
        let schema = table.or_else(|| catalog.view(one.oid).map(|view| &view.schema));
        schema.is_some_and(|schema| is_temporary(schema))
    })
}

/// Checks the persistence of a foreign key's tables: temporary tables may reference only temporary
/// ones, permanent tables only permanent ones.
pub(super) fn check_reference(from: &TableRecord, to: &TableRecord) -> Result<()> {
    let is_permanent = !is_temporary(&to.schema) && !to.retained.unlogged;
    let message = if is_temporary(&from.schema) {
        if is_temporary(&to.schema) {
            return Ok(());
        }
        "constraints on temporary tables may reference only temporary tables"
    } else if from.retained.unlogged {
        if !is_temporary(&to.schema) {
            return Ok(());
        }
        "constraints on unlogged tables may reference only permanent or unlogged tables"
    } else {
        if is_permanent {
            return Ok(());
        }
        "constraints on permanent tables may reference only permanent tables"
    };
    bail!(INVALID_TABLE_DEFINITION: message)
}
