//! The committees of all epochs, and a connection to each authority of the current one. The contract or the genesis
//! file names the authorities, never the file of endpoints. Callers verify their answers.
//!
//! An authority that changes its keys changes its name and keeps its address. An endpoint that the file lists under a
//! member's earlier name stays under that name until the authority has given its new one (`ask_names`). Names decide
//! nothing: only signatures count.
//!
//! Members that the file does not list say themselves where they can be reached, to all authorities (`members`).

mod members;

use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::pin::Pin;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, RwLock};
use std::time::Duration;

use crate::{Asked, AuthorityClient, ClientError, ClientOptions, Endpoints, EndpointsError};
use fastpay_core::{
    AccountId, Asset, AuthorityName, Certificate, CertificateError, Committee, CommitteeError, Committees, Digest,
    Domain, Epoch, EpochsError, Genesis, SequenceNumber, VerifiedCertificate, is_recent_member,
};
use fastpay_rpc::{AccountState, Received, ShardStatus, TransferName};
use members::Told;
use tokio::time::{Instant, timeout, timeout_at};

/// After a quorum has answered a read, the others get this much longer.
pub const GRACE: Duration = Duration::from_millis(100);
/// After a quorum has answered that something does not exist, the other authorities get this much longer.
const ABSENCE: Duration = Duration::from_secs(1);
/// The maximum time to ask endpoints without a current member's name for their names.
pub(crate) const NAMES: Duration = Duration::from_secs(1);
/// A healthy authority connects and answers much faster; a silent one must not delay a read for longer.
const OPTIONS: ClientOptions =
    ClientOptions { connect_timeout: Duration::from_secs(2), request_timeout: Duration::from_secs(5) };

