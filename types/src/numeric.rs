//! `numeric`: decimal numbers of any precision, with display scale, NaN and the infinities,
//! computed as PostgreSQL computes them.

/// A `numeric` value. At most 16 bytes with 8-byte alignment, so that a `Datum` stays at 24.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Numeric {
    _private: (),
}
