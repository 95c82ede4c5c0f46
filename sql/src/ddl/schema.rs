//! CREATE SCHEMA and ALTER SCHEMA.

use std::sync::Arc;

use crate::ast::{self, RenameTarget, Role, Statement, TEMP};
use crate::catalog::name::OWNER;
use crate::catalog::schema::{SYSTEM_SCHEMAS, SchemaRecord};
use crate::catalog::{Catalog, CatalogObject};
use crate::ddl::{Ddl, no_schema};
use crate::error::{Error, Result, sqlstate};

impl Ddl<'_> {
    /// Creates a schema. With IF NOT EXISTS, an existing one is only a notice. Returns its name,
    /// after checking that the elements of the statement belong to it.
    pub fn create_schema(&mut self, statement: &ast::CreateSchema) -> Result<String> {
        let catalog = self.catalog();
        let name = match (&statement.name, &statement.owner) {
            (Some(name), _) | (None, Some(Role::Named(name))) => name.value.clone(),
            (None, _) => self.user.clone(),
        };
        check_name(&name)?;
        statement.owner.as_ref().map_or(Ok(()), |owner| self.check_owner(owner))?;
        if exists(&catalog, &name) {
            let message = format!("schema \"{name}\" already exists");
            if statement.if_not_exists {
                self.add_notice(sqlstate::DUPLICATE_SCHEMA, format!("{message}, skipping"));
                return Ok(name);
            }
            bail!(DUPLICATE_SCHEMA: message);
        }
        let oid = self.take_ids(1)?;
        let schema = SchemaRecord { oid, name: name.clone() };
        self.store_object(CatalogObject::Schema(Arc::new(schema)))?;
        statement.elements.iter().try_for_each(|element| check_element(element, &name))?;
        Ok(name)
    }

    /// Rejects any owner but the only one.
    pub(super) fn check_owner(&self, role: &Role) -> Result<()> {
        let name = match role {
            Role::Named(name) => &name.value,
            Role::Current(_) => &self.user,
        };
        if name == OWNER {
            return Ok(());
        }
        if name != &self.user {
            bail!(UNDEFINED_OBJECT: "role \"{name}\" does not exist");
        }
        let what = format!("changing the owner to role \"{name}\"");
        Err(Error::not_supported(what, format!("Role {OWNER} owns all objects.")))
    }

    /// Renames a schema, or changes its owner.
    pub(super) fn alter_schema(&mut self, name: &str, to: &RenameTarget) -> Result<()> {
        let catalog = self.catalog();
        let schema = catalog.schema(name).ok_or_else(|| no_schema(name))?;
        let Some(new) = self.new_name(&catalog, ("", name), to)?.map(|new| new.name) else {
            return Ok(());
        };
        check_name(&new)?;
        if exists(&catalog, &new) {
            bail!(DUPLICATE_SCHEMA: "schema \"{new}\" already exists");
        }
        self.move_relations(name, &new)?;
        let renamed = SchemaRecord { oid: schema.oid, name: new };
        self.store_object(CatalogObject::Schema(Arc::new(renamed)))
    }
}

/// Checks that an element of CREATE SCHEMA is created in that schema.
fn check_element(element: &Statement, schema: &str) -> Result<()> {
    let name = match element {
        Statement::CreateTable(create) => &create.name,
        Statement::CreateView(create) => &create.name,
        Statement::CreateSequence(create) => &create.name,
        Statement::CreateIndex(create) => &create.table,
        _ => return Ok(()),
    };
    match name.schema.as_ref().filter(|given| given.value != schema) {
        None => Ok(()),
        Some(given) if given.value == TEMP => {
            bail!(INVALID_TABLE_DEFINITION: "cannot create temporary relation in non-temporary schema"; at given.position)
        }
        Some(given) => {
            bail!(INVALID_SCHEMA_DEFINITION: "CREATE specifies a schema ({}) different from the one being created \
                ({schema})", given.value)
        }
    }
}

fn exists(catalog: &Catalog, name: &str) -> bool {
    catalog.schema(name).is_some() || SYSTEM_SCHEMAS.contains(&name)
}

fn check_name(name: &str) -> Result<()> {
    if name.starts_with("pg_") {
        bail!(RESERVED_NAME: "unacceptable schema name \"{name}\""; detail "The prefix \"pg_\" is reserved for system schemas.");
    }
    Ok(())
}
