//! Private transfers in Closings, and what a member that joins takes over of them.

use std::sync::Arc;

use fastpay_core::checkpoint::{Installations, InstalledCommittee};
use fastpay_core::handover::*;
use fastpay_core::private::*;
use fastpay_core::{
    AccountId, Amount, Asset, Balance, Deposit, Digest, Epoch, Installation, PrimaryView, Record, SequenceNumber,
    ShardId, ShardLayout, Standing, SynchronizationOrder, TransactionIndex, UnlockEvent, UnlockEventKind, VoteFloor,
};
use fastpay_testkit::{Outcome, TestCommittee, TestShard};
use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::private_orders::*;

/// The event that installs epoch 1.
const INSTALLED: TransactionIndex = TransactionIndex(4);

fn installations(committee: &TestCommittee, compromised_since: &[u64]) -> Installations {
    let mut all = Installations::new(committee.committee.clone()).unwrap();
    for (epoch, since) in (1..).zip(compromised_since) {
        let committee = TestCommittee::with(4, committee.domain, Epoch(epoch)).committee;
        let compromised_since = Epoch(*since);
        all.install(InstalledCommittee { committee, compromised_since, checkpoint: Digest::ZERO }).unwrap();
    }
    all
}

fn order(transfer: PrivateTransfer) -> VerifiedPrivateOrder {
    verified(&TestCommittee::new(4).domain, transfer)
}

fn lock(transfer: PrivateTransfer) -> ReportedEntry {
    let order = order(transfer);
    let evidence = PrivateEvidence::Proven(order.proven().clone());
    ReportedEntry::private_lock(&PrivateLock { evidence, digest: order.digest() })
}

fn certificate(transfer: PrivateTransfer) -> Arc<PrivateCertificate> {
    certified(&TestCommittee::new(4), &order(transfer)).certificate().clone()
}

fn seen(transfer: PrivateTransfer) -> ReportedEntry {
    ReportedEntry::private_seen(&PrivateSeen { certificate: certificate(transfer), digest: order(transfer).digest() })
}

fn spent(transfer: PrivateTransfer) -> ReportedEntry {
    ReportedEntry::spent(certificate(transfer), order(transfer).digest())
}

/// The Closing of a member of epoch 0, as those who join read it.
fn publish(
    member: usize,
    mut entries: Vec<ReportedEntry>,
    proofs: &impl ProofCheck,
) -> Result<VerifiedClosing, ClosingError> {
    entries.sort_by_key(|reported| *reported.entry());
    let committee = TestCommittee::new(4);
    let leaves = entries.iter().map(ReportedEntry::entry);
    let closing = Closing::new(Epoch(0), INSTALLED, Digest::ZERO, leaves);
    let signed = closing.sign(&committee.keys[member], &committee.domain);
    let mut bytes = Vec::new();
    signed.write(entries.iter().map(Ok::<_, std::io::Error>), &mut bytes).unwrap();
    let (read, reported) = SignedClosing::read(&mut bytes.as_slice(), 100).unwrap();
    assert_eq!((&read, &reported), (&signed, &entries));
    let (all, rng) = (installations(&committee, &[1]), &mut StdRng::seed_from_u64(0));
    read.verify(reported, (&committee.domain, Epoch(0)), (&all, INSTALLED), proofs, rng)
}

