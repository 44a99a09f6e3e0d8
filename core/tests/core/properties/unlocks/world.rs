//! Honest authorities with the rules of core, members that sign everything, owners that sign two orders for a number,
//! and the contract. Nothing happens but what a step says; chance comes from the run's seed alone.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use fastpay_core::checkpoint::Cut;
use fastpay_core::{
    AccountId, Amount, Asset, Certificate, ContractVote, Deposit, PrimaryAddress, Rejection, SequenceNumber, Transfer,
    TransferOrder, VerifiedCertificate, VerifiedVote,
};
use fastpay_testkit::{TestAccount, TestAuthority, TestCommittee, payment, redemption};
use rand::prelude::*;
use rand::rngs::StdRng;

use super::agenda::Agenda;
use super::checkpoints::Checkpointed;
use super::contract::{Contract, Slot, WINDOW};
use super::oracle::{Books, Oracle, signed};
use super::rebasing::Tally;

/// Nothing is voted for or executed on a view of the chain that is older than this.
pub const VIEW_AGE_MAX: i64 = WINDOW as i64 / 2;
/// The maximum lag of a clock.
const CLOCK_BEHIND_MAX: i64 = 100;
pub const OWNERS: u64 = 4;

/// An honest authority with what its node has beside the rules.
#[derive(Clone)]
pub struct Node {
    pub authority: TestAuthority,
    /// Per shard, the time of the newest final block whose events it has applied.
    pub times: Vec<u64>,
    pub clock_error: i64,
    /// An older copy of its folder, and what its books were then.
    pub copy: Option<Box<(Node, Books)>>,
    pub is_restored: bool,
    pub floors: HashMap<AccountId, u64>,
    /// The number of the checkpoint at which its journals begin, and its cut.
    pub base: (usize, Cut),
}

pub struct Certified {
    pub certificate: VerifiedCertificate,
    pub slot: Slot,
    /// The authorities that were shown it and said that they executed or keep it.
    pub kept_by: BTreeSet<usize>,
}

/// See the [module](self).
pub struct World {
    pub rng: StdRng,
    pub committee: TestCommittee,
    /// The members of the committee that are honest: the first ones.
    pub nodes: Vec<Node>,
    /// The number of honest authorities that may lag behind the chain indefinitely.
    pub lagging_max: usize,
    pub is_restorable: bool,
    pub owners: Vec<TestAccount>,
    pub agenda: Agenda,
    pub contract: Contract,
    pub oracle: Oracle,
    pub now: u64,
    pub deposited: i128,
    pub orders: Vec<(TransferOrder, Vec<VerifiedVote>)>,
    pub certificates: Vec<Certified>,
    pub certified: BTreeMap<Slot, usize>,
    /// Somebody has the redemption keys of a quorum and spends numbers with them, and does no more: with more, nothing
    /// would hold.
    pub has_thief: bool,
    pub stolen: BTreeSet<Slot>,
    /// What it certified beyond what an account of its own has.
    pub overdrawn: Option<VerifiedCertificate>,
    /// The votes to void that attackers have collected.
    pub void_votes: BTreeMap<(Slot, bool), Vec<ContractVote>>,
    /// The time at which an honest account acts on an owner's final request.
    pub acts_at: BTreeMap<Slot, Option<u64>>,
    /// Authorities certify checkpoints and are rebased.
    pub has_checkpoints: bool,
    /// The committee's checkpoints by number, from its first state on.
    pub checkpoints: Vec<Checkpointed>,
    /// Who voted to void which number, and did not forget it since.
    pub void_voters: BTreeSet<(usize, Slot)>,
    pub tally: Tally,
}

impl World {
    pub fn new(seed: u64, has_checkpoints: bool) -> Self {
        let mut rng = StdRng::seed_from_u64(seed);
        let size: usize = if rng.random_bool(0.8) { 4 } else { 7 };
        let faults = (size - 1) / 3;
        let byzantine = rng.random_range(0..=faults);
        let is_restorable = byzantine < faults && rng.random_bool(0.6);
        let committee = TestCommittee::new(size);
        let mut nodes: Vec<_> = TestAuthority::all(&committee, &[1, 2, 3])
            .into_iter()
            .take(size - byzantine)
            .map(|authority| {
                let times = vec![0; authority.shards.len()];
                let clock_error = match rng.random_range(0..10) {
                    0 => 10 * VIEW_AGE_MAX,
                    1..=3 => rng.random_range(-CLOCK_BEHIND_MAX..=CLOCK_BEHIND_MAX),
                    _ => 0,
                };
                let (copy, is_restored, floors, base) = (None, false, HashMap::new(), (0, Cut::default()));
                Node { authority, times, clock_error, copy, is_restored, floors, base }
            })
            .collect();
        nodes[0].clock_error = nodes[0].clock_error.min(0);
        let contract = Contract::new(committee.domain, committee.committee.clone());
        let has_thief = rng.random_bool(0.4);
        Self {
            rng,
            lagging_max: faults - byzantine - usize::from(is_restorable),
            is_restorable,
            owners: (0..OWNERS).map(TestAccount::numbered).collect(),
            oracle: Oracle::new(nodes.len(), byzantine, contract.quorum()),
            agenda: Agenda::default(),
            has_checkpoints,
            checkpoints: vec![Checkpointed::first(&committee)],
            void_voters: BTreeSet::new(),
            tally: Tally::default(),
            contract,
            nodes,
            committee,
            now: 10_000,
            deposited: 0,
            orders: Vec::new(),
            certificates: Vec::new(),
            certified: BTreeMap::new(),
            has_thief,
            stolen: BTreeSet::new(),
            overdrawn: None,
            void_votes: BTreeMap::new(),
            acts_at: BTreeMap::new(),
        }
    }

