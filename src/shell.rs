//! `bennu sql`: a shell for machines without psql.
//!
//! Statements end with `;` and may span lines. Rows are printed as psql prints them.

use std::io::{BufRead, Write};

use sql::session::Session;

use crate::error::{Error, Result};
use crate::statement;

/// Runs all statements of `text` and prints what each gives. Stops at the first error.
///
/// # Errors
///
/// What a statement raises.
pub fn run(session: &mut Session, text: &str, out: &mut dyn Write) -> Result<()> {
    statement::run_each(session, text, &mut |outcome| {
        match &outcome.rows {
            Some(rows) => write!(out, "{}", rows.render(usize::MAX))?,
            None => writeln!(out, "{}", outcome.completion.tag)?,
        }
        Ok(())
    })
}

/// Reads statements from `input` and runs them until its end. An error of a statement is printed
/// and the next one is read.
///
/// # Errors
///
/// If `input` or `out` fails.
pub fn interact(session: &mut Session, input: &mut dyn BufRead, out: &mut dyn Write) -> Result<()> {
    let mut pending = String::new();
    loop {
        let read = input.read_line(&mut pending)?;
        let complete = pending.trim_end().ends_with(';');
        if read > 0 && !complete {
            continue;
        }
        if !pending.trim().is_empty() {
            match run(session, &pending, out) {
                Err(Error::Sql(error)) => {
                    writeln!(out, "ERROR:  {} (SQLSTATE {})", error.message, error.sqlstate)?;
                    if let Some(hint) = &error.hint {
                        writeln!(out, "HINT:  {hint}")?;
                    }
                }
                other => other?,
            }
            out.flush()?;
        }
        pending.clear();
        if read == 0 {
            return Ok(());
        }
    }
}
