//! `config check`: makes all checks of `run` before it opens ports, without serving.
//!
//! An error prevents a start; a warning is for the operator's attention. All checks run, except those that depend on a
//! failed one.

use std::fmt;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use fastpay_client::Endpoints;
use fastpay_core::{AuthorityKeys, Recovery};
use fastpay_ethereum::utc;
use fastpay_program::keystore::PassphraseSource;
use serde::Serialize;
use tokio::net::TcpStream;

use super::stop;
use crate::authority::certification::{ArchiveError, Extent, StoreError};
use crate::authority::config::{Config, Overrides, TlsFiles};
use crate::authority::deployment::{self, Deployment, folder_identity};
use crate::authority::keys;
use crate::authority::metrics::now_seconds;
use crate::authority::rollback::{Age, HighWaterMark, Memory, age, marked};
use crate::authority::rotation::remembered;
use crate::authority::storage::{DataFolder, StorageError};
use crate::authority::tls::{Tls, TlsError};
use crate::authority::voter_status::{Remembered, VoterStatus, all_join_in};

/// The maximum wait for the deployment to be final; `run` waits without a bound.
const DEPLOYMENT_PATIENCE: Duration = Duration::from_secs(20);

/// A certificate that expires within two weeks should have been renewed, as in `deploy/alerts.yml`.
const RENEWAL_SECONDS: i64 = 14 * 24 * 3_600;

/// The maximum wait for a collector, which should be near.
const COLLECTOR_PATIENCE: Duration = Duration::from_secs(3);

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Level {
    /// As it should be.
    Ok,
    /// The node starts; the operator should act.
    Warning,
    /// The node does not start.
    Error,
}

/// The result of one check.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Finding {
    /// The name of the check: `config`, `keys`, `committee`, `membership`, `data`, `memory`, `endpoints`, `tls`,
    /// `ports`, `archive`, `traces`.
    pub check: &'static str,
    /// The severity.
    pub level: Level,
    /// The result in words.
    pub message: String,
}

/// All findings, in the order of a start.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Findings(Vec<Finding>);

impl Findings {
    /// An iterator over the findings.
    pub fn iter(&self) -> impl Iterator<Item = &Finding> {
        self.0.iter()
    }

    /// The number of errors.
    #[must_use]
    pub fn errors(&self) -> usize {
        self.iter().filter(|finding| finding.level == Level::Error).count()
    }

    fn note(&mut self, check: &'static str, level: Level, message: impl ToString) {
        self.0.push(Finding { check, level, message: message.to_string() });
    }

    /// Returns the value, or adds an error finding.
    fn take<T, E: ToString>(&mut self, check: &'static str, found: Result<(T, String), E>) -> Option<T> {
        match found {
            Ok((found, message)) => {
                self.note(check, Level::Ok, message);
                Some(found)
            }
            Err(error) => {
                self.note(check, Level::Error, error);
                None
            }
        }
    }
}

impl fmt::Display for Findings {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Finding { check, level, message } in self.iter() {
            let level = match level {
                Level::Ok => "ok",
                Level::Warning => "warning",
                Level::Error => "ERROR",
            };
            writeln!(f, "{level:<8} {check:<10} {message}")?;
        }
        Ok(())
    }
}

/// Runs all checks. Calls `told` before a check that takes long.
pub async fn check(
    path: &Path,
    overrides: Overrides,
    passphrase: &PassphraseSource,
    told: impl Fn(String),
) -> Findings {
    let mut findings = Findings::default();
    let read = Config::read(path, overrides).map(|config| (config, format!("{} can be read", path.display())));
    let Some(config) = findings.take("config", read) else { return findings };
    if stop::is_told(&config.data) {
        let told =
            "left.json: this authority has left, so its node ends at each start; if it comes back, remove the file";
        findings.note("data", Level::Error, told);
    }
    let keys = keys::read_all(&config.keys, passphrase).map(|keys| {
        let names: Vec<_> = keys.iter().map(|pair| pair.public().name.to_string()).collect();
        (keys, format!("of authority {}", names.join(" and ")))
    });
    let keys = findings.take("keys", keys);
    if config.ethereum().is_some() {
        let seconds = DEPLOYMENT_PATIENCE.as_secs();
        told(format!("asking the Ethereum nodes for the contract's committees, at most {seconds} s …"));
    }
    let deployment = committee(&config, &mut findings).await;
    if let (Some(keys), Some(deployment)) = (keys, deployment) {
        memory(&config, keys, &deployment, &mut findings);
    }
    endpoints(&config, &mut findings);
    if let Some(files) = &config.tls {
        certificate(files, &mut findings);
    }
    ports(&config, &mut findings);
    archive(&config, &mut findings).await;
    traces(&config, &mut findings).await;
    findings
}

