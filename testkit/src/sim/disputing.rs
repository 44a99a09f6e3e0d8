//! Disputed numbers, after the rest of a run: owners of several accounts sign two orders with one number and request
//! its unlock from the contract. Meanwhile these accounts receive payments, and pay again once their number is decided.
//! Authorities restart, their machines' clocks are wrong, and Ethereum stops finalizing. A relayer or a wallet submits
//! the votes. This module has a random generator of its own.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::time::Duration;

use fastpay_client::{CertificateSource, CommitteeClient, NoCertificates, QuorumOptions};
use fastpay_core::{AccountId, Amount, Asset};
use fastpay_ethereum::UnlockOutcome;
use tokio::sync::Notify;
use tokio::task::JoinHandle;
use tokio::time::sleep;

use super::dice::Dice;
use super::disputed::Disputed;
use super::oracle::{Breach, require};
use super::relaying;
use super::scenario::fund;
use super::world::{Word, World};
use crate::{TestAccount, payment};

/// The contract's unlock window.
const WINDOW: Duration = Duration::from_secs(3 * 86_400);
/// The length of a time step, shorter than the maximum age of a view of the chain.
const STEP: Duration = Duration::from_secs(12 * 3_600);
/// The time after a step until its blocks are final and read.
const BLOCKS: Duration = Duration::from_secs(16);
/// The time until a transaction is in a block.
const MINED: Duration = Duration::from_secs(5);
/// The time in which a relayer reads a request, asks all authorities, and gets its transaction mined.
const RELAYED: Duration = Duration::from_secs(60);
/// The maximum error of a clock within the bound, in seconds: less than the rest of the window once a view of the chain
/// is too old and an honest party has acted.
const CLOCK_ERROR_MAX_S: i64 = 6 * 3_600;
/// The error of a clock beyond the bound, in seconds: longer than any dispute.
const FAR_S: i64 = 60 * 86_400;
/// The initial balance of each disputed account and of the payer.
const FUNDS: u128 = 1_000_000;

/// The accounts in dispute: the contract judges the requests of the second one, authorities those of the others.
fn owners() -> [TestAccount; 3] {
    [TestAccount::ed25519(1_000), TestAccount::ethereum(1_001), TestAccount::ed25519(1_002)]
}

/// The account that pays them and is paid by them, with its next number.
struct Payer {
    owner: TestAccount,
    next: u64,
}

/// Some numbers that are disputed at the same time.
struct Round {
    world: Arc<World>,
    dice: Dice,
    client: CommitteeClient,
    numbers: Vec<Disputed>,
    /// An authority that stays offline until the numbers can be decided.
    absent: Option<usize>,
    /// The authority whose clock is behind by more than the bound.
    behind: Option<usize>,
    /// Kills the relayer's process, which is restarted.
    restart: Arc<Notify>,
    relayer: Option<JoinHandle<()>>,
}

impl Drop for Round {
    fn drop(&mut self) {
        self.relayer.iter().for_each(JoinHandle::abort);
    }
}

/// Disputes numbers as often as the plan says.
pub async fn dispute(world: &Arc<World>) -> Result<(), Breach> {
    if world.plan.disputes == 0 {
        return Ok(());
    }
    let mut payer = Payer { owner: TestAccount::ed25519(1_010), next: 0 };
    for account in owners().iter().chain([&payer.owner]) {
        world.chain.deposit(0, account.id(), Asset::ETHER, Amount(FUNDS));
    }
    fund(world).await?;
    sleep(BLOCKS).await;
    for number in 0..world.plan.disputes {
        Round::new(world, number).run(&mut payer).await?;
    }
    Ok(())
}

impl Round {
    fn new(world: &Arc<World>, round: u64) -> Self {
        let dice = Dice::new(world.plan.seed ^ (0xd15b_0000 + round));
        let source: Arc<dyn CertificateSource> = Arc::new(NoCertificates);
        let client = CommitteeClient::new(world.network(usize::MAX), source, QuorumOptions::default());
        let disputed = |owner: TestAccount| Disputed {
            world: world.clone(),
            dice: dice.clone(),
            client: client.clone(),
            number: world.oracle().books(0).sent(owner.id()),
            owner,
            certificate: None,
            votes: BTreeMap::new(),
        };
        // At least one.
        let first = dice.below(owners().len());
        let is_chosen = |at: usize| at == first || dice.chance(500);
        let chosen = owners().into_iter().enumerate().filter(|(at, _)| is_chosen(*at));
        let numbers = chosen.map(|(_, owner)| disputed(owner)).collect();
        let (restart, world) = (Arc::new(Notify::new()), world.clone());
        Self { world, numbers, client, absent: None, behind: None, restart, relayer: None, dice }
    }

