//! The binder: name and type resolution, from a syntax tree to a logical plan.
//!
//! ```text
//!  ast::Statement ──► bind ──► Bound { Logical plan, columns } + types of the parameters
//!                      │
//!       names from the Catalog and the SystemCatalog, functions from types::function
//! ```
//!
//! The session and the executor of functions call it for each statement; the planner
//! ([`crate::logical`] to physical plan) reads the result. Names, types and errors are
//! PostgreSQL's: documentation chapter 10, and the parser files that each module names. Modules
//! state the differences.
//!
//! # Invariants
//!
//! 1. Every implicit conversion is an explicit [`Expr::Cast`] or was done on a constant.
//! 2. Expressions are bound over the columns of the whole FROM clause; the last pass
//!    ([`prune`]) removes unused columns.
//! 3. Subqueries in expressions become [`Apply`](crate::logical::Apply) nodes, with the conditions
//!    under which the expression evaluates them ([`Guard`](guard::Guard)).
//!
//! # Out of scope
//!
//! Choice of indexes, join order, and the split between region and session: the planner. Checks of
//! NOT NULL and CHECK constraints: the constraint observer.

mod query_limits;
mod typed;
mod tree;
mod parameters;
mod polymorphic;
mod overload_resolution;
mod scope;
mod system;
mod cte_scope;
mod column_hints;
mod permissions;
mod policy;
mod level;
pub mod resolution_notes;
mod guard;
mod rows;
mod bound_query;
mod coercion;
pub mod input_output;
mod stored_literals;
mod operators;
mod arrays;
mod calls;
mod function;
mod function_body;
mod procedure_call;
mod aggregates;
mod columns;
mod record_columns;
mod records;
mod json_records;
mod sample;
mod expressions;
mod constant_runs;
mod subqueries;
mod output_names;
mod variadic;
mod view;
mod set_functions;
mod volatile_operands;
mod region_function;
mod table_function;
mod search_cycle;
mod with;
mod window;
mod function_resolution;
mod join_condition;
mod dynamic_column;
mod from;
mod grouping_sets;
mod grouping;
mod lock_marks;
mod phoenix;
mod lock_rows;
mod select;
mod query;
mod assignment;
mod update_target;
mod part_assignment;
mod constant_errors;
mod subquery_guards;
mod pull_up;
mod prune;
mod conflict;
mod insert;
mod current_row;
mod modify;
mod merge;
mod variables;

use std::sync::{Arc, LazyLock};

use store::TableId;
use types::cast::CastContext;
use types::expr::Expr;
use types::text::TextStyle;
use types::{DataType, SqlType};

pub use calls::is_built_in;
pub use constant_errors::ConstantErrors;
pub use current_row::check_cursor;
pub use function_body::{
    BodyStatement, bind_body_statement, body_with_fixed_literals, check_function_body,
    dependencies_of_body, no_rows_of,
};
pub use output_names::{index_column_name, output_name};
pub use permissions::request::{PermissionRequests, RelationUse};
pub use policy::check_policy_expression;
pub use system::{EndpointShape, SessionConstants, SystemCatalog, no_endpoint};
pub use variables::{
    BodyTarget, BodyValue, VariableScope, VariableSignature, VariableUse, bind_body_value,
    bind_conversion, bind_in_body, field_value,
};
pub use view::{
    Dependencies, ViewDefinition, bind_view_definition, dependencies_of_view, view_meaning,
};

