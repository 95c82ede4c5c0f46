//! Chunked processing of long values with interrupt checks: copies, growing buffers and loops
//! check the flag between chunks.
//!
//! A value has up to a gigabyte. Copying one takes a second, most of it for page faults; other
//! processing takes longer. A statement should end within a tenth of a second of its
//! cancellation, so such work is never done in one step: texts and bytes are processed in chunks,
//! buffers grow without a copy in one step, and loops count their work with a [`InterruptPacer`].
//!
//! # Invariants
//!
//! 1. The first check follows the first chunk: shorter values have no overhead, and short
//!    constants are computed at plan time, where any check fails
//!    ([`EvalContext::planning`](crate::context::EvalContext::planning)).
//! 2. Results are never truncated: a failed check is an error.
//! 3. Buffers of long values are allocated fallibly ([`InterruptPacer::buffer`]): the memory limit
//!    of the statement or the system may reject them. The standard library aborts the process if an
//!    infallible allocation fails.

use std::collections::TryReserveError;

use memchr::memmem::Finder;

use crate::error::{Error, Result};
use crate::interrupt::Interrupt;

/// Bytes between two checks, or steps of about the cost of a byte: less than a millisecond, or a
/// few in a debug build.
pub const CHUNK_BYTES: usize = 1 << 20;

/// PostgreSQL's `MaxAllocSize`: the maximum bytes of a value.
pub const MAX_BYTES: usize = 0x3fff_ffff;

/// Work counter that checks the interrupt flag after each [`CHUNK_BYTES`] of work.
#[derive(Debug)]
pub struct InterruptPacer<'a> {
    interrupt: &'a Interrupt,
    left: usize,
}

impl<'a> InterruptPacer<'a> {
    /// Creates a counter with no work done.
    pub fn new(interrupt: &'a Interrupt) -> InterruptPacer<'a> {
        InterruptPacer { interrupt, left: CHUNK_BYTES }
    }

    /// Creates a counter that checks no flag, for values that are known to be short and for
    /// infallible functions.
    pub fn without_interrupt() -> InterruptPacer<'static> {
        static NEVER: Interrupt = Interrupt::NEVER;
        InterruptPacer::new(&NEVER)
    }

    /// Returns an empty buffer with a capacity in bytes.
    ///
    /// # Errors
    ///
    /// `53200` if the memory is not available; likewise where a buffer grows.
    #[inline]
    pub fn buffer<B: GrowableBuffer>(&self, capacity: usize) -> Result<B> {
        let mut out = B::default();
        if capacity > 0 {
            self.grow(&mut out, capacity)?;
        }
        Ok(out)
    }

    fn grow<B: GrowableBuffer>(&self, out: &mut B, capacity: usize) -> Result<()> {
        let is_allowed = capacity < CHUNK_BYTES || self.interrupt.may_allocate(capacity);
        match is_allowed && out.try_grow(capacity).is_ok() {
            true => Ok(()),
            false => Err(no_room(capacity)),
        }
    }

    /// Returns an empty list with a capacity in items.
    ///
    /// # Errors
    ///
    /// As for [`InterruptPacer::buffer`].
    pub fn list<T>(&self, count: usize) -> Result<Vec<T>> {
        let mut items = Vec::new();
        self.reserve_items(&mut items, count)?;
        Ok(items)
    }

    fn reserve_items<T>(&self, items: &mut Vec<T>, count: usize) -> Result<()> {
        let bytes = count.saturating_mul(size_of::<T>());
        let is_allowed = bytes < CHUNK_BYTES || self.interrupt.may_allocate(bytes);
        match is_allowed && items.try_reserve_exact(count).is_ok() {
            true => Ok(()),
            false => Err(no_room(bytes)),
        }
    }

