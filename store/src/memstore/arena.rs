//! Arena of a memstore: memory chunks that are only appended to, and are freed together.
//!
//! ```text
//!   chunk   | cell | cell | cell | cell ->          free           <- node | node |
//! ```
//!
//! The first chunk is small and each next one as large as those before it together, up to
//! [`CHUNK_BYTES`], so that a memstore holds little more than it needs and an empty one nothing.
//! Chunks of full size come from a pool that all memstores of the process share, and return to it
//! when the memstore is dropped: their pages stay mapped from one memstore to the next (HBase's
//! MSLAB and its chunk pool). The holders of a [`PoolPermit`] limit the pool; it is empty while the
//! memory of the process is nearly used up.
//!
//! # Invariants
//!
//! 1. An allocation of an arena stays at its address, unmodified by the arena, until the arena is
//!    dropped.
//! 2. `held_bytes` is the sum of the sizes of the chunks; `used_bytes` that of the allocations.
//!
//! Miri checks 1 in the tests of memstores; `Arena::check` asserts 2 in debug builds.

#![allow(unsafe_code, reason = "memory that readers share while more is taken; run under Miri")]

use std::alloc::{Layout, alloc_zeroed, dealloc, handle_alloc_error};
use std::marker::PhantomData;
use std::mem::size_of;
use std::ptr::NonNull;

use crate::cell::{KEY_TAIL_BYTES, KeyParts};
use crate::memory::{give_to_server, is_near_limit};

/// The size of a chunk of the pool.
pub(super) const CHUNK_BYTES: usize = 2 << 20;
/// The size of an arena's first chunk: enough for a few cells of a small transaction.
const FIRST_CHUNK_BYTES: usize = 1 << 10;
/// Allocations above this size get a separate chunk, so that little is left over in others.
const SHARED_BYTES_MAX: usize = CHUNK_BYTES / 8;
/// The alignment of chunks and of allocations.
const CHUNK_ALIGN: usize = 64;
const TAKEN_ALIGN: usize = 8;

static POOL: parking_lot::Mutex<Pool> =
    parking_lot::Mutex::new(Pool { free: Vec::new(), taken_count: 0, chunks_max: 0 });

/// Pool of chunks of full size.
struct Pool {
    /// Free chunks for the next memstore.
    free: Vec<Chunk>,
    /// Number of chunks in use by memstores.
    taken_count: usize,
    /// Maximal number of free and used chunks, beyond which none is pooled.
    chunks_max: usize,
}

impl Pool {
    /// Returns the maximal number of free chunks.
    fn free_max(&self) -> usize {
        self.chunks_max.saturating_sub(self.taken_count)
    }
}

/// Permission for memstores to leave memory in the pool, in addition to that of other holders,
/// until it is dropped. Otherwise memory that memstores return to the allocator stays with the
/// process, too, for an unknown time, and in addition to the memory of the next memstores.
#[allow(unreachable_pub, reason = "the model checker's tests include this file as well")]
pub struct PoolPermit {
    chunk_count: usize,
}

impl PoolPermit {
    /// Returns a permission to pool chunks while memstores and pool together take less than
    /// `byte_count` bytes.
    #[allow(unreachable_pub, reason = "as above")]
    pub fn within(byte_count: u64) -> PoolPermit {
        let bytes = usize::try_from(byte_count).unwrap_or(usize::MAX);
        let chunk_count = bytes / CHUNK_BYTES;
        POOL.lock().chunks_max += chunk_count;
        PoolPermit { chunk_count }
    }
}

impl Drop for PoolPermit {
    fn drop(&mut self) {
        let mut pool = POOL.lock();
        pool.chunks_max -= self.chunk_count;
        let kept = pool.free_max().min(pool.free.len());
        let surplus = pool.free.split_off(kept);
        drop(pool);
        surplus.into_iter().for_each(Chunk::give_back);
    }
}

/// Returns the free chunks of the pool to the allocator.
#[allow(unreachable_pub, reason = "as above")]
pub fn release_spare() {
    let free = std::mem::take(&mut POOL.lock().free);
    free.into_iter().for_each(Chunk::give_back);
}

/// Memory from the allocator or the pool. Its bytes are initialized.
struct Chunk {
    start: NonNull<u8>,
    bytes: usize,
}

// SAFETY: a chunk owns its memory, as a box does.
unsafe impl Send for Chunk {}

impl Chunk {
    fn layout(bytes: usize) -> Layout {
        Layout::from_size_align(bytes, CHUNK_ALIGN).expect("no cell is so large")
    }

