//! Tests of observers beyond scripts: time limits, threads, attribution of failures.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::Duration;

use store::cell::CellRef;
use store::env::Env;
use store::env::fault::FaultEnv;
use store::observer::{
    CellFilter, CellVerdict, CoprocessorScope, CoprocessorState, CoprocessorStatus, Hook, Hooks,
    ObserverContext, RegionObserver, Rewrite, TableContext,
};
use store::options::BlockingSection;
use store::transaction::{LockMode, LockWait, TransactionOptions};
use store::{CellBatch, Error, Get, Mutation, Options, Result, Store, TableDescriptor, TableId};

use crate::cases::{TABLE, begin, columnar_family, descriptor, get, open, options, put, scan};

const OTHER: TableId = TableId(2);

type PreBatch = dyn Fn(&dyn ObserverContext, &mut [Mutation]) -> Result<()> + Send + Sync;

/// Takes an action before each batch.
struct Before {
    name: &'static str,
    essential: bool,
    act: Box<PreBatch>,
}

impl RegionObserver for Before {
    fn name(&self) -> &str {
        self.name
    }

    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::PreBatch])
    }

    fn is_essential(&self) -> bool {
        self.essential
    }

    fn pre_batch(&self, context: &dyn ObserverContext, batch: &mut [Mutation]) -> Result<()> {
        (self.act)(context, batch)
    }
}

fn observe(
    store: &Store,
    table: TableId,
    name: &'static str,
    act: impl Fn(&dyn ObserverContext, &mut [Mutation]) -> Result<()> + Send + Sync + 'static,
) {
    let observer = Before { name, essential: false, act: Box::new(act) };
    store.set_observers(table, vec![(0, Arc::new(observer))]).unwrap();
}

fn two_tables(env: &FaultEnv) -> Arc<Store> {
    let store = open(env).unwrap();
    store.create_table(descriptor(&[], 1)).unwrap();
    let other = TableDescriptor { id: OTHER, name: "u".into(), ..descriptor(&[], 1) };
    store.create_table(other).unwrap();
    store
}

fn statistics(store: &Store, table: TableId) -> CoprocessorStatus {
    let of_table = |status: &CoprocessorStatus| status.scope == CoprocessorScope::Table(table);
    store.coprocessors().into_iter().find(of_table).unwrap()
}

fn try_put(store: &Arc<Store>, row: &str) -> Result<()> {
    let transaction = begin(store);
    transaction.mutate(TABLE, vec![Mutation::new(row).put(0, "q", b"v".to_vec())])
}

fn refused(result: Result<()>) -> store::error::Veto {
    match result {
        Err(Error::Vetoed(veto)) => *veto,
        other => panic!("{other:?}"),
    }
}

fn copy(context: &dyn ObserverContext, batch: &mut [Mutation]) -> Result<()> {
    let copies = batch.iter().map(|mutation| Mutation::new(mutation.row.as_slice()));
    context.add(OTHER, copies.map(|copy| copy.put(0, "q", b"copy".to_vec())).collect())
}

#[test]
fn cooperative_hook_stops_at_deadline() {
    let env = FaultEnv::new(1);
    let store = two_tables(&env);
    let rounds = Arc::new(AtomicU64::new(0));
    let (clock, counted) = (env.clone(), Arc::clone(&rounds));
    observe(&store, TABLE, "looper", move |context, _| {
        loop {
            context.check_deadline()?;
            counted.fetch_add(1, Ordering::SeqCst);
            clock.set_now(clock.now_micros() + 1_000_000);
        }
    });
    let veto = refused(try_put(&store, "a"));
    assert_eq!((veto.code.as_str(), veto.coprocessor.as_str()), ("38000", "looper"));
    assert!(veto.message.contains("took 6000 ms in pre_batch"), "{}", veto.message);
    assert_eq!(rounds.load(Ordering::SeqCst), 6);
    let statistics = statistics(&store, TABLE);
    assert_eq!((statistics.overruns, statistics.errors, statistics.refusals), (1, 0, 0));
    assert_eq!(statistics.longest, Duration::from_secs(6));
}

#[test]
fn cancelled_statement_stops_cooperative_hook() {
    let store = two_tables(&FaultEnv::new(1));
    let cancelled = Arc::new(AtomicBool::new(false));
    let flag = Arc::clone(&cancelled);
    observe(&store, TABLE, "looper", move |context, _| {
        loop {
            context.check_deadline()?;
            flag.store(true, Ordering::SeqCst);
        }
    });
    let options = TransactionOptions { cancelled, ..TransactionOptions::default() };
    let transaction = store.begin(options);
    let written = transaction.mutate(TABLE, vec![Mutation::new("a")]);
    assert!(matches!(written, Err(Error::Cancelled)), "{written:?}");
    let statistics = statistics(&store, TABLE);
    assert_eq!((statistics.refusals, statistics.errors), (1, 0), "that is not its fault");
}

