//! Entries of an archive: the same over the wire, and in the form of `vectors/archive.json`; what is too long is refused.

use fastpay_core::checkpoint::{
    ARCHIVED_HEADERS_MAX, ArchiveCursor, ArchivedEntry, ArchivedList, ArchivedPage, Checkpoint, CheckpointVote, Leaf,
    LeafPath,
};
use fastpay_core::{
    AccountId, AuthorityName, COMMITTEE_SIZE_MAX, Digest, Ed25519Signature, Epoch, SequenceNumber, TransactionIndex,
};
use fastpay_rpc::{ArchivedRequest, Malformed, PAGE_ENTRIES_MAX, json, proto};
use prost::Message;

fn page() -> ArchivedPage {
    let path = LeafPath { directions: 5, siblings: vec![Digest::repeat_byte(1), Digest::repeat_byte(2)] };
    let leaf = Leaf::Void(AccountId([3; 32]), SequenceNumber(4));
    let checkpoint = Checkpoint {
        epoch: Epoch(5),
        number: 6,
        previous: Digest::repeat_byte(7),
        up_to: TransactionIndex(8),
        cut: Digest::repeat_byte(9),
        state: Digest::repeat_byte(10),
        segment: Digest::repeat_byte(11),
    };
    let vote = CheckpointVote { authority: AuthorityName([12; 32]), signature: Ed25519Signature([13; 64]) };
    ArchivedPage {
        entries: vec![ArchivedEntry { leaf, checkpoint: 6, path }],
        headers: vec![checkpoint],
        votes: vec![vote],
        next: Some(ArchiveCursor { checkpoint: 14, entry: 15 }),
    }
}

#[test]
fn an_archived_page_and_its_request_come_back() {
    let (full, empty) = (page(), ArchivedPage::default());
    for page in [full, empty] {
        let bytes = proto::ArchivedPage::from(&page).encode_to_vec();
        let read: ArchivedPage = proto::ArchivedPage::decode(&*bytes).unwrap().try_into().unwrap();
        assert_eq!(read, page);
    }
    let sent = ArchivedList::Sent(SequenceNumber(0));
    for list in [sent, ArchivedList::Received(ArchiveCursor { checkpoint: 1, entry: 2 })] {
        let request = ArchivedRequest { account: AccountId([1; 32]), list, limit: 3, with_paid: true };
        let bytes = proto::ArchivedRequest::from(request).encode_to_vec();
        assert_eq!(proto::ArchivedRequest::decode(&*bytes).unwrap().try_into(), Ok(request));
    }
}

#[test]
fn an_archived_page_that_is_malformed_is_refused_by_name() {
    let refused = |change: &dyn Fn(&mut proto::ArchivedPage)| {
        let mut page = proto::ArchivedPage::from(&page());
        change(&mut page);
        ArchivedPage::try_from(page).unwrap_err()
    };
    let out_of_range = Malformed::OutOfRange;
    let many =
        |page: &mut proto::ArchivedPage| page.entries = vec![page.entries[0].clone(); PAGE_ENTRIES_MAX as usize + 1];
    assert_eq!(refused(&many), out_of_range("entries"));
    let many = |page: &mut proto::ArchivedPage| page.headers = vec![page.headers[0].clone(); ARCHIVED_HEADERS_MAX + 1];
    assert_eq!(refused(&many), out_of_range("headers"));
    let many = |page: &mut proto::ArchivedPage| page.votes = vec![page.votes[0].clone(); COMMITTEE_SIZE_MAX + 1];
    assert_eq!(refused(&many), out_of_range("votes"));
    for leaf in [vec![], vec![0x22], vec![0x24; 41], [&Leaf::UpTo(TransactionIndex(1)).encoded()[..], &[0]].concat()] {
        assert_eq!(refused(&|page| page.entries[0].leaf = leaf.clone().into()), out_of_range("leaf"));
    }
    for length in [31, 33, 65 * 32] {
        assert_eq!(refused(&|page| page.entries[0].siblings = vec![0; length].into()), out_of_range("siblings"));
    }
    let short = refused(&|page| page.votes[0].signature = vec![0; 63].into());
    assert_eq!(short, Malformed::Length { field: "signature", expected: 64, found: 63 });
    let short = refused(&|page| page.headers[0].segment = vec![0; 31].into());
    assert_eq!(short, Malformed::Length { field: "segment", expected: 32, found: 31 });
    let request = proto::ArchivedRequest { account: vec![0; 32].into(), ..Default::default() };
    assert_eq!(ArchivedRequest::try_from(request), Err(Malformed::Missing("list")));
}

#[test]
fn the_pages_of_the_vectors_are_those_of_the_http_api() {
    let file = std::fs::read(concat!(env!("CARGO_MANIFEST_DIR"), "/../vectors/archive.json")).unwrap();
    let file: serde_json::Value = serde_json::from_slice(&file).unwrap();
    for case in file["cases"].as_array().unwrap() {
        let page: json::ArchivedPage = serde_json::from_value(case["page"].clone()).unwrap();
        assert_eq!(serde_json::to_value(&page).unwrap(), case["page"], "{}", case["name"]);
    }
    let text = serde_json::to_value(json::ArchivedPage::from(&page())).unwrap();
    assert_eq!((&text["next"], &text["entries"][0]["directions"]), (&"14.15".into(), &"5".into()));
    for wrong in ["", "1", "1.", ".1", "1.2.3", "01.2", "1.4294967296", "-1.0"] {
        assert!(wrong.parse::<json::ArchiveCursor>().is_err(), "{wrong:?}");
    }
}
