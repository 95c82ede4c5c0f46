//! Benchmark of the memstore: inserts, gets, misses, scans in both directions, several writers.
//!
//! `cargo bench -p bennu-store --bench memstore -- [cells=400000]`. Rows of 16 bytes, values of 100
//! bytes. Prints the CPU time of the calling thread per cell (on Linux; otherwise the wall time),
//! and for several writers the wall time.

#![allow(clippy::disallowed_methods, reason = "tests use the system directly")]
#![allow(clippy::print_stdout, reason = "the rates are its output")]

use std::hint::black_box;
use std::time::Instant;

use store::cell::{CellType, KeyParts};
use store::memstore::{Memstore, MemstoreCursor, PoolPermit};
use store::scan::merge::Cursor;
use store::{Sequence, Timestamp};

const VALUE: [u8; 100] = [7; 100];

/// Returns the CPU time of this thread in nanoseconds.
fn thread_nanos(since: Instant) -> u64 {
    let figures = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let first = figures.split(' ').next().and_then(|figure| figure.parse().ok());
    first.unwrap_or_else(|| since.elapsed().as_nanos() as u64)
}

fn measure(what: &str, cells: u64, work: impl FnOnce()) {
    let since = Instant::now();
    let before = thread_nanos(since);
    work();
    println!("  {what:36} {:6} ns", (thread_nanos(since) - before) / cells);
}

fn mix(number: u64) -> u64 {
    let number = number.wrapping_add(0x9e37_79b9_7f4a_7c15);
    let number = (number ^ (number >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    let number = (number ^ (number >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    number ^ (number >> 31)
}

type Row = [u8; 16];

fn random_row(number: u64) -> Row {
    (u128::from(mix(number)) << 64 | u128::from(mix(!number))).to_be_bytes()
}

/// Rows with a common prefix.
fn text_row(number: u64) -> Row {
    let text = format!("{:016}", mix(number) % 10_000_000_000_000_000);
    text.as_bytes().try_into().expect("sixteen digits")
}

fn ordered_row(number: u64) -> Row {
    (u128::from(number) << 64).to_be_bytes()
}

fn entry(row: &Row) -> (KeyParts<'_>, &[u8]) {
    let key = KeyParts {
        row,
        qualifier: b"q",
        timestamp: Timestamp(5),
        sequence: Sequence(7),
        cell_type: CellType::Put,
    };
    (key, &VALUE)
}

fn scan_all(cursor: &mut dyn Cursor) -> u64 {
    let mut cells = 0;
    while let Some(key) = cursor.key() {
        black_box((key[0], cursor.value()[0]));
        cells += 1;
        cursor.advance().expect("nothing is read from disk");
    }
    cells
}

fn print_rates(name: &str, cells: u64, row: impl Fn(u64) -> Row) {
    println!("{name}");
    let mut rows: Vec<Row> = (0..cells).map(&row).collect();
    let memstore = Memstore::new();
    measure("insert", cells, || {
        for row in &rows {
            let (key, value) = entry(row);
            memstore.insert(&key, value);
        }
    });
    let (used, held) = (memstore.byte_count() / cells, memstore.held_bytes() / cells);
    println!("  bytes a cell: {used} used, {held} held");
    let shuffled: Vec<Row> =
        (0..cells).map(|cell| rows[(mix(cell ^ 0x5555) % cells) as usize]).collect();
    measure("get", cells, || {
        for row in &shuffled {
            assert!(scan_all(&mut MemstoreCursor::over_row(&memstore, row)) > 0);
        }
    });
    let absent: Vec<Row> = (0..cells).map(|cell| row(cell + 10 * cells)).collect();
    let get_absent = |memstore: &Memstore| {
        for row in &absent {
            black_box(MemstoreCursor::over_row(memstore, row).key());
        }
    };
    measure("get of an absent row", cells, || get_absent(&memstore));
    measure("get from an empty memstore", cells, || get_absent(&Memstore::new()));
    measure("scan", cells, || {
        assert_eq!(scan_all(&mut MemstoreCursor::forward(&memstore, b"")), cells);
    });
    measure("reverse scan", cells, || {
        assert_eq!(scan_all(&mut MemstoreCursor::reverse(&memstore, None)), cells);
    });
    rows.sort_unstable();
    let other = Memstore::new();
    measure("insert, sorted batches of 1,000", cells, || {
        for rows in rows.chunks(1000) {
            other.insert_all(rows.iter().map(entry));
        }
    });
    measure("drop", cells, || drop(memstore));
}

fn writers(threads: u64, cells: u64) {
    let memstore = Memstore::new();
    let start = Instant::now();
    std::thread::scope(|scope| {
        for thread in 0..threads {
            let memstore = &memstore;
            scope.spawn(move || {
                for cell in 0..cells / threads {
                    let row = random_row(cell * threads + thread);
                    let (key, value) = entry(&row);
                    memstore.insert(&key, value);
                }
            });
        }
    });
    let nanos = start.elapsed().as_nanos() as u64 / cells;
    println!("insert at random by {threads} threads: {nanos} ns of wall time");
}

fn main() {
    let cells = std::env::args()
        .find_map(|argument| argument.strip_prefix("cells=")?.parse().ok())
        .unwrap_or(400_000);
    let _spare = PoolPermit::within(1 << 30);
    // The first takes the memory from the system, the next from the pool.
    for name in ["random rows, new memory", "random rows"] {
        print_rates(name, cells, random_row);
    }
    print_rates("random rows, text", cells, text_row);
    print_rates("rows in order", cells, ordered_row);
    for threads in [1, 2, 8] {
        writers(threads, cells);
    }
}
