//! See `fastpay_fuzz::configuration`.
#![no_main]

libfuzzer_sys::fuzz_target!(init: fastpay_fuzz::plant(fastpay_fuzz::configuration::seeds), |bytes: &[u8]| {
    fastpay_fuzz::configuration::run(bytes);
});
