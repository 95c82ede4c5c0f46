//! Access path selection: keys or ranges of the table or of an index for a scan.
//!
//! Candidates are the primary key and every active index. Each is matched against the conjuncts,
//! key column by key column: matching continues while a column is fixed to values, and ends with
//! the first range. If the table was analysed, the candidate with the lowest estimated cost is
//! chosen; a single get by the primary key is always chosen. Otherwise the best one by rule is
//! chosen, so that plans do not depend on guesses, by: whole primary key, whole key of a unique
//! index, more fixed columns, a range after them, the required order, no base-table fetch,
//! primary key before indexes.
//!
//! An inverted index is a candidate if a condition has terms ([`key_term::inverted`]). It counts as
//! one with a fixed column; all conditions are checked on the fetched rows.
//!
//! The alternatives of an OR are matched one by one, each with all other conjuncts, if each
//! restricts the key; `(a, b) IN ((1, 2), (3, 4))` is such an OR.

mod candidate;

use std::sync::Arc;

use store::TableId;
use types::DataType;
use types::expr::Expr;
use types::inverted::InvertedClass;
use types::rowcode::{ColumnPlace, KeyColumn, RowLayout};

pub(super) use candidate::{
    PathCandidate, PathGroups, PathOrder, ScanRequirements, is_checked_by_entry, needed,
};
use candidate::{is_of_all_entries, plain_columns};

use crate::catalog::table::{Index, IndexState, Table};
use crate::logical::{SortKey, TableScan};
use crate::plan::scan::{InvertedCondition, KeyCondition, KeyTerm, PathShape};
use crate::planner::conjunct::{Columns, as_column, column, columns_of, is_free, split};
use crate::planner::estimate::Estimator;
use crate::planner::key_term::computed_values::{self, DefinedValues};
use crate::planner::key_term::{self, generated};

/// Maximum number of keys or ranges, which multiply; beyond it the next column is left to the
/// filter.
const RANGES_MAX: usize = 4096;

/// Maximum number of ranges that are merged, as of salt buckets.
const MERGED_MAX: usize = 256;

/// Maximum number of conditions that are matched in order to split alternatives.
const BRANCH_CONDITIONS_MAX: usize = 1 << 16;

/// Maximum number of alternatives within an alternative that are multiplied with its conditions.
const INNER_ALTERNATIVES_MAX: usize = 4;

/// Returns the best candidate: by cost if the table was analysed, else by rule.
pub(super) fn choose(question: &ScanRequirements<'_>) -> PathCandidate {
    match &question.scan.statistics {
        Some(known) => cheapest(question, Estimator { statistics: known.as_ref() }),
        None => best_by_rule(question),
    }
}

/// Returns the candidate of an index, or of the primary key; `None` if the index lacks entries of
/// some rows, or must not be used.
pub(super) fn of_index(
    index: Option<&Arc<Index>>,
    question: &ScanRequirements<'_>,
) -> Option<PathCandidate> {
    match index {
        None => Some(primary(question)),
        Some(index) if is_usable(index, question) => of_usable(index, question),
        Some(_) => None,
    }
}

fn cheapest(question: &ScanRequirements<'_>, estimator: Estimator<'_>) -> PathCandidate {
    let mut best = primary(question);
    // A single get is always the best.
    if matches!(best.shape, PathShape::Points(1)) {
        return best;
    }
    let mut least = best.cost(question, estimator);
    for index in &question.scan.table.indexes {
        if is_usable(index, question)
            && let Some(candidate) = of_usable(index, question)
        {
            let cost = candidate.cost(question, estimator);
            if cost < least {
                (best, least) = (candidate, cost);
            }
        }
    }
    best
}

fn best_by_rule(question: &ScanRequirements<'_>) -> PathCandidate {
    let mut best = primary(question);
    for index in &question.scan.table.indexes {
        if !is_usable(index, question) {
            continue;
        }
        let Some(candidate) = of_usable(index, question) else { continue };
        let hinted = question.scan.index_hint.is_some();
        let useful = hinted
            || candidate.shape != PathShape::Full
            || (candidate.order.is_some() && (question.goal.is_some() || !candidate.lookup));
        if useful && candidate.rank(question) > best.rank(question) {
            best = candidate;
        }
    }
    best
}

