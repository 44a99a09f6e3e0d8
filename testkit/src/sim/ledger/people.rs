//! Who uses the ledger: owners who fund accounts with the wallet's code, banks that pay each other, operators who rotate the
//! committee, and whoever hands redemptions over, again and again.

use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{
    AccountKey, Amount, Announcement, AuthorityKeys, Certificate, ContractVote, CouncilStatement, Digest,
    PrimaryAddress, Transfer, VoteSignature, sign_council_vote,
};
use fastpay_ledger_client::ClientError;
use fastpay_ledger_statement::{Action, ClusterId, Outcome, Rejection, Rotation};
use fastpay_wallet::Reserve;
use fastpay_wallet::folder::Folder;
use tokio::sync::mpsc;
use tokio::time::sleep;

use super::{COMMITTEE, COORDINATOR, SETTLEMENT, Wish, owner_key};
use crate::TestCommittee;
use crate::sim::chain::OWNERS_MAX;
use crate::sim::world::{ASSETS, World};

/// Banks that pay each other.
pub const BANKS: u32 = 3;
/// The bank that hands redemptions over.
const RELAYER: u32 = 2;
/// The time for which a signed announcement counts, in seconds.
const DEADLINE_S: u64 = 20 * 86_400;
/// A wish is tried so often.
const TRIES_MAX: u32 = 200;

/// The key of a bank's reserve.
pub fn bank_key(bank: u32) -> AccountKey {
    AccountKey::ed25519([u8::try_from(200 + bank).expect("few banks"); 32])
}

/// An owner's reserve, as a new process has it.
pub fn reserve(world: &Arc<World>, folder: &Folder, owner: u32) -> Reserve {
    let ledger = world.chain.ledger().expect("the Primary is a ledger");
    Reserve::new(folder, ledger.committee(world, usize::MAX), owner_key(owner))
}

/// What somebody does on the ledger.
async fn act(world: &Arc<World>, bank: u32, action: &Action, via: Option<ClusterId>) -> Result<Outcome, ClientError> {
    let ledger = world.chain.ledger().expect("the Primary is a ledger");
    let (key, committee) = (bank_key(bank), ledger.committee(world, usize::MAX));
    let shard = match action {
        Action::Redeem { .. } | Action::Rotate(_) => SETTLEMENT,
        _ => committee.client().partition().of_reserve(&key.account()),
    };
    committee.client().instruct(&key, shard, via, action).await
}

/// Banks pay each other, and operators do what is wished.
pub async fn live(world: Arc<World>, mut wishes: mpsc::UnboundedReceiver<Wish>) {
    for bank in 0..RELAYER {
        tokio::spawn(pay(world.clone(), bank));
    }
    tokio::spawn(redeem(world.clone()));
    while let Some(wish) = wishes.recv().await {
        for number in 0.. {
            match fulfil(&world, &wish).await {
                Ok(()) => break,
                Err(error) if number < TRIES_MAX => {
                    world.trace.note("wish tried", format_args!("{error}"));
                    sleep(world.dice.between(Duration::from_millis(10), Duration::from_secs(2))).await;
                }
                Err(error) => return world.trace.violation(format_args!("a wish fails for good: {error}")),
            }
        }
    }
}

async fn fulfil(world: &Arc<World>, wish: &Wish) -> Result<(), ClientError> {
    match wish {
        Wish::Rotate(now, next) => {
            let deadline = world.chain.now_ms(world) / 1_000 + DEADLINE_S;
            match act(world, RELAYER, &rotation(now, next, deadline), None).await {
                // The answer was lost the last time.
                Err(ClientError::Rejected(Rejection::WrongNextEpoch(epoch))) if epoch > next.committee.epoch() => {
                    Ok(())
                }
                done => done.map(drop),
            }
        }
        Wish::Redeem(certificate) => match act(world, RELAYER, &redemption(certificate), None).await {
            Err(ClientError::Rejected(Rejection::AlreadyRedeemed)) => Ok(()),
            done => done.map(drop),
        },
    }
}

/// Transfers between reserves, by the shard or through a coordinator.
async fn pay(world: Arc<World>, bank: u32) {
    let dice = &world.dice;
    loop {
        let to = match dice.chance(500) {
            true => bank_key(dice.below(BANKS as usize) as u32),
            false => owner_key(dice.below(OWNERS_MAX) as u32),
        };
        let (to, asset, amount) = (to.account(), *dice.pick(&ASSETS), Amount(1 + dice.below(50) as u128));
        let transfer = Action::Transfer { to, asset, amount };
        let via = dice.chance(500).then_some(COORDINATOR);
        match act(&world, bank, &transfer, via).await {
            Ok(_) => world.trace.note("transfer", amount),
            Err(ClientError::Rejected(Rejection::NotOpen)) => drop(act(&world, bank, &Action::Open, None).await),
            Err(_) => {}
        }
        sleep(dice.mostly_short(Duration::from_secs(20))).await;
    }
}

/// Hands certified redemptions over, whether or not they are paid.
async fn redeem(world: Arc<World>) {
    loop {
        sleep(world.dice.mostly_short(Duration::from_secs(20))).await;
        let certificates = world.oracle().certificates().into_iter();
        let is_redemption = |one: &Certificate| matches!(one.order.transfer, Transfer::Redemption(_));
        let certificates: Vec<_> = certificates.filter(is_redemption).collect();
        if certificates.is_empty() {
            continue;
        }
        let certificate = world.dice.pick(&certificates);
        let outcome = act(&world, RELAYER, &redemption(certificate), None).await;
        if let Ok(Outcome::Redeemed(index)) = outcome {
            world.trace.note("handed over", index);
        }
    }
}

fn redemption(certificate: &Certificate) -> Action {
    let Transfer::Redemption(redemption) = certificate.order.transfer.clone() else { panic!("it is a redemption") };
    let vote = |vote: &fastpay_core::Vote| match vote.signature {
        VoteSignature::Redemption { signature } => ContractVote { authority: vote.authority, signature },
        _ => panic!("it is a redemption's vote"),
    };
    let votes = certificate.votes.iter().map(vote).collect();
    Action::Redeem { committee: COMMITTEE, redemption, epoch: certificate.epoch, votes }
}

fn rotation(now: &TestCommittee, next: &TestCommittee, deadline: u64) -> Action {
    let (domain, none) = (now.domain, PrimaryAddress::ZERO);
    let (checkpoint, epoch) = (Digest::ZERO, next.committee.epoch());
    let announcement = Announcement {
        committee: next.committee.clone(),
        guardian: none,
        recovery: none,
        compromised_since: epoch,
        checkpoint,
        deadline,
    };
    let votes = |of: &TestCommittee, statement: &CouncilStatement<'_>| {
        let voters = of.keys.iter().take(of.committee.quorum());
        voters.map(|keys: &AuthorityKeys| sign_council_vote(keys, &domain, statement)).collect()
    };
    let announced = CouncilStatement::Announcement(&announcement);
    let announcing = votes(now, &announced);
    let accepted = CouncilStatement::Acceptance {
        epoch,
        announcement: domain.council_digest(&announced),
        block_hash: Digest::ZERO,
    };
    let accepting = votes(next, &accepted);
    let (committee, next) = (COMMITTEE, next.committee.clone());
    let compromised_since = epoch;
    let rotation = Rotation { committee, next, compromised_since, checkpoint, deadline, announcing, accepting };
    Action::Rotate(Box::new(rotation))
}
