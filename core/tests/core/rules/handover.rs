//! Closing an epoch, and joining the next one: each reason for which a Closing does not count or a shard does not join,
//! by name, and what an inherited lock is worth.

use std::num::NonZero;

use fastpay_core::checkpoint::{Installations, InstalledCommittee};
use fastpay_core::handover::{
    CLOSING_ENTRIES_MAX, Closing, ClosingEntry, ClosingError, Inheritance, InheritanceError, JoinError, Newest,
    ReportedEntry, SignedClosing, VerifiedClosing,
};
use fastpay_core::private::NoProofs;
use fastpay_core::{
    Amount, Asset, Balance, Deposit, Digest, Epoch, Installation, PendingOrder, PrimaryView, Record, Rejection,
    SequenceNumber, ShardId, ShardLayout, ShardLedger, SynchronizationOrder, TransactionIndex, TransferOrder,
    UnlockEvent, UnlockEventKind, VoteFloor,
};
use fastpay_testkit::{Outcome, TestAccount, TestCommittee, TestShard, authority_keys, payment, test_domain};
use rand::SeedableRng;
use rand::rngs::StdRng;

/// The digest of the checkpoint from which everybody began.
const BEGUN: Digest = Digest::repeat_byte(0xC4);
/// The index of the installation of epoch 1.
const INSTALLED: TransactionIndex = TransactionIndex(2);

/// A committee that ends, an account with a balance of 100, and a shard that has followed the installation of epoch 1.
struct Scene {
    committee: TestCommittee,
    owner: TestAccount,
    shard: TestShard,
}

impl Scene {
    fn new() -> Self {
        let mut scene = Self::before_the_installation();
        scene.install();
        scene
    }

    fn before_the_installation() -> Self {
        let (committee, owner) = (TestCommittee::new(4), TestAccount::ed25519(0));
        let layout = ShardLayout::new(NonZero::new(1).unwrap());
        let mut shard = TestShard::new(ShardId(0), layout, true);
        let deposit =
            Deposit { index: TransactionIndex(1), recipient: owner.id(), asset: Asset::ETHER, amount: Amount(100) };
        let order =
            SynchronizationOrder { after: TransactionIndex(0), up_to: TransactionIndex(1), deposit: Some(deposit) };
        shard.synchronize(&order).unwrap();
        Self { committee, owner, shard }
    }

    fn install(&mut self) {
        let installation = Installation {
            after: TransactionIndex(1),
            index: INSTALLED,
            epoch: Epoch(1),
            compromised_since: Epoch(1),
            voidable_at: 0,
        };
        self.shard.follow_installation(&installation).unwrap();
    }

    fn request(&mut self, sequence: u64) {
        let after = self.shard.ledger().synchronized;
        self.shard
            .follow_unlock(&UnlockEvent {
                after,
                index: TransactionIndex(after.0 + 1),
                account: self.owner.id(),
                sequence: SequenceNumber(sequence),
                kind: UnlockEventKind::Requested(0),
            })
            .unwrap();
    }

    fn order(&self, amount: u128, sequence: u64) -> TransferOrder {
        let to = TestAccount::ed25519(1).id();
        self.owner.sign(&self.committee.domain, payment(self.owner.id(), to, amount, sequence))
    }

    fn execute(&mut self, order: &TransferOrder) {
        self.shard.confirm(&self.committee.certified(order)).unwrap();
    }

    fn lock(&mut self, order: &TransferOrder) -> Result<Outcome, Rejection> {
        self.shard.lock(&self.committee.verified(order))
    }

    /// A valid Closing of the member at an index.
    fn closing(&self, at: usize, entries: Vec<ReportedEntry>) -> VerifiedClosing {
        let closing = closing_of(&entries);
        let signed = closing.sign(&self.committee.keys[at], &self.committee.domain);
        verify(&self.committee, signed, entries).unwrap()
    }

    /// The first member's Closing with these entries, and the others' without any.
    fn reported(&self, entries: Vec<ReportedEntry>) -> Inheritance {
        let closings = vec![self.closing(0, entries), self.closing(1, vec![]), self.closing(2, vec![])];
        Inheritance::new(&self.committee.committee, closings, |digest| *digest == BEGUN).unwrap()
    }

