//! Scan partitions: ranges of rows divided among threads.
//!
//! Ranges are cut at region boundaries, and a region with large files at rows about
//! [`Options::parallel_piece_bytes`](crate::Options::parallel_piece_bytes) apart, so that a table
//! of one region keeps all cores busy too. A colocated table is cut at rows of its largest region.
//! (Phoenix cuts regions at guide posts that it gathers with its statistics; here the block index
//! of the files provides the rows.) The partitions are only a hint for sharing work: reading one is
//! correct even if regions split, merge or move meanwhile.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use crate::region::{MapSection, Region, RegionMap};

/// A half-open range of rows; `None` at the end means open.
pub type PartitionRange = (Vec<u8>, Option<Vec<u8>>);

/// A scan partition: ranges within what was one region.
pub(super) struct ScanPartition {
    pub ranges: Vec<PartitionRange>,
    /// Number of partitions of the region that are not finished.
    open: Arc<AtomicUsize>,
}

impl ScanPartition {
    /// Records that the partition is finished; returns whether the region is.
    pub(super) fn is_last(&self) -> bool {
        self.open.fetch_sub(1, Ordering::Relaxed) == 1
    }
}

/// The partitions of some ranges.
pub(super) struct ScanPartitions {
    pub parts: Vec<ScanPartition>,
    /// Number of regions that have partitions.
    pub region_count: usize,
}

/// Cuts ranges, which are half-open, ascending and disjoint, into partitions in ascending order.
/// `piece_bytes`: `None` cuts at the regions only.
pub(super) fn cut(
    ranges: &[PartitionRange],
    map: &RegionMap,
    piece_bytes: Option<u64>,
) -> ScanPartitions {
    let mut cut = ScanPartitions { parts: Vec::new(), region_count: 0 };
    for index in 0..map.section_count() {
        let MapSection { regions, start, stop } = map.section(index);
        let rest = within(ranges, start, stop);
        if rest.is_empty() {
            continue;
        }
        cut.region_count += 1;
        let largest = regions.iter().max_by_key(|region| match regions.len() {
            1 => 0,
            _ => region.compaction_figures().file_bytes,
        });
        // The regions of a colocated table have a share of each piece.
        let bytes = piece_bytes.map(|bytes| (bytes / regions.len() as u64).max(1));
        let starts = largest.zip(bytes);
        let starts =
            starts.map_or_else(Vec::new, |(region, bytes)| piece_starts(region, &rest, bytes));
        let stops = starts.iter().map(|start| Some(start.as_slice())).chain([None]);
        let starts = [&[] as &[u8]].into_iter().chain(starts.iter().map(Vec::as_slice));
        let pieces = starts.zip(stops).map(|(start, stop)| within(&rest, start, stop));
        let pieces: Vec<Vec<PartitionRange>> = pieces.filter(|piece| !piece.is_empty()).collect();
        let open = Arc::new(AtomicUsize::new(pieces.len()));
        cut.parts.extend(
            pieces.into_iter().map(|ranges| ScanPartition { ranges, open: Arc::clone(&open) }),
        );
    }
    cut
}

/// Returns rows to cut a region at; none if an index cannot be read: the read of those rows will
/// report that error.
fn piece_starts(region: &Region, ranges: &[PartitionRange], piece_bytes: u64) -> Vec<Vec<u8>> {
    let (Some((start, _)), Some((_, stop))) = (ranges.first(), ranges.last()) else {
        return Vec::new();
    };
    region.piece_starts(start, stop.as_deref(), piece_bytes).unwrap_or_default()
}

/// Clips the ranges to `start..stop`.
pub(super) fn within(
    ranges: &[PartitionRange],
    start: &[u8],
    stop: Option<&[u8]>,
) -> Vec<PartitionRange> {
    let mut clipped = Vec::new();
    for (first, end) in ranges {
        let first = first.as_slice().max(start).to_vec();
        let end = earlier_stop(end.clone(), stop);
        if end.as_ref().is_none_or(|end| first < *end) {
            clipped.push((first, end));
        }
    }
    clipped
}

/// Returns the earlier of two stops; `None` means no stop.
pub(super) fn earlier_stop(stop: Option<Vec<u8>>, limit: Option<&[u8]>) -> Option<Vec<u8>> {
    match (stop, limit) {
        (Some(stop), Some(limit)) if limit < stop.as_slice() => Some(limit.to_vec()),
        (None, Some(limit)) => Some(limit.to_vec()),
        (stop, _) => stop,
    }
}
