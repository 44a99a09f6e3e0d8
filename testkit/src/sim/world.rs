//! All parts of a run: the chain, the authorities, the network, the clients, and their observers.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use alloy::primitives::address;
use fastpay_client::{AuthorityClient, ClientOptions, ShardClient};
use fastpay_client::{Names, Network};
use fastpay_core::{AccountId, Amount, Asset, AuthorityKeys, AuthorityName, Committees, Domain, Epoch};
use fastpay_node::authority::voter_status::VoterStatusWatch;
use fastpay_program::Clock;
use http_body_util::BodyExt;
use http_body_util::combinators::BoxBody;
use tokio::sync::{mpsc, oneshot, watch};
use tokio::task::JoinSet;
use tonic::body::Body;
use tonic::codegen::{BoxFuture, http};

use super::byzantine::Memory;
use super::chain::{Chain, Errands};
use super::checkpointing::Checkpointed;
use super::dice::Dice;
use super::link::Link;
use super::oracle::{Breach, Oracle};
use super::plan::{Plan, Role};
use super::trace::Trace;
use super::weather::Weather;
use crate::{TestAccount, TestCommittee};

/// The assets of a run.
pub const ASSETS: [Asset; 2] = [Asset::ETHER, Asset(address!("b19b36b1456E65E3A6D514D3F715f204BD59f431"))];
/// The clients' time limits, short so that a lost answer does not cost minutes of simulated time.
const CLIENT_OPTIONS: ClientOptions =
    ClientOptions { connect_timeout: Duration::from_secs(2), request_timeout: Duration::from_secs(5) };

/// Tasks of one process, which end with it.
pub type Tasks = Arc<Mutex<JoinSet<()>>>;

/// A function that answers a call.
pub type Serve =
    Arc<dyn Fn(http::Request<Body>) -> BoxFuture<http::Response<Body>, std::convert::Infallible> + Send + Sync>;

/// A shard's server while its process lives.
#[derive(Clone)]
pub struct Server {
    /// The service that answers.
    pub serve: Serve,
    /// The tasks of its process.
    pub tasks: Tasks,
}

impl Server {
    /// The whole answer to a call, or `None` if the process ends before.
    pub async fn answer(
        &self,
        call: http::Request<Body>,
    ) -> Option<http::Response<BoxBody<bytes::Bytes, std::convert::Infallible>>> {
        let (told, answer) = oneshot::channel();
        let serve = self.serve.clone();
        spawn(&self.tasks, async move {
            let Ok(response) = serve(call).await;
            let (parts, body) = response.into_parts();
            if let Ok(body) = body.collect().await {
                let _ = told.send(http::Response::from_parts(parts, BoxBody::new(body)));
            }
        });
        answer.await.ok()
    }

    /// Opens a stream, and forwards its answers while the process lives.
    pub async fn stream<F: Future<Output = ()> + Send + 'static>(
        &self,
        call: http::Request<Body>,
        forward: impl FnOnce(Body) -> F + Send + 'static,
    ) -> Option<http::response::Parts> {
        let (told, parts) = oneshot::channel();
        let serve = self.serve.clone();
        spawn(&self.tasks, async move {
            let Ok(response) = serve(call).await;
            let (parts, body) = response.into_parts();
            if told.send(parts).is_ok() {
                forward(body).await;
            }
        });
        parts.await.ok()
    }
}

/// Commands to an authority's keeper.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Word {
    /// A part of the process failed, so the process ends.
    Failed,
    /// Crash now and restart.
    Restart,
    /// Crash now and stay down until a restart is requested.
    Stop,
    /// Restart, unless the process is to stay down.
    Tick,
    /// Crash now, copy the disk, and restart.
    Copy,
    /// Crash now, and restart with the copy.
    BringBack,
}

/// The number of messages that a correct client's wallet has sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Sent {
    /// Orders.
    pub orders: u64,
    /// Certificates.
    pub certificates: u64,
}

