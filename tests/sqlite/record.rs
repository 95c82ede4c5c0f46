//! Parser of SQLite's sqllogictest format, for the label `postgresql`.
//!
//! Paragraphs are separated by blank lines. Each is a statement or a query, preceded by `skipif`
//! and `onlyif` lines; `#` begins a comment.

/// The label of conditions.
const LABEL: &str = "postgresql";

/// The statement or query of a paragraph.
#[derive(Debug)]
pub(super) struct Record {
    /// Line of the file, from 1, of the start of its paragraph, including conditions.
    pub(super) line: usize,
    /// The SQL text.
    pub(super) sql: String,
    /// The expected outcome.
    pub(super) expected: Expected,
}

/// Expected outcome of a record.
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
        /// Sort mode of the values.
        sort: Sort,
        /// Maximum number of values that are listed; more are given by number and hash. 0 for no
        /// maximum.
        threshold: usize,
        /// The values, one a line, or `n values hashing to …`.
        lines: Vec<String>,
    },
}

/// Sort mode of values before the comparison.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Sort {
    /// Unsorted.
    None,
    /// Sorted by row.
    Rows,
    /// All values sorted together.
    Values,
}

/// Returns the records of a file for the label, up to `halt`.
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

/// Parses the head of a record and the lines that follow it.
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
fn record_conditions_and_results_are_parsed() {
    let text = "hash-threshold 8\n\n# a comment\nonlyif mysql # why\nstatement ok\nX\n\n\
                skipif mysql\nskipif mssql\nquery IT rowsort label-1\nSELECT 1,\n  'x'\n----\n1\nx\n\n\
                statement error\nY\n\nonlyif sqlite\nhalt\n\nskipif sqlite\nhalt\n\nstatement ok\nZ\n";
    // Comments after a condition were removed from copies of the files.
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
