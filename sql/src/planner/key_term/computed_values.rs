//! Values that an integer expression can have: buckets that spread keys.
//!
//! `id % 16` has 31 values, and 16 if `id` is not negative. A range of the source restricts them:
//! the part of the expression that never decreases is computed for the bounds, and the operations
//! around it map the range. The result includes all values of rows, and possibly others.

use types::expr::{EvalContext, Expr};
use types::function::{self, ArithmeticOp, KernelKind};
use types::{DataType, Datum};

use crate::plan::scan::{Comparison, ComputedValues, IntegerRange, KeyTerm};
use crate::planner::conjunct::{as_column, is_free, parameter_count};
use crate::planner::key_term::generated::{as_source, never_decreases, sources_of};
use crate::planner::key_term::{self, is_integer};

/// Maximum number of values that become ranges of their own, as salt buckets.
pub(crate) const VALUES_MAX: usize = 256;

/// Values of a key column by its definition.
pub(crate) struct DefinedValues {
    pub term: KeyTerm,
    /// True if conditions of the statement leave fewer values than the definition has.
    pub is_restricted: bool,
}

/// Returns the values of an expression that its definition determines. `conjuncts`: the conditions
/// of the statement; `known`: those that each row satisfies.
pub(crate) fn of_definition(
    expression: &Expr,
    conjuncts: &[&Expr],
    known: &[&Expr],
) -> Option<DefinedValues> {
    if let Some(values) = all_of_type(expression.data_type()) {
        return Some(DefinedValues { term: KeyTerm::In(values), is_restricted: false });
    }
    if !is_integer(expression.data_type()) {
        return None;
    }
    let sources = sources_of(expression);
    let bounds = |conjuncts: &[&Expr]| match sources.as_slice() {
        [source] => conjuncts.iter().flat_map(|conjunct| bounds(conjunct, source)).collect(),
        _ => Vec::new(),
    };
    let of_rows = ComputedValues {
        expression: expression.clone(),
        bounds: bounds(known),
        planned: Vec::new(),
        count: None,
    };
    let stated = bounds(conjuncts);
    let is_range = !stated.is_empty() && never_decreases(expression);
    let bounds = stated.into_iter().chain(of_rows.bounds.iter().cloned()).collect();
    let mut computed = ComputedValues { bounds, ..of_rows.clone() };
    let all = count(&planned(&of_rows));
    computed.planned = planned(&computed);
    let values = count(&computed.planned);
    computed.count = Some(values).filter(|&count| count <= VALUES_MAX);
    let is_restricted = match computed.count {
        Some(_) => values < all,
        None => is_range && as_column(expression).is_none(),
    };
    let is_useful = computed.count.is_some() || is_restricted;
    is_useful.then(|| DefinedValues { term: KeyTerm::Computed(computed.into()), is_restricted })
}

/// Returns all values of a type that has few.
fn all_of_type(data_type: &DataType) -> Option<Vec<Expr>> {
    let constant = |value: Datum| Expr::constant(value, data_type.clone());
    match data_type {
        DataType::Bool => Some([false, true].map(|value| constant(Datum::Bool(value))).into()),
        DataType::Enum(of) if of.labels().len() <= VALUES_MAX => {
            Some(of.labels().iter().map(|label| constant(Datum::Int8(label.rank))).collect())
        }
        _ => None,
    }
}

/// Returns the bounds that a conjunct implies for a column.
fn bounds(conjunct: &Expr, source: &Expr) -> Vec<(Comparison, Expr)> {
    let Some(matched) = key_term::of_conjunct(conjunct, source) else { return Vec::new() };
    let bounds = match matched.term {
        KeyTerm::Compare(comparison, value) => vec![(comparison, value)],
        KeyTerm::Equal(value) => {
            vec![(Comparison::GreaterOrEqual, value.clone()), (Comparison::LessOrEqual, value)]
        }
        _ => Vec::new(),
    };
    let in_type = |(comparison, value)| Some((comparison, as_source(value, source)?));
    bounds.into_iter().filter_map(in_type).collect()
}

/// Returns the values as far as the plan determines them: without parameters.
fn planned(computed: &ComputedValues) -> Vec<IntegerRange> {
    let is_known = |value: &Expr| is_free(value) && parameter_count(value) == 0;
    let bounds = computed.bounds.iter().filter(|(_, value)| is_known(value));
    intervals(&computed.expression, &bounds.collect::<Vec<_>>(), &EvalContext::default())
}

/// Returns the values at the execution.
pub(crate) fn values(computed: &ComputedValues, context: &EvalContext) -> Vec<IntegerRange> {
    intervals(&computed.expression, &computed.bounds.iter().collect::<Vec<_>>(), context)
}

