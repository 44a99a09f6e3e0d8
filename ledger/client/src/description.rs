//! What a browser is told of a FastPay committee on a ledger. An operator makes it from the ledger's file, and whoever
//! hands it over is trusted as whoever gives a contract's address.

use fastpay_core::PrimaryAddress;
use fastpay_ledger_statement::{CommitteeNumber, Deployment};
use serde::Serialize;

use crate::network::Network;

/// The description. Only the members' addresses are not covered by the contract's address.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Description {
    /// The genesis in borsh, as hexadecimal digits after `0x`. Its hash is the deployment.
    pub genesis: String,
    /// The committee's number in the genesis.
    pub committee: CommitteeNumber,
    /// The contract of the committee's EIP-712 domain, which follows from both: a reader checks it.
    pub contract: PrimaryAddress,
    /// The members of the settlement cluster.
    pub members: Vec<DescribedMember>,
}

/// A member of the settlement cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct DescribedMember {
    /// Its key.
    pub key: String,
    /// The base of its HTTP API. Behind a proxy, the operator replaces it by the public one.
    pub http: String,
}

impl Network {
    /// Describes a committee to browsers; `None` if the genesis has no such committee.
    #[must_use]
    pub fn describe(&self, committee: CommitteeNumber) -> Option<Description> {
        let genesis = self.genesis();
        genesis.committees.get(&committee)?;
        let encoded = borsh::to_vec(genesis).expect("memory takes every write");
        let keys = genesis.clusters.get(&genesis.partition.settlement)?;
        let member = |key| {
            let http = format!("http://{}", self.addresses(key)?.http);
            Some(DescribedMember { key: key.to_string(), http })
        };
        Some(Description {
            contract: Deployment::of_genesis(&encoded).domain(committee).contract(),
            genesis: format!("0x{}", hex::encode(encoded)),
            committee,
            members: keys.iter().map(member).collect::<Option<_>>()?,
        })
    }
}
