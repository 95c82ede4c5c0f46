//! Input of COPY … FROM STDIN: passes data in any format through its decoder to the table.

use sql::Error;
use sql::session::CopyIn;
use types::encoding::Encoding;

use crate::copy::binary::BinaryDecoder;
use crate::copy::decode::Decoder;

/// Decoder of the data of one COPY, which passes rows to a [`CopyIn`].
pub enum CopyDecoder {
    /// Text or CSV.
    Fields(Box<Decoder>, Conversion),
    /// The binary format.
    Binary(BinaryDecoder),
}

/// Conversion of data in a client encoding to UTF-8.
pub struct Conversion {
    encoding: &'static Encoding,
    /// The first bytes of an incomplete character.
    cut: Vec<u8>,
}

impl Conversion {
    /// Converts the next bytes and passes on the valid prefix.
    fn push(
        &mut self,
        bytes: &[u8],
        take: &mut dyn FnMut(&[u8]) -> sql::Result<()>,
    ) -> sql::Result<()> {
        if self.encoding.is_utf8() {
            return take(bytes);
        }
        self.cut.extend_from_slice(bytes);
        let whole = self.encoding.whole_length(&self.cut);
        let (text, error) = self.encoding.decode_prefix(&self.cut[..whole]);
        take(text.as_bytes())?;
        if let Some(error) = error {
            return Err(error.into());
        }
        self.cut.drain(..whole);
        Ok(())
    }

    /// Returns an error if the data ends within a character.
    fn finish(&self) -> sql::Result<()> {
        self.encoding.decode(&self.cut)?;
        Ok(())
    }
}

impl CopyDecoder {
    /// Creates the input of a COPY at the start of its data.
    pub fn of(copy: &CopyIn) -> CopyDecoder {
        match copy.format.binary {
            true => CopyDecoder::Binary(BinaryDecoder::default()),
            false => {
                let conversion = Conversion { encoding: copy.encoding(), cut: Vec::new() };
                CopyDecoder::Fields(Box::new(Decoder::new(copy.format.clone())), conversion)
            }
        }
    }

    /// Decodes the next bytes.
    ///
    /// # Errors
    ///
    /// Those of malformed data, and of a completed row, with its line.
    pub fn push(&mut self, bytes: &[u8], copy: &mut CopyIn) -> sql::Result<()> {
        let result = match self {
            CopyDecoder::Fields(decoder, conversion) => conversion.push(bytes, &mut |bytes| {
                decoder.push(bytes, &mut |line, fields| copy.push_row(line, fields))
            }),
            CopyDecoder::Binary(decoder) => {
                decoder.push(bytes, &mut |row, fields| copy.push_binary(row, fields))
            }
        };
        result.map_err(|error| self.with_line_context(error, copy))
    }

    /// Ends the data.
    ///
    /// # Errors
    ///
    /// As of [`CopyDecoder::push`].
    pub fn finish(self, copy: &mut CopyIn) -> sql::Result<()> {
        match self {
            CopyDecoder::Fields(mut decoder, conversion) => {
                let result = conversion
                    .finish()
                    .and_then(|()| decoder.finish(&mut |line, fields| copy.push_row(line, fields)));
                result.map_err(|error| {
                    CopyDecoder::Fields(decoder, conversion).with_line_context(error, copy)
                })
            }
            CopyDecoder::Binary(decoder) => match decoder.row() {
                Some(row) => decoder.finish().map_err(|error| copy.located(error, row)),
                None => decoder.finish(),
            },
        }
    }

    /// Returns an error whose CONTEXT has the current line and its text.
    pub fn with_line_context(&self, error: Error, copy: &CopyIn) -> Error {
        match self {
            CopyDecoder::Binary(decoder) => match decoder.row() {
                Some(row) => copy.located(error, row),
                None => error,
            },
            CopyDecoder::Fields(decoder, _) => {
                let mut error = copy.located(error, decoder.line());
                if let (Some(context), Some(text)) = (&mut error.context, decoder.failed())
                    && context.ends_with(&format!(", line {}", decoder.line()))
                {
                    context.push_str(&format!(": \"{text}\""));
                }
                error
            }
        }
    }
}
