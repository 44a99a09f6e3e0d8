//! States what this authority knows of an epoch that has ended, and keeps what the other members state: for those who
//! will join the next epoch.
//!
//! ```text
//!  next epoch taken up ─► every shard has closed the last one on disk ─► report ─► Closing, signed ─► on disk ─► served
//!                                     the peers' Closings ─► statement checked ─► entries checked ─► on disk
//! ```
//! A Closing says all that its member voted for, executed or kept in the epoch: from `Record::Closed` on, nothing is
//! added. So it is read from the journals after that. An authority that may have forgotten votes of the epoch signs none. A
//! member whose folder is not full joins with those of a quorum (`join`). The promises are in docs/PROTOCOL.md, "Hand-over".
//!
//! All of it runs on one thread with the lowest priority.

mod closings;
mod fetch;
mod join;
mod report;
mod wait;

use std::io::{self, Write};
use std::sync::Arc;
use std::time::Duration;

use fastpay_client::ClientOptions;
use fastpay_core::checkpoint::{Installations, InstalledCommittee};
use fastpay_core::{Authority, AuthorityKeys, Committee, Committees, Digest, Domain, Epoch, ShardLedger};
use tokio::sync::{oneshot, watch};
use tokio::time::{sleep, timeout};

pub use self::closings::Closings;
pub use self::fetch::HandoverTimes;
use self::fetch::{CLOSING_BYTES_MAX, Followed, Peer};
pub use self::join::JoinContext;
use self::join::Joiner;
pub use self::report::{Report, ReportError};
pub use self::wait::JoinWait;
use crate::authority::metrics::HandoverMetrics;
use crate::authority::network::{ReadError, ask};
use crate::authority::peer_book::{PeerBook, PeerReader};
use crate::authority::priority::run_apart;
use crate::authority::shard::{Command, HistoryReader, ShardHandle};
use crate::authority::voter_status::{VoterStatus, VoterStatusWatch};

/// Why nothing is stated, or kept, in a round.
#[derive(Debug, thiserror::Error)]
enum HandoverError {
    #[error(transparent)]
    Shard(#[from] ReadError),
    #[error(transparent)]
    Report(#[from] ReportError),
    #[error("cannot keep a Closing: {0}")]
    Disk(#[from] io::Error),
}

impl HandoverError {
    /// Whether it goes by itself soon.
    fn is_expected(&self) -> bool {
        matches!(self, Self::Shard(_) | Self::Report(ReportError::NotClosed(_)))
    }
}

/// See the [module](self).
pub struct Handover {
    domain: Domain,
    voter_status: VoterStatusWatch,
    shards: Arc<Vec<(ShardHandle, HistoryReader)>>,
    closings: Closings,
    peers: Vec<Peer>,
    news: PeerReader,
    times: HandoverTimes,
    metrics: Arc<HandoverMetrics>,
    joiner: Joiner,
    /// Counts the rounds.
    round: usize,
}

impl Handover {
    /// The hand-over with the authorities of a book. Must be called within a tokio runtime.
    #[must_use]
    pub fn new(
        (domain, voter_status): (Domain, VoterStatusWatch),
        shards: Arc<Vec<(ShardHandle, HistoryReader)>>,
        closings: Closings,
        book: &PeerBook,
        (times, metrics): (HandoverTimes, Arc<HandoverMetrics>),
        joins: JoinContext,
    ) -> Self {
        let options = ClientOptions { connect_timeout: times.call, request_timeout: times.call };
        let news = book.reader(options).once_per_address();
        let joiner = Joiner::new(shards.clone(), joins);
        Self { domain, voter_status, shards, closings, peers: Vec::new(), news, times, metrics, joiner, round: 0 }
    }

    /// Runs on a thread of its own until `stop` turns true. The receiver hears when the thread has ended.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(self, stop: watch::Receiver<bool>) -> io::Result<oneshot::Receiver<()>> {
        // Payments may wait for it.
        run_apart("hand-over", false, || self.run(stop))
    }

    async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let (stopped, mut wait, mut changed) = (stop.clone(), self.times.left, self.voter_status.clone());
        loop {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = async {
                    let pause = match self.round(&|| *stopped.borrow()).await {
                        Ok(()) => {
                            wait = self.times.left;
                            self.pause()
                        }
                        Err(error) if *stopped.borrow() || error.is_expected() => {
                            tracing::debug!(%error, "no Closing yet");
                            self.pause()
                        }
                        // To make one reads all journals.
                        Err(error) => {
                            let (epoch, pause) = (self.voter_status.borrow().epoch(), wait);
                            wait = wait.saturating_mul(2).min(self.times.left_max);
                            let wait_s = pause.as_secs();
                            tracing::error!(%epoch, %error, wait_s, "no Closing of the epoch before is made; trying again");
                            pause
                        }
                    };
                    // The others may wait for what this authority states of an epoch that has just ended.
                    if let Ok(Err(_)) = timeout(pause, changed.changed()).await {
                        sleep(pause).await;
                    }
                } => {}
            }
        }
    }

