//! The simulated chain and anvil give the same answers about the same transactions.

use alloy::primitives::{Address, B256, Bytes, TxKind, U64, U256};
use alloy::rpc::client::RpcClient;
use alloy::rpc::json_rpc::RpcError;
use alloy::sol_types::{SolCall, SolEvent, SolValue};
use fastpay_core::{Amount, Asset, Domain, Epoch, Redemption, VerifiedContractVote, sign_batch_vote};
use fastpay_ethereum::{Call, IFastPay, IToken, certified_redemption};
use fastpay_testkit::anvil::{
    Anvil, CHAIN_ID, DEPLOYER_KEY, Mining, creation_code, fastpay_codes, raw_transaction, rich_key,
};
use fastpay_testkit::primary::{ChainConfig, SLOT_S, SimulatedPrimary};
use fastpay_testkit::{TestAccount, TestCommittee, redemption};
use serde_json::{Value, json};

const ETHER: u128 = 1_000_000_000_000_000_000;
const RECIPIENT: Address = Address::repeat_byte(0xcc);

/// What a node answered: a result, or an error's code and data.
type Answer = Result<Value, (i64, Option<Bytes>, String)>;

/// Both chains.
struct Pair {
    anvil: Anvil,
    real: RpcClient,
    primary: SimulatedPrimary,
    simulated: RpcClient,
    nonces: [u64; 10],
    time_s: u64,
}

async fn ask(client: &RpcClient, method: &'static str, params: &Value) -> Answer {
    match client.request::<Value, Value>(method, params.clone()).await {
        Ok(value) => Ok(value),
        Err(RpcError::ErrorResp(error)) => Err((error.code, error.as_revert_data(), error.message.to_string())),
        Err(error) => panic!("{method}: {error}"),
    }
}

impl Pair {
    fn new() -> Self {
        let anvil = Anvil::start(Mining::Manual);
        let primary = SimulatedPrimary::new(ChainConfig::default());
        let (real, simulated) = (RpcClient::new_http(anvil.url()), primary.node("simulated", 0).client());
        let time_s = primary.time_s() + (1 << 30);
        Self { anvil, real, primary, simulated, nonces: [0; 10], time_s }
    }

    /// Sends both the same transaction.
    async fn send(&mut self, key: u32, to: TxKind, value: U256, data: Bytes) -> B256 {
        let nonce = &mut self.nonces[key as usize];
        let raw = raw_transaction(&rich_key(key), *nonce, to, value, data);
        *nonce += 1;
        let sent = ask(&self.real, "eth_sendRawTransaction", &json!([raw])).await.unwrap();
        assert_eq!(ask(&self.simulated, "eth_sendRawTransaction", &json!([raw])).await.unwrap(), sent);
        serde_json::from_value(sent).unwrap()
    }

    async fn call(&mut self, key: u32, call: Call) -> B256 {
        self.send(key, call.to.into(), call.value, call.data).await
    }

    /// Adds a block to both, with the same time.
    async fn mine(&mut self) {
        self.time_s += SLOT_S;
        let _: Value = self.anvil.request("evm_setNextBlockTimestamp", json!([self.time_s])).await;
        self.anvil.mine(1).await;
        self.primary.mine_at(self.time_s);
    }

    /// Checks that both give the same result, or the same error code and data.
    async fn agree(&self, method: &'static str, params: Value) -> Answer {
        let (real, simulated) = (ask(&self.real, method, &params).await, ask(&self.simulated, method, &params).await);
        let comparable = |answer: &Answer| answer.clone().map_err(|(code, data, _)| (code, data));
        assert_eq!(comparable(&simulated), comparable(&real), "{method} {params}: {simulated:?} {real:?}");
        simulated
    }

    /// Checks that both return the same fields for `method`, except those that name blocks.
    async fn agree_on(&self, method: &'static str, params: Value, fields: &[&str]) -> Value {
        let (real, simulated) = (ask(&self.real, method, &params).await, ask(&self.simulated, method, &params).await);
        let (real, simulated) = (real.unwrap(), simulated.unwrap());
        for field in fields {
            assert_eq!(simulated[field], real[field], "{method} {params}: {field}");
        }
        simulated
    }

    async fn agree_on_receipt(&self, hash: B256) -> bool {
        const FIELDS: [&str; 12] = [
            "type",
            "status",
            "transactionHash",
            "transactionIndex",
            "blockNumber",
            "from",
            "to",
            "contractAddress",
            "gasUsed",
            "cumulativeGasUsed",
            "effectiveGasPrice",
            "logsBloom",
        ];
        let receipt = self.agree_on("eth_getTransactionReceipt", json!([hash]), &FIELDS).await;
        let real = ask(&self.real, "eth_getTransactionReceipt", &json!([hash])).await.unwrap();
        let logs = |receipt: &Value| receipt["logs"].as_array().unwrap().iter().map(told).collect::<Vec<_>>();
        assert_eq!(logs(&receipt), logs(&real));
        let transaction = ["hash", "nonce", "from", "to", "value", "input", "gas", "blockNumber", "transactionIndex"];
        self.agree_on("eth_getTransactionByHash", json!([hash]), &transaction).await;
        receipt["status"] == "0x1"
    }
}

