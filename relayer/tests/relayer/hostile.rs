//! Payees and tokens that are cheap where they are tried and burn all they get on the chain, and transactions that no node
//! takes: honest redemptions are paid beside them, and nothing is ever wedged.

use std::time::Duration;

use alloy::primitives::{Address, Bytes, U256};
use alloy::sol_types::{SolCall, SolValue};
use fastpay_core::{AccountKey, Amount, Asset, Redemption, Transfer};
use fastpay_ethereum::{Call, IFastPay, IToken, Offer, Sender};
use fastpay_relayer::{Assets, BelowCost, Relayer, State, status_json, status_text};
use fastpay_testkit::anvil::{LyingNode, Mining, rich_key};
use serde_json::{Value, json};

use crate::scene::{ETHER, RECIPIENT, Scene, serving};

const PAYEE: Address = Address::repeat_byte(0xba);
/// Burns all gas that it gets.
const BURNS: &str = "0xfe";
/// Burns where gas has a price, as it has none in a trial without fees.
const BURNS_AT_A_PRICE: &str = "0x3a600557005bfe";
/// Burns in every second block.
const BURNS_IN_ODD_BLOCKS: &str = "0x43600116600857005bfe";
/// Takes what it gets.
const STOPS: &str = "0x00";
/// Spends gas until fewer than 2,000 are left, and takes what it gets.
const SPENDS: &str = "0x5b6107d05a116000570000";
/// The same in every second block.
const SPENDS_IN_ODD_BLOCKS: &str = "0x43600116600857005b6107d05a1160085700";
const REVERTS: &str = "0x60006000fd";

/// Mines until what is under way is final, and settles it. Returns how many transactions there were.
async fn settle(scene: &Scene, relayer: &mut Relayer) -> usize {
    let count = relayer.state().bundles.len();
    scene.anvil.mine(3).await;
    relayer.tick(true).await.unwrap();
    count
}

/// Continues until no transaction is in flight.
async fn settle_all(scene: &Scene, relayer: &mut Relayer) -> usize {
    let mut count = 0;
    for _ in 0..20 {
        if relayer.state().bundles.is_empty() {
            return count;
        }
        count += settle(scene, relayer).await;
    }
    panic!("{:?}", relayer.state().bundles);
}

fn counted(relayer: &Relayer, name: &str) -> u64 {
    let text = relayer.metrics().text();
    let line = text.lines().find(|line| line.starts_with(&format!("fastpay_relayer_{name}_total "))).unwrap();
    line.rsplit(' ').next().unwrap().parse().unwrap()
}

/// Three honest orders of a tenth of an ETH, and six of a wei to [`PAYEE`].
fn publish_dust(scene: &Scene) {
    for sequence in 0..3 {
        scene.publish_worth(sequence, ETHER / 10, 1);
    }
    for sequence in 3..9 {
        let dust = Redemption { recipient: PAYEE, amount: Amount(1), ..scene.redemption(sequence, 0) };
        scene.show(&scene.certify(Transfer::Redemption(dust)));
    }
}

#[tokio::test]
async fn dust_to_a_payee_that_burns_gas_holds_nobody_up() {
    for (tried, mined) in [
        (BURNS_AT_A_PRICE, BURNS_AT_A_PRICE),
        (BURNS_IN_ODD_BLOCKS, BURNS_IN_ODD_BLOCKS),
        (BURNS, BURNS),
        (STOPS, BURNS),
        (STOPS, REVERTS),
        (BURNS, STOPS),
    ] {
        let scene = Scene::new(Mining::Manual).await;
        publish_dust(&scene);
        scene.set_code(PAYEE, tried).await;
        let mut relayer = scene.relayer().await;
        relayer.tick(true).await.unwrap();
        scene.set_code(PAYEE, mined).await;
        let transactions = settle_all(&scene, &mut relayer).await;
        let paid = scene.primary.ether_balance(RECIPIENT).await.unwrap();
        assert_eq!(paid, U256::from(3 * (ETHER / 10 - 1)), "{tried} {mined}");
        assert_eq!((relayer.state().totals.redeemed, relayer.state().items.len()), (9, 0), "{tried} {mined}");
        // One for the honest, and one for each that pays a contract.
        assert_eq!((transactions, counted(&relayer, "reverted")), (7, 0), "{tried} {mined}");
    }
}

