//! Layout of a store's files: the properties on which compaction policies base their decisions.

use std::collections::HashSet;

use crate::cell::{Sequence, Timestamp};
use crate::descriptor::FileId;

/// Properties of one file.
#[derive(Debug, Clone, Copy)]
pub struct FileFacts<'a> {
    /// Its id.
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
    /// The last moment at which one of its cells is visible by its cell TTL; the highest
    /// timestamp if a cell has none.
    pub last_seen: Timestamp,
    /// Highest sequence of any cell.
    pub max_sequence: Sequence,
    /// Number of delete markers.
    pub marker_count: u64,
    /// True if it has rows that do not belong to the region, since a split.
    pub is_part: bool,
    /// Creation time: microseconds since 1970.
    pub created_micros: i64,
    /// True if it is the input of a running compaction.
    pub busy: bool,
}

/// Properties of one sorted run.
#[derive(Debug, Clone, Default)]
pub struct RunFacts<'a> {
    /// Its level.
    pub level: u8,
    /// Its files in row order.
    pub files: Vec<FileFacts<'a>>,
}

/// Properties of all files of a store.
#[derive(Debug, Clone, Default)]
pub struct Layout<'a> {
    /// The runs, oldest first.
    pub runs: Vec<RunFacts<'a>>,
}

/// A portion of a compaction's inputs: files with rows between those of the adjacent portions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Portion {
    /// The files, by their first rows.
    pub inputs: Vec<FileId>,
    /// True if the files are merged; otherwise they are left as they are.
    pub merged: bool,
}

impl FileFacts<'_> {
    /// Returns whether the file may have rows between `first` and `last`.
    pub fn overlaps(&self, first: &[u8], last: &[u8]) -> bool {
        self.first_row <= last && first <= self.last_row
    }
}

