//! The gRPC service of one shard: the stream of requests, and the reads.

use std::sync::Arc;

use bytes::Bytes;
use fastpay_core::{Account, AccountId, Asset, History, Link, Record, SequenceNumber, ShardLedger, TransferOrder};
use fastpay_rpc::proto::shard_server::Shard as ShardRpc;
use fastpay_rpc::{MESSAGE_BYTES_MAX, PAGE_ENTRIES_MAX, proto};
use tokio::sync::{Semaphore, oneshot, watch};
use tonic::{Request, Response, Status, Streaming};

use super::submit::{self, Answers};
use super::{NetworkLimits, ShardContext};
use crate::shard::{Command, HistoryError, HistoryReader, Peer, ShardHandle};

/// At most so many assets are listed in one answer, ETH first: anyone can deposit tokens of their own
/// making, and a list beyond the longest message would keep the rest of the answer from its reader. Where
/// that hides one, it can be asked for by its name.
const ASSETS_LISTED_MAX: usize = 4_000;

/// Answers one shard's clients.
pub(super) struct ShardService {
    pub(super) context: Arc<ShardContext>,
    history_reads: Arc<Semaphore>,
    stop: watch::Receiver<bool>,
}

impl ShardService {
    pub(super) fn new(context: ShardContext, limits: NetworkLimits, stop: watch::Receiver<bool>) -> Self {
        let history_reads = Arc::new(Semaphore::new(limits.history_reads_max));
        Self { context: Arc::new(context), history_reads, stop }
    }

    /// Asks a shard. Its answer comes after what was queued before is on disk.
    pub(super) fn ask<T, C: FnOnce(oneshot::Sender<T>) -> Command>(
        shard: &ShardHandle,
        command: C,
    ) -> Result<impl Future<Output = Result<T, Status>> + use<T, C>, Status> {
        let (reply, answer) = oneshot::channel();
        shard.try_ask(command(reply)).map_err(|error| match error {
            std::sync::mpsc::TrySendError::Full(_) => Status::resource_exhausted("busy; ask again later"),
            std::sync::mpsc::TrySendError::Disconnected(_) => stopping(),
        })?;
        Ok(async { answer.await.map_err(|_| stopping()) })
    }

    async fn account(&self, account: &[u8]) -> Result<(AccountId, Account), Status> {
        let id = AccountId(account.try_into().map_err(|_| Status::invalid_argument("an account has 32 bytes"))?);
        self.check_owner(id)?;
        Ok((id, Self::ask(&self.context.handle, |reply| Command::ReadAccount(id, reply))?.await?))
    }

    fn check_owner(&self, account: AccountId) -> Result<(), Status> {
        let owner = fastpay_core::ShardLayout::new(self.context.shard_count()).shard_of(&account);
        if owner == self.context.shard {
            return Ok(());
        }
        Err(Status::failed_precondition(format!(
            "account {account} belongs to shard {owner} of this authority; ask there"
        )))
    }

    /// Reads the journal, on a thread that may wait for the disk where there is one to wait for.
    async fn read_history<T: Send + 'static>(
        &self,
        read: impl FnOnce(&HistoryReader) -> Result<T, HistoryError> + Send + 'static,
    ) -> Result<T, Status> {
        let reader = self.context.history.clone();
        self.read_blocking(move || read(&reader)).await
    }

    /// As [`Self::read_history`], of any shard.
    pub(super) async fn read_blocking<T: Send + 'static>(
        &self,
        read: impl FnOnce() -> Result<T, HistoryError> + Send + 'static,
    ) -> Result<T, Status> {
        let permit = self.history_reads.clone().acquire_owned().await.map_err(|_| stopping())?;
        let read = move || {
            let _permit = permit;
            read()
        };
        let outcome = if self.context.history.is_slow() { tokio::task::spawn_blocking(read).await } else { Ok(read()) };
        match outcome {
            Ok(Ok(value)) => Ok(value),
            Ok(Err(error)) => {
                tracing::error!(%error, "the journal cannot be read");
                Err(Status::data_loss("this authority cannot read its journal; ask another one"))
            }
            Err(_) => Err(stopping()),
        }
    }

    async fn page(
        &self,
        history: History,
        start: u64,
        limit: u32,
        select: fn(&Record) -> Option<Link>,
    ) -> Result<Vec<(u64, Record)>, Status> {
        let limit = if limit == 0 { PAGE_ENTRIES_MAX } else { limit.min(PAGE_ENTRIES_MAX) };
        self.read_history(move |reader| reader.page(&history, start, limit, select)).await
    }

    /// How many redemption certificates surely fit into one message.
    fn certificates_per_page(&self) -> u32 {
        let bytes_each = 512_usize.saturating_add(self.context.standing.borrow().quorum_max().saturating_mul(128));
        u32::try_from(MESSAGE_BYTES_MAX / bytes_each).unwrap_or(PAGE_ENTRIES_MAX)
    }
}

