//! The server: a listener, a task for each client, and an orderly shutdown.

use std::fs::File;
use std::net::SocketAddr;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use sql::Engine;
use sql::session::{Session, SessionOptions};
use store::options::Options;
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;
use tokio::task::{JoinError, JoinSet};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::server::WebPkiClientVerifier;
use tokio_rustls::rustls::server::danger::ClientCertVerifier;
use tokio_rustls::rustls::{RootCertStore, ServerConfig};

use crate::config::{CONNECTIONS_MAX, Config, TlsFiles};
use crate::database::{DEFAULT_USER, Database};
use crate::error::{Error, Result};
use crate::pgwire::{
    Authentication, CancelRegistry, LoginThrottle, Service, is_out_of_descriptors, panic_message,
    reject, serve,
};
use crate::secret_file;

/// Maximum number of threads: one for each session, and some for the server's background work.
const THREADS_MAX: usize = CONNECTIONS_MAX + 64;
/// Descriptors of a session: its socket, a duplicate for shutting it down, and a third while it
/// is idle.
const FILES_PER_SESSION: u64 = 3;
/// Descriptors of the server: listener, log, manifest, files being written.
const FILES_OF_SERVER: u64 = 16;
/// Time for running statements to finish after a shutdown request.
const STOP_GRACE: Duration = Duration::from_secs(2);
/// Time for cancelled statements to stop.
const CANCEL_GRACE: Duration = Duration::from_secs(5);
/// Period of the check for disconnected clients.
const DISCONNECT_CHECK_PERIOD: Duration = Duration::from_millis(500);
/// Period of the search for index builds that no session has.
const INDEX_BUILD_PERIOD: Duration = Duration::from_secs(1);
/// Period of the rounds in which the server follows eventual indexes.
const INDEX_FOLLOW_PERIOD: Duration = Duration::from_millis(20);
/// Period of the search for eventual indexes that writers maintain.
const INDEX_HANDOVER_PERIOD: Duration = Duration::from_millis(250);
/// Period of the search for databases that are not used.
const DATABASE_CLOSE_PERIOD: Duration = Duration::from_secs(10);
/// Pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// Stack of a thread that runs statements. Plans are as deep as they have joins and set
/// operations, up to a thousand, and are walked by recursion that takes some 64 KiB per level in
/// a debug build. Unused stack takes no memory.
const STACK_BYTES: usize = if cfg!(debug_assertions) { 256 << 20 } else { 64 << 20 };

/// Creates the runtime of the server, whose blocking threads run the sessions.
///
/// # Errors
///
/// If it cannot be created.
pub fn runtime() -> Result<Runtime> {
    let runtime = Builder::new_current_thread()
        .thread_name("bennu-session")
        .thread_stack_size(STACK_BYTES)
        .max_blocking_threads(THREADS_MAX)
        .enable_all()
        .build()?;
    Ok(runtime)
}

/// Raises the soft limit of file descriptors to the hard limit, and warns if it allows fewer
/// sessions than `connections_max`.
pub fn raise_file_limit(connections_max: usize) {
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, ..limit };
    if let Err(error) = setrlimit(Resource::Nofile, raised) {
        tracing::warn!(%error, "could not raise the limit of open files");
    }
    let shares = DescriptorShares::of_process();
    if shares.sessions < connections_max {
        tracing::warn!(
            max_connections = shares.sessions,
            "the limit of open files (ulimit -n) is too low for {connections_max} connections"
        );
    }
}

/// Numbers of clients for which the process has file descriptors. Half of the descriptors are for
/// store files and temporary files (`store::env::RealEnv`), so that connections cannot use them
/// up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct DescriptorShares {
    /// Sessions: 3/8 of the descriptors, less those of the log, the manifest and new store files.
    sessions: usize,
    /// Clients before login: one sixteenth.
    startup_slots: usize,
}

impl DescriptorShares {
    fn of_process() -> DescriptorShares {
        DescriptorShares::of(getrlimit(Resource::Nofile).current.unwrap_or(u64::MAX))
    }

    fn of(descriptors: u64) -> DescriptorShares {
        let sessions = (descriptors / 8 * 3).saturating_sub(FILES_OF_SERVER) / FILES_PER_SESSION;
        let count = |share: u64| usize::try_from(share).unwrap_or(usize::MAX);
        DescriptorShares {
            sessions: count(sessions).max(1),
            startup_slots: count(descriptors / 16).max(2),
        }
    }
}

