//! Recoveries by example: what is rebuilt, what is left out and why, and each reason for which a segment is none.

use std::collections::BTreeMap;

use fastpay_core::checkpoint::{
    CheckpointState, KnownFacts, LeftOut, LeftOutReason, NumberState, PrimaryEvent, PrimaryEventKind, Recovered,
    RecoveryError, Segment, SegmentEntry, SegmentError,
};
use fastpay_core::{
    AccountId, Amount, Asset, Balance, Certificate, Digest, Epoch, PrimaryAddress, Redemption, SequenceNumber,
    TransactionIndex, VerifiedCertificate,
};
use fastpay_testkit::{TestCommittee, redemption, test_domain};

use super::checkpoint::{
    Applied, balance, deposit, digest, funded, id, installed, number, pays, queued, redeemed, redeems, released,
    requested, then, upheld, void, voided,
};

const START: SegmentEntry = SegmentEntry::Recovery;

fn paid(from: u64, amount: u128, number: u64) -> SegmentEntry {
    SegmentEntry::Paid(to_redeem(from, amount, number))
}

fn to_redeem(from: u64, amount: u128, number: u64) -> Redemption {
    redemption(id(from), PrimaryAddress::repeat_byte(7), amount, number)
}

fn of(entry: &SegmentEntry) -> Digest {
    match entry {
        SegmentEntry::Paid(redemption) => test_domain().transfer_digest(&redemption.clone().into()),
        entry => digest(entry),
    }
}

/// The certificate of an entry's order, by the committee of an epoch.
fn certified(epoch: u64, entry: &SegmentEntry) -> VerifiedCertificate {
    let SegmentEntry::Executed(order) = entry else { panic!("an order") };
    TestCommittee::with(4, test_domain(), Epoch(epoch)).certified(order)
}

/// Rebuilds after account 0 has got 100, with these events, the installation of a committee, and what is certified in
/// epoch 0. All redemptions of 1 to 200 of accounts 0 and 1 are known.
fn recover(
    events: impl IntoIterator<Item = SegmentEntry>,
    orders: &[SegmentEntry],
) -> Result<Recovered, RecoveryError> {
    recover_since(0, events, orders, &[])
}

/// The same, where keys of the epochs from `since` on were out, and of the members' folders so many have executed orders.
fn recover_since(
    since: u64,
    events: impl IntoIterator<Item = SegmentEntry>,
    orders: &[SegmentEntry],
    executed_by: &[(&SegmentEntry, usize)],
) -> Result<Recovered, RecoveryError> {
    let mut events: Vec<_> = events.into_iter().collect();
    let epochs = events.iter().filter(|entry| epoch_of(entry).is_some()).count() as u64;
    events.push(installed(2 + events.len() as u64, epochs + 1, since));
    let executed_by = executed_by.iter().map(|(order, members)| (digest(order), *members)).collect();
    let events: Vec<_> = events.into_iter().map(event).collect();
    let queued_with = queued_with(&events);
    let facts = KnownFacts { redemptions: redemptions(), queued_with, executed_by, ..KnownFacts::default() };
    let certificates = orders.iter().map(|order| certified(0, order));
    funded().recover(events, certificates, &facts, &test_domain())
}

fn recover_with(
    events: Vec<SegmentEntry>,
    certificates: impl IntoIterator<Item = VerifiedCertificate>,
    redemptions: &BTreeMap<Digest, Redemption>,
) -> Result<Recovered, RecoveryError> {
    let events: Vec<_> = events.into_iter().map(event).collect();
    let (redemptions, queued_with) = (redemptions.clone(), queued_with(&events));
    let facts = KnownFacts { redemptions, queued_with, ..KnownFacts::default() };
    funded().recover(events, certificates, &facts, &test_domain())
}

/// Each redemption is queued with votes of the epoch in which it is.
pub fn queued_with(events: &[PrimaryEvent]) -> BTreeMap<Digest, Epoch> {
    let mut epoch = Epoch(0);
    let mut votes = BTreeMap::new();
    for event in events {
        match &event.kind {
            PrimaryEventKind::Installed(installed) => epoch = installed.committee.epoch(),
            PrimaryEventKind::Queued { digest, .. } => drop(votes.insert(*digest, epoch)),
            _ => {}
        }
    }
    votes
}

fn event(entry: SegmentEntry) -> PrimaryEvent {
    match entry {
        SegmentEntry::Event(event) => event,
        other => panic!("{other:?}"),
    }
}

fn epoch_of(entry: &SegmentEntry) -> Option<Epoch> {
    match entry {
        SegmentEntry::Event(PrimaryEvent { kind: PrimaryEventKind::Installed(installed), .. }) => {
            Some(installed.committee.epoch())
        }
        _ => None,
    }
}

fn redemptions() -> BTreeMap<Digest, Redemption> {
    let all =
        (0..2).flat_map(|from| (1..=200).flat_map(move |amount| (0..3).map(move |at| to_redeem(from, amount, at))));
    all.map(|redemption| (test_domain().transfer_digest(&redemption.clone().into()), redemption)).collect()
}

