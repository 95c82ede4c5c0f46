//! The `summary` coprocessor: maintains a table of counts and sums per group, in the transaction
//! that changes the rows.
//!
//! ```sql
//! ALTER TABLE sale ATTACH COPROCESSOR summary
//!     WITH (table = 'sale_by_shop', group_by = 'shop, day', sum = 'amount');
//! -- sale_by_shop: shop, day | row_count | amount_count, amount_sum
//! ```
//!
//! The summary equals, at any time and in any snapshot, the result of this query:
//!
//! ```sql
//! SELECT shop, day, count(*), count(amount), sum(amount) FROM sale GROUP BY shop, day
//! ```
//!
//! NULL forms a group, as in SQL; a sum without values is NULL; a group without rows has no row.
//! ATTACH counts the existing rows.
//!
//! Arguments:
//!
//! * `table`: the summary table. ATTACH creates it, or accepts an empty table that fits.
//! * `group_by`: the columns of the group, which are the key of the summary.
//! * `sum`: integer and numeric columns to sum. Sums of `smallint` and `integer` are `bigint`,
//!   those of `bigint` and `numeric` are `numeric`.
//!
//! # Cost
//!
//! Transactions that change rows of one group block each other: the summary's row is locked until
//! the end of the transaction. At REPEATABLE READ the second one fails with 40001.
//!
//! # Limitations
//!
//! Sums of floats are rejected, because floating-point addition cannot be undone exactly. NaN and
//! infinities are rejected, because they cannot be subtracted again. Tables with a TTL are
//! rejected, because expiry calls no hook. The summary has no TTL, and no other writes to it are
//! allowed while it is maintained (`is_exclusive`).

use std::collections::BTreeMap;
use std::sync::Arc;

use store::mutation::PreviousRow;
use store::observer::{BulkLoadRef, Hook, Hooks, ObserverContext, RegionObserver, TableContext};
use store::{CellBatch, Get, Mutation, Scan, TableId, Transaction};
use types::numeric::Numeric;
use types::rowcode::{RowDecoder, RowLayout};
use types::{DataType, Datum, Error, Result};

use crate::change::{
    RowState, bulk_load_error, changes, load_previous, reject_unmaintainable_edits,
};
use crate::registry::{
    ArgumentKind, Attachment, ColumnDefinition, CoprocessorFactory, Parameter,
    ParameterRequirement, TableDefinition,
};
use crate::row::{ReadColumns, packed_cells, puts_of_row};
use crate::violation;

/// The factory of `summary`.
#[derive(Debug, Clone, Copy, Default)]
pub struct SummaryFactory;

/// Rows that are read, and groups that are staged, at a time.
const FILL_ROWS: usize = 1000;

const PARAMETERS: &[Parameter] = &[
    Parameter {
        name: "table",
        kind: ArgumentKind::Table,
        need: ParameterRequirement::Required,
        about: "the table that stores counts and sums",
    },
    Parameter {
        name: "group_by",
        kind: ArgumentKind::Columns,
        need: ParameterRequirement::Required,
        about: "the grouping columns",
    },
    Parameter {
        name: "sum",
        kind: ArgumentKind::Columns,
        need: ParameterRequirement::Optional,
        about: "the columns to sum",
    },
];

impl CoprocessorFactory for SummaryFactory {
    fn name(&self) -> &str {
        "summary"
    }

    fn about(&self) -> &str {
        "maintains counts and sums of groups of rows in a table"
    }

    fn parameters(&self) -> &[Parameter] {
        PARAMETERS
    }

    fn follows_every_row(&self) -> bool {
        true
    }

