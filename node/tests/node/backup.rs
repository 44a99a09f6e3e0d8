//! Backups of running authorities.

use std::thread;

use fastpay_core::{Amount, Asset, Balance, ShardId};
use fastpay_node::authority::check_credits;
use fastpay_node::authority::rollback::{HighWaterMark, Memory};
use fastpay_node::authority::shard::{Answer, AppliedCredits, RecoveredShard, ShardLimits, recover};
use fastpay_node::authority::storage::{DataFolder, JournalPosition, JournalRead, RecordStream};
use fastpay_node::operator::backup::{back_up, restore};
use fastpay_testkit::payment;

use crate::scene::{FORGETFUL, Shards, folders, layout};

const SHARDS: u32 = 3;

fn recovered(folder: &std::path::Path) -> Vec<RecoveredShard> {
    let (layout, applied) = (layout(SHARDS), AppliedCredits::new(layout(SHARDS)));
    let recover = |id| recover(&folders(folder, id), id, layout, true, &ShardLimits::default(), &applied).unwrap();
    layout.shards().map(recover).collect()
}

fn records(shard: &RecoveredShard) -> RecordStream {
    shard.journal().read_from(JournalPosition::default())
}

#[test]
fn a_backup_under_load_is_what_was_on_disk_at_one_moment() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let shards = Shards::start(&data, SHARDS, ShardLimits { batch_requests_max: 3, ..FORGETFUL });
    // As a running node does.
    let folder = DataFolder::hold(&data).unwrap();
    let domain = shards.committee.domain;
    let owners: Vec<_> = (0..9).map(|rank| shards.account_in(rank % SHARDS, rank as usize)).collect();
    shards.deposit(&owners.iter().map(|owner| (owner.id(), 1_000_000)).collect::<Vec<_>>());
    let backups = {
        let (data, place) = (data.clone(), place.path().to_owned());
        thread::spawn(move || {
            let backups = (0..8).map(|number| place.join(format!("backup-{number}")));
            backups.inspect(|backup| assert!(back_up(&data, backup).unwrap().bytes > 0)).collect::<Vec<_>>()
        })
    };
    for sequence in 0.. {
        if backups.is_finished() {
            break;
        }
        let orders = owners.iter().enumerate().map(|(index, owner)| {
            let to = owners[(index + 1 + sequence as usize % 8) % owners.len()].id();
            owner.sign(&domain, payment(owner.id(), to, 1, sequence))
        });
        let sent: Vec<_> = orders.map(|order| shards.send_certificate(&shards.committee.certificate(&order))).collect();
        assert!(sent.into_iter().all(|pending| matches!(pending.wait(), Some(Answer::Confirmed(..)))));
    }
    let backups = backups.join().unwrap();
    shards.stop();
    drop(folder);

    let all = recovered(&data);
    let mut replayed = 0;
    for (number, backup) in backups.iter().enumerate() {
        let restored = place.path().join(format!("restored-{number}"));
        restore(backup, &restored).unwrap();
        let copies = recovered(&restored);
        check_credits(copies.iter().map(RecoveredShard::shard)).unwrap();
        for (copy, original) in copies.iter().zip(&all) {
            let ours = records(original).map(Result::unwrap);
            assert!(records(copy).map(Result::unwrap).eq(ours.take(records(copy).count())));
            assert_eq!(copy.journal_recovery().bytes_cut, 0);
        }
        let now = copies.iter().map(|shard| shard.replayed).sum();
        assert!(now >= replayed, "a later backup has what an earlier one has");
        replayed = now;
        // No value is made or lost: what is in no account is a credit that waits.
        let sum = |of: fn(&fastpay_core::AssetTotals) -> Balance| {
            let totals = copies.iter().map(|shard| shard.shard().ledger().totals[&Asset::ETHER]);
            totals.map(|totals| of(&totals)).fold(Balance::ZERO, Balance::plus)
        };
        let waiting = sum(|totals| totals.forwarded).plus(sum(|totals| totals.credited).negated());
        assert_eq!(sum(|totals| totals.accounts).plus(waiting), Balance::from(Amount(9_000_000)));
        assert!(waiting >= Balance::ZERO);
        let ends: Vec<_> = copies.iter().map(|shard| shard.journal_recovery().end).collect();
        drop(copies);
        let folder = DataFolder::hold(&restored).unwrap();
        let mark = HighWaterMark::of(&restored, place.path().join(format!("mark-{number}"))).unwrap();
        assert!(matches!(mark.judge(&folder, &ends, None).unwrap(), Memory::Older { .. }));
    }
    assert!(replayed > 0);
}

#[test]
fn a_recovery_without_checkpoints_keeps_no_credit_that_the_other_shard_has() {
    let place = tempfile::tempdir().unwrap();
    let data = place.path().join("data");
    let shards = Shards::start(&data, 2, ShardLimits::default());
    let domain = shards.committee.domain;
    let (alice, bob) = (shards.account_in(0, 0), shards.account_in(1, 0));
    shards.deposit(&[(alice.id(), 1_000)]);
    for sequence in 0..20 {
        shards.pay(&alice.sign(&domain, payment(alice.id(), bob.id(), 1, sequence)));
    }
    shards.settle();
    shards.stop();
    let waiting = |first: ShardId, second: ShardId| {
        let applied = AppliedCredits::new(layout(2));
        let copy = place.path().join(format!("{}-{}", first.0, second.0));
        back_up(&data, &copy).unwrap();
        let recover =
            |id| recover(&folders(&copy, id), id, layout(2), true, &ShardLimits::default(), &applied).unwrap();
        let shards = [recover(first), recover(second)];
        check_credits(shards.iter().map(RecoveredShard::shard)).unwrap();
        let sender = shards.iter().find(|shard| shard.shard().id() == ShardId(0)).unwrap();
        sender.shard().ledger().outboxes[&ShardId(1)].waiting.len()
    };
    assert_eq!(waiting(ShardId(1), ShardId(0)), 0);
    // If the other shard is behind, they wait as after any restart.
    assert_eq!(waiting(ShardId(0), ShardId(1)), 20);
}