/// Returns the options of a store that serves this server's sessions.
pub fn options(memory_bytes: u64) -> Options {
    Options { memory_bytes, ..Options::default() }
}

/// Returns a future that completes at SIGTERM or SIGINT. Signals are caught from the call on.
///
/// # Errors
///
/// If the signal handlers cannot be installed.
///
/// # Panics
///
/// Outside of a runtime.
pub fn stop_signal() -> Result<impl Future<Output = ()> + Send> {
    let mut terminate = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    Ok(async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
        }
    })
}

/// A listening server.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    service: Arc<Service>,
    stopping: watch::Sender<bool>,
    /// Periodic passes over tables, with their periods.
    passes: Vec<(&'static TablePass, Duration)>,
}

/// Periodic pass over tables.
struct TablePass {
    /// Name in the log.
    name: &'static str,
    /// Returns whether there may be something to do.
    is_due: fn(&Engine) -> bool,
    /// True if that may read files, so that it is called outside of the event loop.
    reads_files: bool,
    /// Runs the pass; returns the number of changes.
    run: fn(&mut Session) -> sql::Result<usize>,
}

static AUTO_ANALYZE: TablePass = TablePass {
    name: "auto-analyze",
    is_due: |_| true,
    reads_files: false,
    run: Session::analyze_due,
};
static NORMALIZER: TablePass = TablePass {
    name: "normalizer",
    is_due: |_| true,
    reads_files: false,
    run: Session::normalize_due,
};
static INDEX_BUILD: TablePass = TablePass {
    name: "index build",
    is_due: |engine| engine.due_builds().is_ok_and(|builds| !builds.is_empty()),
    reads_files: true,
    run: Session::build_due,
};
static INDEX_FOLLOW: TablePass = TablePass {
    name: "eventual indexes",
    is_due: Engine::followers_are_behind,
    reads_files: false,
    run: Session::follow_due,
};
static INDEX_HANDOVER: TablePass = TablePass {
    name: "index handover",
    is_due: Engine::has_handovers,
    reads_files: true,
    run: Session::hand_over_due,
};

impl Server {
    /// Binds the configured address. [`Server::run`] serves clients.
    ///
    /// # Errors
    ///
    /// If the address cannot be bound, or the certificate or key cannot be used.
    pub async fn bind(database: Database, config: &Config) -> Result<Server> {
        let address = config.listen;
        let failed = |source| Error::Listen { address: address.to_string(), source };
        let (tls, certificate) = match &config.tls {
            Some(files) => {
                let (acceptor, certificate) = load_tls(files)?;
                (Some(acceptor), Some(certificate))
            }
            None => (None, None),
        };
        let listener = TcpListener::bind(address).await.map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let (stopping, receiver) = watch::channel(false);
        let shares = DescriptorShares::of_process();
        let service = Service {
            database,
            tls,
            tls_required: config.tls_required,
            authentication: Authentication::new(
                config.password.as_deref(),
                certificate.as_deref(),
                config.authentication.clone(),
            ),
            cancels: Arc::new(CancelRegistry::default()),
            incoming: Arc::default(),
            login_throttle: Arc::new(LoginThrottle::new(shares.startup_slots)),
            connections_max: config.connections_max.min(shares.sessions),
            log: config.log,
            stopping: receiver,
        };
        let passes = [
            (&AUTO_ANALYZE, config.analyze_period),
            (&NORMALIZER, config.normalizer_period),
            (&INDEX_BUILD, Some(INDEX_BUILD_PERIOD)),
            (&INDEX_FOLLOW, Some(INDEX_FOLLOW_PERIOD)),
            (&INDEX_HANDOVER, Some(INDEX_HANDOVER_PERIOD)),
        ];
        let passes = passes.into_iter().filter_map(|(pass, period)| Some((pass, period?)));
        let (service, passes) = (Arc::new(service), passes.collect());
        Ok(Server { listener, address, service, stopping, passes })
    }

    /// Returns the address that is listened on.
    pub fn local_addr(&self) -> SocketAddr {
        self.address
    }

