//! Model test of indexes: a store against a map. After each commit of a random history of writes,
//! rollbacks, flushes and compactions, the index tables have exactly the entries of the base
//! table.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;
use store::observer::RegionObserver;
use store::transaction::{Locking, RowExpectation, TransactionOptions};
use store::{
    CellBatch, Edit, FamilyDescriptor, Get, Mutation, Options, Scan, Store, TableDescriptor,
    TableId, Transaction,
};
use types::datum::{Array, Nested};
use types::expr::{EvalContext, Expr};
use types::inverted::InvertedClass;
use types::rowcode::RowLayout;
use types::{DataType, Datum};

use crate::fixture::*;
use crate::index::{self, IndexObserver, IndexSpec};
use crate::row::puts_of_row;

/// One step of a random history.
#[derive(Debug, Clone)]
enum Step {
    /// Inserts or overwrites rows in one batch; `a`, `b`, `c` of each.
    Put(Vec<(i32, Values)>),
    /// Overwrites the second family alone.
    PutSecond(i32, Option<i32>),
    Delete(Vec<i32>),
    /// Exchanges column `a` of two rows in one batch.
    Swap(i32, i32),
    Savepoint,
    RollBackTo,
    Commit,
    RollBack,
    Flush,
    Compact,
    Reopen,
}

/// Mapping of rows to cells.
#[derive(Debug, Clone, Copy)]
enum Storage {
    Row,
    Cell,
}

type Values = (Option<i32>, Option<u8>, Option<i32>);
type Rows = BTreeMap<i32, Values>;

fn values() -> impl Strategy<Value = Values> {
    (prop::option::of(0..8), prop::option::of(0..4u8), prop::option::of(0..3))
}

fn step() -> impl Strategy<Value = Step> {
    let id = || 0..10i32;
    prop_oneof![
        8 => prop::collection::btree_map(id(), values(), 1..4)
            .prop_map(|rows| Step::Put(rows.into_iter().collect())),
        3 => (id(), prop::option::of(0..3)).prop_map(|(id, c)| Step::PutSecond(id, c)),
        3 => prop::collection::vec(id(), 1..3).prop_map(Step::Delete),
        2 => (id(), id()).prop_map(|(a, b)| Step::Swap(a, b)),
        1 => Just(Step::Savepoint),
        1 => Just(Step::RollBackTo),
        4 => Just(Step::Commit),
        1 => Just(Step::RollBack),
        1 => Just(Step::Flush),
        1 => Just(Step::Compact),
        1 => Just(Step::Reopen),
    ]
}

/// Returns the layout of `t (id int primary key, a int, b text, f.c int, d int[])`, salted or not.
fn base_layout((salt, storage): (u8, Storage)) -> Arc<RowLayout> {
    let columns = [
        (DataType::Int4, 0),
        (DataType::Int4, 0),
        (DataType::Text, 0),
        (DataType::Int4, 1),
        (DataType::array_of(&DataType::Int4), 0),
    ];
    let packed = layout(&columns, &[key(0, false)], salt.into());
    Arc::new(match storage {
        Storage::Row => packed,
        Storage::Cell => with_column_cells(packed),
    })
}

/// Returns the indexes: unique; descending with an included column; functional over two keys;
/// partial, unique and not, with predicates over a column of the entry and over one outside it;
/// inverted, salted, partial and not.
fn specs(base: &Arc<RowLayout>) -> Vec<IndexSpec> {
    let a_is_null = Expr::IsNull(Box::new(column(base, 1)));
    let b = || column(base, 2);
    vec![
        index(base, TableId(2), true, &[(column(base, 1), false)], &[2], 0),
        index(base, TableId(3), false, &[(b(), true)], &[3], 0),
        index(base, TableId(4), false, &[(a_is_null.clone(), true), (b(), false)], &[], 3),
        IndexSpec {
            predicate: Some(Expr::Not(Box::new(a_is_null))),
            ..index(base, TableId(5), true, &[(column(base, 1), false)], &[], 0)
        },
        IndexSpec {
            predicate: Some(Expr::IsNull(Box::new(column(base, 3)))),
            ..index(base, TableId(6), false, &[(b(), false)], &[], 2)
        },
        inverted(base, TableId(7), 0),
        IndexSpec {
            predicate: Some(Expr::IsNull(Box::new(column(base, 3)))),
            ..inverted(base, TableId(8), 3)
        },
    ]
}

