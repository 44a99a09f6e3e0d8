//! The authority's own identity: the committees that it knows, and which of its keys vote now.
//!
//! Keys change with the epoch, the memory does not: an account stays locked on its order across a rotation, so that
//! order alone gets its vote again under the new key. A recovery ends that memory: everybody begins from the checkpoint
//! that the contract adopts, and until then nobody votes.
//!
//! A folder is *full* in an epoch if its authority may vote there: it was in every committee since the first one, or
//! since the epoch that it joined (`handover`). A member whose folder is not full joins.

use std::sync::Arc;

use fastpay_core::handover::{all_join_after, may_stay};
use fastpay_core::{Authority, AuthorityKeys, AuthorityName, Committee, Committees, Digest, Epoch, Recovery};
use fastpay_rpc::Refusal;
use tokio::sync::watch;

use crate::authority::rollback::RollbackProtection;

/// A receiver of this authority's voter status and its changes.
pub type VoterStatusWatch = watch::Receiver<Arc<VoterStatus>>;

/// Why the configured keys cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VoterStatusError {
    /// No configured key is a member's.
    #[error(
        "authority {0} is not a member of the committee; check the configured keys and contract. If a later committee will \
         list these keys, set `observer = true`"
    )]
    NotAMember(AuthorityName),
    /// No committee lists any of these pairs, but one lists a voting key of them with another redemption key.
    #[error("the committee lists another redemption key for authority {0}; configure the key that was deployed")]
    OtherRedemptionKey(AuthorityName),
    /// No keys at all.
    #[error("no keys are configured")]
    NoKeys,
}

/// What a data folder remembers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Remembered {
    /// The names that it was made for and that its authority has voted under.
    pub names: Vec<AuthorityName>,
    /// The checkpoint, adopted after a recovery, from which its journals begin, or one before theirs.
    pub adopted: Option<Digest>,
    /// The newest epoch that all its shards have joined.
    pub joined: Option<Epoch>,
}

impl From<&[AuthorityName]> for Remembered {
    fn from(names: &[AuthorityName]) -> Self {
        Self { names: names.to_vec(), ..Self::default() }
    }
}

/// The committees known at one time, and this authority's place in them.
#[derive(Clone)]
pub struct VoterStatus {
    committees: Committees,
    keys: Vec<Arc<AuthorityKeys>>,
    remembered: Remembered,
    is_observer: bool,
    /// Whether no known committee lists any of the keys.
    is_outsider: bool,
    /// The epoch since which the folder has all that its authority must know in order to vote in the current one.
    full_since: Option<Epoch>,
    voter: Option<Arc<AuthorityKeys>>,
    is_ahead: bool,
    public: Authority,
    unrecovered: Option<Recovery>,
    protection: Option<Arc<RollbackProtection>>,
}

impl VoterStatus {
    /// The status of the holder of `keys`.
    ///
    /// It votes only if its folder is full: a remembered name is a member of epoch 0, or it has joined an epoch, and it
    /// was in every committee since. A recovery ends all votes before it. After one, the epoch that was installed takes
    /// the place of epoch 0, and it votes only if its journals begin from the adopted checkpoint.
    ///
    /// A pair counts as a whole: another member may list one of these voting keys with a redemption key of its own, and
    /// an authority may change one key of its pair.
    ///
    /// # Errors
    /// If no known committee lists any of the pairs.
    pub fn new(
        committees: Committees,
        keys: Vec<Arc<AuthorityKeys>>,
        remembered: &Remembered,
    ) -> Result<Self, VoterStatusError> {
        Self::of(committees, keys, remembered, false)
    }

