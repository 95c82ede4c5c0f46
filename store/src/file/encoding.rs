//! Encodings of data blocks.
//!
//! A file's writer has one [`BlockBuilder`], chosen by the family's [`DataBlockEncoding`]; a
//! reader takes the encoding of each block from the block's header. An encoding is a pair of
//! types that implement the two traits here, and an arm in [`AnyBuilder`] and [`AnyCursor`]: a
//! match for each call instead of dynamic dispatch, so that the loops of scans can be inlined.
//!
//! # Invariants
//!
//! 1. A block has at least one cell; its cells ascend.
//! 2. A cursor never panics, regardless of the bytes of a block: [`Malformed`].
//! 3. After an error a cursor is on no cell.
//!
//! The builders assert 1 in debug builds; the fuzz target of blocks asserts 2 and 3.
//!
//! Compression, checksums and block positions are in [`crate::file::format`].

use crate::cache::Block;
use crate::cell::{KeyParts, column_end_key, column_of, compare_keys};
use crate::descriptor::{Compression, DataBlockEncoding, FamilyDescriptor};
use crate::error::Error;
use crate::file::columnar::{self, ColumnarBuilder, ColumnarCursor, KnownLayout};
use crate::file::piece_source::PieceSource;
use crate::file::row_block::{RowBlockBuilder, RowBlockCursor};

/// Maximal steps to leave a column before a search for its end.
pub(super) const COLUMN_STEPS_MAX: usize = 16;

/// A malformed block whose checksum is correct.
#[derive(Debug)]
pub(super) struct Malformed;

/// Error of a cursor over a block.
#[derive(Debug)]
pub(super) enum BlockError {
    /// See [`Malformed`].
    Malformed,
    /// The bytes behind the front of the block could not be read.
    Failed(Box<Error>),
}

impl From<Malformed> for BlockError {
    fn from(Malformed: Malformed) -> BlockError {
        BlockError::Malformed
    }
}

impl From<Error> for BlockError {
    fn from(error: Error) -> BlockError {
        BlockError::Failed(Box::new(error))
    }
}

/// Builder of consecutive blocks of cells.
pub(super) trait BlockBuilder {
    /// Adds a cell. Keys must ascend and be valid; the writer has checked both.
    fn add(&mut self, key: &[u8], value: &[u8]);

    /// Returns whether no cell was added since the last block was finished.
    fn is_empty(&self) -> bool;

    /// Returns the size of the block if it were finished now, or an estimate.
    fn byte_count(&self) -> usize;

    /// Appends the raw bytes of the block to `out` and begins the next one. The block must have a
    /// cell.
    fn finish(&mut self, out: &mut Vec<u8>);
}

/// Cursor on a cell of a block, or on none.
pub(super) trait BlockCursor {
    /// Opens a block; the cursor is on no cell until moved.
    fn open(&mut self, block: Block) -> Result<(), Malformed>;

    /// Releases the block; the cursor is on no cell.
    fn close(&mut self);

    /// Returns the encoded key of the current cell.
    fn key(&self) -> Option<&[u8]>;

    /// Returns the value of the current cell; empty if there is none.
    fn value(&self) -> &[u8];

    /// Moves to the first cell of the block.
    fn first(&mut self) -> Result<(), BlockError>;

    /// Moves to the last cell of the block.
    fn last(&mut self) -> Result<(), BlockError>;

    /// Moves to the next cell; to none after the last. On none, does nothing.
    fn advance(&mut self) -> Result<(), BlockError>;

