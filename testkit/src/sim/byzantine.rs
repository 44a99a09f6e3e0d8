//! Byzantine authorities. They have a member's keys and no state: their answers are invented or replayed.

use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fastpay_core::handover::{Closing, ReportedEntry};
use fastpay_core::{
    Amount, Balance, Certificate, Digest, Epoch, PendingOrder, PrimaryAddress, Request as Asked, SequenceNumber,
    ShardId, TransactionIndex, TransferOrder, Vote, sign_vote,
};
use fastpay_rpc::proto::shard_server::{Shard, ShardServer};
use fastpay_rpc::proto::submit_request::Request as WireRequest;
use fastpay_rpc::proto::submit_response::Response as WireResponse;
use fastpay_rpc::proto::{self, SubmitRequest, SubmitResponse};
use fastpay_rpc::{MESSAGE_BYTES_MAX, Refusal};
use tokio::sync::mpsc;
use tokio_stream::Stream;
use tokio_stream::wrappers::UnboundedReceiverStream;
use tonic::codegen::Service;
use tonic::{Request, Response, Status, Streaming};

use super::plan::Role;
use super::world::{ASSETS, Serve, Server, Tasks, World, lock};

/// The number of remembered messages of each kind.
const MEMORY_MAX: usize = 64;
/// The maximum delay of a slow one.
const SLOW_MAX: Duration = Duration::from_secs(600);

/// Messages that Byzantine authorities and clients have seen, newest last.
#[derive(Default)]
pub struct Memory {
    orders: Vec<TransferOrder>,
    certificates: Vec<Certificate>,
    answers: Vec<WireResponse>,
}

impl Memory {
    /// Remembers an order.
    pub fn order(&mut self, order: TransferOrder) {
        keep(&mut self.orders, order);
    }

    /// Remembers a certificate.
    pub fn certificate(&mut self, certificate: Certificate) {
        keep(&mut self.certificates, certificate);
    }

    /// The orders.
    #[must_use]
    pub fn orders(&self) -> &[TransferOrder] {
        &self.orders
    }

    /// The certificates.
    #[must_use]
    pub fn certificates(&self) -> &[Certificate] {
        &self.certificates
    }
}

fn keep<T>(list: &mut Vec<T>, item: T) {
    if list.len() >= MEMORY_MAX {
        list.remove(0);
    }
    list.push(item);
}

/// One shard of a Byzantine authority.
struct Liar {
    world: Arc<World>,
    authority: usize,
    shard: u32,
    role: Role,
}

/// Makes an authority Byzantine until its tasks are ended.
pub fn start(world: &Arc<World>, authority: usize, role: Role) -> Tasks {
    let tasks = Tasks::default();
    for shard in 0..world.plan.shards[authority] {
        let liar = Liar { world: world.clone(), authority, shard, role };
        let service = ShardServer::new(liar).max_encoding_message_size(MESSAGE_BYTES_MAX);
        let serve: Serve = Arc::new(move |call| service.clone().call(call));
        world.listen(authority, shard, Some(Server { serve, tasks: tasks.clone() }));
    }
    tasks
}

/// The vote of an authority for an order, as its misused keys of an epoch sign it, or its first ones if it has none then.
pub fn vote(world: &World, authority: usize, epoch: usize, order: &TransferOrder) -> Vote {
    let digest = world.domain.transfer_digest(&order.transfer);
    let misused = world.keys_in(authority, Epoch(epoch as u64)).filter(|_| world.misuses(authority, epoch));
    let keys = misused.unwrap_or_else(|| world.first_keys(authority));
    sign_vote(keys, &world.domain, Epoch(epoch as u64), &order.transfer, digest)
}

impl Liar {
    /// Draws its role for this request.
    fn role(&self) -> Role {
        match self.role {
            Role::Mixed => *self.world.dice.pick(&[Role::Silent, Role::VotesForAll, Role::Lies, Role::Replays]),
            role => role,
        }
    }

    fn sometimes(&self) -> bool {
        self.world.dice.chance(500)
    }

