//! The genesis: everything that all members of all clusters agree on beforehand. Its hash is the deployment.

use std::collections::BTreeMap;

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{AccountId, Amount, Asset, Epoch};

use crate::committee::{Bond, FoundedCommittee, SafetyParameters, UNLOCK_WINDOW_MS_MIN};
use crate::group::RECEIVERS_MAX;
use crate::identity::{ClusterId, CommitteeNumber, Deployment, MemberKey, Receiver};
use crate::members::{Members, MembersError};
use crate::partition::Partition;
use crate::request::Namespace;

/// The most that is issued of an asset is less than this: no sum of balances overflows [LEDGER 8].
const ISSUED_LIMIT: u128 = 1 << 127;

/// A part of the money that exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Issue {
    /// The owner of the reserve that has it first. Its key opens it.
    pub owner: AccountId,
    /// The asset.
    pub asset: Asset,
    /// The amount.
    pub amount: Amount,
}

/// What the genesis says.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Genesis {
    /// The members of each cluster. A cluster that keeps nothing is a coordinator.
    pub clusters: BTreeMap<ClusterId, Vec<MemberKey>>,
    /// Which cluster keeps what.
    pub partition: Partition,
    /// The writer of each namespace.
    pub namespaces: BTreeMap<Namespace, AccountId>,
    /// The FastPay committees, each in epoch 0.
    pub committees: BTreeMap<CommitteeNumber, FoundedCommittee>,
    /// All money.
    pub issued: Vec<Issue>,
}

/// A valid genesis as one of its clusters sees it. Only checking makes one.
#[derive(Clone, Debug)]
pub struct Layout {
    genesis: Genesis,
    deployment: Deployment,
    us: ClusterId,
    members: BTreeMap<ClusterId, Members>,
    issued: BTreeMap<Asset, Amount>,
}

impl Layout {
    /// The genesis, as cluster `us` sees it.
    ///
    /// # Errors
    /// See [`GenesisError`].
    pub fn new(genesis: Genesis, us: ClusterId) -> Result<Self, GenesisError> {
        let deployment = Deployment::of_genesis(&borsh::to_vec(&genesis).expect("memory takes every write"));
        let partition = &genesis.partition;
        let named = partition.shards().chain([partition.settlement, us]);
        if let Some(unknown) = named.into_iter().find(|cluster| !genesis.clusters.contains_key(cluster)) {
            return Err(GenesisError::UnknownCluster(unknown));
        }
        let mut shards: Vec<ClusterId> = partition.shards().collect();
        shards.sort_unstable();
        if let Some([twice, _]) = shards.array_windows().find(|[a, b]| a == b) {
            return Err(GenesisError::RepeatedShard(*twice));
        }
        let receivers = genesis.clusters.len().saturating_add(genesis.committees.len()).saturating_add(1);
        if receivers > RECEIVERS_MAX {
            return Err(GenesisError::TooManyReceivers(receivers));
        }
        let mut issued: BTreeMap<Asset, Amount> = BTreeMap::new();
        for Issue { asset, amount, .. } in &genesis.issued {
            let total = issued.entry(*asset).or_default();
            let sum = total.checked_add(*amount).filter(|sum| sum.0 < ISSUED_LIMIT);
            *total = sum.ok_or(GenesisError::TooMuchIssued(*asset))?;
        }
        for (number, founded) in &genesis.committees {
            if founded.first.epoch() != Epoch(0) {
                return Err(GenesisError::NotFirstEpoch(*number));
            }
            check_parameters(*number, &founded.parameters, &issued)?;
        }
        let members = |(cluster, keys): (&ClusterId, &Vec<MemberKey>)| {
            let members = Members::new(deployment, *cluster, keys.clone());
            Ok((*cluster, members.map_err(|error| GenesisError::Members { cluster: *cluster, error })?))
        };
        let members = genesis.clusters.iter().map(members).collect::<Result<_, _>>()?;
        Ok(Self { genesis, deployment, us, members, issued })
    }

    /// The genesis.
    #[must_use]
    pub fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    /// The deployment: the hash of the genesis.
    #[must_use]
    pub fn deployment(&self) -> Deployment {
        self.deployment
    }

    /// The cluster that looks.
    #[must_use]
    pub fn us(&self) -> ClusterId {
        self.us
    }

