//! Evaluation of a filter during a scan: for each row before it is read, for each cell, and at
//! the row's end.
//!
//! Calls for each row: [`FilterRun::start_row`]; [`FilterRun::cell`] for each cell, in cell
//! order; [`FilterRun::keeps_row`] if any was included; [`FilterRun::row_returned`] if it is part
//! of the result.
//!
//! The answer for a cell has two parts: whether the cell is included, and the distance to the
//! next cell that the filter needs to see ([`Jump`]). In a conjunction of filters, a cell is
//! included if all include it, and the furthest jump is taken; in a disjunction, if one includes
//! it, and the nearest jump is taken, and a filter does not see cells that it has jumped over.
//! HBase's return codes are pairs of the two.

use std::cmp::Ordering;
use std::sync::Arc;

use smallvec::SmallVec;

use crate::cell::{CellRef, RowRef, Timestamp};
use crate::descriptor::FamilyDescriptor;
use crate::error::{Error, Result};
use crate::scan::filter::compare::Test;
use crate::scan::filter::fuzzy::FuzzyMatch;
use crate::scan::filter::ranges::{Ranges, SetPosition};
use crate::scan::filter::{ColumnCondition, ColumnOffset, Filter, FuzzyRow, RowPredicate};
use crate::scan::merge::RowOrder;

/// A qualifier, usually without a heap allocation.
pub type Qualifier = SmallVec<[u8; 24]>;

/// Result of a filter for a row before its cells are read.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum RowAnswer {
    /// The cells must be read.
    Read,
    /// The row is rejected.
    Refuse,
    /// The row is rejected, and so is every row before the first one at or after these bytes (in
    /// reverse: every row after the last one before them).
    Seek(Vec<u8>),
    /// The row is rejected, and so is every row that follows.
    End,
}

/// The next cell that a filter needs to see. Ordered by distance.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Jump {
    /// The next cell.
    Next,
    /// The first cell after this column.
    Column,
    /// At or after this qualifier, which is above that of the cell.
    To(Qualifier),
    /// In the next family, if not in the next row.
    Row,
}

/// The part of an included cell's value that is returned. Ordered by loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum ReturnedValue {
    /// All of it.
    Whole,
    /// Its length, in 4 bytes.
    Length,
    /// Nothing.
    Nothing,
}

/// Result of a filter for a cell.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct CellAnswer {
    /// True if the cell is part of the result.
    pub include: bool,
    /// The next cell that the filter needs to see.
    pub jump: Jump,
    /// The part of the value that is returned.
    pub value: ReturnedValue,
}

impl CellAnswer {
    fn new(include: bool, jump: Jump) -> CellAnswer {
        CellAnswer { include, jump, value: ReturnedValue::Whole }
    }
}

/// A filter in evaluation on one scan.
pub struct FilterRun {
    root: Node,
    order: RowOrder,
}

impl FilterRun {
    /// Prepares a filter for a scan of a table with these families.
    ///
    /// # Errors
    ///
    /// [`Error::InvalidRequest`] for invalid comparisons, and for unknown families.
    pub fn new(
        filter: &Filter,
        families: &[FamilyDescriptor],
        order: RowOrder,
    ) -> Result<FilterRun> {
        Ok(FilterRun { root: Node::new(filter, families)?, order })
    }

    /// Returns whether the filter depends on cells, beyond their row.
    pub fn sees_cells(&self) -> bool {
        self.root.any(&|node| {
            !matches!(node, Node::Rows(_) | Node::RowTest(_) | Node::Fuzzy(_) | Node::Page { .. })
                && !matches!(node, Node::All(_) | Node::Any(_) | Node::WhileMatch { .. })
                && !matches!(node, Node::Custom(_))
        })
    }

    /// Returns whether the filter decides about a row only after all of its cells were seen.
    pub fn needs_whole_rows(&self) -> bool {
        self.root.any(&|node| {
            matches!(node, Node::SingleColumn(_) | Node::Custom(_) | Node::Skip { .. })
        })
    }

