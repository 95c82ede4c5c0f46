//! Binding of window functions: calls with OVER, window definitions, and the Window nodes.
//!
//! A call becomes a placeholder column from [`WINDOW`] on. The Window nodes are above grouping and
//! HAVING, one for each pair of partitioning and order. A window whose sort order is a prefix of
//! another one's is placed directly above that, so that one sort serves both.
//!
//! Source: PostgreSQL's `transformWindowFuncCall` and `transformWindowDefinitions` (parse_agg.c,
//! parse_clause.c).

use types::aggregate::AggregateKind;
use types::cast::CastContext;
use types::expr::Expr;
use types::{DataType, SqlType};

use crate::ast::{self, FunctionCall, Ident, Over};
use crate::binder::arrays::internal;
use crate::binder::guard::Guard;
use crate::binder::level::{Binder, BoundWindow, Clause, QueryLevel, WINDOW, WindowCall};
use crate::binder::polymorphic::undetermined;
use crate::binder::query_limits;
use crate::binder::rows::Rows;
use crate::binder::select::direction;
use crate::binder::tree::map_columns;
use crate::binder::typed::{Typed, can_coerce, check_equality, check_ordered};
use crate::error::{Error, Result};
use crate::logical::{
    Frame, FrameBound, FrameUnits, Logical, RangeFrameBound, SortKey, Window, WindowFunction,
    WindowKind,
};

/// A window definition of an OVER clause, with the inherited clauses.
struct Definition {
    partition_by: Vec<ast::Expr>,
    order_by: Vec<ast::OrderItem>,
    frame: Option<ast::FrameClause>,
    /// The position of its opening parenthesis.
    position: usize,
}

/// Returns the window function of this name.
fn kind_of(name: &str) -> Option<WindowKind> {
    Some(match name {
        "row_number" => WindowKind::RowNumber,
        "rank" => WindowKind::Rank,
        "dense_rank" => WindowKind::DenseRank,
        "percent_rank" => WindowKind::PercentRank,
        "cume_dist" => WindowKind::CumeDist,
        "ntile" => WindowKind::Ntile,
        "lag" => WindowKind::Lag,
        "lead" => WindowKind::Lead,
        "first_value" => WindowKind::FirstValue,
        "last_value" => WindowKind::LastValue,
        "nth_value" => WindowKind::NthValue,
        _ => return None,
    })
}

/// Returns whether a function of this name needs OVER.
pub(super) fn is_window_function(name: &str) -> bool {
    kind_of(name).is_some()
}

/// Returns the parameter types of a window function for these arguments; `None` if no window
/// function of this name accepts them.
pub(super) fn window_function_takes(name: &str, types: &[DataType]) -> Option<Vec<DataType>> {
    let any = |counts: usize| {
        let mut wanted = vec![DataType::AnyElement; types.len()];
        wanted.iter_mut().skip(1).take(counts).for_each(|count| *count = DataType::Int4);
        wanted
    };
    match (kind_of(name)?, types.len()) {
        (WindowKind::Ntile, 1) => Some(vec![DataType::Int4]),
        (WindowKind::FirstValue | WindowKind::LastValue, 1) => Some(any(0)),
        (WindowKind::NthValue, 2) | (WindowKind::Lag | WindowKind::Lead, 1..=3) => Some(any(1)),
        (
            WindowKind::RowNumber
            | WindowKind::Rank
            | WindowKind::DenseRank
            | WindowKind::PercentRank
            | WindowKind::CumeDist,
            0,
        ) => Some(Vec::new()),
        _ => None,
    }
}

fn windowing_error(message: impl Into<String>) -> Error {
    err!(WINDOWING_ERROR: message.into())
}

/// Returns the error for a window function in a clause that does not allow it.
pub(super) fn window_not_allowed(clause: Clause) -> Error {
    windowing_error(format!("window functions are not allowed in {}", clause.name()))
}

