//! Attributes of tables, columns and indexes that PostgreSQL's catalog has and that have no effect
//! here. They are stored, and shown where PostgreSQL shows them, so that a dump contains them.

use store::codec::tagged::UnknownFields;

use crate::ast::StorageKind;

/// A storage parameter: its name and its value as written.
pub type Parameter = (String, String);

/// Attributes of a table without effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IgnoredTableAttributes {
    /// Its storage parameters, in the order in which they were set.
    pub parameters: Vec<Parameter>,
    /// True if it was created UNLOGGED.
    pub unlogged: bool,
    /// `REPLICA IDENTITY`
    pub replica_identity: ReplicaIdentity,
    /// `CLUSTER ON`: the number of the index, or that of the table for its primary key.
    pub clustered_on: Option<u32>,
    /// Storage parameters of the index that represents the primary key.
    pub key_parameters: Vec<Parameter>,
    /// Positions of the columns in INCLUDE of the primary key; it has no effect, because rows are
    /// stored under the primary key.
    pub key_include: Vec<u32>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// The old values that logical replication would send for a change.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ReplicaIdentity {
    /// The primary key.
    #[default]
    Default,
    /// The whole row.
    Full,
    /// Nothing.
    Nothing,
    /// The columns of an index, by its number, or that of the table for its primary key.
    Index(u32),
}

/// Attributes of a column without effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IgnoredColumnAttributes {
    /// `SET STATISTICS`
    pub statistics: Option<i32>,
    /// `SET STORAGE`, if it differs from that of the type.
    pub storage: Option<StorageKind>,
    /// `SET COMPRESSION`: `p` for pglz, `l` for lz4.
    pub compression: Option<char>,
    /// `SET (n_distinct = …)`
    pub options: Vec<Parameter>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// Attributes of an index without effect.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct IgnoredIndexAttributes {
    /// Its storage parameters, in the order in which they were set.
    pub parameters: Vec<Parameter>,
    /// True if it was created `USING hash`.
    pub is_hash: bool,
    /// Operator classes other than the defaults, by the position of the key.
    pub operator_classes: Vec<(u32, String)>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// Sets or removes a parameter.
pub fn set_parameter(parameters: &mut Vec<Parameter>, name: &str, value: Option<String>) {
    let at = parameters.iter().position(|(known, _)| known == name);
    match (at, value) {
        (Some(at), Some(value)) => parameters[at].1 = value,
        (Some(at), None) => drop(parameters.remove(at)),
        (None, Some(value)) => parameters.push((name.to_owned(), value)),
        (None, None) => {}
    }
}
