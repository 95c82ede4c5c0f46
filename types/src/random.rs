//! Random number generator of a session, with the sequence of PostgreSQL 15 after the same
//! `setseed`.
//!
//! Source: PostgreSQL's `pg_prng.c`: xoroshiro128**, seeded by SplitMix64.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

/// The generator of `random()`; clones share its state. Without a seed it is seeded randomly at
/// the first number.
#[derive(Clone, Default)]
pub struct Random(Arc<Mutex<Option<[u64; 2]>>>);

impl Random {
    /// Resets the generator to a seed from -1 to 1.
    pub fn seed(&self, seed: f64) {
        let mut state = (((1_u64 << 52) - 1) as f64 * seed) as i64 as u64;
        let mut next = || {
            state = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
            let mut value = (state ^ (state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
            value = (value ^ (value >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
            value ^ (value >> 31)
        };
        let words = [next(), next()];
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = Some(words);
    }

    /// Returns a number in `0.0..1.0`.
    pub fn next(&self) -> f64 {
        let mut state = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [first, second] = state.unwrap_or_else(|| uuid::Uuid::new_v4().as_u64_pair().into());
        let mixed = second ^ first;
        *state = Some([first.rotate_left(24) ^ mixed ^ (mixed << 16), mixed.rotate_left(37)]);
        let drawn = first.wrapping_mul(5).rotate_left(7).wrapping_mul(9);
        (drawn >> 12) as f64 / (1_u64 << 52) as f64
    }
}

impl fmt::Debug for Random {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Random")
    }
}
