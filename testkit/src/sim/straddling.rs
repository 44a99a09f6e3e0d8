//! Payments that are settled while the committee changes, once all else is done. Some authorities execute a payment
//! before the change. The client reaches the others while some of them are in the new epoch and some are not yet, so
//! that all together are a quorum and those of neither epoch are one. Chance comes from dice of its own.

use std::sync::Arc;
use std::time::Duration;

use fastpay_client::{CertificateSource, CommitteeClient, NoCertificates, QuorumOptions};
use fastpay_core::{AccountId, Amount, Asset, VerifiedCertificate, VerifiedOrder};
use tokio::time::{Instant, sleep};

use super::dice::Dice;
use super::oracle::{Breach, require};
use super::scenario::{fund, spread};
use super::world::{Word, World};
use crate::{TestAccount, payment};

/// What the payer has, and pays each time.
const FUNDS: u128 = 1_000;
const AMOUNT: u128 = 10;
/// So long after a deposit is final everybody has followed it.
const FOLLOWED: Duration = Duration::from_secs(16);
/// Authorities read new blocks this often.
const POLL: Duration = Duration::from_secs(1);
/// So often the client looks how far the change is.
const LOOK: Duration = Duration::from_millis(5);
/// A change of the committee, and a payment amid it, take less than this.
const PATIENCE: Duration = Duration::from_secs(240);

/// One payment over one change of the committee.
struct Round {
    world: Arc<World>,
    dice: Dice,
    client: CommitteeClient,
    payer: TestAccount,
    number: u64,
}

/// Changes the committee amid a payment as often as the plan says.
pub async fn straddle(world: &Arc<World>) -> Result<(), Breach> {
    if world.plan.straddles == 0 {
        return Ok(());
    }
    // The last change of the committee that was planned may not be installed yet.
    let began = Instant::now();
    while world.committees().len() as u64 <= world.plan.rotations {
        require!(began.elapsed() < PATIENCE, "a planned change of the committee is not installed");
        sleep(POLL).await;
    }
    let payer = TestAccount::ed25519(1_030);
    world.chain.deposit(0, payer.id(), Asset::ETHER, Amount(FUNDS));
    fund(world).await?;
    sleep(FOLLOWED).await;
    for number in 0..world.plan.straddles {
        let dice = Dice::new(world.plan.seed ^ (0x57ad_0000 + number));
        let source: Arc<dyn CertificateSource> = Arc::new(NoCertificates);
        let client = CommitteeClient::new(world.network(usize::MAX), source, QuorumOptions::default());
        world.follow(client.network());
        Round { world: world.clone(), dice, client, payer: payer.clone(), number }.run().await?;
    }
    spread(world).await
}

impl Round {
    async fn run(self) -> Result<(), Breach> {
        let old = self.world.committees().len() as u64 - 1;
        self.shift_followers().await;
        let certificate = self.certify().await?;
        let early = self.show_some(&certificate).await;
        self.world.chain.rotate();
        self.await_the_split(old, &early).await?;
        self.settle(&certificate).await?;
        // The next change begins when this one is over.
        let began = Instant::now();
        while self.world.epochs().contains(&old) {
            require!(began.elapsed() < PATIENCE, "an authority does not follow the committee of epoch {}", old + 1);
            sleep(POLL).await;
        }
        Ok(())
    }

    /// Authorities that start at different times read of the change at different times.
    async fn shift_followers(&self) {
        for authority in 0..self.world.plan.honest() {
            sleep(self.dice.between(Duration::ZERO, POLL)).await;
            self.world.record(authority, Word::Restart);
        }
        sleep(FOLLOWED).await;
    }

    async fn certify(&self) -> Result<VerifiedCertificate, Breach> {
        let recipient = AccountId::from_ed25519(&[7; 32]);
        let transfer = payment(self.payer.id(), recipient, AMOUNT, self.number);
        let order = self.payer.sign(&self.world.domain, transfer);
        self.world.oracle().signs(&order);
        let order: VerifiedOrder = order.verify(&self.world.domain).expect("the owner signs well");
        let certified = self.client.certify(&order).await;
        certified.map_err(|error| Breach(format!("a payment before the committee changes fails: {error}")))
    }

    /// The client is cut off after it has sent the certificate to some authorities, which are no quorum with those that
    /// misbehave.
    async fn show_some(&self, certificate: &VerifiedCertificate) -> Vec<usize> {
        let mut early = self.dice.some_of(self.world.plan.honest());
        early.truncate(self.dice.below(self.missing()));
        for authority in &early {
            let peer = &self.client.network().authorities()[*authority];
            let shown = peer.shard_of(&self.payer.id()).confirm(certificate.certificate()).await;
            self.world.trace.note("shown", format_args!("a{authority}: {shown:?}"));
        }
        early
    }

    /// So many honest authorities make a quorum with all that misbehave.
    fn missing(&self) -> usize {
        self.client.network().committee().quorum() - self.world.plan.byzantine.len()
    }

    /// Waits until no epoch has a quorum of those who are in it or executed the payment in it, or until all are in the
    /// new one.
    async fn await_the_split(&self, old: u64, early: &[usize]) -> Result<(), Breach> {
        let (missing, began) = (self.missing(), Instant::now());
        loop {
            let epochs = self.world.epochs();
            let new = epochs.iter().filter(|epoch| **epoch > old).count();
            let in_old = |(authority, epoch): &(usize, &u64)| **epoch == old || early.contains(authority);
            let of_old = epochs.iter().enumerate().filter(in_old).count();
            if new > 0 && new < missing && of_old < missing {
                self.world.trace.note("straddled", format_args!("#{} {epochs:?}, early {early:?}", self.number));
                return Ok(());
            }
            if new == epochs.len() {
                return Ok(());
            }
            require!(began.elapsed() < PATIENCE, "the committee of epoch {} is not installed", old + 1);
            sleep(LOOK).await;
        }
    }

    /// The client reaches all again, and follows the committee when told to.
    async fn settle(&self, certificate: &VerifiedCertificate) -> Result<(), Breach> {
        let began = Instant::now();
        loop {
            match self.client.settle(certificate).await {
                Ok(_) => return self.world.oracle().is_settled(certificate.transfer(), &self.world.epochs()),
                Err(error) => {
                    require!(began.elapsed() < PATIENCE, "a payment amid a change of the committee fails: {error}");
                    self.world.trace.note("tried", error);
                }
            }
            self.world.follow(self.client.network());
            sleep(self.dice.mostly_short(POLL)).await;
        }
    }
}
