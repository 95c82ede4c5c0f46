//! Functions over the regions of a table, in FROM.
//!
//! * `endpoint('table', 'name' [, argument => value, …] [, start => key] [, stop => key])` runs a
//!   coprocessor endpoint.
//! * `cells('table' [, raw [, versions]] [, argument => value, …] [, start => key]
//!   [, stop => key])` lists the cells of a table or index.
//!
//! The table, and the name of an endpoint, must be literals, because they determine the columns
//! and the types of keys. Keys are bound as the types of the leading columns of the key: `10` or
//! `(10, 'a')`.

use std::sync::Arc;

use types::cast::CastContext;
use types::expr::Expr;
use types::{DataType, SqlType};

use crate::ast::{self, FunctionArgument, Ident, TableName};
use crate::binder::level::{Binder, Clause};
use crate::binder::rows::Rows;
use crate::binder::scope::{RelationKind, Scope, ScopeRelation};
use crate::catalog::CatalogRelation;
use crate::error::{Error, Result};
use crate::logical::cells::{CELL_COLUMNS, CELL_PARAMETERS};
use crate::logical::{
    Logical, Origin, OutputColumn, RegionFunction, RegionFunctionTarget, SystemRows,
};

/// The signature of a function over regions.
struct RegionSignature<'p> {
    /// Its name in messages.
    title: String,
    /// The syntax of a call, for hints.
    form: &'static str,
    parameters: Vec<(&'p str, DataType)>,
    /// Parameters that an argument without a name may be for, from the first on.
    positional: usize,
    /// Conversion of arguments to the types of their parameters.
    cast: CastContext,
}

/// The arguments of a call.
#[derive(Default)]
struct RegionArguments {
    names: Vec<String>,
    arguments: Vec<Expr>,
    start: Vec<Expr>,
    stop: Vec<Expr>,
}

/// A column of the key of a table or index: its name and type.
type KeyPart = (String, SqlType);

const ENDPOINT_FORM: &str =
    "endpoint('table', 'name', argument => value, …, start => key, stop => key)";
const CELLS_FORM: &str = "cells('table', argument => value, …, start => key, stop => key)";

