//! PL/pgSQL loops: LOOP, WHILE, FOR over ranges, rows and cursors, and FOREACH.

use types::datum::Nested;
use types::{DataType, Datum, SqlType};

use crate::binder::BodyTarget;
use crate::error::{Error, Result};
use crate::plpgsql::body_tree::{
    BodyQuery, IntoClause, Loop, LoopIteration, PlpgsqlStatement, SqlFragment,
};
use crate::rows::{CommandTag, ResultRows};
use crate::session::plpgsql::BodyExecution;
use crate::session::plpgsql::control::ControlFlow;
use crate::session::plpgsql::evaluation::StatementOutcome;

/// Outcome of one iteration.
pub(super) enum IterationOutcome {
    Next,
    End(ControlFlow),
}

impl BodyExecution<'_> {
    pub(super) fn run_loop(&mut self, of: &Loop, step: &PlpgsqlStatement) -> Result<ControlFlow> {
        match &of.over {
            LoopIteration::Forever => self.while_true(of, step, None),
            LoopIteration::While(condition) => self.while_true(of, step, Some(condition)),
            LoopIteration::Range { variable, low, high, step: by, reverse } => {
                let bounds = self.range(low, high, by.as_ref())?;
                self.count(of, *variable, bounds, *reverse)
            }
            LoopIteration::Rows(into, query) => self.for_rows(of, into, query),
            LoopIteration::Cursor { row, cursor, arguments } => {
                self.for_cursor(of, *row, *cursor, arguments)
            }
            LoopIteration::Elements { targets, slice, array } => {
                self.for_elements(of, targets, *slice, array)
            }
        }
    }

    /// Executes the body of a loop once.
    pub(super) fn round(&mut self, of: &Loop) -> Result<IterationOutcome> {
        self.check_stop()?;
        let is_own = |label: &Option<String>| label.is_none() || *label == of.label;
        Ok(match self.steps(&of.body)? {
            ControlFlow::Next => IterationOutcome::Next,
            ControlFlow::Continue(label) if is_own(&label) => IterationOutcome::Next,
            ControlFlow::Exit(label) if is_own(&label) => IterationOutcome::End(ControlFlow::Next),
            flow => IterationOutcome::End(flow),
        })
    }

    fn while_true(
        &mut self,
        of: &Loop,
        step: &PlpgsqlStatement,
        condition: Option<&SqlFragment>,
    ) -> Result<ControlFlow> {
        loop {
            if let Some(condition) = condition {
                self.enter(step);
                if !self.is_true(condition)? {
                    return Ok(ControlFlow::Next);
                }
            }
            if let IterationOutcome::End(flow) = self.round(of)? {
                return Ok(flow);
            }
        }
    }

    fn range(
        &mut self,
        low: &SqlFragment,
        high: &SqlFragment,
        step: Option<&SqlFragment>,
    ) -> Result<[i32; 3]> {
        let mut bound = |fragment: &SqlFragment, what: &str| match self
            .value_as(fragment, &DataType::Int4)?
            .as_i64()
        {
            Some(value) => Ok(value as i32),
            None => Err(err!(NULL_VALUE_NOT_ALLOWED: "{what} of FOR loop cannot be null")),
        };
        let (low, high) = (bound(low, "lower bound")?, bound(high, "upper bound")?);
        let step = step.map_or(Ok(1), |step| bound(step, "BY value"))?;
        if step <= 0 {
            bail!(INVALID_PARAMETER_VALUE: "BY value of FOR loop must be greater than zero");
        }
        Ok([low, high, step])
    }

    fn count(
        &mut self,
        of: &Loop,
        variable: usize,
        [first, last, step]: [i32; 3],
        reverse: bool,
    ) -> Result<ControlFlow> {
        let (mut at, mut found, mut end) = (first, false, ControlFlow::Next);
        while if reverse { at >= last } else { at <= last } {
            found = true;
            self.values[variable] = Datum::Int4(at);
            if let IterationOutcome::End(flow) = self.round(of)? {
                end = flow;
                break;
            }
            let next = if reverse { at.checked_sub(step) } else { at.checked_add(step) };
            let Some(next) = next else { break };
            at = next;
        }
        self.set_found(found);
        Ok(end)
    }

    fn for_rows(&mut self, of: &Loop, into: &IntoClause, query: &BodyQuery) -> Result<ControlFlow> {
        let mut outcome = self.open_query(query)?;
        if self.compiled.body.ends_transactions {
            self.retain(&mut outcome)?;
        }
        self.over_rows(of, outcome, &mut |run, columns, row| run.assign_row(into, columns, row))
    }

    /// Materialises all rows: their transaction may end before the loop does.
    fn retain(&mut self, outcome: &mut StatementOutcome) -> Result<()> {
        let Some(mut rows) = outcome.rows.take() else { return Ok(()) };
        let batches = self.session.all_rows(&mut rows)?;
        let columns = std::sync::Arc::from(rows.columns());
        let stop = std::sync::Arc::clone(&self.session.stop);
        outcome.rows =
            Some(ResultRows::buffered(columns, batches, CommandTag::Returned("SELECT"), stop));
        Ok(())
    }

    /// Executes a loop over rows.
    fn over_rows(
        &mut self,
        of: &Loop,
        mut outcome: StatementOutcome,
        assign: &mut RowAssigner<'_>,
    ) -> Result<ControlFlow> {
        let columns = outcome.columns();
        let (mut found, mut end) = (false, ControlFlow::Next);
        let at = self.at;
        if let Some(rows) = &mut outcome.rows {
            'rows: while let Some(batch) = rows.next_batch(usize::MAX)? {
                self.renew();
                for number in 0..batch.row_count {
                    found = true;
                    assign(self, &columns, Some(batch.row(number)))?;
                    if let IterationOutcome::End(flow) = self.round(of)? {
                        end = flow;
                        break 'rows;
                    }
                }
                self.at = at;
            }
        }
        if !found {
            assign(self, &columns, None)?;
        }
        self.set_found(found);
        Ok(end)
    }

    fn for_elements(
        &mut self,
        of: &Loop,
        targets: &IntoClause,
        slice: u32,
        array: &SqlFragment,
    ) -> Result<ControlFlow> {
        let (value, sql_type) = self.value(array, BodyTarget::Any)?;
        if value.is_null() {
            bail!(NULL_VALUE_NOT_ALLOWED: "FOREACH expression must not be null");
        }
        let Some(element) = sql_type.base.element() else {
            let shown = sql_type.base.sql_name();
            bail!(DATATYPE_MISMATCH: "FOREACH expression must yield an array, not type {shown}");
        };
        let Datum::Nested(Nested::Array(array)) = value else { return Ok(ControlFlow::Next) };
        let slice = slice as usize;
        if slice > array.dimensions.len() && !array.dimensions.is_empty() {
            let dimensions = array.dimensions.len();
            bail!(ARRAY_SUBSCRIPT_ERROR: "slice dimension ({slice}) is out of the valid range 0..{dimensions}");
        }
        let is_array = match targets.targets.as_slice() {
            [target] => self.shapes[target.variable].sql_type.base.element().is_some(),
            _ => false,
        };
        if slice > 0 && !is_array {
            bail!(DATATYPE_MISMATCH: "FOREACH ... SLICE loop variable must be of an array type");
        }
        if slice == 0 && is_array {
            bail!(DATATYPE_MISMATCH: "FOREACH loop variable must not be of an array type");
        }
        let inner =
            array.dimensions.get(array.dimensions.len() - slice.min(array.dimensions.len())..);
        let inner = inner.unwrap_or_default().to_vec();
        let length = inner.iter().map(|one| one.length).product::<usize>().max(1);
        let of_value = if slice == 0 { SqlType::from(element) } else { sql_type.clone() };
        let (mut found, mut end) = (false, ControlFlow::Next);
        for elements in array.elements.chunks(length) {
            found = true;
            let value = match slice {
                0 => elements[0].clone(),
                _ => {
                    let part = types::datum::Array {
                        dimensions: inner.clone(),
                        elements: elements.to_vec(),
                    };
                    Datum::Nested(Nested::Array(std::sync::Arc::new(part)))
                }
            };
            self.assign_element(targets, value, &of_value)?;
            if let IterationOutcome::End(flow) = self.round(of)? {
                end = flow;
                break;
            }
        }
        self.set_found(found);
        Ok(end)
    }

    /// Assigns an array element; a composite one may be assigned to several targets.
    fn assign_element(&mut self, into: &IntoClause, value: Datum, of: &SqlType) -> Result<()> {
        if let [target] = into.targets.as_slice() {
            return self.assign(target, value, of);
        }
        let Datum::Nested(Nested::Record(record)) = value else {
            bail!(DATATYPE_MISMATCH: "cannot assign non-composite value to a row variable");
        };
        for (at, target) in into.targets.iter().enumerate() {
            let of = record.fields.get(at).map_or(DataType::Text, |(_, base)| base.clone());
            let value = record.values.get(at).cloned().unwrap_or(Datum::Null);
            self.assign(target, value, &of.into())?;
        }
        Ok(())
    }
}

/// Callback that assigns a row to the loop variables.
type RowAssigner<'t> = dyn FnMut(&mut BodyExecution<'_>, &[crate::logical::OutputColumn], Option<Vec<Datum>>) -> Result<()>
    + 't;
