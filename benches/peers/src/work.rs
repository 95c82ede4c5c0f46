//! Workloads of the benchmark.

use std::collections::BTreeMap;
use std::hint::black_box;
use std::sync::atomic::AtomicU64;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Instant;

use crate::load::{Shuffle, Values, key, missing_key};
use crate::measure::{
    Latencies, Timed, Until, bytes_written, cpu_seconds, disk_bytes, drop_page_cache, print_line, timed,
    touch_free_memory,
};
use crate::peer::{Peer, Settings};
use crate::{Arguments, open};

/// Entries of a batch.
const BATCH: u64 = 1000;
/// Number of reads from a cold store.
const COLD_READS: u64 = 20_000;
/// Cache of a cold store: space for filters and indexes of five million entries, which RocksDB
/// stores outside of its cache, and for little else.
const COLD_CACHE_BYTES: usize = 32 << 20;
/// Entries that are loaded before the synced writes.
const SYNCED_ENTRIES: u64 = 100_000;

/// Operations per second, and per second of CPU time, which is less sensitive to other load on
/// the machine.
#[derive(Clone, Copy)]
struct Rates {
    clock: f64,
    cpu: f64,
}

/// Rates by workload and store.
#[derive(Default)]
pub struct Ratios {
    rates: BTreeMap<(usize, String), BTreeMap<String, Vec<Rates>>>,
    places: BTreeMap<String, usize>,
}

impl Ratios {
    fn add(&mut self, work: &str, store: &str, rates: Rates) {
        let next = self.places.len();
        let place = *self.places.entry(work.to_owned()).or_insert(next);
        let stores = self.rates.entry((place, work.to_owned())).or_default();
        stores.entry(store.to_owned()).or_default().push(rates);
    }

    /// Prints the medians of the first store relative to those of the others.
    pub fn print(&self, stores: &[String]) {
        let Some((first, others)) = stores.split_first() else { return };
        println!(
            "\nmedian rates of {first}, and how many times those of the others: by the clock (by CPU time)"
        );
        for ((_, work), rates) in &self.rates {
            let median = |store: &String, of: fn(&Rates) -> f64| {
                let mut rates: Vec<f64> = rates.get(store)?.iter().map(of).collect();
                rates.sort_by(f64::total_cmp);
                Some(rates[rates.len() / 2])
            };
            let (clock, cpu) = (|rates: &Rates| rates.clock, |rates: &Rates| rates.cpu);
            let Some((own_clock, own_cpu)) = median(first, clock).zip(median(first, cpu)) else { continue };
            let columns: Vec<String> = others
                .iter()
                .filter_map(|other| {
                    let by_clock = own_clock / median(other, clock)?;
                    Some(format!("{other} {by_clock:>5.2} ({:>5.2})", own_cpu / median(other, cpu)?))
                })
                .collect();
            println!("{work:<28} {own_clock:>11.0}/s   {}", columns.join("   "));
        }
    }
}

impl Timed {
    fn rates(&self) -> Rates {
        let operations = self.operations as f64;
        Rates { clock: operations / self.seconds, cpu: operations / self.cpu_seconds.max(1e-6) }
    }
}

/// One store in one repetition.
pub struct Bench<'a> {
    store: &'a str,
    repetition: usize,
    settings: &'a Settings,
    arguments: &'a Arguments,
    ratios: &'a mut Ratios,
    values: Values,
    shuffle: Shuffle,
}

