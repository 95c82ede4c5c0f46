//! Statements about domains.

use super::{Ident, Role, SourceExpr, TableName, TypeName};

/// `CREATE DOMAIN`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateDomain {
    /// Its name.
    pub name: TableName,
    /// The type that it is over.
    pub type_name: TypeName,
    /// `DEFAULT`
    pub default: Option<SourceExpr>,
    /// `NOT NULL`
    pub not_null: bool,
    /// The CHECK constraints.
    pub checks: Vec<DomainCheck>,
}

/// A CHECK of a domain, over the column `value`.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainCheck {
    /// Its name, if it is given one.
    pub name: Option<Ident>,
    /// The predicate.
    pub predicate: SourceExpr,
}

/// `ALTER DOMAIN`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterDomain {
    /// Its name.
    pub name: TableName,
    /// What changes.
    pub action: AlterDomainAction,
}

/// What ALTER DOMAIN does.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterDomainAction {
    /// `SET DEFAULT`; `DROP DEFAULT` without one.
    Default(Option<SourceExpr>),
    /// `SET NOT NULL`
    SetNotNull,
    /// `DROP NOT NULL`
    DropNotNull,
    /// `ADD CHECK … [NOT VALID]`
    Add {
        /// The constraint.
        check: DomainCheck,
        /// Values that are there are not looked at.
        not_valid: bool,
    },
    /// `DROP CONSTRAINT`
    Drop {
        /// `IF EXISTS`
        if_exists: bool,
        /// Its name.
        constraint: Ident,
    },
    /// `RENAME CONSTRAINT … TO …`
    RenameConstraint {
        /// Its name.
        constraint: Ident,
        /// The new one.
        to: Ident,
    },
    /// `VALIDATE CONSTRAINT`
    Validate(Ident),
    /// `RENAME TO`
    Rename(Ident),
    /// `SET SCHEMA`
    SetSchema(Ident),
    /// `OWNER TO`: the role that it belongs to.
    Owner(Role),
}
