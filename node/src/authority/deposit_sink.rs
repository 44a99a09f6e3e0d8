//! Hands the contract's events to the shards. Each shard gets the events of its own accounts, in the contract's order.
//!
//! ```text
//!  events ─► per shard: its own, and one step over the others ─► all shards have them on disk ─► the block's time
//! ```
//! Every shard stores the index up to which it has applied its events, so repeating a batch changes nothing.

use std::sync::Arc;
use std::sync::mpsc::TrySendError;
use std::time::Duration;

use fastpay_core::{
    AccountId, Deposit, Domain, Epoch, ExecutedRedemption, Installation, Redemption, SequenceNumber, ShardId,
    ShardLayout, SynchronizationOrder, TransactionIndex, Transfer, UnlockEvent, UnlockEventKind, is_unlock_authorized,
};
use fastpay_ethereum::OrderEvent;
use tokio::sync::{Semaphore, oneshot};

use crate::authority::network::{ReadError, Reads};
use crate::authority::shard::{ChainTime, Command, HistoryReader, OrderStep, ShardHandle};

/// The maximum number of steps in one message to a shard.
const STEPS_PER_MESSAGE_MAX: usize = 512;

/// The wait while a shard's queue is full.
const PAUSE: Duration = Duration::from_millis(10);

/// The wait after a failed read of the journal.
const DISK_PAUSE: Duration = Duration::from_secs(1);

/// The shards have ended, so the follower ends, too.
pub(crate) struct ShardsEnded;

/// An event of the contract that changes a shard.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ShardEvent {
    Deposit(Deposit),
    Unlock {
        index: TransactionIndex,
        account: AccountId,
        sequence: SequenceNumber,
        kind: UnlockEventKind,
    },
    /// An event that concerns every shard.
    Installation(Installation),
}

impl ShardEvent {
    /// Converts a contract event; `None` if it changes nothing. An unlock request counts only if the owner signed it.
    /// Its number, and one that an installation opens again, can be voided from chain time `voidable_at`, in seconds
    /// since 1970.
    pub(crate) fn new(event: &OrderEvent, domain: &Domain, voidable_at: u64) -> Option<Self> {
        if let Some(deposit) = event.deposit() {
            return Some(Self::Deposit(deposit));
        }
        let (account, sequence, kind) = match event {
            OrderEvent::UnlockRequested(request) => {
                let (account, sequence) = (AccountId(request.account.0), SequenceNumber(request.sequence));
                if !is_unlock_authorized(domain, account, sequence, &request.authorization) {
                    return None;
                }
                (request.account, request.sequence, UnlockEventKind::Requested(voidable_at))
            }
            OrderEvent::SequenceUpheld(upheld) => {
                (upheld.account, upheld.sequence, UnlockEventKind::Upheld(upheld.digest))
            }
            OrderEvent::SequenceVoided(voided) => (voided.account, voided.sequence, UnlockEventKind::Voided),
            OrderEvent::Redeemed(paid) => (paid.sender, paid.sequence, UnlockEventKind::Spent(paid.digest)),
            OrderEvent::RedemptionQueued(queued) => {
                (queued.sender, queued.sequence, UnlockEventKind::Spent(queued.digest))
            }
            OrderEvent::RedemptionReleased(released) => {
                (released.sender, released.sequence, UnlockEventKind::Released(released.digest))
            }
            OrderEvent::CommitteeInstalled(installed) => {
                let (index, epoch) = (event.index(), Epoch(installed.epoch));
                let compromised_since = Epoch(installed.compromisedSince);
                let installation = Installation { after: index, index, epoch, compromised_since, voidable_at };
                return Some(Self::Installation(installation));
            }
            OrderEvent::Funded(_) => return None,
        };
        let (account, sequence) = (AccountId(account.0), SequenceNumber(sequence));
        Some(Self::Unlock { index: event.index(), account, sequence, kind })
    }

    fn index(&self) -> TransactionIndex {
        match self {
            Self::Deposit(deposit) => deposit.index,
            Self::Unlock { index, .. } => *index,
            Self::Installation(installation) => installation.index,
        }
    }

    /// The account that the event concerns; `None` if it concerns every shard.
    fn account(&self) -> Option<&AccountId> {
        match self {
            Self::Deposit(deposit) => Some(&deposit.recipient),
            Self::Unlock { account, .. } => Some(account),
            Self::Installation(_) => None,
        }
    }

