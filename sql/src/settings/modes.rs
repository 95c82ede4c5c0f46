//! Transaction modes: isolation level, read only, deferrable.

use store::transaction::{Isolation, SerializableMode};

use crate::ast::{IsolationLevel, TransactionModes};
use crate::settings::Settings;

/// The modes of a transaction.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct TransactionModeSet {
    /// Isolation level: the snapshot that statements read.
    pub isolation: IsolationLevel,
    /// Rejects writes.
    pub read_only: bool,
    /// At SERIALIZABLE and read only: waits for a safe snapshot.
    pub deferrable: bool,
}

impl TransactionModeSet {
    /// Returns the modes with those of a statement applied.
    pub(crate) fn with(self, given: &TransactionModes) -> TransactionModeSet {
        TransactionModeSet {
            isolation: given.isolation.unwrap_or(self.isolation),
            read_only: given.read_only.unwrap_or(self.read_only),
            deferrable: given.deferrable.unwrap_or(self.deferrable),
        }
    }

    /// Makes the settings show these modes.
    pub(crate) fn show_in(self, settings: &mut Settings) {
        let word = |on| if on { "on" } else { "off" };
        let modes = [self.isolation.name(), word(self.read_only), word(self.deferrable)];
        settings.show_transaction(modes);
    }

    /// Returns whether all statements use one snapshot.
    pub(crate) fn is_repeatable(self) -> bool {
        matches!(self.isolation, IsolationLevel::RepeatableRead | IsolationLevel::Serializable)
    }

    /// Returns the isolation level of the store transaction.
    pub(crate) fn store_isolation(self) -> Isolation {
        match self.isolation {
            IsolationLevel::ReadUncommitted | IsolationLevel::ReadCommitted => {
                Isolation::ReadCommitted
            }
            IsolationLevel::RepeatableRead => Isolation::RepeatableRead,
            IsolationLevel::Serializable => match (self.read_only, self.deferrable) {
                (false, _) => Isolation::Serializable(SerializableMode::ReadWrite),
                (true, false) => Isolation::Serializable(SerializableMode::ReadOnly),
                (true, true) => Isolation::Serializable(SerializableMode::Deferrable),
            },
        }
    }
}
