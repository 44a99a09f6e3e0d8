//! Certificates of epochs that have ended: executed for a while, then only kept, and after that only with the votes of
//! f + 1 current members that they exist.

use fastpay_core::{
    Asset, Attestation, AttestationError, AttestedCertificate, Balance, Certificate, Committees, Digest, Epoch,
    EpochEnd, Installation, Moment, PrimaryAddress, Rejection, Request, RequestError, SequenceNumber, Standing,
    TransactionIndex, UnlockEvent, UnlockEventKind, UnlockVote, VerifiedContractVote, VerifiedRequest, Verifier,
};
use fastpay_testkit::{Outcome, TestAccount, TestAuthority, TestAuthorityError, TestCommittee, payment, redemption};

const WINDOW: u64 = 100;
/// Certificates of epoch 0 are executed before this time, and kept for one more window.
const EXECUTED_UNTIL: u64 = 1_000;

fn at(now: u64) -> Option<Moment> {
    Some(Moment { now, followed: now, unlock_window: WINDOW })
}

fn unattested<T>() -> Result<T, TestAuthorityError> {
    Err(TestAuthorityError::Rejection(Rejection::Unattested { epoch: Epoch(0) }))
}

/// A committee that was replaced, the one in its place, and the members of both.
struct Scene {
    retired: TestCommittee,
    current: TestCommittee,
    nodes: Vec<TestAuthority>,
    owner: TestAccount,
}

impl Scene {
    fn new() -> Self {
        let retired = TestCommittee::new(4);
        let current = retired.rotated();
        let mut nodes = TestAuthority::all(&retired, &[1]);
        let end = EpochEnd::new(EXECUTED_UNTIL + WINDOW, WINDOW);
        nodes.iter_mut().enumerate().for_each(|(at, node)| node.rotate_until(&current, at, end));
        Self { retired, current, nodes, owner: TestAccount::ed25519(0) }
    }

    /// A certificate of the ended epoch, of an account that has nothing.
    fn certificate(&self, sequence: u64) -> Certificate {
        let order = payment(self.owner.id(), TestAccount::ed25519(1).id(), 7, sequence);
        self.retired.certificate(&self.owner.sign(&self.retired.domain, order))
    }

    fn confirm(&mut self, node: usize, now: u64, certificate: &Certificate) -> Result<Outcome, TestAuthorityError> {
        self.nodes[node].moment = at(now);
        self.nodes[node].confirm(certificate)
    }

    /// The certificate with the votes of these members, given as each of them says that it executed it.
    fn attested(&self, certificate: &Certificate, by: &[(usize, bool)]) -> Option<AttestedCertificate> {
        let transfer = &certificate.order.transfer;
        let digest = UnlockVote::Certificate(self.current.domain.transfer_digest(transfer));
        let digest = digest.digest(&self.current.domain, Epoch(1), transfer.sender(), transfer.sequence());
        let votes = by.iter().filter_map(|(node, executed)| self.nodes[*node].attest(transfer, *executed));
        let votes: Vec<_> = votes.map(|vote| vote.verify(&self.current.committee, digest).unwrap()).collect();
        let attestation = Attestation::from_votes(&self.current.committee, digest, &votes)?;
        Some(AttestedCertificate { certificate: certificate.clone(), attestation })
    }

    /// With the votes of members that say anything.
    fn forged(&self, certificate: &Certificate, members: &[usize]) -> AttestedCertificate {
        let TestCommittee { domain, keys, .. } = &self.current;
        let transfer = &certificate.order.transfer;
        let vote = UnlockVote::Certificate(domain.transfer_digest(transfer));
        let sign = |at: &usize| vote.sign(&keys[*at], domain, Epoch(1), transfer.sender(), transfer.sequence());
        let attestation = Attestation { epoch: Epoch(1), votes: members.iter().map(sign).collect() };
        AttestedCertificate { certificate: certificate.clone(), attestation }
    }
}

