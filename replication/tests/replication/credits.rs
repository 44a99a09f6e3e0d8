//! Credits between two shards after a takeover.

use fastpay_replication::{CreditsAhead, credits_to_resend};

#[test]
fn a_shard_that_applied_more_than_was_issued_is_stopped() {
    assert_eq!(credits_to_resend(7, 8), Err(CreditsAhead { issued: 7, applied: 8 }));
    assert_eq!(credits_to_resend(7, 5), Ok(6..=7));
    assert!(credits_to_resend(7, 7).unwrap().is_empty());
}
