//! Tests of the rules of authentication: which clients log in, and how.

use std::path::PathBuf;

use bennu::authentication_rules::AuthenticationRules;
use bennu::config::{ConfigSource, TlsFiles};
use tokio_postgres::config::SslMode;
use tokio_postgres::{Config, NoTls};

use crate::harness::{Setup, TestServer, connection_string};
use crate::wire::security::{tls_files, tls_stream_with};

/// Returns the rules of a configuration file, on a server with TLS and verified certificates.
fn rules(text: &str) -> AuthenticationRules {
    let tls = "tls_cert = 'c'\ntls_key = 'k'\ntls_ca = 'a'\n";
    let source = toml::from_str::<ConfigSource>(&format!("{tls}{text}")).unwrap();
    source.check().unwrap().authentication
}

fn server(text: &str) -> TestServer {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    let authorities = Some(folder.join("client-authority.pem"));
    let server = TestServer::start_with(Setup {
        authentication: rules(text),
        tls: Some(TlsFiles { authorities, ..tls_files() }),
        ..Setup::default()
    });
    server.define(
        "CREATE ROLE ann LOGIN PASSWORD 'secret'; CREATE ROLE ben LOGIN; CREATE ROLE staff;
         GRANT staff TO ben; CREATE ROLE eve LOGIN",
    );
    server.define("CREATE DATABASE shop");
    server
}

/// Logs in, and returns the name of the session's role or the error.
async fn login(server: &TestServer, options: &str) -> String {
    let text = connection_string(server.address()).replace("user=bennu", "");
    let config: Config = format!("{text} {options}").parse().unwrap();
    match config.connect(NoTls).await {
        Ok((client, connection)) => {
            tokio::spawn(connection);
            client.query_one("SELECT current_user::text", &[]).await.unwrap().get(0)
        }
        Err(error) => code_and_message(&error),
    }
}

/// Logs in over TLS with a file of the client's certificate.
async fn login_with(server: &TestServer, user: &str, certificate: Option<&str>) -> String {
    let stream = match tls_stream_with(server.address(), certificate).await {
        Ok(stream) => stream,
        Err(error) => return error.to_string(),
    };
    let mut config = Config::new();
    config.user(user).dbname("bennu").ssl_mode(SslMode::Disable);
    match config.connect_raw(stream, NoTls).await {
        Ok((client, connection)) => {
            tokio::spawn(connection);
            client.query_one("SELECT current_user::text", &[]).await.unwrap().get(0)
        }
        Err(error) => code_and_message(&error),
    }
}

fn code_and_message(error: &tokio_postgres::Error) -> String {
    match error.as_db_error() {
        Some(error) => format!("{} {}", error.code().code(), error.message()),
        None => error.to_string(),
    }
}

#[tokio::test]
async fn first_matching_rule_decides_on_the_login() {
    let server = server(
        "[[authentication]]\nuser = 'eve'\nmethod = 'reject'\n\
         [[authentication]]\nuser = ['ann', 'nobody']\nmethod = 'scram-sha-256'\n\
         [[authentication]]\nuser = '+staff'\ndatabase = 'shop'\naddress = 'loopback'\n\
         method = 'trust'\n\
         [[authentication]]\nuser = 'bennu'\nmethod = 'trust'",
    );
    let ok = |options: &'static str| login(&server, options);
    assert_eq!(ok("user=bennu dbname=bennu").await, "bennu");
    assert_eq!(ok("user=ann password=secret dbname=bennu").await, "ann");
    assert_eq!(ok("user=ben dbname=shop").await, "ben");
    assert_eq!(
        ok("user=ben dbname=bennu").await,
        "28000 no authentication rule for host \"127.0.0.1\", user \"ben\", database \"bennu\", \
         no encryption"
    );
    assert_eq!(
        ok("user=eve dbname=shop").await,
        "28000 authentication rule rejects connection for host \"127.0.0.1\", user \"eve\", \
         database \"shop\", no encryption"
    );
    // A wrong password, no password and no role are the same for the client.
    let failed = |user: &str| format!("28P01 password authentication failed for user \"{user}\"");
    assert_eq!(ok("user=ann password=wrong dbname=bennu").await, failed("ann"));
    assert_eq!(ok("user=nobody password=wrong dbname=bennu").await, failed("nobody"));
    assert!(ok("user=stranger dbname=bennu").await.starts_with("28000 no authentication rule"));
}

#[tokio::test]
async fn certificates_stand_for_roles() {
    let server = server(
        "[[authentication]]\nuser = 'staff'\nmethod = 'cert'\n\
         [[authentication]]\nuser = 'ben'\nmethod = 'cert'\nmap = 'people'\n\
         [[authentication]]\ntype = 'hostnossl'\nmethod = 'reject'\n\
         [[authentication]]\nmethod = 'cert'\n\
         [[user_map]]\nmap = 'people'\ncertificate = 'ann'\nuser = 'ben'",
    );
    const ANN: Option<&str> = Some("client-ann.pem");
    assert_eq!(login_with(&server, "ann", ANN).await, "ann");
    assert_eq!(login_with(&server, "ben", ANN).await, "ben");
    let failed =
        |user: &str| format!("28000 certificate authentication failed for user \"{user}\"");
    assert_eq!(login_with(&server, "eve", ANN).await, failed("eve"));
    assert_eq!(login_with(&server, "staff", ANN).await, failed("staff"));
    assert_eq!(
        login_with(&server, "ann", None).await,
        "28000 connection requires a valid client certificate"
    );
    // TLS 1.3 reports the refused certificate with the first message.
    let unverified = login_with(&server, "ann", Some("client-unverified.pem")).await;
    assert!(!unverified.starts_with("ann") && !unverified.starts_with("28"), "{unverified}");
    let plain = login(&server, "user=ann dbname=bennu").await;
    assert!(plain.starts_with("28000 authentication rule rejects connection"), "{plain}");
}
