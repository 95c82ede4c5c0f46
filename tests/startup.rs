//! Tests of starting and stopping the server, and of the errors: one clear line each.

use std::fs::OpenOptions;
use std::io::{BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Output;

use tokio_postgres::{Client, NoTls};

use crate::harness::{Process, binary, connect, connection_string};

fn serve(arguments: &[&str]) -> Output {
    binary().arg("serve").args(arguments).output().unwrap()
}

/// Asserts a failed start: exit status, and one line on standard error.
fn assert_refused(output: &Output, status: i32, says: &[&str]) {
    let stderr = String::from_utf8(output.stderr.clone()).unwrap();
    assert_eq!(output.status.code(), Some(status), "{stderr}");
    assert_eq!(stderr.lines().count(), 1, "{stderr}");
    assert!(stderr.starts_with("bennu: "), "{stderr}");
    for part in says {
        assert!(stderr.contains(part), "{stderr:?} does not say {part:?}");
    }
    assert!(output.stdout.is_empty());
}

fn path(directory: &Path, name: &str) -> String {
    directory.join(name).to_str().unwrap().to_owned()
}

#[test]
fn port_in_use_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = taken.local_addr().unwrap().to_string();
    let output = serve(&["--data", &path(directory.path(), "data"), "--listen", &address]);
    assert_refused(&output, 1, &["could not listen on", &address, "in use"]);
}

#[test]
fn directory_in_use_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let first = Process::serve(directory.path());
    let data = directory.path().to_str().unwrap();
    let output = serve(&["--data", data, "--listen", "127.0.0.1:0"]);
    assert_refused(&output, 1, &["data directory", data, "in use by another process"]);
    // As soon as the first has ended, the second can start.
    assert!(first.terminate().0.success());
    Process::serve(directory.path());
}

#[test]
fn invalid_directory_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let file = path(directory.path(), "file");
    std::fs::write(&file, "not a directory").unwrap();
    assert_refused(&serve(&["--data", &file, "--listen", "127.0.0.1:0"]), 1, &[&file]);
    let below = format!("{file}/data");
    assert_refused(&serve(&["--data", &below, "--listen", "127.0.0.1:0"]), 1, &[&file]);
}

#[test]
fn invalid_arguments_are_usage_errors() {
    let directory = tempfile::tempdir().unwrap();
    let data = path(directory.path(), "data");
    assert_refused(&serve(&["--data", &data, "--memory", "lots"]), 2, &["bad size \"lots\""]);
    assert_refused(&serve(&["--data", &data, "--memory", "1MB"]), 2, &["too small"]);
    assert_refused(&serve(&["--data", &data, "--listen", "nowhere"]), 2, &["bad address"]);
    let open = serve(&["--data", &data, "--listen", "0.0.0.0:0"]);
    assert_refused(&open, 2, &["--tls-cert"]);
    let plain = serve(&["--data", &data, "--listen", "0.0.0.0:0", "--allow-plaintext"]);
    assert_refused(&plain, 2, &["--password-file"]);
    let file = path(directory.path(), "bennu.toml");
    std::fs::write(&file, "lisen = '127.0.0.1:0'\n").unwrap();
    assert_refused(&serve(&["--config", &file]), 2, &[&file, "lisen"]);
    let missing = path(directory.path(), "missing.toml");
    assert_refused(&serve(&["--config", &missing]), 1, &[&missing]);
    for arguments in [vec!["serve", "--colour"], vec!["sever"], vec![]] {
        let output = binary().args(&arguments).output().unwrap();
        assert_eq!(output.status.code(), Some(2), "{arguments:?}");
        assert!(!output.stderr.is_empty(), "{arguments:?}");
    }
    assert!(!Path::new(&data).exists(), "nothing was made for a start that was refused");
}

/// Writes a file with permissions for its owner, or for all.
fn write_secret(path: &str, text: &str, mode: u32) {
    std::fs::write(path, text).unwrap();
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn readable_secrets_and_blank_passwords_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let data = path(directory.path(), "data");
    let password = path(directory.path(), "password");
    let with_password = || serve(&["--data", &data, "--password-file", &password]);
    write_secret(&password, "secret\n", 0o644);
    assert_refused(&with_password(), 2, &[&password, "group or world access", "0600"]);
    write_secret(&password, " \t\n", 0o600);
    assert_refused(&with_password(), 2, &[&password, "is empty"]);
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    let certificate = folder.join("certificate.pem");
    let key = path(directory.path(), "key.pem");
    write_secret(&key, &std::fs::read_to_string(folder.join("key.pem")).unwrap(), 0o640);
    let tls = ["--tls-cert", certificate.to_str().unwrap(), "--tls-key", &key];
    let output = serve(&[&["--data", &data, "--listen", "127.0.0.1:0"], &tls[..]].concat());
    assert_refused(&output, 2, &["private key file", &key, "group or world access"]);
}

