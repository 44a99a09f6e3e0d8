//! Private transfers in checkpoints: what a state keeps of nullifiers, and why a segment with them is refused.

use std::sync::Arc;

use fastpay_core::checkpoint::{
    CheckpointState, Leaf, Outcome, Outline, OwnState, PrimaryEventKind, Segment, SegmentEntry, SegmentError,
};
use fastpay_core::private::*;
use fastpay_core::{AccountId, Amount, Asset, Balance, Digest, Effect, Link, Record, SequenceNumber};
use fastpay_testkit::{TestCommittee, test_domain};

use super::checkpoint::{event, installed, then};
use crate::private_orders::*;

const RECIPIENT: AccountId = AccountId([0xaa; 32]);

/// A state with 100 in the pool.
fn funded() -> CheckpointState {
    let (recipient, asset, amount) = (AccountId::PRIVATE_POOL, Asset::ETHER, Amount(100));
    let deposit = event(1, PrimaryEventKind::Deposit { recipient, asset, amount });
    then(CheckpointState::new(TestCommittee::new(4).committee).unwrap(), [deposit]).unwrap()
}

fn number(of: u64, sequence: u64) -> (AccountId, SequenceNumber) {
    (nullifier(of).account(), SequenceNumber(sequence))
}

fn numbered(sequence: u64, transfer: PrivateTransfer) -> PrivateTransfer {
    PrivateTransfer { sequence: SequenceNumber(sequence), ..transfer }
}

fn spends(transfer: PrivateTransfer) -> SegmentEntry {
    SegmentEntry::ExecutedPrivate(Box::new(proven(&test_domain(), transfer).order))
}

fn digest(transfer: PrivateTransfer) -> Digest {
    test_domain().private_transfer_digest(&transfer)
}

fn requested(index: u64, (account, sequence): (AccountId, SequenceNumber)) -> SegmentEntry {
    event(index, PrimaryEventKind::UnlockRequested { account, sequence, is_authorized: true })
}

fn voided(index: u64, (account, sequence): (AccountId, SequenceNumber)) -> SegmentEntry {
    event(index, PrimaryEventKind::Voided { account, sequence })
}

fn upheld(index: u64, (account, sequence): (AccountId, SequenceNumber), digest: Digest) -> SegmentEntry {
    event(index, PrimaryEventKind::Upheld { account, sequence, digest })
}

fn void((account, sequence): (AccountId, SequenceNumber)) -> SegmentEntry {
    SegmentEntry::Void { account, sequence }
}

fn held(state: &CheckpointState, account: AccountId) -> Option<String> {
    state.balances().get(&(account, Asset::ETHER)).map(Balance::to_string)
}

/// Events, and then numbers in the order of accounts.
fn sorted(events: Vec<SegmentEntry>, mut numbers: Vec<SegmentEntry>) -> Vec<SegmentEntry> {
    numbers.sort_by_key(SegmentEntry::number);
    events.into_iter().chain(numbers).collect()
}

#[track_caller]
fn check_refused(entries: Vec<SegmentEntry>, expected: SegmentError) {
    assert_eq!(then(funded(), entries).err(), Some(expected));
}

#[test]
fn a_private_transfer_takes_both_its_numbers_and_pays() {
    let entries = vec![spends(transfer(1, 2, 60)), spends(transfer(3, 4, 0))];
    let state = then(funded(), sorted(vec![], entries)).unwrap();
    for of in 1..=4 {
        assert_eq!(state.cut().next(&nullifier(of).account()), SequenceNumber(1));
    }
    let held = [AccountId::PRIVATE_POOL, RECIPIENT].map(|of| held(&state, of));
    assert_eq!(held, [Some("40".to_owned()), Some("60".to_owned())]);
    assert!(state.numbers().is_empty());
    // The same, as one authority's own state.
    let mut own = OwnState::new(funded(), [], &test_domain()).unwrap();
    for transfer in [transfer(1, 2, 60), transfer(3, 4, 0)] {
        own.take_private(&transfer).unwrap();
    }
    assert_eq!(own.finish().0, state);
    // In a cut of its own, the pool may lack what covers a withdrawal: it is nobody's who spends.
    assert_eq!(
        self::held(&then(state, [spends(transfer(5, 6, 50))]).unwrap(), AccountId::PRIVATE_POOL).unwrap(),
        "-10"
    );
}

