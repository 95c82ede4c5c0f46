//! Attributes of tables, columns and indexes that PostgreSQL's catalog has and that have no effect
//! here: retained, and shown where PostgreSQL shows them, so that a dump has them.

use bincode::{Decode, Encode};

use crate::ast::StorageKind;

/// A storage parameter: its name and its value as it was written.
pub type Parameter = (String, String);

/// What is retained of a table.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct RetainedTable {
    /// Its storage parameters, in the order in which they were set.
    pub parameters: Vec<Parameter>,
    /// It was created UNLOGGED.
    pub unlogged: bool,
    /// `REPLICA IDENTITY`
    pub replica_identity: ReplicaIdentity,
    /// `CLUSTER ON`: the number of the index, or that of the table for its primary key.
    pub clustered_on: Option<u32>,
    /// Storage parameters of the index that the primary key is shown as.
    pub key_parameters: Vec<Parameter>,
    /// Positions of the columns that the primary key includes: all are where the rows lie.
    pub key_include: Vec<u32>,
}

/// What of an old row a change tells a replica.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Encode, Decode)]
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

/// What is retained of a column.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct RetainedColumn {
    /// `SET STATISTICS`
    pub statistics: Option<i32>,
    /// `SET STORAGE`, if it is not that of the type.
    pub storage: Option<StorageKind>,
    /// `SET COMPRESSION`: `p` for pglz, `l` for lz4.
    pub compression: Option<char>,
    /// `SET (n_distinct = …)`
    pub options: Vec<Parameter>,
}

/// What is retained of an index.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct RetainedIndex {
    /// Its storage parameters, in the order in which they were set.
    pub parameters: Vec<Parameter>,
    /// It was created `USING hash`.
    pub is_hash: bool,
    /// Operator classes that are not their types' defaults, by the position of the key.
    pub operator_classes: Vec<(u32, String)>,
}

/// Sets a parameter, or takes it away.
pub fn set_parameter(parameters: &mut Vec<Parameter>, name: &str, value: Option<String>) {
    let at = parameters.iter().position(|(known, _)| known == name);
    match (at, value) {
        (Some(at), Some(value)) => parameters[at].1 = value,
        (Some(at), None) => drop(parameters.remove(at)),
        (None, Some(value)) => parameters.push((name.to_owned(), value)),
        (None, None) => {}
    }
}
