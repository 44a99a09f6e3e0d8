//! Finds certificates, and remembers which of them count for nothing.

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::pin::Pin;
use std::sync::{MutexGuard, PoisonError};
use std::time::Duration;

use fastpay_core::{
    AccountId, AuthorityName, Certificate, CertificateError, Committees, Digest, Domain, Epoch, SequenceNumber,
    VerifiedCertificate,
};
use fastpay_rpc::{Received, TransferName};
use tokio::time::{Instant, timeout, timeout_at};

use super::Network;
use super::answers::GRACE;
use crate::{Asked, AuthorityClient, ClientError};

/// After a quorum has answered that something does not exist, the other authorities get this much longer.
const ABSENCE: Duration = Duration::from_secs(1);
/// The maximum number of outdated certificates that are remembered.
const OUTDATED_MAX: usize = 10_000;

/// Certificates by their orders and epochs.
pub(super) type Outdated = HashSet<(Digest, Epoch)>;

impl Network {
    /// Whether members have refused this certificate of an ended epoch, or have executed another order, so that f + 1 cannot
    /// attest it. Then it proves nothing, and is no reason not to have its order certified again.
    fn is_outdated(&self, certificate: &VerifiedCertificate) -> bool {
        self.outdated().contains(&named(certificate))
    }

    /// Notes that this certificate is outdated.
    pub(crate) fn outdate(&self, certificate: &VerifiedCertificate) {
        let mut outdated = self.outdated();
        // Retired keys can make any number of them. One that is forgotten costs another question.
        if outdated.len() >= OUTDATED_MAX {
            outdated.clear();
        }
        outdated.insert(named(certificate));
    }

    /// Marks no certificate of this order as outdated any more: a quorum has confirmed this one.
    pub(crate) fn count_again(&self, certificate: &VerifiedCertificate) {
        self.outdated().retain(|(order, _)| *order != certificate.digest());
    }

    /// Forgets all of them: new members may know more certificates.
    pub(super) fn forget_outdated(&self) {
        self.outdated().clear();
    }

    fn outdated(&self) -> MutexGuard<'_, Outdated> {
        self.shared.outdated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Checks that a certificate is valid, and of this sender and number.
    ///
    /// # Errors
    /// If it is invalid, or of another sender or number.
    pub fn verify_certificate(
        &self,
        certificate: Certificate,
        account: AccountId,
        sequence: SequenceNumber,
    ) -> Result<VerifiedCertificate, BogusCertificate> {
        let verified = verify_certificate(certificate, account, sequence, self.domain(), &self.committees());
        if let Err(BogusCertificate::UnknownEpoch(epoch)) = &verified {
            self.hint(*epoch);
        }
        verified
    }

    /// As [`Network::verify_certificate`], and that no recovery has ended its epoch, as far as this client knows.
    ///
    /// # Errors
    /// If it is invalid, of another sender or number, or of an epoch that has ended.
    pub fn verify_counting(
        &self,
        certificate: Certificate,
        account: AccountId,
        sequence: SequenceNumber,
    ) -> Result<VerifiedCertificate, BogusCertificate> {
        if certificate.epoch < self.counting_since() {
            return Err(BogusCertificate::EndedEpoch(certificate.epoch));
        }
        self.verify_certificate(certificate, account, sequence)
    }

    /// The certificate that `account` sent under `sequence`, from the authority that first returns a valid one, without
    /// those that this client knows to be outdated. `None` if no authority returns it.
    pub async fn find_certificate(&self, account: AccountId, sequence: SequenceNumber) -> Option<VerifiedCertificate> {
        let ask = certificate_of(account, sequence);
        let mut asked = Asked::each(self.authorities().iter(), ask);
        self.first_valid(&mut asked, account, sequence, None).await
    }

    /// Whether a quorum answers that it has no certificate of a number. False if too few answer before the deadline.
    pub async fn is_without_certificate(
        &self,
        account: AccountId,
        sequence: SequenceNumber,
        deadline: Instant,
    ) -> bool {
        let mut asked = Asked::each(self.authorities().iter(), certificate_of(account, sequence));
        let mut without = BTreeSet::new();
        while let Some((name, answer)) = asked.next(deadline).await {
            let name = self.present_name(name);
            if answer == Err(ClientError::NotFound) && self.committee().member(&name).is_some() {
                without.insert(name);
            }
            if without.len() >= self.committee().quorum() {
                return true;
            }
        }
        false
    }

