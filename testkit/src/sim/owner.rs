//! Correct clients: each makes its payments one after the other with the wallet's driver, goes on with the same
//! order whatever happens, and is stopped half-way now and then.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastpay_core::{
    AccountId, Amount, Asset, Certificate, Memo, Payment, PrimaryAddress, Redemption, SequenceNumber, Transfer,
    VerifiedCertificate, VerifiedOrder,
};
use fastpay_wallet::{CertificateSource, DriveError, DriveOptions, Driver, Network};
use tokio::time::{sleep, timeout};

use super::world::{ASSETS, World, lock};

/// What the wallet keeps of its own certificates.
#[derive(Default)]
struct Kept(Mutex<BTreeMap<SequenceNumber, Certificate>>);

/// The same certificates, as a source of one account.
struct Source(AccountId, Arc<Kept>);

impl CertificateSource for Source {
    fn certificate(&self, account: AccountId, sequence: SequenceNumber) -> Option<Certificate> {
        lock(&self.1.0).get(&sequence).filter(|_| account == self.0).cloned()
    }
}

/// A correct client at work.
struct Owner {
    world: Arc<World>,
    client: usize,
    network: Network,
    driver: Driver,
    kept: Arc<Kept>,
    next: u64,
}

/// Runs a correct client until it has made all its payments.
pub async fn live(world: Arc<World>, client: usize) {
    let network = world.network(client);
    let kept = Arc::new(Kept::default());
    let source = Source(world.owners[client].id(), kept.clone());
    let driver = Driver::new(network.clone(), Arc::new(source), DriveOptions::default());
    let mut owner = Owner { network, driver, kept, client, next: 0, world };
    for asset in ASSETS {
        let amount = 100 + owner.world.dice.below(1_000) as u128;
        owner.world.deposit(owner.account(), asset, amount);
    }
    for _ in 0..owner.world.plan.payments {
        owner.think().await;
        owner.pay().await;
    }
    owner.world.trace.note("finished", client);
    owner.world.finished();
}

impl Owner {
    fn account(&self) -> AccountId {
        self.world.owners[self.client].id()
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

    /// Makes a payment, and returns once it is settled.
    async fn pay(&mut self) {
        let (asset, amount, transfer) = self.choose();
        let order = self.world.owners[self.client].sign(&self.world.domain, transfer);
        self.world.oracle().signs(&order);
        self.world.spend(self.account(), asset, amount);
        let order = order.verify(&self.world.domain).expect("a correct client's order");
        self.world.trace.note("order", format_args!("client {} #{} moves {amount}", self.client, self.next));
        let certificate = self.patiently("certified", || self.certify(&order)).await;
        lock(&self.kept.0).insert(order.transfer().sequence(), certificate.certificate().clone());
        self.patiently("settled", || self.settle(&certificate)).await;
        self.next += 1;
        if let Transfer::Payment(payment) = order.transfer() {
            self.world.earn(payment.recipient, asset, amount);
        }
    }

    /// Something that it can afford.
    fn choose(&self) -> (Asset, u128, Transfer) {
        let dice = &self.world.dice;
        let (sender, sequence) = (self.account(), SequenceNumber(self.next));
        let richest = |asset: &&Asset| self.world.purse(sender, **asset);
        let asset =
            if dice.chance(500) { ASSETS.iter().max_by_key(richest) } else { ASSETS.iter().min_by_key(richest) };
        let asset = asset.filter(|asset| richest(asset) > 0).or_else(|| ASSETS.iter().max_by_key(richest));
        let asset = *asset.expect("there are assets");
        if richest(&&asset) < 10 {
            self.world.deposit(sender, asset, 50);
        }
        let purse = usize::try_from(richest(&&asset)).expect("purses are small");
        let amount = if dice.chance(300) { purse } else { 1 + dice.below(purse / 2) };
        let (amount, memo) = (amount as u128, Memo::ZERO);
        let moved = Amount(amount);
        let transfer = if dice.chance(150) {
            let (recipient, fee) = (PrimaryAddress::repeat_byte(0x0d), Amount(amount.min(dice.below(4) as u128)));
            Redemption { sender, recipient, asset, amount: moved, fee, sequence, memo }.into()
        } else {
            let recipient = self.recipient();
            Payment { sender, recipient, asset, amount: moved, sequence, memo }.into()
        };
        (asset, amount, transfer)
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

    async fn certify(&self, order: &VerifiedOrder) -> Result<VerifiedCertificate, DriveError> {
        let certificate = self.driver.certify(order).await?;
        if certificate.digest() != order.digest() {
            self.world.trace.violation("a correct client got the certificate of another order");
        }
        Ok(certificate)
    }

    async fn settle(&self, certificate: &VerifiedCertificate) -> Result<(), DriveError> {
        self.driver.settle(certificate).await.map(drop)
    }

    /// Tries again and again, also after it was stopped half-way.
    async fn patiently<T, F: Future<Output = Result<T, DriveError>>>(
        &self,
        what: &'static str,
        attempt: impl Fn() -> F,
    ) -> T {
        loop {
            let is_stopped = !self.world.is_calm() && self.world.dice.chance(150);
            let patience =
                if is_stopped { self.world.dice.mostly_short(Duration::from_secs(5)) } else { Duration::MAX };
            match timeout(patience, attempt()).await {
                Ok(Ok(done)) => {
                    self.world.trace.note(what, format_args!("client {} #{}", self.client, self.next));
                    return done;
                }
                Ok(Err(DriveError::Superseded { certificate })) => {
                    let number = certificate.transfer().sequence();
                    self.world.trace.violation(format_args!("client {} #{number} became another order", self.client));
                    std::future::pending().await
                }
                Ok(Err(error)) => {
                    self.world.trace.note("tried", format_args!("client {} #{}: {error}", self.client, self.next))
                }
                Err(_) => self.world.trace.note("stopped", format_args!("client {} #{}", self.client, self.next)),
            }
            self.world.follow(&self.network);
            sleep(self.world.dice.between(Duration::from_millis(10), Duration::from_secs(2))).await;
        }
    }
}
