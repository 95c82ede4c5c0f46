//! `jsonb`: a decomposed JSON value.
//!
//! Keys of an object are unique (the last one wins) and sorted in PostgreSQL's storage order: by
//! length, then byte by byte. Numbers are numerics and retain their scale, which comparisons
//! ignore.

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use super::Text;
use crate::error::Result;
use crate::interrupt;
use crate::interruptible::{CHUNK_BYTES, InterruptPacer};
use crate::numeric::Numeric;

/// Maximum nesting depth, which bounds the stack of recursive functions.
pub const MAX_JSON_DEPTH: usize = 1_000;

/// A JSON value.
#[derive(Debug, Clone, PartialEq)]
pub enum Json {
    /// `null`
    Null,
    /// A string.
    String(Text),
    /// A number; neither NaN nor infinite.
    Number(Numeric),
    /// `true` or `false`
    Bool(bool),
    /// An array.
    Array(Vec<Json>),
    /// An object, sorted by [`compare_keys`], with unique keys.
    Object(Vec<(Arc<str>, Json)>),
}

/// Compares keys of objects by length, then byte by byte.
pub(super) fn compare_keys(left: &[u8], right: &[u8]) -> Ordering {
    (left.len().cmp(&right.len())).then_with(|| left.cmp(right))
}

fn first_unequal(mut orderings: impl Iterator<Item = Result<Ordering>>) -> Result<Ordering> {
    orderings.find(|ordering| *ordering != Ok(Ordering::Equal)).unwrap_or(Ok(Ordering::Equal))
}

impl Json {
    /// Creates an object of these pairs; of equal keys the last one wins.
    pub fn object(pairs: Vec<(Arc<str>, Json)>) -> Json {
        Json::object_at(pairs, &mut InterruptPacer::without_interrupt())
            .expect("there is no flag to be set")
    }

    /// Creates an object as [`Json::object`] does.
    ///
    /// # Errors
    ///
    /// `57014` if the interrupt flag is set.
    pub fn object_at(
        mut pairs: Vec<(Arc<str>, Json)>,
        pace: &mut InterruptPacer<'_>,
    ) -> Result<Json> {
        if pairs.len() * size_of::<(Arc<str>, Json)>() < CHUNK_BYTES {
            pairs.sort_by(|(left, _), (right, _)| compare_keys(left.as_bytes(), right.as_bytes()));
            pairs.reverse();
            pairs.dedup_by(|later, kept| later.0 == kept.0);
            pairs.reverse();
            return Ok(Json::Object(pairs));
        }
        let order = interrupt::sort((0..pairs.len()).collect(), pace.interrupt(), |a, b| {
            compare_keys(pairs[*a].0.as_bytes(), pairs[*b].0.as_bytes()).then(a.cmp(b))
        })?;
        let mut pairs: Vec<Option<(Arc<str>, Json)>> = pairs.into_iter().map(Some).collect();
        let mut kept: Vec<(Arc<str>, Json)> = Vec::with_capacity(pairs.len());
        for pair in order.into_iter().filter_map(|index| pairs[index].take()) {
            match kept.last_mut() {
                Some(last) if last.0 == pair.0 => *last = pair,
                _ => kept.push(pair),
            }
            pace.count_steps(size_of::<(Arc<str>, Json)>())?;
        }
        Ok(Json::Object(kept))
    }

    /// Returns a copy.
    ///
    /// # Errors
    ///
    /// `57014` if the interrupt flag is set.
    pub fn copy(&self, pace: &mut InterruptPacer<'_>) -> Result<Json> {
        pace.count_steps(size_of::<Json>())?;
        Ok(match self {
            Json::Array(elements) => {
                let mut copies = Vec::with_capacity(elements.len());
                for element in elements {
                    copies.push(element.copy(pace)?);
                }
                Json::Array(copies)
            }
            Json::Object(pairs) => {
                let mut copies = Vec::with_capacity(pairs.len());
                for (key, value) in pairs {
                    copies.push((Arc::clone(key), value.copy(pace)?));
                }
                Json::Object(copies)
            }
            scalar => scalar.clone(),
        })
    }

    /// Returns the value of a key; `None` if this is not an object or has no such key.
    pub fn get(&self, key: &str) -> Option<&Json> {
        let Json::Object(pairs) = self else { return None };
        let found =
            pairs.binary_search_by(|(name, _)| compare_keys(name.as_bytes(), key.as_bytes()));
        found.ok().map(|index| &pairs[index].1)
    }

    /// Returns an element by its index, from 0, or from the end if it is negative; `None` if this
    /// is not an array or has no such element.
    pub fn element(&self, index: i64) -> Option<&Json> {
        let Json::Array(elements) = self else { return None };
        let index = if index < 0 { index + elements.len() as i64 } else { index };
        usize::try_from(index).ok().and_then(|index| elements.get(index))
    }

