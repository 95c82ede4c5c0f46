//! Input and output of `reg…` values: resolution of names to OIDs, and names of OIDs.
//!
//! Used by the `reg…` types, the `to_reg…` functions and functions with an argument of type
//! `regclass`. The search path comes from the [`DefinitionContext`].

use std::sync::Arc;

use types::datatype::RegKind;
use types::{DataType, SqlType};

use crate::ast::{Collation, TableName};
use crate::catalog::function::Function;
use crate::catalog::user_type::OID_OFFSET;
use crate::error::{Error, Result};
use crate::parser;
use crate::system::catalog_objects::{CatalogObjects, SystemRelation};
use crate::system::definition::{identifier, qualified};
use crate::system::pg_proc::{self, NamedFunction};
use crate::system::pseudo_types;
use crate::system::relation_definitions::{BENNU, PG_CATALOG};
use crate::system::views::{DefinitionContext, roles};
use crate::system::{constants, user_functions};

/// Returns the OIDs of the schemas that are searched for an unqualified name, in order.
fn searched(viewer: &DefinitionContext<'_>, objects: &CatalogObjects) -> Vec<u32> {
    let path = viewer.search_path();
    let named = path.of_relations().filter_map(|name| objects.namespace_named(name));
    // Views of schema `bennu` need the schema: the default user has this name, and with it
    // `"$user"` of the default search path.
    let mut schemas: Vec<u32> =
        named.map(|namespace| namespace.oid).filter(|oid| *oid != BENNU).collect();
    if !schemas.contains(&PG_CATALOG) {
        schemas.insert(0, PG_CATALOG);
    }
    schemas
}

/// Parses an optionally qualified name.
fn parse(text: &str) -> Result<TableName> {
    let invalid = || err!(INVALID_NAME: "invalid name syntax");
    parser::parse_relation_name(text).map_err(|_| invalid())
}

/// Parses the name of an object that belongs to no schema.
fn parse_alone(text: &str) -> Result<String> {
    match parse(text)? {
        TableName { schema: None, name } => Ok(name.value),
        _ => Err(err!(INVALID_NAME: "invalid name syntax")),
    }
}

fn shown(name: &TableName) -> String {
    match &name.schema {
        Some(schema) => format!("{}.{}", schema.value, name.name.value),
        None => name.name.value.clone(),
    }
}

/// Returns the relation of a name.
///
/// # Errors
///
/// 3F000 and 42P01 if there is none.
pub(super) fn relation<'o>(
    viewer: &DefinitionContext<'_>,
    objects: &'o CatalogObjects,
    text: &str,
) -> Result<&'o SystemRelation> {
    let name = parse(text)?;
    let undefined = || err!(UNDEFINED_TABLE: "relation \"{}\" does not exist", shown(&name));
    let found = match &name.schema {
        Some(schema) => {
            let path = viewer.search_path();
            let own = path.schema(&schema.value).unwrap_or(&schema.value);
            let schema = objects.namespace_named(own).ok_or_else(
                || err!(INVALID_SCHEMA_NAME: "schema \"{}\" does not exist", schema.value),
            )?;
            objects.relation_named(schema.oid, &name.name.value)
        }
        None => {
            let mut searched = searched(viewer, objects).into_iter();
            searched.find_map(|schema| objects.relation_named(schema, &name.name.value))
        }
    };
    found.ok_or_else(undefined)
}

/// Returns true if the unqualified name resolves to a relation (`pg_table_is_visible`).
pub(super) fn is_visible(
    viewer: &DefinitionContext<'_>,
    objects: &CatalogObjects,
    relation: &SystemRelation,
) -> bool {
    let mut searched = searched(viewer, objects).into_iter();
    let first = searched.find_map(|schema| objects.relation_named(schema, &relation.name));
    first.is_some_and(|first| first.oid == relation.oid)
}

