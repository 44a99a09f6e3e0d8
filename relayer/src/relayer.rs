//! The relayer's loop: reads the redemption logs, follows transactions under way, submits waiting redemptions.

use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::Hash;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fastpay_client::{AuthorityClient, ClientError, Endpoints, EndpointsError};
use fastpay_core::{Committees, Digest, Epoch, PrimaryAddress};
use fastpay_ethereum::{EpochReader, Primary, PrimaryError, PrivateKeySigner, SendError, Sender};
use fastpay_program::Clock;
use fastpay_telemetry::{Export, Service, TraceError, Tracer};
use tokio::time::Instant;

use crate::config::Config;
use crate::metrics::{Metrics, Tick};
use crate::node_agreement::NodeAgreement;
use crate::pending::RedemptionId;
use crate::quote::{QuoteReader, Quotes};
use crate::redemption_logs::{OPTIONS, RedemptionLogs};
use crate::store::{State, Store, StoreError};
use crate::traces::Traces;
use crate::unlock::Unlocking;
use crate::votes::Voters;

/// The maximum number of finished redemptions, and of skipped ones, kept in memory to recognise them in other
/// authorities' redemption logs.
const RECENT_MAX: usize = 100_000;

/// The interval between reads of the gas key's balance.
const BALANCE_INTERVAL: Duration = Duration::from_secs(60);

