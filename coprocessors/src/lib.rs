//! What runs inside a region, next to the data: secondary indexes, constraints, aggregates, and
//! what ATTACH COPROCESSOR adds to a table ([`registry`]).
//!
//! Built on the public traits of [`store::observer`] and nothing else; knows types, layouts and
//! bound expressions, never SQL text, the catalog or sessions.
//!
//! Modules, bottom up; each uses only those above it.

#![forbid(unsafe_code)]

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
pub mod registry;
mod json;
pub mod audit;
pub mod summary;
pub mod ttl_by_column;
pub mod shipped;

#[cfg(test)]
mod aggregate_model;
#[cfg(test)]
mod top_n_model;
#[cfg(test)]
mod index_model;
