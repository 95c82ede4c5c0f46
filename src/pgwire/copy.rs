//! COPY in the wire protocol: CopyData messages in both directions.

use pgwire::messages::PgWireFrontendMessage as Message;
use pgwire::messages::copy::{CopyDone, CopyInResponse, CopyOutResponse};
use sql::Error;
use sql::session::rows::{Completion, ResultRows};
use sql::session::{CopyFormat, CopyIn};
use types::DataType;
use types::interruptible::InterruptPacer;

use crate::copy::binary::{END, HEADER};
use crate::copy::encode;
use crate::copy::input::CopyDecoder;
use crate::pgwire::connection::Connection;
use crate::pgwire::failure::{Failure, Result, run};
use crate::pgwire::frame::Frame;

impl Connection {
    /// Receives the rows of COPY … FROM STDIN.
    pub(super) fn copy_in(&mut self, mut copy: Box<CopyIn>) -> Result<Completion> {
        let columns = i16::try_from(copy.format.column_count).unwrap_or(i16::MAX);
        let code = i8::from(copy.format.binary);
        let formats = vec![i16::from(code); copy.format.column_count];
        self.channel.output().put(&CopyInResponse::new(code, columns, formats));
        self.channel.flush()?;
        let mut input = CopyDecoder::of(&copy);
        loop {
            match self.next_message()? {
                Some(Frame::Unreadable { error, .. }) => return Err(Error::from(error).into()),
                Some(Frame::Message(Message::CopyData(data))) => {
                    self.session.check_stopped()?;
                    run(|| input.push(&data.data, &mut copy))?;
                }
                Some(Frame::Message(Message::CopyDone(_))) => break,
                Some(Frame::Message(Message::CopyFail(fail))) => {
                    let error = err!(QUERY_CANCELED: "COPY from stdin failed: {}", fail.message);
                    return Err(input.with_line_context(error, &copy).into());
                }
                // Clients may send these messages at any time.
                Some(Frame::Message(Message::Flush(_) | Message::Sync(_))) => {}
                Some(_) => {
                    return Err(
                        err!(PROTOCOL_VIOLATION: "unexpected message during COPY from stdin")
                            .into(),
                    );
                }
                None => return Err(Failure::Gone(std::io::ErrorKind::UnexpectedEof.into())),
            }
        }
        run(|| {
            input.finish(&mut copy)?;
            self.session.finish_copy(*copy)
        })
    }

    /// Sends the rows of COPY … TO STDOUT, one per message.
    pub(super) fn copy_out(
        &mut self,
        mut rows: ResultRows,
        format: &CopyFormat,
    ) -> Result<Completion> {
        let count = rows.columns().len();
        let columns = i16::try_from(count).unwrap_or(i16::MAX);
        let code = i8::from(format.binary);
        let formats = vec![i16::from(code); count];
        self.channel.output().put(&CopyOutResponse::new(code, columns, formats));
        let types: Vec<DataType> =
            rows.columns().iter().map(|column| column.sql_type.base.clone()).collect();
        let style = rows.style(self.session.text_style());
        let encoding = format.encoding.unwrap_or(style.encoding);
        if format.header {
            let names: Vec<&str> =
                rows.columns().iter().map(|column| column.name.as_str()).collect();
            put_copy_data(&mut self.channel.output().bytes, |out| {
                let start = out.len();
                encode::write_header(format, &names, out);
                encoding.encode_tail(out, start, &mut InterruptPacer::without_interrupt())
            })?;
        }
        // As in PostgreSQL, one message has the header and the first row (or the end): clients
        // strip the header from the first message.
        let mut header: &[u8] = if format.binary { &HEADER } else { &[] };
        let mut value = Vec::new();
        let mut row_count: u64 = 0;
        while let Some(batch) = run(|| rows.next_batch(usize::MAX))? {
            for row in 0..batch.row_count {
                let row = (&batch, row);
                let written = put_copy_data(&mut self.channel.output().bytes, |out| {
                    out.extend_from_slice(std::mem::take(&mut header));
                    if format.binary {
                        return encode::write_binary(&types, row, &style, out);
                    }
                    let start = out.len();
                    encode::write_row(format, &types, row, &style, &mut value, out)?;
                    encoding.encode_tail(out, start, &mut InterruptPacer::new(&style.interrupt))
                });
                written.map_err(|error| rows.failure(error))?;
                self.channel.flush_if_full()?;
            }
            row_count += batch.row_count as u64;
        }
        if format.binary {
            put_copy_data(&mut self.channel.output().bytes, |out| {
                out.extend_from_slice(header);
                out.extend_from_slice(&END);
                Ok(())
            })?;
        }
        self.channel.output().put(&CopyDone::new());
        Ok(Completion::new(format!("COPY {row_count}")))
    }
}

/// Appends a CopyData message with the output of `write`; nothing if `write` fails.
fn put_copy_data(
    out: &mut Vec<u8>,
    write: impl FnOnce(&mut Vec<u8>) -> types::Result<()>,
) -> sql::Result<()> {
    let start = out.len();
    out.extend_from_slice(&[b'd', 0, 0, 0, 0]);
    if let Err(error) = write(out) {
        out.truncate(start);
        return Err(error.into());
    }
    let length = (out.len() - start - 1) as u32;
    out[start + 1..start + 5].copy_from_slice(&length.to_be_bytes());
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn copy_data_is_framed() {
        let mut out = b"before".to_vec();
        let put = |out: &mut Vec<u8>| {
            out.extend_from_slice(b"1\t2\n");
            Ok(())
        };
        put_copy_data(&mut out, put).unwrap();
        assert_eq!(out, b"befored\0\0\0\x081\t2\n");
    }
}
