//! The constraint observer: NOT NULL and CHECK, checked in the region before the row is written.
//!
//! Only the columns that constraints refer to are decoded. A large batch is decoded into vectors
//! and checked column by column. If a row may fail, the rows are checked one by one to find the
//! first that fails and its error, as in PostgreSQL.

use std::sync::Arc;

use smallvec::SmallVec;
use store::error::{RejectedPut, Veto};
use store::observer::{Hook, Hooks, ObserverContext, RegionObserver};
use store::{CellBatch, Edit, Get, Mutation};
use types::expr::{EvalContext, Expr};
use types::function::quote_ident;
use types::rowcode::{ColumnPlace, RowDecoder, RowLayout};
use types::text::TextStyle;
use types::vector::VectorData;
use types::{Batch, DataType, Datum, Vector};

use crate::change::{Change, changes, eval_context, load_previous};
use crate::row::{self, PackedCells, ReadColumns, packed_puts, read_packed_cells};
use crate::violation::{self, CONSTRAINT, DuplicateKey, TableName};

/// Minimum number of rows for checking a batch column by column.
const VECTOR_ROWS_MIN: usize = 8;

/// The constraints of a table.
#[derive(Debug, Clone, PartialEq)]
pub struct ConstraintSpec {
    /// The table, for messages.
    pub table: TableName,
    /// Column names in table order, for messages. Columns with an empty name are not shown.
    pub column_names: Vec<String>,
    /// Storage layout of the rows.
    pub layout: Arc<RowLayout>,
    /// NOT NULL columns, by position.
    pub not_null: Vec<usize>,
    /// CHECK constraints.
    pub checks: Vec<Check>,
    /// Name of the primary key constraint, for duplicate keys.
    pub primary_key_name: String,
}

impl ConstraintSpec {
    /// Checks a row, in table order, before it is known whether it will be written.
    ///
    /// # Errors
    ///
    /// The observer's error, if it would reject the row.
    pub fn check_row(&self, row: &[Datum], context: &EvalContext) -> store::Result<()> {
        let refused = |veto| Err(store::Error::Vetoed(Box::new(veto)));
        let table = &self.table;
        let nulls = self.not_null.iter().copied().filter(|&column| row[column].is_null());
        if let Some(column) = nulls.min() {
            let name = &self.column_names[column];
            return refused(violation::not_null(
                table,
                name,
                self.failing_row(row.to_vec(), &context.style),
            ));
        }
        let mut checks: Vec<&Check> = self.checks.iter().collect();
        checks.sort_by(|a, b| a.name.cmp(&b.name));
        for check in checks {
            let holds = check.predicate.eval_row(row, context);
            if holds.map_err(|error| violation::value_error(CONSTRAINT, error))?.as_bool()
                == Some(false)
            {
                let failing_row = self.failing_row(row.to_vec(), &context.style);
                return refused(violation::check(table, &check.name, failing_row));
            }
        }
        Ok(())
    }

    /// Returns `Failing row contains (…).` with all columns that are shown.
    pub fn failing_row(&self, values: Vec<Datum>, style: &TextStyle) -> String {
        let (types, values): (Vec<DataType>, Vec<Datum>) = values
            .into_iter()
            .zip(&self.layout.columns)
            .zip(&self.column_names)
            .filter(|(_, name)| !name.is_empty())
            .map(|((value, column), _)| (column.data_type.clone(), value))
            .unzip();
        violation::failing_row(&types, &values, style)
    }
}

/// One CHECK constraint.
#[derive(Debug, Clone, PartialEq)]
pub struct Check {
    /// Name of the constraint.
    pub name: String,
    /// The condition over the row in table order. A row is rejected if it is false; NULL passes.
    pub predicate: Expr,
    /// True if all rows are known to satisfy it.
    pub valid: bool,
}

/// The observer that checks the rows of one table.
pub struct ConstraintObserver {
    spec: Arc<ConstraintSpec>,
    /// The columns that constraints refer to, in table order.
    columns: Vec<usize>,
    /// The cells of these columns.
    cells: Vec<usize>,
    /// [`ConstraintSpec::not_null`] in table order, as positions in `columns`.
    not_null: Vec<usize>,
    /// The positions of [`ConstraintSpec::checks`] by name, and their predicates over `columns`.
    checks: Vec<usize>,
    predicates: Vec<Expr>,
}

