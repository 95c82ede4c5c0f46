//! Startup of a connection: encryption, the startup packet, authentication, the session.
//!
//! The negotiation is bennu's own, so that plaintext of a client, or of an attacker in between,
//! cannot be taken for data under TLS (CVE-2021-23214): any data between an SSLRequest and its
//! answer ends the connection.

use std::collections::BTreeMap;

use bytes::BytesMut;
use pgwire::messages::startup::{BackendKeyData, NegotiateProtocolVersion, SecretKey, Startup};
use sql::Error;
use sql::ast::RoleAttribute;
use sql::error::sqlstate;
use sql::session::Session;

use crate::authentication_rules::LoginAttempt;
use crate::config::RESERVED_CONNECTIONS;
use crate::database::DEFAULT_DATABASE;
use crate::pgwire::cancel::Registration;
use crate::pgwire::client_log::Client;
use crate::pgwire::failure::{Failure, Result};
use crate::pgwire::frame;
use crate::pgwire::login_throttle::StartupSlot;
use crate::pgwire::service::Service;
use crate::pgwire::start_channel::StartChannel;

const SSL_REQUEST: i32 = 80_877_103;
const GSS_REQUEST: i32 = 80_877_104;
const CANCEL_REQUEST: i32 = 80_877_102;
/// The supported protocol, 3.0.
const PROTOCOL: i32 = 3 << 16;

/// Its message.
pub(super) const TOO_MANY_CLIENTS: &str = "sorry, too many clients already";
/// Its message while only connections for the owner of the database are left.
const RESERVED: &str =
    "remaining connection slots are reserved for non-replication superuser connections";

/// A session whose client has logged in.
pub(crate) struct StartedSession {
    /// The session.
    pub(crate) session: Session,
    /// Registration for cancel requests.
    pub(crate) registration: Registration,
}

/// Starts a connection up to its first ReadyForQuery, which is not sent yet. Returns `None` for a
/// cancel request and for a client that has disconnected.
pub(crate) async fn start(
    channel: &mut StartChannel,
    service: &Service,
    (client, slot): (&mut Client, &StartupSlot),
) -> Result<Option<StartedSession>> {
    let Some(packet) = prologue(channel, service).await? else { return Ok(None) };
    let startup = decode(channel, packet)?;
    let parameters = startup.parameters;
    let user = match parameters.get("user") {
        Some(user) if !user.is_empty() => user.clone(),
        _ => {
            let message = "no PostgreSQL user name specified in startup packet";
            return Err(Failure::fatal("28000", message));
        }
    };
    client.user.clone_from(&user);
    let database = parameters.get("database").filter(|name| !name.is_empty());
    client.database.clone_from(database.unwrap_or(&user));
    if service.tls_required && !channel.is_encrypted() {
        let error = err!(INVALID_AUTHORIZATION_SPECIFICATION: "connection requires TLS"; hint "Connect with sslmode=require.");
        return Err(Failure::Fatal(Box::new(error)));
    }
    let engine = service.database.engine();
    // The user's name is an alias of the default database, unless a database has that name,
    // because clients use it by default.
    let is_alias = client.database == user && !service.database.has_database(&user);
    let database = if is_alias { DEFAULT_DATABASE } else { client.database.as_str() }.to_owned();
    let (address, is_encrypted) = (client.address.ip().to_canonical(), channel.is_encrypted());
    let attempt = LoginAttempt { address, is_encrypted, database: &database, user: &user };
    let role = service.authentication.authenticate(channel, (attempt, engine), slot).await?;
    check_room(service, role.has(RoleAttribute::Superuser))?;
    let mut session = connect(service, database, &role.name).await?;
    session.check_connection_limit().map_err(|error| Failure::Fatal(Box::new(error)))?;
    for (name, value) in service.log.settings() {
        session.set_of_server(name, value);
    }
    session.set_of_server("max_connections", &service.connections_max.to_string());
    session.apply_stored_settings();
    apply(&mut session, &parameters).map_err(|error| Failure::Fatal(Box::new(error)))?;
    let process_id = session.process_id();
    client.process_id = process_id;
    let application = parameters.get("application_name").map_or("", String::as_str);
    client.authorized(&service.log, application, channel.is_encrypted());
    let registration =
        service.cancels.register(process_id, session.cancel_handle(), channel.socket()?);
    channel.output().encoding = session.client_encoding();
    for notice in session.take_notices() {
        channel.output().put_notice(&notice);
    }
    for (name, value) in session.take_changed_reported() {
        channel.output().put_parameter_status(name, &value);
    }
    let secret = SecretKey::I32(registration.secret);
    channel.output().put(&BackendKeyData::new(process_id, secret));
    Ok(Some(StartedSession { session, registration }))
}

/// Opens a session on the database of this name, outside of the event loop: the database may have
/// to be opened, or a statement has claimed it.
async fn connect(service: &Service, name: String, role: &str) -> Result<Session> {
    let (database, role) = (service.database.clone(), role.to_owned());
    let opened = tokio::task::spawn_blocking(move || database.connect(&name, &role)).await;
    let opened =
        opened.map_err(|error| Failure::fatal(sqlstate::INTERNAL_ERROR, error.to_string()));
    opened?.map_err(|error| Failure::Fatal(Box::new(error)))
}

/// Returns an error if the maximum number of sessions is reached. The last few are reserved for
/// superusers, who can terminate others.
fn check_room(service: &Service, is_superuser: bool) -> Result<()> {
    let free = service.connections_max.saturating_sub(service.cancels.session_count());
    let message = match free {
        0 => TOO_MANY_CLIENTS,
        1..=RESERVED_CONNECTIONS if !is_superuser => RESERVED,
        _ => return Ok(()),
    };
    Err(Failure::fatal(sqlstate::TOO_MANY_CONNECTIONS, message))
}

