//! Collects votes of the current committee for many redemptions at once.
//!
//! ```text
//!  redemptions, ordered ─► ask every authority ─► quorum of valid signatures ─► Agreement
//!                        │ some lack a redemption: send them its certificate, ask them once more
//!                        │ still no quorum: ask for each redemption of an ended epoch by itself
//!                        │ leave out what prevents a quorum, ask all once more
//!                        └► none: the redemptions go by their certificates
//! ```
//! An authority may be away, lag, or lie: `fastpay_client::Ballot` checks and counts. An authority that answers what no
//! correct one does is left alone for a while. Authorities vote for what they executed under a number: if retired keys
//! certified another order, their votes look wrong. So a vote for redemptions of ended epochs is held against nobody
//! before a quorum has voted for each. Whatever the answers, there are at most four rounds.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use alloy::primitives::Bytes;
use fastpay_client::{AuthorityClient, Ballot, CommitteeClient, Network, NoCertificates, PeerFailure, QuorumOptions};
use fastpay_core::{AuthorityName, Committees, Domain, Epoch, Redemption};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::pending::{PendingRedemption, RedemptionId};

/// The maximum time to wait for all answers of one round.
const ROUND_PATIENCE: Duration = Duration::from_secs(5);
/// The maximum time to ask endpoints for their names.
const NAMES_PATIENCE: Duration = Duration::from_secs(1);
/// The maximum time to send certificates that authorities lack.
const BRING_PATIENCE: Duration = Duration::from_secs(10);
/// The maximum number of redemptions of ended epochs that are asked for by themselves at a time. The others wait.
const SINGLY_MAX: usize = 32;
/// The first pause of an authority that gave a wrong answer; it doubles each time.
const DISTRUST: Duration = Duration::from_secs(60);
const DISTRUST_MAX: Duration = Duration::from_secs(3_600);

/// Redemptions for which a quorum of one committee has voted together.
#[derive(Debug)]
pub(crate) struct Agreement {
    /// The redemptions, in the order of the vote.
    pub(crate) items: Vec<PendingRedemption>,
    pub(crate) epoch: Epoch,
    /// The votes, encoded for the contract.
    pub(crate) votes: Bytes,
}

/// The outcome of asking for votes.
#[derive(Debug, Default)]
pub(crate) struct Asked {
    pub(crate) agreement: Option<Agreement>,
    /// The redemptions that had to be left out.
    pub(crate) refused: Vec<PendingRedemption>,
    /// Those of ended epochs among them that f + 1 members do not know, so that an honest one does not.
    pub(crate) unknown: BTreeSet<RedemptionId>,
}

/// The authorities, as voters.
#[derive(Debug)]
pub(crate) struct Voters {
    /// Those of the endpoints file.
    listed: Vec<AuthorityClient>,
    /// A client of all authorities; `None` until a committee is known.
    client: Option<CommitteeClient>,
    /// The authorities that gave wrong answers: how often, and when to ask again.
    distrusted: HashMap<AuthorityName, (u32, Instant)>,
}

fn agreement(ballot: &Ballot, items: &[PendingRedemption]) -> Option<Agreement> {
    let (epoch, votes) = (ballot.committee().epoch(), Bytes::from(ballot.quorum()?));
    Some(Agreement { items: items.to_vec(), epoch, votes })
}

impl Voters {
    pub(crate) fn new(authorities: Vec<AuthorityClient>) -> Self {
        Self { listed: authorities, client: None, distrusted: HashMap::new() }
    }

    /// The authorities under these committees, of whom those that the endpoints file does not list may still have to be
    /// found.
    pub(crate) fn network(&mut self, domain: &Domain, committees: &Committees) -> Network {
        let new = || {
            let network = Network::of(*domain, committees.clone(), self.listed.clone());
            CommitteeClient::new(network, Arc::new(NoCertificates), QuorumOptions::default())
        };
        let network = self.client.get_or_insert_with(new).network().clone();
        network.adopt(committees.clone(), network.names());
        network
    }

    /// A client of the authorities under these committees; `None` if fewer than a quorum have an address.
    pub(crate) async fn client(&mut self, domain: &Domain, committees: &Committees) -> Option<CommitteeClient> {
        let network = self.network(domain, committees);
        if network.check_reach().is_err() {
            network.learn_names(Instant::now() + NAMES_PATIENCE).await;
        }
        network
            .check_reach()
            .inspect_err(|error| tracing::warn!(%error, "too few authorities to ask for votes"))
            .ok()?;
        self.client.clone()
    }

