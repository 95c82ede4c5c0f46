//! PL/pgSQL: from the text of a body to its statement tree.
//!
//! A body is a block of PL/pgSQL statements that contain SQL: statements, and expressions, which
//! are the select list of a SELECT. PL/pgSQL is parsed here; each SQL fragment is extracted as
//! text, parsed by the [`parser`](crate::parser), and bound and executed by the session that runs
//! the body. Variable names are resolved here, so that each fragment has the set of visible
//! variables; their types are resolved at execution, because that needs the catalog.
//!
//! Source: PostgreSQL's `pl_gram.y`, `pl_scanner.c` and `plpgsql_ns_lookup` (pl_funcs.c).

mod token;
pub mod body_tree;
pub mod scopes;
mod parser;
mod declarations;
mod loops;
mod messages;
mod cursors;

pub use parser::{BodyError, BodyParameter, ReturnKind, parse_body};
