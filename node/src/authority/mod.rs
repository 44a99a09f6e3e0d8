//! One authority as a process: opens its data folder, starts the parts, and stops them in order.
//!
//! ```text
//!  deployment (contract, ledger or genesis) ─► data folder (locked) ─► shards recovered ─► is it all that was said?
//!     ─► shard threads ─► ports opened ─► follower or genesis ─► serving … ─► stop: ports, follower, shards
//! ```
//! If any part ends by itself, the process ends: an authority that limps is worse than one that is away.

pub mod announcements;
pub mod certification;
pub mod config;
pub mod deployment;
pub mod deposit_sink;
mod error;
pub mod follower;
pub mod funding;
pub mod handover;
pub mod http;
pub mod inconsistency;
pub mod index;
pub mod joining;
pub mod keys;
pub mod known_committees;
pub mod metrics;
pub mod network;
pub mod payouts;
pub mod peer_book;
pub mod peer_sync;
pub mod priority;
pub mod pruning;
pub mod rollback;
pub mod rotation;
pub mod shard;
pub mod storage;
pub mod stored_record;
pub mod tls;
pub mod voter_status;

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use fastpay_client::Endpoints;
use fastpay_core::{
    AuthorityKeys, AuthorityName, Domain, Epoch, Genesis, JournalPosition, Shard, ShardId, ShardLayout,
    TransactionIndex,
};
use fastpay_ethereum::Primary;
use fastpay_program::Clock;
use fastpay_telemetry::{Export, Service, TraceError, Tracer};
use tokio::net::TcpListener;
use tokio::sync::{OwnedMutexGuard, mpsc, watch};
use tokio::task::JoinSet;

pub use self::error::AuthorityError;

use self::announcements::Announcements;
use self::certification::member::Member;
use self::certification::{Archive, ArchivedReads, Lag, Store, Uploads};
use self::config::Config;
use self::deployment::{Deployment, DeploymentError, folder_identity};
use self::deposit_sink::DepositSink;
use self::follower::{Follower, Progress, read_chain_time};
use self::funding::{FundingSource, LedgerSource};
use self::handover::{Closings, Handover, HandoverTimes, JoinContext};
use self::http::{HttpContext, HttpLimits};
use self::index::{Index, Indexer};
use self::metrics::Metrics;
use self::network::{NetworkLimits, ShardContext};
use self::payouts::{Payer, Payouts};
use self::peer_book::{PeerBook, Spread, SpreadTimes};
use self::peer_sync::{Attesters, OwnShards, PeerSync};
use self::pruning::{ArchiveLock, Begins, Pruner, PrunerContext};
use self::rollback::{
    Age, CatchUp, HighWaterMark, Memory, PeersError, Question, RollbackProtection, StaleReason, VoteFloors,
};
use self::rotation::{Rotation, remembered, remembered_names};
use self::shard::{
    AddressBudgets, AppliedCredits, ChainTime, Command, HistoryReader, RecoveredShard, ShardError, ShardHandle,
    ShardLimits, ShardSettings,
};
use self::storage::{DataFolder, INDEX_FOLDER, PAYOUTS_FILE, PEERS_FILE, generation_folder};
use self::tls::Tls;
use self::voter_status::{Remembered, VoterStatus, VoterStatusWatch};

/// How long the high-water mark may lag behind the journals. A shorter interval would cost more syncs.
const HIGH_WATER_MARK_INTERVAL: Duration = Duration::from_secs(5);
/// How long requests in flight may take at shutdown.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(5);

/// The parts of the authority that all its servers share.
struct Parts {
    /// The folder for what refers to positions in the journals: it is left behind with them.
    beside_journals: PathBuf,
    domain: Domain,
    voter_status: VoterStatusWatch,
    layout: ShardLayout,
    metrics: Arc<Metrics>,
    index: Option<Index>,
    peers: PeerBook,
}

type ShardThread = (ShardId, ShardHandle, JoinHandle<Result<(), ShardError>>);

/// How an authority ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ended {
    /// Its operator stopped it.
    Stopped,
    /// It stopped in order to be rebased onto the newest checkpoint of its archive, and to be started again
    /// (`crate::operator::run`).
    ToBeRebased,
}

