//! Target rows of UPDATE and DELETE: found, locked, re-read and re-evaluated.
//!
//! The source plan returns the keys of the rows. Each row is locked, its newest version is read,
//! and the condition is re-evaluated on it (EvalPlanQual); a row whose key was updated
//! concurrently is followed. It also collects the rows of RETURNING and checks WITH CHECK OPTION.

use std::sync::Arc;

use coprocessors::rows::row_timestamp;
use store::CellBatch;
use store::transaction::{FollowedRow, LockMode, LockWait, SeenLock, SeenRow, StatementView};
use types::expr::Expr;
use types::vector::{BATCH_BYTES, BATCH_ROWS};
use types::{Batch, Datum};

use crate::batch_buffer::BatchBuffer;
use crate::catalog::table::Table;
use crate::error::{Error, Result};
use crate::exec::point_get::key_from;
use crate::exec::row_writer::RowWriter;
use crate::exec::row_writer::unpack;
use crate::exec::{Context, Operator, build};
use crate::logical::{CheckSubject, CheckTime, Returning};
use crate::plan::{RowAtHandPlan, RowCheckPlan, TargetRows};

/// Keys of the target rows.
pub(super) struct TargetSource {
    table: Arc<Table>,
    source: TargetSourceKind,
}

enum TargetSourceKind {
    /// Point get.
    Point(Option<Vec<u8>>),
    Rows {
        operator: Box<dyn Operator>,
        batch: Option<Batch>,
        next: usize,
    },
}

/// A target row.
pub(super) struct TargetRow {
    /// Row key.
    pub key: Vec<u8>,
    /// Columns that FROM and subqueries added.
    pub extra: Vec<Datum>,
    /// True if the statement specifies it by its key.
    is_point: bool,
}

impl TargetSource {
    /// Opens the source of target rows.
    pub(super) fn open(
        table: &Arc<Table>,
        rows: &TargetRows,
        context: &Arc<Context>,
    ) -> Result<TargetSource> {
        let source = match &rows.point {
            // A row that another part of the statement has inserted is not a target.
            Some(key) if context.shared_changes(table.id).is_none() => {
                TargetSourceKind::Point(key_from(table, key, context)?)
            }
            _ => TargetSourceKind::Rows {
                operator: build(&rows.node, context)?,
                batch: None,
                next: 0,
            },
        };
        Ok(TargetSource { table: Arc::clone(table), source })
    }

