//! The client against servers that answer in any order, not at all, wrongly, or are away.

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use bytes::Bytes;
use fastpay_client::{ClientError, ClientOptions, ShardClient};
use fastpay_core::{AccountId, ContractVote, EcdsaSignature, Epoch, SequenceNumber};
use fastpay_rpc::proto::submit_request::Request;
use fastpay_rpc::proto::submit_response::Response;
use fastpay_rpc::proto::{self, Confirmed, SubmitRequest, SubmitResponse};
use fastpay_rpc::{BatchAnswer, MESSAGE_BYTES_MAX, Refusal, STREAM_REQUESTS_IN_FLIGHT_MAX};
use fastpay_testkit::Ports;
use tokio::task::JoinSet;
use tonic::{Code, Status};

use crate::server::{Server, behaviour};
use crate::values::{some_certificate, some_order, some_vote};

const PATIENCE: Duration = Duration::from_secs(60);

fn client(url: &str) -> ShardClient {
    ShardClient::new(url, None, ClientOptions { connect_timeout: PATIENCE, request_timeout: PATIENCE }).unwrap()
}

/// To a certificate: its sequence number and one, as an authority answers.
fn confirmed(request: &SubmitRequest) -> SubmitResponse {
    let Some(Request::Certificate(certificate)) = &request.request else { panic!("{request:?}") };
    let Some(proto::transfer_order::Transfer::Payment(payment)) =
        certificate.order.as_ref().and_then(|order| order.transfer.clone())
    else {
        panic!("a payment")
    };
    let response = Some(Response::Confirmed(Confirmed { next_sequence: payment.sequence + 1, epoch: None }));
    SubmitResponse { id: request.id, response }
}

fn honest() -> crate::server::Behaviour {
    behaviour(|mut requests, answers| async move {
        while let Ok(Some(request)) = requests.message().await {
            if answers.send(Ok(confirmed(&request))).await.is_err() {
                return;
            }
        }
    })
}

#[tokio::test]
async fn answers_find_their_requests_in_any_order() {
    const BATCH: usize = 50;
    let server = Server::start(behaviour(|mut requests, answers| async move {
        let mut waiting = Vec::new();
        while let Ok(Some(request)) = requests.message().await {
            waiting.push(request);
            if waiting.len() < BATCH {
                continue;
            }
            // The newest first, mixed with answers to no request and duplicates.
            for request in waiting.drain(..).rev() {
                let answer = confirmed(&request);
                let strange = SubmitResponse { id: request.id + 1_000_000, ..answer.clone() };
                for answer in [strange, answer.clone(), answer] {
                    let _ = answers.send(Ok(answer)).await;
                }
            }
        }
    }))
    .await;
    let client = client(&server.url());
    let mut asked = JoinSet::new();
    for sequence in 0..4 * BATCH as u64 {
        let client = client.clone();
        asked.spawn(async move { (sequence, client.confirm(&some_certificate(sequence)).await) });
    }
    while let Some(answer) = asked.join_next().await {
        let (sequence, answer) = answer.unwrap();
        assert_eq!(answer, Ok((None, SequenceNumber(sequence + 1))));
    }
}

#[tokio::test]
async fn no_more_than_the_bound_is_in_flight() {
    let most = Arc::new(AtomicUsize::new(0));
    let seen = most.clone();
    let server = Server::start(behaviour(move |mut requests, answers| {
        let most = seen.clone();
        async move {
            let mut waiting = Vec::new();
            loop {
                // Takes all there is, and answers one where nothing comes for a while.
                match tokio::time::timeout(Duration::from_millis(50), requests.message()).await {
                    Ok(Ok(Some(request))) => waiting.push(request),
                    Ok(_) => return,
                    Err(_) => {
                        most.fetch_max(waiting.len(), Ordering::SeqCst);
                        for request in waiting.drain(..) {
                            let _ = answers.send(Ok(confirmed(&request))).await;
                        }
                    }
                }
            }
        }
    }))
    .await;
    let client = client(&server.url());
    let mut asked = JoinSet::new();
    for sequence in 0..3 * STREAM_REQUESTS_IN_FLIGHT_MAX as u64 {
        let client = client.clone();
        asked.spawn(async move { client.confirm(&some_certificate(sequence)).await.unwrap() });
    }
    asked.join_all().await;
    assert!(most.load(Ordering::SeqCst) <= STREAM_REQUESTS_IN_FLIGHT_MAX);
}

