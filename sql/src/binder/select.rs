//! Binding of SELECT, without WITH and set operations.
//!
//! The plan, bottom up: FROM, WHERE, Aggregate, HAVING, the select list followed by hidden columns
//! for ORDER BY and row locks, DISTINCT, ORDER BY, LockRows, LIMIT, and a projection to the select
//! list if there were hidden columns.

use std::sync::Arc;

use types::expr::Expr;

use crate::ast::{
    self, NullsOrder, OrderItem, QueryExpr, Select, SelectItem, SortOrder, UnaryOperator,
};
use crate::binder::bound_query::BoundQuery;
use crate::binder::grouping::{Groups, determining_tables};
use crate::binder::grouping_sets::GroupBy;
use crate::binder::level::{
    AGGREGATE, Binder, BoundWindow, Clause, ColumnVisibility, QueryLevel, Reference, WINDOW,
};
use crate::binder::lock_marks::{
    apply_locks, has_locked, pushed_locks, refuse_padded, refuse_past,
};
use crate::binder::lock_rows::{LockedFrom, is_pulled_up};
use crate::binder::output_names::output_name;
use crate::binder::query_limits;
use crate::binder::rows::{Rows, has_subquery};
use crate::binder::set_functions::{SetColumns, calls_in};
use crate::binder::tree::{for_each_column, identity};
use crate::binder::typed::{Typed, boolean, check_equality, check_ordered};
use crate::binder::volatile_operands::varies;
use crate::binder::window::{check_names, map_windows, place_windows};
use crate::error::{Error, Result, sqlstate};
use crate::logical::{JoinKind, Logical, Origin, OutputColumn, SortKey};

/// An entry of the select list.
#[derive(Debug, Clone)]
pub(super) struct Target {
    /// Its value.
    pub(super) value: Typed,
    /// Its name.
    pub(super) name: String,
    /// The column of a relation of which it is an unchanged copy.
    pub(super) origin: Option<(Origin, usize)>,
}

impl Target {
    /// Returns its output column.
    pub(super) fn column(&self) -> OutputColumn {
        OutputColumn {
            name: self.name.clone(),
            sql_type: self.value.sql_type.clone(),
            origin: self.origin,
        }
    }
}

/// A key of ORDER BY: a target and its direction.
struct OrderByTarget {
    target: usize,
    descending: bool,
    nulls_first: bool,
}

/// The clauses of a SELECT, bound over the base row.
struct SelectClauses {
    /// The select list, then hidden keys of ORDER BY.
    targets: Vec<Target>,
    /// The number of visible ones.
    visible: usize,
    selection: Option<Expr>,
    having: Option<Expr>,
    order: Vec<OrderByTarget>,
    /// The targets that are row keys of a cursor.
    keys: Vec<usize>,
    /// True with ORDER BY.
    is_ordered: bool,
    /// True with LIMIT.
    is_limited: bool,
    group_by: GroupBy,
    distinct: Distinct,
}

/// The DISTINCT clause, by target.
#[derive(PartialEq)]
enum Distinct {
    No,
    All,
    On(Vec<usize>),
}

