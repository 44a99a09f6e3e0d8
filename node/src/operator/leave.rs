//! Tells the operator of a member that has left when its node may be stopped: once a quorum of one later epoch has
//! executed all that this authority executed. Stops it on request, once also every member has joined that epoch: until
//! then one may need this authority's Closing.
//!
//! ```text
//!  own node's logs ─► accounts, each with its next number here ─► every member of the current committee, account by
//!  account, while it is in that epoch ─► how many have all of it ─► a quorum: the node may be stopped
//! ```
//! Below the checkpoint from which the journals begin, a quorum has executed everything already. A member that joins, or
//! that was restored, is no witness. What a member kept of a frozen number and has not executed does not count. Members'
//! answers are not signed: they are as trustworthy as the connection.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;
use std::{fmt, io};

use fastpay_client::{AuthorityClient, ClientError, ClientOptions, Endpoints, Network, NetworkError, ShardClient};
use fastpay_core::{AccountId, AuthorityName, Epoch, JournalPosition, SequenceNumber};
use serde::{Deserialize, Serialize};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep_until};

use super::{own_node, stop};
use crate::authority::config::{Config, ConfigError};
use crate::authority::deployment::domain_of;
use crate::authority::funding::LedgerError;
use crate::authority::known_committees;
use crate::authority::storage::StorageError;

/// The pause between rounds.
const PAUSE: Duration = Duration::from_secs(5);
/// So many accounts are asked about at a time at a member, which serves others, too.
const ACCOUNTS_AT_A_TIME: usize = 16;
const OPTIONS: ClientOptions =
    ClientOptions { connect_timeout: Duration::from_secs(5), request_timeout: Duration::from_secs(10) };

/// Accounts, each with the number below which this authority has executed all.
type Heads = BTreeMap<AccountId, SequenceNumber>;

/// Whether the node may be stopped.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct LeaveReport {
    /// The current epoch.
    pub epoch: Epoch,
    /// Whether as many members as are needed have everything.
    pub may_stop: bool,
    /// A quorum.
    pub needed: usize,
    /// The members that have executed everything.
    pub complete: Vec<AuthorityName>,
    /// The others.
    pub incomplete: Vec<Incomplete>,
    /// The accounts of which this authority has executed orders since its journals begin.
    pub accounts: usize,
    /// Whether the node was stopped.
    #[serde(default)]
    pub stopped: bool,
}

impl LeaveReport {
    /// Whether nobody needs the node any more: also every member was asked, and has joined the epoch.
    #[must_use]
    pub fn is_over(&self) -> bool {
        self.may_stop && self.incomplete.iter().all(|of| of.accounts.is_some())
    }
}

/// A member that has not executed everything, as far as can be seen.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Incomplete {
    /// The member.
    pub authority: AuthorityName,
    /// How many accounts it lacks certificates of; none if it cannot be asked.
    pub accounts: Option<usize>,
    /// Why it does not count.
    pub reason: String,
}

