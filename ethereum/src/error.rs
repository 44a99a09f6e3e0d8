//! Errors of reads from the Primary, sorted by what the caller should do.

use alloy::primitives::{Address, Bytes, U256};
use alloy::rpc::json_rpc::{ErrorPayload, RpcError};
use alloy::transports::TransportError;
use fastpay_core::{CommitteeError, Epoch};

use crate::label::Label;
use crate::revert::Revert;

/// Why the Primary gave no usable answer. `node` is the origin of the RPC URL. The rest of the URL may contain a key,
/// and is removed from all texts here, those of the transport and those of the node.
#[derive(Debug, thiserror::Error)]
pub enum PrimaryError {
    /// No RPC URL is configured.
    #[error("no Ethereum RPC URL is given; configure at least one")]
    NoUrl,
    /// An address is not an HTTP URL, such as `localhost:8545`.
    #[error("{0} is not the URL of an Ethereum node; give one that begins with http:// or https://")]
    NotHttp(String),
    /// No answer: the node is down, cannot be reached, or is too slow.
    #[error("the Ethereum node {node} does not answer ({reason}); check that it runs, or try again later")]
    Unreachable {
        /// The node that was asked.
        node: String,
        /// The error of the transport.
        reason: String,
    },
    /// The node answered with an error, such as a rate limit or a range that it will not search.
    #[error("the Ethereum node {node} refused {method}: {message} (code {code}); try again later")]
    Refused {
        /// The node that was asked.
        node: String,
        /// The request.
        method: &'static str,
        /// The JSON-RPC error code.
        code: i64,
        /// The node's error text.
        message: String,
    },
    /// The node's answer is not what the method returns.
    #[error("the Ethereum node {node} sent an unreadable answer to {method}: {reason}; try again later")]
    BadAnswer {
        /// The node that was asked.
        node: String,
        /// The request.
        method: &'static str,
        /// The defect of the answer.
        reason: String,
    },
    /// The node knows no final block yet: it is starting up, or the chain is too short.
    #[error("the Ethereum node {node} has no final block yet; try again later")]
    NoFinalBlock {
        /// The node that was asked.
        node: String,
    },
    /// The node serves another chain than the configured one.
    #[error("the Ethereum node {node} serves chain {found}, not {expected}; correct the RPC URL or the chain ID")]
    WrongChain {
        /// The node that was asked.
        node: String,
        /// The configured chain id.
        expected: u64,
        /// The node's chain id.
        found: u64,
    },
    /// There is no contract at the configured address.
    #[error("there is no contract at {address} (asked {node}); correct the address or the RPC URL")]
    NoContract {
        /// The node that was asked.
        node: String,
        /// The configured address.
        address: Address,
    },
    /// The call would revert.
    #[error("the contract rejects the call: {0}")]
    Reverted(Box<Revert>),
    /// The account cannot pay for value and gas.
    #[error("the Ethereum account cannot pay for the value and the gas; send it some ETH")]
    InsufficientFunds,
    /// The contract's committee breaks a rule of FastPay.
    #[error("the contract's committee of epoch {epoch} is invalid: {error}; is this the right contract?")]
    Committee {
        /// The requested epoch.
        epoch: Epoch,
        /// The rule that it breaks.
        error: CommitteeError,
    },
    /// The contract lists the committee in another order than votes are counted by, or requires another number of
    /// votes, so certificates would not be valid there.
    #[error(
        "the contract counts the votes of epoch {epoch} otherwise: quorum {contract} there, {here} here; is this the right contract?"
    )]
    CommitteeOrder {
        /// The requested epoch.
        epoch: Epoch,
        /// The quorum by the contract.
        contract: U256,
        /// The quorum by FastPay's rules.
        here: usize,
    },
    /// The address is not that of a usable ERC-20 token.
    #[error("{token} is not a usable token: {reason}; check the address")]
    BadToken {
        /// Its address.
        token: Address,
        /// The missing part.
        reason: &'static str,
    },
}

impl PrimaryError {
    /// Whether the same request may succeed later or at another node; false if only an operator can help.
    #[must_use]
    pub fn is_retryable(&self) -> bool {
        match self {
            Self::Unreachable { .. } | Self::Refused { .. } | Self::BadAnswer { .. } | Self::NoFinalBlock { .. } => {
                true
            }
            Self::NoUrl
            | Self::NotHttp(_)
            | Self::WrongChain { .. }
            | Self::NoContract { .. }
            | Self::Reverted(_)
            | Self::InsufficientFunds
            | Self::Committee { .. }
            | Self::CommitteeOrder { .. }
            | Self::BadToken { .. } => false,
        }
    }

    /// Classifies a transport's error.
    pub(crate) fn from_transport(label: &Label, method: &'static str, error: TransportError) -> Self {
        let node = label.as_str().to_owned();
        match error {
            RpcError::Transport(error) => Self::Unreachable { node, reason: label.quote(&error.to_string()) },
            RpcError::ErrorResp(payload) => Self::from_payload(label, method, &payload),
            error => Self::BadAnswer { node, method, reason: label.quote(&error.to_string()) },
        }
    }

    fn from_payload(label: &Label, method: &'static str, payload: &ErrorPayload) -> Self {
        if let Some(data) = payload.as_revert_data() {
            return Self::Reverted(Box::new(Revert::decode(data)));
        }
        let message = payload.message.to_ascii_lowercase();
        // Nodes answer a call that reverts with code 3. Without data, the revert had no reason.
        if payload.code == 3 || message.contains("execution reverted") {
            return Self::Reverted(Box::new(Revert::Unknown(Bytes::new())));
        }
        if message.contains("insufficient funds") {
            return Self::InsufficientFunds;
        }
        let (node, message) = (label.as_str().to_owned(), label.quote(&payload.message));
        Self::Refused { node, method, code: payload.code, message }
    }
}
