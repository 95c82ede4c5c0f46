//! Column batches: what scans, operators and endpoints hand each other.
//!
//! A [`Batch`] is about [`BATCH_ROWS`] rows held column by column. A [`Vector`] is one column of it:
//! a typed array and a validity list. Values at invalid (NULL) positions are unspecified and must
//! not be read.
//!
//! # Invariants
//!
//! 1. All vectors of a batch have the same length, which is the batch's row count. A batch without
//!    columns still has a row count (`select count(*)` needs no column).
//! 2. A vector's variant is the one that [`VectorData::for_type`] names for its type.

use std::sync::Arc;

use crate::datatype::DataType;
use crate::datetime::Interval;
use crate::datum::Datum;
use crate::numeric::Numeric;

/// The number of rows that producers aim at.
pub const BATCH_ROWS: usize = 1024;

/// The values of a column, by representation.
#[derive(Debug, Clone, PartialEq)]
pub enum VectorData {
    /// `boolean`
    Bool(Vec<bool>),
    /// `smallint`
    Int2(Vec<i16>),
    /// `integer`
    Int4(Vec<i32>),
    /// `bigint`, `oid`
    Int8(Vec<i64>),
    /// `real`
    Float4(Vec<f32>),
    /// `double precision`
    Float8(Vec<f64>),
    /// `numeric`
    Numeric(Vec<Numeric>),
    /// `text`, `varchar`, `char`, `name`, `unknown`; valid UTF-8
    Text(BytesVector),
    /// `bytea`
    Bytea(BytesVector),
    /// `date`
    Date(Vec<i32>),
    /// `time`
    Time(Vec<i64>),
    /// `timestamp`
    Timestamp(Vec<i64>),
    /// `timestamptz`
    Timestamptz(Vec<i64>),
    /// `interval`
    Interval(Vec<Interval>),
    /// `uuid`
    Uuid(Vec<[u8; 16]>),
}

/// Variable-length values end to end: value `i` is `bytes[ends[i - 1]..ends[i]]`.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct BytesVector {
    /// End of each value in `bytes`.
    pub ends: Vec<u32>,
    /// The values, one after the other.
    pub bytes: Vec<u8>,
}

/// One column of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// The values.
    pub data: VectorData,
    /// One entry a row, `true` where the value is not NULL; `None` when no value is NULL.
    pub validity: Option<Vec<bool>>,
}

/// Some rows, column by column. Columns are shared, so that a projection copies nothing.
#[derive(Debug, Clone, PartialEq)]
pub struct Batch {
    /// The columns.
    pub columns: Vec<Arc<Vector>>,
    /// The number of rows.
    pub row_count: usize,
}

impl VectorData {
    /// Returns an empty array of the representation of `data_type`, with room for `capacity` values.
    pub fn for_type(data_type: DataType, capacity: usize) -> VectorData {
        let _ = (data_type, capacity);
        todo!("types/vector")
    }
}

impl Vector {
    /// Returns an empty vector of this type.
    pub fn new(data_type: DataType, capacity: usize) -> Vector {
        Vector { data: VectorData::for_type(data_type, capacity), validity: None }
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        todo!("types/vector")
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether row `index` is NULL.
    pub fn is_null(&self, index: usize) -> bool {
        self.validity.as_ref().is_some_and(|valid| !valid[index])
    }

    /// Appends a value, which must be NULL or of the vector's representation.
    ///
    /// # Panics
    ///
    /// If the representation differs: the caller mixed up columns.
    pub fn push(&mut self, datum: &Datum) {
        let _ = datum;
        todo!("types/vector")
    }

    /// Appends a NULL.
    pub fn push_null(&mut self) {
        todo!("types/vector")
    }

    /// Returns the value of row `index`.
    pub fn datum(&self, index: usize) -> Datum {
        let _ = index;
        todo!("types/vector")
    }

    /// Returns the rows named by `selection`, in its order.
    #[must_use]
    pub fn take(&self, selection: &[u32]) -> Vector {
        let _ = selection;
        todo!("types/vector")
    }

    /// Appends all rows of `other`, which has the same representation.
    pub fn append(&mut self, other: &Vector) {
        let _ = other;
        todo!("types/vector")
    }

    /// Returns the bytes held, for memory accounting.
    pub fn byte_count(&self) -> usize {
        todo!("types/vector")
    }
}

impl Batch {
    /// Returns a batch of rows given as datums, columns typed by `types`.
    pub fn from_rows(types: &[DataType], rows: &[Vec<Datum>]) -> Batch {
        let _ = (types, rows);
        todo!("types/vector")
    }

    /// Returns row `index` as datums.
    pub fn row(&self, index: usize) -> Vec<Datum> {
        self.columns.iter().map(|column| column.datum(index)).collect()
    }

    /// Returns the rows named by `selection`, in its order.
    #[must_use]
    pub fn take(&self, selection: &[u32]) -> Batch {
        Batch {
            columns: self.columns.iter().map(|column| Arc::new(column.take(selection))).collect(),
            row_count: selection.len(),
        }
    }
}