/// Returns an inverted index of `d`.
fn inverted(base: &Arc<RowLayout>, table: TableId, salt: u16) -> IndexSpec {
    let spec = index(base, table, false, &[(column(base, 4), false)], &[], salt);
    let mut layout = RowLayout::clone(&spec.layout);
    layout.columns[0].data_type = DataType::Bytea;
    IndexSpec { inverted: Some(InvertedClass::Array), layout: Arc::new(layout), ..spec }
}

fn datums(id: i32, (a, b, c): &Values) -> Vec<Datum> {
    let int = |value: &Option<i32>| value.map_or(Datum::Null, Datum::Int4);
    let d = b.map_or(Datum::Null, |letter| {
        let elements = [int(a), Datum::Int4(letter.into()), int(a), Datum::Int4(id % 3)];
        let elements = elements[..usize::from(letter) + 1].to_vec();
        let elements = if letter == 0 && a.is_none() { Vec::new() } else { elements };
        Datum::Nested(Nested::Array(Array::from_elements(elements).into()))
    });
    let b = b.map_or(Datum::Null, |letter| text(&"xyzw"[..usize::from(letter)]));
    vec![Datum::Int4(id), int(a), b, int(c), d]
}

struct Tables {
    store: Arc<Store>,
    base: Arc<RowLayout>,
    specs: Vec<IndexSpec>,
}

fn descriptor(id: TableId, families: &[&str], split_points: Vec<Vec<u8>>) -> TableDescriptor {
    TableDescriptor {
        durability: store::descriptor::Durability::AsyncWal,
        split_points,
        ..TableDescriptor::new(
            id,
            format!("t{}", id.0),
            families.iter().map(|name| FamilyDescriptor::new(*name)).collect(),
        )
    }
}

impl Tables {
    fn create(directory: &Path, (salt, storage): (u8, Storage)) -> Tables {
        let store = Store::open(directory, Options::default()).unwrap();
        let base = base_layout((salt, storage));
        let specs = specs(&base);
        let middle = base.encode_key_prefix(&[Datum::Int4(5)]).unwrap();
        let splits = if salt > 0 { vec![vec![1]] } else { vec![middle] };
        store.create_table(descriptor(TABLE, &["d", "f"], splits)).unwrap();
        for spec in &specs {
            store.create_table(descriptor(spec.store_table, &["d"], vec![])).unwrap();
        }
        let tables = Tables { store, base, specs };
        tables.observe();
        tables
    }

    fn build(&self, transaction: &Transaction, spec: &IndexSpec) -> store::Result<u64> {
        let progress = index::BuildProgress::default();
        let environment = index::BuildEnvironment {
            progress: &progress,
            store: &self.store,
            transaction,
            scratch: Arc::new(ScratchMemory),
            context: &EvalContext::default(),
        };
        let entry_count = index::index_build(&environment, TABLE, spec)?;
        assert!(progress.is_loading());
        assert!(spec.inverted.is_some() || progress.row_count() >= entry_count);
        Ok(entry_count)
    }

    fn observe(&self) {
        let observers = self.specs.iter().map(|spec| {
            let observer: Arc<dyn RegionObserver> = Arc::new(IndexObserver::new(spec.clone()));
            (0, observer)
        });
        self.store.set_observers(TABLE, observers.collect()).unwrap();
    }

    fn reopen(self, directory: &Path) -> Tables {
        let Tables { store, base, specs } = self;
        store.shut_down().unwrap();
        drop(store);
        let store = Store::open(directory, Options::default()).unwrap();
        let tables = Tables { store, base, specs };
        tables.observe();
        tables
    }

    fn all_tables(&self) -> Vec<TableId> {
        let indexes = self.specs.iter().map(|spec| spec.store_table);
        std::iter::once(TABLE).chain(indexes).collect()
    }

    fn begin(&self) -> Transaction {
        let transaction = self.store.begin(TransactionOptions::default());
        transaction.begin_statement();
        transaction
    }

    fn key(&self, id: i32) -> Vec<u8> {
        self.base.encode_key_values(&[Datum::Int4(id)]).unwrap()
    }

    fn put(&self, id: i32, values: &Values) -> Mutation {
        put_row(&self.base, &datums(id, values))
    }

