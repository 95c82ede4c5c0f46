//! Roles.

pub mod role;
pub mod role_graph;