/// Runs an authority until `stop` turns true, or until its journals are to end.
///
/// # Errors
/// See [`AuthorityError`].
pub async fn run(
    config: Config,
    keys: Vec<AuthorityKeys>,
    mut stop: watch::Receiver<bool>,
) -> Result<Ended, AuthorityError> {
    let deployment = tokio::select! {
        deployment = deployment::load(&config) => deployment?,
        _ = stop.wait_for(|stop| *stop) => return Ok(Ended::Stopped),
    };
    let keys: Vec<_> = keys.into_iter().map(Arc::new).collect();
    let names: Vec<_> = keys.iter().map(|keys| keys.public().name).collect();
    // Check the keys before the folder: an error about keys is more helpful.
    let committees = deployment.committees()?;
    VoterStatus::of(committees.clone(), keys.clone(), &names.as_slice().into(), config.observer)?;
    let identity = folder_identity(&names, config.shards, &deployment.domain());
    let folder = Arc::new(DataFolder::open(&config.data, &identity)?);
    let voter_status = VoterStatus::of(committees, keys, &remembered(&folder)?, config.observer)?;
    let voter_status = voter_status.ahead(deployment.is_ahead());
    if let Some(recovery) = voter_status.unrecovered() {
        rotation::tell_unrecovered(&recovery);
    } else if let Some(epoch) = voter_status.awaited() {
        tracing::info!(%epoch, "this authority votes once it has followed the contract to the installation of this epoch");
    } else if voter_status.is_outsider() {
        tracing::info!("no committee lists this authority's keys yet: it follows the contract, and executes nothing");
    } else if voter_status.voter().is_none() && voter_status.joins().is_none() {
        tracing::warn!(
            epoch = %voter_status.epoch(),
            "this authority does not vote in the current epoch; it confirms, and answers what it is asked"
        );
    }
    let (tracer, export) = traces(&config, voter_status.public().name)?;
    let layout = ShardLayout::new(config.shards);
    let with_primary = deployment.genesis().is_none();
    let in_use = tokio::select! {
        in_use = used_before(&config, &deployment, &voter_status, &folder) => in_use?,
        _ = stop.wait_for(|stop| *stop) => return Ok(Ended::Stopped),
    };
    let limits = shard_limits(&config);
    let recovered = recover(&folder, layout, with_primary, limits).await?;
    if let Err(error) = check_credits(recovered.iter().map(RecoveredShard::shard)) {
        // A journal has lost its end, with the votes in it. The mark stays, however the credits are repaired.
        rollback::mark_as_cut(&folder)?;
        return Err(error);
    }
    let histories: Vec<HistoryReader> = recovered.iter().map(RecoveredShard::history).collect();
    let high_water_mark = Arc::new(HighWaterMark::of(&config.data, config.high_water_mark())?);
    let memory = high_water_mark.judge(&folder, &journal_ends(&histories), in_use)?;
    let joined = recovered.iter().map(|shard| shard.shard().ledger().tenure.joined()).min().flatten();
    let voter_status = settled(voter_status, &folder, joined)?;
    let protection = protection(&folder, &memory, &voter_status)?;
    let (protection, questions) = protection.map(|(protection, questions)| (Arc::new(protection), questions)).unzip();
    let voter_status = voter_status.with_rollback_protection(protection.clone());
    if let Some(epoch) = voter_status.joins().filter(|_| !voter_status.is_stale()) {
        tracing::info!(%epoch, "this authority votes in the current epoch once it has joined it");
    }
    let rotation = Arc::new(Rotation::new(folder.clone(), voter_status)?);
    let beside_journals = generation_folder(&config.data, folder.generation());
    let (index, indexer) = index(&config, &beside_journals, deployment.domain(), &histories)?.unzip();
    let (voter_status, remembered_names) = (rotation.subscribe(), remembered_names(&folder)?);
    let committees = voter_status.borrow().committees().clone();
    // A new pair of keys may be listed under its own name.
    let own_names: Vec<_> = remembered_names.iter().chain(&names).copied().collect();
    let endpoints = read_endpoints(&config, protection.is_some())?;
    if let (Some(protection), Some(questions)) = (protection, questions) {
        let of = (deployment.domain(), voter_status.clone());
        catch_up(endpoints.as_ref(), &remembered_names, of, protection, questions)?;
    }
    let parts = Parts {
        beside_journals,
        domain: deployment.domain(),
        peers: PeerBook::open(&config.data, (deployment.domain(), &committees), endpoints, &own_names),
        voter_status,
        layout,
        metrics: Arc::new(Metrics::traced(config.shards.get(), tracer)),
        index,
    };
    let addresses = shard::address_budgets(config.limits.address_journal_bytes_per_day);
    let applied = recovered.iter().map(|shard| shard.shard().ledger().synchronized).min().unwrap_or_default();
    let chain = with_primary.then(|| (read_chain_time(&config.data, applied), Clock::system()));
    let threads = start_shards(&parts, recovered, limits, &addresses, chain)?;
    let noting = tokio::spawn(note_journal_ends(high_water_mark.clone(), histories.clone()));
    let own = (folder.clone(), histories.clone());
    let outcome = serve(&config, &parts, deployment, rotation, &threads, own, stop).await;
    let ended = end_shards(threads).await;
    drop(export);
    noting.abort();
    drop(indexer);
    high_water_mark.note(&journal_ends(&histories));
    drop(folder);
    match outcome {
        // The supervisor sees only that a thread ended. The thread's own result has the cause.
        Err(AuthorityError::ShardPanicked(_)) => ended.and(outcome),
        _ => outcome.and_then(|how| ended.map(|()| how)),
    }
}

