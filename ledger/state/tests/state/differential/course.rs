//! Random steps for both sides. Each has one defect at most, because the two sides look for defects in other orders.

use std::collections::BTreeMap;

use alloy_primitives::{B256, Bytes, U256, address};
use alloy_sol_types::SolCall;
use fastpay_core::{
    AccountId, Amount, Asset, Authorization, ContractVote, Digest, Domain, Epoch, PrimaryAddress, Redemption,
    SequenceNumber, UnlockVote,
};
use fastpay_ledger_state::DEADLINE_MAX_S;
use fastpay_ledger_statement::{Action, Announced, NextCommittee, StateKey, UnlockEntry};

use super::contract::{self, Step, announcement, block_of, packed};
use super::{BOND, DAY, DEPOSITOR, RELAYER, REQUESTER, VALIDITY, WINDOW, current};
use crate::people::{
    GUARDIAN, accept, address as address_of, announce, certified, certified_batch, client, committee, next, redemption,
    request_unlock, unlock_votes,
};
use crate::world::{COMMITTEE, World};

pub const CHAIN: u64 = 31_337;
pub const CONTRACT: PrimaryAddress = address!("0xfafafafafafafafafafafafafafafafafafafafa");
/// The time, in seconds, when the contract is deployed.
pub const BEGIN: u64 = 10 * DAY;
/// Of FastPay accounts, and recipients of redemptions.
const OWNERS: [u8; 2] = [1, GUARDIAN];
const NUMBERS: std::ops::Range<u64> = 252..260;

/// A step for both: the action for the ledger with its signer, and the contract's.
pub struct Both {
    pub by: u8,
    pub action: Action,
    pub step: Step,
}

pub struct Courses {
    random: fastrand::Rng,
    /// Of the ledger, and of the contract.
    domains: [Domain; 2],
    now: u64,
    /// Times at which something changes.
    edges: Vec<u64>,
    announced: Vec<NextCommittee>,
    /// The blocks in which announcements may have matured, by their ids on the ledger.
    matured: BTreeMap<Digest, u64>,
}

fn account(of: u8) -> AccountId {
    client(of).account()
}

fn call(by: u8, is_for_council: bool, value: u128, call: &impl SolCall) -> Step {
    let (time, caller, value) = (U256::ZERO, address_of(by), U256::from(value));
    Step { time, isForCouncil: is_for_council, caller, value, data: call.abi_encode().into() }
}

impl Courses {
    pub fn new(random: fastrand::Rng, domains: [Domain; 2]) -> Self {
        let (edges, announced, matured) = Default::default();
        Self { random, domains, now: BEGIN, edges, announced, matured }
    }

    /// The next step, and its time.
    pub fn next(&mut self, world: &World, number: usize) -> (Both, u64) {
        self.now = self.time();
        // The longest way has its time.
        let is_open = !self.open(world).is_empty();
        let both = match self.random.u8(0..32) {
            0..=3 => self.fund(),
            4..=6 => self.redeem(world),
            7..=9 => self.redeem_batch(world),
            10..=12 => self.request(world),
            13..=14 => self.uphold(world),
            15..=17 => self.void(world),
            18..=20 => self.announce(world),
            21..=25 if !is_open => self.announce(world),
            21..=22 => self.endorse(world),
            23..=26 => self.mature(world, number),
            _ => self.install(world),
        };
        (Both { step: Step { time: U256::from(self.now), ..both.step }, ..both }, self.now)
    }

    /// Steps are a day apart, so that the contract's limit lets everything pass. Many are when something just changes.
    fn time(&mut self) -> u64 {
        let soon = self.now + DAY;
        let edges: Vec<u64> = self.edges.iter().copied().filter(|edge| (soon..soon + 4 * DAY).contains(edge)).collect();
        match edges.is_empty() || self.random.bool() {
            true => soon + self.random.u64(0..DAY / 2),
            false => edges[self.random.usize(0..edges.len())],
        }
    }

    fn edge(&mut self, after: u64) {
        self.edges.extend([self.now + after - 1, self.now + after, self.now + after + 1]);
    }

    /// One of three times.
    fn rarely(&mut self) -> bool {
        self.random.u8(0..3) == 0
    }

    fn fund(&mut self) -> Both {
        let amount = self.random.u128(0..60);
        let recipient = if self.random.u8(0..8) == 0 { AccountId::ZERO } else { account(1) };
        let (asset, committee) = (Asset::ETHER, COMMITTEE);
        let action = Action::Fund { committee, account: recipient, asset, amount: Amount(amount) };
        let step = call(DEPOSITOR, false, amount, &contract::depositEtherCall { recipient: recipient.0.into() });
        Both { by: DEPOSITOR, action, step }
    }

