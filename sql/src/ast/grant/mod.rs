//! `GRANT` and `REVOKE` of privileges on objects, present and future, and the objects that roles
//! own.

use super::{ColumnName, Ident, ObjectReference, Role};
use crate::ast::TableName;

/// The grantee of privileges.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Grantee {
    /// `PUBLIC`
    Public,
    /// A role.
    Role(Role),
}

/// A privilege as written: its name in lower case, and the columns that it is limited to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct WrittenPrivilege {
    /// The name in lower case.
    pub name: String,
    /// The columns; empty for the whole object.
    pub columns: Vec<ColumnName>,
}

/// The objects of a GRANT.
#[derive(Debug, Clone, PartialEq)]
pub enum GrantObjects {
    /// Tables, views and sequences, by name; `TABLE` may be omitted.
    Tables(Vec<TableName>),
    /// `SEQUENCE`
    Sequences(Vec<TableName>),
    /// Functions, types, domains and schemas.
    Named(Vec<ObjectReference>),
    /// `DATABASE`
    Databases(Vec<Ident>),
    /// `ALL TABLES IN SCHEMA`
    AllTables(Vec<Ident>),
    /// `ALL SEQUENCES IN SCHEMA`
    AllSequences(Vec<Ident>),
    /// `ALL FUNCTIONS IN SCHEMA`, `ALL PROCEDURES IN SCHEMA`, `ALL ROUTINES IN SCHEMA`
    AllRoutines(Vec<Ident>),
    /// `ALTER DEFAULT PRIVILEGES`: those that are created later.
    Future(FutureObjects),
}

/// The objects of `ALTER DEFAULT PRIVILEGES`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FutureObjects {
    /// `FOR ROLE`: the roles that create them; empty for the current role.
    pub roles: Vec<Role>,
    /// `IN SCHEMA`; empty for all schemas.
    pub schemas: Vec<Ident>,
    /// Their kind.
    pub kind: FutureKind,
}

/// The kind of the objects of `ALTER DEFAULT PRIVILEGES`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum FutureKind {
    /// `TABLES`: also views.
    Tables,
    /// `SEQUENCES`
    Sequences,
    /// `FUNCTIONS` and `ROUTINES`
    Functions,
    /// `TYPES`
    Types,
    /// `SCHEMAS`
    Schemas,
}

impl FutureKind {
    /// The kinds with their words.
    pub const ALL: [(&str, FutureKind); 6] = [
        ("tables", FutureKind::Tables),
        ("sequences", FutureKind::Sequences),
        ("functions", FutureKind::Functions),
        ("routines", FutureKind::Functions),
        ("types", FutureKind::Types),
        ("schemas", FutureKind::Schemas),
    ];
}

/// `DROP OWNED` and `REASSIGN OWNED`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnedStatement {
    /// The roles that own the objects.
    pub roles: Vec<Role>,
    /// The change of the objects.
    pub action: OwnedAction,
}

/// A change of the objects that roles own.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum OwnedAction {
    /// `REASSIGN OWNED BY … TO`
    Reassign(Role),
    /// `DROP OWNED BY`; true with `CASCADE`.
    Drop(bool),
}

impl OwnedAction {
    /// Returns the command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            OwnedAction::Reassign(_) => "REASSIGN OWNED",
            OwnedAction::Drop(_) => "DROP OWNED",
        }
    }
}

/// `GRANT` and `REVOKE` of privileges on objects
#[derive(Debug, Clone, PartialEq)]
pub struct GrantStatement {
    /// True for REVOKE.
    pub is_revoke: bool,
    /// The privileges; empty for ALL.
    pub privileges: Vec<WrittenPrivilege>,
    /// The columns of `ALL (column, …)`.
    pub all_columns: Vec<ColumnName>,
    /// The objects.
    pub objects: GrantObjects,
    /// The grantees.
    pub grantees: Vec<Grantee>,
    /// `WITH GRANT OPTION`, `GRANT OPTION FOR`
    pub grant_option: bool,
    /// `GRANTED BY`
    pub granted_by: Option<Role>,
    /// `CASCADE` of REVOKE.
    pub cascade: bool,
}

impl GrantStatement {
    /// Returns the command tag.
    pub fn tag(&self) -> &'static str {
        match self.objects {
            GrantObjects::Future(_) => "ALTER DEFAULT PRIVILEGES",
            _ => ["GRANT", "REVOKE"][usize::from(self.is_revoke)],
        }
    }
}
