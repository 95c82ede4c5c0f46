//! Server configuration from file, environment and flags, in rising precedence.
//!
//! The defaults are safe: the server listens on loopback addresses only. Any other address
//! requires a password, and TLS or the explicit `allow_plaintext`.

use std::collections::BTreeMap;
use std::net::{SocketAddr, ToSocketAddrs};
use std::path::{Path, PathBuf};
use std::time::Duration;

use serde::Deserialize;
use sql::catalog::record::{CoprocessorKind, CoprocessorRecord};
use sql::settings::parse_time;
use sql::table_coprocessors::SERVER_PRIORITY;
use store::env::process::read_text;
use store::options::{AdmissionOptions, CoprocessorLimits, Options};

use crate::authentication_rules::{AuthenticationRule, AuthenticationRules, UserMapEntry};
use crate::error::{Error, Result};
use crate::machine_memory::{BudgetOrigin, MemoryBudget};
use crate::secret_file;

/// Default listen address.
pub const DEFAULT_LISTEN: &str = "127.0.0.1:5433";
/// Default data directory.
pub const DEFAULT_DATA: &str = "./bennu-data";
/// Minimum memory budget of the store.
const MEMORY_BYTES_MIN: u64 = 32 << 20;
/// Default period of auto-analyze.
const ANALYZE_PERIOD: Duration = Duration::from_secs(60);
/// Default period of the normaliser: HBase's.
const NORMALIZER_PERIOD: Duration = Duration::from_secs(300);
/// Default of `max_connections`.
const DEFAULT_CONNECTIONS: usize = 1_000;
/// Maximum of `max_connections`: each connection uses a thread while it is active.
pub(crate) const CONNECTIONS_MAX: usize = 8_000;
/// Connections that are reserved for the owner of the database: PostgreSQL's
/// `superuser_reserved_connections`.
pub(crate) const RESERVED_CONNECTIONS: usize = 3;
/// Number of handlers from which on the number of concurrent statements is not limited.
const HANDLERS_MAX: usize = 100_000;

