//! One redemption on its way to the contract.

use alloy::primitives::Bytes;
use fastpay_core::{
    AccountId, Committee, Domain, Epoch, Redemption, SequenceNumber, VerifiedCertificate, VerifiedContractVote,
};
use fastpay_ethereum::{CertifiedRedemption, Queued, certified_redemption};
use fastpay_ledger_client::unpacked_votes;
use serde::{Deserialize, Serialize};

use crate::gas::{Firsts, Payouts};

/// A redemption that fails this often is given up. Its owner can still redeem it.
const ATTEMPTS_MAX: u32 = 10;
/// The first pause after a failure, in milliseconds; it doubles each time.
const PAUSE_MS: u64 = 30_000;
/// The longest pause, in milliseconds.
const PAUSE_MS_MAX: u64 = 3_600_000;

/// The maximum number of other certificates of a number that are kept: its owner signed an order for each.
const ALTERNATIVES_MAX: usize = 4;

/// The name of a redemption. It is unique among certified ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RedemptionId {
    /// The account that redeems.
    pub sender: AccountId,
    /// The order's number in its account.
    pub sequence: SequenceNumber,
}

/// A redemption with the votes of a quorum, in the contract's form. It is made only from verified certificates, or read
/// from our own disk.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PendingRedemption {
    /// The redemption.
    pub redemption: Redemption,
    /// The committee that voted.
    pub epoch: Epoch,
    /// The votes, encoded for the contract.
    pub votes: Bytes,
    /// When it was first seen, in milliseconds since 1970.
    pub seen_at_ms: u64,
    /// Set while it is parked because it failed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parked: Option<Parked>,
    /// Set once a shared transaction had no effect on it: from then on, it gets transactions of its own.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub alone: bool,
    /// The properties that make it more expensive than others.
    #[serde(default)]
    pub firsts: Firsts,
    /// Set once a final block has it in the contract's queue: from then on it is to be executed.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub queued: Option<Queued>,
    /// Other certificates of its number, while all are of ended epochs: retired keys can make one for each order that the
    /// owner signed.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub alternatives: Vec<Self>,
}

/// Why a redemption is parked, and until when.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Parked {
    /// The contract's error.
    pub reason: String,
    /// The number of failures.
    pub attempts: u32,
    /// The time of the next attempt, in milliseconds since 1970.
    pub until_ms: u64,
}

impl PendingRedemption {
    /// The redemption of a verified certificate; `None` if that is of another transfer.
    #[must_use]
    pub fn new(verified: &VerifiedCertificate, committee: &Committee, now_ms: u64) -> Option<Self> {
        let certificate = verified.certificate();
        let fastpay_core::Transfer::Redemption(redemption) = &certificate.order.transfer else { return None };
        let votes = certified_redemption(certificate, committee)?.votes;
        let (redemption, epoch) = (redemption.clone(), certificate.epoch);
        let (seen_at_ms, parked, firsts) = (now_ms, None, Firsts::default());
        let (queued, alternatives) = (None, Vec::new());
        Some(Self { redemption, epoch, votes, seen_at_ms, parked, alone: false, firsts, queued, alternatives })
    }

    /// Whether the keys of its committee may have been stolen since. Only votes of the current one prove it then.
    pub(crate) fn is_unproven(&self, current: Epoch) -> bool {
        self.epoch < current
    }

    /// Whether members of the current committee did not know it when they were asked for votes.
    pub(crate) fn is_refused(&self, current: Epoch) -> bool {
        self.is_unproven(current) && self.failures() > 0
    }

    /// How often it failed by itself.
    pub(crate) fn failures(&self) -> u32 {
        self.parked.as_ref().map_or(0, |parked| parked.attempts)
    }

    /// Whether a certificate of its number adds something: it is of the current epoch, which proves it, of a later epoch
    /// than the one that is kept of its order, or of another order than all that are kept.
    pub(crate) fn wants(&self, redemption: &Redemption, epoch: Epoch, current: Epoch) -> bool {
        let mut all = std::iter::once(self).chain(&self.alternatives);
        let same = all.find(|kept| kept.redemption == *redemption);
        let is_new = || match same {
            Some(same) => epoch > same.epoch,
            None => self.alternatives.len() < ALTERNATIVES_MAX,
        };
        self.queued.is_none() && self.is_unproven(current) && (epoch >= current || is_new())
    }

