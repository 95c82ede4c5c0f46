//! Bytes for `store::fuzzing`, the door "trailer".

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bennu_fuzz::run("trailer", bytes));