#[test]
fn a_segment_takes_no_nullifier_twice() {
    let gap = |of, sequence| SegmentError::NumberGap {
        account: number(of, 0).0,
        expected: SequenceNumber(1),
        found: SequenceNumber(sequence),
    };
    let first = || spends(transfer(1, 2, 0));
    check_refused(sorted(vec![], vec![first(), spends(transfer(1, 3, 0))]), gap(1, 0));
    check_refused(sorted(vec![], vec![first(), spends(transfer(3, 2, 0))]), gap(2, 0));
    let (account, sequence) = number(1, 1);
    let later = sorted(vec![], vec![first(), spends(numbered(1, transfer(1, 3, 0)))]);
    check_refused(later, SegmentError::Spent { account, sequence });
    let mut own = OwnState::new(funded(), [], &test_domain()).unwrap();
    own.take_private(&transfer(1, 2, 0)).unwrap();
    assert_eq!(own.take_private(&numbered(1, transfer(1, 3, 0))), Err(SegmentError::Spent { account, sequence }));
    let mut own = OwnState::new(funded(), [], &test_domain()).unwrap();
    own.take_private(&transfer(1, 2, 0)).unwrap();
    assert_eq!(own.take_private(&transfer(3, 2, 0)), Err(gap(2, 0)));
}

#[test]
fn a_void_number_is_stepped_over_and_kept() {
    let next = numbered(1, transfer(1, 2, 0));
    let events = || vec![requested(2, number(1, 0)), voided(3, number(1, 0))];
    let state = then(funded(), sorted(events(), vec![void(number(1, 0)), spends(next)])).unwrap();
    assert_eq!(state.cut().next(&number(1, 0).0), SequenceNumber(2));
    assert_eq!(state.numbers().get(&number(1, 0)).and_then(|number| number.outcome), Some(Outcome::Voided));
    let (account, sequence) = number(1, 0);
    let entries = sorted(events(), vec![spends(transfer(1, 2, 0))]);
    check_refused(entries, SegmentError::Voided { account, sequence });
    let (account, sequence) = number(2, 0);
    let coin = vec![requested(2, number(2, 0)), voided(3, number(2, 0))];
    check_refused(sorted(coin, vec![spends(transfer(1, 2, 0))]), SegmentError::Voided { account, sequence });
}

#[test]
fn of_a_frozen_number_only_the_upheld_order_is_included() {
    for of in [1, 2] {
        let (account, sequence) = number(of, 0);
        let frozen = vec![requested(2, number(of, 0))];
        let entries = sorted(frozen, vec![spends(transfer(1, 2, 0))]);
        check_refused(entries, SegmentError::Frozen { account, sequence });
        let decided = |upholds| vec![requested(2, number(of, 0)), upheld(3, number(of, 0), upholds)];
        let other = digest(transfer(1, 2, 5));
        let entries = sorted(decided(other), vec![spends(transfer(1, 2, 0))]);
        check_refused(entries, SegmentError::Overruled { account, sequence, upheld: other });
        let entries = sorted(decided(digest(transfer(1, 2, 0))), vec![spends(transfer(1, 2, 0))]);
        assert!(then(funded(), entries).is_ok());
    }
}

#[test]
fn an_order_that_nobody_may_give_is_refused() {
    let (account, sequence) = number(1, 0);
    let mut order = proven(&test_domain(), transfer(1, 2, 0)).order;
    order.own_note[7] ^= 1;
    let error = InvalidPrivateTransfer::Notes;
    let entry = SegmentEntry::ExecutedPrivate(Box::new(order));
    check_refused(vec![entry], SegmentError::PrivateOrder { account, sequence, error });
    let equal = spends(transfer(1, 1, 0));
    let error = InvalidPrivateTransfer::EqualNullifiers;
    check_refused(vec![equal], SegmentError::PrivateOrder { account, sequence, error });
}