impl<'a> Bench<'a> {
    pub fn new(
        store: &'a str,
        repetition: usize,
        settings: &'a Settings,
        arguments: &'a Arguments,
        ratios: &'a mut Ratios,
    ) -> Bench<'a> {
        Bench {
            store,
            repetition,
            settings,
            arguments,
            ratios,
            values: Values::new(arguments.value),
            shuffle: Shuffle::new(arguments.entries),
        }
    }

    /// Runs the selected workloads.
    pub fn run(&mut self) {
        for work in self.arguments.work.clone() {
            match work.as_str() {
                "sequential" => self.sequential(),
                "batch" => self.batch(),
                "ingest" => self.ingest(),
                "random" => self.random(),
                "synced" => self.synced(),
                other => panic!("there is no workload {other}"),
            }
        }
    }

    fn fresh(&self) -> Box<dyn Peer> {
        let _ = std::fs::remove_dir_all(&self.settings.directory);
        std::fs::create_dir_all(&self.settings.directory).expect("directory");
        open(self.store, self.settings)
    }

    fn report(&mut self, work: &str, threads: usize, timed: &Timed, more: &str) {
        print_line(self.store, work, (threads, self.repetition), timed, more);
        let name = if threads > 1 { format!("{work} x{threads}") } else { work.to_owned() };
        self.ratios.add(&name, self.store, timed.rates());
    }

    fn user_bytes(&self) -> f64 {
        (self.arguments.entries * (16 + self.arguments.value as u64)) as f64
    }

    /// Runs a load, waits until background work has finished, and reports both.
    fn load(&mut self, work: &str, db: &dyn Peer, threads: usize, run: impl FnOnce(&Self) -> Timed) {
        let (cpu, began, written) = (cpu_seconds(), Instant::now(), bytes_written());
        let timed = run(self);
        db.settle();
        let settled = self.single(timed.operations, began, cpu);
        let user = self.user_bytes();
        let more = format!(
            "settled {:.0}/s, write amp {:.2}, space amp {:.3}",
            settled.rates().clock,
            (bytes_written() - written) as f64 / user,
            disk_bytes(&self.settings.directory) as f64 / user,
        );
        self.report(work, threads, &timed, &more);
        let name = if threads > 1 { format!("{work} x{threads} settled") } else { format!("{work} settled") };
        self.ratios.add(&name, self.store, settled.rates());
    }

    fn fill(&mut self, work: &str, db: &dyn Peer, threads: usize, place: impl Fn(u64) -> u64 + Sync) {
        self.load(work, db, threads, |bench| {
            let each = bench.arguments.entries / threads as u64;
            timed(threads, Until::Calls(each), |thread, number, _| {
                let index = thread as u64 * each + number;
                db.put(&key(place(index)), bench.values.at(index));
                1
            })
        });
    }

    fn sequential(&mut self) {
        let db = self.fresh();
        self.fill("fill sequential", &*db, 1, |index| index);
    }

    fn batch(&mut self) {
        let db = self.fresh();
        self.load("fill batches of 1000", &*db, 1, |bench| {
            timed(1, Until::Calls(bench.arguments.entries / BATCH), |_, number, _| {
                let indexes = number * BATCH..(number + 1) * BATCH;
                let entries: Vec<_> = indexes.map(|index| (key(index), bench.values.at(index))).collect();
                db.put_batch(&entries);
                BATCH
            })
        });
    }

    fn ingest(&mut self) {
        let db = self.fresh();
        let (cpu, began, written) = (cpu_seconds(), Instant::now(), bytes_written());
        let entries = self.arguments.entries;
        let done = db.ingest(&mut (0..entries).map(|index| (key(index), self.values.at(index))));
        db.settle();
        if !done {
            return;
        }
        let timed = self.single(entries, began, cpu);
        let user = self.user_bytes();
        let more = format!(
            "write amp {:.2}, space amp {:.3}",
            (bytes_written() - written) as f64 / user,
            disk_bytes(&self.settings.directory) as f64 / user
        );
        self.report("ingest", 1, &timed, &more);
    }

    fn single(&self, operations: u64, began: Instant, cpu: f64) -> Timed {
        Timed {
            operations,
            seconds: began.elapsed().as_secs_f64(),
            latencies: Latencies::new(),
            cpu_seconds: cpu_seconds() - cpu,
        }
    }

    fn random(&mut self) {
        let db = self.fresh();
        let shuffle = self.shuffle;
        self.fill("fill random", &*db, 1, |index| shuffle.at(index));
        let asked = |phase: &str| self.arguments.phases.iter().any(|asked| asked == phase);
        let [read, missing, scan, mixed, overwrite, compact, cold, fill8] =
            ["read", "missing", "scan", "mixed", "overwrite", "compact", "cold", "fill8"].map(asked);
        if read {
            for threads in self.arguments.threads.clone() {
                self.read(&*db, "read random", threads);
            }
        }
        if missing {
            self.missing(&*db);
        }
        if scan {
            self.scans(&*db, "");
        }
        if mixed {
            self.read_while_writing(&*db);
        }
        if overwrite {
            let entries = self.arguments.entries;
            self.fill("overwrite", &*db, 1, |index| shuffle.at(index.wrapping_mul(7919) % entries));
            self.read(&*db, "read overwritten", 1);
        }
        if compact {
            let (cpu, began) = (cpu_seconds(), Instant::now());
            db.compact();
            let timed = self.single(self.arguments.entries, began, cpu);
            self.report("compact", 1, &timed, "");
            self.read(&*db, "read compacted", 1);
            self.scans(&*db, " compacted");
        }
        drop(db);
        if cold {
            self.cold();
        }
        if fill8 {
            let db = self.fresh();
            self.fill("fill random", &*db, 8, |index| shuffle.at(index));
        }
    }

    fn read(&mut self, db: &dyn Peer, work: &str, threads: usize) {
        let entries = self.arguments.entries;
        let read = |random: &mut crate::load::Random| {
            let mut value = Vec::with_capacity(256);
            assert!(db.get(&key(random.below(entries)), &mut value), "an entry is missing");
            black_box(&value);
            1
        };
        touch_free_memory(self.settings.cache_bytes);
        // Warms the cache.
        timed(1, Until::Seconds(self.arguments.seconds / 2.0), |_, _, random| read(random));
        let until = Until::Seconds(self.arguments.seconds);
        let timed = timed(threads, until, |_, _, random| read(random));
        self.report(work, threads, &timed, "");
    }

    /// Reads after a restart with a small block cache and an empty page cache.
    fn cold(&mut self) {
        let settings = Settings { cache_bytes: COLD_CACHE_BYTES, ..self.settings.clone() };
        let db = open(self.store, &settings);
        drop_page_cache(&self.settings.directory);
        let entries = self.arguments.entries;
        let timed = timed(1, Until::Calls(COLD_READS), |_, _, random| {
            let mut value = Vec::new();
            assert!(db.get(&key(random.below(entries)), &mut value), "an entry is missing");
            1
        });
        self.report("read cold", 1, &timed, "");
    }

    fn missing(&mut self, db: &dyn Peer) {
        let entries = self.arguments.entries;
        let timed = timed(1, Until::Seconds(self.arguments.seconds), |_, _, random| {
            let mut value = Vec::new();
            assert!(!db.get(&missing_key(random.below(entries)), &mut value), "there is no such entry");
            1
        });
        self.report("read missing", 1, &timed, "");
    }

    fn scans(&mut self, db: &dyn Peer, state: &str) {
        for (work, reverse) in [("scan", false), ("scan reverse", true)] {
            let (cpu, began) = (cpu_seconds(), Instant::now());
            let (count, bytes) = db.scan(None, u64::MAX, reverse);
            assert_eq!(count, self.arguments.entries, "a scan sees every entry once");
            let timed = self.single(count, began, cpu);
            let more = format!("{:.0} MB/s", bytes as f64 / timed.seconds / 1e6);
            self.report(&format!("{work}{state}"), 1, &timed, &more);
        }
        let kinds = [
            ("seek +1", 1, false),
            ("seek +10", 10, false),
            ("seek +100", 100, false),
            ("seek -100", 100, true),
        ];
        for (work, limit, reverse) in kinds {
            let entries = self.arguments.entries;
            let timed = timed(1, Until::Seconds(self.arguments.seconds), |_, _, random| {
                black_box(db.scan(Some(&key(random.below(entries))), limit, reverse));
                1
            });
            self.report(&format!("{work}{state}"), 1, &timed, "");
        }
    }

    /// Reads with two threads while one overwrites at full speed.
    fn read_while_writing(&mut self, db: &dyn Peer) {
        let (entries, shuffle) = (self.arguments.entries, self.shuffle);
        let writes = AtomicU64::new(0);
        let values = &self.values;
        let timed = timed(3, Until::Seconds(self.arguments.seconds * 2.0), |thread, _, random| {
            let index = shuffle.at(random.below(entries));
            if thread == 0 {
                db.put(&key(index), values.at(index ^ 77));
                writes.fetch_add(1, Relaxed);
                return 0;
            }
            let mut value = Vec::new();
            assert!(db.get(&key(index), &mut value), "an entry is missing");
            1
        });
        let more = format!("{:.0} writes/s", writes.load(Relaxed) as f64 / timed.seconds);
        self.report("read while writing", 3, &timed, &more);
        let written = Timed { operations: writes.load(Relaxed), ..timed };
        self.ratios.add("write while reading", self.store, written.rates());
    }

    fn synced(&mut self) {
        let db = self.fresh();
        for index in 0..SYNCED_ENTRIES.min(self.arguments.entries) {
            db.put(&key(self.shuffle.at(index)), self.values.at(index));
        }
        db.settle();
        let (entries, values) = (self.arguments.entries, &self.values);
        for threads in [1, 8, 32] {
            let timed = timed(threads, Until::Seconds(self.arguments.seconds), |_, number, random| {
                db.put_synced(&key(random.below(entries)), values.at(number));
                1
            });
            print_line(self.store, "put synced", (threads, self.repetition), &timed, "");
            let name = format!("put synced x{threads}");
            self.ratios.add(&name, self.store, timed.rates());
        }
    }
}
