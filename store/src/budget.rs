//! How the memory budget of a store is shared out.
//!
//! ```text
//!   budget  | set aside |   cache 40 %   |  memstores 40 %, writers wait at 60 %  |
//!   above it, up to a quarter more:  records of the log that no disk has yet, and the allocator
//! ```
//!
//! The budget is what the process is to take, not what is asked of the allocator. So something is
//! set aside for what a store needs whatever its size (the program, the buffers of files that are
//! read, merged and written), and a part for memory that was freed and is not given back yet:
//! blocks and buffers that one thread allocated and another one freed. Shares are of the rest.
//! docs/performance.md has what was measured.

/// Set aside, but never more than half of the budget together with the part below.
const SET_ASIDE_BYTES: u64 = 24 << 20;
/// The part that is set aside for the allocator: a quarter.
const ALLOCATOR_PART: u64 = 4;
/// Records of the log that no disk has yet take no more than this, whatever the budget.
const UNSYNCED_BYTES_MAX: u64 = 64 << 20;

/// The shares of a memory budget, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Budget {
    /// Where memstores begin to be flushed.
    pub(crate) memstore_soft: u64,
    /// Where writers wait for them; up to here, what some give back is kept for the next.
    pub(crate) memstore_hard: u64,
    /// The block cache.
    pub(crate) cache: u64,
    /// Part of what memstores have: the staged cells and row locks of all open transactions. 40 %.
    pub(crate) transactions: u64,
    /// Part of what is set aside: what SERIALIZABLE transactions note of their reads and writes. A
    /// 64th.
    pub(crate) serializable: u64,
    /// Where ASYNC commits wait for the disk.
    pub(crate) unsynced: u64,
    /// Part of what is set aside: what region threads have read ahead of statements. A 32nd.
    pub(crate) read_ahead: u64,
}

impl Budget {
    /// Shares out a budget.
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
    fn shares_stay_within_a_budget_and_a_quarter() {
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
            // Else nobody could write while they have all of it.
            assert!(transactions < memstore_hard);
            assert!(memstore_hard + cache + set_aside(memory_bytes) <= memory_bytes);
            assert!(unsynced <= memory_bytes / 16);
            assert!(read_ahead + serializable < set_aside(memory_bytes));
        }
    }
}