    /// Finds valid certificates by name, until the deadline, without those that this client knows to be outdated. Asks one
    /// authority, `first` if given, for all of them, and then the next for those still missing. If an authority does not
    /// answer within `GRACE`, the next is asked, too, while its request goes on.
    pub async fn find_certificates(
        &self,
        names: impl IntoIterator<Item = TransferName>,
        first: Option<AuthorityName>,
        deadline: Instant,
    ) -> BTreeMap<TransferName, VerifiedCertificate> {
        let mut wanted: BTreeSet<TransferName> = names.into_iter().collect();
        let mut authorities = self.authorities().to_vec();
        authorities.sort_by_key(|authority| Some(authority.name()) != first);
        let mut next = authorities.into_iter();
        let (mut asked, mut found) = (Asked::default(), BTreeMap::new());
        while !wanted.is_empty() {
            let mut until = deadline;
            if let Some(authority) = next.next() {
                let names: Vec<_> = wanted.iter().copied().collect();
                asked.and_each([&authority], |authority| {
                    let names = names.clone();
                    async move { authority.certificates(&names).await }
                });
                until = deadline.min(Instant::now() + GRACE);
            }
            match timeout_at(until, asked.answer()).await {
                Ok(Some((_, Ok(certificates)))) => {
                    for certificate in certificates {
                        let transfer = &certificate.order.transfer;
                        let (sender, sequence) = (transfer.sender(), transfer.sequence());
                        if !wanted.contains(&(sender, sequence)) {
                            continue;
                        }
                        if let Ok(certificate) = self.verify_counting(certificate, sender, sequence)
                            && !self.is_outdated(&certificate)
                        {
                            wanted.remove(&(sender, sequence));
                            found.insert((sender, sequence), certificate);
                        }
                    }
                }
                Ok(None) => break,
                Ok(Some(_)) => {}
                Err(_) if Instant::now() >= deadline => break,
                Err(_) => {}
            }
        }
        found
    }

    /// The certificate that proves an entry of `account`'s list of received payments at `lister`: of a transfer that
    /// makes exactly this payment. The lister is asked first: a credit arrives after its certificate, so an honest
    /// lister's shard of the sender has it. If it does not return it within `GRACE`, the others are asked, too.
    pub async fn find_received(
        &self,
        account: AccountId,
        lister: AuthorityName,
        listed: &Received,
    ) -> Option<VerifiedCertificate> {
        if listed.payment.recipient != account {
            return None;
        }
        let (sender, sequence) = (listed.payment.sender, listed.payment.sequence);
        let authorities = self.authorities();
        let (listers, others): (Vec<_>, Vec<_>) = authorities.iter().partition(|authority| authority.name() == lister);
        let mut asked = Asked::each(listers, certificate_of(sender, sequence));
        let own = timeout(GRACE, self.first_valid(&mut asked, sender, sequence, Some(listed))).await.ok().flatten();
        if own.is_some() {
            return own;
        }
        asked.and_each(others, certificate_of(sender, sequence));
        self.first_valid(&mut asked, sender, sequence, Some(listed)).await
    }

    /// The first valid certificate among the answers: of a transfer that makes the `listed` payment if one is given, and
    /// otherwise one that is not outdated. `None` if no authority returns one, or a quorum has none and the others return
    /// none soon after. At least one honest authority of any quorum has a settled transfer's certificate.
    async fn first_valid(
        &self,
        asked: &mut Asked<Result<Certificate, ClientError>>,
        account: AccountId,
        sequence: SequenceNumber,
        listed: Option<&Received>,
    ) -> Option<VerifiedCertificate> {
        let committee = self.committee();
        let is_of = |certificate: &VerifiedCertificate| {
            match listed {
                // Members may have executed it since; so it is brought to them again.
                Some(listed) => listed.is_made_by(certificate.transfer(), certificate.digest()),
                None => !self.is_outdated(certificate),
            }
        };
        let (mut without, mut until) = (BTreeSet::new(), None);
        loop {
            let answer = match until {
                Some(until) => asked.next(until).await?,
                None => asked.answer().await?,
            };
            match answer {
                (name, Ok(certificate)) => match self.verify_counting(certificate, account, sequence) {
                    Ok(certificate) if is_of(&certificate) => return Some(certificate),
                    Ok(_) => {
                        tracing::warn!(authority = %name, "an authority sent a certificate that does not count")
                    }
                    Err(error) => tracing::warn!(authority = %name, %error, "an authority sent an invalid certificate"),
                },
                (name, Err(ClientError::NotFound)) => drop(without.insert(self.present_name(name))),
                _ => {}
            }
            without.retain(|name| committee.member(name).is_some());
            if without.len() >= committee.quorum() && until.is_none() {
                until = Some(Instant::now() + ABSENCE);
            }
        }
    }
}

