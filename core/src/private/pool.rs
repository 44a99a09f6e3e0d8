//! The rules of the pool [FP Fig. 2 and 10], as those of a shard: they decide and change nothing, and a decision's record
//! is applied once it has a position in the journal.
//!
//! Invariants, whatever proofs say: a nullifier is locked by one order at a time and spent by one; the locks of this
//! authority reserve no more than the pool holds when each is made. So certified withdrawals take at most
//! (n − f)/(q − f) times what was deposited (docs/PRIVATE.md, the pool's rules).

use std::collections::BTreeMap;
use std::collections::hash_map::{Entry, HashMap};
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};

use super::certificate::{PrivateCertificate, VerifiedPrivateCertificate};
use super::order::{ProvenOrder, VerifiedPrivateOrder};
use super::transfer::{Nullifier, PrivateTransfer};
use crate::Digest;
use crate::amount::{Amount, Asset, Balance, Memo};
use crate::history::JournalPosition;
use crate::identity::AccountId;

/// The authority votes for an order.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PrivateLock {
    /// The order, with the proof that was checked.
    pub proven: Arc<ProvenOrder>,
    /// Its digest.
    pub digest: Digest,
}

impl PrivateLock {
    fn transfer(&self) -> &PrivateTransfer {
        &self.proven.order.transfer
    }
}

/// A certificate is executed.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct PrivateConfirmation {
    /// The certificate.
    pub certificate: Arc<PrivateCertificate>,
    /// The digest of its order.
    pub digest: Digest,
}

/// An outcome, as a journal keeps it.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum PrivateRecord {
    /// The authority votes for an order.
    Lock(Arc<PrivateLock>),
    /// A certificate is executed.
    Confirmation(PrivateConfirmation),
}

/// What was done with a nullifier.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NullifierUse {
    /// This authority voted for the order, and knows no certificate with the nullifier.
    Locked(Arc<PrivateLock>),
    /// A certificate spent it.
    Spent {
        /// The digest of its order.
        digest: Digest,
        /// Its position in the journal.
        position: JournalPosition,
    },
}

impl NullifierUse {
    /// The digest of the order that uses the nullifier.
    #[must_use]
    pub fn digest(&self) -> Digest {
        match self {
            Self::Locked(lock) => lock.digest,
            Self::Spent { digest, .. } => *digest,
        }
    }
}

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

/// The decision of a rule.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PoolDecision {
    /// Commit this record, apply it, and answer success.
    Commit(PrivateRecord),
    /// It was done before: answer success, and change nothing.
    Already,
    /// Refuse the message for this reason.
    Refuse(PrivateRejection),
}

/// Why the rules refuse an order or a certificate, with what its sender needs to continue.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PrivateRejection {
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
    /// Another order has one of the nullifiers here.
    #[error("another order has locked the account or the coin here; finish that one first")]
    Locked {
        /// The order that this authority voted for, and its proof. Anyone can collect its votes and finish it.
        pending: Arc<PrivateLock>,
    },
    /// A certificate has spent one of the nullifiers.
    #[error(
        "the transfer with the digest {digest} spent the account or the coin, at position {position} of the journal"
    )]
    Spent {
        /// The digest of that transfer.
        digest: Digest,
        /// Where its certificate stands in the journal.
        position: JournalPosition,
    },
    /// The pool does not hold what the order withdraws, besides what others withdraw.
    #[error(
        "the pool here holds {available} beyond what is reserved, the order withdraws {amount}; send this authority the \
         certificates of deposits that it lacks"
    )]
    PoolShort {
        /// What the pool holds here, without what is reserved.
        available: Balance,
        /// What the order withdraws.
        amount: Amount,
    },
}

/// What leaves the pool by a confirmation: the shard debits the pool's account and credits the recipient.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Withdrawal {
    /// The account that gets it.
    pub recipient: AccountId,
    /// The asset.
    pub asset: Asset,
    /// The amount, in the asset's smallest unit.
    pub amount: Amount,
    /// The memo.
    pub memo: Memo,
}

/// The pool's state besides its account, whose balance is what the pool holds.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Pool {
    nullifiers: HashMap<Nullifier, NullifierUse>,
    /// Per asset, what the locks withdraw.
    reserved: BTreeMap<Asset, Balance>,
}

impl Pool {
    /// What was done with a nullifier; none if it is unseen.
    #[must_use]
    pub fn nullifier(&self, nullifier: &Nullifier) -> Option<&NullifierUse> {
        self.nullifiers.get(nullifier)
    }

    /// What the locks of an asset withdraw.
    #[must_use]
    pub fn reserved(&self, asset: Asset) -> Balance {
        self.reserved.get(&asset).copied().unwrap_or_default()
    }