/// Returns whether a hint names the index.
fn is_hinted(index: Option<&Arc<Index>>, scan: &TableScan) -> bool {
    let hint = scan.index_hint.as_ref();
    index.is_some_and(|index| hint.is_some_and(|names| names.contains(&index.name)))
}

fn is_usable(index: &Index, question: &ScanRequirements<'_>) -> bool {
    let scan = question.scan;
    let hinted = scan.index_hint.as_ref().is_none_or(|names| names.contains(&index.name));
    hinted
        && index.state == IndexState::Active
        && (scan.system_time.is_none() || question.may_time_travel_by_index && !index.is_followed)
        && holds_all(index, question)
}

/// Returns whether an index has entries of all requested rows.
fn holds_all(index: &Index, question: &ScanRequirements<'_>) -> bool {
    if !rejects_expired(index, question) {
        return false;
    }
    let Some(predicate) = &index.spec.predicate else { return true };
    let known: Vec<&Expr> = question.conjuncts.iter().collect();
    predicate.follows_from(&known)
}

/// Returns whether the conjuncts reject rows whose cell of an index key has expired: such a row
/// has no entry, and its columns in the cell are NULL.
fn rejects_expired(index: &Index, question: &ScanRequirements<'_>) -> bool {
    let layout = &index.spec.base_layout;
    let inputs = index.spec.expiring_inputs();
    let cell = |column: usize| match layout.columns[column].place {
        ColumnPlace::Packed { cell, .. } => Some(cell),
        ColumnPlace::Key(_) => None,
    };
    inputs.iter().all(|&input| {
        let has_expired = |part: &Expr| match part {
            Expr::Column { index, .. } => cell(*index) == cell(input),
            _ => false,
        };
        question.conjuncts.iter().any(|conjunct| conjunct.rejects_nulls(&has_expired))
    })
}

/// Key column of a candidate.
struct KeyPart {
    /// Its expression over table columns.
    value: Expr,
    key: KeyColumn,
    data_type: DataType,
    name: String,
    nullable: bool,
    /// The expression of a generated column that is not NULL, over table columns.
    generated: Option<Expr>,
    /// The expression by which its values are computed: that of a generated column or of an index;
    /// else the column itself.
    definition: Expr,
}

impl KeyPart {
    /// Returns the conjunction of terms on the column.
    fn condition(&self, terms: Vec<KeyTerm>) -> KeyCondition {
        KeyCondition {
            terms,
            data_type: self.data_type.clone(),
            key: self.key,
            name: self.name.clone(),
            by_definition: false,
        }
    }
}

/// Returns the expression by which the values of a key part are computed.
fn definition(table: &Table, value: &Expr) -> Expr {
    let generated = as_column(value).and_then(|column| table.columns[column].generated.as_ref());
    generated.unwrap_or(value).clone()
}

/// Returns the expression of a generated column that is not NULL.
fn generated_expression(table: &Table, column: usize) -> Option<Expr> {
    let generated = table.columns[column].generated.as_ref();
    generated.filter(|_| table.is_never_null(column)).cloned()
}

/// Returns the part of a key that is a column of the table.
fn of_table_column(table: &Table, position: usize, key: KeyColumn) -> KeyPart {
    let data_type = &table.layout.columns[position].data_type;
    let value = column(position, data_type);
    KeyPart {
        definition: definition(table, &value),
        value,
        key,
        data_type: data_type.clone(),
        name: table.columns[position].name.clone(),
        nullable: !table.is_never_null(position),
        generated: generated_expression(table, position),
    }
}

fn primary_parts(table: &Table) -> Vec<KeyPart> {
    table.layout.key.iter().map(|&key| of_table_column(table, key.column, key)).collect()
}

