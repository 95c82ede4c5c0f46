//! Calls of functions that users define.
//!
//! A body is one query, in a world of its own: it sees its arguments and what it names, nothing of
//! the query around the call. Where it is `SELECT expression` and nothing else the expression is
//! put in place of the call, as PostgreSQL does; otherwise the call is a subquery of one value
//! that takes the arguments. In FROM a function that returns a set is put in place as a view is.
//!
//! Names of columns come before those of parameters, as in PostgreSQL; `f.x` and `$1` are
//! parameters, too.

use std::sync::Arc;

use types::cast::CastContext;
use types::datatype::composite::CompositeType;
use types::datum::Record;
use types::expr::Expr;
use types::{DataType, SqlType};

use crate::ast::{self, FunctionCall, Ident, Query, QueryBody, SelectItem, TableFunction};
use crate::binder::bound_query::BoundQuery;
use crate::binder::calls::{is_built_in, undefined_function};
use crate::binder::level::{Binder, Clause, SUBQUERY, SubqueryUse, TableClause};
use crate::binder::records::{self, row_expr};
use crate::binder::rows::Rows;
use crate::binder::scope::{Relation, RelationKind, Scope};
use crate::binder::tree::is_volatile;
use crate::binder::typed::{Typed, can_coerce, is_string, null};
use crate::catalog::function::Function;
use crate::catalog::name::SearchPath;
use crate::error::{Error, Result, sqlstate};
use crate::logical::{ApplyKind, Logical, OutputColumn};
use crate::parser;

/// Functions in functions; deeper ones, which call themselves among them, would need too much
/// stack.
const DEPTH_MAX: usize = 32;

/// What parameters in the body at hand stand for.
#[derive(Debug)]
pub(super) struct Frame {
    function: Arc<Function>,
    values: Vec<Typed>,
    /// Functions around it.
    depth: usize,
}

impl Frame {
    /// Returns where the body looks for names, unless it is where the caller does.
    pub(super) fn search_path(&self) -> Option<&SearchPath> {
        self.function.search_path.as_deref()
    }
}

/// How a function takes the arguments of a call: what each parameter is given.
struct Candidate {
    function: Arc<Function>,
    /// By parameter: position of the argument in the call; `None` for a default.
    places: Vec<Option<usize>>,
    /// How many arguments are of the very types.
    exact: usize,
    /// How many arguments of no type yet are taken for text.
    texts: usize,
}

