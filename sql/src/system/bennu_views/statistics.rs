//! View `bennu.statistics`: column statistics of ANALYZE.

use types::{DataType, keycode};

use crate::catalog::statistics::ColumnStatistics;
use crate::error::Result;
use crate::plan::literal;
use crate::system::SystemContext;
use crate::system::bennu_views::{SystemView, SystemViewColumn, ViewValue, system_view, tuple};

system_view! {
    STATISTICS: "statistics", "Column statistics of ANALYZE", statistics => |(table, rows, data_type, column)| {
        table_name Text = table, "Table";
        column_name Text = column.name.as_str(), "Column";
        rows Int8 = rows, "Rows of the table";
        null_fraction Float8 = column.null_fraction, "Fraction of NULL";
        distinct_values Float8 = column.distinct, "Number of distinct values";
        most_common_values Text = values(column.common.iter().map(|(value, _)| value), &data_type), "Most common values";
        most_common_fractions Text = tuple(&column.common.iter().map(|(_, part)| format!("{part:.6}")).collect::<Vec<_>>()),
            "Fractions of the most common values";
        histogram_bounds Text = values(column.bounds.iter(), &data_type), "Bounds of ranges with equal numbers of rows";
    }
}

/// Column with the name and the number of rows of its table, and its type.
type AnalyzedColumn<'s> = (String, u64, DataType, &'s ColumnStatistics);

fn statistics(source: &SystemContext) -> Result<Vec<AnalyzedColumn<'_>>> {
    let mut rows = Vec::new();
    for table in source.readable_tables() {
        let Some(statistics) = source.catalog.statistics(table.id) else { continue };
        for column in &statistics.columns {
            let Some(data_type) = DataType::from_oid(column.type_oid) else { continue };
            rows.push((table.full_name().short(), statistics.rows, data_type, column));
        }
    }
    Ok(rows)
}

/// Returns values as SQL literals; `None` if there are none.
fn values<'a>(forms: impl Iterator<Item = &'a Vec<u8>>, data_type: &DataType) -> Option<String> {
    let value = |form: &Vec<u8>| match keycode::decode(form, data_type, false, false) {
        Ok((value, _)) => literal(&value, data_type),
        Err(_) => "?".to_owned(),
    };
    tuple(&forms.map(value).collect::<Vec<_>>())
}
