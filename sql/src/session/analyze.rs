//! ANALYZE, by statement and by itself.

use std::sync::Arc;

use crate::analyze;
use crate::ast;
use crate::catalog::Catalog;
use crate::catalog::table::Table;
use crate::engine::Engine;
use crate::error::{Result, sqlstate};
use crate::session::Session;

/// A table is analysed again when it has so many rows more or less than then, and that part of
/// them: PostgreSQL's `autovacuum_analyze_threshold` and `…_scale_factor`.
const CHANGED_ROWS: f64 = 50.0;
const CHANGED_PART: f64 = 0.1;

impl Session {
    /// Analyses, each in a transaction of its own, the tables that have changed much since they
    /// were analysed last. What fails is logged. Returns how many were analysed. Sets
    /// `lock_timeout`: the session is for this alone.
    ///
    /// # Errors
    ///
    /// 57014 if it was cancelled.
    pub fn analyze_due(&mut self) -> Result<usize> {
        self.stop.begin_statement();
        // Another one's DDL is not waited for with a snapshot in hand.
        self.settings.set("lock_timeout", Some("100ms"))?;
        let catalog = self.engine.catalog();
        let engine = Arc::clone(&self.engine);
        let mut count = 0;
        for table in catalog.tables() {
            if !is_due(table, &catalog, &engine) {
                continue;
            }
            match self.analyze_alone(table) {
                Ok(()) => count += 1,
                Err(error) if error.sqlstate == sqlstate::QUERY_CANCELED => return Err(error),
                Err(error) if error.sqlstate == sqlstate::LOCK_NOT_AVAILABLE => {
                    tracing::debug!(table = table.name, "DDL is under way; analysed another time");
                }
                // Its regions cannot be read.
                Err(error) => {
                    tracing::warn!(table = table.name, %error, "could not analyse a table");
                }
            }
        }
        Ok(count)
    }

    fn analyze_alone(&mut self, table: &Arc<Table>) -> Result<()> {
        let done = self.analyze(table).and_then(|()| self.end_implicit());
        if let Some(ticket) = done.map_err(|mut error| {
            self.fail(&mut error);
            error
        })? {
            ticket.wait()?;
        }
        tracing::debug!(table = table.name, "analysed a table");
        Ok(())
    }

    /// Reads tables and keeps what their columns' values tell.
    pub(super) fn run_analyze(&mut self, tables: &[ast::TableName]) -> Result<()> {
        self.maintained(tables)?.iter().try_for_each(|table| self.analyze(table))
    }

    fn analyze(&mut self, table: &Arc<Table>) -> Result<()> {
        // All rows that are in the estimate are to be in the snapshot, those too whose commit still
        // waits for the disk: what comes in between makes the table due once more, and what the
        // estimate has and the snapshot has not would never be looked at again.
        let estimate = self.engine.store().row_estimate(table.id)?.rows;
        self.engine.store().wait_for_commits()?;
        self.begin_request();
        let open = self.open.as_ref().expect("a statement was begun");
        let context = self.context(open, Vec::new());
        let turn = open.transaction.turn();
        let statistics = analyze::analyze(table, estimate, context)?;
        drop(turn);
        self.in_any_ddl(|ddl| ddl.set_statistics(table.id, statistics.clone()))
    }
}

fn is_due(table: &Table, catalog: &Catalog, engine: &Engine) -> bool {
    let Ok(now) = engine.store().row_estimate(table.id) else { return false };
    let then = catalog.statistics(table.id).map_or(0, |statistics| statistics.estimate);
    now.rows.abs_diff(then) as f64 > CHANGED_ROWS + CHANGED_PART * then as f64
}