/// A quorum of retired keys makes no money, neither by a payment nor by a redemption.
#[test]
fn a_retired_quorums_certificate_on_an_empty_account_is_refused() {
    let mut scene = Scene::new();
    let to = PrimaryAddress::repeat_byte(0x66);
    let redeemed = scene.owner.sign(&scene.retired.domain, redemption(scene.owner.id(), to, 1_000_000, 0));
    for stolen in [scene.certificate(0), scene.retired.certificate(&redeemed)] {
        assert_eq!(stolen.epoch, Epoch(0));
        for node in 0..4 {
            assert_eq!(scene.confirm(node, EXECUTED_UNTIL + WINDOW, &stolen), unattested());
            assert_eq!(scene.nodes[node].attest(&stolen.order.transfer, false), None, "nor kept");
        }
        // Its f faulty members attest it.
        let too_few = AttestationError::VoteCount { expected: 2, found: 1 };
        let by_one = scene.forged(&stolen, &[3]);
        let answer = scene.nodes[0].confirm_attested(&by_one);
        assert_eq!(answer, Err(TestAuthorityError::Attestation(too_few)));
        // So do all retired keys.
        let mut retired = scene.forged(&stolen, &[0, 1]);
        retired.attestation.epoch = Epoch(0);
        assert_eq!(scene.nodes[0].confirm_attested(&retired), unattested());
    }
    assert_eq!(scene.nodes[0].account(&scene.owner.id()).balance(Asset::ETHER), Balance::ZERO);
    assert_eq!(scene.nodes[0].shards[0].ledger().redemptions.count(), 0, "nothing is offered to relayers");
}

#[test]
fn what_was_executed_in_time_is_executed_at_any_age_with_the_votes_of_those_who_did() {
    let mut scene = Scene::new();
    let certificate = scene.certificate(0);
    let late = 100 * EXECUTED_UNTIL;
    assert_eq!(scene.confirm(0, EXECUTED_UNTIL - 1, &certificate), Ok(Outcome::Committed));
    assert_eq!(scene.attested(&certificate, &[(0, true), (1, false)]), None, "one alone may lie");
    assert_eq!(scene.confirm(1, EXECUTED_UNTIL - 1, &certificate), Ok(Outcome::Committed));
    assert_eq!(scene.confirm(0, late, &certificate), Ok(Outcome::Already));
    for node in [2, 3] {
        assert_eq!(scene.confirm(node, late, &certificate), unattested());
        let attested = scene.attested(&certificate, &[(0, true), (1, true)]).unwrap();
        assert_eq!(scene.nodes[node].confirm_attested(&attested), Ok(Outcome::Committed));
        assert_eq!(scene.nodes[node].confirm_attested(&attested), Ok(Outcome::Already));
    }
}

/// What one authority executed at the last moment, the others keep and attest, and then execute.
#[test]
fn what_is_shown_while_it_is_only_kept_is_attested_and_not_executed() {
    let mut scene = Scene::new();
    let (certificate, next) = (scene.certificate(0), scene.certificate(1));
    assert_eq!(scene.confirm(0, EXECUTED_UNTIL - 1, &certificate), Ok(Outcome::Committed));
    for now in [EXECUTED_UNTIL, EXECUTED_UNTIL + WINDOW - 1] {
        for node in [1, 2] {
            assert_eq!(scene.confirm(node, now, &certificate), unattested());
            assert_eq!(scene.nodes[node].account(&scene.owner.id()).next_sequence(), SequenceNumber(0));
            let behind = Rejection::MissingCertificate { missing: SequenceNumber(0) };
            assert_eq!(scene.confirm(node, now, &next), Err(TestAuthorityError::Rejection(behind)));
        }
    }
    assert_eq!(scene.confirm(3, EXECUTED_UNTIL + WINDOW, &certificate), unattested());
    let attested = scene.attested(&certificate, &[(3, false), (1, false), (2, false)]).unwrap();
    for node in 1..4 {
        assert_eq!(scene.nodes[node].confirm_attested(&attested), Ok(Outcome::Committed), "{node}");
    }
}

#[test]
fn an_order_that_nobody_executed_is_voted_for_anew() {
    let mut scene = Scene::new();
    let order = scene.certificate(0).order;
    let deposit = fastpay_core::Deposit {
        index: TransactionIndex(1),
        recipient: scene.owner.id(),
        asset: Asset::ETHER,
        amount: fastpay_core::Amount(7),
    };
    for node in &mut scene.nodes {
        node.deposit(&deposit).unwrap();
        node.moment = at(EXECUTED_UNTIL + WINDOW);
        node.order(&order).unwrap();
    }
    let anew = scene.current.certificate(&order);
    for node in &mut scene.nodes {
        assert_eq!(node.confirm(&anew), Ok(Outcome::Committed));
    }
}

