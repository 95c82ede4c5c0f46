//! Memory governor: a thread that cancels the largest statement when the process exceeds its
//! [memory limit](store::memory).
//!
//! ```text
//!   allocation near the limit ──wakes──> governor ──reclaims──> cache, spare chunks, memstores
//!                                              ├── cancels ──> the largest statement: 53200
//!                                              └── waits until its memory is freed
//! ```
//!
//! Before a statement is cancelled, the store reclaims memory
//! ([`Store::relieve_memory`](store::Store::release_memory)), from [`RELIEF_PART`] below the
//! limit on. The store may use it again when a quarter of the limit is free. Sessions also drop
//! their cached plans, idle sessions first; the plans are rebuilt at the next execution.
//!
//! The resident size of the process may exceed the allocated bytes. The governor, which is awake
//! from three quarters of the limit on, checks it as well.
//!
//! Cancelling works like a cancel request: every long computation checks that flag. So plan nodes
//! need no code for it, and memory that is not tracked by operators counts as well.
//!
//! # Choice of the statement
//!
//! * No more statements are cancelled than necessary: the memory of a cancelled statement counts
//!   as free for [`PATIENCE`].
//! * Small statements ([`SMALL_PART`]) and idle sessions are not cancelled. Excess of the
//!   resident size over the allocated bytes cancels only a statement that holds much of it
//!   ([`LARGE_PART`]): the allocator retains what others have freed.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{JoinHandle, park, park_timeout};
use std::time::{Duration, Instant};

use store::env::process::{monotonic_now, read_text, spawn_thread};
use store::memory;
use store::memory::AccountId;

use crate::activity::SessionActivity;
use crate::engine::Engine;
use crate::error::Result;
use crate::rows::out_of_memory;
use crate::timer::MemoryShortage;

/// Polling interval while the limit is exceeded.
const LOOK: Duration = Duration::from_millis(5);
/// Interval at which the store takes back memory after the pressure has ended.
const REFILL: Duration = Duration::from_millis(100);
/// Minimum interval between two rounds of dropping cached plans.
const PLANS: Duration = Duration::from_millis(100);
/// Divisor of the limit for the memory that the store keeps free: an eighth.
const RELIEF_PART: usize = 8;
/// Time that a cancelled statement has to free its memory.
const PATIENCE: Duration = Duration::from_secs(2);
/// Time that the store has to reclaim memory, by flushing memstores, if it holds more than any
/// statement and the excess is below this fraction of the limit.
const STORE_PATIENCE: Duration = Duration::from_millis(500);
const STORE_EXCESS_PART: usize = 8;
/// Divisor of the limit below which a statement is small and not cancelled.
const SMALL_PART: usize = 128;
/// Divisor of the limit below which a statement is not cancelled for the resident size.
const LARGE_PART: usize = 2;
/// Budget reserved for what is not heap: program and stacks. A divisor of the budget, plus bytes.
const OUTSIDE_PART: u64 = 16;
const OUTSIDE_BYTES: u64 = 24 << 20;
/// Divisor of the free address space that may be allocated, where it is bounded.
const SPACE_PART: u64 = 2;
/// Minimum limit.
const LEAST_BYTES: u64 = 16 << 20;
/// Divisor of the budget by which the resident size may exceed it: the allocator retains freed
/// memory, more of it with more threads.
const RESIDENT_PART: u64 = 8;
/// Minimum of that allowance: the pages of the program count too, for any budget.
const RESIDENT_BYTES: u64 = 32 << 20;
/// Number of consecutive checks that must find the resident size too large before another
/// statement is cancelled for it: freed memory, also that of the store, is returned to the system
/// with a delay.
const RESIDENT_LOOKS: u32 = 40;
/// Maximum number of sessions in a message.
const NAMED: usize = 4;

/// Governor thread; dropping it stops the thread.
pub struct MemoryGovernor {
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MemoryGovernor {
    /// Starts the governor with a memory budget. It does nothing if the allocator does not count.
    ///
    /// # Errors
    ///
    /// The system's error of creating the thread.
    pub fn start(engine: &Arc<Engine>, memory_bytes: u64) -> std::io::Result<MemoryGovernor> {
        let stopping = Arc::new(AtomicBool::new(false));
        if memory::total_bytes() == 0 {
            return Ok(MemoryGovernor { stopping, thread: None });
        }
        memory::set_limit(limit_within_space(memory_bytes));
        let (engine, stops) = (Arc::downgrade(engine), Arc::clone(&stopping));
        let thread = spawn_thread("memory-governor", move || run(&engine, &stops, memory_bytes))?;
        Ok(MemoryGovernor { stopping, thread: Some(thread) })
    }
}

impl Drop for MemoryGovernor {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.stopping.store(true, Ordering::SeqCst);
            thread.thread().unpark();
            // The thread cannot panic; if it did, there is nothing left to stop.
            let _ = thread.join();
        }
    }
}

