//! Owners of objects: who may change an object, `OWNER TO`, and the owner of a new object.

use std::sync::Arc;

use crate::ast::Role;
use crate::catalog::access::object_access::{AccessRecord, AccessSubject};
use crate::catalog::access::privilege::{self, PrivilegeKind};
use crate::catalog::access::role::{BOOTSTRAP_ROLE, RoleRecord};
use crate::catalog::name::is_temporary;
use crate::catalog::object::Object;
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
        let held = catalog.privileges_on(self.roles.current.number, AccessSubject::Database).0;
        if held & privilege == 0 { Err(catalog.denied(AccessSubject::Database)) } else { Ok(()) }
    }

    /// Stores the owner and the privileges of an object; no row if they are the default ones.
    pub(in crate::ddl) fn store_access(
        &mut self,
        subject: AccessSubject,
        record: AccessRecord,
    ) -> Result<()> {
        let default = AccessRecord { owner: BOOTSTRAP_ROLE, ..AccessRecord::default() };
        match record == default && !matches!(subject, AccessSubject::Schema(_)) {
            true => self.remove_object(&CatalogEntry::Access(subject)),
            false => self.store_object(CatalogObject::Access(subject, Arc::new(record))),
        }
    }

    /// Gives a new object to the current role.
    pub(in crate::ddl) fn own_new_object(&mut self, id: ObjectId) -> Result<()> {
        let role = self.roles.current.number;
        let Some(subject) = AccessSubject::of(id).filter(|_| role != BOOTSTRAP_ROLE) else {
            return Ok(());
        };
        let catalog = self.changes.catalog(self.engine);
        if catalog.object(&CatalogEntry::Access(subject)).is_some() {
            return Ok(());
        }
        self.store_access(subject, AccessRecord { owner: role, ..AccessRecord::default() })
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
    fn check_may_give(&self, catalog: &Catalog, object: &Object, to: &RoleRecord) -> Result<()> {
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
        let mut lines = Vec::new();
        for (subject, record) in catalog.accesses() {
            let (noun, name) = catalog.described(subject);
            if record.owner == role.number {
                lines.push(format!("owner of {noun} {name}"));
            } else if record.roles().any(|one| one == role.number) {
                lines.push(format!("privileges for {noun} {name}"));
            }
        }
        let detail = (!lines.is_empty()).then(|| lines.join("\n"))?;
        let name = &role.name;
        let error = err!(DEPENDENT_OBJECTS_STILL_EXIST:
            "role \"{name}\" cannot be dropped because some objects depend on it");
        Some(error.with_detail(detail))
    }
}
