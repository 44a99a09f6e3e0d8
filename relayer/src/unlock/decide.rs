//! Collects the authorities' votes about an undecided number, and submits the decision to the contract.

use std::time::Duration;

use alloy::primitives::{Address, U256};
use fastpay_client::{CommitteeClient, Network, UnlockBallot, UnlockDecision, Voidable, short};
use fastpay_core::UnlockVote;
use fastpay_ethereum::{Call, Primary, PrimaryError, UnlockState};
use tokio::time::Instant;

use super::send::Unsent;
use super::{Done, JOBS_MAX, Number, UnlockStep, UnlockStepKind};
use crate::relayer::{Relayer, RelayerError};

/// The maximum number of numbers about which the authorities are asked at once. It leaves room for owners' requests.
const ASKING_MAX: usize = JOBS_MAX / 2;
/// The maximum time for each question to all authorities.
const PATIENCE: Duration = Duration::from_secs(5);
/// The first pause before the authorities are asked again, in milliseconds; it doubles each time.
const PAUSE_MS: u64 = 5_000;
const PAUSE_MS_MAX: u64 = 600_000;

/// The result of asking about one number.
#[derive(Debug)]
pub(super) struct Decided {
    number: Number,
    found: Result<Found, PrimaryError>,
}

/// The answers of the contract and the authorities.
#[derive(Debug)]
enum Found {
    /// The number is decided in a block that is not final yet.
    Outcome,
    /// The number is not decided yet.
    Open {
        council: Address,
        bond: U256,
        payer: Address,
        /// Whether f + 1 members report that the account is beyond the number.
        is_below: bool,
        decision: Option<UnlockDecision>,
        /// What the decision waits for.
        waits_for: String,
    },
}

impl Relayer {
    /// Starts to ask the authorities about the numbers that are due.
    pub(super) async fn ask_authorities(&mut self) -> Result<(), RelayerError> {
        let (now_ms, room) = (self.clock.now_ms(), ASKING_MAX.saturating_sub(self.primary.unlocking.asking.len()));
        let is_free = |number: &Number| {
            !self.primary.unlocking.asking.contains(number)
                && self.step_under_way(|step| step.number() == *number).is_none()
        };
        let mut due: Vec<_> = self.state.unlock.open.iter().filter(|open| open.next_at_ms <= now_ms).collect();
        due.sort_by_key(|open| open.next_at_ms);
        let due: Vec<_> = due.into_iter().map(super::OpenUnlock::number).filter(is_free).take(room).collect();
        if due.is_empty() {
            return Ok(());
        }
        let Some(client) = self.committee_client().await? else { return Ok(()) };
        let (us, void_others) = (self.address(), self.config.unlock.void_others);
        for number in due {
            self.primary.unlocking.asking.insert(number);
            let (client, primary) = (client.clone(), self.primary.sender.primary().clone());
            self.primary.unlocking.jobs.spawn(async move {
                let found = ask(&client, &primary, number, us, void_others).await;
                Done::Decided(Decided { number, found })
            });
        }
        Ok(())
    }

    /// Submits the decision for which there are enough votes.
    pub(super) async fn bring_decision(&mut self, decided: Decided) -> Result<(), RelayerError> {
        let Decided { number, found } = decided;
        self.primary.unlocking.asking.remove(&number);
        if self.state.unlock.position(number).is_none() {
            return Ok(());
        }
        let (council, bond, payer, is_below, decision) = match found {
            Err(error) => {
                self.ask_later(number, error.to_string());
                return Err(error.into());
            }
            Ok(Found::Outcome) => {
                self.ask_later(number, "the block with the decision is not final".into());
                return Ok(());
            }
            Ok(Found::Open { council, bond, payer, is_below, decision, waits_for }) => {
                self.ask_later(number, waits_for);
                (council, bond, payer, is_below, decision)
            }
        };
        let is_ours = payer == self.address();
        if let Some(open) = self.open_unlock(number) {
            (open.is_ours, open.is_below) = (is_ours, Some(is_below));
        }
        let Some(UnlockDecision { vote, votes }) = decision else { return Ok(()) };
        let (kind, earns) = match vote {
            UnlockVote::Certificate(_) => (UnlockStepKind::Uphold, !payer.is_zero()),
            UnlockVote::Void { .. } => (UnlockStepKind::Void, is_ours),
        };
        let (account, sequence) = number;
        let call = Call::decide_unlock(council, account, sequence, vote, votes);
        let returned = if earns { bond } else { U256::ZERO };
        match self.send_step(UnlockStep { account, sequence, kind }, call, returned).await? {
            Ok(_) => {}
            Err(unsent) => {
                tracing::warn!(%account, %sequence, ?kind, %unsent, "a step to unlock a number waits");
                if let Some(open) = self.open_unlock(number) {
                    if let Unsent::Budget { again_at_ms } = unsent {
                        open.next_at_ms = again_at_ms;
                    }
                    open.waits_for = unsent.to_string();
                }
            }
        }
        Ok(())
    }

    fn ask_later(&mut self, number: Number, waits_for: String) {
        let now_ms = self.clock.now_ms();
        if let Some(open) = self.open_unlock(number) {
            let pause = PAUSE_MS.saturating_mul(1 << open.tries.min(10)).min(PAUSE_MS_MAX);
            open.tries = open.tries.saturating_add(1);
            open.next_at_ms = now_ms.saturating_add(pause);
            open.waits_for = waits_for;
        }
    }

    /// An undecided number, to be changed.
    fn open_unlock(&mut self, number: Number) -> Option<&mut super::OpenUnlock> {
        let position = self.state.unlock.position(number)?;
        self.changed = true;
        self.state.unlock.open.get_mut(position)
    }
}

/// Asks contract and authorities. It asks for votes to void a number that others pay for only if this relayer voids
/// such numbers.
async fn ask(
    client: &CommitteeClient,
    primary: &Primary,
    number: Number,
    us: Address,
    void_others: bool,
) -> Result<Found, PrimaryError> {
    let UnlockState::Requested { voidable_from, payer } = primary.unlock_state(number.0, number.1).await? else {
        return Ok(Found::Outcome);
    };
    let (council, bond) = (primary.council().await?, primary.unlock_bond().await?);
    let (now, unanimous_from) = (primary.latest_head().await?.timestamp(), primary.unanimous_from().await?);
    let may_void = void_others || payer == us;
    let voidable = Voidable { at_once: may_void && now >= unanimous_from, by_quorum: may_void && now >= voidable_from };
    let (is_below, (ballot, decision)) =
        tokio::join!(is_below(client.network(), number), client.decide_unlock(number, voidable, PATIENCE));
    Ok(Found::Open { council, bond, payer, is_below, decision, waits_for: waits_for(&ballot) })
}

/// Whether f + 1 members report that the account is beyond the number. One of them is honest.
async fn is_below(network: &Network, (account, sequence): Number) -> bool {
    let answers = network.account(account, Instant::now() + PATIENCE).await;
    let states = network.of_members(&answers).into_values();
    states.filter(|state| state.next_sequence > sequence).count() >= network.trusted_count()
}

fn waits_for(ballot: &UnlockBallot) -> String {
    let (attested, voided) = ballot.votes();
    let failures = ballot.failures().iter().map(|(name, failure)| format!("; {}: {failure}", short(name)));
    format!(
        "{attested} authorities have a certificate, {voided} vote to void the number{}",
        failures.collect::<String>()
    )
}
