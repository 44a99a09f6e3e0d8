//! A client of one shard, and of one authority with all its shards. What comes back is what that
//! authority says: votes and certificates must still be verified.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fastpay_core::{
    AccountId, Asset, AssetTotals, Authority, AuthorityName, Balance, Certificate, ContractVote, Deposit, Epoch,
    Payment, PrimaryAddress, SequenceNumber, ShardId, ShardLayout, TransactionIndex, TransferOrder, Vote,
};
use tonic::transport::{Certificate as TlsCertificate, ClientTlsConfig, Endpoint};
use tonic::{Code, Status};

use crate::convert::{self, Malformed};
use crate::endpoints::AuthorityEndpoints;
use crate::proto::shard_client::ShardClient as Grpc;
use crate::proto::submit_request::Request;
use crate::proto::submit_response::Response;
use crate::refusal::{Refusal, printable};
use crate::submit::Submitter;
use crate::transport::{Carrier, Transport};
use crate::{MESSAGE_BYTES_MAX, PAGE_ENTRIES_MAX, proto};

/// How long to wait.
#[derive(Clone, Copy, Debug)]
pub struct ClientOptions {
    /// For a connection.
    pub connect_timeout: Duration,
    /// For an answer.
    pub request_timeout: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(3), request_timeout: Duration::from_secs(10) }
    }
}

/// Why an authority gave no good answer.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum ClientError {
    /// The address is not one.
    #[error("{address:?} is not an address of an authority: {reason}")]
    Address {
        /// What was given.
        address: String,
        /// What is wrong with it.
        reason: String,
    },
    /// No connection, or it broke. Try again later; the same bytes can be sent any number of times.
    #[error("the authority cannot be reached: {0}")]
    Unreachable(String),
    /// No answer in time. As above.
    #[error("the authority did not answer within {0:?}")]
    TimedOut(Duration),
    /// It said no.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// It has no such thing (yet).
    #[error("the authority does not have it")]
    NotFound,
    /// It answered what no correct authority answers.
    #[error("the authority gave a malformed answer: {0}")]
    Malformed(String),
}

impl ClientError {
    /// True where the same request may succeed later.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable(_) | Self::TimedOut(_) => true,
            Self::Refused(refusal) => refusal.is_retryable(),
            Self::Address { .. } | Self::NotFound | Self::Malformed(_) => false,
        }
    }

    /// How long to wait at least before the same is tried again, as far as the authority says.
    #[must_use]
    pub fn retry_after(&self) -> Duration {
        match self {
            Self::Refused(Refusal::Busy(retry_after)) => *retry_after,
            _ => Duration::ZERO,
        }
    }

    pub(crate) fn from_status(status: &Status) -> Self {
        let message = printable(status.message());
        match status.code() {
            Code::NotFound => Self::NotFound,
            Code::ResourceExhausted => Self::Refused(Refusal::Busy(Duration::ZERO)),
            Code::InvalidArgument => Self::Refused(Refusal::Malformed(message)),
            Code::FailedPrecondition => Self::Refused(Refusal::Invalid(message)),
            // The connection's own fault (a reset, a peer that does not speak HTTP/2), not an answer.
            Code::Internal if std::error::Error::source(status).is_some() => Self::Unreachable(message),
            Code::OutOfRange | Code::Unimplemented | Code::DataLoss | Code::Internal => Self::Malformed(message),
            _ => Self::Unreachable(message),
        }
    }
}

impl From<Malformed> for ClientError {
    fn from(malformed: Malformed) -> Self {
        Self::Malformed(malformed.to_string())
    }
}

/// An account as one authority knows it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AccountState {
    /// The number of the next order.
    pub next_sequence: SequenceNumber,
    /// The order it is locked on.
    pub pending: Option<TransferOrder>,
    /// What it holds, by asset.
    pub holdings: Vec<(Asset, Balance)>,
    /// How many payments it has received.
    pub received: u64,
    /// How many deposits it has had.
    pub deposits: u64,
    /// It holds more assets than are listed here: see [`ShardClient::account_asset`].
    pub truncated: bool,
    /// Restored from an older copy, the authority may have voted for an order of this account that it does not know.
    pub catching_up: bool,
}

