//! What a member that joins an epoch takes over from the Closings of the one before.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

use super::closing::{ClosingEntry, Newest};
use super::closing_file::{VerifiedClosing, VerifiedNamed};
use crate::Digest;
use crate::account::PendingOrder;
use crate::amount::{Epoch, SequenceNumber, TransactionIndex};
use crate::committee::Committee;
use crate::identity::{AccountId, AuthorityName};
use crate::order::TransferOrder;
use crate::private::PrivateLock;

/// A member's claim to an account's next number.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    next: SequenceNumber,
    newest: Newest,
    authority: AuthorityName,
}

/// What a quorum's Closings of an epoch say, together.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Inheritance {
    /// The epoch that ended.
    epoch: Epoch,
    /// The highest index of the Closings.
    up_to: TransactionIndex,
    authors: Vec<AuthorityName>,
    claims: BTreeMap<AccountId, BTreeMap<Claim, Option<Arc<TransferOrder>>>>,
    locks: BTreeMap<AccountId, BTreeMap<(SequenceNumber, Digest), ReportedLock>>,
}

/// An order of which a Closing reports that it holds its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ReportedLock {
    Transfer(PendingOrder),
    Private(Arc<PrivateLock>),
}

impl ReportedLock {
    fn sequence(&self) -> SequenceNumber {
        match self {
            Self::Transfer(lock) => lock.order.transfer.sequence(),
            Self::Private(lock) => lock.number().1,
        }
    }

    fn digest(&self) -> Digest {
        match self {
            Self::Transfer(lock) => lock.digest,
            Self::Private(lock) => lock.digest,
        }
    }
}

impl Inheritance {
    /// Of the Closings of `committee`, whose epoch ended, takes a quorum: those with the fewest entries. `includes` says
    /// whether the joiner's state includes the checkpoint with a digest: it began from that one, or from one that
    /// follows it. A Closing that names another checkpoint is left out, because it says nothing of what that one includes.
    ///
    /// # Errors
    /// See [`InheritanceError`].
    pub fn new(
        committee: &Committee,
        mut closings: Vec<VerifiedClosing>,
        includes: impl Fn(&Digest) -> bool,
    ) -> Result<Self, InheritanceError> {
        let epoch = committee.epoch();
        if let Some(other) = closings.iter().find(|one| one.closing.epoch != epoch) {
            return Err(InheritanceError::WrongEpoch { expected: epoch, found: other.closing.epoch });
        }
        closings.sort_by_key(|one| (one.closing.entries, one.authority));
        let mut authors = BTreeSet::new();
        closings.retain(|one| authors.insert(one.authority));
        let unknown = closings.iter().map(|one| one.closing.checkpoint).find(|checkpoint| !includes(checkpoint));
        closings.retain(|one| includes(&one.closing.checkpoint));
        let needed = committee.quorum();
        if closings.len() < needed {
            return Err(InheritanceError::TooFew { needed, found: closings.len(), unknown });
        }
        closings.truncate(needed);
        let mut inheritance = Self {
            epoch,
            up_to: closings.iter().map(|one| one.closing.up_to).max().unwrap_or_default(),
            authors: closings.iter().map(|one| one.authority).collect(),
            claims: BTreeMap::new(),
            locks: BTreeMap::new(),
        };
        closings.into_iter().for_each(|closing| inheritance.take(closing));
        Ok(inheritance)
    }

    fn take(&mut self, VerifiedClosing { authority, entries, .. }: VerifiedClosing) {
        for (entry, order) in entries {
            let account = entry.account();
            let claim = match entry {
                ClosingEntry::Account { next, newest, .. } => Some((next, newest)),
                ClosingEntry::Spent { sequence, order, .. } => {
                    sequence.next().map(|next| (next, Newest::Executed(order)))
                }
                _ => None,
            };
            match (claim, order) {
                (Some((next, newest)), order) => {
                    let newest_order = match order {
                        Some(VerifiedNamed::Transfer(order)) => Some(order.shared()),
                        _ => None,
                    };
                    self.claims.entry(account).or_default().insert(Claim { next, newest, authority }, newest_order);
                }
                (None, Some(VerifiedNamed::Transfer(order))) => {
                    let lock = PendingOrder { digest: order.digest(), order: order.shared() };
                    self.lock(account, ReportedLock::Transfer(lock));
                }
                (None, Some(VerifiedNamed::Private(lock))) => self.lock(account, ReportedLock::Private(lock)),
                (None, None) => {}
            }
        }
    }

