//! Binding of subqueries in expressions: scalar, EXISTS, IN, ANY and ALL.
//!
//! A subquery becomes a [`SubqueryUse`] of the current level, and a placeholder column in the
//! expression; [`rows`](crate::binder::rows) later adds the Apply node. Identical subqueries of a
//! level share one.

use std::hash::{Hash, Hasher};
use std::mem::discriminant;

use ahash::{AHashMap, AHasher};
use types::DataType;
use types::expr::Expr;

use crate::ast::{self, ArraySource, BinaryOperator, Quantifier};
use crate::binder::arrays::no_array;
use crate::binder::bound_query::BoundQuery;
use crate::binder::expressions::negate;
use crate::binder::level::{Binder, QueryLevel, SUBQUERY, SUBQUERY_COLUMN, SubqueryUse};
use crate::binder::operators::{all_of, any_of};
use crate::binder::query_limits;
use crate::binder::tree::{for_each_column, for_each_expression, walk_plan, width};
use crate::binder::typed::{Typed, boolean, null};
use crate::error::{Error, Result};
use crate::logical::{ApplyKind, Logical};

/// The first number of parameters when two subqueries are compared.
const NUMBERED: usize = usize::MAX / 2;

impl SubqueryUse {
    /// Returns whether it is the same query over the same values of its level's row, without
    /// volatile values or side effects.
    fn has_value_of(&self, other: &SubqueryUse) -> bool {
        let values = self.bindings.iter().map(|(_, value)| value);
        if self.bindings.iter().any(|(_, value)| value.is_volatile()) {
            return false;
        }
        if self.kind != other.kind || !values.eq(other.bindings.iter().map(|(_, value)| value)) {
            return false;
        }
        let plan = self.numbered();
        plan == other.numbered() && !plan.has_effects()
    }

    /// Returns a hash that is equal for subqueries [with the same
    /// value](SubqueryUse::has_value_of), so that a new subquery is compared with few others.
    fn likeness(&self) -> u64 {
        let mut hasher = AHasher::default();
        let mut plan = self.plan.clone();
        walk_plan(&mut plan, &mut |node| {
            discriminant(node).hash(&mut hasher);
            if let Logical::Scan(scan) = node {
                scan.table.id.hash(&mut hasher);
            }
            for_each_expression(node, &mut |expr| {
                expr.walk(&mut |part| {
                    discriminant(part).hash(&mut hasher);
                    match part {
                        Expr::Constant { value, .. } => format!("{value:?}").hash(&mut hasher),
                        Expr::Column { index, .. } => index.hash(&mut hasher),
                        _ => {}
                    }
                });
            });
        });
        hasher.finish()
    }

    /// Returns its plan with its parameters renumbered in the order of occurrence.
    fn numbered(&self) -> Logical {
        let mut plan = self.plan.clone();
        let mut numbers: AHashMap<usize, usize> = AHashMap::new();
        let mut add = |parameter: usize| {
            let number = NUMBERED + numbers.len();
            *numbers.entry(parameter).or_insert(number)
        };
        for (parameter, _) in &self.bindings {
            add(*parameter);
        }
        walk_plan(&mut plan, &mut |node| {
            if let Logical::Apply(apply) = node {
                apply.bindings.iter_mut().for_each(|(parameter, _)| *parameter = add(*parameter));
            }
        });
        walk_plan(&mut plan, &mut |node| {
            for_each_expression(node, &mut |expr| {
                expr.walk_mut(&mut |part| {
                    if let Expr::Parameter { index, .. } = part
                        && let Some(number) = numbers.get(index)
                    {
                        *index = *number;
                    }
                });
            });
        });
        plan
    }
}

