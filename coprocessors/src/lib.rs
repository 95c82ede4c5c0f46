//! Coprocessors: code that runs inside regions, next to the data. Secondary indexes, constraints,
//! aggregates, top-n, and the coprocessors that ATTACH COPROCESSOR adds to a table
//! ([`registry`]).
//!
//! The crate uses only the public traits of [`store::observer`], and types, layouts and bound
//! expressions; it does not depend on SQL text, the catalog or sessions.
//!
//! Modules, bottom up; each uses only those above it.

#![cfg_attr(test, allow(clippy::disallowed_methods, reason = "tests use the system directly"))]
#![forbid(unsafe_code)]

#[macro_use(bail, err)]
extern crate types;

#[cfg(test)]
mod fixture;

pub mod violation;
pub mod row;
pub mod columns;
pub mod rows;
pub mod change;
pub mod filter;
pub mod constraint;
pub mod index;
pub mod aggregate;
pub mod top_n;
pub mod maintained_view;
pub mod registry;
pub mod json;
pub mod audit;
pub mod summary;
pub mod ttl_by_column;
pub mod builtin;

#[cfg(test)]
mod aggregate_model;
#[cfg(test)]
mod top_n_model;
#[cfg(test)]
mod index_model;
