//! Clients that send too much.

use std::time::{Duration, Instant};

use fastpay_core::{AccountKey, SequenceNumber};
use fastpay_ledger_client::Transport;
use fastpay_ledger_client::api::proto::ledger_client::LedgerClient;
use fastpay_ledger_client::api::proto::{StatusRequest, SubmitAllReply, SubmitAllRequest};
use fastpay_ledger_client::api::{BULK_REQUESTS_MAX, MESSAGE_BYTES_MAX};
use fastpay_ledger_statement::{Action, ClusterId, Condition, Instruction, Request, Wire};
use tokio_stream::StreamExt as _;
use tonic::{Code, Status, Streaming};

use super::{get, key, one_cluster, pause, prices, put, value};

/// Sends messages on one call, which then ends.
async fn call(member: &Transport, messages: Vec<Vec<Vec<u8>>>) -> Result<Streaming<SubmitAllReply>, Status> {
    let mut member = LedgerClient::new(member.clone()).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let messages = messages.into_iter().map(|requests| SubmitAllRequest { requests });
    Ok(member.submit_all(tokio_stream::iter(messages.collect::<Vec<_>>())).await?.into_inner())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_message_with_too_many_requests_ends_its_call_and_repeated_ones_are_answered_once() {
    let (_folder, net) = one_cluster().await;
    let client = net.client();
    let (_, channels) = client.cluster(ClusterId(1)).unwrap();
    put(&client, None, "a", "1", Condition::Always).await.unwrap();
    let request = get("a").encode();
    let repeated = |count| vec![vec![request.clone(); count]];
    let mut refused = call(&channels[0].1, repeated(BULK_REQUESTS_MAX + 1)).await.unwrap();
    assert_eq!(refused.next().await.unwrap().unwrap_err().code(), Code::InvalidArgument);
    let mut answered = call(&channels[0].1, repeated(BULK_REQUESTS_MAX)).await.unwrap();
    let reply = tokio::time::timeout(Duration::from_secs(20), answered.next()).await.unwrap().unwrap().unwrap();
    assert!(!reply.answers.is_empty() && reply.refused.is_empty());
    let end = tokio::time::timeout(Duration::from_secs(20), answered.next()).await.unwrap();
    assert!(end.is_none(), "nothing waits, so the call ends");
}

#[tokio::test(flavor = "multi_thread")]
async fn other_calls_are_answered_while_many_send_full_batches() {
    let (_folder, net) = one_cluster().await;
    let client = net.client();
    let (_, channels) = client.cluster(ClusterId(1)).unwrap();
    let (flooder, deployment) = (AccountKey::ed25519([77; 32]), client.layout().deployment());
    let instruction = |sequence| {
        let (namespace, condition, value) = (prices(), Condition::Always, Some(value("flood")));
        let action = Action::Write { namespace, key: key("flood"), condition, value };
        let (shard, signer, sequence) = (ClusterId(1), flooder.account(), SequenceNumber(sequence));
        let instruction = Instruction { deployment, shard, signer, sequence, action };
        Request::Instruct(Box::new(instruction.signed(&flooder))).encode()
    };
    let batch: Vec<_> = (0..BULK_REQUESTS_MAX as u64).map(instruction).collect();
    let mut calls = Vec::new();
    for _ in 0..40 {
        calls.push(call(&channels[0].1, vec![batch.clone()]).await.unwrap());
    }
    pause(300).await;
    let mut member = LedgerClient::new(channels[0].1.clone());
    let begun = Instant::now();
    for nonce in 0..5 {
        member.status(StatusRequest { nonce }).await.unwrap();
    }
    let took = begun.elapsed();
    let first_replies = calls.iter_mut().map(|call| async { call.next().await.unwrap().unwrap().refused.len() });
    let mut unchecked = 0;
    for reply in first_replies {
        unchecked += usize::from(tokio::time::timeout(Duration::from_millis(1), reply).await.is_err());
    }
    println!("{took:?} for five answers; {unchecked} batches still waited");
    assert!(unchecked > 0, "the batches were checked too fast to delay anything");
    assert!(took < Duration::from_secs(1), "{took:?}");
}
