//! The `ttl_by_column` coprocessor: rows expire at the time in one of their columns.
//!
//! ```sql
//! ALTER TABLE token ATTACH COPROCESSOR ttl_by_column WITH (column = 'valid_until');
//! ALTER TABLE event ATTACH COPROCESSOR ttl_by_column WITH (column = 'seen_at', after = '7 days');
//! ```
//!
//! Whenever a row is written, its cells get a TTL that ends at the column's value plus `after`.
//! The store then expires them in all reads, conditions, row locks, flushes and compactions. The
//! row is invisible after its time, a row with the same key can be inserted, and the next major
//! compaction frees the space. NULL and `infinity` never expire. ATTACH rewrites the existing
//! rows with their TTL.
//!
//! Arguments:
//!
//! * `column`: of type `timestamp` (interpreted as UTC), `timestamptz` or `date` (midnight UTC at
//!   its start).
//! * `after`: an interval that is added; zero by default.
//!
//! # Visibility
//!
//! * A TTL counts from the commit: a row expires later than its column says by the time between
//!   its statement and its commit. A row that has expired when it is written expires a
//!   millisecond after its commit.
//! * A snapshot sees the rows that had not expired when it was taken, as with the TTL of a
//!   family.
//! * An update to an earlier time also deletes the previous versions, which would otherwise
//!   reappear when the newest one has expired. `FOR SYSTEM_TIME AS OF` sees them like deleted
//!   rows.
//!
//! # Limitations
//!
//! Indexes and summaries are rejected on the same table, because their entries would outlive the
//! row; so are bulk loads.

use std::sync::Arc;
use std::time::Duration;

use store::env::Env;
use store::observer::{BulkLoadRef, Hook, Hooks, ObserverContext, RegionObserver, TableContext};
use store::{CellBatch, ColumnName, Edit, Mutation, Scan, Transaction};
use types::datetime::UNIX_EPOCH_SECONDS;
use types::rowcode::{RowDecoder, RowLayout};
use types::{DataType, Datum, Error, Result};

use crate::change::{RowState, bulk_load_error, changes, load_previous};
use crate::registry::{
    ArgumentKind, Attachment, CoprocessorFactory, Parameter, ParameterRequirement,
};
use crate::violation;

/// The factory of `ttl_by_column`.
#[derive(Debug, Clone, Copy, Default)]
pub struct TtlByColumnFactory;

/// Runs before constraints and all observers that read the written cells.
const PRIORITY: i32 = 50;
/// Minimum TTL of a cell.
const TTL_MIN: Duration = Duration::from_millis(1);
const DAY_MICROS: i64 = 86_400_000_000;
/// Rows that are read and rewritten at a time.
const FILL_ROWS: usize = 1000;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "column",
        kind: ArgumentKind::Column,
        need: ParameterRequirement::Required,
        about: "the column with the expiration time of a row",
    },
    Parameter {
        name: "after",
        kind: ArgumentKind::Duration,
        need: ParameterRequirement::Optional,
        about: "the interval that is added to the expiration time",
    },
];

impl CoprocessorFactory for TtlByColumnFactory {
    fn name(&self) -> &str {
        "ttl_by_column"
    }

    fn about(&self) -> &str {
        "expires rows at the time in a column"
    }

    fn parameters(&self) -> &[Parameter] {
        PARAMETERS
    }

    fn default_priority(&self) -> Option<i32> {
        Some(PRIORITY)
    }

    fn expires_rows(&self) -> bool {
        true
    }

    fn build(&self, attachment: &Attachment<'_>) -> Result<Arc<dyn RegionObserver>> {
        let column = attachment.arguments.column("column").unwrap_or_default();
        let known = &attachment.table.columns[column];
        let data_type = &known.sql_type.base;
        if !matches!(data_type, DataType::Timestamp | DataType::Timestamptz | DataType::Date) {
            bail!(DATATYPE_MISMATCH: "column \"{}\" of type {} cannot be used as expiration time",
                known.name, data_type.sql_name(); detail "The column must be a timestamp or a date.");
        }
        Ok(Arc::new(TtlByColumn {
            name: attachment.name.to_owned(),
            layout: Arc::clone(&attachment.table.layout),
            column,
            after_micros: attachment.arguments.duration_micros("after").unwrap_or(0),
            env: Arc::clone(attachment.env),
        }))
    }

    fn fill(&self, attachment: &Attachment<'_>, transaction: &Transaction) -> store::Result<()> {
        let mut scanner = transaction.scan(attachment.table.id, Scan::all())?;
        let mut rows = CellBatch::new();
        while scanner.next_batch(FILL_ROWS, &mut rows)? {
            let again = rows.rows().map(|row| {
                // Versions without a TTL must not reappear.
                let mut mutation = Mutation::new(row.key()).delete_row();
                for cell in row.cells() {
                    mutation = mutation.put(cell.family, cell.qualifier, cell.value.to_vec());
                }
                mutation
            });
            transaction.mutate(attachment.table.id, again.collect())?;
        }
        Ok(())
    }
}