/// A violated constraint or an error of its evaluation.
enum RowViolation {
    /// A NULL; position in [`ConstraintObserver::columns`].
    Null(usize),
    /// A false CHECK; position in [`ConstraintObserver::checks`].
    Check(usize),
    /// An error while evaluating a CHECK or decoding the row.
    Value(types::Error),
}

impl ConstraintObserver {
    /// Creates the observer of these constraints.
    pub fn new(spec: Arc<ConstraintSpec>) -> ConstraintObserver {
        // PostgreSQL checks NOT NULL in the order of columns and CHECK in the order of names.
        let mut not_null = spec.not_null.clone();
        not_null.sort_unstable();
        let mut checks: Vec<usize> = (0..spec.checks.len()).collect();
        checks.sort_by_key(|&check| &spec.checks[check].name);
        let mut columns = not_null.clone();
        for check in &spec.checks {
            check.predicate.walk(&mut |node| {
                if let Expr::Column { index, .. } = node {
                    columns.push(*index);
                }
            });
        }
        columns.sort_unstable();
        columns.dedup();
        let position = |column: usize| {
            columns.binary_search(&column).expect("every column of a constraint was collected")
        };
        let over_columns = |check: &Check| {
            check.predicate.clone().transform(&mut |node| match node {
                Expr::Column { index, data_type } => {
                    Expr::Column { index: position(index), data_type }
                }
                node => node,
            })
        };
        ConstraintObserver {
            not_null: not_null.iter().map(|&column| position(column)).collect(),
            predicates: checks.iter().map(|&check| over_columns(&spec.checks[check])).collect(),
            checks,
            cells: row::cells_with(&spec.layout, &columns),
            columns,
            spec,
        }
    }

    /// Returns whether the mutation puts a row without one of the cells that constraints read.
    fn is_partial(&self, mutation: &Mutation) -> bool {
        let layout = &self.spec.layout;
        puts_row(layout, mutation) && !self.cells.iter().all(|&cell| puts(layout, mutation, cell))
    }

