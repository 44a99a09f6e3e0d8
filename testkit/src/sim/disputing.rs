//! A number for which its owner signed two orders, once all else is done: the owner hides certificates and asks the
//! contract to unlock the number, somebody collects every vote to void it, and somebody honest brings what is known to
//! the contract within the window. Authorities stop and start again, and Ethereum stops to finalize. Chance comes from
//! dice of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use alloy::primitives::{Address, U256};
use fastpay_client::{CertificateSource, CommitteeClient, QuorumOptions, UnlockDecision};
use fastpay_core::{
    AccountId, Amount, Asset, Certificate, ContractVote, Epoch, SequenceNumber, TransferOrder, UnlockVote,
    VerifiedContractVote,
};
use fastpay_ethereum::{Call, ICouncil, UnlockOutcome};
use fastpay_rpc::UnlockAnswer;
use tokio::time::sleep;

use super::byzantine;
use super::chain::Chain;
use super::dice::Dice;
use super::oracle::{Breach, require};
use super::world::{Word, World};
use crate::anvil::{GUARDIAN_KEY, rich_key};
use crate::{TestAccount, payment};

/// The contract's window.
const WINDOW: Duration = Duration::from_secs(3 * 86_400);
/// Time passes in steps that are shorter than a view of the chain may be old.
const STEP: Duration = Duration::from_secs(12 * 3_600);
/// So long after a step blocks are final, and followed.
const BLOCKS: Duration = Duration::from_secs(16);
const PATIENCE: Duration = Duration::from_secs(5);

impl Chain {
    fn council(&self) -> Address {
        self.contract.council()
    }

    /// How a number stands in the newest block.
    fn unlock_of(&self, (account, sequence): (AccountId, u64)) -> (UnlockOutcome, bool) {
        let call = ICouncil::unlockOfCall { account: account.0.into(), sequence };
        let unlock = self.contract.view_of_council(&call);
        (unlock.outcome, unlock.voidableFrom.is_zero())
    }
}

struct Dispute {
    world: Arc<World>,
    dice: Dice,
    owner: TestAccount,
    client: CommitteeClient,
    number: u64,
    certificate: Option<Certificate>,
    /// By their kind, whoever signed them.
    votes: BTreeMap<bool, Vec<ContractVote>>,
}

/// Disputes as many numbers as the plan says.
pub async fn dispute(world: &Arc<World>) -> Result<(), Breach> {
    if world.plan.disputes == 0 {
        return Ok(());
    }
    let owner = TestAccount::ed25519(1_000);
    world.chain.deposit(0, owner.id(), Asset::ETHER, Amount(1_000));
    while world.chain.deposits().0 < world.chain.deposits().1 {
        sleep(Duration::from_secs(1)).await;
    }
    sleep(BLOCKS).await;
    for number in 0..world.plan.disputes {
        let network = world.network(usize::MAX);
        let source: Arc<dyn CertificateSource> = Arc::new(fastpay_client::NoCertificates);
        let mut dispute = Dispute {
            dice: Dice::new(world.plan.seed ^ (0xd15b_0000 + number)),
            client: CommitteeClient::new(network, source, QuorumOptions::default()),
            world: world.clone(),
            owner: owner.clone(),
            number,
            certificate: None,
            votes: BTreeMap::new(),
        };
        dispute.run().await?;
    }
    Ok(())
}

impl Dispute {
    fn slot(&self) -> (AccountId, u64) {
        (self.owner.id(), self.number)
    }

    fn all(&self) -> std::ops::Range<usize> {
        0..self.world.plan.authorities()
    }

