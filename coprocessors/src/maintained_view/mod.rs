//! Maintenance of a view with groups in the transaction that changes its table.
//!
//! ```text
//! batch of the table -> changes -> filter, keys, arguments -> a delta for each group
//!     for each group: lock its row, read it with its state, add the delta, write it
//!
//! row of the view, by the key of its group
//!   family 0    columns of the view
//!   family 1    [0]                          the state
//!               [aggregate + 1] value key    number of rows with the value, then the packed value
//! ```
//!
//! Format: `docs/formats/maintained-view.md`. A state has counts and sums. Values are counted one
//! by one for `min`, `max` and `count(DISTINCT)`: the first cell after the aggregate's number has
//! the least value, so that the minimum is known when the present one is deleted. Reads of the view
//! do not read family 1.
//!
//! # Invariants
//!
//! 1. A row of the view exists if a row of the table belongs to its group.
//! 2. A transaction reads and writes a group under the lock of the group's row, and holds it until
//!    its end. Groups are locked in key order within a batch.
//!
//! Source: counting maintenance of Gupta, Mumick and Subrahmanian (1993); HBase's wide rows.

mod group_state;

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::Arc;

use store::mutation::PreviousRow;
use store::observer::{BulkLoadRef, Hook, Hooks, ObserverContext, RegionObserver, TableContext};
use store::scan::{CellWindow, Filter};
use store::{CellBatch, Get, Mutation, RowRef, Scan, TableId, Transaction};
use types::aggregate::{Aggregate, AggregateKind};
use types::expr::{EvalContext, Expr};
use types::numeric::Numeric;
use types::rowcode::{ColumnPlace, KeyColumn, LayoutColumn, RowDecoder, RowLayout};
use types::{DataType, Datum, Error, Result, keycode};

use crate::change::{
    RowState, bulk_load_error, changes, load_previous, reject_unmaintainable_edits,
};
use crate::maintained_view::group_state::{AggregateTotal, GroupState};
use crate::row::{ReadColumns, packed_cells};
use crate::violation;

/// The family of the columns of a view.
const ROW_FAMILY: u8 = 0;
/// The family of the states of groups and of their values.
const STATE_FAMILY: u8 = 1;
/// The qualifier of the state of a group.
const STATE: [u8; 1] = [0];

/// The maximum number of aggregates: the first byte of a qualifier is the number of one.
pub const AGGREGATES_MAX: usize = 255;

/// Rows that are read at a time when a view is filled.
const FILL_ROWS: usize = 1_000;
/// Groups and values that are in memory when a view is filled.
const FILL_ENTRIES: usize = 10_000;
/// The maximum length of the key of a value.
const VALUE_KEY_BYTES: usize = 8 << 10;

/// The definition of a maintained view: its table, the expressions of its query, and its rows.
#[derive(Debug, Clone)]
pub struct MaintainedView {
    /// Its name, for messages.
    pub name: String,
    /// Layout of the rows of its table.
    pub layout: Arc<RowLayout>,
    /// Columns of the table that it reads, by position. Expressions refer to them in this order.
    pub columns: Vec<usize>,
    /// The condition on rows; `None` selects all.
    pub filter: Option<Expr>,
    /// Keys of the groups.
    pub keys: Vec<Expr>,
    /// Aggregates of the groups.
    pub aggregates: Vec<Aggregate>,
    /// For each column of the view, its position among the keys followed by the aggregates.
    pub outputs: Vec<usize>,
    /// Store table of the view.
    pub target: TableId,
    /// Layout of the rows of the view.
    pub target_layout: Arc<RowLayout>,
}

/// Method by which an aggregate is maintained.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Maintenance {
    /// By the number of values.
    Count,
    /// By the number of values and their sum.
    Sum,
    /// By the number of rows with each value; the first value is the result.
    Extreme {
        /// True for `max`.
        descending: bool,
    },
    /// By the number of rows with each value; the number of values is the result.
    Distinct,
}

