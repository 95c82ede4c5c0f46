//! TABLESAMPLE: selection of sample rows by key.
//!
//! A row is in the sample if the hash of its key and a seed is below the percentage. So samples
//! of the same rows with the same seed are equal for all plans, and regions and look-ups can
//! evaluate the condition independently.

use std::hash::{DefaultHasher, Hasher};

use super::argument::float8;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Bool, Float4, Float8, Int4, Record};
use crate::datum::Datum;
use crate::error::{Error, Result};

/// The function table of this family; only the binder calls them. Arguments: the percentage, the
/// seed or the number of the sample in its statement, and the key.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row(" sample", &[Float4, Float8, Record], Bool, repeatable).takes_null(),
    row(" sample of now", &[Float4, Int4, Record], Bool, |a, context| {
        let seed = context.statement_timestamp as u64;
        is_in(a, seed.wrapping_add(a[1].as_i64().unwrap_or_default() as u64))
    })
    .takes_null()
    .stable(),
];

fn repeatable(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    if arguments[1].is_null() {
        bail!(INVALID_TABLESAMPLE_REPEAT: "TABLESAMPLE REPEATABLE parameter cannot be null");
    }
    is_in(arguments, float8(&arguments[1]).to_bits())
}

/// Returns whether the key, the last argument, is in the sample.
fn is_in(arguments: &[Datum], seed: u64) -> Result<Datum> {
    let percentage = match arguments[0] {
        Datum::Null => bail!(INVALID_TABLESAMPLE_ARGUMENT: "TABLESAMPLE parameter cannot be null"),
        Datum::Float4(percentage) => f64::from(percentage),
        _ => f64::NAN,
    };
    if !(0.0..=100.0).contains(&percentage) {
        bail!(INVALID_TABLESAMPLE_ARGUMENT: "sample percentage must be between 0 and 100");
    }
    let mut hasher = DefaultHasher::new();
    hasher.write_u64(seed);
    arguments[2].hash_typed(&Record, &mut hasher);
    // 53 bits, so that the fraction is never rounded up to 1.
    let fraction = (hasher.finish() >> 11) as f64 / (1_u64 << 53) as f64;
    Ok(Datum::Bool(fraction < percentage / 100.0))
}
