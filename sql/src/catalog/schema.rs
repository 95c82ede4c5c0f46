//! Schemas: name spaces of tables, views, sequences and indexes.

use std::sync::Arc;

use imbl::OrdMap;
use store::codec::tagged::UnknownFields;

/// The prefix of the keys of schemas in the catalog table.
pub const SCHEMAS_PREFIX: &[u8] = b"h";

/// The number of schema `public`, as in PostgreSQL.
pub const PUBLIC_OID: u32 = 2_200;

/// PostgreSQL's system schemas, whose content the server computes; nothing can be created in them.
pub const SYSTEM_SCHEMAS: &[&str] = &["pg_catalog", "information_schema", "bennu"];

/// A schema as stored.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SchemaRecord {
    /// Its number.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// A schema.
#[derive(Debug, Clone)]
pub struct Schema {
    /// Its number.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// The relations by name.
    pub relations: OrdMap<Arc<str>, RelationId>,
    /// The numbers of the user-defined types by name; row types have the names of their relations.
    pub types: OrdMap<Arc<str>, u32>,
    /// Number of constraints of its tables and domains with each name.
    pub constraints: OrdMap<Arc<str>, u32>,
}

/// A relation in a schema.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RelationId {
    /// A table, by its number.
    Table(u32),
    /// The primary key of a table.
    PrimaryKey(u32),
    /// An index of a table.
    Index(u32),
    /// A view, by its number.
    View(u32),
    /// A sequence, by its number.
    Sequence(u32),
}

impl RelationId {
    /// Returns the number of a relation that has a row type.
    pub(super) fn with_row_type(self) -> Option<u32> {
        match self {
            RelationId::Table(number) | RelationId::View(number) => Some(number),
            _ => None,
        }
    }
}

impl Schema {
    /// Returns the numbers of its tables.
    pub fn tables(&self) -> impl Iterator<Item = u32> {
        self.relations.values().filter_map(|id| match id {
            RelationId::Table(table) => Some(*table),
            _ => None,
        })
    }

    /// Returns an empty schema.
    pub(super) fn empty(oid: u32, name: &str) -> Schema {
        let (relations, types, constraints) = Default::default();
        Schema { oid, name: name.to_owned(), relations, types, constraints }
    }
}