impl Maintenance {
    /// Returns the method for an aggregate; `None` if it cannot be maintained.
    pub fn of(aggregate: &Aggregate) -> Option<Maintenance> {
        let argument = aggregate.arguments.first().map(Expr::data_type);
        let has_key = argument.is_some_and(|of| keycode::check_type(of).is_ok());
        match (aggregate.kind, aggregate.distinct) {
            _ if !aggregate.order_by.is_empty() => None,
            (AggregateKind::CountRows, _) | (AggregateKind::Count, false) => {
                Some(Maintenance::Count)
            }
            (AggregateKind::Count, true) if has_key => Some(Maintenance::Distinct),
            (AggregateKind::Min, _) if has_key => Some(Maintenance::Extreme { descending: false }),
            (AggregateKind::Max, _) if has_key => Some(Maintenance::Extreme { descending: true }),
            (AggregateKind::Sum | AggregateKind::Avg, false) => {
                use DataType::{Int2, Int4, Int8, Numeric};
                matches!(argument, Some(Int2 | Int4 | Int8 | Numeric)).then_some(Maintenance::Sum)
            }
            _ => None,
        }
    }

    fn counts_values(self) -> bool {
        matches!(self, Maintenance::Extreme { .. } | Maintenance::Distinct)
    }
}

/// Reads and writes of the rows of a view within a transaction.
trait ViewStore {
    fn lock(&self, view: TableId, row: &[u8]) -> store::Result<()>;
    fn read(&self, view: TableId, get: &Get, out: &mut CellBatch) -> store::Result<bool>;
    fn write(&self, view: TableId, mutations: Vec<Mutation>) -> store::Result<()>;
}

impl ViewStore for &dyn ObserverContext {
    fn lock(&self, view: TableId, row: &[u8]) -> store::Result<()> {
        ObserverContext::lock(*self, view, row)
    }

    fn read(&self, view: TableId, get: &Get, out: &mut CellBatch) -> store::Result<bool> {
        self.get(view, get, out)
    }

    fn write(&self, view: TableId, mutations: Vec<Mutation>) -> store::Result<()> {
        self.add(view, mutations)
    }
}

/// The transaction that fills a view; it holds the exclusive lock of the table.
impl ViewStore for Transaction {
    fn lock(&self, _: TableId, _: &[u8]) -> store::Result<()> {
        Ok(())
    }

    fn read(&self, view: TableId, get: &Get, out: &mut CellBatch) -> store::Result<bool> {
        self.get(view, get, out)
    }

    fn write(&self, view: TableId, mutations: Vec<Mutation>) -> store::Result<()> {
        self.mutate(view, mutations)
    }
}

/// The change of a group.
struct Group {
    /// Values of a row of the view, with those of the keys only.
    row: Vec<Datum>,
    delta: GroupState,
    /// Change of the number of rows with a value, by qualifier.
    values: BTreeMap<Vec<u8>, (Datum, i64)>,
}

/// Groups by the row key in the view: their order is the lock order of all transactions.
type Groups = BTreeMap<Vec<u8>, Group>;

impl Group {
    fn changes_nothing(&self) -> bool {
        self.delta.is_zero() && self.values.values().all(|(_, count)| *count == 0)
    }
}

/// A row of a view with its state.
struct StoredGroup {
    row: Option<Vec<Datum>>,
    state: GroupState,
    cells: CellBatch,
}

/// A change of the number of rows with a value.
struct ValueChange<'g> {
    /// Number of the aggregate.
    at: usize,
    qualifier: &'g Vec<u8>,
    value: &'g Datum,
    /// True if rows have the value after the change.
    remains: bool,
}

/// The observer of the table of a view.
#[derive(Debug)]
pub struct MaintainedViewObserver {
    view: MaintainedView,
    maintenance: Vec<Maintenance>,
}

