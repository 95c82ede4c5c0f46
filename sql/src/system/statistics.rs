//! View `bennu.statistics`: column statistics of ANALYZE.

use types::{DataType, Datum, keycode};

use crate::error::Result;
use crate::plan::literal;
use crate::system::{Row, SystemContext, SystemView, int8, text};

pub(super) const VIEW: SystemView = SystemView {
    name: "statistics",
    columns: &[
        ("table_name", DataType::Text),
        ("column_name", DataType::Text),
        ("rows", DataType::Int8),
        ("null_fraction", DataType::Float8),
        ("distinct_values", DataType::Float8),
        ("most_common_values", DataType::Text),
        ("most_common_fractions", DataType::Text),
        ("histogram_bounds", DataType::Text),
    ],
    rows,
};

fn rows(source: &SystemContext) -> Result<Vec<Row>> {
    let mut rows = Vec::new();
    for table in source.catalog.tables() {
        let Some(statistics) = source.catalog.statistics(table.id) else { continue };
        for column in &statistics.columns {
            let Some(data_type) = DataType::from_oid(column.type_oid) else { continue };
            let fractions = column.common.iter().map(|(_, part)| format!("{part:.6}"));
            rows.push(vec![
                text(table.full_name().short()),
                text(&column.name),
                int8(statistics.rows),
                Datum::Float8(column.null_fraction),
                Datum::Float8(column.distinct),
                values(column.common.iter().map(|(value, _)| value), data_type),
                list(fractions.collect()),
                values(column.bounds.iter(), data_type),
            ]);
        }
    }
    Ok(rows)
}

/// Returns values as SQL literals; NULL if there are none.
fn values<'a>(forms: impl Iterator<Item = &'a Vec<u8>>, data_type: DataType) -> Datum {
    let value = |form: &Vec<u8>| match keycode::decode(form, data_type, false, false) {
        Ok((value, _)) => literal(&value, data_type),
        Err(_) => "?".to_owned(),
    };
    list(forms.map(value).collect())
}

fn list(items: Vec<String>) -> Datum {
    if items.is_empty() { Datum::Null } else { text(format!("({})", items.join(", "))) }
}
