//! Validation of logical plans.

use std::collections::BTreeSet;
use std::slice::from_ref;

use types::DataType;
use types::expr::Expr;

use crate::logical::{
    Apply, ApplyKind, CteScan, GroupingSets, Join, JoinKind, LockRows, LockedTables, Logical,
    ProjectSet, RecursiveUnion, TableScan, Window, WindowKind, With, pseudo_column_type,
};
use crate::planner::plan_properties::bindings;
use crate::planner::validate::expression::{Row, boolean};
use crate::planner::validate::{Validation, require, same};

/// Number of a query of WITH, or of a work table (`true`).
type QueryId = (usize, bool);

/// Checks a plan, and returns the types of its columns. Parameters and queries that it uses and
/// no node of it defines are those of an enclosing plan.
pub(super) fn check(plan: &Logical, parameter_count: usize) -> Validation<Vec<DataType>> {
    let mut bound = BTreeSet::new();
    bindings(plan, &mut |parameter| {
        bound.insert(parameter);
    });
    let mut defined = BTreeSet::new();
    plan.walk(&mut |step| match step {
        Logical::LockRows(lock) => bound.extend(set_by(&lock.locked_tables)),
        Logical::With(with) => {
            defined.insert((with.id, false));
        }
        Logical::RecursiveUnion(union) => {
            defined.insert((union.id, true));
        }
        _ => {}
    });
    let scope = Scope { parameters: Vec::new(), queries: Vec::new() };
    PlanCheck { parameter_count, bound, defined, scope }.plan(plan)
}

/// Returns the parameters of a re-evaluated row.
fn set_by(held: &LockedTables) -> impl Iterator<Item = usize> {
    let newest = held.tables.iter().flat_map(|table| &table.newest);
    newest.chain(&held.copies).map(|(parameter, _)| *parameter)
}

/// Definitions of the enclosing nodes.
struct Scope {
    /// Bound parameters and their types; `None`: the type of an expression over a changed row.
    parameters: Vec<(usize, DataType)>,
    queries: Vec<(QueryId, Vec<DataType>)>,
}

struct PlanCheck {
    parameter_count: usize,
    /// Parameters that some node of the plan binds.
    bound: BTreeSet<usize>,
    /// Queries that some node of the plan defines.
    defined: BTreeSet<QueryId>,
    scope: Scope,
}

impl PlanCheck {
    /// Checks a plan, and returns the types of its columns.
    fn plan(&mut self, plan: &Logical) -> Validation<Vec<DataType>> {
        match plan {
            Logical::Scan(scan) => self.scan(scan),
            Logical::SystemRows(rows) => {
                self.over(&[], |row| row.check_all(&rows.arguments))?;
                Ok(plan.column_types())
            }
            Logical::Values { types, rows } => self.values(types, rows),
            Logical::Constants(constants) => {
                let width = constants.rows.columns.len();
                require(width == constants.types.len(), || format!("{width} constant columns"))?;
                Ok(constants.types.clone())
            }
            Logical::Filter { input, predicate } => {
                let types = self.plan(input)?;
                self.over(&types, |row| row.check_predicate(predicate))?;
                Ok(types)
            }
            Logical::Barrier { input } => self.plan(input),
            Logical::Project { input, expressions } => {
                let types = self.plan(input)?;
                self.over(&types, |row| row.check_all(expressions))
            }
            Logical::ProjectSet(sets) => self.project_set(sets),
            Logical::Join(join) => self.join(join),
            Logical::Apply(apply) => self.apply(apply),
            Logical::Aggregate { input, group_by, aggregates } => {
                let types = self.plan(input)?;
                let keys = self.over(&types, |row| row.check_all(group_by))?;
                let values = self.over(&types, |row| row.check_aggregates(aggregates))?;
                Ok([keys, values].concat())
            }
            Logical::GroupingSets(grouping) => self.grouping_sets(grouping),
            Logical::Sort { input, keys } => {
                let types = self.plan(input)?;
                self.over(&types, |row| row.check_keys(keys))?;
                Ok(types)
            }
            Logical::LockRows(lock) => self.lock_rows(lock),
            Logical::Limit { input, limit, offset, ties } => {
                let types = self.plan(input)?;
                self.counts(limit.iter().chain(offset))?;
                self.over(&types, |row| row.check_all(ties))?;
                Ok(types)
            }
            Logical::Distinct { input, on } => {
                let types = self.plan(input)?;
                self.over(&types, |row| row.check_all(on))?;
                Ok(types)
            }
            Logical::SetOperation(operation) => {
                self.append([operation.left.as_ref(), &operation.right].into_iter())
            }
            Logical::Append { inputs } => self.append(inputs.iter()),
            Logical::Window(window) => self.window(window),
            Logical::With(with) => self.with(with),
            Logical::CteScan(scan) => self.cte_scan(scan),
            Logical::RecursiveUnion(union) => self.recursive_union(union),
        }
    }

