//! WITH: queries with a name.
//!
//! Each is bound once, where it is declared. A reference becomes a [`CteScan`]; when all was bound
//! the references are counted, and a query that is read once and changes nothing by that is put in
//! place of its scan. The others are kept above what reads them ([`With`]). A query that nobody
//! reads is not computed.
//!
//! A recursive query becomes a [`RecursiveUnion`]; its reference to itself reads the work table.
//!
//! Source: PostgreSQL's parse_cte.c and `SS_process_ctes` (subselect.c). Unlike there, a query of
//! WITH RECURSIVE cannot read one that comes later.

use types::cast::CastContext;
use types::expr::Expr;
use types::function::{Volatility, signature};
use types::{DataType, SqlType};

use crate::ast::{self, Ident, NamedQuery, NamedQueryBody, QueryBody, SetOperator, TableName};
use crate::binder::bound_query::BoundQuery;
use crate::binder::coercion::common_type;
use crate::binder::level::Binder;
use crate::binder::named::{NamedRows, State};
use crate::binder::rows::Rows;
use crate::binder::scope::{Relation, Scope};
use crate::binder::tree::{for_each_expression, walk, walk_plan};
use crate::error::{Error, Result, sqlstate};
use crate::logical::{CteScan, Logical, OutputColumn, RecursiveUnion, With};

/// PostgreSQL adds the bytes of a length word to what a type is declared with.
const MODIFIER_BIAS: i32 = 4;

/// A WITH whose names can be read.
pub(super) struct OpenWith {
    /// Names declared around it.
    outer: usize,
    queries: Vec<BoundNamedQuery>,
}

struct BoundNamedQuery {
    id: usize,
    name: String,
    plan: Logical,
    materialized: Option<bool>,
    is_recursive: bool,
}

