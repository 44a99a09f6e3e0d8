//! A real chain for tests: each test runs its own anvil with the compiled contract deployed on it.
//!
//! Not for production: it panics if the set-up is missing. Needs `node_modules/` and `out/`, which `make setup`
//! creates.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::missing_panics_doc, clippy::indexing_slicing)]

mod lying_node;
mod rotation;

pub use lying_node::LyingNode;
pub use rotation::{Rotation, Signers};

use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use alloy::consensus::{SignableTransaction, TxEip1559};
use alloy::eips::eip2718::Encodable2718;
use alloy::primitives::{Address, B256, Bytes, TxKind, U64, U256};
use alloy::rpc::client::RpcClient;
use alloy::rpc::json_rpc::RpcRecv;
use alloy::signers::{SignerSync, local::PrivateKeySigner};
use alloy::sol_types::SolValue;
use fastpay_core::Committee;
use fastpay_ethereum::{
    AssetCap, Call, ContractAuthority, Finality, Primary, PrimaryConfig, SafetyParameters, Sender, SenderConfig,
};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

/// Anvil's chain id.
pub const CHAIN_ID: u64 = 31_337;

/// The guardian of a contract that [`Anvil::deploy`] made. Its key is [`rich_key`] number [`GUARDIAN_KEY`].
pub const GUARDIAN: Address = alloy::primitives::address!("0x23618e81E3f5cdF7f54C3d65f7FBc0aBf5B21E8f");

/// The number of the key that deploys contracts.
pub const DEPLOYER_KEY: u32 = 9;

/// The number of the guardian's key.
pub const GUARDIAN_KEY: u32 = 8;

/// The contract's safety parameters, as short as it allows. All of an asset's holdings may leave within an hour, so
/// that only a test about waiting waits.
pub const SAFETY_PARAMETERS: SafetyParameters = SafetyParameters {
    pauseDuration: 3_600,
    pauseCooldown: 3_600,
    outflowWindow: 3_600,
    outflowShare: 10_000,
    outflowDelay: 3 * 86_400,
    votesValidity: 6 * 86_400,
    unlockWindow: 3 * 86_400,
};

/// The root folder of the repository.
#[must_use]
pub fn workspace_root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap().to_owned()
}

/// A chain that mines blocks as configured, and ends when this value is dropped.
#[derive(Debug)]
pub struct Anvil {
    child: Child,
    url: Url,
    rpc: RpcClient,
    _state: tempfile::TempDir,
}

/// How a test's chain makes blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mining {
    /// Mines one block for each transaction, at once.
    Each,
    /// Mines blocks in [`Anvil::mine`] only.
    Manual,
    /// Mines one block every so many milliseconds.
    EveryMs(u64),
}

impl Anvil {
    /// Starts a chain on a free port, whose finalized block is two behind the newest.
    #[must_use]
    pub fn start(mining: Mining) -> Self {
        Self::start_at(mining, 0)
    }

    /// As [`Anvil::start`], on the given port.
    #[must_use]
    pub fn start_at(mining: Mining, port: u16) -> Self {
        let binary = workspace_root().join("node_modules/.bin/anvil");
        assert!(binary.exists(), "{} is missing: run `make setup` first", binary.display());
        // Anvil's cache of states goes into a folder that is deleted with the test.
        let state = tempfile::tempdir().unwrap();
        let mut command = Command::new(native_anvil(&binary));
        command.args(["--port", &port.to_string(), "--slots-in-an-epoch", "1", "--host", "127.0.0.1"]);
        command.args(["--chain-id", &CHAIN_ID.to_string()]).env("HOME", state.path()).current_dir(state.path());
        match mining {
            Mining::Each => {}
            Mining::Manual => drop(command.arg("--no-mining")),
            Mining::EveryMs(ms) => {
                let seconds = Duration::from_millis(ms).as_secs_f64().to_string();
                command.args(["--block-time", &seconds, "--mixed-mining"]);
            }
        }
        let mut child = command.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let address = lines
            .by_ref()
            .find_map(|line| line.ok()?.strip_prefix("Listening on ").map(str::to_owned))
            .expect("anvil starts");
        // Read and drop the rest of its output, or it would block on a full pipe.
        std::thread::spawn(move || lines.for_each(drop));
        let url: Url = format!("http://{address}").parse().unwrap();
        Self { child, rpc: RpcClient::new_http(url.clone()), url, _state: state }
    }