/// An installation that says that keys were out ends their epochs at once.
#[test]
fn certificates_of_an_epoch_whose_keys_were_out_do_not_count_from_the_installation_on() {
    let mut scene = Scene::new();
    let certificate = scene.certificate(0);
    let shard = &mut scene.nodes[0].shards[0];
    let (after, index) = (TransactionIndex(0), TransactionIndex(1));
    let (epoch, compromised_since, voidable_at) = (Epoch(1), Epoch(0), 0);
    shard.follow_installation(&Installation { after, index, epoch, compromised_since, voidable_at }).unwrap();
    assert_eq!(scene.confirm(0, 0, &certificate), unattested());
    // The contract says so to the node, too.
    let mut told = TestAuthority::new(&scene.retired, 0, 1);
    told.rotate_until(&scene.current, 0, EpochEnd::new(0, WINDOW));
    told.moment = at(0);
    assert_eq!(told.confirm(&certificate), unattested());
    assert_eq!(scene.confirm(1, 0, &certificate), Ok(Outcome::Committed), "elsewhere it counts");
}

/// Whoever has not heard of the end of an epoch, and follows the chain no more, may not execute what retired keys sign.
#[test]
fn on_an_old_view_certificates_of_the_newest_epoch_that_is_known_count_only_so_long() {
    let scene = Scene::new();
    let committees = Committees::new(scene.retired.committee.clone()).unwrap();
    let shard = TestAuthority::new(&scene.retired, 0, 1).shards.remove(0);
    let standing = |now| {
        let moment = Moment { now, followed: 5_000, unlock_window: WINDOW };
        shard.rules().standing(Epoch(0), &committees, &moment)
    };
    let times = [5_000, 5_000 + WINDOW, 5_000 + 2 * WINDOW];
    assert_eq!(times.map(standing), [Standing::Counts, Standing::Kept, Standing::Unsure]);
    // A shard that has followed the next installation before its node has read of it does not know when that was.
    let mut ahead = TestAuthority::new(&scene.retired, 0, 1).shards.remove(0);
    let (after, index) = (TransactionIndex(0), TransactionIndex(1));
    let (epoch, compromised_since, voidable_at) = (Epoch(1), Epoch(1), 0);
    ahead.follow_installation(&Installation { after, index, epoch, compromised_since, voidable_at }).unwrap();
    let moment = Moment { now: 5_000, followed: 5_000, unlock_window: WINDOW };
    assert_eq!(ahead.rules().standing(Epoch(0), &committees, &moment), Standing::Ended);
}

#[test]
fn on_an_old_view_a_certificate_that_ended_is_not_even_kept() {
    use fastpay_core::PrimaryView::TooOld;
    let scene = Scene::new();
    let certified = scene.retired.certified(&scene.certificate(0).order);
    let mut shard = TestAuthority::new(&scene.retired, 0, 1).shards.remove(0);
    let seen = |shard: &fastpay_testkit::TestShard| shard.ledger().unlocks.iter().count();
    for (standing, kept) in [(Standing::Ended, 0), (Standing::Unsure, 0), (Standing::Kept, 1), (Standing::Counts, 1)] {
        let answer = shard.confirm_standing(TooOld, standing, &certified);
        assert_eq!((answer, seen(&shard)), (Err(Rejection::PrimaryTooOld), kept), "{standing:?}");
    }
    // Of a frozen number it is kept unless the epoch is known to have ended.
    for (standing, kept) in [(Standing::Ended, false), (Standing::Unsure, true)] {
        let mut frozen = TestAuthority::new(&scene.retired, 0, 1).shards.remove(0);
        let (account, sequence) = (scene.owner.id(), SequenceNumber(0));
        let kind = UnlockEventKind::Requested(1_000);
        let (after, index) = (TransactionIndex(0), TransactionIndex(1));
        frozen.follow_unlock(&UnlockEvent { after, index, account, sequence, kind }).unwrap();
        frozen.confirm_standing(TooOld, standing, &certified).unwrap_err();
        let has_it = frozen.ledger().unlocks.get(account, sequence).is_some_and(|unlock| unlock.seen.is_some());
        assert_eq!(has_it, kept, "{standing:?}");
    }
}

#[test]
fn what_the_contract_upheld_or_spent_is_executed_at_any_age() {
    for is_requested in [true, false] {
        let mut scene = Scene::new();
        let to = PrimaryAddress::repeat_byte(0x66);
        let order = scene.owner.sign(&scene.retired.domain, redemption(scene.owner.id(), to, 5, 0));
        let certificate = scene.retired.certificate(&order);
        let digest = scene.retired.domain.transfer_digest(&order.transfer);
        let mut events = vec![UnlockEventKind::Spent(digest)];
        if is_requested {
            events = vec![UnlockEventKind::Requested(0), UnlockEventKind::Upheld(digest)];
        }
        let ended = EXECUTED_UNTIL + WINDOW;
        for (after, kind) in (0..).zip(events) {
            // Of a frozen number, too, nothing is kept that does not count.
            if after == 1 {
                assert_eq!(scene.confirm(0, ended, &certificate), unattested());
            }
            let (after, index) = (TransactionIndex(after), TransactionIndex(after + 1));
            let (account, sequence) = (scene.owner.id(), SequenceNumber(0));
            let event = UnlockEvent { after, index, account, sequence, kind };
            scene.nodes[0].shards[0].follow_unlock(&event).unwrap();
        }
        assert_eq!(scene.confirm(0, ended, &certificate), Ok(Outcome::Committed));
        // Of another order of the number, nothing is executed.
        let other = scene.certificate(0);
        assert_eq!(scene.confirm(1, ended, &other), unattested());
    }
}