#[tokio::test]
async fn a_server_that_does_not_answer_costs_the_time_out_and_no_more() {
    let server = Server::start(behaviour(|mut requests, answers| async move {
        // Answers even sequence numbers only.
        while let Ok(Some(request)) = requests.message().await {
            let answer = confirmed(&request);
            let Some(Response::Confirmed(Confirmed { next_sequence, .. })) = &answer.response else { unreachable!() };
            if next_sequence % 2 == 1 {
                let _ = answers.send(Ok(answer)).await;
            }
        }
    }))
    .await;
    let timeout = Duration::from_millis(200);
    let options = ClientOptions { connect_timeout: PATIENCE, request_timeout: timeout };
    let impatient = ShardClient::new(&server.url(), None, options).unwrap();
    // More than may be in flight are never answered; those behind them get through nevertheless.
    let mut asked = JoinSet::new();
    for round in 0..1_500 {
        let client = impatient.clone();
        asked.spawn(async move { client.confirm(&some_certificate(2 * round + 1)).await });
    }
    for answer in asked.join_all().await {
        assert_eq!(answer, Err(ClientError::TimedOut(timeout)));
        assert!(answer.unwrap_err().is_retryable());
    }
    let deadline = Instant::now() + PATIENCE;
    while impatient.confirm(&some_certificate(8)).await != Ok((None, SequenceNumber(9))) {
        assert!(Instant::now() < deadline);
    }
}

#[tokio::test]
async fn a_client_finds_its_server_again() {
    let gate = tokio::sync::broadcast::channel::<()>(1).0;
    let dying = gate.clone();
    let mut ports = Ports::take().unwrap();
    let address: SocketAddr = ([127, 0, 0, 1], ports.next(1).unwrap()).into();
    let dies = behaviour(move |mut requests, answers| {
        let mut killed = dying.subscribe();
        async move {
            loop {
                tokio::select! {
                    _ = killed.recv() => {
                        let _ = answers.send(Err(Status::unavailable("the process ends"))).await;
                        return;
                    }
                    request = requests.message() => match request {
                        Ok(Some(request)) if request.id == 1 => {
                            let _ = answers.send(Ok(confirmed(&request))).await;
                        }
                        Ok(Some(_)) => {}
                        _ => return,
                    },
                }
            }
        }
    });
    let server = Server::start_at(address, dies).await;
    let client = client(&server.url());
    assert_eq!(client.confirm(&some_certificate(0)).await, Ok((None, SequenceNumber(1))));
    // What is in flight when the server ends fails, and can be repeated.
    let in_flight = tokio::spawn({
        let client = client.clone();
        async move { client.confirm(&some_certificate(1)).await }
    });
    tokio::task::yield_now().await;
    drop(server);
    let deadline = Instant::now() + PATIENCE;
    while !in_flight.is_finished() {
        let _ = gate.send(());
        tokio::time::sleep(Duration::from_millis(5)).await;
        assert!(Instant::now() < deadline);
    }
    let lost = in_flight.await.unwrap().unwrap_err();
    assert!(matches!(lost, ClientError::Unreachable(_)) && lost.is_retryable(), "{lost:?}");

    let _server = Server::start_at(address, honest()).await;
    loop {
        match client.confirm(&some_certificate(2)).await {
            Ok((_, next)) => break assert_eq!(next, SequenceNumber(3)),
            // Until the first connection, which outlives its server here, is closed.
            Err(error) => assert!(error.is_retryable(), "{error:?}"),
        }
        let _ = gate.send(());
        assert!(Instant::now() < deadline);
    }
}

#[tokio::test]
async fn all_requests_to_an_unreachable_server_fail_at_once() {
    let mut ports = Ports::take().unwrap();
    let address: SocketAddr = ([127, 0, 0, 1], ports.next(1).unwrap()).into();
    let client = client(&format!("http://{address}"));
    let mut asked = JoinSet::new();
    for sequence in 0..300 {
        let client = client.clone();
        asked.spawn(async move { client.confirm(&some_certificate(sequence)).await });
    }
    for answer in tokio::time::timeout(PATIENCE, asked.join_all()).await.unwrap() {
        assert!(matches!(answer, Err(ClientError::Unreachable(_))), "{answer:?}");
    }
    assert!(matches!(client.status().await, Err(ClientError::Unreachable(_))));
    let _server = Server::start_at(address, honest()).await;
    assert_eq!(client.confirm(&some_certificate(4)).await, Ok((None, SequenceNumber(5))));
}

