//! Composite types: user-defined row types, and the row types of tables and views.
//!
//! A value is a record. It is stored by attribute numbers, which never change, so that stored
//! values remain valid when attributes are added and dropped.

use std::sync::Arc;

use super::identity::{TypeIdentity, identified_by_oid};
use super::{DataType, SqlType};

/// The fields of a record: names and types.
pub type Fields = Arc<[(Arc<str>, DataType)]>;

/// An attribute of a composite type.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Attribute {
    /// Its name.
    pub name: Arc<str>,
    /// Its type.
    pub sql_type: SqlType,
    /// Its position in stored values, from 0.
    pub number: usize,
}

/// A composite type.
pub struct CompositeType {
    identity: TypeIdentity,
    attributes: Vec<Attribute>,
    fields: Fields,
}

identified_by_oid!(CompositeType, "composite");

impl CompositeType {
    /// Returns the type with these attributes, by number.
    pub fn new(identity: TypeIdentity, attributes: Vec<Attribute>) -> CompositeType {
        let field = |one: &Attribute| (Arc::clone(&one.name), one.sql_type.base.clone());
        let fields = attributes.iter().map(field).collect();
        CompositeType { identity, attributes, fields }
    }

    /// Returns names and types of its attributes.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Returns the attributes.
    pub fn attributes(&self) -> &[Attribute] {
        &self.attributes
    }

    /// Returns whether an attribute, at any depth, has a domain type.
    pub fn has_domains(&self) -> bool {
        self.attributes().iter().any(|one| {
            let base = one.sql_type.base.element().unwrap_or(&one.sql_type.base);
            let inner = matches!(base, DataType::Composite(of) if of.has_domains());
            one.sql_type.domain.is_some() || inner
        })
    }
}
