//! The Primary of a run: the real contract on a simulated chain, Ethereum nodes with different views of it, and the
//! production sender, which submits deposits and new committees. Or a ledger in its place (`ledger`).
//!
//! ```text
//!  World::deposit ─► wallets (`depositing`) ─────────────────────────────┐
//!  World::rotate  ─► errands ─► Sender, killed and restarted ─► nodes ─► chain
//!  blocks: weather of the chain ─► newly final events: to oracle and world ─► balances are checked
//! ```

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::anvil::{CHAIN_ID, Rotation, Signers, rich_key};
use alloy::primitives::{Address, U256};
use alloy::sol_types::{SolCall, SolValue};
use fastpay_core::{
    AccountId, Amount, Asset, Certificate, Committee, Deposit, Domain, Epoch, PrimaryAddress, SequenceNumber,
    TransactionIndex,
};
use fastpay_ethereum::{Call, Finality, ICouncil, IFastPay, IToken, Primary, certified_redemption};
use fastpay_ledger_statement::{CommitteeEvent, EventKind};
use fastpay_node::authority::funding::FundingSource;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::depositing::Wanted;
use super::errands::Errand;
use super::ledger::{Ledger, Wish};
use super::oracle::{Breach, Paid, require};
use super::plan::Plan;
use super::terms::Term;
use super::world::{ASSETS, World, lock};
use crate::primary::{ChainConfig, LogLie, SimulatedContract, SimulatedNode, SimulatedPrimary, Weather};
use crate::{TestCommittee, test_domain};

/// The time at which a run begins, in seconds since 1970. It is far ahead of the machine's clock, by which a node judges
/// whether a block was made after it began.
pub(super) const GENESIS_S: u64 = 4_000_000_000;
/// The time between slots, each with at most one block.
pub(super) const SLOT: Duration = Duration::from_secs(2);
/// The distance of the final block to the newest one.
const FINALIZED_DEPTH: u64 = 3;
/// The number of Ethereum nodes.
pub(super) const NODES: usize = 3;
/// The Ethereum node that may also tell lies that a client of this node alone cannot detect.
pub(super) const LIAR: usize = 1;
/// The time for which a signed announcement can be submitted, in seconds.
const ANNOUNCEMENT_LIFETIME_S: u64 = 20 * 86_400;
/// The numbers of the relayers' keys.
const RELAYERS: [u32; 2] = [6, 7];
/// The keys below this number belong to owners of accounts.
pub const OWNERS_MAX: usize = 6;

/// Builds a rotation's next call.
type RotationStep = Box<dyn Fn(&Chain, &Rotation) -> Option<Call> + Send>;

/// What a node does in every slot of a calm chain.
#[derive(Clone, Debug, Default)]
pub(super) struct Deceit {
    /// Changes that it makes to the contract's logs.
    pub lies: Vec<LogLie>,
    /// The number of blocks by which its view is behind the chain.
    pub lag: usize,
}

/// The state of the final block.
struct Known {
    /// Blocks up to this one were read.
    block: u64,
    /// The number of committees that are installed.
    installed: usize,
    /// The epoch of the last one that is or will be installed.
    elected: usize,
    deposits: u64,
    /// The index of the newest event.
    last_index: u64,
    /// The number of requested deposits.
    deposits_wanted: u64,
}

/// See the [module](self).
pub struct Chain {
    kind: Kind,
    known: Mutex<Known>,
    /// The number of seconds that were skipped without events.
    pub(super) skipped_s: AtomicU64,
    /// The requests to the owners' wallets.
    wanted: Vec<mpsc::UnboundedSender<Wanted>>,
    /// The committees of all epochs, whether or not they are installed.
    terms: Vec<Term>,
}

/// The kinds of Primaries.
enum Kind {
    Ethereum(Box<Ethereum>),
    Ledger(Box<Ledger>),
}

/// A contract on a simulated chain.
pub(super) struct Ethereum {
    pub(super) primary: SimulatedPrimary,
    pub(super) contract: SimulatedContract,
    nodes: Vec<SimulatedNode>,
    errands: mpsc::UnboundedSender<Errand>,
    /// What nodes do in a calm chain.
    deceit: Mutex<BTreeMap<usize, Deceit>>,
}

/// The receiving ends of requests to send transactions.
pub struct Errands {
    /// The owners' wallets, by the numbers of their keys.
    pub wanted: Vec<mpsc::UnboundedReceiver<Wanted>>,
    /// The council's errands.
    pub council: mpsc::UnboundedReceiver<Errand>,
    /// The same on a ledger.
    pub wishes: mpsc::UnboundedReceiver<Wish>,
}

