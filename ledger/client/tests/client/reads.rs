use fastpay_core::{AccountId, AccountKey, TransactionIndex};
use fastpay_ledger_client::scripted::{COMMITTEE, ScriptedLedger};
use fastpay_ledger_client::{ClientError, CommitteeClient};
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
