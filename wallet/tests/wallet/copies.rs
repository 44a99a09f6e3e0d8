//! Copies of one wallet: a folder that was copied and is used twice, or one that was restored from a backup. No
//! copy signs a second order for a number, no number gets two certificates, and whatever can be finished is.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;
use std::time::Duration;

use fastpay_client::QuorumError;
use fastpay_core::{Amount, Asset, Memo, SequenceNumber, Transfer};
use fastpay_testkit::fake::{FakeCommittee, Role};
use fastpay_testkit::{alice, bob, carol};
use fastpay_wallet::folder::OrderState;
use fastpay_wallet::{Intent, Resumed, Wallet, WalletError};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};

use crate::support::{Wallets, pay};

/// A backup, or a backup restored.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if entry.file_type().unwrap().is_dir() {
            copy(&entry.path(), &target);
        } else {
            std::fs::copy(entry.path(), target).unwrap();
        }
    }
}

fn states(wallet: &Wallet) -> Vec<OrderState> {
    wallet.folder().orders(alice().account()).entries().unwrap().iter().map(|entry| entry.state).collect()
}

#[tokio::test]
async fn a_wallet_restored_from_a_backup_learns_of_later_transfers_and_continues() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let (home, backup) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let wallet = committee.wallet(home.path());
    wallet.send(&alice(), &pay(bob().account(), 1)).await.unwrap();
    copy(home.path(), backup.path());
    for amount in [2, 3, 4] {
        wallet.send(&alice(), &pay(bob().account(), amount)).await.unwrap();
    }
    let restored = committee.wallet(backup.path());
    assert_eq!(states(&restored), [OrderState::Settled]);
    let receipt = restored.send(&alice(), &pay(carol().account(), 5)).await.unwrap();
    assert_eq!(receipt.certificate.transfer().sequence(), SequenceNumber(4));
    assert_eq!(states(&restored), [OrderState::Settled; 5], "all that it missed stands in its folder now");
    // The one that goes on where the other was is brought along in the same way, by resuming.
    let [Resumed::Settled(theirs)] = &wallet.resume(alice().account()).await.unwrap()[..] else { panic!() };
    assert_eq!(theirs.certificate.transfer(), receipt.certificate.transfer());
    assert!(wallet.resume(alice().account()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_backup_with_an_unfinished_order_does_not_pay_twice() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let (home, backup) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let wallet = committee.wallet(home.path());
    let order = committee.committee.verified(&committee.order(&alice(), &pay(bob().account(), 7), 0));
    wallet.folder().orders(alice().account()).lock(Duration::ZERO).await.unwrap().create(&order).unwrap();
    copy(home.path(), backup.path());
    wallet.send(&alice(), &pay(bob().account(), 7)).await.unwrap();
    wallet.send(&alice(), &pay(bob().account(), 7)).await.unwrap();
    let restored = committee.wallet(backup.path());
    let receipt = restored.send(&alice(), &pay(bob().account(), 7)).await.unwrap();
    assert!(receipt.resumed, "the command is the one that was unfinished when the backup was made");
    assert_eq!(receipt.certificate.transfer().sequence(), SequenceNumber(0));
    restored.send(&alice(), &pay(bob().account(), 1)).await.unwrap();
    committee.until(|authority| authority.balance(bob().account()) == 15).await;
}

#[tokio::test]
async fn the_same_payment_begun_by_another_copy_is_finished_and_not_made_twice() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    // At two, of which any three that answer include one.
    [1, 2]
        .iter()
        .for_each(|index| committee.authorities[*index].lock(&committee.order(&alice(), &pay(bob().account(), 7), 0)));
    let home = tempfile::tempdir().unwrap();
    let receipt = committee.wallet(home.path()).send(&alice(), &pay(bob().account(), 7)).await.unwrap();
    assert!(receipt.resumed);
    committee
        .until(|authority| authority.balance(bob().account()) == 7 && authority.next_sequence(alice().account()) == 1)
        .await;
}

