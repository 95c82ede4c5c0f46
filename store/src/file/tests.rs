//! Tests of store files as a whole: round trips, and detection of damage.

use std::path::Path;
use std::sync::Arc;

use super::*;
use crate::cache::{BlockCache, FamilyCache};
use crate::cell::{CellType, KeyParts, Sequence, Timestamp, row_of};
use crate::descriptor::{BloomFilter, Compression, DataBlockEncoding, FamilyDescriptor};
use crate::env::Env;
use crate::env::fault::FaultEnv;
use crate::error::{Error, Result};
use crate::layout::{SectionKind, ValueLayout, ValuePiece, ValueShape};
use crate::scan::merge::Cursor;

const PATH: &str = "/r1/f000-0000000001.store";

fn key(row: &str, qualifier: &str, version: u64, cell_type: CellType) -> Vec<u8> {
    let mut key = Vec::new();
    let parts = KeyParts {
        row: row.as_bytes(),
        qualifier: qualifier.as_bytes(),
        timestamp: Timestamp(version as i64 * 10),
        sequence: Sequence(version),
        cell_type,
    };
    parts.encode(&mut key);
    key
}

type Pairs = Vec<(Vec<u8>, Vec<u8>)>;

fn pairs(row_count: u64) -> Pairs {
    let mut pairs = Vec::new();
    for row in 0..row_count {
        let name = format!("row{row:05}");
        if row % 5 == 0 {
            pairs.push((key(&name, "", 9, CellType::DeleteFamily), Vec::new()));
        }
        for qualifier in ["a", "bb"] {
            for version in (1..=row % 3 + 1).rev() {
                let value = format!("value {row} {version}").repeat(row as usize % 4);
                pairs.push((key(&name, qualifier, version, CellType::Put), value.into_bytes()));
            }
        }
    }
    pairs
}

fn family(compression: Compression) -> FamilyDescriptor {
    FamilyDescriptor {
        compression,
        bloom_filter: BloomFilter::RowCol,
        block_bytes: 400,
        ..FamilyDescriptor::new("f")
    }
}

/// Families of both encodings, with and without compression.
fn families() -> [FamilyDescriptor; 6] {
    let shape = |prefix: &[u8], pieces: &[ValuePiece]| ValueShape {
        prefix: prefix.to_vec(),
        pieces: pieces.to_vec(),
    };
    let columnar = |compression| FamilyDescriptor {
        data_block_encoding: DataBlockEncoding::Columnar,
        value_layout: ValueLayout {
            sections: vec![SectionKind::Fixed(1), SectionKind::Variable],
            shapes: vec![shape(b"value ", &[ValuePiece::Fixed(0), ValuePiece::Rest(1)])],
        }
        .into(),
        ..family(compression)
    };
    [
        family(Compression::None),
        family(Compression::Lz4),
        columnar(Compression::None),
        columnar(Compression::Lz4),
        family(Compression::Zstd),
        columnar(Compression::Zstd),
    ]
}

fn write(env: &FaultEnv, pairs: &Pairs, family: &FamilyDescriptor) -> Option<FileProperties> {
    let mut writer = FileWriter::new(Arc::new(env.clone()), Path::new(PATH), family);
    for (key, value) in pairs {
        writer.add(key, value).unwrap();
    }
    writer.finish().unwrap()
}

fn open(env: &FaultEnv) -> Result<Arc<StoreFile>> {
    let cache = Arc::new(FamilyCache::new(Arc::new(BlockCache::new(1 << 20))));
    StoreFile::open(Arc::new(env.clone()), Path::new(PATH), cache).map(Arc::new)
}

fn read(mut cursor: FileCursor) -> Result<Pairs> {
    let mut pairs = Vec::new();
    while let Some(key) = cursor.key() {
        pairs.push((key.to_vec(), cursor.value().to_vec()));
        cursor.advance()?;
    }
    Ok(pairs)
}