fn state(recovered: &Recovered) -> CheckpointState {
    then(funded(), recovered.segment.entries.clone()).unwrap()
}

fn next(state: &CheckpointState, account: u64) -> u64 {
    state.cut().next(&id(account)).0
}

fn left_out(recovered: &Recovered) -> Vec<(AccountId, u64, LeftOutReason)> {
    let tell = |LeftOut { account, sequence, reason, .. }: &LeftOut| (*account, sequence.0, *reason);
    recovered.left_out.iter().map(tell).collect()
}

#[test]
fn certified_orders_count_and_what_the_primary_paid_is_debited_without_one() {
    let (order, pays) = (redeems(0, 30, 1), pays(0, 1, 10, 0));
    for known in [true, false] {
        let orders = if known { vec![order.clone(), pays.clone()] } else { vec![pays.clone()] };
        let recovered = recover([redeemed(2, 0, 1, digest(&order))], &orders).unwrap();
        let state = state(&recovered);
        assert_eq!((balance(&state, 0).as_deref(), balance(&state, 1).as_deref()), (Some("60"), Some("10")));
        assert_eq!((next(&state, 0), state.unpaid().len()), (2, 0));
        assert_eq!(recovered.paid.len(), usize::from(!known));
        // A second order of the number is none any more.
        let again = then(state, [redeems(0, 30, 1)]);
        assert!(matches!(again, Err(SegmentError::NumberGap { .. })), "{again:?}");
    }
}

#[test]
fn a_number_that_was_paid_behind_a_gap_is_debited_at_once_and_stepped_over_later() {
    // A sound epoch queued it.
    let events = [queued(2, 0, 2, of(&paid(0, 30, 2))), installed(3, 1, 1)];
    let recovered = recover_since(1, events, &[pays(0, 1, 10, 0)], &[]).unwrap();
    let state = state(&recovered);
    assert_eq!((balance(&state, 0).as_deref(), next(&state, 0)), (Some("60"), 1));
    assert_eq!(number(&state, 0, 2).map(|number| number.is_voided()), Some(true));
    let refused = then(state.clone(), [pays(0, 1, 1, 1), redeems(0, 30, 2)]);
    assert_eq!(refused, Err(SegmentError::Voided { account: id(0), sequence: SequenceNumber(2) }));
    let past = then(state.clone(), [pays(0, 1, 1, 1), void(0, 2), pays(0, 1, 1, 3)]).unwrap();
    assert_eq!((balance(&past, 0).as_deref(), next(&past, 0)), (Some("58"), 4));
    // What becomes of the redemption in the queue is followed before and after.
    for state in [state, past] {
        let (held, digest) = (balance(&state, 0), of(&paid(0, 30, 2)));
        assert_eq!(state.unpaid().len(), 1);
        let is_paid = then(state.clone(), [redeemed(5, 0, 2, digest)]).unwrap();
        assert_eq!((balance(&is_paid, 0), is_paid.unpaid().len()), (held.clone(), 0));
        let is_released = then(state.clone(), [released(5, 0, 2, digest)]).unwrap();
        let back = state.balances()[&(id(0), Asset::ETHER)].credit(Amount(30));
        assert_eq!((balance(&is_released, 0), is_released.unpaid().len()), (Some(back.to_string()), 0));
    }
}

#[test]
fn what_stolen_keys_say_of_a_used_number_neither_stops_a_recovery_nor_undoes_it() {
    // They void a number that the checkpoint before includes.
    let used = then(funded(), [pays(0, 1, 10, 0)]).unwrap();
    let sequence = SequenceNumber(0);
    let events = [voided(2, 0, 0), installed(3, 1, 0)];
    let facts = KnownFacts::default();
    let recovered = used.clone().recover(events.clone().map(event).to_vec(), [], &facts, &test_domain()).unwrap();
    let state = then(used.clone(), recovered.segment.entries).unwrap();
    assert_eq!((balance(&state, 0).as_deref(), next(&state, 0)), (Some("90"), 1));
    assert_eq!(then(used, [voided(2, 0, 0)]), Err(SegmentError::Voided { account: id(0), sequence }));

    // They uphold what a recovery has debited behind a gap, and the keys of that committee are stolen, too.
    let spent = of(&paid(0, 30, 2));
    let state = state_after([redeemed(2, 0, 2, spent), installed(3, 1, 0)]);
    let upheld = then(state.clone(), [upheld(4, 0, 2, spent)]).unwrap();
    assert_eq!(number(&upheld, 0, 2), number(&state, 0, 2));
    let again = then(upheld, [START, installed(5, 2, 0)]).unwrap();
    assert_eq!(number(&again, 0, 2).map(|number| number.is_voided()), Some(true));
}

fn state_after(events: [SegmentEntry; 2]) -> CheckpointState {
    state(&recover_with(events.to_vec(), [], &redemptions()).unwrap())
}

