//! The text of records: `(1,"a b",)`.

use super::TextStyle;
use crate::datum::Record;

pub(super) fn write(record: &Record, style: &TextStyle, out: &mut Vec<u8>) {
    out.push(b'(');
    let mut text = Vec::new();
    for (index, (value, (_, data_type))) in
        record.values.iter().zip(record.fields.iter()).enumerate()
    {
        if index > 0 {
            out.push(b',');
        }
        if value.is_null() {
            continue;
        }
        text.clear();
        super::write(value, *data_type, style, &mut text);
        let special = |byte: &u8| {
            matches!(byte, b'"' | b'\\' | b'(' | b')' | b',' | 0x0b) || byte.is_ascii_whitespace()
        };
        if !text.is_empty() && !text.iter().any(special) {
            out.extend_from_slice(&text);
            continue;
        }
        out.push(b'"');
        for &byte in &text {
            if matches!(byte, b'"' | b'\\') {
                out.push(byte);
            }
            out.push(byte);
        }
        out.push(b'"');
    }
    out.push(b')');
}
