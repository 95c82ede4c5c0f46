//! Definitions of the relations of `pg_catalog`, `information_schema` and `bennu`: names, OIDs and
//! columns.
//!
//! Those of the first two are read from `relations.txt`, which has PostgreSQL 15's. A type that
//! bennu lacks is replaced by one with the same values: a domain of `information_schema` by its
//! base type, an expression tree by SQL text. Those of `bennu` are made of its declarations, and
//! Phoenix's system tables are read from `phoenix_relations.txt`: they are views of `bennu`, which
//! a query may read as `SYSTEM.CATALOG` and so on ([`find`]).

use std::sync::LazyLock;

use ahash::AHashMap;
use types::{DataType, Datum, SqlType};

use crate::system::view_query::{self, ViewQuery};

/// OID of schema `pg_catalog`.
pub(super) const PG_CATALOG: u32 = 11;
/// OID of schema `information_schema`.
pub(super) const INFORMATION_SCHEMA: u32 = 13_000;
/// OID of schema `bennu`.
pub(super) const BENNU: u32 = 13_001;

/// First OID of relations that have no fixed OID in PostgreSQL.
const FIRST_FREE_OID: u32 = 13_100;

/// Definition of a relation.
#[derive(Debug)]
pub(super) struct RelationDefinition {
    pub(super) oid: u32,
    /// OID of its schema.
    pub(super) schema: u32,
    pub(super) name: &'static str,
    pub(super) columns: Vec<(&'static str, SqlType)>,
    /// True if PostgreSQL has it as a table.
    pub(super) is_table: bool,
    /// The query of a view that is defined by SQL.
    pub(super) query: Option<ViewQuery>,
    positions: AHashMap<&'static str, usize>,
}

/// All relations.
pub(super) static SHAPES: LazyLock<Vec<RelationDefinition>> = LazyLock::new(read);

/// Returns a relation by schema and name; `None` as schema means `pg_catalog`. Schema `system` has
/// Phoenix's system tables, with names in any case.
pub(super) fn find(schema: Option<&str>, name: &str) -> Option<&'static RelationDefinition> {
    let schema = match schema {
        None | Some("pg_catalog") => PG_CATALOG,
        Some("information_schema") => INFORMATION_SCHEMA,
        Some("bennu") => BENNU,
        Some("system" | "SYSTEM") => {
            return find(Some("bennu"), &format!("system_{}", name.to_ascii_lowercase()));
        }
        Some(_) => return None,
    };
    SHAPES.iter().find(|shape| shape.schema == schema && shape.name == name)
}

fn read() -> Vec<RelationDefinition> {
    let mut shapes: Vec<RelationDefinition> = Vec::new();
    let mut queries = view_query::read();
    read_text(include_str!("relations.txt"), &mut shapes, &mut queries);
    for view in super::VIEWS {
        shapes.push(RelationDefinition {
            oid: FIRST_FREE_OID + shapes.len() as u32,
            schema: BENNU,
            name: view.name,
            columns: view
                .columns
                .iter()
                .map(|one| (one.name, SqlType::from(&one.data_type)))
                .collect(),
            is_table: false,
            query: None,
            positions: AHashMap::new(),
        });
    }
    read_text(include_str!("phoenix_relations.txt"), &mut shapes, &mut queries);
    shapes
}

/// Adds the definitions of a text.
fn read_text(
    text: &'static str,
    shapes: &mut Vec<RelationDefinition>,
    queries: &mut AHashMap<&'static str, ViewQuery>,
) {
    for line in text.lines().filter(|line| !line.starts_with('#')) {
        if let Some(columns) = line.strip_prefix("  ") {
            let Some(shape) = shapes.last_mut() else { continue };
            for (name, type_name) in columns.split(' ').filter_map(|one| one.split_once(':')) {
                shape.positions.insert(name, shape.columns.len());
                shape.columns.push((name, type_named(type_name)));
            }
            continue;
        }
        let (full, oid) = line.split_once(' ').unwrap_or((line, "0"));
        let (schema, name) = full.split_once('.').unwrap_or(("pg_catalog", full));
        let fixed: u32 = oid.parse().unwrap_or_default();
        shapes.push(RelationDefinition {
            oid: if fixed == 0 { FIRST_FREE_OID + shapes.len() as u32 } else { fixed },
            schema: schema_named(schema),
            name,
            columns: Vec::new(),
            is_table: (1..12_000).contains(&fixed),
            query: queries.remove(full),
            positions: AHashMap::new(),
        });
    }
}