#[test]
fn store_file_round_trips_in_both_directions() {
    for family in families() {
        let (env, pairs) = (FaultEnv::new(1), pairs(300));
        let properties = write(&env, &pairs, &family).unwrap();
        assert_eq!(properties.cell_count, pairs.len() as u64);
        assert_eq!(properties.marker_count(), 60);
        assert_eq!(properties.count_of(CellType::DeleteFamily), 60);
        assert_eq!(
            (&properties.first_row[..], &properties.last_row[..]),
            (&b"row00000"[..], &b"row00299"[..])
        );
        assert_eq!(
            (properties.min_timestamp, properties.max_timestamp),
            (Timestamp(10), Timestamp(90))
        );
        assert_eq!((properties.min_sequence, properties.max_sequence), (Sequence(1), Sequence(9)));
        let file = open(&env).unwrap();
        assert_eq!(*file.properties(), properties);
        let forward = FileCursor::forward(file.clone(), b"", Caching::Keep).unwrap();
        assert!(read(forward).unwrap() == pairs);
        for start in ["row00100", "row00100x", "row00299", "z"] {
            let expected: Pairs =
                pairs.iter().filter(|(key, _)| row_of(key) >= start.as_bytes()).cloned().collect();
            let cursor = FileCursor::forward(file.clone(), start.as_bytes(), Caching::Bypass);
            assert!(read(cursor.unwrap()).unwrap() == expected, "from {start}");
        }
        for stop in [None, Some("row00100"), Some("row00100x"), Some("row00000"), Some("a")] {
            let mut rows: Vec<Pairs> = Vec::new();
            for pair in &pairs {
                if stop.is_some_and(|stop| row_of(&pair.0) >= stop.as_bytes()) {
                    break;
                }
                match rows.last_mut() {
                    Some(last) if row_of(&last[0].0) == row_of(&pair.0) => last.push(pair.clone()),
                    _ => rows.push(vec![pair.clone()]),
                }
            }
            rows.reverse();
            let cursor =
                FileCursor::reverse(file.clone(), stop.map(str::as_bytes), Caching::Keep).unwrap();
            assert!(read(cursor).unwrap() == rows.concat(), "before {stop:?}");
        }
    }
}

/// Large enough for several levels of index blocks and for a sink on its own thread.
#[test]
fn large_files_have_multi_level_index() {
    let row = |n: u64| format!("table/{:08}", n * 3);
    for bytes in [90, 2000] {
        let env = FaultEnv::new(1);
        let pairs: Pairs = (0..80_000_u64)
            .map(|n| (key(&row(n), "q", 1, CellType::Put), n.to_string().repeat(12).into_bytes()))
            .collect();
        let family = FamilyDescriptor {
            block_bytes: bytes,
            bloom_filter: BloomFilter::Row,
            ..family(Compression::None)
        };
        let properties = write(&env, &pairs, &family).unwrap();
        assert_eq!(properties.row_count, 80_000);
        assert_eq!(properties.data_index.levels, if bytes == 90 { 3 } else { 2 });
        let file = open(&env).unwrap();
        assert!(file.byte_count() > 5 << 20);
        for caching in [Caching::Keep, Caching::Bypass] {
            let cursor = FileCursor::forward(file.clone(), b"", caching).unwrap();
            assert!(read(cursor).unwrap() == pairs);
            let cursor = FileCursor::reverse(file.clone(), None, caching).unwrap();
            let backwards: Pairs = pairs.iter().rev().cloned().collect();
            assert!(read(cursor).unwrap() == backwards);
        }
        let mut cursor = FileCursor::forward(file.clone(), b"", Caching::Keep).unwrap();
        for n in (0..80_000).step_by(701) {
            // Between rows, and on them.
            for target in [row(n), format!("{}x", row(n))] {
                let at = pairs.partition_point(|pair| row_of(&pair.0) < target.as_bytes());
                cursor.seek_row(target.as_bytes()).unwrap();
                assert_eq!(cursor.key(), pairs.get(at).map(|pair| &pair.0[..]), "at {target}");
                let cursor =
                    FileCursor::reverse(file.clone(), Some(target.as_bytes()), Caching::Keep);
                let before = at.checked_sub(1).map(|at| &pairs[at].0[..]);
                assert_eq!(cursor.unwrap().key(), before, "before {target}");
            }
            assert!(file.may_contain_row(row(n).as_bytes()).unwrap());
        }
    }
}

