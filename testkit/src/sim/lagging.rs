//! An authority that is needed and lacks certificates, once all else is done: the owners' client brings them. Without Byzantine
//! authorities, so many others are down that it is one of a quorum.

use std::sync::Arc;
use std::time::Duration;

use fastpay_client::{CertificateSource, CommitteeClient, NoCertificates, QuorumOptions};
use fastpay_core::{AccountId, Amount, Asset, VerifiedOrder};
use tokio::time::{Instant, sleep};

use super::dice::Dice;
use super::oracle::{Breach, require};
use super::scenario::{fund, spread};
use super::world::{Word, World};
use crate::{TestAccount, payment};

const FUNDS: u128 = 1_000;
const AMOUNT: u128 = 10;
/// So long after a deposit is final everybody has followed it.
const FOLLOWED: Duration = Duration::from_secs(16);
/// A payment takes less than this.
const PATIENCE: Duration = Duration::from_secs(120);
const LOOK: Duration = Duration::from_secs(1);

/// One owner pays another one twice, and then the other one pays. One authority learns of the first payment from the clients
/// alone.
pub async fn lag(world: &Arc<World>) -> Result<(), Breach> {
    let plan = &world.plan;
    if !plan.byzantine.is_empty() || plan.is_restored || plan.hand_over.is_some() {
        return Ok(());
    }
    let (payer, payee) = (TestAccount::ed25519(1_070), TestAccount::ed25519(1_071));
    world.chain.deposit(0, payer.id(), Asset::ETHER, Amount(FUNDS));
    fund(world).await?;
    sleep(FOLLOWED).await;
    let source: Arc<dyn CertificateSource> = Arc::new(NoCertificates);
    let client = CommitteeClient::new(world.network(usize::MAX), source, QuorumOptions::default());
    world.follow(client.network());
    let dice = Dice::new(plan.seed ^ 0x1a66_0000);
    let behind = dice.below(plan.honest());
    let certificate = certify(world, &client, &payer, payee.id(), 0).await?;
    for authority in (0..plan.honest()).filter(|one| *one != behind) {
        let peer = &client.network().authorities()[authority];
        let shown = peer.shard_of(&payer.id()).confirm(certificate.certificate()).await;
        require!(shown.is_ok(), "authority {authority} refuses a payment in a calm network: {shown:?}");
    }
    let spare = plan.honest() - client.network().committee().quorum();
    let others = (0..plan.honest()).filter(|one| *one != behind);
    let down: Vec<_> = others.take(spare).collect();
    down.iter().for_each(|authority| world.record(*authority, Word::Stop));
    world.trace.note("lags", format_args!("a{behind}, and {down:?} are down"));
    sleep(LOOK).await;
    certify(world, &client, &payee, payer.id(), 0).await?;
    certify(world, &client, &payer, payee.id(), 1).await?;
    down.iter().for_each(|authority| world.record(*authority, Word::Restart));
    sleep(FOLLOWED).await;
    spread(world).await
}

async fn certify(
    world: &World,
    client: &CommitteeClient,
    from: &TestAccount,
    to: AccountId,
    number: u64,
) -> Result<fastpay_core::VerifiedCertificate, Breach> {
    let order = from.sign(&world.domain, payment(from.id(), to, AMOUNT, number));
    world.oracle().signs(&order);
    let order: VerifiedOrder = order.verify(&world.domain).expect("the owner signs well");
    let began = Instant::now();
    loop {
        match client.certify(&order).await {
            Ok(certificate) => return Ok(certificate),
            Err(error) => {
                let is_late = began.elapsed() > PATIENCE;
                require!(!is_late, "a payment that needs an authority which lacks certificates fails: {error}");
                world.trace.note("tried", error);
            }
        }
        sleep(LOOK).await;
    }
}
