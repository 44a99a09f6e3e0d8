//! The gRPC service of one shard: the stream of requests, and the reads.

use std::sync::Arc;

use bytes::Bytes;
use fastpay_core::{Account, AccountId, Asset, Chain, Receipt, Record, SequenceNumber, TransferOrder};
use fastpay_rpc::proto;
use fastpay_rpc::proto::shard_server::Shard as ShardRpc;
use fastpay_rpc::{Malformed, Refusal};
use tokio::sync::{Semaphore, watch};
use tonic::{Request, Response, Status, Streaming};

use super::batch_vote::{BatchAnswer, vote_for_redemptions};
use super::reads::{ReadError, Reads, chosen};
use super::submit::{self, Answers};
use super::{NetworkLimits, ShardContext, layout_of};
use crate::shard::Peer;

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

    async fn account(&self, account: &[u8]) -> Result<(AccountId, Account), Status> {
        let id = AccountId(account.try_into().map_err(|_| Status::invalid_argument("an account has 32 bytes"))?);
        self.check_owner(id)?;
        Ok((id, self.reads.account(id).await?))
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
        }
    }
}

/// The asset that a request names, or none.
fn asset(bytes: &[u8]) -> Result<Option<Asset>, Status> {
    if bytes.is_empty() {
        return Ok(None);
    }
    let bytes: [u8; 20] = bytes.try_into().map_err(|_| Status::invalid_argument("an asset has 20 bytes"))?;
    Ok(Some(Asset(bytes.into())))
}

