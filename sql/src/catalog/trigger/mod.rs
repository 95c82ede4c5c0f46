//! Triggers: functions that changes of a table's rows, or of those of a view, call.
//!
//! A trigger is stored in the record of its table or view. Its condition is text over the columns
//! of `old` and `new`, and is bound with the table.

use store::codec::tagged::UnknownFields;
use types::DataType;
use types::expr::Expr;

use crate::ast::{Deferral, TriggerEvent, TriggerFiring, TriggerTiming};
use crate::error::{Error, Result};
use crate::parser;

/// A trigger, as it is stored.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct TriggerRecord {
    /// Its number.
    pub number: u32,
    /// Its name on the table.
    pub name: String,
    /// Number of its function.
    pub function: u32,
    /// The time of its calls.
    pub timing: TriggerTiming,
    /// The events that call it.
    pub events: Vec<TriggerEvent>,
    /// Called for each row, not for each statement.
    pub is_row: bool,
    /// `UPDATE OF`: positions of the columns; empty for all.
    pub columns: Vec<u32>,
    /// SQL text of WHEN.
    pub condition: Option<String>,
    /// Its arguments.
    pub arguments: Vec<String>,
    /// The sessions in which it is called.
    pub firing: TriggerFiring,
    /// Name of the transition table of old rows.
    pub old_table: Option<String>,
    /// Name of the transition table of new rows.
    pub new_table: Option<String>,
    /// Created with CREATE CONSTRAINT TRIGGER.
    pub is_constraint: bool,
    /// The deferral mode of a constraint trigger.
    pub deferral: Deferral,
    /// Number of the table in FROM.
    pub referenced: Option<u32>,
    /// Fields that this build does not know.
    pub unknown: UnknownFields,
}

/// A trigger with its bound condition.
#[derive(Debug, Clone)]
pub struct Trigger {
    /// Its record.
    pub record: TriggerRecord,
    /// WHEN, over the columns of the old row, then those of the new one.
    pub condition: Option<Expr>,
}

impl Trigger {
    /// Returns whether UPDATE OF or WHEN names a column of the table, which has `width` columns.
    pub fn reads_column(&self, column: usize, width: usize) -> bool {
        let condition = self.condition.iter().flat_map(Expr::columns);
        self.record.columns.contains(&(column as u32))
            || condition.into_iter().any(|at| at % width.max(1) == column)
    }
}

impl TriggerRecord {
    /// Returns whether it is called for an event of its level.
    pub fn is_for(&self, timing: TriggerTiming, event: TriggerEvent, is_row: bool) -> bool {
        self.timing == timing && self.is_row == is_row && self.events.contains(&event)
    }

    /// Returns whether it is called in a session of this `session_replication_role`.
    pub fn fires_in(&self, is_replica: bool) -> bool {
        match self.firing {
            TriggerFiring::Origin => !is_replica,
            TriggerFiring::Disabled => false,
            TriggerFiring::Replica => is_replica,
            TriggerFiring::Always => true,
        }
    }

    /// Returns whether it reads transition tables.
    pub fn has_transitions(&self) -> bool {
        self.old_table.is_some() || self.new_table.is_some()
    }

    /// Returns `pg_trigger.tgtype`.
    pub fn type_bits(&self) -> i16 {
        let timing = match self.timing {
            TriggerTiming::Before => 2,
            TriggerTiming::After => 0,
            TriggerTiming::InsteadOf => 64,
        };
        let event = |event: &TriggerEvent| match event {
            TriggerEvent::Insert => 4,
            TriggerEvent::Delete => 8,
            TriggerEvent::Update => 16,
            TriggerEvent::Truncate => 32,
        };
        i16::from(self.is_row) + timing + self.events.iter().map(event).sum::<i16>()
    }

    /// Returns the events in the order of definitions.
    pub fn sorted_events(&self) -> Vec<TriggerEvent> {
        use TriggerEvent::{Delete, Insert, Truncate, Update};
        let order = [Insert, Delete, Update, Truncate];
        order.into_iter().filter(|event| self.events.contains(event)).collect()
    }
}

/// Returns a condition with a new name of a column of the table.
pub fn condition_with_name(text: &str, from: &str, to: &str) -> Result<String> {
    let mut places = Vec::new();
    for one in parser::column_references(text)? {
        let of_row = one.schema.as_deref().is_some_and(|row| ["old", "new"].contains(&row));
        if of_row && one.name == from {
            let row = one.schema.as_deref().unwrap_or_default();
            places.push((one.range, format!("{row}.{}", parser::quoted(to))));
        }
    }
    Ok(parser::replace(text, &places))
}

/// Returns the variables of the body of a trigger function: names and types, without those of its
/// rows, `new` and `old`, which come first.
pub fn body_variables() -> [(&'static str, DataType); 10] {
    [
        ("tg_name", DataType::Name),
        ("tg_when", DataType::Text),
        ("tg_level", DataType::Text),
        ("tg_op", DataType::Text),
        ("tg_relid", DataType::Oid),
        ("tg_relname", DataType::Name),
        ("tg_table_name", DataType::Name),
        ("tg_table_schema", DataType::Name),
        ("tg_nargs", DataType::Int4),
        ("tg_argv", DataType::array_of(&DataType::Text)),
    ]
}

/// Names of the variables with the rows of a trigger.
pub const ROW_VARIABLES: [&str; 2] = ["new", "old"];

/// Returns the name of the variable with the rows of a transition table; no identifier of a body
/// is like it by chance.
pub fn transition_variable(table: &str) -> String {
    format!("transition table {table}")
}

/// Returns the error for a table without a trigger of a name.
pub fn no_trigger(name: &str, table: &str) -> Error {
    err!(UNDEFINED_OBJECT: "trigger \"{name}\" for table \"{table}\" does not exist")
}
