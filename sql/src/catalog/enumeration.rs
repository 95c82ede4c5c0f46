//! Enums in the catalog: a row for each.
//!
//! The key is `e` and the type's number; the one cell holds an [`EnumRecord`]. The record of a
//! table or view with a column of the type has a copy of it, so that it can be read by itself;
//! ALTER TYPE changes all of them. What ranks are: [`types::enumeration`].

use types::DataType;
use types::enumeration::{EnumDefinition, EnumType, Label};
use types::function::quote_ident;

use crate::ast::NamedType;
use crate::error::{Error, sqlstate};

/// What the keys of enums begin with.
pub const ENUMS_PREFIX: &[u8] = b"e";

/// Added to numbers of the catalog to make the OIDs of types and labels: clients take those below
/// for built-in ones.
const OID_OFFSET: u32 = 15_384;

/// Returns the key of an enum's row.
pub fn enum_key(number: u32) -> Vec<u8> {
    [ENUMS_PREFIX, number.to_be_bytes().as_slice()].concat()
}

/// An enum.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct EnumRecord {
    /// Its number; the next one is that of its arrays.
    pub number: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// The labels, in order.
    pub labels: Vec<LabelRecord>,
}

/// A label.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct LabelRecord {
    /// Its rank, which values are stored as.
    pub rank: i64,
    /// Its number.
    pub number: u32,
    /// Its text.
    pub name: String,
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

    /// Returns what is stored of the enum in a type, if there is one.
    pub fn within(data_type: DataType) -> Option<EnumRecord> {
        let definition = data_type.enumeration()?.definition();
        let label = |label: &Label| LabelRecord {
            rank: label.rank,
            number: label.oid - OID_OFFSET,
            name: label.name.to_string(),
        };
        Some(EnumRecord {
            number: definition.oid - OID_OFFSET,
            schema: definition.schema.clone(),
            name: definition.name.clone(),
            labels: definition.labels.iter().map(label).collect(),
        })
    }

    /// Returns the type with an OID that is this enum's or that of its arrays.
    pub fn type_with(&self, oid: u32) -> Option<DataType> {
        let of = self.enum_type();
        match () {
            () if of.definition().oid == oid => Some(DataType::Enum(of)),
            () if of.definition().array_oid == oid => Some(of.array()),
            () => None,
        }
    }
}

impl NamedType {
    /// Returns the type that the name means if it is that of an enum.
    pub fn of(&self, of: &'static EnumType) -> DataType {
        if self.is_array { of.array() } else { DataType::Enum(of) }
    }

    /// Returns the error of a name that nothing has.
    pub fn undefined(&self) -> Error {
        let array = if self.is_array { "[]" } else { "" };
        let full = match &self.schema {
            Some(schema) => format!("{schema}.{}{array}", self.name),
            None => format!("{}{array}", self.name),
        };
        let message = format!("type \"{full}\" does not exist");
        Error::new(sqlstate::UNDEFINED_OBJECT, message)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn records_and_types_are_made_of_each_other() {
        let label = LabelRecord { rank: 5, number: 1_003, name: "a".to_owned() };
        let record = EnumRecord {
            number: 1_001,
            schema: "public".to_owned(),
            name: "Mood".to_owned(),
            labels: vec![label],
        };
        let of = record.enum_type();
        assert_eq!(of.definition().shown, "\"Mood\"");
        assert_eq!(EnumRecord::within(DataType::Enum(of)), Some(record.clone()));
        assert_eq!(EnumRecord::within(of.array()), Some(record.clone()));
        assert_eq!(record.type_with(of.definition().array_oid), Some(of.array()));
        assert_eq!(record.type_with(23), None);
        assert_eq!(EnumRecord::within(DataType::Int4), None);
    }
}
