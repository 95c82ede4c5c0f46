//! Functions of `information_schema` and `pg_catalog` that are defined by SQL text: those that
//! drivers call to expand the catalog's arrays and to interpret type modifiers, and functions over
//! system views; and Phoenix's functions in schema `bennu`, as expressions over PostgreSQL's.
//!
//! Every catalog contains them next to the user-defined ones, with numbers that those never have;
//! they are not stored.

use crate::ast::{
    self, FunctionStatement, ParameterMode, Returns, Statement, TypeName, Volatility,
};
use crate::catalog::Catalog;
use crate::catalog::function::{
    Function, FunctionRecord, ParameterExtension, ParameterRecord, ReturnRecord,
};
use crate::catalog::name::SearchPath;
use crate::error::Result;
use crate::parser;

/// Definitions.
const DEFINITIONS: &str = include_str!("standard_functions.sql");

/// Functions of Phoenix.
const PHOENIX_FUNCTIONS: &str = include_str!("phoenix_functions.txt");

/// Schemas of the functions.
pub const SCHEMAS: [&str; 3] = ["information_schema", "pg_catalog", PHOENIX_SCHEMA];

/// The schema of Phoenix's functions.
pub const PHOENIX_SCHEMA: &str = "bennu";

/// The first number; user-defined functions have higher ones.
const FIRST_NUMBER: u32 = 100;

/// The first number of Phoenix's functions.
const FIRST_PHOENIX_NUMBER: u32 = 300;

/// Returns all of them.
///
/// # Errors
///
/// An error of one of the texts, which a test would find.
pub fn all(catalog: &Catalog) -> Result<Vec<Function>> {
    let mut functions = Vec::new();
    let general = (FIRST_NUMBER..).zip(parser::parse_statements(DEFINITIONS)?);
    let phoenix = parser::parse_statements(&phoenix_definitions())?;
    for (number, parsed) in general.chain((FIRST_PHOENIX_NUMBER..).zip(phoenix)) {
        let Statement::Function(statement) = &parsed.statement else {
            unreachable!("the file has other statements");
        };
        let FunctionStatement::Create(create) = &**statement else { unreachable!() };
        functions.push(Function::of_record(record(number, create, catalog)?, catalog)?);
    }
    Ok(functions)
}

/// Returns the statements that create Phoenix's functions.
fn phoenix_definitions() -> String {
    let lines = PHOENIX_FUNCTIONS.lines().filter(|line| !line.is_empty() && !line.starts_with('#'));
    let definition = |line: &str| {
        let (declaration, body) = line.split_once(" = ")?;
        let (declaration, volatility) = declaration.rsplit_once(' ')?;
        let (signature, result) = declaration.split_once(") ")?;
        let volatility = match volatility {
            "i" => "IMMUTABLE",
            "s" => "STABLE",
            _ => "VOLATILE",
        };
        Some(format!(
            "CREATE FUNCTION {PHOENIX_SCHEMA}.{signature}) RETURNS {result} LANGUAGE sql {volatility} AS $$SELECT {body}$$;"
        ))
    };
    lines.filter_map(definition).collect()
}

/// Returns the record of a definition. Its parameters have no defaults.
fn record(number: u32, create: &ast::CreateFunction, catalog: &Catalog) -> Result<FunctionRecord> {
    let path = SearchPath::default();
    let oid = |of: &TypeName| Ok::<u32, crate::error::Error>(catalog.type_named(of, &path)?.oid());
    let (mut parameters, mut more) = (Vec::new(), Vec::new());
    for (at, parameter) in create.arguments.iter().enumerate() {
        let name = parameter.name.as_ref().map_or(String::new(), |name| name.value.clone());
        let type_oid = oid(&parameter.type_name)?;
        match parameter.mode {
            ParameterMode::Out => more.push(ParameterExtension::Out(at as u32, name, type_oid)),
            _ => parameters.push(ParameterRecord { name, type_oid, ..Default::default() }),
        }
    }
    let returns = match &create.returns {
        Some(Returns::Set(of)) => ReturnRecord::Set(oid(of)?),
        Some(Returns::Value(of)) => ReturnRecord::Value(oid(of)?),
        _ => unreachable!("{} has no RETURNS", create.name.name.value),
    };
    let schema = create.name.schema.as_ref().map_or(SCHEMAS[1], |schema| schema.value.as_str());
    Ok(FunctionRecord {
        number,
        schema: schema.to_owned(),
        name: create.name.name.value.clone(),
        parameters,
        returns,
        volatility: create.attributes.volatility.unwrap_or(Volatility::Volatile),
        strict: create.attributes.strict.unwrap_or_default(),
        body: create.body.text().0.to_owned(),
        search_path: None,
        kind: Default::default(),
        more,
        is_expression: false,
        hints: Default::default(),
        language: create.language,
        settings: Default::default(),
        security_definer: false,
        unknown: Default::default(),
    })
}
