//! The members of one cluster, which the genesis fixes, and how many of them decide.

use fastpay_core::{COMMITTEE_SIZE_MAX, COMMITTEE_SIZE_MIN, is_safe_ed25519_key, quorum_of};

use crate::identity::{ClusterId, Deployment, MemberIndex, MemberKey};

/// The members of a cluster of a deployment, each with one vote, in the order of their keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Members {
    deployment: Deployment,
    cluster: ClusterId,
    keys: Vec<MemberKey>,
}

impl Members {
    /// The members with these keys, in any order.
    ///
    /// # Errors
    /// See [`MembersError`].
    pub fn new(deployment: Deployment, cluster: ClusterId, mut keys: Vec<MemberKey>) -> Result<Self, MembersError> {
        if !(COMMITTEE_SIZE_MIN..=COMMITTEE_SIZE_MAX).contains(&keys.len()) {
            return Err(MembersError::Size(keys.len()));
        }
        keys.sort_unstable();
        if let Some([twice, _]) = keys.array_windows().find(|[a, b]| a == b) {
            return Err(MembersError::Repeated(*twice));
        }
        if let Some(unsafe_key) = keys.iter().find(|key| !is_safe_ed25519_key(&key.0)) {
            return Err(MembersError::UnsafeKey(*unsafe_key));
        }
        Ok(Self { deployment, cluster, keys })
    }

    /// The deployment.
    #[must_use]
    pub fn deployment(&self) -> Deployment {
        self.deployment
    }

    /// The cluster.
    #[must_use]
    pub fn cluster(&self) -> ClusterId {
        self.cluster
    }

    /// The keys, in their order.
    #[must_use]
    pub fn keys(&self) -> &[MemberKey] {
        &self.keys
    }

    /// The number of votes that decide. Any two quorums share an honest member, for every number of members.
    #[must_use]
    pub fn quorum(&self) -> usize {
        quorum_of(self.keys.len())
    }

    /// The key of a member, or `None` if there is no such member.
    #[must_use]
    pub fn key(&self, index: MemberIndex) -> Option<MemberKey> {
        self.keys.get(usize::from(index.0)).copied()
    }

    /// The member with this key.
    #[must_use]
    pub fn index(&self, key: &MemberKey) -> Option<MemberIndex> {
        u8::try_from(self.keys.binary_search(key).ok()?).ok().map(MemberIndex)
    }
}

/// Why keys are not those of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MembersError {
    /// Too few or too many.
    #[error("a cluster has {COMMITTEE_SIZE_MIN} to {COMMITTEE_SIZE_MAX} members, not {0}")]
    Size(usize),
    /// One key would have two votes.
    #[error("the key {0} is listed twice")]
    Repeated(MemberKey),
    /// Of small order or malformed.
    #[error("the key {0} is not a safe Ed25519 key: anybody could vote in its name; make another one")]
    UnsafeKey(MemberKey),
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::identity::MemberKeys;
    use fastpay_core::Digest;

    fn keys(count: u8) -> Vec<MemberKey> {
        (0..count).map(|seed| MemberKeys::from_seed([seed; 32]).public()).collect()
    }

    fn members(keys: Vec<MemberKey>) -> Result<Members, MembersError> {
        Members::new(Deployment(Digest::ZERO), ClusterId(1), keys)
    }

    #[test]
    fn unfit_keys_are_refused() {
        assert_eq!(members(keys(3)), Err(MembersError::Size(3)));
        assert_eq!(members(vec![MemberKey([0; 32]); 256]), Err(MembersError::Size(256)));
        let repeated = [keys(4), keys(1)].concat();
        assert_eq!(members(repeated), Err(MembersError::Repeated(keys(1)[0])));
        // The neutral element, and no point.
        let neutral = MemberKey(std::array::from_fn(|at| u8::from(at == 0)));
        for unsafe_key in [neutral, MemberKey([2; 32])] {
            let found = members([keys(4), vec![unsafe_key]].concat());
            assert_eq!(found, Err(MembersError::UnsafeKey(unsafe_key)));
        }
    }

    #[test]
    fn members_are_found_by_key_and_by_index_whatever_the_order_of_the_list() {
        let mut list = keys(7);
        list.reverse();
        let members = members(list.clone()).unwrap();
        assert_eq!(members.quorum(), 5);
        for key in list {
            assert_eq!(members.key(members.index(&key).unwrap()), Some(key));
        }
        assert_eq!(members.key(MemberIndex(7)), None);
        assert_eq!(members.index(&MemberKey([9; 32])), None);
    }
}