impl AccountState {
    /// What it holds of one asset.
    #[must_use]
    pub fn balance(&self, asset: Asset) -> Balance {
        self.holdings.iter().find(|(held, _)| *held == asset).map_or(Balance::ZERO, |(_, balance)| *balance)
    }
}

/// A payment that an account received, by its order of arrival at that authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Received {
    /// Counted from 0.
    pub number: u64,
    /// The payment. Its certificate is at the sender's shard.
    pub payment: Payment,
}

/// What an authority answers to a batch of redemptions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum BatchAnswer {
    /// Its vote for all of them.
    Vote {
        /// The epoch that it is said to be for.
        epoch: Epoch,
        /// Not verified.
        vote: ContractVote,
    },
    /// It has not confirmed those at these positions, ascending. Confirm them there and ask again.
    Missing(Vec<usize>),
}

/// A part of a history, oldest first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Page<T> {
    /// The entries from the number that was asked for.
    pub entries: Vec<T>,
    /// How many there are in all.
    pub total: u64,
}

/// What a shard says of itself.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShardStatus {
    /// The authority's name.
    pub authority: AuthorityName,
    /// The committee's epoch.
    pub epoch: Epoch,
    /// The chain of the Primary; 0 without one.
    pub chain_id: u64,
    /// The contract; zero without a Primary.
    pub contract: PrimaryAddress,
    /// This shard's number.
    pub shard: ShardId,
    /// How many shards the authority has.
    pub shard_count: u32,
    /// All its deposits up to here are applied.
    pub synchronized: TransactionIndex,
    /// How many redemption certificates it has confirmed.
    pub redemptions: u64,
    /// Sums per asset, for auditors.
    pub totals: Vec<(Asset, AssetTotals)>,
    /// Credits on their way to other shards.
    pub credits_in_flight: u64,
    /// The program's version.
    pub version: String,
    /// The committee as the authority knows it.
    pub committee: Vec<Authority>,
    /// There are more sums than are listed here: see [`ShardClient::status_asset`].
    pub truncated: bool,
}

/// A connection to one shard. Opened when first used, and again after it broke.
#[derive(Clone, Debug)]
pub struct ShardClient {
    grpc: Grpc<Transport>,
    submitter: Submitter,
    request_timeout: Duration,
}

impl ShardClient {
    /// A client of the shard at `address`, `http://host:port` or `https://host:port`; `tls_ca` is the
    /// PEM of the certificate authority to trust for the latter. Must be called within a tokio
    /// runtime.
    ///
    /// # Errors
    /// Where the address or the certificate is malformed.
    pub fn new(address: &str, tls_ca: Option<&str>, options: ClientOptions) -> Result<Self, ClientError> {
        let wrong = |reason: String| ClientError::Address { address: address.to_owned(), reason };
        let mut endpoint = Endpoint::from_shared(address.to_owned())
            .map_err(|error| wrong(error.to_string()))?
            .connect_timeout(options.connect_timeout)
            .tcp_nodelay(true)
            .http2_keep_alive_interval(Duration::from_secs(20))
            .keep_alive_timeout(Duration::from_secs(10));
        match (endpoint.uri().scheme_str(), tls_ca) {
            (Some("http"), _) => {}
            (Some("https"), Some(pem)) => {
                let tls = ClientTlsConfig::new().ca_certificate(TlsCertificate::from_pem(pem));
                endpoint = endpoint.tls_config(tls).map_err(|error| wrong(error.to_string()))?;
            }
            (Some("https"), None) => return Err(wrong("give the file of its certificate authority as tlsCa".into())),
            _ => return Err(wrong("it must start with http:// or https://".into())),
        }
        Ok(Self::over(Transport::Connection(endpoint.connect_lazy()), options))
    }

