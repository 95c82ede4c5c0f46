//! WITH queries.
//!
//! Each is bound once, at its declaration, and a reference becomes a [`CteScan`]. After all
//! queries are bound, references are counted: a query with a single reference and without side
//! effects replaces its scan, others are materialized by a [`With`] node above the readers. A
//! query without references is not executed.
//!
//! Data-modifying queries are allowed only in the WITH of the statement itself. They become steps
//! ([`Steps`]) that are executed before the rest, each once.
//!
//! A recursive query becomes a [`RecursiveUnion`]; its self-reference reads the work table.
//!
//! Source: PostgreSQL's parse_cte.c and `SS_process_ctes` (subselect.c). Difference: a query of
//! WITH RECURSIVE cannot refer to a later one.

use types::cast::CastContext;
use types::{DataType, SqlType};

use crate::ast::{self, Ident, NamedQuery, NamedQueryBody, QueryBody, SetOperator, TableName};
use crate::binder::bound_query::{BoundQuery, refuse_locks_of_part};
use crate::binder::coercion::common_type;
use crate::binder::cte_scope::{CteEntry, CteState};
use crate::binder::level::Binder;
use crate::binder::query_limits;
use crate::binder::rows::Rows;
use crate::binder::scope::{RelationKind, Scope, ScopeRelation};
use crate::binder::tree::{for_each_source, walk_plan};
use crate::binder::typed::check_equality;
use crate::error::{Error, Result};
use crate::logical::{
    BoundPlan, CteScan, Logical, NamedStep, OutputColumn, Query, RecursiveUnion, Steps, With,
};

/// PostgreSQL's type modifiers include the bytes of a length word.
const MODIFIER_BIAS: i32 = 4;

/// A WITH clause whose names are visible.
pub(super) struct OpenWith {
    /// The number of names declared in enclosing queries.
    outer: usize,
    queries: Vec<BoundNamedQuery>,
}

struct BoundNamedQuery {
    id: usize,
    name: String,
    rows: NamedBody,
    materialized: Option<bool>,
    is_recursive: bool,
}

/// The rows of a WITH query.
enum NamedBody {
    Query(Logical),
    Change(Box<BoundPlan>),
}

