//! CREATE, ALTER and DROP ROLE, and memberships of roles.
//!
//! Source: PostgreSQL's user.c, with its checks in their order.

use std::sync::Arc;

use types::text::{self, TextStyle};
use types::{DataType, Datum};

use crate::ast::{Ident, MembershipChange, Role, RoleAttribute, RoleOptions, RoleStatement};
use crate::catalog::access::role::{DATABASE_OWNER_ROLE, MembershipRecord, RoleRecord};
use crate::catalog::comment::CommentSubjectKey;
use crate::catalog::quota::QuotaSubject;
use crate::catalog::{Catalog, CatalogEntry, CatalogObject, ObjectId};
use crate::ddl::Ddl;
use crate::error::{Error, Result, sqlstate};
use crate::password::stored_password;

/// The prefix of the names of predefined roles.
const RESERVED_PREFIX: &str = "pg_";

/// Returns the error for a role that does not exist.
pub(in crate::ddl) fn no_role(name: &str) -> Error {
    err!(UNDEFINED_OBJECT: "role \"{name}\" does not exist")
}

pub(in crate::ddl::access) fn denied(message: impl Into<String>) -> Error {
    Error::new(sqlstate::INSUFFICIENT_PRIVILEGE, message)
}

impl Ddl<'_> {
    /// Executes a statement on roles.
    pub fn change_roles(&mut self, statement: &RoleStatement) -> Result<()> {
        match statement {
            RoleStatement::Create { name, options } => self.create_role(name, options),
            RoleStatement::Alter { role, options } => self.alter_role(role, options),
            RoleStatement::Rename { from, to } => self.rename_role(from, to),
            RoleStatement::Setting { role, database, clause } => {
                self.alter_role_setting(role.as_ref(), database.as_ref(), clause)
            }
            RoleStatement::Drop { if_exists, roles } => self.drop_roles(roles, *if_exists),
            RoleStatement::Membership { change, .. } => self.change_memberships(change),
        }
    }

    /// Returns the role that a statement names.
    pub(in crate::ddl) fn named_role(
        &self,
        catalog: &Catalog,
        role: &Role,
    ) -> Result<Arc<RoleRecord>> {
        match role {
            Role::Named(name) => {
                let found = catalog.role_named(&name.value).cloned();
                found.ok_or_else(|| no_role(&name.value))
            }
            Role::Current(_) => self.current_role(catalog),
            Role::Session(_) => self.role_of_session(catalog, self.roles.session.number),
        }
    }

    /// Returns the current role of the session.
    pub(in crate::ddl) fn current_role(&self, catalog: &Catalog) -> Result<Arc<RoleRecord>> {
        self.role_of_session(catalog, self.roles.current.number)
    }

    fn role_of_session(&self, catalog: &Catalog, number: u32) -> Result<Arc<RoleRecord>> {
        let found = catalog.role(number).cloned();
        found.ok_or_else(|| err!(UNDEFINED_OBJECT: "role with OID {number} does not exist"))
    }

    /// Returns whether the current role has an attribute.
    pub(in crate::ddl) fn has_attribute(
        &self,
        catalog: &Catalog,
        attribute: RoleAttribute,
    ) -> bool {
        catalog.role_has(self.roles.current.number, attribute)
    }

    pub(in crate::ddl::access) fn is_superuser(&self, catalog: &Catalog) -> bool {
        catalog.is_superuser(self.roles.current.number)
    }

    pub(in crate::ddl::access) fn store_role(&mut self, role: RoleRecord) -> Result<()> {
        self.store_object(CatalogObject::Role(Arc::new(role)))
    }

    fn create_role(&mut self, name: &Role, options: &RoleOptions) -> Result<()> {
        let catalog = self.catalog();
        let Role::Named(name) = name else { return Err(no_name(name)) };
        let is_on = |attribute| options.attribute(attribute) == Some(true);
        if !self.is_superuser(&catalog) {
            let restricted = [
                (RoleAttribute::Superuser, "superusers"),
                (RoleAttribute::Replication, "replication users"),
                (RoleAttribute::BypassRowSecurity, "bypassrls users"),
            ];
            if let Some((_, what)) = restricted.iter().find(|(one, _)| is_on(*one)) {
                return Err(denied(format!("must be superuser to create {what}")));
            }
            if !self.has_attribute(&catalog, RoleAttribute::CreateRole) {
                return Err(denied("permission denied to create role"));
            }
        }
        if name.value.starts_with(RESERVED_PREFIX) {
            return Err(reserved(&name.value));
        }
        if catalog.role_named(&name.value).is_some() {
            bail!(DUPLICATE_OBJECT: "role \"{}\" already exists", name.value);
        }
        let mut role = RoleRecord::new(self.take_ids(1)?, &name.value);
        self.set_options(&mut role, options)?;
        self.store_role(role.clone())?;
        let this = Role::Named(name.clone());
        for of in &options.in_roles {
            let of = self.named_role(&catalog, of)?;
            self.add_members(&of, std::slice::from_ref(&this), (false, None))?;
        }
        let lists = [(&options.administrators, true), (&options.members, false)];
        lists
            .into_iter()
            .try_for_each(|(members, is_admin)| self.add_members(&role, members, (is_admin, None)))
    }

    /// Applies the options of a statement to a role.
    fn set_options(&mut self, role: &mut RoleRecord, options: &RoleOptions) -> Result<()> {
        for (attribute, is_on) in &options.attributes {
            role.set(*attribute, *is_on);
        }
        if let Some(limit) = options.connection_limit {
            if !(-1..=i64::from(i32::MAX)).contains(&limit) {
                bail!(INVALID_PARAMETER_VALUE: "invalid connection limit: {limit}");
            }
            role.connection_limit = u32::try_from(limit).ok();
        }
        if let Some(password) = &options.password {
            role.verifier = match password.as_deref() {
                Some("") => {
                    let message = "empty string is not a valid login password, clearing password";
                    self.add_notice(sqlstate::SUCCESSFUL_COMPLETION, message.to_owned());
                    None
                }
                Some(password) => Some(stored_password(password)?),
                None => None,
            };
        }
        if let Some(until) = &options.valid_until {
            let none = TextStyle::default();
            let style = self.settings.as_ref().map_or(&none, |settings| settings.style());
            role.valid_until = match text::parse(until, &DataType::Timestamptz, style)? {
                Datum::Timestamptz(time) => Some(time),
                _ => None,
            };
        }
        Ok(())
    }

    fn alter_role(&mut self, role: &Role, options: &RoleOptions) -> Result<()> {
        let catalog = self.catalog();
        let mut record = RoleRecord::clone(&*self.named_role(&catalog, role)?);
        check_is_not_predefined(&record)?;
        self.check_may_alter(&catalog, &record, options)?;
        if record.is_standard() && options.attribute(RoleAttribute::Superuser) == Some(false) {
            bail!(FEATURE_NOT_SUPPORTED: "permission denied to alter role";
                detail "The bootstrap user must have the SUPERUSER attribute.");
        }
        self.set_options(&mut record, options)?;
        self.store_role(record)
    }

    /// Checks that the current role may change options of a role.
    fn check_may_alter(
        &self,
        catalog: &Catalog,
        role: &RoleRecord,
        options: &RoleOptions,
    ) -> Result<()> {
        if self.is_superuser(catalog) {
            return Ok(());
        }
        let concerns = |attribute| role.has(attribute) || options.attribute(attribute).is_some();
        if concerns(RoleAttribute::Superuser) {
            return Err(denied(
                "must be superuser to alter superuser roles or change superuser attribute",
            ));
        }
        if concerns(RoleAttribute::Replication) {
            return Err(denied(
                "must be superuser to alter replication roles or change replication attribute",
            ));
        }
        if options.attribute(RoleAttribute::BypassRowSecurity).is_some() {
            return Err(denied("must be superuser to change bypassrls attribute"));
        }
        if self.has_attribute(catalog, RoleAttribute::CreateRole) {
            return Ok(());
        }
        // Everyone may change the own password.
        let only_password =
            RoleOptions { password: options.password.clone(), ..RoleOptions::default() };
        let is_own = role.number == self.roles.current.number;
        if options.password.is_none() || *options != only_password || !is_own {
            return Err(denied("permission denied"));
        }
        Ok(())
    }

    fn rename_role(&mut self, from: &Ident, to: &Role) -> Result<()> {
        let catalog = self.catalog();
        let Role::Named(to) = to else { return Err(no_name(to)) };
        let found = catalog.role_named(&from.value).ok_or_else(|| no_role(&from.value))?;
        for (role, which) in [(&self.roles.session, "session"), (&self.roles.current, "current")] {
            if role.number == found.number {
                bail!(FEATURE_NOT_SUPPORTED: "{which} user cannot be renamed");
            }
        }
        if let Some(name) =
            [from, to].into_iter().find(|one| one.value.starts_with(RESERVED_PREFIX))
        {
            return Err(reserved(&name.value));
        }
        if catalog.role_named(&to.value).is_some() {
            bail!(DUPLICATE_OBJECT: "role \"{}\" already exists", to.value);
        }
        if found.has(RoleAttribute::Superuser) && !self.is_superuser(&catalog) {
            return Err(denied("must be superuser to rename superusers"));
        }
        if !self.has_attribute(&catalog, RoleAttribute::CreateRole) {
            return Err(denied("permission denied to rename role"));
        }
        if found.is_standard() {
            let what = format!("renaming role \"{}\"", found.name);
            return Err(Error::not_supported(what, "Create another superuser."));
        }
        let quota = QuotaSubject::Role(from.value.clone());
        if let Some(limits) = catalog.quota(&quota) {
            self.remove_object(&CatalogEntry::Quota(quota))?;
            self.store_object(CatalogObject::Quota(QuotaSubject::Role(to.value.clone()), limits))?;
        }
        self.store_role(RoleRecord { name: to.value.clone(), ..RoleRecord::clone(found) })
    }

    fn drop_roles(&mut self, roles: &[Role], if_exists: bool) -> Result<()> {
        let catalog = self.catalog();
        if !self.has_attribute(&catalog, RoleAttribute::CreateRole) {
            return Err(denied("permission denied to drop role"));
        }
        for role in roles {
            let Role::Named(name) = role else {
                bail!(INVALID_PARAMETER_VALUE: "cannot use special role specifier in DROP ROLE");
            };
            match catalog.role_named(&name.value) {
                Some(role) => self.drop_role(&catalog, role)?,
                None => self.missing_object(no_role(&name.value), if_exists)?,
            }
        }
        Ok(())
    }

    fn drop_role(&mut self, catalog: &Catalog, role: &RoleRecord) -> Result<()> {
        for (one, which) in [(&self.roles.current, "current"), (&self.roles.session, "session")] {
            if one.number == role.number {
                bail!(OBJECT_IN_USE: "{which} user cannot be dropped");
            }
        }
        if role.has(RoleAttribute::Superuser) && !self.is_superuser(catalog) {
            return Err(denied("must be superuser to drop superusers"));
        }
        if role.is_standard() {
            let name = &role.name;
            bail!(DEPENDENT_OBJECTS_STILL_EXIST: "cannot drop role {name} because it is required by the database system");
        }
        if let Some(error) = self.dependents_of_role(catalog, role) {
            return Err(error);
        }
        if let Some(error) = self.dependents_elsewhere(catalog, role)? {
            return Err(error);
        }
        let members = self.changes.catalog(self.engine);
        for (member, _) in members.members_of(role.number) {
            let mut member = RoleRecord::clone(member);
            member.member_of.retain(|one| one.role != role.number);
            self.store_role(member)?;
        }
        self.remove_object(&CatalogEntry::Quota(QuotaSubject::Role(role.name.clone())))?;
        self.set_comment(CommentSubjectKey::Role(role.number), None)?;
        self.remove_object(&CatalogEntry::Object(ObjectId::Role(role.number)))
    }

    // ---- memberships ----

    fn change_memberships(&mut self, change: &MembershipChange) -> Result<()> {
        let catalog = self.catalog();
        let grantor = match &change.granted_by {
            Some(role) => Some(self.named_role(&catalog, role)?.number),
            None => None,
        };
        for name in &change.roles {
            let role = catalog.role_named(&name.value).ok_or_else(|| no_role(&name.value))?;
            match change.is_revoke {
                true => self.remove_members(role, &change.members, change.admin_option)?,
                false => self.add_members(role, &change.members, (change.admin_option, grantor))?,
            }
        }
        Ok(())
    }

    /// Checks that the current role may change the members of a role.
    fn check_may_grant(&self, catalog: &Catalog, role: &RoleRecord) -> Result<()> {
        if self.is_superuser(catalog) {
            return Ok(());
        }
        if role.has(RoleAttribute::Superuser) {
            return Err(denied("must be superuser to alter superusers"));
        }
        let current = self.roles.current.number;
        if !self.has_attribute(catalog, RoleAttribute::CreateRole)
            && !catalog.is_administrator_of(current, role.number)
        {
            return Err(denied(format!("must have admin option on role \"{}\"", role.name)));
        }
        Ok(())
    }

    fn add_members(
        &mut self,
        role: &RoleRecord,
        members: &[Role],
        (admin_option, grantor): (bool, Option<u32>),
    ) -> Result<()> {
        if members.is_empty() {
            return Ok(());
        }
        let catalog = self.changes.catalog(self.engine);
        self.check_may_grant(&catalog, role)?;
        if role.number == DATABASE_OWNER_ROLE {
            bail!(INVALID_GRANT_OPERATION: "role \"{}\" cannot have explicit members", role.name);
        }
        let current = self.roles.current.number;
        let grantor = grantor.unwrap_or(current);
        if grantor != current && !self.is_superuser(&catalog) {
            return Err(denied("must be superuser to set grantor"));
        }
        for member in members {
            let catalog = self.changes.catalog(self.engine);
            let mut member = RoleRecord::clone(&*self.named_role(&catalog, member)?);
            if member.number == DATABASE_OWNER_ROLE {
                bail!(INVALID_GRANT_OPERATION: "role \"{}\" cannot be a member of any role", member.name);
            }
            if catalog.roles_of(role.number, false).contains(&member.number) {
                bail!(INVALID_GRANT_OPERATION: "role \"{}\" is a member of role \"{}\"", role.name, member.name);
            }
            let known = member.member_of.iter_mut().find(|one| one.role == role.number);
            match known {
                Some(known) if known.admin_option || !admin_option => {
                    let message = format!(
                        "role \"{}\" is already a member of role \"{}\"",
                        member.name, role.name
                    );
                    self.add_notice(sqlstate::SUCCESSFUL_COMPLETION, message);
                    continue;
                }
                Some(known) => (known.admin_option, known.grantor) = (true, grantor),
                None => {
                    let unknown = Default::default();
                    let new =
                        MembershipRecord { role: role.number, grantor, admin_option, unknown };
                    member.member_of.push(new);
                }
            }
            self.store_role(member)?;
        }
        Ok(())
    }

    fn remove_members(
        &mut self,
        role: &RoleRecord,
        members: &[Role],
        only_admin_option: bool,
    ) -> Result<()> {
        let catalog = self.changes.catalog(self.engine);
        self.check_may_grant(&catalog, role)?;
        for member in members {
            let catalog = self.changes.catalog(self.engine);
            let mut member = RoleRecord::clone(&*self.named_role(&catalog, member)?);
            let at = member.member_of.iter().position(|one| one.role == role.number);
            let Some(at) = at else {
                let message =
                    format!("role \"{}\" is not a member of role \"{}\"", member.name, role.name);
                self.add_notice(sqlstate::WARNING, message);
                continue;
            };
            match only_admin_option {
                true => member.member_of[at].admin_option = false,
                false => drop(member.member_of.remove(at)),
            }
            self.store_role(member)?;
        }
        Ok(())
    }
}

/// Returns the error for a word that stands for a role where a new name is expected.
fn no_name(role: &Role) -> Error {
    let word = match role {
        Role::Session(_) => "SESSION_USER",
        _ => "CURRENT_USER",
    };
    err!(RESERVED_NAME: "{word} cannot be used as a role name here"; at role.position())
}

fn reserved(name: &str) -> Error {
    err!(RESERVED_NAME: "role name \"{name}\" is reserved"; detail "Role names starting with \"pg_\" are reserved.")
}

/// Refuses to change a predefined role.
pub(in crate::ddl::access) fn check_is_not_predefined(role: &RoleRecord) -> Result<()> {
    if !role.name.starts_with(RESERVED_PREFIX) {
        return Ok(());
    }
    bail!(RESERVED_NAME: "role name \"{}\" is reserved", role.name;
        detail "Cannot alter reserved roles.")
}
