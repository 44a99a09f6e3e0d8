//! A command may die at any point: whatever it leaves behind, the next one finishes, and pays once. Two
//! copies of a wallet may collide: then what can be finished is, and the rest is explained.

use std::time::Duration;

use fastpay_client::QuorumError;
use fastpay_core::{AccountId, SequenceNumber, TransferOrder};
use fastpay_testkit::fake::{FakeCommittee, Role, options};
use fastpay_testkit::{alice, bob, carol};
use fastpay_wallet::folder::{Folder, FolderError, OrderState};
use fastpay_wallet::{ErrorKind, Intent, Resumed, Wallet, WalletError};
use tokio::time::timeout;

use crate::support::{Wallets, pay};

/// The progress of a command before it was killed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum KilledAfter {
    OrderWritten,
    OneVote,
    AllVotes,
    CertificateWritten,
    OneConfirmation,
    Settled,
}

const POINTS: [KilledAfter; 6] = [
    KilledAfter::OrderWritten,
    KilledAfter::OneVote,
    KilledAfter::AllVotes,
    KilledAfter::CertificateWritten,
    KilledAfter::OneConfirmation,
    KilledAfter::Settled,
];

async fn state(wallet: &Wallet, account: AccountId, sequence: u64) -> OrderState {
    wallet.folder().orders(account).entry(SequenceNumber(sequence)).unwrap().unwrap().state
}

async fn write_down(wallet: &Wallet, committee: &FakeCommittee, order: &TransferOrder) -> Result<(), FolderError> {
    let journal = wallet.folder().orders(order.transfer.sender()).lock(Duration::ZERO).await?;
    journal.create(&committee.committee.verified(order))
}

/// Leaves behind what a command that pays Bob 40 leaves when it is killed at this point.
async fn killed(committee: &FakeCommittee, wallet: &Wallet, point: KilledAfter) {
    let order = committee.order(&alice(), &pay(bob().account(), 40), 0);
    write_down(wallet, committee, &order).await.unwrap();
    let voted = match point {
        KilledAfter::OrderWritten => 0,
        KilledAfter::OneVote => 1,
        _ => 4,
    };
    committee.authorities.iter().take(voted).for_each(|authority| authority.lock(&order));
    if point < KilledAfter::CertificateWritten {
        return;
    }
    let certificate = committee.committee.certified(&order);
    let journal = wallet.folder().orders(alice().account()).lock(Duration::ZERO).await.unwrap();
    journal.certify(&certificate).unwrap();
    let confirmed = match point {
        KilledAfter::OneConfirmation => 1,
        KilledAfter::Settled => 4,
        _ => 0,
    };
    committee.authorities.iter().take(confirmed).for_each(|authority| authority.confirm(certificate.certificate()));
}

#[tokio::test]
async fn killed_anywhere_a_payment_is_finished_with_the_same_bytes_and_paid_once() {
    for point in POINTS {
        for repeat in [false, true] {
            let committee = FakeCommittee::start().await;
            committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
            let home = tempfile::tempdir().unwrap();
            let wallet = committee.wallet(home.path());
            killed(&committee, &wallet, point).await;
            // Either the user asks to resume, or gives the same command again.
            if repeat {
                let receipt = wallet.send(&alice(), &pay(bob().account(), 40)).await.unwrap();
                assert!(receipt.resumed, "{point:?}");
            } else {
                assert!(
                    matches!(wallet.resume(alice().account()).await.unwrap()[..], [Resumed::Settled(_)]),
                    "{point:?}"
                );
            }
            assert_eq!(state(&wallet, alice().account(), 0).await, OrderState::Settled, "{point:?}");
            committee
                .until(|authority| {
                    authority.balance(bob().account()) == 40 && authority.balance(alice().account()) == 60
                })
                .await;
            let order = committee.order(&alice(), &pay(bob().account(), 40), 0);
            assert!(
                committee.authorities.iter().all(|authority| authority.orders_seen().iter().all(|seen| *seen == order)),
                "{point:?}"
            );
            assert!(wallet.resume(alice().account()).await.unwrap().is_empty(), "{point:?}");
        }
    }
}

#[tokio::test]
async fn another_payment_first_finishes_the_unfinished_one() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    killed(&committee, &wallet, KilledAfter::OneVote).await;
    let receipt = wallet.send(&alice(), &pay(carol().account(), 5)).await.unwrap();
    assert!(!receipt.resumed);
    assert_eq!(receipt.certificate.transfer().sequence(), SequenceNumber(1));
    committee
        .until(|authority| authority.balance(bob().account()) == 40 && authority.balance(carol().account()) == 5)
        .await;
}