/// Settings from file, environment or flags; later ones take precedence.
#[derive(Debug, Clone, Default, PartialEq, Deserialize, clap::Args)]
#[serde(deny_unknown_fields)]
pub struct ConfigSource {
    /// Data directory [default: ./bennu-data]
    #[arg(long, value_name = "DIR", env = "BENNU_DATA")]
    pub data: Option<PathBuf>,
    /// Address to listen on for PostgreSQL clients [default: 127.0.0.1:5433]
    #[arg(long, value_name = "ADDR", env = "BENNU_LISTEN")]
    pub listen: Option<String>,
    /// Memory for memstores, block cache and queries: bytes, or with a unit kB, MB, GB, for example
    /// 512MB [default: a quarter of the memory of the machine or container]
    #[arg(long, value_name = "SIZE", env = "BENNU_MEMORY")]
    pub memory: Option<String>,
    /// Execution slots: long statements that execute concurrently [default: number of cores]
    #[arg(long, value_name = "COUNT", env = "BENNU_HANDLERS")]
    pub handlers: Option<usize>,
    /// Maximum number of concurrent connections [default: 1000]
    #[arg(long, value_name = "COUNT", env = "BENNU_MAX_CONNECTIONS")]
    pub max_connections: Option<usize>,
    /// Time limit of a coprocessor call: milliseconds, or with a unit, for example 500ms; 0 for no
    /// limit [default: 5s]
    #[arg(long, value_name = "TIME", env = "BENNU_COPROCESSOR_TIME_LIMIT")]
    pub coprocessor_time_limit: Option<String>,
    /// Consecutive failures after which a coprocessor is suspended [default: 10]
    #[arg(long, value_name = "COUNT", env = "BENNU_COPROCESSOR_FAILURES_MAX")]
    pub coprocessor_failures_max: Option<u32>,
    /// Interval of auto-analyze: milliseconds, or with a unit, for example 5min; 0 to disable it
    /// [default: 1min]
    #[arg(long, value_name = "TIME", env = "BENNU_ANALYZE_PERIOD")]
    pub analyze_period: Option<String>,
    /// Interval of the normaliser of regions: milliseconds, or with a unit, for example 1h; 0 to
    /// disable it [default: 5min]
    #[arg(long, value_name = "TIME", env = "BENNU_NORMALIZER_PERIOD")]
    pub normalizer_period: Option<String>,
    /// Age from which the normaliser merges a region: milliseconds, or with a unit, for example 1h
    /// [default: 3d]
    #[arg(long, value_name = "TIME", env = "BENNU_NORMALIZER_MIN_AGE")]
    pub normalizer_min_age: Option<String>,
    /// TLS certificate chain file (PEM)
    #[arg(long, value_name = "FILE", env = "BENNU_TLS_CERT")]
    pub tls_cert: Option<PathBuf>,
    /// TLS private key file (PEM); must not be accessible to other users
    #[arg(long, value_name = "FILE", env = "BENNU_TLS_KEY")]
    pub tls_key: Option<PathBuf>,
    /// File of the certificates that verify certificates of clients (PEM)
    #[arg(long, value_name = "FILE", env = "BENNU_TLS_CA")]
    pub tls_ca: Option<PathBuf>,
    /// File with the password of clients in its first line; must not be accessible to other users
    #[arg(long, value_name = "FILE", env = "BENNU_PASSWORD_FILE")]
    pub password_file: Option<PathBuf>,
    /// Allow connections without TLS on addresses other than loopback [default: false]
    #[arg(long, env = "BENNU_ALLOW_PLAINTEXT", num_args = 0..=1, default_missing_value = "true")]
    pub allow_plaintext: Option<bool>,
    /// Log client connections [default: false]
    #[arg(long, env = "BENNU_LOG_CONNECTIONS", num_args = 0..=1, default_missing_value = "true")]
    pub log_connections: Option<bool>,
    /// Log the end of each session, with its duration [default: false]
    #[arg(long, env = "BENNU_LOG_DISCONNECTIONS", num_args = 0..=1, default_missing_value = "true")]
    pub log_disconnections: Option<bool>,
    /// Statements to log: none, ddl, mod or all; sessions can SET it [default: none]
    #[arg(long, value_name = "WHICH", env = "BENNU_LOG_STATEMENT")]
    pub log_statement: Option<String>,
    /// Coprocessors on every table: `[[coprocessor]]`, only in the file
    #[arg(skip)]
    #[serde(default)]
    pub coprocessor: Vec<ServerCoprocessor>,
    /// Rules of authentication: `[[authentication]]`, only in the file
    #[arg(skip)]
    #[serde(default)]
    pub authentication: Vec<AuthenticationRule>,
    /// Certificates that stand for users: `[[user_map]]`, only in the file
    #[arg(skip)]
    #[serde(default)]
    pub user_map: Vec<UserMapEntry>,
}

/// A coprocessor on every table.
///
/// ```toml
/// [[coprocessor]]
/// name = "audit"
/// as = "all_changes"         # the name if it is left out
/// priority = 300             # 500 if it is left out
/// with = { table = "audit_log" }
/// ```
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ServerCoprocessor {
    /// Name of the coprocessor.
    pub name: String,
    /// Name of the attachment; the coprocessor's own by default.
    #[serde(rename = "as")]
    pub alias: Option<String>,
    /// Priority in the chains.
    pub priority: Option<i32>,
    /// Arguments of the attachment.
    #[serde(default)]
    pub with: BTreeMap<String, ArgumentValue>,
}

/// The value of an argument.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(untagged)]
pub enum ArgumentValue {
    /// `true`, `false`
    Boolean(bool),
    /// An integer.
    Integer(i64),
    /// Any other value.
    Text(String),
}

