//! Each answer survives any crash, and nothing is answered before it is on disk.

use std::path::Path;
use std::sync::Arc;

use fastpay_core::{AccountId, Amount, Asset, Balance, PrimaryAddress, ShardId, Transfer};
use fastpay_node::authority::shard::{Answer, ShardError, ShardLimits, recover_on};
use fastpay_node::authority::storage::{Journal, JournalOptions, ShardFolders};
use fastpay_rpc::Refusal;
use fastpay_testkit::{MemoryDisk, TestAccount, payment, redemption};
use rand::rngs::SmallRng;
use rand::{RngExt, SeedableRng};

use crate::scene::{FORGETFUL, Pending, Shards, copy_folder, eventually, folders, layout, storage};

fn on_disk(disk: &MemoryDisk, folder: &Path, limits: ShardLimits) -> Shards {
    let folders = folders(folder, ShardId(0));
    if disk.paths().is_empty() {
        Journal::create_on(Arc::new(disk.clone()), &folders.journal, JournalOptions::default()).unwrap();
    }
    recovered(disk, &folders, folder, limits)
}

fn recovered(disk: &MemoryDisk, folders: &ShardFolders, folder: &Path, limits: ShardLimits) -> Shards {
    let shard = recover_on(storage(disk, folders), ShardId(0), layout(1), true, &limits).unwrap();
    Shards::with(vec![shard], folder, layout(1), limits)
}

#[test]
fn no_answer_is_sent_for_a_batch_that_cannot_be_synced() {
    let (disk, folder) = (MemoryDisk::new(), tempfile::tempdir().unwrap());
    let (alice, bob) = (TestAccount::ed25519(0), TestAccount::ed25519(2));
    let shards = on_disk(&disk, folder.path(), ShardLimits::default()).run();
    shards.deposit(&[(alice.id(), 100)]);
    let domain = shards.committee.domain;
    shards.stop();

    let shards = on_disk(&disk, folder.path(), ShardLimits::default());
    let order = alice.sign(&domain, payment(alice.id(), bob.id(), 1, 0));
    let conflicting = alice.sign(&domain, payment(alice.id(), bob.id(), 2, 0));
    // The refusal of the second would tell of the vote for the first.
    let pending = [shards.send_order(&order), shards.send_order(&conflicting)];
    disk.set_failing_syncs(true);
    let shards = shards.run();
    for pending in pending {
        assert_eq!(pending.wait(), None);
    }
    let ended = shards.join();
    assert!(matches!(ended[..], [Err(ShardError::Journal(_))]), "{ended:?}");

    // So the authority is free to vote for the other one, and for that only.
    disk.set_failing_syncs(false);
    disk.lose_power(|| false);
    let shards = on_disk(&disk, folder.path(), ShardLimits::default()).run();
    shards.vote(&conflicting);
    assert_eq!(shards.refusal(&order), Refusal::OrderPending(Box::new(conflicting)));
    shards.stop();
}

/// A shard with 100 units on each account, whose next sync hangs.
fn with_a_hanging_sync(disk: &MemoryDisk, folder: &Path, owners: &[&TestAccount]) -> Shards {
    let shards = on_disk(disk, folder, ShardLimits::default()).run();
    shards.deposit(&owners.iter().map(|owner| (owner.id(), 100)).collect::<Vec<_>>());
    disk.set_held_syncs(true);
    shards
}