/// Publishes an order of the owner to [`PAYEE`] whose fee pays for so much gas, and tells the relayer's loop of it once.
async fn offer_to_payee(scene: &Scene, relayer: &mut Relayer, sequence: u64, gas: u128) {
    let price: U256 = scene.anvil.request("eth_gasPrice", json!([])).await;
    let fee = gas * price.to::<u128>();
    let redemption = Redemption { recipient: PAYEE, amount: Amount(fee + 7), ..scene.redemption(sequence, fee) };
    scene.show(&scene.certify(Transfer::Redemption(redemption)));
    relayer.tick(true).await.unwrap();
}

#[tokio::test]
async fn a_payee_that_spends_its_allowance_pays_for_it_from_the_second_time_on() {
    for code in [SPENDS, SPENDS_IN_ODD_BLOCKS, BURNS] {
        let mut scene = Scene::new(Mining::Manual).await;
        scene.config.bundle.below_cost = BelowCost::Leave;
        let mut relayer = scene.relayer().await;
        scene.set_code(PAYEE, code).await;
        // The next block has an odd number.
        let newest: U256 = scene.anvil.request("eth_blockNumber", json!([])).await;
        scene.anvil.mine(newest.to::<u64>() % 2).await;
        // Once it is paid with a fee for an ordinary payee.
        offer_to_payee(&scene, &mut relayer, 0, 100_000).await;
        assert_eq!(relayer.state().bundles.len(), 1, "{code}");
        settle_all(&scene, &mut relayer).await;
        assert_eq!((relayer.state().totals.redeemed, counted(&relayer, "reverted")), (1, 0), "{code}");
        assert!(relayer.state().payees[&PAYEE] > 100_000, "{code}: {:?}", relayer.state().payees);
        // Also after a restart.
        drop(relayer);
        let mut relayer = scene.relayer().await;
        offer_to_payee(&scene, &mut relayer, 1, 100_000).await;
        assert_eq!((relayer.state().bundles.len(), relayer.state().totals.below_cost), (0, 1), "{code}");
        offer_to_payee(&scene, &mut relayer, 2, 300_000).await;
        settle_all(&scene, &mut relayer).await;
        assert_eq!((relayer.state().totals.redeemed, relayer.state().items.len()), (2, 0), "{code}");
    }
}

#[tokio::test]
async fn an_ordinary_contract_is_paid_for_the_fee_that_is_quoted_and_nobody_pays_for_a_dear_one() {
    let mut scene = Scene::new(Mining::Manual).await;
    scene.config.bundle.below_cost = BelowCost::Leave;
    let price: U256 = scene.anvil.request("eth_gasPrice", json!([])).await;
    let (price, fee) = (price.to::<u128>(), 50_000 * price.to::<u128>());
    let mut relayer = scene.relayer().await;
    // Account and payee are known then.
    scene.publish_worth(20, ETHER / 100, 4 * fee);
    relayer.tick(true).await.unwrap();
    settle_all(&scene, &mut relayer).await;
    for sequence in 0..10 {
        scene.publish_worth(sequence, ETHER / 100, fee);
    }
    scene.set_code(PAYEE, SPENDS).await;
    // Its fee would suffice in company, where it would cost five times as much.
    offer_to_payee(&scene, &mut relayer, 10, 50_000).await;
    assert_eq!((relayer.state().bundles.len(), relayer.state().totals.below_cost), (1, 1));
    let bundle = relayer.state().bundles[0].clone();
    assert_eq!(bundle.items.len(), 10);
    settle_all(&scene, &mut relayer).await;
    let hash = bundle.submission.attempts[0].hash;
    let receipt: Value = scene.anvil.request("eth_getTransactionReceipt", json!([hash])).await;
    let used: U256 = receipt["gasUsed"].as_str().unwrap().parse().unwrap();
    assert!(used.to::<u128>() * price <= 10 * fee, "{used}");
    // One that takes what it gets.
    scene.set_code(PAYEE, STOPS).await;
    for sequence in 11..13 {
        offer_to_payee(&scene, &mut relayer, sequence, 92_000).await;
        assert_eq!(relayer.state().bundles.len(), 1);
        settle_all(&scene, &mut relayer).await;
    }
    assert_eq!((relayer.state().totals.redeemed, relayer.state().payees.len()), (13, 0));
}