impl MaintainedViewObserver {
    /// Returns the observer of a view whose aggregates can all be maintained.
    pub fn new(view: MaintainedView) -> MaintainedViewObserver {
        let known = view.aggregates.iter().map(Maintenance::of);
        let maintenance = known.map(|known| known.unwrap_or(Maintenance::Count)).collect();
        MaintainedViewObserver { view, maintenance }
    }

    /// Writes the rows of the view, which has none, from those of its table, and returns their
    /// number. There are no concurrent writers.
    ///
    /// # Errors
    ///
    /// Errors of the store; vetoes of values that the view cannot have.
    pub fn fill(&self, table: TableId, transaction: &Transaction) -> store::Result<u64> {
        let (mut count, mut rest) = (0, Some(Scan::all()));
        while let Some(scan) = rest {
            // A group that was written before is read again, which a new statement sees.
            transaction.begin_statement();
            let groups;
            (groups, rest) = self.groups_of(transaction, table, scan)?;
            count += self.apply(transaction, groups)?;
        }
        Ok(count)
    }

    /// Returns the groups of the first rows of a scan, and the scan of the others.
    fn groups_of(
        &self,
        transaction: &Transaction,
        table: TableId,
        scan: Scan,
    ) -> store::Result<(Groups, Option<Scan>)> {
        let view = &self.view;
        let columns = ReadColumns::of(&view.layout, &view.columns);
        let mut scanner = transaction.scan(table, columns.scan(scan))?;
        let (mut rows, mut groups) = (CellBatch::new(), Groups::new());
        let decoder = self.decoder()?;
        while scanner.next_batch(FILL_ROWS, &mut rows)? {
            for row in rows.rows() {
                let state = RowState::of(&row, &view.layout);
                self.count(&decoder, (row.key(), &state), 1, &mut groups)
                    .map_err(|error| self.value_error(error))?;
            }
            let entries: usize = groups.values().map(|group| 1 + group.values.len()).sum();
            if entries > FILL_ENTRIES
                && let Some(last) = rows.rows().last()
            {
                let rest = Scan { start_inclusive: false, ..Scan::range(last.key(), None) };
                return Ok((groups, Some(rest)));
            }
        }
        Ok((groups, None))
    }

    fn value_error(&self, error: Error) -> store::Error {
        violation::value_error(&self.view.name, error)
    }

