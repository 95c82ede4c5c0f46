//! Columns of `information_schema` views that depend on type modifiers: lengths, precisions and
//! scales.

use types::{DataType, Datum, SqlType};

use crate::system::Row;
use crate::system::relation_definitions::RelationDefinition;
use crate::system::value::{int4, text_or_null};

/// Mask of the precision in the modifier of an interval; all bits are set without a precision.
const DIGITS: i32 = 0xffff;

/// Sets the type columns of a row. They are NULL for a domain.
pub(super) fn set(shape: &RelationDefinition, row: &mut Row, sql_type: SqlType) {
    if sql_type.domain.is_some() {
        return;
    }
    let SqlType { base, modifier, .. } = sql_type;
    let (characters, octets) = lengths(base, modifier);
    let [precision, radix, scale] = number(base, modifier);
    let name = sql_type.name();
    let fields = name.strip_prefix("interval ").filter(|_| base == DataType::Interval);
    let values = [
        ("character_maximum_length", characters.map_or(Datum::Null, int4)),
        ("character_octet_length", octets.map_or(Datum::Null, int4)),
        ("numeric_precision", precision),
        ("numeric_precision_radix", radix),
        ("numeric_scale", scale),
        ("datetime_precision", datetime(base, modifier)),
        ("interval_type", text_or_null(fields.map(str::to_uppercase))),
    ];
    shape.set(row, values);
}

fn lengths(base: DataType, modifier: i32) -> (Option<i32>, Option<i32>) {
    let characters = match base {
        DataType::Varchar | DataType::Char if modifier >= 4 => Some(modifier - 4),
        DataType::Bit | DataType::Varbit if modifier >= 0 => Some(modifier),
        _ => None,
    };
    let octets = match base {
        DataType::Text | DataType::Varchar | DataType::Char => {
            // Four bytes per character; 1 GiB without a length limit.
            Some(characters.map_or(1 << 30, |characters| characters.saturating_mul(4)))
        }
        _ => None,
    };
    (characters, octets)
}

/// Returns numeric precision, radix and scale.
pub(super) fn number(base: DataType, modifier: i32) -> [Datum; 3] {
    let binary = |bits: i32, scale: Datum| [int4(bits), int4(2), scale];
    match base {
        DataType::Int2 => binary(16, int4(0)),
        DataType::Int4 => binary(32, int4(0)),
        DataType::Int8 => binary(64, int4(0)),
        DataType::Float4 => binary(24, Datum::Null),
        DataType::Float8 => binary(53, Datum::Null),
        DataType::Numeric if modifier >= 4 => {
            let packed = modifier - 4;
            [int4((packed >> 16) & 0xffff), int4(10), int4(packed & 0xffff)]
        }
        DataType::Numeric => [Datum::Null, int4(10), Datum::Null],
        _ => [Datum::Null, Datum::Null, Datum::Null],
    }
}

fn datetime(base: DataType, modifier: i32) -> Datum {
    let digits = if base == DataType::Interval { modifier & DIGITS } else { modifier };
    match base {
        DataType::Date => int4(0),
        DataType::Time
        | DataType::Timetz
        | DataType::Timestamp
        | DataType::Timestamptz
        | DataType::Interval => int4(if modifier < 0 || digits == DIGITS { 6 } else { digits }),
        _ => Datum::Null,
    }
}