    async fn run(&mut self) -> Result<(), Breach> {
        let (dice, world) = (self.dice.clone(), self.world.clone());
        self.sign().await;
        if dice.chance(600) {
            self.show_one().await;
        }
        if dice.chance(300) {
            self.request(&TestAccount::ed25519(1_001)).await?;
            self.pass(WINDOW).await;
        }
        let is_stalled = dice.chance(500);
        world.chain.finalizes(!is_stalled);
        self.request(&self.owner.clone()).await?;
        if is_stalled {
            self.pass(WINDOW * u32::try_from(1 + dice.below(3)).unwrap_or(1) / 2).await;
            self.show_some().await;
            world.chain.finalizes(true);
        }
        let absent = self.leave().await;
        sleep(BLOCKS).await;
        self.gather(true).await;
        self.gather(false).await;
        self.try_to_void().await;
        if dice.chance(400) {
            self.show_some().await;
        }
        // Somebody honest acts before a quorum's own window can have passed.
        self.pass(WINDOW / 2).await;
        self.act().await?;
        self.pass(WINDOW).await;
        self.gather(false).await;
        self.try_to_void().await;
        if let Some(authority) = absent {
            world.record(authority, Word::Restart);
            // It has not read of anything yet.
            for _ in 0..20 {
                self.show(authority).await;
                sleep(Duration::from_millis(1)).await;
            }
        }
        self.decide().await
    }

    /// Two orders; of all votes for the first, or of some for each.
    async fn sign(&mut self) {
        let to = self.world.owners[0].id();
        let sign = |amount| self.owner.sign(&self.world.domain, payment(self.owner.id(), to, amount, self.number));
        let orders: [TransferOrder; 2] = [sign(1), sign(2)];
        orders.iter().for_each(|order| self.world.oracle().signs(order));
        let is_certified = self.dice.chance(700);
        let verified = orders[0].clone().verify(&self.world.domain).expect("the owner signs well");
        let committee = self.world.committees()[0].committee.clone();
        let mut votes = Vec::new();
        for authority in self.all() {
            let order = &orders[usize::from(!is_certified && self.dice.chance(500))];
            let peer = &self.client.network().authorities()[authority];
            let vote = if authority >= self.world.plan.honest() {
                Ok((Epoch(0), byzantine::vote(&self.world, authority, 0, &orders[0])))
            } else {
                peer.shard_of(&self.owner.id()).order(order).await
            };
            votes.extend(vote.ok().and_then(|(_, vote)| vote.verify(&self.world.domain, &committee, &verified).ok()));
        }
        let certificate = fastpay_core::Certificate::from_votes(&verified, &committee, &votes);
        self.certificate = certificate.map(fastpay_core::VerifiedCertificate::into_certificate);
        self.world.trace.note("dispute", format_args!("#{} certified: {}", self.number, self.certificate.is_some()));
    }

    async fn show(&self, authority: usize) {
        if let Some(certificate) = &self.certificate {
            let peer = &self.client.network().authorities()[authority];
            let answer = peer.shard_of(&self.owner.id()).confirm(certificate).await;
            self.world.trace.note("shown", format_args!("a{authority}: {answer:?}"));
        }
    }

    async fn show_one(&self) {
        self.show(self.dice.below(self.world.plan.honest())).await;
    }

    async fn show_some(&self) {
        for authority in self.dice.some_of(self.world.plan.honest()) {
            self.show(authority).await;
        }
    }

    /// Sends a call to the council until it has done what it can.
    async fn send(&self, call: Call) {
        self.world.chain.primary.send(&rich_key(GUARDIAN_KEY), call);
        sleep(Duration::from_secs(5)).await;
    }

    async fn request(&self, by: &TestAccount) -> Result<(), Breach> {
        let (sequence, chain) = (SequenceNumber(self.number), &self.world.chain);
        if by.id() == self.owner.id() {
            self.world.oracle().asks(self.slot());
        }
        let authorization = by.key.sign_unlock_request(&self.world.domain, sequence);
        let (_, is_first) = chain.unlock_of(self.slot());
        let bond = if is_first { chain.contract.view_of_council(&ICouncil::unlockBondCall {}) } else { U256::ZERO };
        self.send(Call::request_unlock(chain.council(), self.owner.id(), sequence, authorization, bond)).await;
        require!(!chain.unlock_of(self.slot()).1, "a request to unlock #{} is not on the chain", self.number);
        Ok(())
    }

