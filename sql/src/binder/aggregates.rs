//! Binding of aggregate calls: overload resolution, arguments, ORDER BY, FILTER and WITHIN GROUP.
//!
//! [`calls`](crate::binder::calls) passes aggregate calls without OVER to this module. Each
//! becomes an [`Aggregate`] of the query level whose columns its arguments use; the call is
//! replaced by a reference to its result.
//!
//! Source: PostgreSQL's `ParseFuncOrColumn` (parse_func.c) and `transformAggregateCall`
//! (parse_agg.c).

use types::aggregate::{self, Aggregate, AggregateKind, HypotheticalSetFunction};
use types::expr::Expr;
use types::{DataType, SqlType};

use crate::ast::FunctionCall;
use crate::binder::calls::undefined_function;
use crate::binder::level::{
    AGGREGATE, Binder, Clause, QueryLevel, SUBQUERY, SUBQUERY_COLUMN, aggregate_not_allowed,
};
use crate::binder::polymorphic::undetermined;
use crate::binder::select::direction;
use crate::binder::tree::{for_each_expression, walk_plan};
use crate::binder::typed::{Typed, check_equality, check_ordered};
use crate::error::{Error, Result};
use crate::logical::SortKey;

/// Rejects `array_agg` over `int2vector` or `oidvector`: these have one dimension only.
fn check_gathered(name: &str, types: &[DataType]) -> Result<()> {
    let ("array_agg", [vector @ (DataType::Int2Vector | DataType::OidVector)]) = (name, types)
    else {
        return Ok(());
    };
    bail!(DATATYPE_MISMATCH: "array is not a valid {}", vector.sql_name())
}

/// Returns whether a call without OVER is an aggregate call.
pub(super) fn is_aggregate(call: &FunctionCall) -> bool {
    let name = call.name.name.value.as_str();
    AggregateKind::from_name(name).is_some()
        || (call.within_group && HypotheticalSetFunction::from_name(name).is_some())
}

