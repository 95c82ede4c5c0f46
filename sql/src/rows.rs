//! Result rows of a running statement, and its completion.
//!
//! The session returns [`ResultRows`] for a portal; the wire layer fetches batches from them and
//! sends the completion's command tag at the end.

use std::sync::Arc;

use smallvec::SmallVec;
use store::Transaction;
use types::text::TextStyle;
use types::{Batch, DataType, Datum};

use crate::batch_buffer::BatchBuffer;
use crate::error::{Error, Result, sqlstate};
use crate::exec::Operator;
use crate::logical::OutputColumn;
use crate::timer::{MemoryShortage, StopFlag};

/// Content of CommandComplete.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Completion {
    /// Command tag, for example `INSERT 0 1`; empty for an empty statement.
    pub tag: String,
}

impl Completion {
    /// Returns a completion with this tag.
    pub fn new(tag: impl Into<String>) -> Completion {
        Completion { tag: tag.into() }
    }
}

/// Kind of command tag.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum CommandTag {
    /// Counts the returned rows, after this word: `SELECT 3`.
    Returned(&'static str),
    /// Fixed: a data-changing statement counts the rows that it changed.
    Fixed(String),
}

enum RowsSource {
    /// Row of a point get, until it is returned.
    Point(Option<Vec<Datum>>),
    Operator(RunningPlan),
    Ready(Box<BatchBuffer>),
}

/// A running plan and its transaction.
pub(crate) struct RunningPlan {
    /// Topmost operator of the plan.
    pub(crate) operator: Box<dyn Operator>,
    /// Transaction, whose execution slot is taken for each batch.
    pub(crate) transaction: Arc<Transaction>,
}

impl RunningPlan {
    /// Returns the next rows. Holds an execution slot only during the call, not while the client
    /// reads.
    fn next(&mut self) -> Result<Option<Batch>> {
        let _turn = self.transaction.turn();
        self.operator.next()
    }
}

/// Rows of a running statement. Independent of the session, so that several portals can be open.
pub struct ResultRows {
    columns: Arc<[OutputColumn]>,
    source: RowsSource,
    /// Batch that was fetched and not completely returned, and the number of its returned rows.
    pending: Option<(Batch, usize)>,
    returned: u64,
    /// Rows returned in all fetches.
    passed: u64,
    tag: CommandTag,
    stop: Arc<StopFlag>,
    /// Rows of a BINARY cursor: clients that request text format get binary format, too.
    pub(crate) is_binary: bool,
}

impl ResultRows {
    /// Returns whether a client that does not choose a format gets binary format.
    pub fn is_binary(&self) -> bool {
        self.is_binary
    }

    /// Returns the rows of an operator.
    pub(crate) fn streaming(
        columns: Arc<[OutputColumn]>,
        operator: RunningPlan,
        tag: CommandTag,
        stop: Arc<StopFlag>,
    ) -> ResultRows {
        ResultRows::new(columns, RowsSource::Operator(operator), tag, stop)
    }

    /// Returns the row of a point get, if there is one.
    pub(crate) fn point(
        columns: Arc<[OutputColumn]>,
        row: Option<Vec<Datum>>,
        stop: Arc<StopFlag>,
    ) -> ResultRows {
        ResultRows::new(columns, RowsSource::Point(row), CommandTag::Returned("SELECT"), stop)
    }

    /// Returns rows that are already computed.
    pub(crate) fn ready(
        columns: Arc<[OutputColumn]>,
        batches: impl IntoIterator<Item = Batch>,
        tag: CommandTag,
        stop: Arc<StopFlag>,
    ) -> ResultRows {
        ResultRows::buffered(columns, batches.into_iter().collect(), tag, stop)
    }

    /// Returns materialised rows, in memory or on disk.
    pub(crate) fn buffered(
        columns: Arc<[OutputColumn]>,
        batches: BatchBuffer,
        tag: CommandTag,
        stop: Arc<StopFlag>,
    ) -> ResultRows {
        ResultRows::new(columns, RowsSource::Ready(Box::new(batches)), tag, stop)
    }

    fn new(
        columns: Arc<[OutputColumn]>,
        source: RowsSource,
        tag: CommandTag,
        stop: Arc<StopFlag>,
    ) -> ResultRows {
        ResultRows {
            columns,
            source,
            pending: None,
            returned: 0,
            passed: 0,
            tag,
            stop,
            is_binary: false,
        }
    }

