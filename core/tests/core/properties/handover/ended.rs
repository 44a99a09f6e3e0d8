//! Certificates of epochs that have ended: each counts by itself for a while, is only kept after that, and needs the votes of
//! f + 1 current members at last. A thief has all keys of committees that were replaced so long ago.

use std::collections::BTreeSet;

use fastpay_core::{
    Attestation, Committees, EpochEnd, Moment, PrimaryView, Rejection, SequenceNumber, Standing, Transfer, UnlockVote,
    VerifiedCertificate,
};
use fastpay_testkit::{Outcome, TestAccount, payment, test_domain};
use rand::prelude::*;

use super::operator::Slot;
use super::world::{OWNERS, World, digest_of};

/// Of unlocking.
const WINDOW: u64 = 100;
/// Certificates count for some time after their epoch; no hand-over takes so long.
const VALIDITY: u64 = 100 * WINDOW;

impl World {
    fn end(&self, epoch: usize) -> EpochEnd {
        EpochEnd::new(self.ended[epoch] + VALIDITY, WINDOW)
    }

    /// The committees up to an operator's epoch, and when those before it end.
    fn committees(&self, operator: usize) -> Committees {
        let mut committees =
            Committees::new(self.terms[0].committee.committee.clone()).expect("it begins with epoch 0");
        let known = usize::try_from(self.operators[operator].epoch().0).expect("few epochs");
        for (epoch, next) in self.terms[1..=known].iter().enumerate() {
            let committee = next.committee.committee.clone();
            committees.note_end(self.terms[epoch].committee.committee.epoch(), self.end(epoch));
            committees.install(committee).expect("epochs come one by one");
        }
        committees
    }

    /// Gives an operator a certificate, and the votes that it exists if it needs them.
    pub fn confirm(&mut self, operator: usize, certificate: &VerifiedCertificate) -> Result<Outcome, Rejection> {
        let (committees, epoch) = (self.committees(operator), certificate.certificate().epoch);
        let moment = Moment { now: self.now, followed: self.now, unlock_window: WINDOW };
        let standing = self.operators[operator].shard.rules().standing(epoch, &committees, &moment);
        let shard = &mut self.operators[operator].shard;
        let answer = shard.confirm_standing(PrimaryView::Recent, standing, certificate);
        let is_attested = answer == Err(Rejection::Unattested { epoch }) && self.is_attested(operator, certificate);
        if !is_attested {
            return answer;
        }
        let shard = &mut self.operators[operator].shard;
        let answer = shard.confirm_standing(PrimaryView::Recent, Standing::Counts, certificate);
        self.tally.attested += usize::from(answer == Ok(Outcome::Committed));
        answer
    }

    /// Whether enough members of the epoch of an operator vote that a certificate exists. Faulty ones do in any case.
    fn is_attested(&self, operator: usize, certificate: &VerifiedCertificate) -> bool {
        let epoch = self.operators[operator].epoch();
        let term = &self.terms[usize::try_from(epoch.0).expect("few epochs")];
        let (transfer, domain, committee) = (certificate.transfer(), test_domain(), &term.committee.committee);
        let (account, sequence) = (transfer.sender(), transfer.sequence());
        let vote = UnlockVote::Certificate(certificate.digest());
        let attests = |member: usize| {
            let behind = term.operators[member];
            let votes = self.is_full(behind, epoch) && self.operators[behind].signs_in == epoch;
            term.faulty.contains(&member) || votes && self.knows(behind, transfer)
        };
        let members = (0..term.operators.len()).filter(|member| attests(*member));
        let digest = vote.digest(&domain, epoch, account, sequence);
        let signed = members.map(|member| vote.sign(&term.committee.keys[member], &domain, epoch, account, sequence));
        let votes: Vec<_> = signed.map(|vote| vote.verify(committee, digest).expect("a member signed it")).collect();
        let attestation = Attestation::from_votes(committee, digest, &votes);
        attestation.is_some_and(|votes| {
            votes.check(&domain, committee, (account, sequence), certificate.digest()).expect("they are exactly f + 1");
            true
        })
    }

    /// Whether an operator executed a transfer, or keeps its certificate. It executes nothing but what is certified.
    fn knows(&self, operator: usize, transfer: &Transfer) -> bool {
        let slot = (transfer.sender(), transfer.sequence().0);
        let seen = self.operators[operator].shard.ledger().unlocks.get(slot.0, transfer.sequence());
        let seen = seen.and_then(|unlock| unlock.seen.as_ref());
        let is_certified = self.certified.get(&slot).is_some_and(|known| known.transfer() == transfer);
        is_certified && self.has_taken(operator, slot) || seen.is_some_and(|seen| seen.order.transfer == *transfer)
    }