    /// Mostly near a plausible value.
    fn number(&self) -> u64 {
        *self.world.dice.pick(&[0, 1, 2, 3, 5, 8, 1_000, u64::MAX - 1, u64::MAX])
    }

    fn epoch(&self) -> usize {
        let known = self.world.committees().len();
        if self.world.dice.chance(800) { known - 1 } else { self.world.dice.below(known) }
    }

    fn known_order(&self) -> Option<TransferOrder> {
        let memory = lock(&self.world.memory);
        (!memory.orders.is_empty()).then(|| self.world.dice.pick(&memory.orders).clone())
    }

    fn known_certificate(&self) -> Option<Certificate> {
        let memory = lock(&self.world.memory);
        (!memory.certificates.is_empty()).then(|| self.world.dice.pick(&memory.certificates).clone())
    }

    /// Its answer to a request, and the delay; `None` if it stays silent.
    fn answer(&self, asked: &Asked) -> Option<(Duration, WireResponse)> {
        let (delay, role) = match self.role() {
            Role::Silent => return None,
            Role::Slow => (self.world.dice.between(Duration::from_secs(1), SLOW_MAX), Role::VotesForAll),
            role => (Duration::ZERO, role),
        };
        let response = match role {
            Role::Lies => self.lie(asked),
            Role::Replays => self.replay(asked),
            _ => self.agree(asked),
        };
        Some((delay, response))
    }

    fn agree(&self, asked: &Asked) -> WireResponse {
        let response = match asked {
            Asked::Order(order) => {
                let epoch = self.epoch();
                let vote = vote(&self.world, self.authority, epoch, order);
                WireResponse::Vote((Epoch(epoch as u64), &vote).into())
            }
            Asked::Certificate(_) | Asked::Attested(_) => {
                let next_sequence = asked.order().transfer.sequence().0.saturating_add(1);
                WireResponse::Confirmed(proto::Confirmed { next_sequence, epoch: None })
            }
        };
        keep(&mut lock(&self.world.memory).answers, response.clone());
        response
    }

    fn replay(&self, asked: &Asked) -> WireResponse {
        let memory = lock(&self.world.memory);
        if memory.answers.is_empty() {
            drop(memory);
            return self.agree(asked);
        }
        self.world.dice.pick(&memory.answers).clone()
    }

    fn lie(&self, asked: &Asked) -> WireResponse {
        let dice = &self.world.dice;
        let sequence = SequenceNumber(self.number());
        let refusal = match dice.below(16) {
            0 => self.known_order().map(|order| Refusal::OrderPending(Box::new(order))),
            1 => Some(Refusal::OrderPending(Box::new(asked.order().clone()))),
            2 => Some(Refusal::SequenceTooHigh(sequence)),
            3 => Some(Refusal::AlreadyConfirmed(sequence)),
            4 => Some(Refusal::InsufficientBalance(Balance::ZERO.debit(Amount(self.number().into())))),
            5 => Some(Refusal::MissingCertificate(sequence)),
            6 => Some(Refusal::WrongShard(ShardId(self.shard + 1))),
            7 => Some(Refusal::NotVoting(Epoch(self.number()))),
            8 => Some(Refusal::UnknownEpoch(Epoch(self.number()))),
            9 => Some(Refusal::Busy(Duration::from_secs(self.number() % 100))),
            10 => Some(Refusal::Invalid("it says".into())),
            11 => Some(Refusal::CatchingUp(self.sometimes().then_some(sequence))),
            _ => None,
        };
        if let Some(refusal) = refusal {
            return WireResponse::Refused((&refusal).into());
        }
        match dice.below(4) {
            // A vote for another order, of another epoch, or in another authority's name.
            0 => match self.known_order() {
                Some(other) => self.agree(&Asked::Order(other)),
                None => self.agree(asked),
            },
            1 => {
                let vote = vote(&self.world, self.authority, 0, asked.order());
                WireResponse::Vote((Epoch(self.epoch() as u64), &vote).into())
            }
            2 => {
                let mut vote = vote(&self.world, self.authority, self.epoch(), asked.order());
                vote.authority = self.world.committees()[0].keys[0].public().name;
                WireResponse::Vote((Epoch(self.epoch() as u64), &vote).into())
            }
            _ => WireResponse::Confirmed(proto::Confirmed { next_sequence: self.number(), epoch: None }),
        }
    }

