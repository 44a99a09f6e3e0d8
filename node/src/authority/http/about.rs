//! The authority itself: committees, status, health, readiness, metrics.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::IntoResponse;
use fastpay_core::{Asset, Epoch, ShardId};
use fastpay_rpc::json::{
    Committee, Decimal, Follower, FollowerState, Hex, MemberEndpoints, ProblemCode, ShardStatus, Status, Uint64,
};
use serde::Deserialize;
use serde_json::json;
use utoipa::IntoParams;

use super::accounts::AssetParams;
use super::extract::Query;
use super::problem::{ApiError, OfKnowledge, OfState};
use super::{Node, SharedNode};
use crate::authority::follower::Progress;
use crate::authority::joining::joining;

/// Which committee is asked for.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct EpochParams {
    /// The epoch of the committee; by default the current one.
    pub epoch: Option<Uint64>,
}

/// A committee
///
/// The committee as this authority knows it. If there is a contract, trust the contract instead.
#[utoipa::path(get, path = "/v1/committee", tag = "Authority", operation_id = "getCommittee", params(EpochParams),
    responses((status = 200, description = "The committee of the epoch.", body = Committee), OfKnowledge))]
pub(super) async fn committee(
    State(node): SharedNode,
    Query(params): Query<EpochParams>,
) -> Result<Json<Committee>, ApiError> {
    let voter_status = node.context.voter_status.borrow().clone();
    let current = voter_status.epoch();
    let epoch = params.epoch.map_or(current, |epoch| Epoch(epoch.0));
    match voter_status.committees().get(epoch) {
        Some(committee) => Ok(Json(Committee::new(committee, epoch == current))),
        None => {
            let detail = format!("the committee of epoch {epoch} is not known here; the current epoch is {current}");
            Err(ApiError::new(ProblemCode::NotFound, detail))
        }
    }
}

/// Where members are
///
/// Where members of the committee can be reached, each signed by the member. Believe none that is not, and of a member
/// the one with the highest number.
#[utoipa::path(get, path = "/v1/endpoints", tag = "Authority", operation_id = "getEndpoints",
    responses((status = 200, description = "Those that members told.", body = MemberEndpoints)))]
pub(super) async fn endpoints(State(node): SharedNode) -> Json<MemberEndpoints> {
    let voter_status = node.context.voter_status.borrow().clone();
    Json(MemberEndpoints::new(&node.context.peers.tell(voter_status.committees())))
}

/// The authority's status
///
/// The authority's identity, its progress with the Primary, and the state of its shards.
#[utoipa::path(get, path = "/v1/status", tag = "Authority", operation_id = "getStatus", params(AssetParams),
    responses((status = 200, description = "What the authority says of itself.", body = Status), OfState))]
pub(super) async fn status(
    State(node): SharedNode,
    Query(params): Query<AssetParams>,
) -> Result<Json<Status>, ApiError> {
    let mut shards = Vec::new();
    for index in 0..node.shards.len() {
        shards.push(shard_status(&node, index, params.asset.map(Into::into)).await?);
    }
    let (context, voter_status) = (&node.context, node.context.voter_status.borrow().clone());
    let contract = Hex(context.domain.contract().into_array());
    Ok(Json(Status {
        authority: Hex(voter_status.public().name.0),
        version: env!("CARGO_PKG_VERSION").into(),
        chain_id: Decimal(context.domain.chain_id()),
        contract: context.with_primary.then_some(contract),
        verifying_contract: contract,
        epoch: Decimal(voter_status.epoch().0),
        votes: voter_status.votes_for_all(),
        restored: voter_status.rollback_protection().is_some(),
        follower: follower(&node),
        shards,
    }))
}

async fn shard_status(node: &Node, index: usize, asset: Option<Asset>) -> Result<ShardStatus, ApiError> {
    let reads = node.shards.get(index).expect("there are as many shards as were counted");
    let (context, voter_status) = (&node.context, node.context.voter_status.borrow().clone());
    let place = (ShardId(u32::try_from(index).unwrap_or(u32::MAX)), node.layout.count());
    let status = reads.status(&context.domain, &voter_status, place, asset).await?;
    let queued = context.metrics.shards.get(index).map_or(0, |metrics| metrics.queued.get());
    Ok(ShardStatus::new(&status, u64::try_from(queued).unwrap_or_default()))
}

fn follower(node: &Node) -> Follower {
    let (state, reason) = match (node.context.with_primary, node.context.progress.borrow().clone()) {
        (false, _) => (FollowerState::None, None),
        (true, Progress::AtHead) => (FollowerState::AtHead, None),
        (true, Progress::CatchingUp) => (FollowerState::CatchingUp, None),
        (true, Progress::Rereading(reason)) => (FollowerState::Rereading, Some(reason)),
        (true, Progress::Stopped(reason)) => (FollowerState::Stopped, Some(reason)),
    };
    // None was read before the first range of blocks.
    let block = u64::try_from(node.context.metrics.follower.block.get()).ok().filter(|block| *block > 0);
    Follower { state, block: block.map(Decimal), reason }
}

pub(super) async fn health() -> impl IntoResponse {
    Json(json!({"status": "up"}))
}

/// Ready: votes, and credits deposits. A node whose follower has stopped still votes, but an operator
/// must know.
pub(super) async fn ready(State(node): SharedNode) -> impl IntoResponse {
    let progress = node.context.progress.borrow().clone();
    let (code, state, reason) = match progress {
        Progress::AtHead => (StatusCode::OK, "ready", None),
        Progress::CatchingUp => (StatusCode::SERVICE_UNAVAILABLE, "catching up with the Primary", None),
        Progress::Rereading(reason) => (StatusCode::SERVICE_UNAVAILABLE, "reading the Primary again", Some(reason)),
        Progress::Stopped(reason) => (StatusCode::SERVICE_UNAVAILABLE, "follower stopped", Some(reason)),
    };
    let voter_status = node.context.voter_status.borrow();
    let (authority, epoch, votes) = (voter_status.public().name, voter_status.epoch(), voter_status.votes_for_all());
    let restored = voter_status.rollback_protection().is_some();
    let joining = joining(&voter_status, &node.context.metrics.handover);
    let body = json!({
        "status": state, "reason": reason, "authority": authority, "epoch": epoch, "votes": votes, "restored": restored,
        "joining": joining, "fullSince": voter_status.voter().and(voter_status.full_since()),
    });
    (code, Json(body))
}

/// All counters. What a shard is too busy to say stays as it was said last.
pub(super) async fn metrics(State(node): SharedNode) -> impl IntoResponse {
    let mut ledgers = Vec::new();
    for shard in &node.shards {
        ledgers.extend(shard.ledger().await);
    }
    let authority = &node.context.metrics.authority;
    if ledgers.len() == node.shards.len() {
        authority.observe_ledgers(&ledgers);
    }
    node.context.index.iter().for_each(|index| authority.observe_index(index));
    let ready = *node.context.progress.borrow() == Progress::AtHead;
    authority.observe(ready, &node.context.voter_status.borrow().clone());
    let content_type = "application/openmetrics-text; version=1.0.0; charset=utf-8";
    ([("content-type", content_type)], node.context.metrics.text())
}
