//! What the catalog knows of a sequence: its definition. Where it stands is not part of the
//! catalog, because it outlives a rollback: see [`crate::sequences`].

use types::datatype::RegKind;
use types::expr::Expr;
use types::{DataType, Datum};

use crate::error::{Error, Result, sqlstate};

/// What keys of [`sequence_key`] begin with.
pub const SEQUENCES_PREFIX: &[u8] = b"s";

/// What keys of [`state_key`] begin with.
pub const STATES_PREFIX: &[u8] = b"u";

/// Returns the key of a sequence's row.
pub fn sequence_key(oid: u32) -> Vec<u8> {
    [SEQUENCES_PREFIX, oid.to_be_bytes().as_slice()].concat()
}

/// Returns the key of the row that says where a sequence stands.
pub fn state_key(id: u32) -> Vec<u8> {
    [STATES_PREFIX, id.to_be_bytes().as_slice()].concat()
}

/// Returns the name of the sequence that is the argument of `nextval` and related functions, where
/// it is written: `'s'`, `'s'::regclass`.
pub fn sequence_name(argument: &Expr) -> Option<&str> {
    match argument {
        Expr::Constant { value: Datum::Text(name), .. } => Some(name),
        Expr::Cast { operand, to, .. } if to.base == DataType::Reg(RegKind::Class) => {
            sequence_name(operand)
        }
        _ => None,
    }
}

/// A sequence. Stored as it is, under [`sequence_key`].
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct Sequence {
    /// Its number.
    pub oid: u32,
    /// Its schema.
    pub schema: String,
    /// Its name in the schema.
    pub name: String,
    /// Under which its state is kept; another one after a RESTART.
    pub id: u32,
    /// OID of its type: smallint, integer or bigint.
    pub type_oid: u32,
    /// What START says.
    pub start: i64,
    /// The value that it gives first, if nothing is kept of its state.
    pub first: i64,
    /// Difference from one value to the next; not 0.
    pub increment: i64,
    /// Its smallest value.
    pub min: i64,
    /// Its largest value.
    pub max: i64,
    /// Values that are reserved at once, at least.
    pub cache: i64,
    /// Goes on from the other end.
    pub cycle: bool,
    /// The number of the table and the position of the column that it goes with.
    pub owned_by: Option<(u32, u32)>,
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
        let message =
            format!("nextval: reached {end} value of sequence \"{}\" ({bound})", self.name);
        Err(Error::new(sqlstate::SEQUENCE_GENERATOR_LIMIT_EXCEEDED, message))
    }

    /// Returns the value `steps` after `value`, if the sequence has it.
    pub fn ahead(&self, value: i64, steps: i64) -> Option<i64> {
        let ahead = value.checked_add(self.increment.checked_mul(steps)?)?;
        (self.min..=self.max).contains(&ahead).then_some(ahead)
    }

    /// Returns the values that a type has.
    ///
    /// # Errors
    ///
    /// 22023 for a type that sequences cannot have.
    pub fn range_of(data_type: DataType) -> Result<(i64, i64)> {
        match data_type {
            DataType::Int2 => Ok((i64::from(i16::MIN), i64::from(i16::MAX))),
            DataType::Int4 => Ok((i64::from(i32::MIN), i64::from(i32::MAX))),
            DataType::Int8 => Ok((i64::MIN, i64::MAX)),
            _ => Err(Error::new(
                sqlstate::INVALID_PARAMETER_VALUE,
                "sequence type must be smallint, integer, or bigint",
            )),
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
        }
    }

    #[test]
    fn the_end_is_an_error_or_the_other_end() {
        let up = sequence(3, 1, 9, false);
        assert_eq!((up.after(1).unwrap(), up.after(4).unwrap()), (4, 7));
        let error = up.after(7).unwrap_err();
        assert_eq!(error.message, "nextval: reached maximum value of sequence \"s\" (9)");
        assert_eq!(sequence(3, 1, 9, true).after(7).unwrap(), 1);
        assert_eq!(sequence(-3, 1, 9, true).after(2).unwrap(), 9);
        assert_eq!(sequence(1, 1, i64::MAX, true).after(i64::MAX).unwrap(), 1);
    }

    #[test]
    fn what_lies_ahead_is_a_value_of_the_sequence() {
        let up = sequence(3, 1, 9, false);
        assert_eq!((up.ahead(1, 1), up.ahead(1, 2), up.ahead(1, 3)), (Some(4), Some(7), None));
        assert_eq!(sequence(-2, -5, 9, false).ahead(0, 2), Some(-4));
        assert_eq!(sequence(i64::MAX, 1, i64::MAX, false).ahead(1, 30), None);
        assert_eq!(sequence(-1, i64::MIN, -1, false).ahead(i64::MIN + 1, 2), None);
    }
}
