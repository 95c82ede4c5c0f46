//! Sequence functions: `nextval()` and related ones. The session implements them
//! ([`SequenceSource`]).
//!
//! [`SequenceSource`]: crate::context::SequenceSource

use std::borrow::Cow;

use super::argument::{int8, text};
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{self, Bool, Int8, Text};
use crate::datatype::RegKind;
use crate::datum::Datum;
use crate::error::Result;

const CLASS: DataType = DataType::Reg(RegKind::Class);

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    row("nextval", &[Text], Int8, |arguments, context| {
        Ok(Datum::Int8(context.sequences.source()?.next(text(&arguments[0]))?))
    })
    .volatile(),
    row("nextval", &[CLASS], Int8, |arguments, context| {
        Ok(Datum::Int8(context.sequences.source()?.next(&name(&arguments[0], context)?)?))
    })
    .volatile(),
    row("nextval", &[Text, Int8], Int8, next_block).volatile(),
    row("nextval", &[CLASS, Int8], Int8, next_block).volatile(),
    row("currval", &[CLASS], Int8, |arguments, context| {
        Ok(Datum::Int8(context.sequences.source()?.current(&name(&arguments[0], context)?)?))
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
    row("setval", &[CLASS, Int8], Int8, |arguments, context| set(arguments, true, context))
        .volatile(),
    row("setval", &[CLASS, Int8, Bool], Int8, |arguments, context| {
        set(arguments, arguments[2] == Datum::Bool(true), context)
    })
    .volatile(),
    row("setval", &[Text, Int8, Bool], Int8, |arguments, context| {
        set(arguments, arguments[2] == Datum::Bool(true), context)
    })
    .volatile(),
];

/// Returns the name of a sequence, which may be given by its OID.
fn name<'a>(argument: &'a Datum, context: &EvalContext) -> Result<Cow<'a, str>> {
    let Datum::Int8(oid) = argument else { return Ok(Cow::Borrowed(text(argument))) };
    let mut name = Vec::new();
    context.style.system.write_reg_name(RegKind::Class, *oid, &mut name);
    Ok(Cow::Owned(String::from_utf8_lossy(&name).into_owned()))
}

/// `NEXT n VALUES FOR s` of Phoenix.
fn next_block(arguments: &[Datum], context: &EvalContext) -> Result<Datum> {
    let source = context.sequences.source()?;
    Ok(Datum::Int8(source.next_block(&name(&arguments[0], context)?, int8(&arguments[1]))?))
}

fn set(arguments: &[Datum], is_called: bool, context: &EvalContext) -> Result<Datum> {
    let value = int8(&arguments[1]);
    context.sequences.source()?.set(&name(&arguments[0], context)?, value, is_called)?;
    Ok(Datum::Int8(value))
}
