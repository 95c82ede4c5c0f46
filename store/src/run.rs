//! Sorted runs: store files that are disjoint by row, in row order.
//!
//! A flush makes a run of one file. A compaction divides its output into files of a bounded size,
//! which form one run; and each level of the leveled policy is one run.
//!
//! ```text
//!   newest   [ f7                  ]        level 0: one run for each flush or merge
//!            [ f6                  ]
//!            [ f2 ][ f5 ][ f3      ]        level 1
//!   oldest   [ f1    ][ f4         ]        level 2
//! ```
//!
//! # Invariants
//!
//! 1. A row is in at most one file of a run, so a read of a row opens one file of each run.
//!    [`Run::new`] asserts it; the opening of a store returns an error.
//! 2. A run never changes, and holds its files on disk: the type has no mutators.
//!
//! For any one row, all cells of a run have higher sequences than those of the runs below it.
//! Deeper levels are older; within level 0 a run with higher sequences is newer. The sequences of
//! whole files may overlap, because their rows do not have to.

use std::sync::Arc;

use smallvec::SmallVec;

use crate::cell::{CellType, KeyParts, Sequence, Timestamp, row_prefix};
use crate::descriptor::{FileId, FileIdentity};
use crate::error::Result;
use crate::file::{Caching, ColumnSlice, FileCursor, FileProperties, StoreFile, WantedColumns};
use crate::read_statistics::note_read;
use crate::scan::merge::{Cursor, RowOrder};

/// Manifest record of a store file.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, bincode::Encode, bincode::Decode)]
pub struct FileRecord {
    /// The file.
    pub id: FileId,
    /// Its level. Level 0 has many runs, each other level one.
    pub level: u8,
    /// Files of level 0 with the same number form one run. 0 in other levels.
    pub run: u64,
    /// Creation time: microseconds since 1970.
    pub created_micros: i64,
    /// The sequence of all its cells, regardless of their keys: of a bulk load.
    pub adopted: Option<u64>,
    /// The identity recorded in the file, if any.
    pub identity: Option<FileIdentity>,
}

impl FileRecord {
    /// Returns the record of an open file as a single run of level 0.
    pub(crate) fn of_alone(live: &LiveFile) -> FileRecord {
        let identity = live.file.identity();
        FileRecord { identity, ..FileRecord::alone(live.id, live.created_micros) }
    }

    /// Returns the record of a file as a single run of level 0, written at this time.
    pub fn alone(id: FileId, created_micros: i64) -> FileRecord {
        FileRecord { id, level: 0, run: id.0, created_micros, adopted: None, identity: None }
    }
}

/// An open file with its id.
#[derive(Clone)]
pub(crate) struct LiveFile {
    pub(crate) id: FileId,
    pub(crate) created_micros: i64,
    pub(crate) file: Arc<StoreFile>,
}

/// A sorted run.
pub(crate) struct Run {
    level: u8,
    number: u64,
    /// In row order, disjoint by row. Never empty.
    files: Vec<LiveFile>,
    /// Prefixes of the first and the last row of each file, which decide most comparisons.
    prefixes: SmallVec<[(u128, u128); 1]>,
    family_markers: bool,
    expiring: bool,
}

impl Run {
    /// Returns the run of these files, which are disjoint by row.
    pub(crate) fn new(level: u8, number: u64, mut files: Vec<LiveFile>) -> Run {
        files.sort_by(|a, b| a.file.properties().first_row.cmp(&b.file.properties().first_row));
        assert!(!files.is_empty(), "a run has a file");
        assert!(
            files.windows(2).all(|pair| {
                pair[0].file.properties().last_row < pair[1].file.properties().first_row
            }),
            "the files of a run are disjoint by row"
        );
        let has = |cell_type: CellType| {
            files.iter().any(|live| live.file.properties().count_of(cell_type) > 0)
        };
        let family_markers = has(CellType::DeleteFamily) || has(CellType::DeleteFamilyVersion);
        let expiring = files.iter().any(|live| live.file.properties().expiring_count > 0);
        let prefixes = files.iter().map(|live| {
            let properties = live.file.properties();
            (row_prefix(&properties.first_row), row_prefix(&properties.last_row))
        });
        Run { level, number, prefixes: prefixes.collect(), files, family_markers, expiring }
    }

    /// Returns the run of one file that a flush wrote.
    pub(crate) fn of_file(file: LiveFile) -> Run {
        Run::new(0, file.id.0, vec![file])
    }

    pub(crate) fn level(&self) -> u8 {
        self.level
    }

    /// Returns the manifest records of its files.
    pub(crate) fn records(&self) -> impl Iterator<Item = FileRecord> {
        self.files.iter().map(|live| FileRecord {
            id: live.id,
            level: self.level,
            run: self.number,
            created_micros: live.created_micros,
            adopted: live.file.adopted().map(|sequence| sequence.0),
            identity: live.file.identity(),
        })
    }

    pub(crate) fn files(&self) -> &[LiveFile] {
        &self.files
    }