impl Binder<'_> {
    /// Returns what a name in the body of a function stands for, if it is a parameter's.
    pub(super) fn parameter_named(&self, parts: &[Ident]) -> Option<Typed> {
        let frame = self.frame.as_ref()?;
        let record = &frame.function.record;
        let name = match parts {
            [name] => name,
            [function, name] if function.value == record.name => name,
            _ => return None,
        };
        let mut parameters = record.parameters.iter();
        let at = parameters.position(|one| !one.name.is_empty() && one.name == name.value)?;
        Some(Typed { position: name.position, ..frame.values.get(at)?.clone() })
    }

    /// Returns what `$number` stands for in the body of a function; `None` outside of one.
    pub(super) fn parameter_at(&self, number: usize, position: usize) -> Option<Result<Typed>> {
        let frame = self.frame.as_ref()?;
        let value = number.checked_sub(1).and_then(|at| frame.values.get(at));
        Some(value.map(|value| Typed { position, ..value.clone() }).ok_or_else(|| {
            let message = format!("there is no parameter ${number}");
            Error::new(sqlstate::UNDEFINED_PARAMETER, message).at(position)
        }))
    }

    /// Binds a call of a function of users; `None` if the name is not one's.
    pub(super) fn bind_user_call(&mut self, call: &FunctionCall) -> Result<Option<Typed>> {
        let named = self.functions_named(call)?;
        if named.is_empty() {
            return Ok(None);
        }
        let values = self.arguments_of(call)?;
        self.user_value(call, named, values).map(Some)
    }

    /// Binds the call of a built-in function, or of one of users if none takes the arguments.
    pub(super) fn bind_either(
        &mut self,
        call: &FunctionCall,
        arguments: Vec<Typed>,
    ) -> Result<Typed> {
        let (name, position) = (call.name.name.value.as_str(), call.name.position());
        let named = match call.name.schema {
            None => self.catalog.functions_named(None, name, self.search_path()),
            Some(_) => Vec::new(),
        };
        if named.is_empty() {
            return self.function(name, arguments, position);
        }
        match self.function(name, arguments.clone(), position) {
            Err(error) if error.sqlstate.as_ref() == sqlstate::UNDEFINED_FUNCTION => {
                self.user_value(call, named, arguments)
            }
            answer => answer,
        }
    }

    /// Binds a call of one of some functions of users, for one value.
    fn user_value(
        &mut self,
        call: &FunctionCall,
        named: Vec<Arc<Function>>,
        values: Vec<Typed>,
    ) -> Result<Typed> {
        let position = call.name.position();
        let (function, values) = self.resolve_user_call(call, named, values)?;
        if function.is_set() {
            let hint = "Call it in FROM.";
            let what = "a function of users that returns a set in this place";
            return Err(Error::not_supported(what, hint).at(position));
        }
        let strict: Vec<Expr> = match function.record.strict {
            true => values.iter().map(|value| value.expr.clone()).collect(),
            false => Vec::new(),
        };
        let value = match self.inlined(&function, &values)? {
            Some(value) => value,
            None => self.as_subquery(&function, values, position)?,
        };
        let sql_type = value.sql_type;
        let mut expr = value.expr;
        if !strict.is_empty() {
            let is_null = strict.into_iter().map(|one| Expr::IsNull(Box::new(one))).collect();
            let data_type = sql_type.base;
            expr = Expr::Case {
                branches: vec![(Expr::Or(is_null), null(data_type))],
                otherwise: Box::new(expr),
                data_type,
            };
        }
        Ok(Typed { expr, sql_type, position })
    }

    /// Calls a function of users of one argument.
    pub(super) fn function_of(&mut self, name: &Ident, value: Typed) -> Result<Typed> {
        let position = name.position;
        let argument = ast::FunctionArgument { name: None, value: ast::Expr::Null { position } };
        let call = FunctionCall::plain(
            ast::FunctionName { schema: None, name: name.clone() },
            vec![argument],
        );
        let named = self.catalog.functions_named(None, &name.value, self.search_path());
        self.user_value(&call, named, vec![value])
    }

    fn arguments_of(&mut self, call: &FunctionCall) -> Result<Vec<Typed>> {
        call.arguments.iter().map(|argument| self.bind_expr(&argument.value)).collect()
    }

    /// Binds a call in FROM of a function of users that returns a set; `None` if it is none.
    pub(super) fn bind_user_rows(
        &mut self,
        call: &FunctionCall,
        function: &TableFunction,
    ) -> Result<Option<(Rows, Scope)>> {
        let named = self.functions_named(call)?;
        if !named.iter().any(|one| one.is_set()) {
            return Ok(None);
        }
        let position = call.name.position();
        if function.ordinality {
            let hint = "Number the rows by row_number().";
            return Err(Error::not_supported("WITH ORDINALITY of this function", hint).at(position));
        }
        let bind = |binder: &mut Self| {
            let values = binder.arguments_of(call)?;
            binder.resolve_user_call(call, named, values)
        };
        let ((called, values), level) =
            self.within(Scope::default(), Clause::FunctionInFrom, bind)?;
        level.refuse_subqueries("an argument of this function")?;
        if !called.is_set() {
            return Ok(None);
        }
        let strict = called.record.strict.then(|| values.clone());
        let (bound, expressions) = self.body_of(&called, values)?;
        let mut rows = Rows::new(bound.plan, Vec::new());
        rows.types = bound.columns.iter().map(|column| column.sql_type.base).collect();
        rows.project(expressions);
        let mut columns = called.columns.clone();
        if let [(name, sql_type)] = columns.as_slice()
            && name.is_empty()
            && matches!(sql_type.base, DataType::Composite(_))
        {
            let row = Expr::Column { index: 0, data_type: sql_type.base };
            let row = Typed { expr: row, sql_type: *sql_type, position };
            let fields = records::fields(&row).unwrap_or_default().into_iter();
            let (names, values): (Vec<_>, Vec<Typed>) =
                fields.map(|(name, value)| ((name.to_string(), value.sql_type), value)).unzip();
            rows.project(values.into_iter().map(|value| value.expr).collect());
            columns = names;
        }
        if let Some(values) = strict {
            let given = values.into_iter().map(|value| Expr::IsNull(Box::new(value.expr)));
            let given = given.map(|is_null| Expr::Not(Box::new(is_null))).collect();
            rows.filter(Expr::conjunction(given), &[]);
        }
        let own = &call.name.name.value;
        let column = |(name, sql_type): &(String, SqlType)| OutputColumn {
            name: if name.is_empty() { own.clone() } else { name.clone() },
            sql_type: *sql_type,
            origin: None,
        };
        let is_value = called.columns.len() == 1 && columns.len() == 1;
        let columns: Vec<OutputColumn> = columns.iter().map(column).collect();
        let relation = crate::binder::table_function::named(function, &columns, is_value)?;
        let relation = Relation { kind: RelationKind::Function, ..relation };
        Ok(Some((rows, Scope::of(relation))))
    }

    // ---- which function ----

    /// Returns the functions of users that a call may mean. Built-in functions of the same name
    /// come first unless the call gives a schema.
    fn functions_named(&self, call: &FunctionCall) -> Result<Vec<Arc<Function>>> {
        let name = call.name.name.value.as_str();
        let schema = call.name.schema.as_ref().map(|schema| schema.value.as_str());
        let plain = !call.star
            && !call.distinct
            && call.over.is_none()
            && call.filter.is_none()
            && call.order_by.is_empty();
        let built_in = schema.is_none() && is_built_in(name);
        if !plain || built_in || schema == Some("pg_catalog") {
            return Ok(Vec::new());
        }
        if let Some(schema) = schema
            && self.catalog.schema(schema).is_none()
        {
            let message = format!("schema \"{schema}\" does not exist");
            let error = Error::new(sqlstate::INVALID_SCHEMA_NAME, message);
            return Err(error.at(call.name.position()));
        }
        Ok(self.catalog.functions_named(schema, name, self.search_path()))
    }

    /// Returns the function that a call means, with its arguments converted.
    fn resolve_user_call(
        &mut self,
        call: &FunctionCall,
        named: Vec<Arc<Function>>,
        values: Vec<Typed>,
    ) -> Result<(Arc<Function>, Vec<Typed>)> {
        let position = call.name.position();
        let types: Vec<SqlType> = values.iter().map(|value| value.sql_type).collect();
        let mut candidates: Vec<Candidate> =
            named.into_iter().filter_map(|one| candidate(one, call, &types)).collect();
        let best = candidates.iter().map(|one| one.exact).max().unwrap_or_default();
        candidates.retain(|one| one.exact == best);
        // What is of no type yet is taken for text rather than for anything else.
        let best = candidates.iter().map(|one| one.texts).max().unwrap_or_default();
        candidates.retain(|one| one.texts == best);
        let shown = || {
            let shown = call.arguments.iter().zip(&types).map(|(argument, sql_type)| {
                let shown = self.shown(*sql_type);
                match &argument.name {
                    Some(name) => format!("{} => {shown}", name.value),
                    None => shown,
                }
            });
            let schema = call.name.schema.as_ref().map(|one| format!("{}.", one.value));
            let (schema, name) = (schema.unwrap_or_default(), &call.name.name.value);
            format!("{schema}{name}({})", shown.collect::<Vec<_>>().join(", "))
        };
        let chosen = match candidates.len() {
            1 => candidates.remove(0),
            0 => return Err(undefined_function(&shown(), position)),
            _ => {
                let message = format!("function {} is not unique", shown());
                return Err(Error::new(sqlstate::AMBIGUOUS_FUNCTION, message)
                    .with_hint(
                        "Could not choose a best candidate function. \
                         You might need to add explicit type casts.",
                    )
                    .at(position));
            }
        };
        let function = chosen.function;
        let mut given: Vec<Option<Typed>> = values.into_iter().map(Some).collect();
        let mut converted = Vec::with_capacity(function.parameters.len());
        for (at, (place, to)) in chosen.places.iter().zip(&function.parameters).enumerate() {
            let value = match place.and_then(|place| given[place].take()) {
                Some(value) => value,
                None => self.default_argument(&function, at, position)?,
            };
            let from = value.sql_type;
            let expr = self.coerce(value, *to, CastContext::Implicit)?;
            let expr = expr.ok_or_else(|| {
                let (from, to) = (self.shown(from), self.shown(*to));
                let message = format!("cannot cast type {from} to {to}");
                Error::new(types::error::sqlstate::CANNOT_COERCE, message).at(position)
            })?;
            converted.push(Typed { expr, sql_type: *to, position });
        }
        Ok((function, converted))
    }

    /// Returns what a parameter is that a call leaves out.
    fn default_argument(
        &mut self,
        function: &Arc<Function>,
        at: usize,
        position: usize,
    ) -> Result<Typed> {
        let text = function.record.parameters[at].default.as_deref().unwrap_or("NULL");
        let parsed = parser::parse_expression(text)?;
        let value = self.in_body(function, Vec::new(), |binder| {
            let bind = |binder: &mut Self| binder.bind_expr(&parsed);
            Ok(binder.within(Scope::default(), Clause::Table(TableClause::Stored), bind)?.0)
        })?;
        Ok(Typed { position, ..value })
    }

    // ---- what it computes ----

    /// Binds something in the world of a function's body.
    fn in_body<T>(
        &mut self,
        function: &Arc<Function>,
        values: Vec<Typed>,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let depth = self.frame.as_ref().map_or(0, |frame| frame.depth + 1);
        if depth >= DEPTH_MAX {
            let message = format!("functions are nested more than {DEPTH_MAX} deep");
            return Err(Error::new(sqlstate::STATEMENT_TOO_COMPLEX, message));
        }
        let frame = Frame { function: Arc::clone(function), values, depth };
        let frame = self.frame.replace(frame);
        let levels = std::mem::take(&mut self.levels);
        let named = std::mem::take(&mut self.named);
        let (trace, view) = (self.trace.take(), self.view.take());
        let result = bind(self);
        (self.frame, self.levels, self.named) = (frame, levels, named);
        (self.trace, self.view) = (trace, view);
        // Positions in the body mean nothing to the statement.
        result.map_err(|error| {
            let context = format!("SQL function \"{}\"", function.record.name);
            let context = error.context.clone().or(Some(context));
            Error { position: None, context, ..error }
        })
    }

    /// Returns the expression of a function that is nothing else, with its arguments put in.
    fn inlined(&mut self, function: &Arc<Function>, values: &[Typed]) -> Result<Option<Typed>> {
        let Some(body) = single_expression(&function.query) else { return Ok(None) };
        if values.iter().any(|value| is_volatile(&value.expr)) {
            return Ok(None);
        }
        let to = function.columns[0].1;
        if matches!(to.base, DataType::Composite(_)) {
            return Ok(None);
        }
        let bound = self.in_body(function, values.to_vec(), |binder| {
            let bind = |binder: &mut Self| {
                let value = binder.bind_expr(body)?;
                binder.returned(value, to)
            };
            let (expr, level) = binder.within(Scope::default(), Clause::Select, bind)?;
            // What only a query can compute is left to one.
            let plain = level.subqueries.is_empty()
                && level.aggregates.is_empty()
                && level.window_calls.is_empty()
                && level.set_uses.is_empty();
            Ok(plain.then_some(expr))
        })?;
        Ok(bound.map(|expr| Typed { expr, sql_type: to, position: 1 }))
    }

    /// Binds a call as a subquery of one value.
    fn as_subquery(
        &mut self,
        function: &Arc<Function>,
        values: Vec<Typed>,
        position: usize,
    ) -> Result<Typed> {
        let sql_type = function.columns[0].1;
        let column = |at: usize| Expr::Column { index: SUBQUERY + at, data_type: sql_type.base };
        let number = function.record.number;
        let given: Vec<Expr> = values.iter().map(|value| value.expr.clone()).collect();
        // The same call is the same subquery: so it can be a key of GROUP BY.
        let mut calls = self.level().calls.iter();
        if let Some((_, _, at)) = calls.find(|call| call.0 == number && call.1 == given) {
            return Ok(Typed { expr: column(*at), sql_type, position });
        }
        let (mut bindings, mut taken) = (Vec::new(), Vec::new());
        for value in values {
            let index = self.parameters.outer();
            let expr = Expr::Parameter { index, data_type: value.base() };
            bindings.push((index, value.expr));
            taken
                .push(Typed { expr, ..Typed::new(null(DataType::Text), DataType::Text, position) });
            if let Some(last) = taken.last_mut() {
                last.sql_type = value.sql_type;
            }
        }
        let (bound, mut expressions) = self.body_of(function, taken)?;
        let first = Logical::Limit {
            input: Box::new(bound.plan),
            limit: Some(Expr::constant(types::Datum::Int8(1), DataType::Int8)),
            offset: None,
            ties: Vec::new(),
        };
        expressions.truncate(1);
        let plan = Logical::Project { input: Box::new(first), expressions };
        let kind = ApplyKind::Scalar;
        let level = self.level();
        let at = level.subqueries.len();
        level.subqueries.push(SubqueryUse { plan, bindings, kind, position });
        level.calls.push((number, given, at));
        Ok(Typed { expr: column(at), sql_type, position })
    }

    /// Binds the body of a function; returns it with its columns as those that it returns.
    pub(super) fn body_of(
        &mut self,
        function: &Arc<Function>,
        values: Vec<Typed>,
    ) -> Result<(BoundQuery, Vec<Expr>)> {
        self.in_body(function, values, |binder| {
            let bound = binder.bind_query(&function.query, true)?;
            if let Some(of) = row_of_columns(function, &bound) {
                let row = binder.row_of_query(function, &bound, of)?;
                return Ok((bound, vec![row]));
            }
            if bound.columns.len() != function.columns.len() {
                let one = function.columns.len() == 1;
                let detail = match (one, bound.columns.len() < function.columns.len()) {
                    (true, _) => "Final statement must return exactly one column.",
                    (false, true) => "Final statement returns too few columns.",
                    (false, false) => "Final statement returns too many columns.",
                };
                return Err(mismatch(binder, function, detail.to_owned()));
            }
            let mut expressions = Vec::with_capacity(bound.columns.len());
            for (at, (_, to)) in function.columns.iter().enumerate() {
                let from = bound.columns[at].sql_type;
                let value = binder.coerce(bound.typed(at), *to, CastContext::Assignment)?;
                expressions.push(value.ok_or_else(|| {
                    let from = binder.shown(from);
                    let detail = match function.columns.len() {
                        1 => format!("Actual return type is {from}."),
                        _ => format!(
                            "Final statement returns {from} instead of {} at column {}.",
                            binder.shown(*to),
                            at + 1
                        ),
                    };
                    mismatch(binder, function, detail)
                })?);
            }
            Ok((bound, expressions))
        })
    }

    /// Returns the columns of a body as the row that the function returns.
    fn row_of_query(
        &mut self,
        function: &Function,
        bound: &BoundQuery,
        of: &'static CompositeType,
    ) -> Result<Expr> {
        let wanted = of.attributes().len();
        match bound.columns.len() {
            found if found < wanted => {
                let detail = "Final statement returns too few columns.".to_owned();
                return Err(mismatch(self, function, detail));
            }
            found if found > wanted => {
                let detail = "Final statement returns too many columns.".to_owned();
                return Err(mismatch(self, function, detail));
            }
            _ => {}
        }
        let mut values = Vec::with_capacity(wanted);
        for (at, attribute) in of.attributes().iter().enumerate() {
            let from = bound.columns[at].sql_type;
            let to = attribute.sql_type;
            let value = self.coerce(bound.typed(at), to, CastContext::Assignment)?;
            values.push(value.ok_or_else(|| {
                let detail = format!(
                    "Final statement returns {} instead of {} at column {}.",
                    self.shown(from),
                    self.shown(to),
                    at + 1
                );
                mismatch(self, function, detail)
            })?);
        }
        Ok(row_expr(Record::of_type(of, Vec::new()), values))
    }

    fn returned(&mut self, value: Typed, to: SqlType) -> Result<Expr> {
        let from = value.sql_type;
        self.coerce(value, to, CastContext::Assignment)?.ok_or_else(|| {
            let (from, to) = (self.shown(from), self.shown(to));
            let message = format!("return type mismatch in function declared to return {to}");
            Error::new("42P13", message).with_detail(format!("Actual return type is {from}."))
        })
    }
}