/// Why the network cannot be set up.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The genesis file lists no committee.
    #[error("the genesis file lists no committee: {0}")]
    Committee(#[from] CommitteeError),
    /// The genesis file's committee is not of the first epoch.
    #[error("the committees do not follow each other: {0}")]
    Epochs(#[from] EpochsError),
    /// The endpoints cannot be read.
    #[error(transparent)]
    Endpoints(#[from] EndpointsError),
    /// An address is malformed.
    #[error(transparent)]
    Address(#[from] ClientError),
    /// Fewer addresses than a quorum.
    #[error(
        "addresses of {known} of the {size} members are known, and {quorum} are needed; \
         get the newest endpoints file from whoever runs the committee"
    )]
    TooFewEndpoints {
        /// How many members have an address.
        known: usize,
        /// How many members there are.
        size: usize,
        /// The number needed.
        quorum: usize,
    },
}

/// The answers of the authorities that gave any in time.
pub type Answers<T> = Vec<(AuthorityName, Result<T, ClientError>)>;

/// The current names of endpoints, by their names in the file.
pub type Names = BTreeMap<AuthorityName, AuthorityName>;

/// The committees with a client for each authority. Cheap to clone; all clones share the known epochs.
#[derive(Clone, Debug)]
pub struct Network {
    shared: Arc<Shared>,
}

/// The certificates of a number by their orders and epochs.
type Outdated = HashMap<TransferName, HashSet<(Digest, Epoch)>>;

#[derive(Debug)]
struct Shared {
    domain: Domain,
    /// The authorities under the names that the file of endpoints gives.
    listed: Vec<AuthorityClient>,
    /// For connections to members that the file does not list.
    options: ClientOptions,
    known: RwLock<Known>,
    /// The highest unknown epoch of a certificate that an authority returned. It is not verified.
    hinted: AtomicU64,
    /// See [`Network::counting_since`].
    counting_since: AtomicU64,
    /// The number after that of the epoch of [`Network::count_closing`]; 0 without one.
    closing: AtomicU64,
    /// See [`Network::is_outdated`].
    outdated: Mutex<Outdated>,
}

#[derive(Clone, Debug)]
struct Known {
    committees: Committees,
    names: Names,
    /// Where members say themselves that they can be reached.
    told: Told,
    authorities: Arc<[AuthorityClient]>,
}

impl Known {
    /// An endpoint of the file is believed to be the authority under whose name it is listed. An earlier name may be
    /// claimed to be a member's now, unless that member says itself where it is: whoever left the committee must not take
    /// the place of one that came.
    fn new(committees: Committees, names: Names, told: Told, listed: &[AuthorityClient]) -> Self {
        let is_member = |name: &AuthorityName| committees.current().member(name).is_some();
        let is_listed = |name: &AuthorityName| listed.iter().any(|client| client.name() == *name);
        let news = told.iter().filter(|(name, _)| is_member(name) && !is_listed(name));
        let news: BTreeMap<_, _> = news.map(|(name, (_, client))| (*name, client)).collect();
        let of_file = listed.iter().filter_map(|client| match names.get(&client.name()) {
            Some(name) if !is_member(&client.name()) && is_member(name) => {
                (!news.contains_key(name)).then(|| client.named(*name))
            }
            _ => Some(client.clone()),
        });
        let authorities = of_file.chain(news.values().map(|client| (*client).clone())).collect();
        Self { committees, names, told, authorities }
    }
}

impl Network {
    /// The committees with the addresses of `endpoints`, under `domain`. Connections are opened when they
    /// are first used. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// If an address is malformed.
    pub fn new(domain: Domain, committees: Committees, endpoints: &Endpoints) -> Result<Self, NetworkError> {
        Self::with_options(domain, committees, endpoints, OPTIONS)
    }

    /// As [`Network::new`] with other time-outs.
    ///
    /// # Errors
    /// As [`Network::new`].
    pub fn with_options(
        domain: Domain,
        committees: Committees,
        endpoints: &Endpoints,
        options: ClientOptions,
    ) -> Result<Self, NetworkError> {
        let mut listed = Vec::new();
        for entry in &endpoints.authorities {
            if committees.iter().any(|committee| committee.member(&entry.name).is_some()) {
                listed.push(AuthorityClient::new(entry, options)?);
            } else {
                tracing::warn!(
                    authority = %entry.name,
                    "the endpoints file names an authority that was never a member"
                );
            }
        }
        Ok(Self::of_listed(domain, committees, listed, options))
    }

    /// The committees with these clients of their members.
    #[must_use]
    pub fn of(domain: Domain, committees: Committees, listed: Vec<AuthorityClient>) -> Self {
        Self::of_listed(domain, committees, listed, OPTIONS)
    }

    fn of_listed(domain: Domain, committees: Committees, listed: Vec<AuthorityClient>, options: ClientOptions) -> Self {
        let known = RwLock::new(Known::new(committees, Names::new(), Told::new(), &listed));
        let (hinted, counting_since, closing) = (AtomicU64::new(0), AtomicU64::new(0), AtomicU64::new(0));
        let outdated = Mutex::default();
        Self { shared: Arc::new(Shared { domain, listed, options, known, hinted, counting_since, closing, outdated }) }
    }

    /// Checks that as many members have an address as make a quorum. A member that the endpoints file lists under its
    /// former name has none before [`Network::learn_names`] finds it.
    ///
    /// # Errors
    /// [`NetworkError::TooFewEndpoints`].
    pub fn check_reach(&self) -> Result<(), NetworkError> {
        let committee = self.committee();
        let (size, quorum) = (committee.members().len(), committee.quorum());
        let known = size.saturating_sub(self.unreached().len());
        if known < quorum { Err(NetworkError::TooFewEndpoints { known, size, quorum }) } else { Ok(()) }
    }

    /// The committee of a genesis file, without a Primary.
    ///
    /// # Errors
    /// As [`Network::new`], or the file lists no committee.
    pub fn standalone(genesis: &Genesis, endpoints: &Endpoints) -> Result<Self, NetworkError> {
        Self::new(genesis.domain(), Committees::new(genesis.committee()?)?, endpoints)
    }

    /// The domain of all signatures in this deployment.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.shared.domain
    }

    fn known(&self) -> Known {
        self.shared.known.read().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// The committees of all epochs that are known here.
    #[must_use]
    pub fn committees(&self) -> Committees {
        self.known().committees
    }

    /// The current committee.
    #[must_use]
    pub fn committee(&self) -> Arc<Committee> {
        self.known().committees.current().clone()
    }

    /// The authorities that have an address.
    #[must_use]
    pub fn authorities(&self) -> Arc<[AuthorityClient]> {
        self.known().authorities
    }

    /// The current names of endpoints that the file lists under other names.
    #[must_use]
    pub fn names(&self) -> Names {
        self.known().names
    }

    /// Replaces the known committees and the names of their endpoints. Ignored if the newest of `committees` is older
    /// than the newest known one.
    pub fn adopt(&self, committees: Committees, names: Names) {
        let mut known = self.shared.known.write().unwrap_or_else(PoisonError::into_inner);
        if committees.current().epoch() >= known.committees.current().epoch() {
            let mut told = std::mem::take(&mut known.told);
            told.retain(|name, _| is_recent_member(&committees, name));
            if committees.current().epoch() > known.committees.current().epoch() {
                // The new members may know more certificates.
                self.outdated().clear();
            }
            *known = Known::new(committees, names, told, &self.shared.listed);
        }
    }

    /// The highest epoch that an authority votes in, or of a certificate that it returned, if it is above the known ones.
    /// It is unverified: it only gives a reason to read the contract.
    #[must_use]
    pub fn hinted_epoch(&self) -> Option<Epoch> {
        let hinted = Epoch(self.shared.hinted.load(Ordering::Acquire));
        (hinted > self.committee().epoch()).then_some(hinted)
    }

    /// Notes an epoch that an authority names.
    pub(crate) fn hint(&self, epoch: Epoch) {
        self.shared.hinted.fetch_max(epoch.0, Ordering::AcqRel);
    }

    /// Discards the hinted epoch after it was checked.
    pub fn drop_hint(&self) {
        self.shared.hinted.store(0, Ordering::Release);
    }

    /// The epoch from which on certificates count, as far as this client has learnt it: a recovery has ended the
    /// earlier ones. It refuses a certificate of those if an authority returns it, because it proves nothing any more.
    #[must_use]
    pub fn counting_since(&self) -> Epoch {
        Epoch(self.shared.counting_since.load(Ordering::Acquire))
    }

    /// Notes that a recovery has ended all epochs before this one, as f + 1 members say.
    pub(crate) fn count_since(&self, epoch: Epoch) {
        self.shared.counting_since.fetch_max(epoch.0, Ordering::AcqRel);
    }

    /// Notes that the keys of this epoch, the one before the current, were not out, as the contract says: its committee's
    /// checkpoints count until another epoch begins. Returns whether it was not known.
    pub fn count_closing(&self, epoch: Epoch) -> bool {
        let after = epoch.0.saturating_add(1);
        self.shared.closing.swap(after, Ordering::AcqRel) != after
    }

    /// The committees whose checkpoints count: the current one, and the one before if [`Network::count_closing`] said so.
    #[must_use]
    pub fn certifying(&self) -> Vec<Arc<Committee>> {
        let committees = self.committees();
        let current = committees.current();
        let is_counted = self.shared.closing.load(Ordering::Acquire) == current.epoch().0;
        let closing = current.epoch().0.checked_sub(1).filter(|_| is_counted);
        let closing = closing.and_then(|before| committees.get(Epoch(before)).cloned());
        [current.clone()].into_iter().chain(closing).collect()
    }

    /// Whether members have refused this certificate of an ended epoch, or have executed another order, so that f + 1 cannot
    /// attest it. Then it proves nothing, and is no reason not to have its order certified again.
    fn is_outdated(&self, certificate: &VerifiedCertificate) -> bool {
        let (number, of) = numbered(certificate);
        self.outdated().get(&number).is_some_and(|outdated| outdated.contains(&of))
    }

    /// Notes that.
    pub(crate) fn outdate(&self, certificate: &VerifiedCertificate) {
        let (number, of) = numbered(certificate);
        self.outdated().entry(number).or_default().insert(of);
    }

    /// Forgets that of all certificates of the same order, because a quorum has confirmed this one.
    pub(crate) fn count_again(&self, certificate: &VerifiedCertificate) {
        if let Some(outdated) = self.outdated().get_mut(&numbered(certificate).0) {
            outdated.retain(|(order, _)| *order != certificate.digest());
        }
    }

    fn outdated(&self) -> MutexGuard<'_, Outdated> {
        self.shared.outdated.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Asks endpoints for their names, as [`Network::ask_names`], and uses the answers.
    pub async fn learn_names(&self, deadline: Instant) {
        let epoch = self.committee().epoch();
        let names = self.ask_names(deadline).await;
        let mut known = self.shared.known.write().unwrap_or_else(PoisonError::into_inner);
        if known.committees.current().epoch() == epoch {
            let Known { committees, told, .. } = known.clone();
            *known = Known::new(committees, names, told, &self.shared.listed);
        }
    }

    /// Asks each endpoint whose name is not a current member's for its name now. The answer is not signed: an endpoint that
    /// makes a false claim has the voice of a member that neither the file lists nor says itself where it is.
    pub async fn ask_names(&self, deadline: Instant) -> Names {
        let Known { committees, mut names, told, .. } = self.known();
        let committee = committees.current();
        let now = |listed: &AuthorityClient| names.get(&listed.name()).copied().unwrap_or(listed.name());
        let is_member = |name: &AuthorityName| committee.member(name).is_some();
        let listed = self.shared.listed.iter().flat_map(|listed| [listed.name(), now(listed)]);
        let taken: BTreeSet<_> = listed.chain(told.keys().copied()).filter(is_member).collect();
        let unknown = self.shared.listed.iter().filter(|listed| {
            let names = [listed.name(), now(listed)];
            !names.iter().any(is_member)
        });
        let mut asked =
            Asked::each(unknown, |authority| async move { Some(authority.shards().first()?.status().await) });
        let mut claims: BTreeMap<AuthorityName, Vec<AuthorityName>> = BTreeMap::new();
        while let Some((listed, answer)) = asked.next(deadline).await {
            let Some(Ok(status)) = answer else { continue };
            if is_member(&status.authority) && !taken.contains(&status.authority) {
                claims.entry(status.authority).or_default().push(listed);
            }
        }
        for (name, claimants) in claims {
            match claimants.as_slice() {
                [listed] => drop(names.insert(*listed, name)),
                _ => tracing::warn!(authority = %name, "several endpoints claim to be the same authority"),
            }
        }
        names
    }

    /// The present name of an endpoint that was asked under this name: of a member that has changed its keys, its new one.
    pub(crate) fn present_name(&self, name: AuthorityName) -> AuthorityName {
        let known = self.shared.known.read().unwrap_or_else(PoisonError::into_inner);
        let is_member = |name: &AuthorityName| known.committees.current().member(name).is_some();
        match known.names.get(&name) {
            Some(now) if !is_member(&name) && is_member(now) && !known.told.contains_key(now) => *now,
            _ => name,
        }
    }

    /// f + 1: of this many equal answers, at least one comes from an honest authority.
    #[must_use]
    pub fn trusted_count(&self) -> usize {
        self.committee().one_honest()
    }

    /// The answers of current members that are no errors. An endpoint whose authority has left the committee has no voice.
    #[must_use]
    pub fn of_members<'a, T>(&self, answers: &'a Answers<T>) -> BTreeMap<AuthorityName, &'a T> {
        let committee = self.committee();
        let good = answers.iter().filter_map(|(name, answer)| Some((*name, answer.as_ref().ok()?)));
        good.filter(|(name, _)| committee.member(name).is_some()).collect()
    }

    /// Asks all authorities at once. Returns when all have answered, at the `deadline`, or shortly after a quorum of members
    /// has answered without an error. If there might be one with the endpoints that have no member's name, asks these for
    /// their names.
    pub async fn ask_all<T, F, Fut>(&self, deadline: Instant, ask: F) -> Answers<T>
    where
        T: Send + 'static,
        F: Fn(AuthorityClient) -> Fut,
        Fut: Future<Output = Result<T, ClientError>> + Send + 'static,
    {
        self.ask_patiently(deadline, GRACE, ask).await
    }

    /// As [`Network::ask_all`], with this `grace` after a quorum has answered without an error.
    pub async fn ask_patiently<T, F, Fut>(&self, deadline: Instant, grace: Duration, ask: F) -> Answers<T>
    where
        T: Send + 'static,
        F: Fn(AuthorityClient) -> Fut,
        Fut: Future<Output = Result<T, ClientError>> + Send + 'static,
    {
        let mut asked = Asked::each(self.authorities().iter(), ask);
        let (mut answers, mut until, mut is_named) = (Answers::new(), deadline, false);
        while let Some((name, answer)) = asked.next(until).await {
            answers.push((self.present_name(name), answer));
            let (good, quorum) =
                (answers.iter().filter(|(_, answer)| answer.is_ok()).count(), self.committee().quorum());
            if until < deadline || good < quorum {
                continue;
            }
            let is_short = self.of_members(&answers).len() < quorum && !self.is_all_found();
            if is_short && !std::mem::replace(&mut is_named, true) {
                self.learn_names(deadline.min(Instant::now() + NAMES)).await;
                answers.iter_mut().for_each(|(name, _)| *name = self.present_name(*name));
            }
            if self.of_members(&answers).len() >= quorum {
                until = deadline.min(Instant::now() + grace);
            }
        }
        answers
    }

    /// An account's state at each authority, from a quorum.
    pub async fn account(&self, account: AccountId, deadline: Instant) -> Answers<AccountState> {
        self.ask_all(deadline, move |authority| async move { authority.shard_of(&account).account(account).await })
            .await
    }

    /// As [`Network::account`], from every authority that answers before the deadline.
    pub async fn account_everywhere(&self, account: AccountId, deadline: Instant) -> Answers<AccountState> {
        let grace = deadline.saturating_duration_since(Instant::now());
        let ask = move |authority: AuthorityClient| async move { authority.shard_of(&account).account(account).await };
        self.ask_patiently(deadline, grace, ask).await
    }

    /// As [`Network::account`], with the balance of one asset.
    pub async fn account_asset(&self, account: AccountId, asset: Asset, deadline: Instant) -> Answers<AccountState> {
        self.ask_all(deadline, move |authority| async move {
            authority.shard_of(&account).account_asset(account, asset).await
        })
        .await
    }

    /// The state of all shards of each authority, from the first shard.
    pub async fn status(&self, deadline: Instant) -> Answers<Vec<ShardStatus>> {
        self.ask_all(deadline, |authority| async move { authority_status(&authority).await }).await
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
        let verified = verify_certificate(certificate, account, sequence, self.domain(), &self.known().committees);
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

    /// Finds valid certificates by name, until the deadline, without those that this client knows to be outdated. Asks one authority, `first` if given, for all of them, and
    /// then the next for those still missing. If an authority does not answer within `GRACE`, the next is asked, too,
    /// while its request goes on.
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
                        tracing::warn!(authority = %name, "an authority sent the certificate of another order, or an outdated one")
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

/// The number of a certificate, and which of the number's certificates it is.
fn numbered(certificate: &VerifiedCertificate) -> (TransferName, (Digest, Epoch)) {
    let transfer = certificate.transfer();
    ((transfer.sender(), transfer.sequence()), (certificate.digest(), certificate.certificate().epoch))
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

/// The state of all shards of an authority, from the first.
///
/// # Errors
/// If a shard does not answer.
pub async fn authority_status(authority: &AuthorityClient) -> Result<Vec<ShardStatus>, ClientError> {
    let mut statuses = Vec::new();
    for shard in authority.shards() {
        statuses.push(shard.status().await?);
    }
    Ok(statuses)
}

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