    /// Returns the interrupt.
    pub fn interrupt(&self) -> &'a Interrupt {
        self.interrupt
    }

    /// Counts steps of completed work.
    ///
    /// # Errors
    ///
    /// `57014` if the flag is set, here and in all functions with a `InterruptPacer`.
    #[inline]
    pub fn count_steps(&mut self, steps: usize) -> Result<()> {
        match self.left.checked_sub(steps) {
            Some(left) => {
                self.left = left;
                Ok(())
            }
            None => self.look(),
        }
    }

    #[cold]
    fn look(&mut self) -> Result<()> {
        self.left = CHUNK_BYTES;
        self.interrupt.check()
    }

    /// Reserves space for `more` bytes in a buffer; a reallocation is copied in chunks.
    #[inline]
    pub fn reserve<B: GrowableBuffer>(&mut self, out: &mut B, more: usize) -> Result<()> {
        let length = out.part().length();
        if out.capacity() - length >= more {
            return Ok(());
        }
        self.make_room(out, more)
    }

    #[inline(never)]
    fn make_room<B: GrowableBuffer>(&mut self, out: &mut B, more: usize) -> Result<()> {
        let length = out.part().length();
        let capacity = (length + more).max(out.capacity() * 2);
        if length < CHUNK_BYTES {
            return self.grow(out, capacity);
        }
        // Growth by a part of the length bounds how often the content is copied.
        let room_min = more.max(length / 16);
        let mut room = capacity - length;
        let larger = loop {
            match self.buffer(length + room) {
                Ok(larger) => break larger,
                Err(error) if room <= room_min => return Err(error),
                Err(_) => room = (room / 2).max(room_min),
            }
        };
        let old = std::mem::replace(out, larger);
        self.put(out, old.part())
    }

    #[inline]
    fn put<B: GrowableBuffer>(&mut self, out: &mut B, part: &B::Part) -> Result<()> {
        debug_assert!(out.capacity() - out.part().length() >= part.length(), "no space");
        if part.length() <= CHUNK_BYTES {
            out.put(part);
            return self.count_steps(part.length());
        }
        for piece in chunks(part) {
            out.put(piece);
            self.count_steps(piece.length())?;
        }
        Ok(())
    }

    /// Appends a part of any length.
    #[inline]
    pub fn append<B: GrowableBuffer>(&mut self, out: &mut B, part: &B::Part) -> Result<()> {
        self.reserve(out, part.length())?;
        self.put(out, part)
    }

    /// Appends to a text for which PostgreSQL would use a `StringInfo`.
    ///
    /// # Errors
    ///
    /// `54000` if it would exceed a gigabyte.
    pub fn enlarge<B: GrowableBuffer>(&mut self, out: &mut B, part: &B::Part) -> Result<()> {
        let (have, more) = (out.part().length(), part.length());
        if have + more >= MAX_BYTES {
            bail!(PROGRAM_LIMIT_EXCEEDED: "out of memory";
                detail "Cannot enlarge string buffer containing {have} bytes by {more} more bytes.");
        }
        self.append(out, part)
    }

    /// Counts steps and reserves space for the next few bytes of a buffer.
    #[inline]
    pub fn step<B: GrowableBuffer>(&mut self, out: &mut B, steps: usize) -> Result<()> {
        const ROOM: usize = 64;
        if out.capacity() - out.part().length() < ROOM {
            self.reserve(out, ROOM)?;
        }
        self.count_steps(steps)
    }

    /// Returns a copy of a part of any length.
    pub fn copy<B: GrowableBuffer>(&mut self, part: &B::Part) -> Result<B> {
        let mut out: B = self.buffer(part.length())?;
        self.append(&mut out, part)?;
        Ok(out)
    }

    /// Returns a text of characters, with an estimate of its bytes.
    pub fn collect(
        &mut self,
        characters: impl Iterator<Item = char>,
        bytes: usize,
    ) -> Result<String> {
        let mut out: String = self.buffer(bytes)?;
        for character in characters {
            self.step(&mut out, 1)?;
            out.push(character);
        }
        Ok(out)
    }

    /// Returns the longest valid UTF-8 prefix of bytes.
    pub fn decode(&mut self, bytes: &[u8]) -> Result<String> {
        let mut text: String = self.buffer(bytes.len())?;
        let mut rest = bytes;
        while let Some(piece) = chunks(rest).next() {
            let valid = match std::str::from_utf8(piece) {
                Ok(valid) => valid,
                // The end of the chunk may cut a character.
                Err(error) => std::str::from_utf8(&piece[..error.valid_up_to()]).unwrap_or(""),
            };
            if valid.is_empty() {
                break;
            }
            self.append(&mut text, valid)?;
            rest = &rest[valid.len()..];
        }
        Ok(text)
    }

    /// Converts bytes to a text.
    ///
    /// # Panics
    ///
    /// If they are not UTF-8.
    pub fn text(&mut self, bytes: Vec<u8>) -> Result<String> {
        const UTF_8: &str = "the text of a value is UTF-8";
        if bytes.len() < CHUNK_BYTES {
            return Ok(String::from_utf8(bytes).expect(UTF_8));
        }
        let text = self.decode(&bytes)?;
        assert!(text.len() == bytes.len(), "{UTF_8}");
        Ok(text)
    }

    /// Appends to a list; a reallocation is copied in chunks.
    #[inline]
    pub fn push<T>(&mut self, items: &mut Vec<T>, item: T) -> Result<()> {
        if items.len() == items.capacity() && items.len() * size_of::<T>() >= CHUNK_BYTES {
            self.move_items(items)?;
        }
        items.push(item);
        self.count_steps(size_of::<T>())
    }

    #[cold]
    fn move_items<T>(&mut self, items: &mut Vec<T>) -> Result<()> {
        let larger = self.list(items.len() * 2)?;
        let mut old = std::mem::replace(items, larger).into_iter();
        while old.len() > 0 {
            items.extend(old.by_ref().take(CHUNK_BYTES / 64));
            self.count_steps(CHUNK_BYTES / 64 * size_of::<T>())?;
        }
        Ok(())
    }

    /// Returns a copy of a list.
    pub fn clone_items<T: Clone>(&mut self, items: &[T]) -> Result<Vec<T>> {
        let mut out = self.list(items.len())?;
        for piece in items.chunks(CHUNK_BYTES / 64) {
            out.extend_from_slice(piece);
            self.count_steps(size_of_val(piece))?;
        }
        Ok(out)
    }

    /// Returns the byte position of the first occurrence of `sought`.
    pub fn find(&mut self, sought: &Finder<'_>, within: &[u8]) -> Result<Option<usize>> {
        let needle = sought.needle().len();
        let step = CHUNK_BYTES.max(needle);
        let mut start = 0;
        loop {
            let end = within.len().min(start + step + needle.saturating_sub(1));
            if let Some(at) = sought.find(&within[start..end]) {
                self.count_steps(at)?;
                return Ok(Some(start + at));
            }
            if end == within.len() {
                self.count_steps(end - start)?;
                return Ok(None);
            }
            self.count_steps(step)?;
            start += step;
        }
    }

    /// Returns the number of characters.
    pub fn count(&mut self, text: &str) -> Result<usize> {
        let mut count = 0;
        for piece in chunks(text) {
            count += piece.chars().count();
            self.count_steps(piece.len())?;
        }
        Ok(count)
    }

    /// Returns the byte position of character `index`; the length if there are fewer characters.
    pub fn byte_position(&mut self, text: &str, index: usize) -> Result<usize> {
        let (mut start, mut left) = (0, index);
        for piece in chunks(text) {
            self.count_steps(piece.len())?;
            let count = if piece.is_ascii() { piece.len() } else { piece.chars().count() };
            if left < count {
                let within = match piece.len() == count {
                    true => left,
                    false => piece.char_indices().nth(left).map_or(piece.len(), |(at, _)| at),
                };
                return Ok(start + within);
            }
            left -= count;
            start += piece.len();
        }
        Ok(start)
    }

    /// Returns a text with `change` applied to each character.
    pub fn map_chars(
        &mut self,
        text: &str,
        mut change: impl FnMut(char) -> Option<char>,
    ) -> Result<String> {
        let mut out: String = self.buffer(text.len())?;
        for piece in chunks(text) {
            self.count_steps(piece.len())?;
            self.reserve(&mut out, piece.len())?;
            out.extend(piece.chars().filter_map(&mut change));
        }
        Ok(out)
    }
}

