//! How much a step of a statement may keep in memory.
//!
//! What spills to disk may keep `work_mem`, and less where the server's [account](store::memory) is
//! nearly used up: a quarter of what is free. So the more statements sort, the sooner each of them
//! goes on on disk, and one alone has its `work_mem`.
//!
//! What does not spill has a generous bound: [`LARGEST_PART`] of the account, whatever `work_mem`
//! says; where nothing is counted, [`FACTOR`] times `work_mem`, at least [`FLOOR_BYTES`]. Past it
//! the statement fails with 53200; before, if all together exceed the account
//! ([`memory_governor`](crate::memory_governor)).

use crate::error::{Error, Result, sqlstate};

/// How many times `work_mem` one operator may keep where there is no account.
const FACTOR: usize = 64;
/// What one operator may keep there whatever `work_mem` says.
const FLOOR_BYTES: usize = 256 << 20;

/// What one operator may keep of all memory: three quarters.
const LARGEST_PART: (usize, usize) = (3, 4);
/// The part of what is free up to which a step may grow before it goes on on disk.
const FREE_PART: usize = 4;
/// What it may keep however little is free: else it would write nothing but small files.
const LEAST_BYTES: usize = 1 << 20;

/// Returns the bytes that a step may keep that can go on on disk.
pub(crate) fn allowance(work_mem: usize) -> usize {
    work_mem.min((store::memory::free_bytes() / FREE_PART).max(LEAST_BYTES))
}

/// Returns the bytes that one operator may keep.
pub(super) fn limit(work_mem: usize) -> usize {
    let (part, of) = LARGEST_PART;
    let unlimited = || work_mem.saturating_mul(FACTOR).max(FLOOR_BYTES);
    store::memory::limit().map_or_else(unlimited, |limit| limit / of * part)
}

/// Fails if an operator keeps more than it may.
pub(crate) fn check(bytes: usize, work_mem: usize) -> Result<()> {
    let limit = limit(work_mem);
    if bytes <= limit {
        return Ok(());
    }
    Err(Error::new(sqlstate::OUT_OF_MEMORY, "out of memory")
        .with_detail(format!(
            "One step of the statement needs more than {} MiB, and cannot go on on disk.",
            limit >> 20
        ))
        .with_hint(
            "Narrow the statement, add a LIMIT or an index, or start the server with more --memory.",
        ))
}

#[cfg(test)]
mod tests {
    use super::{FLOOR_BYTES, check};

    #[test]
    fn past_the_bound_is_out_of_memory() {
        assert!(check(FLOOR_BYTES, 0).is_ok());
        assert_eq!(check(FLOOR_BYTES + 1, 0).unwrap_err().sqlstate, "53200");
    }
}