impl Binder<'_> {
    /// Binds a call of a function over regions; `None` if it is another function.
    pub(super) fn bind_region_function(
        &mut self,
        function: &ast::TableFunction,
        call: &ast::FunctionCall,
    ) -> Result<Option<(Rows, Scope)>> {
        let name = call.name.name.value.as_str();
        let bound = match name {
            _ if call.name.schema.is_some() => return Ok(None),
            "endpoint" => self.endpoint_target(call)?,
            "cells" => self.cells_target(call)?,
            _ => return Ok(None),
        };
        if function.ordinality {
            return Err(Error::not_supported(
                format!("WITH ORDINALITY of {name}"),
                "Number the rows with row_number().",
            )
            .at(call.name.position()));
        }
        let (target, arguments, columns) = bound;
        let own = match &target.function {
            RegionFunction::Endpoint(name) => name.as_str(),
            RegionFunction::Cells(_) => name,
        };
        let alias = function.alias.as_ref();
        let mut relation =
            ScopeRelation::new(alias.map_or(own, |alias| &alias.name.value), &columns);
        relation.kind = RelationKind::Function;
        relation.rename(alias.map_or(&[], |alias| &alias.columns))?;
        let types = columns.iter().map(|column| column.sql_type.base.clone()).collect();
        let plan = Logical::SystemRows(SystemRows {
            name: name.to_owned(),
            arguments,
            target: Some(Arc::new(target)),
            columns,
        });
        Ok(Some((Rows::new(plan, types), Scope::of(relation))))
    }

    fn endpoint_target(
        &mut self,
        call: &ast::FunctionCall,
    ) -> Result<(RegionFunctionTarget, Vec<Expr>, Vec<OutputColumn>)> {
        let [table, name, given @ ..] = call.arguments.as_slice() else {
            bail!(UNDEFINED_FUNCTION: "endpoint() requires a table and the name of an endpoint"; hint "Write {ENDPOINT_FORM}.";
                at call.name.position());
        };
        let table = literal(table, ENDPOINT_FORM)?;
        let (name, name_at) = literal(name, ENDPOINT_FORM)?;
        let target = self.region_target(table, RegionFunction::Endpoint(name.to_owned()))?;
        let shape = self.system.endpoint(&target.table, name);
        let shape = shape.map_err(|error| error.at(name_at))?;
        let signature = RegionSignature {
            title: format!("endpoint \"{name}\""),
            form: ENDPOINT_FORM,
            parameters: shape.parameters.iter().map(|name| (*name, DataType::Text)).collect(),
            positional: 0,
            cast: CastContext::Explicit,
        };
        let (target, arguments) = self.with_arguments(target, &signature, given)?;
        Ok((target, arguments, shape.columns))
    }

    fn cells_target(
        &mut self,
        call: &ast::FunctionCall,
    ) -> Result<(RegionFunctionTarget, Vec<Expr>, Vec<OutputColumn>)> {
        let mut given = call.arguments.clone();
        let is_table = |argument: &FunctionArgument| match &argument.name {
            Some(name) => name.value == "table",
            None => true,
        };
        let Some(at) = given.iter().position(is_table) else {
            bail!(UNDEFINED_FUNCTION: "cells() requires the name of a table or index"; hint "Write {CELLS_FORM}.";
                at call.name.position());
        };
        let table = FunctionArgument { name: None, ..given.remove(at) };
        let table = literal(&table, CELLS_FORM)?;
        let target = self.region_target(table, RegionFunction::Cells(None))?;
        let signature = RegionSignature {
            title: "cells()".to_owned(),
            form: CELLS_FORM,
            parameters: CELL_PARAMETERS.to_vec(),
            positional: CELL_PARAMETERS.len(),
            cast: CastContext::Implicit,
        };
        let (target, arguments) = self.with_arguments(target, &signature, &given)?;
        Ok((target, arguments, OutputColumn::computed(CELL_COLUMNS)))
    }

    /// Returns the target of a call for the table of this name, without arguments. `cells` may
    /// name an index.
    fn region_target(
        &mut self,
        (name, position): (&str, usize),
        function: RegionFunction,
    ) -> Result<RegionFunctionTarget> {
        let (table, function) =
            match (self.catalog.find_text(name, self.constants.search_path())?, function) {
                (Some(CatalogRelation::Table(table)), function) => (table, function),
                (Some(CatalogRelation::Index(table, index)), RegionFunction::Cells(_)) => {
                    (table, RegionFunction::Cells(Some(Arc::clone(index))))
                }
                (Some(CatalogRelation::PrimaryKey(table)), RegionFunction::Cells(_)) => {
                    (table, RegionFunction::Cells(None))
                }
                (Some(_), _) => {
                    bail!(WRONG_OBJECT_TYPE: "\"{name}\" is not a table"; at position);
                }
                (None, _) => {
                    let relation = Ident { value: name.to_owned(), position };
                    return Err(self.no_table(&TableName { schema: None, name: relation }));
                }
            };
        let (arguments, start_count, stop_count) = (Vec::new(), 0, 0);
        let table = Arc::clone(table);
        self.refuse_secured(&table)?;
        self.request_column(Some((Origin::Relation(table.oid), usize::MAX)));
        Ok(RegionFunctionTarget { table, function, arguments, start_count, stop_count })
    }

    /// Binds the arguments of a call and adds them to its target.
    fn with_arguments(
        &mut self,
        target: RegionFunctionTarget,
        signature: &RegionSignature<'_>,
        given: &[FunctionArgument],
    ) -> Result<(RegionFunctionTarget, Vec<Expr>)> {
        let key = key_parts(&target);
        let bind = |binder: &mut Self| binder.bind_given(&key, signature, given);
        let (given, level) = self.in_new_level(Scope::default(), Clause::FunctionInFrom, bind)?;
        level.refuse_subqueries("a function in FROM")?;
        let target = RegionFunctionTarget {
            arguments: given.names,
            start_count: given.start.len(),
            stop_count: given.stop.len(),
            ..target
        };
        Ok((target, [given.arguments, given.start, given.stop].concat()))
    }

    fn bind_given(
        &mut self,
        key: &[KeyPart],
        signature: &RegionSignature<'_>,
        written: &[FunctionArgument],
    ) -> Result<RegionArguments> {
        let RegionSignature { title, form, parameters, positional, cast } = signature;
        let mut given = RegionArguments::default();
        let mut seen: Vec<&str> = Vec::new();
        let mut is_named = false;
        for (place, FunctionArgument { name, value }) in written.iter().enumerate() {
            is_named |= name.is_some();
            let (name, position) = match name {
                Some(Ident { value, position }) => (value.as_str(), *position),
                None if place < *positional && !is_named => (parameters[place].0, value.position()),
                None => {
                    bail!(SYNTAX_ERROR: "this argument of {title} must be named"; hint "Write {form}."; at value.position());
                }
            };
            if seen.contains(&name) {
                bail!(INVALID_PARAMETER_VALUE: "parameter \"{name}\" specified more than once"; at position);
            }
            seen.push(name);
            let parameter = parameters.iter().find(|(own, _)| *own == name);
            match (name, parameter) {
                ("start", _) => given.start = self.bind_key(key, value)?,
                ("stop", _) => given.stop = self.bind_key(key, value)?,
                (name, Some((_, data_type))) => {
                    let bound = self.bind_expr(value)?;
                    let from = bound.base().clone();
                    let bound = self.coerce(bound, &data_type.into(), *cast)?;
                    given.arguments.push(bound.ok_or_else(|| {
                        err!(DATATYPE_MISMATCH: "parameter \"{name}\" is of type {} but expression is of type {}",
                            data_type.sql_name(), from.sql_name(); at value.position())
                    })?);
                    given.names.push(name.to_owned());
                }
                (name, None) => {
                    let known = parameters.iter().map(|(name, _)| *name).chain(["start", "stop"]);
                    let known = known.collect::<Vec<_>>().join(", ");
                    bail!(INVALID_PARAMETER_VALUE: "{title} has no parameter \"{name}\"";
                        detail "Its parameters are {known}."; at position);
                }
            }
        }
        Ok(given)
    }

    /// Binds the values of the leading columns of a key.
    fn bind_key(&mut self, parts: &[KeyPart], written: &ast::Expr) -> Result<Vec<Expr>> {
        let fields = match written {
            ast::Expr::Row { fields, .. } => fields.as_slice(),
            single => std::slice::from_ref(single),
        };
        if fields.len() > parts.len() || fields.is_empty() {
            bail!(SYNTAX_ERROR: "key has {} values, but that of the relation has {} columns",
                fields.len(), parts.len(); at written.position());
        }
        let mut key = Vec::with_capacity(fields.len());
        for (field, (name, sql_type)) in fields.iter().zip(parts) {
            let value = self.bind_expr(field)?;
            let from = value.base().clone();
            let bound = self.coerce(value, sql_type, CastContext::Assignment)?;
            key.push(bound.ok_or_else(|| {
                err!(DATATYPE_MISMATCH: "column \"{name}\" is of type {} but expression is of type {}",
                    sql_type.base.sql_name(), from.sql_name(); at field.position())
            })?);
        }
        Ok(key)
    }
}

