//! What clients request. A read is for anyone. Everything else is an instruction that the owner of an account signs for
//! one shard, under a sequence number of its own there [LEDGER 7].

use std::fmt;
use std::io;

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::{
    AccountId, AccountKey, Amount, Asset, Authorization, ContractVote, Digest, Epoch, Redemption, SequenceNumber,
};

use crate::committee::{Announcing, UnlockRequest};
use crate::encoding::{Wire, digest};
use crate::identity::{ClusterId, CommitteeNumber, Deployment, Height};

/// The longest name of a namespace.
pub const NAMESPACE_BYTES_MAX: usize = 64;
/// The longest key: it travels with every request and is hashed once.
pub const KEY_BYTES_MAX: usize = 256;
/// The longest value: many fit into a group.
pub const VALUE_BYTES_MAX: usize = 16 << 10;

macro_rules! bounded_bytes {
    ($($(#[$doc:meta])* $name:ident($min:expr, $max:expr);)*) => { $(
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize)]
        pub struct $name(Vec<u8>);

        impl $name {
            /// These bytes, if they are not too few or too many.
            #[must_use]
            pub fn new(bytes: Vec<u8>) -> Option<Self> {
                ($min..=$max).contains(&bytes.len()).then_some(Self(bytes))
            }

            /// The bytes.
            #[must_use]
            pub fn as_bytes(&self) -> &[u8] {
                &self.0
            }
        }

        impl BorshDeserialize for $name {
            fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Self> {
                let length = usize::try_from(u32::deserialize_reader(reader)?).unwrap_or(usize::MAX);
                let refused = || io::Error::new(io::ErrorKind::InvalidData, "too few or too many bytes");
                if !($min..=$max).contains(&length) {
                    return Err(refused());
                }
                let mut bytes = vec![0; length];
                reader.read_exact(&mut bytes)?;
                Self::new(bytes).ok_or_else(refused)
            }
        }
    )* };
}

bounded_bytes! {
    /// A key of the store: 1 to [`KEY_BYTES_MAX`] bytes.
    Key(1, KEY_BYTES_MAX);
    /// A value of the store: at most [`VALUE_BYTES_MAX`] bytes.
    Value(0, VALUE_BYTES_MAX);
}

/// The name of a namespace: 1 to [`NAMESPACE_BYTES_MAX`] of the characters `a` to `z`, `0` to `9` and `-`.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize)]
pub struct Namespace(String);

impl Namespace {
    /// The namespace of this name, if it is one.
    #[must_use]
    pub fn new(name: String) -> Option<Self> {
        let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'-';
        ((1..=NAMESPACE_BYTES_MAX).contains(&name.len()) && name.bytes().all(fits)).then_some(Self(name))
    }
}

impl fmt::Display for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl BorshDeserialize for Namespace {
    fn deserialize_reader<R: io::Read>(reader: &mut R) -> io::Result<Self> {
        let length = usize::try_from(u32::deserialize_reader(reader)?).unwrap_or(usize::MAX);
        let refused = || io::Error::new(io::ErrorKind::InvalidData, "not the name of a namespace");
        if length > NAMESPACE_BYTES_MAX {
            return Err(refused());
        }
        let mut bytes = vec![0; length];
        reader.read_exact(&mut bytes)?;
        String::from_utf8(bytes).ok().and_then(Self::new).ok_or_else(refused)
    }
}

/// The version of a stored value: where it was written. It never returns, also after the value was deleted.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct Version {
    /// The height of the write.
    pub height: Height,
    /// The position of the write among the writes of that height, from 0.
    pub position: u32,
}

/// When a write is carried out.
#[derive(Clone, Copy, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Condition {
    /// In any case.
    Always,
    /// If the key has no value.
    Absent,
    /// If the key has a value of this version.
    Version(Version),
}

/// What a signer wants done.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Action {
    /// PUT or DELETE. The signer is the namespace's writer.
    Write {
        /// The namespace.
        namespace: Namespace,
        /// The key.
        key: Key,
        /// When it is carried out.
        condition: Condition,
        /// The new value; `None` deletes.
        value: Option<Value>,
    },
    /// Opens the signer's reserves. What was credited to them before becomes theirs.
    Open,
    /// Moves an amount from the signer's reserve to another.
    Transfer {
        /// The owner of the other reserve.
        to: AccountId,
        /// The asset.
        asset: Asset,
        /// The amount.
        amount: Amount,
    },
    /// Moves an amount from the signer's reserve to an account of a FastPay committee.
    Fund {
        /// The committee.
        committee: CommitteeNumber,
        /// The FastPay account.
        account: AccountId,
        /// The asset.
        asset: Asset,
        /// The amount.
        amount: Amount,
    },
    /// Pays a redemption that a quorum of a FastPay committee voted for. The signer gets the fee.
    Redeem {
        /// The committee.
        committee: CommitteeNumber,
        /// The redemption. Its recipient is the owner of a reserve by an Ethereum key.
        redemption: Redemption,
        /// The epoch of the votes.
        epoch: Epoch,
        /// Exactly a quorum, in the order of names, none twice.
        votes: Vec<ContractVote>,
    },
    /// Pays redemptions that a quorum of a FastPay committee voted for together. One whose number is spent is left out.
    /// The signer gets the fees.
    RedeemBatch {
        /// The committee.
        committee: CommitteeNumber,
        /// The redemptions, at least one, in the order of the vote. Each recipient is as of [`Action::Redeem`].
        redemptions: Vec<Redemption>,
        /// The epoch of the votes.
        epoch: Epoch,
        /// Exactly a quorum on all of them, in the order of names, none twice.
        votes: Vec<ContractVote>,
    },
    /// Requests to unlock a number of a FastPay account, for its owner. The bond comes from the signer's reserve.
    RequestUnlock(UnlockRequest),
    /// Has the one order of a requested number upheld. The signer gets the bond.
    Uphold {
        /// The committee.
        committee: CommitteeNumber,
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// The digest of the order.
        digest: Digest,
        /// Exactly a quorum of the current epoch, each certifying that the order has a certificate, in the order of
        /// names.
        votes: Vec<ContractVote>,
    },
    /// Has a requested number voided.
    Void {
        /// The committee.
        committee: CommitteeNumber,
        /// The account.
        account: AccountId,
        /// The number.
        sequence: SequenceNumber,
        /// Whether the votes are of all members, and need no window.
        unanimous: bool,
        /// Exactly a quorum of the current epoch, or all members, in the order of names.
        votes: Vec<ContractVote>,
    },
    /// Announces the next committee.
    Announce(Box<Announcing>),
    /// Shortens the delay of an announcement. The signer is the guardian.
    Endorse {
        /// The committee.
        committee: CommitteeNumber,
        /// The announcement's id.
        announcement: Digest,
    },
    /// Records that an announcement's delay has passed. From then on its members can accept.
    Mature {
        /// The committee.
        committee: CommitteeNumber,
        /// The announcement's id.
        announcement: Digest,
    },
    /// Installs a committee that was announced, has matured, and accepts.
    Install {
        /// The committee.
        committee: CommitteeNumber,
        /// The announcement's id.
        announcement: Digest,
        /// Exactly a quorum of the next committee, on [`crate::Announced::acceptance`], in the order of names.
        votes: Vec<ContractVote>,
    },
}