/// Returns the conditions on the leading columns of a table's key, if they restrict the regions
/// that a local index is read in.
fn base_conditions(index: &Index, question: &ScanRequirements<'_>) -> Vec<KeyCondition> {
    let table = &question.scan.table;
    if !index.spec.local || table.layout.salt_buckets > 0 {
        return Vec::new();
    }
    let conjuncts: Vec<&Expr> = question.conjuncts.iter().collect();
    leading(&primary_parts(table), (&conjuncts, &[]), false).conditions
}

fn primary(question: &ScanRequirements<'_>) -> PathCandidate {
    let table = &question.scan.table;
    let parts = primary_parts(table);
    candidate(question, &parts, None, table.id, Arc::clone(&table.layout))
}

fn secondary(index: &Arc<Index>, question: &ScanRequirements<'_>) -> PathCandidate {
    let spec = &index.spec;
    let table = &question.scan.table;
    let primary_key: Vec<usize> = table.key_columns().collect();
    let parts: Vec<KeyPart> = spec
        .layout
        .key
        .iter()
        .map(|&key| {
            let data_type = &spec.layout.columns[key.column].data_type;
            match spec.keys.get(key.column) {
                Some(value) => KeyPart {
                    definition: definition(table, value),
                    value: value.clone(),
                    key,
                    data_type: data_type.clone(),
                    name: spec.key_names.get(key.column).cloned().unwrap_or_default(),
                    nullable: match value {
                        Expr::Column { index, .. } => !table.is_never_null(*index),
                        _ => true,
                    },
                    generated: as_column(value)
                        .and_then(|column| generated_expression(table, column)),
                },
                None => of_table_column(table, primary_key[key.column - spec.keys.len()], key),
            }
        })
        .collect();
    let mut candidate =
        candidate(question, &parts, Some(index), spec.store_table, Arc::clone(&spec.layout));
    candidate.rest.retain(|&position| !is_of_all_entries(index, &question.conjuncts[position]));
    candidate.answered = without(question.conjuncts.len(), &candidate.rest);
    candidate.base_conditions = base_conditions(index, question);
    candidate
}

/// Returns the candidate of an index that may be used; `None` if it is inverted and no condition
/// has terms.
fn of_usable(index: &Arc<Index>, question: &ScanRequirements<'_>) -> Option<PathCandidate> {
    match index.spec.inverted {
        None => Some(secondary(index, question)),
        Some(class) => inverted(index, class, question),
    }
}

/// Returns the candidate of an inverted index. Its entries only show which rows to check.
fn inverted(
    index: &Arc<Index>,
    class: InvertedClass,
    question: &ScanRequirements<'_>,
) -> Option<PathCandidate> {
    let spec = &index.spec;
    let key = spec.keys.first()?;
    let (mut conditions, mut answered) = (Vec::new(), Vec::new());
    for (position, conjunct) in question.conjuncts.iter().enumerate() {
        if let Some(condition) = key_term::inverted::of_conjunct(conjunct, key, class) {
            conditions.push(condition);
            answered.push(position);
        } else if is_of_all_entries(index, conjunct) {
            answered.push(position);
        }
    }
    (!conditions.is_empty() && question.may_use_inverted).then(|| PathCandidate {
        index: Some(Arc::clone(index)),
        store_table: spec.store_table,
        layout: Arc::clone(&spec.layout),
        conditions: Vec::new(),
        branches: Vec::new(),
        inverted: Some(InvertedCondition::All(conditions)),
        base_conditions: base_conditions(index, question),
        shape: PathShape::Ranges(1),
        answered,
        rest: (0..question.conjuncts.len()).collect(),
        lookup: true,
        order: None,
        distinct: None,
    })
}

/// Returns the positions of `count` conjuncts that are not among some.
fn without(count: usize, positions: &[usize]) -> Vec<usize> {
    (0..count).filter(|position| !positions.contains(position)).collect()
}

