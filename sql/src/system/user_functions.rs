//! User-defined functions in `pg_proc`, and in `pg_get_functiondef` and related functions.

use types::{Datum, SqlType};

use crate::ast::Language;
use crate::ast::{Parallel, Volatility};
use crate::catalog::Catalog;
use crate::catalog::access::object_access::AccessSubject;
use crate::catalog::function::{
    DEFAULT_COST, DeclaredMode, DeclaredParameter, Function, FunctionRecord, ReturnRecord,
};
use crate::catalog::name::SearchPath;
use crate::deparse::{self, DeparseContext, ExpressionInput, Layout};
use crate::parser;
use crate::settings::Settings;
use crate::system::Row;
use crate::system::catalog_objects::{CatalogObjects, acl_of, owner_oid};
use crate::system::definition::{self, identifier, qualified};
use crate::system::pg_proc::{self, SQL};
use crate::system::relation_definitions::RelationDefinition;
use crate::system::value::{array, char, int2, oid, text, vector};

/// `pg_type.oid` of `record`.
const RECORD: u32 = 2_249;

/// Names of types and functions for a search path.
pub(super) struct FunctionNames<'a> {
    pub(super) catalog: &'a Catalog,
    pub(super) path: &'a SearchPath,
}

impl FunctionNames<'_> {
    fn shown(&self, sql_type: &SqlType) -> String {
        self.catalog.shown_type_of(sql_type, self.path)
    }

    /// `pg_get_function_arguments`, and without defaults `pg_get_function_identity_arguments`.
    pub(super) fn arguments(&self, function: &Function, defaults: bool) -> String {
        let is_procedure = function.record.is_procedure();
        let parameter = |one: &DeclaredParameter<'_>| {
            let mut text = match one.mode {
                DeclaredMode::In if is_procedure => "IN ".to_owned(),
                DeclaredMode::In | DeclaredMode::Table => String::new(),
                DeclaredMode::Out => "OUT ".to_owned(),
                DeclaredMode::InOut => "INOUT ".to_owned(),
                DeclaredMode::Variadic => "VARIADIC ".to_owned(),
            };
            if !one.name.is_empty() {
                text.push_str(&identifier(one.name));
                text.push(' ');
            }
            text.push_str(&self.shown_oid(one.type_oid));
            if let Some(default) = one.default.filter(|_| defaults) {
                let sql_type = self.catalog.stored_type(one.type_oid, -1).ok();
                let reader = DeparseContext::with_search_path(self.catalog, self.path);
                let default = default_text(reader, default, sql_type);
                text.push_str(&format!(" DEFAULT {default}"));
            }
            text
        };
        let declared = function.record.declared();
        let shown = declared.iter().filter(|one| one.mode != DeclaredMode::Table);
        shown.map(parameter).collect::<Vec<_>>().join(", ")
    }

    fn shown_oid(&self, oid: u32) -> String {
        self.catalog.shown_type_with(oid, -1, self.path).unwrap_or_else(|| oid.to_string())
    }

    /// `pg_get_function_arg_default`
    pub(super) fn argument_default(&self, function: &Function, number: i32) -> Option<String> {
        let at = usize::try_from(number).ok()?.checked_sub(1)?;
        let declared = function.record.declared();
        let one = declared.get(at)?;
        let sql_type = self.catalog.stored_type(one.type_oid, -1).ok();
        let reader = DeparseContext::with_search_path(self.catalog, self.path);
        Some(default_text(reader, one.default?, sql_type))
    }

    /// `pg_get_function_result`; `None` for procedures.
    pub(super) fn result(&self, function: &Function) -> Option<String> {
        if function.record.is_procedure() {
            return None;
        }
        Some(match &function.record.returns {
            ReturnRecord::Value(oid) => self.shown_oid(*oid),
            ReturnRecord::Set(oid) => format!("SETOF {}", self.shown_oid(*oid)),
            ReturnRecord::Table(columns) => {
                let column = |(name, oid): &(String, u32)| {
                    format!("{} {}", identifier(name), self.shown_oid(*oid))
                };
                let columns: Vec<String> = columns.iter().map(column).collect();
                format!("TABLE({})", columns.join(", "))
            }
        })
    }

    /// Returns the output of `regprocedure`: `f(integer,text)`.
    pub(super) fn signature(&self, function: &Function) -> String {
        let types: Vec<String> = function.parameters.iter().map(|one| self.shown(one)).collect();
        format!("{}({})", self.name(function), types.join(","))
    }

    /// Returns the name, qualified unless the search path finds it.
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

    /// `pg_get_function_sqlbody`: an SQL-standard body.
    pub(super) fn body(&self, function: &Function) -> Option<String> {
        let record = &function.record;
        record.search_path.as_ref()?;
        Some(match record.is_expression {
            true => {
                let value = record.body.strip_prefix("SELECT ").unwrap_or(&record.body);
                format!("RETURN {}", self.returned(function, value))
            }
            false => format!("BEGIN ATOMIC\n {}\nEND", terminated(&record.body)),
        })
    }

    /// Returns the expression of a body `RETURN expression`.
    fn returned(&self, function: &Function, text: &str) -> String {
        let names = function.record.parameters.iter().map(|one| one.name.clone());
        let columns: Vec<(String, SqlType)> =
            names.zip(function.parameters.iter().cloned()).collect();
        let target = match function.columns.as_slice() {
            [(_, sql_type)] if !sql_type.base.is_polymorphic() => Some(sql_type.clone()),
            _ => None,
        };
        let over = ExpressionInput { columns: &columns, target, is_domain: false };
        let reader = DeparseContext::with_search_path(self.catalog, self.path);
        let shown = deparse::expression(text, &over, reader, Layout::EXPRESSION);
        // Deparsing fails for numbered parameters, which are not columns of the expression.
        shown.unwrap_or_else(|_| text.to_owned())
    }

    /// `pg_get_functiondef`
    pub(super) fn definition(&self, function: &Function) -> String {
        let record = &function.record;
        let mut text = format!(
            "CREATE OR REPLACE {} {}({})\n",
            record.noun().to_uppercase(),
            qualified(&record.schema, &record.name),
            self.arguments(function, true),
        );
        if let Some(result) = self.result(function) {
            text.push_str(&format!(" RETURNS {result}\n"));
        }
        text.push_str(&format!(" LANGUAGE {}\n", record.language.name()));
        let words = attributes(function);
        if !words.is_empty() {
            text.push_str(&format!(" {}\n", words.join(" ")));
        }
        for (name, value) in record.settings.iter() {
            text.push_str(&format!(" SET {} TO {}\n", identifier(name), setting_text(name, value)));
        }
        match self.body(function) {
            None => {
                let quote = dollar_quote(record);
                text.push_str(&format!("AS {quote}{}{quote}\n", record.body));
            }
            Some(body) => text.push_str(&format!("{body}\n")),
        }
        text
    }
}

