//! Binding of GROUP BY: the grouping keys and the grouping sets.
//!
//! Each entry stands for one set of keys or, with ROLLUP, CUBE and GROUPING SETS, for several; the
//! grouping sets of a query are the cross product of the sets of its entries. Source: PostgreSQL's
//! parse_agg.c (`expand_grouping_sets`).

use types::expr::Expr;

use crate::ast::{self, GroupItem, Select};
use crate::binder::level::{
    AGGREGATE, Binder, Clause, GroupingCall, SET, WINDOW, aggregate_not_allowed,
};
use crate::binder::query_limits;
use crate::binder::select::{Target, named_target};
use crate::binder::tree::for_each_column;
use crate::binder::typed::{Typed, check_equality};
use crate::binder::window::window_not_allowed;
use crate::error::{Error, Result};

/// The maximum number of grouping sets of a query.
const SETS_MAX: usize = 4096;
/// The maximum number of elements of CUBE, which stands for two to that power of sets.
const CUBE_MAX: usize = 12;
/// The maximum number of arguments of GROUPING, whose result is a bit mask of type integer.
const GROUPING_MAX: usize = 31;

/// The bound GROUP BY.
#[derive(Default)]
pub(super) struct GroupBy {
    /// The keys of all sets, over the base row. Equal keys occur only with several sets, for
    /// different select list entries with the same value.
    pub(super) keys: Vec<Expr>,
    /// Select list entries that are keys, with the position of the key.
    pub(super) targets: Vec<(usize, usize)>,
    /// The keys of each set, by position, ascending; `None` if all keys are one set.
    pub(super) sets: Option<Vec<Vec<usize>>>,
}

/// The keys that were bound so far, with the select list that GROUP BY may refer to.
struct GroupingKeys<'a> {
    keys: Vec<Expr>,
    /// The select list entry of each key, if it is one.
    entries: Vec<Option<usize>>,
    targets: &'a mut [Target],
}