fn candidate(
    question: &ScanRequirements<'_>,
    parts: &[KeyPart],
    index: Option<&Arc<Index>>,
    store_table: TableId,
    layout: Arc<RowLayout>,
) -> PathCandidate {
    let conjuncts: Vec<&Expr> = question.conjuncts.iter().collect();
    let known = known_of_rows(question);
    let known: Vec<&Expr> = known.iter().collect();
    let mut found = leading(parts, (&conjuncts, &known), index.is_some());
    // The row key of an entry of a local index is longer.
    found.whole &= !index.is_some_and(|index| index.spec.local);
    let order = match order_of(parts, &found.conditions, question.order) {
        None => merged_order(parts, &mut found, question),
        order => order,
    };
    let mut order = order;
    let distinct = match question.scan.statistics.is_some() || is_hinted(index, question.scan) {
        true => path_groups(parts, &mut found, &mut order, question),
        false => None,
    };
    let LeadingConditions { conditions, count, done, whole, .. } = found;
    let shape = match (conditions.is_empty(), whole) {
        (true, _) => PathShape::Full,
        (false, true) => PathShape::Points(count),
        (false, false) => PathShape::Ranges(count),
    };
    let plain = PathCandidate {
        index: index.cloned(),
        store_table,
        layout,
        inverted: None,
        base_conditions: Vec::new(),
        shape,
        answered: (0..done.len()).filter(|&position| done[position]).collect(),
        rest: (0..done.len()).filter(|&position| !done[position]).collect(),
        lookup: index.is_some_and(|index| needs_lookup(index, question)),
        order,
        distinct,
        conditions,
        branches: Vec::new(),
    };
    let mut best: Option<PathCandidate> = None;
    for (position, conjunct) in conjuncts.iter().enumerate() {
        if let Expr::Or(operands) = conjunct
            && let Some(branched) = branched(&plain, question, parts, (position, operands))
            && branched.is_narrower(best.as_ref().unwrap_or(&plain), question)
        {
            best = Some(branched);
        }
    }
    best.unwrap_or(plain)
}

/// Conditions on the leading columns of a key.
struct LeadingConditions {
    conditions: Vec<KeyCondition>,
    /// Number of keys or ranges.
    count: usize,
    /// Flags of the conjuncts that the conditions imply.
    done: Vec<bool>,
    /// True if all key columns are fixed.
    whole: bool,
    /// Conditions on the columns after these by their definition, which only a merge needs, and the
    /// number of ranges with them.
    surplus: (Vec<KeyCondition>, usize),
}

fn leading(
    parts: &[KeyPart],
    (conjuncts, known): (&[&Expr], &[&Expr]),
    of_index: bool,
) -> LeadingConditions {
    let mut conditions: Vec<KeyCondition> = Vec::new();
    let mut done = vec![false; conjuncts.len()];
    let mut counts = vec![1];
    for part in parts {
        let has_array = conditions.iter().any(KeyCondition::has_array);
        let conjuncts = Conjuncts { all: conjuncts, known, has_array };
        let mut count = counts.last().copied().unwrap_or(1);
        let Some(condition) = condition(part, &conjuncts, &mut count, &mut done) else {
            break;
        };
        let fixed = condition.point_count().is_some();
        conditions.push(condition);
        counts.push(count);
        if !fixed {
            break;
        }
    }
    let is_stated = |condition: &KeyCondition| !condition.by_definition;
    let used = conditions.iter().rposition(is_stated).map_or(0, |last| last + 1);
    let surplus = (conditions.split_off(used), counts.last().copied().unwrap_or(1));
    let count = counts[used];
    // An index entry with a NULL has a longer key, so it needs a range.
    let whole = conditions.len() == parts.len()
        && conditions.iter().all(|condition| {
            condition.point_count().is_some()
                && !(of_index && condition.terms.iter().any(|term| term.allows_null()))
        });
    LeadingConditions { conditions, count, done, whole, surplus }
}

/// Returns the conditions that each row satisfies. A past row need not satisfy a constraint of the
/// present.
fn known_of_rows(question: &ScanRequirements<'_>) -> Vec<Expr> {
    let mut conjuncts = Vec::new();
    if question.scan.system_time.is_none() {
        let checks = question.scan.table.constraints.checks.iter().filter(|check| check.valid);
        checks.for_each(|check| split(check.predicate.clone(), &mut conjuncts));
    }
    conjuncts
}

