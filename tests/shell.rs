//! Tests of `bennu sql`: its loop over streams, and the exit status of the binary.

use std::io::Write as _;
use std::path::Path;
use std::process::{Output, Stdio};

use bennu::database::{DEFAULT_USER, Database};
use bennu::error::Error;
use bennu::shell::{Streams, interact};

use crate::harness::binary;

/// Runs the shell with an input text; returns output, errors and the result.
fn run_shell(text: &str, is_terminal: bool) -> (String, String, bennu::error::Result<()>) {
    let directory = tempfile::tempdir().unwrap();
    let options = bennu::server::options(64 << 20);
    let database = Database::open(directory.path(), options).unwrap();
    let mut session = database.session(DEFAULT_USER);
    let (mut output, mut errors) = (Vec::new(), Vec::new());
    let outcome = interact(
        &mut session,
        &mut Streams {
            input: &mut text.as_bytes(),
            output: &mut output,
            errors: &mut errors,
            is_terminal,
        },
    );
    drop(session);
    database.shut_down().unwrap();
    (String::from_utf8(output).unwrap(), String::from_utf8(errors).unwrap(), outcome)
}

#[test]
fn interactive_shell_has_prompts_and_commands() {
    let text =
        "create table t (a int);\nselect\n1/0;\n\\d t\n\\?\nselect ';\n\\q';\n\\q\nselect 2;";
    let (output, errors, outcome) = run_shell(text, true);
    outcome.unwrap();
    let prompts = "bennu=> CREATE TABLE\nbennu=> bennu-> bennu=> bennu=> End a statement";
    assert!(output.starts_with(prompts), "{output}");
    assert!(
        output.contains("bennu=> bennu->  ?column?\n") && output.contains("(1 row)"),
        "{output}"
    );
    assert!(output.ends_with("bennu=> \n"), "{output}");
    let expected = "ERROR:  division by zero (SQLSTATE 22012)\n\
                    ERROR:  command \\d of psql is not supported\n\
                    HINT:  Connect with psql for it, or try \\? for help.\n";
    assert_eq!(errors, expected);
}

#[test]
fn script_continues_after_errors_and_reports_failures() {
    let (output, errors, outcome) = run_shell("select 1/0; create table t (a int);\nselec", false);
    assert_eq!(output, "CREATE TABLE\n");
    assert_eq!(errors.lines().count(), 2, "{errors}");
    assert!(matches!(outcome, Err(Error::Script { failed: 2 })));
}

/// Runs the binary with a text on standard input.
fn run(data: &Path, arguments: &[&str], text: &str) -> Output {
    let mut command = binary();
    command.arg("sql").arg("--data").arg(data).args(arguments);
    let streams = command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = streams.spawn().unwrap();
    child.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
    child.wait_with_output().unwrap()
}

#[test]
fn exit_status_reports_errors() {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("script.sql");
    std::fs::write(&file, "select 1/0").unwrap();
    let data = directory.path().join("data");
    let status = |arguments: &[&str], text: &str| run(&data, arguments, text).status.code();
    assert_eq!(status(&[], "create table t (a int);"), Some(0));
    assert_eq!(status(&[], "select 1/0;\nselect a from t;"), Some(1));
    assert_eq!(status(&[], "\\d"), Some(1));
    assert_eq!(status(&["-c", "select a from t"], ""), Some(0));
    assert_eq!(status(&["-c", "select 1/0"], ""), Some(1));
    assert_eq!(status(&["-f", file.to_str().unwrap()], ""), Some(1));
    let output = run(&data, &[], "select 1/0;");
    let errors = String::from_utf8(output.stderr).unwrap();
    assert_eq!(errors, "ERROR:  division by zero (SQLSTATE 22012)\nbennu: a statement failed\n");
}