/// Deposits 500 units of a token, and returns it.
async fn deposit_token(scene: &Scene) -> Asset {
    let arguments = ("Demo Token", "DEMO", U256::from(6), U256::from(1_000)).abi_encode_params();
    let token = scene.anvil.deploy_artifact("DemoToken.sol/DemoToken.json", &arguments).await;
    let (owner, contract) = (rich_key(9), scene.primary.contract());
    let approve = IToken::approveCall { spender: contract, value: U256::MAX };
    let approve = Call { to: token, value: U256::ZERO, data: approve.abi_encode().into() };
    let recipient = AccountKey::ed25519([9; 32]).account();
    let deposit = Call::deposit_token(contract, recipient, Asset(token), Amount(500));
    for call in [approve, deposit] {
        let nonce: U256 = scene.anvil.request("eth_getTransactionCount", json!([owner.address(), "latest"])).await;
        let hash = scene.anvil.send_raw(&owner, nonce.to(), call.to.into(), call.value, call.data).await;
        scene.anvil.mined_receipt(hash).await;
    }
    scene.anvil.mine(2).await;
    Asset(token)
}

fn publish_token(scene: &Scene, asset: Asset, sequences: std::ops::Range<u64>, fee: u128) {
    for sequence in sequences {
        let redemption = Redemption { asset, amount: Amount(2), ..scene.redemption(sequence, fee) };
        scene.show(&scene.certify(Transfer::Redemption(redemption)));
    }
}

#[tokio::test]
async fn fifty_payouts_of_a_token_that_burns_gas_wedge_nothing() {
    for (fee, tried) in [(0, STOPS), (1, BURNS), (0, BURNS_AT_A_PRICE), (0, BURNS_IN_ODD_BLOCKS)] {
        let mut scene = Scene::new(Mining::Manual).await;
        let token = deposit_token(&scene).await;
        scene.config.assets = serving([token]);
        publish_token(&scene, token, 0..50, fee);
        scene.set_code(token.0, tried).await;
        let mut relayer = scene.relayer().await;
        relayer.tick(true).await.unwrap();
        assert!(relayer.state().bundles.iter().all(|bundle| bundle.submission.gas_limit <= 1 << 24));
        // It dies, and an honest one comes.
        drop(relayer);
        scene.set_code(token.0, if tried == STOPS { BURNS } else { tried }).await;
        scene.publish([50]);
        let mut relayer = scene.relayer().await;
        relayer.tick(true).await.unwrap();
        let transactions = settle_all(&scene, &mut relayer).await;
        assert_eq!((relayer.state().totals.redeemed, counted(&relayer, "reverted")), (51, 0), "{tried}");
        assert!((3..8).contains(&transactions), "{transactions}");
        assert_eq!(scene.paid_out().await, 100);
        assert_eq!(scene.primary.total_balance(token).await.unwrap(), U256::from(400));
    }
}