fn stopping() -> Status {
    Status::unavailable("the authority is stopping; ask again when it is back")
}

/// The entries that a request asks for, that of one asset or as many as an answer lists, and whether there
/// are more.
fn chosen<T>(mut entries: impl Iterator<Item = (Asset, T)>, asset: &[u8]) -> Result<(Vec<(Asset, T)>, bool), Status> {
    if asset.is_empty() {
        let listed = entries.by_ref().take(ASSETS_LISTED_MAX).collect();
        return Ok((listed, entries.next().is_some()));
    }
    let asset: [u8; 20] = asset.try_into().map_err(|_| Status::invalid_argument("an asset has 20 bytes"))?;
    let asset = Asset(asset.into());
    Ok((entries.find(|(held, _)| *held == asset).into_iter().collect(), false))
}

fn copy(bytes: &[u8]) -> Bytes {
    Bytes::copy_from_slice(bytes)
}

#[tonic::async_trait]
impl ShardRpc for ShardService {
    type SubmitStream = Answers;

    async fn submit(&self, request: Request<Streaming<proto::SubmitRequest>>) -> Result<Response<Answers>, Status> {
        if *self.stop.borrow() {
            return Err(stopping());
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
        let (holdings, truncated) = chosen(account.balances.iter(), &request.asset)?;
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
        let sequence = SequenceNumber(request.sequence);
        let read = move |reader: &HistoryReader| reader.entry(&account.sent, sequence.0, Record::sent_link);
        match self.read_history(read).await? {
            Some(Record::Confirmation { certificate, .. }) => Ok(Response::new(certificate.as_ref().into())),
            _ => Err(Status::not_found("no certificate of this number is confirmed here")),
        }
    }

    async fn list_received(
        &self,
        request: Request<proto::AccountPageRequest>,
    ) -> Result<Response<proto::ReceivedPage>, Status> {
        let request = request.into_inner();
        let (_, account) = self.account(&request.account).await?;
        let total = account.received.count();
        let entries = self.page(account.received, request.start, request.limit, Record::received_link).await?;
        let payments = entries.iter().map(|(number, record)| proto::Received {
            number: *number,
            payment: record.received_payment().map(Into::into),
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
        let entries = self.page(account.deposits, request.start, request.limit, Record::deposit_link).await?;
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
        let ledger: Arc<ShardLedger> = Self::ask(&self.context.handle, Command::ReadLedger)?.await?;
        let total = ledger.redemptions.count();
        let limit = if request.limit == 0 { PAGE_ENTRIES_MAX } else { request.limit };
        let limit = limit.min(self.certificates_per_page());
        let entries = self.page(ledger.redemptions.clone(), request.start, limit, Record::redemption_link).await?;
        let certificates = entries.iter().filter_map(|(_, record)| match record {
            Record::Confirmation { certificate, .. } => Some(certificate.as_ref().into()),
            _ => None,
        });
        Ok(Response::new(proto::CertificatePage { certificates: certificates.collect(), total }))
    }

    async fn vote_redemption_batch(
        &self,
        request: Request<proto::RedemptionBatchRequest>,
    ) -> Result<Response<proto::RedemptionBatchResponse>, Status> {
        let response = Some(self.batch_vote(request.into_inner()).await?);
        Ok(Response::new(proto::RedemptionBatchResponse { response }))
    }

    async fn get_status(
        &self,
        request: Request<proto::StatusRequest>,
    ) -> Result<Response<proto::StatusResponse>, Status> {
        let ledger: Arc<ShardLedger> = Self::ask(&self.context.handle, Command::ReadLedger)?.await?;
        let context = &self.context;
        let (totals, truncated) =
            chosen(ledger.totals.iter().map(|(asset, totals)| (*asset, totals)), &request.into_inner().asset)?;
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
            shard_count: context.shard_count().get(),
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
