//! A shard's port: what clients ask over gRPC, and what they are answered.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use fastpay_client::{ClientError, ClientOptions, ShardClient};
use fastpay_core::{
    AccountId, Amount, Asset, Balance, Ed25519Signature, Epoch, PAYOUT_OUTPUTS_MAX, PrimaryAddress, SequenceNumber,
    ShardId, TransferOrder,
};
use fastpay_core::{Authorization, Certificate};
use fastpay_node::authority::certification::ArchivedReads;
use fastpay_node::authority::handover::Closings;
use fastpay_node::authority::network::{self, NetworkLimits, ShardContext};
use fastpay_node::authority::peer_book::PeerBook;
use fastpay_node::authority::shard::{Command, ShardLimits};
use fastpay_rpc::proto::shard_client::ShardClient as Grpc;
use fastpay_rpc::proto::submit_request::Request;
use fastpay_rpc::proto::submit_response::Response;
use fastpay_rpc::proto::{self, SubmitRequest, SubmitResponse};
use fastpay_rpc::{CERTIFICATES_BYTES_MAX, MESSAGE_BYTES_MAX, PAGE_ENTRIES_MAX, Refusal, request_bytes_max};
use fastpay_testkit::{TestAccount, payment, payout, redemption};
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tonic::transport::{Channel, Endpoint, Identity};
use tonic::{Code, Streaming};

use crate::scene::{FORGETFUL, PATIENCE, Shards, eventually_async};

/// Shards with a port each.
pub struct Served {
    pub shards: Shards,
    pub addresses: Vec<SocketAddr>,
    stop: watch::Sender<bool>,
    servers: Vec<JoinHandle<()>>,
    _folder: tempfile::TempDir,
}

pub fn client_options() -> ClientOptions {
    ClientOptions { connect_timeout: PATIENCE, request_timeout: PATIENCE }
}

impl Served {
    pub async fn start(shards: u32) -> Self {
        Self::with(shards, NetworkLimits::default(), None).await
    }

    pub async fn with(shards: u32, limits: NetworkLimits, tls: Option<Identity>) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let shards = Shards::start(folder.path(), shards, FORGETFUL);
        Self::on(shards, folder, limits, tls).await
    }

    pub async fn on(shards: Shards, folder: tempfile::TempDir, limits: NetworkLimits, tls: Option<Identity>) -> Self {
        let (stop, stopped) = watch::channel(false);
        let (mut addresses, mut servers) = (Vec::new(), Vec::new());
        let all = Arc::new(shards.handles.values().cloned().zip(shards.histories.iter().cloned()).collect::<Vec<_>>());
        for ((id, handle), history) in shards.handles.iter().zip(&shards.histories) {
            let listener = network::listen("127.0.0.1:0".parse().unwrap()).await.unwrap();
            addresses.push(listener.local_addr().unwrap());
            let context = ShardContext {
                domain: shards.committee.domain,
                voter_status: shards.voter_status.subscribe(),
                shard: *id,
                handle: handle.clone(),
                history: history.clone(),
                shards: all.clone(),
                closings: Closings::of(folder.path(), 0),
                peers: PeerBook::new(shards.committee.domain, None, &[]),
                archive: None,
                archived: ArchivedReads::default(),
                handover: shards.metrics.handover.clone(),
                metrics: shards.metrics.network.clone(),
            };
            let (tls, stopped) = (tls.clone(), stopped.clone());
            servers.push(tokio::spawn(async move {
                network::serve(listener, context, limits, tls, stopped).await.unwrap();
            }));
        }
        Self { shards, addresses, stop, servers, _folder: folder }
    }

    pub fn client(&self, shard: usize) -> ShardClient {
        ShardClient::new(&format!("http://{}", self.addresses[shard]), None, client_options()).unwrap()
    }

    /// A stream of raw requests, all of them written at once.
    pub async fn stream(&self, requests: Vec<SubmitRequest>) -> Streaming<SubmitResponse> {
        let channel = Endpoint::from_shared(format!("http://{}", self.addresses[0])).unwrap().connect().await.unwrap();
        raw(channel, requests).await
    }

    /// Tells the servers to stop, and waits until they have.
    pub async fn stop(self) -> Shards {
        self.stop.send_replace(true);
        for server in self.servers {
            tokio::time::timeout(PATIENCE, server).await.expect("the server stops").unwrap();
        }
        self.shards
    }

    /// Stops everything, off the runtime's own thread.
    pub async fn end(self) {
        let shards = self.stop().await;
        tokio::task::spawn_blocking(|| shards.stop()).await.unwrap();
    }

    pub async fn deposit(&self, deposits: &[(AccountId, u128)]) {
        let deposits = crate::scene::deposits_after(fastpay_core::TransactionIndex(0), deposits);
        let up_to = deposits.last().unwrap().index;
        assert!(self.shards.deposit_sink().apply(fastpay_core::TransactionIndex(0), &deposits, up_to).await);
    }
}