    pub(crate) fn byte_count(&self) -> u64 {
        self.files.iter().map(|live| live.file.byte_count()).sum()
    }

    /// Returns whether any file has a marker that masks all columns of a row.
    pub(crate) fn has_family_markers(&self) -> bool {
        self.family_markers
    }

    /// Returns whether any cell has a TTL.
    pub(crate) fn has_expiring(&self) -> bool {
        self.expiring
    }

    /// Returns the highest sequence of any cell.
    pub(crate) fn max_sequence(&self) -> Sequence {
        let sequences = self.files.iter().map(|live| live.file.properties().max_sequence);
        sequences.max().unwrap_or_default()
    }

    /// Returns the file whose range of rows includes `row`.
    pub(crate) fn file_of_row(&self, row: &[u8]) -> Option<&Arc<StoreFile>> {
        let prefix = row_prefix(row);
        let index = self.prefixes.partition_point(|(_, last)| *last < prefix);
        let (first, last) = *self.prefixes.get(index)?;
        if first > prefix {
            return None;
        }
        if first < prefix && prefix < last {
            return Some(&self.files[index].file);
        }
        let live = self.files.get(self.first_not_before(row))?;
        (&live.file.properties().first_row[..] <= row).then_some(&live.file)
    }

    /// Returns the index of the first file that ends at or after `row`.
    fn first_not_before(&self, row: &[u8]) -> usize {
        self.files.partition_point(|live| &live.file.properties().last_row[..] < row)
    }

    /// Returns whether a file may have a row from `first` to `last`, both included.
    pub(crate) fn has_rows_in(&self, first: &[u8], last: &[u8]) -> bool {
        let next = self.files.get(self.first_not_before(first));
        next.is_some_and(|live| &live.file.properties().first_row[..] <= last)
    }

    /// Returns whether no file has a row in `start..stop`.
    pub(crate) fn misses(&self, start: &[u8], stop: Option<&[u8]>) -> bool {
        let next = self.files.get(self.first_not_before(start));
        next.is_none_or(|live| {
            stop.is_some_and(|stop| &live.file.properties().first_row[..] >= stop)
        })
    }
}

/// Assembles the files of a manifest into runs, oldest first.
pub(crate) fn assemble(files: Vec<(FileRecord, LiveFile)>) -> Vec<Arc<Run>> {
    let mut groups: Vec<(u8, u64, Vec<LiveFile>)> = Vec::new();
    for (record, live) in files {
        let group =
            groups.iter_mut().find(|group| (group.0, group.1) == (record.level, record.run));
        match group {
            Some(group) => group.2.push(live),
            None => groups.push((record.level, record.run, vec![live])),
        }
    }
    let mut runs: Vec<Arc<Run>> = groups
        .into_iter()
        .map(|(level, number, files)| Arc::new(Run::new(level, number, files)))
        .collect();
    sort_runs(&mut runs);
    debug_assert!(
        runs.windows(2).all(|pair| pair[0].level == 0 || pair[0].level != pair[1].level),
        "a level except 0 is one run"
    );
    runs
}

/// Sorts runs, oldest first.
pub(crate) fn sort_runs(runs: &mut [Arc<Run>]) {
    runs.sort_by_key(|run| {
        let age = if run.level == 0 { run.max_sequence() } else { Sequence(0) };
        (u8::MAX - run.level, age)
    });
}

/// Criteria by which a read skips files.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FileSelection {
    /// Only cells up to here are visible.
    pub(crate) snapshot: Sequence,
    /// Cells below are neither visible nor evicted by visible ones.
    pub(crate) live_from: Timestamp,
    /// Cells with a TTL that expired before are not visible.
    pub(crate) seen_from: Timestamp,
}

impl FileSelection {
    /// Admits every file.
    pub(crate) const ALL: FileSelection = FileSelection {
        snapshot: Sequence(u64::MAX),
        live_from: Timestamp(i64::MIN),
        seen_from: Timestamp(i64::MIN),
    };

    /// Returns whether a file may have relevant cells for the read.
    pub(crate) fn admits(self, properties: &FileProperties) -> bool {
        // Cells above the time range must be read: they evict older versions.
        properties.min_sequence <= self.snapshot
            && properties.max_timestamp >= self.live_from
            && properties.last_seen >= self.seen_from
    }
}

/// Cursor over a run; opens one file at a time.
pub(crate) struct RunCursor {
    run: Arc<Run>,
    admission: FileSelection,
    order: RowOrder,
    caching: Caching,
    /// Index of the file that `cursor` reads.
    index: usize,
    cursor: Option<FileCursor>,
}

impl RunCursor {
    /// Returns a cursor that begins with the first row at or after `start`.
    pub(crate) fn forward(
        run: Arc<Run>,
        start: &[u8],
        admission: FileSelection,
        caching: Caching,
    ) -> Result<RunCursor> {
        let mut cursor =
            RunCursor { run, admission, order: RowOrder::Forward, caching, index: 0, cursor: None };
        cursor.open_from(start)?;
        Ok(cursor)
    }

