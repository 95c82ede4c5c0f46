//! Memory accounting of the process: every allocated byte, by account.
//!
//! The allocator counts. So all memory of a session is charged to its account, for hash tables,
//! parse trees, long values or queued messages, without explicit calls.
//!
//! ```text
//!   total ──┬── server            caches, memstores, threads of the store
//!           ├── session 1         its statements, cursors, prepared statements, buffers
//!           └── session 2
//! ```
//!
//! A thread counts locally and updates the account for which it works ([`AccountId::enter`]) when
//! the difference reaches [`STEP_BYTES`]. Threads that read ahead for a session work for its
//! account. If memory changes its owner, as a block does that enters the cache or a definition that
//! is committed, [`give_to_server`] transfers the charge.
//!
//! Near the limit ([`set_limit`]) the [watcher](watch) is woken, and cancels the largest
//! statement once the limit is exceeded. Further above it, threads that work for sessions are
//! slowed down until memory is free, so that the watcher can act in time.
//!
//! Very large allocations ([`MAPPED_BYTES`]) are separate mappings of the system: a buffer that
//! grows is remapped, not copied, and is returned to the system when it is freed.
//!
//! # Invariants
//!
//! 1. The total is the number of allocated bytes, except for up to [`STEP_BYTES`] per thread;
//!    failed allocations do not count.
//! 2. Counting neither allocates nor waits for a lock. A debug assertion checks that it does not
//!    allocate.
//!
//! A change of the total is a change of one account. Memory that one session frees for another
//! makes one of the accounts too small: the largest account is an approximation.
//!
//! In a process with another allocator nothing is counted, and there is no limit.

#![allow(unsafe_code, reason = "an allocator is unsafe by its trait; this one forwards and counts")]

use std::alloc::{GlobalAlloc, Layout};
use std::cell::Cell;
use std::ffi::c_void;
use std::ptr::{copy_nonoverlapping, null_mut};
use std::sync::atomic::{AtomicBool, AtomicIsize, Ordering::Relaxed};
use std::thread::Thread;
use std::time::Duration;

use parking_lot::Mutex;
use rustix::mm::{MapFlags, MremapFlags, ProtFlags, mmap_anonymous, mremap, munmap};

/// Maximal difference of a thread's local count before it updates its account.
pub const STEP_BYTES: isize = 64 << 10;
/// Maximal number of accounts; further sessions share that of the server.
const ACCOUNTS_MAX: usize = 8_192;
/// Divisor of the limit: the excess above which threads are slowed down, a 16th.
const SLACK_PART: isize = 16;
/// Divisor of the limit: the last part, in which the watcher is woken, a quarter.
const WATCHED_PART: isize = 4;
/// Delay of a thread per step when it is slowed down.
const SLOW_STEP: Duration = Duration::from_millis(1);

/// Freed bytes of a thread after which they are returned to the system.
const GIVEN_BACK_BYTES: usize = 16 << 20;

/// Sum of all accounts.
static TOTAL: AtomicIsize = AtomicIsize::new(0);
static ACCOUNTS: [AtomicIsize; ACCOUNTS_MAX] = [const { AtomicIsize::new(0) }; ACCOUNTS_MAX];
static LIMIT: AtomicIsize = AtomicIsize::new(isize::MAX);
/// Unused account numbers, and the lowest number that was never used.
static FREE: Mutex<FreeAccounts> = Mutex::new(FreeAccounts { given_back: Vec::new(), next: 1 });
/// The thread to wake, and a flag that it was woken and has not rearmed.
static WATCHER: Mutex<Option<Thread>> = Mutex::new(None);
static WOKEN: AtomicBool = AtomicBool::new(false);

thread_local! {
    static LOCAL: Local =
        const { Local {
            pending: Cell::new(0),
            settled: Cell::new(0),
            account: Cell::new(0),
            freed: Cell::new(0),
            is_settling: Cell::new(false),
        } };
}

