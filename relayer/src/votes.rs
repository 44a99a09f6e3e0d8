//! Collects votes of the current committee for many redemptions at once.
//!
//! ```text
//!  redemptions, ordered ─► ask every authority ─► quorum of valid signatures ─► Agreement
//!                        │ some lack a redemption: send them its certificate, ask them once more
//!                        │ still no quorum: leave out what prevents it, ask all once more
//!                        └► none: the redemptions go by their certificates
//! ```
//! An authority may be away, lag, or lie: `fastpay_client::Ballot` checks and counts. An authority that answers what no
//! correct one does is left alone for a while. Whatever the answers, there are at most three rounds.

use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use alloy::primitives::Bytes;
use fastpay_client::{AuthorityClient, Ballot, CommitteeClient, Network, NoCertificates, PeerFailure, QuorumOptions};
use fastpay_core::{AuthorityName, Committees, Domain, Epoch, Redemption};
use tokio::time::Instant;

use crate::pending::PendingRedemption;

/// The maximum time to wait for all answers of one round.
const ROUND_PATIENCE: Duration = Duration::from_secs(5);
/// The maximum time to ask endpoints for their names.
const NAMES_PATIENCE: Duration = Duration::from_secs(1);
/// The maximum time to send certificates that authorities lack.
const BRING_PATIENCE: Duration = Duration::from_secs(10);
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

    /// Returns the redemptions for which a quorum votes together, and those that had to be left out.
    pub(crate) async fn agree(
        &mut self,
        domain: &Domain,
        committees: &Committees,
        mut items: Vec<PendingRedemption>,
    ) -> (Option<Agreement>, Vec<PendingRedemption>) {
        // The same order for all relayers, however the redemptions arrived.
        items.sort_by_key(PendingRedemption::id);
        let Some(client) = self.client(domain, committees).await else { return (None, items) };
        let ballot_on = |items: &[PendingRedemption]| {
            let redemptions: Vec<Redemption> = items.iter().map(|item| item.redemption.clone()).collect();
            Ballot::new(domain, committees.current().clone(), &redemptions)
        };
        let mut ballot = ballot_on(&items);
        self.ask(&client, &mut ballot, &self.trusted()).await;
        if let Some(agreement) = agreement(&ballot, &items) {
            return (Some(agreement), Vec::new());
        }
        let lacking = client.bring_ballot(&ballot, Instant::now() + BRING_PATIENCE).await;
        self.ask(&client, &mut ballot, &lacking).await;
        if let Some(agreement) = agreement(&ballot, &items) {
            return (Some(agreement), Vec::new());
        }
        for authority in lacking.iter().map(AuthorityClient::name) {
            // It confirmed the certificates, and still lacks them.
            if ballot.missing().contains_key(&authority) {
                self.distrust(authority, "it confirms a redemption and has no certificate of it");
            }
        }
        let Some(out) = ballot.in_the_way() else { return (None, items) };
        let (kept, mut refused) = split(items, &out);
        let mut ballot = ballot_on(&kept);
        self.ask(&client, &mut ballot, &self.trusted()).await;
        let agreement = agreement(&ballot, &kept);
        if agreement.is_none() {
            refused.extend(kept);
        }
        (agreement, refused)
    }

    fn trusted(&self) -> Vec<AuthorityClient> {
        let now = Instant::now();
        let is_trusted =
            |client: &AuthorityClient| self.distrusted.get(&client.name()).is_none_or(|(_, until)| *until <= now);
        let all = self.client.iter().flat_map(|client| client.network().authorities().to_vec());
        all.filter(is_trusted).collect()
    }

    /// Asks some authorities at once, until a quorum has voted.
    async fn ask(&mut self, client: &CommitteeClient, ballot: &mut Ballot, who: &[AuthorityClient]) {
        client.ask_ballot(ballot, who, Instant::now() + ROUND_PATIENCE).await;
        for authority in who.iter().map(AuthorityClient::name) {
            match ballot.failures().get(&authority) {
                Some(PeerFailure::Misbehaved(what)) => self.distrust(authority, what),
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

/// The redemptions that stay, and those at the positions `out`.
fn split(items: Vec<PendingRedemption>, out: &BTreeSet<usize>) -> (Vec<PendingRedemption>, Vec<PendingRedemption>) {
    let (mut kept, mut refused) = (Vec::new(), Vec::new());
    for (position, item) in items.into_iter().enumerate() {
        if out.contains(&position) { refused.push(item) } else { kept.push(item) }
    }
    (kept, refused)
}
