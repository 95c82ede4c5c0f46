//! Set-returning functions, such as `generate_series`, `unnest` and `json_each`, in FROM and in
//! select lists.
//!
//! A call in a select list becomes a placeholder column from [`SET`] on. ProjectSet nodes evaluate
//! the calls above grouping, HAVING and window functions, and below DISTINCT, ORDER BY and LIMIT;
//! calls in grouping keys and window definitions are evaluated below these. A call in the
//! arguments of another one is evaluated first; all calls of the same nesting depth are evaluated
//! in one node.
//!
//! Source: PostgreSQL's `check_srf_call_placement` (parse_func.c), `split_pathtarget_at_srfs`
//! (tlist.c).

use std::sync::Arc;

use types::expr::Expr;
use types::function::sets;
use types::{DataType, SqlType};

use crate::ast::FunctionCall;
use crate::binder::level::{Binder, Clause, QueryLevel, SET, SUBQUERY, SetUse};
use crate::binder::overload_resolution::{Match, resolve_set};
use crate::binder::polymorphic::instantiate_domains;
use crate::binder::records::row_of;
use crate::binder::rows::Rows;
use crate::binder::tree::{for_each_column, map_columns};
use crate::binder::typed::{Typed, null};
use crate::error::{Error, Result};
use crate::logical::{OutputColumn, SetCall, SetFunction};

/// Returns whether a function of this name is set-returning.
pub(super) fn is_set_function(name: &str) -> bool {
    !sets::overloads(name).is_empty()
}

/// The columns of the placed calls, by call number.
#[derive(Debug, Default)]
pub(super) struct SetColumns {
    places: Vec<Option<usize>>,
}

impl SetColumns {
    /// Replaces placeholders by the columns.
    pub(super) fn map(&self, expr: &mut Expr) {
        map_columns(expr, &|index| {
            let (call, column) = call_at(index);
            match self.places.get(call) {
                Some(Some(place)) => *place + column,
                _ => index,
            }
        });
    }
}

/// The maximum number of columns of a function, as in PostgreSQL; it is the distance between the
/// placeholders of two calls.
const COLUMNS_MAX: usize = 1_664;

/// Returns the call of a placeholder, and the position of the column in the call's result.
fn call_at(index: usize) -> (usize, usize) {
    let index = index.wrapping_sub(SET);
    (index / COLUMNS_MAX, index % COLUMNS_MAX)
}

/// Returns the set-returning calls in an expression, by number.
pub(super) fn calls_in(expr: &Expr) -> Vec<usize> {
    let mut calls = Vec::new();
    for_each_column(expr, &mut |index| {
        if (SET..SUBQUERY).contains(&index) {
            calls.push(call_at(index).0);
        }
    });
    calls
}

impl QueryLevel {
    /// Adds ProjectSet nodes for calls, including those in their arguments.
    pub(super) fn place_sets(&self, rows: &mut Rows, places: &mut SetColumns, wanted: &[usize]) {
        places.places.resize(self.set_uses.len(), None);
        let mut all: Vec<usize> = wanted.to_vec();
        let mut at = 0;
        while at < all.len() {
            let inner = self.set_uses[all[at]].function.arguments().iter().flat_map(calls_in);
            all.extend(inner);
            at += 1;
        }
        all.retain(|&call| places.places[call].is_none());
        all.sort_unstable();
        all.dedup();
        let depth_max = all.iter().map(|&call| self.set_uses[call].depth).max().unwrap_or(0);
        for depth in 0..=depth_max {
            let calls = all.iter().copied().filter(|&call| self.set_uses[call].depth == depth);
            let calls: Vec<usize> = calls.collect();
            let mut functions = Vec::with_capacity(calls.len());
            for &call in &calls {
                let mut function = self.set_uses[call].function.clone();
                for argument in function.arguments_mut() {
                    places.map(argument);
                    *argument = rows.place(argument.clone(), &self.subqueries);
                }
                functions.push(function);
            }
            if functions.is_empty() {
                continue;
            }
            let widths: Vec<usize> = functions.iter().map(|one| one.columns.len()).collect();
            let mut place = rows.project_set(functions, false);
            for (call, width) in calls.into_iter().zip(widths) {
                places.places[call] = Some(place);
                place += width;
            }
        }
    }
}

/// Returns the row of a function's columns; NULL after it has returned its last row before other
/// functions.
fn row_or_null(values: Vec<(Arc<str>, Typed)>, position: usize) -> Typed {
    let is_null = |(_, value): &(Arc<str>, Typed)| Expr::IsNull(Box::new(value.expr.clone()));
    let condition = Expr::And(values.iter().map(is_null).collect());
    let row = row_of(values, position);
    let data_type = row.base().clone();
    let expr = Expr::Case {
        branches: vec![(condition, null(&data_type))],
        otherwise: Box::new(row.expr),
        data_type: data_type.clone(),
    };
    Typed { expr, ..Typed::new(null(&data_type), data_type, position) }
}

