//! Has the current committee vote for many redemptions at once.
//!
//! ```text
//!  items, ordered ─► ask every authority ─► quorum of valid signatures ─► Agreement
//!                        │ some lack an item: bring them its certificate, ask them once more
//!                        │ still no quorum: leave out what stands in the way, ask all once more
//!                        └► none: the items go by their certificates
//! ```
//! An authority may be away, lag, or lie: every signature is checked on the digest that we compute, who signs
//! is told by the signature, and one that answers what no correct authority answers is left alone for a while.
//! However they answer, there are at most three rounds.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::sync::Arc;
use std::time::Duration;

use alloy::primitives::Bytes;
use fastpay_client::{AuthorityClient, ClientError};
use fastpay_core::{
    AccountId, AuthorityName, Certificate, Committee, Committees, Digest, Domain, Epoch, Redemption, SequenceNumber,
    VerifiedContractVote,
};
use fastpay_rpc::{BatchAnswer, Refusal};
use tokio::task::JoinSet;
use tokio::time::Instant;

use crate::item::{Item, ItemId};

/// To one authority at most so many certificates are brought for one batch: one that lags further is helped
/// by its clients, not by us.
const BRING_MAX: usize = 32;
/// Before each of them at most so many earlier ones of the same sender.
const EARLIER_MAX: usize = 8;
/// Bringing takes at most so long in all.
const BRING_PATIENCE: Duration = Duration::from_secs(10);
/// The first pause of an authority that gave a wrong answer; it doubles each time.
const DISTRUST: Duration = Duration::from_secs(60);
const DISTRUST_MAX: Duration = Duration::from_secs(3_600);

/// Redemptions for which a quorum of one committee has voted together.
#[derive(Debug)]
pub(crate) struct Agreement {
    /// In the order in which they were voted for.
    pub(crate) items: Vec<Item>,
    pub(crate) epoch: Epoch,
    /// Encoded for the contract.
    pub(crate) votes: Bytes,
}

/// The authorities, as voters.
#[derive(Debug)]
pub(crate) struct Voters {
    authorities: Vec<AuthorityClient>,
    /// Those that gave wrong answers: how often, and when to ask again.
    distrusted: HashMap<AuthorityName, (u32, Instant)>,
}

/// What is voted on.
struct Ballot {
    names: Vec<(AccountId, SequenceNumber)>,
    committee: Arc<Committee>,
    digest: Digest,
    /// By who signed: an authority counts once, however often and by whomever its vote is shown.
    votes: BTreeMap<AuthorityName, VerifiedContractVote>,
}

impl Ballot {
    fn new(domain: &Domain, committee: Arc<Committee>, items: &[Item]) -> Self {
        let redemptions: Vec<Redemption> = items.iter().map(|item| item.redemption.clone()).collect();
        let names = items.iter().map(|item| (item.redemption.sender, item.redemption.sequence)).collect();
        let digest = domain.redemption_batch_vote_digest(committee.epoch(), &redemptions);
        Self { names, committee, digest, votes: BTreeMap::new() }
    }

    fn count(&mut self, vote: VerifiedContractVote) {
        self.votes.insert(vote.vote().authority, vote);
    }

    fn quorum(&self) -> Option<Bytes> {
        let votes: Vec<_> = self.votes.values().cloned().collect();
        VerifiedContractVote::quorum(&self.committee, self.digest, &votes).map(Bytes::from)
    }
}

impl Voters {
    pub(crate) fn new(authorities: Vec<AuthorityClient>) -> Self {
        Self { authorities, distrusted: HashMap::new() }
    }

    /// Those of the items for which a quorum votes together, and those that stood in the way.
    pub(crate) async fn agree(
        &mut self,
        domain: &Domain,
        committees: &Committees,
        mut items: Vec<Item>,
    ) -> (Option<Agreement>, Vec<Item>) {
        // The same for everybody, whatever order they came in.
        items.sort_by_key(Item::id);
        let committee = committees.current().clone();
        let mut ballot = Ballot::new(domain, committee.clone(), &items);
        let mut missing = self.ask(&mut ballot, &self.trusted()).await;
        if let Some(votes) = ballot.quorum() {
            return (Some(Agreement { items, epoch: committee.epoch(), votes }), Vec::new());
        }
        let lacking = self.bring(domain, committees, &items, &missing).await;
        let still_missing = self.ask(&mut ballot, &lacking).await;
        if let Some(votes) = ballot.quorum() {
            return (Some(Agreement { items, epoch: committee.epoch(), votes }), Vec::new());
        }
        for authority in &lacking {
            missing.remove(&authority.name());
        }
        for name in still_missing.keys() {
            // It took the certificates and has them not.
            self.distrust(*name, "it confirms a redemption and misses it");
        }
        missing.extend(still_missing);
        let Some(out) = in_the_way(items.len(), ballot.votes.len(), committee.quorum(), &missing) else {
            return (None, items);
        };
        let (mut kept, mut refused) = (Vec::new(), Vec::new());
        for (position, item) in items.into_iter().enumerate() {
            if out.contains(&position) { refused.push(item) } else { kept.push(item) }
        }
        let mut ballot = Ballot::new(domain, committee.clone(), &kept);
        self.ask(&mut ballot, &self.trusted()).await;
        match ballot.quorum() {
            Some(votes) => (Some(Agreement { items: kept, epoch: committee.epoch(), votes }), refused),
            None => {
                refused.extend(kept);
                (None, refused)
            }
        }
    }

