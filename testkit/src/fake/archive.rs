//! The archive of fake authorities: one checkpoint with every certificate so far, which none of them keeps.

use std::collections::BTreeMap;

use fastpay_core::checkpoint::{
    ArchiveCursor, ArchivedEntry, ArchivedList, ArchivedPage, Checkpoint, CheckpointVote, Leaf, Segment, SegmentEntry,
};
use fastpay_core::{AccountId, Certificate, Digest, Pruned, Redemption, SequenceNumber, TransactionIndex, Transfer};
use fastpay_rpc::ArchivedRequest;

use super::Role;
use crate::TestCommittee;

/// A checkpoint, its segment and a quorum's votes.
pub(super) struct FakeArchive {
    segment: Segment,
    checkpoint: Checkpoint,
    votes: Vec<CheckpointVote>,
    /// By account, the number after its last one, and how many payments are pruned from its list.
    counts: BTreeMap<AccountId, (u64, u64)>,
}

impl FakeArchive {
    pub(super) fn new(
        committee: &TestCommittee,
        certificates: &BTreeMap<(AccountId, u64), Certificate>,
        lists: bool,
    ) -> Self {
        let orders = certificates.values().map(|certificate| SegmentEntry::Executed(certificate.order.clone()));
        let segment = Segment { entries: orders.collect() };
        let mut counts: BTreeMap<AccountId, (u64, u64)> = BTreeMap::new();
        for transfer in certificates.values().map(|certificate| &certificate.order.transfer) {
            counts.entry(transfer.sender()).or_default().0 = transfer.sequence().0 + 1;
            for receipt in transfer.receipts() {
                counts.entry(receipt.payment.recipient).or_default().1 += u64::from(lists);
            }
        }
        Self::certified(committee, segment, counts)
    }

    fn certified(committee: &TestCommittee, segment: Segment, counts: BTreeMap<AccountId, (u64, u64)>) -> Self {
        let first = segment.entries.first().expect("something is archived").leaf();
        let checkpoint = Checkpoint {
            epoch: committee.committee.epoch(),
            number: 1,
            previous: Digest::repeat_byte(1),
            up_to: TransactionIndex(0),
            cut: Digest::repeat_byte(2),
            state: Digest::repeat_byte(3),
            segment: segment.path(&first).and_then(|path| first.root(&path)).expect("it is there"),
        };
        let mut votes: Vec<_> = committee.keys.iter().map(|keys| checkpoint.sign(keys, &committee.domain)).collect();
        votes.sort_by_key(|vote| vote.authority);
        votes.truncate(committee.committee.quorum());
        Self { segment, checkpoint, votes, counts }
    }

    /// What a recovery debited without its order, of an account that goes on with the number `next`.
    pub(super) fn of_recovery(committee: &TestCommittee, redemption: &Redemption, next: SequenceNumber) -> Self {
        let entries = vec![SegmentEntry::Recovery, SegmentEntry::Paid(redemption.clone())];
        Self::certified(committee, Segment { entries }, [(redemption.sender, (next.0, 0))].into())
    }

    /// What is pruned of what an account sent, from a number on.
    pub(super) fn pruned_sent(&self, account: &AccountId, number: u64) -> Option<Pruned> {
        let (first, _) = *self.counts.get(account)?;
        (number < first).then_some(Pruned { checkpoint: 1, first })
    }

    /// What is pruned of what an account received, from an entry on.
    pub(super) fn pruned_received(&self, account: &AccountId, start: u64) -> Option<Pruned> {
        let (_, first) = *self.counts.get(account)?;
        (start < first).then_some(Pruned { checkpoint: 1, first })
    }

    /// A page, or a lie about it.
    pub(super) fn page(&self, request: &ArchivedRequest, role: Role) -> ArchivedPage {
        let account = request.account;
        let (from, is_sent) = match request.list {
            ArchivedList::Sent(from) => (from.0, true),
            ArchivedList::Received(from) if from.checkpoint <= 1 => (u64::from(from.entry), false),
            ArchivedList::Received(_) => (u64::MAX, false),
        };
        let leaves = (0_u32..).zip(self.segment.entries.iter().map(SegmentEntry::leaf));
        let mut found = leaves.filter(|(at, leaf)| match leaf {
            Leaf::Executed(transfer) if is_sent => transfer.sender() == account && transfer.sequence().0 >= from,
            Leaf::Executed(transfer) => {
                u64::from(*at) >= from && transfer.receipts().any(|receipt| receipt.payment.recipient == account)
            }
            Leaf::Paid(paid) => is_sent && request.with_paid && paid.sender == account && paid.sequence.0 == from,
            _ => false,
        });
        let limit = if role == Role::ShortPages { 1 } else { request.limit as usize };
        let mut entries: Vec<ArchivedEntry> = found
            .by_ref()
            .take(limit)
            .map(|(_, leaf)| ArchivedEntry {
                path: self.segment.path(&leaf).expect("it is a leaf of the segment"),
                leaf,
                checkpoint: 1,
            })
            .collect();
        let mut next = found.next().map(|(entry, _)| ArchiveCursor { checkpoint: 1, entry });
        match role {
            Role::FalseArchive => entries.iter_mut().for_each(|entry| entry.leaf = altered(&entry.leaf)),
            Role::HidesArchived => (entries, next) = (Vec::new(), None),
            _ => {}
        }
        ArchivedPage { entries, headers: vec![self.checkpoint], votes: self.votes.clone(), next }
    }
}

/// The transfer with another number.
fn altered(leaf: &Leaf) -> Leaf {
    match leaf {
        Leaf::Executed(Transfer::Payment(payment)) => {
            let mut altered = payment.clone();
            altered.amount.0 += 1_000;
            Leaf::Executed(altered.into())
        }
        Leaf::Executed(transfer) => Leaf::Void(transfer.sender(), transfer.sequence()),
        _ => Leaf::Void(AccountId::ZERO, SequenceNumber(0)),
    }
}