    /// Keeps a certificate that it [wants](Self::wants): in its place if it is of the `current` epoch, in place of an
    /// earlier one of the same order, or else beside it. A later one may count for longer at the Primary, so the failures
    /// of the earlier one are not its own.
    pub(crate) fn keep(&mut self, other: Self, current: Epoch) {
        if !other.is_unproven(current) {
            *self = Self { seen_at_ms: self.seen_at_ms, ..other };
            return;
        }
        if self.redemption == other.redemption {
            let alternatives = std::mem::take(&mut self.alternatives);
            *self = Self { seen_at_ms: self.seen_at_ms, alternatives, ..other };
            return;
        }
        self.alternatives.retain(|kept| kept.redemption != other.redemption);
        self.alternatives.push(other);
        if self.is_refused(current) {
            self.rotate();
        }
    }

    /// The next certificate of its number, with the others; `None` if there is no other one. It keeps none itself.
    pub(crate) fn take_next(&mut self) -> Option<Self> {
        let mut others = std::mem::take(&mut self.alternatives).into_iter();
        let next = others.next()?;
        Some(Self { alternatives: others.collect(), ..next })
    }

    /// Puts the next certificate of its number in its place, and itself behind the others.
    pub(crate) fn rotate(&mut self) {
        if let Some(next) = self.take_next() {
            let last = std::mem::replace(self, next);
            self.alternatives.push(last);
        }
    }

    /// The properties that change its gas.
    pub(crate) fn payouts(&self) -> Payouts {
        Payouts::of(&self.redemption, self.firsts)
    }

    /// Its name.
    #[must_use]
    pub fn id(&self) -> RedemptionId {
        RedemptionId { sender: self.redemption.sender, sequence: self.redemption.sequence }
    }

    /// Whether its votes are a quorum of this committee, as the contract counts them.
    pub(crate) fn is_certified_by(&self, domain: &Domain, committee: &Committee) -> bool {
        let digest = domain.redemption_vote_digest(self.epoch, &self.redemption);
        let votes = unpacked_votes(&self.votes, committee).into_iter();
        let votes: Vec<_> = votes.filter_map(|vote| vote.verify(committee, digest).ok()).collect();
        VerifiedContractVote::quorum(committee, digest, &votes).is_some_and(|quorum| self.votes == quorum)
    }

    /// The certificate in the contract's form.
    #[must_use]
    pub fn certified(&self) -> CertifiedRedemption {
        let Self { redemption, epoch, votes, .. } = self;
        CertifiedRedemption { redemption: redemption.into(), epoch: epoch.0, votes: votes.clone() }
    }

    /// Notes that the contract has it in its queue. This drops its votes, which are not needed again, and its failures.
    pub fn enqueue(&mut self, queued: Queued) {
        (self.queued, self.parked, self.votes) = (Some(queued), None, Bytes::new());
    }

    /// Whether it is parked.
    #[must_use]
    pub fn is_parked(&self, now_ms: u64) -> bool {
        self.parked.as_ref().is_some_and(|parked| parked.until_ms > now_ms)
    }

    /// Adapts the redemption of an earlier run to this run's clock, which may have been set back since: it was not seen
    /// later than now, and no pause is longer than the longest.
    pub fn take_up(&mut self, now_ms: u64) {
        self.seen_at_ms = self.seen_at_ms.min(now_ms);
        if let Some(parked) = &mut self.parked {
            parked.until_ms = parked.until_ms.min(now_ms.saturating_add(PAUSE_MS_MAX));
        }
        self.alternatives.iter_mut().for_each(|other| other.take_up(now_ms));
    }

    /// Parks it for a while, longer each time. Returns false if it has failed too often.
    #[must_use]
    pub fn park(&mut self, reason: String, now_ms: u64) -> bool {
        let attempts = self.failures().saturating_add(1);
        let doublings = attempts.saturating_sub(1).min(20);
        let pause_ms = PAUSE_MS.saturating_mul(1 << doublings).min(PAUSE_MS_MAX);
        self.parked = Some(Parked { reason, attempts, until_ms: now_ms.saturating_add(pause_ms) });
        attempts < ATTEMPTS_MAX
    }