    fn lock(&mut self, account: AccountId, lock: ReportedLock) {
        self.locks.entry(account).or_default().insert((lock.sequence(), lock.digest()), lock);
    }

    /// The epoch that is joined.
    #[must_use]
    pub fn joins(&self) -> Epoch {
        Epoch(self.epoch.0.saturating_add(1))
    }

    /// Each shard must have applied the Primary's order up to here before it joins.
    #[must_use]
    pub fn up_to(&self) -> TransactionIndex {
        self.up_to
    }

    /// The members whose Closings it is made of.
    #[must_use]
    pub fn authors(&self) -> &[AuthorityName] {
        &self.authors
    }

    /// The accounts of which a Closing reports numbers, each with the highest next number: certificates are needed up
    /// to there.
    pub fn reported(&self) -> impl Iterator<Item = (AccountId, SequenceNumber)> {
        self.claims.iter().filter_map(|(account, claims)| Some((*account, claims.last_key_value()?.0.next)))
    }

    /// Begins to bring it into a shard.
    #[must_use]
    pub fn begin(&self) -> Joining<'_> {
        self.resume(JoinPosition::default())
    }

    /// Goes on bringing it into a shard where an earlier part ended, see [`Joining::position`]. What was proven of an
    /// account stays proven, and its locks up to the position are recorded.
    #[must_use]
    pub fn resume(&self, position: JoinPosition) -> Joining<'_> {
        Joining { inheritance: self, position, steps: 0 }
    }

    /// The claim that the certificates known here do not bear out. The account's next number here is `next`, and `is_seen`
    /// says of an order of it whether its certificate is kept, because the number is frozen.
    fn unproven(
        &self,
        account: AccountId,
        next: SequenceNumber,
        is_seen: &dyn Fn(&Newest, Option<&TransferOrder>) -> bool,
    ) -> Option<JoinError> {
        let is_seen = |claim: &Claim, order: &Option<Arc<TransferOrder>>| {
            next.next() == Some(claim.next) && is_seen(&claim.newest, order.as_deref())
        };
        let mut claims = self.claims.get(&account)?.iter();
        let (unproven, _) = claims.find(|(claim, order)| claim.next > next && !is_seen(claim, order))?;
        Some(JoinError::Unproven { authority: unproven.authority, account, claimed: unproven.next, missing: next })
    }
}

/// A part ends after so many accounts and locks: a few milliseconds, in which the shard does nothing else. One Closing may
/// report millions, also of one account.
const STEPS_PER_PART: usize = 256;

/// How far an [`Inheritance`] is brought into a shard; the default is its beginning. An account, and the last of its locks
/// that is brought in; none if all of it is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct JoinPosition(Option<(AccountId, Option<(SequenceNumber, Digest)>)>);

/// An [`Inheritance`] on its way into one shard, account by account.
#[derive(Clone, Debug)]
pub struct Joining<'a> {
    inheritance: &'a Inheritance,
    position: JoinPosition,
    /// The accounts and locks of this part.
    steps: usize,
}

impl<'a> Joining<'a> {
    /// How far it is brought in, once all that was decided is committed.
    #[must_use]
    pub fn position(&self) -> JoinPosition {
        self.position
    }

    /// Whether this part ends here, and the next one begins.
    pub(crate) fn ends_part(&mut self) -> bool {
        let ends = self.steps >= STEPS_PER_PART;
        if ends {
            self.steps = 0;
        }
        ends
    }

