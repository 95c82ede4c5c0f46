//! Rows of `pg_proc` and `pg_operator`, and the OIDs of built-in functions and operators.
//!
//! OIDs of built-in functions and operators count from [`FIRST_FUNCTION`], in the order of their
//! names. Functions that only the catalogs reference (I/O functions, cast functions, handlers)
//! follow from [`FIRST_INTERNAL`]. Module `user_functions` has the rows of user-defined functions.

use std::sync::LazyLock;

use types::function::{self, CompareOp, KernelKind as Computes, Signature, Volatility};
use types::{DataType, Datum};

use crate::system::Row;
use crate::system::catalog_objects::OWNER;
use crate::system::pg_cast;
use crate::system::pg_type::{self, TypeFacts};
use crate::system::pseudo_types;
use crate::system::relation_definitions::{PG_CATALOG, RelationDefinition};
use crate::system::value::{array, char, int2, oid, text, vector};

/// OID of language `internal`.
pub(super) const INTERNAL: u32 = 12;
/// OID of language `sql`.
pub(super) const SQL: u32 = 14;
/// OID of language `plpgsql`, usual in PostgreSQL 15.
pub(super) const PLPGSQL: u32 = 13_545;

/// OID of the first built-in function.
const FIRST_FUNCTION: u32 = 6_500;
/// OID of the first function that only types, casts and access methods reference.
const FIRST_INTERNAL: u32 = 11_000;

/// A function that only types, casts and access methods reference.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
struct InternalFunction {
    name: String,
    /// OIDs of the argument types.
    arguments: Vec<u32>,
    result: u32,
}

/// Functions that types, casts and access methods reference, sorted by name.
static INTERNALS: LazyLock<Vec<InternalFunction>> = LazyLock::new(|| {
    let internal = |name: String, arguments: &[u32], result: u32| InternalFunction {
        name,
        arguments: arguments.to_vec(),
        result,
    };
    // `cstring[]` has the I/O functions of all arrays.
    let pseudo = pseudo_types::ALL.iter().filter(|one| one.oid != pseudo_types::CSTRING_ARRAY);
    let of_pseudo = pseudo.flat_map(|one| input_and_output(one.io_functions(), one.oid, &[]));
    let handlers = [
        ("array_subscript_handler", pseudo_types::INTERNAL),
        ("bthandler", pseudo_types::INDEX_AM_HANDLER),
        ("heap_tableam_handler", pseudo_types::TABLE_AM_HANDLER),
    ];
    let handlers = handlers
        .into_iter()
        .map(|(name, result)| internal(name.to_owned(), &[pseudo_types::INTERNAL], result));
    let (void, string) = (DataType::Void.oid(), pseudo_types::CSTRING);
    let of_shells = [("shell_in", string, void), ("shell_out", void, string)];
    let shells =
        of_shells.map(|(name, from, to)| internal(name.to_owned(), &[from], to)).into_iter();
    let of_domains = ["domain_in", "", "domain_recv", ""].map(str::to_owned);
    let more = [DataType::Oid.oid(), DataType::Int4.oid()];
    let domains = input_and_output(of_domains, pseudo_types::ANY, &more);
    let casts = pg_cast::all().filter_map(|cast| {
        let name = cast.function?;
        overload_of(name, &cast.source).is_none().then(|| {
            internal(
                name.to_owned(),
                &cast_arguments(&cast.source, &cast.target),
                cast.target.oid(),
            )
        })
    });
    // `refcursor` has the I/O functions of `text`.
    let with_own = pg_type::all().filter(|one| one.data_type != DataType::RefCursor);
    let of_types = with_own.flat_map(functions_of_type);
    // There is no built-in enum type.
    let of_enums = ["enum_in", "enum_out", "enum_recv", "enum_send"].map(str::to_owned);
    let enums = input_and_output(of_enums, DataType::AnyEnum.oid(), &more[..1]);
    let others = of_pseudo.chain(enums).chain(handlers).chain(shells).chain(domains).chain(casts);
    let mut all: Vec<InternalFunction> = of_types.chain(others).collect();
    all.sort_unstable();
    all.dedup();
    all
});

const ANY_ARRAY: u32 = 2277;

