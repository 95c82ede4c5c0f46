//! The memstore: the newest cells of one store, sorted, in memory.
//!
//! Also holds the staged cells of an open transaction, whose sequences have
//! [`Sequence::STAGED`](crate::cell::Sequence::STAGED) set.

/// Sorted cells in memory.
pub struct Memstore {
    _private: (),
}
