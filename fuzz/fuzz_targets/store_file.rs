//! Fuzz target of the entry point "store_file" of `store::fuzzing`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bennu_fuzz::run("store_file", bytes));
