//! Base types that users define: a name, OIDs, and the values of a built-in type.
//!
//! A value is one of the type that its functions for input and output are of, which is what it is
//! held, stored and written as. Operators, casts and an order it has none of.
//!
//! A definition does not change, as that of an [enum](super::enumeration) does not.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{LazyLock, Mutex, PoisonError};

use ahash::AHashMap;

use super::{DataType, registry};

/// What a base type is made of.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct BaseDefinition {
    /// OID of the type.
    pub oid: u32,
    /// OID of the type of its arrays.
    pub array_oid: u32,
    /// The schema.
    pub schema: String,
    /// The name in the schema.
    pub name: String,
    /// The name as SQL text has it.
    pub shown: String,
    /// The built-in type whose values it has; `void` as long as it is a shell.
    pub held: DataType,
    /// What stands between the elements of arrays.
    pub delimiter: char,
}

/// A base type. Two are the same type if they have the same OID.
pub struct BaseType {
    definition: BaseDefinition,
    array_name: String,
    internal_array_name: String,
    registered: registry::Registered,
}

static KNOWN: LazyLock<Mutex<AHashMap<BaseDefinition, &'static BaseType>>> =
    LazyLock::new(Mutex::default);

impl fmt::Debug for BaseType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "base {}", self.definition.oid)
    }
}

impl PartialEq for BaseType {
    fn eq(&self, other: &BaseType) -> bool {
        self.definition.oid == other.definition.oid
    }
}

impl Eq for BaseType {}

impl Hash for BaseType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.oid.hash(state);
    }
}

impl PartialOrd for BaseType {
    fn partial_cmp(&self, other: &BaseType) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for BaseType {
    fn cmp(&self, other: &BaseType) -> Ordering {
        self.definition.oid.cmp(&other.definition.oid)
    }
}

impl BaseType {
    /// Returns the type of a definition.
    pub fn of(definition: BaseDefinition) -> &'static BaseType {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(&definition) {
            return found;
        }
        let made: &'static BaseType = Box::leak(Box::new(BaseType {
            array_name: format!("{}[]", definition.shown),
            internal_array_name: format!("_{}", definition.name),
            registered: registry::Registered::default(),
            definition: definition.clone(),
        }));
        made.registered.register(DataType::Base(made));
        known.insert(definition, made);
        made
    }

    /// Returns what it is made of.
    pub fn definition(&self) -> &BaseDefinition {
        &self.definition
    }

    /// Returns the built-in type whose values it has.
    #[inline]
    pub const fn held(&self) -> DataType {
        self.definition.held
    }

    /// Returns the type of its arrays.
    pub fn array(&'static self) -> DataType {
        DataType::Array(self.registered.element())
    }

    pub(super) fn registered(&self) -> &registry::Registered {
        &self.registered
    }

    /// Returns the name of its arrays as SQL text has it, and as `pg_type` has it.
    pub(crate) fn array_names(&self) -> (&str, &str) {
        (&self.array_name, &self.internal_array_name)
    }
}
