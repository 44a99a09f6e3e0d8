//! Lies of Ethereum nodes about deposits, once all else is done, in runs whose nodes lie. Each lie is told at the moment at
//! which it would be believed: when a deposit becomes final. Nodes that lag are asked for a nonce right after a deposit.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{AccountId, Amount, Asset};
use tokio::time::{Instant, sleep};

use super::chain::{Deceit, LIAR, NODES};
use super::oracle::{Breach, require};
use super::scenario::fund;
use super::world::World;
use crate::primary::LogLie;

const AMOUNT: u128 = 10;
/// A lie lasts so long after the deposit is final: two readings, and less than those for which a follower waits.
const LASTS: Duration = Duration::from_secs(8);
/// After a lie, all authorities read again within this time.
const PATIENCE: Duration = Duration::from_secs(240);
const LOOK: Duration = Duration::from_secs(1);
/// The number of blocks by which some nodes lag, more than a block needs to become final.
const LAG: usize = 5;
/// Deposits in a row through nodes some of which lag.
const IN_A_ROW: usize = 3;

/// Has nodes lie about one deposit after the other, and lag behind some more.
pub async fn deceive(world: &Arc<World>) -> Result<(), Breach> {
    if !world.plan.nodes_lie {
        return Ok(());
    }
    // Whoever is connected to these alone could detect it without another node.
    let all = |lie| (0..NODES).map(|node| (node, Deceit { lies: vec![lie], lag: 0 })).collect();
    let liar = BTreeMap::from([(LIAR, Deceit { lies: vec![LogLie::Amount(0)], lag: 0 })]);
    for (what, deceit) in
        [("withheld", all(LogLie::AllWithheld)), ("foreign", all(LogLie::Foreign(0))), ("amount", liar)]
    {
        world.trace.note("deceit", what);
        world.chain.deceive(deceit);
        deposit(world);
        fund(world).await?;
        sleep(LASTS).await;
        world.chain.deceive(BTreeMap::new());
        follow(world).await?;
    }
    let lagging = (1..NODES).map(|node| (node, Deceit { lies: Vec::new(), lag: LAG })).collect();
    world.trace.note("deceit", "lag");
    world.chain.deceive(lagging);
    (0..IN_A_ROW).for_each(|_| deposit(world));
    fund(world).await?;
    world.chain.deceive(BTreeMap::new());
    follow(world).await
}

fn deposit(world: &World) {
    world.chain.deposit(0, AccountId::from_ed25519(&[9; 32]), Asset::ETHER, Amount(AMOUNT));
}

/// Waits until all have credited what is final.
async fn follow(world: &World) -> Result<(), Breach> {
    let began = Instant::now();
    loop {
        let late: BTreeSet<_> = (0..world.plan.honest()).filter(|one| world.oracle().lacks_deposits(*one)).collect();
        if late.is_empty() {
            return Ok(());
        }
        require!(began.elapsed() < PATIENCE, "authorities {late:?} lack a deposit about which nodes have lied");
        sleep(LOOK).await;
    }
}
