//! Functions that convert JSON to rows (`json_populate_record`, `json_to_record` and related
//! functions), and column definition lists.
//!
//! The row type is known to the binder: it is the type of the first argument, or the column
//! definition list of FROM. A set-returning variant is an `unnest` of an array of rows.

use std::sync::Arc;

use types::cast::CastContext;
use types::datum::{Nested, Record};
use types::expr::{DomainChecks, Expr};
use types::{DataType, Datum};

use crate::ast::{FromCall, FunctionCall, Ident, TypeName};
use crate::binder::arrays::internal;
use crate::binder::calls::undefined_function;
use crate::binder::level::Binder;
use crate::binder::polymorphic::undetermined;
use crate::binder::records::{field_of, fields_of};
use crate::binder::typed::{Typed, null};
use crate::error::{Error, Result};
use crate::logical::{OutputColumn, SetCall, SetFunction};

/// The variant of a function that converts JSON to rows.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct JsonRows {
    /// True for the set-returning variants.
    pub(super) is_set: bool,
    /// True if the columns are those of a column definition list.
    pub(super) is_record: bool,
    json: DataType,
}

impl JsonRows {
    /// Returns the variant of a call, if it is one of these functions.
    pub(super) fn of(call: &FunctionCall) -> Option<JsonRows> {
        let in_catalog = call.name.schema.as_ref().is_none_or(|one| one.value == "pg_catalog");
        let name = call.name.name.value.as_str();
        let (json, rest) = match name.strip_prefix("jsonb_") {
            Some(rest) => (DataType::Jsonb, rest),
            None => (DataType::Json, name.strip_prefix("json_")?),
        };
        let (is_set, is_record) = match rest {
            "populate_record" => (false, false),
            "populate_recordset" => (true, false),
            "to_record" => (false, true),
            "to_recordset" => (true, true),
            _ => return None,
        };
        in_catalog.then_some(JsonRows { is_set, is_record, json })
    }
}

