//! GRANT and REVOKE of privileges.
//!
//! Source: PostgreSQL's `ExecGrant_Relation` and the functions around it (aclchk.c).

use crate::ast::{
    ColumnName, GrantObjects, GrantStatement, Grantee, Ident, ObjectReference, TableName,
};
use crate::catalog::access::object_access::{AccessRecord, AccessSubject};
use crate::catalog::access::privilege::{
    Acl, AclRecord, DependentPrivileges, PUBLIC_ROLE, PrivilegeKind, names_of, privilege_named,
};
use crate::catalog::object::Object;
use crate::catalog::{Catalog, CatalogRelation, ObjectId};
use crate::ddl::objects::NameUse;
use crate::ddl::{Ddl, no_schema, undefined_table};
use crate::error::{Error, Result, sqlstate};

/// The object of a grant: with the kind that the statement says.
pub(in crate::ddl) type GrantTarget = (AccessSubject, PrivilegeKind);

impl Ddl<'_> {
    /// Executes GRANT or REVOKE.
    pub fn change_privileges(&mut self, grant: &GrantStatement) -> Result<()> {
        let catalog = self.catalog();
        if let Some(role) = &grant.granted_by {
            let role = self.named_role(&catalog, role)?;
            if role.number != self.roles.current.number {
                bail!(FEATURE_NOT_SUPPORTED: "grantor must be current user");
            }
        }
        let grantees = grant.grantees.iter().map(|grantee| match grantee {
            Grantee::Public if grant.grant_option && !grant.is_revoke => {
                bail!(INVALID_GRANT_OPERATION: "grant options can only be granted to roles")
            }
            Grantee::Public => Ok(PUBLIC_ROLE),
            Grantee::Role(role) => Ok(self.named_role(&catalog, role)?.number),
        });
        let grantees: Vec<u32> = grantees.collect::<Result<_>>()?;
        if let GrantObjects::Future(objects) = &grant.objects {
            return self.change_future_privileges(grant, objects, &grantees);
        }
        for target in self.grant_targets(&catalog, &grant.objects)? {
            self.change_privileges_on(grant, target, &grantees)?;
        }
        Ok(())
    }

    fn grant_targets(
        &mut self,
        catalog: &Catalog,
        objects: &GrantObjects,
    ) -> Result<Vec<GrantTarget>> {
        let mut found = Vec::new();
        match objects {
            GrantObjects::Tables(names) => {
                for name in names {
                    let relation = self.granted_relation(catalog, name)?;
                    let subject = AccessSubject::Relation(relation);
                    found.push((subject, catalog.privilege_kind(subject)));
                }
            }
            GrantObjects::Sequences(names) => {
                for name in names {
                    let relation = self.granted_relation(catalog, name)?;
                    if catalog.sequence(relation).is_none() {
                        bail!(WRONG_OBJECT_TYPE: "\"{}\" is not a sequence", name.name.value);
                    }
                    found.push((AccessSubject::Relation(relation), PrivilegeKind::Sequence));
                }
            }
            GrantObjects::Named(references) => {
                for reference in references {
                    found.extend(self.granted_object(catalog, reference)?);
                }
            }
            GrantObjects::Databases(names) => {
                for name in names {
                    let database = catalog.database_named(&name.value);
                    let Some(database) = database else {
                        bail!(INVALID_CATALOG_NAME: "database \"{}\" does not exist", name.value);
                    };
                    found.push((AccessSubject::Database(database.oid), PrivilegeKind::Database));
                }
            }
            GrantObjects::AllTables(schemas) => {
                for schema in granted_schemas(catalog, schemas)? {
                    let tables = catalog.tables_by_age().filter(|one| one.schema == schema);
                    let views = catalog.views().filter(|one| one.schema == schema);
                    let numbers = tables.map(|one| one.oid).chain(views.map(|one| one.oid));
                    let mut numbers: Vec<u32> = numbers.collect();
                    numbers.sort_unstable();
                    numbers.dedup();
                    let targets = numbers.into_iter().map(AccessSubject::Relation);
                    found.extend(targets.map(|subject| (subject, PrivilegeKind::Table)));
                }
            }
            GrantObjects::AllSequences(schemas) => {
                for schema in granted_schemas(catalog, schemas)? {
                    let of_schema = catalog.sequences().filter(|one| one.schema == schema);
                    let targets = of_schema.map(|one| AccessSubject::Relation(one.oid));
                    found.extend(targets.map(|subject| (subject, PrivilegeKind::Sequence)));
                }
            }
            GrantObjects::AllRoutines(schemas) => {
                for schema in granted_schemas(catalog, schemas)? {
                    let of_schema = catalog.functions().filter(|one| one.record.schema == schema);
                    let targets = of_schema.map(|one| AccessSubject::Function(one.record.number));
                    found.extend(targets.map(|subject| (subject, PrivilegeKind::Function)));
                }
            }
            GrantObjects::Future(_) => {}
        }
        Ok(found)
    }

    fn granted_relation(&self, catalog: &Catalog, name: &TableName) -> Result<u32> {
        match self.find(catalog, name) {
            Some(CatalogRelation::Index(..) | CatalogRelation::PrimaryKey(_)) => {
                bail!(WRONG_OBJECT_TYPE: "\"{}\" is an index", name.name.value)
            }
            Some(relation) => Ok(relation.oid()),
            None => Err(undefined_table(name)),
        }
    }

    fn granted_object(
        &mut self,
        catalog: &Catalog,
        reference: &ObjectReference,
    ) -> Result<Option<GrantTarget>> {
        let found = self.named_object(catalog, reference, (NameUse::Grant, false))?;
        let Some(Object::Whole(id)) = found else { return Ok(None) };
        if let ObjectId::Type(number) = id
            && catalog.created_type(number).is_none()
        {
            bail!(INVALID_GRANT_OPERATION: "cannot set privileges of the row type of a relation";
                hint "Set the privileges of the relation instead.");
        }
        let Some(subject) = AccessSubject::of(id) else { return Ok(None) };
        Ok(Some((subject, catalog.privilege_kind(subject))))
    }

    pub(in crate::ddl) fn change_privileges_on(
        &mut self,
        grant: &GrantStatement,
        (subject, kind): GrantTarget,
        grantees: &[u32],
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        let mut whole = 0;
        let mut columns: Vec<(usize, u32)> = Vec::new();
        let is_all = grant.privileges.is_empty();
        if is_all && grant.all_columns.is_empty() {
            whole = kind.all();
        }
        for name in &grant.all_columns {
            columns.push((position_of(&catalog, subject, name)?, PrivilegeKind::Column.all()));
        }
        for written in &grant.privileges {
            let privilege = privilege_named(&written.name);
            let unknown = || err!(SYNTAX_ERROR: "unrecognized privilege type \"{}\"", written.name);
            let privilege = privilege.ok_or_else(unknown)?;
            let of = if written.columns.is_empty() { kind } else { PrivilegeKind::Column };
            // As in PostgreSQL, a sequence may be named as a table.
            let is_known = of.all() & privilege != 0
                || kind == PrivilegeKind::Sequence
                    && matches!(grant.objects, GrantObjects::Tables(_))
                    && PrivilegeKind::Table.all() & privilege != 0;
            let name = names_of(privilege).next().unwrap_or_default();
            if !is_known {
                bail!(INVALID_GRANT_OPERATION: "invalid privilege type {name} for {}", of.descriptor().noun);
            }
            match written.columns.is_empty() {
                true => whole |= privilege & kind.all(),
                false if kind != PrivilegeKind::Table => {
                    bail!(INVALID_GRANT_OPERATION: "column privileges are only valid for relations")
                }
                false => {
                    for column in &written.columns {
                        columns.push((position_of(&catalog, subject, column)?, privilege));
                    }
                }
            }
        }
        let mut record = AccessRecord::clone(&catalog.access(subject));
        if whole != 0 {
            let acl = record.acl(kind);
            let change = AclChange { grant, privileges: whole, is_all, grantees };
            let acl = self.changed_acl(&catalog, (subject, &record), acl, &change)?;
            record.acl = acl.map(|acl| acl.0).or(record.acl);
            if grant.is_revoke && kind == PrivilegeKind::Table {
                // As in PostgreSQL, privileges on the columns end with those on the table.
                let all: Vec<usize> = record.columns.iter().map(|(at, _)| *at as usize).collect();
                columns.extend(all.into_iter().map(|at| (at, whole & PrivilegeKind::Column.all())));
            }
        }
        for (at, privileges) in columns {
            let acl = record.column(at);
            let change = AclChange { grant, privileges, is_all, grantees };
            if let Some(acl) = self.changed_acl(&catalog, (subject, &record), acl, &change)? {
                record.set_column(at, acl);
            }
        }
        self.store_access(subject, record)
    }

    /// Returns a list of privileges after a change; `None` if the current role may not change any
    /// of them.
    fn changed_acl(
        &mut self,
        catalog: &Catalog,
        (subject, record): (AccessSubject, &AccessRecord),
        mut acl: Acl,
        change: &AclChange<'_>,
    ) -> Result<Option<Acl>> {
        let (role, owner) = (self.roles.current.number, record.owner);
        let AclChange { grant, privileges, is_all, grantees } = *change;
        let (grantor, options) = match catalog.has_privileges_of(role, owner) {
            true => (owner, privileges),
            false => best_grantor(
                catalog,
                (role, record),
                catalog.privilege_kind(subject),
                &acl,
                privileges,
            ),
        };
        let usable = privileges & options;
        if usable == 0 {
            let (held, _) = catalog.privileges_on(role, subject);
            let (of_columns, _) = acl.held_by(|one| catalog.has_privileges_of(role, one));
            if held | of_columns == 0 && catalog.privilege_kind(subject) == PrivilegeKind::Table {
                // As in PostgreSQL, also for a view.
                let (_, name) = catalog.described(subject);
                bail!(INSUFFICIENT_PRIVILEGE: "permission denied for table {name}");
            }
            if held | of_columns == 0 {
                return Err(catalog.denied(subject));
            }
        }
        if usable != privileges {
            let (_, name) = catalog.described(subject);
            let some = if usable == 0 { "no" } else { "not all" };
            let (code, message) = match grant.is_revoke {
                false if usable != 0 && is_all => (sqlstate::WARNING, String::new()),
                false => {
                    let message = format!("{some} privileges were granted for \"{name}\"");
                    (sqlstate::PRIVILEGE_NOT_GRANTED, message)
                }
                true if usable != 0 && is_all => (sqlstate::WARNING, String::new()),
                true => {
                    let message = format!("{some} privileges could be revoked for \"{name}\"");
                    (sqlstate::PRIVILEGE_NOT_REVOKED, message)
                }
            };
            if !message.is_empty() {
                self.add_notice(code, message);
            }
        }
        if usable == 0 {
            return Ok(None);
        }
        for grantee in grantees {
            let grantable = if grant.grant_option { usable } else { 0 };
            let held = if grant.is_revoke && grant.grant_option { 0 } else { usable };
            let item = AclRecord { grantee: *grantee, grantor, privileges: held, grantable };
            if grant.is_revoke {
                acl.revoke(&item, (owner, grant.cascade)).map_err(dependent_privileges)?;
                continue;
            }
            if !acl.stays_grantable(&item, owner) {
                bail!(INVALID_GRANT_OPERATION: "grant options cannot be granted back to your own grantor");
            }
            acl.grant(item);
        }
        Ok(Some(acl))
    }
}

