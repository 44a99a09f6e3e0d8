//! The answers of a fake authority, over gRPC.

use std::pin::Pin;
use std::time::Duration;

use fastpay_core::{
    AccountId, Amount, Attestation, AttestedCertificate, Balance, Certificate, Epoch, Pruned, Receipt, SequenceNumber,
    Transfer, TransferOrder, UnlockVote, Vote, VoteFloor, VoteSignature, sign_batch_vote,
};
use fastpay_rpc::proto::redemption_batch_response::Response as BatchResponse;
use fastpay_rpc::proto::shard_server::Shard;
use fastpay_rpc::proto::submit_request::Request as Asked;
use fastpay_rpc::proto::submit_response::Response as Answer;
use fastpay_rpc::{
    CONFIRMED_PAGE_MAX, PAGE_ENTRIES_MAX, PRUNED_CHECKPOINT_KEY, PRUNED_FIRST_KEY, Refusal, UnlockAnswer, proto,
};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status, Streaming};

use super::{FakeAuthority, Message, Role, State};
use crate::{TestAccount, TestAuthorityError, TestCommittee, payment};

/// The chain time of fake authorities, at which every unlock window has passed.
const CHAIN_TIME: u64 = u64::MAX;
/// The number of invented payments of [`Role::SlowReceipts`].
const SLOW_RECEIPTS: u64 = 2_000;

/// The answer of an honest authority to a certificate.
fn confirmation(state: &mut State, certificate: &Certificate, attestation: Option<&Attestation>) -> Answer {
    match state.confirm(certificate, attestation) {
        Ok(()) => {
            let account = certificate.order.transfer.sender();
            let next_sequence = state.authority.account(&account).next_sequence().0;
            let epoch = Some(state.authority.epoch().0);
            Answer::Confirmed(proto::Confirmed { next_sequence, epoch })
        }
        Err(refusal) => Answer::Refused((&refusal_of(refusal)).into()),
    }
}

impl FakeAuthority {
    /// Delays or fails a request as the authority's role does with every request, and returns the role.
    async fn arrive(&self) -> Result<Role, Status> {
        let role = self.state().role;
        match role {
            Role::Silent => std::future::pending().await,
            Role::Slow(by) => tokio::time::sleep(by).await,
            Role::Down => return Err(Status::unavailable("down")),
            Role::Erratic(seed) | Role::VotesForAll(seed) => {
                let number = {
                    let mut state = self.state();
                    state.erratic += 1;
                    state.erratic
                };
                let chance = fastrand::Rng::with_seed(seed ^ (number << 8)).u64(..32);
                match chance {
                    0..3 => return Err(Status::unavailable("erratic")),
                    late => tokio::time::sleep(Duration::from_micros(late * 100)).await,
                }
            }
            _ => {}
        }
        Ok(role)
    }

    fn notify(&self, message: &Message) {
        let observer = self.observer.lock().unwrap().clone();
        if let Some(observer) = observer {
            observer(message);
        }
    }

    fn answer(&self, asked: Asked, role: Role) -> Answer {
        match asked {
            Asked::Order(order) => {
                let order: TransferOrder = order.try_into().unwrap();
                self.notify(&Message::Order(order.clone()));
                self.state().orders_seen.push(order.clone());
                self.answer_order(&order, role)
            }
            Asked::Attested(attested) => {
                let attested: AttestedCertificate = attested.try_into().unwrap();
                self.notify(&Message::Certificate(attested.certificate.clone()));
                confirmation(&mut self.state(), &attested.certificate, Some(&attested.attestation))
            }
            Asked::Certificate(certificate) => {
                let certificate: Certificate = certificate.try_into().unwrap();
                self.notify(&Message::Certificate(certificate.clone()));
                let mut state = self.state();
                state.certificates_seen.push(certificate.clone());
                if role == Role::FalseConfirmation {
                    return Answer::Confirmed(proto::Confirmed { next_sequence: 0, epoch: None });
                }
                if role == Role::RefusesCertificates {
                    return Answer::Refused((&Refusal::Invalid("not here".into())).into());
                }
                if role == Role::EndsEpochs {
                    let next = Epoch(certificate.epoch.0 + 1);
                    return Answer::Refused((&Refusal::EpochEnded(next)).into());
                }
                confirmation(&mut state, &certificate, None)
            }
        }
    }

