//! One run, from its plan to its summary.
//!
//! ```text
//!  storm: everything goes wrong ─► calm: the network heals, crashes end ─► all payments of correct clients settle
//!    ─► every certificate is confirmed everywhere ─► quiet: books are compared ─► disputes: numbers are unlocked
//!    ─► all crash once more, and know it all
//! ```

use std::cell::Cell;
use std::sync::{Arc, Once};
use std::time::Duration;

use fastpay_client::AuthorityClient;
use fastpay_core::{AccountId, Certificate, ShardLayout, Transfer};
use tokio::task::LocalSet;
use tokio::time::{Instant, sleep, timeout};

use super::chain::{self, Errands};
use super::oracle::{Breach, require};
use super::plan::Plan;
use super::process::Keeper;
use super::trace::Summary;
use super::world::{ASSETS, Word, Words, World};
use super::{
    adversary, byzantine, changing, checkpointing, deceiving, depositing, disputing, errands, lagging, ledger, owner,
    relapsing, relaying, straddling,
};

/// Once all is well a correct client needs less than this for what it has begun, and all it still has to do.
const CALM_PATIENCE: Duration = Duration::from_secs(240);
/// Relayers take this long at most for what they take at all.
const RELAYING_PATIENCE: Duration = Duration::from_secs(120);
/// After this long everything is paid that was certified.
const REDEEMED_PATIENCE: Duration = Duration::from_secs(900);
/// The last looks are taken for this long at most.
const QUIET_PATIENCE: Duration = Duration::from_secs(120);

thread_local! {
    static PANICKED: Cell<bool> = const { Cell::new(false) };
}

/// A task that panics would end unseen.
fn watch_for_panics() {
    static WATCH: Once = Once::new();
    WATCH.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            PANICKED.set(true);
            before(panic);
        }));
    });
    PANICKED.set(false);
}

/// Runs a plan. The same plan gives the same summary.
#[must_use]
pub fn run(plan: Plan, is_shown: bool) -> Summary {
    watch_for_panics();
    fastrand::seed(plan.seed);
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().start_paused(true).build();
    runtime.expect("a runtime without threads").block_on(LocalSet::new().run_until(async {
        let (world, words, errands) = World::new(plan, is_shown);
        tokio::select! {
            biased;
            () = world.trace.violated() => {}
            told = carry_out(&world, words, errands) => {
                if let Err(breach) = told {
                    world.trace.violation(breach);
                }
            }
        }
        if PANICKED.get() {
            world.trace.violation("a part panicked; see above");
        }
        world.trace.summary()
    }))
}

async fn carry_out(world: &Arc<World>, words: Words, requested: Errands) -> Result<(), Breach> {
    if world.plan.on_ledger {
        tokio::spawn(ledger::decide(world.clone()));
        tokio::spawn(ledger::live(world.clone(), requested.wishes));
    } else {
        tokio::spawn(chain::make_blocks(world.clone()));
        tokio::spawn(errands::run_errands(world.clone(), requested.council));
    }
    for (key, wanted) in (0..).zip(requested.wanted) {
        tokio::spawn(depositing::deposit_all(world.clone(), key, wanted));
    }
    for relayer in 0..world.plan.relayers {
        tokio::task::spawn_local(relaying::relay(world.clone(), relayer));
    }
    for (authority, words) in words.into_iter().enumerate() {
        match authority.checked_sub(world.plan.honest()).map(|at| world.plan.byzantine[at]) {
            None => drop(tokio::spawn(Keeper::new(world, authority, words).keep())),
            Some(role) => drop(byzantine::start(world, authority, role)),
        }
    }
    for client in 0..world.plan.clients {
        tokio::task::spawn_local(owner::live(world.clone(), client));
    }
    for number in world.plan.clients..world.owners.len() {
        tokio::spawn(adversary::live(world.clone(), number));
    }
    tokio::spawn(part(world.clone()));
    let changed = match world.plan.hand_over {
        Some(_) => Some(tokio::spawn(changing::change(world.clone()))),
        None => {
            tokio::spawn(rotate(world.clone()));
            None
        }
    };
    if world.plan.has_checkpoints {
        tokio::spawn(checkpointing::certify(world.clone()));
    }
    sleep(Duration::from_secs(world.plan.storm_s)).await;

    world.calm_down();
    let began = Instant::now();
    while world.unfinished() > 0 {
        let is_late = began.elapsed() > CALM_PATIENCE;
        require!(!is_late, "{} correct clients cannot finish their payments", world.unfinished());
        sleep(Duration::from_secs(1)).await;
    }
    if let Some(changed) = changed {
        changed.await.map_err(|error| Breach(format!("the committee changes no more: {error}")))??;
    }
    // Those that misbehave have had their last word by then.
    sleep(Duration::from_secs(30)).await;
    fund(world).await?;
    spread(world).await?;
    quiet(world).await?;
    redeem(world).await?;
    disputing::dispute(world).await?;
    straddling::straddle(world).await?;
    deceiving::deceive(world).await?;
    lagging::lag(world).await?;
    relapsing::relapse(world).await?;
    quiet(world).await?;
    for authority in 0..world.plan.honest() {
        world.record(authority, Word::Restart);
    }
    sleep(Duration::from_secs(5)).await;
    quiet(world).await
}