    fn order(&mut self, amount: u128) -> Redemption {
        let fee = if self.random.u8(0..10) == 0 { amount + 1 } else { self.random.u128(0..amount + 1) };
        let [sender, recipient] = [0; 2].map(|_| OWNERS[self.random.usize(0..2)]);
        let order = redemption(0, self.random.u64(NUMBERS), address_of(recipient), amount, fee);
        Redemption { sender: account(sender), ..order }
    }

    /// Spoils votes of members, on both sides alike.
    fn spoil(&mut self, votes: [Vec<ContractVote>; 2]) -> [Vec<ContractVote>; 2] {
        let defect = self.random.u8(0..24);
        votes.map(|mut votes| {
            match defect {
                0 => votes.truncate(2),
                1 => votes.swap(0, 1),
                2 => votes[1] = votes[0].clone(),
                3 => votes[2].signature = votes[1].signature,
                _ => {}
            }
            votes
        })
    }

    fn redeem(&mut self, world: &World) -> Both {
        let amount = self.random.u128(0..12);
        let order = self.order(amount);
        let now = epoch_of(world);
        let by = self.random.u8(now.saturating_sub(2)..now + 2);
        let votes = self.domains.map(|domain| match certified(&domain, by, order.clone()) {
            Action::Redeem { votes, .. } => votes,
            other => panic!("{other:?}"),
        });
        let [ours, theirs] = self.spoil(votes);
        let (redemption, epoch) = (contract::redemption(&order), u64::from(by));
        let theirs = contract::redeemCall { redemption, epoch, votes: packed(&committee(by), &theirs) };
        let action = Action::Redeem { committee: COMMITTEE, redemption: order, epoch: Epoch(by.into()), votes: ours };
        Both { by: RELAYER, action, step: call(RELAYER, false, 0, &theirs) }
    }

    fn redeem_batch(&mut self, world: &World) -> Both {
        // So little that the contract's limit lets three pass at once, or more than there is.
        let held = world.omnibus();
        let mut order = |_| match self.random.u8(0..12) {
            0 => self.order(held + 1),
            _ => {
                let amount = self.random.u128(0..held / 8 + 1);
                self.order(amount)
            }
        };
        let orders: Vec<_> = (0..3).map(&mut order).collect();
        let orders = orders[..self.random.usize(0..4)].to_vec();
        let now = epoch_of(world);
        let by = if self.rarely() { self.random.u8(now.saturating_sub(2)..now + 2) } else { now };
        let votes = self.domains.map(|domain| match certified_batch(&domain, by, orders.clone()) {
            Action::RedeemBatch { votes, .. } => votes,
            other => panic!("{other:?}"),
        });
        let [ours, theirs] = self.spoil(votes);
        let redemptions = orders.iter().map(contract::redemption).collect();
        let theirs =
            contract::redeemBatchCall { redemptions, epoch: by.into(), votes: packed(&committee(by), &theirs) };
        let (committee, epoch) = (COMMITTEE, Epoch(by.into()));
        let action = Action::RedeemBatch { committee, redemptions: orders, epoch, votes: ours };
        Both { by: RELAYER, action, step: call(RELAYER, false, 0, &theirs) }
    }

    /// One that was requested and is not decided, if possible and mostly.
    fn number(&mut self, world: &World) -> (AccountId, u64) {
        let all = names();
        let is_open = |name: &(AccountId, u64)| entry(world, *name).is_some_and(|entry| entry.decision.is_none());
        let requested: Vec<_> = all.iter().copied().filter(is_open).collect();
        let from = if requested.is_empty() || self.random.u8(0..4) == 0 { all } else { requested };
        from[self.random.usize(0..from.len())]
    }

    fn request(&mut self, world: &World) -> Both {
        let (owner, sequence) = (OWNERS[self.random.usize(0..2)], self.random.u64(NUMBERS));
        let is_new = entry(world, (account(owner), sequence)).is_none();
        let signer = if is_new && self.rarely() { RELAYER } else { owner };
        let [ours, theirs] = self.domains.map(|domain| {
            let mut request = request_unlock(&domain, &client(signer), sequence);
            if signer != owner {
                request.account = account(owner);
                let digest = domain.unlock_request_digest(request.account, request.sequence);
                request.authorization = client(signer).authorize(digest);
            }
            request
        });
        let Authorization::Ethereum { signature } = theirs.authorization else { panic!("Ethereum keys") };
        let (account, authorization) = (account(owner).0.into(), Bytes::from(signature.0));
        let theirs = contract::requestUnlockCall { account, sequence, authorization };
        self.edge(WINDOW);
        Both { by: REQUESTER, action: Action::RequestUnlock(ours), step: call(REQUESTER, true, BOND, &theirs) }
    }