/// See the [module](self).
pub struct World {
    /// The plan of the run.
    pub plan: Plan,
    /// The deployment.
    pub domain: Domain,
    /// The source of randomness.
    pub dice: Dice,
    /// The trace of the run.
    pub trace: Trace,
    /// Owners of the correct clients' accounts, then of the adversaries'.
    pub owners: Vec<TestAccount>,
    /// The messages that Byzantine authorities and clients have seen.
    pub memory: Mutex<Memory>,
    /// The Primary.
    pub chain: Chain,
    weather: Mutex<Weather>,
    oracle: Mutex<Oracle>,
    /// The committee's checkpoints, from its first state on.
    pub checkpoints: Mutex<Vec<Checkpointed>>,
    servers: Mutex<BTreeMap<(usize, u32), Server>>,
    /// The committees known to each authority's newest process.
    voters: Mutex<BTreeMap<usize, VoterStatusWatch>>,
    /// The errors of the authorities' machines' clocks, in seconds. A process reads its machine's clock at its start.
    clock_errors_s: Mutex<BTreeMap<usize, i64>>,
    /// The message counts by correct client.
    sent: Vec<watch::Sender<Sent>>,
    /// The amount that each correct client may spend: its deposits, and payments from other correct clients.
    purses: Mutex<BTreeMap<(AccountId, Asset), u128>>,
    keepers: Vec<mpsc::UnboundedSender<Word>>,
    /// The authorities that are honest at some time and misbehave now; and all whose keys of some epoch are misused.
    lying: Mutex<BTreeSet<usize>>,
    turned: Mutex<BTreeSet<usize>>,
    is_calm: AtomicBool,
    unfinished: AtomicUsize,
}

/// The command queues of the authorities' keepers.
pub type Words = Vec<mpsc::UnboundedReceiver<Word>>;

impl World {
    /// Creates the world of a plan.
    #[must_use]
    pub fn new(plan: Plan, is_shown: bool) -> (Arc<Self>, Words, Errands) {
        let (chain, errands) = Chain::new(&plan);
        let first = &chain.terms()[0];
        let committee = first.committee.clone();
        let turned: BTreeSet<_> = first.faulty.keys().copied().chain(plan.honest()..plan.authorities()).collect();
        let lying = turned.iter().copied().filter(|authority| *authority < plan.honest()).collect();
        let owners: Vec<_> = (0..(plan.clients + plan.adversaries) as u64).map(TestAccount::numbered).collect();
        let (keepers, words) = (0..plan.authorities()).map(|_| mpsc::unbounded_channel()).unzip();
        let world = Self {
            domain: committee.domain,
            dice: Dice::new(plan.seed),
            trace: Trace::new(is_shown),
            memory: Mutex::default(),
            weather: Mutex::new(Weather::new(&plan)),
            oracle: Mutex::new(Oracle::new(&plan, first)),
            checkpoints: Mutex::new(vec![Checkpointed::first(&committee)]),
            chain,
            servers: Mutex::default(),
            voters: Mutex::default(),
            clock_errors_s: Mutex::default(),
            sent: (0..plan.clients).map(|_| watch::Sender::default()).collect(),
            purses: Mutex::default(),
            keepers,
            lying: Mutex::new(lying),
            turned: Mutex::new(turned),
            is_calm: AtomicBool::new(false),
            unfinished: AtomicUsize::new(plan.clients),
            owners,
            plan,
        };
        (Arc::new(world), words, errands)
    }