impl Binder<'_> {
    /// Binds the queries of a WITH clause, which are visible until [`Binder::close_with`]. Those
    /// of a statement's own WITH may be data-modifying, and are visible until
    /// [`Binder::close_steps`].
    pub(super) fn open_with(
        &mut self,
        with: &ast::WithClause,
        of_statement: bool,
    ) -> Result<OpenWith> {
        query_limits::check_count(with.queries.len())?;
        let outer = self.named.len();
        for (index, query) in with.queries.iter().enumerate() {
            let name = query.name.value.clone();
            if with.queries[..index].iter().any(|other| other.name.value == name) {
                bail!(DUPLICATE_ALIAS: "WITH query name \"{name}\" specified more than once"; at query.name.position);
            }
            let id = self.new_name();
            self.named.push(CteEntry { name, id, state: CteState::Later });
        }
        let mut queries = Vec::with_capacity(with.queries.len());
        for (index, query) in with.queries.iter().enumerate() {
            let id = self.named[outer + index].id;
            if (query.search.is_some() || query.cycle.is_some()) && !query.is_recursive {
                bail!(SYNTAX_ERROR: "WITH query is not recursive"; at query.name.position);
            }
            let (rows, state) = match &query.body {
                NamedQueryBody::Query(body) => {
                    let mut bound = if query.is_recursive {
                        self.bind_recursive(query, body, outer + index)?
                    } else {
                        self.bind_query(body, true)?
                    };
                    rename(&mut bound.columns, query)?;
                    (NamedBody::Query(bound.plan), CteState::Bound(bound.columns))
                }
                NamedQueryBody::Change(_) if !of_statement => {
                    return Err(not_at_the_top().at(query.name.position));
                }
                NamedQueryBody::Change(change) => {
                    let bound = self.bind_named_change(query, change)?;
                    let state = match returned_columns(&bound) {
                        None => CteState::Silent,
                        Some(mut columns) => {
                            rename(&mut columns, query)?;
                            CteState::Bound(columns)
                        }
                    };
                    (NamedBody::Change(Box::new(bound)), state)
                }
            };
            self.named[outer + index].state = state;
            queries.push(BoundNamedQuery {
                id,
                name: query.name.value.clone(),
                rows,
                materialized: query.materialized,
                is_recursive: query.is_recursive,
            });
        }
        Ok(OpenWith { outer, queries })
    }

    /// Returns a new number by which a scan refers to a WITH query.
    pub(super) fn new_name(&mut self) -> usize {
        self.named_count += 1;
        self.named_count - 1
    }

    fn bind_named_change(
        &mut self,
        query: &NamedQuery,
        change: &ast::Statement,
    ) -> Result<BoundPlan> {
        if query.is_recursive {
            let name = &query.name.value;
            bail!(INVALID_RECURSION: "recursive query \"{name}\" must not contain data-modifying statements";
                at query.name.position);
        }
        let with = match change {
            ast::Statement::Insert(insert) => &insert.with,
            ast::Statement::Update(update) => &update.with,
            ast::Statement::Delete(delete) => &delete.with,
            _ => &None,
        };
        let mut queries = with.iter().flat_map(|with| &with.queries);
        let inner = queries.find(|one| matches!(one.body, NamedQueryBody::Change(_)));
        if let Some(inner) = inner {
            return Err(not_at_the_top().at(inner.name.position));
        }
        self.bind_statement(change)
    }

    /// Returns the plan with the referenced queries inlined, or materialized above it.
    pub(super) fn close_with(&mut self, with: OpenWith, mut plan: Logical) -> Logical {
        self.named.truncate(with.outer);
        for query in with.queries.into_iter().rev() {
            let BoundNamedQuery { id, name, rows, materialized, is_recursive } = query;
            let NamedBody::Query(rows) = rows else { continue };
            let mut count = 0;
            for_each_scan_of(&mut plan, id, &mut |_| count += 1);
            if count == 0 {
                continue;
            }
            if is_put_in(count, materialized, is_recursive, &rows) {
                for_each_scan_of(&mut plan, id, &mut |scan| *scan = rows.clone());
                continue;
            }
            let (rows, body) = (Box::new(rows), Box::new(plan));
            plan = Logical::With(With { id, name, query: rows, body });
        }
        plan
    }

    /// Returns the statement with its WITH queries inlined, or as steps before it.
    pub(super) fn close_steps(&mut self, with: Option<OpenWith>, bound: BoundPlan) -> BoundPlan {
        let Some(with) = with else { return bound };
        self.named.truncate(with.outer);
        let (mut before, mut last) = match bound {
            BoundPlan::Steps(steps) => (steps.before, steps.last),
            bound => (Vec::new(), Box::new(bound)),
        };
        for query in with.queries.into_iter().rev() {
            let BoundNamedQuery { id, name, rows, materialized, is_recursive } = query;
            let bound = match rows {
                NamedBody::Change(bound) => *bound,
                NamedBody::Query(rows) => {
                    let mut count = 0;
                    let mut visit_all = |visit: &mut dyn FnMut(&mut Logical)| {
                        let steps = before.iter_mut().map(|step: &mut NamedStep| &mut step.bound);
                        for bound in steps.chain([last.as_mut()]) {
                            for_each_source(bound, &mut |plan| for_each_scan_of(plan, id, visit));
                        }
                    };
                    visit_all(&mut |_| count += 1);
                    if count == 0 {
                        continue;
                    }
                    if is_put_in(count, materialized, is_recursive, &rows) {
                        visit_all(&mut |scan| *scan = rows.clone());
                        continue;
                    }
                    if let (BoundPlan::Query(query), true) = (last.as_mut(), before.is_empty()) {
                        let empty = Logical::Append { inputs: Vec::new() };
                        let body = Box::new(std::mem::replace(&mut query.plan, empty));
                        query.plan = Logical::With(With { id, name, query: Box::new(rows), body });
                        continue;
                    }
                    BoundPlan::Query(Query { plan: rows, columns: Vec::new() })
                }
            };
            match bound {
                // Readers refer to the query of its RETURNING; the data-modifying step has only a
                // number.
                BoundPlan::Steps(steps) => {
                    let last = NamedStep { id, name, bound: *steps.last };
                    before.splice(0..0, steps.before.into_iter().chain([last]));
                }
                bound => before.insert(0, NamedStep { id, name, bound }),
            }
        }
        if before.is_empty() { *last } else { BoundPlan::Steps(Steps { before, last }) }
    }

    /// Returns the rows of a WITH query, if the name refers to one.
    pub(super) fn bind_named(
        &mut self,
        name: &TableName,
        (alias, renamed): (&str, &[Ident]),
    ) -> Result<Option<(Rows, Scope)>> {
        if name.schema.is_some() {
            return Ok(None);
        }
        let declared = |one: &&mut CteEntry| {
            one.name == name.name.value && !matches!(one.state, CteState::Later)
        };
        let Some(query) = self.named.iter_mut().rev().find(declared) else { return Ok(None) };
        let mut hidden = 0;
        let (columns, is_work_table) = match &mut query.state {
            CteState::Bound(columns) => (columns.clone(), false),
            CteState::Later => return Ok(None),
            CteState::Silent => {
                bail!(FEATURE_NOT_SUPPORTED: "WITH query \"{}\" does not have a RETURNING clause", query.name;
                    at name.position());
            }
            CteState::Recursive { columns, carried, read, refused } => {
                hidden = *carried;
                let again = read.then_some("more than once");
                if let Some(place) = refused.or(again) {
                    bail!(INVALID_RECURSION: "recursive reference to query \"{}\" must not appear {place}", query.name;
                        at name.position());
                }
                *read = true;
                (columns.clone(), true)
            }
        };
        let (id, name) = (query.id, query.name.clone());
        let mut relation = ScopeRelation::new(alias, &columns);
        relation.hidden = relation.columns.split_off(columns.len() - hidden);
        relation.kind = RelationKind::Named;
        relation.is_work_table = is_work_table;
        relation.rename(renamed)?;
        let types = columns.iter().map(|column| column.sql_type.base.clone()).collect();
        let plan = Logical::CteScan(CteScan { id, name, columns, is_work_table, rows: None });
        Ok(Some((Rows::new(plan, types), Scope::of(relation))))
    }

    /// Adds an explanation to the error if the name is a WITH query that is not visible yet.
    pub(super) fn explain_later(&self, name: &TableName, error: Error) -> Error {
        let named = &name.name.value;
        let later = |one: &CteEntry| one.name == *named && matches!(one.state, CteState::Later);
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

    /// Binds a construct in which recursive references are not allowed.
    pub(super) fn without_recursion<T>(
        &mut self,
        place: &'static str,
        bind: impl FnOnce(&mut Self) -> T,
    ) -> T {
        let mut changed = Vec::new();
        for (index, query) in self.named.iter_mut().enumerate() {
            if let CteState::Recursive { refused: refused @ None, .. } = &mut query.state {
                *refused = Some(place);
                changed.push(index);
            }
        }
        let result = bind(self);
        for index in changed {
            if let Some(CteEntry { state: CteState::Recursive { refused, .. }, .. }) =
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
        query: &ast::QueryExpr,
        place: usize,
    ) -> Result<BoundQuery> {
        let position = named.name.position;
        let QueryBody::SetOperation { operator: SetOperator::Union, all, left, right } =
            &query.body
        else {
            bail!(INVALID_RECURSION: "recursive query \"{}\" does not have the form non-recursive-term UNION [ALL] \
                recursive-term", named.name.value; at position);
        };
        refuse_tail(query, position)?;
        [left, right].into_iter().try_for_each(|part| refuse_locks_of_part(part))?;
        let with = query.with.as_ref().map(|with| self.open_with(with, false)).transpose()?;
        let refused = Some("within its non-recursive term");
        let columns = Vec::new();
        self.named[place].state = CteState::Recursive { columns, carried: 0, read: false, refused };
        let start = self.bind_query(left, true)?;
        let mut columns = start.columns.clone();
        rename(&mut columns, named)?;
        let carried = self.carried(named, &columns)?;
        let count = carried.columns.len();
        let step = if count > 0 { &self.with_carried(named, &carried, right)? } else { right };
        columns.extend(carried.columns.iter().cloned());
        self.named[place].state =
            CteState::Recursive { columns, carried: count, read: false, refused: None };
        let mut step = self.bind_query(step, false)?;
        let own = step.columns.len().saturating_sub(count);
        let (more, places) = (step.columns.split_off(own), step.positions.split_off(own));
        let types = self.recursive_types(named, &start, &step)?;
        if !*all {
            let columns = (0..types.len()).map(|index| start.typed(index));
            columns.into_iter().try_for_each(|column| check_equality(&column))?;
        }
        step.columns.extend(more);
        step.positions.extend(places);
        let (mut columns, mut positions) = (start.columns.clone(), start.positions.clone());
        let mut start = start.plan;
        let wanted: Vec<SqlType> = types
            .iter()
            .cloned()
            .chain(carried.columns.iter().map(|one| one.sql_type.clone()))
            .collect();
        let mut step = self.convert(step, &wanted, CastContext::Implicit)?;
        if count > 0 {
            start = self.first_carried(&carried, start, &types);
            step = self.next_carried(&carried, step, &types)?;
            positions.resize(positions.len() + count, named.name.position);
            columns.extend(carried.columns);
        }
        let (start, step) = (Box::new(start), Box::new(step));
        let id = self.named[place].id;
        let name = named.name.value.clone();
        let mut plan = Logical::RecursiveUnion(RecursiveUnion { id, name, all: *all, start, step });
        if let Some(with) = with {
            plan = self.close_with(with, plan);
        }
        Ok(BoundQuery { plan, columns, positions })
    }

    /// Returns the column types of a recursive query: those of the first term, which the recursive
    /// term must match.
    fn recursive_types(
        &self,
        named: &NamedQuery,
        start: &BoundQuery,
        step: &BoundQuery,
    ) -> Result<Vec<SqlType>> {
        if start.columns.len() != step.columns.len() {
            let position = step.positions.first().copied().unwrap_or(1);
            bail!(SYNTAX_ERROR: "each UNION query must have the same number of columns"; at position);
        }
        let mut types = Vec::new();
        for (index, column) in start.columns.iter().enumerate() {
            let found = &column.sql_type;
            let common = common_type(&[start.typed(index), step.typed(index)], "UNION")?;
            let other = &step.columns[index].sql_type;
            let same_modifier = other.base != found.base || found.modifier == -1 || other == found;
            if common != found.base || !same_modifier {
                let error = wrong_type(named, index, found, &common.into());
                return Err(error.at(start.positions[index]));
            }
            types.push(SqlType::from(&found.base));
        }
        Ok(types)
    }
}

fn wrong_type(named: &NamedQuery, index: usize, found: &SqlType, overall: &SqlType) -> Error {
    err!(DATATYPE_MISMATCH: "recursive query \"{}\" column {} has type {} in non-recursive term but type {} overall",
        named.name.value, index + 1, type_text(found), type_text(overall);
        hint "Cast the output of the non-recursive term to the correct type.")
}

/// Returns the text of a type as `format_type` does: `numeric(10,2)`.
fn type_text(sql_type: &SqlType) -> String {
    let name = sql_type.base.sql_name();
    let modifier = sql_type.modifier - MODIFIER_BIAS;
    match sql_type.base {
        _ if modifier < 0 => name.to_owned(),
        DataType::Varchar | DataType::Char => format!("{name}({modifier})"),
        DataType::Numeric => format!("{name}({},{})", modifier >> 16, modifier & 0xffff),
        _ => name.to_owned(),
    }
}

/// Rejects ORDER BY, LIMIT and row locks in a recursive query, which is evaluated in iterations.
fn refuse_tail(query: &ast::QueryExpr, position: usize) -> Result<()> {
    let refused = [
        (!query.order_by.is_empty(), "ORDER BY"),
        (query.offset.is_some(), "OFFSET"),
        (query.limit.is_some(), "LIMIT"),
    ];
    match refused.into_iter().find(|(present, _)| *present) {
        None if !query.locking.is_empty() => {
            bail!(FEATURE_NOT_SUPPORTED: "FOR UPDATE/SHARE in a recursive query is not implemented")
        }
        None => Ok(()),
        Some((_, clause)) => {
            bail!(FEATURE_NOT_SUPPORTED: "{clause} in a recursive query is not implemented";
                hint "Use it in the query that references the recursive query."; at position)
        }
    }
}

fn rename(columns: &mut [OutputColumn], query: &NamedQuery) -> Result<()> {
    if query.columns.len() > columns.len() {
        bail!(INVALID_COLUMN_REFERENCE: "WITH query \"{}\" has {} columns available but {} columns specified",
            query.name.value, columns.len(), query.columns.len(); at query.name.position);
    }
    for (column, name) in columns.iter_mut().zip(&query.columns) {
        column.name.clone_from(&name.value);
    }
    Ok(())
}

/// Returns whether a WITH query with this number of references is inlined.
fn is_put_in(count: usize, materialized: Option<bool>, is_recursive: bool, rows: &Logical) -> bool {
    let wanted_once = materialized.map_or(count == 1, |materialized| !materialized);
    wanted_once && !is_recursive && !rows.has_effects()
}

fn not_at_the_top() -> Error {
    err!(FEATURE_NOT_SUPPORTED: "WITH clause containing a data-modifying statement must be at the top level")
}

/// Returns the output columns of a statement; `None` if it returns no rows.
fn returned_columns(bound: &BoundPlan) -> Option<Vec<OutputColumn>> {
    let returning = match bound {
        BoundPlan::Query(query) => return Some(query.columns.clone()),
        BoundPlan::Steps(steps) => return returned_columns(&steps.last),
        BoundPlan::Insert(insert) => &insert.returning,
        BoundPlan::Update(update) => &update.returning,
        BoundPlan::Delete(delete) => &delete.returning,
        BoundPlan::Merge(_) => &None,
    };
    returning.as_ref().map(|returning| returning.columns.clone())
}

fn for_each_scan_of(plan: &mut Logical, id: usize, visit: &mut dyn FnMut(&mut Logical)) {
    walk_plan(plan, &mut |node| {
        if matches!(node, Logical::CteScan(scan) if scan.id == id && !scan.is_work_table) {
            visit(node);
        }
    });
}
