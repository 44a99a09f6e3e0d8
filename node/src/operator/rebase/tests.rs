//! Journals that are rebased without a node: each test writes the records that an authority would have.

use std::num::NonZeroU32;
use std::sync::Arc;

use fastpay_core::checkpoint::{InstalledCommittee, OwnState, PrimaryEvent, PrimaryEventKind, SegmentError};
use fastpay_core::{
    AccountId, Amount, Asset, Balance, Committees, Deposit, Digest, Effect, Epoch, Installation, JournalPosition, Link,
    PendingOrder, PrimaryAddress, Record, SequenceNumber, ShardLayout, SynchronizationOrder, TransactionIndex,
    UnlockEvent, UnlockEventKind,
};
use fastpay_testkit::{TestAccount, TestCommittee, payment, redemption};

use super::RebaseError;
use super::own::{Own, Target};
use super::plan::{Plan, plan};
use super::write::{Written, write};
use crate::authority::certification::{Archive, Base, Journals};
use crate::authority::shard::{AppliedCredits, ShardLimits, recover};
use crate::authority::storage::{
    DataFolder, FolderIdentity, Journal, JournalOptions, JournalWrite, RECORD_BYTES_MAX, Switch,
};

/// An authority with one shard, and the events of the contract.
struct Scene {
    place: tempfile::TempDir,
    folder: DataFolder,
    committee: TestCommittee,
    events: Vec<PrimaryEventKind>,
    is_anew: bool,
}

fn layout() -> ShardLayout {
    ShardLayout::new(NonZeroU32::MIN)
}

impl Scene {
    fn new() -> Self {
        let place = tempfile::tempdir().unwrap();
        let identity = FolderIdentity { names: vec!["aa".into()], shards: 1, chain_id: 1, contract: "0x01".into() };
        let folder = DataFolder::create(&place.path().join("data"), &identity).unwrap();
        Self { place, folder, committee: TestCommittee::new(4), events: Vec::new(), is_anew: false }
    }

    /// The authority has written these records.
    fn write(&self, records: impl IntoIterator<Item = Record>) {
        let folder = self.folder.shard(0).unwrap().journal;
        let mut journal = Journal::open(&folder, JournalOptions::default(), JournalPosition::default()).unwrap();
        for record in records {
            journal.append(&borsh::to_vec(&record).unwrap()).unwrap();
        }
        journal.commit().unwrap();
    }

    fn own(&self) -> Own {
        let (folders, limits) = (self.folder.shard(0).unwrap(), ShardLimits::default());
        let applied = AppliedCredits::new(layout());
        let shard = layout().shards().next().unwrap();
        Own::new(NonZeroU32::MIN, vec![recover(&folders, shard, layout(), true, &limits, &applied).unwrap()])
    }

    fn journals(&self) -> Journals {
        Journals::open(&self.place.path().join("data")).unwrap()
    }

    /// Rebased onto a checkpoint at the beginning, after all events.
    fn target(&self) -> Target {
        Target {
            number: 1,
            checkpoint: Digest::ZERO,
            generation: 1,
            up_to: TransactionIndex(self.events.len() as u64),
            voidable_at: 5_000,
            layout: layout(),
            with_primary: true,
            is_anew: self.is_anew,
            domain: self.committee.domain,
        }
    }

    /// Writes the next generation and lets it count.
    fn rebase(&mut self) -> Own {
        let (own, base) = (self.own(), self.base());
        let written = self.written(&own, &self.plan(&own, &base)).unwrap();
        let from_ends = own.ends().iter().map(|end| end.0).collect();
        let switch = Switch { ends: written.ends.iter().map(|end| end.0).collect(), from_generation: 0, from_ends };
        drop(own);
        self.folder.switch(1, switch, None).unwrap();
        self.own()
    }

    /// Writes the next generation.
    fn written(&self, own: &Own, plan: &Plan<'_>) -> Result<Written, RebaseError> {
        let next = self.folder.create_next(1).unwrap();
        write(own, &self.target(), plan, &self.journals(), next, &mut |_| ())
    }