    /// Asserts that table and indexes hold exactly `rows`.
    fn check(&self, transaction: &Transaction, rows: &Rows) {
        let expected = rows.iter().map(|(&id, values)| {
            let row = datums(id, values);
            (self.base.encode_key(&row).unwrap(), row)
        });
        let stored = contents(transaction, TABLE, &self.base);
        assert_eq!(stored, expected.collect::<BTreeMap<_, _>>(), "base table");
        for spec in &self.specs {
            let context = EvalContext::default();
            let in_index: Vec<_> =
                stored.values().filter(|row| spec.has_entry(row, &context).unwrap()).collect();
            let expected: Vec<_> = in_index.iter().flat_map(|row| index_rows(spec, row)).collect();
            let entry_count = expected.len();
            let expected: BTreeMap<_, _> = expected.into_iter().collect();
            assert_eq!(expected.len(), entry_count, "{}: keys collide", spec.name);
            let entries = contents(transaction, spec.store_table, &spec.layout);
            assert_eq!(entries, expected, "{}", spec.name);
            let difference = check_counts(transaction, spec);
            let expected = index::CheckCounts {
                row_count: rows.len() as u64,
                entry_count: entry_count as u64,
                ..Default::default()
            };
            assert_eq!(difference, expected, "{}", spec.name);
        }
    }
}

/// Returns the keys and rows of the index's table, in its layout's order.
fn index_rows(spec: &IndexSpec, base_row: &[Datum]) -> Vec<(Vec<u8>, Vec<Datum>)> {
    let row = index_row(spec, base_row);
    let Some(class) = spec.inverted else {
        let key = index::index_row_key(spec, base_row, &EvalContext::default()).unwrap();
        return vec![(key, row)];
    };
    let terms = class.terms(&row[0], spec.keys[0].data_type()).unwrap().into_iter();
    let rows = terms.map(|term| [&[Datum::bytea(&term[..])], &row[1..]].concat());
    rows.map(|row| (spec.layout.encode_key(&row).unwrap(), row)).collect()
}

/// Returns the row of the index's table for a base row, with the value of an inverted index in
/// place of its terms.
fn index_row(spec: &IndexSpec, base_row: &[Datum]) -> Vec<Datum> {
    let context = EvalContext::default();
    let mut row: Vec<Datum> =
        spec.keys.iter().map(|key| key.eval_row(base_row, &context).unwrap()).collect();
    row.extend(spec.base_layout.key.iter().map(|key| base_row[key.column].clone()));
    row.extend(spec.include.iter().map(|&column| base_row[column].clone()));
    row
}

fn contents(
    transaction: &Transaction,
    table: TableId,
    layout: &RowLayout,
) -> BTreeMap<Vec<u8>, Vec<Datum>> {
    let mut scanner = transaction.scan(table, Scan::all()).unwrap();
    let mut batch = CellBatch::new();
    let mut contents = BTreeMap::new();
    while scanner.next_batch(3, &mut batch).unwrap() {
        for row in batch.rows() {
            let packed = crate::row::packed_cells(&row, layout);
            contents.insert(row.key().to_vec(), layout.unpack(row.key(), &packed).unwrap());
        }
    }
    contents
}

/// Returns whether a value of `a` occurs twice.
fn collides(rows: &Rows) -> bool {
    let mut seen = std::collections::BTreeSet::new();
    rows.values().filter_map(|(a, _, _)| *a).any(|a| !seen.insert(a))
}

/// State of a running history.
struct Run {
    tables: Tables,
    transaction: Option<Transaction>,
    committed: Rows,
    own: Rows,
    savepoint: Option<(store::transaction::Savepoint, Rows)>,
}

impl Run {
    fn transaction(&self) -> &Transaction {
        self.transaction.as_ref().expect("a transaction is open")
    }

    /// Stages a batch whose outcome is `after`. It must fail if `after` has duplicates.
    fn stage(&mut self, mutations: Vec<Mutation>, after: Rows) {
        self.transaction().begin_statement();
        match self.transaction().mutate(TABLE, mutations) {
            Ok(()) => {
                assert!(!collides(&after), "a duplicate was let in");
                self.own = after;
            }
            Err(store::Error::Vetoed(veto)) => {
                assert_eq!(veto.code, "23505");
                assert!(collides(&after), "refused without a duplicate: {}", veto.detail);
            }
            Err(error) => panic!("{error}"),
        }
        self.transaction().begin_statement();
    }

