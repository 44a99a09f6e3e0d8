//! Checkpoints of the committee by example: what a state keeps, and each reason for which a segment, a checkpoint or
//! stored bytes are refused.

use fastpay_core::checkpoint::{
    Checkpoint, CheckpointCertificate, CheckpointError, CheckpointMismatch, CheckpointState, CheckpointVote,
    Installations, InstalledCommittee, Leaf, LeafPath, NumberState, Outcome, OwnState, PrimaryEvent, PrimaryEventKind,
    Segment, SegmentEntry, SegmentError, Spent, StatePart,
};
use fastpay_core::{
    AccountId, Amount, Asset, Balance, Digest, Domain, Epoch, EpochsError, InvalidTransfer, OrderError, PrimaryAddress,
    RELEASED, SequenceNumber, TransactionIndex, Transfer,
};
use fastpay_testkit::{TestAccount, TestCommittee, payment, payout, redemption, test_domain};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::streamed;

pub type Applied = Result<CheckpointState, SegmentError>;

pub fn owner(number: u64) -> TestAccount {
    TestAccount::numbered(number)
}

pub fn id(number: u64) -> AccountId {
    owner(number).id()
}

/// The genesis, and after it a deposit of 100 for account 0.
pub fn funded() -> CheckpointState {
    let genesis = CheckpointState::new(TestCommittee::new(4).committee).unwrap();
    then(genesis, [deposit(1, 0, 100)]).unwrap()
}

/// The state after these entries, which is the same in memory and row by row.
pub fn then(state: CheckpointState, entries: impl IntoIterator<Item = SegmentEntry>) -> Applied {
    let segment = Segment { entries: entries.into_iter().collect() };
    let streamed = streamed::apply(&state, &segment, &test_domain());
    let applied = state.apply(segment, &test_domain(), &mut StdRng::seed_from_u64(0)).map(|(state, _)| state);
    assert_eq!(streamed.map(|(written, _, _)| written), applied.clone().map(|state| streamed::stored(&state)));
    applied
}

pub fn event(index: u64, kind: PrimaryEventKind) -> SegmentEntry {
    SegmentEntry::Event(PrimaryEvent { index: TransactionIndex(index), kind })
}

pub fn deposit(index: u64, to: u64, amount: u128) -> SegmentEntry {
    let kind = PrimaryEventKind::Deposit { recipient: id(to), asset: Asset::ETHER, amount: Amount(amount) };
    event(index, kind)
}

pub fn requested(index: u64, account: u64, number: u64) -> SegmentEntry {
    let (account, sequence) = (id(account), SequenceNumber(number));
    event(index, PrimaryEventKind::UnlockRequested { account, sequence, is_authorized: true })
}

pub fn voided(index: u64, account: u64, number: u64) -> SegmentEntry {
    event(index, PrimaryEventKind::Voided { account: id(account), sequence: SequenceNumber(number) })
}

pub fn upheld(index: u64, account: u64, number: u64, digest: Digest) -> SegmentEntry {
    event(index, PrimaryEventKind::Upheld { account: id(account), sequence: SequenceNumber(number), digest })
}

pub fn redeemed(index: u64, account: u64, number: u64, digest: Digest) -> SegmentEntry {
    event(index, PrimaryEventKind::Redeemed { account: id(account), sequence: SequenceNumber(number), digest })
}

pub fn queued(index: u64, account: u64, number: u64, digest: Digest) -> SegmentEntry {
    event(index, PrimaryEventKind::Queued { account: id(account), sequence: SequenceNumber(number), digest })
}

pub fn released(index: u64, account: u64, number: u64, digest: Digest) -> SegmentEntry {
    event(index, PrimaryEventKind::Released { account: id(account), sequence: SequenceNumber(number), digest })
}

pub fn installed(index: u64, epoch: u64, since: u64) -> SegmentEntry {
    let committee = TestCommittee::with(4, test_domain(), Epoch(epoch)).committee;
    let installed = InstalledCommittee { committee, compromised_since: Epoch(since), checkpoint: Digest::ZERO };
    event(index, PrimaryEventKind::Installed(installed))
}

pub fn executed(by: u64, transfer: impl Into<Transfer>) -> SegmentEntry {
    SegmentEntry::Executed(owner(by).sign(&test_domain(), transfer))
}

pub fn pays(from: u64, to: u64, amount: u128, number: u64) -> SegmentEntry {
    executed(from, payment(id(from), id(to), amount, number))
}