impl Chain {
    /// Creates the Primary. A chain has the contract, and tokens for all depositors; a ledger has their reserves.
    #[must_use]
    pub fn new(plan: &Plan) -> (Self, Errands) {
        let (errands, council) = mpsc::unbounded_channel();
        let (wish, wishes) = mpsc::unbounded_channel();
        let first = &Term::all(plan, test_domain())[0].committee.committee;
        let (kind, domain) = match plan.on_ledger {
            true => {
                let ledger = Ledger::new(plan, first, wish);
                let domain = ledger.domain();
                (Kind::Ledger(Box::new(ledger)), domain)
            }
            false => {
                let ethereum = Ethereum::new(plan, first, errands);
                let domain = Domain::new(CHAIN_ID, ethereum.contract.address());
                (Kind::Ethereum(Box::new(ethereum)), domain)
            }
        };
        let terms = Term::all(plan, domain);
        let (wanted, hear_wanted) = (0..OWNERS_MAX).map(|_| mpsc::unbounded_channel()).unzip();
        let known = Known { block: 0, installed: 1, elected: 0, deposits: 0, last_index: 0, deposits_wanted: 0 };
        let (known, skipped_s) = (Mutex::new(known), AtomicU64::new(0));
        (Self { kind, known, skipped_s, wanted, terms }, Errands { wanted: hear_wanted, council, wishes })
    }

    /// The contract and its chain, where the Primary is one.
    pub(super) fn ethereum(&self) -> &Ethereum {
        match &self.kind {
            Kind::Ethereum(ethereum) => ethereum,
            Kind::Ledger(_) => panic!("the Primary of this run is a ledger"),
        }
    }

    /// The ledger, where the Primary is one.
    pub(super) fn ledger(&self) -> Option<&Ledger> {
        match &self.kind {
            Kind::Ethereum(_) => None,
            Kind::Ledger(ledger) => Some(ledger),
        }
    }

    /// The committees of all epochs, whether or not they are installed.
    #[must_use]
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Those whose installation is final.
    #[must_use]
    pub fn installed(&self) -> &[Term] {
        &self.terms[..lock(&self.known).installed]
    }

    /// Whether a committee after the first one is or will be installed.
    #[must_use]
    pub fn rotates(&self) -> bool {
        lock(&self.known).elected > 0
    }

    /// Makes an owner deposit for an account.
    pub fn deposit(&self, owner: usize, recipient: AccountId, asset: Asset, amount: Amount) {
        lock(&self.known).deposits_wanted += 1;
        let _ = self.wanted[owner].send(Wanted { recipient, asset, amount });
    }

    /// The number of final deposits, and of requested ones.
    #[must_use]
    pub fn deposits(&self) -> (u64, u64) {
        let known = lock(&self.known);
        (known.deposits, known.deposits_wanted)
    }

    /// Rotates to the next committee, announced, endorsed, accepted and installed. Skips the day that this takes.
    pub fn rotate(&self) {
        let (last, next) = {
            let mut known = lock(&self.known);
            known.elected += 1;
            (self.terms[known.elected - 1].committee.clone(), self.terms[known.elected].committee.clone())
        };
        if let Some(ledger) = self.ledger() {
            return ledger.wish(Wish::Rotate(Box::new(last), Box::new(next)));
        }
        let (epoch, contract) = (next.committee.epoch(), self.ethereum().contract.address());
        let signers = |of: &TestCommittee| (of.committee.clone(), of.keys.clone());
        let (last, next) = (signers(&last), signers(&next));
        let rotation = move |deadline_s| {
            let now = Signers { committee: &last.0, keys: &last.1 };
            Rotation::new(contract, now, Signers { committee: &next.0, keys: &next.1 }, deadline_s)
        };
        // Each rotation is signed when its turn comes, so that its deadline counts from then.
        let signed: Arc<Mutex<Option<Rotation>>> = Arc::default();
        let step = |what: &str, call: RotationStep| {
            let (what, signed, rotation) = (format!("{what} of epoch {epoch}"), signed.clone(), rotation.clone());
            let call = move |chain: &Self| {
                let mut signed = lock(&signed);
                let deadline_s = chain.ethereum().primary.time_s() + ANNOUNCEMENT_LIFETIME_S;
                call(chain, signed.get_or_insert_with(|| rotation(deadline_s)))
            };
            let _ = self.ethereum().errands.send(Errand { what, call: Box::new(call), redemption: None });
        };
        step("announcement", Box::new(|_, rotation| Some(rotation.announce())));
        step("endorsement", Box::new(|_, rotation| Some(rotation.endorse())));
        step(
            "maturing",
            Box::new(|chain, rotation| {
                let installable_s: u64 = chain.clock_of(rotation).installableAt.saturating_to();
                let now_s = chain.ethereum().primary.time_s();
                if now_s < installable_s {
                    chain.skipped_s.fetch_add(installable_s - now_s, Ordering::Relaxed);
                    return None;
                }
                Some(rotation.mature())
            }),
        );
        step(
            "installation",
            Box::new(|chain, rotation| {
                let block: u64 = chain.clock_of(rotation).maturedBlock.saturating_to();
                Some(rotation.install(block, chain.ethereum().primary.block_hash(block)?))
            }),
        );
    }