#[test]
fn an_order_needs_its_cover_and_what_was_paid_does_not() {
    // The certificate by which 1 got 40 is lost. It paid 25 on, and then redeemed 15.
    let events = [redeemed(2, 1, 1, of(&paid(1, 15, 1)))];
    let recovered = recover(events, &[pays(1, 2, 25, 0), redeems(1, 15, 1)]).unwrap();
    let owes = state(&recovered);
    let shown = [0, 1, 2].map(|account| balance(&owes, account));
    assert_eq!(shown, [Some("100".to_owned()), Some("-15".to_owned()), None]);
    assert_eq!(next(&owes, 1), 0);
    assert_eq!(left_out(&recovered), [(id(1), 0, LeftOutReason::NotCovered(SequenceNumber(0)))]);
    let mut bytes = Vec::new();
    owes.write(&mut bytes).unwrap();
    assert_eq!(CheckpointState::read(&mut bytes.as_slice()).unwrap(), owes);

    // What the account gets later fills the debt first, and it may not grow.
    let filled = then(owes.clone(), [deposit(4, 1, 20)]).unwrap();
    assert_eq!(balance(&filled, 1).as_deref(), Some("5"));
    let poorer = then(owes.clone(), [pays(1, 2, 1, 0)]);
    assert!(matches!(poorer, Err(SegmentError::NegativeBalance { account, .. }) if account == id(1)), "{poorer:?}");
    assert!(then(owes, [deposit(4, 1, 1)]).is_ok());

    // With the certificate, all of it counts.
    let events = [redeemed(2, 1, 1, of(&paid(1, 15, 1)))];
    let recovered = recover(events, &[pays(1, 2, 25, 0), redeems(1, 15, 1), pays(0, 1, 40, 0)]).unwrap();
    let shown = [0, 1, 2].map(|account| balance(&state(&recovered), account));
    assert_eq!(shown, [Some("60".to_owned()), None, Some("25".to_owned())]);
    assert!(recovered.left_out.is_empty() && recovered.paid.is_empty());
}

#[test]
fn hiding_certificates_makes_no_money() {
    // 0 paid 1, and hides it; 1 paid 2 with it.
    let recovered = recover([], &[pays(1, 2, 100, 0), pays(2, 3, 100, 0)]).unwrap();
    let state = state(&recovered);
    assert_eq!([0, 1, 2, 3].map(|account| balance(&state, account)), [Some("100".to_owned()), None, None, None]);
    let reason = LeftOutReason::NotCovered(SequenceNumber(0));
    let mut expected = [(id(1), 0, reason), (id(2), 0, reason)];
    expected.sort();
    assert_eq!(left_out(&recovered), expected);
}

#[test]
fn the_primary_says_which_order_of_a_number_holds() {
    let (one, other) = (pays(0, 1, 10, 0), pays(0, 1, 20, 0));
    let sorted = |mut orders: [SegmentEntry; 2]| {
        orders.sort_by_key(digest);
        orders
    };
    let [low, high] = sorted([one.clone(), other.clone()]);
    let check = |since, events: Vec<SegmentEntry>, holds: &SegmentEntry, reason| {
        let recovered = recover_since(since, events, &[one.clone(), other.clone()], &[]).unwrap();
        assert!(recovered.segment.entries.contains(holds), "{holds:?}");
        let refused = if *holds == one { &other } else { &one };
        let all: Vec<_> = recovered.left_out.iter().map(|left_out| (left_out.digest, left_out.reason)).collect();
        assert_eq!(all, [(digest(refused), reason)]);
        state(&recovered)
    };
    check(0, vec![], &low, LeftOutReason::Rival(digest(&low)));
    check(0, vec![requested(2, 0, 0)], &low, LeftOutReason::Rival(digest(&low)));
    // Epoch 0 upheld one. Its keys were out, or not.
    let events = |order| vec![requested(2, 0, 0), upheld(3, 0, 0, digest(order)), installed(4, 1, 1)];
    check(0, events(&high), &high, LeftOutReason::Rival(digest(&high)));
    check(1, events(&high), &high, LeftOutReason::Overruled(digest(&high)));

    // Upheld, and nobody has it: thieves may have made it up.
    let missing = pays(0, 1, 30, 0);
    let upheld = |since| recover_since(since, events(&missing), std::slice::from_ref(&one), &[]).unwrap();
    assert!(upheld(0).left_out.is_empty() && upheld(0).segment.entries.contains(&one));
    assert_eq!(left_out(&upheld(1)), [(id(0), 0, LeftOutReason::Overruled(digest(&missing)))]);
    // What holds stays so, and what a recovery ends is open again.
    let said = number(&state(&upheld(1)), 0, 0).unwrap();
    assert_eq!(said.upheld(), Some(digest(&missing)));
    let recovered = recover_since(0, events(&missing), &[], &[]).unwrap();
    let open = NumberState { is_requested: true, outcome: None, spent: None };
    assert_eq!(number(&state(&recovered), 0, 0), Some(open));

    let recovered = recover([requested(2, 0, 0), voided(3, 0, 0)], &[one.clone(), pays(0, 1, 5, 1)]).unwrap();
    assert_eq!(left_out(&recovered), [(id(0), 0, LeftOutReason::Voided)]);
    let state = state(&recovered);
    assert_eq!((next(&state, 0), balance(&state, 0).as_deref()), (2, Some("95")));

    // Spent by a sound epoch, the number has no other order.
    let spent = paid(0, 30, 0);
    let recovered = recover([redeemed(2, 0, 0, of(&spent))], std::slice::from_ref(&one)).unwrap();
    assert!(recovered.segment.entries.contains(&spent));
    assert_eq!(left_out(&recovered), [(id(0), 0, LeftOutReason::Overruled(of(&spent)))]);
}