    /// Checks rows as a batch; returns `false` if one of them may fail.
    fn pass_together(&self, rows: &[&Change<'_>], eval: &EvalContext) -> types::Result<bool> {
        let layout = &self.spec.layout;
        let mut vectors = row::vectors_for(layout, &self.columns, rows.len());
        let decoder = RowDecoder::new(layout, &self.columns)?;
        for row in rows {
            decoder.decode(row.row, &row.new.packed(), &mut vectors)?;
        }
        let has_null = |vector: &Vector| {
            vector.validity.as_ref().is_some_and(|validity| validity.contains(&false))
        };
        if self.not_null.iter().any(|&position| has_null(&vectors[position])) {
            return Ok(false);
        }
        if self.predicates.is_empty() {
            return Ok(true);
        }
        let columns = vectors.into_iter().map(Arc::new).collect();
        let batch = Batch { columns, row_count: rows.len() };
        for predicate in &self.predicates {
            if any_false(&predicate.eval_batch(&batch, eval)?) {
                return Ok(false);
            }
        }
        Ok(true)
    }

    /// Returns whether a column is NULL because the row has lost its cell and the mutation does not
    /// write it.
    fn has_lost_cell(&self, change: &Change<'_>, position: usize) -> bool {
        let column = self.columns[position];
        match self.spec.layout.columns[column].place {
            ColumnPlace::Packed { cell, .. } => {
                self.spec.layout.may_lose_cell(column) && change.new.cell(cell).is_none()
            }
            ColumnPlace::Key(_) => false,
        }
    }

    /// Returns whether a CHECK reads columns without a cell and the mutation writes to none of the
    /// cells of its columns. Such a CHECK held when the columns were written and is not
    /// evaluated.
    fn is_left_alone(&self, mutation: &Mutation, change: &Change<'_>, predicate: &Expr) -> bool {
        let columns = predicate.columns();
        columns.iter().any(|&position| self.has_lost_cell(change, position))
            && columns.iter().all(|&position| {
                match self.spec.layout.columns[self.columns[position]].place {
                    ColumnPlace::Packed { cell, .. } => !puts(&self.spec.layout, mutation, cell),
                    ColumnPlace::Key(_) => true,
                }
            })
    }

    /// Checks one row.
    fn check_row(
        &self,
        mutation: &Mutation,
        change: &Change<'_>,
        eval: &EvalContext,
    ) -> Result<(), RowViolation> {
        let mut values: SmallVec<[Datum; 8]> = SmallVec::from_elem(Datum::Null, self.columns.len());
        RowDecoder::new(&self.spec.layout, &self.columns)
            .and_then(|decoder| decoder.decode(change.row, &change.new.packed(), &mut values))
            .map_err(RowViolation::Value)?;
        let refuses_null = |position: usize| {
            matches!(values[position], Datum::Null) && !self.has_lost_cell(change, position)
        };
        if let Some(&position) = self.not_null.iter().find(|&&position| refuses_null(position)) {
            return Err(RowViolation::Null(position));
        }
        for (position, predicate) in self.predicates.iter().enumerate() {
            if self.is_left_alone(mutation, change, predicate) {
                continue;
            }
            let outcome = predicate.eval_row(&values, eval).map_err(RowViolation::Value)?;
            if matches!(outcome, Datum::Bool(false)) {
                return Err(RowViolation::Check(position));
            }
        }
        Ok(())
    }

    fn veto(
        &self,
        context: &dyn ObserverContext,
        change: &Change<'_>,
        failure: RowViolation,
    ) -> store::Error {
        let table = &self.spec.table;
        let detail = || self.failing_row(context, change);
        let veto = match failure {
            RowViolation::Value(error) => return violation::value_error(CONSTRAINT, error),
            RowViolation::Null(position) => detail().map(|detail| {
                let column = self.columns[position];
                violation::not_null(table, &self.spec.column_names[column], detail)
            }),
            RowViolation::Check(position) => detail().map(|detail| {
                violation::check(table, &self.spec.checks[self.checks[position]].name, detail)
            }),
        };
        veto.map_or_else(|error| error, |veto| store::Error::Vetoed(Box::new(veto)))
    }

    /// Returns `Failing row contains (…).` with all columns, including those of cells that the
    /// mutation does not write; these are read here.
    fn failing_row(
        &self,
        context: &dyn ObserverContext,
        change: &Change<'_>,
    ) -> store::Result<String> {
        let layout = &self.spec.layout;
        let own = change.new.packed();
        let mut cells = CellBatch::new();
        if own.contains(&None) && !change.old.exists() {
            let get = ReadColumns::of_whole_rows(layout).get(Get::new(change.row));
            context.get(context.table(), &get, &mut cells)?;
        }
        let mut packed = PackedCells::from_elem(None, layout.cell_count());
        if !cells.is_empty() {
            read_packed_cells(&cells.row(0), layout, &mut packed);
        }
        for (stored, own) in packed.iter_mut().zip(own) {
            *stored = own.or(*stored);
        }
        let values = layout
            .unpack(change.row, &packed)
            .map_err(|error| violation::value_error(CONSTRAINT, error))?;
        Ok(self.spec.failing_row(values, &eval_context(context).style))
    }
}

impl RegionObserver for ConstraintObserver {
    fn name(&self) -> &str {
        CONSTRAINT
    }

    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::PreBatch])
    }

    fn is_essential(&self) -> bool {
        true
    }

    fn pre_batch(
        &self,
        context: &dyn ObserverContext,
        batch: &mut [Mutation],
    ) -> store::Result<()> {
        if self.columns.is_empty() && self.predicates.is_empty() {
            return Ok(());
        }
        let layout = &self.spec.layout;
        load_previous(context, layout, batch, |mutation| self.is_partial(mutation))?;
        let eval = eval_context(context);
        let changes = changes(layout, batch);
        let written: Vec<(&Mutation, &Change<'_>)> = batch
            .iter()
            .zip(&changes)
            .filter(|(mutation, change)| puts_row(layout, mutation) && change.new.exists())
            .collect();
        let rows: Vec<&Change<'_>> = written.iter().map(|(_, change)| *change).collect();
        // An error of the batch does not identify the first failing row; the loop below does.
        if rows.len() >= VECTOR_ROWS_MIN && self.pass_together(&rows, &eval).unwrap_or(false) {
            return Ok(());
        }
        for (mutation, row) in written {
            self.check_row(mutation, row, &eval)
                .map_err(|failure| self.veto(context, row, failure))?;
        }
        Ok(())
    }
}

