//! Tests of passwords and TLS.

use sql::catalog::name::ObjectName;
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::sync::{Arc, LazyLock};

use bennu::config::TlsFiles;
use tokio::net::TcpStream;
use tokio_postgres::config::SslMode;
use tokio_postgres::{Config, NoTls};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::ServerName;
use tokio_rustls::rustls::{ClientConfig, RootCertStore};

use crate::harness::{Setup, TestServer, connection_string};
use crate::raw::{Frames, Raw, startup};

fn with_password(password: &str) -> Setup {
    Setup { password: Some(password.to_owned()), ..Setup::default() }
}

/// A self-signed certificate for `localhost` for these tests, valid for a hundred years.
pub(super) fn tls_files() -> TlsFiles {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
    // The server requires a key without access for others, which a checkout does not preserve.
    static KEY: LazyLock<PathBuf> = LazyLock::new(|| {
        let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
        let name = format!("key-{}.pem", std::process::id());
        let key = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
        std::fs::copy(folder.join("key.pem"), &key).unwrap();
        std::fs::set_permissions(&key, std::fs::Permissions::from_mode(0o600)).unwrap();
        key
    });
    TlsFiles { certificate: folder.join("certificate.pem"), key: KEY.clone(), authorities: None }
}

fn tls_server(password: Option<&str>) -> TestServer {
    TestServer::start_with(Setup {
        password: password.map(str::to_owned),
        tls: Some(tls_files()),
        ..Setup::default()
    })
}

fn ssl_request() -> Vec<u8> {
    [&8_u32.to_be_bytes()[..], &80_877_103_u32.to_be_bytes()].concat()
}

/// Connects and performs the handshake, trusting the certificate of these tests.
async fn tls_stream(address: SocketAddr) -> TlsStream<TcpStream> {
    tls_stream_with(address, None).await.unwrap()
}

/// Connects and performs the handshake with a file of the client's certificate and key.
pub(super) async fn tls_stream_with(
    address: SocketAddr,
    client: Option<&str>,
) -> std::io::Result<TlsStream<TcpStream>> {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let pem = std::fs::read(tls_files().certificate).unwrap();
    let mut roots = RootCertStore::empty();
    for certificate in rustls_pemfile::certs(&mut pem.as_slice()) {
        roots.add(certificate.unwrap()).unwrap();
    }
    let config = ClientConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_root_certificates(roots);
    let config = match client {
        None => config.with_no_client_auth(),
        Some(file) => {
            let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/wire");
            let pem = std::fs::read(folder.join(file)).unwrap();
            let chain = rustls_pemfile::certs(&mut pem.as_slice()).collect::<Result<_, _>>();
            let key = rustls_pemfile::private_key(&mut pem.as_slice()).unwrap().unwrap();
            config.with_client_auth_cert(chain.unwrap(), key).unwrap()
        }
    };
    let mut stream = TcpStream::connect(address).await.unwrap();
    stream.write_all(&ssl_request()).await.unwrap();
    assert_eq!(stream.read_u8().await.unwrap(), b'S');
    let name = ServerName::try_from("localhost").unwrap();
    TlsConnector::from(Arc::new(config)).connect(name, stream).await
}

#[tokio::test]
async fn password_authentication_accepts_only_correct_password() {
    let server = TestServer::start_with(with_password("sésame"));
    let config = |password: Option<&str>| {
        let mut config: Config = connection_string(server.address()).parse().unwrap();
        if let Some(password) = password {
            config.password(password);
        }
        config
    };
    let (client, connection) = config(Some("sésame")).connect(NoTls).await.unwrap();
    tokio::spawn(connection);
    client.simple_query("SELECT 1").await.unwrap();
    for wrong in ["", "sesame", "sésame "] {
        let Err(error) = config(Some(wrong)).connect(NoTls).await else {
            panic!("{wrong:?} was accepted");
        };
        if let Some(error) = error.as_db_error() {
            assert_eq!(error.code().code(), "28P01");
            assert_eq!(error.message(), "password authentication failed for user \"bennu\"");
        }
    }
    assert!(config(None).connect(NoTls).await.is_err());
}

#[test]
fn no_query_runs_before_authentication() {
    let server = TestServer::start_with(with_password("secret"));
    let mut raw = Raw::connect(server.address());
    let hasty = Frames::new().query("CREATE TABLE t (a int PRIMARY KEY)");
    raw.try_send(&[startup(&[("user", "bennu")]), hasty.0].concat());
    raw.finish();
    while let Some(message) = raw.read() {
        assert!(b"RE".contains(&message.kind), "{message:?}");
    }
    let engine = server.database().engine();
    assert!(engine.catalog().table_named(&ObjectName::public("t")).is_none());
}

#[tokio::test]
async fn queries_run_under_tls() {
    let server = tls_server(Some("secret"));
    let mut config: Config = connection_string(server.address()).parse().unwrap();
    // The given stream is encrypted already.
    config.ssl_mode(SslMode::Disable).password("secret");
    let stream = tls_stream(server.address()).await;
    let (client, connection) = config.connect_raw(stream, NoTls).await.unwrap();
    tokio::spawn(connection);
    client.batch_execute("CREATE TABLE t (a int PRIMARY KEY, b text)").await.unwrap();
    let long = "x".repeat(100_000);
    client.execute("INSERT INTO t VALUES (1, $1)", &[&long]).await.unwrap();
    let row = client.query_one("SELECT b FROM t WHERE a = 1", &[]).await.unwrap();
    assert_eq!(row.get::<_, String>(0), long);
}

#[test]
fn plaintext_before_tls_handshake_is_discarded() {
    let server = tls_server(None);
    let mut raw = Raw::connect(server.address());
    let injected = Frames::new().query("CREATE TABLE injected (a int PRIMARY KEY)");
    raw.send(&[ssl_request(), startup(&[("user", "bennu")]), injected.0].concat());
    // Dropped without any answer.
    assert_eq!(raw.read_byte(), None);
    assert!(
        server.database().engine().catalog().table_named(&ObjectName::public("injected")).is_none()
    );
}

#[test]
fn tls_is_declined_without_certificate() {
    let server = TestServer::start();
    let mut raw = Raw::connect(server.address());
    raw.send(&ssl_request());
    assert_eq!(raw.read_byte(), Some(b'N'));
    raw.send(&startup(&[("user", "bennu")]));
    assert_eq!(raw.until_ready().last().map(|message| message.kind), Some(b'Z'));
}
