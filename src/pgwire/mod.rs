//! The PostgreSQL wire protocol, version 3: frames, startup, queries, COPY, cancellation.
//!
//! Messages, their layouts and SCRAM come from the `pgwire` crate. The message loop, the
//! validation before decoding, the buffers and the row encoder are bennu's own, because the
//! crate's loop sends each message separately and buffers results whole.
//!
//! Modules, bottom up.

mod frame;
mod failure;
mod row;
mod message;
mod cancel;
mod incoming;
mod channel;
mod start_channel;
mod login_throttle;
mod client_log;
mod authentication;
mod service;
mod startup;
mod shared_channel;
mod connection;
mod copy;
mod simple;
mod extended;
mod client_task;

pub(crate) use crate::pgwire::authentication::Authentication;
pub(crate) use crate::pgwire::cancel::CancelRegistry;
pub(crate) use crate::pgwire::client_task::{reject, serve};
pub(crate) use crate::pgwire::failure::{is_out_of_descriptors, panic_message};
pub(crate) use crate::pgwire::login_throttle::LoginThrottle;
pub(crate) use crate::pgwire::service::Service;