/// Checks the archive's folder, and asks its store. A store that is away stops no node.
async fn archive(config: &Config, findings: &mut Findings) {
    let Some(settings) = &config.archive else { return };
    match Extent::of(settings).await {
        Ok(extent) => findings.note("archive", Level::Ok, extent),
        Err(ArchiveError::Store(error @ StoreError::Access { .. })) => {
            findings.note("archive", Level::Warning, error);
        }
        Err(error) => findings.note("archive", Level::Error, error),
    }
}

async fn committee(config: &Config, findings: &mut Findings) -> Option<Deployment> {
    match tokio::time::timeout(DEPLOYMENT_PATIENCE, deployment::load(config)).await {
        Ok(found) => findings.take(
            "committee",
            found.map(|deployment| {
                let domain = deployment.domain();
                (deployment, format!("of contract {} on chain {}", domain.contract(), domain.chain_id()))
            }),
        ),
        Err(_) => {
            findings.note(
                "committee",
                Level::Warning,
                "the contract's deployment is not final yet; a start waits for it",
            );
            None
        }
    }
}

/// Checks the authority's membership, its data folder, and whether that folder is complete.
fn memory(config: &Config, keys: Vec<AuthorityKeys>, deployment: &Deployment, findings: &mut Findings) {
    let keys: Vec<_> = keys.into_iter().map(Arc::new).collect();
    let names: Vec<_> = keys.iter().map(|keys| keys.public().name).collect();
    let voter_status = |remembered: &Remembered| {
        let committees = deployment.committees().map_err(|error| error.to_string())?;
        VoterStatus::of(committees, keys.clone(), remembered, config.observer).map_err(|error| error.to_string())
    };
    // As at a start, check the keys' membership before the folder: an error about keys is more helpful.
    if let Err(error) = voter_status(&names.as_slice().into()) {
        findings.note("membership", Level::Error, error);
    }
    let identity = folder_identity(&names, config.shards, &deployment.domain());
    let folder = match DataFolder::open(&config.data, &identity) {
        Err(StorageError::InUse { .. }) => {
            findings.note(
                "data",
                Level::Warning,
                "a node runs on the data folder: that, and its ports, were not looked at",
            );
            None
        }
        found => findings.take("data", found.map(|folder| (folder, format!("{} can be used", config.data.display())))),
    };
    let Some(folder) = folder else { return };
    // The folder knows the names that it has voted under, even if those keys are gone.
    let voter_status =
        remembered(&folder).map_err(|error| error.to_string()).and_then(|remembered| voter_status(&remembered));
    if let Ok(voter_status) = voter_status {
        match (voter_status.voter(), voter_status.unrecovered()) {
            (_, Some(Recovery { epoch, adopted })) => {
                let next = match adopted {
                    None => "until the contract has adopted a checkpoint".to_owned(),
                    Some(adopted) => format!("until it is rebased onto the checkpoint {adopted}"),
                };
                let message =
                    format!("epoch {epoch} begins from a rebuilt checkpoint: votes and confirms nothing {next}");
                findings.note("membership", Level::Warning, message);
            }
            (Some(_), None) => {
                findings.note("membership", Level::Ok, format!("votes in epoch {}", voter_status.epoch()));
            }
            (None, None) if voter_status.is_outsider() => {
                let message =
                    "no committee lists these keys yet: follows the contract as an observer, and executes nothing";
                findings.note("membership", Level::Ok, message);
            }
            (None, None)
                if voter_status.joins().is_some()
                    && all_join_in(voter_status.committees(), voter_status.committees().current()).is_some() =>
            {
                let message = format!(
                    "the committee became so small in epoch {} that all its members join: payments wait until a quorum has, \
                     with what a quorum of the epoch before states (docs/OPERATIONS.md, Upgrading)",
                    voter_status.epoch()
                );
                findings.note("membership", Level::Warning, message);
            }
            (None, None) if voter_status.joins().is_some() => {
                let message = format!(
                    "votes in epoch {} once it has joined it: `/ready` of the running node says what it waits for",
                    voter_status.epoch()
                );
                findings.note("membership", Level::Ok, message);
            }
            (None, None) => {
                let message = format!(
                    "does not vote in epoch {}; it confirms, and answers what it is asked",
                    voter_status.epoch()
                );
                findings.note("membership", Level::Warning, message);
            }
        }
    }
    high_water_mark(config, &folder, findings);
}

