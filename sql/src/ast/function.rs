//! Syntax tree of statements about functions and procedures.

use super::{Ident, ObjectKind, ObjectReference, SetVariable, SourceExpr, TableName, TypeName};

/// A statement about functions or procedures.
#[derive(Debug, Clone, PartialEq)]
pub enum FunctionStatement {
    /// `CREATE FUNCTION`
    Create(CreateFunction),
    /// `ALTER FUNCTION` of attributes
    Alter(AlterFunction),
}

impl FunctionStatement {
    /// Returns PostgreSQL's command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            FunctionStatement::Create(create) if create.kind == ObjectKind::Procedure => {
                "CREATE PROCEDURE"
            }
            FunctionStatement::Create(_) => "CREATE FUNCTION",
            FunctionStatement::Alter(alter) => alter.function.kind.descriptor().tags[0],
        }
    }
}

/// The language of a body.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Language {
    /// SQL
    #[default]
    Sql,
    /// PL/pgSQL
    PlPgSql,
}

impl Language {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Language::Sql => "sql",
            Language::PlPgSql => "plpgsql",
        }
    }
}

/// `CREATE FUNCTION`, `CREATE PROCEDURE`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateFunction {
    /// FUNCTION or PROCEDURE.
    pub kind: ObjectKind,
    /// Its name.
    pub name: TableName,
    /// `OR REPLACE`
    pub or_replace: bool,
    /// Its parameters.
    pub arguments: Vec<FunctionParameter>,
    /// `RETURNS`; none if only OUT parameters define the result.
    pub returns: Option<Returns>,
    /// Volatility, strictness and other attributes.
    pub attributes: FunctionAttributes,
    /// The language of the body.
    pub language: Language,
    /// Its body.
    pub body: FunctionBody,
}

impl CreateFunction {
    /// Returns the types of its parameters and of its result.
    pub fn types(&self) -> impl Iterator<Item = &TypeName> {
        let (result, columns) = match &self.returns {
            Some(Returns::Value(of) | Returns::Set(of)) => (Some(of), &[][..]),
            Some(Returns::Table(columns)) => (None, columns.as_slice()),
            None => (None, &[][..]),
        };
        let taken = self.arguments.iter().map(|one| &one.type_name);
        taken.chain(columns.iter().map(|(_, of)| of)).chain(result)
    }
}

/// Attributes of a function besides names, types and body.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FunctionAttributes {
    /// Its volatility.
    pub volatility: Option<Volatility>,
    /// `STRICT`: the result is NULL if an argument is.
    pub strict: Option<bool>,
    /// `PARALLEL`
    pub parallel: Option<Parallel>,
    /// `LEAKPROOF`
    pub leakproof: Option<bool>,
    /// `COST`
    pub cost: Option<f32>,
    /// `ROWS`
    pub rows: Option<f32>,
    /// `SECURITY DEFINER` and `SECURITY INVOKER`
    pub security_definer: Option<bool>,
    /// `SET` and `RESET`, in the order of the text.
    pub settings: Vec<SettingClause>,
    /// The position of the first attribute that a procedure cannot have.
    pub of_functions: Option<usize>,
}

/// A clause about the settings that a function runs with.
#[derive(Debug, Clone, PartialEq)]
pub enum SettingClause {
    /// `SET name TO value`; without a value `DEFAULT`, which removes the setting.
    Set(SetVariable),
    /// `SET name FROM CURRENT`: the present value in the session.
    Current(Ident),
    /// `RESET name`, or `RESET ALL`.
    Reset(Option<Ident>),
}

/// Parallel safety of a function. It is only stored: execution does not depend on it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Parallel {
    /// `UNSAFE`
    #[default]
    Unsafe,
    /// `RESTRICTED`
    Restricted,
    /// `SAFE`
    Safe,
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionParameter {
    /// Its mode.
    pub mode: ParameterMode,
    /// True if the mode was written.
    pub has_mode: bool,
    /// Its name, if it has one.
    pub name: Option<Ident>,
    /// Its type.
    pub type_name: TypeName,
    /// Its default.
    pub default: Option<SourceExpr>,
}

/// The mode of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterMode {
    /// `IN`
    In,
    /// `OUT`
    Out,
    /// `INOUT`
    InOut,
    /// `VARIADIC`: an array of all remaining arguments.
    Variadic,
}

/// The result of a function.
#[derive(Debug, Clone, PartialEq)]
pub enum Returns {
    /// One value.
    Value(TypeName),
    /// `SETOF`: a set of values.
    Set(TypeName),
    /// `TABLE (…)`: a set of rows.
    Table(Vec<(Ident, TypeName)>),
}

/// The volatility of a function.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Volatility {
    /// `IMMUTABLE`
    Immutable,
    /// `STABLE`
    Stable,
    /// `VOLATILE`
    Volatile,
}

/// The body of a function.
#[derive(Debug, Clone, PartialEq)]
pub enum FunctionBody {
    /// `AS 'text'`
    Text {
        /// The text.
        text: String,
        /// Its position; none if it is written with escapes.
        place: Option<BodyPosition>,
    },
    /// `BEGIN ATOMIC statement; … END`: the text of the statements.
    Statements(String, BodyPosition),
    /// `RETURN expression`: the text of the equivalent query.
    Expression(String, BodyPosition),
}

impl FunctionBody {
    /// Returns the text of its statements, and its position.
    pub fn text(&self) -> (&str, Option<BodyPosition>) {
        match self {
            FunctionBody::Text { text, place } => (text, *place),
            FunctionBody::Statements(text, place) | FunctionBody::Expression(text, place) => {
                (text, Some(*place))
            }
        }
    }
}

/// `DO`
#[derive(Debug, Clone, PartialEq)]
pub struct DoBlock {
    /// The language.
    pub language: String,
    /// The body.
    pub body: String,
    /// Its position; none if it is written with escapes.
    pub place: Option<BodyPosition>,
}

/// Position of a body in its statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyPosition {
    /// The position of its first character.
    pub start: usize,
    /// The number of characters that the parser put in front, which the statement does not have.
    pub inserted_chars: usize,
    /// True if each quote in it is doubled.
    pub is_quoted: bool,
}

impl BodyPosition {
    /// Returns the position in the statement of a position in the body.
    pub fn position(&self, text: &str, at: usize) -> usize {
        let before = at.saturating_sub(1);
        let quotes = text.chars().take(before).filter(|c| *c == '\'' && self.is_quoted).count();
        self.start + (before + quotes).saturating_sub(self.inserted_chars)
    }
}

/// `ALTER FUNCTION` of attributes
#[derive(Debug, Clone, PartialEq)]
pub struct AlterFunction {
    /// The function.
    pub function: ObjectReference,
    /// `IMMUTABLE`, `STRICT` and other attributes.
    pub attributes: FunctionAttributes,
}