impl Binder<'_> {
    /// Binds an aggregate call at the current query level.
    pub(super) fn bind_aggregate(
        &mut self,
        name: &str,
        call: &FunctionCall,
        position: usize,
    ) -> Result<Typed> {
        let before = self.marks();
        let level = self.level();
        if level.in_aggregate {
            bail!(GROUPING_ERROR: "aggregate function calls cannot be nested"; at position);
        }
        let clause = level.clause;
        level.in_aggregate = true;
        let bound = self.resolve_aggregate(name, call, position);
        self.level().in_aggregate = false;
        let (found, sql_type) = bound?;
        let direct = found.direct_arguments().len();
        if let Some(depth) = self.depth_of(found.expressions().skip(direct)) {
            if self.has_own_column(found.direct_arguments()) {
                bail!(GROUPING_ERROR: "outer-level aggregate cannot contain a lower-level variable in its direct arguments";
                    at position);
            }
            self.restore_marks(&before);
            return self
                .at_outer_level(depth, |binder| binder.bind_aggregate(name, call, position));
        }
        if !clause.allows_aggregates() {
            return Err(aggregate_not_allowed(clause).at(position));
        }
        let aggregates = &mut self.level().aggregates;
        let index = aggregates.iter().position(|other| *other == found).unwrap_or_else(|| {
            aggregates.push(found);
            aggregates.len() - 1
        });
        let expr = Expr::column(AGGREGATE + index, &sql_type.base);
        Ok(Typed { expr, sql_type, position })
    }

    /// Returns whether expressions use columns of the current query level.
    fn has_own_column(&self, expressions: &[Expr]) -> bool {
        let mut found = false;
        for expr in expressions {
            expr.walk(&mut |node| found |= matches!(node, Expr::Column { index: ..SUBQUERY, .. }));
        }
        found
    }

    /// Returns the outer query level that an aggregate or GROUPING with these arguments belongs
    /// to: the innermost level whose columns they use. `None` if they use columns of the current
    /// level, or no columns.
    pub(super) fn depth_of<'e>(
        &self,
        expressions: impl Iterator<Item = &'e Expr>,
    ) -> Option<usize> {
        let (mut local, mut outer) = (false, None);
        let taken_from = |parameter: usize| {
            let takes =
                |level: &QueryLevel| level.open_bindings.iter().any(|(of, _)| *of == parameter);
            self.levels.iter().rposition(takes)
        };
        let mut waiting: Vec<Expr> = expressions.cloned().collect();
        let subqueries = self.levels.last().map_or(&[][..], |level| &level.subqueries);
        while let Some(expr) = waiting.pop() {
            expr.walk(&mut |node| match node {
                Expr::Column { index: SUBQUERY_COLUMN.., .. } => {}
                Expr::Column { index: index @ SUBQUERY.., .. } => {
                    let subquery = &subqueries[*index - SUBQUERY];
                    subquery.for_each_taken(&mut |taken| waiting.push(taken.clone()));
                    // References of the subquery to outer levels.
                    let mut plan = subquery.plan.clone();
                    walk_plan(&mut plan, &mut |node| {
                        for_each_expression(node, &mut |expr| {
                            expr.walk(&mut |node| {
                                if let Expr::Parameter { index, .. } = node {
                                    outer = outer.max(taken_from(*index));
                                }
                            });
                        });
                    });
                }
                Expr::Column { .. } => local = true,
                Expr::Parameter { index, .. } => outer = outer.max(taken_from(*index)),
                _ => {}
            });
        }
        outer.filter(|_| !local)
    }

    /// Binds an expression that belongs to an outer query level; here its value is an outer
    /// reference.
    pub(super) fn at_outer_level(
        &mut self,
        depth: usize,
        bind: impl FnOnce(&mut Self) -> Result<Typed>,
    ) -> Result<Typed> {
        let inner = self.levels.split_off(depth + 1);
        let bound = bind(self);
        self.levels.extend(inner);
        let bound = bound?;
        let expr = self.outer_reference(depth, bound.expr, &bound.sql_type.base);
        Ok(Typed { expr, ..bound })
    }

    /// Resolves the aggregate of a call.
    pub(super) fn resolve_aggregate(
        &mut self,
        name: &str,
        call: &FunctionCall,
        position: usize,
    ) -> Result<(Aggregate, SqlType)> {
        let arguments = call.arguments.iter().map(|argument| self.bind_expr(&argument.value));
        let arguments = arguments.collect::<Result<Vec<Typed>>>()?;
        let arguments = self.labelled(name, arguments)?;
        let mut keys = Vec::new();
        for item in &call.order_by {
            keys.push((self.bind_expr(&item.expr)?, direction(item)));
        }
        let filter = self.bind_filter(call)?;
        if call.within_group {
            return self.ordered_set(name, arguments, keys, filter, position);
        }
        let types: Vec<DataType> = arguments.iter().map(Typed::base).cloned().collect();
        if types == [DataType::Unknown] && POLYMORPHIC.contains(&name) {
            return Err(undetermined());
        }
        let resolved = match (call.star, types.as_slice()) {
            (true, []) => aggregate::resolve(name, &[]),
            (false, [_, ..]) => aggregate::resolve(name, &types),
            _ => None,
        };
        let Some(found) = resolved else {
            return Err(no_aggregate(self, call, &types, position));
        };
        let value = arguments.first().map(|value| &value.sql_type);
        check_gathered(name, &types)?;
        let sql_type = self.type_of_aggregate(found.kind, &found.data_type, value);
        let written: Vec<Expr> = arguments.iter().map(|value| value.expr.clone()).collect();
        let mut bound: Vec<Typed> = Vec::new();
        for (value, taken) in arguments.into_iter().zip(found.arguments) {
            bound.push(match taken {
                DataType::Unknown if value.is_unknown() => self.of_any_type(value)?,
                taken => {
                    let position = value.position;
                    Typed::new(self.implicit(value, &taken)?, taken, position)
                }
            });
        }
        let mut order_by: Vec<SortKey> = Vec::new();
        for (value, direction) in keys {
            let value = self.resolve_unknown(value)?;
            check_ordered(&value)?;
            let mut key = value.expr;
            // An ORDER BY key that is written as an argument is that argument after its cast.
            if let Some(index) = written.iter().position(|argument| *argument == key)
                && call.distinct
            {
                key = bound[index].expr.clone();
            }
            if call.distinct && !bound.iter().any(|argument| argument.expr == key) {
                bail!(INVALID_COLUMN_REFERENCE: "in an aggregate with DISTINCT, ORDER BY expressions must appear in argument \
                    list"; at value.position);
            }
            add_key(&mut order_by, key, direction);
        }
        self.note_operands(position, name, bound.iter().map(|one| one.sql_type.clone()).collect());
        if call.distinct {
            bound.iter().try_for_each(check_equality)?;
        }
        let aggregate = Aggregate {
            kind: found.kind,
            arguments: bound.into_iter().map(|value| value.expr).collect(),
            distinct: call.distinct,
            order_by,
            filter,
            data_type: found.data_type.clone(),
        };
        Ok((aggregate, sql_type))
    }

    /// Returns the result type of an aggregate. A polymorphic aggregate retains the domain of the
    /// value.
    fn type_of_aggregate(
        &self,
        kind: AggregateKind,
        data_type: &DataType,
        value: Option<&SqlType>,
    ) -> SqlType {
        let catalog = self.catalog;
        let of_domain = value.filter(|value| value.domain.is_some());
        let polymorphic = of_domain.and_then(|value| match kind {
            AggregateKind::ArrayAgg | AggregateKind::PercentileDisc if *data_type != value.base => {
                catalog.array_of(value)
            }
            AggregateKind::Mode | AggregateKind::PercentileDisc => Some(value.clone()),
            AggregateKind::ArrayAgg | AggregateKind::Min | AggregateKind::Max => {
                Some(value.domain_array_type()).filter(|_| value.base.element().is_some())
            }
            _ => None,
        });
        polymorphic.filter(|one| one.base == *data_type).unwrap_or_else(|| data_type.into())
    }

    /// Binds an ordered-set or hypothetical-set aggregate, which has WITHIN GROUP.
    fn ordered_set(
        &mut self,
        name: &str,
        mut direct: Vec<Typed>,
        keys: Vec<(Typed, (bool, bool))>,
        filter: Option<Expr>,
        position: usize,
    ) -> Result<(Aggregate, SqlType)> {
        let types =
            |values: &[Typed]| values.iter().map(Typed::base).cloned().collect::<Vec<DataType>>();
        let (mut sorted, directions): (Vec<Typed>, Vec<_>) = keys.into_iter().unzip();
        let all = [types(&direct), types(&sorted)].concat();
        if types(&sorted) == [DataType::Unknown] && POLYMORPHIC.contains(&name) {
            return Err(undetermined());
        }
        let is_hypothetical = HypotheticalSetFunction::from_name(name).is_some();
        if is_hypothetical && direct.len() != sorted.len() {
            let hint = format!(
                "To use the hypothetical-set aggregate {name}, the number of hypothetical direct \
                 arguments (here {}) must match the number of ordering columns (here {}).",
                direct.len(),
                sorted.len()
            );
            return Err(undefined_function(&self.call_text(name, &all), position).with_hint(hint));
        }
        if is_hypothetical {
            for (direct, sorted) in direct.iter_mut().zip(&mut sorted) {
                let positions = (direct.position, sorted.position);
                let pair = vec![sorted.clone(), direct.clone()];
                let (pair, sql_type) = self.unify(pair, "WITHIN GROUP")?;
                let mut pair = pair.into_iter();
                let mut next = |position| {
                    let expr = pair.next()?;
                    Some(Typed { expr, sql_type: (&sql_type.base).into(), position })
                };
                if let (Some(first), Some(second)) = (next(positions.1), next(positions.0)) {
                    (*sorted, *direct) = (first, second);
                }
            }
        }
        let Some(found) = aggregate::resolve_ordered(name, &types(&direct), &types(&sorted)) else {
            if aggregate::resolve(name, &all).is_some() {
                bail!(WRONG_OBJECT_TYPE: "{name} is not an ordered-set aggregate, so it cannot have WITHIN GROUP"; at position);
            }
            return Err(undefined_function(&self.call_text(name, &all), position));
        };
        let value = sorted.first().map(|value| &value.sql_type);
        let sql_type = self.type_of_aggregate(found.kind, &found.data_type, value);
        let mut bound = Vec::new();
        for (value, taken) in direct.into_iter().chain(sorted).zip(found.arguments) {
            let position = value.position;
            bound.push(Typed::new(self.implicit(value, &taken)?, taken, position));
        }
        self.note_operands(position, name, bound.iter().map(|one| one.sql_type.clone()).collect());
        let first = bound.len() - directions.len();
        bound[first..].iter().try_for_each(check_ordered)?;
        let arguments: Vec<Expr> = bound.into_iter().map(|value| value.expr).collect();
        let keys = arguments[first..].iter().cloned().zip(directions);
        let order_by = keys
            .map(|(expression, (descending, nulls_first))| SortKey {
                expression,
                descending,
                nulls_first,
            })
            .collect();
        let (kind, data_type) = (found.kind, found.data_type);
        let aggregate = Aggregate { kind, arguments, distinct: false, order_by, filter, data_type };
        Ok((aggregate, sql_type))
    }

    fn bind_filter(&mut self, call: &FunctionCall) -> Result<Option<Expr>> {
        let Some(filter) = &call.filter else { return Ok(None) };
        let clause = std::mem::replace(&mut self.level().clause, Clause::Filter);
        let filter = self.bind_expr(filter);
        self.level().clause = clause;
        self.condition(filter?, "FILTER").map(Some)
    }
}

