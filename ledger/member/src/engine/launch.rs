//! Starts the engine.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytesize::ByteSize;
use fastpay_ledger_statement::MemberKeys;
use malachite::app::config::{ConsensusConfig, NodeConfig, P2pConfig, PubSubProtocol, ValuePayload, ValueSyncConfig};
use malachite::app::net::Multiaddr;
use malachite::app::types::Keypair;
use malachite::app::types::codec::Codec;
use malachite::{
    Channels, ConsensusContext, EngineBuilder, EngineHandle, NetworkContext, NetworkIdentity, RequestContext,
    SyncContext, WalContext,
};

use super::codec::LedgerCodec;
use super::context::{Cluster, MemberAddress};
use super::polkas::Polkas;
use super::signer::{EngineSigner, EngineVerifier, prove_identity};
use crate::votes::VoteFile;

/// One that was lost may not be noticed while the next ones are made.
const CONNECTIONS_OF_MEMBER_MAX: usize = 8;

/// What the engine needs to start.
pub struct Launch {
    /// The cluster.
    pub cluster: Cluster,
    /// This member's keys.
    pub keys: MemberKeys,
    /// The seed of its identity on the network.
    pub network_seed: [u8; 32],
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where the other members do.
    pub peers: Vec<SocketAddr>,
    /// The engine's log.
    pub log: PathBuf,
    /// The file of votes; `None` where the member only follows.
    pub votes: Option<VoteFile>,
    /// Where votes that hold are remembered.
    pub polkas: Polkas,
}

#[derive(Clone)]
struct Config {
    moniker: String,
    consensus: ConsensusConfig,
    sync: ValueSyncConfig,
}

impl NodeConfig for Config {
    fn moniker(&self) -> &str {
        &self.moniker
    }

    fn consensus(&self) -> &ConsensusConfig {
        &self.consensus
    }

    fn consensus_mut(&mut self) -> &mut ConsensusConfig {
        &mut self.consensus
    }

    fn value_sync(&self) -> &ValueSyncConfig {
        &self.sync
    }

    fn value_sync_mut(&mut self) -> &mut ValueSyncConfig {
        &mut self.sync
    }
}

fn address(of: SocketAddr) -> eyre::Result<Multiaddr> {
    let kind = if of.is_ipv4() { "ip4" } else { "ip6" };
    Ok(format!("/{kind}/{}/tcp/{}", of.ip(), of.port()).parse()?)
}

/// Starts the engine. Without a file of votes it does not vote: it follows what the others decide.
///
/// # Errors
/// The engine's: a port that is taken, a log that is locked.
pub async fn launch(launch: Launch) -> eyre::Result<(Channels<Cluster>, EngineHandle)> {
    let Launch { cluster, keys, network_seed, listen, peers, log, votes, polkas } = launch;
    let me = MemberAddress(keys.public());
    let votes = votes.map(|votes| Arc::new(Mutex::new(votes)));
    let at = |address: IpAddr| peers.iter().filter(|peer| peer.ip() == address).count();
    let members_per_address = peers.iter().map(|peer| at(peer.ip())).max().unwrap_or(1);
    let mut p2p = P2pConfig { listen_addr: address(listen)?, ..P2pConfig::default() };
    p2p.persistent_peers = peers.into_iter().map(address).collect::<eyre::Result<_>>()?;
    // Every member is connected to every other, so each message is sent once to each.
    p2p.protocol = PubSubProtocol::Broadcast;
    p2p.pubsub_max_size = ByteSize::mib(8);
    p2p.rpc_max_size = ByteSize::mib(32);
    // Members may share an address.
    p2p.discovery.max_connections_per_ip = members_per_address.saturating_mul(CONNECTIONS_OF_MEMBER_MAX);
    let consensus = ConsensusConfig {
        enabled: votes.is_some(),
        p2p,
        value_payload: ValuePayload::ProposalAndParts,
        ..ConsensusConfig::default()
    };
    let sync = ValueSyncConfig { status_update_interval: Duration::from_secs(1), ..ValueSyncConfig::default() };
    let config = Config { moniker: me.to_string(), consensus, sync };

    let pair = Keypair::ed25519_from_bytes(network_seed)?;
    let proof = LedgerCodec::default().encode(&prove_identity(&keys, pair.public().to_peer_id().to_bytes()))?;
    let identity = NetworkIdentity::new_validator(config.moniker.clone(), pair, me.to_string(), proof);
    let verifier = Box::new(EngineVerifier::new(cluster, polkas.clone()));
    let (codec, context) = match votes {
        Some(votes) => {
            let signer = Box::new(EngineSigner::new(cluster, keys, votes.clone(), polkas));
            (LedgerCodec::recording(me, votes), ConsensusContext::new_validator(me, verifier, signer))
        }
        None => (LedgerCodec::default(), ConsensusContext::new_full_node(me, verifier)),
    };
    EngineBuilder::new(cluster, config)
        .with_default_wal(WalContext::new(log, LedgerCodec::default()))
        .with_default_network(NetworkContext::new(identity, codec.clone()))
        .with_default_consensus(context)
        .with_default_sync(SyncContext::new(codec))
        .with_default_request(RequestContext::new(16))
        .build()
        .await
}