    /// The votes of an epoch about a number, spoilt or of another epoch than the current one.
    fn about(
        &mut self,
        world: &World,
        (account, sequence): (AccountId, u64),
        count: usize,
        vote: UnlockVote,
    ) -> (Vec<ContractVote>, Bytes) {
        let now = epoch_of(world);
        let by = if self.random.u8(0..8) == 0 { now.saturating_sub(1) } else { now };
        let votes = self.domains.map(|domain| unlock_votes(&domain, by, count, account, sequence, vote));
        let [ours, theirs] = if by == now { self.spoil(votes) } else { votes };
        (ours, packed(&committee(by), &theirs))
    }

    fn uphold(&mut self, world: &World) -> Both {
        let name = self.number(world);
        let digest = Digest::repeat_byte(self.random.u8(1..3));
        let (votes, theirs) = self.about(world, name, 3, UnlockVote::Certificate(digest));
        let (account, sequence) = name;
        let theirs = contract::upholdSequenceCall { account: account.0.into(), sequence, digest, votes: theirs };
        let (committee, sequence) = (COMMITTEE, SequenceNumber(sequence));
        let action = Action::Uphold { committee, account, sequence, digest, votes };
        Both { by: RELAYER, action, step: call(RELAYER, true, 0, &theirs) }
    }

    fn void(&mut self, world: &World) -> Both {
        let waits = |name: &(AccountId, u64)| {
            let entry = entry(world, *name).filter(|entry| entry.decision.is_none());
            entry.is_some_and(|entry| entry.voidable_from.0 > self.now * 1_000)
        };
        let early = names().into_iter().find(waits).filter(|_| self.random.bool());
        let name = early.unwrap_or_else(|| self.number(world));
        let unanimous = self.rarely();
        let count = if unanimous { 4 } else { 3 };
        let (votes, theirs) = self.about(world, name, count, UnlockVote::Void { unanimous });
        let (account, sequence) = name;
        let theirs = contract::voidSequenceCall { account: account.0.into(), sequence, unanimous, votes: theirs };
        let (committee, sequence) = (COMMITTEE, SequenceNumber(sequence));
        let action = Action::Void { committee, account, sequence, unanimous, votes };
        Both { by: RELAYER, action, step: call(RELAYER, true, 0, &theirs) }
    }

    fn announce(&mut self, world: &World) -> Both {
        let epoch = epoch_of(world) + 1;
        let latest = self.now + DEADLINE_MAX_S;
        let deadline = [self.now, latest, latest - 1][self.random.usize(0..3)];
        let since = epoch - u8::from(self.random.u8(0..4) == 0);
        let guardian = address_of(OWNERS[self.random.usize(0..2)]);
        let mut wanted = NextCommittee { deadline, guardian, ..next(epoch, since) };
        let defect = self.random.u8(0..12);
        match defect {
            0 => wanted = NextCommittee { deadline, ..next(epoch + 1, epoch + 1) },
            1 => wanted.compromised_since = Epoch(u64::from(epoch) + 1),
            2 => wanted.deadline = self.now - 1,
            3 => wanted.deadline = latest + 1,
            4 | 7 => wanted = self.open(world).pop().unwrap_or(wanted),
            _ => {}
        }
        let [mut ours, mut theirs] = self.domains.map(|domain| announce(&domain, wanted.clone()));
        for announcing in [&mut ours, &mut theirs] {
            match defect {
                5 => announcing.proofs.truncate(3),
                6 => announcing.proofs[2].redemption_signature = announcing.proofs[1].redemption_signature,
                _ => {}
            }
        }
        if defect > 6 {
            [ours.votes, theirs.votes] = self.spoil([ours.votes, theirs.votes]);
        }
        let proof = |of: &fastpay_ledger_statement::Possession| {
            [&of.redemption_signature.0[..], &of.voting_signature.0[..]].concat()
        };
        let proofs: Vec<u8> = theirs.proofs.iter().flat_map(proof).collect();
        let by = u8::try_from(wanted.committee.epoch().0).unwrap() - 1;
        let votes = packed(&committee(by), &theirs.votes);
        let theirs = contract::announceCall { announcement: announcement(&wanted), proofs: proofs.into(), votes };
        [14, 28].into_iter().for_each(|days| self.edge(days * DAY));
        self.announced.push(wanted);
        Both { by: RELAYER, action: Action::Announce(Box::new(ours)), step: call(RELAYER, true, 0, &theirs) }
    }

