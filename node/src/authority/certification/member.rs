//! A member at work: with its peers it certifies a checkpoint each week by itself, and brings what its archive lacks.
//!
//! ```text
//!  each minute, of each peer: the certificate after the own newest ─► admit (`admit`), and begin anew
//!                             its vote for the number after ─► a quorum for the own proposal ─► certify
//!                             the leader's vote ─► its cut ─► sign
//!  the leader, once it is due ─► propose ─► sign
//!                 └─ announces its cut, and the others compute it meanwhile (`prepare`)
//! ```
//! Peers are asked and send nothing by themselves; what one says counts once it is checked. What this authority says is
//! served from its archive alone (`network`), so it is on disk before. The **leader** of a number is the member whose
//! turn it is (`turn`), and its vote is the proposal: others sign what it signed. Where it is silent, they sign what f
//! + 1 members signed, of whom one is honest: it knows that the checkpoint is due, or that the leader has changed.
//!
//! | what goes wrong | what follows |
//! |---|---|
//! | the leader does not answer | after three rounds the next member leads, and signs the old cut or proposes its own |
//! | the leader shows no cut, or one that cannot be signed | the next member leads after an hour |
//! | it announces another cut than it proposes | what it proposes is computed, as if it had announced nothing |
//! | this authority has not executed the cut | it fetches what it lacks from a member that signed |
//! | the chain is not as far, or a failure | nothing is signed; it tries again, at longer and longer intervals |
//! | a peer lies, stalls, or sends too much | it is left alone, longer each time; the next one is asked |
//! | a kill, anywhere | each file is whole or not there; a vote without its proposal is signed again; nothing else is
//! remembered |
//! | the committee changes | a checkpoint of the new epoch is due at once, and what the old epoch signed is proposed
//! anew |
//! | there is more to certify than one checkpoint takes | the next one is due at once |
//! | this authority was away for long | it skips to the newest state, and fetches the numbers before afterwards |
//!
//! Rounds are a minute apart, and a second for a minute after each one that brought something: where more waits than one
//! checkpoint takes, they follow each other as fast as they are computed.
//!
//! All of it runs on one thread with the lowest priority, which ends at the next wait after the word to stop.

mod prepare;

use std::sync::Arc;
use std::time::Duration;

use fastpay_core::checkpoint::Checkpoint;
use fastpay_core::{AuthorityName, Domain};
use fastpay_program::Clock;
use fastpay_program::disk::{Disk as _, RealDisk};
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use super::admit::{Admission, STEPS_MAX};
use super::adopted::sign_adopted;
use super::archive::{Archive, ArchiveError, ProposedCut};
use super::gather::lacking;
use super::lag::Lag;
use super::memory::Memory;
use super::peer::{Peer, PeerFailure};
use super::peers::{Peers, Shown};
use super::remembered::{Began, Pace, Reached, Replaced};
use super::turn::{Lead, Turn, proposal, votes_for};
use super::{CheckpointError, CheckpointVoteFile, Inputs, NotAdmitted, NotCertified, certify, propose, sign};
use crate::authority::config::{ArchiveSettings, Config};
use crate::authority::metrics::CertificationMetrics;
use crate::authority::peer_book::PeerBook;
use crate::authority::peer_sync::OwnShards;
use crate::authority::priority::run_apart;
use crate::authority::pruning::ArchiveLock;
use crate::authority::voter_status::{VoterStatus, VoterStatusWatch};

/// The segment of a skipped number is given this part of the time for a file.
const REFILL_SHARE: u32 = 12;
/// The most bytes of an account with its next number in a cut's file, which has one at most for each order.
const ACCOUNT_BYTES_MAX: u64 = 128;
/// Brackets, and the checkpoint.
const CUT_BYTES_MIN: u64 = 4_096;

/// How often and how long a member asks and waits.
#[derive(Clone, Copy, Debug)]
pub struct MemberTimes {
    /// The pause between rounds.
    pub poll: Duration,
    /// How long a member leads before the next one does; also the longest wait after failures.
    pub takeover: Duration,
    /// The maximum time for a call to a peer.
    pub call: Duration,
    /// The maximum time for a file of a peer.
    pub file: Duration,
    /// The maximum time for all certificates that a peer shows in a round.
    pub certificates: Duration,
    /// How long a peer that misbehaved is left alone at first.
    pub left: Duration,
    /// And at most.
    pub left_max: Duration,
}

