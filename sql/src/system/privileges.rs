//! Privilege inquiry functions: `has_…_privilege`, `pg_has_role` and `acldefault`; policies.
//!
//! System objects have PostgreSQL's default privileges: all roles may read them.

use std::sync::Arc;

use types::Datum;
use types::datatype::RegKind;
use types::function::quote_ident;

use crate::ast::PolicyCommand;
use crate::catalog::Catalog;
use crate::catalog::access::object_access::{AccessRecord, AccessSubject, FutureSubject};
use crate::catalog::access::privilege::{
    Acl, EXECUTE, PUBLIC_ROLE, PrivilegeKind, SELECT, USAGE, privilege_named,
};
use crate::catalog::table::{Policy, Table};
use crate::catalog::view::View;
use crate::error::{Error, Result};
use crate::system::catalog_objects::{
    CatalogObjects, SystemRelation, acl_list, database_of_oid, hashed_oid, role_oid, schema_oid_of,
    subject_of, user_oid,
};
use crate::system::functions::{Arguments, oid_at, relation_at};
use crate::system::relation_definitions::RelationDefinition;
use crate::system::value::{array, char, oid, text, text_or_null};
use crate::system::views::{DefinitionContext, roles};
use crate::system::{Row, SystemContext, pg_catalog, pg_proc, reg_names};

/// Returns the privileges that an inquiry function knows.
fn privileges_of(function: &str) -> &'static [&'static str] {
    match function {
        "has_table_privilege" => {
            &["SELECT", "INSERT", "UPDATE", "DELETE", "TRUNCATE", "REFERENCES", "TRIGGER"]
        }
        "has_column_privilege" | "has_any_column_privilege" => {
            &["SELECT", "INSERT", "UPDATE", "REFERENCES"]
        }
        "has_sequence_privilege" => &["USAGE", "SELECT", "UPDATE"],
        "has_database_privilege" => &["CREATE", "CONNECT", "TEMPORARY", "TEMP"],
        "has_schema_privilege" => &["CREATE", "USAGE"],
        "has_function_privilege" => &["EXECUTE"],
        "has_language_privilege" | "has_type_privilege" => &["USAGE"],
        "has_tablespace_privilege" => &["CREATE"],
        _ => &["USAGE", "MEMBER"],
    }
}

/// Computes `has_…_privilege`, `pg_has_role` and `acldefault`.
pub(super) fn has_privilege(
    source: &SystemContext,
    objects: &CatalogObjects,
    function: &str,
    arguments: Arguments<'_>,
) -> Result<Datum> {
    if function == "acldefault" {
        return default_list(&source.viewer(), arguments);
    }
    let [rest @ .., privileges] = arguments else { return Ok(Datum::Null) };
    for privilege in privileges.as_str().unwrap_or_default().split(',') {
        let asked = privilege.trim().to_ascii_uppercase();
        let bare = asked.strip_suffix(" WITH GRANT OPTION").unwrap_or(&asked);
        let bare = bare.strip_suffix(" WITH ADMIN OPTION").unwrap_or(bare);
        if !privileges_of(function).contains(&bare) {
            bail!(INVALID_PARAMETER_VALUE: "unrecognized privilege type: \"{}\"", privilege.trim());
        }
    }
    let of_column = function == "has_column_privilege";
    let objects_named = if of_column { 2 } else { 1 };
    let (role, named) = match rest.len() > objects_named {
        true => (rest.first(), &rest[1..]),
        false => (None, rest),
    };
    if let Some(role) = role
        && !role_exists(source, role)?
    {
        return Ok(Datum::Bool(false));
    }
    if function == "pg_has_role" {
        let of = role.map_or(Ok(Some(source.settings.roles().current.number)), |role| {
            role_number(source, role)
        })?;
        let other = named.first().map_or(Ok(None), |other| role_number(source, other))?;
        return Ok(match (of, other) {
            (Some(of), Some(other)) => {
                let asked = privileges.as_str().unwrap_or_default();
                Datum::Bool(asked.split(',').any(|one| has_role(source, (of, other), one)))
            }
            _ => Datum::Bool(false),
        });
    }
    if !object_exists(source, objects, function, named)? {
        return Ok(Datum::Null);
    }
    let number = match role {
        Some(role) if role.as_str() == Some("public") => Some(PUBLIC_ROLE),
        Some(role) => role_number(source, role)?,
        None => Some(source.settings.roles().current.number),
    };
    let Some(number) = number else { return Ok(Datum::Bool(false)) };
    let asked = privileges.as_str().unwrap_or_default();
    let held = held_privileges(source, objects, (function, named), number)?;
    Ok(Datum::Bool(asked.split(',').any(|one| is_held(one, held))))
}

