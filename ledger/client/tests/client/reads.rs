use fastpay_core::{AccountId, AccountKey, Committees, Epoch, TransactionIndex};
use fastpay_ledger_client::scripted::{COMMITTEE, PARAMETERS, ScriptedLedger};
use fastpay_ledger_client::{
    ANNOUNCEMENTS_READ_MAX, ClientError, CommitteeClient, Network, NetworkError, OpenAnnouncements,
};
use fastpay_ledger_statement::{StateKey, Time};
use fastpay_testkit::TestCommittee;

#[tokio::test]
async fn no_member_can_show_a_committee_an_older_state_than_honest_ones_have() {
    let bank = AccountKey::ed25519([1; 32]);
    let mut ledger = ScriptedLedger::start(&TestCommittee::new(4).committee, &bank, Time(1_000_000)).await;
    let folder = tempfile::tempdir().unwrap();
    let committee = CommitteeClient::open(&ledger.write(folder.path()), COMMITTEE).unwrap();
    let older = ledger.history().clone();
    let fund = |ledger: &ScriptedLedger| ledger.history().fund(&bank, &[(AccountId([7; 32]), 5)]);
    for liar in 0..4 {
        fund(&ledger);
        ledger.defect(liar, older.clone());
        for _ in 0..5 {
            let newest = committee.newest_event(Time(0)).await.unwrap();
            assert_eq!(newest, TransactionIndex(liar as u64 + 1), "member {liar} lies");
        }
        ledger.serve_again(liar);
    }
    // One that is away is not needed, and one alone proves nothing.
    ledger.kill(0);
    assert_eq!(committee.newest_event(Time(0)).await.unwrap(), TransactionIndex(4));
    (1..3).for_each(|member| ledger.kill(member));
    let alone = committee.newest_event(Time(0)).await;
    assert!(matches!(alone, Err(ClientError::NoAnswer { .. })), "{alone:?}");
}

#[tokio::test]
async fn an_address_with_a_scope_is_refused() {
    let bank = AccountKey::ed25519([1; 32]);
    let ledger = ScriptedLedger::start(&TestCommittee::new(4).committee, &bank, Time(1_000_000)).await;
    let folder = tempfile::tempdir().unwrap();
    let text = std::fs::read_to_string(ledger.write(folder.path())).unwrap();
    let unused = "127.0.0.1:1";
    assert!(Network::parse(&text.replacen(unused, "[fe80::1]:1", 1)).is_ok());
    let scoped = Network::parse(&text.replacen(unused, "[fe80::1%3]:1", 1)).unwrap_err();
    assert!(matches!(scoped, NetworkError::Scope(address) if address.to_string() == "[fe80::1%3]:1"), "{scoped}");
}

#[tokio::test]
async fn committees_are_followed_as_far_as_members_show_them_also_if_some_show_older_states() {
    let bank = AccountKey::ed25519([1; 32]);
    let mut ledger = ScriptedLedger::start(&TestCommittee::new(4).committee, &bank, Time(1_000_000)).await;
    let folder = tempfile::tempdir().unwrap();
    let committee = CommitteeClient::open(&ledger.write(folder.path()), COMMITTEE).unwrap();
    let first = TestCommittee::with(4, committee.domain(), Epoch(0));
    let next = first.rotated();
    // Two answer: one lies, and the other one lags in the second question.
    (2..4).for_each(|member| ledger.kill(member));
    (0..2).for_each(|member| ledger.read_no_further_of(member, StateKey::Committee(COMMITTEE, Epoch(1))));
    ledger.history().rotate(&bank, &first.keys, (&next.committee, &next.keys), Epoch(1)).unwrap();
    assert_eq!(committee.current_epoch(Time(0)).await.unwrap().epoch, Epoch(1));
    let known = Committees::new(committee.first().clone()).unwrap();
    assert_eq!(committee.committees(known.clone(), Time(0)).await.unwrap().current().epoch(), Epoch(0));
    ledger.recover(1);
    assert_eq!(**committee.committees(known, Time(0)).await.unwrap().current(), next.committee);
}

/// The first one of a stolen quorum counts down first.
#[tokio::test]
async fn no_number_of_announcements_hides_the_first_one() {
    let bank = AccountKey::ed25519([1; 32]);
    let ledger = ScriptedLedger::start(&TestCommittee::new(4).committee, &bank, Time(1_000_000)).await;
    let folder = tempfile::tempdir().unwrap();
    let committee = CommitteeClient::open(&ledger.write(folder.path()), COMMITTEE).unwrap();
    let first = TestCommittee::with(4, committee.domain(), Epoch(0));
    let next = first.rotated();
    assert_eq!(committee.announcements(Time(0)).await.unwrap(), OpenAnnouncements::default());
    let announce = |now: &TestCommittee, next: &TestCommittee| {
        let mut history = ledger.history();
        let epoch = next.committee.epoch();
        let id = history.announce(&bank, &now.keys, (&next.committee, &next.keys), epoch).unwrap();
        (id, history.time())
    };
    let (id, announced_at) = announce(&first, &next);
    for _ in 0..ANNOUNCEMENTS_READ_MAX {
        announce(&first, &next);
    }
    let open = committee.announcements(Time(0)).await.unwrap();
    assert_eq!((open.first.len(), open.further), (ANNOUNCEMENTS_READ_MAX, 1));
    assert_eq!((open.first[0].0, open.first[0].1.announced_at), (id, announced_at));
    // Those that have ended or lapsed take no place.
    ledger.history().install(&bank, &next.keys, id).unwrap();
    assert_eq!(committee.announcements(Time(0)).await.unwrap(), OpenAnnouncements::default());
    let after = next.rotated();
    announce(&next, &after);
    ledger.history().wait(PARAMETERS.announced_delay_ms + PARAMETERS.lapse_ms);
    let (id, announced_at) = announce(&next, &after);
    let open = committee.announcements(announced_at).await.unwrap();
    assert_eq!((open.first.iter().map(|(id, _)| *id).collect::<Vec<_>>(), open.further), (vec![id], 0));
}