    /// Passes the cells from the current one on to `show`, key and value, while it returns
    /// `true`. Then the cursor is on the first cell that it rejected; on none behind the last.
    fn walk(
        &mut self,
        show: &mut impl FnMut(KeyParts<'_>, &[u8]) -> bool,
    ) -> Result<(), BlockError> {
        while let Some(parts) = self.key().and_then(KeyParts::decode)
            && show(parts, self.value())
        {
            self.advance()?;
        }
        Ok(())
    }

    /// Moves to the previous cell; to none before the first. On none, does nothing.
    fn retreat(&mut self) -> Result<(), BlockError>;

    /// Moves to the first cell whose key is not less than `target`; to none if there is none.
    fn seek(&mut self, target: &[u8]) -> Result<(), BlockError>;

    /// Moves to the last cell whose key is less than `target`; to none if there is none.
    fn seek_before(&mut self, target: &[u8]) -> Result<(), BlockError>;

    /// Moves to the first cell behind the current column; to none if the block has none. Its
    /// value may be available only after [`AnyCursor::open_value`].
    fn skip_column(&mut self) -> Result<(), BlockError> {
        let Some(key) = self.key() else { return Ok(()) };
        let (row, qualifier) = column_of(key);
        let end = column_end_key(row, qualifier);
        for _ in 0..COLUMN_STEPS_MAX {
            self.advance()?;
            if self.key().is_none_or(|key| compare_keys(key, &end).is_gt()) {
                return Ok(());
            }
        }
        self.seek(&end)
    }
}

const ROWS_CODE: u8 = 1;
const COLUMNAR_CODE: u8 = 3;

/// Prepares a data block that was just read for sharing. `known` is of its file.
pub(super) fn prepare(block: Block, known: &KnownLayout) -> Result<Block, Malformed> {
    match block.encoding() {
        COLUMNAR_CODE => columnar::prepare(block, known, None),
        _ => Ok(block),
    }
}

/// Prepares the front of a data block, whose other bytes are read on demand.
pub(super) fn prepare_front(
    front: Block,
    known: &KnownLayout,
    origin: PieceSource,
) -> Result<Block, Malformed> {
    match front.encoding() {
        COLUMNAR_CODE => columnar::prepare(front, known, Some(origin)),
        _ => Err(Malformed),
    }
}

/// Returns the bytes of the front of a raw block, including the header of its frame; 0 if it has
/// none.
pub(super) fn front_bytes(encoding: u8, raw: &[u8]) -> u32 {
    if encoding == COLUMNAR_CODE { columnar::front_bytes(raw) } else { 0 }
}

/// The code of an encoding in the header of a block.
pub(super) const fn encoding_code(encoding: DataBlockEncoding) -> u8 {
    match encoding {
        DataBlockEncoding::Rows => ROWS_CODE,
        DataBlockEncoding::Columnar => COLUMNAR_CODE,
    }
}

/// The builder of a family.
pub(super) enum AnyBuilder {
    Rows(RowBlockBuilder),
    Columnar(Box<ColumnarBuilder>),
}

/// Forwards a call to the variant.
macro_rules! each {
    ($any:expr, $one:ident => $call:expr) => {
        match $any {
            Self::Rows($one) => $call,
            Self::Columnar($one) => $call,
        }
    };
}

impl AnyBuilder {
    pub(super) fn new(family: &FamilyDescriptor) -> AnyBuilder {
        match family.data_block_encoding {
            DataBlockEncoding::Rows => AnyBuilder::Rows(RowBlockBuilder::default()),
            DataBlockEncoding::Columnar => {
                let builder = ColumnarBuilder::new(&family.value_layout, family.compression);
                AnyBuilder::Columnar(Box::new(builder))
            }
        }
    }
}

impl AnyBuilder {
    /// Returns the compression of the finished block as a whole in a family with this
    /// compression.
    pub(super) fn frame_compression(&self, family: Compression) -> Compression {
        match self {
            AnyBuilder::Rows(_) => family,
            // Its parts are compressed separately.
            AnyBuilder::Columnar(_) => Compression::None,
        }
    }
}

impl BlockBuilder for AnyBuilder {
    fn add(&mut self, key: &[u8], value: &[u8]) {
        each!(self, builder => builder.add(key, value));
    }

    fn is_empty(&self) -> bool {
        each!(self, builder => builder.is_empty())
    }

    fn byte_count(&self) -> usize {
        each!(self, builder => builder.byte_count())
    }