    /// A client whose calls are carried by something else than a connection. Must be called within a tokio
    /// runtime.
    #[must_use]
    pub fn carried(carrier: Arc<dyn Carrier>, options: ClientOptions) -> Self {
        Self::over(Transport::Carried(carrier), options)
    }

    fn over(transport: Transport, options: ClientOptions) -> Self {
        let grpc = Grpc::new(transport.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
        Self { grpc, submitter: Submitter::start(transport), request_timeout: options.request_timeout }
    }

    async fn in_time<T>(
        &self,
        answer: impl Future<Output = Result<tonic::Response<T>, Status>>,
    ) -> Result<T, ClientError> {
        match tokio::time::timeout(self.request_timeout, answer).await {
            Ok(Ok(response)) => Ok(response.into_inner()),
            Ok(Err(status)) => Err(ClientError::from_status(&status)),
            Err(_) => Err(ClientError::TimedOut(self.request_timeout)),
        }
    }

    async fn submit(&self, request: Request) -> Result<Response, ClientError> {
        match tokio::time::timeout(self.request_timeout, self.submitter.submit(request)).await {
            Ok(Ok(Response::Refused(refused))) => Err(ClientError::Refused(refused.try_into()?)),
            Ok(answer) => answer,
            Err(_) => Err(ClientError::TimedOut(self.request_timeout)),
        }
    }

    /// Asks for a vote. It comes with the epoch that it is said to be for, and is not verified here.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn order(&self, order: &TransferOrder) -> Result<(Epoch, Vote), ClientError> {
        match self.submit(Request::Order(order.into())).await? {
            Response::Vote(vote) => Ok((Epoch(vote.epoch), vote.try_into()?)),
            _ => Err(ClientError::Malformed("no vote in the answer to an order".into())),
        }
    }