    /// The newest two announcements of the epoch that comes next.
    fn open(&self, world: &World) -> Vec<NextCommittee> {
        let next_epoch = Epoch(u64::from(epoch_of(world)) + 1);
        let is_open = |of: &&NextCommittee| {
            of.committee.epoch() == next_epoch && world.announced(of.id(&self.domains[0])).is_some()
        };
        self.announced.iter().rev().filter(is_open).take(2).cloned().collect()
    }

    /// An announcement, mostly an open one, or one that nobody made; and its ids on both sides.
    fn some(&mut self, world: &World) -> (NextCommittee, [Digest; 2]) {
        let open = self.open(world);
        let from = if open.is_empty() || self.random.u8(0..8) == 0 { &self.announced } else { &open };
        let of = match from.is_empty() || self.random.u8(0..24) == 0 {
            true => NextCommittee { deadline: 7, ..next(1, 1) },
            false => from[self.random.usize(0..from.len())].clone(),
        };
        let ids = self.domains.map(|domain| of.id(&domain));
        (of, ids)
    }

    fn endorse(&mut self, world: &World) -> Both {
        let (_, [announcement, theirs]) = self.some(world);
        let is_guardian = |by: &&u8| address_of(**by) == current(world).guardian;
        let guardian = OWNERS.iter().find(is_guardian).copied().unwrap_or(GUARDIAN);
        let by = if self.rarely() { OWNERS[self.random.usize(0..2)] } else { guardian };
        self.edge(DAY);
        let action = Action::Endorse { committee: COMMITTEE, announcement };
        Both { by, action, step: call(by, true, 0, &contract::endorseCall { id: theirs }) }
    }

    fn mature(&mut self, world: &World, number: usize) -> Both {
        let (_, [announcement, theirs]) = self.some(world);
        if world.announced(announcement).is_none_or(|announced| announced.matured.is_none()) {
            self.matured.insert(announcement, block_of(number));
        }
        let action = Action::Mature { committee: COMMITTEE, announcement };
        Both { by: RELAYER, action, step: call(RELAYER, true, 0, &contract::matureCall { id: theirs }) }
    }

    fn install(&mut self, world: &World) -> Both {
        let (of, [ours, theirs]) = self.some(world);
        let by = u8::try_from(of.committee.epoch().0).unwrap();
        let unknown =
            Announced { next: of.clone(), announced_at: Default::default(), endorsed_at: None, matured: None };
        let announced = world.announced(ours).unwrap_or(unknown);
        let block = if announced.matured.is_some() { self.matured[&ours] } else { 0 };
        let hash = B256::from(U256::from(block));
        let named = [announced.matured.unwrap_or_default(), hash];
        let sign = |(domain, id, hash): (&Domain, Digest, Digest)| match accept(
            domain,
            by,
            id,
            &Announced { matured: Some(hash), ..announced.clone() },
        ) {
            Action::Install { votes, .. } => votes,
            other => panic!("{other:?}"),
        };
        let [domain, other] = self.domains;
        let votes = [sign((&domain, ours, named[0])), sign((&other, theirs, named[1]))];
        let [votes, packed_votes] = self.spoil(votes);
        let theirs = contract::installCall {
            announcement: announcement(&of),
            blockNumber: U256::from(block),
            votes: packed(&committee(by), &packed_votes),
        };
        self.edge(VALIDITY);
        let action = Action::Install { committee: COMMITTEE, announcement: ours, votes };
        Both { by: RELAYER, action, step: call(RELAYER, true, 0, &theirs) }
    }
}

/// All numbers that are unlocked and redeemed.
fn names() -> Vec<(AccountId, u64)> {
    OWNERS.iter().flat_map(|of| NUMBERS.map(|number| (account(*of), number))).collect()
}

fn epoch_of(world: &World) -> u8 {
    u8::try_from(current(world).epoch.0).unwrap()
}

fn entry(world: &World, (account, sequence): (AccountId, u64)) -> Option<UnlockEntry> {
    world.read(world.settlement(), &StateKey::Unlock(COMMITTEE, account, SequenceNumber(sequence)))
}