#[test]
fn of_two_orders_that_stolen_keys_certified_the_one_counts_that_more_members_executed() {
    let orders = [pays(0, 1, 10, 0), pays(0, 2, 20, 0)];
    for (settled, other) in [(0, 1), (1, 0)] {
        let (settled, other) = (&orders[settled], &orders[other]);
        // A quorum of four executed one, and three show their folders. The thief showed the other one to the last member,
        // and has had it upheld.
        let events = [requested(2, 0, 0), upheld(3, 0, 0, digest(other))];
        let recovered = recover_since(0, events, &orders, &[(settled, 2), (other, 1)]).unwrap();
        assert!(recovered.segment.entries.contains(settled));
        assert_eq!(left_out(&recovered), [(id(0), 0, LeftOutReason::Rival(digest(settled)))]);
        state(&recovered);
        // What a member executed comes before what nobody has seen.
        let recovered = recover_since(0, [], &orders, &[(settled, 1)]).unwrap();
        assert!(recovered.segment.entries.contains(settled));
    }
    // However many members have executed it: what stolen keys certified is left out if nothing covers it.
    let stolen = pays(1, 2, 40, 0);
    let recovered = recover_since(0, [], &[stolen.clone(), orders[0].clone()], &[(&stolen, 4)]).unwrap();
    assert_eq!(left_out(&recovered), [(id(1), 0, LeftOutReason::NotCovered(SequenceNumber(0)))]);
    assert_eq!(balance(&state(&recovered), 2), None);
}

/// No folder that is left has executed either. The keys of the first committee are out long after it was replaced.
#[test]
fn keys_of_a_committee_that_was_replaced_take_back_nothing_that_a_later_one_certified() {
    let orders = [pays(0, 1, 10, 0), pays(0, 2, 90, 0)];
    let events = || vec![installed(2, 1, 1), installed(3, 2, 0)];
    for (settled, stolen) in [(0, 1), (1, 0)] {
        let (settled, stolen) = (&orders[settled], &orders[stolen]);
        let later = pays(0, 1, 5, 1);
        let mut certificates =
            vec![certified(1, settled), certified(1, &later), certified(0, stolen), certified(0, settled)];
        for _ in 0..2 {
            let recovered = recover_with(events(), certificates.clone(), &BTreeMap::new()).unwrap();
            assert!([settled, &later].iter().all(|order| recovered.segment.entries.contains(order)));
            assert_eq!(left_out(&recovered), [(id(0), 0, LeftOutReason::Rival(digest(settled)))]);
            state(&recovered);
            certificates.reverse();
        }
    }
}

#[test]
fn a_recovery_ends_certificates_of_all_epochs_before_it_whichever_keys_were_out() {
    // Keys of epoch 1 were out; the next recovery does not count what epoch 0 certified, either.
    let order = pays(0, 1, 10, 0);
    let events =
        || [installed(2, 1, 1), installed(3, 2, 1), installed(4, 3, 3), installed(5, 4, 3)].map(event).to_vec();
    for (epoch, counts) in [(0, false), (1, false), (2, true), (3, true)] {
        let facts = KnownFacts::default();
        let recovered = funded().recover(events(), [certified(epoch, &order)], &facts, &test_domain()).unwrap();
        let expected = if counts { vec![] } else { vec![(id(0), 0, LeftOutReason::Epoch(Epoch(epoch)))] };
        assert_eq!(left_out(&recovered), expected);
    }
    let without_checkpoint = [Epoch(2)].into();
    let facts = KnownFacts { without_checkpoint, ..KnownFacts::default() };
    let recovered = funded().recover(events(), [certified(0, &order)], &facts, &test_domain()).unwrap();
    assert!(recovered.left_out.is_empty());
}

#[test]
fn what_the_primary_paid_overrules_every_other_order_also_of_an_epoch_whose_keys_were_out() {
    let (spent, other) = (paid(0, 30, 0), pays(0, 1, 10, 0));
    let requests = || [requested(2, 0, 0), upheld(3, 0, 0, digest(&other))];
    let events = requests().into_iter().chain([redeemed(4, 0, 0, of(&spent)), installed(5, 1, 0), installed(6, 2, 0)]);
    let known = [certified(1, &other), certified(1, &pays(0, 1, 5, 1))];
    let recovered = recover_with(events.collect(), known, &redemptions()).unwrap();
    assert_eq!(left_out(&recovered), [(id(0), 0, LeftOutReason::Overruled(of(&spent)))]);
    let state = state(&recovered);
    assert_eq!((balance(&state, 0).as_deref(), next(&state, 0)), (Some("65"), 2));

    // What the Primary released, it never pays: an order of the number counts, and a redemption moves nothing.
    let events = || [queued(2, 0, 0, of(&spent)), released(3, 0, 0, of(&spent))];
    for (order, held) in [(other, "90"), (redeems(0, 30, 0), "100")] {
        let recovered = recover(events(), std::slice::from_ref(&order)).unwrap();
        assert!(recovered.segment.entries.contains(&order) && recovered.paid.is_empty());
        assert_eq!(balance(&self::state(&recovered), 0).as_deref(), Some(held));
    }
}