    /// The beginning.
    fn base(&self) -> Base {
        let committees = Committees::new(self.committee.committee.clone()).unwrap();
        Archive::new(self.place.path()).base(0, &self.committee.domain, &committees).unwrap()
    }

    fn plan<'a>(&self, own: &Own, base: &'a Base) -> Plan<'a> {
        let indexed = (1..).map(TransactionIndex).zip(self.events.clone());
        let events = indexed.map(|(index, kind)| PrimaryEvent { index, kind }).collect();
        plan(own, &self.target(), base, events, Vec::new(), &self.journals(), &mut |_| ()).unwrap()
    }
}

fn unlock(index: u64, account: AccountId, kind: UnlockEventKind) -> Record {
    let (after, index) = (TransactionIndex(index - 1), TransactionIndex(index));
    Record::Unlock(UnlockEvent { after, index, account, sequence: SequenceNumber(0), kind })
}

/// The contract's first event.
fn first_deposit(recipient: AccountId, amount: Amount) -> Record {
    let (after, up_to) = (TransactionIndex(0), TransactionIndex(1));
    let deposit = Some(Deposit { index: up_to, recipient, asset: Asset::ETHER, amount });
    Record::Synchronization { order: SynchronizationOrder { after, up_to, deposit }, deposits: Some(FIRST) }
}

/// The link of a list's first entry.
const FIRST: Link = Link { number: 0, previous: None, skip: None };

#[test]
fn a_window_goes_on_unless_an_installation_that_was_not_read_may_have_opened_the_number_again() {
    let (account, sequence) = (TestAccount::numbered(0).id(), SequenceNumber(0));
    let mut scene = Scene::new();
    let digest = Digest::from([7; 32]);
    let requested = PrimaryEventKind::UnlockRequested { account, sequence, is_authorized: true };
    let upheld = PrimaryEventKind::Upheld { account, sequence, digest };
    let next = scene.committee.rotated().committee;
    let installed = InstalledCommittee { committee: next, compromised_since: Epoch(0), checkpoint: Digest::ZERO };
    let window = |scene: &Scene| {
        let (own, base) = (scene.own(), scene.base());
        let unlock = scene.plan(&own, &base).numbers(&own, &scene.target())[&(account, sequence)].clone();
        (unlock.voidable_at, unlock.upheld())
    };
    scene.write([unlock(1, account, UnlockEventKind::Requested(100))]);
    scene.events = vec![requested, upheld];
    assert_eq!(window(&scene), (Some(100), Some(digest)), "the decision was not read here");
    scene.events.push(PrimaryEventKind::Installed(installed));
    assert_eq!(window(&scene), (Some(5_000), None), "nor the installation");

    scene.write([
        unlock(2, account, UnlockEventKind::Upheld(digest)),
        Record::Installation(Installation {
            after: TransactionIndex(2),
            index: TransactionIndex(3),
            epoch: Epoch(1),
            compromised_since: Epoch(0),
            voidable_at: 900,
        }),
    ]);
    assert_eq!(window(&scene), (Some(900), None), "here it was read");
}

#[test]
fn what_was_inherited_closed_and_joined_survives_a_rebase() {
    let mut scene = Scene::new();
    let (owner, to) = (TestAccount::numbered(0), TestAccount::numbered(1).id());
    let order = |amount, sequence| owner.sign(&scene.committee.domain, payment(owner.id(), to, amount, sequence));
    let executed = scene.committee.certified(&order(1, 0));
    let locks = [order(1, 0), order(2, 1), order(3, 1)].map(|order| {
        let digest = scene.committee.domain.transfer_digest(&order.transfer);
        PendingOrder { order: order.into(), digest }
    });
    let inherited = locks.clone().map(|PendingOrder { order, digest }| Record::Inherited { order, digest });
    let deposited = PrimaryEventKind::Deposit { recipient: owner.id(), asset: Asset::ETHER, amount: Amount(9) };
    scene.events = vec![deposited];
    scene.write([first_deposit(owner.id(), Amount(9))]);
    scene.write(inherited);
    scene.write([
        Record::Confirmation {
            certificate: executed.into_certificate().into(),
            sent: FIRST,
            effect: Effect::Credited { received: FIRST },
        },
        Record::Closed { epoch: Epoch(3) },
        Record::Joined { epoch: Epoch(4) },
    ]);
    let rebased = scene.rebase();
    let tenure = rebased.shards().next().unwrap().shard().ledger().tenure.clone();
    assert_eq!((tenure.closed(), tenure.joined()), (Some(Epoch(3)), Some(Epoch(4))));
    assert_eq!(tenure.inherited(owner.id(), SequenceNumber(0)), [], "the number is taken");
    let mut kept = locks[1..].to_vec();
    kept.sort_by_key(|lock| lock.digest);
    assert_eq!(tenure.inherited(owner.id(), SequenceNumber(1)), kept);
}

