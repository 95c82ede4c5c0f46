//! Examples of the manual: README.md and the pages below `docs` that have `sql` blocks.
//!
//! The blocks of a page run in order; the `text` block directly after one is its output.
//! `BENNU_MANUAL_UPDATE=1` writes the outputs.
//!
//! | Label | Block |
//! | --- | --- |
//! | `sql` | runs in a database of the page, as `bennu sql` runs it, without command tags |
//! | `sql session=NAME` | likewise, in another session |
//! | `sh run` | runs in an empty directory, beside a server |
//! | `sh serve` | runs in an empty directory; ends with a server, which is stopped once ready |
//! | `sh not-run` | builds or tests bennu itself |
//!
//! The commands of `bennu` in all `sh` blocks are parsed.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::net::TcpListener;
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

/// Database of a page, with its sessions by name.
struct PageDatabase {
    database: Database,
    sessions: BTreeMap<String, Session>,
    directory: tempfile::TempDir,
}

impl PageDatabase {
    fn open() -> PageDatabase {
        let directory = tempfile::tempdir().unwrap();
        let database = Database::open(directory.path(), bennu::server::options(64 << 20)).unwrap();
        PageDatabase { database, sessions: BTreeMap::new(), directory }
    }

    fn output_of(&mut self, block: &FencedBlock<'_>) -> String {
        let name = block.label.split_once("session=").map_or("", |(_, name)| name);
        let session = || self.database.session(DEFAULT_USER);
        let session = self.sessions.entry(name.to_owned()).or_insert_with(session);
        output_of(session, block.text)
    }

    fn close(self) {
        drop(self.sessions);
        self.database.shut_down().unwrap();
        drop(self.directory);
    }
}

/// Runs the blocks of a page and returns it with their outputs.
///
/// # Panics
///
/// If the label of a block of SQL or shell commands does not say whether it runs.
fn page_with_outputs(page: &str) -> String {
    let blocks = fenced_blocks(page);
    let mut database: Option<PageDatabase> = None;
    let (mut written, mut copied) = (String::new(), 0);
    for (position, block) in blocks.iter().enumerate() {
        let output = match block.label {
            "sh run" | "sh serve" if !has_programs(block.text) => continue,
            "sh run" => output_of_shell(block.text, &TestServer::start()),
            "sh serve" => output_of_server(block.text),
            "sh not-run" => continue,
            label if label == "sql" || label.starts_with("sql session=") => {
                database.get_or_insert_with(PageDatabase::open).output_of(block)
            }
            label => {
                let language = label.split(' ').next().unwrap_or_default();
                assert!(
                    !["sql", "sh", "bash", "shell", ""].contains(&language),
                    "label \"{label}\""
                );
                continue;
            }
        };
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
    database.into_iter().for_each(PageDatabase::close);
    written + &page[copied..]
}

/// Returns whether the programs that a shell block calls are installed.
fn has_programs(text: &str) -> bool {
    let programs = ["psql", "pg_dump", "openssl"];
    programs.iter().all(|program| !text.contains(program) || installed(program))
}

/// Ports of the examples.
const PORTS: [&str; 2] = ["5433", "6000"];

/// Returns what shell commands print in an empty directory, with `bennu`, and with other ports than
/// those of the manual.
fn output_of_commands(text: &str, ports: [u16; 2]) -> String {
    let directory = tempfile::tempdir().unwrap();
    let folder = Path::new(env!("CARGO_BIN_EXE_bennu")).parent().unwrap();
    let path = format!("{}:{}", folder.display(), std::env::var("PATH").unwrap());
    let pairs = || PORTS.iter().zip(ports);
    let text =
        pairs().fold(text.to_owned(), |text, (shown, port)| text.replace(shown, &port.to_string()));
    let mut shell = std::process::Command::new("sh");
    shell.args(["-ec", &text]).env("PATH", path).current_dir(&directory);
    shell.env("BENNU_LISTEN", format!("127.0.0.1:{}", ports[0]));
    let output = shell.stdin(std::process::Stdio::null()).output().unwrap();
    let errors = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{text}: {errors}");
    let printed = String::from_utf8(output.stdout).unwrap();
    pairs().fold(printed, |printed, (shown, port)| printed.replace(&port.to_string(), shown))
}

/// Returns what a shell block prints beside a server.
fn output_of_shell(text: &str, server: &TestServer) -> String {
    let [_, other] = free_ports();
    output_of_commands(text, [server.address().port(), other])
}

/// Returns what a shell block prints until the server that it ends with is ready. Then the server
/// is stopped, and must end well.
fn output_of_server(text: &str) -> String {
    let wait = "timeout 60 sh -c 'until grep -q \"ready on\" printed; do sleep 0.1; done'";
    let commands = text.trim_end();
    let stop = "kill $!; wait $!; cat printed";
    output_of_commands(&format!("{commands} > printed &\n{wait}\n{stop}\n"), free_ports())
}

/// Returns free ports.
fn free_ports() -> [u16; 2] {
    let listeners = PORTS.map(|_| TcpListener::bind("127.0.0.1:0").unwrap());
    listeners.map(|listener| listener.local_addr().unwrap().port())
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
        let actual = page_with_outputs(&page);
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
