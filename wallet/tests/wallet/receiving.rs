//! Incoming payments count when their certificates are verified: one honest authority is enough, and no
//! authority can make a payment up.

use std::time::Duration;

use fastpay_client::ClientError;
use fastpay_core::{Amount, Asset, PrimaryAddress, SequenceNumber, TransactionIndex, UnlockEvent, UnlockEventKind};
use fastpay_testkit::fake::{FakeCommittee, Role, options};
use fastpay_testkit::{alice, bob, carol};
use fastpay_wallet::folder::{CreditedDeposit, Errand, Folder};
use fastpay_wallet::{ErrorKind, Wallet, WalletError, take_credited};
use tokio::time::timeout;

use crate::support::{Wallets, pay};

/// The time limit of one authority's answer, far longer than a busy machine needs.
const PATIENCE: Duration = Duration::from_secs(20);

#[tokio::test]
async fn payments_are_taken_in_once_with_their_proof() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let (home, bobs_home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let (wallet, bobs) = (committee.wallet(home.path()), committee.wallet(bobs_home.path()));
    for amount in [1, 2, 3] {
        wallet.send(&alice(), &pay(bob().account(), amount)).await.unwrap();
        wallet.send(&alice(), &pay(carol().account(), 1)).await.unwrap();
    }
    let new = bobs.collect(bob().account()).await.unwrap().new;
    let amounts: Vec<_> = new.iter().map(|received| received.payment.amount).collect();
    assert_eq!(amounts, [Amount(1), Amount(2), Amount(3)]);
    assert!(bobs.collect(bob().account()).await.unwrap().new.is_empty());
    // A new process with the same folder knows them too.
    let bobs = committee.wallet(bobs_home.path());
    assert!(bobs.collect(bob().account()).await.unwrap().new.is_empty());
    let inbox = bobs.folder().inbox(bob().account());
    assert_eq!(inbox.payments().unwrap().len(), 3);
    let certificate = inbox.certificate(&inbox.payments().unwrap()[0].name()).unwrap().unwrap();
    certificate.verify(&committee.committee.domain, &committee.committee.committee).unwrap();
}

#[tokio::test]
async fn invented_payments_do_not_count_and_hide_none() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let (home, bobs_home) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    committee.wallet(home.path()).send(&alice(), &pay(bob().account(), 5)).await.unwrap();
    committee.authorities[0].play(Role::FalseHistory);
    let bobs = committee.wallet(bobs_home.path());
    let mut seen = Vec::new();
    for _ in 0..3 {
        seen.extend(bobs.collect(bob().account()).await.unwrap().new);
    }
    assert_eq!(seen.len(), 1);
    assert_eq!(seen[0].payment.amount, Amount(5));
}

#[tokio::test]
async fn a_payment_that_one_authority_knows_is_brought_to_all_and_can_be_spent() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let order = committee.order(&alice(), &pay(bob().account(), 5), 0);
    // A sender who only wanted to show that it paid.
    committee.authorities[2].confirm(&committee.committee.certificate(&order));
    let bobs_home = tempfile::tempdir().unwrap();
    let bobs = committee.wallet(bobs_home.path());
    assert_eq!(bobs.collect(bob().account()).await.unwrap().new.len(), 1);
    committee.until(|authority| authority.balance(bob().account()) == 5).await;
    bobs.send(&bob(), &pay(carol().account(), 5)).await.unwrap();
}

