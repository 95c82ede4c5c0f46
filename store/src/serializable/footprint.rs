//! Read and write sets of a SERIALIZABLE transaction, by table, which can be intersected.
//!
//! Rows that were read individually are stored as 64-bit hashes: two rows with the same hash are
//! not distinguished, which may abort a transaction unnecessarily and never misses a conflict.
//! Ranges of rows are kept disjoint and merged where they overlap. If too much was read of a
//! table, or the memory limit of all transactions is reached, the table counts as read as a whole
//! from then on.
//!
//! # Invariants
//!
//! 1. Sets only grow: a row that was read stays in the set, even if the set is coarsened.
//! 2. The ranges of a table are disjoint and not adjacent.
//! 3. The account holds the bytes of all sets.
//!
//! In debug builds, each addition asserts 1 and `ReadSet::check` asserts 2 and 3.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::hash::{BuildHasherDefault, Hasher};
use std::ops::Bound;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use xxhash_rust::xxh3::xxh3_64;

use crate::descriptor::TableId;

/// Maximal number of individual rows of a table in one set.
const ROWS_MAX: usize = 1 << 16;
/// Maximal number of ranges of a table in one set.
const RANGES_MAX: usize = 1 << 12;
/// Rows and ranges of a table that one set may have even if the memory limit is reached.
const FEW: usize = 16;
/// Approximate bytes of a row in a set.
const ROW_BYTES: u64 = 16;
/// Bytes of a range without its bounds.
const RANGE_BYTES: u64 = 96;

/// Memory accounting of the sets of all transactions.
pub(crate) struct FootprintAccount {
    bytes: AtomicU64,
    limit_bytes: u64,
}

impl FootprintAccount {
    /// Returns an account in which sets are coarsened beyond `limit_bytes`.
    pub(crate) fn new(limit_bytes: u64) -> Arc<FootprintAccount> {
        Arc::new(FootprintAccount { bytes: AtomicU64::new(0), limit_bytes })
    }

    /// Returns the bytes in use.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes.load(Ordering::Relaxed)
    }

    /// Returns whether the limit is exceeded.
    pub(crate) fn is_full(&self) -> bool {
        self.bytes() > self.limit_bytes
    }
}

/// Share of one set in the account.
struct AccountShare {
    account: Arc<FootprintAccount>,
    bytes: u64,
}

impl AccountShare {
    fn of(account: &Arc<FootprintAccount>) -> AccountShare {
        AccountShare { account: Arc::clone(account), bytes: 0 }
    }

    fn set(&mut self, bytes: u64) {
        match bytes.checked_sub(self.bytes) {
            Some(more) => drop(self.account.bytes.fetch_add(more, Ordering::Relaxed)),
            None => {
                let less = self.bytes - bytes;
                let before = self.account.bytes.fetch_sub(less, Ordering::Relaxed);
                debug_assert!(before >= less, "the account is below zero");
            }
        }
        self.bytes = bytes;
    }

    fn add(&mut self, bytes: u64) {
        self.set(self.bytes + bytes);
    }

    fn take(&mut self, bytes: u64) {
        debug_assert!(bytes <= self.bytes, "a set gives back more than it has");
        self.set(self.bytes.saturating_sub(bytes));
    }
}

impl Drop for AccountShare {
    fn drop(&mut self) {
        self.set(0);
    }
}

/// Row hashes are hashes already.
#[derive(Default)]
struct SameHash(u64);

impl Hasher for SameHash {
    fn finish(&self) -> u64 {
        self.0
    }
    fn write(&mut self, _bytes: &[u8]) {
        unreachable!("row hashes are words");
    }
    fn write_u64(&mut self, word: u64) {
        self.0 = word;
    }
}

type Hashes = HashSet<u64, BuildHasherDefault<SameHash>>;
type ByTable<T> = HashMap<TableId, T, ahash::RandomState>;

/// Read set of a transaction.
pub(crate) struct ReadSet {
    tables: ByTable<TableReads>,
    share: AccountShare,
}

#[derive(Default)]
struct TableReads {
    /// True if the whole table counts as read; the other fields are empty then.
    whole: bool,
    rows: Hashes,
    /// Start to stop; `None` means no stop.
    ranges: BTreeMap<Vec<u8>, Option<Vec<u8>>>,
}

/// Write set of a transaction.
pub(crate) struct WriteSet {
    tables: ByTable<TableWrites>,
    share: AccountShare,
}

