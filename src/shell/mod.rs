//! SQL shell for machines without psql: `bennu sql`.
//!
//! A statement ends with `;` outside of quotes and comments and may span lines; the shell runs
//! one after the other. Rows are printed in psql's format, errors to a separate stream. At a
//! terminal the shell prints a prompt. It supports psql's commands `\q` and `\?`; others are
//! errors.

mod splitter;

use std::io::{BufRead, Write};

use sql::session::Session;

use crate::error::{Error, Result};
use crate::shell::splitter::{StatementSplit, split};
use crate::statement;

/// The prompts of a new statement and of a continuation line.
const PROMPTS: [&str; 2] = ["bennu=> ", "bennu-> "];

const HELP: &str = "End a statement with a semicolon to run it.
  \\q  quit
  \\?  show this help
The other commands of psql are not supported: connect with psql to a server.
";

/// The streams of the shell.
pub struct Streams<'a> {
    /// Statements.
    pub input: &'a mut dyn BufRead,
    /// Rows and command tags.
    pub output: &'a mut dyn Write,
    /// Errors of statements.
    pub errors: &'a mut dyn Write,
    /// The input is a terminal: prompts are printed.
    pub is_terminal: bool,
}

/// Runs all statements of `text` and prints their results. Stops at the first error.
///
/// # Errors
///
/// Those of a statement.
pub fn run(session: &mut Session, text: &str, out: &mut dyn Write) -> Result<()> {
    statement::run_each(session, text, &mut |outcome| {
        match &outcome.rows {
            Some(rows) => write!(out, "{}", rows.render(usize::MAX))?,
            None => writeln!(out, "{}", outcome.completion.tag)?,
        }
        Ok(())
    })
}

/// Reads statements from the input and runs each until the end of the input or `\q`. An error of a
/// statement is printed and the next one is read.
///
/// # Errors
///
/// If a stream fails; [`Error::Script`] if statements failed and the input is not a terminal.
pub fn interact(session: &mut Session, streams: &mut Streams<'_>) -> Result<()> {
    let mut pending = String::new();
    let mut failed = 0;
    loop {
        if streams.is_terminal {
            let goes_on = !pending.trim().is_empty();
            write!(streams.output, "{}", PROMPTS[usize::from(goes_on)])?;
        }
        streams.output.flush()?;
        let mut line = String::new();
        let is_end = streams.input.read_line(&mut line)? == 0;
        if line.starts_with('\\') && !split(&pending).is_quoted {
            if run_command(line.trim_end(), streams, &mut failed)? {
                break;
            }
            continue;
        }
        pending.push_str(&line);
        let StatementSplit { statements, rest, .. } = split(&pending);
        for text in statements {
            failed += run_one(session, text, streams)?;
        }
        if is_end {
            failed += run_one(session, rest, streams)?;
            break;
        }
        pending = rest.to_owned();
    }
    if streams.is_terminal {
        writeln!(streams.output)?;
    }
    match failed {
        failed if failed > 0 && !streams.is_terminal => Err(Error::Script { failed }),
        _ => Ok(()),
    }
}

/// Runs a backslash command; returns whether it ends the shell.
fn run_command(line: &str, streams: &mut Streams<'_>, failed: &mut usize) -> Result<bool> {
    let command = line.split_whitespace().next().unwrap_or_default();
    match command {
        "\\q" => return Ok(true),
        "\\?" => write!(streams.output, "{HELP}")?,
        _ => {
            *failed += 1;
            writeln!(streams.errors, "ERROR:  command {command} of psql is not supported")?;
            writeln!(streams.errors, "HINT:  Connect with psql for it, or try \\? for help.")?;
        }
    }
    Ok(false)
}

/// Runs a statement and prints its outcome; returns the number of failures.
fn run_one(session: &mut Session, text: &str, streams: &mut Streams<'_>) -> Result<usize> {
    if text.trim().is_empty() {
        return Ok(0);
    }
    match run(session, text, streams.output) {
        Err(Error::Sql(error)) => {
            streams.output.flush()?;
            writeln!(streams.errors, "ERROR:  {} (SQLSTATE {})", error.message, error.sqlstate)?;
            for (label, text) in [("DETAIL", &error.detail), ("HINT", &error.hint)] {
                if let Some(text) = text {
                    writeln!(streams.errors, "{label}:  {text}")?;
                }
            }
            Ok(1)
        }
        other => other.map(|()| 0),
    }
}