/// Returns the error of a REVOKE without CASCADE on which other privileges depend.
pub(in crate::ddl) fn dependent_privileges(_: DependentPrivileges) -> Error {
    err!(DEPENDENT_OBJECTS_STILL_EXIST: "dependent privileges exist";
        hint "Use CASCADE to revoke them too.")
}

/// A change of a list of privileges.
struct AclChange<'g> {
    grant: &'g GrantStatement,
    privileges: u32,
    /// The statement says ALL.
    is_all: bool,
    grantees: &'g [u32],
}

/// Returns the role in whose name a role grants privileges, and its grant options: of the roles
/// that it is, the one with the most of them.
fn best_grantor(
    catalog: &Catalog,
    (role, record): (u32, &AccessRecord),
    kind: PrivilegeKind,
    acl: &Acl,
    privileges: u32,
) -> (u32, u32) {
    let of_whole = record.acl(kind);
    let options = |one: u32| {
        let held = |grantee| grantee == one;
        (acl.held_by(held).1 | of_whole.held_by(held).1) & privileges
    };
    let roles = catalog.roles_of(role, true).into_iter();
    let others = roles.filter(|one| *one != role).map(|one| (one, options(one)));
    let mut best = (role, options(role));
    for (one, has) in others {
        if has.count_ones() > best.1.count_ones() {
            best = (one, has);
        }
    }
    best
}

fn granted_schemas(catalog: &Catalog, names: &[Ident]) -> Result<Vec<String>> {
    let schema = |name: &Ident| match catalog.schema(&name.value) {
        Some(schema) => Ok(schema.name.clone()),
        None => Err(no_schema(&name.value)),
    };
    names.iter().map(schema).collect()
}

/// Returns the position of a column of a relation.
fn position_of(catalog: &Catalog, subject: AccessSubject, name: &ColumnName) -> Result<usize> {
    let AccessSubject::Relation(number) = subject else {
        bail!(INVALID_GRANT_OPERATION: "column privileges are only valid for relations");
    };
    let found = match (catalog.table(number), catalog.view(number)) {
        (Some(table), _) => table.find_column(name)?,
        (None, Some(view)) => view.columns.iter().position(|one| one.name == name.name.value),
        (None, None) => None,
    };
    let (_, relation) = catalog.described(subject);
    found.ok_or_else(|| {
        err!(UNDEFINED_COLUMN: "column \"{}\" of relation \"{relation}\" does not exist", name.name.value)
    })
}
