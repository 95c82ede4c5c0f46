//! The `audit` coprocessor: writes each change of a table to a log table, in the same
//! transaction.
//!
//! ```sql
//! ALTER TABLE account ATTACH COPROCESSOR audit WITH (table = 'audit_log');
//! UPDATE account SET balance = 5 WHERE id = 1;
//! SELECT changed_by, operation, row_key, old_values, new_values FROM audit_log;
//! --  ann | UPDATE | {"id": 1} | {"id": 1, "balance": 9} | {"id": 1, "balance": 5}
//! ```
//!
//! The log gets a row for each row that a statement inserted, updated or deleted, even if the new
//! values equal the old ones. A change and its log row commit or roll back together. Several
//! tables can share one log.
//!
//! Arguments:
//!
//! * `table`: the log table, `audit_log` by default. ATTACH creates it if it does not exist.
//!   Create it beforehand to give it salt buckets, a TTL, indexes or additional columns
//!   ([`AuditFactory`] lists the required ones).
//! * `columns`: the columns whose values are logged; all by default. The key is always logged.
//!
//! Rows that expire by TTL are not logged. Deletes of single versions and bulk loads are
//! rejected.
//!
//! # Use as a template
//!
//! A coprocessor consists of two types: a factory, which checks arguments and defines the target
//! table, and an observer, which is called with each batch. [`RegionObserver::hooks`] lists the
//! hooks that the observer implements; an observer that must not be skipped returns true from
//! [`RegionObserver::is_essential`]. The hook receives the batch with its rows locked. The
//! previous state of the rows is read once and stored in the batch for the observers that follow
//! ([`load_previous`]). Mutations that the hook adds with [`ObserverContext::add`] pass through
//! the constraints and indexes of the log table.

use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use store::env::Env;
use store::mutation::{Locking, PreviousRow};
use store::observer::{BulkLoadRef, Hook, Hooks, ObserverContext, RegionObserver, TableContext};
use store::{Mutation, TableId};
use types::datetime::UNIX_EPOCH_SECONDS;
use types::rowcode::{RowDecoder, RowLayout};
use types::{DataType, Datum, Result};

use crate::change::{Change, RowState, bulk_load_error, changes, load_previous};
use crate::json;
use crate::registry::{
    ArgumentKind, Attachment, ColumnDefinition, CoprocessorFactory, Parameter,
    ParameterRequirement, TableDefinition, TableSchema,
};
use crate::row::puts_of_row;
use crate::violation;

/// The factory of `audit`. The log has the columns
/// `changed_at timestamptz, table_name text, entry bigint`, which are its key, and
/// `changed_by text, operation text, row_key text, old_values text, new_values text`.
#[derive(Debug, Clone, Copy, Default)]
pub struct AuditFactory;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "table",
        kind: ArgumentKind::Table,
        need: ParameterRequirement::Default("audit_log"),
        about: "the table to which changes are logged",
    },
    Parameter {
        name: "columns",
        kind: ArgumentKind::Columns,
        need: ParameterRequirement::Optional,
        about: "the columns whose values are logged",
    },
];

impl CoprocessorFactory for AuditFactory {
    fn name(&self) -> &str {
        "audit"
    }

    fn about(&self) -> &str {
        "writes every change of a table to a log table"
    }

    fn parameters(&self) -> &[Parameter] {
        PARAMETERS
    }

    fn suits_every_table(&self) -> bool {
        true
    }

    fn target(&self, attachment: &Attachment<'_>) -> Result<Option<TableDefinition>> {
        let column = |name: &str, data_type: DataType, not_null: bool| ColumnDefinition {
            name: name.to_owned(),
            sql_type: data_type.into(),
            not_null,
        };
        Ok(Some(TableDefinition {
            name: attachment.arguments.table("table").unwrap_or_default().to_owned(),
            columns: vec![
                column("changed_at", DataType::Timestamptz, true),
                column("table_name", DataType::Text, true),
                column("entry", DataType::Int8, true),
                column("changed_by", DataType::Text, false),
                column("operation", DataType::Text, true),
                column("row_key", DataType::Text, true),
                column("old_values", DataType::Text, false),
                column("new_values", DataType::Text, false),
            ],
            key_count: 3,
            is_exclusive: false,
        }))
    }