#[test]
fn worthless_tokens_of_any_number_do_not_prevent_a_rebase() {
    // More than fit into one record, of the account and of the shard.
    let tokens = (RECORD_BYTES_MAX / 50) as u64;
    let mut scene = Scene::new();
    let recipient = TestAccount::numbered(0).id();
    let token = |index: u64| Asset(PrimaryAddress::left_padding_from(&index.to_be_bytes()));
    let deposit = |index| PrimaryEventKind::Deposit { recipient, asset: token(index), amount: Amount(index.into()) };
    scene.events = (1..=tokens).map(deposit).collect();
    let own = scene.rebase();
    let balances = own.account(&recipient).unwrap().balances;
    let totals = &own.shards().next().unwrap().shard().ledger().totals;
    assert_eq!((balances.iter().count() as u64, totals.len() as u64), (tokens, tokens));
    for index in 1..=tokens {
        let (held, totals) = (Balance::from(Amount(index.into())), totals[&token(index)]);
        assert_eq!((balances.get(token(index)), totals.accounts, totals.deposited), (Some(held), held, held));
    }
}

#[test]
fn the_numbers_of_a_shard_that_stopped_before_the_newest_event_are_compared_too() {
    let mut scene = Scene::new();
    let (account, amount) = (TestAccount::numbered(0).id(), Amount(10));
    scene.events = vec![PrimaryEventKind::Deposit { recipient: account, asset: Asset::ETHER, amount }];
    let (own, base) = (scene.own(), scene.base());
    let mut plan = scene.plan(&own, &base);
    scene.written(&own, &plan).unwrap();
    // Computed with an order that this authority has not executed.
    let take = |rows| {
        let mut computed = OwnState::new(rows, [], &scene.committee.domain).unwrap();
        computed.take(account, SequenceNumber(0), Some(&payment(account, account, 1, 0).into()))?;
        Ok::<_, SegmentError>(computed.finish())
    };
    plan.part = plan.part.change(take).unwrap().0;
    plan.cut = plan.part.rows().cut().clone();
    let differs = scene.written(&own, &plan).err().unwrap();
    assert!(matches!(differs, RebaseError::Differs { what: "next number", .. }), "{differs}");
}

#[test]
fn what_the_shards_hold_in_accounts_that_the_state_lacks_is_noticed() {
    let mut scene = Scene::new();
    let (recipient, other) = (TestAccount::numbered(0).id(), TestAccount::numbered(1).id());
    // The chain has another event in place of the deposit that was applied here.
    scene.events =
        vec![PrimaryEventKind::UnlockRequested { account: other, sequence: SequenceNumber(0), is_authorized: false }];
    scene.write([first_deposit(recipient, Amount(10))]);
    let (own, base) = (scene.own(), scene.base());
    let differs = scene.written(&own, &scene.plan(&own, &base)).err().unwrap();
    let sums = (Balance::from(Amount(10)), Balance::ZERO);
    assert!(matches!(differs, RebaseError::OtherSum { held, compared, .. } if (held, compared) == sums), "{differs}");
}

