//! Money between shards, through a coordinator and without one.

use fastpay_core::{AccountId, AccountKey, Amount, Asset, Balance};
use fastpay_ledger_client::ClientError;
use fastpay_ledger_member::audit::audit;
use fastpay_ledger_statement::{Action, ClusterId, CommitteeNumber, Outcome, Rejection, StateKey};

use super::{ledger, until, writer};

/// An account whose reserve another shard keeps.
fn elsewhere(net: &fastpay_ledger_member::localnet::Localnet, than: ClusterId) -> AccountKey {
    let partition = &net.network().genesis().partition;
    let mut keys = (0..=255).map(|seed| AccountKey::ed25519([seed; 32]));
    keys.find(|key| partition.of_reserve(&key.account()) != than).unwrap()
}

#[tokio::test(flavor = "multi_thread")]
async fn money_moves_between_shards_and_to_a_committee_and_the_audit_agrees() {
    let (_folder, mut net) = ledger(&[1], &[2, 3]);
    net.start_and_wait().await.unwrap();
    let client = net.client();
    let (payer, asset) = (writer(), Asset::ETHER);
    let shard = client.partition().of_reserve(&payer.account());
    let payee = elsewhere(&net, shard);
    let transfer = |amount| Action::Transfer { to: payee.account(), asset, amount: Amount(amount) };

    // Reserves are opened by their own key, and spent by it alone.
    let closed = client.instruct(&payer, shard, None, &transfer(1)).await.unwrap_err();
    assert!(matches!(closed, ClientError::Rejected(Rejection::NotOpen)), "{closed}");
    assert_eq!(client.instruct(&payer, shard, None, &Action::Open).await.unwrap(), Outcome::Opened);
    let none = client.instruct(&payer, shard, None, &transfer(1_001)).await.unwrap_err();
    assert!(matches!(none, ClientError::Rejected(Rejection::ReserveTooLow(Amount(1_000)))), "{none}");
    let wrong = if shard == ClusterId(2) { ClusterId(3) } else { ClusterId(2) };
    let elsewhere = client.instruct(&payer, wrong, None, &transfer(1)).await.unwrap_err();
    assert!(matches!(elsewhere, ClientError::Rejected(Rejection::OtherShard(_))), "{elsewhere}");

    // Three rounds, and one.
    for (via, amount) in [(Some(ClusterId(1)), 100), (None, 20)] {
        assert_eq!(client.instruct(&payer, shard, via, &transfer(amount)).await.unwrap(), Outcome::Transferred);
    }
    let fund = Action::Fund { committee: CommitteeNumber(0), account: AccountId([5; 32]), asset, amount: Amount(300) };
    assert_eq!(client.instruct(&payer, shard, Some(ClusterId(1)), &fund).await.unwrap(), Outcome::Funding);
    let omnibus = StateKey::Omnibus(CommitteeNumber(0), asset);
    let credited = |amount| Balance::ZERO.credit(Amount(amount));
    until(60, "both credits", async || {
        let held = client.reserve(payee.account(), asset).await.unwrap();
        let funded = client.entry::<Balance>(&omnibus).await.unwrap();
        (held == credited(120) && funded == Some(credited(300))).then_some(())
    })
    .await;
    assert_eq!(client.reserve(payer.account(), asset).await.unwrap(), credited(580));
    let audit = audit(&client).await.unwrap();
    assert!(audit.differences.values().all(|difference| *difference == Balance::ZERO), "{:?}", audit.differences);
    assert_eq!(audit.overdrafts, []);
}