    /// A Closing that says nothing, that it is locked on what others signed, or that this is executed; or no Closing.
    fn closing(&self, epoch: Epoch) -> Option<Vec<u8>> {
        let dice = &self.world.dice;
        let is_misused = usize::try_from(epoch.0).is_ok_and(|epoch| self.world.misuses(self.authority, epoch));
        let keys = self.world.keys_in(self.authority, epoch).filter(|_| is_misused)?;
        let (claims, count) = (dice.chance(400), dice.below(4));
        let known = lock(&self.world.memory).orders.clone();
        let mut entries = BTreeMap::new();
        for order in known.iter().rev().take(count) {
            let Ok(verified) = order.clone().verify(&self.world.domain) else { continue };
            let (account, digest) = (order.transfer.sender(), verified.digest());
            let next = SequenceNumber(order.transfer.sequence().0.saturating_add(1));
            let entry = match claims {
                true => ReportedEntry::account(account, next, Some((order.clone(), digest))),
                false => ReportedEntry::lock(&PendingOrder { order: Arc::new(order.clone()), digest }),
            };
            entries.insert(account, entry);
        }
        let mut entries: Vec<_> = entries.into_values().collect();
        entries.sort_by_key(|entry| *entry.entry());
        let up_to = TransactionIndex(if dice.chance(100) { self.number() } else { 1 });
        let closing = Closing::new(epoch, up_to, Digest::ZERO, entries.iter().map(ReportedEntry::entry));
        let mut bytes = Vec::new();
        closing.sign(keys, &self.world.domain).write(entries.iter().map(Ok), &mut bytes).ok()?;
        if dice.chance(200) {
            bytes.truncate(dice.below(bytes.len()));
        }
        self.world.trace.note("made up", format_args!("a{} closes {epoch} with {}", self.authority, entries.len()));
        Some(bytes)
    }

    /// Whether and when a read is answered.
    async fn hesitate(&self) -> Result<(), Status> {
        match self.role() {
            Role::Silent => std::future::pending().await,
            Role::Slow => {
                tokio::time::sleep(self.world.dice.between(Duration::from_secs(1), SLOW_MAX)).await;
                Ok(())
            }
            _ if self.world.dice.chance(100) => Err(Status::internal("it says")),
            _ => Ok(()),
        }
    }

    fn balance(&self) -> Bytes {
        let balance = Balance::from(Amount(self.number().into()));
        Bytes::copy_from_slice(&if self.sometimes() { balance } else { balance.negated() }.to_be_bytes())
    }
}

/// Remembers the request, and answers it.
async fn talk(
    liar: Arc<Liar>,
    mut requests: Streaming<SubmitRequest>,
    answers: mpsc::UnboundedSender<Result<SubmitResponse, Status>>,
) {
    while let Ok(Some(SubmitRequest { id, request })) = requests.message().await {
        let asked = match request {
            Some(WireRequest::Order(order)) => order.try_into().map(Asked::Order).ok(),
            Some(WireRequest::Certificate(certificate)) => certificate.try_into().map(Asked::Certificate).ok(),
            Some(WireRequest::Attested(attested)) => attested.try_into().map(Box::new).map(Asked::Attested).ok(),
            None => None,
        };
        let Some(asked) = asked else { continue };
        {
            let mut memory = lock(&liar.world.memory);
            memory.order(asked.order().clone());
            if let Asked::Certificate(certificate) = &asked {
                memory.certificate(certificate.clone());
            }
        }
        if let Some((delay, response)) = liar.answer(&asked) {
            liar.world.trace.note("made up", format_args!("a{} to {id} after {delay:?}", liar.authority));
            let answers = answers.clone();
            tokio::spawn(async move {
                tokio::time::sleep(delay).await;
                let _ = answers.send(Ok(SubmitResponse { id, response: Some(response) }));
            });
        }
    }
}