impl RunFacts<'_> {
    /// Returns the bytes of its files.
    pub fn byte_count(&self) -> u64 {
        self.files.iter().map(|file| file.byte_count).sum()
    }

    /// Returns whether any of its files is the input of a running compaction.
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

    /// Returns the deepest level of runs, to which the output of their merge belongs.
    pub fn level_of(&self, runs: std::ops::Range<usize>) -> u8 {
        self.runs[runs].iter().map(|run| run.level).max().unwrap_or(0)
    }

    /// Returns the files of the run of a level, none if there is no such run. Not for level 0.
    pub fn level(&self, level: u8) -> &[FileFacts<'a>] {
        let run = self.runs.iter().find(|run| run.level == level);
        run.map_or(&[], |run| &run.files)
    }

    /// Returns the files with these ids, each with the index of its run.
    fn named(&self, ids: &[FileId]) -> Vec<(usize, &FileFacts<'a>)> {
        let ids: HashSet<FileId> = ids.iter().copied().collect();
        let runs = self.runs.iter().enumerate();
        let files = runs.flat_map(|(index, run)| run.files.iter().map(move |file| (index, file)));
        files.filter(|(_, file)| ids.contains(&file.id)).collect()
    }

    /// Divides the inputs of a merge, by rows, into files that can be left as they are, because
    /// they overlap no other input and satisfy `may_stay`, and groups of files that must be
    /// merged.
    pub fn portions(
        &self,
        inputs: &[FileId],
        may_stay: impl Fn(&FileFacts<'_>) -> bool,
    ) -> Vec<Portion> {
        let mut files: Vec<&FileFacts<'_>> =
            self.named(inputs).into_iter().map(|(_, file)| file).collect();
        files.sort_by_key(|file| (file.first_row, file.last_row, file.id));
        let mut portions: Vec<Portion> = Vec::new();
        // The last of the rows so far.
        let mut end: Option<&[u8]> = None;
        for (index, file) in files.iter().enumerate() {
            let touches_before = end.is_some_and(|end| file.first_row <= end);
            end = end.max(Some(file.last_row));
            let touches_next = files.get(index + 1).is_some_and(|next| Some(next.first_row) <= end);
            let merged = touches_before || touches_next || !may_stay(file);
            match portions.last_mut() {
                Some(last) if last.merged && merged => last.inputs.push(file.id),
                _ => portions.push(Portion { inputs: vec![file.id], merged }),
            }
        }
        portions
    }

    /// Returns whether no file except `inputs` can have older cells of their rows.
    pub fn sees_oldest(&self, inputs: &[FileId]) -> bool {
        let inputs = self.named(inputs);
        let first = inputs.iter().map(|(_, input)| input.first_row).min();
        let last = inputs.iter().map(|(_, input)| input.last_row).max();
        let newest = inputs.iter().map(|(run, _)| *run).max();
        let (Some(first), Some(last), Some(newest)) = (first, last, newest) else { return false };
        let is_input = |file: &FileFacts<'_>| inputs.iter().any(|(_, input)| input.id == file.id);
        let older = self.runs[..newest].iter().flat_map(|run| &run.files);
        let mut older = older.filter(|file| file.overlaps(first, last));
        older.all(is_input)
    }

    /// Returns whether, row by row, the inputs are adjacent, so that their merge can replace the
    /// oldest of them.
    pub fn keeps_order(&self, inputs: &[FileId]) -> bool {
        let inputs = self.named(inputs);
        for (index, run) in self.runs.iter().enumerate() {
            for file in &run.files {
                let mut touching = inputs
                    .iter()
                    .filter(|(_, input)| input.overlaps(file.first_row, file.last_row))
                    .peekable();
                if touching.peek().is_none() || inputs.iter().any(|(_, input)| input.id == file.id)
                {
                    continue;
                }
                let (older, newer): (Vec<_>, Vec<_>) =
                    touching.filter(|(run, _)| *run != index).partition(|(run, _)| *run < index);
                let shares_row = older.iter().any(|(_, a)| {
                    newer.iter().any(|(_, b)| {
                        let first = a.first_row.max(b.first_row).max(file.first_row);
                        first <= a.last_row.min(b.last_row).min(file.last_row)
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

#[cfg(test)]
mod tests {
    use super::*;

    fn file(id: u64, first_row: &'static [u8], last_row: &'static [u8]) -> FileFacts<'static> {
        FileFacts {
            id: FileId(id),
            byte_count: 1,
            first_row,
            last_row,
            min_timestamp: Timestamp(0),
            max_timestamp: Timestamp(0),
            last_seen: Timestamp(i64::MAX),
            max_sequence: Sequence(id),
            marker_count: 0,
            is_part: false,
            created_micros: 0,
            busy: false,
        }
    }

    #[test]
    fn non_overlapping_files_are_not_rewritten() {
        let run = |files| RunFacts { level: 0, files };
        let layout = Layout {
            runs: vec![
                run(vec![file(1, b"a", b"f"), file(2, b"g", b"p"), file(3, b"q", b"t")]),
                run(vec![file(4, b"h", b"h"), file(5, b"u", b"v")]),
                run(vec![file(6, b"w", b"w"), file(7, b"x", b"z")]),
                run(vec![file(8, b"y", b"y")]),
            ],
        };
        let portions = |ids: std::ops::RangeInclusive<u64>, stay: &[u64]| {
            let ids: Vec<FileId> = ids.map(FileId).collect();
            let found = layout.portions(&ids, |file| stay.contains(&file.id.0));
            let show = |portion: Portion| {
                let ids: Vec<u64> = portion.inputs.iter().map(|id| id.0).collect();
                (ids, portion.merged)
            };
            found.into_iter().map(show).collect::<Vec<_>>()
        };
        let all = [1, 2, 3, 4, 5, 6, 7, 8];
        assert_eq!(
            portions(1..=8, &all),
            [
                (vec![1], false),
                (vec![2, 4], true),
                (vec![3], false),
                (vec![5], false),
                (vec![6], false),
                (vec![7, 8], true),
            ]
        );
        // Files that may not stay are merged with adjacent ones.
        assert_eq!(
            portions(1..=8, &[1, 5]),
            [(vec![1], false), (vec![2, 4, 3], true), (vec![5], false), (vec![6, 7, 8], true)]
        );
        assert_eq!(portions(1..=8, &[]), [(vec![1, 2, 4, 3, 5, 6, 7, 8], true)]);
        assert_eq!(portions(2..=4, &all), [(vec![2, 4], true), (vec![3], false)]);
    }

    #[test]
    fn compaction_inputs_must_be_adjacent_where_rows_overlap() {
        let run = |level, files| RunFacts { level, files };
        let layout = Layout {
            runs: vec![
                run(6, vec![file(1, b"a", b"f"), file(2, b"g", b"p")]),
                run(5, vec![file(3, b"e", b"h"), file(4, b"q", b"z")]),
                run(0, vec![file(5, b"a", b"d")]),
            ],
        };
        let check = |ids: &[u64]| {
            let ids: Vec<FileId> = ids.iter().copied().map(FileId).collect();
            (layout.keeps_order(&ids), layout.sees_oldest(&ids))
        };
        assert_eq!(check(&[1, 2, 3, 4, 5]), (true, true));
        assert_eq!(check(&[1, 2, 3]), (true, true));
        assert_eq!(check(&[1, 3]), (true, false), "2 has older cells of g");
        assert_eq!(check(&[1, 5]), (true, false), "3 lies between, but has no row of both");
        assert_eq!(check(&[4]), (true, true));
        assert_eq!(check(&[5]), (true, false));
        assert_eq!(check(&[]), (true, false));
        let layout = Layout {
            runs: vec![
                run(0, vec![file(1, b"a", b"f")]),
                run(0, vec![file(2, b"e", b"h")]),
                run(0, vec![file(3, b"a", b"z")]),
            ],
        };
        assert!(!layout.keeps_order(&[FileId(1), FileId(3)]), "2 has e and f");
    }
}
