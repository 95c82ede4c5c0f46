//! Statements about types that users define.

use super::{AlterDomain, CreateDomain, Ident, TableName};

/// A statement about types.
#[derive(Debug, Clone, PartialEq)]
pub enum TypeStatement {
    /// `CREATE TYPE … AS ENUM`
    Create(CreateEnum),
    /// `ALTER TYPE`
    Alter(AlterType),
    /// `CREATE DOMAIN`
    CreateDomain(CreateDomain),
    /// `ALTER DOMAIN`
    AlterDomain(AlterDomain),
    /// `DROP TYPE`, `DROP DOMAIN`
    Drop(DropType),
}

impl TypeStatement {
    /// Returns the text of PostgreSQL's command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            TypeStatement::Create(_) => "CREATE TYPE",
            TypeStatement::Alter(_) => "ALTER TYPE",
            TypeStatement::CreateDomain(_) => "CREATE DOMAIN",
            TypeStatement::AlterDomain(_) => "ALTER DOMAIN",
            TypeStatement::Drop(DropType { domain: true, .. }) => "DROP DOMAIN",
            TypeStatement::Drop(_) => "DROP TYPE",
        }
    }
}

/// `CREATE TYPE … AS ENUM (…)`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateEnum {
    /// Its name.
    pub name: TableName,
    /// The labels.
    pub labels: Vec<String>,
}

/// `ALTER TYPE`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterType {
    /// Its name.
    pub name: TableName,
    /// What changes.
    pub action: AlterTypeAction,
}

/// What ALTER TYPE does.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterTypeAction {
    /// `ADD VALUE`
    AddValue {
        /// `IF NOT EXISTS`
        if_not_exists: bool,
        /// The new label.
        label: String,
        /// Where, the end without it.
        place: Option<LabelPlace>,
    },
    /// `RENAME VALUE … TO …`
    RenameValue {
        /// The label.
        from: String,
        /// Its new text.
        to: String,
    },
    /// `RENAME TO`
    Rename(Ident),
    /// `SET SCHEMA`
    SetSchema(Ident),
}

/// `BEFORE` or `AFTER` another label.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelPlace {
    /// `BEFORE`
    pub before: bool,
    /// The other.
    pub label: String,
}

/// `DROP TYPE`, `DROP DOMAIN`
#[derive(Debug, Clone, PartialEq)]
pub struct DropType {
    /// The names.
    pub names: Vec<TableName>,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// `CASCADE`
    pub cascade: bool,
    /// Only of domains.
    pub domain: bool,
}