#[tokio::test]
async fn log_has_connections_failed_logins_and_ddl() {
    let directory = tempfile::tempdir().unwrap();
    let password = path(directory.path(), "password");
    write_secret(&password, "secret\n", 0o600);
    let arguments = ["--log-connections", "--log-disconnections", "--log-statement", "ddl"];
    let arguments = [&arguments[..], &["--password-file", &password]].concat();
    let server = Process::serve_with(&directory.path().join("data"), &arguments);
    let config = |password: &str| -> tokio_postgres::Config {
        let text = connection_string(server.address());
        format!("{text} password={password} application_name=tests").parse().unwrap()
    };
    assert!(config("wrong").connect(NoTls).await.is_err());
    let (client, connection) = config("secret").connect(NoTls).await.unwrap();
    let connection = tokio::spawn(connection);
    client.batch_execute("CREATE TABLE one (a int)").await.unwrap();
    client.execute("CREATE TABLE two (a int)", &[]).await.unwrap();
    client.batch_execute("INSERT INTO one VALUES (1)").await.unwrap();
    client.batch_execute("SET log_statement = 'all'").await.unwrap();
    client.batch_execute("SELECT 'now\nall'").await.unwrap();
    client.query("SELECT a FROM one", &[]).await.unwrap();
    client.batch_execute("RESET log_statement").await.unwrap();
    client.batch_execute("SELECT 'not'").await.unwrap();
    let shown = client.query_one("SHOW log_statement", &[]).await.unwrap();
    assert_eq!(shown.get::<_, String>(0), "ddl");
    drop(client);
    connection.await.unwrap().unwrap();
    let (_, log) = server.terminate();
    let has = |parts: &[&str]| {
        let line = log.lines().find(|line| parts.iter().all(|part| line.contains(part)));
        assert!(line.is_some(), "{parts:?} is not in {log}");
    };
    let who = ["address=127.0.0.1:", "user=\"bennu\"", "database=\"bennu\""];
    let whose = |what: &[&'static str]| has(&[&who[..], what].concat());
    has(&["connection received", "address=127.0.0.1:"]);
    whose(&["WARN", "login failed", "password authentication failed for user"]);
    whose(&["connection authorized", "application=\"tests\"", "tls=false"]);
    whose(&["statement=\"CREATE TABLE one (a int)\""]);
    whose(&["execute", "statement=\"CREATE TABLE two (a int)\""]);
    whose(&["execute", "statement=\"SELECT a FROM one\""]);
    whose(&["statement=\"SELECT 'now\\nall'\""]);
    whose(&["disconnection", "session_time="]);
    assert!(!log.contains("INSERT INTO") && !log.contains("'not'"), "{log}");
    assert!(!log.contains("secret"), "{log}");
}

#[tokio::test]
async fn failed_login_is_always_logged() {
    let directory = tempfile::tempdir().unwrap();
    let server = Process::serve(directory.path());
    let other: tokio_postgres::Config = connection_string(server.address())
        .replace("dbname=bennu", "dbname=other")
        .parse()
        .unwrap();
    let error = other.connect(NoTls).await.err().unwrap();
    assert_eq!(error.code().unwrap().code(), "3D000");
    let (_, log) = server.terminate();
    assert_eq!(log.lines().count(), 1, "{log}");
    let parts = ["login failed", "address=127.0.0.1:", "database=\"other\""];
    assert!(parts.iter().all(|part| log.contains(part)), "{log}");
}

#[tokio::test]
async fn sigterm_stops_cleanly_and_data_survives() {
    let directory = tempfile::tempdir().unwrap();
    let server = Process::serve(directory.path());
    let client = connect(server.address()).await;
    client
        .batch_execute("CREATE TABLE t (a int PRIMARY KEY); INSERT INTO t VALUES (1), (2)")
        .await
        .unwrap();
    let (status, stderr) = server.terminate();
    assert_eq!(status.code(), Some(0), "{stderr}");
    assert_eq!(stderr, "");
    let server = Process::serve(directory.path());
    assert_eq!(count(&connect(server.address()).await, "t").await, Ok(2));
}

/// Returns the number of rows of a table, or the SQLSTATE and message of the error.
async fn count(client: &Client, table: &str) -> Result<i64, (String, String)> {
    match client.query_one(&format!("SELECT count(pad) FROM {table}"), &[]).await {
        Ok(row) => Ok(row.get(0)),
        Err(error) if error.as_db_error().is_some_and(|error| error.code().code() == "42703") => {
            Ok(client
                .query_one(&format!("SELECT count(*) FROM {table}"), &[])
                .await
                .unwrap()
                .get(0))
        }
        Err(error) => {
            let error = error.as_db_error().unwrap_or_else(|| panic!("{error}"));
            Err((error.code().code().to_owned(), error.message().to_owned()))
        }
    }
}

/// Returns all files below a directory.
fn files(directory: &Path) -> Vec<PathBuf> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(directory).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            found.extend(files(&path));
        } else {
            found.push(path);
        }
    }
    found
}

