//! A committee and the way to each of its authorities. Who the authorities are comes from the contract (or
//! the genesis file), never from the file of endpoints; what they answer is verified by whoever asks.

use std::sync::Arc;
use std::time::Duration;

use fastpay_core::{
    AccountId, Asset, AuthorityName, Certificate, CertificateError, Committee, CommitteeError, Domain, Genesis,
    SequenceNumber, Transfer, VerifiedCertificate,
};
use fastpay_rpc::{AccountState, AuthorityClient, ClientError, ClientOptions, Endpoints, EndpointsError, ShardStatus};
use tokio::task::JoinSet;
use tokio::time::{Instant, timeout_at};

/// After a quorum has answered a read, the others get this much longer.
const GRACE: Duration = Duration::from_millis(100);
/// Connections and answers of a healthy authority take far less; a silent one should not hold up a read.
const OPTIONS: ClientOptions =
    ClientOptions { connect_timeout: Duration::from_secs(2), request_timeout: Duration::from_secs(5) };

/// Why the committee cannot be spoken to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum NetworkError {
    /// The genesis file lists no committee.
    #[error("the genesis file lists no committee: {0}")]
    Committee(#[from] CommitteeError),
    /// The endpoints cannot be read.
    #[error(transparent)]
    Endpoints(#[from] EndpointsError),
    /// An address is malformed.
    #[error(transparent)]
    Address(#[from] ClientError),
    /// Fewer addresses than a quorum.
    #[error(
        "the endpoints file has addresses of {known} of the {size} authorities, and {quorum} are needed; \
         get the newest file from whoever runs the committee"
    )]
    TooFewEndpoints {
        /// How many members have an address.
        known: usize,
        /// How many members there are.
        size: usize,
        /// How many are needed.
        quorum: usize,
    },
}

/// The answers of the authorities that gave any in time.
pub type Answers<T> = Vec<(AuthorityName, Result<T, ClientError>)>;

/// A committee with a client for each of its authorities. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Network {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    domain: Domain,
    committee: Committee,
    authorities: Vec<AuthorityClient>,
}

impl Network {
    /// The committee with the addresses of `endpoints`, under `domain`. Connections are opened when they
    /// are first used. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Where fewer members than a quorum have an address, or an address is malformed.
    pub fn new(domain: Domain, committee: Committee, endpoints: &Endpoints) -> Result<Self, NetworkError> {
        Self::with_options(domain, committee, endpoints, OPTIONS)
    }

    /// As [`Network::new`] with other time-outs.
    ///
    /// # Errors
    /// As [`Network::new`].
    pub fn with_options(
        domain: Domain,
        committee: Committee,
        endpoints: &Endpoints,
        options: ClientOptions,
    ) -> Result<Self, NetworkError> {
        let mut authorities = Vec::new();
        for entry in &endpoints.authorities {
            if committee.member(&entry.name).is_some() {
                authorities.push(AuthorityClient::new(entry, options)?);
            } else {
                tracing::warn!(authority = %entry.name, "the endpoints file names an authority that is no member");
            }
        }
        let (known, size, quorum) = (authorities.len(), committee.members().len(), committee.quorum());
        if known < quorum {
            return Err(NetworkError::TooFewEndpoints { known, size, quorum });
        }
        Ok(Self { shared: Arc::new(Shared { domain, committee, authorities }) })
    }

    /// The committee of a genesis file, without a Primary.
    ///
    /// # Errors
    /// As [`Network::new`], or the file lists no committee.
    pub fn standalone(genesis: &Genesis, endpoints: &Endpoints) -> Result<Self, NetworkError> {
        Self::new(genesis.domain(), genesis.committee()?, endpoints)
    }