    fn finish(&mut self, out: &mut Vec<u8>) {
        each!(self, builder => builder.finish(out));
    }
}

/// A cursor over blocks of any encoding.
pub(super) enum AnyCursor {
    Rows(RowBlockCursor),
    Columnar(ColumnarCursor),
}

impl Default for AnyCursor {
    fn default() -> AnyCursor {
        AnyCursor::Rows(RowBlockCursor::default())
    }
}

impl AnyCursor {
    /// Moves to the first cell; its value may be available only after [`AnyCursor::open_value`].
    pub(super) fn first_key(&mut self) -> Result<(), BlockError> {
        match self {
            AnyCursor::Rows(cursor) => cursor.first(),
            AnyCursor::Columnar(cursor) => Ok(cursor.move_to(0)?),
        }
    }

    /// Moves to the last cell; its value may be available only after [`AnyCursor::open_value`].
    pub(super) fn last_key(&mut self) -> Result<(), BlockError> {
        match self {
            AnyCursor::Rows(cursor) => cursor.last(),
            AnyCursor::Columnar(cursor) => Ok(cursor.last_key()?),
        }
    }

    /// Moves to the next cell; its value may be available only after [`AnyCursor::open_value`].
    pub(super) fn advance_key(&mut self) -> Result<(), BlockError> {
        match self {
            AnyCursor::Rows(cursor) => cursor.advance(),
            AnyCursor::Columnar(cursor) => Ok(cursor.advance_key()?),
        }
    }

    /// Moves to the previous cell; its value may be available only after
    /// [`AnyCursor::open_value`].
    pub(super) fn retreat_key(&mut self) -> Result<(), BlockError> {
        match self {
            AnyCursor::Rows(cursor) => cursor.retreat(),
            AnyCursor::Columnar(cursor) => Ok(cursor.retreat_key()?),
        }
    }

    /// Moves to the last cell whose key is less than `target`; its value may be available only
    /// after [`AnyCursor::open_value`].
    pub(super) fn seek_key_before(&mut self, target: &[u8]) -> Result<(), BlockError> {
        match self {
            AnyCursor::Rows(cursor) => cursor.seek_before(target),
            AnyCursor::Columnar(cursor) => Ok(cursor.seek_key_before(target)?),
        }
    }

    /// Assembles the value of the current cell, if that was not done yet.
    pub(super) fn open_value(&mut self) -> Result<(), BlockError> {
        match self {
            AnyCursor::Rows(_) => Ok(()),
            AnyCursor::Columnar(cursor) => cursor.open_value(),
        }
    }
}

impl BlockCursor for AnyCursor {
    fn open(&mut self, block: Block) -> Result<(), Malformed> {
        match (block.encoding(), &mut *self) {
            (ROWS_CODE, AnyCursor::Rows(cursor)) => cursor.open(block),
            (COLUMNAR_CODE, AnyCursor::Columnar(cursor)) => cursor.open(block),
            (ROWS_CODE, _) => {
                *self = AnyCursor::Rows(RowBlockCursor::default());
                self.open(block)
            }
            (COLUMNAR_CODE, _) => {
                *self = AnyCursor::Columnar(ColumnarCursor::default());
                self.open(block)
            }
            _ => {
                self.close();
                Err(Malformed)
            }
        }
    }

    fn close(&mut self) {
        each!(self, cursor => cursor.close());
    }

    fn key(&self) -> Option<&[u8]> {
        each!(self, cursor => cursor.key())
    }

    fn value(&self) -> &[u8] {
        each!(self, cursor => cursor.value())
    }

    fn first(&mut self) -> Result<(), BlockError> {
        each!(self, cursor => cursor.first())
    }

    fn last(&mut self) -> Result<(), BlockError> {
        each!(self, cursor => cursor.last())
    }

    fn advance(&mut self) -> Result<(), BlockError> {
        each!(self, cursor => cursor.advance())
    }

    fn walk(
        &mut self,
        show: &mut impl FnMut(KeyParts<'_>, &[u8]) -> bool,
    ) -> Result<(), BlockError> {
        each!(self, cursor => cursor.walk(show))
    }

    fn retreat(&mut self) -> Result<(), BlockError> {
        each!(self, cursor => cursor.retreat())
    }

    fn seek(&mut self, target: &[u8]) -> Result<(), BlockError> {
        each!(self, cursor => cursor.seek(target))
    }

    fn seek_before(&mut self, target: &[u8]) -> Result<(), BlockError> {
        each!(self, cursor => cursor.seek_before(target))
    }

    fn skip_column(&mut self) -> Result<(), BlockError> {
        each!(self, cursor => cursor.skip_column())
    }
}

#[cfg(test)]
mod tests {
    //! Property tests of every encoding against a sorted list of cells.