    /// The step to this event, if the events between `after` and it concern other shards.
    fn step(&self, after: TransactionIndex) -> OrderStep {
        match self {
            Self::Deposit(deposit) => {
                let (up_to, deposit) = (deposit.index, Some(deposit.clone()));
                OrderStep::Deposit(SynchronizationOrder { after, up_to, deposit })
            }
            Self::Unlock { index, account, sequence, kind } => OrderStep::Unlock(UnlockEvent {
                after,
                index: *index,
                account: *account,
                sequence: *sequence,
                kind: *kind,
            }),
            Self::Installation(installation) => OrderStep::Installation(Installation { after, ..*installation }),
        }
    }
}

/// Hands the contract's events to every shard.
pub struct DepositSink {
    domain: Domain,
    layout: ShardLayout,
    shards: Vec<Reads>,
}

impl DepositSink {
    /// A sink for these shards, from the first.
    #[must_use]
    pub fn new(domain: Domain, layout: ShardLayout, shards: &[(ShardHandle, HistoryReader)]) -> Self {
        let turn = Arc::new(Semaphore::new(1));
        let shards = shards.iter().map(|(shard, history)| Reads::new(shard.clone(), history.clone(), turn.clone()));
        Self { domain, layout, shards: shards.collect() }
    }

    /// Brings every shard from index `after` to `up_to`. Returns false if the shards have ended.
    pub async fn apply(&self, after: TransactionIndex, deposits: &[Deposit], up_to: TransactionIndex) -> bool {
        let events: Vec<_> = deposits.iter().cloned().map(ShardEvent::Deposit).collect();
        self.try_apply(after, &events, up_to).await.is_ok()
    }

    /// Sends every shard the time of the block up to which it has applied all events.
    pub(crate) async fn tell_time(&self, time: ChainTime) -> Result<(), ShardsEnded> {
        for shard in &self.shards {
            send(shard.handle(), Command::ChainTime(time)).await?;
        }
        Ok(())
    }

    pub(crate) async fn try_apply(
        &self,
        after: TransactionIndex,
        events: &[ShardEvent],
        up_to: TransactionIndex,
    ) -> Result<(), ShardsEnded> {
        for (shard, reads) in self.layout.shards().zip(&self.shards) {
            // Skip events that the shard has already applied.
            let mut at = synchronize(reads.handle(), Vec::new()).await?;
            while (after..up_to).contains(&at) {
                let own = self.explained(shard, reads, at, events).await?;
                for message in steps_for(at, &own, up_to).chunks(STEPS_PER_MESSAGE_MAX) {
                    at = synchronize(reads.handle(), message.to_vec()).await?;
                    // The shard refuses an event whose number was executed meanwhile: explain and send it again.
                    if message.last().is_some_and(|last| at < last.up_to()) {
                        break;
                    }
                }
            }
            if at < after {
                // Cannot happen while the cursor is behind every shard. Never continue beyond such a gap.
                tracing::error!(%shard, applied = %at, expected = %after, "a shard did not follow");
                return Err(ShardsEnded);
            }
        }
        Ok(())
    }

    /// The events of a shard's accounts from `after` on, as the shard is to apply them. An event about a redemption
    /// whose number is already executed is adapted to what was executed.
    async fn explained(
        &self,
        shard: ShardId,
        reads: &Reads,
        after: TransactionIndex,
        events: &[ShardEvent],
    ) -> Result<Vec<ShardEvent>, ShardsEnded> {
        let is_own = |event: &&ShardEvent| event.account().is_none_or(|account| self.layout.shard_of(account) == shard);
        let own = events.iter().filter(|event| event.index() > after).filter(is_own);
        let mut explained = Vec::new();
        for event in own {
            let mut event = event.clone();
            if let ShardEvent::Unlock { account, sequence, kind, .. } = &mut event
                && matches!(kind, UnlockEventKind::Spent(_) | UnlockEventKind::Released(_))
                && let Some(executed) = self.executed(reads, *account, *sequence).await?
            {
                let Some(meaning) = executed.and_then(|executed| kind.after(executed)) else { continue };
                *kind = meaning;
            }
            explained.push(event);
        }
        Ok(explained)
    }

