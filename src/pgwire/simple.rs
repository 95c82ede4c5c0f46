//! The simple query protocol: one text in, all results out.
//!
//! The statements of one message share an implicit transaction, as in PostgreSQL; the completion
//! of the last one is sent after the commit. Plans of repeated texts are cached.

use std::sync::Arc;

use pgwire::messages::response::EmptyQueryResponse;
use sql::ast::Statement;
use sql::session::rows::Completion;
use sql::session::{Execution, ParsedRequest, PreparedStatement};

use crate::pgwire::connection::Connection;
use crate::pgwire::failure::{Result, run};
use crate::pgwire::row::{Formats, RowEncoder};

impl Connection {
    /// Answers a Query message, up to ReadyForQuery.
    pub(super) fn simple_query(&mut self, text: &str) -> Result<()> {
        self.unnamed = None;
        self.session.close_portal("");
        let text = &*self.session.conforming(text)?;
        if let Some(prepared) = self.session.cached(text) {
            if self.session.is_prepared_logged(&prepared) {
                self.client.log_statement(text, None);
            }
            let completion = self.run_prepared(&prepared)?;
            self.end_implicit()?;
            self.put_completion(completion);
            return Ok(());
        }
        let parsed = run(|| self.session.parse(text))?;
        if parsed.iter().any(|parsed| self.session.is_logged(parsed.statement())) {
            let has_password = |parsed: &ParsedRequest| match parsed.statement() {
                Statement::Role(statement) => statement.has_password(),
                _ => false,
            };
            match parsed.iter().any(has_password) {
                true => {
                    let texts: Vec<&str> = parsed.iter().map(ParsedRequest::text).collect();
                    self.client.log_statement(&texts.join("; "), None);
                }
                false => self.client.log_statement(text, None),
            }
        }
        self.session.set_in_script(parsed.len() > 1);
        let Some((last, others)) = parsed.split_last() else {
            self.channel.output().put(&EmptyQueryResponse::new());
            return self.end_implicit();
        };
        for parsed in others {
            let prepared = self.prepare(parsed)?;
            let completion = self.run_prepared(&prepared)?;
            self.put_completion(completion);
            self.channel.flush_if_full()?;
        }
        let prepared = self.prepare(last)?;
        if others.is_empty() {
            self.session.cache_plan(text, &prepared);
        }
        let completion = self.run_prepared(&prepared)?;
        self.end_implicit()?;
        self.put_completion(completion);
        Ok(())
    }

    /// Plans a statement.
    fn prepare(&mut self, parsed: &ParsedRequest) -> Result<Arc<PreparedStatement>> {
        let session = &mut self.session;
        run(|| session.prepare(parsed, &[]))
    }

    /// Runs a statement and sends its rows.
    fn run_prepared(&mut self, prepared: &Arc<PreparedStatement>) -> Result<Completion> {
        let completion = match self.start_statement(prepared, Vec::new())? {
            Execution::Done(completion) => completion,
            Execution::Rows(mut rows) => {
                let formats = match rows.is_binary() {
                    true => Formats::binary(),
                    false => Formats::default(),
                };
                self.put_row_description(rows.columns(), &formats)?;
                let encoder = RowEncoder::new(rows.columns(), &formats);
                self.send_rows(&mut rows, &encoder, usize::MAX)?;
                rows.completion()
            }
            Execution::CopyIn(copy) => self.copy_in(copy)?,
            Execution::CopyOut(rows, format) => self.copy_out(rows, &format)?,
        };
        self.put_notices();
        self.wait_statement_durable()?;
        Ok(completion)
    }
}
