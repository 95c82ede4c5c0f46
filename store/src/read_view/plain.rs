//! The short way of a get of whole rows: where one file has the row, as the only put in a plain
//! columnar block, and no memstore has any of it, nothing is merged.
//!
//! A get goes in steps, so that many are taken through each of them together: what a step looks at
//! is asked for by the one before, and the processor waits for several places in memory at once.
//!
//! ```text
//!   begin            memstores; lines of filters are asked for
//!   choose_block     filters, index, block cache; the block is asked for
//!   look_into_block  its head; the keys are asked for
//!   find             keys
//!   near_value       the value is asked for
//!   answer           value
//! ```
//!
//! Where that does not decide (several sources have the row, a block has versions or markers, some
//! of its puts are not visible, the row is the last of its block), [`ReadView::get`] merges.

use smallvec::SmallVec;

use super::{FileOfRow, ReadView, settle};
use crate::cell::CellBatch;
use crate::descriptor::DataBlockEncoding;
use crate::error::Result;
use crate::file::{Found, PlainBlock, PlainRow, Span, StoreFile};
use crate::memstore::{Memstore, MemstoreCursor};
use crate::scan::merge::Cursor;
use crate::scan::request::CellWindow;
use crate::scan::retention::{expiry, sees_all};
use crate::scan::{Get, ReadSpec};
use crate::staged::StagedFamily;

/// A get that is on the short way.
pub(crate) struct PlainGet<'v> {
    view: &'v ReadView,
    step: Step<'v>,
}

/// How far it is.
enum Step<'v> {
    /// These files were asked.
    Asked(SmallVec<[FileOfRow<'v>; 2]>),
    /// This file has it, if any has, in this block.
    Chosen(&'v StoreFile, PlainBlock),
    /// The block was looked into.
    Entered(&'v StoreFile, PlainBlock),
    /// This is the row.
    Found(&'v StoreFile, PlainRow),
    /// Nothing has the row.
    Absent,
    /// Another way decides.
    Undecided,
}

impl<'v> PlainGet<'v> {
    /// Begins a get of what one family has of a row; `None` if it is not of this kind.
    pub(crate) fn begin(
        view: &'v ReadView,
        (get, spec): (&Get, &ReadSpec),
        staged: Option<&StagedFamily>,
    ) -> Result<Option<PlainGet<'v>>> {
        let is_plain = view.family.data_block_encoding == DataBlockEncoding::Columnar
            && !spec.raw
            && get.filter.is_none()
            && get.cells == CellWindow::ALL
            && get.family_reads.iter().all(|read| read.family != view.family_index);
        if !is_plain {
            return Ok(None);
        }
        view.check_history(spec)?;
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

    /// Chooses the block that the row is in if it is anywhere.
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

    /// Looks into the block, whether its puts are plain and visible.
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
                Found::Nothing => Step::Absent,
                Found::Row(found) => Step::Found(file, found),
                Found::Undecided => Step::Undecided,
            },
            other => other,
        };
        Ok(())
    }

    /// Brings near what [`PlainGet::answer`] looks at.
    pub(crate) fn near_value(&self) {
        if let Step::Found(_, found) = &self.step {
            found.prefetch();
        }
    }

    /// Answers, if it can: returns whether it has.
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