    /// Returns whether a cell of a row may decide about others, or about what follows: the filter
    /// must then see all of them, including those beyond the limits of the read.
    pub fn decides_by_any_cell(&self) -> bool {
        self.root.any(&|node| {
            matches!(node, Node::SingleColumn(_) | Node::ColumnPage { .. })
                || matches!(node, Node::Skip { .. } | Node::WhileMatch { .. })
        })
    }

    /// Begins a row.
    pub fn start_row(&mut self, row: &[u8]) -> RowAnswer {
        self.root.start_row(row, self.order)
    }

    /// Evaluates the next cell of the row.
    pub fn cell(&mut self, cell: &CellRef<'_>) -> CellAnswer {
        self.root.cell(cell)
    }

    /// Returns whether the row is part of the result. `row` has the cells that were included.
    pub fn keeps_row(&mut self, row: &RowRef<'_>) -> Result<bool> {
        self.root.keeps_row(row)
    }

    /// Records that the row is part of the result.
    pub fn row_returned(&mut self) {
        self.root.row_returned();
    }

    /// Returns the filter with its remaining counts, for a scan that continues from here.
    pub fn rest(&self, filter: &Filter) -> Filter {
        self.root.rest(filter)
    }
}

/// A filter with its state.
enum Node {
    All(Vec<FilterPart>),
    Any(Vec<FilterPart>),
    WhileMatch {
        inner: Box<Node>,
        /// True if the present row is rejected. That ends the scan once the row has a visible
        /// cell: a row without one does not exist.
        refuses_row: bool,
        ended: bool,
    },
    Skip {
        inner: Box<Node>,
        refused: bool,
    },
    Rows(Ranges),
    Fuzzy(Vec<FuzzyRow>),
    RowTest(Test),
    Page {
        left: u64,
    },
    /// By index of the family.
    Families(Vec<bool>),
    Columns(Ranges),
    ColumnTest(Test),
    ColumnPage {
        limit: u32,
        offset: ColumnOffset,
        seen: u32,
    },
    Value(Test),
    ColumnValue {
        family: u8,
        qualifier: Vec<u8>,
        test: Test,
    },
    /// Ascending.
    Timestamps(Vec<Timestamp>),
    FirstKey {
        found: bool,
    },
    KeyOnly(ReturnedValue),
    SingleColumn(Box<SingleColumn>),
    Custom(Arc<dyn RowPredicate>),
}

/// A filter of a list, and its state for the present row.
struct FilterPart {
    node: Node,
    refuses_row: bool,
    included_any: bool,
    keeps_row: bool,
    jumped: Option<DeferredJump>,
}

/// A deferred jump: another filter of the list needs to see cells that it would skip.
struct DeferredJump {
    family: u8,
    from: Qualifier,
    jump: Jump,
}

struct SingleColumn {
    condition: ColumnCondition,
    test: Test,
    /// The decision of the column, if it was seen.
    matched: Option<bool>,
}

