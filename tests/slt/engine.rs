//! Engines of the scripts: simple queries through a driver, and the extended protocol with text
//! results.

use std::fmt;
use std::net::SocketAddr;

use async_trait::async_trait;
use sqllogictest::{AsyncDB, DBOutput, DefaultColumnType};
use tokio_postgres::{NoTls, SimpleQueryMessage};

use crate::raw::{Frames, Message, Raw};

/// An error in script format: code and message, then DETAIL, HINT and CONTEXT.
#[derive(Debug)]
pub(crate) struct Failure {
    text: String,
    sqlstate: String,
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Failure {}

impl Failure {
    fn of_message(error: &Message) -> Failure {
        let field = |code| error.field(code);
        let sqlstate = field(b'C').unwrap_or_default();
        let mut text = format!("ERROR {sqlstate}: {}", field(b'M').unwrap_or_default());
        for (code, label) in [(b'D', "DETAIL"), (b'H', "HINT")] {
            if let Some(value) = field(code) {
                text.push_str(&format!("\n{label}: {value}"));
            }
        }
        Failure { text, sqlstate }
    }

    fn of_driver(error: &tokio_postgres::Error) -> Failure {
        let Some(error) = error.as_db_error() else {
            return Failure { text: format!("driver: {error}"), sqlstate: String::new() };
        };
        let sqlstate = error.code().code().to_owned();
        let mut text = format!("ERROR {sqlstate}: {}", error.message());
        for (value, label) in [(error.detail(), "DETAIL"), (error.hint(), "HINT")] {
            if let Some(value) = value {
                text.push_str(&format!("\n{label}: {value}"));
            }
        }
        Failure { text, sqlstate }
    }
}

/// The server, for `onlyif` and `skipif`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Dialect {
    /// This project.
    Bennu,
    /// The oracle.
    Postgres,
}

/// A session that runs simple queries through tokio-postgres.
pub(crate) struct Simple {
    client: tokio_postgres::Client,
    dialect: Dialect,
}

impl Simple {
    /// Connects; must be called inside of a runtime.
    pub(crate) async fn connect(address: SocketAddr, dialect: Dialect) -> Result<Simple, Failure> {
        let client = client(address, "bennu").await?;
        Ok(Simple { client, dialect })
    }
}

/// Connects to a database; must be called inside of a runtime.
async fn client(address: SocketAddr, database: &str) -> Result<tokio_postgres::Client, Failure> {
    let (host, port) = (address.ip(), address.port());
    let config = format!("host={host} port={port} user=bennu dbname={database}");
    let (client, connection) = tokio_postgres::connect(&config, NoTls)
        .await
        .map_err(|error| Failure::of_driver(&error))?;
    tokio::spawn(connection);
    Ok(client)
}

/// Replaces the database of a PostgreSQL server with an empty one, and removes the roles of
/// earlier scripts.
pub(crate) async fn create_empty_database(address: SocketAddr) -> Result<(), Failure> {
    let client = client(address, "postgres").await?;
    let roles = "SELECT rolname FROM pg_roles WHERE oid >= 16384";
    let mut statements = vec![
        "DROP DATABASE IF EXISTS bennu WITH (FORCE)".to_owned(),
        "CREATE DATABASE bennu".to_owned(),
    ];
    for message in client.simple_query(roles).await.map_err(|error| Failure::of_driver(&error))? {
        if let SimpleQueryMessage::Row(row) = message
            && let Some(role) = row.get(0)
        {
            statements.push(format!("DROP ROLE \"{role}\""));
        }
    }
    for statement in statements {
        client.simple_query(&statement).await.map_err(|error| Failure::of_driver(&error))?;
    }
    Ok(())
}

#[async_trait]
impl AsyncDB for Simple {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let messages =
            self.client.simple_query(sql).await.map_err(|error| Failure::of_driver(&error))?;
        let mut rows = Vec::new();
        let mut types = None;
        let mut count = 0;
        for message in messages {
            match message {
                SimpleQueryMessage::RowDescription(columns) => {
                    types = Some(vec![DefaultColumnType::Any; columns.len()]);
                    rows.clear();
                }
                SimpleQueryMessage::Row(row) => {
                    rows.push((0..row.len()).map(|column| shown(row.get(column))).collect());
                }
                SimpleQueryMessage::CommandComplete(changed) => count = changed,
                _ => {}
            }
        }
        Ok(match types {
            Some(types) => DBOutput::Rows { types, rows },
            None => DBOutput::StatementComplete(count),
        })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        name(self.dialect)
    }

    fn error_sql_state(error: &Failure) -> Option<String> {
        Some(error.sqlstate.clone())
    }
}

/// A session that sends Parse, Bind, Describe, Execute and Sync with text results.
pub(crate) struct Extended {
    raw: Raw,
    dialect: Dialect,
}

impl Extended {
    /// Connects.
    pub(crate) fn connect(address: SocketAddr, dialect: Dialect) -> Extended {
        Extended { raw: Raw::login(address), dialect }
    }

    /// Connects to a bennu server; tables are created with STORAGE = CELL.
    pub(crate) fn connect_with_column_cells(address: SocketAddr) -> Extended {
        let raw = Raw::login_with(address, &[("default_storage", "cell")]);
        Extended { raw, dialect: Dialect::Bennu }
    }
}

#[async_trait]
impl AsyncDB for Extended {
    type Error = Failure;
    type ColumnType = DefaultColumnType;

    async fn run(&mut self, sql: &str) -> Result<DBOutput<DefaultColumnType>, Failure> {
        let batch = Frames::new().parse("", sql).bind("", "", &[]).describe(b'P', "");
        self.raw.send(&batch.execute("", 0).sync().0);
        let messages = self.raw.until_ready();
        if let Some(error) = messages.iter().find(|message| message.kind == b'E') {
            return Err(Failure::of_message(error));
        }
        let columns = messages.iter().find(|message| message.kind == b'T');
        let Some(columns) = columns else {
            let complete = messages.iter().find(|message| message.kind == b'C');
            let tag = complete.map(Message::tag).unwrap_or_default();
            let count = tag.rsplit(' ').next().and_then(|word| word.parse().ok());
            return Ok(DBOutput::StatementComplete(count.unwrap_or(0)));
        };
        let types = columns.columns().into_iter().map(|(_, oid)| letter(oid)).collect();
        let rows = messages.iter().filter(|message| message.kind == b'D');
        let rows =
            rows.map(|row| row.values().iter().map(|value| shown(value.as_deref())).collect());
        Ok(DBOutput::Rows { types, rows: rows.collect() })
    }

    async fn shutdown(&mut self) {}

    fn engine_name(&self) -> &str {
        name(self.dialect)
    }

    fn error_sql_state(error: &Failure) -> Option<String> {
        Some(error.sqlstate.clone())
    }
}

fn name(dialect: Dialect) -> &'static str {
    match dialect {
        Dialect::Bennu => "bennu",
        Dialect::Postgres => "postgres",
    }
}

/// Returns a value in script format.
fn shown(value: Option<&str>) -> String {
    match value {
        None => "NULL".to_owned(),
        Some("") => "(empty)".to_owned(),
        Some(value) => value.to_owned(),
    }
}

/// Returns the type letter: integers, other numbers, all other types.
fn letter(oid: u32) -> DefaultColumnType {
    match oid {
        20 | 21 | 23 => DefaultColumnType::Integer,
        700 | 701 | 1700 => DefaultColumnType::FloatingPoint,
        _ => DefaultColumnType::Text,
    }
}
