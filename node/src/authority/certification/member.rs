//! A member at work: with its peers it certifies a checkpoint each week by itself, and brings what its archive lacks.
//!
//! ```text
//!  each minute, of each peer: the certificate after the own newest ─► admit (`admit`), and begin anew
//!                             its vote for the number after ─► a quorum for the own proposal ─► certify
//!                             the leader's vote ─► its cut ─► sign
//!  the leader, once it is due ─► propose ─► sign
//! ```
//! Peers are asked and send nothing by themselves; what one says counts once it is checked. What this authority says is
//! served from its archive alone (`network`), so it is on disk before. The **leader** of a number is the member whose turn
//! it is (`turn`), and its vote is the proposal: others sign what it signed. Where it is silent, they sign what f + 1
//! members signed, of whom one is honest: it knows that the checkpoint is due, or that the leader has changed.
//!
//! | what goes wrong | what follows |
//! |---|---|
//! | the leader is away, or its cut cannot be signed | after an hour the next member leads, and signs the old cut or proposes its own |
//! | this authority has not executed the cut | it fetches what it lacks from a member that signed |
//! | the chain is not as far, or a failure | nothing is signed; it tries again, at longer and longer intervals |
//! | a peer lies, stalls, or sends too much | it is left alone, longer each time; the next one is asked |
//! | a kill, anywhere | each file is whole or not there; a vote without its proposal is signed again; nothing else is remembered |
//! | the committee changes | a checkpoint of the new epoch is due at once, and what the old epoch signed is proposed anew |
//! | there is more to certify than one checkpoint takes | the next one is due at once |
//!
//! All of it runs on one thread with the lowest priority, which ends at the next wait after the word to stop.

use std::sync::Arc;
use std::time::Duration;

use fastpay_client::{AuthorityClient, AuthorityEndpoints, ClientOptions, Endpoints};
use fastpay_core::checkpoint::Checkpoint;
use fastpay_core::{AccountId, AuthorityName, Committee, Digest, Domain, SequenceNumber};
use fastpay_program::Clock;
use tokio::sync::{oneshot, watch};
use tokio::time::{Instant, sleep, timeout};

use super::admit::Admission;
use super::archive::{Archive, ProposedCut};
use super::peer::{Patience, Peer, PeerFailure};
use super::turn::Turn;
use super::{CheckpointError, CheckpointVoteFile, Inputs, NotAdmitted, NotCertified, certify, propose, sign};
use crate::authority::config::{ArchiveSettings, Config};
use crate::authority::metrics::CertificationMetrics;
use crate::authority::peer_sync::{self, OwnShards};
use crate::authority::priority::lowest_priority;
use crate::authority::voter_status::{VoterStatus, VoterStatusWatch};

/// The most certificates that are admitted at once. More are admitted in the next rounds.
const CERTIFICATES_MAX: usize = 1_024;
/// The most bytes of an account with its next number in a cut's file.
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

/// A vote, and the position of the peer that showed it.
type Shown = (usize, CheckpointVoteFile);

/// An authority that makes checkpoints with its peers.
pub struct Member {
    config: Config,
    settings: ArchiveSettings,
    archive: Archive,
    domain: Domain,
    voter_status: VoterStatusWatch,
    own: OwnShards,
    /// All names of this authority.
    names: Vec<AuthorityName>,
    endpoints: Endpoints,
    metrics: Arc<CertificationMetrics>,
    clock: Clock,
    started_at_ms: u64,
    rest: Option<Rest>,
    /// The orders that are executed here and not in the newest proposal.
    beyond: u64,
}

impl Member {
    /// A member with the archive of `settings`, whose peers are the authorities of `endpoints` but itself, which has
    /// `names`.
    #[must_use]
    pub fn new(
        config: Config,
        settings: ArchiveSettings,
        domain: Domain,
        voter_status: VoterStatusWatch,
        own: OwnShards,
        (names, endpoints): (Vec<AuthorityName>, Endpoints),
        metrics: Arc<CertificationMetrics>,
    ) -> Self {
        let archive = Archive::new(&settings.folder);
        let clock = Clock::system();
        let (started_at_ms, rest, beyond) = (clock.now_ms(), None, 0);
        Self {
            config,
            settings,
            archive,
            domain,
            voter_status,
            own,
            names,
            endpoints,
            metrics,
            clock,
            started_at_ms,
            rest,
            beyond,
        }
    }