    /// Returns rows of text columns.
    pub(crate) fn of_text(
        names: &[&str],
        rows: &[Vec<String>],
        tag: CommandTag,
        stop: Arc<StopFlag>,
    ) -> ResultRows {
        let columns = names
            .iter()
            .map(|name| OutputColumn {
                name: (*name).to_owned(),
                sql_type: DataType::Text.into(),
                origin: None,
            })
            .collect();
        let datums: Vec<Vec<Datum>> = rows
            .iter()
            .map(|row| row.iter().map(|value| Datum::text(value.as_str())).collect())
            .collect();
        let batch = Batch::from_rows(&vec![DataType::Text; names.len()], &datums);
        ResultRows::ready(columns, [batch], tag, stop)
    }

    /// Returns the columns.
    pub fn columns(&self) -> &[OutputColumn] {
        &self.columns
    }

    /// Returns the next rows, at most `row_limit`; `None` at the end.
    pub fn next_batch(&mut self, row_limit: usize) -> Result<Option<Batch>> {
        let (batch, start) = match self.pending.take() {
            Some(pending) => pending,
            None => match self.fetch()? {
                Some(batch) => (batch, 0),
                None => return Ok(None),
            },
        };
        let end = batch.row_count.min(start.saturating_add(row_limit));
        self.returned += (end - start) as u64;
        self.passed += (end - start) as u64;
        if start == 0 && end == batch.row_count {
            return Ok(Some(batch));
        }
        let selection: Vec<u32> = (start as u32..end as u32).collect();
        let part = batch.take(&selection);
        if end < batch.row_count {
            self.pending = Some((batch, end));
        }
        Ok(Some(part))
    }

    /// Returns the next non-empty batch.
    fn fetch(&mut self) -> Result<Option<Batch>> {
        loop {
            let next = match &mut self.source {
                RowsSource::Operator(running) => {
                    running.next().map_err(|error| with_cancel_reason(error, &self.stop))?
                }
                RowsSource::Ready(batches) => batches.pop_front()?,
                RowsSource::Point(row) => row.take().map(|row| {
                    let types: SmallVec<[DataType; 8]> =
                        self.columns.iter().map(|column| column.sql_type.base.clone()).collect();
                    Batch::from_rows(&types, std::slice::from_ref(&row))
                }),
            };
            match next {
                Some(batch) if batch.row_count == 0 => {}
                next => return Ok(next),
            }
        }
    }

    /// Returns the text style with an interrupt that ends long formatting when the statement is
    /// cancelled.
    pub fn style(&self, style: TextStyle) -> TextStyle {
        TextStyle { interrupt: self.stop.interrupt(), ..style }
    }

    /// Returns an error of writing the rows; of a cancelled statement, with the reason.
    pub fn failure(&self, error: Error) -> Error {
        with_cancel_reason(error, &self.stop)
    }

    /// Restarts the count of the completion: a client that fetches in several parts gets the row
    /// count of each.
    pub fn restart_count(&mut self) {
        self.returned = 0;
    }

    /// Returns the number of rows returned since the statement was started.
    pub fn returned_total(&self) -> u64 {
        self.passed
    }

    /// Returns the completion, whose tag counts the returned rows.
    pub fn completion(&self) -> Completion {
        match &self.tag {
            CommandTag::Returned(word) => Completion::new(format!("{word} {}", self.returned)),
            CommandTag::Fixed(tag) => Completion::new(tag.clone()),
        }
    }
}

/// Returns the error of a statement; if it was cancelled, with the reason.
pub(crate) fn with_cancel_reason(mut error: Error, stop: &StopFlag) -> Error {
    if error.sqlstate == sqlstate::QUERY_CANCELED && stop.is_terminated() {
        error.sqlstate = sqlstate::ADMIN_SHUTDOWN.into();
        "terminating connection due to administrator command".clone_into(&mut error.message);
    } else if error.sqlstate == sqlstate::QUERY_CANCELED && stop.timed_out() {
        "canceling statement due to statement timeout".clone_into(&mut error.message);
    } else if error.sqlstate == sqlstate::QUERY_CANCELED
        && let Some(shortage) = stop.memory_shortage()
    {
        return out_of_memory(shortage);
    }
    error
}

/// Returns the error of a statement that was cancelled to free its memory.
pub(crate) fn out_of_memory(shortage: MemoryShortage) -> Error {
    err!(OUT_OF_MEMORY: "out of memory"; detail shortage.detail;
        hint "Restrict the query, add a LIMIT or an index, run fewer such statements concurrently, or start the server with \
        more --memory.")
}