/// Returns the required order of the first rows by a merge of the ranges with different values of
/// leading columns, and adds the conditions that it needs.
fn merged_order(
    parts: &[KeyPart],
    found: &mut LeadingConditions,
    question: &ScanRequirements<'_>,
) -> Option<PathOrder> {
    question.goal?;
    let (surplus, count) = &found.surplus;
    let all: Vec<&KeyCondition> = found.conditions.iter().chain(surplus).collect();
    let is_list =
        |condition: &&&KeyCondition| condition.point_count().is_some() && !condition.has_array();
    let lists = all.iter().take_while(is_list).count();
    let stated = found.conditions.len();
    for merged in 1..=lists {
        let product = all[..merged].iter().filter_map(|one| one.point_count()).product::<usize>();
        let conditions: Vec<KeyCondition> =
            all[..merged.max(stated)].iter().map(|&one| one.clone()).collect();
        if product > MERGED_MAX || found.whole {
            break;
        }
        let Some(order) = order_after(parts, merged, &conditions, question.order) else { continue };
        if conditions.len() > stated {
            found.count = *count;
        }
        found.conditions = conditions;
        return Some(order);
    }
    None
}

/// Matches the alternatives of a disjunction one by one, each with all other conjuncts: `(a = 1
/// AND b = 2) OR (a = 3 AND b = 4)`, which `(a, b) IN ((1, 2), (3, 4))` is. `None`: one of them
/// does not restrict the key, or there are too many.
fn branched(
    plain: &PathCandidate,
    question: &ScanRequirements<'_>,
    parts: &[KeyPart],
    (position, operands): (usize, &[Expr]),
) -> Option<PathCandidate> {
    let others: Vec<usize> = (0..question.conjuncts.len()).filter(|&p| p != position).collect();
    let alternatives = alternatives(operands);
    let many = alternatives.len().saturating_mul(others.len() + 1) > BRANCH_CONDITIONS_MAX;
    if many || alternatives.iter().all(|own| own.len() == 1) {
        return None;
    }
    let mut branches = Vec::with_capacity(alternatives.len());
    let (mut count, mut whole, mut exact) = (0_usize, true, true);
    let mut answered = vec![true; others.len()];
    for own in alternatives {
        let shared = others.iter().map(|&other| &question.conjuncts[other]);
        let all: Vec<&Expr> = own.iter().copied().chain(shared).collect();
        let found = leading(parts, (&all, &[]), plain.index.is_some());
        count = count.saturating_add(found.count);
        if found.conditions.is_empty() || count > RANGES_MAX {
            return None;
        }
        whole &= found.whole && !plain.index.as_ref().is_some_and(|index| index.spec.local);
        exact &= found.done[..own.len()].iter().all(|&done| done);
        answered.iter_mut().zip(&found.done[own.len()..]).for_each(|(all, &one)| *all &= one);
        branches.push(found.conditions);
    }
    let others = others.into_iter().zip(answered).filter(|(_, answered)| !answered);
    let mut rest: Vec<usize> = others.map(|(other, _)| other).collect();
    if !exact {
        rest.push(position);
        rest.sort_unstable();
    }
    Some(PathCandidate {
        index: plain.index.clone(),
        store_table: plain.store_table,
        layout: Arc::clone(&plain.layout),
        conditions: Vec::new(),
        inverted: None,
        base_conditions: Vec::new(),
        answered: without(question.conjuncts.len(), &rest),
        shape: if whole { PathShape::Points(count) } else { PathShape::Ranges(count) },
        rest,
        lookup: plain.lookup,
        order: order_of(parts, &branches[0][..shared_conditions(&branches)], question.order),
        distinct: None,
        branches,
    })
}

