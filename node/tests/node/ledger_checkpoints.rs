//! Checkpoints of a committee on a ledger: from the same events that its authorities follow, certified, verified by anybody,
//! and the journals end at them. The ledger is scripted: its rules and certificates are real.

use std::num::NonZeroU32;

use fastpay_core::{AccountKey, Amount, Balance, Epoch, PrimaryAddress, SequenceNumber};
use fastpay_ledger_client::scripted::ScriptedLedger;
use fastpay_ledger_statement::Time;
use fastpay_node::authority::certification::{CheckpointError, verify};
use fastpay_node::operator::rebase::rebase;
use fastpay_node::operator::recover::{RecoverError, Sources, recover};
use fastpay_program::Clock;
use fastpay_testkit::{TestAccount, TestCommittee, payment, redemption};

use crate::certification::{self, certified, configure};
use crate::checkpoint::{Scene, followed};
use crate::pruning::{NEVER, TIMES, pay, report, set_times};
use crate::rebase::{shard_of, states, sums};
use crate::scene::eventually_async;

fn bank() -> AccountKey {
    AccountKey::ed25519([1; 32])
}

async fn ledger() -> ScriptedLedger {
    let minutes_ago = Time(Clock::system().now_ms() - 300_000);
    ScriptedLedger::start(&TestCommittee::new(4).committee, &bank(), minutes_ago).await
}

fn owners() -> Vec<TestAccount> {
    (0..4).map(TestAccount::numbered).collect()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn checkpoints_hold_what_a_ledger_funded_paid_and_installed_and_journals_begin_at_them() {
    let ledger = ledger().await;
    let mut scene = Scene::on_ledger(&ledger, TestCommittee::new(4).keys, &[1, 2, 3]);
    scene.start().await;
    let (domain, owners) = (scene.committee.domain, owners());
    ledger.history().fund(&bank(), &owners.iter().map(|owner| (owner.id(), 1_000)).collect::<Vec<_>>());
    followed(&scene.members, 4).await;
    scene.pay(&[0, 1, 2], 0, 1, 0).await;
    let first = scene.checkpoint().await;
    assert_eq!((first.number, first.up_to, first.entries), (1, 4, 5));

    // A redemption is whole in the state until the ledger has paid it.
    let redeemed = redemption(owners[0].id(), PrimaryAddress::repeat_byte(7), 10, 1);
    scene.execute(&[0, 1, 2], &owners[0], redeemed.clone()).await;
    let unpaid = scene.checkpoint().await;
    let slot = (owners[0].id(), SequenceNumber(1));
    assert_eq!((unpaid.up_to, &scene.members[1].state(2).unpaid()[&slot]), (4, &redeemed));
    ledger.history().redeem(&bank(), &scene.committee.keys, Epoch(0), &redeemed).unwrap();
    followed(&scene.members, 5).await;
    let paid = scene.checkpoint().await;
    assert_eq!((paid.up_to, scene.members[2].state(3).unpaid().len()), (5, 0));

    // Members of the next epoch sign what the installation is part of.
    let next = TestCommittee::with(4, domain, Epoch(1));
    let keys = &scene.committee.keys;
    ledger.history().rotate(&bank(), keys, (&next.committee, &next.keys), Epoch(1)).unwrap();
    followed(&scene.members, 6).await;
    let installed = scene.checkpoint().await;
    assert_eq!((installed.number, installed.up_to), (4, 6));
    let report = scene.members[0].verify().await.unwrap();
    assert_eq!((report.checkpoint, report.epoch, report.up_to), (installed.checkpoint, Epoch(1), 6));
    let nothing = scene.members[1].propose().await.unwrap_err();
    assert!(matches!(nothing, CheckpointError::Nothing(4)), "{nothing}");

    // Anybody with the ledger's file verifies it, without a data folder.
    let primary = scene.members[0].config.primary.clone().unwrap();
    let found = verify(&primary, &scene.members[1].archive, &mut |_| ()).await.unwrap();
    assert_eq!(found.checkpoint, installed.checkpoint);
    let sources = Sources {
        archive: scene.members[0].archive.clone(),
        certificates: Vec::new(),
        journals: Vec::new(),
        redemptions: Vec::new(),
    };
    let refused = recover(&primary, &sources, Clock::system(), &mut |_| ()).await.err().unwrap();
    assert!(matches!(refused, RecoverError::NoContract), "{refused}");

    // Journals begin at it, and everything goes on.
    let held = (states(&scene.members[0]).await, sums(&scene.members[0]).await);
    scene.stop().await;
    for (member, shards) in scene.members.iter_mut().zip([2, 1, 3]) {
        let shards = NonZeroU32::new(shards).unwrap();
        let rebased = rebase(&member.config, &member.archive, None, Some(shards), &mut |_| ()).await.unwrap();
        assert!((rebased.checkpoint, rebased.up_to) == (4, 6) && rebased.was_complete, "{rebased:?}");
        member.config.shards = shards;
    }
    scene.start().await;
    for member in &scene.members {
        assert_eq!(states(member).await, held.0);
        assert_eq!(sums(member).await[0], held.1[0]);
    }
    ledger.history().fund(&bank(), &[(owners[2].id(), 5)]);
    followed(&scene.members, 7).await;
    let order = owners[2].sign(&domain, payment(owners[2].id(), owners[3].id(), 1_005, 0));
    for member in &scene.members {
        let shard = shard_of(member, &owners[2].id());
        shard.order(&order).await.unwrap();
        shard.confirm(&next.certificate(&order)).await.unwrap();
    }
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_on_a_ledger_make_checkpoints_by_themselves_and_end_their_journals() {
    let ledger = ledger().await;
    let mut scene = Scene::on_ledger(&ledger, TestCommittee::new(4).keys, &[1, 2, 1, 1]);
    configure(&mut scene, 0);
    set_times(&mut scene, TIMES);
    for member in &mut scene.members {
        certification::start(member).await;
    }
    let owners = owners();
    for number in 1..=3 {
        ledger.history().fund(&bank(), &[(owners[0].id(), 100)]);
        followed(&scene.members, number).await;
        pay(&scene, &[0, 1, 2, 3], 0, number - 1).await;
        certified(&scene.members, number).await;
    }
    for member in &scene.members {
        let data = &member.config.data;
        eventually_async("the journals end, and the old ones are removed", async || {
            report(member).checkpoint > 0 && report(member).underway.is_none() && !data.join("shard-000").exists()
        })
        .await;
    }
    scene.stop().await;
    set_times(&mut scene, NEVER);
    scene.start().await;
    for member in &scene.members {
        assert_eq!(sums(member).await[0], Balance::from(Amount(300)));
    }
    scene.stop().await;
    let report = verify(&scene.members[3].config, &scene.members[3].archive, &mut |_| ()).await.unwrap();
    assert!(report.number >= 3 && report.up_to == 3, "{report}");
}