/// Two copies have each written an order down, and these authorities are locked on them. What comes of it when the
/// first, the second or both are resumed: the amount that is paid.
async fn collide(first: &[usize], second: &[usize], resume: [bool; 2]) -> Option<u128> {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let homes = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    let wallets = [0, 1].map(|copy: usize| committee.wallet(homes[copy].path()));
    for ((wallet, amount), holders) in wallets.iter().zip([40, 30]).zip([first, second]) {
        let order = committee.order(&alice(), &pay(bob().account(), amount), 0);
        let journal = wallet.folder().orders(alice().account()).lock(Duration::ZERO).await.unwrap();
        journal.create(&committee.committee.verified(&order)).unwrap();
        holders.iter().for_each(|holder| committee.authorities[*holder].lock(&order));
    }
    let account = alice().account();
    let resumed = |copy: usize| {
        let wallet = wallets[copy].clone();
        async move { if resume[copy] { Some(wallet.resume(account).await) } else { None } }
    };
    let outcomes: [_; 2] = tokio::join!(resumed(0), resumed(1)).into();
    let mut paid = BTreeSet::new();
    for outcome in outcomes.into_iter().flatten() {
        paid.insert(match outcome.as_deref() {
            Ok([Resumed::Settled(receipt)]) => Some(receipt.certificate.transfer().amount()),
            Ok([Resumed::Superseded { certificate, .. }]) => Some(certificate.transfer().amount()),
            Err(WalletError::Quorum(QuorumError::Conflict(contest))) if contest.leader().is_none() => None,
            Err(error) => panic!("{first:?} {second:?} {resume:?}: {error}"),
            Ok(other) => panic!("{first:?} {second:?} {resume:?}: {other:?}"),
        });
    }
    assert_eq!(paid.len(), 1, "{paid:?}");
    paid.pop_first().unwrap().map(|amount| amount.0)
}

#[tokio::test]
async fn of_two_orders_that_collide_both_copies_finish_the_same() {
    for resume in [[true, false], [false, true], [true, true]] {
        assert_eq!(collide(&[0, 1, 2], &[3], resume).await, Some(40), "{resume:?}");
        assert_eq!(collide(&[0], &[1, 2, 3], resume).await, Some(30), "{resume:?}");
        // The one that more authorities hold leads; a copy sends it to those that are free, and not its own.
        assert_eq!(collide(&[0, 1], &[2], resume).await, Some(40), "{resume:?}");
        assert_eq!(collide(&[0], &[2, 3], resume).await, Some(30), "{resume:?}");
        assert_eq!(collide(&[0, 2], &[1, 3], resume).await, None, "{resume:?}");
    }
    // If they are equal so far, both choose the same, whoever comes first.
    let chosen = [collide(&[0], &[1], [true, false]).await, collide(&[0], &[1], [false, true]).await];
    assert!(chosen[0].is_some() && chosen[0] == chosen[1], "{chosen:?}");
    assert_eq!(collide(&[0], &[1], [true, true]).await, chosen[0]);
}

#[tokio::test]
async fn a_split_is_finished_when_the_authority_that_decides_it_comes_back() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let (ours, theirs) = (pay(bob().account(), 40), pay(carol().account(), 30));
    [0, 1].iter().for_each(|index| committee.authorities[*index].lock(&committee.order(&alice(), &ours, 0)));
    committee.authorities[2].lock(&committee.order(&alice(), &theirs, 0));
    committee.authorities[3].play(Role::Down);
    let error = wallet.send(&alice(), &theirs).await.unwrap_err();
    let WalletError::Quorum(QuorumError::Conflict(contest)) = &error else { panic!("{error:?}") };
    assert_eq!(contest.leader().unwrap().transfer().amount(), Amount(40), "{error}");
    assert!(error.to_string().contains("can still be finished"), "{error}");
    committee.authorities[3].play(Role::Honest);
    assert_eq!(wallet.resume(alice().account()).await.unwrap().len(), 1);
    committee.until(|authority| authority.balance(bob().account()) == 40).await;
}

