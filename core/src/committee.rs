//! The authorities that vote in one epoch, and how many of them decide.

use std::io::{Error, ErrorKind, Read, Result as IoResult, Write};

use borsh::{BorshDeserialize, BorshSerialize};
use serde::{Deserialize, Serialize};

use crate::amount::Epoch;
use crate::identity::{AuthorityName, PrimaryAddress};
use crate::signature::EcdsaSignature;

/// The smallest committee that tolerates a Byzantine member.
pub const COMMITTEE_SIZE_MIN: usize = 4;
/// The largest committee: a member's index is one byte in the votes that the contract reads.
pub const COMMITTEE_SIZE_MAX: usize = 255;

/// One member of a committee, by its public keys.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Authority {
    /// The Ed25519 key that votes on payments.
    #[serde(rename = "votingKey")]
    pub name: AuthorityName,
    /// The Ethereum address of the secp256k1 key that votes on redemptions.
    pub redemption_key: PrimaryAddress,
}

/// The authorities of one epoch, each with one vote, in the order of their names. The contract keeps
/// them in the same order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Committee {
    epoch: Epoch,
    members: Vec<Authority>,
}

impl Committee {
    /// A committee of the given members, in any order.
    ///
    /// # Errors
    /// If the size is out of bounds, or a key is zero or used twice.
    pub fn new(epoch: Epoch, mut members: Vec<Authority>) -> Result<Self, CommitteeError> {
        if !(COMMITTEE_SIZE_MIN..=COMMITTEE_SIZE_MAX).contains(&members.len()) {
            return Err(CommitteeError::Size(members.len()));
        }
        members.sort_unstable_by_key(|member| member.name);
        let mut redemption_keys: Vec<_> = members.iter().map(|member| member.redemption_key).collect();
        redemption_keys.sort_unstable();
        if let Some(zero) = members.iter().find(|m| m.name.0 == [0; 32] || m.redemption_key.is_zero()) {
            return Err(CommitteeError::ZeroKey(zero.name));
        }
        if let Some([twice, _]) = members.array_windows().find(|[a, b]| a.name == b.name) {
            return Err(CommitteeError::RepeatedName(twice.name));
        }
        if let Some([twice, _]) = redemption_keys.array_windows().find(|[a, b]| a == b) {
            return Err(CommitteeError::RepeatedRedemptionKey(*twice));
        }
        Ok(Self { epoch, members })
    }

    /// The epoch in which this committee votes.
    #[must_use]
    pub fn epoch(&self) -> Epoch {
        self.epoch
    }

    /// The members in the order of their names.
    #[must_use]
    pub fn members(&self) -> &[Authority] {
        &self.members
    }

    /// The number of members that may be Byzantine: f = ⌊(n − 1) / 3⌋.
    #[must_use]
    pub fn faults_tolerated(&self) -> usize {
        faults_tolerated_of(self.members.len())
    }

    /// f + 1: of so many members, at least one is honest.
    #[must_use]
    pub fn one_honest(&self) -> usize {
        self.faults_tolerated().saturating_add(1)
    }

    /// The number of votes that decide: ⌊(n + f) / 2⌋ + 1, which is 2f + 1 where n = 3f + 1.
    ///
    /// Any two quorums share at least f + 1 members, so an honest one, for *every* n. (2f + 1 alone
    /// would not do: of 5 authorities, two sets of 3 may share only the Byzantine one.) And n − f
    /// honest members always suffice for a quorum.
    #[must_use]
    pub fn quorum(&self) -> usize {
        quorum_of(self.members.len())
    }

    /// The member of this name and its index, or none.
    #[must_use]
    pub fn member(&self, name: &AuthorityName) -> Option<(u8, &Authority)> {
        let index = self.members.binary_search_by_key(name, |member| member.name).ok()?;
        Some((u8::try_from(index).ok()?, self.members.get(index)?))
    }

    /// Signatures of members as the contract reads them: for each the member's index in one byte and the 65 bytes. None
    /// where one is missing, or not by a member.
    pub(crate) fn pack(
        &self,
        votes: impl ExactSizeIterator<Item = Option<(AuthorityName, EcdsaSignature)>>,
    ) -> Option<Vec<u8>> {
        let mut packed = Vec::with_capacity(votes.len().saturating_mul(66));
        for vote in votes {
            let (authority, signature) = vote?;
            let (index, _) = self.member(&authority)?;
            packed.push(index);
            packed.extend_from_slice(&signature.0);
        }
        Some(packed)
    }
}

