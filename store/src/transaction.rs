//! Transactions: a snapshot to read, a place to stage writes, row locks, one record at commit.
//!
//! Methods take `&self`, so that a scan can go on while rows are staged and endpoints of several
//! regions can read at once; a transaction still belongs to one client at a time.

use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use std::time::Duration;

use smallvec::SmallVec;

use crate::cell::CellBatch;
use crate::cell::{Sequence, Timestamp};
use crate::descriptor::{Durability, TableId};
use crate::error::Result;
use crate::observer::Endpoint;
use crate::scan::{Get, Scan};
use crate::wal::DurableTicket;

/// Which snapshot statements read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Isolation {
    /// A snapshot for each statement.
    ReadCommitted,
    /// One snapshot, taken by the first statement; a row changed since cannot be written.
    RepeatableRead,
}

/// Where reads may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Consistency {
    /// The primary only.
    Strong,
    /// To a replica, if the primary's region does not answer within the time.
    Timeline {
        /// `primary_call_timeout`
        timeout: Duration,
    },
}

/// How a transaction behaves.
#[derive(Clone)]
pub struct TransactionOptions {
    /// Which snapshot statements read.
    pub isolation: Isolation,
    /// Refuse writes.
    pub read_only: bool,
    /// What the commit waits for; `None`: what each table says, the strongest of them.
    pub durability: Option<Durability>,
    /// Where reads may go.
    pub consistency: Consistency,
    /// How long to wait for a row lock; `None`: for ever.
    pub lock_timeout: Option<Duration>,
    /// Set by another thread to stop the running statement with
    /// [`Error::Cancelled`](crate::Error::Cancelled).
    pub cancelled: Arc<AtomicBool>,
}

impl Default for TransactionOptions {
    fn default() -> TransactionOptions {
        TransactionOptions {
            isolation: Isolation::ReadCommitted,
            read_only: false,
            durability: None,
            consistency: Consistency::Strong,
            lock_timeout: None,
            cancelled: Arc::default(),
        }
    }
}

/// The change of one row of a table.
#[derive(Debug, Clone)]
pub struct Mutation {
    /// The row key.
    pub row: Vec<u8>,
    /// The cells to write.
    pub edits: SmallVec<[Edit; 1]>,
    /// What must hold for the row now.
    pub expect: Expect,
    /// The row's state before, if the caller has read it under the row's lock: observers need not
    /// read it again.
    pub previous: Previous,
    /// Who keeps others from changing the row.
    pub locking: Locking,
}

/// One change within a row. A `None` timestamp is the commit time.
#[derive(Debug, Clone, PartialEq)]
pub enum Edit {
    /// Writes a version of a column.
    Put {
        /// Index of the family.
        family: u8,
        /// The column.
        qualifier: Vec<u8>,
        /// The version.
        timestamp: Option<Timestamp>,
        /// The value.
        value: Vec<u8>,
    },
    /// Deletes all columns of all families, up to a version.
    DeleteRow {
        /// The version.
        timestamp: Option<Timestamp>,
    },
    /// Deletes all columns of a family, up to a version.
    DeleteFamily {
        /// Index of the family.
        family: u8,
        /// The version.
        timestamp: Option<Timestamp>,
    },
    /// Deletes all versions of a column, up to a version.
    DeleteColumn {
        /// Index of the family.
        family: u8,
        /// The column.
        qualifier: Vec<u8>,
        /// The version.
        timestamp: Option<Timestamp>,
    },
}

/// What must hold for a row when its mutation is staged.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Expect {
    /// Nothing.
    Anything,
    /// There is no such row; else [`Error::RowExists`](crate::Error::RowExists) and nothing of the
    /// batch is staged. Checked after the lock is taken, against own writes and the newest commits,
    /// before the observers run.
    Absent,
}

/// A row's state before its mutation.
#[derive(Debug, Clone)]
pub enum Previous {
    /// Not known: who needs it reads it.
    Unknown,
    /// There was no row.
    Absent,
    /// The row as it was: all families, newest version; a batch of one row.
    Row(Arc<CellBatch>),
}

/// Who keeps others from changing a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Locking {
    /// The row's own lock, taken when the mutation is staged.
    Row,
    /// The lock of another row, held already: for index entries that only one data row can own.
    Covered,
}

impl Mutation {
    /// Returns a mutation without edits, which expects nothing and takes the row's lock.
    pub fn new(row: impl Into<Vec<u8>>) -> Mutation {
        Mutation {
            row: row.into(),
            edits: SmallVec::new(),
            expect: Expect::Anything,
            previous: Previous::Unknown,
            locking: Locking::Row,
        }
    }

    /// Adds a put at the commit time.
    #[must_use]
    pub fn put(mut self, family: u8, qualifier: impl Into<Vec<u8>>, value: Vec<u8>) -> Mutation {
        self.edits.push(Edit::Put { family, qualifier: qualifier.into(), timestamp: None, value });
        self
    }

    /// Adds the delete of the whole row at the commit time.
    #[must_use]
    pub fn delete_row(mut self) -> Mutation {
        self.edits.push(Edit::DeleteRow { timestamp: None });
        self
    }

    /// Returns the mutation with the expectation that there is no such row.
    #[must_use]
    pub fn expect_absent(mut self) -> Mutation {
        self.expect = Expect::Absent;
        self
    }
}

