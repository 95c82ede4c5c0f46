//! Examples of the manual: README.md and the pages below `docs` that have `sql` blocks.
//!
//! The `sql` blocks of a page run in order, as `bennu sql` runs them, each page in a database of
//! its own. The `text` block directly after a `sql` block is its output without command tags.
//! `sql session=NAME` runs in another session than `sql`. `BENNU_MANUAL_UPDATE=1` writes the
//! outputs. `sh run` blocks run beside a server, and the `text` block after each is their output;
//! in other `sh` blocks the commands of `bennu` are parsed, not run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use bennu::command_line::Arguments;
use bennu::database::{DEFAULT_USER, Database};
use bennu::error::Error;
use bennu::shell::{Streams, interact};
use clap::{CommandFactory, Parser};
use sql::session::Session;

use crate::clients::installed;
use crate::harness::{TestServer, binary};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Returns README.md and all pages below `docs`, sorted.
fn pages() -> Vec<PathBuf> {
    let mut pages = vec![root().join("README.md")];
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            match path.extension() {
                None => folders.push(path),
                Some(extension) if extension == "md" => pages.push(path),
                Some(_) => {}
            }
        }
    }
    pages.sort();
    pages
}

/// A fenced block of a page.
struct FencedBlock<'a> {
    /// The words after the opening fence.
    label: &'a str,
    /// The lines between the fences.
    text: &'a str,
    /// Bytes of the page that the block takes, fences included.
    range: std::ops::Range<usize>,
}

/// Returns the fenced blocks of a page.
fn fenced_blocks(page: &str) -> Vec<FencedBlock<'_>> {
    let mut blocks = Vec::new();
    let mut at = 0;
    while let Some(opening) = fence(page, at) {
        let begin = opening + page[opening..].find('\n').unwrap() + 1;
        let end = fence(page, begin).expect("a fenced block has an end");
        let label = page[opening..begin].trim_start_matches('`').trim();
        at = end + "```\n".len().min(page.len() - end);
        blocks.push(FencedBlock { label, text: &page[begin..end], range: opening..at });
    }
    blocks
}

/// Returns the start of the first line from `at` on that is a fence; `at` is the start of a line.
fn fence(page: &str, at: usize) -> Option<usize> {
    match page[at..].starts_with("```") {
        true => Some(at),
        false => page[at..].find("\n```").map(|place| at + place + 1),
    }
}

/// A stream that output and errors share.
#[derive(Clone, Default)]
struct SharedText(Rc<RefCell<Vec<u8>>>);

impl Write for SharedText {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Returns what `bennu sql` prints for a text, without command tags.
fn output_of(session: &mut Session, text: &str) -> String {
    let printed = SharedText::default();
    let mut streams = Streams {
        input: &mut text.as_bytes(),
        output: &mut printed.clone(),
        errors: &mut printed.clone(),
        is_terminal: false,
    };
    match interact(session, &mut streams) {
        Ok(()) | Err(Error::Script { .. }) => {}
        Err(error) => panic!("{error}"),
    }
    let text = String::from_utf8(printed.0.take()).unwrap();
    let is_message =
        |line: &str| ["ERROR:", "DETAIL:", "HINT:"].iter().any(|label| line.starts_with(label));
    let is_tag = |line: &str| {
        line.starts_with(|first: char| first.is_ascii_uppercase()) && !is_message(line)
    };
    text.split_inclusive('\n').filter(|line| !is_tag(line)).collect()
}

/// Runs the statements of a page and returns it with their outputs, or nothing if it has none.
fn page_with_outputs(page: &str) -> Option<String> {
    let blocks = fenced_blocks(page);
    blocks.iter().find(|block| block.label.starts_with("sql"))?;
    let directory = tempfile::tempdir().unwrap();
    let database = Database::open(directory.path(), bennu::server::options(64 << 20)).unwrap();
    let mut sessions: BTreeMap<&str, Session> = BTreeMap::new();
    let (mut written, mut copied) = (String::new(), 0);
    for (position, block) in blocks.iter().enumerate() {
        if block.label.split(' ').next() != Some("sql") {
            continue;
        }
        let name = block.label.split_once("session=").map_or("", |(_, name)| name);
        let session = sessions.entry(name).or_insert_with(|| database.session(DEFAULT_USER));
        let output = output_of(session, block.text);
        written += &page[copied..block.range.end];
        copied = block.range.end;
        if !output.is_empty() {
            written += &format!("\n```text\n{output}```\n");
        }
        let expected = blocks.get(position + 1).filter(|next| {
            next.label == "text" && page[block.range.end..next.range.start].trim().is_empty()
        });
        copied = expected.map_or(copied, |expected| expected.range.end);
    }
    drop(sessions);
    database.shut_down().unwrap();
    Some(written + &page[copied..])
}

/// Returns the first lines of two texts that differ.
fn first_difference<'a>(left: &'a str, right: &'a str) -> (&'a str, &'a str) {
    let (mut left, mut right) = (left.lines(), right.lines());
    loop {
        match (left.next(), right.next()) {
            (Some(one), Some(other)) if one == other => {}
            (one, other) => return (one.unwrap_or("(end)"), other.unwrap_or("(end)")),
        }
    }
}

