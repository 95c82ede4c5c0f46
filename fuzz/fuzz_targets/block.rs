//! Fuzz target of the entry point "block" of `store::fuzzing`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bennu_fuzz::run("block", bytes));
