//! TABLESAMPLE, as a filter on a hash of the rows' keys.
//!
//! Source: PostgreSQL's `transformRangeTableSample` (parse_clause.c).

use std::sync::Arc;

use types::cast::CastContext;
use types::expr::Expr;
use types::{DataType, Datum};

use crate::ast::{self, TableSample};
use crate::binder::level::{Binder, Clause, ColumnVisibility};
use crate::binder::records::row_of;
use crate::binder::rows::Rows;
use crate::binder::scope::Scope;
use crate::binder::typed::Typed;
use crate::catalog::table::Table;
use crate::error::{Error, Result};

/// The number of consecutive integer values of the last key column whose rows SYSTEM selects
/// together.
const NEIGHBOURS: i64 = 64;

/// The sampling method.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Method {
    /// `BERNOULLI`: rows are selected individually.
    Bernoulli,
    /// `SYSTEM`: neighbouring rows are selected together.
    System,
}

impl Binder<'_> {
    /// Filters the rows of a table by its TABLESAMPLE clause.
    pub(super) fn bind_sample(
        &mut self,
        rows: &mut Rows,
        (table, scope): (&Table, &Scope),
        sample: &TableSample,
    ) -> Result<()> {
        let method = method(sample)?;
        let [percentage] = sample.method.arguments.as_slice() else {
            let position = sample.method.name.name.position;
            bail!(INVALID_TABLESAMPLE_ARGUMENT: "tablesample method {} requires 1 argument, not {}",
                sample.method.name.name.value, sample.method.arguments.len(); at position);
        };
        let of = ("TABLESAMPLE", DataType::Float4);
        let percentage = self.bind_sample_value(&percentage.value, scope, of)?;
        let (name, seed) = match &sample.seed {
            Some(seed) => {
                (" sample", self.bind_sample_value(seed, scope, ("REPEATABLE", DataType::Float8))?)
            }
            // Without a seed, each clause of a statement gets its own sample.
            None => {
                let position = i32::try_from(sample.method.name.name.position).unwrap_or_default();
                let value = Datum::Int4(position);
                (" sample of now", Expr::Constant { value, data_type: DataType::Int4 })
            }
        };
        let key = sampled_key(table, method);
        let signature = types::function::overloads(name).first();
        let function = signature.expect("the functions of samples are there").id;
        let arguments = vec![percentage, seed, key];
        rows.filter(Expr::Call { function, arguments, data_type: DataType::Bool }, &[]);
        Ok(())
    }

    fn bind_sample_value(
        &mut self,
        value: &ast::Expr,
        scope: &Scope,
        (clause, to): (&str, DataType),
    ) -> Result<Expr> {
        let bind = |binder: &mut Self| {
            let value = binder.bind_expr(value)?;
            let (from, position) = (value.base().clone(), value.position);
            binder.coerce(value, &(&to).into(), CastContext::Assignment)?.ok_or_else(|| {
                let (to, name) = (to.sql_name(), from.sql_name());
                err!(DATATYPE_MISMATCH: "argument of {clause} must be type {to}, not type {name}"; with_type_mention from;
                    at position)
            })
        };
        // The table is in a hidden level, so that the error for a reference to its columns is
        // specific.
        let clause = Clause::FunctionInFrom;
        let bound = self.lateral(|binder| {
            binder.push_level(scope.clone(), clause);
            binder.level().reach = ColumnVisibility::Hidden;
            let bound = binder.in_new_level(Scope::default(), clause, bind);
            binder.pop_level();
            bound
        });
        let (expr, level) = bound?;
        level.refuse_subqueries("TABLESAMPLE")?;
        Ok(expr)
    }
}

fn method(sample: &TableSample) -> Result<Method> {
    let name = &sample.method.name;
    match (name.schema.as_ref().map(|schema| schema.value.as_str()), name.name.value.as_str()) {
        (None | Some("pg_catalog"), "bernoulli") => Ok(Method::Bernoulli),
        (None | Some("pg_catalog"), "system") => Ok(Method::System),
        (schema, method) => {
            let schema = schema.map(|schema| format!("{schema}.")).unwrap_or_default();
            bail!(UNDEFINED_OBJECT: "tablesample method {schema}{method} does not exist"; at name.name.position)
        }
    }
}

/// Returns the hashed value of a row: its key, or the part of the key that neighbours share.
fn sampled_key(table: &Table, method: Method) -> Expr {
    let mut values: Vec<(Arc<str>, Typed)> = Vec::new();
    for index in table.key_columns() {
        let data_type = &table.columns[index].sql_type.base;
        let value = Typed::new(Expr::Column { index, data_type: data_type.clone() }, data_type, 1);
        values.push((Arc::from(""), value));
    }
    if method == Method::System
        && let Some((name, last)) = values.pop()
    {
        if let Some(block) = block_of(last.clone()) {
            values.push((name, block));
        } else if values.is_empty() {
            values.push((name, last));
        }
    }
    row_of(values, 1).expr
}

/// Returns the number of the block of neighbours for an integer key value.
fn block_of(value: Typed) -> Option<Typed> {
    let data_type = value.base().clone();
    let size = match data_type {
        DataType::Int2 => Datum::Int2(NEIGHBOURS as i16),
        DataType::Int4 => Datum::Int4(NEIGHBOURS as i32),
        DataType::Int8 => Datum::Int8(NEIGHBOURS),
        _ => return None,
    };
    let function = types::function::find("/", &[data_type.clone(), data_type.clone()]);
    let function = function.expect("whole numbers can be divided");
    let arguments = vec![value.expr, Expr::Constant { value: size, data_type: data_type.clone() }];
    Some(Typed::new(Expr::Call { function, arguments, data_type: data_type.clone() }, data_type, 1))
}
