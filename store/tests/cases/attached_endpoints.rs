//! Tests of attached endpoints: statistics, time limit, suspension and resumption.

use std::sync::Arc;

use store::endpoint::{Endpoint, EndpointContext, Page};
use store::env::Env;
use store::env::fault::FaultEnv;
use store::error::Veto;
use store::observer::{
    CoprocessorLimits, CoprocessorScope, CoprocessorState, CoprocessorStatus, EndpointSeat,
};
use store::transaction::{AttachedEndpoint, PartitionRange};
use store::{CellBatch, Error, Options, Result, Scan, Store, Transaction};

use crate::cases::{TABLE, begin, descriptor, options, put};

/// Counts the rows of a region, or takes another action in that of row `g`.
struct Count {
    env: FaultEnv,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Then {
    Count,
    Refuse,
    Panic,
    PanicEverywhere,
    /// Takes two seconds, and returns.
    TakeTime,
    /// Takes half a second repeatedly, until the deadline.
    Loop,
}

impl Endpoint for Count {
    type Request = Then;
    type Response = usize;

    fn name(&self) -> &str {
        "count"
    }

    fn call(&self, region: &dyn EndpointContext, then: &Then) -> Result<Page<usize>> {
        let mut count = 0;
        let mut batch = CellBatch::new();
        for (start, stop) in region.ranges() {
            let mut scanner = region.scan(Scan::range(start.clone(), stop.clone()))?;
            while scanner.next_batch(10, &mut batch)? {
                count += batch.row_count();
                let is_marked = batch.rows().any(|row| row.key() == b"g");
                let wait = |micros| self.env.set_now(self.env.now_micros() + micros);
                match then {
                    Then::PanicEverywhere => panic!("everywhere"),
                    Then::Panic if is_marked => panic!("at g"),
                    Then::TakeTime if is_marked => wait(2_000_000),
                    Then::Refuse if is_marked => {
                        let veto = Veto { code: "BN001".into(), ..Veto::default() };
                        return Err(Error::Vetoed(Box::new(veto)));
                    }
                    Then::Loop if is_marked => loop {
                        region.note_rows(0)?;
                        wait(500_000);
                    },
                    _ => {}
                }
            }
        }
        Ok(Page::whole(count))
    }
}

fn three_regions(env: &FaultEnv, region_threads: usize) -> Arc<Store> {
    let time = Some(std::time::Duration::from_secs(1));
    let coprocessors = CoprocessorLimits { time, failures_max: 3 };
    let options = Options { coprocessors, region_threads, ..options(env) };
    let store = Store::open(std::path::Path::new("/data"), options).unwrap();
    store.create_table(descriptor(&["g", "p"], 1)).unwrap();
    for row in ["a", "b", "g", "q"] {
        put(&store, row, "v");
    }
    store.set_observers(TABLE, vec![(1_000, Arc::new(EndpointSeat::new("counter")))]).unwrap();
    store
}

fn count(transaction: &Transaction, env: &FaultEnv, then: Then) -> Result<usize> {
    const EVERYTHING: [PartitionRange; 1] = [(Vec::new(), None)];
    let attached: AttachedEndpoint<'_> = transaction.attached_endpoint(TABLE, "counter")?;
    let mut sum = 0;
    attached.call(&EVERYTHING, &Count { env: env.clone() }, &then, |part| {
        sum += part;
        Ok(())
    })?;
    attached.succeeded();
    Ok(sum)
}

fn veto(failed: Result<usize>) -> Veto {
    match failed {
        Err(Error::Vetoed(veto)) => *veto,
        other => panic!("{other:?}"),
    }
}

fn statistics(store: &Store) -> CoprocessorStatus {
    let mut all = store.coprocessors();
    assert_eq!((all.len(), all[0].name.as_str()), (1, "counter"));
    all.remove(0)
}

#[test]
fn attached_endpoint_is_found_by_name_and_counted() {
    let env = FaultEnv::new(1);
    let store = three_regions(&env, 1);
    let transaction = begin(&store);
    for calls in [3, 6] {
        assert_eq!(count(&transaction, &env, Then::Count).unwrap(), 4);
        let statistics = statistics(&store);
        assert_eq!(
            (statistics.calls, statistics.failures_in_a_row, statistics.refusals),
            (calls, 0, 0)
        );
    }
    let missing = transaction.attached_endpoint(TABLE, "count").err();
    assert!(matches!(missing, Some(Error::InvalidRequest(_))), "{missing:?}");
    store.set_observers(TABLE, Vec::new()).unwrap();
    let missing = transaction.attached_endpoint(TABLE, "counter").err();
    assert!(matches!(missing, Some(Error::InvalidRequest(_))), "{missing:?}");
}

#[test]
fn veto_is_not_counted_as_failure() {
    let env = FaultEnv::new(1);
    let store = three_regions(&env, 1);
    let transaction = begin(&store);
    for refusals in 1..5 {
        let veto = veto(count(&transaction, &env, Then::Refuse));
        assert_eq!((veto.code.as_str(), veto.coprocessor.as_str()), ("BN001", "counter"));
        assert_eq!(statistics(&store).refusals, refusals);
    }
    assert_eq!(statistics(&store).state, CoprocessorState::Active);
}

#[test]
fn endpoint_failing_in_one_region_is_suspended() {
    for threads in [1, 3] {
        let env = FaultEnv::new(1);
        let store = three_regions(&env, threads);
        let transaction = begin(&store);
        for then in [Then::Panic, Then::PanicEverywhere, Then::Panic] {
            let veto = veto(count(&transaction, &env, then));
            assert_eq!(veto.message, "coprocessor \"counter\" panicked");
            assert_eq!(veto.code, "38000");
        }
        // A failed call is one failure, regardless of the number of regions.
        assert_eq!((statistics(&store).panics, statistics(&store).failures_in_a_row), (3, 3));
        let calls = statistics(&store).calls;
        let veto = veto(count(&transaction, &env, Then::Count));
        assert_eq!(veto.code, "55000");
        let expected =
            "coprocessor \"counter\" of table \"t\" is suspended after 3 failures in a row";
        assert_eq!(veto.message, expected);
        assert_eq!(statistics(&store).calls, calls, "it was not called");
        // The table continues without it.
        put(&store, "c", "v");
        assert!(store.resume_coprocessor(CoprocessorScope::Table(TABLE), "counter").unwrap());
        assert_eq!(count(&begin(&store), &env, Then::Count).unwrap(), 5);
    }
}

#[test]
fn endpoint_failure_count_resets_after_success() {
    let env = FaultEnv::new(1);
    let store = three_regions(&env, 1);
    let transaction = begin(&store);
    for _ in 0..4 {
        for _ in 0..2 {
            veto(count(&transaction, &env, Then::Panic));
        }
        count(&transaction, &env, Then::Count).unwrap();
    }
    assert_eq!((statistics(&store).panics, statistics(&store).failures_in_a_row), (8, 0));
}

#[test]
fn endpoint_exceeding_time_limit_fails() {
    let env = FaultEnv::new(1);
    let store = three_regions(&env, 1);
    let transaction = begin(&store);
    let late = veto(count(&transaction, &env, Then::TakeTime));
    let message = |ms: u32| {
        format!(
            "coprocessor \"counter\" took {ms} ms in one call, which exceeds the limit of 1000 ms"
        )
    };
    assert_eq!((late.code.as_str(), late.message), ("38000", message(2000)));
    let looping = veto(count(&transaction, &env, Then::Loop));
    assert_eq!(looping.message, message(1500));
    assert_eq!(statistics(&store).overruns, 2);
    assert_eq!(statistics(&store).longest.as_millis(), 2000);
}

#[test]
fn endpoint_code_outside_regions_is_guarded() {
    let env = FaultEnv::new(1);
    let store = three_regions(&env, 1);
    let transaction = begin(&store);
    let attached = transaction.attached_endpoint(TABLE, "counter").unwrap();
    let everything = [(Vec::new(), None)];
    let failed = attached.call(&everything, &Count { env: env.clone() }, &Then::Count, |_| {
        panic!("while it was put together")
    });
    let Err(Error::Vetoed(veto)) = failed else { panic!("{failed:?}") };
    assert_eq!(veto.detail, "while it was put together");
    assert_eq!((statistics(&store).calls, statistics(&store).panics), (1, 1));
    let attached = transaction.attached_endpoint(TABLE, "counter").unwrap();
    let failed = attached.run(|| Err::<(), Error>(Error::InvalidRequest("no".into())));
    let Err(Error::Vetoed(veto)) = failed else { panic!("{failed:?}") };
    assert_eq!(veto.message, "coprocessor \"counter\" failed in one call: no");
    assert_eq!((statistics(&store).calls, statistics(&store).errors), (1, 1));
}
