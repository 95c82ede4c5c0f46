//! Damaged data directories and the real binary: it fails to start without changing anything, or
//! has all committed data; and `job salvage` recovers the readable data.
//!
//! Every file, kind of damage and length is tested in `store/tests/cases/directories.rs`. This
//! test covers some of them with SQL; `BENNU_DAMAGE=all` covers every file and kind of damage.

use std::collections::BTreeMap;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use crate::harness::{Process, binary, connect};

/// Rows of each table; half of them are only in the log.
const ROWS: i64 = 200;

type Files = BTreeMap<PathBuf, Vec<u8>>;

fn files(directory: &Path) -> Files {
    let mut found = Files::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.insert(path.clone(), std::fs::read(&path).unwrap());
        }
    }
    found
}

fn copy(from: &Path, to: &Path) {
    let copied = Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap();
    assert!(copied.success());
}

/// Runs a statement on a data directory, without a server.
fn sql(data: &Path, statement: &str) -> Output {
    let memory = ["--data", data.to_str().unwrap(), "-c", statement];
    binary().arg("sql").args(memory).output().unwrap()
}

fn text(output: &Output) -> String {
    String::from_utf8_lossy(&output.stdout).into_owned() + &String::from_utf8_lossy(&output.stderr)
}

/// Creates a directory with two tables and an index, in files and in the log, after a kill or a
/// clean shutdown.
async fn directory(data: &Path, killed: bool) {
    let server = Process::serve(data);
    let client = connect(server.address()).await;
    client
        .batch_execute(
            "CREATE TABLE a (id int PRIMARY KEY, x int); CREATE INDEX a_x ON a (x); \
             CREATE TABLE b (id int PRIMARY KEY, x int)",
        )
        .await
        .unwrap();
    for part in 0..2 {
        let (first, last) = (part * ROWS / 2 + 1, (part + 1) * ROWS / 2);
        client
            .batch_execute(&format!(
                "BEGIN; INSERT INTO a SELECT i, i FROM generate_series({first}, {last}) i; \
                 INSERT INTO b SELECT i, i FROM generate_series({first}, {last}) i; COMMIT"
            ))
            .await
            .unwrap();
        if part == 0 {
            client.batch_execute("FLUSH a; FLUSH b").await.unwrap();
        }
    }
    drop(client);
    if killed {
        server.kill();
    } else {
        assert!(server.terminate().0.success());
    }
}

const COUNTS: &str = "SELECT (SELECT count(*) FROM a), (SELECT count(*) FROM b), \
                      (SELECT count(*) FROM a WHERE x > 0)";

/// Kinds of damage to a file.
const WAYS: [&str; 5] = ["removed", "emptied", "cut", "zeros", "a sibling"];

fn damage(path: &Path, way: &str, files: &Files) {
    let bytes = &files[path];
    let other = files.iter().find(|(other, content)| {
        other.extension() == path.extension() && *other != path && *content != bytes
    });
    let used = bytes.iter().rposition(|byte| *byte != 0).map_or(0, |last| last + 1);
    let damaged = match way {
        "removed" => return std::fs::remove_file(path).unwrap(),
        "emptied" => Vec::new(),
        "cut" => bytes[..used * 2 / 3].to_vec(),
        "zeros" => vec![0; bytes.len()],
        _ => other.map_or(Vec::new(), |(_, content)| content.clone()),
    };
    std::fs::write(path, damaged).unwrap();
}

/// Checks a damaged directory: the start fails, or all data is present, or a query reports the
/// file.
fn check(data: &Path, what: &str) {
    let before = files(data);
    let output = sql(data, COUNTS);
    let text = text(&output);
    assert!(!text.contains("panicked"), "{what}: {text}");
    if output.status.success() {
        assert!(text.contains(&format!("{ROWS} |   {ROWS} |   {ROWS}")), "{what}: {text}");
    } else if !text.contains("XX001") {
        assert!(text.contains("bennu: corrupt file"), "{what}: {text}");
        assert!(files(data) == before, "{what}: a directory that was refused has changed");
    }
}

