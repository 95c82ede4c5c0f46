//! Conditions on generated key columns: the terms that conditions on the source columns imply.
//!
//! A generated column of a key reverses, hashes or truncates the values of its sources, so that
//! the keys are spread, or collected in buckets. `source = v` implies `generated = f(v)`. A range
//! of the source implies the range of the generated column if `f` never decreases, as `date_trunc`
//! or a division. The conditions on the source columns remain in the filter.
//!
//! The computation of `f(v)` must not fail: no row has a source value for which it fails, so the
//! result has to be empty then, not an error.

use types::DataType;
use types::expr::{EvalContext, Expr};
use types::function::{self, ArithmeticOp, KernelKind};

use crate::plan::scan::{Comparison, KeyTerm};
use crate::planner::conjunct::as_column;
use crate::planner::key_term::{self, is_integer, is_varying, wider};

/// Returns the terms for a generated column, which is not NULL, by its expression over the columns
/// of the conjuncts.
pub(crate) fn implied(generated: &Expr, conjuncts: &[&Expr]) -> Vec<KeyTerm> {
    if generated.may_fail() {
        return Vec::new();
    }
    let sources = sources_of(generated);
    let by_value = equal_to_any(generated, &sources, conjuncts);
    let is_range = |sources: &[Expr]| sources.len() == 1 && never_decreases(generated);
    match by_value {
        Some(term) => vec![term],
        None if is_range(&sources) => bounds(generated, &sources[0], conjuncts),
        None => Vec::new(),
    }
}

/// Returns the columns of an expression, each once.
pub(super) fn sources_of(generated: &Expr) -> Vec<Expr> {
    let mut sources: Vec<Expr> = Vec::new();
    generated.walk(&mut |part| {
        if as_column(part).is_some() && !sources.contains(part) {
            sources.push(part.clone());
        }
    });
    sources
}

/// Returns the equality that equalities with all sources imply. Only a single source may have
/// several values.
fn equal_to_any(generated: &Expr, sources: &[Expr], conjuncts: &[&Expr]) -> Option<KeyTerm> {
    let mut values: Vec<Vec<Expr>> = Vec::new();
    for source in sources {
        let terms = conjuncts.iter().filter_map(|one| key_term::of_conjunct(one, source));
        let mut lists = terms.filter_map(|matched| match matched.term {
            KeyTerm::Equal(value) => Some(vec![value]),
            KeyTerm::In(list) if sources.len() == 1 => Some(list),
            _ => None,
        });
        values.push(lists.find_map(|list| {
            list.into_iter().map(|value| as_source(value, source)).collect::<Option<Vec<_>>>()
        })?);
    }
    let count = values.iter().map(Vec::len).max()?;
    let results = (0..count).map(|at| {
        let replaced = |source: &Expr| {
            let position = sources.iter().position(|one| one == source)?;
            values[position].get(at).cloned()
        };
        computed(generated, &replaced)
    });
    let mut results: Vec<Expr> = results.collect();
    Some(match results.len() {
        1 => KeyTerm::Equal(results.swap_remove(0)),
        _ => KeyTerm::In(results),
    })
}

/// Returns the bounds that those of the only source imply.
fn bounds(generated: &Expr, source: &Expr, conjuncts: &[&Expr]) -> Vec<KeyTerm> {
    let terms = conjuncts.iter().filter_map(|one| key_term::of_conjunct(one, source));
    let bounds = terms.filter_map(|matched| {
        let KeyTerm::Compare(comparison, value) = matched.term else { return None };
        let comparison = match comparison.is_upper() {
            true => Comparison::LessOrEqual,
            false => Comparison::GreaterOrEqual,
        };
        let value = as_source(value, source)?;
        let replaced = |part: &Expr| (part == source).then(|| value.clone());
        Some(KeyTerm::Compare(comparison, computed(generated, &replaced)))
    });
    bounds.collect()
}

/// Returns the expression with its columns replaced; it is immutable, so constants are computed.
fn computed(generated: &Expr, replaced: &dyn Fn(&Expr) -> Option<Expr>) -> Expr {
    let computed = generated.clone().transform(&mut |part| match as_column(&part) {
        Some(_) => replaced(&part).unwrap_or(part),
        None => part,
    });
    computed.fold(&EvalContext::default())
}