    /// Returns the decoder of the columns that the view reads.
    fn decoder(&self) -> store::Result<RowDecoder<'_>> {
        let decoder = RowDecoder::new(&self.view.layout, &self.view.columns);
        decoder.map_err(|error| self.value_error(error))
    }

    /// Adds a row to its group (`sign` 1), or subtracts it (-1). Does nothing if the row does not
    /// exist or does not satisfy the condition.
    fn count(
        &self,
        decoder: &RowDecoder<'_>,
        (row, state): (&[u8], &RowState<'_>),
        sign: i64,
        groups: &mut Groups,
    ) -> Result<()> {
        let view = &self.view;
        if !state.exists() {
            return Ok(());
        }
        let mut values = vec![Datum::Null; view.columns.len()];
        decoder.decode(row, &state.packed(), &mut values[..])?;
        let context = EvalContext::default();
        let holds = |condition: &Option<Expr>| match condition {
            Some(condition) => Ok(condition.eval_row(&values, &context)? == Datum::Bool(true)),
            None => Ok(true),
        };
        if !holds(&view.filter)? {
            return Ok(());
        }
        let keys = view.keys.iter().map(|key| key.eval_row(&values, &context));
        let keys = keys.collect::<Result<Vec<Datum>>>()?;
        let output = |&at: &usize| keys.get(at).cloned().unwrap_or(Datum::Null);
        let row: Vec<Datum> = view.outputs.iter().map(output).collect();
        let key = view.target_layout.encode_key(&row)?;
        let group = groups.entry(key).or_insert_with(|| Group {
            row,
            delta: GroupState::zero(view.aggregates.len()),
            values: BTreeMap::new(),
        });
        group.delta.rows += sign;
        for (at, aggregate) in view.aggregates.iter().enumerate() {
            if !holds(&aggregate.filter)? {
                continue;
            }
            let argument = aggregate.arguments.first();
            let value =
                argument.map(|argument| argument.eval_row(&values, &context)).transpose()?;
            if value.as_ref().is_some_and(Datum::is_null) {
                continue;
            }
            self.count_value(at, value.unwrap_or(Datum::Null), sign, group)?;
        }
        Ok(())
    }

    /// Adds a value of an aggregate to its group, or subtracts it.
    fn count_value(&self, at: usize, value: Datum, sign: i64, group: &mut Group) -> Result<()> {
        match self.maintenance[at] {
            Maintenance::Count => group.delta.totals[at].count += sign,
            Maintenance::Sum => {
                let number = match &value {
                    Datum::Numeric(number) => number.clone(),
                    value => Numeric::from_i128(i128::from(value.as_i64().unwrap_or_default())),
                };
                group.delta.totals[at].add_value(&number, sign)?;
            }
            Maintenance::Extreme { .. } | Maintenance::Distinct => {
                let qualifier = self.qualifier(at, &value)?;
                group.values.entry(qualifier).or_insert((value, 0)).1 += sign;
            }
        }
        Ok(())
    }

    /// Returns the qualifier of the number of rows with a value.
    fn qualifier(&self, at: usize, value: &Datum) -> Result<Vec<u8>> {
        let descending = self.maintenance[at] == Maintenance::Extreme { descending: true };
        let mut qualifier = vec![at as u8 + 1];
        keycode::encode(value, self.argument_type(at), descending, false, &mut qualifier)?;
        if qualifier.len() > VALUE_KEY_BYTES {
            let (length, name) = (qualifier.len(), self.view.aggregates[at].kind.name());
            bail!(PROGRAM_LIMIT_EXCEEDED: "value of {length} bytes exceeds the maximum of {VALUE_KEY_BYTES} \
                for {name} in maintained view \"{}\"", self.view.name);
        }
        Ok(qualifier)
    }

    fn argument_type(&self, at: usize) -> &DataType {
        self.view.aggregates[at].arguments.first().map_or(&DataType::Int8, Expr::data_type)
    }

    /// Adds changes to the groups of the view; returns the number of rows that it has more.
    fn apply(&self, store: &dyn ViewStore, groups: Groups) -> store::Result<u64> {
        let mut mutations = Vec::with_capacity(groups.len());
        let mut new = 0;
        for (key, group) in groups {
            if !group.changes_nothing() {
                let (mutation, is_new) = self.change(store, key, &group)?;
                mutations.push(mutation);
                new += u64::from(is_new);
            }
        }
        if !mutations.is_empty() {
            store.write(self.view.target, mutations)?;
        }
        Ok(new)
    }

    /// Returns the mutation that changes a group, and whether it is a new one.
    fn change(
        &self,
        store: &dyn ViewStore,
        key: Vec<u8>,
        group: &Group,
    ) -> store::Result<(Mutation, bool)> {
        let failed = |error| self.value_error(error);
        store.lock(self.view.target, &key)?;
        let StoredGroup { row: old, mut state, cells } = self.stored(store, &key, group)?;
        let previous = match &old {
            Some(_) => PreviousRow::Row(Arc::new(cells.clone())),
            None => PreviousRow::Absent,
        };
        let begin = |key: Vec<u8>| {
            let mut mutation = Mutation::new(key);
            mutation.previous = previous.clone();
            mutation
        };
        state.add(&group.delta).map_err(failed)?;
        if state.rows == 0 && state.is_possible_without_values(&self.maintenance) {
            return Ok((begin(key).delete_row(), false));
        }
        let counted = self.count_values(begin(key.clone()), group, &cells, &mut state);
        let (mut mutation, values) = counted.map_err(failed)?;
        if !state.is_possible() || state.rows == 0 {
            return Err(failed(self.out_of_step()));
        }
        let mut row = old.as_ref().unwrap_or(&group.row).clone();
        let mut extremes = self.extremes(old.as_deref(), &values).map_err(failed)?;
        if extremes.iter().any(|(_, extreme)| extreme.is_none()) {
            // The values are read again, with the changes of this transaction.
            store.write(
                self.view.target,
                vec![std::mem::replace(&mut mutation, begin(key.clone()))],
            )?;
            for (at, extreme) in extremes.iter_mut().filter(|(_, extreme)| extreme.is_none()) {
                *extreme = Some(self.first_value(store, &key, *at)?);
            }
        }
        for (column, &output) in self.view.outputs.iter().enumerate() {
            let Some(at) = output.checked_sub(self.view.keys.len()) else { continue };
            let extreme = extremes.iter_mut().find(|(of, _)| *of == at);
            row[column] = match extreme.and_then(|(_, extreme)| extreme.clone()) {
                Some(value) => value,
                None => self.result(at, &state.totals[at]).map_err(failed)?,
            };
        }
        let mutation = self.put_row(mutation, &row, &state).map_err(failed)?;
        Ok((mutation, old.is_none()))
    }

    /// Reads a group: its row, its state, and the numbers of rows with the values that change.
    fn stored(
        &self,
        store: &dyn ViewStore,
        key: &[u8],
        group: &Group,
    ) -> store::Result<StoredGroup> {
        let view = &self.view;
        let mut get = Get::new(key).family(ROW_FAMILY).column(STATE_FAMILY, STATE);
        for qualifier in group.values.keys() {
            get = get.column(STATE_FAMILY, qualifier.as_slice());
        }
        let mut cells = CellBatch::new();
        if !store.read(view.target, &get, &mut cells)? {
            let state = GroupState::zero(view.aggregates.len());
            return Ok(StoredGroup { row: None, state, cells });
        }
        let row = cells.row(0);
        let decoded = || {
            let packed = packed_cells(&row, &view.target_layout);
            let values = view.target_layout.unpack(row.key(), &packed)?;
            let state = state_cell(&row, &STATE).ok_or_else(|| self.out_of_step())?;
            Ok((values, GroupState::decode(state, view.aggregates.len())?))
        };
        let (values, state) = decoded().map_err(|error| self.value_error(error))?;
        Ok(StoredGroup { row: Some(values), state, cells })
    }

    /// Adds the changes of the numbers of rows with each value to a mutation, and to the state the
    /// number of values. Returns them with the values that change.
    fn count_values<'g>(
        &self,
        mut mutation: Mutation,
        group: &'g Group,
        cells: &CellBatch,
        state: &mut GroupState,
    ) -> Result<(Mutation, Vec<ValueChange<'g>>)> {
        let row = (!cells.is_empty()).then(|| cells.row(0));
        let mut changes = Vec::with_capacity(group.values.len());
        for (qualifier, (value, change)) in &group.values {
            let at = usize::from(qualifier[0]) - 1;
            let stored = row.as_ref().and_then(|row| state_cell(row, qualifier));
            let old = stored.map_or(Ok(0), value_count)?;
            let new = old + change;
            if new < 0 {
                return Err(self.out_of_step());
            }
            if *change == 0 {
                continue;
            }
            state.totals[at].count += i64::from(new > 0) - i64::from(old > 0);
            mutation = if new == 0 {
                mutation.delete_column(STATE_FAMILY, qualifier.as_slice())
            } else {
                let mut bytes = new.to_le_bytes().to_vec();
                match stored {
                    // The form of the first value remains: 1.0 and 1.00 are one value.
                    Some(stored) => bytes.extend(&stored[8..]),
                    None => bytes.extend(self.packed_value(at, value)?),
                }
                mutation.put(STATE_FAMILY, qualifier.as_slice(), bytes)
            };
            changes.push(ValueChange { at, qualifier, value, remains: new > 0 });
        }
        Ok((mutation, changes))
    }

    /// Returns the values of `min` and `max`, by the number of the aggregate; `None` if the present
    /// one was deleted.
    fn extremes(
        &self,
        old: Option<&[Datum]>,
        changes: &[ValueChange<'_>],
    ) -> Result<Vec<(usize, Option<Datum>)>> {
        let mut extremes = Vec::new();
        for (at, maintenance) in self.maintenance.iter().enumerate() {
            if !matches!(maintenance, Maintenance::Extreme { .. }) {
                continue;
            }
            let output = at + self.view.keys.len();
            let column = self.view.outputs.iter().position(|of| *of == output);
            let present = old.zip(column).map(|(row, column)| &row[column]);
            let mut first = match present.filter(|value| !value.is_null()) {
                Some(value) => Some((self.qualifier(at, value)?, value)),
                None => None,
            };
            let mut is_deleted = false;
            for change in changes.iter().filter(|change| change.at == at) {
                let known = first.as_ref().map(|(qualifier, _)| qualifier.cmp(change.qualifier));
                match (known, change.remains) {
                    (Some(Ordering::Equal), false) => is_deleted = true,
                    (None | Some(Ordering::Greater), true) => {
                        first = Some((change.qualifier.clone(), change.value));
                    }
                    _ => {}
                }
            }
            let value = first.map_or(Datum::Null, |(_, value)| value.clone());
            extremes.push((at, (!is_deleted).then_some(value)));
        }
        Ok(extremes)
    }

    /// Reads the first value of an aggregate.
    fn first_value(&self, store: &dyn ViewStore, key: &[u8], at: usize) -> store::Result<Datum> {
        let mut get = Get::new(key).family(STATE_FAMILY);
        get.filter = Some(Filter::ColumnPrefix(vec![vec![at as u8 + 1]]));
        get.cells = CellWindow::FIRST;
        let mut cells = CellBatch::new();
        if !store.read(self.view.target, &get, &mut cells)? {
            return Ok(Datum::Null);
        }
        let cell = cells.row(0).cells().next().map(|cell| cell.value.to_vec());
        let value = cell.map_or(Ok(Datum::Null), |bytes| {
            value_count(&bytes)?;
            let layout = value_layout(self.argument_type(at));
            layout.unpack_column(
                1,
                &layout.encode_key(&[Datum::Int4(0), Datum::Null])?,
                &[Some(&bytes[8..])],
            )
        });
        value.map_err(|error| self.value_error(error))
    }

    /// Returns a value packed as the only column of a row.
    fn packed_value(&self, at: usize, value: &Datum) -> Result<Vec<u8>> {
        value_layout(self.argument_type(at)).pack(0, &[Datum::Int4(0), value.clone()])
    }

    /// Returns the value of an aggregate that is no extreme.
    fn result(&self, at: usize, total: &AggregateTotal) -> Result<Datum> {
        if self.maintenance[at] != Maintenance::Sum {
            return Ok(Datum::Int8(total.count));
        }
        let aggregate = &self.view.aggregates[at];
        let sum = total.sum();
        let sum = match aggregate.partial_types().get(1) {
            Some(DataType::Int8) => Datum::Int8(
                sum.to_i64()
                    .ok_or_else(|| err!(NUMERIC_VALUE_OUT_OF_RANGE: "bigint out of range"))?,
            ),
            _ => Datum::Numeric(sum),
        };
        let mut accumulator = aggregate.accumulator(&EvalContext::default());
        accumulator.resize(1);
        accumulator.merge(0, &[Datum::Int8(total.count), sum])?;
        accumulator.finish(0)
    }

    /// Adds the puts of a row and its state.
    fn put_row(&self, mutation: Mutation, row: &[Datum], state: &GroupState) -> Result<Mutation> {
        let layout = &self.view.target_layout;
        let cells = (0..layout.cell_count())
            .filter(|&cell| layout.family_of_cell(cell) == usize::from(ROW_FAMILY));
        let mutation = cells.into_iter().try_fold(mutation, |mutation, cell| {
            let packed = layout.pack(cell, row)?;
            Ok::<_, Error>(mutation.put(ROW_FAMILY, layout.qualifier_of_cell(cell), packed))
        })?;
        Ok(mutation.put(STATE_FAMILY, STATE, state.encode()?))
    }

    fn out_of_step(&self) -> Error {
        err!(DATA_CORRUPTED: "maintained view \"{}\" does not match the rows of its table", self.view.name;
            hint "Use REFRESH MATERIALIZED VIEW, which computes its rows again.")
    }
}

