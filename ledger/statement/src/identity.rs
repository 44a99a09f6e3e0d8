//! Identities of the ledger: the deployment, its clusters and their members, and those who receive messages.

use std::fmt;

use alloy_primitives::{Address, keccak256};
use borsh::{BorshDeserialize, BorshSerialize};
use ed25519_zebra::SigningKey;
use fastpay_core::{Digest, Domain, Ed25519Signature};
use serde::{Deserialize, Serialize};

use crate::encoding::digest;

/// A deployment of the ledger, by the hash of its genesis. Every signature covers it.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize, Serialize, Deserialize,
)]
pub struct Deployment(pub Digest);

impl Deployment {
    /// The deployment of this encoded genesis.
    #[must_use]
    pub fn of_genesis(genesis: &[u8]) -> Self {
        Self(digest!("fastpay ledger genesis v1", &genesis))
    }

    /// The EIP-712 domain of a FastPay committee on this ledger. Its contract is the last 20 bytes of
    /// keccak256(genesis hash ‖ the committee's number, four bytes, most significant first), so that two committees on one
    /// ledger are apart. The chain id is 0: no chain of Ethereum has it.
    #[must_use]
    pub fn domain(self, committee: CommitteeNumber) -> Domain {
        let hash = keccak256([self.0.as_slice(), &committee.0.to_be_bytes()].concat());
        Domain::new(0, Address::from_word(hash))
    }
}

macro_rules! numbers {
    ($($(#[$doc:meta])* $name:ident($number:ty);)*) => { $(
        $(#[$doc])*
        #[derive(
            Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize,
            Serialize, Deserialize,
        )]
        pub struct $name(pub $number);

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    )* };
}

numbers! {
    /// The number of a cluster, which the genesis gives.
    ClusterId(u32);
    /// The number of a FastPay committee, which the genesis gives.
    CommitteeNumber(u32);
    /// The number of a decision of one cluster, from 1.
    Height(u64);
    /// Milliseconds since 1970, as a header has them.
    Time(u64);
    /// A member of a cluster, by its place in the order of the members' keys.
    MemberIndex(u8);
}

impl Height {
    /// The height after this one, or `None` after the largest.
    #[must_use]
    pub fn next(self) -> Option<Self> {
        self.0.checked_add(1).map(Self)
    }
}

/// Everyone to whom a decision can have messages.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize, Serialize, Deserialize,
)]
#[serde(rename_all = "camelCase")]
pub enum Receiver {
    /// A cluster of the ledger.
    Cluster(ClusterId),
    /// The authorities of a FastPay committee.
    Committee(CommitteeNumber),
    /// All clients: each takes its own answer from the group.
    Clients,
}

impl fmt::Display for Receiver {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Cluster(cluster) => write!(f, "cluster {cluster}"),
            Self::Committee(committee) => write!(f, "committee {committee}"),
            Self::Clients => f.write_str("the clients"),
        }
    }
}

/// A member's Ed25519 verification key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct MemberKey(pub [u8; 32]);

impl fmt::Display for MemberKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "0x{}", alloy_primitives::hex::encode(self.0))
    }
}

impl fmt::Debug for MemberKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(self, f)
    }
}

/// A member's secret key.
#[derive(Clone)]
pub struct MemberKeys(SigningKey);

impl MemberKeys {
    /// The key of a 32-byte seed.
    #[must_use]
    pub fn from_seed(seed: [u8; 32]) -> Self {
        Self(SigningKey::from(seed))
    }

    /// The public side.
    #[must_use]
    pub fn public(&self) -> MemberKey {
        MemberKey(self.0.verification_key().into())
    }

    /// Signs a statement's digest.
    #[must_use]
    pub fn sign(&self, digest: Digest) -> Ed25519Signature {
        Ed25519Signature(self.0.sign(digest.as_slice()).to_bytes())
    }
}

impl fmt::Debug for MemberKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "MemberKeys({}, secret)", self.public())
    }
}