/// Returns whether a mutation writes a cell.
fn puts(layout: &RowLayout, mutation: &Mutation, cell: usize) -> bool {
    cells_put(layout, mutation).any(|put| put == cell)
}

/// Returns whether a mutation writes a cell of the layout. A delete of versions does not count: its
/// puts are cells without values.
fn puts_row(layout: &RowLayout, mutation: &Mutation) -> bool {
    let is_of_versions = |edit: &Edit| {
        matches!(edit, Edit::DeleteRow { timestamp: Some(_) } | Edit::DeleteFamilyVersion { .. })
    };
    cells_put(layout, mutation).next().is_some() && !mutation.edits.iter().any(is_of_versions)
}

fn cells_put(layout: &RowLayout, mutation: &Mutation) -> impl Iterator<Item = usize> {
    mutation.edits.iter().filter_map(|edit| match edit {
        Edit::Put { family, qualifier, .. } => layout.cell_named(usize::from(*family), qualifier),
        _ => None,
    })
}

/// Returns whether a boolean vector contains a false (NULL does not count).
fn any_false(outcome: &Vector) -> bool {
    let VectorData::Bool(values) = &outcome.data else {
        return true;
    };
    match &outcome.validity {
        None => values.contains(&false),
        Some(validity) => values.iter().zip(validity).any(|(&value, &valid)| valid && !value),
    }
}

/// Returns the veto for a row with an existing primary key, `23505`. `puts` are its
/// values: the message shows the new row's key values, since equal values can differ in text.
pub fn duplicate_key_veto(
    spec: &ConstraintSpec,
    (row_key, puts): (&[u8], &[RejectedPut]),
    style: &TextStyle,
) -> Veto {
    key_veto(spec, (row_key, puts), style, |key| key.exists_veto(CONSTRAINT))
}

/// Returns the veto for a primary key that cannot be created because two rows have the same key,
/// `23505`.
pub fn duplicated_key_veto(
    spec: &ConstraintSpec,
    (row_key, puts): (&[u8], &[RejectedPut]),
    style: &TextStyle,
) -> Veto {
    key_veto(spec, (row_key, puts), style, |key| key.duplicated_veto(CONSTRAINT))
}

/// Returns the key values of a row, taken from `puts` if there are any.
fn key_values(
    layout: &RowLayout,
    (row_key, puts): (&[u8], &[RejectedPut]),
) -> types::Result<Vec<Datum>> {
    if puts.is_empty() {
        return layout.decode_key(row_key);
    }
    let packed = packed_puts(puts, layout);
    let columns = layout.key.iter().map(|key| key.column);
    columns.map(|column| layout.unpack_column(column, row_key, &packed)).collect()
}