/// Returns whether a privilege as written is held, or may be granted.
fn is_held(asked: &str, (held, grantable): (u32, u32)) -> bool {
    let asked = asked.trim().to_ascii_uppercase();
    match asked.strip_suffix(" WITH GRANT OPTION") {
        Some(bare) => privilege_named(bare).is_some_and(|one| grantable & one != 0),
        None => privilege_named(&asked).is_some_and(|one| held & one != 0),
    }
}

/// Returns the privileges of a role on the object of an inquiry, and its grant options.
fn held_privileges(
    source: &SystemContext,
    objects: &CatalogObjects,
    (function, named): (&str, Arguments<'_>),
    role: u32,
) -> Result<(u32, u32)> {
    let catalog = &source.catalog;
    let is_superuser = catalog.is_superuser(role);
    let everything = (u32::MAX, u32::MAX);
    let of_system = |privileges| if is_superuser { everything } else { (privileges, 0) };
    let of = |subject: Option<AccessSubject>, default: u32| match subject {
        Some(subject) => catalog.privileges_on(role, subject),
        None => of_system(default),
    };
    let Some(object) = named.first() else { return Ok((0, 0)) };
    Ok(match function {
        "has_table_privilege"
        | "has_sequence_privilege"
        | "has_column_privilege"
        | "has_any_column_privilege" => {
            let Some(relation) = relation_at(source, objects, object)? else { return Ok((0, 0)) };
            let subject = subject_of(relation);
            let (mut held, mut options) = of(subject, SELECT);
            if let (Some(AccessSubject::Relation(number)), true) =
                (subject, function.contains("column"))
            {
                let access = catalog.access(AccessSubject::Relation(number));
                let roles = catalog.roles_of(role, true);
                let wanted = match named.get(1).filter(|_| function == "has_column_privilege") {
                    Some(column) => position_of(source, (relation, number), column),
                    None => None,
                };
                let all = function == "has_any_column_privilege";
                let columns = access.columns.iter();
                for (_, items) in columns.filter(|(at, _)| all || wanted == Some(*at as usize)) {
                    let of_column = Acl(items.clone()).held_by(|one| roles.contains(&one));
                    held |= of_column.0;
                    options |= of_column.1;
                }
            }
            (held, options)
        }
        "has_schema_privilege" => {
            let name = match object.as_str() {
                Some(name) => name.to_owned(),
                None => objects.namespace(oid_at(named, 0)).to_owned(),
            };
            let schema = catalog.schema(&name);
            of(schema.map(|schema| AccessSubject::Schema(schema.oid)), USAGE)
        }
        "has_database_privilege" => {
            let database = match object.as_str() {
                Some(name) => catalog.database_named(name),
                None => database_of_oid(catalog, oid_at(named, 0)),
            };
            of(database.map(|one| AccessSubject::Database(one.oid)), 0)
        }
        "has_function_privilege" => {
            let oid = oid_of_named(source, objects, RegKind::Procedure, object)?;
            let known = catalog.functions().find(|one| Some(one.oid()) == oid);
            of(known.map(|one| AccessSubject::Function(one.record.number)), EXECUTE)
        }
        "has_type_privilege" => {
            let oid = oid_of_named(source, objects, RegKind::Type, object)?;
            let known = oid.and_then(|oid| catalog.type_of_oid(oid));
            let created = known.filter(|one| catalog.created_type(one.number()).is_some());
            of(created.map(|one| AccessSubject::Type(one.number())), USAGE)
        }
        "has_language_privilege" => of(None, USAGE),
        _ => of(None, 0),
    })
}

/// Returns the position of a column that an inquiry names or numbers.
fn position_of(
    source: &SystemContext,
    (relation, number): (&SystemRelation, u32),
    column: &Datum,
) -> Option<usize> {
    let name = match column.as_str() {
        Some(name) => name,
        None => {
            let wanted = column.as_i64()?;
            let mut columns = relation.columns.iter();
            &columns.find(|one| i64::from(one.number) == wanted)?.name
        }
    };
    match source.catalog.table(number) {
        Some(table) => table.column_index(name),
        None => relation.columns.iter().position(|one| one.name == name),
    }
}

/// Returns the OID of the object of an inquiry.
fn oid_of_named(
    source: &SystemContext,
    objects: &CatalogObjects,
    kind: RegKind,
    object: &Datum,
) -> Result<Option<u32>> {
    match object.as_str() {
        Some(name) => reg_names::oid_of(&source.viewer(), objects, kind, name).map(Some),
        None => Ok(object.as_i64().and_then(|oid| u32::try_from(oid).ok())),
    }
}

/// Returns true if the object of a privilege inquiry exists.
fn object_exists(
    source: &SystemContext,
    objects: &CatalogObjects,
    function: &str,
    named: Arguments<'_>,
) -> Result<bool> {
    let Some(object) = named.first() else { return Ok(false) };
    Ok(match function {
        "has_table_privilege" | "has_any_column_privilege" | "has_sequence_privilege" => {
            relation_at(source, objects, object)?.is_some()
        }
        "has_column_privilege" => match (relation_at(source, objects, object)?, named.get(1)) {
            (Some(table), Some(Datum::Text(name))) => {
                if table.column(name).is_none() {
                    bail!(UNDEFINED_COLUMN: "column \"{name}\" of relation \"{}\" does not exist", table.name);
                }
                true
            }
            (Some(table), Some(number)) => {
                let number = number.as_i64();
                table.columns.iter().any(|column| Some(i64::from(column.number)) == number)
            }
            _ => false,
        },
        "has_schema_privilege" => match object {
            Datum::Text(name) => match objects.namespace_named(name) {
                Some(_) => true,
                None => {
                    bail!(INVALID_SCHEMA_NAME: "schema \"{name}\" does not exist");
                }
            },
            _ => !objects.namespace(oid_at(named, 0)).is_empty(),
        },
        "has_database_privilege" => match object {
            Datum::Text(name) => match source.catalog.database_named(name) {
                Some(_) => true,
                None => bail!(INVALID_CATALOG_NAME: "database \"{name}\" does not exist"),
            },
            _ => database_of_oid(&source.catalog, oid_at(named, 0)).is_some(),
        },
        "has_function_privilege" => named_exists(source, objects, RegKind::Procedure, object)?,
        "has_type_privilege" => named_exists(source, objects, RegKind::Type, object)?,
        "has_language_privilege" => match object {
            Datum::Text(name) => matches!(&**name, "sql" | "internal"),
            _ => matches!(oid_at(named, 0), pg_proc::INTERNAL | pg_proc::SQL),
        },
        _ => match object {
            Datum::Text(name) => &**name == "pg_default",
            _ => oid_at(named, 0) == pg_catalog::TABLESPACE,
        },
    })
}

/// `acldefault`: the default privileges of an object of a kind.
fn default_list(viewer: &DefinitionContext<'_>, arguments: Arguments<'_>) -> Result<Datum> {
    let kind = match arguments.first() {
        Some(Datum::Text(kind)) => kind.to_string(),
        _ => String::new(),
    };
    let known = kind.chars().next().and_then(PrivilegeKind::of_letter);
    let (public, owners) = match (kind.as_str(), known) {
        ("c", _) => ("", ""),
        ("L", _) => ("", "rw"),
        ("p", _) => ("", "sA"),
        ("t", _) => ("", "C"),
        ("F" | "S", _) => ("", "U"),
        (_, Some(known)) => (known.descriptor().public, known.descriptor().all),
        (other, None) => {
            bail!(INTERNAL_ERROR: "unrecognized object type abbreviation: {other}");
        }
    };
    let owner = oid_at(arguments, 1);
    let known = roles(viewer).into_iter().find(|(number, _)| *number == owner);
    let owner = known.map_or_else(|| owner.to_string(), |(_, name)| quote_ident(&name));
    let lists = [("", public), (owner.as_str(), owners)].into_iter();
    let lists = lists.filter(|(_, privileges)| !privileges.is_empty());
    let item = |(of, privileges)| text(format!("{of}={privileges}/{owner}"));
    Ok(array(lists.map(item).collect()))
}

/// Returns the rows of ALTER DEFAULT PRIVILEGES.
pub(super) fn future_privileges(shape: &RelationDefinition, catalog: &Catalog) -> Vec<Row> {
    let row = |(subject, record): (AccessSubject, &Arc<AccessRecord>)| {
        let AccessSubject::Future(FutureSubject { role, schema, kind }) = subject else {
            return None;
        };
        // Elsewhere the letter of sequences is a small one.
        let letter = match kind {
            PrivilegeKind::Sequence => 'S',
            kind => kind.descriptor().letter,
        };
        let schema = catalog.schemas().find(|one| one.oid == schema);
        let schema_oid = schema.map_or(0, |schema| schema_oid_of(schema));
        Some(shape.row([
            ("oid", oid(hashed_oid(role, &format!("{schema_oid} {letter}")))),
            ("defaclrole", oid(role_oid(role))),
            ("defaclnamespace", oid(schema_oid)),
            ("defaclobjtype", char(letter)),
            ("defaclacl", acl_list(catalog, &record.acl(kind).0)),
        ]))
    };
    catalog.accesses().filter_map(row).collect()
}

fn role_exists(source: &SystemContext, role: &Datum) -> Result<bool> {
    let is_public = role.as_str() == Some("public");
    Ok(is_public || role_number(source, role)?.is_some())
}

/// Returns the number of a role by its name or OID; `None` for an OID of no role.
fn role_number(source: &SystemContext, role: &Datum) -> Result<Option<u32>> {
    let roles = source.catalog.roles();
    let Some(name) = role.as_str() else {
        let asked = role.as_i64();
        let mut known = roles.filter(|one| Some(i64::from(role_oid(one.number))) == asked);
        return Ok(known.next().map(|one| one.number));
    };
    match source.catalog.role_named(name) {
        Some(role) => Ok(Some(role.number)),
        None => bail!(UNDEFINED_OBJECT: "role \"{name}\" does not exist"),
    }
}

/// Returns whether a role has the privileges of another one (USAGE), may become it (MEMBER), or may
/// grant it.
fn has_role(source: &SystemContext, (role, other): (u32, u32), asked: &str) -> bool {
    let asked = asked.trim().to_ascii_uppercase();
    match asked.as_str() {
        "USAGE" => source.catalog.has_privileges_of(role, other),
        "MEMBER" => source.catalog.is_member_of(role, other),
        _ => source.catalog.is_administrator_of(role, other),
    }
}

fn named_exists(
    source: &SystemContext,
    objects: &CatalogObjects,
    kind: RegKind,
    object: &Datum,
) -> Result<bool> {
    match object {
        Datum::Text(name) => reg_names::oid_of(&source.viewer(), objects, kind, name).map(|_| true),
        other => {
            let number = other.as_i64().and_then(|oid| u32::try_from(oid).ok());
            Ok(number.is_some_and(|oid| {
                reg_names::name_of(&source.viewer(), objects, kind, oid).is_some()
            }))
        }
    }
}

/// Returns the rows of `pg_policy`.
pub(super) fn policies(shape: &RelationDefinition, catalog: &Catalog) -> Vec<Vec<Datum>> {
    let row = |(table, policy): (&Arc<Table>, &Arc<Policy>)| {
        let record = &policy.record;
        let roles = record.roles.iter().map(|role| match *role {
            PUBLIC_ROLE => oid(0),
            role => oid(role_oid(role)),
        });
        let mut letters = PolicyCommand::ALL.into_iter();
        let letter = letters.find(|(command, ..)| *command == record.command);
        let expression = |one: &Option<Arc<View>>| text_or_null(one.as_ref().map(|one| &one.text));
        shape.row([
            ("oid", oid(user_oid(record.number))),
            ("polname", text(&record.name)),
            ("polrelid", oid(user_oid(table.oid))),
            ("polcmd", char(letter.map_or('*', |(.., letter)| letter))),
            ("polpermissive", Datum::Bool(!record.is_restrictive)),
            ("polroles", array(roles.collect())),
            ("polqual", expression(&policy.using)),
            ("polwithcheck", expression(&policy.check)),
        ])
    };
    let tables = catalog.tables().into_iter();
    let policies = tables
        .flat_map(|table| table.row_security.policies.iter().map(move |policy| (table, policy)));
    policies.map(row).collect()
}
