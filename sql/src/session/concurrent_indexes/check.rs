//! CHECK INDEX and CHECK TABLE: comparison of indexes with their table, at the snapshot of the
//! statement and without blocking writers; with REPAIR also correction, in short transactions.

use std::sync::Arc;
use std::time::Duration;

use coprocessors::index::{CheckCounts, IndexCheck, IndexDifference, RepairOutcome, check, repair};
use store::env::process::monotonic_now;
use types::{Batch, DataType, Datum};

use crate::ast::{Check, CheckTarget, Statement};
use crate::catalog::access::owner_context::as_owner;
use crate::catalog::table::{Index, Table};
use crate::ddl::{self, relation_lock_name};
use crate::error::{Error, Result};
use crate::exec::{FollowedViews, not_followed};
use crate::rows::{CommandTag, ResultRows};
use crate::session::prepared::utility_columns;
use crate::session::{Execution, Session};

/// Number of differences that are listed without LIMIT.
pub(super) const LISTED_MAX: usize = 100;

/// Interval at which a check looks whether an eventual index is still followed.
const FOLLOWED_POLL: Duration = Duration::from_secs(1);

/// A table and the indexes to check.
struct CheckedIndexes {
    table: Arc<Table>,
    indexes: Vec<Arc<Index>>,
}

/// Result rows of a check, and their maximum number.
struct DifferenceList {
    rows: Vec<Vec<Datum>>,
    rows_max: usize,
}

impl DifferenceList {
    fn add(&mut self, index: &Index, difference: &IndexDifference, repaired: Option<bool>) {
        if self.rows.len() == self.rows_max {
            return;
        }
        let text = |text: &Option<String>| text.as_deref().map_or(Datum::Null, Datum::text);
        self.rows.push(vec![
            Datum::text(&*index.name),
            Datum::text(difference.kind.name()),
            text(&difference.primary_key),
            text(&difference.stored),
            text(&difference.expected),
            repaired.map_or(Datum::Null, Datum::Bool),
        ]);
    }
}

impl Session {
    /// Executes CHECK INDEX and CHECK TABLE.
    ///
    /// # Errors
    ///
    /// 42P01, 42704; 55000 for an index that is not valid; 25006 and 25001 for REPAIR. Differences
    /// are not errors.
    pub(in crate::session) fn run_check(&mut self, statement: &Check) -> Result<Execution> {
        let rows = self.check_indexes(statement)?;
        Ok(self.check_result(&Statement::Check(statement.clone()), &rows))
    }

    /// Returns rows as the result of CHECK.
    pub(super) fn check_result(&self, statement: &Statement, rows: &[Vec<Datum>]) -> Execution {
        let columns = utility_columns(statement).unwrap_or_default();
        let types: Vec<DataType> =
            columns.iter().map(|column| column.sql_type.base.clone()).collect();
        let batch = Batch::from_rows(&types, rows);
        let tag = CommandTag::Fixed(statement.tag().to_owned());
        let stop = Arc::clone(&self.stop);
        Execution::Rows(ResultRows::ready(columns.into(), [batch], tag, stop))
    }

    /// Compares indexes with their table; returns the differences.
    fn check_indexes(&mut self, statement: &Check) -> Result<Vec<Vec<Datum>>> {
        if self.open.as_ref().is_some_and(|open| open.modes.is_repeatable()) {
            return Err(Error::not_supported(
                "CHECK at REPEATABLE READ",
                "Use a READ COMMITTED transaction.",
            ));
        }
        if statement.repair {
            self.check_may_define("CHECK … REPAIR")?;
            self.reject_in_block("CHECK … REPAIR")?;
        }
        let CheckedIndexes { table, indexes } = self.lock_checked(statement)?;
        let rows_max = statement.limit.unwrap_or(LISTED_MAX);
        let mut list = DifferenceList { rows: Vec::new(), rows_max };
        let mut difference_count = 0;
        for index in indexes {
            let (counts, repaired) = self.check_index(statement, &table, (&index, &mut list))?;
            difference_count += counts.differences();
            self.report(&index, &counts, statement.repair.then_some(repaired));
        }
        if difference_count > list.rows.len() as u64 {
            let listed = list.rows.len();
            self.notice(
                "INFO",
                err!(SUCCESSFUL_COMPLETION: "{listed} of {difference_count} differences are listed";
                    hint "LIMIT changes their number."),
            );
        }
        Ok(list.rows)
    }

