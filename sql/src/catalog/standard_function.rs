//! Functions of `information_schema` that drivers call to expand the catalog's arrays and to
//! interpret type modifiers.
//!
//! They are SQL functions, as in PostgreSQL. Every catalog contains them next to the user-defined
//! ones, with numbers that those never have; they are not stored.

use types::DataType;

use crate::ast::Volatility;
use crate::catalog::Catalog;
use crate::catalog::function::{
    Function, FunctionRecord, ParameterExtension, ParameterRecord, ReturnRecord,
};
use crate::error::Result;

/// Their schema.
pub const SCHEMA: &str = "information_schema";

/// The first number; user-defined functions have higher ones.
const FIRST_NUMBER: u32 = 100;

/// `oid` of `record`.
const RECORD: u32 = 2_249;

/// Their bodies. Modifiers of `varchar` and `numeric` are four higher than the length or
/// precision.
const PARTS: &[(&str, &str)] = &[
    (
        "_pg_char_max_length",
        "SELECT CASE WHEN $2 = -1 THEN NULL WHEN $1 IN (1042, 1043) THEN $2 - 4 \
         WHEN $1 IN (1560, 1562) THEN $2 END",
    ),
    (
        "_pg_char_octet_length",
        "SELECT CASE WHEN $1 IN (25, 1042, 1043) THEN CASE WHEN $2 = -1 THEN 1 << 30 \
         ELSE least((($2 - 4)::bigint * 4), 2147483647)::integer END END",
    ),
    (
        "_pg_numeric_precision",
        "SELECT CASE $1 WHEN 21 THEN 16 WHEN 23 THEN 32 WHEN 20 THEN 64 \
         WHEN 1700 THEN CASE WHEN $2 = -1 THEN NULL ELSE (($2 - 4) >> 16) & 65535 END \
         WHEN 700 THEN 24 WHEN 701 THEN 53 END",
    ),
    (
        "_pg_numeric_precision_radix",
        "SELECT CASE WHEN $1 IN (21, 23, 20, 700, 701) THEN 2 WHEN $1 = 1700 THEN 10 END",
    ),
    (
        "_pg_numeric_scale",
        "SELECT CASE WHEN $1 IN (21, 23, 20) THEN 0 \
         WHEN $1 = 1700 THEN CASE WHEN $2 = -1 THEN NULL ELSE ($2 - 4) & 65535 END END",
    ),
    (
        "_pg_datetime_precision",
        "SELECT CASE WHEN $1 = 1082 THEN 0 \
         WHEN $1 IN (1083, 1114, 1184, 1266) THEN CASE WHEN $2 < 0 THEN 6 ELSE $2 END \
         WHEN $1 = 1186 THEN CASE WHEN $2 < 0 OR $2 & 65535 = 65535 THEN 6 \
         ELSE $2 & 65535 END END",
    ),
];

/// Returns all of them.
///
/// # Errors
///
/// A parse error of one of the texts, which a test would find.
pub fn all(catalog: &Catalog) -> Result<Vec<Function>> {
    let (oid, int4) = (DataType::Oid, DataType::Int4);
    let mut functions = vec![
        FunctionRecord {
            more: vec![
                ParameterExtension::Out(1, "x".to_owned(), DataType::AnyElement.oid()),
                ParameterExtension::Out(2, "n".to_owned(), int4.oid()),
            ],
            returns: ReturnRecord::Set(RECORD),
            ..function(
                "_pg_expandarray",
                &[("", DataType::AnyArray)],
                int4,
                "SELECT $1[s], s - pg_catalog.array_lower($1, 1) + 1 \
                 FROM pg_catalog.generate_series(pg_catalog.array_lower($1, 1), \
                 pg_catalog.array_upper($1, 1), 1) AS g(s)",
            )
        },
        FunctionRecord {
            volatility: Volatility::Stable,
            ..function(
                "_pg_index_position",
                &[("", oid), ("", DataType::Int2)],
                int4,
                "SELECT (a).n FROM (SELECT information_schema._pg_expandarray(indkey) AS a \
                 FROM pg_catalog.pg_index WHERE indexrelid = $1) AS keys WHERE (a).x = $2",
            )
        },
        function(
            "_pg_interval_type",
            &[("typid", oid), ("mod", int4)],
            DataType::Text,
            "SELECT CASE WHEN $1 = 1186 THEN upper(substring(pg_catalog.format_type($1, $2) \
             SIMILAR 'interval[()0-9]* #\"%#\"' ESCAPE '#')) END",
        ),
    ];
    let parts = PARTS.iter().map(|(name, body)| {
        let parameters = [("typid", oid), ("typmod", int4)];
        function(name, &parameters, int4, body)
    });
    functions.extend(parts);
    let numbered = (FIRST_NUMBER..).zip(functions);
    numbered
        .map(|(number, record)| Function::of_record(FunctionRecord { number, ..record }, catalog))
        .collect()
}

/// Returns an immutable STRICT function.
fn function(
    name: &str,
    parameters: &[(&str, DataType)],
    returns: DataType,
    body: &str,
) -> FunctionRecord {
    let parameter = |(name, data_type): &(&str, DataType)| ParameterRecord {
        name: (*name).to_owned(),
        type_oid: data_type.oid(),
        default: None,
    };
    FunctionRecord {
        number: 0,
        schema: SCHEMA.to_owned(),
        name: name.to_owned(),
        parameters: parameters.iter().map(parameter).collect(),
        returns: ReturnRecord::Value(returns.oid()),
        volatility: Volatility::Immutable,
        strict: true,
        body: body.to_owned(),
        search_path: None,
        kind: Default::default(),
        more: Default::default(),
        is_expression: Default::default(),
        hints: Default::default(),
        language: Default::default(),
        settings: Default::default(),
    }
}
