//! Statements about functions that users define.

use super::{Ident, Role, SetVariable, SourceExpr, TableName, TypeName};

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

/// The word by which a statement calls functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoutineWord {
    /// `FUNCTION`
    Function,
    /// `PROCEDURE`
    Procedure,
    /// `ROUTINE`: either.
    Routine,
}

impl FunctionStatement {
    /// Returns the text of PostgreSQL's command tag.
    pub fn tag(&self) -> &'static str {
        let (tags, word) = match self {
            FunctionStatement::Create(create) => {
                (["CREATE FUNCTION", "CREATE PROCEDURE", ""], create.word)
            }
            FunctionStatement::Alter(alter) => {
                (["ALTER FUNCTION", "ALTER PROCEDURE", "ALTER ROUTINE"], alter.word)
            }
            FunctionStatement::Drop(drop) => {
                (["DROP FUNCTION", "DROP PROCEDURE", "DROP ROUTINE"], drop.word)
            }
        };
        tags[word as usize]
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
    /// The name of a built-in function.
    Internal,
}

impl Language {
    /// Returns its name.
    pub fn name(self) -> &'static str {
        match self {
            Language::Sql => "sql",
            Language::PlPgSql => "plpgsql",
            Language::Internal => "internal",
        }
    }
}

/// `CREATE FUNCTION`, `CREATE PROCEDURE`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateFunction {
    /// Which of them.
    pub word: RoutineWord,
    /// Its name.
    pub name: TableName,
    /// `OR REPLACE`
    pub or_replace: bool,
    /// What it takes.
    pub arguments: Vec<FunctionParameter>,
    /// `RETURNS`; none if only OUT parameters say it.
    pub returns: Option<Returns>,
    /// What it is beside that.
    pub attributes: FunctionAttributes,
    /// The language of the body.
    pub language: Language,
    /// What it does.
    pub body: FunctionBody,
}

impl CreateFunction {
    /// Returns the types that it takes and gives.
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

/// What a statement says of a function beside names, types and body.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct FunctionAttributes {
    /// How its value may change.
    pub volatility: Option<Volatility>,
    /// `STRICT`: NULL if an argument is.
    pub strict: Option<bool>,
    /// `PARALLEL`
    pub parallel: Option<Parallel>,
    /// `LEAKPROOF`
    pub leakproof: Option<bool>,
    /// `COST`
    pub cost: Option<f32>,
    /// `ROWS`
    pub rows: Option<f32>,
    /// `SECURITY INVOKER`
    pub invoker: bool,
    /// `SET` and `RESET`, in their order.
    pub settings: Vec<SettingClause>,
    /// Where the first of them stands that a procedure cannot have.
    pub of_functions: Option<usize>,
}

/// What a statement says of the settings that a function runs with.
#[derive(Debug, Clone, PartialEq)]
pub enum SettingClause {
    /// `SET name TO value`; without a value `DEFAULT`, which takes it away.
    Set(SetVariable),
    /// `SET name FROM CURRENT`: what the session has by now.
    Current(Ident),
    /// `RESET name`, or `RESET ALL`.
    Reset(Option<Ident>),
}

/// Where a function may run; here all parts of a statement see the same.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub enum Parallel {
    /// In the session only.
    #[default]
    Unsafe,
    /// In the part of a plan that is not parallel.
    Restricted,
    /// Anywhere.
    Safe,
}

/// A parameter of a function.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionParameter {
    /// How it is used.
    pub mode: ParameterMode,
    /// The mode was written.
    pub has_mode: bool,
    /// Its name, if it has one.
    pub name: Option<Ident>,
    /// Its type.
    pub type_name: TypeName,
    /// What it is if it is left out.
    pub default: Option<SourceExpr>,
}

/// How a parameter is used.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParameterMode {
    /// It is taken.
    In,
    /// `OUT`: it is given back.
    Out,
    /// `INOUT`: both.
    InOut,
    /// `VARIADIC`: an array of all arguments from here on.
    Variadic,
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
        /// Where it stands; none if it is written with escapes.
        place: Option<BodyPlace>,
    },
    /// `BEGIN ATOMIC statement; … END`: the text of the statements.
    Statements(String, BodyPlace),
    /// `RETURN expression`: the text of the query that it means.
    Expression(String, BodyPlace),
}

impl FunctionBody {
    /// Returns the text of its statements, and where it stands.
    pub fn text(&self) -> (&str, Option<BodyPlace>) {
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
    /// Where it stands; none if it is written with escapes.
    pub place: Option<BodyPlace>,
}

/// Where the text of a body stands in its statement.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyPlace {
    /// The position of its first character.
    pub start: usize,
    /// How many characters at its beginning the statement does not have.
    pub put_in: usize,
    /// Each quote in it is written twice.
    pub is_quoted: bool,
}

impl BodyPlace {
    /// Returns the position in the statement of a position in the text.
    pub fn position(&self, text: &str, at: usize) -> usize {
        let before = at.saturating_sub(1);
        let quotes = text.chars().take(before).filter(|c| *c == '\'' && self.is_quoted).count();
        self.start + (before + quotes).saturating_sub(self.put_in)
    }
}

/// A function that a statement names.
#[derive(Debug, Clone, PartialEq)]
pub struct FunctionReference {
    /// Its name.
    pub name: TableName,
    /// Its parameters, if they are given.
    pub arguments: Option<Vec<FunctionParameter>>,
}

impl FunctionReference {
    /// Returns the types that it is told by.
    pub fn types(&self) -> impl Iterator<Item = &TypeName> {
        self.arguments.iter().flatten().map(|one| &one.type_name)
    }
}

/// `ALTER FUNCTION`
#[derive(Debug, Clone, PartialEq)]
pub struct AlterFunction {
    /// What the statement calls it.
    pub word: RoutineWord,
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
    /// `OWNER TO`: the role that it belongs to.
    Owner(Role),
    /// `IMMUTABLE`, `STRICT` and their kin.
    Attributes(FunctionAttributes),
}

/// `DROP FUNCTION`
#[derive(Debug, Clone, PartialEq)]
pub struct DropFunction {
    /// What the statement calls them.
    pub word: RoutineWord,
    /// Which.
    pub functions: Vec<FunctionReference>,
    /// `IF EXISTS`
    pub if_exists: bool,
    /// `CASCADE`
    pub cascade: bool,
}
