//! Division of a store's memory budget.
//!
//! ```text
//!   budget  | reserved  |   cache 40 %   |  memstores 40 %, writers wait at 60 %  |
//!   above it, up to a quarter more:  unsynced log records, and the allocator
//! ```
//!
//! The budget is the target size of the process, not of its allocations. So a part is reserved
//! for the fixed needs of a store (the program, the buffers for reading, merging and writing
//! files), and a part for memory that was freed and not yet returned to the system: blocks and
//! buffers that one thread allocated and another one freed. Shares are of the rest. Measurements
//! are in docs/internals/performance-store.md.

/// Reserved bytes, but never more than half of the budget together with the part below.
const SET_ASIDE_BYTES: u64 = 24 << 20;
/// Divisor: the part reserved for the allocator, a quarter.
const ALLOCATOR_PART: u64 = 4;
/// Limit of unsynced log records, regardless of the budget.
const UNSYNCED_BYTES_MAX: u64 = 64 << 20;

/// The shares of a memory budget, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Memstore bytes at which flushes start.
    pub(crate) memstore_soft: u64,
    /// Memstore bytes at which writers wait; up to here, freed chunks are pooled for the next
    /// memstores.
    pub(crate) memstore_hard: u64,
    /// The block cache.
    pub(crate) cache: u64,
    /// Part of the memstore share: the staged cells and row locks of all open transactions. 40 %.
    pub(crate) transactions: u64,
    /// Part of the reserve: read and write sets of SERIALIZABLE transactions. A 64th.
    pub(crate) serializable: u64,
    /// Unsynced log bytes at which ASYNC commits wait for the disk.
    pub(crate) unsynced: u64,
    /// Part of the reserve: items that region threads have read ahead for statements. A 32nd.
    pub(crate) read_ahead: u64,
}

impl Budget {
    /// Divides a budget.
    pub(crate) fn of(memory_bytes: u64) -> Budget {
        let shared = memory_bytes - set_aside(memory_bytes);
        let fifth = shared / 5;
        Budget {
            memstore_soft: fifth * 2,
            memstore_hard: fifth * 3,
            cache: fifth * 2,
            transactions: fifth * 2,
            serializable: memory_bytes / 64,
            read_ahead: memory_bytes / 32,
            unsynced: (memory_bytes / 16).min(UNSYNCED_BYTES_MAX),
        }
    }
}

fn set_aside(memory_bytes: u64) -> u64 {
    (SET_ASIDE_BYTES + memory_bytes / ALLOCATOR_PART).min(memory_bytes / 2)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_shares_stay_within_budget() {
        for memory_bytes in [1 << 20, 16 << 20, 32 << 20, 256 << 20, 1 << 30, 1 << 40] {
            let Budget {
                memstore_soft,
                memstore_hard,
                cache,
                transactions,
                serializable,
                unsynced,
                read_ahead,
            } = Budget::of(memory_bytes);
            assert!(memstore_soft > 0 && memstore_soft < memstore_hard);
            // Otherwise no other writer could continue while transactions have their whole share.
            assert!(transactions < memstore_hard);
            assert!(memstore_hard + cache + set_aside(memory_bytes) <= memory_bytes);
            assert!(unsynced <= memory_bytes / 16);
            assert!(read_ahead + serializable < set_aside(memory_bytes));
        }
    }
}
