//! Brings one authority up to date with certificates that it lacks: of the sender's own earlier orders, and
//! of payments that the sender received. Certificates never depend on a balance, so each chain is followed
//! along one sender's numbers, and nothing here recurses.

use std::collections::HashSet;
use std::time::Duration;

use crate::{Asked, AuthorityClient, ClientError};
use fastpay_core::{AccountId, Epoch, SequenceNumber, VerifiedCertificate};
use fastpay_rpc::{PAGE_ENTRIES_MAX, Received, Refusal, TransferName};
use tokio::time::Instant;

use super::tally::PeerFailure;
use super::{CommitteeClient, Progress};

/// The maximum number of pages of received payments to compare, from the newest.
const RECEIVED_PAGES_MAX: u64 = 20;
/// After the lists of a quorum, the others get this much longer: one may be far away, and know something alone.
const LATE_LIST: Duration = Duration::from_secs(1);
/// The maximum number of times that a confirmation is repeated after sending earlier certificates.
const CONFIRM_ROUNDS_MAX: usize = 4;
/// Once an authority has refused certificates of one list for so long, the rest of that list is left out: others may bring
/// the same.
const REFUSED_MAX: Duration = Duration::from_secs(3);

impl CommitteeClient {
    /// A verified certificate, from the wallet's own files or else from whichever authority has it.
    pub async fn certificate(&self, account: AccountId, sequence: SequenceNumber) -> Option<VerifiedCertificate> {
        if let Some(certificate) = self.source.certificate(account, sequence) {
            match self.network.verify_certificate(certificate, account, sequence) {
                Ok(certificate) => return Some(certificate),
                Err(error) => tracing::warn!(%account, %sequence, %error, "a stored certificate is not valid"),
            }
        }
        self.network.find_certificate(account, sequence).await
    }

    /// Submits the certificates of `account` from one number up to another (exclusive).
    pub(super) async fn push_sent(
        &self,
        authority: &AuthorityClient,
        account: AccountId,
        from: SequenceNumber,
        to: SequenceNumber,
    ) -> Result<(), PeerFailure> {
        let mut sequence = from;
        while sequence < to {
            let certificate = self.certificate(account, sequence).await.ok_or(PeerFailure::Behind(sequence))?;
            self.report(Progress::CatchingUp { authority: authority.name(), account, sequence });
            let confirmed = match self.submit(authority, &certificate).await {
                // The stored certificate may be of an ended epoch, while another authority has one of a later epoch.
                Err(ended @ (PeerFailure::EpochEnded(_) | PeerFailure::Unattested(_))) => {
                    match self.network.find_certificate(account, sequence).await {
                        Some(newer) => self.submit(authority, &newer).await,
                        None => Err(ended),
                    }
                }
                confirmed => confirmed,
            };
            let (_, next) = confirmed.map_err(|failure| match failure {
                // That says nothing of what follows. The authority is asked again: others may attest the certificate, and it
                // steps over a void number.
                PeerFailure::Unattested(_) | PeerFailure::Voided => PeerFailure::Behind(sequence),
                failure => failure,
            })?;
            if next <= sequence {
                return Err(PeerFailure::Misbehaved(format!("it confirmed {sequence} and expects {next}")));
            }
            // It may have advanced since it last answered. Numbers beyond `to` do not matter here.
            sequence = next;
        }
        Ok(())
    }

    /// Submits a certificate, after those of the same sender that the authority lacks. Returns the authority's epoch;
    /// `None` from a release that sends none.
    pub(super) async fn confirm(
        &self,
        authority: &AuthorityClient,
        certificate: &VerifiedCertificate,
    ) -> Result<Option<Epoch>, PeerFailure> {
        let (account, sequence) = (certificate.transfer().sender(), certificate.transfer().sequence());
        let mut last_missing = None;
        for _ in 0..CONFIRM_ROUNDS_MAX {
            match self.submit(authority, certificate).await {
                Ok((epoch, next)) if next > sequence => return Ok(epoch),
                Ok((_, next)) => {
                    return Err(PeerFailure::Misbehaved(format!("it confirmed {sequence} and expects {next}")));
                }
                Err(PeerFailure::Behind(missing)) if missing < sequence => {
                    if last_missing.is_some_and(|last| missing <= last) {
                        return Err(PeerFailure::Misbehaved(format!("it repeatedly asks for certificate {missing}")));
                    }
                    last_missing = Some(missing);
                    self.push_sent(authority, account, missing, sequence).await?;
                }
                Err(failure) => return Err(failure),
            }
        }
        Err(PeerFailure::Misbehaved("it asks for more certificates without end".into()))
    }

