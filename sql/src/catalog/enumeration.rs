//! Enums in the catalog: one row each.
//!
//! The key is `e` and the type's number; the only cell holds an [`EnumRecord`]. Ranks are
//! explained in [`types::enumeration`].

use store::codec::tagged::UnknownFields;
use types::enumeration::{EnumDefinition, EnumType, Label};
use types::function::quote_ident;

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

impl EnumRecord {
    /// Returns the type.
    pub fn enum_type(&self) -> &'static EnumType {
        let label = |label: &LabelRecord| Label {
            rank: label.rank,
            oid: label.number + OID_OFFSET,
            name: label.name.as_str().into(),
        };
        let shown = match self.schema.as_str() {
            "public" => quote_ident(&self.name),
            schema => format!("{}.{}", quote_ident(schema), quote_ident(&self.name)),
        };
        EnumType::of(EnumDefinition {
            oid: self.number + OID_OFFSET,
            array_oid: self.number + OID_OFFSET + 1,
            schema: self.schema.clone(),
            name: self.name.clone(),
            shown,
            labels: self.labels.iter().map(label).collect(),
        })
    }
}
