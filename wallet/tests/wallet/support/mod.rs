//! A committee of in-process authorities behind real gRPC: honest ones by core's rules, and ones that act
//! parts which a real node cannot be made to act.

use std::collections::BTreeMap;
use std::path::Path;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use fastpay_client::{AuthorityEndpoints, ClientOptions, Endpoints};
use fastpay_client::{Network, QuorumOptions};
use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, Balance, Certificate, Committees, Deposit, Epoch, Memo, Receipt,
    SequenceNumber, TransactionIndex, Transfer, TransferOrder, Vote, VoteSignature, sign_batch_vote,
};
use fastpay_rpc::proto::redemption_batch_response::Response as BatchResponse;
use fastpay_rpc::proto::shard_server::{Shard, ShardServer};
use fastpay_rpc::proto::submit_request::Request as Ask;
use fastpay_rpc::proto::submit_response::Response as Answer;
use fastpay_rpc::{PAGE_ENTRIES_MAX, Refusal, proto};
use fastpay_testkit::{Outcome, TestAccount, TestAuthority, TestAuthorityError, TestCommittee};
use fastpay_wallet::folder::Folder;
use fastpay_wallet::{Intent, Wallet};
use rand::rngs::StdRng;
use rand::{RngExt, SeedableRng};
use tokio::sync::mpsc;
use tokio_stream::wrappers::{ReceiverStream, TcpListenerStream};
use tonic::{Request, Response, Status, Streaming};

/// The part that an authority plays.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Part {
    Honest,
    /// Answers nothing, ever.
    Silent,
    /// Refuses every request as a stopped process does.
    Down,
    /// Answers, late.
    Slow(Duration),
    /// Votes with a signature of something else.
    BadVote,
    /// Gives the vote of the next authority as its own.
    StolenVote,
    /// Says that the account is ahead of the order.
    FalseAlreadyConfirmed,
    /// Says that earlier certificates are missing.
    FalseGap,
    /// Says that later certificates are missing.
    FalseFuture,
    /// Says that the account has nothing.
    FalsePoverty,
    /// Shows a pending order that nobody signed.
    ForgedPending,
    /// Confirms without doing so, naming an old number.
    FalseConfirmation,
    /// Lists payments and states that never were.
    FalseHistory,
    /// Lists so many payments received that never were, and votes for nothing.
    FalseReceipts(u64),
    /// The same, two thousand of them, and each page so late.
    SlowReceipts(Duration),
    /// Honest, but lists no asset unless it is asked for by name.
    ShortLists,
    /// Honest, but lists one payment in a page.
    ShortPages,
    /// Answers with garbage.
    Garbage,
    /// Votes in an epoch that never was.
    FalseEpoch,
    /// Says that every account holds one unit more of everything.
    FalseBalances,
    /// Counts seven units more in its accounts and as deposited.
    FalseTotals,
    /// Has no certificate, when asked.
    HidesCertificates,
    /// Lists payments received as they are, and lets whoever asks for a certificate wait for ever.
    WithholdsCertificates,
    /// The same, and in the place of each of them lists a payment that never was. Claims that the account sent much.
    InventsAndWithholds,
    /// Shows certificates so late.
    SlowCertificates(Duration),
    /// Cannot read so many certificates when asked, and then all.
    LosesCertificates(usize),
    /// Loses some requests and answers others late, by this seed.
    Erratic(u64),
    /// The same, and votes for every order, whatever it voted for before.
    VotesForAll(u64),
}

const SLOW_RECEIPTS: u64 = 2_000;

/// Nobody here takes this long who answers at all, however busy the machine is; for the others it is waited so long.
pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(3);

pub const LIES: [Part; 11] = [
    Part::FalseEpoch,
    Part::BadVote,
    Part::StolenVote,
    Part::FalseAlreadyConfirmed,
    Part::FalseGap,
    Part::FalseFuture,
    Part::FalsePoverty,
    Part::ForgedPending,
    Part::FalseConfirmation,
    Part::FalseHistory,
    Part::Garbage,
];

/// Hears every order and certificate that comes to an authority, before it is answered.
pub type Ear = Arc<dyn Fn(&Message) + Send + Sync>;

/// What a wallet sends to an authority.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Message {
    Order(TransferOrder),
    Certificate(Certificate),
}