#[test]
fn what_stolen_keys_have_queued_is_debited_only_with_its_certificate_and_its_cover() {
    let (account, sequence) = (id(0), SequenceNumber(0));
    let (stolen, order, own) = (paid(0, 100, 0), pays(0, 1, 10, 0), redeems(0, 30, 0));
    // The number has what members executed, or nothing: the new committee votes for no such redemption.
    for (orders, held, taken) in [(&[order.clone()][..], ["90", "10"], 1), (&[], ["100", ""], 0)] {
        let recovered = recover([queued(2, 0, 0, of(&stolen))], orders).unwrap();
        assert!(recovered.paid.is_empty() && recovered.left_out.is_empty());
        assert_eq!(recovered.queued, [(account, sequence, of(&stolen))]);
        let state = state(&recovered);
        assert_eq!([0, 1].map(|account| balance(&state, account).unwrap_or_default()), held);
        assert_eq!((next(&state, 0), state.unpaid().len()), (taken, 0));
    }
    // One that its owner ordered waits for the votes of the new committee, if it is covered.
    let recovered = recover([queued(2, 0, 0, digest(&own))], std::slice::from_ref(&own)).unwrap();
    let state = state(&recovered);
    assert_eq!((balance(&state, 0).as_deref(), state.unpaid().len(), recovered.queued.len()), (Some("70"), 1, 0));
    let poor = redeems(1, 40, 0);
    let recovered = recover([queued(2, 1, 0, digest(&poor))], std::slice::from_ref(&poor)).unwrap();
    assert_eq!(left_out(&recovered), [(id(1), 0, LeftOutReason::NotCovered(sequence))]);
    assert_eq!(self::state(&recovered).unpaid().len(), 0);
    // No segment says otherwise, unless all epochs end: earlier releases debited it then. Nor may one where the votes can
    // have been of the epoch before, which was sound.
    let segment = |queued: SegmentEntry, entry: &SegmentEntry, since| {
        let before = [START, installed(2, 1, 1), installed(3, 2, 2)];
        then(funded(), before.into_iter().chain([queued, entry.clone(), installed(5, 3, since)]))
    };
    let refused = segment(queued(4, 0, 0, of(&stolen)), &stolen, 1);
    assert_eq!(refused, Err(SegmentError::NotPaid { account, sequence }));
    let refused = segment(queued(4, 1, 0, digest(&poor)), &poor, 1);
    assert!(matches!(refused, Err(SegmentError::NegativeBalance { account, .. }) if account == id(1)), "{refused:?}");
    for since in [0, 2] {
        assert!(segment(queued(4, 0, 0, of(&stolen)), &stolen, since).is_ok());
    }

    // What a sound epoch queued is paid without new votes, so it is debited, and the number has nothing else.
    let events = || [queued(2, 0, 0, of(&stolen)), installed(3, 1, 1)];
    let recovered = recover_since(1, events(), std::slice::from_ref(&order), &[]).unwrap();
    assert_eq!(left_out(&recovered), [(account, 0, LeftOutReason::Overruled(of(&stolen)))]);
    assert_eq!((balance(&self::state(&recovered), 0), recovered.paid.len()), (None, 1));
    let segment = |entries: &[SegmentEntry]| {
        let start = std::iter::once(START).chain(events());
        then(funded(), start.chain(entries.iter().cloned()).chain([installed(4, 2, 1)]))
    };
    assert!(segment(std::slice::from_ref(&stolen)).is_ok());
    assert_eq!(segment(&[]), Err(SegmentError::NotDebited { account, sequence }));
    let upheld = of(&stolen);
    assert_eq!(segment(&[order]), Err(SegmentError::Overruled { account, sequence, upheld }));
}

#[test]
fn what_was_queued_with_votes_of_a_sound_epoch_is_paid_and_so_debited() {
    // Epoch 1 is the first whose keys were out, and votes of epoch 0 still counted in it.
    let (spent, order) = (paid(0, 30, 0), pays(0, 1, 10, 0));
    let events = || [installed(2, 1, 1), queued(3, 0, 0, of(&spent)), installed(4, 2, 1)].map(event).to_vec();
    let recovered = |queued_with: &[u64]| {
        let queued_with = queued_with.iter().map(|epoch| (of(&spent), Epoch(*epoch))).collect();
        let facts = KnownFacts { redemptions: redemptions(), queued_with, ..KnownFacts::default() };
        funded().recover(events(), [certified(0, &order)], &facts, &test_domain())
    };
    let sound = recovered(&[0]).unwrap();
    assert_eq!(left_out(&sound), [(id(0), 0, LeftOutReason::Overruled(of(&spent)))]);
    let state = state(&sound);
    assert_eq!((balance(&state, 0).as_deref(), state.unpaid().len(), sound.paid.len()), (Some("70"), 1, 1));
    let stolen = recovered(&[1]).unwrap();
    assert!(stolen.paid.is_empty() && stolen.segment.entries.contains(&order));
    self::state(&stolen);
    assert_eq!(recovered(&[]), Err(RecoveryError::UnknownVotes { account: id(0), sequence: SequenceNumber(0) }));
    // Also if an earlier recovery has opened the number: it named the epoch of the event, not that of the votes.
    let later = [installed(4, 2, 1), installed(5, 3, 2)].map(event);
    let facts = KnownFacts {
        redemptions: redemptions(),
        queued_with: [(of(&spent), Epoch(0))].into(),
        without_checkpoint: [Epoch(2)].into(),
        ..KnownFacts::default()
    };
    let events = events().into_iter().take(2).chain(later).collect();
    let again = funded().recover(events, [], &facts, &test_domain()).unwrap();
    assert_eq!((balance(&self::state(&again), 0).as_deref(), again.paid.len()), (Some("70"), 1));
}