    /// Serves clients until `shutdown` completes, then ends their connections: idle ones at once,
    /// running statements after a grace period.
    ///
    /// # Errors
    ///
    /// None at present; errors of one client do not end the server.
    pub async fn run(self, shutdown: impl Future<Output = ()>) -> Result<()> {
        let Server { listener, service, stopping, passes, .. } = self;
        let mut clients = JoinSet::new();
        for (pass, period) in passes {
            clients.spawn(table_pass_loop(Arc::clone(&service), pass, period));
        }
        clients.spawn(cancel_disconnected_loop(Arc::clone(&service)));
        clients.spawn(close_databases_loop(Arc::clone(&service)));
        tokio::pin!(shutdown);
        let mut reserve = ReserveDescriptor::open();
        loop {
            tokio::select! {
                biased;
                () = &mut shutdown => break,
                Some(ended) = clients.join_next() => log_panic(ended),
                accepted = listener.accept() => match accepted {
                    Ok((stream, address)) => admit((stream, address), &service, &mut clients),
                    Err(error) => {
                        tracing::warn!(%error, "could not accept a client");
                        if is_out_of_descriptors(&error) {
                            reserve.reject_next(&listener).await;
                        }
                        tokio::time::sleep(ACCEPT_PAUSE).await;
                    }
                },
            }
        }
        drop(listener);
        stopping.send_replace(true);
        service.cancels.wake_all();
        if tokio::time::timeout(STOP_GRACE, drain(&mut clients)).await.is_err() {
            service.cancels.cancel_all();
            if tokio::time::timeout(CANCEL_GRACE, drain(&mut clients)).await.is_err() {
                tracing::warn!(
                    clients = clients.len(),
                    "disconnecting clients that did not stop in time"
                );
                service.cancels.close_all_sockets();
                clients.abort_all();
            }
        }
        Ok(())
    }
}

async fn until_stopping(stopping: &mut watch::Receiver<bool>) {
    // A closed channel means shutdown, too.
    let _ = stopping.wait_for(|stopping| *stopping).await;
}

/// Cancels the statements of disconnected clients, until the server stops.
async fn cancel_disconnected_loop(service: Arc<Service>) {
    let mut stopping = service.stopping.clone();
    loop {
        tokio::select! {
            () = until_stopping(&mut stopping) => return,
            () = tokio::time::sleep(DISCONNECT_CHECK_PERIOD) => service.cancels.cancel_disconnected(),
        }
    }
}

/// Closes databases that are not used, until the server stops.
async fn close_databases_loop(service: Arc<Service>) {
    let mut stopping = service.stopping.clone();
    loop {
        tokio::select! {
            () = until_stopping(&mut stopping) => return,
            () = tokio::time::sleep(DATABASE_CLOSE_PERIOD) => {}
        }
        let engine = Arc::clone(service.database.engine());
        let closed = tokio::task::spawn_blocking(move || engine.close_unused_databases()).await;
        if let Err(panic) = closed {
            tracing::error!(%panic, "closing of databases panicked");
        }
    }
}

/// Runs a pass over the tables of the open databases periodically, until the server stops.
async fn table_pass_loop(service: Arc<Service>, pass: &'static TablePass, period: Duration) {
    let mut stopping = service.stopping.clone();
    loop {
        tokio::select! {
            () = until_stopping(&mut stopping) => return,
            () = tokio::time::sleep(period) => {}
        }
        for engine in service.database.engine().engines() {
            run_table_pass(engine, pass, &mut stopping).await;
        }
    }
}

/// Runs a pass over the tables of a database, if it is due.
async fn run_table_pass(
    engine: Arc<Engine>,
    pass: &'static TablePass,
    stopping: &mut watch::Receiver<bool>,
) {
    let name = pass.name;
    let asked = Arc::clone(&engine);
    let is_due = match pass.reads_files {
        true => tokio::task::spawn_blocking(move || (pass.is_due)(&asked)).await,
        false => Ok((pass.is_due)(&asked)),
    };
    // CREATE and DROP DATABASE need a database without sessions.
    if !is_due.unwrap_or(false) || engine.is_claimed() {
        return;
    }
    let open = move || Session::open(&engine, SessionOptions { user: DEFAULT_USER.to_owned() });
    let Ok(mut session) = tokio::task::spawn_blocking(open).await else { return };
    let cancel = session.cancel_handle();
    let mut work = tokio::task::spawn_blocking(move || (pass.run)(&mut session));
    let done = tokio::select! {
        done = &mut work => done,
        () = until_stopping(stopping) => {
            cancel.cancel();
            work.await
        }
    };
    match done {
        Ok(Ok(0)) => {}
        Ok(Ok(count)) => tracing::info!(count, "{name}: changed tables"),
        Ok(Err(error)) => tracing::debug!(%error, "{name}: canceled"),
        Err(panic) => tracing::error!(%panic, "{name}: panicked"),
    }
}