    fn new(bytes: usize) -> Chunk {
        if bytes == CHUNK_BYTES {
            let mut pool = POOL.lock();
            pool.taken_count += 1;
            if let Some(chunk) = pool.free.pop() {
                return chunk;
            }
        }
        let layout = Chunk::layout(bytes);
        // SAFETY: the size is not zero: every caller asks for a header at least.
        let start = unsafe { alloc_zeroed(layout) };
        let Some(start) = NonNull::new(start) else { handle_alloc_error(layout) };
        give_to_server(bytes as i64);
        Chunk { start, bytes }
    }
}

impl Chunk {
    /// Returns the memory to the allocator.
    fn give_back(self) {
        give_to_server(-(self.bytes as i64));
        // SAFETY: `start` was allocated with this layout, and this is the only owner: without its
        // `drop`, which would use the pool.
        unsafe { dealloc(self.start.as_ptr(), Chunk::layout(self.bytes)) };
        std::mem::forget(self);
    }
}

impl Drop for Chunk {
    fn drop(&mut self) {
        let chunk = Chunk { start: self.start, bytes: self.bytes };
        if self.bytes == CHUNK_BYTES {
            let mut pool = POOL.lock();
            debug_assert!(pool.taken_count > 0, "a chunk returns to the pool twice");
            pool.taken_count -= 1;
            if pool.free.len() < pool.free_max() && !is_near_limit() {
                pool.free.push(chunk);
                return;
            }
        }
        chunk.give_back();
    }
}

/// Allocator of one memstore.
#[derive(Default)]
pub(super) struct Arena {
    /// The last one is the current one.
    chunks: Vec<Chunk>,
    /// The free part of the last chunk.
    free_start: usize,
    free_end: usize,
    held_bytes: u64,
    used_bytes: u64,
}

impl Arena {
    /// Returns the bytes of all chunks.
    pub(super) fn held_bytes(&self) -> u64 {
        self.held_bytes
    }

    /// Returns the bytes of all allocations.
    pub(super) fn used_bytes(&self) -> u64 {
        self.used_bytes
    }

    /// Moves `value` into the arena. It is never dropped.
    pub(super) fn place<T>(&mut self, value: T) -> NonNull<T> {
        const { assert!(align_of::<T>() <= TAKEN_ALIGN) };
        let bytes = size_of::<T>().next_multiple_of(TAKEN_ALIGN);
        let place = match self.reserve(bytes) {
            Some(own) => own,
            None => {
                self.free_end -= bytes;
                self.at(self.free_end)
            }
        }
        .cast::<T>();
        // SAFETY: `bytes` bytes from here belong to the caller alone, and are aligned.
        unsafe { place.write(value) };
        place
    }

    /// Copies a cell into the arena.
    pub(super) fn place_cell(&mut self, key: &KeyParts<'_>, value: &[u8]) -> CellPtr {
        let key_length = key.row.len() + key.qualifier.len() + KEY_TAIL_BYTES;
        let bytes = size_of::<CellHead>() + key_length + value.len();
        let bytes = bytes.next_multiple_of(TAKEN_ALIGN);
        let head = match self.reserve(bytes) {
            Some(own) => own,
            None => {
                self.free_start += bytes;
                self.at(self.free_start - bytes)
            }
        }
        .cast::<CellHead>();
        let length = |length: usize| u32::try_from(length).expect("a cell is below 4 GiB");
        // SAFETY: as in `place`: the head and the bytes after it are the caller's alone, aligned,
        // and initialized, because a chunk is.
        let rest = unsafe {
            let lengths =
                CellHead { key_length: length(key_length), value_length: length(value.len()) };
            head.write(lengths);
            std::slice::from_raw_parts_mut(
                head.add(1).cast::<u8>().as_ptr(),
                key_length + value.len(),
            )
        };
        let (key_bytes, value_bytes) = rest.split_at_mut(key_length);
        key.encode_into(key_bytes);
        value_bytes.copy_from_slice(value);
        CellPtr(head)
    }

    fn at(&self, offset: usize) -> NonNull<u8> {
        let chunk = self.chunks.last().expect("a chunk was reserved");
        debug_assert!(offset <= chunk.bytes);
        // SAFETY: the free part lies within the chunk.
        unsafe { chunk.start.add(offset) }
    }

