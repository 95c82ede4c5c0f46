//! Test servers: in this process, or the real binary as a child process.

use std::io::{BufRead, BufReader, Read};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::{Arc, mpsc};
use std::thread::JoinHandle;
use std::time::Duration;

use bennu::Database;
use bennu::authentication_rules::AuthenticationRules;
use bennu::config::{Config, TlsFiles};
use bennu::machine_memory::{BudgetOrigin, MemoryBudget};
use bennu::server::{self, Server};
use store::Options;
use store::env::slow::SlowEnv;
use store::options::AdmissionOptions;
use tempfile::TempDir;
use tokio::sync::oneshot;
use tokio_postgres::{Client, NoTls};

/// Time limit for starting and stopping a server.
const START_STOP_TIMEOUT: Duration = Duration::from_secs(60);
/// Memory budget of test servers.
const MEMORY_BYTES: u64 = 256 << 20;

/// Configuration of a test server.
#[derive(Debug, Default)]
pub(crate) struct Setup {
    /// The password, if clients need one.
    pub(crate) password: Option<String>,
    /// Rules of authentication.
    pub(crate) authentication: AuthenticationRules,
    /// Certificate and key, if TLS is offered.
    pub(crate) tls: Option<TlsFiles>,
    /// Limit of concurrently executing statements.
    pub(crate) admission: AdmissionOptions,
    /// Maximum number of connections.
    pub(crate) connections_max: Option<usize>,
    /// Period of auto-analyze; `None` disables it, so that plans do not change.
    pub(crate) analyze_period: Option<Duration>,
    /// Additional duration of each sync of the log.
    pub(crate) sync_time: Option<Duration>,
}

/// A server in this process, with its own directory and port. Stops when dropped.
pub(crate) struct TestServer {
    address: SocketAddr,
    database: Database,
    stop: Option<oneshot::Sender<()>>,
    thread: Option<JoinHandle<()>>,
    directory: TempDir,
}

impl TestServer {
    /// Starts a server with the default configuration.
    pub(crate) fn start() -> TestServer {
        TestServer::start_with(Setup::default())
    }

    /// Starts a server.
    pub(crate) fn start_with(setup: Setup) -> TestServer {
        let directory = tempfile::tempdir().unwrap();
        let admission = setup.admission;
        let staged_bytes_max = std::env::var_os("BENNU_SPILL").map(|_| 0);
        let mut options = Options { admission, staged_bytes_max, ..server::options(MEMORY_BYTES) };
        if let Some(sync_time) = setup.sync_time {
            options.env = Arc::new(SlowEnv::new(sync_time));
        }
        let database = Database::open(directory.path(), options).unwrap();
        let config = Config {
            data: directory.path().to_owned(),
            listen: "127.0.0.1:0".parse().unwrap(),
            memory: MemoryBudget { bytes: MEMORY_BYTES, origin: BudgetOrigin::Settings },
            admission,
            connections_max: setup.connections_max.unwrap_or(100),
            coprocessor_limits: store::options::CoprocessorLimits::default(),
            analyze_period: setup.analyze_period,
            normalizer_period: None,
            normalizer_min_age: Duration::ZERO,
            tls: setup.tls,
            password: setup.password,
            authentication: setup.authentication,
            tls_required: false,
            log: bennu::config::LogOptions::default(),
            coprocessors: Vec::new(),
        };
        let (stop, stopped) = oneshot::channel::<()>();
        let (ready, address) = mpsc::channel();
        let served = database.clone();
        let thread = std::thread::spawn(move || {
            server::runtime().unwrap().block_on(async move {
                let server = Server::bind(served, &config).await.unwrap();
                ready.send(server.local_addr()).unwrap();
                let shutdown = async move {
                    let _ = stopped.await;
                };
                server.run(shutdown).await.unwrap();
            });
        });
        let address = address.recv_timeout(START_STOP_TIMEOUT).unwrap();
        TestServer { address, database, stop: Some(stop), thread: Some(thread), directory }
    }

    /// Returns its address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its database.
    pub(crate) fn database(&self) -> &Database {
        &self.database
    }

    /// Executes definitions as the bootstrap superuser, without a connection.
    pub(crate) fn define(&self, sql: &str) {
        let mut session = self.database.session(bennu::database::DEFAULT_USER);
        for parsed in session.parse(sql).unwrap() {
            let prepared = session.prepare(&parsed, &[]).unwrap();
            session.execute(&prepared, Vec::new()).unwrap();
        }
        session.end_implicit().unwrap();
    }

    /// Returns its data directory.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }
}

