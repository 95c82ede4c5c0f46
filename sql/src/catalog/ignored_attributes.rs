//! Attributes of tables, columns and indexes that PostgreSQL's catalog has and that have no effect
//! here. They are stored, and shown where PostgreSQL shows them, so that a dump contains them.

use bincode::{Decode, Encode};

use crate::ast::StorageKind;

/// A storage parameter: its name and its value as written.
pub type Parameter = (String, String);

/// Attributes of a table without effect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
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
}

/// The old values that logical replication would send for a change.
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

/// Attributes of a column without effect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct IgnoredColumnAttributes {
    /// `SET STATISTICS`
    pub statistics: Option<i32>,
    /// `SET STORAGE`, if it differs from that of the type.
    pub storage: Option<StorageKind>,
    /// `SET COMPRESSION`: `p` for pglz, `l` for lz4.
    pub compression: Option<char>,
    /// `SET (n_distinct = …)`
    pub options: Vec<Parameter>,
}

/// Attributes of an index without effect.
#[derive(Debug, Clone, Default, PartialEq, Eq, Encode, Decode)]
pub struct IgnoredIndexAttributes {
    /// Its storage parameters, in the order in which they were set.
    pub parameters: Vec<Parameter>,
    /// True if it was created `USING hash`.
    pub is_hash: bool,
    /// Operator classes other than the defaults, by the position of the key.
    pub operator_classes: Vec<(u32, String)>,
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::record::{decode, encode};

    /// The bytes that `docs/formats/catalog.md` describes.
    #[test]
    fn ignored_attributes_match_documented_encoding() {
        let fillfactor = |value: &str| vec![("fillfactor".to_owned(), value.to_owned())];
        let of_table = IgnoredTableAttributes {
            parameters: fillfactor("70"),
            unlogged: true,
            replica_identity: ReplicaIdentity::Index(7),
            clustered_on: Some(7),
            key_parameters: Vec::new(),
            key_include: vec![2],
        };
        let written = encode(&of_table);
        let documented: [&[u8]; 3] = [&[1, 10], b"fillfactor\x0270", &[1, 3, 7, 1, 7, 0, 1, 2]];
        // A frame of eight bytes and the version.
        assert_eq!(written[9..], documented.concat());
        assert_eq!(decode::<IgnoredTableAttributes>(&written).unwrap(), of_table);
        let of_column = IgnoredColumnAttributes {
            statistics: Some(100),
            storage: Some(StorageKind::External),
            compression: Some('l'),
            options: Vec::new(),
        };
        assert_eq!(encode(&of_column)[9..], [1, 200, 1, 1, 1, b'l', 0]);
        let mut damaged = written.clone();
        damaged[9] ^= 1;
        let error = decode::<IgnoredTableAttributes>(&damaged).unwrap_err();
        assert_eq!(error.sqlstate, "XX001");
    }
}