/// Returns the leading columns that include the keys of the required groups, if their first rows
/// are those of the groups: all conditions are on these columns, or on those behind them by their
/// values. Sets the order in which the rows are first.
fn path_groups(
    parts: &[KeyPart],
    found: &mut LeadingConditions,
    order: &mut Option<PathOrder>,
    question: &ScanRequirements<'_>,
) -> Option<PathGroups> {
    let groups = question.groups.filter(|_| !found.whole)?;
    let place = |key: &Expr| parts.iter().position(|part| part.value == *key);
    let places: Vec<usize> =
        groups.keys.iter().filter(|key| !is_free(key)).map(place).collect::<Option<_>>()?;
    let columns = places.into_iter().max()? + 1;
    let keys: Vec<Expr> = parts[..columns].iter().map(|part| part.value.clone()).collect();
    let mut done = found.done.clone();
    let mut conditions = Vec::new();
    if found.conditions.len() <= columns {
        let conjuncts: Vec<&Expr> = question.conjuncts.iter().collect();
        let conjuncts = Conjuncts { all: &conjuncts, known: &[], has_array: false };
        let mut count = 1;
        for part in &parts[columns..] {
            let condition = condition(part, &conjuncts, &mut count, &mut done);
            let Some(condition) = condition.filter(|condition| !condition.by_definition) else {
                break;
            };
            let is_fixed = condition.point_count().is_some();
            conditions.push(condition);
            if !is_fixed {
                break;
            }
        }
    }
    let of_prefix = plain_columns(&keys);
    let is_checked =
        |(conjunct, done): (&Expr, &bool)| *done || columns_of(conjunct).is_subset(&of_prefix);
    if !question.conjuncts.iter().zip(&done).all(is_checked) {
        return None;
    }
    let first = match question.order.is_empty() {
        false => order.filter(|order| order.merged == 0)?,
        true => {
            let is_behind = |key: &&SortKey| !keys.contains(&key.expression);
            let within: Vec<SortKey> = groups.order.iter().filter(is_behind).cloned().collect();
            let mut all = found.conditions.clone();
            if all.len() <= columns {
                // The columns between have no single value.
                let free = |part: &KeyPart| part.condition(Vec::new());
                all.extend(parts[all.len()..columns].iter().map(free));
                all.extend(conditions.iter().cloned());
            }
            PathOrder { merged: 0, ..order_after(parts, columns, &all, &within)? }
        }
    };
    found.done = done;
    *order = Some(first);
    Some(PathGroups { keys, conditions })
}

/// Returns the number of leading columns that all branches fix to the same value.
fn shared_conditions(branches: &[Vec<KeyCondition>]) -> usize {
    let Some((first, others)) = branches.split_first() else { return 0 };
    let is_shared = |(at, condition): &(usize, &KeyCondition)| {
        let is_equal = |other: &Vec<KeyCondition>| {
            other.get(*at).is_some_and(|other| other.terms == condition.terms)
        };
        condition.is_single_point() && others.iter().all(is_equal)
    };
    first.iter().enumerate().take_while(is_shared).count()
}

/// Returns the alternatives of a disjunction, each as its conditions. `(a, b, c) > (1, 2, 3)` has
/// alternatives within an alternative, which are multiplied with its other conditions.
fn alternatives(operands: &[Expr]) -> Vec<Vec<&Expr>> {
    let mut all = Vec::with_capacity(operands.len());
    for operand in operands {
        let Expr::And(list) = operand else {
            all.push(vec![operand]);
            continue;
        };
        let inner = list.iter().find_map(|one| match one {
            Expr::Or(inner) if inner.len() <= INNER_ALTERNATIVES_MAX => Some((one, inner)),
            _ => None,
        });
        let Some((divided, inner)) = inner else {
            all.push(list.iter().collect());
            continue;
        };
        let others = || list.iter().filter(|one| !std::ptr::eq(*one, divided));
        all.extend(alternatives(inner).into_iter().map(|own| others().chain(own).collect()));
    }
    all
}

struct Conjuncts<'a> {
    all: &'a [&'a Expr],
    /// Conditions that each row satisfies.
    known: &'a [&'a Expr],
    /// True if a column before this one has the values of an array. It may be long, so that a
    /// second array is not multiplied with it.
    has_array: bool,
}