struct State {
    authority: TestAuthority,
    part: Part,
    certificates: BTreeMap<(AccountId, u64), Certificate>,
    received: BTreeMap<AccountId, Vec<Receipt>>,
    deposits: BTreeMap<AccountId, Vec<Deposit>>,
    redemptions: Vec<Certificate>,
    /// Digests of the orders that came, in order.
    orders_seen: Vec<TransferOrder>,
    /// Every certificate that came, in order.
    certificates_seen: Vec<Certificate>,
    /// How many requests for certificates came.
    certificates_asked: usize,
    /// Somebody waits for a certificate that it withholds.
    is_waited_for: bool,
    /// How many requests came while it was erratic.
    erratic: u64,
}

/// One authority.
#[derive(Clone)]
pub struct Fake {
    index: usize,
    committee: Arc<TestCommittee>,
    /// Of all epochs.
    epochs: Arc<Mutex<Vec<TestCommittee>>>,
    ear: Arc<Mutex<Option<Ear>>>,
    state: Arc<Mutex<State>>,
}

impl Fake {
    fn hears(&self, message: &Message) {
        let ear = self.ear.lock().unwrap().clone();
        if let Some(ear) = ear {
            ear(message);
        }
    }

    pub fn play(&self, part: Part) {
        self.state.lock().unwrap().part = part;
    }

    pub fn next_sequence(&self, account: AccountId) -> u64 {
        self.state.lock().unwrap().authority.account(&account).next_sequence().0
    }

    pub fn balance(&self, account: AccountId) -> i128 {
        self.state.lock().unwrap().authority.account(&account).balance(Asset::ETHER).to_string().parse().unwrap()
    }

    pub fn orders_seen(&self) -> Vec<TransferOrder> {
        self.state.lock().unwrap().orders_seen.clone()
    }

    pub fn votes_for_all(&self) -> bool {
        matches!(self.state.lock().unwrap().part, Part::VotesForAll(_))
    }

    pub fn certificates_seen(&self) -> Vec<Certificate> {
        self.state.lock().unwrap().certificates_seen.clone()
    }

    pub fn certificates_asked(&self) -> usize {
        self.state.lock().unwrap().certificates_asked
    }

    pub fn is_waited_for(&self) -> bool {
        self.state.lock().unwrap().is_waited_for
    }

    /// As if restored from a copy of when it had received so many payments for `account`. Those that it had beyond.
    pub fn set_back(&self, account: AccountId, count: usize) -> Vec<Receipt> {
        let mut state = self.state.lock().unwrap();
        let later = state.received.get_mut(&account).unwrap().split_off(count);
        for payment in &later {
            state.certificates.remove(&(payment.payment.sender, payment.payment.sequence.0));
        }
        later
    }

    pub fn is_locked(&self, account: AccountId) -> bool {
        self.state.lock().unwrap().authority.account(&account).pending.is_some()
    }

    /// As if the order had come to this authority alone.
    pub fn lock(&self, order: &TransferOrder) {
        self.state.lock().unwrap().authority.order(order).unwrap();
    }

    /// As if the certificate had come to this authority alone.
    pub fn confirm(&self, certificate: &Certificate) {
        self.state.lock().unwrap().confirm(certificate).unwrap();
    }

    /// Follows the committee to its next epoch.
    pub fn rotate(&self) {
        let mut state = self.state.lock().unwrap();
        let next = usize::try_from(state.authority.epoch().0 + 1).unwrap();
        state.authority.rotate(&self.epochs.lock().unwrap()[next], self.index);
    }

    fn current(&self, state: &State) -> TestCommittee {
        self.epochs.lock().unwrap()[usize::try_from(state.authority.epoch().0).unwrap()].clone()
    }

    pub fn deposit(&self, deposit: &Deposit) {
        let mut state = self.state.lock().unwrap();
        state.authority.deposit(deposit).unwrap();
        state.deposits.entry(deposit.recipient).or_default().push(deposit.clone());
    }

    async fn endure(&self) -> Result<Part, Status> {
        let part = self.state.lock().unwrap().part;
        match part {
            Part::Silent => std::future::pending().await,
            Part::Slow(by) => tokio::time::sleep(by).await,
            Part::Down => return Err(Status::unavailable("down")),
            Part::Erratic(seed) | Part::VotesForAll(seed) => {
                let number = {
                    let mut state = self.state.lock().unwrap();
                    state.erratic += 1;
                    state.erratic
                };
                let chance = StdRng::seed_from_u64(seed ^ (number << 8)).random_range(0..32);
                match chance {
                    0..3 => return Err(Status::unavailable("erratic")),
                    late => tokio::time::sleep(Duration::from_micros(late * 100)).await,
                }
            }
            _ => {}
        }
        Ok(part)
    }