/// Why it cannot be told whether the node may be stopped.
#[derive(Debug, thiserror::Error)]
pub enum LeaveError {
    /// The configuration is wrong.
    #[error(transparent)]
    Config(#[from] ConfigError),
    /// The endpoints cannot be used.
    #[error(transparent)]
    Endpoints(#[from] NetworkError),
    /// There is no Primary that could change the committee.
    #[error("the configuration has no [primary]. Without a Primary nobody leaves")]
    NoPrimary,
    /// The ledger's file cannot be used.
    #[error(transparent)]
    Ledger(#[from] LedgerError),
    /// Nobody can be asked.
    #[error("configure `endpoints`, the file that lists the other authorities: they are asked what they have executed")]
    NoEndpoints,
    /// The node has not stored which committees there are.
    #[error("the data folder does not say which committees there are: start the node, and wait until it is ready")]
    NoCommittees,
    /// The own node cannot be asked.
    #[error("this authority's node at {address} cannot be asked: {error}. It must run until this command succeeds")]
    Node {
        /// Its address.
        address: String,
        /// The error.
        error: ClientError,
    },
    /// The authority is a member.
    #[error("authority {0} is a member of epoch {1}: a committee without it must be installed first")]
    Member(AuthorityName, Epoch),
    /// The node cannot be told to stop.
    #[error(
        "cannot use {path}, which tells the node to stop: {error}. Correct its permissions, or remove it, and repeat the \
         command"
    )]
    Mark {
        /// The file.
        path: PathBuf,
        /// The error of the operating system.
        error: io::Error,
    },
    /// Whether the node has stopped cannot be seen.
    #[error(transparent)]
    Storage(#[from] StorageError),
}

/// Asks the members of the current committee until a quorum has everything, or until `wait` is over. Meanwhile it asks
/// again if the own node does not answer. Tells how far they are each time that it changes.
///
/// # Errors
/// See [`LeaveError`].
pub async fn leave(config: &Config, wait: Duration, tell: &mut dyn FnMut(String)) -> Result<LeaveReport, LeaveError> {
    watch(config, wait, |report| report.may_stop, tell).await
}

/// The same until nobody needs the node any more ([`LeaveReport::is_over`]). Then stops it for good, and returns once it
/// has ended. A node that was told so before is only waited for.
///
/// # Errors
/// See [`LeaveError`].
pub async fn leave_and_stop(
    config: &Config,
    wait: Duration,
    tell: &mut dyn FnMut(String),
) -> Result<LeaveReport, LeaveError> {
    let report = match stop::told(&config.data)? {
        Some(report) => report,
        None => {
            let report = watch(config, wait, LeaveReport::is_over, tell).await?;
            if !report.is_over() {
                return Ok(report);
            }
            stop::tell(&config.data, &report)?;
            report
        }
    };
    Ok(LeaveReport { stopped: stop::wait_for_end(&config.data).await?, ..report })
}

async fn watch(
    config: &Config,
    wait: Duration,
    is_enough: fn(&LeaveReport) -> bool,
    tell: &mut dyn FnMut(String),
) -> Result<LeaveReport, LeaveError> {
    let domain = domain_of(config.primary.as_ref().ok_or(LeaveError::NoPrimary)?)?;
    let endpoints = Endpoints::read(config.endpoints.as_ref().ok_or(LeaveError::NoEndpoints)?);
    let endpoints = endpoints.map_err(NetworkError::from)?;
    let mut own = Vec::new();
    for address in config.shard_addresses()? {
        own.push(own_node::client(config, address).map_err(|(address, error)| LeaveError::Node { address, error })?);
    }
    let known = || known_committees::read(&config.data).ok_or(LeaveError::NoCommittees);
    let connect = |committees| Network::with_options(domain, committees, &endpoints, OPTIONS);
    let (end, mut leaving) = (Instant::now() + wait, Leaving::new(own));
    let (mut network, mut told) = (connect(known()?)?, None);
    loop {
        let committees = known()?;
        if committees != network.committees() {
            // A line of the file may be of a member that is new.
            network = connect(committees)?;
        }
        let looked = leaving.look(&network).await;
        let is_over = Instant::now() >= end;
        let text = match &looked {
            Ok(report) if !is_enough(report) && !is_over => report.to_string(),
            // It may be about to start, or be away to end its journals.
            Err(failure @ LeaveError::Node { error, .. }) if error.is_retryable() && !is_over => failure.to_string(),
            _ => return looked,
        };
        if told.as_ref() != Some(&text) {
            tell(text.clone());
            told = Some(text);
        }
        sleep_until(end.min(Instant::now() + PAUSE)).await;
    }
}

/// What is known of the own node and the members so far.
pub struct Leaving {
    own: Vec<(ShardClient, String)>,
    /// How far the log of each own shard is read.
    cursors: Vec<JournalPosition>,
    executed: Heads,
    /// What each member of the epoch still lacks.
    lacking: (Epoch, BTreeMap<AuthorityName, Heads>),
}

impl Leaving {
    /// Nothing is known yet of the node with these shards.
    #[must_use]
    pub fn new(own: Vec<(ShardClient, String)>) -> Self {
        let cursors = vec![JournalPosition::default(); own.len()];
        Self { own, cursors, executed: Heads::new(), lacking: (Epoch(0), BTreeMap::new()) }
    }

    /// Reads what the own node has executed, and asks each member of the current committee of `network` for what it was
    /// not seen to have in this epoch.
    ///
    /// # Errors
    /// See [`LeaveError`].
    pub async fn look(&mut self, network: &Network) -> Result<LeaveReport, LeaveError> {
        let committee = network.committee();
        let epoch = committee.epoch();
        let (client, address) = self.own.first().expect("there is at least one shard");
        let node = |error| LeaveError::Node { address: address.clone(), error };
        let status = client.status().await.map_err(node)?;
        if committee.member(&status.authority).is_some() {
            return Err(LeaveError::Member(status.authority, epoch));
        }
        network.learn(client.endpoints(None).await.map_err(node)?);
        network.learn_names(Instant::now() + OPTIONS.request_timeout).await;
        self.read_own().await?;

        // What members had in an earlier epoch proves nothing: acknowledgements of two epochs do not add up.
        if self.lacking.0 != epoch {
            self.lacking = (epoch, BTreeMap::new());
        }
        let (authorities, mut asked) = (network.authorities(), JoinSet::new());
        for member in committee.members().iter().map(|member| member.name) {
            let lacking = self.lacking.1.entry(member).or_insert_with(|| self.executed.clone()).clone();
            let client = authorities.iter().find(|authority| authority.name() == member).cloned();
            asked.spawn(async move {
                let Some(client) = client else {
                    return (member, lacking, Some("no address of it is known".to_owned()));
                };
                let (left, failure) = ask(&client, epoch, lacking).await;
                (member, left, failure)
            });
        }
        let (mut complete, mut incomplete) = (Vec::new(), Vec::new());
        let all = asked.len();
        while let Some(answer) = asked.join_next().await {
            let Ok((member, left, failure)) = answer else { continue };
            let first = left.first_key_value().map(|(account, next)| {
                format!("it has not executed number {} of account {account}", next.0.saturating_sub(1))
            });
            let accounts = failure.is_none().then_some(left.len());
            match failure.or(first) {
                None => complete.push(member),
                Some(reason) => incomplete.push(Incomplete { authority: member, accounts, reason }),
            }
            self.lacking.1.insert(member, left);
        }
        complete.sort_unstable();
        incomplete.sort_by_key(|of| of.authority);
        let needed = committee.quorum();
        // A member whose answer is lost is none of both.
        let is_whole = complete.len().saturating_add(incomplete.len()) == all;
        let (may_stop, accounts) = (is_whole && complete.len() >= needed, self.executed.len());
        Ok(LeaveReport { epoch, may_stop, needed, complete, incomplete, accounts, stopped: false })
    }

    /// Reads the own node's logs to their ends. What is new there is missing at each member.
    async fn read_own(&mut self) -> Result<(), LeaveError> {
        for ((client, address), cursor) in self.own.iter().zip(&mut self.cursors) {
            loop {
                let page = client.confirmed(*cursor).await;
                let page = page.map_err(|error| LeaveError::Node { address: address.clone(), error })?;
                let Some(page) = page else {
                    if *cursor == JournalPosition::default() {
                        let error = ClientError::Malformed("it does not know the beginning of its own log".into());
                        return Err(LeaveError::Node { address: address.clone(), error });
                    }
                    // Its journals begin anew.
                    *cursor = JournalPosition::default();
                    continue;
                };
                for (account, sequence) in page.names {
                    let next = SequenceNumber(sequence.0.saturating_add(1));
                    for heads in self.lacking.1.values_mut().chain([&mut self.executed]) {
                        let head = heads.entry(account).or_default();
                        *head = next.max(*head);
                    }
                }
                if page.next == *cursor {
                    break;
                }
                *cursor = page.next;
            }
        }
        Ok(())
    }
}

/// Asks a member about accounts, while it is in this epoch. Returns those that it was not seen to have whole, and why it
/// does not count otherwise.
async fn ask(member: &AuthorityClient, epoch: Epoch, lacking: Heads) -> (Heads, Option<String>) {
    if let Err(reason) = check(member, epoch).await {
        return (lacking, Some(reason));
    }
    let (mut left, mut failure) = (lacking.clone(), None);
    let (turns, mut asked) = (Arc::new(Semaphore::new(ACCOUNTS_AT_A_TIME)), JoinSet::new());
    // Also if nothing is lacking: of any account it says that it has not joined the epoch.
    let mut accounts = lacking.into_iter().chain([(PROBE, SequenceNumber(0))]);
    while failure.is_none()
        && let Some((account, next)) = accounts.next()
        && let Ok(turn) = turns.clone().acquire_owned().await
    {
        let member = member.clone();
        asked.spawn(async move {
            let state = member.shard_of(&account).account(account).await;
            drop(turn);
            let state = state.map_err(|error| error.to_string())?;
            if state.catching_up {
                return Err(NOT_WHOLE.to_owned());
            }
            Ok((account, state.next_sequence >= next))
        });
        while let Some(Ok(answer)) = asked.try_join_next() {
            take(answer, &mut left, &mut failure);
        }
    }
    while let Some(answer) = asked.join_next().await {
        match answer {
            Ok(answer) => take(answer, &mut left, &mut failure),
            Err(error) => failure = Some(error.to_string()),
        }
    }
    // It executed what it has in this epoch only if it is still in it.
    let failure = failure.or(check(member, epoch).await.err());
    (left, failure)
}

/// An account that nobody has.
const PROBE: AccountId = AccountId([0; 32]);

/// What a member says that has not joined the epoch, or was restored from an older copy.
const NOT_WHOLE: &str = "it has not joined the epoch yet, or was restored from an older copy";

/// Takes an account from what is left once the member has executed it.
fn take(answer: Result<(AccountId, bool), String>, left: &mut Heads, failure: &mut Option<String>) {
    match answer {
        Ok((account, true)) => drop(left.remove(&account)),
        Ok((_, false)) => {}
        Err(reason) => *failure = Some(reason),
    }
}

/// Whether it is this member, in this epoch.
async fn check(member: &AuthorityClient, epoch: Epoch) -> Result<(), String> {
    let shard = member.shards().first().ok_or("no shard of it is known")?;
    let status = shard.status().await.map_err(|error| error.to_string())?;
    match status {
        status if status.authority != member.name() => Err(format!("{} answers in its place", status.authority)),
        status if status.epoch != epoch => Err(format!("it is in epoch {}", status.epoch)),
        status if status.restored => Err(NOT_WHOLE.to_owned()),
        _ => Ok(()),
    }
}

impl fmt::Display for LeaveReport {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { epoch, may_stop, needed, complete, incomplete, accounts, stopped } = self;
        let said = match (stopped, may_stop) {
            (true, _) => "the node has stopped for good",
            (false, true) => "the node may be stopped",
            (false, false) => "keep the node running",
        };
        let (have, all) = (complete.len(), complete.len().saturating_add(incomplete.len()));
        write!(
            f,
            "{said}: {have} of {all} members of epoch {epoch} have executed all that this authority executed ({accounts} \
             accounts), and {needed} are needed"
        )?;
        for Incomplete { authority, accounts, reason } in incomplete {
            let count = accounts.map(|count| format!(" lacks certificates of {count} accounts")).unwrap_or_default();
            write!(f, "\n  {authority}{count}: {reason}")?;
        }
        Ok(())
    }
}