    use proptest::prelude::*;

    use super::*;
    use crate::cell::{CellType, KeyParts, Sequence, Timestamp};
    use crate::layout::ValueLayout;
    use crate::layout::tests as layout;

    /// A family of each encoding; columnar ones with and without a layout.
    fn families() -> [FamilyDescriptor; 4] {
        let family =
            |data_block_encoding, value_layout: ValueLayout, compression| FamilyDescriptor {
                data_block_encoding,
                value_layout: value_layout.into(),
                compression,
                ..FamilyDescriptor::new("f")
            };
        let none = ValueLayout::default();
        let some = layout::small();
        assert_eq!(some.check(), Ok(()));
        [
            family(DataBlockEncoding::Rows, none.clone(), Compression::Lz4),
            family(DataBlockEncoding::Columnar, none, Compression::None),
            family(DataBlockEncoding::Columnar, some.clone(), Compression::None),
            family(DataBlockEncoding::Columnar, some, Compression::Lz4),
        ]
    }

    type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

    fn key(row: &[u8], qualifier: &[u8], version: u64) -> Vec<u8> {
        let (timestamp, sequence) = (Timestamp(version as i64), Sequence(version));
        let cell_type = if version.is_multiple_of(5) { CellType::Delete } else { CellType::Put };
        let mut key = Vec::new();
        KeyParts { row, qualifier, timestamp, sequence, cell_type }.encode(&mut key);
        key
    }

    /// Keys with few different rows and columns, so that prefixes, ties and long columns occur.
    fn any_key() -> impl Strategy<Value = Vec<u8>> {
        let text = prop::collection::vec(prop_oneof![Just(0_u8), Just(b'a'), Just(0xff)], 0..4);
        let long = prop_oneof![4 => Just(0), 1 => Just(200)];
        (text.clone(), long, text, 0..30_u64).prop_map(|(mut row, long, qualifier, version)| {
            row.resize(row.len() + long, b'x');
            key(&row, &qualifier, version)
        })
    }

    fn any_pairs() -> impl Strategy<Value = Pairs> {
        prop::collection::vec((any_key(), layout::any_value()), 1..120).prop_map(|mut pairs| {
            pairs.sort_by(|a, b| compare_keys(&a.0, &b.0));
            pairs.dedup_by(|a, b| a.0 == b.0);
            pairs
        })
    }

    fn block_of(family: &FamilyDescriptor, pairs: &Pairs) -> Block {
        let mut builder = AnyBuilder::new(family);
        let mut raw = Vec::new();
        // The second block of a builder must be correct, too.
        for _ in 0..2 {
            raw.clear();
            pairs.iter().for_each(|(key, value)| builder.add(key, value));
            assert!(!builder.is_empty());
            builder.finish(&mut raw);
            assert!(builder.is_empty());
        }
        Block::new(encoding_code(family.data_block_encoding), &raw)
    }

    #[derive(Debug, Clone)]
    enum Move {
        First,
        Last,
        Advance,
        Walk(usize),
        Retreat,
        SkipColumn,
        Seek(Vec<u8>),
        SeekBefore(Vec<u8>),
    }

    fn any_move() -> impl Strategy<Value = Move> {
        prop_oneof![
            1 => Just(Move::First),
            1 => Just(Move::Last),
            6 => Just(Move::Advance),
            2 => (0..20_usize).prop_map(Move::Walk),
            6 => Just(Move::Retreat),
            3 => Just(Move::SkipColumn),
            3 => any_key().prop_map(Move::Seek),
            3 => any_key().prop_map(Move::SeekBefore),
        ]
    }

