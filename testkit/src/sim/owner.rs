//! Correct clients: each makes its transfers one after the other with the wallet's code on a folder of its own, is
//! killed half-way now and then, and goes on with what it finds in the folder.

use std::cell::Cell;
use std::sync::Arc;
use std::time::Duration;

use alloy::primitives::U256;
use fastpay_client::{Network, QuorumOptions};
use fastpay_core::{AccountId, Amount, Asset, Digest, Memo, Output, Outputs, PrimaryAddress};
use fastpay_wallet::folder::{Folder, OrderEntry, OrderState};
use fastpay_wallet::{ErrorKind, Intent, PayoutPage, Resumed, Wallet, WalletError};
use tempfile::TempDir;
use tokio::time::{Instant, sleep, timeout};

use super::dice::Dice;
use super::oracle::{Breach, require};
use super::process::memory_folder;
use super::world::{ASSETS, Sent, World};

/// So long a wallet waits for a rotation, in which it goes on.
const ROTATION_PATIENCE: Duration = Duration::from_secs(120);

/// A client's intention.
enum Want {
    One(Intent),
    /// A list, by its name.
    Many(Digest, Vec<PayoutPage>),
}

/// A correct client at work.
struct Owner {
    world: Arc<World>,
    client: usize,
    network: Network,
    home: TempDir,
    /// How many transfers it has wanted so far. Each has its number as memo.
    wanted: Cell<u64>,
    /// Of kills that are aimed: other dice than those of the run.
    kills: Dice,
}

/// Runs a correct client until it has made all its transfers.
pub async fn live(world: Arc<World>, client: usize) {
    let (network, kills) = (world.network(client), Dice::new(world.plan.seed ^ (0x0a1e_0000 + client as u64)));
    let owner = Owner { network, home: memory_folder(), client, wanted: Cell::new(0), kills, world };
    for asset in ASSETS {
        let amount = 100 + owner.world.dice.below(1_000) as u128;
        owner.world.deposit(owner.account(), asset, amount);
    }
    for _ in 0..owner.world.plan.payments {
        owner.think().await;
        let want = if owner.world.dice.chance(300) { owner.choose_many() } else { Want::One(owner.choose()) };
        if let Err(breach) = owner.bring_about(&want).await {
            return owner.world.trace.violation(breach);
        }
    }
    match owner.has_all() {
        Ok(()) => owner.world.trace.note("finished", client),
        Err(breach) => return owner.world.trace.violation(breach),
    }
    owner.world.finished();
}

impl Owner {
    fn account(&self) -> AccountId {
        self.world.owners[self.client].id()
    }

    /// As a new process would have it.
    fn wallet(&self) -> Wallet {
        Wallet::new(Folder::new(self.home.path()), self.network.clone(), QuorumOptions::default())
    }

    async fn think(&self) {
        let share = Duration::from_secs(self.world.plan.storm_s) / u32::try_from(self.world.plan.payments).unwrap_or(1);
        if !self.world.is_calm() {
            sleep(self.world.dice.mostly_short(share)).await;
        }
        if self.world.dice.chance(200) {
            let asset = *self.world.dice.pick(&ASSETS);
            self.world.deposit(self.account(), asset, 1 + self.world.dice.below(100) as u128);
        }
    }

    /// Something that it can afford.
    fn choose(&self) -> Intent {
        let dice = &self.world.dice;
        let richest = |asset: &&Asset| self.world.purse(self.account(), **asset);
        let asset =
            if dice.chance(500) { ASSETS.iter().max_by_key(richest) } else { ASSETS.iter().min_by_key(richest) };
        let asset = asset.filter(|asset| richest(asset) > 0).or_else(|| ASSETS.iter().max_by_key(richest));
        let asset = *asset.expect("there are assets");
        if richest(&&asset) < 10 {
            self.world.deposit(self.account(), asset, 50);
        }
        let purse = usize::try_from(richest(&&asset)).expect("purses are small");
        let moved = if dice.chance(300) { purse } else { 1 + dice.below(purse / 2) } as u128;
        if dice.chance(self.world.plan.redemptions_per_mille) {
            let fee = Amount(moved.min(dice.below(5) as u128));
            let recipient = PrimaryAddress::repeat_byte(0x0d);
            self.want(Intent::Redeem { recipient, asset, amount: Amount(moved), fee, memo: Memo::ZERO })
        } else {
            let recipient = self.recipient();
            self.want(Intent::Pay { recipient, asset, amount: Amount(moved), memo: Memo::ZERO })
        }
    }

