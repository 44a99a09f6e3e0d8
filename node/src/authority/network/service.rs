//! The gRPC service of one shard: the stream of requests, and the reads.

use std::sync::Arc;

use fastpay_core::{AccountId, Asset, AuthorityName, Epoch, JournalPosition, Pruned, SequenceNumber, SignedEndpoint};
use fastpay_rpc::proto;
use fastpay_rpc::proto::shard_server::Shard as ShardRpc;
use fastpay_rpc::{Malformed, PRUNED_CHECKPOINT_KEY, PRUNED_FIRST_KEY, Refusal, TransferName};
use tokio::sync::{Semaphore, watch};
use tonic::{Request, Response, Status, Streaming};

use super::batch_vote::{NoVote, vote_for_redemptions};
use super::certificates::read_certificates;
use super::reads::Range;
use super::reads::{ReadError, Reads};
use super::submit::{self, Answers};
use super::unlock_vote::{NoUnlockVote, vote_for_unlock};
use super::{NetworkLimits, ShardContext, layout_of};
use crate::authority::certification::NotArchived;
use crate::authority::joining::joining;
use crate::authority::shard::ClientReputation;

/// Answers one shard's clients.
pub(super) struct ShardService {
    pub(super) context: Arc<ShardContext>,
    pub(super) reads: Reads,
    stop: watch::Receiver<bool>,
}

impl ShardService {
    pub(super) fn new(context: ShardContext, limits: NetworkLimits, stop: watch::Receiver<bool>) -> Self {
        let history_reads = Arc::new(Semaphore::new(limits.history_reads_max));
        let reads = Reads::new(context.handle.clone(), context.history.clone(), history_reads);
        Self { context: Arc::new(context), reads, stop }
    }

    /// Parses the account of a request, which must belong to this shard.
    fn owned(&self, account: &[u8]) -> Result<AccountId, Status> {
        let id = AccountId(account.try_into().map_err(|_| Status::invalid_argument("an account has 32 bytes"))?);
        self.check_owner(id)?;
        Ok(id)
    }

    fn check_owner(&self, account: AccountId) -> Result<(), Status> {
        let owner = layout_of(&self.context.shards).shard_of(&account);
        if owner == self.context.shard {
            return Ok(());
        }
        Err(Status::failed_precondition(format!(
            "account {account} belongs to shard {owner} of this authority; ask there"
        )))
    }
}

impl From<ReadError> for Status {
    fn from(error: ReadError) -> Self {
        match error {
            ReadError::Busy => Self::resource_exhausted(error.to_string()),
            ReadError::Stopping => Self::unavailable(error.to_string()),
            ReadError::Unreadable => Self::data_loss(error.to_string()),
            ReadError::Pruned(pruned) => pruned_status(&pruned),
        }
    }
}

impl From<NotArchived> for Status {
    fn from(reason: NotArchived) -> Self {
        match reason {
            NotArchived::NoArchive | NotArchived::Empty | NotArchived::TooOld(_) | NotArchived::Recovered(..) => {
                Self::not_found(reason.to_string())
            }
            NotArchived::Busy => Self::resource_exhausted(reason.to_string()),
            NotArchived::Unreadable => Self::data_loss(reason.to_string()),
        }
    }
}

/// Earlier clients take it for a refusal; the details are for those that know of it.
fn pruned_status(pruned: &Pruned) -> Status {
    let mut status = Status::failed_precondition(pruned.to_string());
    status.metadata_mut().insert(PRUNED_FIRST_KEY, pruned.first.into());
    status.metadata_mut().insert(PRUNED_CHECKPOINT_KEY, pruned.checkpoint.into());
    status
}

/// Parses the asset of a request, if it names one.
fn asset(bytes: &[u8]) -> Result<Option<Asset>, Status> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let bytes: [u8; 20] = bytes.try_into().map_err(|_| Status::invalid_argument("an asset has 20 bytes"))?;
    Ok(Some(Asset(bytes.into())))
}

fn malformed(malformed: Malformed) -> Status {
    Status::invalid_argument(malformed.to_string())
}

#[tonic::async_trait]
impl ShardRpc for ShardService {
    type SubmitStream = Answers;

