//! Votes of the current committee on many redemptions together: pure counting, and the shell that asks.
//!
//! An authority votes for redemptions that it has confirmed itself, as often as it is asked and again in every epoch.
//! The signature identifies the voter: an authority counts once, however often its vote arrives and whoever relays it.

use std::collections::BTreeMap;
use std::sync::Arc;

use fastpay_core::{AuthorityName, Committee, Digest, Domain, Epoch, Redemption, VerifiedContractVote};
use fastpay_rpc::{BatchAnswer, TransferName};
use tokio::time::Instant;

use super::catch_up::failure_of;
use super::tally::{PeerFailure, may_vote_for, newer_epoch};
use super::{Backoff, CommitteeClient, QuorumError};
use crate::{Asked, AuthorityClient, ClientError};

/// The maximum number of certificates sent to one authority for one batch. An authority that lags further is left to
/// its clients.
const BRING_MAX: usize = 32;

/// The votes on one batch of redemptions so far.
#[derive(Clone, Debug)]
pub struct Ballot {
    names: Vec<TransferName>,
    committee: Arc<Committee>,
    digest: Digest,
    /// By signer; all other maps are by the authority that answered, which may have left the committee.
    votes: BTreeMap<AuthorityName, VerifiedContractVote>,
    missing: BTreeMap<AuthorityName, Vec<usize>>,
    uncovered: BTreeMap<AuthorityName, Vec<usize>>,
    failures: BTreeMap<AuthorityName, PeerFailure>,
}

impl Ballot {
    /// A ballot of `committee` on these redemptions in this order.
    #[must_use]
    pub fn new(domain: &Domain, committee: Arc<Committee>, redemptions: &[Redemption]) -> Self {
        let names = redemptions.iter().map(|redemption| (redemption.sender, redemption.sequence)).collect();
        let digest = domain.redemption_batch_vote_digest(committee.epoch(), redemptions);
        let (votes, missing, uncovered) = (BTreeMap::new(), BTreeMap::new(), BTreeMap::new());
        Self { names, committee, digest, votes, missing, uncovered, failures: BTreeMap::new() }
    }

    /// Counts an authority's answer. It replaces the authority's earlier answer, but not a vote.
    pub fn count(&mut self, authority: AuthorityName, answer: Result<BatchAnswer, ClientError>) {
        self.missing.remove(&authority);
        self.uncovered.remove(&authority);
        self.failures.remove(&authority);
        let failure = match answer {
            Ok(BatchAnswer::Vote { epoch, vote }) if epoch == self.committee.epoch() => {
                match vote.verify(&self.committee, self.digest) {
                    Ok(vote) if may_vote_for(&self.committee, authority, vote.vote().authority) => {
                        self.votes.insert(vote.vote().authority, vote);
                        return;
                    }
                    Ok(_) => PeerFailure::Misbehaved("the vote of another authority".into()),
                    Err(error) => PeerFailure::Misbehaved(error.to_string()),
                }
            }
            Ok(BatchAnswer::Vote { epoch, .. }) => PeerFailure::OtherEpoch(epoch),
            Ok(BatchAnswer::Missing(positions)) => {
                self.missing.insert(authority, positions);
                return;
            }
            Ok(BatchAnswer::Uncovered(positions)) => {
                self.uncovered.insert(authority, positions);
                return;
            }
            Err(error) => failure_of(error),
        };
        self.failures.insert(authority, failure);
    }

    /// The votes of a quorum, encoded for the contract; `None` if they are too few.
    #[must_use]
    pub fn quorum(&self) -> Option<Vec<u8>> {
        let votes: Vec<_> = self.votes.values().cloned().collect();
        VerifiedContractVote::quorum(&self.committee, self.digest, &votes)
    }

    /// The committee that votes.
    #[must_use]
    pub fn committee(&self) -> &Arc<Committee> {
        &self.committee
    }

