//! Composite types: user-defined row types, and the row types of tables and views.
//!
//! A value is a record. It is stored by attribute numbers, which never change, so that stored
//! values remain valid when attributes are added and dropped.
//!
//! A definition is immutable, like that of an enum. Equal definitions, including the types of
//! their attributes, are interned for the lifetime of the process.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use ahash::AHashMap;

use super::{DataType, SqlType, registry};

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

/// The definition of a composite type.
#[derive(Debug, Clone)]
pub struct CompositeDefinition {
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
    /// The attributes, by number.
    pub attributes: Vec<Attribute>,
}

/// A composite type. Two are the same type if they have the same OID.
pub struct CompositeType {
    definition: CompositeDefinition,
    fields: Fields,
    array_name: String,
    internal_array_name: String,
    registered: registry::TypeRegistration,
}

/// Interned types by definition.
static KNOWN: LazyLock<Mutex<AHashMap<String, &'static CompositeType>>> =
    LazyLock::new(Mutex::default);

impl fmt::Debug for CompositeType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "composite {}", self.definition.oid)
    }
}

impl PartialEq for CompositeType {
    fn eq(&self, other: &CompositeType) -> bool {
        self.definition.oid == other.definition.oid
    }
}

impl Eq for CompositeType {}

impl Hash for CompositeType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.oid.hash(state);
    }
}

impl PartialOrd for CompositeType {
    fn partial_cmp(&self, other: &CompositeType) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for CompositeType {
    fn cmp(&self, other: &CompositeType) -> Ordering {
        self.definition.oid.cmp(&other.definition.oid)
    }
}

impl CompositeType {
    /// Returns the interned type of a definition.
    pub fn of(definition: CompositeDefinition) -> &'static CompositeType {
        // Attribute types compare equal by OID; the key also has their definitions.
        let attributes = definition.attributes.iter();
        let made_of: Vec<u32> = attributes.map(|one| one.sql_type.base.registered_oid()).collect();
        let key = format!("{definition:?} {made_of:?}");
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(&key) {
            return found;
        }
        let field = |one: &Attribute| (Arc::clone(&one.name), one.sql_type.base);
        let made: &'static CompositeType = Box::leak(Box::new(CompositeType {
            fields: definition.attributes.iter().map(field).collect(),
            array_name: format!("{}[]", definition.shown),
            internal_array_name: format!("_{}", definition.name),
            registered: registry::TypeRegistration::default(),
            definition,
        }));
        made.registered.register(DataType::Composite(made));
        known.insert(key, made);
        made
    }

    /// Returns the definition.
    pub fn definition(&self) -> &CompositeDefinition {
        &self.definition
    }

    /// Returns names and types of its attributes.
    pub fn fields(&self) -> &Fields {
        &self.fields
    }

    /// Returns the attributes.
    pub fn attributes(&self) -> &[Attribute] {
        &self.definition.attributes
    }

    /// Returns its array type.
    pub fn array(&'static self) -> DataType {
        DataType::Array(self.registered.element())
    }

    pub(super) fn registered(&self) -> &registry::TypeRegistration {
        &self.registered
    }

    /// Returns the name of its array type as shown in SQL text, and as in `pg_type`.
    pub(crate) fn array_names(&self) -> (&str, &str) {
        (&self.array_name, &self.internal_array_name)
    }

    /// Returns whether an attribute, at any depth, has a domain type.
    pub fn has_domains(&self) -> bool {
        self.attributes().iter().any(|one| {
            let base = one.sql_type.base.element().unwrap_or(one.sql_type.base);
            let inner = matches!(base, DataType::Composite(of) if of.has_domains());
            one.sql_type.domain.is_some() || inner
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::enumeration::{EnumDefinition, EnumType, Label};
    use super::*;

    fn mood(labels: &[&str]) -> DataType {
        let label = |(rank, name): (i64, &&str)| Label { rank, oid: 0, name: (**name).into() };
        DataType::Enum(EnumType::of(EnumDefinition {
            oid: 97_000,
            array_oid: 97_001,
            schema: "public".to_owned(),
            name: "mood".to_owned(),
            shown: "mood".to_owned(),
            labels: (0..).zip(labels).map(label).collect(),
        }))
    }

    fn pair(second: DataType) -> &'static CompositeType {
        let attribute = |(number, (name, base)): (usize, (&str, DataType))| Attribute {
            name: name.into(),
            sql_type: base.into(),
            number,
        };
        let attributes = [("a", DataType::Int4), ("b", second)];
        CompositeType::of(CompositeDefinition {
            oid: 97_002,
            array_oid: 97_003,
            schema: "public".to_owned(),
            name: "pair".to_owned(),
            shown: "pair".to_owned(),
            attributes: attributes.into_iter().enumerate().map(attribute).collect(),
        })
    }

    #[test]
    fn equal_composite_definitions_are_interned() {
        let first = pair(mood(&["sad"]));
        assert!(std::ptr::eq(first, pair(mood(&["sad"]))));
        let changed = pair(mood(&["sad", "ok"]));
        assert!(!std::ptr::eq(first, changed));
        assert_eq!(first, changed);
        assert_eq!(first.array().element(), Some(DataType::Composite(first)));
        assert_eq!(first.array().sql_name(), "pair[]");
    }

    #[test]
    fn registered_types_are_found_by_oid() {
        let of = pair(DataType::Text);
        for data_type in [DataType::Composite(of), of.array(), DataType::Int4, mood(&["x"])] {
            let found = DataType::from_registered_oid(data_type.registered_oid());
            assert_eq!(found, Some(data_type));
        }
        assert_eq!(DataType::from_registered_oid(u32::MAX), None);
    }
}