    /// Runs a check of expressions over rows of these columns.
    fn over<T>(
        &self,
        columns: &[DataType],
        check: impl FnOnce(Row<'_>) -> Validation<T>,
    ) -> Validation<T> {
        let parameter = |index, data_type: &DataType| self.parameter(index, data_type);
        check(Row { columns, parameter: &parameter })
    }

    fn parameter(&self, index: usize, data_type: &DataType) -> Validation<()> {
        let count = self.parameter_count;
        require(index < count, || format!("parameter {index} of {count}"))?;
        let in_scope = self.scope.parameters.iter().rev().find(|(bound, _)| *bound == index);
        match in_scope {
            Some((_, bound)) => require(*bound == *data_type, || {
                format!("parameter {index} is {bound:?} and used as {data_type:?}")
            }),
            None => require(!self.bound.contains(&index), || {
                format!("parameter {index} is used outside of the plan that it is bound for")
            }),
        }
    }

    /// Checks a plan that a node executes with these parameters.
    fn bound(
        &mut self,
        plan: &Logical,
        parameters: impl IntoIterator<Item = (usize, DataType)>,
    ) -> Validation<Vec<DataType>> {
        let outer = self.scope.parameters.len();
        self.scope.parameters.extend(parameters);
        let types = self.plan(plan);
        self.scope.parameters.truncate(outer);
        types
    }

    /// Checks the numbers of LIMIT and OFFSET.
    fn counts<'e>(&self, mut counts: impl Iterator<Item = &'e Expr>) -> Validation<()> {
        counts.try_for_each(|count| {
            self.over(&[], |row| row.check(count))?;
            let found = count.data_type();
            require(*found == DataType::Int8, || format!("a LIMIT or OFFSET is {found:?}"))
        })
    }

    fn scan(&self, scan: &TableScan) -> Validation<Vec<DataType>> {
        let width = scan.table.layout.columns.len();
        let exists = |&&column: &&usize| pseudo_column_type(column).is_some() || column < width;
        let missing = scan.columns.iter().find(|column| !exists(column));
        require(missing.is_none(), || format!("table {} has no {missing:?}", scan.table.name))?;
        let mut times = scan.system_time.iter().flat_map(|system_time| &system_time.times);
        times.try_for_each(|at| self.over(&[], |row| row.check(at)))?;
        Ok(scan.columns.iter().map(|&column| scan.column_type(column)).collect())
    }

    fn values(&self, types: &[DataType], rows: &[Vec<Expr>]) -> Validation<Vec<DataType>> {
        for row in rows {
            let found = self.over(&[], |over| over.check_all(row))?;
            same("a row of values", &found, types)?;
        }
        Ok(types.to_vec())
    }

    fn project_set(&mut self, sets: &ProjectSet) -> Validation<Vec<DataType>> {
        let mut types = self.plan(&sets.input)?;
        self.over(&types, |row| {
            sets.arguments().try_for_each(|argument| row.check(argument))?;
            sets.unread.iter().try_for_each(|&column| {
                require(column < row.columns.len(), || format!("unread column {column}"))
            })
        })?;
        types.extend(sets.set_types());
        Ok(types)
    }

    fn join(&mut self, join: &Join) -> Validation<Vec<DataType>> {
        let left = self.plan(&join.left)?;
        let right = self.plan(&join.right)?;
        let width = left.len();
        let mut types = [left, right].concat();
        self.over(&types, |row| row.check_predicate(&join.on))?;
        if let Some(first) = join.choice.lookup {
            let count = self.parameter_count;
            require(first < count, || format!("look-up parameter {first} of {count}"))?;
        }
        if matches!(join.kind, JoinKind::Semi | JoinKind::Anti) {
            types.truncate(width);
        }
        Ok(types)
    }

    fn apply(&mut self, apply: &Apply) -> Validation<Vec<DataType>> {
        let input = self.plan(&apply.input)?;
        let mut parameters = Vec::with_capacity(apply.bindings.len());
        for &(parameter, column) in &apply.bindings {
            let data_type = input.get(column).cloned();
            let data_type = data_type.ok_or_else(|| format!("binding of column {column}"))?;
            parameters.push((parameter, data_type));
        }
        let subquery = self.bound(&apply.subquery, parameters)?;
        self.over(&input, |row| apply.guard.iter().try_for_each(|one| row.check_predicate(one)))?;
        let added = apply.kind.added_types(subquery.clone());
        match &apply.kind {
            ApplyKind::Scalar => {
                require(!subquery.is_empty(), || "a scalar subquery without a column".to_owned())?;
            }
            ApplyKind::Array { data_type } => {
                let of = subquery.first();
                require(
                    of.is_some() && (data_type.element() == of || Some(data_type) == of),
                    || format!("{data_type:?} of a subquery of {of:?}"),
                )?;
            }
            ApplyKind::Exists | ApplyKind::Any { .. } | ApplyKind::All { .. } => {}
            ApplyKind::Rows { .. } => {}
        }
        let both = [input.clone(), subquery].concat();
        self.over(&both, |row| {
            apply.kind.condition().into_iter().try_for_each(|one| row.check_predicate(one))
        })?;
        self.apply_groups(apply, &input, &added)?;
        Ok([input, added].concat())
    }

