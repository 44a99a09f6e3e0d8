//! The measured node: a real process without Ethereum, from a genesis. The other members of its committee exist only as
//! keys.

use std::io::Write;
use std::net::SocketAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use fastpay_client::{AuthorityClient, ShardClient};
use fastpay_core::{AuthorityKeys, Balance, Domain, GenesisBalance, SequenceNumber, ShardLayout};
use fastpay_e2e::{Failure, Layout, Network, Place, http_get, wait_for};
use fastpay_node::authority::config::{Config, Overrides};

use crate::meter::Usage;
use crate::traced::Spans;
use crate::workload::Accounts;

/// The time limit for credits between shards.
const CREDITS_PATIENCE: Duration = Duration::from_secs(10);
/// The number of accounts checked after a run.
const ACCOUNTS_CHECKED: usize = 2_000;

/// The node's shards and cores.
#[derive(Clone, Copy, Debug)]
pub struct Size {
    pub authorities: usize,
    pub shards: u16,
    /// The core to which it is bound; `None` lets it use all.
    pub core: Option<usize>,
}

/// A running node.
pub struct Server {
    network: Network,
    size: Size,
    process: u32,
}

/// The node's counters.
#[derive(Clone, Copy, Debug)]
pub struct Progress {
    pub journal_bytes: f64,
    /// The bytes that the system wrote for it, to any file.
    pub written_bytes: f64,
    pub batches: f64,
    pub requests_in_batches: f64,
    pub spans: Spans,
}

impl Server {
    /// Sets up a committee in `target/NAME` without starting it.
    pub fn prepare(name: &str, size: Size, balances: Vec<GenesisBalance>) -> Result<Self, Failure> {
        let layout = Layout { authorities: size.authorities, shards: size.shards, ..Layout::default() };
        let mut network = Network::prepare_standalone(Place::fixed(name)?, layout, balances)?;
        let authority = network.authority(0)?;
        // All load comes from one address, and exceeds an address's share of a disk.
        authority.set_limits(&format!("address_journal_bytes_per_day = {}", i64::MAX))?;
        if let Some(core) = size.core {
            authority.bind_to_core(core);
        }
        Ok(Self { network, size, process: 0 })
    }

    /// Sets up a committee in `target/NAME` and starts its first authority.
    pub async fn start(name: &str, size: Size, balances: Vec<GenesisBalance>) -> Result<Self, Failure> {
        let mut server = Self::prepare(name, size, balances)?;
        server.start_again()?;
        server.wait_ready().await?;
        Ok(server)
    }

    pub async fn wait_ready(&mut self) -> Result<(), Failure> {
        self.network.authority(0)?.wait_ready().await
    }

    /// Configures it to trace this share of payments to a collector, from its next start on.
    pub fn trace_to(&mut self, collector: SocketAddr, ratio: f64) -> Result<(), Failure> {
        let path = self.network.authority(0)?.config().clone();
        let appended = std::fs::OpenOptions::new()
            .append(true)
            .open(&path)
            .and_then(|mut file| write!(file, "\n[traces]\nendpoint = \"http://{collector}\"\nratio = {ratio:?}\n"));
        appended.map_err(|error| Failure::Io { path, error })
    }

    /// Its configuration.
    pub fn config(&mut self) -> Result<Config, Failure> {
        Config::read(self.network.authority(0)?.config(), Overrides::default()).map_err(Failure::wrong)
    }

    /// A folder for an archive, on the disk of its journals.
    pub fn archive(&mut self) -> Result<PathBuf, Failure> {
        Ok(self.network.authority(0)?.config().with_file_name("archive"))
    }

    /// The folder of its first shard.
    pub fn shard_folder(&mut self) -> Result<PathBuf, Failure> {
        Ok(self.network.authority(0)?.data().join("shard-000"))
    }

    /// Its metrics in the Prometheus text format.
    pub async fn metrics(&mut self) -> Result<String, Failure> {
        let http = self.network.authority(0)?.endpoints()?.http.clone().unwrap_or_default();
        let (_, text) = http_get(&http, "/metrics").await.map_err(Failure::wrong)?;
        Ok(text)
    }

