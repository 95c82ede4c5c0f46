//! User-defined base types in the catalog: one row each.
//!
//! The key is `w` and the type's number; the only cell holds a [`BaseTypeRecord`]. A type is
//! created as a shell, a name that its input and output functions can refer to; its definition
//! names these.

use types::DataType;
use types::datatype::base::{BaseDefinition, BaseType};

use crate::catalog::domain::shown_name;
use crate::catalog::user_type::OID_OFFSET;

/// The key prefix of base types.
pub const BASE_TYPES_PREFIX: &[u8] = b"w";

/// Returns the key of a base type's row.
pub fn base_type_key(number: u32) -> Vec<u8> {
    [BASE_TYPES_PREFIX, number.to_be_bytes().as_slice()].concat()
}

/// A base type.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct BaseTypeRecord {
    /// Its number; the next one is that of its arrays.
    pub number: u32,
    /// Its schema.
    pub schema: String,
    /// Its name.
    pub name: String,
    /// Its definition; none for a shell.
    pub definition: Option<BaseTypeDefinition>,
}

/// The definition of a base type.
#[derive(Debug, Clone, PartialEq, Eq, bincode::Encode, bincode::Decode)]
pub struct BaseTypeDefinition {
    /// Number of the input function.
    pub input: u32,
    /// Number of the output function.
    pub output: u32,
    /// OID of the built-in type that stores its values.
    pub held: u32,
    /// The delimiter between elements of its arrays.
    pub delimiter: char,
}

impl BaseTypeRecord {
    /// Returns whether it is a shell.
    pub fn is_shell(&self) -> bool {
        self.definition.is_none()
    }

    /// Returns the type.
    pub fn base_type(&self) -> &'static BaseType {
        let held = self.definition.as_ref().and_then(|one| DataType::from_oid(one.held));
        BaseType::of(BaseDefinition {
            oid: self.number + OID_OFFSET,
            array_oid: self.number + OID_OFFSET + 1,
            schema: self.schema.clone(),
            name: self.name.clone(),
            shown: shown_name(&self.schema, &self.name),
            held: held.unwrap_or(DataType::Void),
            delimiter: self.definition.as_ref().map_or(',', |one| one.delimiter),
        })
    }
}
