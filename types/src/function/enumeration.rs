//! Ranges of enum labels.

use super::argument::{array, array_datum};
use super::{FunctionRow, row};
use crate::context::EvalContext;
use crate::datatype::DataType::{AnyArray, AnyEnum};
use crate::datum::{Array, Datum};
use crate::error::Result;

/// The function table of this family.
pub(super) const FUNCTIONS: &[FunctionRow] = &[
    // `enum_range(first, last)`, after an array of all labels in order.
    row("enum range", &[AnyArray, AnyEnum, AnyEnum], AnyArray, range).takes_null(),
];

fn range(arguments: &[Datum], _: &EvalContext) -> Result<Datum> {
    let (first, last) = (arguments[1].as_i64(), arguments[2].as_i64());
    let between = |label: &&Datum| {
        let rank = label.as_i64();
        first.is_none_or(|first| rank >= Some(first)) && last.is_none_or(|last| rank <= Some(last))
    };
    let labels = array(&arguments[0]).elements.iter().filter(between).cloned().collect();
    Ok(array_datum(Array::from_elements(labels)))
}