pub fn redeems(from: u64, amount: u128, number: u64) -> SegmentEntry {
    executed(from, redemption(id(from), PrimaryAddress::repeat_byte(7), amount, number))
}

pub fn digest(entry: &SegmentEntry) -> Digest {
    let SegmentEntry::Executed(order) = entry else { panic!("an order") };
    test_domain().transfer_digest(&order.transfer)
}

pub fn void(account: u64, number: u64) -> SegmentEntry {
    SegmentEntry::Void { account: id(account), sequence: SequenceNumber(number) }
}

pub fn balance(state: &CheckpointState, account: u64) -> Option<String> {
    state.balances().get(&(id(account), Asset::ETHER)).map(Balance::to_string)
}

pub fn number(state: &CheckpointState, account: u64, number: u64) -> Option<NumberState> {
    state.numbers().get(&(id(account), SequenceNumber(number))).copied()
}

/// Entries of these accounts in the order of accounts.
pub fn sorted(mut entries: Vec<SegmentEntry>) -> Vec<SegmentEntry> {
    entries.sort_by_key(|entry| match entry {
        SegmentEntry::Executed(order) => Some((order.transfer.sender(), order.transfer.sequence())),
        SegmentEntry::Void { account, sequence } => Some((*account, *sequence)),
        _ => None,
    });
    entries
}

#[test]
fn what_an_account_receives_in_a_segment_it_may_spend_in_it_whatever_the_order() {
    for (first, second) in [(0, 1), (1, 0), (0, 2), (2, 0)] {
        let genesis = CheckpointState::new(TestCommittee::new(4).committee).unwrap();
        let numbers = sorted(vec![pays(first, second, 100, 0), pays(second, 3, 60, 0)]);
        let state = then(genesis, std::iter::once(deposit(1, first, 100)).chain(numbers)).unwrap();
        assert_eq!(balance(&state, first), None);
        assert_eq!(balance(&state, second).as_deref(), Some("40"));
        assert_eq!(balance(&state, 3).as_deref(), Some("60"));
    }
}

#[test]
fn an_empty_segment_is_refused() {
    assert_eq!(then(funded(), []), Err(SegmentError::Empty));
}

#[test]
fn events_come_without_a_gap_and_before_all_numbers() {
    for found in [1, 3] {
        let gap = SegmentError::EventGap { expected: TransactionIndex(2), found: TransactionIndex(found) };
        assert_eq!(then(funded(), [deposit(found, 0, 5)]), Err(gap));
    }
    let late = then(funded(), [pays(0, 1, 1, 0), deposit(2, 0, 5)]);
    assert_eq!(late, Err(SegmentError::EventAfterNumbers(TransactionIndex(2))));
}

#[test]
fn committees_come_one_by_one() {
    let state = then(funded(), [installed(2, 1, 1), installed(3, 2, 0)]).unwrap();
    assert_eq!(state.installations().epoch(), Epoch(2));
    let gap = EpochsError::Gap { expected: Epoch(3), found: Epoch(4) };
    assert_eq!(then(state, [installed(4, 4, 4)]), Err(SegmentError::Epochs(gap)));
    let second = TestCommittee::with(4, test_domain(), Epoch(1)).committee;
    assert_eq!(CheckpointState::new(second), Err(EpochsError::Gap { expected: Epoch(0), found: Epoch(1) }));
}

#[test]
fn accounts_and_numbers_come_in_order_without_a_gap() {
    let mut numbers = sorted(vec![pays(0, 1, 1, 0), pays(1, 0, 1, 0)]);
    numbers.reverse();
    let misplaced = numbers[1].leaf();
    let Leaf::Executed(misplaced) = misplaced else { panic!("an order") };
    assert_eq!(then(funded(), numbers), Err(SegmentError::AccountsUnsorted(misplaced.sender())));

    let gap = |expected, found| {
        let (expected, found) = (SequenceNumber(expected), SequenceNumber(found));
        Err(SegmentError::NumberGap { account: id(0), expected, found })
    };
    assert_eq!(then(funded(), [pays(0, 1, 1, 1)]), gap(0, 1));
    assert_eq!(then(funded(), [pays(0, 1, 1, 0), pays(0, 1, 1, 2)]), gap(1, 2));
    assert_eq!(then(funded(), [pays(0, 1, 1, 0), pays(0, 1, 1, 0)]), gap(1, 0));
    assert_eq!(then(funded(), [void(0, u64::MAX)]), gap(0, u64::MAX));
    let state = then(funded(), [pays(0, 1, 1, 0)]).unwrap();
    assert_eq!(then(state, [pays(0, 1, 1, 0)]), gap(1, 0));
}

