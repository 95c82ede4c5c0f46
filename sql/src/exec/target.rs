//! The rows that UPDATE and DELETE change: found, locked, read again, checked again.

use std::sync::Arc;

use coprocessors::rows::row_timestamp;
use store::transaction::{FollowedRow, LockMode, LockWait, SeenLock, SeenRow, StatementView};
use store::{CellBatch, Get};
use types::expr::Expr;
use types::vector::{BATCH_BYTES, BATCH_ROWS};
use types::{Batch, Datum};

use crate::batch_buffer::BatchBuffer;
use crate::catalog::table::Table;
use crate::error::{Error, Result, sqlstate};
use crate::exec::point::key_from;
use crate::exec::row::RowWriter;
use crate::exec::row::unpack;
use crate::exec::{Context, Operator, build};
use crate::logical::Returning;
use crate::plan::{GivenRowPlan, TargetRows, ViewCheckPlan};

/// The keys of the rows, one by one.
pub(super) struct Targets {
    table: Arc<Table>,
    source: Source,
}

enum Source {
    /// The short path.
    Point(Option<Vec<u8>>),
    Rows {
        operator: Box<dyn Operator>,
        batch: Option<Batch>,
        next: usize,
    },
}

/// One row to change.
pub(super) struct Target {
    /// Its row key.
    pub key: Vec<u8>,
    /// What subqueries added.
    pub extra: Vec<Datum>,
    /// It is named by its key.
    is_point: bool,
}

impl Targets {
    /// Opens the search.
    pub(super) fn open(
        table: &Arc<Table>,
        rows: &TargetRows,
        context: &Arc<Context>,
    ) -> Result<Targets> {
        let source = match &rows.point {
            // What another part of the statement has put there is none of its rows.
            Some(key) if context.shared_changes(table.id).is_none() => {
                Source::Point(key_from(table, key, context)?)
            }
            _ => Source::Rows { operator: build(&rows.node, context)?, batch: None, next: 0 },
        };
        Ok(Targets { table: Arc::clone(table), source })
    }

    /// Returns the next row.
    pub(super) fn next(&mut self) -> Result<Option<Target>> {
        let key_width = self.table.layout.key.len();
        match &mut self.source {
            Source::Point(key) => {
                Ok(key.take().map(|key| Target { key, extra: Vec::new(), is_point: true }))
            }
            Source::Rows { operator, batch, next } => loop {
                if let Some(rows) = batch
                    && *next < rows.row_count
                {
                    let mut key = rows.row(*next);
                    let extra = key.split_off(key_width);
                    *next += 1;
                    let key = self.table.layout.encode_key_values(&key)?;
                    return Ok(Some(Target { key, extra, is_point: false }));
                }
                *batch = operator.next()?;
                *next = 0;
                if batch.is_none() {
                    return Ok(None);
                }
            },
        }
    }
}

/// Locks a row for writing and reads its newest version into `cells`. Returns its values, `None`
/// if there is none.
pub(super) fn lock_and_read(
    (table, key): (&Table, &[u8]),
    mode: LockMode,
    cells: &mut CellBatch,
    context: &Context,
) -> Result<Option<Vec<Datum>>> {
    context.transaction.lock_row(table.id, key, mode, LockWait::Wait)?;
    read_locked((table, key), cells, context)
}

pub(super) fn read_locked(
    (table, key): (&Table, &[u8]),
    cells: &mut CellBatch,
    context: &Context,
) -> Result<Option<Vec<Datum>>> {
    cells.clear();
    if !context.transaction.get_locked(table.id, &Get::new(key), cells)? {
        return Ok(None);
    }
    unpack(table, cells).map(Some)
}

/// A row that a statement has seen, locked for writing.
pub(super) struct SeenTarget {
    /// Its values now; `None` if it is gone.
    pub row: Option<Vec<Datum>>,
    /// The key that another transaction has given it.
    pub moved_to: Option<Vec<u8>>,
    /// Its lock, to be given back if the row is not wanted: PostgreSQL would not have locked it.
    spare: Option<SeenLock>,
}

/// Locks a row for writing that the statement has seen, follows it to the key that another
/// transaction has given it, and reads its newest version into `cells`. Another row that has its
/// key since it was deleted is not the row.
pub(super) fn lock_seen(
    (table, key): (&Table, &[u8]),
    mode: LockMode,
    cells: &mut CellBatch,
    context: &Context,
) -> Result<SeenTarget> {
    let seen = context.transaction.lock_seen_row(table.id, key, mode, LockWait::Wait)?;
    follow((table, key, seen), mode, cells, context)
}

