//! Deposits are followed on a real chain, through nodes that lag, lie, leave and return.

use alloy::primitives::{Address, B256, U64, U256};
use alloy::sol_types::SolCall;
use fastpay_core::{
    AccountId, Amount, Asset, Authority, AuthorityKeys, AuthorityName, Committee, Epoch, TransactionIndex,
};
use fastpay_ethereum::{
    Alarm, Call, Cursor, DepositReader, DepositsError, Finality, IFastPay, Primary, PrimaryConfig, PrimaryError,
};
use fastpay_testkit::anvil::{Anvil, LyingNode, Mining, Signers};
use serde_json::{Value, json};

const ALICE: AccountId = AccountId([0xa1; 32]);

fn committee() -> Committee {
    let member = |byte| Authority { name: AuthorityName([byte; 32]), redemption_key: Address::repeat_byte(byte) };
    Committee::new(Epoch(0), (1..=4).map(member).collect()).unwrap()
}

/// A chain with the contract, deposits made by hand, and a node that may lie about it.
struct Scene {
    anvil: Anvil,
    node: LyingNode,
    contract: Address,
    nonce: u64,
}

impl Scene {
    async fn new() -> Self {
        let anvil = Anvil::start(Mining::Manual);
        let contract = anvil.deploy(&committee()).await;
        let node = LyingNode::start(&anvil.url());
        Self { anvil, node, contract, nonce: 0 }
    }

    /// Deposits `wei` for Alice in a block of its own.
    async fn deposit(&mut self, wei: u128) {
        let call = Call::deposit_ether(self.contract, ALICE, Amount(wei));
        let key = self.anvil.rich_key(0);
        let hash = self.anvil.send_raw(&key, self.nonce, call.to.into(), U256::from(wei), call.data).await;
        self.nonce += 1;
        self.anvil.mine(1).await;
        self.anvil.mined_receipt(hash).await;
    }

    fn config(&self) -> PrimaryConfig {
        PrimaryConfig { rpc_urls: vec![self.node.url()], ..self.anvil.config(self.contract) }
    }

    async fn reader(&self) -> DepositReader {
        DepositReader::new(Primary::connect(self.config()).await.unwrap(), 100)
    }

    /// Three deposits, all final, and a reader that has read the deployment.
    async fn with_deposits() -> (Self, DepositReader, Cursor) {
        let mut scene = Self::new().await;
        scene.anvil.mine(2).await;
        let mut reader = scene.reader().await;
        let start = reader.start().await.unwrap();
        let deployed = reader.next(&start).await.unwrap();
        assert!(deployed.deposits.is_empty() && deployed.cursor.block_number > start.block_number);
        for wei in [100, 200, 300] {
            scene.deposit(wei).await;
        }
        scene.anvil.mine(2).await;
        (scene, reader, deployed.cursor)
    }
}

fn alarm(result: Result<fastpay_ethereum::DepositBatch, DepositsError>) -> Alarm {
    match result {
        Err(DepositsError::Alarm(alarm)) => alarm,
        other => panic!("no alarm but {other:?}"),
    }
}

#[tokio::test]
async fn deposits_are_read_once_in_order_and_only_when_final() {
    let mut scene = Scene::new().await;
    scene.anvil.mine(2).await;
    let mut reader = scene.reader().await;
    let mut cursor = reader.start().await.unwrap();
    assert_eq!(cursor.last_index, TransactionIndex(0));
    scene.deposit(7).await;
    scene.deposit(8).await;
    cursor = reader.next(&cursor).await.unwrap().cursor;
    assert_eq!(cursor.last_index, TransactionIndex(0), "two blocks are not final yet");
    scene.anvil.mine(1).await;
    let first = reader.next(&cursor).await.unwrap();
    assert_eq!(first.deposits.len(), 1);
    assert_eq!(first.deposits[0].recipient, ALICE);
    assert_eq!(first.deposits[0].asset, Asset::ETHER);
    assert_eq!(first.deposits[0].amount, Amount(7));
    let again = reader.next(&first.cursor).await.unwrap();
    assert_eq!((again.deposits.len(), again.cursor), (0, first.cursor));
    scene.anvil.mine(1).await;
    let second = reader.next(&first.cursor).await.unwrap();
    assert_eq!(second.deposits[0].index, TransactionIndex(2));
    assert_eq!(second.final_block, second.cursor.block_number);
}

