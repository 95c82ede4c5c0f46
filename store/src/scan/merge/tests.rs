//! Property tests: every cursor moves like one over a plain list of cells.

use std::path::Path;
use std::sync::Arc;

use proptest::prelude::*;

use super::*;
use crate::cache::{BlockCache, FamilyCache};
use crate::cell::{CellType, KeyParts, Sequence, Timestamp};
use crate::descriptor::FamilyDescriptor;
use crate::env::fault::FaultEnv;
use crate::file::{Caching, FileCursor, FileWriter, StoreFile};
use crate::memstore::{Memstore, MemstoreCursor};

/// A cursor over keys in the order in which a merge yields them.
struct Listed {
    keys: Vec<Vec<u8>>,
    position: usize,
    order: RowOrder,
}

impl Listed {
    fn new(mut keys: Vec<Vec<u8>>, order: RowOrder) -> Listed {
        keys.sort_by(|a, b| order.compare(a, b));
        Listed { keys, position: 0, order }
    }

    fn skip_while(&mut self, behind: impl Fn(&[u8]) -> bool) {
        while self.key().is_some_and(&behind) {
            self.position += 1;
        }
    }
}

impl Cursor for Listed {
    fn key(&self) -> Option<&[u8]> {
        self.keys.get(self.position).map(Vec::as_slice)
    }

    fn value(&self) -> &[u8] {
        &[]
    }

    fn advance(&mut self) -> Result<()> {
        self.position = self.keys.len().min(self.position + 1);
        Ok(())
    }

    fn skip_column(&mut self) -> Result<()> {
        let Some(key) = self.key().map(<[u8]>::to_vec) else { return Ok(()) };
        self.skip_while(|other| column_of(other) == column_of(&key));
        Ok(())
    }

    fn seek_column(&mut self, qualifier: &[u8]) -> Result<()> {
        let Some(row) = self.key().map(|key| row_of(key).to_vec()) else { return Ok(()) };
        self.skip_while(|key| row_of(key) == row && column_of(key).1 < qualifier);
        Ok(())
    }

    fn skip_row(&mut self) -> Result<()> {
        let Some(row) = self.key().map(|key| row_of(key).to_vec()) else { return Ok(()) };
        self.skip_while(|key| row_of(key) == row);
        Ok(())
    }

    fn seek_row(&mut self, row: &[u8]) -> Result<()> {
        let order = self.order;
        self.skip_while(|key| match order {
            RowOrder::Forward => row_of(key) < row,
            RowOrder::Reverse => row_of(key) >= row,
        });
        Ok(())
    }
}

/// The sources of the store, and one that is opened lazily.
#[expect(clippy::large_enum_variant, reason = "few are made")]
enum Tested {
    Memory(MemstoreCursor<Arc<Memstore>>),
    File(FileCursor),
    Late { bound: Option<Vec<u8>>, listed: Listed },
}

impl Tested {
    fn inner(&self) -> &dyn Cursor {
        match self {
            Tested::Memory(cursor) => cursor,
            Tested::File(cursor) => cursor,
            Tested::Late { listed, .. } => listed,
        }
    }

    fn inner_mut(&mut self) -> &mut dyn Cursor {
        match self {
            Tested::Memory(cursor) => cursor,
            Tested::File(cursor) => cursor,
            Tested::Late { bound, listed } => {
                assert!(bound.is_none(), "moved before it was opened");
                listed
            }
        }
    }
}

impl Cursor for Tested {
    fn key(&self) -> Option<&[u8]> {
        match self {
            Tested::Late { bound: Some(bound), .. } => Some(bound),
            other => other.inner().key(),
        }
    }

    fn value(&self) -> &[u8] {
        self.inner().value()
    }

    fn advance(&mut self) -> Result<()> {
        self.inner_mut().advance()
    }

