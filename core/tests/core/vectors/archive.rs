//! `archive.json`: entries of an archive as authorities show them to clients, with their proof; good answers, and one
//! lie of each kind. A page has the form of the HTTP API.

use alloy_primitives::{B256, Bytes};
use fastpay_core::checkpoint::{
    ArchiveCursor, ArchivedEntry, ArchivedError, ArchivedList, ArchivedPage, Checkpoint, CheckpointVote, Leaf,
    LeafPath, PrimaryEvent, PrimaryEventKind, Segment, SegmentEntry,
};
use fastpay_core::{
    AccountId, Amount, Asset, Authority, AuthorityName, Committee, Digest, Ed25519Signature, Epoch, PrimaryAddress,
    SequenceNumber, TransactionIndex, Transfer,
};
use fastpay_testkit::{TestAccount, TestCommittee, payment, payout, redemption, test_domain};
use serde::{Deserialize, Serialize};

use super::{json, pinned};

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    domain: json::Domain,
    /// Of all epochs, from 0.
    committees: Vec<Vec<Authority>>,
    cases: Vec<Case>,
}

#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Case {
    name: String,
    account: B256,
    list: List,
    /// The epochs whose members' votes count.
    counting: Vec<u64>,
    page: Page,
    /// Why the page proves nothing; none if it is good.
    refused: Option<String>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
enum List {
    /// From this number on.
    Sent(String),
    /// From this place on.
    Received(String),
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Page {
    entries: Vec<Entry>,
    headers: Vec<Header>,
    votes: Vec<Vote>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    next: Option<String>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    leaf: Bytes,
    checkpoint: String,
    directions: String,
    siblings: Vec<B256>,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Header {
    epoch: String,
    number: String,
    previous: B256,
    transaction_index: String,
    cut: B256,
    state: B256,
    segment: B256,
}

#[derive(Clone, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Vote {
    authority: B256,
    signature: Bytes,
}

#[test]
fn archive() {
    let file = pinned("archive.json", &build());
    let domain = file.domain.read();
    let committees: Vec<Committee> =
        (0..).zip(file.committees).map(|(epoch, members)| Committee::new(Epoch(epoch), members).unwrap()).collect();
    for case in file.cases {
        let counting: Vec<_> =
            case.counting.iter().map(|epoch| &committees[usize::try_from(*epoch).unwrap()]).collect();
        let verified = case.page.read().verify(&domain, &counting, AccountId(case.account.0), case.list.read());
        assert_eq!(verified.err().map(reason), case.refused.as_deref(), "{}", case.name);
    }
}

fn reason(error: ArchivedError) -> &'static str {
    match error {
        ArchivedError::NoHeaders => "no-headers",
        ArchivedError::TooManyHeaders => "too-many-headers",
        ArchivedError::Unlinked(_) => "unlinked",
        ArchivedError::Certificate(_) => "certificate",
        ArchivedError::NoHeader(_) => "no-header",
        ArchivedError::NotProven(_) => "not-proven",
        ArchivedError::OtherLeaf => "other-leaf",
        ArchivedError::OtherAccount => "other-account",
        ArchivedError::Gap { .. } => "gap",
        ArchivedError::Unordered => "unordered",
    }
}

impl List {
    fn read(&self) -> ArchivedList {
        match self {
            Self::Sent(from) => ArchivedList::Sent(SequenceNumber(from.parse().unwrap())),
            Self::Received(from) => ArchivedList::Received(cursor(from)),
        }
    }
}

fn cursor(text: &str) -> ArchiveCursor {
    let (checkpoint, entry) = text.split_once('.').unwrap();
    ArchiveCursor { checkpoint: checkpoint.parse().unwrap(), entry: entry.parse().unwrap() }
}

impl Page {
    fn read(&self) -> ArchivedPage {
        let entry = |entry: &Entry| ArchivedEntry {
            leaf: Leaf::decode(&entry.leaf).unwrap(),
            checkpoint: entry.checkpoint.parse().unwrap(),
            path: LeafPath { directions: entry.directions.parse().unwrap(), siblings: entry.siblings.clone() },
        };
        let vote = |vote: &Vote| CheckpointVote {
            authority: AuthorityName(vote.authority.0),
            signature: Ed25519Signature(vote.signature[..].try_into().unwrap()),
        };
        ArchivedPage {
            entries: self.entries.iter().map(entry).collect(),
            headers: self.headers.iter().map(Header::read).collect(),
            votes: self.votes.iter().map(vote).collect(),
            next: self.next.as_deref().map(cursor),
        }
    }
}