/// Makes the transaction at this place one that has more gas than a block, as an earlier release prepared them, and has the
/// chain forget all that waits.
async fn make_unsendable(scene: &Scene, place: usize) {
    let _: Value = scene.anvil.request("anvil_dropAllTransactions", json!([])).await;
    let mut state = State::read(&scene.config.data_dir).unwrap();
    let sender = Sender::new(scene.primary.clone(), scene.anvil.rich_key(0), scene.config.sender.clone());
    let submission = &mut state.bundles[place].submission;
    let offer = Offer { gas_max: u64::MAX, ..sender.current_offer().await.unwrap() };
    sender.release(submission.nonce);
    *submission = sender.prepare_within(submission.call.clone(), &offer, 31_000_000).await.unwrap();
    let mut file = serde_json::to_value(&state).unwrap();
    for new in ["free_nonces", "left"] {
        file.as_object_mut().unwrap().remove(new);
    }
    file["totals"]["below_minimum"] = 0.into();
    std::fs::write(scene.config.data_dir.join("state.json"), file.to_string()).unwrap();
}

#[tokio::test]
async fn a_stored_transaction_that_no_node_takes_is_taken_apart_and_its_nonce_used() {
    let scene = Scene::new(Mining::Manual).await;
    let mut relayer = scene.relayer().await;
    for sequences in [0..3, 3..4] {
        scene.publish(sequences);
        relayer.tick(true).await.unwrap();
    }
    drop(relayer);
    make_unsendable(&scene, 0).await;
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    let under_way: Vec<_> = relayer.state().bundles.iter().map(|b| (b.submission.nonce, b.items.len())).collect();
    assert_eq!(under_way, [(1, 1), (0, 1), (2, 1), (3, 1)]);
    assert_eq!((counted(&relayer, "taken_apart"), relayer.state().free_nonces.len()), (1, 0));
    assert_eq!(State::read(&scene.config.data_dir).unwrap(), *relayer.state());
    settle_all(&scene, &mut relayer).await;
    assert_eq!((scene.paid_out().await, relayer.state().items.len()), (400, 0));
}

#[tokio::test]
async fn the_nonce_of_one_that_is_taken_apart_is_filled_where_nothing_else_is_to_be_sent() {
    let mut scene = Scene::new(Mining::Manual).await;
    let token = deposit_token(&scene).await;
    scene.config.assets = serving([token]);
    let mut relayer = scene.relayer().await;
    publish_token(&scene, token, 0..50, 0);
    relayer.tick(true).await.unwrap();
    let first = relayer.state().bundles.len();
    scene.publish([50]);
    relayer.tick(true).await.unwrap();
    drop(relayer);
    for place in 0..first {
        make_unsendable(&scene, place).await;
    }
    scene.config.assets = Assets::default();
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    assert_eq!(relayer.state().totals.not_served, 50);
    // One gap is filled in each round.
    for _ in 0..first {
        relayer.tick(true).await.unwrap();
    }
    assert_eq!((relayer.state().bundles.len(), relayer.state().free_nonces.len()), (first + 1, 0));
    settle_all(&scene, &mut relayer).await;
    assert_eq!((scene.paid_out().await, relayer.state().items.len()), (100, 0));
}

#[tokio::test]
async fn a_nonce_that_is_free_survives_a_restart() {
    let mut scene = Scene::new(Mining::Manual).await;
    let node = LyingNode::start(&scene.anvil.url());
    let mut relayer = scene.relayer().await;
    for sequences in [0..2, 2..3] {
        scene.publish(sequences);
        relayer.tick(true).await.unwrap();
    }
    drop(relayer);
    make_unsendable(&scene, 0).await;
    // Nothing new can be prepared: the process dies with the nonce free.
    node.refuse("eth_maxPriorityFeePerGas", -32_000, "not now");
    scene.config.primary.rpc_urls = vec![node.url()];
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    assert_eq!(State::read(&scene.config.data_dir).unwrap().free_nonces, [0]);
    assert_eq!(status_json(relayer.state(), None)["freeNonces"], json!([0]));
    drop(relayer);
    node.repent();
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    let nonces: Vec<_> = relayer.state().bundles.iter().map(|bundle| bundle.submission.nonce).collect();
    assert_eq!(nonces, [1, 0, 2]);
    settle_all(&scene, &mut relayer).await;
    assert_eq!(scene.paid_out().await, 300);
}

