//! Delivers events to the shop: each until it is accepted or given up, with the same id and body in every attempt.

use std::time::Duration;

use reqwest::StatusCode;
use reqwest::redirect::Policy;
use tokio::task::JoinSet;
use tokio::time::timeout;
use url::Url;

use crate::event::{Delivery, Outcome};
use crate::ledger::{Ledger, now_ms};
use crate::ledger_error::LedgerError;
use crate::signature::Secret;

/// The number of events sent at a time.
const SENDING_MAX: usize = 8;
/// The maximum number of attempts. With the delays below, the last one is about two days after the first.
const ATTEMPTS_MAX: u32 = 15;
const DELAY_MAX_MS: u64 = 8 * 60 * 60 * 1_000;
const FACTOR: u64 = 3;
/// A delay is shortened by up to this part of it, so that failed events are not all repeated at once.
const JITTER: f64 = 0.2;
/// The interval between searches for due events.
const POLL: Duration = Duration::from_millis(500);

/// The destination of webhooks.
#[derive(Clone, Debug)]
pub struct Target {
    /// The URL at which the shop receives webhooks.
    pub url: Url,
    /// The key that signs webhooks.
    pub secret: Secret,
    /// The time-out of an attempt.
    pub patience: Duration,
    /// The first delay after a failed attempt, in milliseconds.
    pub first_delay_ms: u64,
}

/// Why the service ends.
#[derive(Debug, thiserror::Error)]
pub enum DeliverError {
    /// The database failed.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// The system has no certificates to authenticate the shop.
    #[error("webhooks cannot be sent: {0}")]
    Client(reqwest::Error),
}

/// Delivers events until the disk fails.
///
/// # Errors
/// If the database cannot be written, or nothing can be sent at all.
pub async fn deliver(ledger: Ledger, target: Target) -> Result<(), DeliverError> {
    let client = reqwest::Client::builder().timeout(target.patience).redirect(Policy::none()).build();
    let client = client.map_err(DeliverError::Client)?;
    loop {
        let now = now_ms();
        let mut sending = JoinSet::new();
        // No delay exceeds the maximum. If one seems to, the clock was ahead when it was computed.
        for delivery in ledger.due(now, now.saturating_add(DELAY_MAX_MS), SENDING_MAX)? {
            let (client, target) = (client.clone(), target.clone());
            sending.spawn(async move {
                let answer = send(&client, &target, &delivery).await;
                (delivery, answer)
            });
        }
        let is_idle = sending.is_empty();
        while let Some(Ok((delivery, answer))) = sending.join_next().await {
            let tried = delivery.attempts.saturating_add(1);
            let outcome = outcome(answer, tried, now_ms(), target.first_delay_ms, fastrand::f64());
            if let Outcome::Failed { reason, .. } | Outcome::GivenUp { reason } = &outcome {
                tracing::warn!(event = delivery.event.id, tried, reason, "the shop did not accept a webhook");
            }
            ledger.attempted(&delivery.event.id, &outcome)?;
        }
        if is_idle {
            let _ = timeout(POLL, ledger.until_announced()).await;
        }
    }
}

/// Why the shop did not accept an event, and whether it wants no more attempts.
#[derive(Debug, PartialEq, Eq)]
struct Refused {
    reason: String,
    for_good: bool,
}

async fn send(client: &reqwest::Client, target: &Target, delivery: &Delivery) -> Result<(), Refused> {
    let timestamp = now_ms() / 1_000;
    let event = &delivery.event;
    let request = client
        .post(target.url.clone())
        .header("content-type", "application/json")
        .header("webhook-id", &event.id)
        .header("webhook-timestamp", timestamp)
        .header("webhook-signature", target.secret.sign(&event.id, timestamp, &event.body))
        .body(event.body.clone());
    // The error's text would contain the URL, which may contain a password.
    let failed = |error: reqwest::Error| Refused { reason: describe(&error).into(), for_good: false };
    let status = request.send().await.map_err(failed)?.status();
    if status.is_success() {
        return Ok(());
    }
    Err(Refused { reason: format!("it answered {}", status.as_u16()), for_good: status == StatusCode::GONE })
}

fn describe(error: &reqwest::Error) -> &'static str {
    if error.is_timeout() {
        "it did not answer in time"
    } else if error.is_connect() {
        "it cannot be reached"
    } else {
        "the connection failed"
    }
}

/// The outcome of attempt number `tried`. `chance`, from 0 to 1, spreads the retries.
fn outcome(answer: Result<(), Refused>, tried: u32, now_ms: u64, first_delay_ms: u64, chance: f64) -> Outcome {
    match answer {
        Ok(()) => Outcome::Delivered,
        Err(Refused { reason, for_good }) if for_good || tried >= ATTEMPTS_MAX => Outcome::GivenUp { reason },
        Err(Refused { reason, .. }) => {
            Outcome::Failed { reason, next_at_ms: now_ms.saturating_add(delay_ms(tried, first_delay_ms, chance)) }
        }
    }
}

/// The delay after attempt number `tried`: three times longer each time, up to a bound.
fn delay_ms(tried: u32, first_ms: u64, chance: f64) -> u64 {
    let whole = FACTOR.saturating_pow(tried.saturating_sub(1)).saturating_mul(first_ms).min(DELAY_MAX_MS);
    // Exact enough: 8 hours in milliseconds are far below 2^52.
    (whole as f64 * (1.0 - JITTER * chance)) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    fn refused(for_good: bool) -> Result<(), Refused> {
        Err(Refused { reason: "it answered 503".into(), for_good })
    }

    #[test]
    fn delays_grow_up_to_a_bound_and_are_spread() {
        let delays: Vec<_> = (1..=ATTEMPTS_MAX).map(|tried| delay_ms(tried, 5_000, 0.0)).collect();
        assert_eq!(delays[..4], [5_000, 15_000, 45_000, 135_000]);
        assert_eq!(delays[14], DELAY_MAX_MS);
        let days = delays[..14].iter().sum::<u64>() as f64 / 86_400_000.0;
        assert!((1.5..3.0).contains(&days), "{days}");
        assert_eq!(delay_ms(1, 5_000, 1.0), 4_000);
        assert_eq!(delay_ms(u32::MAX, u64::MAX, 0.0), DELAY_MAX_MS);
    }

    #[test]
    fn an_event_is_tried_again_until_it_was_taken_is_unwanted_or_tried_often() {
        assert_eq!(outcome(Ok(()), ATTEMPTS_MAX + 1, 7, 5_000, 0.0), Outcome::Delivered);
        let reason = "it answered 503".to_owned();
        let again = Outcome::Failed { reason: reason.clone(), next_at_ms: 5_007 };
        assert_eq!(outcome(refused(false), 1, 7, 5_000, 0.0), again);
        assert_eq!(outcome(refused(true), 1, 7, 5_000, 0.0), Outcome::GivenUp { reason: reason.clone() });
        assert_eq!(outcome(refused(false), ATTEMPTS_MAX, 7, 5_000, 0.0), Outcome::GivenUp { reason });
    }
}