    /// The same, and if `is_observer`, also for keys that no known committee lists: a later one may.
    ///
    /// # Errors
    /// See [`VoterStatusError`].
    pub fn of(
        committees: Committees,
        keys: Vec<Arc<AuthorityKeys>>,
        remembered: &Remembered,
        is_observer: bool,
    ) -> Result<Self, VoterStatusError> {
        let first = keys.first().ok_or(VoterStatusError::NoKeys)?.public();
        let (mut newest, mut refusal) = (None, VoterStatusError::NotAMember(first.name));
        for committee in committees.iter() {
            for pair in &keys {
                let own = pair.public();
                match committee.member(&own.name) {
                    Some((_, member)) if *member == own => newest = Some((committee.epoch(), pair)),
                    Some(_) => refusal = VoterStatusError::OtherRedemptionKey(own.name),
                    None => {}
                }
            }
        }
        let (epoch, newest) = match (newest, &refusal) {
            (Some((epoch, pair)), _) => (Some(epoch), pair),
            (None, VoterStatusError::NotAMember(_)) if is_observer => (None, keys.first().ok_or(refusal)?),
            (None, _) => return Err(refusal),
        };
        let unrecovered = committees
            .recovery()
            .filter(|recovery| recovery.adopted.is_none() || recovery.adopted != remembered.adopted);
        let (newest, public, remembered) = (newest.clone(), newest.public(), remembered.clone());
        let (full_since, voter, is_ahead, protection, is_outsider) = (None, None, false, None, epoch.is_none());
        let mut status = Self {
            committees,
            keys,
            remembered,
            is_observer,
            is_outsider,
            full_since,
            voter,
            is_ahead,
            public,
            unrecovered,
            protection,
        };
        status.full_since = status.full_from(status.epoch());
        let votes = epoch == Some(status.epoch()) && status.full_since.is_some() && unrecovered.is_none();
        status.voter = votes.then_some(newest);
        Ok(status)
    }

    /// Whether the folder has all that its authority must know in order to vote in an epoch.
    fn is_full_in(&self, epoch: Epoch) -> bool {
        self.full_from(epoch).is_some()
    }

    fn full_from(&self, epoch: Epoch) -> Option<Epoch> {
        let since = self.committees.counting_since();
        let founded = self.is_founder(since).then_some(since);
        let joined = self.remembered.joined.filter(|joined| *joined >= since);
        [founded, joined].into_iter().flatten().find(|from| self.stays(*from, epoch))
    }

    /// The epoch since which it is full in the current one.
    #[must_use]
    pub fn full_since(&self) -> Option<Epoch> {
        self.full_since
    }

    /// Whether its memory goes back to the first epoch that counts.
    fn is_founder(&self, first: Epoch) -> bool {
        let Some(founders) = self.committees.get(first) else { return false };
        // After a recovery, its folder has not voted under its keys of the new epoch yet.
        let has_keys = self.committees.recovery().is_some() && self.keys_in(first).is_some();
        has_keys || self.remembered.names.iter().any(|name| founders.member(name).is_some())
    }

    /// Whether what the folder knew when it was full in `from` is enough in `to`: its authority was in all committees
    /// between, and none was so much smaller than an earlier one that those who know nothing of an order decide. An
    /// authority that was away for an epoch knows nothing of its votes.
    fn stays(&self, from: Epoch, to: Epoch) -> bool {
        let is_between = |committee: &&Arc<Committee>| (from..=to).contains(&committee.epoch());
        let all: Vec<_> = self.committees.iter().filter(is_between).collect();
        // The first is compared with itself.
        let may_stay = |after: &&Arc<Committee>| {
            all.iter().take_while(|before| before.epoch() <= after.epoch()).all(|before| may_stay(before, after))
        };
        from <= to && all.iter().all(|committee| self.is_in(committee) && may_stay(committee))
    }

    /// Whether this authority is a member of a committee, by its keys or by a name that it has voted under: its
    /// operator may have removed those keys.
    fn is_in(&self, committee: &Committee) -> bool {
        let mut names = self.remembered.names.iter();
        self.keys_in(committee.epoch()).is_some() || names.any(|name| committee.member(name).is_some())
    }

    /// The current epoch, if this authority is a member of it whose folder is not full: it votes there once it has
    /// joined.
    #[must_use]
    pub fn joins(&self) -> Option<Epoch> {
        let epoch = self.epoch();
        let must = self.member_keys().is_some() && self.unrecovered.is_none() && self.full_since.is_none();
        (must && epoch > self.committees.counting_since()).then_some(epoch)
    }

    /// The epoch that it joins, if its shards have not followed the contract to its installation; the next one, if no
    /// committee lists its keys. It executes nothing before that: it may not have read what the members of the epoch
    /// before have voided.
    #[must_use]
    pub fn observes(&self) -> Option<Epoch> {
        let next = self.is_outsider.then_some(Epoch(self.epoch().0.saturating_add(1)));
        next.or_else(|| self.joins().filter(|_| self.is_ahead))
    }

    /// Whether no known committee lists any of its keys.
    #[must_use]
    pub fn is_outsider(&self) -> bool {
        self.is_outsider
    }

