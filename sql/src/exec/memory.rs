//! Memory limits of operators.
//!
//! Operators that spill may use `work_mem`, and less where the server's [account](store::memory)
//! is nearly exhausted: a quarter of the free memory. So with more concurrent sorts each one
//! spills earlier, and a single one has its `work_mem`.
//!
//! Operators that do not spill have a generous limit: [`LARGEST_PART`] of the account,
//! independent of `work_mem`; without an account, [`FACTOR`] times `work_mem`, at least
//! [`FLOOR_BYTES`]. Above it the statement fails with 53200; earlier, if all statements together
//! exceed the account ([`memory_governor`](crate::memory_governor)).

use crate::error::{Error, Result};

/// Multiple of `work_mem` that one operator may use without an account.
const FACTOR: usize = 64;
/// Minimum of that limit in bytes.
const FLOOR_BYTES: usize = 256 << 20;

/// Fraction of all memory that one operator may use: three quarters.
const LARGEST_PART: (usize, usize) = (3, 4);
/// Divisor of the free memory for an operator that spills.
const FREE_PART: usize = 4;
/// Minimum of that limit in bytes: a lower one would create many small files.
const LEAST_BYTES: usize = 1 << 20;

/// Returns the memory limit in bytes of an operator that spills.
pub(crate) fn spill_limit(work_mem: usize) -> usize {
    work_mem.min((store::memory::free_bytes() / FREE_PART).max(LEAST_BYTES))
}

/// Returns the memory limit in bytes of an operator that does not spill.
pub(super) fn operator_limit(work_mem: usize) -> usize {
    let (part, of) = LARGEST_PART;
    let unlimited = || work_mem.saturating_mul(FACTOR).max(FLOOR_BYTES);
    store::memory::limit().map_or_else(unlimited, |limit| limit / of * part)
}

/// Fails if an operator exceeds its memory limit.
pub(crate) fn check(bytes: usize, work_mem: usize) -> Result<()> {
    let limit = operator_limit(work_mem);
    if bytes <= limit {
        return Ok(());
    }
    bail!(OUT_OF_MEMORY: "out of memory";
        detail "An operation of the statement requires more than {} MiB and cannot spill to disk.", limit >> 20;
        hint "Restrict the query, add a LIMIT or an index, or start the server with more --memory.")
}

#[cfg(test)]
mod tests {
    use super::{FLOOR_BYTES, check};

    #[test]
    fn memory_above_limit_is_out_of_memory() {
        assert!(check(FLOOR_BYTES, 0).is_ok());
        assert_eq!(check(FLOOR_BYTES + 1, 0).unwrap_err().sqlstate, "53200");
    }
}