    /// The domain of everything that is signed here.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.shared.domain
    }

    /// The committee.
    #[must_use]
    pub fn committee(&self) -> &Committee {
        &self.shared.committee
    }

    /// The authorities that have an address.
    #[must_use]
    pub fn authorities(&self) -> &[AuthorityClient] {
        &self.shared.authorities
    }

    /// So many equal answers contain one of an honest authority: f + 1.
    #[must_use]
    pub fn trusted_count(&self) -> usize {
        self.committee().faults_tolerated().saturating_add(1)
    }

    /// Asks all authorities at once. Returns when all have answered, or shortly after a quorum has
    /// answered well, or at the `deadline`.
    pub async fn ask_all<T, F, Fut>(&self, deadline: Instant, ask: F) -> Answers<T>
    where
        T: Send + 'static,
        F: Fn(AuthorityClient) -> Fut,
        Fut: Future<Output = Result<T, ClientError>> + Send + 'static,
    {
        let mut asked = JoinSet::new();
        for authority in self.authorities() {
            let (name, answer) = (authority.name(), ask(authority.clone()));
            asked.spawn(async move { (name, answer.await) });
        }
        let (mut answers, mut good, mut until) = (Vec::new(), 0_usize, deadline);
        while let Ok(Some(answer)) = timeout_at(until, asked.join_next()).await {
            let Ok((name, answer)) = answer else { continue };
            good = good.saturating_add(usize::from(answer.is_ok()));
            answers.push((name, answer));
            if good == self.committee().quorum() {
                until = deadline.min(Instant::now() + GRACE);
            }
        }
        answers
    }

    /// An account's state as each authority tells it.
    pub async fn account(&self, account: AccountId, deadline: Instant) -> Answers<AccountState> {
        self.ask_all(deadline, move |authority| async move { authority.shard_of(&account).account(account).await })
            .await
    }

    /// The same, with what it holds of one asset.
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

    /// Checks that a certificate is the one of this sender and number.
    ///
    /// # Errors
    /// Where it is not valid, or another one.
    pub fn verify_certificate(
        &self,
        certificate: Certificate,
        account: AccountId,
        sequence: SequenceNumber,
    ) -> Result<VerifiedCertificate, BogusCertificate> {
        let certificate = certificate.verify(self.domain(), self.committee())?;
        let transfer = certificate.transfer();
        if transfer.sender() != account || transfer.sequence() != sequence {
            return Err(BogusCertificate::Another);
        }
        Ok(certificate)
    }

    /// The certificate that `account` sent under `sequence`, from whichever authority has a valid one
    /// first; none where nobody has.
    pub async fn find_certificate(&self, account: AccountId, sequence: SequenceNumber) -> Option<VerifiedCertificate> {
        let mut asked = JoinSet::new();
        for authority in self.authorities() {
            let authority = authority.clone();
            asked.spawn(async move {
                (authority.name(), authority.shard_of(&account).certificate(account, sequence).await)
            });
        }
        while let Some(answer) = asked.join_next().await {
            let Ok((name, Ok(certificate))) = answer else { continue };
            match self.verify_certificate(certificate, account, sequence) {
                Ok(certificate) => return Some(certificate),
                Err(error) => tracing::warn!(authority = %name, %error, "an authority gave a bad certificate"),
            }
        }
        None
    }

    /// The payment certificate that answers for an entry of `account`'s list of received payments at
    /// `lister`. That one is asked first: a credit arrives after its certificate, so an honest lister has it
    /// itself, with the sender's shard.
    pub(crate) async fn find_received(
        &self,
        account: AccountId,
        lister: AuthorityName,
        sender: AccountId,
        sequence: SequenceNumber,
    ) -> Option<VerifiedCertificate> {
        let own = match self.authorities().iter().find(|authority| authority.name() == lister) {
            Some(lister) => lister.shard_of(&sender).certificate(sender, sequence).await.ok(),
            None => None,
        };
        let own = own.and_then(|certificate| self.verify_certificate(certificate, sender, sequence).ok());
        let certificate = match own {
            Some(certificate) => certificate,
            None => self.find_certificate(sender, sequence).await?,
        };
        match certificate.transfer() {
            Transfer::Payment(payment) if payment.recipient == account => Some(certificate),
            _ => None,
        }
    }
}

/// The state of all shards of an authority, from the first.
///
/// # Errors
/// Where a shard does not answer.
pub(crate) async fn authority_status(authority: &AuthorityClient) -> Result<Vec<ShardStatus>, ClientError> {
    let mut statuses = Vec::new();
    for shard in authority.shards() {
        statuses.push(shard.status().await?);
    }
    Ok(statuses)
}

/// Why a certificate that an authority gave is worth nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BogusCertificate {
    /// It is not valid.
    #[error(transparent)]
    Invalid(#[from] CertificateError),
    /// It is of another sender or number than the one asked for.
    #[error("it is of another sender or sequence number than asked for")]
    Another,
}