#[test]
fn while_one_batch_is_synced_the_next_is_decided_and_neither_is_answered() {
    let (disk, folder) = (MemoryDisk::new(), tempfile::tempdir().unwrap());
    let (alice, bob) = (TestAccount::ed25519(0), TestAccount::ed25519(2));
    let shards = with_a_hanging_sync(&disk, folder.path(), &[&alice, &bob]);
    let domain = shards.committee.domain;
    let order = alice.sign(&domain, payment(alice.id(), bob.id(), 1, 0));
    let first = shards.send_order(&order);
    disk.wait_for_held_sync();
    // A refusal, a repeated vote and a read tell of the first vote; another account's vote does not.
    let conflicting = shards.send_order(&alice.sign(&domain, payment(alice.id(), bob.id(), 2, 0)));
    eventually("it is taken", || shards.metrics.shards[0].queued.get() == 0);
    // These may be taken in several batches, and not all of those find room behind the sync that hangs.
    let repeated = shards.send_order(&order);
    let read = shards.ask_account(&alice.id());
    let other = shards.send_order(&bob.sign(&domain, payment(bob.id(), alice.id(), 1, 0)));
    std::thread::sleep(std::time::Duration::from_millis(20));
    let mut pending = [first, conflicting, repeated, other];
    assert!(pending.iter_mut().all(Pending::is_unanswered) && read.is_empty());

    disk.set_held_syncs(false);
    let [first, conflicting, repeated, other] = pending.map(Pending::wait);
    assert!(matches!(
        [first, repeated, other],
        [Some(Answer::Vote(..)), Some(Answer::Vote(..)), Some(Answer::Vote(..))]
    ));
    assert_eq!(conflicting, Some(Answer::Refused(Refusal::OrderPending(Box::new(order.clone())))));
    assert_eq!(read.blocking_recv().unwrap().pending.unwrap().order.as_ref(), &order);
    shards.stop();
}

#[test]
fn a_decided_batch_is_not_answered_if_the_one_before_it_fails() {
    let (disk, folder) = (MemoryDisk::new(), tempfile::tempdir().unwrap());
    let (alice, bob) = (TestAccount::ed25519(0), TestAccount::ed25519(2));
    let shards = with_a_hanging_sync(&disk, folder.path(), &[&alice, &bob]);
    let domain = shards.committee.domain;
    let first = shards.send_order(&alice.sign(&domain, payment(alice.id(), bob.id(), 1, 0)));
    disk.wait_for_held_sync();
    let second = shards.send_order(&bob.sign(&domain, payment(bob.id(), alice.id(), 1, 0)));
    eventually("it is taken", || shards.metrics.shards[0].queued.get() == 0);
    disk.set_failing_syncs(true);
    disk.set_held_syncs(false);
    assert_eq!((first.wait(), second.wait()), (None, None));
    // Nobody sends anything more, and yet the shard ends at once.
    let ended = shards.join();
    assert!(matches!(ended[..], [Err(ShardError::Journal(_))]), "{ended:?}");

    disk.set_failing_syncs(false);
    disk.lose_power(|| false);
    let shards = on_disk(&disk, folder.path(), ShardLimits::default()).run();
    for owner in [&alice, &bob] {
        assert_eq!(shards.account(&owner.id()).pending, None);
        shards.vote(&owner.sign(&domain, payment(owner.id(), owner.id(), 3, 0)));
    }
    shards.stop();
}

/// Payers of one unit each, in a world of few accounts.
fn payers() -> Vec<TestAccount> {
    (0..40).map(TestAccount::numbered).collect()
}

#[test]
fn what_was_answered_survives_full_disks_and_lost_power() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    for limits in [ShardLimits { batch_requests_max: 3, ..FORGETFUL }, ShardLimits::default()] {
        let (disk, folder) = (MemoryDisk::new(), tempfile::tempdir().unwrap());
        let shards = on_disk(&disk, folder.path(), limits).run();
        let payers = payers();
        let deposits: Vec<_> = payers.iter().map(|payer| (payer.id(), 1_000)).collect();
        shards.deposit(&deposits);
        shards.stop();
        let mut confirmed = vec![0_u64; payers.len()];
        for _ in 0..8 {
            disk.set_bytes_free(Some(random.random_range(0..60_000)));
            let shards = on_disk(&disk, folder.path(), limits).run();
            let (domain, committee) = (shards.committee.domain, shards.committee.clone());
            let orders: Vec<_> = payers
                .iter()
                .zip(&confirmed)
                .map(|(payer, next)| {
                    // Whoever has voted for one order never votes for another of the same number.
                    let amount = random.random_range(1..4);
                    payer.sign(&domain, payment(payer.id(), payers[0].id(), amount, *next))
                })
                .collect();
            let votes: Vec<_> = orders.iter().map(|order| shards.send_order(order)).collect();
            let certificates: Vec<_> = orders.iter().map(|order| committee.certificate(order)).collect();
            let confirmations: Vec<_> = certificates.iter().map(|c| shards.send_certificate(c)).collect();
            let votes: Vec<_> = votes.into_iter().map(Pending::wait).collect();
            let confirmations: Vec<_> = confirmations.into_iter().map(Pending::wait).collect();
            shards.stop();

            disk.lose_power(|| random.random());
            disk.set_bytes_free(None);
            let shards = on_disk(&disk, folder.path(), limits).run();
            for (index, payer) in payers.iter().enumerate() {
                let account = shards.account(&payer.id());
                if confirmations[index].is_some() {
                    assert_eq!(account.next_sequence().0, confirmed[index] + 1, "seed {seed}");
                } else if let Some(Answer::Vote(..)) = &votes[index] {
                    let locked = account.pending.is_some_and(|pending| *pending.order == orders[index]);
                    assert!(locked || account.sent.count() > confirmed[index], "seed {seed}");
                }
                confirmed[index] = account.sent.count();
                // Free every account for the next round: one order is all that can be certified for it.
                if let Some(pending) = shards.account(&payer.id()).pending {
                    shards.confirm(&committee.certificate(&pending.order));
                    confirmed[index] += 1;
                }
            }
            let total = payers.iter().map(|payer| shards.account(&payer.id()).balance(Asset::ETHER));
            let total = total.fold(Balance::ZERO, Balance::plus);
            assert_eq!(total, Balance::from(Amount(40_000)), "seed {seed}");
            assert!(shards.stop().into_iter().all(|ended| ended.is_ok()), "seed {seed}");
        }
    }
}