    /// Runs on a thread of its own until `stop` turns true. The receiver hears when the thread has ended.
    ///
    /// # Errors
    /// If the system gives no thread.
    pub fn start(self, stop: watch::Receiver<bool>) -> std::io::Result<oneshot::Receiver<()>> {
        let (ended, end) = oneshot::channel();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let run = move || {
            lowest_priority();
            runtime.block_on(self.run(stop));
            let _ = ended.send(());
        };
        std::thread::Builder::new().name("archive".into()).spawn(run)?;
        Ok(end)
    }

    async fn run(mut self, mut stop: watch::Receiver<bool>) {
        let mut peers = self.peers();
        loop {
            tokio::select! {
                biased;
                _ = stop.wait_for(|stop| *stop) => return,
                () = async {
                    self.round(&mut peers).await;
                    sleep(self.settings.times.poll).await;
                } => {}
            }
        }
    }

    fn peers(&self) -> Vec<Peer> {
        let times = &self.settings.times;
        let options = ClientOptions { connect_timeout: times.call, request_timeout: times.call };
        let others = self.endpoints.authorities.iter().filter(|entry| !self.names.contains(&entry.name));
        let connect = |entry: &AuthorityEndpoints| match AuthorityClient::new(entry, options) {
            Ok(client) => Some(Peer::new(client, times.file)),
            Err(error) => {
                tracing::error!(%error, "a peer's archive is not read; correct the file of endpoints and start again");
                None
            }
        };
        others.filter_map(connect).collect()
    }

