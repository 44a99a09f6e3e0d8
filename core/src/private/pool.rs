//! What a shard knows of private transfers that are not executed: which orders hold numbers of nullifiers, which
//! certificates wait, and what all of these may take from the pool. Numbers that are taken are in the histories of the
//! nullifiers' accounts ([`super::Nullifier::account`]), as those of other accounts.
//!
//! Invariants, whatever proofs say: this authority voted for one order of a number at most. It reserves what the orders
//! that hold a number may withdraw, also of those that it inherited. So certified withdrawals take at most
//! (n − f)/(q − f) times what was deposited, over all epochs (docs/PRIVATE.md, the pool's rules).

use std::cmp::Reverse;
use std::collections::BTreeSet;
use std::collections::btree_map::{BTreeMap, Entry};
use std::io::{Error, ErrorKind, Read, Result, Write};
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};

use super::order::CheckedPrivateOrder;
use super::record::{PrivateLock, PrivateSeen};
use super::transfer::PrivateTransfer;
use crate::Digest;
use crate::amount::{Amount, Asset, Balance, SequenceNumber};
use crate::identity::AccountId;
use crate::rejection::Rejection;

/// A number of a nullifier.
type Number = (AccountId, SequenceNumber);

/// The versions under which new orders are voted for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Versions {
    /// The committee's coin keys: the newest version only. Older keys are deleted, but may have been stolen.
    pub committee: u64,
    /// The oldest version of the rules that is accepted.
    pub oldest_rules: u64,
    /// The newest version of the rules.
    pub newest_rules: u64,
}

impl Versions {
    /// Why no vote is given for a new order of this transfer.
    ///
    /// # Errors
    /// [`PrivateRejection::UnknownVersion`] or [`PrivateRejection::StaleVersion`].
    pub fn admit(&self, transfer: &PrivateTransfer) -> std::result::Result<(), PrivateRejection> {
        let Self { committee, oldest_rules, newest_rules } = *self;
        if transfer.committee > committee || transfer.rules > newest_rules {
            return Err(PrivateRejection::UnknownVersion);
        }
        let is_stale = transfer.committee < committee || transfer.rules < oldest_rules;
        if is_stale { Err(PrivateRejection::StaleVersion { committee, oldest_rules }) } else { Ok(()) }
    }
}

/// Why the rules refuse an order or a certificate, with what its sender needs to continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrivateRejection {
    /// A rule that all accounts have.
    #[error(transparent)]
    Rule(#[from] Rejection),
    /// The order is proved under coin keys or rules that this authority does not have yet.
    #[error(
        "this authority does not have the version of the coin keys or rules yet; ask other authorities now, or this one \
         later"
    )]
    UnknownVersion,
    /// The order is proved under coin keys or rules that are not accepted any more.
    #[error("coin keys {committee} and rules from {oldest_rules} on are accepted; prove the order under them")]
    StaleVersion {
        /// The version of the coin keys that is accepted.
        committee: u64,
        /// The oldest version of the rules that is accepted.
        oldest_rules: u64,
    },
    /// Another order holds one of the numbers here.
    #[error("another order has locked the account or the coin here; finish that one first, or have it unlocked")]
    Locked {
        /// The order that this authority voted for or inherited. Anyone can collect its votes and finish it.
        pending: Arc<PrivateLock>,
    },
    /// A certificate has spent one of the nullifiers.
    #[error("the account or the coin was spent, by number {sequence} of {account}")]
    Spent {
        /// The nullifier's account.
        account: AccountId,
        /// The number that spent it.
        sequence: SequenceNumber,
    },
    /// The pool does not hold what the order withdraws, besides what others withdraw.
    #[error(
        "the pool here holds {available} beyond what is reserved, the order withdraws {amount}; send this authority the \
         certificates of deposits and of private transfers that it lacks"
    )]
    PoolShort {
        /// What the pool holds here, without what is reserved.
        available: Balance,
        /// What the order withdraws.
        amount: Amount,
    },
}

/// An order that holds its numbers.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
struct Held {
    lock: Arc<PrivateLock>,
    /// This authority voted for it. Otherwise it was inherited.
    is_own: bool,
}

/// See the module header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    /// The orders that hold each number, in the order of digests. Each order is here twice: it holds two numbers.
    held: BTreeMap<Number, Vec<Held>>,
    /// The certificates that wait, under each number that they take.
    seen: BTreeMap<Number, PrivateSeen>,
    /// Per asset, the sum over the numbers of account nullifiers of the most that an order of the number withdraws.
    reserved: BTreeMap<Asset, Balance>,
}