#[test]
fn a_private_order_in_a_closing_comes_with_its_proof_or_its_certificate() {
    let entries = || vec![lock(transfer(1, 2, 5)), seen(transfer(3, 4, 5)), spent(transfer(5, 6, 5))];
    let verified = publish(0, entries(), &Bound).unwrap();
    let next: Vec<_> = verified.next().collect();
    let newest = Newest::Executed(order(transfer(5, 6, 5)).digest());
    assert_eq!(next, [(nullifier(5).account(), SequenceNumber(1), newest)]);
    let account = nullifier(1).account();
    let unknown = ClosingError::Proof { account, error: ProofError::UnknownVersion };
    assert_eq!(publish(0, entries(), &NoProofs), Err(unknown));
    assert!(publish(0, vec![seen(transfer(3, 4, 5)), spent(transfer(5, 6, 5))], &NoProofs).is_ok());

    let with = |alter: fn(&mut ProvenOrder)| {
        let mut proven = ProvenOrder::clone(order(transfer(1, 2, 5)).proven());
        alter(&mut proven);
        let (evidence, digest) = (PrivateEvidence::Proven(Arc::new(proven)), order(transfer(1, 2, 5)).digest());
        publish(0, vec![ReportedEntry::private_lock(&PrivateLock { evidence, digest })], &Bound)
    };
    let bad = ClosingError::Proof { account, error: ProofError::BadProof };
    assert_eq!(with(|order| order.proof[0] ^= 1), Err(bad));
    assert_eq!(with(|order| order.order.own_note[0] ^= 1), Err(ClosingError::PrivateOrder(account)));
    let other = PrivateEvidence::Proven(order(transfer(1, 3, 5)).proven().clone());
    let misnamed = PrivateLock { evidence: other, digest: order(transfer(1, 2, 5)).digest() };
    let misnamed = publish(0, vec![ReportedEntry::private_lock(&misnamed)], &Bound);
    assert_eq!(misnamed, Err(ClosingError::OtherOrder(account)));
    let few = Arc::new(PrivateCertificate { votes: Vec::new(), ..(*certificate(transfer(1, 2, 5))).clone() });
    let few = publish(0, vec![ReportedEntry::spent(few, order(transfer(1, 2, 5)).digest())], &Bound);
    assert_eq!(few, Err(ClosingError::PrivateOrder(account)));
}

/// Earlier releases refuse the new kinds, as this one does any that it does not know.
#[test]
fn entries_of_private_orders_have_kinds_of_their_own() {
    let kinds = [spent(transfer(1, 2, 0)), lock(transfer(1, 2, 0)), seen(transfer(1, 2, 0))];
    let kinds = kinds.map(|reported| borsh::to_vec(reported.entry()).unwrap());
    assert_eq!(kinds.each_ref().map(|bytes| bytes[0]), [0x34, 0x35, 0x36]);
    let [mut unknown, ..] = kinds;
    unknown[0] = 0x37;
    assert!(borsh::from_slice::<ClosingEntry>(&unknown).is_err());
}

/// What is certified can be shown to be: an entry that says so comes with the certificate. One of an epoch whose keys were
/// out shows nothing.
#[test]
fn a_certificate_in_a_closing_counts_only_if_its_keys_were_not_out() {
    let committee = TestCommittee::new(4);
    let of_next = TestCommittee::with(4, committee.domain, Epoch(1));
    let account = nullifier(1).account();
    let verify = |entry: ReportedEntry, since: u64| {
        let closing = Closing::new(Epoch(1), INSTALLED, Digest::ZERO, [entry.entry()].into_iter());
        let signed = closing.sign(&of_next.keys[0], &committee.domain);
        let (all, rng) = (installations(&committee, &[since, 2]), &mut StdRng::seed_from_u64(0));
        let verified = signed.verify(vec![entry], (&committee.domain, Epoch(1)), (&all, INSTALLED), &Bound, rng);
        verified.map(drop)
    };
    for entry in [spent(transfer(1, 2, 0)), seen(transfer(1, 2, 0))] {
        assert_eq!(verify(entry.clone(), 1), Ok(()));
        assert_eq!(verify(entry, 0), Err(ClosingError::PrivateOrder(account)));
    }
    // A proof is no certificate.
    let mut bytes = borsh::to_vec(lock(transfer(1, 2, 0)).entry()).unwrap();
    bytes[0] = 0x34;
    let said = borsh::from_slice::<ClosingEntry>(&bytes).unwrap();
    let closing = Closing::new(Epoch(1), INSTALLED, Digest::ZERO, [&said].into_iter());
    let signed = closing.sign(&of_next.keys[0], &committee.domain);
    let mut file = Vec::new();
    signed.write([lock(transfer(1, 2, 0))].iter().map(Ok::<_, std::io::Error>), &mut file).unwrap();
    let place = file.windows(33).position(|window| window[0] == 0x35 && window[1..] == account.0).unwrap();
    file[place] = 0x34;
    let (signed, entries) = SignedClosing::read(&mut file.as_slice(), 9).unwrap();
    let (all, rng) = (installations(&committee, &[1, 2]), &mut StdRng::seed_from_u64(0));
    let refused = signed.verify(entries, (&committee.domain, Epoch(1)), (&all, INSTALLED), &Bound, rng).map(drop);
    assert_eq!(refused, Err(ClosingError::OtherOrder(account)));
}

