//! Integration tests, in one binary so that it is linked once.

#![allow(clippy::disallowed_methods, reason = "tests use the system directly")]
#![allow(clippy::unwrap_used, reason = "a test may panic")]
#![allow(clippy::print_stdout, reason = "seeds and skipped tests are told to the reader")]

mod admission;
mod clients;
mod crash;
mod damage;
mod databases;
mod definitions;
mod dump;
mod equivalents;
mod exported_snapshots;
mod harness;
mod hints;
mod histories;
mod isolation;
mod key_words;
mod lost_updates;
mod manual;
mod memory;
mod normalizer;
mod notifications;
mod optimizer_hints;
mod plpgsql_blocks;
mod privileges;
mod quotas;
mod random_queries;
mod raw;
mod serializable;
mod shell;
mod parallel_regions;
mod signatures;
mod slt;
mod sqlite;
mod startup;
mod tidy;
mod timeline;
mod two_phase;
mod wire;