    /// The number of decided numbers.
    pub fn decided(&self) -> usize {
        self.contract.outcomes.len()
    }

    pub fn chance(&mut self, percent: u32) -> bool {
        self.rng.random_ratio(percent, 100)
    }

    fn owner(&mut self) -> usize {
        self.rng.random_range(0..self.owners.len())
    }

    /// Some of the honest authorities, often all.
    pub fn some(&mut self) -> Vec<usize> {
        let all = self.chance(35);
        (0..self.nodes.len()).filter(|_| all || self.rng.random_bool(0.5)).collect()
    }

    pub fn one_of_newest(&mut self, count: usize) -> Option<usize> {
        (count > 0).then(|| count - 1 - self.rng.random_range(0..count.min(5)))
    }

    /// Anything that may happen.
    pub fn step(&mut self) {
        if self.pursue() {
            return;
        }
        if self.has_checkpoints && self.chance(25) {
            return self.certify_or_rebase();
        }
        match self.rng.random_range(0..100) {
            0..6 => self.deposit(),
            6..18 => {
                let owner = self.owner();
                self.sign(owner);
            }
            18..38 => {
                if let Some(order) = self.one_of_newest(self.orders.len()) {
                    self.some().into_iter().for_each(|at| self.submit(order, at));
                }
            }
            38..47 => {
                if let Some(certificate) = self.one_of_newest(self.certificates.len()) {
                    self.some().into_iter().for_each(|at| self.show(certificate, at));
                }
            }
            47..53 => self.request(),
            53..62 => self.some().into_iter().for_each(|at| self.follow_all(at)),
            62..68 => self.follow_some(),
            68..76 => {
                let longest = [30, 400, 1_200][self.rng.random_range(0..3)];
                let time = self.rng.random_range(1..longest);
                self.pass(time);
            }
            76..79 => self.contract.is_stalled = !self.contract.is_stalled,
            79..87 => {
                if let Some(slot) = self.requested() {
                    let unanimous = self.chance(40);
                    self.try_to_void(slot, unanimous);
                }
            }
            87..90 => self.try_to_uphold(),
            90..92 => {
                if let Some(index) = self.one_of_newest(self.certificates.len()) {
                    let slot = self.certificates[index].slot;
                    match self.rng.random_range(0..4) {
                        0 => {
                            let ahead = self.rng.random_range(0..2);
                            self.steal((slot.0, slot.1 + ahead));
                        }
                        1 => self.leave_queue(slot),
                        _ => self.redeem(index),
                    }
                }
            }
            92..95 => self.crash(),
            95..97 if self.nodes[0].copy.is_none() => self.copy(),
            95..97 => self.restore(),
            97 if self.chance(30) => self.install(),
            _ => {
                let at = self.rng.random_range(0..self.nodes.len());
                self.nodes[at].authority.deliver_all();
                self.observe(at);
            }
        }
    }

    pub fn observe(&mut self, at: usize) {
        self.oracle.observe(at, &self.nodes[at].authority.shards, &self.contract);
    }

    fn deposit(&mut self) {
        let owner = self.owner();
        let (recipient, amount) = (self.owners[owner].id(), Amount(self.rng.random_range(1..100)));
        self.deposited += signed(amount.0);
        let deposit = Deposit { index: self.contract.next_index(), recipient, asset: Asset::ETHER, amount };
        self.contract.deposit(self.now, deposit);
        self.finalize();
    }

    /// The next number of an account at the most advanced authority.
    pub fn next(&self, account: AccountId) -> u64 {
        self.oracle.books.iter().filter_map(|books| books.next.get(&account).copied()).max().unwrap_or_default()
    }

    /// An order of the next number, whether or not there is another one.
    pub fn sign(&mut self, owner: usize) {
        let to = self.owner();
        let (owner, to) = (self.owners[owner].clone(), self.owners[to].id());
        let (sequence, amount) = (self.next(owner.id()), self.rng.random_range(1..60));
        let is_redemption = if self.has_thief { 60 } else { 25 };
        let transfer: Transfer = if self.chance(is_redemption) {
            redemption(owner.id(), PrimaryAddress::repeat_byte(7), amount, sequence).into()
        } else {
            payment(owner.id(), to, amount, sequence).into()
        };
        let order = owner.sign(&self.committee.domain, transfer);
        let byzantine = self.nodes.len()..self.committee.keys.len();
        let votes = byzantine.map(|at| self.checked(self.committee.vote(at, &order), &order)).collect();
        self.orders.push((order, votes));
    }

