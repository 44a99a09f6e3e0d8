//! Computes the cut that a leader has announced, while the leader computes it, too.
//!
//! An announcement is a hint: what a member signs, and when, follows from the leader's vote as if there were none. The
//! proposal of the same checkpoint then finds it made (`memory`). Until this authority has a vote for the number, one
//! announcement of each leader is read, within the pause between rounds, and computed once. Computing it counts as one
//! of the leader's proposals, so one that lies costs no more than with these. Whatever is wrong with an announcement,
//! nobody is left alone for it, and the proposal does not wait.

use fastpay_core::AuthorityName;
use tokio::time::Instant;

use super::{ACCOUNT_BYTES_MAX, CUT_BYTES_MIN, Member, Rest, log};
use crate::authority::certification::archive::ProposedCut;
use crate::authority::certification::peers::Peers;
use crate::authority::certification::{CheckpointVoteFile, prepare};
use crate::authority::voter_status::VoterStatus;

impl Member {
    /// Reads and computes what the leader of a number announces, unless that was done.
    pub(super) async fn prepare(
        &mut self,
        peers: &Peers,
        (number, leader): (u64, AuthorityName),
        voter_status: &VoterStatus,
    ) {
        let of = (number, Some(leader));
        if self.prepared == Some(of) {
            return;
        }
        let announced = peers.announced((number, leader), self.cut_bytes_max(), self.settings.times.poll).await;
        let Some(cut) = announced.transpose() else { return };
        self.prepared = Some(of);
        let cut = match cut {
            Ok(cut) => cut,
            Err(error) => return tracing::info!(%error, "an announced cut cannot be read"),
        };
        let keys = voter_status.voter().map(|keys| (**keys).clone());
        let (inputs, memory) = self.inputs();
        match prepare(inputs, (voter_status.epoch(), keys.as_slice()), &cut, memory, &mut log).await {
            Ok(()) => {
                tracing::info!(number, "computed a cut that is announced");
                self.rest = Some(Rest { of, until: Instant::now(), wait: self.wait_after(of) });
            }
            Err(error) => tracing::info!(%error, "an announced cut is not computed"),
        }
    }

    /// The cut of a vote, if this process has computed it.
    pub(super) fn made(&self, vote: &CheckpointVoteFile) -> Option<ProposedCut> {
        let made = self.memory.made(&self.archive, vote.number)?;
        let is_it = self.domain.checkpoint_digest(&made.checkpoint) == vote.checkpoint;
        is_it.then(|| ProposedCut::read(&self.archive.cut_path(vote.number)).ok()).flatten()
    }

    /// The most bytes of a cut's file.
    pub(super) fn cut_bytes_max(&self) -> u64 {
        let orders = u64::try_from(self.settings.orders_max).unwrap_or(u64::MAX);
        orders.saturating_mul(ACCOUNT_BYTES_MAX).saturating_add(CUT_BYTES_MIN)
    }
}