/// Returns the columns of the key of the rows; none for a table without a primary key.
fn key_parts(target: &RegionFunctionTarget) -> Vec<KeyPart> {
    let table = &target.table;
    if let RegionFunction::Cells(Some(_)) = &target.function {
        let (layout, names) = (target.layout(), target.column_names());
        let part = |key: &types::rowcode::KeyColumn| {
            (names[key.column].clone(), SqlType::from(&layout.columns[key.column].data_type))
        };
        return layout.key.iter().map(part).collect();
    }
    if table.row_id_column().is_some() {
        return Vec::new();
    }
    let columns = table.key_columns().map(|column| &table.columns[column]);
    columns.map(|column| (column.name.clone(), column.sql_type.clone())).collect()
}

/// Returns the text of a literal argument, and its position.
fn literal<'a>(argument: &'a FunctionArgument, form: &str) -> Result<(&'a str, usize)> {
    let value = match &argument.value {
        // Stored texts, such as those of views, have `'t'::text`.
        ast::Expr::Cast { operand, type_name, .. } if type_name.sql_type.base == DataType::Text => {
            operand
        }
        value => value,
    };
    match (&argument.name, value) {
        (None, ast::Expr::String { value, position }) => Ok((value, *position)),
        _ => {
            bail!(SYNTAX_ERROR: "the relation and the endpoint must be literals";
                detail "They determine the columns of the result."; hint "Write {form}."; at value.position())
        }
    }
}
