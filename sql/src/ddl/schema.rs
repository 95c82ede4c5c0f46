//! CREATE SCHEMA and ALTER SCHEMA.

use ahash::AHashMap;
use store::Mutation;

use crate::ast;
use crate::catalog::Catalog;
use crate::catalog::name::OWNER;
use crate::catalog::record::{CATALOG_TABLE, encode};
use crate::catalog::schema::{SYSTEM_SCHEMAS, Schema, schema_key};
use crate::ddl::{Ddl, no_schema};
use crate::error::{Error, Result, sqlstate};

impl Ddl<'_> {
    /// Creates a schema; only says so if it exists and the statement allows that.
    pub fn create_schema(&mut self, statement: &ast::CreateSchema) -> Result<()> {
        let catalog = self.lock_catalog()?;
        let name = &statement.name.value;
        check_name(name)?;
        statement.owner.as_ref().map_or(Ok(()), check_owner)?;
        if exists(&catalog, name) {
            let message = format!("schema \"{name}\" already exists");
            if statement.if_not_exists {
                self.note(sqlstate::DUPLICATE_SCHEMA, format!("{message}, skipping"));
                return Ok(());
            }
            return Err(Error::new(sqlstate::DUPLICATE_SCHEMA, message));
        }
        let oid = self.next_id()?;
        self.write_next_id(oid + 1)?;
        self.store_schema(&catalog, Schema { oid, name: name.clone(), relations: AHashMap::new() })
    }

    /// Renames a schema.
    pub fn rename_schema(&mut self, statement: &ast::RenameSchema) -> Result<()> {
        let catalog = self.lock_catalog()?;
        let (name, new) = (&statement.name.value, &statement.new_name.value);
        let schema = catalog.schema(name).ok_or_else(|| no_schema(name))?;
        check_name(new)?;
        if exists(&catalog, new) {
            let message = format!("schema \"{new}\" already exists");
            return Err(Error::new(sqlstate::DUPLICATE_SCHEMA, message));
        }
        let renamed = Schema { oid: schema.oid, name: new.clone(), relations: AHashMap::new() };
        self.move_relations(name, new)?;
        let catalog = self.changes.catalog(self.engine).without_schema(name);
        let held = catalog.schema(new).map(|schema| schema.relations.clone());
        self.store_schema(&catalog, Schema { relations: held.unwrap_or_default(), ..renamed })
    }

    pub(super) fn store_schema(&mut self, catalog: &Catalog, schema: Schema) -> Result<()> {
        let row =
            Mutation::new(schema_key(schema.oid)).put(0, Vec::new(), encode(&schema.record()));
        self.transaction.mutate(CATALOG_TABLE, vec![row])?;
        self.changes.set_catalog(catalog.with_schema(schema));
        Ok(())
    }
}

/// Refuses another owner than the one that there is.
pub(super) fn check_owner(role: &ast::Ident) -> Result<()> {
    if role.value == OWNER {
        return Ok(());
    }
    let what = format!("giving something to role \"{}\"", role.value);
    Err(Error::not_supported(what, format!("Everything belongs to role {OWNER}.")))
}

fn exists(catalog: &Catalog, name: &str) -> bool {
    catalog.schema(name).is_some() || SYSTEM_SCHEMAS.contains(&name)
}

fn check_name(name: &str) -> Result<()> {
    if name.starts_with("pg_") {
        let message = format!("unacceptable schema name \"{name}\"");
        return Err(Error::new(sqlstate::RESERVED_NAME, message)
            .with_detail("The prefix \"pg_\" is reserved for system schemas."));
    }
    Ok(())
}
