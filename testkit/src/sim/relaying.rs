//! Relayers: the production relayer over the simulated network and chain, killed at any moment and restarted from its
//! state. They relay redemptions all the time; one more unlocks numbers during disputes.

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use crate::anvil::{CHAIN_ID, DEPLOYER_KEY, rich_key};
use alloy::primitives::U256;
use fastpay_ethereum::PrimaryConfig;
use fastpay_program::Clock;
use fastpay_relayer::{BelowCost, BundleConfig, Config, Fees, KeyConfig, Rate, Relayer, UnlockConfig};
use tokio::sync::Notify;
use tokio::time::{sleep, timeout};

use super::errands::sender_config;
use super::process::memory_folder;
use super::world::{ASSETS, World};

/// The value of the fees of a run, in wei per unit: two units cover the gas without faults.
const RATE: &str = "50000000000000";
/// The key that submits authorities' votes about numbers.
const UNLOCKING_KEY: u32 = DEPLOYER_KEY;
const WEI_PER_ETHER: u64 = 1_000_000_000_000_000_000;

/// Runs a relayer until the run ends.
pub async fn relay(world: Arc<World>, number: usize) {
    let folder = memory_folder();
    // A client number that differs from those of all owners.
    let network = world.network(world.owners.len() + number);
    loop {
        let config = config(&world, folder.path().to_owned());
        let key = rich_key(world.chain.relayer_key(number));
        let clock = clock(&world);
        let primary = world.chain.connect(&world);
        let relayer = Relayer::over(config, key, primary, network.authorities().to_vec(), clock);
        let mut relayer = match relayer {
            Ok(relayer) => relayer,
            Err(error) => return world.trace.violation(format_args!("relayer {number} cannot start: {error}")),
        };
        world.trace.note("relayer", format_args!("{number} starts"));
        let is_killed = !world.is_calm() && world.dice.chance(700);
        let life = if is_killed { world.dice.mostly_short(Duration::from_secs(60)) } else { Duration::MAX };
        match timeout(life, relayer.run(std::future::pending())).await {
            Ok(ended) => return world.trace.violation(format_args!("relayer {number} ended: {ended:?}")),
            Err(_) => world.trace.note("relayer", format_args!("{number} is killed")),
        }
        drop(relayer);
        sleep(world.dice.mostly_short(Duration::from_secs(20))).await;
    }
}

/// Runs a relayer that unlocks numbers of any account, until it is aborted. Its process restarts on request.
pub async fn unlock(world: Arc<World>, restart: Arc<Notify>) {
    let folder = memory_folder();
    let network = world.network(usize::MAX);
    loop {
        let unlock = UnlockConfig { daily_budget_wei: U256::from(WEI_PER_ETHER), void_others: true };
        let config = Config { unlock, ..config(&world, folder.path().to_owned()) };
        let (key, primary) = (rich_key(UNLOCKING_KEY), world.chain.connect(&world));
        let clock = Clock::at(world.chain.now_ms(&world));
        let mut relayer = match Relayer::over(config, key, primary, network.authorities().to_vec(), clock) {
            Ok(relayer) => relayer,
            Err(error) => return world.trace.violation(format_args!("a relayer cannot start: {error}")),
        };
        tokio::select! {
            biased;
            () = restart.notified() => world.trace.note("relayer", "starts again"),
            ended = relayer.run(std::future::pending()) => {
                return world.trace.violation(format_args!("a relayer ended: {ended:?}"));
            }
        }
    }
}

/// The relayer's clock, which after each start is wrong by hours, by days, or completely.
fn clock(world: &World) -> Clock {
    let hour_ms = 3_600_000;
    let now_ms = world.chain.now_ms(world);
    let wrong = [0, now_ms + hour_ms, now_ms + 24 * hour_ms, now_ms - 24 * hour_ms, 10 * now_ms];
    Clock::at(if world.dice.chance(500) { now_ms } else { *world.dice.pick(&wrong) })
}

fn config(world: &World, data_dir: PathBuf) -> Config {
    let rate = Rate::try_from(RATE.to_owned()).expect("it is a rate");
    let below_cost = if world.plan.relayed_at_a_loss { BelowCost::Pay } else { BelowCost::Leave };
    Config {
        // Authorities and nodes come with the connections.
        primary: PrimaryConfig::new(Vec::new(), CHAIN_ID, world.chain.contract()),
        endpoints: PathBuf::new(),
        data_dir,
        key: KeyConfig { file: PathBuf::new(), passphrase_file: None },
        sender: sender_config(),
        bundle: BundleConfig { wait_ms_max: 10_000, below_cost, ..BundleConfig::default() },
        // Another one does that.
        unlock: UnlockConfig::OFF,
        assets: ASSETS.into_iter().map(|asset| (asset, rate)).collect(),
        fees: Fees::default(),
        traces: None,
        poll_interval_ms: 2_000,
        metrics: None,
        http: None,
    }
}
