//! A shard's state apart from its accounts: its position in the Primary's events, its redemption log, the credits
//! between it and its sibling shards, and totals for auditors.

use std::collections::{BTreeMap, VecDeque};
use std::io::{Read, Result, Write};
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};

use crate::Digest;
use crate::amount::{Amount, Asset, Balance, Epoch, SequenceNumber, TransactionIndex};
use crate::base::LedgerBase;
use crate::certificate::Certificate;
use crate::handover::Tenure;
use crate::history::{History, JournalPosition};
use crate::identity::{AccountId, ShardId};
use crate::private::Pool;
use crate::record::CrossShardCredit;
use crate::unlock::{Installation, Unlock, UnlockOutcome};

/// Credits for one other shard that it has not yet acknowledged.
#[derive(Clone, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Outbox {
    /// The number of the newest credit; 0 before the first.
    pub issued: u64,
    /// Oldest first, numbered without gap up to `issued`.
    pub waiting: VecDeque<CrossShardCredit>,
}

impl Outbox {
    /// The number of the newest credit that the other shard has acknowledged; 0 before the first. That shard has all
    /// credits up to here on disk, and this one no longer keeps them.
    #[must_use]
    pub fn acknowledged(&self) -> u64 {
        self.issued.saturating_sub(self.waiting.len() as u64)
    }
}

/// Totals of one asset in this shard. `accounts` is summed from the changes of accounts, independently of the other
/// four, so that `accounts = deposited + credited − forwarded − redeemed` can be checked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct AssetTotals {
    /// The sum of all balances held here.
    pub accounts: Balance,
    /// The sum of all deposits credited here.
    pub deposited: Balance,
    /// The sum of all credits that came from other shards.
    pub credited: Balance,
    /// The sum of all payments that left for other shards.
    pub forwarded: Balance,
    /// The sum of all redemptions confirmed here.
    pub redeemed: Balance,
}

/// A shard's state besides its accounts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ShardLedger {
    /// All deposits of this shard's accounts up to this index are applied.
    pub synchronized: TransactionIndex,
    /// The redemption certificates confirmed here, in order.
    pub redemptions: History,
    /// Per other shard, the credits on their way to it.
    pub outboxes: BTreeMap<ShardId, Outbox>,
    /// Per other shard, the number of the newest credit from it that is applied here.
    pub inboxes: BTreeMap<ShardId, u64>,
    /// Per asset, for auditors.
    pub totals: BTreeMap<Asset, AssetTotals>,
    /// The numbers that the contract was asked to unlock or has spent and that are not executed here, those that are
    /// void, and those of which a certificate waits.
    pub unlocks: Unlocks,
    /// The epochs that are closed and joined here, and the locks that were inherited.
    pub tenure: Tenure,
    /// Private transfers that are not executed. Only the shard of the pool has any.
    pub pool: Pool,
    /// What the journal begins with; none if it begins with the first record.
    pub base: Option<Arc<LedgerBase>>,
}

/// Stands where a release without private transfers wrote what follows the pool here.
const WITH_POOL: [u8; 4] = [u8::MAX, u8::MAX, u8::MAX, u8::MAX - 1];
/// Stands where an earlier release, which knew of no tenure, wrote [`WITH_EPOCHS`] or how many numbers follow.
const WITH_TENURE: [u8; 4] = [u8::MAX; 4];

/// `pool`, `tenure`, `unlocks` and `base` are written only where they say something, so that a checkpoint of an earlier release is
/// read.
impl BorshSerialize for ShardLedger {
    fn serialize<W: Write>(&self, writer: &mut W) -> Result<()> {
        (self.synchronized, &self.redemptions, &self.outboxes, &self.inboxes, &self.totals).serialize(writer)?;
        if !self.pool.is_empty() {
            (WITH_POOL, &self.pool).serialize(writer)?;
        }
        if self.tenure != Tenure::default() {
            (WITH_TENURE, &self.tenure).serialize(writer)?;
        }
        if self.unlocks != Unlocks::default() || self.base.is_some() {
            self.unlocks.serialize(writer)?;
        }
        self.base.iter().try_for_each(|base| base.serialize(writer))
    }
}