impl Header {
    fn new(checkpoint: &Checkpoint) -> Self {
        let Checkpoint { epoch, number, previous, up_to, cut, state, segment } = *checkpoint;
        let (epoch, number, transaction_index) = (epoch.0.to_string(), number.to_string(), up_to.0.to_string());
        Self { epoch, number, previous, transaction_index, cut, state, segment }
    }

    fn read(&self) -> Checkpoint {
        Checkpoint {
            epoch: Epoch(self.epoch.parse().unwrap()),
            number: self.number.parse().unwrap(),
            previous: self.previous,
            up_to: TransactionIndex(self.transaction_index.parse().unwrap()),
            cut: self.cut,
            state: self.state,
            segment: self.segment,
        }
    }
}

/// Three checkpoints, the last one signed by the second committee.
struct Archive {
    committees: [TestCommittee; 2],
    segments: Vec<Segment>,
    checkpoints: Vec<Checkpoint>,
}

fn id(number: u64) -> AccountId {
    TestAccount::numbered(number).id()
}

impl Archive {
    fn new() -> Self {
        let first = TestCommittee::new(4);
        let segments = segments();
        let mut previous = Digest::repeat_byte(0xC0);
        let checkpoints = (1_u8..).zip(&segments).map(|(number, segment)| {
            let leaf = segment.entries[0].leaf();
            let checkpoint = Checkpoint {
                epoch: Epoch(u64::from(number == 3)),
                number: number.into(),
                previous,
                up_to: TransactionIndex(number.into()),
                cut: Digest::repeat_byte(0x10 + number),
                state: Digest::repeat_byte(0x20 + number),
                segment: leaf.root(&segment.path(&leaf).unwrap()).unwrap(),
            };
            previous = test_domain().checkpoint_digest(&checkpoint);
            checkpoint
        });
        let checkpoints = checkpoints.collect();
        Self { committees: [first.clone(), first.rotated()], segments, checkpoints }
    }

    /// Entries by checkpoint and position, with what proves them up to the newest of so many checkpoints.
    fn page(&self, entries: &[(u64, usize)], newest: usize) -> Page {
        let at = |number: u64| usize::try_from(number).unwrap() - 1;
        let lowest = entries.iter().map(|(number, _)| at(*number)).min().unwrap_or(newest - 1);
        let entries = entries.iter().map(|(number, position)| {
            let segment = &self.segments[at(*number)];
            let leaf = segment.entries[*position].leaf();
            let LeafPath { directions, siblings } = segment.path(&leaf).unwrap();
            let (checkpoint, directions) = (number.to_string(), directions.to_string());
            Entry { leaf: leaf.encoded().into(), checkpoint, directions, siblings }
        });
        let headers = self.checkpoints[lowest..newest].iter().map(Header::new);
        let checkpoint = &self.checkpoints[newest - 1];
        let signers = &self.committees[usize::try_from(checkpoint.epoch.0).unwrap()];
        let votes = votes(checkpoint, signers, &[0, 1, 2]);
        Page { entries: entries.collect(), headers: headers.collect(), votes, next: None }
    }

    /// All numbers of account 0, or all transfers that paid account 1.
    fn found(&self, is_wanted: impl Fn(&Leaf) -> bool) -> Vec<(u64, usize)> {
        let of = |(number, segment): (u64, &Segment)| {
            let leaves = segment.entries.iter().map(SegmentEntry::leaf).enumerate();
            let wanted = leaves.filter(|(_, leaf)| is_wanted(leaf)).map(|(position, _)| (number, position));
            wanted.collect::<Vec<_>>()
        };
        (1..).zip(&self.segments).flat_map(of).collect()
    }
}

fn votes(checkpoint: &Checkpoint, committee: &TestCommittee, members: &[usize]) -> Vec<Vote> {
    let vote = |member: &usize| {
        let vote = checkpoint.sign(&committee.keys[*member], &test_domain());
        Vote { authority: vote.authority.0.into(), signature: vote.signature.0.to_vec().into() }
    };
    members.iter().map(vote).collect()
}