/// Returns the I/O functions of a type, and those of its modifiers.
fn functions_of_type(facts: &TypeFacts) -> Vec<InternalFunction> {
    let (oid_type, int4) = (DataType::Oid.oid(), DataType::Int4.oid());
    let stem = facts.functions.trim_end_matches('_');
    let is_modified = facts.modified && stem != "array";
    let (own, more) = match stem {
        "array" => (ANY_ARRAY, vec![oid_type, int4]),
        "record" => (DataType::Record.oid(), vec![oid_type, int4]),
        _ if is_modified => (facts.data_type.oid(), vec![oid_type, int4]),
        _ => (facts.data_type.oid(), Vec::new()),
    };
    let mut all = input_and_output(facts.io_functions(), own, &more);
    if is_modified {
        let (name_in, name_out) = (format!("{stem}typmodin"), format!("{stem}typmodout"));
        let texts = vec![pseudo_types::CSTRING_ARRAY];
        all.push(InternalFunction { name: name_in, arguments: texts, result: int4 });
        let result = pseudo_types::CSTRING;
        all.push(InternalFunction { name: name_out, arguments: vec![int4], result });
    }
    all
}

/// Returns the I/O functions of a type by their names: input, output, receive, send. An empty name
/// stands for a missing function. Input and receive functions have the arguments `more` besides.
fn input_and_output(names: [String; 4], own: u32, more: &[u32]) -> Vec<InternalFunction> {
    let reads = |from: u32| [&[from], more].concat();
    let [input, output, receive, send] = names;
    let all = [
        (input, reads(pseudo_types::CSTRING), own),
        (output, vec![own], pseudo_types::CSTRING),
        (receive, reads(pseudo_types::INTERNAL), own),
        (send, vec![own], DataType::Bytea.oid()),
    ];
    let named = all.into_iter().filter(|(name, ..)| !name.is_empty());
    named.map(|(name, arguments, result)| InternalFunction { name, arguments, result }).collect()
}

/// Returns the argument types of a cast function: that of a type to itself applies a modifier.
fn cast_arguments(source: &DataType, target: &DataType) -> Vec<u32> {
    use DataType::{Bit, Char, Varbit, Varchar};
    let (int4, boolean) = (DataType::Int4.oid(), DataType::Bool.oid());
    match source {
        _ if source != target => vec![source.oid()],
        Bit | Char | Varbit | Varchar => vec![source.oid(), int4, boolean],
        _ => vec![source.oid(), int4],
    }
}

/// Returns the OID of a function that a type, cast or access method references; 0 if there is
/// none.
pub(super) fn internal_oid(name: &str) -> u32 {
    let at = INTERNALS.partition_point(|known| known.name.as_str() < name);
    match INTERNALS.get(at).is_some_and(|found| found.name == name) {
        true => FIRST_INTERNAL + at as u32,
        false => 0,
    }
}

/// Returns the OID of the cast function of a name for a source type.
pub(super) fn cast_oid(name: &str, source: &DataType) -> u32 {
    let internal = || {
        let takes = |one: &InternalFunction| one.name == name && one.arguments[0] == source.oid();
        INTERNALS.iter().position(takes).map_or(0, |at| FIRST_INTERNAL + at as u32)
    };
    overload_of(name, source).map_or_else(internal, function_oid)
}

/// Returns the overload of a name whose first argument has a type.
fn overload_of(name: &str, first: &DataType) -> Option<&'static Signature> {
    function::overloads(name).iter().find(|one| one.arguments.first() == Some(first))
}

/// Returns the OID of a built-in function or operator.
pub(super) fn function_oid(signature: &Signature) -> u32 {
    FIRST_FUNCTION + u32::from(signature.id.0)
}

/// A function with its name and signature.
pub(super) struct NamedFunction {
    pub(super) oid: u32,
    pub(super) name: String,
    /// OIDs of the argument types.
    pub(super) arguments: Vec<u32>,
    result: u32,
}

impl NamedFunction {
    fn of(signature: &Signature) -> NamedFunction {
        NamedFunction {
            oid: function_oid(signature),
            name: signature.name.to_owned(),
            arguments: signature.arguments.iter().map(|one| one.oid()).collect(),
            result: signature.result.oid(),
        }
    }

    fn of_internal((at, one): (usize, &InternalFunction)) -> NamedFunction {
        let InternalFunction { name, arguments, result } = one.clone();
        NamedFunction { oid: FIRST_INTERNAL + at as u32, name, arguments, result }
    }

    /// Returns the SQL names of the argument types, joined by `separator`.
    pub(super) fn argument_list(&self, separator: &str) -> String {
        let types: Vec<String> = self.arguments.iter().map(|one| type_name(*one)).collect();
        types.join(separator)
    }

    /// Returns the SQL name of the result type.
    pub(super) fn result(&self) -> String {
        type_name(self.result)
    }
}

fn type_name(number: u32) -> String {
    let known = DataType::from_oid(number).map(|known| known.sql_name().to_owned());
    let known = known.or_else(|| pseudo_types::sql_name(number).map(str::to_owned));
    known.unwrap_or_else(|| "???".to_owned())
}

