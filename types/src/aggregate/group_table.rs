//! Group table: a hash table from key values to group numbers, for GROUP BY and DISTINCT.
//!
//! One or two key columns of fixed width are hashed as one or two numbers, without heap memory.
//! Other keys are encoded as bytes, equal for equal values: `1.0` and `1.00` are one group, and
//! so are `char` values that differ in trailing blanks. A run of rows with equal keys needs one
//! look-up.

use ahash::{AHashMap, RandomState};

use crate::datatype::{DataType, Representation};
use crate::datum::{Datum, Json, Nested, without_blanks};
use crate::numeric::Numeric;
use crate::text::{self, TextStyle};
use crate::vector::{Vector, VectorData};

/// Hash table from the values of key columns to group numbers.
///
/// NULLs are equal to each other, as in GROUP BY and DISTINCT.
pub struct GroupTable {
    key_types: Vec<DataType>,
    index: Index,
    /// The key values of each group, from its first row.
    keys: Keys,
}

/// The key values of all groups.
struct Keys {
    columns: Vec<Vector>,
    group_count: usize,
    /// Heap bytes of numerics and nested values outside their columns.
    heap_bytes: usize,
}

/// Hash index from keys to groups.
enum Index {
    /// No key columns: one group, if there are rows.
    Single,
    /// One column of fixed width; NULL has a separate group.
    One { groups: AHashMap<u64, u32>, null: Option<u32> },
    /// Two columns of fixed width.
    Two(AHashMap<TwoKeys, u32>),
    /// Any columns.
    Bytes { groups: AHashMap<Box<[u8]>, u32>, key_bytes: usize },
}

/// Two values of at most 64 bits, and a mask of NULLs.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Default)]
struct TwoKeys {
    values: [u64; 2],
    nulls: u8,
}

impl GroupTable {
    /// Creates an empty table for keys of these types.
    pub fn new(key_types: &[DataType]) -> GroupTable {
        GroupTable::with_payload(key_types, key_types.len())
    }

    /// Creates an empty table for columns of these types, of which the first `key_count` are the
    /// key. The other columns of a group have the values of its first row.
    pub fn with_payload(types: &[DataType], key_count: usize) -> GroupTable {
        let key_types = &types[..key_count];
        let index = match key_types {
            [] => Index::Single,
            [one] if is_fixed(one) => Index::One { groups: AHashMap::new(), null: None },
            [_, _] if key_types.iter().all(is_fixed) => Index::Two(AHashMap::new()),
            _ => Index::Bytes { groups: AHashMap::new(), key_bytes: 0 },
        };
        GroupTable {
            key_types: key_types.to_vec(),
            index,
            keys: Keys {
                columns: types.iter().map(|data_type| Vector::new(data_type, 0)).collect(),
                group_count: 0,
                heap_bytes: 0,
            },
        }
    }

    /// Writes the group number of each row into `groups`; new keys are numbered as they appear.
    pub fn assign(&mut self, keys: &[&Vector], row_count: usize, groups: &mut Vec<u32>) {
        self.check_keys(keys, self.keys.columns.len(), row_count);
        groups.clear();
        groups.reserve(row_count);
        match &mut self.index {
            Index::Single => {
                groups.resize(row_count, 0);
                let count = &mut self.keys.group_count;
                *count = (*count).max(usize::from(row_count > 0));
            }
            Index::One { .. } => self.assign_one(keys, row_count, groups),
            Index::Two(_) => self.assign_two(keys, row_count, groups),
            Index::Bytes { .. } => self.assign_bytes(keys, row_count, groups),
        }
        self.check(groups, row_count);
    }

    /// Asserts that there is a column for each key, with a value for each row.
    fn check_keys(&self, keys: &[&Vector], count: usize, row_count: usize) {
        debug_assert_eq!(keys.len(), count, "a column for each key");
        debug_assert!(keys.iter().all(|key| key.len() == row_count), "a key for each row");
    }