    async fn submit(&self, request: Request<Streaming<proto::SubmitRequest>>) -> Result<Response<Answers>, Status> {
        if *self.stop.borrow() {
            return Err(ReadError::Stopping.into());
        }
        let peer = request.extensions().get::<Arc<ClientReputation>>().cloned().unwrap_or_default();
        Ok(Response::new(submit::serve(self.context.clone(), peer, request.into_inner(), self.stop.clone())))
    }

    async fn get_account(
        &self,
        request: Request<proto::AccountRequest>,
    ) -> Result<Response<proto::AccountResponse>, Status> {
        let request = request.into_inner();
        let id = self.owned(&request.account)?;
        let voter_status = self.context.voter_status.borrow().clone();
        let state = self.reads.account_state(&voter_status, id, asset(&request.asset)?).await?;
        Ok(Response::new((&state).into()))
    }

    async fn get_certificate(
        &self,
        request: Request<proto::CertificateRequest>,
    ) -> Result<Response<proto::Certificate>, Status> {
        let request = request.into_inner();
        let account = self.owned(&request.account)?;
        match self.reads.sent_certificate(account, SequenceNumber(request.sequence)).await? {
            Some(certificate) => Ok(Response::new(certificate.as_ref().into())),
            None => Err(Status::not_found("no certificate of this number is confirmed here")),
        }
    }

    async fn read_certificates(
        &self,
        request: Request<proto::CertificatesRequest>,
    ) -> Result<Response<proto::CertificatesResponse>, Status> {
        let names: Vec<TransferName> = request.into_inner().try_into().map_err(malformed)?;
        let answer = read_certificates(&self.context.shards, &self.reads, names).await?;
        Ok(Response::new((&answer).into()))
    }

    async fn list_confirmed(
        &self,
        request: Request<proto::ConfirmedRequest>,
    ) -> Result<Response<proto::ConfirmedPage>, Status> {
        let cursor = JournalPosition(request.into_inner().cursor);
        match self.reads.confirmed(cursor).await? {
            Some(page) => Ok(Response::new((&page).into())),
            None => Err(Status::out_of_range("the cursor is not one of this shard's; begin with 0")),
        }
    }

    async fn read_archive(
        &self,
        request: Request<proto::ArchiveRequest>,
    ) -> Result<Response<proto::ArchivePart>, Status> {
        let request = request.into_inner();
        let file = request.file().try_into().map_err(malformed)?;
        let not_found = || Status::not_found("this authority's archive has no such file");
        let archive = self.context.archive.clone().ok_or_else(not_found)?;
        let held = archive.clone();
        let read = move || held.read_part(request.number, file, request.offset);
        let part = self.reads.blocking(move || Ok(read())).await?.map_err(|error| {
            tracing::error!(%error, "the archive cannot be read");
            ReadError::Unreadable
        })?;
        if let Some(part) = part {
            return Ok(Response::new(part.into()));
        }
        let stored = archive.read_stored_part(request.number, file, request.offset).await.map_err(|error| {
            tracing::warn!(%error, "a peer's read of the archive is not answered");
            Status::unavailable("this authority's archive cannot be read now; ask another one")
        })?;
        Ok(Response::new(stored.ok_or_else(not_found)?.into()))
    }

    async fn read_closing(
        &self,
        request: Request<proto::ClosingRequest>,
    ) -> Result<Response<proto::ArchivePart>, Status> {
        let (request, context) = (request.into_inner(), &self.context);
        let not_found = || Status::not_found("this authority does not have this Closing");
        let epoch = Epoch(request.epoch);
        let member = if request.authority.is_empty() {
            context.voter_status.borrow().keys_in(epoch).map(|keys| keys.public().name).ok_or_else(not_found)?
        } else {
            let name = request.authority.as_ref().try_into();
            AuthorityName(name.map_err(|_| Status::invalid_argument("an authority's name has 32 bytes"))?)
        };
        let closings = context.closings.clone();
        let read = move || closings.read_part((epoch, member), request.offset);
        let part = self.reads.blocking(move || Ok(read())).await?.map_err(|error| {
            tracing::error!(%error, "the Closing cannot be read");
            ReadError::Unreadable
        })?;
        Ok(Response::new(part.ok_or_else(not_found)?.into()))
    }

