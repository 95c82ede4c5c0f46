//! ALTER ROLE … SET and RESET: the settings that sessions of a role begin with, and its quotas.
//!
//! Source: PostgreSQL's `AlterRoleSet` in user.c, with its checks in their order.

use crate::ast::{Ident, OptionsChange, Role, RoleAttribute, SettingClause};
use crate::catalog::Catalog;
use crate::catalog::access::role::{RoleRecord, RoleSettingsRecord};
use crate::catalog::quota::QuotaSubject;
use crate::ddl::Ddl;
use crate::ddl::access::role::{check_is_not_predefined, denied};
use crate::ddl::databases::quota_change;
use crate::error::{Error, Result};

impl Ddl<'_> {
    /// ALTER ROLE … SET and RESET
    pub(in crate::ddl) fn alter_role_setting(
        &mut self,
        role: Option<&Role>,
        database: Option<&Ident>,
        clause: &SettingClause,
    ) -> Result<()> {
        let catalog = self.catalog();
        let Some(role) = role else { return self.alter_settings_of_all(database, clause) };
        let mut record = RoleRecord::clone(&*self.named_role(&catalog, role)?);
        check_is_not_predefined(&record)?;
        self.check_may_set(&catalog, &record)?;
        if let Some(change) = quota_change(clause).filter(|_| database.is_none()) {
            let resets_all = change == OptionsChange::ResetAll;
            // A role cannot lift its own limits.
            if self.has_attribute(&catalog, RoleAttribute::CreateRole) {
                self.change_quota(QuotaSubject::Role(record.name.clone()), &change)?;
            } else if !resets_all {
                return Err(denied("permission denied"));
            }
            if !resets_all {
                return Ok(());
            }
        }
        let database = match database {
            Some(name) => Some(self.database(&name.value)?.oid),
            None => None,
        };
        let at = record.settings.iter().position(|one| one.database == database);
        let at = at.unwrap_or_else(|| {
            record.settings.push(RoleSettingsRecord { database, ..Default::default() });
            record.settings.len() - 1
        });
        self.change_settings(&mut record.settings[at].settings, std::slice::from_ref(clause))?;
        if record.settings[at].settings.is_empty() {
            record.settings.remove(at);
        }
        self.store_role(record)
    }

    /// ALTER ROLE ALL, which is the same as ALTER DATABASE for a database.
    fn alter_settings_of_all(
        &mut self,
        database: Option<&Ident>,
        clause: &SettingClause,
    ) -> Result<()> {
        match database {
            Some(name) => self.alter_database_setting(&name.value, clause),
            None => Err(Error::not_supported(
                "ALTER ROLE ALL without IN DATABASE",
                "Use ALTER DATABASE … SET for each database.",
            )),
        }
    }

    /// Checks that the current role may change the settings of a role.
    fn check_may_set(&self, catalog: &Catalog, role: &RoleRecord) -> Result<()> {
        if role.has(RoleAttribute::Superuser) && !self.is_superuser(catalog) {
            return Err(denied("must be superuser to alter superusers"));
        }
        let is_own = role.number == self.roles.current.number;
        if !is_own && !self.has_attribute(catalog, RoleAttribute::CreateRole) {
            return Err(denied("permission denied"));
        }
        Ok(())
    }

    /// Removes the settings of all roles for a database that is dropped.
    pub(in crate::ddl) fn remove_role_settings(&mut self, database: u32) -> Result<()> {
        for role in self.catalog().roles() {
            if role.settings.iter().any(|one| one.database == Some(database)) {
                let mut role = RoleRecord::clone(role);
                role.settings.retain(|one| one.database != Some(database));
                self.store_role(role)?;
            }
        }
        Ok(())
    }
}