impl Binder<'_> {
    /// Binds a subquery of the current level and returns it with its outer references to that
    /// level.
    fn bind_below(&mut self, query: &ast::QueryExpr) -> Result<(BoundQuery, Vec<(usize, Expr)>)> {
        self.refuse_policy_recursion()?;
        let outer = std::mem::take(&mut self.level().open_bindings);
        let bound = self.without_recursion("within a subquery", |b| b.bind_query(query, true));
        let bindings = std::mem::replace(&mut self.level().open_bindings, outer);
        Ok((bound?, bindings))
    }

    /// Adds a subquery to the current level, unless it has one with the same value; so a subquery
    /// in GROUP BY is recognised in the select list.
    pub(super) fn add_subquery(
        &mut self,
        subquery: SubqueryUse,
        data_type: DataType,
    ) -> Result<Expr> {
        let likeness = subquery.likeness();
        let QueryLevel { subqueries, subqueries_like, .. } = self.level();
        let like = subqueries_like.entry(likeness).or_default();
        let known = like.iter().copied().find(|&known| subqueries[known].has_value_of(&subquery));
        let number = known.unwrap_or_else(|| {
            like.push(subqueries.len());
            subqueries.push(subquery);
            subqueries.len() - 1
        });
        query_limits::check_count(subqueries.len())?;
        Ok(Expr::Column { index: SUBQUERY + number, data_type })
    }

    /// Binds `(query)` as a value.
    pub(super) fn bind_scalar_subquery(&mut self, query: &ast::QueryExpr) -> Result<Typed> {
        let (bound, bindings) = self.bind_below(query)?;
        let position = query.position;
        let [column] = bound.columns.as_slice() else {
            bail!(SYNTAX_ERROR: "subquery must return only one column"; at position);
        };
        let sql_type = column.sql_type.clone();
        let plan = bound.plan;
        let subquery = SubqueryUse { plan, bindings, kind: ApplyKind::Scalar, position };
        let expr = self.add_subquery(subquery, sql_type.base.clone())?;
        Ok(Typed { expr, sql_type, position })
    }

    /// Binds `(query)` as one value for each of its columns.
    pub(super) fn bind_columns_subquery(&mut self, query: &ast::QueryExpr) -> Result<Vec<Typed>> {
        let (bound, bindings) = self.bind_below(query)?;
        let position = query.position;
        let mut values = Vec::new();
        for (index, column) in bound.columns.iter().enumerate() {
            let data_type = &column.sql_type.base;
            let plan = Logical::Project {
                input: Box::new(bound.plan.clone()),
                expressions: vec![Expr::column(index, data_type)],
            };
            let bindings = bindings.clone();
            let subquery = SubqueryUse { plan, bindings, kind: ApplyKind::Scalar, position };
            let expr = self.add_subquery(subquery, data_type.clone())?;
            values.push(Typed::new(expr, &column.sql_type, position));
        }
        Ok(values)
    }

    /// Binds `ARRAY (query)`.
    pub(super) fn bind_array_subquery(
        &mut self,
        query: &ast::QueryExpr,
        position: usize,
    ) -> Result<Typed> {
        let (bound, bindings) = self.bind_below(query)?;
        let [column] = bound.columns.as_slice() else {
            bail!(SYNTAX_ERROR: "subquery must return only one column"; at position);
        };
        let (plan, element) = (bound.plan, &column.sql_type);
        let is_vector = matches!(element.base, DataType::Int2Vector | DataType::OidVector);
        let array = if element.base.element().is_some() && !is_vector {
            Some(element.domain_array_type())
        } else {
            self.catalog.array_of(element)
        };
        let sql_type = array.ok_or_else(|| no_array(&element.base, position))?;
        let kind = ApplyKind::Array { data_type: sql_type.base.clone() };
        let subquery = SubqueryUse { plan, bindings, kind, position };
        let expr = self.add_subquery(subquery, sql_type.base.clone())?;
        Ok(Typed { expr, sql_type, position })
    }

    /// Binds `EXISTS (query)`.
    pub(super) fn bind_exists(&mut self, query: &ast::QueryExpr) -> Result<Typed> {
        let (bound, bindings) = self.bind_below(query)?;
        let (plan, position) = (rows_alone(bound.plan), query.position);
        let subquery = SubqueryUse { plan, bindings, kind: ApplyKind::Exists, position };
        Ok(Typed::boolean(self.add_subquery(subquery, DataType::Bool)?, position))
    }

    /// Binds `operand [NOT] IN (query)`.
    pub(super) fn bind_in_subquery(
        &mut self,
        operand: &ast::Expr,
        query: &ast::QueryExpr,
        negated: bool,
        position: usize,
    ) -> Result<Typed> {
        let pair = (BinaryOperator::Equal, Quantifier::Any);
        let value = self.bind_compared(operand, pair, query, position)?;
        Ok(Typed::boolean(negate(value.expr, negated), value.position))
    }

    fn bind_compared(
        &mut self,
        operand: &ast::Expr,
        (operator, quantifier): (BinaryOperator, Quantifier),
        query: &ast::QueryExpr,
        position: usize,
    ) -> Result<Typed> {
        let left = match operand {
            ast::Expr::Row { fields, .. } => self.bind_list(fields)?,
            other => vec![self.bind_expr(other)?],
        };
        let (bound, bindings) = self.bind_below(query)?;
        if bound.columns.len() != left.len() {
            let many = if bound.columns.len() > left.len() { "many" } else { "few" };
            bail!(SYNTAX_ERROR: "subquery has too {many} columns"; at position);
        }
        let right = bound.columns.iter().enumerate().map(|(index, column)| {
            let expr = Expr::column(SUBQUERY_COLUMN + index, &column.sql_type.base);
            Typed::new(expr, &column.sql_type, query.position)
        });
        let mut right: Vec<Typed> = right.collect();
        let start = left.first().map_or(position, |value| value.position);
        let comparison = if let ast::Expr::Row { .. } = operand {
            self.compare_rows(operator, left, right, position)?
        } else {
            let (Some(left), Some(right)) = (left.into_iter().next(), right.pop()) else {
                bail!(SYNTAX_ERROR: "subquery has too few columns"; at position);
            };
            let value = self.operator(operator.symbol(), left, right, position)?;
            if *value.base() != DataType::Bool {
                let found = self.type_name(&value.sql_type);
                bail!(DATATYPE_MISMATCH: "row comparison operator must yield type boolean, not type {found}"; at position);
            }
            value
        };
        let comparison = self.condition(comparison, "ANY")?;
        let kind = match quantifier {
            Quantifier::Any => ApplyKind::Any { comparison },
            Quantifier::All => ApplyKind::All { comparison },
        };
        let subquery = SubqueryUse { plan: bound.plan, bindings, kind, position };
        Ok(Typed::boolean(self.add_subquery(subquery, DataType::Bool)?, start))
    }

    /// Binds `left operator ANY|ALL (…)`.
    pub(super) fn bind_quantified(
        &mut self,
        left: &ast::Expr,
        (operator, quantifier): (BinaryOperator, Quantifier),
        right: &ArraySource,
        position: usize,
    ) -> Result<Typed> {
        match right {
            ArraySource::Subquery(query) => {
                self.bind_compared(left, (operator, quantifier), query, position)
            }
            ArraySource::Value(value) => {
                let left = self.bind_expr(left)?;
                let array = self.bind_expr(value)?;
                self.bind_array_comparison(left, (operator, quantifier), array, position)
            }
            ArraySource::Elements(elements) => {
                let left = self.bind_expr(left)?;
                let elements = self.bind_list(elements)?;
                self.compare_elements(left, (operator, quantifier), elements, position)
            }
        }
    }

    /// Compares a value with each of some elements.
    pub(super) fn compare_elements(
        &mut self,
        left: Typed,
        (operator, quantifier): (BinaryOperator, Quantifier),
        elements: Vec<Typed>,
        position: usize,
    ) -> Result<Typed> {
        let start = left.position;
        let expr = match (operator, quantifier) {
            _ if elements.is_empty() => boolean(quantifier == Quantifier::All),
            (BinaryOperator::Equal, Quantifier::Any) => self.in_list(left, elements, position)?,
            (BinaryOperator::NotEqual, Quantifier::All) if left.base().has_equality() => {
                negate(self.in_list(left, elements, position)?, true)
            }
            _ => {
                let compare = |one| {
                    let value = self.operator(operator.symbol(), left.clone(), one, position)?;
                    yields_boolean(&value, position)?;
                    self.condition(value, "ANY")
                };
                let list = elements.into_iter().map(compare).collect::<Result<Vec<Expr>>>()?;
                if quantifier == Quantifier::Any { any_of(list) } else { all_of(list) }
            }
        };
        Ok(Typed::boolean(expr, start))
    }
}

