//! Orders and certificates.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use fastpay_core::{self as core, Request};
use fastpay_rpc::json::{Certificate, Confirmed, TransferOrder, VoteAnswer};
use fastpay_rpc::{Malformed, Refusal};

use super::connections::Caller;
use super::extract::Body;
use super::problem::{OfCertificate, OfOrder, Rejection};
use super::{Node, SharedNode};
use crate::network::submit_one;
use crate::shard::Answer;

/// Ask for a vote
///
/// The vote locks the account on this order until a certificate of its sequence number is confirmed here. The same
/// order gets its vote again, however often it is sent. A quorum of votes of one epoch, sorted by authority, makes the
/// certificate, which is final.
#[utoipa::path(post, path = "/v1/orders", tag = "Transfers", operation_id = "submitOrder", request_body = TransferOrder,
    responses((status = 200, description = "The authority's vote, for which the lock is on its disk.", body = VoteAnswer),
        OfOrder))]
pub(super) async fn submit_order(
    State(node): SharedNode,
    Body(caller, order): Body<TransferOrder>,
) -> Result<Json<VoteAnswer>, Rejection> {
    match submit(&node, caller, Request::Order(order.into())).await {
        Answer::Vote(epoch, vote) => Ok(Json((epoch, &vote).into())),
        Answer::Refused(refusal) => Err(refusal.into()),
        Answer::Confirmed(_) => unreachable!("an order is answered with a vote or a refusal"),
    }
}

/// Confirm a certificate
///
/// Executes it: the sender is debited, the recipient credited. One that is confirmed already is answered the same.
#[utoipa::path(post, path = "/v1/certificates", tag = "Transfers", operation_id = "submitCertificate",
    request_body = Certificate,
    responses((status = 200, description = "It is confirmed, on the authority's disk.", body = Confirmed), OfCertificate))]
pub(super) async fn submit_certificate(
    State(node): SharedNode,
    Body(caller, certificate): Body<Certificate>,
) -> Result<Json<Confirmed>, Rejection> {
    let malformed = |error: Malformed| Rejection::malformed(error.to_string());
    let certificate = core::Certificate::try_from(certificate).map_err(malformed)?;
    match submit(&node, caller, Request::Certificate(certificate)).await {
        Answer::Confirmed(next) => Ok(Json(next.into())),
        Answer::Refused(refusal) => Err(refusal.into()),
        Answer::Vote(..) => unreachable!("a certificate is answered with a confirmation or a refusal"),
    }
}

/// The answer of the shard that owns the sender.
async fn submit(node: &Arc<Node>, caller: Caller, request: Request) -> Answer {
    if *node.stop.borrow() {
        return Answer::Refused(Refusal::Stopping);
    }
    let handle = node.shard_of(&request.order().transfer.sender()).handle();
    submit_one(handle, &node.context.metrics.network, caller.peer, request).await
}
