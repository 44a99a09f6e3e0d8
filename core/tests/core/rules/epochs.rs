//! What holds over rotations only under a condition: known limits, each pinned as it is today. docs/PROTOCOL.md says
//! so under "Rotation of the committee" and "Known gaps".

use fastpay_core::checkpoint::{Installations, InstalledCommittee};
use fastpay_core::handover::{Closing, Inheritance, ReportedEntry};
use fastpay_core::private::NoProofs;
use fastpay_core::{
    Amount, Asset, Certificate, Deposit, Digest, Epoch, EpochEnd, Installation, Moment, PrimaryView, Rejection,
    TransactionIndex, TransferOrder, VerifiedVote,
};
use fastpay_testkit::{Outcome, TestAccount, TestAuthority, TestAuthorityError, TestCommittee, payment};

/// The vote of the member at `index`, checked.
fn checked(committee: &TestCommittee, vote: fastpay_core::Vote, order: &TransferOrder) -> VerifiedVote {
    vote.verify(&committee.domain, &committee.committee, &committee.verified(order)).unwrap()
}

/// R3 counts each authority whose keys were out until it has joined: nobody tells its node what a thief has signed with
/// them, so it can vote for the other order in any later epoch.
#[test]
fn keys_out_at_one_member_and_later_at_another_allow_two_certificates() {
    // The second theft is in the next epoch, or later, after epochs in which no key was out.
    for epochs_between in [1, 2, 5] {
        let first = TestCommittee::new(4);
        let mut nodes = TestAuthority::all(&first, &[1]);
        let owner = TestAccount::ed25519(0);
        let deposit =
            Deposit { index: TransactionIndex(1), recipient: owner.id(), asset: Asset::ETHER, amount: Amount(100) };
        nodes.iter_mut().for_each(|node| node.deposit(&deposit).unwrap());
        let order = |amount| owner.sign(&first.domain, payment(owner.id(), TestAccount::ed25519(1).id(), amount, 0));
        let (one, other) = (order(1), order(2));

        // Epoch 0: the keys of member 0 are out, and its node hears of nothing. Members 1 and 2 vote.
        let mut votes = vec![checked(&first, first.vote(0, &one), &one)];
        votes.extend([1, 2].map(|at: usize| checked(&first, nodes[at].order(&one).unwrap(), &one)));
        let certified = Certificate::from_votes(&first.verified(&one), &first.committee, &votes).unwrap();

        let mut last = first.clone();
        for _ in 0..epochs_between {
            last = last.rotated();
            nodes.iter_mut().enumerate().for_each(|(at, node)| node.rotate(&last, at));
        }
        // A later epoch: the keys of member 1 are out. Its node is locked, which does not keep the thief from voting.
        nodes[1].order(&other).unwrap_err();
        let mut votes = vec![checked(&last, last.vote(1, &other), &other)];
        votes.extend([0, 3].map(|at: usize| checked(&last, nodes[at].order(&other).unwrap(), &other)));
        let second = Certificate::from_votes(&last.verified(&other), &last.committee, &votes).unwrap();

        assert_ne!(certified.digest(), second.digest(), "two certificates for one number");
        // Honest authorities follow the one that they see first, and differ from then on.
        assert_eq!(nodes[2].confirm(&certified.into_certificate()), Ok(Outcome::Committed));
        assert_eq!(nodes[3].confirm(&second.into_certificate()), Ok(Outcome::Committed));
    }
}

