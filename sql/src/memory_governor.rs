//! The memory governor: a thread that stops the largest statement when the process exceeds its
//! [account](store::memory).
//!
//! ```text
//!   allocation near the limit ──wakes──> governor ──takes──> cache, spare chunks, memstores
//!                                              ├── stops ──> the largest statement: 53200
//!                                              └── waits until its memory is free
//! ```
//!
//! Before a statement is stopped the store gives what it can do without
//! ([`Store::relieve_memory`](store::Store::relieve_memory)), from [`RELIEF_PART`] below the limit
//! on. It takes that back when a quarter is free. Sessions forget the plans of their prepared
//! statements then, which are made again when they are used: those that run nothing before others.
//!
//! The process may take more than what is allocated in it. So the governor, which is awake from
//! three quarters of the limit on, looks at that as well.
//!
//! It stops a statement as a cancel request does: whatever computes for long looks at that flag. So
//! no step of a plan has to know of it, and memory that nobody has thought of counts as well.
//!
//! # Invariants
//!
//! 1. No more statements are stopped than it takes: what those hold that were stopped counts as
//!    free already, for [`PATIENCE`].
//! 2. Small statements ([`SMALL_PART`]) are not stopped; nor is a session that runs none. For what
//!    the process takes beyond what is allocated only a statement is stopped that holds much of it
//!    ([`LARGE_PART`]): the allocator keeps what others have freed.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{JoinHandle, park, park_timeout};
use std::time::{Duration, Instant};

use store::memory;
use store::memory::AccountId;

use crate::activity::Activity;
use crate::engine::Engine;
use crate::error::Result;
use crate::rows::out_of_memory;
use crate::timer::MemoryShortage;

/// How often it looks while the limit is exceeded.
const LOOK: Duration = Duration::from_millis(5);
/// How often the store takes back some of what it has given, when memory is free again.
const REFILL: Duration = Duration::from_millis(100);
/// The least time between two occasions on which sessions forget their plans.
const PLANS: Duration = Duration::from_millis(100);
/// The last part of the limit, which the store gives memory to keep free: an eighth.
const RELIEF_PART: usize = 8;
/// How long a statement that was stopped may take to free its memory.
const PATIENCE: Duration = Duration::from_secs(2);
/// The time that the store has to give memory, if it holds more than any statement, and the excess
/// is less than this part of the limit: it writes memstores first.
const STORE_PATIENCE: Duration = Duration::from_millis(500);
const STORE_EXCESS_PART: usize = 8;
/// A statement that holds less than this part of the limit is not stopped.
const SMALL_PART: usize = 128;
/// A statement that holds less than this part is not stopped for what the process itself takes.
const LARGE_PART: usize = 2;
/// The part of the budget, and the bytes, that are not for what is allocated: the program, stacks.
const OUTSIDE_PART: u64 = 16;
const OUTSIDE_BYTES: u64 = 24 << 20;
/// The part of the address space that is left which may be allocated, where it is bounded.
const SPACE_PART: u64 = 2;
/// The limit however little is left.
const LEAST_BYTES: u64 = 16 << 20;
/// By which part of the budget the process itself may exceed it: the allocator keeps some of what
/// is freed, and more of it the more threads allocate and free.
const RESIDENT_PART: u64 = 8;
/// By how much it may at least: the pages of the program count, too, whatever the budget.
const RESIDENT_BYTES: u64 = 32 << 20;
/// How often in a row it has to be found too large before another statement is stopped for that:
/// what was freed, and what the store has given for it, is given back a little later.
const RESIDENT_LOOKS: u32 = 40;
/// Sessions that a message names.
const NAMED: usize = 4;

/// The governor's thread, until it is dropped.
pub struct MemoryGovernor {
    stopping: Arc<AtomicBool>,
    thread: Option<JoinHandle<()>>,
}

impl MemoryGovernor {
    /// Holds the process to a budget. Where the allocator does not count nothing is held to it.
    ///
    /// # Errors
    ///
    /// What the system says of the thread.
    pub fn start(engine: &Arc<Engine>, memory_bytes: u64) -> std::io::Result<MemoryGovernor> {
        let stopping = Arc::new(AtomicBool::new(false));
        if memory::total_bytes() == 0 {
            return Ok(MemoryGovernor { stopping, thread: None });
        }
        memory::set_limit(limit_within_space(memory_bytes));
        let (engine, stops) = (Arc::downgrade(engine), Arc::clone(&stopping));
        let thread = std::thread::Builder::new()
            .name("memory-governor".to_owned())
            .spawn(move || run(&engine, &stops, memory_bytes))?;
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

/// Returns what may be allocated within a budget.
fn limit_bytes(memory_bytes: u64) -> u64 {
    let outside = memory_bytes / OUTSIDE_PART + OUTSIDE_BYTES;
    memory_bytes - outside.min(memory_bytes / 2)
}

/// Returns what the process may take within a budget before a statement is stopped for that.
fn resident_max(memory_bytes: u64) -> u64 {
    memory_bytes + (memory_bytes / RESIDENT_PART).max(RESIDENT_BYTES)
}

/// Returns the same, and no more than half of what the system lets the process map beside its
/// program and stacks (`ulimit -v`): where memory is refused the standard library ends the process,
/// and a value may be there twice while it is copied.
fn limit_within_space(memory_bytes: u64) -> u64 {
    let limit = limit_bytes(memory_bytes);
    let (Some(space), Some(mapped)) = (address_space(), status_bytes("VmSize:")) else {
        return limit;
    };
    let outside = mapped.saturating_sub(memory::total_bytes() as u64);
    limit.min(space.saturating_sub(outside) / SPACE_PART).max(LEAST_BYTES)
}

/// Returns the bytes that the process may map; `None` if nothing bounds them.
fn address_space() -> Option<u64> {
    let limits = std::fs::read_to_string("/proc/self/limits").ok()?;
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
            is_relieving = engine.is_some_and(|engine| engine.store().relieve_memory(None));
            if is_relieving {
                park_timeout(REFILL)
            } else {
                park()
            }
            continue;
        }
        // Threads have come, or gone.
        memory::set_limit(limit_within_space(memory_bytes));
        let resident = resident_bytes().saturating_sub(resident_max);
        if let Some(engine) = engine.upgrade() {
            is_relieving |= take_from_store(&engine, resident);
            if plans_forgotten.is_none_or(|at| at.elapsed() >= PLANS) && missing_bytes() > 0 {
                forget_plans(&engine);
                plans_forgotten = Some(Instant::now());
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
            true => *exceeded_since.get_or_insert_with(Instant::now),
            false => *exceeded_since.insert(Instant::now()),
        };
        if let Some(engine) = engine.upgrade() {
            let resident = usize::try_from(resident).unwrap_or(usize::MAX);
            relieve(&engine, &mut stopped, (resident, since));
        }
        park_timeout(LOOK);
    }
}

/// Returns what the process has in memory, as the system says; 0 if it does not.
fn resident_bytes() -> u64 {
    status_bytes("VmRSS:").unwrap_or(0)
}

/// Returns a size that the system knows of the process.
fn status_bytes(name: &str) -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix(name))?;
    Some(line.trim().trim_end_matches(" kB").parse::<u64>().ok()? << 10)
}

