//! Gathers the votes with which a certificate of an ended epoch counts: those of f + 1 members of the current committee
//! that it exists. One of them is honest, and executed it, or kept it while it counted.

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use fastpay_core::{
    Attestation, AttestedCertificate, AuthorityName, Certificate, Committee, Digest, Domain, Epoch, SequenceNumber,
    UnlockVote, VerifiedCertificate, VerifiedContractVote,
};
use fastpay_rpc::{Refusal, UnlockAnswer};
use tokio::time::Instant;

use super::CommitteeClient;
use super::catch_up::failure_of;
use super::tally::{PeerFailure, may_vote_for, newer_epoch};
use crate::{Asked, AuthorityClient, ClientError};

/// How long authorities may take to say whether they know a certificate.
const PATIENCE: Duration = Duration::from_secs(5);

/// Why a certificate does not have the votes of f + 1 members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unattested {
    /// So many members do not know it that it cannot get them.
    Unknown,
    /// f + 1 members have pruned the number, and it cannot get the votes of others. One of them is honest, so the number was
    /// used, and an archive says for what.
    Pruned,
    /// It may get them from members that have not answered. Ask again.
    Late,
    /// f + 1 members vote in this epoch, or a later one, which is newer than the committee's.
    NewEpoch(Epoch),
}

/// One authority's answer.
enum Heard {
    Vote(VerifiedContractVote),
    /// It votes in a newer epoch.
    Ahead(Epoch),
    /// It does not know the certificate, or sends no valid vote.
    Denial(String),
    /// It has pruned what it executed under the number.
    Pruned(String),
    /// It does not say now.
    Nothing(String),
}

/// A certificate with the votes of `committee` that the order with this digest is certified under its number, gathered
/// from these authorities.
///
/// # Errors
/// See [`Unattested`].
pub async fn attest<'a>(
    authorities: impl IntoIterator<Item = &'a AuthorityClient>,
    domain: &Domain,
    committee: &Committee,
    certificate: &Certificate,
    order: Digest,
) -> Result<AttestedCertificate, Unattested> {
    let transfer = &certificate.order.transfer;
    let (account, sequence) = (transfer.sender(), transfer.sequence());
    let digest = UnlockVote::Certificate(order).digest(domain, committee.epoch(), account, sequence);
    let (mut votes, mut denied, mut pruned, mut ahead) =
        (Vec::new(), BTreeSet::new(), BTreeSet::new(), BTreeMap::new());
    let deadline = Instant::now() + PATIENCE;
    // A vote to void the number would count only with those of all members.
    let mut asked = Asked::each(authorities, |authority| async move {
        authority.shard_of(&account).vote_unlock((account, sequence), true).await
    });
    while let Some((name, answer)) = asked.next(deadline).await {
        let is_member = committee.member(&name).is_some();
        match Heard::of(answer, committee, name, digest) {
            Heard::Vote(vote) => votes.push(vote),
            Heard::Ahead(epoch) if is_member => drop(ahead.insert(name, epoch)),
            Heard::Denial(reason) => {
                tracing::debug!(authority = %name, %account, %sequence, reason, "an authority knows no such certificate");
                denied.extend(is_member.then_some(name));
            }
            Heard::Pruned(reason) => {
                tracing::debug!(authority = %name, %account, %sequence, reason, "an authority has pruned the certificate");
                pruned.extend(is_member.then_some(name));
            }
            Heard::Ahead(_) => {}
            Heard::Nothing(reason) => {
                tracing::debug!(authority = %name, %account, %sequence, reason, "no vote for a certificate");
            }
        }
        if let Some(attestation) = Attestation::from_votes(committee, digest, &votes) {
            return Ok(AttestedCertificate { certificate: certificate.clone(), attestation });
        }
        if let Some(epoch) = newer_epoch(committee, ahead.values().copied()) {
            return Err(Unattested::NewEpoch(epoch));
        }
        let is_lost = |without: usize| committee.members().len().saturating_sub(without) < committee.one_honest();
        if is_lost(denied.len()) {
            return Err(Unattested::Unknown);
        }
        if pruned.len() >= committee.one_honest() && is_lost(denied.len().saturating_add(pruned.len())) {
            return Err(Unattested::Pruned);
        }
    }
    Err(Unattested::Late)
}