impl Binder<'_> {
    /// Binds a call with OVER.
    pub(super) fn bind_window_call(
        &mut self,
        call: &FunctionCall,
        over: &Over,
        position: usize,
    ) -> Result<Typed> {
        let name = call.name.name.value.as_str();
        self.check_window_place(position)?;
        let is_aggregate = AggregateKind::from_name(name).is_some();
        let kind = kind_of(name);
        if !is_aggregate && kind.is_none() {
            bail!(WRONG_OBJECT_TYPE: "OVER specified, but {name} is not a window function nor an aggregate function";
                at position);
        }
        if call.within_group {
            bail!(FEATURE_NOT_SUPPORTED: "OVER is not supported for ordered-set aggregate {name}"; at position);
        }
        let refused = [
            (call.distinct, "DISTINCT is not implemented for window functions"),
            (
                !call.order_by.is_empty(),
                "aggregate ORDER BY is not implemented for window functions",
            ),
            (
                call.filter.is_some() && !is_aggregate,
                "FILTER is not implemented for non-aggregate window functions",
            ),
        ];
        if let Some((_, message)) = refused.into_iter().find(|(present, _)| *present) {
            bail!(FEATURE_NOT_SUPPORTED: message; at position);
        }
        self.level().in_window = Some("window function calls cannot be nested");
        let bound = match kind {
            Some(kind) => self.bind_window_function(kind, call, position),
            None => self.resolve_aggregate(name, call, position).map(|(aggregate, sql_type)| {
                (WindowKind::Aggregate(aggregate), Vec::new(), sql_type)
            }),
        };
        self.level().in_window = None;
        let (kind, arguments, sql_type) = bound?;
        self.level().in_window = Some("window functions are not allowed in window definitions");
        let window = self.bind_window(over);
        self.level().in_window = None;
        let (window, frame) = window?;
        let function = WindowFunction { kind, arguments, frame, data_type: sql_type.base.clone() };
        Ok(Typed { expr: self.add_window_call(window, function)?, sql_type, position })
    }

    fn check_window_place(&mut self, position: usize) -> Result<()> {
        let level = self.level();
        if level.in_aggregate {
            bail!(GROUPING_ERROR: "aggregate function calls cannot contain window function calls"; at position);
        }
        if let Some(message) = level.in_window {
            return Err(windowing_error(message).at(position));
        }
        if !level.clause.allows_windows() {
            return Err(window_not_allowed(level.clause).at(position));
        }
        Ok(())
    }

    fn add_window_call(&mut self, window: BoundWindow, function: WindowFunction) -> Result<Expr> {
        let data_type = &function.data_type.clone();
        let level = self.level();
        let place = level.windows.iter().position(|other| *other == window);
        let window = place.unwrap_or_else(|| {
            level.windows.push(window);
            level.windows.len() - 1
        });
        query_limits::check_count(level.windows.len())?;
        let call = WindowCall { window, function };
        let place = level.window_calls.iter().position(|other| *other == call);
        let index = place.unwrap_or_else(|| {
            level.window_calls.push(call);
            level.window_calls.len() - 1
        });
        Ok(Expr::Column { index: WINDOW + index, data_type: data_type.clone() })
    }

    /// Binds a call of a window function other than an aggregate.
    fn bind_window_function(
        &mut self,
        kind: WindowKind,
        call: &FunctionCall,
        position: usize,
    ) -> Result<(WindowKind, Vec<Expr>, SqlType)> {
        let name = call.name.name.value.as_str();
        let arguments = call.arguments.iter().map(|argument| self.bind_expr(&argument.value));
        let mut arguments = arguments.collect::<Result<Vec<Typed>>>()?;
        let types: Vec<DataType> = arguments.iter().map(Typed::base).cloned().collect();
        let no_function = || {
            let types: Vec<&str> = types.iter().map(|one| one.sql_name()).collect();
            err!(UNDEFINED_FUNCTION: "function {name}({}) does not exist", types.join(", ");
                hint "No function matches the given name and argument types. You might need to add explicit type casts.";
                at position)
        };
        let (least, most) = match kind {
            WindowKind::Ntile | WindowKind::FirstValue | WindowKind::LastValue => (1, 1),
            WindowKind::NthValue => (2, 2),
            WindowKind::Lag | WindowKind::Lead => (1, 3),
            _ => (0, 0),
        };
        if call.star || !(least..=most).contains(&arguments.len()) {
            return Err(no_function());
        }
        let counts = if matches!(kind, WindowKind::Ntile) { 0 } else { 1 };
        if types.get(counts).is_some_and(|given| !can_coerce(given, &DataType::Int4)) {
            return Err(no_function());
        }
        let fixed = match kind {
            WindowKind::RowNumber | WindowKind::Rank | WindowKind::DenseRank => DataType::Int8,
            WindowKind::PercentRank | WindowKind::CumeDist => DataType::Float8,
            WindowKind::Ntile => {
                let count = self.implicit(arguments.remove(0), DataType::Int4)?;
                return Ok((kind, vec![count], DataType::Int4.into()));
            }
            _ => {
                let (arguments, sql_type) = self.bind_value_arguments(arguments)?;
                return Ok((kind, arguments, sql_type));
            }
        };
        Ok((kind, Vec::new(), fixed.into()))
    }

    /// Binds `value [, integer [, default]]`; value and default have a common type.
    fn bind_value_arguments(&mut self, arguments: Vec<Typed>) -> Result<(Vec<Expr>, SqlType)> {
        let mut rest = arguments.into_iter();
        let (value, count, default) = (rest.next(), rest.next(), rest.next());
        if let (Some(value), None) = (&value, &default)
            && value.is_unknown()
        {
            return Err(undetermined());
        }
        let values: Vec<Typed> = value.into_iter().chain(default).collect();
        let (values, sql_type) = self.unify(values, "window function")?;
        let count = count.map(|count| self.implicit(count, DataType::Int4)).transpose()?;
        let mut values = values.into_iter();
        Ok((values.next().into_iter().chain(count).chain(values).collect(), sql_type))
    }

    fn bind_window(&mut self, over: &Over) -> Result<(BoundWindow, Frame)> {
        let definition = match over {
            Over::Name(name) => self.named_window(name, name.position)?,
            Over::Window(window) => self.definition_of(window, Some(window), 0)?,
        };
        let mut partition_by = Vec::new();
        for expr in &definition.partition_by {
            let value = self.bind_expr(expr)?;
            let value = self.resolve_unknown(value)?;
            check_equality(&value)?;
            let key = value.expr;
            if !partition_by.contains(&key) {
                partition_by.push(key);
            }
        }
        let mut order_by: Vec<SortKey> = Vec::new();
        let mut first: Option<Typed> = None;
        for item in &definition.order_by {
            let value = self.bind_expr(&item.expr)?;
            let value = self.resolve_unknown(value)?;
            check_ordered(&value)?;
            let (descending, nulls_first) = direction(item);
            first.get_or_insert_with(|| value.clone());
            if !order_by.iter().any(|key| key.expression == value.expr) {
                order_by.push(SortKey { expression: value.expr, descending, nulls_first });
            }
        }
        let frame = match &definition.frame {
            None => Frame::default(),
            Some(frame) => {
                let order = (first, definition.order_by.len(), order_by.first());
                let position = definition.position;
                self.bind_frame(frame, order).map_err(|error| match error.position {
                    Some(_) => error,
                    None => error.at(position),
                })?
            }
        };
        Ok((BoundWindow { partition_by, order_by }, frame))
    }

    /// Returns a window of the WINDOW clause with the inherited clauses.
    fn named_window(&self, name: &Ident, position: usize) -> Result<Definition> {
        let windows = self.levels.last().map_or(&[] as &[_], |level| &level.named_windows);
        let place = windows.iter().position(|window| window.name.value == name.value);
        let place = place.ok_or_else(
            || err!(UNDEFINED_OBJECT: "window \"{}\" does not exist", name.value; at position),
        )?;
        self.definition_of(&windows[place].window, None, windows.len() - place)
    }

    /// Returns a window with the clauses inherited from its base, which must precede it: all
    /// windows of the WINDOW clause except the last `hidden` ones are visible.
    fn definition_of(
        &self,
        window: &ast::WindowClause,
        over: Option<&ast::WindowClause>,
        hidden: usize,
    ) -> Result<Definition> {
        let own = Definition {
            partition_by: window.partition_by.clone(),
            order_by: window.order_by.clone(),
            frame: window.frame.clone(),
            position: window.position,
        };
        let Some(base) = &window.base else { return Ok(own) };
        let windows = self.levels.last().map_or(&[] as &[_], |level| &level.named_windows);
        let visible = &windows[..windows.len() - hidden];
        let Some(place) = visible.iter().position(|other| other.name.value == base.value) else {
            bail!(UNDEFINED_OBJECT: "window \"{}\" does not exist", base.value; at base.position);
        };
        let hidden = windows.len() - place;
        let inherited = self.definition_of(&windows[place].window, None, hidden)?;
        let name = &base.value;
        if !own.partition_by.is_empty() {
            let message = format!("cannot override PARTITION BY clause of window \"{name}\"");
            return Err(windowing_error(message).at(base.position));
        }
        if !own.order_by.is_empty() && !inherited.order_by.is_empty() {
            let message = format!("cannot override ORDER BY clause of window \"{name}\"");
            return Err(windowing_error(message).at(base.position));
        }
        if inherited.frame.is_some() {
            let message = format!("cannot copy window \"{name}\" because it has a frame clause");
            let error = windowing_error(message).at(base.position);
            let bare = over.is_some() && own.order_by.is_empty() && own.frame.is_none();
            return Err(match bare {
                true => error.with_hint("Omit the parentheses in this OVER clause."),
                false => error,
            });
        }
        let order_by = if own.order_by.is_empty() { inherited.order_by } else { own.order_by };
        Ok(Definition { partition_by: inherited.partition_by, order_by, ..own })
    }

    fn bind_frame(
        &mut self,
        frame: &ast::FrameClause,
        (first, key_count, key): (Option<Typed>, usize, Option<&SortKey>),
    ) -> Result<Frame> {
        let units = frame.units;
        let clause = units_name(units);
        if units == FrameUnits::Groups && key_count == 0 {
            return Err(windowing_error("GROUPS mode requires an ORDER BY clause"));
        }
        let key = match (first, key_count, key) {
            (Some(value), 1, Some(key)) => Some((value, key.descending)),
            _ => None,
        };
        let has_offset = [&frame.start, &frame.end].into_iter().any(|bound| {
            matches!(
                bound,
                ast::FrameBoundClause::Preceding(_) | ast::FrameBoundClause::Following(_)
            )
        });
        if units == FrameUnits::Range && has_offset && key.is_none() {
            let message =
                "RANGE with offset PRECEDING/FOLLOWING requires exactly one ORDER BY column";
            return Err(windowing_error(message));
        }
        let mut bound = |bound: &ast::FrameBoundClause| -> Result<FrameBound> {
            let (offset, following) = match bound {
                ast::FrameBoundClause::UnboundedPreceding => {
                    return Ok(FrameBound::UnboundedPreceding);
                }
                ast::FrameBoundClause::CurrentRow => return Ok(FrameBound::CurrentRow),
                ast::FrameBoundClause::UnboundedFollowing => {
                    return Ok(FrameBound::UnboundedFollowing);
                }
                ast::FrameBoundClause::Preceding(offset) => (offset, false),
                ast::FrameBoundClause::Following(offset) => (offset, true),
            };
            let offset = self.bind_offset(offset, units)?;
            let Some((key, descending)) = key.clone().filter(|_| units == FrameUnits::Range) else {
                let offset = self.row_offset(offset, clause)?;
                return Ok(FrameBound::Offset { offset, following, reach: None });
            };
            let ahead = if following != descending { "+" } else { "-" };
            let (offset, reach) = self.reach(key, ahead, offset)?;
            Ok(FrameBound::Offset { offset, following, reach: Some(reach) })
        };
        let (start, end) = (bound(&frame.start)?, bound(&frame.end)?);
        Ok(Frame { units, start, end, exclusion: frame.exclusion })
    }

    fn bind_offset(&mut self, offset: &ast::Expr, units: FrameUnits) -> Result<Typed> {
        let level = self.level();
        let known = level.references.len();
        let clause = std::mem::replace(&mut level.clause, Clause::Frame(units));
        let value = self.bind_expr(offset);
        let level = self.level();
        level.clause = clause;
        let named = level.references.get(known).map(|reference| reference.position);
        level.references.truncate(known);
        let value = value?;
        match named {
            None => Ok(value),
            Some(position) => {
                bail!(INVALID_COLUMN_REFERENCE: "argument of {} must not contain variables", units_name(units); at position)
            }
        }
    }

    fn row_offset(&mut self, offset: Typed, clause: &str) -> Result<Expr> {
        let (from, position) = (offset.base().clone(), offset.position);
        self.coerce(offset, &DataType::Int8.into(), CastContext::Assignment)?.ok_or_else(|| {
            let name = from.sql_name();
            err!(DATATYPE_MISMATCH: "argument of {clause} must be type bigint, not type {name}"; with_type_mention from;
                at position)
        })
    }

    /// Returns the offset of RANGE, and the bounds of the frame. Keys are compared in a type in
    /// which adding the offset cannot overflow where PostgreSQL's comparison would not.
    fn reach(&mut self, key: Typed, ahead: &str, offset: Typed) -> Result<(Expr, RangeFrameBound)> {
        let position = offset.position;
        let (column, given) = (key.base().clone(), offset.base().clone());
        let Some((taken, compared)) = range_types(&column) else {
            bail!(FEATURE_NOT_SUPPORTED: "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {}",
                column.sql_name(); with_type_mention column; at position);
        };
        let wanted = match taken.iter().find(|one| **one == given) {
            Some(exact) => exact,
            None if given == DataType::Unknown && taken.contains(&column) => &column,
            None => &taken[0],
        };
        if !can_coerce(&given, wanted) {
            bail!(FEATURE_NOT_SUPPORTED: "RANGE with offset PRECEDING/FOLLOWING is not supported for column type {} and offset \
                type {}", column.sql_name(), given.sql_name(); with_type_mention column; with_type_mention given;
                hint "Cast the offset value to an appropriate type."; at position);
        }
        let mut offset = self.implicit(offset, wanted)?;
        if matches!(column, DataType::Time | DataType::Timetz) {
            // The days of the interval are ignored.
            offset = internal("clock part", vec![offset], DataType::Interval);
        }
        let key = match column {
            DataType::Timetz => internal("clock place", vec![key.expr], &compared),
            _ => self.explicit(key, &compared, position)?,
        };
        let step = if column == DataType::Timetz {
            let steps = internal("clock steps", vec![offset.clone()], &compared);
            Typed::new(steps, &compared, position)
        } else if compared == DataType::Numeric || compared == DataType::Float8 {
            let step = Typed::new(offset.clone(), wanted, position);
            Typed::new(self.explicit(step, &compared, position)?, &compared, position)
        } else {
            Typed::new(offset.clone(), wanted, position)
        };
        let from = Typed::new(key.clone(), &compared, position);
        let limit = self.operator(ahead, from, step, position)?;
        let limit = self.explicit(limit, compared, position)?;
        Ok((offset, RangeFrameBound { key, limit }))
    }
}