#[tokio::test]
async fn other_events_of_the_order_lie_between_deposits() {
    let (mut scene, mut reader, start) = Scene::with_deposits().await;
    let first = reader.next(&start).await.unwrap();
    assert_eq!(first.cursor.last_index, TransactionIndex(3));
    let keys: Vec<_> = (1..=4_u8).map(|n| AuthorityKeys::from_secrets([n; 32], [n + 10; 32]).unwrap()).collect();
    let contract = scene.anvil.deploy(&signed_committee(0, &keys)).await;
    scene.contract = contract;
    scene.anvil.mine(2).await;
    let mut reader = scene.reader().await;
    let start = reader.start().await.unwrap();
    scene.nonce = 3;
    scene.deposit(100).await;
    let (now, next) = (signed_committee(0, &keys), signed_committee(1, &keys));
    let mut keys = keys;
    keys.sort_by_key(|keys| keys.public().name);
    let signers = |committee| Signers { committee, keys: &keys };
    scene.anvil.rotate(contract, signers(&now), signers(&next)).await;
    scene.deposit(200).await;
    scene.anvil.mine(2).await;
    let batch = reader.next(&start).await.unwrap();
    let indices: Vec<_> = batch.deposits.iter().map(|deposit| deposit.index.0).collect();
    assert_eq!((indices, batch.cursor.last_index), (vec![1, 3], TransactionIndex(3)), "2 began epoch 1");
    // Without it there is a gap.
    scene.node.lie_about_logs(|logs| logs.retain(|log| log["topics"].as_array().unwrap().len() != 3));
    assert!(matches!(alarm(reader.next(&start).await), Alarm::Gap { .. } | Alarm::CountDiffers { .. }));
}

fn signed_committee(epoch: u64, keys: &[AuthorityKeys]) -> Committee {
    Committee::new(Epoch(epoch), keys.iter().map(AuthorityKeys::public).collect()).unwrap()
}

#[tokio::test]
async fn a_long_history_is_read_in_bounded_ranges() {
    let (scene, _, start) = Scene::with_deposits().await;
    let mut reader = DepositReader::new(Primary::connect(scene.config()).await.unwrap(), 2);
    let (mut cursor, mut found) = (start, Vec::new());
    loop {
        let batch = reader.next(&cursor).await.unwrap();
        assert!(batch.cursor.block_number <= cursor.block_number + 2);
        found.extend(batch.deposits.iter().map(|deposit| deposit.amount.0));
        cursor = batch.cursor;
        if cursor.block_number == batch.final_block {
            break;
        }
    }
    assert_eq!(found, [100, 200, 300]);
}

#[tokio::test]
async fn a_node_that_refuses_long_ranges_is_asked_for_short_ones() {
    let (scene, mut reader, start) = Scene::with_deposits().await;
    scene.node.lie(|method, params, answer| {
        let block = |name: &str| params[0][name].as_str().unwrap().parse::<U64>().unwrap().to::<u64>();
        if method == "eth_getLogs" && block("toBlock") > block("fromBlock") {
            *answer = json!({ "jsonrpc": "2.0", "id": answer["id"], "error": { "code": -32005, "message": "range" } });
        }
    });
    let batch = reader.next(&start).await.unwrap();
    assert_eq!(batch.cursor.block_number, start.block_number + 1);
}

