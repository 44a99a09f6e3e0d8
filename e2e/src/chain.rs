//! The Primary: an anvil of its own, with the contract and a token deployed by the repository's own scripts.

use std::path::Path;
use std::process::Command;
use std::time::Duration;

use alloy::primitives::{Address, Bytes, U64, U256};
use alloy::rpc::client::RpcClient;
use alloy::rpc::json_rpc::RpcRecv;
use alloy::sol_types::SolCall;
use fastpay_core::Authority as Member;
use fastpay_ethereum::IFastPay;
use fastpay_testkit::Ports;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::failure::{Failure, wait_for};
use crate::place::{Place, foundry, root};
use crate::process::{Program, run};

/// Anvil's chain ID.
pub const CHAIN_ID: u64 = 31_337;

/// How long these deployments queue redemptions above the outflow limit, in seconds.
pub const OUTFLOW_DELAY_S: u64 = 259_200;
/// How long votes of an epoch count after its end, in seconds.
pub const VOTES_VALIDITY_S: u64 = 518_400;

/// Keys of anvil's well-known mnemonic, each with 10,000 test ETH on every anvil.
pub const RICH_KEYS: [&str; 4] = [
    "ac0974bec39a17e36ba4a6b4d238ff944bacb478cbed5efcae784d7bf4f2ff80",
    "59c6995e998f97a5a0044966f0945389dc9e86dae88c7a8412f4603b6b78690d",
    "5de4111afa1a4b94908f83103eb1f1706367c2e68ca870fc3fb9a804cdab365a",
    "7c852118294e51e653712a81e05800f419141751be58f605c371e15141b007a6",
];
pub(crate) const DEPLOYER_KEY: &str = RICH_KEYS[3];
/// The address of that key; anvil signs for it.
const DEPLOYER: Address = alloy::primitives::address!("0x90F79bf6EB2c4f870365E785982E1f101E93b906");

// Time limits that also hold on a busy machine.
const START_PATIENCE: Duration = Duration::from_secs(120);
const RECEIPT_PATIENCE: Duration = Duration::from_secs(120);

#[allow(missing_docs)]
mod abi {
    alloy::sol! {
        function transfer(address to, uint256 value) external returns (bool);
    }
}

/// A running chain.
#[derive(Debug)]
pub struct Chain {
    program: Program,
    url: String,
    rpc: RpcClient,
}

/// A token to try FastPay with.
#[derive(Clone, Debug, Deserialize)]
pub struct Token {
    /// The address of its contract.
    #[serde(rename = "token")]
    pub address: Address,
    /// Its symbol.
    pub symbol: String,
    /// Its decimals.
    pub decimals: u8,
}

#[derive(Deserialize)]
struct Deployment {
    contract: Address,
}

impl Chain {
    /// Starts a chain that makes a block at each transaction and every `block_time`, and whose finalized block is two
    /// behind the newest.
    ///
    /// # Errors
    /// If anvil does not start.
    pub async fn start(place: &Place, ports: &mut Ports, block_time: Duration) -> Result<Self, Failure> {
        Self::start_with_id(place, ports.next(1)?, block_time, CHAIN_ID).await
    }

    /// The same on a given port, as the chain `id`.
    ///
    /// # Errors
    /// If anvil does not start.
    pub async fn start_with_id(place: &Place, port: u16, block_time: Duration, id: u64) -> Result<Self, Failure> {
        let mut command = Command::new(foundry("anvil")?);
        command.args(["--host", "127.0.0.1", "--slots-in-an-epoch", "1", "--mixed-mining"]);
        command.args(["--port", &port.to_string(), "--chain-id", &id.to_string()]);
        command.args(["--block-time", &block_time.as_secs_f64().to_string()]);
        // Anvil keeps files in the home folder.
        command.env("HOME", place.folder()).current_dir(place.folder());
        let mut program = Program::start("anvil", &mut command, &place.log("anvil"))?;
        let url = format!("http://127.0.0.1:{port}");
        let parsed = url.parse().map_err(Failure::wrong)?;
        let rpc = RpcClient::new_http(parsed);
        let up = wait_for(START_PATIENCE, async || {
            rpc.request::<_, U64>("eth_chainId", json!([]))
                .await
                .map_err(|error| format!("anvil does not answer: {error}"))
        });
        match up.await {
            Ok(_) => Ok(Self { program, url, rpc }),
            Err(late) => Err(program.check().err().unwrap_or(late)),
        }
    }

    /// Its JSON-RPC address.
    #[must_use]
    pub fn url(&self) -> &str {
        &self.url
    }