#[tonic::async_trait]
impl Shard for Liar {
    type SubmitStream = Pin<Box<dyn Stream<Item = Result<SubmitResponse, Status>> + Send>>;

    async fn submit(&self, request: Request<Streaming<SubmitRequest>>) -> Result<Response<Self::SubmitStream>, Status> {
        let (answers, stream) = mpsc::unbounded_channel();
        let liar = Self { world: self.world.clone(), ..*self };
        tokio::spawn(talk(Arc::new(liar), request.into_inner(), answers));
        Ok(Response::new(Box::pin(UnboundedReceiverStream::new(stream))))
    }

    async fn get_account(&self, _: Request<proto::AccountRequest>) -> Result<Response<proto::AccountResponse>, Status> {
        self.hesitate().await?;
        let pending = if self.sometimes() { self.known_order() } else { None };
        Ok(Response::new(proto::AccountResponse {
            next_sequence: self.number(),
            pending: pending.as_ref().map(Into::into),
            holdings: ASSETS
                .iter()
                .map(|asset| proto::Holding {
                    asset: Bytes::copy_from_slice(asset.0.as_slice()),
                    balance: self.balance(),
                })
                .collect(),
            received: self.number(),
            deposits: self.number(),
            truncated: self.sometimes(),
            catching_up: self.sometimes(),
        }))
    }

    async fn get_certificate(
        &self,
        _: Request<proto::CertificateRequest>,
    ) -> Result<Response<proto::Certificate>, Status> {
        self.hesitate().await?;
        let none = || Status::not_found("it says");
        let mut certificate = self.known_certificate().ok_or_else(none)?;
        if self.sometimes() {
            // With one vote too few, or for another transfer.
            certificate.votes.pop();
        } else if let Some(order) = self.known_order() {
            certificate.order = order;
        }
        Ok(Response::new((&certificate).into()))
    }

    async fn read_certificates(
        &self,
        request: Request<proto::CertificatesRequest>,
    ) -> Result<Response<proto::CertificatesResponse>, Status> {
        let names = request.into_inner().names;
        let mut certificates = Vec::new();
        for proto::TransferName { sender, sequence } in names.iter().take(2).cloned() {
            let request = proto::CertificateRequest { account: sender, sequence };
            certificates.extend(self.get_certificate(Request::new(request)).await.map(Response::into_inner));
        }
        let looked_up = if self.sometimes() { names.len() as u32 } else { self.world.dice.below(4) as u32 };
        Ok(Response::new(proto::CertificatesResponse { certificates, looked_up }))
    }

    async fn list_received(
        &self,
        request: Request<proto::AccountPageRequest>,
    ) -> Result<Response<proto::ReceivedPage>, Status> {
        self.hesitate().await?;
        let start = request.into_inner().start;
        let payments = self.known_order().into_iter().filter_map(|order| match order.transfer {
            fastpay_core::Transfer::Payment(mut payment) => {
                payment.sequence = SequenceNumber(self.number());
                Some(proto::Received { number: start, payment: Some((&payment).into()), output: None, payout: None })
            }
            fastpay_core::Transfer::Payout(mut payout) => {
                payout.sequence = SequenceNumber(self.number());
                let payment = payout.payment(0)?;
                let output = Some(self.world.dice.below(2) as u32);
                Some(proto::Received { number: start, payment: Some((&payment).into()), output, payout: None })
            }
            fastpay_core::Transfer::Redemption(_) => None,
        });
        Ok(Response::new(proto::ReceivedPage { payments: payments.collect(), total: self.number() }))
    }

    async fn list_deposits(
        &self,
        _: Request<proto::AccountPageRequest>,
    ) -> Result<Response<proto::DepositPage>, Status> {
        self.hesitate().await?;
        Ok(Response::new(proto::DepositPage { deposits: Vec::new(), total: self.number() }))
    }

