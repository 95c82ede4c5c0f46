//! Binding of long constant lists: IN becomes `= ANY (array)`, and the rows of VALUES become
//! column vectors.
//!
//! The parser stores such lists as text ([`ConstantRun`]). Each constant is bound in the same way
//! as in a short list, so types and errors are the same, but only its value is retained. If a
//! constant does not fold to a value, such as a text for a domain, the whole run is bound as a
//! list of expressions.

use std::sync::Arc;

use types::datum::{Array, Nested};
use types::expr::Expr;
use types::{Batch, DataType, Datum, SqlType, Vector};

use crate::ast;
use crate::ast::constant_run::ConstantRun;
use crate::ast::{AssignedValue, TargetColumn, UnaryOperator};
use crate::binder::arrays::internal;
use crate::binder::coercion::common_type;
use crate::binder::conflict::column_types;
use crate::binder::expressions::narrow;
use crate::binder::insert::IdentityRule;
use crate::binder::level::Binder;
use crate::binder::operators::number;
use crate::binder::overload_resolution::{Match, resolve_operator};
use crate::binder::typed::Typed;
use crate::binder::update_target::UpdateTarget;
use crate::error::Result;
use crate::logical::{ConstantRows, Logical};

impl Binder<'_> {
    /// Returns `value = ANY (run)`; `None` if the run must be bound as a list of expressions.
    pub(super) fn in_run(&mut self, value: &Typed, run: &ConstantRun) -> Result<Option<Expr>> {
        let mut firsts = vec![value.clone()];
        let mut is_narrow = true;
        for constant in run.rows().flatten() {
            let bound = self.bind_constant(&constant)?;
            is_narrow &= narrowed(&bound, value.base()).is_some();
            note_type(&mut firsts, bound);
        }
        let common = match is_narrow {
            true => value.base().clone(),
            false => match common_type(&firsts, "IN") {
                Ok(common) => common,
                // The comparison with each constant will report the error.
                Err(_) => return Ok(None),
            },
        };
        let common = if common == DataType::Varchar { DataType::Text } else { common };
        let (Some(array), Match::One(equal)) =
            (common.array(), resolve_operator("=", &[common.clone(), common.clone()]))
        else {
            return Ok(None);
        };
        if common.element().is_some()
            || !common.has_equality()
            || equal.arguments.iter().any(|one| *one != common)
        {
            return Ok(None);
        }
        let mut elements = Vec::new();
        for constant in run.rows().flatten() {
            let bound = self.bind_constant(&constant)?;
            let narrow = narrowed(&bound, &common).filter(|_| is_narrow);
            let Some(element) =
                narrow.map_or_else(|| self.value_of(bound, &common), |one| Ok(Some(one)))?
            else {
                return Ok(None);
            };
            elements.push(element);
        }
        let id = Expr::constant(Datum::Int4(equal.id.0.into()), DataType::Int4);
        let operand = self.implicit(value.clone(), common)?;
        let elements = Datum::Nested(Nested::Array(Arc::new(Array::from_elements(elements))));
        let elements = Expr::constant(elements, array);
        Ok(Some(internal("any of", vec![id, operand, elements], DataType::Bool)))
    }

    /// Binds the rows of VALUES, with their types and the positions of the first row; `None` if
    /// the run must be bound as expressions.
    pub(super) fn bind_run(
        &mut self,
        run: &ConstantRun,
    ) -> Result<Option<(ConstantRows, Vec<usize>)>> {
        let mut firsts: Vec<Vec<Typed>> = Vec::new();
        for row in run.rows() {
            firsts.resize_with(row.len(), Vec::new);
            for (firsts, constant) in firsts.iter_mut().zip(&row) {
                note_type(firsts, self.bind_constant(constant)?);
            }
        }
        let types = firsts.iter().map(|firsts| common_type(firsts, "VALUES"));
        let types = types.collect::<Result<Vec<DataType>>>()?;
        let positions =
            firsts.iter().map(|firsts| firsts.first().map_or(1, |one| one.position)).collect();
        let mut rows = RowGatherer::new(&types);
        for row in run.rows() {
            for (at, constant) in row.iter().enumerate() {
                let bound = self.bind_constant(constant)?;
                let Some(value) = self.value_of(bound, &types[at])? else { return Ok(None) };
                rows.columns[at].push(&value);
            }
            rows.row_count += 1;
        }
        Ok(Some((rows.finish(types), positions)))
    }

    /// Binds the rows of VALUES for target columns. Returns a plan of full rows in table order,
    /// and the target columns; `None` if the run must be bound as expressions.
    pub(super) fn bind_target_run(
        &mut self,
        written: &UpdateTarget,
        names: &[TargetColumn],
        run: &ConstantRun,
        identity: IdentityRule,
    ) -> Result<Option<(Logical, Vec<usize>)>> {
        let types = column_types(&written.table);
        let mut rows = RowGatherer::new(&types);
        // The first bound row: its values that are not constants must be the same in each row.
        let mut first: Option<(Vec<Expr>, Vec<usize>)> = None;
        for row in run.rows() {
            let row: Vec<AssignedValue> = row.into_iter().map(AssignedValue::Expr).collect();
            let (bound, targets) = self.bind_target_rows(written, names, &[row], identity)?;
            let Some(bound) = bound.into_iter().next() else { return Ok(None) };
            let (template, _) = first.get_or_insert_with(|| (bound.clone(), targets));
            for (at, (expr, first)) in bound.iter().zip(template.iter()).enumerate() {
                match (expr, first) {
                    (Expr::Constant { value, data_type }, Expr::Constant { .. })
                        if *data_type == types[at] || value.is_null() =>
                    {
                        rows.columns[at].push(value);
                    }
                    (Expr::Constant { .. }, _) | (_, Expr::Constant { .. }) => return Ok(None),
                    (expr, first) if expr == first => rows.columns[at].push_null(),
                    _ => return Ok(None),
                }
            }
            rows.row_count += 1;
        }
        let Some((template, targets)) = first else { return Ok(None) };
        let column = |(at, expr): (usize, Expr)| match expr {
            Expr::Constant { .. } => Expr::column(at, &types[at]),
            expr => expr,
        };
        let is_plain = template.iter().all(|expr| matches!(expr, Expr::Constant { .. }));
        let expressions = template.into_iter().enumerate().map(column).collect();
        let constants = Logical::Constants(rows.finish(types.clone()));
        Ok(Some(match is_plain {
            true => (constants, targets),
            false => (Logical::Project { input: Box::new(constants), expressions }, targets),
        }))
    }

    fn bind_constant(&mut self, constant: &ast::Expr) -> Result<Typed> {
        let ast::Expr::Unary { operator: UnaryOperator::Minus, operand, position } = constant
        else {
            return self.bind_expr(constant);
        };
        let ast::Expr::Number { text, .. } = &**operand else { return self.bind_expr(constant) };
        let bound = number(text, *position)?;
        let value = match &bound.expr {
            Expr::Constant { value: Datum::Int4(value), .. } => Datum::Int4(-value),
            Expr::Constant { value: Datum::Int8(value), .. } => Datum::Int8(-value),
            Expr::Constant { value: Datum::Numeric(value), .. } => Datum::Numeric(value.neg()),
            _ => return self.bind_expr(constant),
        };
        Ok(Typed::constant(value, bound.base(), *position))
    }

    /// Returns the value of a constant as a type; `None` if it does not fold.
    fn value_of(&mut self, bound: Typed, data_type: &DataType) -> Result<Option<Datum>> {
        Ok(match self.implicit(bound, SqlType::from(data_type))? {
            Expr::Constant { value, .. } => Some(value),
            _ => None,
        })
    }
}

/// Returns an integer constant as another integer type, if it fits.
fn narrowed(bound: &Typed, to: &DataType) -> Option<Datum> {
    match &bound.expr {
        Expr::Constant { value, .. } => narrow(value, to),
        _ => None,
    }
}

/// Adds a value if it is the first of its type.
fn note_type(firsts: &mut Vec<Typed>, bound: Typed) {
    if firsts.iter().all(|first| first.base() != bound.base()) {
        firsts.push(bound);
    }
}

/// Collector that turns rows into column vectors.
struct RowGatherer {
    columns: Vec<Vector>,
    row_count: usize,
}

impl RowGatherer {
    fn new(types: &[DataType]) -> RowGatherer {
        let columns = types.iter().map(|data_type| Vector::new(data_type, 0)).collect();
        RowGatherer { columns, row_count: 0 }
    }

    fn finish(self, types: Vec<DataType>) -> ConstantRows {
        let columns = self.columns.into_iter().map(Arc::new).collect();
        ConstantRows { types, rows: Arc::new(Batch { columns, row_count: self.row_count }) }
    }
}
