//! PL/pgSQL: from the text of a body to its tree.
//!
//! A body is a block of statements of its own language, with SQL in them: the statements of SQL,
//! and expressions, which are SQL behind a SELECT. The language is read here; what is SQL is cut
//! out as text, parsed by the [`parser`](crate::parser), and bound and run by the session that runs
//! the body. Names of variables are known here, so that it is known of every piece of SQL which
//! ones it sees; their types are not, for which it takes the catalog.
//!
//! Source: PostgreSQL's `pl_gram.y`, `pl_scanner.c` and `plpgsql_ns_lookup` (pl_funcs.c).

mod token;
pub mod condition;
pub mod tree;
pub mod names;
mod parser;
mod declarations;
mod loops;
mod messages;
mod cursors;

pub use parser::{BodyError, BodyParameter, Returning, parse_body};
