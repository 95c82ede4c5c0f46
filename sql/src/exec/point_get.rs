//! Point get: execution of a single get by key without batches and operators.

use store::{CellBatch, Get};
use types::Datum;
use types::expr::Expr;

use crate::error::Result;
use crate::exec::Context;
use crate::exec::key_range::as_key;
use crate::plan::{Plan, PointGet};

use coprocessors::row::packed_cells;

/// Executes a plan that is a single get by key.
///
/// `None`: the plan is not of this kind ([`Plan::point`]); use [`open`](crate::exec::open).
/// `Some(None)`: there is no such row. Otherwise the row's values, one for each of
/// [`Plan::columns`].
///
/// # Errors
///
/// Errors of the store, or a cancellation.
pub fn point(plan: &Plan, context: &mut Context) -> Result<Option<Option<Vec<Datum>>>> {
    let Some(get) = &plan.point else { return Ok(None) };
    context.check()?;
    if context.eval.parameters.len() < plan.parameter_count {
        context.eval.parameters.resize(plan.parameter_count, Datum::Null);
    }
    let Some(row) = row_key(get, context)? else { return Ok(Some(None)) };
    let mut cells = CellBatch::new();
    let request = Get { sections: get.sections.clone(), ..get.read.get(Get::new(row)) };
    if !context.transaction.get(get.table.id, &request, &mut cells)? {
        return Ok(Some(None));
    }
    let row = cells.row(0);
    let layout = &get.table.layout;
    let packed = packed_cells(&row, layout);
    let mut values = Vec::with_capacity(get.columns.len());
    for &column in &get.columns {
        values.push(layout.unpack_column(column, row.key(), &packed)?);
    }
    Ok(Some(Some(values)))
}

fn row_key(get: &PointGet, context: &Context) -> Result<Option<Vec<u8>>> {
    key_from(&get.table, &get.key, context)
}

/// Returns the row key of key expressions in key order; `None` if no row can have it.
pub(super) fn key_from(
    table: &crate::catalog::table::Table,
    key: &[Expr],
    context: &Context,
) -> Result<Option<Vec<u8>>> {
    let layout = &table.layout;
    let mut values: smallvec::SmallVec<[Datum; 4]> = smallvec::SmallVec::new();
    for (part, column) in key.iter().zip(&layout.key) {
        let data_type = &layout.columns[column.column].data_type;
        let value = match part {
            Expr::Parameter { index, .. } => as_key(&context.eval.parameters[*index], data_type),
            Expr::Constant { value, .. } => as_key(value, data_type),
            part => as_key(&part.eval_row(&[], &context.eval)?, data_type),
        };
        let Some(value) = value else { return Ok(None) };
        values.push(value);
    }
    Ok(Some(layout.encode_key_values(&values)?))
}
