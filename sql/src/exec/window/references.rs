//! Row references: results of `lag`, `lead`, `first_value`, `last_value` and `nth_value`.
//!
//! These functions return their first argument at another row of the partition. A run computes
//! only the positions of these rows; the argument is evaluated when the results are returned, at
//! the referenced rows. So values of any size stay in the buffer of the rows, which spills.

use std::sync::Arc;

use types::expr::Expr;
use types::vector::RowSizes;
use types::{Batch, DataType, Vector};

use crate::batch_buffer::BatchBuffer;
use crate::error::Result;
use crate::exec::project::column_of;
use crate::exec::{Context, memory};
use crate::logical::{WindowFunction, WindowKind};

/// Source of a function's value at a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum ValueSource {
    /// Argument at a row of the run.
    Row(u32),
    /// Third argument of `lag` and `lead`.
    Default,
    /// NULL.
    Null,
}

/// Columns of the input that expressions read, ascending.
pub(super) struct InputColumns(Vec<usize>);

impl InputColumns {
    /// Returns the distinct columns.
    pub(super) fn new(mut columns: Vec<usize>) -> InputColumns {
        columns.sort_unstable();
        columns.dedup();
        InputColumns(columns)
    }

    /// Renumbers the columns of an expression: each becomes its position among these.
    pub(super) fn renumber(&self, expression: &mut Expr) {
        let position = |column| self.0.partition_point(|other| *other < column);
        *expression = expression.clone().remap_columns(&position);
    }

    /// Returns these columns of a batch of the input.
    pub(super) fn of<'a>(&self, batch: &'a Batch) -> impl Iterator<Item = &'a Arc<Vector>> {
        self.0.iter().map(|column| &batch.columns[*column])
    }

    /// Returns their types.
    pub(super) fn types(&self, input_types: &[DataType]) -> Vec<DataType> {
        self.0.iter().map(|column| input_types[*column].clone()).collect()
    }
}

/// Argument that is evaluated at the referenced rows.
pub(super) struct ReferencedArgument {
    /// Columns of the input that the expression reads.
    columns: InputColumns,
    /// Expression over these columns.
    expression: Expr,
}

/// Position of a referenced row: batch of the buffer, row of the batch, row of the results.
type Reference = (usize, u32, usize);

impl ReferencedArgument {
    /// Removes the first argument of a function that returns it at another row; `None` for other
    /// functions.
    pub(super) fn take_from(function: &mut WindowFunction) -> Option<ReferencedArgument> {
        let is_reference = matches!(
            function.kind,
            WindowKind::Lag
                | WindowKind::Lead
                | WindowKind::FirstValue
                | WindowKind::LastValue
                | WindowKind::NthValue
        );
        if !is_reference || function.arguments.is_empty() {
            return None;
        }
        let mut expression = function.arguments.remove(0);
        let columns = InputColumns::new(expression.columns());
        columns.renumber(&mut expression);
        Some(ReferencedArgument { columns, expression })
    }

    /// Returns the values of consecutive rows. `locate` returns the batch of a row of the run, and
    /// the row in it.
    ///
    /// # Errors
    ///
    /// I/O errors of the buffer; errors of the evaluation.
    pub(super) fn gather(
        &self,
        sources: &[ValueSource],
        locate: impl Fn(u32) -> (usize, u32),
        rows: &mut BatchBuffer,
        context: &Context,
    ) -> Result<GatheredValues> {
        let mut references: Vec<Reference> = Vec::new();
        for (result, source) in sources.iter().enumerate() {
            if let ValueSource::Row(row) = source {
                let (batch, row) = locate(*row);
                references.push((batch, row, result));
            }
        }
        // A user-defined function is called at each reference, in the order of the results.
        let is_shared = !self.expression.calls_routines();
        match is_shared {
            true => references.sort_unstable(),
            false => references.sort_by_key(|(batch, ..)| *batch),
        }
        let mut values = Vector::new(self.expression.data_type(), references.len() + 1);
        let mut positions = vec![None; sources.len()];
        for group in references.chunk_by(|a, b| a.0 == b.0) {
            context.check()?;
            let batch = rows.batch(group[0].0)?.unwrap_or_default();
            let mut selection: Vec<u32> = Vec::with_capacity(group.len());
            for (_, row, result) in group {
                if !is_shared || selection.last() != Some(row) {
                    selection.push(*row);
                }
                positions[*result] = Some((values.len() + selection.len() - 1) as u32);
            }
            let columns = self.columns.of(&batch);
            let columns = columns.map(|column| Arc::new(column.take(&selection))).collect();
            let referenced = Batch { columns, row_count: selection.len() };
            let evaluated = column_of(&self.expression, &referenced, &context.eval)?;
            values.append(&evaluated);
            memory::check(values.byte_count(), context.work_mem())?;
        }
        Ok(GatheredValues { values, positions })
    }
}

/// Values of some rows, each distinct one stored once.
pub(super) struct GatheredValues {
    values: Vector,
    /// Position of each row's value; `None` if the row has no referenced row.
    positions: Vec<Option<u32>>,
}

impl GatheredValues {
    /// Returns the number of leading rows, at most `limit`, whose values fit one batch.
    pub(super) fn batch_len(&self, limit: usize) -> usize {
        let rows = self.positions[..limit].iter();
        // Rows without a value are counted as the first one, which is not long or is repeated.
        let rows = rows.map(|position| position.unwrap_or(0) as usize);
        match self.values.is_empty() {
            true => limit,
            false => RowSizes::repeated(std::slice::from_ref(&self.values)).batch_len(rows),
        }
    }

    /// Returns the values of the leading rows; `defaults` has the values of rows whose source is
    /// [`ValueSource::Default`].
    pub(super) fn into_vector(
        mut self,
        sources: &[ValueSource],
        defaults: Option<(&Vector, usize)>,
    ) -> Vector {
        let null = self.values.len() as u32;
        self.values.push_null();
        let mut selection: Vec<u32> = Vec::with_capacity(sources.len());
        for (row, (source, position)) in sources.iter().zip(&self.positions).enumerate() {
            let position = match (source, position, defaults) {
                (ValueSource::Default, _, Some((defaults, first))) => {
                    self.values.push(&defaults.datum(first + row));
                    self.values.len() as u32 - 1
                }
                (_, Some(position), _) => *position,
                _ => null,
            };
            selection.push(position);
        }
        self.values.take(&selection)
    }
}
