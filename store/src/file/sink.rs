//! Sink of a store file: compresses and frames raw blocks, adds them to the index and writes
//! them.
//!
//! ```text
//!   FileWriter --- batch of raw blocks ---> Sink: compress, checksum, index, append
//!              <-------- used batch ------
//! ```
//!
//! For a file beyond [`THREAD_BYTES`] the sink runs on another thread ([`sink_threads`]):
//! building blocks and compressing them cost about the same. Batches are recycled, so neither
//! side allocates.

use std::path::PathBuf;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};

use crate::descriptor::Compression;
use crate::env::{AppendFile, Env};
use crate::error::{Error, Result};
use crate::file::compression::Compressor;
use crate::file::encoding;
use crate::file::format::{BlockFrame, BlockHandle, BlockKind, TRAILER_BYTES};
use crate::file::format::{append_block, trailer};
use crate::file::index::IndexWriter;
use crate::file::properties::FileProperties;
use crate::file::sink_threads::{self, PendingJob};

/// Bytes buffered before a write.
const OUTPUT_BYTES: usize = 256 << 10;
/// Raw bytes of a batch: a hand-over between threads costs as much as adding some hundred cells.
const BATCH_BYTES: usize = 256 << 10;
/// File size from which the sink has its own thread.
const THREAD_BYTES: u64 = 4 << 20;
/// Maximal number of batches queued for the thread.
const BATCHES_WAITING: usize = 2;

/// Raw blocks for the sink.
#[derive(Default)]
struct Batch {
    /// Raw bytes and last key of each block, concatenated.
    bytes: Vec<u8>,
    blocks: Vec<RawBlock>,
}

struct RawBlock {
    frame: BlockFrame,
    raw_end: usize,
    key_end: usize,
}

/// Output side of the writer: batches raw blocks and passes them to the sink.
pub(super) struct SinkOutput {
    batch: Batch,
    place: SinkLocation,
    raw_bytes: u64,
}

/// Location of the sink.
enum SinkLocation {
    Here(Box<Sink>),
    Thread(SinkThread),
    /// The sink failed, and the error was returned.
    Nowhere,
}

struct SinkThread {
    full: SyncSender<Batch>,
    used: Receiver<Batch>,
    thread: PendingJob<Result<Box<Sink>>>,
    /// File size when the thread was started, and the raw bytes of that part.
    file_bytes: u64,
    raw_bytes: u64,
}

impl SinkOutput {
    /// Returns the output of a file that is created with its first bytes.
    pub(super) fn new(env: Arc<dyn Env>, path: PathBuf, compression: Compression) -> SinkOutput {
        let sink = Sink {
            env,
            path,
            file: None,
            compression,
            compressor: Compressor::default(),
            bytes: Vec::new(),
            written_bytes: 0,
            data_index: IndexWriter::default(),
            bloom_index: IndexWriter::default(),
        };
        SinkOutput {
            batch: Batch::default(),
            place: SinkLocation::Here(Box::new(sink)),
            raw_bytes: 0,
        }
    }

    /// Adds a block whose raw bytes `fill` appends. `key` is the last cell key that it covers.
    pub(super) fn push(
        &mut self,
        frame: BlockFrame,
        key: &[u8],
        fill: impl FnOnce(&mut Vec<u8>),
    ) -> Result<()> {
        let raw_start = self.batch.bytes.len();
        fill(&mut self.batch.bytes);
        let raw_end = self.batch.bytes.len();
        self.raw_bytes += (raw_end - raw_start) as u64;
        self.batch.bytes.extend_from_slice(key);
        let key_end = self.batch.bytes.len();
        self.batch.blocks.push(RawBlock { frame, raw_end, key_end });
        match self.place {
            SinkLocation::Thread(_) if key_end < BATCH_BYTES => Ok(()),
            _ => self.send(),
        }
    }

    /// Returns the bytes of the blocks so far. Once the thread runs, they are estimated from the
    /// ratio before, so that the result depends on the cells alone.
    pub(super) fn byte_count(&self) -> u64 {
        match &self.place {
            SinkLocation::Here(sink) => sink.written_bytes + sink.bytes.len() as u64,
            SinkLocation::Thread(thread) => {
                let ratio = thread.file_bytes as f64 / thread.raw_bytes.max(1) as f64;
                (self.raw_bytes as f64 * ratio) as u64
            }
            SinkLocation::Nowhere => 0,
        }
    }

    /// Passes the batch to the sink.
    fn send(&mut self) -> Result<()> {
        match &mut self.place {
            SinkLocation::Here(sink) => {
                sink.write(&self.batch)?;
                self.batch.clear();
                if sink.written_bytes >= THREAD_BYTES {
                    self.start_thread();
                }
                Ok(())
            }
            SinkLocation::Thread(thread) => {
                let next = thread.used.try_recv().unwrap_or_default();
                let batch = std::mem::replace(&mut self.batch, next);
                match thread.full.send(batch) {
                    Ok(()) => Ok(()),
                    // The thread has ended, early only after an error.
                    Err(_) => self.take_sink().map(|_| ()),
                }
            }
            SinkLocation::Nowhere => Err(failed_before()),
        }
    }

