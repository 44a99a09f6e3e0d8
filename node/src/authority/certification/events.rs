//! The Primary's events, as a segment holds them. Those of a contract are read from the configured Ethereum nodes as the
//! follower reads them, from final blocks on which all nodes agree; those of a committee on a ledger, from certified
//! groups (`ledger`). Without a Primary they are the deposits of the genesis.

mod ledger;

use std::ops::RangeInclusive;
use std::path::Path;
use std::time::Duration;

use fastpay_core::checkpoint::{InstalledCommittee, PrimaryEvent, PrimaryEventKind};
use fastpay_core::{
    AccountId, Authority, AuthorityName, Committee, Deposit, Domain, Epoch, PrimaryAddress, PrimaryView,
    SequenceNumber, TransactionIndex, is_unlock_authorized,
};
use fastpay_ethereum::{Cursor, DepositBatch, DepositReader, OrderEvent, Primary, PrimaryConfig, RANGE_BLOCKS_DEFAULT};
use fastpay_program::{Clock, files};
use serde::{Deserialize, Serialize};

use super::{CheckpointError, Inputs, Progress};
use crate::authority::deployment::Deployment;
use crate::authority::shard::ChainTime;

/// Beside the archive's checkpoints: up to where the chain need not be read again.
const CURSOR_FILE: &str = "chain.json";
/// A failing Primary is asked so often before the command gives up: long enough for a provider's rate limit.
const TRIES_MAX: u32 = 5;
/// The wait after the first failure; it doubles.
const RETRY_WAIT: Duration = Duration::from_secs(1);
/// Progress is told each time so many blocks are read.
const TOLD_BLOCKS: u64 = 100_000;

/// What is handed each event with the blocks among which it was read.
type Seen<'a> = &'a mut dyn FnMut(&OrderEvent, RangeInclusive<u64>);

/// All final events after an index, in their order. The newest final block must be recent by the clock: on an old view of
/// the chain, nobody knows which epoch it is, and whether its keys are out (`cut-lag` in docs/MODEL.md).
pub(super) async fn read(
    deployment: &Deployment,
    after: TransactionIndex,
    inputs: Inputs<'_>,
    told: Progress<'_>,
) -> Result<Vec<PrimaryEvent>, CheckpointError> {
    Ok(read_with_time(deployment, after, inputs, told).await?.0)
}

/// The same, and the time of the newest final block, up to which there are no others; `None` without a chain.
pub(crate) async fn read_with_time(
    deployment: &Deployment,
    after: TransactionIndex,
    Inputs { archive, clock, .. }: Inputs<'_>,
    told: Progress<'_>,
) -> Result<(Vec<PrimaryEvent>, Option<ChainTime>), CheckpointError> {
    match deployment {
        Deployment::StandAlone(genesis) => {
            let deposits = genesis.deposits().filter(|deposit| deposit.index > after);
            Ok((deposits.map(of_deposit).collect(), None))
        }
        Deployment::OnLedger { ledger, .. } => {
            let (events, time) = ledger::read(ledger, after, &archive.join(CURSOR_FILE), clock, told).await?;
            Ok((events, Some(time)))
        }
        Deployment::OnPrimary { config, .. } => {
            let cursor_file = archive.join(CURSOR_FILE);
            let (events, time) = read_chain(config, after, Some(&cursor_file), clock, told, &mut |_, _| ()).await?;
            Ok((events, Some(time)))
        }
    }
}

/// All final events of a contract, each handed to `seen` with the blocks among which it was read.
pub(crate) async fn read_all(
    config: &PrimaryConfig,
    clock: Clock,
    told: Progress<'_>,
    seen: Seen<'_>,
) -> Result<Vec<PrimaryEvent>, CheckpointError> {
    Ok(read_chain(config, TransactionIndex(0), None, clock, told, seen).await?.0)
}

