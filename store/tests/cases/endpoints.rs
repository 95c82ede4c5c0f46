//! Tests of endpoints: parallel in regions, page by page, over own writes, despite splits and
//! merges of the regions, stopped by the first error.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use parking_lot::Mutex;
use proptest::prelude::*;
use store::descriptor::RegionId;
use store::endpoint::{Endpoint, EndpointContext, Page};
use store::env::fault::FaultEnv;
use store::error::Veto;
use store::store::SplitPoint;
use store::transaction::TransactionOptions;
use store::{CellBatch, Error, Mutation, Options, Result, Scan, Store, Transaction};

use crate::cases::{TABLE, begin, descriptor, open, options, put};

type RowRange = (Vec<u8>, Option<Vec<u8>>);

/// Returns the rows, in batches of two; takes another action in a row that is `marked`.
#[derive(Default)]
struct Rows {
    regions: Mutex<Vec<RegionId>>,
}

#[derive(Default)]
struct Request {
    marked: Option<&'static [u8]>,
    then: Then,
}

#[derive(Default)]
enum Then {
    #[default]
    Fail,
    Panic,
    /// Sets the flag and continues reading.
    Cancel(Arc<AtomicBool>, AtomicU64),
    /// Ends the page at this row.
    EndAt(&'static [u8]),
}

impl Endpoint for Rows {
    type Request = Request;
    type Response = Vec<Vec<u8>>;

    fn name(&self) -> &str {
        "rows"
    }

