use std::sync::Mutex;

use fastpay_core::{AccountId, AccountKey, Digest, Ed25519Signature, MerklePath};
use fastpay_ledger_client::scripted::{COMMITTEE, History, ScriptedLedger};
use fastpay_ledger_client::{Client, ForkFound, GroupReader, GroupsError};
use fastpay_ledger_statement::{
    CompactDecision, Cursor, Deployment, EventKind, Header, MemberIndex, MemberKeys, Message, Receiver, Time,
    VerifiedGroup, VoteKind, VoteStatement, Wire,
};
use fastpay_testkit::TestCommittee;

fn bank() -> AccountKey {
    AccountKey::ed25519([1; 32])
}

fn account(number: u8) -> AccountId {
    AccountId::from_ed25519(&[number; 32])
}

async fn ledger() -> ScriptedLedger {
    ScriptedLedger::start(&TestCommittee::new(4).committee, &bank(), Time(1_000_000)).await
}

fn reader(ledger: &ScriptedLedger) -> GroupReader {
    let client = Client::new(&ledger.network()).unwrap();
    GroupReader::new(&client, Receiver::Committee(COMMITTEE)).unwrap()
}

fn fund(history: &mut History, number: u8) {
    history.fund(&bank(), &[(account(number), 10 * u128::from(number)), (account(number), 1)]);
}

/// The amounts that accounts were funded with, in order.
fn amounts(groups: &[VerifiedGroup]) -> Vec<u128> {
    let messages = groups.iter().flat_map(|group| &group.group().messages);
    let amount = |message: &Message| match message {
        Message::Event(event) => match &event.kind {
            EventKind::Funded(funding) => funding.amount.0,
            kind => panic!("{kind:?}"),
        },
        message => panic!("{message:?}"),
    };
    messages.map(amount).collect()
}

fn after(groups: &[VerifiedGroup]) -> Cursor {
    groups.last().unwrap().cursor()
}

/// Reads until the groups have as many amounts.
async fn read(reader: &mut GroupReader, mut due: Cursor, count: usize) -> (Vec<u128>, Cursor) {
    let mut all = Vec::new();
    while all.len() < count {
        let groups = reader.next(due).await.unwrap();
        if !groups.is_empty() {
            due = after(&groups);
        }
        all.extend(amounts(&groups));
    }
    (all, due)
}

/// Puts true votes of all members of the certificate, for something else, into it.
fn voted(of: &mut CompactDecision, header: Header, kind: VoteKind) {
    let Header { deployment, cluster, height, .. } = header;
    let round = of.certificate.round;
    let vote = VoteStatement { deployment, cluster, height, round, kind, value: Some(header.id()) };
    let mut keys: Vec<_> = (0..4_u8).map(|at| MemberKeys::from_seed([at + 1; 32])).collect();
    keys.sort_by_key(MemberKeys::public);
    for (member, signature) in &mut of.certificate.votes {
        *signature = keys[usize::from(member.0)].sign(vote.digest());
    }
}