    fn join(&mut self, inheritance: &Inheritance) -> Result<Outcome, JoinError> {
        self.shard.join(inheritance, PrimaryView::Recent)
    }

    fn pending(&self, error: Result<Outcome, Rejection>) -> Digest {
        match error {
            Err(Rejection::OrderPending { pending }) => self.committee.domain.transfer_digest(&pending.transfer),
            other => panic!("{other:?} is no lock on another order"),
        }
    }
}

fn digest(order: &TransferOrder) -> Digest {
    test_domain().transfer_digest(&order.transfer)
}

fn lock(order: &TransferOrder) -> ReportedEntry {
    ReportedEntry::lock(&PendingOrder { order: order.clone().into(), digest: digest(order) })
}

fn account(order: &TransferOrder) -> ReportedEntry {
    let next = SequenceNumber(order.transfer.sequence().0 + 1);
    ReportedEntry::account(order.transfer.sender(), next, Some((order.clone(), digest(order))))
}

fn closing_of(entries: &[ReportedEntry]) -> Closing {
    Closing::new(Epoch(0), INSTALLED, BEGUN, entries.iter().map(ReportedEntry::entry))
}

fn installations(committee: &TestCommittee, compromised_since: Epoch) -> Installations {
    let mut installations = Installations::new(committee.committee.clone()).unwrap();
    let committee = committee.rotated().committee;
    installations.install(InstalledCommittee { committee, compromised_since, checkpoint: Digest::ZERO }).unwrap();
    installations
}

fn verify(
    committee: &TestCommittee,
    signed: SignedClosing,
    entries: Vec<ReportedEntry>,
) -> Result<VerifiedClosing, ClosingError> {
    let installations = installations(committee, Epoch(1));
    let rng = &mut StdRng::seed_from_u64(0);
    signed.verify(entries, (&committee.domain, Epoch(0)), (&installations, INSTALLED), &NoProofs, rng)
}

#[test]
fn an_epoch_is_closed_once_the_next_one_is_installed_and_gets_no_vote_after_that() {
    let mut scene = Scene::before_the_installation();
    let (order, owner) = (scene.order(1, 0), (scene.owner.id(), SequenceNumber(0)));
    let verified = scene.committee.verified(&order);
    let synchronized = TransactionIndex(1);
    assert_eq!(scene.shard.close(Epoch(0)), Err(Rejection::SynchronizationGap { synchronized }));
    assert_eq!(scene.shard.lock_under(Epoch(0), &verified), Ok(Outcome::Committed));
    scene.install();
    scene.request(0);
    assert_eq!(scene.shard.close(Epoch(0)), Ok(Outcome::Committed));
    assert_eq!(scene.shard.newest_record(), Some(Record::Closed { epoch: Epoch(0) }));
    assert_eq!(scene.shard.close(Epoch(0)), Ok(Outcome::Already));
    for _ in 0..2 {
        let closed = Err(Rejection::EpochClosed { epoch: Epoch(0) });
        assert_eq!(scene.shard.lock_under(Epoch(0), &verified), closed, "not even the vote that was given before");
        assert_eq!(scene.shard.void_vote(owner, true, Epoch(0), VoteFloor::Zero, 0), closed);
        assert_eq!(scene.shard.close(Epoch(0)), Ok(Outcome::Already));
        scene.shard.evict();
        scene.shard.restart();
    }
    assert_eq!(scene.shard.void_vote(owner, true, Epoch(1), VoteFloor::Zero, 0), Ok(Outcome::Committed));
}