/// The observer that sets the TTL of the cells of one table.
struct TtlByColumn {
    name: String,
    layout: Arc<RowLayout>,
    column: usize,
    after_micros: i64,
    env: Arc<dyn Env>,
}

/// Expiry time of a row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum ExpiryTime {
    /// Microseconds since 1970.
    At(i64),
    Never,
}

/// Changes to a mutation in addition to the TTL of its puts.
struct ExpiryPlan {
    end: ExpiryTime,
    /// The new expiry is earlier than that of the previous versions.
    is_nearer: bool,
    /// Cells that are not written but need the same TTL.
    kept: Vec<(ColumnName, Vec<u8>)>,
}

impl TtlByColumn {
    fn plans(&self, batch: &[Mutation]) -> Result<Vec<Option<ExpiryPlan>>> {
        let columns = [self.column];
        let decoder = RowDecoder::new(&self.layout, &columns)?;
        let end = |row: &[u8], state: &RowState<'_>| {
            let mut value = [Datum::Null];
            decoder.decode(row, &state.packed(), &mut value[..])?;
            Ok(self.end(&value[0]))
        };
        let changes = changes(&self.layout, batch);
        let plans = batch.iter().zip(&changes).map(|(mutation, change)| {
            if !puts(mutation) || !change.new.exists() {
                return Ok(None);
            }
            let new = end(change.row, &change.new)?;
            let is_nearer = change.old.exists() && new < end(change.row, &change.old)?;
            let packed = change.new.packed();
            let kept = packed.iter().enumerate().filter_map(|(cell, packed)| {
                let family = self.layout.family_of_cell(cell) as u8;
                let column = ColumnName::new(family, self.layout.qualifier_of_cell(cell));
                let is_put = mutation.edits.iter().any(|edit| is_put_of(edit, &column));
                packed.filter(|_| !is_put).map(|packed| (column, packed.to_vec()))
            });
            Ok(Some(ExpiryPlan { end: new, is_nearer, kept: kept.collect() }))
        });
        plans.collect()
    }

    fn end(&self, value: &Datum) -> ExpiryTime {
        let micros = match value {
            Datum::Timestamp(i64::MAX) | Datum::Timestamptz(i64::MAX) | Datum::Date(i32::MAX) => {
                return ExpiryTime::Never;
            }
            Datum::Timestamp(micros) | Datum::Timestamptz(micros) => *micros,
            Datum::Date(i32::MIN) => i64::MIN,
            Datum::Date(days) => i64::from(*days).saturating_mul(DAY_MICROS),
            _ => return ExpiryTime::Never,
        };
        let since_1970 = micros.saturating_add(UNIX_EPOCH_SECONDS * 1_000_000);
        ExpiryTime::At(since_1970.saturating_add(self.after_micros))
    }

    fn apply(&self, plan: ExpiryPlan, mutation: &mut Mutation) {
        for (ColumnName { family, qualifier }, value) in plan.kept {
            mutation.edits.push(Edit::Put { family, qualifier, timestamp: None, value, ttl: None });
        }
        if plan.is_nearer {
            mutation.edits.insert(0, Edit::DeleteRow { timestamp: None });
        }
        let ExpiryTime::At(end) = plan.end else { return };
        let now = self.env.now_micros();
        for edit in &mut mutation.edits {
            if let Edit::Put { timestamp, ttl, .. } = edit {
                let left = end.saturating_sub(timestamp.map_or(now, |at| at.0));
                let left = Duration::from_micros(u64::try_from(left).unwrap_or(0)).max(TTL_MIN);
                *ttl = Some(ttl.map_or(left, |shorter| shorter.min(left)));
            }
        }
    }
}

fn puts(mutation: &Mutation) -> bool {
    mutation.edits.iter().any(|edit| matches!(edit, Edit::Put { .. }))
}

fn is_put_of(edit: &Edit, column: &ColumnName) -> bool {
    matches!(edit, Edit::Put { family, qualifier, .. }
        if *family == column.family && *qualifier == column.qualifier)
}

impl RegionObserver for TtlByColumn {
    fn name(&self) -> &str {
        &self.name
    }

    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::PreBatch, Hook::PreBulkLoad])
    }

    fn is_essential(&self) -> bool {
        true
    }

    fn pre_bulk_load(&self, _: &TableContext<'_>, _: &BulkLoadRef<'_>) -> store::Result<()> {
        Err(bulk_load_error("row expiration by column"))
    }

    fn pre_batch(
        &self,
        context: &dyn ObserverContext,
        batch: &mut [Mutation],
    ) -> store::Result<()> {
        load_previous(context, &self.layout, batch, puts)?;
        let plans = self.plans(batch);
        let plans = plans.map_err(|error| violation::value_error(&self.name, error))?;
        for (plan, mutation) in plans.into_iter().zip(batch) {
            if let Some(plan) = plan {
                self.apply(plan, mutation);
            }
        }
        Ok(())
    }
}
