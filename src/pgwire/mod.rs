//! The Postgres protocol, version 3: frames, start, queries, COPY, cancellation.
//!
//! Messages, their layouts and SCRAM come from the `pgwire` crate; the loop, the checks before
//! decoding, the buffers and the rows are our own, because the crate's loop sends message by
//! message and holds results whole.
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
mod lent;
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