/// Returns the allocation limit within a budget.
fn limit_bytes(memory_bytes: u64) -> u64 {
    let outside = memory_bytes / OUTSIDE_PART + OUTSIDE_BYTES;
    memory_bytes - outside.min(memory_bytes / 2)
}

const _: () = assert!(LARGE_PART < SMALL_PART, "large statements are larger than small ones");

/// Returns the resident size above which a statement is cancelled.
fn resident_max(memory_bytes: u64) -> u64 {
    memory_bytes + (memory_bytes / RESIDENT_PART).max(RESIDENT_BYTES)
}

/// Returns the allocation limit, at most half of the address space that remains beside program
/// and stacks (`ulimit -v`): where an allocation fails the standard library aborts the process,
/// and a value may exist twice while it is copied.
fn limit_within_space(memory_bytes: u64) -> u64 {
    let limit = limit_bytes(memory_bytes);
    let (Some(space), Some(mapped)) = (address_space(), status_bytes("VmSize:")) else {
        return limit;
    };
    let outside = mapped.saturating_sub(memory::total_bytes() as u64);
    limit.min(space.saturating_sub(outside) / SPACE_PART).max(LEAST_BYTES)
}

/// Returns the address space limit in bytes; `None` if there is none.
fn address_space() -> Option<u64> {
    let limits = read_text("/proc/self/limits").ok()?;
    let line = limits.lines().find_map(|line| line.strip_prefix("Max address space"))?;
    line.split_whitespace().next()?.parse().ok()
}

fn run(engine: &Weak<Engine>, stopping: &AtomicBool, memory_bytes: u64) {
    let resident_max = resident_max(memory_bytes);
    memory::watch();
    let mut stopped = BTreeMap::new();
    let mut resident_looks = 0;
    let mut is_relieving = false;
    let mut exceeded_since = None;
    let mut plans_forgotten: Option<Instant> = None;
    while !stopping.load(Ordering::SeqCst) {
        memory::rearm();
        if !memory::is_near_limit() {
            stopped.clear();
            (resident_looks, exceeded_since) = (0, None);
            let engine = engine.upgrade().filter(|_| is_relieving);
            is_relieving = engine.is_some_and(|engine| engine.store().release_memory(None));
            if is_relieving {
                park_timeout(REFILL)
            } else {
                park()
            }
            continue;
        }
        // The number of threads, and so the mapped stacks, may have changed.
        memory::set_limit(limit_within_space(memory_bytes));
        let resident = resident_bytes().saturating_sub(resident_max);
        if let Some(engine) = engine.upgrade() {
            is_relieving |= take_from_store(&engine, resident);
            if plans_forgotten.is_none_or(|at| at.elapsed() >= PLANS) && missing_bytes() > 0 {
                forget_plans(&engine);
                plans_forgotten = Some(monotonic_now());
            }
        }
        resident_looks = if resident > 0 { resident_looks + 1 } else { 0 };
        let resident = match resident_looks == RESIDENT_LOOKS {
            true => {
                resident_looks = 0;
                resident
            }
            false => 0,
        };
        let since = match memory::is_exceeded() {
            true => *exceeded_since.get_or_insert_with(monotonic_now),
            false => *exceeded_since.insert(monotonic_now()),
        };
        if let Some(engine) = engine.upgrade() {
            let resident = usize::try_from(resident).unwrap_or(usize::MAX);
            relieve(&engine, &mut stopped, (resident, since));
        }
        park_timeout(LOOK);
    }
}

/// Returns the resident size of the process in bytes; 0 if it is unknown.
fn resident_bytes() -> u64 {
    status_bytes("VmRSS:").unwrap_or(0)
}

