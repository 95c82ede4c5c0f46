//! The roles of a session: the one that logged in, that of SET SESSION AUTHORIZATION, and the
//! current one, whose privileges statements have.

use std::sync::Arc;

use crate::audit;
use crate::catalog::Catalog;
use crate::catalog::access::role::{SessionRole, SessionRoles};
use crate::error::{Error, Result};
use crate::settings::{ROLE_SETTINGS, Settings, position};

/// The settings that only superusers may change.
const SUPERUSER_SETTINGS: [&str; 2] = ["log_statement", "session_replication_role"];

/// The settings that show the roles of a session.
const SHOWN: [&str; 3] = ["role", "session_authorization", "is_superuser"];

impl Settings {
    /// Returns the roles of the session.
    pub fn roles(&self) -> &Arc<SessionRoles> {
        &self.shared.roles
    }

    /// Sets a setting, which may be a role of the catalog; `None` restores its initial value.
    ///
    /// # Errors
    ///
    /// Those of [`Settings::set`]; 22023 for a role that does not exist, and 42501 for one that
    /// the session may not become.
    pub fn set_with(&mut self, catalog: &Catalog, name: &str, value: Option<&str>) -> Result<()> {
        match name.to_ascii_lowercase().as_str() {
            fixed @ ("role" | "session_authorization") if self.roles().is_definer => {
                bail!(INSUFFICIENT_PRIVILEGE: "cannot set parameter \"{fixed}\" within security-definer function")
            }
            "role" => {
                let initial = self.initial_value("role");
                self.set_role(catalog, value.unwrap_or(&initial))
            }
            "session_authorization" => self.set_session_role(catalog, value),
            lower => {
                let current = self.roles().current.number;
                let needs_superuser =
                    SUPERUSER_SETTINGS.contains(&lower) || lower.starts_with(audit::PREFIX);
                if needs_superuser && !catalog.is_superuser(current) {
                    bail!(INSUFFICIENT_PRIVILEGE: "permission denied to set parameter \"{lower}\"");
                }
                self.set(name, value)
            }
        }
    }

    /// Sets a setting that is stored for a database or a role, which becomes the value that RESET
    /// restores.
    ///
    /// # Errors
    ///
    /// As for [`Settings::set_with`], except that no setting needs a superuser.
    pub(crate) fn set_stored(&mut self, catalog: &Catalog, name: &str, value: &str) -> Result<()> {
        if ROLE_SETTINGS.iter().any(|one| one.eq_ignore_ascii_case(name)) {
            return self.set_initial(catalog, name, value);
        }
        self.set(name, Some(value))?;
        self.keep_initial(name);
        Ok(())
    }

    /// SET ROLE
    fn set_role(&mut self, catalog: &Catalog, name: &str) -> Result<()> {
        let mut roles = SessionRoles::clone(self.roles());
        if name == "none" {
            roles.current = roles.session.clone();
            self.put_roles(catalog, roles, "none");
            return Ok(());
        }
        let role = role_named(catalog, name)?;
        if !catalog.is_member_of(roles.session.number, role.number) {
            bail!(INSUFFICIENT_PRIVILEGE: "permission denied to set role \"{name}\"");
        }
        roles.current = role;
        self.put_roles(catalog, roles, name);
        Ok(())
    }

    /// SET SESSION AUTHORIZATION
    fn set_session_role(&mut self, catalog: &Catalog, name: Option<&str>) -> Result<()> {
        let mut roles = SessionRoles::clone(self.roles());
        let role = match name {
            Some(name) => role_named(catalog, name)?,
            None => roles.authenticated.clone(),
        };
        let authenticated = roles.authenticated.number;
        if role.number != authenticated && !catalog.is_superuser(authenticated) {
            bail!(INSUFFICIENT_PRIVILEGE: "permission denied to set session authorization");
        }
        (roles.session, roles.current) = (role.clone(), role);
        self.put_roles(catalog, roles, "none");
        Ok(())
    }

    /// Restores a setting from other settings of the session.
    ///
    /// # Errors
    ///
    /// None for values that were accepted before.
    pub fn restore(&mut self, name: &str, from: &Settings) -> Result<()> {
        if !ROLE_SETTINGS.iter().any(|one| one.eq_ignore_ascii_case(name)) {
            return self.set(name, from.show(name).ok().map(|(_, value)| value));
        }
        if self.roles().is_definer {
            // The statement around the function has set it.
            return Ok(());
        }
        let shared = Arc::make_mut(&mut self.shared);
        shared.roles = Arc::clone(from.roles());
        for name in SHOWN {
            shared.put(index_of(name), from.value(name));
        }
        Ok(())
    }

    /// Stores the roles of the session, with the settings that show them.
    fn put_roles(&mut self, catalog: &Catalog, roles: SessionRoles, role: &str) {
        let is_superuser = if catalog.is_superuser(roles.current.number) { "on" } else { "off" };
        let session = Arc::clone(&roles.session.name);
        let shared = Arc::make_mut(&mut self.shared);
        shared.roles = Arc::new(roles);
        for (name, value) in SHOWN.into_iter().zip([role, &*session, is_superuser]) {
            let index = index_of(name);
            if &*shared.values[index] != value {
                shared.put(index, value);
            }
        }
    }

    /// Sets the current role to the owner of a function with SECURITY DEFINER. The settings that
    /// show roles remain, as in PostgreSQL.
    pub fn enter_definer(&mut self, owner: SessionRole) {
        let mut roles = SessionRoles::clone(self.roles());
        (roles.current, roles.is_definer) = (owner, true);
        Arc::make_mut(&mut self.shared).roles = Arc::new(roles);
    }

    /// Returns to the roles from before [`Settings::enter_definer`].
    pub fn leave_definer(&mut self, roles: Arc<SessionRoles>) {
        Arc::make_mut(&mut self.shared).roles = roles;
    }

    /// Sets the roles of a session that a role has opened.
    pub fn open_as(&mut self, catalog: &Catalog, role: SessionRole) {
        self.put_roles(catalog, SessionRoles::of(role), "none");
        self.keep_initial("session_authorization");
        self.keep_initial("is_superuser");
    }

    fn initial_value(&self, name: &str) -> Arc<str> {
        Arc::clone(&self.shared.initial.values[index_of(name)])
    }
}

fn index_of(name: &str) -> usize {
    position(name).expect("it is in SPECS")
}

fn role_named(catalog: &Catalog, name: &str) -> Result<SessionRole> {
    let found = catalog.role_named(name).map(|role| SessionRole::of(role));
    found.ok_or_else(|| err!(INVALID_PARAMETER_VALUE: "role \"{name}\" does not exist"))
}
