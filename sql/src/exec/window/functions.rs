//! Window functions other than aggregates.
//!
//! Source: PostgreSQL's windowfuncs.c.

use std::ops::Range;
use std::sync::Arc;

use types::{DataType, Datum, Vector};

use crate::error::{Error, Result};
use crate::exec::project::columns_of;
use crate::exec::window::aggregate;
use crate::exec::window::frames::{FrameRanges, Frames};
use crate::exec::window::references::ValueSource;
use crate::exec::window::run::PartitionRun;
use crate::logical::{WindowFunction, WindowKind};

/// Results of a function for the rows of a run.
pub(super) enum FunctionResults {
    /// Value of each row.
    Values(Vector),
    /// Source of each row's value, and the third argument of `lag` and `lead`.
    References { sources: Vec<ValueSource>, defaults: Option<Arc<Vector>> },
}

impl FunctionResults {
    /// Returns the number of rows.
    pub(super) fn len(&self) -> usize {
        match self {
            FunctionResults::Values(values) => values.len(),
            FunctionResults::References { sources, .. } => sources.len(),
        }
    }

    /// Returns the size in bytes.
    pub(super) fn byte_count(&self) -> usize {
        match self {
            FunctionResults::Values(values) => values.byte_count(),
            FunctionResults::References { sources, defaults } => {
                let defaults = defaults.as_ref().map_or(0, |defaults| defaults.byte_count());
                size_of_val(sources.as_slice()) + defaults
            }
        }
    }
}

/// Returns the result of a function for each row.
pub(super) fn compute(function: &WindowFunction, run: &PartitionRun) -> Result<FunctionResults> {
    let arguments = columns_of(&function.arguments, &run.batch, &run.context.eval)?;
    match &function.kind {
        WindowKind::Aggregate(of) => {
            let frames = Frames::new(&function.frame, run)?;
            aggregate::compute(of, &frames, run).map(FunctionResults::Values)
        }
        WindowKind::Lag => Ok(neighbours(&arguments, run, NeighbourSide::Before)),
        WindowKind::Lead => Ok(neighbours(&arguments, run, NeighbourSide::After)),
        WindowKind::FirstValue | WindowKind::LastValue | WindowKind::NthValue => {
            let frames = Frames::new(&function.frame, run)?;
            of_frames(&function.kind, arguments.first(), (&frames, run))
        }
        kind => ranks(kind, &function.data_type, &arguments, run).map(FunctionResults::Values),
    }
}

/// Returns the values of a function that only depends on the row's position.
fn ranks(
    kind: &WindowKind,
    data_type: &DataType,
    arguments: &[Arc<Vector>],
    run: &PartitionRun,
) -> Result<Vector> {
    let mut values = Vector::new(data_type, run.batch.row_count);
    for partition in &run.partitions {
        run.context.check()?;
        match kind {
            WindowKind::Ntile => ntile(&arguments[0], partition.clone(), &mut values)?,
            _ => partition.clone().for_each(|row| values.push(&rank(kind, run, partition, row))),
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

/// Side of a row on which `lag` or `lead` looks for a positive offset.
#[derive(Clone, Copy, PartialEq, Eq)]
enum NeighbourSide {
    Before,
    After,
}

/// Finds the rows of `lag(value, offset, default)` and `lead(…)`; `arguments` begin with the
/// offset.
fn neighbours(
    arguments: &[Arc<Vector>],
    run: &PartitionRun,
    side: NeighbourSide,
) -> FunctionResults {
    let source = |partition: &Range<usize>, row: usize| {
        let offset = match arguments.first() {
            None => Some(1),
            Some(offsets) => offsets.datum(row).as_i64(),
        };
        let Some(offset) = offset else { return ValueSource::Null };
        let at = match side {
            NeighbourSide::Before => (row as i64).checked_sub(offset),
            NeighbourSide::After => (row as i64).checked_add(offset),
        };
        let at = at.and_then(|at| usize::try_from(at).ok());
        match at.filter(|at| partition.contains(at)) {
            Some(at) => ValueSource::Row(at as u32),
            None => ValueSource::Default,
        }
    };
    let partitions = run.partitions.iter();
    let sources = partitions.flat_map(|rows| rows.clone().map(move |row| source(rows, row)));
    FunctionResults::References {
        sources: sources.collect(),
        defaults: arguments.get(1).map(Arc::clone),
    }
}

/// Finds the rows of `first_value`, `last_value` and `nth_value`; `number` is the second argument
/// of the last one.
fn of_frames(
    kind: &WindowKind,
    number: Option<&Arc<Vector>>,
    (frames, run): (&Frames<'_>, &PartitionRun),
) -> Result<FunctionResults> {
    let mut sources: Vec<ValueSource> = Vec::with_capacity(run.batch.row_count);
    for partition in &run.partitions {
        run.context.check()?;
        for row in partition.clone() {
            let pieces = frames.pieces(partition, row);
            let found = match (kind, number) {
                (WindowKind::FirstValue, _) => pieces.first().map(|piece| piece.start),
                (WindowKind::LastValue, _) => pieces.last().map(|piece| piece.end - 1),
                (_, Some(number)) => match number.datum(row).as_i64() {
                    Some(number) => nth(&pieces, number)?,
                    None => None,
                },
                (_, None) => None,
            };
            sources.push(found.map_or(ValueSource::Null, |row| ValueSource::Row(row as u32)));
        }
    }
    Ok(FunctionResults::References { sources, defaults: None })
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
