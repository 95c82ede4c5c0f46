//! The `bennu` binary: logging, and dispatch to the commands.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the system directly"))]
#![forbid(unsafe_code)]

use std::io::{IsTerminal, Write};
use std::path::PathBuf;
use std::process::ExitCode;

use bennu::command_line::{Arguments, Command};
use bennu::config::{Config, ConfigSource};
use bennu::database::{DEFAULT_DATABASE, DEFAULT_USER, Database};
use bennu::error::{Error, Result};
use bennu::job;
use bennu::machine_memory::BudgetOrigin;
use bennu::server::Server;
use bennu::{demo, server, shell};
use clap::Parser;
use sql::EngineOptions;
use sql::memory_governor::MemoryGovernor;
use store::Options;
use store::env::process::read_text;
use store::memory::CountingAllocator;

#[global_allocator]
static ALLOCATOR: CountingAllocator<mimalloc::MiMalloc> = CountingAllocator(mimalloc::MiMalloc);

fn main() -> ExitCode {
    let arguments = Arguments::parse();
    init_logs();
    let result = match arguments.command {
        Command::Serve { source, config } => serve(*source, config),
        Command::Demo { once, listen } => run_demo(once, listen),
        Command::Job { job } => job::run(job, &mut std::io::stdout().lock()),
        Command::Sql { data, config, database, command, file } => {
            let database = database.unwrap_or_else(|| DEFAULT_DATABASE.to_owned());
            run_sql((data, config), &database, (command, file))
        }
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            // An error of standard error cannot be reported.
            let _ = writeln!(std::io::stderr(), "bennu: {error}");
            ExitCode::from(error.exit_status())
        }
    }
}

/// Log targets of entries about clients, which are logged unless `BENNU_LOG` filters them.
const CLIENT_TARGETS: &str = "bennu::clients=info,bennu::audit=info";

/// Initializes logging to standard error. `BENNU_LOG` has the filter, in `env_logger` syntax.
fn init_logs() {
    let chosen = std::env::var("BENNU_LOG").unwrap_or_else(|_| "warn".to_owned());
    let filter = tracing_subscriber::EnvFilter::try_new(format!("{CLIENT_TARGETS},{chosen}"))
        .unwrap_or_else(|_| tracing_subscriber::EnvFilter::new(format!("{CLIENT_TARGETS},warn")));
    tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_ansi(std::io::stderr().is_terminal())
        .with_writer(std::io::stderr)
        .init();
}

fn serve(source: ConfigSource, file: Option<PathBuf>) -> Result<()> {
    let config = read_config(source, file)?;
    server::raise_file_limit(config.connections_max);
    let runtime = server::runtime()?;
    let database = open(&config)?;
    let _governor = MemoryGovernor::start(database.engine(), config.memory.bytes)?;
    runtime.block_on(async {
        let server = Server::bind(database.clone(), &config).await?;
        let stop = server::stop_signal()?;
        announce_memory(&config)?;
        announce(&server)?;
        server.run(stop).await
    })?;
    database.shut_down()
}

fn read_config(source: ConfigSource, file: Option<PathBuf>) -> Result<Config> {
    let lower = match &file {
        Some(path) => ConfigSource::read(path)?,
        None => ConfigSource::default(),
    };
    source.with_defaults_from(lower).check()
}

fn open(config: &Config) -> Result<Database> {
    let engine = EngineOptions {
        server_coprocessors: config.coprocessors.clone(),
        ..EngineOptions::default()
    };
    let options = Options {
        admission: config.admission,
        coprocessors: config.coprocessor_limits.clone(),
        normalizer_min_age: config.normalizer_min_age,
        ..server::options(config.memory.bytes)
    };
    Database::open_with(&config.data, options, engine)
}

fn run_demo(once: bool, listen: Option<String>) -> Result<()> {
    let config = ConfigSource { listen, ..ConfigSource::default() }.check()?;
    let directory = tempfile::Builder::new().prefix("bennu-demo-").tempdir()?;
    let runtime = server::runtime()?;
    let database = Database::open(directory.path(), server::options(config.memory.bytes))?;
    let _governor = MemoryGovernor::start(database.engine(), config.memory.bytes)?;
    // Binds before the load, so that a port in use is reported at once.
    let server = match once {
        true => None,
        false => Some(runtime.block_on(Server::bind(database.clone(), &config))?),
    };
    demo::run(&database, &mut std::io::stdout().lock())?;
    if let Some(server) = server {
        let address = server.local_addr();
        let mut out = std::io::stdout();
        writeln!(out, "\nConnect with:")?;
        writeln!(
            out,
            "  psql \"host={} port={} user={DEFAULT_USER} dbname=bennu\"",
            address.ip(),
            address.port()
        )?;
        runtime.block_on(async {
            let stop = server::stop_signal()?;
            announce(&server)?;
            server.run(stop).await
        })?;
    }
    database.shut_down()
}

/// Prints the memory budget, unless it was set explicitly.
fn announce_memory(config: &Config) -> Result<()> {
    if config.memory.origin != BudgetOrigin::Settings {
        writeln!(std::io::stdout(), "bennu: memory {}", config.memory)?;
    }
    Ok(())
}

/// Prints that the server accepts clients.
fn announce(server: &Server) -> Result<()> {
    let mut out = std::io::stdout();
    writeln!(out, "bennu: ready on {}", server.local_addr())?;
    out.flush()?;
    Ok(())
}

fn run_sql(
    (data, config): (Option<PathBuf>, Option<PathBuf>),
    name: &str,
    (command, file): (Option<String>, Option<PathBuf>),
) -> Result<()> {
    let text = match (command, file) {
        (Some(text), _) => Some(text),
        (None, Some(path)) => {
            Some(read_text(&path).map_err(|source| Error::File { path, source })?)
        }
        (None, None) => None,
    };
    let database = open(&read_config(ConfigSource { data, ..ConfigSource::default() }, config)?)?;
    let mut session = database.connect(name, DEFAULT_USER)?;
    session.apply_stored_settings();
    let mut out = std::io::stdout().lock();
    let outcome = match text {
        Some(text) => shell::run(&mut session, &text, &mut out),
        None => {
            let is_terminal = std::io::stdin().is_terminal();
            let (mut input, mut errors) = (std::io::stdin().lock(), std::io::stderr());
            let mut streams = shell::Streams {
                input: &mut input,
                output: &mut out,
                errors: &mut errors,
                is_terminal,
            };
            shell::interact(&mut session, &mut streams)
        }
    };
    drop(session);
    database.shut_down()?;
    outcome
}
