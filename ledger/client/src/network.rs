//! The file that describes a ledger, the same for all its members and clients: the genesis, and where members listen.
//! The addresses are no part of the genesis.

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

use fastpay_core::{AccountId, Amount, Asset, Authority, Committee, Epoch, PrimaryAddress};
use fastpay_ledger_statement::{
    ClusterId, CommitteeNumber, FoundedCommittee, Genesis, GenesisError, Issue, Layout, MemberKey, Namespace,
    Partition, SafetyParameters,
};
use serde::{Deserialize, Serialize};

/// The file.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct LedgerFile {
    settlement: ClusterId,
    shards: Vec<ClusterId>,
    cluster: Vec<ClusterFile>,
    #[serde(default)]
    namespace: Vec<NamespaceFile>,
    #[serde(default)]
    issue: Vec<IssueFile>,
    #[serde(default)]
    committee: Vec<CommitteeFile>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ClusterFile {
    id: ClusterId,
    member: Vec<MemberFile>,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct MemberFile {
    key: String,
    engine: SocketAddr,
    api: SocketAddr,
    http: SocketAddr,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NamespaceFile {
    name: String,
    writer: AccountId,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct IssueFile {
    owner: AccountId,
    asset: Asset,
    amount: Amount,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct CommitteeFile {
    number: CommitteeNumber,
    /// Nobody without it.
    #[serde(default)]
    guardian: PrimaryAddress,
    parameters: SafetyParameters,
    authority: Vec<Authority>,
}

/// Where a member listens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Addresses {
    /// For the engines of its cluster.
    pub engine: SocketAddr,
    /// For gRPC.
    pub api: SocketAddr,
    /// For HTTP.
    pub http: SocketAddr,
}

/// A ledger: its genesis, and its members' addresses.
#[derive(Clone, Debug)]
pub struct Network {
    genesis: Genesis,
    addresses: BTreeMap<MemberKey, Addresses>,
}

impl Network {
    /// Reads the file.
    ///
    /// # Errors
    /// See [`NetworkError`].
    pub fn read(path: &Path) -> Result<Self, NetworkError> {
        let failed = |error: std::io::Error| NetworkError::Io { path: path.to_path_buf(), error };
        Self::parse(&std::fs::read_to_string(path).map_err(failed)?)
    }

    /// Reads the file's text.
    ///
    /// # Errors
    /// See [`NetworkError`].
    pub fn parse(text: &str) -> Result<Self, NetworkError> {
        let file: LedgerFile = fastpay_program::configuration::read(text)?;
        let mut shards = file.shards.into_iter();
        let first_shard = shards.next().ok_or(NetworkError::NoShard)?;
        let partition = Partition { settlement: file.settlement, first_shard, other_shards: shards.collect() };
        let mut clusters = BTreeMap::new();
        let mut addresses = BTreeMap::new();
        for cluster in file.cluster {
            let mut keys = Vec::new();
            for MemberFile { key, engine, api, http } in cluster.member {
                let key = parse_key(&key)?;
                keys.push(key);
                // A URL has no place for one.
                let has_scope = |address: &&SocketAddr| matches!(address, SocketAddr::V6(v6) if v6.scope_id() != 0);
                if let Some(address) = [engine, api, http].iter().find(has_scope) {
                    return Err(NetworkError::Scope(*address));
                }
                if addresses.insert(key, Addresses { engine, api, http }).is_some() {
                    return Err(NetworkError::Repeated(key.to_string()));
                }
            }
            if clusters.insert(cluster.id, keys).is_some() {
                return Err(NetworkError::Repeated(format!("cluster {}", cluster.id)));
            }
        }
        let namespaces = file.namespace.into_iter().map(|NamespaceFile { name, writer }| {
            Namespace::new(name.clone()).map(|namespace| (namespace, writer)).ok_or(NetworkError::Namespace(name))
        });
        let committees = file.committee.into_iter().map(|CommitteeFile { number, guardian, parameters, authority }| {
            let first = Committee::new(Epoch(0), authority)
                .map_err(|error| NetworkError::Committee { number, error: error.to_string() })?;
            Ok::<_, NetworkError>((number, FoundedCommittee { first, guardian, parameters }))
        });
        let issued = file.issue.into_iter().map(|IssueFile { owner, asset, amount }| Issue { owner, asset, amount });
        let genesis = Genesis {
            clusters,
            partition,
            namespaces: namespaces.collect::<Result<_, _>>()?,
            committees: committees.collect::<Result<_, _>>()?,
            issued: issued.collect(),
        };
        Ok(Self { genesis, addresses })
    }

    /// The genesis as a cluster sees it.
    ///
    /// # Errors
    /// See [`GenesisError`].
    pub fn layout(&self, us: ClusterId) -> Result<Layout, GenesisError> {
        Layout::new(self.genesis.clone(), us)
    }

    /// The genesis.
    #[must_use]
    pub fn genesis(&self) -> &Genesis {
        &self.genesis
    }

    /// The cluster of a member.
    #[must_use]
    pub fn cluster_of(&self, key: &MemberKey) -> Option<ClusterId> {
        self.genesis.clusters.iter().find(|(_, keys)| keys.contains(key)).map(|(cluster, _)| *cluster)
    }

    /// Where a member listens.
    #[must_use]
    pub fn addresses(&self, key: &MemberKey) -> Option<Addresses> {
        self.addresses.get(key).copied()
    }
}

fn parse_key(text: &str) -> Result<MemberKey, NetworkError> {
    let mut bytes = [0; 32];
    let digits = text.strip_prefix("0x").unwrap_or(text);
    hex::decode_to_slice(digits, &mut bytes).map_err(|_| NetworkError::Key(text.to_owned()))?;
    Ok(MemberKey(bytes))
}

/// Why a file describes no ledger.
#[derive(Debug, thiserror::Error)]
pub enum NetworkError {
    /// It cannot be read.
    #[error("cannot read {path}: {error}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why not.
        error: std::io::Error,
    },
    /// It is no such file.
    #[error("the file is not a ledger's: {0}")]
    Malformed(#[from] fastpay_program::configuration::Malformed),
    /// Nothing keeps reserves and values.
    #[error("list at least one cluster in `shards`")]
    NoShard,
    /// A member's key is none.
    #[error("{0} is not a member's key: `fastpay-ledger keygen` prints one, of 64 hexadecimal digits")]
    Key(String),
    /// An address holds on one machine only.
    #[error("{0} has an IPv6 scope, which means something else on each machine; give an address without one")]
    Scope(SocketAddr),
    /// A key or a cluster is listed twice.
    #[error("{0} is listed twice")]
    Repeated(String),
    /// A namespace's name does not fit.
    #[error("{0:?} is not the name of a namespace: use up to 64 of a-z, 0-9 and -")]
    Namespace(String),
    /// A FastPay committee is not valid.
    #[error("committee {number}: {error}")]
    Committee {
        /// Its number.
        number: CommitteeNumber,
        /// Why not.
        error: String,
    },
}
