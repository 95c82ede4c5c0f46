//! Permissions that statements need.

mod collection;
pub(super) mod request;
