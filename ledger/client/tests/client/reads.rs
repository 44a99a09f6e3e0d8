use fastpay_core::{AccountId, AccountKey, TransactionIndex};
use fastpay_ledger_client::scripted::{COMMITTEE, ScriptedLedger};
use fastpay_ledger_client::{ClientError, CommitteeClient, Network, NetworkError};
use fastpay_ledger_statement::Time;
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