impl Binder<'_> {
    /// Binds GROUP BY. `targets` are the columns of the result.
    pub(super) fn bind_group_by(
        &mut self,
        select: &Select,
        targets: &mut [Target],
    ) -> Result<GroupBy> {
        self.level().clause = Clause::GroupBy;
        let mut keys = GroupingKeys { keys: Vec::new(), entries: Vec::new(), targets };
        let mut sets: Vec<Vec<usize>> = vec![Vec::new()];
        for item in &select.group_by {
            let of_item = self.bind_group_item(item, &mut keys)?;
            query_limits::check_entries(keys.keys.len())?;
            if sets.len().saturating_mul(of_item.len()) > SETS_MAX {
                return Err(too_many_sets());
            }
            let with_each =
                |set: &Vec<usize>| of_item.iter().map(|other| [&set[..], other].concat()).collect();
            sets = sets.iter().flat_map::<Vec<Vec<usize>>, _>(with_each).collect();
        }
        for set in &mut sets {
            set.sort_unstable();
            set.dedup();
        }
        if select.distinct_groups {
            sets.sort_unstable();
            sets.dedup();
        }
        let GroupingKeys { mut keys, entries, .. } = keys;
        if sets.len() == 1 {
            let mut known: Vec<Expr> = Vec::with_capacity(keys.len());
            keys.retain(|key| {
                let is_new = !known.contains(key);
                known.extend(is_new.then(|| key.clone()));
                is_new
            });
            return Ok(GroupBy { keys, ..GroupBy::default() });
        }
        let targets = entries.iter().enumerate();
        let targets = targets.filter_map(|(key, entry)| entry.map(|entry| (entry, key))).collect();
        Ok(GroupBy { keys, targets, sets: Some(sets) })
    }

    /// Returns the grouping sets of an entry.
    fn bind_group_item(
        &mut self,
        item: &GroupItem,
        keys: &mut GroupingKeys<'_>,
    ) -> Result<Vec<Vec<usize>>> {
        match item {
            GroupItem::Expr(expr) => Ok(vec![vec![self.bind_group_key(expr, keys)?]]),
            GroupItem::List(list) => Ok(vec![self.bind_group_keys(list, keys)?]),
            GroupItem::Rollup(units) => {
                let units = self.bind_group_units(units, keys)?;
                Ok((0..=units.len()).rev().map(|count| units[..count].concat()).collect())
            }
            GroupItem::Cube { units, position } => {
                if units.len() > CUBE_MAX {
                    bail!(TOO_MANY_COLUMNS: "CUBE is limited to {CUBE_MAX} elements"; at *position);
                }
                let units = self.bind_group_units(units, keys)?;
                let chosen = |choice: usize| {
                    let units = units.iter().enumerate();
                    let chosen = units.filter(|(at, _)| choice & (1 << at) != 0);
                    chosen.flat_map(|(_, unit)| unit.iter().copied()).collect()
                };
                Ok((0..1_usize << units.len()).rev().map(chosen).collect())
            }
            GroupItem::Sets(items) => {
                let mut sets = Vec::new();
                for item in items {
                    sets.extend(self.bind_group_item(item, keys)?);
                    if sets.len() > SETS_MAX {
                        return Err(too_many_sets());
                    }
                }
                Ok(sets)
            }
        }
    }

    fn bind_group_units(
        &mut self,
        units: &[Vec<ast::Expr>],
        keys: &mut GroupingKeys<'_>,
    ) -> Result<Vec<Vec<usize>>> {
        units.iter().map(|unit| self.bind_group_keys(unit, keys)).collect()
    }

    fn bind_group_keys(
        &mut self,
        list: &[ast::Expr],
        keys: &mut GroupingKeys<'_>,
    ) -> Result<Vec<usize>> {
        list.iter().map(|expr| self.bind_group_key(expr, keys)).collect()
    }

    /// Binds a key and returns its position.
    fn bind_group_key(&mut self, item: &ast::Expr, keys: &mut GroupingKeys<'_>) -> Result<usize> {
        let is_input = matches!(item, ast::Expr::Column(parts) if parts.len() == 1
            && self.level().scope.find(parts).is_ok_and(|found| found.is_some()));
        let named = if is_input { None } else { named_target(item, keys.targets, "GROUP BY")? };
        let key = match named {
            Some(target) => {
                let target = &mut keys.targets[target];
                target.value = self.resolve_unknown(target.value.clone())?;
                check_equality(&target.value)?;
                target.value.expr.clone()
            }
            None => {
                let value = self.bind_expr(item)?;
                let value = self.resolve_unknown(value)?;
                check_equality(&value)?;
                value.expr
            }
        };
        let (mut has_aggregate, mut has_window) = (false, false);
        for_each_column(&key, &mut |index| {
            has_aggregate |= (AGGREGATE..WINDOW).contains(&index);
            has_window |= (WINDOW..SET).contains(&index);
        });
        if has_window {
            return Err(window_not_allowed(Clause::GroupBy).at(item.position()));
        }
        if has_aggregate {
            return Err(aggregate_not_allowed(Clause::GroupBy).at(item.position()));
        }
        // As in PostgreSQL, select list entries with equal values are different keys.
        let entry =
            named.or_else(|| keys.targets.iter().position(|target| target.value.expr == key));
        let mut known = keys.keys.iter().zip(&keys.entries);
        Ok(known.position(|(one, of)| *one == key && *of == entry).unwrap_or_else(|| {
            keys.keys.push(key);
            keys.entries.push(entry);
            keys.keys.len() - 1
        }))
    }

    /// Binds GROUPING: a bit mask of the arguments that are not in the grouping set, the last
    /// argument in the lowest bit.
    pub(super) fn bind_grouping(
        &mut self,
        arguments: &[ast::FunctionArgument],
        position: usize,
    ) -> Result<Typed> {
        if arguments.len() > GROUPING_MAX {
            bail!(TOO_MANY_ARGUMENTS: "GROUPING must have fewer than 32 arguments"; at position);
        }
        let before = self.marks();
        let mut bound = Vec::new();
        for argument in arguments {
            let value = self.bind_expr(&argument.value)?;
            bound.push((self.resolve_unknown(value)?.expr, argument.value.position()));
        }
        if let Some(depth) = self.depth_of(bound.iter().map(|(argument, _)| argument)) {
            self.restore_marks(&before);
            return self.at_outer_level(depth, |binder| binder.bind_grouping(arguments, position));
        }
        let level = self.level();
        if level.in_aggregate {
            bail!(GROUPING_ERROR: "aggregate function calls cannot be nested"; at position);
        }
        if !level.clause.allows_aggregates() {
            let clause = level.clause.name();
            bail!(GROUPING_ERROR: "grouping operations are not allowed in {clause}"; at position);
        }
        let call = GroupingCall { arguments: bound };
        Ok(Typed::new(level.add_grouping(call), types::DataType::Int4, position))
    }
}

fn too_many_sets() -> Error {
    err!(STATEMENT_TOO_COMPLEX: "too many grouping sets present (maximum {SETS_MAX})")
}
