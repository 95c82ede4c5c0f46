//! What the memstore's structure synchronizes with, and how wide its nodes are.
//!
//! The rest of the structure names these through `super::sync`, so that the model checker's tests
//! compile the same files over types of its own and over small nodes.

pub(super) use std::sync::atomic::{AtomicPtr, AtomicU32, AtomicU64, Ordering};

pub(super) use parking_lot::Mutex;

/// Entries of a node. A permutation of that many has to fit 60 bits.
pub(super) const SLOTS: usize = 15;
