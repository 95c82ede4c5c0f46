//! Owners and privileges of the objects of a catalog.

use std::sync::Arc;

use crate::catalog::access::object_access::{AccessRecord, AccessSubject, FutureSubject};
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
            ObjectId::Database(number) => AccessSubject::Database(number),
            ObjectId::Role(_) => return None,
        })
    }
}

impl Catalog {
    /// Returns the owner and the privileges of an object.
    pub fn access(&self, subject: AccessSubject) -> Arc<AccessRecord> {
        match self.object(&CatalogEntry::Access(subject)) {
            Some(CatalogObject::Access(_, record)) => Arc::clone(record),
            _ => Arc::new(self.default_access(subject)),
        }
    }

    /// Returns the owner and the privileges of an object without a record of them.
    fn default_access(&self, subject: AccessSubject) -> AccessRecord {
        if let AccessSubject::Database(number) = subject
            && let Some(database) = self.database(number)
        {
            let (owner, acl) = (database.owner(), database.acl.clone());
            return AccessRecord { owner, acl, ..AccessRecord::default() };
        }
        if subject != AccessSubject::Schema(PUBLIC_OID) {
            return AccessRecord { owner: BOOTSTRAP_ROLE, ..AccessRecord::default() };
        }
        let owner = DATABASE_OWNER_ROLE;
        let mut acl = Acl::default_of(PrivilegeKind::Schema, owner);
        let (privileges, grantee) = (privilege::USAGE, privilege::PUBLIC_ROLE);
        acl.grant(AclRecord { grantee, grantor: owner, privileges, grantable: 0 });
        AccessRecord { owner, acl: Some(acl.0), ..AccessRecord::default() }
    }

    /// Returns the owners and privileges of the databases.
    pub fn database_accesses(&self) -> impl Iterator<Item = (AccessSubject, Arc<AccessRecord>)> {
        let subjects = self.databases().map(|one| AccessSubject::Database(one.oid));
        subjects.map(|subject| (subject, self.access(subject)))
    }

    /// Returns the privileges that a new object of a role has, if they are not those that all
    /// objects of the kind have by default. `schema`: the number of its schema, or 0.
    pub fn future_acl(&self, kind: PrivilegeKind, role: u32, schema: u32) -> Option<Acl> {
        let stored = |schema| {
            let subject = AccessSubject::Future(FutureSubject { role, schema, kind });
            match self.object(&CatalogEntry::Access(subject)) {
                Some(CatalogObject::Access(_, record)) => Some(record.acl(kind)),
                _ => None,
            }
        };
        let of_schema = (schema != 0).then(|| stored(schema)).flatten();
        let default = Acl::default_of(kind, role).sorted();
        let mut acl = stored(0).unwrap_or_else(|| default.clone());
        for item in of_schema.map(|acl| acl.0).into_iter().flatten() {
            acl.grant(item);
        }
        Some(acl.sorted()).filter(|acl| *acl != default)
    }

    /// Returns the object of a subject; `None` for objects that are created later.
    pub fn object_of(&self, subject: AccessSubject) -> Option<ObjectId> {
        Some(match subject {
            AccessSubject::Relation(number) if self.table(number).is_some() => {
                ObjectId::Table(number)
            }
            AccessSubject::Relation(number) if self.view(number).is_some() => {
                ObjectId::View(number)
            }
            AccessSubject::Relation(number) => ObjectId::Sequence(number),
            AccessSubject::Schema(number) => ObjectId::Schema(number),
            AccessSubject::Type(number) => ObjectId::Type(number),
            AccessSubject::Function(number) => ObjectId::Function(number),
            AccessSubject::Database(number) => ObjectId::Database(number),
            AccessSubject::Future(_) => return None,
        })
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
            AccessSubject::Database(_) => PrivilegeKind::Database,
            AccessSubject::Future(future) => future.kind,
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

    /// Returns the noun of objects that are created later.
    fn future_noun(&self, subject: AccessSubject) -> &'static str {
        match self.privilege_kind(subject) {
            PrivilegeKind::Sequence => "default privileges on new sequences",
            PrivilegeKind::Function => "default privileges on new functions",
            PrivilegeKind::Type => "default privileges on new types",
            PrivilegeKind::Schema => "default privileges on new schemas",
            _ => "default privileges on new relations",
        }
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
            AccessSubject::Database(number) => {
                let database = self.database(number);
                ("database", database.map(|one| one.name.clone()).unwrap_or_default())
            }
            AccessSubject::Future(FutureSubject { role, schema, .. }) => {
                let role = self.role(role).map(|one| one.name.as_str()).unwrap_or_default();
                let schema = self.schemas().find(|one| one.oid == schema);
                let schema = schema.map(|one| format!(" in schema {}", one.name));
                let name = format!("belonging to role {role}{}", schema.unwrap_or_default());
                (self.future_noun(subject), name)
            }
        }
    }
}