#[tokio::test]
async fn a_transaction_that_nodes_refuse_for_an_hour_whatever_they_say_is_taken_apart() {
    let mut scene = Scene::new(Mining::Manual).await;
    let nodes = [LyingNode::start(&scene.anvil.url()), LyingNode::start(&scene.anvil.url())];
    scene.config.primary.rpc_urls = nodes.iter().map(LyingNode::url).collect();
    let mut relayer = scene.relayer().await;
    scene.publish(0..2);
    // One in words that are known, one in others.
    for (node, words) in nodes.iter().zip(["exceeds block gas limit", "the computer says no"]) {
        node.lie(move |method, _, answer| match method {
            "eth_sendRawTransaction" => {
                answer.as_object_mut().unwrap().remove("result");
                answer["error"] = json!({ "code": -32_000, "message": words });
            }
            "eth_getTransactionByHash" => answer["result"] = Value::Null,
            _ => {}
        });
    }
    for _ in 0..2 {
        relayer.tick(true).await.unwrap();
    }
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(3_590)).await;
    tokio::time::resume();
    relayer.tick(true).await.unwrap();
    assert_eq!((counted(&relayer, "taken_apart"), relayer.state().bundles[0].items.len()), (0, 2));
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(20)).await;
    tokio::time::resume();
    relayer.tick(true).await.unwrap();
    assert_eq!(counted(&relayer, "taken_apart"), 1);
    let nonces: Vec<_> = relayer.state().bundles.iter().map(|b| (b.submission.nonce, b.items.len())).collect();
    assert_eq!(nonces, [(0, 1), (1, 1)]);
    let _: Value = scene.anvil.request("anvil_dropAllTransactions", json!([])).await;
    nodes.iter().for_each(LyingNode::repent);
    relayer.tick(true).await.unwrap();
    settle_all(&scene, &mut relayer).await;
    assert_eq!((scene.paid_out().await, counted(&relayer, "taken_apart")), (200, 1));
}

/// The contract reverts everything until its code is put back.
async fn break_contract(scene: &Scene) -> Bytes {
    let contract = scene.primary.contract();
    let code: Bytes = scene.anvil.request("eth_getCode", json!([contract, "latest"])).await;
    scene.set_code(contract, REVERTS).await;
    code
}

#[tokio::test]
async fn what_reverted_together_goes_singly_and_one_that_fails_alone_costs_one_transaction() {
    let scene = Scene::new(Mining::Manual).await;
    scene.publish(0..3);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    let code = break_contract(&scene).await;
    scene.anvil.mine(1).await;
    scene.set_code(scene.primary.contract(), &code.to_string()).await;
    scene.anvil.mine(3).await;
    relayer.tick(true).await.unwrap();
    assert_eq!(counted(&relayer, "reverted"), 1);
    let items = &relayer.state().items;
    assert!(items.iter().all(|item| item.alone && item.parked.is_none()), "nothing is held against them");
    let sizes: Vec<_> = relayer.state().bundles.iter().map(|bundle| bundle.items.len()).collect();
    assert_eq!(sizes, [1, 1, 1]);
    // Also after a restart.
    drop(relayer);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    let hostile = relayer.state().bundles[1].clone();
    // Two are mined; the third finds the contract broken.
    let raw: Vec<_> = relayer.state().bundles.iter().map(|bundle| bundle.submission.attempts[0].hash).collect();
    let _: Value = scene.anvil.request("anvil_dropTransaction", json!([raw[1]])).await;
    let _: Value = scene.anvil.request("anvil_dropTransaction", json!([raw[2]])).await;
    scene.anvil.mine(1).await;
    relayer.tick(true).await.unwrap();
    let _: Value = scene.anvil.request("anvil_dropTransaction", json!([raw[2]])).await;
    let code = break_contract(&scene).await;
    scene.anvil.mine(1).await;
    scene.set_code(scene.primary.contract(), &code.to_string()).await;
    relayer.tick(true).await.unwrap();
    settle_all(&scene, &mut relayer).await;
    assert_eq!((scene.paid_out().await, relayer.state().totals.redeemed), (200, 2));
    assert_eq!((relayer.state().totals.failed_alone, relayer.state().items.len()), (1, 0));
    let left = relayer.state().left.clone();
    assert_eq!((left.len(), left[0].item), (1, hostile.items[0]));
    assert_eq!(left[0].transaction, Some(hostile.submission.attempts[0].hash));
    assert!(status_text(relayer.state(), None).contains("for good: its own transaction 0x"));
    assert_eq!(status_json(relayer.state(), None)["left"][0]["item"], json!(hostile.items[0]));
    relayer.tick(true).await.unwrap();
    assert_eq!(counted(&relayer, "failed_alone"), 1);
    // It is not tried again, though the redemption logs are read again after a restart.
    let sent = scene.transactions().await;
    let mut state = relayer.state().clone();
    drop(relayer);
    state.cursors.clear();
    std::fs::write(scene.config.data_dir.join("state.json"), serde_json::to_vec(&state).unwrap()).unwrap();
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    assert_eq!((relayer.state().items.len(), relayer.state().bundles.len()), (0, 0));
    assert_eq!((scene.transactions().await, relayer.state().totals.failed_alone), (sent, 1));
}