impl Default for MemberTimes {
    fn default() -> Self {
        Self {
            poll: Duration::from_secs(60),
            takeover: Duration::from_secs(3_600),
            call: Duration::from_secs(5),
            file: Duration::from_secs(3_600),
            certificates: Duration::from_secs(60),
            left: Duration::from_secs(300),
            left_max: Duration::from_secs(86_400),
        }
    }
}

/// Failing work waits longer and longer.
#[derive(Clone, Copy, Debug)]
struct Rest {
    /// The number, and who led, when it failed.
    of: (u64, Option<AuthorityName>),
    until: Instant,
    wait: Duration,
}

/// An authority that makes checkpoints with its peers.
pub struct Member {
    config: Config,
    settings: ArchiveSettings,
    archive: Archive,
    domain: Domain,
    voter_status: VoterStatusWatch,
    own: OwnShards,
    peers: PeerBook,
    metrics: Arc<CertificationMetrics>,
    clock: Clock,
    began: Began,
    rest: Option<Rest>,
    replaced: Replaced,
    /// The newest number, and its leader, of which an announced cut was read.
    prepared: Option<(u64, Option<AuthorityName>)>,
    pace: Pace,
    lag: Lag,
    memory: Memory,
    /// Held while it works.
    lock: ArchiveLock,
    /// The orders that are executed here and not in the newest proposal.
    beyond: u64,
    /// More room than this was needed when it last was not enough.
    room_needed: u64,
}

impl Member {
    /// A member with the archive of `settings`, whose peers are those of a book.
    #[must_use]
    pub(crate) fn new(
        config: Config,
        settings: ArchiveSettings,
        domain: Domain,
        voter_status: VoterStatusWatch,
        own: OwnShards,
        peers: PeerBook,
        (metrics, lag, lock): (Arc<CertificationMetrics>, Lag, ArchiveLock),
    ) -> Self {
        let archive = Archive::new(&settings.folder).beside(&config);
        let clock = Clock::system();
        let began = Began { epoch: voter_status.borrow().epoch(), at_ms: clock.now_ms() };
        let (rest, replaced, pace, beyond) = (None, Replaced::default(), Pace::default(), 0);
        Self {
            config,
            settings,
            archive,
            domain,
            voter_status,
            own,
            peers,
            metrics,
            clock,
            began,
            rest,
            replaced,
            prepared: None,
            pace,
            lag,
            memory: Memory::default(),
            lock,
            beyond,
            room_needed: 0,
        }
    }

