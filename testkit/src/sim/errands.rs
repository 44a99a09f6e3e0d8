//! Transactions of the council: by the production sender, which is killed and restarted.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::anvil::{GUARDIAN_KEY, rich_key};
use fastpay_core::{AccountId, SequenceNumber};
use fastpay_ethereum::{Call, SendError, Sender, SenderConfig, Submission};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

use super::chain::{Chain, SLOT};
use super::world::{World, lock};

/// The key that announces new committees: the guardian's, which endorses them.
const COUNCIL: u32 = GUARDIAN_KEY;
/// An errand is retried until this many refusals, more than a node gives in the two minutes that it lags.
const REFUSALS_MAX: u32 = 200;

/// Builds a call of the contract; `None` before its time has come.
type ErrandCall = Box<dyn Fn(&Chain) -> Option<Call> + Send>;

/// A transaction to be sent by the council's key.
pub struct Errand {
    /// A description for the trace.
    pub what: String,
    /// Builds the call; `None` before its time has come.
    pub call: ErrandCall,
    /// The redemption that it submits, if it is one. Another account may submit it first.
    pub redemption: Option<(AccountId, SequenceNumber)>,
}

/// Runs the council's errands one after the other, each once, although their process is killed half-way and continues
/// from its stored state.
pub async fn run_errands(world: Arc<World>, mut errands: mpsc::UnboundedReceiver<Errand>) {
    let mut last: Option<Submission> = None;
    while let Some(Errand { what, call, redemption }) = errands.recv().await {
        let stored: Mutex<Option<Submission>> = Mutex::default();
        let mut refusals = 0;
        loop {
            let is_stopped = !world.is_calm() && world.dice.chance(200);
            let patience = if is_stopped { world.dice.mostly_short(Duration::from_secs(20)) } else { Duration::MAX };
            let known = lock(&stored).is_some();
            let Some(call) = (if known { Some(None) } else { call(&world.chain).map(Some) }) else {
                sleep(SLOT).await;
                continue;
            };
            match timeout(patience, run_errand(&world, call, last.as_ref(), &stored)).await {
                Ok(Ok(())) => break,
                Ok(Err(_))
                    if redemption.is_some_and(|(sender, sequence)| world.chain.is_redeemed(sender, sequence)) =>
                {
                    break;
                }
                Ok(Err(error)) if error.is_retryable() => {
                    world.trace.note("chain tried", format_args!("{what}: {error}"))
                }
                // A lagging node does not know the effect of the previous step yet.
                Ok(Err(error)) if refusals < REFUSALS_MAX => {
                    refusals += 1;
                    world.trace.note("chain refused", format_args!("{what}: {error}"));
                    // It changed nothing, because a reorganisation let it come too early: another transaction follows.
                    if matches!(error, SendError::RevertedOnChain { .. }) {
                        last = lock(&stored).take().or(last);
                    }
                }
                Ok(Err(error)) => return world.trace.violation(format_args!("a {what} fails for good: {error}")),
                Err(_) => world.trace.note("chain stopped", &what),
            }
            sleep(world.dice.between(Duration::from_millis(10), Duration::from_secs(2))).await;
        }
        last = lock(&stored).take().or(last);
        world.trace.note("errand done", &what);
    }
}

async fn run_errand(
    world: &World,
    call: Option<Call>,
    last: Option<&Submission>,
    stored: &Mutex<Option<Submission>>,
) -> Result<(), SendError> {
    let sender = Sender::new(world.chain.connect(world), rich_key(COUNCIL), sender_config());
    last.into_iter().for_each(|last| sender.adopt(last));
    let known = lock(stored).clone();
    let submission = match (known, call) {
        (Some(submission), _) => submission,
        (None, Some(call)) => sender.prepare(call).await?,
        (None, None) => return Ok(()),
    };
    let mut store = |submission: &Submission| {
        *lock(stored) = Some(submission.clone());
        Ok(())
    };
    sender.confirm(submission, &mut store, &mut |_| ()).await.map(drop)
}

/// Accepts any gas price, so that nothing waits for long.
pub fn sender_config() -> SenderConfig {
    SenderConfig { max_fee_cap_gwei: 1_000, stuck_after_ms: 20_000, ..SenderConfig::default() }
}