    /// The address on which the chain listens.
    #[must_use]
    pub fn url(&self) -> Url {
        self.url.clone()
    }

    /// The port on which the chain listens.
    #[must_use]
    pub fn port(&self) -> u16 {
        self.url.port().unwrap()
    }

    /// Sends any JSON-RPC request.
    pub async fn request<T: RpcRecv>(&self, method: &'static str, params: Value) -> T {
        self.rpc.request::<Value, T>(method, params).await.unwrap_or_else(|error| panic!("{method}: {error}"))
    }

    /// Mines this many blocks.
    pub async fn mine(&self, count: u64) {
        let _: Value = self.request("anvil_mine", json!([U64::from(count)])).await;
    }

    /// The number of the newest block.
    pub async fn block_number(&self) -> u64 {
        self.request::<U64>("eth_blockNumber", json!([])).await.to()
    }

    /// Replaces the newest `depth` blocks with as many empty ones.
    pub async fn reorganise(&self, depth: u64) {
        let _: Value = self.request("anvil_reorg", json!([depth, []])).await;
    }

    /// A key with 10,000 ETH. Each number has its own key.
    #[must_use]
    pub fn rich_key(&self, number: u32) -> PrivateKeySigner {
        rich_key(number)
    }

    /// Deploys FastPay with this committee, and mines the block if mining is manual.
    pub async fn deploy(&self, committee: &Committee) -> Address {
        self.deploy_codes(|nonce| fastpay_codes(committee, nonce)).await
    }

    /// As [`Anvil::deploy`], with a committee that the guardian may recover.
    pub async fn deploy_recoverable(&self, committee: &Committee) -> Address {
        self.deploy_codes(|nonce| codes(committee, nonce, GUARDIAN)).await
    }

    async fn deploy_codes(&self, codes: impl FnOnce(u64) -> [Bytes; 2]) -> Address {
        let deployer = rich_key(DEPLOYER_KEY);
        let nonce = self.next_nonce(deployer.address()).await;
        let [council, fastpay] = codes(nonce);
        self.send_raw(&deployer, nonce, TxKind::Create, U256::ZERO, council).await;
        let hash = self.send_raw(&deployer, nonce + 1, TxKind::Create, U256::ZERO, fastpay).await;
        self.created_by(hash).await
    }

    /// Deploys the contract that Foundry compiled to `out/<artifact>`, with these encoded arguments.
    pub async fn deploy_artifact(&self, artifact: &str, arguments: &[u8]) -> Address {
        let deployer = rich_key(DEPLOYER_KEY);
        let nonce = self.next_nonce(deployer.address()).await;
        let code = creation_code(artifact, arguments);
        let hash = self.send_raw(&deployer, nonce, TxKind::Create, U256::ZERO, code).await;
        self.created_by(hash).await
    }

    async fn next_nonce(&self, account: Address) -> u64 {
        self.request::<U64>("eth_getTransactionCount", json!([account, "latest"])).await.to()
    }

    async fn created_by(&self, transaction: B256) -> Address {
        self.mined_receipt(transaction).await["contractAddress"].as_str().unwrap().parse().unwrap()
    }

    /// Signs and submits a transaction without any of the sender's care.
    pub async fn send_raw(&self, key: &PrivateKeySigner, nonce: u64, to: TxKind, value: U256, input: Bytes) -> B256 {
        let raw = raw_transaction(key, nonce, to, value, input);
        self.request("eth_sendRawTransaction", json!([raw])).await
    }