/// The bounds of a shard.
pub(crate) fn shard_limits(config: &Config) -> ShardLimits {
    ShardLimits {
        accounts_in_memory_max: config.accounts_in_memory_per_shard(),
        disk_reserve_bytes: config.limits.disk_reserve_bytes,
        account_journal_bytes_per_day: config.limits.account_journal_bytes_per_day,
        ..ShardLimits::default()
    }
}

/// The tracer, and the exporter if traces are configured. It exports until it is dropped.
fn traces(config: &Config, name: AuthorityName) -> Result<(Tracer, Option<Export>), TraceError> {
    let Some(settings) = &config.traces else { return Ok((Tracer::off(), None)) };
    let service = Service { name: "fastpay-node", instance: Some(name.to_string()) };
    let (tracer, export) = Export::start(settings, service)?;
    tracing::info!(collector = %settings.endpoint.url(), ratio = settings.ratio.get(), "tracing payments");
    Ok((tracer, Some(export)))
}

/// Recovers all shards of a data folder, side by side.
pub(crate) async fn recover(
    folder: &DataFolder,
    layout: ShardLayout,
    with_primary: bool,
    limits: ShardLimits,
) -> Result<Vec<RecoveredShard>, AuthorityError> {
    let mut work = Vec::new();
    let applied = AppliedCredits::new(layout);
    for id in layout.shards() {
        let folders = folder.shard(id.0).expect("the data folder was opened with this number of shards");
        let applied = applied.clone();
        let recover = move || shard::recover(&folders, id, layout, with_primary, &limits, &applied);
        work.push((id, tokio::task::spawn_blocking(recover)));
    }
    let mut recovered = Vec::new();
    for (id, task) in work {
        let shard = task.await.map_err(|_| AuthorityError::ShardPanicked(id))?;
        let shard = shard.map_err(|error| AuthorityError::Shard { shard: id, error })?;
        let journal = shard.journal_recovery();
        tracing::info!(shard = %id, replayed = shard.replayed, journal_end = %journal.end, "recovered");
        if journal.bytes_cut > 0 {
            tracing::warn!(
                shard = %id, bytes = journal.bytes_cut,
                "a write torn by a crash was cut off; none of it was ever answered"
            );
        }
        let base = shard.shard().ledger().base.as_ref().map_or(0, |base| base.generation);
        if base != folder.generation() {
            return Err(AuthorityError::NoBase { shard: id, generation: folder.generation() });
        }
        recovered.push(shard);
    }
    Ok(recovered)
}