fn add_key(keys: &mut Vec<SortKey>, expression: Expr, (descending, nulls_first): (bool, bool)) {
    if !keys.iter().any(|key| key.expression == expression) {
        keys.push(SortKey { expression, descending, nulls_first });
    }
}

/// Aggregates with several overloads and no preferred one, so that a literal of unknown type is
/// ambiguous.
const AMBIGUOUS: [&str; 6] = ["array_agg", "avg", "bit_and", "bit_or", "bit_xor", "sum"];
/// Polymorphic aggregates, whose result type is undetermined for a literal of unknown type.
const POLYMORPHIC: [&str; 5] = ["any_value", "json_agg", "jsonb_agg", "mode", "percentile_disc"];

/// Returns whether an aggregate with arguments of these types also accepts other types.
pub(super) fn is_polymorphic(kind: AggregateKind, types: &[DataType]) -> bool {
    let name = kind.name();
    let of_arrays = matches!(types.first(), Some(DataType::Array(_) | DataType::Enum(_)));
    of_arrays
        || POLYMORPHIC.contains(&name)
        || matches!(
            name,
            "count"
                | "array_agg"
                | "json_object_agg"
                | "jsonb_object_agg"
                | "approx_count_distinct"
        )
}

fn no_aggregate(
    binder: &Binder<'_>,
    call: &FunctionCall,
    types: &[DataType],
    position: usize,
) -> Error {
    let name = call.name.name.value.as_str();
    if !call.star && types.is_empty() && name == "count" {
        return err!(WRONG_OBJECT_TYPE: "{name}(*) must be used to call a parameterless aggregate function"; at position);
    }
    if AMBIGUOUS.contains(&name) && types == [DataType::Unknown] {
        return err!(AMBIGUOUS_FUNCTION: "function {} is not unique", binder.call_text(name, types);
            hint "Could not choose a best candidate function. You might need to add explicit type casts."; at position);
    }
    if let Some((sorted, direct)) = types.split_last()
        && aggregate::resolve_ordered(name, direct, std::slice::from_ref(sorted)).is_some()
    {
        return err!(WRONG_OBJECT_TYPE: "WITHIN GROUP is required for ordered-set aggregate {name}"; at position);
    }
    undefined_function(&binder.call_text(name, types), position)
}
