//! The contract on the Primary, read through one or more Ethereum nodes.
//!
//! Reads go to the first node that answers. Deposits must not depend on one node's answer; [`crate::DepositReader`]
//! reads them from all nodes.

use std::sync::Arc;
use std::time::Duration;

use alloy::primitives::{Address, Bytes, U64, U256};
use alloy::rpc::client::RpcClient;
use alloy::rpc::json_rpc::RpcRecv;
use alloy::sol_types::SolCall;
use fastpay_core::{
    AccountId, Amount, Asset, Authority, AuthorityName, Committee, Domain, Epoch, SequenceNumber, TransactionIndex,
};
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use crate::contract::{ContractAuthority, IFastPay};
use crate::endpoint::{self, At, Endpoint};
use crate::error::PrimaryError;
use crate::finality::{BlockHead, Finality};
use crate::label::Label;

/// The prefix of the code of an account that is delegated to a contract (EIP-7702).
const DELEGATION: [u8; 3] = [0xef, 0x01, 0x00];

/// The number of an account's orders that the contract marks in one word of storage.
pub const ORDERS_IN_A_WORD: u64 = 256;

/// The address of the contract and of the Ethereum nodes that serve it. It is read from TOML.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PrimaryConfig {
    /// HTTP URLs of Ethereum nodes, the preferred one first.
    pub rpc_urls: Vec<Url>,
    /// The chain's id (EIP-155).
    pub chain_id: u64,
    /// The address of the FastPay contract.
    pub contract: Address,
    /// The rule by which a block counts as final.
    #[serde(default)]
    pub finality: Finality,
    /// The time-out of a request, in milliseconds.
    #[serde(default = "default_request_timeout_ms")]
    pub request_timeout_ms: u64,
}

fn default_request_timeout_ms() -> u64 {
    10_000
}

impl PrimaryConfig {
    /// A configuration with the default finality and time-out.
    #[must_use]
    pub fn new(rpc_urls: Vec<Url>, chain_id: u64, contract: Address) -> Self {
        let (finality, request_timeout_ms) = (Finality::default(), default_request_timeout_ms());
        Self { rpc_urls, chain_id, contract, finality, request_timeout_ms }
    }
}

/// A connection to the contract. Cheap to clone.
#[derive(Clone, Debug)]
pub struct Primary {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    chain_id: u64,
    contract: Address,
    finality: Finality,
    endpoints: Vec<Endpoint>,
}

/// Checks that a URL is HTTP or HTTPS: `localhost:8545` is a URL, too, of the scheme `localhost`.
fn check_rpc_url(url: &Url) -> Result<(), PrimaryError> {
    match url.scheme() {
        "http" | "https" => Ok(()),
        // Show only its beginning: providers put keys into the rest.
        scheme => Err(PrimaryError::NotHttp(format!("{scheme}:…"))),
    }
}

/// The chain id that the node at a URL serves.
///
/// # Errors
/// If the URL is not HTTP or HTTPS, or there is no answer.
pub async fn served_chain(url: &Url) -> Result<u64, PrimaryError> {
    check_rpc_url(url)?;
    let timeout = Duration::from_millis(default_request_timeout_ms());
    endpoint::served_chain(&Label::new(url), &RpcClient::new_http(url.clone()), timeout).await
}

impl Primary {
    /// Connects, and checks that every node that answers serves the chain and the contract. Nodes that do not answer
    /// now are checked when they do.
    ///
    /// # Errors
    /// If no node answers (retryable), or one of them serves another chain or no contract.
    pub async fn connect(config: PrimaryConfig) -> Result<Self, PrimaryError> {
        let primary = Self::connect_lazily(config)?;
        let mut first_failure = None;
        let mut reached = false;
        for endpoint in primary.endpoints() {
            match endpoint.verify().await {
                Ok(()) => reached = true,
                Err(error) if error.is_retryable() => {
                    tracing::warn!(node = endpoint.label(), %error, "an Ethereum node cannot be used yet");
                    first_failure.get_or_insert(error);
                }
                Err(error) => return Err(error),
            }
        }
        match first_failure {
            Some(error) if !reached => Err(error),
            _ => Ok(primary),
        }
    }