/// As [`lock_seen`], of a row that is named by its key: nobody waits for one that the statement
/// does not see or want, nor fails because of it.
fn lock_named(
    (table, key): (&Table, &[u8]),
    (mode, recheck): (LockMode, &Recheck<'_>),
    cells: &mut CellBatch,
    context: &Context,
) -> Result<SeenTarget> {
    let transaction = &context.transaction;
    if !transaction.isolation().is_repeatable() {
        let seen = transaction.lock_seen_row(table.id, key, mode, LockWait::Skip)?;
        if seen.row != SeenRow::Skipped {
            let target = follow((table, key, seen), mode, cells, context)?;
            let spare = target.moved_to.is_none().then_some(seen);
            return Ok(SeenTarget { spare, ..target });
        }
    }
    cells.clear();
    let is_seen = transaction.get(table.id, &Get::new(key), cells)?;
    match is_seen && recheck.may_hold(&unpack(table, cells)?, context)? {
        true => lock_seen((table, key), mode, cells, context),
        false => Ok(SeenTarget { row: None, moved_to: None, spare: None }),
    }
}

fn follow(
    (table, key, seen): (&Table, &[u8], SeenLock),
    mode: LockMode,
    cells: &mut CellBatch,
    context: &Context,
) -> Result<SeenTarget> {
    let (transaction, lock) = (&context.transaction, (mode, LockWait::Wait));
    let followed = match context.view.get() {
        Some(view) => transaction.follow_row((table.id, key, seen), lock, view)?,
        None => FollowedRow::Same,
    };
    Ok(match followed {
        FollowedRow::Same => {
            let row = read_locked((table, key), cells, context)?;
            if row.is_none() {
                transaction.give_back(table.id, key, seen)?;
            }
            SeenTarget { row, moved_to: None, spare: None }
        }
        FollowedRow::Moved(to) => {
            let row = read_locked((table, &to), cells, context)?;
            SeenTarget { row, moved_to: Some(to), spare: None }
        }
        FollowedRow::Gone | FollowedRow::Skipped => {
            SeenTarget { row: None, moved_to: None, spare: None }
        }
    })
}

/// Checks that views have a row that was written through them.
///
/// # Errors
///
/// 44000 for the first that has not. What is pending is staged before, so that what the row
/// violates of its table counts first.
pub(super) fn check_views(
    checks: &[ViewCheckPlan],
    row: &[Datum],
    writer: &mut RowWriter,
    context: &Context,
) -> Result<()> {
    for check in checks {
        let meets = match &check.row {
            None => check.predicate.eval_row(row, &context.eval)?,
            Some(given) => {
                let said = with_subqueries(given, row, context)?;
                check.predicate.eval_row(&said, &context.eval)?
            }
        };
        if meets.as_bool() != Some(true) {
            writer.flush(context)?;
            let message = format!("new row violates check option for view \"{}\"", check.view);
            let row = writer.table().constraints.failing_row(row.to_vec(), &context.eval.style);
            return Err(Error::new(sqlstate::WITH_CHECK_OPTION_VIOLATION, message).with_detail(row));
        }
    }
    Ok(())
}

/// Returns a row at hand with what subqueries add to it, or make of it.
pub(super) fn with_subqueries(
    given: &GivenRowPlan,
    row: &[Datum],
    context: &Context,
) -> Result<Vec<Datum>> {
    let mut context = context.clone();
    for (&parameter, value) in given.parameters.iter().zip(row) {
        context.eval.parameters[parameter] = value.clone();
    }
    let mut rows = build(&given.node, &Arc::new(context))?;
    let batch = rows.next()?;
    Ok(batch.filter(|batch| batch.row_count > 0).map(|batch| batch.row(0)).unwrap_or_default())
}

/// What is asked of a row that is locked, as it is then.
pub(super) struct Recheck<'a> {
    condition: Option<&'a Expr>,
    /// Asked once only of a row that has not changed: it may say something else each time.
    only_of_changed: bool,
    /// The row is asked with `_timestamp` behind the table's columns.
    reads_timestamp: bool,
}

impl<'a> Recheck<'a> {
    /// Returns the check of a condition over the row, `_timestamp` if read, and other columns.
    pub(super) fn new(condition: &'a Option<Expr>, reads_timestamp: bool) -> Recheck<'a> {
        let only_of_changed = condition.as_ref().is_some_and(Expr::stays);
        Recheck { condition: condition.as_ref(), only_of_changed, reads_timestamp }
    }

    /// Returns whether the condition may hold for a row as the statement sees it.
    fn may_hold(&self, row: &[Datum], context: &Context) -> Result<bool> {
        match self.condition.filter(|_| !self.only_of_changed) {
            None => Ok(true),
            Some(condition) => Ok(condition.eval_row(row, &context.eval)?.as_bool() == Some(true)),
        }
    }

    fn holds(
        &self,
        (table, key): (&Table, &[u8]),
        row: &[Datum],
        context: &Context,
    ) -> Result<bool> {
        let Some(condition) = self.condition else { return Ok(true) };
        if self.only_of_changed
            && let Some(view) = context.view.get()
            && !context.transaction.is_newer(table.id, key, view)?
        {
            return Ok(true);
        }
        Ok(condition.eval_row(row, &context.eval)?.as_bool() == Some(true))
    }
}

/// The change that a statement makes to the rows that it has found.
#[derive(Clone, Copy)]
pub(super) enum TargetChange {
    /// UPDATE; a change of a key takes the stronger mode when the row is written.
    Update,
    /// DELETE.
    Delete,
}

impl TargetChange {
    fn mode(self) -> LockMode {
        match self {
            TargetChange::Update => LockMode::NoKeyExclusive,
            TargetChange::Delete => LockMode::Exclusive,
        }
    }

