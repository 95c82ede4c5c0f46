//! Planner statistics of ANALYZE: the row count of a table, and the value distribution of its
//! columns.
//!
//! The system table has a row for each analysed table: its key is `a` and the table's id, its only
//! cell a [`TableStatistics`] as tagged fields. Values are stored in their
//! key encoding ([`types::keycode`], ascending), so that they compare as bytes.

use std::sync::Arc;

use store::TableId;
use store::codec::tagged::UnknownFields;
use types::keycode;
use types::{DataType, Datum, Vector};

use crate::catalog::derived_cache::DerivedCache;

/// The key prefix of statistics.
pub const STATISTICS_PREFIX: &[u8] = b"a";

/// Returns the key of a table's statistics.
pub fn statistics_key(table: TableId) -> Vec<u8> {
    [STATISTICS_PREFIX, table.0.to_be_bytes().as_slice()].concat()
}

/// Returns the table of a key without its prefix.
pub fn table_of_key(key: &[u8]) -> Option<TableId> {
    key.try_into().ok().map(|id| TableId(u32::from_be_bytes(id)))
}

/// A table's statistics.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct TableStatistics {
    /// The number of rows.
    pub rows: u64,
    /// The store's row estimate at that time ([`store::Store::row_estimate`]).
    pub estimate: u64,
    /// The columns.
    pub columns: Vec<ColumnStatistics>,
    /// The partial indexes by their numbers, with their entry counts.
    pub partial_indexes: Vec<(u32, u64)>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// A column's statistics. Fractions are of all rows, NULLs included.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ColumnStatistics {
    /// The column's name.
    pub name: String,
    /// OID of its type at that time.
    pub type_oid: u32,
    /// The fraction of NULLs.
    pub null_fraction: f64,
    /// The number of distinct values.
    pub distinct: f64,
    /// The most common values with their fractions, most common first.
    pub common: Vec<(Vec<u8>, f64)>,
    /// The bounds of an equi-depth histogram of the other values, ascending.
    pub bounds: Vec<Vec<u8>>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
    /// The cache of [`ColumnStatistics::sampled`].
    pub decoded: DerivedCache<Option<Arc<Vector>>>,
}

/// Returns the key encoding of a value, as a column of this type has it; `None` if it is NULL or
/// of another type.
pub fn key_form(value: &Datum, value_type: &DataType, column: &DataType) -> Option<Vec<u8>> {
    let integer = |data_type| matches!(data_type, DataType::Int2 | DataType::Int4 | DataType::Int8);
    let text = |data_type| matches!(data_type, DataType::Text | DataType::Varchar);
    let value = match (value, value.as_i64()) {
        (Datum::Null, _) => return None,
        (_, Some(number)) if integer(value_type.clone()) && integer(column.clone()) => match column
        {
            DataType::Int2 => Datum::Int2(i16::try_from(number).ok()?),
            DataType::Int4 => Datum::Int4(i32::try_from(number).ok()?),
            _ => Datum::Int8(number),
        },
        (value, _)
            if value_type == column || (text(value_type.clone()) && text(column.clone())) =>
        {
            value.clone()
        }
        _ => return None,
    };
    let mut form = Vec::new();
    keycode::encode(&value, column, false, false, &mut form).ok()?;
    Some(form)
}

impl TableStatistics {
    /// Returns the entry count of a partial index.
    pub fn entries(&self, index: u32) -> Option<u64> {
        let found = self.partial_indexes.iter().find(|(number, _)| *number == index);
        found.map(|(_, entries)| *entries)
    }

    /// Returns the statistics of a column by name.
    pub fn column(&self, name: &str) -> Option<&ColumnStatistics> {
        self.columns.iter().find(|column| column.name == name)
    }
}

impl ColumnStatistics {
    fn common_part(&self) -> f64 {
        self.common.iter().map(|(_, part)| part).sum()
    }

    /// Returns the sampled values: the most common ones, the bounds, and NULL. They are decoded
    /// once, for documents take longer than a condition on them. `None` if they cannot be.
    pub fn sampled(&self, data_type: &DataType) -> Option<&Arc<Vector>> {
        let decode = || {
            let mut values = Vector::new(data_type, self.common.len() + self.bounds.len() + 1);
            let common = self.common.iter().map(|(form, _)| form);
            for form in common.chain(&self.bounds) {
                keycode::decode_into(form, data_type, false, false, &mut values).ok()?;
            }
            values.push_null();
            Some(Arc::new(values))
        };
        self.decoded.get_or_make(decode).as_ref()
    }