    /// Locks the table against changes of its definition, as readers or, with REPAIR, as writers
    /// do. The statement sees the commits of previous lock holders.
    fn lock_checked(&mut self, statement: &Check) -> Result<CheckedIndexes> {
        loop {
            self.begin_request();
            let checked = self.checked(statement)?;
            if statement.repair {
                self.lock_for_write(checked.table.id)?;
            } else if let Some(open) = &self.open {
                open.transaction.lock_to_read(&[relation_lock_name(checked.table.id.0)])?;
                open.transaction.refresh_statement();
            }
            self.wait_for_publication();
            let again = self.checked(statement)?;
            if Arc::ptr_eq(&again.table, &checked.table) {
                let CheckedIndexes { table, indexes } = again;
                let (valid, others): (Vec<_>, Vec<_>) =
                    indexes.into_iter().partition(|index| index.is_complete());
                for index in others {
                    let skipped = err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "index \"{}\" is not valid", index.name;
                        hint "Rebuild it with REINDEX INDEX.");
                    match statement.target {
                        CheckTarget::Index(..) => return Err(skipped),
                        CheckTarget::Table(_) => self.notice("WARNING", skipped),
                    }
                }
                return Ok(CheckedIndexes { table, indexes: valid });
            }
        }
    }

    fn checked(&self, statement: &Check) -> Result<CheckedIndexes> {
        let path = self.constants.search_path();
        self.with_planning(|planning| {
            let catalog = planning.catalog;
            let (name, on) = match &statement.target {
                CheckTarget::Table(name) => {
                    let table = catalog.find_table(name, path).cloned();
                    let table = table.ok_or_else(|| ddl::no_table(catalog, name, path))?;
                    self.check_owns(&table)?;
                    return Ok(CheckedIndexes { indexes: table.indexes.clone(), table });
                }
                CheckTarget::Index(name, on) => (name, on),
            };
            let named = (name, on.as_ref());
            let (table, index) = ddl::index_named(catalog, path, named, "CHECK INDEX")?;
            self.check_owns(&table)?;
            Ok(CheckedIndexes { table, indexes: vec![index] })
        })
    }

    /// Compares an index with its table; returns the counts and the number of corrections.
    fn check_index(
        &self,
        statement: &Check,
        table: &Table,
        (index, list): (&Index, &mut DifferenceList),
    ) -> Result<(CheckCounts, u64)> {
        let open = self.open.as_ref().expect("a statement was begun");
        let _turn = open.transaction.turn();
        let context = self.eval_context(open, Vec::new());
        let context = as_owner(&context, &self.catalog(), table.oid);
        let followed = self.followed_views(statement, index)?;
        let inputs = IndexCheck {
            transaction: &open.transaction,
            views: followed.as_ref().map(|views| (&views.rows, &views.entries)),
            base_table: table.id,
            spec: &index.spec,
            context: &context,
            column_names: &table.index_column_names(index),
        };
        let begin = || Arc::clone(&self.begin_short().transaction);
        let mut corrections = 0;
        let counts = check(&inputs, |differences| -> Result<()> {
            if !statement.repair {
                differences.iter().for_each(|one| list.add(index, one, None));
                return Ok(());
            }
            let of = (table.id, &*index.spec);
            let (outcomes, durable) = repair(&begin, of, &context, &differences)?;
            for (difference, outcome) in differences.iter().zip(&outcomes) {
                corrections += u64::from(*outcome == RepairOutcome::Corrected);
                list.add(index, difference, Some(*outcome != RepairOutcome::Duplicate));
            }
            durable.map_or(Ok(()), |durable| Ok(durable.wait()?))
        })?;
        Ok((counts, corrections))
    }

    /// Returns the views of an eventual index, which has caught up with the statement.
    fn followed_views(&self, statement: &Check, index: &Index) -> Result<Option<FollowedViews>> {
        if !index.is_followed {
            return Ok(None);
        }
        if statement.repair {
            return Err(Error::not_supported(
                format!("REPAIR of the eventual index \"{}\"", index.name),
                "Use ALTER INDEX … REBUILD.",
            ));
        }
        let store = self.engine.store();
        let visible = store.visible();
        let is_enough = |views: &FollowedViews| views.rows.commit() >= visible;
        let of = (&**store, index.spec.store_table);
        loop {
            let deadline = Some(monotonic_now() + FOLLOWED_POLL);
            let found = self.engine.followers.wait(of, is_enough, (&self.stop.stop, deadline))?;
            if found.is_some() {
                return Ok(found);
            }
            if self.engine.followers.views(of.1).is_none() {
                return Err(not_followed(&index.name));
            }
        }
    }

    /// Reports the counts of an index.
    fn report(&mut self, index: &Index, counts: &CheckCounts, corrections: Option<u64>) {
        let CheckCounts { row_count, entry_count, missing, extra, differing, duplicate } = counts;
        let corrected =
            corrections.map_or_else(String::new, |count| format!(", {count} corrected"));
        let message = format!(
            "index \"{}\": {row_count} rows, {entry_count} entries; {missing} missing, {extra} extra, \
             {differing} different, {duplicate} duplicate{corrected}",
            index.name
        );
        self.notice("INFO", err!(SUCCESSFUL_COMPLETION: message));
    }
}
