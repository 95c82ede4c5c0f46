//! Domains of schema `pg_catalog`: the types of Phoenix that PostgreSQL does not have, as a type
//! with a check of its range.
//!
//! Every catalog contains them next to the user-defined ones, with numbers that those never have;
//! they are not stored. A user-defined type of the same name has precedence, unlike one with the
//! name of PostgreSQL's types: databases may have had it before.

use types::DataType;

use crate::catalog::domain::DomainRecord;
use crate::catalog::name::PG_CATALOG;
use crate::catalog::record::{CheckRecord, FIRST_USER_TABLE};

/// The first number; each domain has two, of which the second is that of its array type.
const FIRST_NUMBER: u32 = 700;

const NOT_NEGATIVE: &str = "(VALUE >= 0)";
const SINCE_EPOCH: &str = "(VALUE >= '1970-01-01')";

/// The names, with the base types and the conditions on values. The order is that of the numbers,
/// which columns are stored with, so that a new domain is the last.
const DOMAINS: [(&str, DataType, Option<&str>); 10] = [
    ("tinyint", DataType::Int2, Some("((VALUE >= '-128'::integer) AND (VALUE <= 127))")),
    ("unsigned_tinyint", DataType::Int2, Some("((VALUE >= 0) AND (VALUE <= 127))")),
    ("unsigned_smallint", DataType::Int2, Some(NOT_NEGATIVE)),
    ("unsigned_int", DataType::Int4, Some(NOT_NEGATIVE)),
    ("unsigned_long", DataType::Int8, Some(NOT_NEGATIVE)),
    ("unsigned_float", DataType::Float4, Some(NOT_NEGATIVE)),
    ("unsigned_double", DataType::Float8, Some(NOT_NEGATIVE)),
    ("unsigned_date", DataType::Date, Some(SINCE_EPOCH)),
    ("unsigned_time", DataType::Time, None),
    ("unsigned_timestamp", DataType::Timestamp, Some(SINCE_EPOCH)),
];

/// Returns the records of all of them.
pub fn records() -> impl Iterator<Item = DomainRecord> {
    (FIRST_NUMBER..).step_by(2).zip(DOMAINS).map(|(number, (name, base, predicate))| {
        let check = |predicate: &str| CheckRecord {
            name: format!("{name}_check"),
            predicate: predicate.to_owned(),
            valid: true,
            unknown: Default::default(),
        };
        DomainRecord {
            number,
            schema: PG_CATALOG.to_owned(),
            name: name.to_owned(),
            type_oid: base.oid(),
            modifier: -1,
            not_null: false,
            default: None,
            checks: predicate.map(check).into_iter().collect(),
            collation: None,
            unknown: Default::default(),
        }
    })
}

/// Returns the number of the domain of a name.
pub fn number_of(name: &str) -> Option<u32> {
    let at = DOMAINS.iter().position(|(known, ..)| *known == name)?;
    Some(FIRST_NUMBER + 2 * at as u32)
}

/// Returns whether a type with a number is one of them.
pub fn is_standard(number: u32) -> bool {
    number < FIRST_USER_TABLE
}