#[tokio::test]
async fn a_number_is_never_given_to_a_second_order() {
    let committee = FakeCommittee::start().await;
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let (first, second) = (pay(bob().account(), 40), pay(carol().account(), 40));
    write_down(&wallet, &committee, &committee.order(&alice(), &first, 0)).await.unwrap();
    write_down(&wallet, &committee, &committee.order(&alice(), &first, 0)).await.unwrap();
    let error = write_down(&wallet, &committee, &committee.order(&alice(), &second, 0)).await.unwrap_err();
    assert!(matches!(error, FolderError::OtherOrder { sequence: SequenceNumber(0), .. }), "{error}");
    // Nor where only the certificate of another copy's order is known.
    let certificate = committee.committee.certified(&committee.order(&alice(), &first, 1));
    let journal = wallet.folder().orders(alice().account()).lock(Duration::ZERO).await.unwrap();
    journal.certify(&certificate).unwrap();
    drop(journal);
    let error = write_down(&wallet, &committee, &committee.order(&alice(), &second, 1)).await.unwrap_err();
    assert!(matches!(error, FolderError::OtherOrder { sequence: SequenceNumber(1), .. }), "{error}");
}

#[tokio::test]
async fn two_commands_on_one_account_take_turns() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let (one, other) = (committee.wallet(home.path()), committee.wallet(home.path()));
    let (alice, to_bob, to_carol) = (alice(), pay(bob().account(), 1), pay(carol().account(), 2));
    let (a, b) = tokio::join!(one.send(&alice, &to_bob), other.send(&alice, &to_carol));
    let mut numbers = [a.unwrap(), b.unwrap()].map(|receipt| receipt.certificate.transfer().sequence().0);
    numbers.sort_unstable();
    assert_eq!(numbers, [0, 1]);
}

#[tokio::test]
async fn a_damaged_file_is_named_and_not_overwritten() {
    let committee = FakeCommittee::start().await;
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let order = committee.order(&alice(), &pay(bob().account(), 40), 0);
    write_down(&wallet, &committee, &order).await.unwrap();
    let folder = home.path().join("orders").join(hex::encode(alice().account().0));
    let path = folder.join(format!("{:020}.order", 0));
    std::fs::write(&path, b"{").unwrap();
    let error = wallet.send(&alice(), &pay(bob().account(), 40)).await.unwrap_err();
    assert!(error.to_string().contains(".order is damaged"), "{error}");
    assert_eq!(std::fs::read(&path).unwrap(), b"{");
}

#[tokio::test]
async fn a_fresh_copy_of_the_wallet_continues_at_the_proven_number() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let (home, fresh) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    for _ in 0..3 {
        committee.wallet(home.path()).send(&alice(), &pay(bob().account(), 1)).await.unwrap();
    }
    // A liar names a number far ahead, which it cannot prove.
    committee.authorities[3].play(Role::FalseHistory);
    let receipt = committee.wallet(fresh.path()).send(&alice(), &pay(bob().account(), 1)).await.unwrap();
    assert_eq!(receipt.certificate.transfer().sequence(), SequenceNumber(3));
}

#[tokio::test]
async fn a_number_that_is_claimed_without_its_certificate_holds_up_nobody() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let (home, fresh) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    committee.wallet(home.path()).send(&alice(), &pay(bob().account(), 1)).await.unwrap();
    committee.authorities[3].play(Role::InventsAndWithholds);
    // Who waits for it to show what it claims waits for an hour.
    let network = committee.network_with(Duration::from_secs(3600));
    let wallet = Wallet::new(Folder::new(fresh.path()), network, options());
    let view = timeout(Duration::from_secs(300), wallet.view(alice().account())).await.unwrap().unwrap();
    assert_eq!(view.next_sequence, SequenceNumber(1));
}

fn intents() -> (Intent, Intent) {
    (pay(bob().account(), 40), pay(carol().account(), 30))
}

#[tokio::test]
async fn an_order_of_another_copy_in_flight_is_seen_and_can_be_finished() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let (theirs, ours) = intents();
    // At two, of which any three that answer include one.
    [1, 2].iter().for_each(|index| committee.authorities[*index].lock(&committee.order(&alice(), &theirs, 0)));
    let receipt = wallet.send(&alice(), &ours).await.unwrap();
    assert_eq!((receipt.resumed, receipt.certificate.transfer().sequence()), (false, SequenceNumber(1)));
    // What was theirs stands in this folder too.
    assert_eq!(state(&wallet, alice().account(), 0).await, OrderState::Settled);
    let orders = [(&theirs, 0), (&ours, 1)].map(|(intent, number)| committee.order(&alice(), intent, number));
    assert!(
        committee.authorities.iter().all(|authority| authority.orders_seen().iter().all(|seen| orders.contains(seen)))
    );
    committee
        .until(|authority| authority.balance(bob().account()) == 40 && authority.balance(carol().account()) == 30)
        .await;
}

