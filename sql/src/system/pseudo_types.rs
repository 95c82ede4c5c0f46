//! Pseudo-types that occur only in signatures of `pg_proc`: no value, column or user-defined
//! function has one.
//!
//! They have rows in `pg_type`, since clients join `pg_proc` with it on argument and result types.

use types::DataType;

use crate::system::Row;
use crate::system::pg_catalog;
use crate::system::pg_proc;
use crate::system::pg_type;
use crate::system::relation_definitions::{PG_CATALOG, RelationDefinition};
use crate::system::value::{char, int2, oid, text};

/// OID of `internal`.
pub(super) const INTERNAL: u32 = 2281;
/// OID of `cstring`.
pub(super) const CSTRING: u32 = 2275;
/// OID of `cstring[]`.
pub(super) const CSTRING_ARRAY: u32 = 1263;
/// OID of `"any"`.
pub(super) const ANY: u32 = 2276;
/// OID of `index_am_handler`.
pub(super) const INDEX_AM_HANDLER: u32 = 325;
/// OID of `table_am_handler`.
pub(super) const TABLE_AM_HANDLER: u32 = 269;

const PG_DDL_COMMAND: u32 = 32;

/// A pseudo-type.
#[derive(Clone, Copy)]
pub(super) struct PseudoType {
    pub(super) oid: u32,
    name: &'static str,
    /// Its SQL name.
    sql_name: &'static str,
    /// Its `pg_type.typlen`.
    length: i16,
}

const fn pseudo(oid: u32, name: &'static str, length: i16) -> PseudoType {
    PseudoType { oid, name, sql_name: name, length }
}

/// The pseudo-types, and the type `cstring[]`.
pub(super) const ALL: [PseudoType; 10] = [
    pseudo(PG_DDL_COMMAND, "pg_ddl_command", 8),
    pseudo(TABLE_AM_HANDLER, "table_am_handler", 4),
    pseudo(INDEX_AM_HANDLER, "index_am_handler", 4),
    PseudoType { oid: CSTRING_ARRAY, name: "_cstring", sql_name: "cstring[]", length: -1 },
    PseudoType { oid: ANY, name: "any", sql_name: "\"any\"", length: 4 },
    pseudo(2280, "language_handler", 4),
    pseudo(INTERNAL, "internal", 8),
    pseudo(3115, "fdw_handler", 4),
    pseudo(3310, "tsm_handler", 4),
    pseudo(3838, "event_trigger", 4),
];

/// Returns the OID of a pseudo-type by its SQL name or its `typname`.
pub(super) fn named(name: &str) -> Option<u32> {
    let name = name.trim();
    let name = name.strip_prefix("pg_catalog.").unwrap_or(name);
    ALL.iter().find(|one| one.sql_name == name || one.name == name).map(|one| one.oid)
}

/// Returns the SQL name of the pseudo-type of an OID.
pub(super) fn sql_name(oid: u32) -> Option<&'static str> {
    ALL.iter().find(|one| one.oid == oid).map(|one| one.sql_name)
}

impl PseudoType {
    /// Returns the names of its I/O functions: input, output, receive, send; empty if missing.
    pub(super) fn io_functions(&self) -> [String; 4] {
        let named = |stem: &str, suffix: &str| format!("{stem}_{suffix}");
        match self.oid {
            CSTRING_ARRAY => ["in", "out", "recv", "send"].map(|suffix| named("array", suffix)),
            PG_DDL_COMMAND => ["in", "out", "recv", "send"].map(|suffix| named(self.name, suffix)),
            _ => [named(self.name, "in"), named(self.name, "out"), String::new(), String::new()],
        }
    }

    fn row(&self, shape: &RelationDefinition) -> Option<Row> {
        let (like, align, storage) = match self.length {
            -1 => (DataType::array_of(&DataType::Text), 'i', 'x'),
            8 => (DataType::Void, 'd', 'p'),
            _ => (DataType::Void, 'i', 'p'),
        };
        let mut row = pg_catalog::type_row(shape, &pg_type::of(&like)?, PG_CATALOG);
        let [input, output, receive, send] = self.io_functions();
        let function = |name: &str| oid(pg_proc::internal_oid(name));
        let own = [
            ("oid", oid(self.oid)),
            ("typname", text(self.name)),
            ("typlen", int2(self.length)),
            ("typbyval", types::Datum::Bool(self.length > 0)),
            ("typelem", oid(if self.oid == CSTRING_ARRAY { CSTRING } else { 0 })),
            ("typarray", oid(0)),
            ("typinput", function(&input)),
            ("typoutput", function(&output)),
            ("typreceive", function(&receive)),
            ("typsend", function(&send)),
            ("typmodin", oid(0)),
            ("typmodout", oid(0)),
            ("typalign", char(align)),
            ("typstorage", char(storage)),
            ("typcollation", oid(0)),
        ];
        shape.set(&mut row, own);
        Some(row)
    }
}

/// Returns the rows of `pg_type`.
pub(super) fn rows(shape: &RelationDefinition) -> impl Iterator<Item = Row> {
    ALL.iter().filter_map(|one| one.row(shape))
}
