//! JSON text of rows, for log tables and `cells`: `{"id": 7, "note": null, "at": "2024-02-29"}`.

use types::DataType;
use types::Datum;
use types::text::{self, TextStyle};

/// Appends a JSON object of columns: name, type and value of each, in order. Numbers and booleans
/// become JSON numbers and booleans, NULL becomes `null`, and other values become strings of
/// their SQL text (times in UTC).
pub fn write_object<'a>(
    columns: impl Iterator<Item = (&'a str, &'a DataType, &'a Datum)>,
    out: &mut String,
) {
    out.push('{');
    for (position, (name, data_type, value)) in columns.enumerate() {
        if position > 0 {
            out.push_str(", ");
        }
        write_string(name, out);
        out.push_str(": ");
        write_value(data_type, value, out);
    }
    out.push('}');
}

fn write_value(data_type: &DataType, value: &Datum, out: &mut String) {
    if value.is_null() {
        out.push_str("null");
        return;
    }
    let mut shown = Vec::new();
    text::write_short(value, data_type, &TextStyle::default(), &mut shown);
    let shown = String::from_utf8_lossy(&shown);
    match value {
        Datum::Bool(true) => out.push_str("true"),
        Datum::Bool(false) => out.push_str("false"),
        // JSON has no numbers for infinities and NaN.
        Datum::Float4(number) if !number.is_finite() => write_string(&shown, out),
        Datum::Float8(number) if !number.is_finite() => write_string(&shown, out),
        Datum::Numeric(number) if !number.is_finite() => write_string(&shown, out),
        Datum::Int2(_)
        | Datum::Int4(_)
        | Datum::Int8(_)
        | Datum::Float4(_)
        | Datum::Float8(_)
        | Datum::Numeric(_) => out.push_str(&shown),
        _ => write_string(&shown, out),
    }
}

fn write_string(value: &str, out: &mut String) {
    out.push('"');
    for character in value.chars() {
        match character {
            '"' => out.push_str("\\\""),
            '\\' => out.push_str("\\\\"),
            '\n' => out.push_str("\\n"),
            '\r' => out.push_str("\\r"),
            '\t' => out.push_str("\\t"),
            control if control < ' ' => out.push_str(&format!("\\u{:04x}", u32::from(control))),
            other => out.push(other),
        }
    }
    out.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use types::numeric::Numeric;

    #[test]
    fn row_values_are_rendered_as_json() {
        let values = [
            ("a \"b\"", DataType::Int4, Datum::Int4(-7)),
            ("n", DataType::Numeric, Datum::Numeric(Numeric::from_mantissa(150, 2))),
            ("f", DataType::Float8, Datum::Float8(f64::NAN)),
            ("ok", DataType::Bool, Datum::Bool(true)),
            ("none", DataType::Text, Datum::Null),
            ("t", DataType::Text, Datum::text("a\\b\n\u{1}ü")),
            ("d", DataType::Date, Datum::Date(0)),
        ];
        let mut out = String::new();
        let columns = values.iter().map(|(name, data_type, value)| (*name, data_type, value));
        write_object(columns, &mut out);
        assert_eq!(
            out,
            "{\"a \\\"b\\\"\": -7, \"n\": 1.50, \"f\": \"NaN\", \"ok\": true, \"none\": null, \
             \"t\": \"a\\\\b\\n\\u0001ü\", \"d\": \"2000-01-01\"}"
        );
    }
}