    /// Has a certificate confirmed. Returns the sender's next sequence number there.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn confirm(&self, certificate: &Certificate) -> Result<SequenceNumber, ClientError> {
        match self.submit(Request::Certificate(certificate.into())).await? {
            Response::Confirmed(confirmed) => Ok(SequenceNumber(confirmed.next_sequence)),
            _ => Err(ClientError::Malformed("no confirmation in the answer to a certificate".into())),
        }
    }

    /// An account's state, with as many of its assets as the shard lists.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn account(&self, account: AccountId) -> Result<AccountState, ClientError> {
        self.read_account(account, Bytes::new()).await
    }

    /// An account's state with what it holds of one asset, however many others it holds.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn account_asset(&self, account: AccountId, asset: Asset) -> Result<AccountState, ClientError> {
        let mut state = self.read_account(account, bytes(asset.0.as_slice())).await?;
        state.holdings.retain(|(held, _)| *held == asset);
        Ok(state)
    }

    async fn read_account(&self, account: AccountId, asset: Bytes) -> Result<AccountState, ClientError> {
        let request = proto::AccountRequest { account: bytes(&account.0), asset };
        let answer = self.in_time(self.grpc.clone().get_account(request)).await?;
        let holdings = answer.holdings.iter();
        Ok(AccountState {
            next_sequence: SequenceNumber(answer.next_sequence),
            pending: answer.pending.map(TryInto::try_into).transpose()?,
            holdings: holdings
                .map(|held| Ok((convert::asset(&held.asset)?, convert::balance("balance", &held.balance)?)))
                .collect::<Result<_, Malformed>>()?,
            received: answer.received,
            deposits: answer.deposits,
            truncated: answer.truncated,
            catching_up: answer.catching_up,
        })
    }

    /// The certificate that `account` sent under `sequence`.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] where it is not confirmed there; see [`ClientError`].
    pub async fn certificate(&self, account: AccountId, sequence: SequenceNumber) -> Result<Certificate, ClientError> {
        let request = proto::CertificateRequest { account: bytes(&account.0), sequence: sequence.0 };
        Ok(self.in_time(self.grpc.clone().get_certificate(request)).await?.try_into()?)
    }

    /// Payments received by `account`, from number `start`, at most a page of them.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn received(&self, account: AccountId, start: u64) -> Result<Page<Received>, ClientError> {
        let answer = self.in_time(self.grpc.clone().list_received(account_page(account, start))).await?;
        let entries = answer.payments.into_iter().map(|entry| {
            let payment = entry.payment.ok_or(Malformed::Missing("payment"))?.try_into()?;
            Ok(Received { number: entry.number, payment })
        });
        Ok(Page { entries: entries.collect::<Result<_, Malformed>>()?, total: answer.total })
    }

    /// Deposits of `account`, from its deposit number `start`, at most a page of them.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn deposits(&self, account: AccountId, start: u64) -> Result<Page<Deposit>, ClientError> {
        let answer = self.in_time(self.grpc.clone().list_deposits(account_page(account, start))).await?;
        let entries = answer.deposits.into_iter().map(TryInto::try_into).collect::<Result<_, Malformed>>()?;
        Ok(Page { entries, total: answer.total })
    }

    /// Redemption certificates confirmed at this shard, from number `start`, at most a page of them.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn redemptions(&self, start: u64) -> Result<Page<Certificate>, ClientError> {
        let request = proto::PageRequest { start, limit: PAGE_ENTRIES_MAX };
        let answer = self.in_time(self.grpc.clone().list_redemptions(request)).await?;
        let entries = answer.certificates.into_iter().map(TryInto::try_into).collect::<Result<_, Malformed>>()?;
        Ok(Page { entries, total: answer.total })
    }

    /// Asks for one vote for many redemptions, at most [`crate::REDEMPTION_BATCH_MAX`], in this order. Any shard
    /// answers for all of its authority. The vote is not verified here.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn vote_redemption_batch(
        &self,
        redemptions: &[(AccountId, SequenceNumber)],
    ) -> Result<BatchAnswer, ClientError> {
        use proto::redemption_batch_response::Response;
        let request = proto::RedemptionBatchRequest::from(redemptions);
        let answer = self.in_time(self.grpc.clone().vote_redemption_batch(request)).await?;
        match answer.response.ok_or(Malformed::Missing("response"))? {
            Response::Vote(vote) => {
                let (epoch, vote) = vote.try_into()?;
                Ok(BatchAnswer::Vote { epoch, vote })
            }
            Response::Missing(missing) => {
                let positions: Vec<usize> = missing.positions.iter().map(|position| *position as usize).collect();
                let in_range = positions.iter().all(|position| *position < redemptions.len());
                if positions.is_empty() || !positions.is_sorted_by(|a, b| a < b) || !in_range {
                    return Err(Malformed::OutOfRange("positions").into());
                }
                Ok(BatchAnswer::Missing(positions))
            }
            Response::Refused(refused) => Err(ClientError::Refused(refused.try_into()?)),
        }
    }

    /// What the shard says of itself, with the sums of as many assets as it lists.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn status(&self) -> Result<ShardStatus, ClientError> {
        self.read_status(Bytes::new()).await
    }

    /// What the shard says of itself with the sums of one asset, however many others it has.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn status_asset(&self, asset: Asset) -> Result<ShardStatus, ClientError> {
        let mut status = self.read_status(bytes(asset.0.as_slice())).await?;
        status.totals.retain(|(of, _)| *of == asset);
        Ok(status)
    }

    async fn read_status(&self, asset: Bytes) -> Result<ShardStatus, ClientError> {
        let answer = self.in_time(self.grpc.clone().get_status(proto::StatusRequest { asset })).await?;
        let totals = answer.totals.iter().map(|totals| {
            let balance = |bytes: &Bytes| convert::balance("totals", bytes);
            let sums = AssetTotals {
                accounts: balance(&totals.accounts)?,
                deposited: balance(&totals.deposited)?,
                credited: balance(&totals.credited)?,
                forwarded: balance(&totals.forwarded)?,
                redeemed: balance(&totals.redeemed)?,
            };
            Ok((convert::asset(&totals.asset)?, sums))
        });
        let committee = answer.committee.iter().map(|member| {
            Ok(Authority {
                name: convert::authority_name("voting_key", &member.voting_key)?,
                redemption_key: convert::primary_address("redemption_key", &member.redemption_key)?,
            })
        });
        Ok(ShardStatus {
            authority: convert::authority_name("authority", &answer.authority)?,
            epoch: Epoch(answer.epoch),
            chain_id: answer.chain_id,
            contract: convert::primary_address("contract", &answer.contract)?,
            shard: ShardId(answer.shard),
            shard_count: answer.shard_count,
            synchronized: TransactionIndex(answer.synchronized),
            redemptions: answer.redemptions,
            totals: totals.collect::<Result<_, Malformed>>()?,
            credits_in_flight: answer.credits_in_flight,
            version: printable(&answer.version),
            committee: committee.collect::<Result<_, Malformed>>()?,
            truncated: answer.truncated,
        })
    }
}

