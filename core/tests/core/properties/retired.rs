//! Certificates of epochs that have ended, in the [`World`]: time passes, authorities show each other what they executed
//! before it counts no longer by itself, and a thief has all keys of committees that were replaced long ago.

use fastpay_core::{
    AccountId, Attestation, Certificate, EpochEnd, Moment, PrimaryAddress, Rejection, SequenceNumber, Transfer,
    UnlockVote, VerifiedContractVote,
};
use fastpay_testkit::{TestAuthority, TestAuthorityError, TestCommittee, payment, redemption};

use super::world::{WINDOW, World};

/// Every authority hears of a rotation within this time.
const LAG: u64 = 20;

impl World {
    /// Until when certificates of an ended epoch count by themselves.
    pub fn end(&self, epoch: usize) -> EpochEnd {
        EpochEnd::new(self.ended[epoch] + 2 * WINDOW, WINDOW)
    }

    /// Time passes. All authorities hear of each rotation in time, and in the middle of the time in which certificates of
    /// the epoch that ended are only kept, they show each other what they executed.
    pub fn pass(&mut self, time: u64) {
        let until = self.now + time;
        let due = |from: u64| {
            self.ended
                .iter()
                .flat_map(|ended| [ended + LAG, ended + 3 * WINDOW / 2])
                .filter(|at| *at > from && *at <= until)
                .min()
        };
        let mut next = due(self.now);
        while let Some(at) = next {
            self.now = at;
            let heard = self.ended.iter().filter(|ended| **ended + LAG <= at).count();
            for authority in 0..self.authorities.len() {
                while self.authorities[authority].epoch().0 < heard as u64 {
                    self.follow_rotation(authority);
                }
            }
            if self.ended.iter().any(|ended| ended + 3 * WINDOW / 2 == at) {
                self.exchange();
            }
            next = self
                .ended
                .iter()
                .flat_map(|ended| [ended + LAG, ended + 3 * WINDOW / 2])
                .filter(|due| *due > at && *due <= until)
                .min();
        }
        self.now = until;
    }

    /// All authorities get all certificates that one of them executed.
    pub fn exchange(&mut self) {
        let mut certificates: Vec<usize> = (0..self.certificates.len()).collect();
        certificates.sort_by_key(|at| self.certificates[*at].order.transfer.sequence());
        for certificate in certificates {
            let all = 0..self.authorities.len();
            if all.clone().any(|at| self.is_executed(at, &self.certificates[certificate])) {
                // First all keep it, and then those who keep it attest it.
                all.clone().for_each(|at| self.confirm(certificate, at));
                all.for_each(|at| self.confirm(certificate, at));
            }
        }
    }

    /// Orders whose certificates nobody executed while these counted are voted for again, in the newest epoch.
    pub fn certify_anew(&mut self) {
        loop {
            let before = self.certificates.len();
            for order in 0..self.orders.len() {
                let transfer = &self.orders[order].0.transfer;
                let number = (transfer.sender(), transfer.sequence());
                let digest = self.committees[0].domain.transfer_digest(transfer);
                let is_next = |at: usize| self.authorities[at].account(&number.0).next_sequence() == number.1;
                if self.certified.get(&number) == Some(&digest) && is_next(0) {
                    (0..self.authorities.len()).for_each(|at| self.submit(order, at));
                }
            }
            for certificate in before..self.certificates.len() {
                (0..self.authorities.len()).for_each(|at| self.confirm(certificate, at));
            }
            self.exchange();
            self.authorities.iter_mut().for_each(TestAuthority::deliver_all);
            if self.certificates.len() == before {
                return;
            }
        }
    }

    /// Whether an authority has executed the order of a certificate.
    pub fn is_executed(&self, at: usize, certificate: &Certificate) -> bool {
        let transfer = &certificate.order.transfer;
        self.authorities[at].account(&transfer.sender()).next_sequence() > transfer.sequence()
    }

    /// Whether the number's owner signed two orders.
    pub fn is_disputed(&self, account: AccountId, sequence: SequenceNumber) -> bool {
        let is_of = |transfer: &Transfer| (transfer.sender(), transfer.sequence()) == (account, sequence);
        self.orders.iter().filter(|(order, _)| is_of(&order.transfer)).count() > 1
    }

    /// The votes of honest members in the epoch of the authority `at`, and of a thief, that a certificate exists.
    pub fn attestation(&self, certificate: &Certificate, at: usize) -> Option<Attestation> {
        let transfer = &certificate.order.transfer;
        let epoch = self.authorities[at].epoch();
        let TestCommittee { committee, domain, .. } = &self.committees[usize::try_from(epoch.0).unwrap()];
        let order = domain.transfer_digest(transfer);
        let digest = UnlockVote::Certificate(order).digest(domain, epoch, transfer.sender(), transfer.sequence());
        let of_epoch = (0..self.authorities.len()).filter(|at| self.authorities[*at].epoch() == epoch);
        let is_known = |at: usize| {
            self.is_executed(at, certificate)
                && self.certified.get(&(transfer.sender(), transfer.sequence())) == Some(&order)
        };
        let honest = of_epoch.filter_map(|at| self.authorities[at].attest(transfer, is_known(at)));
        let votes: Vec<VerifiedContractVote> = honest.map(|vote| vote.verify(committee, digest).unwrap()).collect();
        Attestation::from_votes(committee, digest, &votes)
    }

    /// A thief with all keys of a retired committee, and with those that are out now, gets nothing done.
    pub fn forge(&mut self, epoch: usize, amount: u128, redeems: bool, mask: u8) {
        let (thief, to) = (self.thief.clone(), self.owners[0].id());
        let transfer: Transfer = match redeems {
            true => redemption(thief.id(), PrimaryAddress::repeat_byte(6), amount, 0).into(),
            false => payment(thief.id(), to, amount, 0).into(),
        };
        let retired = self.committees[epoch].clone();
        let forged = retired.certificate(&thief.sign(&retired.domain, transfer.clone()));
        for at in self.chosen(mask) {
            self.authorities[at].moment = Some(Moment { now: self.now, followed: self.now, unlock_window: WINDOW });
            let unattested = Rejection::Unattested { epoch: forged.epoch };
            let answer = self.authorities[at].confirm(&forged);
            assert_eq!(answer, Err(TestAuthorityError::Rejection(unattested)), "a forged certificate counts");
            assert_eq!(self.stolen_votes(&transfer, at), None, "thieves attest alone");
            self.refused += 1;
        }
    }

    /// The votes that thieves can give in the epoch of the authority `at`, with those of whoever keeps the certificate.
    fn stolen_votes(&self, transfer: &Transfer, at: usize) -> Option<Attestation> {
        let epoch = usize::try_from(self.authorities[at].epoch().0).unwrap();
        let TestCommittee { committee, domain, keys } = &self.committees[epoch];
        let (account, sequence) = (transfer.sender(), transfer.sequence());
        let vote = UnlockVote::Certificate(domain.transfer_digest(transfer));
        let digest = vote.digest(domain, committee.epoch(), account, sequence);
        let stolen =
            self.out[epoch].iter().map(|at| vote.sign(&keys[*at], domain, committee.epoch(), account, sequence));
        let kept = (0..self.authorities.len()).filter(|at| self.authorities[*at].epoch() == committee.epoch());
        let kept = kept.filter_map(|at| self.authorities[at].attest(transfer, false));
        let votes: Vec<_> = stolen.chain(kept).map(|vote| vote.verify(committee, digest).unwrap()).collect();
        Attestation::from_votes(committee, digest, &votes)
    }
}