/// Returns the attributes of `pg_get_functiondef`, such as volatility, STRICT and COST.
fn attributes(function: &Function) -> Vec<String> {
    let record = &function.record;
    let mut words: Vec<String> = Vec::new();
    match record.volatility {
        Volatility::Immutable => words.push("IMMUTABLE".to_owned()),
        Volatility::Stable => words.push("STABLE".to_owned()),
        Volatility::Volatile => {}
    }
    match record.hints.parallel {
        Parallel::Safe => words.push("PARALLEL SAFE".to_owned()),
        Parallel::Restricted => words.push("PARALLEL RESTRICTED".to_owned()),
        Parallel::Unsafe => {}
    }
    if record.strict {
        words.push("STRICT".to_owned());
    }
    if record.security_definer {
        words.push("SECURITY DEFINER".to_owned());
    }
    if record.hints.is_leakproof {
        words.push("LEAKPROOF".to_owned());
    }
    let cost = record.shown_cost();
    if cost != DEFAULT_COST {
        words.push(format!("COST {cost}"));
    }
    let rows = function.shown_rows();
    if rows > 0.0 && rows != 1_000.0 {
        words.push(format!("ROWS {rows}"));
    }
    words
}

/// Returns the value of a setting in the syntax of SET.
fn setting_text(name: &str, value: &str) -> String {
    match Settings::is_list(name) {
        true => {
            let names = parser::parse_name_list(value).unwrap_or_default();
            let names: Vec<String> = names.iter().map(|name| literal(name)).collect();
            names.join(", ")
        }
        false => literal(value),
    }
}

/// Returns a text as a literal.
fn literal(text: &str) -> String {
    format!("'{}'", text.replace('\'', "''"))
}

/// Returns a dollar quote delimiter that does not occur in the body.
fn dollar_quote(record: &FunctionRecord) -> String {
    let mut tag = record.noun().to_owned();
    while record.body.contains(&format!("${tag}$")) {
        tag.push('x');
    }
    format!("${tag}$")
}