#[tokio::test]
async fn a_certificate_in_place_of_ours_that_a_crash_left_unsettled_is_settled_and_not_taken_for_ours() {
    for repeat in [false, true] {
        let committee = FakeCommittee::start().await;
        committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
        let home = tempfile::tempdir().unwrap();
        let wallet = committee.wallet(home.path());
        let (ours, theirs) = (pay(bob().account(), 40), pay(carol().account(), 30));
        let [our_order, their_order] = [&ours, &theirs].map(|intent| committee.order(&alice(), intent, 0));
        let journal = wallet.folder().orders(alice().account()).lock(Duration::ZERO).await.unwrap();
        journal.create(&committee.committee.verified(&our_order)).unwrap();
        journal.certify(&committee.committee.certified(&their_order)).unwrap();
        drop(journal);
        assert_eq!(states(&wallet), [OrderState::Superseded]);
        if repeat {
            let receipt = wallet.send(&alice(), &ours).await.unwrap();
            assert_eq!((receipt.certificate.transfer().sequence(), receipt.resumed), (SequenceNumber(1), false));
            committee.until(|authority| authority.balance(bob().account()) == 40).await;
        } else {
            let resumed = wallet.resume(alice().account()).await.unwrap();
            let [Resumed::Superseded { order, certificate }] = &resumed[..] else { panic!("{resumed:?}") };
            assert_eq!((order.as_ref(), certificate.transfer()), (&our_order.transfer, &their_order.transfer));
        }
        committee.until(|authority| authority.balance(carol().account()) == 30).await;
        assert!(wallet.resume(alice().account()).await.unwrap().is_empty());
    }
}

/// One copy of the wallet, and what it calls itself in the memos of its orders.
struct Copy {
    tag: u8,
    home: tempfile::TempDir,
    wallet: Wallet,
    ordered: u8,
}

impl Copy {
    fn new(committee: &FakeCommittee, tag: u8) -> Self {
        let home = tempfile::tempdir().unwrap();
        Self { tag, wallet: committee.wallet(home.path()), home, ordered: 0 }
    }

    /// A few commands, some of which are killed on the way.
    async fn work(&mut self, rng: &mut StdRng) {
        for _ in 0..3 {
            let killed_after = Duration::from_micros(rng.random_range(500..60_000));
            let patience = if rng.random_bool(0.5) { killed_after } else { Duration::from_secs(60) };
            if rng.random_bool(0.25) {
                let _ = tokio::time::timeout(patience, self.wallet.resume(alice().account())).await;
                continue;
            }
            self.ordered += 1;
            let memo = Memo::right_padding_from(&[self.tag, self.ordered]);
            let amount = Amount(u128::from(rng.random_range(1_u64..5)));
            let intent = Intent::Pay { recipient: bob().account(), asset: Asset::ETHER, amount, memo };
            let _ = tokio::time::timeout(patience, self.wallet.send(&alice(), &intent)).await;
        }
    }
}

/// The result of a run.
#[derive(Default)]
struct Record {
    certified: BTreeMap<SequenceNumber, Transfer>,
    /// By copy and number, the orders that carry the copy's mark.
    signed: BTreeMap<(u8, SequenceNumber), BTreeSet<[u8; 32]>>,
}

impl Record {
    fn read(committee: &FakeCommittee, copies: &[Copy]) -> Self {
        let mut record = Self::default();
        for authority in &committee.authorities {
            authority.certificates_seen().into_iter().for_each(|certificate| record.certify(committee, certificate));
            authority.orders_seen().iter().for_each(|order| record.sign(committee, &order.transfer));
        }
        for copy in copies {
            for entry in copy.wallet.folder().orders(alice().account()).entries().unwrap() {
                entry.order.iter().for_each(|order| record.sign(committee, &order.transfer));
                entry.certificate.into_iter().for_each(|certificate| record.certify(committee, certificate));
            }
        }
        record
    }

    fn certify(&mut self, committee: &FakeCommittee, certificate: fastpay_core::Certificate) {
        let committee = &committee.committee;
        let verified = certificate.verify(&committee.domain, &committee.committee).unwrap();
        let transfer = verified.transfer();
        let first = self.certified.entry(transfer.sequence()).or_insert_with(|| transfer.clone());
        assert_eq!(first, transfer, "two certificates for one number");
    }