/// Returns the OID of the object that a text names.
///
/// # Errors
///
/// PostgreSQL's error of the kind if there is no such object.
pub(super) fn oid_of(
    viewer: &DefinitionContext<'_>,
    objects: &CatalogObjects,
    kind: RegKind,
    text: &str,
) -> Result<u32> {
    match kind {
        RegKind::Class => relation(viewer, objects, text).map(|relation| relation.oid),
        RegKind::Type => type_oid(viewer, text),
        RegKind::Namespace => {
            let name = parse_alone(text)?;
            match objects.namespace_named(&name) {
                Some(namespace) => Ok(namespace.oid),
                None => bail!(INVALID_SCHEMA_NAME: "schema \"{name}\" does not exist"),
            }
        }
        RegKind::Role => {
            let name = parse_alone(text)?;
            match roles(viewer).into_iter().find(|(_, known)| *known == name) {
                Some((number, _)) => Ok(number),
                None => {
                    bail!(UNDEFINED_OBJECT: "role \"{name}\" does not exist")
                }
            }
        }
        RegKind::Proc => {
            let name = parse(text)?;
            check_schema(viewer, objects, &name)?;
            let schema = name.schema.as_ref().map(|one| one.value.as_str());
            let path = viewer.search_path();
            let of_users = viewer.catalog.functions_named(schema, &name.name.value, &path);
            let mut oids: Vec<u32> = functions(&name).iter().map(|one| one.oid).collect();
            oids.extend(of_users.iter().map(|one| one.oid()));
            match oids.as_slice() {
                [one] => Ok(*one),
                [] => bail!(UNDEFINED_FUNCTION: "function \"{text}\" does not exist"),
                _ => bail!(AMBIGUOUS_FUNCTION: "more than one function named \"{text}\""),
            }
        }
        RegKind::Procedure => procedure(viewer, text),
        RegKind::Operator => operator(viewer, objects, text),
        RegKind::Collation => collation(viewer, objects, text),
        RegKind::Config | RegKind::Dictionary => text_search_object(viewer, objects, kind, text),
        RegKind::Oper => {
            let name = parse(text)?;
            check_schema(viewer, objects, &name)?;
            let found = match &name.schema {
                Some(schema) if schema.value != "pg_catalog" => Vec::new(),
                _ => pg_proc::operators_named(&name.name.value),
            };
            match found.as_slice() {
                [one] => Ok(*one),
                [] => bail!(UNDEFINED_FUNCTION: "operator does not exist: {text}"),
                _ => bail!(AMBIGUOUS_FUNCTION: "more than one operator named {text}"),
            }
        }
    }
}

/// Returns the OID of the operator of `symbol(type, type)`; a prefix operator has NONE as the
/// first type.
fn operator(viewer: &DefinitionContext<'_>, objects: &CatalogObjects, text: &str) -> Result<u32> {
    let (name, list) = name_and_types(text)?;
    check_schema(viewer, objects, &name)?;
    let path = viewer.search_path();
    let side = |one: &str| match one.eq_ignore_ascii_case("none") {
        true => Ok(None),
        false => viewer.catalog.type_named(&parser::parse_type(one)?, &path).map(Some),
    };
    let sides = list.iter().map(|one| side(one)).collect::<Result<Vec<Option<SqlType>>>>()?;
    match sides.len() {
        0 | 1 => {
            bail!(UNDEFINED_PARAMETER: "missing argument";
                hint "Use NONE to denote the missing argument of a unary operator.");
        }
        2 => {}
        _ => {
            bail!(TOO_MANY_ARGUMENTS: "too many arguments";
                hint "Provide two argument types for operator.");
        }
    }
    let bases: Vec<DataType> = sides.into_iter().flatten().map(|one| one.base.clone()).collect();
    let is_ours = name.schema.as_ref().is_none_or(|schema| schema.value == "pg_catalog");
    let found = pg_proc::operator(&name.name.value, &bases).filter(|_| is_ours);
    found.ok_or_else(|| err!(UNDEFINED_FUNCTION: "operator does not exist: {text}"))
}

/// Returns the OID of the collation of a name.
fn collation(viewer: &DefinitionContext<'_>, objects: &CatalogObjects, text: &str) -> Result<u32> {
    let name = parse(text)?;
    check_schema(viewer, objects, &name)?;
    let is_ours = name.schema.as_ref().is_none_or(|schema| schema.value == "pg_catalog");
    let mut known = Collation::ALL.into_iter().filter(|_| is_ours);
    let found = known.find(|known| known.name() == name.name.value);
    found.map(Collation::oid).ok_or_else(|| {
        let shown = shown(&name);
        err!(UNDEFINED_OBJECT: "collation \"{shown}\" for encoding \"UTF8\" does not exist")
    })
}

/// Returns the OID of the text search configuration or dictionary of a name.
fn text_search_object(
    viewer: &DefinitionContext<'_>,
    objects: &CatalogObjects,
    kind: RegKind,
    text: &str,
) -> Result<u32> {
    let name = parse(text)?;
    check_schema(viewer, objects, &name)?;
    let is_ours = name.schema.as_ref().is_none_or(|schema| schema.value == "pg_catalog");
    let (what, relation) = match kind {
        RegKind::Config => ("configuration", "pg_ts_config"),
        _ => ("dictionary", "pg_ts_dict"),
    };
    let found = constants::oid_of(relation, &name.name.value);
    found.filter(|_| is_ours).ok_or_else(
        || err!(UNDEFINED_OBJECT: "text search {what} \"{}\" does not exist", shown(&name)),
    )
}

/// Splits `name(type, …)` into the name and the types.
fn name_and_types(text: &str) -> Result<(TableName, Vec<&str>)> {
    let expected = |what: &str| err!(INVALID_TEXT_REPRESENTATION: "expected a {what} parenthesis");
    let (name, rest) = text.split_once('(').ok_or_else(|| expected("left"))?;
    let name = parse(name)?;
    let list = rest.trim_end().strip_suffix(')').ok_or_else(|| expected("right"))?;
    let types = list.split(',').filter(|_| !list.trim().is_empty()).map(str::trim);
    Ok((name, types.collect()))
}

