//! Votes of the current committee about a number that its owner asked the contract to unlock: pure counting, and the
//! shell that asks. docs/PROTOCOL.md, "Unlocking".

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{
    AccountId, AuthorityName, Committee, ContractVote, Digest, Domain, Epoch, SequenceNumber, UnlockVote,
    VerifiedCertificate, VerifiedContractVote,
};
use fastpay_rpc::UnlockAnswer;
use tokio::time::Instant;

use super::CommitteeClient;
use super::catch_up::failure_of;
use super::tally::{PeerFailure, may_vote_for};
use crate::{Asked, ClientError};

/// Votes about one number.
#[derive(Clone, Debug)]
pub struct UnlockBallot {
    domain: Domain,
    committee: Arc<Committee>,
    account: AccountId,
    sequence: SequenceNumber,
    unanimous: bool,
    /// The votes that a certificate exists, each with its order, by signer.
    attested: BTreeMap<AuthorityName, (Digest, VerifiedContractVote)>,
    /// The first certificate that each authority showed: an honest one has one of a number. Retired keys can make others,
    /// also of the same order.
    shown: BTreeMap<AuthorityName, VerifiedCertificate>,
    /// The certificates that were sent to all authorities, by epoch and order.
    brought: BTreeSet<(Epoch, Digest)>,
    /// The votes to void the number, by signer.
    voided: BTreeMap<AuthorityName, VerifiedContractVote>,
    failures: BTreeMap<AuthorityName, PeerFailure>,
}

/// A statement for the contract, with the votes that prove it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnlockDecision {
    /// The statement: the order that is certified, or that none is.
    pub vote: UnlockVote,
    /// The votes for it, encoded for the contract.
    pub votes: Vec<u8>,
}

/// The votes to void a number that the contract accepts now.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Voidable {
    /// Votes of all members.
    pub at_once: bool,
    /// Votes of a quorum.
    pub by_quorum: bool,
}

impl UnlockBallot {
    /// A ballot without votes. If `unanimous`, votes to void the number need no window, and count only if all members
    /// vote so.
    fn new(
        domain: Domain,
        committee: Arc<Committee>,
        (account, sequence): (AccountId, SequenceNumber),
        unanimous: bool,
    ) -> Self {
        let (attested, voided, failures) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        let (shown, brought) = (BTreeMap::new(), BTreeSet::new());
        Self { domain, committee, account, sequence, unanimous, attested, shown, brought, voided, failures }
    }

    /// Counts an authority's answer. The caller has verified that a certificate is of this number.
    fn count(&mut self, authority: AuthorityName, answer: Result<Answered, ClientError>) {
        self.failures.remove(&authority);
        let (certificate, epoch, vote) = match answer {
            Ok(Answered { certificate, epoch, vote }) => (certificate, epoch, vote),
            Err(error) => return self.fail(authority, failure_of(error)),
        };
        if epoch != self.committee.epoch() {
            return self.fail(authority, PeerFailure::OtherEpoch(epoch));
        }
        let statement = match &certificate {
            Some(certificate) => UnlockVote::Certificate(certificate.digest()),
            None => UnlockVote::Void { unanimous: self.unanimous },
        };
        let digest = statement.digest(&self.domain, epoch, self.account, self.sequence);
        let vote = match vote.verify(&self.committee, digest) {
            Ok(vote) if may_vote_for(&self.committee, authority, vote.vote().authority) => vote,
            Ok(_) => return self.fail(authority, PeerFailure::Misbehaved("the vote of another authority".into())),
            Err(error) => return self.fail(authority, PeerFailure::Misbehaved(error.to_string())),
        };
        let voter = vote.vote().authority;
        match certificate {
            Some(certificate) => {
                self.attested.entry(voter).or_insert((certificate.digest(), vote));
                self.shown.entry(authority).or_insert(certificate);
            }
            None => drop(self.voided.insert(voter, vote)),
        }
    }

    fn fail(&mut self, authority: AuthorityName, failure: PeerFailure) {
        self.failures.insert(authority, failure);
    }

    /// The decision that has enough votes, if any. Nothing is void while a certificate was not sent to all.
    #[must_use]
    pub fn decision(&self) -> Option<UnlockDecision> {
        let orders: BTreeSet<Digest> = self.attested.values().map(|(order, _)| *order).collect();
        let attested: Vec<_> = self.attested.values().map(|(_, vote)| vote.clone()).collect();
        let upheld = orders.into_iter().find_map(|order| self.decided(UnlockVote::Certificate(order), &attested));
        if upheld.is_some() || !self.unbrought().is_empty() {
            return upheld;
        }
        let voided: Vec<_> = self.voided.values().cloned().collect();
        self.decided(UnlockVote::Void { unanimous: self.unanimous }, &voided)
    }