fn units_name(units: FrameUnits) -> &'static str {
    match units {
        FrameUnits::Rows => "ROWS",
        FrameUnits::Range => "RANGE",
        FrameUnits::Groups => "GROUPS",
    }
}

/// Returns the allowed offset types of RANGE for a key type, and the type in which keys are
/// compared.
fn range_types(column: &DataType) -> Option<(&'static [DataType], DataType)> {
    const INTEGERS: &[DataType] = &[DataType::Int8, DataType::Int4, DataType::Int2];
    const BIGINT: &[DataType] = &[DataType::Int8];
    const DOUBLE: &[DataType] = &[DataType::Float8];
    const NUMERIC: &[DataType] = &[DataType::Numeric];
    const INTERVAL: &[DataType] = &[DataType::Interval];
    Some(match column {
        DataType::Int2 | DataType::Int4 => (INTEGERS, DataType::Numeric),
        DataType::Int8 => (BIGINT, DataType::Numeric),
        DataType::Float4 | DataType::Float8 => (DOUBLE, DataType::Float8),
        DataType::Numeric => (NUMERIC, DataType::Numeric),
        DataType::Date | DataType::Timestamp => (INTERVAL, DataType::Timestamp),
        DataType::Timestamptz => (INTERVAL, DataType::Timestamptz),
        DataType::Time | DataType::Interval => (INTERVAL, DataType::Interval),
        DataType::Timetz => (INTERVAL, DataType::Numeric),
        _ => return None,
    })
}

