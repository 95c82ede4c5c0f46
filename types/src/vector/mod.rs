//! Column batches: the rows that scans, operators and endpoints pass to each other.
//!
//! A [`Batch`] holds about [`BATCH_ROWS`] rows column by column. A [`Vector`] is one column of
//! it: a typed array and a validity list. Values at invalid (NULL) positions are unspecified and
//! must not be read.
//!
//! # Invariants
//!
//! 1. All vectors of a batch have the same length, which is the batch's row count. A batch
//!    without columns still has a row count (`select count(*)` needs no column).
//! 2. A vector's variant is the one that [`VectorData::for_type`] returns for its type.
//!
//! In debug builds, [`Batch::check`] asserts 1. Values of another variant make a push or an
//! append panic.

mod batch;
mod bytes;
mod row_sizes;
mod sink;

use std::cmp::Ordering;
use std::hash::{Hash, Hasher};
use std::ops::Range;

use crate::datatype::{DataType, Representation};
use crate::datetime::Interval;
use crate::datum::{Datum, Nested};
use crate::datum::{compare_floats, without_blanks};
use crate::error::Result;
use crate::interruptible::{CHUNK_BYTES, InterruptPacer};
use crate::numeric::Numeric;

pub use self::batch::Batch;
pub use self::bytes::BytesVector;
use self::bytes::too_many_bytes;
pub use self::row_sizes::RowSizes;
pub use self::sink::ValueSink;

/// Target number of rows of a batch.
pub const BATCH_ROWS: usize = 1024;

/// Target bytes of a batch with long values.
pub const BATCH_BYTES: usize = 1 << 20;

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
    /// `text`, `varchar`, `char`, `name`, `"char"`, `unknown`; valid UTF-8
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
    /// Arrays, `json`, `jsonb` and others, see [`Nested`]
    Nested(Vec<Nested>),
}

/// One column of a batch.
#[derive(Debug, Clone, PartialEq)]
pub struct Vector {
    /// The values.
    pub data: VectorData,
    /// One entry per row, `true` where the value is not NULL; `None` if no value is NULL.
    pub validity: Option<Vec<bool>>,
}

/// Matches all variants with the same expression: `$values` is a `Vec`, `$bytes` a
/// [`BytesVector`].
macro_rules! each {
    ($data:expr, $values:ident => $array:expr, $bytes:ident => $variable:expr) => {
        match $data {
            VectorData::Bool($values) => $array,
            VectorData::Int2($values) => $array,
            VectorData::Int4($values) => $array,
            VectorData::Int8($values) => $array,
            VectorData::Float4($values) => $array,
            VectorData::Float8($values) => $array,
            VectorData::Numeric($values) => $array,
            VectorData::Text($bytes) | VectorData::Bytea($bytes) => $variable,
            VectorData::Date($values) => $array,
            VectorData::Time($values) => $array,
            VectorData::Timestamp($values) => $array,
            VectorData::Timestamptz($values) => $array,
            VectorData::Interval($values) => $array,
            VectorData::Uuid($values) => $array,
            VectorData::Nested($values) => $array,
        }
    };
}

impl VectorData {
    /// Creates an empty array of the representation of `data_type`, with capacity for `capacity`
    /// values.
    pub fn for_type(data_type: &DataType, capacity: usize) -> VectorData {
        debug_assert!(!data_type.is_polymorphic(), "{data_type:?} stands in signatures only");
        match data_type.representation() {
            Representation::Bool => VectorData::Bool(Vec::with_capacity(capacity)),
            Representation::Int2 => VectorData::Int2(Vec::with_capacity(capacity)),
            Representation::Int4 => VectorData::Int4(Vec::with_capacity(capacity)),
            Representation::Int8 => VectorData::Int8(Vec::with_capacity(capacity)),
            Representation::Float4 => VectorData::Float4(Vec::with_capacity(capacity)),
            Representation::Float8 => VectorData::Float8(Vec::with_capacity(capacity)),
            Representation::Numeric => VectorData::Numeric(Vec::with_capacity(capacity)),
            Representation::Text => VectorData::Text(BytesVector::with_capacity(capacity)),
            Representation::Bytea => VectorData::Bytea(BytesVector::with_capacity(capacity)),
            Representation::Date => VectorData::Date(Vec::with_capacity(capacity)),
            Representation::Time => VectorData::Time(Vec::with_capacity(capacity)),
            Representation::Timestamp => VectorData::Timestamp(Vec::with_capacity(capacity)),
            Representation::Timestamptz => VectorData::Timestamptz(Vec::with_capacity(capacity)),
            Representation::Interval => VectorData::Interval(Vec::with_capacity(capacity)),
            Representation::Uuid => VectorData::Uuid(Vec::with_capacity(capacity)),
            Representation::Nested => VectorData::Nested(Vec::with_capacity(capacity)),
        }
    }

