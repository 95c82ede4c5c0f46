//! Tests of logins as roles: attributes, passwords, limits, and what other sessions show.

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use crate::harness::{Setup, TestServer, connection_string};

/// Connects as a role, with a password.
async fn login(server: &TestServer, user: &str, password: &str) -> Result<Client, String> {
    let config =
        format!("{} user={user} password='{password}'", connection_string(server.address()));
    match tokio_postgres::connect(&config, NoTls).await {
        Ok((client, connection)) => {
            tokio::spawn(connection);
            Ok(client)
        }
        Err(error) => {
            let error = error.as_db_error().expect("the server has answered").clone();
            Err(format!("{} {}", error.code().code(), error.message()))
        }
    }
}

async fn value(client: &Client, query: &str) -> String {
    client.query_one(query, &[]).await.unwrap().get(0)
}

#[tokio::test]
async fn names_are_superuser_until_a_password_is_set() {
    let server = TestServer::start();
    let who = "SELECT session_user || ' ' || current_setting('is_superuser')";
    let client = login(&server, "nobody", "").await.unwrap();
    assert_eq!(value(&client, who).await, "bennu on");
    server.define("CREATE ROLE staff; CREATE USER ann; CREATE USER ben");
    let ann = login(&server, "ann", "").await.unwrap();
    assert_eq!(value(&ann, who).await, "ann off");
    let refused = login(&server, "staff", "").await.map(drop).unwrap_err();
    assert_eq!(refused, "28000 role \"staff\" is not permitted to log in");
    server.define("ALTER ROLE ben PASSWORD 'secret'");
    let refused = login(&server, "nobody", "").await.map(drop).unwrap_err();
    assert_eq!(refused, "28000 role \"nobody\" does not exist");
    let wrong = login(&server, "ben", "Secret").await.map(drop).unwrap_err();
    assert_eq!(wrong, "28P01 password authentication failed for user \"ben\"");
    let ben = login(&server, "ben", "secret").await.unwrap();
    assert_eq!(value(&ben, who).await, "ben off");
    login(&server, "ann", "").await.unwrap();
    server.define("ALTER ROLE ben VALID UNTIL '2020-01-01'");
    let expired = login(&server, "ben", "secret").await.map(drop).unwrap_err();
    assert_eq!(expired, wrong);
}

#[tokio::test]
async fn password_of_server_is_that_of_superuser() {
    let password = Some("right".to_owned());
    let server = TestServer::start_with(Setup { password, ..Setup::default() });
    server.define("CREATE USER ann; CREATE USER ben PASSWORD 'own'");
    login(&server, "bennu", "right").await.unwrap();
    login(&server, "ben", "own").await.unwrap();
    for (user, password) in [("bennu", "own"), ("ben", "right"), ("ann", "right"), ("eve", "right")]
    {
        let refused = login(&server, user, password).await.map(drop).unwrap_err();
        assert_eq!(refused, format!("28P01 password authentication failed for user \"{user}\""));
    }
}

#[tokio::test]
async fn connection_limit_counts_sessions_of_the_role() {
    let server = TestServer::start();
    server.define("CREATE USER ann CONNECTION LIMIT 1; CREATE USER ben");
    let first = login(&server, "ann", "").await.unwrap();
    let refused = login(&server, "ann", "").await.map(drop).unwrap_err();
    assert_eq!(refused, "53300 too many connections for role \"ann\"");
    login(&server, "ben", "").await.unwrap();
    drop(first);
    while login(&server, "ann", "").await.is_err() {}
}

#[tokio::test]
async fn sessions_of_other_roles_are_hidden_and_not_signalled() {
    let server = TestServer::start();
    server.define("CREATE USER ann; CREATE USER ben; CREATE USER eve; GRANT ann TO ben");
    let ann = login(&server, "ann", "").await.unwrap();
    let root = login(&server, "bennu", "").await.unwrap();
    let eve = login(&server, "eve", "").await.unwrap();
    let ben = login(&server, "ben", "").await.unwrap();
    let process: i32 = ann.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let of_root: i32 = root.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0);
    let shown = format!("SELECT query FROM pg_stat_activity WHERE pid = {process}");
    assert_eq!(value(&ben, &shown).await, "SELECT pg_backend_pid()");
    assert_eq!(value(&eve, &shown).await, "<insufficient privilege>");
    root.batch_execute("ALTER ROLE eve PASSWORD NULL; ALTER ROLE ann PASSWORD 'secret'")
        .await
        .unwrap();
    let of_alter = format!("SELECT query FROM pg_stat_activity WHERE pid = {of_root}");
    assert_eq!(value(&root, "SELECT 'a'").await, "a");
    let other = login(&server, "bennu", "").await.unwrap();
    root.batch_execute("ALTER ROLE ann PASSWORD 'secret'").await.unwrap();
    assert_eq!(value(&other, &of_alter).await, "ALTER ROLE … PASSWORD …");
    for function in ["pg_cancel_backend", "pg_terminate_backend"] {
        for process in [process, of_root] {
            let call = format!("SELECT {function}({process})");
            let refused = eve.query_one(&call, &[]).await.unwrap_err();
            assert_eq!(refused.code(), Some(&SqlState::INSUFFICIENT_PRIVILEGE), "{call}");
        }
    }
    server.define("GRANT pg_signal_backend, pg_monitor TO eve");
    assert_eq!(value(&eve, &shown).await, "SELECT pg_backend_pid()");
    let call = format!("SELECT pg_terminate_backend({of_root})");
    assert!(eve.query_one(&call, &[]).await.is_err());
    let call = format!("SELECT pg_cancel_backend({process})");
    assert!(eve.query_one(&call, &[]).await.unwrap().get::<_, bool>(0));
}
