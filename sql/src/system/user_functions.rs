//! Functions of users as `pg_proc`, `information_schema.routines` and `pg_get_functiondef` tell of
//! them.

use types::{DataType, Datum, SqlType};

use crate::assemble;
use crate::ast::Volatility;
use crate::catalog::Catalog;
use crate::catalog::function::{Function, ParameterRecord, ReturnRecord};
use crate::catalog::name::SearchPath;
use crate::system::Row;
use crate::system::definition::{self, identifier, qualified};
use crate::system::information_schema::named;
use crate::system::objects::{DATABASE_NAME, OWNER, Objects};
use crate::system::pg_proc::SQL;
use crate::system::shape::Shape;
use crate::system::value::{array, char, int2, int4, oid, text, text_or_null, vector};

/// `pg_type.oid` of `record`.
const RECORD: u32 = 2_249;

/// The names of types, for one session.
pub(super) struct Names<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) path: &'a SearchPath,
}

impl Names<'_> {
    fn shown(&self, sql_type: SqlType) -> String {
        let shown = self.catalog.shown_type_with(sql_type.oid(), -1, self.path);
        shown.unwrap_or_else(|| sql_type.base.sql_name().to_owned())
    }

    /// `pg_get_function_arguments`, and without defaults `pg_get_function_identity_arguments`.
    pub(super) fn arguments(&self, function: &Function, defaults: bool) -> String {
        let parameters = function.record.parameters.iter().zip(&function.parameters);
        let parameter = |(record, sql_type): (&ParameterRecord, &SqlType)| {
            let mut text = match record.name.as_str() {
                "" => String::new(),
                name => format!("{} ", identifier(name)),
            };
            text.push_str(&self.shown(*sql_type));
            if let Some(default) = record.default.as_ref().filter(|_| defaults) {
                let default = default_text(self.catalog, default, *sql_type);
                text.push_str(&format!(" DEFAULT {default}"));
            }
            text
        };
        parameters.map(parameter).collect::<Vec<_>>().join(", ")
    }

    /// `pg_get_function_result`
    pub(super) fn result(&self, function: &Function) -> String {
        match &function.record.returns {
            ReturnRecord::Value(_) => self.shown(function.columns[0].1),
            ReturnRecord::Set(_) => format!("SETOF {}", self.shown(function.columns[0].1)),
            ReturnRecord::Table(_) => {
                let column = |(name, sql_type): &(String, SqlType)| {
                    format!("{} {}", identifier(name), self.shown(*sql_type))
                };
                let columns: Vec<String> = function.columns.iter().map(column).collect();
                format!("TABLE({})", columns.join(", "))
            }
        }
    }

    /// `regprocedure`: `f(integer,text)`
    pub(super) fn signature(&self, function: &Function) -> String {
        let types: Vec<String> = function.parameters.iter().map(|one| self.shown(*one)).collect();
        format!("{}({})", self.name(function), types.join(","))
    }

    /// The name, with its schema unless the search path finds it.
    pub(super) fn name(&self, function: &Function) -> String {
        let record = &function.record;
        match self.is_visible(function) {
            true => identifier(&record.name),
            false => qualified(&record.schema, &record.name),
        }
    }

    /// `pg_function_is_visible`
    pub(super) fn is_visible(&self, function: &Function) -> bool {
        let found = self.catalog.functions_named(None, &function.record.name, self.path);
        found.iter().any(|one| one.record.number == function.record.number)
    }

    /// `pg_get_functiondef`
    pub(super) fn definition(&self, function: &Function) -> String {
        let record = &function.record;
        let mut text = format!(
            "CREATE OR REPLACE FUNCTION {}({})\n RETURNS {}\n LANGUAGE sql\n",
            qualified(&record.schema, &record.name),
            self.arguments(function, true),
            self.result(function)
        );
        let mut words = Vec::new();
        match record.volatility {
            Volatility::Immutable => words.push("IMMUTABLE"),
            Volatility::Stable => words.push("STABLE"),
            Volatility::Volatile => {}
        }
        if record.strict {
            words.push("STRICT");
        }
        if !words.is_empty() {
            text.push_str(&format!(" {}\n", words.join(" ")));
        }
        match &record.search_path {
            None => text.push_str(&format!("AS $function${}$function$\n", record.body)),
            Some(_) => text.push_str(&format!("BEGIN ATOMIC\n {};\nEND\n", record.body)),
        }
        text
    }
}

/// Returns the text of a default as PostgreSQL writes it, with what was left to be understood.
fn default_text(catalog: &Catalog, text: &str, sql_type: SqlType) -> String {
    let bound = assemble::expression(catalog, text, &[], Some(sql_type));
    bound.map_or_else(
        |_| text.to_owned(),
        |bound| definition::without_casts(&bound, &|_| String::new()),
    )
}

fn volatility(function: &Function) -> Datum {
    char(match function.record.volatility {
        Volatility::Immutable => 'i',
        Volatility::Stable => 's',
        Volatility::Volatile => 'v',
    })
}

/// Returns the OID of the type that a function returns.
fn result_oid(function: &Function) -> u32 {
    match &function.record.returns {
        ReturnRecord::Value(oid) | ReturnRecord::Set(oid) => *oid,
        ReturnRecord::Table(columns) if columns.len() == 1 => columns[0].1,
        ReturnRecord::Table(_) => RECORD,
    }
}