    fn target(&self, attachment: &Attachment<'_>) -> Result<Option<TableDefinition>> {
        let table = attachment.table;
        if table.descriptor.families.iter().any(|family| family.ttl.is_some()) {
            bail!(FEATURE_NOT_SUPPORTED: "a summary of table \"{}\" is not supported", table.name;
                detail "The table has a TTL, but expired rows cannot be subtracted from the summary.");
        }
        let named = |name: String, data_type: DataType, not_null: bool| ColumnDefinition {
            name,
            sql_type: data_type.into(),
            not_null,
        };
        let groups = attachment.arguments.columns("group_by").unwrap_or_default();
        let mut columns: Vec<ColumnDefinition> = Vec::new();
        for &group in groups {
            let column = &table.columns[group];
            columns.push(ColumnDefinition {
                name: column.name.clone(),
                sql_type: column.sql_type.clone(),
                not_null: column.not_null,
            });
        }
        columns.push(named("row_count".to_owned(), DataType::Int8, true));
        for &summed in attachment.arguments.columns("sum").unwrap_or_default() {
            let column = &table.columns[summed];
            let sum_type = sum_type(&column.name, &column.sql_type.base)?;
            columns.push(named(format!("{}_count", column.name), DataType::Int8, true));
            columns.push(named(format!("{}_sum", column.name), sum_type, false));
        }
        for (position, column) in columns.iter().enumerate() {
            if columns[..position].iter().any(|other| other.name == column.name) {
                bail!(DUPLICATE_COLUMN: "column \"{}\" would appear more than once in the summary", column.name);
            }
        }
        Ok(Some(TableDefinition {
            name: attachment.arguments.table("table").unwrap_or_default().to_owned(),
            columns,
            key_count: groups.len(),
            is_exclusive: true,
        }))
    }

    fn build(&self, attachment: &Attachment<'_>) -> Result<Arc<dyn RegionObserver>> {
        Ok(Arc::new(SummaryObserver { summary: Summary::new(attachment)? }))
    }

    fn fill(&self, attachment: &Attachment<'_>, transaction: &Transaction) -> store::Result<()> {
        let value_error = |error| violation::value_error(attachment.name, error);
        let summary = Summary::new(attachment).map_err(value_error)?;
        let columns = ReadColumns::of(&summary.layout, &summary.columns);
        let mut scanner = transaction.scan(attachment.table.id, columns.scan(Scan::all()))?;
        let mut rows = CellBatch::new();
        let mut groups = Groups::new();
        while scanner.next_batch(FILL_ROWS, &mut rows)? {
            for row in rows.rows() {
                let state = RowState::of(&row, &summary.layout);
                summary.count(row.key(), &state, 1, &mut groups).map_err(value_error)?;
            }
        }
        let mut groups = groups.into_iter().peekable();
        while groups.peek().is_some() {
            let new = groups.by_ref().take(FILL_ROWS).map(|(key, group)| {
                let mutation = summary.replacement(key, &group.values, &group.delta)?;
                Ok(Mutation { previous: PreviousRow::Absent, ..mutation })
            });
            let new = new.collect::<Result<Vec<_>>>().map_err(value_error)?;
            transaction.mutate(summary.target, new)?;
        }
        Ok(())
    }
}

/// Returns the type of a sum.
fn sum_type(column: &str, data_type: &DataType) -> Result<DataType> {
    match data_type {
        DataType::Int2 | DataType::Int4 => Ok(DataType::Int8),
        DataType::Int8 | DataType::Numeric => Ok(DataType::Numeric),
        other => {
            let error = err!(DATATYPE_MISMATCH: "cannot sum column \"{column}\" of type {}", other.sql_name());
            Err(match other {
                DataType::Float4 | DataType::Float8 => error.with_detail(
                    "Sums of floats depend on the order of additions; numeric columns are exact.",
                ),
                _ => error,
            })
        }
    }
}

/// The definition of a summary: source and target table.
struct Summary {
    /// The name of the attachment.
    name: String,
    table_name: String,
    layout: Arc<RowLayout>,
    /// The columns that are read: group columns, then summed columns.
    columns: Vec<usize>,
    group_count: usize,
    target: TableId,
    target_name: String,
    target_layout: Arc<RowLayout>,
}

/// The totals of a group, or their change.
#[derive(Debug, Clone, PartialEq)]
struct Totals {
    row_count: i64,
    /// For each summed column, count and sum of the values that are not NULL.
    sums: Vec<(i64, Numeric)>,
}

/// A group with the values of its columns.
struct Group {
    values: Vec<Datum>,
    delta: Totals,
}

/// Groups by the row key in the summary. Their order is the lock order of all transactions.
type Groups = BTreeMap<Vec<u8>, Group>;