/// Thieves who had the keys of a quorum certify what no proof shows.
#[test]
fn a_recovery_includes_no_private_order() {
    let (account, sequence) = number(1, 0);
    let entries = vec![SegmentEntry::Recovery, spends(transfer(1, 2, 0)), installed(2, 1, 0)];
    check_refused(entries, SegmentError::PrivateInRecovery { account, sequence });
}

/// Its leaf is the transfer under a kind byte of its own, which earlier releases refuse as any byte that they do not know.
#[test]
fn a_leaf_of_a_private_transfer_has_a_kind_of_its_own() {
    let entry = spends(transfer(1, 2, 60));
    let leaf = entry.leaf();
    let bytes = leaf.encoded();
    assert_eq!((bytes[0], bytes.len()), (0x26, 1 + 284));
    assert_eq!(
        borsh::to_vec(&entry).unwrap().len(),
        1 + 284 + 390,
        "the notes are archived, the proof and votes are not"
    );
    assert_eq!(Leaf::decode(&bytes), Some(leaf.clone()));
    assert_eq!(Leaf::decode(&[&[0x27][..], &bytes[1..]].concat()), None);
    let segment = Segment { entries: vec![entry.clone()] };
    let path = segment.path(&leaf).unwrap();
    let (_, root) = funded().apply(segment.clone(), &test_domain(), &mut rand::rng()).unwrap();
    assert_eq!(leaf.root(&path), Some(root));
    // No state has it.
    let mut stored = Vec::new();
    funded().write(&mut stored).unwrap();
    let written = stored.len();
    stored.extend_from_slice(&u32::try_from(bytes.len()).unwrap().to_le_bytes());
    stored.extend_from_slice(&bytes);
    assert!(CheckpointState::read(&mut &stored[..written]).is_ok());
    assert!(CheckpointState::read(&mut stored.as_slice()).is_err());
    let mut archived = Vec::new();
    segment.write(&mut archived).unwrap();
    assert_eq!(Segment::read(&mut archived.as_slice()).unwrap(), segment);
}

#[test]
fn an_outline_has_what_a_private_confirmation_took_and_no_lock() {
    let committee = TestCommittee::new(4);
    let order = verified(&committee.domain, transfer(1, 2, 60));
    let (certificate, digest) = (certified(&committee, &order).certificate().clone(), order.digest());
    let sent = [Link { number: 0, previous: None, skip: None }; 2];
    let confirmation = PrivateConfirmation { certificate, digest, sent, effect: Some(Effect::Included) };
    let record = Record::PrivateConfirmation(Box::new(confirmation));
    let taken = Outline::decode(&borsh::to_vec(&record).unwrap()).unwrap();
    assert_eq!(taken, Some(Outline::Taken(spends(transfer(1, 2, 60)))));
    let lock = PrivateLock { evidence: PrivateEvidence::Proven(order.proven().clone()), digest };
    assert_eq!(Outline::decode(&borsh::to_vec(&Record::PrivateLock(Arc::new(lock))).unwrap()).unwrap(), None);
}

#[test]
fn the_next_numbers_of_a_segment_have_the_coins() {
    let entries = sorted(vec![], vec![spends(transfer(1, 2, 60)), spends(transfer(3, 4, 0))]);
    let segment = Segment { entries: entries.clone() };
    let state = then(funded(), entries).unwrap();
    assert_eq!(segment.next(state.cut()), state.cut().next);
    let touched = segment.accounts();
    for account in [AccountId::PRIVATE_POOL, RECIPIENT, number(2, 0).0, number(4, 0).0] {
        assert!(touched.contains(&account));
    }
}