/// The row of `pg_proc`.
pub(super) fn row(shape: &Shape, objects: &Objects, function: &Function) -> Row {
    let record = &function.record;
    let schema = objects.namespace_named(&record.schema).map_or(0, |namespace| namespace.oid);
    let taken = record.parameters.iter().map(|one| one.type_oid);
    let returned = match &record.returns {
        ReturnRecord::Table(columns) => columns.as_slice(),
        _ => &[],
    };
    let names: Vec<Datum> = record
        .parameters
        .iter()
        .map(|one| &one.name)
        .chain(returned.iter().map(|(name, _)| name))
        .map(text)
        .collect();
    let named = record.parameters.iter().any(|one| !one.name.is_empty()) || !returned.is_empty();
    let all = taken.clone().chain(returned.iter().map(|(_, number)| *number)).map(oid).collect();
    let modes = taken.clone().map(|_| char('i')).chain(returned.iter().map(|_| char('t')));
    let or_null = |value: Datum| if returned.is_empty() { Datum::Null } else { value };
    let body = if record.search_path.is_none() { record.body.as_str() } else { "" };
    let defaults = record.parameters.len() - function.required();
    shape.row([
        ("oid", oid(function.oid())),
        ("proname", text(&record.name)),
        ("pronamespace", oid(schema)),
        ("proowner", oid(OWNER)),
        ("prolang", oid(SQL)),
        ("procost", Datum::Float4(100.0)),
        ("prorows", Datum::Float4(if function.is_set() { 1_000.0 } else { 0.0 })),
        ("prokind", char('f')),
        ("proretset", Datum::Bool(function.is_set())),
        ("proisstrict", Datum::Bool(record.strict)),
        ("provolatile", volatility(function)),
        ("proparallel", char('u')),
        ("pronargs", int2(record.parameters.len())),
        ("pronargdefaults", int2(defaults)),
        ("prorettype", oid(result_oid(function))),
        ("proargtypes", vector(taken.map(oid).collect())),
        ("proallargtypes", or_null(array(all))),
        ("proargmodes", or_null(array(modes.collect()))),
        ("proargnames", if named { array(names) } else { Datum::Null }),
        ("prosrc", text(body)),
    ])
}

/// The row of `information_schema.routines`.
pub(super) fn routine(shape: &Shape, objects: &Objects, function: &Function) -> Row {
    let record = &function.record;
    let specific = format!("{}_{}", record.name, function.oid());
    let result = match function.columns.as_slice() {
        [(_, sql_type)] => *sql_type,
        _ => DataType::Record.into(),
    };
    let (data_type, udt_schema, udt_name) = named(objects, result);
    let body = Some(record.body.as_str()).filter(|_| record.search_path.is_none());
    let yes_or_no = |value: bool| text(if value { "YES" } else { "NO" });
    shape.row([
        ("specific_catalog", text(DATABASE_NAME)),
        ("specific_schema", text(&record.schema)),
        ("specific_name", text(specific)),
        ("routine_catalog", text(DATABASE_NAME)),
        ("routine_schema", text(&record.schema)),
        ("routine_name", text(&record.name)),
        ("routine_type", text("FUNCTION")),
        ("data_type", text(data_type)),
        ("type_udt_catalog", text(DATABASE_NAME)),
        ("type_udt_schema", text(udt_schema)),
        ("type_udt_name", text(udt_name)),
        ("dtd_identifier", text("0")),
        ("routine_body", text("SQL")),
        ("routine_definition", text_or_null(body)),
        ("external_language", text("SQL")),
        ("parameter_style", text("GENERAL")),
        ("is_deterministic", yes_or_no(record.volatility == Volatility::Immutable)),
        ("sql_data_access", text("MODIFIES")),
        ("is_null_call", yes_or_no(record.strict)),
        ("schema_level_routine", text("YES")),
        ("max_dynamic_result_sets", int4(0)),
        ("security_type", text("INVOKER")),
        ("as_locator", yes_or_no(false)),
        ("is_udt_dependent", yes_or_no(false)),
    ])
}

/// The rows of `information_schema.parameters`: what a function takes, then the columns of the
/// table that it returns.
pub(super) fn parameters(
    shape: &Shape,
    catalog: &Catalog,
    objects: &Objects,
    function: &Function,
) -> Vec<Row> {
    let record = &function.record;
    let returned = match &record.returns {
        ReturnRecord::Table(_) => function.columns.as_slice(),
        _ => &[],
    };
    let taken = record.parameters.iter().zip(&function.parameters);
    let taken = taken.map(|(one, sql_type)| ("IN", &one.name, *sql_type, one.default.as_ref()));
    let returned = returned.iter().map(|(name, sql_type)| ("OUT", name, *sql_type, None));
    let row = |(at, (mode, name, sql_type, default)): (usize, (&str, &String, SqlType, _))| {
        let (data_type, udt_schema, udt_name) = named(objects, sql_type);
        let default: Option<&String> = default;
        let default = default.map(|text| default_text(catalog, text, sql_type));
        shape.row([
            ("specific_catalog", text(DATABASE_NAME)),
            ("specific_schema", text(&record.schema)),
            ("specific_name", text(format!("{}_{}", record.name, function.oid()))),
            ("ordinal_position", int4(at + 1)),
            ("parameter_mode", text(mode)),
            ("is_result", text("NO")),
            ("as_locator", text("NO")),
            ("parameter_name", text_or_null(Some(name).filter(|name| !name.is_empty()))),
            ("data_type", text(data_type)),
            ("udt_catalog", text(DATABASE_NAME)),
            ("udt_schema", text(udt_schema)),
            ("udt_name", text(udt_name)),
            ("dtd_identifier", text((at + 1).to_string())),
            ("parameter_default", text_or_null(default)),
        ])
    };
    taken.chain(returned).enumerate().map(row).collect()
}