/// Creates two tables, flushes them, stops the server, and damages the store file of `broken`,
/// which it returns.
async fn damaged(directory: &Path, damage: fn(&Path)) -> PathBuf {
    let server = Process::serve(directory);
    let client = connect(server.address()).await;
    let tables = "CREATE TABLE broken (a int PRIMARY KEY, pad text) COMPRESSION = NONE; \
                  CREATE TABLE whole (a int PRIMARY KEY, pad text)";
    client.batch_execute(tables).await.unwrap();
    client.batch_execute("INSERT INTO whole VALUES (1, 'x')").await.unwrap();
    client.batch_execute("FLUSH whole").await.unwrap();
    let before = files(directory);
    let pad = "needle".repeat(50);
    let rows: Vec<String> = (0..500).map(|row| format!("({row}, '{pad}')")).collect();
    let insert = format!("INSERT INTO broken VALUES {}", rows.join(","));
    client.batch_execute(&insert).await.unwrap();
    client.batch_execute("FLUSH broken").await.unwrap();
    drop(client);
    assert!(server.terminate().0.success());
    let contains_needle = |path: &&PathBuf| {
        let bytes = std::fs::read(path).unwrap();
        bytes.windows(6).filter(|window| *window == b"needle").count() > 10
    };
    let new: Vec<PathBuf> =
        files(directory).into_iter().filter(|path| !before.contains(path)).collect();
    let file = new.iter().find(contains_needle).expect("the store file is new").clone();
    damage(&file);
    file
}

async fn assert_corruption_is_reported(file: &Path, server: &Process) {
    let client = connect(server.address()).await;
    let (code, message) = count(&client, "broken").await.unwrap_err();
    assert_eq!(code, "XX001", "{message}");
    assert!(message.contains(file.file_name().unwrap().to_str().unwrap()), "{message}");
    // The session, the server and the other table continue.
    assert_eq!(count(&client, "whole").await, Ok(1));
    client.batch_execute("INSERT INTO whole VALUES (2, 'y')").await.unwrap();
    assert_eq!(count(&client, "whole").await, Ok(2));
}

#[tokio::test]
async fn flipped_bit_fails_only_reading_statement() {
    let directory = tempfile::tempdir().unwrap();
    let file = damaged(directory.path(), |file| {
        let mut opened = OpenOptions::new().read(true).write(true).open(file).unwrap();
        let middle = opened.metadata().unwrap().len() / 2;
        let mut byte = [0];
        opened.seek(SeekFrom::Start(middle)).unwrap();
        opened.read_exact(&mut byte).unwrap();
        byte[0] ^= 0x10;
        opened.seek(SeekFrom::Start(middle)).unwrap();
        opened.write_all(&byte).unwrap();
    })
    .await;
    let server = Process::serve(directory.path());
    assert_corruption_is_reported(&file, &server).await;
}

#[tokio::test]
async fn truncated_file_affects_only_its_table() {
    let directory = tempfile::tempdir().unwrap();
    let file = damaged(directory.path(), |file| {
        let opened = OpenOptions::new().write(true).open(file).unwrap();
        opened.set_len(opened.metadata().unwrap().len() / 2).unwrap();
    })
    .await;
    let server = Process::serve(directory.path());
    assert_corruption_is_reported(&file, &server).await;
    let client = connect(server.address()).await;
    let query = "SELECT table_name, damage FROM bennu.regions WHERE damage IS NOT NULL";
    let rows = client.query(query, &[]).await.unwrap();
    assert_eq!(rows.len(), 1);
    assert_eq!(rows[0].get::<_, &str>(0), "broken");
    assert!(rows[0].get::<_, &str>(1).contains(file.to_str().unwrap()));
    // A table that cannot be read is not written.
    let insert = client.execute("INSERT INTO broken VALUES (1000, 'x')", &[]).await.unwrap_err();
    assert_eq!(insert.code().unwrap().code(), "XX001");
}

