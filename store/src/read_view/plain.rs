//! Fast path of a get of whole rows: if one file has the row, as the only put in a plain columnar
//! block, and no memstore has any of it, nothing is merged.
//!
//! A get has several steps, and a batch of gets goes through each step together: each step
//! prefetches the memory that the next one reads, so that the cache misses of the batch overlap.
//!
//! ```text
//!   begin            memstores; prefetches lines of filters
//!   choose_block     filters, index, block cache; prefetches the block
//!   look_into_block  its head; prefetches the keys
//!   find             keys
//!   near_value       prefetches the value
//!   answer           value
//! ```
//!
//! If that does not decide (several sources have the row, a block has versions or markers, some
//! of its puts are not visible, the row is the last of its block), [`ReadView::get`] merges.

use smallvec::SmallVec;

use super::{FileOfRow, ReadView, settle};
use crate::cell::CellBatch;
use crate::descriptor::DataBlockEncoding;
use crate::error::Result;
use crate::file::{PlainBlock, PlainRow, RowSearchResult, Span, StoreFile};
use crate::memstore::{Memstore, MemstoreCursor};
use crate::scan::merge::Cursor;
use crate::scan::retention::{expiry, sees_all};
use crate::scan::{Get, ReadSpec};
use crate::staged::StagedFamily;

/// A get on the fast path.
pub(crate) struct PlainGet<'v> {
    view: &'v ReadView,
    step: Step<'v>,
}

/// Progress of the get.
enum Step<'v> {
    /// The filters of these files were looked up.
    Asked(SmallVec<[FileOfRow<'v>; 2]>),
    /// This block of this file has the row, if any has it.
    Chosen(&'v StoreFile, PlainBlock),
    /// The head of the block was read.
    Entered(&'v StoreFile, PlainBlock),
    /// The row was found.
    Found(&'v StoreFile, PlainRow),
    /// No source has the row.
    Absent,
    /// The fast path cannot decide.
    Undecided,
}

impl<'v> PlainGet<'v> {
    /// Begins a get of one family of a row; `None` if it does not qualify.
    pub(crate) fn begin(
        view: &'v ReadView,
        (get, spec): (&Get, &ReadSpec),
        staged: Option<&StagedFamily>,
    ) -> Result<Option<PlainGet<'v>>> {
        let is_plain = view.family.data_block_encoding == DataBlockEncoding::Columnar
            && !spec.raw
            && get.filter.is_none()
            // A row of such a block has one cell.
            && get.cells.offset == 0
            && get.cells.limit > 0
            && get.family_reads.iter().all(|read| read.family != view.family_index);
        if !is_plain {
            return Ok(None);
        }
        view.check_history(spec.time_range)?;
        let row = &get.row[..];
        let has = |memstore: &Memstore| {
            !memstore.is_empty() && MemstoreCursor::over_row(memstore, row).key().is_some()
        };
        let is_staged = staged
            .is_some_and(|staged| has(staged.memstore()) || !staged.runs().is_empty())
            || view.memstores().any(|memstore| has(memstore));
        if is_staged {
            return Ok(None);
        }
        let mut files = SmallVec::new();
        view.ask_files(row, spec, None::<&[Vec<u8>]>, &mut files)?;
        Ok(Some(PlainGet { view, step: Step::Asked(files) }))
    }

    /// Chooses the block that has the row if it exists.
    pub(crate) fn choose_block(&mut self, row: &[u8]) -> Result<()> {
        let Step::Asked(files) = &mut self.step else { return Ok(()) };
        settle(files);
        self.step = match files[..] {
            [] => Step::Absent,
            [FileOfRow { file, .. }] => match file.plain_block_of(row)? {
                Some(block) => Step::Chosen(file, block),
                None => Step::Undecided,
            },
            _ => Step::Undecided,
        };
        Ok(())
    }

    /// Reads the head of the block: its puts must be plain and visible.
    pub(crate) fn look_into_block(&mut self, spec: &ReadSpec) -> Result<()> {
        let expiry = expiry(&self.view.family, spec.expires_micros());
        let sees_all = |span: &Span| {
            sees_all(spec, expiry, (span.min_timestamp, span.max_timestamp), span.max_sequence)
        };
        self.step = match std::mem::replace(&mut self.step, Step::Undecided) {
            Step::Chosen(file, block) => match file.prefetch_rows(&block, sees_all)? {
                true => Step::Entered(file, block),
                false => Step::Undecided,
            },
            other => other,
        };
        Ok(())
    }

    /// Searches for the row.
    pub(crate) fn find(&mut self, row: &[u8]) -> Result<()> {
        let step = std::mem::replace(&mut self.step, Step::Undecided);
        self.step = match step {
            Step::Entered(file, block) => match file.find_in(block, row)? {
                RowSearchResult::Nothing => Step::Absent,
                RowSearchResult::Row(found) => Step::Found(file, found),
                RowSearchResult::Undecided => Step::Undecided,
            },
            other => other,
        };
        Ok(())
    }

    /// Prefetches the memory that [`PlainGet::answer`] reads.
    pub(crate) fn near_value(&self) {
        if let Step::Found(_, found) = &self.step {
            found.prefetch();
        }
    }

    /// Answers the get, if it can; returns whether it has.
    pub(crate) fn answer(self, get: &Get, batch: &mut CellBatch) -> Result<bool> {
        let family = self.view.family_index;
        match self.step {
            Step::Absent => Ok(true),
            Step::Found(file, found) => {
                let sections = get.sections.as_deref().unwrap_or_default();
                let wanted = sections.iter().find(|sections| sections.family() == family);
                let wanted = wanted.map(|sections| &**sections);
                file.append_plain(&found, (&get.row, family), wanted, batch)
            }
            Step::Asked(_) | Step::Chosen(..) | Step::Entered(..) | Step::Undecided => Ok(false),
        }
    }
}
