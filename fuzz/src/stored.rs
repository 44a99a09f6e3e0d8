//! A shard's journal records and checkpoint, after their checksums have been found correct; and the segments and states
//! of an archive of the committee's checkpoints; and Closings.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::checkpoint::{CheckpointState, PrimaryEvent, PrimaryEventKind, Segment, SegmentEntry};
use fastpay_core::handover::{CLOSING_ENTRIES_MAX, Closing, ReportedEntry, SignedClosing};
use fastpay_core::private::{
    Nullifier, OWN_NOTE_BYTES, PAYMENT_NOTE_BYTES, PROOF_BYTES, PrivateCertificate, PrivateConfirmation,
    PrivateEvidence, PrivateLock, PrivateOrder, PrivateSeen, PrivateTransfer, ProvenOrder,
};
use fastpay_core::{
    Account, AccountId, AppliedCredit, Balance, Base, BaseAccount, Certificate, Chain, CrossShardCredit, Deposit,
    Destination, Effect, Epoch, Forwarded, History, Installation, JournalPosition, Output, PendingOrder, Receipt,
    Record, SequenceNumber, ShardId, ShardLedger, ShardOutputs, SynchronizationOrder, TransactionIndex, Transfer,
    TransferOrder, Vote,
};

use rand::SeedableRng;
use rand::rngs::StdRng;

use crate::signed::SIGNED;
use crate::tagged;

/// The first byte selects which type the other bytes are.
pub fn run(bytes: &[u8]) {
    let Some((tag, bytes)) = bytes.split_first() else { return };
    match tag % 9 {
        0 => {
            if let Some(record) = canonical::<Record>(bytes) {
                let (accounts, _) = (record.accounts(), (record.forwarded(), record.payout_digest()));
                let account = accounts.first().copied().unwrap_or(AccountId::ZERO);
                let chains = [Chain::Sent, Chain::Received(account), Chain::Deposits, Chain::Redemptions];
                let here = JournalPosition(0);
                let numbers = record.received().map(|(_, link)| link.number).chain([0]).collect::<Vec<_>>();
                let links =
                    chains.iter().flat_map(|chain| numbers.iter().map(|number| record.link(*chain, *number, here)));
                links.flatten().for_each(|link| {
                    let _ = (link.find(0), link.find(u64::MAX));
                });
            }
        }
        1 => {
            if let Some(account) = canonical::<Account>(bytes) {
                let _ = account.next_sequence();
                assert!(account.balances.iter().all(|(asset, balance)| account.balance(asset) == balance));
                [&account.sent, &account.received, &account.deposits].into_iter().for_each(history);
            }
        }
        2 => {
            if let Ok(mut ledger) = ShardLedger::try_from_slice(bytes) {
                // Maps are read in any order, but a written ledger reads as the same ledger.
                assert_eq!(ShardLedger::try_from_slice(&borsh::to_vec(&ledger).unwrap()).unwrap(), ledger);
                history(&ledger.redemptions);
                let to = ledger.outboxes.keys().next().copied().unwrap_or(ShardId(0));
                ledger.acknowledge(to, u64::MAX);
                assert_eq!(ledger.inbox(ShardId(9)), ledger.inboxes.get(&ShardId(9)).copied().unwrap_or_default());
            }
        }
        3 => drop(canonical::<Certificate>(bytes).map(|certificate| SIGNED.check_certificate(certificate))),
        4 => drop(canonical::<TransferOrder>(bytes).map(|order| SIGNED.check_order(order))),
        5 => drop((canonical::<Vote>(bytes), canonical::<History>(bytes).inspect(history))),
        6 => {
            if let Ok(state) = CheckpointState::read(&mut &bytes[..]) {
                assert_eq!(written(|writer| state.write(writer)), bytes);
            }
        }
        7 => {
            if let Ok((signed, entries)) = SignedClosing::read(&mut &bytes[..], CLOSING_ENTRIES_MAX) {
                assert_eq!(written(|writer| signed.write(entries.iter().map(Ok), writer)), bytes);
            }
        }
        _ => {
            if let Ok(segment) = Segment::read(&mut &bytes[..]) {
                assert_eq!(written(|writer| segment.write(writer)), bytes);
                let first = CheckpointState::new(SIGNED.committee.committee.clone()).unwrap();
                let applied = first.apply(segment, &SIGNED.committee.domain, &mut StdRng::seed_from_u64(1));
                let balances = applied.iter().flat_map(|(state, _)| state.balances());
                // The pool of private payments may owe.
                let mut others = balances.filter(|((account, _), _)| *account != AccountId::PRIVATE_POOL);
                assert!(others.all(|(_, balance)| *balance > Balance::ZERO));
            }
        }
    }
}