    fn answer_order(&self, order: &TransferOrder, role: Role) -> Answer {
        let refuse = |refusal: Refusal| Answer::Refused((&refusal).into());
        let sequence = order.transfer.sequence();
        let first = || self.epochs.lock().unwrap()[0].clone();
        match role {
            Role::FalseAlreadyConfirmed => {
                return refuse(Refusal::AlreadyConfirmed(SequenceNumber(sequence.0 + 1)));
            }
            Role::FalseGap => return refuse(Refusal::SequenceTooHigh(SequenceNumber(0))),
            Role::FalseFuture => return refuse(Refusal::SequenceTooHigh(SequenceNumber(u64::MAX))),
            Role::FalseInsufficientBalance | Role::FalseReceipts(_) | Role::SlowReceipts(_) => {
                return refuse(Refusal::InsufficientBalance(Balance::ZERO));
            }
            Role::ForgedPending => {
                let mut forged = order.clone();
                if let Transfer::Payment(payment) = &mut forged.transfer {
                    payment.amount = Amount(1);
                }
                return refuse(Refusal::OrderPending(Box::new(forged)));
            }
            Role::StolenVote => {
                let committee = self.current(&self.state());
                let vote = committee.vote((self.index + 1) % 4, order);
                return Answer::Vote((committee.committee.epoch(), &vote).into());
            }
            Role::FalseEpoch => {
                let vote = first().vote(self.index, order);
                return Answer::Vote((Epoch(99), &vote).into());
            }
            Role::Garbage => return Answer::Vote(proto::Vote::default()),
            Role::VotesForAll(_) => {
                let vote = first().vote(self.index, order);
                return Answer::Vote((Epoch(0), &vote).into());
            }
            _ => {}
        }
        let authority = &mut self.state().authority;
        match authority.order(order) {
            Ok(mut vote) => {
                if role == Role::BadVote {
                    spoil(&mut vote);
                }
                Answer::Vote((authority.epoch(), &vote).into())
            }
            Err(refusal) => refuse(refusal_of(refusal)),
        }
    }
}

fn spoil(vote: &mut Vote) {
    match &mut vote.signature {
        VoteSignature::Payment { signature, .. } => signature.0[3] ^= 1,
        VoteSignature::Redemption { signature } => signature.0[3] ^= 1,
    }
}

fn refusal_of(refusal: TestAuthorityError) -> Refusal {
    match refusal {
        TestAuthorityError::Rejection(rejection) => rejection.into(),
        TestAuthorityError::UnknownEpoch(epoch) => Refusal::UnknownEpoch(epoch),
        TestAuthorityError::EpochEnded(since) => Refusal::EpochEnded(since),
        other => Refusal::Invalid(other.to_string()),
    }
}

fn page<T: Clone>(list: Option<&Vec<T>>, start: u64) -> (Vec<(u64, T)>, u64) {
    let list = list.cloned().unwrap_or_default();
    let total = list.len() as u64;
    let numbered = (0_u64..).zip(list).skip(usize::try_from(start).unwrap_or(usize::MAX));
    (numbered.take(PAGE_ENTRIES_MAX as usize).collect(), total)
}

fn account_id(bytes: &[u8]) -> AccountId {
    AccountId(bytes.try_into().unwrap())
}

#[tonic::async_trait]
impl Shard for FakeAuthority {
    type SubmitStream = Pin<Box<ReceiverStream<Result<proto::SubmitResponse, Status>>>>;

    async fn submit(
        &self,
        requests: Request<Streaming<proto::SubmitRequest>>,
    ) -> Result<Response<Self::SubmitStream>, Status> {
        self.arrive().await?;
        let (answers, stream) = mpsc::channel(64);
        let mut requests = requests.into_inner();
        let authority = self.clone();
        tokio::spawn(async move {
            while let Ok(Some(request)) = requests.message().await {
                let (authority, answers) = (authority.clone(), answers.clone());
                tokio::spawn(async move {
                    let answer = match authority.arrive().await {
                        Ok(role) => {
                            let response = Some(authority.answer(request.request.unwrap(), role));
                            Ok(proto::SubmitResponse { id: request.id, response })
                        }
                        Err(status) => Err(status),
                    };
                    let _ = answers.send(answer).await;
                });
            }
        });
        Ok(Response::new(Box::pin(ReceiverStream::new(stream))))
    }