    /// May the authority vote for this order, where the pool's account holds `held` of its asset? `Already` means that it
    /// did, and gives its vote again, also under versions that are no longer accepted: otherwise new rules would freeze
    /// orders that some members have locked and others have not.
    #[must_use]
    pub fn lock(&self, order: &VerifiedPrivateOrder, versions: &Versions, held: Balance) -> PoolDecision {
        let (transfer, digest) = (order.transfer(), order.digest());
        let spent = transfer.spent();
        if let Some(rejection) = spent.iter().find_map(|nullifier| self.refuse_spent(nullifier)) {
            return PoolDecision::Refuse(rejection);
        }
        let mut locks = spent.iter().filter_map(|nullifier| match self.nullifier(nullifier)? {
            NullifierUse::Locked(lock) => Some(lock),
            NullifierUse::Spent { .. } => None,
        });
        if let Some(pending) = locks.clone().find(|lock| lock.digest != digest) {
            return PoolDecision::Refuse(PrivateRejection::Locked { pending: pending.clone() });
        }
        if locks.next().is_some() {
            return PoolDecision::Already;
        }
        if let Some(rejection) = versions.refuse(transfer) {
            return PoolDecision::Refuse(rejection);
        }
        let available = held.plus(self.reserved(transfer.asset).negated());
        if transfer.amount_out != Amount::ZERO && !available.covers(transfer.amount_out) {
            return PoolDecision::Refuse(PrivateRejection::PoolShort { available, amount: transfer.amount_out });
        }
        PoolDecision::Commit(PrivateRecord::Lock(Arc::new(PrivateLock { proven: order.proven().clone(), digest })))
    }

    /// Executes a certificate. Like all certificates, it is refused neither for lack of funds nor for other locks.
    #[must_use]
    pub fn confirm(&self, certificate: &VerifiedPrivateCertificate) -> PoolDecision {
        let digest = certificate.digest();
        match certificate.transfer().spent().iter().find_map(|nullifier| self.refuse_spent(nullifier)) {
            None => PoolDecision::Commit(PrivateRecord::Confirmation(PrivateConfirmation {
                certificate: certificate.certificate().clone(),
                digest,
            })),
            Some(PrivateRejection::Spent { digest: by, .. }) if by == digest => PoolDecision::Already,
            // Two certificates with one nullifier: more than f members are faulty.
            Some(rejection) => PoolDecision::Refuse(rejection),
        }
    }

    fn refuse_spent(&self, nullifier: &Nullifier) -> Option<PrivateRejection> {
        match *self.nullifier(nullifier)? {
            NullifierUse::Spent { digest, position } => Some(PrivateRejection::Spent { digest, position }),
            NullifierUse::Locked(_) => None,
        }
    }

    /// Executes a record that stands in the journal at `position`. This is the only way in which the state changes. Gives
    /// what leaves the pool by it.
    pub fn apply(&mut self, record: &PrivateRecord, position: JournalPosition) -> Option<Withdrawal> {
        match record {
            PrivateRecord::Lock(lock) => {
                for nullifier in lock.transfer().spent() {
                    self.nullifiers.insert(nullifier, NullifierUse::Locked(lock.clone()));
                }
                let PrivateTransfer { asset, amount_out, .. } = *lock.transfer();
                self.reserve(asset, |reserved| reserved.credit(amount_out));
                None
            }
            PrivateRecord::Confirmation(PrivateConfirmation { certificate, digest }) => {
                let transfer = &certificate.order.transfer;
                for nullifier in transfer.spent() {
                    if let Some(NullifierUse::Locked(lock)) = self.nullifiers.get(&nullifier) {
                        let lock = lock.clone();
                        self.release(&lock);
                    }
                    self.nullifiers.insert(nullifier, NullifierUse::Spent { digest: *digest, position });
                }
                let PrivateTransfer { recipient, asset, amount_out: amount, memo, .. } = *transfer;
                (amount != Amount::ZERO).then_some(Withdrawal { recipient, asset, amount, memo })
            }
        }
    }

    /// Ends a lock. One that a certificate has overridden can be certified no more: each of the certificate's honest
    /// voters refuses it. So its other nullifier is free.
    fn release(&mut self, lock: &PrivateLock) {
        for nullifier in lock.transfer().spent() {
            if let Entry::Occupied(used) = self.nullifiers.entry(nullifier)
                && matches!(used.get(), NullifierUse::Locked(locked) if locked.digest == lock.digest)
            {
                used.remove();
            }
        }
        let PrivateTransfer { asset, amount_out, .. } = *lock.transfer();
        self.reserve(asset, |reserved| reserved.debit(amount_out));
    }

    /// Changes what is reserved of an asset. An asset of which nothing is reserved is absent.
    fn reserve(&mut self, asset: Asset, change: impl FnOnce(Balance) -> Balance) {
        let reserved = change(self.reserved(asset));
        if reserved == Balance::ZERO {
            self.reserved.remove(&asset);
        } else {
            self.reserved.insert(asset, reserved);
        }
    }
}

impl Versions {
    fn refuse(&self, transfer: &PrivateTransfer) -> Option<PrivateRejection> {
        let Self { committee, oldest_rules, newest_rules } = *self;
        if transfer.committee > committee || transfer.rules > newest_rules {
            return Some(PrivateRejection::UnknownVersion);
        }
        let is_stale = transfer.committee < committee || transfer.rules < oldest_rules;
        is_stale.then_some(PrivateRejection::StaleVersion { committee, oldest_rules })
    }
}
