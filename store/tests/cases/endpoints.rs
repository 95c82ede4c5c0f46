//! Endpoints: side by side in regions, over own writes, stopped by the first error.

use std::collections::HashSet;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use store::descriptor::RegionId;
use store::env::fault::FaultEnv;
use store::error::Veto;
use store::observer::{Endpoint, EndpointContext};
use store::{CellBatch, Error, Mutation, Result, Scan};

use crate::cases::{TABLE, begin, descriptor, open, put};

/// Counts rows; fails or panics in the region that holds `poison`.
#[derive(Default)]
struct Count {
    calls: AtomicUsize,
    regions: Mutex<HashSet<RegionId>>,
}

struct Poison {
    row: Option<&'static [u8]>,
    panics: bool,
}

const HEALTHY: Poison = Poison { row: None, panics: false };

impl Endpoint for Count {
    type Request = Poison;
    type Response = usize;

    fn name(&self) -> &str {
        "count"
    }

    fn call(&self, region: &dyn EndpointContext, poison: &Poison) -> Result<usize> {
        self.calls.fetch_add(1, Ordering::SeqCst);
        assert!(self.regions.lock().insert(region.region()), "region called twice");
        let mut count = 0;
        let mut batch = CellBatch::new();
        for (start, stop) in region.ranges() {
            let mut scanner = region.scan(Scan::range(start.clone(), stop.clone()))?;
            while scanner.next_batch(2, &mut batch)? {
                region.check_cancelled()?;
                count += batch.row_count();
                let found = batch.rows().any(|row| Some(row.key()) == poison.row);
                assert!(!(found && poison.panics), "poisoned");
                if found {
                    let veto = Veto { message: "poisoned".into(), ..Veto::default() };
                    return Err(Error::Vetoed(Box::new(veto)));
                }
            }
        }
        Ok(count)
    }
}

#[test]
fn every_region_of_the_ranges_answers_once_in_order() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&["g", "p"], 1)).unwrap();
    for row in ["a", "b", "g", "h", "i", "q"] {
        put(&store, row, "v");
    }
    let transaction = begin(&store);
    transaction.mutate(TABLE, vec![Mutation::new("c").put(0, "q", "own".into())]).unwrap();
    transaction.mutate(TABLE, vec![Mutation::new("h").delete_row()]).unwrap();
    transaction.begin_statement();
    put(&store, "z", "later");
    let all = [(Vec::new(), None)];
    let call = |ranges: &[(Vec<u8>, Option<Vec<u8>>)]| {
        transaction.call_endpoint(TABLE, ranges, &Count::default(), &HEALTHY).unwrap()
    };
    assert_eq!(call(&all), [3, 2, 1]);
    let parts = [(b"b".to_vec(), Some(b"c".to_vec())), (b"h".to_vec(), None)];
    assert_eq!(call(&parts), [1, 1, 1]);
    assert_eq!(call(&[(b"b".to_vec(), Some(b"g".to_vec()))]), [2]);
    assert!(call(&[]).is_empty());
}

#[test]
fn errors_and_panics_end_the_call() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&["g", "p"], 1)).unwrap();
    for row in ["a", "g", "q"] {
        put(&store, row, "v");
    }
    let transaction = begin(&store);
    let all = [(Vec::new(), None)];
    for (panics, message) in [(false, "poisoned"), (true, "coprocessor \"count\" panicked")] {
        let poison = Poison { row: Some(b"g"), panics };
        let failed = transaction.call_endpoint(TABLE, &all, &Count::default(), &poison);
        let Err(Error::Vetoed(veto)) = failed else { panic!("{failed:?}") };
        assert_eq!(veto.message, message);
    }
    // The store is none the worse for it.
    let counts = transaction.call_endpoint(TABLE, &all, &Count::default(), &HEALTHY).unwrap();
    assert_eq!(counts, [1, 1, 1]);
}
