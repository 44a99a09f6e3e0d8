//! See `fastpay_fuzz::wire`.
#![no_main]

libfuzzer_sys::fuzz_target!(init: fastpay_fuzz::plant(fastpay_fuzz::wire::seeds), |bytes: &[u8]| {
    fastpay_fuzz::wire::run(bytes);
});