impl Pool {
    /// Whether no order holds a number, and no certificate waits.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.held.is_empty() && self.seen.is_empty()
    }

    /// What the orders that hold numbers may withdraw of an asset.
    #[must_use]
    pub fn reserved(&self, asset: Asset) -> Balance {
        self.reserved.get(&asset).copied().unwrap_or_default()
    }

    /// The same without the number that the order takes, of which no other order holds.
    pub(crate) fn reserved_beside(&self, order: &CheckedPrivateOrder) -> Balance {
        let [number, _] = order.transfer().taken();
        let asset = order.transfer().asset;
        let of_number = self.reservation(number).remove(&asset).unwrap_or_default();
        self.reserved(asset).debit(of_number)
    }

    /// The certificate that waits for a number.
    #[must_use]
    pub fn seen(&self, account: AccountId, sequence: SequenceNumber) -> Option<&PrivateSeen> {
        // Most shards have none, and each void vote asks.
        if self.seen.is_empty() { None } else { self.seen.get(&(account, sequence)) }
    }

    /// The orders that hold numbers, by number of the account nullifier and digest, and whether this authority voted for
    /// each. A Closing reports all of them.
    pub fn locks(&self) -> impl Iterator<Item = (&Arc<PrivateLock>, bool)> {
        let held = self.held.iter().flat_map(|(number, held)| held.iter().map(move |held| (number, held)));
        held.filter(|(number, held)| **number == held.lock.number()).map(|(_, held)| (&held.lock, held.is_own))
    }

    /// The certificates that wait, by number of the account nullifier.
    pub fn waiting(&self) -> impl Iterator<Item = &PrivateSeen> {
        let number = |seen: &PrivateSeen| seen.certificate.order.transfer.taken()[0];
        self.seen.iter().filter(move |(at, seen)| **at == number(seen)).map(|(_, seen)| seen)
    }

    /// The numbers of which a member that answers [`PrivateRejection::PoolShort`] asks its peers who took them: those that
    /// reserve the asset here, the largest reservation first. Whichever order took one, its certificate ends the
    /// reservation. It does not ask by digest: an owner who lets others certify another order of the number could reserve
    /// any amount here for ever.
    #[must_use]
    pub fn lacking(&self, asset: Asset) -> Vec<(AccountId, SequenceNumber)> {
        let numbers: BTreeSet<_> = self.locks().map(|(lock, _)| lock.number()).collect();
        let reserving = |number| Some((self.reservation(number).remove(&asset)?, number));
        let mut reserving: Vec<_> = numbers.into_iter().filter_map(reserving).collect();
        reserving.sort_by_key(|(amount, number)| (Reverse(*amount), *number));
        reserving.into_iter().map(|(_, number)| number).collect()
    }

    /// Whether this authority voted for the order, and nobody took its numbers since.
    #[must_use]
    pub fn has_voted(&self, order: &CheckedPrivateOrder) -> bool {
        let [number, _] = order.transfer().taken();
        self.holding(number).any(|held| held.is_own && held.lock.digest == order.digest())
    }

    /// Another order that holds one of the numbers.
    pub(crate) fn rival(&self, numbers: &[Number], digest: Digest) -> Option<&Arc<PrivateLock>> {
        let held = numbers.iter().flat_map(|number| self.holding(*number));
        held.map(|held| &held.lock).find(|lock| lock.digest != digest)
    }

    /// Whether the order holds its numbers here.
    pub(crate) fn knows(&self, lock: &PrivateLock) -> bool {
        self.holding(lock.number()).any(|held| held.lock.digest == lock.digest)
    }

    fn holding(&self, number: Number) -> impl Iterator<Item = &Held> {
        self.held.get(&number).into_iter().flatten()
    }

    /// The order holds its numbers. Of one that is inherited and voted for later, the proof that was checked is kept.
    pub(crate) fn hold(&mut self, lock: &Arc<PrivateLock>, is_own: bool) {
        self.change(&BTreeSet::from([lock.number()]), |pool| {
            for number in lock.transfer().taken() {
                let held = pool.held.entry(number).or_default();
                held.retain(|one| one.lock.digest != lock.digest);
                held.push(Held { lock: lock.clone(), is_own });
                held.sort_by_key(|one| one.lock.digest);
            }
        });
    }

    /// An order that a Closing reports holds its numbers, and reserves what it withdraws. If another one holds one of them,
    /// neither gets a vote.
    pub(crate) fn inherit(&mut self, lock: &Arc<PrivateLock>) {
        if !self.knows(lock) {
            self.hold(lock, false);
        }
    }

    /// The certificate waits.
    pub(crate) fn keep(&mut self, seen: &PrivateSeen) {
        for number in seen.certificate.order.transfer.taken() {
            self.seen.insert(number, seen.clone());
        }
    }

    /// The numbers are taken or void. An order that takes one of them is executed or never will be, so it holds its other
    /// number no longer.
    pub(crate) fn end(&mut self, numbers: &[Number]) {
        // Most shards have none, and each void number asks.
        if self.is_empty() {
            return;
        }
        let held = numbers.iter().flat_map(|number| self.holding(*number));
        let accounts: BTreeSet<_> = held.map(|held| held.lock.number()).collect();
        self.change(&accounts, |pool| {
            for number in numbers {
                for Held { lock, .. } in pool.held.remove(number).unwrap_or_default() {
                    lock.transfer().taken().into_iter().for_each(|taken| pool.release(taken, lock.digest));
                }
                if let Some(seen) = pool.seen.remove(number) {
                    let taken = seen.certificate.order.transfer.taken();
                    taken.iter().for_each(|number| drop(pool.seen.remove(number)));
                }
            }
        });
    }

    fn release(&mut self, number: Number, digest: Digest) {
        if let Entry::Occupied(mut held) = self.held.entry(number) {
            held.get_mut().retain(|one| one.lock.digest != digest);
            if held.get().is_empty() {
                held.remove();
            }
        }
    }

    /// Changes what holds these numbers of account nullifiers, and with it what is reserved.
    fn change(&mut self, numbers: &BTreeSet<Number>, change: impl FnOnce(&mut Self)) {
        let reservations =
            |pool: &Self| numbers.iter().flat_map(|number| pool.reservation(*number)).collect::<Vec<_>>();
        let before = reservations(self);
        change(self);
        let after = reservations(self);
        for (asset, amount) in after {
            let reserved = self.reserved.entry(asset).or_default();
            *reserved = reserved.credit(amount);
        }
        for (asset, amount) in before {
            let reserved = self.reserved.entry(asset).or_default();
            *reserved = reserved.debit(amount);
        }
        self.reserved.retain(|_, reserved| *reserved != Balance::ZERO);
    }

    /// Of each asset, the most that an order of this number of an account nullifier withdraws: one of them is executed at
    /// most. Honest proofs name one asset.
    fn reservation(&self, number: Number) -> BTreeMap<Asset, Amount> {
        let mut most = BTreeMap::new();
        for Held { lock, .. } in self.holding(number).filter(|held| held.lock.number() == number) {
            let PrivateTransfer { asset, amount_out, .. } = *lock.transfer();
            let amount: &mut Amount = most.entry(asset).or_default();
            *amount = amount_out.max(*amount);
        }
        most.retain(|_, amount| *amount != Amount::ZERO);
        most
    }
}

