//! Statements that are run inside the process, by the shell, the demo and embedding programs.

use sql::session::rows::Completion;
use sql::session::{Execution, Session};

use crate::error::Result;
use crate::result_table::Table;

/// The outcome of one statement.
pub struct Outcome {
    /// The rows, if it returns any.
    pub rows: Option<Table>,
    /// Command tag and counts.
    pub completion: Completion,
    /// The plan in one line, if the statement has one.
    pub plan: Option<String>,
}

/// Starts the single statement of `text`. The caller ends it with [`commit`].
///
/// # Errors
///
/// Those of the statement; the transaction is then rolled back.
pub fn start(session: &mut Session, text: &str) -> Result<Execution> {
    attempt(session, |session| {
        let parsed = sql::session::parse(text)?.into_iter().next().ok_or_else(|| {
            sql::Error::new(sql::error::sqlstate::SYNTAX_ERROR, "there is no statement")
        })?;
        let prepared = session.prepare(&parsed, &[])?;
        session.execute(&prepared, Vec::new())
    })
}

/// Runs all statements of `text` and passes each outcome to `show`. Each statement is committed
/// separately unless in a transaction block.
///
/// # Errors
///
/// Those of a statement, after which the transaction is rolled back; those of `show`.
pub fn run_each(
    session: &mut Session,
    text: &str,
    show: &mut dyn FnMut(Outcome) -> Result<()>,
) -> Result<()> {
    for parsed in sql::session::parse(text)? {
        let outcome = attempt(session, |session| {
            let prepared = session.prepare(&parsed, &[])?;
            let plan = prepared.summary();
            let execution = session.execute(&prepared, Vec::new())?;
            collect(session, execution, plan)
        })?;
        commit(session)?;
        show(outcome)?;
    }
    Ok(())
}

/// Runs all statements of `text` as [`run_each`] does and returns the outcome of the last one.
///
/// # Errors
///
/// As for [`run_each`].
pub fn run(session: &mut Session, text: &str) -> Result<Outcome> {
    let mut last = Outcome { rows: None, completion: Completion::new(""), plan: None };
    run_each(session, text, &mut |outcome| {
        last = outcome;
        Ok(())
    })?;
    Ok(last)
}

/// Ends the implicit transaction and waits until it is durable.
///
/// # Errors
///
/// Those of the commit.
pub fn commit(session: &mut Session) -> Result<()> {
    if let Some(ticket) = session.take_ticket() {
        ticket.wait()?;
    }
    if let Some(ticket) = session.end_implicit()? {
        ticket.wait()?;
    }
    Ok(())
}

fn attempt<T>(
    session: &mut Session,
    act: impl FnOnce(&mut Session) -> sql::Result<T>,
) -> Result<T> {
    act(session).map_err(|mut error| {
        session.fail(&mut error);
        error.into()
    })
}

fn collect(session: &Session, execution: Execution, plan: Option<String>) -> sql::Result<Outcome> {
    match execution {
        Execution::Done(completion) => Ok(Outcome { rows: None, completion, plan }),
        Execution::Rows(mut rows) => {
            let mut table = Table::new(rows.columns());
            while let Some(batch) = rows.next_batch(usize::MAX)? {
                table.push(&batch, &session.text_style());
            }
            Ok(Outcome { rows: Some(table), completion: rows.completion(), plan })
        }
        Execution::CopyIn(_) | Execution::CopyOut(..) => Err(sql::Error::not_supported(
            "COPY in bennu sql",
            "Connect with psql for COPY FROM STDIN and COPY TO STDOUT.",
        )),
    }
}
