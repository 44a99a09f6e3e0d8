//! The header of a height: the value that a cluster's members vote for.

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{Digest, DigestVerifier, Ed25519Signature, SignedDigest};
use rand_core::CryptoRng;

use crate::encoding::{Wire, digest};
use crate::identity::{ClusterId, Deployment, Height, MemberIndex, MemberKeys, Time};
use crate::members::Members;

/// A new proposal's time may be this far behind a voter's clock: a proposal takes a while, and clocks differ.
pub const CLOCK_BEHIND_MS_MAX: u64 = 60_000;
/// A new proposal's time may be this far ahead of a voter's clock. Time never goes back, so this is tighter.
pub const CLOCK_AHEAD_MS_MAX: u64 = 5_000;

/// What one height decides. Its id covers everything, the maker's signature included.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Header {
    /// The deployment.
    pub deployment: Deployment,
    /// The cluster that decides.
    pub cluster: ClusterId,
    /// Counts the cluster's decisions, from 1.
    pub height: Height,
    /// Above the parent's.
    pub time: Time,
    /// The id of the header before; zero for height 1.
    pub parent: Digest,
    /// The hash of the payload that is executed: [`payload_digest`].
    pub inputs: Digest,
    /// The root of the state after it.
    pub state: Digest,
    /// The root over the groups of messages: [`crate::Outputs::root`].
    pub outputs: Digest,
    /// The member that made the header. A round of the engine may propose it again; its sender's word for who made it
    /// would prove nothing.
    pub maker: MemberIndex,
    /// The maker's signature on [`Header::made_digest`].
    pub signature: Ed25519Signature,
}

impl Wire for Header {
    const BYTES_MAX: usize = 1_024;
}

/// The hash of a height's encoded payload. A payload is stored only under a header that names it [LEDGER 5].
#[must_use]
pub fn payload_digest(payload: &[u8]) -> Digest {
    digest!("fastpay ledger payload v1", &payload)
}

impl Header {
    /// The id: the engine's value id.
    #[must_use]
    pub fn id(&self) -> Digest {
        digest!("fastpay ledger header v1", self)
    }

    /// What the maker signs: all fields but the signature.
    #[must_use]
    pub fn made_digest(&self) -> Digest {
        let Self { deployment, cluster, height, time, parent, inputs, state, outputs, maker, signature: _ } = self;
        digest!(
            "fastpay ledger made header v1",
            &(deployment, cluster, height, time, parent, inputs, state, outputs, maker),
        )
    }

    /// The same header with the signature of its maker.
    #[must_use]
    pub fn signed(self, keys: &MemberKeys) -> Self {
        Self { signature: keys.sign(self.made_digest()), ..self }
    }

    /// Checks that a member of this cluster made the header.
    ///
    /// # Errors
    /// [`HeaderError::OtherDeployment`], [`HeaderError::OtherCluster`], [`HeaderError::UnknownMaker`],
    /// [`HeaderError::NotByMaker`].
    pub fn check_made(
        &self,
        members: &Members,
        verifier: &mut DigestVerifier,
        rng: &mut impl CryptoRng,
    ) -> Result<(), HeaderError> {
        self.check_place(members)?;
        let key = members.key(self.maker).ok_or(HeaderError::UnknownMaker(self.maker))?;
        let signed = SignedDigest { key: key.0, digest: self.made_digest(), signature: self.signature };
        if verifier.verify(&[signed], rng) != [true] {
            return Err(HeaderError::NotByMaker(self.maker));
        }
        Ok(())
    }

    /// Checks that the header is of the members' deployment and cluster.
    pub(crate) fn check_place(&self, members: &Members) -> Result<(), HeaderError> {
        if self.deployment != members.deployment() {
            return Err(HeaderError::OtherDeployment(self.deployment));
        }
        if self.cluster != members.cluster() {
            return Err(HeaderError::OtherCluster { expected: members.cluster(), found: self.cluster });
        }
        Ok(())
    }

    /// Checks that the header can come directly after `parent`, which is `None` at height 1.
    ///
    /// # Errors
    /// [`HeaderError::Height`], [`HeaderError::Parent`], [`HeaderError::TimeNotAfterParent`].
    pub fn check_follows(&self, parent: Option<&Self>) -> Result<(), HeaderError> {
        let before = parent.map_or(Height(0), |parent| parent.height);
        if Some(self.height) != before.next() {
            return Err(HeaderError::Height { after: before, found: self.height });
        }
        if self.parent != parent.map_or(Digest::ZERO, Self::id) {
            return Err(HeaderError::Parent);
        }
        let earliest = parent.map_or(Time(0), |parent| parent.time);
        if self.time <= earliest {
            return Err(HeaderError::TimeNotAfterParent { parent: earliest, found: self.time });
        }
        Ok(())
    }

    /// Checks the time of a new proposal against the voter's clock [LEDGER 3]. Proposals that are made again, synced or
    /// replayed are not checked: their time was checked when they were new.
    ///
    /// # Errors
    /// [`HeaderError::Clock`].
    pub fn check_clock(&self, now: Time) -> Result<(), HeaderError> {
        self.check_not_ahead(now)?;
        let is_late = self.time.0 < now.0.saturating_sub(CLOCK_BEHIND_MS_MAX);
        if is_late { Err(HeaderError::Clock { now, found: self.time }) } else { Ok(()) }
    }

    /// Checks that the time is not ahead of the voter's clock, whatever was prevoted before. No header could follow one
    /// whose time is the last that there is.
    ///
    /// # Errors
    /// [`HeaderError::Clock`].
    pub fn check_not_ahead(&self, now: Time) -> Result<(), HeaderError> {
        let is_ahead = self.time.0 > now.0.saturating_add(CLOCK_AHEAD_MS_MAX);
        if is_ahead { Err(HeaderError::Clock { now, found: self.time }) } else { Ok(()) }
    }
}

/// Why a header is not one to vote for, or not one of this cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum HeaderError {
    /// Of another ledger.
    #[error("the header is of another deployment, with the genesis hash {}; ask a member of this one", .0.0)]
    OtherDeployment(Deployment),
    /// Of another cluster.
    #[error("the header is of cluster {found}, not of cluster {expected}")]
    OtherCluster {
        /// The cluster whose members are known.
        expected: ClusterId,
        /// The header's.
        found: ClusterId,
    },
    /// There is no such member.
    #[error("member {0}, which should have made the header, does not exist")]
    UnknownMaker(MemberIndex),
    /// The maker did not sign it as it is.
    #[error("member {0} did not sign the header that is said to be its own")]
    NotByMaker(MemberIndex),
    /// Not the next height.
    #[error("the header is of height {found}, and cannot follow height {after}")]
    Height {
        /// The height before.
        after: Height,
        /// The header's.
        found: Height,
    },
    /// Built on another header.
    #[error("the header is built on another one than that of the height before")]
    Parent,
    /// Time stands still or goes back.
    #[error("the header's time {found} ms is not after its parent's, {parent} ms")]
    TimeNotAfterParent {
        /// The parent's time.
        parent: Time,
        /// The header's.
        found: Time,
    },
    /// Too far from the voter's clock.
    #[error("the header's time {found} ms is too far from this member's clock, {now} ms; check both clocks")]
    Clock {
        /// The voter's clock.
        now: Time,
        /// The header's time.
        found: Time,
    },
}