    fn end(&mut self, commit: bool) {
        self.savepoint = None;
        let transaction = self.transaction.take().expect("a transaction is open");
        self.tables.check(&transaction, &self.own);
        if commit {
            transaction.commit().unwrap().durable.wait().unwrap();
            self.committed = self.own.clone();
        } else {
            transaction.rollback();
            self.own = self.committed.clone();
        }
        let transaction = self.tables.begin();
        self.tables.check(&transaction, &self.committed);
        self.transaction = Some(transaction);
    }

    fn change(&mut self, step: &Step) {
        let mut after = self.own.clone();
        let tables = &self.tables;
        let mutations = match step {
            Step::Put(rows) => rows
                .iter()
                .map(|(id, values)| {
                    after.insert(*id, *values);
                    tables.put(*id, values)
                })
                .collect(),
            Step::PutSecond(id, c) => {
                let Some(values) = after.get_mut(id) else { return };
                values.2 = *c;
                let row =
                    puts_of_row(&tables.base, Mutation::new(tables.key(*id)), &datums(*id, values));
                let mut second = row.unwrap();
                second.edits.retain(|edit| matches!(edit, Edit::Put { family: 1, .. }));
                vec![second]
            }
            Step::Delete(ids) => ids
                .iter()
                .map(|id| {
                    after.remove(id);
                    Mutation::new(tables.key(*id)).delete_row()
                })
                .collect(),
            Step::Swap(one, other) => {
                let (Some(mut x), Some(mut y)) =
                    (after.get(one).copied(), after.get(other).copied())
                else {
                    return;
                };
                if one == other {
                    return;
                }
                std::mem::swap(&mut x.0, &mut y.0);
                after.insert(*one, x);
                after.insert(*other, y);
                vec![tables.put(*one, &x), tables.put(*other, &y)]
            }
            _ => return,
        };
        self.stage(mutations, after);
    }

    fn step(mut self, step: &Step, directory: &Path) -> Run {
        match step {
            Step::Savepoint => {
                self.savepoint = Some((self.transaction().savepoint(), self.own.clone()));
            }
            Step::RollBackTo => {
                if let Some((savepoint, rows)) = self.savepoint.clone() {
                    self.transaction().rollback_to(savepoint);
                    self.transaction().begin_statement();
                    self.own = rows;
                }
            }
            Step::Commit => self.end(true),
            Step::RollBack => self.end(false),
            Step::Flush | Step::Compact => {
                for table in self.tables.all_tables() {
                    self.tables.store.flush(table).unwrap();
                    if matches!(step, Step::Compact) {
                        self.tables.store.compact(table, true).unwrap();
                    }
                }
            }
            Step::Reopen => {
                self.end(true);
                self.transaction = None;
                self.tables = self.tables.reopen(directory);
                let transaction = self.tables.begin();
                self.tables.check(&transaction, &self.committed);
                self.transaction = Some(transaction);
            }
            _ => self.change(step),
        }
        self
    }
}

fn run(base: (u8, Storage), steps: &[Step]) {
    let directory = tempfile::tempdir().unwrap();
    let tables = Tables::create(directory.path(), base);
    let transaction = Some(tables.begin());
    let rows = Rows::new();
    let mut run = Run { tables, transaction, committed: rows.clone(), own: rows, savepoint: None };
    for step in steps {
        run = run.step(step, directory.path());
    }
    run.end(true);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 48, ..ProptestConfig::default() })]

    #[test]
    fn index_contents_match_table_model(
        salt in prop_oneof![Just(0u8), Just(2u8)],
        storage in prop_oneof![Just(Storage::Row), Just(Storage::Cell)],
        steps in prop::collection::vec(step(), 1..40),
    ) {
        run((salt, storage), &steps);
    }
}

#[test]
fn statement_may_swap_unique_values() {
    run(
        (0, Storage::Row),
        &[
            Step::Put(vec![(1, (Some(1), None, None)), (2, (Some(2), None, None))]),
            Step::Commit,
            Step::Swap(1, 2),
            Step::Swap(1, 2),
            Step::Commit,
            Step::Swap(1, 2),
        ],
    );
}