async fn fork(reader: &mut GroupReader, mut due: Cursor) -> ForkFound {
    loop {
        match reader.next(due).await {
            Ok(groups) if groups.is_empty() => {}
            Ok(groups) => due = after(&groups),
            Err(GroupsError::Fork(fork)) => return *fork,
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test]
async fn groups_come_in_order_once_and_again_where_they_are_asked_for_again() {
    let ledger = ledger().await;
    let mut reader = reader(&ledger);
    (1..=3).for_each(|number| fund(&mut ledger.history(), number));
    let (all, due) = read(&mut reader, Cursor::default(), 6).await;
    assert_eq!(all, [10, 1, 20, 1, 30, 1]);
    assert!(reader.next(due).await.unwrap().is_empty(), "there is no other");
    fund(&mut ledger.history(), 4);
    let mut groups = Vec::new();
    while groups.is_empty() {
        groups = reader.next(due).await.unwrap();
    }
    assert_eq!(amounts(&groups), [40, 1]);
    assert_eq!(reader.next(due).await.unwrap(), groups, "it was not applied");
    assert_eq!(read(&mut reader, Cursor::default(), 8).await.0, [10, 1, 20, 1, 30, 1, 40, 1], "from the start");
    // A reader that begins where another one ended.
    let mut later = super::groups::reader(&ledger);
    assert_eq!(read(&mut later, due, 2).await.0, [40, 1]);
}

fn altered(groups: Vec<Vec<u8>>, alter: impl Fn(&mut CompactDecision)) -> Vec<Vec<u8>> {
    let altered = |encoded: Vec<u8>| {
        let mut decision = CompactDecision::decode(&encoded).unwrap();
        alter(&mut decision);
        decision.encode()
    };
    groups.into_iter().map(altered).collect()
}

#[tokio::test]
async fn a_member_that_lies_lags_or_is_away_delays_nothing() {
    type Lie = fn(u64, Vec<Vec<u8>>) -> Vec<Vec<u8>>;
    let lies: [(&str, Lie); 18] = [
        ("withholds", |_, _| Vec::new()),
        ("leaves a message out", |_, groups| altered(groups, |of| drop(of.group.messages.pop()))),
        ("repeats a message", |_, groups| {
            altered(groups, |of| of.group.messages.extend_from_within(..of.group.messages.len().min(1)))
        }),
        ("leaves groups out", |_, groups| groups.into_iter().skip(1).collect()),
        ("is of another height", |_, groups| altered(groups, |of| of.header.height.0 += 1)),
        ("has another time", |_, groups| altered(groups, |of| of.header.time.0 += 1)),
        ("has too few votes", |_, groups| altered(groups, |of| of.certificate.votes.truncate(2))),
        ("is of another round", |_, groups| altered(groups, |of| of.certificate.round += 1)),
        ("alters a message", |_, groups| {
            altered(groups, |of| {
                if let Some(Message::Event(event)) = of.group.messages.first_mut() {
                    event.index.0 += 1;
                }
            })
        }),
        ("is of another tree", |_, groups| {
            altered(groups, |of| of.path = MerklePath { directions: 1, siblings: vec![Digest::ZERO] })
        }),
        ("repeats a voter", |_, groups| altered(groups, |of| of.certificate.votes[1] = of.certificate.votes[0])),
        ("has an unknown voter", |_, groups| altered(groups, |of| of.certificate.votes[2].0 = MemberIndex(9))),
        ("has a forged certificate", |_, groups| {
            altered(groups, |of| of.certificate.votes[0].1 = Ed25519Signature([7; 64]))
        }),
        ("counts a prevote", |_, groups| altered(groups, |of| voted(of, of.header, VoteKind::Prevote))),
        ("has the certificate of another header", |_, groups| {
            let other = |of: &CompactDecision| Header { state: Digest::ZERO, ..of.header };
            altered(groups, |of| voted(of, other(of), VoteKind::Precommit))
        }),
        ("is of another deployment", |_, groups| altered(groups, |of| of.header.deployment = Deployment(Digest::ZERO))),
        ("replays what it handed over before", |from, groups| {
            static BEFORE: Mutex<Vec<Vec<u8>>> = Mutex::new(Vec::new());
            let mut before = BEFORE.lock().unwrap();
            if from == 1 {
                before.clone_from(&groups);
                return groups;
            }
            before.clone()
        }),
        ("is no decision", |_, _| vec![vec![1, 2, 3]]),
    ];
    for (what, lie) in lies {
        for liar in [0, 3] {
            let ledger = ledger().await;
            ledger.lie(liar, lie);
            let mut reader = reader(&ledger);
            fund(&mut ledger.history(), 1);
            let (all, due) = read(&mut reader, Cursor::default(), 2).await;
            assert_eq!(all, [10, 1], "member {liar} {what}");
            fund(&mut ledger.history(), 2);
            assert_eq!(read(&mut reader, due, 2).await.0, [20, 1], "member {liar} {what}");
            assert!(ledger.asked(liar) > 0);
        }
    }
    let mut ledger = ledger().await;
    let mut reader = reader(&ledger);
    ledger.kill(2);
    fund(&mut ledger.history(), 1);
    let (all, due) = read(&mut reader, Cursor::default(), 2).await;
    assert_eq!(all, [10, 1]);
    // It comes back, and another one goes.
    ledger.revive(2).await;
    ledger.kill(0);
    ledger.kill(1);
    fund(&mut ledger.history(), 2);
    assert_eq!(read(&mut reader, due, 2).await.0, [20, 1]);
}

#[tokio::test]
async fn a_group_that_one_member_alone_hands_over_waits_for_another_one() {
    let ledger = ledger().await;
    fund(&mut ledger.history(), 1);
    let groups = ledger.history().decisions().len();
    fund(&mut ledger.history(), 2);
    (0..3).for_each(|member| ledger.withhold_after(member, groups));
    let mut reader = reader(&ledger);
    let (all, due) = read(&mut reader, Cursor::default(), 2).await;
    assert_eq!(all, [10, 1]);
    assert!(reader.next(due).await.unwrap().is_empty(), "f + 1 members have no other");
    ledger.recover(1);
    assert_eq!(read(&mut reader, due, 2).await.0, [20, 1]);
}

#[tokio::test(start_paused = true)]
async fn fewer_than_f_plus_one_members_are_a_cluster_that_cannot_be_reached() {
    let mut ledger = ledger().await;
    let mut reader = reader(&ledger);
    (0..3).for_each(|member| ledger.kill(member));
    let error = reader.next(Cursor::default()).await.unwrap_err();
    assert!(matches!(error, GroupsError::Unreachable { needed: 2, .. }), "{error}");
}

#[tokio::test]
async fn two_groups_of_one_number_stop_the_reader_and_name_who_signed_both() {
    for (other_round, named) in [(0, true), (1, false)] {
        let ledger = ledger().await;
        fund(&mut ledger.history(), 1);
        let mut other = ledger.history().clone();
        fund(&mut ledger.history(), 2);
        other.vote(other_round, [1, 2, 3]);
        fund(&mut other, 3);
        ledger.defect(3, other);
        let mut reader = reader(&ledger);
        let fork = fork(&mut reader, Cursor::default()).await;
        let members = ledger.network().layout(fork.cluster).unwrap();
        let keys = members.members(fork.cluster).unwrap().keys().to_vec();
        assert_eq!(fork.signers, keys[1..3]);
        assert_eq!(fork.traitors, if named { keys[1..3].to_vec() } else { Vec::new() });
        assert!(fork.headers.is_some_and(|[(first, _), (second, _)]| first != second));
        let text = fork.to_string();
        assert!(text.contains(&keys[1].to_string()) && text.contains("traitors") == named, "{text}");
    }
}

#[tokio::test]
async fn a_history_that_parted_earlier_is_traced_back_to_where_it_did() {
    let ledger = ledger().await;
    fund(&mut ledger.history(), 1);
    let mut other = ledger.history().clone();
    let number = other.decisions().len() as u64 + 1;
    (2..=4).for_each(|number| fund(&mut ledger.history(), number));
    let mut reader = reader(&ledger);
    let (all, due) = read(&mut reader, Cursor::default(), 8).await;
    assert_eq!(all.len(), 8);
    // It was silent meanwhile, and goes on in its own history.
    other.vote(0, [0, 2, 3]);
    (12..=16).for_each(|number| fund(&mut other, number));
    ledger.defect(0, other);
    let found = fork(&mut reader, due).await;
    assert_eq!((found.number, found.traitors.len()), (number, 2), "{found}");
    // A reader that remembers only what was applied last knows that there are two histories, and no more.
    let mut later = super::groups::reader(&ledger);
    let found = fork(&mut later, due).await;
    assert_eq!((found.headers, found.traitors.len()), (None, 0), "{found}");
    assert!(found.to_string().contains("two histories"), "{found}");
}

#[tokio::test]
async fn a_fork_is_found_also_where_both_groups_are_empty() {
    let ledger = ledger().await;
    let mut other = ledger.history().clone();
    for (history, ms) in [(&mut *ledger.history(), 20_000), (&mut other, 20_001)] {
        history.wait(ms);
        history.decide(&[]);
    }
    ledger.defect(1, other);
    let found = fork(&mut reader(&ledger), Cursor::default()).await;
    assert_eq!(found.traitors.len(), 3, "{found}");
}