#[test]
fn a_crash_anywhere_leaves_checkpoint_and_tail_equal_to_the_whole_journal() {
    let seed: u64 = rand::random();
    println!("seed {seed}");
    let mut random = SmallRng::seed_from_u64(seed);
    let limits = ShardLimits {
        checkpoint_slice_accounts: 3,
        checkpoint_journal_bytes: 2_000,
        accounts_in_memory_max: 24,
        batch_requests_max: 4,
        ..ShardLimits::default()
    };
    let (disk, folder) = (MemoryDisk::new(), tempfile::tempdir().unwrap());
    let shards = on_disk(&disk, folder.path(), limits).run();
    let payers = payers();
    let deposits: Vec<_> = payers.iter().map(|payer| (payer.id(), 1_000)).collect();
    shards.deposit(&deposits);
    shards.stop();
    let mut next = vec![0_u64; payers.len()];
    for _ in 0..6 {
        let shards = on_disk(&disk, folder.path(), limits).run();
        for _ in 0..random.random_range(1..12) {
            // All at once: a checkpoint is taken slice by slice between the batches, while accounts and ledger change.
            let certificates: Vec<_> = payers
                .iter()
                .zip(&mut next)
                .map(|(payer, next)| {
                    let (to, number) = (payers[random.random_range(0..payers.len())].id(), *next);
                    *next += 1;
                    let transfer: Transfer = match random.random_ratio(1, 3) {
                        true => redemption(payer.id(), PrimaryAddress::repeat_byte(7), 1, number).into(),
                        false => payment(payer.id(), to, 1, number).into(),
                    };
                    shards.committee.certificate(&payer.sign(&shards.committee.domain, transfer))
                })
                .collect();
            let sent: Vec<_> = certificates.iter().map(|certificate| shards.send_certificate(certificate)).collect();
            assert!(sent.into_iter().all(|sent| sent.wait().is_some()));
        }
        // The thread ends where it is, perhaps between two slices.
        disk.set_failing_syncs(true);
        let sender = &payers[0];
        let lost = sender.sign(&shards.committee.domain, payment(sender.id(), sender.id(), 1, next[0]));
        assert_eq!(shards.send_order(&lost).wait(), None);
        assert!(matches!(shards.join()[..], [Err(ShardError::Journal(_))]));
        disk.set_failing_syncs(false);
        disk.lose_power(|| random.random());

        let elsewhere = tempfile::tempdir().unwrap();
        let whole = folders(folder.path(), ShardId(0));
        let journal_alone = ShardFolders { checkpoint: elsewhere.path().join("checkpoint"), ..whole.clone() };
        let [fast, slow] = [whole, journal_alone].map(|folders| {
            let shards = recovered(&disk, &folders, folder.path(), limits).run();
            let accounts: Vec<_> = payers.iter().map(|payer| shards.account(&payer.id())).collect();
            let (ledger, replayed) = (shards.ledger(0), shards.replayed[0]);
            assert!(shards.stop().into_iter().all(|ended| ended.is_ok()));
            (accounts, ledger, replayed)
        });
        assert_eq!((fast.0, fast.1), (slow.0, slow.1), "seed {seed}");
        assert!(fast.2 < slow.2, "a checkpoint was written");
    }
}