#[test]
fn an_order_that_its_owner_did_not_sign_or_nobody_may_is_refused() {
    let refusal = |order: SegmentEntry| match then(funded(), [order]) {
        Err(SegmentError::Order { account, sequence, error }) => {
            assert_eq!((account, sequence), (id(0), SequenceNumber(0)));
            error
        }
        other => panic!("{other:?}"),
    };
    let transfer = payment(id(0), id(1), 1, 0);
    assert_eq!(refusal(executed(2, transfer.clone())), OrderError::WrongKey { sender: id(0) });
    let elsewhere = owner(0).sign(&Domain::new(1, test_domain().contract()), transfer);
    assert!(matches!(refusal(SegmentEntry::Executed(elsewhere)), OrderError::Signature(_)));
    let nothing = refusal(pays(0, 1, 0, 0));
    assert_eq!(nothing, OrderError::Transfer(InvalidTransfer::ZeroAmount));
}

#[test]
fn a_bad_signature_is_found_at_any_place_of_a_batch() {
    let genesis = funded();
    let orders: Vec<_> = (0..90).map(|number| pays(0, 1, 1, number)).collect();
    for bad in [0, 31, 89] {
        let mut orders = orders.clone();
        let (SegmentEntry::Executed(other), SegmentEntry::Executed(order)) =
            (pays(0, 2, 1, bad), &mut orders[usize::try_from(bad).unwrap()])
        else {
            panic!("orders");
        };
        order.authorization = other.authorization;
        match then(genesis.clone(), orders) {
            Err(SegmentError::Order { sequence, .. }) => assert_eq!(sequence, SequenceNumber(bad)),
            other => panic!("{other:?}"),
        }
    }
    assert!(then(genesis, orders).is_ok());
}

#[test]
fn an_account_that_would_owe_ends_the_cut_before() {
    let (account, asset) = (id(0), Asset::ETHER);
    let balance = Balance::ZERO.debit(Amount(1));
    let owes = Err(SegmentError::NegativeBalance { account, asset, balance });
    assert_eq!(then(funded(), [pays(0, 1, 60, 0), redeems(0, 41, 1)]), owes);
    let split = payout(id(0), &[(id(1), 50), (id(2), 51)], 0);
    assert_eq!(then(funded(), [executed(0, split)]), owes);
}

#[test]
fn a_frozen_number_without_outcome_ends_the_cut_before_it() {
    let order = pays(0, 1, 10, 0);
    let frozen = Err(SegmentError::Frozen { account: id(0), sequence: SequenceNumber(0) });
    assert_eq!(then(funded(), [requested(2, 0, 0), order.clone()]), frozen);
    // Before it, the cut keeps what is known of it.
    let state = then(funded(), [requested(2, 0, 0)]).unwrap();
    assert_eq!(number(&state, 0, 0), Some(NumberState { is_requested: true, ..NumberState::default() }));
    assert_eq!(then(state.clone(), [order.clone()]), frozen);
    // Decided, it may be included; and a request that comes later concerns no number that a cut includes.
    let state = then(state, [upheld(3, 0, 0, digest(&order)), order]).unwrap();
    assert_eq!(number(&state, 0, 0), None);
    let state = then(state, [requested(4, 0, 0), pays(0, 1, 10, 1)]).unwrap();
    assert_eq!((balance(&state, 0).as_deref(), number(&state, 0, 0)), (Some("80"), None));
}

#[test]
fn a_request_that_its_owner_did_not_sign_freezes_nothing() {
    let (account, sequence) = (id(0), SequenceNumber(0));
    let request = event(2, PrimaryEventKind::UnlockRequested { account, sequence, is_authorized: false });
    assert!(then(funded(), [request, pays(0, 1, 10, 0)]).unwrap().numbers().is_empty());
}

#[test]
fn of_a_frozen_number_only_the_upheld_order_may_be_included() {
    let (order, other) = (pays(0, 1, 10, 0), pays(0, 2, 10, 0));
    let overruled = |by: &SegmentEntry| {
        Err(SegmentError::Overruled { account: id(0), sequence: SequenceNumber(0), upheld: digest(by) })
    };
    let decided = [requested(2, 0, 0), upheld(3, 0, 0, digest(&other))];
    assert_eq!(then(funded(), decided.into_iter().chain([order.clone()])), overruled(&other));
    // Spending counts as upholding, unless keys of that epoch were out.
    let own = redeems(0, 10, 0);
    let spent = [requested(2, 0, 0), redeemed(3, 0, 0, digest(&own))];
    assert!(then(funded(), spent.clone().into_iter().chain([own.clone()])).is_ok());
    assert_eq!(then(funded(), spent.clone().into_iter().chain([order])), overruled(&own));
    let opened = spent.into_iter().chain([installed(4, 1, 0), own]);
    let frozen = Err(SegmentError::Frozen { account: id(0), sequence: SequenceNumber(0) });
    assert_eq!(then(funded(), opened), frozen);
}