/// Checks that no journal has lost credits between the shards of one authority. A shard sends or acknowledges a credit
/// only after it is on disk, so for each pair of shards acknowledged ≤ applied ≤ issued. If applied > issued, the
/// sender would use the lost numbers again. If acknowledged > applied, the credits between the two would never be sent
/// again. Either would silently lose money.
///
/// # Errors
/// [`AuthorityError::TornCopy`], [`AuthorityError::LostCredits`].
pub fn check_credits<'a>(shards: impl Iterator<Item = &'a Shard> + Clone) -> Result<(), AuthorityError> {
    for to in shards.clone() {
        for from in shards.clone() {
            let outbox = from.ledger().outboxes.get(&to.id());
            let (issued, acknowledged) = outbox.map_or((0, 0), |outbox| (outbox.issued, outbox.acknowledged()));
            let applied = to.ledger().inbox(from.id());
            let (from, to) = (from.id(), to.id());
            if applied > issued {
                return Err(AuthorityError::TornCopy { from, to, issued, applied });
            }
            if acknowledged > applied {
                return Err(AuthorityError::LostCredits { from, to, acknowledged, applied });
            }
        }
    }
    Ok(())
}

fn journal_ends(histories: &[HistoryReader]) -> Vec<JournalPosition> {
    histories.iter().map(HistoryReader::end).collect()
}

/// Why a new folder may lack votes that its authority gave with an earlier folder. `None` if nothing can be missing.
async fn used_before(
    config: &Config,
    deployment: &Deployment,
    voter_status: &VoterStatus,
    folder: &DataFolder,
) -> Result<Option<StaleReason>, AuthorityError> {
    let (epoch, names) = (voter_status.epoch(), remembered_names(folder)?);
    let is_first_epoch = epoch == voter_status.committees().counting_since();
    let is_new = is_first_epoch || voter_status.joins().is_some() || voter_status.is_outsider();
    match rollback::age(folder)? {
        // New keys do not help a folder that is taken for full after the first epoch that counts: the authority may
        // have voted before with earlier keys and another folder. A recovery ends the votes before it. One that joins
        // takes over what was voted for before. Nor do new keys help a member under other keys.
        Age::First if is_new && voter_status.is_member_only_as(&names) => return Ok(None),
        Age::Judged => return Ok(None),
        Age::First | Age::New => {}
    }
    Ok(rollback::in_use(deployment, epoch, config.endpoints.as_deref(), &names).await?)
}

/// The voter status by what the folder and its shards remember, once the folder is judged. Takes over a folder of an
/// earlier release.
fn settled(
    voter_status: VoterStatus,
    folder: &DataFolder,
    joined: Option<Epoch>,
) -> Result<VoterStatus, AuthorityError> {
    if folder.fullness()?.is_none() {
        let known = Remembered { joined, ..remembered(folder)? };
        let taken_up = known_committees::taken_up(folder.path());
        // Where they do not list its keys, it was no member.
        let before = taken_up.and_then(|committees| voter_status.among(committees, &known).ok());
        rotation::take_over(folder, before.as_ref())?;
    }
    let known = Remembered { joined, ..remembered(folder)? };
    Ok(voter_status.among(voter_status.committees().clone(), &known)?.ahead(voter_status.is_ahead()))
}

/// The rollback protection, if the data folder may be older than the last one in use, and the authority has joined no epoch
/// since.
fn protection(
    folder: &DataFolder,
    memory: &Memory,
    voter_status: &VoterStatus,
) -> Result<Option<(RollbackProtection, mpsc::Receiver<Question>)>, AuthorityError> {
    let Memory::Older { since, why, .. } = memory else { return Ok(None) };
    if voter_status.full_since().is_some() {
        return Ok(None);
    }
    tracing::warn!(
        since,
        why,
        "this data folder may be older than what this authority has voted for; it votes for an account only above what the other authorities know of"
    );
    Ok(Some(RollbackProtection::new(VoteFloors::open(folder.path()).map_err(AuthorityError::VoteFloors)?)))
}

