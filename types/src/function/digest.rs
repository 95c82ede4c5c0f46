//! Digests of bytes: `md5` and the SHA-2 family.

use sha2::{Digest, Sha224, Sha256, Sha384, Sha512};

use super::argument::{bytea, bytea_datum, text, text_datum};
use super::encoding::hex;
use super::{Row, row};
use crate::datatype::DataType::{Bytea, Text};

/// The rows of this family.
pub(super) const FUNCTIONS: &[Row] = &[
    row("md5", &[Text], Text, |a, _| Ok(text_datum(hex(&md5::compute(text(&a[0])).0)))),
    row("md5", &[Bytea], Text, |a, _| Ok(text_datum(hex(&md5::compute(bytea(&a[0])).0)))),
    row("sha224", &[Bytea], Bytea, |a, _| Ok(bytea_datum(&Sha224::digest(bytea(&a[0]))[..]))),
    row("sha256", &[Bytea], Bytea, |a, _| Ok(bytea_datum(&Sha256::digest(bytea(&a[0]))[..]))),
    row("sha384", &[Bytea], Bytea, |a, _| Ok(bytea_datum(&Sha384::digest(bytea(&a[0]))[..]))),
    row("sha512", &[Bytea], Bytea, |a, _| Ok(bytea_datum(&Sha512::digest(bytea(&a[0]))[..]))),
];