pub async fn raw(channel: Channel, requests: Vec<SubmitRequest>) -> Streaming<SubmitResponse> {
    Grpc::new(channel).submit(tokio_stream::iter(requests)).await.unwrap().into_inner()
}

pub fn ask(id: u64, order: &TransferOrder) -> SubmitRequest {
    SubmitRequest { id, request: Some(Request::Order(order.into())) }
}

/// All answers until the stream ends, by id; and how it ends.
pub async fn answers(mut stream: Streaming<SubmitResponse>) -> (Vec<(u64, Response)>, Result<(), tonic::Status>) {
    let mut answers = Vec::new();
    let end = loop {
        match tokio::time::timeout(PATIENCE, stream.message()).await.expect("an answer in time") {
            Ok(Some(answer)) => answers.push((answer.id, answer.response.unwrap())),
            Ok(None) => break Ok(()),
            Err(status) => break Err(status),
        }
    };
    answers.sort_by_key(|(id, _)| *id);
    (answers, end)
}

pub fn refusal(response: &Response) -> Refusal {
    let Response::Refused(refused) = response else { panic!("not refused: {response:?}") };
    refused.clone().try_into().unwrap()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_payment_from_order_to_confirmation_and_everything_that_can_be_read_of_it() {
    let served = Served::start(2).await;
    let (committee, domain) = (served.shards.committee.clone(), served.shards.committee.domain);
    let (alice, bob) = (served.shards.account_in(0, 0), served.shards.account_in(1, 0));
    served.deposit(&[(alice.id(), 100), (bob.id(), 1), (alice.id(), 11)]).await;
    let (here, there) = (served.client(0), served.client(1));

    let order = alice.sign(&domain, payment(alice.id(), bob.id(), 30, 0));
    let verified = committee.verified(&order);
    let (_, vote) = here.order(&order).await.unwrap();
    vote.verify(&domain, &committee.committee, &verified).unwrap();
    let state = here.account(alice.id()).await.unwrap();
    assert_eq!((state.pending, state.next_sequence), (Some(order.clone()), SequenceNumber(0)));
    let certificate = committee.certificate(&order);
    assert_eq!(here.certificate(alice.id(), SequenceNumber(0)).await, Err(ClientError::NotFound));
    assert_eq!(here.confirm(&certificate).await, Ok((Some(Epoch(0)), SequenceNumber(1))));

    let redeemed = alice.sign(&domain, redemption(alice.id(), PrimaryAddress::repeat_byte(7), 50, 1));
    here.order(&redeemed).await.unwrap();
    let redeemed = committee.certificate(&redeemed);
    assert_eq!(here.confirm(&redeemed).await, Ok((Some(Epoch(0)), SequenceNumber(2))));

    let state = here.account(alice.id()).await.unwrap();
    assert_eq!(state.holdings, [(Asset::ETHER, Balance::from(Amount(31)))]);
    assert_eq!((state.pending, state.deposits, state.received), (None, 2, 0));
    assert_eq!(here.certificate(alice.id(), SequenceNumber(0)).await.unwrap(), certificate);
    let deposits = here.deposits(alice.id(), 1).await.unwrap();
    assert_eq!((deposits.entries[0].index.0, deposits.entries.len(), deposits.total), (3, 1, 2));
    let redemptions = here.redemptions(0).await.unwrap();
    assert_eq!((redemptions.entries, redemptions.total), (vec![redeemed], 1));
    eventually_async("the credit arrives at the other shard", || async {
        there.account(bob.id()).await.unwrap().balance(Asset::ETHER) == Balance::from(Amount(31))
    })
    .await;
    let received = there.received(bob.id(), 0).await.unwrap();
    assert_eq!(received.entries[0].payment, payment(alice.id(), bob.id(), 30, 0));

    let status = here.status().await.unwrap();
    assert_eq!((status.authority, status.epoch), (committee.keys[0].public().name, Epoch(0)));
    assert_eq!((status.chain_id, status.contract), (domain.chain_id(), domain.contract()));
    assert_eq!((status.shard, status.shard_count, status.redemptions), (ShardId(0), 2, 1));
    assert_eq!((status.synchronized.0, status.committee), (3, committee.committee.members().to_vec()));
    assert_eq!(status.totals[0].1.forwarded, Balance::from(Amount(30)));
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn malformed_requests_are_refused_by_name_and_the_stream_continues() {
    let served = Served::start(1).await;
    let domain = served.shards.committee.domain;
    let alice = TestAccount::ed25519(0);
    served.deposit(&[(alice.id(), 10)]).await;
    let order = alice.sign(&domain, payment(alice.id(), TestAccount::ed25519(2).id(), 1, 0));
    let good: proto::TransferOrder = (&order).into();
    let with = |change: fn(&mut proto::Payment)| {
        let mut order = good.clone();
        let Some(proto::transfer_order::Transfer::Payment(payment)) = &mut order.transfer else { unreachable!() };
        change(payment);
        Some(Request::Order(order))
    };
    let certificate: proto::Certificate = (&served.shards.committee.certificate(&order)).into();
    let wrong = [
        (None, "neither an order nor a certificate"),
        (Some(Request::Order(proto::TransferOrder { transfer: None, ..good.clone() })), "transfer is missing"),
        (
            Some(Request::Order(proto::TransferOrder { authorization: None, ..good.clone() })),
            "authorization is missing",
        ),
        (with(|p| p.sender = Bytes::from_static(&[1; 31])), "sender has 31 bytes"),
        (with(|p| p.recipient = Bytes::new()), "recipient has 0 bytes"),
        (with(|p| p.amount = Bytes::from_static(&[1; 17])), "amount has 17 bytes"),
        (with(|p| p.asset = Bytes::from_static(&[1; 32])), "asset has 32 bytes"),
        (with(|p| p.memo = Bytes::from_static(&[1; 33])), "memo has 33 bytes"),
        (Some(Request::Certificate(proto::Certificate { order: None, ..certificate.clone() })), "order is missing"),
        (
            Some(Request::Certificate(proto::Certificate {
                votes: vec![proto::Vote::default(); 256],
                ..certificate.clone()
            })),
            "votes is out of range",
        ),
    ];
    let mut requests: Vec<_> = (1..).zip(&wrong).map(|(id, (request, _))| (id, request.clone())).collect();
    // Well formed, and invalid.
    requests.push((50, with(|p| p.amount = Bytes::from_static(&[0; 16]))));
    requests.push((51, with(|p| p.sequence = 1)));
    requests.push((52, Some(Request::Certificate(proto::Certificate { epoch: 9, ..certificate.clone() }))));
    let few = certificate.votes[1..].to_vec();
    requests.push((53, Some(Request::Certificate(proto::Certificate { votes: few, ..certificate.clone() }))));
    requests.push((99, Some(Request::Order(good))));
    let requests = requests.into_iter().map(|(id, request)| SubmitRequest { id, request }).collect();

    let (answers, end) = answers(served.stream(requests).await).await;
    assert!(end.is_ok(), "{end:?}");
    for ((_, expected), (id, answer)) in wrong.iter().zip(&answers) {
        let Refusal::Malformed(message) = refusal(answer) else { panic!("{id}: {answer:?}") };
        assert!(message.contains(expected), "{id}: {message}");
    }
    let rest = &answers[wrong.len()..];
    for (place, expected) in [(0, "amount is zero"), (1, ""), (3, "exactly 3")] {
        let (id, answer) = &rest[place];
        let Refusal::Invalid(message) = refusal(answer) else { panic!("{id}: {answer:?}") };
        assert!(message.contains(expected), "{id}: {message}");
    }
    assert_eq!(refusal(&rest[2].1), Refusal::UnknownEpoch(Epoch(9)));
    assert!(matches!(rest.last(), Some((99, Response::Vote(_)))), "{rest:?}");
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_bad_signature_in_a_batch_refuses_its_own_request_alone() {
    let served = Served::start(1).await;
    let domain = served.shards.committee.domain;
    let owners: Vec<_> = (0..40).map(|n| TestAccount::ed25519(2 * n)).collect();
    served.deposit(&owners.iter().map(|owner| (owner.id(), 5)).collect::<Vec<_>>()).await;
    let bad = [3, 17, 39];
    let requests = (0..40_u64).zip(&owners).map(|(id, owner)| {
        let mut order = owner.sign(&domain, payment(owner.id(), owners[0].id(), 1, 0));
        if bad.contains(&id) {
            let Authorization::Ed25519 { signature: Ed25519Signature(bytes), .. } = &mut order.authorization else {
                unreachable!()
            };
            bytes[40] ^= 1;
        }
        ask(id, &order)
    });
    let (answers, end) = answers(served.stream(requests.collect()).await).await;
    assert!(end.is_ok(), "{end:?}");
    assert_eq!(answers.len(), 40);
    for (id, answer) in &answers {
        if bad.contains(id) {
            assert!(matches!(refusal(answer), Refusal::Invalid(_)), "{id}");
        } else {
            assert!(matches!(answer, Response::Vote(_)), "{id}: {answer:?}");
        }
    }
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_message_too_long_is_answered_with_the_reason_behind_the_answers_before_it() {
    let served = Served::start(1).await;
    let alice = TestAccount::ed25519(0);
    served.deposit(&[(alice.id(), 10)]).await;
    let order = alice.sign(&served.shards.committee.domain, payment(alice.id(), TestAccount::ed25519(2).id(), 1, 0));
    let mut long: proto::TransferOrder = (&order).into();
    let Some(proto::transfer_order::Transfer::Payment(payment)) = &mut long.transfer else { unreachable!() };
    payment.memo = vec![0; request_bytes_max(3) + 1].into();
    let long = SubmitRequest { id: 2, request: Some(Request::Order(long)) };
    // However the requests fall into batches, nothing is read behind the one that cannot be read.
    for before in [0, 1, 5] {
        let mut requests = vec![ask(1, &order); before];
        requests.extend([long.clone(), ask(3, &order)]);
        let (answers, end) = answers(served.stream(requests).await).await;
        assert_eq!(answers.len(), before);
        assert!(answers.iter().all(|(id, answer)| *id == 1 && matches!(answer, Response::Vote(_))));
        let status = end.unwrap_err();
        assert_eq!(status.code(), Code::OutOfRange, "{status:?}");
    }
    let mut grpc = Grpc::connect(format!("http://{}", served.addresses[0])).await.unwrap();
    let read = proto::AccountRequest { account: vec![7; 2 * MESSAGE_BYTES_MAX].into(), ..Default::default() };
    assert_eq!(grpc.get_account(read).await.unwrap_err().code(), Code::OutOfRange);
    assert!(served.client(0).order(&order).await.is_ok());
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn requests_for_another_shard_are_sent_there() {
    let served = Served::start(2).await;
    let domain = served.shards.committee.domain;
    let (alice, bob) = (served.shards.account_in(0, 0), served.shards.account_in(1, 0));
    let order = alice.sign(&domain, payment(alice.id(), bob.id(), 1, 0));
    let wrong = served.client(1);
    assert_eq!(wrong.order(&order).await, Err(Refusal::WrongShard(ShardId(0)).into()));
    let certificate: Certificate = served.shards.committee.certificate(&order);
    assert_eq!(wrong.confirm(&certificate).await, Err(Refusal::WrongShard(ShardId(0)).into()));
    let read = wrong.account(alice.id()).await.unwrap_err();
    assert!(read.to_string().contains("belongs to shard 0"), "{read}");
    assert!(!read.is_retryable());
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_full_queue_is_refused_as_busy_and_stopping_loses_no_answer() {
    let folder = tempfile::tempdir().unwrap();
    let limits = ShardLimits { queue_requests_max: 5, ..ShardLimits::default() };
    // The shard's threads are not running yet.
    let shards = Shards::prepare(folder.path(), 1, limits);
    let domain = shards.committee.domain;
    let alice = TestAccount::ed25519(0);
    let order = alice.sign(&domain, payment(alice.id(), TestAccount::ed25519(2).id(), 1, 0));
    let mut served = Served::on(shards, folder, NetworkLimits::default(), None).await;
    // One stream alone gets the larger half of the queue.
    let mut stream = served.stream(vec![ask(7, &order); 8]).await;
    for _ in 0..5 {
        let answer = tokio::time::timeout(PATIENCE, stream.message()).await.unwrap().unwrap().unwrap();
        let refusal = refusal(&answer.response.unwrap());
        assert!(matches!(refusal, Refusal::Busy(after) if after >= Duration::from_millis(5)), "{refusal:?}");
        assert!(refusal.is_retryable());
    }
    let read = || Command::ReadLedger(tokio::sync::oneshot::channel().0);
    while served.shards.handles[&ShardId(0)].try_ask(read()).is_ok() {}
    let client = served.client(0);
    let busy = client.order(&order).await.unwrap_err();
    assert!(busy.retry_after() >= Duration::from_millis(5), "{busy:?}");
    assert_eq!(client.status().await, Err(Refusal::Busy(Duration::ZERO).into()));
    assert_eq!(served.shards.metrics.network.busy.get(), 6);

    // Told to stop, the server waits for the three answers that it owes.
    served.stop.send_replace(true);
    served.shards = served.shards.run();
    let (answers, end) = answers(stream).await;
    assert!(end.is_ok(), "{end:?}");
    assert_eq!(answers.len(), 3);
    assert!(answers.iter().all(|(_, answer)| refusal(answer) == Refusal::InsufficientBalance(Balance::ZERO)));
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pages_are_cut_and_strangers_are_not_remembered() {
    let served = Served::start(1).await;
    let (alice, stranger) = (TestAccount::ed25519(0), TestAccount::ed25519(99));
    served.deposit(&vec![(alice.id(), 1); 250]).await;
    let mut grpc = Grpc::connect(format!("http://{}", served.addresses[0])).await.unwrap();
    let max = u64::from(PAGE_ENTRIES_MAX);
    for (start, limit, expected) in [
        (0, 0, 1..max + 1),
        (0, u32::MAX, 1..max + 1),
        (249, 100, 250..251),
        (20, 7, 21..28),
        (250, 10, 0..0),
        (u64::MAX, u32::MAX, 0..0),
    ] {
        let account = Bytes::copy_from_slice(&alice.id().0);
        let request = proto::AccountPageRequest { account, start, limit };
        let page = grpc.list_deposits(request).await.unwrap().into_inner();
        assert_eq!(page.deposits.iter().map(|d| d.index).collect::<Vec<_>>(), expected.collect::<Vec<_>>());
        assert_eq!(page.total, 250);
    }
    for length in [0, 31, 33, 2_000] {
        let account = Bytes::from(vec![1; length]);
        let status = grpc.get_account(proto::AccountRequest { account, asset: Bytes::new() }).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
    }

    let client = served.client(0);
    assert_eq!(client.account(stranger.id()).await.unwrap(), fastpay_rpc::AccountState::default());
    assert_eq!(client.certificate(stranger.id(), SequenceNumber(0)).await, Err(ClientError::NotFound));
    assert_eq!(client.certificate(stranger.id(), SequenceNumber(u64::MAX)).await, Err(ClientError::NotFound));
    for start in [0, u64::MAX] {
        assert_eq!(client.received(stranger.id(), start).await.unwrap().total, 0);
        assert_eq!(client.deposits(stranger.id(), start).await.unwrap().entries, []);
        assert_eq!(client.redemptions(start).await.unwrap().entries, []);
    }
    eventually_async("only the account with deposits was ever in memory", || async {
        let text = served.shards.metrics.text();
        ["0", "1"].iter().any(|count| text.contains(&format!("fastpay_accounts_in_memory{{shard=\"0\"}} {count}\n")))
    })
    .await;
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn certificates_are_read_by_name_at_any_shard_as_many_as_fit_into_an_answer() {
    let served = Served::start(2).await;
    let (alice, bob) = (served.shards.account_in(0, 0), served.shards.account_in(1, 0));
    let committee = &served.shards.committee;
    let outputs = vec![(bob.id(), 1); PAYOUT_OUTPUTS_MAX];
    let long = (0..20).map(|sequence| alice.sign(&committee.domain, payout(alice.id(), &outputs, sequence)));
    let short = (0..3).map(|sequence| bob.sign(&committee.domain, payment(bob.id(), alice.id(), 1, sequence)));
    let certificates: Vec<_> = long.chain(short).map(|order| committee.certificate(&order)).collect();
    for certificate in &certificates {
        let shard = usize::from(certificate.order.transfer.sender() == bob.id());
        served.client(shard).confirm(certificate).await.unwrap();
    }
    let name = |certificate: &Certificate| (certificate.order.transfer.sender(), certificate.order.transfer.sequence());
    // With one that is not confirmed here between the others.
    let mut names: Vec<_> = certificates.iter().map(name).collect();
    names.insert(1, (bob.id(), SequenceNumber(3)));
    for shard in 0..2 {
        let first = served.client(shard).certificates(&names).await.unwrap();
        let bytes: usize = first.found.iter().map(|found| borsh::to_vec(found).unwrap().len()).sum();
        assert!(bytes < CERTIFICATES_BYTES_MAX && bytes > CERTIFICATES_BYTES_MAX / 2, "{bytes}");
        assert_eq!(first.looked_up, first.found.len() + 1);
        let mut found = first.found;
        let mut rest = &names[first.looked_up..];
        while !rest.is_empty() {
            let more = served.client(shard).certificates(rest).await.unwrap();
            found.extend(more.found);
            rest = &rest[more.looked_up..];
        }
        assert_eq!(found, certificates);
    }
    let error = served.client(0).certificates(&[]).await.unwrap_err();
    assert!(matches!(&error, ClientError::Refused(Refusal::Malformed(what)) if what.contains("names")), "{error}");
    served.end().await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn dust_of_thousands_of_tokens_hides_no_token_that_is_asked_for() {
    let served = Served::start(1).await;
    let alice = TestAccount::ed25519(0);
    let token = |number: u16| {
        let mut bytes = [0; 20];
        bytes[..2].copy_from_slice(&number.to_be_bytes());
        Asset(bytes.into())
    };
    let count = 4_500;
    let deposits: Vec<_> = (1..=count)
        .map(|number| fastpay_core::Deposit {
            index: fastpay_core::TransactionIndex(number.into()),
            recipient: alice.id(),
            asset: token(number),
            amount: Amount(number.into()),
        })
        .collect();
    let up_to = deposits.last().unwrap().index;
    assert!(served.shards.deposit_sink().apply(fastpay_core::TransactionIndex(0), &deposits, up_to).await);
    let client = served.client(0);
    let (listed, sums) = (client.account(alice.id()).await.unwrap(), client.status().await.unwrap());
    assert!(listed.truncated && sums.truncated);
    assert_eq!(listed.balance(token(count)), Balance::ZERO, "the list ends before it");

    let units = Balance::from(Amount(count.into()));
    let one = client.account_asset(alice.id(), token(count)).await.unwrap();
    assert_eq!((one.holdings, one.truncated, one.deposits), (vec![(token(count), units)], false, count.into()));
    let one = client.status_asset(token(count)).await.unwrap();
    assert_eq!((one.totals.len(), one.totals[0].1.accounts, one.truncated), (1, units, false));
    assert_eq!(client.account_asset(alice.id(), Asset::ETHER).await.unwrap().holdings, []);
    let mut grpc = Grpc::connect(format!("http://{}", served.addresses[0])).await.unwrap();
    for length in [1, 19, 21] {
        let (account, asset) = (Bytes::copy_from_slice(&alice.id().0), Bytes::from(vec![1; length]));
        let status = grpc.get_account(proto::AccountRequest { account, asset: asset.clone() }).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
        let status = grpc.get_status(proto::StatusRequest { asset }).await.unwrap_err();
        assert_eq!(status.code(), Code::InvalidArgument);
    }
    served.end().await;
}
