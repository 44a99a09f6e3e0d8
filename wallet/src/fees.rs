//! The fees that relayers publish for submitting a redemption (`GET /v1/fees`). The owner chooses the fee, so an offer
//! is only a proposal.
//!
//! All relayers of the endpoints file are asked at once. A relayer that does not answer in time, answers too much,
//! serves another contract or does not serve the asset makes no offer, and delays nothing.

use std::time::Duration;

use alloy::primitives::Address;
use fastpay_core::{AccountId, Amount, Asset, Domain, Redemption, Transfer};
use serde::Deserialize;
use tokio::task::JoinSet;
use tokio::time::timeout;

use crate::error::WalletError;
use crate::folder::OrderEntry;
use crate::relayers::read;
use crate::wallet::{Intent, Wallet};

/// The maximum time to wait for relayers, since a person waits.
const PATIENCE: Duration = Duration::from_secs(3);
/// The estimated time until a relayer's transaction is in a block.
const INCLUSION: Duration = Duration::from_secs(30);

/// A relayer's offer for a redemption.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Offer {
    /// The URL of the relayer.
    pub url: String,
    /// The address that would receive the fee.
    pub relayer: Address,
    /// The fee in the smallest unit of the asset.
    pub fee: Amount,
    /// The estimated time until the redemption is paid, unless gas becomes more expensive.
    pub paid_within: Duration,
}

/// A relayer's answer. Other fields are ignored.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Answer {
    chain_id: String,
    contract: Address,
    relayer: Address,
    wait_seconds: u64,
    fees: Vec<Fee>,
}

#[derive(Deserialize)]
struct Fee {
    asset: Asset,
    fee: String,
}

impl Wallet {
    /// The offers of the relayers in the endpoints file for a redemption of `asset`, the cheapest first.
    ///
    /// # Errors
    /// If the endpoints file cannot be read. A relayer that makes no offer is no error.
    pub async fn offers(&self, asset: Asset) -> Result<Vec<Offer>, WalletError> {
        let (urls, client) = self.relayers()?;
        let mut asked = JoinSet::new();
        for url in urls {
            let (client, domain) = (client.clone(), *self.network().domain());
            asked.spawn(async move {
                let answer = timeout(PATIENCE, ask(&client, &url)).await.unwrap_or_else(|_| Err("no answer".into()));
                match answer.and_then(|answer| offer(&answer, &url, &domain, asset)) {
                    Ok(offer) => Some(offer),
                    Err(error) => {
                        tracing::warn!(%url, %error, "a relayer makes no offer");
                        None
                    }
                }
            });
        }
        let mut offers: Vec<Offer> = asked.join_all().await.into_iter().flatten().collect();
        offers.sort_by(|one, other| (one.fee, &one.url).cmp(&(other.fee, &other.url)));
        Ok(offers)
    }

    /// The fee of an unfinished redemption that is the same apart from its fee: a repeated redemption finishes the
    /// earlier one, even if relayers now ask another fee.
    ///
    /// # Errors
    /// If the wallet's files cannot be read.
    pub fn unfinished_fee(&self, account: AccountId, intent: &Intent) -> Result<Option<Amount>, WalletError> {
        let unfinished = self.folder().orders(account).unfinished()?;
        Ok(unfinished.iter().find_map(|entry| same_but_for_the_fee(entry, account, intent)))
    }
}

fn same_but_for_the_fee(entry: &OrderEntry, account: AccountId, intent: &Intent) -> Option<Amount> {
    let Transfer::Redemption(ordered) = &entry.order.as_ref()?.transfer else { return None };
    let Transfer::Redemption(meant) = intent.transfer(account, ordered.sequence) else { return None };
    (Redemption { fee: ordered.fee, ..meant } == *ordered).then_some(ordered.fee)
}

async fn ask(client: &reqwest::Client, url: &str) -> Result<Vec<u8>, String> {
    let failed = |error: reqwest::Error| error.without_url().to_string();
    let response = client.get(format!("{}/v1/fees", url.trim_end_matches('/'))).send().await.map_err(failed)?;
    if !response.status().is_success() {
        return Err(format!("it answers {}", response.status()));
    }
    read(response).await
}

fn offer(answer: &[u8], url: &str, domain: &Domain, asset: Asset) -> Result<Offer, String> {
    let Answer { chain_id, contract, relayer, wait_seconds, fees } =
        serde_json::from_slice(answer).map_err(|error| format!("its answer is not a list of fees: {error}"))?;
    if chain_id != domain.chain_id().to_string() || contract != domain.contract() {
        return Err(format!("it serves the contract {contract} on chain {chain_id}"));
    }
    let fee = fees.iter().find(|fee| fee.asset == asset).ok_or_else(|| format!("it does not serve {asset}"))?;
    let fee = fee.fee.parse().map(Amount).map_err(|_| format!("its fee is not an amount: {:?}", fee.fee))?;
    let paid_within = Duration::from_secs(wait_seconds).saturating_add(INCLUSION);
    Ok(Offer { url: url.into(), relayer, fee, paid_within })
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn only_an_offer_for_this_contract_and_asset_counts() {
        let contract = Address::repeat_byte(7);
        let (domain, token) = (Domain::new(5, contract), Asset(Address::repeat_byte(9)));
        let good = json!({
            "chainId": "5", "contract": contract, "relayer": Address::repeat_byte(1), "gasPrice": "3", "waitSeconds": 60,
            "fees": [{ "asset": Asset::ETHER, "fee": "12" }, { "asset": token, "fee": "340282366920938463463374607431768211455" }],
        });
        let read = |answer: &serde_json::Value, asset| offer(answer.to_string().as_bytes(), "u", &domain, asset);
        let ether = read(&good, Asset::ETHER).unwrap();
        assert_eq!((ether.fee, ether.paid_within), (Amount(12), Duration::from_secs(90)));
        assert_eq!(read(&good, token).unwrap().fee, Amount(u128::MAX));
        assert!(read(&good, Asset(Address::repeat_byte(8))).unwrap_err().contains("does not serve"));
        for (field, value, said) in [
            ("chainId", json!("6"), "on chain 6"),
            ("contract", json!(Address::repeat_byte(8)), "serves the contract"),
            ("fees", json!([{ "asset": Asset::ETHER, "fee": "-1" }]), "not an amount"),
            ("fees", json!([{ "asset": Asset::ETHER, "fee": 1 }]), "not a list of fees"),
            ("waitSeconds", json!(null), "not a list of fees"),
        ] {
            let mut bad = good.clone();
            bad[field] = value;
            let error = read(&bad, Asset::ETHER).unwrap_err();
            assert!(error.contains(said), "{error}");
        }
        let mut long = good;
        long["waitSeconds"] = u64::MAX.into();
        assert!(read(&long, Asset::ETHER).unwrap().paid_within > INCLUSION);
    }
}
