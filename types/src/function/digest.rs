//! Hash functions of bytes: `md5` and the SHA-2 family.

use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::argument::{bytea, bytea_datum, text, text_datum};
use super::encoding::hex;
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Bytea, Text};
use crate::datum::Datum;
use crate::error::Result;
use crate::interruptible::chunks;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("md5", &[Text], Text, |a, c| md5(text(&a[0]).as_bytes(), c)),
    row("md5", &[Bytea], Text, |a, c| md5(bytea(&a[0]), c)),
    row("sha224", &[Bytea], Bytea, |a, c| digest(Sha224::new(), a, c)),
    row("sha256", &[Bytea], Bytea, |a, c| digest(Sha256::new(), a, c)),
    row("sha384", &[Bytea], Bytea, |a, c| digest(Sha384::new(), a, c)),
    row("sha512", &[Bytea], Bytea, |a, c| digest(Sha512::new(), a, c)),
];

fn md5(bytes: &[u8], context: &EvalContext) -> Result<Datum> {
    let (mut state, mut pace) = (md5::Context::new(), context.pace());
    for piece in chunks(bytes) {
        state.consume(piece);
        pace.count_steps(piece.len())?;
    }
    Ok(text_datum(hex(&state.finalize().0)))
}

fn digest(mut state: impl Digest, arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let mut pace = context.pace();
    for piece in chunks(bytea(&arguments[0])) {
        state.update(piece);
        pace.count_steps(piece.len())?;
    }
    Ok(bytea_datum(&state.finalize()[..]))
}