    async fn get_account(
        &self,
        request: Request<proto::AccountRequest>,
    ) -> Result<Response<proto::AccountResponse>, Status> {
        let role = self.arrive().await?;
        let request = request.into_inner();
        let id = account_id(&request.account);
        let state = self.state();
        let account = state.authority.account(&id);
        let mut answer = proto::AccountResponse {
            next_sequence: account.next_sequence().0,
            pending: account.pending.as_ref().map(|pending| pending.order.as_ref().into()),
            holdings: account
                .balances
                .iter()
                .map(|(asset, balance)| proto::Holding {
                    asset: asset.0.to_vec().into(),
                    balance: balance.to_be_bytes().to_vec().into(),
                })
                .collect(),
            received: state.received.get(&id).map_or(0, |list| list.len() as u64),
            deposits: state.deposits.get(&id).map_or(0, |list| list.len() as u64),
            truncated: role == Role::ShortLists && request.asset.is_empty(),
            catching_up: role == Role::CatchingUp,
        };
        answer.holdings.retain(|held| !answer.truncated && (request.asset.is_empty() || held.asset == request.asset));
        if role == Role::FalseBalances {
            for held in &mut answer.holdings {
                let balance = Balance::from_be_bytes(held.balance.as_ref().try_into().unwrap());
                held.balance = balance.credit(Amount(1)).to_be_bytes().to_vec().into();
            }
        }
        if role == Role::FalseHistory {
            answer.next_sequence = 1_000_000;
            answer.received = u64::MAX;
            answer.holdings.clear();
        }
        match role {
            Role::FalseReceipts(count) => answer.received = count,
            Role::SlowReceipts(_) => answer.received = SLOW_RECEIPTS,
            Role::InventsAndWithholds => answer.next_sequence = 1_000_000,
            _ => {}
        }
        Ok(Response::new(answer))
    }

    async fn get_certificate(
        &self,
        request: Request<proto::CertificateRequest>,
    ) -> Result<Response<proto::Certificate>, Status> {
        let role = self.arrive().await?;
        let request = request.into_inner();
        match role {
            Role::WithholdsCertificates | Role::InventsAndWithholds => {
                self.state().is_waited_for = true;
                std::future::pending().await
            }
            Role::SlowCertificates(by) => tokio::time::sleep(by).await,
            _ => {}
        }
        let mut state = self.state();
        state.certificates_asked += 1;
        if role == Role::FalseHistory {
            // Return any certificate in place of the requested one.
            let any = state.certificates.values().next().ok_or_else(|| Status::not_found("none"))?;
            return Ok(Response::new(any.into()));
        }
        if role == Role::HidesCertificates {
            return Err(Status::not_found("none"));
        }
        if let Role::LosesCertificates(count) = role
            && let Some(rest) = count.checked_sub(1)
        {
            state.role = Role::LosesCertificates(rest);
            return Err(Status::data_loss("the record cannot be read"));
        }
        let account = account_id(&request.account);
        if let Some(pruned) = state.archive.as_ref().and_then(|archive| archive.pruned_sent(&account, request.sequence))
        {
            return Err(pruned_status(pruned));
        }
        let found = state.certificates.get(&(account, request.sequence));
        if role == Role::SpoiltCertificates {
            let mut certificate = found.cloned().ok_or_else(|| Status::not_found("none"))?;
            certificate.votes.iter_mut().for_each(spoil);
            return Ok(Response::new((&certificate).into()));
        }
        found.map(|certificate| Response::new(certificate.into())).ok_or_else(|| Status::not_found("none"))
    }

    async fn read_certificates(
        &self,
        request: Request<proto::CertificatesRequest>,
    ) -> Result<Response<proto::CertificatesResponse>, Status> {
        let names = request.into_inner().names;
        let mut answer = proto::CertificatesResponse { certificates: Vec::new(), looked_up: names.len() as u32 };
        for (position, proto::TransferName { sender, sequence }) in (0..).zip(names) {
            let request = proto::CertificateRequest { account: sender, sequence };
            match self.get_certificate(Request::new(request)).await {
                Ok(certificate) => answer.certificates.push(certificate.into_inner()),
                Err(status) if status.code() == tonic::Code::NotFound => {}
                // The answer ends before a name that is pruned.
                Err(status) if status.code() == tonic::Code::FailedPrecondition && position > 0 => {
                    answer.looked_up = position;
                    break;
                }
                Err(status) => return Err(status),
            }
        }
        Ok(Response::new(answer))
    }