#[test]
fn what_compromised_epochs_decided_is_open_again_and_what_others_did_stays() {
    let order = redeems(0, 10, 0);
    let digest = digest(&order);
    let decided = [installed(2, 1, 1), requested(3, 0, 0), upheld(4, 0, 0, digest), queued(5, 0, 1, digest)];
    let sound = then(funded(), decided.clone().into_iter().chain([installed(6, 2, 2)])).unwrap();
    let epoch = Epoch(1);
    assert_eq!(number(&sound, 0, 0).unwrap().outcome, Some(Outcome::Upheld { digest, epoch }));
    let spent = |epoch| Some(Spent { digest, is_paid: false, epoch });
    assert_eq!(number(&sound, 0, 1).unwrap().spent, spent(Some(epoch)));
    let opened = then(funded(), decided.into_iter().chain([installed(6, 2, 1)])).unwrap();
    assert_eq!(number(&opened, 0, 0), Some(NumberState { is_requested: true, ..NumberState::default() }));
    assert_eq!(number(&opened, 0, 1).unwrap().spent, spent(None));
}

#[test]
fn an_installation_opens_numbers_of_accounts_that_the_segment_does_not_touch() {
    let holds = Digest::repeat_byte(5);
    let frozen = then(funded(), [requested(2, 0, 0), upheld(3, 0, 0, holds), upheld(4, 1, 0, holds)]).unwrap();
    let state = then(frozen, [installed(5, 1, 0), installed(6, 2, 2), deposit(7, 2, 1)]).unwrap();
    assert_eq!((number(&state, 0, 0).unwrap().outcome, number(&state, 1, 0)), (None, None));
    assert!(number(&state, 0, 0).unwrap().is_requested);
}

#[test]
fn a_part_of_a_state_has_the_rows_of_its_accounts() {
    let stored = streamed::stored(&then(funded(), [deposit(2, 1, 5), requested(3, 1, 0)]).unwrap());
    let part = StatePart::read(&mut stored.as_slice(), [id(1), id(2)].into()).unwrap();
    assert!(part.accounts().iter().eq(&std::collections::BTreeSet::from([id(1), id(2)])));
    assert_eq!((balance(part.rows(), 0), balance(part.rows(), 1).as_deref()), (None, Some("5")));
    assert!(part.rows().cut().up_to == TransactionIndex(3) && number(part.rows(), 1, 0).is_some());
    let mut again = Vec::new();
    part.write(&mut stored.as_slice(), &mut again).unwrap();
    assert_eq!(again, stored);
    // A base that ends early is noticed, and not taken for the whole.
    let cut_off = &stored[..stored.len() - 1];
    assert!(part.summary(&mut &cut_off[..]).is_err() && StatePart::read(&mut &cut_off[..], [id(1)].into()).is_err());
}

#[test]
fn a_void_number_is_stepped_over_and_kept_for_ever() {
    let not_voided = Err(SegmentError::NotVoided { account: id(0), sequence: SequenceNumber(0) });
    assert_eq!(then(funded(), [requested(2, 0, 0), void(0, 0)]), not_voided);
    let is_voided = Err(SegmentError::Voided { account: id(0), sequence: SequenceNumber(0) });
    let ends = [requested(2, 0, 0), voided(3, 0, 0)];
    assert_eq!(then(funded(), ends.clone().into_iter().chain([pays(0, 1, 10, 0)])), is_voided);
    let state = then(funded(), ends.into_iter().chain([void(0, 0), pays(0, 1, 10, 1)])).unwrap();
    assert_eq!(state.cut().next(&id(0)), SequenceNumber(2));
    assert!(number(&state, 0, 0).unwrap().is_voided());
    // What a certified cut includes is never void.
    let sequence = SequenceNumber(1);
    assert_eq!(then(state, [voided(4, 0, 1)]), Err(SegmentError::Voided { account: id(0), sequence }));
}

