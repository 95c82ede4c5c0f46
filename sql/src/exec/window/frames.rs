//! Window frames: the rows of its partition that a function uses for each row.
//!
//! Source: PostgreSQL's `update_frameheadpos`, `update_frametailpos` and `row_is_in_frame`
//! (nodeWindowAgg.c).

use std::cmp::Ordering;
use std::ops::Range;
use std::sync::Arc;

use smallvec::SmallVec;
use types::datetime::Interval;
use types::expr::Expr;
use types::numeric::Numeric;
use types::{DataType, Datum, Vector};

use crate::error::{Error, Result};
use crate::exec::project::column_of;
use crate::exec::window::run::PartitionRun;
use crate::logical::{Exclusion, Frame, FrameBound, FrameUnits, RangeFrameBound};

/// Frame after exclusion: up to three ranges, none empty.
pub(super) type FrameRanges = SmallVec<[Range<usize>; 3]>;

/// Frames of a function.
pub(super) struct Frames<'a> {
    run: &'a PartitionRun,
    frame: &'a Frame,
    start: EvaluatedBound,
    end: EvaluatedBound,
}

/// Evaluated frame bound.
enum EvaluatedBound {
    UnboundedPreceding,
    CurrentRow,
    UnboundedFollowing,
    /// Offset in rows or groups.
    Count {
        count: usize,
        following: bool,
    },
    /// RANGE with an offset.
    Value(RangeOffsets),
}

/// Values of RANGE with an offset: sort keys, and for each row the limit of its frame.
struct RangeOffsets {
    keys: Arc<Vector>,
    limits: Arc<Vector>,
    data_type: DataType,
}

/// Side of the frame.
#[derive(Clone, Copy, PartialEq, Eq)]
enum FrameSide {
    Start,
    End,
}

impl<'a> Frames<'a> {
    /// Evaluates the bounds.
    pub(super) fn new(frame: &'a Frame, run: &'a PartitionRun) -> Result<Frames<'a>> {
        let start = bound(&frame.start, FrameSide::Start, run)?;
        let end = bound(&frame.end, FrameSide::End, run)?;
        Ok(Frames { run, frame, start, end })
    }

    /// Returns the frame of a row before exclusion.
    pub(super) fn of(&self, partition: &Range<usize>, row: usize) -> Range<usize> {
        let start = self.position(&self.start, FrameSide::Start, partition, row);
        let end = self.position(&self.end, FrameSide::End, partition, row);
        debug_assert!(partition.contains(&row), "row {row} of partition {partition:?}");
        debug_assert!(
            partition.start <= start && end <= partition.end,
            "a frame {start}..{end} outside of partition {partition:?}"
        );
        start..end.max(start)
    }

    /// Returns the frame of a row after exclusion.
    pub(super) fn pieces(&self, partition: &Range<usize>, row: usize) -> FrameRanges {
        let frame = self.of(partition, row);
        let peers = self.run.peers(row);
        let mut pieces = FrameRanges::new();
        let mut add = |piece: Range<usize>| {
            let piece = piece.start.max(frame.start)..piece.end.min(frame.end);
            if !piece.is_empty() {
                pieces.push(piece);
            }
        };
        match self.frame.exclusion {
            Exclusion::NoOthers => add(frame.clone()),
            Exclusion::CurrentRow => {
                add(frame.start..row);
                add(row + 1..frame.end);
            }
            Exclusion::Group => {
                add(frame.start..peers.start);
                add(peers.end..frame.end);
            }
            Exclusion::Ties => {
                add(frame.start..peers.start);
                add(row..row + 1);
                add(peers.end..frame.end);
            }
        }
        pieces
    }

    fn position(
        &self,
        bound: &EvaluatedBound,
        side: FrameSide,
        partition: &Range<usize>,
        row: usize,
    ) -> usize {
        let by_rows = self.frame.units == FrameUnits::Rows;
        match (bound, side) {
            (EvaluatedBound::UnboundedPreceding, _) => partition.start,
            (EvaluatedBound::UnboundedFollowing, _) => partition.end,
            (EvaluatedBound::CurrentRow, FrameSide::Start) if by_rows => row,
            (EvaluatedBound::CurrentRow, FrameSide::End) if by_rows => row + 1,
            (EvaluatedBound::CurrentRow, FrameSide::Start) => self.run.peers(row).start,
            (EvaluatedBound::CurrentRow, FrameSide::End) => self.run.peers(row).end,
            (EvaluatedBound::Count { count, following }, side) if by_rows => {
                let base = if side == FrameSide::Start { row } else { row + 1 };
                let moved = match following {
                    true => base.saturating_add(*count).min(partition.end),
                    false => base.saturating_sub(*count),
                };
                moved.max(partition.start)
            }
            (EvaluatedBound::Count { count, following }, side) => {
                self.group_position((*count, *following), side, partition, row)
            }
            (EvaluatedBound::Value(values), side) => {
                self.value_position(values, side, partition, row)
            }
        }
    }

    fn group_position(
        &self,
        (count, following): (usize, bool),
        side: FrameSide,
        partition: &Range<usize>,
        row: usize,
    ) -> usize {
        let first = self.run.group_of(partition.start);
        let last = self.run.group_of(partition.end - 1);
        let group = self.run.group_of(row);
        let moved = if following { group.checked_add(count) } else { group.checked_sub(count) };
        match (moved, following) {
            (Some(group), _) if (first..=last).contains(&group) => match side {
                FrameSide::Start => self.run.group(group).start,
                FrameSide::End => self.run.group(group).end,
            },
            (_, true) => partition.end,
            (_, false) => partition.start,
        }
    }

    /// Returns the position of a RANGE bound. Rows with NULL keys only have each other in range.
    fn value_position(
        &self,
        values: &RangeOffsets,
        side: FrameSide,
        partition: &Range<usize>,
        row: usize,
    ) -> usize {
        if values.keys.is_null(row) {
            let peers = self.run.peers(row);
            return if side == FrameSide::Start { peers.start } else { peers.end };
        }
        let Some(key) = self.run.order_by.first() else { return partition.start };
        let nulls_first = |at: usize| values.keys.is_null(at) && key.nulls_first;
        let from = first_after(partition.clone(), nulls_first);
        let to = first_after(from..partition.end, |at| !values.keys.is_null(at));
        // From an infinity, an infinite offset reaches every number.
        if is_nan(&values.limits, row) && !is_nan(&values.keys, row) {
            let is_odd = |at: usize| is_nan(&values.keys, at);
            return match (side, key.descending) {
                (FrameSide::Start, false) => from,
                (FrameSide::Start, true) => first_after(from..to, is_odd),
                (FrameSide::End, false) => first_after(from..to, |at| !is_odd(at)),
                (FrameSide::End, true) => to,
            };
        }
        first_after(from..to, |at| {
            let order = values.keys.compare_typed(at, &values.limits, row, &values.data_type);
            let order = if key.descending { order.reverse() } else { order };
            order == Ordering::Less || (side == FrameSide::End && order == Ordering::Equal)
        })
    }
}

