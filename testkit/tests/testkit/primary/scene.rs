//! A contract on a simulated chain, and nodes that show it.

use alloy::primitives::U256;
use alloy::sol_types::SolValue;
use fastpay_core::{AccountId, Amount, Asset};
use fastpay_ethereum::{Finality, IFastPay, Primary, Sender, SenderConfig};
use fastpay_testkit::TestCommittee;
use fastpay_testkit::anvil::rich_key;
use fastpay_testkit::primary::{ChainConfig, SimulatedContract, SimulatedNode, SimulatedPrimary};

pub const ALICE: AccountId = AccountId([0xa1; 32]);
pub const BOB: AccountId = AccountId([0xb0; 32]);

pub struct Scene {
    pub primary: SimulatedPrimary,
    pub contract: SimulatedContract,
    pub nodes: Vec<SimulatedNode>,
}

impl Scene {
    /// With two nodes, whose randomness has this seed.
    pub fn new(seed: u64) -> Self {
        Self::with(ChainConfig::default(), seed)
    }

    pub fn with(config: ChainConfig, seed: u64) -> Self {
        let primary = SimulatedPrimary::new(config);
        let contract = primary.deploy(&TestCommittee::new(4).committee);
        primary.finalize();
        let nodes = vec![primary.node("first", seed), primary.node("second", seed + 1)];
        Self { primary, contract, nodes }
    }

    /// The production code's connection through all nodes.
    pub fn connect(&self) -> Primary {
        self.connect_through(&self.nodes)
    }

    pub fn connect_through(&self, nodes: &[SimulatedNode]) -> Primary {
        self.primary.connect(nodes, self.contract.address(), Finality::Finalized)
    }

    /// A sender with the key of this number, through all nodes.
    pub fn sender(&self, key: u32) -> Sender {
        Sender::new(self.connect(), rich_key(key), SenderConfig::default())
    }

    /// A deposit of ETH in a block of its own.
    pub fn deposit(&self, wei: u128) {
        self.contract.deposit_ether(&rich_key(1), ALICE, Amount(wei));
        self.primary.mine(1);
    }

    /// A token whose whole supply belongs to key number 9.
    pub fn token(&self) -> Asset {
        let arguments = ("Demo Token", "DEMO", U256::from(6), U256::from(1_000_000)).abi_encode_params();
        Asset(self.primary.deploy_artifact("DemoToken.sol/DemoToken.json", &arguments))
    }

    /// Index and amount of every deposit, as the contract logged it in the chain as it is now.
    pub fn funded(&self) -> Vec<(u64, u128)> {
        let events = self.contract.events::<IFastPay::Funded>();
        events.iter().map(|event| (event.index, event.amount)).collect()
    }
}