fn schema_named(name: &str) -> u32 {
    match name {
        "pg_catalog" => PG_CATALOG,
        "bennu" => BENNU,
        _ => INFORMATION_SCHEMA,
    }
}

fn type_named(name: &str) -> SqlType {
    let (name, is_array) = match name.strip_suffix("[]") {
        Some(element) => (element, true),
        None => (name, false),
    };
    let mut modifier = -1;
    let base = match name {
        "anyarray" | "inet" => DataType::Text,
        "pg_dependencies" | "pg_mcv_list" | "pg_ndistinct" => DataType::Bytea,
        "pg_statistic" => DataType::Text,
        "char" => super::value::CHAR,
        "sql_identifier" => DataType::Name,
        "character_data" => DataType::Varchar,
        "cardinal_number" => DataType::Int4,
        "time_stamp" => DataType::Timestamptz,
        "yes_or_no" => {
            modifier = 3 + 4;
            DataType::Varchar
        }
        name => DataType::from_name(name).expect("relations.txt names types that there are"),
    };
    match base.array() {
        Some(base) if is_array => base.into(),
        _ => SqlType::new(base, modifier),
    }
}

impl RelationDefinition {
    /// Returns true for a part of other views, which `pg_class` does not show.
    pub(super) fn is_hidden(&self) -> bool {
        self.name.starts_with('_')
    }

    /// Returns a row with these values. Other columns have PostgreSQL's empty value: NULL in
    /// views; in tables 0, false or the empty name, NULL for nullable types.
    pub(super) fn row<'v>(&self, values: impl IntoIterator<Item = (&'v str, Datum)>) -> Vec<Datum> {
        let mut row: Vec<Datum> = match self.is_table {
            true => self.columns.iter().map(|(_, sql_type)| nothing(&sql_type.base)).collect(),
            false => vec![Datum::Null; self.columns.len()],
        };
        self.set(&mut row, values);
        row
    }

    /// Sets columns of a row; names that the relation lacks are ignored.
    pub(super) fn set<'v>(
        &self,
        row: &mut [Datum],
        values: impl IntoIterator<Item = (&'v str, Datum)>,
    ) {
        for (name, value) in values {
            // Some callers build rows of several views, not all of which have each column.
            if let Some(position) = self.positions.get(name) {
                row[*position] = value;
            }
        }
    }
}

fn nothing(data_type: &DataType) -> Datum {
    match data_type {
        DataType::Bool => Datum::Bool(false),
        DataType::Int2 => Datum::Int2(0),
        DataType::Int4 => Datum::Int4(0),
        DataType::Int8 | DataType::Oid | DataType::Reg(_) => Datum::Int8(0),
        DataType::Float4 => Datum::Float4(0.0),
        DataType::Name | DataType::InternalChar => super::value::text(""),
        _ => Datum::Null,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn relation_definitions_are_parsed() {
        let class = find(None, "pg_class").unwrap();
        assert_eq!((class.oid, class.schema, class.is_table), (1_259, PG_CATALOG, true));
        assert_eq!(class.columns.len(), 33);
        let columns = find(Some("information_schema"), "columns").unwrap();
        assert!(!columns.is_table && columns.oid >= FIRST_FREE_OID);
        assert_eq!(columns.columns[6], ("is_nullable", SqlType::new(DataType::Varchar, 7)));
        assert!(find(Some("public"), "pg_class").is_none());
        let mut oids: Vec<u32> = SHAPES.iter().map(|shape| shape.oid).collect();
        oids.sort_unstable();
        assert!(oids.windows(2).all(|pair| pair[0] != pair[1]));
        let row = class.row([("relname", super::super::value::text("t"))]);
        assert!(row.iter().zip(&class.columns).all(|(value, (_, of))| value.fits(&of.base)));
    }
}
