//! Roles, their memberships, and the roles that every catalog has.
//!
//! A role belongs to no schema and to no database. Its memberships are in its own record: each
//! names a role that it is a member of. A role that inherits has the privileges of the roles that
//! it is a member of, and of those that these are members of and inherit from in turn.
//!
//! The bootstrap superuser and PostgreSQL's predefined roles exist in every catalog
//! ([`standard_roles`]); one of them is stored only if it was changed.

use std::sync::Arc;

use store::codec::tagged::UnknownFields;

use crate::ast::RoleAttribute;
use crate::catalog::access::privilege::PUBLIC_ROLE;
pub use crate::catalog::name::BOOTSTRAP_ROLE;
use crate::catalog::name::OWNER;

/// The key prefix of roles.
pub const ROLES_PREFIX: &[u8] = b"g";

const _: () = assert!(PUBLIC_ROLE != BOOTSTRAP_ROLE);

/// The number of role `pg_database_owner`, whose only member is the owner of the database.
pub const DATABASE_OWNER_ROLE: u32 = 100;

/// The attributes of a new role.
const NEW_ROLE: u32 = 1 << RoleAttribute::Inherit as u32;

/// The predefined roles: number, OID in PostgreSQL, name, and the numbers of the roles that it is a
/// member of.
pub const PREDEFINED_ROLES: [(u32, u32, &str, &[u32]); 12] = [
    (DATABASE_OWNER_ROLE, 6_171, "pg_database_owner", &[]),
    (READ_ALL_DATA_ROLE, 6_181, "pg_read_all_data", &[]),
    (WRITE_ALL_DATA_ROLE, 6_182, "pg_write_all_data", &[]),
    (103, 3_373, "pg_monitor", &[104, 105, 106]),
    (104, 3_374, "pg_read_all_settings", &[]),
    (105, 3_375, "pg_read_all_stats", &[]),
    (106, 3_377, "pg_stat_scan_tables", &[]),
    (107, 4_569, "pg_read_server_files", &[]),
    (108, 4_570, "pg_write_server_files", &[]),
    (109, 4_571, "pg_execute_server_program", &[]),
    (SIGNAL_BACKEND_ROLE, 4_200, "pg_signal_backend", &[]),
    (111, 4_544, "pg_checkpoint", &[]),
];

/// The number of role `pg_read_all_data`.
pub const READ_ALL_DATA_ROLE: u32 = 101;

/// The number of role `pg_write_all_data`.
pub const WRITE_ALL_DATA_ROLE: u32 = 102;

/// The number of role `pg_read_all_stats`, whose members see the statements of other roles.
pub const READ_ALL_STATS_ROLE: u32 = 105;

/// The number of role `pg_signal_backend`, whose members cancel statements of other roles.
pub const SIGNAL_BACKEND_ROLE: u32 = 110;

/// A role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoleRecord {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: String,
    /// Bits of the attributes that are on, by number.
    pub attributes: u32,
    /// The largest number of its sessions; `None` for no limit.
    pub connection_limit: Option<u32>,
    /// Its SCRAM-SHA-256 verifier.
    pub verifier: Option<String>,
    /// The time after which its password is not valid, in microseconds since 2000-01-01 UTC.
    pub valid_until: Option<i64>,
    /// Its memberships.
    pub member_of: Vec<MembershipRecord>,
    /// The settings that its sessions begin with.
    pub settings: Vec<RoleSettingsRecord>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// A membership of a role.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct MembershipRecord {
    /// The number of the role that it is a member of.
    pub role: u32,
    /// The number of the role that granted the membership.
    pub grantor: u32,
    /// WITH ADMIN OPTION: the member may grant the role to others.
    pub admin_option: bool,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// Settings of `ALTER ROLE … [IN DATABASE …] SET`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct RoleSettingsRecord {
    /// The number of the database whose sessions have them; `None` for all databases.
    pub database: Option<u32>,
    /// The names of the settings, with their values.
    pub settings: Vec<(String, String)>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// A role by number, with the name that it had when the session took it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRole {
    /// Its number.
    pub number: u32,
    /// Its name.
    pub name: Arc<str>,
}

/// The roles of a session.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SessionRoles {
    /// The role that logged in.
    pub authenticated: SessionRole,
    /// The role of SET SESSION AUTHORIZATION: `session_user`.
    pub session: SessionRole,
    /// The role of SET ROLE, or the owner of a function with SECURITY DEFINER: `current_user`.
    pub current: SessionRole,
    /// True within a function with SECURITY DEFINER, which cannot set the roles.
    pub is_definer: bool,
}

impl Default for SessionRoles {
    /// Returns the roles of a session of the bootstrap superuser.
    fn default() -> SessionRoles {
        SessionRoles::of(SessionRole { number: BOOTSTRAP_ROLE, name: OWNER.into() })
    }
}

impl SessionRole {
    /// Returns a role of the catalog.
    pub fn of(role: &RoleRecord) -> SessionRole {
        SessionRole { number: role.number, name: role.name.as_str().into() }
    }
}

impl SessionRoles {
    /// Returns the roles of a session that a role has opened.
    pub fn of(role: SessionRole) -> SessionRoles {
        SessionRoles {
            authenticated: role.clone(),
            session: role.clone(),
            current: role,
            is_definer: false,
        }
    }
}

impl RoleRecord {
    /// Returns a role with the attributes of a new one.
    pub fn new(number: u32, name: &str) -> RoleRecord {
        let name = name.to_owned();
        RoleRecord { number, name, attributes: NEW_ROLE, ..RoleRecord::default() }
    }

    /// Returns whether an attribute is on.
    pub fn has(&self, attribute: RoleAttribute) -> bool {
        self.attributes & 1 << attribute as u32 != 0
    }

    /// Turns an attribute on or off.
    pub fn set(&mut self, attribute: RoleAttribute, is_on: bool) {
        let bit = 1 << attribute as u32;
        self.attributes = if is_on { self.attributes | bit } else { self.attributes & !bit };
    }

    /// Returns its membership of a role.
    pub fn membership(&self, role: u32) -> Option<&MembershipRecord> {
        self.member_of.iter().find(|one| one.role == role)
    }

    /// Returns the settings of its sessions: those of all databases first, then those of this one.
    pub fn settings_in(&self, database: u32) -> impl Iterator<Item = &(String, String)> {
        let of =
            |wanted: Option<u32>| self.settings.iter().filter(move |one| one.database == wanted);
        of(None).chain(of(Some(database))).flat_map(|one| &one.settings)
    }

    /// Returns whether it exists in every catalog.
    pub fn is_standard(&self) -> bool {
        is_standard(self.number)
    }
}

/// Returns whether the role of a number exists in every catalog.
pub fn is_standard(number: u32) -> bool {
    number == BOOTSTRAP_ROLE || PREDEFINED_ROLES.iter().any(|(known, ..)| *known == number)
}

/// Returns the roles of every catalog, as they are before they are changed.
pub fn standard_roles() -> Vec<RoleRecord> {
    let mut bootstrap = RoleRecord::new(BOOTSTRAP_ROLE, OWNER);
    bootstrap.attributes = (1 << RoleAttribute::ALL.len()) - 1;
    let membership = |role: &u32| MembershipRecord {
        role: *role,
        grantor: BOOTSTRAP_ROLE,
        ..MembershipRecord::default()
    };
    let predefined = PREDEFINED_ROLES.iter().map(|(number, _, name, member_of)| RoleRecord {
        member_of: member_of.iter().map(membership).collect(),
        ..RoleRecord::new(*number, name)
    });
    std::iter::once(bootstrap).chain(predefined).collect()
}
