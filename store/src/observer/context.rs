//! Contexts passed to hooks: time limit, table, and for writes access to the transaction.

use std::any::Any;
use std::cell::Cell;
use std::time::Duration;

use crate::cell::CellBatch;
use crate::descriptor::{RegionId, TableId};
use crate::env::Env;
use crate::error::{Error, Result, Veto};
use crate::mutation::Mutation;
use crate::observer::FAILED;
use crate::scan::Get;

/// Time limit of a hook's call and the time it has used.
///
/// A hook that does not return is not interrupted: the limit is checked when it has returned. A
/// hook that loops should call [`HookContext::check_deadline`] from time to time and return the
/// error.
pub struct HookContext<'a> {
    env: &'a dyn Env,
    started_micros: i64,
    /// Time spent in calls back into the store, which may wait for other transactions.
    away_micros: Cell<i64>,
    limit_micros: i64,
}

/// Context of a hook of a table: the table, and the time limit.
pub struct TableContext<'a> {
    table: TableId,
    hook: &'a HookContext<'a>,
}

/// A region, as passed to observers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RegionRef<'a> {
    /// Its table.
    pub table: TableId,
    /// The region.
    pub region: RegionId,
    /// Its first row.
    pub start: &'a [u8],
    /// The row after its last; `None` for no stop.
    pub stop: Option<&'a [u8]>,
}

impl<'a> HookContext<'a> {
    pub(super) fn begin(env: &'a dyn Env, limit: Option<Duration>) -> HookContext<'a> {
        let limit = limit.map(|limit| i64::try_from(limit.as_micros()).unwrap_or(i64::MAX));
        HookContext {
            env,
            started_micros: env.now_micros(),
            away_micros: Cell::new(0),
            limit_micros: limit.unwrap_or(i64::MAX),
        }
    }

    /// Returns an error once the hook has exceeded its time limit. Time that the store spends on
    /// its behalf, waiting for a row lock for example, is not counted.
    ///
    /// # Errors
    ///
    /// An error that the hook should return: the call counts as an overrun then.
    pub fn check_deadline(&self) -> Result<()> {
        match self.spent_micros() > self.limit_micros {
            true => Err(Error::Vetoed(Box::new(Veto {
                code: FAILED.into(),
                message: "coprocessor exceeded its time limit".into(),
                ..Veto::default()
            }))),
            false => Ok(()),
        }
    }

    pub(super) fn spent_micros(&self) -> i64 {
        let whole = self.env.now_micros().saturating_sub(self.started_micros);
        // The clock may have been set back.
        whole.saturating_sub(self.away_micros.get()).max(0)
    }

    pub(super) fn is_overrun(&self, spent_micros: i64) -> bool {
        spent_micros > self.limit_micros
    }

    /// Runs work of the store, which does not count as the hook's time.
    fn away<T>(&self, work: impl FnOnce() -> T) -> T {
        let started = self.env.now_micros();
        let result = work();
        let took = self.env.now_micros().saturating_sub(started).max(0);
        self.away_micros.set(self.away_micros.get().saturating_add(took));
        result
    }
}

impl<'a> TableContext<'a> {
    pub(super) fn new(table: TableId, hook: &'a HookContext<'a>) -> TableContext<'a> {
        TableContext { table, hook }
    }

    /// Returns the table whose observer is called.
    pub fn table(&self) -> TableId {
        self.table
    }

    /// Returns an error once the hook has exceeded its time limit; see
    /// [`HookContext::check_deadline`].
    ///
    /// # Errors
    ///
    /// An error that the hook should return.
    pub fn check_deadline(&self) -> Result<()> {
        self.hook.check_deadline()
    }
}

/// Access of an observer to the transaction whose write it observes.
pub trait ObserverContext {
    /// The table whose observer is called.
    fn table(&self) -> TableId;

    /// Appends the current state of a row to `out`: the transaction's own writes over the newest
    /// committed version. Intended for rows of the batch (locked) and rows locked with
    /// [`ObserverContext::lock`]. Returns whether the row exists. This read is not observed.
    ///
    /// For a row of the batch whose mutation has [`Mutation::previous`], that is cheaper.
    fn get(&self, table: TableId, get: &Get, out: &mut CellBatch) -> Result<bool>;

    /// Takes the exclusive lock of a row, of any table, until the end of the transaction.
    fn lock(&self, table: TableId, row: &[u8]) -> Result<()>;

    /// Adds mutations, of any table, to the same transaction; the observers of that table see
    /// them.
    ///
    /// # Errors
    ///
    /// The error that rejects them, which the hook should return. If observers call each other
    /// too deeply, the error names the cycle.
    fn add(&self, table: TableId, mutations: Vec<Mutation>) -> Result<()>;

    /// Returns the writing user
    /// ([`TransactionOptions::user`](crate::transaction::TransactionOptions)); empty if unknown.
    fn user(&self) -> &str {
        ""
    }