/// A newcomer that has followed the contract: 100 in the pool, number 0 of nullifier 7 void, of 9 frozen, and epoch 1.
struct Newcomer(TestShard);

impl Newcomer {
    fn new() -> Self {
        let mut shard = TestShard::new(ShardId(0), ShardLayout::new(1.try_into().unwrap()), true);
        let [zero, one, two, three] = [0, 1, 2, 3].map(TransactionIndex);
        let (recipient, asset, amount) = (AccountId::PRIVATE_POOL, Asset::ETHER, Amount(100));
        let deposit = Some(Deposit { index: one, recipient, asset, amount });
        shard.synchronize(&SynchronizationOrder { after: zero, up_to: one, deposit }).unwrap();
        let mut unlock = |after, index, of, kind| {
            let (account, sequence) = (nullifier(of).account(), SequenceNumber(0));
            shard.follow_unlock(&UnlockEvent { after, index, account, sequence, kind }).unwrap();
        };
        unlock(one, two, 7, UnlockEventKind::Voided);
        unlock(two, three, 9, UnlockEventKind::Requested(1_000));
        let epoch = Epoch(1);
        let installation =
            Installation { after: three, index: INSTALLED, epoch, compromised_since: epoch, voidable_at: 1_000 };
        shard.follow_installation(&installation).unwrap();
        Self(shard)
    }

    fn join(&mut self, closings: [Vec<ReportedEntry>; 3]) -> Result<Outcome, JoinError> {
        let closings = closings.into_iter().enumerate().map(|(member, entries)| publish(member, entries, &Bound));
        let closings = closings.collect::<Result<_, _>>().unwrap();
        let inheritance = Inheritance::new(&TestCommittee::new(4).committee, closings, |_| true).unwrap();
        self.0.join(&inheritance, PrimaryView::Recent)
    }

    fn lock(&mut self, transfer: PrivateTransfer) -> Result<Outcome, PrivateRejection> {
        self.0.lock_private(&order(transfer), (Epoch(1), PrimaryView::Recent), VoteFloor::Zero, &VERSIONS)
    }

    fn confirm(&mut self, transfer: PrivateTransfer) {
        let certificate = certified(&TestCommittee::new(4), &order(transfer));
        drop(self.0.confirm_private(&certificate, PrimaryView::Recent, Standing::Counts));
    }

    fn is_locked(&mut self, transfer: PrivateTransfer) -> bool {
        matches!(self.lock(transfer), Err(PrivateRejection::Locked { .. }))
    }
}

#[test]
fn a_reported_lock_is_inherited_for_both_nullifiers_and_reserves_what_it_withdraws() {
    let mut newcomer = Newcomer::new();
    let reported = transfer(1, 2, 60);
    let entries = [vec![lock(reported)], vec![], vec![lock(transfer(3, 4, 0))]];
    assert_eq!(newcomer.join(entries), Ok(Outcome::Committed));
    assert!(newcomer.is_locked(transfer(1, 8, 0)) && newcomer.is_locked(transfer(8, 2, 0)));
    assert_eq!(newcomer.0.ledger().pool.reserved(Asset::ETHER), Balance::from(Amount(60)));
    assert!(matches!(newcomer.lock(transfer(10, 11, 41)), Err(PrivateRejection::PoolShort { .. })));
    // It is no vote: the first one checks all, and only then is repeated under any version.
    assert_eq!(newcomer.lock(reported), Ok(Outcome::Committed));
    assert_eq!(newcomer.lock(reported), Ok(Outcome::Already));
    assert_eq!(newcomer.0.ledger().pool.reserved(Asset::ETHER), Balance::from(Amount(60)));
    assert_eq!(newcomer.lock(transfer(10, 11, 40)), Ok(Outcome::Committed));
    let before = newcomer.0.ledger().clone();
    newcomer.0.restart_from_journal();
    assert_eq!(*newcomer.0.ledger(), before);
}

