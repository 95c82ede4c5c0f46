//! Vetoes with PostgreSQL's messages, built from names and values.
//!
//! This is the only place that builds them, so that the index observer, the executor of INSERT
//! and an index build report a duplicate in the same way. Message, detail and code follow
//! PostgreSQL's `execMain.c`, `nbtinsert.c` and `tuplesortvariants.c`.

use store::error::Veto;
use types::text::{self, TextStyle};
use types::{DataType, Datum};

/// PostgreSQL's limit for each value in `Failing row contains (…)`, in bytes.
const SHORT_VALUE_BYTES: usize = 64;

/// The coprocessor's name in vetoes of constraints.
pub const CONSTRAINT: &str = "constraint";

/// The qualified name of a table, for messages.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TableName {
    /// Its schema.
    pub schema: String,
    /// Its name there.
    pub name: String,
}

/// An existing key, for messages.
#[derive(Debug, Clone, Copy)]
pub struct DuplicateKey<'a> {
    /// Name of the index or the primary key constraint.
    pub constraint: &'a str,
    /// The table.
    pub table: &'a TableName,
    /// The key columns by name, or the text of expressions.
    pub key_names: &'a [&'a str],
    /// Types of the keys.
    pub key_types: &'a [DataType],
    /// Values of the keys.
    pub values: &'a [Datum],
    /// Text style of the session.
    pub style: &'a TextStyle,
}

impl DuplicateKey<'_> {
    /// Returns `duplicate key value violates unique constraint "t_pkey"`, `Key (a)=(1) already
    /// exists.`
    pub fn exists_veto(&self, coprocessor: &str) -> Veto {
        Veto {
            message: format!(
                "duplicate key value violates unique constraint \"{}\"",
                self.constraint
            ),
            detail: format!("Key {} already exists.", self.key_text()),
            ..self.veto(coprocessor)
        }
    }

    /// Returns `could not create unique index "i"`, `Key (a)=(1) is duplicated.`
    pub fn duplicated_veto(&self, coprocessor: &str) -> Veto {
        Veto {
            message: format!("could not create unique index \"{}\"", self.constraint),
            detail: format!("Key {} is duplicated.", self.key_text()),
            ..self.veto(coprocessor)
        }
    }

    fn veto(&self, coprocessor: &str) -> Veto {
        Veto {
            coprocessor: coprocessor.to_owned(),
            code: types::sqlstate::UNIQUE_VIOLATION.to_owned(),
            constraint: self.constraint.to_owned(),
            schema: self.table.schema.clone(),
            table: self.table.name.clone(),
            ..Veto::default()
        }
    }

    fn key_text(&self) -> String {
        key_text((self.key_names, self.key_types), self.values, self.style)
    }
}

/// Returns `(a, b)=(1, x)`: names and values of key columns.
pub fn key_text(
    (names, types): (&[&str], &[DataType]),
    values: &[Datum],
    style: &TextStyle,
) -> String {
    let mut out = format!("({})=(", names.join(", "));
    for (position, (value, data_type)) in values.iter().zip(types).enumerate() {
        if position > 0 {
            out.push_str(", ");
        }
        out.push_str(&value_text(value, data_type, style));
    }
    out.push(')');
    out
}

/// Returns `null value in column "b" of relation "t" violates not-null constraint`. `failing_row`
/// is the text that [`failing_row`] returns.
pub fn not_null(table: &TableName, column: &str, failing_row: String) -> Veto {
    Veto {
        coprocessor: CONSTRAINT.to_owned(),
        code: types::sqlstate::NOT_NULL_VIOLATION.to_owned(),
        message: format!(
            "null value in column \"{column}\" of relation \"{}\" violates not-null constraint",
            table.name
        ),
        detail: failing_row,
        schema: table.schema.clone(),
        table: table.name.clone(),
        column: column.to_owned(),
        ..Veto::default()
    }
}