/// Returns the number of values; `usize::MAX` for more.
fn count(intervals: &[IntegerRange]) -> usize {
    let length = |one: &IntegerRange| i128::from(one.last) - i128::from(one.first) + 1;
    usize::try_from(intervals.iter().map(length).sum::<i128>()).unwrap_or(usize::MAX)
}

/// Returns the values of an integer expression, in ascending intervals with gaps between them.
fn intervals(
    expression: &Expr,
    bounds: &[&(Comparison, Expr)],
    context: &EvalContext,
) -> Vec<IntegerRange> {
    let Some((least, greatest)) = limits(expression.data_type()) else { return Vec::new() };
    let whole = || vec![IntegerRange { first: least, last: greatest }];
    let mapped = |operand: &Expr, map: &dyn Fn(IntegerRange) -> Vec<(i128, i128)>| {
        let operands = intervals(operand, bounds, context);
        united(operands.into_iter().flat_map(map), (least, greatest))
    };
    if let Some(value) = expression.integer_constant() {
        return vec![IntegerRange { first: value, last: value }];
    }
    if never_decreases(expression) {
        return ends(expression, bounds, (least, greatest), context);
    }
    match expression {
        Expr::Cast { operand, from, .. } if is_integer(from) => {
            mapped(operand, &|one| vec![(one.first.into(), one.last.into())])
        }
        Expr::Cast { operand, .. } => match field_limits(operand) {
            Some(limits) => united([limits].into_iter(), (least, greatest)),
            None => whole(),
        },
        Expr::Call { function, arguments, .. } => {
            let constant = |at: usize| arguments.get(at).and_then(Expr::integer_constant);
            match (function::shape(*function), constant(0), constant(1)) {
                (KernelKind::Arithmetic(op), None, Some(by)) => match operation(op, by.into()) {
                    Some(map) => mapped(&arguments[0], &map),
                    None => whole(),
                },
                (KernelKind::Arithmetic(ArithmeticOp::Add), Some(by), None) => {
                    let by = i128::from(by);
                    mapped(&arguments[1], &|one| {
                        vec![(by + i128::from(one.first), by + i128::from(one.last))]
                    })
                }
                (KernelKind::Other, left, right) => match function::signature(*function).name {
                    "abs" => mapped(&arguments[0], &absolute),
                    "&" => match left.or(right) {
                        Some(mask @ 0..) => vec![IntegerRange { first: 0, last: mask }],
                        _ => whole(),
                    },
                    _ => whole(),
                },
                _ => whole(),
            }
        }
        _ => whole(),
    }
}

/// Mapping of an interval of operands to those of results.
type IntervalMapping = Box<dyn Fn(IntegerRange) -> Vec<(i128, i128)>>;

/// Returns the mapping of an operation with a constant on its right.
fn operation(op: ArithmeticOp, by: i128) -> Option<IntervalMapping> {
    let pair = |one: IntegerRange| (i128::from(one.first), i128::from(one.last));
    Some(match op {
        ArithmeticOp::Add => Box::new(move |one| vec![(pair(one).0 + by, pair(one).1 + by)]),
        ArithmeticOp::Subtract => Box::new(move |one| vec![(pair(one).0 - by, pair(one).1 - by)]),
        ArithmeticOp::Divide if by > 0 => {
            Box::new(move |one| vec![(pair(one).0 / by, pair(one).1 / by)])
        }
        ArithmeticOp::Remainder if by != 0 => {
            let by = by.abs();
            Box::new(move |one| {
                let (first, last) = pair(one);
                let mut parts = remainders(first.max(0), last, by);
                let negative = remainders((-last).max(0), -first, by);
                parts.extend(negative.into_iter().map(|(first, last)| (-last, -first)));
                parts
            })
        }
        _ => return None,
    })
}

/// Returns the remainders of numbers that are not negative; none if there are no numbers.
fn remainders(first: i128, last: i128, by: i128) -> Vec<(i128, i128)> {
    match (first % by, last % by) {
        _ if first > last => Vec::new(),
        _ if last - first + 1 >= by => vec![(0, by - 1)],
        (first, last) if first <= last => vec![(first, last)],
        (first, last) => vec![(0, last), (first, by - 1)],
    }
}

fn absolute(one: IntegerRange) -> Vec<(i128, i128)> {
    let (first, last) = (i128::from(one.first), i128::from(one.last));
    let mut parts = vec![(first.max(0), last), ((-last).max(0), -first)];
    parts.retain(|(first, last)| first <= last);
    parts
}

