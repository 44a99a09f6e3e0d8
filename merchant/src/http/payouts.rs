//! The operations on payouts to Ethereum.

use axum::Json;
use axum::body::Body;
use axum::extract::rejection::{PathRejection, QueryRejection};
use axum::extract::{Path, Query, State as Shared};
use axum::http::{HeaderMap, StatusCode};
use fastpay_core::{Amount, Asset};
use fastpay_program::http::{read_json, require_json};
use fastpay_rpc::json::{Bytes20, Bytes32, Decimal, Hex, Uint128};
use fastpay_wallet::{format_memo, parse_address};
use serde::de::Error as _;
use serde::{Deserialize, Deserializer, Serialize};
use url::Url;
use utoipa::{IntoParams, ToSchema};

use super::Shop;
use super::invoices::{BODY_BYTES_MAX, PAGE_MAX, SharedShop, check_reference};
use super::problem::{ApiError, OfInvoice, OfPayouts, ProblemCode};
use crate::forms::LinkBase;
use crate::payout::PayoutRequest;
use crate::store::Payout as Record;

/// The default fee is at most this part of the amount: a tenth, as in `fastpay redeem`.
const FEE_DIVISOR_MIN: u128 = 10;

/// A payout to prepare.
#[derive(Clone, Debug, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub(super) struct NewPayout {
    /// The owner's own name for it, without control characters: asking again with it makes no second one.
    #[schema(min_length = 1, max_length = 128)]
    reference: String,
    /// The address of an ERC-20; ETH where it is not given.
    asset: Option<Bytes20>,
    /// The amount to debit, including the fee, in the asset's smallest unit; at least 1.
    amount: Uint128,
    /// The address on Ethereum that receives it. Capitals are its checksum.
    #[serde(deserialize_with = "checked_address")]
    recipient: Bytes20,
    /// The relayer's fee, part of the amount; the cheapest relayer's by default.
    fee: Option<Uint128>,
}

/// Checks the capitals of an address, because money paid to a mistyped one is lost.
fn checked_address<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Bytes20, D::Error> {
    let text = String::deserialize(deserializer)?;
    parse_address(&text).map(|address| Hex(address.into_array())).map_err(D::Error::custom)
}

/// A payout. It never changes, but for how far it is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct Payout {
    /// The owner's reference.
    reference: String,
    /// The time, in milliseconds since 1970.
    created_at_ms: u64,
    /// The address of an ERC-20, or zero for ETH.
    asset: Bytes20,
    /// The amount to debit, including the fee, in the asset's smallest unit.
    amount: Uint128,
    /// The relayer's fee, part of the amount.
    fee: Uint128,
    /// The address on Ethereum that receives the rest.
    recipient: Bytes20,
    /// What the order must carry, as text.
    memo: String,
    /// `prepared`, `ordered`, and then as the contract says: `open`, `queued`, `paid`, `displaced`, `released` or `spent`.
    state: String,
    /// The page of the web wallet on which the owner signs it, where the service knows a web wallet.
    #[schema(required)]
    link: Option<String>,
    /// The account's certified order that redeems it; null while there is none.
    #[schema(required)]
    order: Option<PayoutOrder>,
}

/// The order of a payout.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PayoutOrder {
    /// Its number among the account's.
    sequence: u64,
    /// Its EIP-712 digest.
    digest: Bytes32,
}

/// A page of payouts, the newest first.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub(super) struct PayoutPage {
    /// The newest first.
    payouts: Vec<Payout>,
    /// To be given as `after` for the next page; null where this is the last one.
    #[schema(required)]
    next: Option<String>,
}

impl Payout {
    fn new(payout: &Record, base: &LinkBase) -> Self {
        let state = match (&payout.ordered, &payout.ethereum) {
            (None, _) => "prepared",
            (Some(_), None) => "ordered",
            (Some(_), Some(ethereum)) => ethereum,
        };
        Self {
            reference: payout.reference.clone(),
            created_at_ms: payout.created_at_ms,
            asset: payout.asset.into(),
            amount: Decimal(payout.amount.0),
            fee: Decimal(payout.fee.0),
            recipient: Hex(payout.recipient.0.0),
            memo: format_memo(&payout.memo),
            state: state.into(),
            link: base.page.as_ref().and_then(|page| link(page, payout, base)),
            order: payout.ordered.map(|(sequence, digest)| PayoutOrder { sequence: sequence.0, digest: Hex(digest.0) }),
        }
    }
}

/// A link to the web wallet's form of a redemption, filled in. Browsers do not send the part after `#` to the host.
fn link(page: &Url, payout: &Record, base: &LinkBase) -> Option<String> {
    let mut link = page.join("/redeem").ok()?;
    let Record { asset, amount, recipient, fee, memo, .. } = payout;
    let (chain, contract, account) = (base.link.chain_id, base.link.contract, base.link.account);
    link.set_fragment(Some(&format!(
        "from={account}&chain={chain}&contract={contract}&to={recipient}&asset={asset}&amount={amount}&fee={fee}&memo={memo}"
    )));
    Some(link.into())
}