/// Returns `new row for relation "t" violates check constraint "t_b_check"`. `failing_row` is the
/// text that [`failing_row`] returns.
pub fn check(table: &TableName, constraint: &str, failing_row: String) -> Veto {
    Veto {
        coprocessor: CONSTRAINT.to_owned(),
        code: types::sqlstate::CHECK_VIOLATION.to_owned(),
        message: format!(
            "new row for relation \"{}\" violates check constraint \"{constraint}\"",
            table.name
        ),
        detail: failing_row,
        constraint: constraint.to_owned(),
        schema: table.schema.clone(),
        table: table.name.clone(),
        ..Veto::default()
    }
}

/// Returns the veto for a value error, with the error's SQLSTATE.
pub fn value_veto(coprocessor: &str, error: types::Error) -> Veto {
    Veto {
        coprocessor: coprocessor.to_owned(),
        code: error.sqlstate.to_owned(),
        message: error.message,
        detail: error.detail.unwrap_or_default(),
        ..Veto::default()
    }
}

/// Returns the store error for a value error, with the value error's SQLSTATE.
pub fn value_error(coprocessor: &str, error: types::Error) -> store::Error {
    store::Error::Vetoed(Box::new(value_veto(coprocessor, error)))
}

/// Returns `Failing row contains (1, null, x).`, with each value cut at 64 bytes.
pub fn failing_row(types: &[DataType], values: &[Datum], style: &TextStyle) -> String {
    format!("Failing row contains ({}).", short_values(types.iter().zip(values), style))
}

/// Returns `(a, b)=(1, x)`, as [`key_text`] does, with each value cut at 64 bytes.
pub fn short_text<'v>(
    names: &[String],
    values: impl Iterator<Item = (&'v DataType, &'v Datum)>,
    style: &TextStyle,
) -> String {
    format!("({})=({})", names.join(", "), short_values(values, style))
}

/// Returns a list of values, each cut at 64 bytes.
fn short_values<'v>(
    values: impl Iterator<Item = (&'v DataType, &'v Datum)>,
    style: &TextStyle,
) -> String {
    let mut out = String::new();
    for (position, (data_type, value)) in values.enumerate() {
        if position > 0 {
            out.push_str(", ");
        }
        let text = value_text(value, data_type, style);
        if text.len() > SHORT_VALUE_BYTES {
            out.push_str(&text[..text.floor_char_boundary(SHORT_VALUE_BYTES)]);
            out.push_str("...");
        } else {
            out.push_str(&text);
        }
    }
    out
}

fn value_text(value: &Datum, data_type: &DataType, style: &TextStyle) -> String {
    if matches!(value, Datum::Null) {
        return "null".to_owned();
    }
    let mut out = Vec::new();
    text::write_short(value, data_type, style, &mut out);
    String::from_utf8_lossy(&out).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn text(value: &str) -> Datum {
        Datum::Text(value.into())
    }

    #[test]
    fn duplicate_key_error_matches_postgresql() {
        let table = TableName { schema: "s".to_owned(), name: "t".to_owned() };
        let key = DuplicateKey {
            constraint: "t_pkey",
            table: &table,
            key_names: &["a", "b"],
            key_types: &[DataType::Int4, DataType::Text],
            values: &[Datum::Int4(1), text("x")],
            style: &TextStyle::default(),
        };
        let veto = key.exists_veto("t_pkey");
        assert_eq!(veto.code, "23505");
        assert_eq!((&*veto.schema, &*veto.table), ("s", "t"));
        assert_eq!(veto.message, "duplicate key value violates unique constraint \"t_pkey\"");
        assert_eq!(veto.detail, "Key (a, b)=(1, x) already exists.");
        let veto = key.duplicated_veto("t_pkey");
        assert_eq!(veto.message, "could not create unique index \"t_pkey\"");
        assert_eq!(veto.detail, "Key (a, b)=(1, x) is duplicated.");
    }

    #[test]
    fn failing_row_values_are_truncated_at_64_bytes() {
        let types = [DataType::Int4, DataType::Text, DataType::Text, DataType::Text];
        let long = format!("{}é!", "a".repeat(63));
        let exact = "b".repeat(64);
        let values = [Datum::Int4(1), Datum::Null, text(&long), text(&exact)];
        assert_eq!(
            failing_row(&types, &values, &TextStyle::default()),
            format!("Failing row contains (1, null, {}..., {exact}).", "a".repeat(63))
        );
    }
}
