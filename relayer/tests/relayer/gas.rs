//! What a redemption costs beyond others, and who pays for it: first orders, new payees, payees with code that is there for
//! one block, and what the contract queues.

use alloy::primitives::{Address, U256};
use fastpay_core::{Amount, Asset, Redemption, Transfer};
use fastpay_ethereum::TRANSACTION_GAS_MAX;
use fastpay_relayer::{BelowCost, Relayer};
use fastpay_testkit::anvil::Mining;
use serde_json::{Value, json};

use crate::scene::{ETHER, Scene};

/// Burns all gas that it gets.
const BURNS: &str = "0xfe";
/// Spends gas until fewer than 2,000 are left, and takes what it gets.
const SPENDS: &str = "0x5b6107d05a116000570000";

fn payees(count: u8) -> Vec<Address> {
    (1..=count).map(|number| Address::from([number; 20])).collect()
}

/// An order of the owner to each, with the numbers from `first` on.
fn publish(scene: &Scene, payees: &[Address], first: u64, fee: u128) {
    for (sequence, payee) in (first..).zip(payees) {
        let redemption = Redemption {
            recipient: *payee,
            amount: Amount(fee + 9),
            memo: fastpay_core::Memo::repeat_byte(0xee),
            ..scene.redemption(sequence, fee)
        };
        scene.show(&scene.certify(Transfer::Redemption(redemption)));
    }
}

/// Sends what waits, has this code at the payees when it gets into a block, and settles it. Returns how many redemptions
/// were in each transaction.
async fn relay(scene: &Scene, relayer: &mut Relayer, code: &str, at: &[Address]) -> Vec<usize> {
    relayer.tick(true).await.unwrap();
    let sizes = relayer.state().bundles.iter().map(|bundle| bundle.items.len()).collect();
    assert!(relayer.state().bundles.iter().all(|bundle| bundle.submission.gas_limit <= TRANSACTION_GAS_MAX));
    for payee in at {
        scene.set_code(*payee, code).await;
    }
    scene.anvil.mine(3).await;
    relayer.tick(true).await.unwrap();
    for payee in at {
        scene.set_code(*payee, "0x").await;
    }
    assert_eq!((relayer.state().bundles.len(), relayer.state().items.len()), (0, 0));
    assert!(relayer.metrics().text().contains("fastpay_relayer_reverted_total 0\n"));
    sizes
}

async fn gas_price(scene: &Scene) -> u128 {
    let price: U256 = scene.anvil.request("eth_gasPrice", json!([])).await;
    price.to()
}

#[tokio::test]
async fn a_hundred_payouts_go_in_one_transaction_and_no_hundred_payees_make_it_revert() {
    let scene = Scene::new(Mining::Manual).await;
    // A transaction has half a block at most, and no more than EIP-7825 says.
    let _: Value =
        scene.anvil.request("evm_setBlockGasLimit", json!([format!("{:#x}", 2 * TRANSACTION_GAS_MAX)])).await;
    scene.anvil.mine(1).await;
    let (payees, mut relayer) = (payees(100), scene.relayer().await);
    for payee in &payees {
        let _: Value = scene.anvil.request("anvil_setBalance", json!([payee, "0x1"])).await;
    }
    publish(&scene, &payees[..1], 0, 0);
    relay(&scene, &mut relayer, "0x", &[]).await;
    publish(&scene, &payees, 1, 0);
    assert_eq!(relay(&scene, &mut relayer, BURNS, &payees).await, [100]);
    assert_eq!(scene.primary.total_claims(Asset::ETHER).await.unwrap(), U256::from(900));
}

#[tokio::test]
async fn as_many_as_fit_with_fees_and_first_orders_hold_whatever_their_payees_burn() {
    let scene = Scene::new(Mining::Manual).await;
    // A transaction has half a block at most, and no more than EIP-7825 says.
    let _: Value =
        scene.anvil.request("evm_setBlockGasLimit", json!([format!("{:#x}", 2 * TRANSACTION_GAS_MAX)])).await;
    scene.anvil.mine(1).await;
    let (payees, mut relayer) = (payees(100), scene.relayer().await);
    for number in 1..=100_u8 {
        let owner = fastpay_core::AccountKey::ed25519([number; 32]);
        let recipient = payees[usize::from(number) - 1];
        let redemption = Redemption { recipient, amount: Amount(9), ..scene.redemption(u64::MAX - 1, 4) };
        scene.show(&scene.certify_of(&owner, redemption));
    }
    let sizes = relay(&scene, &mut relayer, BURNS, &payees).await;
    assert_eq!(sizes, [86, 14]);
    assert_eq!(scene.primary.total_claims(Asset::ETHER).await.unwrap(), U256::from(500));
}