    fn checked(&self, vote: fastpay_core::Vote, order: &TransferOrder) -> VerifiedVote {
        let (domain, verified) = (&self.committee.domain, self.committee.verified(order));
        vote.verify(domain, &self.committee.committee, &verified).expect("a member's vote is valid")
    }

    pub fn shard_of(&self, at: usize, account: AccountId) -> usize {
        let shards = &self.nodes[at].authority.shards;
        shards.iter().position(|shard| shard.rules().check_owner(account).is_ok()).expect("each account has a shard")
    }

    /// Asks an authority for its vote, and makes a hidden certificate once there is a quorum.
    pub fn submit(&mut self, index: usize, at: usize) {
        let order = self.orders[index].0.clone();
        let (verified, sender) = (self.committee.verified(&order), order.transfer.sender());
        let (floor, view) = (self.floor(at, sender), self.view(at, sender));
        match self.nodes[at].authority.shard(&sender).lock_with(floor, view, &verified) {
            Ok(_) => {}
            Err(Rejection::OrderPending { pending }) => {
                let next = self.nodes[at].authority.account(&sender).next_sequence();
                let is_useless = pending.transfer.sequence() < next;
                assert!(!is_useless, "authority {at} keeps {sender} locked on a number before #{next}");
                return;
            }
            Err(
                Rejection::SequenceTooHigh { .. }
                | Rejection::AlreadyConfirmed { .. }
                | Rejection::InsufficientBalance { .. }
                | Rejection::VotesForgotten { .. }
                | Rejection::Frozen { .. }
                | Rejection::Overruled { .. }
                | Rejection::Voided { .. }
                | Rejection::PrimaryTooOld,
            ) => return self.observe(at),
            Err(refusal) => panic!("an order is refused: {refusal}"),
        }
        self.observe(at);
        let slot = (sender, order.transfer.sequence().0);
        self.oracle.votes(at, slot, verified.digest());
        let vote = self.checked(self.committee.vote(at, &order), &order);
        let votes = &mut self.orders[index].1;
        if votes.iter().all(|known| known.vote().authority != vote.vote().authority) {
            votes.push(vote);
        }
        if let Some(certificate) = Certificate::from_votes(&verified, &self.committee.committee, votes) {
            let known = *self.certified.entry(slot).or_insert(self.certificates.len());
            match self.certificates.get(known) {
                None => self.certificates.push(Certified { certificate, slot, kept_by: BTreeSet::new() }),
                Some(first) => assert_eq!(first.certificate.digest(), certificate.digest(), "two certificates"),
            }
        }
    }

    /// Shows an authority a certificate, and notes whether it says that it executed or keeps it.
    pub fn show(&mut self, index: usize, at: usize) {
        let (certificate, slot) = (self.certificates[index].certificate.clone(), self.certificates[index].slot);
        let view = self.view(at, slot.0);
        let is_kept = match self.nodes[at].authority.shard(&slot.0).confirm_with(view, &certificate) {
            Ok(_) => {
                self.observe(at);
                let is_executed = self.oracle.books[at].executed.contains_key(&slot);
                assert!(is_executed, "authority {at} says that it executed {} #{}", slot.0, slot.1);
                true
            }
            Err(Rejection::Frozen { .. } | Rejection::Overruled { .. } | Rejection::PrimaryTooOld) => true,
            Err(Rejection::MissingCertificate { .. } | Rejection::Voided { .. }) => false,
            Err(refusal) => panic!("a certificate is refused: {refusal}"),
        };
        self.observe(at);
        if is_kept {
            self.certificates[index].kept_by.insert(at);
        }
    }

    /// The owner asks, mostly for the number that is next, or a stranger does.
    fn request(&mut self) {
        let (owner, other) = (self.owner(), self.owner());
        let (account, next) = (self.owners[owner].id(), self.next(self.owners[owner].id()));
        let sequence = match self.rng.random_range(0..10) {
            0 => next + 1,
            1 => next.saturating_sub(1),
            _ => next,
        };
        let by = if account.ethereum_address().is_none() && self.chance(30) { other } else { owner };
        self.ask_contract((account, sequence), by);
    }

    pub fn ask_contract(&mut self, slot: Slot, by: usize) {
        // Of an account of the contract's own kind nobody else may ask.
        if slot.0.ethereum_address().is_some() && self.owners[by].id() != slot.0 {
            return;
        }
        let key = &self.owners[by].key;
        let authorization = key.sign_unlock_request(&self.committee.domain, SequenceNumber(slot.1));
        self.contract.request(self.now, slot, authorization);
        self.finalize();
    }
}