/// Starts asking the other authorities for the rollback protection, if their endpoints are configured. This one's folder
/// was made for `names`, and has voted under them.
fn catch_up(
    endpoints: Option<&Endpoints>,
    names: &[AuthorityName],
    (domain, voter_status): (Domain, VoterStatusWatch),
    protection: Arc<RollbackProtection>,
    questions: mpsc::Receiver<Question>,
) -> Result<(), AuthorityError> {
    let Some(endpoints) = endpoints else {
        tracing::error!(
            "this authority votes for nothing: configure `endpoints`, the file that says where the others are, so that they can be asked what it may have voted for"
        );
        return Ok(());
    };
    let catch_up = CatchUp::new(protection, questions, endpoints, names, domain, voter_status)?;
    tokio::spawn(catch_up.run());
    Ok(())
}

/// The endpoints file, if one is configured. One that cannot be read is no reason not to serve, but for an older copy of a
/// data folder, or with an archive.
fn read_endpoints(config: &Config, is_older: bool) -> Result<Option<Endpoints>, AuthorityError> {
    let Some(path) = &config.endpoints else {
        tracing::warn!(
            "after an absence this authority waits for wallets to bring it up to date: configure `endpoints`, the file that says where the others are"
        );
        return Ok(None);
    };
    match Endpoints::read(path) {
        Ok(endpoints) => Ok(Some(endpoints)),
        Err(error) if is_older => Err(PeersError::from(error).into()),
        Err(error) if config.archive.is_some() => Err(AuthorityError::ArchivePeers(error)),
        Err(error) => {
            tracing::error!(
                %error,
                "the other authorities cannot be asked for what this one missed; correct the file and start again"
            );
            Ok(None)
        }
    }
}

/// The part that states what this authority knows of an epoch that has ended, and keeps what the others state.
fn handover(
    parts: &Parts,
    shards: Arc<Vec<(ShardHandle, HistoryReader)>>,
    closings: Closings,
    joins: JoinContext,
) -> Handover {
    let of = (parts.domain, parts.voter_status.clone());
    let with = (HandoverTimes::default(), parts.metrics.handover.clone());
    Handover::new(of, shards, closings, &parts.peers, with, joins)
}

/// The parts that make checkpoints with the other authorities, and end the journals, if an archive is configured.
fn archiving(
    config: &Config,
    parts: &Parts,
    own: OwnShards,
    (folder, begins): (Arc<DataFolder>, Begins),
    progress: watch::Receiver<Progress>,
) -> Option<(Member, Pruner)> {
    let settings = config.archive.clone().filter(|_| config.endpoints.is_some())?;
    let (lock, voter_status) = (ArchiveLock::default(), parts.voter_status.clone());
    let (behind, is_behind) = watch::channel(false);
    let context = PrunerContext {
        config,
        folder,
        begins,
        domain: parts.domain,
        voter_status: voter_status.clone(),
        progress,
        is_behind,
        handover: parts.metrics.handover.clone(),
        peers: &parts.peers,
        metrics: parts.metrics.pruning.clone(),
        lock: lock.clone(),
    };
    let pruner = Pruner::new(context, &settings);
    let (peers, metrics) = (parts.peers.clone(), parts.metrics.certification.clone());
    let lag = Lag::new(begins.checkpoint.map_or(0, |(number, _)| number), behind);
    let shared = (metrics, lag, lock);
    let member = Member::new(config.clone(), settings, parts.domain, voter_status, own, peers, shared);
    Some((member, pruner))
}

/// The index and its thread, unless switched off.
fn index(
    config: &Config,
    beside_journals: &Path,
    domain: Domain,
    histories: &[HistoryReader],
) -> Result<Option<(Index, Indexer)>, AuthorityError> {
    if !config.index {
        return Ok(None);
    }
    let started = Index::start(beside_journals.join(INDEX_FOLDER), domain, histories.to_vec());
    started.map(Some).map_err(AuthorityError::Index)
}

/// Keeps the high-water mark close behind the journals.
async fn note_journal_ends(high_water_mark: Arc<HighWaterMark>, histories: Vec<HistoryReader>) {
    loop {
        tokio::time::sleep(HIGH_WATER_MARK_INTERVAL).await;
        let (high_water_mark, ends) = (high_water_mark.clone(), journal_ends(&histories));
        let _ = tokio::task::spawn_blocking(move || high_water_mark.note(&ends)).await;
    }
}

