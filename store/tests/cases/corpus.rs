//! Regression tests on the corpus of the fuzz targets.

use std::path::{Path, PathBuf};

use store::fuzzing;

fn directory(target: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../fuzz/corpus").join(target)
}

#[test]
fn fuzz_corpus_and_current_formats_are_readable() {
    let seeds = fuzzing::seeds();
    if std::env::var_os("BENNU_REGOLD").is_some() {
        for (number, (target, bytes)) in seeds.iter().enumerate() {
            std::fs::create_dir_all(directory(target)).unwrap();
            std::fs::write(directory(target).join(format!("seed-{number:02}")), bytes).unwrap();
        }
    }
    for (target, door) in fuzzing::ENTRY_POINTS {
        let own: Vec<&[u8]> =
            seeds.iter().filter(|(name, _)| *name == target).map(|(_, seed)| &seed[..]).collect();
        assert!(!own.is_empty(), "{target} has no seed");
        for seed in &own {
            door(seed);
            // Truncated and with a bit flipped, at several offsets.
            for place in (0..seed.len()).step_by(seed.len() / 40 + 1) {
                door(&seed[..place]);
                let mut flipped = seed.to_vec();
                flipped[place] ^= 1 << (place % 8);
                door(&flipped);
            }
        }
        let inputs = std::fs::read_dir(directory(target)).unwrap();
        let count =
            inputs.map(|input| door(&std::fs::read(input.unwrap().path()).unwrap())).count();
        assert!(count >= own.len(), "{target}: {count} inputs in the corpus");
    }
}
