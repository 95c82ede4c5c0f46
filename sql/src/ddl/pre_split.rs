//! Pre-splitting: the initial region boundaries of a table or index, by salt buckets, at the keys
//! of SPLIT ON, or into a number of regions by one of HBase's algorithms.
//!
//! An algorithm divides the values of the first key column; their key encodings are the first rows
//! of the regions, so direction and type of the column are part of it. The rules are those of
//! HBase's `RegionSplitter`: all regions have the same share of the values, rounded down, and the
//! last one also has the remainder.

use types::expr::EvalContext;
use types::{DataType, Datum, SqlType};

use crate::ast;
use crate::binder::{self, NameContext, TableClause};
use crate::error::{Error, Result};
use crate::storage_options::{SplitAlgorithm, StorageSettings};

/// A key column for pre-splitting.
#[derive(Debug, Clone)]
pub struct SplitKey {
    /// Its type.
    pub sql_type: SqlType,
    /// Descending order.
    pub descending: bool,
    /// NULLS FIRST.
    pub nulls_first: bool,
    /// True if it may be NULL.
    pub nullable: bool,
}

/// Returns the first rows of all regions except the first, ascending.
///
/// # Errors
///
/// 0A000 or 22023 for conflicting clauses, or for an algorithm that does not fit the key; errors
/// of the values of SPLIT ON.
pub fn split_points(
    written: &[Vec<ast::Expr>],
    options: &StorageSettings,
    key: &[SplitKey],
    eval: &EvalContext,
    names: NameContext<'_>,
) -> Result<Vec<Vec<u8>>> {
    let by_number = by_number(options)?;
    if options.salt_buckets > 0 && (by_number.is_some() || !written.is_empty()) {
        let what = if written.is_empty() { "SPLIT_ALGORITHM" } else { "SPLIT ON" };
        return Err(Error::not_supported(
            format!("{what} with SALT_BUCKETS"),
            "Salted tables and indexes are pre-split into one region per bucket.",
        ));
    }
    let mut points = match by_number {
        None if written.is_empty() => return Ok(salt_points(options.salt_buckets)),
        None => {
            let points = written.iter().map(|values| point(values, key, eval, names));
            points.collect::<Result<Vec<_>>>()?
        }
        Some(_) if !written.is_empty() => {
            bail!(SYNTAX_ERROR: "SPLIT ON and SPLIT_ALGORITHM are mutually exclusive");
        }
        Some((algorithm, regions)) => {
            let Some(first) = key.first() else { return Ok(Vec::new()) };
            let points = values(algorithm, regions, &first.sql_type.base)?;
            points
                .iter()
                .map(|value| encode(std::slice::from_ref(value), std::slice::from_ref(first)))
                .collect::<Result<Vec<_>>>()?
        }
    };
    points.sort();
    points.dedup();
    Ok(points)
}

/// Returns the first rows of all salt buckets except the first.
pub fn salt_points(salt_buckets: u16) -> Vec<Vec<u8>> {
    (1..salt_buckets).map(|bucket| vec![bucket as u8]).collect()
}

fn by_number(options: &StorageSettings) -> Result<Option<(SplitAlgorithm, u32)>> {
    match (options.split_algorithm, options.split_regions) {
        (Some(algorithm), Some(regions)) => Ok(Some((algorithm, regions))),
        (None, None) => Ok(None),
        (Some(_), None) => Err(lone("split_algorithm", "SPLIT_REGIONS = 16")),
        (None, Some(_)) => {
            Err(lone("split_regions", "SPLIT_ALGORITHM = 'hex', 'decimal' or 'uniform'"))
        }
    }
}

fn lone(given: &str, missing: &str) -> Error {
    err!(INVALID_PARAMETER_VALUE: "parameter \"{given}\" cannot be used alone"; hint "Add {missing}.")
}