    fn pause(&self) -> Duration {
        let voter_status = self.voter_status.borrow();
        if voter_status.joins().is_some() && !voter_status.is_stale() { self.times.join } else { self.times.poll }
    }

    /// States what there is to state, and keeps what the peers do. Joins the current epoch if the folder is not full.
    async fn round(&mut self, is_stopped: &dyn Fn() -> bool) -> Result<(), HandoverError> {
        let voter_status = self.voter_status.borrow().clone();
        self.news.update(&mut self.peers, Peer::name, |client| Peer::new(client, self.times));
        let Some(committee) = ended(&voter_status) else { return Ok(()) };
        let (ended, members) = (committee.epoch(), committee.members());
        self.closings.create()?;
        self.closings.forget(voter_status.epoch())?;
        let ledgers = self.ledgers().await?;
        let installations = installations(voter_status.committees(), &ledgers);
        if ledgers.iter().any(|ledger| ledger.unlocks.is_suspect(ended, voter_status.epoch())) {
            let is_followed = ledgers.iter().all(|ledger| ledger.unlocks.epoch() >= voter_status.epoch());
            let wait = JoinWait::suspect(ended, is_followed);
            self.metrics.observe_join(voter_status.joins().map(|epoch| (epoch, wait)));
            self.metrics.observe(self.count(ended, members));
            return Ok(());
        }
        let mut stated = Ok(());
        let author = |keys: &AuthorityKeys| (ended, keys.public().name);
        if let Some(keys) = voter_status.closes(ended).filter(|keys| !self.closings.has(author(keys))) {
            stated = self.state(ended, keys, &ledgers, is_stopped);
        }
        let up_to = ledgers.iter().map(|ledger| ledger.synchronized).max().unwrap_or_default();
        let (domain, installations) = (&self.domain.clone(), &installations);
        let followed = Followed { domain, epoch: ended, installations, up_to };
        // A peer that stalls must not delay a join for which all is here.
        let is_here = self.count(ended, members) >= committee.quorum();
        if !is_here {
            self.fetch(&followed, members).await;
        }
        let waits = match voter_status.joins() {
            Some(epoch) if voter_status.is_stale() => Some(JoinWait::Restored(epoch)),
            Some(_) => {
                let peers = (&self.peers[..], self.times.certificates);
                self.joiner.join(&committee, &followed, &self.closings, peers).await.err()
            }
            None => None,
        };
        self.metrics.observe_join(voter_status.joins().zip(waits));
        if is_here {
            self.fetch(&followed, members).await;
        }
        self.metrics.observe(self.count(ended, members));
        stated
    }

    /// How many of these members' Closings of an epoch are here.
    fn count(&self, ended: Epoch, members: &[Authority]) -> usize {
        members.iter().filter(|member| self.closings.has((ended, member.name))).count()
    }