impl Binder<'_> {
    /// Binds the queries of a WITH, which can be read until [`Binder::close_with`].
    pub(super) fn open_with(&mut self, with: &ast::With) -> Result<OpenWith> {
        let outer = self.named.len();
        for (index, query) in with.queries.iter().enumerate() {
            let name = query.name.value.clone();
            if with.queries[..index].iter().any(|other| other.name.value == name) {
                let message = format!("WITH query name \"{name}\" specified more than once");
                return Err(Error::new(sqlstate::DUPLICATE_ALIAS, message).at(query.name.position));
            }
            self.named.push(NamedRows { name, id: self.named_count, state: State::Later });
            self.named_count += 1;
        }
        let mut queries = Vec::with_capacity(with.queries.len());
        for (index, query) in with.queries.iter().enumerate() {
            let id = self.named[outer + index].id;
            let NamedQueryBody::Query(body) = &query.body else {
                let hint = "Run the change as a statement of its own, with RETURNING.";
                let what = "a data-modifying statement in WITH";
                return Err(Error::not_supported(what, hint).at(query.name.position));
            };
            let mut bound = if query.is_recursive {
                self.bind_recursive(query, body, outer + index)?
            } else {
                self.bind_query(body, true)?
            };
            rename(&mut bound.columns, query)?;
            self.named[outer + index].state = State::Bound(bound.columns);
            queries.push(BoundNamedQuery {
                id,
                name: query.name.value.clone(),
                plan: bound.plan,
                materialized: query.materialized,
                is_recursive: query.is_recursive,
            });
        }
        Ok(OpenWith { outer, queries })
    }

    /// Returns the plan with the queries that it reads put in or above it.
    pub(super) fn close_with(&mut self, with: OpenWith, mut plan: Logical) -> Logical {
        self.named.truncate(with.outer);
        for query in with.queries.into_iter().rev() {
            let BoundNamedQuery { id, name, plan: mut rows, materialized, is_recursive } = query;
            let mut count = 0;
            for_each_scan_of(&mut plan, id, &mut |_| count += 1);
            let wanted_once = match materialized {
                Some(materialized) => !materialized,
                None => count == 1,
            };
            if count == 0 {
                continue;
            }
            if wanted_once && !is_recursive && !has_effects(&mut rows) {
                for_each_scan_of(&mut plan, id, &mut |scan| *scan = rows.clone());
                continue;
            }
            let (rows, body) = (Box::new(rows), Box::new(plan));
            plan = Logical::With(With { id, name, query: rows, body });
        }
        plan
    }

    /// Returns the rows of a query of WITH, if the name is one.
    pub(super) fn bind_named(
        &mut self,
        name: &TableName,
        (alias, renamed): (&str, &[Ident]),
    ) -> Result<Option<(Rows, Scope)>> {
        if name.schema.is_some() {
            return Ok(None);
        }
        let declared = |one: &&mut NamedRows| {
            one.name == name.name.value && !matches!(one.state, State::Later)
        };
        let Some(query) = self.named.iter_mut().rev().find(declared) else { return Ok(None) };
        let (columns, is_work_table) = match &mut query.state {
            State::Bound(columns) => (columns.clone(), false),
            State::Later => return Ok(None),
            State::Recursive { columns, read, refused } => {
                let again = read.then_some("more than once");
                if let Some(place) = refused.or(again) {
                    let message = format!(
                        "recursive reference to query \"{}\" must not appear {place}",
                        query.name
                    );
                    return Err(
                        Error::new(sqlstate::INVALID_RECURSION, message).at(name.position())
                    );
                }
                *read = true;
                (columns.clone(), true)
            }
        };
        let (id, name) = (query.id, query.name.clone());
        let mut relation = Relation::new(alias, &columns);
        relation.is_work_table = is_work_table;
        relation.rename(renamed)?;
        let types = columns.iter().map(|column| column.sql_type.base).collect();
        let plan = Logical::CteScan(CteScan { id, name, columns, is_work_table });
        Ok(Some((Rows::new(plan, types), Scope::of(relation))))
    }

    /// Explains that a name which is no relation is a query of WITH that cannot be read yet.
    pub(super) fn explain_later(&self, name: &TableName, error: Error) -> Error {
        let named = &name.name.value;
        let later = |one: &NamedRows| one.name == *named && matches!(one.state, State::Later);
        if name.schema.is_some() || !self.named.iter().any(later) {
            return error;
        }
        let detail = format!(
            "There is a WITH item named \"{named}\", but it cannot be referenced from this part \
             of the query."
        );
        let hint = "Use WITH RECURSIVE, or re-order the WITH items to remove forward references.";
        error.with_detail(detail).with_hint(hint)
    }

    /// Binds something inside of which no recursive query that is being bound may read itself.
    pub(super) fn without_recursion<T>(
        &mut self,
        place: &'static str,
        bind: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let mut changed = Vec::new();
        for (index, query) in self.named.iter_mut().enumerate() {
            if let State::Recursive { refused: refused @ None, .. } = &mut query.state {
                *refused = Some(place);
                changed.push(index);
            }
        }
        let result = bind(self);
        for index in changed {
            if let Some(NamedRows { state: State::Recursive { refused, .. }, .. }) =
                self.named.get_mut(index)
            {
                *refused = None;
            }
        }
        result
    }

    fn bind_recursive(
        &mut self,
        named: &NamedQuery,
        query: &ast::Query,
        place: usize,
    ) -> Result<BoundQuery> {
        let position = named.name.position;
        let QueryBody::SetOperation { operator: SetOperator::Union, all, left, right } =
            &query.body
        else {
            let message = format!(
                "recursive query \"{}\" does not have the form \
                 non-recursive-term UNION [ALL] recursive-term",
                named.name.value
            );
            return Err(Error::new(sqlstate::INVALID_RECURSION, message).at(position));
        };
        refuse_tail(query, position)?;
        let with = query.with.as_ref().map(|with| self.open_with(with)).transpose()?;
        let refused = Some("within its non-recursive term");
        let columns = Vec::new();
        self.named[place].state = State::Recursive { columns, read: false, refused };
        let start = self.bind_query(left, true)?;
        let mut columns = start.columns.clone();
        rename(&mut columns, named)?;
        self.named[place].state = State::Recursive { columns, read: false, refused: None };
        let step = self.bind_query(right, false)?;
        let types = self.recursive_types(named, &start, &step)?;
        let (columns, positions) = (start.columns.clone(), start.positions.clone());
        let (start, step) =
            (Box::new(start.plan), Box::new(self.convert(step, &types, CastContext::Implicit)?));
        let id = self.named[place].id;
        let name = named.name.value.clone();
        let mut plan = Logical::RecursiveUnion(RecursiveUnion { id, name, all: *all, start, step });
        if let Some(with) = with {
            plan = self.close_with(with, plan);
        }
        Ok(BoundQuery { plan, columns, positions })
    }

    /// The types are those of the first term; the other one must fit them.
    fn recursive_types(
        &self,
        named: &NamedQuery,
        start: &BoundQuery,
        step: &BoundQuery,
    ) -> Result<Vec<SqlType>> {
        if start.columns.len() != step.columns.len() {
            let message = "each UNION query must have the same number of columns";
            let position = step.positions.first().copied().unwrap_or(1);
            return Err(Error::new(sqlstate::SYNTAX_ERROR, message).at(position));
        }
        let mut types = Vec::new();
        for (index, column) in start.columns.iter().enumerate() {
            let found = column.sql_type;
            let common = common_type(&[start.typed(index), step.typed(index)], "UNION")?;
            let other = step.columns[index].sql_type;
            let same_modifier = other.base != found.base || found.modifier == -1 || other == found;
            if common != found.base || !same_modifier {
                return Err(
                    wrong_type(named, index, found, common.into()).at(start.positions[index])
                );
            }
            types.push(SqlType::from(found.base));
        }
        Ok(types)
    }
}

