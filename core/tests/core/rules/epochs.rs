//! What holds over rotations only under a condition: known limits, each pinned as it is today. docs/PROTOCOL.md says
//! so under "Rotation of the committee" and "Known gaps".

use fastpay_core::{Amount, Asset, Certificate, Deposit, TransactionIndex, TransferOrder, VerifiedVote};
use fastpay_testkit::{Outcome, TestAccount, TestAuthority, TestCommittee, payment};

/// The vote of the member at `index`, checked.
fn checked(committee: &TestCommittee, vote: fastpay_core::Vote, order: &TransferOrder) -> VerifiedVote {
    vote.verify(&committee.domain, &committee.committee, &committee.verified(order)).unwrap()
}

/// R3 counts each authority whose keys were ever out, not only those of the current epoch: nobody tells the node of an
/// authority what a thief has signed with its keys, so it can vote for the other order in any later epoch.
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
