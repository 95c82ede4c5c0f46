//! Functions and operators as `pg_proc` and `pg_operator` tell of them.
//!
//! OIDs of built-in ones count from [`FIRST_FUNCTION`], in the order of their names.

use std::sync::LazyLock;

use types::function::{self, CompareOp, Shape as Computes, Signature, Volatility};
use types::{DataType, Datum};

use crate::system::Row;
use crate::system::objects::OWNER;
use crate::system::pg_cast;
use crate::system::pg_type;
use crate::system::shape::{PG_CATALOG, Shape};
use crate::system::value::{array, char, int2, oid, text, vector};

/// OID of language `internal`.
pub(super) const INTERNAL: u32 = 12;
/// OID of language `sql`.
pub(super) const SQL: u32 = 14;

/// The OID of the first built-in function.
const FIRST_FUNCTION: u32 = 6_500;
/// The OID of the first function that only types and access methods name.
const FIRST_INTERNAL: u32 = 11_000;

/// Functions that types and access methods name.
static INTERNALS: LazyLock<Vec<String>> = LazyLock::new(|| {
    let io = pg_type::all().flat_map(|facts| {
        let stem = facts.functions.trim_end_matches('_');
        let has_own = facts.modified && stem != "array";
        let modifiers = ["in", "out"].map(|suffix| format!("{stem}typmod{suffix}"));
        facts.io().into_iter().chain(modifiers.into_iter().filter(move |_| has_own))
    });
    let others = [
        "array_subscript_handler",
        "bthandler",
        "domain_in",
        "domain_recv",
        "enum_in",
        "enum_out",
        "enum_recv",
        "enum_send",
        "heap_tableam_handler",
    ];
    let casts = pg_cast::all().filter_map(|cast| {
        let of_source = cast.function.and_then(|name| overload_of(name, cast.source));
        cast.function.filter(|_| of_source.is_none())
    });
    let others = others.into_iter().chain(casts).map(str::to_owned);
    let mut names: Vec<String> = io.chain(others).collect();
    names.sort_unstable();
    names.dedup();
    names
});

/// Returns the OID of a function that a type or an access method names.
pub(super) fn internal_oid(name: &str) -> u32 {
    let at = INTERNALS.binary_search_by(|known| known.as_str().cmp(name));
    at.map_or(0, |at| FIRST_INTERNAL + at as u32)
}

/// Returns the OID of the function that casts a type, by its name.
pub(super) fn cast_oid(name: &str, source: DataType) -> u32 {
    overload_of(name, source).map_or_else(|| internal_oid(name), function_oid)
}

/// Returns the function of a name that takes a type first.
fn overload_of(name: &str, first: DataType) -> Option<&'static Signature> {
    function::overloads(name).iter().find(|one| one.arguments.first() == Some(&first))
}

/// Returns the OID of a built-in function or operator.
pub(super) fn function_oid(signature: &Signature) -> u32 {
    FIRST_FUNCTION + u32::from(signature.id.0)
}

/// A function that has a name.
pub(super) struct Named {
    pub(super) oid: u32,
    pub(super) name: String,
    pub(super) arguments: Vec<DataType>,
    pub(super) result: Option<DataType>,
}

impl Named {
    /// Returns the types of the arguments as `pg_get_function_arguments` writes them.
    pub(super) fn argument_list(&self) -> String {
        let types: Vec<&str> = self.arguments.iter().map(|one| one.sql_name()).collect();
        types.join(", ")
    }
}

fn is_function(signature: &&Signature) -> bool {
    !function::is_operator(signature.name) && !function::is_internal(signature.name)
}

/// Returns the functions of a name.
pub(super) fn named(name: &str) -> Vec<Named> {
    let of = |signature: &Signature| Named {
        oid: function_oid(signature),
        name: signature.name.to_owned(),
        arguments: signature.arguments.to_vec(),
        result: Some(signature.result),
    };
    if function::is_operator(name) || function::is_internal(name) {
        return Vec::new();
    }
    let mut all: Vec<Named> = function::overloads(name).iter().map(of).collect();
    let internal = internal_oid(name);
    if all.is_empty() && internal > 0 {
        all.push(Named {
            oid: internal,
            name: name.to_owned(),
            arguments: Vec::new(),
            result: None,
        });
    }
    all
}

/// Returns the function with an OID.
pub(super) fn by_oid(number: u32) -> Option<Named> {
    if let Some(at) = number.checked_sub(FIRST_INTERNAL) {
        let name = INTERNALS.get(at as usize)?.clone();
        return Some(Named { oid: number, name, arguments: Vec::new(), result: None });
    }
    let signature = function::all().get(number.checked_sub(FIRST_FUNCTION)? as usize)?;
    is_function(&signature).then(|| Named {
        oid: number,
        name: signature.name.to_owned(),
        arguments: signature.arguments.to_vec(),
        result: Some(signature.result),
    })
}

/// Returns the symbol of the operator with an OID.
pub(super) fn operator_by_oid(number: u32) -> Option<&'static str> {
    let signature = function::all().get(number.checked_sub(FIRST_FUNCTION)? as usize)?;
    function::is_operator(signature.name).then_some(signature.name)
}