    async fn list_received(
        &self,
        request: Request<proto::AccountPageRequest>,
    ) -> Result<Response<proto::ReceivedPage>, Status> {
        let role = self.arrive().await?;
        let request = request.into_inner();
        let account = account_id(&request.account);
        refuse_pruned(role, request.start)?;
        let pruned = self.state().archive.as_ref().and_then(|all| all.pruned_received(&account, request.start));
        if let Some(mut pruned) = pruned {
            pruned.checkpoint += u64::from(role == Role::LateArchive);
            return Err(pruned_status(pruned));
        }
        if role == Role::FalseHistory && request.start < 100 {
            let sender = TestAccount::numbered(77).id();
            let invented = payment(sender, account, 1_000_000, request.start);
            let payments = vec![proto::Received {
                number: request.start,
                payment: Some((&invented).into()),
                output: None,
                payout: None,
            }];
            return Ok(Response::new(proto::ReceivedPage { payments, total: u64::MAX }));
        }
        let invented = match role {
            Role::FalseReceipts(count) => Some(count),
            Role::SlowReceipts(by) => {
                tokio::time::sleep(by).await;
                Some(SLOW_RECEIPTS)
            }
            _ => None,
        };
        if let Some(total) = invented {
            let sender = TestAccount::numbered(77).id();
            let numbers = request.start..total.min(request.start + u64::from(PAGE_ENTRIES_MAX));
            let payments = numbers.map(|number| {
                let invented = payment(sender, account, 1_000_000, number);
                proto::Received { number, payment: Some((&invented).into()), output: None, payout: None }
            });
            return Ok(Response::new(proto::ReceivedPage { payments: payments.collect(), total }));
        }
        let state = self.state();
        let (mut entries, total) = page(state.received.get(&account), request.start);
        if role == Role::ShortPages {
            entries.truncate(1);
        }
        if role == Role::InventsAndWithholds {
            let invented = |number| payment(TestAccount::numbered(77).id(), account, 1_000_000, number);
            entries
                .iter_mut()
                .for_each(|(number, receipt)| *receipt = Receipt { payment: invented(*number), output: None });
        }
        let payments = entries.iter().map(|(number, Receipt { payment, output })| proto::Received {
            number: *number,
            payment: Some(payment.into()),
            output: output.map(u32::from),
            payout: None,
        });
        Ok(Response::new(proto::ReceivedPage { payments: payments.collect(), total }))
    }

    async fn list_deposits(
        &self,
        request: Request<proto::AccountPageRequest>,
    ) -> Result<Response<proto::DepositPage>, Status> {
        let (role, request) = (self.arrive().await?, request.into_inner());
        refuse_pruned(role, request.start)?;
        let state = self.state();
        let (entries, total) = page(state.deposits.get(&account_id(&request.account)), request.start);
        let deposits = entries.iter().map(|(_, deposit)| deposit.into()).collect();
        Ok(Response::new(proto::DepositPage { deposits, total }))
    }

    async fn list_redemptions(
        &self,
        request: Request<proto::PageRequest>,
    ) -> Result<Response<proto::CertificatePage>, Status> {
        let (role, start) = (self.arrive().await?, request.into_inner().start);
        refuse_pruned(role, start)?;
        let state = self.state();
        let (entries, mut total) = page(Some(&state.redemptions), start);
        let mut certificates: Vec<proto::Certificate> =
            entries.iter().map(|(_, certificate)| certificate.into()).collect();
        if matches!(role, Role::FalseRedemptionCount | Role::EndlessRedemptions) {
            total = u64::MAX;
        }
        if role == Role::EndlessRedemptions
            && let Some(last) = state.redemptions.last()
        {
            certificates.extend(std::iter::repeat_n(last.into(), 3));
        }
        Ok(Response::new(proto::CertificatePage { certificates, total }))
    }

