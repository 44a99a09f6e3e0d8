//! What is signed about private payments: EIP-712 typed structs under the deployment's domain, as all statements.

use std::sync::LazyLock;

use alloy_primitives::B256;

use super::transfer::{Nullifier, PrivateTransfer};
use crate::Digest;
use crate::amount::Epoch;
use crate::statement::{Domain, type_hash};

mod typed {
    #![allow(missing_docs)]
    alloy_sol_types::sol! {
        struct PrivateTransfer {
            uint64 committee;
            uint64 rules;
            address asset;
            bytes32 accountSpent;
            uint64 sequence;
            bytes32 coinSpent;
            bytes32 account;
            bytes32 coin;
            uint128 amountOut;
            bytes32 recipient;
            bytes32 memo;
            bytes32 notesHash;
        }
        struct PrivateCommittee {
            uint64 version;
            uint64 epoch;
            bytes32[] coinKeys;
            bytes32 verifyingKeyHash;
            bytes32 provingKeyHash;
        }
        struct PrivateRules {
            uint64 version;
            bytes32 registrar;
            bytes32 sanctionsRoot;
            bytes32 listHash;
            uint32 period;
            uint64 oldestAccepted;
        }
        struct NullifierStatus {
            uint64 epoch;
            bytes32 nullifier;
            uint8 status;
            bytes32 digest;
            bytes32 context;
        }
    }
}

/// The coin keys of a committee and the keys of its proofs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PrivateCommittee {
    /// The version of these keys.
    pub version: u64,
    /// The committee's epoch.
    pub epoch: Epoch,
    /// A coin key for each member, in the members' order.
    pub coin_keys: Vec<B256>,
    /// The hash of the verifying key.
    pub verifying_key_hash: B256,
    /// The hash of the proving key.
    pub proving_key_hash: B256,
}

/// The regulator's rules.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PrivateRules {
    /// The version of these rules.
    pub version: u64,
    /// The registrar's key.
    pub registrar: B256,
    /// The root of the sanctions list.
    pub sanctions_root: B256,
    /// The hash of the list.
    pub list_hash: B256,
    /// The period.
    pub period: u32,
    /// The oldest version of the rules under which transfers are accepted.
    pub oldest_accepted: u64,
}

/// What a member says of a nullifier when it is asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NullifierStatus {
    /// The member's epoch.
    pub epoch: Epoch,
    /// The nullifier.
    pub nullifier: Nullifier,
    /// Unseen, locked or spent.
    pub status: Status,
    /// The digest of the transfer that locked or spent it; zero if unseen.
    pub digest: Digest,
    /// Who asked and why, such as an auditor's challenge: the answer is for nothing else.
    pub context: B256,
}

/// Whether a nullifier was used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Status {
    /// By no transfer.
    Unseen = 0,
    /// By a transfer for which the member voted.
    Locked = 1,
    /// By a certified transfer.
    Spent = 2,
}

impl Domain {
    /// The digest that members vote for to certify a private transfer. Its proof is bound to it, too.
    #[must_use]
    pub fn private_transfer_digest(&self, transfer: &PrivateTransfer) -> Digest {
        static TYPE: LazyLock<B256> = LazyLock::new(type_hash::<typed::PrivateTransfer>);
        let typed = typed::PrivateTransfer {
            committee: transfer.committee,
            rules: transfer.rules,
            asset: transfer.asset.0,
            accountSpent: transfer.account_spent.0,
            sequence: transfer.sequence.0,
            coinSpent: transfer.coin_spent.0,
            account: transfer.account,
            coin: transfer.coin,
            amountOut: transfer.amount_out.0,
            recipient: transfer.recipient.0.into(),
            memo: transfer.memo,
            notesHash: transfer.notes_hash,
        };
        self.digest(*TYPE, &typed)
    }

    /// The digest that members vote for to certify coin keys.
    #[must_use]
    pub fn private_committee_digest(&self, committee: &PrivateCommittee) -> Digest {
        let PrivateCommittee { version, epoch, coin_keys, verifying_key_hash, proving_key_hash } = committee.clone();
        self.rare_digest(&typed::PrivateCommittee {
            version,
            epoch: epoch.0,
            coinKeys: coin_keys,
            verifyingKeyHash: verifying_key_hash,
            provingKeyHash: proving_key_hash,
        })
    }

    /// The digest that members vote for to certify rules.
    #[must_use]
    pub fn private_rules_digest(&self, rules: &PrivateRules) -> Digest {
        let PrivateRules { version, registrar, sanctions_root, list_hash, period, oldest_accepted } = *rules;
        self.rare_digest(&typed::PrivateRules {
            version,
            registrar,
            sanctionsRoot: sanctions_root,
            listHash: list_hash,
            period,
            oldestAccepted: oldest_accepted,
        })
    }

    /// The digest that a member signs to say whether it knows a nullifier.
    #[must_use]
    pub fn nullifier_status_digest(&self, status: &NullifierStatus) -> Digest {
        let NullifierStatus { epoch, nullifier, status, digest, context } = *status;
        let (epoch, nullifier, status) = (epoch.0, nullifier.0, status as u8);
        self.rare_digest(&typed::NullifierStatus { epoch, nullifier, status, digest, context })
    }
}