/// A log without the hash of its block.
fn told(log: &Value) -> Vec<Value> {
    let fields = [
        "address",
        "topics",
        "data",
        "blockNumber",
        "transactionHash",
        "transactionIndex",
        "logIndex",
        "removed",
        "blockTimestamp",
    ];
    fields.iter().map(|field| log[field].clone()).collect()
}

/// Calls that redeem: one alone, two together, and two by one vote.
fn redeeming(contract: Address, sender: &TestAccount) -> Vec<Call> {
    let domain = Domain::new(CHAIN_ID, contract);
    let committee = TestCommittee::with(4, domain, Epoch(0));
    let order = |sequence: u64| Redemption { fee: Amount(3), ..redemption(sender.id(), RECIPIENT, 1_000, sequence) };
    let certified = |sequence: u64| {
        let certificate = committee.certificate(&sender.sign(&domain, order(sequence)));
        certified_redemption(&certificate, &committee.committee).unwrap()
    };
    let batch = [order(3), order(4)];
    let digest = domain.redemption_batch_vote_digest(Epoch(0), &batch);
    let votes = committee
        .keys
        .iter()
        .map(|keys| sign_batch_vote(keys, &domain, Epoch(0), &batch).verify(&committee.committee, digest).unwrap());
    let votes = VerifiedContractVote::quorum(&committee.committee, digest, &votes.collect::<Vec<_>>()).unwrap();
    vec![
        Call::redeem(contract, certified(0)),
        Call::redeem_many(contract, vec![certified(1), certified(2)]),
        Call::redeem_batch(contract, &batch, Epoch(0), votes.into()),
    ]
}

#[tokio::test]
async fn the_same_transactions_do_the_same_and_cost_the_same() {
    let mut pair = Pair::new();
    let committee = TestCommittee::new(4).committee;
    for code in fastpay_codes(&committee, 0) {
        let deployed = pair.send(DEPLOYER_KEY, TxKind::Create, U256::ZERO, code).await;
        pair.mine().await;
        assert!(pair.agree_on_receipt(deployed).await);
    }
    let contract = rich_key(DEPLOYER_KEY).address().create(1);
    let arguments = ("Demo Token", "DEMO", U256::from(6), U256::from(1_000_000)).abi_encode_params();
    let code = creation_code("DemoToken.sol/DemoToken.json", &arguments);
    let deployed = pair.send(DEPLOYER_KEY, TxKind::Create, U256::ZERO, code).await;
    pair.mine().await;
    assert!(pair.agree_on_receipt(deployed).await);
    let token = Asset(rich_key(DEPLOYER_KEY).address().create(2));

    let owner = TestAccount::ed25519(1);
    let approve = IToken::approveCall { spender: contract, value: U256::MAX }.abi_encode();
    let approve = Call { to: token.0, value: U256::ZERO, data: approve.into() };
    let plain = Call { to: contract, value: U256::from(77), data: Bytes::new() };
    let nothing = Call::deposit_ether(contract, owner.id(), Amount(0));
    let mut hashes = Vec::new();
    // Some in one block, some in blocks of their own.
    hashes.push((pair.call(1, Call::deposit_ether(contract, owner.id(), Amount(2 * ETHER))).await, true));
    hashes.push((pair.call(2, Call::deposit_ether(contract, owner.id(), Amount(5))).await, true));
    hashes.push((pair.call(9, approve).await, true));
    pair.mine().await;
    hashes.push((pair.call(9, Call::deposit_token(contract, owner.id(), token, Amount(500))).await, true));
    hashes.push((pair.call(1, plain).await, true));
    hashes.push((pair.call(2, nothing).await, false));
    pair.mine().await;
    for call in redeeming(contract, &owner) {
        hashes.push((pair.call(3, call).await, true));
        pair.mine().await;
    }
    // Already redeemed.
    hashes.push((pair.call(3, redeeming(contract, &owner).remove(0)).await, false));
    pair.mine().await;
    for (number, (hash, succeeds)) in hashes.into_iter().enumerate() {
        assert_eq!(pair.agree_on_receipt(hash).await, succeeds, "transaction {number}");
    }
    questions_are_answered_alike(&pair, contract, &owner).await;
    errors_are_told_alike(&mut pair, contract, &owner).await;
}