use crate::ast::{self, LockStrength, Statement};
use crate::binder::constant_errors::KnownParameters;
pub use crate::binder::from::SEQUENCE_ROWS;
pub use crate::binder::level::TableClause;
use crate::binder::level::{Binder, Clause};
use crate::binder::parameters::Parameters;
use crate::binder::resolution_notes::ResolutionNotes;
use crate::binder::scope::{Scope, ScopeRelation};
use crate::binder::stored_literals::LiteralSettler;
use crate::binder::tree::{for_each_source, walk_plan};
use crate::binder::typed::Typed;
pub use crate::binder::update_target::{check_writable, target_of_view, updatable_columns};
use crate::catalog::Catalog;
use crate::catalog::name::SearchPath;
use crate::catalog::table::Table;
use crate::catalog::view::View;
use crate::error::{Error, Result};
use crate::logical::{
    BoundPlan, CurrentRow, CursorTable, Logical, OutputColumn, ParameterTypes, Query,
};
use crate::parser;

/// A bound statement.
#[derive(Debug, Clone)]
pub struct BoundStatement {
    /// The statement's plan.
    pub bound: BoundPlan,
    /// Types of the client's parameters, `$1` first, as declared or deduced.
    pub parameter_types: ParameterTypes,
    /// The number of parameters that its expressions use: the client's, then those that
    /// [`Apply::bindings`](crate::logical::Apply::bindings) set.
    pub parameter_count: usize,
    /// The first unpopulated materialized view that it reads, if any.
    pub unpopulated: Option<String>,
    /// The permissions that it needs.
    pub permissions: PermissionRequests,
    /// The tables whose row keys are appended to the rows of a cursor.
    pub cursor_tables: Vec<CursorTable>,
    /// The cursor row of WHERE CURRENT OF.
    pub current_row: Option<CurrentRow>,
    /// The tables whose rows it locks.
    pub locks: Vec<(TableId, LockStrength)>,
    /// The tables that it reads in their present version.
    pub reads: Vec<TableId>,
    /// The parameters that stand for PL/pgSQL variables.
    pub variables: Vec<VariableUse>,
    /// The notices of hints without effect.
    pub notices: Vec<Error>,
    /// The errors of constant folding, which PostgreSQL raises when it plans the statement.
    pub constants: ConstantErrors,
}

/// Binds SELECT, VALUES, INSERT, UPSERT, UPDATE, DELETE or MERGE.
///
/// `parameter_types` are the types that the client declared, `None` for an undeclared one; may be
/// shorter than the list of parameters.
///
/// # Errors
///
/// PostgreSQL's, with the position in the statement.
pub fn bind(
    statement: &Statement,
    catalog: &Catalog,
    system: &dyn SystemCatalog,
    constants: &SessionConstants,
    parameter_types: &[Option<SqlType>],
) -> Result<BoundStatement> {
    let parameters = Parameters::new(parameter_types);
    let mut binder = Binder::new(catalog, system, constants, parameters);
    let bound = binder.bind_statement(statement)?;
    binder.finish(bound)
}

/// Binds the query of a cursor. Row keys are appended to its columns if the rows are updatable.
///
/// # Errors
///
/// As of [`bind`].
pub fn bind_cursor(
    cursor: &ast::DeclareCursor,
    (catalog, system, constants): (&Catalog, &dyn SystemCatalog, &SessionConstants),
    types: &[Option<SqlType>],
    variables: Option<&VariableScope<'_>>,
) -> Result<BoundStatement> {
    let mut binder = Binder::new(catalog, system, constants, Parameters::new(types));
    binder.variables = variables;
    let query = &cursor.query;
    let with = query.with.as_ref().map(|with| binder.open_with(with, true)).transpose()?;
    binder.wants_keys = matches!(query.body, ast::QueryBody::Select(_));
    let query = binder.bind_query_body(query, true)?;
    check_cursor(cursor)?;
    let bound = BoundPlan::Query(Query { plan: query.plan, columns: query.columns });
    let bound = binder.close_steps(with, bound);
    binder.finish(bound)
}