fn mismatch(binder: &Binder<'_>, function: &Function, detail: String) -> Error {
    let declared = match function.columns.as_slice() {
        [(name, sql_type)] if name.is_empty() => binder.shown(*sql_type),
        _ => "record".to_owned(),
    };
    let message = format!("return type mismatch in function declared to return {declared}");
    Error::new("42P13", message).with_detail(detail)
}

/// Returns the type of the row that the columns of a body make: the function returns one, and the
/// body is not one itself.
fn row_of_columns(function: &Function, bound: &BoundQuery) -> Option<&'static CompositeType> {
    let [(name, SqlType { base: DataType::Composite(of), .. })] = function.columns.as_slice()
    else {
        return None;
    };
    let is_row = matches!(bound.columns.as_slice(), [one] if one.sql_type.base.is_row());
    (name.is_empty() && !is_row).then_some(of)
}

/// Returns how a function takes the arguments of a call, if it can.
fn candidate(function: Arc<Function>, call: &FunctionCall, types: &[SqlType]) -> Option<Candidate> {
    let parameters = &function.record.parameters;
    let mut places: Vec<Option<usize>> = vec![None; parameters.len()];
    for (at, argument) in call.arguments.iter().enumerate() {
        let place = match &argument.name {
            None => at,
            Some(name) => parameters.iter().position(|one| one.name == name.value)?,
        };
        if places.get_mut(place)?.replace(at).is_some() {
            return None;
        }
    }
    let (mut exact, mut texts) = (0, 0);
    for ((place, parameter), to) in places.iter().zip(parameters).zip(&function.parameters) {
        let Some(at) = place else {
            parameter.default.as_ref()?;
            continue;
        };
        let from = types[*at];
        exact += usize::from(from.base == to.base);
        texts += usize::from(from.base == DataType::Unknown && is_string(to.base));
        if !can_coerce(from.base, to.base) {
            return None;
        }
    }
    Some(Candidate { function, places, exact, texts })
}

/// Returns the expression of a query that is `SELECT expression` and nothing else.
fn single_expression(query: &Query) -> Option<&ast::Expr> {
    let plain = query.with.is_none()
        && query.order_by.is_empty()
        && query.limit.is_none()
        && query.offset.is_none()
        && query.locking.is_empty();
    let QueryBody::Select(select) = &query.body else { return None };
    let bare = select.distinct.is_none()
        && select.from.is_empty()
        && select.selection.is_none()
        && select.group_by.is_empty()
        && select.having.is_none();
    match select.items.as_slice() {
        [SelectItem::Expr { expr, .. }] if plain && bare => Some(expr),
        _ => None,
    }
}
