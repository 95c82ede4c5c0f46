//! `generate_series`, which computes its values on demand.

use std::cmp::Ordering;

use super::strings::invalid_parameter;
use super::{FunctionId, call, find};
use crate::context::EvalContext;
use crate::datatype::DataType;
use crate::datetime::Interval;
use crate::datum::Datum;
use crate::error::{Result, sqlstate};
use crate::numeric::Numeric;

/// State of a series.
pub struct Series {
    /// The next value; `None` at the end.
    next: Option<Datum>,
    stop: Datum,
    step: Datum,
    /// The function that adds value and step; `None` for integers.
    add: Option<FunctionId>,
    down: bool,
}

impl Series {
    /// Creates the series from a start to a stop, by a step or one. All values have the types of
    /// the function's signature; if one of them is NULL, the series is empty.
    ///
    /// # Errors
    ///
    /// 22023 for a step of zero, and for bounds that are NaN or infinite.
    pub(super) fn new(arguments: &[Datum]) -> Result<Series> {
        let none =
            Series { next: None, stop: Datum::Null, step: Datum::Null, add: None, down: false };
        let [start, stop, rest @ ..] = arguments else { return Ok(none) };
        if arguments.iter().any(Datum::is_null) {
            return Ok(none);
        }
        let one = match start {
            Datum::Numeric(_) => Datum::Numeric(Numeric::from_i128(1)),
            _ => Datum::Int4(1),
        };
        let step = rest.first().cloned().unwrap_or(one);
        for (value, name) in [(start, "start"), (stop, "stop"), (&step, "step size")] {
            check_number(value, name)?;
        }
        let order = match &step {
            Datum::Numeric(_) => step.compare(&Datum::Numeric(Numeric::from_i128(0))),
            Datum::Interval(_) => step.compare(&Datum::Interval(Interval::default())),
            step => step.as_i64().unwrap_or(0).cmp(&0),
        };
        if order == Ordering::Equal {
            return Err(invalid_parameter("step size cannot equal zero"));
        }
        Ok(Series {
            add: addition(start),
            next: Some(start.clone()),
            stop: stop.clone(),
            step,
            down: order == Ordering::Less,
        })
    }

    /// Returns the next value; `None` at the end.
    ///
    /// # Errors
    ///
    /// That of a value that is out of the range of its type.
    pub fn next(&mut self, context: &EvalContext) -> Result<Option<Datum>> {
        let Some(value) = self.next.take() else { return Ok(None) };
        let order = value.compare(&self.stop);
        if order == if self.down { Ordering::Less } else { Ordering::Greater } {
            return Ok(None);
        }
        self.next = self.after(&value, context)?;
        Ok(Some(value))
    }

    fn after(&self, value: &Datum, context: &EvalContext) -> Result<Option<Datum>> {
        if let Some(add) = self.add {
            let sum = call(add, &[value.clone(), self.step.clone()], &DataType::Unknown, context);
            return match (value, sum) {
                (Datum::Numeric(_), Err(error))
                    if error.sqlstate == sqlstate::NUMERIC_VALUE_OUT_OF_RANGE =>
                {
                    Ok(None)
                }
                (_, sum) => sum.map(Some),
            };
        }
        // A series of integers ends at the limit of its type.
        let sum = value.as_i64().zip(self.step.as_i64());
        let sum = sum.and_then(|(value, step)| value.checked_add(step));
        Ok(sum.and_then(|sum| match value {
            Datum::Int4(_) => i32::try_from(sum).ok().map(Datum::Int4),
            _ => Some(Datum::Int8(sum)),
        }))
    }
}

/// Returns an error if a numeric is NaN or infinite.
fn check_number(value: &Datum, name: &str) -> Result<()> {
    let Datum::Numeric(number) = value else { return Ok(()) };
    let what = match (number.is_nan(), number.is_finite()) {
        (true, _) => "NaN",
        (false, false) => "infinity",
        (false, true) => return Ok(()),
    };
    let name = if name == "step size" { name.to_owned() } else { format!("{name} value") };
    Err(invalid_parameter(format!("{name} cannot be {what}")))
}

/// Returns the function that adds a step; `None` for integers.
fn addition(start: &Datum) -> Option<FunctionId> {
    let types = match start {
        Datum::Numeric(_) => [DataType::Numeric, DataType::Numeric],
        Datum::Timestamp(_) => [DataType::Timestamp, DataType::Interval],
        Datum::Timestamptz(_) => [DataType::Timestamptz, DataType::Interval],
        _ => return None,
    };
    find("+", &types)
}
