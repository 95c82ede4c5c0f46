//! Fuzz target of the entry point "manifest" of `store::fuzzing`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bennu_fuzz::run("manifest", bytes));