/// An action at a place: what is signed.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Instruction {
    /// The deployment.
    pub deployment: Deployment,
    /// The cluster that executes it.
    pub shard: ClusterId,
    /// The account whose owner signs: writer, reserve or relayer.
    pub signer: AccountId,
    /// The number among those of this signer at this cluster, from 0 without gap.
    pub sequence: SequenceNumber,
    /// What is to be done.
    pub action: Action,
}

impl Instruction {
    /// What the signer's key signs; it names the instruction.
    #[must_use]
    pub fn digest(&self) -> Digest {
        digest("fastpay ledger instruction v1", self)
    }

    /// Signs the instruction. A key that does not own the signer's account makes one that every shard refuses.
    #[must_use]
    pub fn signed(self, key: &AccountKey) -> SignedInstruction {
        let authorization = key.authorize(self.digest());
        SignedInstruction { instruction: self, authorization }
    }
}

/// An instruction and its signature, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct SignedInstruction {
    /// The instruction.
    pub instruction: Instruction,
    /// By the owner of the signer's account.
    pub authorization: Authorization,
}

/// A read that goes through a round, for the newest value.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Get {
    /// The namespace.
    pub namespace: Namespace,
    /// The key.
    pub key: Key,
    /// Chosen at random by the client, so that it knows its answer from earlier ones.
    pub nonce: u64,
}

/// A client's request, not yet checked.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub enum Request {
    /// Reads.
    Get(Get),
    /// Changes something.
    Instruct(Box<SignedInstruction>),
}

impl Wire for Request {
    /// The largest is an announcement: 255 members of 52 bytes, with proofs of 129, and 171 votes of 97.
    const BYTES_MAX: usize = 64 << 10;
}

impl Request {
    /// The digest that names the request in its answer.
    #[must_use]
    pub fn digest(&self) -> Digest {
        match self {
            Self::Get(get) => digest("fastpay ledger get v1", get),
            Self::Instruct(signed) => signed.instruction.digest(),
        }
    }

    /// Checks everything that needs no state: the deployment, the length and the signature.
    ///
    /// # Errors
    /// See [`RequestError`].
    pub fn verify(self, deployment: Deployment) -> Result<VerifiedRequest, RequestError> {
        let found = self.encode().len();
        if found > Self::BYTES_MAX {
            return Err(RequestError::TooLong { found });
        }
        let digest = self.digest();
        if let Self::Instruct(signed) = &self {
            let SignedInstruction { instruction, authorization } = &**signed;
            if instruction.deployment != deployment {
                return Err(RequestError::OtherDeployment(instruction.deployment));
            }
            if !authorization.is_by(instruction.signer, digest) {
                return Err(RequestError::Signature(instruction.signer));
            }
        }
        Ok(VerifiedRequest { request: self, digest })
    }
}

/// A request that its signer did sign. Cannot be deserialised: only checking makes one.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct VerifiedRequest {
    request: Request,
    digest: Digest,
}

impl VerifiedRequest {
    /// The request.
    #[must_use]
    pub fn request(&self) -> &Request {
        &self.request
    }

    /// The digest that names it.
    #[must_use]
    pub fn digest(&self) -> Digest {
        self.digest
    }

    /// The request, no longer marked as verified.
    #[must_use]
    pub fn into_request(self) -> Request {
        self.request
    }
}

/// Why a request is in no proposal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum RequestError {
    /// More bytes than any request has.
    #[error("the request has {found} bytes; at most {} fit", Request::BYTES_MAX)]
    TooLong {
        /// The number of its bytes.
        found: usize,
    },
    /// For another ledger.
    #[error("the request is for another deployment, with the genesis hash {}; sign it for this one", .0.0)]
    OtherDeployment(Deployment),
    /// Altered, or signed by another key.
    #[error("the request is not signed by the owner of {0}; sign it again as it is")]
    Signature(AccountId),
}