#[test]
fn row_changed_twice_in_batch_has_one_entry() {
    let twice = vec![(1, (Some(5), Some(1), None)), (1, (Some(6), None, Some(2)))];
    run(
        (0, Storage::Row),
        &[Step::Put(twice.clone()), Step::Commit, Step::Put(twice), Step::Delete(vec![1, 1])],
    );
}

#[test]
fn index_build_fills_index_or_reports_duplicate() {
    let directory = tempfile::tempdir().unwrap();
    let tables = Tables::create(directory.path(), (2, Storage::Row));
    tables.store.set_observers(TABLE, vec![]).unwrap();
    let mut rows: Rows = (0..2500).map(|id| (id, (Some(id), Some(1), None))).collect();
    let transaction = tables.begin();
    let mutations = rows.iter().map(|(&id, values)| tables.put(id, values)).collect();
    transaction.mutate(TABLE, mutations).unwrap();
    transaction.commit().unwrap().durable.wait().unwrap();

    let transaction = tables.begin();
    for spec in &tables.specs {
        let entry_count =
            rows.iter().flat_map(|(id, of)| index_rows(spec, &datums(*id, of))).count();
        let is_inverted = spec.inverted.is_some();
        assert_eq!(is_inverted, entry_count > 2500);
        assert_eq!(tables.build(&transaction, spec).unwrap(), entry_count as u64);
    }
    transaction.begin_statement();
    tables.check(&transaction, &rows);
    transaction.rollback();

    rows.insert(7, (Some(2400), None, None));
    let transaction = tables.begin();
    transaction.mutate(TABLE, vec![tables.put(7, &rows[&7])]).unwrap();
    transaction.begin_statement();
    match tables.build(&transaction, &tables.specs[0]) {
        Err(store::Error::Vetoed(veto)) => {
            assert_eq!(veto.code, "23505");
            assert_eq!(veto.message, "could not create unique index \"i2\"");
            assert_eq!(veto.detail, "Key (k0)=(2400) is duplicated.");
        }
        outcome => panic!("{outcome:?}"),
    }
}

/// Index builds that exceed memory: over rows in columnar blocks, rows in the memstore, and rows
/// that the transaction has written and changed.
#[test]
fn large_index_build_spills_sort_and_bulk_loads() {
    const ROWS: i32 = 24_000;
    let directory = tempfile::tempdir().unwrap();
    let options = Options {
        memory_bytes: 4 << 20,
        region_threads: 3,
        parallel_after_rows: 100,
        ..Options::default()
    };
    let store = Store::open(directory.path(), options).unwrap();
    let columns = [
        DataType::Int4,
        DataType::Int4,
        DataType::Text,
        DataType::Int4,
        DataType::array_of(&DataType::Int4),
    ];
    let base = Arc::new(layout(&columns.map(|one| (one, 0)), &[key(0, false)], 0));
    let middle = base.encode_key_prefix(&[Datum::Int4(ROWS / 3)]).unwrap();
    let mut of_base = descriptor(TABLE, &["d"], vec![middle]);
    of_base.families = vec![columnar_family(&base)];
    store.create_table(of_base).unwrap();
    let tables = Tables { store, specs: specs(&base), base };
    for spec in &tables.specs {
        tables.store.create_table(descriptor(spec.store_table, &["d"], vec![])).unwrap();
    }
    // Scattered values, and NULLs that a unique index does not compare.
    let values = |id: i32| {
        let a = (id % 7 > 0).then_some(id.wrapping_mul(7919) % 1_000_003);
        (a, Some((id % 4) as u8), (id % 3 > 0).then_some(id))
    };
    let mut rows: Rows = (0..ROWS).map(|id| (id, values(id))).collect();
    for ids in [0..ROWS / 2, ROWS / 2..ROWS - 1_000] {
        for first in ids.clone().step_by(1_000) {
            let transaction = tables.begin();
            let some = first..ids.end.min(first + 1_000);
            let puts = some.map(|id| tables.put(id, &rows[&id])).collect();
            transaction.mutate(TABLE, puts).unwrap();
            transaction.commit().unwrap().durable.wait().unwrap();
        }
        tables.store.flush(TABLE).unwrap();
        tables.store.compact_table(TABLE, true).unwrap();
    }
    let transaction = tables.begin();
    for id in (0..ROWS).filter(|id| *id >= ROWS - 1_000 || id % 1_000 == 0) {
        rows.insert(id, values(id + ROWS));
        transaction.mutate(TABLE, vec![tables.put(id, &rows[&id])]).unwrap();
    }
    transaction.begin_statement();
    for spec in &tables.specs {
        tables.build(&transaction, spec).unwrap();
    }
    transaction.begin_statement();
    transaction.commit().unwrap().durable.wait().unwrap();
    drop(transaction);
    let tables = tables.reopen(directory.path());
    tables.check(&tables.begin(), &rows);
}

