//! ANALYZE statement, and the auto-analyze pass over changed tables.

use std::sync::Arc;

use crate::analyze;
use crate::ast;
use crate::catalog::Catalog;
use crate::catalog::access::owner_context::as_owner;
use crate::catalog::table::Table;
use crate::engine::Engine;
use crate::error::{Result, sqlstate};
use crate::exec;
use crate::session::Session;

/// Auto-analyze thresholds, in rows and as a fraction of the analysed rows: PostgreSQL's
/// `autovacuum_analyze_threshold` and `…_scale_factor`. A change must exceed their sum.
const CHANGED_ROWS: f64 = 50.0;
const CHANGED_PART: f64 = 0.1;

impl Session {
    /// Analyses the tables that are due, each in a separate transaction, and returns their
    /// number. Errors are logged. Sets `lock_timeout`: the session is used for nothing else.
    ///
    /// # Errors
    ///
    /// 57014 if it was cancelled.
    pub fn analyze_due(&mut self) -> Result<usize> {
        self.stop.begin_statement();
        // Does not wait long for concurrent DDL while it holds a snapshot.
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
                    tracing::debug!(
                        table = table.name,
                        "skipping analyze of a table: DDL is in progress"
                    );
                }
                // For example, regions that cannot be read.
                Err(error) => {
                    tracing::warn!(table = table.name, %error, "could not analyze a table");
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
        tracing::debug!(table = table.name, "analyzed a table");
        Ok(())
    }

    /// Executes ANALYZE for the named tables.
    pub(super) fn run_analyze(&mut self, tables: &[ast::TableName]) -> Result<()> {
        self.maintained(tables, "analyze")?.iter().try_for_each(|table| self.analyze(table))
    }

    fn analyze(&mut self, table: &Arc<Table>) -> Result<()> {
        // The snapshot must have all rows of the estimate, also those whose commit waits for the
        // disk. Rows that commit in between make the table due again; rows in the estimate and
        // not in the snapshot would never be analysed.
        let estimate = self.engine.store().row_estimate(table.id)?.rows;
        self.engine.store().wait_for_commits()?;
        self.begin_request();
        let open = self.open.as_ref().expect("a statement was begun");
        let context = self.context(open, Vec::new());
        let eval = as_owner(&context.eval, &self.catalog(), table.oid);
        let context = exec::Context { eval, ..context };
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