    /// The same status once all shards have joined an epoch, on disk.
    ///
    /// # Errors
    /// As [`VoterStatus::new`].
    pub fn having_joined(&self, epoch: Epoch) -> Result<Self, VoterStatusError> {
        let joined = self.remembered.joined.max(Some(epoch));
        let remembered = Remembered { joined, ..self.remembered.clone() };
        Ok(self.with_remembered(self.committees.clone(), remembered)?.ahead(self.is_ahead))
    }

    fn with_remembered(&self, committees: Committees, remembered: Remembered) -> Result<Self, VoterStatusError> {
        let status = Self::of(committees, self.keys.clone(), &remembered, self.is_observer)?;
        Ok(status.with_rollback_protection(self.protection.clone()))
    }

    /// The same status where `is_ahead` says whether the newest committee was read from the contract before the shards
    /// followed the contract to its installation. They have not closed the epoch before then, and nothing is voted for.
    #[must_use]
    pub fn ahead(self, is_ahead: bool) -> Self {
        Self { is_ahead, ..self }
    }

    /// Whether the newest committee is known before the shards have followed the contract to its installation.
    #[must_use]
    pub fn is_ahead(&self) -> bool {
        self.is_ahead
    }

    /// The current epoch, if this authority votes in it once its shards have followed the contract to its installation.
    #[must_use]
    pub fn awaited(&self) -> Option<Epoch> {
        (self.is_ahead && self.voter.is_some()).then(|| self.epoch())
    }

    /// The same status with a possible gap in the memory: the protection then limits the votes.
    #[must_use]
    pub fn with_rollback_protection(self, protection: Option<Arc<RollbackProtection>>) -> Self {
        Self { protection, ..self }
    }

    /// Whether it votes for every order of the current epoch. A restored authority does not.
    #[must_use]
    pub fn votes_for_all(&self) -> bool {
        self.voter().is_some() && self.rollback_protection().is_none()
    }

    /// The protection, if the memory may have a gap.
    #[must_use]
    pub fn rollback_protection(&self) -> Option<&Arc<RollbackProtection>> {
        self.protection.as_ref()
    }

    /// All committees known here.
    #[must_use]
    pub fn committees(&self) -> &Committees {
        &self.committees
    }

    /// The epoch that votes are for.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.committees.current().epoch()
    }

    /// The keys that vote in the current epoch, or `None` if this authority has no vote in it.
    #[must_use]
    pub fn voter(&self) -> Option<&Arc<AuthorityKeys>> {
        self.voter.as_ref().filter(|_| !self.is_ahead)
    }

    /// The keys that vote in the current epoch.
    ///
    /// # Errors
    /// [`Refusal::UnknownEpoch`] until its shards have followed the contract to its installation, or have joined it,
    /// and [`Refusal::NotVoting`] if this authority has no vote in it.
    pub fn votes(&self) -> Result<&Arc<AuthorityKeys>, Refusal> {
        let joins = || self.joins().or_else(|| self.observes()).filter(|_| self.protection.is_none());
        let refusal = || self.awaited().or_else(joins).map_or(Refusal::NotVoting(self.epoch()), Refusal::UnknownEpoch);
        self.voter().ok_or_else(refusal)
    }

    /// The newest recovery, unless this authority's journals begin from the checkpoint that it adopted.
    #[must_use]
    pub fn unrecovered(&self) -> Option<Recovery> {
        self.unrecovered
    }

    /// The keys of this authority in the current committee, whether or not they vote.
    #[must_use]
    pub fn member_keys(&self) -> Option<&Arc<AuthorityKeys>> {
        self.keys_in(self.epoch())
    }

    /// The keys of this authority in an epoch that has ended, if it knows all that it voted for under them: it says so
    /// in its Closing. One that was restored from an older copy does not.
    #[must_use]
    pub fn closes(&self, epoch: Epoch) -> Option<&Arc<AuthorityKeys>> {
        let is_whole = self.is_full_in(epoch) && self.unrecovered.is_none() && self.protection.is_none();
        let has_ended = epoch < self.epoch() && epoch >= self.committees.counting_since() && !self.is_ahead;
        self.keys_in(epoch).filter(|_| is_whole && has_ended)
    }

    /// The keys under which this authority is a member of an epoch.
    #[must_use]
    pub fn keys_in(&self, epoch: Epoch) -> Option<&Arc<AuthorityKeys>> {
        let members = self.committees.get(epoch)?.members();
        self.keys.iter().find(|keys| members.contains(&keys.public()))
    }

    /// Whether this authority is a member of the current committee under none but these names.
    #[must_use]
    pub fn is_member_only_as(&self, names: &[AuthorityName]) -> bool {
        let members = self.committees.current().members();
        let mut own = self.keys.iter().map(|keys| keys.public()).filter(|pair| members.contains(pair));
        own.all(|pair| names.contains(&pair.name))
    }

    /// Whether the member of this name in this epoch is this authority. Another authority may have registered this
    /// one's voting key with a redemption key of its own.
    #[must_use]
    pub fn is_own(&self, epoch: Epoch, name: &AuthorityName) -> bool {
        let member = self.committees.get(epoch).and_then(|committee| committee.member(name));
        member.is_some_and(|(_, member)| self.keys.iter().any(|keys| keys.public() == *member))
    }

    /// This authority's keys as listed in the newest committee that it is in.
    #[must_use]
    pub fn public(&self) -> Authority {
        self.public
    }

    /// The largest quorum of any epoch, which is the largest number of votes in a certificate.
    #[must_use]
    pub fn quorum_max(&self) -> usize {
        self.committees.iter().map(|committee| committee.quorum()).max().unwrap_or_default()
    }

    /// The status of the same keys among more committees. What it has joined stays so.
    ///
    /// # Errors
    /// As [`VoterStatus::new`].
    pub fn among(&self, committees: Committees, remembered: &Remembered) -> Result<Self, VoterStatusError> {
        let joined = self.remembered.joined.max(remembered.joined);
        self.with_remembered(committees, Remembered { joined, ..remembered.clone() })
    }
}

