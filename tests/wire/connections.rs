//! Tests of connection limits: number of clients, login attempts, file descriptors.

use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use crate::harness::{Process, Setup, TestServer, connect, connection_string};

async fn login(server: &TestServer, user: &str) -> Result<Client, tokio_postgres::Error> {
    login_at(server.address(), user).await
}

async fn login_at(address: SocketAddr, user: &str) -> Result<Client, tokio_postgres::Error> {
    let config = format!("{} user={user}", connection_string(address));
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

#[tokio::test]
async fn last_connections_are_reserved_for_superusers() {
    let server = TestServer::start_with(Setup { connections_max: Some(5), ..Setup::default() });
    server.define("CREATE USER ann");
    let refused = |error: tokio_postgres::Error, says: &str| {
        let error = error.as_db_error().expect("the server has answered").clone();
        assert_eq!(error.code(), &SqlState::TOO_MANY_CONNECTIONS);
        assert!(error.message().contains(says), "{}", error.message());
    };
    let mut clients = Vec::new();
    for _ in 0..2 {
        clients.push(login(&server, "ann").await.unwrap());
    }
    let shown = clients[0].query_one("SHOW max_connections", &[]).await.unwrap();
    assert_eq!(shown.get::<_, &str>(0), "5");
    refused(login(&server, "ann").await.map(drop).unwrap_err(), "reserved");
    for _ in 0..3 {
        clients.push(login(&server, "bennu").await.unwrap());
    }
    refused(login(&server, "bennu").await.map(drop).unwrap_err(), "too many clients");
    drop(clients);
    while login(&server, "ann").await.is_err() {}
}

#[tokio::test]
async fn silent_connections_do_not_block_logins() {
    let server = TestServer::start();
    // More than the limit of clients of one address.
    bennu::server::raise_file_limit(600);
    let silent: Vec<_> = (0..600).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    for _ in 0..3 {
        let client = login(&server, "bennu").await.unwrap();
        client.batch_execute("SELECT 1").await.unwrap();
    }
    drop(silent);
}

#[tokio::test]
async fn connections_keep_descriptors_under_many_files() {
    let directory = tempfile::tempdir().unwrap();
    let process = Process::serve_limited(directory.path(), "-n 128", &[]);
    let client = connect(process.address()).await;
    client
        .batch_execute(
            "CREATE TABLE t (k int PRIMARY KEY, v int) WITH (salt_buckets = 200);
             INSERT INTO t SELECT i, i FROM generate_series(1, 5000) i;
             FLUSH t;
             SET work_mem = '64kB'",
        )
        .await
        .unwrap();
    // One store file in each bucket, and 32 grouping sets that spill 32 partitions each.
    let text = "SELECT count(*), sum(n)::bigint FROM (SELECT count(*) n \
                FROM (SELECT v % 2500 a FROM t) s GROUP BY CUBE (a, a+1, a+2, a+3, a+4)) s";
    let row = client.query_one(text, &[]).await.unwrap();
    // Each grouping set but the empty one has 2,500 groups, and each set has all rows.
    assert_eq!(row.get::<_, i64>(0), 31 * 2_500 + 1);
    assert_eq!(row.get::<_, i64>(1), 32 * 5_000);
    // A client without descriptors gets an error, and existing sessions continue.
    let mut clients = vec![client];
    let error = loop {
        assert!(clients.len() < 100, "more clients than descriptors");
        match login_at(process.address(), "bennu").await {
            Ok(client) => clients.push(client),
            Err(error) => break error,
        }
    };
    let error = error.as_db_error().expect("the server has answered");
    assert_eq!(error.code(), &SqlState::TOO_MANY_CONNECTIONS);
    assert!(clients.len() > 8, "{} clients", clients.len());
    // They also continue while other connections send nothing; too many of those get an error.
    let silent: Vec<_> = (0..200).map(|_| TcpStream::connect(process.address()).unwrap()).collect();
    for client in &clients {
        client.query_one(text, &[]).await.unwrap();
    }
    drop((clients, silent));
    while login_at(process.address(), "bennu").await.is_err() {}
}

#[tokio::test]
async fn password_guessing_does_not_lock_user_out() {
    let password = Some("right".to_owned());
    let server = TestServer::start_with(Setup { password, ..Setup::default() });
    server.define("CREATE USER ann PASSWORD 'right'");
    let address = server.address();
    let guess = |user: String| async move {
        let config = format!("{} user={user} password=wrong", connection_string(address));
        loop {
            let error = tokio_postgres::connect(&config, NoTls).await.map(drop).unwrap_err();
            let code = error.as_db_error().map(|error| error.code().clone());
            assert_eq!(code, Some(SqlState::INVALID_PASSWORD));
        }
    };
    let guessers: Vec<_> = (0..40)
        .map(|guesser| match guesser % 2 {
            0 => tokio::spawn(guess("bennu".to_owned())),
            _ => tokio::spawn(guess(format!("user{guesser}"))),
        })
        .collect();
    // The maximum delay, and a margin for a busy machine.
    let patience = Duration::from_secs(10);
    for user in ["bennu", "ann"] {
        for _ in 0..2 {
            let config = format!("{} user={user} password=right", connection_string(address));
            let connected = tokio::time::timeout(patience, tokio_postgres::connect(&config, NoTls));
            drop(connected.await.expect("a delay within the bound").expect("the right password"));
        }
    }
    guessers.iter().for_each(|guesser| assert!(!guesser.is_finished()));
    guessers.iter().for_each(tokio::task::JoinHandle::abort);
}