/// Answers requests for encryption and cancellation; returns the startup packet.
async fn prologue(channel: &mut StartChannel, service: &Service) -> Result<Option<BytesMut>> {
    let (mut ssl_asked, mut gss_asked) = (false, false);
    loop {
        let packet = loop {
            let taken = frame::take_startup(channel.input()).unwrap_or_else(|error| {
                // As in PostgreSQL, clients of unknown protocols get no answer.
                tracing::debug!(error = error.0, "terminating connection");
                Some(BytesMut::new())
            });
            match taken {
                Some(packet) if packet.is_empty() => return Ok(None),
                Some(packet) => break packet,
                None if channel.read().await? => {}
                None => return Ok(None),
            }
        };
        let code = word(&packet, 4);
        let asked = match code {
            SSL_REQUEST => &mut ssl_asked,
            GSS_REQUEST => &mut gss_asked,
            CANCEL_REQUEST => {
                if packet.len() == 16 {
                    service.cancels.cancel(word(&packet, 8), word(&packet, 12));
                }
                return Ok(None);
            }
            _ => return Ok(Some(packet)),
        };
        if packet.len() != 8 || channel.is_encrypted() || std::mem::replace(asked, true) {
            return Err(Failure::fatal("08P01", "unexpected request for encryption"));
        }
        if !channel.input().is_empty() {
            tracing::warn!(
                "received unencrypted data after encryption request; closing connection"
            );
            return Ok(None);
        }
        let acceptor = service.tls.as_ref().filter(|_| code == SSL_REQUEST);
        channel.output().bytes.push(if acceptor.is_some() { b'S' } else { b'N' });
        channel.flush().await?;
        if let Some(acceptor) = acceptor {
            channel.encrypt(acceptor).await?;
        }
    }
}

fn word(packet: &[u8], at: usize) -> i32 {
    packet[at..].first_chunk().map_or(0, |bytes| i32::from_be_bytes(*bytes))
}

/// Decodes the startup packet and negotiates the protocol version.
fn decode(channel: &mut StartChannel, packet: BytesMut) -> Result<Startup> {
    let version = word(&packet, 4);
    let (major, minor) = (version >> 16, version & 0xffff);
    if major != PROTOCOL >> 16 {
        return Err(Failure::fatal(
            sqlstate::FEATURE_NOT_SUPPORTED,
            format!("unsupported frontend protocol {major}.{minor}: server supports 3.0 to 3.0"),
        ));
    }
    let startup = frame::decode_startup(packet)?;
    let options: Vec<String> =
        startup.parameters.keys().filter(|name| name.starts_with("_pq_.")).cloned().collect();
    if version != PROTOCOL || !options.is_empty() {
        channel.output().put(&NegotiateProtocolVersion::new(PROTOCOL, options));
    }
    Ok(startup)
}

/// Applies the parameters of the startup packet to the session.
fn apply(session: &mut Session, parameters: &BTreeMap<String, String>) -> sql::Result<()> {
    for (name, value) in parameters {
        match name.as_str() {
            "user" | "database" => {}
            "options" => {
                for (name, value) in settings(value)? {
                    session.set(&name, &value)?;
                }
            }
            "replication" => {
                if !["false", "off", "no", "0"].contains(&value.as_str()) {
                    return Err(Error::not_supported(
                        "replication",
                        "Connect without the parameter \"replication\".",
                    ));
                }
            }
            name if name.starts_with("_pq_.") => {}
            name => session.set(name, value)?,
        }
    }
    Ok(())
}

/// Parses the parameter `options`: `-c name=value`, `-cname=value`, `--name=value`, with
/// backslash-escaped blanks.
fn settings(options: &str) -> sql::Result<Vec<(String, String)>> {
    let invalid = |word: &str| {
        err!(SYNTAX_ERROR: "invalid command-line argument for server process: {word}";
            hint "Use -c name=value or --name=value.")
    };
    let mut settings = Vec::new();
    let mut words = words(options).into_iter();
    while let Some(word) = words.next() {
        let setting = match (word.strip_prefix("--"), word.strip_prefix("-c")) {
            (Some(long), _) => long.to_owned(),
            (_, Some("")) => words.next().ok_or_else(|| invalid(&word))?,
            (_, Some(short)) => short.to_owned(),
            _ => return Err(invalid(&word)),
        };
        let (name, value) = setting.split_once('=').ok_or_else(|| invalid(&setting))?;
        settings.push((name.replace('-', "_"), value.to_owned()));
    }
    Ok(settings)
}

fn words(text: &str) -> Vec<String> {
    let mut words = Vec::new();
    let mut word: Option<String> = None;
    let mut characters = text.chars();
    while let Some(character) = characters.next() {
        if character.is_ascii_whitespace() {
            words.extend(word.take());
            continue;
        }
        let meant = if character == '\\' { characters.next() } else { Some(character) };
        word.get_or_insert_default().extend(meant);
    }
    words.extend(word);
    words
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn startup_options_are_parsed_as_settings() {
        let read = |text: &str| settings(text).unwrap();
        let pair = |name: &str, value: &str| (name.to_owned(), value.to_owned());
        assert_eq!(
            read(" -c statement_timeout=5s --lock-timeout=1  -capplication_name=a\\ b\\\\c "),
            [
                pair("statement_timeout", "5s"),
                pair("lock_timeout", "1"),
                pair("application_name", "a b\\c")
            ]
        );
        assert!(read("").is_empty());
        for bad in ["-c", "-x", "-c name", "name=value"] {
            assert_eq!(settings(bad).unwrap_err().sqlstate, "42601", "{bad}");
        }
    }
}