/// Rejects an operator of ANY and ALL whose result is not boolean.
pub(super) fn yields_boolean(compared: &Typed, position: usize) -> Result<()> {
    if *compared.base() == DataType::Bool {
        return Ok(());
    }
    bail!(WRONG_OBJECT_TYPE: "op ANY/ALL (array) requires operator to yield boolean"; at position)
}

/// Returns the query of an EXISTS without what cannot change whether it has rows: sorting and
/// DISTINCT, which PostgreSQL does not execute either. Its columns remain, except those of groups;
/// volatile values and values of subqueries become NULL.
fn rows_alone(plan: Logical) -> Logical {
    match plan {
        plan if is_of_groups(&plan) => rows_alone(below_groups(plan)),
        Logical::Project { input, expressions } => {
            let input = Box::new(without_values(without_order(*input)));
            let rest = width(&input);
            let unread = |expr: Expr| {
                let mut is_unread = expr.is_volatile();
                for_each_column(&expr, &mut |index| is_unread |= index >= rest);
                if is_unread { null(expr.data_type()) } else { expr }
            };
            let expressions = expressions.into_iter().map(unread).collect();
            Logical::Project { input, expressions }
        }
        Logical::Limit { input, limit, offset: None, ties } if ties.is_empty() => {
            Logical::Limit { input: Box::new(rows_alone(*input)), limit, offset: None, ties }
        }
        plan @ (Logical::Sort { .. } | Logical::Distinct { .. }) => match without_order(plan) {
            project @ Logical::Project { .. } => rows_alone(project),
            other => other,
        },
        other => other,
    }
}