    /// Asserts that the index has all groups, and that each row has one of them.
    fn check(&self, groups: &[u32], row_count: usize) {
        let count = self.keys.group_count;
        let indexed = match &self.index {
            Index::Single => count.min(1),
            Index::One { groups, null } => groups.len() + usize::from(null.is_some()),
            Index::Two(index) => index.len(),
            Index::Bytes { groups, .. } => groups.len(),
        };
        debug_assert_eq!(indexed, count, "the index has all groups");
        debug_assert_eq!(groups.len(), row_count, "a group for each row");
        debug_assert!(groups.iter().all(|group| (*group as usize) < count), "{count} groups");
    }

    /// Writes the group number of each row into `groups`; [`u32::MAX`] for unknown keys.
    pub fn find(&self, keys: &[&Vector], row_count: usize, groups: &mut Vec<u32>) {
        const NONE: u32 = u32::MAX;
        self.check_keys(keys, self.key_types.len(), row_count);
        groups.clear();
        match &self.index {
            Index::Single => {
                let group = if self.keys.group_count > 0 { 0 } else { NONE };
                groups.resize(row_count, group);
            }
            Index::One { groups: index, null } => {
                let group = |bits: u64| index.get(&bits).copied().unwrap_or(NONE);
                for_each_bits(keys[0], |_, bits| groups.push(group(bits)));
                if let Some(validity) = &keys[0].validity {
                    let nulls = groups.iter_mut().zip(validity).filter(|(_, valid)| !**valid);
                    nulls.for_each(|(group, _)| *group = null.unwrap_or(NONE));
                }
            }
            Index::Two(index) => {
                let group = |key: &TwoKeys| index.get(key).copied().unwrap_or(NONE);
                groups.extend(two_keys(keys, row_count).iter().map(group));
            }
            Index::Bytes { groups: index, .. } => {
                let mut bytes = Vec::new();
                groups.extend((0..row_count).map(|row| {
                    bytes.clear();
                    for (column, data_type) in keys.iter().zip(&self.key_types) {
                        write_key(column, row, data_type, &mut bytes);
                    }
                    index.get(bytes.as_slice()).copied().unwrap_or(NONE)
                }));
            }
        }
    }

    fn assign_one(&mut self, keys: &[&Vector], row_count: usize, groups: &mut Vec<u32>) {
        let Index::One { groups: index, null } = &mut self.index else {
            unreachable!("called for this index only");
        };
        let mut all = Vec::with_capacity(row_count);
        for_each_bits(keys[0], |_, bits| all.push(bits));
        let validity = keys[0].validity.as_deref();
        let mut last: Option<(u64, u32)> = None;
        for (row, bits) in all.into_iter().enumerate() {
            if validity.is_some_and(|validity| !validity[row]) {
                groups.push(*null.get_or_insert_with(|| self.keys.push(keys, row)));
                continue;
            }
            let group = match last {
                Some((last, group)) if last == bits => group,
                _ => *index.entry(bits).or_insert_with(|| self.keys.push(keys, row)),
            };
            last = Some((bits, group));
            groups.push(group);
        }
    }

    fn assign_two(&mut self, keys: &[&Vector], row_count: usize, groups: &mut Vec<u32>) {
        let Index::Two(index) = &mut self.index else {
            unreachable!("called for this index only");
        };
        let mut last: Option<(TwoKeys, u32)> = None;
        for (row, key) in two_keys(&keys[..2], row_count).into_iter().enumerate() {
            let group = match last {
                Some((last, group)) if last == key => group,
                _ => *index.entry(key).or_insert_with(|| self.keys.push(keys, row)),
            };
            last = Some((key, group));
            groups.push(group);
        }
    }

    fn assign_bytes(&mut self, keys: &[&Vector], row_count: usize, groups: &mut Vec<u32>) {
        let Index::Bytes { groups: index, key_bytes } = &mut self.index else {
            unreachable!("called for this index only");
        };
        let (mut key, mut last) = (Vec::new(), Vec::new());
        for row in 0..row_count {
            key.clear();
            for (column, data_type) in keys.iter().zip(&self.key_types) {
                write_key(column, row, data_type, &mut key);
            }
            let group = match groups.last() {
                Some(group) if key == last => *group,
                _ => match index.get(key.as_slice()) {
                    Some(group) => *group,
                    None => {
                        let group = self.keys.push(keys, row);
                        *key_bytes += key.len();
                        index.insert(key.as_slice().into(), group);
                        group
                    }
                },
            };
            groups.push(group);
            std::mem::swap(&mut key, &mut last);
        }
    }