/// Checks that voters are in the order of their names, none twice.
///
/// # Errors
/// The first one that is not after the one before.
pub(crate) fn check_sorted(mut voters: impl Iterator<Item = AuthorityName>) -> Result<(), AuthorityName> {
    let mut before = None;
    voters.try_for_each(|voter| if before.replace(voter) >= Some(voter) { Err(voter) } else { Ok(()) })
}

/// See [`Committee::faults_tolerated`].
fn faults_tolerated_of(members: usize) -> usize {
    members.saturating_sub(1) / 3
}

/// The number of votes that decide among `members`, for groups of other kinds than [`Committee`]: see
/// [`Committee::quorum`].
#[must_use]
pub fn quorum_of(members: usize) -> usize {
    members.saturating_add(faults_tolerated_of(members)) / 2 + 1
}

/// The epoch and the members, in the order of names: any other order would be a second encoding.
impl BorshSerialize for Committee {
    fn serialize<W: Write>(&self, writer: &mut W) -> IoResult<()> {
        BorshSerialize::serialize(&(self.epoch(), self.members()), writer)
    }
}

impl BorshDeserialize for Committee {
    fn deserialize_reader<R: Read>(reader: &mut R) -> IoResult<Self> {
        let (epoch, members) = <(Epoch, Vec<_>)>::deserialize_reader(reader)?;
        let committee = Self::new(epoch, members.clone()).map_err(|error| Error::new(ErrorKind::InvalidData, error))?;
        if committee.members() != members {
            return Err(Error::new(ErrorKind::InvalidData, "the members are not sorted by name"));
        }
        Ok(committee)
    }
}

/// Why a list of authorities is not a committee.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CommitteeError {
    /// Too few or too many.
    #[error("a committee must have {COMMITTEE_SIZE_MIN} to {COMMITTEE_SIZE_MAX} authorities, not {0}")]
    Size(usize),
    /// A key of this authority is zero.
    #[error("authority {0} has a key that is zero")]
    ZeroKey(AuthorityName),
    /// Listed twice.
    #[error("authority {0} is listed twice")]
    RepeatedName(AuthorityName),
    /// Two authorities with the same redemption key would be one that votes twice.
    #[error("the redemption key {0} is listed twice")]
    RepeatedRedemptionKey(PrimaryAddress),
}

#[cfg(test)]
mod tests {
    use super::*;

    fn members(count: usize) -> Vec<Authority> {
        (1..=count)
            .map(|i| {
                let byte = u8::try_from(i).unwrap();
                Authority { name: AuthorityName([byte; 32]), redemption_key: PrimaryAddress::repeat_byte(byte) }
            })
            .collect()
    }

    #[test]
    fn any_two_quorums_share_an_honest_authority_and_the_honest_suffice() {
        for n in COMMITTEE_SIZE_MIN..=COMMITTEE_SIZE_MAX {
            let committee = Committee::new(Epoch(0), members(n)).unwrap();
            let (f, quorum) = (committee.faults_tolerated(), committee.quorum());
            assert!(2 * quorum - n > f, "n = {n}");
            assert!(quorum <= n - f, "n = {n}");
            if n == 3 * f + 1 {
                assert_eq!(quorum, 2 * f + 1);
            }
        }
    }

    #[test]
    fn unfit_committees_are_refused() {
        let with = |change: fn(&mut Vec<Authority>)| {
            let mut list = members(4);
            change(&mut list);
            Committee::new(Epoch(0), list)
        };
        assert_eq!(with(|l| l.truncate(3)), Err(CommitteeError::Size(3)));
        assert_eq!(with(|l| *l = vec![l[0]; 256]), Err(CommitteeError::Size(256)));
        assert_eq!(with(|l| l[1].name = l[0].name), Err(CommitteeError::RepeatedName(AuthorityName([1; 32]))));
        assert_eq!(
            with(|l| l[3].redemption_key = l[0].redemption_key),
            Err(CommitteeError::RepeatedRedemptionKey(PrimaryAddress::repeat_byte(1)))
        );
        assert_eq!(with(|l| l[0].name = AuthorityName([0; 32])), Err(CommitteeError::ZeroKey(AuthorityName([0; 32]))));
        assert_eq!(
            with(|l| l[2].redemption_key = PrimaryAddress::ZERO),
            Err(CommitteeError::ZeroKey(AuthorityName([3; 32])))
        );
    }

    #[test]
    fn members_are_found_by_name_whatever_the_order_of_the_list() {
        let mut list = members(7);
        list.reverse();
        let committee = Committee::new(Epoch(3), list).unwrap();
        assert_eq!(committee.member(&AuthorityName([4; 32])).unwrap().0, 3);
        assert!(committee.member(&AuthorityName([9; 32])).is_none());
    }
}
