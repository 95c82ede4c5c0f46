//! Binding of queries: SELECT, VALUES and set operations, with ORDER BY and LIMIT.

use types::cast::CastContext;
use types::expr::Expr;
use types::{DataType, SqlType};

use crate::ast::{self, QueryBody, QueryExpr, SetOperator};
use crate::binder::bound_query::{BoundQuery, refuse_locks_of_part};
use crate::binder::coercion::common_type;
use crate::binder::level::{Binder, Clause, QueryLevel};
use crate::binder::query_limits::{self, too_deep};
use crate::binder::rows::Rows;
use crate::binder::scope::Scope;
use crate::binder::select::{Limits, Target, direction, limit_rows, named_target};
use crate::binder::set_functions::{SetColumns, calls_in};
use crate::binder::typed::{Typed, check_equality};
use crate::error::{Error, Result};
use crate::logical::{Logical, OutputColumn, SetKind, SetOperation, SortKey};
use crate::parser::limits::CHAINED_QUERIES;

/// The maximum depth of plan nodes for a chain of set operators.
const DEPTH_MAX: usize = 2 * CHAINED_QUERIES + 8;

impl Binder<'_> {
    /// Binds a query. Unless `resolve`, the types of output columns may remain unknown.
    pub(super) fn bind_query(&mut self, query: &QueryExpr, resolve: bool) -> Result<BoundQuery> {
        let with = query.with.as_ref().map(|with| self.open_with(with, false)).transpose()?;
        let mut bound = self.bind_query_body(query, resolve)?;
        if let Some(with) = with {
            bound.plan = self.close_with(with, bound.plan);
        }
        query_limits::check_plan(&mut bound.plan)?;
        Ok(bound)
    }

    pub(super) fn bind_query_body(
        &mut self,
        query: &QueryExpr,
        resolve: bool,
    ) -> Result<BoundQuery> {
        match &query.body {
            QueryBody::Select(select) => self.bind_select(select, query, resolve),
            QueryBody::Values(rows) => {
                let bound = self.bind_values(rows)?;
                self.bind_tail(bound, query)
            }
            QueryBody::SetOperation { .. } => {
                let bound = self.bind_chain(query)?;
                self.bind_tail(bound, query)
            }
        }
    }

    /// Binds a left-deep chain of set operators, in a loop.
    fn bind_chain(&mut self, query: &QueryExpr) -> Result<BoundQuery> {
        let (mut spine, mut leaf, mut in_leaf) = (Vec::new(), query, None);
        while let QueryBody::SetOperation { operator, all, left, right } = &leaf.body
            && (spine.is_empty() || leaf.is_bare())
            && in_leaf.is_none()
        {
            let in_right = match (*operator, *all) {
                (SetOperator::Intersect, true) => {
                    in_leaf = Some("within INTERSECT");
                    in_leaf
                }
                (SetOperator::Except, _) => Some("within EXCEPT"),
                _ => None,
            };
            spine.push(((*operator, *all), &**right, in_right));
            leaf = left;
        }
        let mut left = self.bind_operand(leaf, in_leaf)?;
        let mut joined = false;
        for (operation, right, in_right) in spine.into_iter().rev() {
            let right = self.bind_operand(right, in_right)?;
            left = self.bind_set_operation(operation, (left, joined), right)?;
            if left_depth(&left.plan) > DEPTH_MAX {
                return Err(too_deep().at(left.positions.first().copied().unwrap_or(1)));
            }
            joined = operation.0 == SetOperator::Union;
        }
        Ok(left)
    }

    fn bind_operand(
        &mut self,
        query: &QueryExpr,
        place: Option<&'static str>,
    ) -> Result<BoundQuery> {
        refuse_locks_of_part(query)?;
        match place {
            None => self.bind_query(query, false),
            Some(place) => self.without_recursion(place, |b| b.bind_query(query, false)),
        }
    }

    /// Binds LIMIT and OFFSET, which must not refer to `scope`.
    pub(super) fn bind_limits(&mut self, query: &QueryExpr, scope: &Scope) -> Result<Limits> {
        if query.with_ties
            && let Some(ast::Expr::Null { position }) = &query.limit
        {
            bail!(INVALID_ROW_COUNT_IN_LIMIT_CLAUSE: "row count cannot be null in FETCH FIRST ... WITH TIES clause";
                at *position);
        }
        let mut computed = None;
        let mut bind = |expr: &Option<ast::Expr>, clause| {
            expr.as_ref().map(|expr| self.bind_limit((expr, clause), scope, &mut computed))
        };
        let limit = bind(&query.limit, Clause::Limit).transpose()?;
        let offset = bind(&query.offset, Clause::Offset).transpose()?;
        Ok(Limits { limit, offset, ties: Vec::new(), computed })
    }

    fn bind_limit(
        &mut self,
        (expr, clause): (&ast::Expr, Clause),
        scope: &Scope,
        computed: &mut Option<(Rows, Vec<(usize, Expr)>)>,
    ) -> Result<Expr> {
        let bind = |binder: &mut Self| {
            let value = binder.bind_expr(expr)?;
            let (from, position) = (value.base().clone(), value.position);
            let to = SqlType::from(DataType::Int8);
            binder.coerce(value, &to, CastContext::Assignment)?.ok_or_else(|| {
                let (clause, name) = (clause.name(), from.sql_name());
                err!(DATATYPE_MISMATCH: "argument of {clause} must be type bigint, not type {name}"; with_type_mention from;
                    at position)
            })
        };
        let is_plain = matches!(expr, ast::Expr::Number { .. } | ast::Expr::Parameter { .. });
        let scope = if is_plain { Scope::default() } else { scope.clone() };
        let (bound, level) = self.in_new_level(scope, clause, bind)?;
        if let Some(reference) = level.references.first() {
            bail!(INVALID_COLUMN_REFERENCE: "argument of {} must not contain variables", clause.name(); at reference.position);
        }
        if level.subqueries.is_empty() {
            return Ok(bound);
        }
        let (row, bindings) = computed.get_or_insert_with(|| (Rows::unit(), Vec::new()));
        row.begin_level();
        let value = row.place(bound, &level.subqueries);
        let (index, data_type) = (self.parameters.outer(), value.data_type().clone());
        bindings.push((index, value));
        Ok(Expr::Parameter { index, data_type: data_type.clone() })
    }

    fn bind_values(&mut self, rows: &[Vec<ast::Expr>]) -> Result<BoundQuery> {
        let [row] = rows else { return self.bind_value_rows(rows) };
        let [ast::Expr::Constants(run)] = row.as_slice() else {
            return self.bind_value_rows(rows);
        };
        let bind = |binder: &mut Self| binder.bind_run(run);
        let Some((constants, positions)) =
            self.in_new_level(Scope::default(), Clause::Values, bind)?.0
        else {
            let rows: Vec<Vec<ast::Expr>> = run.rows().collect();
            return self.bind_value_rows(&rows);
        };
        query_limits::check_entries(constants.types.len())?;
        let columns = constants.types.iter().enumerate().map(|(index, data_type)| OutputColumn {
            name: format!("column{}", index + 1),
            sql_type: (data_type).into(),
            origin: None,
        });
        let columns = columns.collect();
        Ok(BoundQuery { plan: Logical::Constants(constants), columns, positions })
    }

    fn bind_value_rows(&mut self, rows: &[Vec<ast::Expr>]) -> Result<BoundQuery> {
        let bind = |binder: &mut Self| {
            let mut columns: Vec<Vec<Typed>> = Vec::new();
            for (at, row) in rows.iter().enumerate() {
                let mut values = Vec::with_capacity(columns.len());
                for expr in row {
                    binder.bind_entry(expr, &mut values)?;
                }
                if at == 0 {
                    query_limits::check_entries(values.len())?;
                    columns.resize_with(values.len(), || Vec::with_capacity(rows.len()));
                }
                if values.len() != columns.len() {
                    return Err(uneven_values(row.first().map_or(1, ast::Expr::position)));
                }
                columns.iter_mut().zip(values).for_each(|(column, value)| column.push(value));
            }
            let position = |column: &Vec<Typed>| column.first().map_or(1, |value| value.position);
            let positions: Vec<usize> = columns.iter().map(position).collect();
            let unify = |column| binder.unify(column, "VALUES");
            let columns = columns.into_iter().map(unify).collect::<Result<Vec<_>>>()?;
            Ok((columns, positions))
        };
        let ((columns, positions), level) =
            self.in_new_level(Scope::default(), Clause::Values, bind)?;
        let output = columns.iter().enumerate().map(|(index, (_, sql_type))| OutputColumn {
            name: format!("column{}", index + 1),
            sql_type: sql_type.clone(),
            origin: None,
        });
        let output: Vec<OutputColumn> = output.collect();
        let mut values: Vec<_> =
            columns.into_iter().map(|(column, _)| column.into_iter()).collect();
        let row = |_| values.iter_mut().filter_map(Iterator::next).collect();
        let bound: Vec<Vec<Expr>> = (0..rows.len()).map(row).collect();
        let types = output.iter().map(|column| column.sql_type.base.clone()).collect();
        let plan = values_plan(types, bound, &level);
        Ok(BoundQuery { plan, columns: output, positions })
    }

    /// Binds a set operator; `joined` if the preceding operator of a chain is UNION.
    fn bind_set_operation(
        &mut self,
        (operator, all): (SetOperator, bool),
        (left, joined): (BoundQuery, bool),
        right: BoundQuery,
    ) -> Result<BoundQuery> {
        let name = match operator {
            SetOperator::Union => "UNION",
            SetOperator::Intersect => "INTERSECT",
            SetOperator::Except => "EXCEPT",
        };
        if left.columns.len() != right.columns.len() {
            let position = right.positions.first().copied().unwrap_or(1);
            bail!(SYNTAX_ERROR: "each {name} query must have the same number of columns"; at position);
        }
        let mut columns = Vec::new();
        for index in 0..left.columns.len() {
            let both = vec![left.typed(index), right.typed(index)];
            let base = common_type(&both, name)?;
            let (one, other) =
                (left.columns[index].sql_type.clone(), right.columns[index].sql_type.clone());
            let sql_type = if one == other && one.base == base { one } else { base.into() };
            if (operator, all) != (SetOperator::Union, true) {
                check_equality(&Typed { sql_type: sql_type.clone(), ..left.typed(index) })?;
            }
            let name = left.columns[index].name.clone();
            columns.push(OutputColumn { name, sql_type, origin: None });
        }
        let types: Vec<SqlType> =
            columns.iter().map(|column| SqlType::from(&column.sql_type.base)).collect();
        let positions = left.positions.clone();
        let left = self.convert(left, &types, CastContext::Implicit)?;
        let right = self.convert(right, &types, CastContext::Implicit)?;
        let plan = match operator {
            SetOperator::Union => union((left, joined), right, all),
            SetOperator::Intersect => set_operation(SetKind::Intersect, all, left, right),
            SetOperator::Except => set_operation(SetKind::Except, all, left, right),
        };
        Ok(BoundQuery { plan, columns, positions })
    }

    /// Converts the columns of a query: literals in place, other columns by a projection.
    pub(super) fn convert(
        &mut self,
        mut bound: BoundQuery,
        to: &[SqlType],
        context: CastContext,
    ) -> Result<Logical> {
        for (index, to) in to.iter().enumerate() {
            if bound.columns[index].sql_type.base == DataType::Unknown {
                let position = bound.positions[index];
                let plain = SqlType::from(to.base.clone());
                self.settle_column(&mut bound.plan, index, &plain, position)?;
                bound.columns[index].sql_type = plain;
            }
        }
        let mut expressions = Vec::new();
        let mut changed = to.len() != bound.columns.len();
        for (index, to) in to.iter().enumerate() {
            let value = bound.typed(index);
            let (from, position) = (value.base().clone(), value.position);
            let expr = self.coerce(value, to, context)?;
            let expr = expr.ok_or_else(|| {
                err!(CANNOT_COERCE: "cannot cast type {} to {}", from.sql_name(), to.base.sql_name(); with_type_mention from;
                    with_type_mention to.clone(); at position)
            })?;
            changed |= !matches!(expr, Expr::Column { .. });
            expressions.push(expr);
        }
        if !changed {
            return Ok(bound.plan);
        }
        Ok(Logical::Project { input: Box::new(bound.plan), expressions })
    }

    /// Sets the type of a literal or parameter in the node that computes it.
    fn settle_column(
        &mut self,
        plan: &mut Logical,
        column: usize,
        to: &SqlType,
        position: usize,
    ) -> Result<()> {
        match plan {
            Logical::Project { input, expressions } => {
                if let Expr::Column { index, data_type } = &mut expressions[column] {
                    *data_type = to.base.clone();
                    let below = *index;
                    return self.settle_column(input, below, to, position);
                }
                let value = Typed::new(expressions[column].clone(), DataType::Unknown, position);
                expressions[column] = self.implicit(value, to.base.clone())?;
                Ok(())
            }
            Logical::Filter { input, .. }
            | Logical::Sort { input, .. }
            | Logical::Limit { input, .. }
            | Logical::Distinct { input, .. } => self.settle_column(input, column, to, position),
            Logical::With(with) => self.settle_column(&mut with.body, column, to, position),
            _ => Ok(()),
        }
    }

    /// Binds ORDER BY and LIMIT of VALUES and set operations, which may refer to output columns
    /// only.
    fn bind_tail(&mut self, bound: BoundQuery, query: &QueryExpr) -> Result<BoundQuery> {
        if let Some(locking) = query.locking.first() {
            if !matches!(query.body, QueryBody::Values(_)) {
                return refuse_locks_of_part(query).map(|()| bound);
            }
            bail!(FEATURE_NOT_SUPPORTED: "{} cannot be applied to VALUES", locking.strength.clause());
        }
        let targets: Vec<Target> = (0..bound.columns.len())
            .map(|index| Target {
                value: bound.typed(index),
                name: bound.columns[index].name.clone(),
                origin: None,
            })
            .collect();
        let mut keys = Vec::new();
        let mut order = Vec::new();
        for item in &query.order_by {
            let of_values = |expr| match &query.body {
                QueryBody::Values(_) => column_of_values(expr),
                _ => None,
            };
            let name = of_values(&item.expr);
            let expr = name.as_ref().unwrap_or(&item.expr);
            let target = named_target(expr, &targets, "ORDER BY")?;
            let target = target.ok_or_else(|| not_an_output(&item.expr))?;
            let (descending, nulls_first) = direction(item);
            let expression = targets[target].value.expr.clone();
            keys.push(SortKey { expression, descending, nulls_first });
            order.push(target);
        }
        let types = bound.columns.iter().map(|column| column.sql_type.base.clone()).collect();
        let mut rows = Rows::new(bound.plan, types);
        if !keys.is_empty() {
            rows.over(|input| Logical::Sort { input, keys });
        }
        let mut limits = self.bind_limits(query, &Scope::default())?;
        if query.with_ties {
            limits.ties = order;
        }
        limit_rows(&mut rows, limits);
        Ok(BoundQuery { plan: rows.plan, ..bound })
    }
}