fn is_nan(values: &Vector, row: usize) -> bool {
    match values.datum(row) {
        Datum::Float4(value) => value.is_nan(),
        Datum::Float8(value) => value.is_nan(),
        Datum::Numeric(value) => value.is_nan(),
        _ => false,
    }
}

/// Returns the first position for which `before` is false; it is true for a leading part of the
/// range.
fn first_after(range: Range<usize>, before: impl Fn(usize) -> bool) -> usize {
    let (mut low, mut high) = (range.start, range.end);
    while low < high {
        let middle = low.midpoint(high);
        if before(middle) {
            low = middle + 1;
        } else {
            high = middle;
        }
    }
    low
}

fn bound(bound: &FrameBound, side: FrameSide, run: &PartitionRun) -> Result<EvaluatedBound> {
    Ok(match bound {
        FrameBound::UnboundedPreceding => EvaluatedBound::UnboundedPreceding,
        FrameBound::CurrentRow => EvaluatedBound::CurrentRow,
        FrameBound::UnboundedFollowing => EvaluatedBound::UnboundedFollowing,
        FrameBound::Offset { offset, following, reach: None } => {
            let count = row_offset(&offset_of(offset, run)?, side)?;
            EvaluatedBound::Count { count, following: *following }
        }
        FrameBound::Offset { offset, reach: Some(RangeFrameBound { key, limit }), .. } => {
            check_offset(&offset_of(offset, run)?, side)?;
            EvaluatedBound::Value(RangeOffsets {
                keys: column_of(key, &run.batch, &run.context.eval)?,
                limits: column_of(limit, &run.batch, &run.context.eval)?,
                data_type: key.data_type().clone(),
            })
        }
    })
}

fn side_name(side: FrameSide) -> &'static str {
    if side == FrameSide::Start { "starting" } else { "ending" }
}

fn null_offset(side: FrameSide) -> Error {
    err!(NULL_VALUE_NOT_ALLOWED: "frame {} offset must not be null", side_name(side))
}

/// Returns the value of an offset, which is the same for all rows; that of a subquery is a column
/// of each row.
fn offset_of(offset: &Expr, run: &PartitionRun) -> Result<Datum> {
    let row: Vec<Datum> = run.batch.columns.iter().map(|column| column.datum(0)).collect();
    Ok(offset.eval_row(&row, &run.context.eval)?)
}

fn row_offset(offset: &Datum, side: FrameSide) -> Result<usize> {
    let count = offset.as_i64().ok_or_else(|| null_offset(side))?;
    usize::try_from(count).map_err(|_| {
        err!(INVALID_PRECEDING_OR_FOLLOWING_SIZE: "frame {} offset must not be negative", side_name(side))
    })
}

fn check_offset(offset: &Datum, side: FrameSide) -> Result<()> {
    let valid = match offset {
        Datum::Null => return Err(null_offset(side)),
        Datum::Float4(value) => *value >= 0.0,
        Datum::Float8(value) => *value >= 0.0,
        Datum::Numeric(value) if value.is_nan() => false,
        Datum::Numeric(_) => offset.compare(&Datum::Numeric(Numeric::from(0_i64))).is_ge(),
        Datum::Interval(_) => offset.compare(&Datum::Interval(Interval::default())).is_ge(),
        other => other.as_i64().is_none_or(|value| value >= 0),
    };
    if valid {
        return Ok(());
    }
    bail!(INVALID_PRECEDING_OR_FOLLOWING_SIZE: "invalid preceding or following size in window function")
}