impl GroupState {
    /// Returns whether a group without rows can have this state, in which values that are counted
    /// one by one are not yet subtracted.
    fn is_possible_without_values(&self, maintenance: &[Maintenance]) -> bool {
        let mut others = self.clone();
        others
            .totals
            .iter_mut()
            .zip(maintenance)
            .filter(|(_, one)| one.counts_values())
            .for_each(|(total, _)| total.count = 0);
        others.is_zero()
    }
}

/// Returns a cell of the family of states.
fn state_cell<'a>(row: &RowRef<'a>, qualifier: &[u8]) -> Option<&'a [u8]> {
    let mut cells = row.cells();
    let cell = cells.find(|cell| cell.family == STATE_FAMILY && cell.qualifier == qualifier);
    cell.map(|cell| cell.value)
}

/// Returns the number of rows with a value, from its cell.
fn value_count(cell: &[u8]) -> Result<i64> {
    let count = cell.first_chunk::<8>();
    let count = count.ok_or_else(|| err!(DATA_CORRUPTED: "damaged value of a maintained view"))?;
    Ok(i64::from_le_bytes(*count))
}

/// Returns the layout that packs a value: that of a row with a key and one column.
fn value_layout(data_type: &DataType) -> RowLayout {
    let column = |data_type: &DataType, place: ColumnPlace| LayoutColumn {
        data_type: data_type.clone(),
        place,
        missing: Datum::Null,
    };
    RowLayout {
        schema_version: 1,
        ..RowLayout::new(
            vec![
                column(&DataType::Int4, ColumnPlace::Key(0)),
                column(data_type, ColumnPlace::Packed { cell: 0, slot: 0 }),
            ],
            vec![KeyColumn { column: 0, descending: false, nulls_first: false }],
            1,
        )
    }
}

impl RegionObserver for MaintainedViewObserver {
    fn name(&self) -> &str {
        &self.view.name
    }

    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::PreBatch, Hook::PreBulkLoad])
    }

    fn is_essential(&self) -> bool {
        true
    }

    fn pre_bulk_load(&self, _: &TableContext<'_>, _: &BulkLoadRef<'_>) -> store::Result<()> {
        Err(bulk_load_error("a maintained view"))
    }

    fn pre_batch(
        &self,
        context: &dyn ObserverContext,
        batch: &mut [Mutation],
    ) -> store::Result<()> {
        let layout = &self.view.layout;
        reject_unmaintainable_edits("a maintained view", batch)?;
        load_previous(context, layout, batch, |_| true)?;
        let mut groups = Groups::new();
        let decoder = self.decoder()?;
        for change in changes(layout, batch) {
            let both = [(&change.old, -1), (&change.new, 1)];
            both.into_iter()
                .try_for_each(|(state, sign)| {
                    self.count(&decoder, (change.row, state), sign, &mut groups)
                })
                .map_err(|error| self.value_error(error))?;
        }
        self.apply(&context, groups).map(drop)
    }
}