fn bytes(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

fn account_page(account: AccountId, start: u64) -> proto::AccountPageRequest {
    proto::AccountPageRequest { account: bytes(&account.0), start, limit: PAGE_ENTRIES_MAX }
}

/// A client of one authority. Requests about an account go straight to the shard that owns it there.
#[derive(Clone, Debug)]
pub struct AuthorityClient {
    name: AuthorityName,
    layout: ShardLayout,
    shards: Vec<ShardClient>,
}

impl AuthorityClient {
    /// Connects lazily to all shards of an authority. Must be called within a tokio runtime.
    ///
    /// # Errors
    /// Where an address is malformed, there is none, or the certificate authority's file cannot be
    /// read.
    pub fn new(endpoints: &AuthorityEndpoints, options: ClientOptions) -> Result<Self, ClientError> {
        let wrong = |reason: &str| ClientError::Address { address: endpoints.name.to_string(), reason: reason.into() };
        let tls_ca = match &endpoints.tls_ca {
            None => None,
            Some(path) => Some(std::fs::read_to_string(path).map_err(|e| wrong(&format!("{}: {e}", path.display())))?),
        };
        let shards = endpoints.shards.iter().map(|address| ShardClient::new(address, tls_ca.as_deref(), options));
        Self::of(endpoints.name, shards.collect::<Result<_, _>>()?)
    }

    /// A client of the authority of this name, by the clients of all its shards, from the first.
    ///
    /// # Errors
    /// Where there is no shard.
    pub fn of(name: AuthorityName, shards: Vec<ShardClient>) -> Result<Self, ClientError> {
        let none = || ClientError::Address { address: name.to_string(), reason: "no shard is listed".into() };
        let count = u32::try_from(shards.len()).ok().and_then(std::num::NonZeroU32::new).ok_or_else(none)?;
        Ok(Self { name, layout: ShardLayout::new(count), shards })
    }

    /// The authority's name, as the file of endpoints gives it.
    #[must_use]
    pub fn name(&self) -> AuthorityName {
        self.name
    }

    /// The same authority under another name: it may have changed its keys since the file was written.
    #[must_use]
    pub fn named(&self, name: AuthorityName) -> Self {
        Self { name, ..self.clone() }
    }

    /// Its shards, from the first.
    #[must_use]
    pub fn shards(&self) -> &[ShardClient] {
        &self.shards
    }

    /// The shard that owns `account` at this authority.
    #[must_use]
    pub fn shard_of(&self, account: &AccountId) -> &ShardClient {
        let index = self.layout.shard_of(account).0 as usize;
        self.shards.get(index).expect("the layout has as many shards as the list")
    }
}