#[test]
fn a_closing_that_a_member_did_not_sign_or_whose_orders_do_not_fit_is_refused() {
    let Scene { committee, owner, .. } = &Scene::new();
    let scene = Scene::new();
    let (order, other) = (scene.order(1, 0), scene.order(2, 0));
    let entries = vec![account(&order), lock(&scene.order(1, 1))];
    let good = closing_of(&entries);
    let signed = |closing: Closing| closing.sign(&committee.keys[0], &committee.domain);
    let check =
        |signed: SignedClosing, entries: &[ReportedEntry]| verify(committee, signed, entries.to_vec()).map(drop);
    let of = |entries: &[ReportedEntry]| check(signed(closing_of(entries)), entries);
    assert_eq!(check(signed(good), &entries), Ok(()));

    let later = Closing { epoch: Epoch(1), ..good };
    let wrong = ClosingError::WrongEpoch { expected: Epoch(0), found: Epoch(1) };
    assert_eq!(check(signed(later), &entries), Err(wrong));
    let rng = &mut StdRng::seed_from_u64(0);
    let only_first = Installations::new(committee.committee.clone()).unwrap();
    let unknown =
        signed(later).verify(entries.clone(), (&committee.domain, Epoch(1)), (&only_first, INSTALLED), &NoProofs, rng);
    assert_eq!(unknown.map(drop), Err(ClosingError::UnknownEpoch(Epoch(1))));
    let compromised = installations(committee, Epoch(0));
    let out =
        signed(good).verify(entries.clone(), (&committee.domain, Epoch(0)), (&compromised, INSTALLED), &NoProofs, rng);
    assert_eq!(out.map(drop), Err(ClosingError::EpochCompromised(Epoch(0))));

    let stranger = authority_keys(99);
    let by_stranger = good.sign(&stranger, &committee.domain);
    assert_eq!(check(by_stranger, &entries), Err(ClosingError::NotAMember(stranger.public().name)));
    let as_another = SignedClosing { authority: committee.keys[1].public().name, ..signed(good) };
    assert!(matches!(check(as_another, &entries), Err(ClosingError::Signature(_))));
    for altered in [
        Closing { up_to: TransactionIndex(1), ..good },
        Closing { checkpoint: Digest::ZERO, ..good },
        Closing { root: Digest::ZERO, ..good },
        Closing { entries: 3, ..good },
    ] {
        let altered = SignedClosing { closing: altered, ..signed(good) };
        assert!(matches!(check(altered, &entries), Err(ClosingError::Signature(_))));
    }
    let ahead = TransactionIndex(3);
    let beyond = ClosingError::BeyondTheChain { up_to: ahead, newest: INSTALLED };
    assert_eq!(check(signed(Closing { up_to: ahead, ..good }), &entries), Err(beyond));

    let others = Err(ClosingError::OtherEntries);
    assert_eq!(check(signed(good), &entries[..1]), others);
    assert_eq!(check(signed(Closing { entries: 1, ..good }), &entries), others);
    let unsorted = Err(ClosingError::EntriesUnsorted(owner.id()));
    assert_eq!(of(&[entries[1].clone(), entries[0].clone()]), unsorted);
    assert_eq!(of(&[entries[0].clone(), entries[0].clone()]), unsorted);
    let nothing = ReportedEntry::account(owner.id(), SequenceNumber(0), None);
    assert_eq!(of(&[nothing]), Err(ClosingError::SaysNothing(owner.id())));

    let stripped = |order: &TransferOrder, named: Digest| {
        ReportedEntry::lock(&PendingOrder { order: order.clone().into(), digest: named })
    };
    assert_eq!(of(&[stripped(&order, digest(&other))]), Err(ClosingError::OtherOrder(owner.id())));
    let of_another = ReportedEntry::account(owner.id(), SequenceNumber(2), Some((order.clone(), digest(&order))));
    assert_eq!(of(&[of_another]), Err(ClosingError::OtherOrder(owner.id())), "the order of another number");
    let unsigned = TransferOrder { authorization: other.authorization, ..order.clone() };
    let bad = of(&[stripped(&unsigned, digest(&order))]);
    assert!(matches!(bad, Err(ClosingError::Order { sequence: SequenceNumber(0), .. })), "{bad:?}");
}

