//! Functions in FROM: set-returning and scalar functions, ROWS FROM, and table functions of the
//! system.
//!
//! Arguments may refer to columns of preceding entries of FROM. They are bound as in a subquery:
//! such a column is a parameter, and the function is joined by [`Rows::join_lateral`]. The planner
//! combines the join and the function into one node where it can.

use types::DataType;
use types::expr::Expr;
use types::function::sets;

use crate::ast::{self, Ident, TableFunction};
use crate::binder::function::is_undefined_record;
use crate::binder::json_records::{JsonRows, definitions_missing, definitions_needless};
use crate::binder::level::{Binder, Clause};
use crate::binder::rows::Rows;
use crate::binder::scope::{RelationKind, Scope, ScopeRelation};
use crate::binder::set_functions::is_set_function;
use crate::binder::typed::Typed;
use crate::error::{Error, Result};
use crate::logical::{OutputColumn, SetCall, SetFunction};

/// The bound form of a call in FROM.
enum BoundFromCall {
    /// A function, and the columns of its rows over their value.
    Function(SetFunction, Vec<OutputColumn>),
    /// A plan that replaces the call, and its columns.
    Rows(Box<Rows>, Vec<OutputColumn>),
}

impl Binder<'_> {
    /// Binds an entry of FROM that calls functions.
    pub(super) fn bind_table_function(
        &mut self,
        function: &TableFunction,
    ) -> Result<(Rows, Scope)> {
        if let [ast::FromCall { call, definitions }] = function.calls.as_slice()
            && definitions.is_empty()
            && let Some(bound) = self.bind_region_function(function, call)?
        {
            return Ok(bound);
        }
        let alone = function.calls.len() == 1 && !function.ordinality;
        let bind = |binder: &mut Self| {
            let calls = function.calls.iter();
            let calls = calls.map(|call| binder.bind_from_call(call, alone));
            Ok(calls.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect::<Vec<_>>())
        };
        let bound = self.in_new_level(Scope::default(), Clause::FunctionInFrom, bind);
        let (bound, level) = bound?;
        let (mut functions, mut defined) = (Vec::new(), Vec::new());
        for one in bound {
            match one {
                BoundFromCall::Rows(rows, columns) => {
                    let plain = |column| MadeColumn { column, is_modified: false };
                    let made = columns.into_iter().map(plain).collect();
                    return self.function_rows(function, *rows, 0, made, Vec::new());
                }
                BoundFromCall::Function(made, columns) => {
                    defined.push(columns);
                    defined.extend(made.columns.iter().skip(1).map(|_| Vec::new()));
                    functions.push(made);
                }
            }
        }
        let mut rows = Rows::unit();
        for argument in functions.iter_mut().flat_map(SetFunction::arguments_mut) {
            *argument = rows.place(argument.clone(), &level.subqueries);
        }
        let made: Vec<MadeColumn> = functions.iter().flat_map(made_columns).collect();
        let first = rows.project_set(functions, function.ordinality);
        self.function_rows(function, rows, first, made, defined)
    }

    /// Returns the rows and the scope of functions. The columns from `first` on are `made`; a row
    /// of a composite type is expanded to its columns, one of a column definition list to those of
    /// `defined`.
    fn function_rows(
        &mut self,
        function: &TableFunction,
        mut rows: Rows,
        first: usize,
        made: Vec<MadeColumn>,
        defined: Vec<Vec<OutputColumn>>,
    ) -> Result<(Rows, Scope)> {
        let is_single = made.len() == 1;
        let mut columns: Vec<OutputColumn> = Vec::new();
        let mut values = Vec::new();
        let is_defined = defined.iter().any(|columns| !columns.is_empty());
        let mut defined = defined.into_iter();
        let mut row_type = None;
        for (at, MadeColumn { column, is_modified }) in made.iter().enumerate() {
            let sql_type = &column.sql_type;
            let mut expr = Expr::Column { index: first + at, data_type: sql_type.base.clone() };
            if *is_modified {
                let (operand, from) = (Box::new(expr), sql_type.base.clone());
                expr = Expr::Cast { operand, from, to: sql_type.clone(), explicit: false };
            }
            let defined = defined.next().unwrap_or_default();
            if !matches!(sql_type.base, DataType::Composite(_)) && defined.is_empty() {
                columns.push(column.clone());
                values.push(expr);
                continue;
            }
            row_type = self.catalog.type_of_oid(sql_type.oid()).map(|one| one.number());
            let row = Typed { expr, sql_type: sql_type.clone(), position: 1 };
            for (column, value) in self.columns_of_row(&row, defined)? {
                columns.push(column);
                values.push(value);
            }
        }
        let is_row = is_single && columns.len() != 1 || row_type.is_some();
        if function.ordinality {
            let (name, base) = ("ordinality".to_owned(), DataType::Int8);
            values.push(Expr::Column { index: first + made.len(), data_type: base.clone() });
            columns.push(OutputColumn { name, sql_type: base.into(), origin: None });
        }
        let is_lone = made.len() == 1;
        let takes_alias =
            is_lone && !is_row && columns.len() == 1 + usize::from(function.ordinality);
        if first > 0 || values.iter().enumerate().any(|(at, one)| !is_column(one, at)) {
            rows.project(values);
        }
        let mut relation = named(function, &columns, takes_alias)?;
        relation.is_value = takes_alias && !function.ordinality && !is_defined;
        relation.row_type = row_type.filter(|_| is_lone && !function.ordinality);
        Ok((rows, Scope::of(relation)))
    }

    /// Binds one call, which may be `alone` in its entry; `unnest` of several arrays becomes
    /// several calls.
    fn bind_from_call(&mut self, of: &ast::FromCall, alone: bool) -> Result<Vec<BoundFromCall>> {
        let ast::FromCall { call, definitions } = of;
        let name = call.name.name.value.as_str();
        let position = call.name.position();
        if let Some(rows) = JsonRows::of(call) {
            let (made, defined) = self.json_rows_in_from(of, rows)?;
            return Ok(vec![BoundFromCall::Function(made, defined)]);
        }
        if let Some(bound) = self.bind_user_rows(of, alone)? {
            return Ok(vec![bound]);
        }
        if let Some((first, _)) = definitions.first() {
            return Err(definitions_needless(first.position));
        }
        let in_catalog = call.name.schema.as_ref().is_none_or(|one| one.value == "pg_catalog");
        if !in_catalog || !is_set_function(name) {
            let value = self.bind_call(call)?;
            let value = self.resolve_unknown(value)?;
            let column = OutputColumn {
                name: name.to_owned(),
                sql_type: value.sql_type.clone(),
                origin: None,
            };
            let made = SetFunction { call: SetCall::Value(value.expr), columns: vec![column] };
            return Ok(vec![BoundFromCall::Function(made, Vec::new())]);
        }
        let arguments = self.placed_arguments(call, sets::overloads(name))?;
        if name == "unnest" && arguments.len() > 1 {
            let each = arguments
                .into_iter()
                .map(|array| self.bind_set_function(name, vec![array], position));
            return each.map(|one| Ok(BoundFromCall::Function(one?, Vec::new()))).collect();
        }
        let made = self.bind_set_function(name, arguments, position)?;
        Ok(vec![BoundFromCall::Function(made, Vec::new())])
    }

    /// Binds a call of a user-defined function; `None` if it resolves to none.
    fn bind_user_rows(&mut self, of: &ast::FromCall, alone: bool) -> Result<Option<BoundFromCall>> {
        let ast::FromCall { call, definitions } = of;
        let named = self.functions_named(call)?;
        if named.is_empty() {
            return Ok(None);
        }
        let Some(values) = self.values_for(call, &named)? else { return Ok(None) };
        let resolved = self.resolve_user_call(call, named, values)?;
        self.refuse_procedure(call, &resolved)?;
        let defined = self.defined_columns(definitions)?;
        let first = definitions.first().map(|(first, _)| first.position);
        let of = &resolved.function;
        let defined = match (is_undefined_record(of), first) {
            (true, None) => return Err(definitions_missing(call.name.position())),
            (true, Some(_)) => Some(defined),
            (false, Some(position)) if of.is_row() => {
                bail!(SYNTAX_ERROR: "a column definition list is redundant for a function with OUT parameters"; at position);
            }
            (false, Some(position)) => return Err(definitions_needless(position)),
            (false, None) => None,
        };
        if alone
            && self.level().subqueries.is_empty()
            && let Some(rows) = self.inlined_rows(&resolved)?
        {
            let made = self.set_routine(call, resolved, None);
            return Ok(Some(BoundFromCall::Rows(Box::new(rows), made.columns)));
        }
        let made = self.set_routine(call, resolved, defined.as_deref());
        Ok(Some(BoundFromCall::Function(made, Vec::new())))
    }
}