    fn trusted(&self) -> Vec<AuthorityClient> {
        let now = Instant::now();
        let is_trusted =
            |client: &&AuthorityClient| self.distrusted.get(&client.name()).is_none_or(|(_, until)| *until <= now);
        self.authorities.iter().filter(is_trusted).cloned().collect()
    }

    /// Asks some authorities at once, until there is a quorum. Returns which items they lack.
    async fn ask(&mut self, ballot: &mut Ballot, who: &[AuthorityClient]) -> BTreeMap<AuthorityName, Vec<usize>> {
        let mut asked = JoinSet::new();
        for authority in who {
            let (authority, names) = (authority.clone(), ballot.names.clone());
            asked.spawn(async move {
                // Any shard answers for all of its authority.
                let answer = match authority.shards().first() {
                    Some(shard) => shard.vote_redemption_batch(&names).await,
                    None => Err(ClientError::NotFound),
                };
                (authority.name(), answer)
            });
        }
        let mut missing = BTreeMap::new();
        while let Some(answer) = asked.join_next().await {
            let Ok((authority, answer)) = answer else { continue };
            match answer {
                Ok(BatchAnswer::Vote { epoch, vote }) if epoch == ballot.committee.epoch() => {
                    match vote.verify(&ballot.committee, ballot.digest) {
                        Ok(vote) => ballot.count(vote),
                        Err(error) => self.distrust(authority, &error.to_string()),
                    }
                    if ballot.quorum().is_some() {
                        break;
                    }
                }
                Ok(BatchAnswer::Vote { epoch, .. }) => {
                    let ours = ballot.committee.epoch();
                    tracing::info!(%authority, theirs = %epoch, %ours, "an authority votes in another epoch");
                }
                Ok(BatchAnswer::Missing(positions)) => drop(missing.insert(authority, positions)),
                Err(ClientError::Malformed(what)) => self.distrust(authority, &what),
                Err(error) => tracing::warn!(%authority, %error, "no vote for a batch"),
            }
        }
        missing
    }

    fn distrust(&mut self, authority: AuthorityName, what: &str) {
        let times = self.distrusted.get(&authority).map_or(0, |(times, _)| *times);
        let pause = DISTRUST.saturating_mul(1 << times.min(10)).min(DISTRUST_MAX);
        self.distrusted.insert(authority, (times.saturating_add(1), Instant::now() + pause));
        let pause_s = pause.as_secs();
        tracing::warn!(%authority, what, pause_s, "an authority gave a wrong answer; it is not asked for votes for a while");
    }

    /// Brings authorities the certificates that they lack. Returns those that have taken all of them.
    async fn bring(
        &self,
        domain: &Domain,
        committees: &Committees,
        items: &[Item],
        missing: &BTreeMap<AuthorityName, Vec<usize>>,
    ) -> Vec<AuthorityClient> {
        let mut bringing = JoinSet::new();
        for authority in &self.authorities {
            let Some(positions) = missing.get(&authority.name()) else { continue };
            if positions.len() > BRING_MAX {
                tracing::info!(authority = %authority.name(), missing = positions.len(), "an authority lags too far to be helped");
                continue;
            }
            let ids: Vec<_> = positions.iter().filter_map(|position| items.get(*position).map(Item::id)).collect();
            let helper =
                Helper { authorities: self.authorities.clone(), domain: *domain, committees: committees.clone() };
            let authority = authority.clone();
            bringing.spawn(async move {
                for id in ids {
                    helper.confirm(&authority, id).await?;
                }
                Some(authority)
            });
        }
        let mut up_to_date = Vec::new();
        let deadline = Instant::now() + BRING_PATIENCE;
        while let Ok(Some(outcome)) = tokio::time::timeout_at(deadline, bringing.join_next()).await {
            up_to_date.extend(outcome.ok().flatten());
        }
        up_to_date
    }
}