#[tokio::test]
async fn all_three_finality_rules_are_followed() {
    let (scene, _, _) = Scene::with_deposits().await;
    let newest = scene.anvil.block_number().await;
    for (rule, behind) in [(Finality::Finalized, 2), (Finality::Safe, 1), (Finality::Confirmations(4), 4)] {
        let head = scene.anvil.primary(scene.contract, rule).await.final_head().await.unwrap();
        assert_eq!(head.number(), newest - behind, "{rule:?}");
    }
    let too_deep = scene.anvil.primary(scene.contract, Finality::Confirmations(1_000)).await;
    assert!(too_deep.final_head().await.unwrap_err().is_retryable());
}

#[tokio::test]
async fn a_node_that_goes_away_and_comes_back_costs_only_time() {
    let (scene, mut reader, start) = Scene::with_deposits().await;
    scene.node.go_away(true);
    let error = reader.next(&start).await.unwrap_err();
    assert!(error.is_retryable(), "{error}");
    scene.node.go_away(false);
    assert_eq!(reader.next(&start).await.unwrap().deposits.len(), 3);
}

#[tokio::test]
async fn a_node_that_comes_back_on_another_chain_stops_the_reader() {
    let (scene, mut reader, start) = Scene::with_deposits().await;
    scene.node.go_away(true);
    reader.next(&start).await.unwrap_err();
    scene.node.go_away(false);
    scene.node.lie(|method, _, answer| {
        if method == "eth_chainId" {
            answer["result"] = json!("0x1");
        }
    });
    let error = reader.next(&start).await.unwrap_err();
    assert!(matches!(error, DepositsError::Primary(PrimaryError::WrongChain { found: 1, .. })), "{error}");
    assert!(!error.is_retryable());
}

#[tokio::test]
async fn a_wrong_chain_id_an_empty_address_and_no_node_are_told_apart() {
    let anvil = Anvil::start(Mining::Manual);
    let contract = anvil.deploy(&committee()).await;
    let wrong_chain = PrimaryConfig { chain_id: 1, ..anvil.config(contract) };
    let error = Primary::connect(wrong_chain).await.unwrap_err();
    assert!(matches!(error, PrimaryError::WrongChain { expected: 1, found: 31_337, .. }), "{error}");
    let error = Primary::connect(anvil.config(Address::repeat_byte(5))).await.unwrap_err();
    assert!(matches!(error, PrimaryError::NoContract { .. }), "{error}");
    assert!(!error.is_retryable());
    let config = anvil.config(contract);
    drop(anvil);
    let error = Primary::connect(config).await.unwrap_err();
    assert!(matches!(error, PrimaryError::Unreachable { .. }) && error.is_retryable(), "{error}");
    let no_url = PrimaryConfig::new(vec![], 1, contract);
    assert!(matches!(Primary::connect(no_url).await, Err(PrimaryError::NoUrl)));
    for wrong in ["localhost:8545", "ws://localhost:8546"] {
        let config = PrimaryConfig::new(vec![wrong.parse().unwrap()], 1, Address::ZERO);
        let error = Primary::connect(config).await.unwrap_err();
        assert!(matches!(error, PrimaryError::NotHttp(_)) && !error.is_retryable(), "{error}");
    }
}

#[tokio::test]
async fn a_node_that_does_not_answer_in_time_is_retried() {
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://secret:key@{}/secret", listener.local_addr().unwrap()).parse().unwrap();
    let config = PrimaryConfig { request_timeout_ms: 100, ..PrimaryConfig::new(vec![url], 1, Address::ZERO) };
    let error = Primary::connect(config).await.unwrap_err();
    assert!(error.is_retryable() && !error.to_string().contains("secret"), "{error}");
}

#[tokio::test]
async fn a_lagging_node_is_retried() {
    let (scene, mut reader, start) = Scene::with_deposits().await;
    let batch = reader.next(&start).await.unwrap();
    scene.node.lie(|method, params, answer| {
        if method == "eth_getBlockByNumber" && params[0] == "finalized" {
            answer["result"]["number"] = json!("0x0");
        }
    });
    let error = reader.next(&batch.cursor).await.unwrap_err();
    assert!(matches!(error, DepositsError::Lagging { head: 0, .. }) && error.is_retryable(), "{error}");
}

