//! The records of a file in SQLite's own format, as the label `postgresql` sees them.
//!
//! Paragraphs are separated by blank lines. One is a statement or a query, with `skipif` and
//! `onlyif` lines before it; `#` begins a comment.

/// The label that conditions are about.
const LABEL: &str = "postgresql";

/// The statement or query of a paragraph.
#[derive(Debug)]
pub(super) struct Record {
    /// Line of the file, from 1, where its paragraph begins: conditions are part of it.
    pub(super) line: usize,
    /// What is to be run.
    pub(super) sql: String,
    /// What is to come back.
    pub(super) expected: Expected,
}

/// What a record is to give.
#[derive(Debug)]
pub(super) enum Expected {
    /// No error.
    Success,
    /// Any error.
    Error,
    /// Rows.
    Rows {
        /// A letter for each column: `I`, `R` or `T`.
        types: String,
        /// How the values are brought in order.
        sort: Sort,
        /// How many values are shown; above it, their number and hash. 0: always all.
        threshold: usize,
        /// The values, one a line, or `n values hashing to …`.
        lines: Vec<String>,
    },
}

/// How values are brought in order before they are compared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// As they come.
    None,
    /// By row.
    Rows,
    /// All values together.
    Values,
}

/// Returns the records of a file that are meant for the label, up to `halt`.
pub(super) fn parse(text: &str) -> Result<Vec<Record>, String> {
    let mut records = Vec::new();
    let mut threshold = 0;
    let mut lines = text.lines().enumerate().peekable();
    while lines.peek().is_some() {
        let paragraph: Vec<(usize, &str)> =
            lines.by_ref().take_while(|(_, line)| !line.is_empty()).collect();
        let mut meant = true;
        let mut rest = paragraph.iter().filter(|(_, line)| !line.starts_with('#')).peekable();
        let Some((start, _)) = rest.peek() else { continue };
        let line = start + 1;
        while let Some((_, text)) = rest.next() {
            let words: Vec<&str> = text.split_whitespace().collect();
            match words.as_slice() {
                ["skipif", label] => meant &= *label != LABEL,
                ["onlyif", label] => meant &= *label == LABEL,
                ["hash-threshold", count] => {
                    threshold = count.parse().map_err(|_| format!("{line}: {text}"))?;
                }
                ["control", ..] => {}
                ["halt"] if meant => return Ok(records),
                ["halt"] => {}
                _ => {
                    let body: Vec<&str> = rest.by_ref().map(|(_, text)| *text).collect();
                    let expected = expected(&words, &body, threshold);
                    let (sql, expected) = expected.ok_or_else(|| format!("{line}: {text}"))?;
                    if meant {
                        records.push(Record { line, sql, expected });
                    }
                }
            }
        }
    }
    Ok(records)
}

/// Reads the head of a record and the lines that follow it.
fn expected(head: &[&str], body: &[&str], threshold: usize) -> Option<(String, Expected)> {
    match head {
        ["statement", "ok"] => Some((body.join("\n"), Expected::Success)),
        ["statement", "error"] => Some((body.join("\n"), Expected::Error)),
        ["query", types, sort, ..] => {
            let sort = match *sort {
                "nosort" => Sort::None,
                "rowsort" => Sort::Rows,
                "valuesort" => Sort::Values,
                _ => return None,
            };
            let (sql, lines) = match body.iter().position(|line| *line == "----") {
                Some(end) => (&body[..end], &body[end + 1..]),
                None => (body, &[][..]),
            };
            let lines = lines.iter().map(|line| (*line).to_owned()).collect();
            let types = (*types).to_owned();
            Some((sql.join("\n"), Expected::Rows { types, sort, threshold, lines }))
        }
        _ => None,
    }
}

#[test]
fn conditions_and_results_are_read() {
    let text = "hash-threshold 8\n\n# a comment\nonlyif mysql # why\nstatement ok\nX\n\n\
                skipif mysql\nskipif mssql\nquery IT rowsort label-1\nSELECT 1,\n  'x'\n----\n1\nx\n\n\
                statement error\nY\n\nonlyif sqlite\nhalt\n\nskipif sqlite\nhalt\n\nstatement ok\nZ\n";
    // A remark after a condition is cut off by whoever copies the files.
    let records = parse(&text.replace(" # why", "")).unwrap();
    assert_eq!(records.len(), 2, "{records:?}");
    assert_eq!((records[0].line, records[0].sql.as_str()), (8, "SELECT 1,\n  'x'"));
    let Expected::Rows { types, sort, threshold, lines } = &records[0].expected else {
        panic!("{records:?}")
    };
    assert_eq!((types.as_str(), *sort, *threshold), ("IT", Sort::Rows, 8));
    assert_eq!(lines, &["1", "x"]);
    assert!(matches!(records[1].expected, Expected::Error));
    assert!(parse("query I sorted\nSELECT 1\n").is_err());
}