impl Node {
    fn new(filter: &Filter, families: &[FamilyDescriptor]) -> Result<Node> {
        let list = |filters: &[Filter]| -> Result<Vec<FilterPart>> {
            filters.iter().map(|filter| Node::new(filter, families).map(FilterPart::new)).collect()
        };
        let inner = |filter: &Filter| Node::new(filter, families).map(Box::new);
        Ok(match filter {
            Filter::All(filters) => Node::All(list(filters)?),
            Filter::Any(filters) => Node::Any(list(filters)?),
            Filter::WhileMatch(filter) => {
                Node::WhileMatch { inner: inner(filter)?, refuses_row: false, ended: false }
            }
            Filter::Skip(filter) => Node::Skip { inner: inner(filter)?, refused: false },
            Filter::RowPrefix(prefix) => {
                Node::Rows(Ranges::of_prefixes(std::slice::from_ref(prefix)))
            }
            Filter::RowRanges(list) => {
                let bounds = list.iter().map(|range| Ranges::of_bounds(&range.start, &range.stop));
                Node::Rows(Ranges::new(bounds.collect()))
            }
            Filter::FuzzyRow(patterns) => Node::Fuzzy(patterns.clone()),
            Filter::Row(comparison) => match Ranges::of_comparison(comparison) {
                Some(ranges) => Node::Rows(ranges),
                None => Node::RowTest(Test::new(comparison)?),
            },
            Filter::Page(rows) => Node::Page { left: *rows },
            Filter::Family(comparison) => {
                let test = Test::new(comparison)?;
                Node::Families(families.iter().map(|f| test.passes(f.name.as_bytes())).collect())
            }
            Filter::Qualifier(comparison) => match Ranges::of_comparison(comparison) {
                Some(ranges) => Node::Columns(ranges),
                None => Node::ColumnTest(Test::new(comparison)?),
            },
            Filter::ColumnPrefix(prefixes) => Node::Columns(Ranges::of_prefixes(prefixes)),
            Filter::ColumnRange { start, stop } => {
                Node::Columns(Ranges::new(vec![Ranges::of_bounds(start, stop)]))
            }
            Filter::ColumnPage { limit, offset } => {
                Node::ColumnPage { limit: *limit, offset: offset.clone(), seen: 0 }
            }
            Filter::Value(comparison) => Node::Value(Test::new(comparison)?),
            Filter::ColumnValue { family, qualifier, value } => {
                check_family(*family, families)?;
                let (family, qualifier) = (*family, qualifier.clone());
                Node::ColumnValue { family, qualifier, test: Test::new(value)? }
            }
            Filter::Timestamps(timestamps) => {
                let mut timestamps = timestamps.clone();
                timestamps.sort_unstable();
                Node::Timestamps(timestamps)
            }
            Filter::FirstKeyOnly => Node::FirstKey { found: false },
            Filter::KeyOnly { length_as_value: true } => Node::KeyOnly(ReturnedValue::Length),
            Filter::KeyOnly { length_as_value: false } => Node::KeyOnly(ReturnedValue::Nothing),
            Filter::SingleColumnValue(condition) => {
                check_family(condition.family, families)?;
                let test = Test::new(&condition.value)?;
                let condition = ColumnCondition::clone(condition);
                Node::SingleColumn(Box::new(SingleColumn { condition, test, matched: None }))
            }
            Filter::Custom(predicate) => Node::Custom(Arc::clone(predicate)),
        })
    }

    /// Returns whether a predicate holds for this filter or for one inside it.
    fn any(&self, is_so: &dyn Fn(&Node) -> bool) -> bool {
        is_so(self)
            || match self {
                Node::All(parts) | Node::Any(parts) => {
                    parts.iter().any(|part| part.node.any(is_so))
                }
                Node::WhileMatch { inner, .. } | Node::Skip { inner, .. } => inner.any(is_so),
                _ => false,
            }
    }

    fn start_row(&mut self, row: &[u8], order: RowOrder) -> RowAnswer {
        match self {
            Node::All(parts) => start_all(parts, row, order),
            Node::Any(parts) => start_any(parts, row, order),
            Node::WhileMatch { ended: true, .. } | Node::Page { left: 0 } => RowAnswer::End,
            Node::WhileMatch { inner, refuses_row, .. } => {
                *refuses_row = inner.start_row(row, order) != RowAnswer::Read;
                RowAnswer::Read
            }
            Node::Skip { inner, refused } => {
                *refused = false;
                inner.start_row(row, order)
            }
            Node::Rows(ranges) => match ranges.find(row, order) {
                SetPosition::In => RowAnswer::Read,
                SetPosition::Before(next) => RowAnswer::Seek(next.to_vec()),
                SetPosition::Past => RowAnswer::End,
            },
            Node::Fuzzy(patterns) => nearest(
                order,
                patterns.iter().map(|pattern| match pattern.find(row, order) {
                    FuzzyMatch::Match => RowAnswer::Read,
                    FuzzyMatch::Next(next) => RowAnswer::Seek(next),
                    FuzzyMatch::Past => RowAnswer::End,
                }),
            ),
            Node::RowTest(test) if !test.passes(row) => RowAnswer::Refuse,
            Node::ColumnPage { seen, .. } => {
                *seen = 0;
                RowAnswer::Read
            }
            Node::FirstKey { found } => {
                *found = false;
                RowAnswer::Read
            }
            Node::SingleColumn(single) => {
                single.matched = None;
                RowAnswer::Read
            }
            _ => RowAnswer::Read,
        }
    }