    /// Returns the number of values.
    pub fn len(&self) -> usize {
        each!(self, values => values.len(), bytes => bytes.len())
    }

    /// Returns whether there are no values.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Appends the placeholder of NULL positions.
    fn push_placeholder(&mut self) {
        each!(self, values => values.push(Default::default()), bytes => bytes.end_value());
    }

    /// Returns the name of the representation, for panic messages.
    fn name(&self) -> &'static str {
        match self {
            VectorData::Bool(_) => "bool",
            VectorData::Int2(_) => "int2",
            VectorData::Int4(_) => "int4",
            VectorData::Int8(_) => "int8",
            VectorData::Float4(_) => "float4",
            VectorData::Float8(_) => "float8",
            VectorData::Numeric(_) => "numeric",
            VectorData::Text(_) => "text",
            VectorData::Bytea(_) => "bytea",
            VectorData::Date(_) => "date",
            VectorData::Time(_) => "time",
            VectorData::Timestamp(_) => "timestamp",
            VectorData::Timestamptz(_) => "timestamptz",
            VectorData::Interval(_) => "interval",
            VectorData::Uuid(_) => "uuid",
            VectorData::Nested(_) => "nested",
        }
    }
}

/// Defines the push methods of one representation.
macro_rules! typed_push {
    ($($(#[$doc:meta])* $name:ident($kind:ty) $($variant:ident)|+;)*) => {
        $($(#[$doc])*
        ///
        /// # Panics
        ///
        /// If the vector is of another representation: the caller mixed up columns.
        #[inline]
        pub fn $name(&mut self, value: $kind) {
            match &mut self.data {
                $(VectorData::$variant(values) => values.push(value),)+
                other => mixed_up(other, stringify!($name)),
            }
            self.mark_valid();
        })*
    };
}

/// Defines the slice methods of one representation.
macro_rules! typed_slice {
    ($($(#[$doc:meta])* $name:ident -> $kind:ty, $($variant:ident)|+;)*) => {
        $($(#[$doc])*
        #[inline]
        pub fn $name(&self) -> Option<&[$kind]> {
            match &self.data {
                $(VectorData::$variant(values) => Some(values),)+
                _ => None,
            }
        })*
    };
}

#[cold]
#[inline(never)]
fn mixed_up(data: &VectorData, what: &str) -> ! {
    panic!("{what} on a vector of {}", data.name());
}

impl Vector {
    /// Creates an empty vector of this type.
    pub fn new(data_type: &DataType, capacity: usize) -> Vector {
        Vector { data: VectorData::for_type(data_type, capacity), validity: None }
    }

    /// Returns a vector with `len` equal values.
    ///
    /// # Panics
    ///
    /// If the value is not of the type.
    pub fn constant(value: &Datum, data_type: &DataType, len: usize) -> Vector {
        let mut vector = Vector::new(data_type, len);
        for _ in 0..len {
            vector.push(value);
        }
        vector
    }

    /// Returns the number of rows.
    pub fn len(&self) -> usize {
        self.data.len()
    }

    /// Returns whether there are no rows.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns whether row `index` is NULL.
    #[inline]
    pub fn is_null(&self, index: usize) -> bool {
        self.validity.as_ref().is_some_and(|valid| !valid[index])
    }

    /// Returns the number of NULLs.
    pub fn null_count(&self) -> usize {
        self.validity.as_ref().map_or(0, |valid| valid.iter().filter(|valid| !**valid).count())
    }

    /// Removes all rows and retains the memory.
    pub fn clear(&mut self) {
        self.validity = None;
        each!(&mut self.data, values => values.clear(), bytes => {
            bytes.ends.clear();
            bytes.bytes.clear();
        });
    }

    #[inline]
    fn mark_valid(&mut self) {
        if let Some(validity) = &mut self.validity {
            validity.push(true);
        }
        self.check();
    }

    /// Asserts that the validity has as many rows as the values.
    #[inline]
    fn check(&self) {
        debug_assert!(
            self.validity.as_ref().is_none_or(|validity| validity.len() == self.data.len()),
            "{} values have a validity of {:?}",
            self.data.len(),
            self.validity.as_ref().map(Vec::len)
        );
    }

    /// Appends a value, which must be NULL or of the vector's representation.
    ///
    /// # Panics
    ///
    /// If the representation differs: the caller mixed up columns.
    pub fn push(&mut self, datum: &Datum) {
        match (&mut self.data, datum) {
            (_, Datum::Null) => return self.push_null(),
            (VectorData::Bool(values), Datum::Bool(value)) => values.push(*value),
            (VectorData::Int2(values), Datum::Int2(value)) => values.push(*value),
            (VectorData::Int4(values), Datum::Int4(value)) => values.push(*value),
            (VectorData::Int8(values), Datum::Int8(value)) => values.push(*value),
            (VectorData::Float4(values), Datum::Float4(value)) => values.push(*value),
            (VectorData::Float8(values), Datum::Float8(value)) => values.push(*value),
            (VectorData::Numeric(values), Datum::Numeric(value)) => values.push(value.clone()),
            (VectorData::Text(values), Datum::Text(value)) => values.push(value.as_bytes()),
            (VectorData::Bytea(values), Datum::Bytea(value)) => values.push(value),
            (VectorData::Date(values), Datum::Date(value)) => values.push(*value),
            (VectorData::Time(values), Datum::Time(value)) => values.push(*value),
            (VectorData::Timestamp(values), Datum::Timestamp(value)) => values.push(*value),
            (VectorData::Timestamptz(values), Datum::Timestamptz(value)) => values.push(*value),
            (VectorData::Interval(values), Datum::Interval(value)) => values.push(*value),
            (VectorData::Uuid(values), Datum::Uuid(value)) => values.push(*value),
            (VectorData::Nested(values), Datum::Nested(value)) => values.push(value.clone()),
            (other, _) => mixed_up(other, "push of another datum"),
        }
        self.mark_valid();
    }

    /// Appends a value of any length, as [`Vector::push`] does.
    ///
    /// # Errors
    ///
    /// `57014` if the interrupt flag is set; `54000` if the vector would exceed 4 GiB.
    #[inline]
    pub fn push_at(&mut self, datum: &Datum, pace: &mut InterruptPacer<'_>) -> Result<()> {
        let bytes = match datum {
            Datum::Text(value) => value.as_bytes(),
            Datum::Bytea(value) => &value[..],
            _ => &[],
        };
        if bytes.len() < CHUNK_BYTES && !self.must_move(bytes.len()) {
            self.push(datum);
            return Ok(());
        }
        self.push_long(bytes, pace)
    }

    /// Returns whether appending `more` bytes requires a large reallocation.
    #[inline]
    fn must_move(&self, more: usize) -> bool {
        let Some(values) = self.as_bytes_vector() else { return false };
        let bytes = values.bytes.len() + more;
        bytes >= CHUNK_BYTES && bytes > values.bytes.capacity()
    }

    fn push_long(&mut self, bytes: &[u8], pace: &mut InterruptPacer<'_>) -> Result<()> {
        match &mut self.data {
            VectorData::Text(values) | VectorData::Bytea(values) => {
                if u32::try_from(values.bytes.len() + bytes.len()).is_err() {
                    return Err(too_many_bytes());
                }
                pace.append(&mut values.bytes, bytes)?;
                values.end_value();
            }
            other => mixed_up(other, "push of another datum"),
        }
        self.mark_valid();
        Ok(())
    }

    /// Appends a NULL.
    pub fn push_null(&mut self) {
        let len = self.len();
        self.validity.get_or_insert_with(|| vec![true; len]).push(false);
        self.data.push_placeholder();
        self.check();
    }

    typed_push! {
        /// Appends a `boolean`.
        push_bool(bool) Bool;
        /// Appends a `smallint`.
        push_i16(i16) Int2;
        /// Appends an `integer` or the day count of a `date`.
        push_i32(i32) Int4 | Date;
        /// Appends a `bigint`, an `oid`, or the microseconds of a time or timestamp.
        push_i64(i64) Int8 | Time | Timestamp | Timestamptz;
        /// Appends a `real`.
        push_f32(f32) Float4;
        /// Appends a `double precision`.
        push_f64(f64) Float8;
        /// Appends a `numeric`.
        push_numeric(Numeric) Numeric;
        /// Appends a `bytea`.
        push_bytea(&[u8]) Bytea;
        /// Appends an `interval`.
        push_interval(Interval) Interval;
        /// Appends a `uuid`.
        push_uuid([u8; 16]) Uuid;
        /// Appends an array, a `json` or a `jsonb`.
        push_nested(Nested) Nested;
    }

    /// Appends a text of any type.
    ///
    /// # Panics
    ///
    /// If the vector is of another representation: the caller mixed up columns.
    #[inline]
    pub fn push_text(&mut self, value: &str) {
        match &mut self.data {
            VectorData::Text(values) => values.push(value.as_bytes()),
            other => mixed_up(other, "push_text"),
        }
        self.mark_valid();
    }

    /// Appends a text if it is ASCII; returns whether it is.
    ///
    /// # Panics
    ///
    /// If the vector is of another representation: the caller mixed up columns.
    #[inline]
    pub(crate) fn push_ascii(&mut self, value: &[u8]) -> bool {
        if !value.is_ascii() {
            return false;
        }
        match &mut self.data {
            VectorData::Text(values) => values.push(value),
            other => mixed_up(other, "push_ascii"),
        }
        self.mark_valid();
        true
    }

    typed_slice! {
        /// Returns the values of a `boolean` vector.
        as_bool_slice -> bool, Bool;
        /// Returns the values of a `smallint` vector.
        as_i16_slice -> i16, Int2;
        /// Returns the values of an `integer` or `date` vector.
        as_i32_slice -> i32, Int4 | Date;
        /// Returns the values of a `bigint`, `oid`, time or timestamp vector.
        as_i64_slice -> i64, Int8 | Time | Timestamp | Timestamptz;
        /// Returns the values of a `real` vector.
        as_f32_slice -> f32, Float4;
        /// Returns the values of a `double precision` vector.
        as_f64_slice -> f64, Float8;
        /// Returns the values of a `numeric` vector.
        as_numeric_slice -> Numeric, Numeric;
        /// Returns the values of an `interval` vector.
        as_interval_slice -> Interval, Interval;
        /// Returns the values of a `uuid` vector.
        as_uuid_slice -> [u8; 16], Uuid;
    }

    /// Returns the values of a text or `bytea` vector.
    #[inline]
    pub fn as_bytes_vector(&self) -> Option<&BytesVector> {
        match &self.data {
            VectorData::Text(bytes) | VectorData::Bytea(bytes) => Some(bytes),
            _ => None,
        }
    }

    /// Returns the value of row `index`.
    pub fn datum(&self, index: usize) -> Datum {
        if self.is_null(index) {
            return Datum::Null;
        }
        match &self.data {
            VectorData::Bool(values) => Datum::Bool(values[index]),
            VectorData::Int2(values) => Datum::Int2(values[index]),
            VectorData::Int4(values) => Datum::Int4(values[index]),
            VectorData::Int8(values) => Datum::Int8(values[index]),
            VectorData::Float4(values) => Datum::Float4(values[index]),
            VectorData::Float8(values) => Datum::Float8(values[index]),
            VectorData::Numeric(values) => Datum::Numeric(values[index].clone()),
            VectorData::Text(values) => Datum::text(values.str(index)),
            VectorData::Bytea(values) => Datum::bytea(values.get(index)),
            VectorData::Date(values) => Datum::Date(values[index]),
            VectorData::Time(values) => Datum::Time(values[index]),
            VectorData::Timestamp(values) => Datum::Timestamp(values[index]),
            VectorData::Timestamptz(values) => Datum::Timestamptz(values[index]),
            VectorData::Interval(values) => Datum::Interval(values[index]),
            VectorData::Uuid(values) => Datum::Uuid(values[index]),
            VectorData::Nested(values) => Datum::Nested(values[index].clone()),
        }
    }

    /// Returns the value of row `index`, of any length, as [`Vector::datum`] does.
    ///
    /// # Errors
    ///
    /// `57014` if the interrupt flag is set.
    #[inline]
    pub fn datum_at(&self, index: usize, pace: &mut InterruptPacer<'_>) -> Result<Datum> {
        match &self.data {
            VectorData::Text(values) if values.get(index).len() >= CHUNK_BYTES => {
                pace.decode(values.get(index)).map(Datum::text)
            }
            VectorData::Bytea(values) if values.get(index).len() >= CHUNK_BYTES => {
                pace.copy::<Vec<u8>>(values.get(index)).map(Datum::bytea)
            }
            _ => Ok(self.datum(index)),
        }
    }

    /// Returns the rows of `selection`, in its order.
    #[must_use]
    pub fn take(&self, selection: &[u32]) -> Vector {
        macro_rules! taken {
            ($variant:ident, $values:expr) => {
                VectorData::$variant(
                    selection.iter().map(|&index| $values[index as usize].clone()).collect(),
                )
            };
        }
        let data = match &self.data {
            VectorData::Bool(values) => taken!(Bool, values),
            VectorData::Int2(values) => taken!(Int2, values),
            VectorData::Int4(values) => taken!(Int4, values),
            VectorData::Int8(values) => taken!(Int8, values),
            VectorData::Float4(values) => taken!(Float4, values),
            VectorData::Float8(values) => taken!(Float8, values),
            VectorData::Numeric(values) => taken!(Numeric, values),
            VectorData::Text(values) => VectorData::Text(values.take(selection)),
            VectorData::Bytea(values) => VectorData::Bytea(values.take(selection)),
            VectorData::Date(values) => taken!(Date, values),
            VectorData::Time(values) => taken!(Time, values),
            VectorData::Timestamp(values) => taken!(Timestamp, values),
            VectorData::Timestamptz(values) => taken!(Timestamptz, values),
            VectorData::Interval(values) => taken!(Interval, values),
            VectorData::Uuid(values) => taken!(Uuid, values),
            VectorData::Nested(values) => taken!(Nested, values),
        };
        let validity = self.validity.as_ref().and_then(|validity| {
            let taken: Vec<bool> =
                selection.iter().map(|&index| validity[index as usize]).collect();
            taken.contains(&false).then_some(taken)
        });
        Vector { data, validity }
    }

    /// Appends all rows of `other`, which has the same representation.
    ///
    /// # Panics
    ///
    /// If the representation differs: the caller mixed up columns.
    pub fn append(&mut self, other: &Vector) {
        let len = self.len();
        match (&mut self.data, &other.data) {
            (VectorData::Bool(to), VectorData::Bool(from)) => to.extend_from_slice(from),
            (VectorData::Int2(to), VectorData::Int2(from)) => to.extend_from_slice(from),
            (VectorData::Int4(to), VectorData::Int4(from)) => to.extend_from_slice(from),
            (VectorData::Int8(to), VectorData::Int8(from)) => to.extend_from_slice(from),
            (VectorData::Float4(to), VectorData::Float4(from)) => to.extend_from_slice(from),
            (VectorData::Float8(to), VectorData::Float8(from)) => to.extend_from_slice(from),
            (VectorData::Numeric(to), VectorData::Numeric(from)) => to.extend_from_slice(from),
            (VectorData::Text(to), VectorData::Text(from)) => to.append(from),
            (VectorData::Bytea(to), VectorData::Bytea(from)) => to.append(from),
            (VectorData::Date(to), VectorData::Date(from)) => to.extend_from_slice(from),
            (VectorData::Time(to), VectorData::Time(from)) => to.extend_from_slice(from),
            (VectorData::Timestamp(to), VectorData::Timestamp(from)) => to.extend_from_slice(from),
            (VectorData::Timestamptz(to), VectorData::Timestamptz(from)) => {
                to.extend_from_slice(from);
            }
            (VectorData::Interval(to), VectorData::Interval(from)) => to.extend_from_slice(from),
            (VectorData::Uuid(to), VectorData::Uuid(from)) => to.extend_from_slice(from),
            (VectorData::Nested(to), VectorData::Nested(from)) => to.extend_from_slice(from),
            (to, _) => mixed_up(to, "append of another vector"),
        }
        match (&mut self.validity, &other.validity) {
            (None, None) => {}
            (Some(to), Some(from)) => to.extend_from_slice(from),
            (Some(to), None) => to.resize(len + other.len(), true),
            (to @ None, Some(from)) => {
                let mut validity = vec![true; len];
                validity.extend_from_slice(from);
                *to = Some(validity);
            }
        }
        self.check();
    }

    /// Appends a row of `other`, which has the same representation.
    ///
    /// # Panics
    ///
    /// If the representation differs: the caller mixed up columns.
    #[inline]
    pub fn push_row(&mut self, other: &Vector, row: usize) {
        if other.is_null(row) {
            return self.push_null();
        }
        macro_rules! push {
            ($($variant:ident)*) => {
                match (&mut self.data, &other.data) {
                    $((VectorData::$variant(to), VectorData::$variant(from)) => {
                        to.push(from[row].clone());
                    })*
                    (VectorData::Text(to), VectorData::Text(from))
                    | (VectorData::Bytea(to), VectorData::Bytea(from)) => to.push(from.get(row)),
                    (to, _) => mixed_up(to, "push of a row of another vector"),
                }
            };
        }
        push!(Bool Int2 Int4 Int8 Float4 Float8 Numeric Date Time Timestamp Timestamptz Interval
            Uuid Nested);
        self.mark_valid();
    }

    /// Appends some rows of `other`, which has the same representation.
    ///
    /// # Panics
    ///
    /// If the representation differs: the caller mixed up columns.
    pub fn append_rows(&mut self, other: &Vector, rows: Range<usize>) {
        let len = self.len();
        macro_rules! append {
            ($($variant:ident)*) => {
                match (&mut self.data, &other.data) {
                    $((VectorData::$variant(to), VectorData::$variant(from)) => {
                        to.extend_from_slice(&from[rows.clone()]);
                    })*
                    (VectorData::Text(to), VectorData::Text(from))
                    | (VectorData::Bytea(to), VectorData::Bytea(from)) => {
                        rows.clone().for_each(|row| to.push(from.get(row)));
                    }
                    (to, _) => mixed_up(to, "append of another vector"),
                }
            };
        }
        append!(Bool Int2 Int4 Int8 Float4 Float8 Numeric Date Time Timestamp Timestamptz Interval
            Uuid Nested);
        match (&mut self.validity, &other.validity) {
            (None, None) => {}
            (Some(to), Some(from)) => to.extend_from_slice(&from[rows]),
            (Some(to), None) => to.resize(len + rows.len(), true),
            (to @ None, Some(from)) => {
                let mut validity = vec![true; len];
                validity.extend_from_slice(&from[rows]);
                *to = Some(validity);
            }
        }
        self.check();
    }

    /// Compares row `index` with row `other_index` of a vector of the same representation, in
    /// SQL's order, with NULL greatest. Trailing blanks of `char` are significant here; see
    /// [`Datum::compare_typed`].
    pub fn compare(&self, index: usize, other: &Vector, other_index: usize) -> Ordering {
        match (self.is_null(index), other.is_null(other_index)) {
            (false, false) => {}
            (left, right) => return left.cmp(&right),
        }
        let (i, j) = (index, other_index);
        match (&self.data, &other.data) {
            (VectorData::Bool(a), VectorData::Bool(b)) => a[i].cmp(&b[j]),
            (VectorData::Int2(a), VectorData::Int2(b)) => a[i].cmp(&b[j]),
            (VectorData::Int4(a), VectorData::Int4(b))
            | (VectorData::Date(a), VectorData::Date(b)) => a[i].cmp(&b[j]),
            (VectorData::Float4(a), VectorData::Float4(b)) => {
                compare_floats(f64::from(a[i]), f64::from(b[j]))
            }
            (VectorData::Float8(a), VectorData::Float8(b)) => compare_floats(a[i], b[j]),
            (VectorData::Numeric(a), VectorData::Numeric(b)) => a[i].cmp(&b[j]),
            (VectorData::Text(a), VectorData::Text(b))
            | (VectorData::Bytea(a), VectorData::Bytea(b)) => a.get(i).cmp(b.get(j)),
            (VectorData::Int8(a), VectorData::Int8(b))
            | (VectorData::Time(a), VectorData::Time(b))
            | (VectorData::Timestamp(a), VectorData::Timestamp(b))
            | (VectorData::Timestamptz(a), VectorData::Timestamptz(b)) => a[i].cmp(&b[j]),
            (VectorData::Interval(a), VectorData::Interval(b)) => a[i].cmp(&b[j]),
            (VectorData::Uuid(a), VectorData::Uuid(b)) => a[i].cmp(&b[j]),
            (VectorData::Nested(a), VectorData::Nested(b)) => {
                a[i].compare(&b[j], &DataType::Unknown)
            }
            (data, _) => mixed_up(data, "comparison with another vector"),
        }
    }

    /// Compares values of a type as [`Vector::compare`] does, but ignores trailing blanks of
    /// `char`.
    pub fn compare_typed(
        &self,
        index: usize,
        other: &Vector,
        other_index: usize,
        data_type: &DataType,
    ) -> Ordering {
        match (&self.data, &other.data) {
            (VectorData::Text(a), VectorData::Text(b))
                if *data_type == DataType::Char
                    && !self.is_null(index)
                    && !other.is_null(other_index) =>
            {
                without_blanks(a.str(index)).cmp(without_blanks(b.str(other_index)))
            }
            (VectorData::Nested(a), VectorData::Nested(b))
                if !self.is_null(index) && !other.is_null(other_index) =>
            {
                a[index].compare(&b[other_index], data_type)
            }
            _ => self.compare(index, other, other_index),
        }
    }

    /// Feeds row `index` to a hasher, as [`Datum::hash_into`] does.
    pub fn hash_row(&self, index: usize, state: &mut impl Hasher) {
        match &self.data {
            _ if self.is_null(index) => Datum::Null.hash_into(state),
            VectorData::Text(values) => values.str(index).hash(state),
            VectorData::Bytea(values) => values.get(index).hash(state),
            VectorData::Numeric(values) => values[index].hash(state),
            _ => self.datum(index).hash_into(state),
        }
    }

    /// Returns the bytes held, for memory accounting.
    pub fn byte_count(&self) -> usize {
        let numerics = match &self.data {
            VectorData::Numeric(values) => values.iter().map(Numeric::heap_bytes).sum(),
            VectorData::Nested(values) => values.iter().map(Nested::heap_bytes).sum(),
            _ => 0,
        };
        self.flat_byte_count() + numerics
    }

    /// Returns the bytes held, except the heap bytes of numerics and nested values, without
    /// visiting the values.
    pub fn flat_byte_count(&self) -> usize {
        let data = match &self.data {
            VectorData::Text(values) | VectorData::Bytea(values) => {
                values.ends.capacity() * size_of::<u32>() + values.bytes.capacity()
            }
            other => other.capacity_bytes(),
        };
        size_of::<Vector>() + data + self.validity.as_ref().map_or(0, Vec::capacity)
    }
}

impl VectorData {
    fn capacity_bytes(&self) -> usize {
        fn held<T>(values: &Vec<T>) -> usize {
            values.capacity() * size_of::<T>()
        }
        each!(self, values => held(values), bytes => bytes.bytes.capacity())
    }
}

/// Returns the positions of true values, without branches.
///
/// # Panics
///
/// If there are 2^32 or more.
pub(crate) fn positions(tests: impl ExactSizeIterator<Item = bool>) -> Vec<u32> {
    u32::try_from(tests.len()).expect("a batch has fewer than 2^32 rows");
    let mut found = vec![0; tests.len()];
    let mut count = 0;
    for (index, test) in tests.enumerate() {
        found[count] = index as u32;
        count += usize::from(test);
    }
    found.truncate(count);
    found
}

#[cfg(test)]
mod tests;