#[tokio::test]
async fn lies_about_logs_raise_the_alarm() {
    async fn check(lie: impl FnMut(&mut Vec<Value>) + Send + 'static, expected: impl Fn(&Alarm) -> bool) {
        let (scene, mut reader, start) = Scene::with_deposits().await;
        scene.node.lie_about_logs(lie);
        let alarm = alarm(reader.next(&start).await);
        assert!(expected(&alarm), "{alarm}");
        // The cursor has not moved, so the truth can still be read.
        scene.node.repent();
        assert_eq!(reader.next(&start).await.unwrap().deposits.len(), 3);
    }
    check(|logs| drop(logs.remove(1)), |alarm| matches!(alarm, Alarm::Gap { .. })).await;
    check(|logs| drop(logs.pop()), |alarm| matches!(alarm, Alarm::CountDiffers { .. })).await;
    check(Vec::clear, |alarm| matches!(alarm, Alarm::CountDiffers { .. })).await;
    check(|logs| logs.insert(1, logs[0].clone()), |alarm| matches!(alarm, Alarm::OutOfOrder { .. })).await;
    check(|logs| logs.reverse(), |alarm| matches!(alarm, Alarm::Gap { .. })).await;
    check(|logs| logs[0]["removed"] = json!(true), |alarm| matches!(alarm, Alarm::Removed { .. })).await;
    check(|logs| logs[2]["data"] = json!("0x"), |alarm| matches!(alarm, Alarm::Malformed { .. })).await;
    check(|logs| logs[1]["blockNumber"] = json!("0xffff"), |alarm| matches!(alarm, Alarm::WrongBlock { .. })).await;
    let elsewhere = json!(Address::repeat_byte(6));
    check(move |logs| logs[0]["address"] = elsewhere.clone(), |alarm| matches!(alarm, Alarm::Foreign { .. })).await;
}

#[tokio::test]
async fn one_lying_node_of_two_raises_the_alarm() {
    let (scene, _, start) = Scene::with_deposits().await;
    let both = PrimaryConfig { rpc_urls: vec![scene.anvil.url(), scene.node.url()], ..scene.config() };
    let mut reader = DepositReader::new(Primary::connect(both).await.unwrap(), 100);
    // A larger deposit than was made: no rule of a single log or count forbids it.
    scene.node.lie_about_logs(|logs| {
        let data = logs[0]["data"].as_str().unwrap().to_owned();
        let amount = format!("{:064x}", 1_000_000);
        logs[0]["data"] = json!(format!("0x{amount}{}", &data[66..]));
    });
    assert!(matches!(alarm(reader.next(&start).await), Alarm::Disagreement { .. }));
    scene.node.repent();
    assert_eq!(reader.next(&start).await.unwrap().deposits.len(), 3);
    // Without one of them nothing is taken, and nothing is lost.
    scene.node.go_away(true);
    assert!(reader.next(&start).await.unwrap_err().is_retryable());
}

#[tokio::test]
async fn a_final_block_that_one_node_invents_raises_the_alarm_and_its_time_counts_for_nothing() {
    let (scene, _, start) = Scene::with_deposits().await;
    // Small ranges: the newest final block is not read at once.
    for rpc_urls in [[scene.node.url(), scene.anvil.url()], [scene.anvil.url(), scene.node.url()]] {
        let both = PrimaryConfig { rpc_urls: rpc_urls.to_vec(), ..scene.config() };
        let mut reader = DepositReader::new(Primary::connect(both).await.unwrap(), 1);
        let truth = reader.next(&start).await.unwrap();
        assert!(truth.final_block > truth.cursor.block_number);
        for (field, value) in [("timestamp", json!("0x1")), ("hash", json!(B256::repeat_byte(7)))] {
            scene.node.lie(move |method, params, answer| {
                if method == "eth_getBlockByNumber" && params[0] == "finalized" {
                    answer["result"][field] = value.clone();
                }
            });
            let found = alarm(reader.next(&start).await);
            assert!(matches!(found, Alarm::Disagreement { .. }), "{field}: {found}");
            scene.node.repent();
            assert_eq!(reader.next(&start).await.unwrap(), truth);
        }
    }
}

