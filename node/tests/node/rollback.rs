//! A shard whose authority may have forgotten votes.

use std::sync::Arc;

use fastpay_core::{Epoch, SequenceNumber};
use fastpay_node::authority::rollback::{RollbackProtection, VoteFloors};
use fastpay_node::authority::shard::{Answer, ShardLimits};
use fastpay_rpc::Refusal;
use fastpay_testkit::payment;

use crate::scene::{FORGETFUL, Shards, voter_status};

#[test]
fn what_may_be_a_second_vote_is_refused_and_everything_else_goes_on() {
    for limits in [ShardLimits::default(), FORGETFUL] {
        let folder = tempfile::tempdir().unwrap();
        let shards = Shards::start(folder.path(), 1, limits);
        let (alice, bob) = (shards.account_in(0, 0), shards.account_in(0, 1));
        shards.deposit(&[(alice.id(), 100), (bob.id(), 100)]);
        let domain = shards.committee.domain;
        let order = |owner: &fastpay_testkit::TestAccount, amount, sequence| {
            owner.sign(&domain, payment(owner.id(), shards.account_in(0, 2).id(), amount, sequence))
        };
        let remembered = shards.vote(&order(&alice, 10, 0));

        let (protection, mut questions) = RollbackProtection::new(VoteFloors::open(folder.path()).unwrap());
        let protection = Arc::new(protection);
        let protected = voter_status(&[&shards.committee]).with_rollback_protection(Some(protection.clone()));
        shards.voter_status.send_replace(Arc::new(protected));
        // What it remembers it says again, and the rules refuse as ever; nobody is asked about that.
        assert_eq!(shards.vote(&order(&alice, 10, 0)), remembered);
        assert_eq!(shards.refusal(&order(&alice, 11, 0)), Refusal::OrderPending(Box::new(order(&alice, 10, 0))));
        assert_eq!(shards.refusal(&order(&bob, 10, 1)), Refusal::SequenceTooHigh(SequenceNumber(0)));
        assert!(matches!(shards.refusal(&order(&bob, 101, 0)), Refusal::InsufficientBalance(_)));
        assert!(questions.try_recv().is_err());

        assert_eq!(shards.refusal(&order(&bob, 10, 0)), Refusal::CatchingUp(None));
        assert_eq!(questions.try_recv(), Ok((bob.id(), SequenceNumber(0))));
        protection.learn(bob.id(), Some(SequenceNumber(1)));
        assert_eq!(shards.refusal(&order(&bob, 10, 0)), Refusal::CatchingUp(Some(SequenceNumber(1))));
        assert_eq!(shards.account(&bob.id()).pending, None);
        // The others finish it, and the next one gets a vote.
        let certificate = shards.committee.certificate(&order(&bob, 10, 0));
        assert_eq!(shards.confirm(&certificate), Answer::Confirmed(Epoch(0), SequenceNumber(1)));
        shards.vote(&order(&bob, 10, 1));
        // A new epoch's keys have no more of a memory.
        let next = shards.committee.rotated();
        let among = shards.voter_status.borrow().among(
            {
                let mut committees = fastpay_core::Committees::new(shards.committee.committee.clone()).unwrap();
                committees.install(next.committee).unwrap();
                committees
            },
            &[shards.committee.keys[0].public().name].as_slice().into(),
        );
        assert!(among.unwrap().rollback_protection().is_some());
        assert!(shards.stop().into_iter().all(|ended| ended.is_ok()));
    }
}

#[test]
fn a_vote_that_is_not_remembered_raises_an_alarm_when_its_certificate_comes() {
    for limits in [ShardLimits::default(), FORGETFUL] {
        let folder = tempfile::tempdir().unwrap();
        let shards = Shards::start(folder.path(), 1, limits);
        let (alice, bob, carol) = (shards.account_in(0, 0), shards.account_in(0, 1), shards.account_in(0, 2));
        shards.deposit(&[(alice.id(), 100), (bob.id(), 100), (carol.id(), 100)]);
        let domain = shards.committee.domain;
        let order = |owner: &fastpay_testkit::TestAccount, amount, sequence| {
            owner.sign(&domain, payment(owner.id(), carol.id(), amount, sequence))
        };
        let forgotten = || shards.metrics.shards[0].forgotten_votes.get();
        // Its own vote, which it gave; then a quorum without it, whatever it is locked on.
        shards.pay(&order(&alice, 10, 0));
        shards.confirm(&shards.committee.certificate_by(&order(&alice, 10, 1), &[1, 2, 3]));
        shards.vote(&order(&bob, 10, 0));
        shards.confirm(&shards.committee.certificate_by(&order(&bob, 11, 0), &[1, 2, 3]));
        // The same again changes nothing, and says nothing.
        shards.confirm(&shards.committee.certificate_by(&order(&alice, 10, 0), &[0, 1, 2]));
        assert_eq!(forgotten(), 0);

        shards.confirm(&shards.committee.certificate_by(&order(&alice, 10, 2), &[0, 1, 2]));
        assert_eq!(forgotten(), 1);
        shards.vote(&order(&bob, 10, 1));
        shards.confirm(&shards.committee.certificate_by(&order(&bob, 11, 1), &[0, 1, 2]));
        assert_eq!(forgotten(), 2);
        assert!(shards.metrics.text().contains("fastpay_forgotten_votes_total{shard=\"0\"} 2"));
        // If it is known that votes were forgotten, that is no news.
        let (protection, _questions) = RollbackProtection::new(VoteFloors::open(folder.path()).unwrap());
        let protected = voter_status(&[&shards.committee]).with_rollback_protection(Some(Arc::new(protection)));
        shards.voter_status.send_replace(Arc::new(protected));
        shards.confirm(&shards.committee.certificate_by(&order(&alice, 10, 3), &[0, 1, 2]));
        assert_eq!(forgotten(), 2);
        assert!(shards.stop().into_iter().all(|ended| ended.is_ok()));
    }
}
