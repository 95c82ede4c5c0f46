//! Pages of equivalents: each row of their tables has statements in a script, which `slt` runs.
//!
//! A comment `# row:` in the script begins the statements of the row whose first cell it names.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

/// The pages, each with its script.
const PAGES: &[(&str, &str)] = &[
    ("docs/sql/equivalents.md", "tests/slt/equivalents_hbase.slt"),
    ("docs/sql/phoenix.md", "tests/slt/equivalents_phoenix.slt"),
];
/// The section of a page whose table describes a setting.
const OTHER_SECTION: &str = "## Setting";

fn read(path: &str) -> String {
    fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join(path)).unwrap()
}

/// Returns the first cells of the rows of a page's tables.
fn rows_of_page(page: &str) -> BTreeSet<String> {
    let mut in_other = false;
    let mut rows = BTreeSet::new();
    let lines: Vec<&str> = page.lines().collect();
    for (at, line) in lines.iter().enumerate() {
        if line.starts_with("## ") {
            in_other = line.starts_with(OTHER_SECTION);
        }
        let is_head = lines.get(at + 1).is_some_and(|next| next.starts_with("| ---"));
        let Some(rest) = line.strip_prefix("| ").filter(|rest| !rest.starts_with("---")) else {
            continue;
        };
        if !in_other && !is_head {
            // A bar within a cell is escaped.
            let cell = rest.replace("\\|", "\0");
            let (cell, _) = cell.split_once(" | ").unwrap();
            assert!(rows.insert(cell.replace('\0', "\\|")), "two rows for {cell}");
        }
    }
    rows
}

/// Returns the rows of a script, each of which has a record.
fn rows_of_script(script: &str) -> BTreeSet<String> {
    let mut parts = script.split("\n# row: ");
    parts.next();
    let mut rows = BTreeSet::new();
    for part in parts {
        let (row, records) = part.split_once('\n').unwrap();
        let has_record =
            records.lines().any(|line| line.starts_with("query") || line.starts_with("statement"));
        assert!(has_record, "no statement for {row}");
        assert!(rows.insert(row.to_owned()), "two scripts for {row}");
    }
    rows
}

#[test]
fn rows_of_pages_have_scripts() {
    for (page, script) in PAGES {
        let (written, tested) = (rows_of_page(&read(page)), rows_of_script(&read(script)));
        assert!(!written.is_empty());
        let untested: Vec<_> = written.difference(&tested).collect();
        let unwritten: Vec<_> = tested.difference(&written).collect();
        assert!(untested.is_empty(), "rows of {page} without a script: {untested:#?}");
        assert!(unwritten.is_empty(), "scripts of {script} without a row: {unwritten:#?}");
    }
}