    fn walk(&mut self, show: &mut impl FnMut(KeyParts<'_>, &[u8]) -> bool) -> Result<()> {
        match self {
            Tested::Memory(cursor) => cursor.walk(show),
            Tested::File(cursor) => cursor.walk(show),
            Tested::Late { listed, .. } => listed.walk(show),
        }
    }

    fn skip_column(&mut self) -> Result<()> {
        self.inner_mut().skip_column()
    }

    fn seek_column(&mut self, qualifier: &[u8]) -> Result<()> {
        self.inner_mut().seek_column(qualifier)
    }

    fn skip_row(&mut self) -> Result<()> {
        self.inner_mut().skip_row()
    }

    fn seek_row(&mut self, row: &[u8]) -> Result<()> {
        self.inner_mut().seek_row(row)
    }

    fn open(&mut self) -> Result<bool> {
        match self {
            Tested::Late { bound, .. } => Ok(bound.take().is_some()),
            _ => Ok(false),
        }
    }
}

type Spot = (u8, u8, u8);

fn text(number: u8, digits: usize) -> Vec<u8> {
    format!("{number:0digits$}").into_bytes()
}

/// Returns rows of different lengths, some a prefix of others.
fn row(number: u8) -> Vec<u8> {
    let mut row = b"row".to_vec();
    row.extend(text(number / 3, 3));
    row.extend(std::iter::repeat_n(b'-', usize::from(number % 3) * 8));
    row
}

fn key(spot: &Spot) -> Vec<u8> {
    let (row, qualifier) = (row(spot.0), if spot.1 == 0 { Vec::new() } else { text(spot.1, 2) });
    let mut key = Vec::new();
    let version = u64::from(spot.2) + 1;
    let (timestamp, sequence) = (Timestamp(version as i64), Sequence(version));
    let cell_type = CellType::Put;
    KeyParts { row: &row, qualifier: &qualifier, timestamp, sequence, cell_type }.encode(&mut key);
    key
}

#[derive(Debug, Clone)]
enum Move {
    Advance,
    Walk(usize),
    SkipColumn,
    SeekColumn(u8),
    SkipRow,
    SeekRow(u8),
}

fn moves() -> impl Strategy<Value = Vec<Move>> {
    let one = prop_oneof![
        4 => Just(Move::Advance),
        4 => (0..40_usize).prop_map(Move::Walk),
        2 => Just(Move::SkipColumn),
        2 => (0..40u8).prop_map(Move::SeekColumn),
        1 => Just(Move::SkipRow),
        1 => (0..40u8).prop_map(Move::SeekRow),
    ];
    prop::collection::vec(one, 1..60)
}

/// Moves a cursor, and returns the keys that a walk passes.
fn go(cursor: &mut impl Cursor, step: &Move) -> Vec<Vec<u8>> {
    let mut shown = Vec::new();
    match step {
        Move::Advance => cursor.advance(),
        Move::Walk(count) => cursor.walk(&mut |parts, _| {
            let goes_on = shown.len() < *count;
            if goes_on {
                let mut key = Vec::new();
                parts.encode(&mut key);
                shown.push(key);
            }
            goes_on
        }),
        Move::SkipColumn => cursor.skip_column(),
        Move::SeekColumn(number) => cursor.seek_column(&text(*number, 2)),
        Move::SkipRow => cursor.skip_row(),
        Move::SeekRow(number) => cursor.seek_row(&row(*number)),
    }
    .unwrap();
    shown
}

fn sources(parts: &[Vec<Vec<u8>>; 3], order: RowOrder) -> SmallVec<[Tested; 1]> {
    let memstore = Arc::new(Memstore::new());
    for key in &parts[0] {
        memstore.insert(&KeyParts::decode(key).unwrap(), b"v");
    }
    let memory = match order {
        RowOrder::Forward => MemstoreCursor::forward(memstore, b""),
        RowOrder::Reverse => MemstoreCursor::reverse(memstore, None),
    };
    let mut sources: SmallVec<[Tested; 1]> = SmallVec::new();
    sources.push(Tested::Memory(memory));
    let (env, path) = (Arc::new(FaultEnv::new(1)), Path::new("/f"));
    let family = FamilyDescriptor { block_bytes: 300, ..FamilyDescriptor::new("f") };
    let mut writer = FileWriter::new(env.clone(), path, &family);
    parts[1].iter().for_each(|key| writer.add(key, b"v").unwrap());
    if writer.finish().unwrap().is_some() {
        let file = StoreFile::open(
            env,
            path,
            Arc::new(FamilyCache::new(Arc::new(BlockCache::new(1 << 20)))),
        )
        .map(Arc::new);
        sources.push(Tested::File(match order {
            RowOrder::Forward => FileCursor::forward(file.unwrap(), b"", Caching::Keep).unwrap(),
            RowOrder::Reverse => FileCursor::reverse(file.unwrap(), None, Caching::Keep).unwrap(),
        }));
    }
    let listed = Listed::new(parts[2].clone(), order);
    let bound = listed.key().map(|key| crate::cell::row_start_key(row_of(key)).to_vec());
    sources.push(Tested::Late { bound, listed });
    sources
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn merged_cursor_matches_list_model(
        spots in prop::collection::btree_map((0..40u8, 0..24u8, 0..6u8), 0..3usize, 0..200),
        moves in moves(),
        reverse in any::<bool>(),
    ) {
        let order = if reverse { RowOrder::Reverse } else { RowOrder::Forward };
        let mut parts: [Vec<Vec<u8>>; 3] = Default::default();
        spots.iter().for_each(|(spot, part)| parts[*part].push(key(spot)));
        parts.iter_mut().for_each(|part| part.sort_by(|a, b| compare_keys(a, b)));
        let mut merge = Merge::new(sources(&parts, order), order).unwrap();
        let mut listed = Listed::new(parts.concat(), order);
        for step in &moves {
            prop_assert_eq!(merge.key(), listed.key());
            prop_assert_eq!(go(&mut merge, step), go(&mut listed, step), "{:?}", step);
        }
        prop_assert_eq!(merge.key(), listed.key());
    }
}