/// Binds the query of a materialized view, with the view's own name resolution.
///
/// # Errors
///
/// The error of the query, which a later change of an object can cause.
pub fn bind_materialized(
    view: &Arc<View>,
    catalog: &Catalog,
    system: &dyn SystemCatalog,
    constants: &SessionConstants,
) -> Result<BoundStatement> {
    let mut binder = Binder::new(catalog, system, constants, Parameters::none());
    binder.view = Some(Arc::clone(view));
    let query = binder.bind_query(view.query()?, true)?;
    binder.finish(BoundPlan::Query(Query { plan: query.plan, columns: query.columns }))
}

/// Binds the query of a view, with the view's own name resolution, and returns the resolution of
/// its names and literals.
///
/// # Errors
///
/// The error of the query, which a later change of an object can cause.
pub fn resolve_view(
    view: &Arc<View>,
    catalog: &Catalog,
    system: &dyn SystemCatalog,
) -> Result<ResolutionNotes> {
    let constants = SessionConstants::unknown();
    let mut binder = Binder::new(catalog, system, &constants, Parameters::none());
    binder.view = Some(Arc::clone(view));
    binder.notes = Some(ResolutionNotes::default());
    binder.bind_query(view.query()?, true)?;
    Ok(binder.notes.unwrap_or_default())
}

/// Replaces the tables of a statement's scans by those that `replace` returns.
pub(crate) fn replace_tables(bound: &mut BoundPlan, replace: &dyn Fn(&Table) -> Option<Table>) {
    for_each_node(bound, &mut |node| {
        if let Logical::Scan(scan) = node
            && let Some(table) = replace(&scan.table)
        {
            scan.table = Arc::new(table);
        }
    });
}

/// Calls `visit` on each node of the plans of a statement, before its inputs.
pub(crate) fn for_each_node(bound: &mut BoundPlan, visit: &mut dyn FnMut(&mut Logical)) {
    for_each_source(bound, &mut |plan| walk_plan(plan, visit));
}

impl Binder<'_> {
    /// Finishes the binding of a statement.
    ///
    /// # Errors
    ///
    /// 42P18 for a parameter whose type is undetermined.
    fn finish(mut self, mut bound: BoundPlan) -> Result<BoundStatement> {
        self.parameters.check_determined()?;
        let variables = self.variable_uses.iter();
        let variables = variables.map(|one| self.parameters.final_index(one.parameter)).collect();
        let client_count = self.parameters.final_types().len();
        let known = KnownParameters { client_count, variables };
        self.apply_policies(&mut bound);
        let constants = prune::finish(&mut bound, &mut self.parameters, known);
        let (mut locks, mut reads, mut bound_locks) = (Vec::new(), Vec::new(), Vec::new());
        for_each_source(&mut bound, &mut |plan| {
            walk_plan(plan, &mut |step| match step {
                Logical::LockRows(lock) => {
                    let tables = lock.locked_tables.tables.iter();
                    bound_locks.extend(tables.map(|of| of.table.oid));
                    locks.extend(
                        lock.locked_tables.tables.iter().map(|of| (of.table.id, of.lock.strength)),
                    );
                }
                // A read AS OF sees a fixed version.
                Logical::Scan(scan)
                    if scan.system_time.is_none() && !reads.contains(&scan.table.id) =>
                {
                    reads.push(scan.table.id);
                }
                _ => {}
            });
        });
        if let BoundPlan::Merge(merge) = &bound {
            // Its actions need other privileges.
            bound_locks.retain(|table| *table != merge.table.oid);
        }
        self.permissions.request_locks(&bound_locks);
        let current_row = self.current_row.map(|row| {
            let parameters = row.parameters.iter().map(|&at| self.parameters.final_index(at));
            CurrentRow { parameters: parameters.collect(), ..row }
        });
        let place = |one: &VariableUse| VariableUse {
            parameter: self.parameters.final_index(one.parameter),
            ..*one
        };
        let variables = self.variable_uses.iter().map(place).collect();
        Ok(BoundStatement {
            bound,
            parameter_types: self.parameters.final_types(),
            parameter_count: self.parameters.count(),
            unpopulated: self.unpopulated,
            permissions: self.permissions,
            notices: self.notices,
            cursor_tables: self.cursor_tables,
            current_row,
            locks,
            reads,
            variables,
            constants,
        })
    }

    /// Binds a statement with its WITH.
    fn bind_statement(&mut self, statement: &Statement) -> Result<BoundPlan> {
        let with = match statement {
            Statement::Query(query) => query.with.as_ref(),
            Statement::Insert(insert) => insert.with.as_ref(),
            Statement::Update(update) => update.with.as_ref(),
            Statement::Delete(delete) => delete.with.as_ref(),
            Statement::Merge(merge) => merge.with.as_ref(),
            _ => None,
        };
        let with = with.map(|with| self.open_with(with, true)).transpose()?;
        let bound = match statement {
            Statement::Query(query) => {
                let bound = self.bind_query_body(query, true)?;
                BoundPlan::Query(Query { plan: bound.plan, columns: bound.columns })
            }
            Statement::Insert(insert) => self.bind_insert(insert)?,
            Statement::Upsert(upsert) => self.bind_upsert(upsert)?,
            Statement::Update(update) => self.bind_update(update)?,
            Statement::Delete(delete) => self.bind_delete(delete)?,
            Statement::Merge(merge) => self.bind_merge(merge)?,
            Statement::Call(call) => self.bind_procedure(call)?,
            other => {
                let what = format!("{} as a query", other.tag());
                return Err(Error::not_supported(what, "Run it as a separate statement."));
            }
        };
        let mut bound = self.close_steps(with, bound);
        query_limits::check_statement(&mut bound)?;
        Ok(bound)
    }
}

