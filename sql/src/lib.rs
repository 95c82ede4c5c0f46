//! SQL engine: parser, catalog, binder, planner, executor and sessions over the store.
//!
//! # Life of a statement
//!
//! text → [`parser`] → [`ast`] → [`binder`] → [`logical`] plan → [`planner`] → [`plan`] →
//! [`exec`] → batches, driven by a [`session`].
//!
//! The modules are listed bottom up; each uses only those above it.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the system directly"))]
#![forbid(unsafe_code)]

#[macro_use(bail, err)]
extern crate types;

pub mod ast;
pub mod parser;
pub mod plpgsql;
pub mod error;
pub mod catalog;
pub mod logical;
pub mod binder;
pub mod deparse;
pub mod relation_assembly;
pub mod plan;
pub mod planner;
mod relation_visibility;
pub mod object_ids;
pub mod row_ids;
pub mod sequences;
pub mod spill;
pub mod batch_buffer;
pub mod exec;
pub mod analyze;
pub mod statement_log;
pub mod settings;
pub mod storage_options;
pub mod timer;
pub mod advisory;
pub mod activity;
pub mod rows;
pub mod session_objects;
pub mod table_coprocessors;
pub mod quotas;
pub mod prepared_transactions;
pub mod engine;
pub mod memory_governor;
pub mod ddl;
pub mod open;
pub mod system;
pub mod copy;
pub mod session;

pub use engine::Engine;
pub use error::{Error, Result};
pub use open::EngineOptions;
pub use session::Session;
