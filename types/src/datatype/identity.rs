//! Identity of user-defined types: their OIDs and names.
//!
//! A type is immutable and shared by the catalog snapshots that have it and by the plans and values
//! that use it; the last of these frees it. A changed type is a new one with the same OID. Two are
//! the same type if they have the same OID.

/// OIDs and names of a user-defined type.
#[derive(Debug, Clone)]
pub struct TypeIdentity {
    /// OID of the type.
    pub oid: u32,
    /// OID of its array type.
    pub array_oid: u32,
    /// The schema.
    pub schema: String,
    /// The name in the schema.
    pub name: String,
    /// The name as shown in SQL text.
    pub shown: String,
    /// The name of the array type as shown in SQL text.
    pub(super) shown_array: String,
    /// The name of the array type in `pg_type`.
    pub(super) array_name: String,
}

impl TypeIdentity {
    /// Returns the identity of a type with these OIDs of itself and of its array type, and with
    /// this schema and name.
    pub fn new(
        (oid, array_oid): (u32, u32),
        (schema, name): (&str, &str),
        shown: String,
    ) -> TypeIdentity {
        TypeIdentity {
            oid,
            array_oid,
            schema: schema.to_owned(),
            name: name.to_owned(),
            shown_array: format!("{shown}[]"),
            array_name: format!("_{name}"),
            shown,
        }
    }
}

/// Implements comparison, order, hash and [`std::fmt::Debug`] by the OID of [`TypeIdentity`].
macro_rules! identified_by_oid {
    ($type:ident, $noun:literal) => {
        impl $type {
            /// Returns its OIDs and names.
            pub fn identity(&self) -> &TypeIdentity {
                &self.identity
            }
        }

        impl std::fmt::Debug for $type {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                write!(f, concat!($noun, " {}"), self.identity.oid)
            }
        }

        impl PartialEq for $type {
            fn eq(&self, other: &$type) -> bool {
                self.identity.oid == other.identity.oid
            }
        }

        impl Eq for $type {}

        impl std::hash::Hash for $type {
            fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
                std::hash::Hash::hash(&self.identity.oid, state);
            }
        }

        impl PartialOrd for $type {
            fn partial_cmp(&self, other: &$type) -> Option<std::cmp::Ordering> {
                Some(self.cmp(other))
            }
        }

        impl Ord for $type {
            fn cmp(&self, other: &$type) -> std::cmp::Ordering {
                self.identity.oid.cmp(&other.identity.oid)
            }
        }
    };
}

pub(super) use identified_by_oid;
