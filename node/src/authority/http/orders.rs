//! Orders, certificates, and the votes that the contract asks for: for redemptions that are to be voted for again, and
//! about numbers that are to be unlocked.

use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use fastpay_core::{self as core, Request, SequenceNumber};
use fastpay_rpc::json::{
    AttestedCertificate, Certificate, CertificateNames, Certificates, Confirmed, Problem, RedemptionBatch,
    RedemptionBatchVote, TransferOrder, UnlockVote, UnlockVoteRequest, VoteAnswer,
};
use fastpay_rpc::{BatchAnswer, Refusal, TransferName};

use super::connections::Caller;
use super::extract::Body;
use super::problem::{ApiError, OfBatch, OfCertificate, OfNames, OfOrder, OfUnlock};
use super::{Node, SharedNode};
use crate::authority::network::{self, NoUnlockVote, NoVote, submit_one, vote_for_redemptions, vote_for_unlock};
use crate::authority::shard::Answer;

/// Ask for a vote
///
/// The vote locks the account on this order until a certificate of its sequence number is confirmed here. The same
/// order gets its vote again, however often it is sent. The votes of a quorum in one epoch, sorted by authority, are the
/// certificate.
#[utoipa::path(post, path = "/v1/orders", tag = "Transfers", operation_id = "submitOrder", request_body = TransferOrder,
    responses((status = 200, description = "The authority's vote, for which the lock is on its disk.", body = VoteAnswer),
        OfOrder))]
pub(super) async fn submit_order(
    State(node): SharedNode,
    Body(caller, order, _): Body<TransferOrder, core::TransferOrder>,
) -> Result<Json<VoteAnswer>, ApiError> {
    match submit(&node, caller, Request::Order(order)).await {
        Answer::Vote(epoch, vote) => Ok(Json((epoch, &vote).into())),
        Answer::Refused(refusal) => Err(refusal.into()),
        Answer::Confirmed(..) => unreachable!("an order is answered with a vote or a refusal"),
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
    Body(caller, certificate, _): Body<Certificate, core::Certificate>,
) -> Result<Json<Confirmed>, ApiError> {
    confirm(&node, caller, Request::Certificate(certificate)).await
}

/// Confirm a certificate of an epoch that ended long ago
///
/// As `submitCertificate`, for a certificate that is answered `unattested`. Gather the votes of f + 1 authorities that it
/// exists (`voteForUnlock`), all of the current epoch.
#[utoipa::path(post, path = "/v1/certificates/attested", tag = "Transfers", operation_id = "submitAttestedCertificate",
    request_body = AttestedCertificate,
    responses((status = 200, description = "It is confirmed, on the authority's disk.", body = Confirmed), OfCertificate))]
pub(super) async fn submit_attested(
    State(node): SharedNode,
    Body(caller, attested, _): Body<AttestedCertificate, core::AttestedCertificate>,
) -> Result<Json<Confirmed>, ApiError> {
    confirm(&node, caller, Request::Attested(Box::new(attested))).await
}

/// Certificates by their names
///
/// Certificates of up to 100 transfers by sender and number, from all shards of this authority. An answer has at most
/// about 800 kB; `lookedUp` is the number of names, from the first, that it covers.
#[utoipa::path(post, path = "/v1/certificates/read", tag = "Transfers", operation_id = "readCertificates",
    request_body = CertificateNames,
    responses((status = 200, description = "Those that are confirmed here.", body = Certificates), OfNames))]
pub(super) async fn read_certificates(
    State(node): SharedNode,
    Body(_, names, _): Body<CertificateNames, Vec<TransferName>>,
) -> Result<Json<Certificates>, ApiError> {
    Ok(Json((&network::read_certificates(&node.context.shards, node.reads(), names).await?).into()))
}

/// Have redemptions voted for together
///
/// The vote of the current epoch for redemptions that this authority has confirmed, whichever of its shards did: one
/// signature for all of them, in this order. It changes nothing, and can be asked for again under every epoch. A quorum
/// of such votes redeems them all on the contract (`redeemBatch`), also where their certificates are of an epoch that has
/// ended.
#[utoipa::path(post, path = "/v1/redemptions/votes", tag = "Transfers", operation_id = "voteForRedemptions",
    request_body = RedemptionBatch,
    responses((status = 200, description = "The authority's vote for all of them.", body = RedemptionBatchVote), OfBatch))]
pub(super) async fn vote_for_batch(
    State(node): SharedNode,
    Body(_, names, _): Body<RedemptionBatch, Vec<TransferName>>,
) -> Result<Json<RedemptionBatchVote>, ApiError> {
    let (context, voter_status) = (&node.context, node.context.voter_status.borrow().clone());
    match vote_for_redemptions(&context.domain, &voter_status, &context.shards, node.reads(), names).await {
        Ok(BatchAnswer::Vote { epoch, vote }) => Ok(Json((epoch, &vote).into())),
        Ok(BatchAnswer::Missing(positions)) => Err(Problem::missing_redemptions(&positions).into()),
        Ok(BatchAnswer::Uncovered(positions)) => Err(Problem::uncovered_redemptions(&positions).into()),
        Err(NoVote::Refused(refusal)) => Err(refusal.into()),
        Err(NoVote::Unread(error)) => Err(error.into()),
    }
}

/// Have a vote about a number to unlock
///
/// The authority's vote, in the current epoch, about a number that its owner asked the contract to unlock. If the
/// authority knows a certificate of the number, it returns it and attests it. Otherwise it votes to void the number.
/// After a vote to void, it executes an order of that number only if the contract upholds the order. A repeated request
/// gets the same answer, except that a certificate found later replaces a vote to void.
#[utoipa::path(post, path = "/v1/unlocks/votes", tag = "Transfers", operation_id = "voteForUnlock",
    request_body = UnlockVoteRequest,
    responses((status = 200, description = "The authority's vote.", body = UnlockVote), OfUnlock))]
pub(super) async fn vote_about_number(
    State(node): SharedNode,
    Body(_, asked, _): Body<UnlockVoteRequest, UnlockVoteRequest>,
) -> Result<Json<UnlockVote>, ApiError> {
    let (context, voter_status) = (&node.context, node.context.voter_status.borrow().clone());
    let UnlockVoteRequest { account, sequence, unanimous } = asked;
    let (reads, sequence) = (node.shard_of(&account.0), SequenceNumber(sequence.0));
    match vote_for_unlock(&context.domain, &voter_status, reads, account.0, sequence, unanimous).await {
        Ok(answer) => Ok(Json((&answer).into())),
        Err(NoUnlockVote::Refused(refusal)) => Err(refusal.into()),
        Err(NoUnlockVote::Unread(error)) => Err(error.into()),
    }
}

async fn confirm(node: &Arc<Node>, caller: Caller, request: Request) -> Result<Json<Confirmed>, ApiError> {
    match submit(node, caller, request).await {
        Answer::Confirmed(epoch, next) => Ok(Json((epoch, next).into())),
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