/// A thread's local count, and its account.
struct Local {
    pending: Cell<isize>,
    /// Sum of the counts that were added to accounts.
    settled: Cell<isize>,
    account: Cell<u32>,
    /// Bytes freed since [`give_back`] last called the allocator.
    freed: Cell<usize>,
    /// True while the count is added to the account.
    is_settling: Cell<bool>,
}

struct FreeAccounts {
    given_back: Vec<u32>,
    next: u32,
}

/// Allocator that counts the allocations of another one.
pub struct CountingAllocator<A>(pub A);

/// Size from which allocations are mappings: the sizes that mimalloc maps, too.
const MAPPED_BYTES: usize = 16 << 20;
/// The alignment of mappings.
const PAGE_BYTES: usize = 4096;

fn is_mapped(size: usize, align: usize) -> bool {
    size >= MAPPED_BYTES && align <= PAGE_BYTES && !cfg!(miri)
}

/// Maps zeroed memory of this size; null on failure.
fn map(size: usize) -> *mut u8 {
    let protection = ProtFlags::READ | ProtFlags::WRITE;
    // SAFETY: at an address of the system's choice, so no other memory is concerned.
    let mapped = unsafe { mmap_anonymous(null_mut(), size, protection, MapFlags::PRIVATE) };
    mapped.map_or(null_mut(), <*mut c_void>::cast)
}

impl<A: GlobalAlloc> CountingAllocator<A> {
    /// Moves an allocation between a mapping and the other allocator.
    ///
    /// # Safety
    ///
    /// As for [`GlobalAlloc::realloc`].
    #[cold]
    unsafe fn move_to(&self, start: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        // SAFETY: the caller keeps to the contract of `realloc`: the size is valid for the
        // alignment, and both allocations are as long as what is copied, and not the same.
        unsafe {
            let new = Layout::from_size_align_unchecked(new_size, layout.align());
            let moved = match is_mapped(new_size, layout.align()) {
                true => map(new_size),
                false => self.0.alloc(new),
            };
            if !moved.is_null() {
                copy_nonoverlapping(start, moved, layout.size().min(new_size));
                self.release(start, layout);
            }
            moved
        }
    }

    /// Frees an allocation of either kind.
    ///
    /// # Safety
    ///
    /// As for [`GlobalAlloc::dealloc`].
    #[inline]
    unsafe fn release(&self, start: *mut u8, layout: Layout) {
        if is_mapped(layout.size(), layout.align()) {
            // SAFETY: it was mapped with this size, and is not used any more. A failure to unmap
            // cannot be handled.
            let _ = unsafe { munmap(start.cast(), layout.size()) };
        } else {
            // SAFETY: it came from there; the caller keeps to the contract of the method.
            unsafe { self.0.dealloc(start, layout) }
        }
    }
}

// SAFETY: it forwards every call unchanged, except for mappings, which are identified by size and
// alignment; and it counts without allocating.
unsafe impl<A: GlobalAlloc> GlobalAlloc for CountingAllocator<A> {
    #[inline]
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let start = match is_mapped(layout.size(), layout.align()) {
            true => map(layout.size()),
            // SAFETY: the caller keeps to the contract of the same method.
            false => unsafe { self.0.alloc(layout) },
        };
        given(start, layout.size().cast_signed())
    }

    #[inline]
    unsafe fn dealloc(&self, start: *mut u8, layout: Layout) {
        count(-layout.size().cast_signed());
        // SAFETY: as above.
        unsafe { self.release(start, layout) }
    }

    #[inline]
    unsafe fn alloc_zeroed(&self, layout: Layout) -> *mut u8 {
        let start = match is_mapped(layout.size(), layout.align()) {
            true => map(layout.size()),
            // SAFETY: as above.
            false => unsafe { self.0.alloc_zeroed(layout) },
        };
        given(start, layout.size().cast_signed())
    }

    #[inline]
    unsafe fn realloc(&self, start: *mut u8, layout: Layout, new_size: usize) -> *mut u8 {
        let change = new_size.cast_signed() - layout.size().cast_signed();
        let was_mapped = is_mapped(layout.size(), layout.align());
        let start = match (was_mapped, is_mapped(new_size, layout.align())) {
            // SAFETY: as above.
            (false, false) => unsafe { self.0.realloc(start, layout, new_size) },
            (true, true) => {
                let (old_size, flags) = (layout.size(), MremapFlags::MAYMOVE);
                // SAFETY: it was mapped with the old size, and the caller uses it where it is now.
                let moved = unsafe { mremap(start.cast(), old_size, new_size, flags) };
                moved.map_or(null_mut(), <*mut c_void>::cast)
            }
            // SAFETY: as above.
            _ => unsafe { self.move_to(start, layout, new_size) },
        };
        given(start, change)
    }
}