    /// Runs on a thread of its own until `stop` turns true. The receiver hears when the thread has ended.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(self, stop: watch::Receiver<bool>) -> std::io::Result<oneshot::Receiver<()>> {
        run_apart("archive", self.settings.idle, || self.run(stop))
    }

    async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut peers = Peers::new(&self.peers, &self.settings.times, self.metrics.clone());
        loop {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = async {
                    let guard = self.lock.clone().lock_owned().await;
                    peers.take_in();
                    self.round(&mut peers).await;
                    drop(guard);
                    let reached = self.reached();
                    sleep(self.pace.pause(reached, self.settings.times.poll)).await;
                } => {}
            }
        }
    }

    /// What checkpoints are made from, and what is remembered of those that were made.
    fn inputs(&mut self) -> (Inputs<'_>, &mut Memory) {
        let Self { config, settings, clock, memory, .. } = self;
        let (archive, orders_max) = (&settings.folder, settings.orders_max);
        (Inputs { config, archive, orders_max, clock: *clock }, memory)
    }

    async fn round(&mut self, peers: &mut Peers) {
        let voter_status = self.voter_status.borrow().clone();
        self.began.follow(voter_status.epoch(), self.clock.now_ms());
        match self.work(peers, &voter_status).await {
            Ok(()) => {}
            Err(CheckpointError::Nothing(number)) => {
                tracing::debug!(number, "nothing has happened since the newest certified checkpoint");
            }
            Err(
                error @ (CheckpointError::NotExecuted { .. }
                | CheckpointError::NotApplied { .. }
                | CheckpointError::NotFollowed { .. }
                | CheckpointError::ChainBehind { .. }),
            ) => tracing::info!(%error, "a checkpoint has to wait"),
            Err(CheckpointError::Archive(ArchiveError::NoRoom { .. })) => {
                tracing::debug!("nothing is archived until the disk has room");
            }
            Err(error @ (CheckpointError::Mismatch { .. } | CheckpointError::Archive(_))) => {
                self.metrics.failures.inc();
                tracing::error!(%error, "no checkpoint is signed or certified now");
            }
            Err(error) => {
                self.metrics.failures.inc();
                tracing::warn!(%error, "no checkpoint is signed or certified now");
            }
        }
        if let Err(error) = self.refill(peers, &voter_status).await {
            self.metrics.failures.inc();
            tracing::warn!(%error, "skipped checkpoints cannot be completed now");
        }
        let times = (self.settings.pruning.settle, self.settings.times.takeover);
        if let Err(error) = self.lag.look((&self.archive, &self.config.data), &self.domain, times, &mut log) {
            tracing::warn!(%error, "whether this authority lacks anything of the newest checkpoint cannot be told");
        }
        if let Err(error) = self.observe(&voter_status) {
            tracing::error!(%error, "the archive cannot be read");
        }
        if let Err(error) = self.index(&voter_status) {
            tracing::error!(%error, "the archive cannot be indexed");
        }
    }

    /// How far the archive and this authority's vote are.
    fn reached(&self) -> Reached {
        let newest = self.archive.newest_number().unwrap_or_default();
        (newest, self.archive.vote(newest.saturating_add(1)).map(|vote| vote.checkpoint), self.prepared)
    }

    /// Indexes the newest number, so that no client waits for that.
    fn index(&self, voter_status: &VoterStatus) -> Result<(), CheckpointError> {
        let tip = self.archive.tip(voter_status.committees())?;
        if tip.number > 0 && !self.archive.is_skipped(tip.number) {
            self.archive.index(&tip)?;
        }
        Ok(())
    }

    /// Shows how far the archive is.
    fn observe(&self, voter_status: &VoterStatus) -> Result<(), CheckpointError> {
        let tip = self.archive.tip(voter_status.committees())?;
        let (at_ms, due_at_ms) = (self.archive.newest_at_ms()?, self.due_at_ms(&tip, voter_status)?);
        self.metrics.observe_skipped(self.archive.skipped()?.len());
        self.metrics.observe(tip.number, at_ms / 1_000, due_at_ms.max(self.began.at_ms) / 1_000);
        Ok(())
    }

    /// When the checkpoint after `tip` is due: at once if the committee has changed, or if there is enough for one.
    fn due_at_ms(&self, tip: &Checkpoint, voter_status: &VoterStatus) -> Result<u64, CheckpointError> {
        let newest_at_ms = self.archive.newest_at_ms()?;
        let is_full = usize::try_from(self.beyond).unwrap_or(usize::MAX) >= self.settings.orders_max;
        if tip.number == 0 || tip.epoch != voter_status.epoch() || is_full {
            return Ok(newest_at_ms);
        }
        Ok(newest_at_ms.saturating_add(self.settings.every_seconds.saturating_mul(1_000)))
    }

    async fn work(&mut self, peers: &mut Peers, voter_status: &VoterStatus) -> Result<(), CheckpointError> {
        Archive::create(&self.settings.folder)?;
        let (committees, committee) = (voter_status.committees(), voter_status.committees().current());
        let room = self.check_room(voter_status);
        if room.is_ok() {
            self.bring(peers, voter_status).await?;
        }
        let tip = self.archive.tip(committees)?;
        let number = tip.number.saturating_add(1);
        let shown = peers.votes(number, voter_status).await;
        let keys = voter_status.voter().filter(|_| voter_status.votes_for_all());
        let mut own = self.archive.vote(number).filter(|vote| vote.epoch == committee.epoch());
        if own.is_none() {
            own = self.sign_adopted(voter_status)?;
        }

        let (now_ms, takeover) = (self.clock.now_ms(), self.settings.times.takeover);
        let turn = Turn { number, due_at_ms: self.due_at_ms(&tip, voter_status)?, takeover };
        let leader = turn.leader(committee, now_ms, |name| peers.is_silent(name));
        if self.is_resting((number, leader)) {
            return Ok(());
        }
        if let Some(own) = &own
            && votes_for(&shown, own.checkpoint).saturating_add(1) >= committee.quorum()
        {
            return self.certify(&shown, own, (number, leader)).await;
        }
        room?;
        let Some(keys) = keys else { return Ok(()) };
        let lead = match leader {
            Some(name) if name == keys.public().name => Lead::Own,
            Some(name) if turn.is_due(now_ms) && self.replaced.allows((number, leader)) => Lead::Other(name),
            _ => Lead::Nobody,
        };
        let leads = lead == Lead::Own;
        let result = match proposal(&shown, committee, lead, own.as_ref()) {
            Some((place, vote)) => {
                let made = self.made(vote);
                let is_other = made.is_none() && self.prepared == Some((number, leader));
                let cut = match made {
                    Some(cut) => cut,
                    None => match peers.cut((place, vote), &self.domain, self.cut_bytes_max()).await {
                        Some(cut) => cut,
                        None => return Ok(()),
                    },
                };
                let signed = self.sign(&cut, voter_status).await;
                match &signed {
                    Ok(()) if own.is_some() || is_other => self.replaced.note((number, leader)),
                    Err(CheckpointError::NotExecuted { lacking, .. }) => {
                        peers.fetch(place, &self.own, lacking.clone()).await;
                    }
                    _ => {}
                }
                signed
            }
            None if leads && own.is_none() && turn.is_due(now_ms) => self.propose(number, voter_status).await,
            None => {
                if let (Lead::Other(name), None) = (lead, &own) {
                    self.prepare(peers, (number, name), voter_status).await;
                }
                return Ok(());
            }
        };
        self.rested(result, (number, leader))
    }

    async fn certify(
        &mut self,
        shown: &[Shown],
        own: &CheckpointVoteFile,
        of: (u64, Option<AuthorityName>),
    ) -> Result<(), CheckpointError> {
        let votes: Vec<_> = shown.iter().map(|(_, vote)| vote.clone()).chain([own.clone()]).collect();
        let (inputs, memory) = self.inputs();
        let certified = certify(inputs, &votes, memory, &mut log).await;
        if let Err(
            CheckpointError::TooFewVotes { .. }
            | CheckpointError::Archive(ArchiveError::Wrong { .. } | ArchiveError::Missing(_)),
        ) = &certified
        {
            // The files are not those that it is for, so another vote is given.
            self.archive.drop_vote(own.number)?;
        }
        let certified = self.rested(certified, of)?;
        tracing::info!(number = certified.number, checkpoint = %certified.checkpoint, "certified a checkpoint");
        Ok(())
    }

    async fn propose(&mut self, number: u64, voter_status: &VoterStatus) -> Result<(), CheckpointError> {
        // The stored vote is of an epoch that has ended. Peers must not take its announced cut for that of the new vote.
        self.archive.drop_vote(number)?;
        let (inputs, memory) = self.inputs();
        let proposal = propose(inputs, memory, &mut log).await?;
        tracing::info!(number = proposal.number, entries = proposal.entries, "proposed a checkpoint");
        self.sign(&ProposedCut::read(&proposal.cut)?, voter_status).await
    }

    async fn sign(&mut self, cut: &ProposedCut, voter_status: &VoterStatus) -> Result<(), CheckpointError> {
        let keys = voter_status.voter().map(|keys| (**keys).clone());
        let (inputs, memory) = self.inputs();
        let signed = sign(inputs, (voter_status.epoch(), keys.as_slice()), cut, memory, &mut log).await?;
        self.beyond = signed.beyond;
        tracing::info!(number = signed.vote.number, checkpoint = %signed.vote.checkpoint, "signed a checkpoint");
        Ok(())
    }

    /// Signs the checkpoint that the contract has adopted after a recovery, if the archive has it as a proposal. The
    /// journals do not begin from it yet.
    fn sign_adopted(&self, voter_status: &VoterStatus) -> Result<Option<CheckpointVoteFile>, CheckpointError> {
        let recovery = voter_status.unrecovered().filter(|recovery| recovery.epoch == voter_status.epoch());
        let (Some(adopted), Some(keys)) = (recovery.and_then(|recovery| recovery.adopted), voter_status.member_keys())
        else {
            return Ok(None);
        };
        let known = (&self.domain, voter_status.committees());
        let signed = sign_adopted(&self.archive, known, keys, adopted, &mut log)?;
        if let Some(vote) = &signed {
            tracing::info!(number = vote.number, checkpoint = %adopted, "signed what the contract has adopted");
        }
        Ok(signed)
    }

    /// Admits the checkpoints that peers have and this archive lacks.
    async fn bring(&mut self, peers: &mut Peers, voter_status: &VoterStatus) -> Result<(), CheckpointError> {
        for place in 0..peers.count() {
            let Some(peer) = peers.get(place) else { continue };
            let tip = self.archive.tip(voter_status.committees())?;
            match self.bring_from(peer, &tip).await {
                Ok(false) => {}
                Ok(true) => peers.trust(place),
                Err(Failure::Peer(failure)) => peers.judge(place, &failure),
                Err(Failure::Own(error)) => return self.rested(Err(error), (tip.number, None)),
            }
        }
        Ok(())
    }

    /// Admits what one peer has. Returns whether it had anything.
    async fn bring_from(&mut self, peer: &Peer, tip: &Checkpoint) -> Result<bool, Failure> {
        let voter_status = self.voter_status.borrow().clone();
        let (domain, committees) = (&self.domain, voter_status.committees());
        let certificates = lacking(peer, tip, (domain, committees), self.settings.times.certificates).await?;
        if certificates.is_empty() || self.is_resting((tip.number, None)) {
            return Ok(false);
        }
        let (inputs, memory) = self.inputs();
        let mut admission = Admission::begin(inputs, tip, certificates, memory, &mut log).await?;
        let mut is_new = false;
        if let Some((number, bytes_max)) = admission.landing(STEPS_MAX)? {
            match peer.state(number, (bytes_max, self.room()? / 4), &self.settings.folder).await {
                Ok(mut file) => {
                    admission.skip(&mut file)?;
                    is_new = true;
                    tracing::info!(number, peer = %peer.name(), "skipped to the state of a certified checkpoint");
                }
                Err(failure) if failure.lacks_state() => {
                    tracing::info!(number, peer = %peer.name(), %failure, "a state cannot be taken; going on step by step");
                }
                Err(failure) => return Err(failure.into()),
            }
        }
        while let Some((number, _)) = admission.next() {
            if !self.admit_next(peer, &mut admission).await? {
                return Err(PeerFailure::Torn.into());
            }
            is_new = true;
            tracing::info!(number, peer = %peer.name(), "archived a certified checkpoint");
        }
        Ok(is_new)
    }

    /// Before anything is computed: whether the disk has room for the next number beside the reserve of the journals.
    fn check_room(&self, voter_status: &VoterStatus) -> Result<(), CheckpointError> {
        let tip = self.archive.tip(voter_status.committees())?;
        let checked = self.archive.check_room(self.archive.needed_after(tip.number).max(self.room_needed));
        let lacking = if let Err(ArchiveError::NoRoom { lacking, .. }) = checked { lacking } else { 0 };
        if let (Err(error), 0) = (&checked, self.metrics.room_lacking.get()) {
            tracing::error!(%error, "no checkpoint is signed or fetched");
        }
        self.metrics.room_lacking.set(i64::try_from(lacking).unwrap_or(i64::MAX));
        Ok(checked?)
    }

    /// How many bytes may be fetched and kept.
    fn room(&self) -> Result<u64, CheckpointError> {
        match self.archive.room()? {
            Some(room) => Ok(room),
            None => RealDisk
                .free_bytes(&self.settings.folder)
                .map_err(|error| ArchiveError::Io { path: self.settings.folder.clone(), error }.into()),
        }
    }

    /// Admits the next checkpoint with a peer's segment, unless the own proposal is that one. Returns whether it was;
    /// the peer may not have it.
    async fn admit_next(&self, peer: &Peer, admission: &mut Admission) -> Result<bool, Failure> {
        let Some((number, bytes_max)) = admission.next() else { return Ok(false) };
        if admission.admit_own(&self.memory, &mut log)? {
            return Ok(true);
        }
        // It is there twice until it is admitted.
        let file = peer.segment(number, (bytes_max, self.room()? / 2), &self.settings.folder).await?;
        let Some(file) = file else { return Ok(false) };
        admission.admit(&mut std::io::BufReader::new(file), &mut log)?;
        Ok(true)
    }

    /// Completes numbers that were skipped, oldest first: at least one, and for about as long as rounds are apart.
    async fn refill(&self, peers: &mut Peers, voter_status: &VoterStatus) -> Result<(), CheckpointError> {
        let until = Instant::now() + self.settings.times.poll;
        let known = (&self.domain, voter_status.committees());
        let Some(mut admission) = Admission::refill(&self.archive, self.settings.orders_max, known)? else {
            return Ok(());
        };
        for place in 0..peers.count() {
            while let Some((number, _)) = admission.next() {
                let Some(peer) = peers.get(place) else { break };
                // A slow one may not keep this authority from signing.
                let within = self.settings.times.file / REFILL_SHARE;
                let refilled = timeout(within, self.admit_next(peer, &mut admission)).await;
                match refilled.unwrap_or(Err(PeerFailure::Slow(within).into())) {
                    Ok(true) => tracing::info!(number, peer = %peer.name(), "completed a skipped checkpoint"),
                    // It may have skipped it, too.
                    Ok(false) => break,
                    Err(Failure::Peer(failure)) => {
                        peers.judge(place, &failure);
                        break;
                    }
                    Err(Failure::Own(error)) => return Err(error),
                }
                if Instant::now() >= until {
                    return Ok(());
                }
            }
        }
        Ok(())
    }

    fn is_resting(&self, of: (u64, Option<AuthorityName>)) -> bool {
        self.rest.is_some_and(|rest| rest.of == of && Instant::now() < rest.until)
    }

    /// Notes how work ended: after a failure the same is not tried again for a while.
    fn rested<T>(
        &mut self,
        result: Result<T, CheckpointError>,
        of: (u64, Option<AuthorityName>),
    ) -> Result<T, CheckpointError> {
        match &result {
            Ok(_) => self.room_needed = 0,
            Err(CheckpointError::Archive(ArchiveError::NoRoom { .. })) => {
                // There was less than it took, and it is not computed again before there is more.
                let room = self.archive.room().ok().flatten().unwrap_or_default();
                self.room_needed = room.saturating_add(1).max(self.room_needed);
            }
            Err(_) => {}
        }
        let wait = self.wait_after(of);
        self.rest = result.is_err().then(|| Rest { of, until: Instant::now() + wait, wait });
        result
    }

    /// How long the same is not tried again if it fails now.
    fn wait_after(&self, of: (u64, Option<AuthorityName>)) -> Duration {
        let times = &self.settings.times;
        let wait = self.rest.filter(|rest| rest.of == of).map_or(times.poll, |rest| rest.wait.saturating_mul(2));
        wait.min(times.takeover)
    }
}