    fn cell(&mut self, cell: &CellRef<'_>) -> CellAnswer {
        match self {
            Node::All(parts) => cell_of_all(parts, cell),
            Node::Any(parts) => cell_of_any(parts, cell),
            Node::WhileMatch { ended: true, .. } | Node::Skip { refused: true, .. } => {
                CellAnswer::new(false, Jump::Row)
            }
            Node::WhileMatch { refuses_row: true, ended, .. } => {
                *ended = true;
                CellAnswer::new(false, Jump::Row)
            }
            Node::WhileMatch { inner, ended: failed, .. }
            | Node::Skip { inner, refused: failed } => {
                let answer = inner.cell(cell);
                *failed = !answer.include;
                match *failed {
                    true => CellAnswer::new(false, Jump::Row),
                    // The inner filter rejects cells that it would skip, and that decides.
                    false => CellAnswer { jump: Jump::Next, ..answer },
                }
            }
            Node::KeyOnly(kept) => CellAnswer { value: *kept, ..CellAnswer::new(true, Jump::Next) },
            Node::SingleColumn(single) => single.cell(cell),
            _ => {
                let (include, jump) = self.cell_of_leaf(cell);
                CellAnswer::new(include, jump)
            }
        }
    }

    fn cell_of_leaf(&mut self, cell: &CellRef<'_>) -> (bool, Jump) {
        match self {
            Node::Families(wanted) => match wanted.get(usize::from(cell.family)) {
                Some(true) => (true, Jump::Next),
                _ => (false, Jump::Row),
            },
            Node::Columns(ranges) => match ranges.find(cell.qualifier, RowOrder::Forward) {
                SetPosition::In => (true, Jump::Next),
                SetPosition::Before(next) => (false, Jump::To(Qualifier::from_slice(next))),
                SetPosition::Past => (false, Jump::Row),
            },
            Node::ColumnTest(test) if test.passes(cell.qualifier) => (true, Jump::Next),
            Node::ColumnTest(_) => (false, Jump::Column),
            Node::ColumnPage { limit, offset, seen } => column_page(*limit, offset, seen, cell),
            Node::Value(test) => (test.passes(cell.value), Jump::Next),
            Node::ColumnValue { family, qualifier, test } => {
                let column = (cell.family, cell.qualifier).cmp(&(*family, &qualifier[..]));
                match column {
                    Ordering::Equal => (test.passes(cell.value), Jump::Next),
                    Ordering::Less if cell.family == *family => {
                        (false, Jump::To(Qualifier::from_slice(qualifier)))
                    }
                    _ => (false, Jump::Row),
                }
            }
            Node::Timestamps(wanted) => {
                let include = wanted.binary_search(&cell.timestamp).is_ok();
                let more = wanted.first().is_some_and(|first| cell.timestamp > *first);
                (include, if more { Jump::Next } else { Jump::Column })
            }
            Node::FirstKey { found } => (!std::mem::replace(found, true), Jump::Row),
            _ => (true, Jump::Next),
        }
    }

    /// Shortens a jump so that it does not skip a cell that a filter must see.
    fn shortened(&self, cell: &CellRef<'_>, jump: Jump) -> Jump {
        match self {
            Node::All(parts) | Node::Any(parts) => {
                parts.iter().fold(jump, |jump, part| part.node.shortened(cell, jump))
            }
            Node::WhileMatch { inner, .. } | Node::Skip { inner, .. } => {
                inner.shortened(cell, jump)
            }
            Node::SingleColumn(single) => {
                let ColumnCondition { family, qualifier, any_version, .. } = &single.condition;
                match (single.matched, qualifier[..].cmp(cell.qualifier)) {
                    _ if *family != cell.family => jump,
                    (None, Ordering::Greater) => {
                        jump.min(Jump::To(Qualifier::from_slice(qualifier)))
                    }
                    // An older version may satisfy the condition.
                    (Some(false), Ordering::Equal) if *any_version => Jump::Next,
                    _ => jump,
                }
            }
            _ => jump,
        }
    }

