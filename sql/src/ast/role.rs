//! Statements on roles: `CREATE ROLE` and so on, and the memberships of `GRANT` and `REVOKE`.

use super::{Ident, SettingClause};

/// A role that a statement names.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Role {
    /// A role by its name.
    Named(Ident),
    /// `CURRENT_USER` and `CURRENT_ROLE`, with the position of the word.
    Current(usize),
    /// `SESSION_USER`, with the position of the word.
    Session(usize),
}

impl Role {
    /// Returns its position.
    pub fn position(&self) -> usize {
        match self {
            Role::Named(name) => name.position,
            Role::Current(position) | Role::Session(position) => *position,
        }
    }
}

/// An attribute of a role that is on or off. The number of an attribute in stored roles is the
/// position of its bit, and never changes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoleAttribute {
    /// `SUPERUSER`
    Superuser = 0,
    /// `INHERIT`
    Inherit = 1,
    /// `CREATEROLE`
    CreateRole = 2,
    /// `CREATEDB`
    CreateDatabase = 3,
    /// `LOGIN`
    Login = 4,
    /// `REPLICATION`
    Replication = 5,
    /// `BYPASSRLS`
    BypassRowSecurity = 6,
}

impl RoleAttribute {
    /// The attributes with their words, which `NO` in front turns off.
    pub const ALL: [(&str, RoleAttribute); 7] = [
        ("superuser", RoleAttribute::Superuser),
        ("inherit", RoleAttribute::Inherit),
        ("createrole", RoleAttribute::CreateRole),
        ("createdb", RoleAttribute::CreateDatabase),
        ("login", RoleAttribute::Login),
        ("replication", RoleAttribute::Replication),
        ("bypassrls", RoleAttribute::BypassRowSecurity),
    ];
}

/// The options of `CREATE ROLE` and `ALTER ROLE`, as far as they were written.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoleOptions {
    /// The attributes that are turned on or off.
    pub attributes: Vec<(RoleAttribute, bool)>,
    /// `CONNECTION LIMIT`
    pub connection_limit: Option<i64>,
    /// `PASSWORD`; the inner `None` is NULL.
    pub password: Option<Option<String>>,
    /// `VALID UNTIL`
    pub valid_until: Option<String>,
    /// `IN ROLE`: the roles that it becomes a member of.
    pub in_roles: Vec<Role>,
    /// `ROLE`: its members.
    pub members: Vec<Role>,
    /// `ADMIN`: its members with ADMIN OPTION.
    pub administrators: Vec<Role>,
}

impl RoleOptions {
    /// Returns whether an attribute is turned on or off.
    pub fn attribute(&self, attribute: RoleAttribute) -> Option<bool> {
        let mut written = self.attributes.iter();
        written.find(|(one, _)| *one == attribute).map(|(_, is_on)| *is_on)
    }
}

/// `GRANT role TO role` and `REVOKE role FROM role`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MembershipChange {
    /// True for REVOKE.
    pub is_revoke: bool,
    /// The roles.
    pub roles: Vec<Ident>,
    /// Their members.
    pub members: Vec<Role>,
    /// `WITH ADMIN OPTION`, `ADMIN OPTION FOR`
    pub admin_option: bool,
    /// `GRANTED BY`
    pub granted_by: Option<Role>,
}

/// A statement on roles.
#[derive(Debug, Clone, PartialEq)]
pub enum RoleStatement {
    /// `CREATE ROLE`, `CREATE USER`, `CREATE GROUP`
    Create {
        /// Its name.
        name: Role,
        /// Its options.
        options: RoleOptions,
    },
    /// `ALTER ROLE`
    Alter {
        /// The role.
        role: Role,
        /// The options that change.
        options: RoleOptions,
    },
    /// `ALTER ROLE … RENAME TO`
    Rename {
        /// The role.
        from: Ident,
        /// Its new name.
        to: Role,
    },
    /// `ALTER ROLE … [IN DATABASE …] SET`, `RESET`
    Setting {
        /// The role; `None` for `ALL`.
        role: Option<Role>,
        /// `IN DATABASE`
        database: Option<Ident>,
        /// The setting and its value.
        clause: SettingClause,
    },
    /// `DROP ROLE`
    Drop {
        /// `IF EXISTS`
        if_exists: bool,
        /// The roles.
        roles: Vec<Role>,
    },
    /// `GRANT`, `REVOKE`, `ALTER GROUP … ADD USER`
    Membership {
        /// True for ALTER GROUP.
        is_alter: bool,
        /// The change.
        change: MembershipChange,
    },
}

impl RoleStatement {
    /// Returns whether its text has a password.
    pub fn has_password(&self) -> bool {
        match self {
            RoleStatement::Create { options, .. } | RoleStatement::Alter { options, .. } => {
                matches!(options.password, Some(Some(_)))
            }
            _ => false,
        }
    }

    /// Returns the command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            RoleStatement::Create { .. } => "CREATE ROLE",
            RoleStatement::Alter { .. }
            | RoleStatement::Rename { .. }
            | RoleStatement::Setting { .. }
            | RoleStatement::Membership { is_alter: true, .. } => "ALTER ROLE",
            RoleStatement::Drop { .. } => "DROP ROLE",
            RoleStatement::Membership { change, .. } if change.is_revoke => "REVOKE ROLE",
            RoleStatement::Membership { .. } => "GRANT ROLE",
        }
    }
}
