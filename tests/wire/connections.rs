//! How many clients there may be, and what those on their way in can keep from others.

use std::net::TcpStream;

use tokio_postgres::error::SqlState;
use tokio_postgres::{Client, NoTls};

use crate::harness::{Setup, TestServer, connection_string};

async fn login(server: &TestServer, user: &str) -> Result<Client, tokio_postgres::Error> {
    let config = format!("{} user={user}", connection_string(server.address()));
    let (client, connection) = tokio_postgres::connect(&config, NoTls).await?;
    tokio::spawn(connection);
    Ok(client)
}

#[tokio::test]
async fn the_last_places_are_for_the_owner_of_the_database() {
    let server = TestServer::start_with(Setup { connections_max: Some(5), ..Setup::default() });
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
async fn connections_that_send_nothing_keep_nobody_out() {
    let server = TestServer::start();
    // More than there are places for clients of one address.
    bennu::server::raise_file_limit(600);
    let silent: Vec<_> = (0..600).map(|_| TcpStream::connect(server.address()).unwrap()).collect();
    for _ in 0..3 {
        let client = login(&server, "bennu").await.unwrap();
        client.batch_execute("SELECT 1").await.unwrap();
    }
    drop(silent);
}
