//! An older copy of the last honest authority's folder comes back right after a vote that only this authority gave, once all
//! else is done. Owners then ask it for another order of the same number.

use std::sync::Arc;
use std::time::Duration;

use fastpay_client::{ClientError, Network, ShardClient};
use fastpay_core::{AccountId, Amount, Asset, Certificate, TransferOrder, VerifiedCertificate};
use fastpay_rpc::Refusal;
use tokio::time::{Instant, sleep, timeout};

use super::oracle::{Breach, require};
use super::scenario::{fund, spread};
use super::world::{Word, World};
use crate::{TestAccount, payment};

/// So many owners do so at once.
const OWNERS: u64 = 4;
const FUNDS: u128 = 1_000;
const AMOUNT: u128 = 10;
const CALL: Duration = Duration::from_secs(5);
const LOOK: Duration = Duration::from_secs(1);
/// So long after a deposit is final everybody has followed it.
const FOLLOWED: Duration = Duration::from_secs(16);
/// So long a restored authority is asked until it knows from which number on it may vote.
const ASKED: Duration = Duration::from_secs(20);
/// A payment in a calm network takes less than this.
const PATIENCE: Duration = Duration::from_secs(120);

/// An owner of an order for its first number, and of two for the second one.
struct Owner {
    account: AccountId,
    first: TransferOrder,
    second: [TransferOrder; 2],
}

/// The owners' view of the authorities.
struct Scene {
    world: Arc<World>,
    network: Network,
    /// The authority whose folder is restored.
    restored: usize,
}

/// See the [module](self).
pub async fn relapse(world: &Arc<World>) -> Result<(), Breach> {
    if !world.plan.is_restored || world.plan.hand_over.is_some() {
        return Ok(());
    }
    let network = world.network(usize::MAX);
    world.follow(&network);
    Scene { world: world.clone(), network, restored: world.plan.honest() - 1 }.run().await
}

impl Scene {
    async fn run(self) -> Result<(), Breach> {
        let (world, restored) = (&self.world, self.restored);
        let owners: Vec<_> = (0..OWNERS).map(|number| Owner::new(world, number)).collect();
        fund(world).await?;
        sleep(FOLLOWED).await;
        let mut first = Vec::new();
        for (number, owner) in owners.iter().enumerate() {
            // One of the others has not even voted, if it can be done without: what it says of the account is too little. An
            // authority that was restored before does not vote now. It asks the others, and may vote for the second number.
            let behind = number % restored;
            let votes = self.ask(&owner.first).await;
            let voters = (0..restored + usize::from(votes)).filter(|one| !votes || *one != behind);
            let certificate = self.certify(&owner.first, voters).await?;
            for authority in (0..=restored).filter(|one| *one != behind) {
                self.show(authority, &certificate).await?;
            }
            first.push(certificate);
        }
        world.record(restored, Word::Copy);
        sleep(FOLLOWED).await;
        let mut voted = Vec::new();
        for owner in &owners {
            let vote = timeout(CALL, self.shard(restored, owner.account).order(&owner.second[0])).await;
            voted.push(matches!(vote, Ok(Ok(_))));
        }
        // At once, while nothing beside the folder says how long its journals are.
        world.record(restored, Word::BringBack);
        world.trace.note("relapse", format_args!("a{restored} voted: {voted:?}"));
        sleep(LOOK).await;
        for owner in &owners {
            self.ask(&owner.second[1]).await;
        }
        for (number, (owner, first)) in owners.iter().zip(&first).enumerate() {
            self.show(number % restored, first).await?;
            let second = self.certify(&owner.second[1], 0..restored).await?;
            self.show(0, &second).await?;
        }
        spread(world).await
    }

    fn shard(&self, authority: usize, account: AccountId) -> ShardClient {
        self.network.authorities()[authority].shard_of(&account).clone()
    }

    /// Asks the restored authority for its vote until it says whether it may give it, and returns that.
    async fn ask(&self, order: &TransferOrder) -> bool {
        let began = Instant::now();
        while began.elapsed() < ASKED {
            let answer = timeout(CALL, self.shard(self.restored, order.transfer.sender()).order(order)).await;
            self.world
                .trace
                .note("asked", format_args!("{:?}", answer.as_ref().map(|answer| answer.as_ref().map(drop))));
            match answer {
                Ok(Ok(_)) => return true,
                Ok(Err(ClientError::Refused(Refusal::CatchingUp(Some(_))))) => return false,
                _ => sleep(LOOK).await,
            }
        }
        false
    }

    /// A certificate with the votes of these authorities.
    async fn certify(&self, order: &TransferOrder, voters: impl Iterator<Item = usize>) -> Result<Certificate, Breach> {
        let terms = self.world.committees();
        let newest = &terms[terms.len() - 1];
        let verified = newest.verified(order);
        let mut votes = Vec::new();
        for authority in voters {
            let shard = self.shard(authority, order.transfer.sender());
            let vote = timeout(CALL, shard.order(order)).await;
            let vote = vote.map_err(|_| Breach(format!("authority {authority} is silent")))?;
            let (_, vote) = vote.map_err(|error| Breach(format!("authority {authority} does not vote: {error}")))?;
            votes.extend(vote.verify(&self.world.domain, &newest.committee, &verified).ok());
        }
        let certificate = Certificate::from_votes(&verified, &newest.committee, &votes);
        let certificate = certificate.map(VerifiedCertificate::into_certificate);
        certificate.ok_or_else(|| Breach("all honest authorities but one are no quorum".into()))
    }

    /// Shows an authority a certificate until it has executed it.
    async fn show(&self, authority: usize, certificate: &Certificate) -> Result<(), Breach> {
        let began = Instant::now();
        let shard = self.shard(authority, certificate.order.transfer.sender());
        while let Err(error) = shard.confirm(certificate).await {
            let is_late = began.elapsed() > PATIENCE;
            require!(!is_late, "authority {authority} refuses a certificate: {error}");
            sleep(LOOK).await;
        }
        Ok(())
    }
}

impl Owner {
    fn new(world: &World, number: u64) -> Self {
        let owner = TestAccount::ed25519(1_080 + number);
        world.chain.deposit(0, owner.id(), Asset::ETHER, Amount(FUNDS));
        let to = AccountId::from_ed25519(&[8; 32]);
        let sign = |amount, sequence| {
            let order = owner.sign(&world.domain, payment(owner.id(), to, amount, sequence));
            world.oracle().signs(&order);
            order
        };
        Self { account: owner.id(), first: sign(AMOUNT, 0), second: [sign(AMOUNT, 1), sign(AMOUNT + 1, 1)] }
    }
}