    /// Parks it for a short while, without counting a failure.
    pub fn postpone(&mut self, reason: String, now_ms: u64) {
        let attempts = self.failures();
        self.parked = Some(Parked { reason, attempts, until_ms: now_ms.saturating_add(PAUSE_MS) });
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use fastpay_core::{Amount, Asset};

    pub(crate) fn item(sequence: u64) -> PendingRedemption {
        let redemption = Redemption {
            sender: AccountId([1; 32]),
            recipient: [2; 20].into(),
            asset: Asset::ETHER,
            amount: Amount(10),
            fee: Amount(1),
            sequence: SequenceNumber(sequence),
            memo: Default::default(),
        };
        let votes = vec![7; 66].into();
        PendingRedemption {
            redemption,
            epoch: Epoch(0),
            votes,
            seen_at_ms: 1_000,
            parked: None,
            alone: false,
            firsts: Firsts::default(),
            queued: None,
            alternatives: Vec::new(),
        }
    }

    #[test]
    fn certificates_of_ended_epochs_for_other_orders_are_kept_until_one_is_proven() {
        let of = |amount, epoch| {
            let mut item = item(0);
            (item.redemption.amount, item.epoch) = (Amount(amount), Epoch(epoch));
            item
        };
        let mut first = of(1, 2);
        assert!(first.wants(&of(2, 1).redemption, Epoch(1), Epoch(3)));
        assert!(!first.wants(&of(1, 1).redemption, Epoch(1), Epoch(3)), "the same order");
        assert!(!first.wants(&of(2, 1).redemption, Epoch(1), Epoch(2)), "it is of the current epoch");
        for amount in 2..6 {
            assert!(first.wants(&of(amount, 1).redemption, Epoch(1), Epoch(3)));
            first.keep(of(amount, 1), Epoch(3));
            assert!(!first.wants(&of(amount, 1).redemption, Epoch(1), Epoch(3)));
        }
        assert!(!first.wants(&of(6, 1).redemption, Epoch(1), Epoch(3)), "too many");
        let amounts = |item: &PendingRedemption| {
            let others = item.alternatives.iter().map(|other| other.redemption.amount.0);
            [item.redemption.amount.0].into_iter().chain(others).collect::<Vec<_>>()
        };
        first.rotate();
        assert_eq!(amounts(&first), [2, 3, 4, 5, 1]);
        assert!(first.alternatives.iter().all(|other| other.alternatives.is_empty()));
        let mut refused = of(7, 2);
        assert!(refused.park("no".into(), 0) && refused.is_refused(Epoch(3)));
        refused.keep(of(8, 1), Epoch(3));
        assert_eq!(amounts(&refused), [8, 7], "it comes before one that was refused");
        assert_eq!(refused.take_next().unwrap().failures(), 1);
        // One of a later epoch takes the place of an earlier one of its order, and keeps the others.
        assert!(!first.wants(&of(2, 1).redemption, Epoch(1), Epoch(3)) && !first.alternatives.is_empty());
        assert!(first.park("no".into(), 0) && first.is_refused(Epoch(3)));
        assert!(first.wants(&of(2, 2).redemption, Epoch(2), Epoch(3)));
        first.keep(of(2, 2), Epoch(3));
        assert_eq!((first.epoch, first.failures(), amounts(&first)), (Epoch(2), 0, vec![2, 3, 4, 5, 1]));
        assert!(first.wants(&of(4, 2).redemption, Epoch(2), Epoch(3)));
        first.keep(of(4, 2), Epoch(3));
        assert_eq!(amounts(&first), [2, 3, 5, 1, 4]);
        assert!(!first.wants(&of(4, 2).redemption, Epoch(2), Epoch(3)));
        // One of the current epoch is for the one order that members executed or will.
        assert!(first.wants(&of(1, 3).redemption, Epoch(3), Epoch(3)));
        first.keep(of(9, 3), Epoch(3));
        assert_eq!((first.redemption.amount, first.alternatives.len()), (Amount(9), 0));
    }

    #[test]
    fn a_clock_that_was_set_back_makes_nothing_wait_longer() {
        let mut item = item(0);
        item.seen_at_ms = u64::MAX;
        item.postpone("no".into(), u64::MAX - PAUSE_MS);
        item.take_up(5_000);
        assert_eq!(item.seen_at_ms, 5_000);
        assert!(item.is_parked(5_000) && !item.is_parked(5_000 + PAUSE_MS_MAX));
        // A redemption whose times are not in the future keeps them.
        item.take_up(9_000);
        assert_eq!((item.seen_at_ms, item.parked.unwrap().until_ms), (5_000, 5_000 + PAUSE_MS_MAX));
    }

    #[test]
    fn a_failing_item_pauses_longer_each_time_and_is_given_up_in_the_end() {
        let mut item = item(0);
        let mut pauses = Vec::new();
        let mut now = 0;
        while item.park("no".into(), now) {
            let until = item.parked.as_ref().unwrap().until_ms;
            assert!(item.is_parked(until - 1) && !item.is_parked(until));
            pauses.push((until - now) / 1_000);
            now = until;
        }
        assert_eq!(pauses, [30, 60, 120, 240, 480, 960, 1_920, 3_600, 3_600]);
    }
}
