//! Fuzzing entry point for the reader of the log; see [`crate::fuzzing`].

use std::ops::Bound;
use std::path::Path;
use std::sync::Arc;

use crate::cell::Sequence;
use crate::descriptor::DatabaseId;
use crate::env::Env;
use crate::env::fault::FaultEnv;
use crate::error::{Error, Result};
use crate::memstore::Memstore;
use crate::wal::reader::{ExpectedLog, WalReader, recover, segment_path};
use crate::wal::record::{RECORD_HEADER_BYTES, SEGMENT_HEADER_BYTES, segment_header};
use crate::wal::{CommitClock, LogPosition, Record};

const DIRECTORY: &str = "/wal";
/// Bytes in front of each segment: its length in two bytes, and flags.
pub(crate) const PREFIX_BYTES: usize = 3;
/// Mask of the number of segments to skip before this one.
const GAP: u8 = 0b11;
/// Flag that leaves the segment unmodified: checksums are not corrected.
pub(crate) const AS_IT_IS: u8 = 0x80;

/// Reads a log of some segments, both as an opening store and as a reader of an archive, and puts
/// its cells into a memstore. Each segment has [`PREFIX_BYTES`] in front.
pub(crate) fn log(mut bytes: &[u8]) {
    let env = FaultEnv::new(1);
    let mut number = 0;
    while let Some(([low, high, how], rest)) = bytes.split_first_chunk::<PREFIX_BYTES>() {
        let length = usize::from(u16::from_le_bytes([*low, *high])).min(rest.len());
        let (segment, rest) = rest.split_at(length);
        bytes = rest;
        number += 1 + u32::from(how & GAP);
        let mut segment = segment.to_vec();
        if how & AS_IT_IS == 0 {
            make_right(&mut segment, number);
        }
        env.place(&segment_path(Path::new(DIRECTORY), number), segment);
    }
    let env: Arc<dyn Env> = Arc::new(env);
    let read = read(&env);
    let mut replayed = Vec::new();
    let recovered = recover(&env, Path::new(DIRECTORY), ExpectedLog::default(), &mut |record| {
        replayed.push(record.clock());
        Ok(())
    });
    match (read, recovered) {
        (Ok(records), Ok(_)) => {
            let read: Vec<CommitClock> = records.into_iter().map(|(_, clock)| clock).collect();
            assert!(replayed == read, "the same log is read the same way");
            assert!(read.is_sorted_by(|a, b| a.sequence < b.sequence), "sequences rise");
        }
        (Err(Error::Corrupt { .. }), Err(Error::Corrupt { .. })) => {}
        // A store needs its log from the first segment on; an archive may begin later.
        (Ok(_), Err(Error::Corrupt { .. })) => {}
        (read, recovered) => panic!("{:?}, {:?}", read.err(), recovered.err()),
    }
    if let Ok(mut one) = WalReader::open_segment(env, &segment_path(Path::new(DIRECTORY), number)) {
        while matches!(one.next_record(), Ok(Some(_))) {}
    }
}

fn read(env: &Arc<dyn Env>) -> Result<Vec<(LogPosition, CommitClock)>> {
    let mut reader = WalReader::open(Arc::clone(env), Path::new(DIRECTORY))?;
    reader = reader.range((Bound::Excluded(Sequence(0)), Bound::Unbounded));
    let mut records = Vec::new();
    while let Some((position, record)) = reader.next_record()? {
        assert!(records.last().is_none_or(|(last, _)| *last < position), "positions rise");
        records.push((position, record.clock()));
        apply(&record);
    }
    Ok(records)
}

/// Applies a record as a region does.
fn apply(record: &Record<'_>) {
    let memstore = Memstore::new();
    for (_, mut cells) in record.edits() {
        let count = cells.clone().count();
        let mut taken = 0;
        while let Some((_, cells)) = cells.next_family() {
            memstore.insert_all(cells.inspect(|_| taken += 1));
        }
        assert_eq!(taken, count, "the cells of all families are all cells");
    }
}

/// Corrects the header of a segment, and the frames and checksums of its records.
fn make_right(segment: &mut [u8], number: u32) {
    let Some((header, mut rest)) = segment.split_first_chunk_mut::<SEGMENT_HEADER_BYTES>() else {
        return;
    };
    *header = segment_header(number, DatabaseId(1));
    while let Some((header, behind)) = rest.split_first_chunk_mut::<RECORD_HEADER_BYTES>() {
        let said = u32::from_le_bytes([header[4], header[5], header[6], header[7]]) as usize;
        let (body, next) = behind.split_at_mut(said.min(behind.len()));
        header[4..8].copy_from_slice(&(body.len() as u32).to_le_bytes());
        header[8..12].copy_from_slice(&crc32c::crc32c(body).to_le_bytes());
        header[12..16].copy_from_slice(&number.to_le_bytes());
        let checksum = crc32c::crc32c(&header[4..]);
        header[..4].copy_from_slice(&checksum.to_le_bytes());
        rest = next;
    }
}
