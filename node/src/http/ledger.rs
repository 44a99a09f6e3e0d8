//! What belongs to no account: the feed of redemptions.

use axum::Json;
use axum::extract::State;
use fastpay_rpc::json::{Decimal, ProblemCode, RedemptionPage, Uint64};
use serde::Deserialize;
use utoipa::IntoParams;

use super::SharedNode;
use super::extract::Query;
use super::problem::{OfEntry, Rejection};

/// Which redemptions are asked for. (Flattened parameters cannot deny unknown ones, so the page is written out.)
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct RedemptionParams {
    /// Of this shard, the first where it is not given. `/v1/status` lists them.
    pub shard: Option<Uint64>,
    /// The number of the first entry, from 0.
    pub start: Option<Uint64>,
    /// At most so many entries; 0 or too many: as many as a page has, 100 or less.
    pub limit: Option<Uint64>,
}

/// The feed of redemptions
///
/// Redemption certificates confirmed at one shard, oldest first: what relayers bring to the contract.
#[utoipa::path(get, path = "/v1/redemptions", tag = "Ledger", operation_id = "listRedemptions",
    params(RedemptionParams),
    responses((status = 200, description = "Certificates in the order of confirmation.", body = RedemptionPage), OfEntry))]
pub(super) async fn redemptions(
    State(node): SharedNode,
    Query(params): Query<RedemptionParams>,
) -> Result<Json<RedemptionPage>, Rejection> {
    let number = params.shard.map_or(0, |shard| shard.0);
    let shard = u32::try_from(number).ok().filter(|shard| *shard < node.layout.count());
    let reads = shard.and_then(|shard| node.shards.get(shard as usize));
    let (Some(shard), Some(reads)) = (shard, reads) else {
        let count = node.layout.count();
        let detail = format!("there is no shard {number}; this authority has {count}, counted from 0");
        return Err(Rejection::new(ProblemCode::NotFound, detail));
    };
    let ledger = reads.ledger().await?;
    let votes_max = node.context.standing.borrow().quorum_max();
    let (start, limit) = (params.start.map_or(0, |start| start.0), params.limit.map_or(0, |limit| limit.0));
    let limit = u32::try_from(limit).unwrap_or(u32::MAX);
    let certificates = reads.redemptions(&ledger, start, limit, votes_max).await?;
    Ok(Json(RedemptionPage {
        shard,
        total: Decimal(ledger.redemptions.count()),
        certificates: certificates.iter().map(|certificate| certificate.as_ref().into()).collect(),
    }))
}