/// Why nothing was brought.
enum Failure {
    Peer(PeerFailure),
    /// This authority's chain, disk or archive.
    Own(CheckpointError),
}

impl From<PeerFailure> for Failure {
    fn from(failure: PeerFailure) -> Self {
        Self::Peer(failure)
    }
}

impl From<CheckpointError> for Failure {
    fn from(error: CheckpointError) -> Self {
        match error {
            CheckpointError::NotAdmitted {
                reason: NotAdmitted::Certificate(NotCertified::UnknownEpoch(epoch)),
                ..
            } => Self::Peer(PeerFailure::UnknownEpoch(epoch)),
            CheckpointError::NotAdmitted { .. } => Self::Peer(PeerFailure::Refused(error.to_string())),
            // It shows a rival of a number whose predecessor was skipped.
            CheckpointError::Archive(ArchiveError::Skipped { first, .. }) => Self::Peer(PeerFailure::Unjudged(first)),
            error => Self::Own(error),
        }
    }
}

/// Shows how far long work is.
fn log(what: String) {
    tracing::info!("a checkpoint: {what}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::Epoch;

    #[test]
    fn only_who_is_at_fault_is_left() {
        let failure = |reason| Failure::from(CheckpointError::NotAdmitted { number: 1, reason });
        let is_left = |failure: &Failure| matches!(failure, Failure::Peer(failure) if failure.is_misbehaviour());
        assert!(is_left(&failure(NotAdmitted::Chain)) && is_left(&failure(NotAdmitted::Events)));
        assert!(is_left(&failure(NotAdmitted::Certificate(NotCertified::EpochEnded(Epoch(0))))));
        // This authority may not have followed a rotation yet; and the others are asked all the same.
        let unknown = failure(NotAdmitted::Certificate(NotCertified::UnknownEpoch(Epoch(1))));
        assert!(matches!(&unknown, Failure::Peer(_)) && !is_left(&unknown));
        assert!(matches!(Failure::from(CheckpointError::ChainTooOld { block_time: 1 }), Failure::Own(_)));
    }
}
