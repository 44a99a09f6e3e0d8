//! Credits between the shards of one authority: each applied once, whatever is lost or repeated.

use fastpay_core::{Amount, Asset, Balance, ShardId};
use fastpay_node::shard::{Command, ShardLimits};
use fastpay_testkit::payment;

use crate::scene::{FORGETFUL, Shards, eventually};

fn balance(shards: &Shards, account: &fastpay_testkit::TestAccount) -> Balance {
    shards.account(&account.id()).balance(Asset::ETHER)
}

#[test]
fn credits_lost_with_a_crashed_shard_arrive_once_after_any_number_of_crashes() {
    let folder = tempfile::tempdir().unwrap();
    let shards = Shards::start(folder.path(), 2, FORGETFUL);
    let domain = shards.committee.domain;
    let (alice, bob) = (shards.account_in(0, 0), shards.account_in(1, 0));
    shards.deposit(&[(alice.id(), 1_000)]);
    shards.stop();

    // The other shard's queue takes the credits, and the crash loses them.
    let shards = Shards::prepare(folder.path(), 2, FORGETFUL).run_those(|id| id == ShardId(0));
    for sequence in 0..30 {
        shards.pay(&alice.sign(&domain, payment(alice.id(), bob.id(), 2, sequence)));
    }
    assert_eq!(shards.ledger(0).outboxes[&ShardId(1)].waiting.len(), 30);
    let mut crashed = shards.journals_after_crash();
    shards.stop();

    for crash in 0..3 {
        let shards = Shards::start(crashed.path(), 2, if crash == 1 { FORGETFUL } else { ShardLimits::default() });
        shards.settle();
        assert_eq!(balance(&shards, &bob), Balance::from(Amount(60)), "after crash {crash}");
        assert_eq!(shards.account(&bob.id()).received.count(), 30);
        assert_eq!(shards.ledger(1).inbox(ShardId(0)), 30);
        // Acknowledgements are not in the journal: after this crash all thirty are sent again.
        let next = shards.journals_after_crash();
        shards.stop();
        crashed = next;
    }
}

#[test]
fn repeated_and_early_credits_change_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let shards = Shards::prepare(folder.path(), 2, FORGETFUL).run_those(|id| id == ShardId(1));
    let (alice, bob) = (shards.account_in(0, 0), shards.account_in(1, 0));
    let credit = |number| fastpay_core::CrossShardCredit {
        from: ShardId(0),
        number,
        payment: payment(alice.id(), bob.id(), 10, number - 1),
    };
    let shard = &shards.handles[&ShardId(1)];
    let send = |numbers: &[u64]| {
        shard.try_send(Command::Credit(numbers.iter().copied().map(credit).collect())).unwrap();
        (shards.ledger(1).inbox(ShardId(0)), balance(&shards, &bob).to_string())
    };
    assert_eq!(send(&[2, 3]), (0, "0".into()), "a gap");
    assert_eq!(send(&[1]), (1, "10".into()));
    assert_eq!(send(&[1, 1, 2]), (2, "20".into()));
    assert_eq!(send(&[4]), (2, "20".into()), "a gap");
    assert_eq!(send(&[1, 2, 3, 4, 3]), (4, "40".into()));
    let totals = shards.ledger(1).totals[&Asset::ETHER];
    assert_eq!((totals.credited, totals.accounts), (Balance::from(Amount(40)), Balance::from(Amount(40))));
    // A credit for an account of another shard is refused, and so is what comes behind it.
    let wrong = fastpay_core::CrossShardCredit { payment: payment(bob.id(), alice.id(), 10, 0), ..credit(5) };
    shard.try_send(Command::Credit(vec![wrong, credit(5)])).unwrap();
    assert_eq!(shards.ledger(1).inbox(ShardId(0)), 4);
    shards.stop();
}

#[test]
fn value_is_neither_made_nor_lost_by_traffic_in_all_directions() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ShardLimits { batch_requests_max: 5, ..FORGETFUL };
    let shards = Shards::start(folder.path(), 3, limits);
    let domain = shards.committee.domain;
    let owners: Vec<_> = (0..9).map(|rank| shards.account_in(rank % 3, rank as usize)).collect();
    let deposits: Vec<_> = owners.iter().map(|owner| (owner.id(), 1_000)).collect();
    shards.deposit(&deposits);
    let mut pending = Vec::new();
    for sequence in 0..20 {
        for (index, owner) in owners.iter().enumerate() {
            let to = owners[(index * 7 + 1 + sequence as usize) % owners.len()].id();
            let order = owner.sign(&domain, payment(owner.id(), to, 1 + u128::from(sequence), sequence));
            pending.push(shards.send_certificate(&shards.committee.certificate(&order)));
        }
    }
    for pending in pending {
        assert!(matches!(pending.wait(), Some(fastpay_node::shard::Answer::Confirmed(_))));
    }
    shards.settle();
    let total = owners.iter().map(|owner| balance(&shards, owner)).fold(Balance::ZERO, Balance::plus);
    assert_eq!(total, Balance::from(Amount(9_000)));
    let received: u64 = owners.iter().map(|owner| shards.account(&owner.id()).received.count()).sum();
    assert_eq!(received, 180);
    let sum = |of: fn(&fastpay_core::AssetTotals) -> Balance| {
        (0..3).map(|id| of(&shards.ledger(id).totals[&Asset::ETHER])).fold(Balance::ZERO, Balance::plus)
    };
    assert_eq!(sum(|t| t.accounts), Balance::from(Amount(9_000)));
    assert_eq!(sum(|t| t.forwarded), sum(|t| t.credited));
    assert!(shards.stop().into_iter().all(|ended| ended.is_ok()));
}

#[test]
fn credits_pass_a_queue_that_clients_have_filled() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ShardLimits { queue_requests_max: 4, ..ShardLimits::default() };
    let shards = Shards::prepare(folder.path(), 2, limits).run_those(|id| id == ShardId(0));
    let domain = shards.committee.domain;
    let (alice, bob) = (shards.account_in(0, 0), shards.account_in(1, 0));
    let full = &shards.handles[&ShardId(1)];
    let read = || Command::ReadLedger(tokio::sync::oneshot::channel().0);
    while full.try_ask(read()).is_ok() {}
    let order = alice.sign(&domain, payment(alice.id(), bob.id(), 1, 0));
    shards.confirm(&shards.committee.certificate(&order));
    let shards = shards.run();
    shards.settle();
    eventually("the credit is applied", || balance(&shards, &bob) == Balance::from(Amount(1)));
    shards.stop();
}
