//! The leaves of cuts, states and segments: kind byte ‖ borsh(fields). A kind byte names one layout for ever: a new
//! layout gets a new kind, and unknown kinds are refused (LIFE §3).

use borsh::{BorshDeserialize, BorshSerialize};

use super::installations::InstalledCommittee;
use super::segment::PrimaryEvent;
use super::state::NumberState;
use super::stream::encode;
use super::tree::{LeafPath, RootBuilder};
use crate::Digest;
use crate::amount::{Asset, Balance, SequenceNumber, TransactionIndex};
use crate::identity::AccountId;
use crate::private::PrivateTransfer;
use crate::transfer::{Redemption, Transfer};

/// A leaf of the trees over a cut, a state or a segment.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
#[borsh(use_discriminant = true)]
#[repr(u8)]
pub enum Leaf {
    /// Cut and state: every event of the Primary up to this index is included.
    UpTo(TransactionIndex) = 0x01,
    /// Cut and state: every number of the account below this one, which is not 0, is included.
    Next(AccountId, SequenceNumber) = 0x02,
    /// State: a committee.
    Committee(InstalledCommittee) = 0x11,
    /// State: a balance, which is not zero. Below zero is an account that owes since a recovery.
    Balance(AccountId, Asset, Balance) = 0x12,
    /// State: what the Primary said of a number.
    Number(AccountId, SequenceNumber, NumberState) = 0x13,
    /// State: a redemption that is executed and that the Primary has not paid.
    Unpaid(Redemption) = 0x14,
    /// Segment: an event of the Primary.
    Event(PrimaryEvent) = 0x21,
    /// Segment: an executed transfer, without its owner's authorization.
    Executed(Transfer) = 0x22,
    /// Segment: a void number that the account stepped over.
    Void(AccountId, SequenceNumber) = 0x23,
    /// Segment: a number that the Primary spent on this redemption, of which no certificate is known.
    Paid(Redemption) = 0x24,
    /// Segment: the segment is a recovery.
    Recovery = 0x25,
    /// Segment: an executed private transfer, without its notes, whose hash it has.
    ExecutedPrivate(Box<PrivateTransfer>) = 0x26,
}

impl Leaf {
    /// The kind byte of an executed transfer.
    pub(super) const EXECUTED: u8 = 0x22;

    /// The root of the tree in which this leaf has `path`: the `cut`, `state` or `segment` of a checkpoint proves the
    /// leaf if it is equal. `None` if the path is malformed.
    #[must_use]
    pub fn root(&self, path: &LeafPath) -> Option<Digest> {
        path.root(&encode(self))
    }

    /// The bytes that are hashed: the kind byte and the fields.
    #[must_use]
    pub fn encoded(&self) -> Vec<u8> {
        encode(self)
    }

    /// The leaf of these bytes. `None` if they are those of no leaf.
    #[must_use]
    pub fn decode(encoded: &[u8]) -> Option<Self> {
        Self::try_from_slice(encoded).ok()
    }
}

/// The root over leaves, of which there is at least one, and the path of `wanted` if it is among them.
pub(super) fn root_of(leaves: impl Iterator<Item = Leaf>, wanted: Option<&Leaf>) -> (Digest, Option<LeafPath>) {
    let mut builder = RootBuilder::default();
    for leaf in leaves {
        builder.push_leaf(&encode(&leaf), wanted == Some(&leaf));
    }
    builder.finish().unwrap_or_default()
}