/// Epochs 1 and 2 end all before them. Those in `without_checkpoint` were recoveries that adopted nothing.
fn ended_twice(certificates: Vec<VerifiedCertificate>, without_checkpoint: &[u64]) -> Recovered {
    let events = [installed(2, 1, 0), installed(3, 2, 0)].map(event).to_vec();
    let without_checkpoint = without_checkpoint.iter().copied().map(Epoch).collect();
    let facts = KnownFacts { without_checkpoint, ..KnownFacts::default() };
    funded().recover(events, certificates, &facts, &test_domain()).unwrap()
}

#[test]
fn certificates_that_thieves_may_have_made_do_not_count() {
    let order = pays(0, 1, 10, 0);
    for epoch in [0, 2, 1] {
        let recovered = ended_twice(vec![certified(epoch, &order)], &[]);
        let expected = if epoch == 1 { vec![] } else { vec![(id(0), 0, LeftOutReason::Epoch(Epoch(epoch)))] };
        assert_eq!(left_out(&recovered), expected);
    }
}

#[test]
fn a_recovery_that_adopted_nothing_ends_nothing_in_the_next_one() {
    let (order, too_early) = (pays(0, 1, 10, 0), pays(0, 1, 5, 1));
    let recovered = ended_twice(vec![certified(0, &order), certified(2, &too_early)], &[1]);
    assert_eq!(left_out(&recovered), [(id(0), 1, LeftOutReason::Epoch(Epoch(2)))]);
    assert_eq!(balance(&state(&recovered), 0).as_deref(), Some("90"));
    let recovered = ended_twice(vec![certified(0, &order)], &[2]);
    assert_eq!(left_out(&recovered), [(id(0), 0, LeftOutReason::Epoch(Epoch(0)))], "epoch 1 was no such recovery");
}

#[test]
fn an_order_that_is_certified_in_several_epochs_counts_if_one_of_them_does() {
    let order = pays(0, 1, 10, 0);
    let both = |epochs: [u64; 2]| ended_twice(epochs.map(|epoch| certified(epoch, &order)).to_vec(), &[]);
    for epochs in [[0, 1], [1, 0], [2, 1], [1, 2]] {
        let recovered = both(epochs);
        assert!(recovered.left_out.is_empty(), "{epochs:?}: {:?}", recovered.left_out);
        assert_eq!(balance(&state(&recovered), 0).as_deref(), Some("90"));
    }
    assert_eq!(both([0, 2]), both([2, 0]));
    assert_eq!(left_out(&both([0, 2])).len(), 2);
}

#[test]
fn certificates_behind_a_gap_wait_and_those_below_the_checkpoint_are_included() {
    let recovered = recover([], &[pays(0, 1, 10, 1), pays(0, 1, 10, 3)]).unwrap();
    let gap = LeftOutReason::Gap(SequenceNumber(0));
    assert_eq!(left_out(&recovered), [(id(0), 1, gap), (id(0), 3, gap)]);
    let base = then(funded(), [pays(0, 1, 10, 0)]).unwrap();
    let events = vec![event(installed(2, 1, 0))];
    let known: Vec<VerifiedCertificate> = vec![certified(0, &pays(0, 1, 10, 0)), certified(0, &pays(0, 1, 5, 1))];
    let recovered = base.recover(events, known, &KnownFacts::default(), &test_domain()).unwrap();
    assert!(recovered.left_out.is_empty());
    assert_eq!(recovered.segment.entries.len(), 3);
}

