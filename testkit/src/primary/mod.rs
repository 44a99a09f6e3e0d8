//! A simulated Ethereum: the real contract's code, run by revm in process, behind nodes that speak JSON-RPC to the
//! real follower, relayer and wallet.
//!
//! ```text
//!  fastpay_ethereum::Primary ─► RpcClient ─► SimulatedNode (view, delay, faults) ─┐
//!  fastpay_ethereum::Primary ─► RpcClient ─► SimulatedNode ───────────────────────┼─► SimulatedPrimary
//!                                                                                 │    blocks, pool, states
//!  the test: mine, reorganise, fund, deposit, read ◄──────────────────────────────┘    └─► revm
//! ```
//! Modules in reading order: `state` (accounts after one block), `block`, `evm` (revm), `pool`, `chain` (how blocks
//! come and go), `rpc` (questions and answers), `faults` and `node` (one node's view), `weather` (a seeded script of
//! all that may go wrong), and here what a test does with it.
//!
//! Nothing here has its own clock, threads or randomness: blocks are added when the test says so, at the time that it
//! gives; delays are in tokio's time, which tests pause; random values come from seeds.

mod block;
mod chain;
mod contract;
mod evm;
mod faults;
mod node;
mod pool;
mod rpc;
mod state;
mod weather;

pub use chain::{ChainConfig, Fate};
pub use contract::SimulatedContract;
pub use faults::{Behaviour, LogLie};
pub use node::SimulatedNode;
pub use weather::Weather;

use std::sync::{Arc, Mutex, MutexGuard};

use crate::anvil::{DEPLOYER_KEY, creation_code, fastpay_codes, raw_transaction, rich_key};
use alloy::primitives::{Address, B256, Bytes, TxKind, U256};
use alloy::rpc::types::TransactionReceipt;
use fastpay_core::Committee;
use fastpay_ethereum::{Call, Finality, Primary, PrimaryConfig, PrivateKeySigner};
use serde_json::json;
use url::Url;

use chain::Chain;
use rpc::View;

/// The time between blocks if a test does not choose it, in seconds.
pub const SLOT_S: u64 = 12;
/// The balance of each of anvil's ten keys, in wei.
const RICHES: u128 = 10_000 * 1_000_000_000_000_000_000;

/// A test's handle to a chain. Clones refer to the same chain.
#[derive(Clone, Debug)]
pub struct SimulatedPrimary {
    chain: Arc<Mutex<Chain>>,
}

impl SimulatedPrimary {
    /// A new chain, on which [`rich_key`]s have 10,000 ETH each.
    #[must_use]
    pub fn new(config: ChainConfig) -> Self {
        let mut chain = Chain::new(config);
        (0..10).for_each(|number| chain.set_balance(rich_key(number).address(), U256::from(RICHES)));
        Self { chain: Arc::new(Mutex::new(chain)) }
    }