    /// Returns the fraction of values that are neither NULL nor common.
    pub fn other_part(&self) -> f64 {
        (1.0 - self.null_fraction - self.common_part()).max(0.0)
    }

    /// Returns the selectivity of equality with a value; `None` for a value that is not known yet.
    pub fn equality_selectivity(&self, value: Option<&[u8]>) -> f64 {
        let Some(value) = value else {
            return (1.0 - self.null_fraction) / self.distinct.max(1.0);
        };
        if let Some((_, part)) = self.common.iter().find(|(common, _)| common == value) {
            return *part;
        }
        let others = (self.distinct - self.common.len() as f64).max(1.0);
        let part = self.other_part() / others;
        // A value that is not common is not more frequent than the least common of these.
        self.common.last().map_or(part, |(_, least)| part.min(*least))
    }

    /// Returns the selectivity of `< value`.
    pub fn less_selectivity(&self, value: &[u8]) -> f64 {
        let common = self.common.iter().filter(|(common, _)| common.as_slice() < value);
        common.map(|(_, part)| part).sum::<f64>() + self.other_part() * self.place(value)
    }

    /// Returns the position of a value in the histogram, from 0 to 1.
    fn place(&self, value: &[u8]) -> f64 {
        let after = self.bounds.partition_point(|bound| bound.as_slice() <= value);
        let count = self.bounds.len();
        if count < 2 {
            return 0.5;
        }
        if after == 0 {
            return 0.0;
        }
        if after == count {
            return 1.0;
        }
        let within = between(value, &self.bounds[after - 1], &self.bounds[after]);
        ((after - 1) as f64 + within) / (count - 1) as f64
    }
}

/// Returns the relative position of a value between `low` and `high`, from 0 to 1, interpolated
/// over the bytes after their common prefix.
fn between(value: &[u8], low: &[u8], high: &[u8]) -> f64 {
    let shared = low.iter().zip(high).take_while(|(a, b)| a == b).count();
    let number = |bytes: &[u8]| {
        let mut head = [0; 8];
        let rest = bytes.get(shared..).unwrap_or_default();
        let length = rest.len().min(head.len());
        head[..length].copy_from_slice(&rest[..length]);
        u64::from_be_bytes(head) as f64
    };
    let (value, low, high) = (number(value), number(low), number(high));
    if high > low { ((value - low) / (high - low)).clamp(0.0, 1.0) } else { 0.5 }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn int(value: i32) -> Vec<u8> {
        key_form(&Datum::Int4(value), &DataType::Int4, &DataType::Int4).unwrap()
    }

    #[test]
    fn selectivity_uses_common_values_and_histogram() {
        let column = ColumnStatistics {
            null_fraction: 0.1,
            distinct: 1_001.0,
            common: vec![(int(7), 0.4)],
            bounds: (0..=10).map(|bound| int(bound * 100)).collect(),
            ..ColumnStatistics::default()
        };
        let near = |part: f64, wanted: f64| assert!((part - wanted).abs() < 1e-3, "{part}");
        near(column.equality_selectivity(Some(&int(7))), 0.4);
        near(column.equality_selectivity(Some(&int(8))), 0.0005);
        near(column.equality_selectivity(None), 0.9 / 1_001.0);
        near(column.less_selectivity(&int(-5)), 0.0);
        near(column.less_selectivity(&int(250)), 0.4 + 0.5 * 0.25);
        near(column.less_selectivity(&int(5_000)), 0.9);
        let id = TableId(70_000);
        assert_eq!(table_of_key(&statistics_key(id)[STATISTICS_PREFIX.len()..]), Some(id));
    }

    #[test]
    fn statistics_values_convert_to_column_type() {
        assert_eq!(key_form(&Datum::Int8(5), &DataType::Int8, &DataType::Int4), Some(int(5)));
        assert_eq!(key_form(&Datum::Int8(1 << 40), &DataType::Int8, &DataType::Int4), None);
        assert_eq!(key_form(&Datum::Null, &DataType::Int4, &DataType::Int4), None);
        assert_eq!(key_form(&Datum::Bool(true), &DataType::Bool, &DataType::Int4), None);
    }
}