    fn has_taken(&self, operator: usize, slot: Slot) -> bool {
        self.operators[operator].shard.account(&slot.0).next_sequence() > SequenceNumber(slot.1)
    }

    /// Time passes until no certificate of an ended epoch counts by itself. Members follow the chain, and in the middle of
    /// the time in which certificates are only kept, all show each other what they executed.
    pub fn grow_old(&mut self) {
        for operator in &mut self.operators {
            operator.follow(&self.events);
        }
        let due: BTreeSet<u64> = (0..self.ended.len())
            .flat_map(|epoch| {
                let end = self.end(epoch);
                [end.executed_until - 1, end.executed_until + WINDOW / 2, end.kept_until]
            })
            .collect();
        let exchanges = (0..self.ended.len()).map(|epoch| self.end(epoch).executed_until + WINDOW / 2);
        let exchanges: Vec<u64> = exchanges.collect();
        for at in due {
            self.now = at;
            self.show_some();
            if exchanges.contains(&at) {
                self.exchange();
            }
            self.forge();
        }
        self.exchange();
        self.certify_anew();
    }

    fn show_some(&mut self) {
        let slots: Vec<_> = self.certified.keys().copied().collect();
        for slot in slots {
            let operator = self.rng.random_range(0..self.operators.len());
            if self.chance(30) {
                self.show(slot, operator);
            }
        }
    }

    fn members(&self) -> Vec<usize> {
        self.terms[self.terms.len() - 1].operators.clone()
    }

    /// All members get what anybody has executed.
    fn exchange(&mut self) {
        let executed: BTreeSet<Slot> = self.operators.iter().flat_map(|one| one.executed().into_keys()).collect();
        for slot in executed {
            // First all keep it, and then those who keep it attest it.
            let members = self.members();
            members.iter().chain(&members).for_each(|operator| self.show(slot, *operator));
        }
    }

    /// Orders whose certificates nobody has executed in time are voted for again, in the newest epoch.
    fn certify_anew(&mut self) {
        let slots: Vec<_> = self.certified.keys().copied().collect();
        for slot in slots {
            let digest = self.certified[&slot].digest();
            let is_open = |operator: &usize| !self.has_taken(*operator, slot);
            if self.members().iter().all(is_open) {
                let order = self.orders.iter().position(|signed| signed.slot == slot && signed.digest == digest);
                let order = order.expect("its owner signed it");
                self.members().into_iter().for_each(|operator| self.submit(order, operator));
                self.tally.anew += 1;
            }
            self.members().into_iter().for_each(|operator| self.show(slot, operator));
        }
    }

    /// A thief with all keys of an epoch whose certificates count no longer, and those of the faulty members, certifies an
    /// order of an account that has nothing, or one that an owner signed, and nobody executes it.
    fn forge(&mut self) {
        let ended = (0..self.ended.len()).filter(|epoch| self.end(*epoch).kept_until <= self.now);
        let ended: Vec<_> = ended.collect();
        let Some(epoch) = ended.choose(&mut self.rng).copied() else { return };
        let (thief, to) = (TestAccount::numbered(OWNERS), self.owners[0].id());
        let order = match self.orders.choose(&mut self.rng) {
            Some(signed) if self.rng.random_ratio(1, 2) => signed.order.clone(),
            _ => thief.sign(&test_domain(), payment(thief.id(), to, 1_000, 0)),
        };
        let slot = (order.transfer.sender(), order.transfer.sequence().0);
        let retired = &self.terms[epoch].committee;
        let everybody: Vec<_> = (0..retired.committee.quorum()).collect();
        let forged = retired.certificate_by(&order, &everybody);
        let forged = forged.verify(&test_domain(), &retired.committee).expect("a quorum signed it");
        for operator in self.members() {
            let had_taken = self.has_taken(operator, slot);
            let answer = self.confirm(operator, &forged);
            let is_certified = self.certified.get(&slot).is_some_and(|known| known.digest() == digest_of(&order));
            let counts = !had_taken && self.has_taken(operator, slot);
            assert!(!counts || is_certified, "a forged certificate of {} #{} counts", slot.0, slot.1);
            self.tally.forged += usize::from(matches!(answer, Err(Rejection::Unattested { .. })));
        }
    }
}
