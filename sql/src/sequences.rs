//! Sequence states: value allocation for `nextval()` and `setval()` of all sessions.
//!
//! A value is allocated once, and a rollback does not return it. The stored value is the one up
//! to which values may have been allocated: it is 32 steps ahead, written by a separate
//! transaction that is durable before the first of them is used. After a crash a sequence
//! continues behind it, so up to 32 values are skipped, as in PostgreSQL; a clean shutdown
//! returns the unused values.

use std::sync::Arc;

use ahash::AHashMap;
use parking_lot::Mutex;
use store::transaction::TransactionOptions;
use store::{CellBatch, Get, Mutation, Store, TableId};

use crate::catalog::sequence::{Sequence, state_key};
use crate::error::{Error, Result};

/// Number of values reserved at once, unless CACHE is larger.
const RESERVED: i64 = 32;

/// States of the sequences of a database.
pub struct SequenceStates {
    store: Arc<Store>,
    catalog_table: TableId,
    states: Mutex<AHashMap<u32, Arc<Mutex<Option<SequenceState>>>>>,
}

/// State of one sequence.
#[derive(Debug, Clone, Copy)]
struct SequenceState {
    /// Last allocated value, or the first value.
    value: i64,
    /// True if `value` was allocated.
    is_called: bool,
    /// Number of further values that may be allocated before the next reservation.
    reserved: i64,
    /// Increment of the reservation.
    increment: i64,
}

impl SequenceStates {
    /// Returns the states of the sequences in a catalog table; nothing is loaded yet.
    pub fn new(store: &Arc<Store>, catalog_table: TableId) -> SequenceStates {
        SequenceStates { store: Arc::clone(store), catalog_table, states: Mutex::default() }
    }

    fn state(&self, id: u32) -> Arc<Mutex<Option<SequenceState>>> {
        Arc::clone(self.states.lock().entry(id).or_default())
    }

    /// Allocates the next value of a sequence.
    ///
    /// # Errors
    ///
    /// 2200H past its end; errors of the store.
    pub fn next(&self, sequence: &Sequence) -> Result<i64> {
        let state = self.state(sequence.id);
        let mut state = state.lock();
        let mut now = self.loaded(sequence, *state)?;
        let next = match now.is_called {
            true => sequence.after(now.value)?,
            false => now.value,
        };
        let steps_on = now.is_called && next == now.value.wrapping_add(sequence.increment);
        if now.reserved > 0 && steps_on && now.increment == sequence.increment {
            now.reserved -= 1;
        } else {
            // Near the end, values are reserved singly, so that a restart does not skip any for
            // ever.
            let steps = sequence.cache.max(RESERVED) - 1;
            let ahead = sequence.ahead(next, steps);
            self.write(sequence.id, ahead.unwrap_or(next), true)?;
            now.reserved = if ahead.is_some() { steps } else { 0 };
            now.increment = sequence.increment;
        }
        *state = Some(SequenceState { value: next, is_called: true, ..now });
        Ok(next)
    }

    /// Allocates successive values of a sequence; returns the first and the last.
    ///
    /// # Errors
    ///
    /// 22023 if `count` is not positive; 2200H if there are not as many before its end; errors of
    /// the store.
    pub fn next_block(&self, sequence: &Sequence, count: i64) -> Result<(i64, i64)> {
        if count < 1 {
            bail!(INVALID_PARAMETER_VALUE: "nextval: number of values must be positive: {count}");
        }
        let state = self.state(sequence.id);
        let mut state = state.lock();
        let now = self.loaded(sequence, *state)?;
        let first = match now.is_called {
            true => sequence.after(now.value)?,
            false => now.value,
        };
        let Some(last) = sequence.ahead(first, count - 1) else {
            let name = &sequence.name;
            bail!(SEQUENCE_GENERATOR_LIMIT_EXCEEDED: "nextval: sequence \"{name}\" has less than {count} further values");
        };
        self.write(sequence.id, last, true)?;
        let increment = sequence.increment;
        *state = Some(SequenceState { value: last, is_called: true, reserved: 0, increment });
        Ok((first, last))
    }

