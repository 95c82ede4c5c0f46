//! The server: wire protocol, COPY, the demo and the command line.
//!
//! Statements are passed to [`sql`], which has sessions and transactions. Embedding programs
//! start from [`database::Database`].
//!
//! Modules, bottom up; each uses only those above it.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the system directly"))]
#![forbid(unsafe_code)]

#[macro_use(bail, err)]
extern crate types;

pub mod error;
mod secret_file;
pub mod machine_memory;
pub mod authentication_rules;
pub mod config;
pub mod command_line;
pub mod database;
mod vector_text;
pub mod copy;
pub mod result_table;
pub mod statement;
pub mod shell;
pub mod demo;
pub mod job;
mod pgwire;
pub mod server;

pub use database::Database;
pub use error::{Error, Result};