#[tokio::test]
async fn wrong_answers_are_malformed_and_the_stream_continues() {
    let server = Server::start(behaviour(|mut requests, answers| async move {
        let vote = proto::Vote::from((Epoch(9), &some_vote()));
        while let Ok(Some(request)) = requests.message().await {
            let refused = |code| proto::Refused { code, ..proto::Refused::default() };
            let response = match request.request {
                Some(Request::Certificate(_) | Request::Attested(_)) => Response::Vote(vote.clone()),
                Some(Request::Order(order)) => match order.transfer {
                    Some(proto::transfer_order::Transfer::Payment(payment)) => match payment.sequence {
                        0 => Response::Confirmed(Confirmed { next_sequence: 1, epoch: None }),
                        1 => Response::Vote(proto::Vote { signature: None, ..vote.clone() }),
                        2 => Response::Vote(proto::Vote { authority: Bytes::from_static(&[1]), ..vote.clone() }),
                        3 => Response::Refused(refused(0)),
                        4 => Response::Refused(refused(4)),
                        5 => Response::Refused(refused(10)),
                        _ => Response::Vote(vote.clone()),
                    },
                    _ => return,
                },
                None => return,
            };
            let _ = answers.send(Ok(SubmitResponse { id: request.id, response: Some(response) })).await;
        }
    }))
    .await;
    let client = client(&server.url());
    for sequence in 0..5 {
        let answer = client.order(&some_order(sequence)).await.unwrap_err();
        assert!(matches!(answer, ClientError::Malformed(_)) && !answer.is_retryable(), "{sequence}: {answer:?}");
    }
    assert_eq!(client.order(&some_order(5)).await, Err(Refusal::Busy(Duration::ZERO).into()));
    assert!(matches!(client.confirm(&some_certificate(0)).await, Err(ClientError::Malformed(_))));
    assert_eq!(client.order(&some_order(6)).await, Ok((Epoch(9), some_vote())));
}

#[tokio::test]
async fn an_answer_to_nothing_ends_the_stream_and_the_next_request_opens_another() {
    let streams = Arc::new(AtomicUsize::new(0));
    let count = streams.clone();
    let server = Server::start(behaviour(move |mut requests, answers| {
        let stream = count.fetch_add(1, Ordering::SeqCst);
        async move {
            while let Ok(Some(request)) = requests.message().await {
                let answer = match stream {
                    0 => Ok(SubmitResponse { id: request.id, response: None }),
                    1 => Err(Status::out_of_range("too long")),
                    _ => Ok(confirmed(&request)),
                };
                let _ = answers.send(answer).await;
            }
        }
    }))
    .await;
    let client = client(&server.url());
    assert!(matches!(client.confirm(&some_certificate(0)).await, Err(ClientError::Unreachable(_))));
    assert_eq!(client.confirm(&some_certificate(0)).await, Err(ClientError::Malformed("too long".into())));
    assert_eq!(client.confirm(&some_certificate(0)).await, Ok((None, SequenceNumber(1))));
    assert_eq!(streams.load(Ordering::SeqCst), 3);
}