    fn keeps_row(&mut self, row: &RowRef<'_>) -> Result<bool> {
        Ok(match self {
            Node::All(parts) => {
                let mut all = true;
                for part in parts {
                    all &= part.node.keeps_row(row)?;
                }
                all
            }
            Node::Any(parts) => {
                let mut any = false;
                for part in parts {
                    part.keeps_row =
                        !part.refuses_row && part.included_any && part.node.keeps_row(row)?;
                    any |= part.keeps_row;
                }
                any
            }
            Node::WhileMatch { inner, ended, .. } => {
                let keeps = inner.keeps_row(row)?;
                *ended |= !keeps;
                keeps
            }
            Node::Skip { inner, refused } => !*refused && inner.keeps_row(row)?,
            Node::SingleColumn(single) => {
                single.matched.unwrap_or(single.condition.keep_if_missing)
            }
            Node::Custom(predicate) => predicate.keep(row)?,
            _ => true,
        })
    }

    fn row_returned(&mut self) {
        match self {
            Node::All(parts) => parts.iter_mut().for_each(|part| part.node.row_returned()),
            Node::Any(parts) => {
                let kept = parts.iter_mut().filter(|part| part.keeps_row);
                kept.for_each(|part| part.node.row_returned());
            }
            Node::WhileMatch { inner, .. } | Node::Skip { inner, .. } => inner.row_returned(),
            Node::Page { left } => *left = left.saturating_sub(1),
            _ => {}
        }
    }

    fn rest(&self, filter: &Filter) -> Filter {
        let list = |parts: &[FilterPart], filters: &[Filter]| {
            parts.iter().zip(filters).map(|(part, filter)| part.node.rest(filter)).collect()
        };
        match (self, filter) {
            (Node::All(parts), Filter::All(filters)) => Filter::All(list(parts, filters)),
            (Node::Any(parts), Filter::Any(filters)) => Filter::Any(list(parts, filters)),
            (Node::WhileMatch { ended: true, .. }, _) => Filter::Page(0),
            (Node::WhileMatch { inner, .. }, Filter::WhileMatch(filter)) => {
                Filter::WhileMatch(Box::new(inner.rest(filter)))
            }
            (Node::Skip { inner, .. }, Filter::Skip(filter)) => {
                Filter::Skip(Box::new(inner.rest(filter)))
            }
            (Node::Page { left }, _) => Filter::Page(*left),
            _ => filter.clone(),
        }
    }
}

fn check_family(family: u8, families: &[FamilyDescriptor]) -> Result<()> {
    match usize::from(family) < families.len() {
        true => Ok(()),
        false => Err(Error::InvalidRequest(format!("column family {family} does not exist"))),
    }
}

/// Combines the results for a row in a disjunction.
fn nearest(order: RowOrder, answers: impl Iterator<Item = RowAnswer>) -> RowAnswer {
    answers.fold(RowAnswer::End, |joined, answer| match (joined, answer) {
        (RowAnswer::Read, _) | (_, RowAnswer::Read) => RowAnswer::Read,
        (RowAnswer::Refuse, _) | (_, RowAnswer::Refuse) => RowAnswer::Refuse,
        (RowAnswer::End, other) | (other, RowAnswer::End) => other,
        (RowAnswer::Seek(a), RowAnswer::Seek(b)) => RowAnswer::Seek(match order {
            RowOrder::Forward => a.min(b),
            RowOrder::Reverse => a.max(b),
        }),
    })
}

/// Combines the results for a row in a conjunction.
fn furthest(order: RowOrder, a: RowAnswer, b: RowAnswer) -> RowAnswer {
    match (a, b) {
        (RowAnswer::End, _) | (_, RowAnswer::End) => RowAnswer::End,
        (RowAnswer::Seek(a), RowAnswer::Seek(b)) => RowAnswer::Seek(match order {
            RowOrder::Forward => a.max(b),
            RowOrder::Reverse => a.min(b),
        }),
        (seek @ RowAnswer::Seek(_), _) | (_, seek @ RowAnswer::Seek(_)) => seek,
        (RowAnswer::Refuse, _) | (_, RowAnswer::Refuse) => RowAnswer::Refuse,
        (RowAnswer::Read, RowAnswer::Read) => RowAnswer::Read,
    }
}