#[test]
fn a_redemption_is_kept_whole_until_it_is_paid() {
    let order = redeems(0, 10, 0);
    let state = then(funded(), [order.clone()]).unwrap();
    let whole = redemption(id(0), PrimaryAddress::repeat_byte(7), 10, 0);
    assert_eq!(state.unpaid().values().collect::<Vec<_>>(), [&whole]);
    // In the queue it is not paid.
    let waiting = then(state.clone(), [queued(2, 0, 0, digest(&order))]).unwrap();
    assert_eq!(waiting.unpaid().len(), 1);
    let paid = then(waiting, [redeemed(3, 0, 0, digest(&order))]).unwrap();
    assert!(paid.unpaid().is_empty());
    assert_eq!(balance(&paid, 0).as_deref(), Some("90"));
    // The same where the number is taken after the events.
    let order_of_segment = [queued(2, 0, 0, digest(&order)), order.clone()];
    assert_eq!(then(funded(), order_of_segment).unwrap().unpaid().len(), 1);
    let order_of_segment = [redeemed(2, 0, 0, digest(&order)), order];
    assert!(then(funded(), order_of_segment).unwrap().unpaid().is_empty());
}

#[test]
fn a_redemption_that_is_never_paid_is_credited_back_once() {
    let (order, theft) = (redeems(0, 10, 0), Digest::repeat_byte(9));
    let own = digest(&order);
    let never: [&[SegmentEntry]; 4] = [
        &[redeemed(2, 0, 0, theft)],
        &[queued(2, 0, 0, theft), redeemed(3, 0, 0, theft)],
        &[queued(2, 0, 0, theft), released(3, 0, 0, theft)],
        &[queued(2, 0, 0, own), released(3, 0, 0, own)],
    ];
    for events in never {
        // The number taken in the segment before, and after the events in the same one.
        let before = then(then(funded(), [order.clone()]).unwrap(), events.to_vec()).unwrap();
        let after = then(funded(), events.iter().cloned().chain([order.clone()])).unwrap();
        // Between the events: what was known of the number is in the state.
        let known = then(funded(), events[..1].to_vec()).unwrap();
        let between = then(known, events[1..].iter().cloned().chain([order.clone()])).unwrap();
        for state in [&before, &after, &between] {
            assert_eq!((balance(state, 0).as_deref(), state.unpaid().len()), (Some("100"), 0), "{events:?}");
            assert_eq!(state.summary().state, before.summary().state);
        }
    }
    // A payment under a number that was spent is paid all the same.
    let state = then(funded(), [redeemed(2, 0, 0, theft), pays(0, 1, 10, 0)]).unwrap();
    assert_eq!(balance(&state, 1).as_deref(), Some("10"));
    let state = then(funded(), [queued(2, 0, 0, own), released(3, 0, 0, own)]).unwrap();
    assert_eq!(number(&state, 0, 0).unwrap().spent.unwrap().digest, RELEASED);
}

#[test]
fn a_leaf_is_proven_by_its_path_and_no_other_is() {
    let order = pays(0, 1, 10, 0);
    let segment = Segment { entries: vec![deposit(2, 0, 1), deposit(3, 2, 1), order.clone()] };
    let rng = &mut StdRng::seed_from_u64(0);
    let (state, root) = funded().apply(segment.clone(), &test_domain(), rng).unwrap();
    let (next, held) =
        (Leaf::Next(id(0), SequenceNumber(1)), Leaf::Balance(id(1), Asset::ETHER, Balance::from(Amount(10))));
    assert_eq!(next.root(&state.cut().path(&next).unwrap()), Some(state.cut().digest()));
    let path = state.path(&held).unwrap();
    assert_eq!(held.root(&path), Some(state.summary().state));
    assert_eq!(order.leaf().root(&segment.path(&order.leaf()).unwrap()), Some(root));
    let more = Leaf::Balance(id(1), Asset::ETHER, Balance::from(Amount(11)));
    assert_eq!((state.path(&more), state.cut().path(&held), segment.path(&next)), (None, None, None));
    assert_ne!(more.root(&path), Some(state.summary().state));
    let malformed = LeafPath { directions: u64::MAX, ..path };
    assert_eq!(held.root(&malformed), None);
}

