//! Syntax tree of CREATE TYPE and ALTER TYPE.

use super::{AlterDomain, CreateDomain, Ident, TableName, TypeName};

/// A statement about types.
#[derive(Debug, Clone, PartialEq)]
pub enum TypeStatement {
    /// `CREATE TYPE … AS ENUM`
    Create(CreateEnum),
    /// `CREATE TYPE … AS (…)`
    CreateComposite(CreateComposite),
    /// `ALTER TYPE`
    Alter(AlterType),
    /// `CREATE DOMAIN`
    CreateDomain(CreateDomain),
    /// `ALTER DOMAIN`
    AlterDomain(AlterDomain),
}

impl TypeStatement {
    /// Returns PostgreSQL's command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            TypeStatement::Create(_) | TypeStatement::CreateComposite(_) => "CREATE TYPE",
            TypeStatement::Alter(_) => "ALTER TYPE",
            TypeStatement::CreateDomain(_) => "CREATE DOMAIN",
            TypeStatement::AlterDomain(_) => "ALTER DOMAIN",
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

/// `CREATE TYPE … AS (…)`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateComposite {
    /// Its name.
    pub name: TableName,
    /// Names and types of the attributes.
    pub attributes: Vec<(Ident, TypeName)>,
}

/// The action of ALTER TYPE on an attribute.
#[derive(Debug, Clone, PartialEq)]
pub enum AttributeChange {
    /// `ADD ATTRIBUTE`
    Add {
        /// Its name.
        name: Ident,
        /// Its type.
        type_name: TypeName,
    },
    /// `DROP ATTRIBUTE`
    Drop {
        /// Its name.
        name: Ident,
        /// `IF EXISTS`
        if_exists: bool,
    },
    /// `RENAME ATTRIBUTE … TO …`
    Rename {
        /// Its name.
        name: Ident,
        /// Its new name.
        to: Ident,
    },
    /// `ALTER ATTRIBUTE … TYPE`
    Type {
        /// Its name.
        name: Ident,
        /// Its new type.
        type_name: TypeName,
    },
}

/// `ALTER TYPE`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterType {
    /// Its name.
    pub name: TableName,
    /// The change.
    pub action: AlterTypeAction,
}

/// The action of ALTER TYPE.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterTypeAction {
    /// `ADD VALUE`
    AddValue {
        /// `IF NOT EXISTS`
        if_not_exists: bool,
        /// The new label.
        label: String,
        /// Its position among the labels; the end if omitted.
        place: Option<LabelPosition>,
    },
    /// `RENAME VALUE … TO …`
    RenameValue {
        /// The label.
        from: String,
        /// Its new text.
        to: String,
    },
    /// Changes of attributes.
    Attributes(Vec<AttributeChange>),
}

/// `BEFORE` or `AFTER` another label.
#[derive(Debug, Clone, PartialEq)]
pub struct LabelPosition {
    /// `BEFORE`
    pub before: bool,
    /// The other label.
    pub label: String,
}
