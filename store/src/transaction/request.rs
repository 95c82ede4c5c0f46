//! Requests: statements that are subject to the quotas of the tables that they touch, of their
//! role and of their database ([`crate::quota`]).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use parking_lot::Mutex;
use smallvec::SmallVec;

use crate::cell::CellBatch;
use crate::error::Result;
use crate::mutation::{Edit, Mutation};
use crate::quota::{Access, Charged, Quota, charge};
use crate::table::Table;
use crate::transaction::Transaction;

/// Quota state of the present statement.
#[derive(Default)]
pub(super) struct TransactionRequest {
    /// True if the statement is subject to quotas.
    is_metered: AtomicBool,
    /// The quotas that have admitted it, and for which access.
    admitted: Mutex<SmallVec<[Admitted; 2]>>,
}

struct Admitted {
    quota: Arc<Quota>,
    reads: bool,
    writes: bool,
}

impl TransactionRequest {
    /// Begins a statement that is not subject to quotas.
    pub(super) fn clear(&self) {
        if self.is_metered.swap(false, Ordering::Relaxed) {
            self.admitted.lock().clear();
        }
    }
}

impl Transaction {
    /// Makes the present statement a request: it is subject to quotas until the next statement
    /// begins.
    pub fn begin_request(&self) {
        self.request.clear();
        self.request.is_metered.store(true, Ordering::Relaxed);
    }

    /// Admits the request to read or write a table; returns the quotas to charge.
    ///
    /// # Errors
    ///
    /// [`Error::QuotaExceeded`](crate::Error::QuotaExceeded).
    pub(super) fn touch(&self, table: &Table, access: Access) -> Result<Charged> {
        let mut charged = Charged::new();
        if !self.request.is_metered.load(Ordering::Relaxed) {
            return Ok(charged);
        }
        charged.extend(self.options.quotas.iter().flatten().cloned());
        charged.extend(table.quotas().iter().flat_map(|quotas| quotas.iter().cloned()));
        if charged.is_empty() {
            return Ok(charged);
        }
        let now = self.engine.options().env.now_micros();
        let mut admitted = self.request.admitted.lock();
        for quota in &charged {
            let known = admitted.iter().position(|entry| Arc::ptr_eq(&entry.quota, quota));
            let place = known.unwrap_or(admitted.len());
            let is_admitted = admitted.get(place).is_some_and(|entry| match access {
                Access::Read => entry.reads,
                Access::Write => entry.writes,
            });
            if is_admitted {
                continue;
            }
            quota.admit(access, known.is_none(), now)?;
            if known.is_none() {
                let quota = Arc::clone(quota);
                admitted.push(Admitted { quota, reads: false, writes: false });
            }
            let entry = &mut admitted[place];
            entry.reads |= access == Access::Read;
            entry.writes |= access == Access::Write;
        }
        Ok(charged)
    }

    /// Admits the request to write these mutations, and charges it for them.
    pub(super) fn touch_for(&self, table: &Table, mutations: &[Mutation]) -> Result<()> {
        let charged = self.touch(table, Access::Write)?;
        if !charged.is_empty() {
            let bytes = mutations.iter().map(byte_count).sum();
            charge(&charged, Access::Write, bytes, &*self.engine.options().env);
        }
        Ok(())
    }

    /// Charges a request for the bytes by which a batch has grown.
    pub(super) fn charge_read(&self, charged: &Charged, out: &CellBatch, bytes_before: usize) {
        let bytes = out.byte_count().saturating_sub(bytes_before);
        charge(charged, Access::Read, bytes as u64, &*self.engine.options().env);
    }
}

/// Returns the bytes of a mutation: of the row, the qualifiers and the values.
fn byte_count(mutation: &Mutation) -> u64 {
    let edits = mutation.edits.iter().map(|edit| match edit {
        Edit::Put { qualifier, value, .. } => qualifier.len() + value.len(),
        Edit::DeleteColumn { qualifier, .. } | Edit::DeleteVersion { qualifier, .. } => {
            qualifier.len()
        }
        Edit::DeleteRow { .. } | Edit::DeleteFamily { .. } | Edit::DeleteFamilyVersion { .. } => 0,
    });
    (mutation.row.len() + edits.sum::<usize>()) as u64
}