    fn call(&self, region: &dyn EndpointContext, request: &Request) -> Result<Page<Vec<Vec<u8>>>> {
        self.regions.lock().push(region.region());
        let mut found = Vec::new();
        let mut batch = CellBatch::new();
        for (start, stop) in region.ranges() {
            let mut scanner = region.scan(Scan::range(start.clone(), stop.clone()))?;
            while scanner.next_batch(2, &mut batch)? {
                found.extend(batch.rows().map(|row| row.key().to_vec()));
                if batch.rows().any(|row| Some(row.key()) == request.marked) {
                    match &request.then {
                        Then::Fail => {
                            let veto = Veto { message: "marked".into(), ..Veto::default() };
                            return Err(Error::Vetoed(Box::new(veto)));
                        }
                        Then::Panic => panic!("marked"),
                        Then::EndAt(row) => return Ok(Page::until(row.to_vec(), found)),
                        Then::Cancel(flag, before) => {
                            flag.store(true, Ordering::SeqCst);
                            before.fetch_add(found.len() as u64, Ordering::SeqCst);
                            continue;
                        }
                    }
                }
                let rows = batch.row_count() as u64;
                if let Some(row) = region.page_end(rows, &mut scanner)? {
                    return Ok(Page::until(row, found));
                }
            }
        }
        Ok(Page::whole(found))
    }
}

fn everything() -> [RowRange; 1] {
    [(Vec::new(), None)]
}

/// Returns the answers in the order received.
fn pages(
    transaction: &Transaction,
    ranges: &[RowRange],
    request: &Request,
) -> Result<Vec<Vec<Vec<u8>>>> {
    let mut pages = Vec::new();
    transaction.call_endpoint(
        &transaction.reader(TABLE).unwrap(),
        ranges,
        &Rows::default(),
        request,
        |page| {
            pages.push(page);
            Ok::<(), Error>(())
        },
    )?;
    Ok(pages)
}

/// Returns the rows of all answers, each once.
fn called(transaction: &Transaction, ranges: &[RowRange]) -> BTreeSet<Vec<u8>> {
    let pages = pages(transaction, ranges, &Request::default()).unwrap();
    let rows: Vec<Vec<u8>> = pages.into_iter().flatten().collect();
    let set: BTreeSet<Vec<u8>> = rows.iter().cloned().collect();
    assert_eq!(set.len(), rows.len(), "a row in two answers: {rows:?}");
    set
}

fn scanned(transaction: &Transaction, ranges: &[RowRange]) -> BTreeSet<Vec<u8>> {
    let mut rows = BTreeSet::new();
    let mut batch = CellBatch::new();
    for (start, stop) in ranges {
        let mut scanner =
            transaction.scan(TABLE, Scan::range(start.clone(), stop.clone())).unwrap();
        while scanner.next_batch(100, &mut batch).unwrap() {
            rows.extend(batch.rows().map(|row| row.key().to_vec()));
        }
    }
    rows
}

fn paged(env: &FaultEnv, page_rows: u64, parallel_after_rows: u64, threads: usize) -> Arc<Store> {
    let options = Options {
        endpoint_page_rows: page_rows,
        parallel_after_rows,
        parallel_piece_bytes: 1,
        region_threads: threads,
        ..options(env)
    };
    Store::open(std::path::Path::new("/data"), options).unwrap()
}

fn keys(rows: &[&str]) -> Vec<Vec<u8>> {
    rows.iter().map(|row| row.as_bytes().to_vec()).collect()
}

#[test]
fn endpoint_sees_own_writes_in_every_region() {
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
    // So few rows are one page per region, and processed in order by the caller alone.
    let call = |ranges: &[RowRange]| pages(&transaction, ranges, &Request::default()).unwrap();
    assert_eq!(call(&everything()), [keys(&["a", "b", "c"]), keys(&["g", "i"]), keys(&["q"])]);
    let parts = [(b"b".to_vec(), Some(b"c".to_vec())), (b"h".to_vec(), None)];
    assert_eq!(call(&parts), [keys(&["b"]), keys(&["i"]), keys(&["q"])]);
    assert_eq!(call(&[(b"b".to_vec(), Some(b"g".to_vec()))]), [keys(&["b", "c"])]);
    assert!(call(&[]).is_empty());
}

#[test]
fn endpoint_resumes_after_full_page() {
    let store = paged(&FaultEnv::new(1), 3, u64::MAX, 2);
    store.create_table(descriptor(&["g"], 1)).unwrap();
    for row in ["a", "b", "c", "d", "e", "g", "h", "i", "j", "k", "l"] {
        put(&store, row, "v");
    }
    let transaction = begin(&store);
    // Batches have two rows; a page ends with the batch that makes it full.
    let answers = pages(&transaction, &everything(), &Request::default()).unwrap();
    let expected =
        [keys(&["a", "b", "c", "d"]), keys(&["e"]), keys(&["g", "h", "i", "j"]), keys(&["k", "l"])];
    assert_eq!(answers, expected);
    // Several ranges of a region: a page ends in the next one, if it is full at the end of one.
    let ranges = [
        (b"a".to_vec(), Some(b"c".to_vec())),
        (b"d".to_vec(), Some(b"f".to_vec())),
        (b"k".to_vec(), None),
    ];
    let answers = pages(&transaction, &ranges, &Request::default()).unwrap();
    assert_eq!(answers, [keys(&["a", "b", "d", "e"]), keys(&["k", "l"])]);
}

#[test]
fn endpoint_call_survives_split_and_merge_between_pages() {
    let store = paged(&FaultEnv::new(1), 2, u64::MAX, 2);
    store.create_table(descriptor(&["m"], 1)).unwrap();
    let rows = ["a", "b", "c", "d", "e", "f", "g", "h", "n", "o", "p", "q"];
    for row in rows {
        put(&store, row, "v");
    }
    let transaction = begin(&store);
    transaction.mutate(TABLE, vec![Mutation::new("dd").put(0, "q", "own".into())]).unwrap();
    transaction.begin_statement();
    let endpoint = Rows::default();
    let mut found = Vec::new();
    let mut page_count = 0;
    let take = |page: Vec<Vec<u8>>| {
        page_count += 1;
        match page_count {
            // The region of the next page is split within the remaining range, …
            1 => {
                put(&store, "cc", "later");
                store.split_region(TABLE, SplitPoint::At(b"f".to_vec()))?;
                store.flush(TABLE)?;
            }
            // … its daughters are merged with the next one, …
            2 => {
                let regions = store.regions(TABLE)?;
                let regions: Vec<RegionId> = regions.iter().map(|region| region.region).collect();
                store.compact(TABLE, true)?;
                store.merge_regions(TABLE, &regions)?;
            }
            // … and split elsewhere.
            3 => {
                store.split_region(TABLE, SplitPoint::At(b"o".to_vec()))?;
            }
            _ => {}
        }
        found.extend(page);
        Ok::<(), Error>(())
    };
    transaction
        .call_endpoint(
            &transaction.reader(TABLE).unwrap(),
            &everything(),
            &endpoint,
            &Request::default(),
            take,
        )
        .unwrap();
    let mut expected: Vec<&str> = rows.to_vec();
    expected.insert(4, "dd");
    assert_eq!(found, keys(&expected));
    let regions: BTreeSet<RegionId> = endpoint.regions.lock().iter().copied().collect();
    assert!(regions.len() >= 4, "the pages were of regions as they were by then: {regions:?}");
}

#[test]
fn endpoint_error_or_panic_ends_call() {
    for threads in [1, 3] {
        let store = paged(&FaultEnv::new(1), 1, 0, threads);
        store.create_table(descriptor(&["g", "p"], 1)).unwrap();
        for row in ["a", "g", "q"] {
            put(&store, row, "v");
        }
        let transaction = begin(&store);
        let wrong_end = "endpoint \"rows\" returned an end key outside its page";
        for (then, message) in [
            (Then::Fail, "marked"),
            (Then::Panic, "coprocessor \"rows\" panicked"),
            (Then::EndAt(b"g"), wrong_end),
            (Then::EndAt(b"z"), wrong_end),
        ] {
            let request = Request { marked: Some(b"g"), then };
            let failed = pages(&transaction, &everything(), &request);
            let Err(Error::Vetoed(veto)) = failed else { panic!("{failed:?}") };
            assert_eq!(veto.message, message);
        }
        let refused = transaction.call_endpoint(
            &transaction.reader(TABLE).unwrap(),
            &everything(),
            &Rows::default(),
            &Request::default(),
            |_| Err(Error::InvalidRequest("not wanted".into())),
        );
        assert!(matches!(refused, Err(Error::InvalidRequest(_))));
        // The store is unaffected.
        assert_eq!(called(&transaction, &everything()).len(), 3);
        assert!(store.endpoint_calls().is_empty());
    }
}

#[test]
fn cancelled_endpoint_call_stops_within_page() {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&["g"], 1)).unwrap();
    for row in ["a", "b", "c", "d", "g"] {
        put(&store, row, "v");
    }
    let cancelled = Arc::new(AtomicBool::new(false));
    let options =
        TransactionOptions { cancelled: Arc::clone(&cancelled), ..TransactionOptions::default() };
    let transaction = store.begin(options);
    let request =
        Request { marked: Some(b"b"), then: Then::Cancel(Arc::clone(&cancelled), 0.into()) };
    let endpoint = Rows::default();
    let stopped = transaction.call_endpoint(
        &transaction.reader(TABLE).unwrap(),
        &everything(),
        &endpoint,
        &request,
        |_| Ok(()),
    );
    assert!(matches!(stopped, Err(Error::Cancelled)), "{stopped:?}");
    assert_eq!(endpoint.regions.lock().len(), 1, "no other region was asked");
    let Then::Cancel(_, rows) = request.then else { unreachable!() };
    assert_eq!(rows.into_inner(), 2);
    let read: u64 = store.regions(TABLE).unwrap().iter().map(|region| region.load.rows_read).sum();
    assert_eq!(read, 2, "nothing was read after it");
}

