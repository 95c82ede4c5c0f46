//! Notices and warnings of a session.

use std::sync::Arc;

use crate::error::Error;

/// Notice or warning for the client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Notice {
    /// `NOTICE` or `WARNING`.
    pub severity: &'static str,
    /// Code, message, hint.
    pub error: Error,
}

/// Sends notices to the client while its statement runs. Returns `false` if that is not possible;
/// they are then sent at the end of the statement.
pub type NoticeSink = Arc<dyn Fn(&[Notice]) -> bool + Send + Sync>;
