//! The server's messages, appended to an output buffer.
//!
//! Layouts are those of the `pgwire` crate; rows have an encoder of their own (`row`).

use bytes::BytesMut;
use pgwire::messages::Message;
use pgwire::messages::data::{FieldDescription, ParameterDescription, RowDescription};
use pgwire::messages::response::{ErrorResponse, NoticeResponse};
use sql::Error;
use sql::logical::OutputColumn;
use sql::session::{Notice, Prepared};

use crate::pgwire::row::Formats;

/// How bad an error is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The statement has failed.
    Error,
    /// The connection ends.
    Fatal,
}

/// The output buffer: whole messages, waiting to be sent.
#[derive(Default)]
pub(crate) struct Output {
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
    /// Where the codec writes one message.
    message: BytesMut,
}

impl Output {
    /// Appends a message of the codec.
    pub(crate) fn put(&mut self, message: &impl Message) {
        self.message.clear();
        match message.encode(&mut self.message) {
            Ok(()) => self.bytes.extend_from_slice(&self.message),
            // The codec refuses only what is longer than clients take.
            Err(error) => tracing::error!(%error, "a message is left out"),
        }
    }

    /// Appends an error.
    pub(crate) fn put_error(&mut self, severity: Severity, error: &Error) {
        let severity = match severity {
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
        };
        self.put(&ErrorResponse::new(fields(severity, error)));
    }

    /// Appends a notice.
    pub(crate) fn put_notice(&mut self, notice: &Notice) {
        self.put(&NoticeResponse::new(fields(notice.severity, &notice.error)));
    }

    /// Appends a setting that the client is to know of. The codec would refuse a long value.
    pub(crate) fn put_parameter_status(&mut self, name: &str, value: &str) {
        let length = 4 + name.len() + 1 + value.len() + 1;
        self.bytes.push(b'S');
        self.bytes.extend_from_slice(&(length as u32).to_be_bytes());
        for text in [name, value] {
            self.bytes.extend_from_slice(text.as_bytes());
            self.bytes.push(0);
        }
    }

    /// Appends the columns of a result, with the OIDs and numbers of the columns that they are.
    pub(crate) fn put_row_description(
        &mut self,
        columns: &[OutputColumn],
        origins: &[(u32, i16)],
        formats: &Formats,
    ) {
        let fields = columns.iter().zip(origins).enumerate();
        let fields = fields.map(|(position, (column, &(table, number)))| {
            let base = column.sql_type.base;
            FieldDescription::new(
                column.name.clone(),
                table as i32,
                number,
                column.sql_type.sent_oid(),
                base.length(),
                column.sql_type.sent_modifier(),
                formats.at(position).code(),
            )
        });
        self.put(&RowDescription::new(fields.collect()));
    }

    /// Appends the parameter types of a statement.
    pub(crate) fn put_parameter_description(&mut self, prepared: Option<&Prepared>) {
        let types = prepared.map_or(&[][..], |prepared| &prepared.parameter_types);
        let oids = types.iter().map(|data_type| data_type.oid()).collect();
        self.put(&ParameterDescription::new(oids));
    }
}

/// Returns the fields of an error or notice by their letters.
fn fields(severity: &str, error: &Error) -> Vec<(u8, String)> {
    let domain = error.data_type.as_deref();
    let schema = error.schema.clone().or_else(|| domain.map(|(schema, _)| schema.clone()));
    let all = [
        (b'S', Some(severity.to_owned())),
        (b'V', Some(severity.to_owned())),
        (b'C', Some(error.sqlstate.to_string())),
        (b'M', Some(error.message.clone())),
        (b'D', error.detail.clone()),
        (b'H', error.hint.clone()),
        (b'P', error.position.map(|position| position.to_string())),
        (b'W', error.context.clone()),
        (b's', schema),
        (b't', error.table.clone()),
        (b'c', error.column.clone()),
        (b'd', domain.map(|(_, name)| name.clone())),
        (b'n', error.constraint.clone()),
        (b'R', error.routine.map(str::to_owned)),
    ];
    let present = |(letter, text): (u8, Option<String>)| text.map(|text| (letter, text));
    all.into_iter()
        .filter_map(present)
        .map(|(letter, text)| {
            // A terminator within, from data that is quoted, would end the field.
            let text = if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
            (letter, text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_carry_all_their_fields() {
        let error = Error {
            position: Some(8),
            schema: Some("s".to_owned()),
            table: Some("t".to_owned()),
            routine: Some("Routine"),
            constraint: Some("t_pkey".to_owned()),
            context: Some("COPY t, line 1: \"a\0b\"".to_owned()),
            ..Error::new("23505", "duplicate key")
        };
        let mut output = Output::default();
        output.put_error(Severity::Error, &error);
        let text = String::from_utf8_lossy(&output.bytes[5..]).replace('\0', "|");
        assert_eq!(
            text,
            "SERROR|VERROR|C23505|Mduplicate key|P8|WCOPY t, line 1: \"a\u{fffd}b\"|ss|tt|nt_pkey|RRoutine||"
        );
        assert_eq!(output.bytes[0], b'E');
        let length = u32::from_be_bytes(output.bytes[1..5].try_into().unwrap());
        assert_eq!(length as usize, output.bytes.len() - 1);
    }

    #[test]
    fn parameter_status_takes_any_length() {
        let mut output = Output::default();
        output.put_parameter_status("application_name", &"x".repeat(40_000));
        assert_eq!(output.bytes.len(), 1 + 4 + 17 + 40_001);
        assert_eq!(output.bytes[1..5], (40_022_u32).to_be_bytes());
    }
}