#[test]
fn examples_of_manual_have_shown_output() {
    let mut differences = Vec::new();
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        let Some(actual) = page_with_outputs(&page) else { continue };
        if std::env::var_os("BENNU_MANUAL_UPDATE").is_some() {
            fs::write(&path, &actual).unwrap();
        } else if page != actual {
            let (shown, printed) = first_difference(&page, &actual);
            let path = path.display();
            differences.push(format!("{path}: shown \"{shown}\", printed \"{printed}\""));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// Returns what a shell block prints in an empty directory, with `bennu` and a server on the port
/// of the manual's examples.
fn output_of_shell(text: &str, server: &TestServer) -> String {
    let directory = tempfile::tempdir().unwrap();
    let folder = Path::new(env!("CARGO_BIN_EXE_bennu")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let text = text.replace("5433", &server.address().port().to_string());
    let mut shell = std::process::Command::new("sh");
    let output = shell.args(["-ec", &text]).env("PATH", path).current_dir(&directory);
    let output = output.stdin(std::process::Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}: {errors}");
    String::from_utf8(output.stdout).unwrap()
}

#[test]
fn shell_blocks_of_manual_have_shown_output() {
    let mut count = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        let blocks = fenced_blocks(&page);
        let is_installed = |text: &str| !text.contains("psql") || installed("psql");
        for pair in blocks.windows(2).filter(|pair| pair[0].label == "sh run") {
            count += 1;
            if !is_installed(pair[0].text) {
                continue;
            }
            let server = TestServer::start();
            let printed = output_of_shell(pair[0].text, &server);
            assert_eq!((pair[1].label, pair[1].text), ("text", &*printed), "{}", path.display());
        }
    }
    assert!(count > 0, "the manual has shell blocks that run");
}

/// Returns the words of a shell command, without quotes; a comment ends them.
fn shell_words(line: &str) -> Vec<String> {
    let mut words = vec![String::new()];
    let mut quote = None;
    for c in line.chars() {
        match (quote, c) {
            (Some(open), c) if c == open => quote = None,
            (None, '\'' | '"') => quote = Some(c),
            (None, ' ') => words.push(String::new()),
            (None, '#') if words.last().is_some_and(String::is_empty) => break,
            _ => words.last_mut().unwrap().push(c),
        }
    }
    words.retain(|word| !word.is_empty());
    words
}

/// Asserts that the command line accepts a command of `bennu`.
fn assert_accepted(line: &str, place: &str) {
    let mut words = shell_words(line);
    words.retain(|word| word != "&");
    let outcome = Arguments::try_parse_from(words);
    let is_help = |error: &clap::Error| error.exit_code() == 0;
    assert!(
        outcome.as_ref().err().is_none_or(is_help),
        "{place}: {line}: {}",
        outcome.unwrap_err()
    );
}

#[test]
fn command_line_accepts_commands_of_manual() {
    let mut count = 0;
    for path in pages() {
        let page = fs::read_to_string(&path).unwrap();
        for block in fenced_blocks(&page).iter().filter(|block| block.label.starts_with("sh")) {
            let text = block.text.replace("\\\n", " ").replace("cargo run --release -- ", "bennu ");
            let lines = text.lines().map(|line| line.trim_start_matches("target/release/"));
            for line in lines.filter(|line| line.starts_with("bennu ")) {
                assert_accepted(line, &path.display().to_string());
                count += 1;
            }
        }
    }
    assert!(count > 0, "the manual has commands");
}

#[test]
fn help_of_each_command_has_defaults_example_and_page() {
    let mut commands = vec![Arguments::command()];
    let repository = concat!(env!("CARGO_PKG_REPOSITORY"), "/blob/main/");
    while let Some(command) = commands.pop() {
        commands.extend(command.get_subcommands().cloned());
        let name = command.get_name();
        let end = command.get_after_help().expect("the help has an end").to_string();
        let (example, page) = end.split_once("\n\nManual: ").expect("the help names a page");
        assert_accepted(example.strip_prefix("Example:\n  ").unwrap(), name);
        let page = page.strip_prefix(repository).unwrap().split('#').next().unwrap();
        assert!(root().join(page).exists(), "{name}: {page} is missing");
        for option in command.get_arguments().filter(|option| option.get_env().is_some()) {
            let help = option.get_help().unwrap().to_string();
            let is_file = option.get_value_names().is_some_and(|names| names == ["FILE"]);
            assert!(is_file || help.contains("[default: "), "{name}: {option}: no default");
        }
    }
}

#[test]
fn version_names_commit() {
    let output = binary().arg("--version").output().unwrap();
    let version = concat!("bennu ", env!("CARGO_PKG_VERSION"), " (commit ");
    assert!(output.stdout.starts_with(version.as_bytes()));
}
