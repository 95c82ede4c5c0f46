//! Bytes for `store::fuzzing`, the door "store_file".

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bennu_fuzz::run("store_file", bytes));
