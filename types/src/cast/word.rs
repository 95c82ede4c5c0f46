//! Casts of [words](crate::datatype::FixedWidthKind): `macaddr`, `xid8`, `money`.

use super::{cannot_cast, from_numeric, out_of_range};
use crate::datatype::{DataType, FixedWidthKind};
use crate::datum::Datum;
use crate::error::{Error, Result};
use crate::numeric::Numeric;

/// Cents in one unit.
const CENTS: i64 = 100;
/// Scale of cents.
const CENTS_SCALE: u32 = 2;

/// Casts a word value to another type, except text.
pub(super) fn from_word(held: i64, from: FixedWidthKind, to: &DataType) -> Result<Datum> {
    let number = from.to_unsigned(held);
    match (from, to) {
        (FixedWidthKind::Money, DataType::Numeric) => {
            Ok(Datum::Numeric(Numeric::from_mantissa(held.into(), CENTS_SCALE)))
        }
        (FixedWidthKind::Xid8, DataType::Word(FixedWidthKind::Xid)) => {
            Ok(Datum::Int8(i64::from(number as u32)))
        }
        (FixedWidthKind::MacAddr, DataType::Word(FixedWidthKind::MacAddr8)) => {
            let wide = (number >> 24) << 40 | 0xff_fe00_0000 | number & 0xff_ffff;
            Ok(Datum::Int8(FixedWidthKind::MacAddr8.of_unsigned(wide)))
        }
        (FixedWidthKind::MacAddr8, DataType::Word(FixedWidthKind::MacAddr)) => {
            if number >> 24 & 0xffff != 0xfffe {
                let error = err!(NUMERIC_VALUE_OUT_OF_RANGE: "macaddr8 data out of range to convert to macaddr");
                return Err(error.with_hint(
                    "Only addresses that have FF and FE as values in the 4th and 5th bytes from \
                     the left, for example xx:xx:xx:ff:fe:xx:xx:xx, are eligible to be converted \
                     from macaddr8 to macaddr.",
                ));
            }
            let narrow = (number >> 40) << 24 | number & 0xff_ffff;
            Ok(Datum::Int8(FixedWidthKind::MacAddr.of_unsigned(narrow)))
        }
        _ => Err(cannot_cast(&DataType::Word(from), to)),
    }
}

/// Casts a value that is neither text nor a word to a word type.
pub(super) fn to_word(value: &Datum, from: &DataType, to: FixedWidthKind) -> Result<Datum> {
    let range = || out_of_range(&DataType::Int8);
    match (value, to) {
        (Datum::Int2(_) | Datum::Int4(_) | Datum::Int8(_), FixedWidthKind::Money) => {
            let whole = value.as_i64().unwrap_or_default();
            whole.checked_mul(CENTS).map(Datum::Int8).ok_or_else(range)
        }
        (Datum::Numeric(number), FixedWidthKind::Money) => {
            if !number.is_finite() {
                return from_numeric(number, from, &DataType::Int8);
            }
            let hundred = Numeric::from(CENTS);
            let cents = number.checked_mul(
                &hundred,
                &mut crate::interruptible::InterruptPacer::without_interrupt(),
            )?;
            from_numeric(&cents, from, &DataType::Int8)
        }
        _ => Err(cannot_cast(from, &DataType::Word(to))),
    }
}