/// A committee since which all votes count, and whose members may not stay in `after`, a later one: all members of that
/// one join. None if those who stay go on.
#[must_use]
pub fn all_join_in<'a>(committees: &'a Committees, after: &Committee) -> Option<&'a Committee> {
    let counting = committees.counting_since()..after.epoch();
    let before = committees.iter().filter(|committee| counting.contains(&committee.epoch()));
    all_join_after(before.map(|committee| &**committee), after)
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_testkit::secret;

    fn pair(number: u64) -> Arc<AuthorityKeys> {
        Arc::new(AuthorityKeys::from_secrets(secret(3, number), secret(4, number)).unwrap())
    }

    fn committee(epoch: u64, numbers: [u64; 4]) -> Committee {
        Committee::new(Epoch(epoch), numbers.map(|number| pair(number).public()).to_vec()).unwrap()
    }

    fn committees(lists: &[[u64; 4]]) -> Committees {
        let mut all = Committees::new(committee(0, lists[0])).unwrap();
        (1..).zip(&lists[1..]).for_each(|(epoch, list)| all.install(committee(epoch, *list)).unwrap());
        all
    }

    fn names(numbers: &[u64]) -> Vec<AuthorityName> {
        numbers.iter().map(|number| pair(*number).public().name).collect()
    }

    fn remembered(numbers: &[u64]) -> Remembered {
        names(numbers).as_slice().into()
    }

    fn voter(lists: &[[u64; 4]], keys: &[u64], remembered_as: &[u64]) -> Option<AuthorityName> {
        let keys = keys.iter().map(|number| pair(*number)).collect();
        let voter_status = VoterStatus::new(committees(lists), keys, &remembered(remembered_as)).unwrap();
        voter_status.voter().map(|keys| keys.public().name)
    }

    const FIRST: [u64; 4] = [1, 2, 3, 4];
    const SECOND: [u64; 4] = [11, 12, 13, 14];

    #[test]
    fn the_keys_of_the_current_epoch_vote() {
        assert_eq!(voter(&[FIRST], &[1, 11], &[1]), Some(names(&[1])[0]));
        assert_eq!(voter(&[FIRST, SECOND], &[11, 1], &[1]), Some(names(&[11])[0]));
        assert_eq!(voter(&[FIRST, SECOND], &[1, 11], &[1]), Some(names(&[11])[0]));
        assert_eq!(voter(&[FIRST, SECOND], &[11], &[1, 11]), Some(names(&[11])[0]));
        // Old keys that stay are found in the newest committee, too.
        assert_eq!(voter(&[FIRST, [1, 12, 13, 14]], &[1], &[1]), Some(names(&[1])[0]));
    }

    #[test]
    fn an_authority_outside_the_current_epoch_has_no_vote_and_keeps_its_name() {
        let keys = vec![pair(1)];
        let voter_status = VoterStatus::new(committees(&[FIRST, SECOND]), keys, &remembered(&[1])).unwrap();
        assert!(voter_status.voter().is_none());
        assert_eq!((voter_status.public(), voter_status.epoch()), (pair(1).public(), Epoch(1)));
    }

    #[test]
    fn a_memory_that_begins_after_epoch_0_does_not_vote() {
        assert_eq!(voter(&[FIRST, SECOND], &[11], &[11]), None);
        assert_eq!(voter(&[FIRST, [1, 2, 3, 5]], &[5], &[5]), None);
        assert_eq!(voter(&[FIRST, [1, 2, 3, 5]], &[3], &[3]), Some(names(&[3])[0]));
    }

    /// In which epochs a folder made for these names, which has joined `joined`, is full, and whether it joins the
    /// current one.
    fn full(
        lists: &[Vec<u64>],
        keys: &[u64],
        remembered_as: &[u64],
        joined: Option<u64>,
    ) -> (Vec<bool>, Option<Epoch>, bool) {
        let status = status(lists, keys, remembered_as, joined);
        let full = (0..lists.len() as u64).map(|epoch| status.is_full_in(Epoch(epoch))).collect();
        (full, status.joins(), status.voter().is_some())
    }

    fn status(lists: &[Vec<u64>], keys: &[u64], remembered_as: &[u64], joined: Option<u64>) -> VoterStatus {
        let all = |list: &[u64]| list.iter().map(|number| pair(*number).public()).collect::<Vec<_>>();
        let of = |(epoch, list): (u64, &Vec<u64>)| Committee::new(Epoch(epoch), all(list)).unwrap();
        let mut committees = Committees::new(of((0, &lists[0]))).unwrap();
        (1..).zip(&lists[1..]).for_each(|next| committees.install(of(next)).unwrap());
        let keys = keys.iter().map(|number| pair(*number)).collect();
        let remembered = Remembered { joined: joined.map(Epoch), ..remembered(remembered_as) };
        VoterStatus::new(committees, keys, &remembered).unwrap()
    }

    #[test]
    fn a_member_whose_folder_is_not_full_joins_and_votes_from_then_on_while_it_stays() {
        let (joins, votes) = (|epoch| Some(Epoch(epoch)), (None, true));
        let lists = |lists: &[&[u64]]| lists.iter().map(|list| list.to_vec()).collect::<Vec<_>>();
        let told = |lists: &[Vec<u64>], key: u64, joined| {
            let (_, joins, votes) = full(lists, &[key], &[key], joined);
            (joins, votes)
        };
        // A new member.
        let two = lists(&[&FIRST, &[1, 2, 3, 5]]);
        assert_eq!(told(&two, 5, None), (joins(1), false));
        assert_eq!(told(&two, 5, Some(1)), votes);
        assert_eq!(told(&two, 3, None), votes);
        assert_eq!(told(&two, 4, None), (None, false), "it has left");
        // It stays, and closes what it joined.
        let three = lists(&[&FIRST, &[1, 2, 3, 5], &[1, 2, 15, 5]]);
        assert_eq!(full(&three, &[5], &[5], Some(1)), (vec![false, true, true], None, true));
        assert_eq!(full(&three, &[5], &[5], None), (vec![false, false, false], joins(2), false));
        assert_eq!(full(&three, &[3, 15], &[3], None), (vec![true, true, true], None, true), "new keys");
        // It was away for an epoch, and joins again.
        let back = lists(&[&FIRST, &[1, 2, 3, 5], &FIRST]);
        assert_eq!(full(&back, &[4], &[4], None), (vec![true, false, false], joins(2), false));
        assert_eq!(full(&back, &[4], &[4], Some(2)), (vec![true, false, true], None, true));
        assert_eq!(told(&back, 5, Some(1)), (None, false));
        // Those who stay in a larger or a somewhat smaller committee go on. In a much smaller one, those who know
        // nothing of an order would decide, also if it shrinks step by step.
        let sizes = lists(&[&FIRST, &[1, 2, 3, 4, 5], &[1, 2, 3, 4]]);
        assert_eq!(full(&sizes, &[1], &[1], None), (vec![true; 3], None, true));
        let seven: &[u64] = &[1, 2, 3, 4, 5, 6, 7];
        for smaller in [lists(&[seven, &FIRST]), lists(&[seven, &seven[..5], &FIRST])] {
            let last = smaller.len() as u64 - 1;
            let (mut is_full, now, votes) = full(&smaller, &[1], &[1], None);
            assert_eq!((is_full.pop(), now, votes), (Some(false), joins(last), false));
            assert!(is_full.iter().all(|full| *full));
            assert_eq!(told(&smaller, 1, Some(last)), (None, true));
            let all = |lists: &[Vec<u64>]| {
                let known = status(lists, &[1], &[1], None).committees().clone();
                all_join_in(&known, known.current()).map(|before| before.members().len())
            };
            assert_eq!(all(&smaller), Some(7));
            // All have joined then, and what was before counts no more.
            let later = [smaller, lists(&[&FIRST, &[1, 2, 3, 5]])].concat();
            assert_eq!(all(&later), None);
        }
        assert_eq!(full(&sizes[..2], &[5], &[5], Some(1)), (vec![false, true], None, true));
    }

    #[test]
    fn a_member_that_joins_is_asked_again_later_executes_nothing_before_and_closes_what_it_joined() {
        let lists = [FIRST, [1, 2, 3, 5]];
        let joiner = VoterStatus::new(committees(&lists), vec![pair(5)], &remembered(&[5])).unwrap();
        assert_eq!(joiner.votes().err(), Some(Refusal::UnknownEpoch(Epoch(1))));
        assert_eq!((joiner.observes(), joiner.clone().ahead(true).observes()), (None, Some(Epoch(1))));
        let folder = tempfile::tempdir().unwrap();
        let floors = crate::authority::rollback::VoteFloors::open(folder.path()).unwrap();
        let protection = Some(Arc::new(RollbackProtection::new(floors).0));
        let restored = joiner.clone().with_rollback_protection(protection);
        assert_eq!(restored.votes().err(), Some(Refusal::NotVoting(Epoch(1))));
        let joined = joiner.having_joined(Epoch(1)).unwrap();
        assert_eq!((joined.votes_for_all(), joined.joins(), joined.observes()), (true, None, None));
        assert_eq!([&joiner, &joined].map(VoterStatus::full_since), [None, Some(Epoch(1))]);
        assert!(joiner.clone().ahead(true).having_joined(Epoch(1)).unwrap().voter().is_none(), "still ahead");
        // It goes on in later epochs, and what it joined is not forgotten with what the folder remembers.
        let next = joined.among(committees(&[FIRST, [1, 2, 3, 5], SECOND]), &remembered(&[5])).unwrap();
        assert_eq!((next.closes(Epoch(1)).is_some(), next.closes(Epoch(0)).is_some()), (true, false));
        let unjoined = joiner.among(committees(&[FIRST, [1, 2, 3, 5], SECOND]), &remembered(&[5])).unwrap();
        assert!(unjoined.closes(Epoch(1)).is_none());
        // A recovery ends what was joined before it.
        let mut all = committees(&[FIRST, [1, 2, 3, 5], [1, 2, 3, 5]]);
        let adopted = Some(Digest::repeat_byte(7));
        all.recover(Recovery { epoch: Epoch(2), adopted }).unwrap();
        let begun = Remembered { adopted, ..remembered(&[15]) };
        let status = |keys: u64, joined| {
            let remembered = Remembered { joined, ..begun.clone() };
            VoterStatus::new(all.clone(), vec![pair(keys)], &remembered).unwrap()
        };
        assert!(status(5, None).voter().is_some() && !status(5, None).is_full_in(Epoch(1)));
        assert!(!status(5, Some(Epoch(1))).is_full_in(Epoch(1)));
    }

    #[test]
    fn an_observer_executes_nothing_until_a_committee_lists_it_and_joins_then() {
        let of = |lists: &[[u64; 4]], is_observer| {
            VoterStatus::of(committees(lists), vec![pair(5)], &remembered(&[5]), is_observer)
        };
        assert_eq!(of(&[FIRST], false).err(), Some(VoterStatusError::NotAMember(names(&[5])[0])));
        let observer = of(&[FIRST], true).unwrap();
        assert_eq!((observer.observes(), observer.joins(), observer.full_since()), (Some(Epoch(1)), None, None));
        assert_eq!((observer.public(), observer.is_outsider()), (pair(5).public(), true));
        assert_eq!(observer.votes().err(), Some(Refusal::UnknownEpoch(Epoch(1))));
        assert!(observer.closes(Epoch(0)).is_none() && observer.member_keys().is_none());
        let next = [FIRST, [1, 2, 3, 5]];
        let listed = observer.among(committees(&next), &remembered(&[5])).unwrap();
        assert_eq!((listed.observes(), listed.joins(), listed.is_outsider()), (None, Some(Epoch(1)), false));
        let passed_over = observer.among(committees(&[FIRST, SECOND]), &remembered(&[5])).unwrap();
        assert_eq!((passed_over.observes(), passed_over.joins()), (Some(Epoch(2)), None));
        // A member with another redemption key is a mistake all the same.
        let other = VoterStatus::of(committees(&[FIRST]), vec![mixed(1, 9)], &remembered(&[1]), true);
        assert_eq!(other.err(), Some(VoterStatusError::OtherRedemptionKey(names(&[1])[0])));
    }

    #[test]
    fn after_a_recovery_who_begins_from_the_adopted_checkpoint_votes_and_nobody_else() {
        let adopted = Digest::repeat_byte(7);
        let vote = |lists: &[[u64; 4]], at: Option<Digest>, keys: &[u64], remembered: Remembered| {
            let mut all = committees(lists);
            all.recover(Recovery { epoch: Epoch(1), adopted: at }).unwrap();
            let keys = keys.iter().map(|number| pair(*number)).collect();
            let voter_status = VoterStatus::new(all, keys, &remembered).unwrap();
            assert_eq!(voter_status.votes_for_all(), voter_status.voter().is_some());
            let waits = voter_status.unrecovered().is_some();
            assert!(!waits || voter_status.voter().is_none());
            (voter_status.voter().map(|keys| keys.public().name), waits)
        };
        let begun = |numbers: &[u64], adopted| Remembered { names: names(numbers), adopted, joined: None };
        let second = [FIRST, SECOND];
        // Not adopted, not begun, begun from another one: also who remembers epoch 0.
        assert_eq!(vote(&second, None, &[1, 11], begun(&[1], None)), (None, true));
        assert_eq!(vote(&second, Some(adopted), &[1, 11], begun(&[1], None)), (None, true));
        let other = Some(Digest::repeat_byte(8));
        assert_eq!(vote(&second, Some(adopted), &[1, 11], begun(&[1], other)), (None, true));
        assert_eq!(vote(&second, None, &[1, 11], begun(&[1], other)), (None, true));
        // The same operators, and new ones.
        let new = Some(names(&[11])[0]);
        assert_eq!(vote(&second, Some(adopted), &[1, 11], begun(&[1], Some(adopted))), (new, false));
        assert_eq!(vote(&second, Some(adopted), &[11], begun(&[11], Some(adopted))), (new, false));
        assert_eq!(vote(&second, Some(adopted), &[1], begun(&[1], Some(adopted))), (None, false));
        // Later rotations: the memory begins with the recovery's epoch.
        let third = [FIRST, SECOND, [11, 22, 23, 1]];
        assert_eq!(vote(&third, Some(adopted), &[11], begun(&[1, 11], Some(adopted))), (new, false));
        assert_eq!(vote(&third, Some(adopted), &[22], begun(&[12, 22], Some(adopted))), (Some(names(&[22])[0]), false));
        assert_eq!(vote(&third, Some(adopted), &[22], begun(&[22], Some(adopted))), (None, false));
        assert_eq!(vote(&third, Some(adopted), &[1], begun(&[1], Some(adopted))), (None, false));
    }

    #[test]
    fn a_member_that_knows_all_its_votes_closes_an_epoch_that_has_ended_and_nobody_else_does() {
        let status = |keys: &[u64], remembered_as: &[u64]| {
            let keys = keys.iter().map(|number| pair(*number)).collect();
            let all = committees(&[FIRST, SECOND, [11, 12, 13, 24]]);
            VoterStatus::new(all, keys, &remembered(remembered_as)).unwrap()
        };
        let closes = |status: &VoterStatus, epoch| status.closes(Epoch(epoch)).map(|keys| keys.public().name);
        let name = |number| Some(names(&[number])[0]);
        let whole = status(&[1, 11], &[1]);
        assert_eq!([0, 1, 2, 3].map(|epoch| closes(&whole, epoch)), [name(1), name(11), None, None]);
        // It left with epoch 2, or its operator has removed the keys of an earlier one.
        assert_eq!([0, 1].map(|epoch| closes(&status(&[4, 14], &[4]), epoch)), [name(4), name(14)]);
        assert_eq!([0, 1].map(|epoch| closes(&status(&[11], &[1]), epoch)), [None, name(11)]);
        // Its memory begins later, or may have a gap, or its shards have not followed so far.
        assert_eq!([0, 1].map(|epoch| closes(&status(&[11], &[11]), epoch)), [None, None]);
        let folder = tempfile::tempdir().unwrap();
        let floors = crate::authority::rollback::VoteFloors::open(folder.path()).unwrap();
        let restored = whole.clone().with_rollback_protection(Some(Arc::new(RollbackProtection::new(floors).0)));
        assert_eq!(closes(&restored, 1), None);
        assert_eq!(closes(&whole.clone().ahead(true), 1), None);
        // A recovery ends the epochs before it, and what was voted for in them.
        let mut all = whole.committees().clone();
        all.recover(Recovery { epoch: Epoch(1), adopted: None }).unwrap();
        assert_eq!(closes(&whole.among(all.clone(), &remembered(&[1])).unwrap(), 1), None);
        let adopted = Some(Digest::repeat_byte(7));
        all.recover(Recovery { epoch: Epoch(1), adopted }).unwrap();
        let begun = Remembered { names: names(&[1]), adopted, joined: None };
        let recovered = whole.among(all, &begun).unwrap();
        assert_eq!([0, 1].map(|epoch| closes(&recovered, epoch)), [None, name(11)]);
    }

    #[test]
    fn a_folder_says_nothing_of_votes_under_keys_that_it_was_not_made_for() {
        let is_only = |keys: [u64; 2], made_for: &[u64]| {
            let keys = keys.map(pair).to_vec();
            let voter_status = VoterStatus::new(committees(&[FIRST]), keys, &remembered(made_for)).unwrap();
            voter_status.is_member_only_as(&names(made_for))
        };
        assert!(is_only([1, 11], &[1]) && is_only([11, 1], &[1]));
        assert!(!is_only([1, 11], &[11]) && !is_only([11, 1], &[11]) && !is_only([1, 2], &[1]));
    }

    /// The voting key of one pair and the redemption key of another.
    fn mixed(voting: u64, redemption: u64) -> Arc<AuthorityKeys> {
        Arc::new(AuthorityKeys::from_secrets(secret(3, voting), secret(4, redemption)).unwrap())
    }

    fn after_founders(next: Vec<Authority>) -> Committees {
        let mut all = committees(&[FIRST]);
        all.install(Committee::new(Epoch(1), next).unwrap()).unwrap();
        all
    }

    #[test]
    fn a_redemption_key_that_changes_beside_its_voting_key_is_followed() {
        let next = [1, 2, 3, 4].map(|number| mixed(number, number + 20).public());
        let all = after_founders(next.to_vec());
        let voter_status = |keys: Vec<Arc<AuthorityKeys>>| {
            VoterStatus::new(all.clone(), keys, &remembered(&[1])).unwrap().voter().cloned()
        };
        let new = Some(mixed(1, 21).public());
        for keys in [vec![mixed(1, 21)], vec![pair(1), mixed(1, 21)], vec![mixed(1, 21), pair(1)]] {
            assert_eq!(voter_status(keys).map(|keys| keys.public()), new);
        }
        assert!(voter_status(vec![pair(1)]).is_none(), "its pair is of epoch 0 alone");
    }

    #[test]
    fn a_member_that_registers_the_voting_key_of_another_does_not_stop_it() {
        // Authority 4 registers authority 1's old voting key with a redemption key of its own.
        let rogue = mixed(1, 99).public();
        let next = vec![pair(11).public(), pair(12).public(), pair(13).public(), rogue];
        let all = after_founders(next);
        let victim = VoterStatus::new(all.clone(), vec![pair(1), pair(11)], &remembered(&[1])).unwrap();
        assert_eq!(victim.voter().map(|keys| keys.public()), Some(pair(11).public()));
        assert!(victim.is_own(Epoch(0), &rogue.name) && !victim.is_own(Epoch(1), &rogue.name));
        assert!(victim.is_own(Epoch(1), &pair(11).public().name) && !victim.is_own(Epoch(2), &rogue.name));
        let behind = VoterStatus::new(all, vec![pair(1)], &remembered(&[1])).unwrap();
        assert!(behind.voter().is_none());
    }

    #[test]
    fn keys_of_no_member_are_refused_with_the_reason() {
        let new = |keys: Vec<Arc<AuthorityKeys>>| {
            VoterStatus::new(committees(&[FIRST, SECOND]), keys, &Remembered::default()).err()
        };
        assert_eq!(new(vec![pair(9)]), Some(VoterStatusError::NotAMember(names(&[9])[0])));
        assert_eq!(new(Vec::new()), Some(VoterStatusError::NoKeys));
        assert_eq!(new(vec![mixed(11, 12)]), Some(VoterStatusError::OtherRedemptionKey(names(&[11])[0])));
    }
}