    /// Returns a cursor that begins with the last row before `stop` and moves backwards.
    pub(crate) fn reverse(
        run: Arc<Run>,
        stop: Option<&[u8]>,
        admission: FileSelection,
        caching: Caching,
    ) -> Result<RunCursor> {
        let order = RowOrder::Reverse;
        let mut cursor = RunCursor { run, admission, order, caching, index: 0, cursor: None };
        cursor.open_before_row(stop)?;
        Ok(cursor)
    }

    fn admitted(&self, index: usize) -> Option<Arc<StoreFile>> {
        let live = self.run.files.get(index)?;
        if self.admission.admits(live.file.properties()) {
            return Some(live.file.clone());
        }
        note_read(|figures| figures.files_of_other_times += 1);
        None
    }

    /// Moves to the first cell of the first row at or after `row`.
    fn open_from(&mut self, row: &[u8]) -> Result<()> {
        self.index = self.run.first_not_before(row);
        self.open_forward(row)
    }

    /// Opens the first file from `index` on that has a cell at or after `row`.
    fn open_forward(&mut self, row: &[u8]) -> Result<()> {
        self.cursor = None;
        while self.index < self.run.files.len() {
            if let Some(file) = self.admitted(self.index) {
                let cursor = FileCursor::forward(file, row, self.caching)?;
                if cursor.key().is_some() {
                    self.cursor = Some(cursor);
                    return Ok(());
                }
            }
            self.index += 1;
        }
        Ok(())
    }

    /// Moves to the first cell of the last row before `stop`.
    fn open_before_row(&mut self, stop: Option<&[u8]>) -> Result<()> {
        let files = &self.run.files;
        self.index = stop.map_or(files.len(), |stop| {
            files.partition_point(|live| &live.file.properties().first_row[..] < stop)
        });
        self.open_before(stop)
    }

    /// Opens the last file before `index` that has a row before `stop`.
    fn open_before(&mut self, stop: Option<&[u8]>) -> Result<()> {
        self.cursor = None;
        while self.index > 0 {
            self.index -= 1;
            if let Some(file) = self.admitted(self.index) {
                let cursor = FileCursor::reverse(file, stop, self.caching)?;
                if cursor.key().is_some() {
                    self.cursor = Some(cursor);
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    /// Opens the next file when the current one is at its end.
    fn go_on(&mut self) -> Result<()> {
        if self.cursor.as_ref().is_none_or(|cursor| cursor.key().is_some()) {
            return Ok(());
        }
        match self.order {
            RowOrder::Forward => {
                self.index += 1;
                self.open_forward(&[])
            }
            RowOrder::Reverse => self.open_before(None),
        }
    }
}

impl RunCursor {
    /// As [`FileCursor::take_columns`].
    pub(crate) fn take_columns(
        &mut self,
        wanted: &WantedColumns<'_>,
    ) -> Result<Option<ColumnSlice>> {
        let Some(cursor) = &mut self.cursor else { return Ok(None) };
        let slice = cursor.take_columns(wanted)?;
        self.go_on()?;
        Ok(slice)
    }
}

impl Cursor for RunCursor {
    fn key(&self) -> Option<&[u8]> {
        self.cursor.as_ref().and_then(Cursor::key)
    }

    fn value(&self) -> &[u8] {
        self.cursor.as_ref().map_or(&[], Cursor::value)
    }

    fn advance(&mut self) -> Result<()> {
        if let Some(cursor) = &mut self.cursor {
            cursor.advance()?;
        }
        self.go_on()
    }

    fn walk(&mut self, show: &mut impl FnMut(KeyParts<'_>, &[u8]) -> bool) -> Result<()> {
        while let Some(cursor) = &mut self.cursor {
            cursor.walk(show)?;
            if cursor.key().is_some() {
                break;
            }
            self.go_on()?;
        }
        Ok(())
    }

    fn skip_column(&mut self) -> Result<()> {
        if let Some(cursor) = &mut self.cursor {
            cursor.skip_column()?;
        }
        self.go_on()
    }

    fn seek_column(&mut self, qualifier: &[u8]) -> Result<()> {
        if let Some(cursor) = &mut self.cursor {
            cursor.seek_column(qualifier)?;
        }
        self.go_on()
    }

    fn skip_row(&mut self) -> Result<()> {
        if let Some(cursor) = &mut self.cursor {
            cursor.skip_row()?;
        }
        self.go_on()
    }

    fn seek_row(&mut self, row: &[u8]) -> Result<()> {
        let inside = self.run.files.get(self.index).is_some_and(|live| {
            let properties = live.file.properties();
            &properties.first_row[..] < row && row <= &properties.last_row[..]
        });
        if inside && let Some(cursor) = &mut self.cursor {
            cursor.seek_row(row)?;
            return self.go_on();
        }
        match self.order {
            RowOrder::Forward => self.open_from(row),
            RowOrder::Reverse => self.open_before_row(Some(row)),
        }
    }

    fn open(&mut self) -> Result<bool> {
        self.cursor.as_mut().map_or(Ok(false), Cursor::open)
    }
}