/// Returns a size from `/proc/self/status`, in bytes.
fn status_bytes(name: &str) -> Option<u64> {
    let status = read_text("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

/// Reclaims memory from the store if less than [`RELIEF_PART`] is free or the resident size is
/// too large; returns whether it did.
fn take_from_store(engine: &Engine, resident: u64) -> bool {
    let wanted = (missing_bytes() as u64).max(resident);
    if wanted > 0 {
        // It may reclaim more than necessary, since freed memory shows with a delay.
        engine.store().release_memory(Some(wanted));
    }
    wanted > 0
}

/// Returns the bytes missing to [`RELIEF_PART`] of free memory.
fn missing_bytes() -> usize {
    let wanted_free = memory::limit().unwrap_or(0) / RELIEF_PART;
    wanted_free.saturating_sub(memory::free_bytes())
}

/// Drops cached plans of sessions until enough memory is free: idle sessions first, larger ones
/// before smaller ones.
pub(crate) fn forget_plans(engine: &Engine) {
    if missing_bytes() == 0 {
        return;
    }
    let mut sessions = engine.sessions.all();
    sessions.sort_by_cached_key(|one| (one.is_active(), Reverse(one.account().byte_count())));
    for session in sessions {
        if missing_bytes() == 0 {
            return;
        }
        session.drop_plans();
    }
}

/// Cancels the largest statement, unless already cancelled ones will free enough. `stopped`:
/// cancelled sessions and the time of cancelling. `resident`: bytes by which the resident size is
/// too large; `since`: the time since when the limit is exceeded.
fn relieve(
    engine: &Engine,
    stopped: &mut BTreeMap<i32, Instant>,
    (resident, since): (usize, Instant),
) {
    let sessions = engine.sessions.all();
    let (limit, total) = (memory::limit().unwrap_or(usize::MAX), memory::total_bytes());
    let is_ending = |one: &&Arc<SessionActivity>| {
        // A session that has started another statement since can be cancelled again.
        let since = stopped.get(&one.session).filter(|_| one.is_stopped_for_memory());
        since.is_some_and(|since| since.elapsed() < PATIENCE)
    };
    let ending = sessions.iter().filter(is_ending).map(|one| one.account().byte_count());
    let excess = total.saturating_sub(limit).max(resident);
    if excess <= ending.sum() {
        return;
    }
    let candidates = sessions.iter().filter(|one| !is_ending(one) && one.is_active());
    let Some(largest) = candidates.max_by_key(|one| one.account().byte_count()) else { return };
    let is_the_stores = AccountId::SERVER.byte_count() > largest.account().byte_count();
    if is_the_stores && excess < limit / STORE_EXCESS_PART && since.elapsed() < STORE_PATIENCE {
        return;
    }
    let part = if total > limit { SMALL_PART } else { LARGE_PART };
    if largest.account().byte_count() >= limit / part {
        let detail = describe(&sessions, largest, (total, limit));
        tracing::warn!(
            session = largest.session,
            detail,
            "canceling a statement because memory is exhausted"
        );
        largest.cancel_for_memory(MemoryShortage { detail });
        stopped.insert(largest.session, monotonic_now());
    }
}

/// Fails if a session holds more than its equal share of half the limit. Called where the limit
/// is exceeded.
pub(crate) fn check_session(engine: &Engine, session: &SessionActivity) -> Result<()> {
    let sessions = engine.sessions.all();
    let (limit, total) = (memory::limit().unwrap_or(usize::MAX), memory::total_bytes());
    if session.account().byte_count() <= limit / 2 / sessions.len().max(1) {
        return Ok(());
    }
    let detail = describe(&sessions, session, (total, limit));
    Err(out_of_memory(MemoryShortage { detail }))
}

/// Returns the DETAIL: the memory of the cancelled session and of others.
fn describe(
    sessions: &[Arc<SessionActivity>],
    stopped: &SessionActivity,
    (total, limit): (usize, usize),
) -> String {
    let mebibytes = |bytes: usize| bytes >> 20;
    let mut others: Vec<(usize, i32)> = sessions
        .iter()
        .filter(|one| one.session != stopped.session)
        .map(|one| (one.account().byte_count(), one.session))
        .filter(|(bytes, _)| mebibytes(*bytes) > 0)
        .collect();
    others.sort_unstable_by(|one, other| other.cmp(one));
    let named: Vec<String> = others
        .iter()
        .take(NAMED)
        .map(|(bytes, session)| format!(", session {session} {} MiB", mebibytes(*bytes)))
        .collect();
    let rest: usize = others.iter().skip(NAMED).map(|(bytes, _)| bytes).sum();
    let rest = match others.len().saturating_sub(NAMED) {
        0 => String::new(),
        count => format!(", {count} more sessions {} MiB", mebibytes(rest)),
    };
    let resident = match total > limit {
        true => String::new(),
        false => format!("Resident memory is {} MiB; ", resident_bytes() >> 20),
    };
    format!(
        "{resident}{} MiB of the {} MiB available under --memory are in use: this session {} \
         MiB{}{rest}, caches and memstores {} MiB.",
        mebibytes(total),
        mebibytes(limit),
        mebibytes(stopped.account().byte_count()),
        named.concat(),
        mebibytes(AccountId::SERVER.byte_count()),
    )
}

#[cfg(test)]
mod tests {
    use super::limit_bytes;

    #[test]
    fn memory_limit_reserves_space_for_process() {
        assert_eq!(limit_bytes(512 << 20), 456 << 20);
        assert_eq!(limit_bytes(32 << 20), 16 << 20);
    }
}
