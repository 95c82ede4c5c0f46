//! Bytes for `store::fuzzing`, the door "manifest".

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bennu_fuzz::run("manifest", bytes));