/// Reads from the block up to which an earlier run needed no event any more, or from the contract's first one.
async fn read_chain(
    config: &PrimaryConfig,
    after: TransactionIndex,
    cursor_file: Option<&Path>,
    clock: Clock,
    told: Progress<'_>,
    seen: Seen<'_>,
) -> Result<(Vec<PrimaryEvent>, ChainTime), CheckpointError> {
    let primary = Primary::connect(config.clone()).await?;
    let domain = primary.domain();
    let stored = cursor_file.and_then(StoredCursor::read).filter(|stored| stored.is_of(&domain, after));
    let stored = stored.map(|stored| stored.cursor);
    let (events, time, needless) = read_over(primary, stored, after, clock, told, seen).await?;
    if let (Some(cursor), Some(file)) = (needless, cursor_file) {
        StoredCursor::new(&domain, cursor, 0).write(file);
    }
    Ok((events, time))
}

/// All final events after an index, over a connection of the caller's choice, and the time of the newest final block.
/// Each is handed to `seen` with the blocks among which it was read.
///
/// Reads on from a cursor, or from the contract's first block; returns the cursor from which no event up to the index has
/// to be read again.
///
/// # Errors
/// See [`CheckpointError`].
pub async fn read_over<T: FnMut(String) + ?Sized, S: FnMut(&OrderEvent, RangeInclusive<u64>) + ?Sized>(
    primary: Primary,
    stored: Option<Cursor>,
    after: TransactionIndex,
    clock: Clock,
    told: &mut T,
    seen: &mut S,
) -> Result<(Vec<PrimaryEvent>, ChainTime, Option<Cursor>), CheckpointError> {
    let domain = primary.domain();
    let mut reader = DepositReader::new(primary, RANGE_BLOCKS_DEFAULT);
    let unlock_window = reader.unlock_window().await?;
    let mut cursor = match stored {
        Some(stored) => stored,
        None => reader.start().await?,
    };
    let mut needless = None;
    let (mut events, mut told_at) = (Vec::new(), cursor.block_number);
    loop {
        let batch = next(&mut reader, &cursor, told).await?;
        let blocks = cursor.block_number.saturating_add(1)..=batch.cursor.block_number;
        for event in batch.events.iter().filter(|event| event.index() > after) {
            seen(event, blocks.clone());
            events.push(convert(event, &domain)?);
        }
        cursor = batch.cursor;
        needless = if cursor.last_index <= after { Some(cursor) } else { needless };
        if cursor.block_number.saturating_sub(told_at) >= TOLD_BLOCKS {
            told_at = cursor.block_number;
            told(format!("read the chain up to block {told_at} of {}", batch.final_block));
        }
        if cursor.block_number >= batch.final_block {
            let time = ChainTime { block_time: batch.final_time, unlock_window };
            check_recent(time, clock)?;
            return Ok((events, time, needless));
        }
    }
}

fn check_recent(time: ChainTime, clock: Clock) -> Result<(), CheckpointError> {
    match time.view(clock.now_ms()) {
        PrimaryView::Recent => Ok(()),
        PrimaryView::TooOld => Err(CheckpointError::ChainTooOld { block_time: time.block_time }),
    }
}

/// Up to where the Primary was read, and no event is needed any more. Losing it only costs time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
struct StoredCursor {
    chain_id: u64,
    contract: PrimaryAddress,
    cursor: Cursor,
    /// The time there, in seconds since 1970, if the Primary is a ledger: no group may follow.
    #[serde(default)]
    time: u64,
}

impl StoredCursor {
    fn new(domain: &Domain, cursor: Cursor, time: u64) -> Self {
        Self { chain_id: domain.chain_id(), contract: domain.contract(), cursor, time }
    }

    fn read(file: &Path) -> Option<Self> {
        serde_json::from_slice(&std::fs::read(file).ok()?).ok()
    }

    /// Whether the events after an index can be read from it.
    fn is_of(&self, domain: &Domain, after: TransactionIndex) -> bool {
        (self.chain_id, self.contract) == (domain.chain_id(), domain.contract()) && self.cursor.last_index <= after
    }

    fn write(&self, file: &Path) {
        let written = serde_json::to_vec(self).map_err(std::io::Error::from);
        if let Err(error) = written.and_then(|bytes| files::replace(file, &bytes)) {
            tracing::warn!(%error, file = %file.display(), "cannot store how far the chain was read");
        }
    }
}

