//! REASSIGN OWNED and DROP OWNED: the objects and privileges of roles.
//!
//! They concern the objects of the database and the shared objects. What each role owns is found by
//! the records of owners and privileges.
//!
//! Source: PostgreSQL's `shdepReassignOwned` and `shdepDropOwned` (pg_shdepend.c).

use std::sync::Arc;

use crate::ast::{GrantObjects, GrantStatement, OwnedAction, OwnedStatement};
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::access::role::RoleRecord;
use crate::catalog::object::Object;
use crate::catalog::{Catalog, ObjectId};
use crate::catalog_reader::referenced_roles;
use crate::ddl::Ddl;
use crate::ddl::access::owner::depends;
use crate::error::{Error, Result};

impl Ddl<'_> {
    /// Executes REASSIGN OWNED or DROP OWNED.
    pub fn change_owned(&mut self, statement: &OwnedStatement) -> Result<()> {
        let catalog = self.catalog();
        let roles = statement.roles.iter().map(|role| self.named_role(&catalog, role));
        let roles: Vec<Arc<RoleRecord>> = roles.collect::<Result<_>>()?;
        let (verb, effect) = match &statement.action {
            OwnedAction::Reassign(_) => ("reassign", "reassign ownership of"),
            OwnedAction::Drop(_) => ("drop", "drop"),
        };
        let may = |role: &RoleRecord| match catalog
            .has_privileges_of(self.roles.current.number, role.number)
        {
            true => Ok(()),
            false => bail!(INSUFFICIENT_PRIVILEGE: "permission denied to {verb} objects"),
        };
        roles.iter().try_for_each(|role| may(role))?;
        let to = match &statement.action {
            OwnedAction::Reassign(to) => Some(self.named_role(&catalog, to)?),
            OwnedAction::Drop(_) => None,
        };
        to.iter().try_for_each(|role| may(role))?;
        if let Some(role) = roles.iter().find(|role| role.is_standard()) {
            bail!(DEPENDENT_OBJECTS_STILL_EXIST:
                "cannot {effect} objects owned by role {} because they are required by the database system", role.name);
        }
        let numbers: Vec<u32> = roles.iter().map(|role| role.number).collect();
        match (&statement.action, to) {
            (OwnedAction::Drop(cascade), _) => self.drop_owned(&numbers, *cascade),
            (OwnedAction::Reassign(_), Some(to)) => self.reassign_owned(&numbers, &to),
            (OwnedAction::Reassign(_), None) => Ok(()),
        }
    }

    /// Gives the objects of roles to another role.
    fn reassign_owned(&mut self, roles: &[u32], to: &RoleRecord) -> Result<()> {
        let before = self.changes.catalog(self.engine);
        for subject in owned_by(&before, roles) {
            let Some(id) = before.object_of(subject) else { continue };
            // The role may have become the owner of the schema.
            let catalog = self.changes.catalog(self.engine);
            // As in PostgreSQL, relations and types are given without the privilege CREATE.
            if matches!(id, ObjectId::Schema(_) | ObjectId::Function(_)) {
                self.check_may_give(&catalog, &Object::Whole(id), to)?;
            }
            self.give(subject, to.number)?;
        }
        Ok(())
    }

    /// Drops the objects of roles in this database, and revokes their privileges.
    fn drop_owned(&mut self, roles: &[u32], cascade: bool) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        for role in roles {
            self.revoke_all(&catalog, *role)?;
            self.forget_policies_of(*role)?;
        }
        self.forget_future_objects(|subject, _| roles.contains(&subject.role))?;
        let owned = owned_by(&catalog, roles);
        let ids = owned.into_iter().filter_map(|subject| catalog.object_of(subject));
        let of_database = ids.filter(|id| !matches!(id, ObjectId::Database(_)));
        let objects: Vec<Object> = of_database.map(Object::Whole).collect();
        self.drop_objects(&objects, cascade)
    }

    /// Revokes all privileges of a role on the objects of others.
    fn revoke_all(&mut self, catalog: &Catalog, role: u32) -> Result<()> {
        let grant = GrantStatement {
            is_revoke: true,
            privileges: Vec::new(),
            all_columns: Vec::new(),
            objects: GrantObjects::Named(Vec::new()),
            grantees: Vec::new(),
            grant_option: false,
            granted_by: None,
            cascade: true,
        };
        let stored = catalog.accesses().map(|(subject, record)| (subject, Arc::clone(record)));
        for (subject, record) in stored.chain(catalog.database_accesses()) {
            if record.owner == role || !record.roles().any(|one| one == role) {
                continue;
            }
            let kind = catalog.privilege_kind(subject);
            match subject {
                AccessSubject::Future(future) => {
                    self.change_future_acl(future, (&grant, kind.all()), &[role])?;
                }
                _ => self.change_privileges_on(&grant, (subject, kind), &[role])?,
            }
        }
        Ok(())
    }

    /// Returns the error for a role that objects of other databases reference; `None` if none does.
    pub(in crate::ddl) fn dependents_elsewhere(
        &self,
        catalog: &Catalog,
        role: &RoleRecord,
    ) -> Result<Option<Error>> {
        let mut lines = Vec::new();
        for database in catalog.databases().filter(|one| one.oid != catalog.database) {
            let roles = referenced_roles(self.engine.store(), database.catalog_table())?;
            match roles.iter().filter(|of_object| of_object.contains(&role.number)).count() {
                0 => {}
                1 => lines.push(format!("1 object in database {}", database.name)),
                count => lines.push(format!("{count} objects in database {}", database.name)),
            }
        }
        Ok((!lines.is_empty()).then(|| depends(role, lines.join("\n"))))
    }
}

/// Returns what the roles own, oldest first.
fn owned_by(catalog: &Catalog, roles: &[u32]) -> Vec<AccessSubject> {
    let stored = catalog.accesses().map(|(subject, record)| (subject, record.owner));
    let databases = catalog.database_accesses().map(|(subject, record)| (subject, record.owner));
    let all = stored.chain(databases).filter(|(_, owner)| roles.contains(owner));
    let mut owned: Vec<AccessSubject> = all.map(|(subject, _)| subject).collect();
    owned.sort_by_key(|subject| subject.number());
    owned
}