    /// Sends an authority the payments to `account` that others list and it does not, except those that it is `known`
    /// to have. Returns how many it confirmed. A certificate that it refuses ends nothing else: its number may be frozen or
    /// void there.
    ///
    /// # Errors
    /// If it does not answer.
    pub(super) async fn push_received(
        &self,
        authority: &AuthorityClient,
        account: AccountId,
        known: &mut HashSet<TransferName>,
    ) -> Result<usize, PeerFailure> {
        known.extend(newest_received(authority, account).await.map_err(failure_of)?.iter().map(name_of));
        let authorities = self.network.authorities();
        let others = authorities.iter().filter(|other| other.name() != authority.name());
        let mut asked = Asked::each(others, |other| async move { newest_received(&other, account).await });
        // A lister that is silent, or delays page after page, must not keep us from the lists of the others.
        let mut deadline = Instant::now() + self.options.funds_patience;
        let (mut brought, mut lists) = (0_usize, 0_usize);
        while let Some((lister, listed)) = asked.next(deadline).await {
            let Ok(listed) = listed else { continue };
            let mut refused = Duration::ZERO;
            for received in listed {
                let (sender, sequence) = name_of(&received);
                if known.contains(&(sender, sequence)) {
                    continue;
                }
                let begun = Instant::now();
                let Some(certificate) = self.network.find_received(account, lister, &received).await else {
                    // An honest lister can prove every entry. Going on would let a liar with a long list of
                    // inventions keep us until the deadline.
                    tracing::warn!(authority = %lister, %sender, %sequence, "a listed payment has no certificate");
                    break;
                };
                self.report(Progress::CatchingUp { authority: authority.name(), account: sender, sequence });
                match self.confirm(authority, &certificate).await {
                    Ok(_) => {
                        known.insert((sender, sequence));
                        brought = brought.saturating_add(1);
                    }
                    Err(silence @ (PeerFailure::Silent(_) | PeerFailure::Busy(_) | PeerFailure::Restored)) => {
                        return Err(silence);
                    }
                    Err(failure) => {
                        tracing::debug!(authority = %authority.name(), %sender, %sequence, %failure, "a payment is refused");
                        refused = refused.saturating_add(begun.elapsed());
                    }
                }
                if refused >= REFUSED_MAX {
                    break;
                }
            }
            let is_member = self.network.committee().member(&self.network.present_name(lister)).is_some();
            lists = lists.saturating_add(usize::from(is_member));
            if lists.saturating_add(1) >= self.network.committee().quorum() {
                deadline = deadline.min(Instant::now() + LATE_LIST);
            }
        }
        Ok(brought)
    }
}

fn name_of(received: &Received) -> TransferName {
    (received.payment.sender, received.payment.sequence)
}

/// The newest pages of what an authority lists as received.
async fn newest_received(authority: &AuthorityClient, account: AccountId) -> Result<Vec<Received>, ClientError> {
    let shard = authority.shard_of(&account);
    let total = shard.account(account).await?.received;
    let page = u64::from(PAGE_ENTRIES_MAX);
    let mut start = total.saturating_sub(page.saturating_mul(RECEIVED_PAGES_MAX));
    let mut received = Vec::new();
    for _ in 0..=RECEIVED_PAGES_MAX {
        let entries = match shard.received(account, start).await {
            Err(ClientError::Pruned(pruned)) if pruned.first > start => {
                start = pruned.first;
                continue;
            }
            page => page?.entries,
        };
        if entries.is_empty() {
            break;
        }
        start = start.saturating_add(u64::try_from(entries.len()).unwrap_or(u64::MAX));
        received.extend(entries);
        if start >= total {
            break;
        }
    }
    Ok(received)
}

/// Classifies an error as a failure of the authority.
pub(super) fn failure_of(error: ClientError) -> PeerFailure {
    match error {
        ClientError::Refused(Refusal::Busy(retry_after)) => PeerFailure::Busy(retry_after),
        ClientError::Refused(Refusal::CatchingUp(None)) => PeerFailure::Restored,
        ClientError::Refused(Refusal::NotRequested(_)) => PeerFailure::NotRequested,
        ClientError::Refused(Refusal::EpochEnded(since)) => PeerFailure::EpochEnded(since),
        ClientError::Refused(Refusal::Unattested(epoch)) => PeerFailure::Unattested(epoch),
        ClientError::Refused(Refusal::Voided(_)) => PeerFailure::Voided,
        ClientError::Refused(refusal) if refusal.is_retryable() => PeerFailure::Silent(refusal.to_string()),
        ClientError::Refused(Refusal::MissingCertificate(missing) | Refusal::SequenceTooHigh(missing)) => {
            PeerFailure::Behind(missing)
        }
        ClientError::Refused(refusal) => PeerFailure::Refused(refusal.to_string()),
        ClientError::Malformed(what) => PeerFailure::Misbehaved(what),
        error => PeerFailure::Silent(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_busy_authority_is_asked_again_after_its_delay() {
        let asked = Duration::from_millis(70);
        let busy = failure_of(ClientError::Refused(Refusal::Busy(asked)));
        assert_eq!((busy.retry_after(), &busy), (asked, &PeerFailure::Busy(asked)));
        let stopping = failure_of(ClientError::Refused(Refusal::Stopping));
        assert_eq!(stopping.retry_after(), Duration::ZERO);
        assert!(matches!(stopping, PeerFailure::Silent(_)));
    }
}