/// Counts a change, unless the allocation failed, and returns its address.
#[inline]
fn given(start: *mut u8, change: isize) -> *mut u8 {
    if !start.is_null() {
        count(change);
    }
    start
}

#[inline]
fn count(change: isize) {
    LOCAL.with(|local| {
        debug_assert!(!local.is_settling.get(), "counting allocates");
        let pending = local.pending.get().wrapping_add(change);
        local.pending.set(pending);
        if pending.unsigned_abs() >= STEP_BYTES.unsigned_abs() {
            settle(local);
        }
    });
}

/// Adds a thread's local count to its account.
#[cold]
#[inline(never)]
fn settle(local: &Local) {
    local.is_settling.set(true);
    let change = local.pending.replace(0);
    local.settled.set(local.settled.get().wrapping_add(change));
    let account = local.account.get();
    ACCOUNTS[account as usize].fetch_add(change, Relaxed);
    let total = TOTAL.fetch_add(change, Relaxed) + change;
    if change < 0 {
        local.freed.set(local.freed.get() + change.unsigned_abs());
    }
    let limit = LIMIT.load(Relaxed);
    if change > 0 && total > limit - limit / WATCHED_PART {
        wake_watcher();
        if account != 0 && total - limit > limit / SLACK_PART {
            crate::env::process::sleep(SLOW_STEP);
        }
    }
    local.is_settling.set(false);
}

fn wake_watcher() {
    if WOKEN.swap(true, Relaxed) {
        return;
    }
    match WATCHER.try_lock().as_deref() {
        Some(Some(watcher)) => watcher.unpark(),
        // The next thread near the limit tries again.
        _ => WOKEN.store(false, Relaxed),
    }
}

/// Registers the current thread to be unparked when [`is_near_limit`] holds, and again after
/// [`rearm`].
pub fn watch() {
    *WATCHER.lock() = Some(std::thread::current());
}

/// Lets the next step near the limit wake the watcher.
pub fn rearm() {
    WOKEN.store(false, Relaxed);
}

/// Sets the limit of the total, in bytes.
pub fn set_limit(bytes: u64) {
    LIMIT.store(isize::try_from(bytes).unwrap_or(isize::MAX), Relaxed);
}

/// Returns the limit in bytes; `None` if there is none.
pub fn limit() -> Option<usize> {
    Some(LIMIT.load(Relaxed)).filter(|limit| *limit != isize::MAX).map(isize::cast_unsigned)
}

/// Returns the total of all accounts, in bytes.
pub fn total_bytes() -> usize {
    TOTAL.load(Relaxed).max(0).cast_unsigned()
}

/// Returns the bytes below the limit.
pub fn free_bytes() -> usize {
    LIMIT.load(Relaxed).saturating_sub(TOTAL.load(Relaxed)).max(0).cast_unsigned()
}

