//! Syntax tree of CREATE DOMAIN and ALTER DOMAIN.

use super::{Ident, SourceExpr, TableName, TypeName};

/// `CREATE DOMAIN`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateDomain {
    /// Its name.
    pub name: TableName,
    /// The base type.
    pub type_name: TypeName,
    /// `DEFAULT`
    pub default: Option<SourceExpr>,
    /// `NOT NULL`
    pub not_null: bool,
    /// The CHECK constraints.
    pub checks: Vec<DomainCheck>,
}

/// A CHECK constraint of a domain, over the column `value`.
#[derive(Debug, Clone, PartialEq)]
pub struct DomainCheck {
    /// Its name, if written.
    pub name: Option<Ident>,
    /// The predicate.
    pub predicate: SourceExpr,
}

/// `ALTER DOMAIN`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterDomain {
    /// Its name.
    pub name: TableName,
    /// The change.
    pub action: AlterDomainAction,
}

/// The action of ALTER DOMAIN.
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
        /// `NOT VALID`: existing values are not checked.
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
}