    /// A list of one or two pages that it can afford, of few people, some of them several times.
    fn choose_many(&self) -> Want {
        let dice = &self.world.dice;
        let asset =
            *ASSETS.iter().max_by_key(|asset| self.world.purse(self.account(), **asset)).expect("there are assets");
        if self.world.purse(self.account(), asset) < 40 {
            self.world.deposit(self.account(), asset, 50);
        }
        let page = |_: usize| {
            let outputs = (0..1 + dice.below(6)).map(|_| Output {
                recipient: self.recipient(),
                amount: Amount(1 + dice.below(3) as u128),
                memo: Memo::ZERO,
            });
            PayoutPage { asset, outputs: Outputs::new(outputs.collect()).expect("small outputs") }
        };
        let pages: Vec<_> = (0..1 + dice.below(2)).map(page).collect();
        self.wanted.set(self.wanted.get() + pages.len() as u64);
        pages.iter().for_each(|page| self.world.spend(self.account(), asset, page.outputs.total().0));
        self.world.trace.note("wanted", format_args!("client {} pays {} lists", self.client, pages.len()));
        Want::Many(Digest::from(U256::from(self.wanted.get())), pages)
    }

    /// Sets the money aside, and tells this transfer from all others.
    fn want(&self, mut intent: Intent) -> Intent {
        self.wanted.set(self.wanted.get() + 1);
        let (Intent::Pay { asset, amount, memo, .. } | Intent::Redeem { asset, amount, memo, .. }) = &mut intent;
        memo.0[24..].copy_from_slice(&self.wanted.get().to_be_bytes());
        self.world.spend(self.account(), *asset, amount.0);
        self.world.trace.note("wanted", format_args!("client {} moves {amount}", self.client));
        intent
    }

    /// Anybody: another client, itself, an adversary, a stranger.
    fn recipient(&self) -> AccountId {
        let dice = &self.world.dice;
        if dice.chance(200) {
            let stranger = u8::try_from(dice.below(20)).expect("few strangers");
            return AccountId::from_ed25519(&[stranger; 32]);
        }
        dice.pick(&self.world.owners).id()
    }

    /// Makes a transfer, and returns once it is settled: the same command again and again, or `resume`, or another
    /// transfer that finishes this one first, whenever the last one was killed.
    async fn bring_about(&self, want: &Want) -> Result<(), Breach> {
        let dice = &self.world.dice;
        loop {
            let is_aimed = self.world.plan.aimed_kills && !self.world.is_calm() && self.kills.chance(500);
            let outcome = if is_aimed { self.send_until_sent(want).await } else { self.send_for_a_while(want).await };
            // Whoever is killed may have left a note behind, and believes it from now on.
            self.check_notes()?;
            match outcome {
                Some(Ok(())) => break,
                Some(Err(error)) => self.is_passing(error)?,
                None => {
                    self.world.trace.note("wallet killed", self.client);
                    if is_aimed && self.kills.chance(500) {
                        self.pay_something_else().await?;
                    } else if is_aimed && self.kills.chance(700) {
                        self.await_a_rotation().await;
                        self.resume(Duration::MAX).await?;
                    } else if dice.chance(300) {
                        self.resume(dice.mostly_short(Duration::from_secs(30))).await?;
                    } else if dice.chance(300) {
                        self.pay_something_else().await?;
                    }
                }
            }
            self.check_notes()?;
            self.world.follow(&self.network);
            sleep(dice.between(Duration::from_millis(10), Duration::from_secs(2))).await;
            // A client that does not know how a command ended reads the history first.
            if self.is_settled(want)? {
                break;
            }
        }
        self.world.trace.note("settled", format_args!("client {}", self.client));
        match want {
            Want::One(Intent::Pay { recipient, asset, amount, .. }) => {
                self.world.earn(*recipient, *asset, amount.0);
            }
            Want::One(Intent::Redeem { .. }) => {}
            Want::Many(_, pages) => {
                for (page, output) in
                    pages.iter().flat_map(|page| page.outputs.iter().map(move |output| (page, output)))
                {
                    self.world.earn(output.recipient, page.asset, output.amount.0);
                }
            }
        }
        Ok(())
    }

    /// The command, killed after some time perhaps.
    async fn send_for_a_while(&self, want: &Want) -> Option<Result<(), WalletError>> {
        let dice = &self.world.dice;
        let is_killed = !self.world.is_calm() && dice.chance(300);
        let patience = if is_killed { dice.mostly_short(Duration::from_secs(5)) } else { Duration::MAX };
        timeout(patience, self.send(want)).await.ok()
    }

