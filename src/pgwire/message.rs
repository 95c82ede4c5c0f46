//! Messages of the server, appended to an output buffer.
//!
//! Messages with text are written here, in the encoding of the client; the others are those of
//! the `pgwire` crate. Rows have their own encoder (`row`).

use bytes::BytesMut;
use pgwire::messages::Message;
use pgwire::messages::data::ParameterDescription;
use sql::Error;
use sql::logical::OutputColumn;
use sql::notifications::Notification;
use sql::session::{Notice, PreparedStatement};
use types::encoding::Encoding;
use types::interruptible::InterruptPacer;

use crate::pgwire::row::Formats;

/// Severity of an error.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Severity {
    /// The statement has failed.
    Error,
    /// The connection ends.
    Fatal,
}

/// The output buffer: whole messages that were not sent yet.
#[derive(Default)]
pub(crate) struct Output {
    /// The bytes.
    pub(crate) bytes: Vec<u8>,
    /// The encoding of the client's text.
    pub(crate) encoding: &'static Encoding,
    /// Buffer of the codec for one message.
    message: BytesMut,
}

impl Output {
    /// Appends a message of the codec.
    pub(crate) fn put(&mut self, message: &impl Message) {
        self.message.clear();
        match message.encode(&mut self.message) {
            Ok(()) => self.bytes.extend_from_slice(&self.message),
            // The codec rejects only messages that exceed the clients' limit.
            Err(error) => tracing::error!(%error, "could not encode a message; it is not sent"),
        }
    }

    /// Appends an error.
    pub(crate) fn put_error(&mut self, severity: Severity, error: &Error) {
        let severity = match severity {
            Severity::Error => "ERROR",
            Severity::Fatal => "FATAL",
        };
        self.put_fields(b'E', fields(severity, error));
    }

    /// Appends a notice.
    pub(crate) fn put_notice(&mut self, notice: &Notice) {
        self.put_fields(b'N', fields(notice.severity, &notice.error));
    }

    fn put_fields(&mut self, kind: u8, fields: Vec<(u8, String)>) {
        let start = self.begin(kind);
        for (letter, text) in fields {
            self.bytes.push(letter);
            self.put_text(&text);
        }
        self.bytes.push(0);
        self.end(start);
    }

    /// Appends the type of a message and space for its length. Returns its offset.
    fn begin(&mut self, kind: u8) -> usize {
        self.bytes.extend_from_slice(&[kind, 0, 0, 0, 0]);
        self.bytes.len() - 5
    }