#[tokio::test]
async fn an_unlock_window_that_one_node_invents_or_that_no_contract_has_raises_the_alarm() {
    const DAY: u64 = 86_400;
    let scene = Scene::new().await;
    let urls = [scene.anvil.url(), scene.node.url()];
    let both = PrimaryConfig { rpc_urls: urls.to_vec(), ..scene.config() };
    let connect = async |config| DepositReader::new(Primary::connect(config).await.unwrap(), 100);
    let (both, alone) = (connect(both).await, connect(scene.config()).await);
    let truth = both.unlock_window().await.unwrap();
    assert_eq!(truth, 3 * DAY);
    // Between what a contract may have, one node of two is not believed, and one alone is; outside of it none is.
    for (seconds, believed_alone) in [(0, false), (3 * DAY - 1, false), (30 * DAY, true), (30 * DAY + 1, false)] {
        scene.node.lie(move |method, params, answer| {
            let selector = format!("0x{}", alloy::primitives::hex::encode(IFastPay::safetyParametersCall::SELECTOR));
            if method == "eth_call" && params[0]["data"].as_str().is_some_and(|data| data.starts_with(&selector)) {
                let words = answer["result"].as_str().unwrap();
                answer["result"] = json!(format!("{}{seconds:064x}", &words[..words.len() - 64]));
            }
        });
        let found = both.unlock_window().await.unwrap_err();
        assert!(
            matches!(found, DepositsError::Alarm(Alarm::UnlockWindow { seconds: s, .. }) if s == seconds),
            "{found}"
        );
        assert_eq!(alone.unlock_window().await.ok(), believed_alone.then_some(seconds));
        scene.node.repent();
        assert_eq!(both.unlock_window().await.unwrap(), truth);
    }
}

#[tokio::test]
async fn a_reorganisation_below_finality_raises_the_alarm_and_above_it_is_harmless() {
    let (mut scene, mut reader, start) = Scene::with_deposits().await;
    let batch = reader.next(&start).await.unwrap();
    scene.deposit(400).await;
    // The newest block goes, with its deposit; nothing final changes.
    scene.anvil.reorganise(1).await;
    scene.nonce -= 1;
    let after = reader.next(&batch.cursor).await.unwrap();
    assert_eq!(after.deposits.len(), 0);
    scene.deposit(500).await;
    scene.anvil.mine(2).await;
    let after = reader.next(&after.cursor).await.unwrap();
    assert_eq!(after.deposits.iter().map(|d| (d.index.0, d.amount.0)).collect::<Vec<_>>(), [(4, 500)]);
    // What was final goes.
    scene.anvil.reorganise(5).await;
    let alarm = alarm(reader.next(&after.cursor).await);
    assert!(matches!(alarm, Alarm::Reorganised { .. }), "{alarm}");
}

#[tokio::test]
async fn the_committee_is_read_as_it_was_installed() {
    let anvil = Anvil::start(Mining::Manual);
    let contract = anvil.deploy(&committee()).await;
    let primary = anvil.primary(contract, Finality::Confirmations(0)).await;
    assert_eq!(primary.epoch().await.unwrap(), Epoch(0));
    assert_eq!(primary.committee(Epoch(0)).await.unwrap(), committee());
    let error = primary.committee(Epoch(1)).await.unwrap_err();
    assert!(error.to_string().contains("no committee of epoch 1"), "{error}");
    assert_eq!(primary.total_balance(Asset::ETHER).await.unwrap(), U256::ZERO);
    assert_eq!(primary.deployment_block().await.unwrap(), 1);
}
