//! What one receiver needs of a decision: its group, the path to the root, and the certificate [Heraclius, compact
//! decision]. Any member may hand it over: nothing in it is taken on anyone's word.

use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{Digest, MerklePath, SignedDigest};

use crate::certificate::{CertificateError, QuorumCertificate};
use crate::encoding::Wire;
use crate::entry::Cursor;
use crate::group::{GROUP_BYTES_MAX, GROUP_MESSAGES_MAX, Group, Outputs};
use crate::header::Header;
use crate::identity::{ClusterId, Deployment, Receiver, Time};
use crate::members::Members;
use crate::request::VerifiedRequest;

/// A decision as one receiver gets it, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CompactDecision {
    /// The header.
    pub header: Header,
    /// The receiver's messages.
    pub group: Group,
    /// From the group to the header's root over outputs.
    pub path: MerklePath,
    /// Of the header.
    pub certificate: QuorumCertificate,
}

impl Wire for CompactDecision {
    /// The messages, and 32 KiB for 171 votes, the path and the header.
    const BYTES_MAX: usize = GROUP_BYTES_MAX + (32 << 10);
}

impl CompactDecision {
    /// What `receiver` gets of a decision; `None` if there is nothing for it.
    #[must_use]
    pub fn of(header: &Header, outputs: &Outputs, certificate: &QuorumCertificate, receiver: Receiver) -> Option<Self> {
        let (group, path) = outputs.group(receiver)?;
        Some(Self { header: *header, group: group.clone(), path, certificate: certificate.clone() })
    }

    /// Checks all but the signatures and the place among the groups, and gives the group's digest and the signatures.
    pub(crate) fn prepare(
        &self,
        receiver: Receiver,
        members: &Members,
    ) -> Result<(Digest, Vec<SignedDigest>), OpenError> {
        let Group { to, messages, .. } = &self.group;
        if *to != receiver {
            return Err(OpenError::OtherReceiver { receiver, found: *to });
        }
        if messages.len() > GROUP_MESSAGES_MAX {
            return Err(OpenError::TooManyMessages(messages.len()));
        }
        let signatures = self.certificate.signatures(&self.header, members)?;
        let digest = self.group.head().digest(self.header.deployment, self.header.cluster);
        if self.path.root(digest) != Some(self.header.outputs) {
            return Err(OpenError::Path);
        }
        Ok((digest, signatures))
    }

    /// Checks that a certified group is the one that is due. Before the certificate is judged, this must not be asked:
    /// anyone can make up a group that seems to prove a fork.
    pub(crate) fn check_due(&self, cursor: &Cursor) -> Result<(), OpenError> {
        let (next, found) = (cursor.next, self.group.number);
        if found < next {
            return Err(OpenError::AlreadyTaken { next, found });
        }
        if found > next {
            return Err(OpenError::Missing { next, found });
        }
        if self.group.previous != cursor.previous {
            return Err(OpenError::OtherHistory { number: found });
        }
        Ok(())
    }
}

/// A group that is due, and that a quorum of its cluster certified. Cannot be deserialised: only checking makes one. A copy
/// costs nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedGroup {
    decision: Arc<CompactDecision>,
    digest: Digest,
    /// `None` if one of them does not hold.
    requests: Option<Arc<[VerifiedRequest]>>,
}

impl VerifiedGroup {
    pub(crate) fn new(
        decision: Arc<CompactDecision>,
        digest: Digest,
        requests: Option<Arc<[VerifiedRequest]>>,
    ) -> Self {
        Self { decision, digest, requests }
    }

    /// The requests among its messages, in their order. `None` if one does not hold: no honest cluster passes it on.
    #[must_use]
    pub fn requests(&self) -> Option<&[VerifiedRequest]> {
        self.requests.as_deref()
    }

    /// The cluster that decided.
    #[must_use]
    pub fn from(&self) -> ClusterId {
        self.decision.header.cluster
    }

    /// The deployment of the cluster that decided.
    #[must_use]
    pub fn deployment(&self) -> Deployment {
        self.decision.header.deployment
    }

    /// The header's time.
    #[must_use]
    pub fn time(&self) -> Time {
        self.decision.header.time
    }

    /// The group.
    #[must_use]
    pub fn group(&self) -> &Group {
        &self.decision.group
    }

    /// Whether the group is due.
    #[must_use]
    pub fn is_due(&self, cursor: Cursor) -> bool {
        (cursor.next, cursor.previous) == (self.group().number, self.group().previous)
    }

    /// The group that is due after this one.
    #[must_use]
    pub fn cursor(&self) -> Cursor {
        Cursor { next: self.decision.group.number.saturating_add(1), previous: self.digest }
    }

    /// The decision, as it was checked.
    #[must_use]
    pub fn decision(&self) -> &Arc<CompactDecision> {
        &self.decision
    }
}

/// Why a compact decision is not the one that is due.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum OpenError {
    /// For somebody else.
    #[error("the group is for {found}, not for {receiver}")]
    OtherReceiver {
        /// Who opens it.
        receiver: Receiver,
        /// Whom it names.
        found: Receiver,
    },
    /// Taken before: a replay, or a copy from another member.
    #[error("group {found} was taken before; the next one is {next}")]
    AlreadyTaken {
        /// The number that is due.
        next: u64,
        /// The group's.
        found: u64,
    },
    /// Groups are missing before it.
    #[error("group {next} comes before group {found}; ask f + 1 members of the cluster for it")]
    Missing {
        /// The number that is due.
        next: u64,
        /// The group's.
        found: u64,
    },
    /// A quorum certified it, and it continues another history than the one that was taken: the cluster forked.
    #[error("group {number} does not continue what was taken before: the cluster has forked; stop, and prove it")]
    OtherHistory {
        /// The group's number.
        number: u64,
    },
    /// More than any group has.
    #[error("the group has {0} messages; at most {GROUP_MESSAGES_MAX} are in one")]
    TooManyMessages(usize),
    /// A message was left out, repeated or altered, or the group is of another decision.
    #[error("the group is not under the header's root: ask another member of the cluster")]
    Path,
    /// The header is not certified.
    #[error(transparent)]
    Certificate(#[from] CertificateError),
}