#[test]
fn running_endpoint_call_reports_progress() {
    let store = paged(&FaultEnv::new(1), 2, u64::MAX, 2);
    store.create_table(descriptor(&["g"], 1)).unwrap();
    for row in ["a", "b", "c", "g", "h"] {
        put(&store, row, "v");
    }
    let transaction = begin(&store);
    let mut seen = Vec::new();
    let take = |_| {
        let calls = store.endpoint_calls();
        let [call] = calls.as_slice() else { panic!("{calls:?}") };
        assert_eq!((call.table, call.endpoint.as_str(), call.regions), (TABLE, "rows", 2));
        seen.push((call.rows, call.pages, call.regions_done));
        Ok::<(), Error>(())
    };
    transaction
        .call_endpoint(
            &transaction.reader(TABLE).unwrap(),
            &everything(),
            &Rows::default(),
            &Request::default(),
            take,
        )
        .unwrap();
    assert_eq!(seen, [(2, 1, 0), (3, 2, 1), (5, 3, 2)]);
    assert!(store.endpoint_calls().is_empty());
}

#[test]
fn large_region_is_called_by_scan_partition() {
    let store = paged(&FaultEnv::new(1), u64::MAX, 0, 2);
    let mut small_blocks = descriptor(&["500"], 1);
    small_blocks.families[0].block_bytes = 64;
    store.create_table(small_blocks).unwrap();
    let before = begin(&store);
    let puts = (0..600).map(|number| Mutation::new(row(number)).put(0, "q", b"v".to_vec()));
    before.mutate(TABLE, puts.collect()).unwrap();
    before.commit().unwrap().durable.wait().unwrap();
    let transaction = begin(&store);
    assert_eq!(pages(&transaction, &everything(), &Request::default()).unwrap().len(), 2);
    store.flush(TABLE).unwrap();
    transaction.mutate(TABLE, vec![Mutation::new(row(7)).delete_row()]).unwrap();
    transaction.begin_statement();
    let mut progress = Vec::new();
    let mut rows = Vec::new();
    let take = |page: Vec<Vec<u8>>| {
        let calls = store.endpoint_calls();
        progress.push((calls[0].regions_done, calls[0].regions));
        rows.extend(page);
        Ok::<(), Error>(())
    };
    let (reader, request) = (transaction.reader(TABLE).unwrap(), Request::default());
    transaction.call_endpoint(&reader, &everything(), &Rows::default(), &request, take).unwrap();
    assert!((20..=130).contains(&progress.len()), "{} pieces", progress.len());
    assert_eq!((progress[0], progress[progress.len() - 1]), ((0, 2), (2, 2)));
    rows.sort();
    assert_eq!(rows, (0..600).filter(|number| *number != 7).map(row).collect::<Vec<_>>());
    // A narrow range has few partitions.
    let narrow = [(row(100), Some(row(101)))];
    assert_eq!(pages(&transaction, &narrow, &Request::default()).unwrap().len(), 1);
}