#[derive(Default)]
struct TableWrites {
    /// True if the whole table counts as written; the other fields are empty then.
    whole: bool,
    /// In ascending order.
    rows: Vec<Box<[u8]>>,
    hashes: Hashes,
}

impl TableReads {
    fn bytes(&self) -> u64 {
        let bounds = |(start, stop): (&Vec<u8>, &Option<Vec<u8>>)| range_bytes(start, stop);
        self.rows.len() as u64 * ROW_BYTES + self.ranges.iter().map(bounds).sum::<u64>()
    }

    fn is_much(&self) -> bool {
        self.rows.len() > ROWS_MAX || self.ranges.len() > RANGES_MAX
    }

    fn is_little(&self) -> bool {
        self.rows.len() <= FEW && self.ranges.len() <= FEW
    }

    fn coarsen(&mut self) {
        *self = TableReads { whole: true, ..TableReads::default() };
    }

    fn has(&self, row: &[u8]) -> bool {
        self.whole || self.rows.contains(&xxh3_64(row)) || self.is_in_range(row)
    }

    fn is_in_range(&self, row: &[u8]) -> bool {
        let before = self.ranges.range::<[u8], _>(through(row)).next_back();
        before.is_some_and(|(_, stop)| stop.as_deref().is_none_or(|stop| row < stop))
    }

    /// Adds a range; returns the bytes by which the set grew, and shrank.
    fn add_range(&mut self, mut start: Vec<u8>, mut stop: Option<Vec<u8>>) -> (u64, u64) {
        let mut shrunk = 0;
        if let Some((first, end)) = self.ranges.range::<[u8], _>(through(&start)).next_back() {
            if reaches(end, stop.as_ref()) {
                return (0, 0);
            }
            if end.as_ref().is_none_or(|end| *end >= start) {
                start = first.clone();
            }
        }
        // Ranges that begin within the new range are merged into it.
        while let Some((first, _)) = self.ranges.range::<[u8], _>(from(&start)).next() {
            if stop.as_ref().is_some_and(|stop| first > stop) {
                break;
            }
            let first = first.clone();
            let Some(end) = self.ranges.remove(&first) else { break };
            shrunk += range_bytes(&first, &end);
            if !reaches(&stop, end.as_ref()) {
                stop = end;
            }
        }
        let grown = range_bytes(&start, &stop);
        self.ranges.insert(start, stop);
        (grown, shrunk)
    }

    fn meets(&self, writes: &TableWrites) -> bool {
        if self.whole || writes.whole {
            return true;
        }
        debug_assert!(writes.rows.iter().take(FEW).is_sorted(), "the write set is finished");
        debug_assert_eq!(writes.rows.len(), writes.hashes.len(), "a hash for each row");
        let shared_row = match self.rows.len() < writes.hashes.len() {
            true => self.rows.iter().any(|row| writes.hashes.contains(row)),
            false => writes.hashes.iter().any(|row| self.rows.contains(row)),
        };
        if shared_row {
            return true;
        }
        if writes.rows.len() < self.ranges.len() {
            return writes.rows.iter().any(|row| self.is_in_range(row));
        }
        self.ranges.iter().any(|(start, stop)| {
            let first = writes.rows.partition_point(|row| **row < **start);
            let row = writes.rows.get(first);
            row.is_some_and(|row| stop.as_ref().is_none_or(|stop| **row < **stop))
        })
    }
}

fn through(row: &[u8]) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Unbounded, Bound::Included(row))
}

fn from(row: &[u8]) -> (Bound<&[u8]>, Bound<&[u8]>) {
    (Bound::Included(row), Bound::Unbounded)
}

/// Returns whether a range that ends at `end` reaches at least to `other`.
fn reaches(end: &Option<Vec<u8>>, other: Option<&Vec<u8>>) -> bool {
    match (end, other) {
        (None, _) => true,
        (Some(_), None) => false,
        (Some(end), Some(other)) => end >= other,
    }
}

fn range_bytes(start: &[u8], stop: &Option<Vec<u8>>) -> u64 {
    RANGE_BYTES + (start.len() + stop.as_ref().map_or(0, Vec::len)) as u64
}

impl ReadSet {
    /// Returns an empty set.
    pub(crate) fn new(account: &Arc<FootprintAccount>) -> ReadSet {
        ReadSet { tables: ByTable::default(), share: AccountShare::of(account) }
    }