/// Clients and authorities lose sight of each other.
async fn part(world: Arc<World>) {
    let every = Duration::from_secs(world.plan.part_every_s);
    while !every.is_zero() && !world.is_calm() {
        sleep(world.dice.between(Duration::ZERO, every * 2)).await;
        let time = world.dice.mostly_short(Duration::from_secs(100));
        for client in world.dice.some_of(world.owners.len()) {
            for authority in world.dice.some_of(world.plan.authorities()) {
                world.trace.note("parted", format_args!("c{client}-a{authority} for {time:?}"));
                world.weather().part(client, authority, time);
            }
        }
    }
}

async fn rotate(world: Arc<World>) {
    for _ in 0..world.plan.rotations {
        sleep(world.dice.between(Duration::ZERO, Duration::from_secs(world.plan.storm_s / 2))).await;
        world.chain.rotate();
    }
}

/// Every deposit that was wanted is made, and once.
pub(super) async fn fund(world: &Arc<World>) -> Result<(), Breach> {
    let began = Instant::now();
    loop {
        let (made, wanted) = world.chain.deposits();
        if made == wanted {
            return Ok(());
        }
        let is_over = made > wanted || began.elapsed() > CALM_PATIENCE;
        require!(!is_over, "{made} deposits were made, and {wanted} were wanted");
        sleep(Duration::from_secs(1)).await;
    }
}

/// Anyone can bring every certificate to every honest authority, and none is refused for good.
pub(super) async fn spread(world: &Arc<World>) -> Result<(), Breach> {
    let network = world.network(usize::MAX);
    world.follow(&network);
    let certificates = world.oracle().certificates();
    for (authority, client) in network.authorities().iter().enumerate().take(world.plan.honest()) {
        for certificate in &certificates {
            let began = Instant::now();
            let account = certificate.order.transfer.sender();
            while let Err(error) = client.shard_of(&account).confirm(certificate).await {
                let is_final = !error.is_retryable() || began.elapsed() > QUIET_PATIENCE;
                let name = (world.name_of(&account), certificate.order.transfer.sequence());
                require!(!is_final, "authority {authority} refuses {} #{}: {error}", name.0, name.1);
                sleep(Duration::from_secs(1)).await;
            }
        }
    }
    Ok(())
}