/// File descriptor that is reserved for rejecting a client when the process has no other one.
struct ReserveDescriptor(Option<File>);

impl ReserveDescriptor {
    fn open() -> ReserveDescriptor {
        #[expect(clippy::disallowed_methods, reason = "it is opened for its descriptor")]
        let file = File::open("/dev/null");
        ReserveDescriptor(file.ok())
    }

    /// Accepts the next client with the reserved descriptor, reports too many connections to it,
    /// and closes its connection.
    async fn reject_next(&mut self, listener: &TcpListener) {
        self.0 = None;
        if let Ok(Ok((stream, _))) = tokio::time::timeout(ACCEPT_PAUSE, listener.accept()).await {
            reject(&stream);
        }
        *self = ReserveDescriptor::open();
    }
}

/// Starts a task that serves a client.
fn admit(
    (stream, address): (TcpStream, SocketAddr),
    service: &Arc<Service>,
    clients: &mut JoinSet<()>,
) {
    // Without it, small answers are delayed until the client has acknowledged the previous one.
    if let Err(error) = stream.set_nodelay(true) {
        tracing::debug!(%error, "client disconnected before it was served");
        return;
    }
    let slot = service.login_throttle.acquire(address.ip());
    clients.spawn(serve((stream, address), Arc::clone(service), slot));
}

async fn drain(clients: &mut JoinSet<()>) {
    while let Some(ended) = clients.join_next().await {
        log_panic(ended);
    }
}

fn log_panic(ended: std::result::Result<(), JoinError>) {
    if let Err(error) = ended
        && error.is_panic()
    {
        let panic = error.into_panic();
        tracing::error!(panic = panic_message(panic.as_ref()), "connection task panicked");
    }
}

/// Returns the verifier of the certificates of clients, which need none. The error is a text.
fn verifier_of_clients(
    authorities: &[u8],
) -> std::result::Result<Arc<dyn ClientCertVerifier>, String> {
    let mut roots = RootCertStore::empty();
    for certificate in rustls_pemfile::certs(&mut &*authorities) {
        let certificate = certificate.map_err(|error| error.to_string())?;
        roots.add(certificate).map_err(|error| error.to_string())?;
    }
    WebPkiClientVerifier::builder_with_provider(Arc::new(roots), Arc::new(ring::default_provider()))
        .allow_unauthenticated()
        .build()
        .map_err(|error| error.to_string())
}

/// Loads certificate and key; also returns the certificate as PEM.
fn load_tls(files: &TlsFiles) -> Result<(TlsAcceptor, Vec<u8>)> {
    let pem = read(&files.certificate)?;
    let key_pem = secret_file::read(&files.key, "private key file")?;
    let unusable = |path: &Path, why: &dyn std::fmt::Display| {
        Error::Usage(format!("could not use \"{}\" for TLS: {why}", path.display()))
    };
    let certificates = rustls_pemfile::certs(&mut pem.as_slice())
        .collect::<std::io::Result<Vec<_>>>()
        .map_err(|error| unusable(&files.certificate, &error))?;
    let key = rustls_pemfile::private_key(&mut key_pem.as_slice())
        .map_err(|error| unusable(&files.key, &error))?
        .ok_or_else(|| unusable(&files.key, &"no private key found"))?;
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .map_err(|error| unusable(&files.certificate, &error))?;
    let config = match &files.authorities {
        None => config.with_no_client_auth(),
        Some(path) => {
            let verifier = verifier_of_clients(&read(path)?);
            config.with_client_cert_verifier(verifier.map_err(|why| unusable(path, &why))?)
        }
    };
    let config = config
        .with_single_cert(certificates, key)
        .map_err(|error| unusable(&files.certificate, &error))?;
    Ok((TlsAcceptor::from(Arc::new(config)), pem))
}

