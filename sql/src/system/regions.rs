//! View `bennu.regions`: boundaries, size and load counters of each region.
//!
//! Boundaries appear in two forms: as bytes, which are exact, and as SQL literals of the key
//! columns that they begin with. The salt byte has its own column.

use store::store::{LoadStatistics, RegionStatus};
use types::rowcode::RowLayout;
use types::{DataType, Datum, keycode};

use crate::catalog::name::ObjectName;
use crate::error::Result;
use crate::plan::literal;
use crate::system::{Row, SystemContext, SystemView, bytes, int8, text};

/// Number of load counters, which appear in total and per second.
const FIGURES: usize = 9;

pub(super) const VIEW: SystemView = SystemView {
    name: "regions",
    columns: &[
        ("table_name", DataType::Text),
        ("region", DataType::Int8),
        ("start_key", DataType::Bytea),
        ("end_key", DataType::Bytea),
        ("salt_bucket", DataType::Int4),
        ("start_values", DataType::Text),
        ("end_values", DataType::Text),
        ("memstore_bytes", DataType::Int8),
        ("store_files", DataType::Int8),
        ("store_file_bytes", DataType::Int8),
        ("read_requests", DataType::Int8),
        ("rows_read", DataType::Int8),
        ("cells_read", DataType::Int8),
        ("bytes_read", DataType::Int8),
        ("write_requests", DataType::Int8),
        ("rows_written", DataType::Int8),
        ("cells_written", DataType::Int8),
        ("bytes_written", DataType::Int8),
        ("lock_waits", DataType::Int8),
        ("read_requests_per_second", DataType::Float8),
        ("rows_read_per_second", DataType::Float8),
        ("cells_read_per_second", DataType::Float8),
        ("bytes_read_per_second", DataType::Float8),
        ("write_requests_per_second", DataType::Float8),
        ("rows_written_per_second", DataType::Float8),
        ("cells_written_per_second", DataType::Float8),
        ("bytes_written_per_second", DataType::Float8),
        ("lock_waits_per_second", DataType::Float8),
        ("damage", DataType::Text),
    ],
    rows,
};

fn rows(source: &SystemContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for table in source.catalog.tables() {
        let own = (&table.name, table.id, &table.layout);
        let indexes = table.indexes.iter();
        let indexes =
            indexes.map(|index| (&index.name, index.spec.store_table, &index.spec.layout));
        for (name, id, layout) in std::iter::once(own).chain(indexes) {
            for region in source.engine.store().regions(id)? {
                rows.push(row(&ObjectName::new(&table.schema, name).short(), layout, &region));
            }
        }
    }
    Ok(rows)
}

fn row(name: &str, layout: &RowLayout, region: &RegionStatus) -> Row {
    let stop = region.stop.as_deref();
    let bucket = region.start.first().copied().unwrap_or(0);
    let mut row = vec![
        text(name),
        int8(region.region.0),
        bytes(&region.start),
        stop.map_or(Datum::Null, bytes),
        if layout.salt_buckets > 0 { Datum::Int4(i32::from(bucket)) } else { Datum::Null },
        key_values(layout, &region.start),
        stop.map_or(Datum::Null, |stop| key_values(layout, stop)),
        int8(region.memstore_bytes),
        int8(region.file_count as u64),
        int8(region.file_bytes),
    ];
    row.extend(figures(&region.load).map(int8));
    row.extend(figures(&region.rates).map(Datum::Float8));
    row.push(region.damage.as_deref().map_or(Datum::Null, text));
    row
}

fn figures<T: Copy>(load: &LoadStatistics<T>) -> [T; FIGURES] {
    [
        load.read_requests,
        load.rows_read,
        load.cells_read,
        load.bytes_read,
        load.write_requests,
        load.rows_written,
        load.cells_written,
        load.bytes_written,
        load.lock_waits,
    ]
}

/// Returns the values of the key columns that a boundary begins with, such as `(42, 'abc')`. A
/// rest that does not decode as a key column is shown as bytes. NULL if the boundary consists of a
/// salt byte or is empty.
fn key_values(layout: &RowLayout, boundary: &[u8]) -> Datum {
    let mut rest = match layout.salt_buckets {
        0 => boundary,
        _ => boundary.get(1..).unwrap_or_default(),
    };
    if rest.is_empty() {
        return Datum::Null;
    }
    let mut values = Vec::new();
    for key in &layout.key {
        let data_type = layout.columns[key.column].data_type;
        match keycode::decode(rest, data_type, key.descending, key.nulls_first) {
            Ok((value, taken)) => {
                values.push(literal(&value, data_type));
                rest = rest.get(taken..).unwrap_or_default();
            }
            Err(_) => break,
        }
        if rest.is_empty() {
            break;
        }
    }
    if !rest.is_empty() {
        values.push(literal(&bytes(rest), DataType::Bytea));
    }
    text(format!("({})", values.join(", ")))
}

#[cfg(test)]
mod tests {
    use types::rowcode::{ColumnPlace, KeyColumn, LayoutColumn};

    use super::*;

    fn layout(salt_buckets: u8) -> RowLayout {
        let types = [DataType::Int4, DataType::Text];
        let column = |(position, data_type)| LayoutColumn {
            data_type,
            place: ColumnPlace::Key(position),
            missing: Datum::Null,
        };
        let key = |column| KeyColumn { column, descending: column == 1, nulls_first: false };
        RowLayout {
            columns: types.into_iter().enumerate().map(column).collect(),
            key: (0..2).map(key).collect(),
            family_count: 1,
            expiring: Vec::new(),
            salt_buckets,
            schema_version: 0,
        }
    }

    #[test]
    fn region_boundaries_decode_to_key_values() {
        let plain = layout(0);
        let key = plain.encode_key_values(&[Datum::Int4(42), text("it's")]).unwrap();
        let shown = |layout: &RowLayout, bytes: &[u8]| match key_values(layout, bytes) {
            Datum::Text(text) => text.to_string(),
            _ => "none".to_owned(),
        };
        assert_eq!(shown(&plain, &key), "(42, 'it''s')");
        let first = plain.encode_key_prefix(&[Datum::Int4(-1)]).unwrap();
        assert_eq!(shown(&plain, &first), "(-1)");
        assert_eq!(shown(&plain, &key[..7]), "(42, '\\x02b9'::bytea)".replace("b9", &hex(key[6])));
        assert_eq!(shown(&plain, b"\x80"), "('\\x80'::bytea)");
        assert_eq!(shown(&plain, b""), "none");
        let salted = [&[3], key.as_slice()].concat();
        assert_eq!(shown(&layout(4), &salted), "(42, 'it''s')");
        assert_eq!(shown(&layout(4), &[3]), "none");
    }

    fn hex(byte: u8) -> String {
        format!("{byte:02x}")
    }
}