impl Binder<'_> {
    /// Binds a SELECT with the clauses that follow it. Unless `resolve`, the types of output
    /// columns may remain unknown.
    pub(super) fn bind_select(
        &mut self,
        select: &Select,
        query: &QueryExpr,
        resolve: bool,
    ) -> Result<BoundQuery> {
        let wants_keys = std::mem::take(&mut self.wants_keys);
        let (mut rows, scope) = match query.locking.is_empty() {
            true => self.bind_from(&select.from)?,
            false => self.bind_from(&pushed_locks(&select.from, &query.locking))?,
        };
        self.apply_hints(&mut rows.plan, &scope, &select.hints, select.position)?;
        apply_locks(&mut rows.plan, &scope, &query.locking)?;
        // With setting `as_of`, the session rejects the statement: it is read-only.
        if self.constants.search_path().as_of().is_none() {
            refuse_past(&mut rows.plan, &query.locking)?;
        }
        check_names(&select.windows)?;
        let bind = |binder: &mut Self| {
            binder.level().named_windows.clone_from(&select.windows);
            binder.bind_parts(select, query, resolve)
        };
        let (mut parts, mut level) = self.in_new_level(scope, Clause::Select, bind)?;
        let limits = self.bind_limits(query, &level.scope)?;
        let limits = Limits { ties: tie_keys(query, &parts.order), ..limits };
        let grouped = !select.group_by.is_empty()
            || !level.aggregates.is_empty()
            || !level.groupings.is_empty()
            || parts.having.is_some();
        refuse_locking(query, select, &level)?;
        if !level.aggregates.is_empty() {
            refuse_recursion(&level, &parts.targets)?;
        }
        let is_volatile = |target: &Target| varies(&target.value.expr, &level.subqueries);
        let left_to_others = is_pulled_up(query) && !parts.targets.iter().any(is_volatile);
        let mut held = None;
        if !left_to_others && has_locked(&rows.plan) {
            refuse_padded(&rows.plan, parts.selection.as_ref())?;
            held = Some(self.hold_rows(&mut rows));
        }
        if wants_keys && !grouped {
            let locks = !query.locking.is_empty();
            let keys = self.cursor_keys(&mut rows, select, (&level, held.as_ref()), locks);
            for (mut table, key) in keys {
                let shown = parts.visible + parts.keys.len();
                table.columns = (shown..shown + key.len()).collect();
                for value in key {
                    parts.keys.push(parts.targets.len());
                    parts.targets.push(Target { value, name: String::new(), origin: None });
                }
                self.cursor_tables.push(table);
            }
        }
        let positions = parts.targets[..parts.visible].iter().map(|one| one.value.position);
        let positions = positions.collect();
        let columns: Vec<OutputColumn> =
            parts.targets[..parts.visible].iter().map(Target::column).collect();
        if let Some(trace) = self.trace.as_mut().filter(|_| grouped) {
            trace.determining.extend(determining_tables(&parts.group_by, &level));
        }
        plan_select(&mut rows, parts, &mut level, (grouped, held))
            .map_err(|error| error.at(select.position))
            .map(|finish| {
                finish(&mut rows, limits);
                BoundQuery { plan: rows.plan, columns, positions }
            })
    }

    /// Binds HAVING. If it names a column that does not exist, it is bound again with the aliases
    /// of the output columns, which Phoenix accepts there.
    fn bind_having(&mut self, having: &ast::Expr, items: &[SelectItem]) -> Result<Expr> {
        let before = self.marks();
        let error = match self.bind_condition(having, Clause::Having) {
            Err(error) if error.sqlstate.as_ref() == sqlstate::UNDEFINED_COLUMN => error,
            bound => return bound,
        };
        self.restore_marks(&before);
        let alias = |item: &SelectItem| match item {
            SelectItem::Expr { expr, alias: Some(alias) } => {
                Some((alias.value.clone(), expr.clone()))
            }
            _ => None,
        };
        self.level().aliases = items.iter().filter_map(alias).collect();
        let bound = self.bind_condition(having, Clause::Having);
        self.level().aliases.clear();
        bound.map_err(|_| error)
    }

    fn bind_parts(
        &mut self,
        select: &Select,
        query: &QueryExpr,
        resolve: bool,
    ) -> Result<SelectClauses> {
        let mut targets = self.bind_items(&select.items, select.position)?;
        let visible = targets.len();
        let selection = match &select.selection {
            Some(selection) => Some(self.bind_condition(selection, Clause::Where)?),
            None => None,
        };
        let having = match &select.having {
            Some(having) => Some(self.bind_having(having, &select.items)?),
            None => None,
        };
        let mut order = self.bind_order(&query.order_by, &mut targets, visible)?;
        if select.distinct == Some(ast::Distinct::All) && targets.len() > visible {
            let position = targets[visible].value.position;
            bail!(INVALID_COLUMN_REFERENCE: "for SELECT DISTINCT, ORDER BY expressions must appear in select list"; at position);
        }
        let group_by = self.bind_group_by(select, &mut targets[..visible])?;
        let distinct = match &select.distinct {
            None => Distinct::No,
            Some(ast::Distinct::All) => Distinct::All,
            Some(ast::Distinct::On(list)) => {
                Distinct::On(self.bind_distinct_on(list, &mut targets, visible, &mut order)?)
            }
        };
        for (index, target) in targets.iter_mut().enumerate() {
            if resolve || distinct != Distinct::No || index >= visible {
                target.value = self.resolve_unknown(target.value.clone())?;
            }
            if distinct == Distinct::All {
                check_equality(&target.value)?;
            }
        }
        let is_ordered = !query.order_by.is_empty();
        let keys = Vec::new();
        let parts = SelectClauses {
            targets,
            visible,
            selection,
            having,
            order,
            keys,
            is_ordered,
            is_limited: query.limit.is_some(),
            group_by,
            distinct,
        };
        Ok(parts)
    }

    /// Binds a select or RETURNING list.
    pub(super) fn bind_items(
        &mut self,
        items: &[SelectItem],
        position: usize,
    ) -> Result<Vec<Target>> {
        let mut targets = Vec::with_capacity(items.len());
        for item in items {
            match item {
                SelectItem::Expr { expr, alias } => {
                    let value = self.bind_expr(expr)?;
                    let name =
                        alias.as_ref().map_or_else(|| output_name(expr), |one| one.value.clone());
                    let origin = self.origin(expr, &value);
                    targets.push(Target { value, name, origin });
                }
                SelectItem::Fields { row, position } => {
                    let fields = self.bind_fields(row, *position)?;
                    let target = |(name, value): (Arc<str>, Typed)| Target {
                        value,
                        name: name.to_string(),
                        origin: None,
                    };
                    targets.extend(fields.into_iter().map(target));
                }
                SelectItem::Wildcard { qualifier, position: at } => {
                    self.expand(qualifier, if *at == 0 { position } else { *at }, &mut targets)?;
                }
            }
            query_limits::check_entries(targets.len())?;
        }
        Ok(targets)
    }

    fn origin(&self, expr: &ast::Expr, value: &Typed) -> Option<(Origin, usize)> {
        let ast::Expr::Column(parts) = expr else { return None };
        if !matches!(value.expr, Expr::Column { .. }) {
            return None;
        }
        self.levels.last()?.scope.find(parts).ok()??.origin
    }

    fn expand(
        &mut self,
        qualifier: &[ast::Ident],
        position: usize,
        targets: &mut Vec<Target>,
    ) -> Result<()> {
        let scope = &self.level().scope;
        let columns: Vec<_> = if qualifier.is_empty() {
            if scope.relations.is_empty() {
                bail!(SYNTAX_ERROR: "SELECT * with no tables specified is not valid"; at position);
            }
            scope.columns().into_iter().cloned().collect()
        } else {
            match scope.star(qualifier).map_err(|error| error.at(position))? {
                Some(columns) => columns,
                None => return self.expand_outer(qualifier, position, targets),
            }
        };
        self.note_star(position, &columns);
        for column in columns {
            let references = &mut self.level().references;
            for_each_column(&column.expr, &mut |index| {
                references.push(Reference { index, position, from_subquery: false });
            });
            let value = Typed { expr: column.expr, sql_type: column.sql_type.clone(), position };
            targets.push(Target { value, name: column.name, origin: column.origin });
        }
        Ok(())
    }

    /// Expands `t.*` for a relation, or a family of one, of an enclosing query level.
    fn expand_outer(
        &mut self,
        qualifier: &[ast::Ident],
        position: usize,
        targets: &mut Vec<Target>,
    ) -> Result<()> {
        let mut found = None;
        for (depth, level) in self.levels.iter().enumerate().rev() {
            if level.reach != ColumnVisibility::Hidden && found.is_none() {
                let columns = level.scope.star(qualifier).map_err(|error| error.at(position))?;
                found = columns.map(|columns| (depth, columns));
            }
        }
        let Some((depth, columns)) = found else {
            if let Some(fields) = self.variable_fields(qualifier)? {
                let target = |(name, value): (Arc<str>, Typed)| Target {
                    value,
                    name: name.to_string(),
                    origin: None,
                };
                targets.extend(fields.into_iter().map(target));
                return Ok(());
            }
            return Err(self.no_relation(qualifier).at(position));
        };
        if let Some(barred) = self.levels[depth].barred {
            return Err(self.barred(depth, qualifier, barred, None).at(position));
        }
        self.note_star(position, &columns);
        for column in columns {
            let (name, origin) = (column.name.clone(), column.origin);
            let value = self.reference(depth, column, position);
            targets.push(Target { value, name, origin });
        }
        Ok(())
    }

    /// Returns the target for an entry of ORDER BY or DISTINCT ON, which may be a new hidden one.
    fn bind_sorted(
        &mut self,
        expr: &ast::Expr,
        targets: &mut Vec<Target>,
        visible: usize,
    ) -> Result<usize> {
        let clause = self.level().clause.name();
        let target = match named_target(expr, &targets[..visible], clause)? {
            Some(target) => target,
            None => {
                let value = self.bind_expr(expr)?;
                let same = |target: &Target| target.value.expr == value.expr;
                targets.iter().position(same).unwrap_or_else(|| {
                    targets.push(Target { value, name: String::new(), origin: None });
                    targets.len() - 1
                })
            }
        };
        targets[target].value = self.resolve_unknown(targets[target].value.clone())?;
        check_ordered(&targets[target].value)?;
        Ok(target)
    }

    /// Binds DISTINCT ON. Its keys must lead ORDER BY; missing ones are appended to it.
    fn bind_distinct_on(
        &mut self,
        list: &[ast::Expr],
        targets: &mut Vec<Target>,
        visible: usize,
        order: &mut Vec<OrderByTarget>,
    ) -> Result<Vec<usize>> {
        self.level().clause = Clause::DistinctOn;
        let mut on = Vec::new();
        let mut positions = Vec::new();
        for expr in list {
            let target = self.bind_sorted(expr, targets, visible)?;
            if !on.contains(&target) {
                on.push(target);
                positions.push(expr.position());
            }
        }
        let leading = order.iter().take_while(|key| on.contains(&key.target)).count();
        let ordered = |target: usize| order[..leading].iter().any(|key| key.target == target);
        let late = on.iter().position(|&target| !ordered(target));
        if let (Some(late), true) = (late, leading < order.len()) {
            bail!(INVALID_COLUMN_REFERENCE: "SELECT DISTINCT ON expressions must match initial ORDER BY expressions";
                at positions[late]);
        }
        let rest: Vec<usize> = on.iter().copied().filter(|&target| !ordered(target)).collect();
        let key = |target| OrderByTarget { target, descending: false, nulls_first: false };
        order.extend(rest.into_iter().map(key));
        Ok(on)
    }

    fn bind_order(
        &mut self,
        items: &[OrderItem],
        targets: &mut Vec<Target>,
        visible: usize,
    ) -> Result<Vec<OrderByTarget>> {
        self.level().clause = Clause::OrderBy;
        let mut order = Vec::new();
        for item in items {
            let target = self.bind_sorted(&item.expr, targets, visible)?;
            query_limits::check_entries(targets.len())?;
            let (descending, nulls_first) = direction(item);
            order.push(OrderByTarget { target, descending, nulls_first });
        }
        Ok(order)
    }
}