#[test]
fn nothing_is_rebuilt_without_an_installation_or_what_was_paid() {
    let none = |events| recover_with(events, [], &BTreeMap::new()).unwrap_err();
    assert_eq!(none(vec![]), RecoveryError::NoRecovery);
    assert_eq!(none(vec![installed(2, 1, 1)]), RecoveryError::NoRecovery);
    assert_eq!(none(vec![installed(2, 1, 0), deposit(3, 0, 1)]), RecoveryError::NoRecovery);
    let gap = SegmentError::EventGap { expected: TransactionIndex(2), found: TransactionIndex(3) };
    assert_eq!(none(vec![deposit(3, 0, 1), installed(4, 1, 0)]), RecoveryError::Events(gap));
    let digest = of(&paid(0, 30, 0));
    let unknown = RecoveryError::UnknownRedemption { account: id(0), sequence: SequenceNumber(0), digest };
    let events = vec![redeemed(2, 0, 0, digest), installed(3, 1, 0)];
    assert_eq!(none(events.clone()), unknown);
    // A certificate shows it, whether or not it counts.
    let certificates: [Certificate; 1] = [certified(0, &redeems(0, 30, 0)).into_certificate()];
    let verified = certificates.map(|known| known.verify(&test_domain(), &TestCommittee::new(4).committee).unwrap());
    assert!(recover_with(events, verified, &BTreeMap::new()).is_ok());
    let events = [redeemed(2, 0, 0, digest), installed(3, 1, 0), installed(4, 2, 0)];
    let recovered = recover_with(events.to_vec(), [certified(0, &redeems(0, 30, 0))], &BTreeMap::new()).unwrap();
    assert_eq!(recovered.paid, [to_redeem(0, 30, 0)]);
}

/// A segment after the deposit of 100, in which the Primary paid `spent` and then installed a committee.
fn segment(spent: &SegmentEntry, entries: Vec<SegmentEntry>) -> Applied {
    let start = [START, redeemed(2, 0, number_of(spent), of(spent))];
    then(funded(), start.into_iter().chain(entries).chain([installed(3, 1, 0)]))
}

fn number_of(entry: &SegmentEntry) -> u64 {
    match entry {
        SegmentEntry::Paid(redemption) => redemption.sequence.0,
        other => panic!("{other:?}"),
    }
}

#[test]
fn only_a_recovery_debits_what_was_paid_without_an_order() {
    let spent = paid(0, 30, 0);
    assert!(segment(&spent, vec![spent.clone()]).is_ok());
    let (account, sequence) = (id(0), SequenceNumber(0));
    let ordinary = then(funded(), [redeemed(2, 0, 0, of(&spent)), spent.clone()]);
    assert_eq!(ordinary, Err(SegmentError::OnlyInRecovery { account, sequence }));
    let inside = then(funded(), [redeemed(2, 0, 0, of(&spent)), START, spent.clone()]);
    assert_eq!(inside, Err(SegmentError::RecoveryInside));
    let twice = then(funded(), [START, START]);
    assert_eq!(twice, Err(SegmentError::RecoveryInside));
}

#[test]
fn a_recovery_ends_with_the_installation_that_made_it() {
    let pays = || pays(0, 1, 10, 0);
    assert_eq!(then(funded(), [START, pays()]), Err(SegmentError::NoRecovery));
    assert_eq!(then(funded(), [START, deposit(2, 0, 1)]), Err(SegmentError::NoRecovery));
    assert_eq!(then(funded(), [START, installed(2, 1, 0), pays()]), Err(SegmentError::NoRecovery));
    let sound = then(funded(), [START, pays(), installed(2, 1, 1)]);
    assert_eq!(sound, Err(SegmentError::EventAfterNumbers(TransactionIndex(2))));
    assert_eq!(then(funded(), [START, installed(2, 1, 1)]), Err(SegmentError::NoRecovery));
    let later = then(funded(), [START, pays(), installed(2, 1, 0), deposit(3, 0, 1)]);
    assert_eq!(later, Err(SegmentError::AfterRecovery));
    // An earlier emergency is no end.
    assert!(then(funded(), [START, installed(2, 1, 0), pays(), installed(3, 2, 0)]).is_ok());
    assert!(then(funded(), [START, installed(2, 1, 0)]).is_ok());
}

#[test]
fn a_recovery_debits_exactly_what_was_paid() {
    let (account, sequence) = (id(0), SequenceNumber(0));
    let spent = paid(0, 30, 0);
    assert_eq!(segment(&spent, vec![]), Err(SegmentError::NotDebited { account, sequence }));
    let not_paid = Err(SegmentError::NotPaid { account, sequence });
    assert_eq!(segment(&spent, vec![paid(0, 31, 0)]), not_paid);
    let another = segment(&spent, vec![spent.clone(), paid(0, 30, 1)]);
    assert_eq!(another, Err(SegmentError::NotPaid { account, sequence: SequenceNumber(1) }));
    assert_eq!(segment(&spent, vec![spent.clone(), spent.clone()]), not_paid);
    let overruled = SegmentError::Overruled { account, sequence, upheld: of(&spent) };
    assert_eq!(segment(&spent, vec![pays(0, 1, 10, 0)]), Err(overruled));
    let released =
        [START, queued(2, 0, 0, of(&spent)), released(3, 0, 0, of(&spent)), spent.clone(), installed(4, 1, 0)];
    assert_eq!(then(funded(), released), not_paid);
}

