//! Owners and privileges of the objects of a catalog.

use std::sync::Arc;

use crate::catalog::access::object_access::{AccessRecord, AccessSubject};
use crate::catalog::access::privilege::{self, Acl, AclRecord, PrivilegeKind};
use crate::catalog::access::role::{DATABASE_OWNER_ROLE, READ_ALL_DATA_ROLE, WRITE_ALL_DATA_ROLE};
use crate::catalog::name::BOOTSTRAP_ROLE;
use crate::catalog::schema::PUBLIC_OID;
use crate::catalog::{Catalog, CatalogEntry, CatalogObject, ObjectId};
use crate::error::Error;

impl AccessSubject {
    /// Returns the subject of an object; `None` for a role.
    pub fn of(id: ObjectId) -> Option<AccessSubject> {
        Some(match id {
            ObjectId::Table(number) | ObjectId::View(number) | ObjectId::Sequence(number) => {
                AccessSubject::Relation(number)
            }
            ObjectId::Schema(number) => AccessSubject::Schema(number),
            ObjectId::Type(number) => AccessSubject::Type(number),
            ObjectId::Function(number) => AccessSubject::Function(number),
            // The owner of a database is in its record.
            ObjectId::Role(_) | ObjectId::Database(_) => return None,
        })
    }
}

impl Catalog {
    /// Returns the owner and the privileges of an object.
    pub fn access(&self, subject: AccessSubject) -> Arc<AccessRecord> {
        match self.object(&CatalogEntry::Access(subject)) {
            Some(CatalogObject::Access(_, record)) if subject == AccessSubject::Database => {
                // Its owner is in the record of the database.
                let owner = self.default_access(subject).owner;
                Arc::new(AccessRecord { owner, ..AccessRecord::clone(record) })
            }
            Some(CatalogObject::Access(_, record)) => Arc::clone(record),
            _ => Arc::new(self.default_access(subject)),
        }
    }

    /// Returns the owner and the privileges of an object that were never changed.
    fn default_access(&self, subject: AccessSubject) -> AccessRecord {
        if subject != AccessSubject::Schema(PUBLIC_OID) {
            let of_database = || self.database(self.database).map(|one| one.owner());
            let is_database = subject == AccessSubject::Database;
            let owner = is_database.then(of_database).flatten().unwrap_or(BOOTSTRAP_ROLE);
            return AccessRecord { owner, ..AccessRecord::default() };
        }
        let owner = DATABASE_OWNER_ROLE;
        let mut acl = Acl::default_of(PrivilegeKind::Schema, owner);
        let (privileges, grantee) = (privilege::USAGE, privilege::PUBLIC_ROLE);
        acl.grant(AclRecord { grantee, grantor: owner, privileges, grantable: 0 });
        AccessRecord { owner, acl: Some(acl.0), ..AccessRecord::default() }
    }

    /// Returns the stored owners and privileges.
    pub fn accesses(&self) -> impl Iterator<Item = (AccessSubject, &Arc<AccessRecord>)> {
        let first = CatalogEntry::Access(AccessSubject::Relation(0));
        self.objects.range(first..).map_while(|(_, object)| match object {
            CatalogObject::Access(subject, record) => Some((*subject, record)),
            _ => None,
        })
    }

    /// Returns the kind of privileges of an object.
    pub fn privilege_kind(&self, subject: AccessSubject) -> PrivilegeKind {
        match subject {
            AccessSubject::Relation(number) if self.sequence(number).is_some() => {
                PrivilegeKind::Sequence
            }
            AccessSubject::Relation(_) => PrivilegeKind::Table,
            AccessSubject::Schema(_) => PrivilegeKind::Schema,
            AccessSubject::Type(_) => PrivilegeKind::Type,
            AccessSubject::Function(_) => PrivilegeKind::Function,
            AccessSubject::Database => PrivilegeKind::Database,
        }
    }

    /// Returns whether a role has the rights of the owner of an object.
    pub fn is_owner(&self, role: u32, subject: AccessSubject) -> bool {
        self.is_superuser(role) || self.has_privileges_of(role, self.access(subject).owner)
    }

    /// Returns the privileges that a role has on an object, and its grant options.
    pub fn privileges_on(&self, role: u32, subject: AccessSubject) -> (u32, u32) {
        let kind = self.privilege_kind(subject);
        if self.is_superuser(role) {
            return (kind.all(), kind.all());
        }
        let (access, roles) = (self.access(subject), self.roles_of(role, true));
        let (mut held, mut options) = access.acl(kind).held_by(|one| roles.contains(&one));
        if roles.contains(&access.owner) {
            options |= kind.all();
        }
        let of_all = [
            (READ_ALL_DATA_ROLE, privilege::SELECT),
            (WRITE_ALL_DATA_ROLE, privilege::INSERT | privilege::UPDATE | privilege::DELETE),
        ];
        for (_, privileges) in of_all.into_iter().filter(|(role, _)| roles.contains(role)) {
            held |= match kind {
                PrivilegeKind::Schema => privilege::USAGE,
                PrivilegeKind::Table | PrivilegeKind::Sequence => privileges & kind.all(),
                _ => 0,
            };
        }
        (held, options)
    }

    /// Returns the privileges that a role has on a column of a relation, besides those on the
    /// relation.
    pub fn column_privileges(&self, role: u32, relation: u32, position: usize) -> u32 {
        let access = self.access(AccessSubject::Relation(relation));
        if access.columns.is_empty() {
            return 0;
        }
        let roles = self.roles_of(role, true);
        access.column(position).held_by(|one| roles.contains(&one)).0
    }

    /// Returns the error for missing privileges on an object.
    pub fn denied(&self, subject: AccessSubject) -> Error {
        let (noun, name) = self.described(subject);
        err!(INSUFFICIENT_PRIVILEGE: "permission denied for {noun} {name}")
    }

    /// Returns the error for a statement that only the owner of an object may execute.
    pub fn not_owner(&self, subject: AccessSubject) -> Error {
        let (noun, name) = self.described(subject);
        err!(INSUFFICIENT_PRIVILEGE: "must be owner of {noun} {name}")
    }

    /// Returns the noun and the name of an object in messages on privileges.
    pub fn described(&self, subject: AccessSubject) -> (&'static str, String) {
        match subject {
            AccessSubject::Relation(number) => match (self.table(number), self.view(number)) {
                (Some(table), None) => ("table", table.name.clone()),
                (Some(table), Some(_)) => ("materialized view", table.name.clone()),
                (None, Some(view)) => ("view", view.name.clone()),
                (None, None) => (
                    "sequence",
                    self.sequence(number).map(|one| one.name.clone()).unwrap_or_default(),
                ),
            },
            AccessSubject::Schema(number) => {
                let schema = self.schemas().find(|one| one.oid == number);
                ("schema", schema.map(|one| one.name.clone()).unwrap_or_default())
            }
            AccessSubject::Type(number) => (
                "type",
                self.user_type(number).map(|one| one.name().to_owned()).unwrap_or_default(),
            ),
            AccessSubject::Function(number) => {
                let function = self.function(number);
                let noun = match function.is_some_and(|one| one.record.is_procedure()) {
                    true => "procedure",
                    false => "function",
                };
                (noun, function.map(|one| one.record.name.clone()).unwrap_or_default())
            }
            AccessSubject::Database => {
                let database = self.database(self.database);
                ("database", database.map(|one| one.name.clone()).unwrap_or_default())
            }
        }
    }
}