    /// The decision if enough of the votes are for it. The others are ignored.
    fn decided(&self, vote: UnlockVote, votes: &[VerifiedContractVote]) -> Option<UnlockDecision> {
        let digest = vote.digest(&self.domain, self.committee.epoch(), self.account, self.sequence);
        let votes = VerifiedContractVote::first(vote.needed(&self.committee), &self.committee, digest, votes)?;
        Some(UnlockDecision { vote, votes })
    }

    /// The certificates that were not sent to all authorities yet, one of each epoch and order.
    fn unbrought(&self) -> BTreeMap<(Epoch, Digest), VerifiedCertificate> {
        let shown = self.shown.values();
        let named = shown.map(|shown| ((shown.certificate().epoch, shown.digest()), shown.clone()));
        named.filter(|(name, _)| !self.brought.contains(name)).collect()
    }

    /// How many attest a certificate, and how many vote to void the number.
    #[must_use]
    pub fn votes(&self) -> (usize, usize) {
        (self.attested.len(), self.voided.len())
    }

    /// Whether f + 1 authorities, so at least one honest one, know of no unlock request that the owner signed.
    #[must_use]
    pub fn is_ignored(&self) -> bool {
        let ignoring = self
            .failures
            .iter()
            .filter(|(name, failure)| self.committee.member(name).is_some() && **failure == PeerFailure::NotRequested);
        ignoring.count() >= self.committee.one_honest()
    }

    /// Why authorities did not vote.
    #[must_use]
    pub fn failures(&self) -> &BTreeMap<AuthorityName, PeerFailure> {
        &self.failures
    }
}

/// An authority's answer with its certificate verified.
#[derive(Clone, Debug)]
struct Answered {
    /// The number's certificate; none in a vote to void it.
    certificate: Option<VerifiedCertificate>,
    /// The epoch that the authority names for its vote.
    epoch: Epoch,
    /// The vote, not verified.
    vote: ContractVote,
}

impl CommitteeClient {
    /// Asks every authority about a number, and returns the decision that the contract accepts now, if any: an order
    /// holds, or none does. Asks for votes by quorum if the unanimous votes do not suffice.
    pub async fn decide_unlock(
        &self,
        number: (AccountId, SequenceNumber),
        voidable: Voidable,
        patience: Duration,
    ) -> (UnlockBallot, Option<UnlockDecision>) {
        let is_taken =
            |decision: &UnlockDecision| voidable.at_once || decision.vote != UnlockVote::Void { unanimous: true };
        let mut ballot = self.vote_unlock(number, true, patience).await;
        let mut decision = ballot.decision().filter(is_taken);
        if decision.is_none() && voidable.by_quorum {
            ballot = self.vote_unlock(number, false, patience).await;
            decision = ballot.decision();
        }
        (ballot, decision)
    }

    /// Asks every authority for its vote about a number. If some return certificates, sends each to all and asks all
    /// again, until none returns another one: an authority that keeps a certificate attests it and does not vote to void.
    /// There are at most as many rounds as authorities. Each of their steps may take `patience`, so an authority that never
    /// answers takes no time from the next step.
    pub async fn vote_unlock(
        &self,
        number: (AccountId, SequenceNumber),
        unanimous: bool,
        patience: Duration,
    ) -> UnlockBallot {
        let (domain, committee) = (*self.network().domain(), self.network().committee());
        let mut ballot = UnlockBallot::new(domain, committee, number, unanimous);
        self.ask_unlock(&mut ballot, number, unanimous, patience).await;
        loop {
            let certificates = ballot.unbrought();
            if certificates.is_empty() {
                return ballot;
            }
            let deadline = Instant::now() + patience;
            // All at the same time: a forged one may take the whole time.
            let mut bringing = Asked::default();
            for certificate in certificates.values() {
                bringing.and_each(self.network().authorities().iter(), |authority| {
                    let (client, certificate) = (self.clone(), certificate.clone());
                    // An authority refuses it while the number is frozen, and keeps it.
                    async move { drop(client.confirm(&authority, &certificate).await) }
                });
            }
            while bringing.next(deadline).await.is_some() {}
            ballot.brought.extend(certificates.into_keys());
            self.ask_unlock(&mut ballot, number, unanimous, patience).await;
        }
    }