    /// The redemption debited under a number. `None` if nothing is executed, `Some(None)` if that is no redemption.
    async fn executed(
        &self,
        reads: &Reads,
        account_id: AccountId,
        sequence: SequenceNumber,
    ) -> Result<Option<Option<ExecutedRedemption>>, ShardsEnded> {
        // Debited at the base: pruned, or, since a recovery, behind a gap under a number that is void.
        if let Some(unpaid) = reads.history_reader().unpaid(account_id, sequence) {
            return Ok(Some(Some(self.redeemed(&unpaid.redemption))));
        }
        let (reply, account) = oneshot::channel();
        send(reads.handle(), Command::ReadAccount(account_id, reply)).await?;
        let sent = account.await.map_err(|_| ShardsEnded)?.sent;
        if sequence.0 >= sent.count() {
            return Ok(None);
        }
        let certificate = loop {
            match reads.certificate(account_id, sent.clone(), sequence).await {
                Ok(certificate) => break certificate,
                // Of what is pruned, only an unpaid redemption can be paid or credited back.
                Err(ReadError::Pruned(_)) => return Ok(Some(None)),
                // Logged by the reader. Going on without it could leave a redemption debited that is never paid.
                Err(ReadError::Busy | ReadError::Unreadable) => tokio::time::sleep(DISK_PAUSE).await,
                Err(ReadError::Stopping) => return Err(ShardsEnded),
            }
        };
        // A void number has no certificate.
        let Some(certificate) = certificate else { return Ok(None) };
        Ok(Some(match &certificate.order.transfer {
            Transfer::Redemption(redemption) => Some(self.redeemed(redemption)),
            _ => None,
        }))
    }

    fn redeemed(&self, redemption: &Redemption) -> ExecutedRedemption {
        let digest = self.domain.transfer_digest(&redemption.clone().into());
        ExecutedRedemption { digest, asset: redemption.asset, amount: redemption.amount }
    }

    /// The index up to which every shard has applied its events.
    pub(crate) async fn synchronized(&self) -> Result<TransactionIndex, ShardsEnded> {
        let mut least = None;
        for shard in &self.shards {
            let applied = synchronize(shard.handle(), Vec::new()).await?;
            least = Some(least.map_or(applied, |least: TransactionIndex| least.min(applied)));
        }
        least.ok_or(ShardsEnded)
    }
}

/// The steps that bring a shard from `after` to `up_to`: one to each event of its own accounts, and a last one over the
/// events of other shards.
fn steps_for(after: TransactionIndex, own: &[ShardEvent], up_to: TransactionIndex) -> Vec<OrderStep> {
    let mut steps = Vec::new();
    let mut at = after;
    for event in own {
        let step = event.step(at);
        at = step.up_to();
        steps.push(step);
    }
    if at < up_to {
        steps.push(OrderStep::Deposit(SynchronizationOrder { after: at, up_to, deposit: None }));
    }
    steps
}

async fn synchronize(handle: &ShardHandle, steps: Vec<OrderStep>) -> Result<TransactionIndex, ShardsEnded> {
    let (reply, answer) = oneshot::channel();
    send(handle, Command::Synchronize(steps, reply)).await?;
    answer.await.map_err(|_| ShardsEnded)
}

