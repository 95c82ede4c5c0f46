//! `GRANT` and `REVOKE` of privileges on objects.

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