/// The checked configuration of a server.
#[derive(Debug, Clone, PartialEq)]
pub struct Config {
    /// Data directory.
    pub data: PathBuf,
    /// Listen address.
    pub listen: SocketAddr,
    /// The store's memory budget.
    pub memory: MemoryBudget,
    /// Limit of concurrently executing statements.
    pub admission: AdmissionOptions,
    /// Maximum number of concurrent connections.
    pub connections_max: usize,
    /// Time limit and failure limit of coprocessors.
    pub coprocessor_limits: CoprocessorLimits,
    /// Period of auto-analyze; `None` if it is disabled.
    pub analyze_period: Option<Duration>,
    /// Period of the normaliser; `None` if it is disabled.
    pub normalizer_period: Option<Duration>,
    /// Age from which the normaliser merges a region.
    pub normalizer_min_age: Duration,
    /// Certificate and key, if TLS is offered.
    pub tls: Option<TlsFiles>,
    /// The password of clients; `None` if clients need none.
    pub password: Option<String>,
    /// Rules of authentication.
    pub authentication: AuthenticationRules,
    /// Clients without TLS are rejected.
    pub tls_required: bool,
    /// Log settings for clients.
    pub log: LogOptions,
    /// Coprocessors on every table.
    pub coprocessors: Vec<CoprocessorRecord>,
}

/// Log settings for clients. Failed logins are always logged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LogOptions {
    /// `log_connections`.
    pub connections: bool,
    /// `log_disconnections`.
    pub disconnections: bool,
    /// The initial value of `log_statement` in each session.
    pub statement: &'static str,
}

impl LogOptions {
    /// Returns the session settings with these values.
    pub(crate) fn settings(&self) -> [(&'static str, &'static str); 3] {
        let word = |on: bool| if on { "on" } else { "off" };
        [
            ("log_connections", word(self.connections)),
            ("log_disconnections", word(self.disconnections)),
            ("log_statement", self.statement),
        ]
    }
}

impl Default for LogOptions {
    fn default() -> LogOptions {
        LogOptions { connections: false, disconnections: false, statement: "none" }
    }
}

/// Files of the server's certificate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TlsFiles {
    /// Certificate chain, PEM.
    pub certificate: PathBuf,
    /// Private key, PEM.
    pub key: PathBuf,
    /// Certificates that verify those of clients, PEM; `None` if clients are asked for none.
    pub authorities: Option<PathBuf>,
}

impl ConfigSource {
    /// Reads a configuration file.
    ///
    /// # Errors
    ///
    /// If it cannot be read or has unknown settings.
    pub fn read(path: &Path) -> Result<ConfigSource> {
        let text =
            read_text(path).map_err(|source| Error::File { path: path.to_owned(), source })?;
        toml::from_str(&text).map_err(|error| {
            let message = error.to_string();
            let message = message.trim_end().replace('\n', " ");
            Error::Usage(format!("bad configuration file \"{}\": {message}", path.display()))
        })
    }

    /// Returns these settings, completed by those of lower precedence.
    #[must_use]
    pub fn with_defaults_from(self, lower: ConfigSource) -> ConfigSource {
        ConfigSource {
            data: self.data.or(lower.data),
            listen: self.listen.or(lower.listen),
            memory: self.memory.or(lower.memory),
            handlers: self.handlers.or(lower.handlers),
            max_connections: self.max_connections.or(lower.max_connections),
            coprocessor_time_limit: self.coprocessor_time_limit.or(lower.coprocessor_time_limit),
            coprocessor_failures_max: self
                .coprocessor_failures_max
                .or(lower.coprocessor_failures_max),
            analyze_period: self.analyze_period.or(lower.analyze_period),
            normalizer_period: self.normalizer_period.or(lower.normalizer_period),
            normalizer_min_age: self.normalizer_min_age.or(lower.normalizer_min_age),
            tls_cert: self.tls_cert.or(lower.tls_cert),
            tls_key: self.tls_key.or(lower.tls_key),
            tls_ca: self.tls_ca.or(lower.tls_ca),
            password_file: self.password_file.or(lower.password_file),
            allow_plaintext: self.allow_plaintext.or(lower.allow_plaintext),
            log_connections: self.log_connections.or(lower.log_connections),
            log_disconnections: self.log_disconnections.or(lower.log_disconnections),
            log_statement: self.log_statement.or(lower.log_statement),
            coprocessor: first_filled(self.coprocessor, lower.coprocessor),
            authentication: first_filled(self.authentication, lower.authentication),
            user_map: first_filled(self.user_map, lower.user_map),
        }
    }

