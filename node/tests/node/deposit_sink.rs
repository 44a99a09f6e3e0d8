//! Deposits on their way from the follower to the shards.

use fastpay_core::{Amount, Asset, Balance, ShardId, TransactionIndex};
use fastpay_testkit::TestAccount;

use crate::scene::{FORGETFUL, Shards, deposits_after, eventually};

const NONE: TransactionIndex = TransactionIndex(0);

fn runtime() -> tokio::runtime::Runtime {
    tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap()
}

#[test]
fn shards_left_at_different_indices_by_a_crash_converge() {
    let folder = tempfile::tempdir().unwrap();
    let owners: Vec<_> = (0..10).map(TestAccount::numbered).collect();
    let amounts: Vec<_> = (0..600_u128).map(|n| (owners[n as usize % owners.len()].id(), n + 1)).collect();
    let deposits = deposits_after(NONE, &amounts);
    let up_to = |index| TransactionIndex(index);
    let some = |index: u64| &deposits[..index as usize];

    // One shard got everything, one a part, one nothing.
    let shards = Shards::start(folder.path(), 3, FORGETFUL);
    assert!(runtime().block_on(shards.deposit_sink().apply(NONE, some(100), up_to(100))));
    shards.stop();
    let shards = Shards::prepare(folder.path(), 3, FORGETFUL).run_those(|id| id == ShardId(0));
    // The batch stops at the shard that is away, and the follower is killed meanwhile.
    let (sink, batch) = (shards.deposit_sink(), deposits.clone());
    let (kill, killed) = tokio::sync::oneshot::channel();
    let follower = std::thread::spawn(move || {
        runtime().block_on(async {
            tokio::select! {
                _ = sink.apply(NONE, &batch, TransactionIndex(600)) => panic!("not all shards are there"),
                _ = killed => {}
            }
        });
    });
    eventually("the first shard has all", || shards.ledger(0).synchronized == up_to(600));
    kill.send(()).unwrap();
    follower.join().unwrap();
    shards.stop();

    let shards = Shards::start(folder.path(), 3, FORGETFUL);
    let synchronized: Vec<u64> = (0..3).map(|id| shards.ledger(id).synchronized.0).collect();
    assert_eq!(synchronized, [600, 100, 100]);
    // From an older index, in other batches, twice over.
    runtime().block_on(async {
        let sink = shards.deposit_sink();
        assert!(sink.apply(NONE, some(37), up_to(37)).await);
        assert!(sink.apply(up_to(37), &deposits[37..350], up_to(350)).await);
        assert!(sink.apply(up_to(350), &deposits[350..], up_to(600)).await);
        assert!(sink.apply(NONE, &deposits, up_to(600)).await);
        assert!(sink.apply(up_to(600), &[], up_to(600)).await);
    });
    for (number, owner) in owners.iter().enumerate() {
        let expected: u128 = amounts.iter().skip(number).step_by(owners.len()).map(|(_, amount)| amount).sum();
        let account = shards.account(&owner.id());
        assert_eq!(account.balance(Asset::ETHER), Balance::from(Amount(expected)));
        assert_eq!(account.deposits.count(), 60);
    }
    assert!((0..3).all(|id| shards.ledger(id).synchronized == up_to(600)));
    shards.stop();
}

#[test]
fn deposits_are_never_stepped_over() {
    let folder = tempfile::tempdir().unwrap();
    let shards = Shards::start(folder.path(), 2, FORGETFUL);
    let owner = TestAccount::numbered(1);
    let later = deposits_after(TransactionIndex(5), &[(owner.id(), 1)]);
    assert!(!runtime().block_on(shards.deposit_sink().apply(TransactionIndex(5), &later, TransactionIndex(6))));
    assert!((0..2).all(|id| shards.ledger(id).synchronized == NONE));
    assert_eq!(shards.account(&owner.id()).deposits.count(), 0);
    let sink = shards.deposit_sink();
    shards.stop();
    // And the sink says so where the shards have ended.
    assert!(!runtime().block_on(sink.apply(NONE, &later, TransactionIndex(6))));
}