    fn done(self) -> &'static str {
        match self {
            TargetChange::Update => "updated",
            TargetChange::Delete => "deleted",
        }
    }
}

/// As [`lock_and_read`], with the target's extra columns after the row's; `None` also if the row
/// is not wanted any more, or another part of the statement has changed it.
///
/// # Errors
///
/// 27000 if a function has changed the row after such a part, and the statement has to take the
/// newest version of the row as others have changed it since its snapshot (PostgreSQL's
/// `ExecUpdate`, after `table_tuple_lock`).
pub(super) fn take_target(
    table: &Table,
    (target, change): (&mut Target, TargetChange),
    recheck: &Recheck<'_>,
    cells: &mut CellBatch,
    context: &Context,
) -> Result<Option<Vec<Datum>>> {
    let mode = change.mode();
    let SeenTarget { row, moved_to, spare } = match target.is_point {
        true => lock_named((table, &target.key), (mode, recheck), cells, context)?,
        false => lock_seen((table, &target.key), mode, cells, context)?,
    };
    match moved_to {
        None => {}
        // It has not the wanted key any more.
        Some(_) if target.is_point => return Ok(None),
        Some(key) => target.key = key,
    }
    let Some(mut row) = row else { return Ok(None) };
    row.append(&mut target.extra);
    if recheck.reads_timestamp {
        row[table.columns.len()] = row_timestamp(&cells.row(0), &context.eval);
    }
    if !recheck.holds((table, &target.key), &row, context)? {
        if let Some(lock) = spare {
            context.transaction.give_back(table.id, &target.key, lock)?;
        }
        return Ok(None);
    }
    if context.claims_row(table.id, &target.key) {
        return Ok(Some(row));
    }
    if let Some(view) = context.view.get()
        && context.was_changed_after_claim(table.id, &target.key)?
        && context.transaction.is_newer(table.id, &target.key, view)?
    {
        return Err(already_modified(change.done()));
    }
    Ok(None)
}

/// Checks that no function that the statement calls has changed a row that is about to be `done`:
/// updated, deleted.
///
/// # Errors
///
/// 27000, as PostgreSQL's `ExecUpdate` and `ExecDelete` say it.
pub(super) fn refuse_changed(
    (table, key): (&Table, &[u8]),
    done: &str,
    context: &Context,
) -> Result<()> {
    let since = context.view.get().map(StatementView::place).filter(|_| context.has_called());
    let Some(since) = since else { return Ok(()) };
    if !context.transaction.has_changed(table.id, key, since)? {
        return Ok(());
    }
    Err(already_modified(done))
}

fn already_modified(done: &str) -> Error {
    let message = format!(
        "tuple to be {done} was already modified by an operation triggered by the current command"
    );
    let hint = "Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes \
                to other rows.";
    Error::new(sqlstate::TRIGGERED_DATA_CHANGE_VIOLATION, message).with_hint(hint)
}

/// Gathers the rows of RETURNING.
pub(super) struct Returned<'a> {
    returning: Option<&'a Returning>,
    rows: Vec<Vec<Datum>>,
    /// Bytes of `rows`.
    bytes: usize,
    batches: BatchBuffer,
}

impl<'a> Returned<'a> {
    /// Returns a collector without rows.
    pub(super) fn new(returning: &'a Option<Returning>) -> Returned<'a> {
        let expressions = returning.iter().flat_map(|returning| &returning.expressions);
        let batches = BatchBuffer::new(expressions.map(Expr::data_type).collect());
        Returned { returning: returning.as_ref(), rows: Vec::new(), bytes: 0, batches }
    }

    /// Adds a row in table order, with what comes after it.
    pub(super) fn add(&mut self, row: &[Datum], context: &Context) -> Result<()> {
        let Some(returning) = self.returning else { return Ok(()) };
        let mut values = Vec::with_capacity(returning.expressions.len());
        for expression in &returning.expressions {
            values.push(expression.eval_row(row, &context.eval)?);
        }
        self.bytes += values.iter().map(Datum::heap_bytes).sum::<usize>();
        self.rows.push(values);
        if self.rows.len() >= BATCH_ROWS || self.bytes >= BATCH_BYTES {
            self.close_batch(returning, context)?;
        }
        Ok(())
    }

    fn close_batch(&mut self, returning: &Returning, context: &Context) -> Result<()> {
        if !self.rows.is_empty() {
            let types: Vec<_> = returning.expressions.iter().map(Expr::data_type).collect();
            let batch = Batch::from_rows(&types, &self.rows);
            self.rows.clear();
            self.bytes = 0;
            self.batches.push(batch, &context.room())?;
        }
        Ok(())
    }

    /// Returns all rows.
    pub(super) fn finish(mut self, context: &Context) -> Result<BatchBuffer> {
        if let Some(returning) = self.returning {
            self.close_batch(returning, context)?;
        }
        Ok(self.batches)
    }
}