impl Binder<'_> {
    /// Binds a call in an expression.
    pub(super) fn bind_json_rows(&mut self, call: &FunctionCall, rows: JsonRows) -> Result<Typed> {
        let (name, position) = (call.name.name.value.as_str(), call.name.position());
        if rows.is_record {
            if let (false, [json]) = (rows.is_set, call.arguments.as_slice())
                && matches!(
                    self.bind_expr(&json.value)?.expr,
                    Expr::Constant { value: Datum::Null, .. }
                )
            {
                return Ok(Typed::new(null(DataType::Record), DataType::Record, position));
            }
            bail!(FEATURE_NOT_SUPPORTED: "could not determine row type for result of {name}";
                hint "Provide a non-null record argument, or call the function in the FROM clause using a column definition \
                list.");
        }
        let value = self.json_rows(call, rows.clone(), None)?;
        match rows.is_set {
            false => Ok(value),
            true => self.use_set(unnested(name, value), position),
        }
    }

    /// Returns the row or the array of rows of a call; `definition` is the row type if the first
    /// argument does not determine it.
    pub(super) fn json_rows(
        &mut self,
        call: &FunctionCall,
        rows: JsonRows,
        definition: Option<Record>,
    ) -> Result<Typed> {
        let (name, position) = (call.name.name.value.as_str(), call.name.position());
        let arguments = call.arguments.iter().map(|one| self.bind_expr(&one.value));
        let mut arguments = arguments.collect::<Result<Vec<Typed>>>()?;
        let types: Vec<DataType> = arguments.iter().map(Typed::base).cloned().collect();
        let shown = self.call_text(name, &types);
        let undefined = || undefined_function(&shown, position);
        // `use_json_as_text`, which PostgreSQL accepts and ignores.
        let flagged = rows.json == DataType::Json && !rows.is_record;
        if flagged && matches!(types[..], [_, _, DataType::Bool | DataType::Unknown]) {
            arguments.pop();
        }
        let json = arguments.pop().ok_or_else(undefined)?;
        let base = arguments.pop();
        if !arguments.is_empty() || base.is_some() == rows.is_record {
            return Err(undefined());
        }
        let json = self.coerce(json, &rows.json.into(), CastContext::Implicit)?;
        let json = json.ok_or_else(undefined)?;
        let (description, sql_type, base) = match (definition, base) {
            (Some(definition), None) => {
                (definition, DataType::Record.into(), null(DataType::Record))
            }
            (Some(definition), Some(base)) => (definition, base.sql_type, base.expr),
            (None, Some(base)) => (row_type_of(name, &base)?, base.sql_type, base.expr),
            (None, None) => return Err(undefined()),
        };
        let row = description.of.clone().map_or(DataType::Record, DataType::Composite);
        let checks = self.catalog.value_checks(&sql_type);
        let description = Datum::Nested(Nested::Record(Arc::new(description)));
        let mut values = vec![Expr::constant(description, &row), base, json];
        if !rows.is_set {
            let expr = checked(internal(" populate", values, row), checks);
            return Ok(Typed { expr, sql_type, position });
        }
        let array = row.array().unwrap_or(row);
        values.push(Expr::constant(Datum::text(name), DataType::Text));
        let checks = checks.map(|each| DomainChecks::of_parts(Some(each), Vec::new()).into());
        let expr = checked(internal(" populate all", values, &array), checks);
        Ok(Typed::new(expr, array, position))
    }

    /// Binds a call in FROM; returns the function, and the columns of its rows over their value.
    pub(super) fn json_rows_in_from(
        &mut self,
        of: &FromCall,
        rows: JsonRows,
    ) -> Result<(SetFunction, Vec<OutputColumn>)> {
        let FromCall { call, definitions } = of;
        let name = call.name.name.value.as_str();
        let defined = self.defined_columns(definitions)?;
        if rows.is_record && defined.is_empty() {
            return Err(definitions_missing(call.name.position()));
        }
        let definition = || Record {
            of: None,
            fields: defined
                .iter()
                .map(|column| (Arc::from(column.name.as_str()), column.sql_type.base.clone()))
                .collect(),
            values: Vec::new(),
        };
        let definition = match rows.is_record {
            true => Some(definition()),
            false if defined.is_empty() => None,
            false => self.base_of_definition(call, &defined)?.then(definition),
        };
        let value = self.json_rows(call, rows.clone(), definition)?;
        let is_anonymous = *value.base().element().unwrap_or(value.base()) == DataType::Record;
        let columns = match (is_anonymous, definitions.first()) {
            (true, None) => return Err(definitions_missing(call.name.position())),
            (false, Some((first, _))) => return Err(definitions_needless(first.position)),
            (true, Some(_)) => defined,
            (false, None) => Vec::new(),
        };
        let function = match rows.is_set {
            true => unnested(name, value),
            false => SetFunction {
                columns: vec![OutputColumn {
                    name: name.to_owned(),
                    sql_type: value.sql_type.clone(),
                    origin: None,
                }],
                call: SetCall::Value(value.expr),
            },
        };
        Ok((function, columns))
    }

    /// Returns whether only the column definition list determines the row type, because the first
    /// argument is an anonymous record.
    ///
    /// # Errors
    ///
    /// 42804 if that argument has other fields.
    fn base_of_definition(
        &mut self,
        call: &FunctionCall,
        defined: &[OutputColumn],
    ) -> Result<bool> {
        let Some(first) = call.arguments.first() else { return Ok(false) };
        let base = self.bind_expr(&first.value)?;
        if *base.base() != DataType::Record {
            return Ok(false);
        }
        let Some((fields, _)) = fields_of(&base.expr) else { return Ok(true) };
        let mismatch = |detail: String| {
            err!(DATATYPE_MISMATCH:
                "function return row and query-specified return row do not match"; detail detail)
        };
        if fields.len() != defined.len() {
            let attributes = if fields.len() == 1 { "attribute" } else { "attributes" };
            return Err(mismatch(format!(
                "Returned row contains {} {attributes}, but query expects {}.",
                fields.len(),
                defined.len()
            )));
        }
        for (at, ((_, field), column)) in fields.iter().zip(defined).enumerate() {
            if *field != column.sql_type.base && *field != DataType::Unknown {
                return Err(mismatch(format!(
                    "Returned type {} at ordinal position {}, but query expects {}.",
                    self.type_name(&field.into()),
                    at + 1,
                    self.type_name(&column.sql_type.base_type())
                )));
            }
        }
        Ok(false)
    }

    /// Returns the columns of a column definition list.
    pub(super) fn defined_columns(
        &self,
        definitions: &[(Ident, TypeName)],
    ) -> Result<Vec<OutputColumn>> {
        let mut columns: Vec<OutputColumn> = Vec::with_capacity(definitions.len());
        for (name, type_name) in definitions {
            if columns.iter().any(|column| column.name == name.value) {
                bail!(DUPLICATE_COLUMN: "column name \"{}\" specified more than once", name.value; at name.position);
            }
            let sql_type = self.catalog.type_named(type_name, self.search_path())?;
            columns.push(OutputColumn { name: name.value.clone(), sql_type, origin: None });
        }
        Ok(columns)
    }

    /// Returns the values of the columns of a row: of its type, or of a column definition list.
    pub(super) fn columns_of_row(
        &mut self,
        row: &Typed,
        defined: Vec<OutputColumn>,
    ) -> Result<Vec<(OutputColumn, Expr)>> {
        let attributes = match row.base() {
            DataType::Composite(of) => of.attributes(),
            _ => &[],
        };
        let own = attributes.iter().map(|one| OutputColumn {
            name: one.name.to_string(),
            sql_type: one.sql_type.clone(),
            origin: None,
        });
        let is_anonymous = attributes.is_empty();
        let columns = if is_anonymous { defined } else { own.collect() };
        let mut values = Vec::with_capacity(columns.len());
        for (at, column) in columns.into_iter().enumerate() {
            let field = field_of(row.expr.clone(), at, &column.sql_type.base);
            // The values of a row of a named type already have the types of its attributes.
            let value = match column.sql_type.domain.filter(|_| is_anonymous) {
                Some(oid) => match self.catalog.domain(oid) {
                    Some(domain) => domain.checked(field, false),
                    None => field,
                },
                None if is_anonymous && column.sql_type.modifier >= 0 => {
                    let (from, to) = (column.sql_type.base.clone(), column.sql_type.clone());
                    Expr::Cast { operand: Box::new(field), from, to, explicit: false }
                }
                None => field,
            };
            values.push((column, value));
        }
        Ok(values)
    }
}

