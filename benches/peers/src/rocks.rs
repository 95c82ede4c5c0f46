//! Adapter of RocksDB, with bloom filters of 10 bits and leveled compaction.

use rocksdb::{
    BlockBasedOptions, Cache, DB, DBCompressionType, IngestExternalFileOptions, Options, SstFileWriter,
    WaitForCompactOptions, WriteBatch, WriteOptions,
};

use crate::peer::{Entries, Peer, Settings};

/// Entries of one file of a bulk load: about 64 MiB.
const FILE_ENTRIES: usize = 600_000;

pub struct Rocks {
    db: DB,
    unsynced: WriteOptions,
    synced: WriteOptions,
    settings: Settings,
    options: Options,
}

impl Rocks {
    pub fn open(settings: &Settings) -> Rocks {
        let mut options = Options::default();
        options.create_if_missing(true);
        options.set_write_buffer_size(settings.memstore_bytes);
        options.set_max_write_buffer_number(4);
        options.set_max_background_jobs(settings.background_threads as i32);
        options.increase_parallelism(settings.background_threads as i32);
        let compression = if settings.lz4 { DBCompressionType::Lz4 } else { DBCompressionType::None };
        options.set_compression_type(compression);
        options.set_level_compaction_dynamic_level_bytes(true);
        options.set_bytes_per_sync(1 << 20);
        let mut table = BlockBasedOptions::default();
        table.set_block_cache(&Cache::new_lru_cache(settings.cache_bytes));
        table.set_block_size(settings.block_bytes);
        table.set_bloom_filter(10.0, false);
        table.set_cache_index_and_filter_blocks(false);
        table.set_format_version(6);
        options.set_block_based_table_factory(&table);
        let db = DB::open(&options, settings.directory.join("db")).expect("RocksDB opens");
        let mut synced = WriteOptions::default();
        synced.set_sync(true);
        Rocks { db, unsynced: WriteOptions::default(), synced, settings: settings.clone(), options }
    }
}

impl Peer for Rocks {
    fn put(&self, key: &[u8], value: &[u8]) {
        self.db.put_opt(key, value, &self.unsynced).expect("put");
    }

    fn put_synced(&self, key: &[u8], value: &[u8]) {
        self.db.put_opt(key, value, &self.synced).expect("put");
    }

    fn put_batch(&self, entries: &[([u8; 16], &[u8])]) {
        let mut batch = WriteBatch::default();
        for (key, value) in entries {
            batch.put(key, value);
        }
        self.db.write_opt(batch, &self.unsynced).expect("write");
    }

    fn ingest(&self, entries: Entries<'_>) -> bool {
        let directory = self.settings.directory.join("bulk");
        std::fs::create_dir_all(&directory).expect("directory");
        let mut files = Vec::new();
        let mut entries = entries.peekable();
        while entries.peek().is_some() {
            let path = directory.join(format!("{}.sst", files.len()));
            let mut writer = SstFileWriter::create(&self.options);
            writer.open(&path).expect("file");
            for (key, value) in entries.by_ref().take(FILE_ENTRIES) {
                writer.put(key, value).expect("put");
            }
            writer.finish().expect("finish");
            files.push(path);
        }
        let mut options = IngestExternalFileOptions::default();
        options.set_move_files(true);
        self.db.ingest_external_file_opts(&options, files).expect("ingest");
        true
    }

    fn get(&self, key: &[u8], value: &mut Vec<u8>) -> bool {
        let found = self.db.get_pinned(key).expect("get");
        let Some(found) = found else { return false };
        value.clear();
        value.extend_from_slice(&found);
        true
    }

    fn scan(&self, from: Option<&[u8]>, limit: u64, reverse: bool) -> (u64, u64) {
        let mut iterator = self.db.raw_iterator();
        match (from, reverse) {
            (Some(key), false) => iterator.seek(key),
            (Some(key), true) => iterator.seek_for_prev(key),
            (None, false) => iterator.seek_to_first(),
            (None, true) => iterator.seek_to_last(),
        }
        let (mut count, mut bytes) = (0, 0);
        while count < limit
            && let Some((key, value)) = iterator.item()
        {
            count += 1;
            bytes += (key.len() + value.len()) as u64;
            if reverse { iterator.prev() } else { iterator.next() }
        }
        iterator.status().expect("scan");
        (count, bytes)
    }

    fn settle(&self) {
        self.db.flush().expect("flush");
        let mut options = WaitForCompactOptions::default();
        options.set_flush(true);
        self.db.wait_for_compact(&options).expect("compaction");
    }

    fn compact(&self) {
        self.db.compact_range::<&[u8], &[u8]>(None, None);
        self.settle();
    }
}