#[tokio::test]
async fn what_is_certified_and_not_settled_is_no_payment_yet_and_hides_no_other_one() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    committee.fund(2, carol().account(), 100, &[0, 1, 2, 3]);
    let order = committee.order(&alice(), &pay(bob().account(), 5), 0);
    let certificate = committee.committee.certificate(&order);
    // One authority executed it before the request to unlock its number was final for it; the others may still void it.
    committee.authorities[2].confirm(&certificate);
    let account = alice().account();
    let event = |index, kind| UnlockEvent {
        after: TransactionIndex(index - 1),
        index: TransactionIndex(index),
        account,
        sequence: SequenceNumber(0),
        kind,
    };
    let follow = |event| [0, 1, 3].iter().for_each(|index: &usize| committee.authorities[*index].follow_unlock(&event));
    follow(event(3, UnlockEventKind::Requested(u64::MAX)));
    let other = committee.order(&carol(), &pay(bob().account(), 7), 0);
    let other = committee.committee.certificate(&other);
    committee.authorities.iter().for_each(|authority| authority.confirm(&other));
    let bobs_home = tempfile::tempdir().unwrap();
    let bobs = committee.wallet(bobs_home.path());
    for expected in [&[7][..], &[]] {
        let collected = bobs.collect(bob().account()).await.unwrap();
        let amounts: Vec<_> = collected.new.iter().map(|received| received.payment.amount.0).collect();
        assert_eq!((amounts.as_slice(), collected.is_whole), (expected, true), "nothing that is settled is missing");
    }
    // With a second authority that has executed it, a quorum may have: one of the two others may lie.
    committee.authorities[1]
        .follow_unlock(&event(4, UnlockEventKind::Upheld(committee.committee.verified(&order).digest())));
    committee.authorities[1].confirm(&certificate);
    let collected = bobs.collect(bob().account()).await.unwrap();
    assert!(collected.new.is_empty() && !collected.is_whole, "{collected:?}");
    // They keep its certificate, and execute it once the contract has upheld it.
    let digest = committee.committee.verified(&order).digest();
    [0, 3].iter().for_each(|index: &usize| {
        committee.authorities[*index].follow_unlock(&event(4, UnlockEventKind::Upheld(digest)));
    });
    let collected = bobs.collect(bob().account()).await.unwrap();
    assert_eq!(collected.new.iter().map(|received| received.payment.amount.0).collect::<Vec<_>>(), [5]);
}

#[tokio::test]
async fn an_order_that_a_recovery_ended_is_not_taken_for_the_one_that_took_its_number() {
    // One authority returns the ended certificate, and lists what it pays, or lists what the others do.
    for lists in [false, true] {
        let committee = FakeCommittee::start().await;
        let ended = committee.committee.certificate(&committee.order(&alice(), &pay(bob().account(), 50), 0));
        let home = tempfile::tempdir().unwrap();
        let bobs = committee.wallet(home.path());
        let next = committee.recover(bobs.network());
        committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
        let settled = next.certificate(&committee.order(&alice(), &pay(bob().account(), 1), 0));
        committee.authorities.iter().for_each(|authority| authority.confirm(&settled));
        committee.authorities[0].show(&ended, lists);
        let collected = bobs.collect(bob().account()).await.unwrap();
        let amounts: Vec<_> = collected.new.iter().map(|received| received.payment.amount.0).collect();
        assert_eq!((amounts.as_slice(), collected.is_whole), (&[1][..], true), "lists: {lists}");
        let inbox = bobs.folder().inbox(bob().account());
        let stored = inbox.certificate(&inbox.payments().unwrap()[0].name()).unwrap().unwrap();
        assert_eq!(stored, settled);
    }
}

#[tokio::test]
async fn a_deposit_counts_once_an_honest_authority_lists_it_whoever_made_it() {
    let committee = FakeCommittee::start().await;
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let inbox = wallet.folder().inbox(alice().account());
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    committee.fund(2, bob().account(), 7, &[0, 1, 2, 3]);
    // One alone may lie.
    committee.fund(3, alice().account(), 5, &[0]);
    wallet.collect_deposits(alice().account()).await.unwrap();
    let credited = inbox.deposits().unwrap();
    assert_eq!(credited.iter().map(|deposit| (deposit.index.0, deposit.amount.0)).collect::<Vec<_>>(), [(1, 100)]);
    // What is known keeps its date; what was missing is found later.
    committee.fund(3, alice().account(), 5, &[1, 2, 3]);
    wallet.collect_deposits(alice().account()).await.unwrap();
    let all = inbox.deposits().unwrap();
    assert_eq!((all.len(), &all[0], all[1].amount.0), (2, &credited[0], 5));
    [1, 2].iter().for_each(|index: &usize| committee.authorities[*index].play(Role::Down));
    let few = wallet.collect_deposits(alice().account()).await;
    assert!(matches!(few, Err(WalletError::TooFewAnswers { answered: 2, quorum: 3 })), "{few:?}");
}

