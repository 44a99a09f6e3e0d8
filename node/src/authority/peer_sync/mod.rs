//! Peer synchronization: an authority that was away asks its peers which certificates they confirmed meanwhile, and
//! confirms those that it lacks. No wallet takes part.
//!
//! ```text
//!  contact with a peer ─► its log of names, from the cursor ─► which numbers are missing here?
//!      ─► their certificates, from the peer ─► own shards (verify, confirm, sync) ─► cursor on disk ─► next page
//! ```
//! Each peer has a task of its own, which reads the peer's logs to their end at the start, whenever contact is
//! restored, and before certificates of an epoch that ended count no longer by themselves. A peer that lies, stalls or
//! breaks the protocol delays its own task only, and is left alone for a while.
//!
//! Invariants: no claim of a peer is believed. Its certificates enter the shards as a client's do, with the same checks
//! and bounds. A cursor moves past a name only after the certificate is on disk here, or the account is in the list of
//! accounts to ask about later. Every wait has a deadline.

mod attesting;
mod claims;
mod cursors;
mod missing;

use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use fastpay_client::{AuthorityClient, ClientError, ClientOptions, ShardClient};
use fastpay_core::{AccountId, AuthorityName, JournalPosition, SequenceNumber};
use fastpay_program::{Clock, until_stopped};
use fastpay_rpc::PAGE_ENTRIES_MAX;
use tokio::sync::watch;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::{sleep, timeout};

use crate::authority::metrics::PeerMetrics;
use crate::authority::peer_book::{PeerBook, PeerReader};
pub use attesting::Attesters;
use claims::Claims;
use cursors::Cursors;
use missing::Heads;
pub use missing::OwnShards;

/// Bounds on the waits of peer synchronization.
#[derive(Clone, Copy, Debug)]
pub struct PeerSyncTimes {
    /// The maximum time for a call to a peer.
    pub call: Duration,
    /// The maximum time to fetch and confirm the certificates of one page. A peer that takes longer is left alone.
    pub page: Duration,
    /// The wait before a peer that failed is asked again. It doubles after each failure, up to `contact` if the peer
    /// cannot be reached, and up to `left` if it misbehaved.
    pub retry: Duration,
    /// See `retry`.
    pub left: Duration,
    /// The interval at which contact with a peer is checked, and deferred accounts are asked about again.
    pub contact: Duration,
    /// The pause after a page that had nothing new. It bounds the cost of reading to the peer.
    pub pace: Duration,
}

impl Default for PeerSyncTimes {
    fn default() -> Self {
        Self {
            call: Duration::from_secs(5),
            page: Duration::from_secs(60),
            retry: Duration::from_secs(1),
            left: Duration::from_secs(300),
            contact: Duration::from_secs(10),
            pace: Duration::from_millis(5),
        }
    }
}

/// Why a peer is left alone for now.
#[derive(Debug, thiserror::Error)]
pub(crate) enum PeerFailure {
    /// It does not answer, or breaks the protocol.
    #[error(transparent)]
    Client(#[from] ClientError),
    /// It returned a certificate that is not valid, or was not requested.
    #[error("it showed a certificate that is not valid: {0}")]
    Forged(String),
    /// It lists certificates of many accounts and returns none of them.
    #[error("it lists certificates that it does not show")]
    Unproven,
    /// It took too long for a page.
    #[error("it did not show the certificates of one page within {0:?}")]
    Slow(Duration),
    /// This authority cannot confirm now: it has not read Ethereum far enough, or it stops.
    #[error("this authority cannot confirm certificates now: {0}")]
    NotNow(String),
}

impl PeerFailure {
    /// Whether the peer is at fault.
    pub(crate) fn is_misbehaviour(&self) -> bool {
        match self {
            Self::NotNow(_) => false,
            Self::Client(error) => !error.is_retryable(),
            Self::Forged(_) | Self::Unproven | Self::Slow(_) => true,
        }
    }
}

/// Fetches from a peer what is missing here below these numbers of accounts, and confirms it.
///
/// # Errors
/// See [`PeerFailure`].
pub(crate) async fn bring(
    own: &OwnShards,
    peer: &AuthorityClient,
    heads: Vec<(AccountId, SequenceNumber)>,
) -> Result<u64, PeerFailure> {
    missing::bring(own, &Claims::default(), peer, heads).await.map(|(confirmed, _)| confirmed)
}

/// The peers of one authority, and how far their logs were read.
pub struct PeerSync {
    peers: PeerReader,
    own: OwnShards,
    cursors: Cursors,
    claims: Claims,
    metrics: Arc<PeerMetrics>,
    times: PeerSyncTimes,
    clock: Clock,
}

/// A peer whose logs a task reads, until it moves or leaves.
struct Followed {
    name: AuthorityName,
    task: AbortHandle,
}

impl Drop for Followed {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PeerSync {
    /// Synchronizes with the authorities of a book. The cursors are stored in `file`. Must be called within a tokio
    /// runtime.
    #[must_use]
    pub fn new(book: &PeerBook, own: OwnShards, file: PathBuf, metrics: Arc<PeerMetrics>) -> Self {
        let times = PeerSyncTimes::default();
        let options = ClientOptions { connect_timeout: times.call, request_timeout: times.call };
        Self::over(book.reader(options).once_per_address(), own, file, metrics, times)
    }

    /// Synchronizes with these authorities.
    #[must_use]
    pub fn over(
        peers: PeerReader,
        own: OwnShards,
        file: PathBuf,
        metrics: Arc<PeerMetrics>,
        times: PeerSyncTimes,
    ) -> Self {
        let cursors = Cursors::open(file, &own.journal_ends());
        Self { peers, own, cursors, claims: Claims::default(), metrics, times, clock: Clock::system() }
    }

