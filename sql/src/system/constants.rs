//! Rows that never change, from `constants.dat`: access methods, operator classes, collations,
//! languages, text search configurations and others.

use std::sync::LazyLock;

use ahash::AHashMap;
use types::{DataType, Datum};

use crate::system::relation_definitions::RelationDefinition;
use crate::system::value::{oid, text};

/// The rows of a relation, as texts in the order of `columns`; OID and name come first.
struct ConstantRows {
    columns: Vec<&'static str>,
    rows: Vec<Vec<&'static str>>,
}

static RELATIONS: LazyLock<AHashMap<&'static str, ConstantRows>> = LazyLock::new(|| {
    let mut relations = AHashMap::new();
    let mut relation = "";
    let lines = include_str!("constants.dat").lines().filter(|line| !line.starts_with('#'));
    for line in lines {
        if let Some(values) = line.strip_prefix("  ") {
            let known: Option<&mut ConstantRows> = relations.get_mut(relation);
            known.into_iter().for_each(|one| one.rows.push(values.split('|').collect()));
            continue;
        }
        let mut words = line.split(' ');
        relation = words.next().unwrap_or_default();
        relations.insert(relation, ConstantRows { columns: words.collect(), rows: Vec::new() });
    }
    relations
});

/// Returns the rows of a relation as texts; none for a relation that is not constant.
pub(super) fn records(relation: &str) -> &'static [Vec<&'static str>] {
    RELATIONS.get(relation).map_or(&[], |known| &known.rows)
}

/// Returns the rows of a relation, with the OIDs of the functions that they name; `None` if they
/// are not constant.
pub(super) fn rows(
    shape: &RelationDefinition,
    function_oid: fn(&str) -> u32,
) -> Option<Vec<Vec<Datum>>> {
    let known = RELATIONS.get(shape.name)?;
    let row =
        |values: &Vec<&'static str>| {
            let values = known.columns.iter().zip(values);
            shape.row(values.filter_map(|(name, value)| {
                Some((*name, datum(shape, name, value, function_oid)?))
            }))
        };
    Some(known.rows.iter().map(row).collect())
}

/// Returns the value of a column; `None` if the text does not fit its type.
fn datum(
    shape: &RelationDefinition,
    column: &str,
    value: &'static str,
    function_oid: fn(&str) -> u32,
) -> Option<Datum> {
    let (_, sql_type) = shape.columns.iter().find(|(name, _)| *name == column)?;
    Some(match sql_type.base {
        _ if value == "-" => Datum::Null,
        DataType::Bool => Datum::Bool(value == "t"),
        DataType::Int4 => Datum::Int4(value.parse().ok()?),
        DataType::Oid => oid(value.parse().ok()?),
        DataType::Reg(_) => oid(function_oid(value)),
        _ => text(value),
    })
}

/// Returns the OID of a name.
pub(super) fn oid_of(relation: &str, name: &str) -> Option<u32> {
    records(relation).iter().find(|row| row[1] == name).and_then(|row| row[0].parse().ok())
}

/// Returns the name of an OID.
pub(super) fn name_of(relation: &str, number: u32) -> Option<&'static str> {
    let number = number.to_string();
    records(relation).iter().find(|row| row[0] == number).map(|row| row[1])
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::system::relation_definitions::find;

    #[test]
    fn constant_rows_match_relation_columns() {
        for (name, known) in &*RELATIONS {
            let shape = find(None, name).unwrap();
            for row in &known.rows {
                assert_eq!(row.len(), known.columns.len(), "{name}: {row:?}");
                for (column, value) in known.columns.iter().zip(row) {
                    let position = shape.columns.iter().position(|(one, _)| one == column);
                    let sql_type = shape.columns[position.unwrap()].1.clone();
                    let value = datum(shape, column, value, |_| 1);
                    assert!(value.unwrap().fits(&sql_type.base), "{name}.{column}: {row:?}");
                }
            }
        }
        assert_eq!(oid_of("pg_ts_config", "english"), Some(13_164));
        assert_eq!(name_of("pg_ts_dict", 13_205), Some("yiddish_stem"));
        assert_eq!((oid_of("pg_ts_dict", "english"), name_of("pg_ts_config", 1)), (None, None));
    }
}
