//! `array_ops`: a term for each element, and one for an array without elements.
//!
//! NULL elements have no terms: no operator finds them.

use super::{TermOperator, TermQuery, term};
use crate::datatype::DataType;
use crate::datum::{Array, Datum, Nested};
use crate::error::Result;
use crate::keycode;

/// The only byte of the term of an empty array.
const EMPTY: u8 = 0x00;

pub(super) fn terms(value: &Datum, data_type: &DataType) -> Result<Vec<Vec<u8>>> {
    let Some(array) = as_array(value) else { return Ok(Vec::new()) };
    if array.elements.is_empty() {
        return Ok(vec![vec![EMPTY]]);
    }
    let elements = array.elements.iter().filter(|element| !element.is_null());
    elements.map(|element| element_term(element, data_type)).collect()
}

pub(super) fn query(
    operator: TermOperator,
    operand: &Datum,
    data_type: &DataType,
) -> Result<TermQuery> {
    if operator == TermOperator::Element {
        return element_term(operand, data_type).map(TermQuery::Term);
    }
    let Some(array) = as_array(operand) else { return Ok(TermQuery::All) };
    let has_null = array.elements.iter().any(Datum::is_null);
    let terms = terms(operand, data_type)?;
    let is_empty = array.elements.is_empty();
    let terms = terms.into_iter().map(TermQuery::Term);
    Ok(match operator {
        TermOperator::Contains if has_null => TermQuery::None,
        TermOperator::Contains if is_empty => TermQuery::All,
        TermOperator::Contains | TermOperator::Equals => TermQuery::all_of(terms),
        TermOperator::ContainedBy => TermQuery::any_of(terms.chain([TermQuery::Term(vec![EMPTY])])),
        TermOperator::Overlaps if is_empty => TermQuery::None,
        TermOperator::Overlaps => TermQuery::any_of(terms),
        _ => TermQuery::All,
    })
}

fn as_array(value: &Datum) -> Option<&Array> {
    match value {
        Datum::Nested(Nested::Array(array)) => Some(array),
        _ => None,
    }
}

/// Returns the term of an element: its key.
fn element_term(element: &Datum, data_type: &DataType) -> Result<Vec<u8>> {
    let mut key = Vec::new();
    let of = data_type.element().unwrap_or(&DataType::Unknown);
    keycode::encode(element, of, false, false, &mut key)?;
    Ok(term(key))
}
