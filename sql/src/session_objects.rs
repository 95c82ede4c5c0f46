//! What a session has by name: prepared statements, cursors and portals, as views show them to it.
//!
//! The session says what there is; `pg_prepared_statements` and `pg_cursors` read it.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use parking_lot::Mutex;
use types::SqlType;

/// The prepared statements and cursors of a session.
#[derive(Debug, Default)]
pub struct SessionObjects {
    statements: Mutex<BTreeMap<String, ShownStatement>>,
    cursors: Mutex<BTreeMap<String, ShownCursor>>,
}

/// A prepared statement.
#[derive(Debug, Clone)]
pub struct ShownStatement {
    /// Its text.
    pub text: Arc<str>,
    /// When it was prepared, in microseconds of the Unix epoch.
    pub since: i64,
    /// The types of its parameters.
    pub parameter_types: Vec<SqlType>,
    /// It comes from PREPARE, not from the protocol.
    pub from_sql: bool,
    /// How often it ran.
    pub runs: Runs,
}

/// How often a statement ran.
#[derive(Debug, Clone, Default)]
pub struct Runs(Arc<AtomicI64>);

impl Runs {
    /// Notes that it runs once more.
    pub fn add(&self) {
        self.0.fetch_add(1, Ordering::Relaxed);
    }

    /// Returns how often it ran.
    pub fn count(&self) -> i64 {
        self.0.load(Ordering::Relaxed)
    }
}

/// A cursor, or a portal of the protocol.
#[derive(Debug, Clone)]
pub struct ShownCursor {
    /// The text of DECLARE, or of what a portal of the protocol runs; `None` for one without text.
    pub statement: Option<Arc<str>>,
    /// When it was declared, in microseconds of the Unix epoch.
    pub since: i64,
    /// It outlives its transaction.
    pub is_held: bool,
    /// It gives values in binary form.
    pub is_binary: bool,
    /// It can go back.
    pub is_scrollable: bool,
}

impl SessionObjects {
    /// Notes a statement.
    pub fn add_statement(&self, name: &str, statement: ShownStatement) {
        self.statements.lock().insert(name.to_owned(), statement);
    }

    /// Forgets the statements of which this is not true.
    pub fn retain_statements(&self, stays: impl Fn(&str) -> bool) {
        self.statements.lock().retain(|name, _| stays(name));
    }

    /// Notes a cursor.
    pub fn add_cursor(&self, name: &str, cursor: ShownCursor) {
        self.cursors.lock().insert(name.to_owned(), cursor);
    }

    /// Forgets the cursors of which this is not true.
    pub fn retain_cursors(&self, stays: impl Fn(&str) -> bool) {
        self.cursors.lock().retain(|name, _| stays(name));
    }

    /// Returns the statements, by name.
    pub fn statements(&self) -> Vec<(String, ShownStatement)> {
        let statements = self.statements.lock();
        statements.iter().map(|(name, one)| (name.clone(), one.clone())).collect()
    }

    /// Returns the cursors, by name.
    pub fn cursors(&self) -> Vec<(String, ShownCursor)> {
        let cursors = self.cursors.lock();
        cursors.iter().map(|(name, one)| (name.clone(), one.clone())).collect()
    }
}