fn wrong_type(named: &NamedQuery, index: usize, found: SqlType, overall: SqlType) -> Error {
    let message = format!(
        "recursive query \"{}\" column {} has type {} in non-recursive term but type {} overall",
        named.name.value,
        index + 1,
        type_text(found),
        type_text(overall)
    );
    Error::new(sqlstate::DATATYPE_MISMATCH, message)
        .with_hint("Cast the output of the non-recursive term to the correct type.")
}

/// Returns a type as `format_type` writes it: `numeric(10,2)`.
fn type_text(sql_type: SqlType) -> String {
    let name = sql_type.base.sql_name();
    let modifier = sql_type.modifier - MODIFIER_BIAS;
    match sql_type.base {
        _ if modifier < 0 => name.to_owned(),
        DataType::Varchar | DataType::Char => format!("{name}({modifier})"),
        DataType::Numeric => format!("{name}({},{})", modifier >> 16, modifier & 0xffff),
        _ => name.to_owned(),
    }
}

/// A recursive query is worked off row by row: it has no order and no end of its own.
fn refuse_tail(query: &ast::Query, position: usize) -> Result<()> {
    let refused = [
        (!query.order_by.is_empty(), "ORDER BY"),
        (query.offset.is_some(), "OFFSET"),
        (query.limit.is_some(), "LIMIT"),
        (!query.locking.is_empty(), "FOR UPDATE/SHARE"),
    ];
    match refused.into_iter().find(|(present, _)| *present) {
        None => Ok(()),
        Some((_, clause)) => {
            let message = format!("{clause} in a recursive query is not implemented");
            Err(Error::new(sqlstate::FEATURE_NOT_SUPPORTED, message)
                .with_hint("Put it around the query that reads the recursive one.")
                .at(position))
        }
    }
}

fn rename(columns: &mut [OutputColumn], query: &NamedQuery) -> Result<()> {
    if query.columns.len() > columns.len() {
        let message = format!(
            "WITH query \"{}\" has {} columns available but {} columns specified",
            query.name.value,
            columns.len(),
            query.columns.len()
        );
        let code = sqlstate::INVALID_COLUMN_REFERENCE;
        return Err(Error::new(code, message).at(query.name.position));
    }
    for (column, name) in columns.iter_mut().zip(&query.columns) {
        column.name.clone_from(&name.value);
    }
    Ok(())
}

fn for_each_scan_of(plan: &mut Logical, id: usize, visit: &mut dyn FnMut(&mut Logical)) {
    walk_plan(plan, &mut |node| {
        if matches!(node, Logical::CteScan(scan) if scan.id == id && !scan.is_work_table) {
            visit(node);
        }
    });
}

/// Returns whether it matters how often a query is computed: it locks rows, or calls what gives
/// another value each time.
fn has_effects(plan: &mut Logical) -> bool {
    let mut found = false;
    walk_plan(plan, &mut |node| {
        if let Logical::Scan(scan) = node {
            found |= scan.lock.is_some();
        }
        for_each_expression(node, &mut |expr| found |= is_volatile(expr));
    });
    found
}

fn is_volatile(expr: &Expr) -> bool {
    let mut volatile = false;
    walk(expr, &mut |part| {
        if let Expr::Call { function, .. } = part {
            volatile |= signature(*function).volatility == Volatility::Volatile;
        }
    });
    volatile
}
