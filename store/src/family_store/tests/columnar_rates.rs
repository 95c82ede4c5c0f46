//! Benchmark of columnar blocks against row blocks. Prints measurements: `ROWS=5000000 cargo test
//! --release -p bennu-store --lib columnar_rates -- --ignored --nocapture`.

use super::*;
use crate::file::FileWriter;
use crate::layout::EndWidth;

/// Values of about 100 bytes: a header, eight numbers of 8 bytes, two texts.
fn layout() -> ValueLayout {
    let mut sections = vec![SectionKind::Fixed(8); 8];
    sections.extend([SectionKind::Variable; 2]);
    let mut pieces: Vec<ValuePiece> = (0..8).map(ValuePiece::Fixed).collect();
    pieces.push(ValuePiece::Variable { ends: EndWidth::Two, sections: vec![8, 9] });
    ValueLayout { sections, shapes: vec![ValueShape { prefix: HEADER.to_vec(), pieces }] }
}

/// Gets per round.
const GETS: u64 = 500_000;
/// Sums per round: the system measures the CPU time of a thread in steps of some milliseconds.
const SUMS: u64 = 25;

const HEADER: [u8; 5] = [0x11, 1, 10, 64, 2];

fn value(n: u64, out: &mut Vec<u8>) {
    out.clear();
    out.extend_from_slice(&HEADER);
    let mix = n.wrapping_mul(0x9e37_79b9_7f4a_7c15);
    for column in 0..8 {
        let number = match column {
            0 => n,
            1 => mix % 10_000,
            2 => mix % 100,
            _ => (mix >> (column * 7)) % (1 << (column * 4)),
        };
        out.extend_from_slice(&number.to_le_bytes());
    }
    let texts = [format!("city {:06}", mix % 5000), format!("note {:08x}", mix >> 40)];
    out.extend_from_slice(&(texts[0].len() as u16).to_le_bytes());
    out.extend_from_slice(&((texts[0].len() + texts[1].len()) as u16).to_le_bytes());
    texts.iter().for_each(|text| out.extend_from_slice(text.as_bytes()));
}

fn key(n: u64) -> Vec<u8> {
    let mut key = Vec::new();
    let parts = KeyParts {
        row: &n.to_be_bytes(),
        qualifier: b"",
        timestamp: Timestamp(1000 + n as i64),
        sequence: Sequence(n / 1000 + 1),
        cell_type: CellType::Put,
    };
    parts.encode(&mut key);
    key
}

fn number(bytes: &[u8]) -> u64 {
    bytes.first_chunk().map_or(0, |bytes| u64::from_le_bytes(*bytes))
}

fn column_sum(column: &[u8]) -> u64 {
    let (numbers, _) = column.as_chunks::<8>();
    numbers.iter().fold(0, |sum, number| sum.wrapping_add(u64::from_le_bytes(*number)))
}

struct Figures {
    view: Arc<ReadView>,
    spec: ReadSpec,
    count: u64,
}

impl Figures {
    fn sum_rows(&self) -> u64 {
        let mut scanner = scanner_of(&self.view, &self.spec, None, (b"", None), false);
        let (mut batch, mut sum) = (CellBatch::new(), 0_u64);
        loop {
            batch.clear();
            while batch.row_count() < 1024 && append_row(&mut scanner, &mut batch) {}
            if batch.is_empty() {
                return sum;
            }
            for row in batch.rows() {
                let value = row.value(0, b"").unwrap();
                sum = sum.wrapping_add(number(&value[13..])).wrapping_add(number(&value[37..]));
            }
        }
    }

    fn sum_columns(&self) -> u64 {
        let mut scanner = scanner_of(&self.view, &self.spec, None, (b"", None), false);
        let mut sum = 0_u64;
        while let Some(slice) = scanner.take_columns(usize::MAX).unwrap() {
            for section in [1, 4] {
                sum = sum.wrapping_add(column_sum(slice.fixed(section).unwrap()));
            }
        }
        assert!(scanner.next_row().unwrap().is_none());
        sum
    }