/// Removes the subqueries whose values only the select list reads.
fn without_values(plan: Logical) -> Logical {
    match plan {
        Logical::Apply(apply) if !matches!(apply.kind, ApplyKind::Rows { .. }) => {
            without_values(*apply.input)
        }
        other => other,
    }
}

/// Returns whether the rows are groups without aggregates, so that there are some if the input has
/// rows.
fn is_of_groups(plan: &Logical) -> bool {
    match plan {
        Logical::Project { input, .. } | Logical::Sort { input, .. } => is_of_groups(input),
        Logical::Distinct { input, .. } => is_of_groups(input),
        Logical::Aggregate { group_by, aggregates, .. } => {
            aggregates.is_empty() && !group_by.is_empty()
        }
        _ => false,
    }
}

fn below_groups(plan: Logical) -> Logical {
    match plan {
        Logical::Project { input, .. }
        | Logical::Sort { input, .. }
        | Logical::Distinct { input, .. } => below_groups(*input),
        Logical::Aggregate { input, .. } => *input,
        other => other,
    }
}

fn without_order(plan: Logical) -> Logical {
    match plan {
        Logical::Sort { input, .. } => without_order(*input),
        Logical::Distinct { input, .. } if !matches!(*input, Logical::Append { .. }) => {
            without_order(*input)
        }
        other => other,
    }
}
