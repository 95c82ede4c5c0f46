//! Property test of scans in both directions at old snapshots, while loads replace rows and
//! compactions keep several versions of them.

use proptest::prelude::*;
use store::env::fault::FaultEnv;
use store::{FamilyDescriptor, Mutation, TableDescriptor};

use crate::cases::{Rows, TABLE, begin, check_scans, columnar_family, descriptor, load_rows, open};

#[derive(Debug, Clone)]
enum Step {
    Put(u8, u16),
    Delete(u8),
    Load(Vec<u8>),
    Flush,
    MajorCompact,
    OpenReader,
}

fn steps() -> impl Strategy<Value = Vec<Step>> {
    let step = prop_oneof![
        6 => (0..12u8, any::<u16>()).prop_map(|(row, value)| Step::Put(row, value)),
        1 => (0..12u8).prop_map(Step::Delete),
        2 => prop::collection::vec(0..12u8, 1..8).prop_map(Step::Load),
        2 => Just(Step::Flush),
        2 => Just(Step::MajorCompact),
        2 => Just(Step::OpenReader),
    ];
    prop::collection::vec(step, 1..30)
}

fn key(row: u8) -> Vec<u8> {
    format!("r{row:02}").into_bytes()
}

fn run(steps: Vec<Step>, columnar: bool) {
    let env = FaultEnv::new(1);
    let store = open(&env).unwrap();
    let family = if columnar { columnar_family() } else { FamilyDescriptor::new("d") };
    store.create_table(TableDescriptor { families: vec![family], ..descriptor(&[], 1) }).unwrap();
    let commit = |mutation| {
        let transaction = begin(&store);
        transaction.mutate(TABLE, vec![mutation]).unwrap();
        transaction.commit().unwrap().durable.wait().unwrap();
    };
    let (mut rows, mut readers) = (Rows::new(), Vec::new());
    for step in steps {
        match step {
            Step::Put(row, value) => {
                let value = value.to_string().into_bytes();
                commit(Mutation::new(key(row)).put(0, "q", value.clone()));
                rows.insert(key(row), value);
            }
            Step::Delete(row) => {
                commit(Mutation::new(key(row)).delete_row());
                rows.remove(&key(row));
            }
            Step::Load(numbers) => {
                let loaded: Rows =
                    numbers.into_iter().map(|row| (key(row), b"loaded".to_vec())).collect();
                load_rows(&store, TABLE, &loaded);
                rows.extend(loaded);
            }
            Step::Flush => store.flush(TABLE).unwrap(),
            Step::MajorCompact => store.compact(TABLE, true).unwrap(),
            Step::OpenReader => readers.push((begin(&store), rows.clone())),
        }
        check_scans(&begin(&store), TABLE, &rows);
        readers.iter().for_each(|(reader, rows)| check_scans(reader, TABLE, rows));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, ..ProptestConfig::default() })]

    #[test]
    fn scans_in_both_directions_agree_at_old_snapshots(steps in steps(), columnar: bool) {
        run(steps, columnar);
    }
}

/// The versions of row 5 are in two blocks: the older one is the only one that the reader sees.
#[test]
fn row_in_two_blocks_is_read_in_reverse() {
    run(
        vec![
            Step::Load(vec![5, 1, 4]),
            Step::Put(0, 29639),
            Step::OpenReader,
            Step::Load(vec![5, 3, 8, 6, 11, 7, 11]),
            Step::MajorCompact,
        ],
        true,
    );
}