    fn clock_of(&self, rotation: &Rotation) -> ICouncil::clockOfReturn {
        self.ethereum().contract.view_of_council(&ICouncil::clockOfCall { id: rotation.id() })
    }

    /// Makes a redemption's owner submit it without a relayer.
    pub fn redeem(&self, certificate: &Certificate) {
        let epoch = usize::try_from(certificate.epoch.0).expect("few epochs");
        let committee = &self.installed()[epoch].committee.committee;
        if let Some(ledger) = self.ledger() {
            return ledger.wish(Wish::Redeem(Box::new(certificate.clone())));
        }
        let certified = certified_redemption(certificate, committee).expect("a redemption's certificate");
        let transfer = &certificate.order.transfer;
        let (what, redemption) =
            (format!("redemption of #{}", transfer.sequence()), Some((transfer.sender(), transfer.sequence())));
        let call = Call::redeem(self.ethereum().contract.address(), certified);
        let call = Box::new(move |_: &Self| Some(call.clone()));
        let _ = self.ethereum().errands.send(Errand { what, call, redemption });
    }

    /// Whether the contract accepts votes of an epoch.
    #[must_use]
    pub fn takes(&self, epoch: Epoch) -> bool {
        if self.ledger().is_some() {
            return epoch.0 + 2 >= self.installed().len() as u64;
        }
        let until = self.ethereum().contract.view(&IFastPay::epochValidUntilCall { epoch: epoch.0 });
        until > U256::from(self.ethereum().primary.time_s())
    }

    /// Whether an order was redeemed in the newest block.
    #[must_use]
    pub fn is_redeemed(&self, sender: AccountId, sequence: SequenceNumber) -> bool {
        self.ethereum().contract.is_redeemed(sender, sequence)
    }

    /// Whether an order is in the contract's queue.
    #[must_use]
    pub fn is_queued(&self, sender: AccountId, sequence: SequenceNumber) -> bool {
        if self.ledger().is_some() {
            return false;
        }
        let call = IFastPay::queuedCall { sender: sender.0.into(), sequence: sequence.0 };
        !self.ethereum().contract.view(&call).executableAt.is_zero()
    }

    /// The amounts of redemptions in the contract's queue, in the newest block.
    #[must_use]
    pub fn total_queued(&self, asset: Asset) -> U256 {
        if self.ledger().is_some() {
            return U256::ZERO;
        }
        self.ethereum().contract.view(&IFastPay::totalQueuedCall { asset: asset.0 })
    }

    /// The amount that the Primary holds for accounts in the newest block, or state.
    #[must_use]
    pub fn total_balance(&self, asset: Asset) -> U256 {
        match &self.kind {
            Kind::Ethereum(ethereum) => ethereum.contract.total_balance(asset),
            Kind::Ledger(ledger) => ledger.omnibus(asset),
        }
    }

    /// A digest of all requests to nodes, and their answers; or of all that a ledger has decided.
    #[must_use]
    pub fn digest(&self) -> alloy::primitives::B256 {
        match &self.kind {
            Kind::Ethereum(ethereum) => ethereum.primary.digest(),
            Kind::Ledger(ledger) => ledger.digest(),
        }
    }

    /// The time of a block or group, in seconds since 1970; `None` if there is none with this number.
    #[must_use]
    pub fn block_time(&self, number: u64) -> Option<u64> {
        match &self.kind {
            Kind::Ethereum(ethereum) => ethereum.primary.block_time(number),
            Kind::Ledger(ledger) => ledger.group_time(number),
        }
    }

    /// What production code follows.
    #[must_use]
    pub fn source(&self, world: &Arc<World>, authority: usize) -> FundingSource {
        match &self.kind {
            Kind::Ethereum(_) => self.connect(world).into(),
            Kind::Ledger(ledger) => ledger.source(world, authority),
        }
    }

