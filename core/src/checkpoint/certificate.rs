//! The statement about a cut that members sign, and its certificate [LIFE §4]. A member signs what it computed itself,
//! once it has executed the whole cut; it may sign several correct cuts.

use borsh::{BorshDeserialize, BorshSerialize};

use super::installations::Installations;
use super::stored::StateSummary;
use crate::Digest;
use crate::amount::{Epoch, TransactionIndex};
use crate::committee::{Committee, check_sorted};
use crate::identity::AuthorityName;
use crate::keys::AuthorityKeys;
use crate::signature::{BadSignature, Ed25519Signature, Signatory, verify_ed25519};
use crate::statement::Domain;

/// A checkpoint of the committee: the statement `CheckpointVote`. Its EIP-712 digest identifies it
/// ([`Domain::checkpoint_digest`]). It has nothing to do with the checkpoints that a shard writes to its own store.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Checkpoint {
    /// The epoch whose members sign.
    pub epoch: Epoch,
    /// Counts checkpoints along `previous`, from 0 for S_0, which nobody signs.
    pub number: u64,
    /// The digest of the certified checkpoint before; zero for number 0.
    pub previous: Digest,
    /// D: every event of the Primary up to this index is included.
    pub up_to: TransactionIndex,
    /// The root of the [`super::Cut`].
    pub cut: Digest,
    /// The root of the [`super::CheckpointState`].
    pub state: Digest,
    /// The root of the [`super::Segment`] that leads to the state from the one before; zero for number 0.
    pub segment: Digest,
}

impl Checkpoint {
    /// Number 0: S_0, on which the first one that is signed is built.
    #[must_use]
    pub fn first(state: &StateSummary) -> Self {
        Self::of(Epoch(0), 0, Digest::ZERO, state, Digest::ZERO)
    }

    /// The checkpoint after this one, to be signed in `epoch`, with the summary of the state and the
    /// root of the segment. `None` after
    /// the last number.
    #[must_use]
    pub fn next(&self, domain: &Domain, epoch: Epoch, state: &StateSummary, segment: Digest) -> Option<Self> {
        let number = self.number.checked_add(1)?;
        Some(Self::of(epoch, number, domain.checkpoint_digest(self), state, segment))
    }

    fn of(epoch: Epoch, number: u64, previous: Digest, state: &StateSummary, segment: Digest) -> Self {
        let StateSummary { up_to, cut, state, .. } = *state;
        Self { epoch, number, previous, up_to, cut, state, segment }
    }

    /// Whether a proposed checkpoint is this one, which the caller computed.
    ///
    /// # Errors
    /// The first field in which they differ.
    pub fn check(&self, proposed: &Self) -> Result<(), CheckpointMismatch> {
        let fields = [
            (self.epoch == proposed.epoch, CheckpointMismatch::Epoch),
            (self.number == proposed.number, CheckpointMismatch::Number),
            (self.previous == proposed.previous, CheckpointMismatch::Previous),
            (self.up_to == proposed.up_to, CheckpointMismatch::UpTo),
            (self.cut == proposed.cut, CheckpointMismatch::Cut),
            (self.segment == proposed.segment, CheckpointMismatch::Segment),
            (self.state == proposed.state, CheckpointMismatch::State),
        ];
        fields.into_iter().find(|(is_same, _)| !is_same).map_or(Ok(()), |(_, mismatch)| Err(mismatch))
    }

    /// Signs the checkpoint. The caller computed it from certified checkpoints and its own history, has executed its
    /// cut, and votes in its epoch.
    #[must_use]
    pub fn sign(&self, keys: &AuthorityKeys, domain: &Domain) -> CheckpointVote {
        let signature = keys.sign_ed25519(domain.checkpoint_digest(self));
        CheckpointVote { authority: keys.public().name, signature }
    }
}

/// The field in which a proposed checkpoint differs from the one that is computed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointMismatch {
    /// Another epoch is to sign.
    #[error("the checkpoint is to be signed in another epoch")]
    Epoch,
    /// Another number.
    #[error("the checkpoint has another number")]
    Number,
    /// Built on another checkpoint.
    #[error("the checkpoint is built on another one")]
    Previous,
    /// Other events of the Primary are included.
    #[error("the checkpoint includes other events of the Primary")]
    UpTo,
    /// Other numbers of accounts are included.
    #[error("the checkpoint has another cut")]
    Cut,
    /// The same cut with another history: one of the two is wrong.
    #[error("the checkpoint has another segment for the same cut")]
    Segment,
    /// The same history with another state: one of the two is wrong.
    #[error("the checkpoint has another state for the same segment")]
    State,
}

/// One member's vote on a checkpoint, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CheckpointVote {
    /// The member.
    pub authority: AuthorityName,
    /// By its Ed25519 key, on the checkpoint's digest.
    pub signature: Ed25519Signature,
}

impl CheckpointVote {
    /// Checks the vote of a member of `committee` on the checkpoint with this `digest`.
    ///
    /// # Errors
    /// [`CheckpointError::NotAMember`], [`CheckpointError::Signature`].
    pub fn check(&self, committee: &Committee, digest: Digest) -> Result<(), CheckpointError> {
        let Self { authority, signature } = self;
        committee.member(authority).ok_or(CheckpointError::NotAMember(*authority))?;
        if !verify_ed25519(&authority.0, signature, digest) {
            return Err(CheckpointError::Signature(BadSignature(Signatory::Authority(*authority))));
        }
        Ok(())
    }
}