#[tokio::test]
async fn a_deposit_is_found_behind_those_that_authorities_have_pruned() {
    let committee = FakeCommittee::start().await;
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    for index in 1..=3 {
        committee.fund(index, alice().account(), 10 * u128::from(index), &[0, 1, 2, 3]);
    }
    committee.authorities.iter().for_each(|authority| authority.play(Role::Pruned(2)));
    let (asset, after) = (Asset::ETHER, TransactionIndex(2));
    let patience = Duration::from_secs(60);
    let found = wallet.wait_for_credit(alice().account(), asset, Amount(30), after, patience, &|_| {}).await.unwrap();
    assert_eq!((found.index, found.amount), (TransactionIndex(3), Amount(30)));
    wallet.collect_deposits(alice().account()).await.unwrap();
    let listed = wallet.folder().inbox(alice().account()).deposits().unwrap();
    assert_eq!(listed.iter().map(|deposit| deposit.index).collect::<Vec<_>>(), [TransactionIndex(3)]);
    // All of them are pruned.
    committee.authorities.iter().for_each(|authority| authority.play(Role::Pruned(3)));
    wallet.collect_deposits(alice().account()).await.unwrap();
}

#[test]
fn of_deposits_that_were_credited_one_is_of_each_final_transaction() {
    let account = alice().account();
    let token = Asset(PrimaryAddress::repeat_byte(9));
    let credited = |index, asset, amount| CreditedDeposit {
        index: TransactionIndex(index),
        asset,
        amount: Amount(amount),
        seen_at_ms: 1,
    };
    let mut all =
        [credited(1, Asset::ETHER, 5), credited(2, token, 5), credited(3, Asset::ETHER, 5), credited(4, token, 8)]
            .into();
    let mut take = |recipient, asset, amount, after| {
        let errand = Errand::Deposit { recipient, asset, amount: Amount(amount), after: TransactionIndex(after) };
        take_credited(&mut all, account, &errand).map(|deposit| deposit.index.0)
    };
    assert_eq!(take(bob().account(), Asset::ETHER, 5, 0), None, "it is to another account");
    assert_eq!(take(account, Asset::ETHER, 6, 0), None, "it is of another amount");
    assert_eq!(take(account, Asset::ETHER, 5, 1), Some(3), "it is older than the transaction");
    assert_eq!(take(account, Asset::ETHER, 5, 0), Some(1));
    assert_eq!(take(account, Asset::ETHER, 5, 0), None, "each is of one");
    // A token may keep a part on the way.
    assert_eq!((take(account, token, 10, 0), take(account, token, 4, 0)), (Some(2), None));
}

#[tokio::test]
async fn spending_takes_in_what_is_needed_without_being_asked() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let order = committee.order(&alice(), &pay(bob().account(), 5), 0);
    committee.authorities[1].confirm(&committee.committee.certificate(&order));
    let bobs_home = tempfile::tempdir().unwrap();
    committee.wallet(bobs_home.path()).send(&bob(), &pay(carol().account(), 5)).await.unwrap();
}

#[tokio::test]
async fn more_than_a_page_is_read() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 1000, &[0, 1, 2, 3]);
    for sequence in 0..130 {
        let order = committee.order(&alice(), &pay(bob().account(), 1), sequence);
        let certificate = committee.committee.certificate(&order);
        committee.authorities.iter().for_each(|authority| authority.confirm(&certificate));
    }
    let bobs_home = tempfile::tempdir().unwrap();
    assert_eq!(committee.wallet(bobs_home.path()).collect(bob().account()).await.unwrap().new.len(), 130);
}

#[tokio::test]
async fn a_pruned_list_is_read_from_its_first_entry_on() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let receive = |sequence: u64| {
        let order = committee.order(&alice(), &pay(bob().account(), 1 + u128::from(sequence)), sequence);
        let certificate = committee.committee.certificate(&order);
        committee.authorities.iter().for_each(|authority| authority.confirm(&certificate));
    };
    let prune = |count| committee.authorities.iter().for_each(|authority| authority.play(Role::Pruned(count)));
    let collect = async |wallet: &Wallet| {
        let new = wallet.collect(bob().account()).await.unwrap().new;
        new.iter().map(|received| received.payment.amount.0).collect::<Vec<_>>()
    };
    let (home, other) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let bobs = committee.wallet(home.path());
    (0..2).for_each(receive);
    assert_eq!(collect(&bobs).await, [1, 2]);
    // Whoever has read all that is pruned misses nothing.
    prune(2);
    assert_eq!(collect(&bobs).await, []);
    (2..4).for_each(receive);
    assert_eq!(collect(&bobs).await, [3, 4]);
    assert_eq!(collect(&committee.wallet(other.path())).await, [3, 4]);
    prune(3);
    (4..5).for_each(receive);
    assert_eq!(collect(&bobs).await, [5]);
}