fn copy(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

#[tonic::async_trait]
impl ShardRpc for ShardService {
    type SubmitStream = Answers;

    async fn submit(&self, request: Request<Streaming<proto::SubmitRequest>>) -> Result<Response<Answers>, Status> {
        if *self.stop.borrow() {
            return Err(ReadError::Stopping.into());
        }
        let peer = request.extensions().get::<Arc<Peer>>().cloned().unwrap_or_default();
        Ok(Response::new(submit::serve(self.context.clone(), peer, request.into_inner(), self.stop.clone())))
    }

    async fn get_account(
        &self,
        request: Request<proto::AccountRequest>,
    ) -> Result<Response<proto::AccountResponse>, Status> {
        let request = request.into_inner();
        let (id, account) = self.account(&request.account).await?;
        let catching_up =
            self.context.standing.borrow().guard().is_some_and(|guard| !guard.bears_witness(id, &account));
        let (holdings, truncated) = chosen(account.balances.iter(), asset(&request.asset)?);
        let holdings = holdings.into_iter().map(|(asset, balance)| proto::Holding {
            asset: copy(asset.0.as_slice()),
            balance: copy(&balance.to_be_bytes()),
        });
        let pending: Option<&TransferOrder> = account.pending.as_ref().map(|pending| pending.order.as_ref());
        Ok(Response::new(proto::AccountResponse {
            next_sequence: account.next_sequence().0,
            pending: pending.map(Into::into),
            holdings: holdings.collect(),
            received: account.received.count(),
            deposits: account.deposits.count(),
            truncated,
            catching_up,
        }))
    }

    async fn get_certificate(
        &self,
        request: Request<proto::CertificateRequest>,
    ) -> Result<Response<proto::Certificate>, Status> {
        let request = request.into_inner();
        let (_, account) = self.account(&request.account).await?;
        match self.reads.certificate(account.sent, SequenceNumber(request.sequence)).await? {
            Some(certificate) => Ok(Response::new(certificate.as_ref().into())),
            None => Err(Status::not_found("no certificate of this number is confirmed here")),
        }
    }

    async fn list_received(
        &self,
        request: Request<proto::AccountPageRequest>,
    ) -> Result<Response<proto::ReceivedPage>, Status> {
        let request = request.into_inner();
        let (id, account) = self.account(&request.account).await?;
        let total = account.received.count();
        let entries = self.reads.page(account.received, request.start, request.limit, Chain::Received(id)).await?;
        let payments = entries.iter().filter_map(|(number, record)| {
            let Receipt { payment, output } = record.received_by(id, *number)?;
            Some(proto::Received { number: *number, payment: Some((&payment).into()), output: output.map(u32::from) })
        });
        Ok(Response::new(proto::ReceivedPage { payments: payments.collect(), total }))
    }

    async fn list_deposits(
        &self,
        request: Request<proto::AccountPageRequest>,
    ) -> Result<Response<proto::DepositPage>, Status> {
        let request = request.into_inner();
        let (_, account) = self.account(&request.account).await?;
        let total = account.deposits.count();
        let entries = self.reads.page(account.deposits, request.start, request.limit, Chain::Deposits).await?;
        let deposits = entries.iter().filter_map(|(_, record)| match record {
            Record::Synchronization { order, .. } => order.deposit.as_ref().map(Into::into),
            _ => None,
        });
        Ok(Response::new(proto::DepositPage { deposits: deposits.collect(), total }))
    }

    async fn list_redemptions(
        &self,
        request: Request<proto::PageRequest>,
    ) -> Result<Response<proto::CertificatePage>, Status> {
        let request = request.into_inner();
        let ledger = self.reads.ledger().await?;
        let votes_max = self.context.standing.borrow().quorum_max();
        let certificates = self.reads.redemptions(&ledger, request.start, request.limit, votes_max).await?;
        let certificates = certificates.iter().map(|certificate| certificate.as_ref().into()).collect();
        Ok(Response::new(proto::CertificatePage { certificates, total: ledger.redemptions.count() }))
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
        let standing = context.standing.borrow().clone();
        let voted = vote_for_redemptions(&context.domain, &standing, &context.shards, &self.reads, names).await?;
        answer(match voted {
            BatchAnswer::Vote(epoch, vote) => Answer::Vote((epoch, &vote).into()),
            BatchAnswer::Missing(positions) => Answer::Missing(proto::MissingRedemptions { positions }),
            BatchAnswer::NotVoting(epoch) => Answer::Refused((&Refusal::NotVoting(epoch)).into()),
        })
    }

    async fn get_status(
        &self,
        request: Request<proto::StatusRequest>,
    ) -> Result<Response<proto::StatusResponse>, Status> {
        let ledger = self.reads.ledger().await?;
        let context = &self.context;
        let totals = ledger.totals.iter().map(|(asset, totals)| (*asset, totals));
        let (totals, truncated) = chosen(totals, asset(&request.into_inner().asset)?);
        let totals = totals.into_iter().map(|(asset, totals)| proto::AssetTotals {
            asset: copy(asset.0.as_slice()),
            accounts: copy(&totals.accounts.to_be_bytes()),
            deposited: copy(&totals.deposited.to_be_bytes()),
            credited: copy(&totals.credited.to_be_bytes()),
            forwarded: copy(&totals.forwarded.to_be_bytes()),
            redeemed: copy(&totals.redeemed.to_be_bytes()),
        });
        let standing = context.standing.borrow().clone();
        let members = standing.committees().current().members().iter().map(|member| proto::CommitteeMember {
            voting_key: copy(&member.name.0),
            redemption_key: copy(member.redemption_key.as_slice()),
        });
        let in_flight: usize = ledger.outboxes.values().map(|outbox| outbox.waiting.len()).sum();
        Ok(Response::new(proto::StatusResponse {
            authority: copy(&standing.public().name.0),
            epoch: standing.epoch().0,
            chain_id: context.domain.chain_id(),
            contract: copy(context.domain.contract().as_slice()),
            shard: context.shard.0,
            shard_count: layout_of(&context.shards).count(),
            synchronized: ledger.synchronized.0,
            redemptions: ledger.redemptions.count(),
            totals: totals.collect(),
            credits_in_flight: in_flight as u64,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            committee: members.collect(),
            truncated,
        }))
    }
}
