//! Statements about triggers.

use super::{Deferral, Ident, SourceExpr, TableName};

/// A statement about triggers.
#[derive(Debug, Clone, PartialEq)]
pub enum TriggerStatement {
    /// `CREATE TRIGGER`
    Create(Box<CreateTrigger>),
    /// `DROP TRIGGER`
    Drop(DropTrigger),
    /// `ALTER TRIGGER … RENAME TO`
    Rename(RenameTrigger),
}

impl TriggerStatement {
    /// Returns its command tag.
    pub fn tag(&self) -> &'static str {
        match self {
            TriggerStatement::Create(_) => "CREATE TRIGGER",
            TriggerStatement::Drop(_) => "DROP TRIGGER",
            TriggerStatement::Rename(_) => "ALTER TRIGGER",
        }
    }
}

/// `CREATE [OR REPLACE] [CONSTRAINT] TRIGGER`
#[derive(Debug, Clone, PartialEq)]
pub struct CreateTrigger {
    /// `OR REPLACE`
    pub or_replace: bool,
    /// `CONSTRAINT`
    pub is_constraint: bool,
    /// Its name.
    pub name: Ident,
    /// The time of its calls.
    pub timing: TriggerTiming,
    /// The events, each at most once.
    pub events: Vec<TriggerEvent>,
    /// `UPDATE OF`: the columns.
    pub columns: Vec<Ident>,
    /// The table or view.
    pub table: TableName,
    /// `FROM`: the table that a constraint trigger references.
    pub referenced: Option<TableName>,
    /// The deferral mode of a constraint trigger.
    pub deferral: Deferral,
    /// `REFERENCING`: the transition tables.
    pub transitions: Vec<TransitionTable>,
    /// `FOR EACH ROW`
    pub is_row: bool,
    /// `WHEN`
    pub condition: Option<SourceExpr>,
    /// The function.
    pub function: TableName,
    /// The arguments of the trigger.
    pub arguments: Vec<String>,
}

/// `{ OLD | NEW } TABLE AS name`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TransitionTable {
    /// `NEW`
    pub is_new: bool,
    /// Its name.
    pub name: Ident,
}

/// `DROP TRIGGER`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DropTrigger {
    /// `IF EXISTS`
    pub if_exists: bool,
    /// The trigger.
    pub name: Ident,
    /// Its table or view.
    pub table: TableName,
    /// `CASCADE`
    pub cascade: bool,
}

/// `ALTER TRIGGER … RENAME TO`
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RenameTrigger {
    /// The trigger.
    pub name: Ident,
    /// Its table or view.
    pub table: TableName,
    /// The new name.
    pub to: Ident,
}

/// The time of a trigger's calls.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TriggerTiming {
    /// `BEFORE`
    #[default]
    Before,
    /// `AFTER`
    After,
    /// `INSTEAD OF`
    InsteadOf,
}

impl TriggerTiming {
    /// Returns its key words.
    pub fn words(self) -> &'static str {
        match self {
            TriggerTiming::Before => "BEFORE",
            TriggerTiming::After => "AFTER",
            TriggerTiming::InsteadOf => "INSTEAD OF",
        }
    }
}

/// An event that calls a trigger.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum TriggerEvent {
    /// `INSERT`
    Insert,
    /// `DELETE`
    Delete,
    /// `UPDATE`
    Update,
    /// `TRUNCATE`
    Truncate,
}

impl TriggerEvent {
    /// Returns its key word.
    pub fn word(self) -> &'static str {
        match self {
            TriggerEvent::Insert => "INSERT",
            TriggerEvent::Delete => "DELETE",
            TriggerEvent::Update => "UPDATE",
            TriggerEvent::Truncate => "TRUNCATE",
        }
    }
}

/// The sessions in which a trigger is called, by `session_replication_role`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum TriggerFiring {
    /// `ENABLE`: not in replicas.
    #[default]
    Origin,
    /// `DISABLE`
    Disabled,
    /// `ENABLE REPLICA`
    Replica,
    /// `ENABLE ALWAYS`
    Always,
}
