//! Definitions of sequences in the catalog. The state of a sequence is not part of the catalog,
//! because it survives a rollback: see [`crate::sequences`].

use store::codec::tagged::UnknownFields;
use types::datatype::RegKind;
use types::expr::Expr;
use types::{DataType, Datum};

use crate::error::{Error, Result};

/// The prefix of [`object_key`](super::record::object_key).
pub const SEQUENCES_PREFIX: &[u8] = b"s";

/// The prefix of [`state_key`].
pub const STATES_PREFIX: &[u8] = b"u";

/// Returns the key of the row with the state of a sequence.
pub fn state_key(id: u32) -> Vec<u8> {
    [STATES_PREFIX, id.to_be_bytes().as_slice()].concat()
}

/// Returns the name of the sequence in the argument of `nextval` and related functions, if it is a
/// literal: `'s'`, `'s'::regclass`.
pub fn sequence_name(argument: &Expr) -> Option<&str> {
    match argument {
        Expr::Constant { value: Datum::Text(name), .. } => Some(name),
        Expr::Cast { operand, to, .. } if to.base == DataType::Reg(RegKind::Class) => {
            sequence_name(operand)
        }
        _ => None,
    }
}

/// A sequence. It is stored as is, under [`object_key`](super::record::object_key).
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sequence {
    /// Its number.
    pub oid: u32,
    /// Its schema.
    pub schema: String,
    /// Its name in the schema.
    pub name: String,
    /// The id of its state; RESTART assigns a new one.
    pub id: u32,
    /// OID of its type: smallint, integer or bigint.
    pub type_oid: u32,
    /// The START value.
    pub start: i64,
    /// The first value if no state is stored.
    pub first: i64,
    /// Difference from one value to the next; not 0.
    pub increment: i64,
    /// Its smallest value.
    pub min: i64,
    /// Its largest value.
    pub max: i64,
    /// The minimum number of values that are reserved at once.
    pub cache: i64,
    /// `CYCLE`: restarts at the other end.
    pub cycle: bool,
    /// The number of the table and the position of the column in OWNED BY.
    pub owned_by: Option<(u32, u32)>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

impl Sequence {
    /// Returns the value after `value`.
    ///
    /// # Errors
    ///
    /// 2200H past the end of a sequence without CYCLE.
    pub fn after(&self, value: i64) -> Result<i64> {
        let next = value.checked_add(self.increment);
        if let Some(next) = next.filter(|next| (self.min..=self.max).contains(next)) {
            return Ok(next);
        }
        let (end, bound, from) = match self.increment > 0 {
            true => ("maximum", self.max, self.min),
            false => ("minimum", self.min, self.max),
        };
        if self.cycle {
            return Ok(from);
        }
        bail!(SEQUENCE_GENERATOR_LIMIT_EXCEEDED: "nextval: reached {end} value of sequence \"{}\" ({bound})", self.name)
    }

    /// Returns the value `steps` after `value`, if it is within the bounds.
    pub fn ahead(&self, value: i64, steps: i64) -> Option<i64> {
        let ahead = value.checked_add(self.increment.checked_mul(steps)?)?;
        (self.min..=self.max).contains(&ahead).then_some(ahead)
    }

    /// Returns the range of values of a type.
    ///
    /// # Errors
    ///
    /// 22023 for a type that a sequence cannot have.
    pub fn range_of(data_type: &DataType) -> Result<(i64, i64)> {
        match data_type {
            DataType::Int2 => Ok((i64::from(i16::MIN), i64::from(i16::MAX))),
            DataType::Int4 => Ok((i64::from(i32::MIN), i64::from(i32::MAX))),
            DataType::Int8 => Ok((i64::MIN, i64::MAX)),
            _ => {
                bail!(INVALID_PARAMETER_VALUE: "sequence type must be smallint, integer, or bigint")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sequence(increment: i64, min: i64, max: i64, cycle: bool) -> Sequence {
        Sequence {
            oid: 1,
            schema: "public".to_owned(),
            name: "s".to_owned(),
            id: 1,
            type_oid: DataType::Int8.oid(),
            start: min,
            first: min,
            increment,
            min,
            max,
            cache: 1,
            cycle,
            owned_by: None,
            unknown: Default::default(),
        }
    }

    #[test]
    fn sequence_end_is_error_or_wraps_around() {
        let up = sequence(3, 1, 9, false);
        assert_eq!((up.after(1).unwrap(), up.after(4).unwrap()), (4, 7));
        let error = up.after(7).unwrap_err();
        assert_eq!(error.message, "nextval: reached maximum value of sequence \"s\" (9)");
        assert_eq!(sequence(3, 1, 9, true).after(7).unwrap(), 1);
        assert_eq!(sequence(-3, 1, 9, true).after(2).unwrap(), 9);
        assert_eq!(sequence(1, 1, i64::MAX, true).after(i64::MAX).unwrap(), 1);
    }

    #[test]
    fn sequence_look_ahead_stays_within_bounds() {
        let up = sequence(3, 1, 9, false);
        assert_eq!((up.ahead(1, 1), up.ahead(1, 2), up.ahead(1, 3)), (Some(4), Some(7), None));
        assert_eq!(sequence(-2, -5, 9, false).ahead(0, 2), Some(-4));
        assert_eq!(sequence(i64::MAX, 1, i64::MAX, false).ahead(1, 30), None);
        assert_eq!(sequence(-1, i64::MIN, -1, false).ahead(i64::MIN + 1, 2), None);
    }
}