/// Returns an error if the schema of a qualified name does not exist.
fn check_schema(
    viewer: &DefinitionContext<'_>,
    objects: &CatalogObjects,
    name: &TableName,
) -> Result<()> {
    let Some(schema) = name.schema.as_ref().map(|one| one.value.as_str()) else { return Ok(()) };
    let path = viewer.search_path();
    match objects.namespace_named(path.schema(schema).unwrap_or(schema)) {
        Some(_) => Ok(()),
        None => {
            bail!(INVALID_SCHEMA_NAME: "schema \"{schema}\" does not exist")
        }
    }
}

fn functions(name: &TableName) -> Vec<NamedFunction> {
    match &name.schema {
        Some(schema) if schema.value != "pg_catalog" => Vec::new(),
        _ => pg_proc::named(&name.name.value),
    }
}

/// Returns the OID of the type of a name.
fn type_oid(viewer: &DefinitionContext<'_>, text: &str) -> Result<u32> {
    if let Some(known) = pseudo_types::named(text) {
        return Ok(known);
    }
    let name = parser::parse_type(text)?;
    Ok(viewer.catalog.type_named(&name, &viewer.search_path())?.oid())
}

/// Returns the OID of the function of `name(type, …)`.
fn procedure(viewer: &DefinitionContext<'_>, text: &str) -> Result<u32> {
    let undefined = || err!(UNDEFINED_FUNCTION: "function \"{text}\" does not exist");
    let (name, list) = name_and_types(text)?;
    let path = viewer.search_path();
    let mut types: Vec<u32> = Vec::new();
    for one in list {
        types.push(type_oid(viewer, one)?);
    }
    let found = functions(&name).into_iter().find(|one| one.arguments == types);
    let schema = name.schema.as_ref().map(|one| one.value.as_str());
    let of_users = viewer.catalog.functions_named(schema, &name.name.value, &path);
    let oids = |types: &[SqlType]| types.iter().map(|one| one.oid()).collect::<Vec<u32>>();
    let of_users = of_users.iter().find(|one| oids(&one.parameters) == types);
    let oid = found.map(|one| one.oid).or_else(|| of_users.map(|one| one.oid()));
    oid.ok_or_else(undefined)
}

fn of_users<'v>(viewer: &'v DefinitionContext<'_>, oid: u32) -> Option<&'v Arc<Function>> {
    viewer.catalog.function(oid.checked_sub(OID_OFFSET)?)
}

/// Returns the output of a `reg…` value; `None` if there is no such object.
pub(super) fn name_of(
    viewer: &DefinitionContext<'_>,
    objects: &CatalogObjects,
    kind: RegKind,
    number: u32,
) -> Option<String> {
    match kind {
        RegKind::Class => {
            let relation = objects.relation(number)?;
            Some(match is_visible(viewer, objects, relation) {
                true => identifier(&relation.name),
                false => qualified(objects.namespace(relation.schema), &relation.name),
            })
        }
        RegKind::Type => match pseudo_types::sql_name(number) {
            Some(known) => Some(known.to_owned()),
            None => viewer.catalog.shown_type_with(number, -1, &viewer.search_path()),
        },
        RegKind::Namespace => match objects.namespace(number) {
            "" => None,
            name => Some(identifier(name)),
        },
        RegKind::Role => {
            let role = roles(viewer).into_iter().find(|(known, _)| *known == number);
            role.map(|(_, name)| identifier(&name))
        }
        RegKind::Proc | RegKind::Procedure if of_users(viewer, number).is_some() => {
            let function = of_users(viewer, number)?;
            let path = viewer.search_path();
            let names = user_functions::FunctionNames { catalog: viewer.catalog, path: &path };
            Some(match kind {
                RegKind::Proc => names.name(function),
                _ => names.signature(function),
            })
        }
        RegKind::Proc => {
            let function = pg_proc::by_oid(number)?;
            let several = pg_proc::named(&function.name).len() > 1;
            let schema = if several { "pg_catalog." } else { "" };
            Some(format!("{schema}{}", identifier(&function.name)))
        }
        RegKind::Procedure => {
            let function = pg_proc::by_oid(number)?;
            Some(format!("{}({})", identifier(&function.name), function.argument_list(",")))
        }
        RegKind::Oper => {
            let symbol = pg_proc::operator_by_oid(number)?;
            let several = pg_proc::operators_named(symbol).len() > 1;
            Some(format!("{}{symbol}", if several { "pg_catalog." } else { "" }))
        }
        RegKind::Operator => {
            let symbol = pg_proc::operator_by_oid(number)?;
            Some(match pg_proc::operator_arguments(number)? {
                [left, right] => format!("{symbol}({},{})", left.sql_name(), right.sql_name()),
                [right] => format!("{symbol}(NONE,{})", right.sql_name()),
                _ => return None,
            })
        }
        RegKind::Collation => {
            let found = Collation::ALL.into_iter().find(|known| known.oid() == number);
            found.map(|known| identifier(known.name()))
        }
        RegKind::Config => constants::name_of("pg_ts_config", number).map(String::from),
        RegKind::Dictionary => constants::name_of("pg_ts_dict", number).map(String::from),
    }
}