impl BorshDeserialize for ShardLedger {
    fn deserialize_reader<R: Read>(reader: &mut R) -> Result<Self> {
        let (synchronized, redemptions, outboxes, inboxes, totals) = BorshDeserialize::deserialize_reader(reader)?;
        let mut first = [0];
        let mut marker = read_marker(reader)?;
        let mut pool = Pool::default();
        if marker == Some(WITH_POOL) {
            pool = Pool::deserialize_reader(reader)?;
            marker = read_marker(reader)?;
        }
        let (tenure, unlocks) = match marker {
            None => Default::default(),
            Some(WITH_TENURE) => (Tenure::deserialize_reader(reader)?, Unlocks::deserialize_reader(reader)?),
            Some(marker) => {
                (Tenure::default(), Unlocks::deserialize_reader(&mut marker.as_slice().chain(&mut *reader))?)
            }
        };
        let base = match reader.read(&mut first)? {
            0 => None,
            _ => Some(Arc::deserialize_reader(&mut first.as_slice().chain(reader))?),
        };
        Ok(Self { synchronized, redemptions, outboxes, inboxes, totals, unlocks, tenure, pool, base })
    }
}

/// The next four bytes; none at the end.
fn read_marker(reader: &mut impl Read) -> Result<Option<[u8; 4]>> {
    let mut marker = [0; 4];
    let [start, rest @ ..] = &mut marker;
    if reader.read(std::slice::from_mut(start))? == 0 {
        return Ok(None);
    }
    reader.read_exact(rest)?;
    Ok(Some(marker))
}

/// What the contract's order says of numbers, and of epochs.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Unlocks {
    /// The epoch of the newest event that is applied.
    epoch: Epoch,
    /// Earlier epochs whose keys were out: from the key on, below the value. One range for each installation that named
    /// any, however many epochs it names.
    compromised: BTreeMap<Epoch, Epoch>,
    /// By account and sequence number.
    numbers: BTreeMap<(AccountId, SequenceNumber), Unlock>,
}

impl Unlocks {
    /// Whether nothing is known of any number.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.numbers.is_empty()
    }

    /// The epoch of the newest event of the contract's order that is applied here.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// Whether keys were out of an epoch, which ended before `current` began, or may have been: whoever installed the
    /// committee of `current` said so in an event that may not be applied here yet.
    #[must_use]
    pub fn is_suspect(&self, epoch: Epoch, current: Epoch) -> bool {
        self.is_compromised(epoch) || (epoch < current && self.epoch < current)
    }

    /// Whether an installation that is applied here says that keys of the epoch were out.
    #[must_use]
    pub fn is_compromised(&self, epoch: Epoch) -> bool {
        self.compromised.range(..=epoch).any(|(_, until)| epoch < *until)
    }

    /// The unlock state of a number.
    #[must_use]
    pub fn get(&self, account: AccountId, sequence: SequenceNumber) -> Option<&Unlock> {
        // Most shards have none, and each order asks.
        if self.is_empty() { None } else { self.numbers.get(&(account, sequence)) }
    }

    /// As a base says of epochs, without any number.
    pub(crate) fn at_base(epoch: Epoch, compromised: BTreeMap<Epoch, Epoch>) -> Self {
        Self { epoch, compromised, numbers: BTreeMap::new() }
    }

    /// All of them, by account and number.
    pub fn iter(&self) -> impl Iterator<Item = (AccountId, SequenceNumber, &Unlock)> {
        self.numbers.iter().map(|((account, sequence), unlock)| (*account, *sequence, unlock))
    }

    /// The account of each number that the contract has decided, in order.
    pub fn decided(&self) -> impl Iterator<Item = AccountId> {
        self.iter().filter(|(.., unlock)| unlock.outcome.is_some()).map(|(account, ..)| account)
    }

    /// Whether the contract voided the number.
    #[must_use]
    pub fn is_voided(&self, account: AccountId, sequence: SequenceNumber) -> bool {
        self.get(account, sequence).is_some_and(Unlock::is_voided)
    }

    pub(crate) fn entry(&mut self, account: AccountId, sequence: SequenceNumber) -> &mut Unlock {
        self.numbers.entry((account, sequence)).or_default()
    }

    /// Begins an epoch, and opens again what was decided in those whose keys were out.
    pub(crate) fn install(&mut self, installation: &Installation) {
        let Installation { epoch, compromised_since, voidable_at, .. } = *installation;
        if self.epoch.0.checked_add(1) != Some(epoch.0) {
            self.note_unnoticed(epoch);
        }
        self.epoch = epoch;
        if compromised_since < epoch {
            // A later installation that names the same first epoch ends later.
            self.compromised.insert(compromised_since, epoch);
            self.numbers.values_mut().for_each(|unlock| unlock.reopen(compromised_since, voidable_at));
        }
    }

    /// An earlier release stepped over the installations between the last epoch known here and `next`. What it noted may be
    /// of any epoch between them, and keys of each may have been out.
    fn note_unnoticed(&mut self, next: Epoch) {
        let last = Epoch(next.0.saturating_sub(1));
        for unlock in self.numbers.values_mut() {
            unlock.spent_in = unlock.spent_in.map(|_| last);
            unlock.upheld_in = unlock.upheld_in.map(|_| last);
        }
        self.compromised.insert(self.epoch, next);
    }

    /// Forgets all of a number but on what the contract spent it.
    pub(crate) fn keep_spent(&mut self, account: AccountId, sequence: SequenceNumber) {
        let unlock = self.entry(account, sequence);
        *unlock = Unlock { spent: unlock.spent, ..Unlock::default() };
    }

    /// Forgets a number that is executed.
    pub(crate) fn remove(&mut self, account: AccountId, sequence: SequenceNumber) {
        if !self.is_empty() {
            self.numbers.remove(&(account, sequence));
        }
    }
}

