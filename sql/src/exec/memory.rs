//! How much a statement may keep in memory.
//!
//! For what does not spill to disk; so the bound is generous: [`FACTOR`] times `work_mem`, and at
//! least [`FLOOR_BYTES`]. Past it the statement fails with 53200 instead of taking the server with
//! it.

use crate::error::{Error, Result, sqlstate};

/// How many times `work_mem` one operator may keep.
const FACTOR: usize = 64;
/// What one operator may keep whatever `work_mem` says.
const FLOOR_BYTES: usize = 256 << 20;

/// Returns the bytes that one operator may keep.
pub(super) fn limit(work_mem: usize) -> usize {
    work_mem.saturating_mul(FACTOR).max(FLOOR_BYTES)
}

/// Fails if an operator keeps more than it may.
pub(crate) fn check(bytes: usize, work_mem: usize) -> Result<()> {
    let limit = limit(work_mem);
    if bytes <= limit {
        return Ok(());
    }
    Err(Error::new(sqlstate::OUT_OF_MEMORY, "out of memory")
        .with_detail(format!(
            "The statement needs more than the {} MiB that one step of it may keep.",
            limit >> 20
        ))
        .with_hint("Narrow the statement, add a LIMIT or an index, or raise work_mem."))
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
