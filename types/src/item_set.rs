//! Sets of constants, for `IN` and `= ANY`.
//!
//! Building the hash table of a long list costs more than looking up the values of a batch, so it
//! is built once per execution ([`ItemSets`]).

use std::any::Any;
use std::fmt;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use ahash::{AHashMap, AHashSet};

use crate::datatype::DataType;
use crate::datum::Datum;
use crate::vector::{Vector, VectorData};

/// Maximum number of items without a hash table.
const FEW: usize = 8;

/// The constants of a list, all of one type.
pub(crate) struct ItemSet {
    data_type: DataType,
    is_empty: bool,
    has_null: bool,
    items: Items,
}

/// The constants that are not NULL.
enum Items {
    /// Integers of any width, dates and timestamps.
    Integers(Set<i64>),
    Texts(Set<Box<[u8]>>),
    Others(Vec<Datum>),
}

enum Set<T> {
    Few(Vec<T>),
    Many(AHashSet<T>),
}

/// The sets of an execution, by the address of their list.
#[derive(Clone, Default)]
pub struct ItemSets(Arc<Mutex<AHashMap<usize, OwnedSet>>>);

/// A set with its list, which is retained so that its address is not reused.
struct OwnedSet {
    set: Arc<ItemSet>,
    _list: Arc<dyn Any + Send + Sync>,
}

impl ItemSets {
    /// Returns the set of a list, which `make` creates at the first use.
    pub(crate) fn of<L: Any + Send + Sync>(
        &self,
        list: &Arc<L>,
        make: impl FnOnce() -> ItemSet,
    ) -> Arc<ItemSet> {
        let address = Arc::as_ptr(list) as usize;
        if let Some(owned) = self.lock().get(&address) {
            return Arc::clone(&owned.set);
        }
        let set = Arc::new(make());
        let owned = OwnedSet { set: Arc::clone(&set), _list: Arc::clone(list) as _ };
        self.lock().insert(address, owned);
        set
    }

    fn lock(&self) -> MutexGuard<'_, AHashMap<usize, OwnedSet>> {
        let ItemSets(sets) = self;
        sets.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl fmt::Debug for ItemSets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemSets").finish_non_exhaustive()
    }
}

impl<T: Eq + std::hash::Hash> FromIterator<T> for Set<T> {
    fn from_iter<I: IntoIterator<Item = T>>(items: I) -> Set<T> {
        let items: Vec<T> = items.into_iter().collect();
        match items.len() > FEW {
            true => Set::Many(items.into_iter().collect()),
            false => Set::Few(items),
        }
    }
}

impl Set<i64> {
    fn contains(&self, value: i64) -> bool {
        match self {
            Set::Few(items) => items.contains(&value),
            Set::Many(items) => items.contains(&value),
        }
    }
}

impl Set<Box<[u8]>> {
    fn contains(&self, value: &[u8]) -> bool {
        match self {
            Set::Few(items) => items.iter().any(|item| **item == *value),
            Set::Many(items) => items.contains(value),
        }
    }
}

fn integer(item: &Datum) -> Option<i64> {
    match item {
        Datum::Int2(value) => Some(i64::from(*value)),
        Datum::Int4(value) | Datum::Date(value) => Some(i64::from(*value)),
        Datum::Int8(value) | Datum::Timestamp(value) | Datum::Timestamptz(value) => Some(*value),
        _ => None,
    }
}

/// Returns a text without trailing blanks.
#[inline]
pub(crate) fn trimmed(text: &[u8]) -> &[u8] {
    let end = text.iter().rposition(|byte| *byte != b' ').map_or(0, |last| last + 1);
    &text[..end]
}

/// Returns the part of a text that is significant in comparisons.
fn compared<'a>(text: &'a [u8], data_type: &DataType) -> &'a [u8] {
    match data_type {
        DataType::Char => trimmed(text),
        _ => text,
    }
}

impl ItemSet {
    /// Creates the set of constants of a type.
    pub(crate) fn new<'a>(
        items: impl IntoIterator<Item = &'a Datum>,
        data_type: &DataType,
    ) -> ItemSet {
        let (mut is_empty, mut has_null, mut known) = (true, false, Vec::new());
        for item in items {
            is_empty = false;
            match item {
                Datum::Null => has_null = true,
                item => known.push(item),
            }
        }
        let is_text = |item: &&Datum| matches!(item, Datum::Text(_));
        let items = if known.iter().all(|item| integer(item).is_some()) {
            Items::Integers(known.into_iter().filter_map(integer).collect())
        } else if known.iter().all(is_text) {
            let texts = known.into_iter().filter_map(|item| match item {
                Datum::Text(text) => Some(compared(text.as_bytes(), data_type).into()),
                _ => None,
            });
            Items::Texts(texts.collect())
        } else {
            Items::Others(known.into_iter().cloned().collect())
        };
        ItemSet { data_type: data_type.clone(), is_empty, has_null, items }
    }

    /// Returns for each value of a vector whether it is in the list, and the validity of the
    /// results.
    pub(crate) fn find(&self, vector: &Vector) -> (Vec<bool>, Option<Vec<bool>>) {
        let found = self.found(vector);
        let validity = match (&vector.validity, self.has_null) {
            _ if self.is_empty => None,
            (None, false) => None,
            (valid, has_null) => {
                let is_valid = |row: usize| valid.as_ref().is_none_or(|valid| valid[row]);
                let is_known =
                    |(row, found): (usize, &bool)| is_valid(row) && (*found || !has_null);
                Some(found.iter().enumerate().map(is_known).collect())
            }
        };
        (found, validity)
    }

    fn found(&self, vector: &Vector) -> Vec<bool> {
        match (&vector.data, &self.items) {
            (VectorData::Int2(values), Items::Integers(items)) => {
                values.iter().map(|value| items.contains(i64::from(*value))).collect()
            }
            (VectorData::Int4(values) | VectorData::Date(values), Items::Integers(items)) => {
                values.iter().map(|value| items.contains(i64::from(*value))).collect()
            }
            (
                VectorData::Int8(values)
                | VectorData::Timestamp(values)
                | VectorData::Timestamptz(values),
                Items::Integers(items),
            ) => values.iter().map(|value| items.contains(*value)).collect(),
            (VectorData::Text(values), Items::Texts(items)) => {
                let is_in = |row| items.contains(compared(values.get(row), &self.data_type));
                (0..values.len()).map(is_in).collect()
            }
            (_, Items::Others(items)) => {
                let is_in = |row| {
                    let value = vector.datum(row);
                    let is_it = |item: &Datum| value.compare_typed(item, &self.data_type).is_eq();
                    value != Datum::Null && items.iter().any(is_it)
                };
                (0..vector.len()).map(is_in).collect()
            }
            // A list that contains only NULL has no type.
            _ => vec![false; vector.len()],
        }
    }
}
