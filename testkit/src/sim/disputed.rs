//! One disputed number: its owner signed two orders with it and hides the certificate, an attacker collects every vote
//! to void it, and an honest party submits what it knows to the contract.

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use alloy::primitives::{Address, U256};
use fastpay_client::{CommitteeClient, UnlockDecision};
use fastpay_core::{
    AccountId, Asset, Certificate, ContractVote, Epoch, SequenceNumber, TransferOrder, UnlockVote, VerifiedCertificate,
    VerifiedContractVote,
};
use fastpay_ethereum::{Call, ICouncil, UnlockOutcome};
use fastpay_rpc::UnlockAnswer;

use super::byzantine;
use super::chain::Chain;
use super::dice::Dice;
use super::oracle::{Breach, require};
use super::world::World;
use crate::anvil::{GUARDIAN_KEY, rich_key};
use crate::{TestAccount, payment};

/// The time limit of a request to all authorities.
const PATIENCE: Duration = Duration::from_secs(5);

impl Chain {
    fn council(&self) -> Address {
        self.ethereum().contract.council()
    }

    /// The state of a number in the newest block, and whether nobody has requested its unlock.
    fn unlock_of(&self, (account, sequence): (AccountId, u64)) -> (UnlockOutcome, bool) {
        let call = ICouncil::unlockOfCall { account: account.0.into(), sequence };
        let unlock = self.ethereum().contract.view_of_council(&call);
        (unlock.outcome, unlock.voidableFrom.is_zero())
    }
}

/// See the [module](self).
pub struct Disputed {
    pub(super) world: Arc<World>,
    pub(super) dice: Dice,
    pub(super) client: CommitteeClient,
    pub(super) owner: TestAccount,
    pub(super) number: u64,
    pub(super) certificate: Option<Certificate>,
    /// The collected votes by kind, whoever signed them.
    pub(super) votes: BTreeMap<bool, Vec<ContractVote>>,
}

impl Disputed {
    pub(super) fn slot(&self) -> (AccountId, u64) {
        (self.owner.id(), self.number)
    }

    fn all(&self) -> Range<usize> {
        0..self.world.plan.authorities()
    }

    fn is_honest(&self, authority: usize) -> bool {
        authority < self.world.plan.honest()
    }

    /// The account's balance at an authority.
    pub(super) fn balance(&self, authority: usize) -> u128 {
        let balance = self.world.oracle().books(authority).balance(self.owner.id(), Asset::ETHER);
        u128::try_from(balance).expect("a disputed account owes nothing")
    }

    /// Signs two orders that together exceed the balance, and collects all votes for the first or some for each.
    pub(super) async fn sign(&mut self, to: AccountId) {
        let half = self.balance(0) / 2;
        let sign = |amount| self.owner.sign(&self.world.domain, payment(self.owner.id(), to, amount, self.number));
        let orders: [TransferOrder; 2] = [sign(half), sign(half + 1)];
        orders.iter().for_each(|order| self.world.oracle().signs(order));
        let is_certified = self.dice.chance(700);
        let verified = orders[0].clone().verify(&self.world.domain).expect("the owner signs well");
        let committee = self.world.committees()[0].committee.clone();
        let mut votes = Vec::new();
        for authority in self.all() {
            let order = &orders[usize::from(!is_certified && self.dice.chance(500))];
            let peer = &self.client.network().authorities()[authority];
            let vote = if self.is_honest(authority) {
                peer.shard_of(&self.owner.id()).order(order).await
            } else {
                Ok((Epoch(0), byzantine::vote(&self.world, authority, 0, &orders[0])))
            };
            votes.extend(vote.ok().and_then(|(_, vote)| vote.verify(&self.world.domain, &committee, &verified).ok()));
        }
        let certificate = Certificate::from_votes(&verified, &committee, &votes);
        self.certificate = certificate.map(VerifiedCertificate::into_certificate);
        self.world.trace.note("dispute", format_args!("#{} certified: {}", self.number, self.certificate.is_some()));
    }

    pub(super) async fn show(&self, authority: usize) {
        if let Some(certificate) = &self.certificate {
            let peer = &self.client.network().authorities()[authority];
            let answer = peer.shard_of(&self.owner.id()).confirm(certificate).await;
            self.world.trace.note("shown", format_args!("a{authority}: {answer:?}"));
        }
    }

    pub(super) async fn show_one(&self) {
        self.show(self.dice.below(self.world.plan.honest())).await;
    }