    async fn list_redemptions(
        &self,
        _: Request<proto::PageRequest>,
    ) -> Result<Response<proto::CertificatePage>, Status> {
        self.hesitate().await?;
        let certificates = self.known_certificate().as_ref().map(Into::into).into_iter().collect();
        Ok(Response::new(proto::CertificatePage { certificates, total: self.number() }))
    }

    async fn vote_redemption_batch(
        &self,
        _: Request<proto::RedemptionBatchRequest>,
    ) -> Result<Response<proto::RedemptionBatchResponse>, Status> {
        self.hesitate().await?;
        let refusal = Refusal::NotVoting(Epoch(self.number()));
        let response = Some(proto::redemption_batch_response::Response::Refused((&refusal).into()));
        Ok(Response::new(proto::RedemptionBatchResponse { response }))
    }

    async fn vote_unlock(
        &self,
        _: Request<proto::UnlockVoteRequest>,
    ) -> Result<Response<proto::UnlockVoteResponse>, Status> {
        self.hesitate().await?;
        let refusal = Refusal::NotRequested(SequenceNumber(self.number()));
        let response = Some(proto::unlock_vote_response::Response::Refused((&refusal).into()));
        Ok(Response::new(proto::UnlockVoteResponse { response }))
    }

    async fn read_archived(&self, _: Request<proto::ArchivedRequest>) -> Result<Response<proto::ArchivedPage>, Status> {
        Err(Status::not_found("no archive here"))
    }

    async fn exchange_endpoints(
        &self,
        _: Request<proto::EndpointsRequest>,
    ) -> Result<Response<proto::EndpointsResponse>, Status> {
        Err(Status::unimplemented("not here"))
    }

    async fn read_closing(
        &self,
        request: Request<proto::ClosingRequest>,
    ) -> Result<Response<proto::ArchivePart>, Status> {
        self.hesitate().await?;
        let asked = request.into_inner();
        let none = || Status::not_found("no Closing here");
        let bytes = self.closing(Epoch(asked.epoch)).filter(|_| asked.authority.is_empty()).ok_or_else(none)?;
        let length = bytes.len() as u64;
        Ok(Response::new(proto::ArchivePart { bytes: bytes.into(), length }))
    }

    async fn read_archive(&self, _: Request<proto::ArchiveRequest>) -> Result<Response<proto::ArchivePart>, Status> {
        Err(Status::not_found("no archive here"))
    }

    async fn list_confirmed(
        &self,
        request: Request<proto::ConfirmedRequest>,
    ) -> Result<Response<proto::ConfirmedPage>, Status> {
        self.hesitate().await?;
        let name = |order: TransferOrder| proto::TransferName {
            sender: Bytes::copy_from_slice(&order.transfer.sender().0),
            sequence: self.number(),
        };
        let next = if self.sometimes() { request.into_inner().cursor.wrapping_add(1) } else { self.number() };
        Ok(Response::new(proto::ConfirmedPage {
            names: self.known_order().map(name).into_iter().collect(),
            next,
            end: self.number(),
        }))
    }

    async fn get_status(&self, _: Request<proto::StatusRequest>) -> Result<Response<proto::StatusResponse>, Status> {
        self.hesitate().await?;
        let another = self.world.dice.below(self.world.plan.authorities());
        let members = self.world.committees().swap_remove(self.epoch()).keys;
        let name = members[another.min(members.len() - 1)].public().name;
        Ok(Response::new(proto::StatusResponse {
            authority: Bytes::copy_from_slice(&name.0),
            epoch: self.number(),
            chain_id: self.world.domain.chain_id(),
            contract: Bytes::copy_from_slice(PrimaryAddress::ZERO.as_slice()),
            shard: self.shard,
            shard_count: self.world.plan.shards[self.authority],
            synchronized: self.number(),
            redemptions: self.number(),
            ..proto::StatusResponse::default()
        }))
    }
}