    fn admission(&self) -> Result<AdmissionOptions> {
        let handlers = self.handlers.unwrap_or(AdmissionOptions::default().handlers);
        if !(1..=HANDLERS_MAX).contains(&handlers) {
            let message = format!("handlers is {handlers}; it must be from 1 to {HANDLERS_MAX}");
            return Err(Error::Usage(message));
        }
        Ok(AdmissionOptions { handlers })
    }

    fn coprocessor_limits(&self) -> Result<CoprocessorLimits> {
        let default = CoprocessorLimits::default();
        let time = match &self.coprocessor_time_limit {
            None => default.time,
            Some(text) => time_limit("coprocessor_time_limit", text)?,
        };
        let failures_max = self.coprocessor_failures_max.unwrap_or(default.failures_max);
        if failures_max == 0 {
            let message = "coprocessor_failures_max is 0; it must be at least 1";
            return Err(Error::Usage(message.to_owned()));
        }
        Ok(CoprocessorLimits { time, failures_max })
    }

    fn log(&self) -> Result<LogOptions> {
        const STATEMENTS: [&str; 4] = ["none", "ddl", "mod", "all"];
        let statement = self.log_statement.as_deref().unwrap_or("none");
        let known = STATEMENTS.into_iter().find(|known| known.eq_ignore_ascii_case(statement));
        let unknown =
            || Error::Usage(format!("bad log_statement \"{statement}\": none, ddl, mod or all"));
        Ok(LogOptions {
            connections: self.log_connections.unwrap_or(false),
            disconnections: self.log_disconnections.unwrap_or(false),
            statement: known.ok_or_else(unknown)?,
        })
    }

    fn tls(&self) -> Result<Option<TlsFiles>> {
        let files = (self.tls_cert.clone(), self.tls_key.clone(), self.tls_ca.clone());
        match files {
            (Some(certificate), Some(key), authorities) => {
                Ok(Some(TlsFiles { certificate, key, authorities }))
            }
            (None, None, None) => Ok(None),
            (None, None, Some(_)) => {
                Err(Error::Usage("--tls-ca needs --tls-cert and --tls-key".to_owned()))
            }
            _ => {
                Err(Error::Usage("--tls-cert and --tls-key must be specified together".to_owned()))
            }
        }
    }