    fn build(&self, attachment: &Attachment<'_>) -> Result<Arc<dyn RegionObserver>> {
        let table = Arc::clone(attachment.table);
        let all = || Vec::from_iter(0..table.columns.len());
        let logged = attachment.arguments.columns("columns");
        let env = Arc::clone(attachment.env);
        let log = attachment.referenced_table("table")?;
        Ok(Arc::new(AuditObserver {
            name: attachment.name.to_owned(),
            columns: logged.map_or_else(all, <[usize]>::to_vec),
            key: table.layout.key.iter().map(|key| key.column).collect(),
            table,
            log: log.id,
            log_layout: Arc::clone(&log.layout),
            next_entry: AtomicI64::new(env.now_micros()),
            env,
        }))
    }
}

/// The observer that logs the changes of one table.
struct AuditObserver {
    name: String,
    table: Arc<TableSchema>,
    /// The columns whose values are logged, by position.
    columns: Vec<usize>,
    /// The key columns, in key order.
    key: Vec<usize>,
    log: TableId,
    log_layout: Arc<RowLayout>,
    env: Arc<dyn Env>,
    /// Distinguishes log rows of the same microsecond. Starts at the current time, so that values
    /// do not repeat after a restart.
    next_entry: AtomicI64,
}

impl AuditObserver {
    fn entries(&self, user: &str, batch: &[Mutation]) -> Result<Vec<Mutation>> {
        let layout = &self.table.layout;
        let values = RowDecoder::new(layout, &self.columns)?;
        let key = RowDecoder::new(layout, &self.key)?;
        let changed_at = self.env.now_micros() - UNIX_EPOCH_SECONDS * 1_000_000;
        let user = if user.is_empty() { Datum::Null } else { Datum::text(user) };
        let mut entries = Vec::with_capacity(batch.len());
        for change in changes(layout, batch) {
            let operation = match (change.old.exists(), change.new.exists()) {
                (false, false) => continue,
                (false, true) => "INSERT",
                (true, true) => "UPDATE",
                (true, false) => "DELETE",
            };
            let present = if change.new.exists() { &change.new } else { &change.old };
            let shown = |state| self.shown(&values, &self.columns, &change, state);
            let row = [
                Datum::Timestamptz(changed_at),
                Datum::text(self.table.name.as_str()),
                Datum::Int8(self.next_entry.fetch_add(1, Ordering::Relaxed)),
                user.clone(),
                Datum::text(operation),
                self.shown(&key, &self.key, &change, present)?,
                shown(&change.old)?,
                shown(&change.new)?,
            ];
            entries.push(self.entry(&row)?);
        }
        Ok(entries)
    }

    /// Returns columns of a row as JSON text; NULL if the row does not exist.
    fn shown(
        &self,
        decoder: &RowDecoder<'_>,
        columns: &[usize],
        change: &Change<'_>,
        state: &RowState<'_>,
    ) -> Result<Datum> {
        if !state.exists() {
            return Ok(Datum::Null);
        }
        let mut values = vec![Datum::Null; columns.len()];
        decoder.decode(change.row, &state.packed(), &mut values[..])?;
        let named = columns.iter().zip(&values).map(|(&column, value)| {
            let column = &self.table.columns[column];
            (column.name.as_str(), &column.sql_type.base, value)
        });
        let mut text = String::new();
        json::write_object(named, &mut text);
        Ok(Datum::text(text))
    }

    /// Returns the mutation that inserts a row into the log; additional columns of the log are
    /// NULL.
    fn entry(&self, row: &[Datum]) -> Result<Mutation> {
        let mut row = row.to_vec();
        row.resize(self.log_layout.columns.len(), Datum::Null);
        let mutation = Mutation::new(self.log_layout.encode_key(&row)?);
        let mutation = puts_of_row(&self.log_layout, mutation, &row)?;
        // The key is unique, and the lock of the changed row is held.
        Ok(Mutation { previous: PreviousRow::Absent, locking: Locking::Covered, ..mutation })
    }
}