/// A checkpoint and votes on it, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct CheckpointCertificate {
    /// The checkpoint.
    pub checkpoint: Checkpoint,
    /// Exactly a quorum of its epoch, in the order of names, none twice.
    pub votes: Vec<CheckpointVote>,
}

impl CheckpointCertificate {
    /// Makes a certificate of votes: the first quorum of those that are valid, in the order of names. `None` if they
    /// are too few.
    #[must_use]
    pub fn from_votes(
        checkpoint: Checkpoint,
        domain: &Domain,
        committee: &Committee,
        mut votes: Vec<CheckpointVote>,
    ) -> Option<Self> {
        let digest = domain.checkpoint_digest(&checkpoint);
        votes.retain(|vote| vote.check(committee, digest).is_ok());
        votes.sort_by_key(|vote| vote.authority);
        votes.dedup_by_key(|vote| vote.authority);
        votes.truncate(committee.quorum());
        let is_certified = checkpoint.epoch == committee.epoch() && votes.len() == committee.quorum();
        is_certified.then_some(Self { checkpoint, votes })
    }

    /// Checks that a certificate that was verified once counts where these committees were installed: an installation
    /// names its checkpoint, or [`CheckpointCertificate::verify`] accepts it.
    ///
    /// # Errors
    /// See [`CheckpointError`].
    pub fn counts(&self, domain: &Domain, installations: &Installations) -> Result<(), CheckpointError> {
        let digest = domain.checkpoint_digest(&self.checkpoint);
        let is_named = installations.iter().any(|installed| installed.checkpoint == digest);
        if is_named { Ok(()) } else { self.clone().verify(domain, installations).map(drop) }
    }

    /// Checks the certificate. `installations` are those up to the newest final block that the caller knows. The current
    /// epoch certifies checkpoints, and so does the one before, which is closing, unless its keys were out. Of earlier
    /// epochs only the checkpoint counts that an installation names; that one needs no votes.
    ///
    /// # Errors
    /// See [`CheckpointError`].
    pub fn verify(self, domain: &Domain, installations: &Installations) -> Result<VerifiedCheckpoint, CheckpointError> {
        let (epoch, current) = (self.checkpoint.epoch, installations.epoch());
        let installed = installations.get(epoch).ok_or(CheckpointError::UnknownEpoch(epoch))?;
        let is_closing = epoch.0.checked_add(1) == Some(current.0);
        if epoch != current && !is_closing {
            return Err(CheckpointError::EpochEnded(epoch));
        }
        if is_closing && installations.current().compromised_since <= epoch {
            return Err(CheckpointError::EpochCompromised(epoch));
        }
        self.verify_by(domain, &installed.committee)
    }

    /// Checks the votes of `committee`, which counts and is of the checkpoint's epoch.
    pub(super) fn verify_by(
        self,
        domain: &Domain,
        committee: &Committee,
    ) -> Result<VerifiedCheckpoint, CheckpointError> {
        if self.votes.len() != committee.quorum() {
            return Err(CheckpointError::VoteCount { expected: committee.quorum(), found: self.votes.len() });
        }
        check_sorted(self.votes.iter().map(|vote| vote.authority)).map_err(CheckpointError::VotesUnsorted)?;
        let digest = domain.checkpoint_digest(&self.checkpoint);
        self.votes.iter().try_for_each(|vote| vote.check(committee, digest))?;
        Ok(VerifiedCheckpoint { certificate: self, digest })
    }
}

/// A checkpoint with a valid quorum. Cannot be deserialised: only checking makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedCheckpoint {
    certificate: CheckpointCertificate,
    digest: Digest,
}

impl VerifiedCheckpoint {
    /// The checkpoint.
    #[must_use]
    pub fn checkpoint(&self) -> &Checkpoint {
        &self.certificate.checkpoint
    }

    /// The digest that identifies it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The certificate, no longer marked as verified.
    #[must_use]
    pub fn into_certificate(self) -> CheckpointCertificate {
        self.certificate
    }
}

/// Why a checkpoint's certificate proves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CheckpointError {
    /// Its committee is not known here (yet).
    #[error("the committee of epoch {0} is not known here; check the checkpoint again later")]
    UnknownEpoch(Epoch),
    /// Its epoch is neither the current nor the closing one.
    #[error("epoch {0} has ended: of its checkpoints only the one counts that an installation names")]
    EpochEnded(Epoch),
    /// Keys of its epoch were out.
    #[error("keys of epoch {0} were out: of its checkpoints only the one counts that an installation names")]
    EpochCompromised(Epoch),
    /// Too few votes, or more than are needed.
    #[error("the checkpoint has {found} votes; exactly {expected} are a quorum")]
    VoteCount {
        /// The quorum.
        expected: usize,
        /// The number that the certificate has.
        found: usize,
    },
    /// A vote twice, or out of order.
    #[error("the vote of authority {0} is repeated or not in the order of names")]
    VotesUnsorted(AuthorityName),
    /// The signer is not a member of the committee.
    #[error("authority {0} is not a member of the committee")]
    NotAMember(AuthorityName),
    /// A signature does not fit.
    #[error(transparent)]
    Signature(#[from] BadSignature),
}
