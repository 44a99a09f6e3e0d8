//! One Ethereum node: JSON-RPC with a time-out, and the check that it serves the configured chain and contract.
//!
//! A node is checked before its first answer is used, and again whenever it was away, because another node may have
//! taken its address.

use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use alloy::primitives::{Address, B256, Bytes, U64};
use alloy::rpc::client::RpcClient;
use alloy::rpc::json_rpc::RpcRecv;
use alloy::rpc::types::Log;
use alloy::sol_types::SolCall;
use serde_json::{Value, json};

use crate::error::PrimaryError;
use crate::finality::{BlockHead, Finality};
use crate::label::Label;

/// The block to read: JSON-RPC's block parameter.
#[derive(Clone, Copy, Debug)]
pub(crate) enum At {
    /// The newest block.
    Latest,
    /// The newest block with the pending transactions.
    Pending,
    /// The block of this number.
    Number(u64),
    /// The block of this hash (EIP-1898), and no other of the same number.
    Hash(alloy::primitives::B256),
}

impl At {
    pub(crate) fn to_json(self) -> Value {
        match self {
            Self::Latest => json!("latest"),
            Self::Pending => json!("pending"),
            Self::Number(number) => json!(U64::from(number)),
            Self::Hash(hash) => json!({ "blockHash": hash }),
        }
    }
}

/// A connection to a node, over HTTP in production.
#[derive(Debug)]
pub(crate) struct Endpoint {
    label: Label,
    client: RpcClient,
    timeout: Duration,
    chain_id: u64,
    contract: Address,
    verified: AtomicBool,
}

impl Endpoint {
    pub(crate) fn new(label: Label, client: RpcClient, timeout: Duration, chain_id: u64, contract: Address) -> Self {
        Self { label, client, timeout, chain_id, contract, verified: AtomicBool::new(false) }
    }

    /// The URL's origin, for messages.
    pub(crate) fn label(&self) -> &str {
        self.label.as_str()
    }

    /// Checks chain id and contract, unless that was done since the node was last away.
    pub(crate) async fn verify(&self) -> Result<(), PrimaryError> {
        if self.verified.load(Ordering::Acquire) {
            return Ok(());
        }
        let found = served_chain(&self.label, &self.client, self.timeout).await?;
        if found != self.chain_id {
            return Err(PrimaryError::WrongChain { node: self.label().into(), expected: self.chain_id, found });
        }
        let code: Bytes = self.ask("eth_getCode", json!([self.contract, "latest"])).await?;
        if code.is_empty() {
            return Err(PrimaryError::NoContract { node: self.label().into(), address: self.contract });
        }
        self.verified.store(true, Ordering::Release);
        Ok(())
    }

    /// Sends a request to the node, after verifying it.
    pub(crate) async fn request<T: RpcRecv>(&self, method: &'static str, params: Value) -> Result<T, PrimaryError> {
        self.verify().await?;
        self.ask(method, params).await
    }

    async fn ask<T: RpcRecv>(&self, method: &'static str, params: Value) -> Result<T, PrimaryError> {
        let answer = ask(&self.label, &self.client, self.timeout, method, params).await;
        if matches!(answer, Err(PrimaryError::Unreachable { .. })) {
            self.verified.store(false, Ordering::Release);
        }
        answer
    }

    /// The error for an answer of the right type that makes no sense.
    pub(crate) fn bad_answer(&self, method: &'static str, reason: &str) -> PrimaryError {
        PrimaryError::BadAnswer { node: self.label().into(), method, reason: self.label.quote(reason) }
    }

    /// Calls a view of a contract.
    pub(crate) async fn view<C: SolCall>(&self, to: Address, call: &C, at: At) -> Result<C::Return, PrimaryError> {
        let data = Bytes::from(call.abi_encode());
        let answer: Bytes = self.request("eth_call", json!([{ "to": to, "data": data }, at.to_json()])).await?;
        C::abi_decode_returns_validate(&answer).map_err(|error| self.bad_answer(C::SIGNATURE, &error.to_string()))
    }

    /// The block at `at`; `None` if the node has no such block.
    pub(crate) async fn block(&self, at: At) -> Result<Option<BlockHead>, PrimaryError> {
        match at {
            At::Hash(hash) => self.request("eth_getBlockByHash", json!([hash, false])).await,
            at => self.request("eth_getBlockByNumber", json!([at.to_json(), false])).await,
        }
    }

    /// The newest block that is final by `rule`.
    pub(crate) async fn final_head(&self, rule: Finality) -> Result<BlockHead, PrimaryError> {
        let tag = |tag: &'static str| self.request("eth_getBlockByNumber", json!([tag, false]));
        let head: Option<BlockHead> = match rule {
            Finality::Finalized => tag("finalized").await?,
            Finality::Safe => tag("safe").await?,
            Finality::Confirmations(depth) => {
                let newest: Option<BlockHead> = tag("latest").await?;
                match newest.and_then(|newest| newest.number().checked_sub(depth)) {
                    Some(number) => self.block(At::Number(number)).await?,
                    None => None,
                }
            }
        };
        head.ok_or_else(|| PrimaryError::NoFinalBlock { node: self.label().into() })
    }

    /// The contract's logs of these kinds of events, in the whole blocks from `first` to `last`.
    pub(crate) async fn logs(&self, kinds: &[B256], first: u64, last: u64) -> Result<Vec<Log>, PrimaryError> {
        self.logs_of(self.contract, kinds, first, last).await
    }

    /// A contract's logs of these kinds of events, in the whole blocks from `first` to `last`.
    pub(crate) async fn logs_of(
        &self,
        address: Address,
        kinds: &[B256],
        first: u64,
        last: u64,
    ) -> Result<Vec<Log>, PrimaryError> {
        let filter = json!([{
            "address": address,
            "topics": [kinds],
            "fromBlock": U64::from(first),
            "toBlock": U64::from(last),
        }]);
        self.request("eth_getLogs", filter).await
    }

    /// The same, in smaller parts where the node refuses so many blocks at a time.
    pub(crate) async fn logs_in_parts(
        &self,
        address: Address,
        kinds: &[B256],
        first: u64,
        last: u64,
    ) -> Result<Vec<Log>, PrimaryError> {
        match self.logs_of(address, kinds, first, last).await {
            Err(PrimaryError::Refused { .. }) if first < last => {
                let middle = first.midpoint(last);
                let mut logs = Box::pin(self.logs_in_parts(address, kinds, first, middle)).await?;
                logs.extend(Box::pin(self.logs_in_parts(address, kinds, middle.saturating_add(1), last)).await?);
                Ok(logs)
            }
            answer => answer,
        }
    }
}

/// Asks a node for its chain id.
pub(crate) async fn served_chain(label: &Label, client: &RpcClient, timeout: Duration) -> Result<u64, PrimaryError> {
    let id: U64 = ask(label, client, timeout, "eth_chainId", json!([])).await?;
    Ok(id.to())
}

async fn ask<T: RpcRecv>(
    label: &Label,
    client: &RpcClient,
    timeout: Duration,
    method: &'static str,
    params: Value,
) -> Result<T, PrimaryError> {
    match tokio::time::timeout(timeout, client.request::<Value, T>(method, params)).await {
        Ok(answer) => answer.map_err(|error| PrimaryError::from_transport(label, method, error)),
        Err(_) => Err(PrimaryError::Unreachable {
            node: label.as_str().into(),
            reason: format!("no answer to {method} within {} ms", timeout.as_millis()),
        }),
    }
}