/// Returns whether the account of this thread could grow by `bytes` if all others were empty: a
/// request that could not should fail at once, instead of taking memory until it is cancelled.
pub fn may_take(bytes: usize) -> bool {
    let held = AccountId::current().byte_count();
    limit().is_none_or(|limit| held.saturating_add(bytes) <= limit)
}

/// Returns whether the total is above three quarters of the limit.
pub fn is_near_limit() -> bool {
    let limit = LIMIT.load(Relaxed);
    TOTAL.load(Relaxed) > limit - limit / WATCHED_PART
}

/// Returns whether the total exceeds the limit.
pub fn is_exceeded() -> bool {
    TOTAL.load(Relaxed) > LIMIT.load(Relaxed)
}

/// Runs a closure; returns its result and the bytes that this thread has allocated in it, less
/// those that it has freed: the size of the result, if the closure changes nothing else.
pub fn measure<T>(run: impl FnOnce() -> T) -> (T, isize) {
    let count = || LOCAL.with(|local| local.settled.get().wrapping_add(local.pending.get()));
    let before = count();
    let result = run();
    (result, count().wrapping_sub(before))
}

/// Has the allocator return memory that this thread has freed to the system, if that is much:
/// otherwise it is cached for the thread, which may be about to wait.
pub fn give_back() {
    let is_much = LOCAL.with(|local| {
        let is_much = local.freed.get() >= GIVEN_BACK_BYTES;
        if is_much {
            local.freed.set(0);
        }
        is_much
    });
    if is_much {
        collect();
    }
}

#[cfg(feature = "mimalloc")]
fn collect() {
    use libmimalloc_sys as _;
    unsafe extern "C" {
        /// Frees unused memory of all threads and returns it to the system; part of mimalloc's
        /// interface.
        safe fn mi_collect(force: bool);
    }
    mi_collect(true);
}

#[cfg(not(feature = "mimalloc"))]
fn collect() {}

/// Transfers the charge for `bytes` from the account of this thread to the server. Negative: the
/// opposite direction.
pub fn give_to_server(bytes: i64) {
    let account = LOCAL.with(|local| local.account.get());
    let bytes = isize::try_from(bytes).unwrap_or(0);
    if account != 0 && limit().is_some() {
        ACCOUNTS[account as usize].fetch_sub(bytes, Relaxed);
        ACCOUNTS[0].fetch_add(bytes, Relaxed);
    }
}

/// Number of an account.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct AccountId(u32);

impl AccountId {
    /// The account of the server, for memory of no session.
    pub const SERVER: AccountId = AccountId(0);

    /// Returns the account for which this thread works.
    pub fn current() -> AccountId {
        AccountId(LOCAL.with(|local| local.account.get()))
    }

    /// Lets this thread work for the account, until the guard is dropped.
    pub fn enter(self) -> EnteredAccount {
        let before = LOCAL.with(|local| {
            settle(local);
            local.account.replace(self.0)
        });
        EnteredAccount { before, _of_this_thread: std::marker::PhantomData }
    }

    /// Returns the bytes of the account.
    pub fn byte_count(self) -> usize {
        ACCOUNTS[self.0 as usize].load(Relaxed).max(0).cast_unsigned()
    }
}

/// Guard of a thread's work for an account.
#[must_use]
pub struct EnteredAccount {
    before: u32,
    _of_this_thread: std::marker::PhantomData<*const ()>,
}

impl Drop for EnteredAccount {
    fn drop(&mut self) {
        LOCAL.with(|local| {
            settle(local);
            local.account.set(self.before);
        });
        give_back();
    }
}

/// The account of a session; dropping it closes the account.
#[derive(Debug)]
pub struct Account(AccountId);

impl Account {
    /// Opens an account.
    pub fn open() -> Account {
        let mut free = FREE.lock();
        let account = free.given_back.pop().or_else(|| {
            let next = Some(free.next).filter(|next| (*next as usize) < ACCOUNTS_MAX)?;
            free.next += 1;
            Some(next)
        });
        Account(account.map_or(AccountId::SERVER, AccountId))
    }