#[tokio::test]
async fn a_pause_between_offer_and_block_is_held_against_nobody() {
    let scene = Scene::new(Mining::Manual).await;
    scene.publish([0]);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    let hash = relayer.state().bundles[0].submission.attempts[0].hash;
    let _: Value = scene.anvil.request("anvil_dropTransaction", json!([hash])).await;
    scene.pause().await;
    // Sent again, as it was; nothing is simulated for that.
    relayer.tick(true).await.unwrap();
    scene.anvil.mine(3).await;
    relayer.tick(true).await.unwrap();
    assert_eq!((counted(&relayer, "reverted"), relayer.state().totals.failed_alone), (1, 0));
    let parked = relayer.state().items[0].parked.clone().unwrap();
    assert!(parked.attempts == 0 && parked.reason.contains("is paused until"), "{}", parked.reason);
}

#[tokio::test]
async fn one_nodes_answer_ends_no_redemption() {
    let mut scene = Scene::new(Mining::Manual).await;
    let liar = LyingNode::start(&scene.anvil.url());
    let honest = [LyingNode::start(&scene.anvil.url()), LyingNode::start(&scene.anvil.url())];
    scene.config.primary.rpc_urls = vec![liar.url(), honest[0].url(), honest[1].url()];
    scene.publish([0]);
    // Everything is redeemed already, it says, and nothing waits.
    liar.lie(|method, params, answer| {
        let data = params[0]["data"].as_str().unwrap_or_default();
        if method == "eth_call" && data.starts_with(&format!("0x{}", hex(&IFastPay::isRedeemedCall::SELECTOR))) {
            answer["result"] = format!("0x{:064x}", 1).into();
        }
    });
    let mut relayer = scene.relayer().await;
    for _ in 0..3 {
        relayer.tick(true).await.unwrap();
    }
    assert_eq!((relayer.state().items.len(), relayer.state().totals.redeemed_by_others), (1, 0));
    liar.repent();
    relayer.tick(true).await.unwrap();
    assert_eq!(relayer.state().bundles.len(), 1);
    // It is paid; one of them does not know of it yet, and one is away.
    scene.anvil.mine(3).await;
    honest[0].lie(|method, _, answer| {
        if method == "eth_getTransactionReceipt" {
            answer["result"] = Value::Null;
        }
    });
    relayer.tick(true).await.unwrap();
    assert_eq!(relayer.state().bundles.len(), 1);
    honest[0].repent();
    honest[1].go_away(true);
    relayer.tick(true).await.unwrap();
    assert_eq!(relayer.state().bundles.len(), 1, "it answered a moment ago, so it is waited for");
    honest[1].go_away(false);
    drop(relayer);
    let mut relayer = scene.relayer().await;
    relayer.tick(true).await.unwrap();
    assert_eq!((relayer.state().items.len(), relayer.state().totals.redeemed), (0, 1));
}

