//! The authority's own identity: the committees that it knows, and which of its keys vote now.
//!
//! Keys change with the epoch, the memory does not: an account stays locked on its order across a rotation, so that
//! order alone gets its vote again under the new key. A recovery ends that memory, whether the committee was lost or
//! keys of too many members were stolen: everybody begins from the checkpoint that the contract adopts, and until then
//! nobody votes.
//!
//! A folder is *full* in an epoch if its authority may sign everything there: with the same keys it was in every committee
//! since the first one, or since the epoch that it joined (`fastpay_core::handover::full_since`). A member whose folder
//! is not full joins (`handover`). One whose folder may lack votes signs only what the rollback protection allows, and
//! joins the epoch after those of which it lacks some.

use std::sync::Arc;

use fastpay_core::handover::{Stale, Term, all_join_after, full_since};
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
    /// An epoch since which it was full when it last said so.
    pub full_since: Option<Epoch>,
    /// Whether it may lack votes.
    pub stale: Stale,
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
    /// It votes only if its folder is full: a remembered name is a member of epoch 0, or it has joined an epoch, and
    /// with the same keys it was in every committee since. A recovery ends all votes before it. After one, the epoch
    /// that was installed takes the place of epoch 0, and it votes only if its journals begin from the adopted
    /// checkpoint.
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
        let newest = newest.clone();
        let mut status = Self {
            committees,
            keys,
            remembered: remembered.clone(),
            is_observer,
            is_outsider: epoch.is_none(),
            full_since: None,
            voter: None,
            is_ahead: false,
            public: newest.public(),
            unrecovered,
            protection: None,
        };
        status.full_since = status.full_from(status.epoch());
        // The rollback protection may let one vote that lacks votes.
        let but_for_gaps = full_since(&status.terms(status.epoch()), status.begun(), Stale::No);
        let votes = epoch == Some(status.epoch()) && but_for_gaps.is_some() && unrecovered.is_none();
        status.voter = votes.then_some(newest);
        Ok(status)
    }

    /// Whether the folder has all that its authority must know in order to vote in an epoch.
    fn is_full_in(&self, epoch: Epoch) -> bool {
        self.full_from(epoch).is_some()
    }

    fn full_from(&self, epoch: Epoch) -> Option<Epoch> {
        full_since(&self.terms(epoch), self.begun(), self.remembered.stale)
    }

    /// The epochs in which the folder was full for sure, unless it lacks votes.
    fn begun(&self) -> impl Iterator<Item = Epoch> + use<> {
        let since = self.committees.counting_since();
        let founded = self.is_founder(since).then_some(since);
        let said =
            [self.remembered.joined, self.remembered.full_since].map(|begun| begun.filter(|begun| *begun >= since));
        founded.into_iter().chain(said.into_iter().flatten())
    }

    /// The epochs that count, up to this one.
    fn terms(&self, last: Epoch) -> Vec<Term<'_>> {
        let counting = self.committees.counting_since()..=last;
        let committees = self.committees.iter().filter(|committee| counting.contains(&committee.epoch()));
        committees.map(|committee| Term { committee, member: self.member_of(committee) }).collect()
    }

    /// Whether its folder was full in the current epoch by the rules of earlier releases, whose members went on with new
    /// keys.
    #[must_use]
    pub fn was_full(&self) -> bool {
        let mut terms = self.terms(self.epoch());
        terms.iter_mut().for_each(|term| term.member = term.member.map(|_| self.public));
        full_since(&terms, self.begun(), self.remembered.stale).is_some()
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

    /// The pair under which this authority is a member of a committee: one of its keys, or that of a name under which it has
    /// voted, whose keys its operator may have removed.
    fn member_of(&self, committee: &Committee) -> Option<Authority> {
        let own = self.keys_in(committee.epoch()).map(|keys| keys.public());
        let remembered = || self.remembered.names.iter().find_map(|name| Some(*committee.member(name)?.1));
        own.or_else(remembered)
    }

    /// The current epoch, if this authority is a member of it whose folder is not full: it votes there, and for everything,
    /// once it has joined.
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

    /// Whether it may have voted in the current epoch with another folder. It joins no such epoch, but the next one.
    #[must_use]
    pub fn is_stale(&self) -> bool {
        match self.remembered.stale {
            Stale::No => false,
            Stale::UpTo(last) => last >= self.epoch(),
            Stale::Unknown => true,
        }
    }

    /// Whether the folder may lack votes, and of which epochs.
    #[must_use]
    pub fn stale(&self) -> Stale {
        self.remembered.stale
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

    /// The same status with a possible gap in the memory: the protection then limits the votes until it has joined a later
    /// epoch.
    #[must_use]
    pub fn with_rollback_protection(mut self, protection: Option<Arc<RollbackProtection>>) -> Self {
        if protection.is_some() && self.remembered.stale == Stale::No {
            self.remembered.stale = Stale::Unknown;
            self.full_since = self.full_from(self.epoch());
        }
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
        self.protection.as_ref().filter(|_| self.full_since.is_none())
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
        let is_limited = self.rollback_protection().is_some();
        self.voter.as_ref().filter(|_| !self.is_ahead && (self.full_since.is_some() || is_limited))
    }

    /// The keys that vote in the current epoch.
    ///
    /// # Errors
    /// [`Refusal::UnknownEpoch`] until its shards have followed the contract to its installation, or have joined it,
    /// and [`Refusal::NotVoting`] if this authority has no vote in it.
    pub fn votes(&self) -> Result<&Arc<AuthorityKeys>, Refusal> {
        let joins = || self.joins().filter(|_| !self.is_stale()).or_else(|| self.observes());
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
    /// in its Closing. One that was restored from an older copy does not, nor later of an epoch of which it lacks votes.
    #[must_use]
    pub fn closes(&self, epoch: Epoch) -> Option<&Arc<AuthorityKeys>> {
        let is_whole = self.is_full_in(epoch) && self.unrecovered.is_none();
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
mod tests;
