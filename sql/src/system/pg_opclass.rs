//! Rows of `pg_opclass`, `pg_opfamily` and `pg_amop`: operator classes of index keys.
//!
//! All operator classes of a type have the same order here. An index shows the class that its
//! definition names, else the default of the type. OIDs are PostgreSQL's.

use types::{DataType, Datum};

use crate::system::Row;
use crate::system::catalog_objects::OWNER;
use crate::system::pg_catalog::{BTREE, HASH};
use crate::system::pg_proc;
use crate::system::relation_definitions::{PG_CATALOG, RelationDefinition};
use crate::system::value::{char, int2, oid, text};

/// OID of the class, its name, its family, the type, and whether it is the type's default.
type OperatorClass = (u32, &'static str, u32, DataType, bool);

const CLASSES: &[OperatorClass] = &[
    (1_978, "int4_ops", 1_976, DataType::Int4, true),
    (1_979, "int2_ops", 1_976, DataType::Int2, true),
    (1_981, "oid_ops", 1_989, DataType::Oid, true),
    (3_122, "date_ops", 434, DataType::Date, true),
    (3_123, "float8_ops", 1_970, DataType::Float8, true),
    (3_124, "int8_ops", 1_976, DataType::Int8, true),
    (3_125, "numeric_ops", 1_988, DataType::Numeric, true),
    (3_126, "text_ops", 1_994, DataType::Text, true),
    (3_127, "timestamptz_ops", 434, DataType::Timestamptz, true),
    (3_128, "timestamp_ops", 434, DataType::Timestamp, true),
    (4_217, "text_pattern_ops", 2_095, DataType::Text, false),
    (4_218, "varchar_pattern_ops", 2_095, DataType::Text, false),
    (4_219, "bpchar_pattern_ops", 2_097, DataType::Char, false),
    (10_000, "array_ops", 397, DataType::AnyArray, true),
    (10_002, "bit_ops", 423, DataType::Bit, true),
    (10_003, "bool_ops", 424, DataType::Bool, true),
    (10_004, "bpchar_ops", 426, DataType::Char, true),
    (10_006, "bytea_ops", 428, DataType::Bytea, true),
    (10_012, "float4_ops", 1_970, DataType::Float4, true),
    (10_022, "interval_ops", 1_982, DataType::Interval, true),
    (10_028, "name_ops", 1_994, DataType::Name, true),
    (10_034, "record_ops", 2_994, DataType::Record, true),
    (10_038, "time_ops", 1_996, DataType::Time, true),
    (10_041, "timetz_ops", 2_000, DataType::Timetz, true),
    (10_043, "varbit_ops", 2_002, DataType::Varbit, true),
    (10_044, "varchar_ops", 1_994, DataType::Text, false),
    (10_065, "uuid_ops", 2_968, DataType::Uuid, true),
    (10_069, "enum_ops", 3_522, DataType::AnyEnum, true),
    (10_088, "jsonb_ops", 4_033, DataType::Jsonb, true),
];

/// Operator classes of hash indexes.
const HASH_CLASSES: &[OperatorClass] = &[
    (10_001, "array_ops", 627, DataType::AnyArray, true),
    (10_005, "bpchar_ops", 427, DataType::Char, true),
    (10_008, "char_ops", 431, DataType::InternalChar, true),
    (10_011, "date_ops", 435, DataType::Date, true),
    (10_013, "float4_ops", 1_971, DataType::Float4, true),
    (10_014, "float8_ops", 1_971, DataType::Float8, true),
    (10_019, "int2_ops", 1_977, DataType::Int2, true),
    (10_020, "int4_ops", 1_977, DataType::Int4, true),
    (10_021, "int8_ops", 1_977, DataType::Int8, true),
    (10_023, "interval_ops", 1_983, DataType::Interval, true),
    (10_029, "name_ops", 1_995, DataType::Name, true),
    (10_030, "numeric_ops", 1_998, DataType::Numeric, true),
    (10_031, "oid_ops", 1_990, DataType::Oid, true),
    (10_035, "record_ops", 6_194, DataType::Record, true),
    (10_037, "text_ops", 1_995, DataType::Text, true),
    (10_039, "time_ops", 1_997, DataType::Time, true),
    (10_040, "timestamptz_ops", 1_999, DataType::Timestamptz, true),
    (10_042, "timetz_ops", 2_001, DataType::Timetz, true),
    (10_045, "varchar_ops", 1_995, DataType::Text, false),
    (10_046, "timestamp_ops", 2_040, DataType::Timestamp, true),
    (10_048, "bool_ops", 2_222, DataType::Bool, true),
    (10_049, "bytea_ops", 2_223, DataType::Bytea, true),
    (10_056, "text_pattern_ops", 2_229, DataType::Text, false),
    (10_057, "varchar_pattern_ops", 2_229, DataType::Text, false),
    (10_058, "bpchar_pattern_ops", 2_231, DataType::Char, false),
    (10_066, "uuid_ops", 2_969, DataType::Uuid, true),
    (10_070, "enum_ops", 3_523, DataType::AnyEnum, true),
    (10_089, "jsonb_ops", 4_034, DataType::Jsonb, true),
];

/// Offset from the OID of an operator to the OID of its row in `pg_amop`.
const FIRST_MEMBER: u32 = 5_000;

/// Operator families whose name differs from that of their first class.
const FAMILIES: &[(u32, &str)] =
    &[(434, "datetime_ops"), (1_970, "float_ops"), (1_976, "integer_ops")];

/// The same for hash indexes.
const HASH_FAMILIES: &[(u32, &str)] =
    &[(1_971, "float_ops"), (1_977, "integer_ops"), (1_995, "text_ops")];

/// Returns the OID of the operator class of a key: the named one, or the type's default; 0 if
/// there is none.
pub(super) fn of_key(data_type: DataType, name: Option<&str>, is_hash: bool) -> u32 {
    let classes = if is_hash { HASH_CLASSES } else { CLASSES };
    let of = match data_type {
        DataType::Varchar => DataType::Text,
        DataType::Array(_) => DataType::AnyArray,
        DataType::Enum(_) => DataType::AnyEnum,
        DataType::Composite(_) => DataType::Record,
        other => other,
    };
    let found = classes.iter().find(|class| match name {
        Some(name) => class.1 == name,
        None => class.3 == of && class.4,
    });
    found.map_or(0, |class| class.0)
}

/// Returns the rows of `pg_opclass`.
pub(super) fn classes(shape: &RelationDefinition) -> Vec<Row> {
    let row = |method, (number, name, family, data_type, is_default): &OperatorClass| {
        shape.row([
            ("oid", oid(*number)),
            ("opcmethod", oid(method)),
            ("opcname", text(name)),
            ("opcnamespace", oid(PG_CATALOG)),
            ("opcowner", oid(OWNER)),
            ("opcfamily", oid(*family)),
            ("opcintype", oid(data_type.oid())),
            ("opcdefault", Datum::Bool(*is_default)),
        ])
    };
    let of_trees = CLASSES.iter().map(|class| row(BTREE, class));
    of_trees.chain(HASH_CLASSES.iter().map(|class| row(HASH, class))).collect()
}

/// Returns the btree operator family of a type.
fn family_of(data_type: DataType) -> Option<u32> {
    CLASSES.iter().find(|class| class.3 == data_type && class.4).map(|class| class.2)
}

/// Returns the rows of `pg_amop`: the comparison operators between types of one family.
pub(super) fn operators(shape: &RelationDefinition) -> Vec<Row> {
    let strategies = (1_i16..).zip(["<", "<=", "=", ">=", ">"]);
    let all = strategies.flat_map(|(strategy, symbol)| {
        types::function::overloads(symbol).iter().map(move |one| (strategy, one))
    });
    let mut rows = Vec::new();
    for (strategy, operator) in all {
        let &[left, right] = operator.arguments else { continue };
        let Some(family) = family_of(left).filter(|of| family_of(right) == Some(*of)) else {
            continue;
        };
        let number = pg_proc::function_oid(operator);
        rows.push(shape.row([
            ("oid", oid(FIRST_MEMBER + number)),
            ("amopfamily", oid(family)),
            ("amoplefttype", oid(left.oid())),
            ("amoprighttype", oid(right.oid())),
            ("amopstrategy", int2(strategy)),
            ("amoppurpose", char('s')),
            ("amopopr", oid(number)),
            ("amopmethod", oid(BTREE)),
            ("amopsortfamily", oid(0)),
        ]));
    }
    rows
}

/// Returns the rows of `pg_opfamily`.
pub(super) fn families(shape: &RelationDefinition) -> Vec<Row> {
    let mut families: Vec<(u32, &str, u32)> = Vec::new();
    families.extend(FAMILIES.iter().map(|(number, name)| (*number, *name, BTREE)));
    families.extend(HASH_FAMILIES.iter().map(|(number, name)| (*number, *name, HASH)));
    for (classes, method) in [(CLASSES, BTREE), (HASH_CLASSES, HASH)] {
        for (_, name, family, ..) in classes {
            if !families.iter().any(|(known, ..)| known == family) {
                families.push((*family, name, method));
            }
        }
    }
    let row = |(number, name, method): (u32, &str, u32)| {
        shape.row([
            ("oid", oid(number)),
            ("opfmethod", oid(method)),
            ("opfname", text(name)),
            ("opfnamespace", oid(PG_CATALOG)),
            ("opfowner", oid(OWNER)),
        ])
    };
    families.into_iter().map(row).collect()
}