#[tokio::test]
async fn damaged_directory_is_rejected_or_complete() {
    let root = tempfile::tempdir().unwrap();
    let everything = std::env::var("BENNU_DAMAGE").is_ok_and(|value| value == "all");
    for killed in [false, true] {
        let data = root.path().join(format!("killed-{killed}"));
        directory(&data, killed).await;
        let whole = files(&data);
        let relevant = whole.keys().filter(|path| !path.ends_with("LOCK"));
        for (number, path) in relevant.enumerate() {
            for (index, way) in WAYS.iter().enumerate() {
                // The manifest and the log get all kinds of damage, other files one each.
                let is_main =
                    path.ends_with("MANIFEST") || path.extension().is_some_and(|e| e == "log");
                if !everything && !is_main && (number + index) % 5 != 0 {
                    continue;
                }
                let what = format!("killed: {killed}, {}, {way}", path.display());
                let damaged = root.path().join("damaged");
                copy(&data, &damaged);
                damage(&damaged.join(path.strip_prefix(&data).unwrap()), way, &{
                    let moved = |(path, bytes): (&PathBuf, &Vec<u8>)| {
                        (damaged.join(path.strip_prefix(&data).unwrap()), bytes.clone())
                    };
                    whole.iter().map(moved).collect()
                });
                check(&damaged, &what);
                std::fs::remove_dir_all(&damaged).unwrap();
            }
        }
    }
}

#[tokio::test]
async fn directory_without_manifest_is_salvaged() {
    let root = tempfile::tempdir().unwrap();
    let (data, to) = (root.path().join("data"), root.path().join("copy"));
    directory(&data, true).await;
    std::fs::remove_file(data.join("MANIFEST")).unwrap();
    let before = files(&data);
    let job = binary()
        .args(["job", "salvage", "--data", data.to_str().unwrap(), "--to", to.to_str().unwrap()])
        .output()
        .unwrap();
    assert!(job.status.success(), "{}", text(&job));
    assert!(text(&job).contains("lost: the manifest"), "{}", text(&job));
    assert!(files(&data) == before);
    let output = sql(&to, COUNTS);
    assert!(text(&output).contains(&format!("{ROWS} |   {ROWS} |   {ROWS}")), "{}", text(&output));
    // It does not overwrite an existing directory.
    let again = binary()
        .args(["job", "salvage", "--data", data.to_str().unwrap(), "--to", to.to_str().unwrap()])
        .output()
        .unwrap();
    assert_eq!(again.status.code(), Some(1), "{}", text(&again));
}

#[test]
fn directory_of_previous_version_opens() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/data-0.1"), &data);
    for _ in 0..2 {
        let output = sql(&data, "SELECT count(*), min(a), max(a) FROM t WHERE b > ''");
        assert!(text(&output).contains("1001 |   1 | 5000"), "{}", text(&output));
    }
    // A column of each kind of object of schema s.
    let objects = "SELECT m, n, double, s.twice(), obj_description('s.v'::regclass) FROM s.v WHERE m = 'happy'";
    let output = sql(&data, objects);
    assert!(text(&output).contains("happy | 1 |      2 |     4 | a view"), "{}", text(&output));
    let before = sql(&data, "SELECT count(*) FROM t FOR SYSTEM_TIME AS OF '2000-01-01'");
    assert!(text(&before).contains("history of table \"t\" begins at"), "{}", text(&before));
    let now = sql(&data, "SELECT count(*) FROM t FOR SYSTEM_TIME AS OF now()");
    assert!(text(&now).contains("1001"), "{}", text(&now));
    // The contents are fixed from now on.
    let log = files(&data).into_keys().filter(|path| path.extension().is_some_and(|e| e == "log"));
    std::fs::remove_file(log.max().unwrap()).unwrap();
    check(&data, "an upgraded directory without its log");
}

#[test]
fn data_directory_is_private_and_foreign_files_untouched() {
    let root = tempfile::tempdir().unwrap();
    let data = root.path().join("data");
    assert!(sql(&data, "CREATE TABLE t (a int PRIMARY KEY)").status.success());
    let mode = |path: &Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&data), 0o700);
    for path in files(&data).keys() {
        assert_eq!(mode(path), 0o600, "{}", path.display());
        assert_eq!(mode(path.parent().unwrap()), 0o700, "{}", path.display());
    }
    let set = |mode| std::fs::set_permissions(&data, PermissionsExt::from_mode(mode)).unwrap();
    set(0o755);
    assert!(sql(&data, "SELECT 1").status.success());
    assert_eq!(mode(&data), 0o700);
    set(0o770);
    let output = sql(&data, "SELECT 1");
    assert!(!output.status.success() && text(&output).contains("0770"), "{}", text(&output));
    assert_eq!(mode(&data), 0o770);
    let foreign = root.path().join("foreign");
    std::fs::create_dir(&foreign).unwrap();
    std::fs::write(foreign.join("notes.txt"), "mine").unwrap();
    let output = sql(&foreign, "SELECT 1");
    assert!(!output.status.success() && text(&output).contains("notes.txt"), "{}", text(&output));
    assert_eq!(files(&foreign).len(), 1);
}
