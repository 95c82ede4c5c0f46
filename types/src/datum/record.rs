//! Records: row values of type `record` and of composite types.

use std::cmp::Ordering;
use std::hash::Hasher;
use std::sync::Arc;

use super::Datum;
use crate::datatype::composite::CompositeType;
pub use crate::datatype::composite::Fields;

/// A record. It contains its field names and types, because the type `record` does not.
#[derive(Debug, Clone, PartialEq)]
pub struct Record {
    /// The composite type; `None` for type `record`.
    pub of: Option<Arc<CompositeType>>,
    /// The fields.
    pub fields: Fields,
    /// The values of the fields; empty for a description of fields.
    pub values: Vec<Datum>,
}

impl Record {
    /// Creates a value of a composite type.
    pub fn of_type(of: &Arc<CompositeType>, values: Vec<Datum>) -> Record {
        Record { of: Some(Arc::clone(of)), fields: Arc::clone(of.fields()), values }
    }

    /// Compares field by field, then by number of fields, as PostgreSQL's `record_cmp` does. The
    /// caller has rejected different field types.
    pub fn compare(&self, other: &Record) -> Ordering {
        let pairs = self.values.iter().zip(&other.values).zip(self.fields.iter());
        let mut orderings = pairs.map(|((a, b), (_, data_type))| a.compare_typed(b, data_type));
        orderings
            .find(|ordering| ordering.is_ne())
            .unwrap_or_else(|| self.values.len().cmp(&other.values.len()))
    }

    pub(super) fn hash_into(&self, state: &mut impl Hasher) {
        state.write_usize(self.values.len());
        for (value, (_, data_type)) in self.values.iter().zip(self.fields.iter()) {
            value.hash_typed(data_type, state);
        }
    }

    pub(super) fn heap_bytes(&self) -> usize {
        let values: usize = self.values.iter().map(Datum::heap_bytes).sum();
        values + self.values.len() * size_of::<Datum>() + 64
    }
}