fn is_function(signature: &&Signature) -> bool {
    !function::is_operator(signature.name) && !function::is_internal(signature.name)
}

/// Returns the built-in functions of a name.
pub(super) fn named(name: &str) -> Vec<NamedFunction> {
    if function::is_operator(name) || function::is_internal(name) {
        return Vec::new();
    }
    let of_sql = function::overloads(name).iter().map(NamedFunction::of);
    let internal = INTERNALS.iter().enumerate().filter(|(_, one)| one.name == name);
    of_sql.chain(internal.map(NamedFunction::of_internal)).collect()
}

/// Returns the built-in function of an OID.
pub(super) fn by_oid(number: u32) -> Option<NamedFunction> {
    if let Some(at) = number.checked_sub(FIRST_INTERNAL) {
        let at = at as usize;
        return INTERNALS.get(at).map(|one| NamedFunction::of_internal((at, one)));
    }
    let signature = function::all().get(number.checked_sub(FIRST_FUNCTION)? as usize)?;
    is_function(&signature).then(|| NamedFunction::of(signature))
}

/// Returns the symbol of the operator of an OID.
pub(super) fn operator_by_oid(number: u32) -> Option<&'static str> {
    let signature = function::all().get(number.checked_sub(FIRST_FUNCTION)? as usize)?;
    function::is_operator(signature.name).then_some(signature.name)
}

/// Returns the OID of the operator of a symbol with these argument types.
pub(super) fn operator(symbol: &str, arguments: &[DataType]) -> Option<u32> {
    let mut overloads = function::overloads(symbol).iter();
    let found = overloads.find(|one| one.arguments == arguments);
    found.filter(|one| function::is_operator(one.name)).map(function_oid)
}

/// Returns the argument types of the operator of an OID.
pub(super) fn operator_arguments(number: u32) -> Option<&'static [DataType]> {
    operator_by_oid(number)?;
    Some(function::all().get(number.checked_sub(FIRST_FUNCTION)? as usize)?.arguments)
}

/// Returns the OIDs of all operators of a symbol.
pub(super) fn operators_named(symbol: &str) -> Vec<u32> {
    match function::is_operator(symbol) {
        true => function::overloads(symbol).iter().map(function_oid).collect(),
        false => Vec::new(),
    }
}

pub(super) fn functions(shape: &RelationDefinition) -> Vec<Row> {
    let mut rows: Vec<Row> =
        function::all().iter().filter(is_function).map(|one| function_row(shape, one)).collect();
    let internal = |(at, one): (usize, &InternalFunction)| {
        shape.row([
            ("oid", oid(FIRST_INTERNAL + at as u32)),
            ("proname", text(&one.name)),
            ("pronamespace", oid(PG_CATALOG)),
            ("proowner", oid(OWNER)),
            ("prolang", oid(INTERNAL)),
            ("procost", Datum::Float4(1.0)),
            ("prokind", char('f')),
            ("proisstrict", Datum::Bool(true)),
            ("provolatile", char('i')),
            ("proparallel", char('s')),
            ("pronargs", int2(one.arguments.len())),
            ("prorettype", oid(one.result)),
            ("proargtypes", vector(one.arguments.iter().map(|one| oid(*one)).collect())),
            ("prosrc", text(&one.name)),
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

fn function_row(shape: &RelationDefinition, signature: &Signature) -> Row {
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

pub(super) fn operators(shape: &RelationDefinition) -> Vec<Row> {
    let all = function::all().iter().filter(|one| function::is_operator(one.name));
    all.map(|signature| operator_row(shape, signature)).collect()
}

fn operator_row(shape: &RelationDefinition, signature: &Signature) -> Row {
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
    let turned: Vec<DataType> = signature.arguments.iter().rev().cloned().collect();
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
    fn functions_are_found_by_oid() {
        let [lower] = named("lower").try_into().ok().unwrap();
        assert_eq!(by_oid(lower.oid).unwrap().name, "lower");
        let received = named("array_recv").pop().unwrap();
        assert_eq!(by_oid(received.oid).unwrap().name, "array_recv");
        assert_eq!(operator_by_oid(operators_named("||")[0]), Some("||"));
        assert!(by_oid(operators_named("+")[0]).is_none());
        let last = function::all().last().unwrap();
        assert!(function_oid(last) < FIRST_INTERNAL);
        assert!(internal_oid("no such function") == 0);
        let input = by_oid(internal_oid("numeric_in")).unwrap();
        assert_eq!(input.argument_list(", "), "cstring, oid, integer");
        assert_eq!(input.result(), "numeric");
    }
}
