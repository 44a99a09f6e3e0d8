//! See `fastpay_fuzz::stored`.
#![no_main]

libfuzzer_sys::fuzz_target!(init: fastpay_fuzz::plant(fastpay_fuzz::stored::seeds), |bytes: &[u8]| {
    fastpay_fuzz::stored::run(bytes);
});
