//! Runs a member: opens its folder, starts the engine and the services, and ends when one of them does.

use std::io;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use fastpay_ledger_client::api::proto::StatusRequest;
use fastpay_ledger_client::api::proto::ledger_client::LedgerClient;
use fastpay_ledger_client::api::proto::ledger_server::LedgerServer;
use fastpay_ledger_client::api::{CALL_TIMEOUT, MESSAGE_BYTES_MAX, channel, verify_status};
use fastpay_ledger_client::{Addresses, Network, NetworkError};
use fastpay_ledger_statement::{ClusterId, GenesisError, Layout, MemberKey, MemberKeys, Members};
use fastpay_program::files;
use fastpay_program::keystore::{KeystoreError, PassphraseSource, read_secret, write_secret};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tonic::transport::{Channel, Server};

use crate::chain::Chain;
use crate::command::Handle;
use crate::connections::{CONNECTIONS_MAX, CONNECTIONS_OF_ADDRESS_MAX, Incoming};
use crate::engine::{Cluster, Launch, MemberAddress, Polkas, launch};
use crate::fetch::fetch;
use crate::grpc::Service;
use crate::host::{End, Host, HostError, Parts, restore};
use crate::http::serve_store;
use crate::places::{Places, members_at};
use crate::relay::Relay;
use crate::resume::{Resume, resume};
use crate::store::Store;
use crate::votes::VoteFile;

/// So many calls of one connection are carried out at once.
const CALLS_PER_CONNECTION_MAX: usize = 512;
const PAUSE: Duration = Duration::from_millis(500);

/// Where the passphrase of a key comes from.
#[must_use]
pub fn passphrase() -> PassphraseSource {
    PassphraseSource { file: None, variable: "FASTPAY_LEDGER_PASSPHRASE" }
}

