//! The integration tests of the crate, in one binary so that it is linked once.

mod attach_crash;
mod binder;
mod columnar;
mod coprocessors;
mod definitions;
mod deferrable_unique;
mod error_places;
mod foreign_keys;
mod large_statements;
mod long_unions;
mod long_values;
mod older_texts;
mod online_indexes;
mod parser_limits;
mod queries;
mod read_figures;
mod replanning;
mod row_locks;
mod scripts;
mod server;
mod spill;
mod split_options;
mod summary;
mod tally;
mod truncate_crash;
mod user_types;