/// Sends a command, and waits while the shard's queue is full.
async fn send(handle: &ShardHandle, mut command: Command) -> Result<(), ShardsEnded> {
    loop {
        match handle.try_send(command) {
            Ok(()) => return Ok(()),
            Err(TrySendError::Disconnected(_)) => return Err(ShardsEnded),
            Err(TrySendError::Full(back)) => {
                command = back;
                tokio::time::sleep(PAUSE).await;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::authority::metrics::Metrics;
    use crate::authority::shard::{AppliedCredits, ShardLimits, recover};
    use crate::authority::storage::{Journal, JournalOptions, JournalWrite, ShardFolders};
    use fastpay_core::{
        Amount, Asset, Balance, Base, BaseAccount, BaseLedger, Digest, PrimaryAddress, Record, Unlock, UnlockOutcome,
    };

    #[test]
    fn every_shard_gets_its_own_events_and_steps_over_the_others() {
        let layout = ShardLayout::new(2.try_into().unwrap());
        let events: Vec<ShardEvent> = (1..=40_u8)
            .map(|number| {
                let (index, account) =
                    (TransactionIndex(u64::from(number) + 7), AccountId::from_ed25519(&[number; 32]));
                if number % 10 == 0 {
                    let (epoch, after) = (Epoch(number.into()), index);
                    let installation =
                        Installation { after, index, epoch, compromised_since: epoch, voidable_at: u64::MAX };
                    return ShardEvent::Installation(installation);
                }
                if number % 3 == 0 {
                    let (sequence, kind) = (SequenceNumber(number.into()), UnlockEventKind::Voided);
                    return ShardEvent::Unlock { index, account, sequence, kind };
                }
                let (asset, amount) = (Asset::ETHER, Amount(1));
                ShardEvent::Deposit(Deposit { index, recipient: account, asset, amount })
            })
            .collect();
        let mut seen = 0;
        for shard in layout.shards() {
            let is_own = |event: &&ShardEvent| event.account().is_none_or(|owner| layout.shard_of(owner) == shard);
            let own: Vec<_> = events.iter().filter(is_own).cloned().collect();
            let steps = steps_for(TransactionIndex(7), &own, TransactionIndex(47));
            let mut at = TransactionIndex(7);
            for step in &steps {
                let (after, owner) = match step {
                    OrderStep::Deposit(order) => (order.after, order.deposit.as_ref().map(|deposit| deposit.recipient)),
                    OrderStep::Unlock(event) => (event.after, Some(event.account)),
                    OrderStep::Installation(installation) => (installation.after, None),
                };
                assert_eq!(after, at);
                assert!(step.up_to() > at);
                at = step.up_to();
                assert!(owner.is_none_or(|owner| layout.shard_of(&owner) == shard));
                if let Some(event) = events.iter().find(|event| event.index() == at) {
                    let is_own = event.account().is_none_or(|owner| layout.shard_of(owner) == shard);
                    assert!(!is_own || event.step(after) == *step);
                    seen += usize::from(is_own);
                }
            }
            assert_eq!(at, TransactionIndex(47));
        }
        // An installation concerns both shards.
        assert_eq!(seen, events.len() + 4);
        assert!(steps_for(TransactionIndex(47), &[], TransactionIndex(47)).is_empty());
    }

    #[tokio::test]
    async fn what_a_recovery_debited_behind_a_gap_is_known_as_debited_and_credited_back_if_it_is_released() {
        let (layout, account, sequence) =
            (ShardLayout::new(1.try_into().unwrap()), AccountId([7; 32]), SequenceNumber(2));
        let redemption = fastpay_testkit::redemption(account, PrimaryAddress::repeat_byte(9), 20, sequence.0);
        let ledger = BaseLedger {
            number: 1,
            checkpoint: Digest::ZERO,
            generation: 1,
            synchronized: TransactionIndex(1),
            epoch: Epoch(1),
            compromised: vec![(Epoch(0), Epoch(1))],
            redemptions: 0,
        };
        let balances = [(Asset::ETHER, Balance::from(Amount(80)))].into_iter().collect();
        let (checkpoint, next) = (1, SequenceNumber(1));
        let held = BaseAccount { account, checkpoint, next, received: 0, deposits: 0, balances };
        let unlock = Unlock { outcome: Some(UnlockOutcome::Voided), ..Unlock::default() };
        let base = [
            Base::Checkpoint(ledger),
            Base::Account(held),
            Base::Unpaid { redemption: redemption.clone(), logged: None },
            Base::Number { account, sequence, unlock },
        ];
        let folder = tempfile::tempdir().unwrap();
        let folders =
            ShardFolders { journal: folder.path().join("journal"), checkpoint: folder.path().join("checkpoint") };
        std::fs::create_dir(&folders.journal).unwrap();
        let mut journal = Journal::create(&folders.journal, JournalOptions::default()).unwrap();
        for base in base {
            journal.append(&borsh::to_vec(&Record::Base(Box::new(base))).unwrap()).unwrap();
        }
        journal.commit().unwrap();
        drop(journal);
        let (limits, applied) = (ShardLimits::default(), AppliedCredits::new(layout));
        let recovered = recover(&folders, ShardId(0), layout, true, &limits, &applied).unwrap();
        let metrics = Metrics::new(1);
        let (handle, _queue) = ShardHandle::new(&limits, metrics.shards[0].clone());
        let sink = DepositSink::new(Domain::new(1, PrimaryAddress::ZERO), layout, &[(handle, recovered.history())]);

        let debited = sink.executed(&sink.shards[0], account, sequence).await.ok().flatten().flatten().unwrap();
        assert_eq!(debited, sink.redeemed(&redemption));
        let meaning = |kind: UnlockEventKind| kind.after(debited);
        let back = UnlockEventKind::CreditedBack(Asset::ETHER, Amount(20));
        assert_eq!(meaning(UnlockEventKind::Released(debited.digest)), Some(back));
        assert_eq!(meaning(UnlockEventKind::Spent(debited.digest)), None, "it is paid");
    }
}