/// The orders that hold numbers, and the certificates that wait, each once.
impl BorshSerialize for Pool {
    fn serialize<W: Write>(&self, writer: &mut W) -> Result<()> {
        let held: Vec<_> = self.locks().map(|(lock, is_own)| Held { lock: lock.clone(), is_own }).collect();
        let waiting: Vec<_> = self.waiting().cloned().collect();
        (held, waiting).serialize(writer)
    }
}

impl BorshDeserialize for Pool {
    fn deserialize_reader<R: Read>(reader: &mut R) -> Result<Self> {
        let (held, waiting) = <(Vec<Held>, Vec<PrivateSeen>)>::deserialize_reader(reader)?;
        let mut pool = Self::default();
        let twice = || Error::new(ErrorKind::InvalidData, "a private order is there twice");
        for Held { lock, is_own } in &held {
            let holds = |number| pool.holding(number).any(|held| held.lock.digest == lock.digest);
            if lock.transfer().taken().into_iter().any(holds) {
                return Err(twice());
            }
            pool.hold(lock, *is_own);
        }
        for seen in &waiting {
            if seen.certificate.order.transfer.taken().iter().any(|number| pool.seen.contains_key(number)) {
                return Err(twice());
            }
            pool.keep(seen);
        }
        Ok(pool)
    }
}