    /// Returns the set of a transaction that may have read everything.
    pub(crate) fn of_tables(account: &Arc<FootprintAccount>, tables: &[TableId]) -> ReadSet {
        let mut set = ReadSet::new(account);
        tables.iter().for_each(|table| set.tables.entry(*table).or_default().coarsen());
        set
    }

    /// Adds a row that was read, or found to be absent.
    pub(crate) fn add_row(&mut self, table: TableId, row: &[u8]) {
        let reads = self.tables.entry(table).or_default();
        if !reads.whole && reads.rows.insert(xxh3_64(row)) {
            self.share.add(ROW_BYTES);
            self.limit(table);
        }
        debug_assert!(self.has(table, row), "a row that was read is not in the set");
    }

    /// Adds the rows from `start` to before `stop`, including absent ones.
    pub(crate) fn add_range(&mut self, table: TableId, start: Vec<u8>, stop: Option<Vec<u8>>) {
        if stop.as_ref().is_some_and(|stop| *stop <= start) {
            return;
        }
        let first = cfg!(debug_assertions).then(|| start.clone());
        let reads = self.tables.entry(table).or_default();
        if !reads.whole {
            let (grown, shrunk) = reads.add_range(start, stop);
            self.share.add(grown);
            self.share.take(shrunk);
            self.limit(table);
        }
        debug_assert!(
            first.is_some_and(|first| self.has(table, &first)),
            "a range that was read is not in the set"
        );
    }

    /// Coarsens the set of a table if it is too large.
    fn limit(&mut self, table: TableId) {
        let Some(reads) = self.tables.get_mut(&table) else { return };
        if reads.is_much() || (self.share.account.is_full() && !reads.is_little()) {
            self.share.take(reads.bytes());
            reads.coarsen();
        }
        self.check();
    }

    /// Coarsens the sets of all tables.
    pub(crate) fn coarsen(&mut self) {
        self.tables.values_mut().for_each(TableReads::coarsen);
        self.share.set(0);
    }

    /// Adds the set of another transaction, coarsened by table.
    pub(crate) fn absorb(&mut self, other: &ReadSet) {
        self.coarsen();
        other.tables.keys().for_each(|table| self.tables.entry(*table).or_default().coarsen());
        debug_assert!(self.tables.values().all(|reads| reads.whole), "a set is merged by table");
        self.check();
    }

    /// Returns whether a row was read.
    pub(crate) fn has(&self, table: TableId, row: &[u8]) -> bool {
        self.tables.get(&table).is_some_and(|reads| reads.has(row))
    }

    /// Returns whether anything of a table was read.
    pub(crate) fn has_table(&self, table: TableId) -> bool {
        self.tables.contains_key(&table)
    }

    /// Returns whether a row or range of this set was written.
    pub(crate) fn meets(&self, writes: &WriteSet) -> bool {
        let shared = |table: &TableId| Some((self.tables.get(table)?, writes.tables.get(table)?));
        match self.tables.len() < writes.tables.len() {
            true => self.tables.keys().filter_map(shared).any(|(read, wrote)| read.meets(wrote)),
            false => writes.tables.keys().filter_map(shared).any(|(read, wrote)| read.meets(wrote)),
        }
    }

    /// Asserts the invariants, in debug builds.
    fn check(&self) {
        if cfg!(debug_assertions) {
            let bytes: u64 = self.tables.values().map(TableReads::bytes).sum();
            assert_eq!(bytes, self.share.bytes, "bytes of the read set");
            for reads in self.tables.values().filter(|reads| reads.ranges.len() <= FEW) {
                let stops = reads.ranges.values();
                let next = reads.ranges.keys().skip(1);
                let apart = |(stop, next): (&Option<Vec<u8>>, &Vec<u8>)| {
                    stop.as_ref().is_some_and(|stop| stop < next)
                };
                assert!(stops.zip(next).all(apart), "ranges meet");
                assert!(
                    !reads.whole || reads.ranges.is_empty() && reads.rows.is_empty(),
                    "a table that counts as a whole has rows"
                );
            }
        }
    }
}

impl WriteSet {
    /// Returns an empty set.
    pub(crate) fn new(account: &Arc<FootprintAccount>) -> WriteSet {
        WriteSet { tables: ByTable::default(), share: AccountShare::of(account) }
    }