    fn sign(&mut self, committee: &FakeCommittee, transfer: &Transfer) {
        let digest = committee.committee.domain.transfer_digest(transfer);
        let signed = self.signed.entry((transfer.memo()[0], transfer.sequence())).or_default();
        signed.insert(digest.0);
        assert_eq!(signed.len(), 1, "a copy signed two orders for number {}", transfer.sequence());
    }

    /// How many numbers were given to orders of more than one copy.
    fn collisions(&self) -> usize {
        let mut copies: BTreeMap<SequenceNumber, usize> = BTreeMap::new();
        self.signed.keys().for_each(|(_, sequence)| *copies.entry(*sequence).or_default() += 1);
        copies.values().filter(|count| **count > 1).count()
    }
}

/// Two copies at work at once, with killed commands and requests lost and late, then a third from a backup of the
/// first. Returns the numbers that collided, and whether the account is stuck at the end.
async fn run(seed: u64) -> (usize, bool) {
    let mut rng = StdRng::seed_from_u64(seed);
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 1_000, &[0, 1, 2, 3]);
    for (index, authority) in committee.authorities.iter().enumerate() {
        let role = if index == 3 && rng.random_bool(0.5) { Role::VotesForAll } else { Role::Erratic };
        authority.play(role(rng.random()));
    }
    let (mut first, mut second) = (Copy::new(&committee, 1), Copy::new(&committee, 2));
    let (mut one, mut other) = (StdRng::seed_from_u64(rng.random()), StdRng::seed_from_u64(rng.random()));
    first.work(&mut one).await;
    let mut third = Copy::new(&committee, 3);
    copy(first.home.path(), third.home.path());
    tokio::join!(first.work(&mut one), second.work(&mut other));
    let mut again = StdRng::seed_from_u64(rng.random());
    tokio::join!(first.work(&mut one), second.work(&mut other), third.work(&mut again));
    // The network heals. The Byzantine one goes on as it likes.
    let honest = committee
        .authorities
        .iter()
        .take(3)
        .chain(committee.authorities.iter().skip(3).filter(|authority| !authority.votes_for_all()));
    let honest: Vec<_> = honest.cloned().collect();
    honest.iter().for_each(|authority| authority.play(Role::Honest));
    let copies = [first, second, third];
    let mut stuck = false;
    for _ in 0..2 {
        for copy in &copies {
            match copy.wallet.resume(alice().account()).await {
                Ok(_) => assert!(!stuck, "finished what could not be"),
                Err(WalletError::Quorum(QuorumError::Conflict(contest))) => {
                    assert!(contest.leader().is_none(), "{contest}");
                    stuck = true;
                }
                Err(error) => panic!("{error}"),
            }
        }
    }
    let record = Record::read(&committee, &copies);
    let paid: u128 = record.certified.values().map(|transfer| transfer.amount().0).sum();
    assert_eq!(record.certified.len(), record.certified.keys().next_back().map_or(0, |last| last.0 as usize + 1));
    for authority in &honest {
        for _ in 0..6_000 {
            if authority.balance(bob().account()) == paid as i128 {
                break;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        assert_eq!(authority.balance(bob().account()), paid as i128);
        assert_eq!(authority.is_locked(alice().account()), stuck);
    }
    (record.collisions(), stuck)
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn whatever_two_copies_and_a_restored_one_do_no_number_has_two_certificates() {
    let seed: u64 = std::env::var("FASTPAY_SEED").ok().map_or_else(rand::random, |seed| seed.parse().unwrap());
    println!("FASTPAY_SEED={seed}");
    let (mut collisions, mut stuck) = (0, 0);
    for round in 0..8 {
        let seed = seed.wrapping_add(round);
        println!("round {round} is the first of FASTPAY_SEED={seed}");
        let (collided, is_stuck) = run(seed).await;
        collisions += collided;
        stuck += usize::from(is_stuck);
    }
    println!("{collisions} numbers were given to orders of several copies; {stuck} accounts are stuck");
}
