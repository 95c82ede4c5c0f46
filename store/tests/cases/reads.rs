//! Tests of the cost of reads: filters avoid reading cells.

use std::sync::Arc;

use store::env::fault::FaultEnv;
use store::scan::filter::{FilterRange, FuzzyRow};
use store::{CellBatch, Filter, Mutation, Scan, Store};

use crate::cases::{TABLE, begin, descriptor, open};

/// Rows `0000|00` to `0999|99`: a hundred thousand, in files.
fn hundred_thousand() -> Arc<Store> {
    let store = open(&FaultEnv::new(1)).unwrap();
    store.create_table(descriptor(&["0300", "0700"], 1)).unwrap();
    for first in 0..1000 {
        let transaction = begin(&store);
        let rows = (0..100).map(|second| format!("{first:04}|{second:02}"));
        let puts = rows.map(|row| Mutation::new(row).put(0, "q", b"value".to_vec()));
        transaction.mutate(TABLE, puts.collect()).unwrap();
        transaction.commit().unwrap();
    }
    store.flush(TABLE).unwrap();
    store
}

#[test]
fn filter_seek_hints_reduce_cells_read() {
    let store = hundred_thousand();
    let transaction = begin(&store);
    let mut batch = CellBatch::new();
    let mut run = |scan: Scan| {
        let mut scanner = transaction.scan(TABLE, scan).unwrap();
        let mut rows = 0;
        while scanner.next_batch(1000, &mut batch).unwrap() {
            rows += batch.row_count();
        }
        (rows, scanner.counts())
    };
    let fuzzy = |pattern: &str| {
        let bytes = pattern.bytes().map(|byte| (byte != b'?').then_some(byte));
        Filter::FuzzyRow(vec![FuzzyRow(bytes.collect())])
    };
    for reverse in [false, true] {
        let mut with = |filter: Filter| run(Scan { filter: Some(filter), reverse, ..Scan::all() });
        let (rows, counts) = with(fuzzy("????|07"));
        assert_eq!(rows, 1000);
        assert!(counts.cells <= 1000 && counts.seeks < 5000, "{counts:?}");
        let (rows, counts) = with(fuzzy("05?5|99"));
        assert_eq!(rows, 10);
        assert!(counts.cells <= 10 && counts.seeks < 60, "{counts:?}");
        let (rows, counts) = with(Filter::RowPrefix(b"0420|".to_vec()));
        assert_eq!(rows, 100);
        assert!(counts.cells <= 100 && counts.seeks < 5, "{counts:?}");
        let ranges = [("0100", "0101"), ("0999|9", "1"), ("0100|5", "0102")];
        let (rows, counts) = with(Filter::RowRanges(
            ranges.iter().map(|(start, stop)| FilterRange::new(*start, *stop)).collect(),
        ));
        assert_eq!(rows, 210);
        assert!(counts.cells <= 210 && counts.seeks < 8, "{counts:?}");
        let (rows, counts) = with(Filter::Page(7));
        assert_eq!(rows, 7);
        assert!(counts.cells <= 7, "{counts:?}");
    }
}
