//! `endpoint('table', 'name' [, argument => value, …] [, start => key] [, stop => key])` in FROM.
//!
//! The call runs a coprocessor endpoint on the regions of a table. The first two arguments must be
//! literals, because they determine the columns. Arguments are bound as text, which the endpoint
//! parses; keys are bound as the types of the leading columns of the table's key: `10` or `(10,
//! 'a')`.

use std::sync::Arc;

use types::DataType;
use types::cast::CastContext;
use types::expr::Expr;

use crate::ast::{self, FunctionArgument, Ident, TableName};
use crate::binder::level::{Binder, Clause};
use crate::binder::rows::Rows;
use crate::binder::scope::{RelationKind, Scope, ScopeRelation};
use crate::catalog::CatalogRelation;
use crate::catalog::table::Table;
use crate::error::{Error, Result};
use crate::logical::{EndpointTarget, Logical, SystemRows};

/// The syntax of a call, for hints.
const FORM: &str = "endpoint('table', 'name', argument => value, …, start => key, stop => key)";

/// The named arguments of a call.
#[derive(Default)]
struct EndpointArguments {
    names: Vec<String>,
    arguments: Vec<Expr>,
    start: Vec<Expr>,
    stop: Vec<Expr>,
}

impl Binder<'_> {
    /// Binds a call of an endpoint.
    pub(super) fn bind_endpoint(
        &mut self,
        call: &ast::FunctionCall,
        alias: Option<&ast::TableAlias>,
    ) -> Result<(Rows, Scope)> {
        let position = call.name.position();
        let [table, name, named @ ..] = call.arguments.as_slice() else {
            bail!(UNDEFINED_FUNCTION: "endpoint() requires a table and the name of an endpoint"; hint "Write {FORM}.";
                at position);
        };
        let ((table, table_at), (name, name_at)) = (literal(table)?, literal(name)?);
        let found = self.catalog.find_text(table, self.constants.search_path())?;
        let Some(CatalogRelation::Table(table)) = found else {
            let relation = Ident { value: table.to_owned(), position: table_at };
            return Err(self.no_table(&TableName { schema: None, name: relation }));
        };
        let table = Arc::clone(table);
        let shape = self.system.endpoint(&table, name).map_err(|error| error.at(name_at))?;
        let bind = |binder: &mut Self| binder.bind_given(&table, (name, &shape.parameters), named);
        let (given, level) = self.in_new_level(Scope::default(), Clause::FunctionInFrom, bind)?;
        level.refuse_subqueries("a function in FROM")?;
        let alias_name = alias.map_or(name, |alias| &alias.name.value);
        let mut relation = ScopeRelation::new(alias_name, &shape.columns);
        relation.kind = RelationKind::Function;
        relation.rename(alias.map_or(&[], |alias| &alias.columns))?;
        let types = shape.columns.iter().map(|column| column.sql_type.base.clone()).collect();
        let target = EndpointTarget {
            table,
            name: name.to_owned(),
            arguments: given.names,
            start_count: given.start.len(),
            stop_count: given.stop.len(),
        };
        let arguments = [given.arguments, given.start, given.stop].concat();
        let plan = Logical::SystemRows(SystemRows {
            name: "endpoint".to_owned(),
            arguments,
            endpoint: Some(Arc::new(target)),
            columns: shape.columns,
        });
        Ok((Rows::new(plan, types), Scope::of(relation)))
    }

    fn bind_given(
        &mut self,
        table: &Table,
        (endpoint, parameters): (&str, &[&str]),
        written: &[FunctionArgument],
    ) -> Result<EndpointArguments> {
        let mut given = EndpointArguments::default();
        let mut seen: Vec<&str> = Vec::new();
        for FunctionArgument { name, value } in written {
            let Some(Ident { value: name, position }) = name else {
                bail!(SYNTAX_ERROR: "arguments of an endpoint must be named"; hint "Write {FORM}."; at value.position());
            };
            if seen.contains(&name.as_str()) {
                bail!(INVALID_PARAMETER_VALUE: "parameter \"{name}\" specified more than once"; at *position);
            }
            seen.push(name);
            match name.as_str() {
                "start" => given.start = self.bind_key(table, value)?,
                "stop" => given.stop = self.bind_key(table, value)?,
                name if parameters.contains(&name) => {
                    let bound = self.bind_expr(value)?;
                    let text = self.explicit(bound, DataType::Text, value.position())?;
                    given.arguments.push(text);
                    given.names.push(name.to_owned());
                }
                name => {
                    let known = [parameters, &["start", "stop"]].concat().join(", ");
                    bail!(INVALID_PARAMETER_VALUE: "endpoint \"{endpoint}\" has no parameter \"{name}\"";
                        detail "Its parameters are {known}."; at *position);
                }
            }
        }
        Ok(given)
    }

    /// Binds the values of the leading columns of a table's key.
    fn bind_key(&mut self, table: &Table, written: &ast::Expr) -> Result<Vec<Expr>> {
        let fields = match written {
            ast::Expr::Row { fields, .. } => fields.as_slice(),
            single => std::slice::from_ref(single),
        };
        let columns: Vec<usize> = match table.row_id_column() {
            Some(_) => Vec::new(),
            None => table.key_columns().collect(),
        };
        if fields.len() > columns.len() || fields.is_empty() {
            bail!(SYNTAX_ERROR: "key has {} values, but the primary key of the table has {} columns",
                fields.len(), columns.len(); at written.position());
        }
        let mut key = Vec::with_capacity(fields.len());
        for (field, column) in fields.iter().zip(columns) {
            let value = self.bind_expr(field)?;
            let (from, column) = (value.base().clone(), &table.columns[column]);
            let bound = self.coerce(value, &column.sql_type, CastContext::Assignment)?;
            key.push(bound.ok_or_else(|| {
                err!(DATATYPE_MISMATCH: "column \"{}\" is of type {} but expression is of type {}",
                    column.name, column.sql_type.base.sql_name(), from.sql_name(); at field.position())
            })?);
        }
        Ok(key)
    }
}

/// Returns the text of a literal argument, and its position.
fn literal(argument: &FunctionArgument) -> Result<(&str, usize)> {
    match argument {
        FunctionArgument { name: None, value: ast::Expr::String { value, position } } => {
            Ok((value, *position))
        }
        FunctionArgument { value, .. } => {
            bail!(SYNTAX_ERROR: "the table and the endpoint must be literals";
                detail "They determine the columns of the result."; hint "Write {FORM}."; at value.position())
        }
    }
}
