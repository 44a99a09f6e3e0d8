//! Reads the status of a running authority, through its own ports.

use std::fmt;

use fastpay_client::ClientError;
use fastpay_rpc::{Joining, ShardStatus};
use serde::Serialize;

use super::own_node;
use crate::authority::certification::{ArchiveError, Extent};
use crate::authority::config::{Config, ConfigError};
use crate::authority::pruning::{PruningReport, read_report};

/// The status of each shard.
#[derive(Clone, Debug, Serialize)]
pub struct Report {
    shards: Vec<ShardReport>,
    /// Its place in the current committee.
    #[serde(flatten)]
    place: Option<Place>,
    /// How the node ended its journals, if it did or tried to.
    #[serde(skip_serializing_if = "Option::is_none")]
    pruning: Option<PruningReport>,
    /// Its archive, as the folder shows it.
    #[serde(skip_serializing_if = "Option::is_none")]
    archive: Option<Extent>,
}

/// An authority's place in the current committee.
#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct Place {
    /// Whether it votes for every order of the epoch.
    votes: bool,
    /// Whether the committee lists its newest keys.
    member: bool,
    /// What it waits for, if it joins.
    joining: Option<Joining>,
}

impl Place {
    fn of(ShardStatus { authority, committee, votes, joining, .. }: &ShardStatus) -> Self {
        let member = committee.iter().any(|member| member.name == *authority);
        Self { votes: *votes, member, joining: joining.clone() }
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self { votes: true, .. } => writeln!(f, "votes in this epoch"),
            Self { joining: Some(joining), .. } => {
                let Joining { epoch, reason, .. } = joining;
                writeln!(f, "joins epoch {epoch} (`fastpay-node join` says what to do): {reason}")
            }
            Self { member: false, .. } => writeln!(
                f,
                "no member of this epoch: run on until `fastpay-node leave` says that the node may be stopped"
            ),
            Self { member: true, .. } => Ok(()),
        }
    }
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ShardReport {
    shard: u32,
    address: String,
    authority: String,
    epoch: u64,
    version: String,
    /// The index up to which all deposits are applied.
    synchronized: u64,
    redemptions: u64,
    credits_in_flight: u64,
    /// Whether the data folder is marked as an older copy.
    restored: bool,
    totals: Vec<TotalReport>,
}

#[derive(Clone, Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct TotalReport {
    asset: String,
    /// The sum of all balances, in the asset's smallest unit.
    accounts: String,
    redeemed: String,
}

/// Why the status cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum StatusError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The archive's folder cannot be read.
    #[error(transparent)]
    Archive(#[from] ArchiveError),
    /// A shard does not answer.
    #[error("shard {shard} at {address}: {error}; check that the node runs")]
    Shard {
        /// The shard.
        shard: usize,
        /// The address.
        address: String,
        /// The error.
        error: ClientError,
    },
}

/// Reads the status of every shard.
///
/// # Errors
/// If a shard does not answer.
pub async fn ask(config: &Config) -> Result<Report, StatusError> {
    let (mut shards, mut place) = (Vec::new(), None);
    for (shard, address) in config.shard_addresses()?.into_iter().enumerate() {
        let failed = |(address, error)| StatusError::Shard { shard, address, error };
        let (client, address) = own_node::client(config, address).map_err(failed)?;
        let status = client.status().await.map_err(|error| failed((address.clone(), error)))?;
        place = place.or(Some(Place::of(&status)));
        let totals = status.totals.iter().map(|(asset, totals)| TotalReport {
            asset: asset.to_string(),
            accounts: totals.accounts.to_string(),
            redeemed: totals.redeemed.to_string(),
        });
        shards.push(ShardReport {
            shard: status.shard.0,
            authority: status.authority.to_string(),
            epoch: status.epoch.0,
            version: status.version,
            synchronized: status.synchronized.0,
            redemptions: status.redemptions,
            credits_in_flight: status.credits_in_flight,
            restored: status.restored,
            totals: totals.collect(),
            address,
        });
    }
    let archive = config.archive.as_ref().map(Extent::of_folder).transpose()?;
    Ok(Report { shards, place, archive, pruning: read_report(&config.data) })
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(first) = self.shards.first() {
            writeln!(f, "authority {} (version {}, epoch {})", first.authority, first.version, first.epoch)?;
            if first.restored {
                writeln!(
                    f,
                    "restored from an older copy: votes only for numbers that it cannot have voted for before"
                )?;
            }
        }
        if let Some(place) = &self.place {
            write!(f, "{place}")?;
        }
        if let Some(pruning) = &self.pruning {
            let PruningReport { checkpoint, at_ms, pause_ms, failure, .. } = pruning;
            if *checkpoint > 0 {
                writeln!(
                    f,
                    "ended its journals at checkpoint {checkpoint}, at {} (seconds since 1970)",
                    at_ms / 1_000
                )?;
            }
            if *pause_ms > 0 {
                writeln!(f, "was away for that for {pause_ms} ms the last time")?;
            }
            if let Some(failure) = failure {
                writeln!(
                    f,
                    "failed to end its journals at checkpoint {} ({} times), and tries again at {}: {}",
                    failure.checkpoint,
                    failure.count,
                    failure.retry_at_ms / 1_000,
                    failure.error
                )?;
            }
        }
        for shard in &self.shards {
            writeln!(
                f,
                "shard {} at {}: deposits up to {}, {} redemptions, {} credits in flight",
                shard.shard, shard.address, shard.synchronized, shard.redemptions, shard.credits_in_flight
            )?;
            for total in &shard.totals {
                writeln!(f, "  asset {}: {} held, {} redeemed", total.asset, total.accounts, total.redeemed)?;
            }
        }
        if let Some(archive) = &self.archive {
            writeln!(f, "archive: {archive}")?;
        }
        Ok(())
    }
}