    /// Production code's connection through one or two of the nodes.
    #[must_use]
    pub fn connect(&self, world: &World) -> Primary {
        let first = world.dice.below(NODES);
        let mut nodes = vec![self.ethereum().nodes[first].clone()];
        if (world.plan.nodes_lie && first == LIAR) || world.dice.chance(500) {
            nodes.push(self.ethereum().nodes[(first + 1) % NODES].clone());
        }
        self.ethereum().primary.connect(&nodes, self.ethereum().contract.address(), Finality::Finalized)
    }

    /// A clock for production code, in milliseconds since 1970.
    #[must_use]
    pub fn now_ms(&self, world: &World) -> u64 {
        let passed_ms = u64::try_from(world.trace.elapsed().as_millis()).unwrap_or_default();
        (GENESIS_S + self.skipped_s.load(Ordering::Relaxed)) * 1_000 + passed_ms
    }

    /// The address of the contract.
    #[must_use]
    pub fn contract(&self) -> PrimaryAddress {
        self.ethereum().contract.address()
    }

    /// The keys of relayers.
    #[must_use]
    pub fn relayer_key(&self, number: usize) -> u32 {
        RELAYERS[number]
    }

    /// What nodes do from now on while the chain is calm.
    pub(super) fn deceive(&self, deceit: BTreeMap<usize, Deceit>) {
        *lock(&self.ethereum().deceit) = deceit;
        self.ethereum().nodes.iter().for_each(SimulatedNode::recover);
        self.have_nodes_deceive();
    }

    fn have_nodes_deceive(&self) {
        for (node, Deceit { lies, lag }) in &*lock(&self.ethereum().deceit) {
            self.ethereum().nodes[*node].behave(|behaviour| (behaviour.lies, behaviour.lag) = (lies.clone(), *lag));
        }
    }

    /// Whether blocks become final from now on.
    pub fn finalizes(&self, world: &World, does: bool) {
        self.ethereum().primary.finalizes(does);
        // Authorities may read it before the next block is made.
        if let Err(breach) = self.check(world) {
            world.trace.violation(breach);
        }
    }

    /// A ledger has sent an event to the committee.
    pub(super) fn heard(&self, world: &World, event: &CommitteeEvent) {
        let mut known = lock(&self.known);
        let (index, before) = (event.index, known.last_index);
        known.last_index = index.0;
        match &event.kind {
            EventKind::Funded(funding) => {
                let recipient = world.name_of(&funding.account);
                world.trace.note("deposit final", format_args!("{index} {} to {recipient}", funding.amount));
            }
            EventKind::Redeemed { redemption, .. } => {
                let sender = world.name_of(&redemption.sender);
                world.trace.note("redeemed", format_args!("{sender} #{}", redemption.sequence));
            }
            EventKind::Installed { committee, .. } => world.trace.note("epoch final", committee.epoch()),
            EventKind::UnlockRequested { .. } | EventKind::Upheld { .. } | EventKind::Voided { .. } => {}
        }
        world.check(|oracle| {
            require!(index.0 == before + 1, "event {index} is sent after {before}");
            match &event.kind {
                EventKind::Funded(funding) => {
                    known.deposits += 1;
                    let (recipient, asset, amount) = (funding.account, funding.asset, funding.amount);
                    oracle.deposited(Deposit { index, recipient, asset, amount });
                    Ok(())
                }
                EventKind::Redeemed { redemption, .. } => oracle.redeemed(&Paid::from(redemption)),
                EventKind::Installed { .. } => {
                    oracle.rotated(&self.terms[known.installed]);
                    known.installed += 1;
                    Ok(())
                }
                EventKind::UnlockRequested { .. } | EventKind::Upheld { .. } | EventKind::Voided { .. } => {
                    Err(Breach("nobody unlocks a number on the ledger".into()))
                }
            }
        });
    }

