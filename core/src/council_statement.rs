//! What the contract counts a quorum for, outside of redemptions. A [`CouncilStatement`] has one digest, which the contract's
//! view of the same name computes too; `vectors/` pins both.

use crate::Digest;
use crate::amount::{Amount, Asset, Epoch};
use crate::committee::Committee;
use crate::identity::PrimaryAddress;
use crate::transfer::Redemption;

/// The next committee, as a quorum of the current one announces it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Announcement {
    /// The committee, with the epoch that it would begin.
    pub committee: Committee,
    /// Who can pause and endorse from then on; zero for nobody.
    pub guardian: PrimaryAddress,
    /// Who can announce a recovery from then on; zero for nobody.
    pub recovery: PrimaryAddress,
    /// The first epoch of which keys were out; the committee's own epoch where none were.
    pub compromised_since: Epoch,
    /// The digest of a certified checkpoint; zero for none.
    pub checkpoint: Digest,
    /// By when the announcement must be on the chain, in seconds since 1970.
    pub deadline: u64,
}

/// A statement for which the contract counts a quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CouncilStatement<'a> {
    /// By the current committee: the next one.
    Announcement(&'a Announcement),
    /// By the next committee: it is ready to begin.
    Acceptance {
        /// The epoch that begins.
        epoch: Epoch,
        /// The announcement's digest.
        announcement: Digest,
        /// The hash of a block in which the announcement had matured.
        block_hash: Digest,
    },
    /// By the current committee: more of an asset may be held.
    CapRaise {
        /// The current epoch.
        epoch: Epoch,
        /// Which asset.
        asset: Asset,
        /// The new cap.
        cap: Amount,
        /// By when the announcement must be on the chain, in seconds since 1970.
        deadline: u64,
    },
    /// By the current committee: it is alive.
    Heartbeat {
        /// The current epoch.
        epoch: Epoch,
        /// The hash of a recent block.
        block_hash: Digest,
    },
    /// By a committee that begins from a rebuilt state: this one.
    CheckpointAdoption {
        /// The current epoch.
        epoch: Epoch,
        /// The checkpoint's digest.
        checkpoint: Digest,
    },
    /// By the current committee: a queued redemption of a compromised epoch is not one that it knows.
    Release {
        /// The current epoch.
        epoch: Epoch,
        /// The queued redemption.
        redemption: &'a Redemption,
    },
}