    /// Returns its number.
    pub fn id(&self) -> AccountId {
        self.0
    }
}

impl Drop for Account {
    fn drop(&mut self) {
        let AccountId(account) = self.0;
        if account != 0 {
            // Memory that is freed later is freed for the server.
            let rest = ACCOUNTS[account as usize].swap(0, Relaxed);
            ACCOUNTS[0].fetch_add(rest, Relaxed);
            let mut free = FREE.lock();
            debug_assert!(account < free.next, "account {account} was never open");
            debug_assert!(!free.given_back.contains(&account), "account {account} closes twice");
            free.given_back.push(account);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Held by tests that count, because others would change the total.
    static COUNTING: Mutex<()> = Mutex::new(());

    #[test]
    fn reallocation_preserves_bytes_across_mapping_threshold() {
        let _counting = COUNTING.lock();
        let allocator = CountingAllocator(std::alloc::System);
        let sizes = [1000, 20 << 20, (40 << 20) + 7, 17 << 20, MAPPED_BYTES, MAPPED_BYTES - 1, 9];
        let layout = |size| Layout::from_size_align(size, 8).unwrap();
        let before = total_bytes();
        // SAFETY: each size is that of the allocation, and no byte beyond it is touched.
        unsafe {
            let mut start = allocator.alloc(layout(sizes[0]));
            (0..sizes[0]).for_each(|at| start.add(at).write(at as u8));
            for pair in sizes.windows(2) {
                start = allocator.realloc(start, layout(pair[0]), pair[1]);
                assert!(!start.is_null());
                let kept = (0..sizes[0].min(pair[1])).all(|at| start.add(at).read() == at as u8);
                assert!(kept, "from {} to {}", pair[0], pair[1]);
                start.add(pair[1] - 1).write(8);
            }
            allocator.dealloc(start, layout(sizes[6]));
            let zeroed = allocator.alloc_zeroed(layout(MAPPED_BYTES));
            assert_eq!(zeroed.add(MAPPED_BYTES - 1).read(), 0);
            allocator.dealloc(zeroed, layout(MAPPED_BYTES));
            let refused = allocator.alloc(layout(isize::MAX as usize / 2));
            assert!(refused.is_null(), "nobody has so much");
            let small = allocator.alloc(layout(20 << 20));
            let size = isize::MAX as usize / 2;
            assert!(allocator.realloc(small, layout(20 << 20), size).is_null());
            allocator.dealloc(small, layout(20 << 20));
        }
        drop(AccountId::SERVER.enter());
        assert_eq!(total_bytes(), before);
    }

    /// Without the counting allocator: its calls are made explicitly.
    #[test]
    fn allocations_are_charged_to_thread_account() {
        let _counting = COUNTING.lock();
        let [first, second] = [0, 1].map(|_| Account::open());
        assert_ne!(first.id(), second.id());
        let before = total_bytes();
        std::thread::scope(|scope| {
            scope.spawn(|| {
                let _first = first.id().enter();
                count(100);
                assert_eq!(first.id().byte_count(), 0, "less than a step");
                {
                    let _second = second.id().enter();
                    assert_eq!(first.id().byte_count(), 100);
                    count(2 * STEP_BYTES);
                    assert_eq!(second.id().byte_count(), 128 << 10);
                }
                count(-60);
                assert_eq!(AccountId::current(), first.id());
            });
        });
        assert_eq!(first.id().byte_count(), 40);
        assert_eq!(total_bytes() - before, (128 << 10) + 40);
        let server = AccountId::SERVER.byte_count();
        let freed = second.id();
        drop(second);
        assert_eq!((freed.byte_count(), AccountId::SERVER.byte_count()), (0, server + (128 << 10)));
        assert_eq!(Account::open().id(), freed, "it is used again");
        count(-(2 * STEP_BYTES) - 40);
    }
}
