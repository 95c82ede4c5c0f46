//! Window functions other than aggregates.
//!
//! Source: PostgreSQL's windowfuncs.c.

use std::ops::Range;
use std::sync::Arc;

use types::{Datum, Vector};

use crate::error::{Error, Result};
use crate::exec::project::columns_of;
use crate::exec::window::aggregate;
use crate::exec::window::frames::{FrameRanges, Frames};
use crate::exec::window::run::PartitionRun;
use crate::logical::{WindowFunction, WindowKind};

/// Returns the value of a function for each row.
pub(super) fn compute(function: &WindowFunction, run: &PartitionRun) -> Result<Vector> {
    if let WindowKind::Aggregate(of) = &function.kind {
        return aggregate::compute(of, &Frames::new(&function.frame, run)?, run);
    }
    let arguments = columns_of(&function.arguments, &run.batch, &run.context.eval)?;
    let mut values = Vector::new(function.data_type, run.batch.row_count);
    for partition in &run.partitions {
        run.context.check()?;
        let partition = partition.clone();
        match &function.kind {
            WindowKind::Ntile => ntile(&arguments[0], partition, &mut values)?,
            WindowKind::Lag => neighbour(&arguments, partition, NeighbourSide::No, &mut values),
            WindowKind::Lead => neighbour(&arguments, partition, NeighbourSide::Yes, &mut values),
            WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue => {
                let frames = Frames::new(&function.frame, run)?;
                of_frame(&function.kind, &arguments, (&frames, partition), &mut values)?;
            }
            kind => {
                for row in partition.clone() {
                    values.push(&rank(kind, run, &partition, row));
                }
            }
        }
    }
    Ok(values)
}

/// Returns the value of a ranking function, which only depends on the row's position.
fn rank(kind: &WindowKind, run: &PartitionRun, partition: &Range<usize>, row: usize) -> Datum {
    let peers = run.peers(row);
    let rank = peers.start - partition.start + 1;
    match kind {
        WindowKind::RowNumber => Datum::Int8((row - partition.start + 1) as i64),
        WindowKind::Rank => Datum::Int8(rank as i64),
        WindowKind::DenseRank => {
            let groups = run.group_of(row) - run.group_of(partition.start) + 1;
            Datum::Int8(groups as i64)
        }
        WindowKind::PercentRank if partition.len() <= 1 => Datum::Float8(0.0),
        WindowKind::PercentRank => Datum::Float8((rank - 1) as f64 / (partition.len() - 1) as f64),
        _ => Datum::Float8((peers.end - partition.start) as f64 / partition.len() as f64),
    }
}

/// Computes `ntile`. The number of buckets is taken from the first row where it is not NULL; rows
/// before it get NULL, but count.
fn ntile(buckets: &Vector, partition: Range<usize>, values: &mut Vector) -> Result<()> {
    let rows = partition.len() as i64;
    let known = partition.clone().find_map(|row| Some((row, buckets.datum(row).as_i64()?)));
    let unknown = known.map_or(partition.end, |(row, _)| row) - partition.start;
    (0..unknown).for_each(|_| values.push_null());
    let Some((_, buckets)) = known else { return Ok(()) };
    if buckets <= 0 {
        bail!(INVALID_ARGUMENT_FOR_NTILE_FUNCTION: "argument of ntile must be greater than zero");
    }
    let (size, larger) = (rows / buckets, rows % buckets);
    for at in 0..rows - unknown as i64 {
        // The first buckets have one row more each.
        let in_larger = larger * (size + 1);
        let bucket =
            if at < in_larger { at / (size + 1) } else { larger + (at - in_larger) / size.max(1) };
        values.push(&Datum::Int4(bucket as i32 + 1));
    }
    Ok(())
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum NeighbourSide {
    Yes,
    No,
}

/// Computes `lag(value, offset, default)` and `lead(…)`.
fn neighbour(
    arguments: &[Arc<Vector>],
    partition: Range<usize>,
    ahead: NeighbourSide,
    values: &mut Vector,
) {
    for row in partition.clone() {
        let offset = match arguments.get(1) {
            None => Some(1),
            Some(offsets) => offsets.datum(row).as_i64(),
        };
        let Some(offset) = offset else {
            values.push_null();
            continue;
        };
        let offset = if ahead == NeighbourSide::Yes { offset } else { -offset };
        let at = (row as i64).checked_add(offset).and_then(|at| usize::try_from(at).ok());
        match (at.filter(|at| partition.contains(at)), arguments.get(2)) {
            (Some(at), _) => values.push(&arguments[0].datum(at)),
            (None, Some(default)) => values.push(&default.datum(row)),
            (None, None) => values.push_null(),
        }
    }
}

/// Computes `first_value`, `last_value` and `nth_value`.
fn of_frame(
    kind: &WindowKind,
    arguments: &[Arc<Vector>],
    (frames, partition): (&Frames<'_>, Range<usize>),
    values: &mut Vector,
) -> Result<()> {
    for row in partition.clone() {
        let pieces = frames.pieces(&partition, row);
        let found = match (kind, arguments.get(1)) {
            (WindowKind::FirstValue, _) => pieces.first().map(|piece| piece.start),
            (WindowKind::LastValue, _) => pieces.last().map(|piece| piece.end - 1),
            (_, Some(number)) => match number.datum(row).as_i64() {
                Some(number) => nth(&pieces, number)?,
                None => None,
            },
            (_, None) => None,
        };
        match found {
            Some(at) => values.push(&arguments[0].datum(at)),
            None => values.push_null(),
        }
    }
    Ok(())
}

fn nth(pieces: &FrameRanges, number: i64) -> Result<Option<usize>> {
    let Some(mut skip) = usize::try_from(number).ok().and_then(|number| number.checked_sub(1))
    else {
        bail!(INVALID_ARGUMENT_FOR_NTH_VALUE_FUNCTION: "argument of nth_value must be greater than zero");
    };
    for piece in pieces {
        if skip < piece.len() {
            return Ok(Some(piece.start + skip));
        }
        skip -= piece.len();
    }
    Ok(None)
}