/// Rejects duplicate window names.
pub(super) fn check_names(windows: &[ast::NamedWindow]) -> Result<()> {
    for (index, window) in windows.iter().enumerate() {
        if windows[..index].iter().any(|other| other.name.value == window.name.value) {
            let message = format!("window \"{}\" is already defined", window.name.value);
            return Err(windowing_error(message).at(window.name.position));
        }
    }
    Ok(())
}

/// Adds the Window nodes of a level's calls above its rows; returns the column of each call.
pub(super) fn place_windows(rows: &mut Rows, level: &QueryLevel) -> Vec<usize> {
    let mut places = vec![0; level.window_calls.len()];
    for window in in_order(&level.windows) {
        let mut functions = Vec::new();
        let calls = level.window_calls.iter().zip(&mut places);
        for (call, place) in calls.filter(|(call, _)| call.window == window) {
            let mut function = call.function.clone();
            if let WindowKind::Aggregate(aggregate) = &mut function.kind {
                let guard = rows.place_filter(&mut aggregate.filter, &level.subqueries);
                for expr in &mut aggregate.arguments {
                    *expr = rows.place_under(expr.clone(), &guard, &level.subqueries);
                }
            }
            let mut put = |expr: &mut Expr| *expr = rows.place(expr.clone(), &level.subqueries);
            function.for_each_expression_mut(&mut put);
            *place = functions.len();
            functions.push(function);
        }
        let BoundWindow { partition_by, order_by } = &level.windows[window];
        // A volatile key is evaluated once, for sorting and for comparing.
        let put = |rows: &mut Rows, expr: &Expr| {
            let placed = rows.place(expr.clone(), &level.subqueries);
            if expr.is_volatile() { rows.settled(placed, &Guard::default()) } else { placed }
        };
        let partition_by = partition_by.iter().map(|key| put(rows, key)).collect();
        let order_by = order_by
            .iter()
            .map(|key| SortKey { expression: put(rows, &key.expression), ..key.clone() })
            .collect();
        let first = rows.types.len();
        for (call, place) in level.window_calls.iter().zip(&mut places) {
            if call.window == window {
                *place += first;
            }
        }
        rows.types.extend(functions.iter().map(|function| function.data_type.clone()));
        rows.over(|input| Logical::Window(Window { input, partition_by, order_by, functions }));
    }
    places
}

/// Replaces placeholders by the columns of the calls.
pub(super) fn map_windows(expr: &mut Expr, places: &[usize]) {
    map_columns(expr, &|index| match index.checked_sub(WINDOW) {
        Some(call) if call < places.len() => places[call],
        _ => index,
    });
}

/// Returns the windows in the order of their computation: each is followed by those whose sort
/// order is a prefix of its own.
fn in_order(windows: &[BoundWindow]) -> Vec<usize> {
    let keys: Vec<Vec<SortKey>> = windows
        .iter()
        .map(|window| crate::logical::sort_keys(&window.partition_by, &window.order_by))
        .collect();
    let mut left: Vec<usize> = (0..windows.len()).collect();
    left.sort_by_key(|window| std::cmp::Reverse(keys[*window].len()));
    let mut order = Vec::new();
    while let Some(longest) = left.first().copied() {
        // A key with a NaN is not equal to itself.
        let shares =
            |window: &usize| *window == longest || keys[longest].starts_with(&keys[*window]);
        let (shared, rest): (Vec<usize>, Vec<usize>) = left.into_iter().partition(shares);
        order.extend(shared);
        left = rest;
    }
    order
}
