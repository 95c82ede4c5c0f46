//! Where a region is cut, and whether it can be.

use crate::error::Result;
use crate::region::Region;

impl Region {
    /// Returns whether it has files of which a split has left it a part.
    pub(crate) fn has_parts(&self) -> bool {
        let families = self.families.load();
        families.iter().any(|family| family.view().files().any(|live| live.file.is_part()))
    }

    /// Returns a row in the middle of the largest file of the largest family; `None` if the region
    /// has no two rows in files. Not its first row.
    pub(crate) fn middle_row(&self) -> Result<Option<Vec<u8>>> {
        let families = self.families.load_full();
        let views: Vec<_> = families.iter().map(|family| family.view()).collect();
        let bytes_of = |index: &usize| -> u64 {
            views[*index].files().map(|live| live.file.byte_count()).sum()
        };
        let Some(largest) = (0..views.len()).max_by_key(bytes_of) else { return Ok(None) };
        let mut files: Vec<_> = views[largest].files().collect();
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