    fn start_thread(&mut self) {
        let SinkLocation::Here(sink) = std::mem::replace(&mut self.place, SinkLocation::Nowhere)
        else {
            return;
        };
        let (full, batches) = sync_channel::<Batch>(BATCHES_WAITING);
        let (give_back, used) = sync_channel(BATCHES_WAITING + 1);
        let file_bytes = sink.written_bytes + sink.bytes.len() as u64;
        let raw_bytes = self.raw_bytes;
        // The sink is passed through a channel, so that it is still here if no thread is
        // available.
        let (hand_over, taken) = sync_channel::<Box<Sink>>(1);
        let work = move || {
            let mut sink = taken.recv().map_err(|_| failed_before())?;
            for mut batch in batches {
                sink.write(&batch)?;
                batch.clear();
                // At the end there is no receiver.
                let _ = give_back.try_send(batch);
            }
            Ok(sink)
        };
        self.place = match sink_threads::run(work) {
            Ok(thread) => {
                hand_over.send(sink).expect("the thread waits for it");
                SinkLocation::Thread(SinkThread { full, used, thread, file_bytes, raw_bytes })
            }
            Err(_) => SinkLocation::Here(sink),
        };
    }

    /// Takes the sink back after it has written all batches.
    fn take_sink(&mut self) -> Result<Box<Sink>> {
        match std::mem::replace(&mut self.place, SinkLocation::Nowhere) {
            SinkLocation::Here(sink) => Ok(sink),
            SinkLocation::Thread(SinkThread { full, thread, .. }) => {
                drop(full);
                thread.join()
            }
            SinkLocation::Nowhere => Err(failed_before()),
        }
    }

    /// Writes the remaining blocks, the indexes, the properties and the trailer; syncs the file
    /// and its directory entry.
    pub(super) fn finish(&mut self, properties: &mut FileProperties) -> Result<()> {
        let mut sink = self.take_sink()?;
        sink.write(&self.batch)?;
        sink.finish(properties)
    }
}

impl Drop for SinkOutput {
    /// Waits for the thread: after the writer is dropped, nothing writes to the file.
    fn drop(&mut self) {
        if matches!(self.place, SinkLocation::Thread(_)) {
            let _ = self.take_sink();
        }
    }
}

fn failed_before() -> Error {
    Error::InvalidRequest("a previous write of the store file failed".to_owned())
}

impl Batch {
    fn clear(&mut self) {
        self.bytes.clear();
        self.blocks.clear();
    }
}

/// Compresses, frames, indexes and writes blocks.
struct Sink {
    env: Arc<dyn Env>,
    path: PathBuf,
    /// Created with the first bytes, so that an empty flush leaves no file.
    file: Option<Box<dyn AppendFile>>,
    compression: Compression,
    compressor: Compressor,
    bytes: Vec<u8>,
    /// Number of bytes written.
    written_bytes: u64,
    data_index: IndexWriter,
    bloom_index: IndexWriter,
}

impl Sink {
    fn write(&mut self, batch: &Batch) -> Result<()> {
        let mut start = 0;
        for block in &batch.blocks {
            let raw = &batch.bytes[start..block.raw_end];
            let key = &batch.bytes[block.raw_end..block.key_end];
            start = block.key_end;
            let Sink { bytes, compression, compressor, written_bytes, .. } = self;
            let (data_index, bloom_index) = (&mut self.data_index, &mut self.bloom_index);
            let mut append = |frame, raw: &[u8]| {
                let start = bytes.len();
                append_block(frame, compressor, raw, bytes);
                let front = front_bytes(frame, raw);
                BlockHandle { front, ..handle_from(*written_bytes, start, bytes.len()) }
            };
            let handle = append(block.frame, raw);
            let index = match block.frame.kind {
                BlockKind::Bloom => bloom_index,
                _ => data_index,
            };
            let frame =
                BlockFrame { kind: BlockKind::Index, encoding: 0, compression: *compression };
            index.push(key, handle, |raw| append(frame, raw));
            self.drain(OUTPUT_BYTES)?;
        }
        Ok(())
    }

    fn drain(&mut self, above: usize) -> Result<()> {
        if self.bytes.len() <= above {
            return Ok(());
        }
        let file = match &mut self.file {
            Some(file) => file,
            None => self.file.insert(self.env.create(&self.path)?),
        };
        file.append(&self.bytes)?;
        self.written_bytes += self.bytes.len() as u64;
        self.bytes.clear();
        Ok(())
    }

    fn finish(&mut self, properties: &mut FileProperties) -> Result<()> {
        let Sink { bytes, compressor, written_bytes, compression, .. } = self;
        let mut append = |kind, compression, raw: &[u8]| {
            let start = bytes.len();
            append_block(BlockFrame { kind, encoding: 0, compression }, compressor, raw, bytes);
            handle_from(*written_bytes, start, bytes.len())
        };
        let mut append_index = |raw: &[u8]| append(BlockKind::Index, *compression, raw);
        properties.data_index = self.data_index.finish(&mut append_index);
        properties.bloom_index = self.bloom_index.finish(&mut append_index);
        let mut raw = Vec::new();
        properties.encode(&mut raw);
        let handle = append(BlockKind::Properties, Compression::None, &raw);
        let file_bytes = handle.offset + u64::from(handle.size) + TRAILER_BYTES as u64;
        self.bytes.extend_from_slice(&trailer(handle, file_bytes));
        self.drain(0)?;
        assert_eq!(self.written_bytes, file_bytes, "the trailer states the length of the file");
        if let Some(file) = &mut self.file {
            file.sync()?;
        }
        match self.path.parent() {
            Some(directory) => self.env.sync_directory(directory),
            None => Ok(()),
        }
    }
}

/// Returns the bytes of the front of a raw block; 0 if it has none.
fn front_bytes(frame: BlockFrame, raw: &[u8]) -> u32 {
    match frame.kind {
        BlockKind::Data => encoding::front_bytes(frame.encoding, raw),
        _ => 0,
    }
}

fn handle_from(written_bytes: u64, start: usize, end: usize) -> BlockHandle {
    BlockHandle::whole(written_bytes + start as u64, (end - start) as u32)
}