fn is_aggregate(index: usize) -> bool {
    (AGGREGATE..WINDOW).contains(&index)
}

/// Returns the direction of a sort key: descending, and NULLs first.
pub(super) fn direction(item: &OrderItem) -> (bool, bool) {
    let descending = item.order == SortOrder::Descending;
    let nulls_first = item.nulls.map_or(descending, |nulls| nulls == NullsOrder::First);
    (descending, nulls_first)
}

/// Returns the target for an ordinal or the name of an output column.
pub(super) fn named_target(
    expr: &ast::Expr,
    targets: &[Target],
    clause: &str,
) -> Result<Option<usize>> {
    match expr {
        // A negative number is a constant, too.
        ast::Expr::Unary { operator: UnaryOperator::Minus, operand, position }
            if let ast::Expr::Number { text, .. } = operand.as_ref() =>
        {
            let (code, message) = match text.parse::<i32>() {
                Ok(ordinal) => {
                    let message = format!("{clause} position {} is not in select list", -ordinal);
                    (sqlstate::INVALID_COLUMN_REFERENCE, message)
                }
                Err(_) => (sqlstate::SYNTAX_ERROR, format!("non-integer constant in {clause}")),
            };
            Err(Error::new(code, message).at(*position))
        }
        ast::Expr::Number { text, position } => {
            let Ok(ordinal) = text.parse::<usize>() else {
                bail!(SYNTAX_ERROR: "non-integer constant in {clause}"; at *position);
            };
            if ordinal == 0 || ordinal > targets.len() {
                bail!(INVALID_COLUMN_REFERENCE: "{clause} position {ordinal} is not in select list"; at *position);
            }
            Ok(Some(ordinal - 1))
        }
        ast::Expr::String { position, .. }
        | ast::Expr::Boolean { position, .. }
        | ast::Expr::Null { position } => {
            bail!(SYNTAX_ERROR: "non-integer constant in {clause}"; at *position)
        }
        ast::Expr::Column(parts) => {
            let [name] = parts.as_slice() else { return Ok(None) };
            let mut found: Option<usize> = None;
            for (index, target) in targets.iter().enumerate() {
                if target.name != name.value {
                    continue;
                }
                match found {
                    Some(first) if targets[first].value.expr != target.value.expr => {
                        bail!(AMBIGUOUS_COLUMN: "{clause} \"{}\" is ambiguous", name.value; at name.position);
                    }
                    Some(_) => {}
                    None => found = Some(index),
                }
            }
            Ok(found)
        }
        _ => Ok(None),
    }
}

