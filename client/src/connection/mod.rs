//! A client of one shard, and of one authority with all its shards. It does not verify answers: callers must verify
//! votes and certificates.

mod authority;
mod error;
mod submit;
mod transport;

use std::sync::Arc;
use std::time::Duration;

pub use authority::AuthorityClient;
pub use error::ClientError;
use submit::Submitter;
pub use transport::Carrier;
use transport::Transport;

use bytes::Bytes;
use fastpay_core::checkpoint::ArchivedPage;
use fastpay_core::{
    AccountId, Asset, AttestedCertificate, AuthorityName, Certificate, Deposit, Epoch, JournalPosition, SequenceNumber,
    SignedEndpoint, TransferOrder, Vote,
};
use fastpay_rpc::proto::shard_client::ShardClient as Grpc;
use fastpay_rpc::proto::submit_request::Request;
use fastpay_rpc::proto::submit_response::Response;
use fastpay_rpc::{
    AccountState, ArchiveFile, ArchivePart, ArchivedRequest, BatchAnswer, Certificates, ConfirmedPage,
    MESSAGE_BYTES_MAX, Malformed, PAGE_ENTRIES_MAX, Page, Received, ShardStatus, TransferName, UnlockAnswer, proto,
};
use tonic::transport::{Certificate as TlsCertificate, ClientTlsConfig, Endpoint};
use tonic::{Code, Status};

/// Time-outs.
#[derive(Clone, Copy, Debug)]
pub struct ClientOptions {
    /// The maximum time to open a connection.
    pub connect_timeout: Duration,
    /// The maximum time from a request to its answer.
    pub request_timeout: Duration,
}

impl Default for ClientOptions {
    fn default() -> Self {
        Self { connect_timeout: Duration::from_secs(3), request_timeout: Duration::from_secs(10) }
    }
}