fn start_shards(
    parts: &Parts,
    recovered: Vec<RecoveredShard>,
    limits: ShardLimits,
    addresses: &AddressBudgets,
    chain: Option<(ChainTime, Clock)>,
) -> Result<Vec<ShardThread>, AuthorityError> {
    let queues: Vec<_> = parts.metrics.shards.iter().map(|m| ShardHandle::new(&limits, m.clone())).collect();
    let handles: BTreeMap<ShardId, ShardHandle> =
        parts.layout.shards().zip(&queues).map(|(id, (handle, _))| (id, handle.clone())).collect();
    let mut threads = Vec::new();
    for ((id, shard), (handle, queue)) in parts.layout.shards().zip(recovered).zip(queues) {
        let settings = ShardSettings {
            domain: parts.domain,
            voter_status: parts.voter_status.clone(),
            limits,
            addresses: addresses.clone(),
            chain,
        };
        let mut siblings = handles.clone();
        siblings.remove(&id);
        let thread = shard::start(settings, shard, queue, handle.clone(), siblings)
            .map_err(|error| AuthorityError::Shard { shard: id, error })?;
        threads.push((id, handle, thread));
    }
    Ok(threads)
}

/// Serves until it is stopped, or until a part ends by itself.
async fn serve(
    config: &Config,
    parts: &Parts,
    deployment: Deployment,
    rotation: Arc<Rotation>,
    threads: &[ShardThread],
    (folder, histories): (Arc<DataFolder>, Vec<HistoryReader>),
    mut stop: watch::Receiver<bool>,
) -> Result<Ended, AuthorityError> {
    // Stops all parts at once, whatever the cause.
    let (end, ended) = watch::channel(false);
    let (progress, progress_seen) = watch::channel(Progress::CatchingUp);
    let mut servers: JoinSet<Result<(), String>> = JoinSet::new();

    let tls = config.tls.as_ref().map(Tls::read).transpose()?;
    if let Some(tls) = &tls {
        parts.metrics.authority.observe_certificate(tls.ends_at()?);
    }
    let settings = config.archive.as_ref();
    let store = settings.and_then(|archive| archive.store.as_ref()).map(Store::open).transpose()?;
    let archive = settings.map(|settings| Archive::with_store(&settings.folder, store.clone()));
    let shards: Vec<_> = threads.iter().map(|(_, handle, _)| handle.clone()).zip(histories.iter().cloned()).collect();
    let shards = Arc::new(shards);
    let archived = ArchivedReads::new(archive.clone(), parts.domain);
    let closings = Closings::of(&config.data, config.limits.disk_reserve_bytes);
    for ((address, (id, handle, _)), history) in
        config.shard_addresses()?.into_iter().zip(threads).zip(histories.iter().cloned())
    {
        let listener = listen(address).await?;
        let context = ShardContext {
            domain: parts.domain,
            voter_status: parts.voter_status.clone(),
            shard: *id,
            handle: handle.clone(),
            history,
            shards: shards.clone(),
            closings: closings.clone(),
            peers: parts.peers.clone(),
            archive: archive.clone(),
            archived: archived.clone(),
            handover: parts.metrics.handover.clone(),
            metrics: parts.metrics.network.clone(),
        };
        let (tls, ended) = (tls.as_ref().map(Tls::shards), ended.clone());
        let limits = NetworkLimits { connections_max: config.limits.shard_connections_max, ..NetworkLimits::default() };
        servers.spawn(async move {
            network::serve(listener, context, limits, tls, ended).await.map_err(|e| with_causes(&e))
        });
    }
    let primary = match &deployment {
        Deployment::OnPrimary { config, .. } => Some(Primary::connect_lazily(config.clone())?),
        Deployment::OnLedger { .. } | Deployment::StandAlone(_) => None,
    };
    let payer = match &deployment {
        Deployment::OnLedger { ledger, .. } => Some(ledger.ledger().clone().into()),
        Deployment::OnPrimary { .. } | Deployment::StandAlone(_) => primary.clone().map(Payer::from),
    };
    let payouts = payer.map(|payer| {
        let file = parts.beside_journals.join(PAYOUTS_FILE);
        Payouts::new(payer, parts.voter_status.clone(), &shards, file, parts.metrics.clone())
    });
    let (payouts, waiting) = payouts.unzip();
    let announcements = match &deployment {
        Deployment::OnLedger { ledger, .. } => {
            Some(Announcements::on_ledger(ledger.ledger().clone(), parts.metrics.clone()))
        }
        _ => primary.clone().map(|primary| Announcements::new(primary, parts.metrics.clone())),
    };
    let sink = DepositSink::new(parts.domain, parts.layout, &shards);
    let (own_shards, handed_over) = (shards.clone(), shards.clone());
    let with_primary = deployment.genesis().is_none();
    let listener = listen(config.http).await?;
    let context = HttpContext {
        domain: parts.domain,
        with_primary,
        voter_status: parts.voter_status.clone(),
        shards,
        index: parts.index.clone(),
        peers: parts.peers.clone(),
        archived,
        progress: progress_seen.clone(),
        waiting,
        metrics: parts.metrics.clone(),
    };
    let limits = HttpLimits {
        connections_max: config.limits.http_connections_max,
        streams_max: config.limits.event_streams_max,
        ..HttpLimits::default()
    };
    let (tls, http_ended) = (tls.as_ref().map_or(Ok(None), Tls::http)?, ended.clone());
    servers.spawn(
        async move { http::serve(listener, context, limits, tls, http_ended).await.map_err(|e| with_causes(&e)) },
    );

    let joining = Arc::downgrade(&rotation);
    let mut followers = JoinSet::new();
    let source = match &deployment {
        Deployment::OnLedger { ledger, .. } => Some(LedgerSource::new(ledger).map_err(DeploymentError::from)?.into()),
        Deployment::OnPrimary { .. } | Deployment::StandAlone(_) => primary.map(FundingSource::from),
    };
    if let Deployment::StandAlone(genesis) = deployment {
        followers.spawn(apply_genesis(genesis, sink, progress));
    } else if let Some(source) = source {
        let cursor_file = crate::authority::follower::cursor_file(&config.data);
        let follower = Follower::new(source, sink, rotation, cursor_file, parts.metrics.follower.clone(), progress);
        followers.spawn(follower.run(ended.clone()));
    }
    if let Some(payouts) = payouts {
        followers.spawn(payouts.run(ended.clone()));
    }
    if let Some(announcements) = announcements {
        followers.spawn(announcements.run(ended.clone()));
    }
    let attesters = Attesters::new(&parts.peers, parts.domain, parts.voter_status.clone());
    let own = OwnShards::new(own_shards, parts.metrics.network.clone(), attesters);
    let joins = JoinContext { own: own.clone(), rotation: joining, archive: archive.clone() };
    let base = histories.first().and_then(HistoryReader::base);
    let checkpoint = base.map(|base| (base.number, base.checkpoint));
    let begins = Begins { generation: folder.generation(), checkpoint };
    let archiving = archiving(config, parts, own.clone(), (folder, begins), progress_seen);
    let (member, mut pruner) = archiving.unzip();
    let file = parts.beside_journals.join(PEERS_FILE);
    followers.spawn(PeerSync::new(&parts.peers, own, file, parts.metrics.peers.clone()).run(ended.clone()));
    let spread = Spread::new(parts.peers.clone(), parts.voter_status.clone(), SpreadTimes::default());
    followers.spawn(spread.run(ended.clone()));
    if let (Some(settings), Some(archive), Some(store)) = (settings, archive, store) {
        let metrics = parts.metrics.certification.clone();
        let uploads = Uploads::new(archive, store, parts.domain, &settings.times, metrics);
        let end = uploads.start(settings.idle, ended.clone()).map_err(AuthorityError::Checkpoints)?;
        servers.spawn(async {
            end.await.map_err(|_| "the thread that uploads the archive ended by a defect; see the log above".into())
        });
    }
    if with_primary {
        let end =
            handover(parts, handed_over, closings, joins).start(ended.clone()).map_err(AuthorityError::Handover)?;
        servers.spawn(async {
            end.await.map_err(|_| "the thread of the hand-over ended by a defect; see the log above".into())
        });
    }
    if let Some(member) = member {
        let end = member.start(ended).map_err(AuthorityError::Checkpoints)?;
        servers.spawn(async {
            end.await.map_err(|_| "the thread that makes checkpoints ended by a defect; see the log above".into())
        });
    }
    let authority = parts.voter_status.borrow().public().name;
    tracing::info!(%authority, shards = parts.layout.count(), listen = %config.listen, http = %config.http, "serving");

    // Until the part that makes them has ended.
    let mut no_checkpoint = None;
    let outcome = tokio::select! {
        _ = stop.wait_for(|stop| *stop) => Ok(Ended::Stopped),
        guard = until_due(&mut pruner) => {
            no_checkpoint = Some(guard);
            Ok(Ended::ToBeRebased)
        }
        Some(server) = servers.join_next() => Err(AuthorityError::Server(describe(server))),
        id = first_to_end(threads) => Err(AuthorityError::ShardPanicked(id)),
        error = defect(&mut followers) => Err(AuthorityError::Server(format!("a follower of the Primary: {error}"))),
    };
    tracing::info!("stopping");
    end.send_replace(true);
    let drained = tokio::time::timeout(SHUTDOWN_GRACE, async { while servers.join_next().await.is_some() {} });
    if drained.await.is_err() {
        tracing::warn!("closing the connections of clients that are still connected");
        tracing::warn!("clients were still connected, or a checkpoint was computed; leaving both");
    }
    servers.shutdown().await;
    followers.shutdown().await;
    drop(no_checkpoint);
    outcome
}

