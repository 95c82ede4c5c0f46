//! Databases: name spaces of schemas, each with a catalog of its own.
//!
//! The record of a database is a shared object: it is stored once, in the shared catalog, and the
//! catalogs of all databases have it ([`ObjectId::is_shared`](super::ObjectId::is_shared)). All
//! other objects of a database are rows of its catalog table.

use store::TableId;
use store::codec::tagged::UnknownFields;

use crate::ast::DATABASE;
use crate::catalog::access::privilege::AclRecord;

/// The prefix of the keys of databases in the shared catalog.
pub const DATABASES_PREFIX: &[u8] = b"l";

/// The number of the bootstrap superuser, which is its OID as well.
pub const BOOTSTRAP_ROLE: u32 = 10;

/// The number of the default database, whose catalog table is also the shared catalog.
pub const DEFAULT_DATABASE: u32 = 5;

/// The store table of its catalog.
pub const DEFAULT_CATALOG_TABLE: TableId = TableId(1);

/// A database as stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct DatabaseRecord {
    /// Its number.
    pub oid: u32,
    /// Its name.
    pub name: String,
    /// The store table of its catalog. It is created when the database is first opened.
    pub catalog_table: u32,
    /// The role that owns it; `None`: the bootstrap superuser.
    pub owner: Option<u32>,
    /// `IS_TEMPLATE`
    pub is_template: bool,
    /// True unless `ALLOW_CONNECTIONS`.
    pub rejects_connections: bool,
    /// `CONNECTION LIMIT`
    pub connection_limit: Option<u32>,
    /// Settings of `ALTER DATABASE … SET`, with their values.
    pub settings: Vec<(String, String)>,
    /// Its privileges; `None` for the default ones.
    pub acl: Option<Vec<AclRecord>>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

impl DatabaseRecord {
    /// Returns the databases of a new data directory.
    pub fn initial() -> [DatabaseRecord; 4] {
        let record = |oid, name: &str, catalog_table| DatabaseRecord {
            oid,
            name: name.to_owned(),
            catalog_table,
            ..DatabaseRecord::default()
        };
        [
            record(DEFAULT_DATABASE, DATABASE, DEFAULT_CATALOG_TABLE.0),
            DatabaseRecord { is_template: true, ..record(1, "template1", 2) },
            DatabaseRecord {
                is_template: true,
                rejects_connections: true,
                ..record(4, "template0", 3)
            },
            record(6, "postgres", 4),
        ]
    }

    /// Returns the number of the role that owns it.
    pub fn owner(&self) -> u32 {
        self.owner.unwrap_or(BOOTSTRAP_ROLE)
    }

    /// Returns the store table of its catalog.
    pub fn catalog_table(&self) -> TableId {
        TableId(self.catalog_table)
    }
}