/// Returns statements with a semicolon behind the last one, which bodies in older records lack.
fn terminated(body: &str) -> String {
    match body.is_empty() || body.ends_with(';') {
        true => body.to_owned(),
        false => format!("{body};"),
    }
}

/// Returns the text of a parameter's default, with explicit casts, as PostgreSQL writes it.
fn default_text(reader: DeparseContext<'_>, text: &str, sql_type: Option<SqlType>) -> String {
    definition::constant_expression(text, sql_type, reader, Layout::EXPRESSION)
}

fn volatility(function: &Function) -> Datum {
    char(match function.record.volatility {
        Volatility::Immutable => 'i',
        Volatility::Stable => 's',
        Volatility::Volatile => 'v',
    })
}

fn parallel(function: &Function) -> Datum {
    char(match function.record.hints.parallel {
        Parallel::Safe => 's',
        Parallel::Restricted => 'r',
        Parallel::Unsafe => 'u',
    })
}

/// Returns the OID of the result type of a function.
fn result_oid(function: &Function) -> u32 {
    match &function.record.returns {
        ReturnRecord::Value(oid) | ReturnRecord::Set(oid) => *oid,
        ReturnRecord::Table(columns) if columns.len() == 1 => columns[0].1,
        ReturnRecord::Table(_) => RECORD,
    }
}

/// Returns the OID of the language of a function.
fn language(record: &FunctionRecord) -> u32 {
    match record.language {
        Language::Sql => SQL,
        Language::PlPgSql => pg_proc::PLPGSQL,
    }
}

/// Returns the row of `pg_proc`.
pub(super) fn row(
    shape: &RelationDefinition,
    (objects, catalog): (&CatalogObjects, &Catalog),
    function: &Function,
) -> Row {
    let subject = Some(AccessSubject::Function(function.record.number));
    let record = &function.record;
    let schema = objects.namespace_named(&record.schema).map_or(0, |namespace| namespace.oid);
    let taken = record.parameters.iter().map(|one| one.type_oid);
    let declared = record.declared();
    let names: Vec<Datum> = declared.iter().map(|one| text(one.name)).collect();
    let named = declared.iter().any(|one| !one.name.is_empty());
    let all = declared.iter().map(|one| oid(one.type_oid)).collect();
    let modes = declared.iter().map(|one| {
        char(match one.mode {
            DeclaredMode::In => 'i',
            DeclaredMode::Out => 'o',
            DeclaredMode::InOut => 'b',
            DeclaredMode::Variadic => 'v',
            DeclaredMode::Table => 't',
        })
    });
    let plain = declared.iter().all(|one| one.mode == DeclaredMode::In);
    let or_null = |value: Datum| if plain { Datum::Null } else { value };
    let variadic = declared.iter().find(|one| one.mode == DeclaredMode::Variadic);
    let variadic = variadic.and_then(|_| Some(function.parameters.last()?.base.element()?.oid()));
    let body = if record.search_path.is_none() { record.body.as_str() } else { "" };
    let defaults = record.parameters.len() - function.required();
    let settings = record.settings.iter().map(|(name, value)| text(format!("{name}={value}")));
    let settings: Vec<Datum> = settings.collect();
    shape.row([
        ("oid", oid(function.oid())),
        ("proname", text(&record.name)),
        ("pronamespace", oid(schema)),
        ("proowner", owner_oid(catalog, subject)),
        ("proacl", acl_of(catalog, subject)),
        ("prolang", oid(language(record))),
        ("procost", Datum::Float4(record.shown_cost())),
        ("prorows", Datum::Float4(function.shown_rows())),
        ("prosecdef", Datum::Bool(record.security_definer)),
        ("proleakproof", Datum::Bool(record.hints.is_leakproof)),
        ("provariadic", oid(variadic.unwrap_or(0))),
        ("prokind", char(if record.is_procedure() { 'p' } else { 'f' })),
        ("proretset", Datum::Bool(function.is_set())),
        ("proisstrict", Datum::Bool(record.strict)),
        ("provolatile", volatility(function)),
        ("proparallel", parallel(function)),
        ("pronargs", int2(record.parameters.len())),
        ("pronargdefaults", int2(defaults)),
        ("prorettype", oid(result_oid(function))),
        ("proargtypes", vector(taken.map(oid).collect())),
        ("proallargtypes", or_null(array(all))),
        ("proargmodes", or_null(array(modes.collect()))),
        ("proargnames", if named { array(names) } else { Datum::Null }),
        ("prosrc", text(body)),
        ("proconfig", if settings.is_empty() { Datum::Null } else { array(settings) }),
    ])
}