/// Returns the row key prefix with these values of the leading key columns.
///
/// # Errors
///
/// 42601 for too many values or a NULL in a column that is not nullable; errors of the values.
pub fn point(
    written: &[ast::Expr],
    key: &[SplitKey],
    eval: &EvalContext,
    names: NameContext<'_>,
) -> Result<Vec<u8>> {
    if written.len() > key.len() {
        return Err(too_many(written.len(), key));
    }
    let mut values = Vec::with_capacity(written.len());
    for (value, key) in written.iter().zip(key) {
        let bound = binder::bind_table_expression(
            TableClause::SplitValue,
            value,
            &[],
            Some(key.sql_type.clone()),
            names,
        )?;
        values.push(bound.eval_row(&[], eval)?);
    }
    encode(&values, key)
}

/// Returns the error for a split point with more values than the key has columns.
pub fn too_many(count: usize, key: &[SplitKey]) -> Error {
    err!(SYNTAX_ERROR: "a split point has {count} values for a key of {} column{}",
        key.len(), if key.len() == 1 { "" } else { "s" })
}

/// Returns the row key prefix with these values of the leading key columns.
///
/// # Errors
///
/// 42601 for a NULL in a column that is not nullable.
pub fn encode(values: &[Datum], key: &[SplitKey]) -> Result<Vec<u8>> {
    let mut point = Vec::new();
    for (datum, key) in values.iter().zip(key) {
        if *datum == Datum::Null && !key.nullable {
            bail!(SYNTAX_ERROR: "split points cannot be NULL");
        }
        let data_type = &key.sql_type.base;
        types::keycode::encode(datum, data_type, key.descending, key.nulls_first, &mut point)?;
    }
    Ok(point)
}

/// Returns the smallest values of all regions except the first.
fn values(algorithm: SplitAlgorithm, regions: u32, data_type: &DataType) -> Result<Vec<Datum>> {
    let cuts = |count: u128| {
        let share = count / u128::from(regions);
        (1..u128::from(regions)).map(move |region| region * share)
    };
    let digits = matches!(algorithm, SplitAlgorithm::Hex | SplitAlgorithm::Decimal);
    Ok(match (algorithm, data_type) {
        (SplitAlgorithm::Hex, _) if data_type.is_text() => {
            cuts(1 << 32).map(|cut| Datum::text(format!("{cut:08x}"))).collect()
        }
        (SplitAlgorithm::Decimal, _) if data_type.is_text() => {
            cuts(100_000_000).map(|cut| Datum::text(format!("{cut:08}"))).collect()
        }
        (SplitAlgorithm::Uniform, DataType::Bytea) => {
            cuts(1 << 64).map(|cut| Datum::Bytea((cut as u64).to_be_bytes()[..].into())).collect()
        }
        (SplitAlgorithm::Uniform, DataType::Uuid) => {
            cuts(1 << 64).map(|cut| Datum::Uuid((cut << 64).to_be_bytes())).collect()
        }
        (SplitAlgorithm::Uniform, DataType::Int2) => {
            cuts(1 << 16).map(|cut| Datum::Int2(cut as u16 as i16 ^ i16::MIN)).collect()
        }
        (SplitAlgorithm::Uniform, DataType::Int4) => {
            cuts(1 << 32).map(|cut| Datum::Int4(cut as u32 as i32 ^ i32::MIN)).collect()
        }
        (SplitAlgorithm::Uniform, DataType::Int8) => {
            cuts(1 << 64).map(|cut| Datum::Int8(cut as u64 as i64 ^ i64::MIN)).collect()
        }
        _ => return Err(unsuited(algorithm, digits, data_type)),
    })
}

