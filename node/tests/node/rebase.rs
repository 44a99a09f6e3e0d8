//! Rebases on real folders: what an authority keeps, what it no longer serves, and each reason for which it stays what
//! it is.

use std::fs;
use std::num::NonZeroU32;
use std::path::Path;
use std::process::{Command, Stdio};

use fastpay_client::{ClientError, ShardClient};
use fastpay_core::{
    AccountId, Asset, Balance, JournalPosition, PrimaryAddress, Pruned, SequenceNumber, ShardId, TransactionIndex,
    UnlockVote, VerifiedCertificate,
};
use fastpay_ethereum::{Call, certified_redemption};
use fastpay_node::authority::AuthorityError;
use fastpay_node::authority::certification::{ArchiveError, CheckpointError, Defect};
use fastpay_node::authority::config::Config;
use fastpay_node::authority::rollback::trust_data;
use fastpay_node::authority::storage::StorageError;
use fastpay_node::operator::backup::{back_up, restore};
use fastpay_node::operator::rebase::{RebaseError, Rebased, prune, rebase};
use fastpay_rpc::{AccountState, BatchAnswer, Refusal, UnlockAnswer};
use fastpay_testkit::{TestAccount, payment, redemption};
use tokio::time::Instant;

use crate::authority::{Running, get};
use crate::checkpoint::{Chain, Member, Scene};
use crate::process::node;
use crate::scene::{copy_folder, eventually_async};

async fn rebased(member: &mut Member, shards: Option<u32>) -> Result<Rebased, RebaseError> {
    let rebased = rebase(&member.config, &member.archive, None, shards.and_then(NonZeroU32::new), &mut |_| ()).await?;
    member.config.shards = NonZeroU32::new(rebased.shards).unwrap();
    Ok(rebased)
}

async fn start(member: &mut Member) {
    member.running = Some(Running::ready(member.config.clone(), member.keys.clone()).await);
}

async fn stop(member: &mut Member) {
    member.running.take().unwrap().stop().await.unwrap();
}

pub fn shard_of<'a>(member: &'a Member, account: &AccountId) -> &'a ShardClient {
    member.running.as_ref().unwrap().client.shard_of(account)
}

/// Waits until every recipient's shard has the credits of what was executed.
async fn settled(member: &Member) {
    let settled = async || {
        for shard in member.running.as_ref().unwrap().client.shards() {
            if shard.status().await.unwrap().credits_in_flight > 0 {
                return false;
            }
        }
        true
    };
    eventually_async("all credits arrive", settled).await;
}

/// What an authority says of each of the first accounts.
pub async fn states(member: &Member) -> Vec<AccountState> {
    settled(member).await;
    let mut states = Vec::new();
    for owner in (0..8).map(TestAccount::numbered) {
        states.push(shard_of(member, &owner.id()).account(owner.id()).await.unwrap());
    }
    states
}

/// The sums over all shards: held, deposited, redeemed, and what is between shards.
pub async fn sums(member: &Member) -> [Balance; 4] {
    settled(member).await;
    let mut sums = [Balance::ZERO; 4];
    for shard in member.running.as_ref().unwrap().client.shards() {
        let status = shard.status().await.unwrap();
        for (_, totals) in status.totals {
            let between = totals.credited.plus(totals.forwarded.negated());
            for (sum, part) in sums.iter_mut().zip([totals.accounts, totals.deposited, totals.redeemed, between]) {
                *sum = sum.plus(part);
            }
            let explained = totals.deposited.plus(between).plus(totals.redeemed.negated());
            assert_eq!(totals.accounts, explained);
        }
    }
    sums
}

