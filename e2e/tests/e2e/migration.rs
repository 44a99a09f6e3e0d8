//! A move to a new contract, as docs/CONTRACT.md describes it: there is no upgrade. Both committees run meanwhile.

use alloy::primitives::{Address, U256};
use fastpay_client::ClientError;
use fastpay_core::{Asset, SequenceNumber};
use fastpay_e2e::{Network, OUTFLOW_DELAY_S, PATIENCE, Place, Ports, User, audit, wait_for};
use fastpay_rpc::Refusal;

use crate::scene::{layout, on_chain};

fn ether(amount: u64) -> U256 {
    U256::from(amount) * U256::from(10).pow(U256::from(18))
}

/// Checks that an address has at least this much more than before.
async fn wait_until_has(network: &Network, owner: Address, wei: U256) {
    wait_for(PATIENCE, async || {
        let found = network.chain().unwrap().ether_of(owner).await.map_err(|error| error.to_string())?;
        if found >= wei { Ok(()) } else { Err(format!("{owner} has {found} wei of {wei}")) }
    })
    .await
    .unwrap();
}

async fn total_of(network: &Network, accounts: &[fastpay_core::AccountId]) -> String {
    let lines = audit(network, accounts, &[Asset::ETHER]).await.unwrap();
    assert!(lines.iter().all(|line| line.ok), "{lines:?}");
    lines[0].contract_total.to_string()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn everybody_moves_to_a_new_contract_while_both_run() {
    let mut old = on_chain("before").await;
    old.start_authorities().await.unwrap();
    old.start_relayer().unwrap();
    // An Ethereum account, which is paid to its own address, and an Ed25519 account, whose owner names one.
    let alice = User::new(&old, "alice").await.unwrap();
    let bob = User::new(&old, "bob").await.unwrap();
    let own = alice.import_rich_key("own", 0).await.unwrap();
    let other = bob.new_ed25519_key("other").await.unwrap();
    let (address, exit) = (own.ethereum_address().unwrap(), Address::repeat_byte(0xe1));
    alice.fastpay(["deposit", "10", "--wait", "240"]).await.unwrap();
    alice.fastpay(["pay", &other.to_string(), "3"]).await.unwrap();

    // 1. The new contract is deployed and verified, and its authorities run. Its keys are new.
    let chain = old.chain.take().unwrap();
    let place = Place::temporary("after").unwrap();
    let mut new = Network::on_chain(place, Ports::take().unwrap(), layout(), chain, None).await.unwrap();
    let (before, after) = (old.contract().unwrap(), new.contract().unwrap());
    assert_ne!(before, after);
    new.chain().unwrap().verify(new.place(), after).unwrap();
    new.start_authorities().await.unwrap();
    new.start_relayer().unwrap();

    // 2. The old committee continues to make payments.
    bob.fastpay(["pay", &own.to_string(), "1"]).await.unwrap();
    // 3. A redemption to the new contract's address would be lost: the wallet signs nothing.
    let refused = alice.try_fastpay(["redeem", "1", "--to", &after.to_string()]).await.unwrap();
    assert!(!refused.status.success() && refused.err.contains("is a contract of FastPay"), "{}", refused.err);
    bob.fastpay(["redeem", "2", "--to", &exit.to_string(), "--wait", "240"]).await.unwrap();
    wait_until_has(&new, exit, ether(2)).await;
    // The old committee's certificates are not valid at the new one.
    let client = &old.clients().unwrap()[0];
    let certificate = client.shard_of(&other).certificate(other, SequenceNumber(1)).await.unwrap();
    let newcomer = &new.clients().unwrap()[0];
    let answer = newcomer.shard_of(&other).confirm(&certificate).await;
    assert!(matches!(answer, Err(ClientError::Refused(Refusal::Invalid(_)))), "{answer:?}");

    // 4. A large amount is queued as a whole.
    let queued = alice.fastpay(["redeem", "8", "--to", &address.to_string(), "--wait", "60"]).await.unwrap();
    assert!(queued["queued"]["executableAt"].is_u64(), "{queued}");
    let spent = new.chain().unwrap().ether_of(address).await.unwrap();
    new.chain().unwrap().pass(OUTFLOW_DELAY_S + 100).await.unwrap();
    wait_until_has(&new, address, spent + ether(8)).await;

    // Each deposits into its account on the new contract, from the address that was paid.
    let there = User::new(&new, "alice").await.unwrap();
    assert_eq!(there.import_rich_key("own", 0).await.unwrap(), own, "the account is the same one");
    there.fastpay(["deposit", "8", "--wait", "240"]).await.unwrap();
    there.fastpay(["pay", &other.to_string(), "5"]).await.unwrap();

    // 5. The old contract is empty, and nothing is missing.
    assert_eq!(total_of(&new, &[own, other]).await, ether(8).to_string());
    old.chain = new.chain.take();
    assert_eq!(total_of(&old, &[own, other]).await, "0");
    assert_eq!(old.chain().unwrap().ether_of(before).await.unwrap(), U256::ZERO);
}