#[test]
fn nested_observer_time_is_not_charged_to_outer() {
    let env = FaultEnv::new(1);
    let store = two_tables(&env);
    observe(&store, TABLE, "outer", copy);
    let clock = env.clone();
    observe(&store, OTHER, "inner", move |_, _| {
        clock.set_now(clock.now_micros() + 6_000_000);
        Ok(())
    });
    let veto = refused(try_put(&store, "a"));
    assert_eq!(veto.coprocessor, "inner");
    let (outer, inner) = (statistics(&store, TABLE), statistics(&store, OTHER));
    assert_eq!((outer.overruns, outer.errors, outer.refusals), (0, 0, 1));
    assert_eq!((inner.overruns, inner.errors, inner.refusals), (1, 0, 0));
    assert_eq!(outer.spent, Duration::ZERO);
}

#[test]
fn failure_is_counted_at_nested_observer() {
    let store = two_tables(&FaultEnv::new(1));
    observe(&store, TABLE, "outer", copy);
    observe(&store, OTHER, "inner", |_, _| panic!("told to"));
    for _ in 0..20 {
        let veto = refused(try_put(&store, "a"));
        if veto.coprocessor.is_empty() {
            panic!("nobody is named");
        }
        if statistics(&store, OTHER).state == CoprocessorState::Suspended {
            break;
        }
    }
    let (outer, inner) = (statistics(&store, TABLE), statistics(&store, OTHER));
    assert_eq!((outer.state, outer.errors, outer.panics), (CoprocessorState::Active, 0, 0));
    assert_eq!((inner.state, inner.panics), (CoprocessorState::Suspended, 10));
    assert!(inner.last_error.unwrap().contains("told to"));
    // It is not essential: the operation proceeds without it.
    try_put(&store, "a").unwrap();
}

#[test]
fn rejected_additions_are_undone_even_if_hook_continues() {
    let store = two_tables(&FaultEnv::new(1));
    observe(&store, TABLE, "outer", |context, batch| {
        // The repeated row cuts the additions in two; the second part is rejected.
        let mut twice = vec![Mutation::new("x").put(0, "q", b"1".to_vec())];
        twice.push(Mutation::new("x").put(0, "q", b"bad".to_vec()));
        assert!(context.add(OTHER, twice).is_err());
        copy(context, batch)
    });
    observe(&store, OTHER, "inner", |_, batch| {
        let bad = |mutation: &Mutation| format!("{:?}", mutation.edits).contains("98, 97, 100");
        match batch.iter().any(bad) {
            true => Err(Error::Vetoed(Box::default())),
            false => Ok(()),
        }
    });
    put(&store, "a", "v");
    let transaction = begin(&store);
    let mut row = CellBatch::new();
    assert!(transaction.get(OTHER, &Get::new("a"), &mut row).unwrap());
    assert!(!transaction.get(OTHER, &Get::new("x"), &mut row).unwrap());
}

/// Advances the clock by a minute when a thread is about to wait, once it is armed.
struct SlowWait {
    env: FaultEnv,
    armed: AtomicBool,
    passed: AtomicBool,
}

impl BlockingSection for SlowWait {
    fn run(&self, wait: &mut dyn FnMut()) {
        if self.armed.swap(false, Ordering::SeqCst) {
            self.env.set_now(self.env.now_micros() + 60_000_000);
            self.passed.store(true, Ordering::SeqCst);
        }
        wait();
    }
}

#[test]
fn lock_wait_is_not_charged_to_hook() {
    let env = FaultEnv::new(1);
    let armed = AtomicBool::new(false);
    let wait = Arc::new(SlowWait { env: env.clone(), armed, passed: AtomicBool::new(false) });
    let options = Options { blocking: wait.clone(), ..options(&env) };
    let store = Store::open(Path::new("/data"), options).unwrap();
    store.create_table(descriptor(&[], 1)).unwrap();
    observe(&store, TABLE, "locker", |context, _| context.lock(TABLE, b"x"));
    let holder = begin(&store);
    holder.lock_row(TABLE, b"x", LockMode::Exclusive, LockWait::Wait).unwrap();
    wait.armed.store(true, Ordering::SeqCst);
    std::thread::scope(|scope| {
        let writer = scope.spawn(|| try_put(&store, "a"));
        while !wait.passed.load(Ordering::SeqCst) {
            std::thread::yield_now();
        }
        holder.rollback();
        writer.join().unwrap().unwrap();
    });
    let statistics = statistics(&store, TABLE);
    assert_eq!((statistics.overruns, statistics.spent), (0, Duration::ZERO));
}