    fn inputs(&self) -> Inputs<'_> {
        let orders_max = self.settings.orders_max;
        Inputs { config: &self.config, archive: &self.settings.folder, orders_max, clock: self.clock }
    }

    async fn round(&mut self, peers: &mut [Peer]) {
        let voter_status = self.voter_status.borrow().clone();
        match self.work(peers, &voter_status).await {
            Ok(()) => {}
            Err(CheckpointError::Nothing(number)) => {
                tracing::debug!(number, "nothing has happened since the newest certified checkpoint");
            }
            Err(
                error @ (CheckpointError::NotExecuted { .. }
                | CheckpointError::NotApplied { .. }
                | CheckpointError::ChainBehind { .. }),
            ) => tracing::info!(%error, "a checkpoint has to wait"),
            Err(error @ (CheckpointError::Mismatch { .. } | CheckpointError::Archive(_))) => {
                self.metrics.failures.inc();
                tracing::error!(%error, "no checkpoint is signed or certified now");
            }
            Err(error) => {
                self.metrics.failures.inc();
                tracing::warn!(%error, "no checkpoint is signed or certified now");
            }
        }
        if let Err(error) = self.observe(&voter_status) {
            tracing::error!(%error, "the archive cannot be read");
        }
    }

    /// Shows how far the archive is.
    fn observe(&self, voter_status: &VoterStatus) -> Result<(), CheckpointError> {
        let tip = self.archive.tip(voter_status.committees())?;
        let (at_ms, due_at_ms) = (self.archive.newest_at_ms()?, self.due_at_ms(&tip, voter_status)?);
        // Nobody was late before this start.
        self.metrics.observe(tip.number, at_ms / 1_000, due_at_ms.max(self.started_at_ms) / 1_000);
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

    async fn work(&mut self, peers: &mut [Peer], voter_status: &VoterStatus) -> Result<(), CheckpointError> {
        Archive::create(&self.settings.folder)?;
        let (committees, committee) = (voter_status.committees(), voter_status.committees().current());
        let mut tip = self.archive.tip(committees)?;
        if self.bring(peers, &tip).await? {
            tip = self.archive.tip(committees)?;
        }
        let number = tip.number.saturating_add(1);
        let shown = self.votes(peers, number, voter_status).await;
        let keys = voter_status.voter().filter(|_| voter_status.votes_for_all());
        let own = self.archive.vote(number).filter(|vote| vote.epoch == committee.epoch());

        let (now_ms, takeover) = (self.clock.now_ms(), self.settings.times.takeover);
        let turn = Turn { number, due_at_ms: self.due_at_ms(&tip, voter_status)?, takeover };
        let leader = turn.leader(committee, now_ms);
        if self.is_resting((number, leader)) {
            return Ok(());
        }
        if let Some(own) = &own
            && votes_for(&shown, own.checkpoint).saturating_add(1) >= committee.quorum()
        {
            return self.certify(&shown, own, (number, leader)).await;
        }
        let Some(keys) = keys else { return Ok(()) };
        let leads = leader == Some(keys.public().name);
        let result = match proposal(&shown, committee, leader.filter(|_| !leads), own.as_ref()) {
            Some((peer, vote)) => {
                let Some(peer) = peers.get_mut(peer) else { return Ok(()) };
                let Some(cut) = self.cut(peer, vote).await else { return Ok(()) };
                let signed = self.sign(&cut, voter_status).await;
                if let Err(CheckpointError::NotExecuted { lacking, .. }) = &signed {
                    self.fetch(peer, lacking.clone()).await;
                }
                signed
            }
            None if leads && own.is_none() && turn.is_due(now_ms) => self.propose(voter_status).await,
            None => return Ok(()),
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
        let certified = certify(self.inputs(), &votes, &mut log).await;
        let certified = self.rested(certified, of)?;
        tracing::info!(number = certified.number, checkpoint = %certified.checkpoint, "certified a checkpoint");
        Ok(())
    }

    async fn propose(&mut self, voter_status: &VoterStatus) -> Result<(), CheckpointError> {
        let proposal = propose(self.inputs(), &mut log).await?;
        tracing::info!(number = proposal.number, entries = proposal.entries, "proposed a checkpoint");
        self.sign(&ProposedCut::read(&proposal.cut)?, voter_status).await
    }

    async fn sign(&mut self, cut: &ProposedCut, voter_status: &VoterStatus) -> Result<(), CheckpointError> {
        let keys = voter_status.voter().map(|keys| (**keys).clone());
        let signed = sign(self.inputs(), keys.as_slice(), cut, &mut log).await?;
        self.beyond = signed.beyond;
        tracing::info!(number = signed.vote.number, checkpoint = %signed.vote.checkpoint, "signed a checkpoint");
        Ok(())
    }

    /// The cut that a peer has voted for.
    async fn cut(&self, peer: &mut Peer, vote: &CheckpointVoteFile) -> Option<ProposedCut> {
        let newest = self.archive.cut_path(vote.number.saturating_sub(1));
        let newest = std::fs::metadata(newest).map_or(0, |metadata| metadata.len());
        let orders = u64::try_from(self.settings.orders_max).unwrap_or(u64::MAX);
        let bytes_max = newest.saturating_add(orders.saturating_mul(ACCOUNT_BYTES_MAX)).saturating_add(CUT_BYTES_MIN);
        let failure = match peer.cut(vote.number, bytes_max).await {
            Ok(Some(cut)) if self.domain.checkpoint_digest(&cut.checkpoint) == vote.checkpoint => return Some(cut),
            Ok(Some(_)) => PeerFailure::Other,
            Ok(None) => PeerFailure::Torn,
            Err(failure) => failure,
        };
        self.judge(peer, &failure);
        None
    }

    /// Fetches what this authority has not executed, from a peer whose vote says that it has.
    async fn fetch(&self, peer: &mut Peer, lacking: Vec<(AccountId, SequenceNumber)>) {
        let wait = self.settings.times.file;
        let failure = match timeout(wait, peer_sync::bring(&self.own, peer.client(), lacking)).await {
            Ok(Ok(count)) => return tracing::info!(count, peer = %peer.name(), "fetched what a checkpoint includes"),
            Ok(Err(failure)) => PeerFailure::Certificates(failure),
            Err(_) => PeerFailure::Slow(wait),
        };
        self.judge(peer, &failure);
    }

    /// The votes that peers show for a number, of different members.
    async fn votes(&self, peers: &mut [Peer], number: u64, voter_status: &VoterStatus) -> Vec<Shown> {
        let committee = voter_status.committees().current();
        let mut shown: Vec<Shown> = Vec::new();
        for (place, peer) in peers.iter_mut().enumerate().filter(|(_, peer)| !peer.is_left()) {
            match peer.vote(number, committee).await {
                Ok(Some(vote)) => {
                    let is_known = shown.iter().any(|(_, known)| known.authority == vote.authority);
                    if !voter_status.is_own(vote.epoch, &vote.authority) && !is_known {
                        shown.push((place, vote));
                    }
                }
                Ok(None) => {}
                Err(failure) => self.judge(peer, &failure),
            }
        }
        shown
    }

    /// Admits the checkpoints that a peer has and this archive lacks. Returns whether there was one.
    async fn bring(&mut self, peers: &mut [Peer], tip: &Checkpoint) -> Result<bool, CheckpointError> {
        for peer in peers.iter_mut().filter(|peer| !peer.is_left()) {
            match self.bring_from(peer, tip).await {
                Ok(false) => {}
                Ok(true) => {
                    peer.trust();
                    return Ok(true);
                }
                Err(Failure::Peer(failure)) => self.judge(peer, &failure),
                Err(Failure::Own(error)) => return self.rested(Err(error), (tip.number, None)),
            }
        }
        Ok(false)
    }

    async fn bring_from(&self, peer: &Peer, tip: &Checkpoint) -> Result<bool, Failure> {
        let votes_max = self.voter_status.borrow().quorum_max();
        let mut certificates = Vec::new();
        for number in (tip.number.saturating_add(1)..).take(CERTIFICATES_MAX) {
            let Some(certificate) = peer.certificate(number, votes_max).await? else { break };
            certificates.push(certificate);
        }
        if certificates.is_empty() || self.is_resting((tip.number, None)) {
            return Ok(false);
        }
        let mut admission = Admission::begin(self.inputs(), certificates, &mut log).await?;
        let mut is_new = false;
        while let Some((number, bytes_max)) = admission.next() {
            if !admission.admit_own(&mut log)? {
                let Some(file) = peer.segment(number, bytes_max, &self.settings.folder).await? else {
                    return Err(PeerFailure::Torn.into());
                };
                admission.admit(&mut std::io::BufReader::new(file), &mut log)?;
            }
            is_new = true;
            tracing::info!(number, peer = %peer.name(), "archived a certified checkpoint");
        }
        Ok(is_new)
    }

    fn judge(&self, peer: &mut Peer, failure: &PeerFailure) {
        let name = peer.name();
        if !failure.is_misbehaviour() {
            return tracing::debug!(peer = %name, %failure, "a peer's archive cannot be read now");
        }
        let times = &self.settings.times;
        let wait = peer.leave(Patience { first: times.left, max: times.left_max });
        self.metrics.peers_left.inc();
        tracing::warn!(peer = %name, %failure, wait_s = wait.as_secs(), "this peer's archive is not read for a while");
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
        let times = &self.settings.times;
        self.rest = result.is_err().then(|| {
            let wait = self.rest.filter(|rest| rest.of == of).map_or(times.poll, |rest| rest.wait.saturating_mul(2));
            let wait = wait.min(times.takeover);
            Rest { of, until: Instant::now() + wait, wait }
        });
        result
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
            error => Self::Own(error),
        }
    }
}