/// Why the relayer stops. It waits for all other failures to pass.
#[derive(Debug, thiserror::Error)]
pub enum RelayerError {
    /// The state cannot be stored, and nothing may be sent that is not stored.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The file of endpoints cannot be used.
    #[error(transparent)]
    Endpoints(#[from] EndpointsError),
    /// An address in it cannot be used.
    #[error(transparent)]
    Address(#[from] ClientError),
    /// The configuration of the Primary is wrong.
    #[error(transparent)]
    Primary(#[from] PrimaryError),
    /// A stored transaction cannot be continued.
    #[error(transparent)]
    Send(#[from] SendError),
    /// The exporter of traces cannot be started.
    #[error(transparent)]
    Traces(#[from] TraceError),
    /// No authority answered a run with `--once`.
    #[error("no authority answered; check the endpoints and try again")]
    NoAuthority,
}

/// A relayer with its state and connections.
#[derive(Debug)]
pub struct Relayer {
    pub(crate) config: Config,
    pub(crate) clock: Clock,
    pub(crate) sender: Sender,
    pub(crate) redemption_logs: RedemptionLogs,
    pub(crate) voters: Voters,
    pub(crate) agreement: NodeAgreement,
    store: Store,
    pub(crate) state: State,
    /// True while the state differs from the file.
    pub(crate) changed: bool,
    /// The committees of all epochs that began in a final block; `None` before the Primary has answered.
    pub(crate) committees: Option<Committees>,
    pub(crate) epochs: EpochReader,
    pub(crate) finished: Recent<RedemptionId>,
    /// Certificates that were left to others without verifying their signatures, to count each once. Anybody may have
    /// forged them, so they have no other effect.
    pub(crate) passed_by: Recent<Digest>,
    /// Certificates of ended epochs that were set aside, by epoch and order. Their numbers may have others.
    pub(crate) refused: Recent<(Epoch, Digest)>,
    /// When each transaction was last offered, by its nonce.
    pub(crate) offered_at: HashMap<u64, Instant>,
    /// When nodes began to refuse each transaction that no node knows, by its nonce.
    pub(crate) refused_since: HashMap<u64, Instant>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) traces: Traces,
    /// Exports the traces until it is dropped.
    _export: Option<Export>,
    balance_asked_at: Option<Instant>,
    /// When members were last looked for.
    pub(crate) members_asked_at: Option<Instant>,
    /// The gas price in wei, and when it was read.
    pub(crate) gas_price: Option<(u128, Instant)>,
    pub(crate) quotes: Quotes,
    pub(crate) unlocking: Unlocking,
}

impl Relayer {
    /// Opens the state and prepares all connections; nothing is sent yet. Must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// If the endpoints, the state or the Primary cannot be used. An Ethereum node that does not answer is no error:
    /// the relayer waits for it.
    pub async fn open(config: Config, key: PrivateKeySigner) -> Result<Self, RelayerError> {
        let authorities = authorities(&config.endpoints)?;
        let primary = match Primary::connect(config.primary.clone()).await {
            Err(error) if error.is_retryable() => {
                tracing::warn!(%error, "starting without the Primary");
                Primary::connect_lazily(config.primary.clone())?
            }
            primary => primary?,
        };
        Self::over(config, key, primary, authorities, Clock::system())
    }

    /// As [`Relayer::open`], with these connections and this clock.
    ///
    /// # Errors
    /// If the state cannot be used.
    pub fn over(
        config: Config,
        key: PrivateKeySigner,
        primary: Primary,
        authorities: Vec<AuthorityClient>,
        clock: Clock,
    ) -> Result<Self, RelayerError> {
        let (store, mut state) = Store::open(&config.data_dir, primary.chain_id(), primary.contract())?;
        state.items.iter_mut().for_each(|item| item.take_up(clock.now_ms()));
        let agreement = NodeAgreement::new(primary.nodes());
        let mut finished = Recent::default();
        for left in &state.left {
            finished.insert(left.item);
        }
        let (epochs, unlocking) = (EpochReader::new(primary.clone()), Unlocking::new(primary.clone()));
        let domain = primary.domain();
        let sender = Sender::new(primary, key, config.sender.clone());
        state.bundles.iter().for_each(|bundle| sender.adopt(&bundle.submission));
        state.free_nonces.iter().for_each(|nonce| sender.release(*nonce));
        let changed = state.address.replace(sender.address()) != Some(sender.address());
        let (tracer, export) = start_traces(&config, sender.address())?;
        let traces = Traces::new(tracer, domain);
        let (items, bundles) = (state.items.len(), state.bundles.len());
        tracing::info!(address = %sender.address(), items, bundles, "relayer opened");
        Ok(Self {
            config,
            clock,
            sender,
            voters: Voters::new(authorities.clone()),
            redemption_logs: RedemptionLogs::new(authorities),
            agreement,
            store,
            state,
            changed,
            committees: None,
            epochs,
            finished,
            passed_by: Recent::default(),
            refused: Recent::default(),
            offered_at: HashMap::new(),
            refused_since: HashMap::new(),
            metrics: Arc::new(Metrics::new()),
            traces,
            _export: export,
            balance_asked_at: None,
            members_asked_at: None,
            gas_price: None,
            quotes: Quotes::default(),
            unlocking,
        })
    }

    /// The stored state.
    #[must_use]
    pub fn state(&self) -> &State {
        &self.state
    }

    /// The metrics.
    #[must_use]
    pub fn metrics(&self) -> Arc<Metrics> {
        self.metrics.clone()
    }

    /// A reader of the fees that the relayer takes.
    #[must_use]
    pub fn quotes(&self) -> QuoteReader {
        self.quotes.subscribe()
    }

    /// The address that pays for gas and receives the fees.
    #[must_use]
    pub fn address(&self) -> PrimaryAddress {
        self.sender.address()
    }

    /// Runs until `stop` is ready, even in the middle of a round: work under way is on disk.
    ///
    /// # Errors
    /// See [`RelayerError`].
    pub async fn run(&mut self, stop: impl Future<Output = ()>) -> Result<(), RelayerError> {
        let mut stop = std::pin::pin!(stop);
        loop {
            let pause = self.poll_interval();
            let round = async {
                let tick = self.tick(false).await?;
                tracing::debug!(?tick, "round done");
                self.unlock_round().await?;
                self.refresh_balance().await;
                if let Some(committees) = &self.committees {
                    self.quotes.refresh(&self.config, &self.sender, committees.current().quorum()).await;
                }
                tokio::time::sleep(pause).await;
                Ok::<_, RelayerError>(())
            };
            tokio::select! {
                () = &mut stop => return Ok(()),
                result = round => result?,
            }
        }
    }

    /// Runs until everything that is in the redemption logs now is final, parked or in the contract's queue. It waits
    /// for a paused contract.
    ///
    /// # Errors
    /// See [`RelayerError`]; also if no authority answers.
    pub async fn run_once(&mut self) -> Result<Tick, RelayerError> {
        loop {
            let tick = self.tick(true).await?;
            if tick.answered == 0 {
                return Err(RelayerError::NoAuthority);
            }
            if tick.caught_up && tick.waiting == 0 && tick.under_way == 0 {
                return Ok(tick);
            }
            tokio::time::sleep(self.poll_interval()).await;
        }
    }

    /// One round. `eager` submits without waiting for company.
    ///
    /// # Errors
    /// See [`RelayerError`].
    pub async fn tick(&mut self, eager: bool) -> Result<Tick, RelayerError> {
        let mut tick = Tick { answered: 1, ..Tick::default() };
        if self.is_identified().await? {
            self.find_members().await?;
            let primary = self.sender.primary();
            self.agreement.refresh_heads(async |node| primary.head_time_by(node).await).await;
            tick = self.take_feeds().await?;
            self.save()?;
            self.follow_bundles().await?;
            self.submit_bundles(eager).await?;
            self.save()?;
        }
        let now = self.clock.now_ms();
        let open = self.state.items.iter().filter(|item| !self.state.is_under_way(&item.id()));
        let (parked, open): (Vec<_>, Vec<_>) = open.partition(|item| item.is_parked(now));
        let (queued, waiting): (Vec<_>, Vec<_>) = open.into_iter().partition(|item| item.queued.is_some());
        (tick.parked, tick.queued, tick.waiting) = (parked.len(), queued.len(), waiting.len());
        tick.under_way = self.state.bundles.len();
        self.metrics.observe(&tick, &self.state, now);
        self.metrics.observe_spans(self.traces.tracer());
        Ok(tick)
    }

    /// Reads the gas key's balance for the operator. If no node answers now, a later round reads it.
    async fn refresh_balance(&mut self) {
        if self.balance_asked_at.is_some_and(|at| at.elapsed() < BALANCE_INTERVAL) {
            return;
        }
        self.balance_asked_at = Some(Instant::now());
        match self.sender.primary().ether_balance(self.sender.address()).await {
            Ok(wei) => {
                if wei.is_zero() {
                    let key = self.sender.address();
                    tracing::warn!(%key, "the gas key has no ETH, so nothing can be submitted; send it some");
                }
                self.metrics.observe_balance(wei);
            }
            Err(error) => tracing::debug!(%error, "the gas key's balance is unknown"),
        }
    }

    /// Writes the state to disk if it has changed.
    pub(crate) fn save(&mut self) -> Result<(), RelayerError> {
        if self.changed {
            self.store.save(&self.state)?;
            self.changed = false;
        }
        Ok(())
    }

    /// Removes a redemption that is finally redeemed.
    pub(crate) fn finish(&mut self, id: RedemptionId) {
        if let Some(position) = self.state.position(&id) {
            self.state.items.remove(position);
            self.changed = true;
        }
        self.finished.insert(id);
    }

    fn poll_interval(&self) -> Duration {
        Duration::from_millis(self.config.poll_interval_ms.max(1))
    }
}

/// Clients of the authorities in a file of endpoints. It asks none of them yet. Must be called within a tokio runtime.
///
/// # Errors
/// If the file, or an address in it, cannot be used.
pub fn authorities(endpoints: &Path) -> Result<Vec<AuthorityClient>, RelayerError> {
    let endpoints = Endpoints::read(endpoints)?;
    let clients = endpoints.authorities.iter().map(|authority| AuthorityClient::new(authority, OPTIONS));
    Ok(clients.collect::<Result<_, _>>()?)
}

fn start_traces(config: &Config, address: PrimaryAddress) -> Result<(Tracer, Option<Export>), TraceError> {
    let Some(settings) = &config.traces else { return Ok((Tracer::off(), None)) };
    let service = Service { name: "fastpay-relayer", instance: Some(address.to_string()) };
    let (tracer, export) = Export::start(settings, service)?;
    tracing::info!(collector = %settings.endpoint.url(), ratio = settings.ratio.get(), "tracing redemptions");
    Ok((tracer, Some(export)))
}

/// Waits for failures that pass with time, or that the operator can repair from outside, such as an empty gas account.
pub(crate) fn wait_or_stop(error: PrimaryError) -> Result<(), RelayerError> {
    match error {
        PrimaryError::InsufficientFunds | PrimaryError::Reverted(_) => {}
        ref error if error.is_retryable() => {}
        error => return Err(error.into()),
    }
    tracing::warn!(%error, "waiting");
    Ok(())
}

/// The most recent of many items.
#[derive(Debug)]
pub(crate) struct Recent<T> {
    known: HashSet<T>,
    order: VecDeque<T>,
}

impl<T> Default for Recent<T> {
    fn default() -> Self {
        Self { known: HashSet::new(), order: VecDeque::new() }
    }
}

impl<T: Copy + Eq + Hash> Recent<T> {
    pub(crate) fn contains(&self, item: &T) -> bool {
        self.known.contains(item)
    }

    /// Adds an item; it may replace the oldest one. Returns false if it was there already.
    pub(crate) fn insert(&mut self, item: T) -> bool {
        if !self.known.insert(item) {
            return false;
        }
        self.order.push_back(item);
        if self.order.len() > RECENT_MAX
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_too_many_the_oldest_is_forgotten() {
        let mut recent = Recent::default();
        assert!((0..RECENT_MAX).all(|number| recent.insert(number)));
        assert!(!recent.insert(7));
        assert!(recent.insert(RECENT_MAX));
        assert_eq!((recent.contains(&0), recent.contains(&1), recent.order.len()), (false, true, RECENT_MAX));
    }
}
