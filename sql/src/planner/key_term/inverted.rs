//! Matching of conjuncts with inverted indexes: conditions by the operators of the index's operator
//! class, with a value that is the same for all rows on the other side.

use types::DataType;
use types::expr::Expr;
use types::inverted::{InvertedClass, TermOperator};

use super::{is_integer, is_known, is_varying};
use crate::plan::scan::InvertedCondition;
use crate::planner::conjunct::{as_equal_to_any, as_operator, split};

/// Returns the condition that `conjunct` implies for the expression `key`, over the same columns,
/// of an index with the operator class `class`.
pub(in crate::planner) fn of_conjunct(
    conjunct: &Expr,
    key: &Expr,
    class: InvertedClass,
) -> Option<InvertedCondition> {
    if let Expr::Or(operands) = conjunct {
        let matched = operands.iter().map(|operand| of_alternative(operand, key, class));
        return matched.collect::<Option<_>>().map(InvertedCondition::Any);
    }
    let condition = |operator, operand: &Expr| InvertedCondition::Operator {
        operator,
        operand: operand.clone(),
        condition: conjunct.clone(),
    };
    if let Some((operand, array)) = as_equal_to_any(conjunct) {
        let element = key.data_type().element()?;
        let is_element = class == InvertedClass::Array && is_key(array, key);
        let fits = is_element && is_known(operand) && is_comparable(operand.data_type(), element);
        return fits.then(|| condition(TermOperator::Element, operand));
    }
    let (symbol, left, right) = as_operator(conjunct)?;
    let (symbol, operand) = if is_key(left, key) {
        (symbol, right)
    } else if is_key(right, key) {
        (TermOperator::of_flipped(symbol)?, left)
    } else {
        return None;
    };
    let operator = class.operator(symbol)?;
    let fits = operator.takes(operand.data_type(), key.data_type());
    (is_known(operand) && fits).then(|| condition(operator, operand))
}

/// Returns the condition of an alternative of a disjunction: those of its conjuncts that match.
fn of_alternative(
    alternative: &Expr,
    key: &Expr,
    class: InvertedClass,
) -> Option<InvertedCondition> {
    let mut conjuncts = Vec::new();
    split(alternative.clone(), &mut conjuncts);
    let matched = conjuncts.iter().filter_map(|conjunct| of_conjunct(conjunct, key, class));
    let matched: Vec<InvertedCondition> = matched.collect();
    (!matched.is_empty()).then_some(InvertedCondition::All(matched))
}

/// Returns whether an expression is the key, apart from casts that change no term.
fn is_key(side: &Expr, key: &Expr) -> bool {
    let is_text = |of: &DataType| is_varying(of.element().unwrap_or(of));
    match side {
        Expr::Cast { operand, from, to, .. } => {
            let is_same = is_text(from) && is_text(&to.base) && to.modifier < 0;
            let is_same = is_same && from.element().is_some() == to.base.element().is_some();
            is_same && is_key(operand, key)
        }
        side => side == key,
    }
}

/// Returns whether values have the terms of elements, converted between integer types.
fn is_comparable(value: &DataType, element: &DataType) -> bool {
    value == element
        || (is_integer(value) && is_integer(element))
        || (is_varying(value) && is_varying(element))
}