fn votes_for(shown: &[Shown], digest: Digest) -> usize {
    shown.iter().filter(|(_, vote)| vote.checkpoint == digest).count()
}

/// What to sign: the leader's checkpoint; if it shows none, or this authority leads, the one that most members and at
/// least f + 1 have signed. None if it is signed already.
fn proposal<'a>(
    shown: &'a [Shown],
    committee: &Committee,
    leader: Option<AuthorityName>,
    own: Option<&CheckpointVoteFile>,
) -> Option<(usize, &'a CheckpointVoteFile)> {
    let is_leaders = |(_, vote): &&Shown| Some(vote.authority) == leader;
    let votes = |digest| votes_for(shown, digest);
    let one_honest = committee.faults_tolerated().saturating_add(1);
    let least = own.map_or(0, |own| votes(own.checkpoint)).saturating_add(1).max(one_honest);
    let most = || shown.iter().max_by_key(|(_, vote)| votes(vote.checkpoint));
    let chosen = match shown.iter().find(is_leaders) {
        Some(leaders) => leaders,
        None if leader.is_none() && own.is_some() => return None,
        None => most().filter(|(_, vote)| votes(vote.checkpoint) >= least)?,
    };
    let (peer, vote) = chosen;
    (own.map(|own| own.checkpoint) != Some(vote.checkpoint)).then_some((*peer, vote))
}