#[tokio::test]
async fn of_two_orders_that_collide_the_one_that_can_be_finished_is() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let (theirs, ours) = intents();
    write_down(&wallet, &committee, &committee.order(&alice(), &ours, 0)).await.unwrap();
    committee.authorities[0].lock(&committee.order(&alice(), &ours, 0));
    [1, 2, 3].iter().for_each(|index| committee.authorities[*index].lock(&committee.order(&alice(), &theirs, 0)));
    let resumed = wallet.resume(alice().account()).await.unwrap();
    assert!(matches!(resumed[..], [Resumed::Superseded { .. }]), "{resumed:?}");
    assert_eq!(state(&wallet, alice().account(), 0).await, OrderState::Superseded);
    // Ours is ordered again under the next number; it is not taken for the superseded one.
    let receipt = wallet.send(&alice(), &ours).await.unwrap();
    assert_eq!(receipt.certificate.transfer().sequence(), SequenceNumber(1));
    committee
        .until(|authority| authority.balance(bob().account()) == 40 && authority.balance(carol().account()) == 30)
        .await;
}

#[tokio::test]
async fn an_order_whose_number_another_copy_used_is_superseded() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let wallet = committee.wallet(home.path());
    let (theirs, ours) = intents();
    write_down(&wallet, &committee, &committee.order(&alice(), &ours, 0)).await.unwrap();
    committee.wallet(other.path()).send(&alice(), &theirs).await.unwrap();
    let resumed = wallet.resume(alice().account()).await.unwrap();
    assert!(matches!(resumed[..], [Resumed::Superseded { .. }]), "{resumed:?}");
    assert!(wallet.resume(alice().account()).await.unwrap().is_empty());
}

#[tokio::test]
async fn a_split_that_neither_order_can_win_is_explained() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let (theirs, ours) = intents();
    write_down(&wallet, &committee, &committee.order(&alice(), &ours, 0)).await.unwrap();
    [0, 1].iter().for_each(|index| committee.authorities[*index].lock(&committee.order(&alice(), &ours, 0)));
    [2, 3].iter().for_each(|index| committee.authorities[*index].lock(&committee.order(&alice(), &theirs, 0)));
    for again in [false, true] {
        // Neither to finish it nor to pay somebody else brings a third order about.
        let error = match again {
            false => wallet.resume(alice().account()).await.unwrap_err(),
            true => wallet.send(&alice(), &pay(carol().account(), 1)).await.unwrap_err(),
        };
        assert_eq!(error.kind(), ErrorKind::Conflict);
        let WalletError::Quorum(QuorumError::Conflict(contest)) = &error else { panic!("{error:?}") };
        assert!(contest.leader().is_none(), "{error}");
        for contender in contest.contenders() {
            let holders =
                if contender.transfer == theirs.transfer(alice().account(), SequenceNumber(0)) { 2 } else { 0 };
            let names: Vec<_> =
                (holders..holders + 2).map(|index| committee.endpoints.authorities[index].name).collect();
            assert_eq!((contender.holders, contender.reach), (names, 2), "{error}");
        }
        for said in ["pays 40 of", "pays 30 of", "`fastpay unlock`", "can still receive", "2 of the 3 votes"] {
            assert!(error.to_string().contains(said), "{said:?} is not said: {error}");
        }
    }
    let orders = [&theirs, &ours].map(|intent| committee.order(&alice(), intent, 0));
    assert!(
        committee.authorities.iter().all(|authority| authority.orders_seen().iter().all(|seen| orders.contains(seen)))
    );
}

#[tokio::test]
async fn an_order_of_another_deployment_is_refused() {
    let committee = FakeCommittee::start().await;
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let other = fastpay_core::Domain::new(1, fastpay_core::PrimaryAddress::repeat_byte(1));
    let transfer = pay(bob().account(), 1).transfer(alice().account(), SequenceNumber(0));
    let order = alice().order(&other, transfer).verify(&other).unwrap();
    wallet.folder().orders(alice().account()).lock(Duration::ZERO).await.unwrap().create(&order).unwrap();
    assert_eq!(wallet.resume(alice().account()).await.unwrap_err().kind(), ErrorKind::Argument);
    assert!(committee.authorities.iter().all(|authority| authority.orders_seen().is_empty()));
}