    pub(super) async fn show_some(&self) {
        for authority in self.dice.some_of(self.world.plan.honest()) {
            self.show(authority).await;
        }
    }

    /// Sends a call to the council without waiting for a block.
    fn send(&self, call: Call) {
        self.world.chain.ethereum().primary.send(&rich_key(GUARDIAN_KEY), call);
    }

    pub(super) fn request(&self, by: &TestAccount) {
        let (sequence, chain) = (SequenceNumber(self.number), &self.world.chain);
        if by.id() == self.owner.id() {
            self.world.oracle().asks(self.slot());
        }
        let authorization = by.key.sign_unlock_request(&self.world.domain, sequence);
        let bond = match self.is_requested() {
            true => U256::ZERO,
            false => chain.ethereum().contract.view_of_council(&ICouncil::unlockBondCall {}),
        };
        self.send(Call::request_unlock(chain.council(), self.owner.id(), sequence, authorization, bond));
    }

    pub(super) fn is_requested(&self) -> bool {
        !self.world.chain.unlock_of(self.slot()).1
    }

    /// Collects votes to void the number from all authorities, including Byzantine ones.
    pub(super) async fn gather(&mut self, unanimous: bool) {
        let (slot, (account, number)) = (self.slot(), self.slot());
        let sequence = SequenceNumber(number);
        let mut votes = Vec::new();
        for authority in self.all() {
            if !self.is_honest(authority) {
                let keys = self.world.keys_in(authority, Epoch(0)).expect("all are members");
                let vote = UnlockVote::Void { unanimous };
                votes.push(vote.sign(keys, &self.world.domain, Epoch(0), account, sequence));
                continue;
            }
            let peer = &self.client.network().authorities()[authority];
            match peer.shard_of(&account).vote_unlock((account, sequence), unanimous).await {
                Ok(UnlockAnswer::Void { vote, .. }) => {
                    self.world.check(|oracle| oracle.void_vote_leaves(authority, slot));
                    votes.push(vote);
                }
                Ok(UnlockAnswer::Certificate { .. }) => {
                    self.world.check(|oracle| oracle.certificate_vote_leaves(authority, slot));
                }
                Err(error) => self.world.trace.note("no unlock vote", format_args!("a{authority}: {error}")),
            }
        }
        self.votes.entry(unanimous).or_default().extend(votes);
    }

    /// Tries all votes ever collected, by either function.
    pub(super) fn try_to_void(&self) {
        let (account, number) = self.slot();
        let committee = self.world.committees()[0].committee.clone();
        for unanimous in [true, false] {
            let vote = UnlockVote::Void { unanimous };
            let digest = vote.digest(&self.world.domain, Epoch(0), account, SequenceNumber(number));
            let verified =
                self.votes.values().flatten().filter_map(|vote| vote.clone().verify(&committee, digest).ok());
            let verified: Vec<_> = verified.collect();
            let Some(packed) = VerifiedContractVote::first(vote.needed(&committee), &committee, digest, &verified)
            else {
                continue;
            };
            self.world.trace.note("tries to void", format_args!("#{number} unanimous: {unanimous}"));
            self.decide(vote, packed);
        }
    }

    fn decide(&self, vote: UnlockVote, votes: Vec<u8>) {
        let (council, sequence) = (self.world.chain.council(), SequenceNumber(self.number));
        self.send(Call::decide_unlock(council, self.owner.id(), sequence, vote, votes));
    }

    /// Acts as a wallet: asks all authorities, and submits votes that suffice.
    pub(super) async fn ask(&self, unanimous: bool) {
        let (account, sequence) = (self.owner.id(), SequenceNumber(self.number));
        let ballot = self.client.vote_unlock((account, sequence), unanimous, PATIENCE).await;
        self.world.trace.note("ballot", format_args!("#{sequence} {:?}", ballot.votes()));
        if let Some(UnlockDecision { vote, votes }) = ballot.decision() {
            self.decide(vote, votes);
        }
    }

    pub(super) fn outcome(&self) -> Option<UnlockOutcome> {
        let (outcome, _) = self.world.chain.unlock_of(self.slot());
        matches!(outcome, UnlockOutcome::Upheld | UnlockOutcome::Voided).then_some(outcome)
    }

    /// Checks that the number has an outcome once an honest party has acted.
    pub(super) fn is_safe(&self) -> Result<(), Breach> {
        let executed = self.world.oracle().is_executed_anywhere(self.slot());
        require!(self.outcome().is_some() || !executed, "#{} is executed somewhere and cannot be upheld", self.number);
        Ok(())
    }
}