    async fn ask_unlock(
        &self,
        ballot: &mut UnlockBallot,
        (account, sequence): (AccountId, SequenceNumber),
        unanimous: bool,
        patience: Duration,
    ) {
        let deadline = Instant::now() + patience;
        let mut asked = Asked::each(self.network().authorities().iter(), |authority| async move {
            authority.shard_of(&account).vote_unlock((account, sequence), unanimous).await
        });
        while let Some((authority, answer)) = asked.next(deadline).await {
            let answered = answer.and_then(|answer| match answer {
                UnlockAnswer::Void { epoch, vote } => Ok(Answered { certificate: None, epoch, vote }),
                UnlockAnswer::Certificate { certificate, epoch, vote } => {
                    let certificate = Arc::unwrap_or_clone(certificate);
                    let verified = self.network().verify_counting(certificate, account, sequence);
                    let certificate = verified.map_err(|error| ClientError::Malformed(error.to_string()))?;
                    Ok(Answered { certificate: Some(certificate), epoch, vote })
                }
            });
            ballot.count(self.network().present_name(authority), answered);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_testkit::{TestAccount, TestCommittee, payment};

    struct Case {
        committee: TestCommittee,
        ballot: UnlockBallot,
        number: (AccountId, SequenceNumber),
        certificate: VerifiedCertificate,
        /// Of another order of the number, as retired keys make it.
        forged: VerifiedCertificate,
    }

    fn case(unanimous: bool) -> Case {
        let committee = TestCommittee::new(4);
        let owner = TestAccount::ed25519(0);
        let number = (owner.id(), SequenceNumber(0));
        let order =
            |amount| owner.sign(&committee.domain, payment(owner.id(), TestAccount::ed25519(1).id(), amount, 0));
        let (certificate, forged) = (committee.certified(&order(1)), committee.certified(&order(2)));
        let ballot = UnlockBallot::new(committee.domain, Arc::new(committee.committee.clone()), number, unanimous);
        Case { committee, ballot, number, certificate, forged }
    }

    impl Case {
        /// The answer of one authority with a vote of another one, in an epoch.
        fn answer(&mut self, by: usize, voter: usize, vote: UnlockVote, epoch: Epoch) {
            let certificate = match vote {
                UnlockVote::Certificate(order) if order == self.forged.digest() => Some(self.forged.clone()),
                UnlockVote::Certificate(_) => Some(self.certificate.clone()),
                UnlockVote::Void { .. } => None,
            };
            let (account, sequence) = self.number;
            let vote = vote.sign(&self.committee.keys[voter], &self.committee.domain, epoch, account, sequence);
            let name = self.committee.keys[by].public().name;
            self.ballot.count(name, Ok(Answered { certificate, epoch, vote }));
        }

        fn vote(&mut self, by: usize, vote: UnlockVote) {
            self.answer(by, by, vote, Epoch(0));
        }
    }

    #[test]
    fn a_quorum_upholds_and_all_void_at_once() {
        let mut case = case(true);
        let exists = UnlockVote::Certificate(case.certificate.digest());
        for by in 0..3 {
            case.vote(by, UnlockVote::Void { unanimous: true });
        }
        assert_eq!(case.ballot.decision(), None, "of four, all four are needed");
        case.vote(3, UnlockVote::Void { unanimous: true });
        let decision = case.ballot.decision().unwrap();
        assert_eq!((decision.vote, decision.votes.len()), (UnlockVote::Void { unanimous: true }, 4 * 66));
        for by in 0..3 {
            case.vote(by, exists);
        }
        let UnlockDecision { vote, votes } = case.ballot.decision().unwrap();
        assert_eq!((vote, votes.len()), (exists, 3 * 66));
    }

    #[test]
    fn a_forged_certificate_that_is_shown_first_hides_no_other_one() {
        let mut case = case(true);
        let [exists, forged] = [&case.certificate, &case.forged].map(|of| UnlockVote::Certificate(of.digest()));
        case.vote(0, forged);
        for by in 1..4 {
            assert_eq!(case.ballot.decision(), None);
            case.vote(by, exists);
        }
        let UnlockDecision { vote, votes } = case.ballot.decision().unwrap();
        assert_eq!((vote, votes.len()), (exists, 3 * 66));
        let signers: Vec<u8> = votes.chunks(66).map(|vote| vote[0]).collect();
        assert_eq!(signers, [1, 2, 3], "no vote for another order is among them");
    }

    #[test]
    fn who_shows_a_members_vote_with_a_forged_certificate_of_its_order_hides_not_the_members_own() {
        let mut case = case(false);
        let exists = UnlockVote::Certificate(case.certificate.digest());
        let order = case.certificate.certificate().order.clone();
        let retired = TestCommittee::with(4, case.committee.domain, Epoch(7)).certified(&order);
        let genuine = std::mem::replace(&mut case.certificate, retired);
        // One that left the committee.
        let (account, sequence) = case.number;
        let vote = exists.sign(&case.committee.keys[1], &case.committee.domain, Epoch(0), account, sequence);
        let certificate = Some(case.certificate.clone());
        case.ballot.count(AuthorityName([9; 32]), Ok(Answered { certificate, epoch: Epoch(0), vote }));
        case.certificate = genuine;
        case.vote(1, exists);
        let sent: Vec<_> = case.ballot.unbrought().into_keys().collect();
        assert_eq!(sent, [(Epoch(0), order_of(exists)), (Epoch(7), order_of(exists))]);
        assert_eq!(case.ballot.votes(), (1, 0));
    }

    fn order_of(vote: UnlockVote) -> Digest {
        let UnlockVote::Certificate(order) = vote else { panic!("{vote:?}") };
        order
    }

    #[test]
    fn nothing_is_void_before_each_certificate_was_sent_to_all() {
        let mut case = case(false);
        let [exists, forged] = [&case.certificate, &case.forged].map(|of| UnlockVote::Certificate(of.digest()));
        case.vote(0, forged);
        case.vote(1, exists);
        let sent = case.ballot.unbrought().into_keys().collect::<Vec<_>>();
        assert_eq!(sent.len(), 2);
        case.ballot.brought.insert((Epoch(0), case.forged.digest()));
        for by in [0, 2, 3] {
            case.vote(by, UnlockVote::Void { unanimous: false });
        }
        assert_eq!((case.ballot.decision(), case.ballot.votes()), (None, (2, 3)));
        case.ballot.brought.extend(sent);
        assert_eq!(case.ballot.decision().unwrap().vote, UnlockVote::Void { unanimous: false });
        // A signer's first certificate counts, so that its others take no more rounds.
        case.vote(0, exists);
        assert!(case.ballot.unbrought().is_empty());
        case.vote(2, exists);
        assert_eq!(case.ballot.votes(), (3, 3));
    }

    #[test]
    fn after_the_window_a_quorum_voids() {
        let mut case = case(false);
        for by in 0..2 {
            case.vote(by, UnlockVote::Void { unanimous: false });
        }
        assert_eq!(case.ballot.decision(), None);
        case.vote(2, UnlockVote::Void { unanimous: false });
        let UnlockDecision { vote, votes } = case.ballot.decision().unwrap();
        assert_eq!((vote, votes.len()), (UnlockVote::Void { unanimous: false }, 3 * 66));
    }

    #[test]
    fn who_left_the_committee_ignores_no_request() {
        let mut case = case(true);
        let ignores = || Err(ClientError::Refused(fastpay_rpc::Refusal::NotRequested(SequenceNumber(0))));
        let [first, second] = [0, 1].map(|by: usize| case.committee.keys[by].public().name);
        for (by, is_ignored) in [(first, false), (AuthorityName([9; 32]), false), (second, true)] {
            case.ballot.count(by, ignores());
            assert_eq!(case.ballot.is_ignored(), is_ignored);
        }
    }

    #[test]
    fn votes_of_another_kind_epoch_or_authority_do_not_count() {
        let mut case = case(false);
        case.vote(0, UnlockVote::Void { unanimous: true });
        case.answer(1, 1, UnlockVote::Void { unanimous: false }, Epoch(1));
        case.answer(2, 3, UnlockVote::Void { unanimous: false }, Epoch(0));
        case.vote(3, UnlockVote::Certificate(Digest::repeat_byte(1)));
        assert_eq!((case.ballot.votes(), case.ballot.failures().len()), ((0, 0), 4));
        // A vote that is returned twice counts once.
        case.vote(0, UnlockVote::Void { unanimous: false });
        case.vote(0, UnlockVote::Void { unanimous: false });
        assert_eq!((case.ballot.votes(), case.ballot.failures().len()), ((0, 1), 3));
    }
}