    /// How many members have voted.
    #[must_use]
    pub fn votes(&self) -> usize {
        self.votes.len()
    }

    /// The redemptions that each authority has not confirmed, by their positions.
    #[must_use]
    pub fn missing(&self) -> &BTreeMap<AuthorityName, Vec<usize>> {
        &self.missing
    }

    /// Why other authorities have not voted.
    #[must_use]
    pub fn failures(&self) -> &BTreeMap<AuthorityName, PeerFailure> {
        &self.failures
    }

    fn is_member(&self, name: &AuthorityName) -> bool {
        self.committee.member(name).is_some()
    }

    /// A newer epoch in which an honest authority votes.
    #[must_use]
    pub fn newer_epoch(&self) -> Option<Epoch> {
        let epochs = self.failures.iter().filter_map(|(name, failure)| match failure {
            PeerFailure::OtherEpoch(epoch) if *epoch > self.committee.epoch() && self.is_member(name) => Some(*epoch),
            _ => None,
        });
        newer_epoch(&self.committee, epochs)
    }

    /// The redemptions to leave out so that a quorum could vote: all that the needed authorities with the shortest
    /// lists lack or do not vote for. `None` if a quorum has voted, too few have answered, or nothing would be left.
    #[must_use]
    pub fn in_the_way(&self) -> Option<std::collections::BTreeSet<usize>> {
        let needed = self.committee.quorum().saturating_sub(self.votes.len());
        let lists = self.missing.iter().chain(&self.uncovered);
        let mut lists: Vec<_> = lists.filter(|(name, _)| self.is_member(name)).map(|(_, list)| list).collect();
        if needed == 0 || lists.len() < needed {
            return None;
        }
        lists.sort_by_key(|list| list.len());
        let out: std::collections::BTreeSet<usize> = lists.into_iter().take(needed).flatten().copied().collect();
        (out.len() < self.names.len()).then_some(out)
    }
}

impl CommitteeClient {
    /// Asks these authorities at once, until there is a quorum or the deadline.
    pub async fn ask_ballot(&self, ballot: &mut Ballot, who: &[AuthorityClient], deadline: Instant) {
        let names: Arc<[TransferName]> = ballot.names.clone().into();
        let mut asked = Asked::each(who, |authority| {
            let names = names.clone();
            async move {
                // Any shard answers for all of its authority.
                match authority.shards().first() {
                    Some(shard) => shard.vote_redemption_batch(&names).await,
                    None => Err(ClientError::NotFound),
                }
            }
        });
        while let Some((authority, answer)) = asked.next(deadline).await {
            ballot.count(authority, answer);
            if ballot.quorum().is_some() {
                return;
            }
        }
    }

    /// Sends authorities the certificates that they lack. Returns those that have confirmed all of them in time.
    pub async fn bring_ballot(&self, ballot: &Ballot, deadline: Instant) -> Vec<AuthorityClient> {
        let mut bringing = Asked::default();
        for authority in self.network().authorities().iter() {
            let Some(positions) = ballot.missing.get(&authority.name()) else { continue };
            if positions.len() > BRING_MAX {
                tracing::info!(
                    authority = %authority.name(), missing = positions.len(),
                    "an authority lags too far behind to bring it up to date"
                );
                continue;
            }
            let names: Vec<_> = positions.iter().filter_map(|position| ballot.names.get(*position).copied()).collect();
            bringing.and_each([authority], |authority| {
                let (client, names) = (self.clone(), names.clone());
                async move {
                    for (sender, sequence) in names {
                        let certificate = client.certificate(sender, sequence).await?;
                        client.confirm(&authority, &certificate).await.ok()?;
                    }
                    Some(authority)
                }
            });
        }
        let mut up_to_date = Vec::new();
        while let Some((_, outcome)) = bringing.next(deadline).await {
            up_to_date.extend(outcome);
        }
        up_to_date
    }