fn start_all(parts: &mut [FilterPart], row: &[u8], order: RowOrder) -> RowAnswer {
    parts.iter_mut().fold(RowAnswer::Read, |joined, part| {
        part.begin();
        furthest(order, joined, part.node.start_row(row, order))
    })
}

fn start_any(parts: &mut [FilterPart], row: &[u8], order: RowOrder) -> RowAnswer {
    let answers = parts.iter_mut().map(|part| {
        part.begin();
        let answer = part.node.start_row(row, order);
        part.refuses_row = answer != RowAnswer::Read;
        answer
    });
    nearest(order, answers)
}

fn cell_of_all(parts: &mut [FilterPart], cell: &CellRef<'_>) -> CellAnswer {
    let mut joined = CellAnswer::new(true, Jump::Next);
    for part in parts.iter_mut() {
        let answer = part.cell(cell);
        joined.include &= answer.include;
        joined.jump = joined.jump.max(answer.jump);
        joined.value = joined.value.max(answer.value);
    }
    if joined.jump != Jump::Next {
        joined.jump = parts.iter().fold(joined.jump, |jump, part| part.node.shortened(cell, jump));
    }
    joined
}

fn cell_of_any(parts: &mut [FilterPart], cell: &CellRef<'_>) -> CellAnswer {
    let mut joined = CellAnswer::new(false, Jump::Row);
    for part in parts.iter_mut().filter(|part| !part.refuses_row) {
        let answer = part.cell(cell);
        if answer.include {
            part.included_any = true;
            joined.include = true;
            joined.value = joined.value.max(answer.value);
        }
        joined.jump = joined.jump.min(answer.jump);
    }
    joined
}

fn column_page(
    limit: u32,
    offset: &ColumnOffset,
    seen: &mut u32,
    cell: &CellRef<'_>,
) -> (bool, Jump) {
    let skipped = match offset {
        ColumnOffset::Count(count) => *count,
        ColumnOffset::Qualifier(from) if *cell.qualifier < from[..] => {
            return (false, Jump::To(Qualifier::from_slice(from)));
        }
        ColumnOffset::Qualifier(_) => 0,
    };
    if *seen >= skipped.saturating_add(limit) {
        return (false, Jump::Row);
    }
    *seen += 1;
    (*seen > skipped, Jump::Column)
}

impl FilterPart {
    fn new(node: Node) -> FilterPart {
        FilterPart { node, refuses_row: false, included_any: false, keeps_row: false, jumped: None }
    }

    fn begin(&mut self) {
        self.refuses_row = false;
        self.included_any = false;
        self.keeps_row = false;
        self.jumped = None;
    }

    /// Passes a cell to the filter, unless it has jumped over it.
    fn cell(&mut self, cell: &CellRef<'_>) -> CellAnswer {
        if let Some(jumped) = &self.jumped {
            if jumped.is_over(cell) {
                return CellAnswer::new(false, jumped.jump.clone());
            }
            self.jumped = None;
        }
        let answer = self.node.cell(cell);
        if answer.jump != Jump::Next {
            let from = Qualifier::from_slice(cell.qualifier);
            self.jumped =
                Some(DeferredJump { family: cell.family, from, jump: answer.jump.clone() });
        }
        answer
    }
}

impl DeferredJump {
    fn is_over(&self, cell: &CellRef<'_>) -> bool {
        self.family == cell.family
            && match &self.jump {
                Jump::Next => false,
                Jump::Column => self.from[..] == *cell.qualifier,
                Jump::To(qualifier) => *cell.qualifier < qualifier[..],
                Jump::Row => true,
            }
    }
}

impl SingleColumn {
    fn cell(&mut self, cell: &CellRef<'_>) -> CellAnswer {
        let column = &self.condition;
        if cell.family != column.family || cell.qualifier != column.qualifier {
            // A row that has failed needs no more cells.
            return match self.matched {
                Some(false) => CellAnswer::new(false, Jump::Row),
                _ => CellAnswer::new(true, Jump::Next),
            };
        }
        let open = match self.matched {
            None => true,
            Some(matched) => column.any_version && !matched,
        };
        if open {
            self.matched = Some(self.test.passes(cell.value));
        }
        CellAnswer::new(!column.exclude_column, Jump::Next)
    }
}
