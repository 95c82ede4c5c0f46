//! Word types: values are numbers of at most 64 bits with a text form of their own.
//!
//! The kind determines representation, parsing, text, binary form and arithmetic. Values are
//! `Int8` in the order of the type; unsigned 64-bit numbers are biased so that 0 is the least
//! ([`FixedWidthKind::of_unsigned`]).

use super::DataType;

/// A type of [`DataType::Word`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum FixedWidthKind {
    /// `tid`: a row location, a block number of 32 bits and an offset of 16
    Tid,
    /// `xid`: a transaction, 32 bits
    Xid,
    /// `xid8`: a transaction, 64 bits
    Xid8,
    /// `cid`: a command of a transaction, 32 bits
    Cid,
    /// `pg_lsn`: a log position, 64 bits
    PgLsn,
    /// `macaddr`: six bytes
    MacAddr,
    /// `macaddr8`: eight bytes
    MacAddr8,
    /// `money`: cents
    Money,
}

impl FixedWidthKind {
    /// Returns the number of bytes of the binary form.
    pub fn byte_count(self) -> usize {
        match self {
            FixedWidthKind::Xid | FixedWidthKind::Cid => 4,
            FixedWidthKind::Tid | FixedWidthKind::MacAddr => 6,
            FixedWidthKind::Xid8
            | FixedWidthKind::PgLsn
            | FixedWidthKind::MacAddr8
            | FixedWidthKind::Money => 8,
        }
    }

    fn is_biased(self) -> bool {
        matches!(self, FixedWidthKind::Xid8 | FixedWidthKind::PgLsn | FixedWidthKind::MacAddr8)
    }

    /// Returns the representation of an unsigned number.
    pub fn of_unsigned(self, value: u64) -> i64 {
        if self.is_biased() { value.cast_signed() ^ i64::MIN } else { value.cast_signed() }
    }

    /// Returns the unsigned number of a representation.
    pub fn to_unsigned(self, held: i64) -> u64 {
        if self.is_biased() { (held ^ i64::MIN).cast_unsigned() } else { held.cast_unsigned() }
    }

    /// Returns whether values have an order; all have equality.
    pub(super) fn is_ordered(self) -> bool {
        !matches!(self, FixedWidthKind::Xid | FixedWidthKind::Cid)
    }
}

impl DataType {
    /// `tid`
    pub const TID: DataType = DataType::Word(FixedWidthKind::Tid);
    /// `xid`
    pub const XID: DataType = DataType::Word(FixedWidthKind::Xid);
    /// `xid8`
    pub const XID8: DataType = DataType::Word(FixedWidthKind::Xid8);
    /// `cid`
    pub const CID: DataType = DataType::Word(FixedWidthKind::Cid);
    /// `pg_lsn`
    pub const PG_LSN: DataType = DataType::Word(FixedWidthKind::PgLsn);
    /// `macaddr`
    pub const MACADDR: DataType = DataType::Word(FixedWidthKind::MacAddr);
    /// `macaddr8`
    pub const MACADDR8: DataType = DataType::Word(FixedWidthKind::MacAddr8);
    /// `money`
    pub const MONEY: DataType = DataType::Word(FixedWidthKind::Money);
}