    /// Returns the client's attachment for observers of its own layer
    /// ([`Transaction::mutate_with`](crate::Transaction::mutate_with)); `None` if there is none.
    fn attachment(&self) -> Option<Attachment<'_>> {
        None
    }

    /// Returns an error once the hook has exceeded its time limit, not counting the time in the
    /// calls above, or once the statement was cancelled; see [`HookContext::check_deadline`].
    ///
    /// # Errors
    ///
    /// An error that the hook should return.
    fn check_deadline(&self) -> Result<()> {
        Ok(())
    }
}

/// Data that a client attaches to a write for observers of its own layer, opaque to the store.
/// HBase has attributes of operations for this.
pub type Attachment<'a> = &'a (dyn Any + Send + Sync);

/// Operations of a transaction on behalf of its observers.
pub(crate) trait ObservedTransaction {
    /// Reads the newest state of a row.
    fn newest(&self, table: TableId, get: &Get, out: &mut CellBatch) -> Result<bool>;
    /// Locks a row.
    fn lock_exclusively(&self, table: TableId, row: &[u8]) -> Result<()>;
    /// Stages mutations that a coprocessor adds.
    fn stage(&self, table: TableId, mutations: Vec<Mutation>, by: &Caller<'_>) -> Result<()>;
    /// Returns the writing user.
    fn user(&self) -> &str;
    /// Returns [`Error::Cancelled`] once the statement is cancelled.
    fn check_cancelled(&self) -> Result<()>;
}

/// A coprocessor that adds mutations, linked to the one whose additions it observed.
#[derive(Clone, Copy)]
pub(crate) struct Caller<'a> {
    pub(super) coprocessor: &'a str,
    pub(super) table_name: &'a str,
    pub(super) behind: Option<&'a Caller<'a>>,
    /// The attachment of the write that it observed.
    pub(crate) attachment: Option<Attachment<'a>>,
}

impl Caller<'_> {
    /// Maximal nesting of observers: index of a table whose index table has observers …
    pub(crate) const DEPTH_MAX: usize = 16;

    fn path(&self) -> impl Iterator<Item = &Caller<'_>> {
        std::iter::successors(Some(self), |caller| caller.behind)
    }

    fn is(&self, other: &Caller<'_>) -> bool {
        (self.coprocessor, self.table_name) == (other.coprocessor, other.table_name)
    }

    /// Checks that this coprocessor may add mutations.
    ///
    /// # Errors
    ///
    /// An error that names the coprocessors that call each other.
    pub(crate) fn check_depth(&self) -> Result<()> {
        if self.path().count() <= Caller::DEPTH_MAX {
            return Ok(());
        }
        // Newest first; the cycle goes from this one back to its previous call.
        let round = self.path().skip(1).position(|caller| caller.is(self));
        let shown = round.map_or(Caller::DEPTH_MAX, |length| length + 1);
        let mut names: Vec<String> = self
            .path()
            .take(shown + usize::from(round.is_some()))
            .map(|caller| format!("\"{}\" of table \"{}\"", caller.coprocessor, caller.table_name))
            .collect();
        names.reverse();
        let how = match round {
            Some(_) => "in a cycle",
            None => "too deeply",
        };
        Err(Error::Vetoed(Box::new(Veto {
            coprocessor: self.coprocessor.to_owned(),
            code: FAILED.into(),
            message: format!("coprocessors call each other {how}: {}", names.join(", ")),
            detail: format!(
                "The maximum depth of nested coprocessor calls is {}.",
                Caller::DEPTH_MAX
            ),
            ..Veto::default()
        })))
    }
}

/// The context of a write for one coprocessor.
pub(super) struct WriteContext<'a> {
    pub(super) table: TableId,
    pub(super) transaction: &'a dyn ObservedTransaction,
    pub(super) caller: Caller<'a>,
    pub(super) hook: &'a HookContext<'a>,
}

impl ObserverContext for WriteContext<'_> {
    fn table(&self) -> TableId {
        self.table
    }

    fn get(&self, table: TableId, get: &Get, out: &mut CellBatch) -> Result<bool> {
        self.hook.away(|| self.transaction.newest(table, get, out))
    }

    fn lock(&self, table: TableId, row: &[u8]) -> Result<()> {
        self.hook.away(|| self.transaction.lock_exclusively(table, row))
    }

    fn add(&self, table: TableId, mutations: Vec<Mutation>) -> Result<()> {
        self.hook.away(|| self.transaction.stage(table, mutations, &self.caller))
    }

    fn user(&self) -> &str {
        self.transaction.user()
    }

    fn attachment(&self) -> Option<Attachment<'_>> {
        self.caller.attachment
    }

    fn check_deadline(&self) -> Result<()> {
        self.hook.check_deadline()?;
        self.transaction.check_cancelled()
    }
}