async fn questions_are_answered_alike(pair: &Pair, contract: Address, owner: &TestAccount) {
    let key = rich_key(1).address();
    for (method, params) in [
        ("eth_chainId", json!([])),
        ("eth_blockNumber", json!([])),
        ("eth_getCode", json!([contract, "latest"])),
        ("eth_getCode", json!([RECIPIENT, "latest"])),
        ("eth_getStorageAt", json!([contract, "0x0", "latest"])),
        ("eth_getBalance", json!([contract, "latest"])),
        ("eth_getBalance", json!([key, "latest"])),
        ("eth_getBalance", json!([RECIPIENT, "0x4"])),
        ("eth_getTransactionCount", json!([key, "latest"])),
        ("eth_getTransactionCount", json!([key, "pending"])),
        ("eth_getBlockByNumber", json!(["0xffff", false])),
        ("eth_getTransactionReceipt", json!([B256::ZERO])),
        ("eth_getTransactionByHash", json!([B256::ZERO])),
    ] {
        pair.agree(method, params).await.unwrap();
    }
    for tag in ["latest", "safe", "finalized", "earliest", "0x3"] {
        let fields = ["number", "timestamp", "baseFeePerGas", "gasUsed", "gasLimit", "logsBloom", "transactions"];
        let fields = if tag == "earliest" { &fields[..1] } else { &fields };
        pair.agree_on("eth_getBlockByNumber", json!([tag, false]), fields).await;
    }
    let views: [Bytes; 4] = [
        IFastPay::totalBalanceCall { asset: Address::ZERO }.abi_encode().into(),
        IFastPay::lastTransactionIndexCall {}.abi_encode().into(),
        IFastPay::committeeCall { epoch: 0 }.abi_encode().into(),
        IFastPay::redeemedBitmapCall { sender: owner.id().0.into(), word: U256::ZERO }.abi_encode().into(),
    ];
    for data in views {
        pair.agree("eth_call", json!([{ "to": contract, "data": data }, "latest"])).await.unwrap();
        pair.agree("eth_call", json!([{ "to": contract, "data": data }, "0x3"])).await.unwrap();
    }
    for (first, last) in [("0x0", "latest"), ("0x3", "0x4"), ("0x0", "finalized")] {
        let topics = json!([IFastPay::Funded::SIGNATURE_HASH]);
        let filter = json!([{ "address": contract, "topics": topics, "fromBlock": first, "toBlock": last }]);
        let real = ask(&pair.real, "eth_getLogs", &filter).await.unwrap();
        let simulated = ask(&pair.simulated, "eth_getLogs", &filter).await.unwrap();
        let logs = |answer: &Value| answer.as_array().unwrap().iter().map(told).collect::<Vec<_>>();
        assert_eq!(logs(&simulated), logs(&real), "{first} to {last}");
    }
    let history = ["baseFeePerGas", "oldestBlock"];
    pair.agree_on("eth_feeHistory", json!(["0x4", "latest", []]), &history).await;
}

async fn errors_are_told_alike(pair: &mut Pair, contract: Address, owner: &TestAccount) {
    let key = rich_key(1).address();
    let pauper = Address::repeat_byte(0x99);
    let deposit = Call::deposit_ether(contract, owner.id(), Amount(0));
    let again = redeeming(contract, owner).remove(0);
    for call in [deposit, again] {
        let request = json!([{ "from": key, "to": call.to, "data": call.data }, "latest"]);
        let (code, data, _) = pair.agree("eth_call", request.clone()).await.unwrap_err();
        assert!(code == 3 && data.is_some());
        pair.agree("eth_estimateGas", request).await.unwrap_err();
    }
    let unpaid = json!([{ "from": pauper, "to": contract, "value": "0x5" }, "latest"]);
    for client in [&pair.real, &pair.simulated] {
        let (_, _, message) = ask(client, "eth_call", &unpaid).await.unwrap_err();
        assert!(message.to_lowercase().contains("insufficient funds"), "{message}");
        let (code, ..) = ask(client, "eth_makeCoffee", &json!([])).await.unwrap_err();
        assert_eq!(code, -32_601);
        let used = raw_transaction(&rich_key(1), 0, contract.into(), U256::ONE, Bytes::new());
        let (_, _, message) = ask(client, "eth_sendRawTransaction", &json!([used])).await.unwrap_err();
        assert!(message.contains("nonce too low"), "{message}");
        let next = raw_transaction(&rich_key(5), 0, contract.into(), U256::ONE, Bytes::new());
        ask(client, "eth_sendRawTransaction", &json!([next])).await.unwrap();
        let (_, _, message) = ask(client, "eth_sendRawTransaction", &json!([next])).await.unwrap_err();
        assert!(message.contains("already"), "{message}");
        let worse = raw_transaction(&rich_key(5), 0, contract.into(), U256::ZERO, Bytes::new());
        let (_, _, message) = ask(client, "eth_sendRawTransaction", &json!([worse])).await.unwrap_err();
        assert!(message.contains("underpriced"), "{message}");
    }
    pair.agree("eth_getTransactionCount", json!([rich_key(5).address(), "pending"])).await.unwrap();
    // Estimates are found by trying; each may be a little too high.
    let call = Call::deposit_ether(contract, owner.id(), Amount(9));
    let request = json!([{ "from": key, "to": call.to, "value": call.value, "data": call.data }, "latest"]);
    let gas = |answer: Answer| serde_json::from_value::<U64>(answer.unwrap()).unwrap().to::<u64>();
    let real = gas(ask(&pair.real, "eth_estimateGas", &request).await);
    let simulated = gas(ask(&pair.simulated, "eth_estimateGas", &request).await);
    assert!(real.abs_diff(simulated) < real / 32, "{simulated} and {real}");
}