/// Checks that a certificate is valid by the committee of its epoch, and of this sender and number.
///
/// # Errors
/// If it is invalid, or of another sender or number.
pub fn verify_certificate(
    certificate: Certificate,
    account: AccountId,
    sequence: SequenceNumber,
    domain: &Domain,
    committees: &Committees,
) -> Result<VerifiedCertificate, BogusCertificate> {
    let transfer = &certificate.order.transfer;
    if (transfer.sender(), transfer.sequence()) != (account, sequence) {
        return Err(BogusCertificate::Another);
    }
    let epoch = certificate.epoch;
    let committee = committees.get(epoch).ok_or(BogusCertificate::UnknownEpoch(epoch))?;
    Ok(certificate.verify(domain, committee)?)
}

/// The order, which says account and number, and the epoch.
fn named(certificate: &VerifiedCertificate) -> (Digest, Epoch) {
    (certificate.digest(), certificate.certificate().epoch)
}

/// The request for one certificate.
fn certificate_of(
    account: AccountId,
    sequence: SequenceNumber,
) -> impl Fn(AuthorityClient) -> CertificateAnswer + Copy {
    move |authority| Box::pin(async move { authority.shard_of(&account).certificate(account, sequence).await })
}

/// An authority's answer to a request for a certificate.
type CertificateAnswer = Pin<Box<dyn Future<Output = Result<Certificate, ClientError>> + Send>>;

/// Why a certificate from an authority is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BogusCertificate {
    /// It is invalid.
    #[error(transparent)]
    Invalid(#[from] CertificateError),
    /// Its epoch is not known here.
    #[error("it belongs to epoch {0}, which this client does not know")]
    UnknownEpoch(Epoch),
    /// A recovery has ended its epoch.
    #[error("a recovery has ended its epoch {0}")]
    EndedEpoch(Epoch),
    /// It is of a sender or number that was not asked for.
    #[error("it has another sender or sequence number than requested")]
    Another,
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_testkit::{TestAccount, TestCommittee, payment};

    #[test]
    fn a_certificate_counts_for_its_own_sender_and_number_by_the_committee_of_its_epoch() {
        let first = TestCommittee::new(4);
        let second = first.rotated();
        let committees = Committees::new(first.committee.clone()).unwrap();
        let (alice, bob) = (TestAccount::ed25519(0), TestAccount::ethereum(1));
        let order = alice.sign(&first.domain, payment(alice.id(), bob.id(), 1, 6));
        let good = first.certificate(&order);
        let check = |certificate: &Certificate, account: &TestAccount, number, committees: &Committees| {
            let number = SequenceNumber(number);
            verify_certificate(certificate.clone(), account.id(), number, &first.domain, committees).map(drop)
        };
        assert_eq!(check(&good, &alice, 6, &committees), Ok(()));
        assert_eq!(check(&good, &alice, 7, &committees), Err(BogusCertificate::Another));
        assert_eq!(check(&good, &bob, 6, &committees), Err(BogusCertificate::Another));
        let later = second.certificate(&order);
        assert_eq!(check(&later, &alice, 6, &committees), Err(BogusCertificate::UnknownEpoch(Epoch(1))));
        let mut both = committees.clone();
        both.install(second.committee.clone()).unwrap();
        assert_eq!((check(&later, &alice, 6, &both), check(&good, &alice, 6, &both)), (Ok(()), Ok(())));
        // The votes of one epoch under the other epoch's number, and one vote too few.
        let renamed = Certificate { epoch: Epoch(0), ..later };
        assert!(matches!(check(&renamed, &alice, 6, &both), Err(BogusCertificate::Invalid(_))));
        let mut few = good;
        few.votes.pop();
        assert!(matches!(check(&few, &alice, 6, &both), Err(BogusCertificate::Invalid(_))));
    }
}