    /// The members of a cluster, or `None` if there is no such cluster.
    #[must_use]
    pub fn members(&self, cluster: ClusterId) -> Option<&Members> {
        self.members.get(&cluster)
    }

    /// All that exists of an asset.
    #[must_use]
    pub fn issued(&self, asset: Asset) -> Amount {
        self.issued.get(&asset).copied().unwrap_or_default()
    }

    /// Which cluster keeps what.
    #[must_use]
    pub fn partition(&self) -> &Partition {
        &self.genesis.partition
    }

    /// Whether the cluster that looks keeps the FastPay committees.
    #[must_use]
    pub fn is_settlement(&self) -> bool {
        self.genesis.partition.settlement == self.us
    }

    /// Everyone to whom this cluster can have messages, in their order.
    pub fn receivers(&self) -> impl Iterator<Item = Receiver> {
        let clusters = self.genesis.clusters.keys().filter(|cluster| **cluster != self.us);
        let committees = self.genesis.committees.keys().filter(|_| self.is_settlement());
        let clusters = clusters.copied().map(Receiver::Cluster);
        clusters.chain(committees.copied().map(Receiver::Committee)).chain([Receiver::Clients])
    }
}

/// Checks what a committee could not live with.
fn check_parameters(
    number: CommitteeNumber,
    parameters: &SafetyParameters,
    issued: &BTreeMap<Asset, Amount>,
) -> Result<(), GenesisError> {
    let SafetyParameters { votes_validity_ms, unlock_window_ms, endorsed_delay_ms, announced_delay_ms, .. } =
        *parameters;
    if unlock_window_ms < UNLOCK_WINDOW_MS_MIN {
        return Err(GenesisError::UnlockWindow(number, unlock_window_ms));
    }
    if votes_validity_ms < unlock_window_ms.saturating_mul(2) {
        return Err(GenesisError::VotesValidity(number, votes_validity_ms));
    }
    if endorsed_delay_ms > announced_delay_ms {
        return Err(GenesisError::Delays(number));
    }
    if parameters.lapse_ms == 0 {
        return Err(GenesisError::Lapse(number));
    }
    let Bond { asset, amount } = parameters.unlock_bond;
    if amount == Amount::ZERO || amount > issued.get(&asset).copied().unwrap_or_default() {
        return Err(GenesisError::Bond(number));
    }
    Ok(())
}

/// Why a genesis is not valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GenesisError {
    /// A cluster is named that has no members.
    #[error("cluster {0} is named, but has no members; list them")]
    UnknownCluster(ClusterId),
    /// A shard would keep two parts.
    #[error("cluster {0} is listed as a shard twice")]
    RepeatedShard(ClusterId),
    /// More than fit into one decision.
    #[error("{0} clusters and committees, with the clients, are more than {RECEIVERS_MAX}")]
    TooManyReceivers(usize),
    /// A committee begins in another epoch.
    #[error("committee {0} must begin in epoch 0")]
    NotFirstEpoch(CommitteeNumber),
    /// Authorities could not vote, or numbers would be voided before a certificate is shown.
    #[error("the unlock window of committee {0} is {1} ms; it must be at least {UNLOCK_WINDOW_MS_MIN}")]
    UnlockWindow(CommitteeNumber, u64),
    /// Authorities that lag would execute orders of an epoch whose votes count no more.
    #[error("redemption votes of committee {0} count for {1} ms after an epoch; let them count for two unlock windows")]
    VotesValidity(CommitteeNumber, u64),
    /// An endorsement would be of no use.
    #[error("the delay of committee {0} with an endorsement is longer than without")]
    Delays(CommitteeNumber),
    /// Nothing could be installed without an endorsement.
    #[error("announcements of committee {0} lapse when their delay has passed; let them last")]
    Lapse(CommitteeNumber),
    /// Nobody, or anybody at no cost, could request to unlock.
    #[error("the unlock bond of committee {0} is zero, or more than is issued of its asset")]
    Bond(CommitteeNumber),
    /// Sums could overflow.
    #[error("of asset {0} 2^127 or more would be issued; issue less, or count in a larger unit")]
    TooMuchIssued(Asset),
    /// The members are not those of a cluster.
    #[error("cluster {cluster}: {error}")]
    Members {
        /// The cluster.
        cluster: ClusterId,
        /// What is wrong with them.
        error: MembersError,
    },
}