/// An output column of a function.
struct MadeColumn {
    column: OutputColumn,
    /// True if the call determines a type modifier, such as in `numeric(4, 2)`, to which the
    /// values are converted.
    is_modified: bool,
}

fn made_columns(function: &SetFunction) -> impl Iterator<Item = MadeColumn> {
    let is_routine = matches!(function.call, SetCall::Routine { .. });
    function.columns.iter().map(move |column| MadeColumn {
        column: column.clone(),
        is_modified: is_routine && column.sql_type.modifier != -1,
    })
}

fn is_column(expr: &Expr, at: usize) -> bool {
    matches!(expr, Expr::Column { index, .. } if *index == at)
}

/// Returns the relation of functions. The alias of a single scalar function also names its column,
/// unless the column is named by the function.
pub(super) fn named(
    function: &TableFunction,
    columns: &[OutputColumn],
    is_single: bool,
) -> Result<ScopeRelation> {
    let first = function.calls.first().map(|one| &one.call.name.name);
    let own = first.map_or("", |name| name.value.as_str());
    let kind = RelationKind::Function;
    let Some(alias) = &function.alias else {
        return Ok(ScopeRelation { kind, ..ScopeRelation::new(own, columns) });
    };
    let mut relation = ScopeRelation { kind, ..ScopeRelation::new(&alias.name.value, columns) };
    let only = [Ident { value: alias.name.value.clone(), position: alias.name.position }];
    let takes_alias = is_single && columns.first().is_some_and(|column| column.name == own);
    match (alias.columns.is_empty(), takes_alias) {
        (true, true) => relation.rename(&only)?,
        _ => relation.rename(&alias.columns)?,
    }
    Ok(relation)
}
