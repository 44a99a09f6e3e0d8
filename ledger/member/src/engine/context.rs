//! The ledger's types as the consensus engine wants them. The value that it agrees on is our header.

use std::cmp::Ordering;
use std::fmt;
use std::io;
use std::sync::Arc;

use borsh::{BorshDeserialize, BorshSerialize};
use fastpay_core::Digest;
use fastpay_ledger_statement::{ClusterId, Deployment, Header, Height, MemberKey, VoteKind, VoteStatement};
use malachite::app::types::core::{self as engine, NilOrVal, Round, SignedMessage, VoteType};
use malachite_signing_ed25519::{Ed25519, PublicKey};

use crate::votes::{Cast, Slot, Step};

/// One cluster of one deployment, for which the engine runs.
#[derive(Clone, Copy, Debug)]
pub struct Cluster {
    /// The deployment.
    pub deployment: Deployment,
    /// The cluster.
    pub cluster: ClusterId,
}

/// A member, by its key.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct MemberAddress(pub MemberKey);

impl fmt::Display for MemberAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for MemberAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl engine::Address for MemberAddress {}

/// A height.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, BorshSerialize, BorshDeserialize)]
pub struct EngineHeight(pub u64);

impl fmt::Display for EngineHeight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl engine::Height for EngineHeight {
    const ZERO: Self = Self(0);
    const INITIAL: Self = Self(1);

    fn increment_by(&self, n: u64) -> Self {
        Self(self.0.saturating_add(n))
    }

    fn decrement_by(&self, n: u64) -> Option<Self> {
        self.0.checked_sub(n).map(Self)
    }

    fn as_u64(&self) -> u64 {
        self.0
    }
}

/// The id of a header.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, BorshSerialize, BorshDeserialize)]
pub struct HeaderId(pub Digest);

impl fmt::Display for HeaderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Debug for HeaderId {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

/// What is voted for: the header alone. Its payload travels in a part, and is executed before the vote.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct ProposedHeader(pub Header);

impl PartialOrd for ProposedHeader {
    fn partial_cmp(&self, other: &Self) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for ProposedHeader {
    fn cmp(&self, other: &Self) -> Ordering {
        self.0.id().cmp(&other.0.id())
    }
}

impl engine::Value for ProposedHeader {
    type Id = HeaderId;

    fn id(&self) -> HeaderId {
        HeaderId(self.0.id())
    }
}

/// Decodes a round. The engine panics at one that does not fit into 32 bits, and it counts on from what it is given.
pub(crate) fn read_round<R: io::Read>(reader: &mut R) -> io::Result<i64> {
    checked_round(i64::deserialize_reader(reader)?)
}

/// A round, or −1 for none.
pub(crate) fn checked_round(round: i64) -> io::Result<i64> {
    let is_one = (-1..=i64::from(i32::MAX)).contains(&round);
    if is_one { Ok(round) } else { Err(io::Error::new(io::ErrorKind::InvalidData, "no such round")) }
}

/// The engine's proposal.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Proposal {
    height: EngineHeight,
    #[borsh(deserialize_with = "read_round")]
    round: i64,
    value: ProposedHeader,
    #[borsh(deserialize_with = "read_round")]
    pol_round: i64,
    proposer: MemberAddress,
}

impl Proposal {
    /// What its proposer signs.
    pub(crate) fn digest(&self, cluster: &Cluster) -> Digest {
        digest("fastpay ledger engine proposal v1", &(cluster.deployment, cluster.cluster, self))
    }

    /// The proposal, as the file of votes keeps it.
    pub(crate) fn cast(&self) -> Cast {
        let round = u32::try_from(self.round).unwrap_or(u32::MAX);
        let slot = Slot { height: self.height.0, round, step: Step::Proposal };
        // Two proposals of one header that name other rounds before are two.
        Cast { slot, id: Some(digest("fastpay ledger engine proposal id v1", self)) }
    }
}

impl engine::Proposal<Cluster> for Proposal {
    fn height(&self) -> EngineHeight {
        self.height
    }

    fn round(&self) -> Round {
        self.round.into()
    }

    fn value(&self) -> &ProposedHeader {
        &self.value
    }

    fn take_value(self) -> ProposedHeader {
        self.value
    }

    fn pol_round(&self) -> Round {
        self.pol_round.into()
    }

    fn validator_address(&self) -> &MemberAddress {
        &self.proposer
    }
}

/// The whole payload of a proposal, signed by its proposer. A proposal has one part.
#[derive(Clone, Debug, PartialEq, Eq, BorshSerialize, BorshDeserialize)]
pub struct Part {
    /// The round in which it is proposed.
    #[borsh(deserialize_with = "read_round")]
    pub round: i64,
    /// The round in which a quorum has prevoted it before; −1 for a new proposal.
    #[borsh(deserialize_with = "read_round")]
    pub valid_round: i64,
    /// The proposer of the round, who may not be the header's maker.
    pub proposer: MemberAddress,
    /// The header.
    pub header: Header,
    /// The payload.
    pub payload: Vec<u8>,
    /// The proposer's.
    pub signature: [u8; 64],
}

impl Part {
    /// What its proposer signs. The header names the hash of the payload.
    pub(crate) fn digest(&self) -> Digest {
        let content = (self.round, self.valid_round, self.proposer, self.header.id());
        digest("fastpay ledger engine part v1", &content)
    }
}

impl engine::ProposalPart<Cluster> for Part {
    fn is_first(&self) -> bool {
        true
    }

    fn is_last(&self) -> bool {
        true
    }
}

/// A member with its key.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validator {
    address: MemberAddress,
    key: PublicKey,
}

