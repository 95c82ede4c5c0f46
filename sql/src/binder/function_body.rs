//! Bodies of user-defined SQL functions: binding of their statements, and inlining.
//!
//! A body sees its parameters and the objects that it names, but nothing of the calling query. As
//! in PostgreSQL, column names take precedence over parameter names; `f.x` and `$1` are
//! parameters, too.
//!
//! Source: PostgreSQL's `check_sql_fn_retval` (functions.c), `inline_function` and
//! `inline_set_returning_function` (clauses.c).

use std::sync::Arc;

use types::cast::CastContext;
use types::datatype::composite::{Attribute, CompositeType};
use types::datum::{Fields, Record};
use types::expr::{Expr, Routine};
use types::text::TextStyle;
use types::{DataType, Datum, SqlType};

use crate::ast::{self, Ident, QueryBody, QueryExpr, SelectItem, Statement, Volatility};
use crate::binder::function::ResolvedCall;
use crate::binder::level::{Binder, Clause, DependencyTrace, SubqueryUse};
use crate::binder::parameters::Parameters;
use crate::binder::record_columns::made_of;
use crate::binder::records::{field_of, row_expr, row_of};
use crate::binder::rows::Rows;
use crate::binder::scope::Scope;
use crate::binder::stored_literals::LiteralSettler;
use crate::binder::system::{SessionConstants, SystemCatalog};
use crate::binder::typed::{Typed, null};
use crate::binder::view::Dependencies;
use crate::binder::{BoundStatement, prune};
use crate::catalog::Catalog;
use crate::catalog::function::Function;
use crate::catalog::name::SearchPath;
use crate::error::{Error, Result};
use crate::logical::{ApplyKind, BoundPlan, Logical, OutputColumn};

/// The maximum depth of nested inlined functions, which bounds the stack.
const DEPTH_MAX: usize = 32;

/// The values of the parameters in the body that is being bound.
#[derive(Debug)]
pub(super) struct ParameterFrame {
    function: Arc<Function>,
    values: Vec<Typed>,
    /// The numbers of the enclosing functions, and of this one.
    chain: Vec<u32>,
}

impl ParameterFrame {
    /// Returns the search path of the function's settings; `None` if the caller's applies.
    pub(super) fn search_path(&self) -> Option<&SearchPath> {
        self.function.search_path.as_deref()
    }
}

/// A statement of a function's body, bound for a call.
pub struct BodyStatement {
    /// The statement.
    pub bound: BoundStatement,
    /// Over its columns, the values of the function's result row; none if it is not the last
    /// statement, or the function returns nothing.
    pub result: Option<Vec<Expr>>,
}

/// Binds a statement of the body of a function for calls with arguments of these types, which are
/// its parameters.
///
/// # Errors
///
/// PostgreSQL's; 42P13 if the result of the last statement does not fit the declared result.
pub fn bind_body_statement(
    function: &Arc<Function>,
    at: usize,
    routine: &Routine,
    world: (&Catalog, &dyn SystemCatalog, &SessionConstants),
) -> Result<BodyStatement> {
    let types = routine.parameters.iter().map(|base| Some(SqlType::from(base)));
    let types: Vec<Option<SqlType>> = types.collect();
    let mut binder = Binder::new(world.0, world.1, world.2, Parameters::new(&types));
    let values = routine.parameters.iter().zip(&function.parameters).enumerate();
    let values = values.map(|(index, (base, declared))| {
        let expr = Expr::Parameter { index, data_type: base.clone() };
        let sql_type = if declared.base == *base { declared.clone() } else { SqlType::from(base) };
        Typed { expr, sql_type, position: 1 }
    });
    let values: Vec<Typed> = values.collect();
    let is_last = at + 1 == function.statements.len();
    let statement = &function.statements[at];
    let (bound, mut result) = binder.in_frame(function, values, |binder| {
        let (bound, columns) = binder.bind_in_body(statement)?;
        let result = match is_last && routine.result != DataType::Void {
            true => {
                let fields = match &bound {
                    BoundPlan::Query(query) => made_of(&query.plan, 0),
                    _ => None,
                };
                let columns = columns.as_deref().map(|columns| (columns, fields));
                Some(binder.results(function, routine, columns)?)
            }
            false => None,
        };
        Ok((bound, result))
    })?;
    for expr in result.iter_mut().flatten() {
        prune::finish_expression(expr, &binder.parameters);
    }
    Ok(BodyStatement { bound: binder.finish(bound)?, result })
}

