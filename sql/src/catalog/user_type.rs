//! User-defined types of all kinds.
//!
//! Each type has a name in a schema, looked up apart from names of relations, and its OID is
//! derived from its number. A column is stored with the OID of its type, which the catalog
//! resolves.

use std::sync::Arc;

use types::{DataType, SqlType};

use crate::catalog::composite::Composite;
use crate::catalog::domain::Domain;
use crate::catalog::enumeration::{EnumRecord, Enumeration};

/// The offset from catalog numbers to OIDs of types and labels: clients assume that lower OIDs are
/// built in.
pub const OID_OFFSET: u32 = 15_384;

/// A user-defined type.
#[derive(Debug, Clone)]
pub enum UserType {
    /// An enum.
    Enum(Enumeration),
    /// A domain.
    Domain(Arc<Domain>),
    /// A composite type, or the row type of a relation.
    Composite(Composite),
}

impl UserType {
    /// Returns its number; the next number is that of its array type, unless it is a row type.
    pub fn number(&self) -> u32 {
        match self {
            UserType::Enum(of) => of.record.number,
            UserType::Domain(domain) => domain.record.number,
            UserType::Composite(composite) => composite.number,
        }
    }

    /// Returns its OID.
    pub fn oid(&self) -> u32 {
        self.number() + OID_OFFSET
    }

    /// Returns the OID of its array type.
    pub fn array_oid(&self) -> u32 {
        match self {
            UserType::Composite(composite) => composite.composite_type.identity().array_oid,
            _ => self.oid() + 1,
        }
    }

    /// Returns its schema.
    pub fn schema(&self) -> &str {
        match self {
            UserType::Enum(of) => &of.record.schema,
            UserType::Domain(domain) => &domain.record.schema,
            UserType::Composite(composite) => &composite.composite_type.identity().schema,
        }
    }

    /// Returns its name in the schema.
    pub fn name(&self) -> &str {
        match self {
            UserType::Enum(of) => &of.record.name,
            UserType::Domain(domain) => &domain.record.name,
            UserType::Composite(composite) => &composite.composite_type.identity().name,
        }
    }

    /// Returns the type with this name.
    #[must_use]
    pub fn renamed(&self, schema: &str, name: &str) -> UserType {
        let (schema, name) = (schema.to_owned(), name.to_owned());
        match self {
            UserType::Enum(of) => {
                let record = EnumRecord { schema, name, ..of.record.clone() };
                UserType::Enum(Enumeration::of_record(record))
            }
            UserType::Domain(domain) => UserType::Domain(domain.renamed(schema, name).into()),
            UserType::Composite(composite) => UserType::Composite(composite.renamed(schema, name)),
        }
    }

    /// Returns the type of its values.
    pub fn sql_type(&self) -> SqlType {
        match self {
            UserType::Enum(of) => DataType::Enum(Arc::clone(&of.enum_type)).into(),
            UserType::Domain(domain) => domain.sql_type.clone(),
            UserType::Composite(of) => DataType::Composite(Arc::clone(&of.composite_type)).into(),
        }
    }

    /// Returns its array type; domains over arrays have none.
    pub fn array(&self) -> Option<SqlType> {
        match self {
            UserType::Domain(domain) => domain.array.as_ref().map(|array| array.sql_type.clone()),
            _ => self.sql_type().base.array().map(SqlType::from),
        }
    }

    /// Returns whether it is the row type of a relation, created and dropped with it.
    pub fn is_of_rows(&self) -> bool {
        matches!(self, UserType::Composite(composite) if composite.is_of_rows())
    }

    /// Returns the type with an OID that is this one's or that of its array type.
    pub fn type_with(&self, oid: u32) -> Option<SqlType> {
        match () {
            () if self.oid() == oid => Some(self.sql_type()),
            () if self.array_oid() == oid => self.array(),
            () => None,
        }
    }
}