#[test]
fn a_proposed_checkpoint_that_differs_says_in_what() {
    let state = funded();
    let first = Checkpoint::first(&state.summary());
    assert_eq!((first.epoch, first.number, first.previous), (Epoch(0), 0, Digest::ZERO));
    let own = first.next(&test_domain(), Epoch(0), &state.summary(), Digest::repeat_byte(1)).unwrap();
    assert_eq!((own.number, own.previous), (1, test_domain().checkpoint_digest(&first)));
    assert_eq!(own.check(&own), Ok(()));
    let other = Digest::repeat_byte(9);
    for (proposed, mismatch) in [
        (Checkpoint { epoch: Epoch(1), ..own }, CheckpointMismatch::Epoch),
        (Checkpoint { number: 2, ..own }, CheckpointMismatch::Number),
        (Checkpoint { previous: other, ..own }, CheckpointMismatch::Previous),
        (Checkpoint { up_to: TransactionIndex(2), ..own }, CheckpointMismatch::UpTo),
        (Checkpoint { cut: other, ..own }, CheckpointMismatch::Cut),
        (Checkpoint { segment: other, ..own }, CheckpointMismatch::Segment),
        (Checkpoint { state: other, ..own }, CheckpointMismatch::State),
    ] {
        assert_eq!(own.check(&proposed), Err(mismatch));
        assert_ne!(test_domain().checkpoint_digest(&proposed), test_domain().checkpoint_digest(&own));
    }
    assert_eq!(Checkpoint { number: u64::MAX, ..own }.next(&test_domain(), Epoch(0), &state.summary(), other), None);
}

/// A checkpoint of this epoch, and votes of these members of its committee.
fn certificate(epoch: u64, members: &[usize]) -> CheckpointCertificate {
    let committee = TestCommittee::with(4, test_domain(), Epoch(epoch));
    let checkpoint = Checkpoint { epoch: Epoch(epoch), ..Checkpoint::first(&funded().summary()) };
    let votes = members.iter().map(|at| checkpoint.sign(&committee.keys[*at], &test_domain())).collect();
    CheckpointCertificate { checkpoint, votes }
}

/// All epochs up to this one; of the last, this is the first epoch whose keys were out.
fn installations(epoch: u64, compromised_since: u64) -> Installations {
    let mut all = Installations::new(TestCommittee::new(4).committee).unwrap();
    for next in 1..=epoch {
        let committee = TestCommittee::with(4, test_domain(), Epoch(next)).committee;
        let compromised_since = Epoch(if next == epoch { compromised_since } else { next });
        all.install(InstalledCommittee { committee, compromised_since, checkpoint: Digest::ZERO }).unwrap();
    }
    all
}

fn verdict(certificate: CheckpointCertificate, installations: &Installations) -> Result<Digest, CheckpointError> {
    certificate.verify(&test_domain(), installations).map(|verified| {
        assert_eq!(verified.clone().into_certificate().checkpoint, *verified.checkpoint());
        verified.digest()
    })
}

#[test]
fn the_current_epoch_certifies_and_the_closing_one_whose_keys_were_not_out() {
    let quorum = [0, 1, 2];
    let good = certificate(1, &quorum);
    let digest = test_domain().checkpoint_digest(&good.checkpoint);
    assert_eq!(verdict(good.clone(), &installations(1, 0)), Ok(digest), "current, whatever came before");
    assert_eq!(verdict(good.clone(), &installations(2, 2)), Ok(digest), "closing");
    for since in [0, 1] {
        let compromised = Err(CheckpointError::EpochCompromised(Epoch(1)));
        assert_eq!(verdict(good.clone(), &installations(2, since)), compromised);
    }
    assert_eq!(verdict(good.clone(), &installations(3, 3)), Err(CheckpointError::EpochEnded(Epoch(1))));
    assert_eq!(verdict(good, &installations(0, 0)), Err(CheckpointError::UnknownEpoch(Epoch(1))));
}

#[test]
fn a_certificate_has_the_votes_of_exactly_a_quorum_each_counted_once() {
    let current = installations(1, 1);
    let count = |found| Err(CheckpointError::VoteCount { expected: 3, found });
    assert_eq!(verdict(certificate(1, &[0, 1]), &current), count(2));
    assert_eq!(verdict(certificate(1, &[0, 1, 2, 3]), &current), count(4));
    let committee = TestCommittee::with(4, test_domain(), Epoch(1));
    let name = |at: usize| committee.keys[at].public().name;
    let unsorted = |at| Err(CheckpointError::VotesUnsorted(name(at)));
    assert_eq!(verdict(certificate(1, &[0, 1, 1]), &current), unsorted(1));
    assert_eq!(verdict(certificate(1, &[0, 2, 1]), &current), unsorted(1));
    let mut stranger = certificate(1, &[0, 1, 2]);
    stranger.votes[2].authority.0 = [0xFF; 32];
    let not_a_member = CheckpointError::NotAMember(stranger.votes[2].authority);
    assert_eq!(verdict(stranger, &current), Err(not_a_member));
    let mut other = certificate(1, &[0, 1, 2]);
    other.checkpoint.state = Digest::repeat_byte(1);
    assert!(matches!(verdict(other, &current), Err(CheckpointError::Signature(_))));
    // Votes of another epoch's members, who are the same, are on another checkpoint.
    let mut moved = certificate(0, &[0, 1, 2]);
    moved.checkpoint.epoch = Epoch(1);
    assert!(matches!(verdict(moved, &current), Err(CheckpointError::Signature(_))));
}