#[test]
fn a_closing_has_one_stored_form_and_other_bytes_are_none() {
    let scene = Scene::new();
    let void = ReportedEntry::account(TestAccount::ed25519(7).id(), SequenceNumber(1), None);
    let (order, seen) = (scene.order(1, 0), scene.order(5, 3));
    let mut entries =
        vec![account(&order), void, lock(&scene.order(1, 1)), ReportedEntry::seen(seen.clone(), digest(&seen))];
    entries.sort_by_key(|entry| *entry.entry());
    let closing = closing_of(&entries);
    let signed = closing.sign(&scene.committee.keys[0], &scene.committee.domain);
    let mut bytes = Vec::new();
    signed.write(entries.iter().map(Ok), &mut bytes).unwrap();
    let read = |bytes: &[u8]| SignedClosing::read(&mut &bytes[..], CLOSING_ENTRIES_MAX);
    assert_eq!(read(&bytes).unwrap(), (signed.clone(), entries.clone()));
    assert!(verify(&scene.committee, signed, entries.clone()).is_ok());

    assert!(SignedClosing::read(&mut &bytes[..], 3).is_err(), "too many entries");
    let mut empty = bytes.clone();
    empty.truncate(8);
    assert!(read(&empty).is_err());
    assert!(read(&bytes[..bytes.len() - 1]).is_err());
    let mut other_version = bytes.clone();
    other_version[7] = 2;
    assert!(read(&other_version).is_err());
    let kind = borsh::to_vec(entries[0].entry()).unwrap();
    let at = bytes.windows(kind.len()).position(|window| window == kind).unwrap();
    let mut unknown = bytes.clone();
    unknown[at] = 0x34;
    assert!(read(&unknown).is_err(), "an unknown kind");
    // Without the order that the last entry names.
    let order = borsh::to_vec(&seen).unwrap().len() + 4;
    assert!(read(&bytes[..bytes.len() - order]).is_err());
}

#[test]
fn the_closings_of_a_quorum_with_the_fewest_entries_are_taken() {
    let scene = Scene::new();
    let (order, other) = (scene.order(1, 0), scene.order(2, 0));
    let (one, two) = (vec![lock(&order)], {
        let mut two = vec![lock(&order), lock(&other)];
        two.sort_by_key(|entry| *entry.entry());
        two
    });
    let take = |closings: Vec<VerifiedClosing>| {
        Inheritance::new(&scene.committee.committee, closings, |digest| *digest == BEGUN)
    };
    let names: Vec<_> = scene.committee.keys.iter().map(|keys| keys.public().name).collect();
    let all = |first: &[ReportedEntry]| {
        vec![scene.closing(0, first.to_vec()), scene.closing(1, one.clone()), scene.closing(2, one.clone())]
    };
    let taken = take([all(&two), vec![scene.closing(3, vec![])]].concat()).unwrap();
    assert_eq!(taken.authors(), [names[3], names[1], names[2]]);
    assert_eq!((taken.joins(), taken.up_to()), (Epoch(1), INSTALLED));
    let many = vec![scene.closing(0, two.clone()), scene.closing(0, one.clone()), scene.closing(1, one.clone())];
    let too_few = |found, unknown| InheritanceError::TooFew { needed: 3, found, unknown };
    assert_eq!(take(many), Err(too_few(2, None)), "two of one member");

    let elsewhere = Closing { checkpoint: Digest::ZERO, ..closing_of(&[]) };
    let elsewhere = elsewhere.sign(&scene.committee.keys[3], &scene.committee.domain);
    let elsewhere = verify(&scene.committee, elsewhere, vec![]).unwrap();
    let three = [all(&two), vec![elsewhere.clone()]].concat();
    assert_eq!(take(three).unwrap().authors(), [names[1], names[2], names[0]]);
    let two_only = vec![scene.closing(1, vec![]), scene.closing(2, vec![]), elsewhere];
    assert_eq!(take(two_only), Err(too_few(2, Some(Digest::ZERO))), "a checkpoint that is not included here");

    let next = TestCommittee::with(4, test_domain(), Epoch(1)).committee;
    let wrong = InheritanceError::WrongEpoch { expected: Epoch(1), found: Epoch(0) };
    assert_eq!(Inheritance::new(&next, all(&one), |_| true), Err(wrong));
}

