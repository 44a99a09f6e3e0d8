//! The relayer's loop: reads the redemption logs, follows transactions under way, submits waiting redemptions.

use std::collections::{HashSet, VecDeque};
use std::hash::Hash;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fastpay_client::{AuthorityClient, ClientError, Endpoints, EndpointsError};
use fastpay_core::{Committees, Digest, Domain, Epoch, PrimaryAddress};
use fastpay_ethereum::{PrimaryError, SendError};
use fastpay_ledger_client::{OpenCommitteeError, ReserveError};
use fastpay_program::Clock;
use fastpay_telemetry::{Export, Service, TraceError, TraceSettings, Tracer};
use tokio::time::Instant;

use crate::config::Config;
use crate::ethereum::Ethereum;
use crate::metrics::{Metrics, Tick};
use crate::pending::RedemptionId;
use crate::primary::PrimarySide;
use crate::quote::{QuoteReader, Quotes};
use crate::redemption_logs::{OPTIONS, RedemptionLogs};
use crate::store::{State, Store, StoreError};
use crate::traces::Traces;
use crate::votes::Voters;

/// The maximum number of finished redemptions, and of skipped ones, kept in memory to recognise them in other
/// authorities' redemption logs.
const RECENT_MAX: usize = 100_000;

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
    /// The ledger's file cannot be used.
    #[error(transparent)]
    OpenLedger(#[from] OpenCommitteeError),
    /// The ledger does not answer, or not with what can be proven.
    #[error(transparent)]
    Ledger(#[from] fastpay_ledger_client::ClientError),
    /// An instruction to the ledger cannot be stored or continued.
    #[error(transparent)]
    Reserve(#[from] ReserveError),
    /// The exporter of traces cannot be started.
    #[error(transparent)]
    Traces(#[from] TraceError),
    /// No authority answered a run with `--once`.
    #[error("no authority answered; check the endpoints and try again")]
    NoAuthority,
}

/// A relayer with its state and connections.
#[derive(Debug)]
pub struct Relayer<P: PrimarySide = Ethereum> {
    pub(crate) config: Config<P::Settings>,
    pub(crate) clock: Clock,
    pub(crate) primary: P,
    pub(crate) domain: Domain,
    pub(crate) redemption_logs: RedemptionLogs,
    pub(crate) voters: Voters,
    store: Store,
    pub(crate) state: State,
    /// True while the state differs from the file.
    pub(crate) changed: bool,
    /// The committees of all epochs that have begun; `None` before the Primary has answered.
    pub(crate) committees: Option<Committees>,
    /// The newest epoch of the Primary, if it was asked since the newest pages of redemption logs were read.
    pub(crate) newest_epoch: Option<Epoch>,
    pub(crate) finished: Recent<RedemptionId>,
    /// Certificates that were left to others without verifying their signatures, to count each once. Anybody may have
    /// forged them, so they have no other effect.
    pub(crate) passed_by: Recent<Digest>,
    /// Certificates of ended epochs that were set aside, by epoch and order. Their numbers may have others.
    pub(crate) refused: Recent<(Epoch, Digest)>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) traces: Traces,
    /// Exports the traces until it is dropped.
    _export: Option<Export>,
    /// When members were last looked for.
    pub(crate) members_asked_at: Option<Instant>,
    pub(crate) quotes: Quotes,
}

impl<P: PrimarySide> Relayer<P> {
    /// A relayer with the state in the configured folder, of the deployment with this domain. `address` receives the
    /// fees.
    pub(crate) fn with(
        config: Config<P::Settings>,
        primary: P,
        (domain, address): (Domain, PrimaryAddress),
        authorities: Vec<AuthorityClient>,
        clock: Clock,
    ) -> Result<Self, RelayerError> {
        let (store, mut state) = Store::open(&config.data_dir, domain.chain_id(), domain.contract())?;
        state.items.iter_mut().for_each(|item| item.take_up(clock.now_ms()));
        let mut finished = Recent::default();
        for left in &state.left {
            finished.insert(left.item);
        }
        let changed = state.address.replace(address) != Some(address);
        let (tracer, export) = start_traces(config.traces.as_ref(), address)?;
        let traces = Traces::new(tracer, domain);
        let (items, bundles) = (state.items.len(), state.bundles.len());
        tracing::info!(%address, items, bundles, "relayer opened");
        Ok(Self {
            config,
            clock,
            primary,
            domain,
            voters: Voters::new(authorities.clone()),
            redemption_logs: RedemptionLogs::new(authorities),
            store,
            state,
            changed,
            committees: None,
            newest_epoch: None,
            finished,
            passed_by: Recent::default(),
            refused: Recent::default(),
            metrics: Arc::new(Metrics::new()),
            traces,
            _export: export,
            members_asked_at: None,
            quotes: Quotes::default(),
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
                P::end_round(self).await?;
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
            if P::begin_round(self).await {
                tick = self.take_feeds().await?;
            }
            self.save()?;
            P::submit(self, eager).await?;
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

    /// Writes the state to disk if it has changed.
    pub(crate) fn save(&mut self) -> Result<(), RelayerError> {
        if self.changed {
            self.store.save(&self.state)?;
            self.changed = false;
        }
        Ok(())
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

fn start_traces(
    settings: Option<&TraceSettings>,
    address: PrimaryAddress,
) -> Result<(Tracer, Option<Export>), TraceError> {
    let Some(settings) = settings else { return Ok((Tracer::off(), None)) };
    let service = Service { name: "fastpay-relayer", instance: Some(address.to_string()) };
    let (tracer, export) = Export::start(settings, service)?;
    tracing::info!(collector = %settings.endpoint.url(), ratio = settings.ratio.get(), "tracing redemptions");
    Ok((tracer, Some(export)))
}

/// Waits for failures that pass with time, or that the operator can repair from outside, such as an empty gas account.
pub(crate) fn wait_if_it_passes(error: RelayerError) -> Result<(), RelayerError> {
    let passes = match &error {
        RelayerError::Primary(error) | RelayerError::Send(SendError::Primary(error)) => {
            matches!(error, PrimaryError::InsufficientFunds | PrimaryError::Reverted(_)) || error.is_retryable()
        }
        RelayerError::Send(error) => error.is_retryable(),
        RelayerError::Ledger(error) | RelayerError::Reserve(ReserveError::Ledger(error)) => {
            matches!(error, fastpay_ledger_client::ClientError::NoAnswer { .. })
        }
        _ => false,
    };
    if !passes {
        return Err(error);
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