/// Returns the OID of the operator of a symbol that takes these types.
pub(super) fn operator(symbol: &str, arguments: &[DataType]) -> Option<u32> {
    let mut overloads = function::overloads(symbol).iter();
    let found = overloads.find(|one| one.arguments == arguments);
    found.filter(|one| function::is_operator(one.name)).map(function_oid)
}

/// Returns what the operator with an OID takes.
pub(super) fn operator_arguments(number: u32) -> Option<&'static [DataType]> {
    operator_by_oid(number)?;
    Some(function::all().get(number.checked_sub(FIRST_FUNCTION)? as usize)?.arguments)
}

/// Returns the OIDs of the operators of a symbol.
pub(super) fn operators_named(symbol: &str) -> Vec<u32> {
    match function::is_operator(symbol) {
        true => function::overloads(symbol).iter().map(function_oid).collect(),
        false => Vec::new(),
    }
}

pub(super) fn functions(shape: &Shape) -> Vec<Row> {
    let mut rows: Vec<Row> =
        function::all().iter().filter(is_function).map(|one| function_row(shape, one)).collect();
    let internal = |(at, name): (usize, &String)| {
        shape.row([
            ("oid", oid(FIRST_INTERNAL + at as u32)),
            ("proname", text(name)),
            ("pronamespace", oid(PG_CATALOG)),
            ("proowner", oid(OWNER)),
            ("prolang", oid(INTERNAL)),
            ("procost", Datum::Float4(1.0)),
            ("prokind", char('f')),
            ("proisstrict", Datum::Bool(true)),
            ("provolatile", char('i')),
            ("proparallel", char('s')),
            ("proargtypes", vector(Vec::new())),
            ("prosrc", text(name)),
        ])
    };
    rows.extend(INTERNALS.iter().enumerate().map(internal));
    rows
}

fn volatility(signature: &Signature) -> Datum {
    char(match signature.volatility {
        Volatility::Immutable => 'i',
        Volatility::Stable => 's',
        Volatility::Volatile => 'v',
    })
}

fn function_row(shape: &Shape, signature: &Signature) -> Row {
    let last = signature.arguments.last().filter(|_| signature.variadic);
    let names = match signature.names {
        [] => Datum::Null,
        names => array(names.iter().map(text).collect()),
    };
    shape.row([
        ("oid", oid(function_oid(signature))),
        ("proname", text(signature.name)),
        ("pronamespace", oid(PG_CATALOG)),
        ("proowner", oid(OWNER)),
        ("prolang", oid(INTERNAL)),
        ("procost", Datum::Float4(1.0)),
        ("provariadic", oid(last.map_or(0, |last| last.oid()))),
        ("prokind", char('f')),
        ("proisstrict", Datum::Bool(signature.strict)),
        ("provolatile", volatility(signature)),
        ("proparallel", char('s')),
        ("pronargs", int2(signature.arguments.len())),
        ("prorettype", oid(signature.result.oid())),
        ("proargtypes", vector(signature.arguments.iter().map(|one| oid(one.oid())).collect())),
        ("proargnames", names),
        ("prosrc", text(signature.name)),
    ])
}

pub(super) fn operators(shape: &Shape) -> Vec<Row> {
    let all = function::all().iter().filter(|one| function::is_operator(one.name));
    all.map(|signature| operator_row(shape, signature)).collect()
}

fn operator_row(shape: &Shape, signature: &Signature) -> Row {
    let (left, right) = match signature.arguments {
        [left, right] => (left.oid(), right.oid()),
        [only] => (0, only.oid()),
        _ => (0, 0),
    };
    let same = |name: &str, arguments: &[DataType]| {
        function::find(name, arguments).map_or(0, |id| function_oid(function::signature(id)))
    };
    let compares = match function::shape(signature.id) {
        Computes::Compare(op) => Some(op),
        _ => None,
    };
    let turned: Vec<DataType> = signature.arguments.iter().rev().copied().collect();
    let commutator = compares.map_or(0, |op| same(op.flip().symbol(), &turned));
    let negator = compares.map_or(0, |op| same(op.negate().symbol(), signature.arguments));
    let equal = compares == Some(CompareOp::Eq);
    shape.row([
        ("oid", oid(function_oid(signature))),
        ("oprname", text(signature.name)),
        ("oprnamespace", oid(PG_CATALOG)),
        ("oprowner", oid(OWNER)),
        ("oprkind", char(if left == 0 { 'l' } else { 'b' })),
        ("oprcanhash", Datum::Bool(equal)),
        ("oprleft", oid(left)),
        ("oprright", oid(right)),
        ("oprresult", oid(signature.result.oid())),
        ("oprcom", oid(commutator)),
        ("oprnegate", oid(negator)),
    ])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_are_found_by_the_oids_that_they_have() {
        let [lower] = named("lower").try_into().ok().unwrap();
        assert_eq!(by_oid(lower.oid).unwrap().name, "lower");
        let received = named("array_recv").pop().unwrap();
        assert_eq!(by_oid(received.oid).unwrap().name, "array_recv");
        assert_eq!(operator_by_oid(operators_named("||")[0]), Some("||"));
        assert!(by_oid(operators_named("+")[0]).is_none());
        let last = function::all().last().unwrap();
        assert!(function_oid(last) < FIRST_INTERNAL);
        assert!(internal_oid("no such function") == 0);
    }
}