/// A connection to one shard. It is opened at first use, and again after it broke.
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
    /// If the address or the certificate is malformed.
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

    /// A client that sends its calls through `carrier` instead of a connection. Must be called within a tokio runtime.
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

    /// Asks for a vote. Returns the epoch that the authority names, and an unverified vote.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn order(&self, order: &TransferOrder) -> Result<(Epoch, Vote), ClientError> {
        match self.submit(Request::Order(order.into())).await? {
            Response::Vote(vote) => Ok((Epoch(vote.epoch), vote.try_into()?)),
            _ => Err(ClientError::Malformed("no vote in the answer to an order".into())),
        }
    }

    /// Submits a certificate for confirmation. Returns the authority's epoch (`None` from a release that sends none)
    /// and the sender's next sequence number there.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn confirm(&self, certificate: &Certificate) -> Result<(Option<Epoch>, SequenceNumber), ClientError> {
        self.confirmation(Request::Certificate(certificate.into())).await
    }

    /// The same, of a certificate that members of the current committee attest.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn confirm_attested(
        &self,
        attested: &AttestedCertificate,
    ) -> Result<(Option<Epoch>, SequenceNumber), ClientError> {
        self.confirmation(Request::Attested(attested.into())).await
    }

    async fn confirmation(&self, request: Request) -> Result<(Option<Epoch>, SequenceNumber), ClientError> {
        match self.submit(request).await? {
            Response::Confirmed(confirmed) => Ok((confirmed.epoch.map(Epoch), SequenceNumber(confirmed.next_sequence))),
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

    /// An account's state with its balance of `asset` alone, even if it holds more assets than the shard lists.
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
        Ok(self.in_time(self.grpc.clone().get_account(request)).await?.try_into()?)
    }

    /// The certificate that `account` sent under `sequence`.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] where it is not confirmed there; see [`ClientError`].
    pub async fn certificate(&self, account: AccountId, sequence: SequenceNumber) -> Result<Certificate, ClientError> {
        let request = proto::CertificateRequest { account: bytes(&account.0), sequence: sequence.0 };
        Ok(self.in_time(self.grpc.clone().get_certificate(request)).await?.try_into()?)
    }

    /// Reads certificates by name, at most a page of them. Any shard answers for its whole authority: [`Certificates`].
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn certificates(&self, names: &[TransferName]) -> Result<Certificates, ClientError> {
        let request = proto::CertificatesRequest::from(names);
        let answer = Certificates::try_from(self.in_time(self.grpc.clone().read_certificates(request)).await?)?;
        if !(1..=names.len()).contains(&answer.looked_up) || answer.found.len() > answer.looked_up {
            return Err(Malformed::OutOfRange("looked_up").into());
        }
        Ok(answer)
    }

    /// Payments received by `account`, from number `start`, at most a page of them.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn received(&self, account: AccountId, start: u64) -> Result<Page<Received>, ClientError> {
        Ok(self.in_time(self.grpc.clone().list_received(account_page(account, start))).await?.try_into()?)
    }

    /// Deposits of `account`, from its deposit number `start`, at most a page of them.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn deposits(&self, account: AccountId, start: u64) -> Result<Page<Deposit>, ClientError> {
        Ok(self.in_time(self.grpc.clone().list_deposits(account_page(account, start))).await?.try_into()?)
    }

    /// Redemption certificates confirmed at this shard, from number `start`, at most a page of them.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn redemptions(&self, start: u64) -> Result<Page<Certificate>, ClientError> {
        let request = proto::PageRequest { start, limit: PAGE_ENTRIES_MAX };
        Ok(self.in_time(self.grpc.clone().list_redemptions(request)).await?.try_into()?)
    }

    /// A part of a file of the authority's archive of certified checkpoints, from an offset on; `None` if it has no such
    /// file. An earlier release has none. Any shard answers for its whole authority.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn archive_part(
        &self,
        number: u64,
        file: ArchiveFile,
        offset: u64,
    ) -> Result<Option<ArchivePart>, ClientError> {
        let mut request = proto::ArchiveRequest { number, offset, ..Default::default() };
        request.set_file(file.into());
        let mut grpc = self.grpc.clone();
        self.part(async { grpc.read_archive(request).await }).await
    }

    /// A part of a member's Closing of an epoch, or of the authority's own, from an offset on; `None` if it does not have
    /// it. An earlier release has none. Any shard answers for its whole authority.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn closing_part(
        &self,
        epoch: Epoch,
        member: Option<AuthorityName>,
        offset: u64,
    ) -> Result<Option<ArchivePart>, ClientError> {
        let authority = member.map(|member| Bytes::copy_from_slice(&member.0)).unwrap_or_default();
        let mut grpc = self.grpc.clone();
        self.part(async { grpc.read_closing(proto::ClosingRequest { epoch: epoch.0, offset, authority }).await }).await
    }

    /// Where members can be reached, as they say themselves, unverified; none from an earlier release. A member that asks
    /// gives its `own` endpoint. Any shard answers for its whole authority.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn endpoints(&self, own: Option<&SignedEndpoint>) -> Result<Vec<SignedEndpoint>, ClientError> {
        let mut grpc = self.grpc.clone();
        let answer = async {
            match grpc.exchange_endpoints(proto::EndpointsRequest { own: own.map(Into::into) }).await {
                Err(status) if status.code() == Code::Unimplemented => {
                    Ok(tonic::Response::new(proto::EndpointsResponse::default()))
                }
                answer => answer,
            }
        };
        Ok(self.in_time(answer).await?.try_into()?)
    }

    async fn part(
        &self,
        answer: impl Future<Output = Result<tonic::Response<proto::ArchivePart>, Status>>,
    ) -> Result<Option<ArchivePart>, ClientError> {
        let answer = async {
            match answer.await {
                Err(status) if matches!(status.code(), Code::NotFound | Code::Unimplemented) => {
                    Ok(tonic::Response::new(None))
                }
                answer => answer.map(|part| part.map(Some)),
            }
        };
        Ok(self.in_time(answer).await?.map(ArchivePart::try_from).transpose()?)
    }

    /// Entries of an account from the authority's archive of certified checkpoints, unverified. Any shard answers for its
    /// whole authority.
    ///
    /// # Errors
    /// [`ClientError::NotFound`] if it has no archive, or none that reaches so far back, as earlier releases; see
    /// [`ClientError`].
    pub async fn archived(&self, request: ArchivedRequest) -> Result<ArchivedPage, ClientError> {
        let mut grpc = self.grpc.clone();
        let answer = async {
            let answer = grpc.read_archived(proto::ArchivedRequest::from(request)).await;
            answer.map_err(|status| match status.code() {
                Code::Unimplemented => Status::not_found("an earlier release"),
                _ => status,
            })
        };
        Ok(self.in_time(answer).await?.try_into()?)
    }

    /// The names of certificates confirmed at this shard, from a cursor that an earlier page returned; the first cursor
    /// is 0. `None` if the shard does not know the cursor.
    ///
    /// # Errors
    /// [`ClientError::Malformed`] if the next cursor lies before this one; see [`ClientError`].
    pub async fn confirmed(&self, cursor: JournalPosition) -> Result<Option<ConfirmedPage>, ClientError> {
        let request = proto::ConfirmedRequest { cursor: cursor.0 };
        match tokio::time::timeout(self.request_timeout, self.grpc.clone().list_confirmed(request)).await {
            Ok(Err(status)) if status.code() == Code::OutOfRange => Ok(None),
            Ok(Err(status)) => Err(ClientError::from_status(&status)),
            Err(_) => Err(ClientError::TimedOut(self.request_timeout)),
            Ok(Ok(page)) => {
                let page: ConfirmedPage = page.into_inner().try_into()?;
                if page.next < cursor || (page.next == cursor && !page.names.is_empty()) {
                    return Err(Malformed::OutOfRange("next").into());
                }
                Ok(Some(page))
            }
        }
    }

    /// Asks for one vote for many redemptions, at most [`fastpay_rpc::REDEMPTION_BATCH_MAX`], in this order. Any shard
    /// answers for all of its authority. The vote is not verified here.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn vote_redemption_batch(&self, redemptions: &[TransferName]) -> Result<BatchAnswer, ClientError> {
        use proto::redemption_batch_response::Response;
        let request = proto::RedemptionBatchRequest::from(redemptions);
        let answer = self.in_time(self.grpc.clone().vote_redemption_batch(request)).await?;
        match answer.response.ok_or(Malformed::Missing("response"))? {
            Response::Vote(vote) => {
                let (epoch, vote) = vote.try_into()?;
                Ok(BatchAnswer::Vote { epoch, vote })
            }
            Response::Missing(missing) => Ok(BatchAnswer::Missing(positions(&missing, redemptions.len())?)),
            Response::Uncovered(uncovered) => Ok(BatchAnswer::Uncovered(positions(&uncovered, redemptions.len())?)),
            Response::Refused(refused) => Err(ClientError::Refused(refused.try_into()?)),
        }
    }

    /// Asks for the authority's vote about a number of an account of this shard that its owner asked to unlock. The
    /// certificate and the vote are not verified here.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn vote_unlock(
        &self,
        (account, sequence): TransferName,
        unanimous: bool,
    ) -> Result<UnlockAnswer, ClientError> {
        use proto::unlock_vote_response::Response;
        let request = proto::UnlockVoteRequest { account: bytes(&account.0), sequence: sequence.0, unanimous };
        let answer = self.in_time(self.grpc.clone().vote_unlock(request)).await?;
        match answer.response.ok_or(Malformed::Missing("response"))? {
            Response::Void(vote) => {
                let (epoch, vote) = vote.try_into()?;
                Ok(UnlockAnswer::Void { epoch, vote })
            }
            Response::Certificate(vote) => Ok(vote.try_into()?),
            Response::Refused(refused) => Err(ClientError::Refused(refused.try_into()?)),
        }
    }

    /// The shard's status, with the sums of as many assets as it lists.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn status(&self) -> Result<ShardStatus, ClientError> {
        self.read_status(Bytes::new()).await
    }

    /// The shard's status with the sums of `asset` alone, even if it has more assets than it lists.
    ///
    /// # Errors
    /// See [`ClientError`].
    pub async fn status_asset(&self, asset: Asset) -> Result<ShardStatus, ClientError> {
        let mut status = self.read_status(bytes(asset.0.as_slice())).await?;
        status.totals.retain(|(of, _)| *of == asset);
        Ok(status)
    }

    async fn read_status(&self, asset: Bytes) -> Result<ShardStatus, ClientError> {
        Ok(self.in_time(self.grpc.clone().get_status(proto::StatusRequest { asset })).await?.try_into()?)
    }
}

fn bytes(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

fn account_page(account: AccountId, start: u64) -> proto::AccountPageRequest {
    proto::AccountPageRequest { account: bytes(&account.0), start, limit: PAGE_ENTRIES_MAX }
}

/// Parses positions in a batch of `count` redemptions: at least one, ascending, in range.
fn positions(listed: &proto::MissingRedemptions, count: usize) -> Result<Vec<usize>, Malformed> {
    let positions: Vec<usize> = listed.positions.iter().map(|position| *position as usize).collect();
    let in_range = positions.iter().all(|position| *position < count);
    if positions.is_empty() || !positions.is_sorted_by(|a, b| a < b) || !in_range {
        return Err(Malformed::OutOfRange("positions"));
    }
    Ok(positions)
}
