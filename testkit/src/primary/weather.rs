//! A seeded script of faults of a chain and its nodes.

use alloy::primitives::U256;
use fastpay_ethereum::PrivateKeySigner;
use fastrand::Rng;

use super::{Fate, LogLie, SimulatedNode, SimulatedPrimary};

/// The base fee of a spike, in wei per gas.
const SPIKE_BASE_FEE: u64 = 400_000_000_000;

/// The seconds by which a lying node shifts the time of blocks.
const LATER_S: [i64; 4] = [0, 0, 8 * 86_400, -3_600];

/// Adds blocks to a chain, and causes faults. A correct follower, relayer or wallet must overcome all of them: no final
/// block is replaced, and a faulty node becomes correct again.
#[derive(Debug)]
pub struct Weather {
    primary: SimulatedPrimary,
    nodes: Vec<SimulatedNode>,
    /// The keys whose nonces other transactions may use up.
    keys: Vec<PrivateKeySigner>,
    random: Rng,
    depth_max: u64,
    /// Nodes that may tell any lie about logs and about the time of blocks.
    liars: Vec<usize>,
    /// Nodes that may tell only lies that a client can detect without another node.
    clumsy_liars: Vec<usize>,
}

impl Weather {
    /// The weather of this seed for a chain and its nodes.
    #[must_use]
    pub fn new(primary: SimulatedPrimary, nodes: Vec<SimulatedNode>, seed: u64) -> Self {
        let depth_max = primary.chain().config.finalized_depth;
        Self {
            primary,
            nodes,
            keys: Vec::new(),
            random: Rng::with_seed(seed),
            depth_max,
            liars: Vec::new(),
            clumsy_liars: Vec::new(),
        }
    }

    /// Lets the weather also use up nonces of these keys, as their use elsewhere would.
    #[must_use]
    pub fn with_keys(mut self, keys: Vec<PrivateKeySigner>) -> Self {
        self.keys = keys;
        self
    }

    /// Lets some nodes tell any lie about logs and the time of blocks, and some only lies that a client can detect
    /// without another node. A lie lasts no longer than other faults.
    #[must_use]
    pub fn with_liars(mut self, liars: Vec<usize>, clumsy_liars: Vec<usize>) -> Self {
        (self.liars, self.clumsy_liars) = (liars, clumsy_liars);
        self
    }

    /// One slot, with possibly a block at this time and possibly one fault.
    pub fn slot(&mut self, time_s: u64) {
        match self.random.u32(..24) {
            // A slot without a block.
            0 => return,
            1 | 2 => self.reorganise(),
            3 | 4 => self.lose_a_transaction(),
            5 => self.primary.set_next_base_fee(self.random.u64(1..SPIKE_BASE_FEE)),
            6 => self.take_a_nonce(),
            7..=12 => self.trouble_a_node(),
            18..=20 => self.have_a_node_lie(),
            13..=17 => self.nodes.iter().for_each(SimulatedNode::recover),
            _ => {}
        }
        self.primary.mine_at(time_s);
    }

    /// One slot with a block, without new faults, in which old faults end.
    pub fn calm_slot(&mut self, time_s: u64) {
        self.nodes.iter().for_each(SimulatedNode::recover);
        self.primary.mine_at(time_s);
    }

    /// Replaces some blocks that are not final.
    fn reorganise(&mut self) {
        let deepest = self.depth_max.min(self.primary.block_number());
        if deepest == 0 {
            return;
        }
        let depth = usize::try_from(self.random.u64(1..=deepest)).unwrap_or(1);
        let random = &mut self.random;
        self.primary.reorganise(depth, |_| match random.u32(..4) {
            0 => Fate::Lost,
            1 => Fate::Later,
            _ => Fate::Again,
        });
    }

    fn lose_a_transaction(&mut self) {
        let waiting = self.primary.waiting();
        if let Some(transaction) = waiting.get(self.random.usize(..waiting.len().max(1))) {
            self.primary.forget(*transaction);
        }
    }

    fn take_a_nonce(&mut self) {
        let Some(key) = self.keys.get(self.random.usize(..self.keys.len().max(1))) else { return };
        let (to, nonce) = (key.address().into(), self.primary.next_nonce(key.address()));
        self.primary.send_at(key, nonce, to, U256::ZERO, Default::default());
    }

    fn have_a_node_lie(&mut self) {
        let liars = self.liars.len() + self.clumsy_liars.len();
        if liars == 0 {
            return;
        }
        let (chosen, position) = (self.random.usize(..liars), self.random.usize(..4));
        let (number, lies) = match self.liars.get(chosen) {
            Some(liar) => (*liar, LogLie::all(position).to_vec()),
            None => (self.clumsy_liars[chosen - self.liars.len()], LogLie::clumsy(position).to_vec()),
        };
        let lie = lies[self.random.usize(..lies.len())];
        if let Some(node) = self.nodes.get(number) {
            let is_clumsy = chosen >= self.liars.len();
            node.behave(|behaviour| {
                behaviour.lies = vec![lie];
                behaviour.later_s = if is_clumsy { 0 } else { LATER_S[position] };
            });
        }
    }

    fn trouble_a_node(&mut self) {
        let Some(node) = self.nodes.get(self.random.usize(..self.nodes.len().max(1))) else { return };
        let trouble = self.random.u32(..7);
        let extent = self.random.u32(1..=100);
        match trouble {
            0 => node.behave(|behaviour| behaviour.lag = 1 + extent as usize % 5),
            1 => node.behave(|behaviour| behaviour.delay_ms = 0..=u64::from(extent) * 100),
            2 => node.behave(|behaviour| behaviour.away = true),
            3 => node.behave(|behaviour| behaviour.silent = true),
            4 => node.behave(|behaviour| behaviour.errors_percent = extent),
            5 => node.behave(|behaviour| behaviour.swallows_transactions = true),
            _ => node.get_stuck(),
        }
    }
}
