//! Trigger calls: which triggers of a table a change calls, and their calls.
//!
//! BEFORE triggers are called by the changes of rows, and may replace or skip the new row. The
//! calls of AFTER triggers are queued with the constraint checks of the statement
//! ([`constraint_queue`](crate::exec::constraint_queue)), and executed in the order of that queue.
//!
//! A call is one of a function with the variables of its body as arguments: `new`, `old`, the `TG_`
//! variables, and the transition tables as arrays of rows.

use std::sync::Arc;

use types::datum::{Array, Nested, Record};
use types::expr::{EvalContext, Routine};
use types::{DataType, Datum};

use crate::ast::{TriggerEvent, TriggerTiming};
use crate::catalog::table::Table;
use crate::catalog::trigger::{Trigger, body_variables, transition_variable};
use crate::catalog::user_type::OID_OFFSET;
use crate::error::Result;

/// Rows that a function returns.
pub(super) type FunctionRows = Vec<Vec<Datum>>;

/// Change of a row, as triggers see it: values in table order.
#[derive(Clone, Copy)]
pub(super) struct TriggerRows<'a> {
    /// Values before an update or delete.
    pub old: Option<&'a [Datum]>,
    /// Values after an insert or update.
    pub new: Option<&'a [Datum]>,
    /// Columns that the statement assigns.
    pub assigned: &'a [usize],
}

/// Call of a trigger.
#[derive(Clone)]
pub struct TriggerCall {
    /// The trigger.
    pub trigger: Arc<Trigger>,
    /// Its table.
    pub table: Arc<Table>,
    /// The event.
    pub event: TriggerEvent,
    /// Values of the row before an update or delete.
    pub old: Option<Arc<Vec<Datum>>>,
    /// Values of the row after an insert or update.
    pub new: Option<Arc<Vec<Datum>>>,
}

/// Rows of the transition tables of a statement: records of the table's row type.
#[derive(Default)]
pub(super) struct TransitionRows {
    /// OLD TABLE.
    old: Vec<Datum>,
    /// NEW TABLE.
    new: Vec<Datum>,
    /// Both as arrays, once they are complete.
    arrays: Option<[Datum; 2]>,
}

impl TransitionRows {
    /// Adds the change of a row, and returns the size of its copies in bytes.
    pub(super) fn add(&mut self, table: &Table, rows: TriggerRows<'_>) -> usize {
        self.arrays = None;
        let mut bytes = 0;
        for (row, to) in [(rows.old, &mut self.old), (rows.new, &mut self.new)] {
            let Some(row) = row else { continue };
            let record = record_of(table, row);
            bytes += size_of::<Datum>() + record.heap_bytes();
            to.push(record);
        }
        bytes
    }

    /// Returns the old and the new rows as arrays.
    pub(super) fn arrays(&mut self) -> [Datum; 2] {
        let array = |rows: &mut Vec<Datum>| {
            Datum::Nested(Nested::Array(Arc::new(Array::from_elements(std::mem::take(rows)))))
        };
        self.arrays.get_or_insert_with(|| [array(&mut self.old), array(&mut self.new)]).clone()
    }
}

impl Trigger {
    /// Returns whether a change calls the trigger.
    pub(super) fn is_called(
        &self,
        (timing, event, is_row): (TriggerTiming, TriggerEvent, bool),
        (table, rows): (&Table, TriggerRows<'_>),
        eval: &EvalContext,
    ) -> Result<bool> {
        let record = &self.record;
        if !record.is_for(timing, event, is_row) {
            return Ok(false);
        }
        if event == TriggerEvent::Update && !record.columns.is_empty() {
            let is_assigned = |column: &u32| {
                let made = table.columns[*column as usize].generated.as_ref();
                let made_from = made.map(|made| made.columns()).unwrap_or_default();
                rows.assigned.contains(&(*column as usize))
                    || made_from.iter().any(|one| rows.assigned.contains(one))
            };
            if !record.columns.iter().any(is_assigned) {
                return Ok(false);
            }
        }
        let Some(condition) = &self.condition else { return Ok(true) };
        let width = table.columns.len();
        let mut both = Vec::with_capacity(2 * width);
        for row in [rows.old, rows.new] {
            match row {
                Some(row) => both.extend_from_slice(&row[..width]),
                None => both.resize(both.len() + width, Datum::Null),
            }
        }
        Ok(condition.eval_row(&both, eval)?.as_bool() == Some(true))
    }
}

impl TriggerCall {
    /// Returns a call for a row, or for a statement if there is no row.
    pub(super) fn new(
        trigger: &Arc<Trigger>,
        table: &Arc<Table>,
        event: TriggerEvent,
        rows: TriggerRows<'_>,
    ) -> TriggerCall {
        let row =
            |row: Option<&[Datum]>| row.map(|row| Arc::new(row[..table.columns.len()].to_vec()));
        let (old, new) = (row(rows.old), row(rows.new));
        TriggerCall { trigger: Arc::clone(trigger), table: Arc::clone(table), event, old, new }
    }