#[test]
fn bloom_filters_admit_existing_rows_and_columns() {
    let env = FaultEnv::new(1);
    write(&env, &pairs(300), &family(Compression::Lz4));
    let file = open(&env).unwrap();
    for row in 0..300 {
        let row = format!("row{row:05}");
        assert!(file.may_contain_row(row.as_bytes()).unwrap());
        assert!(file.may_contain_column(row.as_bytes(), b"bb").unwrap());
    }
    let wrong = |row: u64| file.may_contain_row(format!("row{row:05}x").as_bytes()).unwrap();
    assert!((0..299).filter(|&row| wrong(row)).count() < 20);
    let wrong =
        |row: u64| file.may_contain_column(format!("row{row:05}").as_bytes(), b"c").unwrap();
    assert!((0..300).filter(|&row| wrong(row)).count() < 20);
}

#[test]
fn large_cells_and_empty_files_are_handled() {
    let env = FaultEnv::new(1);
    assert_eq!(write(&env, &Vec::new(), &family(Compression::Lz4)), None);
    assert_eq!(env.bytes(Path::new(PATH)), None);
    let pairs = vec![
        (key("a", "q", 1, CellType::Put), vec![7; 5 << 20]),
        (key("b", "q", 1, CellType::Put), b"small".to_vec()),
    ];
    write(&env, &pairs, &family(Compression::Lz4));
    let cursor = FileCursor::forward(open(&env).unwrap(), b"", Caching::Keep).unwrap();
    assert!(read(cursor).unwrap() == pairs);
}

/// Reads all bytes of a file: properties, indexes, Bloom filters, blocks.
fn read_all(env: &FaultEnv, rows: &[String]) -> Result<(FileProperties, Pairs)> {
    let file = open(env)?;
    for row in rows {
        assert!(file.may_contain_row(row.as_bytes())?, "a bloom filter denies what is there");
    }
    let pairs = read(FileCursor::forward(file.clone(), b"", Caching::Keep)?)?;
    // For columnar blocks that are read in pieces the checksum of the whole is not verified.
    assert_eq!(read(FileCursor::forward(file.clone(), b"", Caching::Bypass)?)?, pairs);
    Ok((file.properties().clone(), pairs))
}

#[test]
fn corruption_of_any_byte_is_reported() {
    let [_, rows, _, columnar, ..] = families();
    check_corruption_is_reported(&rows);
    check_corruption_is_reported(&columnar);
}

fn check_corruption_is_reported(family: &FamilyDescriptor) {
    let (env, pairs) = (FaultEnv::new(1), pairs(20));
    let properties = write(&env, &pairs, family).unwrap();
    let good = env.bytes(Path::new(PATH)).unwrap();
    let rows: Vec<String> = (0..20).map(|row| format!("row{row:05}")).collect();
    let check = |bytes: Vec<u8>, what: &str| {
        env.place(Path::new(PATH), bytes);
        match read_all(&env, &rows) {
            Err(Error::Corrupt { path, .. }) => assert_eq!(path, Path::new(PATH)),
            Err(other) => panic!("{what}: {other}"),
            Ok(found) => panic!("{what}: not noticed, {}", found.1.len()),
        }
    };
    for position in 0..good.len() {
        let mut bytes = good.clone();
        bytes[position] ^= 1 << (position % 8);
        check(bytes, &format!("byte {position}"));
    }
    for length in 0..good.len() {
        check(good[..length].to_vec(), &format!("length {length}"));
    }
    check([&good[..], &[0]].concat(), "one byte more");
    env.place(Path::new(PATH), good);
    assert!(read_all(&env, &rows).unwrap() == (properties, pairs));
}