    /// Checks the settings and fills in the defaults.
    ///
    /// # Errors
    ///
    /// If a value is malformed, or the server would be open to the network unprotected.
    pub fn check(self) -> Result<Config> {
        let listen = self.listen.as_deref().unwrap_or(DEFAULT_LISTEN);
        let listen = resolve(listen)?;
        let memory = match &self.memory {
            Some(text) => MemoryBudget { bytes: parse_size(text)?, origin: BudgetOrigin::Settings },
            None => MemoryBudget::of_machine(),
        };
        let admission = self.admission()?;
        let connections_max = self.max_connections.unwrap_or(DEFAULT_CONNECTIONS);
        if !(RESERVED_CONNECTIONS + 1..=CONNECTIONS_MAX).contains(&connections_max) {
            return Err(Error::Usage(format!(
                "max_connections is {connections_max}; it must be from {} to {CONNECTIONS_MAX}",
                RESERVED_CONNECTIONS + 1,
            )));
        }
        let log = self.log()?;
        let coprocessor_limits = self.coprocessor_limits()?;
        let analyze_period = match &self.analyze_period {
            None => Some(ANALYZE_PERIOD),
            Some(text) => time_limit("analyze_period", text)?,
        };
        let normalizer_period = match &self.normalizer_period {
            None => Some(NORMALIZER_PERIOD),
            Some(text) => time_limit("normalizer_period", text)?,
        };
        let normalizer_min_age = match &self.normalizer_min_age {
            None => Options::default().normalizer_min_age,
            Some(text) => time_limit("normalizer_min_age", text)?.unwrap_or_default(),
        };
        let tls = self.tls()?;
        let authentication = AuthenticationRules::checked(
            self.authentication,
            self.user_map,
            (tls.as_ref().is_some_and(|tls| tls.authorities.is_some()), listen.ip().is_loopback()),
        )?;
        let password = self.password_file.as_deref().map(read_password).transpose()?;
        let allow_plaintext = self.allow_plaintext.unwrap_or(false);
        if !listen.ip().is_loopback() {
            if tls.is_none() && !allow_plaintext {
                return Err(Error::Usage(format!(
                    "{listen} is not a loopback address: specify --tls-cert and --tls-key, or \
                     --allow-plaintext"
                )));
            }
            if password.is_none() && authentication.is_empty() {
                return Err(Error::Usage(format!(
                    "{listen} is not a loopback address: specify --password-file, or \
                     [[authentication]] in the configuration file"
                )));
            }
        }
        Ok(Config {
            data: self.data.unwrap_or_else(|| PathBuf::from(DEFAULT_DATA)),
            listen,
            memory,
            admission,
            connections_max,
            coprocessor_limits,
            analyze_period,
            normalizer_period,
            normalizer_min_age,
            tls_required: tls.is_some() && !listen.ip().is_loopback() && !allow_plaintext,
            tls,
            password,
            authentication,
            log,
            coprocessors: self.coprocessor.into_iter().map(record).collect::<Result<_>>()?,
        })
    }
}

/// Returns a list, or the one of lower precedence if it is empty.
fn first_filled<T>(list: Vec<T>, lower: Vec<T>) -> Vec<T> {
    if list.is_empty() { lower } else { list }
}

fn record(written: ServerCoprocessor) -> Result<CoprocessorRecord> {
    let priority = written.priority.unwrap_or(SERVER_PRIORITY);
    if priority < 0 {
        let message = format!("coprocessor \"{}\" has a priority below 0", written.name);
        return Err(Error::Usage(message));
    }
    let arguments = written.with.into_iter().map(|(name, value)| {
        let value = match value {
            ArgumentValue::Boolean(value) => value.to_string(),
            ArgumentValue::Integer(value) => value.to_string(),
            ArgumentValue::Text(value) => value,
        };
        (name, value)
    });
    Ok(CoprocessorRecord {
        name: written.alias.unwrap_or_else(|| written.name.clone()),
        coprocessor: written.name,
        kind: CoprocessorKind::Observer,
        priority,
        arguments: arguments.collect(),
        unknown: Default::default(),
    })
}

fn resolve(address: &str) -> Result<SocketAddr> {
    let bad = |why: &str| {
        Error::Usage(format!("bad address \"{address}\": {why}; an example is {DEFAULT_LISTEN}"))
    };
    address
        .to_socket_addrs()
        .map_err(|error| bad(&error.to_string()))?
        .next()
        .ok_or_else(|| bad("it does not resolve to a host"))
}

fn read_password(path: &Path) -> Result<String> {
    let bytes = secret_file::read(path, "password file")?;
    let text = String::from_utf8(bytes).map_err(|_| {
        Error::Usage(format!("password file \"{}\" is not UTF-8 text", path.display()))
    })?;
    match text.lines().next() {
        Some(line) if !line.trim().is_empty() => Ok(line.to_owned()),
        _ => Err(Error::Usage(format!("password file \"{}\" is empty", path.display()))),
    }
}

