//! Statements for which the contract counts a quorum, apart from redemptions. A [`CouncilStatement`] has one digest.
//! The contract's view of the same name computes it too; `vectors/` pins both.

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
    /// The guardian from then on, who can pause and endorse; zero for nobody.
    pub guardian: PrimaryAddress,
    /// The address that can announce a recovery from then on; zero for nobody.
    pub recovery: PrimaryAddress,
    /// The first epoch whose keys were compromised; the committee's own epoch if none were.
    pub compromised_since: Epoch,
    /// The digest of a certified checkpoint; zero for none.
    pub checkpoint: Digest,
    /// The time, in seconds since 1970, by which the announcement must be on the chain.
    pub deadline: u64,
}

/// A statement for which the contract counts a quorum.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CouncilStatement<'a> {
    /// The current committee announces the next one.
    Announcement(&'a Announcement),
    /// The next committee accepts: it is ready to begin.
    Acceptance {
        /// The epoch that begins.
        epoch: Epoch,
        /// The announcement's digest.
        announcement: Digest,
        /// The hash of a block in which the announcement had matured.
        block_hash: Digest,
    },
    /// The current committee raises the deposit cap of an asset.
    CapRaise {
        /// The current epoch.
        epoch: Epoch,
        /// The asset.
        asset: Asset,
        /// The new cap.
        cap: Amount,
        /// The time, in seconds since 1970, by which the announcement must be on the chain.
        deadline: u64,
    },
    /// The current committee gives a heartbeat.
    Heartbeat {
        /// The current epoch.
        epoch: Epoch,
        /// The hash of a recent block.
        block_hash: Digest,
    },
    /// A recovered committee names the state from which it begins.
    CheckpointAdoption {
        /// The current epoch.
        epoch: Epoch,
        /// The checkpoint's digest.
        checkpoint: Digest,
    },
    /// The current committee disowns a queued redemption of a compromised epoch.
    Release {
        /// The current epoch.
        epoch: Epoch,
        /// The queued redemption.
        redemption: &'a Redemption,
    },
}