    /// Sets the value of a sequence.
    ///
    /// # Errors
    ///
    /// 22003 for a value outside its bounds; errors of the store.
    pub fn set(&self, sequence: &Sequence, value: i64, is_called: bool) -> Result<()> {
        if !(sequence.min..=sequence.max).contains(&value) {
            bail!(NUMERIC_VALUE_OUT_OF_RANGE: "setval: value {value} is out of bounds for sequence \"{}\" ({}..{})",
                sequence.name, sequence.min, sequence.max);
        }
        let state = self.state(sequence.id);
        let mut state = state.lock();
        self.write(sequence.id, value, is_called)?;
        *state =
            Some(SequenceState { value, is_called, reserved: 0, increment: sequence.increment });
        Ok(())
    }

    /// Returns the last allocated value; `None` if there is none.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub fn last(&self, sequence: &Sequence) -> Result<Option<i64>> {
        let (value, is_called) = self.state_of(sequence)?;
        Ok(is_called.then_some(value))
    }

    /// Returns the state of a sequence: `last_value` and `is_called`.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub fn state_of(&self, sequence: &Sequence) -> Result<(i64, bool)> {
        let state = self.state(sequence.id);
        let state = *state.lock();
        let state = self.loaded(sequence, state)?;
        Ok((state.value, state.is_called))
    }

    /// Removes the states of dropped sequences.
    ///
    /// # Errors
    ///
    /// Errors of the store: rows of the catalog are then left, which the next start removes.
    pub fn forget(&self, ids: &[u32]) -> Result<()> {
        let mut states = self.states.lock();
        ids.iter().for_each(|id| drop(states.remove(id)));
        drop(states);
        let transaction = self.store.begin(TransactionOptions::default());
        transaction.begin_statement();
        let rows = ids.iter().map(|id| Mutation::new(state_key(*id)).delete_row());
        transaction.mutate(self.catalog_table, rows.collect())?;
        transaction.commit()?;
        Ok(())
    }

    /// Returns reserved, unused values to the catalog. No values are allocated any more.
    ///
    /// # Errors
    ///
    /// Errors of the store.
    pub fn return_reserved(&self) -> Result<()> {
        let states: Vec<(u32, Arc<Mutex<Option<SequenceState>>>)> =
            self.states.lock().iter().map(|(id, state)| (*id, Arc::clone(state))).collect();
        for (id, state) in states {
            let mut state = state.lock();
            if let Some(now) = state.as_mut().filter(|now| now.reserved > 0) {
                self.write(id, now.value, now.is_called)?;
                now.reserved = 0;
            }
        }
        Ok(())
    }

    /// Returns the given state, or else the stored one.
    fn loaded(&self, sequence: &Sequence, state: Option<SequenceState>) -> Result<SequenceState> {
        if let Some(state) = state {
            return Ok(state);
        }
        let transaction = self.store.begin(TransactionOptions::default());
        transaction.begin_statement();
        let mut batch = CellBatch::new();
        let found = transaction.get_locked(
            self.catalog_table,
            &Get::new(state_key(sequence.id)),
            &mut batch,
        )?;
        let (value, is_called) = match found {
            false => (sequence.first, false),
            true => decode(batch.row(0).value(0, b"").unwrap_or_default())?,
        };
        Ok(SequenceState { value, is_called, reserved: 0, increment: sequence.increment })
    }

    fn write(&self, id: u32, value: i64, is_called: bool) -> Result<()> {
        let transaction = self.store.begin(TransactionOptions::default());
        transaction.begin_statement();
        let mut bytes = value.to_be_bytes().to_vec();
        bytes.push(u8::from(is_called));
        let row = Mutation::new(state_key(id)).put(0, Vec::new(), bytes);
        transaction.mutate(self.catalog_table, vec![row])?;
        transaction.commit()?.durable.wait()?;
        Ok(())
    }
}

fn decode(bytes: &[u8]) -> Result<(i64, bool)> {
    let damaged = || err!(DATA_CORRUPTED: "damaged state of a sequence");
    let (value, called) = bytes.split_first_chunk::<8>().ok_or_else(damaged)?;
    match called {
        [called @ (0 | 1)] => Ok((i64::from_be_bytes(*value), *called == 1)),
        _ => Err(damaged()),
    }
}