    /// Checks the decorrelated form of a subquery.
    fn apply_groups(
        &mut self,
        apply: &Apply,
        input: &[DataType],
        added: &[DataType],
    ) -> Validation<()> {
        let Some(groups) = &apply.groups else { return Ok(()) };
        let types = self.plan(&groups.plan)?;
        let keys = self.over(input, |row| row.check_all(&groups.keys))?;
        require(keys.len() <= types.len(), || format!("{} keys of groups", keys.len()))?;
        let both = [input, &types].concat();
        self.over(&both, |row| row.check(&groups.value))?;
        same("the value of groups", from_ref(groups.value.data_type()), added)
    }

    fn grouping_sets(&mut self, grouping: &GroupingSets) -> Validation<Vec<DataType>> {
        let types = self.plan(&grouping.input)?;
        let keys = self.over(&types, |row| row.check_all(&grouping.group_by))?;
        let values = self.over(&types, |row| row.check_aggregates(&grouping.aggregates))?;
        for set in grouping.sets.iter().chain(&grouping.grouping_calls) {
            let missing = set.iter().find(|&&key| key >= keys.len());
            require(missing.is_none(), || format!("grouping key {missing:?} of {}", keys.len()))?;
        }
        let groupings = vec![DataType::Int4; grouping.grouping_calls.len()];
        Ok([keys, values, groupings].concat())
    }

    fn lock_rows(&mut self, lock: &LockRows) -> Validation<Vec<DataType>> {
        let types = self.plan(&lock.input)?;
        let outside = lock.locked_tables.needed().find(|&column| column >= types.len());
        require(outside.is_none(), || format!("locked column {outside:?} of {}", types.len()))?;
        let mut parameters = Vec::new();
        for table in &lock.locked_tables.tables {
            let keys = table.table.key_columns().count();
            require(table.key.len() == keys, || format!("{} key columns", table.key.len()))?;
            for (&column, of_table) in table.key.iter().zip(table.table.key_columns()) {
                let required = &table.table.layout.columns[of_table].data_type;
                same("a key column", from_ref(&types[column]), from_ref(required))?;
            }
            for &(parameter, column) in &table.newest {
                let of_table = || table.table.layout.columns.get(column);
                let data_type = pseudo_column_type(column)
                    .or_else(|| of_table().map(|one| one.data_type.clone()));
                let data_type = data_type.ok_or_else(|| format!("newest column {column}"))?;
                parameters.push((parameter, data_type));
            }
        }
        parameters.extend(
            lock.locked_tables.copies.iter().map(|&(at, column)| (at, types[column].clone())),
        );
        let again = self.bound(&lock.re_evaluation, parameters)?;
        same("the re-evaluated row", &again, &types)?;
        Ok(types)
    }

    fn append<'p>(
        &mut self,
        mut inputs: impl Iterator<Item = &'p Logical>,
    ) -> Validation<Vec<DataType>> {
        let Some(first) = inputs.next() else { return Ok(Vec::new()) };
        let types = self.plan(first)?;
        for input in inputs {
            let other = self.plan(input)?;
            same("an input", &other, &types)?;
        }
        Ok(types)
    }

    fn window(&mut self, window: &Window) -> Validation<Vec<DataType>> {
        let mut types = self.plan(&window.input)?;
        self.over(&types, |row| {
            let mut checked = Ok(());
            window.for_each_expression(&mut |one| {
                if checked.is_ok() {
                    checked = row.check(one);
                }
            });
            checked
        })?;
        for function in &window.functions {
            if let WindowKind::Aggregate(aggregate) = &function.kind {
                aggregate.filter.iter().try_for_each(boolean)?;
                let types = (from_ref(&function.data_type), from_ref(&aggregate.data_type));
                same("a window function", types.0, types.1)?;
            }
        }
        types.extend(window.functions.iter().map(|function| function.data_type.clone()));
        Ok(types)
    }

    fn with(&mut self, with: &With) -> Validation<Vec<DataType>> {
        let query = self.plan(&with.query)?;
        self.scope.queries.push(((with.id, false), query));
        let body = self.plan(&with.body);
        self.scope.queries.pop();
        body
    }

    fn cte_scan(&self, scan: &CteScan) -> Validation<Vec<DataType>> {
        let own: Vec<DataType> =
            scan.columns.iter().map(|column| column.sql_type.base.clone()).collect();
        let id = (scan.id, scan.is_work_table);
        match self.scope.queries.iter().rev().find(|(query, _)| *query == id) {
            Some((_, types)) => same(&format!("a scan of {}", scan.name), &own, types)?,
            None => require(!self.defined.contains(&id), || {
                format!("a scan of {} outside of its WITH", scan.name)
            })?,
        }
        Ok(own)
    }

    fn recursive_union(&mut self, union: &RecursiveUnion) -> Validation<Vec<DataType>> {
        let types = self.plan(&union.start)?;
        self.scope.queries.push(((union.id, true), types.clone()));
        let step = self.plan(&union.step);
        self.scope.queries.pop();
        same("the recursive term", &step?, &types)?;
        Ok(types)
    }
}