#[tokio::test]
async fn dust_without_a_fee_takes_no_place_from_others() {
    let mut scene = Scene::new(Mining::Manual).await;
    (scene.config.bundle.below_cost, scene.config.bundle.wait_ms_max) = (BelowCost::Leave, 3_600_000);
    for sequence in 0..20 {
        scene.publish_worth(sequence, 1_000, u128::from(sequence % 2));
    }
    let good = ETHER / 1_000;
    scene.publish_worth(20, ETHER / 10, good);
    // This one suffices where gas becomes four times cheaper.
    let price: U256 = scene.anvil.request("eth_gasPrice", json!([])).await;
    scene.publish_worth(21, ETHER / 10, 30_000 * price.to::<u128>() / 4);
    let mut relayer = scene.relayer().await;
    relayer.tick(false).await.unwrap();
    let waiting: Vec<_> = relayer.state().items.iter().map(|item| item.redemption.sequence.0).collect();
    assert_eq!((waiting, relayer.state().totals.below_cost), (vec![20, 21], 20));
    // It is not looked at again, and who works for nothing takes all.
    assert_eq!(State::read(&scene.config.data_dir).unwrap(), *relayer.state());
    drop(relayer);
    std::fs::remove_dir_all(&scene.config.data_dir).unwrap();
    scene.config.bundle.below_cost = BelowCost::Pay;
    let mut relayer = scene.relayer().await;
    relayer.tick(false).await.unwrap();
    assert_eq!((relayer.state().items.len(), relayer.state().totals.below_cost), (22, 0));
}

fn hex(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02x}")).collect()
}

#[tokio::test]
async fn wallets_are_told_the_accepted_fees() {
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    let mut scene = Scene::new(Mining::Manual).await;
    scene.config.assets = Assets::default();
    scene.config.bundle.wait_ms_max = 1_001;
    let mut relayer = scene.relayer().await;
    let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let (_stop, stop) = tokio::sync::watch::channel(false);
    tokio::spawn(fastpay_relayer::serve_wallets(listener, relayer.quotes(), relayer.unlock_desk(), stop));
    let ask = async || {
        let mut stream = tokio::net::TcpStream::connect(address).await.unwrap();
        let request =
            "GET /v1/fees HTTP/1.1\r\nHost: relayer\r\nOrigin: https://wallet.example\r\nConnection: close\r\n\r\n";
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head.to_ascii_lowercase(), serde_json::from_str::<Value>(body).unwrap())
    };
    let (head, _) = ask().await;
    assert!(head.starts_with("http/1.1 503"), "{head}");
    let mut quotes = relayer.quotes();
    relayer.run(async { drop(quotes.changed().await) }).await.unwrap();
    let (head, body) = ask().await;
    assert!(head.starts_with("http/1.1 200") && head.contains("access-control-allow-origin: *"), "{head}");
    assert_eq!((&body["chainId"], &body["contract"]), (&json!("31337"), &json!(scene.primary.contract())));
    assert_eq!(body["relayer"], json!(relayer.address()));
    let price: u128 = body["gasPrice"].as_str().unwrap().parse().unwrap();
    let fees = body["fees"].as_array().unwrap();
    assert_eq!((fees.len(), &fees[0]["asset"]), (1, &json!(Asset::ETHER)));
    let fee: u128 = fees[0]["fee"].as_str().unwrap().parse().unwrap();
    assert!((140_000 * price..150_000 * price).contains(&fee), "{body}");
    assert_eq!(body["waitSeconds"], json!(2), "as long as one may wait for company, rounded up");
}