impl RegionObserver for AuditObserver {
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
        Err(bulk_load_error("an audit log"))
    }

    fn pre_batch(
        &self,
        context: &dyn ObserverContext,
        batch: &mut [Mutation],
    ) -> store::Result<()> {
        load_previous(context, &self.table.layout, batch, |_| true)?;
        let entries = self.entries(context.user(), batch);
        let entries = entries.map_err(|error| violation::value_error(&self.name, error))?;
        match entries.is_empty() {
            true => Ok(()),
            false => context.add(self.log, entries),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::*;
    use crate::registry::Arguments;
    use store::Edit;
    use store::env::RealEnv;

    const LOG: TableId = TableId(9);

    /// `t (id int primary key, name text, secret text)`
    fn observed() -> Arc<TableSchema> {
        let columns =
            [("id", DataType::Int4), ("name", DataType::Text), ("secret", DataType::Text)];
        Arc::new(shape("t", &columns))
    }

    fn log() -> Arc<TableSchema> {
        let columns = [
            ("changed_at", DataType::Timestamptz),
            ("table_name", DataType::Text),
            ("entry", DataType::Int8),
            ("changed_by", DataType::Text),
            ("operation", DataType::Text),
            ("row_key", DataType::Text),
            ("old_values", DataType::Text),
            ("new_values", DataType::Text),
            ("remark", DataType::Text),
        ];
        let mut log = shape("audit_log", &columns);
        let types = columns.map(|(_, data_type)| (data_type, 0));
        let keys = [key(0, false), key(1, false), key(2, false)];
        log.layout = Arc::new(layout(&types, &keys, 4));
        log.id = LOG;
        Arc::new(log)
    }

    /// Runs the observer and returns operation, key, old and new values of each entry.
    fn logged(written: &[(&str, &str)], mut batch: Vec<Mutation>) -> Vec<String> {
        let (table, log) = (observed(), log());
        let written: Vec<(String, String)> =
            written.iter().map(|(name, value)| ((*name).into(), (*value).into())).collect();
        let arguments = Arguments::read("audit", PARAMETERS, &table, &written).unwrap();
        let env: Arc<dyn Env> = Arc::new(RealEnv::default());
        let others = [Arc::clone(&log)];
        let attachment = Attachment {
            name: "audit",
            table: &table,
            arguments: &arguments,
            env: &env,
            others: &others,
        };
        AuditFactory.target(&attachment).unwrap().unwrap().check("audit", &log).unwrap();
        let observer = AuditFactory.build(&attachment).unwrap();
        let context = FakeContext::default();
        observer.pre_batch(&context, &mut batch).unwrap();
        let added = context.added.borrow();
        let entries = added.iter().flat_map(|(table, entries)| {
            assert_eq!(*table, LOG);
            entries
        });
        entries.map(|entry| line(&log.layout, entry)).collect()
    }

    fn line(layout: &RowLayout, entry: &Mutation) -> String {
        let [Edit::Put { value, .. }] = &entry.edits[..] else { panic!("{entry:?}") };
        let row = layout.unpack(&entry.row, &[Some(value)]).unwrap();
        assert_eq!(row[1], text("t"));
        let shown = |value: &Datum| value.as_str().unwrap_or("-").to_owned();
        row[4..8].iter().map(shown).collect::<Vec<_>>().join(" ")
    }

    fn row(id: i32, name: &str) -> [Datum; 3] {
        [Datum::Int4(id), text(name), text("hush")]
    }

    #[test]
    fn audit_distinguishes_insert_update_and_delete() {
        let layout = &observed().layout;
        let delete = Mutation::new(layout.encode_key(&row(3, "")).unwrap()).delete_row();
        let batch = vec![
            put_row(layout, &row(1, "new")),
            with_previous(put_row(layout, &row(2, "new")), stored_row(layout, &row(2, "old"), 1)),
            with_previous(delete.clone(), stored_row(layout, &row(3, "old"), 1)),
            // No row to delete.
            Mutation { row: layout.encode_key(&row(4, "")).unwrap(), ..delete },
        ];
        assert_eq!(
            logged(&[("columns", "name")], batch),
            [
                r#"INSERT {"id": 1} - {"name": "new"}"#,
                r#"UPDATE {"id": 2} {"name": "old"} {"name": "new"}"#,
                r#"DELETE {"id": 3} {"name": "old"} -"#,
            ]
        );
    }

    #[test]
    fn audit_logs_all_columns_by_default() {
        let layout = &observed().layout;
        assert_eq!(
            logged(&[], vec![put_row(layout, &row(1, "x"))]),
            [r#"INSERT {"id": 1} - {"id": 1, "name": "x", "secret": "hush"}"#]
        );
    }
}
