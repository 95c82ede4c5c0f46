//! Salvage of a damaged store file: reads all readable blocks, past damaged ones.

use crate::cell::{KeyParts, compare_keys};
use crate::error::{Error, Result};
use crate::file::columnar::KnownLayout;
use crate::file::encoding::{AnyCursor, BlockCursor, Malformed, prepare};
use crate::file::format::{BlockHandle, BlockKind, open_block};
use crate::file::index::child;
use crate::file::reader::StoreFile;
use crate::file::row_block::RowBlock;

/// Consumer of a cell's key and value.
pub(crate) type KeepCell<'a> = &'a mut dyn FnMut(&[u8], &[u8]) -> Result<()>;

/// Passes the readable cells of a file to `keep`, in order. Returns the errors of the unreadable
/// blocks.
///
/// # Errors
///
/// Errors of `keep`.
pub(crate) fn rescue(file: &StoreFile, keep: KeepCell<'_>) -> Result<Vec<Error>> {
    let root = file.properties().data_index;
    let mut rescue = Rescue {
        file,
        keep,
        damage: Vec::new(),
        previous_key: Vec::new(),
        known_layout: KnownLayout::default(),
    };
    if root.levels > 0 {
        rescue.branch(root.handle, root.levels)?;
    }
    Ok(rescue.damage)
}

struct Rescue<'a> {
    file: &'a StoreFile,
    keep: KeepCell<'a>,
    damage: Vec<Error>,
    previous_key: Vec<u8>,
    known_layout: KnownLayout,
}

impl Rescue<'_> {
    /// Reads all blocks below an index block.
    fn branch(&mut self, handle: BlockHandle, levels: u8) -> Result<()> {
        let below = match self.children(handle) {
            Ok(below) => below,
            Err(error) => {
                self.damage.push(error);
                return Ok(());
            }
        };
        for child in below {
            if levels > 1 {
                self.branch(child, levels - 1)?;
                continue;
            }
            match self.cells(child) {
                Err(error) => self.damage.push(error),
                Ok(cells) => {
                    for (key, value) in cells {
                        (self.keep)(&key, &value)?;
                    }
                }
            }
        }
        Ok(())
    }

    fn children(&self, handle: BlockHandle) -> Result<Vec<BlockHandle>> {
        let framed = self.file.framed(handle)?;
        let block = open_block(BlockKind::Index, &framed)
            .map_err(|detail| Error::corrupt(self.file.path(), handle.offset, detail))?;
        let malformed = |Malformed| self.file.malformed_index(handle.offset);
        let view = RowBlock::of(block.bytes()).map_err(malformed)?;
        (0..view.restart_count()).map(|entry| child(view, entry).map_err(malformed)).collect()
    }

    /// Returns the cells of a block: all of them, or none.
    fn cells(&mut self, handle: BlockHandle) -> Result<Vec<(Vec<u8>, Vec<u8>)>> {
        let framed = self.file.framed(handle)?;
        let corrupt = |detail: &str| Error::corrupt(self.file.path(), handle.offset, detail);
        let block =
            open_block(BlockKind::Data, &framed).map_err(|detail| corrupt(detail.as_str()))?;
        let malformed = |Malformed| corrupt("the block is malformed");
        // A completely loaded block does not read the file.
        let stopped = |_| corrupt("the block is malformed");
        let mut cursor = AnyCursor::default();
        let block = prepare(block, &self.known_layout).map_err(malformed)?;
        cursor.open(block).map_err(malformed)?;
        cursor.first().map_err(stopped)?;
        let mut cells = Vec::new();
        let mut previous = self.previous_key.clone();
        while let Some(key) = cursor.key() {
            let ascends = previous.is_empty() || compare_keys(&previous, key).is_lt();
            if KeyParts::decode(key).is_none() || !ascends {
                return Err(corrupt("the cells are malformed"));
            }
            previous.clear();
            previous.extend_from_slice(key);
            cells.push((key.to_vec(), cursor.value().to_vec()));
            cursor.advance().map_err(stopped)?;
        }
        self.previous_key = previous;
        Ok(cells)
    }
}
