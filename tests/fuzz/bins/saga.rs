//! The target `saga` for the fuzzer.

#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| procession_fuzz::run("saga", bytes));