/// The example of `docs/formats/store-file.md`.
#[test]
fn documented_store_file_example_matches_writer() {
    let env = FaultEnv::new(1);
    let pairs = vec![(key("r", "q", 1, CellType::Put), b"v".to_vec())];
    let family = FamilyDescriptor {
        compression: Compression::None,
        bloom_filter: BloomFilter::None,
        ..FamilyDescriptor::new("f")
    };
    write(&env, &pairs, &family);
    let bytes = env.bytes(Path::new(PATH)).unwrap();
    let hex: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    let documented: String = include_str!("../../../docs/formats/store-file.md")
        .lines()
        .skip_while(|line| *line != "```hex")
        .skip(1)
        .take_while(|line| *line != "```")
        .flat_map(|line| line.split_once('|').map_or(line, |(hex, _)| hex).chars())
        .filter(|c| !c.is_whitespace())
        .collect();
    assert_eq!(hex, documented);
}

#[test]
fn obsolete_file_is_removed_after_last_reader() {
    let env = FaultEnv::new(1);
    write(&env, &pairs(20), &family(Compression::Lz4));
    let file = open(&env).unwrap();
    let cursor = FileCursor::forward(file.clone(), b"", Caching::Keep).unwrap();
    file.mark_obsolete();
    drop(file);
    assert!(env.bytes(Path::new(PATH)).is_some());
    assert_eq!(read(cursor).unwrap().len(), pairs(20).len());
    assert!(env.list(Path::new("/r1")).unwrap().is_empty());
}

/// A family whose blocks have sections in the front, behind it, and in chunks.
fn large_blocks(compression: Compression) -> FamilyDescriptor {
    let sections = [SectionKind::Fixed(4); 8].into_iter().chain([SectionKind::Fixed(16)]);
    let fixed = (0..9).map(ValuePiece::Fixed).chain([ValuePiece::Rest(9)]);
    FamilyDescriptor {
        compression,
        block_bytes: 64 << 10,
        data_block_encoding: DataBlockEncoding::Columnar,
        value_layout: ValueLayout {
            sections: sections.chain([SectionKind::Variable]).collect(),
            shapes: vec![ValueShape { prefix: vec![1], pieces: fixed.collect() }],
        }
        .into(),
        ..FamilyDescriptor::new("f")
    }
}

/// Rows with incompressible numbers and texts of any length; few are stored whole.
fn large_rows(row_count: u64) -> Pairs {
    let mut state = 1_u64;
    let mut noise = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
        (state >> 32) as u32
    };
    let value = |row: u64| {
        if row % 97 == 5 {
            return vec![9; 300];
        }
        let mut value = vec![1];
        (0..12).for_each(|_| value.extend_from_slice(&noise().to_le_bytes()));
        let length = if row % 50 == 7 { 9000 } else { noise() % 200 };
        value.extend((0..length).map(|at| (at % 7 * 31 + noise() % 2) as u8));
        value
    };
    let mut value = value;
    (0..row_count)
        .map(|row| (key(&format!("row{row:05}"), "", 1, CellType::Put), value(row)))
        .collect()
}

#[test]
fn rows_are_read_by_block_piece() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let (env, pairs) = (FaultEnv::new(1), large_rows(2000));
        write(&env, &pairs, &large_blocks(compression)).unwrap();
        let file = open(&env).unwrap();
        for (key, value) in pairs.iter().rev().step_by(3) {
            let cursor = FileCursor::at_row(&*file, row_of(key), None).unwrap();
            assert_eq!((cursor.key(), cursor.value()), (Some(&key[..]), &value[..]));
        }
        for caching in [Caching::Bypass, Caching::Keep] {
            let forward = FileCursor::forward(file.clone(), b"", caching).unwrap();
            assert!(read(forward).unwrap() == pairs);
            let reverse = FileCursor::reverse(file.clone(), None, caching).unwrap();
            assert!(read(reverse).unwrap().iter().rev().eq(&pairs));
        }
    }
}

