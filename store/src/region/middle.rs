//! Where a region is cut, whether it can be, and what tells whether it is to be.

use std::sync::atomic::Ordering;
use std::time::Duration;

use crate::error::Result;
use crate::read_view::ReadView;
use crate::region::{Region, SplitFacts};

fn file_bytes(view: &ReadView) -> u64 {
    view.files().map(|live| live.file.byte_count()).sum()
}

impl Region {
    /// Returns whether it has files of which a split has left it a part.
    pub(crate) fn has_parts(&self) -> bool {
        let families = self.families.load();
        families.iter().any(|family| family.view().files().any(|live| live.file.is_part()))
    }

    /// Returns the figures by which it is split, as if it were the only region of its table.
    pub(crate) fn split_facts(&self, now_micros: i64) -> SplitFacts {
        let families = self.families.load();
        let age = now_micros.saturating_sub(self.opened_micros);
        let counts = (self.rows_blocked.load(Ordering::Relaxed), self.load.totals().rows_written);
        SplitFacts {
            region: self.id,
            bytes: families.iter().map(|family| file_bytes(&family.view())).max().unwrap_or(0),
            table_regions: 1,
            flush_bytes: self.flush_bytes(),
            age: Duration::from_micros(u64::try_from(age).unwrap_or(0)),
            blocked_share: self.blocked_share.lock().note(now_micros, counts),
        }
    }

    /// Returns a row in the middle of the largest file of the largest family; `None` if the region
    /// has no two rows in files. Not its first row.
    pub(crate) fn middle_row(&self) -> Result<Option<Vec<u8>>> {
        let families = self.families.load_full();
        let views: Vec<_> = families.iter().map(|family| family.view()).collect();
        let Some(largest) = views.iter().max_by_key(|view| file_bytes(view)) else {
            return Ok(None);
        };
        let mut files: Vec<_> = largest.files().collect();
        files.sort_by_key(|live| std::cmp::Reverse(live.file.byte_count()));
        for live in files {
            if let Some(row) = live.file.middle_row()?
                && row.as_slice() > self.start()
            {
                return Ok(Some(row));
            }
        }
        Ok(None)
    }
}
