//! The facts of a store's files that policies decide by.

use crate::cell::{Sequence, Timestamp};
use crate::descriptor::FileId;

/// Facts of one file.
#[derive(Debug, Clone, Copy)]
pub struct FileFacts<'a> {
    /// Its name.
    pub id: FileId,
    /// Its size.
    pub byte_count: u64,
    /// First row.
    pub first_row: &'a [u8],
    /// Last row.
    pub last_row: &'a [u8],
    /// Lowest timestamp of any cell.
    pub min_timestamp: Timestamp,
    /// Highest timestamp of any cell.
    pub max_timestamp: Timestamp,
    /// Highest sequence of any cell.
    pub max_sequence: Sequence,
    /// Cells that delete.
    pub marker_count: u64,
    /// When it was written: microseconds since 1970.
    pub created_micros: i64,
    /// Whether a compaction that runs has it as its input.
    pub busy: bool,
}

/// Facts of one sorted run.
#[derive(Debug, Clone, Default)]
pub struct RunFacts<'a> {
    /// Its level.
    pub level: u8,
    /// Its files in row order.
    pub files: Vec<FileFacts<'a>>,
}

/// Facts of all files of a store.
#[derive(Debug, Clone, Default)]
pub struct Layout<'a> {
    /// The runs, oldest first.
    pub runs: Vec<RunFacts<'a>>,
}

impl FileFacts<'_> {
    /// Returns whether both have rows between `first` and `last`, or could.
    pub fn overlaps(&self, first: &[u8], last: &[u8]) -> bool {
        self.first_row <= last && first <= self.last_row
    }
}

impl RunFacts<'_> {
    /// Returns the bytes of its files.
    pub fn byte_count(&self) -> u64 {
        self.files.iter().map(|file| file.byte_count).sum()
    }

    /// Returns whether a compaction that runs has any of its files as input.
    pub fn is_busy(&self) -> bool {
        self.files.iter().any(|file| file.busy)
    }

    /// Returns the highest timestamp of any cell.
    pub fn max_timestamp(&self) -> Timestamp {
        let newest = self.files.iter().map(|file| file.max_timestamp).max();
        newest.unwrap_or(Timestamp(i64::MIN))
    }

    /// Returns the highest sequence of any cell.
    pub fn max_sequence(&self) -> Sequence {
        self.files.iter().map(|file| file.max_sequence).max().unwrap_or_default()
    }
}

impl<'a> Layout<'a> {
    /// Returns all files, those of the oldest run first.
    pub fn files(&self) -> impl Iterator<Item = &FileFacts<'a>> {
        self.runs.iter().flat_map(|run| &run.files)
    }

    /// Returns the files of whole runs.
    pub fn ids(&self, runs: std::ops::Range<usize>) -> Vec<FileId> {
        self.runs[runs].iter().flat_map(|run| &run.files).map(|file| file.id).collect()
    }

    /// Returns the deepest level of runs: where the output of their merge belongs.
    pub fn level_of(&self, runs: std::ops::Range<usize>) -> u8 {
        self.runs[runs].iter().map(|run| run.level).max().unwrap_or(0)
    }

    /// Returns the files of the run of a level, none if there is no such run. Not for level 0.
    pub fn level(&self, level: u8) -> &[FileFacts<'a>] {
        let run = self.runs.iter().find(|run| run.level == level);
        run.map_or(&[], |run| &run.files)
    }

    /// Returns first and last row of the files among `ids`.
    fn hull(&self, ids: &[FileId]) -> Option<(&'a [u8], &'a [u8])> {
        let chosen = || self.files().filter(|file| ids.contains(&file.id));
        let first = chosen().map(|file| file.first_row).min()?;
        let last = chosen().map(|file| file.last_row).max()?;
        Some((first, last))
    }

    /// Returns whether no file but `inputs` can have cells of their rows that are older than some
    /// of theirs.
    pub fn sees_oldest(&self, inputs: &[FileId]) -> bool {
        let Some((first, last)) = self.hull(inputs) else { return false };
        let is_input = |file: &FileFacts<'_>| inputs.contains(&file.id);
        let newest = self.runs.iter().rposition(|run| run.files.iter().any(is_input));
        let older = &self.runs[..newest.unwrap_or(0)];
        let left_out = older.iter().flat_map(|run| &run.files).filter(|file| !is_input(file));
        !left_out.into_iter().any(|file| file.overlaps(first, last))
    }

    /// Returns whether, row by row, the inputs are neighbours, so that their merge can take the
    /// place of the oldest of them.
    pub fn keeps_order(&self, inputs: &[FileId]) -> bool {
        let is_input = |file: &&FileFacts<'a>| inputs.contains(&file.id);
        for (index, run) in self.runs.iter().enumerate() {
            for file in run.files.iter().filter(|file| !is_input(file)) {
                let touching = |runs: &[RunFacts<'a>]| -> Vec<(&'a [u8], &'a [u8])> {
                    let files = runs.iter().flat_map(|run| &run.files).filter(is_input);
                    files
                        .filter(|input| input.overlaps(file.first_row, file.last_row))
                        .map(|input| (input.first_row, input.last_row))
                        .collect()
                };
                let (older, newer) =
                    (touching(&self.runs[..index]), touching(&self.runs[index + 1..]));
                let shares_row = older.iter().any(|a| {
                    newer.iter().any(|b| {
                        let first = a.0.max(b.0).max(file.first_row);
                        first <= a.1.min(b.1).min(file.last_row)
                    })
                });
                if shares_row {
                    return false;
                }
            }
        }
        true
    }
}