/// Has the store give memory if less than [`RELIEF_PART`] is free, or the process takes too much;
/// returns whether it was asked to.
fn take_from_store(engine: &Engine, resident: u64) -> bool {
    let wanted = (missing_bytes() as u64).max(resident);
    if wanted > 0 {
        // It gives more than it has to, in the end, where what is freed shows later.
        engine.store().relieve_memory(Some(wanted));
    }
    wanted > 0
}

/// Returns the bytes that are missing to [`RELIEF_PART`].
fn missing_bytes() -> usize {
    let wanted_free = memory::limit().unwrap_or(0) / RELIEF_PART;
    wanted_free.saturating_sub(memory::free_bytes())
}

/// Has sessions forget plans, as many as it takes: those that run nothing first, the largest of
/// them before others.
pub(crate) fn forget_plans(engine: &Engine) {
    let mut sessions = engine.sessions.all();
    sessions.sort_by_cached_key(|one| (one.is_at_work(), Reverse(one.account().byte_count())));
    for session in sessions {
        if missing_bytes() == 0 {
            return;
        }
        session.forget_plans();
    }
}

/// Stops the largest statement, unless what was stopped already frees enough. `stopped`: the
/// sessions, and when that was. `resident`: the bytes by which the process itself is too large;
/// `since`: when the limit was exceeded first.
fn relieve(
    engine: &Engine,
    stopped: &mut BTreeMap<i32, Instant>,
    (resident, since): (usize, Instant),
) {
    let sessions = engine.sessions.all();
    let (limit, total) = (memory::limit().unwrap_or(usize::MAX), memory::total_bytes());
    let is_ending = |one: &&Arc<Activity>| {
        // A session that has begun another statement since can be stopped again.
        let since = stopped.get(&one.session).filter(|_| one.is_stopped_for_memory());
        since.is_some_and(|since| since.elapsed() < PATIENCE)
    };
    let ending = sessions.iter().filter(is_ending).map(|one| one.account().byte_count());
    let excess = total.saturating_sub(limit).max(resident);
    if excess <= ending.sum() {
        return;
    }
    let candidates = sessions.iter().filter(|one| !is_ending(one) && one.is_at_work());
    let Some(largest) = candidates.max_by_key(|one| one.account().byte_count()) else { return };
    let is_the_stores = AccountId::SERVER.byte_count() > largest.account().byte_count();
    if is_the_stores && excess < limit / STORE_EXCESS_PART && since.elapsed() < STORE_PATIENCE {
        return;
    }
    let part = if total > limit { SMALL_PART } else { LARGE_PART };
    if largest.account().byte_count() >= limit / part {
        let detail = describe(&sessions, largest, (total, limit));
        tracing::warn!(session = largest.session, detail, "a statement is stopped for its memory");
        largest.stop_for_memory(MemoryShortage { detail });
        stopped.insert(largest.session, Instant::now());
    }
}

/// Fails if a session holds more than its equal part: called where the limit is exceeded.
pub(crate) fn check_session(engine: &Engine, session: &Activity) -> Result<()> {
    let sessions = engine.sessions.all();
    let (limit, total) = (memory::limit().unwrap_or(usize::MAX), memory::total_bytes());
    if session.account().byte_count() <= limit / 2 / sessions.len().max(1) {
        return Ok(());
    }
    let detail = describe(&sessions, session, (total, limit));
    Err(out_of_memory(MemoryShortage { detail }))
}

/// Says who holds what.
fn describe(
    sessions: &[Arc<Activity>],
    stopped: &Activity,
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
        false => format!("The process takes {} MiB, ", resident_bytes() >> 20),
    };
    format!(
        "{resident}{} MiB are in use, of {} MiB that --memory leaves: this session holds {} MiB{}{rest}, \
         caches and memstores {} MiB.",
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
    fn a_budget_leaves_something_for_the_program() {
        assert_eq!(limit_bytes(512 << 20), 456 << 20);
        assert_eq!(limit_bytes(32 << 20), 16 << 20);
    }
}
