//! Credits between the shards of one authority: each applied once, whatever is lost or repeated.

use std::path::Path;
use std::sync::Arc;

use fastpay_core::{Amount, Asset, Balance, Forwarded, ShardId};
use fastpay_node::authority::rollback::{HighWaterMark, default_high_water_mark};
use fastpay_node::authority::shard::{
    AppliedCredits, Command, RecoveredShard, ShardError, ShardLimits, recover, recover_on,
};
use fastpay_node::authority::storage::{Journal, JournalOptions};
use fastpay_node::authority::{AuthorityError, check_credits};
use fastpay_testkit::{MemoryDisk, payment};

use crate::authority::{Running, Scene, get, refused};
use crate::scene::{
    FORGETFUL, Shards, account_in, copy_folder, eventually, eventually_async, folders, layout, storage,
};

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
        forwarded: Forwarded::Payment(payment(alice.id(), bob.id(), 10, number - 1)),
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
    let forwarded = Forwarded::Payment(payment(bob.id(), alice.id(), 10, 0));
    let wrong = fastpay_core::CrossShardCredit { forwarded, ..credit(5) };
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
        assert!(matches!(pending.wait(), Some(fastpay_node::authority::shard::Answer::Confirmed(..))));
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

/// Two shards: the first in a folder, the journal of the second on a disk in memory.
fn with_second_on(disk: &MemoryDisk, folder: &Path) -> Vec<RecoveredShard> {
    let [first, second] = [ShardId(0), ShardId(1)];
    vec![
        recover(&folders(folder, first), first, layout(2), true, &FORGETFUL, &AppliedCredits::default()).unwrap(),
        recover_on(storage(disk, &folders(folder, second)), second, layout(2), true, &FORGETFUL).unwrap(),
    ]
}

#[test]
fn credits_are_acknowledged_only_once_they_are_on_disk() {
    let (disk, folder) = (MemoryDisk::new(), tempfile::tempdir().unwrap());
    drop(Shards::prepare(folder.path(), 2, FORGETFUL));
    let journal = folders(folder.path(), ShardId(1)).journal;
    Journal::create_on(Arc::new(disk.clone()), &journal, JournalOptions::default()).unwrap();
    let shards = Shards::with(with_second_on(&disk, folder.path()), folder.path(), layout(2), FORGETFUL).run();
    let (alice, bob) = (shards.account_in(0, 0), shards.account_in(1, 0));
    let domain = shards.committee.domain;
    shards.deposit(&[(alice.id(), 100)]);

    disk.set_held_syncs(true);
    shards.pay(&alice.sign(&domain, payment(alice.id(), bob.id(), 7, 0)));
    disk.wait_for_held_sync();
    // The second shard has decided the credit. What it says before the sync would be in the first one's queue by now.
    assert_eq!(shards.ledger(0).outboxes[&ShardId(1)].acknowledged(), 0, "acknowledged before the sync");

    // The power goes off in this sync. The first shard has one more record, so it writes a last checkpoint.
    shards.vote(&alice.sign(&domain, payment(alice.id(), bob.id(), 7, 1)));
    disk.set_failing_syncs(true);
    disk.set_held_syncs(false);
    let ended = shards.stop();
    assert!(matches!(ended[..], [Ok(()), Err(ShardError::Journal(_))]), "{ended:?}");
    disk.set_failing_syncs(false);
    disk.lose_power(|| false);
    let recovered = with_second_on(&disk, folder.path());
    check_credits(recovered.iter().map(RecoveredShard::shard)).unwrap();
    assert_eq!(recovered[1].shard().ledger().inbox(ShardId(0)), 0);
    let shards = Shards::with(recovered, folder.path(), layout(2), FORGETFUL).run();
    shards.settle();
    assert_eq!(balance(&shards, &bob), Balance::from(Amount(7)));
    assert_eq!(shards.ledger(0).outboxes[&ShardId(1)].acknowledged(), 1);
    shards.stop();
}

