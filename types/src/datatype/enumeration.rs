//! Enums: user-defined types with a list of labels.
//!
//! A value is the rank of its label, which never changes when labels are added before or after
//! it, so that stored rows and keys remain valid and sort in label order. A label inserted
//! between two others gets a rank between theirs.
//!
//! A definition is immutable: a changed enum is a new definition with the same OID. Definitions
//! are interned for the lifetime of the process, so that [`DataType`] remains a plain value.

use std::cmp::Ordering;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, Mutex, PoisonError};

use ahash::AHashMap;

use super::{DataType, registry};
use crate::error::{Error, Result};

/// Distance between the ranks of labels that are added at the end.
const STEP: i64 = 1 << 40;

/// One value of an enum.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Label {
    /// Its sort position.
    pub rank: i64,
    /// Its own OID.
    pub oid: u32,
    /// Its text.
    pub name: Arc<str>,
}

/// The definition of an enum.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct EnumDefinition {
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
    /// The labels, by rank.
    pub labels: Vec<Label>,
}

/// An enum. Two are the same type if they have the same OID.
pub struct EnumType {
    definition: EnumDefinition,
    array_name: String,
    internal_array_name: String,
    registered: registry::TypeRegistration,
}

static KNOWN: LazyLock<Mutex<AHashMap<EnumDefinition, &'static EnumType>>> =
    LazyLock::new(Mutex::default);

impl fmt::Debug for EnumType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "enum {}", self.definition.oid)
    }
}

impl PartialEq for EnumType {
    fn eq(&self, other: &EnumType) -> bool {
        self.definition.oid == other.definition.oid
    }
}

impl Eq for EnumType {}

impl Hash for EnumType {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.definition.oid.hash(state);
    }
}

impl PartialOrd for EnumType {
    fn partial_cmp(&self, other: &EnumType) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for EnumType {
    fn cmp(&self, other: &EnumType) -> Ordering {
        self.definition.oid.cmp(&other.definition.oid)
    }
}

impl EnumType {
    /// Returns the interned type of a definition.
    pub fn of(definition: EnumDefinition) -> &'static EnumType {
        let mut known = KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(found) = known.get(&definition) {
            return found;
        }
        let made: &'static EnumType = Box::leak(Box::new(EnumType {
            array_name: format!("{}[]", definition.shown),
            internal_array_name: format!("_{}", definition.name),
            registered: registry::TypeRegistration::default(),
            definition: definition.clone(),
        }));
        made.registered.register(DataType::Enum(made));
        known.insert(definition, made);
        made
    }

    /// Returns the definition.
    pub fn definition(&self) -> &EnumDefinition {
        &self.definition
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

    /// Returns the label of a value; `None` for an invalid rank, which only corruption can cause.
    pub fn name_of(&self, rank: i64) -> Option<&Arc<str>> {
        let labels = &self.definition.labels;
        let at = labels.binary_search_by_key(&rank, |label| label.rank).ok()?;
        Some(&labels[at].name)
    }

    /// Returns the value of a label.
    ///
    /// # Errors
    ///
    /// 22P02 if there is no such label.
    pub fn parse(&self, text: &str) -> Result<i64> {
        let found = self.definition.labels.iter().find(|label| *label.name == *text);
        found.map(|label| label.rank).ok_or_else(|| {
            let name = &self.definition.shown;
            err!(INVALID_TEXT_REPRESENTATION: "invalid input value for enum {name}: \"{text}\"";
                with_type_mention self.definition.oid, name)
        })
    }
}

/// Returns the rank of a new label between two others, `None` for the ends.
///
/// # Errors
///
/// 54000 if there is no rank between them: after some 40 labels in one place.
pub fn rank_between(before: Option<i64>, after: Option<i64>) -> Result<i64> {
    let rank = match (before, after) {
        (None, None) => Some(0),
        (Some(before), None) => before.checked_add(STEP),
        (None, Some(after)) => after.checked_sub(STEP),
        (Some(before), Some(after)) => {
            let middle = before.midpoint(after);
            (middle != before && middle != after).then_some(middle)
        }
    };
    rank.ok_or_else(|| {
        err!(PROGRAM_LIMIT_EXCEEDED: "too many labels were added at this position of the enum";
            hint "Create another type, and change the columns to it.")
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn definition(labels: &[(&str, i64)]) -> EnumDefinition {
        let label =
            |(name, rank): &(&str, i64)| Label { rank: *rank, oid: 0, name: (*name).into() };
        EnumDefinition {
            oid: 99_000,
            array_oid: 99_001,
            schema: "public".to_owned(),
            name: "mood".to_owned(),
            shown: "mood".to_owned(),
            labels: labels.iter().map(label).collect(),
        }
    }

    #[test]
    fn enum_labels_are_found_by_text_and_rank() {
        let mood = EnumType::of(definition(&[("sad", 0), ("ok", 7), ("happy", 9)]));
        assert_eq!(mood.parse("ok").unwrap(), 7);
        assert_eq!(mood.name_of(9).map(|name| &**name), Some("happy"));
        assert_eq!(mood.name_of(8), None);
        let error = mood.parse("OK").unwrap_err();
        assert_eq!(
            (error.sqlstate, error.message.as_str()),
            ("22P02", "invalid input value for enum mood: \"OK\"")
        );
    }

    #[test]
    fn equal_enum_definitions_are_interned() {
        let first = EnumType::of(definition(&[("a", 0)]));
        assert!(std::ptr::eq(first, EnumType::of(definition(&[("a", 0)]))));
        let changed = EnumType::of(definition(&[("a", 0), ("b", 1)]));
        assert!(!std::ptr::eq(first, changed));
        assert_eq!(DataType::Enum(first), DataType::Enum(changed));
        assert_eq!(first.array().element(), Some(DataType::Enum(first)));
    }

    #[test]
    fn enum_ranks_leave_room_for_new_labels() {
        let (first, last) =
            (rank_between(None, None).unwrap(), rank_between(Some(0), None).unwrap());
        assert!(rank_between(None, Some(first)).unwrap() < first && first < last);
        let mut high = last;
        let mut added = 0;
        while let Ok(rank) = rank_between(Some(first), Some(high)) {
            assert!(first < rank && rank < high);
            high = rank;
            added += 1;
        }
        assert!(added >= 39, "{added}");
    }
}