#[tokio::test]
async fn a_read_needs_a_quorum() {
    let committee = FakeCommittee::start().await;
    committee.authorities[0].play(Role::Down);
    committee.authorities[1].play(Role::Down);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    assert_eq!(wallet.collect(bob().account()).await.unwrap_err().kind(), ErrorKind::Unreachable);
    assert_eq!(wallet.view(bob().account()).await.unwrap_err().kind(), ErrorKind::Unreachable);
}

#[tokio::test]
async fn an_authority_later_than_a_quorum_is_not_awaited_and_reported_as_late() {
    let committee = FakeCommittee::start().await;
    committee.authorities[2].play(Role::Slow(Duration::from_secs(60)));
    let home = tempfile::tempdir().unwrap();
    let view = committee.wallet(home.path()).view(bob().account()).await.unwrap();
    let late = committee.committee.committee.members()[2].name;
    assert_eq!((view.states.len(), view.states.contains_key(&late)), (3, false));
    assert!(matches!(view.silent[&late], ClientError::TimedOut(after) if after < Duration::from_secs(1)), "{view:?}");
}

#[tokio::test]
async fn a_balance_is_what_an_honest_authority_confirms() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    committee.authorities[3].play(Role::FalseHistory);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let view = wallet.view(alice().account()).await.unwrap();
    assert_eq!(view.balances.len(), 1);
    assert_eq!(view.balances[0].balance, Amount(100).into());
    assert_eq!((view.balances[0].agreeing, view.next_sequence.0), (3, 0));
    let waited = wallet.wait_for_credit(
        alice().account(),
        fastpay_core::Asset::ETHER,
        Amount(100),
        fastpay_core::TransactionIndex(0),
        Duration::from_secs(60),
        &|_| {},
    );
    assert_eq!(waited.await.unwrap().amount, Amount(100));
}

#[tokio::test]
async fn the_dust_of_others_is_not_taken_for_ones_own_deposit() {
    let committee = FakeCommittee::start().await;
    let all = [0, 1, 2, 3];
    committee.fund(1, alice().account(), 1, &all);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let wait = |seconds| {
        let (asset, after) = (fastpay_core::Asset::ETHER, fastpay_core::TransactionIndex(0));
        wallet.wait_for_credit(alice().account(), asset, Amount(100), after, Duration::from_secs(seconds), &|_| {})
    };
    assert_eq!(wait(0).await.unwrap_err().kind(), ErrorKind::Timeout);
    committee.fund(2, alice().account(), 100, &all);
    // More than a page of dust on top.
    (3..200).for_each(|index| committee.fund(index, alice().account(), 1, &all));
    assert_eq!(wait(60).await.unwrap().index.0, 2);
}

#[tokio::test]
async fn a_deposit_that_is_listed_twice_has_one_voice() {
    let committee = FakeCommittee::start().await;
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let wait = |seconds| {
        let (asset, after) = (fastpay_core::Asset::ETHER, fastpay_core::TransactionIndex(0));
        wallet.wait_for_credit(alice().account(), asset, Amount(100), after, Duration::from_secs(seconds), &|_| {})
    };
    // Where the two newest pages overlap.
    let fund = |at: &[usize]| {
        (1..=150).for_each(|index| committee.fund(index, alice().account(), if index == 60 { 100 } else { 1 }, at));
    };
    fund(&[0, 1]);
    assert_eq!(wait(0).await.unwrap_err().kind(), ErrorKind::Timeout);
    fund(&[2]);
    assert_eq!(wait(60).await.unwrap().index.0, 60);
}