impl Summary {
    fn new(attachment: &Attachment<'_>) -> Result<Summary> {
        let groups = attachment.arguments.columns("group_by").unwrap_or_default();
        let sums = attachment.arguments.columns("sum").unwrap_or_default();
        let target = attachment.referenced_table("table")?;
        Ok(Summary {
            name: attachment.name.to_owned(),
            table_name: attachment.table.name.clone(),
            layout: Arc::clone(&attachment.table.layout),
            columns: groups.iter().chain(sums).copied().collect(),
            group_count: groups.len(),
            target: target.id,
            target_name: target.name.clone(),
            target_layout: Arc::clone(&target.layout),
        })
    }

    /// Adds a row to its group (`sign` 1), or subtracts it (-1). Does nothing if the row does not
    /// exist.
    fn count(
        &self,
        row: &[u8],
        state: &RowState<'_>,
        sign: i64,
        groups: &mut Groups,
    ) -> Result<()> {
        if !state.exists() {
            return Ok(());
        }
        let mut values = vec![Datum::Null; self.columns.len()];
        let decoder = RowDecoder::new(&self.layout, &self.columns)?;
        decoder.decode(row, &state.packed(), &mut values[..])?;
        let summed = values.split_off(self.group_count);
        let key = self.target_layout.encode_key_values(&values)?;
        let zero = || Totals::zero(summed.len());
        let group = groups.entry(key).or_insert_with(|| Group { values, delta: zero() });
        group.delta.row_count += sign;
        for ((count, sum), value) in group.delta.sums.iter_mut().zip(&summed) {
            let Some(value) = self.exact(value)? else { continue };
            *count += sign;
            *sum = if sign > 0 { sum.checked_add(&value)? } else { sum.checked_sub(&value)? };
        }
        Ok(())
    }

    /// Returns a value to be summed; `None` for NULL.
    fn exact(&self, value: &Datum) -> Result<Option<Numeric>> {
        match value {
            Datum::Null => Ok(None),
            Datum::Numeric(number) if number.is_finite() => Ok(Some(number.clone())),
            value => match value.as_i64() {
                Some(integer) => Ok(Some(Numeric::from_i128(i128::from(integer)))),
                None => {
                    bail!(NUMERIC_VALUE_OUT_OF_RANGE: "summary \"{}\" cannot sum NaN or infinities", self.name)
                }
            },
        }
    }

    /// Returns the mutation that changes a group in the transaction of `context`.
    fn change(
        &self,
        context: &dyn ObserverContext,
        key: Vec<u8>,
        group: &Group,
    ) -> store::Result<Mutation> {
        let value_error = |error| violation::value_error(&self.name, error);
        context.lock(self.target, &key)?;
        let mut cells = CellBatch::new();
        let get = ReadColumns::of_whole_rows(&self.target_layout).get(Get::new(key.as_slice()));
        let found = context.get(self.target, &get, &mut cells)?;
        let mut totals = Totals::zero(group.delta.sums.len());
        let mut values = None;
        if found {
            let row = self.stored(&cells).map_err(value_error)?;
            totals = self.totals(&row).map_err(value_error)?;
            values = Some(row);
        }
        totals.add(&group.delta).map_err(value_error)?;
        if !totals.is_possible() {
            return Err(value_error(self.out_of_step()));
        }
        // A group retains the form of its first values: 1.0 and 1.00 are one group.
        let values = values.as_deref().unwrap_or(&group.values);
        let mutation = if totals.row_count == 0 {
            Mutation::new(key).delete_row()
        } else {
            self.replacement(key, values, &totals).map_err(value_error)?
        };
        let previous = if found { PreviousRow::Row(Arc::new(cells)) } else { PreviousRow::Absent };
        Ok(Mutation { previous, ..mutation })
    }

    fn stored(&self, cells: &CellBatch) -> Result<Vec<Datum>> {
        let row = cells.row(0);
        let packed = packed_cells(&row, &self.target_layout);
        self.target_layout.unpack(row.key(), &packed)
    }

