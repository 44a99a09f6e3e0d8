//! See `fastpay_fuzz::journal`.
#![no_main]

libfuzzer_sys::fuzz_target!(init: fastpay_fuzz::plant(fastpay_fuzz::journal::seeds), |bytes: &[u8]| {
    fastpay_fuzz::journal::run(bytes);
});