#[tokio::test]
async fn a_token_hidden_by_dust_is_found_where_it_matters() {
    let committee = FakeCommittee::start().await;
    let token = fastpay_core::Asset(alloy::primitives::Address::repeat_byte(0xee));
    for authority in &committee.authorities {
        authority.deposit(&fastpay_core::Deposit {
            index: fastpay_core::TransactionIndex(1),
            recipient: alice().account(),
            asset: token,
            amount: Amount(100),
        });
        // Its lists end before the token.
        authority.play(Role::ShortLists);
    }
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let view = wallet.view(alice().account()).await.unwrap();
    assert!(view.truncated && view.balances.is_empty(), "{view:?}");
    // A wallet that has seen the token shows it all the same.
    let info = fastpay_wallet::folder::AssetInfo { symbol: "T".into(), decimals: 0 };
    wallet.folder().learn_asset(token, &info).unwrap();
    let view = wallet.view(alice().account()).await.unwrap();
    assert_eq!((view.balances[0].asset, view.balances[0].balance), (token, Amount(100).into()));
    // The audit counts it too, and says that the lists were cut.
    let genesis = fastpay_core::Genesis {
        committee: committee.committee.committee.members().to_vec(),
        balances: vec![fastpay_core::GenesisBalance { account: alice().account(), asset: token, amount: Amount(100) }],
    };
    let file = home.path().join("genesis.json");
    std::fs::write(&file, serde_json::to_vec(&genesis).unwrap()).unwrap();
    let config =
        fastpay_wallet::folder::Config { endpoints: file.clone(), primary: None, genesis: Some(file), traces: None };
    config.write(&wallet.folder().config_path(), false).unwrap();
    let report = wallet.audit(Duration::ZERO, &|_| {}).await.unwrap();
    assert!(report.ok, "{report:?}");
    assert_eq!((report.truncated.len(), report.assets.len()), (4, 1));
    assert_eq!(report.assets[0].authorities[0].accounts_total, Amount(100).into());
    let intent = |amount| fastpay_wallet::Intent::Pay {
        recipient: bob().account(),
        asset: token,
        amount: Amount(amount),
        memo: fastpay_core::Memo::ZERO,
    };
    wallet.send(&alice(), &intent(60)).await.unwrap();
    assert_eq!(wallet.send(&alice(), &intent(60)).await.unwrap_err().kind(), ErrorKind::Funds);
}

#[tokio::test]
async fn it_is_known_whether_everything_was_seen() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let collect = async || {
        let collected = wallet.collect(bob().account()).await.unwrap();
        (collected.new.len(), collected.is_whole)
    };
    let confirm = |sequences: std::ops::Range<u64>| {
        for sequence in sequences {
            let order = committee.order(&alice(), &pay(bob().account(), 1), sequence);
            let certificate = committee.committee.certificate(&order);
            committee.authorities.iter().for_each(|authority| authority.confirm(&certificate));
        }
    };
    assert_eq!(collect().await, (0, true));
    // A liar does not prevent it, not even where an honest authority is slow.
    committee.authorities[0].play(Role::FalseHistory);
    assert_eq!(collect().await, (0, true));
    committee.authorities[1].play(Role::Slow(Duration::from_millis(200)));
    confirm(0..1);
    assert_eq!(collect().await, (1, true));
    // Two are more than may lie.
    committee.authorities[1].play(Role::Down);
    assert_eq!(collect().await, (0, false));
    // The certificates are out of reach for now.
    committee.authorities.iter().for_each(|authority| authority.play(Role::HidesCertificates));
    confirm(1..2);
    assert_eq!(collect().await, (0, false));
    // More than is read in one go, which is twice twenty pages.
    committee.authorities.iter().for_each(|authority| authority.play(Role::ShortPages));
    confirm(2..45);
    assert_eq!(collect().await, (40, false));
    assert_eq!(collect().await, (4, true));
}