    /// Returns its approximate size in bytes.
    pub fn bytes(&self) -> usize {
        let rows = self.old.iter().chain(&self.new);
        let values = rows.flat_map(|row| row.iter());
        size_of::<TriggerCall>()
            + values.map(|value| size_of::<Datum>() + value.heap_bytes()).sum::<usize>()
    }

    /// Executes the call. Returns the row that the function returned, in table order, without
    /// values of hidden and generated columns; `None` for NULL.
    ///
    /// # Errors
    ///
    /// Errors of the function.
    pub(super) fn execute(
        &self,
        transitions: Option<[Datum; 2]>,
        caller: &dyn Fn(&Routine, Vec<Datum>) -> Result<FunctionRows>,
    ) -> Result<Option<Vec<Datum>>> {
        let (routine, arguments) = self.routine(transitions);
        let returned = caller(&routine, arguments)?.pop().and_then(|mut row| row.pop());
        let Some(Datum::Nested(Nested::Record(record))) = returned else { return Ok(None) };
        let mut row = match self.new.as_ref().or(self.old.as_ref()) {
            Some(row) => row.to_vec(),
            None => vec![Datum::Null; self.table.columns.len()],
        };
        for (column, value) in self.table.visible_columns().zip(&record.values) {
            row[column] = value.clone();
        }
        Ok(Some(row))
    }

    /// Returns the function with the types of the call, and the arguments.
    fn routine(&self, transitions: Option<[Datum; 2]>) -> (Routine, Vec<Datum>) {
        let Trigger { record, .. } = &*self.trigger;
        let row_type = self.table.row_type().sql_type().base;
        let row = |row: &Option<Arc<Vec<Datum>>>| {
            row.as_ref().map_or(Datum::Null, |row| record_of(&self.table, row))
        };
        let text = |value: &str| Datum::text(value);
        let mut arguments = vec![row(&self.new), row(&self.old)];
        let strings = record.arguments.iter().map(|one| Datum::text(one.as_str())).collect();
        arguments.extend([
            text(&record.name),
            text(record.timing.words()),
            text(if record.is_row { "ROW" } else { "STATEMENT" }),
            text(self.event.word()),
            Datum::Int8(i64::from(self.table.oid + OID_OFFSET)),
            text(&self.table.name),
            text(&self.table.name),
            text(&self.table.schema),
            Datum::Int4(record.arguments.len() as i32),
            Datum::Nested(Nested::Array(Arc::new(Array::from_zero(strings)))),
        ]);
        let mut parameters = vec![row_type.clone(), row_type];
        parameters.extend(body_variables().into_iter().map(|(_, of)| of));
        let mut fields = Vec::new();
        let [old, new] = transitions.unwrap_or([Datum::Null, Datum::Null]);
        for (name, rows) in [(&record.old_table, old), (&record.new_table, new)] {
            let Some(name) = name else { continue };
            let Some(of) = self.table.row_type().sql_type().base.array() else { continue };
            fields.push((Arc::from(transition_variable(name)), of.clone()));
            parameters.push(of);
            arguments.push(rows);
        }
        let routine = Routine {
            number: record.function,
            name: record.name.clone(),
            parameters,
            // The row that a statement trigger returns is ignored.
            result: if record.is_row { DataType::Trigger } else { DataType::Void },
            fields: Some(fields.into()),
            strict: false,
            is_volatile: true,
            is_immutable: false,
            is_leakproof: false,
        };
        (routine, arguments)
    }
}

/// Returns a row of a table as a record of its row type.
fn record_of(table: &Table, row: &[Datum]) -> Datum {
    let DataType::Composite(of) = table.row_type().sql_type().base else { return Datum::Null };
    let values = table.visible_columns().map(|column| row[column].clone()).collect();
    Datum::Nested(Nested::Record(Arc::new(Record::of_type(&of, values))))
}