#[tokio::test]
async fn a_first_order_and_a_new_payee_are_paid_for_and_the_quoted_fee_suffices() {
    let mut scene = Scene::new(Mining::Manual).await;
    scene.config.bundle.below_cost = BelowCost::Leave;
    let (price, new) = (gas_price(&scene).await, payees(1));
    let mut relayer = scene.relayer().await;
    // It would suffice for an account and a payee that are known.
    publish(&scene, &new, 0, 95_000 * price);
    relayer.tick(true).await.unwrap();
    assert_eq!((relayer.state().bundles.len(), relayer.state().totals.below_cost), (0, 1));
    // Less than what is quoted.
    publish(&scene, &new, 1, 125_000 * price);
    assert_eq!(relay(&scene, &mut relayer, "0x", &[]).await, [1]);
    publish(&scene, &new, 2, 95_000 * price);
    assert_eq!(relay(&scene, &mut relayer, "0x", &[]).await, [1]);
    assert_eq!(relayer.state().totals.redeemed, 2);
}

#[tokio::test]
async fn code_that_is_there_for_one_block_is_learnt_from() {
    let scene = Scene::new(Mining::Manual).await;
    let (payees, mut relayer) = (payees(5), scene.relayer().await);
    publish(&scene, &payees, 0, 1);
    assert_eq!(relay(&scene, &mut relayer, SPENDS, &payees[..2]).await, [5]);
    // Any of them may have been it.
    assert_eq!(relayer.state().payees, payees.iter().map(|payee| (*payee, 0)).collect());
    drop(relayer);
    let mut relayer = scene.relayer().await;
    publish(&scene, &payees, 10, 1);
    assert_eq!(relay(&scene, &mut relayer, SPENDS, &payees[..1]).await, [1; 5]);
    let spent = relayer.state().payees[&payees[0]];
    assert!((100_000..120_000).contains(&spent), "{spent}");
    assert_eq!(relayer.state().payees.len(), 1, "the others are acquitted");
    publish(&scene, &payees, 20, 1);
    let mut sizes = relay(&scene, &mut relayer, "0x", &[]).await;
    sizes.sort_unstable();
    assert_eq!(sizes, [1, 4]);
    // One by itself is measured, too, where it had no code a moment before.
    publish(&scene, &payees[4..], 30, 1);
    assert_eq!(relay(&scene, &mut relayer, SPENDS, &payees[4..]).await, [1]);
    assert!(relayer.state().payees[&payees[4]] > 100_000);
}

#[tokio::test]
async fn what_is_queued_is_executed_where_its_fee_covers_that_and_is_left_after_a_week() {
    let mut scene = Scene::new(Mining::Manual).await;
    let price = gas_price(&scene).await;
    let (cheap, good) = (20_000 * price, 300_000 * price);
    let mut relayer = scene.relayer().await;
    for (sequence, percent, fee) in [(0, 60, 1), (1, 18, cheap), (2, 19, good)] {
        scene.publish_worth(sequence, ETHER * percent / 100, fee);
        relayer.tick(true).await.unwrap();
        scene.anvil.mine(3).await;
        relayer.tick(true).await.unwrap();
    }
    assert_eq!(relayer.state().counts(), (0, 2));
    let due = relayer.state().items.iter().filter_map(|item| item.queued).map(|queued| queued.executable_at).max();
    let now = scene.primary.latest_head().await.unwrap().timestamp();
    drop(relayer);
    scene.config.bundle.below_cost = BelowCost::Leave;
    let mut relayer = scene.relayer().await;
    scene.pass(due.unwrap() - now).await;
    relayer.tick(true).await.unwrap();
    let under_way: Vec<_> = relayer.state().bundles.iter().map(|bundle| bundle.items[0].sequence.0).collect();
    assert_eq!(under_way, [2]);
    scene.pass(7 * 86_400).await;
    relayer.tick(true).await.unwrap();
    assert_eq!((relayer.state().counts(), relayer.state().totals.below_cost), ((0, 0), 1));
    assert_eq!(relayer.state().totals.executed, 1);
}