/// The same thefts, where the authority whose keys were out first joins the next epoch under its new keys: one of those with
/// whose Closings it joins has voted for the order that the thief has helped to certify.
#[test]
fn keys_out_at_one_member_and_later_at_another_allow_one_certificate_if_the_first_has_joined() {
    let first = TestCommittee::new(4);
    let mut nodes = TestAuthority::all(&first, &[1]);
    let owner = TestAccount::ed25519(0);
    let (amount, index) = (Amount(100), TransactionIndex(1));
    let deposit = Deposit { index, recipient: owner.id(), asset: Asset::ETHER, amount };
    nodes.iter_mut().for_each(|node| node.deposit(&deposit).unwrap());
    let order = |amount| owner.sign(&first.domain, payment(owner.id(), TestAccount::ed25519(1).id(), amount, 0));
    let (one, other) = (order(1), order(2));
    let mut votes = vec![checked(&first, first.vote(0, &one), &one)];
    votes.extend([1, 2].map(|at: usize| checked(&first, nodes[at].order(&one).unwrap(), &one)));
    assert!(Certificate::from_votes(&first.verified(&one), &first.committee, &votes).is_some());

    let (next, up_to) = (first.rotated(), TransactionIndex(2));
    let (after, epoch, compromised_since, voidable_at) = (index, Epoch(1), Epoch(1), 0);
    let installation = Installation { after, index: up_to, epoch, compromised_since, voidable_at };
    let mut installations = Installations::new(first.committee.clone()).unwrap();
    let installed =
        InstalledCommittee { committee: next.committee.clone(), compromised_since, checkpoint: Digest::ZERO };
    installations.install(installed).unwrap();
    let mut closings = Vec::new();
    for (at, node) in nodes.iter_mut().enumerate() {
        node.shards[0].follow_installation(&installation).unwrap();
        node.shards[0].close(Epoch(0)).unwrap();
        let entries: Vec<_> = node.shards[0].locks(&owner.id()).iter().map(ReportedEntry::lock).collect();
        let closing = Closing::new(Epoch(0), up_to, Digest::ZERO, entries.iter().map(ReportedEntry::entry));
        let signed = closing.sign(&first.keys[at], &first.domain);
        let against = (&installations, up_to);
        closings.push(signed.verify(entries, (&first.domain, Epoch(0)), against, &NoProofs, &mut rand::rng()).unwrap());
        node.rotate(&next, at);
    }
    // The thief's own Closing reports nothing, and whichever quorum it is, one of the members that voted is in it.
    for left_out in 0..4 {
        let quorum = closings.iter().enumerate().filter(|(at, _)| *at != left_out).map(|(_, closing)| closing.clone());
        let inheritance = Inheritance::new(&first.committee, quorum.collect(), |_| true).unwrap();
        let mut rekeyed = nodes[0].clone();
        rekeyed.shards[0].join(&inheritance, PrimaryView::Recent).unwrap();
        assert!(rekeyed.order(&other).is_err(), "without {left_out}");
        rekeyed.order(&one).unwrap();
    }
}

/// An authority that was honest counts as faulty in each epoch whose keys it still has when it turns, or when they are
/// stolen, until certificates of that epoch count no longer by themselves. That all have joined the next epoch does not help:
/// the second certificate is of the first one.
#[test]
fn keys_out_at_another_member_after_the_hand_over_allow_two_certificates_while_the_epoch_counts() {
    const WINDOW: u64 = 100;
    const EXECUTED_UNTIL: u64 = 1_000;
    let first = TestCommittee::new(4);
    let mut nodes = TestAuthority::all(&first, &[1]);
    let owner = TestAccount::ed25519(0);
    let deposit =
        Deposit { index: TransactionIndex(1), recipient: owner.id(), asset: Asset::ETHER, amount: Amount(100) };
    nodes.iter_mut().for_each(|node| node.deposit(&deposit).unwrap());
    let order = |amount| owner.sign(&first.domain, payment(owner.id(), TestAccount::ed25519(1).id(), amount, 0));
    let (one, other) = (order(1), order(2));

    // Epoch 0: the keys of member 0 are out. The other members vote for one order or the other.
    let mut votes = vec![checked(&first, first.vote(0, &one), &one)];
    votes.extend([1, 2].map(|at: usize| checked(&first, nodes[at].order(&one).unwrap(), &one)));
    let certified = Certificate::from_votes(&first.verified(&one), &first.committee, &votes).unwrap();
    let honest = checked(&first, nodes[3].order(&other).unwrap(), &other);

    let (next, end) = (first.rotated(), EpochEnd::new(EXECUTED_UNTIL + WINDOW, WINDOW));
    nodes.iter_mut().enumerate().for_each(|(at, node)| node.rotate_until(&next, at, end));
    // Epoch 1: the old keys of member 1 are out, too.
    let mut votes = vec![honest];
    votes.extend([0, 1].map(|at: usize| checked(&first, first.vote(at, &other), &other)));
    let second = Certificate::from_votes(&first.verified(&other), &first.committee, &votes).unwrap();
    assert_ne!(certified.digest(), second.digest(), "two certificates for one number");

    let mut confirm = |node: usize, now: u64, certificate: &Certificate| {
        nodes[node].moment = Some(Moment { now, followed: now, unlock_window: WINDOW });
        nodes[node].confirm(certificate)
    };
    let (certified, second) = (certified.into_certificate(), second.into_certificate());
    let unattested = Err(TestAuthorityError::Rejection(Rejection::Unattested { epoch: Epoch(0) }));
    assert_eq!(confirm(3, EXECUTED_UNTIL + WINDOW, &second), unattested, "old keys are worth nothing any more");
    assert_eq!(confirm(3, EXECUTED_UNTIL - 1, &second), Ok(Outcome::Committed));
    assert_eq!(confirm(2, EXECUTED_UNTIL - 1, &certified), Ok(Outcome::Committed));
}
