//! Parsing of statements on roles and privileges.

mod grant;
mod policy;
mod role;