impl Binder<'_> {
    /// Binds a call in an expression.
    pub(super) fn bind_set_use(&mut self, call: &FunctionCall, position: usize) -> Result<Typed> {
        let name = call.name.name.value.as_str();
        let arguments = self.placed_arguments(call, sets::overloads(name))?;
        let function = self.bind_set_function(name, arguments, position)?;
        self.use_set(function, position)
    }

    /// Adds a call that is evaluated for each row of the current query level.
    pub(super) fn use_set(&mut self, function: SetFunction, position: usize) -> Result<Typed> {
        self.check_set_place(position)?;
        let columns = function.columns.clone();
        let level = self.level();
        let inner = function.arguments().iter().flat_map(calls_in);
        let depth = inner.map(|call| level.set_uses[call].depth + 1).max().unwrap_or(0);
        let found = SetUse { function, depth };
        let index = level.set_uses.iter().position(|one| *one == found).unwrap_or_else(|| {
            level.set_uses.push(found);
            level.set_uses.len() - 1
        });
        let column = |(at, column): (usize, &OutputColumn)| {
            let index = SET + index * COLUMNS_MAX + at;
            let expr = Expr::Column { index, data_type: column.sql_type.base.clone() };
            (
                Arc::from(column.name.as_str()),
                Typed { expr, sql_type: column.sql_type.clone(), position },
            )
        };
        let values: Vec<(Arc<str>, Typed)> = columns.iter().enumerate().map(column).collect();
        match values.as_slice() {
            [(_, value)] => Ok(value.clone()),
            _ => Ok(row_or_null(values, position)),
        }
    }

    fn check_set_place(&mut self, position: usize) -> Result<()> {
        let level = self.level();
        let movable = match (level.in_aggregate, level.in_window, level.refuses_sets) {
            (true, ..) => {
                Some("aggregate function calls cannot contain set-returning function calls".into())
            }
            (_, Some("window function calls cannot be nested"), _) => {
                Some("window function calls cannot contain set-returning function calls".into())
            }
            (_, _, Some(place)) => {
                Some(format!("set-returning functions are not allowed in {place}"))
            }
            _ => None,
        };
        if let Some(message) = movable {
            bail!(FEATURE_NOT_SUPPORTED: message; at position;
                hint "You might be able to move the set-returning function into a LATERAL FROM item.");
        }
        let message = match level.clause {
            clause if clause.allows_sets() => return Ok(()),
            Clause::Frame(_) => {
                "set-returning functions are not allowed in window definitions".to_owned()
            }
            Clause::FunctionInFrom => {
                "set-returning functions must appear at top level of FROM".to_owned()
            }
            clause => format!("set-returning functions are not allowed in {}", clause.name()),
        };
        bail!(FEATURE_NOT_SUPPORTED: message; at position)
    }

    /// Binds an expression in which set-returning functions are not allowed.
    pub(super) fn without_sets<T>(
        &mut self,
        place: &'static str,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let before = self.level().refuses_sets.replace(place);
        let result = bind(self);
        self.level().refuses_sets = before;
        result
    }

    /// Resolves a set-returning function, and converts the arguments to its parameter types.
    pub(super) fn bind_set_function(
        &mut self,
        name: &str,
        arguments: Vec<Typed>,
        position: usize,
    ) -> Result<SetFunction> {
        let types: Vec<DataType> = arguments.iter().map(Typed::base).cloned().collect();
        let shown = || format!("function {}", self.shown_call(name, &arguments));
        let found = match resolve_set(name, &types) {
            Match::One(signature) => {
                let given: Vec<SqlType> =
                    arguments.iter().map(|one| one.sql_type.clone()).collect();
                let settled = instantiate_domains(self.catalog, signature, &given);
                settled.map(|settled| (signature, settled))
            }
            Match::Ambiguous => {
                bail!(AMBIGUOUS_FUNCTION: "{} is not unique", shown();
                    hint "Could not choose a best candidate function. You might need to add explicit type casts."; at position);
            }
            Match::None => None,
        };
        let Some((signature, (wanted, result))) = found else {
            bail!(UNDEFINED_FUNCTION: "{} does not exist", shown();
                hint "No function matches the given name and argument types. You might need to add explicit type casts.";
                at position);
        };
        self.note_operands(position, name, wanted.clone());
        let convert = |(value, to): (Typed, SqlType)| self.implicit(value, to);
        let arguments = arguments.into_iter().zip(wanted).map(convert).collect::<Result<_>>()?;
        let column = |(name, data_type): &(&str, DataType)| {
            let sql_type = match data_type.is_polymorphic() {
                true => result.clone(),
                false => data_type.into(),
            };
            OutputColumn { name: (*name).to_owned(), sql_type, origin: None }
        };
        let columns = sets::columns(signature.id).iter().map(column).collect();
        Ok(SetFunction { call: SetCall::Set { function: signature.id, arguments }, columns })
    }
}