/// Returns the error of a value that exceeds the available memory.
#[cold]
fn no_room(bytes: usize) -> Error {
    err!(OUT_OF_MEMORY: "out of memory"; detail "Failed on request of size {bytes} ({} MiB).", bytes >> 20)
}

/// A text or bytes, which can be split into chunks.
pub trait ChunkedSlice {
    /// Returns the number of bytes.
    fn length(&self) -> usize;

    /// Returns about the first `length` bytes, ending at a character boundary, and the rest.
    fn cut(&self, length: usize) -> (&Self, &Self);
}

impl ChunkedSlice for str {
    fn length(&self) -> usize {
        self.len()
    }

    fn cut(&self, length: usize) -> (&str, &str) {
        self.split_at(self.floor_char_boundary(length))
    }
}

impl ChunkedSlice for [u8] {
    fn length(&self) -> usize {
        self.len()
    }

    fn cut(&self, length: usize) -> (&[u8], &[u8]) {
        self.split_at(length.min(self.len()))
    }
}

/// A growable text or bytes.
pub trait GrowableBuffer: Default {
    /// The borrowed form of its content.
    type Part: ChunkedSlice + ?Sized;

    /// Returns its capacity in bytes.
    fn capacity(&self) -> usize;
    /// Returns its content.
    fn part(&self) -> &Self::Part;
    /// Appends a part for which space was reserved.
    fn put(&mut self, part: &Self::Part);
    /// Reallocates to a capacity in bytes, if the memory is available.
    fn try_grow(&mut self, capacity: usize) -> std::result::Result<(), TryReserveError>;
}