#[test]
fn failed_large_index_build_loads_nothing() {
    const ROWS: i32 = 24_000;
    let directory = tempfile::tempdir().unwrap();
    let tables = Tables::create(directory.path(), (0, Storage::Row));
    tables.store.set_observers(TABLE, vec![]).unwrap();
    let transaction = tables.begin();
    let value = |id: i32| (Some(if id == 20_000 { 77 } else { id }), None, None);
    let puts = (0..ROWS).map(|id| tables.put(id, &value(id))).collect();
    transaction.mutate(TABLE, puts).unwrap();
    transaction.begin_statement();
    let spec = &tables.specs[0];
    match tables.build(&transaction, spec) {
        Err(store::Error::Vetoed(veto)) => {
            assert_eq!(veto.code, "23505");
            assert_eq!(veto.detail, "Key (k0)=(77) is duplicated.");
        }
        outcome => panic!("{outcome:?}"),
    }
    transaction.begin_statement();
    assert!(contents(&transaction, spec.store_table, &spec.layout).is_empty());
}

fn check_counts(transaction: &Transaction, spec: &IndexSpec) -> index::CheckCounts {
    checked(transaction, spec, &mut Vec::new())
}

fn checked(
    transaction: &Transaction,
    spec: &IndexSpec,
    differences: &mut Vec<index::IndexDifference>,
) -> index::CheckCounts {
    let context = EvalContext::default();
    let check = index::IndexCheck {
        views: None,
        transaction,
        base_table: TABLE,
        spec,
        context: &context,
        column_names: &[],
    };
    index::check(&check, |found| {
        differences.extend(found);
        Ok::<_, store::Error>(())
    })
    .unwrap()
}

#[test]
fn index_repair_corrects_every_kind_of_difference() {
    let directory = tempfile::tempdir().unwrap();
    let tables = Tables::create(directory.path(), (0, Storage::Row));
    let transaction = tables.begin();
    let rows = (0..10).map(|id| tables.put(id, &(Some(id), None, None))).collect();
    transaction.mutate(TABLE, rows).unwrap();
    // Bypasses the observers.
    let put = |spec: &IndexSpec, id: i32, values: &Values| {
        let entry = index::index_entry(spec, &datums(id, values)).unwrap().unwrap();
        let (locking, expect) = (Locking::Row, RowExpectation::Anything);
        Mutation { locking, expect, ..entry }
    };
    for spec in tables.specs.iter().filter(|spec| spec.inverted.is_none()) {
        let delete =
            |id: i32| Mutation::new(put(spec, id, &(Some(id), None, None)).row).delete_row();
        let staged = vec![
            delete(3),
            delete(6),
            put(spec, 4, &(Some(44), Some(3), None)),
            put(spec, 99, &(Some(99), None, None)),
            put(spec, 5, &(Some(5), Some(2), None)),
        ];
        transaction.mutate(spec.store_table, staged).unwrap();
    }
    // Row 6 has the same key, and the check of uniqueness does not find its entry.
    transaction.mutate(TABLE, vec![tables.put(7, &(Some(6), None, None))]).unwrap();
    transaction.commit().unwrap().durable.wait().unwrap();
    for spec in tables.specs.iter().filter(|spec| spec.inverted.is_none()) {
        let mut differences = Vec::new();
        let counts = checked(&tables.begin(), spec, &mut differences);
        let expected = match spec.unique {
            true => (1, 2, 1, 1),
            false => (2, 3, 0, 0),
        };
        let found = (counts.missing, counts.extra, counts.differing, counts.duplicate);
        let covers_b = spec.include == [2];
        let expected = if spec.unique && !covers_b { (1, 2, 0, 1) } else { expected };
        assert_eq!(found, expected, "{}: {differences:?}", spec.name);
        let (begin, context) = (|| Arc::new(tables.begin()), EvalContext::default());
        let repair = || index::repair(&begin, (TABLE, spec), &context, &differences).unwrap();
        let (outcomes, durable) = repair();
        durable.unwrap().wait().unwrap();
        let outcome_of = |difference: &index::IndexDifference, outcome| match difference.kind {
            index::DifferenceKind::Duplicate => index::RepairOutcome::Duplicate,
            _ => outcome,
        };
        for (outcome, again) in [
            (outcomes, index::RepairOutcome::Corrected),
            (repair().0, index::RepairOutcome::Unneeded),
        ] {
            let wanted: Vec<_> = differences.iter().map(|one| outcome_of(one, again)).collect();
            assert_eq!(outcome, wanted, "{}: {differences:?}", spec.name);
        }
        let left = check_counts(&tables.begin(), spec);
        assert_eq!(left.differences(), counts.duplicate, "{}", spec.name);
    }
}

