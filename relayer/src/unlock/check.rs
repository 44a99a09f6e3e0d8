//! Checks whether a number is stuck, with the contract and the authorities, before the relayer pays for its request.

use std::collections::BTreeSet;
use std::time::Duration;

use alloy::primitives::U256;
use fastpay_client::{Answers, CommitteeClient, Network, QuorumError};
use fastpay_core::{AccountId, Digest, SequenceNumber};
use fastpay_ethereum::{Call, Primary, PrimaryError, UnlockState, utc};
use fastpay_rpc::AccountState;
use tokio::time::{Instant, timeout};

use super::desk::{Answer, Ask, Refusal, RefusalCode, Taken};
use super::send::Unsent;
use super::{Done, JOBS_MAX, Number, UnlockStep, UnlockStepKind};
use crate::relayer::{Relayer, RelayerError};

/// The maximum time for the authorities to answer about the account.
const PATIENCE: Duration = Duration::from_secs(5);
/// The maximum time to settle a certificate that an authority shows.
const SETTLING: Duration = Duration::from_secs(15);
/// The maximum number of certificates of retired keys that are set aside. Anybody who has such keys can make more.
const CERTIFICATES_MAX: usize = 4;

/// The result of a check.
#[derive(Debug)]
pub(super) struct Checked {
    ask: Ask,
    due: Result<Due, Refusal>,
}

/// The decision about a request.
#[derive(Debug)]
enum Due {
    /// Send it with this call.
    Bring(Call),
    /// Somebody has submitted it already.
    Nothing(Taken),
}

impl Relayer {
    /// Takes owners' requests, and starts to check them.
    pub(super) async fn take_asked(&mut self) -> Result<(), RelayerError> {
        while self.primary.unlocking.jobs.len() < JOBS_MAX
            && let Ok(ask) = self.primary.unlocking.asked.try_recv()
        {
            if let Some(answer) = self.known(ask.number()) {
                ask.answer(answer);
                continue;
            }
            let Some(client) = self.committee_client().await? else { return Ok(()) };
            let primary = self.primary.sender.primary().clone();
            self.primary.unlocking.jobs.spawn(async move {
                let due = check(&client, &primary, &ask).await;
                Done::Checked(Checked { ask, due })
            });
        }
        Ok(())
    }

    /// Submits a request to the contract if its number is stuck.
    pub(super) async fn bring_request(&mut self, checked: Checked) -> Result<(), RelayerError> {
        let Checked { ask, due } = checked;
        // The same request may have come twice.
        if let Some(answer) = self.known(ask.number()) {
            ask.answer(answer);
            return Ok(());
        }
        let call = match due {
            Ok(Due::Bring(call)) => call,
            Ok(Due::Nothing(taken)) => {
                ask.answer(Ok(taken));
                return Ok(());
            }
            Err(refusal) => {
                ask.answer(Err(refusal));
                return Ok(());
            }
        };
        let (account, sequence) = ask.number();
        let step = UnlockStep { account, sequence, kind: UnlockStepKind::Request };
        ask.answer(match self.send_step(step, call, U256::ZERO).await? {
            Ok(transaction) => Ok(Taken::Sent { transaction }),
            Err(unsent @ Unsent::Budget { again_at_ms }) => {
                let wait = Duration::from_millis(again_at_ms.saturating_sub(self.clock.now_ms()));
                Err(Refusal::later(RefusalCode::BudgetSpent, unsent.to_string(), wait))
            }
            Err(unsent @ Unsent::Refused(_)) => Err(Refusal::new(RefusalCode::Refused, unsent.to_string())),
            Err(unsent @ (Unsent::Full | Unsent::Funds)) => {
                Err(Refusal::new(RefusalCode::Unavailable, unsent.to_string()))
            }
        });
        Ok(())
    }

    /// The answer about a number that is open at the contract or about to be, or whose account has another such number.
    fn known(&self, number: Number) -> Option<Answer> {
        let unlock = &self.state.unlock;
        if let Some(open) = unlock.open.iter().find(|open| open.number() == number) {
            return Some(Ok(Taken::Requested { voidable_from: open.voidable_from }));
        }
        let of_account = self.step_under_way(|step| step.account == number.0 && step.kind == UnlockStepKind::Request);
        match of_account {
            Some((step, transaction)) if step.number() == number => return Some(Ok(Taken::Sent { transaction })),
            None if !unlock.open.iter().any(|open| open.account == number.0) => return None,
            _ => {}
        }
        let detail = format!("another number of {} is being unlocked; wait until it is decided", number.0);
        Some(Err(Refusal::new(RefusalCode::OneAtATime, detail)))
    }
}