/// How often a failing Primary was asked, and how long the next wait is.
struct Patience {
    tries: u32,
    wait: Duration,
}

impl Patience {
    fn new() -> Self {
        Self { tries: 1, wait: RETRY_WAIT }
    }

    /// Waits before another try, unless there were enough.
    async fn wait<T: FnMut(String) + ?Sized>(&mut self, error: &impl std::fmt::Display, told: &mut T) -> bool {
        if self.tries >= TRIES_MAX {
            return false;
        }
        told(format!("{error}; trying again in {} s", self.wait.as_secs()));
        tokio::time::sleep(self.wait).await;
        (self.tries, self.wait) = (self.tries.saturating_add(1), self.wait.saturating_mul(2));
        true
    }
}

async fn next<T: FnMut(String) + ?Sized>(
    reader: &mut DepositReader,
    cursor: &Cursor,
    told: &mut T,
) -> Result<DepositBatch, CheckpointError> {
    let mut patience = Patience::new();
    loop {
        match reader.next(cursor).await {
            Ok(batch) => return Ok(batch),
            Err(error) if !error.is_retryable() => return Err(error.into()),
            Err(error) if patience.wait(&error, told).await => {}
            Err(error) => return Err(error.into()),
        }
    }
}

fn of_deposit(deposit: Deposit) -> PrimaryEvent {
    let Deposit { index, recipient, asset, amount } = deposit;
    PrimaryEvent { index, kind: PrimaryEventKind::Deposit { recipient, asset, amount } }
}