/// Returns once the journals are to end. No checkpoint is made while the returned guard lives.
async fn until_due(pruner: &mut Option<Pruner>) -> OwnedMutexGuard<()> {
    match pruner {
        Some(pruner) => pruner.until_due().await,
        None => std::future::pending().await,
    }
}

/// An error with its causes: only those contain the transport's own text.
fn with_causes(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}

fn describe(server: Result<Result<(), String>, tokio::task::JoinError>) -> String {
    match server {
        Ok(Ok(())) => "it ended unexpectedly".into(),
        Ok(Err(error)) => error,
        Err(error) => error.to_string(),
    }
}

/// Waits until a task panics. A task that returns, or stops with an alarm, does not end the process: payments go on.
async fn defect(tasks: &mut JoinSet<()>) -> tokio::task::JoinError {
    loop {
        match tasks.join_next().await {
            Some(Ok(())) => {}
            Some(Err(error)) => return error,
            None => std::future::pending().await,
        }
    }
}

/// Waits until a shard's thread is no longer running.
async fn first_to_end(threads: &[ShardThread]) -> ShardId {
    loop {
        if let Some((id, ..)) = threads.iter().find(|(_, _, thread)| thread.is_finished()) {
            return *id;
        }
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
}

/// Stops every shard and collects its result. Commands queued before are still served.
async fn end_shards(threads: Vec<ShardThread>) -> Result<(), AuthorityError> {
    let mut outcome = Ok(());
    for (id, handle, thread) in threads {
        let ended = tokio::task::spawn_blocking(move || {
            while let Err(std::sync::mpsc::TrySendError::Full(_)) = handle.try_send(Command::Stop) {
                std::thread::sleep(Duration::from_millis(10));
            }
            thread.join()
        });
        let result = match ended.await {
            Ok(Ok(Ok(()))) => Ok(()),
            Ok(Ok(Err(error))) => Err(AuthorityError::Shard { shard: id, error }),
            Ok(Err(_)) | Err(_) => Err(AuthorityError::ShardPanicked(id)),
        };
        outcome = outcome.and(result);
    }
    outcome
}

async fn apply_genesis(genesis: Genesis, sink: DepositSink, progress: watch::Sender<Progress>) {
    let deposits: Vec<_> = genesis.deposits().collect();
    let up_to = deposits.last().map_or(TransactionIndex(0), |deposit| deposit.index);
    if sink.apply(TransactionIndex(0), &deposits, up_to).await {
        progress.send_replace(Progress::AtHead);
    }
}

async fn listen(address: std::net::SocketAddr) -> Result<TcpListener, AuthorityError> {
    network::listen(address).await.map_err(|error| AuthorityError::Listen { address, error })
}