fn unsuited(algorithm: SplitAlgorithm, digits: bool, data_type: &DataType) -> Error {
    let name = match algorithm {
        SplitAlgorithm::Hex => "hex",
        SplitAlgorithm::Decimal => "decimal",
        SplitAlgorithm::Uniform => "uniform",
    };
    let hint = match digits {
        true => "It splits text keys of eight digits. Specify the split points with SPLIT ON.",
        false => {
            "It splits the value range of bytea, uuid, smallint, integer and bigint keys. Specify \
             the split points with SPLIT ON."
        }
    };
    err!(INVALID_PARAMETER_VALUE: "SPLIT_ALGORITHM '{name}' does not support a key whose first column has type {}",
        data_type.sql_name(); hint hint)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Catalog;

    fn key(base: &DataType, descending: bool) -> SplitKey {
        SplitKey { sql_type: base.into(), descending, nulls_first: false, nullable: false }
    }

    fn points(algorithm: SplitAlgorithm, regions: u32, key: SplitKey) -> Vec<Vec<u8>> {
        let options = StorageSettings {
            split_algorithm: Some(algorithm),
            split_regions: Some(regions),
            ..StorageSettings::default()
        };
        let catalog = Catalog::default();
        let names = NameContext::stored(&catalog);
        split_points(&[], &options, &[key], &EvalContext::default(), names).unwrap()
    }

    /// The first values of the regions, decoded.
    fn starts(algorithm: SplitAlgorithm, regions: u32, key: SplitKey) -> Vec<Datum> {
        let points = points(algorithm, regions, key.clone());
        assert!(points.is_sorted_by(|a, b| a < b));
        assert_eq!(points.len() as u32, regions - 1);
        let base = &key.sql_type.base;
        let decode = |point: &Vec<u8>| {
            let (datum, taken) =
                types::keycode::decode(point, base, key.descending, false).unwrap();
            assert_eq!(taken, point.len());
            datum
        };
        points.iter().map(decode).collect()
    }

    /// The expected values of `RegionSplitter`'s own tests, and the remainder of an uneven
    /// division.
    #[test]
    fn digit_split_points_match_hbase() {
        let hex = |regions| starts(SplitAlgorithm::Hex, regions, key(&DataType::Text, false));
        assert_eq!(hex(4), ["40000000", "80000000", "c0000000"].map(Datum::text));
        assert_eq!(hex(3), ["55555555", "aaaaaaaa"].map(Datum::text));
        let decimal =
            |regions| starts(SplitAlgorithm::Decimal, regions, key(&DataType::Varchar, false));
        assert_eq!(decimal(5), ["20000000", "40000000", "60000000", "80000000"].map(Datum::text));
        assert_eq!(decimal(3), ["33333333", "66666666"].map(Datum::text));
    }

    #[test]
    fn uniform_split_points_are_evenly_spaced() {
        let uniform = |base| starts(SplitAlgorithm::Uniform, 4, key(base, false));
        let bytes = |first: u8| Datum::Bytea([first, 0, 0, 0, 0, 0, 0, 0][..].into());
        assert_eq!(uniform(&DataType::Bytea), [0x40, 0x80, 0xC0].map(bytes));
        assert_eq!(uniform(&DataType::Int2), [-16_384, 0, 16_384].map(Datum::Int2));
        assert_eq!(uniform(&DataType::Int4), [-1 << 30, 0, 1 << 30].map(Datum::Int4));
        assert_eq!(uniform(&DataType::Int8), [-1 << 62, 0, 1 << 62].map(Datum::Int8));
        let uuid = |first: u8| {
            let mut uuid = [0; 16];
            uuid[0] = first;
            Datum::Uuid(uuid)
        };
        assert_eq!(uniform(&DataType::Uuid), [0x40, 0x80, 0xC0].map(uuid));
    }

    #[test]
    fn descending_key_has_descending_split_points() {
        let down = starts(SplitAlgorithm::Uniform, 4, key(&DataType::Int4, true));
        assert_eq!(down, [1 << 30, 0, -1 << 30].map(Datum::Int4));
    }

    #[test]
    fn unsplittable_key_types_are_rejected() {
        let refusal =
            |algorithm, base: &DataType| values(algorithm, 2, base).map_err(|error| error.sqlstate);
        for base in [DataType::Float8, DataType::Numeric, DataType::Date, DataType::Timestamptz] {
            assert_eq!(refusal(SplitAlgorithm::Uniform, &base).unwrap_err(), "22023");
        }
        for algorithm in [SplitAlgorithm::Hex, SplitAlgorithm::Decimal] {
            assert_eq!(refusal(algorithm, &DataType::Bytea).unwrap_err(), "22023");
            assert_eq!(refusal(algorithm, &DataType::Int8).unwrap_err(), "22023");
            assert!(refusal(algorithm, &DataType::Char).is_ok());
        }
        assert_eq!(refusal(SplitAlgorithm::Uniform, &DataType::Text).unwrap_err(), "22023");
    }
}