async fn check(client: &CommitteeClient, primary: &Primary, ask: &Ask) -> Result<Due, Refusal> {
    let number @ (account, sequence) = ask.number();
    let unavailable = |error: PrimaryError| {
        tracing::warn!(%error, "a request to unlock a number cannot be checked");
        Refusal::new(RefusalCode::Unavailable, "the relayer's Ethereum nodes do not answer".into())
    };
    let spent = |how| Refusal::new(RefusalCode::Spent, format!("number {sequence} of {account} is {how}"));
    let bond = match primary.unlock_state(account, sequence).await.map_err(unavailable)? {
        UnlockState::Upheld => return Err(spent("decided: one order is valid")),
        UnlockState::Voided => return Err(spent("decided: the number is void")),
        // For an Ethereum account, the contract has checked that its owner asked.
        UnlockState::Requested { voidable_from, .. } if account.ethereum_address().is_some() => {
            return Ok(Due::Nothing(Taken::Requested { voidable_from }));
        }
        // A stranger asked, or the block is not final. After that request, another one costs no bond.
        UnlockState::Requested { .. } => U256::ZERO,
        UnlockState::NotRequested => primary.unlock_bond().await.map_err(unavailable)?,
    };
    if primary.is_redeemed(account, sequence).await.map_err(unavailable)? {
        return Err(spent("redeemed at the contract"));
    }
    if let Some(until) = primary.paused_until().await.map_err(unavailable)? {
        let now = primary.latest_head().await.map_err(unavailable)?.timestamp();
        let detail = format!("the contract is paused until {}: nothing can be voided before", utc(until));
        return Err(Refusal::later(RefusalCode::Paused, detail, Duration::from_secs(until.saturating_sub(now))));
    }
    let answers = client.network().account_everywhere(account, Instant::now() + PATIENCE).await;
    if judge(client.network(), &answers, number)? == Hint::MayBeCertified {
        if timeout(SETTLING, settle(client, account, sequence)).await.unwrap_or(false) {
            return Err(spent("executed: its certificate was hidden, and is settled now"));
        }
        let archived = client.network().archived_number(account, sequence, Instant::now() + PATIENCE).await;
        if archived.is_some_and(|entry| entry.transfer.is_some()) {
            return Err(spent("executed, as a checkpoint proves"));
        }
    }
    let council = primary.council().await.map_err(unavailable)?;
    Ok(Due::Bring(Call::request_unlock(council, account, sequence, ask.authorization.clone(), bond)))
}

/// Settles the certificate of a number if an authority shows one. Returns whether it is settled: then its owner gets it
/// from every authority. One of retired keys, or one that an authority hides again, settles nothing.
async fn settle(client: &CommitteeClient, account: AccountId, sequence: SequenceNumber) -> bool {
    for _ in 0..CERTIFICATES_MAX {
        let Some(found) = client.network().find_certificate(account, sequence).await else { return false };
        match client.settle(&found).await {
            Ok(_) => return true,
            // Another authority may have another one.
            Err(QuorumError::EpochEnded(_) | QuorumError::Outdated(_)) => {}
            Err(error) => {
                tracing::info!(%account, %sequence, %error, "a certificate that an authority shows cannot be settled");
                return false;
            }
        }
    }
    false
}

/// A hint of whether a number is stuck, from the answers of the authorities.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hint {
    None,
    /// An authority claims to have executed it.
    MayBeCertified,
}

/// Checks that a number is the next one of its account, and that no order of it can be finished: an authority is locked
/// on an order, and no quorum on the same one.
fn judge(network: &Network, answers: &Answers<AccountState>, number: Number) -> Result<Hint, Refusal> {
    let (committee, (account, sequence)) = (network.committee(), number);
    let states: Vec<&AccountState> = network.of_members(answers).into_values().collect();
    if states.len() < committee.quorum() {
        let detail = format!("{} authorities say how they know the account", states.len());
        return Err(Refusal::new(RefusalCode::Unavailable, detail));
    }
    let count = |is: &dyn Fn(SequenceNumber) -> bool| states.iter().filter(|state| is(state.next_sequence)).count();
    let (beyond, at) = (count(&|next| next > sequence), count(&|next| next == sequence));
    if beyond >= network.trusted_count() {
        return Err(Refusal::new(RefusalCode::Spent, format!("number {sequence} of {account} is executed or void")));
    }
    if at < network.trusted_count() {
        let detail = format!("{sequence} is not the next number of {account} at enough authorities");
        return Err(Refusal::new(RefusalCode::NotNext, detail));
    }
    let locks: Vec<Digest> = states.iter().filter_map(|state| lock(network, state, number)).collect();
    let orders: BTreeSet<&Digest> = locks.iter().collect();
    let detail = match orders.len() {
        0 => "no authority is locked on an order with this number: the next order can be made",
        1 if locks.len() >= committee.quorum() => "a quorum is locked on one order with this number: finish that order",
        _ => return Ok(if beyond == 0 { Hint::None } else { Hint::MayBeCertified }),
    };
    Err(Refusal::new(RefusalCode::NotStuck, detail.into()))
}

/// The order of the number on which an authority reports to be locked, if its owner signed it.
fn lock(network: &Network, state: &AccountState, (account, sequence): Number) -> Option<Digest> {
    let order = state.pending.clone()?.verify(network.domain()).ok()?;
    let is_of_number = (order.transfer().sender(), order.transfer().sequence()) == (account, sequence);
    is_of_number.then(|| order.digest())
}
