//! Parsing of statements on roles.

mod role;
