//! Bytes for `store::fuzzing`, the door "wal".

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bennu_fuzz::run("wal", bytes));