    /// Its process.
    pub fn program(&mut self) -> &mut Program {
        &mut self.program
    }

    /// Sends a JSON-RPC request.
    ///
    /// # Errors
    /// If the chain returns an error or does not answer.
    pub async fn request<T: RpcRecv>(&self, method: &'static str, params: Value) -> Result<T, Failure> {
        let answer = self.rpc.request::<Value, T>(method, params).await;
        answer.map_err(|error| Failure::Wrong(format!("{method}: {error}")))
    }

    /// Deploys the contract for a committee.
    ///
    /// # Errors
    /// If the script fails.
    pub fn deploy(&self, place: &Place, members: &[Member]) -> Result<Address, Failure> {
        let list: Vec<_> = members
            .iter()
            .map(|member| json!({ "votingKey": member.name, "redemptionKey": member.redemption_key }))
            .collect();
        // The shortest times that the contract allows. All of an asset may leave within an hour.
        let parameters = json!({
            "pauseDuration": 3600, "pauseCooldown": 3600, "outflowWindow": 3600, "outflowShare": 10_000,
            "outflowDelay": OUTFLOW_DELAY_S, "votesValidity": VOTES_VALIDITY_S, "unlockWindow": 259_200,
        });
        let chain = json!({
            "chainId": CHAIN_ID, "authorities": list, "guardian": DEPLOYER, "recovery": DEPLOYER,
            "safetyParameters": parameters,
        });
        let committee = place.write("committee.json", chain.to_string())?;
        let deployment = place.path("deployment.json");
        let variables: [(&str, &Path); 2] = [("COMMITTEE", &committee), ("DEPLOYMENT", &deployment)];
        self.script(place, "script/Deploy.s.sol", &[], &variables)?;
        Ok(read::<Deployment>(&deployment)?.contract)
    }

    /// Verifies that a contract was compiled from this source, with this deployment's parameters.
    ///
    /// # Errors
    /// If it was not.
    pub fn verify(&self, place: &Place, contract: Address) -> Result<(), Failure> {
        let (committee, contract) = (place.path("committee.json"), contract.to_string());
        let variables: [(&str, &Path); 2] = [("COMMITTEE", &committee), ("CONTRACT", Path::new(&contract))];
        self.script(place, "script/Verify.s.sol", &[], &variables)
    }

    /// Deploys a token and gives its whole supply to the deployer.
    ///
    /// # Errors
    /// If the script fails.
    pub fn deploy_token(&self, place: &Place) -> Result<Token, Failure> {
        let deployment = place.path("token.json");
        self.script(place, "script/DeployDemoToken.s.sol", &[], &[("DEPLOYMENT", &deployment)])?;
        read(&deployment)
    }

    /// Runs a function of the script that submits operators' files to the council.
    ///
    /// # Errors
    /// If the script fails.
    pub fn council(&self, place: &Place, function: &str, variables: &[(&str, &Path)]) -> Result<(), Failure> {
        self.script(place, "script/Council.s.sol", &["--sig", &format!("{function}()")], variables)
    }

    /// Runs a function of the script about redemptions that wait in the contract's queue.
    ///
    /// # Errors
    /// If the script fails.
    pub fn queue(&self, place: &Place, function: &str, variables: &[(&str, &Path)]) -> Result<(), Failure> {
        self.script(place, "script/Queue.s.sol", &["--sig", &format!("{function}()")], variables)
    }

    fn script(
        &self,
        place: &Place,
        script: &str,
        arguments: &[&str],
        variables: &[(&str, &Path)],
    ) -> Result<(), Failure> {
        // Two runs at once would overwrite each other's records.
        static ONE_AT_A_TIME: std::sync::Mutex<()> = std::sync::Mutex::new(());
        let _turn = ONE_AT_A_TIME.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let mut command = Command::new(foundry("forge")?);
        command.args([
            "script",
            script,
            "--rpc-url",
            &self.url,
            "--private-key",
            DEPLOYER_KEY,
            "--broadcast",
            "--slow",
        ]);
        command.args(arguments).current_dir(root()).envs(variables.iter().copied());
        command.env("FOUNDRY_BROADCAST", place.path("broadcast"));
        run(&mut command)?.success().map(drop)
    }

    /// Gives ETH to an address.
    ///
    /// # Errors
    /// If the chain refuses.
    pub async fn give_ether(&self, to: Address, wei: U256) -> Result<(), Failure> {
        self.send(to, wei, Bytes::new()).await
    }