/// Returns the objects that the body of a function depends on.
///
/// # Errors
///
/// The error of binding the body, which a later change of an object can cause.
pub fn dependencies_of_body(
    function: &Arc<Function>,
    catalog: &Catalog,
    system: &dyn SystemCatalog,
) -> Result<Dependencies> {
    let constants = SessionConstants::unknown();
    let mut trace = DependencyTrace::default();
    for statement in &function.statements {
        trace = for_body(function, (catalog, system, &constants), |binder| {
            binder.trace = Some(trace);
            binder.bind_in_body(statement)?;
            Ok(binder.trace.take().unwrap_or_default())
        })?;
    }
    Ok(trace.into_uses(catalog))
}

/// Binds in the body of a function, whose arguments are parameters.
fn for_body<T>(
    function: &Arc<Function>,
    (catalog, system, constants): (&Catalog, &dyn SystemCatalog, &SessionConstants),
    bind: impl FnOnce(&mut Binder<'_>) -> Result<T>,
) -> Result<T> {
    let types: Vec<_> = function.parameters.iter().map(|one| Some(one.clone())).collect();
    let mut binder = Binder::new(catalog, system, constants, Parameters::new(&types));
    let values = function.parameters.iter().enumerate().map(|(index, sql_type)| {
        let expr = Expr::Parameter { index, data_type: sql_type.base.clone() };
        Typed { expr, sql_type: sql_type.clone(), position: 1 }
    });
    binder.in_frame(function, values.collect(), bind)
}

/// Returns the text of a function's body with literals rewritten so that they do not depend on
/// session settings. They keep the values that they have in this session.
///
/// # Errors
///
/// Those of [`check_function_body`].
pub fn body_with_fixed_literals(
    function: &Arc<Function>,
    catalog: &Catalog,
    system: &dyn SystemCatalog,
    (path, session): (&Arc<SearchPath>, &TextStyle),
) -> Result<String> {
    let mut constants = SessionConstants::new();
    constants.set_search_path(Arc::clone(path));
    let mut settler = LiteralSettler::new(session.clone());
    for statement in &function.statements {
        settler = for_body(function, (catalog, system, &constants), |binder| {
            binder.settler = Some(settler);
            binder.bind_in_body(statement)?;
            Ok(binder.settler.take().unwrap_or_else(|| LiteralSettler::new(session.clone())))
        })?;
    }
    settler.rewritten(&function.record.body)
}

/// Returns the CONTEXT of an error in the body of a function.
fn context_of(function: &Function) -> String {
    format!("SQL function \"{}\"", function.record.name)
}

/// Checks the body of a function; with polymorphic parameters only its syntax.
///
/// # Errors
///
/// PostgreSQL's, at positions in the body; 42P13 if the result does not fit the declared result.
pub fn check_function_body(
    function: &Arc<Function>,
    catalog: &Catalog,
    system: &dyn SystemCatalog,
    path: &Arc<SearchPath>,
) -> Result<()> {
    check_body(function, catalog, system, path).map_err(|error| match error.position {
        Some(_) => error,
        None => {
            let context = error.context.clone().or(Some(context_of(function)));
            Error { context, ..error }
        }
    })
}

fn check_body(
    function: &Arc<Function>,
    catalog: &Catalog,
    system: &dyn SystemCatalog,
    path: &Arc<SearchPath>,
) -> Result<()> {
    for statement in &function.statements {
        refuse_in_body(statement)?;
    }
    if function.is_polymorphic() {
        return Ok(());
    }
    let mut constants = SessionConstants::new();
    constants.set_search_path(Arc::clone(path));
    let values = function.parameters.iter().map(|sql_type| Typed {
        expr: null(&sql_type.base),
        sql_type: sql_type.clone(),
        position: 1,
    });
    let columns = function.columns.clone();
    let resolved =
        ResolvedCall { function: Arc::clone(function), values: values.collect(), columns };
    let (routine, _) = resolved.routine(None);
    if function.statements.is_empty() && routine.result != DataType::Void {
        return Err(no_rows_of(&declared(function, &routine, catalog, path)));
    }
    for at in 0..function.statements.len() {
        bind_body_statement(function, at, &routine, (catalog, system, &constants))?;
    }
    Ok(())
}

/// Rejects statements that are not allowed, or not supported, in a function.
fn refuse_in_body(statement: &Statement) -> Result<()> {
    match statement {
        Statement::Query(_)
        | Statement::Insert(_)
        | Statement::Upsert(_)
        | Statement::Update(_)
        | Statement::Delete(_)
        | Statement::Merge(_)
        | Statement::Call(_) => Ok(()),
        Statement::Begin { .. }
        | Statement::Commit { .. }
        | Statement::PrepareTransaction(_)
        | Statement::CommitPrepared(_)
        | Statement::RollbackPrepared(_)
        | Statement::Rollback { .. }
        | Statement::RollbackTo(_)
        | Statement::Savepoint(_)
        | Statement::Release(_) => {
            bail!(FEATURE_NOT_SUPPORTED: "{} is not allowed in an SQL function", statement.tag())
        }
        other => {
            let what = format!("{} in a function", other.tag());
            Err(Error::not_supported(what, "Run it as a separate statement."))
        }
    }
}

/// Returns the error for a body whose last statement returns no rows.
pub fn no_rows_of(declared: &str) -> Error {
    err!(INVALID_FUNCTION_DEFINITION: "return type mismatch in function declared to return {declared}";
        detail "Function's final statement must be SELECT or INSERT/UPDATE/DELETE RETURNING.")
}

/// Returns the declared result type of a function as it is in messages.
fn declared(
    function: &Function,
    routine: &Routine,
    catalog: &Catalog,
    path: &SearchPath,
) -> String {
    let shown = match function.columns.as_slice() {
        [(_, sql_type)] if routine.fields.is_none() => {
            catalog.shown_type_with(sql_type.oid(), -1, path)
        }
        _ => None,
    };
    shown.unwrap_or_else(|| routine.result.sql_name().to_owned())
}

/// The columns of a statement's result.
type Columns = Vec<OutputColumn>;

impl Binder<'_> {
    /// Returns the value of a parameter by its name in the body of a function.
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

    /// Returns the value of `$number` in the body of a function; `None` outside of a function.
    pub(super) fn parameter_at(&self, number: usize, position: usize) -> Option<Result<Typed>> {
        let frame = self.frame.as_ref()?;
        let value = number.checked_sub(1).and_then(|at| frame.values.get(at));
        Some(value.map(|value| Typed { position, ..value.clone() }).ok_or_else(
            || err!(UNDEFINED_PARAMETER: "there is no parameter ${number}"; at position),
        ))
    }

    /// Binds in the body of a called function.
    pub(super) fn in_body<T>(
        &mut self,
        function: &Arc<Function>,
        values: Vec<Typed>,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        // A position in the body must not be reported as one in the statement.
        self.in_frame(function, values, bind).map_err(|error| {
            let context = error.context.clone().or(Some(context_of(function)));
            Error { position: None, context, ..error }
        })
    }

    fn in_frame<T>(
        &mut self,
        function: &Arc<Function>,
        values: Vec<Typed>,
        bind: impl FnOnce(&mut Self) -> Result<T>,
    ) -> Result<T> {
        let mut chain = self.frame.as_ref().map_or(Vec::new(), |frame| frame.chain.clone());
        if chain.len() >= DEPTH_MAX {
            bail!(STATEMENT_TOO_COMPLEX: "functions are nested more than {DEPTH_MAX} deep");
        }
        chain.push(function.record.number);
        let frame = ParameterFrame { function: Arc::clone(function), values, chain };
        let frame = self.frame.replace(frame);
        let levels = std::mem::take(&mut self.levels);
        let named = std::mem::take(&mut self.named);
        let (trace, view) = (self.trace.take(), self.view.take());
        let (notes, settler) = (self.notes.take(), self.settler.take());
        let result = bind(self);
        (self.frame, self.levels, self.named) = (frame, levels, named);
        (self.trace, self.view) = (trace, view);
        (self.notes, self.settler) = (notes, settler);
        result
    }

    /// Binds a statement of a body; returns it with its columns, if it has any.
    fn bind_in_body(&mut self, statement: &Statement) -> Result<(BoundPlan, Option<Columns>)> {
        let bound = self.bind_statement(statement)?;
        let columns = bound.columns().map(<[OutputColumn]>::to_vec);
        if matches!(statement, Statement::Call(_))
            && columns.as_ref().is_some_and(|c| !c.is_empty())
        {
            bail!(FEATURE_NOT_SUPPORTED: "calling procedures with output arguments is not supported in SQL functions");
        }
        Ok((bound, columns))
    }

    /// Returns whether a function may be inlined: it is not recursive, and runs in the environment
    /// of its caller.
    fn may_inline(&self, function: &Function) -> bool {
        let number = function.record.number;
        let is_around = self.frame.as_ref().is_some_and(|frame| frame.chain.contains(&number));
        !is_around && !function.record.is_procedure() && !function.record.has_own_environment()
    }

    /// Returns the body of a function that is a single expression, with its parameters replaced by
    /// the arguments; `None` if it cannot be inlined.
    pub(super) fn inlined(&mut self, resolved: &ResolvedCall) -> Result<Option<Expr>> {
        let ResolvedCall { function, values, .. } = resolved;
        let Some(body) = function.query().and_then(single_expression) else { return Ok(None) };
        let to = resolved.value_type();
        let is_row = to.base.is_row() || to.base == DataType::Void;
        let volatile = |value: &Typed| value.expr.is_volatile();
        if is_row || !self.may_inline(function) || values.iter().any(volatile) {
            return Ok(None);
        }
        self.in_body(function, values.clone(), |binder| {
            let bind = |binder: &mut Self| {
                let value = binder.bind_expr(body)?;
                binder.returned(value, &to)
            };
            let (expr, level) = binder.in_new_level(Scope::default(), Clause::Select, bind)?;
            // Expressions that need a query node, and recursive calls, are not inlined.
            let plain = level.subqueries.is_empty()
                && level.aggregates.is_empty()
                && level.window_calls.is_empty()
                && level.set_uses.is_empty()
                && !expr.calls_routines();
            Ok(plain.then_some(expr))
        })
    }

    /// Returns a scalar subquery that replaces a call in WHERE, if the function is one query, not
    /// VOLATILE, and its arguments use no columns: the executor evaluates it once, and the value
    /// may be an index key.
    pub(super) fn run_once(&mut self, resolved: &ResolvedCall, at: usize) -> Result<Option<Expr>> {
        let ResolvedCall { function, values, .. } = resolved;
        let Some(query) = function.query() else { return Ok(None) };
        let to = resolved.value_type();
        let takes_rows = |value: &Typed| !value.expr.columns().is_empty();
        let is_fit = function.record.volatility != Volatility::Volatile
            && !to.base.is_row()
            && to.base != DataType::Void
            && self.levels.last().is_some_and(|level| level.clause == Clause::Where)
            && self.may_inline(function)
            && !values.iter().any(|value| takes_rows(value) || value.expr.is_volatile());
        if !is_fit {
            return Ok(None);
        }
        let plan = self.in_body(function, values.clone(), |binder| {
            let bound = binder.bind_query(query, true)?;
            let Some([value]) = bound.columns.get(..) else { return Ok(None) };
            let from = Typed {
                expr: Expr::Column { index: 0, data_type: value.sql_type.base.clone() },
                sql_type: value.sql_type.clone(),
                position: 1,
            };
            let value = binder.returned(from, &to)?;
            // Only the first row is the result.
            let first = Logical::Limit {
                input: Box::new(bound.plan),
                limit: Some(Expr::constant(Datum::Int8(1), DataType::Int8)),
                offset: None,
                ties: Vec::new(),
            };
            let input = Box::new(first);
            Ok(Some(Logical::Project { input, expressions: vec![value] }))
        })?;
        let subquery = |plan| SubqueryUse {
            plan,
            bindings: Vec::new(),
            kind: ApplyKind::Scalar,
            position: at,
        };
        plan.map(|plan| self.add_subquery(subquery(plan), to.base)).transpose()
    }

    /// Returns the query of a set-returning function that is not VOLATILE, to inline it into FROM.
    pub(super) fn inlined_rows(&mut self, resolved: &ResolvedCall) -> Result<Option<Rows>> {
        let ResolvedCall { function, values, .. } = resolved;
        let Some(query) = function.query() else { return Ok(None) };
        let record = &function.record;
        let is_fit = function.is_set()
            && record.volatility != Volatility::Volatile
            && !record.strict
            && !super::function::is_undefined_record(function)
            && resolved.value_type().base != DataType::Void
            && self.may_inline(function)
            && !values.iter().any(|value| value.expr.is_volatile());
        if !is_fit {
            return Ok(None);
        }
        let function = Arc::clone(function);
        let (routine, _) = ResolvedCall {
            function: Arc::clone(&function),
            values: values.clone(),
            columns: resolved.columns.clone(),
        }
        .routine(None);
        self.in_body(&function, values.clone(), |binder| {
            let bound = binder.bind_query(query, true)?;
            let columns = (bound.columns.as_slice(), made_of(&bound.plan, 0));
            let results = binder.results(&function, &routine, Some(columns))?;
            let types = bound.columns.iter().map(|column| column.sql_type.base.clone()).collect();
            let mut rows = Rows::new(bound.plan, types);
            rows.project(results);
            Ok(Some(rows))
        })
    }

    /// Returns the values of a function's result row over the columns of its last statement. The
    /// fields are known if the first column is a row.
    fn results(
        &mut self,
        function: &Arc<Function>,
        routine: &Routine,
        columns: Option<(&[OutputColumn], Option<Fields>)>,
    ) -> Result<Vec<Expr>> {
        let shown = declared(function, routine, self.catalog, self.search_path());
        let Some((columns, row_fields)) = columns else { return Err(no_rows_of(&shown)) };
        let found = columns.iter().enumerate().map(|(index, column)| Typed {
            expr: Expr::Column { index, data_type: column.sql_type.base.clone() },
            sql_type: column.sql_type.clone(),
            position: 1,
        });
        let found: Vec<Typed> = found.collect();
        if let Some(fields) = &routine.fields {
            let declared = function.columns.iter().map(|(_, sql_type)| sql_type.clone());
            let declared: Vec<SqlType> = declared.collect();
            let wanted = fields.iter().enumerate().map(|(at, (_, base))| {
                let of = declared.get(at).filter(|one| one.base == *base);
                of.cloned().unwrap_or_else(|| SqlType::from(base))
            });
            let wanted: Vec<SqlType> = wanted.collect();
            return self.returned_row(found, &wanted, &shown);
        }
        if routine.result == DataType::Record {
            if let [one] = found.as_slice()
                && one.base().is_row()
            {
                return Ok(vec![one.expr.clone()]);
            }
            let named = columns.iter().map(|column| Arc::from(column.name.as_str())).zip(found);
            return Ok(vec![row_of(named.collect(), 1).expr]);
        }
        let to = match function.columns.as_slice() {
            [(_, sql_type)] if sql_type.base == routine.result => sql_type.clone(),
            _ => SqlType::from(&routine.result),
        };
        if let (DataType::Composite(of), false) = (&to.base, is_row(&found, &to)) {
            return self.row_of_columns(found, of, &shown).map(|row| vec![row]);
        }
        let mut found = found;
        if let (Some(fields), DataType::Composite(_), [row]) =
            (row_fields, &to.base, found.as_mut_slice())
            && *row.base() == DataType::Record
        {
            row.expr = row_of_fields(&row.expr, fields);
        }
        let [value] = found.as_slice() else {
            let detail = "Final statement must return exactly one column.".to_owned();
            return Err(mismatch(&shown, detail));
        };
        Ok(vec![self.returned(value.clone(), &to)?])
    }

    /// Returns the columns of a body as a row of the composite type that the function returns.
    fn row_of_columns(
        &mut self,
        found: Vec<Typed>,
        of: &Arc<CompositeType>,
        shown: &str,
    ) -> Result<Expr> {
        let wanted: Vec<SqlType> =
            of.attributes().iter().map(|one: &Attribute| one.sql_type.clone()).collect();
        let values = self.returned_row(found, &wanted, shown)?;
        Ok(row_expr(Record::of_type(of, Vec::new()), values))
    }

    fn returned_row(
        &mut self,
        found: Vec<Typed>,
        wanted: &[SqlType],
        shown: &str,
    ) -> Result<Vec<Expr>> {
        let detail = match found.len() {
            count if count < wanted.len() => Some("Final statement returns too few columns."),
            count if count > wanted.len() => Some("Final statement returns too many columns."),
            _ => None,
        };
        if let Some(detail) = detail {
            return Err(mismatch(shown, detail.to_owned()));
        }
        let mut values = Vec::with_capacity(wanted.len());
        for (at, (value, to)) in found.into_iter().zip(wanted).enumerate() {
            let from = &value.sql_type.clone();
            let value = self.coerce(value, to, CastContext::Assignment)?;
            values.push(value.ok_or_else(|| {
                let (from, to, at) = (self.type_name(from), self.type_name(to), at + 1);
                let detail =
                    format!("Final statement returns {from} instead of {to} at column {at}.");
                mismatch(shown, detail)
            })?);
        }
        Ok(values)
    }

    fn returned(&mut self, value: Typed, to: &SqlType) -> Result<Expr> {
        let from = &value.sql_type.clone();
        self.coerce(value, to, CastContext::Assignment)?.ok_or_else(|| {
            let (from, to) = (self.type_name(from), self.type_name(to));
            mismatch(&to, format!("Actual return type is {from}."))
        })
    }
}

/// Returns an anonymous row, field by field, with these fields.
fn row_of_fields(row: &Expr, fields: Fields) -> Expr {
    let values = fields.iter().enumerate();
    let values = values.map(|(at, (_, base))| field_of(row.clone(), at, base)).collect();
    row_expr(Record { of: None, fields, values: Vec::new() }, values)
}

fn mismatch(shown: &str, detail: String) -> Error {
    err!(INVALID_FUNCTION_DEFINITION: "return type mismatch in function declared to return {shown}"; detail detail)
}

/// Returns whether the only column is itself a row of the type.
fn is_row(found: &[Typed], to: &SqlType) -> bool {
    matches!(found, [one] if *one.base() == to.base || *one.base() == DataType::Record)
}

/// Returns the expression of a query that is only `SELECT expression`.
pub(super) fn single_expression(query: &QueryExpr) -> Option<&ast::Expr> {
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