fn convert(event: &OrderEvent, domain: &Domain) -> Result<PrimaryEvent, CheckpointError> {
    if let Some(deposit) = event.deposit() {
        return Ok(of_deposit(deposit));
    }
    let slot = |account: &[u8; 32], sequence: u64| (AccountId(*account), SequenceNumber(sequence));
    let kind = match event {
        OrderEvent::Funded(_) => unreachable!("it is a deposit"),
        OrderEvent::CommitteeInstalled(installed) => {
            let epoch = Epoch(installed.epoch);
            let members = installed.authorities.iter().map(|member| Authority {
                name: AuthorityName(member.votingKey.0),
                redemption_key: member.redemptionKey,
            });
            let committee = Committee::new(epoch, members.collect())
                .map_err(|error| CheckpointError::Installation { epoch, error })?;
            let (compromised_since, checkpoint) = (Epoch(installed.compromisedSince), installed.checkpoint);
            PrimaryEventKind::Installed(InstalledCommittee { committee, compromised_since, checkpoint })
        }
        OrderEvent::UnlockRequested(request) => {
            let (account, sequence) = slot(&request.account, request.sequence);
            let is_authorized = is_unlock_authorized(domain, account, sequence, &request.authorization);
            PrimaryEventKind::UnlockRequested { account, sequence, is_authorized }
        }
        OrderEvent::SequenceUpheld(upheld) => {
            let (account, sequence) = slot(&upheld.account, upheld.sequence);
            PrimaryEventKind::Upheld { account, sequence, digest: upheld.digest }
        }
        OrderEvent::SequenceVoided(voided) => {
            let (account, sequence) = slot(&voided.account, voided.sequence);
            PrimaryEventKind::Voided { account, sequence }
        }
        OrderEvent::Redeemed(paid) => {
            let (account, sequence) = slot(&paid.sender, paid.sequence);
            PrimaryEventKind::Redeemed { account, sequence, digest: paid.digest }
        }
        OrderEvent::RedemptionQueued(queued) => {
            let (account, sequence) = slot(&queued.sender, queued.sequence);
            PrimaryEventKind::Queued { account, sequence, digest: queued.digest }
        }
        OrderEvent::RedemptionReleased(released) => {
            let (account, sequence) = slot(&released.sender, released.sequence);
            PrimaryEventKind::Released { account, sequence, digest: released.digest }
        }
    };
    Ok(PrimaryEvent { index: event.index(), kind })
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::Digest;
    use fastpay_ethereum::{ContractAuthority, IFastPay};
    use fastpay_testkit::TestCommittee;

    #[test]
    fn the_chain_is_read_on_from_a_stored_cursor_of_this_contract_alone() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join(CURSOR_FILE);
        let contract = PrimaryAddress::repeat_byte(1);
        let domain = Domain::new(7, contract);
        let cursor = Cursor { block_number: 9, block_hash: Default::default(), last_index: TransactionIndex(5) };
        let stored = StoredCursor::new(&domain, cursor, 4);
        assert_eq!(StoredCursor::read(&file), None);
        stored.write(&file);
        assert_eq!(StoredCursor::read(&file), Some(stored));
        assert!(stored.is_of(&domain, TransactionIndex(5)));
        assert!(!stored.is_of(&domain, TransactionIndex(4)), "events would be missing");
        for other in [Domain::new(8, contract), Domain::new(7, PrimaryAddress::ZERO)] {
            assert!(!stored.is_of(&other, TransactionIndex(5)));
        }
        // As it was written before ledgers.
        let earlier = serde_json::json!({ "chain_id": 7, "contract": contract, "cursor": cursor });
        std::fs::write(&file, earlier.to_string()).unwrap();
        assert_eq!(StoredCursor::read(&file), Some(StoredCursor::new(&domain, cursor, 0)));
        std::fs::write(&file, "{}").unwrap();
        assert_eq!(StoredCursor::read(&file), None);
    }

    fn installed(authorities: Vec<ContractAuthority>) -> OrderEvent {
        OrderEvent::CommitteeInstalled(IFastPay::CommitteeInstalled {
            index: 7,
            epoch: 1,
            authorities,
            guardian: PrimaryAddress::ZERO,
            previousEpochEnds: Default::default(),
            compromisedSince: 0,
            checkpoint: Digest::repeat_byte(4),
        })
    }

    #[test]
    fn an_installation_names_a_committee_and_what_was_out() {
        let next = TestCommittee::new(4).rotated();
        let member = |member: &Authority| ContractAuthority {
            votingKey: member.name.0.into(),
            redemptionKey: member.redemption_key,
        };
        let event = installed(next.committee.members().iter().map(member).collect());
        let kind = PrimaryEventKind::Installed(InstalledCommittee {
            committee: next.committee,
            compromised_since: Epoch(0),
            checkpoint: Digest::repeat_byte(4),
        });
        let expected = PrimaryEvent { index: TransactionIndex(7), kind };
        assert_eq!(convert(&event, &next.domain).unwrap(), expected);
        let error = convert(&installed(Vec::new()), &next.domain).unwrap_err();
        assert!(matches!(error, CheckpointError::Installation { epoch: Epoch(1), .. }), "{error}");
    }

    #[test]
    fn what_the_contract_paid_queued_and_released_is_told_apart() {
        let (sender, digest) = (Digest::repeat_byte(1), Digest::repeat_byte(2));
        let (account, sequence, address) = (AccountId(sender.0), SequenceNumber(3), PrimaryAddress::ZERO);
        let paid = IFastPay::Redeemed {
            sender,
            recipient: address,
            asset: address,
            index: 1,
            sequence: 3,
            amount: 2,
            fee: 1,
            relayer: address,
            digest,
        };
        let queued = IFastPay::RedemptionQueued {
            sender,
            recipient: address,
            asset: address,
            index: 2,
            sequence: 3,
            amount: 2,
            fee: 1,
            relayer: address,
            digest,
            epoch: 0,
            executableAt: Default::default(),
        };
        let released = IFastPay::RedemptionReleased { sender, index: 3, sequence: 3, digest };
        let events = [
            OrderEvent::Redeemed(paid),
            OrderEvent::RedemptionQueued(queued),
            OrderEvent::RedemptionReleased(released),
        ];
        let kinds = events.map(|event| convert(&event, &TestCommittee::new(4).domain).unwrap().kind);
        assert_eq!(
            kinds,
            [
                PrimaryEventKind::Redeemed { account, sequence, digest },
                PrimaryEventKind::Queued { account, sequence, digest },
                PrimaryEventKind::Released { account, sequence, digest },
            ]
        );
    }
}
