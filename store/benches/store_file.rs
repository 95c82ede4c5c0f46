//! Benchmark of store files: writing, gets, misses, scans in both directions.
//!
//! `cargo bench -p bennu-store --bench store_file -- [cells=1000000] [block=32768]
//! [compression=lz4] [only=PART]`. Keys have 16 bytes, values 100 of which half compress. Prints
//! the wall time and the CPU time of the calling thread per cell.

#![allow(clippy::disallowed_methods, reason = "tests use the system directly")]
#![allow(clippy::print_stdout, reason = "the figures are its output")]

use std::hint::black_box;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use store::cache::{BlockCache, FamilyCache};
use store::cell::{CellType, KeyParts, row_of};
use store::descriptor::Compression;
use store::env::{Env, RealEnv};
use store::file::{Caching, FileCursor, FileWriter, StoreFile};
use store::scan::merge::Cursor;
use store::{FamilyDescriptor, Sequence, Timestamp};

struct Settings {
    cell_count: u64,
    family: FamilyDescriptor,
    only: Option<String>,
}

fn settings() -> Settings {
    let mut settings =
        Settings { cell_count: 1_000_000, family: FamilyDescriptor::new("f"), only: None };
    for argument in std::env::args().skip(1).filter(|argument| argument != "--bench") {
        match argument.split_once('=') {
            Some(("cells", value)) => settings.cell_count = value.parse().expect("a number"),
            Some(("block", value)) => {
                settings.family.block_bytes = value.parse().expect("a number")
            }
            Some(("compression", "none")) => settings.family.compression = Compression::None,
            Some(("compression", "lz4")) => settings.family.compression = Compression::Lz4,
            Some(("only", value)) => settings.only = Some(value.to_owned()),
            _ => panic!("unknown argument {argument}"),
        }
    }
    settings
}

/// Row `n` of `0..cell_count`: ascending, 16 bytes, of which adjacent rows differ only in the
/// lower ones.
fn row(n: u64) -> [u8; 16] {
    let mut row = *b"user000000000000";
    let mut rest = n;
    for digit in row[4..].iter_mut().rev() {
        *digit = b'0' + (rest % 10) as u8;
        rest /= 10;
    }
    row
}

fn mix(n: u64) -> u64 {
    let mut x = n.wrapping_add(0x9e37_79b9_7f4a_7c15);
    x = (x ^ (x >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    x = (x ^ (x >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    x ^ (x >> 31)
}

fn value(n: u64) -> [u8; 100] {
    let mut value = [b'v'; 100];
    for (word, chunk) in value[..50].chunks_mut(8).enumerate() {
        let random = mix(n * 8 + word as u64).to_le_bytes();
        chunk.copy_from_slice(&random[..chunk.len()]);
    }
    value
}

/// Returns the CPU time of this thread in nanoseconds.
fn processor_nanos() -> u64 {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    text.split_whitespace().next().and_then(|first| first.parse().ok()).unwrap_or(0)
}

fn measure(settings: &Settings, what: &str, count: u64, work: &mut dyn FnMut()) {
    if settings.only.as_ref().is_some_and(|only| !what.contains(only.as_str())) {
        return;
    }
    let (wall, processor) = (Instant::now(), processor_nanos());
    work();
    let (wall, processor) = (wall.elapsed().as_nanos() as f64, processor_nanos() - processor);
    let each = |nanos: f64| nanos / count as f64;
    println!("{what:<28} {:>8.1} ns {:>8.1} ns", each(wall), each(processor as f64));
}

fn write(settings: &Settings, env: &Arc<dyn Env>, path: &Path) {
    let mut writer = FileWriter::new(env.clone(), path, &settings.family);
    let mut key = Vec::new();
    for n in 0..settings.cell_count {
        let row = row(n);
        key.clear();
        let parts = KeyParts {
            row: &row,
            qualifier: b"",
            timestamp: Timestamp(1_700_000_000_000_000),
            sequence: Sequence(7),
            cell_type: CellType::Put,
        };
        parts.encode(&mut key);
        writer.add(&key, &value(n)).expect("it can be written");
    }
    writer.finish().expect("it can be written");
}

fn count_cells(mut cursor: FileCursor) -> u64 {
    let (mut count, mut bytes) = (0, 0);
    while let Some(key) = cursor.key() {
        bytes += key.len() + cursor.value().len();
        count += 1;
        cursor.advance().expect("it can be read");
    }
    black_box(bytes);
    count
}

fn main() {
    let settings = settings();
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("f000-0000000001.store");
    let env: Arc<dyn Env> = Arc::new(RealEnv::default());
    let count = settings.cell_count;
    println!("{:<28} {:>11} {:>11}", format!("{count} cells"), "wall", "thread");
    let mut make = || {
        for n in 0..count {
            black_box((row(n), value(n)));
        }
    };
    measure(&settings, "making cells", count, &mut make);
    // Always executed: the other benchmarks read it.
    let all = Settings { only: None, family: settings.family.clone(), cell_count: count };
    measure(&all, "write", count, &mut || write(&settings, &env, &path));

    let cache = Arc::new(BlockCache::new(count * 300 + (64 << 20)));
    let family = Arc::new(FamilyCache::new(cache.clone()));
    let file = Arc::new(StoreFile::open(env.clone(), &path, family.clone()).expect("it opens"));
    println!("{} bytes", file.byte_count());
    let forward = |caching| FileCursor::forward(file.clone(), b"", caching).expect("it opens");
    let reverse = || FileCursor::reverse(file.clone(), None, Caching::Keep).expect("it opens");
    let scan = |caching| assert_eq!(count_cells(forward(caching)), count);
    measure(&settings, "scan past the cache", count, &mut || scan(Caching::Bypass));
    measure(&all, "scan into the cache", count, &mut || scan(Caching::Keep));
    measure(&settings, "scan of the cache", count, &mut || scan(Caching::Keep));
    measure(&settings, "reverse scan of the cache", count, &mut || {
        assert_eq!(count_cells(reverse()), count);
    });

    let points = count.min(1_000_000);
    let get = |row: &[u8]| {
        if !file.may_contain_row(row).expect("it can be read") {
            return false;
        }
        let cursor = FileCursor::forward(&*file, row, Caching::Keep).expect("it can be read");
        black_box(cursor.value().len());
        cursor.key().is_some_and(|key| row_of(key) == row)
    };
    measure(&settings, "making rows", points, &mut || {
        for n in 0..points {
            black_box(row(mix(n) % count));
        }
    });
    for _ in 0..2 {
        measure(&settings, "get", points, &mut || {
            for n in 0..points {
                assert!(get(&row(mix(n) % count)));
            }
        });
        measure(&settings, "get of a missing row", points, &mut || {
            for n in 0..points {
                let mut row = row(mix(n) % count);
                row[15] = b'x';
                assert!(!get(&row));
            }
        });
    }
    for length in [1, 10, 100] {
        let seeks = points / 10;
        measure(&settings, &format!("seek and {length}"), seeks, &mut || {
            for n in 0..seeks {
                let row = row(mix(n) % count);
                let mut cursor =
                    FileCursor::forward(file.clone(), &row, Caching::Keep).expect("it can be read");
                for _ in 0..length {
                    black_box((cursor.key(), cursor.value()));
                    cursor.advance().expect("it can be read");
                }
            }
        });
    }
    println!("{:?} {:?}", cache.status(), family.usage());
}
