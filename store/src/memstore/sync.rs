//! Synchronization primitives of the memstore's structure, and the number of entries of a node.
//!
//! The rest of the structure uses them through `super::sync`, so that the model checker's tests
//! compile the same files with other primitives and small nodes.

pub(super) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

pub(super) use parking_lot::Mutex;

/// Entries of a node. A permutation of this number must fit 60 bits.
pub(super) const SLOTS: usize = 15;