    /// What is joined.
    pub(crate) fn inheritance(&self) -> &'a Inheritance {
        self.inheritance
    }

    /// The next account of which something is reported.
    pub(crate) fn account(&self) -> Option<AccountId> {
        let from = match self.position.0 {
            None => Bound::Unbounded,
            Some((done, None)) => Bound::Excluded(done),
            Some((begun, Some(_))) => Bound::Included(begun),
        };
        let later = (from, Bound::Unbounded);
        let claimed = self.inheritance.claims.range(later).next().map(|(account, _)| *account);
        let locked = self.inheritance.locks.range(later).next().map(|(account, _)| *account);
        claimed.into_iter().chain(locked).min()
    }

    /// Goes on behind an account.
    pub(crate) fn pass(&mut self, account: AccountId) {
        self.position = JoinPosition(Some((account, None)));
        self.steps = self.steps.saturating_add(1);
    }

    /// Goes on behind a lock of the account.
    pub(crate) fn pass_lock(&mut self, account: AccountId, lock: &ReportedLock) {
        self.position = JoinPosition(Some((account, Some((lock.sequence(), lock.digest())))));
        self.steps = self.steps.saturating_add(1);
    }

    /// The locks behind the position that are reported of an account's numbers from `next` on, once all that is claimed
    /// of it is proven.
    pub(crate) fn locks(
        &self,
        account: AccountId,
        next: SequenceNumber,
        is_seen: &dyn Fn(&Newest, Option<&TransferOrder>) -> bool,
    ) -> Result<impl Iterator<Item = &'a ReportedLock> + use<'a>, JoinError> {
        if let Some(error) = self.inheritance.unproven(account, next, is_seen) {
            return Err(error);
        }
        let passed = self.position.0.filter(|(of, _)| *of == account).and_then(|(_, lock)| lock);
        let passed = passed.filter(|(sequence, _)| *sequence >= next);
        let from = passed.map_or(Bound::Included((next, Digest::ZERO)), Bound::Excluded);
        let reported = self.inheritance.locks.get(&account).into_iter();
        Ok(reported.flat_map(move |locks| locks.range((from, Bound::Unbounded))).map(|(_, lock)| lock))
    }
}

/// Why Closings are not enough to join with.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum InheritanceError {
    /// A Closing of another epoch.
    #[error("a Closing is of epoch {found}; Closings of epoch {expected} are needed")]
    WrongEpoch {
        /// The epoch that ended.
        expected: Epoch,
        /// The Closing's.
        found: Epoch,
    },
    /// Too few members' Closings.
    #[error(
        "Closings of {needed} members are needed, and {found} can be used{}",
        unknown.map(|unknown| format!("; begin from checkpoint {unknown} first, which another one names"))
            .unwrap_or_default()
    )]
    TooFew {
        /// The quorum of the epoch that ended.
        needed: usize,
        /// The number of those that can be used.
        found: usize,
        /// A checkpoint that another Closing names, and that the joiner's state does not include.
        unknown: Option<Digest>,
    },
}

/// Why a shard does not join yet. Nothing is lost: repeat it once what is missing has been brought.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinError {
    /// The shard has not followed the Primary to the installation, or to where a Closing's member had.
    #[error("this authority has applied the Primary's events up to {synchronized}; it must first follow up to {up_to}")]
    Behind {
        /// The highest index of the Closings.
        up_to: TransactionIndex,
        /// The shard's index.
        synchronized: TransactionIndex,
    },
    /// The installation of the epoch is not applied.
    #[error("the installation of epoch {0} is not applied here yet")]
    NotInstalled(Epoch),
    /// Nobody joins an epoch that a recovery installed: all begin from the checkpoint that the Primary adopts.
    #[error(
        "keys of the epoch before epoch {0} were out: nobody joins, and all begin from the checkpoint that it adopts"
    )]
    Recovery(Epoch),
    /// The newest final block that is applied is too old.
    #[error("the newest final Ethereum block that this authority has read is too old to join an epoch")]
    PrimaryTooOld,
    /// A Closing claims numbers that no certificate bears out here.
    #[error(
        "authority {authority} claims that the next number of account {account} is {claimed}: bring the certificate of \
         number {missing}, or join with the Closings of other members"
    )]
    Unproven {
        /// The member whose Closing claims it.
        authority: AuthorityName,
        /// The account.
        account: AccountId,
        /// The next number that it claims.
        claimed: SequenceNumber,
        /// The next number here.
        missing: SequenceNumber,
    },
}
