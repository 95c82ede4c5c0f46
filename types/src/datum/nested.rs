//! Values made of values: arrays, `json` and `jsonb`.
//!
//! One variant of [`Datum`](crate::Datum) and of vectors for all of them: they are compared,
//! hashed, copied and stored one by one, behind a pointer.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::array::Array;
use super::json::Json;
use crate::datatype::DataType;

/// A value made of values. Cheap to clone.
#[derive(Debug, Clone, PartialEq)]
pub enum Nested {
    /// An array of any type.
    Array(Arc<Array>),
    /// `json`: its text, which is valid.
    Json(Arc<String>),
    /// `jsonb`
    Jsonb(Arc<Json>),
}

const _: () = assert!(size_of::<Nested>() == 16);

impl Default for Nested {
    /// Returns what stands at NULL positions of vectors.
    fn default() -> Nested {
        Nested::Array(Arc::new(Array::default()))
    }
}

impl Nested {
    /// Returns whether the value is of the representation of a type.
    pub fn fits(&self, data_type: DataType) -> bool {
        match self {
            Nested::Array(array) => match data_type.element() {
                Some(element) => array.elements.iter().all(|value| value.fits(element)),
                None => false,
            },
            Nested::Json(_) => data_type == DataType::Json,
            Nested::Jsonb(_) => data_type == DataType::Jsonb,
        }
    }

    /// Compares in SQL's order. `json` has none there; here it is that of its text.
    pub fn compare(&self, other: &Nested, data_type: DataType) -> Ordering {
        match (self, other) {
            (Nested::Array(a), Nested::Array(b)) => {
                a.compare(b, data_type.element().unwrap_or(DataType::Unknown))
            }
            (Nested::Json(a), Nested::Json(b)) => a.cmp(b),
            (Nested::Jsonb(a), Nested::Jsonb(b)) => a.compare(b),
            _ => self.rank().cmp(&other.rank()),
        }
    }

    /// Feeds a hasher consistently with [`Nested::compare`].
    pub fn hash_into(&self, data_type: DataType, state: &mut impl Hasher) {
        match self {
            Nested::Array(array) => {
                array.hash_into(data_type.element().unwrap_or(DataType::Unknown), state);
            }
            Nested::Json(text) => text.hash(state),
            Nested::Jsonb(json) => json.hash_into(state),
        }
    }

    /// Returns the bytes held, about.
    pub fn heap_bytes(&self) -> usize {
        match self {
            Nested::Array(array) => array.heap_bytes(),
            Nested::Json(text) => text.len() + 40,
            Nested::Jsonb(json) => json.heap_bytes(),
        }
    }

    fn rank(&self) -> u8 {
        match self {
            Nested::Array(_) => 0,
            Nested::Json(_) => 1,
            Nested::Jsonb(_) => 2,
        }
    }
}
