//! Statements about row-level security policies.

use super::{Grantee, Ident, SourceExpr, TableName};

/// A statement about policies.
#[derive(Debug, Clone, PartialEq)]
pub enum PolicyStatement {
    /// `CREATE POLICY`
    Create(CreatePolicy),
    /// `ALTER POLICY`
    Alter(AlterPolicy),
    /// `ALTER POLICY … RENAME TO`
    Rename {
        /// Its name.
        name: Ident,
        /// `IF EXISTS`
        if_exists: bool,
        /// Its table.
        table: TableName,
        /// Its new name.
        to: Ident,
    },
    /// `DROP POLICY`
    Drop {
        /// Its name.
        name: Ident,
        /// `IF EXISTS`
        if_exists: bool,
        /// Its table.
        table: TableName,
    },
}

impl PolicyStatement {
    /// Returns its command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            PolicyStatement::Create(_) => "CREATE POLICY",
            PolicyStatement::Alter(_) | PolicyStatement::Rename { .. } => "ALTER POLICY",
            PolicyStatement::Drop { .. } => "DROP POLICY",
        }
    }
}

/// `CREATE POLICY`
#[derive(Debug, Clone, PartialEq)]
pub struct CreatePolicy {
    /// Its name.
    pub name: Ident,
    /// Its table.
    pub table: TableName,
    /// `AS RESTRICTIVE`
    pub is_restrictive: bool,
    /// `FOR`
    pub command: PolicyCommand,
    /// `TO`; PUBLIC without it.
    pub roles: Vec<Grantee>,
    /// `USING`
    pub using: Option<SourceExpr>,
    /// `WITH CHECK`
    pub check: Option<SourceExpr>,
}

/// `ALTER POLICY`: the parts that change.
#[derive(Debug, Clone, PartialEq)]
pub struct AlterPolicy {
    /// Its name.
    pub name: Ident,
    /// Its table.
    pub table: TableName,
    /// `TO`
    pub roles: Option<Vec<Grantee>>,
    /// `USING`
    pub using: Option<SourceExpr>,
    /// `WITH CHECK`
    pub check: Option<SourceExpr>,
}

/// The statements that a policy applies to.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum PolicyCommand {
    /// `ALL`
    #[default]
    All,
    /// `SELECT`
    Select,
    /// `INSERT`
    Insert,
    /// `UPDATE`
    Update,
    /// `DELETE`
    Delete,
}

impl PolicyCommand {
    /// All, with their words and their letters in `pg_policy.polcmd`.
    pub const ALL: [(PolicyCommand, &'static str, char); 5] = [
        (PolicyCommand::All, "all", '*'),
        (PolicyCommand::Select, "select", 'r'),
        (PolicyCommand::Insert, "insert", 'a'),
        (PolicyCommand::Update, "update", 'w'),
        (PolicyCommand::Delete, "delete", 'd'),
    ];
}

/// A change of row-level security by ALTER TABLE.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RowSecurityChange {
    /// `ENABLE`, `DISABLE`
    Enable(bool),
    /// `FORCE`, `NO FORCE`
    Force(bool),
}

impl RowSecurityChange {
    /// Returns its name in messages.
    pub fn name(self) -> &'static str {
        match self {
            RowSecurityChange::Enable(true) => "ENABLE ROW SECURITY",
            RowSecurityChange::Enable(false) => "DISABLE ROW SECURITY",
            RowSecurityChange::Force(true) => "FORCE ROW SECURITY",
            RowSecurityChange::Force(false) => "NO FORCE ROW SECURITY",
        }
    }
}