#[test]
fn index_repair_corrects_terms_of_inverted_index() {
    let directory = tempfile::tempdir().unwrap();
    let tables = Tables::create(directory.path(), (0, Storage::Row));
    let transaction = tables.begin();
    let value = |id: i32| (Some(id + 10), Some(3), None);
    let rows = (0..10).map(|id| tables.put(id, &value(id))).collect();
    transaction.mutate(TABLE, rows).unwrap();
    transaction.begin_statement();
    let is_whole = |spec: &&IndexSpec| spec.inverted.is_some() && spec.predicate.is_none();
    let spec = tables.specs.iter().find(is_whole).unwrap();
    let keys = |id: i32, values: &Values| -> Vec<Vec<u8>> {
        index_rows(spec, &datums(id, values)).into_iter().map(|(key, _)| key).collect()
    };
    let (of_row, of_others) = (keys(4, &value(4)), keys(4, &(Some(44), Some(3), None)));
    let mut found = CellBatch::new();
    assert!(transaction.get(spec.store_table, &Get::new(&*of_row[0]), &mut found).unwrap());
    let value = found.row(0).cells().next().unwrap().value.to_vec();
    // Bypasses the observers.
    let stray = of_others.iter().find(|key| !of_row.contains(key)).unwrap();
    let mut put = Mutation { locking: Locking::Row, ..Mutation::new(&**stray) };
    put.edits.push(Edit::Put { family: 0, qualifier: vec![], timestamp: None, value, ttl: None });
    let missing = of_row.iter().find(|key| !of_others.contains(key)).unwrap();
    let delete = Mutation::new(&**missing).delete_row();
    transaction.mutate(spec.store_table, vec![put, delete]).unwrap();
    transaction.commit().unwrap().durable.wait().unwrap();
    let mut differences = Vec::new();
    let counts = checked(&tables.begin(), spec, &mut differences);
    assert_eq!((counts.missing, counts.extra, counts.differences()), (1, 1, 2));
    let (begin, context) = (|| Arc::new(tables.begin()), EvalContext::default());
    let repaired = index::repair(&begin, (TABLE, spec), &context, &differences).unwrap();
    repaired.1.unwrap().wait().unwrap();
    assert_eq!(repaired.0[0], index::RepairOutcome::Corrected);
    assert_eq!(check_counts(&tables.begin(), spec).differences(), 0);
}

#[test]
fn index_check_counts_missing_and_extra_entries() {
    let directory = tempfile::tempdir().unwrap();
    let tables = Tables::create(directory.path(), (0, Storage::Row));
    let transaction = tables.begin();
    let rows = (0..10).map(|id| tables.put(id, &(Some(id), None, None))).collect();
    transaction.mutate(TABLE, rows).unwrap();
    // Bypasses the observers.
    let spec = &tables.specs[0];
    let entry = |id: i32, a: i32| {
        index::index_entry(spec, &datums(id, &(Some(a), None, None))).unwrap().unwrap()
    };
    let delete = Mutation::new(entry(3, 3).row).delete_row();
    let stray = Mutation { locking: Locking::Row, ..entry(4, 44) };
    transaction.mutate(spec.store_table, vec![delete, stray]).unwrap();
    transaction.begin_statement();
    let counts = check_counts(&transaction, spec);
    assert_eq!((counts.row_count, counts.entry_count), (10, 10));
    assert_eq!((counts.missing, counts.extra, counts.differences()), (1, 1, 2));
}