    /// Ensures that the free part of the last chunk has `bytes` bytes, or returns the start of a
    /// separate chunk of that size.
    fn reserve(&mut self, bytes: usize) -> Option<NonNull<u8>> {
        self.used_bytes += bytes as u64;
        if self.free_end - self.free_start >= bytes {
            return None;
        }
        if bytes > SHARED_BYTES_MAX {
            let chunk = Chunk::new(bytes);
            let start = chunk.start;
            self.held_bytes += bytes as u64;
            self.chunks.push(chunk);
            let last = self.chunks.len() - 1;
            if last > 0 {
                self.chunks.swap(last - 1, last);
            }
            self.check();
            return Some(start);
        }
        // As much as is held already: at most half of it is free.
        let size = (self.held_bytes as usize).max(bytes).max(FIRST_CHUNK_BYTES);
        let size = size.next_power_of_two().min(CHUNK_BYTES);
        self.chunks.push(Chunk::new(size));
        self.held_bytes += size as u64;
        self.free_start = 0;
        self.free_end = size;
        self.check();
        None
    }

    /// Asserts, in debug builds, that the counts are those of the chunks, after one was added.
    fn check(&self) {
        if cfg!(debug_assertions) {
            let held: u64 = self.chunks.iter().map(|chunk| chunk.bytes as u64).sum();
            assert_eq!(held, self.held_bytes, "bytes of the chunks");
            assert!(self.used_bytes <= held, "more is used than is held");
            let last = self.chunks.last().map_or(0, |chunk| chunk.bytes);
            assert!(
                self.free_start <= self.free_end && self.free_end <= last,
                "the free part is in the last chunk"
            );
        }
    }
}

#[repr(C)]
#[derive(Clone, Copy)]
struct CellHead {
    key_length: u32,
    value_length: u32,
}

/// Pointer to a cell in an arena: lengths, then key, then value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct CellPtr(NonNull<CellHead>);

impl CellPtr {
    /// Returns the pointer in the form stored in nodes.
    pub(super) fn as_ptr(self) -> *mut () {
        self.0.as_ptr().cast()
    }

    /// Returns the pointer that [`CellPtr::as_ptr`] returned; `None` if there is none.
    pub(super) fn from_ptr(pointer: *mut ()) -> Option<CellPtr> {
        NonNull::new(pointer.cast()).map(CellPtr)
    }

    /// Returns the cell.
    ///
    /// # Safety
    ///
    /// The arena that placed it outlives `'a`, and its placing happened before.
    pub(super) unsafe fn cell<'a>(self) -> ArenaCell<'a> {
        ArenaCell { head: self, arena: PhantomData }
    }
}

// SAFETY: what it points to is only read.
unsafe impl Send for CellPtr {}
// SAFETY: as above.
unsafe impl Sync for CellPtr {}

/// A cell in an arena.
#[derive(Clone, Copy)]
pub(super) struct ArenaCell<'a> {
    head: CellPtr,
    arena: PhantomData<&'a [u8]>,
}

impl<'a> ArenaCell<'a> {
    /// Returns its address.
    pub(super) fn pointer(self) -> CellPtr {
        self.head
    }

    /// Prefetches its first cache lines.
    pub(super) fn prefetch(self) {
        let start = self.head.0.as_ptr().cast::<u8>().cast_const();
        prefetch(start);
        prefetch(start.wrapping_add(64));
    }

    /// Returns its encoded key.
    pub(super) fn key(self) -> &'a [u8] {
        let head = self.head.0;
        // SAFETY: `place_cell` wrote the head and as many bytes after it; they are never written
        // again, and stay for `'a`.
        unsafe {
            let length = (*head.as_ptr()).key_length as usize;
            std::slice::from_raw_parts(head.add(1).cast::<u8>().as_ptr(), length)
        }
    }

    /// Returns its value.
    pub(super) fn value(self) -> &'a [u8] {
        let head = self.head.0;
        // SAFETY: as for the key.
        unsafe {
            let CellHead { key_length, value_length } = *head.as_ptr();
            let start = head.add(1).cast::<u8>().add(key_length as usize);
            std::slice::from_raw_parts(start.as_ptr(), value_length as usize)
        }
    }
}

/// Prefetches a cache line; has no effect on correctness.
pub(super) fn prefetch(pointer: *const u8) {
    #[cfg(all(target_arch = "x86_64", not(miri)))]
    // SAFETY: a prefetch never faults, regardless of the address.
    unsafe {
        use std::arch::x86_64::{_MM_HINT_T0, _mm_prefetch};
        _mm_prefetch::<_MM_HINT_T0>(pointer.cast());
    }
    #[cfg(not(all(target_arch = "x86_64", not(miri))))]
    let _ = pointer;
}
