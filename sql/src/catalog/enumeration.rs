//! Enums in the catalog: one row each.
//!
//! The key is `e` and the type's number; the only cell holds an [`EnumRecord`]. Ranks are
//! explained in [`types::enumeration`].

use std::sync::Arc;

use store::codec::tagged::UnknownFields;
use types::datatype::identity::TypeIdentity;
use types::enumeration::{EnumType, Label};

use crate::catalog::domain::display_name;
use crate::catalog::user_type::OID_OFFSET;

/// The key prefix of enums.
pub const ENUMS_PREFIX: &[u8] = b"e";

/// An enum.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EnumRecord {
    /// Its number; the next one is that of its arrays.
    pub number: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The labels, in order.
    pub labels: Vec<LabelRecord>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// A label.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct LabelRecord {
    /// Its rank, the stored form of the value.
    pub rank: i64,
    /// Its number.
    pub number: u32,
    /// Its text.
    pub name: String,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// An enum with its type.
#[derive(Debug, Clone)]
pub struct Enumeration {
    /// The stored record.
    pub record: EnumRecord,
    /// The type.
    pub enum_type: Arc<EnumType>,
}

impl Enumeration {
    /// Returns the enum that a record describes.
    pub fn of_record(record: EnumRecord) -> Enumeration {
        let label = |label: &LabelRecord| Label {
            rank: label.rank,
            oid: label.number + OID_OFFSET,
            name: label.name.as_str().into(),
        };
        let labels = record.labels.iter().map(label).collect();
        let oid = record.number + OID_OFFSET;
        let shown = display_name(&record.schema, &record.name);
        let identity = TypeIdentity::new((oid, oid + 1), (&record.schema, &record.name), shown);
        Enumeration { record, enum_type: Arc::new(EnumType::new(identity, labels)) }
    }
}
