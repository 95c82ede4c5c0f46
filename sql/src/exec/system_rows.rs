//! System views and table functions. `generate_series` is computed here, batch by batch; the other
//! functions that return sets are those of [`sets`]; all else comes from the
//! [`SystemSource`](crate::exec::SystemSource).

use std::sync::Arc;

use types::expr::Expr;
use types::function::sets;
use types::vector::BATCH_ROWS;
use types::{Batch, DataType, Datum, Vector};

use crate::error::{Error, Result, sqlstate};
use crate::exec::endpoint::EndpointRows;
use crate::exec::{Context, Operator};
use crate::plan::SystemRowsNode;

/// Opens a view or function.
pub(super) fn open(
    node: &Arc<SystemRowsNode>,
    context: &Arc<Context>,
) -> Result<Box<dyn Operator>> {
    if let Some(target) = &node.endpoint {
        return Ok(Box::new(EndpointRows::open(node, target, context)));
    }
    let mut arguments = Vec::with_capacity(node.arguments.len());
    for argument in &node.arguments {
        arguments.push(context.value(argument)?);
    }
    let name = node.name.rsplit('.').next().unwrap_or(&node.name);
    if name == "generate_series" {
        return Ok(Box::new(Series::open(node, context, &arguments)?));
    }
    let rows = match sets::rows(name, &arguments) {
        Some(rows) => rows?,
        None => {
            if let Some(batches) = context.system.shared_rows(&node.name)? {
                return Ok(Box::new(SharedRows { context: Arc::clone(context), batches, next: 0 }));
            }
            context.system.rows(&node.name, &arguments)?
        }
    };
    Ok(Box::new(SystemRows {
        types: node.types.clone(),
        context: Arc::clone(context),
        rows: rows.into_iter(),
    }))
}

/// Rows that other statements read, too.
struct SharedRows {
    context: Arc<Context>,
    batches: Arc<Vec<Batch>>,
    next: usize,
}

impl Operator for SharedRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        self.context.check()?;
        self.next += 1;
        Ok(self.batches.get(self.next - 1).cloned())
    }
}

struct SystemRows {
    types: Vec<DataType>,
    context: Arc<Context>,
    rows: std::vec::IntoIter<Vec<Datum>>,
}

impl Operator for SystemRows {
    fn next(&mut self) -> Result<Option<Batch>> {
        self.context.check()?;
        let rows: Vec<Vec<Datum>> = self.rows.by_ref().take(BATCH_ROWS).collect();
        Ok((!rows.is_empty()).then(|| Batch::from_rows(&self.types, &rows)))
    }
}

/// `generate_series(start, stop [, step])`
struct Series {
    context: Arc<Context>,
    data_type: DataType,
    /// The next value; `None` at the end.
    next: Option<Datum>,
    stop: Datum,
    /// `column 0 + column 1`, of value and step.
    add: Option<Expr>,
    step: Datum,
    down: bool,
}

impl Series {
    fn open(node: &SystemRowsNode, context: &Arc<Context>, arguments: &[Datum]) -> Result<Series> {
        let data_type = node.types.first().copied().unwrap_or(DataType::Int8);
        let step = arguments.get(2).cloned().unwrap_or(Datum::Int4(1));
        let (Some(start), Some(stop)) = (arguments.first(), arguments.get(1)) else {
            return Err(Error::new(
                sqlstate::UNDEFINED_FUNCTION,
                "generate_series takes a start, a stop and a step",
            ));
        };
        let step_type = node.arguments.get(2).map_or(data_type, Expr::data_type);
        let zero = match step_type {
            DataType::Interval => Datum::Interval(types::datetime::Interval::default()),
            DataType::Numeric => Datum::Numeric(types::numeric::Numeric::from_i128(0)),
            _ => Datum::Int8(0),
        };
        let step = match (&step, data_type) {
            (Datum::Int4(1), DataType::Numeric) => {
                Datum::Numeric(types::numeric::Numeric::from_i128(1))
            }
            _ => step,
        };
        let order = match (step.as_i64(), &step) {
            (Some(step), _) => step.cmp(&0),
            (None, Datum::Null) => std::cmp::Ordering::Equal,
            (None, step) => step.compare(&zero),
        };
        let any_null = arguments.iter().any(Datum::is_null);
        if order.is_eq() && !any_null {
            return Err(Error::new(
                sqlstate::INVALID_PARAMETER_VALUE,
                "step size cannot equal zero",
            ));
        }
        Ok(Series {
            context: Arc::clone(context),
            data_type,
            next: (!any_null).then(|| as_type(start, data_type)),
            stop: as_type(stop, data_type),
            add: addition(data_type, step_type),
            step,
            down: order.is_lt(),
        })
    }

    fn advance(&self, value: &Datum) -> Result<Option<Datum>> {
        if let (Some(value), Some(step), false) =
            (value.as_i64(), self.step.as_i64(), self.data_type == DataType::Numeric)
            && !is_time(self.data_type)
        {
            // A series ends where its type does.
            let Some(sum) = value.checked_add(step) else { return Ok(None) };
            return Ok(match self.data_type {
                DataType::Int2 => i16::try_from(sum).ok().map(Datum::Int2),
                DataType::Int4 => i32::try_from(sum).ok().map(Datum::Int4),
                _ => Some(Datum::Int8(sum)),
            });
        }
        let Some(add) = &self.add else {
            return Err(Error::not_supported(
                format!("generate_series of {}", self.data_type.sql_name()),
                "Use integers, numeric or timestamps.",
            ));
        };
        let row = [value.clone(), self.step.clone()];
        Ok(Some(add.eval_row(&row, &self.context.eval)?))
    }
}

/// An integer in the width of the series.
fn as_type(value: &Datum, data_type: DataType) -> Datum {
    match (value.as_i64(), data_type) {
        (Some(integer), DataType::Int8) => Datum::Int8(integer),
        (Some(integer), DataType::Numeric) => {
            Datum::Numeric(types::numeric::Numeric::from_i128(i128::from(integer)))
        }
        _ => value.clone(),
    }
}

fn is_time(data_type: DataType) -> bool {
    matches!(data_type, DataType::Timestamp | DataType::Timestamptz | DataType::Date)
}

fn addition(left: DataType, right: DataType) -> Option<Expr> {
    let signature = types::function::overloads("+")
        .iter()
        .find(|signature| signature.arguments == [left, right] && signature.result == left)?;
    Some(Expr::Call {
        function: signature.id,
        arguments: vec![
            Expr::Column { index: 0, data_type: left },
            Expr::Column { index: 1, data_type: right },
        ],
        data_type: left,
    })
}

impl Operator for Series {
    fn next(&mut self) -> Result<Option<Batch>> {
        self.context.check()?;
        let mut values = Vector::new(self.data_type, BATCH_ROWS);
        while values.len() < BATCH_ROWS {
            let Some(value) = &self.next else { break };
            let order = value.compare(&self.stop);
            if (self.down && order.is_lt()) || (!self.down && order.is_gt()) {
                self.next = None;
                break;
            }
            values.push(value);
            self.next = self.advance(value)?;
        }
        let row_count = values.len();
        Ok((row_count > 0).then(|| Batch { columns: vec![Arc::new(values)], row_count }))
    }
}