/// Collects the terms on a key column from the conjuncts. Marks the conjuncts that they imply.
fn condition(
    part: &KeyPart,
    conjuncts: &Conjuncts<'_>,
    count: &mut usize,
    done: &mut [bool],
) -> Option<KeyCondition> {
    let mut terms = Vec::new();
    let mut exact = Vec::new();
    for (position, conjunct) in conjuncts.all.iter().enumerate() {
        if let Some(matched) = key_term::of_conjunct(conjunct, &part.value)
            && !(conjuncts.has_array && matched.term.has_array())
        {
            terms.push(matched.term);
            if matched.exact {
                exact.push(position);
            }
        }
    }
    if let Some(expression) = part.generated.as_ref().filter(|_| terms.is_empty()) {
        terms = generated::implied(expression, conjuncts.all);
    }
    let mut by_definition = false;
    if terms.is_empty()
        && let Some(DefinedValues { term, is_restricted }) =
            computed_values::of_definition(&part.definition, conjuncts.all, conjuncts.known)
    {
        by_definition = !is_restricted;
        terms.push(match part.nullable {
            true => KeyTerm::Any(vec![term, KeyTerm::IsNull]),
            false => term,
        });
    }
    let condition = KeyCondition { by_definition, ..part.condition(terms) };
    let only_not_null =
        condition.terms.iter().all(|term| matches!(term, KeyTerm::IsNotNull) && !part.nullable);
    if only_not_null {
        // The condition is implied by NOT NULL and needs no check.
        exact.into_iter().for_each(|position| done[position] = true);
        return None;
    }
    let product = count.saturating_mul(condition.range_count());
    if product > RANGES_MAX {
        return None;
    }
    *count = product;
    exact.into_iter().for_each(|position| done[position] = true);
    Some(condition)
}

fn needs_lookup(index: &Index, question: &ScanRequirements<'_>) -> bool {
    if question.scan.lock.is_some() {
        return true;
    }
    let covered: Columns = index.spec.covered_columns().iter().map(|(base, _)| *base).collect();
    let checked = question.conjuncts.iter().filter(|one| !is_of_all_entries(index, one));
    needed(question.scan, checked).iter().any(|column| !covered.contains(column))
}

/// Returns how the key order, or its reverse, is the required order.
fn order_of(
    parts: &[KeyPart],
    conditions: &[KeyCondition],
    order: &[SortKey],
) -> Option<PathOrder> {
    order_after(parts, 0, conditions, order)
}

/// As [`order_of`], with ranges that are merged over the first `merged` columns.
fn order_after(
    parts: &[KeyPart],
    merged: usize,
    conditions: &[KeyCondition],
    order: &[SortKey],
) -> Option<PathOrder> {
    let mut reverse = None;
    let is_whole_order = merged == 0 && parts.iter().all(|part| !part.nullable);
    let mut following: Option<bool> = None;
    let mut parts = parts.iter().enumerate().skip(merged);
    'keys: for key in order {
        for (position, part) in parts.by_ref() {
            let fixed = conditions.get(position).is_some_and(KeyCondition::is_single_point);
            if part.value != key.expression {
                // A column with a single value does not affect the order.
                if fixed {
                    continue;
                }
                // Nor does one that never decreases with the next column.
                let source = part.generated.as_ref().and_then(generated::ordering_source);
                if following.is_none() && source.as_ref() == Some(&key.expression) {
                    following = Some(part.key.descending);
                    continue;
                }
                return None;
            }
            if following.take().is_some_and(|descending| descending != part.key.descending) {
                return None;
            }
            if fixed {
                continue 'keys;
            }
            let nulls_agree = part.key.nulls_first == key.nulls_first;
            let same = part.key.descending == key.descending;
            if part.nullable && nulls_agree != same {
                return None;
            }
            if *reverse.get_or_insert(!same) == same {
                return None;
            }
            continue 'keys;
        }
        // After the whole key no two rows are equal, unless it contains a NULL, or rows of merged
        // ranges differ only in the columns before.
        let order = PathOrder { reverse: reverse.unwrap_or(false), merged };
        return (is_whole_order && following.is_none()).then_some(order);
    }
    Some(PathOrder { reverse: reverse.unwrap_or(false), merged })
}