    fn chain(&self) -> MutexGuard<'_, Chain> {
        self.chain.lock().expect("no user of the chain panics")
    }

    /// A node that follows this chain. `name` identifies it in the digest and in its URL; `seed` determines its delays
    /// and errors.
    #[must_use]
    pub fn node(&self, name: &str, seed: u64) -> SimulatedNode {
        SimulatedNode::new(self.chain.clone(), name, seed)
    }

    /// A connection of production code to `contract` through these nodes, the preferred one first.
    ///
    /// # Panics
    /// If there is no node.
    #[must_use]
    pub fn connect(&self, nodes: &[SimulatedNode], contract: Address, finality: Finality) -> Primary {
        let rpc_urls = nodes.iter().map(SimulatedNode::url).collect();
        let chain_id = self.chain().config.chain_id;
        let config = PrimaryConfig { finality, ..PrimaryConfig::new(rpc_urls, chain_id, contract) };
        let client = |url: Url| {
            let node = nodes.iter().find(|node| node.url() == url).expect("the URLs are those of the nodes");
            node.client()
        };
        Primary::connect_lazily_over(config, client).expect("there is a node")
    }

    /// Adds a block at this time, in seconds since 1970, with the waiting transactions that pay enough.
    pub fn mine_at(&self, time_s: u64) {
        self.chain().mine(time_s);
    }

    /// Adds this many blocks, each a slot after the one before.
    pub fn mine(&self, count: u64) {
        let mut chain = self.chain();
        for _ in 0..count {
            let time_s = chain.newest().header.timestamp + SLOT_S;
            chain.mine(time_s);
        }
    }

    /// Adds blocks until the current newest one is final.
    pub fn finalize(&self) {
        let depth = self.chain().config.finalized_depth;
        self.mine(depth);
    }

    /// Sets whether blocks become final from now on.
    pub fn finalizes(&self, does: bool) {
        let mut chain = self.chain();
        chain.final_max = None;
        chain.final_max = (!does).then(|| chain.final_of(chain.newest().number()));
    }

    /// The newest final block's number.
    #[must_use]
    pub fn final_number(&self) -> u64 {
        let chain = self.chain();
        chain.final_of(chain.newest().number())
    }

    /// Replaces the newest `depth` blocks with as many others. `fate` decides about each of their transactions, the
    /// newest first.
    pub fn reorganise(&self, depth: usize, fate: impl FnMut(B256) -> Fate) {
        self.chain().reorganise(depth, fate);
    }

    /// The newest block's number.
    #[must_use]
    pub fn block_number(&self) -> u64 {
        self.chain().newest().number()
    }

    /// The newest block's time, in seconds since 1970.
    #[must_use]
    pub fn time_s(&self) -> u64 {
        self.chain().newest().header.timestamp
    }

    /// The hash of the block of this number, if there is one.
    #[must_use]
    pub fn block_hash(&self, number: u64) -> Option<B256> {
        let number = usize::try_from(number).ok()?;
        self.chain().branch.get(number).map(|block| block.hash())
    }

    /// The time of the block with this number, in seconds since 1970, if there is one.
    #[must_use]
    pub fn block_time(&self, number: u64) -> Option<u64> {
        let number = usize::try_from(number).ok()?;
        self.chain().branch.get(number).map(|block| block.header.timestamp)
    }

    /// Whether the newest block contains no transaction.
    #[must_use]
    pub fn is_newest_empty(&self) -> bool {
        self.chain().newest().transactions.is_empty()
    }

    /// The base fee that the next block will have, in wei per gas.
    #[must_use]
    pub fn next_base_fee(&self) -> u64 {
        self.chain().next_base_fee()
    }

    /// Sets the base fee of the next block, in wei per gas. Later fees follow from it.
    pub fn set_next_base_fee(&self, wei: u64) {
        self.chain().set_next_base_fee(wei);
    }

    /// The waiting transactions, by sender and nonce.
    #[must_use]
    pub fn waiting(&self) -> Vec<B256> {
        self.chain().pool.iter().map(|transaction| *transaction.tx_hash()).collect()
    }

    /// Forgets a waiting transaction. Returns false if it does not wait.
    pub fn forget(&self, transaction: B256) -> bool {
        self.chain().pool.forget(transaction)
    }

    /// Sets the balance of an address.
    pub fn set_balance(&self, owner: Address, wei: U256) {
        self.chain().set_balance(owner, wei);
    }

    /// The balance of an address in the newest block, in wei.
    #[must_use]
    pub fn balance(&self, owner: Address) -> U256 {
        self.chain().newest_state().balance(owner)
    }

    fn storage(&self, owner: Address, slot: U256) -> U256 {
        self.chain().newest_state().storage(owner, slot)
    }

    fn set_storage(&self, owner: Address, slot: U256, value: U256) {
        self.chain().set_storage(owner, slot, value);
    }

    /// The next nonce of an address, counting waiting transactions.
    #[must_use]
    pub fn next_nonce(&self, owner: Address) -> u64 {
        let chain = self.chain();
        chain.pool.next_nonce(owner, chain.newest_state())
    }

    /// Signs a call with the key's next nonce and submits it.
    ///
    /// # Panics
    /// If the pool refuses it.
    pub fn send(&self, key: &PrivateKeySigner, call: Call) -> B256 {
        self.send_at(key, self.next_nonce(key.address()), call.to.into(), call.value, call.data)
    }

    /// Signs and submits a call with the given nonce, or the creation of a contract.
    ///
    /// # Panics
    /// If the pool refuses it.
    pub fn send_at(&self, key: &PrivateKeySigner, nonce: u64, to: TxKind, value: U256, input: Bytes) -> B256 {
        let raw = raw_transaction(key, nonce, to, value, input);
        let answer = rpc::submit(&mut self.chain(), &[json!(raw)]);
        let hash = answer.unwrap_or_else(|error| panic!("the pool refuses a test's transaction: {error:?}"));
        serde_json::from_value(hash).expect("a hash")
    }

    /// The receipt of a transaction that is in a block.
    #[must_use]
    pub fn receipt(&self, transaction: B256) -> Option<TransactionReceipt> {
        let chain = self.chain();
        let blocks = chain.branch.iter().rev();
        let mut places = blocks.filter_map(|block| Some(block.receipt(block.position(transaction)?)));
        places.next()
    }

    /// Deploys FastPay with this committee and anvil's safety parameters and guardian, in a block of its own.
    ///
    /// # Panics
    /// If the contract refuses the committee.
    #[must_use]
    pub fn deploy(&self, committee: &Committee) -> SimulatedContract {
        let nonce = self.next_nonce(rich_key(DEPLOYER_KEY).address());
        SimulatedContract::new(self.clone(), self.create(nonce, fastpay_codes(committee, nonce)))
    }

    /// Deploys the contract that Foundry compiled to `out/<artifact>`, with these encoded arguments, in its own block.
    ///
    /// # Panics
    /// If the constructor reverts.
    #[must_use]
    pub fn deploy_artifact(&self, artifact: &str, arguments: &[u8]) -> Address {
        self.create(self.next_nonce(rich_key(DEPLOYER_KEY).address()), [creation_code(artifact, arguments)])
    }

    /// Creates contracts from a nonce on, all in the next block. Returns the last one's address.
    fn create(&self, nonce: u64, codes: impl IntoIterator<Item = Bytes>) -> Address {
        let send = |(nonce, code)| self.send_at(&rich_key(DEPLOYER_KEY), nonce, TxKind::Create, U256::ZERO, code);
        let last = (nonce..).zip(codes).map(send).last().expect("there is one");
        self.mine(1);
        let receipt = self.receipt(last).expect("the next block has room");
        assert!(receipt.status(), "the constructor reverts");
        receipt.contract_address.expect("it created a contract")
    }

    /// A digest of all requests and answers so far, in order: equal runs have equal digests.
    #[must_use]
    pub fn digest(&self) -> B256 {
        self.chain().digest
    }

    /// Reads the chain as a correct and current node does.
    fn view<T>(&self, view: impl FnOnce(View<'_>) -> T) -> T {
        let chain = self.chain();
        view(View { chain: &chain, branch: &chain.branch })
    }
}
