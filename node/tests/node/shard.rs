//! One shard: what is answered to whom, and how many share a sync.

use std::sync::Arc;

use fastpay_core::{Amount, Asset, Balance, Epoch, SequenceNumber, ShardId, VoteSignature};
use fastpay_node::authority::shard::{Answer, ShardLimits, recover_on};
use fastpay_node::authority::storage::{Journal, JournalOptions};
use fastpay_rpc::Refusal;
use fastpay_testkit::{MemoryDisk, TestAccount, payment};

use crate::scene::{FORGETFUL, Shards, folders, layout, storage};

fn one_shard(folder: &tempfile::TempDir, limits: ShardLimits) -> Shards {
    Shards::start(folder.path(), 1, limits)
}

#[test]
fn orders_that_do_not_fit_the_account_are_refused_and_lock_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let shards = one_shard(&folder, FORGETFUL);
    let domain = shards.committee.domain;
    let (alice, bob) = (TestAccount::ed25519(0), TestAccount::ed25519(2));
    shards.deposit(&[(alice.id(), 100)]);

    let too_much = alice.sign(&domain, payment(alice.id(), bob.id(), 101, 0));
    assert_eq!(shards.refusal(&too_much), Refusal::InsufficientBalance(Balance::from(Amount(100))));
    let too_high = alice.sign(&domain, payment(alice.id(), bob.id(), 1, 3));
    assert_eq!(shards.refusal(&too_high), Refusal::SequenceTooHigh(SequenceNumber(0)));
    let gap = shards.committee.certificate(&too_high);
    assert_eq!(shards.confirm(&gap), Answer::Refused(Refusal::MissingCertificate(SequenceNumber(0))));
    assert_eq!(shards.account(&alice.id()).pending, None);
    shards.stop();
}

#[test]
fn commands_that_wait_together_share_one_sync_and_one_signature() {
    let disk = MemoryDisk::new();
    let folder = tempfile::tempdir().unwrap();
    let folders = folders(folder.path(), ShardId(0));
    let journal = Journal::create_on(Arc::new(disk.clone()), &folders.journal, JournalOptions::default()).unwrap();
    drop(journal);
    let recovered = recover_on(storage(&disk, &folders), ShardId(0), layout(1), true, &ShardLimits::default()).unwrap();
    let shards = Shards::with(vec![recovered], folder.path(), layout(1), ShardLimits::default()).run();
    let domain = shards.committee.domain;
    let owners: Vec<TestAccount> = (0..300).map(|number| TestAccount::ed25519(2 * number)).collect();
    let deposits: Vec<_> = owners.iter().map(|owner| (owner.id(), 1)).collect();
    shards.deposit(&deposits);
    assert!(shards.stop().into_iter().all(|ended| ended.is_ok()));

    let recovered = recover_on(storage(&disk, &folders), ShardId(0), layout(1), true, &ShardLimits::default()).unwrap();
    let shards = Shards::with(vec![recovered], folder.path(), layout(1), ShardLimits::default());
    let order = |owner: &TestAccount| owner.sign(&domain, payment(owner.id(), owners[0].id(), 1, 0));
    let pending: Vec<_> = owners.iter().map(|owner| shards.send_order(&order(owner))).collect();
    let before = disk.syncs();
    let shards = shards.run();
    let mut signatures = std::collections::HashSet::new();
    for (owner, pending) in owners.iter().zip(pending) {
        let Some(Answer::Vote(_, vote)) = pending.wait() else { panic!("no vote") };
        let verified = shards.committee.verified(&order(owner));
        let committee = &shards.committee.committee;
        vote.clone().verify(&domain, committee, &verified).unwrap();
        let VoteSignature::Payment { signature, .. } = vote.signature else { panic!("a payment's vote") };
        signatures.insert(signature.0);
    }
    assert_eq!((disk.syncs() - before, signatures.len()), (1, 1));
    shards.stop();
}

#[test]
fn reading_what_is_not_there_brings_nothing_into_memory() {
    let folder = tempfile::tempdir().unwrap();
    let shards = one_shard(&folder, ShardLimits::default());
    let bob = TestAccount::ed25519(2);
    for number in 0..50 {
        let stranger = TestAccount::numbered(number);
        assert_eq!(shards.account(&stranger.id()), fastpay_core::Account::default());
        let order = stranger.sign(&shards.committee.domain, payment(stranger.id(), bob.id(), 1, 0));
        assert_eq!(shards.refusal(&order), Refusal::InsufficientBalance(Balance::ZERO));
    }
    let text = shards.metrics.text();
    assert!(text.contains("fastpay_accounts_in_memory{shard=\"0\"} 0\n"), "{text}");
    assert!(text.contains("fastpay_journal_bytes{shard=\"0\"} 0\n"), "{text}");
    shards.stop();
}

fn accounts_in_memory(shards: &Shards) -> u64 {
    let text = shards.metrics.text();
    let line = text.lines().find_map(|line| line.strip_prefix("fastpay_accounts_in_memory{shard=\"0\"} "));
    line.unwrap().parse().unwrap()
}

#[test]
fn accounts_in_memory_are_bounded_under_lasting_load() {
    let folder = tempfile::tempdir().unwrap();
    let shards = one_shard(&folder, FORGETFUL);
    let domain = shards.committee.domain;
    let (alice, bob) = (TestAccount::ed25519(0), TestAccount::ed25519(2));
    let resting: Vec<_> = (10..200).map(|number| (TestAccount::ed25519(2 * number).id(), 1)).collect();
    // One command changes many more accounts than there may be in memory.
    shards.deposit(&[resting.as_slice(), &[(alice.id(), 1_000)]].concat());
    assert!(accounts_in_memory(&shards) <= FORGETFUL.accounts_in_memory_max as u64);
    for sequence in 0..100 {
        shards.pay(&alice.sign(&domain, payment(alice.id(), bob.id(), 1, sequence)));
        shards.deposit(&[resting[sequence as usize]]);
        assert!(accounts_in_memory(&shards) <= FORGETFUL.accounts_in_memory_max as u64);
    }
    let held = resting.iter().map(|(account, _)| shards.account(account).balance(Asset::ETHER));
    assert_eq!(held.fold(Balance::ZERO, Balance::plus), Balance::from(Amount(290)));
    assert_eq!(shards.account(&alice.id()).balance(Asset::ETHER), Balance::from(Amount(900)));
    shards.stop();
}

#[test]
fn a_certificate_that_was_confirmed_long_ago_brings_nobody_into_memory() {
    let folder = tempfile::tempdir().unwrap();
    let shards = one_shard(&folder, ShardLimits::default());
    let (alice, bob) = (TestAccount::ed25519(0), TestAccount::ed25519(2));
    let order = alice.sign(&shards.committee.domain, payment(alice.id(), bob.id(), 1, 0));
    let certificate = shards.committee.certificate(&order);
    shards.confirm(&certificate);
    shards.stop();
    let shards = one_shard(&folder, ShardLimits::default());
    assert_eq!(shards.confirm(&certificate), Answer::Confirmed(Epoch(0), SequenceNumber(1)));
    assert_eq!(shards.account(&bob.id()).balance(Asset::ETHER), Balance::from(Amount(1)));
    assert_eq!(accounts_in_memory(&shards), 0);
    shards.stop();
}