/// Reads a size such as `512MB` or `2GiB`; units are powers of 1,024.
fn parse_size(text: &str) -> Result<u64> {
    let text = text.trim();
    let split = text.find(|c: char| !c.is_ascii_digit()).unwrap_or(text.len());
    let shift = match text[split..].trim().to_ascii_lowercase().as_str() {
        "" | "b" => Some(0),
        "k" | "kb" | "kib" => Some(10),
        "m" | "mb" | "mib" => Some(20),
        "g" | "gb" | "gib" => Some(30),
        "t" | "tb" | "tib" => Some(40),
        _ => None,
    };
    let number = text[..split].parse::<u64>().ok();
    let bytes = number.zip(shift).and_then(|(number, shift)| number.checked_mul(1 << shift));
    match bytes {
        None => Err(Error::Usage(format!("bad size \"{text}\"; an example is 512MB"))),
        Some(bytes) if bytes < MEMORY_BYTES_MIN => {
            Err(Error::Usage(format!("memory of {text} is too small; the minimum is 32MB")))
        }
        Some(bytes) => Ok(bytes),
    }
}

/// Parses a duration; zero means no limit.
fn time_limit(name: &str, text: &str) -> Result<Option<Duration>> {
    let malformed = || Error::Usage(format!("bad {name} \"{text}\"; an example is 500ms"));
    let time = parse_time(text).ok_or_else(malformed)?;
    Ok((!time.is_zero()).then_some(time))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn listening(address: &str) -> ConfigSource {
        ConfigSource { listen: Some(address.to_owned()), ..ConfigSource::default() }
    }

    #[test]
    fn flags_override_config_file() {
        let file: ConfigSource = toml::from_str("listen = '127.0.0.1:1'\nmemory = '64MB'").unwrap();
        let config = listening("127.0.0.1:2").with_defaults_from(file).check().unwrap();
        assert_eq!(config.listen.port(), 2);
        assert_eq!(config.memory.bytes, 64 << 20);
    }

    #[test]
    fn public_listener_requires_tls_and_password() {
        let message = |source: ConfigSource| source.check().unwrap_err().to_string();
        assert!(message(listening("0.0.0.0:5433")).contains("--tls-cert"));
        let plain = ConfigSource { allow_plaintext: Some(true), ..listening("0.0.0.0:5433") };
        assert!(message(plain).contains("--password-file"));
        assert!(listening("127.0.0.1:5433").check().is_ok());
    }

    #[test]
    fn blank_or_readable_password_file_is_rejected() {
        use std::os::unix::fs::PermissionsExt;

        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("password");
        let read = |text: &str, mode: u32| {
            std::fs::write(&path, text).unwrap();
            std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).unwrap();
            let source =
                ConfigSource { password_file: Some(path.clone()), ..ConfigSource::default() };
            source.check().map(|config| config.password.unwrap()).map_err(|error| error.to_string())
        };
        assert_eq!(read("secret\nmore", 0o600).unwrap(), "secret");
        assert_eq!(read(" s ", 0o400).unwrap(), " s ");
        for blank in ["", "\n", "  \t\n", "\u{a0}\n", "\nsecret"] {
            assert!(read(blank, 0o600).unwrap_err().contains("is empty"), "{blank:?}");
        }
        for mode in [0o644, 0o640, 0o660, 0o602, 0o610] {
            let error = read("secret", mode).unwrap_err();
            assert!(error.contains("has group or world access"), "{mode:o}: {error}");
        }
    }

    #[test]
    fn log_options_are_validated() {
        let log =
            |text: &str| toml::from_str::<ConfigSource>(text).unwrap().check().map(|one| one.log);
        assert_eq!(log("").unwrap(), LogOptions::default());
        let all = "log_connections = true\nlog_disconnections = true\nlog_statement = 'DDL'";
        let expected = LogOptions { connections: true, disconnections: true, statement: "ddl" };
        assert_eq!(log(all).unwrap(), expected);
        assert!(log("log_statement = 'some'").is_err());
    }

    #[test]
    fn server_coprocessors_are_read_from_config_file() {
        let file: ConfigSource = toml::from_str(
            "[[coprocessor]]\nname = 'audit'\nwith = { table = 'log', deep = true, n = 3 }\n\
             [[coprocessor]]\nname = 'audit'\nas = 'again'\npriority = 7",
        )
        .unwrap();
        let config = ConfigSource::default().with_defaults_from(file).check().unwrap();
        let [first, second] = &config.coprocessors[..] else { panic!("{config:?}") };
        assert_eq!((first.name.as_str(), first.priority), ("audit", 500));
        let arguments = [("deep", "true"), ("n", "3"), ("table", "log")];
        assert_eq!(first.arguments, arguments.map(|(name, value)| (name.into(), value.into())));
        assert_eq!((second.name.as_str(), second.coprocessor.as_str()), ("again", "audit"));
        assert_eq!(second.priority, 7);
        let below =
            toml::from_str::<ConfigSource>("[[coprocessor]]\nname = 'audit'\npriority = -1");
        assert!(below.unwrap().check().is_err());
        assert!(toml::from_str::<ConfigSource>("[[coprocessor]]\nnama = 'audit'").is_err());
    }

    #[test]
    fn invalid_sizes_and_unknown_keys_are_rejected() {
        assert_eq!(parse_size("2GiB").unwrap(), 2 << 30);
        assert!(parse_size("5MB").is_err());
        assert!(parse_size("many").is_err());
        assert!(toml::from_str::<ConfigSource>("lisen = 'x'").is_err());
    }

    #[test]
    fn coprocessor_limits_are_validated() {
        let source = |text: &str| toml::from_str::<ConfigSource>(text).unwrap().check();
        let limits = |text: &str| source(text).unwrap().coprocessor_limits;
        assert_eq!(limits(""), CoprocessorLimits::default());
        let both = "coprocessor_time_limit = '1500ms'\ncoprocessor_failures_max = 3";
        let time = Some(Duration::from_millis(1_500));
        assert_eq!(limits(both), CoprocessorLimits { time, failures_max: 3 });
        assert_eq!(limits("coprocessor_time_limit = '0'").time, None);
        for bad in ["coprocessor_time_limit = 'soon'", "coprocessor_failures_max = 0"] {
            assert!(source(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn analyze_period_is_configurable_or_disabled() {
        let period = |text: &str| {
            let source = toml::from_str::<ConfigSource>(text).unwrap();
            source.check().map(|config| config.analyze_period)
        };
        assert_eq!(period("").unwrap(), Some(ANALYZE_PERIOD));
        assert_eq!(period("analyze_period = '5min'").unwrap(), Some(Duration::from_secs(300)));
        assert_eq!(period("analyze_period = '0'").unwrap(), None);
        assert!(period("analyze_period = 'often'").is_err());
    }

    #[test]
    fn normalizer_period_and_age_are_configurable() {
        let times = |text: &str| {
            let source = toml::from_str::<ConfigSource>(text).unwrap();
            source.check().map(|config| (config.normalizer_period, config.normalizer_min_age))
        };
        let (minute, day) = (Duration::from_secs(60), Duration::from_secs(24 * 3600));
        assert_eq!(times("").unwrap(), (Some(5 * minute), 3 * day));
        let both = "normalizer_period = '1min'\nnormalizer_min_age = '0'";
        assert_eq!(times(both).unwrap(), (Some(minute), Duration::ZERO));
        assert_eq!(times("normalizer_period = '0'").unwrap(), (None, 3 * day));
        for bad in ["normalizer_period = 'often'", "normalizer_min_age = 'old'"] {
            assert!(times(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn handler_and_connection_limits_are_validated() {
        let source = |text: &str| toml::from_str::<ConfigSource>(text).unwrap().check();
        let admission = source("handlers = 30").unwrap().admission;
        assert_eq!(admission, AdmissionOptions { handlers: 30 });
        assert_eq!(source("max_connections = 5000").unwrap().connections_max, 5_000);
        let bad = ["handlers = 0", "handlers = 100001", "max_connections = 3"];
        for bad in bad.into_iter().chain(["max_connections = 8001"]) {
            assert!(source(bad).is_err(), "{bad}");
        }
    }
}