/// Brings one certificate, wherever it is to be had.
struct Helper {
    authorities: Vec<AuthorityClient>,
    domain: Domain,
    committees: Committees,
}

impl Helper {
    /// Has a redemption confirmed at an authority, and before it what is missing of the same sender. None
    /// where that does not succeed.
    async fn confirm(&self, authority: &AuthorityClient, id: ItemId) -> Option<()> {
        let mut next = id.sequence;
        for _ in 0..=EARLIER_MAX {
            let certificate = self.find(id.sender, next).await?;
            match authority.shard_of(&id.sender).confirm(&certificate).await {
                Ok(expected) if expected > id.sequence => return Some(()),
                Ok(expected) if expected > next => next = expected,
                Err(ClientError::Refused(Refusal::MissingCertificate(missing))) if missing < next => next = missing,
                Ok(_) => return None,
                Err(error) => {
                    tracing::info!(authority = %authority.name(), sender = %id.sender, sequence = %next, %error, "a certificate could not be brought");
                    return None;
                }
            }
        }
        None
    }

    /// A valid certificate from whichever authority has it first.
    async fn find(&self, sender: AccountId, sequence: SequenceNumber) -> Option<Certificate> {
        let mut asked = JoinSet::new();
        for authority in &self.authorities {
            let authority = authority.clone();
            asked.spawn(async move { authority.shard_of(&sender).certificate(sender, sequence).await });
        }
        while let Some(answer) = asked.join_next().await {
            let Ok(Ok(certificate)) = answer else { continue };
            let transfer = &certificate.order.transfer;
            if (transfer.sender(), transfer.sequence()) != (sender, sequence) {
                continue;
            }
            let Some(committee) = self.committees.get(certificate.epoch) else { continue };
            if let Ok(verified) = certificate.verify(&self.domain, committee) {
                return Some(verified.into_certificate());
            }
        }
        None
    }
}

/// The fewest items without which a quorum could sign: what those lack that lack least. None where nothing
/// would be left, or too few answered at all.
fn in_the_way(
    count: usize,
    signed: usize,
    quorum: usize,
    missing: &BTreeMap<AuthorityName, Vec<usize>>,
) -> Option<BTreeSet<usize>> {
    let needed = quorum.saturating_sub(signed);
    let mut lists: Vec<_> = missing.values().collect();
    if needed == 0 || lists.len() < needed {
        return None;
    }
    lists.sort_by_key(|list| list.len());
    let out: BTreeSet<usize> = lists.into_iter().take(needed).flatten().copied().collect();
    (out.len() < count).then_some(out)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::item::tests::item;
    use fastpay_core::sign_batch_vote;

    #[test]
    fn an_authority_votes_once_however_often_its_vote_is_shown() {
        let committee = fastpay_testkit::TestCommittee::new(4);
        let mut ballot = Ballot::new(&committee.domain, Arc::new(committee.committee.clone()), &[item(0)]);
        let redemptions = [item(0).redemption];
        for (voter, counted) in [(0, 1), (0, 1), (1, 2), (1, 2), (0, 2), (2, 3)] {
            let vote = sign_batch_vote(&committee.keys[voter], &committee.domain, Epoch(0), &redemptions);
            ballot.count(vote.verify(&committee.committee, ballot.digest).unwrap());
            assert_eq!((ballot.votes.len(), ballot.quorum().is_some()), (counted, counted == 3));
        }
    }

    fn check(count: usize, signed: usize, missing: &[&[usize]], expected: Option<&[usize]>) {
        let missing = (1..).zip(missing).map(|(name, list)| (AuthorityName([name; 32]), list.to_vec())).collect();
        let expected = expected.map(|out| out.iter().copied().collect());
        assert_eq!(in_the_way(count, signed, 3, &missing), expected, "{missing:?}");
    }

    #[test]
    fn as_little_as_possible_is_left_out() {
        check(3, 2, &[&[0, 1], &[2]], Some(&[2]));
        check(3, 1, &[&[0], &[0]], Some(&[0]));
        check(4, 1, &[&[0], &[2], &[0, 1, 2]], Some(&[0, 2]));
        // Nothing would be left, or too few answered.
        check(2, 1, &[&[0], &[1]], None);
        check(1, 2, &[&[0]], None);
        check(3, 1, &[&[0]], None);
        check(3, 2, &[], None);
    }
}