/// Why a member does not run.
#[derive(Debug, thiserror::Error)]
pub enum MemberError {
    /// The ledger's file.
    #[error(transparent)]
    Network(#[from] NetworkError),
    /// The genesis.
    #[error("the genesis: {0}")]
    Genesis(#[from] GenesisError),
    /// The key.
    #[error(transparent)]
    Key(#[from] KeystoreError),
    /// The key is of no member.
    #[error("the key {0} is of no member of this ledger; list it in the ledger's file, or take another key")]
    NoMember(MemberKey),
    /// The folder is in use or cannot be written.
    #[error("cannot use the folder {folder}: {error}")]
    Folder {
        /// The folder.
        folder: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// There is a member in the folder.
    #[error("the folder {0} is a member's already; take another one")]
    Exists(PathBuf),
    /// An address is taken.
    #[error("cannot listen at {address}: {error}")]
    Listen {
        /// The address.
        address: SocketAddr,
        /// Why not.
        error: io::Error,
    },
    /// The engine does not start.
    #[error("the engine does not start: {0}")]
    Engine(String),
    /// The member cannot go on.
    #[error(transparent)]
    Host(#[from] HostError),
    /// The engine ended.
    #[error("the engine has ended; its log says why")]
    EngineEnded,
}

/// The files in a member's folder beside its store.
struct Folder(PathBuf);

impl Folder {
    fn key(&self) -> PathBuf {
        self.0.join("member.key")
    }

    fn ledger(&self) -> PathBuf {
        self.0.join("ledger.toml")
    }

    fn votes(&self) -> PathBuf {
        self.0.join("votes")
    }

    fn log(&self) -> PathBuf {
        self.0.join("engine.log")
    }

    fn failed(&self) -> impl Fn(io::Error) -> MemberError {
        let folder = self.0.clone();
        move |error| MemberError::Folder { folder: folder.clone(), error }
    }
}

/// Makes the folder of a member that has never voted.
///
/// # Errors
/// See [`MemberError`].
pub fn init(folder: &Path, ledger: &Path, key: &Path) -> Result<(ClusterId, MemberKey), MemberError> {
    let network = Network::read(ledger)?;
    let secret = read_secret(key, &passphrase())?;
    let public = MemberKeys::from_seed(*secret).public();
    let cluster = network.cluster_of(&public).ok_or(MemberError::NoMember(public))?;
    network.layout(cluster)?;
    let folder = Folder(folder.to_path_buf());
    let failed = folder.failed();
    files::create_folder(&folder.0).map_err(&failed)?;
    // The key is written first and the file of votes last: a folder without one is not taken for a new member's.
    write_secret(&folder.key(), &secret, None).map_err(|error| match error {
        KeystoreError::Exists(_) => MemberError::Exists(folder.0.clone()),
        error => error.into(),
    })?;
    let content = std::fs::read(ledger).map_err(&failed)?;
    files::replace(&folder.ledger(), &content).map_err(&failed)?;
    VoteFile::create(&folder.votes()).map_err(&failed)?;
    Ok((cluster, public))
}

/// Runs the member in a folder until `stop` turns true, or it may vote and has only followed: then it is to be started
/// again.
///
/// # Errors
/// See [`MemberError`].
pub async fn run(folder: &Path, stop: watch::Receiver<bool>) -> Result<End, MemberError> {
    let folder = Folder(folder.to_path_buf());
    let failed = folder.failed();
    let network = Network::read(&folder.ledger())?;
    let secret = read_secret(&folder.key(), &passphrase())?;
    let keys = MemberKeys::from_seed(*secret);
    let public = keys.public();
    let us = network.cluster_of(&public).ok_or(MemberError::NoMember(public))?;
    let layout = network.layout(us)?;
    let no_member = || MemberError::NoMember(public);
    let own = network.addresses(&public).ok_or_else(no_member)?;
    let cluster = Cluster { deployment: layout.deployment(), cluster: us };

    let lock = std::fs::File::create(folder.0.join("lock")).map_err(&failed)?;
    lock.try_lock().map_err(|_| failed(io::Error::other("another process runs this member")))?;
    let (mut store, checkpoint) = Store::open(&folder.0).map_err(&failed)?;
    let chain = Chain::new(layout.clone()).ok_or_else(no_member)?;
    let chain = restore(chain, &mut store, checkpoint).map_err(&failed)?;
    let me = MemberAddress(public);
    let resumed = resume(&folder.votes(), &folder.log(), me, chain.height()).map_err(&failed)?;
    tracing::info!(height = chain.height(), cluster = us.0, "the member starts");

    let members = layout.members(us).ok_or_else(no_member)?.clone();
    let others: Vec<(MemberKey, Addresses)> = members
        .keys()
        .iter()
        .filter(|key| **key != public)
        .filter_map(|key| Some((*key, network.addresses(key)?)))
        .collect();
    let channels: Vec<(MemberKey, Channel)> =
        others.iter().map(|(key, addresses)| (*key, channel(addresses.api))).collect();
    let (known_until, mut until) = watch::channel(None);
    let renews_votes = matches!(resumed, Resume::FollowTwoPast(_));
    let votes = match resumed {
        Resume::Vote(votes) => Some(votes),
        Resume::FollowTo(height) => {
            tracing::warn!("the engine's log lacks votes of height {height}: nothing is signed until it is decided");
            known_until.send_replace(Some(height));
            None
        }
        Resume::FollowTwoPast(why) => {
            tracing::warn!("{why}: nothing is signed until two heights past what a quorum has decided");
            let channels = channels.iter().map(|(_, channel)| channel.clone()).collect();
            tokio::spawn(ask_heights(members, channels, known_until.clone()));
            None
        }
    };

    let (handle, commands, heights) = Handle::new(chain.height());
    let all = network.genesis().clusters.values().flatten().filter_map(|key| network.addresses(key));
    let at = members_at(all.flat_map(|addresses| [addresses.api.ip(), addresses.engine.ip()]));
    let service = Service::new(handle.clone(), layout.deployment(), keys.clone(), &at);
    let [grpc, http] = [(), ()].map(|()| Places::new(CONNECTIONS_MAX, CONNECTIONS_OF_ADDRESS_MAX, at.clone()));
    serve_grpc(own.api, service.clone(), grpc, stop.clone()).await?;
    let listener = listen(own.http).await?;
    tokio::spawn(serve_store(listener, service, layout.clone(), http, stop.clone()));
    fetch_all(&network, &layout, &handle);

    let network_seed = blake3::derive_key("fastpay ledger engine network identity v1", &*secret);
    let is_voter = votes.is_some();
    let log = folder.log();
    let peers = others.iter().map(|(_, addresses)| addresses.engine).collect();
    let polkas = Polkas::default();
    let start = Launch {
        cluster,
        keys: keys.clone(),
        network_seed,
        listen: own.engine,
        peers,
        log,
        votes,
        polkas: polkas.clone(),
    };
    let (engine, _running) = launch(start).await.map_err(|error| MemberError::Engine(format!("{error:#}")))?;
    let relay = Relay::start(channels);
    let network = engine.network;
    let parts = Parts { keys, cluster, votes: is_voter, chain, store, heights, relay, network, polkas };
    let end = Host::new(parts).run(engine.consensus, commands, stop, &mut until).await?;
    match end {
        End::EngineEnded => return Err(MemberError::EngineEnded),
        End::MayVote if renews_votes => VoteFile::create(&folder.votes()).map_err(&failed)?,
        End::MayVote | End::Stopped => {}
    }
    Ok(end)
}

async fn listen(address: SocketAddr) -> Result<TcpListener, MemberError> {
    TcpListener::bind(address).await.map_err(|error| MemberError::Listen { address, error })
}

async fn serve_grpc(
    address: SocketAddr,
    service: Service,
    room: Places,
    mut stop: watch::Receiver<bool>,
) -> Result<(), MemberError> {
    let incoming = Incoming::new(listen(address).await?, room);
    let service = LedgerServer::new(service).max_decoding_message_size(MESSAGE_BYTES_MAX);
    let server = Server::builder()
        .concurrency_limit_per_connection(CALLS_PER_CONNECTION_MAX)
        .timeout(CALL_TIMEOUT)
        .http2_keepalive_interval(Some(Duration::from_secs(30)))
        .add_service(service);
    tokio::spawn(async move {
        let stopped = async move {
            let _ = stop.wait_for(|stop| *stop).await;
        };
        if let Err(error) = server.serve_with_incoming_shutdown(incoming, stopped).await {
            tracing::error!("gRPC is no longer served: {error}");
        }
    });
    Ok(())
}

fn fetch_all(network: &Network, layout: &Layout, handle: &Handle) {
    let others = network.genesis().clusters.keys().filter(|cluster| **cluster != layout.us());
    for members in others.filter_map(|cluster| layout.members(*cluster)) {
        let addresses = members.keys().iter().filter_map(|key| network.addresses(key));
        let channels = addresses.map(|addresses| channel(addresses.api)).collect();
        tokio::spawn(fetch(handle.clone(), layout.us(), members.clone(), channels));
    }
}

/// Asks the other members until a quorum has said what it decided, and gives the height after which this one may vote.
async fn ask_heights(members: Members, channels: Vec<Channel>, until: watch::Sender<Option<u64>>) {
    let mut heights = std::collections::BTreeMap::new();
    while heights.len() < members.quorum() {
        for channel in &channels {
            let nonce: u64 = rand::random();
            let mut call = tonic::Request::new(StatusRequest { nonce });
            call.set_timeout(Duration::from_secs(2));
            let reply = LedgerClient::new(channel.clone()).status(call).await;
            heights.extend(reply.ok().and_then(|reply| verify_status(&reply.into_inner(), &members, nonce)));
        }
        tokio::time::sleep(PAUSE).await;
    }
    let highest = heights.values().max().copied().unwrap_or(0);
    until.send_replace(Some(highest.saturating_add(2)));
}
