//! What a member that joins an epoch waits for.

use fastpay_core::handover::JoinError;
use fastpay_core::{AuthorityName, Digest, Epoch};

/// What a member that joins an epoch waits for. It tries again by itself.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum JoinWait {
    /// It may have voted in the epoch with another folder.
    #[error(
        "the data folder is marked as an older copy, so this authority may have voted in epoch {0} and forgotten it: it joins \
         the next one"
    )]
    Restored(Epoch),
    /// The Closings of the epoch before prove nothing.
    #[error("keys of epoch {0} were out, so its Closings prove nothing: nobody joins with them")]
    Compromised(Epoch),
    /// Too few members of the epoch before have stated what they know.
    #[error(
        "Closings of {needed} members of epoch {epoch} are needed, and {found} are here; missing: {}. Their nodes must run, \
         and `endpoints` must list them or others who have their Closings",
        names(missing)
    )]
    Closings {
        /// The epoch that ended.
        epoch: Epoch,
        /// Its quorum.
        needed: usize,
        /// How many are here.
        found: usize,
        /// The members whose Closings are not.
        missing: Vec<AuthorityName>,
    },
    /// The journals must begin at a later checkpoint.
    #[error(
        "members state only what came after checkpoint {0}, which this data folder does not include: a node with \
         an `[archive]` begins from that one or a later one by itself"
    )]
    Checkpoint(Digest),
    /// The Closings cannot be read.
    #[error("cannot read the Closings: {0}")]
    Unreadable(String),
    /// Certificates that the Closings claim are not here.
    #[error("{missing} certificates that members claim are not here yet: {first}")]
    Certificates {
        /// How many.
        missing: u64,
        /// The first claim that is not borne out.
        first: JoinError,
    },
    /// A shard does not join yet.
    #[error(transparent)]
    Shard(JoinError),
    /// A shard has too much to do, or stops.
    #[error("a shard gives no answer: {0}")]
    Busy(String),
    /// The follower has ended.
    #[error("this authority follows the contract no more: see the alarm in `/ready` and in the log")]
    NotFollowing,
    /// What was joined cannot be stored.
    #[error("all shards have joined, and the vote cannot begin: {0}")]
    Storage(String),
}

impl JoinWait {
    /// After an epoch that counts as compromised here: until the next installation is followed, each one does.
    pub(super) fn suspect(ended: Epoch, is_followed: bool) -> Self {
        let next = Epoch(ended.0.saturating_add(1));
        if is_followed { Self::Compromised(ended) } else { Self::Shard(JoinError::NotInstalled(next)) }
    }

    /// Its name for programs.
    #[must_use]
    pub fn code(&self) -> &'static str {
        match self {
            Self::Restored(_) => "restored",
            Self::Compromised(_) => "compromised",
            Self::Closings { .. } => "closings",
            Self::Checkpoint(_) => "checkpoint",
            Self::Unreadable(_) => "unreadable",
            Self::Certificates { .. } => "certificates",
            Self::Shard(JoinError::PrimaryTooOld) => "primary-too-old",
            Self::Shard(_) | Self::NotFollowing => "primary",
            Self::Busy(_) => "busy",
            Self::Storage(_) => "storage",
        }
    }

    /// How many Closings and how many certificates are missing.
    #[must_use]
    pub fn missing(&self) -> (usize, u64) {
        match self {
            Self::Closings { needed, found, .. } => (needed.saturating_sub(*found), 0),
            Self::Certificates { missing, .. } => (0, *missing),
            _ => (0, 0),
        }
    }
}

fn names(names: &[AuthorityName]) -> String {
    names.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}
