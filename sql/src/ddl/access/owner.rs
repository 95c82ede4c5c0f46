//! Owners of objects: who may change an object, `OWNER TO`, and the owner of a new object.

use std::sync::Arc;

use crate::ast::Role;
use crate::catalog::access::object_access::{AccessRecord, AccessSubject};
use crate::catalog::access::privilege::{self, AclRecord, PrivilegeKind};
use crate::catalog::access::role::{BOOTSTRAP_ROLE, RoleRecord};
use crate::catalog::database::DatabaseRecord;
use crate::catalog::name::is_temporary;
use crate::catalog::object::Object;
use crate::catalog::object::references::types_of;
use crate::catalog::schema::PUBLIC_OID;
use crate::catalog::{Catalog, CatalogEntry, CatalogObject, ObjectId};
use crate::ddl::Ddl;
use crate::error::{Error, Result};

impl Ddl<'_> {
    /// Checks that the current role owns an object, or the object that it is a part of.
    ///
    /// # Errors
    ///
    /// 42501.
    pub(in crate::ddl) fn check_owns(&self, catalog: &Catalog, object: &Object) -> Result<()> {
        let role = self.roles.current.number;
        let whole = match object {
            Object::Whole(id) => Some(*id),
            Object::Extension(_) if !catalog.is_superuser(role) => {
                let name = object.name(catalog).map(|name| name.name).unwrap_or_default();
                bail!(INSUFFICIENT_PRIVILEGE: "must be owner of extension {name}");
            }
            Object::Extension(_) => None,
            part => part.wholes().find_map(|whole| match whole {
                Object::Whole(id) => Some(id),
                _ => None,
            }),
        };
        let Some(subject) = whole.and_then(AccessSubject::of) else { return Ok(()) };
        match (catalog.is_owner(role, subject), object) {
            (true, _) => Ok(()),
            (false, Object::Index(_, name)) => {
                bail!(INSUFFICIENT_PRIVILEGE: "must be owner of index {name}")
            }
            (false, Object::Policy(..) | Object::Trigger(..)) => {
                let (_, name) = catalog.described(subject);
                bail!(INSUFFICIENT_PRIVILEGE: "must be owner of relation {name}")
            }
            (false, _) => Err(catalog.not_owner(subject)),
        }
    }

    /// Checks that the current role may drop an object: its owner, or that of its schema.
    pub(in crate::ddl) fn check_may_drop(&self, catalog: &Catalog, object: &Object) -> Result<()> {
        let owns = self.check_owns(catalog, object);
        let schema = object.name(catalog).and_then(|name| catalog.schema(&name.schema).cloned());
        let owns_schema = schema.is_some_and(|schema| {
            catalog.is_owner(self.roles.current.number, AccessSubject::Schema(schema.oid))
        });
        if owns_schema { Ok(()) } else { owns }
    }

    /// Checks that a role may create objects in a schema.
    pub(in crate::ddl) fn check_may_create_in(
        &self,
        catalog: &Catalog,
        (role, schema): (u32, &str),
    ) -> Result<()> {
        let Some(schema) = catalog.schema(schema).filter(|_| !is_temporary(schema)) else {
            return Ok(());
        };
        let subject = AccessSubject::Schema(schema.oid);
        match catalog.privileges_on(role, subject).0 & privilege::CREATE {
            0 => Err(catalog.denied(subject)),
            _ => Ok(()),
        }
    }

    /// Checks that the current role has a privilege on the database.
    pub(in crate::ddl) fn check_database_privilege(
        &self,
        catalog: &Catalog,
        privilege: u32,
    ) -> Result<()> {
        let subject = AccessSubject::Database(catalog.database);
        let held = catalog.privileges_on(self.roles.current.number, subject).0;
        if held & privilege == 0 { Err(catalog.denied(subject)) } else { Ok(()) }
    }

    /// Checks that the current role may use the types that an object has and did not have before.
    pub(in crate::ddl) fn check_used_types(
        &self,
        (before, after): (&Catalog, &Catalog),
        entry: &CatalogEntry,
    ) -> Result<()> {
        let role = self.roles.current.number;
        if self.changes_others || after.is_superuser(role) {
            return Ok(());
        }
        let used: Vec<u32> = types_of(before, entry).iter().map(|one| one.type_oid).collect();
        let new = types_of(after, entry).into_iter().map(|one| one.type_oid);
        for oid in new.filter(|oid| !used.contains(oid)) {
            let Some(created) = after.type_of_oid(oid) else { continue };
            let subject = AccessSubject::Type(created.number());
            let held = after.privileges_on(role, subject).0;
            if held & privilege::USAGE == 0 && after.created_type(created.number()).is_some() {
                let shown = after.display_type(created, &self.path);
                bail!(INSUFFICIENT_PRIVILEGE: "permission denied for type {shown}");
            }
        }
        Ok(())
    }

    /// Stores the owner and the privileges of an object; no row if they are the default ones.
    pub(in crate::ddl) fn store_access(
        &mut self,
        subject: AccessSubject,
        record: AccessRecord,
    ) -> Result<()> {
        if let AccessSubject::Database(number) = subject {
            let catalog = self.changes.catalog(self.engine);
            let Some(database) = catalog.database(number) else { return Ok(()) };
            let owner = (record.owner != BOOTSTRAP_ROLE).then_some(record.owner);
            let changed =
                DatabaseRecord { owner, acl: record.acl, ..DatabaseRecord::clone(database) };
            return self
                .with_others(|ddl| ddl.store_object(CatalogObject::Database(Arc::new(changed))));
        }
        let default = AccessRecord { owner: BOOTSTRAP_ROLE, ..AccessRecord::default() };
        match record == default && !matches!(subject, AccessSubject::Schema(_)) {
            true => self.remove_object(&CatalogEntry::Access(subject)),
            false => self.store_object(CatalogObject::Access(subject, Arc::new(record))),
        }
    }

    /// Gives a new object to the current role.
    pub(in crate::ddl) fn own_new_object(&mut self, id: ObjectId) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let subject = AccessSubject::of(id);
        let is_owned = subject.is_some_and(|subject| {
            // The record of a database has its owner, and temporary schemas have none.
            matches!(subject, AccessSubject::Database(_))
                || matches!(subject, AccessSubject::Schema(one) if is_temporary_schema(&catalog, one))
                || catalog.object(&CatalogEntry::Access(subject)).is_some()
        });
        if is_owned { Ok(()) } else { self.own_as(id, self.roles.current.number) }
    }

    /// Gives a new object to a role, with the privileges that its new objects have.
    pub(in crate::ddl) fn own_as(&mut self, id: ObjectId, owner: u32) -> Result<()> {
        let Some(subject) = AccessSubject::of(id) else { return Ok(()) };
        let catalog = self.changes.catalog(self.engine);
        let name = Object::Whole(id).name(&catalog).map(|name| name.schema);
        let schema = name.and_then(|schema| catalog.schema(&schema)).map_or(0, |one| one.oid);
        let kind = catalog.privilege_kind(subject);
        let acl = catalog.future_acl(kind, owner, schema);
        if acl.is_none() && owner == BOOTSTRAP_ROLE {
            return Ok(());
        }
        let acl = acl.map(|acl| acl.0);
        self.store_access(subject, AccessRecord { owner, acl, ..AccessRecord::default() })
    }

    /// `OWNER TO`
    pub(in crate::ddl) fn change_owner(&mut self, object: &Object, role: &Role) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let to = self.named_role(&catalog, role)?;
        let Object::Whole(id) = object else {
            // An index belongs to the owner of its table.
            self.check_owns(&catalog, object)?;
            return Ok(());
        };
        let Some(subject) = AccessSubject::of(*id) else { return Ok(()) };
        let owner = catalog.access(subject).owner;
        if owner == to.number {
            return Ok(());
        }
        self.check_owns(&catalog, object)?;
        self.check_may_give(&catalog, object, &to)?;
        if let ObjectId::Sequence(number) = id
            && let Some(sequence) = catalog.sequence(*number)
            && let Some(table) = sequence.owned_by.and_then(|(table, _)| catalog.table(table))
        {
            bail!(FEATURE_NOT_SUPPORTED: "cannot change owner of sequence \"{}\"", sequence.name;
                detail "Sequence \"{}\" is linked to table \"{}\".", sequence.name, table.name);
        }
        self.give(subject, to.number)?;
        if let ObjectId::Table(table) = id {
            let of_table = |sequence: &u32| {
                let sequence = catalog.sequence(*sequence);
                sequence.is_some_and(|one| one.owned_by.is_some_and(|by| by.0 == *table))
            };
            let sequences: Vec<u32> =
                catalog.sequences().map(|one| one.oid).filter(of_table).collect();
            for sequence in sequences {
                self.give(AccessSubject::Relation(sequence), to.number)?;
            }
        }
        Ok(())
    }

    /// Checks that the current role may give an object to another role.
    pub(in crate::ddl) fn check_may_give(
        &self,
        catalog: &Catalog,
        object: &Object,
        to: &RoleRecord,
    ) -> Result<()> {
        let role = self.roles.current.number;
        if catalog.is_superuser(role) {
            return Ok(());
        }
        if !catalog.is_member_of(role, to.number) {
            bail!(INSUFFICIENT_PRIVILEGE: "must be member of role \"{}\"", to.name);
        }
        match object {
            Object::Whole(ObjectId::Schema(_)) => {
                self.check_database_privilege(catalog, privilege::CREATE)
            }
            _ => match object.name(catalog) {
                Some(name) => self.check_may_create_in(catalog, (to.number, &name.schema)),
                None => Ok(()),
            },
        }
    }

    /// Changes the owner of an object, with the privileges that the owner has and has granted.
    pub(in crate::ddl) fn give(&mut self, subject: AccessSubject, to: u32) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let mut record = AccessRecord::clone(&catalog.access(subject));
        let from = record.owner;
        record.owner = to;
        if record.acl.is_some() {
            let mut acl = record.acl(PrivilegeKind::Table);
            acl.change_owner(from, to);
            record.acl = Some(acl.0);
        }
        for at in record.columns.iter().map(|(at, _)| *at as usize).collect::<Vec<_>>() {
            let mut acl = record.column(at);
            acl.change_owner(from, to);
            record.set_column(at, acl);
        }
        self.store_access(subject, record)
    }

    /// Returns the error for a role that owns objects or has privileges; `None` if it does not.
    pub(in crate::ddl) fn dependents_of_role(
        &self,
        catalog: &Catalog,
        role: &RoleRecord,
    ) -> Option<Error> {
        let mut lines: Vec<(u32, String)> = Vec::new();
        let has = |items: &[AclRecord]| {
            items.iter().any(|item| [item.grantee, item.grantor].contains(&role.number))
        };
        let stored = catalog.accesses().map(|(subject, record)| (subject, Arc::clone(record)));
        for (subject, record) in stored.chain(catalog.database_accesses()) {
            let what = || self.described_subject(catalog, subject);
            // As in PostgreSQL, oldest objects first.
            let at = match subject {
                AccessSubject::Future(_) => u32::MAX,
                AccessSubject::Schema(PUBLIC_OID) => 0,
                other => other.number().unwrap_or(0),
            };
            if record.owner == role.number {
                lines.push((at, format!("owner of {}", what())));
                continue;
            }
            if record.acl.as_ref().is_some_and(|acl| has(acl)) {
                lines.push((at, format!("privileges for {}", what())));
            }
            for (position, _) in record.columns.iter().filter(|(_, acl)| has(acl)) {
                let column = column_name(catalog, subject, *position as usize);
                lines.push((at, format!("privileges for column {column} of {}", what())));
            }
        }
        for (table, policy) in catalog.policies_for(role.number) {
            let object = Object::Policy(table.oid, policy.record.name.clone());
            let line = format!("target of {}", object.describe(catalog, &self.path));
            lines.push((policy.record.number, line));
        }
        lines.sort_by_key(|(at, _)| *at);
        let lines: Vec<String> = lines.into_iter().map(|(_, line)| line).collect();
        (!lines.is_empty()).then(|| depends(role, lines.join("\n")))
    }

    /// Returns the description of a subject in the detail of an error.
    fn described_subject(&self, catalog: &Catalog, subject: AccessSubject) -> String {
        let object = catalog.object_of(subject).map(Object::Whole);
        match object.filter(|object| object.kind(catalog).is_some()) {
            Some(object) => object.describe(catalog, &self.path),
            None => {
                let (noun, name) = catalog.described(subject);
                format!("{noun} {name}")
            }
        }
    }
}

/// Returns the error for a role on which objects depend.
pub(in crate::ddl) fn depends(role: &RoleRecord, detail: String) -> Error {
    let name = &role.name;
    let error = err!(DEPENDENT_OBJECTS_STILL_EXIST:
        "role \"{name}\" cannot be dropped because some objects depend on it");
    error.with_detail(detail)
}

/// Returns the name of a column of a relation.
fn column_name(catalog: &Catalog, subject: AccessSubject, position: usize) -> String {
    let number = subject.number().unwrap_or(0);
    let of_table = catalog.table(number).and_then(|table| table.columns.get(position));
    let of_view = || catalog.view(number)?.columns.get(position).map(|one| one.name.clone());
    of_table.map(|one| one.name.clone()).or_else(of_view).unwrap_or_default()
}

fn is_temporary_schema(catalog: &Catalog, number: u32) -> bool {
    catalog.schemas().any(|one| one.oid == number && is_temporary(&one.name))
}