fn segments() -> Vec<Segment> {
    let sign = |number: u64, transfer: Transfer| {
        SegmentEntry::Executed(TestAccount::numbered(number).sign(&test_domain(), transfer))
    };
    let pay = |from, to, number| sign(from, payment(id(from), id(to), 5, number).into());
    let void = |account, sequence| SegmentEntry::Void { account: id(account), sequence: SequenceNumber(sequence) };
    let out = |from, number| sign(from, redemption(id(from), PrimaryAddress::repeat_byte(7), 5, number).into());
    let many = sign(0, payout(id(0), &[(id(1), 3), (id(2), 4), (id(1), 5)], 2).into());
    let kind = PrimaryEventKind::Deposit { recipient: id(0), asset: Asset::ETHER, amount: Amount(1_000) };
    let deposit = SegmentEntry::Event(PrimaryEvent { index: TransactionIndex(1), kind });
    let segment = |events: Vec<SegmentEntry>, mut numbers: Vec<SegmentEntry>| {
        let key = |entry: &SegmentEntry| match entry {
            SegmentEntry::Executed(order) => (order.transfer.sender(), order.transfer.sequence()),
            SegmentEntry::Void { account, sequence } => (*account, *sequence),
            SegmentEntry::Event(_) => unreachable!("events are apart"),
            _ => unreachable!("it is no recovery, and nothing is private"),
        };
        numbers.sort_by_key(key);
        Segment { entries: events.into_iter().chain(numbers).collect() }
    };
    vec![
        segment(vec![deposit], vec![pay(0, 1, 0), pay(0, 2, 1), pay(1, 0, 0), void(1, 1), pay(2, 1, 0)]),
        segment(vec![], vec![many, void(0, 3), out(2, 1)]),
        segment(vec![], vec![pay(0, 1, 4), pay(1, 0, 2)]),
    ]
}

fn build() -> File {
    let archive = Archive::new();
    let committees = archive.committees.iter().map(|all| all.committee.members().to_vec()).collect();
    File { domain: test_domain().into(), committees, cases: cases(&archive) }
}