#[test]
fn a_shard_joins_only_when_it_has_followed_the_chain_and_executed_what_is_claimed() {
    let mut scene = Scene::before_the_installation();
    let (first, second) = (scene.order(1, 0), scene.order(2, 1));
    let inheritance = scene.reported(vec![account(&second)]);
    assert_eq!(inheritance.reported().collect::<Vec<_>>(), [(scene.owner.id(), SequenceNumber(2))]);
    assert_eq!(scene.shard.join(&inheritance, PrimaryView::TooOld), Err(JoinError::PrimaryTooOld));
    let synchronized = TransactionIndex(1);
    assert_eq!(scene.join(&inheritance), Err(JoinError::Behind { up_to: INSTALLED, synchronized }));
    let up_to = INSTALLED;
    let over = SynchronizationOrder { after: synchronized, up_to, deposit: None };
    let mut blind = scene.shard.clone();
    blind.synchronize(&over).unwrap();
    assert_eq!(blind.join(&inheritance, PrimaryView::Recent), Err(JoinError::NotInstalled(Epoch(1))));

    scene.install();
    let authority = scene.committee.keys[0].public().name;
    let unproven = |missing| {
        let (account, claimed) = (scene.owner.id(), SequenceNumber(2));
        Err(JoinError::Unproven { authority, account, claimed, missing: SequenceNumber(missing) })
    };
    let (missing_both, missing_one) = (unproven(0), unproven(1));
    assert_eq!(scene.join(&inheritance), missing_both);
    scene.execute(&first);
    assert_eq!(scene.join(&inheritance), missing_one);
    scene.execute(&second);
    assert_eq!(scene.join(&inheritance), Ok(Outcome::Committed));
    assert_eq!(scene.shard.newest_record(), Some(Record::Joined { epoch: Epoch(1) }));
    assert_eq!(scene.join(&inheritance), Ok(Outcome::Already));
    scene.shard.restart();
    assert_eq!(scene.shard.ledger().tenure.joined(), Some(Epoch(1)));
}

#[test]
fn nobody_joins_an_epoch_whose_installation_says_that_keys_of_the_one_before_were_out() {
    let mut scene = Scene::before_the_installation();
    let out = Installation {
        after: TransactionIndex(1),
        index: INSTALLED,
        epoch: Epoch(1),
        compromised_since: Epoch(0),
        voidable_at: 0,
    };
    // Its thieves sign Closings, too.
    let inheritance = scene.reported(vec![]);
    scene.shard.follow_installation(&out).unwrap();
    assert_eq!(scene.join(&inheritance), Err(JoinError::Recovery(Epoch(1))));
    assert_eq!(scene.shard.ledger().tenure.joined(), None);
    let mut sound = Scene::new();
    assert_eq!(sound.join(&inheritance), Ok(Outcome::Committed));
}

#[test]
fn a_claimed_void_number_must_be_void_here() {
    let mut scene = Scene::new();
    let void = ReportedEntry::account(scene.owner.id(), SequenceNumber(1), None);
    let inheritance = scene.reported(vec![void]);
    assert!(matches!(scene.join(&inheritance), Err(JoinError::Unproven { .. })));
    scene.request(0);
    assert!(matches!(scene.join(&inheritance), Err(JoinError::Unproven { .. })), "frozen only");
    let after = scene.shard.ledger().synchronized;
    let (index, account) = (TransactionIndex(after.0 + 1), scene.owner.id());
    let voided = UnlockEventKind::Voided;
    let event = UnlockEvent { after, index, account, sequence: SequenceNumber(0), kind: voided };
    scene.shard.follow_unlock(&event).unwrap();
    assert_eq!(scene.join(&inheritance), Ok(Outcome::Committed));
    assert_eq!(scene.shard.account(&account).next_sequence(), SequenceNumber(1));
}