    fn get_some(&self, gets: u64) {
        let mut batch = CellBatch::new();
        for n in 0..gets {
            let row = (n.wrapping_mul(0x9e37_79b9_7f4a_7c15) % self.count).to_be_bytes();
            batch.clear();
            batch.start_row(&row);
            let mut output = RowOutput { filter: None, batch: &mut batch, room: u32::MAX };
            let rules = FamilyRules::of_all_columns(self.spec);
            self.view.get(&row, rules, None, &mut output).unwrap();
            assert_eq!(batch.cell_count(), 1);
        }
    }
}

/// CPU time of this thread in nanoseconds, unaffected by others on the machine.
fn ran_nanos() -> u64 {
    let schedstat = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap();
    schedstat.split(' ').next().unwrap().parse().unwrap()
}

fn measure(what: &str, count: u64, mut work: impl FnMut()) {
    if std::env::var("ONLY").is_ok_and(|only| !what.contains(&only)) {
        return;
    }
    let start = ran_nanos();
    work();
    tell(what, count, start);
}

fn tell(what: &str, count: u64, start: u64) {
    let each = (ran_nanos() - start) as f64 / count as f64;
    println!("{what}: {:.2} M/s, {each:.1} ns each", 1e3 / each);
}

#[test]
#[ignore = "measures, proves nothing"]
fn columnar_rates() {
    let count: u64 = std::env::var("ROWS").map_or(1_000_000, |rows| rows.parse().unwrap());
    let directory = tempfile::tempdir().unwrap();
    let mut all = Vec::new();
    for encoding in [DataBlockEncoding::Rows, DataBlockEncoding::Columnar] {
        for compression in [Compression::None, Compression::Lz4] {
            let family = FamilyDescriptor {
                data_block_encoding: encoding,
                compression,
                value_layout: layout().into(),
                block_bytes: encoding.default_block_bytes(),
                ..FamilyDescriptor::new("f")
            };
            let name = format!("{encoding:?} {compression:?}");
            let options = Options::default();
            let path = directory.path().join(&name);
            options.env.create_directory(&path).unwrap();
            let file = path.join("f000-0000000001.store");
            let mut writer = FileWriter::new(options.env.clone(), &file, &family);
            let mut bytes = Vec::new();
            let start = ran_nanos();
            for n in 0..count {
                value(n, &mut bytes);
                writer.add(&key(n), &bytes).unwrap();
            }
            tell(&format!("{name} write"), count, start);
            writer.finish().unwrap();
            println!("{name} bytes a row: {}", std::fs::metadata(&file).unwrap().len() / count);
            let cache = Arc::new(BlockCache::new(4 << 30));
            let context = Arc::new(StoreContext { options, cache, database: DatabaseId(1) });
            let family = Arc::new(family);
            let store = FamilyStore::open(
                context,
                place(path),
                (0, family),
                (RowRange::default(), Partitioning::Row),
                &[FileRecord::alone(FileId(1), 0)],
            );
            let store = store.unwrap();
            let spec = ReadSpec {
                snapshot: Sequence(u64::MAX >> 1),
                staged_through: Sequence(0),
                time_range: TimeRange::ALL,
                max_versions: 1,
                raw: false,
                now_micros: NOW,
            };
            all.push((name, encoding, Figures { view: store.view(), spec, count }));
        }
    }
    let expected = all[0].2.sum_rows();
    let rounds = std::env::var("ROUNDS").map_or(3, |rounds| rounds.parse().unwrap());
    for round in 0..rounds {
        println!("round {round}");
        for (name, encoding, figures) in &all {
            measure(&format!("{name} rows"), count, || {
                assert_eq!(figures.sum_rows(), expected);
            });
            if *encoding == DataBlockEncoding::Columnar {
                measure(&format!("{name} columns"), count * SUMS, || {
                    for _ in 0..SUMS {
                        assert_eq!(figures.sum_columns(), expected);
                    }
                });
            }
            measure(&format!("{name} gets"), GETS, || figures.get_some(GETS));
        }
    }
}