    /// The command, killed as soon as its first order, or its first certificate, is on the way.
    async fn send_until_sent(&self, want: &Want) -> Option<Result<(), WalletError>> {
        let count = if self.kills.chance(500) { |sent: &Sent| sent.orders } else { |sent: &Sent| sent.certificates };
        let mut sent = self.world.sent(self.client).subscribe();
        let before = count(&sent.borrow());
        tokio::select! {
            biased;
            _ = sent.wait_for(|sent| count(sent) > before) => None,
            outcome = self.send(want) => Some(outcome),
        }
    }

    /// Waits until some authorities know of a new committee and others do not, if that comes soon.
    async fn await_a_rotation(&self) {
        let until = Instant::now() + ROTATION_PATIENCE;
        let is_amid = || self.world.epochs().windows(2).any(|pair| pair[0] != pair[1]);
        let is_coming = || self.world.committees().len() as u64 <= self.world.plan.rotations;
        while !is_amid() && is_coming() && Instant::now() < until {
            sleep(Duration::from_millis(50)).await;
        }
    }

    /// The wallet is used for another payment, a small one, where there is money for it.
    async fn pay_something_else(&self) -> Result<(), Breach> {
        let asset = ASSETS.into_iter().find(|asset| self.world.purse(self.account(), *asset) > 0);
        let Some(asset) = asset else { return Ok(()) };
        let recipient = self.recipient();
        let small = Intent::Pay { recipient, asset, amount: Amount(1), memo: Memo::ZERO };
        Box::pin(self.bring_about(&Want::One(self.want(small)))).await
    }

    async fn send(&self, want: &Want) -> Result<(), WalletError> {
        let key = &self.world.owners[self.client].key;
        match want {
            Want::One(intent) => self.wallet().send(key, intent).await.map(drop),
            Want::Many(name, pages) => self.wallet().pay_many(key, *name, pages, |_| {}).await.map(drop),
        }
    }

    /// `fastpay resume`, killed half-way perhaps.
    async fn resume(&self, patience: Duration) -> Result<(), Breach> {
        match timeout(patience, self.wallet().resume(self.account())).await {
            Ok(Ok(resumed)) => {
                self.world.trace.note("resumed", format_args!("client {}: {}", self.client, resumed.len()));
                let is_well = resumed.iter().all(|one| matches!(one, Resumed::Settled(_)));
                require!(is_well, "an order of client {} became another one", self.client);
                Ok(())
            }
            Ok(Err(error)) => self.is_passing(error),
            Err(_) => Ok(()),
        }
    }

    /// Trying again is right, or a correct client with one copy of its wallet must not see this.
    fn is_passing(&self, error: WalletError) -> Result<(), Breach> {
        let is_passing =
            matches!(error.kind(), ErrorKind::Funds | ErrorKind::Unreachable | ErrorKind::Primary | ErrorKind::Timeout);
        require!(is_passing, "the wallet of client {} says: {error}", self.client);
        self.world.trace.note("tried", format_args!("client {}: {error}", self.client));
        Ok(())
    }

    fn entries(&self) -> Result<Vec<OrderEntry>, Breach> {
        self.wallet().folder().orders(self.account()).entries().map_err(|error| Breach(error.to_string()))
    }

    fn is_settled(&self, want: &Want) -> Result<bool, Breach> {
        let intent = match want {
            Want::One(intent) => intent,
            Want::Many(name, pages) => {
                let states = self.wallet().page_states(*name, self.account(), pages);
                let states = states.map_err(|error| Breach(error.to_string()))?;
                return Ok(states.iter().all(|page| page.is_some_and(|page| page.state == OrderState::Settled)));
            }
        };
        Ok(self.entries()?.iter().any(|entry| {
            let intended = intent.transfer(self.account(), entry.sequence);
            entry.state == OrderState::Settled && entry.transfer() == Some(&intended)
        }))
    }

    /// What the wallet notes as settled is settled, by what the authorities know.
    fn check_notes(&self) -> Result<(), Breach> {
        let entries = self.entries()?;
        let settled = entries.iter().filter(|entry| entry.state == OrderState::Settled);
        let epochs = self.world.epochs();
        settled
            .filter_map(|entry| entry.transfer())
            .try_for_each(|transfer| self.world.oracle().is_settled(transfer, &epochs))
    }

    /// Each transfer that was wanted is settled, and no other.
    fn has_all(&self) -> Result<(), Breach> {
        self.check_notes()?;
        let entries = self.entries()?;
        let settled = entries.iter().filter(|entry| entry.state == OrderState::Settled).count();
        let is_all = settled == entries.len() && settled as u64 == self.wanted.get();
        require!(
            is_all,
            "client {} wanted {} transfers, and {settled} of {} orders are settled",
            self.client,
            self.wanted.get(),
            entries.len()
        );
        self.world.check(|oracle| oracle.has_sent(self.account(), self.wanted.get()));
        Ok(())
    }
}
