//! The data of COPY … FROM STDIN on its way to the table, in any format.

use sql::Error;
use sql::session::CopyIn;
use types::encoding::Encoding;

use crate::copy::binary::BinaryDecoder;
use crate::copy::decode::Decoder;

/// Takes data apart and gives its rows to a COPY.
pub enum Input {
    /// Text or CSV.
    Fields(Box<Decoder>, Conversion),
    /// The binary format.
    Binary(BinaryDecoder),
}

/// Data in an encoding on its way to UTF-8.
pub struct Conversion {
    encoding: &'static Encoding,
    /// The beginning of a character.
    cut: Vec<u8>,
}

impl Conversion {
    /// Converts the next bytes, and hands them on up to what is wrong with them.
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

    /// Fails if a character is not whole at the end of the data.
    fn finish(&self) -> sql::Result<()> {
        self.encoding.decode(&self.cut)?;
        Ok(())
    }
}

impl Input {
    /// Returns the input of a COPY at the start of its data.
    pub fn of(copy: &CopyIn) -> Input {
        match copy.format.binary {
            true => Input::Binary(BinaryDecoder::default()),
            false => {
                let conversion = Conversion { encoding: copy.encoding(), cut: Vec::new() };
                Input::Fields(Box::new(Decoder::new(copy.format.clone())), conversion)
            }
        }
    }

    /// Takes the next bytes.
    ///
    /// # Errors
    ///
    /// What is wrong with them, or with a row that they complete, with its line.
    pub fn push(&mut self, bytes: &[u8], copy: &mut CopyIn) -> sql::Result<()> {
        let result = match self {
            Input::Fields(decoder, conversion) => conversion.push(bytes, &mut |bytes| {
                decoder.push(bytes, &mut |line, fields| copy.push_row(line, fields))
            }),
            Input::Binary(decoder) => {
                decoder.push(bytes, &mut |row, fields| copy.push_binary(row, fields))
            }
        };
        result.map_err(|error| self.located(error, copy))
    }

    /// Ends the data.
    ///
    /// # Errors
    ///
    /// As of [`Input::push`].
    pub fn finish(self, copy: &mut CopyIn) -> sql::Result<()> {
        match self {
            Input::Fields(mut decoder, conversion) => {
                let result = conversion
                    .finish()
                    .and_then(|()| decoder.finish(&mut |line, fields| copy.push_row(line, fields)));
                result.map_err(|error| Input::Fields(decoder, conversion).located(error, copy))
            }
            Input::Binary(decoder) => match decoder.row() {
                Some(row) => decoder.finish().map_err(|error| copy.located(error, row)),
                None => decoder.finish(),
            },
        }
    }

    /// Returns an error with CONTEXT that names the line at hand, and shows it.
    pub fn located(&self, error: Error, copy: &CopyIn) -> Error {
        match self {
            Input::Binary(decoder) => match decoder.row() {
                Some(row) => copy.located(error, row),
                None => error,
            },
            Input::Fields(decoder, _) => {
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
