//! Adapter of bennu's store: one table with one family, one version, and a column with an empty
//! name.

use std::cell::RefCell;
use std::sync::Arc;

use store::bulk_load::BulkCell;
use store::descriptor::{Compression, Durability};
use store::transaction::TransactionOptions;
use store::{
    CellBatch, CellType, Column, FamilyDescriptor, Get, Options, PutBatch, Scan, Store, TableDescriptor,
    TableId, Timestamp,
};

use crate::peer::{Entries, Peer, Settings};

const TABLE: TableId = TableId(1);
/// Rows per batch of a scan.
const BATCH_ROWS: u64 = 1000;

thread_local! {
    /// Reused from read to read, as a program would.
    static READ: RefCell<(Get, CellBatch)> = RefCell::new((Get::new(Vec::new()).column(0, b""), CellBatch::new()));
}

pub struct Bennu {
    store: Arc<Store>,
}

impl Bennu {
    pub fn open(settings: &Settings) -> Bennu {
        let options = Options {
            // The block cache is 40 % of the budget after subtracting a quarter and 24 MiB.
            memory_bytes: (settings.cache_bytes as u64 / 2 * 5 + (24 << 20)) / 3 * 4,
            memstore_flush_bytes: settings.memstore_bytes as u64,
            ..Options::default()
        };
        let store = Store::open(&settings.directory.join("db"), options).expect("bennu opens");
        if store.tables().is_empty() {
            let mut family = FamilyDescriptor::new("f");
            family.block_bytes = settings.block_bytes as u32;
            family.compression = if settings.lz4 { Compression::Lz4 } else { Compression::None };
            let table = TableDescriptor::new(TABLE, "entries", vec![family]);
            store.create_table(table).expect("table");
        }
        Bennu { store }
    }

    fn write<'e>(&self, entries: impl Iterator<Item = (&'e [u8], &'e [u8])>, durability: Durability) {
        let (few, _) = entries.size_hint();
        let mut batch = PutBatch::with_capacity(few * 128);
        for (row, value) in entries {
            batch.put(Column { row, family: 0, qualifier: b"" }, Timestamp::LATEST, value);
        }
        let commit = self.store.put(TABLE, batch, Some(durability)).expect("put");
        commit.durable.wait().expect("log");
    }
}

impl Peer for Bennu {
    fn put(&self, key: &[u8], value: &[u8]) {
        self.write(std::iter::once((key, value)), Durability::AsyncWal);
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) {
        self.write(std::iter::once((key, value)), Durability::SyncWal);
    }

    fn put_batch(&self, entries: &[([u8; 16], &[u8])]) {
        self.write(entries.iter().map(|(key, value)| (&key[..], *value)), Durability::AsyncWal);
    }

    fn ingest(&self, entries: Entries<'_>) -> bool {
        let mut load = self.store.bulk_load(TABLE).expect("bulk load");
        for (key, value) in entries {
            load.add(BulkCell {
                row: &key,
                family: 0,
                qualifier: b"",
                timestamp: None,
                cell_type: CellType::Put,
                value,
            })
            .expect("in order");
        }
        load.adopt().expect("adoption");
        true
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> bool {
        READ.with_borrow_mut(|(get, batch)| {
            get.row.clear();
            get.row.extend_from_slice(key);
            batch.clear();
            if !self.store.get(TABLE, get, batch).expect("get") {
                return false;
            }
            value.clear();
            value.extend_from_slice(batch.row(0).value(0, b"").expect("the row has its one column"));
            true
        })
    }

    fn scan(&self, from: Option<&[u8]>, limit: u64, reverse: bool) -> (u64, u64) {
        let transaction = self.store.begin(TransactionOptions::default());
        let mut scan = Scan::all();
        scan.reverse = reverse;
        scan.limit = Some(limit);
        match (from, reverse) {
            (Some(from), false) => scan.start = from.to_vec(),
            // The scan includes the key itself.
            (Some(from), true) => scan.stop = Some([from, &[0]].concat()),
            (None, _) => {}
        }
        let mut scanner = transaction.scan(TABLE, scan).expect("scan");
        let (mut count, mut bytes) = (0, 0);
        READ.with_borrow_mut(|(_, batch)| {
            while scanner.next_batch(limit.min(BATCH_ROWS) as usize, batch).expect("batch") {
                for cell in batch.rows().flat_map(|row| row.cells()) {
                    count += 1;
                    bytes += (cell.row.len() + cell.value.len()) as u64;
                }
            }
        });
        (count, bytes)
    }

    fn settle(&self) {
        self.store.flush(TABLE).expect("flush");
        self.store.compact(TABLE, false).expect("compaction");
    }

    fn compact(&self) {
        self.store.compact(TABLE, true).expect("compaction");
    }
}
