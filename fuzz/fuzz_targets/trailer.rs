//! Fuzz target of the entry point "trailer" of `store::fuzzing`.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bennu_fuzz::run("trailer", bytes));
