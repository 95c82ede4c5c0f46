//! Parsing of statements on roles and privileges.

mod grant;
mod role;