    /// Fetches the peers' Closings. A member may be gone that others have the Closing of: each peer that has signed one,
    /// or has none to sign, is asked for one such in a round.
    async fn fetch(&mut self, followed: &Followed<'_>, members: &[Authority]) {
        let is_lacking = |member: &&Authority| !self.closings.has((followed.epoch, member.name));
        let lacking: Vec<_> = members.iter().filter(is_lacking).collect();
        self.round = self.round.wrapping_add(1);
        for (place, peer) in self.peers.iter_mut().enumerate() {
            let turn = self.round.wrapping_add(place).checked_rem(lacking.len());
            let other = turn.and_then(|turn| lacking.get(turn)).map(|member| member.name);
            peer.fetch(followed, other, (&self.closings, &self.metrics)).await;
        }
    }

    /// Signs this authority's Closing, and keeps it.
    fn state(
        &self,
        ended: Epoch,
        keys: &AuthorityKeys,
        ledgers: &[Arc<ShardLedger>],
        is_stopped: &dyn Fn() -> bool,
    ) -> Result<(), HandoverError> {
        let histories: Vec<_> = self.shards.iter().map(|(_, history)| history.clone()).collect();
        let report = Report::read(ended, &self.domain, &histories, ledgers, is_stopped)?;
        let signed = report.closing.sign(keys, &self.domain);
        let entries = report.closing.entries;
        let left = self.closings.room()?.min(CLOSING_BYTES_MAX);
        self.closings.keep((ended, signed.authority), |file| {
            let mut bounded = Bounded { file, left, is_stopped };
            signed.write(report.reported(), &mut bounded)
        })?;
        tracing::info!(epoch = %ended, entries, "signed what this authority knows of an epoch that has ended");
        Ok(())
    }

    /// The shards' ledgers, after all that they decided before is on disk.
    async fn ledgers(&self) -> Result<Vec<Arc<ShardLedger>>, ReadError> {
        let mut ledgers = Vec::new();
        for (handle, _) in self.shards.iter() {
            ledgers.push(ask(handle, Command::ReadLedger)?.await?);
        }
        Ok(ledgers)
    }
}

/// The committee of the newest epoch that has ended, if there is something to state of it: a recovery ends all before
/// it.
fn ended(voter_status: &VoterStatus) -> Option<Arc<Committee>> {
    let ended = voter_status.epoch().0.checked_sub(1).map(Epoch)?;
    let counts = !voter_status.is_ahead() && ended >= voter_status.committees().counting_since();
    voter_status.committees().get(ended).filter(|_| counts).cloned()
}

/// The committees as they were installed, by what the shards know of the epochs whose keys were out.
fn installations(committees: &Committees, ledgers: &[Arc<ShardLedger>]) -> Installations {
    let mut all = committees.iter().map(|committee| {
        let epoch = committee.epoch();
        let current = committees.current().epoch();
        let is_out = |before: &Epoch| ledgers.iter().any(|ledger| ledger.unlocks.is_suspect(*before, current));
        let compromised_since = epoch.0.checked_sub(1).map(Epoch).filter(is_out).unwrap_or(epoch);
        InstalledCommittee { committee: (**committee).clone(), compromised_since, checkpoint: Digest::ZERO }
    });
    let first = all.next().expect("there is a committee of epoch 0").committee;
    let mut installations = Installations::new(first).expect("the first is of epoch 0");
    all.for_each(|next| installations.install(next).expect("epochs follow each other"));
    installations
}

/// Ends a write that would be longer than what peers take, or than the disk has room for, and one that nobody waits for.
struct Bounded<'a> {
    file: &'a mut dyn Write,
    left: u64,
    is_stopped: &'a dyn Fn() -> bool,
}

impl Write for Bounded<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        if (self.is_stopped)() {
            return Err(io::Error::other("the node stops"));
        }
        self.left = self.left.checked_sub(bytes.len() as u64).ok_or_else(|| {
            io::Error::other(format!(
                "the Closing would be longer than {CLOSING_BYTES_MAX} bytes, or than the disk has room for: have the journals \
                 end at a newer checkpoint"
            ))
        })?;
        self.file.write_all(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}