#[test]
fn a_redemption_in_place_of_which_the_contract_paid_another_stays_in_the_account_once() {
    let mut scene = Scene::new();
    let (owner, sequence, amount) = (TestAccount::numbered(0), SequenceNumber(0), Amount(10));
    let (account, digest) = (owner.id(), Digest::from([7; 32]));
    scene.events = vec![
        PrimaryEventKind::Deposit { recipient: account, asset: Asset::ETHER, amount },
        PrimaryEventKind::Queued { account, sequence, digest },
    ];
    let order = owner.sign(&scene.committee.domain, redemption(account, PrimaryAddress::default(), amount.0, 0));
    let certificate = Arc::new(scene.committee.certificate(&order));
    scene.write([
        first_deposit(account, amount),
        unlock(2, account, UnlockEventKind::Spent(digest)),
        Record::Confirmation { certificate, sent: FIRST, effect: Effect::Kept },
    ]);
    let held = |own: &Own| own.account(&account).unwrap().balance(Asset::ETHER);
    let own = scene.rebase();
    assert_eq!((held(&own), own.unlock((account, sequence)).unwrap().spent), (amount.into(), Some(digest)));
    drop(own);
    // The other one has left the queue: it is paid.
    scene.write([unlock(3, account, UnlockEventKind::CreditedBack(Asset::ETHER, amount))]);
    assert_eq!(held(&scene.own()), amount.into());
}

#[test]
fn who_begins_anew_forgets_what_it_executed_locked_and_kept() {
    let mut scene = Scene::new();
    let (owner, other, amount) = (TestAccount::numbered(0), TestAccount::numbered(1).id(), Amount(10));
    let account = owner.id();
    scene.events = vec![
        PrimaryEventKind::Deposit { recipient: account, asset: Asset::ETHER, amount },
        PrimaryEventKind::UnlockRequested { account: other, sequence: SequenceNumber(0), is_authorized: true },
    ];
    let order = |amount, sequence| owner.sign(&scene.committee.domain, payment(account, other, amount, sequence));
    let executed = Arc::new(scene.committee.certificate(&order(4, 0)));
    let locked = scene.committee.verified(&order(1, 1));
    let kept = TestAccount::numbered(1).sign(&scene.committee.domain, payment(other, account, 1, 0));
    scene.write([
        first_deposit(account, amount),
        unlock(2, other, UnlockEventKind::Requested(1_000)),
        Record::Confirmation { certificate: executed, sent: FIRST, effect: Effect::Credited { received: FIRST } },
        Record::Lock { order: Arc::new(locked.order().clone()), digest: locked.digest() },
        Record::Seen { certificate: Arc::new(scene.committee.certificate(&kept)) },
        Record::VoidVoted { account: other, sequence: SequenceNumber(0), epoch: Epoch(0) },
        Record::Inherited { order: Arc::new(locked.order().clone()), digest: locked.digest() },
        Record::Closed { epoch: Epoch(0) },
    ]);
    let before = scene.own();
    assert!(before.account(&account).unwrap().pending.is_some());
    assert!(before.unlock((other, SequenceNumber(0))).unwrap().void_voted.is_some());
    drop(before);
    scene.is_anew = true;
    let own = scene.rebase();
    let (mine, others) = (own.account(&account).unwrap(), own.account(&other).unwrap());
    assert_eq!((mine.balance(Asset::ETHER), mine.next_sequence().0), (amount.into(), 0));
    assert_eq!((others.balance(Asset::ETHER), mine.pending), (Balance::ZERO, None));
    let tenure = &own.shards().next().unwrap().shard().ledger().tenure;
    assert_eq!((tenure.iter().count(), tenure.closed()), (0, Some(Epoch(0))), "what is closed stays so");
    // The chain still says that the number is frozen. Its window begins anew.
    let frozen = fastpay_core::Unlock { voidable_at: Some(5_000), ..fastpay_core::Unlock::default() };
    assert_eq!(own.unlock((other, SequenceNumber(0))), Some(&frozen));
    // What it had listed is pruned, and never absent.
    assert!(others.received.count() > 1);
}