    /// Returns the number of groups.
    pub fn group_count(&self) -> usize {
        self.keys.group_count
    }

    /// Returns the key values of groups `range`, one vector per key column.
    pub fn keys(&self, range: std::ops::Range<usize>) -> Vec<Vector> {
        let number = |group| u32::try_from(group).expect("groups are numbered in 32 bits");
        let selection: Vec<u32> = (number(range.start)..number(range.end)).collect();
        self.keys.columns.iter().map(|column| column.take(&selection)).collect()
    }

    /// Returns the key values of all groups, one vector per key column.
    pub fn into_keys(self) -> Vec<Vector> {
        self.keys.columns
    }

    /// Returns the bytes held.
    pub fn byte_count(&self) -> usize {
        const CONTROL_BYTES: usize = 1;
        let index = match &self.index {
            Index::Single => 0,
            Index::One { groups, .. } => {
                groups.capacity() * (size_of::<(u64, u32)>() + CONTROL_BYTES)
            }
            Index::Two(index) => index.capacity() * (size_of::<(TwoKeys, u32)>() + CONTROL_BYTES),
            Index::Bytes { groups, key_bytes } => {
                groups.capacity() * (size_of::<(Box<[u8]>, u32)>() + CONTROL_BYTES) + key_bytes
            }
        };
        let columns = self.keys.columns.iter().map(Vector::flat_byte_count).sum::<usize>();
        index + columns + self.keys.heap_bytes
    }
}

impl Keys {
    /// Adds a group with the key of a row and returns its number.
    fn push(&mut self, keys: &[&Vector], row: usize) -> u32 {
        for (stored, column) in self.columns.iter_mut().zip(keys) {
            self.heap_bytes += match &column.data {
                VectorData::Numeric(values) => values[row].heap_bytes(),
                VectorData::Nested(values) => values[row].heap_bytes(),
                _ => 0,
            };
            debug_assert_eq!(stored.len(), self.group_count, "a key for each group");
            stored.push_row(column, row);
        }
        let group = u32::try_from(self.group_count).expect("groups are numbered in 32 bits");
        self.group_count += 1;
        group
    }
}

/// Returns a hash of each row's key, equal for equal keys within this process, for partitioning.
pub fn key_hashes(keys: &[&Vector], key_types: &[DataType], row_count: usize) -> Vec<u64> {
    debug_assert_eq!(keys.len(), key_types.len(), "a type for each key");
    if !key_types.is_empty() && key_types.iter().all(is_fixed) {
        return fixed_hashes(keys, row_count);
    }
    let hasher = RandomState::with_seeds(0x9e37, 0x79b9, 0x7f4a, 0x7c15);
    let mut key = Vec::new();
    let hash = |row| {
        key.clear();
        for (column, data_type) in keys.iter().zip(key_types) {
            write_key(column, row, data_type, &mut key);
        }
        hasher.hash_one(key.as_slice())
    };
    (0..row_count).map(hash).collect()
}

/// Returns [`key_hashes`] of columns of fixed width.
fn fixed_hashes(keys: &[&Vector], row_count: usize) -> Vec<u64> {
    /// An arbitrary value that is unlikely to be a key.
    const NULL: u64 = 0x6a09_e667_f3bc_c908;
    let mut hashes = vec![0; row_count];
    let mut bits = vec![0; row_count];
    for key in keys {
        for_each_bits(key, |row, value| bits[row] = value);
        if let Some(validity) = &key.validity {
            let nulls = bits.iter_mut().zip(validity).filter(|(_, valid)| !**valid);
            nulls.for_each(|(bits, _)| *bits = NULL);
        }
        hashes.iter_mut().zip(&bits).for_each(|(hash, bits)| *hash = mixed(*hash ^ bits));
    }
    hashes
}