#[test]
fn a_restart_finds_the_same_accounts_with_and_without_checkpoints() {
    let folder = tempfile::tempdir().unwrap();
    let shards = Shards::start(folder.path(), 2, FORGETFUL);
    let domain = shards.committee.domain;
    let owners: Vec<_> = (0..12).map(|rank| shards.account_in(rank % 2, rank as usize)).collect();
    let deposits: Vec<_> = owners.iter().map(|owner| (owner.id(), 100)).collect();
    shards.deposit(&deposits);
    let pay = |shards: &Shards, round: u64| {
        for (index, owner) in owners.iter().enumerate() {
            let to = owners[(index + 1 + round as usize) % owners.len()].id();
            shards.pay(&owner.sign(&domain, payment(owner.id(), to, 1, round)));
        }
    };
    pay(&shards, 0);
    shards.settle();
    assert!(shards.stop().into_iter().all(|ended| ended.is_ok()));
    // What a crash would leave of a checkpoint: the last whole one.
    let old_checkpoints = tempfile::tempdir().unwrap();
    for id in layout(2).shards() {
        copy_folder(&folders(folder.path(), id).checkpoint, &folders(old_checkpoints.path(), id).checkpoint);
    }

    let shards = Shards::start(folder.path(), 2, FORGETFUL);
    assert_eq!(shards.replayed, [0, 0], "a good end leaves nothing to replay");
    pay(&shards, 1);
    let locked = owners[3].sign(&domain, payment(owners[3].id(), owners[0].id(), 7, 2));
    shards.vote(&locked);
    shards.settle();
    let accounts = |shards: &Shards| -> Vec<_> { owners.iter().map(|owner| shards.account(&owner.id())).collect() };
    let (expected, totals) = (accounts(&shards), shards.ledger(0).totals.clone());
    let crashed = shards.journals_after_crash();
    let with_old_checkpoints = shards.journals_after_crash();
    shards.stop();
    for id in layout(2).shards() {
        copy_folder(
            &folders(old_checkpoints.path(), id).checkpoint,
            &folders(with_old_checkpoints.path(), id).checkpoint,
        );
    }

    for (folder, limits) in
        [(folder.path(), FORGETFUL), (crashed.path(), FORGETFUL), (with_old_checkpoints.path(), ShardLimits::default())]
    {
        let shards = Shards::start(folder, 2, limits);
        shards.settle();
        assert_eq!(accounts(&shards), expected);
        assert_eq!(shards.ledger(0).totals, totals);
        let other = owners[3].sign(&domain, payment(owners[3].id(), owners[0].id(), 8, 2));
        assert_eq!(shards.refusal(&other), Refusal::OrderPending(Box::new(locked.clone())));
        shards.vote(&locked);
        assert!(shards.stop().into_iter().all(|ended| ended.is_ok()));
    }
}

#[test]
fn an_account_read_while_checkpoints_are_written_is_never_an_older_one() {
    let folder = tempfile::tempdir().unwrap();
    let shards = Shards::start(folder.path(), 1, FORGETFUL);
    let domain = shards.committee.domain;
    let owners: Vec<_> = (0..6).map(TestAccount::numbered).collect();
    let deposits: Vec<_> = owners.iter().map(|owner| (owner.id(), 1_000)).collect();
    shards.deposit(&deposits);
    let mut expected: std::collections::BTreeMap<AccountId, i64> =
        owners.iter().map(|owner| (owner.id(), 1_000)).collect();
    for sequence in 0..25 {
        for (index, owner) in owners.iter().enumerate() {
            let to = owners[(index + 1 + sequence as usize) % owners.len()].id();
            shards.pay(&owner.sign(&domain, payment(owner.id(), to, 3, sequence)));
            *expected.get_mut(&owner.id()).unwrap() -= 3;
            *expected.get_mut(&to).unwrap() += 3;
            for (account, balance) in &expected {
                let found = shards.account(account).balance(Asset::ETHER);
                assert_eq!(found.to_string(), balance.to_string(), "after {sequence}");
            }
        }
    }
    shards.stop();
}
