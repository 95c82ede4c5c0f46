//! ALTER DEFAULT PRIVILEGES: the privileges of objects that a role creates later.
//!
//! Those of all schemas replace the default ones of the kind; those of a schema are added to them.
//! A list without a difference to the default has no record.
//!
//! Source: PostgreSQL's `SetDefaultACL` (aclchk.c).

use crate::ast::{FutureKind, FutureObjects, GrantStatement};
use crate::catalog::access::object_access::{AccessRecord, AccessSubject, FutureSubject};
use crate::catalog::access::privilege::{Acl, AclRecord, PrivilegeKind, names_of, privilege_named};
use crate::catalog::{CatalogEntry, CatalogObject};
use crate::ddl::access::grant::dependent_privileges;
use crate::ddl::{Ddl, no_schema};
use crate::error::{Error, Result};

impl Ddl<'_> {
    /// Executes ALTER DEFAULT PRIVILEGES.
    pub(in crate::ddl) fn change_future_privileges(
        &mut self,
        grant: &GrantStatement,
        objects: &FutureObjects,
        grantees: &[u32],
    ) -> Result<()> {
        let catalog = self.catalog();
        let kind = kind_of(objects.kind);
        let privileges = privileges_of(grant, kind)?;
        if kind == PrivilegeKind::Schema && !objects.schemas.is_empty() {
            bail!(INVALID_GRANT_OPERATION: "cannot use IN SCHEMA clause when using GRANT/REVOKE ON SCHEMAS");
        }
        let mut roles = Vec::new();
        for role in &objects.roles {
            let role = self.named_role(&catalog, role)?;
            if !catalog.is_member_of(self.roles.current.number, role.number) {
                bail!(INSUFFICIENT_PRIVILEGE: "must be member of role \"{}\"", role.name);
            }
            roles.push(role.number);
        }
        if roles.is_empty() {
            roles.push(self.roles.current.number);
        }
        let mut schemas = Vec::new();
        for name in &objects.schemas {
            let schema = catalog.schema(&name.value).ok_or_else(|| no_schema(&name.value))?;
            schemas.push(schema.oid);
        }
        if schemas.is_empty() {
            schemas.push(0);
        }
        for role in roles {
            for schema in &schemas {
                let subject = FutureSubject { role, schema: *schema, kind };
                self.change_future_acl(subject, (grant, privileges), grantees)?;
            }
        }
        Ok(())
    }

    /// Changes the privileges of future objects of one role.
    pub(in crate::ddl) fn change_future_acl(
        &mut self,
        subject: FutureSubject,
        (grant, privileges): (&GrantStatement, u32),
        grantees: &[u32],
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let FutureSubject { role, schema, kind } = subject;
        let default = match schema {
            0 => Acl::default_of(kind, role).sorted(),
            _ => Acl::default(),
        };
        let entry = CatalogEntry::Access(AccessSubject::Future(subject));
        let stored = match catalog.object(&entry) {
            Some(CatalogObject::Access(_, record)) => Some(AccessRecord::clone(record)),
            _ => None,
        };
        let mut acl = stored.as_ref().map_or_else(|| default.clone(), |one| one.acl(kind));
        for grantee in grantees {
            let grantable = if grant.grant_option { privileges } else { 0 };
            let held = if grant.is_revoke && grant.grant_option { 0 } else { privileges };
            let item = AclRecord { grantee: *grantee, grantor: role, privileges: held, grantable };
            match grant.is_revoke {
                true => acl.revoke(&item, (role, grant.cascade)).map_err(dependent_privileges)?,
                false => acl.grant(item),
            }
        }
        let acl = acl.sorted();
        if acl == default {
            return self.remove_object(&entry);
        }
        let acl = Some(acl.0);
        let record = AccessRecord { owner: role, acl, ..stored.unwrap_or_default() };
        self.store_access(AccessSubject::Future(subject), record)
    }

    /// Removes the privileges of some future objects.
    pub(in crate::ddl) fn forget_future_objects(
        &mut self,
        is_removed: impl Fn(FutureSubject, &AccessRecord) -> bool,
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let entries = catalog.accesses().filter_map(|(subject, record)| match subject {
            AccessSubject::Future(future) if is_removed(future, record) => {
                Some(CatalogEntry::Access(subject))
            }
            _ => None,
        });
        entries.collect::<Vec<_>>().iter().try_for_each(|entry| self.remove_object(entry))
    }
}

fn kind_of(kind: FutureKind) -> PrivilegeKind {
    match kind {
        FutureKind::Tables => PrivilegeKind::Table,
        FutureKind::Sequences => PrivilegeKind::Sequence,
        FutureKind::Functions => PrivilegeKind::Function,
        FutureKind::Types => PrivilegeKind::Type,
        FutureKind::Schemas => PrivilegeKind::Schema,
    }
}

/// Returns the privileges of a statement on future objects of a kind.
fn privileges_of(grant: &GrantStatement, kind: PrivilegeKind) -> Result<u32> {
    let of_columns = grant.privileges.iter().any(|one| !one.columns.is_empty());
    if of_columns || !grant.all_columns.is_empty() {
        bail!(INVALID_GRANT_OPERATION: "default privileges cannot be set for columns");
    }
    if grant.privileges.is_empty() {
        return Ok(kind.all());
    }
    let mut privileges = 0;
    for written in &grant.privileges {
        let Some(privilege) = privilege_named(&written.name) else {
            bail!(SYNTAX_ERROR: "unrecognized privilege type \"{}\"", written.name);
        };
        if kind.all() & privilege == 0 {
            let noun = match kind {
                PrivilegeKind::Table => "relation",
                _ => kind.descriptor().noun,
            };
            let name = names_of(privilege).next().unwrap_or_default();
            bail!(INVALID_GRANT_OPERATION: "invalid privilege type {name} for {noun}");
        }
        privileges |= privilege;
    }
    Ok(privileges)
}
