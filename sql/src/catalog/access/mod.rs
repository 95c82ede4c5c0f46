//! Roles, owners and privileges.

pub mod object_access;
pub mod owner_context;
pub mod object_privileges;
pub mod privilege;
pub mod role;
pub mod role_graph;
pub mod row_security;
