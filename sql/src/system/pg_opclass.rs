//! Operator classes of index keys, and the rows of `pg_amop`.
//!
//! All ordered operator classes of a type have the same order here. An index shows the class that
//! its definition names, else the default of the type. OIDs are PostgreSQL's.

use ahash::AHashMap;
use types::DataType;

use crate::system::pg_catalog::BTREE;
use crate::system::relation_definitions::RelationDefinition;
use crate::system::value::{char, int2, oid};
use crate::system::{Row, constants, pg_proc};

/// Offset from the OID of an operator to the OID of its row in `pg_amop`.
const FIRST_MEMBER: u32 = 5_000;

/// Returns the OID of the operator class of a key for an access method: the named one, or the
/// type's default; 0 if there is none.
pub(super) fn of_key(data_type: &DataType, name: Option<&str>, method: u32) -> u32 {
    let of = match data_type {
        DataType::Varchar => DataType::Text,
        DataType::Array(_) => DataType::AnyArray,
        DataType::Enum(_) => DataType::AnyEnum,
        DataType::Composite(_) => DataType::Record,
        other => other.clone(),
    };
    let class = classes(method).find(|class| match name {
        Some(name) => class.name == name,
        None => class.data_type == of.oid() && class.is_default,
    });
    class.map_or(0, |class| class.oid)
}

/// A row of `pg_opclass`.
struct OperatorClass {
    oid: u32,
    name: &'static str,
    family: u32,
    /// OID of the type.
    data_type: u32,
    /// True for the default of the type.
    is_default: bool,
}

/// Returns the operator classes of an access method.
fn classes(method: u32) -> impl Iterator<Item = OperatorClass> {
    let number = |value: &str| value.parse().unwrap_or_default();
    let class = move |row: &'static Vec<&str>| match row.as_slice() {
        [oid, of, name, _, _, family, data_type, default] if number(of) == method => {
            Some(OperatorClass {
                oid: number(oid),
                name,
                family: number(family),
                data_type: number(data_type),
                is_default: *default == "t",
            })
        }
        _ => None,
    };
    constants::records("pg_opclass").iter().filter_map(class)
}

/// Returns the rows of `pg_amop`: the comparison operators between types of one family.
pub(super) fn operators(shape: &RelationDefinition) -> Vec<Row> {
    let strategies = (1_i16..).zip(["<", "<=", "=", ">=", ">"]);
    let all = strategies.flat_map(|(strategy, symbol)| {
        types::function::overloads(symbol).iter().map(move |one| (strategy, one))
    });
    let families = classes(BTREE).filter(|class| class.is_default);
    let families: AHashMap<u32, u32> =
        families.map(|class| (class.data_type, class.family)).collect();
    let family_of = |of: &DataType| families.get(&of.oid()).copied();
    let mut rows = Vec::new();
    for (strategy, operator) in all {
        let [left, right] = operator.arguments else { continue };
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