/// Returns the column of VALUES for a reference qualified by its default alias.
fn column_of_values(expr: &ast::Expr) -> Option<ast::Expr> {
    match expr {
        ast::Expr::Column(parts) => match parts.as_slice() {
            [of, name] if of.value == "*VALUES*" => Some(ast::Expr::Column(vec![name.clone()])),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the error for VALUES rows of different lengths.
pub(super) fn uneven_values(position: usize) -> Error {
    err!(SYNTAX_ERROR: "VALUES lists must all be the same length"; at position)
}

/// Returns a plan of constant rows; rows with subqueries or set-returning functions become plans
/// of their own.
pub(super) fn values_plan(
    types: Vec<DataType>,
    rows: Vec<Vec<Expr>>,
    level: &QueryLevel,
) -> Logical {
    if level.subqueries.is_empty() && level.set_uses.is_empty() {
        return Logical::Values { types, rows };
    }
    let row = |row: Vec<Expr>| {
        let mut rows = Rows::unit();
        let mut sets = SetColumns::default();
        let wanted: Vec<usize> = row.iter().flat_map(calls_in).collect();
        level.place_sets(&mut rows, &mut sets, &wanted);
        let place = |mut expr: Expr| {
            sets.map(&mut expr);
            rows.place(expr, &level.subqueries)
        };
        let placed = row.into_iter().map(place).collect();
        rows.project(placed);
        rows.plan
    };
    Logical::Append { inputs: rows.into_iter().map(row).collect() }
}

/// Returns the depth of the plan of a chain of set operators, along the left inputs. Each operator
/// may add a node for itself, one for DISTINCT and one for conversion.
fn left_depth(mut plan: &Logical) -> usize {
    let mut depth = 0;
    loop {
        plan = match plan {
            Logical::Append { inputs } if !inputs.is_empty() => &inputs[0],
            Logical::Distinct { input, .. } | Logical::Project { input, .. } => input,
            Logical::SetOperation(operation) => &operation.left,
            _ => return depth,
        };
        depth += 1;
    }
}

/// Returns the union of both sides; if `joined`, the right side becomes another input of the
/// preceding UNION.
fn union((left, joined): (Logical, bool), right: Logical, all: bool) -> Logical {
    let mut inputs = match left {
        Logical::Append { inputs } if joined => inputs,
        left => vec![left],
    };
    // The DISTINCT of the inputs is redundant below another one.
    if joined && !all {
        let mut rest = inputs.split_off(1);
        inputs = inputs.into_iter().flat_map(without_distinct).collect();
        inputs.append(&mut rest);
    }
    inputs.push(right);
    let all_rows = Logical::Append { inputs };
    if all { all_rows } else { Logical::Distinct { input: Box::new(all_rows), on: Vec::new() } }
}

/// Returns the inputs of a plan without its DISTINCT.
fn without_distinct(plan: Logical) -> Vec<Logical> {
    match plan {
        Logical::Distinct { input, on } if on.is_empty() => match *input {
            Logical::Append { inputs } => inputs,
            other => vec![other],
        },
        plan => vec![plan],
    }
}

fn set_operation(kind: SetKind, all: bool, left: Logical, right: Logical) -> Logical {
    let (left, right) = (Box::new(left), Box::new(right));
    Logical::SetOperation(SetOperation { kind, all, left, right })
}

fn not_an_output(expr: &ast::Expr) -> Error {
    if let ast::Expr::Column(parts) = expr
        && let [name] = parts.as_slice()
    {
        return err!(UNDEFINED_COLUMN: "column \"{}\" does not exist", name.value; at name.position);
    }
    err!(FEATURE_NOT_SUPPORTED: "invalid UNION/INTERSECT/EXCEPT ORDER BY clause";
        detail "Only result column names can be used, not expressions or functions.";
        hint "Add the expression/function to every SELECT, or move the UNION into a FROM clause."; at expr.position())
}