fn row(number: u16) -> Vec<u8> {
    format!("{number:03}").into_bytes()
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

    #[test]
    fn endpoint_result_matches_scan(
        committed in prop::collection::btree_set(0..300_u16, 0..200),
        own in prop::collection::btree_map(0..300_u16, any::<bool>(), 0..60),
        splits in prop::collection::btree_set(1..300_u16, 0..6),
        later_splits in prop::collection::vec(1..300_u16, 0..6),
        bounds in prop::collection::btree_set(0..300_u16, 0..7),
        (page_rows, parallel_after, threads) in (1..40_u64, 0..60_u64, 1..4_usize),
        flush in any::<bool>(),
    ) {
        let store = paged(&FaultEnv::new(1), page_rows, parallel_after, threads);
        let points: Vec<String> = splits.iter().map(|point| format!("{point:03}")).collect();
        let points: Vec<&str> = points.iter().map(String::as_str).collect();
        store.create_table(descriptor(&points, 1)).unwrap();
        let write = |transaction: &Transaction, number: u16, present: bool| {
            let mutation = Mutation::new(row(number));
            let mutation = match present {
                true => mutation.put(0, "q", b"v".to_vec()),
                false => mutation.delete_row(),
            };
            transaction.mutate(TABLE, vec![mutation]).unwrap();
        };
        let before = begin(&store);
        committed.iter().for_each(|number| write(&before, *number, true));
        before.commit().unwrap().durable.wait().unwrap();
        if flush {
            store.flush(TABLE).unwrap();
        }
        let transaction = begin(&store);
        own.iter().for_each(|(number, present)| write(&transaction, *number, *present));
        transaction.begin_statement();
        let bounds: Vec<Vec<u8>> = bounds.into_iter().map(row).collect();
        let mut ranges: Vec<RowRange> = bounds
            .chunks(2)
            .map(|pair| (pair[0].clone(), pair.get(1).cloned()))
            .collect();
        if ranges.is_empty() {
            ranges = everything().to_vec();
        }
        let expected = scanned(&transaction, &ranges);
        prop_assert_eq!(&called(&transaction, &ranges), &expected);
        // The same during splits and concurrent writes.
        let mut later = later_splits.into_iter();
        let mut found = Vec::new();
        let take = |page: Vec<Vec<u8>>| {
            found.extend(page);
            if let Some(point) = later.next() {
                // Rejected if a region begins there already.
                let _ = store.split_region(TABLE, SplitPoint::At(row(point)));
                // This transaction holds the locks of its own rows.
                if !own.contains_key(&point) {
                    let other = begin(&store);
                    write(&other, point, point % 2 == 0);
                    other.commit()?.durable.wait()?;
                }
            }
            Ok::<(), Error>(())
        };
        let request = Request::default();
        transaction.call_endpoint(&transaction.reader(TABLE).unwrap(), &ranges, &Rows::default(), &request, take).unwrap();
        found.sort();
        prop_assert_eq!(found, expected.into_iter().collect::<Vec<_>>());
    }
}
