//! The committees of all epochs, and a connection to each authority of the current one. The contract or the genesis
//! file names the authorities, never the file of endpoints. Callers verify their answers.
//!
//! An authority that changes its keys changes its name and keeps its address. An endpoint that the file lists under a
//! member's earlier name stays under that name until the authority has given its new one (`names`). Names decide
//! nothing: only signatures count.
//!
//! Members that the file does not list say themselves where they can be reached, to all authorities (`members`).

mod answers;
mod certificates;
mod members;
mod names;

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};
use std::time::Duration;

pub use answers::{Answers, GRACE, authority_status};
pub use certificates::{BogusCertificate, verify_certificate};
pub(crate) use names::NAMES;
pub use names::Names;

use crate::{AuthorityClient, ClientError, ClientOptions, Endpoints, EndpointsError};
use certificates::Outdated;
use fastpay_core::{
    AuthorityName, Committee, CommitteeError, Committees, Domain, Epoch, EpochsError, Genesis, is_recent_member,
};
use members::Told;

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

/// The committees with a client for each authority. Cheap to clone; all clones share the known epochs.
#[derive(Clone, Debug)]
pub struct Network {
    shared: Arc<Shared>,
}

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
    /// claimed to be a member's now, unless the file lists that member or it says itself where it is: whoever left the
    /// committee must not take the place of one that came.
    fn new(committees: Committees, names: Names, told: Told, listed: &[AuthorityClient]) -> Self {
        let is_member = |name: &AuthorityName| committees.current().member(name).is_some();
        let is_listed = |name: &AuthorityName| listed.iter().any(|client| client.name() == *name);
        let news = told.iter().filter(|(name, _)| is_member(name) && !is_listed(name));
        let news: BTreeMap<_, _> = news.map(|(name, (_, client))| (*name, client)).collect();
        let of_file = listed.iter().filter_map(|client| match names.get(&client.name()) {
            Some(name) if !is_member(&client.name()) && is_member(name) => {
                (!is_listed(name) && !news.contains_key(name)).then(|| client.named(*name))
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

    fn known(&self) -> RwLockReadGuard<'_, Known> {
        self.shared.known.read().unwrap_or_else(PoisonError::into_inner)
    }

    /// The committees of all epochs that are known here.
    #[must_use]
    pub fn committees(&self) -> Committees {
        self.known().committees.clone()
    }

    /// The current committee.
    #[must_use]
    pub fn committee(&self) -> Arc<Committee> {
        self.known().committees.current().clone()
    }

    /// The authorities that have an address.
    #[must_use]
    pub fn authorities(&self) -> Arc<[AuthorityClient]> {
        self.known().authorities.clone()
    }

    /// The current names of endpoints that the file lists under other names.
    #[must_use]
    pub fn names(&self) -> Names {
        self.known().names.clone()
    }

    /// Replaces the known committees and the names of their endpoints. Ignored if the newest of `committees` is older
    /// than the newest known one.
    pub fn adopt(&self, committees: Committees, names: Names) {
        let mut known = self.shared.known.write().unwrap_or_else(PoisonError::into_inner);
        if committees.current().epoch() >= known.committees.current().epoch() {
            let mut told = std::mem::take(&mut known.told);
            told.retain(|name, _| is_recent_member(&committees, name));
            if committees.current().epoch() > known.committees.current().epoch() {
                self.forget_outdated();
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

    /// f + 1: of this many equal answers, at least one comes from an honest authority.
    #[must_use]
    pub fn trusted_count(&self) -> usize {
        self.committee().one_honest()
    }
}
