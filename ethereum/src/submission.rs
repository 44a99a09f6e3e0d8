//! A transaction: the part that is stored before it is sent, and its outcome.

use alloy::primitives::{Address, B256, Bytes, U256};
use alloy::sol_types::SolCall;
use fastpay_core::{AccountId, Amount, Asset, Epoch, Redemption};
use serde::{Deserialize, Serialize};

use crate::contract::{CertifiedRedemption, IFastPay};
use crate::fees::Fees;

/// A transaction's call.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Call {
    /// The called contract.
    pub to: Address,
    /// The ETH sent with it, in wei.
    pub value: U256,
    /// The function and its arguments.
    pub data: Bytes,
}

impl Call {
    pub(crate) fn of(contract: Address, value: Amount, call: &impl SolCall) -> Self {
        Self { to: contract, value: U256::from(value.0), data: call.abi_encode().into() }
    }

    /// Deposits ETH for `recipient`.
    #[must_use]
    pub fn deposit_ether(contract: Address, recipient: AccountId, amount: Amount) -> Self {
        Self::of(contract, amount, &IFastPay::depositEtherCall { recipient: recipient.0.into() })
    }

    /// Deposits a token for `recipient`. The contract must have an allowance for it.
    #[must_use]
    pub fn deposit_token(contract: Address, recipient: AccountId, asset: Asset, amount: Amount) -> Self {
        let call = IFastPay::depositTokenCall { recipient: recipient.0.into(), asset: asset.0, amount: amount.0 };
        Self::of(contract, Amount::ZERO, &call)
    }

    /// Deposits a token for `recipient` with the owner's signature of a [`crate::Permit`].
    #[must_use]
    pub fn deposit_token_with_permit(
        contract: Address,
        recipient: AccountId,
        asset: Asset,
        amount: Amount,
        deadline: U256,
        signature: &alloy::primitives::Signature,
    ) -> Self {
        let call = IFastPay::depositTokenWithPermitCall {
            recipient: recipient.0.into(),
            asset: asset.0,
            amount: amount.0,
            deadline,
            v: 27 + u8::from(signature.v()),
            r: signature.r().into(),
            s: signature.s().into(),
        };
        Self::of(contract, Amount::ZERO, &call)
    }

    /// Redeems one certificate.
    #[must_use]
    pub fn redeem(contract: Address, certified: CertifiedRedemption) -> Self {
        let CertifiedRedemption { redemption, epoch, votes } = certified;
        Self::of(contract, Amount::ZERO, &IFastPay::redeemCall { redemption, epoch, votes })
    }

    /// Redeems several certificates; those already redeemed are skipped.
    #[must_use]
    pub fn redeem_many(contract: Address, certified: Vec<CertifiedRedemption>) -> Self {
        Self::of(contract, Amount::ZERO, &IFastPay::redeemManyCall { certified })
    }

    /// Redeems many under one vote of the committee of `epoch`; those already redeemed are skipped.
    #[must_use]
    pub fn redeem_batch(contract: Address, redemptions: &[Redemption], epoch: Epoch, votes: Bytes) -> Self {
        let redemptions = redemptions.iter().map(Into::into).collect();
        Self::of(contract, Amount::ZERO, &IFastPay::redeemBatchCall { redemptions, epoch: epoch.0, votes })
    }

    /// Executes a due redemption in the contract's queue. `votes` are empty, unless it was queued with votes of a
    /// compromised epoch: then they are of the current epoch, as for a batch of this redemption alone.
    #[must_use]
    pub fn execute_queued(contract: Address, redemption: &Redemption, votes: Bytes) -> Self {
        let call = IFastPay::executeQueuedCall { redemption: redemption.into(), votes };
        Self::of(contract, Amount::ZERO, &call)
    }

    /// Collects the sender's claim, or a part of it, to any address.
    #[must_use]
    pub fn claim(contract: Address, asset: Asset, to: Address, amount: U256) -> Self {
        Self::of(contract, Amount::ZERO, &IFastPay::claimCall { asset: asset.0, to, amount })
    }

    /// Pays `owner` its claim, or a part of it. Anybody may send it.
    #[must_use]
    pub fn claim_for(contract: Address, owner: Address, asset: Asset, amount: U256) -> Self {
        Self::of(contract, Amount::ZERO, &IFastPay::claimForCall { owner, asset: asset.0, amount })
    }
}

/// A signed transaction and those that replaced it. All have one nonce, so at most one of them happens. Store it before
/// it is broadcast: with it and the key, the very same transactions can be sent again.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Submission {
    /// The call.
    pub call: Call,
    /// The sender.
    pub from: Address,
    /// Its number among the transactions of its sender.
    pub nonce: u64,
    /// The most gas that it may use.
    pub gas_limit: u64,
    /// The attempts, one for each fee offer, the newest last.
    pub attempts: Vec<Attempt>,
}

/// A fee offer. Signing is deterministic, so the signed transaction need not be stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Attempt {
    /// The transaction's hash.
    pub hash: B256,
    /// The fee offer.
    pub fees: Fees,
}

/// The block that includes a transaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Inclusion {
    /// The hash of the attempt that was included.
    pub hash: B256,
    /// The block's number.
    pub block_number: u64,
    /// The block's hash.
    pub block_hash: B256,
    /// Whether it succeeded. If it reverted, it cost gas and had no other effect.
    pub success: bool,
    /// The gas that it used.
    pub gas_used: u64,
    /// The price of gas, in wei; `None` if the Ethereum node did not report it.
    #[serde(default)]
    pub gas_price_wei: Option<U256>,
}

impl Inclusion {
    /// The cost of the transaction's gas, in wei.
    #[must_use]
    pub fn cost_wei(&self) -> Option<U256> {
        Some(U256::from(self.gas_used).saturating_mul(self.gas_price_wei?))
    }
}

/// The outcome of a submission.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// It is in no block (any more).
    Pending {
        /// Whether a node's pool has it; if not, send it again.
        known: bool,
    },
    /// It is in a block that may still change.
    Included {
        /// The block.
        inclusion: Inclusion,
        /// The number of further blocks that make it final.
        blocks_left: u64,
    },
    /// It is in a final block.
    Final(Inclusion),
    /// Another transaction with its nonce is final, so it will never happen.
    Superseded,
}