#[test]
fn a_certificate_is_made_of_the_valid_votes_of_its_epoch() {
    let (committee, current) = (TestCommittee::with(4, test_domain(), Epoch(1)), installations(1, 1));
    let CheckpointCertificate { checkpoint, votes } = certificate(1, &[3, 1, 1, 0, 2]);
    let make = |committee: &TestCommittee, votes: Vec<CheckpointVote>| {
        CheckpointCertificate::from_votes(checkpoint, &test_domain(), &committee.committee, votes)
    };
    assert!(verdict(make(&committee, votes.clone()).unwrap(), &current).is_ok());
    assert_eq!(make(&committee, votes[..4].iter().take(3).cloned().collect()), None, "two members");
    let mut bad = votes.clone();
    bad[0].signature = bad[3].signature;
    assert!(verdict(make(&committee, bad.clone()).unwrap(), &current).is_ok());
    bad[4].signature = bad[3].signature;
    assert_eq!(make(&committee, bad), None);
    assert_eq!(make(&TestCommittee::new(4), votes), None, "another epoch");
}

/// The bytes of a state, as the items that follow its first eight bytes.
fn items(bytes: &[u8]) -> (Vec<u8>, Vec<Vec<u8>>) {
    let (magic, mut rest) = bytes.split_at(8);
    let mut items = Vec::new();
    while let Some((length, tail)) = rest.split_first_chunk::<4>() {
        let (_, next) = tail.split_at(u32::from_le_bytes(*length) as usize);
        items.push(rest[..rest.len() - next.len()].to_vec());
        rest = next;
    }
    (magic.to_vec(), items)
}

fn item(leaf: &Leaf) -> Vec<u8> {
    let bytes = borsh::to_vec(leaf).unwrap();
    [&u32::try_from(bytes.len()).unwrap().to_le_bytes()[..], &bytes].concat()
}

#[test]
fn a_state_has_one_encoding() {
    let state = then(funded(), [requested(2, 1, 0), deposit(3, 1, 7), redeems(0, 1, 0), pays(0, 1, 3, 1)]).unwrap();
    let mut bytes = Vec::new();
    state.write(&mut bytes).unwrap();
    assert_eq!(CheckpointState::read(&mut bytes.as_slice()).unwrap(), state);
    let (magic, items) = items(&bytes);
    let is_read = |items: &[Vec<u8>]| {
        let bytes = [&magic[..], &items.concat()].concat();
        CheckpointState::read(&mut bytes.as_slice()).is_ok()
    };
    assert!(is_read(&items));
    for at in 0..items.len() {
        let mut repeated = items.clone();
        repeated.insert(at, items[at].clone());
        assert!(!is_read(&repeated), "item {at} twice");
        if at > 0 {
            let mut swapped = items.clone();
            swapped.swap(at - 1, at);
            assert!(!is_read(&swapped), "items {at} and before swapped");
        }
    }
    for (at, leaf) in [
        (1, Leaf::Next(AccountId::ZERO, SequenceNumber(0))),
        (3, Leaf::Balance(AccountId::ZERO, Asset::ETHER, Balance::ZERO)),
        (5, Leaf::Number(AccountId::ZERO, SequenceNumber(0), NumberState::default())),
        (items.len(), Leaf::Void(AccountId::ZERO, SequenceNumber(0))),
    ] {
        let mut more = items.clone();
        more.insert(at, item(&leaf));
        assert!(!is_read(&more), "{leaf:?}");
    }
    let without_committee: Vec<_> = items.iter().filter(|item| item[4] != 0x11).cloned().collect();
    assert!(!is_read(&without_committee));
}