/// Orders under the coin keys of an ended epoch get no new vote, wherever they were locked: keys of its members may be out
/// by now.
#[test]
fn an_inherited_lock_under_old_coin_keys_gets_no_vote() {
    let mut newcomer = Newcomer::new();
    let old = PrivateTransfer { committee: VERSIONS.committee - 1, ..transfer(1, 2, 0) };
    assert_eq!(newcomer.join([vec![lock(old)], vec![], vec![]]), Ok(Outcome::Committed));
    assert!(matches!(newcomer.lock(old), Err(PrivateRejection::StaleVersion { .. })));
    assert!(newcomer.is_locked(transfer(1, 2, 0)));
}

/// Which of them has a certificate is not known here. A third one holds its coin, too: it may be the certified one.
#[test]
fn of_contested_orders_none_gets_a_vote() {
    let mut newcomer = Newcomer::new();
    let [first, second, third] = [transfer(1, 2, 30), transfer(1, 3, 50), transfer(1, 4, 40)];
    assert_eq!(newcomer.join([vec![lock(first)], vec![lock(second)], vec![lock(third)]]), Ok(Outcome::Committed));
    for order in [first, second, third, transfer(1, 5, 0), transfer(6, 2, 0), transfer(6, 3, 0), transfer(6, 4, 0)] {
        assert!(newcomer.is_locked(order), "{order:?}");
    }
    // One of them is executed at most.
    assert_eq!(newcomer.0.ledger().pool.reserved(Asset::ETHER), Balance::from(Amount(50)));
    newcomer.confirm(third);
    assert!(newcomer.0.ledger().pool.is_empty());
    assert_eq!(newcomer.lock(transfer(6, 2, 0)), Ok(Outcome::Committed));
}

#[test]
fn what_is_claimed_as_spent_must_be_executed_first() {
    let mut newcomer = Newcomer::new();
    let claimed = transfer(1, 2, 60);
    let entries = || [vec![spent(claimed)], vec![lock(claimed)], vec![lock(transfer(3, 2, 0))]];
    let unproven = newcomer.join(entries()).unwrap_err();
    let JoinError::Unproven { account, claimed: next, missing, .. } = unproven else { panic!("{unproven}") };
    assert_eq!((account, next, missing), (nullifier(1).account(), SequenceNumber(1), SequenceNumber(0)));
    newcomer.confirm(claimed);
    assert_eq!(newcomer.join(entries()), Ok(Outcome::Committed));
    // Neither the executed order nor the one whose coin it took holds anything.
    assert_eq!(newcomer.0.ledger().pool.locks().count(), 0);
    assert_eq!(newcomer.lock(transfer(3, 4, 0)), Ok(Outcome::Committed));
}

#[test]
fn of_a_frozen_number_the_certificate_is_kept_and_of_a_void_one_nothing_holds() {
    let mut newcomer = Newcomer::new();
    let (frozen, void) = (transfer(9, 2, 60), transfer(7, 3, 0));
    let entries = || [vec![spent(frozen)], vec![lock(void)], vec![seen(frozen)]];
    assert!(matches!(newcomer.join(entries()), Err(JoinError::Unproven { .. })));
    newcomer.confirm(frozen);
    assert!(matches!(newcomer.0.newest_record(), Some(Record::PrivateSeen(_))));
    assert_eq!(newcomer.join(entries()), Ok(Outcome::Committed));
    let held: Vec<_> = newcomer.0.ledger().pool.locks().map(|(lock, _)| lock.digest).collect();
    assert_eq!(held, [order(frozen).digest()], "it was seen, so it is a lock");
    assert_eq!(newcomer.lock(transfer(4, 3, 0)), Ok(Outcome::Committed));
    let next = PrivateTransfer { sequence: SequenceNumber(1), ..transfer(7, 5, 0) };
    assert_eq!(newcomer.lock(next), Ok(Outcome::Committed));
}