    /// Fills in the length of the message at an offset.
    fn end(&mut self, start: usize) {
        debug_assert!(self.bytes.len() >= start + 5, "the message at {start} was begun");
        let length = (self.bytes.len() - start - 1) as u32;
        self.bytes[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    }

    /// Appends text and a terminator. Characters that the client's encoding lacks become `?`:
    /// errors must be delivered in any case.
    fn put_text(&mut self, text: &str) {
        match self.encoding.is_utf8() {
            true => self.bytes.extend_from_slice(text.as_bytes()),
            false => self.bytes.extend_from_slice(&self.encoding.encode_lossy(text)),
        }
        self.bytes.push(0);
    }

    /// Appends ParameterStatus for a setting.
    pub(crate) fn put_parameter_status(&mut self, name: &str, value: &str) {
        let start = self.begin(b'S');
        self.put_text(name);
        self.put_text(value);
        self.end(start);
    }

    /// Appends NotificationResponse.
    pub(crate) fn put_notification(&mut self, notification: &Notification) {
        let start = self.begin(b'A');
        self.bytes.extend_from_slice(&notification.sender.to_be_bytes());
        self.put_text(&notification.channel);
        self.put_text(&notification.payload);
        self.end(start);
    }

    /// Appends the columns of a result, with the OIDs of their tables and their column numbers.
    ///
    /// # Errors
    ///
    /// 22P05 if the client's encoding lacks a character of a name. Nothing is appended then.
    pub(crate) fn put_row_description(
        &mut self,
        columns: &[OutputColumn],
        origins: &[(u32, i16)],
        formats: &Formats,
    ) -> sql::Result<()> {
        debug_assert_eq!(columns.len(), origins.len(), "an origin for each column");
        let start = self.begin(b'T');
        self.bytes.extend_from_slice(&(columns.len() as u16).to_be_bytes());
        for (position, (column, &(table, number))) in columns.iter().zip(origins).enumerate() {
            let name = self.bytes.len();
            self.bytes.extend_from_slice(column.name.as_bytes());
            let encoded = self.encoding.encode_tail(
                &mut self.bytes,
                name,
                &mut InterruptPacer::without_interrupt(),
            );
            if let Err(error) = encoded {
                self.bytes.truncate(start);
                return Err(error.into());
            }
            self.bytes.push(0);
            let sql_type = &column.sql_type;
            self.bytes.extend_from_slice(&table.to_be_bytes());
            self.bytes.extend_from_slice(&number.to_be_bytes());
            self.bytes.extend_from_slice(&sql_type.wire_oid().to_be_bytes());
            self.bytes.extend_from_slice(&sql_type.base.length().to_be_bytes());
            self.bytes.extend_from_slice(&sql_type.wire_modifier().to_be_bytes());
            self.bytes.extend_from_slice(&formats.at(position).code().to_be_bytes());
        }
        self.end(start);
        Ok(())
    }

    /// Appends the parameter types of a statement.
    pub(crate) fn put_parameter_description(&mut self, prepared: Option<&PreparedStatement>) {
        let types = prepared.map_or(&[][..], |prepared| &prepared.parameter_types);
        let oids = types.iter().map(|data_type| data_type.oid()).collect();
        self.put(&ParameterDescription::new(oids));
    }
}

/// Returns the fields of an error or notice with their field codes.
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
        (b'p', error.internal.as_ref().map(|internal| internal.0.to_string())),
        (b'q', error.internal.as_ref().map(|internal| internal.1.clone())),
        (b'W', error.context.clone()),
        (b's', schema),
        (b't', error.table.clone()),
        (b'c', error.column.clone()),
        (b'd', domain.map(|(_, name)| name.clone())),
        (b'n', error.constraint.clone()),
        (b'F', error.raised_at.map(|place| place.file.to_owned())),
        (b'L', error.raised_at.map(|place| place.line.to_string())),
        (b'R', error.raised_at.map(|place| place.routine.to_owned())),
    ];
    let present = |(letter, text): (u8, Option<String>)| text.map(|text| (letter, text));
    all.into_iter()
        .filter_map(present)
        .map(|(letter, text)| {
            // A NUL from quoted data would terminate the field.
            let text = if text.contains('\0') { text.replace('\0', "\u{fffd}") } else { text };
            (letter, text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use sql::error::SourceLocation;

    #[test]
    fn errors_carry_all_their_fields() {
        let error = Error {
            position: Some(8),
            schema: Some("s".to_owned()),
            table: Some("t".to_owned()),
            raised_at: Some(&SourceLocation { file: "a.rs", line: 3, routine: "Routine" }),
            constraint: Some("t_pkey".to_owned()),
            context: Some("COPY t, line 1: \"a\0b\"".to_owned()),
            ..Error::new("23505", "duplicate key")
        };
        let mut output = Output::default();
        output.put_error(Severity::Error, &error);
        let text = String::from_utf8_lossy(&output.bytes[5..]).replace('\0', "|");
        assert_eq!(
            text,
            "SERROR|VERROR|C23505|Mduplicate key|P8|WCOPY t, line 1: \"a\u{fffd}b\"|ss|tt|nt_pkey|Fa.rs|L3|RRoutine||"
        );
        assert_eq!(output.bytes[0], b'E');
        let length = u32::from_be_bytes(output.bytes[1..5].try_into().unwrap());
        assert_eq!(length as usize, output.bytes.len() - 1);
    }

    #[test]
    fn messages_use_client_encoding() {
        let latin = Encoding::by_name("latin1").unwrap();
        let mut output = Output { encoding: latin, ..Output::default() };
        output.put_error(Severity::Error, &Error::new("22012", "é€"));
        assert_eq!(output.bytes, b"E\0\0\0\x1eSERROR\0VERROR\0C22012\0M\xe9?\0\0");
        output.bytes.clear();
        let column = |name: &str| OutputColumn {
            name: name.to_owned(),
            sql_type: types::DataType::Int4.into(),
            origin: None,
        };
        let formats = Formats::default();
        output.put_row_description(&[column("é")], &[(7, 2)], &formats).unwrap();
        let described =
            b"T\0\0\0\x1a\0\x01\xe9\0\0\0\0\x07\0\x02\0\0\0\x17\0\x04\xff\xff\xff\xff\0\0";
        assert_eq!(output.bytes, described);
        let refused = output.put_row_description(&[column("€")], &[(0, 0)], &formats);
        assert_eq!(refused.unwrap_err().sqlstate, "22P05");
        assert_eq!(output.bytes, described);
    }

    #[test]
    fn parameter_status_accepts_any_length() {
        let mut output = Output::default();
        output.put_parameter_status("application_name", &"x".repeat(40_000));
        assert_eq!(output.bytes.len(), 1 + 4 + 17 + 40_001);
        assert_eq!(output.bytes[1..5], (40_022_u32).to_be_bytes());
    }
}
