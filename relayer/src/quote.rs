//! Serves the relayer's current fees to wallets: `GET /v1/fees`. Web pages of any origin may read it.

use std::sync::Arc;
use std::time::Duration;

use alloy::primitives::Address;
use axum::Router;
use axum::extract::State as Shared;
use axum::http::StatusCode;
use axum::response::{IntoResponse, Response};
use axum::routing::get;
use fastpay_core::{Amount, Asset, Domain};
use fastpay_ethereum::Sender;
use serde_json::{Value, json};
use tokio::sync::watch;
use tokio::time::Instant;

use crate::assets::{Assets, Fees};
use crate::config::Config;
use crate::gas::{Firsts, Payouts, Plan};

/// A quote is renewed after this time, about a block.
const REFRESH: Duration = Duration::from_secs(12);
/// A quote older than this is not served: the gas price has changed since.
const AGE_MAX: Duration = Duration::from_secs(60);
/// The margin for a rising gas price until the redemption is submitted: it rises by up to an eighth with each block.
const MARGIN_DIVISOR: u128 = 4;

/// The fee for a single redemption at some moment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Quote {
    chain_id: u64,
    contract: Address,
    relayer: Address,
    gas_price_wei: u128,
    /// The longest time, in milliseconds, that a redemption waits for others.
    wait_ms_max: u64,
    fees: Vec<(Asset, Amount)>,
}

/// The newest quote, and when it was made.
#[derive(Debug, Default)]
pub(crate) struct Quotes(watch::Sender<Option<(Arc<Quote>, Instant)>>);

/// Reads the newest quote.
pub type QuoteReader = watch::Receiver<Option<(Arc<Quote>, Instant)>>;

impl Quote {
    /// The fee of each asset: a quarter above the gas cost of a redemption alone that is the first of its account and
    /// to a new payee. A redemption with this fee is served.
    fn fees(assets: &Assets, quorum: usize, gas_price_wei: u128) -> Vec<(Asset, Amount)> {
        assets.amounts_for(|asset| {
            let payouts = Payouts { is_token: asset != Asset::ETHER, has_fee: true, firsts: Firsts::ALL };
            let gas = Plan::Certificates.gas(quorum, 1).saturating_add(payouts.gas());
            let cost = u128::from(gas).saturating_mul(gas_price_wei);
            cost.saturating_add(cost / MARGIN_DIVISOR)
        })
    }

    fn to_json(&self) -> Value {
        let fee = |(asset, fee): &(Asset, Amount)| json!({ "asset": asset, "fee": fee.to_string() });
        json!({
            "chainId": self.chain_id.to_string(),
            "contract": self.contract,
            "relayer": self.relayer,
            "gasPrice": self.gas_price_wei.to_string(),
            "waitSeconds": self.wait_ms_max.div_ceil(1_000),
            "fees": self.fees.iter().map(fee).collect::<Vec<_>>(),
        })
    }
}

impl Quotes {
    /// Reads the newest quote.
    pub(crate) fn subscribe(&self) -> QuoteReader {
        self.0.subscribe()
    }

    /// Whether there are readers, and the last quote is old.
    fn is_due(&self) -> bool {
        let is_fresh = self.0.borrow().as_ref().is_some_and(|(_, at)| at.elapsed() < REFRESH);
        !is_fresh && self.0.receiver_count() > 0
    }

    /// Publishes a new quote if that is due.
    pub(crate) async fn refresh(&self, config: &Config, sender: &Sender, quorum: usize) {
        if !self.is_due() {
            return;
        }
        let offer = match sender.current_offer().await {
            Ok(offer) => offer,
            Err(error) => return tracing::debug!(%error, "the gas price is unknown"),
        };
        let (primary, gas_price_wei) = (sender.primary(), offer.price());
        let quote = Quote {
            chain_id: primary.chain_id(),
            contract: primary.contract(),
            relayer: sender.address(),
            gas_price_wei,
            wait_ms_max: config.bundle.wait_ms_max,
            fees: Quote::fees(&config.assets, quorum, gas_price_wei),
        };
        self.0.send_replace(Some((Arc::new(quote), Instant::now())));
    }

    /// Publishes the fees for a ledger if that is due. There is no gas, and nothing waits for company.
    pub(crate) fn refresh_on_ledger(&self, domain: &Domain, relayer: Address, fees: &Fees) {
        if self.is_due() {
            let (chain_id, contract) = (domain.chain_id(), domain.contract());
            let (gas_price_wei, wait_ms_max, fees) = (0, 0, fees.all());
            let quote = Quote { chain_id, contract, relayer, gas_price_wei, wait_ms_max, fees };
            self.0.send_replace(Some((Arc::new(quote), Instant::now())));
        }
    }
}

/// The route of the quotes.
pub(crate) fn router(quotes: QuoteReader) -> Router {
    Router::new().route("/v1/fees", get(answer)).with_state(quotes)
}

async fn answer(Shared(quotes): Shared<QuoteReader>) -> Response {
    let quote = quotes.borrow().clone().filter(|(_, at)| at.elapsed() < AGE_MAX);
    let (status, body) = match quote {
        Some((quote, _)) => (StatusCode::OK, quote.to_json()),
        None => (StatusCode::SERVICE_UNAVAILABLE, json!({ "error": "the gas price is unknown now; try again later" })),
    };
    let headers =
        [("content-type", "application/json"), ("access-control-allow-origin", "*"), ("cache-control", "no-store")];
    (status, headers, body.to_string()).into_response()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::assets::Rate;
    use crate::policy::{BelowCost, Conditions, Policy, Room, Waiting, judge};

    #[test]
    fn the_quoted_fee_suffices_alone_and_at_a_price_that_rose_by_an_eighth() {
        let token = Asset([7; 20].into());
        let rate = Rate::try_from("0.003".to_owned()).unwrap();
        let assets: Assets = [(Asset::ETHER, Rate::ONE), (token, rate)].into_iter().collect();
        let price = 3_000_000_000;
        let fees = Quote::fees(&assets, 3, price);
        assert_eq!(fees.iter().map(|(asset, _)| *asset).collect::<Vec<_>>(), [Asset::ETHER, token]);
        for (asset, fee) in fees {
            let payouts = Payouts { is_token: asset != Asset::ETHER, has_fee: true, firsts: Firsts::ALL };
            let waiting = |fee| Waiting {
                waited_ms: 9,
                fee_wei: assets.worth(asset, fee).unwrap(),
                payouts,
                is_queued: true,
                needs_batch: false,
            };
            let room = Room { alone: 1 << 24, together: 1 << 24 };
            let conditions = Conditions { quorum: 3, gas_price_wei: price + price / 8, room };
            let policy = Policy { items_max: 9, wait_ms_max: 9, patient_above_wei: None, below_cost: BelowCost::Leave };
            assert!(judge(&[waiting(fee)], conditions, policy).submit.is_some());
            let less = Amount(fee.0 * 4 / 5);
            assert!(judge(&[waiting(less)], conditions, policy).submit.is_none(), "it is not far too much");
        }
    }
}