#[test]
fn of_a_frozen_number_the_certificate_must_be_kept_and_bears_out_the_claim() {
    let mut scene = Scene::new();
    let (order, other) = (scene.order(1, 0), scene.order(2, 0));
    let later = scene.order(3, 1);
    scene.request(0);
    let inheritance = scene.reported(vec![account(&order), lock(&later)]);
    assert!(matches!(scene.join(&inheritance), Err(JoinError::Unproven { .. })));
    let frozen = scene.shard.confirm(&scene.committee.certified(&order));
    assert_eq!(frozen, Err(Rejection::Frozen { sequence: SequenceNumber(0) }));
    assert_eq!(scene.join(&inheritance), Ok(Outcome::Committed));
    assert_eq!(scene.shard.account(&scene.owner.id()).next_sequence(), SequenceNumber(0), "executed");
    assert_eq!(scene.shard.locks(&scene.owner.id()).len(), 1, "the lock on the number after it is kept");

    let mut scene = Scene::new();
    scene.request(0);
    let _ = scene.shard.confirm(&scene.committee.certified(&other));
    let inheritance = scene.reported(vec![account(&order)]);
    assert!(matches!(scene.join(&inheritance), Err(JoinError::Unproven { .. })), "the certificate of another order");
}

#[test]
fn what_was_kept_on_an_old_view_bears_out_no_claim_until_it_is_executed() {
    let mut scene = Scene::new();
    let order = scene.order(1, 0);
    let kept = scene.shard.confirm_late(&scene.committee.certified(&order));
    assert!(kept.is_err(), "{kept:?} on an old view");
    let inheritance = scene.reported(vec![account(&order)]);
    assert!(matches!(scene.join(&inheritance), Err(JoinError::Unproven { .. })));
    scene.execute(&order);
    assert_eq!(scene.join(&inheritance), Ok(Outcome::Committed));
    assert!(scene.lock(&scene.order(2, 0)).is_err(), "a second order");
}

#[test]
fn an_inherited_lock_is_no_vote_and_keeps_other_orders_from_one() {
    let mut scene = Scene::new();
    let (large, small) = (scene.order(101, 0), scene.order(1, 0));
    let inheritance = scene.reported(vec![lock(&large)]);
    assert_eq!(scene.join(&inheritance), Ok(Outcome::Committed));
    for _ in 0..2 {
        let refused = scene.lock(&small);
        assert_eq!(scene.pending(refused), digest(&large));
        let (balance, amount) = (Balance::from(Amount(100)), Amount(101));
        assert_eq!(scene.lock(&large), Err(Rejection::InsufficientBalance { balance, amount }), "the first vote");
        assert!(scene.shard.account(&scene.owner.id()).pending.is_none());
        scene.shard.evict();
        scene.shard.restart();
    }
    // The certificate of the other order is executed all the same, and the lock is forgotten with the number.
    scene.execute(&small);
    assert_eq!(scene.shard.locks(&scene.owner.id()), []);
    assert_eq!(scene.lock(&scene.order(1, 1)), Ok(Outcome::Committed));
}

#[test]
fn an_inherited_lock_gets_its_vote_once_and_again() {
    let mut scene = Scene::new();
    let order = scene.order(1, 0);
    let inheritance = scene.reported(vec![lock(&order)]);
    scene.join(&inheritance).unwrap();
    assert_eq!(scene.lock(&order), Ok(Outcome::Committed));
    assert_eq!(scene.lock(&order), Ok(Outcome::Already));
    assert_eq!(scene.shard.locks(&scene.owner.id()).len(), 1, "own and inherited are one lock");
}

#[test]
fn two_orders_of_a_number_get_no_vote_nor_does_a_third() {
    for reported in
        [ReportedEntry::lock, |lock: &PendingOrder| ReportedEntry::seen(TransferOrder::clone(&lock.order), lock.digest)]
    {
        let mut scene = Scene::new();
        let orders = [scene.order(1, 0), scene.order(2, 0), scene.order(3, 0)];
        let report =
            |order: &TransferOrder| reported(&PendingOrder { order: order.clone().into(), digest: digest(order) });
        let closings = (0..3).map(|at| scene.closing(at, vec![report(&orders[at])])).collect();
        let inheritance = Inheritance::new(&scene.committee.committee, closings, |_| true).unwrap();
        assert_eq!(scene.join(&inheritance), Ok(Outcome::Committed));
        let locks = scene.shard.locks(&scene.owner.id());
        assert_eq!(locks.len(), 2, "a third lock would change nothing");
        for order in &orders {
            let refused = scene.lock(order);
            let other = scene.pending(refused);
            assert!(other != digest(order) && locks.iter().any(|lock| lock.digest == other));
        }
        // Both are reported again, so that nobody chooses later.
        let mut entries: Vec<_> = locks.iter().map(ReportedEntry::lock).collect();
        entries.sort_by_key(|entry| *entry.entry());
        scene.closing(3, entries);
    }
}

