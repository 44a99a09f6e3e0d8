//! See `fastpay_fuzz::http`.
#![no_main]

libfuzzer_sys::fuzz_target!(init: fastpay_fuzz::plant(fastpay_fuzz::http::seeds), |bytes: &[u8]| {
    fastpay_fuzz::http::run(bytes);
});