    async fn run(mut self, payer: &mut Payer) -> Result<(), Breach> {
        let (dice, world) = (self.dice.clone(), self.world.clone());
        self.set_clocks(false).await;
        for at in 0..self.numbers.len() {
            self.numbers[at].sign(payer.owner.id()).await;
            self.pay(&payer.owner, &mut payer.next, self.numbers[at].owner.id(), 10).await?;
            if dice.chance(600) {
                self.numbers[at].show_one().await;
            }
        }
        if dice.chance(300) {
            self.ask_as_a_stranger().await?;
        }
        self.set_clocks(true).await;
        self.ask_as_the_owner().await?;
        self.absent = self.leave();
        sleep(BLOCKS).await;
        self.gather(&[true, false]).await;
        for number in &self.numbers {
            if dice.chance(400) {
                number.show_some().await;
            }
        }
        // Ethereum may stop finalizing while the window runs.
        world.chain.finalizes(&world, dice.chance(700));
        // An honest party acts before a quorum's own window can have passed.
        self.pass(WINDOW / 2).await;
        self.act().await?;
        self.pass(WINDOW).await;
        self.gather(&[false]).await;
        self.come_back().await;
        for number in &self.numbers {
            self.pay(&payer.owner, &mut payer.next, number.owner.id(), 10).await?;
        }
        self.decide().await?;
        for number in &self.numbers {
            let quarter = number.balance(0) / 4;
            self.pay(&number.owner, &mut (number.number + 1), payer.owner.id(), quarter).await?;
        }
        sleep(BLOCKS).await;
        Ok(())
    }

    /// The number of authorities that may be offline, besides Byzantine ones and a restored one.
    fn spare(&self) -> usize {
        let plan = &self.world.plan;
        (plan.authorities() - 1) / 3 - plan.byzantine.len() - usize::from(plan.is_restored)
    }

    /// Sets every machine's clock wrong by a few hours. In the `worst` case one may be behind by more than the bound,
    /// and any number ahead by more: those only vote and execute later.
    async fn set_clocks(&mut self, worst: bool) {
        let (honest, dice) = (self.world.plan.honest(), &self.dice);
        let hours = |_: usize| dice.between_s(-CLOCK_ERROR_MAX_S, CLOCK_ERROR_MAX_S);
        let mut errors_s: BTreeMap<usize, i64> = (0..honest).map(|authority| (authority, hours(authority))).collect();
        if worst && dice.chance(600) {
            errors_s.values_mut().filter(|_| dice.chance(800)).for_each(|error_s| *error_s = FAR_S);
        }
        self.behind = (worst && self.spare() > 0 && dice.chance(200)).then(|| dice.below(honest));
        errors_s.extend(self.behind.map(|authority| (authority, -FAR_S)));
        self.world.trace.note("clocks", format_args!("{errors_s:?}"));
        self.world.set_clocks(errors_s);
        self.tick().await;
    }

    /// Restarts all processes, which then read their machines' clocks.
    async fn tick(&self) {
        (0..self.world.plan.honest()).for_each(|authority| self.world.record(authority, Word::Tick));
        self.restart.notify_one();
        sleep(BLOCKS).await;
    }

    /// Advances the time, also that of all machines' clocks.
    async fn pass(&self, time: Duration) {
        let mut left = time;
        while !left.is_zero() {
            let step = left.min(STEP);
            left -= step;
            self.world.chain.skipped_s.fetch_add(step.as_secs(), Ordering::Relaxed);
            self.tick().await;
        }
    }

    /// Makes a payment that all reachable authorities confirm.
    async fn pay(&self, from: &TestAccount, next: &mut u64, to: AccountId, amount: u128) -> Result<(), Breach> {
        let order = from.sign(&self.world.domain, payment(from.id(), to, amount, *next));
        self.world.oracle().signs(&order);
        let order = order.verify(&self.world.domain).expect("the owner signs well");
        let failed = |error| Breach(format!("a payment of {amount} while numbers are in dispute fails: {error}"));
        let certificate = self.client.certify(&order).await.map_err(failed)?;
        let settled = self.client.settle(&certificate).await.map_err(failed)?;
        self.world.oracle().is_settled(certificate.transfer(), &self.world.epochs())?;
        let confirmed = settled.rest.await.unwrap_or_default();
        self.world.trace.note("paid", format_args!("{amount}, confirmed by {confirmed}"));
        *next += 1;
        Ok(())
    }

    /// Only the owner can make requests for an account of the contract's own kind.
    async fn ask_as_a_stranger(&self) -> Result<(), Breach> {
        let of_others = self.numbers.iter().filter(|number| number.owner.id().ethereum_address().is_none());
        of_others.clone().for_each(|number| number.request(&TestAccount::ed25519(1_020)));
        sleep(MINED).await;
        for number in of_others {
            require!(number.is_requested(), "a stranger's request for #{} is not on the chain", number.number);
        }
        self.pass(WINDOW).await;
        Ok(())
    }