    async fn vote_redemption_batch(
        &self,
        request: Request<proto::RedemptionBatchRequest>,
    ) -> Result<Response<proto::RedemptionBatchResponse>, Status> {
        let role = self.arrive().await?;
        let names: Vec<(AccountId, SequenceNumber)> = request.into_inner().try_into().unwrap();
        let mut state = self.state();
        state.batches_asked += 1;
        let (mut redemptions, mut positions) = (Vec::new(), Vec::new());
        for (position, (sender, sequence)) in (0..).zip(&names) {
            match state.certificates.get(&(*sender, sequence.0)).map(|certificate| &certificate.order.transfer) {
                Some(Transfer::Redemption(redemption)) => redemptions.push(redemption.clone()),
                _ => positions.push(position),
            }
        }
        match role {
            Role::FalseBatchPosition => positions = vec![names.len() as u32],
            Role::AlwaysMissing => positions = vec![0],
            _ => {}
        }
        let response = if positions.is_empty() {
            let TestCommittee { domain, committee, keys } = self.current(&state);
            let signer = if role == Role::StolenVote { (self.index + 1) % keys.len() } else { self.index };
            let mut vote = sign_batch_vote(&keys[signer], &domain, committee.epoch(), &redemptions);
            if role == Role::BadVote {
                vote.signature.0[5] ^= 1;
            }
            BatchResponse::Vote((committee.epoch(), &vote).into())
        } else {
            BatchResponse::Missing(proto::MissingRedemptions { positions })
        };
        Ok(Response::new(proto::RedemptionBatchResponse { response: Some(response) }))
    }

    async fn vote_unlock(
        &self,
        request: Request<proto::UnlockVoteRequest>,
    ) -> Result<Response<proto::UnlockVoteResponse>, Status> {
        use proto::unlock_vote_response::Response as Voted;
        let role = self.arrive().await?;
        let request = request.into_inner();
        let (account, sequence) =
            (AccountId(request.account.as_ref().try_into().unwrap()), SequenceNumber(request.sequence));
        if role == Role::WithholdsUnlockVotes {
            std::future::pending::<()>().await;
        }
        let mut state = self.state();
        if let Some(pruned) = state.archive.as_ref().and_then(|archive| archive.pruned_sent(&account, sequence.0)) {
            return Err(pruned_status(pruned));
        }
        let TestCommittee { domain, committee, keys } = self.current(&state);
        let (keys, epoch) = (&keys[self.index], committee.epoch());
        let sign = |vote: UnlockVote| {
            let mut vote = vote.sign(keys, &domain, epoch, account, sequence);
            if role == Role::BadVote {
                vote.signature.0[5] ^= 1;
            }
            vote
        };
        let answer = match state.certificates.get(&(account, sequence.0)).cloned() {
            Some(certificate) => {
                let vote = sign(UnlockVote::Certificate(domain.transfer_digest(&certificate.order.transfer)));
                Ok(UnlockAnswer::Certificate { certificate: certificate.into(), epoch, vote })
            }
            None => {
                let shard = state.authority.shard(&account);
                let voted = shard.void_vote((account, sequence), request.unanimous, epoch, VoteFloor::Zero, CHAIN_TIME);
                voted.map(|_| UnlockAnswer::Void {
                    epoch,
                    vote: sign(UnlockVote::Void { unanimous: request.unanimous }),
                })
            }
        };
        let response = match answer {
            Ok(answer) => (&answer).into(),
            Err(rejection) => Voted::Refused((&Refusal::from(rejection)).into()),
        };
        Ok(Response::new(proto::UnlockVoteResponse { response: Some(response) }))
    }

    async fn read_archived(
        &self,
        request: Request<proto::ArchivedRequest>,
    ) -> Result<Response<proto::ArchivedPage>, Status> {
        let role = self.arrive().await?;
        let request = request.into_inner().try_into().unwrap();
        let state = self.state();
        let archive = state.archive.as_ref().ok_or_else(|| Status::not_found("no archive here"))?;
        Ok(Response::new((&archive.page(&request, role)).into()))
    }

    async fn exchange_endpoints(
        &self,
        _: Request<proto::EndpointsRequest>,
    ) -> Result<Response<proto::EndpointsResponse>, Status> {
        self.arrive().await?;
        let endpoints = self.state().told.iter().map(Into::into).collect();
        Ok(Response::new(proto::EndpointsResponse { endpoints }))
    }

    async fn read_closing(&self, _: Request<proto::ClosingRequest>) -> Result<Response<proto::ArchivePart>, Status> {
        Err(Status::not_found("no Closing here"))
    }