#[tokio::test]
async fn an_authority_restored_from_an_older_copy_hides_no_payment() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    let certificate = |sequence| {
        let order = committee.order(&alice(), &pay(bob().account(), 1), sequence);
        committee.committee.certificate(&order)
    };
    // Its list may come too late behind those of a quorum, and is read by the next call then.
    let collect = async |expected: usize| {
        let mut new = 0;
        for _ in 0..20 {
            let collected = wallet.collect(bob().account()).await.unwrap();
            new += collected.new.len();
            if new >= expected && collected.is_whole {
                break;
            }
        }
        assert_eq!(new, expected);
    };
    let restored = &committee.authorities[0];
    let earlier: Vec<_> = (0..10).map(certificate).collect();
    committee
        .authorities
        .iter()
        .for_each(|authority| earlier.iter().for_each(|certificate| authority.confirm(certificate)));
    collect(10).await;
    collect(0).await;
    // Shorter than what was read of it, with something that it alone knows.
    assert_eq!(restored.set_back(bob().account(), 5).len(), 5);
    restored.confirm(&certificate(10));
    collect(1).await;
    // As long again as what was read of it, in another order.
    assert_eq!(restored.set_back(bob().account(), 5).len(), 1);
    restored.confirm(&certificate(11));
    earlier.iter().skip(5).for_each(|certificate| restored.confirm(certificate));
    collect(1).await;
    // A folder of an earlier version knows the numbers alone.
    let inbox = home.path().join("inbox").join(hex::encode(bob().account().0));
    std::fs::remove_file(inbox.join("last_read.json")).unwrap();
    assert_eq!(restored.set_back(bob().account(), 2).len(), 9);
    restored.confirm(&certificate(12));
    collect(1).await;
    assert!(inbox.join("last_read.json").exists());
}

#[tokio::test]
async fn one_that_withholds_certificates_holds_up_no_payment() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    for sequence in 0..50 {
        let order = committee.order(&alice(), &pay(bob().account(), 1), sequence);
        let certificate = committee.committee.certificate(&order);
        committee.authorities.iter().for_each(|authority| authority.confirm(&certificate));
    }
    // It lists all at once, so that what the others have not listed yet is asked of it.
    committee.authorities.iter().for_each(|authority| authority.play(Role::ShortPages));
    committee.authorities[0].play(Role::WithholdsCertificates);
    let home = tempfile::tempdir().unwrap();
    let wallet = Wallet::new(Folder::new(home.path()), committee.network_with(PATIENCE), options());
    let collecting = async {
        let mut new = 0;
        loop {
            let collected = wallet.collect(bob().account()).await.unwrap();
            new += collected.new.len();
            if collected.is_whole {
                return new;
            }
        }
    };
    // To wait for it once for each payment would take thirty times its time-out.
    assert_eq!(timeout(15 * PATIENCE, collecting).await, Ok(50));
}

#[tokio::test]
async fn inventions_without_an_answer_hold_up_nobody_else() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 100, &[0, 1, 2, 3]);
    committee.authorities[0].play(Role::InventsAndWithholds);
    let home = tempfile::tempdir().unwrap();
    let wallet = Wallet::new(Folder::new(home.path()), committee.network_with(PATIENCE), options());
    let collecting = async {
        for sequence in 0..8 {
            let order = committee.order(&alice(), &pay(bob().account(), 1), sequence);
            let certificate = committee.committee.certificate(&order);
            committee.authorities.iter().for_each(|authority| authority.confirm(&certificate));
            let collected = wallet.collect(bob().account()).await.unwrap();
            assert_eq!((collected.new.len(), collected.is_whole), (1, true));
        }
    };
    // To wait for it at each call would take eight times its time-out or more.
    timeout(7 * PATIENCE, collecting).await.unwrap();
}

#[tokio::test]
async fn what_there_is_no_time_for_is_taken_in_by_the_next_call() {
    let committee = FakeCommittee::start().await;
    committee.fund(1, alice().account(), 1000, &[0, 1, 2, 3]);
    for sequence in 0..400 {
        let order = committee.order(&alice(), &pay(bob().account(), 1), sequence);
        let certificate = committee.committee.certificate(&order);
        committee.authorities.iter().for_each(|authority| authority.confirm(&certificate));
    }
    let role = Role::SlowCertificates(Duration::from_millis(500));
    committee.authorities.iter().for_each(|authority| authority.play(role));
    let home = tempfile::tempdir().unwrap();
    let wallet = committee.wallet(home.path());
    // All of them, four at a time, would take a minute at the least.
    let first = timeout(Duration::from_secs(45), wallet.collect(bob().account())).await.unwrap().unwrap();
    assert!(!first.new.is_empty() && !first.is_whole, "{}", first.new.len());
    committee.authorities.iter().for_each(|authority| authority.play(Role::Honest));
    let mut new = first.new.len();
    loop {
        let collected = wallet.collect(bob().account()).await.unwrap();
        new += collected.new.len();
        if collected.is_whole {
            break;
        }
    }
    assert_eq!(new, 400);
}