/// Returns the row type that the first argument determines.
fn row_type_of(name: &str, base: &Typed) -> Result<Record> {
    match base.base() {
        DataType::Composite(of) => Ok(Record::of_type(of, Vec::new())),
        DataType::Unknown => Err(undetermined()),
        DataType::Record => match fields_of(&base.expr) {
            Some((fields, _)) => Ok(Record { of: None, fields, values: Vec::new() }),
            None => {
                bail!(FEATURE_NOT_SUPPORTED: "could not determine row type for result of {name}";
                    hint "Cast the first argument to a composite type.")
            }
        },
        _ => bail!(DATATYPE_MISMATCH: "first argument of {name} must be a row type"),
    }
}

fn checked(value: Expr, checks: Option<Arc<DomainChecks>>) -> Expr {
    match checks {
        Some(checks) => Expr::Domain { operand: Box::new(value), checks, explicit: false },
        None => value,
    }
}

/// Returns `unnest` of an array of rows.
fn unnested(name: &str, array: Typed) -> SetFunction {
    let row = array.base().element().unwrap_or(&DataType::Record);
    let signature = types::function::sets::overloads("unnest").first();
    let function = signature.expect("the function that takes arrays apart is there").id;
    let column = OutputColumn { name: name.to_owned(), sql_type: row.into(), origin: None };
    SetFunction {
        call: SetCall::Set { function, arguments: vec![array.expr] },
        columns: vec![column],
    }
}

/// Returns the error for a function that returns records, in FROM without a column definition
/// list.
pub(super) fn definitions_missing(position: usize) -> Error {
    err!(SYNTAX_ERROR: "a column definition list is required for functions returning \"record\""; at position)
}

/// Returns the error for a column definition list after another function.
pub(super) fn definitions_needless(position: usize) -> Error {
    err!(SYNTAX_ERROR: "a column definition list is only allowed for functions returning \"record\""; at position)
}