impl Drop for TestServer {
    fn drop(&mut self) {
        drop(self.stop.take());
        let joined = self.thread.take().map(JoinHandle::join);
        let shut_down = self.database.shut_down();
        if !std::thread::panicking() {
            assert!(joined.is_some_and(|thread| thread.is_ok()), "the server has panicked");
            shut_down.unwrap();
        }
    }
}

/// Returns a connection string for tokio-postgres.
pub(crate) fn connection_string(address: SocketAddr) -> String {
    format!("host={} port={} user=bennu dbname=bennu", address.ip(), address.port())
}

/// Connects with tokio-postgres; the connection runs on the current runtime.
pub(crate) async fn connect(address: SocketAddr) -> Client {
    let (client, connection) =
        tokio_postgres::connect(&connection_string(address), NoTls).await.unwrap();
    tokio::spawn(connection);
    client
}

/// Returns a command that runs the real binary.
pub(crate) fn binary() -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bennu"));
    command.stdin(Stdio::null());
    for (name, _) in std::env::vars().filter(|(name, _)| name.starts_with("BENNU_")) {
        command.env_remove(name);
    }
    command
}

/// The real binary as a server. Killed when dropped.
pub(crate) struct Process {
    child: Child,
    address: SocketAddr,
    data: PathBuf,
    /// Reader of standard error, which must remain open for the server's log.
    stderr: Option<JoinHandle<String>>,
}

impl Process {
    /// Starts `bennu serve` on a directory and waits until it accepts clients.
    pub(crate) fn serve(data: &Path) -> Process {
        Process::serve_with(data, &[])
    }

    /// Starts `bennu serve` with additional arguments.
    pub(crate) fn serve_with(data: &Path, arguments: &[&str]) -> Process {
        Process::start(binary(), data, arguments)
    }

    /// Starts `bennu serve` under a limit of the shell's `ulimit`: `-v` and KiB of address space,
    /// or `-n` and file descriptors.
    pub(crate) fn serve_limited(data: &Path, limit: &str, arguments: &[&str]) -> Process {
        let mut shell = Command::new("sh");
        let script = format!("ulimit {limit} && exec \"$0\" \"$@\"");
        shell.arg("-c").arg(script).arg(binary().get_program());
        Process::start(shell, data, arguments)
    }

    fn start(mut command: Command, data: &Path, arguments: &[&str]) -> Process {
        let mut child = command
            .args(["serve", "--listen", "127.0.0.1:0", "--data"])
            .arg(data)
            .args(if arguments.contains(&"--memory") { &[][..] } else { &["--memory", "256MB"] })
            .args(arguments)
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut stderr = child.stderr.take().unwrap();
        let stderr = std::thread::spawn(move || {
            let mut text = String::new();
            let _ = stderr.read_to_string(&mut text);
            text
        });
        let mut line = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut line).unwrap();
        let Some(address) = line.trim_end().strip_prefix("bennu: ready on ") else {
            let _ = child.kill();
            let _ = child.wait();
            panic!("not ready: {line:?}; {}", stderr.join().unwrap());
        };
        let address = address.parse().unwrap();
        Process { child, address, data: data.to_owned(), stderr: Some(stderr) }
    }

    /// Returns its address.
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Returns its peak resident memory in bytes.
    pub(crate) fn peak_bytes(&self) -> u64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let peak = status.lines().find_map(|line| line.strip_prefix("VmHWM:")).unwrap();
        peak.trim().trim_end_matches(" kB").parse::<u64>().unwrap() << 10
    }

    /// Ends it with SIGKILL.
    pub(crate) fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    /// Stops it with SIGTERM; returns its exit status and its standard error.
    pub(crate) fn terminate(mut self) -> (ExitStatus, String) {
        let status = Command::new("kill").args(["-TERM", &self.child.id().to_string()]).status();
        assert!(status.unwrap().success());
        let status = self.child.wait().unwrap();
        (status, self.stderr.take().unwrap().join().unwrap())
    }

    /// Kills it and restarts it on the same data.
    pub(crate) fn kill_and_restart(self) -> Process {
        let data = self.data.clone();
        self.kill();
        Process::serve(&data)
    }

    /// Returns its current resident memory in bytes.
    pub(crate) fn resident_bytes(&self) -> u64 {
        let path = format!("/proc/{}/status", self.child.id());
        let status = std::fs::read_to_string(path).unwrap();
        let line = status.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
        let kilobytes: u64 = line.split_whitespace().nth(1).unwrap().parse().unwrap();
        kilobytes * 1024
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