/// Whether a row lock may be shared.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockMode {
    /// With other shared locks.
    Shared,
    /// With none.
    Exclusive,
}

/// What to do when a row lock is taken.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LockWait {
    /// Wait, up to the transaction's lock time-out.
    Wait,
    /// Fail with [`Error::LockNotAvailable`](crate::Error::LockNotAvailable).
    NoWait,
    /// Give up the row: [`Transaction::lock_row`] returns `false`.
    Skip,
}

/// A place to roll back to.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Savepoint(pub(crate) u64);

/// A commit that was applied.
pub struct Commit {
    /// Its place in the order of commits; `None` if nothing was written.
    pub sequence: Option<Sequence>,
    /// Its time.
    pub timestamp: Timestamp,
    /// Ready when it is durable and visible to new snapshots.
    pub durable: DurableTicket,
}

/// An open transaction. Dropping it rolls it back.
pub struct Transaction {
    _private: (),
}

/// Reads the rows of a scan, batch by batch. Keeps the snapshot it was opened with.
pub struct Scanner {
    _private: (),
}

impl Transaction {
    /// Begins a statement: at READ COMMITTED takes a new snapshot. Writes of the transaction so far
    /// become visible to the reads that follow; writes staged from now on are not visible to them
    /// until the next call (a statement does not see its own effects).
    pub fn begin_statement(&self) {
        todo!("store/transaction")
    }

    /// Appends one row to `out`; returns whether it exists.
    pub fn get(&self, table: TableId, get: &Get, out: &mut CellBatch) -> Result<bool> {
        let _ = (table, get, out);
        todo!("store/transaction")
    }

    /// Appends those of the rows that exist to `out`, in the order of `gets`.
    pub fn multi_get(&self, table: TableId, gets: &[Get], out: &mut CellBatch) -> Result<()> {
        let _ = (table, gets, out);
        todo!("store/transaction")
    }

    /// Opens a scan over all regions of its range, in row order.
    pub fn scan(&self, table: TableId, scan: Scan) -> Result<Scanner> {
        let _ = (table, scan);
        todo!("store/transaction")
    }

    /// Locks a row until the end of the transaction. Returns `false` only for [`LockWait::Skip`].
    ///
    /// # Errors
    ///
    /// At REPEATABLE READ, [`Error::Serialization`](crate::Error::Serialization) if the row was
    /// changed after the snapshot.
    pub fn lock_row(
        &self,
        table: TableId,
        row: &[u8],
        mode: LockMode,
        wait: LockWait,
    ) -> Result<bool> {
        let _ = (table, row, mode, wait);
        todo!("store/transaction")
    }

    /// Appends the current state of a row that this transaction has locked: its own writes, all of
    /// them, over the newest applied commit. Returns whether the row exists.
    pub fn get_locked(&self, table: TableId, get: &Get, out: &mut CellBatch) -> Result<bool> {
        let _ = (table, get, out);
        todo!("store/transaction")
    }

    /// Locks the rows, checks expectations, runs the observers and stages the edits.
    ///
    /// # Errors
    ///
    /// Nothing of the batch is staged then; locks stay until the end of the transaction.
    pub fn mutate(&self, table: TableId, mutations: Vec<Mutation>) -> Result<()> {
        let _ = (table, mutations);
        todo!("store/transaction")
    }

    /// Calls an endpoint in every region that overlaps one of the half-open row ranges (ascending,
    /// disjoint; a `None` stop is open), in parallel, and returns the answers in region order.
    pub fn call_endpoint<E: Endpoint>(
        &self,
        table: TableId,
        ranges: &[(Vec<u8>, Option<Vec<u8>>)],
        endpoint: &E,
        request: &E::Request,
    ) -> Result<Vec<E::Response>> {
        let _ = (table, ranges, endpoint, request);
        todo!("store/transaction")
    }

    /// Marks a place to roll back to.
    pub fn savepoint(&self) -> Savepoint {
        todo!("store/transaction")
    }

    /// Forgets what was staged after the savepoint. Locks stay.
    pub fn rollback_to(&self, savepoint: Savepoint) {
        let _ = savepoint;
        todo!("store/transaction")
    }

    /// Commits: one record, applied to the memstores on return; durable when the ticket says so.
    pub fn commit(self) -> Result<Commit> {
        todo!("store/transaction")
    }

    /// Forgets all that was staged and gives the locks back.
    pub fn rollback(self) {
        todo!("store/transaction")
    }

    /// Returns the snapshot of the current statement.
    pub fn snapshot(&self) -> Sequence {
        todo!("store/transaction")
    }

    /// Returns whether anything was staged.
    pub fn has_writes(&self) -> bool {
        todo!("store/transaction")
    }
}

impl Scanner {
    /// Replaces the content of `out` by the next rows, at most `row_limit` and about 256 KiB of them.
    /// Returns whether there were any.
    pub fn next_batch(&mut self, row_limit: usize, out: &mut CellBatch) -> Result<bool> {
        let _ = (row_limit, out);
        todo!("store/transaction")
    }

    /// Moves on so that the next row is at or after `row` (at or before it in reverse): the hint of a
    /// skip scan.
    pub fn seek(&mut self, row: &[u8]) -> Result<()> {
        let _ = row;
        todo!("store/transaction")
    }
}
