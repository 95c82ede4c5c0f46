//! LISTEN, UNLISTEN and NOTIFY of a session, and the notifications for its client.

use std::sync::Arc;

use crate::ast::Statement;
use crate::error::Result;
use crate::notifications::Notification;
use crate::session::{Session, TransactionStatus};

/// Returns whether a statement is LISTEN, UNLISTEN or NOTIFY.
pub(super) fn is_notification(statement: &Statement) -> bool {
    matches!(statement, Statement::Listen(_) | Statement::Unlisten(_) | Statement::Notify { .. })
}

impl Session {
    /// Executes LISTEN, UNLISTEN or NOTIFY, which take effect at the commit.
    pub(super) fn run_notification(&mut self, statement: &Statement) -> Result<()> {
        self.begin_statement();
        match statement {
            Statement::Listen(channel) => self.notifications.listen(&channel.value),
            Statement::Unlisten(channel) => {
                let channel = channel.as_ref().map(|channel| channel.value.as_str());
                self.notifications.unlisten(channel);
            }
            Statement::Notify { channel, payload } => {
                self.notifications.notify(&channel.value, payload)?;
            }
            _ => unreachable!("the caller passes these statements only"),
        }
        Ok(())
    }

    /// Sets what is called when a notification for the session arrives.
    pub fn on_notification(&self, wake: impl Fn() + Send + Sync + 'static) {
        self.notifications.set_wake(Arc::new(wake));
    }

    /// Returns whether notifications may arrive while the session is idle.
    pub fn awaits_notifications(&self) -> bool {
        self.notifications.is_listening() && self.transaction_status() == TransactionStatus::Idle
    }

    /// Returns the number behind the last notification that has arrived.
    pub fn notification_end(&self) -> u64 {
        self.notifications.end_number()
    }

    /// Takes the notifications for the client before `end`, up to about `bytes_max` bytes; none
    /// within a transaction block.
    pub fn take_notifications(&self, end: u64, bytes_max: usize) -> Vec<Arc<Notification>> {
        match self.transaction_status() {
            TransactionStatus::Idle => {
                self.notifications.take((end, bytes_max), &|| self.is_terminated())
            }
            TransactionStatus::InBlock | TransactionStatus::Failed => Vec::new(),
        }
    }
}
