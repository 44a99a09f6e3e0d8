//! The archives of the other authorities, and which of them are left alone for now.

use std::sync::Arc;
use std::time::Duration;

use fastpay_client::ClientOptions;
use fastpay_core::{AccountId, AuthorityName, Domain, SequenceNumber};
use tokio::time::timeout;

use super::CheckpointVoteFile;
use super::archive::ProposedCut;
use super::member::MemberTimes;
use super::peer::{Patience, Peer, PeerFailure};
use crate::authority::metrics::CertificationMetrics;
use crate::authority::peer_book::{PeerBook, PeerReader};
use crate::authority::peer_sync::{self, OwnShards};
use crate::authority::voter_status::VoterStatus;

/// A vote, and the place of the peer that showed it.
pub(super) type Shown = (usize, CheckpointVoteFile);

/// All other authorities. A peer keeps its place until the next ones are taken in.
pub(super) struct Peers {
    all: Vec<Peer>,
    news: PeerReader,
    file_timeout: Duration,
    patience: Patience,
    metrics: Arc<CertificationMetrics>,
}

impl Peers {
    /// The authorities of a book.
    pub fn new(book: &PeerBook, times: &MemberTimes, metrics: Arc<CertificationMetrics>) -> Self {
        let options = ClientOptions { connect_timeout: times.call, request_timeout: times.call };
        let (patience, news) = (Patience { first: times.left, max: times.left_max }, book.reader(options));
        Self { all: Vec::new(), news, file_timeout: times.file, patience, metrics }
    }

    /// Takes in the peers that have become known, and those that have moved, and forgets those that have left.
    pub fn take_in(&mut self) {
        self.news.update(&mut self.all, Peer::name, |client| Peer::new(client, self.file_timeout));
    }

    /// How many they are.
    pub fn count(&self) -> usize {
        self.all.len()
    }

    /// The peer at a place, unless it is left alone now.
    pub fn get(&self, place: usize) -> Option<&Peer> {
        self.all.get(place).filter(|peer| !peer.is_left())
    }

    /// The votes that peers show for a number, one of each member.
    pub async fn votes(&mut self, number: u64, voter_status: &VoterStatus) -> Vec<Shown> {
        let mut shown: Vec<Shown> = Vec::new();
        for place in 0..self.count() {
            let answer = match self.get(place) {
                Some(peer) => Some((peer.name(), peer.vote(number, voter_status.committees().current()).await)),
                None => None,
            };
            let answered = matches!(&answer, Some((_, Ok(_))));
            self.all.get_mut(place).into_iter().for_each(|peer| peer.note_round(answered));
            let Some((name, answer)) = answer else { continue };
            match answer {
                Ok(Some(vote)) if !voter_status.is_own(vote.epoch, &vote.authority) => {
                    match shown.iter_mut().find(|(_, known)| known.authority == vote.authority) {
                        None => shown.push((place, vote)),
                        // Another peer may show a vote that this one has replaced.
                        Some(known) if vote.authority == name => *known = (place, vote),
                        Some(_) => {}
                    }
                }
                Ok(_) => {}
                Err(failure) => self.judge(place, &failure),
            }
        }
        shown
    }

    /// Whether a peer of this name has not answered for some rounds.
    pub fn is_silent(&self, name: &AuthorityName) -> bool {
        self.all.iter().any(|peer| peer.name() == *name && peer.is_silent())
    }

    /// The cut that a peer's vote is for.
    pub async fn cut(
        &mut self,
        (place, vote): (usize, &CheckpointVoteFile),
        domain: &Domain,
        bytes_max: u64,
    ) -> Option<ProposedCut> {
        let failure = match self.get(place)?.cut(vote.number, bytes_max).await {
            Ok(Some(cut)) if domain.checkpoint_digest(&cut.checkpoint) == vote.checkpoint => return Some(cut),
            Ok(Some(_)) => PeerFailure::Other,
            Ok(None) => PeerFailure::Torn,
            Err(failure) => failure,
        };
        self.judge(place, &failure);
        None
    }

    /// The cut that the peer of a name announces or proposes for a number, if it comes within `limit`. One that has not
    /// answered in this round is not asked.
    pub async fn announced(
        &self,
        (number, name): (u64, AuthorityName),
        bytes_max: u64,
        limit: Duration,
    ) -> Result<Option<ProposedCut>, PeerFailure> {
        let found = self.all.iter().find(|peer| peer.name() == name && peer.has_answered());
        let Some(peer) = found else { return Ok(None) };
        timeout(limit, peer.cut(number, bytes_max)).await.unwrap_or(Err(PeerFailure::Slow(limit)))
    }

    /// Fetches what this authority has not executed, from a peer whose vote says that it has.
    pub async fn fetch(&mut self, place: usize, own: &OwnShards, lacking: Vec<(AccountId, SequenceNumber)>) {
        let Some(peer) = self.get(place) else { return };
        let failure = match timeout(self.file_timeout, peer_sync::bring(own, peer.client(), lacking)).await {
            Ok(Ok(count)) => return tracing::info!(count, peer = %peer.name(), "fetched what a checkpoint includes"),
            Ok(Err(failure)) => PeerFailure::Certificates(failure),
            Err(_) => PeerFailure::Slow(self.file_timeout),
        };
        self.judge(place, &failure);
    }

    /// A peer showed something that was right.
    pub fn trust(&mut self, place: usize) {
        self.all.get_mut(place).into_iter().for_each(Peer::trust);
    }

    /// Leaves a peer alone for a while if it is at fault.
    pub fn judge(&mut self, place: usize, failure: &PeerFailure) {
        let Some(peer) = self.all.get_mut(place) else { return };
        let name = peer.name();
        let wait = match failure {
            PeerFailure::UnknownEpoch(_) | PeerFailure::Unjudged(_) => peer.pause(self.patience),
            PeerFailure::NoRoom { .. } => {
                return tracing::warn!(peer = %name, %failure, "a peer's archive is not read now");
            }
            _ if failure.is_misbehaviour() => peer.leave(self.patience),
            _ => return tracing::debug!(peer = %name, %failure, "a peer's archive cannot be read now"),
        };
        self.metrics.peers_left.inc();
        tracing::warn!(peer = %name, %failure, wait_s = wait.as_secs(), "this peer's archive is not read for a while");
    }
}