/// Rejects aggregates in a recursive term, because each iteration has only a part of the rows.
fn refuse_recursion(level: &QueryLevel, targets: &[Target]) -> Result<()> {
    if !level.scope.relations.iter().any(|relation| relation.is_work_table) {
        return Ok(());
    }
    let error = err!(INVALID_RECURSION: "aggregate functions are not allowed in a recursive query's recursive term");
    let aggregated = |target: &&Target| {
        let mut found = false;
        for_each_column(&target.value.expr, &mut |index| found |= is_aggregate(index));
        found
    };
    Err(match targets.iter().find(aggregated) {
        Some(target) => error.at(target.value.position),
        None => error,
    })
}

/// Rejects row-locking clauses in queries whose result rows are not rows of tables.
fn refuse_locking(query: &QueryExpr, select: &Select, level: &QueryLevel) -> Result<()> {
    let Some(locking) = query.locking.first() else { return Ok(()) };
    let what = if select.distinct.is_some() {
        "DISTINCT clause"
    } else if !select.group_by.is_empty() {
        "GROUP BY clause"
    } else if select.having.is_some() {
        "HAVING clause"
    } else if !level.aggregates.is_empty() {
        "aggregate functions"
    } else if !level.window_calls.is_empty() {
        "window functions"
    } else if !level.set_uses.is_empty() {
        "set-returning functions in the target list"
    } else {
        return Ok(());
    };
    let strength = locking.strength.clause();
    bail!(FEATURE_NOT_SUPPORTED: "{strength} is not allowed with {what}")
}

