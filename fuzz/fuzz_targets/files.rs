//! See `fastpay_fuzz::files`.
#![no_main]

libfuzzer_sys::fuzz_target!(init: fastpay_fuzz::plant(fastpay_fuzz::files::seeds), |bytes: &[u8]| {
    fastpay_fuzz::files::run(bytes);
});