    /// Returns the totals in a row of the summary.
    fn totals(&self, row: &[Datum]) -> Result<Totals> {
        let number = |position: usize| row.get(position).and_then(Datum::as_i64);
        let counted = |count: Option<i64>| count.ok_or_else(|| self.out_of_step());
        let sum_count = self.columns.len() - self.group_count;
        let mut sums = Vec::with_capacity(sum_count);
        for sum in 0..sum_count {
            let at = self.group_count + 1 + 2 * sum;
            let value = self.exact(row.get(at + 1).unwrap_or(&Datum::Null))?;
            sums.push((counted(number(at))?, value.unwrap_or_else(|| Numeric::from_i128(0))));
        }
        Ok(Totals { row_count: counted(number(self.group_count))?, sums })
    }

    /// Returns the mutation that writes a group. Additional columns of the summary keep their
    /// values in `values`, or are NULL.
    fn replacement(&self, key: Vec<u8>, values: &[Datum], totals: &Totals) -> Result<Mutation> {
        let layout = &self.target_layout;
        let mut row = values.to_vec();
        row.resize(layout.columns.len(), Datum::Null);
        row[self.group_count] = Datum::Int8(totals.row_count);
        for (position, (count, sum)) in totals.sums.iter().enumerate() {
            let at = self.group_count + 1 + 2 * position;
            row[at] = Datum::Int8(*count);
            row[at + 1] = match layout.columns[at + 1].data_type {
                _ if *count == 0 => Datum::Null,
                DataType::Int8 => Datum::Int8(
                    sum.to_i64()
                        .ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE: "bigint out of range"))?,
                ),
                _ => Datum::Numeric(sum.clone()),
            };
        }
        puts_of_row(layout, Mutation::new(key), &row)
    }

    fn out_of_step(&self) -> Error {
        err!(OBJECT_NOT_IN_PREREQUISITE_STATE: "summary table \"{}\" does not match the rows of table \"{}\"",
            self.target_name, self.table_name;
            detail "Rows of the summary table were modified directly. Detach the coprocessor, drop the summary table, and \
            attach the coprocessor again.")
    }
}

impl Totals {
    fn zero(sum_count: usize) -> Totals {
        Totals { row_count: 0, sums: vec![(0, Numeric::from_i128(0)); sum_count] }
    }

    fn is_zero(&self) -> bool {
        self.row_count == 0 && self.sums.iter().all(|(count, sum)| *count == 0 && sum.is_zero())
    }

    fn add(&mut self, delta: &Totals) -> Result<()> {
        self.row_count += delta.row_count;
        for ((count, sum), (more, addend)) in self.sums.iter_mut().zip(&delta.sums) {
            *count += more;
            *sum = sum.checked_add(addend)?;
        }
        Ok(())
    }

    /// Returns whether a set of rows can have these totals.
    fn is_possible(&self) -> bool {
        self.sums.iter().all(|(count, sum)| {
            (0..=self.row_count).contains(count) && (*count > 0 || sum.is_zero())
        }) && self.row_count >= 0
    }
}

/// The observer that maintains the summary of one table.
struct SummaryObserver {
    summary: Summary,
}

impl RegionObserver for SummaryObserver {
    fn name(&self) -> &str {
        &self.summary.name
    }

    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::PreBatch, Hook::PreBulkLoad])
    }

    fn is_essential(&self) -> bool {
        true
    }

    fn pre_bulk_load(&self, _: &TableContext<'_>, _: &BulkLoadRef<'_>) -> store::Result<()> {
        Err(bulk_load_error("a summary"))
    }

    fn pre_batch(
        &self,
        context: &dyn ObserverContext,
        batch: &mut [Mutation],
    ) -> store::Result<()> {
        let summary = &self.summary;
        let value_error = |error| violation::value_error(&summary.name, error);
        reject_unmaintainable_edits("a summary", batch)?;
        load_previous(context, &summary.layout, batch, |_| true)?;
        let mut groups = Groups::new();
        for change in changes(&summary.layout, batch) {
            summary.count(change.row, &change.old, -1, &mut groups).map_err(value_error)?;
            summary.count(change.row, &change.new, 1, &mut groups).map_err(value_error)?;
        }
        let mut mutations = Vec::with_capacity(groups.len());
        for (key, group) in groups.into_iter().filter(|(_, group)| !group.delta.is_zero()) {
            mutations.push(summary.change(context, key, &group)?);
        }
        match mutations.is_empty() {
            true => Ok(()),
            false => context.add(summary.target, mutations),
        }
    }
}