/// The LIMIT and OFFSET of a query.
pub(super) struct Limits {
    /// LIMIT.
    pub(super) limit: Option<Expr>,
    /// OFFSET.
    pub(super) offset: Option<Expr>,
    /// The columns that WITH TIES compares.
    pub(super) ties: Vec<usize>,
    /// A one-row plan, and values of it that are parameters of LIMIT and OFFSET, for subqueries in
    /// them.
    pub(super) computed: Option<(Rows, Vec<(usize, Expr)>)>,
}

/// Returns the keys that WITH TIES compares: those of the ORDER BY clause as written.
fn tie_keys(query: &QueryExpr, order: &[OrderByTarget]) -> Vec<usize> {
    let keys = if query.with_ties { query.order_by.len() } else { 0 };
    order.iter().take(keys).map(|key| key.target).collect()
}

/// Builds the plan up to the select list and returns a function that adds the nodes above it.
fn plan_select(
    rows: &mut Rows,
    mut parts: SelectClauses,
    level: &mut QueryLevel,
    (grouped, mut held): (bool, Option<LockedFrom>),
) -> Result<impl FnOnce(&mut Rows, Limits) + use<>> {
    if let Some(selection) = parts.selection.take() {
        rows.filter(selection, &level.subqueries);
    }
    let mut sets = SetColumns::default();
    if grouped {
        let wanted: Vec<usize> = parts.group_by.keys.iter().flat_map(calls_in).collect();
        level.place_sets(rows, &mut sets, &wanted);
        let group_by = std::mem::take(&mut parts.group_by);
        let of_target = group_by.targets.clone();
        let mut groups = Groups::new(rows, group_by, level, &sets)?;
        groups.check_direct_arguments(level)?;
        // Values below the Aggregate node are not available above it.
        sets = SetColumns::default();
        for (at, target) in parts.targets.iter_mut().enumerate() {
            let expr = &mut target.value.expr;
            match of_target.iter().find(|(target, _)| *target == at) {
                Some(&(_, index)) => {
                    *expr = Expr::Column { index, data_type: expr.data_type().clone() }
                }
                None => groups.map(expr, level)?,
            }
        }
        groups.map_windows(level)?;
        groups.map_sets(level)?;
        if let Some(mut having) = parts.having.take() {
            groups.map(&mut having, level)?;
            rows.filter(having, &level.subqueries);
        }
    }
    let keys = level.windows.iter().flat_map(BoundWindow::expressions);
    let wanted: Vec<usize> = keys.flat_map(calls_in).collect();
    level.place_sets(rows, &mut sets, &wanted);
    for expr in level.windows.iter_mut().flat_map(BoundWindow::expressions_mut) {
        sets.map(expr);
    }
    let places = place_windows(rows, level);
    let arguments = level.set_uses.iter_mut().flat_map(|set| set.function.arguments_mut());
    for expr in arguments.chain(parts.targets.iter_mut().map(|target| &mut target.value.expr)) {
        map_windows(expr, &places);
    }
    let order = place_target_sets(rows, &mut parts, level, &mut sets);
    let targets = parts.targets.into_iter();
    let mut expressions: Vec<Expr> =
        targets.map(|target| rows.place(target.value.expr, &level.subqueries)).collect();
    if let Some(held) = &mut held {
        held.add_columns(&mut expressions, &rows.types);
    }
    rows.project(expressions);
    let (visible, distinct, keys_at) = (parts.visible, parts.distinct, parts.keys);
    Ok(move |rows: &mut Rows, limits: Limits| {
        if distinct == Distinct::All {
            rows.over(|input| Logical::Distinct { input, on: Vec::new() });
        }
        let keys: Vec<SortKey> = order.iter().map(|key| sort_key(key, &rows.types)).collect();
        if !keys.is_empty() {
            rows.over(|input| Logical::Sort { input, keys });
        }
        if let Distinct::On(targets) = distinct {
            let on = columns_at(&targets, &rows.types);
            rows.over(|input| Logical::Distinct { input, on });
        }
        if let Some(held) = held {
            rows.over(|input| held.over(input));
        }
        limit_rows(rows, limits);
        if rows.types.len() > visible {
            let mut columns = identity(&rows.types[..visible]);
            columns.extend(columns_at(&keys_at, &rows.types));
            rows.project(columns);
        }
    })
}