fn pruned<T: std::fmt::Debug>(answer: Result<T, ClientError>, checkpoint: u64, first: u64) {
    assert_eq!(answer.unwrap_err(), ClientError::Pruned(Pruned { checkpoint, first }));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebased_authority_is_what_it_was_with_any_number_of_shards() {
    let mut scene = Scene::certified(4).await;
    // Beyond the checkpoint: payments, and one order that has votes only.
    for owner in 0..3 {
        scene.pay(&[0, 1, 2], owner, owner + 1, 4).await;
    }
    let (domain, owners) = (scene.committee.domain, (0..8).map(TestAccount::numbered).collect::<Vec<_>>());
    let voted = owners[5].sign(&domain, payment(owners[5].id(), owners[6].id(), 7, 0));
    let other = owners[5].sign(&domain, payment(owners[5].id(), owners[6].id(), 8, 0));
    let (mut before, mut totals, mut cursors) = (Vec::new(), Vec::new(), Vec::new());
    for member in &scene.members {
        shard_of(member, &owners[5].id()).order(&voted).await.unwrap();
        before.push(states(member).await);
        totals.push(sums(member).await);
        let page = shard_of(member, &owners[0].id()).confirmed(JournalPosition(0)).await.unwrap().unwrap();
        cursors.push(page.next);
    }
    scene.stop().await;
    for (member, shards) in scene.members.iter_mut().zip([Some(3), None, Some(1)]) {
        let old = member.config.data.clone();
        let rebased = rebased(member, shards).await.unwrap();
        assert_eq!((rebased.checkpoint, rebased.generation, rebased.up_to), (1, 1, 20), "{rebased:?}");
        assert_eq!((rebased.certificates, rebased.was_complete, rebased.restored), (3, true, None));
        assert!(matches!(prune(&member.config), Err(RebaseError::NotStarted(1))), "no node has started on it");
        assert!(old.join("shard-000").exists());
    }
    let again = rebase(&scene.members[0].config, &scene.members[0].archive, None, None, &mut |_| ()).await.unwrap_err();
    assert!(matches!(again, RebaseError::Nothing(1)), "{again}");

    scene.start().await;
    for (((member, before), totals), cursor) in scene.members.iter().zip(&before).zip(&totals).zip(&cursors) {
        assert_eq!(states(member).await, *before);
        assert_eq!(sums(member).await, *totals);
        let shard = shard_of(member, &owners[5].id());
        shard.order(&voted).await.unwrap();
        let refused = shard.order(&other).await.unwrap_err();
        assert!(matches!(refused, ClientError::Refused(Refusal::OrderPending(_))), "{refused}");

        // What the checkpoint includes is named as pruned, and everything else is served.
        let shard = shard_of(member, &owners[0].id());
        let number = |number| shard.certificate(owners[0].id(), SequenceNumber(number));
        pruned(number(3).await, 1, 4);
        number(4).await.unwrap();
        assert_eq!(number(5).await.unwrap_err(), ClientError::NotFound);
        pruned(shard.certificates(&[(owners[0].id(), SequenceNumber(3))]).await, 1, 4);
        let names = [(owners[0].id(), SequenceNumber(4)), (owners[0].id(), SequenceNumber(3))];
        assert_eq!(shard.certificates(&names).await.unwrap().looked_up, 1);
        pruned(shard.deposits(owners[0].id(), 0).await, 1, 1);
        let shard = shard_of(member, &owners[1].id());
        pruned(shard.received(owners[1].id(), 0).await, 1, 4);
        let page = shard.received(owners[1].id(), 4).await.unwrap();
        let entries: Vec<_> = page.entries.iter().map(|entry| (entry.number, entry.payment.sequence)).collect();
        assert_eq!((entries, page.total), (vec![(4, SequenceNumber(4))], 5));
        let old = scene.committee.certificate(&owners[0].sign(&domain, payment(owners[0].id(), owners[1].id(), 1, 3)));
        let shard = shard_of(member, &owners[0].id());
        assert_eq!(shard.confirm(&old).await.unwrap().1, SequenceNumber(5), "it is confirmed as before");

        // A cursor of the old journal is none of the new one.
        assert_eq!(shard.confirmed(*cursor).await.unwrap(), None);
        let page = shard.confirmed(JournalPosition(0)).await.unwrap().unwrap();
        assert!(page.names.iter().all(|(_, sequence)| *sequence == SequenceNumber(4)), "{page:?}");
        assert_eq!(shard.confirmed(page.next).await.unwrap().unwrap().names, []);

        let http = member.config.http;
        for path in ["certificates/3", "sent?start=0", "deposits?start=0", "events?cursor=0.0.0"] {
            let (code, body) = get(http, &format!("/v1/accounts/{}/{path}", owners[0].id())).await.unwrap();
            assert!(
                code == 410 && body.contains("\"code\":\"pruned\"") && body.contains("\"checkpoint\":\"1\""),
                "{body}"
            );
        }
        assert_eq!(get(http, "/v1/deposits/20").await.unwrap().0, 410);
        assert!(!prune(&member.config).unwrap().is_empty());
        assert!(["shard-000", "index", "peers.json"].iter().all(|old| !member.config.data.join(old).exists()));
    }
    // They go on together, and are rebased again.
    let certificate = scene.committee.certificate(&voted);
    for member in &scene.members {
        shard_of(member, &owners[5].id()).confirm(&certificate).await.unwrap();
    }
    for owner in 0..3 {
        scene.pay(&[0, 1, 2], owner, owner + 1, 5).await;
    }
    let second = scene.checkpoint().await;
    assert_eq!((second.number, second.entries), (2, 7));
    let mut before = Vec::new();
    for member in &scene.members {
        before.push((states(member).await, sums(member).await));
    }
    scene.stop().await;
    for (member, shards) in scene.members.iter_mut().zip([Some(2), Some(3), None]) {
        let rebased = rebased(member, shards).await.unwrap();
        assert_eq!((rebased.checkpoint, rebased.generation, rebased.certificates), (2, 2, 0));
        // The store of a shard only saves time: without it, the base is replayed.
        start(member).await;
        stop(member).await;
        fs::remove_dir_all(member.config.data.join("generation-0002/shard-000/checkpoint")).unwrap();
    }
    scene.start().await;
    for (member, before) in scene.members.iter().zip(&before) {
        assert_eq!((states(member).await, sums(member).await), *before);
        pruned(shard_of(member, &owners[0].id()).certificate(owners[0].id(), SequenceNumber(5)).await, 2, 6);
    }
    scene.pay(&[0, 1, 2], 0, 1, 6).await;
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_is_wrong_is_named_and_the_folder_stays_what_it_was() {
    let mut scene = Scene::certified(2).await;
    let member = &mut scene.members[0];
    let in_use = rebased(member, None).await.unwrap_err();
    assert!(matches!(in_use, RebaseError::Storage(StorageError::InUse { .. })), "{in_use}");
    scene.stop().await;
    let member = &mut scene.members[0];

    let attempt =
        async |config: &Config, archive: &Path| rebase(config, archive, None, None, &mut |_| ()).await.unwrap_err();
    let missing = attempt(&member.config, Path::new("/nowhere")).await;
    let is_missing = |error: &RebaseError| {
        matches!(error, RebaseError::Checkpoint(CheckpointError::Archive(ArchiveError::Missing(_))))
    };
    assert!(is_missing(&missing), "{missing}");
    let empty = tempfile::tempdir().unwrap();
    let none = attempt(&member.config, empty.path()).await;
    assert!(matches!(none, RebaseError::NoCheckpoint(_)), "{none}");
    let altered = tempfile::tempdir().unwrap();
    let copy = altered.path().join("archive");
    copy_folder(&member.archive, &copy);
    let segment = fs::read_dir(&copy).unwrap().map(|entry| entry.unwrap().path());
    let segment = segment.into_iter().find(|path| path.extension().is_some_and(|end| end == "segment")).unwrap();
    let mut bytes = fs::read(&segment).unwrap();
    let last = bytes.len() - 1;
    bytes[last] ^= 1;
    fs::write(&segment, bytes).unwrap();
    let wrong = attempt(&member.config, &copy).await;
    let is_wrong = matches!(
        &wrong,
        RebaseError::Checkpoint(CheckpointError::Archive(ArchiveError::Wrong { defect: Defect::Segment(_), .. }))
    );
    assert!(is_wrong, "{wrong}");
    let nowhere = Config { data: scene.path("nowhere"), ..scene.members[0].config.clone() };
    let missing = attempt(&nowhere, &scene.members[0].archive).await;
    assert!(matches!(missing, RebaseError::Storage(StorageError::NotCreated { .. })), "{missing}");

    // The archive of a committee of the same deployment that certified other payments.
    let mut fork = Scene::new(None);
    fork.start().await;
    for sequence in 0..2 {
        for owner in 0..3 {
            fork.pay(&[0, 1, 2], owner, owner + 2, sequence).await;
        }
    }
    fork.checkpoint().await;
    fork.stop().await;
    let differs = attempt(&scene.members[0].config, &fork.members[0].archive).await;
    assert!(matches!(differs, RebaseError::Differs { what: "balance", .. }), "{differs}");
    let data = scene.members[0].config.data.clone();
    assert!(!data.join("generation-0001").exists(), "the disk that a failed attempt took is free again");
    let member = &mut scene.members[0];
    start(member).await;
    stop(member).await;
    assert_eq!(rebased(member, None).await.unwrap().generation, 1);
    let other = attempt(&member.config, &fork.members[0].archive).await;
    assert!(matches!(other, RebaseError::OtherArchive { number: 1, .. }), "{other}");

    // The operator's word is no start, so the old generation stays. What an interrupted attempt left goes.
    let left = member.config.data.join("generation-0002");
    fs::create_dir(&left).unwrap();
    trust_data(&member.config.data, member.config.high_water_mark()).unwrap();
    assert!(matches!(prune(&member.config), Err(RebaseError::NotStarted(1))));
    assert!(!left.exists() && member.config.data.join("shard-000").exists());
    start(member).await;
    fs::create_dir(&left).unwrap();
    assert!(!prune(&member.config).unwrap().is_empty());
    assert!(left.exists(), "the node may be another rebase, which is at work");
    stop(member).await;
    assert_eq!(prune(&member.config).unwrap(), [left]);

    // A write that was torn after the switch would take the whole base with it.
    let member = &mut scene.members[1];
    rebased(member, Some(1)).await.unwrap();
    let journal = member.config.data.join("generation-0001/shard-000/journal");
    let file = fs::read_dir(journal).unwrap().map(|entry| entry.unwrap().path()).max().unwrap();
    let mut bytes = fs::read(&file).unwrap();
    let last = bytes.iter().rposition(|byte| *byte != 0).unwrap();
    bytes[last] ^= 1;
    fs::write(&file, bytes).unwrap();
    let damaged = attempt(&member.config, &member.archive).await;
    let RebaseError::Recovery(error) = damaged else { panic!("{damaged}") };
    assert!(matches!(*error, AuthorityError::NoBase { shard: ShardId(0), generation: 1 }), "{error}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_that_the_checkpoint_lacks_stays_listed_with_all_that_came_after_it() {
    let mut scene = Scene::new(None);
    scene.start().await;
    let paid = TestAccount::numbered(1);
    // The proposer does not know of the first one.
    let listed = async |scene: &Scene, count| {
        let listed =
            async || shard_of(&scene.members[1], &paid.id()).account(paid.id()).await.unwrap().received == count;
        eventually_async("the payment is listed", listed).await;
    };
    scene.pay(&[1], 4, 1, 0).await;
    listed(&scene, 1).await;
    scene.pay(&[0, 1, 2], 0, 1, 0).await;
    listed(&scene, 2).await;
    scene.checkpoint().await;
    scene.stop().await;
    let member = &mut scene.members[1];
    let rebased = rebased(member, None).await.unwrap();
    assert_eq!((rebased.certificates, rebased.was_complete), (1, true), "{rebased:?}");
    start(member).await;
    let page = shard_of(member, &paid.id()).received(paid.id(), 0).await.unwrap();
    let senders: Vec<_> = page.entries.iter().map(|entry| entry.payment.sender).collect();
    assert_eq!(senders, [4, 0].map(|sender| TestAccount::numbered(sender).id()));
    stop(member).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebase_makes_no_folder_whole_that_lacks_votes() {
    let mut scene = Scene::certified(2).await;
    scene.stop().await;
    let [restored, returned, _] = &mut scene.members[..] else { panic!("three members") };
    // A journal that lost its end: here the high-water mark is of a later moment.
    let mark = restored.config.high_water_mark();
    let mut file: serde_json::Value = serde_json::from_slice(&fs::read(&mark).unwrap()).unwrap();
    let end = file["journal_ends"][0].as_u64().unwrap();
    file["journal_ends"][0] = (end + 1).into();
    fs::write(&mark, file.to_string()).unwrap();
    let why = rebased(restored, None).await.unwrap().restored.unwrap();
    assert!(why.contains("had been committed up to"), "{why}");
    start(restored).await;
    let status = |member: &Member| member.running.as_ref().unwrap().client.shards()[0].clone();
    assert!(status(restored).status().await.unwrap().restored);
    let before = (states(restored).await, sums(restored).await);
    stop(restored).await;

    // A rebased folder is backed up as any other.
    let (data, backup) = (restored.config.data.clone(), restored.config.data.with_extension("backup"));
    back_up(&data, &backup).unwrap();
    fs::remove_dir_all(&data).unwrap();
    restore(&backup, &data).unwrap();
    start(restored).await;
    assert_eq!((states(restored).await, sums(restored).await), before);
    stop(restored).await;

    // The old generation comes back after the new one was in use.
    let meta = returned.config.data.join("meta.json");
    let old = fs::read(&meta).unwrap();
    assert_eq!(rebased(returned, None).await.unwrap().restored, None);
    start(returned).await;
    assert!(!status(returned).status().await.unwrap().restored);
    stop(returned).await;
    fs::write(&meta, old).unwrap();
    start(returned).await;
    assert!(status(returned).status().await.unwrap().restored);
    stop(returned).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn what_the_contract_has_not_decided_survives_a_rebase_and_a_newcomer_begins_from_nothing() {
    let chain = Chain::new().await;
    let mut scene = Scene::new(Some(chain.config()));
    scene.start().await;
    let (domain, owners) = (scene.committee.domain, (0..4).map(TestAccount::numbered).collect::<Vec<_>>());
    for owner in &owners {
        chain.deposit(owner.id(), 1_000).await;
    }
    chain.followed(&scene.members, 4).await;
    scene.pay(&[0, 1, 2], 1, 2, 0).await;
    // A void number, an unpaid redemption, and a frozen number of which one authority has seen a certificate.
    chain.request_unlock(&domain, &owners[1], 1).await;
    chain.decide(&scene.committee, &owners[1], 1, UnlockVote::Void { unanimous: true }).await;
    chain.followed(&scene.members, 6).await;
    scene.pay(&[0, 1, 2], 1, 2, 2).await;
    let redeemed = redemption(owners[0].id(), PrimaryAddress::repeat_byte(7), 10, 0);
    scene.execute(&[0, 1, 2], &owners[0], redeemed.clone()).await;
    // One whose number a thief will spend.
    let robbed = redemption(owners[0].id(), PrimaryAddress::repeat_byte(7), 20, 1);
    scene.execute(&[0, 1, 2], &owners[0], robbed).await;
    chain.request_unlock(&domain, &owners[3], 0).await;
    chain.followed(&scene.members, 7).await;
    let seen = scene.committee.certificate(&owners[3].sign(&domain, payment(owners[3].id(), owners[0].id(), 5, 0)));
    let refused = shard_of(&scene.members[0], &owners[3].id()).confirm(&seen).await.unwrap_err();
    assert!(matches!(refused, ClientError::Refused(Refusal::Frozen(_))), "{refused}");
    // And one that an authority has voted to void.
    chain.request_unlock(&domain, &owners[2], 0).await;
    chain.followed(&scene.members, 8).await;
    let vote =
        shard_of(&scene.members[0], &owners[2].id()).vote_unlock((owners[2].id(), SequenceNumber(0)), true).await;
    assert!(matches!(vote, Ok(UnlockAnswer::Void { .. })), "{vote:?}");
    assert_eq!(scene.checkpoint().await.up_to, 8);

    let mut before = Vec::new();
    for member in &scene.members {
        before.push((states(member).await, sums(member).await));
    }
    scene.stop().await;
    let base = scene.members[0].config.clone();
    let newcomer = scene.member(3, 2, &base);
    copy_folder(&scene.members[0].archive, &newcomer.archive);
    scene.members.push(newcomer);
    for (at, (member, shards)) in scene.members.iter_mut().zip([Some(2), Some(1), None, Some(3)]).enumerate() {
        let rebased = rebased(member, shards).await.unwrap();
        assert_eq!((rebased.checkpoint, rebased.up_to, rebased.was_complete), (1, 8, at < 3), "{rebased:?}");
    }
    scene.start().await;
    for (member, before) in scene.members.iter().zip(&before) {
        assert_eq!((states(member).await, sums(member).await), *before);
    }
    let newcomer = &scene.members[3];
    assert_eq!(sums(newcomer).await, before[0].1);
    for (new, old) in states(newcomer).await.into_iter().zip(&before[0].0) {
        assert_eq!((new.next_sequence, &new.holdings), (old.next_sequence, &old.holdings));
        assert!(new.catching_up, "it votes only above what the others know of");
    }
    pruned(shard_of(newcomer, &owners[2].id()).received(owners[2].id(), 0).await, 1, 1);

    // The void number is void for ever, and a certificate of it is dead.
    let dead = scene.committee.certificate(&owners[1].sign(&domain, payment(owners[1].id(), owners[0].id(), 5, 1)));
    for member in &scene.members {
        let refused = shard_of(member, &owners[1].id()).confirm(&dead).await.unwrap_err();
        assert!(matches!(refused, ClientError::Refused(Refusal::Voided(SequenceNumber(3)))), "{refused}");
    }
    // What was seen is attested, also by an authority that was shown it before.
    let shard = shard_of(&scene.members[0], &owners[3].id());
    let vote = shard.vote_unlock((owners[3].id(), SequenceNumber(0)), false).await;
    assert!(matches!(vote, Ok(UnlockAnswer::Certificate { .. })), "{vote:?}");

    // The unpaid redemption is voted for by all, and listed and attested by those who executed it.
    let certificate = scene.committee.certificate(&owners[0].sign(&domain, redeemed.clone()));
    for (at, member) in scene.members.iter().enumerate() {
        let shard = shard_of(member, &owners[0].id());
        let name = (owners[0].id(), SequenceNumber(0));
        let vote = shard.vote_redemption_batch(&[name]).await;
        assert!(matches!(vote, Ok(BatchAnswer::Vote { .. })), "{vote:?}");
        if at == 3 {
            continue;
        }
        assert_eq!(shard.certificate(name.0, name.1).await.unwrap().order, certificate.order);
        let first = shard.redemptions(0).await.unwrap_err();
        let ClientError::Pruned(Pruned { checkpoint: 1, first }) = first else { panic!("{first}") };
        let log = member.running.as_ref().unwrap().client.shards();
        let mut listed = 0;
        for shard in log {
            let page = shard.redemptions(first).await.unwrap();
            assert_eq!(page.total, first + page.entries.len() as u64);
            listed += page.entries.len();
        }
        assert_eq!(listed, 2);
    }
    // The contract pays one and never the other, decides about the frozen number, and takes a deposit: all follow from the checkpoint on.
    let committee = &scene.committee.committee;
    chain.send(Call::redeem(chain.contract, certified_redemption(&certificate, committee).unwrap())).await;
    let theft = owners[0].sign(&domain, redemption(owners[0].id(), PrimaryAddress::repeat_byte(9), 20, 1));
    let stolen = certified_redemption(&scene.committee.certificate(&theft), committee).unwrap();
    chain.send(Call::redeem(chain.contract, stolen)).await;
    let digest = domain.transfer_digest(&seen.order.transfer);
    chain.decide(&scene.committee, &owners[3], 0, UnlockVote::Certificate(digest)).await;
    chain.deposit(owners[2].id(), 50).await;
    chain.followed(&scene.members, 12).await;
    let verified: VerifiedCertificate = seen.clone().verify(&domain, committee).unwrap();
    assert_eq!(verified.digest(), digest);
    let everybody = async || {
        let mut all = Vec::new();
        for member in &scene.members {
            let _ = shard_of(member, &owners[3].id()).confirm(&seen).await;
            let mut held = Vec::new();
            for owner in &owners {
                let state = shard_of(member, &owner.id()).account_asset(owner.id(), Asset::ETHER).await.unwrap();
                held.push((state.next_sequence, state.holdings));
            }
            all.push(held);
        }
        all.iter().all(|held| *held == all[0]) && all[0][3].0 == SequenceNumber(1)
    };
    eventually_async("all have the same", everybody).await;
    let [held, deposited, redeemed, _] = sums(&scene.members[3]).await;
    let amount = |amount: u128| Balance::from(fastpay_core::Amount(amount));
    assert_eq!((held, deposited, redeemed), (amount(4_040), amount(4_050), amount(10)));
    assert_eq!(shard_of(&scene.members[0], &owners[0].id()).status().await.unwrap().synchronized, TransactionIndex(12));
    scene.stop().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_authority_that_lacks_a_part_of_a_checkpoint_takes_it_and_keeps_what_it_executed_beyond() {
    let mut scene = Scene::new(None);
    let base = scene.members[0].config.clone();
    let slow = scene.member(3, 2, &base);
    scene.members.push(slow);
    scene.start().await;
    let (domain, owners) = (scene.committee.domain, (0..8).map(TestAccount::numbered).collect::<Vec<_>>());
    scene.pay(&[0, 1, 2, 3], 0, 1, 0).await;
    // Only the slow one executes an order of account 4. It votes for orders of accounts 0 and 5.
    scene.pay(&[3], 4, 1, 0).await;
    let voted = owners[5].sign(&domain, payment(owners[5].id(), owners[6].id(), 7, 0));
    let overtaken = owners[0].sign(&domain, payment(owners[0].id(), owners[6].id(), 7, 1));
    for order in [&voted, &overtaken] {
        let sender = order.transfer.sender();
        shard_of(&scene.members[3], &sender).order(order).await.unwrap();
    }
    settled(&scene.members[3]).await;
    let listed = shard_of(&scene.members[3], &owners[1].id()).account(owners[1].id()).await.unwrap().received;
    assert_eq!(listed, 2);
    stop(&mut scene.members[3]).await;
    for sequence in 1..3 {
        scene.pay(&[0, 1, 2], 0, 1, sequence).await;
    }
    fs::create_dir(&scene.members[3].archive).unwrap();
    scene.checkpoint().await;
    fs::remove_dir_all(&scene.members[3].archive).unwrap();
    copy_folder(&scene.members[0].archive, &scene.members[3].archive);
    let rebased = rebased(&mut scene.members[3], Some(3)).await.unwrap();
    assert_eq!((rebased.certificates, rebased.was_complete), (1, false), "{rebased:?}");
    start(&mut scene.members[3]).await;

    let slow = &scene.members[3];
    let state = async |account: &TestAccount| shard_of(slow, &account.id()).account(account.id()).await.unwrap();
    let [payer, paid, own, locked] = [0, 1, 4, 5].map(|owner| &owners[owner]);
    assert_eq!((state(payer).await.next_sequence, state(payer).await.pending), (SequenceNumber(3), None));
    assert_eq!(state(own).await.next_sequence, SequenceNumber(1));
    assert_eq!(state(locked).await.pending, Some(voted));
    let amount = |amount: u128| Balance::from(fastpay_core::Amount(amount));
    assert_eq!(state(paid).await.holdings[0].1, amount(1_004), "three from the checkpoint, and one beyond it");
    shard_of(slow, &own.id()).certificate(own.id(), SequenceNumber(0)).await.unwrap();
    pruned(shard_of(slow, &paid.id()).received(paid.id(), listed).await, 1, listed + 1);
    // Brought to the others, that order makes all the same again.
    scene.pay(&[0, 1, 2], 4, 1, 0).await;
    let all = sums(&scene.members[0]).await;
    for member in &scene.members {
        assert_eq!(sums(member).await, all);
        for owner in &owners {
            let [one, other] = [member, &scene.members[0]].map(|member| shard_of(member, &owner.id()));
            let (one, other) = (one.account(owner.id()).await.unwrap(), other.account(owner.id()).await.unwrap());
            assert_eq!((one.next_sequence, one.holdings), (other.next_sequence, other.holdings));
        }
    }
    scene.stop().await;
}

/// The real command.
fn command(config: &Path, archive: &Path, data: &Path, shards: u32) -> Command {
    let shards = shards.to_string();
    let paths = [archive, config, data].map(|path| path.to_str().unwrap());
    let mut command = node(&["rebase", "--archive", paths[0], "--config", paths[1], "--data", paths[2]]);
    command.args(["--shards", &shards]).stdout(Stdio::null()).stderr(Stdio::null());
    command
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn authorities_are_rebased_one_after_another_under_load() {
    let mut scene = Scene::certified(2).await;
    let mut next = 2;
    for (turn, shards) in [2, 3, 1].into_iter().enumerate() {
        stop(&mut scene.members[turn]).await;
        let others: Vec<_> = (0..3).filter(|member| *member != turn).collect();
        let (member, first) = (&scene.members[turn], next);
        let config = scene.path("authority.toml");
        let mut process = command(&config, &member.archive, &member.config.data, shards).spawn().unwrap();
        let rebased = loop {
            for owner in 0..3 {
                scene.pay(&others, owner, owner + 1, next).await;
            }
            next += 1;
            if let Some(status) = process.try_wait().unwrap() {
                break status;
            }
        };
        assert!(rebased.success() && next > first, "{rebased}");
        let member = &mut scene.members[turn];
        member.config.shards = NonZeroU32::new(shards).unwrap();
        start(member).await;
        prune(&member.config).unwrap();
        // Its clients bring it what it missed.
        for sequence in first..next {
            for owner in 0..3 {
                scene.pay(&[turn], owner, owner + 1, sequence).await;
            }
        }
        let (all, held) = (states(&scene.members[0]).await, sums(&scene.members[0]).await);
        assert_eq!(held[0], Balance::from(fastpay_core::Amount(20_000)));
        for member in &scene.members[1..] {
            assert_eq!(sums(member).await, held);
            for (one, other) in states(member).await.into_iter().zip(&all) {
                assert_eq!((one.next_sequence, &one.holdings), (other.next_sequence, &other.holdings));
            }
        }
        assert_eq!(scene.checkpoint().await.number, turn as u64 + 2);
    }
    scene.stop().await;
}

/// The real command, killed at instants all over its work.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_rebase_that_is_killed_anywhere_leaves_one_generation_or_the_other() {
    const KILLS: u32 = 12;
    let mut scene = Scene::certified(4).await;
    scene.pay(&[0], 0, 1, 4).await;
    let before = (states(&scene.members[0]).await, sums(&scene.members[0]).await);
    scene.stop().await;
    let config = scene.path("authority.toml");
    let member = &mut scene.members[0];
    let (archive, data) = (member.archive.clone(), member.config.data.clone());
    let rebase = |shards: u32| command(&config, &archive, &data, shards);
    let generation_of = |data: &Path| {
        let meta: serde_json::Value = serde_json::from_slice(&fs::read(data.join("meta.json")).unwrap()).unwrap();
        (meta["generation"].as_u64().unwrap_or(0), u32::try_from(meta["shards"].as_u64().unwrap()).unwrap())
    };
    let begun = Instant::now();
    assert!(rebase(2).status().unwrap().success());
    let whole = begun.elapsed();
    let (mut generation, mut old, mut new) = (1, 0, 0);
    for kill in 0..=KILLS {
        let shards = generation_of(&data).1;
        let mut process = rebase(3 - shards).spawn().unwrap();
        // The last one is left alone.
        if kill < KILLS {
            tokio::time::sleep(whole * kill / (KILLS - 1)).await;
            process.kill().unwrap();
        }
        process.wait().unwrap();
        let (found, shards) = generation_of(&data);
        assert!(found == generation || found == generation + 1, "{found} after {generation}");
        (old, new) = if found == generation { (old + 1, new) } else { (old, new + 1) };
        generation = found;
        member.config.shards = NonZeroU32::new(shards).unwrap();
        start(member).await;
        assert_eq!((states(member).await, sums(member).await), before);
        assert!(!member.running.as_ref().unwrap().client.shards()[0].status().await.unwrap().restored);
        stop(member).await;
    }
    assert!(old > 0 && new > 0, "{old} kills before the switch, and {new} after it");
}