fn cases(archive: &Archive) -> Vec<Case> {
    let is_of = |account: u64| {
        move |leaf: &Leaf| match leaf {
            Leaf::Executed(transfer) => transfer.sender() == id(account),
            Leaf::Void(of, _) => *of == id(account),
            _ => false,
        }
    };
    let pays = |leaf: &Leaf| match leaf {
        Leaf::Executed(transfer) => transfer.receipts().any(|receipt| receipt.payment.recipient == id(1)),
        _ => false,
    };
    let (sent, received) = (archive.found(is_of(0)), archive.found(pays));
    let (all_sent, all_received) = (archive.page(&sent, 3), archive.page(&received, 3));
    let case = |name: &str, list: &List, page: Page, refused: Option<&str>| {
        let account = match list {
            List::Sent(_) => id(0),
            List::Received(_) => id(1),
        };
        let (account, refused) = (account.0.into(), refused.map(Into::into));
        Case { name: name.into(), account, list: list.clone(), counting: vec![1], page, refused }
    };
    let (from, begin) = (&List::Sent("0".into()), &List::Received("0.0".into()));
    let good = |name, list, page| case(name, list, page, None);
    let lie = |name, refused, change: &dyn Fn(&mut Page)| {
        let mut page = all_sent.clone();
        change(&mut page);
        case(name, from, page, Some(refused))
    };
    let received_lie = |name, refused, change: &dyn Fn(&mut Page)| {
        let mut page = all_received.clone();
        change(&mut page);
        case(name, begin, page, Some(refused))
    };
    let going_on = |page: &Page, next: &str| Page { next: Some(next.into()), ..page.clone() };
    let older = archive.page(&sent[..4], 2);
    let (newest, second) = (&archive.checkpoints[2], &archive.committees[1]);
    let flip = |bytes: &mut Bytes, at: usize| {
        let mut altered = bytes.to_vec();
        altered[at] ^= 1;
        *bytes = altered.into();
    };
    vec![
        good("all that an account sent", from, all_sent.clone()),
        good("what it sent from a number on", &List::Sent("3".into()), archive.page(&sent[3..], 3)),
        good("a page of what it sent", from, going_on(&archive.page(&sent[..2], 3), "2.0")),
        good("nothing more that it sent", &List::Sent("5".into()), archive.page(&[], 3)),
        good("all that an account received", begin, all_received.clone()),
        good("a page of what it received", begin, going_on(&archive.page(&received[..1], 3), "1.2")),
        good("a page in which nothing is found", begin, going_on(&archive.page(&[], 3), "2.0")),
        good("what it received from a place on", &List::Received("2.0".into()), archive.page(&received[2..], 3)),
        Case { counting: vec![0, 1], ..good("votes of the epoch before, which count", from, older.clone()) },
        case("votes of an epoch that has ended", from, older, Some("certificate")),
        lie("too few votes", "certificate", &|page| page.votes = votes(newest, second, &[0, 1])),
        lie("too many votes", "certificate", &|page| page.votes = votes(newest, second, &[0, 1, 2, 3])),
        lie("a vote twice", "certificate", &|page| page.votes = votes(newest, second, &[0, 1, 1])),
        lie("votes of another committee", "certificate", &|page| {
            page.votes = votes(newest, &archive.committees[0], &[0, 1, 2]);
        }),
        lie("an altered vote", "certificate", &|page| flip(&mut page.votes[1].signature, 3)),
        lie("an altered newest header", "certificate", &|page| page.headers[2].state.0[0] ^= 1),
        lie("no headers", "no-headers", &|page| page.headers.clear()),
        lie("an altered header", "unlinked", &|page| page.headers[1].cut.0[0] ^= 1),
        lie("a header left out", "unlinked", &|page| drop(page.headers.remove(1))),
        lie("the lowest header left out", "no-header", &|page| drop(page.headers.remove(0))),
        lie("a segment of a header altered", "unlinked", &|page| page.headers[0].segment.0[0] ^= 1),
        // The last byte of the memo.
        lie("an altered leaf", "not-proven", &|page| {
            let at = page.entries[1].leaf.len() - 1;
            flip(&mut page.entries[1].leaf, at);
        }),
        lie("an altered path", "not-proven", &|page| page.entries[0].siblings[0].0[0] ^= 1),
        lie("another direction", "not-proven", &|page| page.entries[0].directions = "0".into()),
        lie("a direction without a sibling", "not-proven", &|page| {
            page.entries[0].directions = (1_u64 << 63).to_string()
        }),
        lie("a shorter path", "not-proven", &|page| page.entries[0].siblings.truncate(1)),
        lie("an entry of another checkpoint", "not-proven", &|page| page.entries[0].checkpoint = "2".into()),
        lie("an entry of a checkpoint that is not shown", "no-header", &|page| page.entries[4].checkpoint = "4".into()),
        lie("an event", "other-leaf", &|page| page.entries[0] = archive.page(&[(1, 0)], 3).entries.remove(0)),
        lie("a gap", "gap", &|page| drop(page.entries.remove(2))),
        lie("a number twice", "gap", &|page| page.entries.insert(1, page.entries[0].clone())),
        lie("the first number left out", "gap", &|page| drop(page.entries.remove(0))),
        lie("another account's entry", "other-account", &|page| {
            let of_another = archive.found(is_of(1));
            page.entries[0] = archive.page(&of_another[..1], 3).entries.remove(0);
        }),
        received_lie("a payment to another account", "other-account", &|page| {
            page.entries[1] = archive.page(&sent[1..2], 3).entries.remove(0);
        }),
        received_lie("a payment twice", "unordered", &|page| page.entries.insert(1, page.entries[0].clone())),
        received_lie("another order", "unordered", &|page| page.entries.swap(0, 1)),
        received_lie("a list that does not go on", "unordered", &|page| page.next = Some("0.0".into())),
        received_lie("a list that goes back", "unordered", &|page| page.next = Some("2.0".into())),
        received_lie("a list that goes beyond the newest checkpoint", "unordered", &|page| {
            page.next = Some("4.0".into());
        }),
        case("entries before the place", &List::Received("2.0".into()), all_received.clone(), Some("unordered")),
    ]
}
