//! Integration tests of the crate, in one binary so that it is linked once.

#![allow(clippy::disallowed_methods, reason = "tests use the system directly")]

mod attach_crash;
mod binder;
mod client_timestamps;
mod columnar;
mod coprocessors;
mod crashes;
mod database_crash;
mod definitions;
mod deferrable_unique;
mod error_places;
mod eventual_crash;
mod expiry;
mod family_crash;
mod foreign_keys;
mod history;
mod index_build_crash;
mod index_check;
mod index_checker;
mod large_statements;
mod long_unions;
mod long_values;
mod online_indexes;
mod parser_limits;
mod queries;
mod random;
mod read_statistics;
mod replanning;
mod row_locks;
mod salt_crash;
mod scripts;
mod server;
mod spill;
mod store_check;
mod summary;
mod table_options;
mod tally;
mod truncate_crash;
mod unreadable_texts;
mod user_types;
mod view_crash;
