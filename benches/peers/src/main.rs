//! Benchmark of bennu's store against RocksDB and fjall: the same load and settings, in one run.
//!
//! Each repetition runs the stores in turn. A line is one workload: operations per second, the
//! median and 99th percentile latency, cores used, and for writes the bytes written and occupied
//! on disk per byte of keys and values. A table of ratios follows at the end.

mod bennu;
#[cfg(feature = "fjall")]
mod fjalls;
mod load;
mod measure;
mod peer;
#[cfg(feature = "rocksdb")]
mod rocks;
mod work;

use std::path::PathBuf;

use clap::Parser;

use crate::measure::print_heads;
use crate::peer::{Peer, Settings};
use crate::work::{Bench, Ratios};

/// The allocator of bennu's server; RocksDB uses the system's.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

/// Compares stores.
#[derive(Parser, Debug, Clone)]
pub struct Arguments {
    /// Stores, in the order in which they run.
    #[arg(long, value_delimiter = ',', default_value = "bennu,rocksdb,fjall")]
    pub store: Vec<String>,
    /// Workloads: sequential, batch, ingest, random, synced.
    #[arg(long, value_delimiter = ',', default_value = "sequential,batch,ingest,random,synced")]
    pub work: Vec<String>,
    /// Phases of `random` after its fill, in this order; fewer for profiling.
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "read,missing,scan,mixed,overwrite,compact,cold,fill8"
    )]
    pub phases: Vec<String>,
    /// Entries.
    #[arg(long, default_value_t = 5_000_000)]
    pub entries: u64,
    /// Bytes of a value.
    #[arg(long, default_value_t = 100)]
    pub value: usize,
    /// Repetitions.
    #[arg(long, default_value_t = 1)]
    pub repetitions: usize,
    /// Length of each timed read workload.
    #[arg(long, default_value_t = 3.0)]
    pub seconds: f64,
    /// Threads of the random reads.
    #[arg(long, value_delimiter = ',', default_value = "1,2,8")]
    pub threads: Vec<usize>,
    /// Block cache, in MiB.
    #[arg(long, default_value_t = 2048)]
    pub cache: usize,
    /// Size of a memtable, in MiB.
    #[arg(long, default_value_t = 64)]
    pub memstore: usize,
    /// Size of a data block, in KiB.
    #[arg(long, default_value_t = 4)]
    pub block: usize,
    /// No compression instead of lz4.
    #[arg(long)]
    pub uncompressed: bool,
    /// Directory for the data; emptied for each store.
    #[arg(long, default_value = "/tmp/bennu-peers")]
    pub directory: PathBuf,
}

impl Arguments {
    fn settings(&self, store: &str) -> Settings {
        Settings {
            directory: self.directory.join(store),
            cache_bytes: self.cache << 20,
            memstore_bytes: self.memstore << 20,
            block_bytes: self.block << 10,
            lz4: !self.uncompressed,
            background_threads: 2,
        }
    }
}

/// Opens a store.
pub fn open(store: &str, settings: &Settings) -> Box<dyn Peer> {
    match store {
        "bennu" => Box::new(bennu::Bennu::open(settings)),
        #[cfg(feature = "rocksdb")]
        "rocksdb" => Box::new(rocks::Rocks::open(settings)),
        #[cfg(feature = "fjall")]
        "fjall" => Box::new(fjalls::Fjall::open(settings)),
        other => panic!("there is no store {other} here"),
    }
}

fn main() {
    let arguments = Arguments::parse();
    let mut ratios = Ratios::default();
    println!("{arguments:?}");
    print_heads();
    for repetition in 0..arguments.repetitions {
        for store in &arguments.store {
            let settings = arguments.settings(store);
            Bench::new(store, repetition, &settings, &arguments, &mut ratios).run();
            // Removes only directories that this program created.
            let _ = std::fs::remove_dir_all(&settings.directory);
        }
    }
    ratios.print(&arguments.store);
}
