//! Statements on roles, owners and privileges.

mod future;
mod grant;
mod owned;
mod owner;
pub(super) mod role_settings;
pub(in crate::ddl) mod role;
