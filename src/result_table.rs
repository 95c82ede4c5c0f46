//! Result tables in psql's aligned format.

use std::fmt::Write as _;

use sql::logical::OutputColumn;
use types::text;
use types::text::TextStyle;
use types::{Batch, DataType};

/// A result as text, row by row.
pub struct Table {
    names: Vec<String>,
    types: Vec<DataType>,
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Creates a table without rows.
    pub fn new(columns: &[OutputColumn]) -> Table {
        Table {
            names: columns.iter().map(|column| column.name.clone()).collect(),
            types: columns.iter().map(|column| column.sql_type.base.clone()).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds rows; NULL is printed as an empty string.
    pub fn push(&mut self, batch: &Batch, style: &TextStyle) {
        for row in 0..batch.row_count {
            let mut values = Vec::with_capacity(self.types.len());
            for (column, data_type) in batch.columns.iter().zip(&self.types) {
                let mut value = Vec::new();
                if !column.is_null(row) {
                    text::write_short(&column.datum(row), data_type, style, &mut value);
                }
                values.push(String::from_utf8_lossy(&value).into_owned());
            }
            self.rows.push(values);
        }
    }

    /// Returns one value as text.
    pub fn cell(&self, row: usize, column: usize) -> Option<&str> {
        self.rows.get(row)?.get(column).map(String::as_str)
    }

    /// Returns the number of rows.
    pub fn row_count(&self) -> usize {
        self.rows.len()
    }

    /// Returns the first rows aligned, numbers to the right, with the total number of rows.
    pub fn render(&self, row_limit: usize) -> String {
        let shown = &self.rows[..self.rows.len().min(row_limit)];
        let widths: Vec<usize> = self
            .names
            .iter()
            .enumerate()
            .map(|(column, name)| {
                let values = shown.iter().map(|row| width(&row[column]));
                values.chain([width(name)]).max().unwrap_or(0)
            })
            .collect();
        let mut out = String::new();
        let mut header = String::new();
        for (column, name) in self.names.iter().enumerate() {
            let pad = widths[column] - width(name);
            let left = pad / 2;
            let separator = if column == 0 { " " } else { "| " };
            let right = " ".repeat(pad - left);
            let _ = write!(header, "{separator}{}{name}{right} ", " ".repeat(left));
        }
        out.push_str(header.trim_end());
        out.push('\n');
        let rules: Vec<String> = widths.iter().map(|width| "-".repeat(width + 2)).collect();
        out.push_str(&rules.join("+"));
        out.push('\n');
        for row in shown {
            self.render_row(row, &widths, &mut out);
        }
        match self.rows.len() {
            1 => out.push_str("(1 row)\n"),
            count if count <= row_limit => {
                let _ = writeln!(out, "({count} rows)");
            }
            count => {
                let _ = writeln!(out, "({count} rows, the first {row_limit} shown)");
            }
        }
        out
    }

    fn render_row(&self, row: &[String], widths: &[usize], out: &mut String) {
        let mut line = String::new();
        for (column, value) in row.iter().enumerate() {
            let pad = " ".repeat(widths[column] - width(value));
            line.push_str(if column == 0 { " " } else { " | " });
            if self.types[column].is_number() {
                line.push_str(&pad);
                line.push_str(value);
            } else {
                line.push_str(value);
                line.push_str(&pad);
            }
        }
        out.push_str(line.trim_end());
        out.push('\n');
    }
}

/// Returns the display width of a text: its number of characters, which is too small for wide
/// scripts.
fn width(text: &str) -> usize {
    text.chars().count()
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::Datum;

    #[test]
    fn column_alignment_matches_psql() {
        let column = |name: &str, data_type: DataType| OutputColumn {
            name: name.to_owned(),
            sql_type: data_type.into(),
            origin: None,
        };
        let types = [DataType::Int4, DataType::Text];
        let mut table =
            Table::new(&[column("n", types[0].clone()), column("carrier", types[1].clone())]);
        let rows = [
            vec![Datum::Int4(7), Datum::Text("UA".into())],
            vec![Datum::Int4(1_234), Datum::Null],
            vec![Datum::Int4(5), Datum::Text("B6".into())],
        ];
        table.push(&Batch::from_rows(&types, &rows), &TextStyle::default());
        let expected =
            "  n   | carrier\n------+---------\n    7 | UA\n 1234 |\n(3 rows, the first 2 shown)\n";
        assert_eq!(table.render(2), expected);
    }
}
