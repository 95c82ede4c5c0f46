//! Functions in FROM: of sets, of one value, several side by side, and those of the system.
//!
//! What is before a function in FROM can be named in its arguments. They are bound as a
//! subquery's, so such a column is a parameter, and the function is joined by
//! [`Rows::join_lateral`]. The planner makes one step of both where it can.

use types::DataType;

use crate::ast::{self, FunctionCall, Ident, TableFunction};
use crate::binder::level::{Binder, Clause};
use crate::binder::records::fields;
use crate::binder::rows::Rows;
use crate::binder::scope::{Relation, RelationKind, Scope};
use crate::binder::sets::is_set_function;
use crate::binder::typed::Typed;
use crate::error::{Error, Result, sqlstate};
use crate::logical::{Logical, OutputColumn, SetCall, SetFunction, SystemRows};

impl Binder<'_> {
    /// Binds an entry of FROM that calls functions.
    pub(super) fn bind_table_function(
        &mut self,
        function: &TableFunction,
    ) -> Result<(Rows, Scope)> {
        if let [call] = function.calls.as_slice() {
            let name = call.name.name.value.as_str();
            if name == "endpoint" && !function.ordinality {
                return self.bind_endpoint(call, function.alias.as_ref());
            }
            if let Some(bound) = self.bind_system_function(call, function)? {
                return Ok(bound);
            }
            if let Some(bound) = self.bind_user_rows(call, function)? {
                return Ok(bound);
            }
        }
        let bind = |binder: &mut Self| {
            let calls = function.calls.iter().map(|call| binder.bind_from_call(call));
            Ok(calls.collect::<Result<Vec<_>>>()?.into_iter().flatten().collect::<Vec<_>>())
        };
        let bound = self.within(Scope::default(), Clause::FunctionInFrom, bind);
        let (mut functions, level) = bound?;
        let mut rows = Rows::unit();
        for argument in functions.iter_mut().flat_map(SetFunction::arguments_mut) {
            *argument = rows.place(argument.clone(), &level.subqueries);
        }
        let mut columns: Vec<OutputColumn> =
            functions.iter().flat_map(|function| function.columns.iter().cloned()).collect();
        let is_single = functions.len() == 1 && columns.len() == 1;
        if function.ordinality {
            let name = "ordinality".to_owned();
            columns.push(OutputColumn { name, sql_type: DataType::Int8.into(), origin: None });
        }
        let first = rows.project_set(functions, function.ordinality);
        if first > 0 {
            let shown = (first..rows.types.len())
                .map(|index| types::expr::Expr::Column { index, data_type: rows.types[index] });
            let shown = shown.collect();
            rows.project(shown);
        }
        let relation = named(function, &columns, is_single)?;
        Ok((rows, Scope::of(relation)))
    }

    /// Binds one function; `unnest` of several arrays is several.
    fn bind_from_call(&mut self, call: &FunctionCall) -> Result<Vec<SetFunction>> {
        let name = call.name.name.value.as_str();
        let position = call.name.position();
        let in_catalog = call.name.schema.as_ref().is_none_or(|one| one.value == "pg_catalog");
        if !in_catalog || !is_set_function(name) {
            let value = self.bind_call(call)?;
            let value = self.known(value)?;
            if matches!(value.base(), DataType::Composite(_)) {
                return Ok(columns_of_row(&value));
            }
            let column =
                OutputColumn { name: name.to_owned(), sql_type: value.sql_type, origin: None };
            return Ok(vec![SetFunction {
                call: SetCall::Value(value.expr),
                columns: vec![column],
            }]);
        }
        if let Some(name) = call.arguments.iter().find_map(|argument| argument.name.as_ref()) {
            let hint = "Write the arguments in their order, without names.";
            return Err(Error::not_supported("a named argument", hint).at(name.position));
        }
        let arguments = call.arguments.iter().map(|argument| self.bind_expr(&argument.value));
        let arguments = arguments.collect::<Result<Vec<Typed>>>()?;
        if name == "unnest" && arguments.len() > 1 {
            let each = arguments
                .into_iter()
                .map(|array| self.bind_set_function(name, vec![array], position));
            return each.collect();
        }
        Ok(vec![self.bind_set_function(name, arguments, position)?])
    }

    /// Binds a function of the system, if it is one.
    fn bind_system_function(
        &mut self,
        call: &FunctionCall,
        function: &TableFunction,
    ) -> Result<Option<(Rows, Scope)>> {
        let name = &call.name.name.value;
        if !self.system.is_function(name) {
            return Ok(None);
        }
        let position = call.name.position();
        if function.ordinality {
            let what = format!("WITH ORDINALITY of {name}");
            return Err(Error::not_supported(what, "Number the rows by row_number().").at(position));
        }
        let bind = |binder: &mut Self| {
            let bind = |argument: &ast::FunctionArgument| {
                let value = binder.bind_expr(&argument.value)?;
                binder.known(value)
            };
            call.arguments.iter().map(bind).collect::<Result<Vec<Typed>>>()
        };
        let (arguments, level) = self.within(Scope::default(), Clause::FunctionInFrom, bind)?;
        level.refuse_subqueries("a function of the system")?;
        let types: Vec<DataType> = arguments.iter().map(Typed::base).collect();
        let Some(columns) = self.system.function(name, &types) else {
            let names: Vec<&str> = types.iter().map(|one| one.sql_name()).collect();
            let message = format!("function {name}({}) does not exist", names.join(", "));
            return Err(Error::new(sqlstate::UNDEFINED_FUNCTION, message)
                .with_hint(
                    "No function matches the given name and argument types. \
                     You might need to add explicit type casts.",
                )
                .at(position));
        };
        let relation = named(function, &columns, columns.len() == 1)?;
        let arguments = arguments.into_iter().map(|argument| argument.expr).collect();
        let types = columns.iter().map(|column| column.sql_type.base).collect();
        let name = name.clone();
        let plan = Logical::SystemRows(SystemRows { name, arguments, endpoint: None, columns });
        Ok(Some((Rows::new(plan, types), Scope::of(relation))))
    }
}

/// Returns the fields of a row as functions of one value each.
fn columns_of_row(row: &Typed) -> Vec<SetFunction> {
    let fields = fields(row).unwrap_or_default().into_iter();
    let column = |(name, value): (std::sync::Arc<str>, Typed)| SetFunction {
        call: SetCall::Value(value.expr),
        columns: vec![OutputColumn {
            name: name.to_string(),
            sql_type: value.sql_type,
            origin: None,
        }],
    };
    fields.map(column).collect()
}

/// Returns the relation of functions: the alias of one that returns a value names its column, too,
/// unless the column has a name of its own.
pub(super) fn named(
    function: &TableFunction,
    columns: &[OutputColumn],
    is_single: bool,
) -> Result<Relation> {
    let first = function.calls.first().map(|call| &call.name.name);
    let own = first.map_or("", |name| name.value.as_str());
    let kind = RelationKind::Function;
    let Some(alias) = &function.alias else {
        return Ok(Relation { kind, ..Relation::new(own, columns) });
    };
    let mut relation = Relation { kind, ..Relation::new(&alias.name.value, columns) };
    let only = [Ident { value: alias.name.value.clone(), position: alias.name.position }];
    let takes_alias = is_single && columns.first().is_some_and(|column| column.name == own);
    match (alias.columns.is_empty(), takes_alias) {
        (true, true) => relation.rename(&only)?,
        _ => relation.rename(&alias.columns)?,
    }
    Ok(relation)
}