    /// Returns the receipt, after mining a block if there is none yet.
    pub async fn mined_receipt(&self, hash: B256) -> Value {
        for _ in 0..100 {
            let receipt: Value = self.request("eth_getTransactionReceipt", json!([hash])).await;
            if !receipt.is_null() {
                assert_eq!(receipt["status"], "0x1", "transaction {hash} failed");
                return receipt;
            }
            self.mine(1).await;
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        panic!("transaction {hash} is not mined");
    }

    /// Installs the next committee of `contract`: announced, endorsed, and accepted a day later. The newest block is
    /// then that of the installation.
    pub async fn rotate(&self, contract: Address, now: Signers<'_>, next: Signers<'_>) {
        self.install(&Rotation::new(contract, now, next, self.time_s().await + 86_400)).await;
    }

    /// Performs all steps of a rotation.
    pub async fn install(&self, rotation: &Rotation) {
        for call in [rotation.announce(), rotation.endorse()] {
            self.call_as_guardian(call).await;
        }
        self.pass(rotation.delay_s()).await;
        self.mature(rotation).await;
    }

    /// Performs all steps of a recovery, after the committee has been silent for as long as it takes.
    pub async fn recover(&self, rotation: &Rotation) {
        self.call_as_guardian(rotation.announce_recovery()).await;
        self.pass(Rotation::RECOVERY_NOTICE_S).await;
        self.mature(rotation).await;
    }

    /// Lets an announcement mature whose delay has passed, and installs it.
    pub async fn mature(&self, rotation: &Rotation) {
        let matured = self.call_as_guardian(rotation.mature()).await;
        let hash = matured["blockHash"].as_str().unwrap().parse().unwrap();
        let number: U64 = serde_json::from_value(matured["blockNumber"].clone()).unwrap();
        self.call_as_guardian(rotation.install(number.to(), hash)).await;
    }

    /// Sends a call from the guardian, waits until it is mined, and returns the receipt.
    pub async fn call_as_guardian(&self, call: Call) -> Value {
        let key = rich_key(GUARDIAN_KEY);
        let nonce: U64 = self.request("eth_getTransactionCount", json!([key.address(), "latest"])).await;
        let hash = self.send_raw(&key, nonce.to(), call.to.into(), call.value, call.data).await;
        self.mined_receipt(hash).await
    }

    /// The time of the newest block, in seconds since 1970.
    pub async fn time_s(&self) -> u64 {
        let block: Value = self.request("eth_getBlockByNumber", json!(["latest", false])).await;
        serde_json::from_value::<U64>(block["timestamp"].clone()).unwrap().to()
    }

    /// Advances the chain's clock by this many seconds and mines a block.
    pub async fn pass(&self, seconds: u64) {
        let _: Value = self.request("evm_increaseTime", json!([seconds])).await;
        self.mine(1).await;
    }

    /// The configuration by which to reach `contract` on this chain.
    #[must_use]
    pub fn config(&self, contract: Address) -> PrimaryConfig {
        PrimaryConfig::new(vec![self.url()], CHAIN_ID, contract)
    }

    /// A connection to `contract` on this chain.
    pub async fn primary(&self, contract: Address, finality: Finality) -> Primary {
        Primary::connect(PrimaryConfig { finality, ..self.config(contract) }).await.unwrap()
    }

    /// A sender that polls often.
    pub async fn sender(&self, contract: Address, key: PrivateKeySigner, finality: Finality) -> Sender {
        let config = SenderConfig { poll_interval_ms: 30, stuck_after_ms: 1_500, ..SenderConfig::default() };
        Sender::new(self.primary(contract, finality).await, key, config)
    }
}

impl Drop for Anvil {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// The creation code of a council and then its FastPay contract, for the next two nonces of [`DEPLOYER_KEY`]. Nobody
/// can recover it, and it has no deposit caps.
#[must_use]
pub fn fastpay_codes(committee: &Committee, nonce: u64) -> [Bytes; 2] {
    codes(committee, nonce, Address::ZERO)
}

fn codes(committee: &Committee, nonce: u64, recovery: Address) -> [Bytes; 2] {
    let deployer = rich_key(DEPLOYER_KEY).address();
    let members: Vec<_> = committee.members().iter().map(ContractAuthority::from).collect();
    let council = (deployer.create(nonce + 1), recovery);
    let fastpay = (members, GUARDIAN, deployer.create(nonce), SAFETY_PARAMETERS, Vec::<AssetCap>::new());
    [
        creation_code("Council.sol/Council.json", &council.abi_encode_params()),
        creation_code("FastPay.sol/FastPay.json", &fastpay.abi_encode_params()),
    ]
}

/// The council of a contract that was created with [`fastpay_codes`].
#[must_use]
pub fn council_of(contract: Address) -> Address {
    let deployer = rich_key(DEPLOYER_KEY).address();
    let nonce = (0..1_000).find(|nonce| deployer.create(nonce + 1) == contract);
    deployer.create(nonce.expect("it is one of the deployer's first contracts"))
}

/// The creation code of the contract that Foundry compiled to `out/<artifact>`, with these encoded arguments.
#[must_use]
pub fn creation_code(artifact: &str, arguments: &[u8]) -> Bytes {
    #[derive(Deserialize)]
    struct Artifact {
        bytecode: Code,
    }
    #[derive(Deserialize)]
    struct Code {
        object: Bytes,
    }
    let path = workspace_root().join("out").join(artifact);
    let text = std::fs::read(&path).unwrap_or_else(|_| panic!("{} is missing: run `make setup` first", path.display()));
    let artifact: Artifact = serde_json::from_slice(&text).unwrap();
    [&artifact.bytecode.object, arguments].concat().into()
}

/// A signed transaction for [`CHAIN_ID`] with plenty of gas.
#[must_use]
pub fn raw_transaction(key: &PrivateKeySigner, nonce: u64, to: TxKind, value: U256, input: Bytes) -> Bytes {
    let transaction = TxEip1559 {
        chain_id: CHAIN_ID,
        nonce,
        gas_limit: 12_000_000,
        max_fee_per_gas: 100_000_000_000,
        // A higher tip than a sender offers, so that this transaction comes first.
        max_priority_fee_per_gas: 2_000_000_000,
        to,
        value,
        access_list: Default::default(),
        input,
    };
    let signature = key.sign_hash_sync(&transaction.signature_hash()).unwrap();
    transaction.into_signed(signature).encoded_2718().into()
}

/// One of the keys of anvil's well-known mnemonic, by its number from 0 to 9.
#[must_use]
pub fn rich_key(number: u32) -> PrivateKeySigner {
    const KEYS: [&str; 10] = [
        "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
        "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
        "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
        "7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
        "47e179ec197488593b187f80a00eb0da91f1b9d0b13f8733639f19c30a34926a",
        "8b3a350cf5c34c9194ca85829a2df0ec3153be0318b5e2d3348e872092edffba",
        "92db14e403b83dfe3df233f83dfa3a0d7096f21ca9b0d6d6b8d88b2b4ec1564e",
        "4bbbf85ce3377467afe5d46f804f221813b2bb87f24d81f60f1fcdbf7cbf4356",
        "dbda1821b80551c9d65939329250298aa3472ba22feea921c0cf5d620ea67b97",
        "2a871d0798f97d79848a013d4936a73bf4cc922c825d33c1cf7073dff6d409c6",
    ];
    KEYS[number as usize].parse().unwrap()
}

/// The native program, if the package's launcher is a script: killing the launcher would leave the program running.
fn native_anvil(launcher: &Path) -> PathBuf {
    let packages = std::fs::read_dir(workspace_root().join("node_modules/@foundry-rs")).into_iter().flatten();
    let native = packages.flatten().map(|package| package.path().join("bin/anvil")).find(|path| path.is_file());
    native.unwrap_or_else(|| launcher.to_owned())
}
