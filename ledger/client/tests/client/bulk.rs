use std::sync::Arc;
use std::time::Duration;

use fastpay_core::AccountKey;
use fastpay_ledger_client::scripted::{CLUSTER, ScriptedLedger, Submits};
use fastpay_ledger_client::{Bulk, Client, ClientError};
use fastpay_ledger_statement::{Action, Time};
use fastpay_testkit::TestCommittee;

#[tokio::test]
async fn a_member_whose_replies_settle_nothing_is_left_for_the_next_one() {
    let bank = AccountKey::ed25519([1; 32]);
    let ledger = ScriptedLedger::start(&TestCommittee::new(4).committee, &bank, Time(1_000_000)).await;
    ledger.submits(Submits::SettleNothing);
    let mut bulk = Bulk::new(Arc::new(Client::new(&ledger.network()).unwrap()), CLUSTER, 0);
    let request = ledger.history().sign(&bank, Action::Open);
    bulk.send(vec![request]).await;
    let settled = tokio::time::timeout(Duration::from_secs(60), bulk.settled()).await.unwrap();
    assert!(matches!(&settled, Err(ClientError::NoAnswer { last, .. }) if last == "it settles nothing"), "{settled:?}");
    assert_eq!(bulk.waiting(), 1);
}
