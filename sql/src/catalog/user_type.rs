//! Types that users define, whatever their kind.
//!
//! They have names of their own in each schema, beside those of relations, and OIDs made of their
//! numbers. What is stored of a column is the OID of its type; what that means the catalog says.

use std::sync::Arc;

use types::{DataType, SqlType};

use crate::catalog::base_type::BaseTypeRecord;
use crate::catalog::composite::Composite;
use crate::catalog::domain::Domain;
use crate::catalog::enumeration::EnumRecord;

/// Added to numbers of the catalog to make the OIDs of types and labels: clients take those below
/// for built-in ones.
pub const OID_OFFSET: u32 = 15_384;

/// A type of users.
#[derive(Debug, Clone)]
pub enum UserType {
    /// An enum.
    Enum(EnumRecord),
    /// A domain.
    Domain(Arc<Domain>),
    /// A composite type, or that of the rows of a relation.
    Composite(Composite),
    /// A base type.
    Base(BaseTypeRecord),
}

impl UserType {
    /// Returns its number; the next one is that of its arrays, unless it is of rows.
    pub fn number(&self) -> u32 {
        match self {
            UserType::Enum(record) => record.number,
            UserType::Domain(domain) => domain.record.number,
            UserType::Composite(composite) => composite.number,
            UserType::Base(record) => record.number,
        }
    }

    /// Returns its OID.
    pub fn oid(&self) -> u32 {
        self.number() + OID_OFFSET
    }

    /// Returns the OID of its arrays.
    pub fn array_oid(&self) -> u32 {
        match self {
            UserType::Composite(composite) => composite.definition().array_oid,
            _ => self.oid() + 1,
        }
    }

    /// Returns its schema.
    pub fn schema(&self) -> &str {
        match self {
            UserType::Enum(record) => &record.schema,
            UserType::Domain(domain) => &domain.record.schema,
            UserType::Composite(composite) => &composite.definition().schema,
            UserType::Base(record) => &record.schema,
        }
    }

    /// Returns its name in the schema.
    pub fn name(&self) -> &str {
        match self {
            UserType::Enum(record) => &record.name,
            UserType::Domain(domain) => &domain.record.name,
            UserType::Composite(composite) => &composite.definition().name,
            UserType::Base(record) => &record.name,
        }
    }

    /// Returns the type with this name.
    #[must_use]
    pub fn renamed(&self, schema: &str, name: &str) -> UserType {
        let (schema, name) = (schema.to_owned(), name.to_owned());
        match self {
            UserType::Enum(record) => UserType::Enum(EnumRecord { schema, name, ..record.clone() }),
            UserType::Domain(domain) => UserType::Domain(domain.renamed(schema, name).into()),
            UserType::Composite(composite) => UserType::Composite(composite.renamed(schema, name)),
            UserType::Base(record) => {
                UserType::Base(BaseTypeRecord { schema, name, ..record.clone() })
            }
        }
    }

    /// Returns the type of its values.
    pub fn sql_type(&self) -> SqlType {
        match self {
            UserType::Enum(record) => DataType::Enum(record.enum_type()).into(),
            UserType::Domain(domain) => domain.sql_type,
            UserType::Composite(composite) => {
                DataType::Composite(composite.composite_type()).into()
            }
            UserType::Base(record) => DataType::Base(record.base_type()).into(),
        }
    }

    /// Returns the type of its arrays; of domains over arrays, and of shells, there is none.
    pub fn array(&self) -> Option<SqlType> {
        match self {
            UserType::Enum(record) => Some(record.enum_type().array().into()),
            UserType::Domain(domain) => domain.array.as_ref().map(|array| array.sql_type),
            UserType::Composite(composite) => Some(composite.composite_type().array().into()),
            UserType::Base(record) if record.is_shell() => None,
            UserType::Base(record) => Some(record.base_type().array().into()),
        }
    }

    /// Returns whether it is a name only, which functions for input and output are declared with.
    pub fn is_shell(&self) -> bool {
        matches!(self, UserType::Base(record) if record.is_shell())
    }

    /// Returns whether it is the type of the rows of a relation, with which it comes and goes.
    pub fn is_of_rows(&self) -> bool {
        matches!(self, UserType::Composite(composite) if composite.is_of_rows())
    }

    /// Returns the type with an OID that is this one's or that of its arrays.
    pub fn type_with(&self, oid: u32) -> Option<SqlType> {
        match () {
            () if self.oid() == oid => Some(self.sql_type()),
            () if self.array_oid() == oid => self.array(),
            () => None,
        }
    }
}
