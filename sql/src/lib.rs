//! SQL engine: parser, catalog, binder, planner, executor and sessions over the store.
//!
//! ```text
//!   text -> parser -> ast -> binder -> logical -> planner -> plan -> exec -> batches
//!           `--------------------- driven by a session ---------------------'
//! ```
//!
//! # Life of an INSERT
//!
//! `INSERT INTO flights VALUES (…)` into a salted table with an index:
//!
//! 1. The server decodes the message and passes the text to [`Session::parse`]: the tokens are
//!    checked against the limits of size and depth, and [`parser::parse_statements`] returns a
//!    [`Statement`](ast::Statement).
//! 2. [`Session::cached`] looks for a cached plan of the text. Without one, [`Session::prepare`]
//!    calls [`binder::bind`], which resolves names in a [`Catalog`](catalog::Catalog) snapshot,
//!    types, casts and defaults; the result is an [`Insert`](logical::Insert).
//! 3. [`planner::plan`] makes an [`InsertPlan`](plan::InsertPlan) of it.
//! 4. [`Session::execute`] begins a transaction, unless one is open, and calls [`exec::modify()`],
//!    which evaluates the rows and passes them on in batches.
//! 5. [`RowLayout`](types::rowcode::RowLayout) encodes each row: salt byte and key columns as the
//!    row key, the other columns as packed rows.
//! 6. [`Transaction::mutate`](store::Transaction::mutate) locks the keys, checks that they are
//!    absent, and calls the observers of the table by priority:
//!    [`constraint`](coprocessors::constraint) rejects NULLs and failed CHECKs,
//!    [`index`](coprocessors::index) adds the index entries to the same transaction. The cells
//!    are [staged](store::staged); [`exec::constraint_queue`] checks foreign keys at the end.
//! 7. [`Session::end_implicit`] commits at the end of the message.
//!    [`Transaction::commit`](store::Transaction::commit) takes sequence and timestamp, appends
//!    one record to the [log](store::wal), applies the cells to the
//!    [memstores](store::memstore) of their regions, and releases the row locks.
//! 8. The server waits for the [`DurableTicket`](store::wal::DurableTicket): one of the waiting
//!    threads syncs the log for all. Then it sends CommandComplete.
//! 9. Later a flush writes the memstore to a [store file](store::file), and a
//!    [compaction](store::compaction) merges files. Neither changes an answer.
//!
//! # Life of a SELECT
//!
//! `SELECT carrier, count(*) FROM flights WHERE dest = 'IAH' GROUP BY carrier`:
//!
//! 1. It is parsed and bound as above, to an `Aggregate` over a `Filter` over a `Scan` of
//!    [`Logical`](logical::Logical).
//! 2. The [`planner`] moves the condition to the scan, chooses the
//!    [access path](plan::scan::AccessPath) by cost, and moves the aggregate into the regions:
//!    [`RegionAggregateNode`](plan::RegionAggregateNode). EXPLAIN shows the result.
//! 3. [`Session::execute`] takes a snapshot: the newest durable sequence. [`exec::open`] creates
//!    the operators of the plan.
//! 4. [`Transaction::call_endpoint`](store::Transaction::call_endpoint) calls the
//!    [`AggregateEndpoint`](coprocessors::aggregate::AggregateEndpoint) in each region of the
//!    range, page by page; [region threads](store::read_ahead) run the calls in parallel.
//! 5. In a region memstores, store files and staged cells are [merged](store::scan::merge) in
//!    cell order, and one rule, [`retention`](store::scan::retention), decides what is visible.
//!    [`rows`](coprocessors::rows) decodes the requested columns straight into
//!    [vectors](types::vector); filter and aggregate are [vectorised](types::expr).
//! 6. The session merges the partial results and returns batches:
//!    [`ResultRows::next_batch`](rows::ResultRows::next_batch).
//! 7. The server encodes them as DataRow messages; a client that does not read stops the scan.
//!
//! A SELECT of one row by its key goes another way: [`exec::point()`] does one
//! [get](store::Transaction::get), without batches and operators.
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
pub mod password;
pub mod catalog;
pub mod logical;
pub mod binder;
pub mod deparse;
pub mod relation_assembly;
mod maintained_views;
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
mod audit;
pub mod settings;
pub mod storage_options;
pub mod timer;
pub mod advisory;
pub mod notifications;
pub mod activity;
pub mod rows;
pub mod session_objects;
pub mod table_coprocessors;
pub mod quotas;
pub mod prepared_transactions;
pub mod index_builds;
mod catalog_reader;
pub mod database_slots;

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