#[test]
fn columns_are_read_by_block_piece() {
    for compression in [Compression::None, Compression::Lz4, Compression::Zstd] {
        let (env, mut pairs) = (FaultEnv::new(1), large_rows(2000));
        // Blocks with values that are stored whole cannot be read by column.
        pairs.retain(|(_, value)| value[0] == 1);
        write(&env, &pairs, &large_blocks(compression)).unwrap();
        check_column_reads(&open(&env).unwrap(), &pairs, usize::MAX);
        // Few rows of a block at a time.
        check_column_reads(&open(&env).unwrap(), &pairs, 11);
    }
}

fn check_column_reads(file: &Arc<StoreFile>, pairs: &Pairs, row_limit: usize) {
    let mut cursor = FileCursor::forward(file.clone(), b"", Caching::Keep).unwrap();
    let wanted = WantedColumns { stop: None, row_limit, sees_all: &|_| true };
    let mut rows = pairs.iter();
    while let Some(slice) = cursor.take_columns(&wanted).unwrap() {
        let (wide, texts) = (slice.fixed(8).unwrap(), slice.variable(9).unwrap());
        let mut ends = Vec::new();
        let all = texts.all(&mut ends).unwrap();
        for row in 0..slice.row_count() {
            let value = &rows.next().unwrap().1;
            assert_eq!(&wide[row * 16..][..16], &value[33..49]);
            assert_eq!(texts.get(row).unwrap(), &value[49..]);
            assert!(all[..ends[row] as usize].ends_with(&value[49..]));
            let mut whole = Vec::new();
            slice.append_value(row, &mut whole).unwrap();
            assert_eq!(&whole, value);
        }
    }
    assert_eq!((rows.next(), cursor.key()), (None, None));
}

#[test]
fn adopted_file_columns_have_assigned_sequence() {
    let (env, mut pairs) = (FaultEnv::new(1), large_rows(500));
    pairs.retain(|(_, value)| value[0] == 1);
    write(&env, &pairs, &large_blocks(Compression::Lz4)).unwrap();
    let file = Arc::into_inner(open(&env).unwrap()).unwrap().adopted_at(Sequence(77));
    let file = Arc::new(file);
    check_column_reads(&file, &pairs, usize::MAX);
    check_column_reads(&file, &pairs, 11);
    let mut cursor = FileCursor::forward(file.clone(), b"", Caching::Keep).unwrap();
    let before = |span: &Span| span.max_sequence < Sequence(77);
    let wanted = WantedColumns { stop: None, row_limit: 11, sees_all: &before };
    assert!(cursor.take_columns(&wanted).unwrap().is_none(), "a snapshot from before");
    let wanted = WantedColumns { sees_all: &|span| !before(span), ..wanted };
    let slice = cursor.take_columns(&wanted).unwrap().unwrap();
    assert!(slice.sequences().unwrap().all(|sequence| sequence == Sequence(77)));
    let next = KeyParts::decode(cursor.key().unwrap()).unwrap();
    assert_eq!(next.sequence, Sequence(77), "the cell behind the slice");
}

/// A get reads some of the bytes; damage in those is reported, and no wrong row is returned.
#[test]
fn corrupt_block_piece_is_reported_by_its_readers() {
    let (env, pairs) = (FaultEnv::new(1), large_rows(400));
    write(&env, &pairs, &large_blocks(Compression::Lz4)).unwrap();
    let good = env.bytes(Path::new(PATH)).unwrap();
    let mut reported = 0;
    for position in (0..good.len() / 2).step_by(101) {
        let mut bytes = good.clone();
        bytes[position] ^= 1 << (position % 8);
        env.place(Path::new(PATH), bytes);
        let file = open(&env).unwrap();
        for (key, value) in pairs.iter().step_by(7) {
            match FileCursor::at_row(&*file, row_of(key), None) {
                Ok(cursor) => assert_eq!(cursor.value(), &value[..]),
                Err(Error::Corrupt { .. }) => reported += 1,
                Err(other) => panic!("byte {position}: {other}"),
            }
        }
    }
    assert!(reported > 400, "{reported}");
}