/// Returns well-mixed bits (the finalizer of MurmurHash3).
fn mixed(bits: u64) -> u64 {
    let bits = (bits ^ (bits >> 33)).wrapping_mul(0xff51_afd7_ed55_8ccd);
    let bits = (bits ^ (bits >> 33)).wrapping_mul(0xc4ce_b9fe_1a85_ec53);
    bits ^ (bits >> 33)
}

/// Returns whether values of a type have at most 64 bits.
fn is_fixed(data_type: &DataType) -> bool {
    matches!(
        data_type.representation(),
        Representation::Bool
            | Representation::Int2
            | Representation::Int4
            | Representation::Int8
            | Representation::Float4
            | Representation::Float8
            | Representation::Date
            | Representation::Time
            | Representation::Timestamp
            | Representation::Timestamptz
    )
}

/// Returns the keys of two columns of fixed width.
fn two_keys(columns: &[&Vector], row_count: usize) -> Vec<TwoKeys> {
    let mut keys = vec![TwoKeys::default(); row_count];
    for (column, vector) in columns.iter().enumerate() {
        for_each_bits(vector, |row, bits| keys[row].values[column] = bits);
        if let Some(validity) = &vector.validity {
            for (key, _) in keys.iter_mut().zip(validity).filter(|(_, valid)| !**valid) {
                key.values[column] = 0;
                key.nulls |= 1 << column;
            }
        }
    }
    keys
}

/// Calls `put` with each row of a column of fixed width and bits that are equal for equal values;
/// arbitrary bits for NULL.
fn for_each_bits(vector: &Vector, mut put: impl FnMut(usize, u64)) {
    fn each<T: Copy>(values: &[T], bits: impl Fn(T) -> u64, put: &mut impl FnMut(usize, u64)) {
        for (row, value) in values.iter().enumerate() {
            put(row, bits(*value));
        }
    }
    let put = &mut put;
    match &vector.data {
        VectorData::Bool(values) => each(values, u64::from, put),
        VectorData::Int2(values) => each(values, |v| i64::from(v).cast_unsigned(), put),
        VectorData::Int4(values) | VectorData::Date(values) => {
            each(values, |v| i64::from(v).cast_unsigned(), put);
        }
        VectorData::Int8(values)
        | VectorData::Time(values)
        | VectorData::Timestamp(values)
        | VectorData::Timestamptz(values) => each(values, i64::cast_unsigned, put),
        VectorData::Float4(values) => each(values, |v| float_bits(f64::from(v)), put),
        VectorData::Float8(values) => each(values, float_bits, put),
        other => unreachable!("{other:?} is not of fixed width"),
    }
}

/// Returns equal bits for floats that are equal in SQL.
fn float_bits(value: f64) -> u64 {
    if value.is_nan() {
        f64::NAN.to_bits()
    } else {
        // Adding zero turns -0 into 0.
        (value + 0.0).to_bits()
    }
}

/// Appends a value to a key: a NULL flag, then bytes that are equal for equal values. Their
/// length is fixed by the type or precedes them.
fn write_key(vector: &Vector, row: usize, data_type: &DataType, key: &mut Vec<u8>) {
    if vector.is_null(row) {
        key.push(0);
        return;
    }
    key.push(1);
    match &vector.data {
        VectorData::Bool(values) => key.push(u8::from(values[row])),
        VectorData::Int2(values) => key.extend(values[row].to_le_bytes()),
        VectorData::Int4(values) | VectorData::Date(values) => {
            key.extend(values[row].to_le_bytes());
        }
        VectorData::Int8(values)
        | VectorData::Time(values)
        | VectorData::Timestamp(values)
        | VectorData::Timestamptz(values) => key.extend(values[row].to_le_bytes()),
        VectorData::Float4(values) => {
            key.extend(float_bits(f64::from(values[row])).to_le_bytes());
        }
        VectorData::Float8(values) => key.extend(float_bits(values[row]).to_le_bytes()),
        VectorData::Numeric(values) => write_numeric(&values[row], key),
        VectorData::Text(values) if *data_type == DataType::Char => {
            write_bytes(without_blanks(values.str(row)).as_bytes(), key);
        }
        VectorData::Text(values) | VectorData::Bytea(values) => write_bytes(values.get(row), key),
        VectorData::Interval(values) => key.extend(values[row].span().to_le_bytes()),
        VectorData::Uuid(values) => key.extend(values[row]),
        VectorData::Nested(values) => write_nested(&values[row], data_type, key),
    }
}