impl GrowableBuffer for String {
    type Part = str;

    fn capacity(&self) -> usize {
        self.capacity()
    }

    fn part(&self) -> &str {
        self
    }

    #[inline]
    fn put(&mut self, part: &str) {
        self.push_str(part);
    }

    fn try_grow(&mut self, capacity: usize) -> std::result::Result<(), TryReserveError> {
        self.try_reserve(capacity - self.len())
    }
}

impl GrowableBuffer for Vec<u8> {
    type Part = [u8];

    fn capacity(&self) -> usize {
        self.capacity()
    }

    fn part(&self) -> &[u8] {
        self
    }

    #[inline]
    fn put(&mut self, part: &[u8]) {
        self.extend_from_slice(part);
    }

    fn try_grow(&mut self, capacity: usize) -> std::result::Result<(), TryReserveError> {
        self.try_reserve(capacity - self.len())
    }
}

/// Returns the chunks of a text or bytes.
pub fn chunks<P: ChunkedSlice + ?Sized>(part: &P) -> impl Iterator<Item = &P> {
    let mut rest = part;
    std::iter::from_fn(move || {
        let (piece, behind) = rest.cut(CHUNK_BYTES);
        rest = behind;
        (piece.length() > 0).then_some(piece)
    })
}

/// Returns the chunks of a text or bytes in reverse order.
pub fn chunks_from_end<P: ChunkedSlice + ?Sized>(part: &P) -> impl Iterator<Item = &P> {
    let mut rest = part;
    std::iter::from_fn(move || {
        let (before, piece) = rest.cut(rest.length().saturating_sub(CHUNK_BYTES));
        rest = before;
        (piece.length() > 0).then_some(piece)
    })
}

#[cfg(test)]
mod tests;