    /// An authority that may be missing stops until the end, one that has none of the votes that are needed.
    async fn leave(&self) -> Option<usize> {
        let plan = &self.world.plan;
        let missing = plan.byzantine.len() + usize::from(plan.is_restored);
        if missing >= (plan.authorities() - 1) / 3 || !self.dice.chance(500) {
            return None;
        }
        let authority = self.dice.below(plan.honest());
        let executed = self.world.oracle().books(authority).has_executed(self.slot());
        if executed {
            return None;
        }
        self.world.record(authority, Word::Stop);
        Some(authority)
    }

    /// Time passes everywhere, also for the clocks of the authorities' machines.
    async fn pass(&self, time: Duration) {
        let mut left = time;
        while !left.is_zero() {
            let step = left.min(STEP);
            left -= step;
            self.world.chain.skipped_s.fetch_add(step.as_secs(), Ordering::Relaxed);
            (0..self.world.plan.honest()).for_each(|authority| self.world.record(authority, Word::Tick));
            sleep(BLOCKS).await;
        }
    }

    /// Collects votes to void the number from all, those that misbehave among them.
    async fn gather(&mut self, unanimous: bool) {
        let (account, number) = self.slot();
        let sequence = SequenceNumber(number);
        let mut votes = Vec::new();
        for authority in self.all() {
            if authority >= self.world.plan.honest() {
                let keys = &self.world.committees()[0].keys[authority];
                let vote = UnlockVote::Void { unanimous };
                votes.push(vote.sign(keys, &self.world.domain, Epoch(0), account, sequence));
                continue;
            }
            let peer = &self.client.network().authorities()[authority];
            let answer = peer.shard_of(&account).vote_unlock((account, sequence), unanimous).await;
            let slot = self.slot();
            match answer {
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

    /// Tries all votes that were ever given, on either path.
    async fn try_to_void(&self) {
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
            self.tell(vote, packed).await;
        }
    }

    async fn tell(&self, vote: UnlockVote, votes: Vec<u8>) {
        let (council, sequence) = (self.world.chain.council(), SequenceNumber(self.number));
        self.send(Call::decide_unlock(council, self.owner.id(), sequence, vote, votes)).await;
    }

    fn is_decided(&self) -> bool {
        matches!(self.world.chain.unlock_of(self.slot()).0, UnlockOutcome::Upheld | UnlockOutcome::Voided)
    }

    /// Acts as a wallet or relayer: asks all authorities and sends the contract a decision once the votes suffice.
    async fn ask(&self, unanimous: bool) {
        let (account, sequence) = (self.owner.id(), SequenceNumber(self.number));
        let ballot = self.client.vote_unlock((account, sequence), unanimous, PATIENCE).await;
        self.world.trace.note("ballot", format_args!("#{sequence} {:?}", ballot.votes()));
        if let Some(UnlockDecision { vote, votes }) = ballot.decision() {
            self.tell(vote, votes).await;
        }
    }

    async fn act(&self) -> Result<(), Breach> {
        if self.is_decided() {
            return Ok(());
        }
        self.ask(true).await;
        let executed = self.world.oracle().is_executed_anywhere(self.slot());
        require!(self.is_decided() || !executed, "#{} is executed somewhere and cannot be upheld", self.number);
        Ok(())
    }

    /// The number gets its outcome, and everybody follows it.
    async fn decide(&self) -> Result<(), Breach> {
        for _ in 0..8 {
            if self.is_decided() {
                break;
            }
            sleep(BLOCKS).await;
            self.ask(true).await;
            if !self.is_decided() {
                self.pass(STEP).await;
                self.ask(false).await;
            }
        }
        require!(self.is_decided(), "#{} is not decided", self.number);
        sleep(BLOCKS * 2).await;
        let is_upheld = self.world.chain.unlock_of(self.slot()).0 == UnlockOutcome::Upheld;
        self.world.trace.note(if is_upheld { "upheld" } else { "voided" }, self.number);
        // An authority that keeps the certificate executes it without being shown it again.
        self.world.oracle().follows(self.slot(), is_upheld)?;
        for authority in 0..self.world.plan.honest() {
            self.show(authority).await;
        }
        sleep(BLOCKS).await;
        self.world.oracle().is_over(self.slot())
    }
}
