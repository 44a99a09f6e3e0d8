//! See `fastpay_fuzz::chain`.
#![no_main]

libfuzzer_sys::fuzz_target!(init: fastpay_fuzz::plant(fastpay_fuzz::chain::seeds), |bytes: &[u8]| {
    fastpay_fuzz::chain::run(bytes);
});
