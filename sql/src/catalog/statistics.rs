//! What ANALYZE found out about a table: how many rows it has, and how the values of its columns
//! are spread.
//!
//! A row of the system table for each analysed table: its key is `a` and the table's id, its one
//! cell a [`TableStatistics`] in the store's metadata encoding, with those of partial indexes in a
//! second record. Values are in their key form
//! ([`types::keycode`], ascending), so that they compare as bytes.

use store::TableId;
use types::keycode;
use types::{DataType, Datum};

use crate::catalog::later::{Later, decode_with, encode_with};
use crate::error::Result;

/// What the keys of statistics begin with.
pub const STATISTICS_PREFIX: &[u8] = b"a";

/// Returns the key of a table's statistics.
pub fn statistics_key(table: TableId) -> Vec<u8> {
    [STATISTICS_PREFIX, table.0.to_be_bytes().as_slice()].concat()
}

/// Returns the table of what follows the prefix in a row's key.
pub fn table_of_key(key: &[u8]) -> Option<TableId> {
    key.try_into().ok().map(|id| TableId(u32::from_be_bytes(id)))
}

/// A table's statistics.
#[derive(Debug, Clone, Default, PartialEq, bincode::Encode, bincode::Decode)]
pub struct TableStatistics {
    /// Rows.
    pub rows: u64,
    /// What the store took for their number then ([`store::Store::row_estimate`]).
    pub estimate: u64,
    /// The columns.
    pub columns: Vec<ColumnStatistics>,
    /// The partial indexes by their numbers, with their entries.
    pub partial_indexes: Later<Vec<(u32, u64)>>,
}

/// A column's statistics. Parts are of all rows, NULLs included.
#[derive(Debug, Clone, Default, PartialEq, bincode::Encode, bincode::Decode)]
pub struct ColumnStatistics {
    /// The column's name.
    pub name: String,
    /// OID of its type then.
    pub type_oid: u32,
    /// Which part is NULL.
    pub null_fraction: f64,
    /// Different values.
    pub distinct: f64,
    /// The most common values, most common first, each with its part.
    pub common: Vec<(Vec<u8>, f64)>,
    /// Bounds, ascending, between which lie as many of the other values each.
    pub bounds: Vec<Vec<u8>>,
}

/// Returns a value in key form, as a column of this type holds it; `None` if it is NULL or of
/// another type.
pub fn form(value: &Datum, value_type: DataType, column: DataType) -> Option<Vec<u8>> {
    let integer = |data_type| matches!(data_type, DataType::Int2 | DataType::Int4 | DataType::Int8);
    let text = |data_type| matches!(data_type, DataType::Text | DataType::Varchar);
    let value = match (value, value.as_i64()) {
        (Datum::Null, _) => return None,
        (_, Some(number)) if integer(value_type) && integer(column) => match column {
            DataType::Int2 => Datum::Int2(i16::try_from(number).ok()?),
            DataType::Int4 => Datum::Int4(i32::try_from(number).ok()?),
            _ => Datum::Int8(number),
        },
        (value, _) if value_type == column || (text(value_type) && text(column)) => value.clone(),
        _ => return None,
    };
    let mut form = Vec::new();
    keycode::encode(&value, column, false, false, &mut form).ok()?;
    Some(form)
}

/// Returns the bytes of a table's statistics.
pub fn encode_statistics(statistics: &TableStatistics) -> Vec<u8> {
    encode_with(statistics, &statistics.partial_indexes)
}

/// Returns the statistics of some bytes.
///
/// # Errors
///
/// XX001 if they are none.
pub fn decode_statistics(bytes: &[u8]) -> Result<TableStatistics> {
    let (mut statistics, partial_indexes) = decode_with::<TableStatistics, _>(bytes)?;
    statistics.partial_indexes.0 = partial_indexes;
    Ok(statistics)
}

impl TableStatistics {
    /// Returns how many entries a partial index had.
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

    /// Which part is neither NULL nor a common value.
    pub fn other_part(&self) -> f64 {
        (1.0 - self.null_fraction - self.common_part()).max(0.0)
    }

    /// Returns which part equals a value; `None`: one that is not known yet.
    pub fn equal(&self, value: Option<&[u8]>) -> f64 {
        let Some(value) = value else {
            return (1.0 - self.null_fraction) / self.distinct.max(1.0);
        };
        if let Some((_, part)) = self.common.iter().find(|(common, _)| common == value) {
            return *part;
        }
        let others = (self.distinct - self.common.len() as f64).max(1.0);
        let part = self.other_part() / others;
        // What is not common is less common than that.
        self.common.last().map_or(part, |(_, least)| part.min(*least))
    }

    /// Returns which part is less than a value.
    pub fn less(&self, value: &[u8]) -> f64 {
        let common = self.common.iter().filter(|(common, _)| common.as_slice() < value);
        common.map(|(_, part)| part).sum::<f64>() + self.other_part() * self.place(value)
    }

    /// Returns where a value lies among the bounds, 0 to 1.
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

/// Returns how far a value lies from `low` to `high`, 0 to 1: by the bytes after those that both
/// begin with.
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
        form(&Datum::Int4(value), DataType::Int4, DataType::Int4).unwrap()
    }

    #[test]
    fn parts_are_read_off() {
        let column = ColumnStatistics {
            null_fraction: 0.1,
            distinct: 1_001.0,
            common: vec![(int(7), 0.4)],
            bounds: (0..=10).map(|bound| int(bound * 100)).collect(),
            ..ColumnStatistics::default()
        };
        let near = |part: f64, wanted: f64| assert!((part - wanted).abs() < 1e-3, "{part}");
        near(column.equal(Some(&int(7))), 0.4);
        near(column.equal(Some(&int(8))), 0.0005);
        near(column.equal(None), 0.9 / 1_001.0);
        near(column.less(&int(-5)), 0.0);
        near(column.less(&int(250)), 0.4 + 0.5 * 0.25);
        near(column.less(&int(5_000)), 0.9);
        let id = TableId(70_000);
        assert_eq!(table_of_key(&statistics_key(id)[STATISTICS_PREFIX.len()..]), Some(id));
    }

    #[test]
    fn values_have_the_form_of_their_column() {
        assert_eq!(form(&Datum::Int8(5), DataType::Int8, DataType::Int4), Some(int(5)));
        assert_eq!(form(&Datum::Int8(1 << 40), DataType::Int8, DataType::Int4), None);
        assert_eq!(form(&Datum::Null, DataType::Int4, DataType::Int4), None);
        assert_eq!(form(&Datum::Bool(true), DataType::Bool, DataType::Int4), None);
    }
}