/// Stands where an earlier release, which knew of no epochs, wrote how many numbers follow: at least one.
const WITH_EPOCHS: u32 = 0;

impl BorshSerialize for Unlocks {
    fn serialize<W: Write>(&self, writer: &mut W) -> Result<()> {
        (WITH_EPOCHS, self.epoch, &self.compromised, &self.numbers).serialize(writer)
    }
}

impl BorshDeserialize for Unlocks {
    fn deserialize_reader<R: Read>(reader: &mut R) -> Result<Self> {
        let mut first = [0];
        if reader.read(&mut first)? == 0 {
            return Ok(Self::default());
        }
        let count = u32::deserialize_reader(&mut first.as_slice().chain(&mut *reader))?;
        if count == WITH_EPOCHS {
            let (epoch, compromised, numbers) = BorshDeserialize::deserialize_reader(reader)?;
            return Ok(Self { epoch, compromised, numbers });
        }
        let of_earlier_release = (0..count).map(|_| {
            let (number, earlier) = <(_, EarlierUnlock)>::deserialize_reader(reader)?;
            Ok((number, earlier.into()))
        });
        Ok(Self { numbers: of_earlier_release.collect::<Result<_>>()?, ..Self::default() })
    }
}

/// An [`Unlock`] as it was written before it named an epoch.
#[derive(BorshDeserialize)]
struct EarlierUnlock {
    voidable_at: Option<u64>,
    seen: Option<Arc<Certificate>>,
    void_voted: Option<Epoch>,
    spent: Option<Digest>,
    outcome: Option<UnlockOutcome>,
}

impl From<EarlierUnlock> for Unlock {
    fn from(earlier: EarlierUnlock) -> Self {
        let EarlierUnlock { voidable_at, seen, void_voted, spent, outcome } = earlier;
        let spent_in = spent.is_some().then_some(Epoch(0));
        let upheld_in = matches!(outcome, Some(UnlockOutcome::Upheld(_))).then_some(Epoch(0));
        Self { voidable_at, seen, void_voted, spent, outcome, spent_in, upheld_in }
    }
}

impl ShardLedger {
    pub(crate) fn totals_mut(&mut self, asset: Asset) -> &mut AssetTotals {
        self.totals.entry(asset).or_default()
    }

    /// Puts a credit into the outbox for `to`.
    pub(crate) fn forward(&mut self, to: ShardId, credit: CrossShardCredit) {
        let asset = credit.asset();
        let total = credit.receipts().fold(Balance::ZERO, |sum, paid| sum.credit(paid.payment.amount));
        let outbox = self.outboxes.entry(to).or_default();
        outbox.issued = credit.number;
        outbox.waiting.push_back(credit);
        let totals = self.totals_mut(asset);
        totals.forwarded = totals.forwarded.plus(total);
    }

    /// The number that the next credit for `to` will have.
    pub(crate) fn next_credit(&self, to: ShardId) -> u64 {
        self.outboxes.get(&to).map_or(0, |outbox| outbox.issued).wrapping_add(1)
    }

    /// The number of the newest credit from `from` that is applied here.
    #[must_use]
    pub fn inbox(&self, from: ShardId) -> u64 {
        self.inboxes.get(&from).copied().unwrap_or_default()
    }

    /// Forgets the credits for `to` up to `number`, which that shard has durably applied.
    pub fn acknowledge(&mut self, to: ShardId, number: u64) {
        if let Some(outbox) = self.outboxes.get_mut(&to) {
            while outbox.waiting.front().is_some_and(|credit| credit.number <= number) {
                outbox.waiting.pop_front();
            }
        }
    }

    /// Adds a redemption to the redemption log.
    pub(crate) fn redeem(&mut self, asset: Asset, amount: Amount, position: JournalPosition) {
        self.redemptions.push(position);
        let totals = self.totals_mut(asset);
        totals.redeemed = totals.redeemed.credit(amount);
    }
}