    /// Compares in the order of PostgreSQL's `jsonb`: object, array, boolean, number, string, null;
    /// arrays and objects by size first.
    pub fn compare(&self, other: &Json) -> Ordering {
        self.compare_at(other, &mut InterruptPacer::without_interrupt())
            .expect("there is no flag to be set")
    }

    /// Compares as [`Json::compare`] does.
    ///
    /// # Errors
    ///
    /// `57014` if the interrupt flag is set.
    pub fn compare_at(&self, other: &Json, pace: &mut InterruptPacer<'_>) -> Result<Ordering> {
        Ok(match (self, other) {
            // For historical reasons an empty array at the top level sorts before everything.
            (Json::Array(a), Json::Array(b)) if a.is_empty() || b.is_empty() => {
                a.len().cmp(&b.len())
            }
            (Json::Array(a), other) if a.is_empty() && !other.is_container() => Ordering::Less,
            (other, Json::Array(b)) if b.is_empty() && !other.is_container() => Ordering::Greater,
            _ => self.compare_within(other, pace)?,
        })
    }

    fn compare_within(&self, other: &Json, pace: &mut InterruptPacer<'_>) -> Result<Ordering> {
        pace.count_steps(size_of::<Json>())?;
        match (self, other) {
            (Json::String(a), Json::String(b)) => Ok(a.as_bytes().cmp(b.as_bytes())),
            (Json::Number(a), Json::Number(b)) => Ok(a.cmp(b)),
            (Json::Bool(a), Json::Bool(b)) => Ok(a.cmp(b)),
            (Json::Array(a), Json::Array(b)) if a.len() == b.len() => {
                first_unequal(a.iter().zip(b).map(|(a, b)| a.compare_within(b, pace)))
            }
            (Json::Object(a), Json::Object(b)) if a.len() == b.len() => first_unequal(
                a.iter().zip(b).map(|(a, b)| match a.0.as_bytes().cmp(b.0.as_bytes()) {
                    Ordering::Equal => a.1.compare_within(&b.1, pace),
                    unequal => Ok(unequal),
                }),
            ),
            (Json::Array(a), Json::Array(b)) => Ok(a.len().cmp(&b.len())),
            (Json::Object(a), Json::Object(b)) => Ok(a.len().cmp(&b.len())),
            _ => Ok(self.rank().cmp(&other.rank())),
        }
    }

    /// Returns the maximum nesting depth of arrays and objects.
    pub fn depth(&self) -> usize {
        match self {
            Json::Array(elements) => 1 + elements.iter().map(Json::depth).max().unwrap_or(0),
            Json::Object(pairs) => {
                1 + pairs.iter().map(|(_, value)| value.depth()).max().unwrap_or(0)
            }
            _ => 0,
        }
    }

    /// Returns whether this is an array or an object.
    pub fn is_container(&self) -> bool {
        matches!(self, Json::Array(_) | Json::Object(_))
    }

    pub(super) fn hash_into(&self, state: &mut impl Hasher) {
        state.write_u8(self.rank());
        match self {
            Json::Null => {}
            Json::String(text) => text.hash(state),
            Json::Number(number) => number.hash(state),
            Json::Bool(value) => value.hash(state),
            Json::Array(elements) => elements.iter().for_each(|one| one.hash_into(state)),
            Json::Object(pairs) => pairs.iter().for_each(|(key, value)| {
                key.hash(state);
                value.hash_into(state);
            }),
        }
    }

    /// Returns the approximate bytes held.
    pub(crate) fn heap_bytes(&self) -> usize {
        let within = match self {
            Json::String(text) => text.len() + 16,
            Json::Number(number) => number.heap_bytes(),
            Json::Array(elements) => elements.iter().map(Json::heap_bytes).sum(),
            Json::Object(pairs) => {
                pairs.iter().map(|(key, value)| key.len() + 32 + value.heap_bytes()).sum()
            }
            Json::Null | Json::Bool(_) => 0,
        };
        within + size_of::<Json>()
    }

    fn rank(&self) -> u8 {
        match self {
            Json::Null => 0,
            Json::String(_) => 1,
            Json::Number(_) => 2,
            Json::Bool(_) => 3,
            Json::Array(_) => 4,
            Json::Object(_) => 5,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn object_keys_are_unique_and_sorted_by_length() {
        let pair = |key: &str, value: i64| (Arc::from(key), Json::Number(value.into()));
        let object = Json::object(vec![pair("bb", 1), pair("c", 2), pair("bb", 3), pair("a", 4)]);
        assert_eq!(object, Json::Object(vec![pair("a", 4), pair("c", 2), pair("bb", 3)]));
        assert_eq!(object.get("bb"), Some(&Json::Number(3.into())));
        assert_eq!(object.get("b"), None);
    }
}