    /// The owners make their requests. Ethereum may finalize nothing for half of the window, or longer than it.
    async fn ask_as_the_owner(&self) -> Result<(), Breach> {
        let is_stalled = self.dice.chance(500);
        self.world.chain.finalizes(&self.world, !is_stalled);
        self.numbers.iter().for_each(|number| number.request(&number.owner));
        sleep(MINED).await;
        for number in &self.numbers {
            require!(number.is_requested(), "a request to unlock #{} is not on the chain", number.number);
        }
        if is_stalled {
            self.pass(WINDOW * u32::try_from(1 + self.dice.below(3)).unwrap_or(1) / 2).await;
            for number in &self.numbers {
                if self.dice.chance(400) {
                    number.show_some().await;
                }
            }
            self.world.chain.finalizes(&self.world, true);
        }
        Ok(())
    }

    /// Stops an authority that may be offline and has none of the needed certificates. Its clock is right: if it were
    /// behind by more than the bound, the authority would be faulty, and execute a void number.
    fn leave(&self) -> Option<usize> {
        let world = &self.world;
        let has_any = |authority: usize| {
            self.numbers.iter().any(|number| world.oracle().books(authority).has_executed(number.slot()))
        };
        let may_leave = |authority: &usize| self.behind != Some(*authority) && !has_any(*authority);
        let candidates: Vec<_> = (0..world.plan.honest()).filter(may_leave).collect();
        let is_spare = self.spare() > usize::from(self.behind.is_some());
        if !is_spare || candidates.is_empty() || !self.dice.chance(700) {
            return None;
        }
        let authority = *self.dice.pick(&candidates);
        world.record(authority, Word::Stop);
        Some(authority)
    }

    /// Collects votes to void the numbers, and submits all of them.
    async fn gather(&mut self, kinds: &[bool]) {
        for number in &mut self.numbers {
            for unanimous in kinds {
                number.gather(*unanimous).await;
            }
            number.try_to_void();
        }
        sleep(MINED).await;
    }

    /// Makes a relayer follow the numbers from now on, or a wallet act once: executed orders are upheld.
    async fn act(&mut self) -> Result<(), Breach> {
        if self.dice.chance(500) {
            let relayer = relaying::unlock(self.world.clone(), self.restart.clone());
            self.relayer = Some(tokio::task::spawn_local(relayer));
            sleep(RELAYED).await;
        } else {
            self.ask(true).await;
        }
        self.numbers.iter().try_for_each(Disputed::is_safe)
    }

    async fn ask(&self, unanimous: bool) {
        for number in self.numbers.iter().filter(|number| number.outcome().is_none()) {
            number.ask(unanimous).await;
        }
        sleep(MINED).await;
    }

    /// Ethereum finalizes again, the clocks are set, and offline authorities get certificates before they read the
    /// chain.
    async fn come_back(&mut self) {
        self.world.chain.finalizes(&self.world, true);
        if let Some(authority) = self.absent.take() {
            self.world.record(authority, Word::Restart);
            for _ in 0..20 {
                for number in &self.numbers {
                    number.show(authority).await;
                }
                sleep(Duration::from_millis(1)).await;
            }
        }
        self.set_clocks(false).await;
    }

    /// Waits until the numbers have their outcomes and all authorities have followed them.
    async fn decide(&self) -> Result<(), Breach> {
        for _ in 0..8 {
            if self.numbers.iter().all(|number| number.outcome().is_some()) {
                break;
            }
            self.pass(STEP).await;
            if self.relayer.is_some() {
                sleep(RELAYED).await;
            } else {
                self.ask(true).await;
                self.ask(false).await;
            }
        }
        sleep(BLOCKS * 2).await;
        for number in &self.numbers {
            let Some(outcome) = number.outcome() else {
                return Err(Breach(format!("#{} is not decided", number.number)));
            };
            let (is_upheld, slot) = (outcome == UnlockOutcome::Upheld, number.slot());
            let by = if self.relayer.is_some() { "relayer" } else { "wallet" };
            self.world.trace.note(if is_upheld { "upheld" } else { "voided" }, format_args!("#{} {by}", slot.1));
            // An authority that has the certificate executes it without receiving it again.
            self.world.oracle().follows(slot, is_upheld)?;
            for authority in 0..self.world.plan.honest() {
                number.show(authority).await;
            }
        }
        sleep(BLOCKS).await;
        self.numbers.iter().try_for_each(|number| self.world.oracle().is_over(number.slot()))
    }
}