/// The context for the names in an expression of a table, other than its columns.
#[derive(Clone, Copy)]
pub struct NameContext<'a> {
    /// The catalog.
    pub catalog: &'a Catalog,
    /// The search path for unqualified names.
    pub path: &'a Arc<SearchPath>,
    /// The session's settings for literals, if the expression is a new definition: its literals
    /// are rewritten to retain their present values.
    pub session: Option<&'a TextStyle>,
    /// The families of the columns, which may qualify them.
    pub families: Option<&'a Arc<[String]>>,
}

impl<'a> NameContext<'a> {
    /// Returns the context for texts stored in the catalog, whose names are qualified.
    pub fn stored(catalog: &'a Catalog) -> NameContext<'a> {
        static PATH: LazyLock<Arc<SearchPath>> = LazyLock::new(Arc::default);
        NameContext { catalog, path: &PATH, session: None, families: None }
    }

    /// Returns the context for an expression over columns of these families.
    pub fn with_families(self, families: &'a Arc<[String]>) -> NameContext<'a> {
        NameContext { families: Some(families), ..self }
    }
}

/// Converts a value of a domain's base type to the domain, with its checks.
///
/// # Errors
///
/// 42704 if the domain no longer exists.
pub fn bind_as_domain(value: Expr, domain: &SqlType, names: NameContext<'_>) -> Result<Expr> {
    let constants = SessionConstants::new();
    let mut binder =
        Binder::new(names.catalog, &EmptySystemCatalog, &constants, Parameters::none());
    let sql_type = value.data_type().into();
    let value = Typed { expr: value, sql_type, position: 1 };
    let checked = binder.coerce(value, domain, CastContext::Assignment)?;
    checked.ok_or_else(|| err!(UNDEFINED_OBJECT: "the type of a parameter no longer exists"))
}

/// Binds an expression that belongs to a table, over its columns in table order: a CHECK (`target`
/// boolean), a DEFAULT (`target` the column's type, no columns), an index key (no target).
///
/// # Errors
///
/// PostgreSQL's, and for subqueries, parameters and aggregates, which are not allowed.
pub fn bind_table_expression(
    clause: TableClause,
    expression: &ast::Expr,
    columns: &[(String, SqlType)],
    target: Option<SqlType>,
    names: NameContext<'_>,
) -> Result<Expr> {
    table_expression(clause, expression, (columns, target), names, None).map(|bound| bound.expr)
}

/// Returns the text of an expression of a definition with literals rewritten so that they do not
/// depend on session settings. Errors are left to [`bind_table_expression`].
pub fn text_with_fixed_literals(
    text: &str,
    columns: &[(String, SqlType)],
    target: Option<SqlType>,
    names: NameContext<'_>,
) -> Result<String> {
    if names.session.is_none() || !text.contains(['\'', '$']) {
        return Ok(text.to_owned());
    }
    let expression = parser::parse_expression(text)?;
    let stored = TableClause::Catalog;
    match table_expression(stored, &expression, (columns, target), names, None) {
        Ok(TableExpression { settler: Some(settler), .. }) => settler.rewritten(text),
        Ok(_) | Err(_) => Ok(text.to_owned()),
    }
}

/// A bound expression of a table.
struct TableExpression {
    expr: Expr,
    notes: ResolutionNotes,
    settler: Option<LiteralSettler>,
}

/// Binds an expression stored in the catalog as [`bind_table_expression`] does, and returns the
/// resolution of its names and literals.
///
/// # Errors
///
/// The error of the expression, which a later change of an object can cause.
pub fn resolve_expression(
    expression: &ast::Expr,
    columns: &[(String, SqlType)],
    target: Option<SqlType>,
    catalog: &Catalog,
) -> Result<ResolutionNotes> {
    let (stored, notes) = (TableClause::Catalog, Some(ResolutionNotes::default()));
    let names = NameContext::stored(catalog);
    Ok(table_expression(stored, expression, (columns, target), names, notes)?.notes)
}

fn table_expression(
    clause: TableClause,
    expression: &ast::Expr,
    (columns, target): (&[(String, SqlType)], Option<SqlType>),
    names: NameContext<'_>,
    notes: Option<ResolutionNotes>,
) -> Result<TableExpression> {
    let column = |(name, sql_type): &(String, SqlType)| OutputColumn {
        name: name.clone(),
        sql_type: sql_type.clone(),
        origin: None,
    };
    let columns: Vec<OutputColumn> = columns.iter().map(column).collect();
    let families = names.families.cloned();
    let scope = Scope::of(ScopeRelation { families, ..ScopeRelation::new("", &columns) });
    scope_expression(clause, expression, (scope, target), names, notes)
}

/// Binds WHEN of a trigger over the columns of the old row of its table, then those of the new
/// one.
///
/// # Errors
///
/// As of [`bind_table_expression`].
pub fn bind_trigger_condition(
    clause: TableClause,
    condition: &ast::Expr,
    table: &Arc<Table>,
    names: NameContext<'_>,
) -> Result<Expr> {
    trigger_condition(clause, condition, table, (names, None)).map(|bound| bound.expr)
}

/// Binds WHEN of a trigger that the catalog stores, and returns the resolution of its names and
/// literals.
///
/// # Errors
///
/// The error of the condition, which a later change of an object can cause.
pub fn resolve_trigger_condition(
    condition: &ast::Expr,
    table: &Arc<Table>,
    catalog: &Catalog,
) -> Result<ResolutionNotes> {
    let notes = Some(ResolutionNotes::default());
    let names = NameContext::stored(catalog);
    Ok(trigger_condition(TableClause::Catalog, condition, table, (names, notes))?.notes)
}

fn trigger_condition(
    clause: TableClause,
    condition: &ast::Expr,
    table: &Arc<Table>,
    (names, notes): (NameContext<'_>, Option<ResolutionNotes>),
) -> Result<TableExpression> {
    let width = table.columns.len();
    let new = Scope::of(ScopeRelation::of_table("new", table, 0));
    let scope = Scope::of(ScopeRelation::of_table("old", table, 0)).join(new, width)?;
    let target = Some(DataType::Bool.into());
    scope_expression(clause, condition, (scope, target), names, notes)
}

fn scope_expression(
    clause: TableClause,
    expression: &ast::Expr,
    (scope, target): (Scope, Option<SqlType>),
    names: NameContext<'_>,
    notes: Option<ResolutionNotes>,
) -> Result<TableExpression> {
    let mut constants = match notes {
        Some(_) => SessionConstants::unknown(),
        None => SessionConstants::new(),
    };
    constants.set_search_path(Arc::clone(names.path));
    let mut binder =
        Binder::new(names.catalog, &EmptySystemCatalog, &constants, Parameters::none());
    binder.notes = notes;
    binder.settler = names.session.cloned().map(LiteralSettler::new);
    let bind = |binder: &mut Binder<'_>| {
        let value = binder.bind_expr(expression)?;
        match target {
            None => Ok(binder.resolve_unknown(value)?.expr),
            Some(to) => {
                let (from, position) = (value.sql_type.clone(), value.position);
                binder
                    .coerce(value, &to, CastContext::Assignment)?
                    .ok_or_else(|| wrong_type(binder, clause, (from, to)).at(position))
            }
        }
    };
    let bound = binder.in_new_level(scope, Clause::Table(clause), bind);
    let (mut expr, level) = bound.map_err(|error| clause.wording(error))?;
    level.refuse_subqueries_of(clause)?;
    prune::finish_expression(&mut expr, &binder.parameters);
    let notes = binder.notes.unwrap_or_default();
    Ok(TableExpression { expr, notes, settler: binder.settler })
}

fn wrong_type(binder: &Binder<'_>, clause: TableClause, (from, to): (SqlType, SqlType)) -> Error {
    let (from, to_name, to) = (binder.type_name(&from), binder.type_name(&to), to.base);
    let is_default = [TableClause::Default, TableClause::Generation].contains(&clause);
    let is_condition = to == DataType::Bool && !is_default;
    let message = if clause == TableClause::ExecuteParameter {
        format!("parameter of type {from} cannot be coerced to the expected type {to_name}")
    } else if clause == TableClause::Parameter {
        format!("argument of DEFAULT must be type {to_name}, not type {from}")
    } else if is_condition {
        format!("argument of {} must be type boolean, not type {from}", clause.condition())
    } else {
        format!("column is of type {to_name} but default expression is of type {from}")
    };
    let error = err!(DATATYPE_MISMATCH: message);
    if (is_condition && clause != TableClause::ExecuteParameter) || clause == TableClause::Parameter
    {
        return error;
    }
    error.with_hint("You will need to rewrite or cast the expression.")
}

/// A system catalog without relations and functions: table expressions see only their table.
pub struct EmptySystemCatalog;

impl SystemCatalog for EmptySystemCatalog {
    fn view(&self, _: Option<&str>, _: &str) -> Option<Vec<OutputColumn>> {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::parser::parse_statements;

    fn statement(sql: &str) -> Statement {
        parse_statements(sql).unwrap().remove(0).statement
    }

    /// Returns the first output expression of a query, as a table expression.
    fn table_expression(sql: &str, target: Option<SqlType>) -> Result<String> {
        let Statement::Query(query) = statement(&format!("select {sql}")) else { panic!("{sql}") };
        let ast::QueryBody::Select(select) = query.body else { panic!("{sql}") };
        let ast::SelectItem::Expr { expr, .. } = &select.items[0] else { panic!("{sql}") };
        let columns = [
            ("a".to_owned(), DataType::Int4.into()),
            ("b".to_owned(), SqlType::new(DataType::Varchar, 9)),
        ];
        let catalog = Catalog::default();
        let bound = bind_table_expression(
            TableClause::Check,
            expr,
            &columns,
            target,
            NameContext::stored(&catalog),
        )?;
        Ok(bound.describe(&|index| columns[index].0.clone()))
    }

    fn refusal(sql: &str, target: Option<SqlType>) -> (String, String) {
        let error = table_expression(sql, target).unwrap_err();
        (error.sqlstate.into_owned(), error.message)
    }

    fn query(sql: &str, given: &[Option<DataType>]) -> Result<BoundStatement> {
        let given: Vec<_> = given.iter().map(|one| one.as_ref().map(SqlType::from)).collect();
        let constants = SessionConstants::new();
        bind(&statement(sql), &Catalog::default(), &EmptySystemCatalog, &constants, &given)
    }

    fn bases(bound: &BoundStatement) -> Vec<DataType> {
        bound.parameter_types.iter().map(|one| one.base.clone()).collect()
    }

    #[test]
    fn table_expression_binds_column_references() {
        let check = Some(DataType::Bool.into());
        assert_eq!(
            table_expression("a > 1 and b <> 'x'", check).unwrap(),
            "(a > 1) AND ((b)::text <> 'x'::text)"
        );
        assert_eq!(table_expression("lower(b)", None).unwrap(), "lower((b)::text)");
        let short = Some(SqlType::new(DataType::Varchar, 9));
        assert_eq!(table_expression("'none'", short).unwrap(), "'none'::character varying");
        let bigint = Some(DataType::Int8.into());
        assert_eq!(table_expression("5", bigint).unwrap(), "'5'::bigint");
    }

    #[test]
    fn table_expression_rejects_subqueries_and_aggregates() {
        let check = Some(DataType::Bool.into());
        let (code, message) = refusal("a + 1", check.clone());
        assert_eq!(
            (code.as_str(), message.as_str()),
            ("42804", "argument of CHECK must be type boolean, not type integer")
        );
        assert_eq!(refusal("c > 1", check.clone()).0, "42703");
        assert_eq!(refusal("$1 > 1", check.clone()).0, "42P02");
        assert_eq!(refusal("count(*) > 1", check.clone()).0, "42803");
        assert_eq!(refusal("(select 1) > a", check).0, "0A000");
        assert_eq!(refusal("'too long'", Some(SqlType::new(DataType::Varchar, 6))).0, "22001");
        assert_eq!(refusal("true", Some(DataType::Int4.into())).0, "42804");
    }

    #[test]
    fn parameter_types_are_declared_or_inferred() {
        let types = |sql: &str, given: &[Option<DataType>]| bases(&query(sql, given).unwrap());
        assert_eq!(types("select $1 + 1", &[Some(DataType::Int8)]), [DataType::Int8]);
        assert_eq!(types("select $1 + 1", &[]), [DataType::Int4]);
        assert_eq!(types("select $2 + 1.5, $1", &[None]), [DataType::Text, DataType::Numeric]);
        for undetermined in ["select $2 + 1.5", "select $1 is null, $2", "select row($1)"] {
            assert_eq!(query(undetermined, &[]).unwrap_err().sqlstate, "42P18", "{undetermined}");
        }
        assert_eq!(types("select $1", &[Some(DataType::Unknown)]), [DataType::Text]);
        let error = query("select $1 is null, $1 = 1, $1 = true", &[]).unwrap_err();
        assert_eq!(error.sqlstate, "42883");
        let error = query("select ($1, $1) = (1, 'x'::text)", &[]).unwrap_err();
        assert_eq!(error.sqlstate, "42P08");
        assert_eq!(error.detail.as_deref(), Some("integer versus text"));
    }

    #[test]
    fn subquery_parameters_follow_client_parameters() {
        let sql = "select (select x + $1) from (select $3::int as x, $2::text) s";
        let bound = query(sql, &[]).unwrap();
        assert_eq!(bases(&bound), [DataType::Int4, DataType::Text, DataType::Int4]);
        assert_eq!(bound.parameter_count, 4);
    }

    #[test]
    fn utility_statements_are_not_bindable() {
        assert_eq!(query("begin", &[]).unwrap_err().sqlstate, "0A000");
    }
}