    fn model(pairs: &Pairs, at: Option<usize>, step: &Move) -> Option<usize> {
        let first_not_below =
            |key: &[u8]| pairs.partition_point(|pair| compare_keys(&pair.0, key).is_lt());
        let found = match step {
            Move::First => Some(0),
            Move::Last => Some(pairs.len() - 1),
            Move::Advance => at.map(|at| at + 1),
            Move::Walk(count) => at.map(|at| at + count),
            Move::Retreat => at.and_then(|at| at.checked_sub(1)),
            Move::SkipColumn => at.map(|at| {
                let column = column_of(&pairs[at].0);
                pairs.partition_point(|pair| column_of(&pair.0) <= column)
            }),
            Move::Seek(key) => Some(first_not_below(key)),
            Move::SeekBefore(key) => first_not_below(key).checked_sub(1),
        };
        found.filter(|&at| at < pairs.len())
    }

    proptest! {
        #![proptest_config(ProptestConfig { failure_persistence: None, ..Default::default() })]

        #[test]
        fn block_cursor_matches_list_model(
            pairs in any_pairs(),
            moves in prop::collection::vec(any_move(), 1..200),
        ) {
            for family in families() {
                let mut cursor = AnyCursor::default();
                let block = prepare(block_of(&family, &pairs), &KnownLayout::default()).unwrap();
                cursor.open(block).unwrap();
                prop_assert_eq!(cursor.key(), None);
                let mut at = None;
                for step in &moves {
                    let mut shown: Pairs = Vec::new();
                    match step {
                        Move::First => cursor.first(),
                        Move::Last => cursor.last(),
                        Move::Advance => cursor.advance(),
                        Move::Walk(count) => cursor.walk(&mut |parts, value| {
                            let goes_on = shown.len() < *count;
                            if goes_on {
                                let mut key = Vec::new();
                                parts.encode(&mut key);
                                shown.push((key, value.to_vec()));
                            }
                            goes_on
                        }),
                        Move::Retreat => cursor.retreat(),
                        Move::SkipColumn => cursor.skip_column(),
                        Move::Seek(key) => cursor.seek(key),
                        Move::SeekBefore(key) => cursor.seek_before(key),
                    }
                    .unwrap();
                    if let (Move::Walk(count), Some(at)) = (step, at) {
                        let end = pairs.len().min(at + count);
                        prop_assert_eq!(&shown[..], &pairs[at..end]);
                    }
                    cursor.open_value().unwrap();
                    at = model(&pairs, at, step);
                    let expected = at.map(|at| &pairs[at]);
                    prop_assert_eq!(cursor.key(), expected.map(|pair| &pair.0[..]), "{:?}", step);
                    prop_assert_eq!(cursor.value(), expected.map_or(&[][..], |pair| &pair.1));
                }
            }
        }

        #[test]
        fn block_cursor_does_not_panic_on_corrupt_bytes(
            pairs in any_pairs(),
            changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
            cut in any::<prop::sample::Index>(),
            moves in prop::collection::vec(any_move(), 1..50),
        ) {
            for family in families() {
                let good = block_of(&family, &pairs);
                let mut raw = good.bytes().to_vec();
                for (at, byte) in &changes {
                    let at = at.index(raw.len());
                    raw[at] = *byte;
                }
                if changes.len() == 1 {
                    raw.truncate(cut.index(raw.len()));
                }
                let mut cursor = AnyCursor::default();
                let block = prepare(Block::new(good.encoding(), &raw), &KnownLayout::default());
                let Ok(block) = block else { continue };
                if cursor.open(block).is_err() {
                    continue;
                }
                for step in &moves {
                    let _ = match step {
                        Move::First => cursor.first(),
                        Move::Last => cursor.last(),
                        Move::Advance => cursor.advance(),
                        Move::Walk(count) => {
                            let mut left = *count;
                            cursor.walk(&mut |_, _| {
                                left = left.saturating_sub(1);
                                left > 0
                            })
                        }
                        Move::Retreat => cursor.retreat(),
                        Move::SkipColumn => cursor.skip_column(),
                        Move::Seek(key) => cursor.seek(key),
                        Move::SeekBefore(key) => cursor.seek_before(key),
                    };
                    let _ = cursor.open_value();
                    let _ = (cursor.key().map(column_of), cursor.value().len());
                }
            }
        }
    }
}
