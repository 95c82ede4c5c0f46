//! Statements on roles, owners and privileges.

mod grant;
mod owner;
pub(super) mod role;