    fn answer(&self, ask: Ask, part: Part) -> Answer {
        match ask {
            Ask::Order(order) => {
                let order: TransferOrder = order.try_into().unwrap();
                self.hears(&Message::Order(order.clone()));
                let mut state = self.state.lock().unwrap();
                state.orders_seen.push(order.clone());
                drop(state);
                self.answer_order(&order, part)
            }
            Ask::Certificate(certificate) => {
                let certificate: Certificate = certificate.try_into().unwrap();
                let account = certificate.order.transfer.sender();
                self.hears(&Message::Certificate(certificate.clone()));
                let mut state = self.state.lock().unwrap();
                state.certificates_seen.push(certificate.clone());
                if part == Part::FalseConfirmation {
                    return Answer::Confirmed(proto::Confirmed { next_sequence: 0 });
                }
                match state.confirm(&certificate) {
                    Ok(_) => {
                        let next_sequence = state.authority.account(&account).next_sequence().0;
                        Answer::Confirmed(proto::Confirmed { next_sequence })
                    }
                    Err(refusal) => Answer::Refused((&refusal_of(refusal)).into()),
                }
            }
        }
    }

    fn answer_order(&self, order: &TransferOrder, part: Part) -> Answer {
        let refuse = |refusal: Refusal| Answer::Refused((&refusal).into());
        let sequence = order.transfer.sequence();
        match part {
            Part::FalseAlreadyConfirmed => {
                return refuse(Refusal::AlreadyConfirmed(SequenceNumber(sequence.0 + 1)));
            }
            Part::FalseGap => return refuse(Refusal::SequenceTooHigh(SequenceNumber(0))),
            Part::FalseFuture => return refuse(Refusal::SequenceTooHigh(SequenceNumber(u64::MAX))),
            Part::FalsePoverty | Part::FalseReceipts(_) | Part::SlowReceipts(_) => {
                return refuse(Refusal::InsufficientBalance(fastpay_core::Balance::ZERO));
            }
            Part::ForgedPending => {
                let mut forged = order.clone();
                if let Transfer::Payment(payment) = &mut forged.transfer {
                    payment.amount = Amount(1);
                }
                return refuse(Refusal::OrderPending(Box::new(forged)));
            }
            Part::StolenVote => {
                let committee = self.current(&self.state.lock().unwrap());
                let vote = committee.vote((self.index + 1) % 4, order);
                return Answer::Vote((committee.committee.epoch(), &vote).into());
            }
            Part::FalseEpoch => {
                let vote = self.committee.vote(self.index, order);
                return Answer::Vote((Epoch(99), &vote).into());
            }
            Part::Garbage => return Answer::Vote(proto::Vote::default()),
            Part::VotesForAll(_) => {
                let vote = self.committee.vote(self.index, order);
                return Answer::Vote((self.committee.committee.epoch(), &vote).into());
            }
            _ => {}
        }
        let authority = &mut self.state.lock().unwrap().authority;
        match authority.order(order) {
            Ok(mut vote) => {
                if part == Part::BadVote {
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
        other => Refusal::Invalid(other.to_string()),
    }
}

impl State {
    fn confirm(&mut self, certificate: &Certificate) -> Result<Outcome, TestAuthorityError> {
        let outcome = self.authority.confirm(certificate)?;
        self.authority.deliver_all();
        let transfer = &certificate.order.transfer;
        let name = (transfer.sender(), transfer.sequence().0);
        if self.certificates.insert(name, certificate.clone()).is_none() {
            for receipt in transfer.receipts() {
                self.received.entry(receipt.payment.recipient).or_default().push(receipt);
            }
            if let Transfer::Redemption(_) = transfer {
                self.redemptions.push(certificate.clone());
            }
        }
        Ok(outcome)
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
impl Shard for Fake {
    type SubmitStream = Pin<Box<ReceiverStream<Result<proto::SubmitResponse, Status>>>>;

    async fn submit(
        &self,
        requests: Request<Streaming<proto::SubmitRequest>>,
    ) -> Result<Response<Self::SubmitStream>, Status> {
        self.endure().await?;
        let (answers, stream) = mpsc::channel(64);
        let mut requests = requests.into_inner();
        let fake = self.clone();
        tokio::spawn(async move {
            while let Ok(Some(request)) = requests.message().await {
                let (fake, answers) = (fake.clone(), answers.clone());
                tokio::spawn(async move {
                    let answer = match fake.endure().await {
                        Ok(part) => {
                            let response = Some(fake.answer(request.request.unwrap(), part));
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
        let part = self.endure().await?;
        let request = request.into_inner();
        let id = account_id(&request.account);
        let state = self.state.lock().unwrap();
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
            truncated: part == Part::ShortLists && request.asset.is_empty(),
            catching_up: false,
        };
        answer.holdings.retain(|held| !answer.truncated && (request.asset.is_empty() || held.asset == request.asset));
        if part == Part::FalseBalances {
            for held in &mut answer.holdings {
                let balance = Balance::from_be_bytes(held.balance.as_ref().try_into().unwrap());
                held.balance = balance.credit(Amount(1)).to_be_bytes().to_vec().into();
            }
        }
        if part == Part::FalseHistory {
            answer.next_sequence = 1_000_000;
            answer.received = u64::MAX;
            answer.holdings.clear();
        }
        match part {
            Part::FalseReceipts(count) => answer.received = count,
            Part::SlowReceipts(_) => answer.received = SLOW_RECEIPTS,
            Part::InventsAndWithholds => answer.next_sequence = 1_000_000,
            _ => {}
        }
        Ok(Response::new(answer))
    }

    async fn get_certificate(
        &self,
        request: Request<proto::CertificateRequest>,
    ) -> Result<Response<proto::Certificate>, Status> {
        let part = self.endure().await?;
        let request = request.into_inner();
        match part {
            Part::WithholdsCertificates | Part::InventsAndWithholds => {
                self.state.lock().unwrap().is_waited_for = true;
                std::future::pending().await
            }
            Part::SlowCertificates(by) => tokio::time::sleep(by).await,
            _ => {}
        }
        let mut state = self.state.lock().unwrap();
        state.certificates_asked += 1;
        if part == Part::FalseHistory {
            // Any certificate at all, in place of the one asked for.
            let any = state.certificates.values().next().ok_or_else(|| Status::not_found("none"))?;
            return Ok(Response::new(any.into()));
        }
        if part == Part::HidesCertificates {
            return Err(Status::not_found("none"));
        }
        if let Part::LosesCertificates(count) = part
            && let Some(rest) = count.checked_sub(1)
        {
            state.part = Part::LosesCertificates(rest);
            return Err(Status::data_loss("the record cannot be read"));
        }
        let found = state.certificates.get(&(account_id(&request.account), request.sequence));
        found.map(|certificate| Response::new(certificate.into())).ok_or_else(|| Status::not_found("none"))
    }

    async fn read_certificates(
        &self,
        request: Request<proto::CertificatesRequest>,
    ) -> Result<Response<proto::CertificatesResponse>, Status> {
        let names = request.into_inner().names;
        let mut answer = proto::CertificatesResponse { certificates: Vec::new(), looked_up: names.len() as u32 };
        for proto::TransferName { sender, sequence } in names {
            let request = proto::CertificateRequest { account: sender, sequence };
            match self.get_certificate(Request::new(request)).await {
                Ok(certificate) => answer.certificates.push(certificate.into_inner()),
                Err(status) if status.code() == tonic::Code::NotFound => {}
                Err(status) => return Err(status),
            }
        }
        Ok(Response::new(answer))
    }

    async fn list_received(
        &self,
        request: Request<proto::AccountPageRequest>,
    ) -> Result<Response<proto::ReceivedPage>, Status> {
        let part = self.endure().await?;
        let request = request.into_inner();
        let account = account_id(&request.account);
        if part == Part::FalseHistory && request.start < 100 {
            let sender = TestAccount::numbered(77).id();
            let invented = fastpay_testkit::payment(sender, account, 1_000_000, request.start);
            let payments = vec![proto::Received {
                number: request.start,
                payment: Some((&invented).into()),
                output: None,
                payout: None,
            }];
            return Ok(Response::new(proto::ReceivedPage { payments, total: u64::MAX }));
        }
        let invented = match part {
            Part::FalseReceipts(count) => Some(count),
            Part::SlowReceipts(by) => {
                tokio::time::sleep(by).await;
                Some(SLOW_RECEIPTS)
            }
            _ => None,
        };
        if let Some(total) = invented {
            let sender = TestAccount::numbered(77).id();
            let numbers = request.start..total.min(request.start + u64::from(PAGE_ENTRIES_MAX));
            let payments = numbers.map(|number| {
                let invented = fastpay_testkit::payment(sender, account, 1_000_000, number);
                proto::Received { number, payment: Some((&invented).into()), output: None, payout: None }
            });
            return Ok(Response::new(proto::ReceivedPage { payments: payments.collect(), total }));
        }
        let state = self.state.lock().unwrap();
        let (mut entries, total) = page(state.received.get(&account), request.start);
        if part == Part::ShortPages {
            entries.truncate(1);
        }
        if part == Part::InventsAndWithholds {
            let invented =
                |number| fastpay_testkit::payment(TestAccount::numbered(77).id(), account, 1_000_000, number);
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
        self.endure().await?;
        let request = request.into_inner();
        let state = self.state.lock().unwrap();
        let (entries, total) = page(state.deposits.get(&account_id(&request.account)), request.start);
        let deposits = entries.iter().map(|(_, deposit)| deposit.into()).collect();
        Ok(Response::new(proto::DepositPage { deposits, total }))
    }

    async fn list_redemptions(
        &self,
        request: Request<proto::PageRequest>,
    ) -> Result<Response<proto::CertificatePage>, Status> {
        self.endure().await?;
        let state = self.state.lock().unwrap();
        let (entries, total) = page(Some(&state.redemptions), request.into_inner().start);
        let certificates = entries.iter().map(|(_, certificate)| certificate.into()).collect();
        Ok(Response::new(proto::CertificatePage { certificates, total }))
    }

    async fn vote_redemption_batch(
        &self,
        request: Request<proto::RedemptionBatchRequest>,
    ) -> Result<Response<proto::RedemptionBatchResponse>, Status> {
        self.endure().await?;
        let names: Vec<(AccountId, SequenceNumber)> = request.into_inner().try_into().unwrap();
        let state = self.state.lock().unwrap();
        let (mut redemptions, mut positions) = (Vec::new(), Vec::new());
        for (position, (sender, sequence)) in (0..).zip(names) {
            match state.certificates.get(&(sender, sequence.0)).map(|certificate| &certificate.order.transfer) {
                Some(Transfer::Redemption(redemption)) => redemptions.push(redemption.clone()),
                _ => positions.push(position),
            }
        }
        let response = if positions.is_empty() {
            let TestCommittee { domain, committee, keys } = self.current(&state);
            let vote = sign_batch_vote(&keys[self.index], &domain, committee.epoch(), &redemptions);
            BatchResponse::Vote((committee.epoch(), &vote).into())
        } else {
            BatchResponse::Missing(proto::MissingRedemptions { positions })
        };
        Ok(Response::new(proto::RedemptionBatchResponse { response: Some(response) }))
    }

    async fn get_status(
        &self,
        request: Request<proto::StatusRequest>,
    ) -> Result<Response<proto::StatusResponse>, Status> {
        let part = self.endure().await?;
        let asked = request.into_inner().asset;
        let mut state = self.state.lock().unwrap();
        let ledger = state.authority.shard(&AccountId::ZERO).ledger().clone();
        let truncated = part == Part::ShortLists && asked.is_empty();
        let chosen = ledger
            .totals
            .iter()
            .filter(|(asset, _)| !truncated && (asked.is_empty() || asset.0.as_slice() == asked.as_ref()));
        let invented = Amount(if part == Part::FalseTotals { 7 } else { 0 });
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

/// Four authorities, served on loopback.
pub struct Committee {
    /// Of the first epoch.
    pub committee: Arc<TestCommittee>,
    /// Of all epochs.
    pub epochs: Arc<Mutex<Vec<TestCommittee>>>,
    ear: Arc<Mutex<Option<Ear>>>,
    pub fakes: Vec<Fake>,
    pub endpoints: Endpoints,
}

impl Committee {
    pub async fn start() -> Self {
        Self::start_with(TestCommittee::new(4)).await
    }

    pub async fn start_with(committee: TestCommittee) -> Self {
        let (epochs, ear) = (Arc::new(Mutex::new(vec![committee.clone()])), Arc::new(Mutex::new(None)));
        let committee = Arc::new(committee);
        let (mut fakes, mut authorities) = (Vec::new(), Vec::new());
        for index in 0..4 {
            let state = State {
                authority: TestAuthority::new(&committee, index, 1),
                part: Part::Honest,
                certificates: BTreeMap::new(),
                received: BTreeMap::new(),
                deposits: BTreeMap::new(),
                redemptions: Vec::new(),
                orders_seen: Vec::new(),
                certificates_seen: Vec::new(),
                certificates_asked: 0,
                is_waited_for: false,
                erratic: 0,
            };
            let (epochs, ear) = (epochs.clone(), ear.clone());
            let fake = Fake { index, committee: committee.clone(), epochs, ear, state: Arc::new(Mutex::new(state)) };
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
            let address = listener.local_addr().unwrap();
            let server = tonic::transport::Server::builder().add_service(ShardServer::new(fake.clone()));
            tokio::spawn(server.serve_with_incoming(TcpListenerStream::new(listener)));
            let name = committee.committee.members()[index].name;
            let shards = vec![format!("http://{address}")];
            authorities.push(AuthorityEndpoints { name, shards, http: None, tls_ca: None });
            fakes.push(fake);
        }
        Self { committee, epochs, ear, fakes, endpoints: Endpoints { authorities, relayers: vec![] } }
    }

    /// Has `ear` hear what comes to all authorities.
    pub fn listen(&self, ear: impl Fn(&Message) + Send + Sync + 'static) {
        *self.ear.lock().unwrap() = Some(Arc::new(ear));
    }

    /// The current committee, and that of the next epoch, which no authority has come to yet.
    pub fn next_epoch(&self) -> (TestCommittee, TestCommittee) {
        let mut epochs = self.epochs.lock().unwrap();
        let current = epochs.last().unwrap().clone();
        let next = current.rotated();
        epochs.push(next.clone());
        (current, next)
    }

    pub fn network(&self) -> Network {
        self.network_with(REQUEST_TIMEOUT)
    }

    /// One in which an authority may take so long to answer.
    pub fn network_with(&self, request_timeout: Duration) -> Network {
        let options = ClientOptions { connect_timeout: REQUEST_TIMEOUT, request_timeout };
        let TestCommittee { domain, committee, .. } = &*self.committee;
        let committees = Committees::new(committee.clone()).unwrap();
        Network::with_options(*domain, committees, &self.endpoints, options).unwrap()
    }

    pub fn wallet(&self, home: &Path) -> Wallet {
        Wallet::new(Folder::new(home), self.network(), options())
    }

    /// Deposit number `index` for an account, at the authorities of these numbers.
    pub fn fund(&self, index: u64, account: AccountId, amount: u128, at: &[usize]) {
        let index = TransactionIndex(index);
        let deposit = Deposit { index, recipient: account, asset: Asset::ETHER, amount: Amount(amount) };
        at.iter().for_each(|authority| self.fakes[*authority].deposit(&deposit));
    }

    pub fn order(&self, key: &AccountKey, intent: &Intent, sequence: u64) -> TransferOrder {
        key.order(&self.committee.domain, intent.transfer(key.account(), SequenceNumber(sequence)))
    }

    /// Waits until all authorities have done what goes on in the background.
    pub async fn until(&self, condition: impl Fn(&Fake) -> bool) {
        self.until_so_many(self.fakes.len(), condition).await;
    }

    /// Waits until so many of them have come to that: who ends after a quorum has settled leaves the others behind.
    pub async fn until_so_many(&self, count: usize, condition: impl Fn(&Fake) -> bool) {
        for _ in 0..6_000 {
            if self.fakes.iter().filter(|fake| condition(fake)).count() >= count {
                return;
            }
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
        panic!("the authorities did not come to the expected state");
    }
}

pub fn options() -> QuorumOptions {
    QuorumOptions {
        deadline: Duration::from_secs(5),
        funds_patience: Duration::from_secs(2),
        background: Duration::from_secs(5),
        backoff_min: Duration::from_millis(5),
        backoff_max: Duration::from_millis(50),
    }
}

pub fn pay(recipient: AccountId, amount: u128) -> Intent {
    Intent::Pay { recipient, asset: Asset::ETHER, amount: Amount(amount), memo: Memo::ZERO }
}

pub fn alice() -> AccountKey {
    TestAccount::numbered(0).key
}

pub fn bob() -> AccountKey {
    TestAccount::numbered(1).key
}

pub fn carol() -> AccountKey {
    TestAccount::numbered(2).key
}
