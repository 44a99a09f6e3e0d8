//! The refusals of a simulated node, and their messages.

use alloy::consensus::{SignableTransaction, TxEip1559, TxEip7702};
use alloy::eips::eip2718::Encodable2718;
use alloy::primitives::{Address, Bytes, TxKind, U256};
use alloy::rpc::client::RpcClient;
use alloy::rpc::json_rpc::RpcError;
use alloy::signers::SignerSync;
use fastpay_testkit::anvil::{CHAIN_ID, rich_key};
use fastpay_testkit::primary::{ChainConfig, SimulatedPrimary};
use serde_json::{Value, json};

const GWEI: u128 = 1_000_000_000;

fn chain() -> (SimulatedPrimary, RpcClient) {
    let primary = SimulatedPrimary::new(ChainConfig { state_depth: 4, ..ChainConfig::default() });
    let client = primary.node("node", 0).client();
    (primary, client)
}

fn transfer() -> TxEip1559 {
    TxEip1559 {
        chain_id: CHAIN_ID,
        nonce: 0,
        gas_limit: 21_000,
        max_fee_per_gas: 10 * GWEI,
        max_priority_fee_per_gas: GWEI,
        to: TxKind::Call(Address::repeat_byte(7)),
        value: U256::ONE,
        access_list: Default::default(),
        input: Bytes::new(),
    }
}

fn signed(transaction: TxEip1559) -> Bytes {
    let signature = rich_key(0).sign_hash_sync(&transaction.signature_hash()).unwrap();
    transaction.into_signed(signature).encoded_2718().into()
}

async fn refusal(client: &RpcClient, method: &'static str, params: Value) -> (i64, String) {
    match client.request::<Value, Value>(method, params).await {
        Err(RpcError::ErrorResp(error)) => (error.code, error.message.to_string()),
        other => panic!("{method} is not refused but {other:?}"),
    }
}

#[tokio::test(start_paused = true)]
async fn the_pool_says_why_it_takes_no_transaction() {
    let (primary, client) = chain();
    let check = async |raw: Bytes, words: &str| {
        let (code, message) = refusal(&client, "eth_sendRawTransaction", json!([raw])).await;
        assert!(code == -32_000 && message.contains(words), "{code} {message}");
    };
    check(signed(TxEip1559 { chain_id: 1, ..transfer() }), "invalid chain id").await;
    check(signed(TxEip1559 { gas_limit: (1 << 24) + 1, ..transfer() }), "gas limit too high").await;
    check(signed(TxEip1559 { max_fee_per_gas: 1, ..transfer() }), "higher than max fee").await;
    check(signed(TxEip1559 { value: U256::MAX, ..transfer() }), "insufficient funds").await;
    check(Bytes::from_static(&[2, 3]), "cannot be decoded").await;
    let code = TxEip7702 { chain_id: CHAIN_ID, ..TxEip7702::default() };
    let signature = rich_key(0).sign_hash_sync(&code.signature_hash()).unwrap();
    check(code.into_signed(signature).encoded_2718().into(), "type not supported").await;

    let _: Value = client.request("eth_sendRawTransaction", json!([signed(transfer())])).await.unwrap();
    check(signed(transfer()), "already known").await;
    let tenth = |fee: u128| fee + fee / 10;
    let half = TxEip1559 { max_fee_per_gas: tenth(10 * GWEI), ..transfer() };
    check(signed(half.clone()), "underpriced").await;
    let better = TxEip1559 { max_priority_fee_per_gas: tenth(GWEI), ..half };
    let _: Value = client.request("eth_sendRawTransaction", json!([signed(better)])).await.unwrap();
    assert_eq!(primary.waiting().len(), 1);
    primary.mine(1);
    check(signed(transfer()), "nonce too low").await;
}

#[tokio::test(start_paused = true)]
async fn what_cannot_be_answered_is_an_error_of_json_rpc() {
    let (primary, client) = chain();
    let someone = Address::repeat_byte(5);
    let check = async |method, params, code: i64, words: &str| {
        let found = refusal(&client, method, params).await;
        assert!(found.0 == code && found.1.contains(words), "{method}: {found:?}");
    };
    check("eth_makeCoffee", json!([]), -32_601, "does not exist").await;
    check("eth_getBalance", json!(["0x12", "latest"]), -32_602, "argument 0").await;
    check("eth_getBalance", json!([]), -32_602, "argument 0").await;
    check("eth_getBalance", json!([someone, "0x77"]), -32_000, "header not found").await;
    check("eth_getLogs", json!([{ "fromBlock": "0x3", "toBlock": "0x1" }]), -32_602, "block range").await;
    let elsewhere = alloy::primitives::B256::repeat_byte(1);
    check("eth_getLogs", json!([{ "blockHash": elsewhere }]), -32_000, "unknown block").await;
    primary.mine(20);
    check("eth_getBalance", json!([someone, "0x2"]), -32_000, "missing trie node").await;
    let balance: U256 = client.request("eth_getBalance", json!([someone, "0x12"])).await.unwrap();
    assert_eq!(balance, U256::ZERO);
}

#[tokio::test(start_paused = true)]
async fn questions_in_a_batch_are_answered_together() {
    let (primary, client) = chain();
    primary.mine(3);
    let mut batch = client.new_batch();
    let number = batch.add_call::<_, U256>("eth_blockNumber", &json!([])).unwrap();
    let unknown = batch.add_call::<_, U256>("eth_makeCoffee", &json!([])).unwrap();
    batch.send().await.unwrap();
    assert_eq!(number.await.unwrap(), U256::from(3));
    assert!(unknown.await.is_err());
}