    /// Gives units of a token to an address.
    ///
    /// # Errors
    /// If the chain refuses.
    pub async fn give_token(&self, token: &Token, to: Address, units: U256) -> Result<(), Failure> {
        let call = abi::transferCall { to, value: units };
        self.send(token.address, U256::ZERO, call.abi_encode().into()).await
    }

    /// The guardian pauses the contract.
    ///
    /// # Errors
    /// If the chain refuses.
    pub async fn pause(&self, contract: Address) -> Result<(), Failure> {
        self.send(contract, U256::ZERO, IFastPay::pauseCall {}.abi_encode().into()).await
    }

    /// Stops mining: from now on only [`Chain::mine`] makes blocks.
    ///
    /// # Errors
    /// If the chain refuses.
    pub async fn hold(&self) -> Result<(), Failure> {
        self.request::<Value>("evm_setAutomine", json!([false])).await?;
        self.request::<Value>("evm_setIntervalMining", json!([0])).await.map(drop)
    }

    /// Makes blocks again, at each transaction and every second.
    ///
    /// # Errors
    /// If the chain refuses.
    pub async fn go_on(&self) -> Result<(), Failure> {
        self.request::<Value>("evm_setAutomine", json!([true])).await?;
        self.request::<Value>("evm_setIntervalMining", json!([1])).await.map(drop)
    }

    /// Makes this many blocks at once.
    ///
    /// # Errors
    /// If the chain refuses.
    pub async fn mine(&self, blocks: u64) -> Result<(), Failure> {
        self.request::<Value>("anvil_mine", json!([U64::from(blocks)])).await.map(drop)
    }

    /// Replaces this many of the newest blocks by empty ones.
    ///
    /// # Errors
    /// If the chain refuses.
    pub async fn reorganise(&self, blocks: u64) -> Result<(), Failure> {
        self.request::<Value>("anvil_reorg", json!([blocks, []])).await.map(drop)
    }

    /// The newest block's time, in seconds since 1970.
    ///
    /// # Errors
    /// If the chain does not answer.
    pub async fn time_s(&self) -> Result<u64, Failure> {
        let block: Value = self.request("eth_getBlockByNumber", json!(["latest", false])).await?;
        let time: U64 =
            serde_json::from_value(block.get("timestamp").cloned().unwrap_or_default()).map_err(Failure::wrong)?;
        Ok(time.to())
    }

    /// Advances the chain's clock by this many seconds.
    ///
    /// # Errors
    /// If the chain refuses.
    pub async fn pass(&self, seconds: u64) -> Result<(), Failure> {
        self.request::<Value>("evm_increaseTime", json!([seconds])).await?;
        self.request::<Value>("evm_mine", json!([])).await.map(drop)
    }

    /// Calls a contract from an unrelated account, and waits until the transaction is mined.
    ///
    /// # Errors
    /// If the contract reverts, with its reason.
    pub async fn send(&self, to: Address, value: U256, data: Bytes) -> Result<(), Failure> {
        let hash = self.submit(to, value, data.clone()).await?;
        let status = wait_for(RECEIPT_PATIENCE, async || {
            let receipt = self.request::<Value>("eth_getTransactionReceipt", json!([hash])).await;
            let receipt = receipt.map_err(|error| error.to_string())?;
            receipt.get("status").cloned().ok_or_else(|| format!("transaction {hash} is not mined"))
        });
        match status.await? {
            status if status == json!("0x1") => Ok(()),
            _ => {
                self.request::<Value>("eth_call", transaction(to, value, &data)).await?;
                Err(Failure::Wrong(format!("transaction {hash} failed, and would succeed now")))
            }
        }
    }

    /// The same without waiting.
    ///
    /// # Errors
    /// If the chain refuses.
    pub async fn submit(&self, to: Address, value: U256, data: Bytes) -> Result<Value, Failure> {
        self.request("eth_sendTransaction", transaction(to, value, &data)).await
    }

    /// The balance of an address, in wei.
    ///
    /// # Errors
    /// If the chain does not answer.
    pub async fn ether_of(&self, owner: Address) -> Result<U256, Failure> {
        self.request("eth_getBalance", json!([owner, "latest"])).await
    }
}

fn transaction(to: Address, value: U256, data: &Bytes) -> Value {
    json!([{ "from": DEPLOYER, "to": to, "value": value, "data": data }])
}

pub(crate) fn read<T: for<'de> Deserialize<'de>>(path: &Path) -> Result<T, Failure> {
    let bytes = std::fs::read(path).map_err(|error| Failure::Io { path: path.into(), error })?;
    serde_json::from_slice(&bytes).map_err(|error| Failure::Wrong(format!("{}: {error}", path.display())))
}
