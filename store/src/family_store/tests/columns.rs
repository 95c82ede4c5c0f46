//! Tests of scans that take columns where no row is hidden or changed, and read rows elsewhere;
//! either way the result is that of a scan of rows.

use super::*;

fn family() -> FamilyDescriptor {
    FamilyDescriptor {
        data_block_encoding: DataBlockEncoding::Columnar,
        value_layout: ValueLayout {
            sections: vec![SectionKind::Variable],
            shapes: vec![ValueShape { prefix: vec![], pieces: vec![ValuePiece::Rest(0)] }],
        }
        .into(),
        versions: 3,
        // About ten cells.
        block_bytes: 300,
        ..FamilyDescriptor::new("f")
    }
}

fn at(row: u64, qualifier: u8, sequence: u64, cell_type: CellType) -> Cell {
    let row = format!("row{row:03}").into_bytes();
    Cell { row, ..cell(0, qualifier, sequence as i64, sequence, cell_type) }
}

fn spec(snapshot: u64) -> ReadSpec {
    ReadSpec {
        snapshot: Sequence(snapshot),
        staged_through: Sequence(0),
        time_range: TimeRange::ALL,
        max_versions: 1,
        raw: false,
        now_micros: NOW,
    }
}

/// Returns the numbers of rows returned as columns and as rows.
fn counts(store: &FamilyStore, spec: &ReadSpec) -> (usize, usize) {
    let view = store.view();
    let rows = scan(&view, spec, None, (b"", None), false);
    assert_eq!(scan_columns(&view, spec, None, (b"", None), 7), rows);
    let part = (&b"row013"[..], Some(&b"row057"[..]));
    assert_eq!(scan_columns(&view, spec, None, part, 100), scan(&view, spec, None, part, false));
    let mut scanner = scanner_of(&view, spec, None, (b"", None), false);
    let (mut batch, mut columns, mut others) = (CellBatch::new(), Vec::new(), 0);
    loop {
        if let Some(slice) = scanner.take_columns(100).unwrap() {
            take_slice(&slice, &mut columns);
        } else if append_row(&mut scanner, &mut batch) {
            others += 1;
        } else {
            return (columns.len(), others);
        }
    }
}

/// Returns how many of a hundred gets and a few of absent rows need no merge.
fn plain_gets(store: &FamilyStore, spec: &ReadSpec) -> usize {
    let view = store.view();
    let is_plain = |row: &u64| {
        let row = format!("row{row:03}").into_bytes();
        check_plain(&view, (&row, &get(&view, &row, spec, None)), spec, None)
    };
    (0..110).filter(is_plain).count()
}

/// A hundred rows in one file, the commit of each after that of the previous one.
fn hundred(family: &FamilyDescriptor) -> (FaultEnv, FamilyStore) {
    let env = FaultEnv::new(1);
    let store = open(&env, family, &[]);
    for row in 0..100 {
        store.apply(&[at(row, 0, row + 1, CellType::Put)]);
    }
    flush(&store, 100, 0);
    (env, store)
}

#[test]
fn unmodified_rows_are_read_as_columns() {
    let (_env, store) = hundred(&family());
    assert_eq!(counts(&store, &spec(100)), (100, 0));
    // Not the last rows of blocks.
    assert!((80..110).contains(&plain_gets(&store, &spec(100))));
    // No cell of the file is visible.
    assert_eq!(plain_gets(&store, &spec(0)), 110);
    store.apply(&[at(50, 0, 101, CellType::Put), at(10, 0, 102, CellType::DeleteFamily)]);
    assert_eq!(counts(&store, &spec(100)), (98, 2));
    // Row 10 is hidden; the next row is found instead.
    assert_eq!(counts(&store, &spec(102)), (97, 2));
    flush(&store, 102, 102);
    assert_eq!(counts(&store, &spec(102)), (97, 2));
    compact(&store, true, 102);
    let (columns, rows) = counts(&store, &spec(102));
    assert_eq!(columns + rows, 99);
    let plain = plain_gets(&store, &spec(102));
    assert!((70..100).contains(&plain), "{plain}");
    // The block of row 50 has two versions of it.
    assert!((5..20).contains(&rows), "{rows}");
}

#[test]
fn blocks_with_invisible_cells_are_read_by_row() {
    let (_env, store) = hundred(&family());
    let (columns, rows) = counts(&store, &spec(55));
    assert_eq!(columns + rows, 55);
    assert!((40..55).contains(&columns), "{columns}");
    let plain = plain_gets(&store, &spec(55));
    assert!((40..65).contains(&plain), "{plain}");
    let range = TimeRange::new(Timestamp(20), Timestamp(81));
    let (columns, rows) = counts(&store, &ReadSpec { time_range: range, ..spec(100) });
    assert_eq!(columns + rows, 61);
    assert!((40..61).contains(&columns), "{columns}");
    assert_eq!(counts(&store, &ReadSpec { max_versions: 0, ..spec(100) }), (0, 0));
    // Half of it has expired.
    let expiring =
        FamilyDescriptor { ttl: Some(Duration::from_micros(NOW as u64 - 50)), ..family() };
    let (_env, store) = hundred(&expiring);
    let (columns, rows) = counts(&store, &spec(100));
    assert_eq!(columns + rows, 51);
    assert!((35..51).contains(&columns), "{columns}");
    // Blocks keep the layout that they were written with until they are rewritten.
    let (_env, store) = hundred(&family());
    store.set_family(Arc::new(FamilyDescriptor { value_layout: Arc::default(), ..family() }));
    assert_eq!(counts(&store, &spec(100)), (100, 0));
}

#[test]
fn row_spanning_two_blocks_is_read_by_row() {
    let env = FaultEnv::new(1);
    let store = open(&env, &family(), &[]);
    store.apply(&(0..5).map(|row| at(row, 0, 1, CellType::Put)).collect::<Vec<_>>());
    let large = Cell { value: vec![b'x'; 400], ..at(4, 1, 1, CellType::Put) };
    store.apply(&[large, at(5, 0, 1, CellType::Put), at(6, 0, 1, CellType::Put)]);
    flush(&store, 1, 0);
    assert_eq!(counts(&store, &spec(1)), (6, 1));
    let row = b"row004";
    let merged = get(&store.view(), row, &spec(1), None);
    assert_eq!(merged.cell_count(), 2);
    assert!(!check_plain(&store.view(), (row, &merged), &spec(1), None));
}