#[test]
fn shards_that_lost_credits_between_them_are_refused_and_a_lost_checkpoint_brings_them_back() {
    // Two copies of one folder: before three credits, and after them.
    let [old, new] = [(); 2].map(|()| tempfile::tempdir().unwrap());
    let shards = Shards::start(new.path(), 2, FORGETFUL);
    let (alice, bob) = (shards.account_in(0, 0), shards.account_in(1, 0));
    let domain = shards.committee.domain;
    shards.deposit(&[(alice.id(), 100)]);
    shards.stop();
    copy_folder(new.path(), old.path());
    let shards = Shards::start(new.path(), 2, FORGETFUL);
    for sequence in 0..3 {
        shards.pay(&alice.sign(&domain, payment(alice.id(), bob.id(), 5, sequence)));
    }
    shards.settle();
    // One more record, so that the last checkpoint is of a time after the acknowledgements.
    shards.vote(&alice.sign(&domain, payment(alice.id(), bob.id(), 5, 3)));
    shards.stop();

    let mixed = |first: &Path, second: &Path| {
        let mixed = tempfile::tempdir().unwrap();
        for (id, from) in layout(2).shards().zip([first, second]) {
            let [from, to] =
                [from, mixed.path()].map(|folder| folders(folder, id).journal.parent().unwrap().to_owned());
            copy_folder(&from, &to);
        }
        std::fs::copy(new.path().join("meta.json"), mixed.path().join("meta.json")).unwrap();
        mixed
    };
    let check = |folder: &Path| {
        let shards = layout(2).shards().map(|id| {
            recover(&folders(folder, id), id, layout(2), true, &FORGETFUL, &AppliedCredits::default()).unwrap()
        });
        let shards: Vec<_> = shards.collect();
        check_credits(shards.iter().map(RecoveredShard::shard))
    };
    check(mixed(new.path(), new.path()).path()).unwrap();
    check(mixed(old.path(), old.path()).path()).unwrap();

    // The recipient is older: nobody would ever send these credits again.
    let torn = mixed(new.path(), old.path());
    let lost = check(torn.path()).unwrap_err();
    let AuthorityError::LostCredits { from: ShardId(0), to: ShardId(1), acknowledged: 3, applied: 0 } = &lost else {
        panic!("{lost}");
    };
    assert!(lost.to_string().contains("move shard-000/checkpoint out of the data folder"), "{lost}");
    // What the error advises brings them back: the journal of the sender has them all.
    std::fs::remove_dir_all(folders(torn.path(), ShardId(0)).checkpoint).unwrap();
    check(torn.path()).unwrap();
    let shards = Shards::start(torn.path(), 2, FORGETFUL);
    shards.settle();
    assert_eq!(balance(&shards, &bob), Balance::from(Amount(15)));
    shards.stop();

    // The sender is older: it would use the numbers 1 to 3 for other credits.
    let torn = mixed(old.path(), new.path());
    let refused = check(torn.path()).unwrap_err();
    assert!(
        matches!(refused, AuthorityError::TornCopy { from: ShardId(0), to: ShardId(1), issued: 0, applied: 3 }),
        "{refused}"
    );
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_that_lost_credits_does_not_start_and_knows_from_then_on_that_it_may_have_forgotten_votes() {
    let scene = Scene::new();
    scene.init(2).unwrap();
    let data = scene.config().data;
    let shard = |id: u32| folders(&data, ShardId(id)).journal.parent().unwrap().to_owned();
    let old = tempfile::tempdir().unwrap();
    copy_folder(&shard(1), old.path());
    // Account 0 to 19 have 1,000 units each.
    let (alice, bob) = (account_in(layout(2), 0, 0), account_in(layout(2), 1, 0));
    let domain = scene.committee.domain;
    let running = Running::ready(scene.config(), scene.keys()).await;
    let first = running.client.shard_of(&alice.id());
    let order = alice.sign(&domain, payment(alice.id(), bob.id(), 10, 0));
    first.confirm(&scene.committee.certificate(&order)).await.unwrap();
    eventually_async("the credit is acknowledged", || async { first.status().await.unwrap().credits_in_flight == 0 })
        .await;
    running.stop().await.unwrap();

    std::fs::remove_dir_all(shard(1)).unwrap();
    copy_folder(old.path(), &shard(1));
    // Nothing else gives the loss away: the high-water mark is that of a folder that was just made.
    let high_water_mark = default_high_water_mark(&data);
    std::fs::remove_file(&high_water_mark).unwrap();
    HighWaterMark::create(&data, high_water_mark).unwrap();
    let error = refused(scene.config(), scene.keys()).await;
    assert!(
        matches!(error, AuthorityError::LostCredits { from: ShardId(0), to: ShardId(1), acknowledged: 1, applied: 0 }),
        "{error}"
    );

    std::fs::remove_dir_all(shard(0).join("checkpoint")).unwrap();
    let running = Running::ready(scene.config(), scene.keys()).await;
    let second = running.client.shard_of(&bob.id());
    eventually_async("the credit comes again", || async { second.account(bob.id()).await.unwrap().received == 1 })
        .await;
    let (_, ready) = get(running.http, "/ready").await.unwrap();
    assert!(ready.contains("\"restored\":true") && ready.contains("\"votes\":false"), "{ready}");
    running.stop().await.unwrap();
}
