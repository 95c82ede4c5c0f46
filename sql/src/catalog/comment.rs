//! Comments of COMMENT ON, with their subjects as keys.
//!
//! Numbers and positions are never reused. Only the comment of a constraint, whose key is a name,
//! would apply to a new object; but the comments of all dropped objects are deleted.

use store::codec::tagged::UnknownFields;

use crate::catalog::database::DEFAULT_DATABASE;
use crate::error::{Error, Result};

/// The key prefix of [`CommentSubjectKey::key`].
pub const COMMENTS_PREFIX: &[u8] = b"o";

/// A comment.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CommentRecord {
    /// Its text.
    pub text: String,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// The subject of a comment.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum CommentSubjectKey {
    /// A table, view, sequence or index, by its number.
    Relation(u32),
    /// The index of the primary key of a table.
    PrimaryKey(u32),
    /// A column of a table or view, by position.
    Column(u32, u32),
    /// A constraint of a table or domain, by name.
    Constraint(u32, String),
    /// A trigger of a table, by name.
    Trigger(u32, String),
    /// A policy of a table, by name.
    Policy(u32, String),
    /// A schema, by its number.
    Schema(u32),
    /// A user-defined type, by its number.
    Type(u32),
    /// A function, by its number.
    Function(u32),
    /// A database, by its number.
    Database(u32),
    /// A role, by its number.
    Role(u32),
    /// An extension, by its number and the number of its schema: the row also records that it was
    /// created ([`extension`](super::extension)).
    Extension(u32, u32),
}

impl CommentSubjectKey {
    /// Returns the key of the row with the comment.
    pub fn key(&self) -> Vec<u8> {
        let (kind, number, rest) = match self {
            CommentSubjectKey::Relation(number) => (b'r', number, Vec::new()),
            CommentSubjectKey::PrimaryKey(number) => (b'k', number, Vec::new()),
            CommentSubjectKey::Column(number, column) => {
                (b'c', number, column.to_be_bytes().to_vec())
            }
            CommentSubjectKey::Constraint(number, name) => (b'n', number, name.as_bytes().to_vec()),
            CommentSubjectKey::Trigger(number, name) => (b't', number, name.as_bytes().to_vec()),
            CommentSubjectKey::Policy(number, name) => (b'p', number, name.as_bytes().to_vec()),
            CommentSubjectKey::Schema(number) => (b'h', number, Vec::new()),
            CommentSubjectKey::Type(number) => (b'e', number, Vec::new()),
            CommentSubjectKey::Function(number) => (b'f', number, Vec::new()),
            CommentSubjectKey::Database(number) => (b'd', number, Vec::new()),
            CommentSubjectKey::Role(number) => (b'g', number, Vec::new()),
            CommentSubjectKey::Extension(number, schema) => {
                (b'x', number, schema.to_be_bytes().to_vec())
            }
        };
        [COMMENTS_PREFIX, &[kind], &number.to_be_bytes(), &rest].concat()
    }

    /// Returns the subject of a key without its prefix.
    ///
    /// # Errors
    ///
    /// XX001 if the key is damaged.
    pub fn of_key(key: &[u8]) -> Result<CommentSubjectKey> {
        let damaged = || err!(DATA_CORRUPTED: "damaged key of a comment");
        let (kind, rest) = key.split_first().ok_or_else(damaged)?;
        let (number, rest) = rest.split_first_chunk().ok_or_else(damaged)?;
        let number = u32::from_be_bytes(*number);
        Ok(match kind {
            b'r' => CommentSubjectKey::Relation(number),
            b'k' => CommentSubjectKey::PrimaryKey(number),
            b'c' => {
                let column = rest.try_into().map_err(|_| damaged())?;
                CommentSubjectKey::Column(number, u32::from_be_bytes(column))
            }
            b'n' => {
                let name = String::from_utf8(rest.to_vec()).map_err(|_| damaged())?;
                CommentSubjectKey::Constraint(number, name)
            }
            b't' => {
                let name = String::from_utf8(rest.to_vec()).map_err(|_| damaged())?;
                CommentSubjectKey::Trigger(number, name)
            }
            b'p' => {
                let name = String::from_utf8(rest.to_vec()).map_err(|_| damaged())?;
                CommentSubjectKey::Policy(number, name)
            }
            b'h' => CommentSubjectKey::Schema(number),
            b'e' => CommentSubjectKey::Type(number),
            b'f' => CommentSubjectKey::Function(number),
            // Builds with one database wrote the number 0.
            b'd' if number == 0 => CommentSubjectKey::Database(DEFAULT_DATABASE),
            b'd' => CommentSubjectKey::Database(number),
            b'g' => CommentSubjectKey::Role(number),
            b'x' => {
                let schema = rest.try_into().map_err(|_| damaged())?;
                CommentSubjectKey::Extension(number, u32::from_be_bytes(schema))
            }
            _ => return Err(damaged()),
        })
    }

    /// Returns whether it is a relation or a part of it.
    pub fn is_of(&self, relation: u32) -> bool {
        match self {
            CommentSubjectKey::Relation(number)
            | CommentSubjectKey::PrimaryKey(number)
            | CommentSubjectKey::Column(number, _)
            | CommentSubjectKey::Trigger(number, _)
            | CommentSubjectKey::Policy(number, _)
            | CommentSubjectKey::Constraint(number, _) => *number == relation,
            CommentSubjectKey::Schema(_)
            | CommentSubjectKey::Type(_)
            | CommentSubjectKey::Function(_)
            | CommentSubjectKey::Database(_)
            | CommentSubjectKey::Role(_)
            | CommentSubjectKey::Extension(..) => false,
        }
    }
}