    async fn exchange_endpoints(
        &self,
        request: Request<proto::EndpointsRequest>,
    ) -> Result<Response<proto::EndpointsResponse>, Status> {
        let own: Option<SignedEndpoint> =
            request.into_inner().own.map(TryInto::try_into).transpose().map_err(malformed)?;
        let (peers, voter_status) = (&self.context.peers, self.context.voter_status.borrow().clone());
        peers.learn(own, voter_status.committees());
        let endpoints = peers.tell(voter_status.committees()).iter().map(Into::into).collect();
        Ok(Response::new(proto::EndpointsResponse { endpoints }))
    }

    async fn read_archived(
        &self,
        request: Request<proto::ArchivedRequest>,
    ) -> Result<Response<proto::ArchivedPage>, Status> {
        let request = request.into_inner().try_into().map_err(malformed)?;
        let page = self.context.archived.read(request).await?;
        Ok(Response::new((&page).into()))
    }

    async fn list_received(
        &self,
        request: Request<proto::AccountPageRequest>,
    ) -> Result<Response<proto::ReceivedPage>, Status> {
        let request = request.into_inner();
        let id = self.owned(&request.account)?;
        let page = self.reads.received(id, Range { start: request.start, limit: request.limit }).await?;
        Ok(Response::new((&page).into()))
    }

    async fn list_deposits(
        &self,
        request: Request<proto::AccountPageRequest>,
    ) -> Result<Response<proto::DepositPage>, Status> {
        let request = request.into_inner();
        let id = self.owned(&request.account)?;
        let page = self.reads.deposits(id, Range { start: request.start, limit: request.limit }).await?;
        Ok(Response::new((&page).into()))
    }

    async fn list_redemptions(
        &self,
        request: Request<proto::PageRequest>,
    ) -> Result<Response<proto::CertificatePage>, Status> {
        let request = request.into_inner();
        let voter_status = self.context.voter_status.borrow().clone();
        let page = self.reads.redemptions(&voter_status, Range { start: request.start, limit: request.limit }).await?;
        Ok(Response::new((&page).into()))
    }

    async fn vote_redemption_batch(
        &self,
        request: Request<proto::RedemptionBatchRequest>,
    ) -> Result<Response<proto::RedemptionBatchResponse>, Status> {
        use proto::redemption_batch_response::Response as Answer;
        let answer = |response| Ok(Response::new(proto::RedemptionBatchResponse { response: Some(response) }));
        let names = match request.into_inner().try_into() {
            Ok(names) => names,
            Err(malformed) => {
                return answer(Answer::Refused((&Refusal::Malformed(Malformed::to_string(&malformed))).into()));
            }
        };
        let context = &self.context;
        let voter_status = context.voter_status.borrow().clone();
        match vote_for_redemptions(&context.domain, &voter_status, &context.shards, &self.reads, names).await {
            Ok(voted) => answer((&voted).into()),
            Err(NoVote::Refused(refusal)) => answer(Answer::Refused((&refusal).into())),
            Err(NoVote::Unread(error)) => Err(error.into()),
        }
    }

    async fn vote_unlock(
        &self,
        request: Request<proto::UnlockVoteRequest>,
    ) -> Result<Response<proto::UnlockVoteResponse>, Status> {
        use proto::unlock_vote_response::Response as Answer;
        let request = request.into_inner();
        let (account, sequence) = (self.owned(&request.account)?, SequenceNumber(request.sequence));
        let (context, voter_status) = (&self.context, self.context.voter_status.borrow().clone());
        let voted =
            vote_for_unlock(&context.domain, &voter_status, &self.reads, account, sequence, request.unanimous).await;
        let response = match voted {
            Ok(voted) => (&voted).into(),
            Err(NoUnlockVote::Refused(refusal)) => Answer::Refused((&refusal).into()),
            Err(NoUnlockVote::Unread(error)) => return Err(error.into()),
        };
        Ok(Response::new(proto::UnlockVoteResponse { response: Some(response) }))
    }

    async fn get_status(
        &self,
        request: Request<proto::StatusRequest>,
    ) -> Result<Response<proto::StatusResponse>, Status> {
        let (context, voter_status) = (&self.context, self.context.voter_status.borrow().clone());
        let place = (context.shard, layout_of(&context.shards).count());
        let asset = asset(&request.into_inner().asset)?;
        let mut status = self.reads.status(&context.domain, &voter_status, place, asset).await?;
        status.joining = joining(&voter_status, &context.handover);
        Ok(Response::new((&status).into()))
    }
}
