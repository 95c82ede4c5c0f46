//! Session objects for system views: prepared statements, cursors and portals by name. Also the
//! session's holds of regions.
//!
//! The session updates this registry; `pg_prepared_statements` and `pg_cursors` read it.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;
use store::store::HoldGuard;
use types::SqlType;

/// Prepared statements and cursors of a session.
#[derive(Debug, Default)]
pub struct SessionObjects {
    statements: Mutex<BTreeMap<String, StatementRow>>,
    cursors: Mutex<BTreeMap<String, CursorRow>>,
    holds: Holds,
}

/// Holds of primaries and replicas, which end with the session.
#[derive(Default)]
struct Holds(Mutex<Vec<HoldGuard>>);

impl fmt::Debug for Holds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Holds").finish_non_exhaustive()
    }
}

/// A prepared statement.
#[derive(Debug, Clone)]
pub struct StatementRow {
    /// Statement text.
    pub text: Arc<str>,
    /// Time of the preparation, in microseconds of the Unix epoch.
    pub since: i64,
    /// Types of its parameters.
    pub parameter_types: Vec<SqlType>,
    /// True for PREPARE, false for a Parse message.
    pub from_sql: bool,
    /// Number of executions.
    pub runs: ExecutionCounter,
}

/// Execution counter of a statement, shared with its view entry.
#[derive(Debug, Clone, Default)]
pub struct ExecutionCounter(Arc<AtomicI64>);

impl ExecutionCounter {
    /// Counts one execution.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns the number of executions.
    pub fn count(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A cursor, or a protocol portal.
#[derive(Debug, Clone)]
pub struct CursorRow {
    /// Text of DECLARE, or of a portal's statement; `None` for a portal without text.
    pub statement: Option<Arc<str>>,
    /// Time of the declaration, in microseconds of the Unix epoch.
    pub since: i64,
    /// WITH HOLD.
    pub is_held: bool,
    /// BINARY.
    pub is_binary: bool,
    /// SCROLL.
    pub is_scrollable: bool,
}

impl SessionObjects {
    /// Adds a hold of a primary or of the replicas.
    pub fn hold(&self, hold: HoldGuard) {
        let mut holds = self.holds.0.lock();
        holds.retain(HoldGuard::is_held);
        holds.push(hold);
    }

    /// Ends all holds.
    pub fn release_holds(&self) {
        self.holds.0.lock().clear();
    }

    /// Adds a statement.
    pub fn add_statement(&self, name: &str, statement: StatementRow) {
        self.statements.lock().insert(name.to_owned(), statement);
    }

    /// Removes the statements for which `stays` is false.
    pub fn retain_statements(&self, stays: impl Fn(&str) -> bool) {
        self.statements.lock().retain(|name, _| stays(name));
    }

    /// Adds a cursor.
    pub fn add_cursor(&self, name: &str, cursor: CursorRow) {
        self.cursors.lock().insert(name.to_owned(), cursor);
    }

    /// Removes the cursors for which `stays` is false.
    pub fn retain_cursors(&self, stays: impl Fn(&str) -> bool) {
        self.cursors.lock().retain(|name, _| stays(name));
    }

    /// Returns the statements, by name.
    pub fn statements(&self) -> Vec<(String, StatementRow)> {
        let statements = self.statements.lock();
        statements.iter().map(|(name, one)| (name.clone(), one.clone())).collect()
    }

    /// Returns the cursors, by name.
    pub fn cursors(&self) -> Vec<(String, CursorRow)> {
        let cursors = self.cursors.lock();
        cursors.iter().map(|(name, one)| (name.clone(), one.clone())).collect()
    }
}