fn check(asked: &NewPayout) -> Result<PayoutRequest, ApiError> {
    check_reference(&asked.reference)?;
    if asked.amount.0 == 0 {
        return Err(ApiError::malformed("amount is at least 1, in the asset's smallest unit"));
    }
    if asked.fee.is_some_and(|fee| fee.0 > asked.amount.0) {
        return Err(ApiError::malformed("fee is at most the amount, out of which it is paid"));
    }
    let recipient = asked.recipient.0.into();
    if asked.recipient.0 == [0; 20] {
        return Err(ApiError::malformed(
            "recipient is the address on Ethereum that receives it; nobody has the zero address",
        ));
    }
    let asset = asked.asset.map_or(Asset::ETHER, Asset::from);
    Ok(PayoutRequest { reference: asked.reference.clone(), asset, amount: Amount(asked.amount.0), recipient })
}

/// The fee of the cheapest relayer; zero if none makes an offer.
async fn propose(shop: &Shop, request: &PayoutRequest) -> Result<Amount, ApiError> {
    let offers = shop.wallet.offers(request.asset).await.map_err(|error| {
        tracing::error!(%error, "the relayers cannot be asked");
        ApiError::new(ProblemCode::Storage, "the file of endpoints cannot be read")
    })?;
    let Some(cheapest) = offers.first() else { return Ok(Amount::ZERO) };
    if cheapest.fee.0 > request.amount.0 / FEE_DIVISOR_MIN {
        let taken = format!("the cheapest relayer takes {} of the smallest unit, more than a tenth", cheapest.fee);
        return Err(ApiError::new(ProblemCode::FeeTooHigh, taken));
    }
    Ok(cheapest.fee)
}

/// Prepare a payout to Ethereum
///
/// It moves no money: the owner's wallet signs it, with its memo, and the service sees the order and how far it is on
/// Ethereum. Asked again with the same reference for the same, the answer is the payout that there is, with its fee.
#[utoipa::path(post, path = "/v1/payouts", tag = "Payouts", operation_id = "preparePayout", request_body = NewPayout,
    responses((status = 201, description = "A new payout, on the service's disk.", body = Payout),
        (status = 200, description = "The payout that the same request made before.", body = Payout), OfPayouts))]
pub(super) async fn prepare(
    Shared(shop): SharedShop,
    headers: HeaderMap,
    body: Body,
) -> Result<(StatusCode, Json<Payout>), ApiError> {
    require_json(&headers)?;
    let asked: NewPayout = read_json(body, BODY_BYTES_MAX, shop.limits.body_timeout).await?;
    let request = check(&asked)?;
    let (payout, is_new) = match shop.ledger.known_payout(&request)? {
        Some(known) => (known, false),
        None => {
            let fee = match asked.fee {
                Some(fee) => Amount(fee.0),
                None => propose(&shop, &request).await?,
            };
            shop.ledger.prepare_payout(&request, fee)?
        }
    };
    let status = if is_new { StatusCode::CREATED } else { StatusCode::OK };
    Ok((status, Json(Payout::new(&payout, shop.ledger.base()))))
}

fn unknown_payout() -> ApiError {
    ApiError::new(ProblemCode::NotFound, "there is no payout of this reference")
}

/// A payout
#[utoipa::path(get, path = "/v1/payouts/{reference}", tag = "Payouts", operation_id = "getPayout",
    params(("reference" = String, Path, description = "The reference of the payout.")),
    responses((status = 200, description = "The payout, and how far it is.", body = Payout), OfInvoice))]
pub(super) async fn show(
    Shared(shop): SharedShop,
    reference: Result<Path<String>, PathRejection>,
) -> Result<Json<Payout>, ApiError> {
    let Path(reference) = reference?;
    let payout = shop.ledger.payout(&reference)?.ok_or_else(unknown_payout)?;
    Ok(Json(Payout::new(&payout, shop.ledger.base())))
}

/// Which payouts.
#[derive(Debug, Deserialize, IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct PayoutParams {
    /// Those after the one of this reference; from the newest where it is not given.
    after: Option<String>,
}

/// Payouts
///
/// Returns pages of 100, newest first.
#[utoipa::path(get, path = "/v1/payouts", tag = "Payouts", operation_id = "listPayouts", params(PayoutParams),
    responses((status = 200, description = "Payouts.", body = PayoutPage), OfInvoice))]
pub(super) async fn list(
    Shared(shop): SharedShop,
    params: Result<Query<PayoutParams>, QueryRejection>,
) -> Result<Json<PayoutPage>, ApiError> {
    let Query(PayoutParams { after }) = params?;
    let (payouts, is_more) = shop.ledger.payouts(after.as_deref(), PAGE_MAX)?.ok_or_else(unknown_payout)?;
    let next = payouts.last().filter(|_| is_more).map(|last| last.reference.clone());
    let payouts = payouts.iter().map(|payout| Payout::new(payout, shop.ledger.base())).collect();
    Ok(Json(PayoutPage { payouts, next }))
}