    /// The votes of a quorum on settled redemptions, with their epoch. Asks again until a quorum has voted or the time
    /// for a certificate is over.
    ///
    /// # Errors
    /// [`QuorumError::NoQuorum`], or [`QuorumError::NewEpoch`]: follow it, and ask again.
    pub async fn vote_again(&self, redemptions: &[Redemption]) -> Result<(Epoch, Vec<u8>), QuorumError> {
        let deadline = Instant::now() + self.options().deadline;
        let mut ballot = Ballot::new(self.network().domain(), self.network().committee(), redemptions);
        let (epoch, quorum) = (ballot.committee.epoch(), ballot.committee.quorum());
        let mut backoff = Backoff::new(*self.options());
        loop {
            self.ask_ballot(&mut ballot, &self.network().authorities(), deadline).await;
            if let Some(votes) = ballot.quorum() {
                return Ok((epoch, votes));
            }
            if let Some(newer) = ballot.newer_epoch() {
                return Err(QuorumError::NewEpoch { epoch: newer, known: epoch });
            }
            if Instant::now() >= deadline {
                let mut failures: Vec<_> = ballot.failures.iter().map(|(name, why)| (*name, why.clone())).collect();
                failures.extend(ballot.missing.iter().filter_map(|(name, positions)| {
                    let (_, sequence) = ballot.names.get(*positions.first()?)?;
                    Some((*name, PeerFailure::Behind(*sequence)))
                }));
                let uncovered = "stolen keys may have certified the redemption, and the account's balance there is \
                                 negative; ask again once that authority has all payments to the account";
                failures.extend(ballot.uncovered.keys().map(|name| (*name, PeerFailure::Refused(uncovered.into()))));
                let (count, what) = (ballot.votes.len(), "votes of the current committee");
                return Err(QuorumError::NoQuorum { what, count, quorum, timed_out: true, failures });
            }
            self.bring_ballot(&ballot, deadline).await;
            backoff.wait().await;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::{PrimaryAddress, sign_batch_vote};
    use fastpay_testkit::{TestAccount, TestCommittee, redemption};

    fn redemptions(count: u64) -> Vec<Redemption> {
        let (sender, recipient) = (TestAccount::numbered(0), PrimaryAddress::repeat_byte(7));
        (0..count).map(|sequence| redemption(sender.id(), recipient, 5, sequence)).collect()
    }

    struct Case {
        committee: TestCommittee,
        ballot: Ballot,
    }

    fn case(count: u64) -> Case {
        let committee = TestCommittee::new(4);
        let ballot = Ballot::new(&committee.domain, Arc::new(committee.committee.clone()), &redemptions(count));
        Case { committee, ballot }
    }

    impl Case {
        fn name(&self, index: usize) -> AuthorityName {
            self.committee.committee.members()[index].name
        }

        /// Authority `from` returns the vote of `voter`.
        fn vote(&mut self, from: usize, voter: usize) {
            let count = self.ballot.names.len() as u64;
            let (domain, keys) = (&self.committee.domain, &self.committee.keys[voter]);
            let vote = sign_batch_vote(keys, domain, Epoch(0), &redemptions(count));
            self.ballot.count(self.name(from), Ok(BatchAnswer::Vote { epoch: Epoch(0), vote }));
        }

        fn answer(&mut self, from: usize, answer: Result<BatchAnswer, ClientError>) {
            self.ballot.count(self.name(from), answer);
        }
    }

    #[test]
    fn an_authority_votes_once_however_often_its_vote_is_shown() {
        let mut case = case(1);
        for (from, voter, counted) in [(0, 0, 1), (0, 0, 1), (1, 1, 2), (2, 1, 2), (2, 0, 2), (3, 3, 3)] {
            case.vote(from, voter);
            assert_eq!((case.ballot.votes(), case.ballot.quorum().is_some()), (counted, counted == 3));
        }
        assert!(matches!(case.ballot.failures().get(&case.name(2)), Some(PeerFailure::Misbehaved(_))));
    }

    #[test]
    fn votes_of_other_redemptions_and_epochs_do_not_count() {
        let mut case = case(2);
        let keys = &case.committee.keys;
        let other = sign_batch_vote(&keys[0], &case.committee.domain, Epoch(0), &redemptions(1));
        let newer = sign_batch_vote(&keys[1], &case.committee.domain, Epoch(3), &redemptions(2));
        case.answer(0, Ok(BatchAnswer::Vote { epoch: Epoch(0), vote: other }));
        case.answer(1, Ok(BatchAnswer::Vote { epoch: Epoch(3), vote: newer.clone() }));
        assert_eq!((case.ballot.votes(), case.ballot.newer_epoch()), (0, None));
        // One authority may have invented the epoch; of two, one is honest.
        case.answer(2, Ok(BatchAnswer::Vote { epoch: Epoch(2), vote: newer }));
        assert_eq!(case.ballot.newer_epoch(), Some(Epoch(2)));
        case.answer(3, Err(ClientError::Malformed("what".into())));
        assert!(matches!(case.ballot.failures().get(&case.name(3)), Some(PeerFailure::Misbehaved(_))));
        // A later good answer replaces the failure.
        case.vote(3, 3);
        assert_eq!((case.ballot.votes(), case.ballot.failures().get(&case.name(3))), (1, None));
    }

    #[test]
    fn who_left_the_committee_names_no_epoch_and_leaves_nothing_out() {
        let left = AuthorityName([9; 32]);
        let mut ahead = case(1);
        for by in [ahead.name(0), left] {
            ahead.ballot.count(by, Err(ClientError::Refused(fastpay_rpc::Refusal::NotVoting(Epoch(3)))));
            let vote = sign_batch_vote(&ahead.committee.keys[0], &ahead.committee.domain, Epoch(3), &redemptions(1));
            ahead.ballot.count(by, Ok(BatchAnswer::Vote { epoch: Epoch(3), vote }));
        }
        assert_eq!(ahead.ballot.newer_epoch(), None);
        let mut lacking = case(2);
        lacking.vote(0, 0);
        lacking.answer(1, Ok(BatchAnswer::Missing(vec![0])));
        lacking.ballot.count(left, Ok(BatchAnswer::Missing(vec![1])));
        assert_eq!(lacking.ballot.in_the_way(), None, "too few members have answered");
    }

    fn check(count: u64, signed: usize, missing: &[&[usize]], expected: Option<&[usize]>) {
        let mut case = case(count);
        (0..signed).for_each(|voter| case.vote(voter, voter));
        for (index, positions) in missing.iter().enumerate() {
            case.answer(signed + index, Ok(BatchAnswer::Missing(positions.to_vec())));
        }
        assert_eq!(case.ballot.in_the_way(), expected.map(|out| out.iter().copied().collect()), "{missing:?}");
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

    #[test]
    fn what_an_authority_does_not_vote_for_is_left_out_and_not_brought() {
        let mut case = case(3);
        case.vote(0, 0);
        case.answer(1, Ok(BatchAnswer::Uncovered(vec![1])));
        case.answer(2, Ok(BatchAnswer::Missing(vec![2])));
        case.answer(3, Ok(BatchAnswer::Uncovered(vec![1])));
        assert_eq!(case.ballot.in_the_way(), Some([1, 2].into()));
        assert_eq!(case.ballot.missing().keys().collect::<Vec<_>>(), [&case.name(2)]);
        // The newest answer of authority 2 counts.
        case.answer(2, Ok(BatchAnswer::Uncovered(vec![1])));
        assert_eq!((case.ballot.in_the_way(), case.ballot.missing().len()), (Some([1].into()), 0));
        case.vote(1, 1);
        case.vote(2, 2);
        assert!(case.ballot.quorum().is_some());
    }
}
