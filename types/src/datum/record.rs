//! Records: rows as values, of anonymous row types and of composite ones.

use std::cmp::Ordering;
use std::hash::Hasher;
use std::sync::Arc;

use super::Datum;
use crate::datatype::composite::CompositeType;
pub use crate::datatype::composite::Fields;

/// A record. It brings its fields along, because the type `record` says nothing of them.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The composite type that it is of; `None` for one of type `record`.
    pub of: Option<&'static CompositeType>,
    /// The fields.
    pub fields: Fields,
    /// A value for each; of a description of fields none.
    pub values: Vec<Datum>,
}

impl Record {
    /// Returns a value of a composite type.
    pub fn of_type(of: &'static CompositeType, values: Vec<Datum>) -> Record {
        Record { of: Some(of), fields: Arc::clone(of.fields()), values }
    }

    /// Compares field by field, then by number, as PostgreSQL's `record_cmp` does. Fields of
    /// different types are refused before.
    pub fn compare(&self, other: &Record) -> Ordering {
        let pairs = self.values.iter().zip(&other.values).zip(self.fields.iter());
        let mut orderings = pairs.map(|((a, b), (_, data_type))| a.compare_typed(b, *data_type));
        orderings
            .find(|ordering| ordering.is_ne())
            .unwrap_or_else(|| self.values.len().cmp(&other.values.len()))
    }

    pub(super) fn hash_into(&self, state: &mut impl Hasher) {
        state.write_usize(self.values.len());
        for (value, (_, data_type)) in self.values.iter().zip(self.fields.iter()) {
            value.hash_typed(*data_type, state);
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let values: usize = self.values.iter().map(Datum::heap_bytes).sum();
        values + self.values.len() * size_of::<Datum>() + 64
    }
}