    /// The network.
    pub fn weather(&self) -> MutexGuard<'_, Weather> {
        lock(&self.weather)
    }

    /// The oracle, for reading. Checks go through [`World::check`].
    pub fn oracle(&self) -> MutexGuard<'_, Oracle> {
        lock(&self.oracle)
    }

    /// Runs a check of the oracle.
    pub fn check(&self, what: impl FnOnce(&mut Oracle) -> Result<(), Breach>) {
        let checked = what(&mut lock(&self.oracle));
        if let Err(breach) = checked {
            self.trace.violation(breach);
        }
    }

    /// Whether faults have ended, except for Byzantine parts.
    #[must_use]
    pub fn is_calm(&self) -> bool {
        self.is_calm.load(Ordering::Relaxed)
    }

    /// Ends all random faults.
    pub fn calm_down(&self) {
        self.trace.note("calm", "");
        self.is_calm.store(true, Ordering::Relaxed);
        self.weather().calm_down();
    }

    /// Sends a command to an authority's keeper.
    pub fn record(&self, authority: usize, word: Word) {
        let _ = self.keepers[authority].send(word);
    }

    /// How an authority misbehaves now; `None` if it is honest.
    #[must_use]
    pub fn role_of(&self, authority: usize) -> Option<Role> {
        match authority.checked_sub(self.plan.honest()) {
            Some(at) => Some(self.plan.byzantine[at]),
            None => lock(&self.lying).contains(&authority).then(|| self.plan.byzantine[0]),
        }
    }

    /// Whether somebody signs with the keys that an authority has in an epoch whatever is of use.
    #[must_use]
    pub fn misuses(&self, authority: usize, epoch: usize) -> bool {
        let term = self.chain.terms().get(epoch);
        authority >= self.plan.honest()
            || lock(&self.turned).contains(&authority) && term.is_some_and(|term| term.faulty.contains_key(&authority))
    }

    /// Makes an authority misbehave from now on, or be honest again, with the folder that it had.
    pub fn turn(&self, authority: usize, lies: bool) {
        self.trace.note(if lies { "turned" } else { "honest again" }, format_args!("a{authority}"));
        if lies {
            lock(&self.turned).insert(authority);
            lock(&self.lying).insert(authority);
        } else {
            lock(&self.lying).remove(&authority);
        }
        self.record(authority, Word::Restart);
    }

    /// The server of a shard, if its process lives.
    #[must_use]
    pub fn server(&self, authority: usize, shard: u32) -> Option<Server> {
        lock(&self.servers).get(&(authority, shard)).cloned()
    }

    /// Sets or removes the server of a shard.
    pub fn listen(&self, authority: usize, shard: u32, server: Option<Server>) {
        let mut servers = lock(&self.servers);
        match server {
            Some(server) => drop(servers.insert((authority, shard), server)),
            None => drop(servers.remove(&(authority, shard))),
        }
    }

    /// Sets the committees that an authority's process follows.
    pub fn follows(&self, authority: usize, status: VoterStatusWatch) {
        lock(&self.voters).insert(authority, status);
    }

    /// The epoch of an honest authority.
    #[must_use]
    pub fn epoch_of(&self, authority: usize) -> u64 {
        lock(&self.voters).get(&authority).map_or(0, |status| status.borrow().epoch().0)
    }

    /// The epochs of all honest authorities.
    #[must_use]
    pub fn epochs(&self) -> Vec<u64> {
        (0..self.plan.honest()).map(|authority| self.epoch_of(authority)).collect()
    }

    /// Whether an authority votes for everything in an epoch, or in a later one.
    #[must_use]
    pub fn votes_in(&self, authority: usize, epoch: Epoch) -> bool {
        let voters = lock(&self.voters);
        voters.get(&authority).is_some_and(|status| {
            let status = status.borrow();
            status.epoch() >= epoch && status.votes_for_all()
        })
    }

    /// Sets the clock errors of the authorities' machines, in seconds, from their next start on.
    pub fn set_clocks(&self, errors_s: BTreeMap<usize, i64>) {
        *lock(&self.clock_errors_s) = errors_s;
    }

    /// The time by an authority's machine.
    #[must_use]
    pub fn clock_of(&self, authority: usize) -> Clock {
        let error_s = lock(&self.clock_errors_s).get(&authority).copied().unwrap_or_default();
        Clock::at(self.chain.now_ms(self).saturating_add_signed(error_s * 1_000))
    }

    /// The counter of messages that a correct client's wallet has sent.
    #[must_use]
    pub fn sent(&self, client: usize) -> &watch::Sender<Sent> {
        &self.sent[client]
    }

    /// Makes a deposit for an account, by its owner or by the first owner.
    pub fn deposit(&self, recipient: AccountId, asset: Asset, amount: u128) {
        self.trace.note("deposit", format_args!("{amount} to {}", self.name_of(&recipient)));
        let owner = self.owners.iter().position(|owner| owner.id() == recipient).unwrap_or_default();
        self.chain.deposit(owner, recipient, asset, Amount(amount));
        self.earn(recipient, asset, amount);
    }

    /// The committees so far, with their members' keys.
    #[must_use]
    pub fn committees(&self) -> Vec<TestCommittee> {
        self.chain.installed().iter().map(|term| term.committee.clone()).collect()
    }

    /// The first `count` committees, as authorities and clients know them.
    #[must_use]
    pub fn known_committees(&self, count: usize) -> Committees {
        let all = self.committees();
        let mut known = Committees::new(all[0].committee.clone()).expect("the first is of epoch 0");
        all[1..count].iter().for_each(|next| known.install(next.committee.clone()).expect("epochs follow each other"));
        known
    }

    /// The keys of an authority's node for all epochs in which it is a member, from the first on.
    #[must_use]
    pub fn keys(&self, authority: usize) -> Vec<Arc<AuthorityKeys>> {
        let own = self.chain.terms().iter().filter(|term| term.begins_honest(authority));
        own.filter_map(|term| term.keys_of(authority)).cloned().map(Arc::new).collect()
    }

    /// The keys of an authority in an epoch, if it is a member.
    #[must_use]
    pub fn keys_in(&self, authority: usize, epoch: Epoch) -> Option<&AuthorityKeys> {
        self.chain.terms().get(usize::try_from(epoch.0).ok()?)?.keys_of(authority)
    }

    /// The first keys of an authority.
    #[must_use]
    pub fn first_keys(&self, authority: usize) -> &AuthorityKeys {
        let keys = self.chain.terms().iter().find_map(|term| term.keys_of(authority));
        keys.expect("each authority is a member at some time")
    }

    /// The name under which clients have an authority's address.
    fn listed_name(&self, authority: usize) -> AuthorityName {
        self.first_keys(authority).public().name
    }

    /// A client's connections to all authorities.
    #[must_use]
    pub fn network(self: &Arc<Self>, client: usize) -> Network {
        let clients = (0..self.plan.authorities()).map(|authority| {
            let shards = (0..self.plan.shards[authority]).map(|shard| {
                let link = Link { world: self.clone(), client, authority, shard };
                ShardClient::carried(Arc::new(link), CLIENT_OPTIONS)
            });
            AuthorityClient::of(self.listed_name(authority), shards.collect()).expect("there is a shard")
        });
        let committees = self.known_committees(1);
        Network::of(self.domain, committees, clients.collect())
    }

    /// Updates a client to the newest committee.
    pub fn follow(&self, network: &Network) {
        let installed = self.chain.installed();
        let newest = &installed[installed.len() - 1];
        let name = |authority: usize| Some((self.listed_name(authority), newest.keys_of(authority)?.public().name));
        let names: Names = (0..self.plan.authorities()).filter_map(name).collect();
        network.adopt(self.known_committees(installed.len()), if installed.len() > 1 { names } else { Names::new() });
    }

    /// The amount that a client can certainly spend.
    #[must_use]
    pub fn purse(&self, account: AccountId, asset: Asset) -> u128 {
        lock(&self.purses).get(&(account, asset)).copied().unwrap_or_default()
    }

    /// Adds to that amount.
    pub fn earn(&self, account: AccountId, asset: Asset, amount: u128) {
        *lock(&self.purses).entry((account, asset)).or_default() += amount;
    }

    /// Subtracts from that amount.
    pub fn spend(&self, account: AccountId, asset: Asset, amount: u128) {
        let mut purses = lock(&self.purses);
        let purse = purses.entry((account, asset)).or_default();
        *purse = purse.checked_sub(amount).expect("a correct client spends what it has");
    }

    /// Notes that a correct client has made all its payments.
    pub fn finished(&self) {
        self.unfinished.fetch_sub(1, Ordering::Relaxed);
    }

    /// The number of correct clients that have not.
    #[must_use]
    pub fn unfinished(&self) -> usize {
        self.unfinished.load(Ordering::Relaxed)
    }

    /// An account's name in the trace.
    #[must_use]
    pub fn name_of(&self, account: &AccountId) -> String {
        match self.owners.iter().position(|owner| owner.id() == *account) {
            Some(number) if number < self.plan.clients => format!("client {number}"),
            Some(number) => format!("adversary {number}"),
            None => format!("{:02x}{:02x}", account.0[30], account.0[31]),
        }
    }
}

/// Starts a task of a process.
pub(super) fn spawn(tasks: &Tasks, task: impl Future<Output = ()> + Send + 'static) {
    let mut tasks = lock(tasks);
    while tasks.try_join_next().is_some() {}
    tasks.spawn(task);
}

/// A panic ends the run, so a poisoned lock is never used.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
