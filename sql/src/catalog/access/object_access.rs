//! Owners and privileges of objects, as a property of each object that differs from the default.
//!
//! An object without a record belongs to the bootstrap superuser and has the default privileges;
//! schema `public` belongs to the owner of the database. The owner and the privileges of a database
//! are in its own record, which all catalogs have.

use store::codec::tagged::UnknownFields;

use crate::catalog::access::privilege::{self, Acl, AclRecord, PrivilegeKind};
use crate::error::{Error, Result};

/// The key prefix of owners and privileges.
pub const ACCESS_PREFIX: &[u8] = b"k";

/// The subject of an [`AccessRecord`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum AccessSubject {
    /// A table, view or sequence, by its number.
    Relation(u32),
    /// A schema, by its number.
    Schema(u32),
    /// A user-defined type, by its number.
    Type(u32),
    /// A function, by its number.
    Function(u32),
    /// A database, by its number.
    Database(u32),
    /// The privileges of objects that are created later.
    Future(FutureSubject),
}

/// The subject of `ALTER DEFAULT PRIVILEGES`, whose record belongs to the role.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct FutureSubject {
    /// The number of the role that creates the objects.
    pub role: u32,
    /// The number of the schema that they are created in; 0 for all schemas.
    pub schema: u32,
    /// Their kind.
    pub kind: PrivilegeKind,
}

/// The owner and the privileges of an object.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct AccessRecord {
    /// The number of its owner.
    pub owner: u32,
    /// Its privileges; `None` for the default ones.
    pub acl: Option<Vec<AclRecord>>,
    /// The privileges on its columns, by position.
    pub columns: Vec<(u32, Vec<AclRecord>)>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

impl AccessSubject {
    /// Returns the number of the object, or of the schema of future objects; `None` for those of
    /// all schemas.
    pub fn number(self) -> Option<u32> {
        match self {
            AccessSubject::Relation(number) | AccessSubject::Schema(number) => Some(number),
            AccessSubject::Type(number) | AccessSubject::Function(number) => Some(number),
            AccessSubject::Database(number) => Some(number),
            AccessSubject::Future(FutureSubject { schema, .. }) => (schema != 0).then_some(schema),
        }
    }

    /// Returns the key of its row.
    pub fn key(self) -> Vec<u8> {
        let letter = match self {
            AccessSubject::Relation(_) => b'r',
            AccessSubject::Schema(_) => b'h',
            AccessSubject::Type(_) => b'e',
            AccessSubject::Function(_) => b'f',
            AccessSubject::Database(_) => b'd',
            AccessSubject::Future(_) => b'n',
        };
        let number = self.number().unwrap_or(0).to_be_bytes();
        let AccessSubject::Future(future) = self else {
            return [ACCESS_PREFIX, &[letter], &number].concat();
        };
        let kind = [future.kind.descriptor().letter as u8];
        [ACCESS_PREFIX, &[letter], &number, &future.role.to_be_bytes(), &kind].concat()
    }

    /// Returns the subject of a key without its prefix.
    ///
    /// # Errors
    ///
    /// XX001 if the key is damaged; 0A000 for the privileges of a database, which earlier builds
    /// stored here.
    pub fn of_key(key: &[u8]) -> Result<AccessSubject> {
        if let [b'd', 0, 0, 0, 0] = key {
            return Err(Error::not_supported(
                "the row of GRANT ON DATABASE of an earlier build",
                "Dump the database with the build that wrote it, and restore the dump into a new \
                 directory.",
            ));
        }
        let found = key.split_first().and_then(|(letter, rest)| {
            let (number, rest) = rest.split_first_chunk()?;
            let number = u32::from_be_bytes(*number);
            Some(match (letter, rest) {
                (b'r', []) => AccessSubject::Relation(number),
                (b'h', []) => AccessSubject::Schema(number),
                (b'e', []) => AccessSubject::Type(number),
                (b'f', []) => AccessSubject::Function(number),
                (b'n', [role @ .., kind]) => AccessSubject::Future(FutureSubject {
                    role: u32::from_be_bytes(role.try_into().ok()?),
                    schema: number,
                    kind: PrivilegeKind::of_letter(char::from(*kind))?,
                }),
                _ => return None,
            })
        });
        found.ok_or_else(|| err!(DATA_CORRUPTED: "damaged key of privileges in the catalog"))
    }
}

impl AccessRecord {
    /// Returns the list of privileges of an object of a kind.
    pub fn acl(&self, kind: PrivilegeKind) -> Acl {
        match &self.acl {
            Some(items) => Acl(items.clone()),
            None => Acl::default_of(kind, self.owner),
        }
    }

    /// Returns the list of privileges of a column.
    pub fn column(&self, position: usize) -> Acl {
        let found = self.columns.iter().find(|(at, _)| *at as usize == position);
        Acl(found.map(|(_, items)| items.clone()).unwrap_or_default())
    }

    /// Sets the list of privileges of a column.
    pub fn set_column(&mut self, position: usize, acl: Acl) {
        self.columns.retain(|(at, _)| *at as usize != position);
        if !acl.0.is_empty() {
            self.columns.push((position as u32, acl.0));
            self.columns.sort_by_key(|(at, _)| *at);
        }
    }

    /// Returns the numbers of the roles that it refers to.
    pub fn roles(&self) -> impl Iterator<Item = u32> {
        let of_columns = self.columns.iter().flat_map(|(_, items)| items);
        let items = self.acl.iter().flatten().chain(of_columns);
        let named = items.flat_map(|item| [item.grantee, item.grantor]);
        let named = named.filter(|role| *role != privilege::PUBLIC_ROLE);
        std::iter::once(self.owner).chain(named)
    }
}
