//! Encoder of COPY … TO STDOUT: rows to bytes in text, CSV or binary format.

use sql::session::CopyFormat;
use types::binary;
use types::interruptible::InterruptPacer;
use types::text::TextStyle;
use types::{Batch, DataType};

use crate::vector_text;

/// Appends one row of a batch. `value` is a reusable buffer for one value.
///
/// # Errors
///
/// `57014` if the interrupt flag of the style is set during a long conversion; likewise below.
pub fn write_row(
    format: &CopyFormat,
    types: &[DataType],
    (batch, row): (&Batch, usize),
    style: &TextStyle,
    value: &mut Vec<u8>,
    out: &mut Vec<u8>,
) -> types::Result<()> {
    let mut pace = InterruptPacer::new(&style.interrupt);
    for (position, (column, data_type)) in batch.columns.iter().zip(types).enumerate() {
        if position > 0 {
            out.push(format.delimiter);
        }
        if column.is_null(row) {
            out.extend_from_slice(format.null.as_bytes());
            continue;
        }
        value.clear();
        vector_text::write(column, row, data_type, style, value)?;
        let quote = format.forced.quote.get(position) == Some(&true);
        write_field(format, quote, value, &mut pace, out)?;
    }
    out.push(b'\n');
    Ok(())
}

/// Appends one row of a batch in binary form: the number of fields, then the length-prefixed
/// fields.
pub fn write_binary(
    types: &[DataType],
    (batch, row): (&Batch, usize),
    style: &TextStyle,
    out: &mut Vec<u8>,
) -> types::Result<()> {
    let mut pace = InterruptPacer::new(&style.interrupt);
    out.extend_from_slice(&(types.len() as u16).to_be_bytes());
    for (column, data_type) in batch.columns.iter().zip(types) {
        let at = out.len();
        out.extend_from_slice(&(-1_i32).to_be_bytes());
        if column.is_null(row) {
            continue;
        }
        let value = column.datum_at(row, &mut pace)?;
        binary::write(&value, data_type, style.encoding, &mut pace, out)?;
        let length = (out.len() - at - 4) as i32;
        out[at..at + 4].copy_from_slice(&length.to_be_bytes());
    }
    Ok(())
}

/// Appends the header line.
pub fn write_header(format: &CopyFormat, names: &[&str], out: &mut Vec<u8>) {
    for (position, name) in names.iter().enumerate() {
        if position > 0 {
            out.push(format.delimiter);
        }
        write_field(format, false, name.as_bytes(), &mut InterruptPacer::without_interrupt(), out)
            .expect("there is no flag to be set");
    }
    out.push(b'\n');
}

/// Appends a value. With `quote` it is always quoted, otherwise if it must be.
fn write_field(
    format: &CopyFormat,
    quote: bool,
    value: &[u8],
    pace: &mut InterruptPacer<'_>,
    out: &mut Vec<u8>,
) -> types::Result<()> {
    if !format.csv {
        for byte in value {
            pace.step(out, 1)?;
            let escape = match byte {
                0x8 => b'b',
                0xb => b'v',
                0xc => b'f',
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' => b't',
                b'\\' => b'\\',
                other if *other == format.delimiter => *other,
                other => {
                    out.push(*other);
                    continue;
                }
            };
            out.extend_from_slice(&[b'\\', escape]);
        }
        return Ok(());
    }
    let special = |byte: &u8| {
        *byte == format.delimiter || *byte == format.quote || matches!(byte, b'\n' | b'\r')
    };
    // A value equal to the NULL string or the end marker is quoted.
    let is_marker = value == b"\\." && format.column_count == 1;
    let plain = !value.iter().any(special) && value != format.null.as_bytes() && !is_marker;
    if plain && !quote {
        return pace.append(out, value);
    }
    out.push(format.quote);
    for byte in value {
        pace.step(out, 1)?;
        if *byte == format.quote || *byte == format.escape {
            out.push(format.escape);
        }
        out.push(*byte);
    }
    out.push(format.quote);
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::session::ColumnOptions;

    fn format(csv: bool) -> CopyFormat {
        CopyFormat {
            csv,
            binary: false,
            delimiter: if csv { b',' } else { b'\t' },
            null: if csv { "" } else { "\\N" }.to_owned(),
            header: false,
            encoding: None,
            quote: b'"',
            escape: b'"',
            column_count: 1,
            forced: ColumnOptions::default(),
        }
    }

    fn field(csv: bool, value: &str) -> String {
        let mut out = Vec::new();
        write_field(
            &format(csv),
            false,
            value.as_bytes(),
            &mut InterruptPacer::without_interrupt(),
            &mut out,
        )
        .unwrap();
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn fields_are_escaped_by_format() {
        assert_eq!(field(false, "a\tb\\N\n"), "a\\tb\\\\N\\n");
        assert_eq!(field(true, "plain"), "plain");
        assert_eq!(field(true, "say \"hi\", twice"), "\"say \"\"hi\"\", twice\"");
        assert_eq!(field(true, ""), "\"\"");
    }
}