impl engine::Validator<Cluster> for Validator {
    fn address(&self) -> &MemberAddress {
        &self.address
    }

    fn public_key(&self) -> &PublicKey {
        &self.key
    }

    fn voting_power(&self) -> u64 {
        1
    }
}

/// The members, the leader of a height first.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Validators(Arc<Vec<Validator>>);

impl Validators {
    /// The members with these keys, in this order. `None` if one is no key.
    #[must_use]
    pub fn new(keys: impl IntoIterator<Item = MemberKey>) -> Option<Self> {
        let validator = |key: MemberKey| {
            PublicKey::from_bytes(key.0).ok().map(|public| Validator { address: MemberAddress(key), key: public })
        };
        keys.into_iter().map(validator).collect::<Option<Vec<_>>>().map(Arc::new).map(Self)
    }
}

impl engine::ValidatorSet<Cluster> for Validators {
    fn count(&self) -> usize {
        self.0.len()
    }

    fn total_voting_power(&self) -> u64 {
        u64::try_from(self.0.len()).unwrap_or(u64::MAX)
    }

    fn get_by_address(&self, address: &MemberAddress) -> Option<&Validator> {
        self.0.iter().find(|validator| validator.address == *address)
    }

    fn get_by_index(&self, index: usize) -> Option<&Validator> {
        self.0.get(index)
    }
}

/// The engine's vote.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Vote {
    pub(crate) kind: VoteType,
    pub(crate) height: EngineHeight,
    pub(crate) round: Round,
    pub(crate) value: NilOrVal<HeaderId>,
    pub(crate) voter: MemberAddress,
}

impl Vote {
    /// What its voter signs, which certificates are checked against.
    pub(crate) fn digest(&self, cluster: &Cluster) -> Digest {
        let Cast { slot, id } = self.cast();
        let kind = match self.kind {
            VoteType::Prevote => VoteKind::Prevote,
            VoteType::Precommit => VoteKind::Precommit,
        };
        let (deployment, of) = (cluster.deployment, cluster.cluster);
        let (height, round) = (Height(slot.height), slot.round);
        VoteStatement { deployment, cluster: of, height, round, kind, value: id }.digest()
    }

    /// The vote, as the file of votes keeps it.
    pub(crate) fn cast(&self) -> Cast {
        let step = match self.kind {
            VoteType::Prevote => Step::Prevote,
            VoteType::Precommit => Step::Precommit,
        };
        let round = self.round.as_u32().unwrap_or(u32::MAX);
        Cast { slot: Slot { height: self.height.0, round, step }, id: id_of(&self.value) }
    }
}

/// The digest that a vote names; `None` for nil.
pub(crate) fn id_of(value: &NilOrVal<HeaderId>) -> Option<Digest> {
    match value {
        NilOrVal::Nil => None,
        NilOrVal::Val(id) => Some(id.0),
    }
}

impl engine::Vote<Cluster> for Vote {
    fn height(&self) -> EngineHeight {
        self.height
    }

    fn round(&self) -> Round {
        self.round
    }

    fn value(&self) -> &NilOrVal<HeaderId> {
        &self.value
    }

    fn take_value(self) -> NilOrVal<HeaderId> {
        self.value
    }

    fn vote_type(&self) -> VoteType {
        self.kind
    }

    fn validator_address(&self) -> &MemberAddress {
        &self.voter
    }

    fn extension(&self) -> Option<&SignedMessage<Cluster, ()>> {
        None
    }

    fn take_extension(&mut self) -> Option<SignedMessage<Cluster, ()>> {
        None
    }

    fn extend(self, _: SignedMessage<Cluster, ()>) -> Self {
        self
    }
}

impl engine::Context for Cluster {
    type Address = MemberAddress;
    type Height = EngineHeight;
    type ProposalPart = Part;
    type Proposal = Proposal;
    type Validator = Validator;
    type ValidatorSet = Validators;
    type Timeouts = engine::LinearTimeouts;
    type Value = ProposedHeader;
    type Vote = Vote;
    type Extension = ();
    type SigningScheme = Ed25519;

    fn select_proposer<'a>(&self, members: &'a Validators, _: EngineHeight, round: Round) -> &'a Validator {
        let round = usize::try_from(round.as_u32().unwrap_or(0)).unwrap_or(0);
        let at = round.checked_rem(members.0.len()).unwrap_or(0);
        members.0.get(at).expect("a cluster has members")
    }

    fn new_proposal(
        &self,
        height: EngineHeight,
        round: Round,
        value: ProposedHeader,
        pol_round: Round,
        proposer: MemberAddress,
    ) -> Proposal {
        Proposal { height, round: round.as_i64(), value, pol_round: pol_round.as_i64(), proposer }
    }

    fn new_prevote(&self, height: EngineHeight, round: Round, value: NilOrVal<HeaderId>, voter: MemberAddress) -> Vote {
        Vote { kind: VoteType::Prevote, height, round, value, voter }
    }

    fn new_precommit(
        &self,
        height: EngineHeight,
        round: Round,
        value: NilOrVal<HeaderId>,
        voter: MemberAddress,
    ) -> Vote {
        Vote { kind: VoteType::Precommit, height, round, value, voter }
    }
}

/// The hash of what only members of a cluster tell each other, in the domain of `context`.
pub(super) fn digest(context: &'static str, value: &impl BorshSerialize) -> Digest {
    let mut hasher = blake3::Hasher::new_derive_key(context);
    value.serialize(&mut hasher).expect("a hasher takes every write");
    Digest::new(*hasher.finalize().as_bytes())
}
