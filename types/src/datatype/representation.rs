//! Representation of values: the variant of [`Datum`](crate::Datum) and of vectors for each type.
//!
//! Storage, copies, comparisons and hashes depend only on the representation; text and binary
//! form, and functions, depend on the type.

use super::DataType;

/// The variant of [`Datum`](crate::Datum) for the values of a type.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Representation {
    /// One byte.
    Bool,
    /// 16 bits.
    Int2,
    /// 32 bits.
    Int4,
    /// 64 bits: numbers, OIDs, ranks of enums, word types.
    Int8,
    /// A float of 32 bits.
    Float4,
    /// A float of 64 bits.
    Float8,
    /// A decimal number.
    Numeric,
    /// UTF-8 text.
    Text,
    /// Bytes.
    Bytea,
    /// Days.
    Date,
    /// Microseconds of a day.
    Time,
    /// Microseconds of local time.
    Timestamp,
    /// Microseconds.
    Timestamptz,
    /// Months, days and microseconds.
    Interval,
    /// 16 bytes.
    Uuid,
    /// Rare types and types that contain other values.
    Nested,
}

impl DataType {
    /// Returns the representation. Pseudo-types have none and count as nested.
    #[inline]
    pub const fn representation(&self) -> Representation {
        match self {
            DataType::Bool => Representation::Bool,
            DataType::Int2 => Representation::Int2,
            DataType::Int4 => Representation::Int4,
            DataType::Int8
            | DataType::Oid
            | DataType::Reg(_)
            | DataType::Enum(_)
            | DataType::Word(_) => Representation::Int8,
            DataType::Float4 => Representation::Float4,
            DataType::Float8 => Representation::Float8,
            DataType::Numeric => Representation::Numeric,
            DataType::Text
            | DataType::Varchar
            | DataType::Char
            | DataType::Name
            | DataType::InternalChar
            | DataType::AclItem
            | DataType::RefCursor
            | DataType::NodeTree
            | DataType::CString
            | DataType::Void
            | DataType::Trigger
            | DataType::Unknown => Representation::Text,
            DataType::Bytea => Representation::Bytea,
            DataType::Date => Representation::Date,
            DataType::Time => Representation::Time,
            DataType::Timestamp => Representation::Timestamp,
            DataType::Timestamptz => Representation::Timestamptz,
            DataType::Interval => Representation::Interval,
            DataType::Uuid => Representation::Uuid,
            DataType::Bit
            | DataType::Varbit
            | DataType::Timetz
            | DataType::Geometry(_)
            | DataType::Json
            | DataType::Jsonb
            | DataType::JsonPath
            | DataType::Record
            | DataType::Composite(_)
            | DataType::Array(_)
            | DataType::Int2Vector
            | DataType::OidVector
            | DataType::AnyArray
            | DataType::AnyElement
            | DataType::AnyEnum
            | DataType::AnyNonArray
            | DataType::CompatibleArray
            | DataType::CompatibleNonArray
            | DataType::Compatible => Representation::Nested,
        }
    }
}