    /// Asks for votes for redemptions together.
    pub(crate) async fn agree(
        &mut self,
        domain: &Domain,
        committees: &Committees,
        mut items: Vec<PendingRedemption>,
    ) -> Asked {
        // The same order for all relayers, however the redemptions arrived.
        items.sort_by_key(PendingRedemption::id);
        let Some(client) = self.client(domain, committees).await else {
            return Asked { refused: items, ..Asked::default() };
        };
        let current = committees.current().epoch();
        let is_proven = !items.iter().any(|item| item.is_unproven(current));
        let ballot_on = |items: &[PendingRedemption]| {
            let redemptions: Vec<Redemption> = items.iter().map(|item| item.redemption.clone()).collect();
            Ballot::new(domain, committees.current().clone(), &redemptions)
        };
        let mut ballot = ballot_on(&items);
        self.ask(&client, &mut ballot, &self.trusted(), is_proven).await;
        if let Some(agreement) = agreement(&ballot, &items) {
            return Asked { agreement: Some(agreement), ..Asked::default() };
        }
        let lacking = client.bring_ballot(&ballot, Instant::now() + BRING_PATIENCE).await;
        self.ask(&client, &mut ballot, &lacking, is_proven).await;
        if let Some(agreement) = agreement(&ballot, &items) {
            return Asked { agreement: Some(agreement), ..Asked::default() };
        }
        for authority in lacking.iter().map(AuthorityClient::name) {
            // It confirmed the certificates, and still lacks them.
            if is_proven && ballot.missing().contains_key(&authority) {
                self.distrust(authority, "it confirms a redemption and has no certificate of it");
            }
        }
        let unproven = self.unproven(&client, &ballot, &items, ballot_on).await;
        let unknown = unproven.iter().filter(|(_, is_unknown)| **is_unknown);
        let unknown = unknown.filter_map(|(position, _)| Some(items.get(*position)?.id())).collect();
        let mut out = ballot.in_the_way().unwrap_or_default();
        out.extend(unproven.into_keys());
        let (kept, mut refused) = split(items, &out);
        if out.is_empty() || kept.is_empty() {
            refused.extend(kept);
            return Asked { agreement: None, refused, unknown };
        }
        let mut ballot = ballot_on(&kept);
        self.ask(&client, &mut ballot, &self.trusted(), true).await;
        let agreement = agreement(&ballot, &kept);
        if agreement.is_none() {
            refused.extend(kept);
        }
        Asked { agreement, refused, unknown }
    }

    /// The redemptions of ended epochs for which no quorum is known to vote, by their positions, each with whether f + 1
    /// members do not know it: in the `ballot` on all of them, or in one of its own.
    async fn unproven(
        &self,
        client: &CommitteeClient,
        ballot: &Ballot,
        items: &[PendingRedemption],
        ballot_on: impl Fn(&[PendingRedemption]) -> Ballot,
    ) -> BTreeMap<usize, bool> {
        let (who, deadline) = (self.trusted(), Instant::now() + ROUND_PATIENCE);
        let current = ballot.committee().epoch();
        let (mut unproven, mut asking) = (BTreeMap::new(), JoinSet::new());
        for (position, item) in items.iter().enumerate().filter(|(_, item)| item.is_unproven(current)) {
            let is_unknown = is_true(ballot, lacks(ballot, position));
            unproven.insert(position, is_unknown);
            if !is_unknown && asking.len() < SINGLY_MAX {
                let (client, who, mut own) = (client.clone(), who.clone(), ballot_on(std::slice::from_ref(item)));
                asking.spawn(async move {
                    client.ask_ballot(&mut own, &who, deadline).await;
                    (position, own)
                });
            }
        }
        for (position, own) in asking.join_all().await {
            if own.quorum().is_some() {
                unproven.remove(&position);
            } else {
                unproven.insert(position, is_true(&own, lacks(&own, 0).chain(votes_otherwise(&own))));
            }
        }
        unproven
    }

    fn trusted(&self) -> Vec<AuthorityClient> {
        let now = Instant::now();
        let is_trusted =
            |client: &AuthorityClient| self.distrusted.get(&client.name()).is_none_or(|(_, until)| *until <= now);
        let all = self.client.iter().flat_map(|client| client.network().authorities().to_vec());
        all.filter(is_trusted).collect()
    }

    /// Asks some authorities at once, until a quorum has voted. A wrong answer is held against an authority only if all
    /// redemptions are proven.
    async fn ask(&mut self, client: &CommitteeClient, ballot: &mut Ballot, who: &[AuthorityClient], is_proven: bool) {
        client.ask_ballot(ballot, who, Instant::now() + ROUND_PATIENCE).await;
        for authority in who.iter().map(AuthorityClient::name) {
            match ballot.failures().get(&authority) {
                Some(PeerFailure::Misbehaved(what)) if is_proven => self.distrust(authority, what),
                Some(failure) => tracing::warn!(%authority, %failure, "no vote for a batch"),
                None => {}
            }
        }
    }

    fn distrust(&mut self, authority: AuthorityName, what: &str) {
        let times = self.distrusted.get(&authority).map_or(0, |(times, _)| *times);
        let pause = DISTRUST.saturating_mul(1 << times.min(10)).min(DISTRUST_MAX);
        self.distrusted.insert(authority, (times.saturating_add(1), Instant::now() + pause));
        let pause_s = pause.as_secs();
        tracing::warn!(
            %authority, what, pause_s,
            "an authority sent an invalid answer; it is not asked for votes for a while"
        );
    }
}

/// The authorities that lack the redemption at a position of a ballot.
fn lacks(ballot: &Ballot, position: usize) -> impl Iterator<Item = &AuthorityName> {
    ballot.missing().iter().filter(move |(_, positions)| positions.contains(&position)).map(|(name, _)| name)
}

/// The authorities that vote for something else.
fn votes_otherwise(ballot: &Ballot) -> impl Iterator<Item = &AuthorityName> {
    let failures = ballot.failures().iter();
    failures.filter(|(_, failure)| matches!(failure, PeerFailure::Misbehaved(_))).map(|(name, _)| name)
}

/// Whether f + 1 of these are members: one of them is honest.
fn is_true<'a>(ballot: &Ballot, said_by: impl Iterator<Item = &'a AuthorityName>) -> bool {
    let members = said_by.filter(|name| ballot.committee().member(name).is_some());
    members.count() >= ballot.committee().one_honest()
}

/// The redemptions that stay, and those at the positions `out`.
fn split(items: Vec<PendingRedemption>, out: &BTreeSet<usize>) -> (Vec<PendingRedemption>, Vec<PendingRedemption>) {
    let (mut kept, mut refused) = (Vec::new(), Vec::new());
    for (position, item) in items.into_iter().enumerate() {
        if out.contains(&position) { refused.push(item) } else { kept.push(item) }
    }
    (kept, refused)
}
