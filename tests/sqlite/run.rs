//! Runner of records over a connection, which checks the answers.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use crate::raw::{Frames, Message, Raw};
use crate::sqlite::record::{Expected, Record, Sort};

/// OID of type boolean.
const BOOLEAN: u32 = 16;

/// Protocol of statements.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Protocol {
    /// One Query message each.
    Simple,
    /// Parse, Bind, Describe, Execute and Sync.
    Extended,
}

/// Outcome of a file.
#[derive(Debug, Default)]
pub(super) struct FileOutcome {
    /// Number of records that were run.
    pub(super) record_count: usize,
    /// The failures, by kind: SQLSTATE and message of an error, or the difference of the rows.
    pub(super) failures: BTreeMap<String, Vec<String>>,
    /// The slowest record: its line and duration.
    pub(super) slowest: (usize, Duration),
}

impl FileOutcome {
    /// Returns the number of records that failed.
    pub(super) fn failure_count(&self) -> usize {
        self.failures.values().map(Vec::len).sum()
    }
}

/// Runs records. `file` is their file's name, for messages.
pub(super) fn run(
    connection: &mut Raw,
    protocol: Protocol,
    file: &str,
    records: impl Iterator<Item = Record>,
) -> FileOutcome {
    let mut outcome = FileOutcome::default();
    for record in records {
        let began = Instant::now();
        let messages = ask(connection, protocol, &record.sql);
        let took = began.elapsed();
        if took > outcome.slowest.1 {
            outcome.slowest = (record.line, took);
        }
        outcome.record_count += 1;
        if let Err((kind, what)) = check_outcome(&record.expected, &messages) {
            let failure = format!("{file}:{}: {}\n    {what}", record.line, record.sql);
            outcome.failures.entry(kind).or_default().push(failure);
        }
    }
    outcome
}

fn ask(connection: &mut Raw, protocol: Protocol, sql: &str) -> Vec<Message> {
    let frames = match protocol {
        Protocol::Simple => Frames::new().query(sql),
        Protocol::Extended => {
            let bound = Frames::new().parse("", sql).bind("", "", &[]).describe(b'P', "");
            bound.execute("", 0).sync()
        }
    };
    connection.send(&frames.0);
    let messages = connection.until_ready();
    assert!(messages.last().is_some_and(|last| last.kind == b'Z'), "the server hung up: {sql}");
    messages
}

/// Returns the kind and details of a failure.
fn check_outcome(expected: &Expected, messages: &[Message]) -> Result<(), (String, String)> {
    let error = messages.iter().find(|message| message.kind == b'E').map(|message| {
        let field = |code| message.field(code).unwrap_or_default();
        format!("{}: {}", field(b'C'), field(b'M'))
    });
    match (expected, error) {
        (Expected::Error, Some(_)) => Ok(()),
        (Expected::Error, None) => Err(("no error".to_owned(), "it succeeded".to_owned())),
        (_, Some(error)) => Err((kind_of(&error), error)),
        (Expected::Success, None) => Ok(()),
        (Expected::Rows { types, sort, threshold, lines }, None) => {
            let found = values(messages, types, *sort)?;
            let shown = shown(&found, *threshold);
            if shown == *lines {
                return Ok(());
            }
            let few = |lines: &[String]| lines[..lines.len().min(20)].join(" ");
            let what = format!("expected {}\n    found {}", few(lines), few(&found));
            Err(("other rows".to_owned(), what))
        }
    }
}

/// Returns an error message without quoted names, so that similar errors are counted together.
fn kind_of(error: &str) -> String {
    let unquoted: Vec<&str> = error.split('"').step_by(2).collect();
    let kind = unquoted.join("…");
    kind.chars().map(|c| if c.is_ascii_digit() { '0' } else { c }).skip(7).collect::<String>()
        + &format!(" ({})", &error[..5])
}

/// Returns the values of all rows in the format of the files, sorted.
fn values(messages: &[Message], types: &str, sort: Sort) -> Result<Vec<String>, (String, String)> {
    let mut rows = Vec::new();
    let description = messages.iter().find(|message| message.kind == b'T');
    let columns = description.map(Message::columns).unwrap_or_default();
    for message in messages.iter().filter(|message| message.kind == b'D') {
        let row = message.values();
        if row.len() != types.len() {
            let what = format!("{} columns in place of {}", row.len(), types.len());
            return Err(("other columns".to_owned(), what));
        }
        let shown = row.iter().zip(types.chars()).zip(&columns);
        let shown = shown.map(|((value, letter), (_, oid))| match (value.as_deref(), letter) {
            // SQLite's booleans are numbers.
            (Some(value), 'I') if *oid == BOOLEAN => i32::from(value == "t").to_string(),
            (value, letter) => value_text(value, letter),
        });
        rows.push(shown.collect());
    }
    if sort == Sort::Rows {
        rows.sort();
    }
    let mut values: Vec<String> = rows.into_iter().flat_map(|row: Vec<String>| row).collect();
    if sort == Sort::Values {
        values.sort();
    }
    Ok(values)
}

/// Returns a value by the type letter of its column: `I` drops fractions, `R` has three decimals.
fn value_text(value: Option<&str>, letter: char) -> String {
    let Some(value) = value else { return "NULL".to_owned() };
    match letter {
        'I' => {
            let digits = value.strip_prefix('-').unwrap_or(value);
            let end = digits.find(|c: char| !c.is_ascii_digit()).unwrap_or(digits.len());
            let whole = &value[..value.len() - digits.len() + end];
            // -0.5 becomes 0.
            whole.parse::<i64>().map_or_else(|_| "0".to_owned(), |whole| whole.to_string())
        }
        'R' => format!("{:.3}", value.parse::<f64>().unwrap_or(0.0)),
        _ if value.is_empty() => "(empty)".to_owned(),
        _ => value.chars().map(|c| if (' '..='~').contains(&c) { c } else { '@' }).collect(),
    }
}

/// Returns the expected lines for these values.
fn shown(values: &[String], threshold: usize) -> Vec<String> {
    if threshold == 0 || values.len() <= threshold {
        return values.to_vec();
    }
    let mut text = String::new();
    for value in values {
        text.push_str(value);
        text.push('\n');
    }
    vec![format!("{} values hashing to {:x}", values.len(), md5::compute(text))]
}

#[test]
fn values_are_formatted_by_type_letter() {
    for (value, letter, expected) in [
        ("7", 'I', "7"),
        ("-7.9", 'I', "-7"),
        ("-0.5", 'I', "0"),
        ("abc", 'I', "0"),
        ("2.0005", 'R', "2.001"),
        ("", 'T', "(empty)"),
        ("a\tb", 'T', "a@b"),
    ] {
        assert_eq!(value_text(Some(value), letter), expected, "{value}");
    }
    assert_eq!(value_text(None, 'I'), "NULL");
    let values: Vec<String> = (1..=3).map(|n| n.to_string()).collect();
    assert_eq!(shown(&values, 3), values);
    assert_eq!(shown(&values, 2), ["3 values hashing to c0710d6b4f15dfa88f600b0e6b624077"]);
}