#[test]
fn numbers_behind_a_gap_come_in_order_and_nothing_fills_the_gap() {
    let spent = paid(0, 30, 2);
    assert!(segment(&spent, vec![spent.clone()]).is_ok());
    assert!(segment(&spent, vec![pays(0, 1, 1, 0), spent.clone()]).is_ok());
    let gap = |expected, found| {
        let (expected, found) = (SequenceNumber(expected), SequenceNumber(found));
        Err(SegmentError::NumberGap { account: id(0), expected, found })
    };
    assert_eq!(segment(&spent, vec![spent.clone(), pays(0, 1, 1, 0)]), gap(0, 0));
    let (first, second) = (paid(0, 5, 1), paid(0, 5, 3));
    let events = || [START, redeemed(2, 0, 1, of(&first)), redeemed(3, 0, 3, of(&second))];
    let end = || installed(4, 1, 0);
    let in_order = then(funded(), events().into_iter().chain([first.clone(), second.clone(), end()]));
    assert_eq!(balance(&in_order.unwrap(), 0).as_deref(), Some("90"));
    assert_eq!(then(funded(), events().into_iter().chain([second.clone(), first.clone(), end()])), gap(3, 1));
    let (low, high) = if id(0) < id(1) { (0, 1) } else { (1, 0) };
    let entries = [START, redeemed(2, low, 0, of(&paid(low, 5, 0))), pays(high, 0, 1, 0), paid(low, 5, 0)];
    assert_eq!(then(funded(), entries), Err(SegmentError::AccountsUnsorted(id(low))));
}

#[test]
fn a_recovery_executes_a_frozen_number_for_nobody_else_will_decide() {
    let entries = || [requested(2, 0, 0), pays(0, 1, 10, 0)];
    assert!(matches!(then(funded(), entries()), Err(SegmentError::Frozen { .. })));
    assert!(then(funded(), std::iter::once(START).chain(entries()).chain([installed(3, 1, 0)])).is_ok());
    // One that a sound epoch upheld has no other order.
    let other = Digest::repeat_byte(1);
    let upheld = |since| {
        let events = [START, requested(2, 0, 0), upheld(3, 0, 0, other), installed(4, 1, 1)];
        then(funded(), events.into_iter().chain([pays(0, 1, 10, 0), installed(5, 2, since)]))
    };
    let overruled = SegmentError::Overruled { account: id(0), sequence: SequenceNumber(0), upheld: other };
    assert_eq!(upheld(1), Err(overruled));
    assert!(upheld(0).is_ok());
}

#[test]
fn in_a_recovery_only_what_was_paid_may_be_owed() {
    let spent = paid(0, 130, 1);
    let owes = |balance| {
        let balance = Balance::ZERO.debit(Amount(balance));
        Err(SegmentError::NegativeBalance { account: id(0), asset: Asset::ETHER, balance })
    };
    assert_eq!(balance(&segment(&spent, vec![spent.clone()]).unwrap(), 0).as_deref(), Some("-30"));
    assert_eq!(segment(&spent, vec![pays(0, 1, 10, 0), spent.clone()]), owes(40));
    let without = [START, pays(0, 1, 101, 0), installed(2, 1, 0)];
    assert_eq!(then(funded(), without), owes(1));
}

#[test]
fn what_was_paid_before_the_checkpoint_is_debited_also_if_nothing_else_touches_the_account() {
    // The Primary paid both before the checkpoint; of account 1, nothing is in the recovery.
    let (of_first, of_second) = (paid(0, 30, 0), paid(1, 20, 2));
    let events = [deposit(2, 1, 50), redeemed(3, 0, 0, of(&of_first)), redeemed(4, 1, 2, of(&of_second))];
    let base = then(funded(), events).unwrap();
    let end = |index| installed(index, 1, 0);
    let forgotten = then(base.clone(), [START, of_first.clone(), end(5)]);
    assert_eq!(forgotten, Err(SegmentError::NotDebited { account: id(1), sequence: SequenceNumber(2) }));
    let mut both = [of_first, of_second];
    both.sort_by_key(SegmentEntry::accounts);
    let debited = then(base.clone(), [START].into_iter().chain(both).chain([end(5)])).unwrap();
    assert_eq!([0, 1].map(|account| balance(&debited, account)), [Some("70".to_owned()), Some("30".to_owned())]);

    // Elsewhere such a number stays as it is, and an installation opens it again.
    let later = then(base, [deposit(5, 2, 1), installed(6, 1, 0)]).unwrap();
    let spent = number(&later, 1, 2).and_then(|number| number.spent).unwrap();
    assert_eq!((spent.is_paid, spent.epoch), (true, None));
}

#[test]
fn what_is_paid_behind_a_gap_takes_no_number() {
    let spent = paid(0, 30, 2);
    let taken = |entries: Vec<SegmentEntry>| {
        let events = [START, redeemed(2, 0, 2, of(&spent))];
        let entries = events.into_iter().chain(entries).chain([spent.clone(), installed(3, 1, 0)]).collect();
        let segment = Segment { entries };
        let after = then(funded(), segment.entries.clone()).unwrap();
        let taken = segment.next(after.cut());
        assert_eq!(taken, after.cut().next, "the state before has taken none");
        taken.get(&id(0)).map(|next| next.0)
    };
    assert_eq!(taken(vec![]), None);
    assert_eq!(taken(vec![pays(0, 1, 1, 0)]), Some(1));
    assert_eq!(taken(vec![pays(0, 1, 1, 0), pays(0, 1, 1, 1)]), Some(3));
}
