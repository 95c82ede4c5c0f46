//! Manual rules: headings, index, links, names of files, lengths of pages and of table cells.
//!
//! The manual is README.md and all pages below `docs`; `docs/README.md` is its index, in the form
//! of mdBook's SUMMARY.md.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use super::prose::CLAUSES;
use super::{read, relative, root};

const INDEX: &str = "docs/README.md";
const PAGE_WORDS_MAX: usize = 3_500;
const CELL_WORDS_MAX: usize = 25;
/// Folders with which the name of a file begins.
const FOLDERS: [&str; 10] = [
    "benches/",
    "coprocessors/",
    "docs/",
    "examples/",
    "fuzz/",
    "sql/",
    "src/",
    "store/",
    "tests/",
    "types/",
];

/// Returns the Markdown files below a folder.
fn markdown_files(folder: &Path) -> Vec<PathBuf> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder).expect("the folder can be read") {
        let path = entry.expect("the folder can be read").path();
        if path.is_dir() {
            files.extend(markdown_files(&path));
        } else if path.extension().is_some_and(|extension| extension == "md") {
            files.push(path);
        }
    }
    files.sort();
    files
}

/// Returns the pages of the manual, README.md among them.
fn pages() -> Vec<PathBuf> {
    let mut pages = markdown_files(&root().join("docs"));
    pages.push(root().join("README.md"));
    pages
}

/// Returns the lines of a page outside fenced blocks.
fn prose_lines(page: &str) -> impl Iterator<Item = &str> {
    let mut is_code = false;
    page.lines().filter(move |line| {
        let is_fence = line.starts_with("```");
        is_code ^= is_fence;
        !is_code && !is_fence
    })
}

/// Returns the texts of the headings of a page.
fn headings(page: &str) -> impl Iterator<Item = &str> {
    let heading = |line: &'_ str| line.starts_with('#');
    prose_lines(page)
        .filter(move |line| heading(line))
        .map(|line| line.trim_start_matches('#').trim())
}

/// Returns the anchor of a heading, as GitHub and mdBook form it.
fn anchor(heading: &str) -> String {
    let lower = heading.to_lowercase();
    let kept = lower.chars().filter(|c| c.is_alphanumeric() || [' ', '-', '_'].contains(c));
    kept.map(|c| if c == ' ' { '-' } else { c }).collect()
}

/// Returns the texts and targets of the links of a page.
fn links(page: &str) -> Vec<(&str, &str)> {
    let mut links = Vec::new();
    for line in prose_lines(page) {
        for (at, _) in line.match_indices("](") {
            let target = line[at + 2..].split(')').next().expect("split gives one part");
            let text = line[..at].rsplit('[').next().expect("split gives one part");
            links.push((text, target));
        }
    }
    links
}

/// Returns the rule that a link breaks, if any.
fn broken_by_link(path: &Path, target: &str) -> Option<String> {
    if target.contains("://") {
        return None;
    }
    let (file, fragment) = target.split_once('#').unwrap_or((target, ""));
    let file = match file {
        "" => path.to_owned(),
        file => path.parent().expect("a file is in a folder").join(file),
    };
    if !file.exists() {
        return Some(format!("link {target}: the file does not exist"));
    }
    let is_missing = !fragment.is_empty() && !headings(&read(&file)).any(|h| anchor(h) == fragment);
    is_missing.then(|| format!("link {target}: the heading does not exist"))
}

/// Returns the names of files of the repository in the code spans of a page.
fn file_names(page: &str) -> impl Iterator<Item = &str> {
    let is_name = |span: &&str| {
        let is_path = |c: char| c.is_ascii_alphanumeric() || "_-./".contains(c);
        FOLDERS.iter().any(|folder| span.starts_with(folder)) && span.chars().all(is_path)
    };
    prose_lines(page).flat_map(|line| line.split('`').skip(1).step_by(2)).filter(is_name)
}

/// Returns the cells of a row of a table.
fn cells(line: &str) -> Vec<String> {
    if !line.starts_with('|') {
        return Vec::new();
    }
    line.replace("\\|", "").split('|').map(str::to_owned).collect()
}

/// Returns the rules that a page breaks, as a name and a message.
fn broken_by_page(path: &Path, page: &str) -> Vec<(&'static str, String)> {
    let mut broken = Vec::new();
    let words = page.split_whitespace().count();
    if words > PAGE_WORDS_MAX {
        broken.push(("length", format!("{words} words, at most {PAGE_WORDS_MAX}")));
    }
    for cell in prose_lines(page).flat_map(cells) {
        let words = cell.split_whitespace().count();
        if words > CELL_WORDS_MAX {
            broken.push(("cells", format!("a table cell of {words} words: {cell}")));
        }
    }
    for heading in headings(page) {
        let first = heading.split(' ').next().unwrap_or_default();
        if CLAUSES.contains(&first) {
            broken.push(("headings", format!("heading \"{heading}\" is a clause, not a noun")));
        }
    }
    for name in file_names(page).filter(|name| !root().join(name).exists()) {
        broken.push(("files", format!("the file {name} does not exist")));
    }
    let links = links(page);
    let rules = links.iter().filter_map(|(_, target)| broken_by_link(path, target));
    broken.extend(rules.map(|rule| ("links", rule)));
    broken
}

#[test]
fn pages_of_manual_follow_rules() {
    let mut broken = Vec::new();
    for path in pages() {
        let rules = broken_by_page(&path, &read(&path));
        broken.extend(rules.into_iter().map(|(_, text)| format!("{}: {text}", relative(&path))));
    }
    assert!(broken.is_empty(), "{}", broken.join("\n"));
}

#[test]
fn index_of_manual_lists_every_page_by_title() {
    let index = read(&root().join(INDEX));
    let mut listed = BTreeSet::new();
    for (text, target) in links(&index) {
        let path = root().join("docs").join(target);
        let page = read(&path);
        let title = headings(&page).next().expect("a page has a title");
        assert_eq!(text, title, "{INDEX}: {target} has another title");
        assert!(listed.insert(path), "{INDEX}: {target} is listed twice");
    }
    for path in markdown_files(&root().join("docs")) {
        let is_listed = listed.contains(&path) || path.ends_with(INDEX);
        assert!(is_listed, "{INDEX} does not list {}", relative(&path));
    }
    for line in index.lines().filter(|line| !line.is_empty()) {
        let is_entry = line.trim_start().starts_with("- [") && line.ends_with(')');
        assert!(is_entry || line.starts_with("# "), "{INDEX}: \"{line}\" is not of a SUMMARY");
    }
}

#[test]
fn manual_rules_find_violations() {
    let path = root().join("docs/page.md");
    let rules = |page: &str| {
        let broken = broken_by_page(&path, page);
        broken.into_iter().map(|(rule, _)| rule).collect::<Vec<_>>()
    };
    assert_eq!(rules(&"word ".repeat(PAGE_WORDS_MAX + 1)), ["length"]);
    assert_eq!(rules(&format!("| a | {} |", "word ".repeat(CELL_WORDS_MAX + 1))), ["cells"]);
    assert_eq!(rules("## How it works"), ["headings"]);
    assert_eq!(rules("`src/absent.rs` `src/main.rs` `src/a b`"), ["files"]);
    let links = "[a](absent.md) [b](README.md#absent) [c](README.md#start) [d](https://a.org)";
    assert_eq!(rules(links), ["links", "links"]);
    assert_eq!(rules("```\n## How [a](absent.md)\n```"), [""; 0]);
}
