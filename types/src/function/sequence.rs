//! Sequences: `nextval()` and its kin. What they do, the session gives ([`SequenceSource`]).
//!
//! [`SequenceSource`]: crate::context::SequenceSource

use super::argument::{int8, text};
use super::{Row, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{Bool, Int8, Text};
use crate::datum::Datum;
use crate::error::Result;

/// The rows of this family.
pub(super) const FUNCTIONS: &[Row] = &[
    row("nextval", &[Text], Int8, |arguments, context| {
        Ok(Datum::Int8(context.sequences.source()?.next(text(&arguments[0]))?))
    })
    .volatile(),
    row("currval", &[Text], Int8, |arguments, context| {
        Ok(Datum::Int8(context.sequences.source()?.current(text(&arguments[0]))?))
    })
    .volatile(),
    row("lastval", &[], Int8, |_, context| Ok(Datum::Int8(context.sequences.source()?.last()?)))
        .volatile(),
    row("setval", &[Text, Int8], Int8, |arguments, context| set(arguments, true, context))
        .volatile(),
    row("setval", &[Text, Int8, Bool], Int8, |arguments, context| {
        set(arguments, arguments[2] == Datum::Bool(true), context)
    })
    .volatile(),
];

fn set(arguments: &[Datum], is_called: bool, context: &EvalContext) -> Result<Datum> {
    let value = int8(&arguments[1]);
    context.sequences.source()?.set(text(&arguments[0]), value, is_called)?;
    Ok(Datum::Int8(value))
}