fn key_veto(
    spec: &ConstraintSpec,
    row: (&[u8], &[RejectedPut]),
    style: &TextStyle,
    veto: impl FnOnce(&DuplicateKey<'_>) -> Veto,
) -> Veto {
    let values = match key_values(&spec.layout, row) {
        Ok(values) => values,
        Err(error) => return violation::value_veto(CONSTRAINT, error),
    };
    let columns = || spec.layout.key.iter().map(|key| key.column);
    let names: Vec<String> = columns().map(|one| quote_ident(&spec.column_names[one])).collect();
    let names: Vec<&str> = names.iter().map(String::as_str).collect();
    let types: Vec<DataType> =
        columns().map(|column| spec.layout.columns[column].data_type.clone()).collect();
    veto(&DuplicateKey {
        constraint: &spec.primary_key_name,
        table: &spec.table,
        key_names: &names,
        key_types: &types,
        values: &values,
        style,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fixture::*;

    /// Returns the constraints of
    /// `t (id int primary key, a int not null, b bool check (b), f.c int not null)`.
    fn spec() -> ConstraintSpec {
        let columns =
            [(DataType::Int4, 0), (DataType::Int4, 0), (DataType::Bool, 0), (DataType::Int4, 1)];
        let layout = Arc::new(layout(&columns, &[key(0, false)], 0));
        let name = "t_b_check".to_owned();
        let check = Check { name, predicate: column(&layout, 2), valid: true };
        ConstraintSpec {
            table: table_t(),
            column_names: ["id", "a", "b", "c"].map(str::to_owned).to_vec(),
            layout,
            not_null: vec![3, 1],
            checks: vec![check],
            primary_key_name: "t_pkey".to_owned(),
        }
    }

    fn row(id: i32, a: Option<i32>, b: Option<bool>, c: Option<i32>) -> Vec<Datum> {
        let int = |value: Option<i32>| value.map_or(Datum::Null, Datum::Int4);
        vec![Datum::Int4(id), int(a), b.map_or(Datum::Null, Datum::Bool), int(c)]
    }

    fn outcome(context: &FakeContext, mut batch: Vec<Mutation>) -> String {
        match ConstraintObserver::new(Arc::new(spec())).pre_batch(context, &mut batch) {
            Ok(()) => "ok".to_owned(),
            Err(store::Error::Vetoed(veto)) => {
                format!("{} {} | {}", veto.code, veto.message, veto.detail)
            }
            Err(error) => panic!("{error}"),
        }
    }

    const NULL_IN_A: &str = "23502 null value in column \"a\" of relation \"t\" violates not-null \
                             constraint | Failing row contains (5, null, t, 1).";
    const FALSE_B: &str = "23514 new row for relation \"t\" violates check constraint \
                           \"t_b_check\" | Failing row contains (6, 1, f, 1).";

    #[test]
    fn constraint_error_is_independent_of_batch_size() {
        let layout = spec().layout;
        let good = |id: i32| put_row(&layout, &row(id, Some(1), None, Some(1)));
        let null = put_row(&layout, &row(5, None, Some(true), Some(1)));
        let not_b = put_row(&layout, &row(6, Some(1), Some(false), Some(1)));
        for count in [0, 3, 100] {
            let rows: Vec<Mutation> = (10..10 + count).map(good).collect();
            let with = |bad: &[&Mutation]| {
                let bad = bad.iter().map(|&mutation| mutation.clone());
                outcome(&FakeContext::default(), rows.iter().cloned().chain(bad).collect())
            };
            assert_eq!(with(&[]), "ok");
            assert_eq!(with(&[&null, &not_b]), NULL_IN_A);
            assert_eq!(with(&[&not_b, &null]), FALSE_B);
        }
    }

    #[test]
    fn unwritten_families_are_checked_from_stored_row() {
        let layout = spec().layout;
        let old = row(6, Some(1), Some(true), Some(1));
        let mut context = FakeContext::default();
        context.rows.insert(layout.encode_key(&old).unwrap(), stored_row(&layout, &old, 1));
        let first_family = |values: &[Datum]| {
            let key = layout.encode_key(values).unwrap();
            Mutation::new(key).put(0, b"", layout.pack(0, values).unwrap())
        };
        let good = first_family(&row(6, Some(2), None, None));
        assert_eq!(outcome(&context, vec![good.clone()]), "ok");
        let bad = first_family(&row(6, Some(1), Some(false), None));
        assert_eq!(outcome(&context, vec![bad]), FALSE_B);
        // Without a stored row, c is NULL.
        assert!(outcome(&FakeContext::default(), vec![good]).starts_with("23502"));
    }

    #[test]
    fn deletes_are_not_checked_against_constraints() {
        let context = FakeContext::default();
        assert_eq!(outcome(&context, vec![Mutation::new(b"r").delete_row()]), "ok");
        assert!(context.read.borrow().is_empty());
    }

    #[test]
    fn duplicate_primary_key_error_matches_postgresql() {
        let spec = spec();
        let key = spec.layout.encode_key(&row(7, None, None, None)).unwrap();
        let veto = duplicate_key_veto(&spec, (&key, &[]), &TextStyle::default());
        assert_eq!(veto.message, "duplicate key value violates unique constraint \"t_pkey\"");
        assert_eq!(veto.detail, "Key (id)=(7) already exists.");
    }
}