#[expect(clippy::disallowed_methods, reason = "certificates are not files of a database")]
fn read(path: &Path) -> Result<Vec<u8>> {
    std::fs::read(path).map_err(|source| Error::File { path: path.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::TcpStream as Client;

    use tokio::sync::oneshot;

    use super::*;
    use crate::config::ConfigSource;

    /// The startup packet of a user.
    const STARTUP: &[u8] = b"\0\0\0\x14\0\x03\0\0user\0bennu\0\0";
    const SSL_REQUEST: &[u8] = b"\0\0\0\x08\x04\xd2\x16\x2f";

    #[test]
    fn sessions_share_descriptors_left_by_files() {
        let shares = |descriptors| {
            let DescriptorShares { sessions, startup_slots } = DescriptorShares::of(descriptors);
            (sessions, startup_slots)
        };
        assert_eq!(shares(0), (1, 2));
        assert_eq!(shares(128), (10, 8));
        assert_eq!(shares(1_024), (122, 64));
        for descriptors in [64, 100, 1_000, 4_096] {
            let (sessions, slots) = shares(descriptors);
            let used = sessions as u64 * FILES_PER_SESSION + slots as u64 + FILES_OF_SERVER;
            assert!(used <= descriptors / 2, "{descriptors}");
        }
        assert!(shares(u64::MAX).0 > 1 << 32);
    }

    /// Runs `client` against a server on a fresh directory, then stops the server.
    fn with_server(client: impl FnOnce(SocketAddr, &mut dyn FnMut()) + Send + 'static) {
        let directory = tempfile::tempdir().unwrap();
        let runtime = runtime().unwrap();
        let database = Database::open(directory.path(), options(64 << 20)).unwrap();
        let listen = Some("127.0.0.1:0".to_owned());
        let config = ConfigSource { listen, ..ConfigSource::default() }.check().unwrap();
        runtime.block_on(async {
            let server = Server::bind(database.clone(), &config).await.unwrap();
            let address = server.local_addr();
            let (stop, stopped) = oneshot::channel::<()>();
            let mut stop = Some(stop);
            let client = std::thread::spawn(move || client(address, &mut || drop(stop.take())));
            let stopped = async {
                let _ = stopped.await;
            };
            server.run(stopped).await.unwrap();
            client.join().unwrap();
        });
        database.shut_down().unwrap();
    }

    fn read_to_end(client: &mut Client) -> String {
        let mut bytes = Vec::new();
        client.read_to_end(&mut bytes).unwrap();
        String::from_utf8_lossy(&bytes).into_owned()
    }

    fn read_until_ready(client: &mut Client) -> Vec<u8> {
        let mut bytes = Vec::new();
        while !bytes.ends_with(b"Z\0\0\0\x05I") {
            let mut byte = [0];
            client.read_exact(&mut byte).unwrap();
            bytes.extend_from_slice(&byte);
        }
        bytes
    }

    #[test]
    fn bytes_after_ssl_request_are_rejected() {
        with_server(|address, _stop| {
            let mut client = Client::connect(address).unwrap();
            client.write_all(&[SSL_REQUEST, STARTUP, b"Q\0\0\0\x0dselect 1\0"].concat()).unwrap();
            let mut answer = Vec::new();
            // The connection is closed, possibly with a reset because of unread data.
            let _ = client.read_to_end(&mut answer);
            assert_eq!(answer, b"");
            let mut client = Client::connect(address).unwrap();
            client.write_all(SSL_REQUEST).unwrap();
            let mut answer = [0];
            client.read_exact(&mut answer).unwrap();
            assert_eq!(answer, *b"N");
            client.write_all(STARTUP).unwrap();
            assert!(read_until_ready(&mut client).starts_with(b"R\0\0\0\x08\0\0\0\0"));
        });
    }

    #[test]
    fn malformed_frames_end_only_own_connection() {
        with_server(|address, _stop| {
            let start = || {
                let mut client = Client::connect(address).unwrap();
                client.write_all(STARTUP).unwrap();
                read_until_ready(&mut client);
                client
            };
            let mut other = start();
            for bad in [&b"Q\0\0\0\x07abc"[..], b"B\0\0\0\x0c\0\0\0\x09\0\0\0\0", b"?\0\0\0\x04"] {
                let mut client = start();
                client.write_all(bad).unwrap();
                let answer = read_to_end(&mut client);
                assert!(answer.contains("SFATAL") && answer.contains("C08P01"), "{answer}");
            }
            other.write_all(b"Q\0\0\0\x0dselect 7\0").unwrap();
            let answer = read_until_ready(&mut other);
            assert!(answer.windows(9).any(|row| row == b"\0\x01\0\0\0\x017C\0"), "{answer:?}");
        });
    }

    /// A client that has just been answered still has a thread; one that has been silent for
    /// longer has none.
    #[test]
    fn idle_clients_are_notified_of_shutdown() {
        with_server(|address, stop| {
            let mut client = Client::connect(address).unwrap();
            client.write_all(STARTUP).unwrap();
            read_until_ready(&mut client);
            stop();
            assert!(read_to_end(&mut client).contains("C57P01"));
        });
    }
}