/// Adds the set-returning functions of the select list. Rows are sorted, and DISTINCT ON removes
/// duplicates, before these functions, before volatile expressions, and, if LIMIT needs few rows,
/// before subqueries, unless a sort key depends on them; returns the part of the order that
/// remains.
fn place_target_sets(
    rows: &mut Rows,
    parts: &mut SelectClauses,
    level: &QueryLevel,
    sets: &mut SetColumns,
) -> Vec<OrderByTarget> {
    let mut order = std::mem::take(&mut parts.order);
    let calls = parts.targets.iter().flat_map(|target| calls_in(&target.value.expr));
    let wanted: Vec<usize> = calls.collect();
    let is_late = |(at, target): (usize, &Target)| {
        let expr = &target.value.expr;
        let costs = varies(expr, &level.subqueries) || (parts.is_limited && has_subquery(expr));
        costs && order.iter().all(|key| key.target != at)
    };
    if wanted.is_empty() && !parts.targets.iter().enumerate().any(is_late) {
        return order;
    }
    let is_early = |key: &OrderByTarget| {
        let expr = &parts.targets[key.target].value.expr;
        calls_in(expr).is_empty() && !varies(expr, &level.subqueries)
    };
    let is_fit = match &parts.distinct {
        Distinct::No => true,
        Distinct::All => false,
        Distinct::On(_) => parts.is_ordered,
    };
    if is_fit && order.iter().all(is_early) {
        let mut keys = Vec::with_capacity(order.len());
        for OrderByTarget { target, descending, nulls_first } in order.drain(..) {
            let expression = parts.targets[target].value.expr.clone();
            let expression = rows.place(expression, &level.subqueries);
            keys.push(SortKey { expression, descending, nulls_first });
        }
        if !keys.is_empty() {
            rows.over(|input| Logical::Sort { input, keys });
        }
        if let Distinct::On(targets) = std::mem::replace(&mut parts.distinct, Distinct::No) {
            let on = targets.into_iter().map(|target| {
                let expression = parts.targets[target].value.expr.clone();
                rows.place(expression, &level.subqueries)
            });
            let on = on.collect();
            rows.over(|input| Logical::Distinct { input, on });
        }
    }
    level.place_sets(rows, sets, &wanted);
    for target in &mut parts.targets {
        sets.map(&mut target.value.expr);
    }
    order
}

fn sort_key(key: &OrderByTarget, types: &[types::DataType]) -> SortKey {
    SortKey {
        expression: Expr::Column { index: key.target, data_type: types[key.target].clone() },
        descending: key.descending,
        nulls_first: key.nulls_first,
    }
}

/// Adds LIMIT and OFFSET above rows.
pub(super) fn limit_rows(rows: &mut Rows, limits: Limits) {
    let Limits { limit, offset, ties, computed } = limits;
    if limit.is_some() || offset.is_some() {
        let ties = columns_at(&ties, &rows.types);
        rows.over(|input| Logical::Limit { input, limit, offset, ties });
    }
    if let Some((mut row, bindings)) = computed {
        let bindings = row.bind(bindings);
        let width = row.types.len();
        let limited = std::mem::replace(rows, row);
        rows.join_lateral(limited, JoinKind::Inner, boolean(true), bindings);
        rows.project(identity(&rows.types).split_off(width));
    }
}

fn columns_at(columns: &[usize], types: &[types::DataType]) -> Vec<Expr> {
    let column = |&index: &usize| Expr::Column { index, data_type: types[index].clone() };
    columns.iter().map(column).collect()
}