    pub fn process(&self) -> u32 {
        self.process
    }

    pub fn domain(&self) -> Domain {
        *self.network.domain()
    }

    pub fn quorum(&self) -> usize {
        self.network.committee().quorum()
    }

    pub fn layout(&self) -> ShardLayout {
        ShardLayout::new(NonZeroU32::new(u32::from(self.size.shards)).unwrap_or(NonZeroU32::MIN))
    }

    /// The keys of a quorum without this authority.
    pub fn other_keys(&self) -> Result<Vec<AuthorityKeys>, Failure> {
        let others = self.network.authorities.iter().skip(1).take(self.quorum());
        others.map(|authority| authority.secret_keys()).collect()
    }

    /// The address of each shard.
    pub fn addresses(&mut self) -> Result<Vec<String>, Failure> {
        Ok(self.network.authority(0)?.endpoints()?.shards.clone())
    }

    /// Its counters and the system's.
    pub async fn progress(&mut self) -> Result<Progress, Failure> {
        let text = self.metrics().await?;
        // The sum over all shards.
        let sum = |name: &str| {
            let lines = text.lines().filter(|line| line.split(['{', ' ']).next() == Some(name));
            lines.filter_map(|line| line.rsplit(' ').next()?.parse::<f64>().ok()).fold(0.0, |sum, value| sum + value)
        };
        Ok(Progress {
            journal_bytes: sum("fastpay_journal_bytes"),
            written_bytes: Usage::of(self.process).written_bytes as f64,
            batches: sum("fastpay_batch_requests_count"),
            requests_in_batches: sum("fastpay_batch_requests_sum"),
            spans: Spans { exported: sum("fastpay_spans_exported_total"), dropped: sum("fastpay_spans_dropped_total") },
        })
    }

    /// Checks the node's state: no value was created or lost, and it has executed as many payments as were settled.
    pub async fn check(&mut self, accounts: &Accounts, sent: &[u64]) -> Result<(), Failure> {
        let client = self.client()?;
        let expected = accounts.balances().iter().fold(Balance::ZERO, |sum, balance| sum.credit(balance.amount));
        let shards = client.shards().to_vec();
        wait_for(CREDITS_PATIENCE, || {
            let shards = shards.clone();
            async move {
                let sum = total(&shards).await.map_err(|failure| failure.to_string())?;
                if sum == expected { Ok(()) } else { Err(format!("the accounts hold {sum} of {expected}")) }
            }
        })
        .await?;
        let step = accounts.ids().len().div_ceil(ACCOUNTS_CHECKED).max(1);
        for (id, sent) in accounts.ids().iter().zip(sent).step_by(step) {
            let state = client.shard_of(id).account(*id).await.map_err(Failure::wrong)?;
            if state.next_sequence != SequenceNumber(*sent) || state.pending.is_some() {
                return Err(Failure::Wrong(format!("{id} made {} payments, not {sent}", state.next_sequence)));
            }
        }
        Ok(())
    }

    pub fn client(&mut self) -> Result<AuthorityClient, Failure> {
        self.network.authority(0)?.client()
    }

    /// Starts it, also after [`Server::kill`], without waiting until it is ready.
    pub fn start_again(&mut self) -> Result<(), Failure> {
        let authority = self.network.authority(0)?;
        authority.start()?;
        self.process = authority.program()?.id();
        Ok(())
    }

    /// Kills it, as a power cut would.
    pub fn kill(&mut self) -> Result<(), Failure> {
        self.network.authority(0)?.kill();
        Ok(())
    }
}

async fn total(shards: &[ShardClient]) -> Result<Balance, Failure> {
    let mut sum = Balance::ZERO;
    for shard in shards {
        let status = shard.status().await.map_err(Failure::wrong)?;
        sum = status.totals.iter().fold(sum, |sum, (_, totals)| sum.plus(totals.accounts));
    }
    Ok(sum)
}