/// Returns the values of an expression that never decreases, between those of the bounds. Where the
/// computation fails, there is no bound.
fn ends(
    expression: &Expr,
    bounds: &[&(Comparison, Expr)],
    (least, greatest): (i64, i64),
    context: &EvalContext,
) -> Vec<IntegerRange> {
    let (mut first, mut last) = (least, greatest);
    for (comparison, bound) in bounds {
        let at_bound = expression.clone().transform(&mut |part| match as_column(&part) {
            Some(_) => bound.clone(),
            None => part,
        });
        let Some(value) = at_bound.eval_row(&[], context).ok().and_then(|value| value.as_i64())
        else {
            continue;
        };
        match comparison.is_upper() {
            true => last = last.min(value),
            false => first = first.max(value),
        }
    }
    if first > last { Vec::new() } else { vec![IntegerRange { first, last }] }
}

/// Returns the limits of a field of a date or timestamp.
fn field_limits(expression: &Expr) -> Option<(i128, i128)> {
    let Expr::Call { function, arguments, .. } = expression else { return None };
    let [Expr::Constant { value, .. }, of] = arguments.as_slice() else { return None };
    let is_field = matches!(function::signature(*function).name, "extract" | "date_part");
    let has_days = matches!(of.data_type(), DataType::Date | DataType::Timestamp);
    if !is_field || !has_days {
        return None;
    }
    Some(match value.as_str()?.to_ascii_lowercase().as_str() {
        "hour" => (0, 23),
        "minute" => (0, 59),
        "second" => (0, 60),
        "day" => (1, 31),
        "dow" => (0, 6),
        "isodow" => (1, 7),
        "doy" => (1, 366),
        "week" => (1, 53),
        "month" => (1, 12),
        "quarter" => (1, 4),
        _ => return None,
    })
}

/// Returns the intervals within limits, ascending, with overlapping and adjacent ones united.
fn united(
    parts: impl Iterator<Item = (i128, i128)>,
    (least, greatest): (i64, i64),
) -> Vec<IntegerRange> {
    let clipped = |(first, last): (i128, i128)| {
        let first = i64::try_from(first.max(least.into())).ok()?;
        let last = i64::try_from(last.min(greatest.into())).ok()?;
        (first <= last).then_some(IntegerRange { first, last })
    };
    let mut parts: Vec<IntegerRange> = parts.filter_map(clipped).collect();
    parts.sort_unstable();
    let mut united: Vec<IntegerRange> = Vec::with_capacity(parts.len());
    for part in parts {
        match united.last_mut() {
            Some(before) if part.first <= before.last.saturating_add(1) => {
                before.last = before.last.max(part.last);
            }
            _ => united.push(part),
        }
    }
    united
}

fn limits(data_type: &DataType) -> Option<(i64, i64)> {
    match data_type {
        DataType::Int2 => Some((i16::MIN.into(), i16::MAX.into())),
        DataType::Int4 => Some((i32::MIN.into(), i32::MAX.into())),
        DataType::Int8 => Some((i64::MIN, i64::MAX)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Each operation, on all intervals of small numbers, has exactly the values of a loop.
    #[test]
    fn intervals_have_all_values_of_the_operations() {
        use ArithmeticOp::{Add, Divide, Remainder, Subtract};
        let apply = |op, number: i64, by: i64| match op {
            Add => number + by,
            Subtract => number - by,
            Divide => number / by,
            Remainder => number % by,
            ArithmeticOp::Multiply => unreachable!("it has no mapping"),
        };
        for (op, by) in [(Add, -3), (Subtract, 5), (Divide, 4), (Remainder, 5), (Remainder, -4)] {
            let map = operation(op, by.into()).unwrap();
            for first in -12..=12 {
                for last in first..=12 {
                    let found = united(map(IntegerRange { first, last }).into_iter(), (-99, 99));
                    let found: Vec<i64> =
                        found.iter().flat_map(|one| one.first..=one.last).collect();
                    let mut wanted: Vec<i64> =
                        (first..=last).map(|number| apply(op, number, by)).collect();
                    wanted.sort_unstable();
                    wanted.dedup();
                    assert_eq!(found, wanted, "{op:?} {by} of {first}..={last}");
                }
            }
        }
    }

    #[test]
    fn extremes_do_not_overflow() {
        let all = IntegerRange { first: i64::MIN, last: i64::MAX };
        let limits = (i64::MIN, i64::MAX);
        let remainder = operation(ArithmeticOp::Remainder, 16).unwrap();
        assert_eq!(
            united(remainder(all).into_iter(), limits),
            [IntegerRange { first: -15, last: 15 }]
        );
        assert_eq!(count(&[all]), usize::MAX);
        assert_eq!(
            united(absolute(all).into_iter(), limits),
            [IntegerRange { first: 0, last: i64::MAX }]
        );
    }
}
