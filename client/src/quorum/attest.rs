//! Gathers the votes with which a certificate of an epoch that ended long ago counts: those of f + 1 members of the
//! current committee that it exists. One of them is honest, and executed it, or kept it while it counted.

use std::time::Duration;

use fastpay_core::{
    Attestation, AttestedCertificate, AuthorityName, Certificate, Committee, Digest, Domain, SequenceNumber,
    UnlockVote, VerifiedCertificate,
};
use fastpay_rpc::{Refusal, UnlockAnswer};
use tokio::time::Instant;

use super::CommitteeClient;
use super::tally::may_vote_for;
use crate::{Asked, AuthorityClient, ClientError};

/// How long authorities may take to say whether they know a certificate.
const PATIENCE: Duration = Duration::from_secs(5);

/// A certificate with the votes of `committee` that the order with this digest is certified under its number, gathered
/// from these authorities. `None` if too few vote so in time.
pub async fn attest<'a>(
    authorities: impl IntoIterator<Item = &'a AuthorityClient>,
    domain: &Domain,
    committee: &Committee,
    certificate: &Certificate,
    order: Digest,
) -> Option<AttestedCertificate> {
    let transfer = &certificate.order.transfer;
    let (account, sequence) = (transfer.sender(), transfer.sequence());
    let digest = UnlockVote::Certificate(order).digest(domain, committee.epoch(), account, sequence);
    let (mut votes, deadline) = (Vec::new(), Instant::now() + PATIENCE);
    // A vote to void the number would count only with those of all members.
    let mut asked = Asked::each(authorities, |authority| async move {
        authority.shard_of(&account).vote_unlock((account, sequence), true).await
    });
    while let Some((name, answer)) = asked.next(deadline).await {
        match vote_in(answer, committee, name, digest) {
            Ok(vote) => votes.push(vote),
            Err(reason) => tracing::debug!(authority = %name, %account, %sequence, reason, "no vote for a certificate"),
        }
        if let Some(attestation) = Attestation::from_votes(committee, digest, &votes) {
            return Some(AttestedCertificate { certificate: certificate.clone(), attestation });
        }
    }
    None
}

/// An authority's vote of this committee on this digest, or why there is none.
fn vote_in(
    answer: Result<UnlockAnswer, ClientError>,
    committee: &Committee,
    shown_by: AuthorityName,
    digest: Digest,
) -> Result<fastpay_core::VerifiedContractVote, String> {
    let (epoch, vote) = match answer.map_err(|error| error.to_string())? {
        UnlockAnswer::Certificate { epoch, vote, .. } => (epoch, vote),
        UnlockAnswer::Void { .. } => return Err("it knows no certificate".into()),
    };
    if epoch != committee.epoch() || !may_vote_for(committee, shown_by, vote.authority) {
        return Err(format!("the vote of {} in epoch {epoch}", vote.authority));
    }
    vote.verify(committee, digest).map_err(|error| error.to_string())
}

impl CommitteeClient {
    /// Submits a certificate to an authority, with the votes of others that it exists if it does not count by itself
    /// there. Returns the authority's epoch, `None` from a release that sends none, and the sender's next number there.
    ///
    /// # Errors
    /// See [`ClientError`]. [`Refusal::Unattested`] if too few authorities know the certificate.
    pub(super) async fn submit(
        &self,
        authority: &AuthorityClient,
        certificate: &VerifiedCertificate,
    ) -> Result<(Option<fastpay_core::Epoch>, SequenceNumber), ClientError> {
        let shard = authority.shard_of(&certificate.transfer().sender());
        let unattested = match shard.confirm(certificate.certificate()).await {
            Err(refused @ ClientError::Refused(Refusal::Unattested(_))) => refused,
            answer => return answer,
        };
        let (authorities, committee) = (self.network.authorities(), self.network.committee());
        let (domain, digest) = (self.network.domain(), certificate.digest());
        match attest(authorities.iter(), domain, &committee, certificate.certificate(), digest).await {
            Some(attested) => shard.confirm_attested(&attested).await,
            None => Err(unattested),
        }
    }
}