/// The chosen memory budget is printed first; nothing is printed with `--memory`.
#[test]
fn default_memory_budget_is_printed() {
    let directory = tempfile::tempdir().unwrap();
    let mut server = binary()
        .args(["serve", "--listen", "127.0.0.1:0", "--data"])
        .arg(directory.path())
        .env_remove("BENNU_MEMORY")
        .stdout(std::process::Stdio::piped())
        .spawn()
        .unwrap();
    let lines: Vec<String> =
        BufReader::new(server.stdout.take().unwrap()).lines().take(2).map(Result::unwrap).collect();
    server.kill().unwrap();
    server.wait().unwrap();
    assert!(
        lines[0].starts_with("bennu: memory ") && lines[0].contains("MB by default"),
        "{lines:?}"
    );
    assert!(lines[1].starts_with("bennu: ready on "), "{lines:?}");
}

#[tokio::test]
async fn statements_are_audited_by_class_and_object() {
    let directory = tempfile::tempdir().unwrap();
    let server = Process::serve(directory.path());
    let superuser = connect(server.address()).await;
    let setup = "CREATE TABLE salary (id int PRIMARY KEY, amount int);
        CREATE TABLE other (id int PRIMARY KEY);
        CREATE FUNCTION touch() RETURNS void LANGUAGE plpgsql AS
            $$ BEGIN UPDATE salary SET amount = 1; END $$;
        CREATE ROLE clerk LOGIN; CREATE ROLE auditor;
        GRANT ALL ON salary, other TO clerk; GRANT UPDATE ON salary TO auditor;
        ALTER ROLE clerk SET pgaudit.role = 'auditor';
        ALTER ROLE clerk SET pgaudit.log = 'write, function'";
    superuser.batch_execute(setup).await.unwrap();
    let config: tokio_postgres::Config =
        connection_string(server.address()).replace("user=bennu", "user=clerk").parse().unwrap();
    let (clerk, connection) = config.connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    clerk.batch_execute("SELECT amount FROM salary /* read */").await.unwrap();
    clerk.batch_execute("INSERT INTO other VALUES (1) /* write */").await.unwrap();
    clerk.batch_execute("SELECT touch()").await.unwrap();
    clerk.execute("DELETE FROM other WHERE id = $1", &[&1]).await.unwrap();
    superuser.batch_execute("GRANT INSERT (amount) ON salary TO auditor").await.unwrap();
    let sink = clerk.copy_in::<_, &[u8]>("COPY salary FROM STDIN").await.unwrap();
    tokio::pin!(sink);
    sink.finish().await.unwrap();
    for refused in ["SET pgaudit.log = 'none'", "SET pgaudit.role = ''", "SET pgaudit.other = 1"] {
        assert!(clerk.batch_execute(refused).await.is_err(), "{refused}");
    }
    superuser.batch_execute("SET pgaudit.log = 'role, ddl'").await.unwrap();
    superuser.batch_execute("CREATE ROLE x PASSWORD 'secret'; SELECT 1").await.unwrap();
    superuser.batch_execute("DROP TABLE other").await.unwrap();
    let bad = superuser.batch_execute("SET pgaudit.log = 'some'").await.unwrap_err();
    assert_eq!(bad.code().unwrap().code(), "22023");
    let (_, log) = server.terminate();
    let plain = log.as_str();
    let entries: Vec<&str> = plain.lines().filter(|line| line.contains("bennu::audit")).collect();
    let expected = [
        "SESSION class=\"WRITE\" command=\"INSERT\" object_type=\"\" object=\"\"",
        "SESSION class=\"FUNCTION\" command=\"EXECUTE\" object_type=\"function\" object=\"touch\"",
        "OBJECT class=\"WRITE\" command=\"UPDATE\" object_type=\"table\" object=\"public.salary\"",
        "SESSION class=\"WRITE\" command=\"UPDATE\" object_type=\"\" object=\"\"",
        "SESSION class=\"WRITE\" command=\"DELETE\" object_type=\"\" object=\"\"",
        "SESSION class=\"WRITE\" command=\"COPY\" object_type=\"\" object=\"\"",
        "OBJECT class=\"WRITE\" command=\"INSERT\" object_type=\"table\" object=\"public.salary\"",
        "SESSION class=\"ROLE\" command=\"CREATE ROLE\" object_type=\"\" object=\"\"",
        "SESSION class=\"DDL\" command=\"DROP TABLE\" object_type=\"\" object=\"\"",
    ];
    for (entry, expected) in entries.iter().zip(expected) {
        let expected = expected.replacen(' ', "\" ", 1);
        assert!(entry.contains(&format!("kind=\"{expected}")), "{entry}\n{expected}");
    }
    assert_eq!(entries.len(), expected.len(), "{entries:#?}");
    assert!(entries.iter().all(|entry| !entry.contains("secret")));
}