    /// Runs until `stop` turns true.
    pub async fn run(self, stop: watch::Receiver<bool>) {
        let (mut peers, sync) = (self.peers.clone(), Arc::new(self));
        let (mut tasks, mut followed) = (JoinSet::new(), Vec::new());
        let follow = async {
            loop {
                peers.update(
                    &mut followed,
                    |known: &Followed| known.name,
                    |peer| Followed { name: peer.name(), task: tasks.spawn(sync.clone().follow(peer)) },
                );
                peers.changed().await;
                while tasks.try_join_next().is_some() {}
            }
        };
        until_stopped(stop, follow).await;
        tasks.shutdown().await;
    }

    /// Reads one peer's logs to their end: at the start, whenever contact is restored, and whenever another reading is due.
    async fn follow(self: Arc<Self>, peer: AuthorityClient) {
        let name = peer.name();
        let mut wait = self.times.retry;
        loop {
            let readings = self.readings();
            let wait_max = match self.read_logs(&peer).await {
                Ok(()) => {
                    wait = self.times.retry;
                    self.until_contact_is_lost(&peer, readings).await;
                    self.times.contact
                }
                Err(PeerFailure::NotNow(reason)) => {
                    tracing::debug!(peer = %name, reason, "no certificates can be confirmed now");
                    self.times.contact
                }
                Err(PeerFailure::Client(error)) if error.is_retryable() => {
                    tracing::debug!(peer = %name, %error, "a peer cannot be asked for certificates now");
                    self.times.contact
                }
                Err(failure) => {
                    self.metrics.left.inc();
                    tracing::warn!(peer = %name, %failure, "this peer is not asked for certificates for a while");
                    self.times.left
                }
            };
            wait = wait.min(wait_max);
            sleep(wait).await;
            wait = wait.saturating_mul(2);
        }
    }

    /// Fetches the certificates that the peer has confirmed since its logs were last read.
    async fn read_logs(&self, peer: &AuthorityClient) -> Result<(), PeerFailure> {
        self.ask_about_disputed(peer).await?;
        for (shard, client) in peer.shards().iter().enumerate() {
            self.read_log(peer, shard, client).await?;
        }
        self.ask_again(peer).await
    }

    async fn read_log(&self, peer: &AuthorityClient, shard: usize, client: &ShardClient) -> Result<(), PeerFailure> {
        let mut cursor = self.cursors.get(peer.name(), shard);
        loop {
            let Some(page) = client.confirmed(cursor).await? else {
                if cursor == JournalPosition::default() {
                    return Err(ClientError::Malformed("it does not know the beginning of its own log".into()).into());
                }
                // The peer's journal is another one than before: its folder was restored or made anew.
                cursor = JournalPosition::default();
                continue;
            };
            self.metrics.observe_behind(peer.name(), shard, page.end.0.saturating_sub(page.next.0));
            if page.next == cursor {
                self.cursors.flush();
                return Ok(());
            }
            let (brought, later) = self.bring(peer, missing::heads(&page.names)).await?;
            if !self.cursors.add_later(peer.name(), later) {
                return Err(PeerFailure::Unproven);
            }
            cursor = page.next;
            self.cursors.set(peer.name(), shard, cursor, self.own.journal_ends());
            if brought == 0 {
                sleep(self.times.pace).await;
            }
        }
    }

    /// Asks again about the accounts that had to wait: the contract had not decided about a number, or the peer did not
    /// return a certificate that it listed.
    async fn ask_again(&self, peer: &AuthorityClient) -> Result<(), PeerFailure> {
        let later = self.cursors.ask_later(peer.name());
        if !later.is_empty() {
            let (_, later) = self.bring(peer, later).await?;
            self.cursors.answered(peer.name(), later);
        }
        Ok(())
    }

    /// Asks for the certificates of disputed numbers: if nobody shows this authority one, it votes to void the number once
    /// the window has ended. So it does not depend on a relayer.
    async fn ask_about_disputed(&self, peer: &AuthorityClient) -> Result<(), PeerFailure> {
        let disputed = self.own.disputed().await?;
        for some in disputed.chunks(PAGE_ENTRIES_MAX as usize) {
            self.bring(peer, some.to_vec()).await?;
        }
        Ok(())
    }

    /// How many readings of the logs were due up to now.
    fn readings(&self) -> u64 {
        self.own.attesters().readings(self.clock.now_ms() / 1_000)
    }

    /// Returns when the peer no longer answers, or after so many readings another one is due.
    async fn until_contact_is_lost(&self, peer: &AuthorityClient, readings: u64) {
        while self.readings() == readings {
            sleep(self.times.contact).await;
            let Some(shard) = peer.shards().first() else { return };
            if shard.status().await.is_err() {
                return;
            }
            // One that fails keeps nothing from the other.
            let asked = [self.ask_about_disputed(peer).await, self.ask_again(peer).await];
            for failure in asked.into_iter().filter_map(Result::err) {
                tracing::debug!(peer = %peer.name(), %failure, "a peer cannot be asked again about some accounts");
            }
        }
    }

    /// Fetches and confirms the certificates below these heads that are missing here. Returns how many were confirmed, and
    /// the heads to ask about later.
    async fn bring(&self, peer: &AuthorityClient, heads: Heads) -> Result<(u64, Heads), PeerFailure> {
        let brought = missing::bring(&self.own, &self.claims, peer, heads);
        let (confirmed, later) =
            timeout(self.times.page, brought).await.map_err(|_| PeerFailure::Slow(self.times.page))??;
        self.metrics.certificates.inc_by(confirmed);
        Ok((confirmed, later))
    }
}
