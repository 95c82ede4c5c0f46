//! Names of the hooks, and sets of them.
//!
//! An observer declares the hooks that it needs as a set; a hook that no observer needs costs the
//! test of a bit.

use std::fmt;

/// Declares the hooks with their names in the order of the traits.
macro_rules! hooks {
    ($($(#[$doc:meta])* $hook:ident = $name:literal,)*) => {
        /// A point at which observers are called. Each is a method of the same name of
        /// [`RegionObserver`](super::RegionObserver), [`WalObserver`](super::WalObserver) or
        /// [`MasterObserver`](super::MasterObserver), where it is described.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        #[repr(u8)]
        pub enum Hook {
            $($(#[$doc])* #[doc = concat!("`", $name, "`")] $hook,)*
        }

        impl Hook {
            /// All hooks.
            pub const ALL: &[Hook] = &[$(Hook::$hook,)*];

            /// Returns the name of the method.
            pub fn name(self) -> &'static str {
                match self {
                    $(Hook::$hook => $name,)*
                }
            }
        }
    };
}

hooks! {
    PreOpen = "pre_open",
    PostOpen = "post_open",
    PreClose = "pre_close",
    PostClose = "post_close",
    PreFlush = "pre_flush",
    PreFlushStore = "pre_flush_store",
    PostFlush = "post_flush",
    PreCompact = "pre_compact",
    PostCompact = "post_compact",
    PreCommitStoreFile = "pre_commit_store_file",
    PostCommitStoreFile = "post_commit_store_file",
    PreBulkLoad = "pre_bulk_load",
    PostBulkLoad = "post_bulk_load",
    PreGet = "pre_get",
    PostGet = "post_get",
    PreExists = "pre_exists",
    PostExists = "post_exists",
    PreScannerOpen = "pre_scanner_open",
    PostScannerOpen = "post_scanner_open",
    PreScannerNext = "pre_scanner_next",
    PostScannerNext = "post_scanner_next",
    PostScannerClose = "post_scanner_close",
    PrePut = "pre_put",
    PostPut = "post_put",
    PreDelete = "pre_delete",
    PostDelete = "post_delete",
    PreBatch = "pre_batch",
    PostBatch = "post_batch",
    PostBatchIndispensably = "post_batch_indispensably",
    PreIncrement = "pre_increment",
    PostIncrement = "post_increment",
    PreAppend = "pre_append",
    PostAppend = "post_append",
    PreCheckAndMutate = "pre_check_and_mutate",
    PostCheckAndMutate = "post_check_and_mutate",
    PreWalAppend = "pre_wal_append",
    PostWalAppend = "post_wal_append",
    PostWalRoll = "post_wal_roll",
    PreCreateTable = "pre_create_table",
    PostCreateTable = "post_create_table",
    PreAlterTable = "pre_alter_table",
    PostAlterTable = "post_alter_table",
    PreDropTable = "pre_drop_table",
    PostDropTable = "post_drop_table",
    PreFlushTable = "pre_flush_table",
    PostFlushTable = "post_flush_table",
    PreCompactTable = "pre_compact_table",
    PostCompactTable = "post_compact_table",
    PreCheckpoint = "pre_checkpoint",
    PostCheckpoint = "post_checkpoint",
    PreSplit = "pre_split",
    PostSplit = "post_split",
    PreMerge = "pre_merge",
    PostMerge = "post_merge",
}

impl Hook {
    /// Returns whether an error of the hook fails the operation; errors of hooks after something
    /// that cannot be undone are only logged.
    pub fn can_refuse(self) -> bool {
        !matches!(
            self,
            Hook::PostOpen
                | Hook::PreClose
                | Hook::PostClose
                | Hook::PostFlush
                | Hook::PostCompact
                | Hook::PostCommitStoreFile
                | Hook::PostBulkLoad
                | Hook::PostScannerClose
                | Hook::PostPut
                | Hook::PostDelete
                | Hook::PostBatch
                | Hook::PostBatchIndispensably
                | Hook::PostWalAppend
                | Hook::PostWalRoll
                | Hook::PostCreateTable
                | Hook::PostAlterTable
                | Hook::PostDropTable
                | Hook::PostFlushTable
                | Hook::PostCompactTable
                | Hook::PostCheckpoint
                | Hook::PostSplit
                | Hook::PostMerge
        )
    }

    /// Returns whether the hook belongs to flushes or compactions, which are retried after a
    /// veto. A permanent veto would fill the memory, so each veto counts as a failure.
    pub(crate) fn is_upkeep(self) -> bool {
        matches!(
            self,
            Hook::PreFlush | Hook::PreFlushStore | Hook::PreCompact | Hook::PreCommitStoreFile
        )
    }
}

const _: () = assert!(Hook::ALL.len() <= u64::BITS as usize, "a set is 64 bits");

/// A set of hooks.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
pub struct Hooks(u64);

impl Hooks {
    /// No hook.
    pub const NONE: Hooks = Hooks(0);
    /// All hooks.
    pub const ALL: Hooks = Hooks(u64::MAX >> (u64::BITS as usize - Hook::ALL.len()));
    /// Hooks around gets.
    pub(crate) const GET: Hooks = Hooks::of(&[Hook::PreGet, Hook::PostGet]);
    /// Hooks around existence checks.
    pub(crate) const EXISTS: Hooks = Hooks::of(&[Hook::PreExists, Hook::PostExists]);
    /// Hooks around scans.
    pub(crate) const SCAN: Hooks = Hooks::of(&[
        Hook::PreScannerOpen,
        Hook::PostScannerOpen,
        Hook::PreScannerNext,
        Hook::PostScannerNext,
        Hook::PostScannerClose,
    ]);
    /// Hooks around each batch of rows of a scan.
    pub(crate) const SCAN_NEXT: Hooks = Hooks::of(&[Hook::PreScannerNext, Hook::PostScannerNext]);
    /// Hooks around batches of mutations, regardless of their origin.
    pub(crate) const WRITE: Hooks = Hooks::of(&[
        Hook::PrePut,
        Hook::PostPut,
        Hook::PreDelete,
        Hook::PostDelete,
        Hook::PreBatch,
        Hook::PostBatch,
        Hook::PostBatchIndispensably,
    ]);
    /// Hooks around increments, appends and conditional changes.
    pub(crate) const ROW_CHANGE: Hooks = Hooks::of(&[
        Hook::PreIncrement,
        Hook::PostIncrement,
        Hook::PreAppend,
        Hook::PostAppend,
        Hook::PreCheckAndMutate,
        Hook::PostCheckAndMutate,
    ]);
    /// Hooks for which a batch is retained until its outcome is known.
    pub(crate) const AFTER_WRITE: Hooks = Hooks::of(&[
        Hook::PostPut,
        Hook::PostDelete,
        Hook::PostBatch,
        Hook::PostBatchIndispensably,
    ]);

    /// Returns the set of these hooks.
    pub const fn of(hooks: &[Hook]) -> Hooks {
        let mut bits = 0;
        let mut index = 0;
        while index < hooks.len() {
            bits |= 1 << hooks[index] as u8;
            index += 1;
        }
        Hooks(bits)
    }

    /// Returns whether the set has a hook.
    #[inline]
    pub const fn has(self, hook: Hook) -> bool {
        self.0 & (1 << hook as u8) != 0
    }

    /// Returns whether the sets have a hook in common.
    #[inline]
    pub const fn meets(self, other: Hooks) -> bool {
        self.0 & other.0 != 0
    }

    /// Returns the hooks of both sets.
    #[must_use]
    pub const fn with(self, other: Hooks) -> Hooks {
        Hooks(self.0 | other.0)
    }

    /// Returns the hooks in the order of the traits.
    pub fn iter(self) -> impl Iterator<Item = Hook> {
        Hook::ALL.iter().copied().filter(move |hook| self.has(*hook))
    }

    /// Returns the set as a bit mask, for an atomic.
    pub(crate) fn bits(self) -> u64 {
        self.0
    }

    /// Returns the set of [`Hooks::bits`].
    pub(crate) fn from_bits(bits: u64) -> Hooks {
        Hooks(bits & Hooks::ALL.0)
    }
}

impl fmt::Debug for Hooks {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_set().entries(self.iter().map(Hook::name)).finish()
    }
}

/// Continuation of an operation after a `pre_` hook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Flow<T = ()> {
    /// The operation proceeds.
    Proceed,
    /// The operation is skipped: the hook has replaced it, and this is the result. Later
    /// observers in the chain and hooks after the operation are not called.
    Bypass(T),
}

/// Outcome of a batch.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BatchOutcome {
    /// It was committed.
    Committed,
    /// It was not committed: its statement failed, or it was rolled back, to a savepoint or with
    /// its transaction.
    Undone,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn hook_set_contains_its_hooks() {
        let set = Hooks::of(&[Hook::PreBatch, Hook::PreOpen, Hook::PostMerge]);
        assert_eq!(format!("{set:?}"), r#"{"pre_open", "pre_batch", "post_merge"}"#);
        assert!(set.meets(Hooks::WRITE) && !set.meets(Hooks::GET) && !set.has(Hook::PrePut));
        assert_eq!(Hooks::from_bits(set.bits()), set);
        assert_eq!(Hooks::ALL.iter().count(), Hook::ALL.len());
        assert!(Hooks::ALL.has(Hook::PostMerge) && !Hooks::NONE.meets(Hooks::ALL));
    }
}