#[test]
fn joining_adds_to_the_own_lock_and_removes_none() {
    let mut scene = Scene::before_the_installation();
    let (own, other) = (scene.order(1, 0), scene.order(2, 0));
    assert_eq!(scene.lock(&own), Ok(Outcome::Committed));
    scene.install();
    let inheritance = scene.reported(vec![lock(&other)]);
    assert_eq!(scene.join(&inheritance), Ok(Outcome::Committed));
    let (of_own, of_other) = (scene.lock(&own), scene.lock(&other));
    assert_eq!((scene.pending(of_own), scene.pending(of_other)), (digest(&other), digest(&own)));
    assert_eq!(scene.shard.locks(&scene.owner.id()).len(), 2);
}

#[test]
fn a_lock_of_a_number_that_becomes_void_is_forgotten() {
    let mut scene = Scene::new();
    let inheritance = scene.reported(vec![lock(&scene.order(1, 0))]);
    scene.join(&inheritance).unwrap();
    scene.request(0);
    let after = scene.shard.ledger().synchronized;
    let (index, account) = (TransactionIndex(after.0 + 1), scene.owner.id());
    let event = UnlockEvent { after, index, account, sequence: SequenceNumber(0), kind: UnlockEventKind::Voided };
    scene.shard.follow_unlock(&event).unwrap();
    assert_eq!(scene.lock(&scene.order(1, 1)), Ok(Outcome::Committed));
    assert_eq!(scene.shard.ledger().tenure.iter().count(), 0);
}

#[test]
fn a_ledger_without_tenure_has_the_bytes_of_before_and_one_with_it_is_read_back() {
    let mut scene = Scene::before_the_installation();
    let round = |ledger: &ShardLedger| {
        let bytes = borsh::to_vec(ledger).unwrap();
        assert_eq!(borsh::from_slice::<ShardLedger>(&bytes).unwrap(), *ledger);
        bytes
    };
    let before = round(scene.shard.ledger());
    let after_totals = |ledger: &ShardLedger| {
        let parts = (ledger.synchronized, &ledger.redemptions, &ledger.outboxes, &ledger.inboxes, &ledger.totals);
        borsh::to_vec(&parts).unwrap()
    };
    assert_eq!(before, after_totals(scene.shard.ledger()));
    scene.install();
    let with_epochs = round(scene.shard.ledger());
    let mut expected = after_totals(scene.shard.ledger());
    borsh::to_writer(&mut expected, &scene.shard.ledger().unlocks).unwrap();
    assert_eq!(with_epochs, expected);
    scene.shard.close(Epoch(0)).unwrap();
    let inheritance = scene.reported(vec![lock(&scene.order(1, 0)), lock(&scene.order(1, 4))]);
    scene.join(&inheritance).unwrap();
    assert_eq!(scene.shard.ledger().tenure.iter().count(), 2);
    round(scene.shard.ledger());
    let only_tenure = ShardLedger { unlocks: Default::default(), ..scene.shard.ledger().clone() };
    round(&only_tenure);
}

#[test]
fn an_entry_names_the_order_before_the_next_number_a_lock_or_nothing() {
    let scene = Scene::new();
    let order = scene.order(1, 4);
    let named = Some((SequenceNumber(4), digest(&order)));
    for entry in [account(&order), lock(&order), ReportedEntry::seen(order.clone(), digest(&order))] {
        assert_eq!(entry.entry().named(), named);
        assert_eq!(entry.entry().account(), scene.owner.id());
    }
    let account = scene.owner.id();
    let void = ClosingEntry::Account { account, next: SequenceNumber(5), newest: Newest::Void };
    assert_eq!(void.named(), None);
}