impl Heard {
    fn of(
        answer: Result<UnlockAnswer, ClientError>,
        committee: &Committee,
        shown_by: AuthorityName,
        digest: Digest,
    ) -> Self {
        let (epoch, vote) = match answer {
            Ok(UnlockAnswer::Certificate { epoch, vote, .. }) => (epoch, Some(vote)),
            Ok(UnlockAnswer::Void { epoch, .. }) => (epoch, None),
            Err(ClientError::Refused(Refusal::NotVoting(epoch))) if epoch > committee.epoch() => {
                return Self::Ahead(epoch);
            }
            Err(ClientError::Refused(refusal)) if is_denial(&refusal) => return Self::Denial(refusal.to_string()),
            Err(error @ ClientError::Pruned(_)) => return Self::Pruned(error.to_string()),
            Err(error @ ClientError::Malformed(_)) => return Self::Denial(error.to_string()),
            Err(error) => return Self::Nothing(error.to_string()),
        };
        if epoch > committee.epoch() {
            return Self::Ahead(epoch);
        }
        if epoch < committee.epoch() {
            return Self::Nothing(format!("it votes in epoch {epoch}"));
        }
        let Some(vote) = vote else { return Self::Denial("it votes that there is none".into()) };
        match vote.verify(committee, digest) {
            Ok(vote) if may_vote_for(committee, shown_by, vote.vote().authority) => Self::Vote(vote),
            Ok(_) => Self::Denial("the vote of another authority".into()),
            Err(error) => Self::Denial(error.to_string()),
        }
    }
}

/// Whether an authority refuses its vote only where it has no certificate of the number. One that does not vote now says
/// nothing about that.
fn is_denial(refusal: &Refusal) -> bool {
    matches!(
        refusal,
        Refusal::NotRequested(_)
            | Refusal::SequenceTooHigh(_)
            | Refusal::WindowOpen(_)
            | Refusal::CatchingUp(_)
            | Refusal::Frozen(_)
            | Refusal::Overruled(_)
            | Refusal::Voided(_)
    )
}

impl CommitteeClient {
    /// Submits a certificate to an authority, with the votes of others that it exists if it does not count by itself
    /// there. Returns the authority's epoch, `None` from a release that sends none, and the sender's next number there.
    ///
    /// # Errors
    /// See [`PeerFailure`]. [`PeerFailure::Unattested`] if too few authorities know the certificate: then no search finds it
    /// again, if its epoch has ended. [`PeerFailure::Behind`] if too few have said that.
    pub(super) async fn submit(
        &self,
        authority: &AuthorityClient,
        certificate: &VerifiedCertificate,
    ) -> Result<(Option<Epoch>, SequenceNumber), PeerFailure> {
        let shard = authority.shard_of(&certificate.transfer().sender());
        let unattested = match shard.confirm(certificate.certificate()).await {
            Err(ClientError::Refused(Refusal::Unattested(epoch))) => PeerFailure::Unattested(epoch),
            answer => return answer.map_err(failure_of),
        };
        let (authorities, committee) = (self.network.authorities(), self.network.committee());
        let (domain, digest) = (self.network.domain(), certificate.digest());
        match attest(authorities.iter(), domain, &committee, certificate.certificate(), digest).await {
            Ok(attested) => shard.confirm_attested(&attested).await.map_err(failure_of),
            Err(Unattested::Unknown) => {
                // Members that have not executed one of this epoch yet deny it, too.
                if certificate.certificate().epoch < committee.epoch() {
                    self.network.outdate(certificate);
                }
                Err(unattested)
            }
            Err(Unattested::NewEpoch(epoch)) => Err(PeerFailure::OtherEpoch(epoch)),
            Err(Unattested::Late | Unattested::Pruned) => Err(PeerFailure::Behind(certificate.transfer().sequence())),
        }
    }
}
