//! The memory of a session: its account, and the looks at it before a statement runs.

use store::memory;
use store::memory::AccountId;

use crate::error::Result;
use crate::memory_governor;
use crate::session::Session;

impl Session {
    /// Returns the memory account of the session, for the thread that works for it.
    pub fn memory_account(&self) -> AccountId {
        self.activity.account()
    }

    /// Fails if the server has no memory left and this session is one of the large ones: texts,
    /// trees and plans are made before a statement runs that could be stopped.
    pub(super) fn check_memory(&self) -> Result<()> {
        match memory::is_exceeded() {
            true => memory_governor::check_session(&self.engine, &self.activity),
            false => Ok(()),
        }
    }
}
