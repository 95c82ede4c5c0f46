//! CREATE SCHEMA, and the names and owners of schemas.

use std::sync::Arc;

use crate::ast::{self, ObjectKind, Statement, TEMP};
use crate::catalog::access::privilege;
use crate::catalog::access::role::{SessionRole, SessionRoles};
use crate::catalog::schema::SchemaRecord;
use crate::catalog::{CatalogObject, ObjectId};
use crate::ddl::Ddl;
use crate::error::{Error, Result};

impl Ddl<'_> {
    /// Creates a schema. With IF NOT EXISTS, an existing one is only a notice. Returns its name,
    /// after checking that the elements of the statement belong to it.
    pub fn create_schema(&mut self, statement: &ast::CreateSchema) -> Result<String> {
        let catalog = self.catalog();
        let name = match (&statement.name, &statement.owner) {
            (Some(name), _) => name.value.clone(),
            (None, Some(owner)) => self.named_role(&catalog, owner)?.name.clone(),
            (None, None) => self.current_role(&catalog)?.name.clone(),
        };
        self.check_database_privilege(&catalog, privilege::CREATE)?;
        let owner = match &statement.owner {
            Some(owner) => Some(self.named_role(&catalog, owner)?),
            None => None,
        };
        if let Some(owner) = &owner
            && !catalog.is_member_of(self.roles.current.number, owner.number)
        {
            bail!(INSUFFICIENT_PRIVILEGE: "must be member of role \"{}\"", owner.name);
        }
        check_name(&name)?;
        if self.name_exists(&catalog, (ObjectKind::Schema, "", &name), statement.if_not_exists)? {
            return Ok(name);
        }
        let oid = self.take_ids(1)?;
        let schema = SchemaRecord { oid, name: name.clone(), unknown: Default::default() };
        self.store_object(CatalogObject::Schema(Arc::new(schema)))?;
        if let Some(owner) = owner {
            self.own_as(ObjectId::Schema(oid), owner.number)?;
        }
        statement.elements.iter().try_for_each(|element| check_element(element, &name))?;
        Ok(name)
    }

    /// Becomes the owner that CREATE SCHEMA names, who creates its elements; returns the roles from
    /// before.
    pub fn become_owner(&mut self, statement: &ast::CreateSchema) -> Result<SessionRoles> {
        let before = self.roles.clone();
        if let Some(owner) = &statement.owner {
            self.roles.current = SessionRole::of(&*self.named_role(&self.catalog(), owner)?);
        }
        Ok(before)
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

/// Rejects names of system schemas.
pub(super) fn check_name(name: &str) -> Result<()> {
    if name.starts_with("pg_") {
        bail!(RESERVED_NAME: "unacceptable schema name \"{name}\""; detail "The prefix \"pg_\" is reserved for system schemas.");
    }
    Ok(())
}