/// Shows how far long work is.
fn log(what: String) {
    tracing::info!("a checkpoint: {what}");
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::Epoch;
    use fastpay_rpc::json::Hex;
    use fastpay_testkit::TestCommittee;

    fn vote(committee: &TestCommittee, member: usize, checkpoint: u8) -> CheckpointVoteFile {
        let (checkpoint, authority) = (Digest::repeat_byte(checkpoint), committee.keys[member].public().name);
        CheckpointVoteFile { number: 1, checkpoint, epoch: Epoch(0), authority, signature: Hex([0; 64]) }
    }

    #[test]
    fn what_the_leader_signed_is_signed_and_else_what_an_honest_member_signed() {
        let committee = TestCommittee::new(7);
        // Each case: the other member who leads, if one does; what the own vote is for; who shows votes for what; and
        // the position and checkpoint of the vote that is followed.
        let check = |leader: Option<usize>, own: Option<u8>, votes: &[(usize, u8)], expected: Option<(usize, u8)>| {
            let votes = votes.iter().map(|(member, checkpoint)| vote(&committee, *member, *checkpoint));
            let shown: Vec<_> = votes.enumerate().collect();
            let own = own.map(|own| vote(&committee, 0, own));
            let leader = leader.map(|leader| committee.keys[leader].public().name);
            let chosen = proposal(&shown, &committee.committee, leader, own.as_ref());
            let chosen = chosen.map(|(place, vote)| (place, vote.checkpoint));
            let expected = expected.map(|(place, checkpoint)| (place, Digest::repeat_byte(checkpoint)));
            assert_eq!(chosen, expected, "{leader:?} {shown:?}");
        };
        // The leader's comes first, whatever others signed, and is signed once.
        check(Some(1), None, &[(2, 8), (3, 8), (4, 8), (1, 9)], Some((3, 9)));
        check(Some(1), Some(8), &[(2, 8), (3, 8), (4, 8), (1, 9)], Some((3, 9)));
        check(Some(1), Some(9), &[(2, 8), (3, 8), (4, 8), (1, 9)], None);
        // Without it f members may lie; with one more, one of them is honest.
        check(Some(1), None, &[(2, 8), (3, 8)], None);
        check(Some(1), None, &[(4, 7), (2, 8), (3, 8), (5, 8), (6, 7)], Some((3, 8)));
        // It goes over only to more votes than its own has.
        check(Some(6), Some(7), &[(2, 8), (3, 8), (4, 8)], Some((2, 8)));
        check(Some(6), Some(7), &[(2, 8), (3, 8), (4, 8), (1, 7), (5, 7)], Some((2, 8)));
        check(Some(6), Some(8), &[(2, 8), (3, 8), (4, 8)], None);
        // Who leads keeps what it signed, or joins what was signed already.
        check(None, Some(7), &[(2, 8), (3, 8), (4, 8)], None);
        check(None, None, &[(2, 8), (3, 8), (4, 8)], Some((2, 8)));
        check(None, None, &[(2, 8), (3, 8)], None);
        check(None, None, &[], None);
    }

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