    /// As [`Primary::connect`], but each node is checked at its first request. For services that start before their
    /// Ethereum node does.
    ///
    /// # Errors
    /// If there is no URL, or one that is not HTTP or HTTPS.
    pub fn connect_lazily(config: PrimaryConfig) -> Result<Self, PrimaryError> {
        Self::connect_lazily_over(config, RpcClient::new_http)
    }

    /// As [`Primary::connect_lazily`], over any transport: `client` makes the client for each URL.
    ///
    /// # Errors
    /// If there is no URL, or one that is not HTTP or HTTPS.
    pub fn connect_lazily_over(config: PrimaryConfig, client: impl Fn(Url) -> RpcClient) -> Result<Self, PrimaryError> {
        let PrimaryConfig { rpc_urls, chain_id, contract, finality, request_timeout_ms } = config;
        if rpc_urls.is_empty() {
            return Err(PrimaryError::NoUrl);
        }
        rpc_urls.iter().try_for_each(check_rpc_url)?;
        let timeout = Duration::from_millis(request_timeout_ms.max(1));
        let endpoint = |url: Url| {
            let label = Label::new(&url);
            Endpoint::new(label, client(url), timeout, chain_id, contract)
        };
        let endpoints = rpc_urls.into_iter().map(endpoint).collect();
        Ok(Self { shared: Arc::new(Shared { chain_id, contract, finality, endpoints }) })
    }

    /// The chain's id (EIP-155).
    #[must_use]
    pub fn chain_id(&self) -> u64 {
        self.shared.chain_id
    }

    /// The contract's address.
    #[must_use]
    pub fn contract(&self) -> Address {
        self.shared.contract
    }

    /// The rule by which a block counts as final.
    #[must_use]
    pub fn finality(&self) -> Finality {
        self.shared.finality
    }

    /// The EIP-712 domain of all signatures for this contract.
    #[must_use]
    pub fn domain(&self) -> Domain {
        Domain::new(self.chain_id(), self.contract())
    }

    pub(crate) fn endpoints(&self) -> &[Endpoint] {
        &self.shared.endpoints
    }

    /// The number of configured nodes.
    #[must_use]
    pub fn nodes(&self) -> usize {
        self.shared.endpoints.len()
    }

    pub(crate) fn endpoint(&self, node: usize) -> Result<&Endpoint, PrimaryError> {
        self.shared.endpoints.get(node).ok_or(PrimaryError::NoUrl)
    }

    /// Asks one node after the other, and returns the first answer.
    ///
    /// # Errors
    /// The first error that is not retryable, or the first node's error if none answers.
    pub(crate) async fn first_answer<'a, T, F>(&'a self, ask: impl Fn(&'a Endpoint) -> F) -> Result<T, PrimaryError>
    where
        F: Future<Output = Result<T, PrimaryError>>,
    {
        let mut failure = None;
        for endpoint in self.endpoints() {
            match ask(endpoint).await {
                Err(error) if error.is_retryable() => _ = failure.get_or_insert(error),
                answer => return answer,
            }
        }
        Err(failure.unwrap_or(PrimaryError::NoUrl))
    }

    /// As [`Primary::first_answer`], of a request.
    pub(crate) async fn request<T: RpcRecv>(&self, method: &'static str, params: Value) -> Result<T, PrimaryError> {
        self.first_answer(|endpoint| endpoint.request(method, params.clone())).await
    }

    /// Calls a view of any contract in the newest block.
    pub(crate) async fn view<C: SolCall>(&self, to: Address, call: &C) -> Result<C::Return, PrimaryError> {
        self.view_at(to, call, At::Latest).await
    }

    pub(crate) async fn view_at<C: SolCall>(&self, to: Address, call: &C, at: At) -> Result<C::Return, PrimaryError> {
        self.first_answer(|endpoint| endpoint.view(to, call, at)).await
    }

    /// The newest block.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn latest_head(&self) -> Result<BlockHead, PrimaryError> {
        self.request("eth_getBlockByNumber", json!(["latest", false])).await
    }

