//! Who uses the ledger: owners who fund accounts with the wallet's code, banks that pay each other, operators who rotate the
//! committee, and whoever hands redemptions over, again and again.

use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{
    AccountKey, Amount, AuthorityKeys, Certificate, ContractVote, CouncilStatement, Digest, PossessionProof,
    PrimaryAddress, Transfer, VoteSignature, sign_council_vote,
};
use fastpay_ledger_client::ClientError;
use fastpay_ledger_statement::{Action, Announcing, ClusterId, NextCommittee, Outcome, Rejection, Time};
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
    let key = owner_key(owner);
    Reserve::new(folder.instructions(key.account()), ledger.committee(world, usize::MAX), key)
}

/// What somebody does on the ledger.
async fn act(world: &Arc<World>, bank: u32, action: &Action, via: Option<ClusterId>) -> Result<Outcome, ClientError> {
    let ledger = world.chain.ledger().expect("the Primary is a ledger");
    let (key, committee) = (bank_key(bank), ledger.committee(world, usize::MAX));
    let shard = match action {
        Action::Open | Action::Transfer { .. } => committee.client().partition().of_reserve(&key.account()),
        _ => SETTLEMENT,
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
        let deadline = world.chain.now_ms(&world) / 1_000 + DEADLINE_S;
        for number in 0.. {
            match fulfil(&world, &wish, deadline).await {
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

async fn fulfil(world: &Arc<World>, wish: &Wish, deadline: u64) -> Result<(), ClientError> {
    match wish {
        Wish::Rotate(now, next) => rotate(world, (now, next), deadline).await,
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

/// Takes the next step towards the installation of a committee that is announced by a deadline.
async fn rotate(
    world: &Arc<World>,
    (now, next): (&TestCommittee, &TestCommittee),
    deadline: u64,
) -> Result<(), ClientError> {
    let (domain, epoch, guardian, checkpoint) =
        (now.domain, next.committee.epoch(), PrimaryAddress::ZERO, Digest::ZERO);
    let (committee, compromised_since) = (next.committee.clone(), epoch);
    let proposed = NextCommittee { committee, guardian, compromised_since, checkpoint, deadline };
    let id = proposed.id(&domain);
    let votes = |of: &TestCommittee, statement: &CouncilStatement<'_>| {
        let voters = of.keys.iter().take(of.committee.quorum());
        voters.map(|keys: &AuthorityKeys| sign_council_vote(keys, &domain, statement)).collect::<Vec<_>>()
    };
    let ledger = world.chain.ledger().expect("the Primary is a ledger");
    let reader = ledger.committee(world, usize::MAX);
    if reader.current_epoch(Time(0)).await?.epoch >= epoch {
        return Ok(());
    }
    let Some(announced) = reader.announcement(id, Time(0)).await? else {
        let votes = votes(now, &CouncilStatement::Announcement(&proposed.announcement()));
        let proofs = next.keys.iter().map(|keys| PossessionProof::new(keys, &domain).into()).collect();
        let announcing = Announcing { committee: COMMITTEE, next: proposed, proofs, votes };
        act(world, RELAYER, &Action::Announce(Box::new(announcing)), None).await?;
        return Err(ClientError::Rejected(Rejection::NotMatured));
    };
    let (committee, announcement) = (COMMITTEE, id);
    match announced.acceptance(id) {
        None => act(world, RELAYER, &Action::Mature { committee, announcement }, None).await?,
        Some(accepted) => {
            let votes = votes(next, &accepted);
            act(world, RELAYER, &Action::Install { committee, announcement, votes }, None).await?
        }
    };
    Err(ClientError::Rejected(Rejection::NotMatured))
}