/// Returns a value in the type of a source column; `None` if values of the type may be equal and
/// differ (`1.0 = 1.00`), or if the value may be outside the type.
pub(super) fn as_source(value: Expr, source: &Expr) -> Option<Expr> {
    let (from, to) = (value.data_type().clone(), source.data_type());
    let is_exact = is_integer(to)
        || is_varying(to)
        || matches!(
            to,
            DataType::Bool
                | DataType::Date
                | DataType::Timestamp
                | DataType::Timestamptz
                | DataType::Uuid
                | DataType::Bytea
        );
    let widens = is_integer(&from) && is_integer(to) && wider(to, &from);
    match is_exact {
        true if from == *to => Some(value),
        true if widens || (is_varying(&from) && is_varying(to)) => {
            Some(Expr::Cast { operand: Box::new(value), from, to: to.into(), explicit: false })
        }
        _ => None,
    }
}

/// Returns whether a larger value of the only column never makes the value of the expression
/// smaller.
pub(crate) fn never_decreases(expression: &Expr) -> bool {
    match expression {
        Expr::Column { .. } => true,
        Expr::Cast { operand, from, to, .. } => {
            let is_time = |one: &DataType| matches!(one, DataType::Date | DataType::Timestamp);
            let is_number = |one: &DataType| {
                is_integer(one) || matches!(one, DataType::Numeric | DataType::Float8)
            };
            let is_ordered = |both: &dyn Fn(&DataType) -> bool| both(from) && both(&to.base);
            // A modifier of a numeric type rounds, and never decreases either.
            (is_ordered(&is_number) || is_ordered(&is_time)) && never_decreases(operand)
        }
        Expr::Call { function, arguments, .. } => {
            let name = function::signature(*function).name;
            match (arguments.as_slice(), function::shape(*function)) {
                ([unit, time], _) if name == "date_trunc" => {
                    matches!(unit, Expr::Constant { .. }) && never_decreases(time)
                }
                ([unit, time], _) if matches!(name, "extract" | "date_part") => {
                    is_epoch(unit)
                        && matches!(time.data_type(), DataType::Date | DataType::Timestamp)
                        && never_decreases(time)
                }
                ([number], _) if matches!(name, "floor" | "ceil" | "ceiling") => {
                    never_decreases(number)
                }
                ([number, divisor], KernelKind::Arithmetic(ArithmeticOp::Divide)) => {
                    divisor.integer_constant().is_some_and(|divisor| divisor > 0)
                        && never_decreases(number)
                }
                _ => false,
            }
        }
        _ => false,
    }
}

fn is_epoch(unit: &Expr) -> bool {
    let Expr::Constant { value, .. } = unit else { return false };
    value.as_str().is_some_and(|unit| unit.eq_ignore_ascii_case("epoch"))
}

/// Returns the source of a generated column whose values never decrease with it: rows in the order
/// of both are in the order of the source alone.
pub(crate) fn ordering_source(generated: &Expr) -> Option<Expr> {
    match sources_of(generated).as_slice() {
        [source] if never_decreases(generated) => Some(source.clone()),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use types::Datum;

    use super::*;
    use crate::planner::conjunct::column;

    #[test]
    fn divisions_by_positive_constants_never_decrease() {
        let number = column(0, DataType::Int8);
        let by = |divisor: i64| {
            let divisor = Expr::constant(Datum::Int8(divisor), DataType::Int8);
            let types = [DataType::Int8, DataType::Int8];
            let function = function::find("/", &types).unwrap();
            let arguments = vec![number.clone(), divisor];
            Expr::Call { function, arguments, data_type: DataType::Int8 }
        };
        assert!(never_decreases(&by(10)) && !by(10).may_fail());
        assert!(!never_decreases(&by(-10)));
        assert!(by(0).may_fail() && by(-1).may_fail());
    }

    #[test]
    fn cast_of_remainder_may_fail_for_nan() {
        let remainder = |data_type: DataType, ten: Expr| {
            let function = function::find("%", &[data_type.clone(), data_type.clone()]).unwrap();
            let arguments = vec![column(0, &data_type), ten];
            let operand = Expr::Call { function, arguments, data_type: data_type.clone() };
            cast(operand, data_type, DataType::Int4)
        };
        let ten = Expr::constant(Datum::Int4(10), DataType::Int4);
        let widened = |to: &DataType| cast(ten.clone(), DataType::Int4, to.clone());
        assert!(!remainder(DataType::Int8, widened(&DataType::Int8)).may_fail());
        assert!(remainder(DataType::Numeric, widened(&DataType::Numeric)).may_fail());
    }

    fn cast(operand: Expr, from: DataType, to: DataType) -> Expr {
        Expr::Cast { operand: Box::new(operand), from, to: to.into(), explicit: false }
    }
}
