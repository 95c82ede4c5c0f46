//! Tests of the wire protocol: the behaviour that drivers see, and messages that they never send.

mod authentication_rules;
mod connections;
mod copy;
mod deep_statements;
mod encodings;
mod frames;
mod idle_sessions;
mod message_flow;
mod notices;
mod origins;
mod plpgsql;
mod portals;
mod queries;
mod results;
mod roles;
mod security;
mod start_parameters;
mod statistics;
mod temporary_types;
mod types;