    /// The time of the newest block of one of the configured nodes, in seconds since 1970.
    ///
    /// # Errors
    /// If it does not answer, or there is no such node.
    pub async fn head_time_by(&self, node: usize) -> Result<u64, PrimaryError> {
        let head: BlockHead = self.endpoint(node)?.request("eth_getBlockByNumber", json!(["latest", false])).await?;
        Ok(head.timestamp())
    }

    /// The newest block that is final by the configured rule.
    ///
    /// # Errors
    /// If no node answers or there is no final block yet.
    pub async fn final_head(&self) -> Result<BlockHead, PrimaryError> {
        self.first_answer(|endpoint| endpoint.final_head(self.finality())).await
    }

    /// The current epoch.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn epoch(&self) -> Result<Epoch, PrimaryError> {
        Ok(Epoch(self.view(self.contract(), &IFastPay::epochCall {}).await?))
    }

    /// The committee of an epoch, checked by core's rules, and to count votes as the contract does.
    ///
    /// # Errors
    /// If no node answers, the epoch is unknown, or the list is no committee.
    pub async fn committee(&self, epoch: Epoch) -> Result<Committee, PrimaryError> {
        let listed = self.view(self.contract(), &IFastPay::committeeCall { epoch: epoch.0 }).await?;
        let quorum = self.view(self.contract(), &IFastPay::quorumCall { epoch: epoch.0 }).await?;
        checked_committee(epoch, &listed, quorum)
    }

    /// The guardian, who may pause the contract and endorse an announcement; zero for nobody.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn guardian(&self) -> Result<Address, PrimaryError> {
        self.view(self.contract(), &IFastPay::guardianCall {}).await
    }

    /// Whether keys of an epoch were stolen, so its votes do not count.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn is_compromised(&self, epoch: Epoch) -> Result<bool, PrimaryError> {
        self.view(self.contract(), &IFastPay::compromisedCall { epoch: epoch.0 }).await
    }

    /// The largest balance of `asset` that the contract accepts.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn deposit_cap(&self, asset: Asset) -> Result<Amount, PrimaryError> {
        let cap = self.view(self.contract(), &IFastPay::depositCapCall { asset: asset.0 }).await?;
        Ok(Amount(u128::try_from(cap).unwrap_or(u128::MAX)))
    }

    /// The contract's balance of `asset` for accounts: all deposits less all redemptions.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn total_balance(&self, asset: Asset) -> Result<U256, PrimaryError> {
        self.view(self.contract(), &IFastPay::totalBalanceCall { asset: asset.0 }).await
    }

    /// The contract's balance of `asset` for claims.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn total_claims(&self, asset: Asset) -> Result<U256, PrimaryError> {
        self.view(self.contract(), &IFastPay::totalClaimsCall { asset: asset.0 }).await
    }

    /// The amount of `asset` that `owner` can claim.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn claim_of(&self, owner: Address, asset: Asset) -> Result<U256, PrimaryError> {
        self.view(self.contract(), &IFastPay::claimOfCall { owner, asset: asset.0 }).await
    }

    /// The index of the contract's last event in the newest block.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn last_transaction_index(&self) -> Result<TransactionIndex, PrimaryError> {
        Ok(TransactionIndex(self.view(self.contract(), &IFastPay::lastTransactionIndexCall {}).await?))
    }

    /// Whether the order `sequence` of `sender` is redeemed in the newest block.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn is_redeemed(&self, sender: AccountId, sequence: SequenceNumber) -> Result<bool, PrimaryError> {
        let call = IFastPay::isRedeemedCall { sender: sender.0.into(), sequence: sequence.0 };
        self.view(self.contract(), &call).await
    }

    /// Whether no order of `sender` is redeemed whose mark is in the same word of storage as that of `sequence`. The
    /// first one costs more gas.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn is_first_of_its_word(
        &self,
        sender: AccountId,
        sequence: SequenceNumber,
    ) -> Result<bool, PrimaryError> {
        let word = U256::from(sequence.0 / ORDERS_IN_A_WORD);
        let call = IFastPay::redeemedBitmapCall { sender: sender.0.into(), word };
        Ok(self.view(self.contract(), &call).await?.is_zero())
    }

    /// As [`Primary::is_redeemed`], in the block with this hash and no other of its number.
    ///
    /// # Errors
    /// If no node answers, or none of those that do has the block.
    pub async fn is_redeemed_in(
        &self,
        block: &BlockHead,
        sender: AccountId,
        sequence: SequenceNumber,
    ) -> Result<bool, PrimaryError> {
        let call = IFastPay::isRedeemedCall { sender: sender.0.into(), sequence: sequence.0 };
        self.view_at(self.contract(), &call, At::Hash(block.hash)).await
    }

    /// The block of the deployment, where a reader of events starts.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn deployment_block(&self) -> Result<u64, PrimaryError> {
        let block = self.view(self.contract(), &IFastPay::deploymentBlockCall {}).await?;
        Ok(block.saturating_to())
    }

    /// The ETH that an address holds, in wei.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn ether_balance(&self, owner: Address) -> Result<U256, PrimaryError> {
        self.request("eth_getBalance", json!([owner, "latest"])).await
    }

    /// Whether Ethereum has no account at an address now: paying ETH to it makes one, which costs more gas.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn is_new_account(&self, address: Address) -> Result<bool, PrimaryError> {
        Ok(self.ether_balance(address).await?.is_zero()
            && self.transaction_count(address, At::Latest).await? == 0
            && !self.has_code(address).await?)
    }

    /// Whether an address has code now: it is a contract, or an account that is delegated to one (EIP-7702).
    ///
    /// # Errors
    /// If no node answers.
    pub async fn has_code(&self, address: Address) -> Result<bool, PrimaryError> {
        Ok(!self.code(address).await?.is_empty())
    }

    /// Whether an address is a contract now, and so has no key. An account delegated to one (EIP-7702) has a key.
    ///
    /// # Errors
    /// If no node answers.
    pub async fn is_contract(&self, address: Address) -> Result<bool, PrimaryError> {
        let code = self.code(address).await?;
        Ok(!code.is_empty() && !code.starts_with(&DELEGATION))
    }

    async fn code(&self, address: Address) -> Result<Bytes, PrimaryError> {
        self.request("eth_getCode", json!([address, "latest"])).await
    }

    /// The number of transactions sent by `owner`, in the state of the block `at`.
    pub(crate) async fn transaction_count(&self, owner: Address, at: At) -> Result<u64, PrimaryError> {
        let count: U64 = self.request("eth_getTransactionCount", json!([owner, at.to_json()])).await?;
        Ok(count.to())
    }
}

/// The contract's committee in the order of names, if it satisfies core's rules and has the quorum that the contract
/// requires.
pub(crate) fn checked_committee(
    epoch: Epoch,
    listed: &[ContractAuthority],
    quorum: U256,
) -> Result<Committee, PrimaryError> {
    let members = members_of(listed);
    let committee = Committee::new(epoch, members.clone()).map_err(|error| PrimaryError::Committee { epoch, error })?;
    if committee.members() != members || quorum != U256::from(committee.quorum()) {
        return Err(PrimaryError::CommitteeOrder { epoch, contract: quorum, here: committee.quorum() });
    }
    Ok(committee)
}

/// The members as core has them, in the contract's order.
pub(crate) fn members_of(listed: &[ContractAuthority]) -> Vec<Authority> {
    let member = |member: &ContractAuthority| Authority {
        name: AuthorityName(member.votingKey.0),
        redemption_key: member.redemptionKey,
    };
    listed.iter().map(member).collect()
}
