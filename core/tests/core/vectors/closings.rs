//! `closings.json`: Closings as they are stored, the statement that a member signs with the leaves under its root, and
//! whether each counts.

use alloy_primitives::{B256, Bytes};
use fastpay_core::checkpoint::{Installations, InstalledCommittee};
use fastpay_core::handover::{CLOSING_ENTRIES_MAX, Closing, ClosingEntry, ReportedEntry, SignedClosing};
use fastpay_core::private::NoProofs;
use fastpay_core::{
    AccountId, Authority, Committee, Digest, Epoch, PendingOrder, PrimaryAddress, SequenceNumber, TransactionIndex,
    TransferOrder,
};
use fastpay_testkit::{TestAccount, TestCommittee, payment, payout, redemption, test_domain};
use rand::SeedableRng;
use rand::rngs::StdRng;
use serde::{Deserialize, Serialize};

use super::{json, pinned};

/// The index of the newest final event.
const NEWEST: TransactionIndex = TransactionIndex(9);

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct File {
    domain: json::Domain,
    committee: Vec<Authority>,
    newest_index: u64,
    statement: Statement,
    /// The kind byte of each entry, and its fields.
    entries: Vec<Bytes>,
    closings: Vec<Case>,
}

#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Statement {
    epoch: u64,
    transaction_index: u64,
    checkpoint: B256,
    root: B256,
    entries: u64,
    /// What the member signs.
    digest: B256,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    closing: Bytes,
    valid: bool,
}

#[test]
fn closings() {
    let file = pinned("closings.json", &build());
    let domain = file.domain.read();
    let committee = Committee::new(Epoch(0), file.committee).unwrap();
    let leaves: Vec<_> = file.entries.iter().map(|entry| entry.to_vec()).collect();
    assert_eq!(reference_root(&leaves), file.statement.root);
    let Statement { epoch, transaction_index, checkpoint, root, entries, digest } = file.statement;
    let up_to = TransactionIndex(transaction_index);
    let closing = Closing { epoch: Epoch(epoch), up_to, checkpoint, root, entries };
    assert_eq!(domain.closing_digest(&closing), digest);
    for leaf in &leaves {
        assert!(borsh::from_slice::<ClosingEntry>(leaf).is_ok());
    }
    let mut installations = Installations::new(committee.clone()).unwrap();
    let next = Committee::new(Epoch(1), committee.members().to_vec()).unwrap();
    let installed = InstalledCommittee { committee: next, compromised_since: Epoch(1), checkpoint: Digest::ZERO };
    installations.install(installed).unwrap();
    for case in file.closings {
        let is_valid =
            SignedClosing::read(&mut &case.closing[..], CLOSING_ENTRIES_MAX).is_ok_and(|(signed, entries)| {
                let rng = &mut StdRng::seed_from_u64(1);
                let newest = TransactionIndex(file.newest_index);
                signed.verify(entries, (&domain, Epoch(0)), (&installations, newest), &NoProofs, rng).is_ok()
            });
        assert_eq!(is_valid, case.valid, "{}", case.name);
    }
}

/// The root as docs/PROTOCOL.md defines it, from the leaves' bytes alone.
fn reference_root(leaves: &[Vec<u8>]) -> B256 {
    let hash = |parts: &[&[u8]]| B256::new(*blake3::hash(&parts.concat()).as_bytes());
    let mut level: Vec<B256> = leaves.iter().map(|leaf| hash(&[&[0], leaf])).collect();
    while level.len() > 1 {
        level = level
            .chunks(2)
            .map(|pair| match pair {
                [left, right] => hash(&[&[1], left.as_slice(), right.as_slice()]),
                _ => pair[0],
            })
            .collect();
    }
    level.first().copied().unwrap_or_default()
}

fn digest(order: &TransferOrder) -> Digest {
    test_domain().transfer_digest(&order.transfer)
}

/// An entry of each kind.
fn entries() -> Vec<ReportedEntry> {
    let id = |number| TestAccount::numbered(number).id();
    let sign = |number, transfer: fastpay_core::Transfer| TestAccount::numbered(number).sign(&test_domain(), transfer);
    let executed = sign(0, payout(id(0), &[(id(1), 3), (id(2), 4)], 4).into());
    let locks = [2, 3].map(|amount| sign(1, payment(id(1), id(2), amount, 7).into()));
    let seen = sign(2, redemption(id(2), PrimaryAddress::repeat_byte(7), 5, 0).into());
    let lock = |order: &TransferOrder| {
        ReportedEntry::lock(&PendingOrder { order: order.clone().into(), digest: digest(order) })
    };
    let mut entries = vec![
        ReportedEntry::account(id(0), SequenceNumber(5), Some((executed.clone(), digest(&executed)))),
        ReportedEntry::account(AccountId([0xAC; 32]), SequenceNumber(1), None),
        lock(&locks[0]),
        lock(&locks[1]),
        ReportedEntry::seen(seen.clone(), digest(&seen)),
    ];
    entries.sort_by_key(|entry| *entry.entry());
    entries
}

fn closing_of(checkpoint: Digest, entries: &[ReportedEntry]) -> Closing {
    Closing::new(Epoch(0), NEWEST, checkpoint, entries.iter().map(ReportedEntry::entry))
}

fn build() -> File {
    let committee = TestCommittee::new(4);
    let entries = entries();
    let closing = closing_of(Digest::repeat_byte(0xC4), &entries);
    let Closing { epoch, up_to, checkpoint, root, entries: count } = closing;
    let statement = Statement {
        epoch: epoch.0,
        transaction_index: up_to.0,
        checkpoint,
        root,
        entries: count,
        digest: test_domain().closing_digest(&closing),
    };
    let signed = |closing: Closing| closing.sign(&committee.keys[0], &test_domain());
    let case = |name: &str, signed: SignedClosing, entries: &[ReportedEntry], valid| {
        let mut bytes = Vec::new();
        signed.write(entries.iter().map(Ok), &mut bytes).unwrap();
        Case { name: name.into(), closing: bytes.into(), valid }
    };
    let cut_off = {
        let Case { closing, .. } = case("", signed(closing), &entries, true);
        Bytes::from(closing[..closing.len() - 1].to_vec())
    };
    let empty = closing_of(checkpoint, &[]);
    let reversed: Vec<_> = entries.iter().rev().cloned().collect();
    let unsorted = closing_of(checkpoint, &reversed);
    let beyond = Closing { up_to: TransactionIndex(NEWEST.0 + 1), ..closing };
    let by_another = SignedClosing { authority: committee.keys[1].public().name, ..signed(closing) };
    let closings = vec![
        case("entries of each kind", signed(closing), &entries, true),
        case("no entry", signed(empty), &[], true),
        case("an entry is missing", signed(closing), &entries[1..], false),
        case("entries that are not in order", signed(unsorted), &reversed, false),
        case("another epoch", signed(Closing { epoch: Epoch(1), ..closing }), &entries, false),
        case("an event that is not final", signed(beyond), &entries, false),
        case("another member's signature", by_another, &entries, false),
        Case { name: "the order of the last entry is cut off".into(), closing: cut_off, valid: false },
    ];
    File {
        domain: test_domain().into(),
        committee: committee.committee.members().to_vec(),
        newest_index: NEWEST.0,
        statement,
        entries: entries.iter().map(|entry| borsh::to_vec(entry.entry()).unwrap().into()).collect(),
        closings,
    }
}