#[tokio::test]
async fn reads_say_why_there_is_no_answer() {
    let message = "what\u{1b}[2J the authority says";
    for (code, retryable) in [
        (Code::NotFound, false),
        (Code::ResourceExhausted, true),
        (Code::InvalidArgument, false),
        (Code::FailedPrecondition, false),
        (Code::Unavailable, true),
        (Code::Unknown, true),
        (Code::Internal, false),
        (Code::DataLoss, false),
        (Code::Unimplemented, false),
    ] {
        let server = Server::reading(Arc::new(move || Err(Status::new(code, message)))).await;
        let error = client(&server.url()).account(fastpay_core::AccountId::ZERO).await.unwrap_err();
        assert_eq!(error.is_retryable(), retryable, "{code:?}: {error:?}");
        // A damaged disk is no lie.
        assert_eq!(matches!(error, ClientError::Unreadable(_)), code == Code::DataLoss, "{code:?}: {error:?}");
        assert!(!error.to_string().contains('\u{1b}'));
    }
    let holding = |asset: usize, balance: usize| proto::Holding {
        asset: vec![0; asset].into(),
        balance: vec![0; balance].into(),
    };
    for holdings in [vec![holding(19, 32)], vec![holding(20, 33)], vec![holding(20, 32); MESSAGE_BYTES_MAX / 50]] {
        let answer = proto::AccountResponse { holdings, ..proto::AccountResponse::default() };
        let server = Server::reading(Arc::new(move || Ok(answer.clone()))).await;
        let error = client(&server.url()).account(fastpay_core::AccountId::ZERO).await.unwrap_err();
        assert!(matches!(error, ClientError::Malformed(_)), "{error:?}");
    }
}

#[tokio::test]
async fn one_asset_can_be_requested_and_a_truncated_list_is_marked() {
    let asset = |byte| fastpay_core::Asset(fastpay_core::PrimaryAddress::repeat_byte(byte));
    let holding = |byte: u8| proto::Holding { asset: vec![byte; 20].into(), balance: vec![byte; 32].into() };
    let holdings = vec![holding(1), holding(2)];
    let answer = proto::AccountResponse { holdings, truncated: true, ..proto::AccountResponse::default() };
    let server = Server::reading(Arc::new(move || Ok(answer.clone()))).await;
    let client = client(&server.url());
    let all = client.account(fastpay_core::AccountId::ZERO).await.unwrap();
    assert!(all.truncated && all.holdings.len() == 2);
    assert!(server.asset_asked().is_empty());
    // An older authority answers with all that it lists: the others are left out here.
    let one = client.account_asset(fastpay_core::AccountId::ZERO, asset(2)).await.unwrap();
    assert_eq!(one.holdings.iter().map(|held| held.0).collect::<Vec<_>>(), [asset(2)]);
    assert_eq!(server.asset_asked(), [2; 20]);
    assert!(client.status_asset(asset(3)).await.is_err());
    assert_eq!(server.asset_asked(), [3; 20]);
}

#[tokio::test]
async fn a_batch_is_answered_with_a_vote_or_what_is_missing_or_a_refusal() {
    use proto::redemption_batch_response::Response;
    let vote = ContractVote { authority: some_vote().authority, signature: EcdsaSignature([7; 65]) };
    let missing = |positions: &[u32]| Response::Missing(proto::MissingRedemptions { positions: positions.to_vec() });
    let uncovered =
        |positions: &[u32]| Response::Uncovered(proto::MissingRedemptions { positions: positions.to_vec() });
    let refused = proto::Refused::from(&Refusal::NotVoting(Epoch(2)));
    let wire = proto::ContractVote::from((Epoch(u64::MAX), &vote));
    let out_of_range = || Err(ClientError::Malformed("field positions is out of range".into()));
    for (answer, expected) in [
        (Some(Response::Vote(wire.clone())), Ok(BatchAnswer::Vote { epoch: Epoch(u64::MAX), vote })),
        (Some(missing(&[0, 2])), Ok(BatchAnswer::Missing(vec![0, 2]))),
        (Some(uncovered(&[1])), Ok(BatchAnswer::Uncovered(vec![1]))),
        (Some(uncovered(&[3])), out_of_range()),
        (Some(missing(&[])), out_of_range()),
        (Some(missing(&[3])), out_of_range()),
        (Some(missing(&[1, 1])), out_of_range()),
        (Some(missing(&[2, 1])), out_of_range()),
        (Some(Response::Refused(refused)), Err(ClientError::Refused(Refusal::NotVoting(Epoch(2))))),
        (None, Err(ClientError::Malformed("field response is missing".into()))),
        (
            Some(Response::Vote(proto::ContractVote { signature: vec![7; 64].into(), ..wire })),
            Err(ClientError::Malformed("field signature has 64 bytes, not 65".into())),
        ),
    ] {
        let server = Server::voting(answer).await;
        let names = [0, 1, 2].map(|sequence| (AccountId([3; 32]), SequenceNumber(sequence)));
        assert_eq!(client(&server.url()).vote_redemption_batch(&names).await, expected);
    }
}