#[test]
fn concurrent_observer_panics_preserve_consistency() {
    let store = two_tables(&FaultEnv::new(1));
    let calls = Arc::new(AtomicU64::new(0));
    let counted = Arc::clone(&calls);
    observe(&store, TABLE, "fragile", move |context, batch| {
        copy(context, batch)?;
        assert!(!counted.fetch_add(1, Ordering::SeqCst).is_multiple_of(3), "told to");
        Ok(())
    });
    std::thread::scope(|scope| {
        for thread in 0..8 {
            let store = &store;
            scope.spawn(move || {
                for number in 0..50 {
                    let transaction = begin(store);
                    let row = format!("{thread}-{number}");
                    let mutation = Mutation::new(row.as_str()).put(0, "q", b"v".to_vec());
                    if transaction.mutate(TABLE, vec![mutation]).is_ok() {
                        transaction.commit().unwrap().durable.wait().unwrap();
                    }
                }
            });
        }
    });
    let transaction = begin(&store);
    let mut written = 0;
    for thread in 0..8 {
        for number in 0..50 {
            let row = format!("{thread}-{number}");
            let here = get(&transaction, &row).unwrap().is_some();
            let mut copied = CellBatch::new();
            let there = transaction.get(OTHER, &Get::new(row), &mut copied).unwrap();
            assert_eq!(here, there, "a row and its copy come together");
            written += u64::from(here);
        }
    }
    let statistics = statistics(&store, TABLE);
    assert_eq!((statistics.calls, statistics.panics), (400, 400 - written));
}

#[test]
fn read_only_observer_keeps_put_fast_path() {
    /// Counts batches and gets.
    struct Reader(AtomicU64);
    impl RegionObserver for Reader {
        fn name(&self) -> &str {
            "reader"
        }
        fn hooks(&self) -> Hooks {
            Hooks::of(&[Hook::PostGet])
        }
        fn post_get(&self, _: &TableContext<'_>, _: &Get, _: &mut CellBatch) -> Result<()> {
            self.0.fetch_add(1, Ordering::SeqCst);
            Ok(())
        }
        fn pre_batch(&self, _: &dyn ObserverContext, _: &mut [Mutation]) -> Result<()> {
            panic!("it did not ask for that");
        }
    }
    let store = two_tables(&FaultEnv::new(1));
    let reader = Arc::new(Reader(AtomicU64::new(0)));
    store.set_observers(TABLE, vec![(0, reader.clone())]).unwrap();
    put(&store, "a", "v");
    let mut row = CellBatch::new();
    assert!(store.get(TABLE, &Get::new("a"), &mut row).unwrap());
    assert!(begin(&store).exists(TABLE, &Get::new("a")).unwrap());
    assert_eq!(reader.0.load(Ordering::SeqCst), 1);
}

/// Replaces each value that begins with `v` by a longer one.
struct Lengthen;

impl CellFilter for Lengthen {
    fn judge(&mut self, cell: &CellRef<'_>) -> Result<CellVerdict> {
        Ok(match cell.value.starts_with(b"v") {
            true => CellVerdict::Change([cell.value, b" and more"].concat()),
            false => CellVerdict::Keep,
        })
    }
}

impl RegionObserver for Lengthen {
    fn name(&self) -> &str {
        "lengthen"
    }

    fn hooks(&self) -> Hooks {
        Hooks::of(&[Hook::PreFlushStore])
    }

    fn pre_flush_store(
        &self,
        _: &TableContext<'_>,
        _: &Rewrite<'_>,
    ) -> Result<Option<Box<dyn CellFilter>>> {
        Ok(Some(Box::new(Lengthen)))
    }
}

#[test]
fn observer_filters_apply_to_columnar_blocks() {
    let store = open(&FaultEnv::new(1)).unwrap();
    let families = vec![columnar_family()];
    store.create_table(TableDescriptor { families, ..descriptor(&[], 1) }).unwrap();
    store.set_observers(TABLE, vec![(0, Arc::new(Lengthen))]).unwrap();
    let mut expected = Vec::new();
    for number in 0..300 {
        let (row, value) = (format!("{number:03}"), ["v", "w"][number % 2]);
        put(&store, &row, value);
        let after = if value == "v" { "v and more" } else { "w" };
        expected.push((row, after.to_owned()));
    }
    store.flush(TABLE).unwrap();
    assert_eq!(scan(&begin(&store)).unwrap(), expected, "by rows and by columns");
    let statistics = statistics(&store, TABLE);
    assert_eq!((statistics.calls, statistics.errors), (301, 0), "the hook, and each cell");
}