    /// Returns the next target row.
    pub(super) fn next(&mut self) -> Result<Option<TargetRow>> {
        let key_width = self.table.layout.key.len();
        match &mut self.source {
            TargetSourceKind::Point(key) => {
                Ok(key.take().map(|key| TargetRow { key, extra: Vec::new(), is_point: true }))
            }
            TargetSourceKind::Rows { operator, batch, next } => loop {
                if let Some(rows) = batch
                    && *next < rows.row_count
                {
                    let mut key = rows.row(*next);
                    debug_assert!(key.len() >= key_width, "a target row without its key");
                    let extra = key.split_off(key_width);
                    *next += 1;
                    let key = self.table.layout.encode_key_values(&key)?;
                    return Ok(Some(TargetRow { key, extra, is_point: false }));
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
    if !context.transaction.get_locked(table.id, &table.get(key), cells)? {
        return Ok(None);
    }
    unpack(table, cells).map(Some)
}

/// A row of the statement's snapshot, locked for writing.
pub(super) struct LockedTarget {
    /// Present values; `None` if the row was deleted.
    pub row: Option<Vec<Datum>>,
    /// New key that another transaction has given it.
    pub moved_to: Option<Vec<u8>>,
    /// Lock to be released if the row does not qualify: PostgreSQL would not have locked it.
    spare: Option<SeenLock>,
}

/// Locks a row of the snapshot for writing, follows it to a new key that another transaction has
/// given it, and reads its newest version into `cells`. Another row that was inserted with its
/// key after a deletion is not the same row.
pub(super) fn lock_seen(
    (table, key): (&Table, &[u8]),
    mode: LockMode,
    cells: &mut CellBatch,
    context: &Context,
) -> Result<LockedTarget> {
    let seen = context.transaction.lock_seen_row(table.id, key, mode, LockWait::Wait)?;
    follow((table, key, seen), mode, cells, context)
}

/// Like [`lock_seen`], for a row specified by its key: a row that is not visible or does not
/// qualify neither causes a wait nor an error.
fn lock_named(
    (table, key): (&Table, &[u8]),
    (mode, recheck): (LockMode, &ConditionRecheck<'_>),
    cells: &mut CellBatch,
    context: &Context,
) -> Result<LockedTarget> {
    let transaction = &context.transaction;
    if !transaction.isolation().is_repeatable() {
        let seen = transaction.lock_seen_row(table.id, key, mode, LockWait::Skip)?;
        if seen.row != SeenRow::Skipped {
            let target = follow((table, key, seen), mode, cells, context)?;
            let spare = target.moved_to.is_none().then_some(seen);
            return Ok(LockedTarget { spare, ..target });
        }
    }
    cells.clear();
    let is_seen = transaction.get(table.id, &table.get(key), cells)?;
    match is_seen && recheck.may_hold(&unpack(table, cells)?, context)? {
        true => lock_seen((table, key), mode, cells, context),
        false => Ok(LockedTarget { row: None, moved_to: None, spare: None }),
    }
}

fn follow(
    (table, key, seen): (&Table, &[u8], SeenLock),
    mode: LockMode,
    cells: &mut CellBatch,
    context: &Context,
) -> Result<LockedTarget> {
    let (transaction, lock) = (&context.transaction, (mode, LockWait::Wait));
    let followed = match context.view.get() {
        Some(view) => transaction.follow_row((table.id, key, seen), lock, view)?,
        None => FollowedRow::Same,
    };
    Ok(match followed {
        FollowedRow::Same => {
            let row = read_locked((table, key), cells, context)?;
            if row.is_none() {
                transaction.release_row_lock(table.id, key, seen)?;
            }
            LockedTarget { row, moved_to: None, spare: None }
        }
        FollowedRow::Moved(to) => {
            let row = read_locked((table, &to), cells, context)?;
            LockedTarget { row, moved_to: Some(to), spare: None }
        }
        FollowedRow::Gone | FollowedRow::Skipped => {
            LockedTarget { row: None, moved_to: None, spare: None }
        }
    })
}

/// Checks a row against the check options of views, or against the policies of a time.
///
/// # Errors
///
/// 44000 or 42501 for the first violated one. Pending rows are staged before a view's check, so
/// that violations of the table's constraints are raised first.
pub(super) fn check_row(
    (checks, time): (&[RowCheckPlan], Option<CheckTime>),
    row: &[Datum],
    writer: &mut RowWriter,
    context: &Context,
) -> Result<()> {
    for check in checks.iter().filter(|check| check.subject.time() == time) {
        let meets = match &check.row {
            None => check.predicate.eval_row(row, &context.eval)?,
            Some(given) => {
                if time.is_some() {
                    // A policy may read the rows that the statement has written before.
                    writer.flush(context)?;
                }
                let said = with_subqueries(given, row, context)?;
                check.predicate.eval_row(&said, &context.eval)?
            }
        };
        if meets.as_bool() == Some(true) {
            continue;
        }
        let CheckSubject::View(view) = &check.subject else {
            return Err(check.subject.violation());
        };
        writer.flush(context)?;
        let message = format!("new row violates check option for view \"{view}\"");
        let row = writer.table().constraints.failing_row(row.to_vec(), &context.eval.style);
        bail!(WITH_CHECK_OPTION_VIOLATION: message; detail row);
    }
    Ok(())
}

/// Evaluates the plan of a row at hand: the row with subquery values, or computed from them.
pub(super) fn with_subqueries(
    given: &RowAtHandPlan,
    row: &[Datum],
    context: &Context,
) -> Result<Vec<Datum>> {
    let mut context = context.clone();
    for (&parameter, value) in given.parameters.iter().zip(row) {
        context.eval.parameters[parameter] = value.clone();
    }
    let mut rows = build(&given.node, &Arc::new(context))?;
    let batch = rows.next()?;
    let row_count = batch.as_ref().map_or(0, |batch| batch.row_count);
    debug_assert_eq!(row_count, 1, "rows of the plan of a row at hand");
    Ok(batch.filter(|batch| batch.row_count > 0).map(|batch| batch.row(0)).unwrap_or_default())
}

/// Condition that is re-evaluated on a locked row (EvalPlanQual).
pub(super) struct ConditionRecheck<'a> {
    condition: Option<&'a Expr>,
    /// True if an unchanged row must not be re-evaluated: the condition is volatile.
    only_of_changed: bool,
    /// True if `_timestamp` follows the table's columns in the row.
    reads_timestamp: bool,
}

impl<'a> ConditionRecheck<'a> {
    /// Returns the check of a condition over the row, `_timestamp` if it is read, and other
    /// columns.
    pub(super) fn new(condition: &'a Option<Expr>, reads_timestamp: bool) -> ConditionRecheck<'a> {
        let only_of_changed = condition.as_ref().is_some_and(Expr::is_session_only);
        ConditionRecheck { condition: condition.as_ref(), only_of_changed, reads_timestamp }
    }

    /// Returns whether the condition may hold for a row in the statement's snapshot.
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

/// Change of the target rows.
#[derive(Clone, Copy)]
pub(super) enum TargetChange {
    /// UPDATE; a change of a key takes the stronger lock mode when the row is written.
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

    /// Returns the participle of the change, for error messages.
    pub(super) fn done(self) -> &'static str {
        match self {
            TargetChange::Update => "updated",
            TargetChange::Delete => "deleted",
        }
    }
}

/// Like [`lock_and_read`], with the target's additional columns after the row's; `None` also if
/// the row does not qualify any more, or another part of the statement has changed it.
///
/// # Errors
///
/// 27000 if a function has changed the row after such a part, and the statement must use the
/// newest version because of a concurrent update (PostgreSQL's `ExecUpdate`, after
/// `table_tuple_lock`).
pub(super) fn take_target(
    table: &Table,
    (target, change): (&mut TargetRow, TargetChange),
    recheck: &ConditionRecheck<'_>,
    cells: &mut CellBatch,
    context: &Context,
) -> Result<Option<Vec<Datum>>> {
    let mode = change.mode();
    let LockedTarget { row, moved_to, spare } = match target.is_point {
        true => lock_named((table, &target.key), (mode, recheck), cells, context)?,
        false => lock_seen((table, &target.key), mode, cells, context)?,
    };
    match moved_to {
        None => {}
        // The row does not have the specified key any more.
        Some(_) if target.is_point => return Ok(None),
        Some(key) => target.key = key,
    }
    let Some(mut row) = row else { return Ok(None) };
    debug_assert_eq!(row.len(), table.columns.len(), "values of a row of {}", table.name);
    row.append(&mut target.extra);
    if recheck.reads_timestamp {
        row[table.columns.len()] = row_timestamp(&cells.row(0), &context.eval);
    }
    if !recheck.holds((table, &target.key), &row, context)? {
        if let Some(lock) = spare {
            context.transaction.release_row_lock(table.id, &target.key, lock)?;
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
/// updated or deleted.
///
/// # Errors
///
/// 27000, as PostgreSQL's `ExecUpdate` and `ExecDelete` raise it.
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
    err!(TRIGGERED_DATA_CHANGE_VIOLATION: "tuple to be {done} was already modified by an operation triggered by the current \
        command"; hint "Consider using an AFTER trigger instead of a BEFORE trigger to propagate changes to other rows.")
}

/// Collector of the rows of RETURNING.
pub(super) struct ReturningCollector<'a> {
    returning: Option<&'a Returning>,
    rows: Vec<Vec<Datum>>,
    /// Size of `rows` in bytes.
    bytes: usize,
    batches: BatchBuffer,
}

impl<'a> ReturningCollector<'a> {
    /// Returns an empty collector.
    pub(super) fn new(returning: Option<&'a Returning>) -> ReturningCollector<'a> {
        let expressions = returning.iter().flat_map(|returning| &returning.expressions);
        let batches = BatchBuffer::new(expressions.map(Expr::data_type).cloned().collect());
        ReturningCollector { returning, rows: Vec::new(), bytes: 0, batches }
    }

    /// Adds a row in table order, followed by additional columns.
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
            let types: Vec<_> =
                returning.expressions.iter().map(Expr::data_type).cloned().collect();
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
