//! Adapter of fjall, with its default filters and leveled compaction.

use std::time::Duration;

use fjall::config::{BlockSizePolicy, CompressionPolicy};
use fjall::{CompressionType, Database, Guard, Keyspace, KeyspaceCreateOptions, PersistMode};

use crate::peer::{Entries, Peer, Settings};

pub struct Fjall {
    database: Database,
    keyspace: Keyspace,
}

impl Fjall {
    pub fn open(settings: &Settings) -> Fjall {
        let compression = if settings.lz4 { CompressionType::Lz4 } else { CompressionType::None };
        let database = Database::builder(settings.directory.join("db"))
            .cache_size(settings.cache_bytes as u64)
            .worker_threads(settings.background_threads.max(1))
            .max_journaling_size(2 << 30)
            .journal_compression(CompressionType::None)
            .open()
            .expect("fjall opens");
        let options = || {
            KeyspaceCreateOptions::default()
                .max_memtable_size(settings.memstore_bytes as u64)
                .data_block_size_policy(BlockSizePolicy::all(settings.block_bytes as u32))
                .data_block_compression_policy(CompressionPolicy::all(compression))
        };
        let keyspace = database.keyspace("entries", options).expect("keyspace");
        Fjall { database, keyspace }
    }
}

impl Peer for Fjall {
    fn put(&self, key: &[u8], value: &[u8]) {
        self.keyspace.insert(key, value).expect("insert");
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) {
        self.keyspace.insert(key, value).expect("insert");
        self.database.persist(PersistMode::SyncData).expect("sync");
    }

    fn put_batch(&self, entries: &[([u8; 16], &[u8])]) {
        let mut batch = self.database.batch();
        for (key, value) in entries {
            batch.insert(&self.keyspace, &key[..], *value);
        }
        batch.commit().expect("commit");
    }

    fn ingest(&self, entries: Entries<'_>) -> bool {
        let mut ingestion = self.keyspace.start_ingestion().expect("ingestion");
        for (key, value) in entries {
            ingestion.write(&key[..], value).expect("write");
        }
        ingestion.finish().expect("finish");
        true
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> bool {
        let Some(found) = self.keyspace.get(key).expect("get") else { return false };
        value.clear();
        value.extend_from_slice(&found);
        true
    }

    fn scan(&self, from: Option<&[u8]>, limit: u64, reverse: bool) -> (u64, u64) {
        let (mut count, mut bytes) = (0, 0);
        let mut visit = |guard: Guard| {
            let (key, value) = guard.into_inner().expect("scan");
            count += 1;
            bytes += (key.len() + value.len()) as u64;
        };
        let limit = usize::try_from(limit).unwrap_or(usize::MAX);
        match (from, reverse) {
            (Some(key), false) => self.keyspace.range(key..).take(limit).for_each(&mut visit),
            (Some(key), true) => self.keyspace.range(..=key).rev().take(limit).for_each(&mut visit),
            (None, false) => self.keyspace.iter().take(limit).for_each(&mut visit),
            (None, true) => self.keyspace.iter().rev().take(limit).for_each(&mut visit),
        }
        (count, bytes)
    }

    fn settle(&self) {
        self.keyspace.rotate_memtable_and_wait().expect("flush");
        let mut calm = 0;
        while calm < 20 {
            let resting = self.database.outstanding_flushes() == 0 && self.database.active_compactions() == 0;
            calm = if resting { calm + 1 } else { 0 };
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn compact(&self) {
        self.keyspace.major_compact().expect("compaction");
        self.settle();
    }
}
