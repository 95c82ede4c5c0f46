//! Phoenix's spellings: function calls, operators and casts without an equal in PostgreSQL, hints,
//! and indexes read by their names.

mod calls;
mod hints;
mod index_rows;