/// Decodes a value, and checks that the bytes are its only encoding.
fn canonical<T: BorshDeserialize + BorshSerialize>(bytes: &[u8]) -> Option<T> {
    let value = T::try_from_slice(bytes).ok()?;
    assert_eq!(borsh::to_vec(&value).unwrap(), bytes);
    Some(value)
}

fn written(write: impl FnOnce(&mut Vec<u8>) -> std::io::Result<()>) -> Vec<u8> {
    let mut bytes = Vec::new();
    write(&mut bytes).unwrap();
    bytes
}

fn history(history: &History) {
    let link = history.next_link();
    for number in [0, 1, history.count(), history.count().wrapping_sub(1), u64::MAX] {
        let _ = (history.find(number), link.find(number));
    }
}

/// One value of each type.
#[must_use]
pub fn seeds() -> Vec<Vec<u8>> {
    let signed = &*SIGNED;
    let (order, certificate) = (&signed.orders[0], &signed.certificates[0]);
    let digest = signed.committee.domain.transfer_digest(&order.transfer);
    let Transfer::Payment(payment) = order.transfer.clone() else { unreachable!("the first order is a payment") };
    let deposit =
        Deposit { index: TransactionIndex(2), recipient: payment.sender, asset: payment.asset, amount: payment.amount };
    let link = History::default().next_link();
    let synchronization =
        SynchronizationOrder { after: TransactionIndex(1), up_to: TransactionIndex(2), deposit: Some(deposit) };
    let credit = CrossShardCredit { from: ShardId(1), number: 1, forwarded: Forwarded::Payment(payment.clone()) };
    let output = Output { recipient: payment.recipient, amount: payment.amount, memo: payment.memo };
    let part = ShardOutputs {
        digest,
        sender: payment.sender,
        asset: payment.asset,
        sequence: payment.sequence,
        outputs: vec![(0, output.clone()), (7, output)],
    };
    let outputs = CrossShardCredit { from: ShardId(1), number: 2, forwarded: Forwarded::Outputs(part.into()) };
    let paid_out = vec![Destination::Credited { received: link }, Destination::Forwarded { to: ShardId(1), number: 1 }];
    let confirmation = |effect| Record::Confirmation { certificate: certificate.clone().into(), sent: link, effect };
    let (after, index) = (TransactionIndex(1), TransactionIndex(2));
    let installation = Installation { after, index, epoch: Epoch(2), compromised_since: Epoch(1), voidable_at: 3 };
    let receipt = Receipt { payment: payment.clone(), output: Some(7) };
    let transfer = PrivateTransfer {
        committee: 1,
        rules: 2,
        asset: payment.asset,
        account_spent: Nullifier([1; 32].into()),
        sequence: SequenceNumber(3),
        coin_spent: Nullifier([2; 32].into()),
        account: [3; 32].into(),
        coin: [4; 32].into(),
        amount_out: payment.amount,
        recipient: payment.recipient,
        memo: payment.memo,
        notes_hash: digest,
    };
    let private = PrivateOrder { transfer, payment_note: [5; PAYMENT_NOTE_BYTES], own_note: [6; OWN_NOTE_BYTES] };
    let proven = ProvenOrder { order: private.clone(), proof: [7; PROOF_BYTES] };
    let (epoch, votes) = (certificate.epoch, certificate.votes.clone());
    let of_private = Arc::new(PrivateCertificate { order: private.clone(), epoch, votes });
    let spent = SegmentEntry::ExecutedPrivate(Box::new(private));
    let private = Arc::new(PrivateLock { evidence: PrivateEvidence::Proven(proven.into()), digest });
    let records = [
        Record::Lock { order: order.clone().into(), digest },
        confirmation(Effect::Credited { received: link }),
        confirmation(Effect::Forwarded { to: ShardId(1), number: 1 }),
        confirmation(Effect::Redeemed { link }),
        confirmation(Effect::PaidOut { digest, outputs: paid_out }),
        confirmation(Effect::Kept),
        Record::Credit(AppliedCredit { credit: credit.clone(), received: vec![link] }),
        Record::Credit(AppliedCredit { credit: outputs.clone(), received: vec![link, link] }),
        Record::Synchronization { order: synchronization, deposits: Some(link) },
        Record::Installation(installation),
        Record::Closed { epoch: Epoch(2) },
        Record::Inherited { order: order.clone().into(), digest },
        Record::Joined { epoch: Epoch(3) },
        Record::PrivateLock(private.clone()),
        Record::PrivateInherited(private.clone()),
        Record::PrivateConfirmation(Box::new(PrivateConfirmation {
            certificate: of_private.clone(),
            digest,
            sent: [link; 2],
            effect: Some(Effect::Credited { received: link }),
        })),
        Record::PrivateSeen(PrivateSeen { certificate: of_private, digest }),
        Record::Base(Box::new(Base::Received { receipt, payout: Some(digest), link })),
        Record::Base(Box::new(Base::Account(BaseAccount {
            account: payment.sender,
            checkpoint: 1,
            next: SequenceNumber(2),
            received: 3,
            deposits: 4,
            balances: [(payment.asset, payment.amount.into())].into_iter().collect(),
        }))),
    ];
    let pending = Some(Box::new(PendingOrder { order: order.clone().into(), digest }));
    let mut ledger = ShardLedger { synchronized: TransactionIndex(2), ..Default::default() };
    ledger.outboxes.entry(ShardId(1)).or_default().waiting.extend([credit, outputs]);
    ledger.inboxes.insert(ShardId(1), 3);
    ledger.totals.insert(payment.asset, Default::default());
    let encode = |tag: u8, value: &dyn Fn() -> Vec<u8>| tagged(tag, &value());
    let mut seeds: Vec<_> = records.iter().map(|record| encode(0, &|| borsh::to_vec(record).unwrap())).collect();
    seeds.push(encode(1, &|| borsh::to_vec(&Account { pending: pending.clone(), ..Default::default() }).unwrap()));
    seeds.push(encode(2, &|| borsh::to_vec(&ledger).unwrap()));
    seeds.extend(signed.certificates.iter().map(|known| encode(3, &|| borsh::to_vec(known).unwrap())));
    seeds.extend(signed.orders.iter().map(|known| encode(4, &|| borsh::to_vec(known).unwrap())));
    seeds.push(encode(5, &|| borsh::to_vec(&certificate.votes[0]).unwrap()));
    seeds.push(encode(5, &|| borsh::to_vec(&History::default()).unwrap()));
    let (recipient, asset, amount) = (payment.sender, payment.asset, payment.amount);
    let kind = PrimaryEventKind::Deposit { recipient, asset, amount };
    let funded = SegmentEntry::Event(PrimaryEvent { index: TransactionIndex(1), kind });
    let segment = Segment { entries: vec![funded, SegmentEntry::Executed(order.clone()), spent] };
    let first = CheckpointState::new(signed.committee.committee.clone()).unwrap();
    seeds.push(encode(6, &|| written(|writer| first.write(writer))));
    let lock = PendingOrder { order: order.clone().into(), digest };
    let entries = [
        ReportedEntry::account(payment.sender, SequenceNumber(1), None),
        ReportedEntry::lock(&lock),
        ReportedEntry::private_lock(&private),
    ];
    let closing = Closing::new(Epoch(0), TransactionIndex(1), digest, entries.iter().map(ReportedEntry::entry));
    let closing = closing.sign(&signed.committee.keys[0], &signed.committee.domain);
    seeds.push(encode(7, &|| written(|writer| closing.write(entries.iter().map(Ok), writer))));
    seeds.push(encode(8, &|| written(|writer| segment.write(writer))));
    seeds
}
