//! Checks of written rows: WITH CHECK OPTION of views, and row-level security policies.

use types::expr::Expr;

use crate::error::Error;
use crate::logical::RowAtHand;

/// Condition for rows that a statement writes, of a view or of a row-level security policy.
#[derive(Debug, Clone)]
pub struct RowCheck {
    /// Object that has the condition.
    pub subject: CheckSubject,
    /// Condition over the row in table order; with `row`, over the output of that.
    pub predicate: Expr,
    /// Plan for the subqueries of the condition, where it has any; its output is one column.
    pub row: Option<Box<RowAtHand>>,
}

/// Object that has the condition of a [`RowCheck`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CheckSubject {
    /// View WITH CHECK OPTION, by name.
    View(String),
    /// Policy.
    Policy {
        /// Name of the table.
        table: String,
        /// Name of a restrictive policy; `None` for all permissive ones together.
        policy: Option<String>,
        /// Time of the check.
        time: CheckTime,
    },
}

impl CheckSubject {
    /// Returns the time of a policy's check; `None` for a view, whose rows are checked after they
    /// are written.
    pub fn time(&self) -> Option<CheckTime> {
        match self {
            CheckSubject::View(_) => None,
            CheckSubject::Policy { time, .. } => Some(*time),
        }
    }

    /// Returns the error of a row that violates it.
    pub fn violation(&self) -> Error {
        let (table, policy, time) = match self {
            CheckSubject::View(view) => {
                return err!(WITH_CHECK_OPTION_VIOLATION: "new row violates check option for view \"{view}\"");
            }
            CheckSubject::Policy { table, policy, time } => (table, policy, time),
        };
        let (row, using) = match time {
            CheckTime::Insert | CheckTime::Update => ("new", ""),
            CheckTime::Conflict => ("new", " (USING expression)"),
            CheckTime::MergeUpdate | CheckTime::MergeDelete => ("target", " (USING expression)"),
        };
        let policy = policy.as_ref().map(|name| format!(" \"{name}\"")).unwrap_or_default();
        err!(INSUFFICIENT_PRIVILEGE: "{row} row violates row-level security policy{policy}{using} for table \"{table}\"")
    }
}

/// Time at which a row is checked by policies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CheckTime {
    /// A new row, before it is inserted.
    Insert,
    /// A new version of a row, before it is stored.
    Update,
    /// The existing row, before ON CONFLICT updates it.
    Conflict,
    /// The existing row, before MERGE updates it.
    MergeUpdate,
    /// The existing row, before MERGE deletes it.
    MergeDelete,
}