    async fn read_archive(&self, _: Request<proto::ArchiveRequest>) -> Result<Response<proto::ArchivePart>, Status> {
        Err(Status::not_found("no archive here"))
    }

    /// Lists the certificates by account and number. A cursor is the number of the first one that has not been read.
    async fn list_confirmed(
        &self,
        request: Request<proto::ConfirmedRequest>,
    ) -> Result<Response<proto::ConfirmedPage>, Status> {
        let role = self.arrive().await?;
        let cursor = request.into_inner().cursor;
        let state = self.state();
        let name = |account: AccountId, sequence| proto::TransferName { sender: account.0.to_vec().into(), sequence };
        if role == Role::EndlessLog {
            // Each of another account, in pages of some length: it is left after a thousand, also on a busy machine.
            let next = cursor + 50;
            let invented = |number: u64| {
                let mut account = [0xEE; 32];
                account[..8].copy_from_slice(&number.to_le_bytes());
                name(AccountId(account), 0)
            };
            let names = (cursor..next).map(invented).collect();
            return Ok(Response::new(proto::ConfirmedPage { names, next, end: u64::MAX }));
        }
        if role == Role::LostLog {
            return Err(Status::out_of_range("the cursor is not in the log"));
        }
        let cursor = if role == Role::StuckLog { 0 } else { cursor };
        let end = state.certificates.len() as u64;
        let unread = state.certificates.keys().skip(cursor as usize).take(CONFIRMED_PAGE_MAX);
        let names: Vec<_> = unread.map(|(account, sequence)| name(*account, *sequence)).collect();
        let next = if role == Role::StuckLog { cursor } else { cursor + names.len() as u64 };
        Ok(Response::new(proto::ConfirmedPage { names, next, end }))
    }

    async fn get_status(
        &self,
        request: Request<proto::StatusRequest>,
    ) -> Result<Response<proto::StatusResponse>, Status> {
        let role = self.arrive().await?;
        let asked = request.into_inner().asset;
        let mut state = self.state();
        let ledger = state.authority.shard(&AccountId::ZERO).ledger().clone();
        let truncated = role == Role::ShortLists && asked.is_empty();
        let chosen = ledger
            .totals
            .iter()
            .filter(|(asset, _)| !truncated && (asked.is_empty() || asset.0.as_slice() == asked.as_ref()));
        let invented = Amount(if role == Role::FalseTotals { 7 } else { 0 });
        let balance = |balance: &Balance| balance.to_be_bytes().to_vec().into();
        let totals = chosen.map(|(asset, totals)| proto::AssetTotals {
            asset: asset.0.to_vec().into(),
            accounts: balance(&totals.accounts.credit(invented)),
            deposited: balance(&totals.deposited.credit(invented)),
            credited: balance(&totals.credited),
            forwarded: balance(&totals.forwarded),
            redeemed: balance(&totals.redeemed),
        });
        let TestCommittee { committee, keys, .. } = self.current(&state);
        let members = committee.members().iter();
        Ok(Response::new(proto::StatusResponse {
            authority: keys[self.index].public().name.0.to_vec().into(),
            epoch: committee.epoch().0,
            committee: members
                .map(|member| proto::CommitteeMember {
                    voting_key: member.name.0.to_vec().into(),
                    redemption_key: member.redemption_key.to_vec().into(),
                })
                .collect(),
            contract: vec![0; 20].into(),
            shard_count: 1,
            synchronized: ledger.synchronized.0,
            redemptions: state.redemptions.len() as u64,
            totals: totals.collect(),
            truncated,
            ..proto::StatusResponse::default()
        }))
    }
}

/// As a node whose list begins behind the entry that is asked for.
fn refuse_pruned(role: Role, start: u64) -> Result<(), Status> {
    let Role::Pruned(first) = role else { return Ok(()) };
    if start >= first {
        return Ok(());
    }
    Err(pruned_status(Pruned { checkpoint: 1, first }))
}

fn pruned_status(Pruned { checkpoint, first }: Pruned) -> Status {
    let mut status = Status::failed_precondition("the list is pruned");
    status.metadata_mut().insert(PRUNED_FIRST_KEY, first.into());
    status.metadata_mut().insert(PRUNED_CHECKPOINT_KEY, checkpoint.into());
    status
}