/// Checks the folder against the high-water mark.
fn high_water_mark(config: &Config, folder: &DataFolder, findings: &mut Findings) {
    let restored = |why: &dyn fmt::Display| {
        format!(
            "treated as an older copy ({why}): it votes only for numbers above those that the others know; see \
             docs/OPERATIONS.md"
        )
    };
    // Without the journals' ends, which only a recovery determines.
    let stale_reason = HighWaterMark::of(&config.data, config.high_water_mark()).map(|mark| mark.stale_reason(&[]));
    let new = match age(folder) {
        Ok(Age::New) => Some("the folder is new: its first start checks whether the deployment was in use before"),
        Ok(Age::First) => Some("the folder is the first of these keys: there are no earlier votes"),
        _ => None,
    };
    if let Some(message) = new {
        findings.note("memory", Level::Ok, message);
        return;
    }
    match stale_reason.and_then(|stale_reason| Ok((stale_reason, marked(folder.path())?))) {
        Ok((None, Memory::Whole)) => {
            findings.note("memory", Level::Ok, "the high-water mark is this folder's, and it is not marked")
        }
        Ok((Some(why), _)) => findings.note("memory", Level::Warning, restored(&why)),
        Ok((None, Memory::Older { why, .. })) => findings.note("memory", Level::Warning, restored(&why)),
        Err(error) => findings.note("memory", Level::Error, error),
    }
}

fn endpoints(config: &Config, findings: &mut Findings) {
    match &config.endpoints {
        None => findings.note(
            "endpoints",
            Level::Warning,
            "none are configured: if the data folder is an older copy, this authority does not vote",
        ),
        Some(path) => {
            let read = Endpoints::read(path);
            let read = read.map(|endpoints| ((), format!("of {} authorities", endpoints.authorities.len())));
            findings.take("endpoints", read);
        }
    }
}

/// Checks TLS files as the HTTP port reads them, whose errors are more precise than those of the shards' ports. A
/// certificate that has expired or soon will does not prevent a start.
fn certificate(files: &TlsFiles, findings: &mut Findings) {
    let ends_at = || -> Result<i64, TlsError> {
        let tls = Tls::read(&TlsFiles { http: true, ..files.clone() })?;
        tls.http()?;
        tls.ends_at()
    };
    match ends_at() {
        Ok(ends_at) => {
            let message = format!(
                "certificate and key match; clients accept them until {}",
                utc(ends_at.try_into().unwrap_or(0))
            );
            let ends_soon = ends_at < now_seconds().saturating_add(RENEWAL_SECONDS);
            findings.note("tls", if ends_soon { Level::Warning } else { Level::Ok }, message);
        }
        Err(error) => findings.note("tls", Level::Error, error),
    }
}

/// Checks the collector of traces. An unreachable collector does not prevent a start.
async fn traces(config: &Config, findings: &mut Findings) {
    let Some(settings) = &config.traces else { return };
    let url = settings.endpoint.url();
    let addresses = url.socket_addrs(|| None);
    let connected = async { TcpStream::connect(addresses?.as_slice()).await };
    let connected = tokio::time::timeout(COLLECTOR_PATIENCE, connected).await;
    match connected.unwrap_or_else(|_| Err(std::io::ErrorKind::TimedOut.into())) {
        Ok(_) => {
            let ratio = settings.ratio.get();
            findings.note(
                "traces",
                Level::Ok,
                format!("{url} accepts connections; the share of traced payments is {ratio}"),
            );
        }
        Err(error) => {
            let message = format!("{url} accepts no connections ({error}): traces would be dropped");
            findings.note("traces", Level::Warning, message);
        }
    }
}

fn ports(config: &Config, findings: &mut Findings) {
    // A node that runs on the folder occupies the ports.
    if matches!(DataFolder::hold(&config.data), Err(StorageError::InUse { .. })) {
        return;
    }
    let shards = config.shard_addresses().unwrap_or_default();
    for address in shards.into_iter().chain([config.http]) {
        let bound = TcpListener::bind(address);
        let free = bound.map(|_| ((), format!("{address} is free")));
        findings.take("ports", free.map_err(|error| format!("cannot listen on {address}: {error}")));
    }
}