/// Every redemption is paid, by a relayer or, where its fee is too small for them, by its owner alone; then the
/// contract holds what all accounts hold, less what it paid ahead of them.
async fn redeem(world: &Arc<World>) -> Result<(), Breach> {
    let open = || {
        let certificates = world.oracle().certificates().into_iter();
        let redemptions = certificates.filter(|one| matches!(one.order.transfer, Transfer::Redemption(_)));
        let is_open = |one: &Certificate| {
            let (sender, sequence) = (one.order.transfer.sender(), one.order.transfer.sequence());
            !world.oracle().is_paid(sender, sequence.0) && !world.chain.is_queued(sender, sequence)
        };
        redemptions.filter(is_open).collect::<Vec<_>>()
    };
    // Relayers have their turn, and must pay all of them where they work at any fee.
    let began = Instant::now();
    while !open().is_empty() && began.elapsed() < RELAYING_PATIENCE {
        sleep(Duration::from_secs(5)).await;
    }
    if !world.plan.relayed_at_a_loss {
        // Their owners bring the highest number first: the contract must keep a set of numbers.
        open().iter().rev().filter(|one| world.chain.takes(one.epoch)).for_each(|one| world.chain.redeem(one));
    }
    while !open().is_empty() {
        let is_late = began.elapsed() > REDEEMED_PATIENCE;
        require!(!is_late, "{} certified redemptions are not paid", open().len());
        sleep(Duration::from_secs(5)).await;
    }
    for asset in ASSETS {
        let oracle = world.oracle();
        // Queued redemptions left the accounts and are not paid yet.
        let held = world.chain.total_balance(asset) - world.chain.total_queued(asset);
        let owed = oracle.held(0, asset) - oracle.paid_ahead(0, asset);
        require!(held.to_string() == owed.to_string(), "the contract holds {held} for accounts that have {owed}");
    }
    world.trace.note("chain", world.chain.digest());
    Ok(())
}

/// Waits until all honest authorities are quiet, and compares what they know with the books, and with each other.
async fn quiet(world: &Arc<World>) -> Result<(), Breach> {
    let began = Instant::now();
    loop {
        let judged = judge(world).await;
        if judged.is_ok() || began.elapsed() > QUIET_PATIENCE {
            return judged;
        }
        sleep(Duration::from_secs(1)).await;
    }
}

async fn judge(world: &Arc<World>) -> Result<(), Breach> {
    let network = world.network(usize::MAX);
    let accounts = world.oracle().accounts();
    for (authority, client) in network.authorities().iter().enumerate().take(world.plan.honest()) {
        world.oracle().is_solvent(authority)?;
        for account in &accounts {
            compare(world, authority, client, *account).await?;
        }
        let mut listed = 0;
        for shard in client.shards() {
            let status = shard.status().await.map_err(|error| Breach(format!("authority {authority}: {error}")))?;
            require!(status.credits_in_flight == 0, "authority {authority} has credits in flight");
            listed += status.redemptions;
        }
        let executed = world.oracle().books(authority).redemptions();
        // After a rebase the lists begin anew.
        let is_listed = listed == executed || world.plan.has_checkpoints;
        require!(is_listed, "authority {authority} lists {listed} redemptions of {executed}");
    }
    Ok(())
}

/// Checks that an authority's answer about an account matches its own records and those of the first authority.
async fn compare(
    world: &Arc<World>,
    authority: usize,
    client: &AuthorityClient,
    account: AccountId,
) -> Result<(), Breach> {
    let asked = timeout(Duration::from_secs(10), client.shard_of(&account).account(account)).await;
    let state = asked.map_err(|_| Breach(format!("authority {authority} is silent")))?;
    let state = state.map_err(|error| Breach(format!("authority {authority} cannot be read: {error}")))?;
    let oracle = world.oracle();
    let (books, first, name) = (oracle.books(authority), oracle.books(0), world.name_of(&account));
    let layout = ShardLayout::new(world.plan.shards[authority].try_into().expect("an authority has shards"));
    let shard = layout.shard_of(&account);
    require!(
        state.next_sequence.0 == books.sent(account),
        "authority {authority}.{shard} says #{} is next for {name}",
        state.next_sequence
    );
    require!(books.sent(account) == first.sent(account), "authority {authority} and 0 differ in {name}'s orders");
    for asset in ASSETS {
        let (known, said) = (books.balance(account, asset), state.balance(asset));
        require!(
            said.to_string() == known.to_string(),
            "authority {authority}.{shard} says {name} has {said}, not {known}"
        );
        require!(known == first.balance(account, asset), "authority {authority} and 0 differ in {name}'s balance");
    }
    Ok(())
}