fn write_nested(nested: &Nested, data_type: &DataType, key: &mut Vec<u8>) {
    match nested {
        Nested::Array(array) => {
            write_length(array.dimensions.len(), key);
            for dimension in &array.dimensions {
                key.extend(dimension.lower.to_le_bytes());
                write_length(dimension.length, key);
            }
            let element = data_type.element().unwrap_or(&DataType::Unknown);
            let mut elements = Vector::new(element, array.elements.len());
            array.elements.iter().for_each(|value| elements.push(value));
            (0..elements.len()).for_each(|row| write_key(&elements, row, element, key));
        }
        Nested::Json(text) => write_bytes(text.as_bytes(), key),
        Nested::Jsonb(json) => write_json(json, key),
        Nested::JsonPath(_) => {
            let mut text = Vec::new();
            let path = Datum::Nested(nested.clone());
            text::write_short(&path, data_type, &TextStyle::default(), &mut text);
            write_bytes(&text, key);
        }
        Nested::Record(record) => {
            write_length(record.values.len(), key);
            for (value, (_, data_type)) in record.values.iter().zip(record.fields.iter()) {
                write_key(&Vector::constant(value, data_type, 1), 0, data_type, key);
            }
        }
        Nested::Bits(bits) => {
            write_length(bits.len(), key);
            key.extend_from_slice(bits.bytes());
        }
        Nested::Geometry(value) => {
            write_length(value.numbers().count(), key);
            key.push(u8::from(value.is_closed_path()));
            value.numbers().for_each(|number| key.extend(number.to_bits().to_le_bytes()));
        }
        Nested::Timetz { time, west } => {
            key.extend(time.to_le_bytes());
            key.extend(west.to_le_bytes());
        }
    }
}

fn write_json(json: &Json, key: &mut Vec<u8>) {
    match json {
        Json::Null => key.push(0),
        Json::Bool(value) => key.push(1 + u8::from(*value)),
        Json::Number(number) => {
            key.push(3);
            write_numeric(number, key);
        }
        Json::String(text) => {
            key.push(4);
            write_bytes(text.as_bytes(), key);
        }
        Json::Array(elements) => {
            key.push(5);
            write_length(elements.len(), key);
            elements.iter().for_each(|element| write_json(element, key));
        }
        Json::Object(pairs) => {
            key.push(6);
            write_length(pairs.len(), key);
            for (name, value) in pairs {
                write_bytes(name.as_bytes(), key);
                write_json(value, key);
            }
        }
    }
}

fn write_length(length: usize, key: &mut Vec<u8>) {
    let length = u32::try_from(length).expect("a value is shorter than 4 GiB");
    key.extend(length.to_le_bytes());
}

fn write_bytes(bytes: &[u8], key: &mut Vec<u8>) {
    write_length(bytes.len(), key);
    key.extend_from_slice(bytes);
}

/// Appends a numeric without its trailing zeros.
fn write_numeric(value: &Numeric, key: &mut Vec<u8>) {
    let shortest = value.with_scale(value.min_scale());
    match shortest.to_mantissa() {
        Some((mantissa, scale)) => {
            key.push(1);
            key.extend(mantissa.to_le_bytes());
            key.extend(scale.to_le_bytes());
        }
        None => {
            key.push(0);
            let mut text = Vec::new();
            shortest.write(&mut text);
            write_bytes(&text, key);
        }
    }
}