    /// Adds a row.
    pub(crate) fn add_row(&mut self, table: TableId, row: &[u8]) {
        let writes = self.tables.entry(table).or_default();
        if writes.whole || !writes.hashes.insert(xxh3_64(row)) {
            return;
        }
        writes.rows.push(row.into());
        self.share.add(2 * ROW_BYTES + row.len() as u64);
        if writes.rows.len() > ROWS_MAX || (self.share.account.is_full() && writes.rows.len() > FEW)
        {
            let row_bytes: usize = writes.rows.iter().map(|row| row.len()).sum();
            self.share.take(writes.rows.len() as u64 * 2 * ROW_BYTES + row_bytes as u64);
            *writes = TableWrites { whole: true, ..TableWrites::default() };
        }
    }

    /// Sorts the rows once all are added.
    pub(crate) fn finish(&mut self) {
        self.tables.values_mut().for_each(|writes| writes.rows.sort_unstable());
    }

    /// Returns whether anything of a table was written.
    pub(crate) fn has_table(&self, table: TableId) -> bool {
        self.tables.contains_key(&table)
    }

    /// Returns whether nothing was written.
    pub(crate) fn is_empty(&self) -> bool {
        self.tables.is_empty()
    }

    /// Coarsens all its tables, and adds those of another set, coarsened.
    pub(crate) fn absorb(&mut self, other: &WriteSet) {
        let tables: Vec<TableId> = self.tables.keys().chain(other.tables.keys()).copied().collect();
        for table in tables {
            self.tables.insert(table, TableWrites { whole: true, ..TableWrites::default() });
        }
        self.share.set(0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TABLE: TableId = TableId(7);

    fn account() -> Arc<FootprintAccount> {
        FootprintAccount::new(1 << 20)
    }

    fn reads(ranges: &[(&str, Option<&str>)]) -> ReadSet {
        let mut set = ReadSet::new(&account());
        for (start, stop) in ranges {
            set.add_range(TABLE, start.as_bytes().to_vec(), stop.map(|stop| stop.into()));
        }
        set
    }

    fn writes(rows: &[&str]) -> WriteSet {
        let mut set = WriteSet::new(&account());
        rows.iter().for_each(|row| set.add_row(TABLE, row.as_bytes()));
        set.finish();
        set
    }

    #[test]
    fn adjacent_read_ranges_are_merged() {
        let ranges = |set: &ReadSet| set.tables[&TABLE].ranges.len();
        assert_eq!(ranges(&reads(&[("a", Some("c")), ("c", Some("d"))])), 1);
        assert_eq!(ranges(&reads(&[("a", Some("c")), ("d", Some("e"))])), 2);
        assert_eq!(ranges(&reads(&[("a", Some("c")), ("d", Some("e")), ("b", Some("d"))])), 1);
        assert_eq!(ranges(&reads(&[("d", Some("e")), ("f", None), ("a", None)])), 1);
        assert_eq!(ranges(&reads(&[("a", None), ("d", Some("e"))])), 1);
        assert_eq!(ranges(&reads(&[("d", Some("z")), ("a", Some("e"))])), 1);
    }

    #[test]
    fn read_range_conflicts_only_with_contained_rows() {
        let set = reads(&[("b", Some("d")), ("m", Some("p"))]);
        for (row, met) in [("a", false), ("b", true), ("czz", true), ("d", false), ("o", true)] {
            assert_eq!(set.meets(&writes(&[row])), met, "{row}");
            assert_eq!(set.meets(&writes(&["a", row, "zz"])), met, "{row} and others");
            assert_eq!(set.has(TABLE, row.as_bytes()), met, "{row}");
        }
        assert!(!set.meets(&writes(&[])));
        let mut other = WriteSet::new(&account());
        other.add_row(TableId(8), b"b");
        assert!(!set.meets(&other));
    }

    #[test]
    fn oversized_footprint_is_promoted_to_table() {
        let account = FootprintAccount::new(10_000);
        let mut set = ReadSet::new(&account);
        for row in 0..5_000_u32 {
            set.add_row(TABLE, &row.to_be_bytes());
        }
        assert!(set.meets(&writes(&["never read"])));
        assert!(account.bytes() <= 10_000 + ROW_BYTES, "{}", account.bytes());
        let mut written = WriteSet::new(&account);
        (0..5_000_u32).for_each(|row| written.add_row(TABLE, &row.to_be_bytes()));
        written.finish();
        assert!(reads(&[("x", Some("y"))]).meets(&written));
        drop((set, written));
        assert_eq!(account.bytes(), 0);
    }
}
