//! The authority's own identity: the committees that it knows, and which of its keys vote now.
//!
//! Keys change with the epoch, the memory does not: an account stays locked on its order across a rotation, so that
//! order alone gets its vote again under the new key.

use std::sync::Arc;

use fastpay_core::{Authority, AuthorityKeys, AuthorityName, Committees, Epoch};
use tokio::sync::watch;

use crate::authority::rollback::RollbackProtection;

/// A receiver of this authority's voter status and its changes.
pub type VoterStatusWatch = watch::Receiver<Arc<VoterStatus>>;

/// Why the configured keys cannot be used.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum VoterStatusError {
    /// No configured key is a member's.
    #[error("authority {0} is not a member of the committee; check the configured keys and contract")]
    NotAMember(AuthorityName),
    /// No committee lists any of these pairs, but one lists a voting key of them with another redemption key.
    #[error("the committee lists another redemption key for authority {0}; configure the key that was deployed")]
    OtherRedemptionKey(AuthorityName),
    /// No keys at all.
    #[error("no keys are configured")]
    NoKeys,
}

/// The committees known at one time, and this authority's place in them.
#[derive(Clone)]
pub struct VoterStatus {
    committees: Committees,
    keys: Vec<Arc<AuthorityKeys>>,
    voter: Option<Arc<AuthorityKeys>>,
    public: Authority,
    protection: Option<Arc<RollbackProtection>>,
}

impl VoterStatus {
    /// The status of the holder of `keys`.
    ///
    /// `remembered` are the names that its data folder was made for and has voted under. It votes only if one of them
    /// is a member of epoch 0: a memory that begins later lacks the votes before, and there is no way yet to transfer
    /// those.
    ///
    /// A pair counts as a whole: another member may list one of these voting keys with a redemption key of its own, and
    /// an authority may change one key of its pair.
    ///
    /// # Errors
    /// If no known committee lists any of the pairs.
    pub fn new(
        committees: Committees,
        keys: Vec<Arc<AuthorityKeys>>,
        remembered: &[AuthorityName],
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
        let (epoch, newest) = newest.ok_or(refusal)?;
        let founders = committees.get(Epoch(0)).ok_or(VoterStatusError::NotAMember(first.name))?;
        let remembers_all = remembered.iter().any(|name| founders.member(name).is_some());
        let votes = epoch == committees.current().epoch() && remembers_all;
        let (voter, public) = (votes.then(|| newest.clone()), newest.public());
        Ok(Self { committees, keys, voter, public, protection: None })
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
        self.voter.as_ref()
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

    /// The status of the same keys among more committees.
    ///
    /// # Errors
    /// As [`VoterStatus::new`].
    pub fn among(&self, committees: Committees, remembered: &[AuthorityName]) -> Result<Self, VoterStatusError> {
        Ok(Self::new(committees, self.keys.clone(), remembered)?.with_rollback_protection(self.protection.clone()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use fastpay_core::Committee;
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

    fn voter(lists: &[[u64; 4]], keys: &[u64], remembered: &[u64]) -> Option<AuthorityName> {
        let keys = keys.iter().map(|number| pair(*number)).collect();
        let voter_status = VoterStatus::new(committees(lists), keys, &names(remembered)).unwrap();
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
        let voter_status = VoterStatus::new(committees(&[FIRST, SECOND]), keys, &names(&[1])).unwrap();
        assert!(voter_status.voter().is_none());
        assert_eq!((voter_status.public(), voter_status.epoch()), (pair(1).public(), Epoch(1)));
    }

    #[test]
    fn a_memory_that_begins_after_epoch_0_does_not_vote() {
        assert_eq!(voter(&[FIRST, SECOND], &[11], &[11]), None);
        assert_eq!(voter(&[FIRST, [1, 2, 3, 5]], &[5], &[5]), None);
        assert_eq!(voter(&[FIRST, [1, 2, 3, 5]], &[3], &[3]), Some(names(&[3])[0]));
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
        let voter_status =
            |keys: Vec<Arc<AuthorityKeys>>| VoterStatus::new(all.clone(), keys, &names(&[1])).unwrap().voter().cloned();
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
        let victim = VoterStatus::new(all.clone(), vec![pair(1), pair(11)], &names(&[1])).unwrap();
        assert_eq!(victim.voter().map(|keys| keys.public()), Some(pair(11).public()));
        assert!(victim.is_own(Epoch(0), &rogue.name) && !victim.is_own(Epoch(1), &rogue.name));
        assert!(victim.is_own(Epoch(1), &pair(11).public().name) && !victim.is_own(Epoch(2), &rogue.name));
        let behind = VoterStatus::new(all, vec![pair(1)], &names(&[1])).unwrap();
        assert!(behind.voter().is_none());
    }

    #[test]
    fn keys_of_no_member_are_refused_with_the_reason() {
        let new = |keys: Vec<Arc<AuthorityKeys>>| VoterStatus::new(committees(&[FIRST, SECOND]), keys, &[]).err();
        assert_eq!(new(vec![pair(9)]), Some(VoterStatusError::NotAMember(names(&[9])[0])));
        assert_eq!(new(Vec::new()), Some(VoterStatusError::NoKeys));
        assert_eq!(new(vec![mixed(11, 12)]), Some(VoterStatusError::OtherRedemptionKey(names(&[11])[0])));
    }
}
