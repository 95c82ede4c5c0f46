//! `bennu demo`: a server on a temporary directory with sample data loaded and a tour printed.
//!
//! The data is every flight that left the airports of New York in 2013, with its airlines,
//! airports, planes and weather: 367,687 rows in five tables. It is loaded with COPY, as by
//! clients.

pub mod data;
pub mod tour;

use std::io::Write;

use crate::database::{DEFAULT_USER, Database};
use crate::error::Result;

/// Loads the data and prints the tour to `out`.
///
/// # Errors
///
/// If a statement of the demo fails, or `out` is closed.
pub fn run(database: &Database, out: &mut dyn Write) -> Result<()> {
    data::load(&mut database.session(DEFAULT_USER), out)?;
    tour::Tour::new(database, out).run()
}