#[test]
fn bytes_that_are_no_stream_of_this_kind_are_refused() {
    let segment = Segment { entries: vec![deposit(1, 0, 5), pays(0, 1, 5, 0), void(1, 0)] };
    let (mut of_segment, mut of_state) = (Vec::new(), Vec::new());
    segment.write(&mut of_segment).unwrap();
    funded().write(&mut of_state).unwrap();
    assert!(
        Segment::read(&mut of_state.as_slice()).is_err() && CheckpointState::read(&mut of_segment.as_slice()).is_err()
    );
    let is_segment = |bytes: &[u8]| Segment::read(&mut &bytes[..]);
    let (magic, items) = items(&of_segment);
    let ends: Vec<usize> =
        (0..=items.len()).map(|count| magic.len() + items[..count].iter().map(Vec::len).sum::<usize>()).collect();
    for length in 0..of_segment.len() {
        // It ends between two entries, or it is refused.
        assert_eq!(is_segment(&of_segment[..length]).is_ok(), ends.contains(&length), "{length} bytes");
        let mut changed = of_segment.clone();
        changed[length] ^= 0x40;
        if let Ok(read) = is_segment(&changed) {
            assert_ne!(read, segment, "byte {length} counts for nothing");
            let mut written = Vec::new();
            read.write(&mut written).unwrap();
            assert_eq!(written, changed);
        }
    }
    let with = |item: &[u8]| [&of_segment[..], item].concat();
    assert!(is_segment(&with(&[2, 0, 0, 0, 0x24, 0])).is_err(), "an unknown kind");
    assert!(is_segment(&with(&0x8001_u32.to_le_bytes())).is_err(), "too long");
    let longer = [&41_u32.to_le_bytes()[..], &items[2][4..], &[0]].concat();
    assert!(is_segment(&with(&longer)).is_err(), "more than an entry");
}

/// What one authority holds that has followed these events after [`funded`].
fn own(events: impl IntoIterator<Item = SegmentEntry>) -> Result<OwnState, SegmentError> {
    let events = events.into_iter().map(|entry| match entry {
        SegmentEntry::Event(event) => event,
        other => panic!("no event: {other:?}"),
    });
    OwnState::new(funded(), events, &test_domain())
}

#[test]
fn an_authority_s_own_state_owes_and_has_executed_what_is_frozen_now() {
    let mut state = own([requested(2, 0, 0)]).unwrap();
    let paid: Transfer = payment(id(0), id(1), 150, 0).into();
    state.take(id(0), SequenceNumber(0), Some(&paid)).unwrap();
    let gap = SegmentError::NumberGap { account: id(0), expected: SequenceNumber(1), found: SequenceNumber(2) };
    assert_eq!(state.take(id(0), SequenceNumber(2), Some(&paid)), Err(gap));
    let (state, displaced) = state.finish();
    let held = |account: u64| state.balances()[&(id(account), Asset::ETHER)];
    assert_eq!((held(0), held(1)), (Balance::ZERO.debit(Amount(50)), Balance::from(Amount(150))));
    assert!(state.numbers().is_empty() && displaced.is_empty(), "what is executed is frozen no more");
}

#[test]
fn an_authority_s_own_state_has_nothing_executed_that_is_void() {
    let paid: Transfer = payment(id(0), id(1), 10, 0).into();
    let slot = (id(0), SequenceNumber(0));
    let mut state = own([requested(2, 0, 0), voided(3, 0, 0)]).unwrap();
    let is_voided = SegmentError::Voided { account: slot.0, sequence: slot.1 };
    assert_eq!(state.clone().take(slot.0, slot.1, Some(&paid)), Err(is_voided));
    state.take(slot.0, slot.1, None).unwrap();
    assert!(state.finish().0.numbers()[&slot].is_voided());
    let not_voided = SegmentError::NotVoided { account: slot.0, sequence: slot.1 };
    assert_eq!(own([]).unwrap().take(slot.0, slot.1, None), Err(not_voided));
    let gap = SegmentError::EventGap { expected: TransactionIndex(2), found: TransactionIndex(3) };
    assert_eq!(own([requested(3, 0, 0)]).unwrap_err(), gap);
}

#[test]
fn what_an_authority_executed_under_a_number_that_a_thief_spent_stays_and_is_remembered() {
    let wanted: Transfer = redemption(id(0), PrimaryAddress::repeat_byte(7), 40, 0).into();
    let mut state = own([queued(2, 0, 0, Digest::repeat_byte(5))]).unwrap();
    state.take(id(0), SequenceNumber(0), Some(&wanted)).unwrap();
    let (state, displaced) = state.finish();
    assert_eq!(state.balances()[&(id(0), Asset::ETHER)], Balance::from(Amount(100)));
    assert_eq!(displaced[&(id(0), SequenceNumber(0))], Digest::repeat_byte(5));
    assert!(state.unpaid().is_empty());
}