    /// Reports newly final events to all parts, and checks the balances.
    fn check(&self, world: &World) -> Result<(), Breach> {
        let newest_final = self.ethereum().primary.final_number();
        let mut known = lock(&self.known);
        let blocks = known.block + 1..=newest_final;
        for event in self.ethereum().contract.events_in::<IFastPay::CommitteeInstalled>(blocks.clone()) {
            if event.epoch > 0 {
                let next = &self.terms[known.installed];
                world.trace.note("epoch final", event.epoch);
                world.check(|oracle| {
                    oracle.rotated(next);
                    Ok(())
                });
                known.installed += 1;
            }
        }
        for event in self.ethereum().contract.events_in::<IFastPay::Funded>(blocks.clone()) {
            let (recipient, asset) = (AccountId(event.recipient.0), Asset(event.asset));
            let (index, amount) = (TransactionIndex(event.index), Amount(event.amount));
            world.trace.note("deposit final", format_args!("{index} {amount} to {}", world.name_of(&recipient)));
            known.deposits += 1;
            require!(event.index > known.last_index, "deposit {index} is final after {}", known.last_index);
            known.last_index = event.index;
            world.check(|oracle| {
                oracle.deposited(Deposit { index, recipient, asset, amount });
                Ok(())
            });
        }
        for event in self.ethereum().contract.events_in::<IFastPay::Redeemed>(blocks.clone()) {
            let sender = world.name_of(&AccountId(event.sender.0));
            world.trace.note("redeemed", format_args!("{sender} #{}", event.sequence));
            world.check(|oracle| oracle.redeemed(&Paid::from(&event)));
        }
        for event in self.ethereum().contract.events_in::<IFastPay::SequenceVoided>(blocks.clone()) {
            world.check(|oracle| oracle.voided((AccountId(event.account.0), event.sequence)));
        }
        known.block = newest_final.max(known.block);
        drop(known);
        if self.ethereum().primary.is_newest_empty() {
            return Ok(());
        }
        ASSETS.iter().try_for_each(|asset| self.is_covered(*asset))
    }

    /// Checks that the contract has what it owes.
    fn is_covered(&self, asset: Asset) -> Result<(), Breach> {
        let balance = self.ethereum().contract.total_balance(asset);
        let claims = self.ethereum().contract.view(&IFastPay::totalClaimsCall { asset: asset.0 });
        let queued = self.total_queued(asset);
        let holds = self.ethereum().contract.holds(asset);
        // Queued redemptions are a part of the balance.
        require!(
            holds == balance + claims && queued <= balance,
            "the contract holds {holds} and owes {balance} + {claims}, with {queued} in its queue"
        );
        Ok(())
    }
}

impl Ethereum {
    fn new(plan: &Plan, first: &Committee, errands: mpsc::UnboundedSender<Errand>) -> Self {
        let config =
            ChainConfig { finalized_depth: FINALIZED_DEPTH, genesis_time_s: GENESIS_S, ..ChainConfig::default() };
        let primary = SimulatedPrimary::new(config);
        let contract = primary.deploy(first);
        let supply = U256::from(u64::MAX);
        let arguments = ("Demo Token", "DEMO", U256::from(6), supply).abi_encode_params();
        let token = primary.deploy_artifact("DemoToken.sol/DemoToken.json", &arguments);
        assert_eq!(Asset(token), ASSETS[1], "the third contract of the deployer");
        for key in (0..OWNERS_MAX as u32).map(rich_key) {
            let transfer = transferCall { to: key.address(), value: supply / U256::from(100) };
            primary.send(&rich_key(9), to(token, &transfer));
            primary.send(&key, to(token, &IToken::approveCall { spender: contract.address(), value: U256::MAX }));
        }
        primary.mine(1);
        primary.finalize();
        let nodes = (0..NODES).map(|node| primary.node(&format!("node{node}"), plan.seed ^ node as u64)).collect();
        Self { primary, contract, nodes, errands, deceit: Mutex::default() }
    }
}

alloy::sol! {
    function transfer(address to, uint256 value) external returns (bool);
}

fn to(contract: Address, call: &impl SolCall) -> Call {
    Call { to: contract, value: U256::ZERO, data: call.abi_encode().into() }
}

/// Makes the chain's blocks, and its weather, until the run ends.
pub async fn make_blocks(world: Arc<World>) {
    let chain = &world.chain;
    let keys = RELAYERS.map(rich_key).to_vec();
    let mut weather =
        Weather::new(chain.ethereum().primary.clone(), chain.ethereum().nodes.clone(), world.plan.seed).with_keys(keys);
    if world.plan.nodes_lie {
        weather = weather.with_liars(vec![LIAR], (0..NODES).filter(|node| *node != LIAR).collect());
    }
    loop {
        sleep(SLOT).await;
        let time_s = chain.now_ms(&world) / 1_000;
        if world.is_calm() {
            weather.calm_slot(time_s);
            chain.have_nodes_deceive();
        } else {
            weather.slot(time_s)
        }
        if let Err(breach) = chain.check(&world) {
            return world.trace.violation(breach);
        }
    }
}
