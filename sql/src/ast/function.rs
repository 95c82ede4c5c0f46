//! Statements about functions that users define.

use super::{Ident, SourceExpr, TableName, TypeName};

/// A statement about functions.
#[derive(Debug, Clone, PartialEq)]
pub enum FunctionStatement {
    /// `CREATE FUNCTION`
    Create(CreateFunction),
    /// `ALTER FUNCTION`
    Alter(AlterFunction),
    /// `DROP FUNCTION`
    Drop(DropFunction),
}

impl FunctionStatement {
    /// Returns the text of PostgreSQL's command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            FunctionStatement::Create(_) => "CREATE FUNCTION",
            FunctionStatement::Alter(_) => "ALTER FUNCTION",
            FunctionStatement::Drop(_) => "DROP FUNCTION",
        }
    }
}

/// `CREATE FUNCTION`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateFunction {
    /// Its name.
    pub name: TableName,
    /// `OR REPLACE`
    pub or_replace: bool,
    /// What it takes.
    pub arguments: Vec<FunctionParameter>,
    /// `RETURNS`; none if only OUT parameters say it.
    pub returns: Option<Returns>,
    /// How its value may change.
    pub volatility: Volatility,
    /// `STRICT`: NULL if an argument is.
    pub strict: bool,
    /// What it does.
    pub body: FunctionBody,
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionParameter {
    /// Its name, if it has one.
    pub name: Option<Ident>,
    /// Its type.
    pub type_name: TypeName,
    /// What it is if it is left out.
    pub default: Option<SourceExpr>,
}

/// What a function returns.
#[derive(Debug, Clone, PartialEq)]
pub enum Returns {
    /// One value.
    Value(TypeName),
    /// Values.
    Set(TypeName),
    /// Rows.
    Table(Vec<(Ident, TypeName)>),
}

/// How the value of a function may change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum Volatility {
    /// Never.
    Immutable,
    /// From statement to statement.
    Stable,
    /// From call to call.
    Volatile,
}

/// What a function does.
#[derive(Debug, Clone, PartialEq)]
pub enum FunctionBody {
    /// `AS 'text'`
    Text {
        /// The text.
        text: String,
        /// Where it stands.
        position: usize,
    },
    /// `RETURN expression`, `BEGIN ATOMIC query; END`: the text of one query.
    Query(String),
}

/// A function that a statement names.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionReference {
    /// Its name.
    pub name: TableName,
    /// The types of its parameters, if they are given.
    pub arguments: Option<Vec<TypeName>>,
}

/// `ALTER FUNCTION`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterFunction {
    /// Which.
    pub function: FunctionReference,
    /// What changes.
    pub action: AlterFunctionAction,
}

/// What ALTER FUNCTION does.
#[derive(Debug, Clone, PartialEq)]
pub enum AlterFunctionAction {
    /// `RENAME TO`
    Rename(Ident),
    /// `SET SCHEMA`
    SetSchema(Ident),
    /// `IMMUTABLE`, `STRICT` and their kin.
    Attributes {
        /// How its value may change, if that is said.
        volatility: Option<Volatility>,
        /// Whether it is strict, if that is said.
        strict: Option<bool>,
    },
}

/// `DROP FUNCTION`
#[derive(Debug, Clone, PartialEq)]
pub struct DropFunction {
    /// Which.
    pub functions: Vec<FunctionReference>,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// `CASCADE`
    pub cascade: bool,
}