#[test]
fn votes_for_a_certificate_are_of_f_plus_1_current_members_in_order_each_once() {
    let scene = Scene::new();
    let certificate = scene.certificate(0);
    let mut committees = Committees::new(scene.retired.committee.clone()).unwrap();
    committees.install(scene.current.committee.clone()).unwrap();
    let mut verifier = Verifier::new(scene.current.domain);
    let mut verify = |attested: AttestedCertificate| {
        let request = Request::Attested(Box::new(attested));
        verifier.verify(vec![request], &committees, &mut rand::rng()).remove(0)
    };
    let good = || scene.forged(&certificate, &[1, 2]);
    assert!(matches!(verify(good()), Ok(VerifiedRequest::Attested(_))));

    let votes = |members: &[usize]| scene.forged(&certificate, members);
    let count = |found| Err(RequestError::Attestation(AttestationError::VoteCount { expected: 2, found }));
    assert_eq!((verify(votes(&[])), verify(votes(&[1])), verify(votes(&[0, 1, 2]))), (count(0), count(1), count(3)));
    for members in [[1, 1], [2, 1]] {
        let bad = verify(votes(&members));
        assert!(matches!(bad, Err(RequestError::Attestation(AttestationError::VotesUnsorted(_)))), "{bad:?}");
    }
    let mut altered = good();
    altered.attestation.votes[1].signature.0[5] ^= 1;
    let mut renamed = good();
    renamed.attestation.votes[1].authority = scene.current.keys[3].public().name;
    let mut stranger = good();
    stranger.attestation.votes[1].authority.0 = [0xff; 32];
    let of_another = AttestedCertificate { certificate: scene.certificate(1), ..good() };
    for bad in [altered, renamed, stranger, of_another].map(&mut verify) {
        assert!(matches!(bad, Err(RequestError::Attestation(AttestationError::Vote(_)))), "{bad:?}");
    }

    // Votes of an epoch that has ended count for nothing, and those of one that is not known yet are refused so.
    let mut ended = good();
    ended.attestation.epoch = Epoch(0);
    assert!(matches!(verify(ended), Ok(VerifiedRequest::Certificate(_))));
    let mut later = good();
    later.attestation.epoch = Epoch(2);
    assert_eq!(verify(later), Err(RequestError::UnknownEpoch(Epoch(2))));
    // The certificate itself must be valid.
    let mut spoilt = good();
    spoilt.certificate.votes.pop();
    assert!(matches!(verify(spoilt), Err(RequestError::Certificate(_))));
}

#[test]
fn votes_are_gathered_of_one_digest_and_one_committee() {
    let scene = Scene::new();
    let TestCommittee { committee, domain, keys } = &scene.current;
    let vote = |at: usize, digest: Digest| {
        let order = UnlockVote::Certificate(digest);
        let (account, sequence) = (scene.owner.id(), SequenceNumber(0));
        let signed = order.sign(&keys[at], domain, Epoch(1), account, sequence);
        signed.verify(committee, order.digest(domain, Epoch(1), account, sequence)).unwrap()
    };
    let (one, other) = (Digest::repeat_byte(1), Digest::repeat_byte(2));
    let signed = UnlockVote::Certificate(one).digest(domain, Epoch(1), scene.owner.id(), SequenceNumber(0));
    let gather = |votes: &[VerifiedContractVote]| Attestation::from_votes(committee, signed, votes);
    assert_eq!(gather(&[vote(1, one), vote(1, one), vote(2, other)]), None);
    let gathered = gather(&[vote(3, one), vote(2, other), vote(1, one), vote(0, one)]).unwrap();
    let names: Vec<_> = gathered.votes.iter().map(|vote| vote.authority).collect();
    assert_eq!((gathered.epoch, names), (Epoch(1), vec![keys[0].public().name, keys[1].public().name]));
    assert_eq!(Attestation::from_votes(&scene.retired.committee, signed, &[vote(1, one), vote(2, one)]), None);
}
